#include "base/str.h"

#include <time.h>

bool str_date(uint64_t unix_s, struct tm *date)
{
	time_t seconds = (time_t)unix_s;

	return gmtime_s(date, &seconds) == 0;
}
