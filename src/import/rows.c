// A row is a call as its writer saw it; settle makes of it what it came to, so that all importers
// need no rules of their own. For example
//
//     op=realloc  old=0x10  address=0x20  size=64    a realloc
//     op=realloc  old=0     address=0x20  size=64    a malloc
//     op=realloc  old=0x10  address=0     size=64    a realloc that failed: 0x10 lives on
//     op=realloc  old=0x10  address=0     size=0     a free of 0x10
//     op=malloc   address=0               size=64    a call that failed
//     op=free     address=0                          nothing
//
// Times: a column `time` without a unit is seconds where its first value has a fraction, and else
// nanoseconds. Times of an hour and more are taken to begin elsewhere, and the first becomes 0;
// from 2001 on they are a clock, and say when the recording began.
#include "import/rows.h"

#include "base/mem.h"
#include "import/number.h"
#include "trace/asm_words.h"

#include <string.h>
#include <strings.h>

#define NS_PER_S 1000000000u
#define HOUR_NS (3600ull * NS_PER_S)
#define YEAR_2001_NS (1000000000ull * NS_PER_S)

// Columns by their names; of a time, the unit that the name says.
// `scale` is nanoseconds a unit; 0: the name does not say. `backtrace` begins with the innermost
// frame, `stack` with the outermost, as the tools that use these names have it.
static const struct column_name {
	const char *name;
	uint8_t column;
	bool innermost_first;
	uint32_t scale;
} column_names[] = {
	{ "time", ROWS_TIME, false, 0 },
	{ "timestamp", ROWS_TIME, false, 0 },
	{ "time_ns", ROWS_TIME, false, 1 },
	{ "time_us", ROWS_TIME, false, 1000 },
	{ "time_ms", ROWS_TIME, false, 1000000 },
	{ "time_s", ROWS_TIME, false, NS_PER_S },
	{ "op", ROWS_OP, false, 0 },
	{ "event", ROWS_OP, false, 0 },
	{ "address", ROWS_ADDRESS, false, 0 },
	{ "addr", ROWS_ADDRESS, false, 0 },
	{ "ptr", ROWS_ADDRESS, false, 0 },
	{ "size", ROWS_SIZE, false, 0 },
	{ "bytes", ROWS_SIZE, false, 0 },
	{ "old", ROWS_OLD, false, 0 },
	{ "old_address", ROWS_OLD, false, 0 },
	{ "old_ptr", ROWS_OLD, false, 0 },
	{ "thread", ROWS_THREAD, false, 0 },
	{ "tid", ROWS_THREAD, false, 0 },
	{ "process", ROWS_PROCESS, false, 0 },
	{ "pid", ROWS_PROCESS, false, 0 },
	{ "stack", ROWS_STACK, false, 0 },
	{ "backtrace", ROWS_STACK, true, 0 },
	{ "call", ROWS_CALL, false, 0 },
};

// What an `op` means, besides the words of the text form.
static const struct op_name {
	const char *name;
	uint8_t kind;
} op_names[] = {
	{ "alloc", TRACE_MALLOC },
	{ "allocate", TRACE_MALLOC },
	{ "a", TRACE_MALLOC },
	{ "m", TRACE_MALLOC },
	{ "+", TRACE_MALLOC },
	{ "new", TRACE_MALLOC },
	{ "new[]", TRACE_MALLOC },
	{ "operator new", TRACE_MALLOC },
	{ "strdup", TRACE_MALLOC },
	{ "heapalloc", TRACE_MALLOC },
	{ "rtlallocateheap", TRACE_MALLOC },
	{ "memalign", TRACE_ALIGNED },
	{ "posix_memalign", TRACE_ALIGNED },
	{ "aligned_alloc", TRACE_ALIGNED },
	{ "valloc", TRACE_ALIGNED },
	{ "f", TRACE_FREE },
	{ "-", TRACE_FREE },
	{ "dealloc", TRACE_FREE },
	{ "release", TRACE_FREE },
	{ "cfree", TRACE_FREE },
	{ "delete", TRACE_FREE },
	{ "delete[]", TRACE_FREE },
	{ "operator delete", TRACE_FREE },
	{ "heapfree", TRACE_FREE },
	{ "rtlfreeheap", TRACE_FREE },
	{ "r", TRACE_REALLOC },
	{ "reallocarray", TRACE_REALLOC },
	{ "heaprealloc", TRACE_REALLOC },
	{ "rtlreallocateheap", TRACE_REALLOC },
};

_Static_assert(ROWS_COLUMNS <= UINT8_MAX && TRACE_FAILED <= UINT8_MAX, "as the tables have them");

// Upper and lower case alike.
static const struct column_name *find_column(const char *name)
{
	for (size_t i = 0; i < sizeof column_names / sizeof *column_names; i++)
		if (strcasecmp(column_names[i].name, name) == 0)
			return &column_names[i];
	return NULL;
}

enum rows_column rows_find_column(const char *name)
{
	const struct column_name *found = find_column(name);

	return found ? (enum rows_column)found->column : ROWS_IGNORED;
}

// The first column of a meaning counts; another of the same is ignored.
enum rows_column rows_add_column(struct rows *rows, const char *name)
{
	const struct column_name *found = find_column(name);

	if (!found || rows->has[found->column])
		return ROWS_IGNORED;
	ASSERT(found->column < ROWS_COLUMNS);
	rows->has[found->column] = true;
	if (found->column == ROWS_TIME)
		rows->time_scale = found->scale;
	if (found->column == ROWS_STACK)
		rows->order = found->innermost_first ? INTAKE_INNERMOST_FIRST
						     : INTAKE_OUTERMOST_FIRST;
	return (enum rows_column)found->column;
}

// `op`, an address and a size are what makes a table one of events; what else is missing is said in
// the trace.
bool rows_begin(struct rows *rows, struct err *err)
{
	static const struct {
		enum rows_column column;
		const char *name;
	} needed[] = { { ROWS_OP, "op" }, { ROWS_ADDRESS, "address" }, { ROWS_SIZE, "size" } };

	for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
		if (!rows->has[needed[i].column])
			return err_set(err, ERR_FORMAT,
				       "there is no column \"%s\" (try: a header "
				       "time_ns,op,address,size,old_address,thread,stack)",
				       needed[i].name);
	if (!rows->has[ROWS_TIME])
		intake_lacks(rows->intake, "no-clock");
	if (!rows->has[ROWS_THREAD])
		intake_lacks(rows->intake, "no-threads");
	if (!rows->has[ROWS_STACK])
		intake_lacks(rows->intake, "no-stacks");
	return true;
}

static uint8_t find_kind(const char *word)
{
	for (size_t i = 0; i < sizeof op_names / sizeof *op_names; i++)
		if (strcasecmp(op_names[i].name, word) == 0)
			return op_names[i].kind;
	return asm_words_find_event(word);
}

// The halves of a realloc, as our own export has them.
// 0: not a kind of event that is known.
static uint8_t kind_of(const char *op, const char *call)
{
	uint8_t kind = find_kind(op);

	if (!call || strcmp(call, "realloc") != 0)
		return kind;
	return kind == TRACE_MALLOC ? TRACE_REALLOC_ALLOC
	       : kind == TRACE_FREE ? TRACE_REALLOC_FREE
				    : kind;
}

// An empty field is 0, as is what printf makes of NULL.
static bool take_number(const char *text, const char *what, uint64_t *number, struct err *err)
{
	*number = 0;
	if (!text || !*text || strcmp(text, "(nil)") == 0 || strcasecmp(text, "null") == 0)
		return true;
	return number_parse(text, strlen(text), number) ||
	       err_set(err, ERR_FORMAT,
		       "\"%.40s\" is not a number (%s: decimal, or hexadecimal with 0x)", text,
		       what);
}

// The first time says where times begin.
// Only the first row decides, so that a file is read as a stream.
static void begin_time(struct rows *rows, uint64_t time_ns)
{
	ASSERT(!rows->begun && rows->first_ns == 0);
	if (time_ns >= HOUR_NS)
		rows->first_ns = time_ns;
	if (time_ns >= YEAR_2001_NS)
		intake_info(rows->intake)->began_unix_ns = time_ns;
}

// Without a clock a row is a microsecond, so that the order shows. A time before the first is 0.
static bool take_time(struct rows *rows, const char *text, uint64_t *time_ns, struct err *err)
{
	if (!rows->has[ROWS_TIME]) {
		*time_ns = rows->count * 1000;
		return true;
	}
	if (!text || !*text)
		return err_set(err, ERR_FORMAT, "the row has no time");
	if (rows->time_scale == 0)
		rows->time_scale = strchr(text, '.') ? NS_PER_S : 1;
	if (!number_parse_time(text, rows->time_scale, time_ns))
		return err_set(err, ERR_FORMAT, "\"%.40s\" is not a time", text);
	if (!rows->begun)
		begin_time(rows, *time_ns);
	*time_ns = *time_ns > rows->first_ns ? *time_ns - rows->first_ns : 0;
	return true;
}

// What a call came to. False: to nothing.
// A free of NULL does nothing, and neither does what follows from it.
static bool settle(struct trace_event *event)
{
	switch (event->kind) {
	case TRACE_MALLOC:
	case TRACE_CALLOC:
	case TRACE_ALIGNED:
		if (event->address == 0)
			event->kind = TRACE_FAILED;
		event->old_address = 0;
		return true;
	case TRACE_FREE:
		event->size = event->old_address = 0;
		return event->address != 0;
	case TRACE_REALLOC:
		if (event->old_address == 0) {
			event->kind = event->address ? TRACE_MALLOC : TRACE_FAILED;
		} else if (event->address == 0) {
			event->kind = event->size ? TRACE_REALLOC_FAILED : TRACE_FREE;
			event->address = event->old_address;
			event->old_address = 0;
		}
		return true;
	case TRACE_REALLOC_FREE:
		event->size = event->old_address = 0;
		return event->address != 0;
	case TRACE_FAILED:
		event->address = event->old_address = 0;
		return true;
	default:
		event->old_address = 0;
		return true;
	}
}

// One word is kept for the remark: mostly all of them are of one kind.
static void count_other(struct rows *rows, const char *word)
{
	if (rows->other++ == 0)
		strncpy(rows->other_word, word, sizeof rows->other_word - 1);
}

// Fields that are missing are NULL, and the intake takes them for what is not known.
static void place(struct rows *rows, const char *const fields[], struct trace_event *event)
{
	struct intake *intake = rows->intake;
	process_id process = intake_process(intake, fields[ROWS_PROCESS]);

	event->thread = intake_thread(intake, process, fields[ROWS_THREAD]);
	if (fields[ROWS_STACK])
		event->stack = intake_stack_text(intake, fields[ROWS_STACK], rows->order);
}

// Numbers are looked at also where the op is not known, so that a broken file does not pass for one
// of other events.
bool rows_take(struct rows *rows, const char *const fields[ROWS_COLUMNS], struct err *err)
{
	struct trace_event event = { 0 };
	const char *op = fields[ROWS_OP] ? fields[ROWS_OP] : "";

	event.kind = kind_of(op, fields[ROWS_CALL]);
	if (!*op)
		return err_set(err, ERR_FORMAT, "the row has no op");
	if (!take_time(rows, fields[ROWS_TIME], &event.time_ns, err) ||
	    !take_number(fields[ROWS_ADDRESS], "address", &event.address, err) ||
	    !take_number(fields[ROWS_SIZE], "size", &event.size, err) ||
	    !take_number(fields[ROWS_OLD], "address", &event.old_address, err))
		return false;
	ASSERT(rows->intake);
	rows->begun = true;
	rows->count++;
	if (event.kind == 0 || event.kind > TRACE_FAILED) {
		count_other(rows, op);
		return true;
	}
	if (!settle(&event))
		return true;
	ASSERT(event.kind > 0 && event.kind <= TRACE_FAILED);
	place(rows, fields, &event);
	intake_event(rows->intake, &event);
	return true;
}

void rows_remark(const struct rows *rows, struct str *remarks)
{
	if (rows->other)
		str_format(remarks, "%s rows are left out: their op is %s%s\n",
			   STR_COUNT(rows->other), rows->other_word,
			   rows->other > 1 ? " or another that is not known" : "");
	if (rows->first_ns)
		str_format(remarks, "times begin at %s in the input: that is 0 in the trace\n",
			   STR_DURATION(rows->first_ns));
}
