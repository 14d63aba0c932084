// A DIE says a part of what is known of it, and refers to another one for the rest, which libdw
// follows (dwarf_attr_integrate).
#include "symbols/dies.h"

#include "base/mem.h"
#include "symbols/demangle.h"

#include <dwarf.h>
#include <string.h>

bool dies_step(Dwarf_Die *die, Dwarf_Off *last)
{
	if (dwarf_siblingof(die, die) != 0 || dwarf_dieoffset(die) <= *last)
		return false;
	*last = dwarf_dieoffset(die);
	return true;
}

bool dies_descend(Dwarf_Die *die, Dwarf_Die *child, Dwarf_Off *last)
{
	if (dwarf_haschildren(die) != 1 || dwarf_child(die, child) != 0 ||
	    dwarf_dieoffset(child) <= *last)
		return false;
	*last = dwarf_dieoffset(child);
	return true;
}

const char *dies_text(Dwarf_Die *die, unsigned kind)
{
	Dwarf_Attribute attribute;
	const char *text;

	if (!dwarf_attr_integrate(die, kind, &attribute))
		return NULL;
	text = dwarf_formstring(&attribute);
	return text && *text ? text : NULL;
}

bool dies_flag(Dwarf_Die *die, unsigned kind)
{
	Dwarf_Attribute attribute;
	bool flag = false;

	return dwarf_attr_integrate(die, kind, &attribute) &&
	       dwarf_formflag(&attribute, &flag) == 0 && flag;
}

const char *dies_linkage_name(Dwarf_Die *die)
{
	const char *name = dies_text(die, DW_AT_linkage_name);

	return name ? name : dies_text(die, DW_AT_MIPS_linkage_name);
}

bool dies_linkage_tells(const char *linkage)
{
	static const char *const newer[] = { "Tn", "Ty", "Tt", "Tk" };
	const char *at;
	char *shown;

	ASSERT(linkage);
	if (strncmp(linkage, "_Z", 2) != 0)
		return true;
	for (at = strstr(linkage, "$_"); at; at = strstr(at + 2, "$_"))
		if (at[2] >= '0' && at[2] <= '9')
			return false;
	// Only names with these parts are asked for: a name is demangled once more for the answer.
	for (size_t i = 0; i < sizeof newer / sizeof *newer; i++)
		if (strstr(linkage, newer[i])) {
			shown = demangle(linkage);
			mem_free(shown);
			return shown != NULL;
		}
	return true;
}

bool dies_is_cpp(int language)
{
	switch (language) {
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
	case 0x2b: // C++17
	case 0x2d: // C++20
	case DW_LANG_ObjC_plus_plus:
		return true;
	default:
		return false;
	}
}
