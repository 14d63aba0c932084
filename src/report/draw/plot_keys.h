// plot_keys: the values of a key as numbers: a group for each cell, by what a person calls it.
//
// Values that read the same are one. Numbers are given when they are asked for, from 0.
#pragma once

#include "base/map.h"
#include "report/ask/query_context.h"
#include "report/draw/plot.h"

struct plot_keys {
	struct query_context *asked; // borrowed
	enum plot_key key;
	char **names; // owned, by number
	size_t count, capacity;
	struct map by_text;  // private
	struct map by_value; // private
};

void plot_keys_init(struct plot_keys *keys, struct query_context *asked, enum plot_key key);
void plot_keys_fini(struct plot_keys *keys); // accepts { 0 }

// The number of the cell's value.
uint32_t plot_keys_of(struct plot_keys *keys, const struct window_cell *cell);
