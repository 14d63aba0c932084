// For example, the bytes 08 00 04 00 d2 04 00 00 in lane 0 are a note of type 8 (NOTE_FORK_FAILED)
// with 4 bytes: thread 0x4d2 = 1234 announced a fork, and it made no child. The last fork of that
// thread which the order has not passed is marked, so that the order does not wait for a hello.
//
// A note that is too short says less than it should, and is dropped; one that says that it is
// longer than what was published is damage, and the lane is given up.
#include "collect/notes_reader.h"

#include "base/mem.h"
#include "collect/hidden_allocator.h"
#include "collect/image.h"
#include "collect/mappings.h"
#include "collect/payload.h"
#include "collect/peer.h"
#include "wire/lane_event.h"

#include <stdio.h>
#include <string.h>

// An exec that fails says so within microseconds.
enum { EXEC_SURE_NS = 50000000 };

// Our own library is in every process, and says nothing about the program: it is known by its
// file's name.
static bool is_recorder(const char *path)
{
	static const char name[] = "libtidemark";

	return strncmp(str_last_part(path), name, sizeof name - 1) == 0;
}

// Whose root the image's files are in. A forked child may have ended by now: its parent's was the
// same.
static uint32_t who_sees_files(const struct image *image)
{
	const struct door_arrival *arrival = image->arrival;

	if (arrival->hello.start == SEGMENT_START_FORK && arrival->parent_pid != 0 &&
	    peer_ended(arrival->pidfd))
		return arrival->parent_pid;
	return image->pid;
}

// A path of no length is the executable's. Size and time of the file are looked up now, in the
// process's own view of the files (its root), while it is there.
static void read_module(struct image *image, struct payload *payload)
{
	struct trace_module module = { .process = image->process };
	uint32_t id = (uint32_t)payload_take(payload, 4);
	struct str path = { 0 };
	uint8_t build_id_length;
	size_t length;
	char *named;

	module.start = payload_take(payload, 8);
	module.end = payload_take(payload, 8);
	module.bias = payload_take(payload, 8);
	build_id_length = (uint8_t)payload_take(payload, 1);
	for (size_t i = 0; i < sizeof module.build_id; i++)
		module.build_id[i] = (uint8_t)payload_take(payload, 1);
	length = (size_t)payload_take(payload, 2);
	if (payload->short_ || length > payload->left || id == 0)
		return;
	if (build_id_length <= sizeof module.build_id)
		module.build_id_length = build_id_length;
	named = length > 0 ? mem_copy_bytes(payload->at, length)
			   : mem_copy_text(image->arrival->exe);
	peer_file(who_sees_files(image), named, &path, &module.file_size, &module.file_mtime_ns);
	module.path = (char *)(uintptr_t)str_get(&path);
	module.id = writer_add_module(image->trace_builder->writer, &module);
	frame_map_add_module(&image->frames, id, &module);
	if (is_recorder(module.path))
		image->frames.recorder = module.id;
	else
		hidden_allocator_look(&image->hidden, &image->trace_builder->hidden, module.path,
				      length > 0 ? named : "", module.file_size,
				      module.file_mtime_ns);
	str_fini(&path);
	mem_free(named);
}

static void read_module_gone(struct image *image, struct payload *payload)
{
	module_id module = frame_map_module(&image->frames, (uint32_t)payload_take(payload, 4));

	if (module != 0)
		trace_builder_note(image->trace_builder, TRACE_NOTE_MODULE_GONE, image->process,
				   TRACE_NONE, module, "");
}

// `path` NULL is what says that no exec is announced.
static void forget_exec(struct image_exec *exec)
{
	mem_free(exec->path);
	memset(exec, 0, sizeof *exec);
}

// A process has one exec of its own under way at most, and a vfork child of it, which runs in its
// memory, another.
static struct image_exec *exec_of(struct image *image, uint32_t pid)
{
	return pid == image->arrival->hello.pid ? &image->exec : &image->vfork_exec;
}

// Why an image that should have said hello did not. `shut_out`: it sees neither our network nor our
// /tmp, so that it could not.
static const char *why_unheard(bool shut_out)
{
	return shut_out ? "the collector is not to be reached from there (try: let it see our "
			  "/tmp, or our network)"
			: "it did not load the recorder, ended before it could, or its sandbox "
			  "keeps it from the collector (try: let it see our /tmp, or our network)";
}

static bool is_shut_out(const struct image *image)
{
	return !image->pid_unsure && peer_shut_out(image->pid);
}

// Once for each exec: a warning in the trace with the reason, which the report repeats in front
// of its figures, since what that program allocates is missing there.
//
// Written into the parent's process, as the new image has none.
static void tell_unseen(struct image *image, struct image_exec *exec)
{
	static const char *const why[] = {
		[NOTE_EXEC_STATIC] = "it is statically linked",
		[NOTE_EXEC_SETUID] = "it runs with other privileges",
		[NOTE_EXEC_NO_LIBRARY] = "the recorder is out of its reach",
		[NOTE_EXEC_32_BIT] = "there is no recorder for 32-bit programs here",
		[NOTE_EXEC_ELSEWHERE] = "its environment names another recording",
		[NOTE_EXEC_ASAN] =
			"its AddressSanitizer refuses to be loaded after another library "
			"(try: ASAN_OPTIONS=verify_asan_link_order=0)",
		[NOTE_EXEC_NO_ROOM] = "its arguments leave no room for the recorder in its "
				      "environment",
		[NOTE_EXEC_STRIPPED] = "it is statically linked, and stripped: nothing says where "
				       "its allocator is",
		[NOTE_EXEC_GO] = "it is statically linked, and Go's, whose frees are its garbage "
				 "collector's",
		[NOTE_EXEC_NO_LIBC] = "it is statically linked, and its C library is neither glibc "
				      "nor musl",
		[NOTE_EXEC_NO_MALLOC] = "it is statically linked, and no malloc is among its "
					"symbols",
		[NOTE_EXEC_UNTRACED] = "it is statically linked, and the collector may not trace "
				       "it (try: CAP_SYS_PTRACE, or kernel.yama.ptrace_scope below "
				       "2)",
		[NOTE_EXEC_OPERATORS] = "it is statically linked, and its operators new are an "
					"allocator's own, whose exceptions could not pass the "
					"recorder",
	};
	char line[512];

	ASSERT(exec->path != NULL && !exec->told);
	snprintf(line, sizeof line, "%s is not recorded: %s", exec->path,
		 exec->reason == NOTE_EXEC_OK || exec->reason > NOTE_EXEC_OPERATORS
			 ? why_unheard(exec->shut_out)
			 : why[exec->reason]);
	trace_builder_unseen(image->trace_builder, image->process, line);
	exec->told = true;
}

// A vfork child will say hello for itself. Where its parent sees itself as we do, so does it.
//
// Then it is known whether the child has come: pending_exec pairs both by pid or by time.
static void await_hello(struct image *image, uint32_t pid, const struct payload *payload)
{
	bool seen = image->pid == image->arrival->hello.pid;
	char line[512];

	if (image->pending_exec == NULL)
		return;
	snprintf(line, sizeof line, "%.*s is not recorded: %s", (int)payload->left, payload->at,
		 why_unheard(is_shut_out(image)));
	pending_exec_add(image->pending_exec, image->process, pid, seen ? pid : 0, line);
}

// The reason decides: an image that will not load the recorder is told after a while
// (notes_reader_check_exec), one that should is waited for.
static void read_exec(struct image *image, struct payload *payload)
{
	uint32_t reason = (uint32_t)payload_take(payload, 4);
	uint32_t pid = (uint32_t)payload_take(payload, 4);
	struct image_exec *exec = exec_of(image, pid);
	char *path;

	if (payload->short_)
		return;
	if (reason == NOTE_EXEC_OK && exec != &image->exec) {
		await_hello(image, pid, payload);
		return;
	}
	path = mem_copy_bytes(payload->at, payload->left);
	// One vfork child comes after the other: the one before has executed what it announced.
	if (exec != &image->exec && exec->path != NULL && !exec->told)
		tell_unseen(image, exec);
	forget_exec(exec);
	exec->reason = reason;
	exec->path = path;
	exec->shut_out = reason == NOTE_EXEC_OK && is_shut_out(image);
}

static void read_exec_failed(struct image *image, struct payload *payload)
{
	uint32_t pid;

	payload_take(payload, 4); // which error does not matter
	pid = (uint32_t)payload_take(payload, 4);
	forget_exec(exec_of(image, pid));
	if (image->pending_exec != NULL)
		pending_exec_drop(image->pending_exec, pid);
}

// Three kinds: texts of ours, by number; functions that could not be entered, with their names; and
// texts of the recorder's own.
static void read_message(struct image *image, struct payload *payload)
{
	static const char *const known[] = {
		[NOTE_MESSAGE_FILTER] =
			"from here on it runs under a system-call filter (seccomp): the "
			"recorder makes no system call in it; there are no snapshots of its "
			"resident memory, and a thread whose lane is full spins until there is "
			"room",
		[NOTE_MESSAGE_COUNTER] =
			"from here on it must not read the processor's counter (PR_SET_TSC): "
			"times of its events are some milliseconds late",
		[NOTE_MESSAGE_OWN] =
			"it would have unmapped, protected or replaced memory of the recorder: "
			"that is kept out of its calls (mmap and mremap onto it fail with "
			"ENOMEM, mremap of it with EFAULT)",
	};
	uint32_t what = (uint32_t)payload_take(payload, 4);
	char *text = mem_copy_bytes(payload->at, payload->left);
	char line[1024];

	if (what == NOTE_MESSAGE_ENTRIES)
		snprintf(
			line, sizeof line,
			"some functions could not be entered, and calls of these functions are not "
			"seen where they do not go by name (within their own library or program, "
			"or past the recorder): %s",
			text);
	else
		snprintf(line, sizeof line, "%s", text);
	if (what == NOTE_MESSAGE_UNSEEN && !image->partly) // one program, however many calls
		trace_builder_unseen(image->trace_builder, image->process, line);
	else if (what < sizeof known / sizeof *known && known[what] != NULL)
		trace_builder_note(image->trace_builder, TRACE_NOTE_MESSAGE, image->process,
				   TRACE_NONE, 0, known[what]);
	else
		trace_builder_warn(image->trace_builder, image->process, line);
	image->partly |= what == NOTE_MESSAGE_UNSEEN;
	mem_free(text);
}

static void read_pool(struct image *image, struct payload *payload)
{
	uint32_t number = (uint32_t)payload_take(payload, 4);

	if (!payload->short_)
		pools_add(&image->pools, number, payload->at, payload->left);
}

// A fork, or what becomes a note of kind `note`: all begin alike.
//
// Eight bytes of time, four each of thread and lane, eight of the lane's head: 24, and then a
// mark's name or a pause's byte.
static void read_place(struct image *image, struct payload *payload, uint8_t note)
{
	uint64_t time_ns = payload_take(payload, 8);
	uint32_t tid = (uint32_t)payload_take(payload, 4);
	uint32_t lane = (uint32_t)payload_take(payload, 4);
	uint64_t head = payload_take(payload, 8);
	struct image_event *event;

	if (payload->short_)
		return;
	if (note == TRACE_NOTE_PAUSE) {
		note = payload_take(payload, 1) != 0 ? TRACE_NOTE_PAUSE : TRACE_NOTE_RESUME;
		payload->left = 0;
	}
	event = image_event_add(image, note != 0 ? LANE_ITEM_MARK : LANE_ITEM_FORK, time_ns, tid,
				lane, head);
	event->note = note;
	if (note != 0)
		event->name = mem_copy_bytes(payload->at, payload->left);
}

// A child has ended, and its parent knows: a place as a mark's, with the child's pid and status.
static void read_waited(struct image *image, struct payload *payload)
{
	uint64_t time_ns = payload_take(payload, 8);
	uint32_t tid = (uint32_t)payload_take(payload, 4);
	uint32_t lane = (uint32_t)payload_take(payload, 4);
	uint64_t head = payload_take(payload, 8);
	uint32_t pid = (uint32_t)payload_take(payload, 4);
	uint32_t status = (uint32_t)payload_take(payload, 4);
	struct image_event *event;

	if (payload->short_ || pid == 0)
		return;
	event = image_event_add(image, LANE_ITEM_MARK, time_ns, tid, lane, head);
	event->waited = pid;
	event->status = status;
	event->name = mem_copy_bytes("", 0); // it is no fork
}

// The announced fork is searched from the last one back: a thread's forks come one after the
// other, so the latest that is open is the one that failed.
static void read_fork_failed(struct image *image, struct payload *payload)
{
	uint32_t tid = (uint32_t)payload_take(payload, 4);

	for (size_t i = image->events_count; i-- > 0;) {
		struct image_event *event = &image->events[i];

		if (event->tid == tid && event->name == NULL && !event->passed) {
			event->failed = true;
			return;
		}
	}
}

static void read_maps(struct image *image, struct payload *payload)
{
	uint32_t number = (uint32_t)payload_take(payload, 4);

	if (!payload->short_)
		mappings_list(image, number, (const char *)payload->at, payload->left);
}

// A number and a text, which stand in the trace as they are: the numbers of enum note_calls and of
// enum note_seen are those of the trace.
// For example, a NOTE_SEEN of 2 with the text "jemalloc /usr/lib/libjemalloc.so.2" is a note of
// that kind, value and text in the trace.
static void read_as_is(struct image *image, struct payload *payload, enum trace_note_kind kind)
{
	uint32_t how = (uint32_t)payload_take(payload, 4);
	char *text = mem_copy_bytes(payload->at, payload->left);

	if (!payload->short_)
		trace_builder_note(image->trace_builder, kind, image->process, TRACE_NONE, how,
				   text);
	mem_free(text);
}

// "jemalloc", of the executable, or "jemalloc /usr/lib/x.so".
static void read_allocator(struct image *image, struct payload *payload)
{
	struct payload again = *payload;
	uint64_t seen = payload_take(&again, 4);
	char *text;

	if (!again.short_ && (seen == TRACE_SEEN_DEBUG || seen == TRACE_SEEN_SYMBOLS ||
			      seen == TRACE_SEEN_EXPORTED)) {
		text = mem_copy_bytes(again.at, again.left);
		hidden_allocator_enter(&image->hidden,
				       text[strcspn(text, " ")] ? strchr(text, ' ') + 1 : "");
		mem_free(text);
	}
	read_as_is(image, payload, TRACE_NOTE_ALLOCATOR);
}

static void read_space(struct image *image, struct payload *payload)
{
	uint64_t low = payload_take(payload, 8), end = payload_take(payload, 8);

	if (payload->short_)
		return;
	trace_builder_note(image->trace_builder, TRACE_NOTE_ADDRESS_LOW, image->process, TRACE_NONE,
			   low, "");
	trace_builder_note(image->trace_builder, TRACE_NOTE_ADDRESS_END, image->process, TRACE_NONE,
			   end, "");
}

// An interpreter was found, and its frames are read or not.
//
// module 0 says that an interpreter was found whose frames cannot be read; NOTE_LANGUAGE_NAMED that
// only its name is known.
static void read_language(struct image *image, struct payload *payload)
{
	uint32_t module = (uint32_t)payload_take(payload, 4);
	char *text = mem_copy_bytes(payload->at, payload->left);
	char line[256];

	if (!payload->short_)
		trace_builder_note(image->trace_builder, TRACE_NOTE_INTERPRETER, image->process,
				   TRACE_NONE, module != 0 && module != NOTE_LANGUAGE_NAMED, text);
	if (module != NOTE_LANGUAGE_NAMED)
		image->frames.interpreter = frame_map_module(&image->frames, module);
	if (!payload->short_ && module == 0) {
		snprintf(line, sizeof line,
			 "%s: its functions are not in the stacks, which are the interpreter's own "
			 "(those of Python 3.9, 3.11, 3.12 and 3.13, as they are released, are "
			 "read)",
			 text);
		trace_builder_note(image->trace_builder, TRACE_NOTE_MESSAGE, image->process,
				   TRACE_NONE, 0, line);
	}
	mem_free(text);
}

static void read_code(struct image *image, struct payload *payload)
{
	uint32_t number = (uint32_t)payload_take(payload, 4);
	size_t length = (size_t)payload_take(payload, 2);

	if (payload->short_ || length > payload->left)
		return;
	frame_map_add_code(&image->frames, number, mem_copy_bytes(payload->at, length),
			   mem_copy_bytes(payload->at + length, payload->left - length));
}

// The recorder numbers files in the order in which it met them, and mappings name them by number:
// a library of 12 mappings has its path in the lane once.
static void read_file(struct image *image, struct payload *payload)
{
	uint32_t number = (uint32_t)payload_take(payload, 4);
	uint64_t device = payload_take(payload, 8), inode = payload_take(payload, 8);

	if (!payload->short_)
		mappings_file(image, number, device, inode, (const char *)payload->at,
			      payload->left);
}

// Each reader checks its own payload: one that is too short is dropped as a whole.
static void read_note(struct image *image, uint16_t type, struct payload payload)
{
	static void (*const readers[])(struct image * image, struct payload * payload) = {
		[NOTE_MODULE] = read_module,   [NOTE_MODULE_GONE] = read_module_gone,
		[NOTE_EXEC] = read_exec,       [NOTE_EXEC_FAILED] = read_exec_failed,
		[NOTE_MESSAGE] = read_message, [NOTE_FORK_FAILED] = read_fork_failed,
		[NOTE_POOL] = read_pool,       [NOTE_LANGUAGE] = read_language,
		[NOTE_CODE] = read_code,       [NOTE_FILE] = read_file,
		[NOTE_SPACE] = read_space,     [NOTE_ALLOCATOR] = read_allocator,
		[NOTE_MAPS] = read_maps,       [NOTE_WAITED] = read_waited,
	};

	switch (type) {
	case NOTE_MARK:
		read_place(image, &payload, TRACE_NOTE_MARK);
		break;
	case NOTE_FORK:
		read_place(image, &payload, 0);
		break;
	case NOTE_PAUSE:
		read_place(image, &payload, TRACE_NOTE_PAUSE);
		break;
	case NOTE_CALLS:
		read_as_is(image, &payload, TRACE_NOTE_CALLS);
		break;
	default: // one that is in no row is of a newer recorder
		if (type < sizeof readers / sizeof *readers && readers[type])
			readers[type](image, &payload);
	}
}

// A library of Go's may have any name: what it maps is known by its file, as an allocator's is.
static bool is_go_library(const struct hidden_allocator *each)
{
	return each->name[0] && strcmp(each->what, "Go") == 0;
}

void notes_reader_tell_hidden(struct image *image)
{
	struct str text = { 0 };

	for (size_t i = 0; i < image->hidden.count; i++) {
		const struct hidden_allocator *each = &image->hidden.list[i];

		if (hidden_allocator_is_entered(&image->hidden, each->name))
			continue;
		hidden_allocator_enter(&image->hidden, each->name); // it may be mapped twice
		if (each->language) {
			trace_builder_note(image->trace_builder, TRACE_NOTE_INTERPRETER,
					   image->process, TRACE_NONE, 0, each->what);
			if (!is_go_library(each))
				continue;
		}
		str_clear(&text);
		str_format(&text, "%s%s%s", each->what, each->name[0] ? " " : "", each->name);
		trace_builder_note(image->trace_builder, TRACE_NOTE_ALLOCATOR, image->process,
				   TRACE_NONE, TRACE_SEEN_STRIPPED, str_get(&text));
		if (each->language)
			continue;
		str_clear(&text);
		hidden_allocator_explain(each, &text);
		trace_builder_warn(image->trace_builder, image->process, str_get(&text));
	}
	str_fini(&text);
}

// A note is a head of two words, type and length, and the payload. It lies in one piece, as the
// ring is mapped twice.
void notes_reader_read(struct image *image, struct stream *notes, uint64_t limit)
{
	struct lane_reader *reader = &notes->reader;

	ASSERT(notes->lane == 0);
	while (!reader->broken && reader->at != limit) {
		const uint8_t *in = reader->ring + (reader->at & reader->mask);
		uint64_t left = limit - reader->at;
		uint16_t head[2];

		if (left >= sizeof head)
			memcpy(head, in, sizeof head);
		if (left < sizeof head || left - sizeof head < head[1]) {
			image_break_lane(notes);
			break;
		}
		read_note(image, head[0], (struct payload){ .at = in + 4, .left = head[1] });
		reader->at += sizeof head + head[1];
	}
}

// The recording was ended when a hello could still come.
static bool is_under_way(const struct image *image, const struct image_exec *exec)
{
	uint64_t stopped_ns = image->trace_builder->stopped_ns;

	return stopped_ns != 0 && exec->since_ns + NOTES_READER_HELLO_NS > stopped_ns;
}

// Whether a hello that should come is not waited for any longer. A debugger may hold the new image
// before it can say hello, for minutes: then the time begins again.
static bool is_late(const struct image *image, struct image_exec *exec, uint64_t now_ns)
{
	ASSERT(exec->since_ns != 0 && exec->since_ns <= now_ns);
	if (now_ns - exec->since_ns <= NOTES_READER_HELLO_NS)
		return false;
	if (!peer_held(image->arrival->pid))
		return true;
	exec->since_ns = now_ns;
	return false;
}

// `over`: the image's process has ended, so that no hello can come any more for an exec that was
// announced.
void notes_reader_check_exec(struct image *image, uint64_t now_ns, bool over)
{
	struct image_exec *both[] = { &image->exec, &image->vfork_exec };

	for (size_t i = 0; i < 2; i++) {
		struct image_exec *exec = both[i];
		bool own = i == 0;

		// What was refused has been named with the reason.
		exec->told |= own && image->exec_refused;
		if (exec->path == NULL || exec->told)
			continue;
		if (exec->since_ns == 0)
			exec->since_ns = now_ns;
		if (!over && now_ns - exec->since_ns < EXEC_SURE_NS)
			continue;
		// An image that should be seen is given time, or until the end of its process.
		if (exec->reason == NOTE_EXEC_OK && is_under_way(image, exec)) {
			image->trace_builder->unbegun++;
			exec->told = true;
		} else if (exec->reason != NOTE_EXEC_OK || over || is_late(image, exec, now_ns)) {
			tell_unseen(image, exec);
		}
		if (!own)
			forget_exec(exec);
	}
}

// A child that could not say hello cannot be asked: what is known is what its parent's segment
// has.
//
// An image that joined, and had no room for what it needs besides, says so in its own segment: it
// is no child of its own. It has its own number, and has not forked.
//
// The fork that it came from is marked as failed, or the order would wait a second for a hello.
static void tell_child(struct image *image, const struct segment_unseen *unseen)
{
	static const char *const why[] = {
		[SEGMENT_WHY_SOCKET] = "it can make no socket",
		[SEGMENT_WHY_CONNECT] = "the collector is not to be reached from there (try: "
					"let it see our /tmp, or our network)",
		[SEGMENT_WHY_ANSWER] = "it heard no answer",
		[SEGMENT_WHY_MEMORY] =
			"it could not map its part of the recording (try: a limit of "
			"addresses that is higher, ulimit -v, or none)",
		[SEGMENT_WHY_FILTER] = "it runs under the system-call filter of its parent",
	};
	const struct segment_hello *hello = &image->arrival->hello;
	uint32_t kind = unseen->why <= SEGMENT_WHY_FILTER ? unseen->why : SEGMENT_WHY_ANSWER;
	bool itself = hello->start != SEGMENT_START_FORK && unseen->pid == hello->pid &&
		      unseen->fork_lane == 0 && unseen->fork_head == 0;
	struct str line = { 0 };

	str_format(&line, itself ? "%s" : "a child that %s forked", image->arrival->exe);
	if (unseen->pid != 0 && !itself)
		str_format(&line, " (process %u)", unseen->pid);
	str_format(&line, " is not recorded: %s", why[kind] != NULL ? why[kind] : why[2]);
	if (unseen->error != 0)
		str_format(&line, " (%s)", strerror((int)unseen->error));
	trace_builder_unseen(image->trace_builder, image->process, str_get(&line));
	str_fini(&line);
	for (size_t i = 0; i < image->events_count; i++) {
		struct image_event *event = &image->events[i];

		if (event->name == NULL && !event->passed && event->child == NULL &&
		    event->lane == unseen->fork_lane && event->head == unseen->fork_head)
			event->failed = true; // the order waits for no lane
	}
}

// A ring of SEGMENT_UNSEEN_MAX places; more than these at once are only counted.
void notes_reader_check_children(struct image *image)
{
	struct segment *segment = image->share.segment;
	uint32_t count;
	char line[128];

	if (segment == NULL || atomic_load(&segment->unseen_count) == image->unseen_told)
		return;
	for (uint32_t i = 0; i < SEGMENT_UNSEEN_MAX; i++) {
		struct segment_unseen *unseen = &segment->unseen[i];

		if (atomic_load(&unseen->ready) == 0)
			continue;
		tell_child(image, unseen);
		image->unseen_told++;
		atomic_store(&unseen->ready, 0);
	}
	count = atomic_load(&segment->unseen_count) - image->unseen_told;
	if (!image->final || count == 0)
		return;
	image->unseen_told += count;
	snprintf(line, sizeof line, "%u more children of this process are not recorded", count);
	trace_builder_unseen(image->trace_builder, image->process, line);
}
