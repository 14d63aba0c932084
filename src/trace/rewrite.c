// Items of several traces, merged by time, with ids that are moved.
//
// Definitions of a trace go into the new one when they are met, in their order, and each trace's
// ids are moved by what the traces before it have. For example, two traces with 3 and 2 processes:
// process 1 of the second is process 4 of the new one, and a thread of it refers to 4. Where 0 is
// none (modules, frames, stacks, heaps, files), 0 stays 0.
//
// One item of each trace waits, and the earliest of them is written; at one time that of the first
// trace. Events are numbered anew as they are written, so what refers to a number of an event
// (snapshots, what was reachable) is moved to where that event is now.
//
// Without addresses, those of blocks are numbered in the order in which they are met, and those of
// code are their places in the file.
//
// Parts of one rotated recording (parts.h) are joined: each has the definitions of those before it
// under the same ids, so those of the last are copied, and no id moves. Of each part what its next
// one does not have is taken. For example, with a second part of which 3 events say what lived, and
// which goes on from event 900 of the first: events 0 to 899 of the first, 3 and on of the second,
// whose event 3 is 900 of the new trace, and event n there n + 897.
#include "trace/rewrite.h"

#include "base/index_set.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "trace/defs.h"
#include "trace/label.h"
#include "trace/parts.h"
#include "trace/reach.h"
#include "trace/reader.h"
#include "trace/snapshot.h"
#include "trace/writer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { ITEMS_PER_LOOK = 1 << 14, NAMES_MAX = 256 };

// One of the traces that go into the new one.
struct side {
	const char *path;
	struct reader *reader;
	int64_t offset_ns;
	// What its ids are moved by.
	uint32_t processes, threads, modules, frames, stacks, heaps, files;
	enum reader_item item; // its next one
	uint64_t next_number;  // of the event after those that were read
	struct trace_event event;
	struct trace_note note;
	// Its snapshots: those whose beginning, or end, was passed; and where they began in the new
	// trace.
	uint32_t began, ended;
	uint64_t *began_at;
	size_t began_capacity;
	uint32_t reached; // parts of what was reachable that were passed
	// A part of a recording that is joined: whether what it has of its own has begun; the first
	// event that the next part has, too, and when that begins; what its numbers are moved by.
	bool own;
	uint64_t to, to_ns;
	uint64_t shift;
	// Definitions that are in the new trace: so many of each kind, and frames that may be named
	// later.
	struct copied {
		uint32_t processes, threads, modules, frames, stacks, heaps, files;
	} copied;
	frame_id *nameless;
	size_t nameless_count, nameless_capacity;
};

// What a call has while it runs; freed by release().
struct rewrite {
	const struct rewrite_options *options;
	struct rewrite_result *result;
	struct side *sides;
	size_t count;
	struct writer *writer;
	struct map bundled;    // hashes of build-ids
	struct map numbers;    // of addresses, in the order in which they are met
	bool joins;            // the sides are parts of one recording, in their order
	size_t kept;           // so many of the window's kept events are passed
	bool begun;            // the window has
	uint64_t before_count; // events of the new trace before it
	uint64_t addresses_count;
};

// ---- what is left out ----

// `C:\x\app.exe` and `/x/app` alike: a trace of either system may be rewritten on either. A path
// that ends with a slash keeps its last name.
static const char *last_part(const char *path)
{
	const char *part = path;

	for (; *path; path++)
		if ((*path == '/' || *path == '\\') && path[1])
			part = path + 1;
	return part;
}

// Borrowed: the writer copies, and does not write to it.
static char *path_of(const struct rewrite *rewrite, const char *path)
{
	return (char *)(rewrite->options->paths ? last_part(path) : path);
}

// Texts of such notes tell of paths and arguments.
static const char *text_of(const struct rewrite *rewrite, const struct trace_note *note)
{
	bool tells = note->kind == TRACE_NOTE_MESSAGE || note->kind == TRACE_NOTE_EXEC_UNSEEN ||
		     note->kind == TRACE_NOTE_CALLS || note->kind == TRACE_NOTE_TITLE;

	return tells && (rewrite->options->paths || rewrite->options->arguments) ? "" : note->text;
}

// ---- definitions ----

// Processes before threads, since each thread names one. The reader's tables may have grown since
// the last call: only what is new is copied.
static void copy_processes(struct rewrite *rewrite, struct side *side)
{
	for (; side->copied.processes < reader_processes_count(side->reader);
	     side->copied.processes++) {
		struct trace_process process =
			*reader_process(side->reader, side->copied.processes);

		if (process.parent != TRACE_NONE)
			process.parent += side->processes;
		process.began_ns += (uint64_t)side->offset_ns;
		process.exe = path_of(rewrite, process.exe);
		if (rewrite->options->arguments)
			process.args_count = 0;
		writer_add_process(rewrite->writer, &process);
	}
	for (; side->copied.threads < reader_threads_count(side->reader); side->copied.threads++) {
		const struct trace_thread *thread =
			reader_thread(side->reader, side->copied.threads);

		writer_add_thread(rewrite->writer, thread->process + side->processes, thread->tid,
				  thread->name);
	}
}

// The names of a frame of the old trace. False: it has none.
static bool copy_names(struct rewrite *rewrite, struct side *side, frame_id frame)
{
	struct trace_name names[NAMES_MAX];
	size_t count;
	const struct trace_name *told = reader_frame_names(side->reader, frame, &count);

	if (!told)
		return false;
	for (size_t i = 0; i < count && i < NAMES_MAX; i++) {
		names[i] = told[i];
		names[i].file = path_of(rewrite, told[i].file);
	}
	writer_add_name(rewrite->writer, frame + side->frames, names,
			count < NAMES_MAX ? count : NAMES_MAX);
	return true;
}

// Frames in no file get their names later than the items that use them.
static void add_nameless(struct rewrite *rewrite, struct side *side, frame_id frame)
{
	if (!rewrite->options->more || reader_frame(side->reader, frame)->module)
		return;
	*MEM_ADD(side->nameless, side->nameless_count, side->nameless_capacity) = frame;
}

// Those that are named by now leave the list.
static void name_nameless(struct rewrite *rewrite, struct side *side)
{
	size_t left = 0;

	for (size_t i = 0; i < side->nameless_count; i++)
		if (!copy_names(rewrite, side, side->nameless[i]))
			side->nameless[left++] = side->nameless[i];
	side->nameless_count = left;
}

// Where code is: without addresses, at its place in the file, or a number where it is in none.
static uint64_t pc_of(const struct rewrite *rewrite, const struct side *side, frame_id id)
{
	const struct trace_frame *frame = reader_frame(side->reader, id);

	if (!rewrite->options->addresses)
		return frame->pc;
	return frame->module ? frame->pc - reader_module(side->reader, frame->module)->bias : id;
}

// Modules before frames before stacks: each names what is before it. Without addresses a module
// begins at its place in the file, so that ranges still contain the code in them.
static void copy_code(struct rewrite *rewrite, struct side *side)
{
	struct reader *reader = side->reader;

	for (; side->copied.modules < reader_modules_count(reader); side->copied.modules++) {
		struct trace_module module = *reader_module(reader, side->copied.modules);

		module.process += side->processes;
		module.path = path_of(rewrite, module.path);
		if (rewrite->options->addresses) {
			module.start -= module.bias;
			module.end -= module.bias;
			module.bias = 0;
		}
		writer_add_module(rewrite->writer, &module);
	}
	name_nameless(rewrite, side);
	for (; side->copied.frames < reader_frames_count(reader); side->copied.frames++) {
		frame_id id = side->copied.frames;
		const struct trace_frame *frame = reader_frame(reader, id);

		writer_add_frame(rewrite->writer, frame->module ? frame->module + side->modules : 0,
				 pc_of(rewrite, side, id), frame->flags);
		if (!copy_names(rewrite, side, id))
			add_nameless(rewrite, side, id);
	}
	for (; side->copied.stacks < reader_stacks_count(reader); side->copied.stacks++) {
		const struct trace_stack *stack = reader_stack(reader, side->copied.stacks);

		writer_add_stack(rewrite->writer, stack->parent ? stack->parent + side->stacks : 0,
				 stack->frame + side->frames, stack->flags);
	}
}

// A handle of a heap is an address as well: without addresses it becomes the heap's number, but
// stays 0 where it is 0, since that says that it is a pool.
static void copy_memory(struct rewrite *rewrite, struct side *side)
{
	for (; side->copied.heaps < reader_heaps_count(side->reader); side->copied.heaps++) {
		struct trace_heap heap = *reader_heap(side->reader, side->copied.heaps);

		heap.process += side->processes;
		if (rewrite->options->addresses && heap.handle)
			heap.handle = side->copied.heaps;
		writer_add_heap(rewrite->writer, &heap);
	}
	for (; side->copied.files < reader_files_count(side->reader); side->copied.files++) {
		struct trace_file file = *reader_file(side->reader, side->copied.files);

		file.path = path_of(rewrite, file.path);
		writer_add_file(rewrite->writer, &file);
	}
}

// Each build-id once, though many processes of many traces have mapped the file.
static void copy_bundles(struct rewrite *rewrite, struct side *side)
{
	for (module_id id = 1; id < reader_modules_count(side->reader); id++) {
		const struct trace_module *module = reader_module(side->reader, id);
		uint64_t words[5] = { module->build_id_length };
		const void *bytes;
		size_t size;
		bool added;

		if (!module->build_id_length)
			continue;
		memcpy(words + 1, module->build_id, sizeof module->build_id);
		map_put(&rewrite->bundled, index_set_hash(words, 5), &added);
		bytes = added ? reader_bundle(side->reader, module->build_id,
					      module->build_id_length, &size)
			      : NULL;
		rewrite->result->unbundled += added && !bytes;
		if (bytes)
			writer_bundle(rewrite->writer, module->build_id, module->build_id_length,
				      bytes, size);
	}
}

// Those that are not in the new trace yet.
static void copy_definitions(struct rewrite *rewrite, struct side *side)
{
	copy_processes(rewrite, side);
	copy_code(rewrite, side);
	copy_memory(rewrite, side);
}

// ---- items ----

// What the event of that number is in the new trace. Within a window none is left out, so what
// stands later in the file than the events that it is about has its place, too.
// `passed` is where the new trace is now: for what is before the window, the beginning of the
// window.
static uint64_t number_of(const struct rewrite *rewrite, const struct side *side, uint64_t number,
			  uint64_t passed)
{
	const struct rewrite_window *window = rewrite->options->window;

	if (rewrite->joins)
		return (int64_t)(number + side->shift) > 0 ? number + side->shift : 0;
	if (!window || !rewrite->begun || number < window->from_number)
		return passed;
	return number - window->from_number + rewrite->before_count;
}

// The two marks of a snapshot are numbers of events, and those are others in the new trace.
static void put_snapshot(struct rewrite *rewrite, struct side *side, uint32_t index)
{
	struct trace_snapshot snapshot;

	ASSERT(index < side->began);
	if (!reader_snapshot_load(side->reader, index, &snapshot))
		return;
	snapshot.process += side->processes;
	snapshot.time_ns += (uint64_t)side->offset_ns;
	snapshot.began = number_of(rewrite, side, snapshot.began, side->began_at[index]);
	snapshot.ended =
		number_of(rewrite, side, snapshot.ended, writer_events_count(rewrite->writer));
	for (uint32_t i = 0; i < snapshot.mappings_count; i++)
		if (snapshot.mappings[i].file)
			snapshot.mappings[i].file += side->files;
	writer_snapshot(rewrite->writer, &snapshot);
	snapshot_fini(&snapshot);
}

// Whether what was seen at a moment, from the event of that number on, is kept.
// Where addresses are left out, so is everything that consists of addresses. Of a part of a
// recording what the next part has as well is not.
static bool has_moment(const struct rewrite *rewrite, const struct side *side, uint64_t number,
		       uint64_t time_ns)
{
	const struct rewrite_window *window = rewrite->options->window;

	if (rewrite->options->addresses)
		return false;
	if (rewrite->joins)
		return number < side->to || time_ns < side->to_ns;
	return !window || (number >= window->from_number && time_ns >= window->from_ns &&
			   time_ns <= window->to_ns);
}

static bool has_snapshot(const struct rewrite *rewrite, const struct side *side,
			 const struct trace_snapshot *snapshot)
{
	return has_moment(rewrite, side, snapshot->began, snapshot->time_ns);
}

static bool has_reach(const struct rewrite *rewrite, const struct side *side,
		      const struct trace_reach *reach)
{
	return has_moment(rewrite, side, reach->number, reach->time_ns);
}

// Parts keep their order and their place in the whole, so `first` and `total` stay true.
static void put_reach(struct rewrite *rewrite, struct side *side, uint32_t index)
{
	struct trace_reach reach;

	if (!reader_reach_load(side->reader, index, &reach))
		return;
	reach.process += side->processes;
	reach.time_ns += (uint64_t)side->offset_ns;
	reach.number = number_of(rewrite, side, reach.number, writer_events_count(rewrite->writer));
	for (uint64_t i = 0; i < reach.count; i++) {
		reach.blocks[i].thread += side->threads;
		reach.blocks[i].stack += reach.blocks[i].stack ? side->stacks : 0;
	}
	writer_reach(rewrite->writer, &reach);
	reach_fini(&reach);
}

// Snapshots that begin or end before the event of that number, and what was reachable there.
// A snapshot lies between two events, and is written when all before its end are: by then it is
// known which numbers they have in the new trace.
static void pass_snapshots(struct rewrite *rewrite, struct side *side, uint64_t number)
{
	uint32_t count = reader_snapshots_count(side->reader);

	MEM_ROOM(side->began_at, side->began_capacity, count);
	while (side->began < count && reader_snapshot(side->reader, side->began)->began <= number)
		side->began_at[side->began++] = writer_events_count(rewrite->writer);
	while (side->ended < side->began &&
	       reader_snapshot(side->reader, side->ended)->ended <= number) {
		if (has_snapshot(rewrite, side, reader_snapshot(side->reader, side->ended)))
			put_snapshot(rewrite, side, side->ended);
		side->ended++;
	}
	ASSERT(side->ended <= side->began && side->began <= count);
	while (side->reached < reader_reaches_count(side->reader) &&
	       reader_reach(side->reader, side->reached)->number <= number) {
		if (has_reach(rewrite, side, reader_reach(side->reader, side->reached)))
			put_reach(rewrite, side, side->reached);
		side->reached++;
	}
}

// An address that stands for another: equal ones stay equal, and that is all they say.
// The first address that is met becomes 16, the second 32, and so on: multiples of 16, as an
// allocator's are, so that what reads the trace has no reason to wonder.
static uint64_t address_of(struct rewrite *rewrite, uint64_t address)
{
	uint64_t *number;
	bool added;

	if (!rewrite->options->addresses || address == 0)
		return address;
	number = map_put(&rewrite->numbers, address, &added);
	if (added)
		*number = ++rewrite->addresses_count * 16;
	return *number;
}

// `event.number` is not looked at by the writer: it numbers what it is given.
static void put_event(struct rewrite *rewrite, struct side *side)
{
	struct trace_event event = side->event;
	struct trace_vm vm;

	if (event.vm && rewrite->options->addresses) {
		rewrite->result->vm_left_out++;
		return;
	}
	event.address = address_of(rewrite, event.address);
	event.old_address = address_of(rewrite, event.old_address);
	pass_snapshots(rewrite, side, event.number);
	event.time_ns += (uint64_t)side->offset_ns;
	event.thread += side->threads;
	event.stack = event.stack ? event.stack + side->stacks : 0;
	event.heap = event.heap ? event.heap + side->heaps : 0;
	if (event.vm) {
		vm = *event.vm;
		vm.file = vm.file ? vm.file + side->files : 0;
		event.vm = &vm;
	}
	writer_event(rewrite->writer, &event);
	rewrite->result->events++;
}

static void put_note(struct rewrite *rewrite, const struct side *side)
{
	struct trace_note note = side->note;

	if (rewrite->options->addresses &&
	    (note.kind == TRACE_NOTE_ADDRESS_LOW || note.kind == TRACE_NOTE_ADDRESS_END))
		return;
	note.time_ns += (uint64_t)side->offset_ns;
	if (note.process != TRACE_NONE)
		note.process += side->processes;
	if (note.thread != TRACE_NONE)
		note.thread += side->threads;
	if (note.kind == TRACE_NOTE_MODULE_GONE)
		note.value += side->modules;
	note.text = text_of(rewrite, &note);
	writer_note(rewrite->writer, &note);
}

// In the time of the new trace. A side that is at its end is after everything.
static uint64_t time_of(const struct side *side)
{
	if (side->item == READER_END)
		return UINT64_MAX;
	return (side->item == READER_EVENT ? side->event.time_ns : side->note.time_ns) +
	       (uint64_t)side->offset_ns;
}

// ---- a window of one ----

// The mark says where the window begins, and its number is how many events before it only say what
// was there.
static void begin_window(struct rewrite *rewrite)
{
	const struct rewrite_window *window = rewrite->options->window;
	const struct trace_note mark = {
		.kind = TRACE_NOTE_MARK,
		.process = TRACE_NONE,
		.thread = TRACE_NONE,
		.time_ns = window->from_ns,
		.text = window->mark,
	};

	writer_note(rewrite->writer, &mark);
	rewrite->before_count = writer_events_count(rewrite->writer);
	rewrite->begun = true;
}

// Whether an event from before the window is kept. What a realloc began is begun by a malloc.
// Both lists rise, so one look at the next of `kept` decides. Half of a realloc, or one whose old
// block is not there, would be an end of nothing: the event becomes a malloc.
static bool keeps_event(struct rewrite *rewrite, struct trace_event *event)
{
	const struct rewrite_window *window = rewrite->options->window;

	ASSERT(rewrite->kept <= window->kept_count);
	if (rewrite->kept == window->kept_count || window->kept[rewrite->kept] != event->number)
		return false;
	rewrite->kept++;
	if (event->kind == TRACE_REALLOC || event->kind == TRACE_REALLOC_ALLOC)
		event->kind = TRACE_MALLOC;
	return true;
}

// Marks and figures of before the window are about a time that is not in it; processes, threads
// and modules are still needed.
static bool keeps_note(const struct trace_note *note)
{
	return note->kind != TRACE_NOTE_MARK && note->kind != TRACE_NOTE_RSS &&
	       note->kind != TRACE_NOTE_PSS && note->kind != TRACE_NOTE_SWAP &&
	       note->kind != TRACE_NOTE_MINOR && note->kind != TRACE_NOTE_MAJOR;
}

// Of a part of a recording: not what says what lived before it, nor what its next part has.
// That begins at an event and at a time: a note between two events is in either by its time.
static bool keeps_own(struct side *side)
{
	bool is_event = side->item == READER_EVENT;
	uint64_t number = is_event ? side->event.number : side->next_number;

	ASSERT(side->item != READER_END);
	side->next_number = is_event ? number + 1 : number;
	if (!side->own) {
		side->own = !is_event && parts_begins(&side->note);
		return false;
	}
	if (is_event && number >= side->to)
		side->item = READER_END;
	return number < side->to ||
	       (!is_event && number == side->to && side->note.time_ns < side->to_ns);
}

// Whether the next item is in the new trace. At what comes after the window there is no next item.
// Within the window all is kept but an older mark of the window's own name: a trace that is trimmed
// twice has one. A note has no number of its own: it is that of the event that it is before.
static bool keeps_item(struct rewrite *rewrite, struct side *side)
{
	const struct rewrite_window *window = rewrite->options->window;
	bool is_event = side->item == READER_EVENT;
	uint64_t number = is_event ? side->event.number : side->next_number;
	uint64_t time_ns = is_event ? side->event.time_ns : side->note.time_ns;

	if (rewrite->joins)
		return keeps_own(side);
	if (!window)
		return true;
	ASSERT(rewrite->count == 1);
	side->next_number = is_event ? number + 1 : number;
	if (time_ns > window->to_ns || (is_event && number >= window->to_number)) {
		side->item = READER_END;
		return false;
	}
	if (number >= window->from_number && (is_event || time_ns >= window->from_ns)) {
		if (!rewrite->begun)
			begin_window(rewrite);
		return is_event || side->note.kind != TRACE_NOTE_MARK ||
		       strcmp(side->note.text, window->mark) != 0;
	}
	return is_event ? keeps_event(rewrite, &side->event) : keeps_note(&side->note);
}

// The side's next item. At the present end of an input that grows, what was defined since is copied
// first.
static void read_item(struct rewrite *rewrite, struct side *side)
{
	const struct rewrite_options *options = rewrite->options;

	side->item = reader_next(side->reader, &side->event, &side->note);
	while (side->item == READER_END && options->more && options->more(options->context)) {
		reader_grown(side->reader);
		side->item = reader_next(side->reader, &side->event, &side->note);
	}
	if (options->more)
		copy_definitions(rewrite, side);
}

// All sides are looked at for each item: merges have few. For example side 0 waits with an event at
// 5.0 s and side 1 with a note at 4.0 s: the note goes first, and side 1 reads its next item.
static bool copy_items(struct rewrite *rewrite, struct err *err)
{
	const struct rewrite_options *options = rewrite->options;
	uint64_t count = 0;

	for (size_t i = 0; i < rewrite->count; i++) {
		struct side *side = &rewrite->sides[i];

		reader_rewind(side->reader);
		read_item(rewrite, side);
	}
	for (;;) {
		struct side *first = &rewrite->sides[0];

		if (count++ % ITEMS_PER_LOOK == 0 && options->stopped &&
		    options->stopped(options->context))
			return err_set(err, ERR_STOPPED, "stopped");
		for (size_t i = 1; i < rewrite->count; i++)
			if (time_of(&rewrite->sides[i]) < time_of(first))
				first = &rewrite->sides[i];
		if (first->item == READER_END)
			break;
		if (!keeps_item(rewrite, first)) {
			if (first->item == READER_END) {
				pass_snapshots(rewrite, first, UINT64_MAX);
				continue;
			}
		} else if (first->item == READER_EVENT) {
			put_event(rewrite, first);
		} else {
			put_note(rewrite, first);
		}
		read_item(rewrite, first);
	}
	for (size_t i = 0; i < rewrite->count; i++)
		pass_snapshots(rewrite, &rewrite->sides[i], UINT64_MAX);
	if (options->window && !rewrite->begun)
		begin_window(rewrite);
	return true;
}

// ---- the whole ----

// What one has to have in common with the first.
static bool fits(const struct side *first, const struct side *side, struct err *err)
{
	if (reader_is_windows(first->reader) != reader_is_windows(side->reader))
		return err_set(err, ERR_FORMAT,
			       "%s: a trace of Windows and one of another system cannot become "
			       "one trace",
			       side->path);
	if (side != first &&
	    (reader_info(first->reader)->trimmed || reader_info(side->reader)->trimmed))
		return err_set(
			err, ERR_FORMAT,
			"%s: it begins in the middle of a recording (trim, or record --keep, "
			"--rotate or --max-size), and goes into one with the other files of its "
			"own recording (--rotate) alone (try: join those first; merge whole "
			"traces, then trim; or ask each file by itself)",
			reader_info(side->reader)->trimmed ? side->path : first->path);
	if (side != first &&
	    (reader_info(first->reader)->budget || reader_info(side->reader)->budget) &&
	    (reader_is_estimated(first->reader) || reader_is_estimated(side->reader)))
		return err_set(
			err, ERR_FORMAT,
			"%s: a trace that was sampled at times (record --max-overhead) does not "
			"go into one with others",
			side->path);
	if (reader_info(first->reader)->sample_bytes != reader_info(side->reader)->sample_bytes)
		return err_set(err, ERR_FORMAT, "%s: it is sampled otherwise than %s", side->path,
			       first->path);
	return true;
}

// By when what is their own begins.
SORT_ORDER(by_begin, struct side,
	   SORT_BY(parts_begin_ns(one->reader), parts_begin_ns(other->reader)))

// Whether all that the part's items name is defined in the last part too.
static bool has_definitions(const struct reader *last, const struct reader *part)
{
	return reader_processes_count(last) >= reader_processes_count(part) &&
	       reader_threads_count(last) >= reader_threads_count(part) &&
	       reader_modules_count(last) >= reader_modules_count(part) &&
	       reader_frames_count(last) >= reader_frames_count(part) &&
	       reader_stacks_count(last) >= reader_stacks_count(part) &&
	       reader_heaps_count(last) >= reader_heaps_count(part) &&
	       reader_files_count(last) >= reader_files_count(part);
}

// Whether all are files of one rotated recording.
static bool are_parts(const struct rewrite *rewrite)
{
	bool are = rewrite->count > 1;

	for (size_t i = 0; i < rewrite->count && are; i++)
		are = parts_same(rewrite->sides[0].reader, rewrite->sides[i].reader);
	return are;
}

// The parts in their order, and what is taken of each.
static bool join(struct rewrite *rewrite, struct err *err)
{
	struct side *sides = rewrite->sides, *last = &sides[rewrite->count - 1];

	ASSERT(rewrite->count > 1 && !rewrite->options->window && !rewrite->options->more);
	for (size_t i = 0; i < rewrite->count; i++)
		if (sides[i].offset_ns)
			return err_set(err, ERR_USAGE,
				       "--offset %s: it is a part of one recording with the "
				       "others, all by one clock",
				       sides[i].path);
	qsort(sides, rewrite->count, sizeof *sides, by_begin);
	sides[0].own = true;
	last->to = last->to_ns = UINT64_MAX;
	for (size_t i = 1; i < rewrite->count; i++) {
		struct side *before = &sides[i - 1], *side = &sides[i];

		if (!parts_follows(before->reader, before->path, side->reader, side->path,
				   &before->to, err))
			return false;
		if (!has_definitions(last->reader, before->reader))
			return err_set(err, ERR_FORMAT, "%s: it lacks definitions of %s",
				       last->path, before->path);
		before->to_ns = parts_begin_ns(side->reader);
		side->shift = before->to + before->shift - reader_info(side->reader)->trimmed;
	}
	rewrite->result->parts_from_ns = parts_begin_ns(sides[0].reader);
	rewrite->result->parts_go_on = parts_go_on(last->reader, last->path);
	return true;
}

static bool open_sides(struct rewrite *rewrite, struct err *err)
{
	const struct rewrite_options *options = rewrite->options;

	for (size_t i = 0; i < options->inputs_count; i++) {
		struct side *side = &rewrite->sides[i];

		rewrite->count = i + 1;
		side->path = options->inputs[i].path;
		side->offset_ns = options->inputs[i].offset_ns;
		side->reader = reader_open(side->path, err);
		if (!side->reader)
			return false;
		reader_scan(side->reader);
		// What counts from 0 in the trace is copied from there, all else from 1.
		side->copied = (struct copied){
			.modules = 1, .frames = 1, .stacks = 1, .heaps = 1, .files = 1
		};
		reader_follow(side->reader, options->more != NULL);
	}
	rewrite->joins = are_parts(rewrite);
	if (rewrite->joins)
		return join(rewrite, err);
	for (size_t i = 0; i < rewrite->count; i++)
		if (!fits(&rewrite->sides[0], &rewrite->sides[i], err))
			return false;
	return true;
}

static uint64_t began_of(const struct side *side)
{
	return reader_info(side->reader)->began_unix_ns;
}

// Offsets so that the first item of all is not before 0. Returns when the new trace began.
// Where the computer's clock aligns them, a recording that began 3 s after the first one has its
// events 3 s later. A negative offset moves all the others instead, since no trace begins before 0.
// For example recordings that began at 100 s and 103 s of the clock, with offsets 0 and -5 s: they
// are moved by 0 and 3 - 5 = -2 s. The lowest is -2 s, so both are moved by 2 s more: 2 s and 0.
// The new trace began at 98 s.
static uint64_t align(struct rewrite *rewrite)
{
	uint64_t first_ns = began_of(&rewrite->sides[0]);
	int64_t lowest = INT64_MAX;

	for (size_t i = 0; i < rewrite->count; i++) {
		struct side *side = &rewrite->sides[i];

		if (rewrite->options->by_wall_clock && began_of(side) && first_ns)
			side->offset_ns += (int64_t)(began_of(side) - first_ns);
		else if (rewrite->options->by_wall_clock && i > 0)
			rewrite->result->no_clock = true;
		if (side->offset_ns < lowest)
			lowest = side->offset_ns;
	}
	for (size_t i = 0; i < rewrite->count; i++)
		rewrite->sides[i].offset_ns -= lowest;
	return first_ns ? first_ns + (uint64_t)lowest : 0;
}

// Each word once: a trace that is merged of two samples has "sample" one time.
static void add_word(struct str *words, const char *word)
{
	if (defs_has_word(words->text, word))
		return;
	if (words->length)
		str_add_char(words, ' ');
	str_add(words, word);
}

// Words that say what the file alone is.
static bool keeps_word(const struct rewrite *rewrite, size_t i, const char *word)
{
	bool cut = strncmp(word, "trimmed=", 8) == 0, joins = strncmp(word, "joins=", 6) == 0;

	ASSERT(i < rewrite->count);
	if (rewrite->joins)
		return !joins && strncmp(word, "rotate=", 7) != 0 && !(cut && i > 0);
	return !rewrite->options->window || !(cut || joins);
}

// The new trace has an id of its own, made of the ids of all, so that the same traces merged again
// give the same id. Its tick is the coarsest of theirs.
static void describe(struct rewrite *rewrite, struct trace_info *info, struct str texts[3])
{
	const struct trace_info *first = reader_info(rewrite->sides[0].reader);
	const char **labels = mem_alloc(rewrite->count, sizeof *labels);

	*info = *first;
	info->began_unix_ns = align(rewrite);
	for (size_t i = 0; i < rewrite->count; i++) {
		const struct trace_info *own = reader_info(rewrite->sides[i].reader);

		// Parts of one recording say the same.
		if (own->command && *own->command && !(rewrite->joins && i > 0))
			str_format(&texts[0], "%s%s", texts[0].length ? "; " : "", own->command);
		for (const char *at = own->options ? own->options : ""; *at;
		     at += strspn(at, " ")) {
			size_t length = strcspn(at, " ");
			char *word = mem_copy_bytes(at, length);

			if (keeps_word(rewrite, i, word))
				add_word(&texts[1], word);
			mem_free(word);
			at += length;
		}
		labels[i] = own->labels;
		if (own->tick_ns > info->tick_ns)
			info->tick_ns = own->tick_ns;
		for (size_t byte = 0; i > 0 && byte < sizeof info->recording_id; byte++)
			info->recording_id[byte] ^= own->recording_id[byte] * 31;
	}
	if (!rewrite->options->arguments && !rewrite->options->paths)
		rewrite->result->labels_differ = label_join(labels, rewrite->count, &texts[2]);
	mem_free(labels);
	if (rewrite->result->labels_differ)
		add_word(&texts[1], "labels-differ");
	if (rewrite->options->addresses)
		add_word(&texts[1], "no-addresses");
	if (rewrite->options->window)
		str_format(&texts[1], "%strimmed=%" PRIu64, texts[1].length ? " " : "",
			   (uint64_t)rewrite->options->window->kept_count);
	if (rewrite->options->part)
		str_format(&texts[1], " joins=%" PRIu64, rewrite->options->window->from_number);
	if (rewrite->options->part)
		parts_next_id(first->recording_id, info->recording_id);
	info->command = rewrite->options->arguments ? "" : (char *)str_get(&texts[0]);
	info->options = (char *)str_get(&texts[1]);
	info->labels = (char *)str_get(&texts[2]);
	if (rewrite->options->paths) {
		info->directory = "";
		info->host = reader_is_windows(rewrite->sides[0].reader) ? "Windows" : "";
	}
}

// Ids of the second trace follow those of the first: with 3 processes there, process 0 of the
// second is 3. Tables whose entry 0 is "none" share that entry, so one less is added for them.
static void place(struct rewrite *rewrite)
{
	for (size_t i = 1; i < rewrite->count && !rewrite->joins; i++) {
		const struct side *last = &rewrite->sides[i - 1];
		struct side *side = &rewrite->sides[i];

		side->processes = last->processes + reader_processes_count(last->reader);
		side->threads = last->threads + reader_threads_count(last->reader);
		// These count from 1.
		side->modules = last->modules + reader_modules_count(last->reader) - 1;
		side->frames = last->frames + reader_frames_count(last->reader) - 1;
		side->stacks = last->stacks + reader_stacks_count(last->reader) - 1;
		side->heaps = last->heaps + reader_heaps_count(last->reader) - 1;
		side->files = last->files + reader_files_count(last->reader) - 1;
	}
}

// Losses add up; ticks do not, and the worst is said. One trace that is not complete makes the new
// one say so.
static void put_end(struct rewrite *rewrite)
{
	struct trace_end end = { .why = "" };

	for (size_t i = 0; i < rewrite->count; i++) {
		struct side *side = &rewrite->sides[i];
		const struct trace_end *own = reader_end(side->reader);
		uint64_t last_ns = reader_stats(side->reader)->last_ns;

		if (own && own->duration_ns > last_ns)
			last_ns = own->duration_ns;
		if (rewrite->options->window && rewrite->options->window->to_ns < last_ns)
			last_ns = rewrite->options->window->to_ns;
		last_ns += (uint64_t)side->offset_ns;
		if (last_ns > end.duration_ns)
			end.duration_ns = last_ns;
		if (!reader_complete(side->reader)) {
			rewrite->result->damaged = true;
			end.why = "one of the traces it was made of is not complete";
		}
		if (!own)
			continue;
		if (rewrite->joins) { // each counts from the recording's beginning
			last_ns = end.duration_ns;
			end = *own;
			end.duration_ns = last_ns;
			continue;
		}
		end.events_lost += own->events_lost;
		end.waited_ns += own->waited_ns;
		end.unseen += own->unseen;
		end.stacks_incomplete += own->stacks_incomplete;
		if (own->tick_median_ns > end.tick_median_ns)
			end.tick_median_ns = own->tick_median_ns;
		if (own->tick_worst_ns > end.tick_worst_ns)
			end.tick_worst_ns = own->tick_worst_ns;
	}
	writer_end(rewrite->writer, &end);
}

// Definitions and bundles come before the first item; those of an input that still grows follow
// later.
static bool write_items(struct rewrite *rewrite, int fd, struct err *err)
{
	struct str texts[3] = { { 0 }, { 0 }, { 0 } };
	struct trace_info info;

	describe(rewrite, &info, texts);
	rewrite->writer = writer_new(fd, &info, err);
	STR_FINI(&texts[0], &texts[1], &texts[2]);
	if (!rewrite->writer)
		return false;
	place(rewrite);
	for (size_t i = rewrite->joins ? rewrite->count - 1 : 0; i < rewrite->count; i++)
		copy_definitions(rewrite, &rewrite->sides[i]);
	for (size_t i = 0; i < rewrite->count; i++)
		copy_bundles(rewrite, &rewrite->sides[i]);
	return copy_items(rewrite, err);
}

// The readers are closed last, since the writer has borrowed nothing of them.
static void release(struct rewrite *rewrite)
{
	writer_free(rewrite->writer);
	for (size_t i = 0; i < rewrite->count; i++) {
		reader_close(rewrite->sides[i].reader);
		MEM_FREE(rewrite->sides[i].began_at, rewrite->sides[i].nameless);
	}
	mem_free(rewrite->sides);
	MAP_FINI(&rewrite->bundled, &rewrite->numbers);
}

// What was written before an error stays in the file, which is the caller's to throw away.
bool rewrite_traces(const struct rewrite_options *options, int fd, struct rewrite_result *result,
		    struct err *err)
{
	struct rewrite rewrite = { .options = options, .result = result };
	bool ok;

	ASSERT(options->inputs_count > 0 && (!options->window || options->inputs_count == 1));
	*result = (struct rewrite_result){ 0 };
	rewrite.sides = mem_alloc(options->inputs_count, sizeof *rewrite.sides);
	ok = open_sides(&rewrite, err) && write_items(&rewrite, fd, err);
	if (ok)
		put_end(&rewrite);
	ok = ok && writer_ok(rewrite.writer, err);
	release(&rewrite);
	return ok;
}

// The new trace has no end: who goes on with it writes that.
struct writer *rewrite_continue(const struct rewrite_options *options, int fd,
				struct rewrite_result *result, struct err *err)
{
	struct rewrite rewrite = { .options = options, .result = result };
	struct writer *writer = NULL;

	ASSERT(options->inputs_count == 1 && options->more);
	*result = (struct rewrite_result){ 0 };
	rewrite.sides = mem_alloc(1, sizeof *rewrite.sides);
	if (open_sides(&rewrite, err) && write_items(&rewrite, fd, err)) {
		writer_flush(rewrite.writer);
		if (writer_ok(rewrite.writer, err)) {
			writer = rewrite.writer;
			rewrite.writer = NULL;
		}
	}
	release(&rewrite);
	return writer;
}
