// For example, "%e-%p.%n.tide" with program "a/b" of pid 42, and number 0: "a_b-42.0.tide".
#include "launch/pattern.h"

#include "base/mem.h"

#include <inttypes.h>

enum { PATTERN_WORD_MAX = 100 };

// By bytes, not by characters: a long name of a program may be cut within one, which a file system
// does not mind.
static void pattern_add_word(struct str *out, const char *word)
{
	ASSERT(word != NULL);
	// A slash in a word would be a folder; control characters would be commands to a terminal
	// that lists them.
	for (int i = 0; i < PATTERN_WORD_MAX && word[i] != '\0'; i++) {
		unsigned char c = (unsigned char)word[i];

		str_add_char(out, c < ' ' || c == '/' || c == 127 ? '_' : word[i]);
	}
}

// A % as the last character is met as one before the NUL, which is no letter that is known.
bool pattern_expand(struct str *out, const char *pattern, const struct pattern_words *words,
		    bool *numbered, struct err *err)
{
	if (numbered)
		*numbered = false;
	for (const char *at = pattern; *at != '\0'; at++) {
		if (*at != '%') {
			str_add_char(out, *at);
			continue;
		}
		// `number` counts up for as long as the name is taken; the caller does that, if
		// `numbered` says that it changes the name.
		switch (*++at) {
		case 'e':
			pattern_add_word(out, words->program);
			break;
		case 'h':
			pattern_add_word(out, words->host);
			break;
		case 'p':
			str_format(out, "%" PRIu64, words->pid);
			break;
		case 't':
			str_format(out, "%" PRIu64, words->time_s);
			break;
		case 'n':
			str_format(out, "%" PRIu64, words->number);
			if (numbered)
				*numbered = true;
			break;
		case '%':
			str_add_char(out, '%');
			break;
		default:
			return err_set(
				err, ERR_USAGE,
				"output name '%s': %% may only be followed by e, p, t, h, n or %%",
				pattern);
		}
	}
	return true;
}
