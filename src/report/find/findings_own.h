// findings_own: what the files that look for findings share (findings.h).
//
// Facts are gathered once and asked by several kinds: the sums of each site, what the lives of
// blocks tell one by one, and which frame of a stack is the program's own.
//
// A kind of finding is a row of findings_kinds (findings.c): its id, what it needs of the trace,
// its text for the manual, and a function findings_look. That function asks the facts, and for
// each thing that it has found calls findings_add, says what, why and what to do (findings_say),
// adds figures, and the command that shows more. For example "growth": the facts have the rows of
// `tidemark growth`; those of one function become one finding, with the slope and what lives at
// the end.
//
// To add one: its function, its row, and docs/findings.md.
#pragma once

#include "base/arena.h"
#include "base/index_set.h"
#include "engine/replay/lives.h"
#include "engine/replay/present.h"
#include "engine/whole.h"
#include "report/ask/failures.h"
#include "report/find/findings.h"
#include "report/find/growth.h"
#include "report/find/spikes.h"

// What a kind needs of a trace.
enum findings_needs {
	FINDINGS_EVERY_CALL = 1 << 0,  // not sampled
	FINDINGS_FREE_STACKS = 1 << 1, // record --free-stacks
	FINDINGS_SNAPSHOTS = 1 << 2,   // of resident pages
	FINDINGS_ALL_SEEN = 1 << 3,    // no event lost, never paused, not attached, not cut
	FINDINGS_NO_FILTER = 1 << 4,   // is about what all blocks share: pages, locks
	FINDINGS_FREES = 1 << 5,       // an import may have none
	FINDINGS_LINUX = 1 << 6, // is about how allocators lay blocks out, which is known there
	FINDINGS_PAGES = 1 << 7, // snapshots; on Windows what is committed does instead
	// When it is looked for: first, while the sites of the heap are there, or last, when what
	// lives at a moment has the room of the pairs. Else between the two.
	FINDINGS_SITES = 1 << 8,
	FINDINGS_MOMENT = 1 << 9,
	// What an import may lack besides, and a trace without addresses (tidemark strip).
	FINDINGS_LEVELS = 1 << 10,    // what lived over time
	FINDINGS_ADDRESSES = 1 << 11, // of blocks, as places in memory
	FINDINGS_THREADS = 1 << 12,
	FINDINGS_FILES = 1 << 13, // that code is in
	FINDINGS_VM = 1 << 14,    // calls on virtual memory
	FINDINGS_FAILED = 1 << 15,
	FINDINGS_EXITS = 1 << 16, // how processes ended
	FINDINGS_REACH = 1 << 17, // what is reachable: sums may have it, too
};

// Blocks that one stack of a process allocated and another one freed (or that of no call: 0).
// `bytes` and `size_max` are of what was asked for; `elsewhere` tells work that is handed from
// thread to thread.
struct findings_pair {
	process_id process;
	stack_id stack, freed_by;
	uint64_t count, bytes, size_max;
	uint64_t temporary; // of them, freed before their thread's next allocation
	uint64_t elsewhere; // freed by another thread
};

// Buffers that grew: by realloc, or by an allocation, and the free of the last one after it.
// For example a std::vector that is pushed to 1,000 times without reserve(): one chain of 11 steps
// (1, 2, 4 … 1,024 items), none of them constant.
struct findings_chains {
	process_id process;
	stack_id stack; // of the steps
	uint64_t chains, steps, longest;
	uint64_t constant; // steps by as much as the step before
	uint64_t copied;   // bytes that had to be moved, at most
	uint64_t size_max;
	bool by_copy; // not by realloc
};

// A free of what does not live.
struct findings_orphan {
	process_id process;
	thread_id thread;
	stack_id stack;
	heap_id heap; // that it was given to
	// of the free: what it was given, its event's number, ns since the recording began
	uint64_t address, number, time_ns;
	bool refused; // by that heap (Windows)
	// What is known of the address: that a block ended there, the block that it is inside, or
	// the one of another heap that begins there.
	bool freed, inside, mixed;
	heap_id other_heap;
	stack_id freed_by, allocated_by;
	// of the block that is meant, and how far inside of it the address is: bytes
	uint64_t size, offset;
};

// Calls that returned no memory.
// By process and stack; times in ns, sizes in bytes as asked for.
struct findings_failed {
	process_id process;
	stack_id stack;
	uint64_t in_place; // reallocs that may not move their block: not in what follows
	uint64_t count, size_min, size_max, first_ns, last_ns;
};

// What the process asked for last: with a kill, who wanted more when there was none. `cleared`
// tells an orderly end, which frees most of what there is, from one that leaves its heap as it was.
struct findings_last { // allocation of a process
	stack_id stack;
	// bytes as asked for; when
	uint64_t size, time_ns;
	uint64_t cleared; // bytes that it freed in its last part, and had from before that
};

// Of its sites, the one with most of what lives when it ends.
struct findings_most { // of a process
	stack_id stack;
	bool any;
	uint64_t bytes;
};

// An arena of glibc, and what its lock had to do (findings_contention.c).
struct findings_lock {
	process_id process;
	stack_id stack;          // of the blocks of most calls
	uint64_t windows;        // in which threads came together
	uint64_t together, most; // calls in all of them, and in the one with most
	uint64_t threads;        // that count
};

// What was gathered. Sites are forgotten when lives are looked at, and pairs when moments are
// (findings.c); all else lives as long as the search, and is freed together.
struct findings_facts {
	struct whole whole;
	const struct heap *heap; // of it
	struct growth growth;
	struct spikes spikes;
	struct findings_pair *pairs;
	size_t pairs_count, pairs_capacity;
	struct findings_chains *chains;
	size_t chains_count, chains_capacity;
	struct findings_orphan *orphans; // the first ORPHANS_MAX
	size_t orphans_count, orphans_capacity;
	struct findings_failed *failed;
	size_t failed_count, failed_capacity;
	struct findings_last *lasts; // by process
	size_t lasts_count, lasts_capacity;
	struct findings_most *mosts; // by process
	size_t mosts_count, mosts_capacity;
	struct findings_arenas *arenas; // while lives are read; NULL: not asked for
	struct findings_lock *locks;    // what is left of them
	size_t locks_count, locks_capacity;
	stack_id *users;                 // by stack: findings_user + 1; 0: not asked yet
	uint32_t *lines;                 // by stack: findings_line; 0: not asked yet
	struct findings_script *scripts; // what has a line of its own, see findings_line
	size_t scripts_count, scripts_capacity;
	struct index_set scripts_set;
	const char **functions;   // by stack: findings_function; NULL: not asked yet
	struct arena texts;       // theirs
	struct failures failures; // findings_space_failures; .asked NULL: not asked yet
	bool free_stacks;
};

// What is listed at all: bytes, calls; and from which age of a process its growth says anything.
uint64_t findings_bytes_min(const struct findings *findings);
uint64_t findings_calls_min(const struct findings *findings);
enum { FINDINGS_LASTING_S = 10 };
bool findings_lasts(const struct findings *findings, process_id process);

// When the last part of a process's time began, in which it clears up: a twentieth, of a process
// that ran for 100 s the last 5 s. 0: what runs on has none.
uint64_t findings_last_part(const struct trace_process *process);

// A new one, about the window, of a place. Valid until the next one.
struct finding *findings_add(struct findings *findings, const struct findings_kind *kind,
			     enum findings_sure sure, process_id process, stack_id stack);

// Set one of its texts, as printf would write it.
void findings_say(char **slot, const char *format, ...) __attribute__((format(printf, 2, 3)));
void findings_figure(struct finding *finding, const char *key, const char *label,
		     enum findings_unit unit, uint64_t value);

// Append --process '#2', as this system's shell takes it.
void findings_add_process(struct str *command, process_id process);

// The command line that shows it: "growth app.tide --frame '^work$'", with `options` after.
void findings_command(const struct findings *findings, struct finding *finding, const char *verb,
		      const char *options, bool window, bool frame);

// Make one of findings that processes of one program have in common (findings_alike.c).
void findings_fold_alike(struct findings *findings);
void findings_free_texts(struct finding *finding);

// Not looked for, as printf would write why.
void findings_miss(struct findings *findings, const struct findings_kind *kind, const char *format,
		   ...) __attribute__((format(printf, 3, 4)));

// The process that one was forked from, and that was forked from none. Of processes of one program
// that were started one by one frames are the same, and all else is not.
process_id findings_family(const struct reader *reader, process_id id);

// The stack from the innermost frame on that does not allocate for somebody else; 0: it has none.
stack_id findings_user(struct findings *findings, stack_id stack);

// The number of the line of the program that allocates there: what findings of a line are sums of.
// 0: it has none.
uint32_t findings_line(struct findings *findings, stack_id stack);

// What it is called, for a sentence. Valid as long as the facts.
const char *findings_function(const struct findings *findings, stack_id stack);

// Whether a finding is of an ID (NULL: any is); how many are; whether there is any of "kind#N".
bool findings_is_of(const struct finding *finding, const char *only);
size_t findings_count_of(const struct findings *findings, const char *only);
bool findings_check_only(const struct findings_page *page, struct err *err);

// The allocator of a process, as the recorder found it: "glibc", "jemalloc"; NULL: not known.
const char *findings_allocator(const struct findings *findings, process_id process);
bool findings_is_glibc(const struct findings *findings, process_id process); // or not known

// Calls that got no memory, on heaps and of the system: read once.
const struct failures *findings_space_failures(struct findings *findings);

// Whether a heap is malloc's, or one of Windows' heaps: no pool, and no language's own.
bool findings_is_general(const struct findings *findings, heap_id heap);

// The snapshot of a selected process with most resident memory and a list of its pages; the caller
// ends it (snapshot_fini). False: there is none.
bool findings_load_largest(const struct findings *findings, struct trace_snapshot *snapshot);

// What is there after so many events, and when it began, if that is asked; the caller frees it.
struct present *findings_present(const struct findings *findings, uint64_t events, bool dated);

// Go through the lives of all blocks, into the facts. False: somebody wants to stop. `*complete`:
// nobody did.
bool findings_read_lives(struct findings *findings, bool *complete, struct err *err);

// What was learned from lives is kept beside the trace's index (engine/shelf.h): all facts but
// those of sites. False: there is none.
struct shelf;
bool findings_take_lives(struct findings *findings, const struct shelf *shelf);
void findings_keep_lives(const struct findings *findings, struct shelf *shelf);

// Who uses which arena of glibc when. NULL: no process has threads. It is given each block as it
// begins and ends, in the order of the trace.
struct findings_arenas *findings_arenas_new(struct findings *findings);
void findings_arenas_begin(struct findings_arenas *arenas, const struct lives_block *block);
void findings_arenas_end(struct findings_arenas *arenas, const struct lives_block *block,
			 const struct lives_end *end);
void findings_arenas_sum(struct findings_facts *facts);    // into `locks`
void findings_arenas_free(struct findings_arenas *arenas); // NULL is allowed

// The kinds' functions.
typedef bool findings_look(struct findings *findings, const struct findings_kind *kind,
			   struct err *err);
findings_look findings_growth, findings_growth_lately, findings_cache, findings_step, findings_peak,
	findings_reuse;
findings_look findings_temporaries, findings_containers, findings_constant_growth,
	findings_elsewhere;
findings_look findings_freed_twice, findings_freed_wrong, findings_mismatch, findings_failures,
	findings_killed;
findings_look findings_pinned, findings_free_pages, findings_overhead, findings_untouched,
	findings_processes, findings_libraries, findings_unreachable;
findings_look findings_holes, findings_thread_stacks, findings_unaligned, findings_outside;
findings_look findings_early, findings_runtimes;
findings_look findings_slack, findings_ended_threads, findings_contention;
