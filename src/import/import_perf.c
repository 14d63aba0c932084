// import_perf: what `perf script` prints of probes on libc's allocator:
//
//     app 4242/4243 [001] 12.345678: probe_libc:malloc: (7f12) size=0x40
//             7f12 malloc+0x0 (/lib/libc.so.6)
//             55d0 main+0x1a (/tmp/app)
//
//     app 4242/4243 [001] 12.345679: probe_libc:malloc__return: (7f12 <- 55d0) ret=0x55d0c0
//
// A call is its entry, which has the arguments in their order, and the return of the same thread,
// which has the result; of free the entry alone. The stack is the return's, where it has one: at
// the entry the frame pointer is still the caller's, and a walk by it misses the caller.
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "import/import_formats.h"
#include "import/number.h"
#include "import/rows.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

enum { WORD_MAX = 40, VALUES_MAX = 3 };

// An event as it is told, or a call that has not returned.
// `stack` has the frames of the lines after its head, innermost first, with ';' between them.
struct perf_event {
	char function[WORD_MAX];
	char thread[WORD_MAX], process[WORD_MAX], time[WORD_MAX];
	bool returns, there;
	uint64_t values[VALUES_MAX];
	unsigned count;
	struct str stack;
};

// `told` is the event whose lines are being read; a call that has been entered waits in `pending`
// by its thread.
struct perf {
	struct rows rows;
	struct perf_event told;
	struct map calls; // by tid: position in `pending`, + 1
	struct perf_event *pending;
	size_t pending_count, pending_capacity;
	uint64_t without_entry, without_return, other;
};

static void copy_word(char out[WORD_MAX], const char *text, size_t length)
{
	if (length >= WORD_MAX)
		length = WORD_MAX - 1;
	ASSERT(length < WORD_MAX);
	memcpy(out, text, length);
	out[length] = '\0';
}

// ---- a call as a row ----

// The size is the last argument: of calloc the product of both, of realloc the second, of memalign
// too.
static bool put(struct perf *perf, const struct perf_event *call, uint64_t result, const char *time,
		struct err *err)
{
	const char *fields[ROWS_COLUMNS] = { NULL };
	char address[WORD_MAX], size[WORD_MAX], old[WORD_MAX];
	uint64_t bytes = call->count ? call->values[call->count - 1] : 0;
	bool frees = strcmp(call->function, "free") == 0 || strcmp(call->function, "cfree") == 0;

	if (strcmp(call->function, "calloc") == 0 && call->count >= 2 &&
	    __builtin_mul_overflow(call->values[0], call->values[1], &bytes))
		bytes = UINT64_MAX;
	snprintf(address, sizeof address, "%" PRIu64, frees ? call->values[0] : result);
	snprintf(size, sizeof size, "%" PRIu64, frees ? 0 : bytes);
	snprintf(old, sizeof old, "%" PRIu64,
		 strncmp(call->function, "realloc", 7) == 0 ? call->values[0] : 0);
	fields[ROWS_TIME] = time;
	fields[ROWS_OP] = call->function;
	fields[ROWS_ADDRESS] = address;
	fields[ROWS_SIZE] = size;
	fields[ROWS_OLD] = old;
	fields[ROWS_THREAD] = call->thread;
	fields[ROWS_PROCESS] = call->process;
	fields[ROWS_STACK] = str_get(&call->stack);
	return rows_take(&perf->rows, fields, err);
}

// One pending call for each thread: where another is entered, it takes the place of the first.
static struct perf_event *call_of(struct perf *perf, const char *thread)
{
	uint64_t tid = 0, *at;
	bool added;

	number_parse(thread, strlen(thread), &tid);
	at = map_put(&perf->calls, tid, &added);
	if (added) {
		*MEM_ADD(perf->pending, perf->pending_count, perf->pending_capacity) =
			(struct perf_event){ 0 };
		*at = perf->pending_count;
	}
	ASSERT(*at > 0 && *at <= perf->pending_count);
	return &perf->pending[*at - 1];
}

// An event is complete when the next one begins. A return without its entry, or with another
// function's, is counted and left out.
static bool settle(struct perf *perf, struct err *err)
{
	struct perf_event *told = &perf->told, *call, swap;
	bool ok = true;

	if (!told->there)
		return true;
	told->there = false;
	if (!told->returns && told->count &&
	    (strcmp(told->function, "free") == 0 || strcmp(told->function, "cfree") == 0))
		return put(perf, told, 0, told->time, err);
	call = call_of(perf, told->thread);
	if (!told->returns) {
		perf->without_return += call->there;
		swap = *call; // its stack's memory is used again
		*call = *told;
		call->there = true;
		*told = swap;
		told->there = false;
		return true;
	}
	if (!call->there || strcmp(call->function, told->function) != 0 || !told->count) {
		perf->without_entry++;
		return true;
	}
	ASSERT(told->count <= VALUES_MAX);
	call->there = false;
	if (told->stack.length > 0) {
		str_clear(&call->stack);
		str_format(&call->stack, "%s;%s", call->function, told->stack.text);
	}
	ok = put(perf, call, told->values[told->count - 1], told->time, err);
	return ok;
}

// ---- lines ----

// Numbers behind the `=` of a probe's arguments, in their order.
static void take_values(struct perf_event *told, const char *at)
{
	while ((at = strchr(at, '=')) != NULL) {
		size_t length = strcspn(++at, " \t");
		uint64_t value;

		if (told->count < VALUES_MAX && number_parse(at, length, &value))
			told->values[told->count++] = value;
	}
}

// Where `SECONDS.FRACTION: ` stands; NULL: it is not there.
static const char *find_time(const char *line, size_t *length)
{
	for (const char *at = strchr(line, '.'); at; at = strchr(at + 1, '.')) {
		const char *begin = at, *end = at + 1;

		while (begin > line && isdigit((unsigned char)begin[-1]))
			begin--;
		while (isdigit((unsigned char)*end))
			end++;
		if (begin == at || end == at + 1 || *end != ':' || begin == line)
			continue;
		*length = (size_t)(end - begin);
		return begin;
	}
	return NULL;
}

// `PID/TID` or `TID`, before the processor's number, if there is one. From the time backwards,
// since the command's name at the beginning may have blanks and digits.
static void take_thread(struct perf_event *told, const char *line, const char *end)
{
	const char *begin, *slash;

	while (end > line && end[-1] == ' ')
		end--;
	if (end > line && end[-1] == ']') {
		while (end > line && *end != '[')
			end--;
		while (end > line && end[-1] == ' ')
			end--;
	}
	begin = end;
	while (begin > line && begin[-1] != ' ')
		begin--;
	slash = memchr(begin, '/', (size_t)(end - begin));
	copy_word(told->process, begin, (size_t)((slash ? slash : end) - begin));
	begin = slash ? slash + 1 : begin;
	copy_word(told->thread, begin, (size_t)(end - begin));
	if (!slash)
		told->process[0] = '\0'; // it is the thread's number that is there
}

// `perf probe` names a return __return or _ret: both endings are taken off.
static void read_head(struct perf *perf, const char *line)
{
	struct perf_event *told = &perf->told;
	size_t length, ending;
	const char *time = find_time(line, &length), *name, *colon, *end;

	if (!time) {
		perf->other++;
		return;
	}
	told->there = true;
	told->count = 0;
	memset(told->values, 0, sizeof told->values);
	str_clear(&told->stack);
	copy_word(told->time, time, length);
	take_thread(told, line, time);
	name = time + length + 1;
	name += strspn(name, " ");
	// An event's count may stand before its name.
	if (isdigit((unsigned char)*name))
		name += strspn(name, "0123456789 ");
	colon = strchr(name, ':');
	end = colon ? strpbrk(colon + 1, ": ") : NULL;
	if (!end) {
		told->there = false;
		perf->other++;
		return;
	}
	name = colon + 1;
	ending = (size_t)(end - name);
	told->returns = false;
	for (size_t i = 0; i + 1 < ending && !told->returns; i++)
		if (strncmp(name + i, "__return", 8) == 0 || strncmp(name + i, "_ret", 4) == 0) {
			told->returns = true;
			ending = i;
		}
	copy_word(told->function, name, ending);
	take_values(told, end);
}

// `ADDRESS FUNCTION+0xOFFSET (PATH)`, of which all but the first two may be missing. A frame
// without a name is called by its module and address. A ; in a name would begin another frame, and
// becomes a colon.
static void read_frame(struct perf *perf, const char *line)
{
	const char *at = line + strspn(line, " \t"), *name, *path, *end;
	struct str *stack = &perf->told.stack;
	size_t length = strcspn(at, " ");

	name = at + length + strspn(at + length, " ");
	path = str_find_last(name, '(', strlen(name));
	if (!path || path == name || path[-1] != ' ') // of a function's name
		path = name + strlen(name);
	if (!*name || !perf->told.there)
		return;
	if (stack->length)
		str_add_char(stack, ';');
	if (strncmp(name, "[unknown]", 9) == 0) {
		for (const char *slash = path; (slash = strchr(slash, '/')) != NULL; slash++)
			path = slash;
		if (*path)
			str_add_bytes(stack, path + 1, strcspn(path + 1, ")"));
		str_format(stack, " 0x%.*s", (int)length, at);
		return;
	}
	end = strstr(name, "+0x");
	end = end && end < path ? end : *path ? path - 1 : path;
	for (; name < end; name++)
		str_add_char(stack, *name == ';' ? ':' : *name);
}

// Frames are indented by a tab, or by blanks in older versions; an empty line ends an event.
static bool read_line(struct perf *perf, const char *line, struct err *err)
{
	bool ok = true;

	if (*line == '\0' || *line == '#')
		return settle(perf, err);
	if (*line == '\t' ||
	    (*line == ' ' && line[strspn(line, " ")] != '\0' && !find_time(line, &(size_t){ 0 }))) {
		read_frame(perf, line);
		return true;
	}
	ok = settle(perf, err);
	if (ok)
		read_head(perf, line);
	return ok;
}

// A line with a time and the name of a probe on malloc, but not of the kind that babeltrace prints.
static bool is_perf(const char *head, size_t length)
{
	const char *name = strstr(head, "malloc");

	for (; length > 32 && name; name = strstr(name + 1, "malloc")) {
		const char *begin = name, *time;
		size_t at;

		while (begin > head && begin[-1] != '\n')
			begin--;
		time = find_time(begin, &at);
		if (name > head && name[-1] == ':' && time && time < name &&
		    !memchr(begin, '{', (size_t)(name - begin)))
			return true;
	}
	return false;
}

static void remark(struct perf *perf, struct str *remarks)
{
	uint64_t open = perf->without_return;

	for (size_t i = 0; i < perf->pending_count; i++)
		open += perf->pending[i].there;
	if (open || perf->without_entry)
		str_format(remarks,
			   "%s calls without a return and %s returns without a call are left out\n",
			   STR_COUNT(open), STR_COUNT(perf->without_entry));
	if (perf->other)
		str_format(remarks, "%s lines are of no event and are left out\n",
			   STR_COUNT(perf->other));
	rows_remark(&perf->rows, remarks);
}

static bool read_perf(struct import_work *work, struct err *err)
{
	static const char *const columns[] = { "time_s", "op",     "address", "size",
					       "old",    "thread", "process", "backtrace" };
	struct perf perf = { .rows = { .intake = work->intake } };
	bool ok;
	size_t length;
	char *line;

	for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
		rows_add_column(&perf.rows, columns[i]);
	ok = rows_begin(&perf.rows, err);
	while (ok && import_line(work, &line, &length))
		ok = read_line(&perf, line, err);
	ok = ok && settle(&perf, err);
	remark(&perf, work->remarks);
	str_fini(&perf.told.stack);
	for (size_t i = 0; i < perf.pending_count; i++)
		str_fini(&perf.pending[i].stack);
	mem_free(perf.pending);
	map_fini(&perf.calls);
	return ok || import_was_cut(work, err);
}

const struct import_format import_perf = {
	.name = "perf",
	.is = is_perf,
	.read = read_perf,
};
