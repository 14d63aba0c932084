// import_massif: what Valgrind's massif writes: snapshots, of which some have a tree of the heap.
//
// A tree's node is `nCHILDREN: BYTES ADDRESS: FUNCTION (PLACE)`, a blank deeper than its parent;
// its children are its callers. A sum's stack is a path to a node without children.
//
// For example
//
//     n1: 300 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.
//      n1: 300 0x109156: make (app.c:5)
//       n0: 300 0x10917a: main (app.c:12)
//
// is one sum of 300 bytes by main, which called make: the node without children is the outermost
// caller.
#include "base/mem.h"
#include "base/str.h"
#include "import/import_formats.h"
#include "import/number.h"

#include <inttypes.h>
#include <string.h>

enum { DEPTH_MAX = 1 << 9, NS_PER_MS = 1000000, NS_PER_S = 1000000000 };

// `path` has the frames of the nodes from the first down to the one that was read last.
struct massif {
	struct import_work *work;
	struct intake *intake;
	thread_id thread;
	bool ms, began; // times are milliseconds; something is defined
	uint64_t snapshot, time, bytes;
	uint64_t without, with;   // snapshots without a tree, and with one
	bool open;                // its tree is told
	bool bare;                // the latest snapshot has no tree
	frame_id path[DEPTH_MAX]; // innermost first
};

static void end_tree(struct massif *massif)
{
	if (massif->open)
		series_end(massif->work->series);
	massif->open = false;
}

// What massif does not say is said before the first definition.
static void begin_snapshot(struct massif *massif, const char *kind)
{
	struct str name = { 0 };

	str_format(&name, "snapshot %" PRIu64 "%s", massif->snapshot, kind);
	if (!massif->began) {
		if (!massif->ms)
			intake_lacks(massif->intake, "numbered");
		intake_lacks(massif->intake, "no-threads");
		intake_lacks(massif->intake, "no-counts");
		massif->thread =
			intake_thread(massif->intake, intake_process(massif->intake, NULL), NULL);
		massif->began = true;
	}
	series_begin(massif->work->series, str_get(&name),
		     massif->ms ? massif->time * NS_PER_MS : massif->snapshot * NS_PER_S);
	str_fini(&name);
}

static void begin_tree(struct massif *massif, const char *kind)
{
	begin_snapshot(massif, strcmp(kind, "peak") == 0 ? " (peak)" : "");
	massif->open = true;
	massif->with++;
}

// What lives at the end is what the last snapshot says, also where it has no tree: a sum, whose
// stack is that there is none.
static void put_end(struct massif *massif)
{
	static const char none[] = "[the last snapshot of massif has no tree]";
	frame_id frame;

	if (!massif->bare || massif->with == 0)
		return;
	begin_snapshot(massif, "");
	frame = intake_frame_text(massif->intake, none, strlen(none));
	if (massif->bytes > 0)
		series_add(massif->work->series, massif->thread,
			   intake_stack(massif->intake, 0, frame), 0, 1, massif->bytes);
	series_end(massif->work->series);
}

// The function of `0xADDRESS: FUNCTION (PLACE)`; its text may be cut.
// Where a function is not known, its module and address are its name.
static frame_id frame_of(struct massif *massif, char *text)
{
	char *colon = strstr(text, ": "), *in;
	struct str name = { 0 };
	frame_id frame;

	if (strncmp(text, "0x", 2) != 0 || !colon)
		return intake_frame_text(massif->intake, text, strlen(text));
	*colon = '\0';
	in = strstr(colon + 2, " (in ");
	if (in)
		*in = '\0';
	if (strcmp(colon + 2, "???") == 0) {
		in = in ? in + 5 : "";
		str_format(&name, "%.*s %s", (int)strcspn(in, ")"), in, text);
	} else {
		str_add(&name, colon + 2);
	}
	frame = intake_frame_text(massif->intake, str_get(&name), name.length);
	str_fini(&name);
	return frame;
}

// A node of what is below the threshold ("in N places") is no frame: its bytes belong to the path
// above it. massif does not count blocks, so each sum is one.
static bool read_node(struct massif *massif, char *line)
{
	size_t depth = strspn(line, " "), count;
	char *at = line + depth + 1, *colon = strchr(at, ':');
	uint64_t children, bytes;
	stack_id stack = 0;

	if (!colon || !number_parse(at, (size_t)(colon - at), &children) || colon[1] != ' ')
		return false;
	at = colon + 2;
	count = strcspn(at, " ");
	if (!number_parse(at, count, &bytes) || !at[count] || depth > DEPTH_MAX)
		return false;
	at += count + 1;
	count = depth;
	// The first one is of all. What is below the threshold has no frame of its own.
	if (depth > 0 && strncmp(at, "in ", 3) != 0)
		massif->path[depth - 1] = frame_of(massif, at);
	else if (depth > 0)
		count--;
	if (children > 0)
		return true;
	ASSERT(count <= DEPTH_MAX);
	while (count > 0)
		stack = intake_stack(massif->intake, stack, massif->path[--count]);
	if (bytes > 0)
		series_add(massif->work->series, massif->thread, stack, 0, 1, bytes);
	return true;
}

static bool take(const char *line, const char *key, uint64_t *number)
{
	size_t length = strlen(key);

	return strncmp(line, key, length) == 0 &&
	       number_parse(line + length, strlen(line + length), number);
}

// Keys of a snapshot come before its tree.
static bool read_line(struct massif *massif, char *line)
{
	struct trace_info *info = intake_info(massif->intake);
	uint64_t ignored;

	if (massif->open && line[strspn(line, " ")] == 'n')
		return read_node(massif, line);
	if (!*line || *line == '#' || strncmp(line, "desc:", 5) == 0)
		return true;
	if (strncmp(line, "cmd: ", 5) == 0) {
		if (!info->command)
			info->command = mem_copy_text(line + 5);
		return true;
	}
	if (strncmp(line, "time_unit: ", 11) == 0) {
		massif->ms = strcmp(line + 11, "ms") == 0;
		return true;
	}
	if (strncmp(line, "snapshot=", 9) == 0)
		end_tree(massif);
	if (take(line, "snapshot=", &massif->snapshot) || take(line, "time=", &massif->time) ||
	    take(line, "mem_heap_B=", &massif->bytes) ||
	    take(line, "mem_heap_extra_B=", &ignored) || take(line, "mem_stacks_B=", &ignored))
		return massif->snapshot < UINT32_MAX && massif->time < UINT64_MAX / NS_PER_MS;
	if (strncmp(line, "heap_tree=", 10) != 0)
		return false;
	massif->bare = strcmp(line + 10, "empty") == 0;
	if (massif->bare)
		massif->without += massif->bytes > 0;
	else
		begin_tree(massif, line + 10);
	return true;
}

static bool is_massif(const char *head, size_t length)
{
	return length > 5 && strncmp(head, "desc:", 5) == 0 && strstr(head, "\ntime_unit: ");
}

static bool read_massif(struct import_work *work, struct err *err)
{
	struct massif massif = { .work = work, .intake = work->intake };
	bool ok = true;
	size_t length;
	char *line;

	if (work->input > 0)
		return err_set(err, ERR_FORMAT,
			       "a massif file is a series by itself (try: one file)");
	while (ok && import_line(work, &line, &length)) {
		ok = read_line(&massif, line);
		if (!ok)
			err_set(err, ERR_FORMAT, "\"%.60s\" is not a line of massif", line);
	}
	ok = ok || import_was_cut(work, err);
	if (ok) {
		end_tree(&massif);
		put_end(&massif);
	}
	if (ok && massif.without)
		str_format(work->remarks,
			   "%" PRIu64 " of %" PRIu64
			   " snapshots have no tree and are left out%s (try: --detailed-freq=1)\n",
			   massif.without, massif.without + massif.with,
			   !massif.bare || massif.with == 0 ? ""
			   : massif.bytes > 0               ? ", but for the bytes of the last"
							    : "; nothing lived in the last");
	return ok;
}

const struct import_format import_massif = {
	.name = "massif",
	.snapshots = true,
	.is = is_massif,
	.read = read_massif,
};
