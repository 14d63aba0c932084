// The inverse of CommandLineToArgvW: quotes around what has blanks, and before a quote, or the
// closing one, each backslash doubled. For example the words app, a b and c:\x y\ become
//
//     app "a b" "c:\x y\\"
#include "launch/command_win32.h"

#include "base/mem.h"

#include <stddef.h>
#include <string.h>

// Backslashes mean something in front of a quotation mark only: there each is doubled.
static void command_add(struct str *out, const char *word)
{
	size_t slashes = 0;

	ASSERT(word != NULL);
	if (word[0] != '\0' && word[strcspn(word, " \t\n\v\"")] == '\0') {
		str_add(out, word);
		return;
	}
	str_add_char(out, '"');
	for (;; word++) {
		if (*word == '\\') {
			slashes++;
			continue;
		}
		if (*word == '"' || *word == '\0')
			slashes *= 2;
		for (slashes += *word == '"'; slashes > 0; slashes--)
			str_add_char(out, '\\');
		if (*word == '\0')
			break;
		str_add_char(out, *word);
	}
	str_add_char(out, '"');
}

void command_quote(struct str *out, char *const *argv)
{
	for (size_t i = 0; argv[i] != NULL; i++) {
		if (i > 0)
			str_add_char(out, ' ');
		command_add(out, argv[i]);
	}
}
