// UTC and not local time: what is written is compared between machines.
#include "base/str.h"

#include <string.h>
#include <time.h>

bool str_date(uint64_t unix_s, struct tm *date)
{
	time_t seconds = (time_t)unix_s;

	return gmtime_r(&seconds, date) != NULL;
}

// A word that needs no quotes is left as it is; else it is put in single quotes, and a quote in
// it becomes '\'' .
void str_add_shell(struct str *str, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_-+=./,:@%^";

	if (word[0] != '\0' && word[strspn(word, plain)] == '\0') {
		str_add(str, word);
		return;
	}
	str_add_char(str, '\'');
	for (; *word != '\0'; word++) {
		if (*word == '\'')
			str_add(str, "'\\''");
		else
			str_add_char(str, *word);
	}
	str_add_char(str, '\'');
}
