// memory_tracker: the blocks of one process in the text that memory_tracker's allocations.c writes
// where ALLOCATION_TRACE says, and that its active_allocations reads: a line for each call.
//
//     malloc: 0x55d0c0 0x20 /usr/bin/app make 0x401136
//     free(realloc): 0x55d0c0 /usr/bin/app grow 0x401180
//     malloc(realloc): 0x55d100 0x40 /usr/bin/app grow 0x401180
//     free: 0x55d100 /usr/bin/app main 0x4011c0
//
// address, size, and of the caller (the innermost frame) module, function and address; "(null)" and
// "(nil)" where there is none. What stands between spaces must have none: they become '_'.
#include "export/events.h"

#include "base/map.h"
#include "base/mem.h"

#include <ctype.h>
#include <inttypes.h>

struct tracker {
	struct query_context *asked;
	struct sink *sink;
	process_id process;
	struct str callers;    // texts as they are written, a NUL behind each
	struct map callers_at; // by stack: where
};

static void add_word(struct str *text, const char *word)
{
	if (!word || !*word)
		word = "(null)";
	str_add_char(text, ' ');
	for (; *word; word++)
		str_add_char(text, isspace((unsigned char)*word) ? '_' : *word);
}

// Where functions are inlined it is the innermost that is named: the address is that of all of
// them.
static void add_caller(struct tracker *tracker, stack_id stack)
{
	const struct trace_stack *node = reader_stack(tracker->asked->reader, stack);
	const struct trace_frame *frame =
		stack && node ? reader_frame(tracker->asked->reader, node->frame) : NULL;
	const struct symbol *symbols;
	size_t count;

	if (!frame) {
		str_add(&tracker->callers, " (null) (null) (nil)");
		return;
	}
	symbols = names_find(tracker->asked->names, node->frame, &count);
	add_word(&tracker->callers, symbols[0].module);
	add_word(&tracker->callers, symbols[0].function);
	str_format(&tracker->callers, " 0x%" PRIx64,
		   reader_address(tracker->asked->reader, node->frame, tracker->process));
}

// Valid until the next call. Each stack's text is made once, as names cost a look-up.
static const char *caller_of(struct tracker *tracker, stack_id stack)
{
	bool added;
	uint64_t *at = map_put(&tracker->callers_at, stack, &added);

	// The NUL is kept: a caller is read as a text from where it begins.
	if (added) {
		*at = tracker->callers.length;
		add_caller(tracker, stack);
		str_add_bytes(&tracker->callers, "", 1);
	}
	ASSERT(*at < tracker->callers.length);
	return tracker->callers.text + *at;
}

static void write_begin(void *context, const struct lives_block *block)
{
	struct tracker *tracker = context;

	sink_format(tracker->sink, "malloc%s: 0x%" PRIx64 " 0x%" PRIx64 "%s\n",
		    block->moved ? "(realloc)" : "", block->address, block->size,
		    caller_of(tracker, block->stack));
}

static void write_end(void *context, const struct lives_block *block, const struct lives_end *end)
{
	struct tracker *tracker = context;

	// Also an end that was not seen (LOST): its reader would take the next malloc at this
	// address for a mistake.
	if (end->cause < LIVES_EXIT)
		sink_format(tracker->sink, "free%s: 0x%" PRIx64 "%s\n",
			    end->cause == LIVES_REALLOC ? "(realloc)" : "", block->address,
			    caller_of(tracker, end->stack));
}

static bool write(const struct export_source *source, struct sink *sink, struct err *err)
{
	struct tracker tracker = { .asked = source->asked, .sink = sink };
	struct events_watcher watcher = { .begin = write_begin,
					  .end = write_end,
					  .context = &tracker };
	bool good;

	if (!events_choose(source, "a file of memory_tracker", &watcher.process, err))
		return false;
	tracker.process = watcher.process;
	good = events_read(source, &watcher, err);
	map_fini(&tracker.callers_at);
	str_fini(&tracker.callers);
	return good;
}

const struct export_format memory_tracker_format = {
	.name = "memory_tracker",
	.brief = "the events of one process as memory_tracker's text (ALLOCATION_TRACE)",
	.is_text = true,
	.write = write,
};
