// Lines are read by recursive descent without recursion: each function takes the words that it
// knows from text->at on, moves past them, and fails where they are not there. A failure is set
// once, with line and column, and every caller returns it.
#include "trace/asm_text.h"

#include "base/mem.h"

#include <string.h>

bool asm_text_fail(struct asm_text *text, const struct asm_word *word, const char *what)
{
	ASSERT(what);
	return asm_lex_fail(&text->lex, word, text->err, "%s", what);
}

// The next word of the line, or NULL at its end.
struct asm_word *asm_text_peek(struct asm_text *text)
{
	return text->at < text->lex.count ? &text->lex.words[text->at] : NULL;
}

struct asm_word *asm_text_take(struct asm_text *text, const char *what)
{
	struct asm_word *word = asm_text_peek(text);

	if (!word)
		asm_lex_fail(&text->lex, NULL, text->err, "%s expected at the end of the line",
			     what);
	else
		text->at++;
	return word;
}

bool asm_text_at_end(struct asm_text *text)
{
	return !asm_text_peek(text) ||
	       asm_text_fail(text, asm_text_peek(text), "nothing more expected on this line");
}

// In quotes a word is a text, so a function called "end" is no end line.
bool asm_text_is(const struct asm_word *word, const char *text)
{
	return word && !word->quoted && strcmp(word->text, text) == 0;
}

bool asm_text_number(struct asm_text *text, const char *what, uint64_t *value)
{
	struct asm_word *word = asm_text_take(text, what);

	if (!word)
		return false;
	if (asm_lex_number(word->text, NULL, value))
		return true;
	return asm_lex_fail(&text->lex, word, text->err, "%s expected, not \"%s\"", what,
			    word->text);
}

// "0x1000-0x3000". Empty ranges are read; who cannot use one refuses it.
bool asm_text_range(struct asm_text *text, uint64_t *start, uint64_t *end)
{
	struct asm_word *word = asm_text_take(text, "an address range");
	const char *dash;

	if (!word)
		return false;
	dash = strchr(word->text, '-');
	if (dash && asm_lex_number(word->text, dash, start) &&
	    asm_lex_number(dash + 1, NULL, end) && *start <= *end)
		return true;
	return asm_text_fail(text, word, "an address range 0x…-0x… expected");
}

// Classes keep labels apart: a thread and a process may both be called "a".
bool asm_text_label(struct asm_text *text, char class, const char *what, uint32_t *id)
{
	struct asm_word *word = asm_text_take(text, what);

	if (!word)
		return false;
	if (!word->quoted && asm_labels_find(&text->labels, class, word->text, id))
		return true;
	return asm_lex_fail(&text->lex, word, text->err, "no %s is called \"%s\"", what,
			    word->text);
}

// Nothing is taken, and nothing is wrong, where the word is another one.
bool asm_text_if_label(struct asm_text *text, char class, uint32_t *id)
{
	struct asm_word *word = asm_text_peek(text);

	if (!word || word->quoted || !asm_labels_find(&text->labels, class, word->text, id))
		return false;
	text->at++;
	return true;
}

// A word with = in it would be taken for a field.
bool asm_text_new_label(struct asm_text *text, char class, uint32_t id)
{
	struct asm_word *word = asm_text_take(text, "a label");

	if (!word)
		return false;
	if (word->quoted || word->equals)
		return asm_text_fail(text, word, "a label expected");
	if (!asm_labels_add(&text->labels, class, word->text, id))
		return asm_lex_fail(&text->lex, word, text->err, "\"%s\" is defined already",
				    word->text);
	return true;
}

// An empty value is one: `arg=` is an argument of no characters.
char *asm_text_value(struct asm_text *text, const char *key)
{
	struct asm_word *word = asm_text_peek(text);

	if (!word || word->quoted || !word->equals ||
	    strlen(key) != (size_t)(word->equals - word->text) ||
	    strncmp(key, word->text, (size_t)(word->equals - word->text)) != 0)
		return NULL;
	text->at++;
	return word->equals + 1;
}

// A field that is known and has no number is a mistake; a word that is no field is none, and *taken
// is false.
bool asm_text_field(struct asm_text *text, const struct asm_field *fields, bool *taken)
{
	struct asm_word *word = asm_text_peek(text);

	ASSERT(fields);
	*taken = false;
	for (; word && fields->key; fields++) {
		const char *value = asm_text_value(text, fields->key);

		if (!value)
			continue;
		*taken = true;
		if (!asm_lex_number(value, NULL, fields->number))
			return asm_lex_fail(&text->lex, word, text->err, "%s=NUMBER expected",
					    fields->key);
		if (fields->max && *fields->number > fields->max)
			return asm_lex_fail(&text->lex, word, text->err, "%s is at most %llu",
					    fields->key, (unsigned long long)fields->max);
		return true;
	}
	return true;
}

// Fields in any order, each as often as it is written (the last one counts), until the line ends.
// What is none of them goes to `other`; an error that it did not set is `expected`.
bool asm_text_fields(struct asm_text *text, const struct asm_field *fields,
		     bool (*other)(struct asm_text *text, void *context), void *context,
		     const char *expected)
{
	ASSERT(fields && other && expected);
	while (asm_text_peek(text)) {
		const struct asm_word *word = asm_text_peek(text);
		bool taken;

		if (!asm_text_field(text, fields, &taken))
			return false;
		if (!taken && !other(text, context))
			return text->err->kind == ERR_NONE ? asm_text_fail(text, word, expected)
							   : false;
	}
	return true;
}

// The text is the line's own memory, as that of all words: who keeps it copies it.
char *asm_text_quoted(struct asm_text *text)
{
	struct asm_word *word = asm_text_peek(text);

	ASSERT(text->at <= text->lex.count);
	if (!word || !word->quoted)
		return NULL;
	text->at++;
	return word->text;
}

// Returns true with the last process that was defined, where the line names none.
bool asm_text_process(struct asm_text *text, const char *what, process_id *process)
{
	*process = text->last_process;
	return asm_text_if_label(text, 'p', process) || *process != TRACE_NONE ||
	       asm_lex_fail(&text->lex, NULL, text->err, "a process has to be defined before %s",
			    what);
}
