// A pass up to where the window begins, with lives.h for blocks and trim_vm.h for mappings. What
// lives then was begun by events, and the numbers of these are what is kept. For example, with a
// window from event 4 on:
//
//     0  t  malloc         0x10     kept: t's half, open at 4, has ended its block
//     1  u  malloc         0x20     not kept: it has ended
//     2  u  free           0x20     nor this
//     3  t  realloc-free   0x10     kept: t's half is open at 4
//     4  t  realloc-alloc  0x40
//
// Without 0 and 3 the second half would move nothing in the trimmed trace.
#include "engine/replay/trim.h"

#include "base/mem.h"
#include "engine/replay/lives.h"
#include "engine/replay/trim_vm.h"
#include "trace/effect.h"
#include "trace/reader_pass.h"

#include <stdlib.h>

// The first half of a realloc that is still open: it, and the call that began its block.
struct half {
	bool open, known;
	uint64_t number, begun;
};

struct reading {
	struct trim *trim;
	struct trim_vm *vm;
	struct half *halves; // by thread
	size_t count, capacity;
};

static void keep(struct trim *trim, uint64_t number)
{
	*MEM_ADD(trim->numbers, trim->count, trim->capacity) = number;
}

static struct half *half_of(struct reading *reading, thread_id thread)
{
	if (thread >= reading->count)
		reading->count = thread + (size_t)1;
	return MEM_REACH(reading->halves, reading->capacity, thread);
}

// The last end of a thread, in case that it is a first half.
static void end(void *context, const struct lives_block *block, const struct lives_end *end)
{
	struct half *half;

	if (end->cause != LIVES_REALLOC || end->thread == TRACE_NONE)
		return;
	half = half_of(context, end->thread);
	half->begun = block->number;
	half->known = block->origin == LIVES_BEGUN;
}

// Copies of a parent's blocks and orphans have no call of their own.
static void each(void *context, const struct lives_block *block)
{
	if (block->origin == LIVES_BEGUN)
		keep(context, block->number);
}

// Any call of a thread closes its half, a first half opens one. What it ended was told to `end`
// just before.
static void add_event(struct reading *reading, struct lives *lives, const struct trace_event *event)
{
	unsigned effect = effect_of(event->kind);
	struct half *half;

	trim_vm_add_event(reading->vm, event);
	if (event->vm)
		return;
	lives_add_event(lives, event);
	if (!(effect & EFFECT_CALL))
		return;
	half = half_of(reading, event->thread);
	half->open = effect & EFFECT_HALF;
	half->number = event->number;
}

static void keep_vm(void *context, uint64_t number)
{
	keep(context, number);
}

// Events rise in the trace but not in the order in which they are found here, so they are sorted.
static void gather(struct reading *reading, struct lives *lives)
{
	struct trim *trim = reading->trim;

	lives_each(lives, each, trim);
	for (size_t i = 0; i < reading->count; i++) {
		const struct half *half = &reading->halves[i];

		if (half->open && half->known)
			keep(trim, half->begun);
		if (half->open)
			keep(trim, half->number);
	}
	trim_vm_each(reading->vm, keep_vm, trim);
	if (trim->count)
		qsort(trim->numbers, trim->count, sizeof *trim->numbers, mem_compare_u64);
}

// Everything up to `from` is followed, and what lives then is what must be kept: the events that
// began it, in malloc's heaps and in the address space.
void trim_find(struct reader *reader, const struct moment_edge *from, struct progress *progress,
	       struct trim *trim)
{
	struct reading reading = { .trim = trim };
	const struct lives_watcher watcher = { .end = end, .context = &reading };
	struct lives *lives = lives_new(reader, &watcher, NULL);
	struct reader_pass pass = reader_pass_begin(reader, progress);

	ASSERT(from);
	*trim = (struct trim){ 0 };
	reading.vm = trim_vm_new(reader);
	while (reader_pass_next(&pass) != READER_END) {
		if (pass.item == READER_NOTE) {
			if (pass.note.time_ns <= from->time_ns) {
				lives_add_note(lives, &pass.note);
				trim_vm_add_note(reading.vm, &pass.note);
			}
			continue;
		}
		if (moment_passed(from, pass.event.number, pass.event.time_ns))
			break;
		trim->from_number = pass.event.number + 1;
		add_event(&reading, lives, &pass.event);
	}
	gather(&reading, lives);
	lives_free(lives);
	trim_vm_free(reading.vm);
	mem_free(reading.halves);
	reader_rewind(reader);
}

void trim_fini(struct trim *trim)
{
	mem_free(trim->numbers);
	*trim = (struct trim){ 0 };
}
