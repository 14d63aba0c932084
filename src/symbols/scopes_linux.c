// A DIE does not know what it is in, so a unit's scopes are listed once. For example
//
//     0x20  namespace app
//     0x30    class store
//     0x40      subprogram open
//     0x50    subprogram run
//     0x60      lexical block
//     0x70        class, without a name
//     0x80          subprogram operator()
//
// is the list 0x20, 0x30 in 0x20, 0x40 in 0x30, 0x50 in 0x20, 0x70 in 0x50, 0x80 in 0x70.
#include "symbols/scopes.h"

#include "base/mem.h"
#include "base/rising.h"
#include "symbols/dies.h"

#include <dwarf.h>
#include <string.h>

enum { SCOPES_MAX = 1 << 26 }; // of one unit

bool scopes_is_class(int tag)
{
	return tag == DW_TAG_class_type || tag == DW_TAG_structure_type || tag == DW_TAG_union_type;
}

bool scopes_is_scope(int tag)
{
	return scopes_is_class(tag) || tag == DW_TAG_namespace || tag == DW_TAG_subprogram ||
	       tag == DW_TAG_enumeration_type;
}

// Inlined calls have no types of their own: those are in the function that was inlined.
static bool may_hold_scopes(int tag)
{
	return scopes_is_class(tag) || tag == DW_TAG_namespace || tag == DW_TAG_subprogram ||
	       tag == DW_TAG_lexical_block || tag == DW_TAG_module;
}

// A level of the walk: the DIE, and which scope it is in.
struct level {
	Dwarf_Die die;
	uint32_t scope;
};

// The walk is that of debuginfo, of fewer DIEs: `levels` is the path from the root to here. A block
// of a function is no scope, and what is in it is in the function.
static void list_scopes(struct scopes *scopes, Dwarf_Die *unit)
{
	struct level levels[DIES_DEPTH_MAX];
	Dwarf_Off last = dwarf_dieoffset(unit);
	size_t depth = 0;

	if (!dies_descend(unit, &levels[0].die, &last))
		return;
	levels[0].scope = SCOPES_NONE;
	for (;;) {
		struct level *level = &levels[depth];
		int tag = dwarf_tag(&level->die);
		uint32_t scope = level->scope;

		if (tag == DW_TAG_base_type || tag == DW_TAG_namespace ||
		    tag == DW_TAG_imported_unit)
			scopes->typed = true;
		ASSERT(scope == SCOPES_NONE || scope < scopes->count);
		if (scopes_is_scope(tag) && scopes->count < SCOPES_MAX) {
			scope = (uint32_t)scopes->count;
			*MEM_ADD(scopes->items, scopes->count, scopes->capacity) =
				(struct scope){ (uintptr_t)level->die.addr, level->scope };
		}
		if (may_hold_scopes(tag) && depth + 1 < DIES_DEPTH_MAX &&
		    dies_descend(&level->die, &levels[depth + 1].die, &last)) {
			levels[++depth].scope = scope;
			continue;
		}
		while (!dies_step(&levels[depth].die, &last)) {
			if (depth == 0)
				return;
			depth--;
		}
	}
}

const struct scopes *scopes_of(struct map *units, Dwarf_Die *die)
{
	struct scopes *scopes;
	Dwarf_Die unit;
	uint64_t *slot;
	bool added;

	slot = map_put(units, (uintptr_t)die->cu, &added);
	if (added) {
		scopes = mem_alloc(1, sizeof *scopes);
		*slot = (uintptr_t)scopes;
		scopes->language = -1;
		if (dwarf_diecu(die, &unit, NULL, NULL)) {
			scopes->language = dwarf_srclang(&unit);
			list_scopes(scopes, &unit);
		}
	}
	return (struct scopes *)(uintptr_t)*slot;
}

uint32_t scopes_find(const struct scopes *scopes, const Dwarf_Die *die)
{
	uint64_t address = (uintptr_t)die->addr;
	size_t at = RISING_BELOW(scopes->items, scopes->count, address, address);

	return at < scopes->count && scopes->items[at].address == address ? (uint32_t)at
									  : SCOPES_NONE;
}

Dwarf_Die scopes_die(const struct scopes *scopes, uint32_t at, const Dwarf_Die *of_unit)
{
	Dwarf_Die die;

	ASSERT(at < scopes->count);
	// The rest of a DIE is looked up by libdw when it is asked for.
	memset(&die, 0, sizeof die);
	die.addr = (void *)(uintptr_t)scopes->items[at].address;
	die.cu = of_unit->cu;
	return die;
}

void scopes_fini(struct map *units)
{
	uint64_t key, value;
	size_t at = 0;

	while (map_next(units, &at, &key, &value)) {
		struct scopes *scopes = (struct scopes *)(uintptr_t)value;

		MEM_FREE(scopes->items, scopes);
	}
	MAP_FINI(units);
}
