#include "report/sites.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

static const struct {
	const char *key;
	bool by_count;
} questions[SITES_QUESTIONS_COUNT] = {
	[SITES_LIVE_AT_EXIT] = { "live_at_exit", false },
	[SITES_PEAK] = { "peak", false },
	[SITES_BYTES] = { "bytes", false },
	[SITES_CALLS] = { "calls", true },
	[SITES_TEMPORARY] = { "temporary", true },
};

const char *sites_key(enum sites_question question)
{
	return questions[question].key;
}

bool sites_by_count(enum sites_question question)
{
	return questions[question].by_count;
}

// ---- labels: equal numbers for what is said equally ----

struct labels {
	enum sites_merge merge;
	const struct reader *reader;
	struct names *names;
	struct map texts; // hash of a text -> its number; a collision takes the next hash
	char **text;      // by number; owned
	size_t text_count, text_capacity;
	uint32_t *frames; // by frame id; 0: not asked yet
	uint32_t *stacks; // by stack id
	struct map pairs; // label of the callers' stack << 32 | label of the frame -> label
	uint32_t stack_labels;
};

static uint64_t hash_text(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
	return hash;
}

// From 1.
static uint32_t label_text(struct labels *labels, const char *text)
{
	for (uint64_t hash = hash_text(text);; hash++) {
		bool added;
		uint64_t *number = map_put(&labels->texts, hash, &added);

		if (!added && strcmp(labels->text[*number], text) == 0)
			return (uint32_t)*number + 1;
		if (!added)
			continue;
		labels->text = mem_grow(labels->text, &labels->text_capacity,
					labels->text_count + 1, sizeof *labels->text);
		labels->text[labels->text_count] = mem_copy_text(text);
		*number = labels->text_count++;
		return (uint32_t)*number + 1;
	}
}

// Where the frame is in its file. The build-id tells apart files that followed each other under
// one path.
static void describe_place(const struct labels *labels, const struct trace_frame *frame,
			   struct str *text)
{
	const struct trace_module *module = reader_module(labels->reader, frame->module);

	if (!module) {
		str_format(text, "\n%llx", (unsigned long long)frame->pc);
		return;
	}
	str_add(text, module->path);
	for (unsigned i = 0; i < module->build_id_length; i++)
		str_format(text, "%02x", module->build_id[i]);
	str_format(text, "\n%llx", (unsigned long long)(frame->pc - module->bias));
}

static void describe_symbols(struct labels *labels, frame_id frame, struct str *text)
{
	size_t count;
	const struct symbol *symbols = names_find(labels->names, frame, &count);

	for (size_t i = 0; i < count; i++) {
		str_format(text, "%s\n%s\n%u\n%d\n", symbols[i].function ? symbols[i].function : "",
			   symbols[i].file ? symbols[i].file : "", symbols[i].line,
			   symbols[i].inlined);
		if (symbols[i].line == 0)
			str_format(text, "%s+%llx\n", symbols[i].module,
				   (unsigned long long)symbols[i].offset);
	}
}

static uint32_t label_frame(struct labels *labels, frame_id id)
{
	const struct trace_frame *frame = reader_frame(labels->reader, id);
	struct str text = { 0 };

	if (!frame)
		return 0;
	if (labels->frames[id])
		return labels->frames[id];
	if (labels->merge == SITES_AS_SHOWN)
		describe_symbols(labels, id, &text);
	else
		describe_place(labels, frame, &text);
	labels->frames[id] = label_text(labels, str_get(&text));
	str_fini(&text);
	return labels->frames[id];
}

// Callers stand before the called, so one loop upwards labels all stacks.
static void label_stacks(struct labels *labels, const bool *wanted, struct progress *progress)
{
	uint32_t count = reader_stacks_count(labels->reader);

	for (stack_id id = 1; id < count; id++) {
		const struct trace_stack *stack = reader_stack(labels->reader, id);
		uint64_t *label;
		bool added;
		uint64_t parent;

		if (!wanted[id])
			continue;
		// The flags belong to the outermost end; there they stand in for a caller.
		parent = stack->parent < id && stack->parent ? labels->stacks[stack->parent]
							     : stack->flags & 3u;
		label = map_put(&labels->pairs, parent << 32 | label_frame(labels, stack->frame),
				&added);
		if (added)
			*label = ++labels->stack_labels + 3; // above the flags
		labels->stacks[id] = (uint32_t)*label;
		if (id % 1024 == 0)
			progress_update(progress, id);
	}
}

// Which stacks lead to a site: its own and its callers'.
static bool *find_wanted(const struct heap *heap, const struct reader *reader)
{
	uint32_t count = reader_stacks_count(reader);
	bool *wanted = mem_alloc(count + (size_t)1, sizeof *wanted);
	size_t sites_count;
	const struct heap_site *sites = heap_sites(heap, &sites_count);

	for (size_t i = 0; i < sites_count; i++) {
		stack_id id = sites[i].stack;

		while (id && id < count && !wanted[id]) {
			stack_id parent = reader_stack(reader, id)->parent;

			wanted[id] = true;
			id = parent < id ? parent : 0;
		}
	}
	return wanted;
}

static void labels_fini(struct labels *labels)
{
	for (size_t i = 0; i < labels->text_count; i++)
		mem_free(labels->text[i]);
	mem_free(labels->text);
	mem_free(labels->frames);
	mem_free(labels->stacks);
	map_fini(&labels->texts);
	map_fini(&labels->pairs);
}

// ---- rows ----

static void amount_merge(struct heap_amount *sum, const struct heap_amount *amount)
{
	sum->count += amount->count;
	sum->bytes += amount->bytes;
}

static void row_merge(struct sites_row *row, const struct heap_site *site)
{
	amount_merge(&row->amounts[SITES_LIVE_AT_EXIT], &site->live_at_exit);
	amount_merge(&row->amounts[SITES_PEAK], &site->at_peak);
	amount_merge(&row->amounts[SITES_BYTES], &site->allocated);
	amount_merge(&row->amounts[SITES_CALLS], &site->allocated);
	amount_merge(&row->amounts[SITES_TEMPORARY], &site->temporary);
	if (site->largest_bytes > row->largest_bytes)
		row->largest_bytes = site->largest_bytes;
	if (site->first_ns < row->first_ns || row->sites_count == 0)
		row->first_ns = site->first_ns;
	if (site->last_ns > row->last_ns)
		row->last_ns = site->last_ns;
	if (row->sites_count == 0 || site->process != row->process_latest)
		row->processes_count++;
	row->process_latest = site->process;
	row->sites_count++;
}

static int by_process(const void *a, const void *b)
{
	const struct heap_site *left = *(const struct heap_site *const *)a;
	const struct heap_site *right = *(const struct heap_site *const *)b;

	if (left->process != right->process)
		return left->process < right->process ? -1 : 1;
	return left < right ? -1 : left > right;
}

// The sites in order of their processes, so that a row's processes come one after the other.
static const struct heap_site **sort_sites(const struct heap *heap, size_t *count)
{
	const struct heap_site *all = heap_sites(heap, count);
	const struct heap_site **sorted = mem_alloc(*count, sizeof *sorted);

	for (size_t i = 0; i < *count; i++)
		sorted[i] = &all[i];
	qsort(sorted, *count, sizeof *sorted, by_process);
	return sorted;
}

static void merge_rows(struct sites *sites, struct labels *labels, const struct heap *heap)
{
	size_t count;
	const struct heap_site **sorted = sort_sites(heap, &count);
	uint32_t stacks_count = reader_stacks_count(labels->reader);
	struct map known = { 0 }; // process or executable << 32 | label of the stack -> row

	sites->rows = mem_alloc(count, sizeof *sites->rows);
	for (size_t i = 0; i < count; i++) {
		const struct heap_site *site = sorted[i];
		const struct trace_process *process = reader_process(labels->reader, site->process);
		uint64_t who = site->process;
		uint64_t label = site->stack < stacks_count ? labels->stacks[site->stack] : 0;
		struct sites_row *row;
		uint64_t *index;
		bool added;

		if (labels->merge == SITES_AS_SHOWN && process)
			who = label_text(labels, process->exe);
		index = map_put(&known, who << 32 | label, &added);
		if (added)
			*index = sites->count++;
		row = &sites->rows[*index];
		if (added) {
			row->process = site->process;
			row->stack = site->stack;
		}
		row_merge(row, site);
	}
	map_fini(&known);
	mem_free(sorted);
}

void sites_init(struct sites *sites, enum sites_merge merge, const struct heap *heap,
		const struct reader *reader, struct names *names, struct progress *progress)
{
	struct labels labels = { .merge = merge, .reader = reader, .names = names };
	bool *wanted = find_wanted(heap, reader);

	*sites = (struct sites){ 0 };
	labels.frames = mem_alloc(reader_frames_count(reader) + (size_t)1, sizeof *labels.frames);
	labels.stacks = mem_alloc(reader_stacks_count(reader) + (size_t)1, sizeof *labels.stacks);
	label_stacks(&labels, wanted, progress);
	merge_rows(sites, &labels, heap);
	labels_fini(&labels);
	mem_free(wanted);
}

void sites_fini(struct sites *sites)
{
	mem_free(sites->rows);
	*sites = (struct sites){ 0 };
}

// ---- lists ----

// Heaviest first; what weighs the same, in the order of processes and stacks.
static int compare_rows(const void *a, const void *b, void *context)
{
	const struct sites_row *left = *(const struct sites_row *const *)a;
	const struct sites_row *right = *(const struct sites_row *const *)b;
	enum sites_question question = *(const enum sites_question *)context;
	struct heap_amount l = left->amounts[question];
	struct heap_amount r = right->amounts[question];

	if (questions[question].by_count) {
		if (l.count != r.count)
			return l.count > r.count ? -1 : 1;
	}
	if (l.bytes != r.bytes)
		return l.bytes > r.bytes ? -1 : 1;
	if (l.count != r.count)
		return l.count > r.count ? -1 : 1;
	if (left->process != right->process)
		return left->process < right->process ? -1 : 1;
	return left->stack < right->stack ? -1 : left->stack > right->stack;
}

struct sites_list sites_list(const struct sites *sites, enum sites_question question,
			     uint64_t rows_max, uint64_t bytes_min)
{
	struct sites_list list = { .rows = mem_alloc(sites->count, sizeof *list.rows) };
	size_t all = 0;

	for (size_t i = 0; i < sites->count; i++) {
		const struct heap_amount *amount = &sites->rows[i].amounts[question];

		if (amount->count == 0)
			continue;
		amount_merge(&list.total, amount);
		list.rest_count++;
		if (amount->bytes >= bytes_min)
			list.rows[all++] = &sites->rows[i];
	}
	qsort_r(list.rows, all, sizeof *list.rows, compare_rows, &question);
	list.count = rows_max && rows_max < all ? (size_t)rows_max : all;
	list.rest_count -= list.count;
	list.rest = list.total;
	for (size_t i = 0; i < list.count; i++) {
		list.rest.count -= list.rows[i]->amounts[question].count;
		list.rest.bytes -= list.rows[i]->amounts[question].bytes;
	}
	return list;
}

void sites_list_fini(struct sites_list *list)
{
	mem_free(list->rows);
	*list = (struct sites_list){ 0 };
}
