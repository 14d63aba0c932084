// As on POSIX, with the arguments the other way round and an errno as the result. The years end at
// 3000 there: a later date is refused.
#include "base/str.h"

#include <string.h>
#include <time.h>

bool str_date(uint64_t unix_s, struct tm *date)
{
	time_t seconds = (time_t)unix_s;

	return gmtime_s(date, &seconds) == 0;
}

// A word that needs no quotes is left as it is; else it is put in double quotes, which cmd.exe and
// PowerShell both know, and a quote in it has a backslash in front. Backslashes at the end would
// take the last quote with them: each is doubled, as those in front of a quote are.
void str_add_shell(struct str *str, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_-+=./:\\";
	size_t slashes = 0;

	if (word[0] != '\0' && word[strspn(word, plain)] == '\0') {
		str_add(str, word);
		return;
	}
	str_add_char(str, '"');
	for (; *word != '\0'; word++) {
		for (slashes += 1; *word == '"' && slashes > 0; slashes--)
			str_add_char(str, '\\');
		slashes = *word == '\\' ? slashes : 0;
		str_add_char(str, *word);
	}
	for (; slashes > 0; slashes--)
		str_add_char(str, '\\');
	str_add_char(str, '"');
}
