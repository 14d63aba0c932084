// asm_labels: the names that a text gives to processes, threads, modules, frames and stacks.
//
// A label is known from the line that defines it to the end of the text, by a class and its
// characters. Finding one is a look into a hash table. One thread.
#pragma once

#include "base/map.h"
#include "base/str.h"

// One table for all classes: "p1" as a process and "p1" as a thread are two labels. `texts` has the
// labels one after the other, each with its NUL, so an entry is an offset and stays right when it
// grows.
struct asm_labels {
	struct map map; // hash to index in `entries`, + 1; a taken hash moves on by one
	struct asm_label *entries;
	size_t count, capacity;
	struct str texts;
};

struct asm_label {
	size_t text_at;
	uint32_t id;
	char class; // 'p', 't', 'm', 'f', 's', or one of the caller's own
};

void asm_labels_fini(struct asm_labels *labels); // accepts { 0 }

// False if there is none.
bool asm_labels_find(const struct asm_labels *labels, char class, const char *text, uint32_t *id);

// False if there is one already.
bool asm_labels_add(struct asm_labels *labels, char class, const char *text, uint32_t id);
