// window_own: what a window is, for its two parts alone: window_open.c opens, shares and closes it,
// window.c answers.
//
// For example a window of a small trace is `plain`: `heap` has all lifetimes, and `index` is empty.
#pragma once

#include "engine/index/index_ask.h"
#include "engine/index/plain.h"
#include "engine/window.h"

struct window {
	struct reader *reader; // borrowed
	bool shares;           // heap, own_vm, steps and index are another window's
	bool keeps;            // tables of one question for the next
	bool plain;            // answers come from `heap`, not from `index`
	struct plain heap;     // layer WINDOW_HEAP
	struct plain own_vm;   // layer WINDOW_VM, where there is no index
	struct plain *vm;      // that, or the index's
	struct plain_steps steps;
	struct index index;
	char *index_path; // for messages; where it is shared, borrowed; NULL: there is none
	struct index_clock clock;
	struct index_block numbers; // of the events of the steps that were asked for last
	struct window_facts facts;
	struct err err; // of a place that could not be found: all questions fail
};
