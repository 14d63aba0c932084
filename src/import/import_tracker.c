// import_tracker: the text that memory_tracker's allocations.c writes where ALLOCATION_TRACE says.
//
//     malloc: 0x55d0c0 0x20 /usr/bin/app make 0x401136
//     free(realloc): 0x55d0c0 /usr/bin/app grow 0x401180
//     malloc(realloc): 0x55d100 0x40 /usr/bin/app grow 0x401180
//
// address, size, and of the caller module, function and address; "(null)" and "(nil)": not known.
#include "base/mem.h"
#include "base/str.h"
#include "import/import_formats.h"
#include "import/number.h"

#include <string.h>

enum { STEP_NS = 1000, WORDS_MAX = 6 };

// The first half of a realloc waits for the line after it.
struct tracker {
	struct intake *intake;
	uint64_t lines;
	struct trace_event freed; // the first half of a realloc, of the line before
	bool moving;
	struct str text;
};

static void put(struct tracker *tracker, struct trace_event *event)
{
	event->thread = intake_thread(tracker->intake, intake_process(tracker->intake, NULL), NULL);
	intake_event(tracker->intake, event);
}

// A first half that no second follows was a realloc to nothing: a free.
static void settle(struct tracker *tracker)
{
	if (tracker->moving)
		put(tracker, &tracker->freed);
	tracker->moving = false;
}

static bool take_number(const char *word, uint64_t *number)
{
	*number = 0;
	return strcmp(word, "(nil)") == 0 || number_parse_hex(word, strlen(word), number);
}

// A function, or the module's last part and the address.
static stack_id stack_of(struct tracker *tracker, char *const words[3])
{
	const char *slash = strrchr(words[0], '/');

	if (strcmp(words[0], "(null)") == 0 && strcmp(words[1], "(null)") == 0 &&
	    strcmp(words[2], "(nil)") == 0)
		return 0;
	str_clear(&tracker->text);
	if (strcmp(words[1], "(null)") == 0)
		str_format(&tracker->text, "%s %s", slash ? slash + 1 : words[0], words[2]);
	else
		str_add(&tracker->text, words[1]);
	return intake_stack(tracker->intake, 0,
			    intake_frame_text(tracker->intake, str_get(&tracker->text),
					      tracker->text.length));
}

// The halves are joined where they are two lines in a row; with others between, they are a free and
// a malloc.
static bool read_call(struct tracker *tracker, char *line)
{
	struct trace_event event = { .time_ns = tracker->lines++ * STEP_NS };
	char *words[WORDS_MAX + 1];
	size_t count = 0;
	bool moved, begins;

	for (char *word = strtok(line, " "); word && count <= WORDS_MAX; word = strtok(NULL, " "))
		words[count++] = word;
	ASSERT(count <= WORDS_MAX + 1);
	begins = count == 6;
	if ((!begins && count != 5) ||
	    strncmp(words[0], begins ? "malloc" : "free", begins ? 6 : 4) != 0 ||
	    !take_number(words[1], &event.address) ||
	    (begins && !take_number(words[2], &event.size)))
		return false;
	moved = strstr(words[0], "(realloc)") != NULL;
	event.stack = stack_of(tracker, words + count - 3);
	event.kind = !begins ? TRACE_FREE : event.address ? TRACE_MALLOC : TRACE_FAILED;
	if (begins && moved && tracker->moving && event.address) {
		event.kind = TRACE_REALLOC;
		event.old_address = tracker->freed.address;
		tracker->moving = false;
	}
	settle(tracker);
	if (!begins && moved) {
		tracker->freed = event;
		tracker->moving = true;
	} else if (begins || event.address) {
		put(tracker, &event);
	}
	return true;
}

// There is no head: the first line has to be one of the calls.
static bool is_tracker(const char *head, size_t length)
{
	static const char *const begins[] = { "malloc: 0x", "free: 0x", "malloc(realloc): 0x",
					      "free(realloc): 0x" };

	for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
		if (length > strlen(begins[i]) && strncmp(head, begins[i], strlen(begins[i])) == 0)
			return true;
	return false;
}

static bool read_tracker(struct import_work *work, struct err *err)
{
	struct tracker tracker = { .intake = work->intake };
	bool ok = true;
	size_t length;
	char *line;

	intake_lacks(work->intake, "no-clock");
	intake_lacks(work->intake, "no-threads");
	intake_lacks(work->intake, "callers");
	while (ok && import_line(work, &line, &length)) {
		ok = !*line || read_call(&tracker, line);
		if (!ok)
			err_set(err, ERR_FORMAT, "\"%.60s …\" is not a line of memory_tracker",
				line);
	}
	settle(&tracker);
	str_fini(&tracker.text);
	return ok || import_was_cut(work, err);
}

const struct import_format import_tracker = {
	.name = "memory_tracker",
	.is = is_tracker,
	.read = read_tracker,
};
