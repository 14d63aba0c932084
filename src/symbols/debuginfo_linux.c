// An address is looked up twice: among units, by their ranges; then, once the unit's tree has been
// walked, among its functions. A node is a function with code or one that was inlined, with the
// node that it is inlined into; ranges are by depth, and the deepest that has the address is where
// it is. For example
//
//     f   [0x10, 0x50)   depth 0
//     g   [0x20, 0x30)   depth 1, inlined into f at line 7
//
// 0x24 is in g, by the line table at g's own line; and then in f, at line 7. The units' trees are
// walked when first asked for, and everything that a file can make long is bounded: pieces of one
// function, ranges of a unit, entries that are read in vain.
#include "symbols/debuginfo.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "symbols/dies.h"
#include "symbols/dies_names.h"
#include "symbols/linetable.h"
#include "symbols/nest.h"

#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <string.h>
#include <unistd.h>

enum {
	PIECES_MAX = 100000,  // ranges of one function
	RANGES_MAX = 1 << 22, // of all functions of a unit: far more than code has
	STEPS_MAX = 1 << 24,  // entries of range lists that we look at for one unit
};

// A node's number that stands for none. The bounds above are for hostile files: what is beyond one
// has no names, and all else of the file keeps its own.
#define NO_NODE UINT32_MAX

// A function with code, or one inlined into another.
struct node {
	Dwarf_Die die;
	uint32_t caller; // node it is inlined into; NO_NODE for a function that stands alone
};

struct unit {
	Dwarf_Die die;         // of the unit; of its split part where that could be found
	Dwarf_Die line_die;    // the unit that has the line table
	const char *directory; // it was compiled in; NULL: not known
	uint8_t version;       // of its DWARF
	bool has_ranges;
	bool mangles; // its language writes types into names
	bool cpp;     // it is C++
	bool indexed;
	struct linetable lines;
	struct node *nodes;
	size_t nodes_count, nodes_capacity;
	struct nest nest;
	bool copies_listed;
	struct map copies; // DIE of a function that is also inlined -> where it has code of its own
};

struct debuginfo {
	Dwarf *dwarf;                  // borrowed
	struct linetable_source lines; // of all units
	uint64_t code_start, code_end;
	struct unit *units;
	size_t units_count, units_capacity;
	struct nest nest;  // unit by address
	char *split;       // file of the first split part that was not found; NULL: none lacks
	size_t split_more; // further units whose split part was not found
	struct map paths;  // libdw's name of a file -> our path for it, owned
	struct dies_names names;
};

// Ranges under construction.
struct range_list {
	struct nest_range *items;
	size_t count, capacity;
	size_t steps; // entries that were read, also those that were no use
};

static void add_range(struct range_list *ranges, uint64_t start, uint64_t end, uint32_t depth,
		      uint32_t value)
{
	*MEM_ADD(ranges->items, ranges->count, ranges->capacity) =
		(struct nest_range){ start, end, depth, value };
}

// Add the addresses of `die`, if it has any.
static bool add_ranges(const struct debuginfo *debuginfo, struct range_list *ranges, Dwarf_Die *die,
		       uint32_t depth, uint32_t value)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;
	bool added = false;

	for (int i = 0; i < PIECES_MAX && ranges->count < RANGES_MAX; i++) {
		if (ranges->steps++ == STEPS_MAX) {
			ranges->steps--;
			break;
		}
		at = dwarf_ranges(die, at, &base, &start, &end);
		if (at <= 0)
			break;
		// The linker sets the addresses of a function that it dropped to 0 or nearby: not
		// code.
		if (start >= end || start < debuginfo->code_start || start >= debuginfo->code_end)
			continue;
		add_range(ranges, start, end, depth, value);
		added = true;
	}
	return added;
}

static bool has_addresses(Dwarf_Die *die)
{
	return dwarf_hasattr(die, DW_AT_low_pc) || dwarf_hasattr(die, DW_AT_ranges);
}

// Does the language write types into the names of its functions? Such a function without a
// linkage name has one in the symbol table at most.
static bool mangles(Dwarf_Die *die)
{
	int language = dwarf_srclang(die);

	return dies_is_cpp(language) || language == DW_LANG_D || language == DW_LANG_Rust;
}

// The split part of a unit with code was not found. The names and lines of functions are in the
// file itself; what was inlined into them is not.
static void lack_split(struct debuginfo *debuginfo, Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	struct str path = { 0 };
	const char *name, *directory;

	ASSERT(debuginfo->split || debuginfo->split_more == 0);
	if (debuginfo->split) {
		debuginfo->split_more++;
		return;
	}
	if (!dwarf_attr(die, DW_AT_dwo_name, &attribute) &&
	    !dwarf_attr(die, DW_AT_GNU_dwo_name, &attribute))
		return;
	name = dwarf_formstring(&attribute);
	directory = dwarf_formstring(dwarf_attr(die, DW_AT_comp_dir, &attribute));
	if (name && *name != '/' && directory)
		str_format(&path, "%s/", directory);
	str_add(&path, name ? name : "");
	debuginfo->split = str_take(&path);
}

// Said once for all units: a build has thousands of such files, which go together.
static void say_split(const struct debuginfo *debuginfo, const char *path, struct remarks *remarks)
{
	struct str text = { 0 };

	if (!debuginfo->split)
		return;
	str_format(&text, "%s.dwp", path);
	if (access(str_get(&text), F_OK) == 0) {
		str_format(&text, " cannot be used (libdw %s; 0.191 and later read such files)",
			   dwfl_version(NULL));
	} else {
		str_clear(&text);
		str_add(&text, debuginfo->split);
		if (debuginfo->split_more > 0)
			str_format(&text, " and %zu more", debuginfo->split_more);
		str_add(&text, access(debuginfo->split, F_OK) == 0
				       ? " cannot be used (of another build, or in a form that is "
					 "not read)"
				       : " cannot be found");
	}
	remarks_add(remarks,
		    "%s: split debug information %s: functions that were inlined are not "
		    "named",
		    path, str_get(&text));
	str_fini(&text);
}

// A compilation unit with code. Units of types and partial units have none: what is in them is
// referred to by others. With split DWARF (-gsplit-dwarf) the file has a skeleton, with the ranges
// and the line table, and the tree of functions is in a .dwo file (`split`), if that could be
// found.
static void add_unit(struct debuginfo *debuginfo, struct range_list *ranges, struct map *by_offset,
		     Dwarf_Die *die, Dwarf_Die *split, uint8_t type)
{
	Dwarf_Attribute attribute;
	struct unit *unit;
	Dwarf_Half version;

	if (type == DW_UT_type || type == DW_UT_split_type || type == DW_UT_partial ||
	    dwarf_tag(die) == DW_TAG_partial_unit || dwarf_tag(die) == DW_TAG_type_unit)
		return;
	MEM_ROOM(debuginfo->units, debuginfo->units_capacity, debuginfo->units_count + 1);
	unit = &debuginfo->units[debuginfo->units_count];
	memset(unit, 0, sizeof *unit);
	unit->line_die = *die;
	unit->die = type == DW_UT_skeleton && split->addr ? *split : *die;
	unit->directory = dwarf_formstring(dwarf_attr(die, DW_AT_comp_dir, &attribute));
	if (dwarf_cu_info(die->cu, &version, NULL, NULL, NULL, NULL, NULL, NULL) == 0)
		unit->version = (uint8_t)version;
	unit->mangles = mangles(&unit->die);
	unit->cpp = dies_is_cpp(dwarf_srclang(&unit->die));
	unit->has_ranges = has_addresses(die);
	// Without code it is a module of clang's, which is not a part of the program.
	if (type == DW_UT_skeleton && !split->addr && unit->has_ranges)
		lack_split(debuginfo, die);
	if (unit->has_ranges)
		add_ranges(debuginfo, ranges, die, 1, (uint32_t)debuginfo->units_count);
	// .debug_aranges refers to units by the offset of their DIE.
	*map_put(by_offset, dwarf_dieoffset(die), NULL) = debuginfo->units_count;
	debuginfo->units_count++;
}

// What .debug_aranges says, where the units do not: before DWARF 3 a unit could name one range.
static void add_aranges(struct debuginfo *debuginfo, struct range_list *ranges,
			const struct map *by_offset)
{
	Dwarf_Aranges *aranges;
	size_t count;

	if (dwarf_getaranges(debuginfo->dwarf, &aranges, &count) != 0)
		return;
	for (size_t i = 0; i < count; i++) {
		Dwarf_Arange *arange = dwarf_onearange(aranges, i);
		Dwarf_Addr start;
		Dwarf_Word length;
		Dwarf_Off offset;
		uint64_t *unit;

		if (!arange || dwarf_getarangeinfo(arange, &start, &length, &offset) != 0)
			continue;
		unit = map_find(by_offset, offset);
		if (!unit || start < debuginfo->code_start || start >= debuginfo->code_end)
			continue;
		debuginfo->units[*unit].has_ranges = true;
		add_range(ranges, start, start + length, 0, (uint32_t)*unit);
	}
}

// We read .debug_line ourselves and not by libdw: it would keep all columns and flags of each row,
// and we need address, file and line. Little-endian only, which the processors that we record are.
static void find_lines(struct debuginfo *debuginfo, const struct object *object)
{
	Elf_Scn *section = object_find_section(object, ".debug_line");
	const char *ident = elf_getident(object->elf, NULL);
	Elf_Data *data;

	if (!section)
		section = object_find_section(object, ".zdebug_line");
	// libdw has unpacked it by now if it was compressed.
	data = section ? elf_getdata(section, NULL) : NULL;
	if (!data || !data->d_buf || !ident || ident[EI_DATA] != ELFDATA2LSB)
		return;
	debuginfo->lines = (struct linetable_source){
		.bytes = data->d_buf,
		.size_bytes = data->d_size,
		.address_bytes = ident[EI_CLASS] == ELFCLASS32 ? 4 : 8,
		.code_start = debuginfo->code_start,
		.code_end = debuginfo->code_end,
	};
}

struct debuginfo *debuginfo_new(const struct object *object, uint64_t code_start, uint64_t code_end,
				struct remarks *remarks)
{
	struct debuginfo *debuginfo = mem_alloc(1, sizeof *debuginfo);
	struct range_list ranges = { 0 };
	struct map by_offset = { 0 }; // of the unit's DIE -> unit
	Dwarf_CU *cu = NULL;
	Dwarf_Die die, split;
	uint8_t type;

	ASSERT(object->dwarf);
	debuginfo->dwarf = object->dwarf;
	debuginfo->code_start = code_start;
	debuginfo->code_end = code_end;
	find_lines(debuginfo, object);
	// Each unit takes bytes of the file, so their number is bounded by its size.
	memset(&split, 0, sizeof split);
	while (dwarf_get_units(debuginfo->dwarf, cu, &cu, NULL, &type, &die, &split) == 0) {
		if (debuginfo->units_count == UINT32_MAX)
			break;
		add_unit(debuginfo, &ranges, &by_offset, &die, &split, type);
		memset(&split, 0, sizeof split);
	}
	say_split(debuginfo, object->path, remarks);
	add_aranges(debuginfo, &ranges, &by_offset);
	map_fini(&by_offset);
	nest_build(&debuginfo->nest, ranges.items, ranges.count);
	mem_free(ranges.items);
	return debuginfo;
}

void debuginfo_free(struct debuginfo *debuginfo)
{
	uint64_t name, path;
	size_t at = 0;

	if (!debuginfo)
		return;
	while (map_next(&debuginfo->paths, &at, &name, &path))
		mem_free((char *)path);
	map_fini(&debuginfo->paths);
	dies_names_fini(&debuginfo->names);
	for (size_t i = 0; i < debuginfo->units_count; i++) {
		linetable_fini(&debuginfo->units[i].lines);
		map_fini(&debuginfo->units[i].copies);
		nest_fini(&debuginfo->units[i].nest);
		mem_free(debuginfo->units[i].nodes);
	}
	nest_fini(&debuginfo->nest);
	MEM_FREE(debuginfo->split, debuginfo->units, debuginfo);
}

// Can functions stand below such a DIE?
static bool may_hold_functions(Dwarf_Die *die)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_array_type:
	case DW_TAG_call_site:
	case DW_TAG_enumeration_type:
	case DW_TAG_GNU_call_site:
	case DW_TAG_GNU_formal_parameter_pack:
	case DW_TAG_subroutine_type:
		return false;
	default:
		return true;
	}
}

// A level of the walk: where it stands, and which function its DIEs are in.
struct level {
	Dwarf_Die die;
	uint32_t node;
};

// Make a node of `die` if it is a function or an inlined call with code. Returns the node that
// its children are in.
// A function that was not inlined starts over (NO_NODE for its caller), even within another one's
// tree: a nested function of GNU C, or a method in a local class, runs by itself. A function
// without addresses (a declaration, or what was inlined everywhere) makes no node, and what is
// below it belongs to no node; an inlined call without addresses is only a level of the tree.
static uint32_t visit(const struct debuginfo *debuginfo, struct unit *unit,
		      struct range_list *ranges, Dwarf_Die *die, uint32_t inside, uint32_t depth)
{
	int tag = dwarf_tag(die);
	uint32_t at = (uint32_t)unit->nodes_count;

	ASSERT(inside == NO_NODE || inside < unit->nodes_count);
	if (tag != DW_TAG_subprogram && tag != DW_TAG_inlined_subroutine)
		return inside;
	if (at == NO_NODE || !has_addresses(die) || !add_ranges(debuginfo, ranges, die, depth, at))
		return tag == DW_TAG_subprogram ? NO_NODE : inside;
	*MEM_ADD(unit->nodes, unit->nodes_count, unit->nodes_capacity) = (struct node){
		.die = *die,
		.caller = tag == DW_TAG_inlined_subroutine ? inside : NO_NODE,
	};
	return at;
}

// Walk all of the unit's tree once, without recursion: `levels` is the path from the root to here.
// At each DIE: make a node if it is code, go down if there may be more below, else on to the next
// sibling, else up until there is one.
static void index_unit(const struct debuginfo *debuginfo, struct unit *unit)
{
	struct level levels[DIES_DEPTH_MAX];
	struct range_list ranges = { 0 };
	Dwarf_Attribute attribute;
	Dwarf_Word lines;
	Dwarf_Off last;
	uint32_t depth = 0;

	unit->indexed = true;
	if (dwarf_attr(&unit->line_die, DW_AT_stmt_list, &attribute) &&
	    dwarf_formudata(&attribute, &lines) == 0)
		linetable_read(&unit->lines, &debuginfo->lines, lines);
	if (dwarf_child(&unit->die, &levels[0].die) != 0)
		return;
	levels[0].node = NO_NODE;
	last = dwarf_dieoffset(&levels[0].die);
	for (;;) {
		struct level *level = &levels[depth];
		uint32_t node = visit(debuginfo, unit, &ranges, &level->die, level->node, depth);

		if (depth + 1 < DIES_DEPTH_MAX && may_hold_functions(&level->die) &&
		    dies_descend(&level->die, &levels[depth + 1].die, &last)) {
			levels[++depth].node = node;
			continue;
		}
		while (!dies_step(&levels[depth].die, &last)) {
			if (depth == 0)
				goto out;
			depth--;
		}
	}
out:
	nest_build(&unit->nest, ranges.items, ranges.count);
	mem_free(ranges.items);
}

// The DIE that stands for a function in all places, those where it is inlined and its own code.
static bool find_origin(Dwarf_Die *die, Dwarf_Die *origin)
{
	Dwarf_Attribute attribute;

	return dwarf_attr(die, DW_AT_abstract_origin, &attribute) &&
	       dwarf_formref_die(&attribute, origin);
}

// Where the function that is inlined as `die` has code of its own, or 0. All of the unit's are
// listed when the first is asked for.
static uint64_t find_copy(struct unit *unit, Dwarf_Die *die)
{
	Dwarf_Die origin;
	Dwarf_Addr start;
	uint64_t *copy;

	ASSERT(unit->indexed);
	// Few functions are inlined without a scope, and all units of other files have none.
	for (size_t i = 0; !unit->copies_listed && i < unit->nodes_count; i++) {
		struct node *node = &unit->nodes[i];

		if (dwarf_tag(&node->die) == DW_TAG_subprogram &&
		    find_origin(&node->die, &origin) && dwarf_entrypc(&node->die, &start) == 0)
			*map_put(&unit->copies, (uintptr_t)origin.addr, NULL) = start;
	}
	unit->copies_listed = true;
	copy = find_origin(die, &origin) ? map_find(&unit->copies, (uintptr_t)origin.addr) : NULL;
	return copy ? *copy : 0;
}

// The linkage name where there is one that tells. Else C's name is the plain one, and of C++ the
// whole name is put together. With -g1 there may be nothing to put it together from.
static void read_name(struct debuginfo *debuginfo, struct unit *unit, Dwarf_Die *die,
		      struct place *place)
{
	const char *whole, *linkage = dies_linkage_name(die);

	place->function = linkage;
	if (linkage) {
		if (unit->cpp && !dies_linkage_tells(linkage)) {
			whole = dies_names_find(&debuginfo->names, die, unit->cpp);
			place->function = whole ? whole : linkage;
		}
		return;
	}
	place->function = dies_text(die, DW_AT_name);
	place->plain = unit->mangles;
	whole = place->function ? dies_names_find(&debuginfo->names, die, unit->cpp) : NULL;
	if (whole) {
		place->function = whole;
	} else if (place->function && unit->mangles &&
		   !(unit->cpp && dies_flag(die, DW_AT_external))) {
		place->bare = true;
		place->copy = find_copy(unit, die);
	}
}

static uint64_t read_number(Dwarf_Die *die, unsigned kind)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;

	if (!dwarf_attr(die, kind, &attribute) || dwarf_formudata(&attribute, &value) != 0)
		return 0;
	return value;
}

// The path of a source file. libdw leaves names as they are relative to the directory of
// compilation; that one may be relative too (reproducible builds). Before DWARF 5 the names of
// files in that very directory have it already.
static const char *complete_path(struct debuginfo *debuginfo, const struct unit *unit,
				 const char *name)
{
	struct str path = { 0 };
	size_t length;
	uint64_t *slot;

	if (!name || *name == '/' || str_is_windows_path(name) || !unit->directory ||
	    !*unit->directory)
		return name;
	length = strlen(unit->directory);
	if (unit->version < 5 && strncmp(name, unit->directory, length) == 0 && name[length] == '/')
		return name;
	slot = map_put(&debuginfo->paths, (uintptr_t)name, NULL);
	if (*slot == 0) {
		str_add(&path, unit->directory);
		if (unit->directory[length - 1] != '/')
			str_add_char(&path, '/');
		str_add(&path, name);
		*slot = (uintptr_t)str_take(&path);
	}
	return (const char *)(uintptr_t)*slot;
}

// The path of file `number` in the unit's list, or NULL.
static const char *find_path(struct debuginfo *debuginfo, struct unit *unit, uint64_t number)
{
	Dwarf_Files *files;
	size_t count;

	if (dwarf_getsrcfiles(&unit->line_die, &files, &count) != 0 || number >= count)
		return NULL;
	return complete_path(debuginfo, unit, dwarf_filesrc(files, number, NULL, NULL));
}

// Where the inlined call `die` was written.
static void read_call(struct debuginfo *debuginfo, struct unit *unit, Dwarf_Die *die,
		      struct place *place)
{
	place->line = (uint32_t)read_number(die, DW_AT_call_line);
	if (dwarf_hasattr(die, DW_AT_call_file))
		place->file = find_path(debuginfo, unit, read_number(die, DW_AT_call_file));
}

static bool read_line(struct debuginfo *debuginfo, struct unit *unit, uint64_t offset,
		      struct place *place)
{
	uint32_t file;

	if (!linetable_find(&unit->lines, offset, &file, &place->line))
		return false;
	place->file = find_path(debuginfo, unit, file);
	return place->file != NULL;
}

// The line table knows the line of the innermost place. Each place further out has the line of the
// call that was inlined, which the entry of the function inside it has. Code that is in no function
// (assembly) has a line alone.
static bool find_in_unit(struct debuginfo *debuginfo, struct unit *unit, uint64_t offset,
			 struct places *places)
{
	struct place inner = { 0 };
	struct place *place;
	uint32_t at;
	bool in_function, has_line;

	if (!unit->indexed)
		index_unit(debuginfo, unit);
	in_function = nest_find(&unit->nest, offset, &at);
	has_line = (in_function || unit->has_ranges) && read_line(debuginfo, unit, offset, &inner);
	if (!in_function && !has_line)
		return false;
	place = places_add(places);
	if (!place)
		return false;
	*place = inner;
	while (in_function) {
		struct node *node = &unit->nodes[at];

		ASSERT(at < unit->nodes_count);
		read_name(debuginfo, unit, &node->die, place);
		if (dwarf_tag(&node->die) != DW_TAG_inlined_subroutine)
			break;
		place = places_add(places);
		if (!place)
			break;
		read_call(debuginfo, unit, &node->die, place);
		at = node->caller;
		in_function = at != NO_NODE;
	}
	return true;
}

bool debuginfo_find(struct debuginfo *debuginfo, uint64_t offset, struct places *places)
{
	uint32_t at;

	if (nest_find(&debuginfo->nest, offset, &at))
		return find_in_unit(debuginfo, &debuginfo->units[at], offset, places);
	// Old compilers do not say which addresses a unit has; its functions do.
	for (size_t i = 0; i < debuginfo->units_count; i++)
		if (!debuginfo->units[i].has_ranges &&
		    find_in_unit(debuginfo, &debuginfo->units[i], offset, places))
			return true;
	return false;
}
