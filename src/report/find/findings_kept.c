// What was learned from the lives of blocks, kept beside the trace's index: the pass over them
// takes a hundred nanoseconds an event, and its result is of the size of the stacks.
//
// For example 100 million events of a compiler: 16,118 pairs and 866 rows of buffers that grow are
// 220 KB, and are read in a millisecond where the pass takes 4 s.
#include "report/find/findings_own.h"

#include "base/mem.h"
#include "engine/shelf.h"

#include <string.h>

enum {
	VERSION = 2, // raise it when a fact changes its meaning, or is found in another way
	PAIR_NUMBERS = 8,
	CHAINS_NUMBERS = 9,
};

static const char name[] = "lives";

// What the file must begin with.
static struct shelf_stamp stamp_of(void)
{
	struct shelf_stamp stamp = {
		.magic = "TIDELIV",
		.version = VERSION,
		.sizes = { sizeof(struct findings_orphan), sizeof(struct findings_failed),
			   sizeof(struct findings_last), sizeof(struct findings_lock) },
	};

	return stamp;
}

// ---- writing ----

static void put_numbers(struct index_out *out, const uint64_t *numbers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		index_out_put_varint(out, numbers[i]);
}

// Pairs and chains, of which there may be as many as stacks, as varints; all else as it is.
void findings_keep_lives(const struct findings *findings, struct shelf *shelf)
{
	const struct findings_facts *facts = findings->facts;
	struct shelf_stamp stamp = stamp_of();
	struct index_out *out = shelf_new(shelf, name, &stamp);

	if (!out)
		return;
	index_out_put_u64(out, facts->pairs_count);
	for (size_t i = 0; i < facts->pairs_count; i++) {
		const struct findings_pair *pair = &facts->pairs[i];
		const uint64_t numbers[PAIR_NUMBERS] = {
			pair->process, pair->stack,    pair->freed_by,  pair->count,
			pair->bytes,   pair->size_max, pair->temporary, pair->elsewhere,
		};

		put_numbers(out, numbers, PAIR_NUMBERS);
	}
	index_out_put_u64(out, facts->chains_count);
	for (size_t i = 0; i < facts->chains_count; i++) {
		const struct findings_chains *chains = &facts->chains[i];
		const uint64_t numbers[CHAINS_NUMBERS] = {
			chains->process, chains->stack,    chains->chains,
			chains->steps,   chains->longest,  chains->constant,
			chains->copied,  chains->size_max, chains->by_copy,
		};

		put_numbers(out, numbers, CHAINS_NUMBERS);
	}
	index_out_put_array(out, facts->orphans, facts->orphans_count, sizeof *facts->orphans);
	index_out_put_array(out, facts->failed, facts->failed_count, sizeof *facts->failed);
	index_out_put_array(out, facts->lasts, facts->lasts_count, sizeof *facts->lasts);
	index_out_put_array(out, facts->locks, facts->locks_count, sizeof *facts->locks);
	shelf_end(shelf, out);
}

// ---- reading ----

// Where it happened, held against the trace: what follows asks for both without looking.
static void check_place(struct index_in *in, const struct reader *reader, uint64_t process,
			uint64_t stack)
{
	in->bad |= process >= reader_processes_count(reader) ||
		   stack >= reader_stacks_count(reader);
}

// What the kinds of findings rely on: so many calls of a pair as there are events at most, so that
// sums of them fit; and at least one, by which they divide.
static void check_pair(struct index_in *in, const struct reader *reader,
		       const struct findings_pair *pair)
{
	in->bad |= pair->count == 0 || pair->count > reader_stats(reader)->events ||
		   pair->temporary > pair->count || pair->elsewhere > pair->count;
}

static void check_orphan(struct index_in *in, const struct reader *reader,
			 const struct findings_orphan *orphan)
{
	check_place(in, reader, orphan->process, orphan->stack);
	check_place(in, reader, orphan->process, orphan->freed_by);
	check_place(in, reader, orphan->process, orphan->allocated_by);
	in->bad |= orphan->heap && orphan->heap >= reader_heaps_count(reader);
	in->bad |= orphan->other_heap && orphan->other_heap >= reader_heaps_count(reader);
	in->bad |= !index_in_is_flag(&orphan->refused) || !index_in_is_flag(&orphan->freed) ||
		   !index_in_is_flag(&orphan->inside) || !index_in_is_flag(&orphan->mixed);
}

static void take_numbers(struct index_in *in, uint64_t *numbers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		numbers[i] = index_in_take_varint(in);
}

static void take_pairs(struct index_in *in, const struct reader *reader,
		       struct findings_facts *facts)
{
	uint64_t n[PAIR_NUMBERS];

	facts->pairs_count = facts->pairs_capacity = index_in_take_count(in, PAIR_NUMBERS);
	facts->pairs = mem_alloc(facts->pairs_count + 1, sizeof *facts->pairs);
	for (size_t i = 0; i < facts->pairs_count && !in->bad; i++) {
		take_numbers(in, n, PAIR_NUMBERS);
		check_place(in, reader, n[0], n[1]);
		check_place(in, reader, n[0], n[2]);
		facts->pairs[i] = (struct findings_pair){
			.process = (process_id)n[0],
			.stack = (stack_id)n[1],
			.freed_by = (stack_id)n[2],
			.count = n[3],
			.bytes = n[4],
			.size_max = n[5],
			.temporary = n[6],
			.elsewhere = n[7],
		};
		check_pair(in, reader, &facts->pairs[i]);
	}
}

static void take_chains(struct index_in *in, const struct reader *reader,
			struct findings_facts *facts)
{
	uint64_t n[CHAINS_NUMBERS];

	facts->chains_count = facts->chains_capacity = index_in_take_count(in, CHAINS_NUMBERS);
	facts->chains = mem_alloc(facts->chains_count + 1, sizeof *facts->chains);
	for (size_t i = 0; i < facts->chains_count && !in->bad; i++) {
		take_numbers(in, n, CHAINS_NUMBERS);
		check_place(in, reader, n[0], n[1]);
		facts->chains[i] = (struct findings_chains){
			.process = (process_id)n[0],
			.stack = (stack_id)n[1],
			.chains = n[2],
			.steps = n[3],
			.longest = n[4],
			.constant = n[5],
			.copied = n[6],
			.size_max = n[7],
			.by_copy = n[8],
		};
	}
}

static void take_rest(struct index_in *in, const struct reader *reader,
		      struct findings_facts *facts)
{
	facts->orphans = index_in_take_array(in, &facts->orphans_count, sizeof *facts->orphans);
	facts->failed = index_in_take_array(in, &facts->failed_count, sizeof *facts->failed);
	facts->lasts = index_in_take_array(in, &facts->lasts_count, sizeof *facts->lasts);
	facts->locks = index_in_take_array(in, &facts->locks_count, sizeof *facts->locks);
	for (size_t i = 0; i < facts->orphans_count; i++)
		check_orphan(in, reader, &facts->orphans[i]);
	for (size_t i = 0; i < facts->failed_count; i++) {
		const struct findings_failed *failed = &facts->failed[i];

		check_place(in, reader, failed->process, failed->stack);
		in->bad |= failed->count ? failed->size_min > failed->size_max : !failed->in_place;
	}
	for (size_t i = 0; i < facts->lasts_count; i++)
		check_place(in, reader, i, facts->lasts[i].stack);
	for (size_t i = 0; i < facts->locks_count; i++)
		check_place(in, reader, facts->locks[i].process, facts->locks[i].stack);
}

bool findings_take_lives(struct findings *findings, const struct shelf *shelf)
{
	const struct reader *reader = findings->asked->reader;
	struct findings_facts *facts = findings->facts;
	const struct findings_facts before = *facts;
	struct shelf_stamp stamp = stamp_of();
	struct index_in in;
	bool good;

	if (!shelf_open(shelf, name, &stamp, &in))
		return false;
	take_pairs(&in, reader, facts);
	take_chains(&in, reader, facts);
	take_rest(&in, reader, facts);
	good = !in.bad && in.at == in.end;
	index_in_close(&in);
	if (good)
		return true;
	MEM_FREE(facts->pairs, facts->chains, facts->orphans, facts->failed, facts->lasts,
		 facts->locks);
	*facts = before;
	return false;
}
