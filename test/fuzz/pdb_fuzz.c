// Any bytes as what names of Windows modules are read from. The first byte says as what: a PDB, an
// image, or a name of Microsoft's C++ compilers.
#include "base/mem.h"
#include "recorder/fpo.h"
#include "symbols/pdb.h"
#include "symbols/pe_dwarf.h"
#include "symbols/undecorate.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CODE = 0x1000, CODE_END = 0x1400 };

static void use_names(struct pe_names *names)
{
	pe_names_build(names);
	for (uint32_t rva = CODE; rva < CODE_END; rva += 3)
		if (!pe_names_find(names, rva) && !pe_names_unnamed(names, "fuzz.dll", rva))
			abort();
}

struct bytes {
	const uint8_t *at;
	size_t count;
};

static bool read_at(void *context, uint64_t at, void *out, size_t count)
{
	const struct bytes *bytes = context;

	if (at > bytes->count || count > bytes->count - at)
		return false;
	memcpy(out, bytes->at + at, count);
	return true;
}

static void give_back(void *pages, size_t count)
{
	(void)count;
	free(pages);
}

// As the recorder reads it, for the image that its head names.
static void try_frames(const uint8_t *data, size_t size, const struct pdb *pdb)
{
	struct bytes bytes = { data, size };
	struct fpo_file file = { &bytes, size, read_at, malloc, give_back };
	uint32_t age = pdb_age(pdb);
	struct fpo_table *table;
	uint8_t id[FPO_ID_BYTES];

	memcpy(id, pdb_guid(pdb), 16);
	memcpy(id + 16, &age, 4);
	table = fpo_read(&file, id, CODE_END);
	for (uint32_t rva = CODE; table && rva < CODE_END; rva += 3) {
		const struct fpo_row *row = fpo_find(table, rva);

		if (row && (rva < row->from || rva >= row->end))
			abort();
	}
	free(table);
}

static void try_pdb(const uint8_t *data, size_t size)
{
	struct places places = { 0 };
	struct pe_names names;
	struct pe none = { 0 };
	struct err err;
	struct pdb *pdb = pdb_open(data, size, &err);

	if (!pdb)
		return;
	for (uint32_t rva = CODE; rva < CODE_END; rva += 3) {
		places_clear(&places);
		if (pdb_find(pdb, rva, &places) != (places.count > 0))
			abort();
	}
	try_frames(data, size, pdb);
	pe_names_init(&names, &none);
	pdb_add_publics(pdb, &names);
	use_names(&names);
	pe_names_fini(&names);
	pdb_close(pdb);
	places_fini(&places);
}

static void try_image(const uint8_t *data, size_t size)
{
	struct remarks remarks = { 0 };
	struct places places = { 0 };
	struct pe_dwarf *dwarf;
	struct pe_names names;
	struct err err;
	struct pe pe;

	if (!pe_open(&pe, data, size, &err)) {
		pe_close(&pe);
		return;
	}
	dwarf = pe_dwarf_new(&pe, "fuzz.dll", &remarks);
	for (uint32_t rva = CODE; dwarf && rva < CODE_END; rva += 3) {
		places_clear(&places);
		pe_dwarf_find(dwarf, rva, &places);
	}
	pe_names_init(&names, &pe);
	pe_names_add_coff(&names);
	pe_names_add_exports(&names);
	use_names(&names);
	pe_names_fini(&names);
	pe_dwarf_free(dwarf);
	pe_close(&pe);
	places_fini(&places);
	remarks_fini(&remarks);
}

static void try_name(const uint8_t *data, size_t size)
{
	char *name = mem_copy_bytes(data, size);

	mem_free(undecorate(name));
	mem_free(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	switch (data[0]) {
	case 'p':
		try_pdb(data + 1, size - 1);
		break;
	case 'e':
		try_image(data + 1, size - 1);
		break;
	case 'u':
		try_name(data + 1, size - 1);
		break;
	default:
		return -1;
	}
	return 0;
}
