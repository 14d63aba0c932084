// Rows by lifetime. Sums know nothing of lifetimes, so every end in the window is looked at, and
// everything that lives at its end. Two threads take half of the steps each.
#include "base/mem.h"
#include "engine/index_scan.h"
#include "os/thread.h"

struct part {
	struct index *index;
	const struct window_query *query;
	const uint32_t *of_cell;
	uint64_t from, to;
	bool spans; // and what lives at the window's end
	struct index_clock clock;
	struct window_result result;
	struct index_rows rows;
	struct err err;
	bool ok;
};

static void add_one(struct heap_amount *amount, uint64_t size)
{
	amount->count++;
	amount->bytes += size;
}

static void count_in_row(const struct window_query *query, struct window_row *row, uint64_t begin,
			 uint64_t end, enum window_end kind, uint64_t size)
{
	bool exits = kind == WINDOW_END_EXIT || kind == WINDOW_END_EXEC;
	bool ends = end >= query->from && end < query->to, begins = begin >= query->from;

	if (exits && ends)
		add_one(kind == WINDOW_END_EXEC ? &row->by_exec : &row->by_exit, size);
	if (kind == WINDOW_END_DESTROY && ends)
		add_one(&row->by_destroy, size);
	ends = ends && (!exits || query->exit_frees);
	add_one(&row->type[begins ? (ends ? WINDOW_AIFI : WINDOW_AIFO)
				  : (ends ? WINDOW_AOFI : WINDOW_AOFO)],
		size);
}

static void count(struct part *part, uint32_t cell, uint64_t begin, uint64_t end,
		  enum window_end kind, uint64_t lifetime_ns)
{
	const struct window_query *query = part->query;
	uint64_t size = cells_cell(&part->index->cells, cell).size;

	if (lifetime_ns < query->lifetime_min_ns || lifetime_ns > query->lifetime_max_ns)
		return;
	count_in_row(query, index_row(&part->rows, part->of_cell[cell]), begin, end, kind, size);
	count_in_row(query, &part->result.total, begin, end, kind, size);
}

// What ends in a block.
static bool count_block(struct part *part, const struct index_block *block)
{
	uint32_t i = part->from > block->first ? (uint32_t)(part->from - block->first) : 0;
	uint32_t end = part->to - block->first < block->count ? (uint32_t)(part->to - block->first)
							      : block->count;
	const struct index_run *run = block->runs, *runs_end = run + block->runs_count;

	for (; i < end; i++) {
		uint32_t cell = block->ops[i] >> 1;
		uint64_t begin_ns, begin;

		while (run + 1 < runs_end && run[1].at <= i)
			run++;
		if (!(block->ops[i] & 1) || part->of_cell[cell] == WINDOW_SKIP)
			continue;
		begin = block->begins[i];
		begin_ns = run->value;
		if (begin < block->first + run->at &&
		    !index_clock_time(&part->clock, part->index, begin, &begin_ns, &part->err))
			return false;
		count(part, cell, begin, block->first + i,
		      index_destroyed(part->index, block->first + i) ? WINDOW_END_DESTROY
								     : WINDOW_END_FREE,
		      run->value - begin_ns);
	}
	return true;
}

// What lives at the end of the window.
static bool count_spanning(void *context, uint32_t cell, uint64_t begin, uint64_t end)
{
	struct part *part = context;
	const struct index *index = part->index;
	process_id process =
		cells_site(&index->cells, cells_cell(&index->cells, cell).site)->process;
	uint64_t begin_ns = 0, end_ns = index->duration_ns;
	enum window_end kind = WINDOW_END_NEVER;

	if (part->of_cell[cell] == WINDOW_SKIP)
		return true;
	part->ok = index_clock_time(&part->clock, part->index, begin, &begin_ns, &part->err);
	if (end != WINDOW_NEVER) {
		part->ok = part->ok &&
			   index_clock_time(&part->clock, part->index, end, &end_ns, &part->err);
		kind = index_destroyed(index, end) ? WINDOW_END_DESTROY : WINDOW_END_FREE;
	} else if (process < index->exits_count && index->exits[process].step != WINDOW_NEVER) {
		kind = (enum window_end)index->exits[process].kind;
		end = index->exits[process].step;
		end_ns = index->exits[process].time_ns;
		if (part->query->exit_frees && end < part->query->from)
			return part->ok;
	}
	if (part->ok)
		count(part, cell, begin, end, kind, end_ns - begin_ns);
	return part->ok;
}

static void *count_part(void *context)
{
	struct part *part = context;
	const struct index_visitor visitor = { part, count_spanning };
	unsigned log2 = part->index->shape.block_log2;
	struct index_block block = { 0 };

	part->rows.result = &part->result;
	part->ok = true;
	for (uint64_t number = part->from >> log2; part->ok && number << log2 < part->to; number++)
		part->ok = index_block_load(part->index, number, INDEX_LIVES | INDEX_TIMES, &block,
					    &part->err) &&
			   count_block(part, &block);
	if (part->ok && part->spans &&
	    !index_spanning(part->index, part->query->to, part->query->to, &visitor, &part->err))
		part->ok = false;
	index_block_fini(&block);
	index_clock_fini(&part->clock);
	return NULL;
}

static void join_row(struct window_row *row, const struct window_row *other)
{
	for (unsigned i = 0; i < WINDOW_TYPES; i++)
		row->type[i] = window_sum(row->type[i], other->type[i]);
	row->by_exit = window_sum(row->by_exit, other->by_exit);
	row->by_exec = window_sum(row->by_exec, other->by_exec);
	row->by_destroy = window_sum(row->by_destroy, other->by_destroy);
}

static bool join(struct part *part, struct window_result *result, struct err *err)
{
	struct index_rows rows = { .result = result, .capacity = result->rows_count };

	if (part->ok) {
		for (uint32_t i = 0; i < part->result.rows_count; i++)
			join_row(index_row(&rows, i), &part->result.rows[i]);
		join_row(&result->total, &part->result.total);
	} else {
		*err = part->err;
	}
	mem_free(part->result.rows);
	return part->ok;
}

bool index_ask_lifetimes(struct index *index, const struct window_query *query,
			 struct window_result *result, struct err *err)
{
	uint64_t middle = query->from + (query->to - query->from) / 2;
	struct index_groups groups;
	struct index_scan scan = { .index = index,
				   .groups = &groups,
				   .groups_count = INDEX_GROUP_UNKNOWN };
	struct part parts[2];
	struct thread *thread;
	bool ok;

	index_groups_init(&groups, index, query);
	index_scan_prepare(&scan);
	for (int i = 0; i < 2; i++)
		parts[i] = (struct part){ .index = index,
					  .query = query,
					  .of_cell = scan.of_cell,
					  .from = i ? middle : query->from,
					  .to = i ? query->to : middle,
					  .spans = i == 0 };
	thread = thread_start(count_part, &parts[1]);
	count_part(&parts[0]);
	if (thread)
		thread_join(thread);
	else
		count_part(&parts[1]);
	ok = join(&parts[0], result, err);
	ok = join(&parts[1], result, err) && ok;
	index_scan_fini(&scan);
	index_groups_fini(&groups);
	return ok;
}
