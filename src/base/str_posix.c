// UTC and not local time: what is written is compared between machines.
#include "base/str.h"

#include <time.h>

bool str_date(uint64_t unix_s, struct tm *date)
{
	time_t seconds = (time_t)unix_s;

	return gmtime_r(&seconds, date) != NULL;
}
