// The table of the kinds, and what all of them share: the limits below which a finding is too
// little, and the list that they add to.
//
// For example, a program with a peak of 100 MiB and 2,000,000 allocations: a finding about bytes
// matters from 2 MiB on (a fiftieth of the peak), one about calls from 40,000 on. With a peak of
// 1 MiB a fiftieth is 21 KiB, not worth a change: there 256 KiB is the limit, and 10,000 calls.
#include "report/find/findings_own.h"

#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "engine/shelf.h"
#include "report/ask/cautions.h"
#include "report/ask/cxxname.h"
#include "trace/defs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	BYTES_LEAST = 256 << 10, // of a finding that is about bytes
	CALLS_LEAST = 10000,     // of one that is about calls
	MATTERS_PART = 50,       // of the peak, or of all calls
	NAME_COLUMNS = 60,       // of a function in a sentence
};

const char *const findings_sure_words[] = { "possible", "likely", "certain" };
_Static_assert(sizeof findings_sure_words / sizeof *findings_sure_words == FINDINGS_CERTAIN + 1,
	       "a word each");
const char *const findings_class_words[] = { "note", "saving", "problem", "error" };
_Static_assert(sizeof findings_class_words / sizeof *findings_class_words == FINDINGS_ERROR + 1,
	       "a word each");

// ---- the table ----

enum { CALLS = FINDINGS_EVERY_CALL | FINDINGS_FREES };

const struct findings_kind findings_kinds[] = {
	{ "freed-twice", "a block is freed twice", FINDINGS_ERROR, CALLS | FINDINGS_ALL_SEEN,
	  "A free (or realloc) of an address where a block has been freed before, and nothing "
	  "was allocated since. It is likely, not certain: an allocation that the recorder does "
	  "not see (of an allocator that is not exported) could have given the address out again. "
	  "With --free-stacks it says which free came first. The last free must go, or the "
	  "pointer must be cleared by the first; an address sanitizer build shows both at once.",
	  findings_freed_twice },
	{ "freed-wrong", "what is freed begins no block of that heap", FINDINGS_ERROR,
	  CALLS | FINDINGS_ALL_SEEN,
	  "A free of an address inside of a block that lives and begins elsewhere, or of a block "
	  "of another heap; on Windows also what a heap refuses to free. Frees of what "
	  "no recorded call has returned are counted by tidemark report (orphans): they may be of "
	  "an allocator that is not recorded, or from before the recording.",
	  findings_freed_wrong },
	{ "new-free", "allocated by one family, freed by another", FINDINGS_ERROR,
	  CALLS | FINDINGS_FREE_STACKS,
	  "A block of operator new that free ends, or a block of malloc that operator delete "
	  "ends; of new[] by delete, of new by delete[]; of new with an alignment by delete "
	  "without one, and the other way. It works with glibc, and breaks with other allocators "
	  "and with sized delete. Reported only of modules whose calls of new and of delete were "
	  "both seen, and not of a process in which a file has operators of its own in place of "
	  "the C++ library's: these may do as they like.",
	  findings_mismatch },
	{ "unreachable", "blocks that nothing points to", FINDINGS_PROBLEM,
	  FINDINGS_EVERY_CALL | FINDINGS_REACH,
	  "Blocks that were live when their process ended, and to which no pointer led any more: "
	  "not from registers, stacks, globals or thread-local variables, nor from blocks that "
	  "these lead to (record --reachability). Such a block cannot be freed: it is a leak. What "
	  "only a leaked block holds is counted with it. When the last pointer went is not known: "
	  "destructors that run at the end may have held it until then. A pointer that is kept in "
	  "another form (xored, compressed, in a file) looks like none. Sites of fewer than 16 KiB "
	  "are left to tidemark report.",
	  findings_unreachable },
	{ "failed", "allocations fail", FINDINGS_PROBLEM, FINDINGS_EVERY_CALL | FINDINGS_FAILED,
	  "Calls of malloc and related functions that returned no memory, and the program's own "
	  "calls of the system (mmap, mremap, brk, shmat, VirtualAlloc) that had none. The sizes "
	  "say why: "
	  "beyond what any machine has it is a size that was computed wrong (a negative number); "
	  "else the limits of the process are given, where the recording has them, or the largest "
	  "hole where that was too small (holes).",
	  findings_failures },
	{ "killed", "killed while it held memory", FINDINGS_PROBLEM,
	  FINDINGS_EVERY_CALL | FINDINGS_EXITS,
	  "A process that SIGKILL ended while it held 64 MiB or more: who held most, and who "
	  "asked last. Whether it was for lack of memory is the kernel's count in the process's "
	  "control group (likely: it went up while the process ran; of several processes killed "
	  "there it may have been another). A kill for lack of memory of the whole machine is in "
	  "the kernel's log alone (possible).",
	  findings_killed },
	{ "growth", "memory grows without end", FINDINGS_PROBLEM, FINDINGS_SITES | FINDINGS_LEVELS,
	  "A site whose live bytes grow and do not come back, to the end (tidemark growth says "
	  "how that is decided: the floor of sixty parts of time, its slope, its fit). Programs "
	  "that build something up and end look the same, so processes of less than ten seconds "
	  "are not judged unless --from or --to say when to look. likely: steady (R² of 0.9 or "
	  "more) in a process that still ran when the recording ended, or had run for a minute; "
	  "else possible.",
	  findings_growth },
	{ "growth-lately", "memory grows since a while", FINDINGS_PROBLEM,
	  FINDINGS_SITES | FINDINGS_LEVELS,
	  "As growth, but less than a ninth of it is in the first two thirds of the time. Record "
	  "longer to distinguish a leak from the last tooth of a saw.",
	  findings_growth_lately },
	{ "peak", "a short spike makes the peak", FINDINGS_SAVING, FINDINGS_FREES,
	  "The highest level of all is a spike that takes less than a quarter of the time, at "
	  "half its height, and rises by a quarter of the peak or more. The site is named that "
	  "holds most of it; where that is less than half, also how many share in it. What it "
	  "would save is the distance to the next highest level, but not more than these blocks. "
	  "Spikes of the same functions are one that comes again, whatever their callers.",
	  findings_peak },
	{ "constant-growth", "a buffer grows by constant amounts", FINDINGS_SAVING, CALLS,
	  "Reallocations that enlarge a buffer by the same amount as the one before, three in four "
	  "or more, sixteen or more for one buffer. Each may copy all that is there, so the cost "
	  "grows with the square of the size; growing by half or double does not. realloc of large "
	  "blocks in glibc moves pages and copies nothing: the bytes are a bound.",
	  findings_constant_growth },
	{ "containers", "containers grow step by step", FINDINGS_SAVING, CALLS,
	  "Buffers that were enlarged by realloc, or by an allocation that the free of the old one "
	  "follows (std::vector, std::string), three times each in the mean. reserve() or a first "
	  "size that fits saves the steps.",
	  findings_containers },
	{ "temporaries", "allocated and freed within one call", FINDINGS_SAVING, CALLS,
	  "Blocks that the thread which allocated them freed before its next allocation, "
	  "nineteen of twenty from a site. With --free-stacks it says which call frees them. "
	  "A buffer on the stack, one that is kept and reused, or a small-buffer type saves both "
	  "calls.",
	  findings_temporaries },
	{ "reuse", "equal buffers, one at a time", FINDINGS_SAVING, FINDINGS_FREES,
	  "Ten or more buffers of one size from one site of which never two lived at a time, of "
	  "128 KiB or more (tidemark transients lists them). One that is allocated once and kept "
	  "would do.",
	  findings_reuse },
	{ "overhead", "small blocks cost more than they hold", FINDINGS_SAVING,
	  FINDINGS_LINUX | FINDINGS_EVERY_CALL | FINDINGS_ADDRESSES | FINDINGS_MOMENT,
	  "At the peak, glibc's headers and rounding of a site's blocks are as many bytes as the "
	  "blocks hold, or more. Computed from the addresses of the blocks, and only where these "
	  "are glibc's. An array, or a pool that cuts large blocks, saves most of it.",
	  findings_overhead },
	{ "untouched", "large blocks mostly never touched", FINDINGS_NOTE,
	  FINDINGS_SNAPSHOTS | FINDINGS_MOMENT,
	  "Blocks of 256 KiB or more of which, in the snapshot with most resident memory, less "
	  "than a quarter was resident though they were older than a second. They cost address "
	  "space and commit, not memory; a smaller size would do, unless swapping took the pages.",
	  findings_untouched },
	{ "pinned", "few small blocks keep pages", FINDINGS_SAVING,
	  FINDINGS_EVERY_CALL | FINDINGS_ADDRESSES | FINDINGS_NO_FILTER | FINDINGS_MOMENT,
	  "Pages of the heap on which only a few small blocks are (tidemark pins), at the end of "
	  "a process; where it freed most of what it had in the last twentieth of its time, "
	  "before that. A twentieth of all its pages; of a process of less than ten seconds two "
	  "thirds. Long-lived small blocks that are allocated among short-lived ones do that: "
	  "allocate them early, together, or from a pool of their own.",
	  findings_pinned },
	{ "free-pages", "free pages that could go back", FINDINGS_NOTE,
	  FINDINGS_EVERY_CALL | FINDINGS_PAGES | FINDINGS_NO_FILTER | FINDINGS_MOMENT,
	  "At the end of a process that ran for ten seconds or more, resident pages of glibc's "
	  "heap without a block. A process that freed most of what it had as it ended is not "
	  "judged. malloc_trim(0) gives them back; MALLOC_TRIM_THRESHOLD_ and "
	  "MALLOC_ARENA_MAX keep them fewer. On Windows, committed pages of its heaps, "
	  "resident or not; what has a heap of its own goes back with it (HeapDestroy).",
	  findings_free_pages },
	{ "processes", "equal memory in several processes", FINDINGS_SAVING,
	  FINDINGS_EVERY_CALL | FINDINGS_SITES,
	  "At the peak, four or more processes forked from one another each hold about as much "
	  "from the same stack. Whether the contents are equal is not recorded: if they are, "
	  "load before the fork and the pages are shared.",
	  findings_processes },
	{ "libraries", "two copies of one library", FINDINGS_NOTE, FINDINGS_FILES,
	  "Two files of one library (the same name but for the version) in one process, both on "
	  "stacks of allocations. Blocks of one must not be freed by the other.",
	  findings_libraries },
	{ "elsewhere", "freed by another thread", FINDINGS_NOTE, CALLS | FINDINGS_THREADS,
	  "Half of a site's blocks or more are freed by another thread than the one that "
	  "allocated them. With glibc each goes back to the arena of the first thread, under its "
	  "lock; an allocator with free lists of its own for this (mimalloc, jemalloc) or "
	  "batches are cheaper.",
	  findings_elsewhere },
	{ "cache", "grew and levelled off", FINDINGS_NOTE, FINDINGS_SITES | FINDINGS_LEVELS,
	  "A site that grew and stopped: a cache or a pool. It is listed so that it is not taken "
	  "for a leak.",
	  findings_cache },
	{ "step", "a step that stays", FINDINGS_NOTE, FINDINGS_SITES | FINDINGS_LEVELS,
	  "A site that grew in one or two steps: a table, a phase of the program.", findings_step },
	{ "holes", "no room in the address space", FINDINGS_PROBLEM,
	  FINDINGS_EVERY_CALL | FINDINGS_VM | FINDINGS_MOMENT,
	  "In a process of 32 bits (or below 2 GiB, with MAP_32BIT) a call for memory failed, of "
	  "malloc or of the system: no hole was large enough. By what was mapped at that moment; "
	  "the part below 64 KiB is not counted. Who is in the way is the stack without whose "
	  "mappings the largest hole would have been largest.",
	  findings_holes },
	{ "thread-stacks", "threads' stacks take addresses and are not used", FINDINGS_NOTE,
	  FINDINGS_SNAPSHOTS | FINDINGS_NO_FILTER | FINDINGS_MOMENT,
	  "In the snapshot with most resident memory, threads' stacks take an eighth of what the "
	  "process may map (4 GiB, or its limit) or more, and less than an eighth of that is "
	  "resident. In a process of 64 bits without a limit they cost nothing.",
	  findings_thread_stacks },
	{ "unaligned", "reservations of less than whole 64 KiB", FINDINGS_NOTE,
	  FINDINGS_VM | FINDINGS_NO_FILTER | FINDINGS_MOMENT,
	  "In a process of 32 bits on Windows: addresses after reservations, up to the next "
	  "multiple of 64 KiB, which no other reservation can have. 32 MiB or more of one stack.",
	  findings_unaligned },
	{ "outside", "memory outside the heap", FINDINGS_NOTE,
	  FINDINGS_VM | FINDINGS_NO_FILTER | FINDINGS_MOMENT,
	  "When most was committed, the program had committed 8 MiB or more itself (mmap, "
	  "VirtualAlloc), and more than the allocators that tidemark sees. It may be a pool, "
	  "generated code, a garbage collector's heap, or an allocator of its own without "
	  "symbols: what is allocated inside of it is in no figure of the heap.",
	  findings_outside },
	{ "early", "a library allocates before main and never again", FINDINGS_SAVING,
	  FINDINGS_FILES | FINDINGS_NO_FILTER | FINDINGS_SITES,
	  "Blocks that constructors of a library allocated before main and that lived at the "
	  "peak, of a library that is on no other stack. It may be linked and not be used; or "
	  "it is used and allocates nothing.",
	  findings_early },
	{ "runtimes", "two C runtimes", FINDINGS_NOTE, FINDINGS_FILES,
	  "Two of Microsoft's C runtimes (msvcr100.dll, ucrtbase.dll) in one process, both on "
	  "stacks of allocations: each has its own files, locale and errno, and blocks of one "
	  "must not be freed by the other. msvcrt.dll is Windows' own and is not counted.",
	  findings_runtimes },
	{ "slack", "sizes just over a size class", FINDINGS_SAVING,
	  FINDINGS_LINUX | FINDINGS_EVERY_CALL | FINDINGS_FREES | FINDINGS_ADDRESSES |
		  FINDINGS_MOMENT,
	  "Blocks at the peak that take more than they hold: with glibc those of one to three "
	  "bytes over a size that it has, where that costs a quarter of them and three in four "
	  "of a site's blocks are so; with other allocators, "
	  "and aligned blocks, those that are further apart than they are large by an eighth, "
	  "though nothing was ever allocated between. The usable size is not recorded: it is "
	  "computed from glibc's rules, or seen by the addresses. What glibc takes for headers is "
	  "overhead.",
	  findings_slack },
	{ "contention", "threads use one arena at the same time", FINDINGS_NOTE,
	  FINDINGS_LINUX | CALLS | FINDINGS_ADDRESSES | FINDINGS_THREADS | FINDINGS_NO_FILTER |
		  FINDINGS_MOMENT,
	  "Stretches of 100 ms in which 50,000 calls or more need one of glibc's arenas locked, "
	  "a tenth of them or more by another thread than the first. Whose arena it is, the "
	  "addresses tell; a call that the thread's own cache serves (tcache, by its rules) needs "
	  "no lock. At most so many: chunks that glibc puts into the cache unasked are unknown. "
	  "Whether a thread waited is not recorded, so it is possible, never more.",
	  findings_contention },
	{ "ended-threads", "memory of ended threads", FINDINGS_SAVING,
	  FINDINGS_EVERY_CALL | FINDINGS_FREES | FINDINGS_THREADS | FINDINGS_MOMENT,
	  "Blocks of one line that four threads or more allocated which have ended, and that "
	  "nothing had freed when the process ended. A thread has ended where libc gave its stack "
	  "back, in that thread (glibc). Results that are kept to the end look the same: "
	  "record --reachability says what nothing points to.",
	  findings_ended_threads },
	{ 0 },
};

// "growth" and "growth#2" are both of the kind growth.
const struct findings_kind *findings_kind_find(const char *id)
{
	size_t length = strcspn(id, "#");

	for (const struct findings_kind *kind = findings_kinds; kind->id; kind++)
		if (strlen(kind->id) == length && strncmp(kind->id, id, length) == 0)
			return kind;
	return NULL;
}

// ---- what the kinds ask ----

uint64_t findings_bytes_min(const struct findings *findings)
{
	uint64_t part = findings->peak_bytes / MATTERS_PART;

	return part > BYTES_LEAST ? part : BYTES_LEAST;
}

uint64_t findings_calls_min(const struct findings *findings)
{
	uint64_t part = findings->allocations / MATTERS_PART;

	return part > CALLS_LEAST ? part : CALLS_LEAST;
}

// Growth of a program of two seconds is its start. Who names a window has decided otherwise.
bool findings_lasts(const struct findings *findings, process_id id)
{
	const struct query_context *asked = findings->asked;
	const struct trace_process *process = reader_process(asked->reader, id);
	uint64_t ended_ns;

	ASSERT(findings->asked && findings->facts);
	if (asked->from_given || asked->to_given)
		return true;
	if (!process)
		return false;
	ended_ns = process->ended_ns < asked->duration_ns ? process->ended_ns : asked->duration_ns;
	return ended_ns > process->began_ns &&
	       ended_ns - process->began_ns >= FINDINGS_LASTING_S * UINT64_C(1000000000);
}

// Pointers to findings are void after it. The window is that of the question, until the finding
// says a narrower one.
struct finding *findings_add(struct findings *findings, const struct findings_kind *kind,
			     enum findings_sure sure, process_id process, stack_id stack)
{
	struct finding *finding;

	ASSERT(kind);
	finding = MEM_ADD(findings->list, findings->count, findings->capacity);
	*finding = (struct finding){
		.kind = kind,
		.sure = sure,
		.process = process,
		.stack = stack,
		.from_ns = findings->asked->from_ns,
		.to_ns = findings->asked->to_ns,
		.tab = "window",
	};
	return finding;
}

// Frees what the slot had: a text may be said first in general and then better.
void findings_say(char **slot, const char *format, ...)
{
	struct str text = { 0 };
	va_list args;

	va_start(args, format);
	str_vformat(&text, format, args);
	va_end(args);
	mem_free(*slot);
	*slot = str_take(&text);
}

void findings_figure(struct finding *finding, const char *key, const char *label,
		     enum findings_unit unit, uint64_t value)
{
	ASSERT(finding->figures_count < FINDINGS_FIGURES_MAX);
	finding->figures[finding->figures_count++] =
		(struct findings_figure){ key, label, unit, value };
}

// Each kind that lacks the same thing of the trace says so once, however many processes it is asked
// for.
void findings_miss(struct findings *findings, const struct findings_kind *kind, const char *format,
		   ...)
{
	struct str text = { 0 };
	va_list args;

	va_start(args, format);
	str_vformat(&text, format, args);
	va_end(args);
	for (size_t i = 0; i < findings->missed_count; i++) {
		if (findings->missed[i].kind != kind ||
		    strcmp(findings->missed[i].why, str_get(&text)) != 0)
			continue;
		str_fini(&text);
		return;
	}
	*MEM_ADD(findings->missed, findings->missed_count, findings->missed_capacity) =
		(struct findings_missed){ kind, str_take(&text) };
}

// Whether all functions of a frame allocate for somebody else.
static bool is_wrapper(struct findings *findings, frame_id frame)
{
	size_t count;
	const struct symbol *symbols;
	struct symbol place;

	// Of generated code there may be a million frames: nothing is kept of them.
	if (names_nobody_knows(findings->asked->names, frame, &place))
		return names_is_wrapper(&place);
	symbols = names_find(findings->asked->names, frame, &count);
	for (size_t i = 0; i < count; i++)
		if (!names_passes_on(findings->asked->names, frame, &symbols[i]))
			return false;
	return true;
}

// A parent comes before its child, unless the trace is damaged.
process_id findings_family(const struct reader *reader, process_id id)
{
	const struct trace_process *process = reader_process(reader, id);

	while (process && process->start == TRACE_START_FORK && process->parent < process->id)
		process = reader_process(reader, process->parent);
	return process ? process->id : id;
}

// The innermost frame that is the program's own: a stack that begins there, since stacks are
// chains of (frame, caller). It is kept by stack, as each finding asks for it.
stack_id findings_user(struct findings *findings, stack_id stack)
{
	const struct reader *reader = findings->asked->reader;
	struct findings_facts *facts = findings->facts;
	stack_id at = stack;

	if (!stack || stack >= reader_stacks_count(reader))
		return 0;
	if (!facts->users)
		facts->users = mem_alloc(reader_stacks_count(reader), sizeof *facts->users);
	if (facts->users[stack])
		return facts->users[stack] - 1;
	while (at && is_wrapper(findings, reader_stack(reader, at)->frame))
		at = reader_stack(reader, at)->parent;
	facts->users[stack] = (at ? at : stack) + 1;
	return at ? at : stack;
}

// What a runtime's frame allocates for a function of a script, which is at several addresses: V8
// compiles it again while it runs.
struct findings_script {
	frame_id inner;
	const struct symbol *function;
};

static bool is_script(const void *context, uint32_t position, const void *key)
{
	const struct findings_facts *facts = context;
	const struct findings_script *script = key, *other = &facts->scripts[position];

	return other->inner == script->inner && other->function->line == script->function->line &&
	       strcmp(other->function->function, script->function->function) == 0 &&
	       strcmp(other->function->file, script->function->file) == 0;
}

static uint32_t script_line(struct findings *findings, frame_id inner, frame_id frame)
{
	struct findings_facts *facts = findings->facts;
	size_t count;
	const struct symbol *symbol = names_find(findings->asked->names, frame, &count);
	struct findings_script script = { inner, symbol };
	uint32_t number;
	uint64_t hash;

	// An addon, which stays where it is, has its frame.
	if (!names_is_script(symbol))
		return frame;
	hash = index_set_hash((const uint64_t[]){ inner, symbol->line,
						  index_set_hash_text(symbol->function),
						  index_set_hash_text(symbol->file) },
			      4);
	number = index_set_put(&facts->scripts_set, hash, is_script, facts, &script,
			       (uint32_t)facts->scripts_count);
	if (number == facts->scripts_count)
		*MEM_ADD(facts->scripts, facts->scripts_count, facts->scripts_capacity) = script;
	return reader_frames_count(findings->asked->reader) + number;
}

// A frame's number, but where a runtime's native code stands for a script: then it is of both. What
// is temporary is so for what the runtime makes, and other blocks of the script's are another line.
uint32_t findings_line(struct findings *findings, stack_id stack)
{
	const struct reader *reader = findings->asked->reader;
	struct findings_facts *facts = findings->facts;
	stack_id inner = findings_user(findings, stack), user;
	uint32_t line;

	if (!inner)
		return 0;
	if (!facts->lines)
		facts->lines = mem_alloc(reader_stacks_count(reader), sizeof *facts->lines);
	if (facts->lines[stack])
		return facts->lines[stack];
	line = reader_stack(reader, inner)->frame;
	user = names_user(findings->asked->names, inner);
	if (user != inner)
		line = script_line(findings, line, reader_stack(reader, user)->frame);
	facts->lines[stack] = line;
	return line;
}

// What a script does not name is known by its place.
static void add_place(const struct findings *findings, stack_id stack, struct str *text)
{
	const struct symbol *face = names_face(findings->asked->names, stack, false);

	if (face && face->function && names_is_for_many(face->function) && face->file)
		str_format(text, " of %s:%" PRIu32, str_last_part(face->file), face->line);
}

// Short, as it stands in a sentence, and kept: several kinds find something of one stack.
const char *findings_function(const struct findings *findings, stack_id stack)
{
	const uint32_t stacks = reader_stacks_count(findings->asked->reader);
	struct findings_facts *facts = findings->facts;
	struct str name = { 0 }, text = { 0 };

	ASSERT(stack < stacks);
	if (!facts->functions)
		facts->functions = mem_alloc(stacks, sizeof *facts->functions);
	if (!facts->functions[stack]) {
		names_add_function(findings->asked->names, stack, false, &name);
		cxxname_shorten(str_get(&name), NAME_COLUMNS, &text);
		add_place(findings, stack, &text);
		facts->functions[stack] = arena_text(&facts->texts, str_get(&text));
		STR_FINI(&name, &text);
	}
	return facts->functions[stack];
}

// Of several allocators in one process the first that is known by name counts; stripped ones were
// only guessed at.
const char *findings_allocator(const struct findings *findings, process_id id)
{
	const struct trace_process *process = reader_process(findings->asked->reader, id);

	for (uint32_t i = 0; process && i < process->allocators_count; i++)
		if (process->allocators[i].seen < TRACE_SEEN_STRIPPED)
			return process->allocators[i].name;
	return NULL;
}

// Heap 0 is malloc's. A heap with a handle is one of Windows; a pool, which a program has
// announced, has none.
bool findings_is_general(const struct findings *findings, heap_id id)
{
	const struct trace_heap *heap = id ? reader_heap(findings->asked->reader, id) : NULL;

	return id == 0 || (heap && heap->handle && !reader_heap_is_language(heap));
}

// Older recordings do not name the allocator: outside of Windows it is taken for glibc's.
bool findings_is_glibc(const struct findings *findings, process_id process)
{
	const char *allocator = findings_allocator(findings, process);

	return allocator ? strcmp(allocator, "glibc") == 0
			 : !reader_is_windows(findings->asked->reader);
}

// A function's name as an expression, for a shell: '^a::b$'. A name that is longer than
// names are shown is asked for without its parameters, and so with all its overloads:
// 'std::vector<int, std::allocator<int> >::push_back'.
static void add_expression(struct str *out, const char *name)
{
	struct str word = { 0 };
	size_t length;
	const char *end = cxxname_base(name, &length) + length;
	bool whole = *end == '\0' || strlen(name) < NAME_COLUMNS;

	if (whole)
		end = name + strlen(name);
	str_add(&word, whole ? "^" : "");
	for (; name < end; name++) {
		if (strchr("\\^$.[]|()*+?{}", *name))
			str_add_char(&word, '\\');
		str_add_char(&word, *name);
	}
	str_add(&word, whole ? "$" : "");
	str_add_shell(out, str_get(&word));
	str_fini(&word);
}

void findings_add_process(struct str *command, process_id process)
{
	char number[16];

	snprintf(number, sizeof number, "#%" PRIu32, process);
	str_add(command, " --process ");
	str_add_shell(command, number);
}

// The window is part of the command only if it is less than the whole recording, and the process
// only if there are several: what is printed is as short as it can be and still shows this.
void findings_command(const struct findings *findings, struct finding *finding, const char *verb,
		      const char *options, bool window, bool frame)
{
	const struct symbol *face = names_face(findings->asked->names, finding->stack, false);
	struct str text = { 0 };

	str_format(&text, "%s ", verb);
	str_add_shell(&text, findings->path);
	if (window && (finding->from_ns > 0 || finding->to_ns < findings->asked->duration_ns))
		str_format(&text, " --from %s --to %s", STR_TIME(finding->from_ns),
			   STR_TIME(finding->to_ns));
	finding->process_at = finding->process_length = 0;
	if (reader_processes_count(findings->asked->reader) > 1 && !finding->of_several) {
		finding->process_at = text.length;
		findings_add_process(&text, finding->process);
		finding->process_length = text.length - finding->process_at;
	}
	// A name that many have selects little: the script that has it as well.
	if (frame && face && face->function && names_is_script(face) &&
	    names_is_for_many(face->function)) {
		struct str row = { 0 };

		str_format(&row, "module:%s", face->file);
		str_add(&text, " --row ");
		str_add_shell(&text, str_get(&row));
		str_fini(&row);
	}
	if (frame && face && face->function) {
		str_add(&text, " --frame ");
		add_expression(&text, face->function);
	} else if (frame && face) {
		struct str name = { 0 };

		// No expression is of a name that it does not have.
		str_add(&name, "function:");
		names_add_function(findings->asked->names, finding->stack, false, &name);
		str_add(&text, " --row ");
		str_add_shell(&text, str_get(&name));
		str_fini(&name);
	}
	if (*options)
		str_format(&text, " %s", options);
	mem_free(finding->command);
	finding->command = str_take(&text);
}

// ---- gathering ----

// Fills the facts that are of sites: growth and spikes from the index, sums from one reading of the
// trace.
static bool gather_sites(struct findings *findings, struct err *err)
{
	struct query_context *asked = findings->asked;
	struct findings_facts *facts = findings->facts;
	const struct growth_options growth = { .rows_max = 0 };
	const struct spikes_options spikes = { .rows_max = 100, .all_series = true };
	const struct heap_counts *counts;

	if (asked->layers != WINDOW_HEAP)
		return err_set(err, ERR_USAGE,
			       "findings are about the heap; for virtual memory try: tidemark "
			       "growth --layer vm");
	// Of spikes only the highest is a finding: it is among the hundred.
	if (!growth_find(&facts->growth, asked, &growth, err) ||
	    !spikes_find(&facts->spikes, asked, &spikes, err) || !query_context_select(asked, err))
		return false;
	query_context_whole(asked, &facts->whole, false, NULL, NULL);
	facts->heap = facts->whole.heap;
	counts = &heap_totals(facts->heap)->counts;
	findings->peak_bytes = counts->peak.bytes;
	findings->allocations = counts->allocated.count;
	query_context_counted(asked, counts);
	facts->free_stacks = defs_has_word(reader_info(asked->reader)->options, "free-stacks");
	return true;
}

// What is asked of sites later is kept: which of a process holds most at its end.
static void forget_sites(struct findings_facts *facts)
{
	size_t count;
	const struct heap_site *sites = heap_sites(facts->heap, &count);

	for (size_t i = 0; i < count; i++) {
		struct findings_most *most = MEM_FILL(facts->mosts, facts->mosts_count,
						      facts->mosts_capacity, sites[i].process);

		if (!most->any || sites[i].live_at_exit.bytes > most->bytes)
			*most = (struct findings_most){ sites[i].stack, true,
							sites[i].live_at_exit.bytes };
	}
	heap_forget_sites(facts->whole.heap);
}

// And those of lives, from another reading, or from what an earlier one has kept. A sampled trace
// has no second reading: its frees are not all seen.
static bool gather_lives(struct findings *findings, struct err *err)
{
	struct query_context *asked = findings->asked;
	struct findings_facts *facts = findings->facts;
	struct shelf shelf;
	bool complete, good = true;

	if (reader_is_estimated(asked->reader))
		return true;
	shelf_find(&shelf, asked->reader, asked->opened->path, &asked->selection.query,
		   &asked->options.window);
	if (!findings_take_lives(findings, &shelf)) {
		if (!query_narrows(&asked->selection.query))
			facts->arenas = findings_arenas_new(findings);
		good = findings_read_lives(findings, &complete, err);
		findings_arenas_sum(facts);
		if (good && complete && !reader_unknown(asked->reader))
			findings_keep_lives(findings, &shelf);
	}
	shelf_fini(&shelf);
	return good;
}

static void forget_pairs(struct findings_facts *facts)
{
	mem_free(facts->pairs);
	facts->pairs = NULL;
	facts->pairs_count = facts->pairs_capacity = 0;
}

// A pause in any process, as a block of another could have been freed by it.
static bool was_paused(const struct reader *reader)
{
	for (process_id id = 0; id < reader_processes_count(reader); id++)
		if (reader_process(reader, id)->paused)
			return true;
	return false;
}

// A snapshot without a list of pages knows sums alone.
static bool has_snapshots(const struct reader *reader)
{
	for (uint32_t i = 0; i < reader_snapshots_count(reader); i++)
		if (!(reader_snapshot(reader, i)->flags & TRACE_SNAPSHOT_NO_PAGES))
			return true;
	return false;
}

// Whether the format that was imported has calls that returned nothing.
static bool has_failed(const struct trace_info *info)
{
	static const char *const formats[] = { "csv",    "jsonl",          "lttng", "perf",
					       "mtrace", "memory_tracker", "etl" };
	char word[32];

	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
		snprintf(word, sizeof word, "imported=%s", formats[i]);
		if (defs_has_word(info->options, word))
			return true;
	}
	return false;
}

// As cannot_look, of what a trace lacks that was not recorded here or was stripped of addresses.
// NULL: it lacks nothing that is needed.
static const char *import_lacks(const struct findings *findings, unsigned needs)
{
	const struct query_context *asked = findings->asked;
	const struct trace_info *info = reader_info(asked->reader);
	const unsigned layers = window_facts(asked->window)->layers;
	const bool import = cautions_is_import(info);

	if (import && !(needs & FINDINGS_VM) && !(layers & WINDOW_HEAP))
		return "there is no heap in what was imported";
	if ((needs & (FINDINGS_EVERY_CALL | FINDINGS_FREES)) && cautions_lacks(info, "snapshots") &&
	    !((needs & FINDINGS_REACH) && reader_reaches_count(asked->reader) > 0))
		return "needs each call, and what was imported is made of sums";
	if ((needs & FINDINGS_LEVELS) && cautions_lacks(info, "leaks"))
		return "needs what lived over time, and what was imported is what was left at the "
		       "end";
	if ((needs & (FINDINGS_FREES | FINDINGS_LEVELS)) && asked->no_frees)
		return "needs frees, and there is none in what was imported";
	if ((needs & FINDINGS_ADDRESSES) && defs_has_word(info->options, "no-addresses"))
		return "needs addresses of blocks, and those of the trace are numbers";
	if ((needs & FINDINGS_THREADS) && cautions_lacks(info, "no-threads"))
		return "needs threads, which what was imported does not distinguish";
	if ((needs & FINDINGS_FAILED) && import && !has_failed(info))
		return "needs calls that failed, which what was imported does not have";
	if ((needs & FINDINGS_EXITS) && import)
		return "needs how processes ended, which what was imported does not say";
	if ((needs & FINDINGS_FILES) && import && reader_modules_count(asked->reader) <= 1)
		return "needs the files of functions, which what was imported does not say";
	if ((needs & FINDINGS_VM) && !(layers & WINDOW_VM) &&
	    (import || defs_has_word(info->options, "no-addresses")))
		return "needs calls on virtual memory, which the trace does not have";
	return NULL;
}

// Why a kind cannot be looked for in this trace; NULL: it can. It is listed with this reason, so
// that "nothing found" is not read as "nothing there". The first reason is the one that is given.
static const char *cannot_look(const struct findings *findings, const struct findings_kind *kind)
{
	const struct query_context *asked = findings->asked;
	const struct reader *reader = asked->reader;
	unsigned needs = kind->needs;
	const char *why = import_lacks(findings, needs);

	if (why)
		return why;
	if ((needs & FINDINGS_EVERY_CALL) && reader_is_estimated(reader))
		return "needs every call, and the recording is sampled (record without --sample "
		       "or --max-overhead)";
	if ((needs & FINDINGS_ALL_SEEN) && reader_info(reader)->budget)
		return "needs frees of what is not known to live, which record --max-overhead "
		       "does not see";
	if ((needs & FINDINGS_FREE_STACKS) && !findings->facts->free_stacks)
		return "needs the stacks of frees (tidemark record --free-stacks)";
	if ((needs & FINDINGS_SNAPSHOTS) && reader_is_windows(reader))
		return "needs snapshots of resident pages, which recordings on Windows do not have";
	if ((needs & FINDINGS_PAGES) && !reader_is_windows(reader))
		needs |= FINDINGS_SNAPSHOTS;
	if ((needs & FINDINGS_SNAPSHOTS) && !has_snapshots(reader))
		return "needs a snapshot of resident pages, which the trace does not have (a short "
		       "run has none; tidemark record --rss-exact takes more of them)";
	if ((needs & FINDINGS_ALL_SEEN) && (heap_totals(findings->facts->heap)->events_lost ||
					    was_paused(reader) || !reader_complete(reader)))
		return "needs a recording from a process's beginning, without pauses, losses and "
		       "programs that are not recorded wholly";
	if ((needs & FINDINGS_LINUX) && reader_is_windows(reader))
		return "how the heaps of Windows lay their blocks out is not known";
	if ((needs & FINDINGS_NO_FILTER) && query_narrows(&asked->selection.query))
		return "is about what all blocks share: ask without filters";
	return NULL;
}

// ---- ranking ----

// 0 of 0 is nothing, and no NaN that would spoil the order.
static double part_of(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

SORT_ORDER(most_important_first, struct finding, SORT_FALLS(kind->class), SORT_FALLS(weight),
	   SORT_RISES(kind),
	   trace_compare_places(one->process, one->stack, other->process, other->stack))

// By the share of the peak and of the calls that a mend would save. A finding that is only possible
// counts half. Calls are compared with twice the allocations, as the free of a block is a call too:
// a finding that would save all blocks has 1 there. Then each finding is numbered within its kind,
// in that order.
static void rank(struct findings *findings)
{
	for (size_t i = 0; i < findings->count; i++) {
		struct finding *finding = &findings->list[i];

		finding->weight = part_of(finding->saves_bytes, findings->peak_bytes) +
				  part_of(finding->saves_calls, 2 * findings->allocations);
		if (finding->sure == FINDINGS_POSSIBLE)
			finding->weight /= 2;
	}
	if (findings->count)
		qsort(findings->list, findings->count, sizeof *findings->list,
		      most_important_first);
	for (size_t i = 0; i < findings->count; i++) {
		unsigned number = 1;

		for (size_t j = 0; j < i; j++)
			number += findings->list[j].kind == findings->list[i].kind;
		findings->list[i].number = number;
	}
}

static void free_facts(struct findings_facts *facts)
{
	if (!facts)
		return;
	whole_fini(&facts->whole);
	growth_fini(&facts->growth);
	spikes_fini(&facts->spikes);
	MEM_FREE(facts->pairs, facts->chains, facts->orphans, facts->failed, facts->lasts,
		 facts->mosts, facts->users, facts->lines, facts->scripts, facts->functions,
		 facts->locks);
	index_set_fini(&facts->scripts_set);
	failures_fini(&facts->failures);
	arena_fini(&facts->texts);
	findings_arenas_free(facts->arenas);
	mem_free(facts);
}

// Kinds that need `which` of the steps, or none of them. False: the index cannot be read.
static bool look(struct findings *findings, unsigned which, struct err *err)
{
	for (const struct findings_kind *kind = findings_kinds; kind->id; kind++) {
		const char *why = NULL;

		if ((kind->needs & (FINDINGS_SITES | FINDINGS_MOMENT)) != which)
			continue;
		why = cannot_look(findings, kind);
		if (why)
			findings_miss(findings, kind, "%s", why);
		else if (!kind->find(findings, kind, err))
			return false;
	}
	return true;
}

// In three steps, of which each has the room of the one before, for there may be a million sites,
// as many pairs, and more blocks that live at one moment. So what a step asked the index keeps
// nothing for the next (query_context_whole does the same).
static bool find_all(struct findings *findings, struct err *err)
{
	if (!gather_sites(findings, err) || !look(findings, FINDINGS_SITES, err))
		return false;
	forget_sites(findings->facts);
	if (!gather_lives(findings, err) || !look(findings, 0, err))
		return false;
	forget_pairs(findings->facts);
	if (findings->asked->window)
		window_drop_tables(findings->asked->window);
	return look(findings, FINDINGS_MOMENT, err);
}

// What was not looked for, in the order of the kinds: it came in that of the steps of find_all.
// Reasons of one kind stay as they came. There are about as many as kinds, so they are inserted.
static void order_missed(struct findings_missed *missed, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		struct findings_missed each = missed[i];
		size_t at = i;

		for (; at > 0 && missed[at - 1].kind > each.kind; at--)
			missed[at] = missed[at - 1];
		missed[at] = each;
	}
}

// Facts live no longer than the search: what a finding shows of them is in its texts and figures.
// Only all findings together can be ranked, so numbers ("growth#2") come last.
bool findings_find(struct findings *findings, struct query_context *asked, struct err *err)
{
	bool good;

	*findings = (struct findings){
		.asked = asked,
		.path = asked->options.path,
		.facts = mem_alloc(1, sizeof *findings->facts),
	};
	good = find_all(findings, err);
	if (good)
		findings_fold_alike(findings);
	order_missed(findings->missed, findings->missed_count);
	free_facts(findings->facts);
	findings->facts = NULL;
	if (good)
		rank(findings);
	else
		findings_fini(findings);
	return good;
}

// `saves_calls` counts an allocation and its free as two, so that a pair of them takes begin_ns +
// end_ns. Calls of no one size (`saves_size` 0: buffers that grow) have no price. Returns why not.
static const char *price_one(const struct findings_share *share, findings_cost *cost, void *context,
			     double *ns)
{
	double begin_ns = 0, end_ns = 0;
	const char *why;

	if (!share->saves_size)
		return "what its calls take depends on what they move, which a replay does not "
		       "measure";
	why = cost(context, share->process, share->saves_size, &begin_ns, &end_ns);
	if (!why)
		*ns += (double)share->saves_calls / 2 * (begin_ns + end_ns);
	return why;
}

// Of several processes each has a price of its own; if one is not known, the sum is not.
void findings_price(struct findings *findings, findings_cost *cost, void *context)
{
	ASSERT(cost);
	for (size_t i = 0; i < findings->count; i++) {
		struct finding *finding = &findings->list[i];
		const struct findings_share alone = { .process = finding->process,
						      .saves_calls = finding->saves_calls,
						      .saves_size = finding->saves_size };
		const struct findings_share *shares = finding->shares ? finding->shares : &alone;
		size_t count = finding->shares ? finding->shares_count : 1;
		const char *why = NULL;
		double ns = 0;

		if (!finding->saves_calls)
			continue;
		for (size_t j = 0; j < count && !why; j++)
			why = price_one(&shares[j], cost, context, &ns);
		if (why)
			findings_miss(findings, finding->kind, "processor time: %s", why);
		else
			finding->saves_ns = ns;
	}
}

void findings_fini(struct findings *findings)
{
	for (size_t i = 0; i < findings->count; i++)
		findings_free_texts(&findings->list[i]);
	for (size_t i = 0; i < findings->missed_count; i++)
		mem_free(findings->missed[i].why);
	MEM_FREE(findings->list, findings->missed);
	*findings = (struct findings){ 0 };
}
