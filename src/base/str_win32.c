// As on POSIX, with the arguments the other way round and an errno as the result. The years end at
// 3000 there: a later date is refused.
#include "base/str.h"

#include <time.h>

bool str_date(uint64_t unix_s, struct tm *date)
{
	time_t seconds = (time_t)unix_s;

	return gmtime_s(date, &seconds) == 0;
}
