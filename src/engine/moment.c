// A time that a user writes, found in a trace. In this order: begin, end or peak, perhaps with a
// distance; mark:NAME; a share of the trace; a time. For example, of a trace of 10 s that was
// trimmed to 2 s, with the marks "load" at 3 s and at 5 s:
//
//     begin         2 s, after the event where the trimming's mark is
//     25%           4 s: 2 + (10 - 2) / 4
//     -1.5s         8.5 s, from the end
//     mark:load     the first one, exactly: events before it in the order are before it
//     mark:load#2   the second, as is mark:load#-1
//     mark:load#2+10ms    5.01 s; no longer exact
//     mark:a+1s     a mark of the name "a+1s", if there is one; else 1 s after the first "a"
//
// A mark has a place in the order of events, a time only a tick: what is *exact* is compared by
// the event's number.
#include "engine/moment.h"

#include "base/mem.h"
#include "base/str.h"
#include "trace/defs.h"

#include <stdlib.h>
#include <string.h>

__extension__ typedef __int128 wide;

enum { DECIMALS_MAX = 9, NAMES_SHOWN = 6 };

static const char mark_word[] = "mark:";

// Digits, perhaps with a point and more digits, times `unit`, rounded. False if there are none, or
// they are too many. `*text` is left behind them.
static bool take_decimal(const char **text, uint64_t unit, uint64_t *value)
{
	wide number = 0;
	wide scale = 1;
	int decimals = -1; // no point yet
	int digits = 0;

	ASSERT(*text && unit > 0);
	for (;; ++*text) {
		if (**text == '.' && decimals < 0) {
			decimals = 0;
			continue;
		}
		if (**text < '0' || **text > '9')
			break;
		if (decimals >= DECIMALS_MAX || digits > 18)
			return false;
		number = number * 10 + (**text - '0');
		digits++;
		if (decimals >= 0) {
			decimals++;
			scale *= 10;
		}
	}
	// 18 digits times an hour in ns are 3.6e30: less than 2^127.
	number = (number * unit + scale / 2) / scale;
	if (digits == 0 || decimals == 0 || number > INT64_MAX)
		return false;
	*value = (uint64_t)number;
	return true;
}

// The digits and points at the beginning are the number, the rest must be a unit. "1.5.2s" is
// refused, for take_decimal stops at the second point and not at the unit.
bool moment_parse_duration(const char *text, int64_t *duration_ns)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {
		{ "ns", 1 },          { "us", 1000 },         { "µs", 1000 },
		{ "ms", 1000000 },    { "s", 1000000000 },    { "min", 60000000000 },
		{ "m", 60000000000 }, { "h", 3600000000000 }, { "", 1000000000 },
	};
	bool minus = *text == '-';
	const char *unit = text + (minus || *text == '+');

	unit += strspn(unit, "0123456789.");
	for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
		const char *at = text + (minus || *text == '+');
		uint64_t value;

		if (strcmp(units[i].name, unit) != 0)
			continue;
		if (!take_decimal(&at, units[i].ns, &value) || at != unit)
			return false;
		*duration_ns = minus ? -(int64_t)value : (int64_t)value;
		return true;
	}
	return false;
}

// "50%", 0 to 100, in millionths of a percent.
static bool parse_percent(const char *text, uint64_t *millionths)
{
	return take_decimal(&text, 1000000, millionths) && strcmp(text, "%") == 0 &&
	       *millionths <= 100000000;
}

static bool is_mark(const char *text)
{
	return strncmp(text, mark_word, sizeof mark_word - 1) == 0 &&
	       text[sizeof mark_word - 1] != '\0';
}

// "begin", "end" or "peak", and perhaps a distance behind it (0: none). NULL: none of them.
static const char *parse_word(const char *text, int64_t *distance_ns)
{
	static const char *const words[] = { "begin", "end", "peak" };

	*distance_ns = 0;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		size_t length = strlen(words[i]);
		const char *rest = text + length;

		if (strncmp(text, words[i], length) != 0)
			continue;
		if (*rest == '\0' ||
		    ((*rest == '+' || *rest == '-') && moment_parse_duration(rest, distance_ns)))
			return words[i];
	}
	return NULL;
}

bool moment_check(const char *text, struct err *err)
{
	uint64_t millionths;
	int64_t duration_ns;

	if (is_mark(text) || parse_word(text, &duration_ns) || parse_percent(text, &millionths) ||
	    moment_parse_duration(text, &duration_ns))
		return true;
	return err_set(
		err, ERR_USAGE,
		"'%s' is not a time (12.5s, 350ms, 50%%, -5s before the end, begin, end, peak, "
		"peak+1ms, mark:NAME, mark:NAME+2s)",
		text);
}

uint64_t moment_duration(const struct reader *reader)
{
	uint64_t last_ns = reader_stats(reader)->last_ns;
	const struct trace_end *end = reader_end(reader);

	return end && end->duration_ns > last_ns ? end->duration_ns : last_ns;
}

static bool at_time(const char *text, wide time_ns, const struct reader *reader,
		    struct moment_edge *edge, struct err *err)
{
	uint64_t duration_ns = moment_duration(reader);

	if (time_ns < 0)
		return err_set(err, ERR_USAGE,
			       "%s is before the beginning of the trace, which is %s long", text,
			       STR_DURATION(duration_ns));
	if (time_ns < moment_begin(reader))
		return err_set(err, ERR_USAGE, "%s is before %s, to which the trace was trimmed",
			       text, STR_DURATION(moment_begin(reader)));
	if (time_ns > duration_ns)
		return err_set(err, ERR_USAGE, "%s is after the end of the trace, which is %s long",
			       text, STR_DURATION(duration_ns));
	*edge = (struct moment_edge){ .time_ns = (uint64_t)time_ns };
	return true;
}

// ---- marks ----

// "NAME" of `length` bytes, the nth of them (-1: the last). False: there is none; *same_count says
// how many of that name there are.
static bool find_mark(const struct reader *reader, const char *name, size_t length, int64_t nth,
		      struct moment_edge *edge, size_t *same_count)
{
	const struct trace_mark *found = NULL;
	size_t count;
	const struct trace_mark *marks = reader_marks(reader, &count);
	size_t same = 0;
	size_t wanted;

	ASSERT(same_count && edge);
	for (size_t i = 0; i < count; i++)
		same += strncmp(marks[i].name, name, length) == 0 && marks[i].name[length] == '\0';
	*same_count = same;
	if (nth == 0 || nth > (int64_t)same || -nth > (int64_t)same)
		return false;
	wanted = nth > 0 ? (size_t)nth : (size_t)((int64_t)same + 1 + nth);
	same = 0;
	for (size_t i = 0; i < count && same < wanted; i++) {
		if (strncmp(marks[i].name, name, length) != 0 || marks[i].name[length] != '\0')
			continue;
		found = &marks[i];
		same++;
	}
	ASSERT(found && wanted >= 1 && wanted <= *same_count);
	*edge = (struct moment_edge){
		.time_ns = found->time_ns,
		.number = found->number,
		.exact = true,
		.mark = found,
		.nth = wanted,
		.same_count = *same_count,
	};
	return true;
}

// The message has the mark that is meant, if one is near in its letters; else the first few that
// there are.
static bool no_mark(const struct reader *reader, const char *name, size_t length, struct err *err)
{
	size_t count;
	const struct trace_mark *marks = reader_marks(reader, &count);
	const char **names = mem_alloc(count + 1, sizeof *names);
	char *wanted = mem_copy_bytes(name, length);
	struct str shown = { 0 };
	const char *nearest;
	size_t known = 0;

	for (size_t i = 0; i < count; i++) {
		size_t j = 0;

		// Marks repeat in loops; only so many different ones are ever suggested.
		while (j < known && strcmp(names[j], marks[i].name) != 0)
			j++;
		if (j == known && known < 1000)
			names[known++] = marks[i].name;
	}
	nearest = str_nearest(wanted, names);
	for (size_t i = 0; i < known && i < NAMES_SHOWN; i++)
		str_format(&shown, "%s'%s'", i ? ", " : "", names[i]);
	if (known == 0)
		err_set(err, ERR_USAGE, "no mark '%s': the trace has no marks", wanted);
	else if (nearest)
		err_set(err, ERR_USAGE, "no mark '%s' in the trace; did you mean '%s'?", wanted,
			nearest);
	else
		err_set(err, ERR_USAGE, "no mark '%s' in the trace; it has %s%s", wanted,
			str_get(&shown), known > NAMES_SHOWN ? " …" : "");
	str_fini(&shown);
	MEM_FREE(wanted, names);
	return false;
}

// "NAME" or "NAME#N".
// A mark may be called "load#2": so the whole name is looked for first, and "#2" taken for a number
// only when there is none.
static bool find_numbered(const struct reader *reader, const char *name, size_t length,
			  struct moment_edge *edge, struct err *err)
{
	const char *hash = str_find_last(name, '#', length);
	size_t same_count;
	int64_t nth;
	char *digits;
	char *rest;

	if (find_mark(reader, name, length, 1, edge, &same_count))
		return true;
	if (!hash || hash + 1 == name + length)
		return no_mark(reader, name, length, err);
	digits = mem_copy_bytes(hash + 1, (size_t)(name + length - hash - 1));
	nth = strtoll(digits, &rest, 10);
	if (*rest) {
		mem_free(digits);
		return no_mark(reader, name, length, err);
	}
	mem_free(digits);
	if (find_mark(reader, name, (size_t)(hash - name), nth, edge, &same_count))
		return true;
	if (same_count == 0)
		return no_mark(reader, name, (size_t)(hash - name), err);
	return err_set(err, ERR_USAGE,
		       "mark '%.*s' was set %zu time%s: #1 to #%zu, or #-1 for the last",
		       (int)(hash - name), name, same_count, same_count == 1 ? "" : "s",
		       same_count);
}

// The last sign after which a time follows divides name and distance; the "-" of "#-1" is none of
// them.
static bool at_mark(const char *text, const struct reader *reader, struct moment_edge *edge,
		    struct err *err)
{
	const char *name = text + sizeof mark_word - 1;
	size_t length = strlen(name);
	const char *sign = NULL;
	int64_t distance_ns = 0;
	size_t same_count;

	ASSERT(is_mark(text));
	if (find_mark(reader, name, length, 1, edge, &same_count))
		return true;
	for (const char *at = name + 1; *name && *at; at++)
		if ((*at == '+' || (*at == '-' && at[-1] != '#')) &&
		    moment_parse_duration(at, &distance_ns))
			sign = at;
	if (!sign)
		return find_numbered(reader, name, length, edge, err);
	moment_parse_duration(sign, &distance_ns);
	return find_numbered(reader, name, (size_t)(sign - name), edge, err) &&
	       at_time(text, (wide)edge->time_ns + distance_ns, reader, edge, err);
}

// The beginning of what is told: a trimmed trace has a mark there.
static bool at_begin(const struct reader *reader, struct moment_edge *edge)
{
	size_t same_count;

	if (!moment_is_trimmed(reader) ||
	    !find_mark(reader, MOMENT_TRIMMED, sizeof MOMENT_TRIMMED - 1, 1, edge, &same_count))
		*edge = (struct moment_edge){ .exact = true };
	return true;
}

bool moment_is_trimmed(const struct reader *reader)
{
	return defs_option(reader_info(reader)->options, "trimmed=") != NULL;
}

uint64_t moment_begin(const struct reader *reader)
{
	struct moment_edge edge;

	// { 0 } where the trace was not trimmed: its beginning.
	at_begin(reader, &edge);
	return edge.time_ns;
}

// `word` is one that parse_word gives.
static bool at_word(const char *word, const struct reader *reader, moment_peak *peak, void *context,
		    struct moment_edge *edge, struct err *err)
{
	if (strcmp(word, "peak") == 0)
		return peak(context, edge, err);
	if (strcmp(word, "begin") == 0)
		return at_begin(reader, edge);
	*edge = (struct moment_edge){
		.time_ns = moment_duration(reader),
		.number = UINT64_MAX,
		.exact = true,
	};
	return true;
}

// Percents are of the time between the trace's begin and its end: 50% of a trace from 2 s to 10 s
// is 6 s. A negative time counts from the end.
bool moment_find(const char *text, const struct reader *reader, moment_peak *peak, void *context,
		 struct moment_edge *edge, struct err *err)
{
	uint64_t duration_ns = moment_duration(reader);
	uint64_t begin_ns = moment_begin(reader);
	uint64_t millionths;
	int64_t time_ns;
	const char *word;

	ASSERT(text && edge);
	if (!moment_check(text, err))
		return false;
	word = parse_word(text, &time_ns);
	if (word)
		return at_word(word, reader, peak, context, edge, err) &&
		       (strcmp(text, word) == 0 ||
			at_time(text, (wide)edge->time_ns + time_ns, reader, edge, err));
	if (is_mark(text))
		return at_mark(text, reader, edge, err);
	else if (parse_percent(text, &millionths))
		*edge = (struct moment_edge){
			.time_ns = begin_ns + (uint64_t)((wide)(duration_ns - begin_ns) *
							 millionths / 100000000),
		};
	else if (moment_parse_duration(text, &time_ns))
		return at_time(text, *text == '-' ? (wide)duration_ns + time_ns : time_ns, reader,
			       edge, err);
	return true;
}

// What an attached process had before is put at the trace's beginning as if it were allocated
// there: a question about what happens begins behind it.
bool moment_skip_before(const struct reader *reader, struct moment_edge *edge, struct err *err)
{
	struct moment_edge attached;
	bool before = false;

	for (process_id id = 0; id < reader_processes_count(reader); id++)
		before |= reader_process(reader, id)->before;
	if (!before)
		return true;
	if (!moment_find("mark:" TRACE_BEFORE_MARK, reader, NULL, NULL, &attached, err))
		return false;
	if (edge->exact ? edge->number < attached.number : edge->time_ns < attached.time_ns)
		*edge = attached;
	return true;
}

// Of two moments of one time the numbers of events decide, if both have one.
bool moment_find_window(const char *from, const char *to, const struct reader *reader,
			moment_peak *peak, void *context, struct moment_edge edges[static 2],
			struct err *err)
{
	if (!moment_find(from ? from : "begin", reader, peak, context, &edges[0], err))
		return err_wrap(err, "--from");
	if (!moment_find(to ? to : "end", reader, peak, context, &edges[1], err))
		return err_wrap(err, "--to");
	if (edges[0].time_ns > edges[1].time_ns ||
	    (edges[0].exact && edges[1].exact && edges[0].number > edges[1].number))
		return err_set(err, ERR_USAGE, "--from %s (%s) is after --to %s (%s)",
			       from ? from : "begin", STR_DURATION(edges[0].time_ns),
			       to ? to : "end", STR_DURATION(edges[1].time_ns));
	return true;
}
