// labels: equal numbers for what reads equally.
//
// Two stacks of a trace may be one to a reader: a library that was unmapped and mapped again has
// its code at other addresses, two processes of one executable have frames of their own, and on a
// terminal two calls on one line look the same. A label is a number that two of them share if and
// only if what is said about them is equal:
//
//     LABELS_EXACT     every frame at the same offset of the same file
//     LABELS_AS_SHOWN  every frame the same function, file and line (or, where the line is not
//                      known, the same offset)
//
// Labels are given when they are asked for; a stack costs its depth once. One thread.
#pragma once

#include "report/ask/names.h"

enum labels_kind { LABELS_EXACT, LABELS_AS_SHOWN };

struct labels;

// Both are borrowed. `names` is asked only for LABELS_AS_SHOWN.
struct labels *labels_new(enum labels_kind kind, const struct reader *reader, struct names *names);
void labels_free(struct labels *labels); // NULL is allowed

// For another question: stacks keep their labels, but none was asked for yet, and texts have none.
void labels_again(struct labels *labels);

enum labels_kind labels_kind(const struct labels *labels);
uint64_t labels_bytes(const struct labels *labels); // of memory, texts apart

// From 1, dense; 0 for stack 0 and for one that is not in the trace.
uint32_t labels_stack(struct labels *labels, stack_id stack);

// The least stack that has this label, of those that were asked for and their callers': the same in
// whatever order they were.
stack_id labels_first(const struct labels *labels, uint32_t label);

// A label for a text, from 1, dense among texts; and the text of it.
uint32_t labels_text(struct labels *labels, const char *text);
const char *labels_get_text(const struct labels *labels, uint32_t label);
