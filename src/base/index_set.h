// index_set: positions in an array of the caller's, found by what is there.
//
// Holds 8 bytes for a position and what is free between them; the items themselves stay with the
// caller, who says by `same` whether one is what is looked for. `struct index_set set = { 0 };` is
// an empty one. Nothing is removed. One thread.
//
// For example, names that are kept once each, in an array:
//
//     at = index_set_put(&set, index_set_hash_text(name), same, names, name, count);
//     if (at == count)
//             names[count++] = name;      it is new
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INDEX_SET_NONE UINT32_MAX

// Three quarters full at most, then it doubles: 8 bytes a slot.
struct index_set {
	struct index_set_slot *slots; // private
	size_t capacity;              // a power of two, or 0
	size_t count;
	size_t most;      // the caller's: so many may come, and a large table has room at once
	uint32_t *firsts; // private: by number, see index_set_put_by
	size_t firsts_capacity;
};

// Whether `key` is what is at `position`.
// Called for those whose hashes agree as far as they are kept. `context` is what the caller gave.
typedef bool index_set_same(const void *context, uint32_t position, const void *key);

// Where the key is, or INDEX_SET_NONE. Equal keys have equal hashes.
uint32_t index_set_find(const struct index_set *set, uint64_t hash, index_set_same *same,
			const void *context, const void *key);

// The same; where it is not there, it is at `position` from now on, which is returned.
uint32_t index_set_put(struct index_set *set, uint64_t hash, index_set_same *same,
		       const void *context, const void *key, uint32_t position);

// The same for keys that have a number in them, of which there are not many more than items. The
// first item of each number is found by it, without a look at the slots: where most have a number
// of their own, as the frames of stacks do, that saves a miss of the cache for each. A set is used
// in one way or in the other.
uint32_t index_set_find_by(const struct index_set *set, uint32_t number, uint64_t hash,
			   index_set_same *same, const void *context, const void *key);
uint32_t index_set_put_by(struct index_set *set, uint32_t number, uint64_t hash,
			  index_set_same *same, const void *context, const void *key,
			  uint32_t position);

// Of memory, items apart.
uint64_t index_set_bytes(const struct index_set *set);

// Accepts { 0 }. The items stay: they are the caller's.
void index_set_fini(struct index_set *set);

// A hash of some numbers; of a text.
uint64_t index_set_hash(const uint64_t *numbers, size_t count);
uint64_t index_set_hash_text(const char *text);
