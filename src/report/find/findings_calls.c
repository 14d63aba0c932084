// Findings about calls that could be saved: temporaries, containers that grow, blocks that another
// thread frees. What is counted by stack is told by line: all stacks that have the program's own
// innermost frame in common.
#include "report/find/findings_own.h"

#include "base/mem.h"
#include "base/radix.h"

enum {
	SAME_CALL_FRAMES = 3, // between where it is allocated and the call that frees it too
	// Steps of a buffer in the mean, from which on reserving is worth while.
	STEPS_EACH = 3,
	// Steps of one buffer, at least, before its growth is called constant.
	CONSTANT_LONGEST = 16,
};

// What one line of a process does: `count` to `same_call` are of pairs, `chains` to `by_copy` of
// buffers that grow.
struct group {
	process_id process;
	uint32_t line;
	stack_id stack, freed_by; // of the pair with most blocks, and how many those are
	uint64_t most;
	uint64_t count, bytes, size_max, temporary, elsewhere, same_call;
	uint64_t chains, steps, longest, constant, copied; // buffers that grow
	bool by_copy;
};

// Rows of the facts by line: which process, line and way of growing, and the row's number. The
// lines are taken one by one, since there may be as many as rows.
struct groups {
	struct radix_pair *list; // owned
	size_t count, capacity;
};

enum { PROCESS_SHIFT = 33 };

// A row of a process, of the line of a stack. Those without a line of the program's own have frame
// 0, which is passed over.
static void add_row(struct findings *findings, struct groups *groups, process_id process,
		    stack_id stack, bool by_copy, size_t row)
{
	uint64_t line = findings_line(findings, stack);

	ASSERT(process < UINT32_C(1) << 31);
	if (!line)
		return;
	*MEM_ADD(groups->list, groups->count, groups->capacity) =
		(struct radix_pair){ (uint64_t)process << PROCESS_SHIFT | line << 1 | by_copy,
				     row };
}

// Where a line's rows end.
static size_t end_of(const struct groups *groups, size_t first)
{
	size_t end = first;

	while (end < groups->count && groups->list[end].key == groups->list[first].key)
		end++;
	return end;
}

// Go through the lines, each with its rows in their order; the list of rows is freed.
static bool
consider_each(struct findings *findings, const struct findings_kind *kind, struct groups *groups,
	      void (*add)(struct findings *findings, struct group *group, size_t row),
	      void (*consider)(struct findings *findings, const struct findings_kind *kind,
			       const struct group *group))
{
	struct radix_pair *scratch = mem_alloc_table(groups->count + 1, sizeof *scratch);

	ASSERT(add && consider);
	radix_sort_pairs(groups->list, scratch, groups->count);
	mem_free(scratch);
	for (size_t first = 0, end; first < groups->count; first = end) {
		uint64_t key = groups->list[first].key;
		struct group group = {
			.process = (process_id)(key >> PROCESS_SHIFT),
			.line = (uint32_t)(key >> 1),
			.by_copy = key & 1,
		};

		end = end_of(groups, first);
		for (size_t i = first; i < end; i++)
			add(findings, &group, (size_t)groups->list[i].value);
		consider(findings, kind, &group);
	}
	mem_free(groups->list);
	return true;
}

// Frames from a stack to its root; 0 of no stack.
static size_t depth_of(const struct reader *reader, stack_id stack)
{
	size_t depth = 0;

	for (; stack; stack = reader_stack(reader, stack)->parent)
		depth++;
	return depth;
}

// Whether a call that is on both stacks, with the same callers, is near the allocation: it returned
// to the same place in both, so it is one function.
static bool is_same_call(struct findings *findings, stack_id stack, stack_id freed_by)
{
	const struct reader *reader = findings->asked->reader;
	stack_id a = findings_user(findings, stack), b = findings_user(findings, freed_by);
	size_t a_depth = depth_of(reader, a), b_depth = depth_of(reader, b), frames = 1;
	stack_id a_caller, b_caller;

	if (!a || !b)
		return false;
	// Both are brought to one depth, and then walked outwards side by side until their callers
	// are the same: main > parse > make > malloc and main > parse > drop > free meet below
	// parse, one frame from the allocation.
	for (; a_depth > b_depth; a_depth--, frames++)
		a = reader_stack(reader, a)->parent;
	for (; b_depth > a_depth; b_depth--)
		b = reader_stack(reader, b)->parent;
	for (;; frames++) {
		a_caller = reader_stack(reader, a)->parent;
		b_caller = reader_stack(reader, b)->parent;
		if (a_caller == b_caller)
			return a_caller && frames <= SAME_CALL_FRAMES;
		a = a_caller;
		b = b_caller;
	}
}

// The stack that is shown for a line is that of the pair with most blocks.
static void add_pair(struct findings *findings, struct group *group, size_t row)
{
	const struct findings_facts *facts = findings->facts;
	const struct findings_pair *pair = &facts->pairs[row];

	ASSERT(row < facts->pairs_count);
	group->count += pair->count;
	group->bytes += pair->bytes;
	group->temporary += pair->temporary;
	group->elsewhere += pair->elsewhere;
	if (pair->size_max > group->size_max)
		group->size_max = pair->size_max;
	if (facts->free_stacks && is_same_call(findings, pair->stack, pair->freed_by))
		group->same_call += pair->count;
	if (pair->count <= group->most)
		return;
	group->most = pair->count;
	group->stack = pair->stack;
	group->freed_by = pair->freed_by;
}

static bool consider_pairs(struct findings *findings, const struct findings_kind *kind,
			   void (*consider)(struct findings *findings,
					    const struct findings_kind *kind,
					    const struct group *group))
{
	const struct findings_facts *facts = findings->facts;
	struct groups groups = { 0 };

	for (size_t i = 0; i < facts->pairs_count; i++)
		add_row(findings, &groups, facts->pairs[i].process, facts->pairs[i].stack, false,
			i);
	return consider_each(findings, kind, &groups, add_pair, consider);
}

// ---- temporaries ----

// Nineteen of twenty must be freed at once: below that the line has other blocks too, which no
// buffer on the stack can replace.
static void consider_temporaries(struct findings *findings, const struct findings_kind *kind,
				 const struct group *group)
{
	bool same = group->same_call >= group->count - group->count / 20;
	struct finding *finding;

	ASSERT(group->count >= group->temporary);
	if (group->temporary < findings_calls_min(findings) ||
	    group->temporary < group->count - group->count / 20)
		return;
	finding = findings_add(findings, kind, FINDINGS_CERTAIN, group->process, group->stack);
	findings_say(&finding->what,
		     "%s allocates %s blocks that are freed before the next allocation%s, the "
		     "largest of %s.",
		     findings_function(findings, group->stack), STR_COUNT(group->temporary),
		     same ? ", by the same call" : "", STR_BYTES(group->size_max));
	findings_say(&finding->why,
		     "counted: their thread frees them, and allocates nothing between%s",
		     findings->facts->free_stacks
			     ? ""
			     : "; record --free-stacks shows which call frees them");
	if (group->size_max <= 1024)
		findings_say(&finding->advice, "a buffer on the stack, or one that is kept, saves "
					       "both calls");
	else
		findings_say(&finding->advice, "a buffer that is kept and grows to the largest, "
					       "saves both calls");
	findings_figure(finding, "temporary_count", "temporary", FINDINGS_COUNT, group->temporary);
	findings_figure(finding, "freed_count", "freed", FINDINGS_COUNT, group->count);
	findings_figure(finding, "bytes", "bytes", FINDINGS_BYTES, group->bytes);
	findings_figure(finding, "size_bytes_max", "largest", FINDINGS_BYTES, group->size_max);
	// Both the allocation and the free go.
	finding->saves_calls = 2 * group->temporary;
	// One byte more than the mean: 0 would say that they have no one size.
	finding->saves_size = group->bytes / group->count + 1;
	if (findings->facts->free_stacks && group->freed_by) {
		finding->other_role = "freed by";
		finding->other_stack = group->freed_by;
	}
	findings_command(findings, finding, "report", "", true, true);
}

bool findings_temporaries(struct findings *findings, const struct findings_kind *kind, struct err *)
{
	return consider_pairs(findings, kind, consider_temporaries);
}

// Saves nothing that could be counted: what it costs depends on the allocator.
static void consider_elsewhere(struct findings *findings, const struct findings_kind *kind,
			       const struct group *group)
{
	struct finding *finding;

	ASSERT(group->count >= group->elsewhere);
	if (group->elsewhere < findings_calls_min(findings) || group->elsewhere < group->count / 2)
		return;
	finding = findings_add(findings, kind, FINDINGS_CERTAIN, group->process, group->stack);
	findings_say(&finding->what, "%s of %s blocks of %s are freed by another thread.",
		     STR_COUNT(group->elsewhere), STR_COUNT(group->count),
		     findings_function(findings, group->stack));
	findings_say(&finding->why, "counted; what it costs is not measured");
	findings_say(&finding->advice, "hand them over in batches%s",
		     findings_is_glibc(findings, group->process)
			     ? ", or take an allocator that is made for it"
			     : "");
	findings_figure(finding, "elsewhere_count", "by another thread", FINDINGS_COUNT,
			group->elsewhere);
	findings_figure(finding, "freed_count", "freed", FINDINGS_COUNT, group->count);
	if (findings->facts->free_stacks && group->freed_by) {
		finding->other_role = "freed by";
		finding->other_stack = group->freed_by;
	}
	findings_command(findings, finding, "window", "--by thread,stack", true, true);
}

bool findings_elsewhere(struct findings *findings, const struct findings_kind *kind, struct err *)
{
	return consider_pairs(findings, kind, consider_elsewhere);
}

// ---- containers ----

// A line that grows by realloc and by copies has a group of each, as the advice differs. The stack
// that is shown is the one with most steps.
static void add_chains(struct findings *findings, struct group *group, size_t row)
{
	const struct findings_chains *chains = &findings->facts->chains[row];

	ASSERT(row < findings->facts->chains_count);
	group->chains += chains->chains;
	group->steps += chains->steps;
	group->constant += chains->constant;
	group->copied += chains->copied;
	if (chains->longest > group->longest)
		group->longest = chains->longest;
	if (chains->size_max > group->size_max)
		group->size_max = chains->size_max;
	if (chains->steps <= group->most)
		return;
	group->most = chains->steps;
	group->stack = chains->stack;
}

static bool consider_chains(struct findings *findings, const struct findings_kind *kind,
			    void (*consider)(struct findings *findings,
					     const struct findings_kind *kind,
					     const struct group *group))
{
	const struct findings_facts *facts = findings->facts;
	struct groups groups = { 0 };

	for (size_t i = 0; i < facts->chains_count; i++)
		add_row(findings, &groups, facts->chains[i].process, facts->chains[i].stack,
			facts->chains[i].by_copy, i);
	return consider_each(findings, kind, &groups, add_chains, consider);
}

// A buffer of 4 KiB that grows 16 times by 4 KiB has copied 544 KiB. So little is not worth a
// finding: the copies must come to four times what matters of bytes.
static bool grows_by_constants(const struct findings *findings, const struct group *group)
{
	return group->longest >= CONSTANT_LONGEST && group->constant >= group->steps / 4 * 3 &&
	       group->copied >= 4 * findings_bytes_min(findings);
}

// The figures that both kinds of growing buffers have; what is said about them is the caller's.
static struct finding *add_container(struct findings *findings, const struct findings_kind *kind,
				     const struct group *group)
{
	struct finding *finding =
		findings_add(findings, kind, FINDINGS_CERTAIN, group->process, group->stack);

	findings_figure(finding, "buffers", "buffers", FINDINGS_COUNT, group->chains);
	findings_figure(finding, "steps", "steps", FINDINGS_COUNT, group->steps);
	findings_figure(finding, "longest", "most of one", FINDINGS_COUNT, group->longest);
	findings_figure(finding, "constant_steps", "by a constant", FINDINGS_COUNT,
			group->constant);
	findings_figure(finding, "copied_bytes_max", "copied at most", FINDINGS_BYTES,
			group->copied);
	findings_figure(finding, "size_bytes_max", "largest", FINDINGS_BYTES, group->size_max);
	findings_command(findings, finding, "report", "", true, true);
	return finding;
}

// One that grows by constants is reported as that alone.
static void consider_containers(struct findings *findings, const struct findings_kind *kind,
				const struct group *group)
{
	struct finding *finding;

	if (group->steps < findings_calls_min(findings) ||
	    group->steps < STEPS_EACH * group->chains || grows_by_constants(findings, group))
		return;
	finding = add_container(findings, kind, group);
	findings_say(&finding->what, "%s buffer%s of %s grow%s step by step: %s steps.",
		     STR_COUNT(group->chains), group->chains == 1 ? "" : "s",
		     findings_function(findings, group->stack), group->chains == 1 ? "s" : "",
		     STR_COUNT(group->steps));
	findings_say(&finding->why, group->by_copy
					    ? "a larger block is allocated by the same stack, and "
					      "then the old one is freed"
					    : "counted: each step is a realloc to a larger size");
	findings_say(&finding->advice,
		     "reserve what it will need, or begin with a size that mostly fits");
	finding->saves_calls = group->steps * (group->by_copy ? 2 : 1);
	if (group->by_copy)
		finding->sure = FINDINGS_LIKELY;
}

bool findings_containers(struct findings *findings, const struct findings_kind *kind, struct err *)
{
	return consider_chains(findings, kind, consider_containers);
}

// By copies it is likely and not certain: two buffers of one line look like one that grew.
static void consider_constant_growth(struct findings *findings, const struct findings_kind *kind,
				     const struct group *group)
{
	struct finding *finding;

	if (!grows_by_constants(findings, group))
		return;
	finding = add_container(findings, kind, group);
	findings_say(&finding->what,
		     "%s enlarges a buffer by constant amounts: %s steps, up to %s copied.",
		     findings_function(findings, group->stack), STR_COUNT(group->steps),
		     STR_BYTES(group->copied));
	findings_say(&finding->why, "%s",
		     group->by_copy ? "a larger block is allocated by the same stack, and "
				      "then the old one is freed, mostly by as much as "
				      "before; a queue of blocks whose sizes grow looks "
				      "the same"
				    : "counted: most steps are as large as the step "
				      "before");
	if (group->by_copy)
		finding->sure = FINDINGS_LIKELY;
	findings_say(&finding->advice, "enlarge by half or double");
	finding->saves_calls = group->steps;
}

bool findings_constant_growth(struct findings *findings, const struct findings_kind *kind,
			      struct err *)
{
	return consider_chains(findings, kind, consider_constant_growth);
}
