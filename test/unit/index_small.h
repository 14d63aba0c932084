// An index in which a trace of a few thousand events takes every path: blocks of few steps, and a
// table of living blocks that is soon full.
//
// The linker puts the function below in the place of the engine's (--wrap), in programs that have
// this header. Shapes are asked for as users may: by TIDEMARK_INDEX.
#pragma once

#include "engine/index/index_pair.h"

#include <stdlib.h>

// Bytes that the table may have; 0: what the engine gives it.
static uint64_t index_small_alive;

bool __real_index_pair_open(struct index_pair *pair, struct index_feed *feed, struct cells *cells,
			    int directory, uint64_t alive_max, struct err *err);
bool __wrap_index_pair_open(struct index_pair *pair, struct index_feed *feed, struct cells *cells,
			    int directory, uint64_t alive_max, struct err *err);

bool __wrap_index_pair_open(struct index_pair *pair, struct index_feed *feed, struct cells *cells,
			    int directory, uint64_t alive_max, struct err *err)
{
	return __real_index_pair_open(pair, feed, cells, directory,
				      index_small_alive ? index_small_alive : alive_max, err);
}

// Builds from here on have small blocks, as they have from the beginning, or those of the usual
// size.
static inline void index_small_blocks(bool small)
{
	setenv("TIDEMARK_INDEX", small ? "tiny" : "auto", 1);
}

__attribute__((constructor)) static void index_small_begin(void)
{
	index_small_blocks(true);
}
