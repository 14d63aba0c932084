// For example, frames at 0x7f0024 and 0x7f0030 are in no file, and the program's perf map has the
// line
//
//     7f0010 40 JS:*add /app/m.js:12:3
//
// a function at 0x7f0010 of 0x40 bytes, which both are in. The wanted addresses are sorted, so the
// first one from 0x7f0010 on is found by bisection, and those up to 0x7f0050 follow it. Its name is
// V8's: `*` says how it was compiled, and the text becomes function "add", file "/app/m.js", line
// 12.
#include "collect/code_names.h"

#include "base/mem.h"
#include "base/sort.h"
#include "collect/payload.h"

#include <stdlib.h>
#include <string.h>

enum { JITDUMP_MAGIC = 0x4a695444, JITDUMP_HEADER = 40, JITDUMP_RECORD = 16 };

enum jitdump_kind { JITDUMP_LOAD = 0, JITDUMP_LINES = 2 };

// The processor's counters and ours are read one after the other.
#define JITDUMP_SLACK_NS UINT64_C(200000)

SORT_ORDER(compare_wanted, struct code_wanted, SORT_RISES(pc))

static void sort_wanted(struct code_wanted *wanted, size_t count)
{
	if (count > 1)
		qsort(wanted, count, sizeof *wanted, compare_wanted);
}

// The first one at or behind `pc`.
static size_t find_first(const struct code_wanted *wanted, size_t count, uint64_t pc)
{
	size_t low = 0;

	// `count` is the end of what is searched: less and less of it.
	while (low < count) {
		size_t middle = low + (count - low) / 2;

		if (wanted[middle].pc < pc)
			low = middle + 1;
		else
			count = middle;
	}
	return low;
}

// ---- Perf maps ------------------------------------------------------------------------------

// A hexadecimal number and the blank behind it. False: there is none.
static bool take_number(const char **at, const char *end, uint64_t *number)
{
	const char *from = *at;

	ASSERT(*at <= end);
	*number = 0;
	if (end - from > 2 && from[0] == '0' && from[1] == 'x')
		from += 2;
	for (*at = from; *at < end; (*at)++) {
		char c = **at | 0x20;
		unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
				 : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
							: 16;

		if (digit == 16 || *at - from == 16)
			break;
		*number = *number << 4 | digit;
	}
	if (*at == from || *at == end || **at != ' ')
		return false;
	(*at)++;
	return true;
}

static void take_name(struct code_wanted *wanted, const char *name, size_t length)
{
	length = length < CODE_NAMES_LENGTH ? length : CODE_NAMES_LENGTH;
	if (wanted->length != 0 &&
	    (wanted->length != length || memcmp(wanted->name, name, length) != 0))
		// Two functions were there, one after the other: which of them the frame was in is
		// not known, and that is said.
		wanted->several = true;
	ASSERT(length <= CODE_NAMES_LENGTH);
	wanted->name = name;
	wanted->length = (uint32_t)length;
}

// Lines that are not ADDRESS SIZE NAME are passed over: any program may have written the file.
// False: it names so many frames again and again that it was left.
bool code_names_find_in_map(struct code_wanted *wanted, size_t count, const char *text,
			    size_t length)
{
	const char *end = text + length;
	size_t work = CODE_NAMES_WORK;

	sort_wanted(wanted, count);
	while (text < end) {
		const char *line_end = memchr(text, '\n', (size_t)(end - text));
		const char *at = text;
		uint64_t start, size;

		line_end = line_end != NULL ? line_end : end;
		text = line_end + (line_end < end);
		if (!take_number(&at, line_end, &start) || !take_number(&at, line_end, &size) ||
		    size > CODE_NAMES_FUNCTION_BYTES || at == line_end ||
		    memchr(at, 0, (size_t)(line_end - at)) != NULL)
			continue;
		for (size_t i = find_first(wanted, count, start);
		     i < count && wanted[i].pc - start < size; i++) {
			take_name(&wanted[i], at, (size_t)(line_end - at));
			if (--work == 0)
				return false;
		}
	}
	return true;
}

// ---- Jitdumps -------------------------------------------------------------------------------

static void skip(struct payload *dump, size_t size)
{
	// What is cut is taken as far as it is there, and `short_` says so, for the end, when
	// all fields are read.
	dump->short_ |= dump->left < size;
	size = size < dump->left ? size : dump->left;
	dump->at += size;
	dump->left -= size;
}

// A text with its NUL. NULL: it has none.
static const char *take_text(struct payload *dump, size_t *length)
{
	const uint8_t *end = dump->left ? memchr(dump->at, 0, dump->left) : NULL;
	const char *text = (const char *)dump->at;

	if (end == NULL) {
		dump->short_ = true;
		return NULL;
	}
	*length = (size_t)(end - dump->at);
	dump->left -= *length + 1;
	dump->at = end + 1;
	return text;
}

// Lines of the function that the next record is of.
struct dump_lines {
	uint64_t start;
	struct payload entries; // count of them
	uint64_t count;
	uint64_t told_ns;
};

// The last entry at or before the address.
static void find_line(struct code_wanted *wanted, const struct dump_lines *lines, size_t *work)
{
	struct payload entries = lines->entries;

	wanted->file = NULL;
	wanted->line = 0;
	for (uint64_t i = 0; i<lines->count && * work> 1; i++, (*work)--) {
		uint64_t address = payload_take(&entries, 8);
		uint32_t line = (uint32_t)payload_take(&entries, 4);
		size_t length = 0;
		const char *file;

		skip(&entries, 4); // discriminator
		file = take_text(&entries, &length);
		if (entries.short_ || address > wanted->pc)
			return;
		if (length > 0 && (unsigned char)file[0] != 0xff) // else that of the entry before
			wanted->file = file;
		wanted->line = line;
	}
}

// Whether a function that is there since `since_ns` is it rather than what was found before.
static bool is_better(const struct code_wanted *wanted, uint64_t since_ns)
{
	uint64_t seen_ns = wanted->seen_ns + JITDUMP_SLACK_NS;

	if (wanted->length == 0)
		return true;
	if (since_ns <= seen_ns)
		return wanted->told_ns > seen_ns || since_ns >= wanted->told_ns;
	return wanted->told_ns > seen_ns && since_ns < wanted->told_ns;
}

// A record of a function that was made: 16 bytes that are not needed, its address, its size, a
// number, its name. Its lines, if there are any, came in the record before.
static void take_load(struct code_wanted *wanted, size_t count, struct payload record,
		      uint64_t since_ns, const struct dump_lines *lines, size_t *work)
{
	uint64_t start, size;
	size_t length = 0;
	const char *name;

	skip(&record, 16); // process, thread, address in its file
	start = payload_take(&record, 8);
	size = payload_take(&record, 8);
	skip(&record, 8); // number
	name = take_text(&record, &length);
	if (record.short_ || length == 0 || size > CODE_NAMES_FUNCTION_BYTES)
		return;
	for (size_t i = find_first(wanted, count, start);
	     i < count && wanted[i].pc - start<size && * work> 1; i++, (*work)--) {
		if (!is_better(&wanted[i], since_ns))
			continue;
		take_name(&wanted[i], name, length);
		wanted[i].told_ns = since_ns;
		wanted[i].file = NULL;
		wanted[i].line = 0;
		if (lines->start == start && lines->count > 0)
			find_line(&wanted[i], lines, work);
	}
}

static void take_lines(struct payload record, struct dump_lines *lines)
{
	lines->start = payload_take(&record, 8);
	lines->count = payload_take(&record, 8);
	lines->entries = record;
}

// Records follow each other and say how long they are, so those of other kinds are stepped over.
// The last one may be in the middle of being written: what was found before it counts.
bool code_names_find_in_dump(struct code_wanted *wanted, size_t count, const uint8_t *bytes,
			     size_t length)
{
	struct payload dump = { bytes, length, false };
	struct dump_lines lines = { 0 };
	size_t work = CODE_NAMES_WORK;
	uint64_t header;

	sort_wanted(wanted, count);
	if (payload_take(&dump, 4) != JITDUMP_MAGIC || payload_take(&dump, 4) == 0)
		return true;
	header = payload_take(&dump, 4);
	if (header < JITDUMP_HEADER || header - 12 > dump.left)
		return true;
	dump.at += header - 12;
	dump.left -= header - 12;
	while (dump.left >= JITDUMP_RECORD && work > 1) {
		uint64_t kind = payload_take(&dump, 4), size = payload_take(&dump, 4),
			 since_ns = payload_take(&dump, 8);
		struct payload record = { dump.at, (size_t)size - JITDUMP_RECORD, false };

		if (size < JITDUMP_RECORD || size - JITDUMP_RECORD > dump.left)
			return true; // it is being written, or cut
		dump.at += record.left;
		dump.left -= record.left;
		if (kind == JITDUMP_LOAD) {
			take_load(wanted, count, record, since_ns, &lines, &work);
			lines.count = 0;
		} else if (kind == JITDUMP_LINES) {
			take_lines(record, &lines);
		}
	}
	return work > 1;
}

// ---- What runtimes put into one text --------------------------------------------------------

// Takes ":12" off the end of a text. False: there is no such number.
static bool cut_number(char *text, uint32_t *number)
{
	char *colon = strrchr(text, ':');
	char *end;

	if (colon == NULL || colon[1] < '0' || colon[1] > '9')
		return false;
	*number = (uint32_t)strtoul(colon + 1, &end, 10);
	if (*end != 0)
		return false;
	*colon = 0;
	return true;
}

// V8: "JS:*name /path/file.js:12:3", where the character before the name says how it was compiled;
// node 18 and older have no column. False: it is nothing like that.
static bool split_v8(char *text, struct trace_name *name)
{
	static const char *const kinds[] = { "JS:",     "LazyCompile:", "Function:",
					     "Script:", "Eval:",        NULL };
	size_t skip = 0;
	uint32_t column;
	char *place;

	for (size_t i = 0; kinds[i] != NULL && skip == 0; i++)
		if (strncmp(text, kinds[i], strlen(kinds[i])) == 0)
			skip = strlen(kinds[i]);
	if (skip == 0)
		return false;
	if (text[skip] != 0 && strchr("~^*+-'", text[skip]) != NULL)
		skip++;
	place = strchr(text + skip, ' ');
	if (place != NULL && cut_number(place, &column)) {
		if (!cut_number(place, &name->line))
			name->line = column;
		*place = 0;
		name->file = mem_copy_text(strncmp(place + 1, "file://", 7) == 0 ? place + 8
										 : place + 1);
	}
	name->function = mem_copy_text(text[skip] != 0 ? text + skip : "(anonymous)");
	return true;
}

// CPython: "py::function:/path/file.py".
static bool split_python(char *text, struct trace_name *name)
{
	char *colon;

	if (strncmp(text, "py::", 4) != 0)
		return false;
	colon = strchr(text + 4, ':');
	if (colon != NULL) {
		*colon = 0;
		name->file = mem_copy_text(colon + 1);
	}
	name->function = mem_copy_text(text + 4);
	return true;
}

// What cannot be told apart is the name as it is. Bytes that a terminal would obey become '?', as
// any program may have written them.
void code_names_split(const struct code_wanted *wanted, struct trace_name *name)
{
	char *text = mem_copy_bytes(wanted->name, wanted->length);

	ASSERT(wanted->length > 0 && wanted->length <= CODE_NAMES_LENGTH);
	for (char *at = text; *at != 0; at++) // a terminal would obey
		*at = (unsigned char)*at < ' ' || *at == 0x7f ? '?' : *at;
	memset(name, 0, sizeof *name);
	if (!split_v8(text, name) && !split_python(text, name))
		name->function = mem_copy_text(text);
	if (wanted->file != NULL && name->file == NULL) {
		name->file = mem_copy_text(wanted->file);
		name->line = wanted->line;
	}
	if (name->file == NULL)
		name->file = mem_copy_text("");
	mem_free(text);
}
