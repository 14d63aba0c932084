// gopcln: the functions and lines of a Go program, by the table that its own runtime reads.
//
// Each Go program has one (.gopclntab), also a stripped one: its panics name functions by it. Read
// are those of Go 1.18 and later. Format: struct pcHeader in Go's runtime/symtab.go.
#pragma once

#include "symbols/object.h"
#include "symbols/places.h"

struct gopcln;

// NULL: it is no Go program, or one of a version that is not known. Borrows `object`.
struct gopcln *gopcln_open(const struct object *object);
void gopcln_close(struct gopcln *gopcln); // NULL is allowed

// The function that has code of its own at `address`, with the line unless that is one of a
// function that was inlined. False: no function of Go's is there.
bool gopcln_find(const struct gopcln *gopcln, uint64_t address, struct place *place);
