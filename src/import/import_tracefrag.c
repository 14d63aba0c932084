// import_tracefrag: the text log of tracefrag (report/tracefrag.h says how it looks), by the
// original or by `tidemark map --tracefrag`: reservations that leave a part of their slot unused.
//
// The log is by stack; the trace is by time, so the reservations are sorted, and all in memory.
//
// A line is for example
//
//     20250314101530250 4711 12.50: trcmem32: #3 0x10000 4096 0x3000 0x4 250 9000
//
// written on 14 March 2025 by process 4711, which had run for 12.5 s: reservation 3, 4,096 bytes at
// 0x10000, reserved and committed (0x3000), to read and write (4), made at 250 ms and given back at
// 9 s.
#include "base/mem.h"
#include "base/sort.h"
#include "import/import_formats.h"
#include "import/number.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { NS_PER_MS = 1000000, FRAMES_MAX = 1 << 10, PRIVATE = 0x22 };

// Times are milliseconds since the process began.
struct reservation {
	uint64_t address, size, made_ms, freed_ms; // freed_ms 0: not
	uint64_t serial;
	uint32_t type, protection;
	stack_id stack;
};

// A reservation's beginning or end.
struct moment {
	uint64_t ms;
	uint32_t reservation;
	bool ends;
	bool before; // what ends was made in an earlier tick
};

struct tracefrag {
	struct import_work *work;
	struct intake *intake;
	bool begun;
	process_id process;
	thread_id thread;
	uint64_t ran_ms;
	frame_id frames[FRAMES_MAX]; // of the stack that is being told
	size_t frames_count;
	stack_id stack;
	struct reservation *all;
	size_t count, capacity;
};

static bool digits(const char **at, unsigned count, uint64_t *number)
{
	for (*number = 0; count-- > 0; ++*at) {
		if (!isdigit((unsigned char)**at))
			return false;
		*number = *number * 10 + (uint64_t)(**at - '0');
	}
	return true;
}

static bool take(const char **at, bool hex, uint64_t *number)
{
	const char *begin = *at + strspn(*at, " ");
	size_t length = strcspn(begin, " :.");

	*at = begin + length;
	return hex ? number_parse_hex(begin, length, number) : number_parse(begin, length, number);
}

// Days since 1970 of a date: months count from March, so that a leap day is the last of its year.
// For example 1 January 1970: the year is 1969 and the month 10, counted from March. 1969 * 365 +
// 492 - 19 + 4 = 719162 days, 306 for the months, 1 for the day, less 719469: 0.
static uint64_t days_of(uint64_t year, uint64_t month, uint64_t day)
{
	year -= month <= 2;
	month = (month + 9) % 12;
	return year * 365 + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day -
	       719469;
}

// `YYYYMMDDHHMMSSmmm PID SECONDS.HUNDREDTHS: trcmemBITS: `, and where the rest begins. NULL: it is
// not there. Every line has it; the first one's says whose log it is, and when the process began:
// the date less the time that it had run.
static const char *skip_prefix(struct tracefrag *tracefrag, const char *line)
{
	struct trace_process process = { .parent = TRACE_NONE,
					 .start = TRACE_START_EXEC,
					 .exe = "" };
	uint64_t year, month, day, hour, minute, second, ms, pid, ran, hundredths, wall;

	if (!digits(&line, 4, &year) || !digits(&line, 2, &month) || !digits(&line, 2, &day) ||
	    !digits(&line, 2, &hour) || !digits(&line, 2, &minute) || !digits(&line, 2, &second) ||
	    !digits(&line, 3, &ms) || !take(&line, false, &pid) || !take(&line, false, &ran) ||
	    *line++ != '.' || !take(&line, false, &hundredths) ||
	    strncmp(line, ": trcmem", 8) != 0 || pid > UINT32_MAX || ran > UINT32_MAX ||
	    month - 1 > 11 || day - 1 > 30 || year < 1970)
		return NULL;
	line += 8;
	process.bits = strncmp(line, "32", 2) == 0 ? 32 : 64;
	line += strcspn(line, ":");
	if (strncmp(line, ": ", 2) != 0)
		return NULL;
	if (!tracefrag->begun) {
		tracefrag->begun = true;
		process.pid = (uint32_t)pid;
		tracefrag->ran_ms = ran * 1000 + hundredths * 10;
		wall = ((days_of(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
		wall = (wall * 1000 + ms) * NS_PER_MS;
		if (wall > tracefrag->ran_ms * NS_PER_MS)
			intake_info(tracefrag->intake)->began_unix_ns =
				wall - tracefrag->ran_ms * NS_PER_MS;
		tracefrag->process = intake_put_process(tracefrag->intake, &process);
		tracefrag->thread = intake_put_thread(tracefrag->intake, tracefrag->process, 0);
	}
	return line + 2;
}

// The frames that were told, innermost first, as a stack. They come before the reservations that it
// made, so the first of these ends it.
static void finish_stack(struct tracefrag *tracefrag)
{
	if (tracefrag->frames_count == 0)
		return;
	ASSERT(tracefrag->frames_count <= FRAMES_MAX);
	tracefrag->stack = 0;
	while (tracefrag->frames_count > 0)
		tracefrag->stack = intake_stack(tracefrag->intake, tracefrag->stack,
						tracefrag->frames[--tracefrag->frames_count]);
}

// `[N] ADDRESS MODULE!FUNCTION` or `MODULE+0xOFFSET`: what is behind the address is its name.
static bool read_frame(struct tracefrag *tracefrag, const char *at)
{
	const char *name = strchr(at, ' '), *call;
	frame_id frame;

	name = name ? strchr(name + 1, ' ') : NULL;
	if (!name)
		return false;
	call = strchr(++name, '!');
	name = call && call[1] ? call + 1 : name;
	frame = intake_frame_text(tracefrag->intake, name, strlen(name));
	if (frame && tracefrag->frames_count < FRAMES_MAX)
		tracefrag->frames[tracefrag->frames_count++] = frame;
	return true;
}

// Windows' PAGE_ constants as bits: 1 read, 2 write, 4 execute.
static uint32_t access_of(uint64_t protection)
{
	switch (protection & 0xff) {
	case 0x02:
		return 1;
	case 0x04:
	case 0x08:
		return 3;
	case 0x10:
		return 4;
	case 0x20:
		return 5;
	case 0x40:
	case 0x80:
		return 7;
	default:
		return 0;
	}
}

// `#N ADDRESS SIZE TYPE PROTECTION MADE FREED`. Times that would leave 64 bits as nanoseconds are
// refused.
static bool read_reservation(struct tracefrag *tracefrag, const char *at)
{
	struct reservation each = { 0 };
	uint64_t type, protection;

	finish_stack(tracefrag);
	at++;
	if (!take(&at, false, &each.serial) || !take(&at, true, &each.address) ||
	    !take(&at, false, &each.size) || !take(&at, true, &type) ||
	    !take(&at, true, &protection) || !take(&at, false, &each.made_ms) ||
	    !take(&at, false, &each.freed_ms) || type > UINT32_MAX || each.size == 0 ||
	    each.made_ms > UINT64_MAX / NS_PER_MS || each.freed_ms > UINT64_MAX / NS_PER_MS)
		return false;
	each.type = (uint32_t)type;
	each.protection = access_of(protection);
	each.stack = tracefrag->stack;
	*MEM_ADD(tracefrag->all, tracefrag->count, tracefrag->capacity) = each;
	return true;
}

static bool read_line(struct tracefrag *tracefrag, const char *line)
{
	const char *at = skip_prefix(tracefrag, line);

	if (!at)
		return false;
	at += strspn(at, " ");
	switch (*at) {
	case '0': // a stack, by its hash
		tracefrag->frames_count = 0;
		tracefrag->stack = 0;
		return true;
	case '[':
		return read_frame(tracefrag, at);
	case '#':
		return read_reservation(tracefrag, at);
	default:
		return false;
	}
}

// In one tick what was made before it ends first; then one after the other as they are listed.
SORT_ORDER(compare_moments, struct moment, SORT_RISES(ms), SORT_FALLS(before),
	   SORT_RISES(reservation), SORT_RISES(ends))

// The type's bits above the lowest twelve are those of VirtualAlloc.
static void put_moment(struct tracefrag *tracefrag, const struct moment *moment)
{
	const struct reservation *each = &tracefrag->all[moment->reservation];
	struct trace_vm vm = {
		.flags = PRIVATE | (each->type & ~0xfffu),
		.protection = each->protection |
			      (each->type & 0x1000 ? TRACE_PROTECTION_COMMITTED : 0),
	};
	struct trace_event event = {
		.kind = moment->ends ? TRACE_MUNMAP : TRACE_MMAP,
		.time_ns = moment->ms * NS_PER_MS,
		.thread = tracefrag->thread,
		.address = each->address,
		.size = each->size,
		.stack = moment->ends ? 0 : each->stack,
		.vm = &vm,
	};

	if (moment->ends)
		vm = (struct trace_vm){ 0 };
	intake_event(tracefrag->intake, &event);
}

// Beginnings and ends are sorted together: 2 moments for each reservation.
static void put_all(struct tracefrag *tracefrag)
{
	struct moment *moments = mem_alloc(2 * tracefrag->count + 1, sizeof *moments);
	size_t count = 0;

	for (size_t i = 0; i < tracefrag->count; i++) {
		const struct reservation *each = &tracefrag->all[i];

		moments[count++] = (struct moment){ each->made_ms, (uint32_t)i, false, false };
		if (each->freed_ms)
			moments[count++] = (struct moment){ each->freed_ms, (uint32_t)i, true,
							    each->made_ms < each->freed_ms };
	}
	ASSERT(count <= 2 * tracefrag->count);
	qsort(moments, count, sizeof *moments, compare_moments);
	for (size_t i = 0; i < count; i++)
		put_moment(tracefrag, &moments[i]);
	mem_free(moments);
	if (count)
		intake_exit(tracefrag->intake, tracefrag->process, tracefrag->ran_ms * NS_PER_MS,
			    TRACE_EXIT_UNKNOWN, 0);
}

static bool is_tracefrag(const char *head, size_t length)
{
	const char *end = memchr(head, '\n', length);
	size_t first = end ? (size_t)(end - head) : length;

	return first > 30 && isdigit((unsigned char)*head) && strstr(head, ": trcmem") != NULL &&
	       strstr(head, ": trcmem") < head + first;
}

static bool read_tracefrag(struct import_work *work, struct err *err)
{
	struct tracefrag tracefrag = { .work = work, .intake = work->intake };
	bool ok = true;
	size_t length;
	char *line;

	intake_info(work->intake)->host = mem_copy_text("Windows");
	intake_info(work->intake)->tick_ns = NS_PER_MS;
	intake_lacks(work->intake, "no-threads");
	intake_lacks(work->intake, "parts-of-slots");
	while (ok && import_line(work, &line, &length)) {
		ok = !*line || read_line(&tracefrag, line);
		if (!ok)
			err_set(err, ERR_FORMAT, "\"%.60s\" is not a line of tracefrag", line);
	}
	ok = ok || import_was_cut(work, err);
	if (ok)
		put_all(&tracefrag);
	mem_free(tracefrag.all);
	return ok;
}

const struct import_format import_tracefrag = {
	.name = "tracefrag",
	.is = is_tracefrag,
	.read = read_tracefrag,
};
