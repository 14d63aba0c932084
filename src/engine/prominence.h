// prominence: where a curve rises and falls back, and how high.
//
// A curve is a level at the edges of a window. A *hill* above a height h is a longest stretch of
// edges where the level is above h. Two hills that touch a valley are distinguished if each rises
// at least `rise_min` above it (topographic prominence: Llobera, "Building past landscape
// perception with GIS"; persistence in the merge tree of a function, Edelsbrunner and Harer). What
// is reported:
//
//     a spike      one top that is distinguished, down to its *base*: the higher of the two valleys
//                  beside it. Where the window ends before such a valley, the lowest level on
//                  the way there stands for it. Its height, top - base, is at least rise_min.
//     a group      a hill with several spikes in it, down to its own base. What it has besides
//                  them is its *body*: up to the lowest valley inside it. Its height, body - base,
//                  is at least rise_min too.
//
//       .     .          .
//      / \   / \        / \       three spikes; the first two form a group, which rises and
//     /   \_/   \      /   \_     falls back once more below them
//    /           \____/
//
// So a spike on a high plateau has the height that a reader sees, though the plateau itself is
// most of the level; and the plateau is reported too if it comes and goes.
//
// One pass, constant time a step on average. Memory grows with the number of groups that are in
// each other, at most (highest level / rise_min), never with the length of the curve.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct prominence_hill {
	uint64_t top, body, base; // levels; of a spike, body is top
	uint64_t top_edge;        // the first where the level was `top`
	uint64_t body_edge;       // one where it was `body`
	uint64_t from;            // an edge before the top where the level was `base` or less
	uint64_t spikes;          // 1: a spike; more: a group of so many
};

struct prominence_entry; // private

struct prominence {
	uint64_t rise_min; // at least 1
	void (*tell)(void *context, const struct prominence_hill *hill);
	void *context; // borrowed

	struct prominence_entry *stack; // the rest is private
	size_t count, capacity;
	uint64_t level, edge;
	bool rising;
};

// `level` is that of the window's first edge. `tell` is called for each hill as soon as it is
// known, in no useful order.
void prominence_init(struct prominence *crest, uint64_t rise_min, uint64_t edge, uint64_t level,
		     void (*tell)(void *context, const struct prominence_hill *hill),
		     void *context);
void prominence_fini(struct prominence *crest);

// The level from `edge` on. Edges rise.
void prominence_add(struct prominence *crest, uint64_t edge, uint64_t level);

// The window is over; tells what is still open.
void prominence_finish(struct prominence *crest);
