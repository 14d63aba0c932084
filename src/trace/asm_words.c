#include "trace/asm_words.h"

#include <string.h>

static const char *const events[] = {
	[TRACE_MALLOC] = "malloc",
	[TRACE_CALLOC] = "calloc",
	[TRACE_ALIGNED] = "aligned",
	[TRACE_FREE] = "free",
	[TRACE_REALLOC] = "realloc",
	[TRACE_REALLOC_FREE] = "realloc-free",
	[TRACE_REALLOC_ALLOC] = "realloc-alloc",
	[TRACE_REALLOC_UNDO] = "realloc-undo",
	[TRACE_REALLOC_FAILED] = "realloc-failed",
	[TRACE_FAILED] = "failed",
};

static const char *const notes[] = {
	[TRACE_NOTE_PROCESS_START] = "start",
	[TRACE_NOTE_PROCESS_END] = "end",
	[TRACE_NOTE_MARK] = "mark",
	[TRACE_NOTE_RSS] = "rss",
	[TRACE_NOTE_LOSS] = "loss",
	[TRACE_NOTE_MESSAGE] = "message",
	[TRACE_NOTE_EXEC_UNSEEN] = "exec-unseen",
	[TRACE_NOTE_MODULE_GONE] = "module-gone",
	[TRACE_NOTE_THREAD_NAME] = "thread-name",
};

enum {
	EVENTS_COUNT = sizeof events / sizeof *events,
	NOTES_COUNT = sizeof notes / sizeof *notes,
};

static const char *word_of(const char *const *words, size_t count, uint8_t kind)
{
	return kind < count ? words[kind] : NULL;
}

static uint8_t find(const char *const *words, size_t count, const char *word)
{
	for (size_t kind = 1; kind < count; kind++)
		if (words[kind] && strcmp(words[kind], word) == 0)
			return (uint8_t)kind;
	return 0;
}

const char *asm_words_event(uint8_t kind)
{
	return word_of(events, EVENTS_COUNT, kind);
}

uint8_t asm_words_find_event(const char *word)
{
	return find(events, EVENTS_COUNT, word);
}

const char *asm_words_note(uint8_t kind)
{
	return word_of(notes, NOTES_COUNT, kind);
}

uint8_t asm_words_find_note(const char *word)
{
	return find(notes, NOTES_COUNT, word);
}

void asm_words_quote(struct sink *sink, const char *text)
{
	sink_text(sink, "\"");
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			sink_format(sink, "\\%c", c);
		else if (c < 0x20 || c >= 0x7f)
			sink_format(sink, "\\x%02x", c);
		else
			sink_write(sink, text, 1);
	}
	sink_text(sink, "\"");
}
