// import_lttng: what LTTng-UST's wrapper of libc's allocator records, as babeltrace2 prints it:
//
//     [12:34:56.123456789] (+0.000001234) box lttng_ust_libc:malloc: { cpu_id = 1 }, { vpid = 7,
//     vtid = 8 }, { size = 64, ptr = 0x55D0C0 }
//
// each on one line. Processes and threads are there if their contexts (vpid, vtid) were recorded.
#include "base/mem.h"
#include "import/import_formats.h"
#include "import/number.h"
#include "import/rows.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

enum { VALUE_MAX = 32 };

#define NS_PER_S UINT64_C(1000000000)
#define DAY_NS (86400 * NS_PER_S)

struct lttng {
	struct rows rows;
	uint64_t days_ns, last_ns; // the clock of a day begins anew at midnight
	bool begun;
};

// The value of `KEY = `, the last one of the line, as a number's text. "": it is not there.
// The last one of the line, since contexts come before the fields of the event. A number in decimal
// or with 0x.
static const char *value_of(const char *line, const char *key, char out[VALUE_MAX])
{
	size_t length = strlen(key), count = 0;
	const char *found = NULL;

	for (const char *at = strstr(line, key); at; at = strstr(at + 1, key))
		if (at > line && (at[-1] == ' ' || at[-1] == ',') &&
		    strncmp(at + length, " = ", 3) == 0)
			found = at + length + 3;
	for (; found && count < VALUE_MAX - 1 && isxdigit((unsigned char)found[count]); count++)
		out[count] = found[count];
	if (found && count == 1 && found[1] == 'x')
		for (out[count++] = 'x';
		     count < VALUE_MAX - 1 && isxdigit((unsigned char)found[count]); count++)
			out[count] = found[count];
	ASSERT(count < VALUE_MAX);
	out[count] = '\0';
	return out;
}

// `[HH:MM:SS.nnnnnnnnn]`, also behind a date; or seconds. False: there is none.
// A clock of a day that falls by more than half of one has passed midnight: from 23:59 to 00:01.
static bool take_time(struct lttng *lttng, const char *line, uint64_t *time_ns)
{
	const char *at = *line == '[' ? line + 1 : NULL, *colon;
	uint64_t hour, minute, second_ns;
	char text[VALUE_MAX] = "";

	if (!at || strcspn(at, "]") >= 64)
		return false;
	colon = memchr(at, ':', strcspn(at, "]"));
	strncpy(text, at, strcspn(at, "]") < VALUE_MAX ? strcspn(at, "]") : VALUE_MAX - 1);
	if (!colon)
		return number_parse_time(text, NS_PER_S, time_ns);
	if (colon - at < 2 || !number_parse(colon - 2, 2, &hour) ||
	    !number_parse(colon + 1, 2, &minute) || colon[3] != ':')
		return false;
	text[0] = '\0';
	strncat(text, colon + 4, strcspn(colon + 4, "]") < VALUE_MAX ? strcspn(colon + 4, "]") : 0);
	if (!number_parse_time(text, NS_PER_S, &second_ns) || second_ns > 61 * NS_PER_S)
		return false;
	*time_ns = (hour * 3600 + minute * 60) * NS_PER_S + second_ns;
	if (*time_ns + DAY_NS / 2 < lttng->last_ns)
		lttng->days_ns += DAY_NS;
	lttng->last_ns = *time_ns;
	*time_ns += lttng->days_ns;
	return true;
}

// Which contexts there are shows in the first line of ours.
static bool begin(struct lttng *lttng, const char *line, struct err *err)
{
	static const char *const columns[] = { "time_ns", "op", "address", "size", "old" };
	char value[VALUE_MAX];

	lttng->begun = true;
	for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
		rows_add_column(&lttng->rows, columns[i]);
	if (*value_of(line, "vtid", value))
		rows_add_column(&lttng->rows, "thread");
	if (*value_of(line, "vpid", value))
		rows_add_column(&lttng->rows, "process");
	return rows_begin(&lttng->rows, err);
}

// calloc's size is a product.
// `nmemb` times `size`; a product that leaves 64 bits stays the size alone, and that call must have
// failed.
static void multiply(const char *line, char size[VALUE_MAX])
{
	char text[VALUE_MAX];
	uint64_t count, bytes;

	value_of(line, "nmemb", text);
	if (number_parse(text, strlen(text), &count) && number_parse(size, strlen(size), &bytes) &&
	    !__builtin_mul_overflow(count, bytes, &bytes))
		snprintf(size, VALUE_MAX, "%" PRIu64, bytes);
}

// Events of other providers are stepped over.
static bool read_line(struct lttng *lttng, const char *line, struct err *err)
{
	const char *name = strstr(line, "lttng_ust_libc:"), *fields[ROWS_COLUMNS] = { NULL };
	char op[VALUE_MAX] = "", time[VALUE_MAX], values[ROWS_COLUMNS][VALUE_MAX];
	uint64_t time_ns;

	if (!name)
		return true; // another event
	name += strlen("lttng_ust_libc:");
	strncat(op, name, strcspn(name, ":") < VALUE_MAX ? strcspn(name, ":") : VALUE_MAX - 1);
	if (!lttng->begun && !begin(lttng, line, err))
		return false;
	if (!take_time(lttng, line, &time_ns))
		return err_set(err, ERR_FORMAT, "\"%.40s\" has no time", line);
	snprintf(time, sizeof time, "%" PRIu64, time_ns);
	fields[ROWS_TIME] = time;
	fields[ROWS_OP] = op;
	fields[ROWS_ADDRESS] = value_of(name, strcmp(op, "posix_memalign") ? "ptr" : "out_ptr",
					values[ROWS_ADDRESS]);
	fields[ROWS_SIZE] = value_of(name, "size", values[ROWS_SIZE]);
	fields[ROWS_OLD] = value_of(name, "in_ptr", values[ROWS_OLD]);
	fields[ROWS_THREAD] = value_of(line, "vtid", values[ROWS_THREAD]);
	fields[ROWS_PROCESS] = value_of(line, "vpid", values[ROWS_PROCESS]);
	if (strcmp(op, "calloc") == 0)
		multiply(name, values[ROWS_SIZE]);
	return rows_take(&lttng->rows, fields, err);
}

static bool is_lttng(const char *head, size_t length)
{
	return length > 16 && *head == '[' && strstr(head, " lttng_ust_libc:") != NULL;
}

static bool read_lttng(struct import_work *work, struct err *err)
{
	struct lttng lttng = { .rows = { .intake = work->intake } };
	bool ok = true;
	size_t length;
	char *line;

	while (ok && import_line(work, &line, &length))
		ok = read_line(&lttng, line, err);
	rows_remark(&lttng.rows, work->remarks);
	return ok || import_was_cut(work, err);
}

const struct import_format import_lttng = {
	.name = "lttng",
	.is = is_lttng,
	.read = read_lttng,
};
