// Findings about what a process is made of: memory that libraries take before main and that nothing
// uses after, and two C runtimes of Windows in one process.
#include "report/find/findings_own.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"

#include <ctype.h>
#include <string.h>

// Of the innermost frame.
static uint32_t module_of(const struct reader *reader, stack_id stack)
{
	return reader_frame(reader, reader_stack(reader, stack)->frame)->module;
}

// Whether a function of the innermost frame begins with the name: compilers and glibc's versions
// add to it (_dl_init.cold, call_init.part.0).
static bool is_named(const struct findings *findings, stack_id stack, const char *name)
{
	frame_id frame = reader_stack(findings->asked->reader, stack)->frame;
	const struct symbol *symbols;
	struct symbol place;
	size_t count;

	// Of generated code there may be a million frames: nothing is kept of them.
	if (names_nobody_knows(findings->asked->names, frame, &place))
		return false;
	symbols = names_find(findings->asked->names, frame, &count);
	for (size_t i = 0; i < count; i++)
		if (symbols[i].function && strncmp(symbols[i].function, name, strlen(name)) == 0)
			return true;
	return false;
}

// The module whose constructor the dynamic linker calls, where a stack is of one before main; 0: it
// is not. `_dl_init` calls `call_init`, which calls the constructor. A dlopen calls both too, but
// from dl_open_worker, and that is not before main. 0 also stands for a stack that is not named
// well enough to know.
static uint32_t constructor_of(const struct findings *findings, stack_id stack)
{
	const struct reader *reader = findings->asked->reader;
	stack_id inner = 0;

	for (stack_id at = stack; at; inner = at, at = reader_stack(reader, at)->parent) {
		if (!inner || !is_named(findings, at, "call_init"))
			continue;
		for (stack_id outer = at; outer; outer = reader_stack(reader, outer)->parent)
			if (is_named(findings, outer, "dl_open_worker") ||
			    is_named(findings, outer, "_dl_catch_exception"))
				return 0;
		return module_of(reader, inner);
	}
	return 0;
}

// What the constructors of one library hold in one process at the peak.
struct early {
	process_id process;
	uint32_t module;
	stack_id stack; // of the largest
	uint64_t bytes, count, largest;
};

static void tell_early(struct findings *findings, const struct findings_kind *kind,
		       const struct early *early)
{
	const struct trace_module *module = reader_module(findings->asked->reader, early->module);
	struct finding *finding =
		findings_add(findings, kind, FINDINGS_POSSIBLE, early->process, early->stack);

	ASSERT(early->largest <= early->bytes && early->module > 0);
	findings_say(&finding->what,
		     "%s takes %s in %s blocks before main and allocates nothing after.",
		     str_last_part(module->path), STR_BYTES(early->bytes), STR_COUNT(early->count));
	findings_say(&finding->why, "no other stack of this process passes through it: it may be "
				    "linked and not used, or used without allocating");
	findings_say(&finding->advice, "if it is not used, do not link it (-Wl,--as-needed), or "
				       "load it when it is");
	findings_figure(finding, "live_bytes", "at the peak", FINDINGS_BYTES, early->bytes);
	findings_figure(finding, "blocks", "blocks", FINDINGS_COUNT, early->count);
	finding->saves_bytes = early->bytes;
	findings_command(findings, finding, "window", "--by module", false, false);
}

// A module is used if it is on any stack that is not of its constructors. The program itself is no
// library, whatever its constructors take. Both are known after one pass over the sites, by process
// and module, as a library may be used in one process and not in another.
bool findings_early(struct findings *findings, const struct findings_kind *kind, struct err *)
{
	const struct reader *reader = findings->asked->reader;
	size_t sites_count, count = 0, capacity = 0;
	const struct heap_site *sites = heap_sites(findings->facts->heap, &sites_count);
	struct map known = { 0 }, used = { 0 };
	struct early *list = NULL;

	for (size_t i = 0; i < sites_count; i++) {
		const struct heap_site *site = &sites[i];
		const struct trace_process *process = reader_process(reader, site->process);
		uint32_t module = site->stack ? constructor_of(findings, site->stack) : 0;
		struct early *early;
		uint64_t *at;
		bool added;

		// Each module that a stack passes through, of no constructor, is used.
		for (stack_id on = module ? 0 : site->stack; on;
		     on = reader_stack(reader, on)->parent)
			map_put(&used, (uint64_t)site->process << 32 | module_of(reader, on), NULL);
		if (!module || !process ||
		    strcmp(reader_module(reader, module)->path, process->exe) == 0)
			continue;
		at = map_put(&known, (uint64_t)site->process << 32 | module, &added);
		if (added) {
			*at = count;
			*MEM_ADD(list, count, capacity) =
				(struct early){ .process = site->process, .module = module };
		}
		early = &list[*at];
		early->bytes += site->at_peak.bytes;
		early->count += site->at_peak.count;
		if (site->at_peak.bytes >= early->largest) {
			early->largest = site->at_peak.bytes;
			early->stack = site->stack;
		}
	}
	for (size_t i = 0; i < count; i++)
		if (list[i].bytes >= findings_bytes_min(findings) &&
		    !map_find(&used, (uint64_t)list[i].process << 32 | list[i].module))
			tell_early(findings, kind, &list[i]);
	MAP_FINI(&known, &used);
	mem_free(list);
	return true;
}

// ---- C runtimes ----

// "msvcr100.dll", "ucrtbase.dll": a C runtime with a heap of its own. msvcrt.dll is Windows' own,
// and in most processes.
static bool is_runtime(const char *path)
{
	const char *name = str_last_part(path);
	char lower[24] = { 0 };

	for (size_t i = 0; name[i] && i + 1 < sizeof lower; i++)
		lower[i] = (char)tolower((unsigned char)name[i]);
	return (strncmp(lower, "msvcr", 5) == 0 && isdigit((unsigned char)lower[5])) ||
	       strcmp(lower, "ucrtbase.dll") == 0 || strcmp(lower, "ucrtbased.dll") == 0;
}

// Each pair of modules of one process that are both C runtimes: with three of them there are three
// findings.
bool findings_runtimes(struct findings *findings, const struct findings_kind *kind, struct err *)
{
	const struct reader *reader = findings->asked->reader;

	for (module_id i = 1; i < reader_modules_count(reader); i++) {
		const struct trace_module *a = reader_module(reader, i);

		if (!is_runtime(a->path) ||
		    !query_has_process(&findings->asked->selection.query, a->process))
			continue;
		for (module_id j = i + 1; j < reader_modules_count(reader); j++) {
			const struct trace_module *b = reader_module(reader, j);
			struct finding *finding;

			if (b->process != a->process || !is_runtime(b->path) ||
			    strcmp(a->path, b->path) == 0)
				continue;
			finding = findings_add(findings, kind, FINDINGS_CERTAIN, a->process, 0);
			findings_say(&finding->what, "two C runtimes: %s and %s.", a->path,
				     b->path);
			findings_say(&finding->why, "both are on stacks of recorded calls");
			findings_say(
				&finding->advice,
				"build all modules for one of them: a block, a FILE or errno of "
				"one is not the other's");
			findings_command(findings, finding, "window", "--by module", false, false);
		}
	}
	return true;
}
