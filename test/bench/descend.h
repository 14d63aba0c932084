// descend: frames of different sizes, as deep as wanted, for the micro workloads.
//
// Eight functions that call themselves or each other through a table, so that no compiler makes
// one of them. Built without tail calls; with or without frame pointers, as the flags say.
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// What is done at the bottom, and with what.
typedef void descend_work(void *context);

struct descend {
	int depth;    // frames still to go
	uint64_t way; // which function next: three bits for each frame
	descend_work *work;
	void *context;
};

typedef void descend_step(struct descend *descend);
extern descend_step *const descend_steps[8];

// Keeps the compiler from leaving out what nobody reads.
static inline void descend_use(void *ptr)
{
	__asm__ volatile("" : : "r"(ptr) : "memory");
}

// Call work(context) below `depth` more frames, chosen by `way`.
static inline void descend_go(int depth, uint64_t way, descend_work *work, void *context)
{
	struct descend descend = { depth, way, work, context };

	descend_steps[way & 7](&descend);
}

static inline uint64_t descend_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static inline long descend_number(int argc, char **argv, int at, long usual)
{
	return argc > at ? strtol(argv[at], NULL, 10) : usual;
}
