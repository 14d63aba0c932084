// A stack's number is higher than its caller's, so one pass from the last to the first sees what a
// stack calls before itself. For example, with p of a stripped program and q of the C library:
//
//     1 p+0x10 main   2 p+0x20 < 1   3 p+0x90 < 2   4 q+0x50 strdup < 3
//
// 4 ends in q, and 3 in p: what it calls is elsewhere. 2 and 1 end nowhere.
//
// The pages are a set of 64 bits by a hash of each page's number, so that two may share a bit and
// no page has two: as many bits are at least as many pages.
#include "report/ask/inferred.h"

#include "base/mem.h"

enum {
	PAGE_SHIFT = 12,
	PAGES_MIN = 8,
	SHARE = 4, // one in so many of the file's stacks
};

// What a stack calls.
enum {
	CALLS_INSIDE = 1, // of its own file
	CALLS_OUTSIDE = 2,
};

// A call site, where stacks end in its file.
struct site {
	uint64_t pages; // of its callers
	uint32_t ends;
};

struct inferred {
	const struct reader *reader;
	struct site *sites; // by frame
	uint32_t *ends;     // by module
	uint32_t stacks_count, frames_count;
};

struct inferred *inferred_new(const struct reader *reader)
{
	struct inferred *inferred = mem_alloc(1, sizeof *inferred);

	inferred->reader = reader;
	return inferred;
}

void inferred_free(struct inferred *inferred)
{
	if (inferred)
		MEM_FREE(inferred->sites, inferred->ends, inferred);
}

static uint64_t page_bit(const struct trace_frame *frame)
{
	uint64_t page = (frame->pc >> PAGE_SHIFT) + ((uint64_t)frame->module << 40);

	return UINT64_C(1) << (page * UINT64_C(0x9e3779b97f4a7c15) >> 58);
}

// One stack of the pass. Parents that are not lower are damage, and callers of nothing.
static void count_stack(struct inferred *inferred, stack_id id, uint8_t *calls)
{
	const struct reader *reader = inferred->reader;
	const struct trace_stack *stack = reader_stack(reader, id), *caller = NULL;
	const struct trace_frame *frame = reader_frame(reader, stack->frame), *from = NULL;

	ASSERT(id < inferred->stacks_count);
	if (stack->parent > 0 && stack->parent < id)
		caller = reader_stack(reader, stack->parent);
	if (caller)
		from = reader_frame(reader, caller->frame);
	if (!frame)
		return;
	if (from)
		calls[stack->parent] |= from->module == frame->module ? CALLS_INSIDE
								      : CALLS_OUTSIDE;
	if (calls[id] == CALLS_INSIDE || frame->module >= reader_modules_count(reader))
		return;
	inferred->ends[frame->module]++;
	inferred->sites[stack->frame].ends++;
	if (from)
		inferred->sites[stack->frame].pages |= page_bit(from);
}

static void count(struct inferred *inferred)
{
	uint8_t *calls;

	MEM_FREE(inferred->sites, inferred->ends);
	inferred->stacks_count = reader_stacks_count(inferred->reader);
	inferred->frames_count = reader_frames_count(inferred->reader);
	inferred->sites = mem_alloc(inferred->frames_count, sizeof *inferred->sites);
	inferred->ends = mem_alloc(reader_modules_count(inferred->reader), sizeof *inferred->ends);
	calls = mem_alloc(inferred->stacks_count, sizeof *calls);
	for (stack_id id = inferred->stacks_count; id-- > 1;)
		count_stack(inferred, id, calls);
	MEM_FREE(calls);
}

bool inferred_match(struct inferred *inferred, frame_id frame)
{
	const struct trace_frame *known = reader_frame(inferred->reader, frame);
	const struct site *site;

	if (!known || known->module == 0)
		return false;
	if (!inferred->sites || reader_stacks_count(inferred->reader) / 2 >= inferred->stacks_count)
		count(inferred);
	if (frame >= inferred->frames_count)
		return false;
	site = &inferred->sites[frame];
	ASSERT(site->ends >= (uint32_t)__builtin_popcountll(site->pages));
	return __builtin_popcountll(site->pages) >= PAGES_MIN &&
	       site->ends >= inferred->ends[known->module] / SHARE;
}
