// import_dhat: the JSON of DHAT (Valgrind's, and the crate of that name): two snapshots, at the
// peak and at the end. It is in memory as a whole while it is read: what its frames are called
// stands at its end.
//
// A point of the program is for example
// {"tb":80,"tbk":2,"gb":40,"gbk":1,"eb":0,"ebk":0,"fs":[1,2]}: at the peak one block of 40 bytes
// lived, at the end none, and its stack is the frames 1 and 2 of the table "ftbl", innermost first.
#include "base/mem.h"
#include "base/str.h"
#include "import/import_formats.h"
#include "import/number.h"

#include <ctype.h>
#include <string.h>

enum { FRAMES_MAX = 1 << 10, NS_PER_S = 1000000000 };

// A place where blocks were allocated.
struct point {
	uint64_t at_peak[2], at_end[2]; // bytes, blocks
	size_t first, frames;           // of all numbers of frames
};

// `content` is the whole file. Strings are cut out of it in place, so names stay valid until the
// end.
struct dhat {
	struct import_work *work;
	struct intake *intake;
	struct str content;
	char *at;
	struct point *points;
	size_t points_count, points_capacity;
	uint32_t *numbers;
	size_t numbers_count, numbers_capacity;
	char **names; // parts of the content
	size_t names_count, names_capacity;
	frame_id *frames; // 0: not yet
	char *mode, *unit, *command;
	uint64_t end, peak;
};

// ---- JSON ----

static char skip_blank(struct dhat *dhat)
{
	while (isspace((unsigned char)*dhat->at))
		dhat->at++;
	return *dhat->at;
}

static bool take_char(struct dhat *dhat, char c)
{
	if (skip_blank(dhat) != c)
		return false;
	dhat->at++;
	return true;
}

// A string, as a part of the content; `\"` and `\\` are made plain. Escapes of other characters
// stay as they are written: names of functions have none.
static char *take_string(struct dhat *dhat)
{
	char *begin, *to;

	if (!take_char(dhat, '"'))
		return NULL;
	begin = to = dhat->at;
	for (; *dhat->at && *dhat->at != '"'; dhat->at++) {
		if (*dhat->at == '\\' && (dhat->at[1] == '"' || dhat->at[1] == '\\'))
			dhat->at++;
		*to++ = *dhat->at;
	}
	if (!*dhat->at)
		return NULL;
	dhat->at++;
	*to = '\0';
	return begin;
}

// Whole numbers; what DHAT writes with a sign or a fraction is skipped by skip_value.
static bool take_number(struct dhat *dhat, uint64_t *number)
{
	size_t length;

	skip_blank(dhat);
	length = strspn(dhat->at, "0123456789");
	if (!number_parse(dhat->at, length, number))
		return false;
	dhat->at += length;
	return true;
}

// Any value. Counts brackets and does not recurse, so a file of a million brackets costs no stack.
static bool skip_value(struct dhat *dhat)
{
	unsigned depth = 0;

	do {
		char c = skip_blank(dhat);

		if (c == '"') {
			if (!take_string(dhat))
				return false;
			continue;
		}
		if (c == '\0' || ((c == ',' || c == ':') && depth == 0))
			return false;
		depth += c == '{' || c == '[';
		if ((c == '}' || c == ']') && depth-- == 0)
			return false;
		dhat->at++;
		if (isalnum((unsigned char)c) || c == '-')
			dhat->at += strspn(dhat->at, "+-.0123456789abcdefghijklmnopqrstuvwxyzE");
	} while (depth > 0);
	return true;
}

// The next key of an object, or the end: `*key` is NULL then. False: it is damaged.
static bool next_key(struct dhat *dhat, bool *first, char **key)
{
	*key = NULL;
	if (take_char(dhat, '}'))
		return true;
	if (!*first && !take_char(dhat, ','))
		return false;
	*first = false;
	*key = take_string(dhat);
	return *key && take_char(dhat, ':');
}

// The next item of an array is there; or it ends (`*more` is false).
static bool next_item(struct dhat *dhat, bool *first, bool *more)
{
	*more = false;
	if (take_char(dhat, ']'))
		return true;
	if (!*first && !take_char(dhat, ','))
		return false;
	*first = false;
	return *more = true;
}

// ---- its parts ----

// Numbers of all points are in one list; a point has a stretch of it. What they refer to is known
// only at the end of the file: frame_of looks whether it is there.
static bool read_frames(struct dhat *dhat, struct point *point)
{
	bool first = true, more;
	uint64_t number;

	point->first = dhat->numbers_count;
	if (!take_char(dhat, '['))
		return false;
	while (next_item(dhat, &first, &more)) {
		if (!more) {
			point->frames = dhat->numbers_count - point->first;
			return point->frames <= FRAMES_MAX;
		}
		if (!take_number(dhat, &number) || number > UINT32_MAX)
			return false;
		*MEM_ADD(dhat->numbers, dhat->numbers_count, dhat->numbers_capacity) =
			(uint32_t)number;
	}
	return false;
}

// Sums over the whole run ("tb", "tbk") are skipped: a snapshot has what lived. What a point does
// not say is 0.
static bool read_point(struct dhat *dhat)
{
	struct point point = { 0 };
	const struct {
		const char *key;
		uint64_t *into;
	} fields[] = { { "gb", &point.at_peak[0] },
		       { "gbk", &point.at_peak[1] },
		       { "eb", &point.at_end[0] },
		       { "ebk", &point.at_end[1] } };
	bool first = true, known;
	char *key;

	if (!take_char(dhat, '{'))
		return false;
	while (next_key(dhat, &first, &key)) {
		if (!key) {
			*MEM_ADD(dhat->points, dhat->points_count, dhat->points_capacity) = point;
			return true;
		}
		known = strcmp(key, "fs") == 0;
		if (known && !read_frames(dhat, &point))
			return false;
		for (size_t i = 0; i < sizeof fields / sizeof *fields && !known; i++) {
			if (strcmp(key, fields[i].key) != 0)
				continue;
			known = true;
			if (!take_number(dhat, fields[i].into))
				return false;
		}
		if (!known && !skip_value(dhat))
			return false;
	}
	return false;
}

// False at the first thing that is not as it should be: then `at` is where.
static bool read_points(struct dhat *dhat)
{
	bool first = true, more;

	if (!take_char(dhat, '['))
		return false;
	while (next_item(dhat, &first, &more)) {
		if (!more)
			return true;
		if (!read_point(dhat))
			return false;
	}
	return false;
}

static bool read_names(struct dhat *dhat)
{
	bool first = true, more;
	char *name;

	if (!take_char(dhat, '['))
		return false;
	while (next_item(dhat, &first, &more)) {
		if (!more)
			return true;
		name = take_string(dhat);
		if (!name)
			return false;
		*MEM_ADD(dhat->names, dhat->names_count, dhat->names_capacity) = name;
	}
	return false;
}

// Keys come in any order, and unknown ones are skipped.
static bool read_document(struct dhat *dhat)
{
	bool first = true, ok = take_char(dhat, '{');
	char *key;

	while (ok && next_key(dhat, &first, &key)) {
		if (!key)
			return true;
		if (strcmp(key, "mode") == 0)
			ok = (dhat->mode = take_string(dhat)) != NULL;
		else if (strcmp(key, "tu") == 0)
			ok = (dhat->unit = take_string(dhat)) != NULL;
		else if (strcmp(key, "cmd") == 0)
			ok = (dhat->command = take_string(dhat)) != NULL;
		else if (strcmp(key, "te") == 0)
			ok = take_number(dhat, &dhat->end);
		else if (strcmp(key, "tg") == 0)
			ok = take_number(dhat, &dhat->peak);
		else if (strcmp(key, "pps") == 0)
			ok = read_points(dhat);
		else if (strcmp(key, "ftbl") == 0)
			ok = read_names(dhat);
		else
			ok = skip_value(dhat);
	}
	return false;
}

// ---- the trace ----

// `0xADDRESS: FUNCTION (PLACE)`; a place in a file without lines, `in PATH`, is left out.
// A frame is made when a stack that lives has it; most points of a file have nothing alive.
static frame_id frame_of(struct dhat *dhat, uint32_t number)
{
	char *text, *in;
	frame_id frame;

	ASSERT(dhat->frames != NULL);
	if (number >= dhat->names_count)
		return 0;
	if (dhat->frames[number])
		return dhat->frames[number];
	text = dhat->names[number];
	if (strncmp(text, "0x", 2) == 0 && strstr(text, ": ") &&
	    strncmp(strstr(text, ": "), ": ???", 5) != 0)
		text = strstr(text, ": ") + 2;
	in = strstr(text, " (in ");
	if (in)
		*in = '\0';
	frame = intake_frame_text(dhat->intake, text, strlen(text));
	dhat->frames[number] = frame;
	return frame;
}

// Points without a living block get no stack. Frames are innermost first, and stacks are made from
// the outermost inwards.
static void put_snapshot(struct dhat *dhat, const char *name, uint64_t time_ns, bool peak)
{
	struct series *series = dhat->work->series;
	thread_id thread = intake_thread(dhat->intake, intake_process(dhat->intake, NULL), NULL);

	series_begin(series, name, time_ns);
	for (size_t i = 0; i < dhat->points_count; i++) {
		const struct point *point = &dhat->points[i];
		const uint64_t *sums = peak ? point->at_peak : point->at_end;
		stack_id stack = 0;

		if (sums[1] == 0)
			continue;
		ASSERT(point->first + point->frames <= dhat->numbers_count);
		for (size_t frame = point->frames; frame-- > 0;)
			stack = intake_stack(dhat->intake, stack,
					     frame_of(dhat, dhat->numbers[point->first + frame]));
		series_add(series, thread, stack, 0, sums[1], sums[0]);
	}
	series_end(series);
}

// Times are true where the unit is microseconds; of instructions there is no time, and the
// snapshots are numbered.
static void put_all(struct dhat *dhat)
{
	bool us = dhat->unit && (strcmp(dhat->unit, "µs") == 0 || strcmp(dhat->unit, "us") == 0);
	uint64_t peak_ns = 0, end_ns = NS_PER_S;

	if (us && dhat->end < UINT64_MAX / 1000 && dhat->peak <= dhat->end) {
		peak_ns = dhat->peak * 1000;
		end_ns = dhat->end * 1000;
	} else {
		intake_lacks(dhat->intake, "numbered");
	}
	intake_lacks(dhat->intake, "no-threads");
	if (dhat->command)
		intake_info(dhat->intake)->command = mem_copy_text(dhat->command);
	dhat->frames = mem_alloc(dhat->names_count + 1, sizeof *dhat->frames);
	put_snapshot(dhat, "peak", peak_ns, true);
	put_snapshot(dhat, "end", end_ns, false);
	str_add(dhat->work->remarks,
		"what lived at the peak and at the end is taken: totals, lifetimes and accesses of "
		"dhat are left out\n");
}

static bool is_dhat(const char *head, size_t length)
{
	return length > 16 && *head == '{' && strstr(head, "\"dhatFileVersion\"") != NULL;
}

// DHAT can also count copies and calls that are asked of it by hand, in files of the same form:
// their sums are not of memory that lives. The file is a series by itself (peak and end), so it
// cannot be one of several.
static bool read_all(struct dhat *dhat, struct err *err)
{
	if (dhat->work->input > 0)
		return err_set(err, ERR_FORMAT, "one file of DHAT is a series by itself");
	if (!import_content(dhat->work, &dhat->content, err))
		return false;
	str_add(&dhat->content, "");
	dhat->at = dhat->content.text;
	if (!read_document(dhat))
		return err_set(err, ERR_FORMAT, "it is damaged, or cut, at byte %zu",
			       (size_t)(dhat->at - dhat->content.text));
	if (dhat->mode && strcmp(dhat->mode, "heap") != 0 && strcmp(dhat->mode, "rust-heap") != 0)
		return err_set(err, ERR_FORMAT, "it is not a profile of a heap, but of %.40s",
			       dhat->mode);
	put_all(dhat);
	return true;
}

static bool read_dhat(struct import_work *work, struct err *err)
{
	struct dhat dhat = { .work = work, .intake = work->intake };
	bool ok = read_all(&dhat, err);

	str_fini(&dhat.content);
	MEM_FREE(dhat.points, dhat.numbers, dhat.names, dhat.frames);
	return ok;
}

const struct import_format import_dhat = {
	.name = "dhat",
	.snapshots = true,
	.is = is_dhat,
	.read = read_dhat,
};
