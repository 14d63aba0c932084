// On Windows only modules of Windows are read (pe_file.h): there is no libelf. A trace from Linux
// still has the names that were bundled with it, which symbols.c asks first.
#include "symbols/symbols_file.h"

#include "base/mem.h"
#include "base/str.h"
#include "symbols/pe_file.h"

struct symbols_file {
	struct pe_file *pe; // NULL: it is no Windows module
};

struct symbols_file *symbols_file_open(const struct symbols_file_identity *identity,
				       const struct search *search)
{
	struct symbols_file *file = mem_alloc(1, sizeof *file);

	// Paths tell the two apart: C:\… or \\… is Windows', /… a Linux one.
	if (str_is_windows_path(identity->path))
		file->pe = pe_file_open(identity, search);
	else if (identity->path[0] == '/')
		remarks_add(search->remarks,
			    "%s: names of ELF files are not read on Windows (tidemark bundle, on "
			    "Linux, packs them into the trace)",
			    identity->path);
	return file;
}

void symbols_file_close(struct symbols_file *file)
{
	if (!file)
		return;
	pe_file_close(file->pe);
	mem_free(file);
}

void symbols_file_find(struct symbols_file *file, uint64_t offset, struct places *places)
{
	if (file->pe)
		pe_file_find(file->pe, offset, places);
	else
		// One empty place, as symbols.c is promised: the module and the offset are what can
		// be said.
		places_add(places);
}

void symbols_file_status(const struct symbols_file *file, struct symbols_status *status)
{
	*status = (struct symbols_status){ 0 };
	if (file->pe)
		pe_file_status(file->pe, status);
}
