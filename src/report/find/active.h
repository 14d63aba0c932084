// active: a list of what is allocated at one moment, each block and each mapping with where it
// is, how large and how old it is, whose it is and who asked for it.
//
// Blocks and mappings are two layers, which never add up: malloc takes its blocks from mappings.
// Where both are listed, mappings that malloc made for its blocks are therefore left out, so that
// nothing is there twice; where only mappings are asked for, all are listed. tidemark's own
// are in neither, nor is what a forked process has from its parent.
#pragma once

#include "engine/replay/heap.h"
#include "report/ask/moment_view.h"
#include "report/table/sheet.h"

extern const struct query_context_rules active_rules;

struct active_options {
	uint64_t rows_max;  // 0: all
	uint64_t bytes_min; // rows of at least so many bytes
	bool all_frames;
};

// One block, or one mapping.
struct active_row {
	uint64_t address;
	uint64_t size;      // of a block as requested; of a mapping all its pages
	uint64_t committed; // of a mapping: bytes of it that are committed
	// at the moment, since it was allocated or mapped
	uint64_t age_ns;
	const char *owner; // a word of space.h, "stdio", "pool", or "malloc": not known better
	// who it is of; who asked for it; with which stack. 0 of the last: none
	process_id process;
	thread_id thread;
	stack_id stack;
	heap_id heap;
	file_id file;
	// of a mapping: as the trace has it
	uint32_t protection;
	// a mapping; else a block
	bool vm;
	// it was there when the process was attached to: nobody knows since when, nor by whom
	bool before;
};

// The list. Where rows are limited, only the largest are kept while they are gathered, so memory
// goes with what is shown.
struct active {
	struct query_context *asked; // borrowed
	const struct active_options *options;
	struct active_row *rows; // the largest first
	size_t count;            // of those that are large enough, also where not all are kept
	size_t kept, sorted, capacity; // private: of `rows`
	size_t shown;                  // the first so many are shown
	unsigned layers;               // set of enum query_layer
	struct heap_amount heap;       // selected, whatever their size; as report counts them
	struct heap_amount pools;      // blocks of the program's own pools, parts of others
	struct heap_amount vm;
	uint64_t vm_committed;
	struct heap_amount left_out; // mappings of malloc, where blocks are listed
};

// `asked` has been read. False: blocks cannot be read any more (present_ok).
bool active_init(struct active *active, struct query_context *asked,
		 const struct active_options *options, struct err *err);
void active_fini(struct active *active);

// The list for people, as JSON; its rows alone.
void active_write_text(const struct active *active, struct paper *paper);
void active_write_json(const struct active *active, struct sink *sink);
void active_rows(const struct active *active, struct sheet *sheet);
