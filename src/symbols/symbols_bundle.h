// symbols_bundle: the names of one file's addresses, packed, to travel inside a trace.
//
// A trace asks for a few thousand addresses of a file, not for its symbol table. So a bundle holds
// just those, with their functions, files, lines and inlining, and reads the same on any machine.
// Names are as the compiler wrote them; demangling comes later. All numbers are little-endian:
//
//     8  "TIDENAME"
//     4  version, 1
//     4  entries_count
//     4  places_count
//     4  texts_bytes
//     entries_count x { 8 offset, 4 index of its first place, 4 how many }, by rising offset
//     places_count x { 4 function, 4 file, 4 line }; function and file are offsets into the texts
//     texts_bytes: NUL-terminated texts; the first is empty and means "not known"
//
// It is looked into where it is; nothing is unpacked. It is as untrusted as its trace.
#pragma once

#include "base/err.h"
#include "symbols/places.h"

// A bundle that is read. Borrows the bytes.
struct symbols_bundle {
	const uint8_t *entries, *places;
	const char *texts;
	uint32_t entries_count, places_count, texts_bytes;
};

// False: not a bundle, or not whole.
bool symbols_bundle_open(struct symbols_bundle *bundle, const void *bytes, size_t size,
			 struct err *err);

// Add the places at `offset`, innermost first. False if the bundle does not know it; *places is
// then unchanged. Texts are borrowed from the bundle's bytes.
bool symbols_bundle_find(const struct symbols_bundle *bundle, uint64_t offset,
			 struct places *places);

// A bundle that is made.
struct symbols_bundle_maker;
struct symbols_bundle_maker *symbols_bundle_maker_new(void);
void symbols_bundle_maker_free(struct symbols_bundle_maker *maker); // NULL is allowed

// Each offset once, in any order.
void symbols_bundle_add(struct symbols_bundle_maker *maker, uint64_t offset,
			const struct places *places);

// The bytes; the caller owns them (mem_free). Once, after the last symbols_bundle_add.
void *symbols_bundle_take(struct symbols_bundle_maker *maker, size_t *size);
