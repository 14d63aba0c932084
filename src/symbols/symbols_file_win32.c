#include "symbols/symbols_file.h"

#include "base/mem.h"

struct symbols_file {
	bool none;
};

struct symbols_file *symbols_file_open(const struct symbols_file_identity *identity,
				       const struct search *search)
{
	struct symbols_file *file = mem_alloc(1, sizeof *file);

	if (identity->path[0] == '/')
		remarks_add(search->remarks,
			    "%s: names of ELF files are not read on Windows (tidemark bundle, on "
			    "Linux, packs them into the trace)",
			    identity->path);
	return file;
}

void symbols_file_close(struct symbols_file *file)
{
	mem_free(file);
}

void symbols_file_find(struct symbols_file *file, uint64_t offset, struct places *places)
{
	(void)file, (void)offset;
	places_add(places);
}
