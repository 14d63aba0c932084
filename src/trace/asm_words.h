// asm_words: the words that both directions of the text form share.
#pragma once

#include "base/sink.h"
#include "trace/trace.h"

// "malloc", or NULL; and back, 0 for no such kind. `kind` is an enum trace_kind; of one that is not
// known there is no word. Words are literals.
const char *asm_words_event(uint8_t kind);
uint8_t asm_words_find_event(const char *word);

// "rss", or NULL; and back, 0 for no such kind.
const char *asm_words_note(uint8_t kind);
uint8_t asm_words_find_note(const char *word);

// What a kind's flags are called: "private|anonymous", "dontneed", "0x…" for what has no name. A
// kind without words for them has numbers. The other way false for a word that is none of them.
void asm_words_put_flags(struct sink *sink, uint8_t kind, uint32_t flags);
bool asm_words_find_flags(const char *text, uint8_t kind, uint32_t *flags);

// "rw", "none"; a number where there are other bits.
void asm_words_put_protection(struct sink *sink, uint32_t protection);
bool asm_words_find_protection(const char *text, uint32_t *protection);

// "libc", "present|swapped", "exit", and back.
void asm_words_put_origin(struct sink *sink, uint8_t origin);
bool asm_words_find_origin(const char *text, uint8_t *origin);
void asm_words_put_pages(struct sink *sink, uint8_t flags);
bool asm_words_find_pages(const char *text, uint8_t *flags);
void asm_words_put_reason(struct sink *sink, uint8_t reason);
bool asm_words_find_reason(const char *text, uint8_t *reason);

// " key=value", unless it is the usual one.
void asm_words_put_number(struct sink *sink, const char *key, uint64_t value, uint64_t usual);

// Write `text` in quotes: " and \ with a \ before them, control bytes and bytes that are not ASCII
// as \xhh, so that any bytes survive and a dump is ASCII.
void asm_words_quote(struct sink *sink, const char *text);
