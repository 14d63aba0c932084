// import_leaks: reports of what was not freed, as text: LeakSanitizer's, those of Valgrind's
// memcheck, and what bcc's memleak prints now and then. Each is sums by stack: a line with bytes
// and blocks, then the stack, innermost frame first. Other lines, as of the program itself, are
// stepped over.
//
// The three differ in two kinds of lines, which a dialect reads: a sum ("Direct leak of 24 byte(s)
// in 1 object(s)") and a frame ("#1 0x401136 in make app.c:5:3"). A line that is neither ends a
// stack, so what a program prints in between does no harm.
//
// A file of memcheck's may have several leak checks, each with all that is lost by then: a program
// asks for them (VALGRIND_DO_LEAK_CHECK), and each process makes one at its end. The last one of
// each process counts, so sums are kept until the end of the file.
//
// The first two say of a sum whether the program could still find its blocks: definitely lost, or
// direct, is unreachable; indirectly lost is held; possibly lost is inside (trace.h).
#include "base/mem.h"
#include "base/str.h"
#include "import/import_formats.h"
#include "import/number.h"

#include <inttypes.h>
#include <string.h>

enum { FRAMES_MAX = 1 << 10, STEP_NS = 1000000000 };

// A line with a sum.
struct leak {
	uint64_t count, bytes;
	uint64_t holds; // bytes of others that only these hold, and that may be in no other sum
	uint8_t state;  // enum trace_reach_state; 0: the source does not know
};

// A sum whose stack has been read.
struct leak_sum {
	struct leak leak;
	stack_id stack;
	size_t process;  // of leaks->checks
	uint64_t number; // of the check
};

// The leak checks of a process: which is the last one, and whether it has ended.
struct leak_checks {
	uint64_t pid;
	uint64_t number; // of the last one; 0: there was none
	bool over;
	bool bare; // it ended without any sum: there were none, or it says but totals
};

// A sum is open from its line until its stack ends; then it is one of `sums`, which are added to
// the series where its snapshot ends.
struct leaks {
	struct import_work *work;
	struct intake *intake;
	const struct dialect *dialect;
	process_id process;
	thread_id thread;
	struct leak sum;    // whose stack is told
	size_t sum_process; // whose it is
	bool open;          // there is one
	bool begun;         // a snapshot
	uint64_t snapshots; // before it
	frame_id frames[FRAMES_MAX];
	size_t frames_count;
	uint64_t cut;                           // frames that did not fit
	uint64_t indirect_told, indirect_bytes; // held by what is lost: as its sums say; in sums
	struct leak_sum *sums;
	size_t sums_count, sums_capacity;
	struct leak_checks *checks; // by process; of other dialects than memcheck one
	size_t checks_count, checks_capacity;
	uint64_t changes; // sums of checks that tell what has changed alone
};

struct dialect {
	// A line with a sum's bytes and blocks. `leak` is { 0 } before.
	bool (*take_sum)(const char *line, struct leak *leak);
	// A frame of the stack behind it; 0: it is none.
	frame_id (*take_frame)(struct leaks *leaks, char *line);
	// Whether the line begins another snapshot; NULL: there is one.
	bool (*begins)(const char *line);
	const char *command; // what comes before the program's command; NULL: it is not told
	bool reached;        // sums have states
	bool checks;         // there may be several leak checks, of several processes
};

// ---- numbers and words ----

// A number with or without commas, and where it ends. NULL: there is none.
// Valgrind writes 1,234,567.
static const char *take_number(const char *at, uint64_t *number)
{
	const char *begin = at;

	for (*number = 0; (*at >= '0' && *at <= '9') || (*at == ',' && at > begin); at++)
		if (*at != ',' && (__builtin_mul_overflow(*number, 10, number) ||
				   __builtin_add_overflow(*number, (uint64_t)(*at - '0'), number)))
			return NULL;
	return at > begin ? at : NULL;
}

static const char *skip_word(const char *at, const char *word)
{
	size_t length = strlen(word);

	return at && strncmp(at, word, length) == 0 ? at + length : NULL;
}

static frame_id named(struct leaks *leaks, const char *function, const char *file, uint32_t line)
{
	struct trace_name name = { (char *)function, (char *)file, line };

	return intake_frame_named(leaks->intake, &name, 1);
}

// A function that is not known: its module's last part, and the address.
// For example "libfoo.so 0x401136": the address alone would be one of no file.
static frame_id unnamed(struct leaks *leaks, const char *module, uint64_t address)
{
	struct str text = { 0 };
	frame_id frame;

	str_format(&text, "%s 0x%" PRIx64, str_last_part(module), address);
	frame = named(leaks, str_get(&text), "", 0);
	str_fini(&text);
	return frame;
}

// `FILE:LINE` or `FILE:LINE:COLUMN` apart.
// Cuts the text at the colons; the line is the number after the first of them. 0: there is none.
static uint32_t split_line(char *file)
{
	uint64_t number, line = 0;
	char *colon;

	for (int i = 0; i < 2 && (colon = strrchr(file, ':')) != NULL; i++) {
		if (!number_parse(colon + 1, strlen(colon + 1), &number) || number > UINT32_MAX)
			break;
		line = number;
		*colon = '\0';
	}
	return (uint32_t)line;
}

// ---- LeakSanitizer ----

// `Direct leak of 24 byte(s) in 1 object(s) allocated from:`
static bool take_lsan_sum(const char *line, struct leak *leak)
{
	const char *at = strstr(line, "irect leak of ");

	leak->state = at && at > line && at[-1] == 'D' ? TRACE_REACH_UNREACHABLE : TRACE_REACH_HELD;
	at = at ? take_number(at + strlen("irect leak of "), &leak->bytes) : NULL;
	at = skip_word(at, " byte(s) in ");
	return at && take_number(at, &leak->count);
}

// `    #1 0x401136 in make /tmp/app.c:5:3` or `… in make (/tmp/app+0x1136) (BuildId: …)`
// The place is the last word, if it looks like a path or a module.
static frame_id take_lsan_frame(struct leaks *leaks, char *line)
{
	char *at = line + strspn(line, " "), *place, *end;
	uint64_t address;

	if (*at != '#' || !(at = strstr(at, " 0x")))
		return 0;
	if (!number_parse(at + 1, strcspn(at + 1, " "), &address))
		return 0;
	if ((end = strstr(at, " (BuildId:")) != NULL)
		*end = '\0';
	at += 1 + strcspn(at + 1, " ");
	if (strncmp(at, " in ", 4) != 0) {
		at += strspn(at, " (");
		at[strcspn(at, "+)")] = '\0';
		return unnamed(leaks, at, address);
	}
	at += 4;
	end = at + strlen(at);
	if (end > at && end[-1] == ')' &&
	    (place = (char *)str_find_last(at, '(', (size_t)(end - at))) && place > at &&
	    place[-1] == ' ') {
		place[-1] = '\0';
		return named(leaks, at, "", 0);
	}
	place = (char *)str_find_last(at, ' ', (size_t)(end - at));
	if (!place || !strchr("/.<", place[1]))
		return named(leaks, at, "", 0);
	*place++ = '\0';
	address = split_line(place);
	return named(leaks, at, place, (uint32_t)address);
}

// ---- memcheck ----

// Behind `==PID== `, which may be repeated by the program's own lines. NULL: it is not there.
// Lines of memcheck begin with ==PID==.
static const char *take_pid(const char *line, uint64_t *pid)
{
	const char *at = line[0] == '=' && line[1] == '=' ? take_number(line + 2, pid) : NULL;

	return skip_word(at, "== ");
}

static const char *skip_pid(const char *line)
{
	uint64_t pid;

	return take_pid(line, &pid);
}

// `definitely lost in loss record …`. 0: it is none of these.
static uint8_t memcheck_state(const char *at)
{
	static const char *const words[TRACE_REACH_STATES_COUNT] = {
		[TRACE_REACH_REACHABLE] = "still reachable in ",
		[TRACE_REACH_INSIDE] = "possibly lost in ",
		[TRACE_REACH_UNREACHABLE] = "definitely lost in ",
		[TRACE_REACH_HELD] = "indirectly lost in ",
	};

	for (uint8_t state = 1; state < TRACE_REACH_STATES_COUNT; state++)
		if (skip_word(at, words[state]))
			return state;
	return 0;
}

// `24 (16 direct, 8 indirect) bytes in 1 blocks are definitely lost in loss record 1 of 2`
// The direct ones are in its blocks. The others are of other stacks, and where these are shown
// (--show-leak-kinds=all) they have sums of their own.
static const char *take_memcheck_bytes(const char *at, struct leak *leak)
{
	const char *direct = take_number(at, &leak->bytes);

	if (!skip_word(direct, " ("))
		return direct;
	at = take_number(skip_word(direct, " ("), &leak->bytes);
	at = skip_word(at, " direct, ");
	return skip_word(at ? take_number(at, &leak->holds) : NULL, " indirect)");
}

static bool take_memcheck_sum(const char *line, struct leak *leak)
{
	const char *at = skip_pid(line);

	at = at ? take_memcheck_bytes(at, leak) : NULL;
	at = skip_word(at, " bytes in ");
	at = at ? take_number(at, &leak->count) : NULL;
	at = skip_word(at, " blocks are ");
	leak->state = at ? memcheck_state(at) : 0;
	return leak->state && strstr(at, "loss record") != NULL;
}

// `==PID==    by 0x109156: main (app.c:5)` or `… ??? (in /usr/bin/app)`
static frame_id take_memcheck_frame(struct leaks *leaks, char *line)
{
	char *at = (char *)skip_pid(line), *open, *end;
	uint64_t address, number;

	if (!at)
		return 0;
	at += strspn(at, " ");
	if (strncmp(at, "at 0x", 5) != 0 && strncmp(at, "by 0x", 5) != 0)
		return 0;
	at += 3;
	end = strstr(at, ": ");
	if (!end || !number_parse(at, (size_t)(end - at), &address))
		return 0;
	at = end + 2;
	open = (char *)str_find_last(at, '(', strlen(at));
	if (!open || open == at || open[-1] != ' ')
		return named(leaks, at, "", 0);
	open[-1] = '\0';
	open[strcspn(open, ")")] = '\0';
	if (strncmp(open + 1, "in ", 3) == 0)
		return strcmp(at, "???") == 0 ? unnamed(leaks, open + 4, address)
					      : named(leaks, at, "", 0);
	number = split_line(open + 1);
	return named(leaks, at, open + 1, (uint32_t)number);
}

// ---- memleak ----

// `	320 bytes in 10 allocations from stack`
static bool take_memleak_sum(const char *line, struct leak *leak)
{
	const char *at = take_number(line + strspn(line, " \t"), &leak->bytes);

	at = skip_word(at, " bytes in ");
	at = at ? take_number(at, &leak->count) : NULL;
	return skip_word(at, " allocations from stack") != NULL;
}

// `		main+0x1a [app]`, with or without an address before it.
// Kernel and user frames alike: NAME+0xOFFSET and a module in brackets.
static frame_id take_memleak_frame(struct leaks *leaks, char *line)
{
	char *at = line + strspn(line, " \t"), *module, *plus;
	uint64_t address = 0;

	if (at == line || !*at)
		return 0;
	if (strncmp(at, "0x", 2) == 0) {
		if (!number_parse(at, strcspn(at, " \t"), &address))
			return 0;
		at += strcspn(at, " \t");
		at += strspn(at, " \t");
	}
	module = (char *)str_find_last(at, '[', strlen(at));
	if (!module)
		return 0;
	if (strncmp(at, "[unknown]", 9) == 0) {
		module[strcspn(module, "]")] = '\0';
		return unnamed(leaks, module > at ? module + 1 : "?", address);
	}
	*module = '\0';
	plus = strstr(at, "+0x");
	at[plus ? (size_t)(plus - at) : strcspn(at, " ")] = '\0';
	return *at ? named(leaks, at, "", 0) : 0;
}

static bool begins_memleak(const char *line)
{
	return *line == '[' && strstr(line, "with outstanding allocations:") != NULL;
}

// ---- the report ----

// A file is a snapshot, but for memleak, which prints one after the other: these are seconds apart.
static void begin_snapshot(struct leaks *leaks, const char *line)
{
	struct import_work *work = leaks->work;
	const char *path = work->options->inputs[work->input].path;
	uint64_t time_ns = leaks->dialect->begins ? series_snapshots(work->series) : work->input;
	struct str name = { 0 };

	// The first definition: what the file says of the whole comes before it.
	leaks->process = intake_process(leaks->intake, NULL);
	leaks->thread = intake_thread(leaks->intake, leaks->process, NULL);
	if (leaks->dialect->begins)
		str_add_bytes(&name, line + 1, strcspn(line + 1, "]"));
	series_begin(work->series, name.length ? name.text : path, time_ns * STEP_NS);
	str_fini(&name);
	leaks->begun = true;
}

// Of a process that was not met before there was no check.
static size_t checks_of(struct leaks *leaks, uint64_t pid)
{
	for (size_t i = 0; i < leaks->checks_count; i++)
		if (leaks->checks[i].pid == pid)
			return i;
	*MEM_ADD(leaks->checks, leaks->checks_count, leaks->checks_capacity) =
		(struct leak_checks){ .pid = pid, .over = true };
	return leaks->checks_count - 1;
}

// A sum begins: that of the process's check, which is a new one where the last was over.
static void open_sum(struct leaks *leaks, const char *line, const struct leak *sum)
{
	uint64_t pid = 0;
	struct leak_checks *checks;

	if (leaks->dialect->checks)
		take_pid(line, &pid);
	leaks->sum_process = checks_of(leaks, pid);
	checks = &leaks->checks[leaks->sum_process];
	checks->number += checks->over;
	checks->over = checks->bare = false;
	leaks->open = true;
	leaks->sum = *sum;
}

// Frames were told innermost first, and stacks are made from the outermost.
static void end_sum(struct leaks *leaks)
{
	stack_id stack = 0;

	ASSERT(leaks->frames_count <= FRAMES_MAX);
	while (leaks->frames_count > 0)
		stack = intake_stack(leaks->intake, stack, leaks->frames[--leaks->frames_count]);
	if (leaks->open)
		*MEM_ADD(leaks->sums, leaks->sums_count, leaks->sums_capacity) =
			(struct leak_sum){ leaks->sum, stack, leaks->sum_process,
					   leaks->checks[leaks->sum_process].number };
	leaks->open = false;
}

// What tells where a leak check ends. Without losses it has no sums, and counts as such; but one
// that was asked for totals alone, or for what has changed since the one before, says nothing of
// stacks, and the one before goes on to count.
static void watch_checks(struct leaks *leaks, const char *line)
{
	uint64_t pid;
	const char *at = take_pid(line, &pid);
	struct leak_checks *checks;
	bool changes;
	size_t process;

	if (!at)
		return;
	process = checks_of(leaks, pid);
	checks = &leaks->checks[process];
	changes = strstr(at, " (+") || strstr(at, " (-");
	leaks->changes += changes && strstr(at, "loss record") != NULL;
	if (skip_word(at, "LEAK SUMMARY:")) {
		checks->bare = checks->over;
		checks->number += checks->over;
		checks->over = true;
	} else if (strstr(at, "no leaks are possible")) {
		checks->number++;
		checks->over = true;
		checks->bare = false;
	} else if (checks->bare && (changes || strstr(at, "Rerun with --leak-check=full"))) {
		checks->number--;
		checks->bare = false;
	}
}

static void add_sum(struct leaks *leaks, const struct leak_sum *sum)
{
	const struct leak *leak = &sum->leak;

	if (!leak->state) {
		series_add(leaks->work->series, leaks->thread, sum->stack, 0, leak->count,
			   leak->bytes);
		return;
	}
	series_add_reached(leaks->work->series, leaks->thread, sum->stack, leak->state, leak->count,
			   leak->bytes);
	leaks->indirect_told += leak->holds;
	leaks->indirect_bytes += leak->state == TRACE_REACH_HELD ? leak->bytes : 0;
}

// The snapshot has all sums: those of the last check of each process go to the series.
static void add_sums(struct leaks *leaks)
{
	uint64_t checks = 0, processes = 0;

	for (size_t i = 0; i < leaks->sums_count; i++) {
		const struct leak_sum *sum = &leaks->sums[i];

		if (sum->number == leaks->checks[sum->process].number)
			add_sum(leaks, sum);
	}
	leaks->sums_count = 0;
	for (size_t i = 0; i < leaks->checks_count; i++) {
		checks += leaks->checks[i].number;
		processes += leaks->checks[i].number > 0;
	}
	if (leaks->dialect->checks && checks > 1)
		str_format(leaks->work->remarks,
			   "%s leak checks of %s process%s: the last one of each process counts\n",
			   STR_COUNT(checks), STR_COUNT(processes), processes == 1 ? "" : "es");
	if (leaks->changes)
		str_format(leaks->work->remarks,
			   "%s loss records tell what has changed since the check before (+): left "
			   "out (try: a full leak check)\n",
			   STR_COUNT(leaks->changes));
}

// What is lost by other lost blocks, and is in no sum of its own: one block, whose stack is that it
// was not shown.
static void put_indirect(struct leaks *leaks)
{
	static const char none[] = "[indirectly lost, of stacks that memcheck did not show]";
	uint64_t bytes = leaks->indirect_told - leaks->indirect_bytes;

	if (leaks->indirect_told <= leaks->indirect_bytes)
		return;
	series_add_reached(leaks->work->series, leaks->thread,
			   intake_stack(leaks->intake, 0, named(leaks, none, "", 0)),
			   TRACE_REACH_HELD, 1, bytes);
	str_format(leaks->work->remarks,
		   "%s bytes that are indirectly lost are of stacks that were not shown: they "
		   "are one block (try: --show-leak-kinds=all)\n",
		   STR_COUNT(bytes));
}

// Of the first file alone: the others are later moments of the same.
static void take_command(struct leaks *leaks, const char *line)
{
	const char *word = leaks->dialect->command;
	const char *at = word && !leaks->begun ? strstr(line, word) : NULL;

	if (at && !intake_info(leaks->intake)->command)
		intake_info(leaks->intake)->command = mem_copy_text(at + strlen(word));
}

// Each line is one of four things; the order of the questions matters, as a sum may look like a
// frame.
static void read_line(struct leaks *leaks, char *line)
{
	const struct dialect *dialect = leaks->dialect;
	struct leak sum = { 0 };
	frame_id frame;

	if (dialect->begins && dialect->begins(line)) {
		end_sum(leaks);
		add_sums(leaks);
		if (leaks->begun)
			series_end(leaks->work->series);
		begin_snapshot(leaks, line);
	} else if (dialect->take_sum(line, &sum)) {
		end_sum(leaks);
		if (!leaks->begun)
			begin_snapshot(leaks, line);
		open_sum(leaks, line, &sum);
	} else if (leaks->open && (frame = dialect->take_frame(leaks, line)) != 0) {
		if (leaks->frames_count < FRAMES_MAX)
			leaks->frames[leaks->frames_count++] = frame;
	} else {
		end_sum(leaks);
		take_command(leaks, line);
		if (dialect->checks)
			watch_checks(leaks, line);
	}
}

// There are no lines that are wrong: reports are mixed with a program's own output.
static bool read_report(struct import_work *work, const struct dialect *dialect)
{
	struct leaks leaks = { .work = work, .intake = work->intake, .dialect = dialect };
	size_t length;
	char *line;

	if (work->input == 0) {
		intake_lacks(work->intake, dialect->begins ? "numbered" : "leaks");
		intake_lacks(work->intake, "no-threads");
	}
	while (import_line(work, &line, &length))
		read_line(&leaks, line);
	end_sum(&leaks);
	if (leaks.begun) {
		add_sums(&leaks);
		put_indirect(&leaks);
		series_end(work->series);
	}
	MEM_FREE(leaks.sums, leaks.checks);
	// Of several files the last one is the end.
	if (leaks.begun && dialect->reached && work->input + 1 == work->options->inputs_count)
		series_end_reached(work->series, leaks.process);
	return true;
}

// A text in the first lines.
static bool has(const char *head, const char *text)
{
	return strstr(head, text) != NULL;
}

static bool is_lsan(const char *head, size_t length)
{
	return length > 0 && (has(head, "ERROR: LeakSanitizer") || has(head, "Direct leak of "));
}

static bool is_memcheck(const char *head, size_t length)
{
	return length > 8 && has(head, "== ") &&
	       (has(head, "== Memcheck") || has(head, "== HEAP SUMMARY"));
}

static bool is_memleak(const char *head, size_t length)
{
	return length > 0 && has(head, "with outstanding allocations:");
}

static bool read_lsan(struct import_work *work, struct err *)
{
	return read_report(work, &(struct dialect){ .take_sum = take_lsan_sum,
						    .take_frame = take_lsan_frame,
						    .reached = true });
}

static bool read_memcheck(struct import_work *work, struct err *)
{
	return read_report(work, &(struct dialect){ .take_sum = take_memcheck_sum,
						    .take_frame = take_memcheck_frame,
						    .command = "== Command: ",
						    .reached = true,
						    .checks = true });
}

static bool read_memleak(struct import_work *work, struct err *)
{
	if (work->input == 0)
		str_add(work->remarks, "memleak prints its largest stacks alone: others are in no "
				       "snapshot\n");
	return read_report(work, &(struct dialect){ .take_sum = take_memleak_sum,
						    .take_frame = take_memleak_frame,
						    .begins = begins_memleak });
}

const struct import_format import_lsan = {
	.name = "lsan",
	.snapshots = true,
	.is = is_lsan,
	.read = read_lsan,
};

const struct import_format import_memcheck = {
	.name = "memcheck",
	.snapshots = true,
	.is = is_memcheck,
	.read = read_memcheck,
};

const struct import_format import_memleak = {
	.name = "memleak",
	.snapshots = true,
	.is = is_memleak,
	.read = read_memleak,
};
