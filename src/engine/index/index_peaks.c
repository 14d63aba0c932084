// Peaks from postings: what the sites of a group did, without the steps of all others. Sums over
// runs of postings lie beside them, so that a site that did very much is not read as a whole.
//
// A run of 1,024 postings of one site has a skip: by how much the site's bytes change over it, and
// the highest that they are on the way. For example, a level of 1 MiB before a run whose skip says
// { bytes +4 KiB, bytes_max +20 KiB }: the level was 1,044 KiB at most in it, and is 1,028 KiB
// after it. Where the peak so far is 2 MiB the run is done with. Where it is less, the run is
// remembered, and its postings are read afterwards, to find the step and the count of blocks
// (look_closer). A site of five million postings costs its sums and the postings of a few runs.
//
// A site that is busy in a chunk has sums over stretches of steps in place of runs, and no
// postings: what it did in a stretch is read from the block of steps.
//
// Runs that an edge of the window cuts are read posting by posting. Sites of one group are merged:
// their skips do not add up, since each has its highest at a step of its own.
#include "engine/index/index_ask.h"
#include "engine/index/index_runs.h"

#include "base/mem.h"
#include "base/sort.h"

#include <stdlib.h>

enum {
	SITES_MAX = 512,        // of one group; more are found by scan
	POSTINGS_MAX = 1 << 20, // of a group of several sites, which are merged
};

// ---- one site ----

struct walking {
	struct site_reading *reading;
	uint64_t counted; // the level begins with all steps before this
	uint64_t from, to;
	struct heap_amount level;
	struct window_detail *detail;
	struct site_posting *list; // of one run
	size_t list_capacity;
	uint64_t first, last;             // steps of the first and last beginning in the window
	const struct site_run *first_run; // where it may be, if it was not looked for
	const struct site_run *last_run;
	const struct site_run *peak_run; // where the peak was reached, if that was not looked at
	struct heap_amount peak_level;   // before that run
};

static bool load_run(struct walking *walking, const struct site_run *run, struct err *err)
{
	MEM_ROOM(walking->list, walking->list_capacity, run->count);
	return index_runs_read(walking->reading, run, walking->list, err);
}

static void move(struct heap_amount *level, const struct site_posting *posting)
{
	level->count += posting->ends ? UINT64_MAX : 1;
	level->bytes += posting->ends ? 0 - posting->size : posting->size;
}

// The level moves with each step; only a beginning in the window can be a peak, a first or a last.
static void walk_posting(struct walking *walking, const struct site_posting *posting)
{
	struct window_detail *detail = walking->detail;

	ASSERT(walking->from <= walking->to);
	if (posting->step >= walking->to)
		return;
	move(&walking->level, posting);
	if (posting->step < walking->from || posting->ends)
		return;
	if (walking->first == WINDOW_NEVER && !walking->first_run)
		walking->first = posting->step;
	walking->last = posting->step;
	walking->last_run = NULL;
	if (walking->level.bytes > detail->peak_bytes) {
		detail->peak_bytes = walking->level.bytes;
		detail->peak_count = walking->level.count;
		detail->peak_edge = posting->step + 1;
		walking->peak_run = NULL;
	}
	if (walking->level.count > detail->most_count)
		detail->most_count = walking->level.count;
}

// A run that lies in the window as a whole: its sums say it all.
static void walk_sums(struct walking *walking, const struct site_run *run)
{
	struct window_detail *detail = walking->detail;
	uint64_t high = walking->level.bytes + (uint64_t)run->skip.bytes_max;

	ASSERT(run->summed);
	// The level before the run is kept with it, so that look_closer can go through the run's
	// postings from there, and only through those.
	if (high > detail->peak_bytes) {
		detail->peak_bytes = high;
		walking->peak_run = run;
		walking->peak_level = walking->level;
	}
	if (walking->level.count + (uint64_t)run->skip.count_max > detail->most_count)
		detail->most_count = walking->level.count + (uint64_t)run->skip.count_max;
	walking->level.bytes += (uint64_t)run->skip.bytes;
	walking->level.count += (uint64_t)run->skip.count;
}

// Of the run that was loaded last. A run may have ends alone.
static bool has_beginning(const struct walking *walking, const struct site_run *run,
			  uint64_t *first, uint64_t *last)
{
	*first = WINDOW_NEVER;
	*last = 0;
	for (uint32_t i = 0; i < run->count; i++) {
		if (walking->list[i].ends)
			continue;
		if (*first == WINDOW_NEVER)
			*first = walking->list[i].step;
		*last = walking->list[i].step;
	}
	return *first != WINDOW_NEVER;
}

// What sums did not tell: the step of the peak and the blocks then, and of the first and last
// beginning.
static bool look_closer(struct walking *walking, const struct site_runs *runs, struct err *err)
{
	struct window_detail *detail = walking->detail;
	uint64_t first, last;

	if (walking->peak_run) {
		struct heap_amount level = walking->peak_level;

		ASSERT(walking->peak_run->summed);
		if (!load_run(walking, walking->peak_run, err))
			return false;
		for (uint32_t i = 0; i < walking->peak_run->count; i++) {
			move(&level, &walking->list[i]);
			if (level.bytes != detail->peak_bytes)
				continue;
			detail->peak_count = level.count;
			detail->peak_edge = walking->list[i].step + 1;
			break;
		}
	}
	if (walking->first_run) {
		for (const struct site_run *run = walking->first_run;
		     run < runs->list + runs->count; run++) {
			if (!load_run(walking, run, err))
				return false;
			if (!has_beginning(walking, run, &first, &last))
				continue;
			walking->first = first;
			break;
		}
	}
	for (const struct site_run *run = walking->last_run; run && run >= runs->list; run--) {
		if (!load_run(walking, run, err))
			return false;
		if (has_beginning(walking, run, &first, &last) && last >= walking->from) {
			walking->last = last;
			break;
		}
	}
	return true;
}

// From here on the window is reached: the level of now is the first that counts.
static void reach(struct walking *walking)
{
	struct window_detail *detail = walking->detail;

	ASSERT(detail->peak_edge == 0 || detail->peak_edge >= walking->from);
	if (detail->peak_edge != 0)
		return;
	detail->peak_edge = walking->from;
	detail->peak_bytes = walking->level.bytes;
	detail->peak_count = detail->most_count = walking->level.count;
}

// A run at an edge of the window, or one without sums. What `counted` is past was in the sums
// already.
static bool walk_single(struct walking *walking, const struct site_run *run, struct err *err)
{
	if (!load_run(walking, run, err))
		return false;
	for (uint32_t i = 0; i < run->count; i++) {
		const struct site_posting *posting = &walking->list[i];

		if (posting->step < walking->counted)
			continue;
		if (posting->step >= walking->from)
			reach(walking);
		walk_posting(walking, posting);
	}
	return true;
}

// A run before the window is one addition; one inside is taken by its sums; one across an edge is
// read. Where in a run the peak was, and its first and last beginning, are looked for at the end,
// in that run alone (look_closer).
static bool walk_runs(struct walking *walking, const struct site_runs *runs, struct err *err)
{
	for (size_t i = 0; i < runs->count; i++) {
		const struct site_run *run = &runs->list[i];

		if (run->summed && run->after + 1 >= walking->counted &&
		    run->until < walking->from) {
			walking->level.bytes += (uint64_t)run->skip.bytes;
			walking->level.count += (uint64_t)run->skip.count;
		} else if (run->summed && run->after + 1 >= walking->from &&
			   run->until < walking->to) {
			reach(walking);
			if (walking->first == WINDOW_NEVER && !walking->first_run)
				walking->first_run = run;
			walking->last_run = run;
			walk_sums(walking, run);
		} else if (!walk_single(walking, run, err)) {
			return false;
		}
	}
	reach(walking);
	return look_closer(walking, runs, err);
}

static bool set_times(struct index *index, struct index_clock *clock, uint64_t first, uint64_t last,
		      struct window_detail *detail, struct err *err)
{
	if (first == WINDOW_NEVER)
		return true;
	return index_clock_time(clock, index, first, &detail->first_ns, err) &&
	       index_clock_time(clock, index, last, &detail->last_ns, err);
}

static const struct index_exit *exit_of(const struct index *index, uint32_t site)
{
	static const struct index_exit none = { .step = WINDOW_NEVER };
	process_id process = cells_site(&index->cells, site)->process;

	return process < index->exits_count ? &index->exits[process] : &none;
}

// A site whose process ended before the window has nothing in it. Else its sums at `from`, then its
// runs in order: those that lie in the window as a whole by their sums, others step by step.
static bool peak_of_site(struct site_reading *reading, struct index_clock *clock, uint32_t site,
			 uint64_t from, uint64_t to, struct window_detail *detail, struct err *err)
{
	struct index *index = reading->index;
	struct walking walking = {
		.reading = reading, .from = from, .to = to, .detail = detail, .first = WINDOW_NEVER
	};
	struct site_runs runs = { 0 };
	struct bits_sums sums;
	bool ok;

	ASSERT(from <= to && site < index->cells.sites_count);
	*detail = (struct window_detail){ .group = detail->group };
	if (exit_of(index, site)->step < from) {
		detail->peak_edge = from;
		return true;
	}
	ok = index_site_sums(index, site, from, &sums, &walking.counted, err) &&
	     index_runs_find(index, site, walking.counted, to, &runs, err);
	walking.level = (struct heap_amount){ sums.alive, sums.alive_bytes };
	ok = ok && walk_runs(&walking, &runs, err) &&
	     set_times(index, clock, walking.first, walking.last, detail, err);
	MEM_FREE(runs.list, walking.list);
	return ok;
}

// ---- several sites ----

// One of the sites of a group.
struct member {
	uint32_t site;
	uint64_t counted; // `level` is that behind all steps before this
	struct heap_amount level;
	struct site_runs runs;
	size_t next; // of the runs
};

// Their postings, a chunk at a time, in the order of their steps. The end of a process comes before
// the step that has its number.
struct merge {
	struct index *index;
	struct site_reading *reading;
	struct member *members;
	size_t members_count;
	uint64_t from, to;
	struct site_posting *list; // of a chunk, in the window
	size_t count, capacity;
	struct heap_amount level;
	struct window_detail *detail;
	uint64_t first, last; // steps of the first and last beginning in the window
};

SORT_ORDER(compare_postings, struct site_posting, SORT_RISES(step), other->exit - one->exit)

// Find the runs of all members. *many: more than can be merged.
static bool find_members(struct merge *merge, bool *many, struct err *err)
{
	uint64_t postings = 0;

	for (size_t i = 0; i < merge->members_count; i++) {
		struct member *member = &merge->members[i];
		struct bits_sums sums;

		if (exit_of(merge->index, member->site)->step < merge->from)
			continue;
		if (!index_site_sums(merge->index, member->site, merge->from, &sums,
				     &member->counted, err) ||
		    !index_runs_find(merge->index, member->site, member->counted, merge->to,
				     &member->runs, err))
			return false;
		member->level = (struct heap_amount){ sums.alive, sums.alive_bytes };
		postings += member->runs.postings;
		if (postings > POSTINGS_MAX) {
			*many = true;
			return true;
		}
	}
	return true;
}

static struct site_posting *make_room(struct merge *merge, size_t count)
{
	MEM_ROOM(merge->list, merge->capacity, merge->count + count);
	return merge->list + merge->count;
}

// What a member has in the chunks before `end`. What lies before the window is in its level then.
static bool gather(struct merge *merge, uint32_t source, uint64_t end, struct err *err)
{
	struct member *member = &merge->members[source];
	const struct site_runs *runs = &member->runs;

	ASSERT(source < merge->members_count);
	for (; member->next < runs->count && runs->list[member->next].chunk < end; member->next++) {
		const struct site_run *run = &runs->list[member->next];
		struct site_posting *list = make_room(merge, run->count + (size_t)1);

		if (!index_runs_read(merge->reading, run, list, err))
			return false;
		for (uint32_t k = 0; k < run->count; k++) {
			if (list[k].step < member->counted || list[k].step >= merge->to)
				continue;
			if (list[k].step < merge->from) {
				move(&member->level, &list[k]);
				continue;
			}
			list[k].source = source;
			list[k].exit = false;
			merge->list[merge->count++] = list[k];
		}
	}
	return true;
}

// The ends of members' processes from one step to another.
static void gather_exits(struct merge *merge, uint64_t begin, uint64_t end)
{
	ASSERT(begin < end);
	for (uint32_t i = 0; i < merge->members_count; i++) {
		uint64_t step = exit_of(merge->index, merge->members[i].site)->step;

		if (step < merge->from || step < begin || step >= end || step >= merge->to)
			continue;
		*make_room(merge, 1) =
			(struct site_posting){ .step = step, .source = i, .exit = true };
		merge->count++;
	}
}

// All that lies before the window has been gathered.
static void begin_sweep(struct merge *merge)
{
	struct heap_amount *level = &merge->level;

	for (size_t i = 0; i < merge->members_count; i++) {
		level->count += merge->members[i].level.count;
		level->bytes += merge->members[i].level.bytes;
	}
	*merge->detail = (struct window_detail){ .group = merge->detail->group,
						 .peak_bytes = level->bytes,
						 .peak_count = level->count,
						 .most_count = level->count,
						 .peak_edge = merge->from };
}

// The steps that were gathered, in their order, with the level after each. Only a beginning can be
// a new peak. An end of a process takes what each of its sites has then.
static void sweep(struct merge *merge)
{
	struct window_detail *detail = merge->detail;
	struct heap_amount *level = &merge->level;

	if (merge->count)
		qsort(merge->list, merge->count, sizeof *merge->list, compare_postings);
	for (size_t i = 0; i < merge->count; i++) {
		const struct site_posting *posting = &merge->list[i];
		struct member *member = &merge->members[posting->source];

		// What the site has now goes with its process, whatever its blocks were.
		if (posting->exit) {
			level->count -= member->level.count;
			level->bytes -= member->level.bytes;
			continue;
		}
		move(&member->level, posting);
		move(level, posting);
		if (posting->ends)
			continue;
		merge->first = merge->first == WINDOW_NEVER ? posting->step : merge->first;
		merge->last = posting->step;
		if (level->bytes > detail->peak_bytes) {
			detail->peak_bytes = level->bytes;
			detail->peak_count = level->count;
			detail->peak_edge = posting->step + 1;
		}
		if (level->count > detail->most_count)
			detail->most_count = level->count;
	}
	merge->count = 0;
}

// Chunks before the window's first are taken with it. The window's end may be behind all chunks, as
// may the end of a process.
static bool merge_members(struct merge *merge, struct err *err)
{
	unsigned log2 = merge->index->shape.chunk_log2;
	uint64_t begin = merge->from, end;

	for (bool first = true; first || begin < merge->to; first = false, begin = end) {
		ASSERT(begin >= merge->from);
		end = ((begin >> log2) + 1) << log2;
		if (end >> log2 >= merge->index->files.chunks_count)
			end = WINDOW_NEVER;
		for (uint32_t i = 0; i < merge->members_count; i++)
			if (!gather(merge, i, end, err))
				return false;
		gather_exits(merge, begin, end);
		if (first)
			begin_sweep(merge);
		sweep(merge);
	}
	return true;
}

// *done stays false where the sites have so many steps that a scan of the window is cheaper.
static bool peak_of_sites(struct site_reading *reading, struct index_clock *clock,
			  const uint32_t *sites, size_t count, const struct window_query *query,
			  struct window_detail *detail, bool *done, struct err *err)
{
	struct index *index = reading->index;
	struct merge merge = { .index = index,
			       .reading = reading,
			       .members = mem_alloc(count + 1, sizeof *merge.members),
			       .members_count = count,
			       .from = query->from,
			       .to = query->to,
			       .detail = detail,
			       .first = WINDOW_NEVER };
	bool many = false, ok;

	for (size_t i = 0; i < count; i++)
		merge.members[i].site = sites[i];
	ok = find_members(&merge, &many, err);
	if (ok && !many) {
		ok = merge_members(&merge, err) &&
		     set_times(index, clock, merge.first, merge.last, detail, err);
		*done = true;
	}
	for (size_t i = 0; i < count; i++)
		mem_free(merge.members[i].runs.list);
	MEM_FREE(merge.members, merge.list);
	return ok;
}

// ---- groups ----

// The sites of one asked group.
struct member_list {
	uint32_t *sites;
	size_t count, capacity;
};

// Of groups with few sites: their steps are read from the sites' own lists, and no others.
// `state_of`, by group: which of the details it is, from 1 on; 0: it is not asked for. A group of
// more than SITES_MAX sites is left to a scan (*done).
bool index_peaks(struct index *index, struct index_clock *clock, const struct window_query *query,
		 struct window_detail *details, size_t count, const uint32_t *state_of,
		 size_t groups_count, bool *done, struct err *err)
{
	struct member_list *members = mem_alloc(count + 1, sizeof *members);
	struct site_reading reading = { .index = index };
	struct index_groups groups;
	bool ok = true;

	index_groups_init(&groups, index, query);
	for (uint32_t site = 1; site < index->cells.sites_count; site++) {
		uint32_t group = index_group_of_site(&groups, site);
		struct member_list *list;

		if (group >= groups_count || !state_of[group] ||
		    cells_site(&index->cells, site)->orphans)
			continue;
		list = &members[state_of[group] - 1];
		if (list->count > SITES_MAX)
			continue;
		*MEM_ADD(list->sites, list->count, list->capacity) = site;
	}
	for (size_t i = 0; ok && i < count; i++) {
		done[i] = false;
		if (state_of[details[i].group] != i + 1 || members[i].count > SITES_MAX)
			continue;
		if (members[i].count == 1) {
			done[i] = true;
			ok = peak_of_site(&reading, clock, members[i].sites[0], query->from,
					  query->to, &details[i], err);
		} else {
			ok = peak_of_sites(&reading, clock, members[i].sites, members[i].count,
					   query, &details[i], &done[i], err);
		}
	}
	for (size_t i = 0; i < count; i++)
		mem_free(members[i].sites);
	mem_free(members);
	index_block_fini(&reading.stretch);
	index_groups_fini(&groups);
	return ok;
}
