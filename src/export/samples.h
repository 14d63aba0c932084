// samples: the allocations of a window, summed up by process, thread, stack and (where wanted)
// size: what the formats that hold stacks with values are written from.
//
//     samples_open       asks the engine
//       samples.list     by process, then stack, then thread, then size
//     samples_close
//
// Values are whole numbers. Those of a sampled recording are estimates: each sample is scaled by
// what one block of its size stands for (engine/replay/weight.h), and `by_size` is set for that.
//
// It costs 112 bytes for each sample. One thread.
#pragma once

#include "base/err.h"
#include "report/ask/query_context.h"

struct sample {
	process_id process;
	thread_id thread; // that allocated
	stack_id stack;   // 0: the allocation was recorded without one
	uint32_t group;   // private
	uint64_t size;    // of each block; 0 unless by_size
	struct window_row row;
};

struct samples {
	struct query_context *asked; // borrowed
	struct sample *list;
	size_t count;
	size_t capacity; // private
	bool by_size;
};

// What a sample is asked for, in the words of --value.
enum samples_value {
	SAMPLES_IMPACTING, // bytes that it grew by; may be negative
	SAMPLES_SIZE,      // bytes of all that lived for some part of the window
	SAMPLES_COUNT,     // how many these were
	SAMPLES_ALLOCATED, // bytes allocated in the window
	SAMPLES_ALLOCATIONS,
	SAMPLES_FREED, // bytes freed in the window
	SAMPLES_FREES,
	SAMPLES_LIVE, // bytes that live at the end of the window
	SAMPLES_BLOCKS,
	SAMPLES_VALUES,
};

// "impacting" …, ended by NULL; "bytes" or "count".
extern const char *const samples_values[];
const char *samples_unit(enum samples_value value);

bool samples_open(struct samples *samples, struct query_context *asked, bool by_size,
		  struct err *err);
void samples_close(struct samples *samples); // accepts { 0 }

// What all samples of one process and stack have of it, `*first` being the first of them, which
// moves to the first of the next stack. False at the end of the list.
// Sizes and threads of it are added up.
bool samples_next_stack(const struct samples *samples, size_t *first, enum samples_value value,
			int64_t *sum);

// Of a sampled recording, with that mean distance: from samples to what they stand for. Then put
// the list in its order. Whoever has filled it in another way than by samples_open calls both.
void samples_scale(struct sample *sample, uint64_t mean_bytes);
void samples_sort(struct samples *samples);

// What a sample has of it.
int64_t samples_value(const struct sample *sample, enum samples_value value);
