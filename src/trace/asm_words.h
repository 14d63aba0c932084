// asm_words: the words that both directions of the text form share.
#ifndef TRACE_ASM_WORDS_H
#define TRACE_ASM_WORDS_H

#include "base/sink.h"
#include "trace/trace.h"

// "malloc", or NULL; and back, 0 for no such kind.
const char *asm_words_event(uint8_t kind);
uint8_t asm_words_find_event(const char *word);

// "rss", or NULL; and back, 0 for no such kind.
const char *asm_words_note(uint8_t kind);
uint8_t asm_words_find_note(const char *word);

// Write `text` in quotes: " and \ with a \ before them, control bytes and bytes that are not ASCII
// as \xhh, so that any bytes survive and a dump is ASCII.
void asm_words_quote(struct sink *sink, const char *text);

#endif
