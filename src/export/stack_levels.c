// What each stack had at the peak is needed, and the peak is known only at the end. Peaks are
// numbered, and a stack keeps its level when it first changes after one. For example
//
//     a allocates 10    level 10, peak 1
//     b allocates 5     level 15, peak 2
//     a frees 10        a has not changed since peak 2: it had 10 then
//     the end           b has not changed since: it had 5
//
// which is 15 together, though nothing was copied at peak 1 or 2 but for stacks that changed.
#include "export/stack_levels.h"

#include "base/mem.h"
#include "export/events.h"

#include <inttypes.h>

// Valid until the next call.
static struct stack_level *level_of(struct stack_levels *levels, const struct lives_block *block)
{
	uint64_t key = (uint64_t)block->process << 32 | block->stack;
	bool added;
	uint64_t *number = map_put(&levels->numbers, key, &added);

	if (added) {
		*number = levels->count;
		*MEM_ADD(levels->list, levels->count, levels->capacity) = (struct stack_level){
			.process = block->process,
			.stack = block->stack,
			.peaks = levels->peaks,
		};
	}
	return &levels->list[*number];
}

// Keep what the stack had at the last peak, before it changes.
static void settle(const struct stack_levels *levels, struct stack_level *level)
{
	if (level->peaks < levels->peaks)
		level->at_peak = level->now;
	level->peaks = levels->peaks;
}

// When part `number` ends. In whole numbers: 10 ns in 3 parts are 3, 6 and 10.
uint64_t stack_levels_row_ns(const struct stack_levels *levels, uint32_t number)
{
	uint64_t whole = levels->to_ns - levels->from_ns;

	ASSERT(levels->row_count > 0 && number < levels->row_count);
	return levels->from_ns + whole / levels->row_count * (number + 1) +
	       whole % levels->row_count * (number + 1) / levels->row_count;
}

// Parts that ended before this.
static void reach(struct stack_levels *levels, uint64_t time_ns)
{
	while (levels->row_done < levels->row_count &&
	       stack_levels_row_ns(levels, levels->row_done) < time_ns)
		levels->row[levels->row_done++] = levels->now;
}

static uint64_t begin_of(const struct stack_levels *levels, const struct lives_block *block)
{
	return block->time_ns > levels->from_ns ? block->time_ns : levels->from_ns;
}

static void add(struct heap_amount *amount, uint64_t bytes)
{
	amount->count++;
	amount->bytes += bytes;
}

static void take(struct heap_amount *amount, uint64_t bytes)
{
	amount->count--;
	amount->bytes -= bytes;
}

// `began_ns` is the sum of when the blocks that live began, so that all lifetimes at the end are
// one product: of two blocks from 3 and 5 ns on, at 10 ns, 2 * 10 - 8 = 12.
static void begin(void *context, const struct lives_block *block)
{
	struct stack_levels *levels = context;
	struct stack_level *level = level_of(levels, block);
	uint64_t time_ns = begin_of(levels, block);

	reach(levels, time_ns);
	settle(levels, level);
	add(&level->allocated, block->size);
	add(&level->now, block->size);
	add(&levels->now, block->size);
	level->began_ns += time_ns;
	if (level->now.bytes > level->most.bytes)
		level->most = level->now;
	if (levels->now.bytes <= levels->peak.bytes)
		return;
	levels->peak = levels->now;
	levels->peak_ns = time_ns;
	levels->peaks++;
}

static void before(void *context, const struct lives_block *block)
{
	struct stack_levels *levels = context;

	if (block->origin != LIVES_BEGUN)
		return;
	add(&levels->before, block->size);
	begin(levels, block);
}

// The last peak's level is kept before the block is taken off. What the process left when it ended
// is `left`, and all else was freed. Where it was the last one, that stays in the level of all, so
// that it ends with what lived at exit.
static void end(void *context, const struct lives_block *block, const struct lives_end *end)
{
	struct stack_levels *levels = context;
	struct stack_level *level;

	if (block->origin != LIVES_BEGUN)
		return;
	level = level_of(levels, block);
	reach(levels, end->time_ns);
	settle(levels, level);
	take(&level->now, block->size);
	if (end->cause < LIVES_EXIT ||
	    reader_process(levels->source->asked->reader, block->process)->ended_ns <
		    levels->last_ns)
		take(&levels->now, block->size);
	level->began_ns -= begin_of(levels, block);
	level->lifetimes_ns += end->time_ns - begin_of(levels, block);
	if (end->cause >= LIVES_EXIT)
		add(&level->left, block->size);
}

// What still lives at the window's end is left, as is what its process ended.
static void finish(struct stack_levels *levels)
{
	while (levels->row_done < levels->row_count)
		levels->row[levels->row_done++] = levels->now;
	for (size_t i = 0; i < levels->count; i++) {
		struct stack_level *level = &levels->list[i];

		settle(levels, level);
		level->left.count += level->now.count;
		level->left.bytes += level->now.bytes;
		level->lifetimes_ns += level->now.count * levels->to_ns - level->began_ns;
	}
}

static void pass_note(void *context, const struct trace_note *note)
{
	const struct stack_levels *levels = context;

	levels->note(levels->context, note);
}

static void find_processes(struct stack_levels *levels)
{
	const struct query_context *asked = levels->source->asked;

	levels->process = TRACE_NONE;
	for (process_id id = 0; id < reader_processes_count(asked->reader); id++) {
		uint64_t ended_ns = reader_process(asked->reader, id)->ended_ns;

		if (!query_has_process(&asked->selection.query, id))
			continue;
		if (levels->processes++ == 0)
			levels->process = id;
		if (ended_ns > levels->last_ns)
			levels->last_ns = ended_ns;
	}
}

bool stack_levels_read(struct stack_levels *levels, struct err *err)
{
	const struct query_context *asked = levels->source->asked;
	const struct events_watcher watcher = {
		.before = before,
		.begin = begin,
		.end = end,
		.note = levels->note ? pass_note : NULL,
		.context = levels,
		.process = TRACE_NONE,
	};
	bool good;

	levels->from_ns = asked->from_given ? asked->from_ns : 0;
	levels->to_ns = asked->to_given ? asked->to_ns : asked->duration_ns;
	levels->peak_ns = levels->from_ns;
	find_processes(levels);
	good = events_read(levels->source, &watcher, err);
	finish(levels);
	return good;
}

void stack_levels_fini(struct stack_levels *levels)
{
	mem_free(levels->list);
	map_fini(&levels->numbers);
}

void stack_levels_say(const struct stack_levels *levels, const char *format)
{
	if (levels->before.count)
		export_say(levels->source,
			   "%" PRIu64 " blocks of %" PRIu64
			   " bytes in all, which lived when the window began, are written as "
			   "allocated then",
			   levels->before.count, levels->before.bytes);
	if (format && levels->processes > 1)
		export_say(levels->source,
			   "%s is of one process, and these are %" PRIu32
			   ": each is the outermost function of its stacks (one alone: --process)",
			   format, levels->processes);
}

void stack_levels_frame(const struct locations *locations, const struct location *location,
			uint32_t line, struct str *text)
{
	const struct location_line *at = &locations->lines[location->lines_first + line];
	const struct location_function *function = &locations->functions[at->function];
	char **texts = locations->strings.texts;
	size_t begin = text->length;

	str_format(text, "0x%" PRIX64 ": %s",
		   reader_address(locations->reader, location->frame, locations->process),
		   function->known ? texts[function->name] : "???");
	if (*texts[function->file] && at->line)
		str_format(text, " (%s:%" PRIu32 ")", texts[function->file], at->line);
	else if (*texts[function->module])
		str_format(text, " (in %s)", texts[function->module]);
	for (; begin < text->length; begin++)
		if (text->text[begin] == '\n')
			text->text[begin] = ' ';
}
