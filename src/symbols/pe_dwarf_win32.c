#include "symbols/pe_dwarf.h"

// Reading DWARF is libdw's, which Windows does not have: names are those of the image's own tables,
// and a remark says what is not read.
struct pe_dwarf *pe_dwarf_new(const struct pe *pe, const char *path, struct remarks *remarks)
{
	if (pe_section_named(pe, ".debug_info") || pe_section_named(pe, ".zdebug_info"))
		remarks_add(remarks,
			    "%s: lines and inlined functions of DWARF are not read on Windows "
			    "(tidemark bundle, on Linux, packs them into the trace)",
			    path);
	return NULL;
}

void pe_dwarf_free(struct pe_dwarf *)
{
}

bool pe_dwarf_find(struct pe_dwarf *dwarf, uint32_t rva, struct places *places)
{
	(void)dwarf, (void)rva, (void)places;
	return false;
}
