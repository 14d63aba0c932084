// For example, the kernel lists one anonymous mapping, 0x1000-0x9000, of which 0x3000-0x5000 is the
// recorder's own, which it said before (LANE_VM_OWN): neighbours with the same rights are one line.
// It becomes three events, of 0x2000, 0x2000 and 0x4000 bytes, the one in the middle with the
// recorder as its origin.
//
// A list that comes when there was one already corrects what is thought: what is between two lines
// is free (put_gap). A list of a part corrects only what it names.
#include "collect/mappings.h"

#include "base/mem.h"
#include "collect/maps_text.h"
#include "collect/rss_snapshots.h"

#include <string.h>
#include <time.h>

enum {
	CALL_WAIT_NS = 100000000, // for the end of a call
	CALL_NAP_NS = 50000,
	FILES_MAX = 1 << 20, // that an image may number
	LISTS_MAX = 1024,    // told and not yet placed
	OWN_MAX = 1 << 12,   // of the recorder's mappings before the baseline
	PAGE_BYTES = 4096,
	LIST_IS_PART = 1, // flags of LANE_VM_BASELINE
	PROT_WRITE_BIT = 2,
	MAP_SHARED_FLAG = 1,
	MAP_PRIVATE_FLAG = 2,
	MAP_ANONYMOUS_FLAG = 0x20,
	MAP_GROWSDOWN_FLAG = 0x100,
	MAP_STACK_FLAG = 0x20000,
};

#define KERNEL_HALF (UINT64_C(1) << 63)

void mappings_file(struct image *image, uint32_t number, uint64_t device, uint64_t inode,
		   const char *path, size_t length)
{
	if (number == 0 || number > FILES_MAX)
		return;
	code_lists_mapped(&image->code_lists, image->pid, path, length);
	*MEM_REACH(image->files, image->files_capacity, number) =
		file_table_put(&image->trace_builder->files, device, inode, path, length);
}

void mappings_list(struct image *image, uint32_t number, const char *text, size_t length)
{
	struct image_list *last = image->lists_count ? &image->lists[image->lists_count - 1] : NULL;

	if (!last || last->number != number) {
		if (image->lists_count >= LISTS_MAX)
			return;
		last = MEM_ADD(image->lists, image->lists_count, image->lists_capacity);
		*last = (struct image_list){ .number = number };
	}
	str_add_bytes(&last->text, text, length);
}

// Take that list; empty if it was never told.
static struct str take_list(struct image *image, uint32_t number)
{
	struct str text = { 0 };

	for (size_t i = 0; i < image->lists_count; i++) {
		if (image->lists[i].number != number)
			continue;
		text = image->lists[i].text;
		memmove(&image->lists[i], &image->lists[i + 1],
			(--image->lists_count - i) * sizeof *image->lists);
		break;
	}
	return text;
}

static void drop_list(struct image *image, uint32_t number)
{
	struct str text = take_list(image, number);

	str_fini(&text);
}

// The call is still in the kernel. Give it time to come back.
static void wait_for_end(struct stream *stream)
{
	const struct image *image = stream->image;
	const struct timespec nap = { .tv_nsec = CALL_NAP_NS };

	for (int naps = 0; naps < CALL_WAIT_NS / CALL_NAP_NS; naps++) {
		uint64_t head = atomic_load_explicit(&image->share.lanes[stream->lane].head,
						     memory_order_acquire);

		if (lane_reader_complete(&stream->reader, head) || image->final)
			return;
		nanosleep(&nap, NULL);
	}
}

// Who put a mapping there that was there before us. Anonymous memory is an object's bss, or of who
// maps such memory then: `before` says whose. What is ours has been told (own_until).
static uint8_t origin_of(const struct image *image, const struct maps_line *line, uint8_t before)
{
	if (maps_text_is_ours(line))
		return TRACE_ORIGIN_RECORDER;
	if (maps_text_begins(line, "[heap]"))
		return TRACE_ORIGIN_ALLOCATOR;
	if (maps_text_begins(line, "["))
		return TRACE_ORIGIN_KERNEL;
	if (line->path_length == 0)
		return before;
	if (line->path_length == strlen(image->arrival->exe) &&
	    memcmp(line->path, image->arrival->exe, line->path_length) == 0)
		return TRACE_ORIGIN_KERNEL;
	return TRACE_ORIGIN_LOADER;
}

// The recorder's own pages, of which the image's baseline will speak.
//
// Rounded to pages; what does not fit into 4,096 counts as the program's.
static void own_put(struct image *image, uint64_t start, uint64_t size)
{
	if (image->own_count >= OWN_MAX || size == 0 || start > UINT64_MAX - size - PAGE_BYTES)
		return;
	*MEM_ADD(image->own, image->own_count, image->own_capacity) = (struct image_own){
		.start = start,
		.end = (start + size + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1),
	};
}

// From `at` up to where, `end` at most, is it all the recorder's own, or all not?
//
// Called from `at` on until the line ends: each piece is one or the other.
static uint64_t own_until(const struct image *image, uint64_t at, uint64_t end, bool *own)
{
	*own = false;
	for (size_t i = 0; i < image->own_count; i++) {
		const struct image_own *each = &image->own[i];

		if (at >= each->start && at < each->end) {
			*own = true;
			return each->end < end ? each->end : end;
		}
	}
	for (size_t i = 0; i < image->own_count; i++)
		if (image->own[i].start > at && image->own[i].start < end)
			end = image->own[i].start;
	ASSERT(end > at); // so that who goes on from there comes to an end
	return end;
}

// What lies between two lines of a later list is free, whatever was thought of it.
static void put_gap(struct trace_builder *trace_builder, uint64_t from, uint64_t to,
		    struct trace_event *event)
{
	if (from >= to)
		return;
	event->kind = TRACE_UNMAPPED;
	event->address = from;
	event->size = to - from;
	trace_builder_put(trace_builder, event);
	event->kind = TRACE_MAPPED;
}

// One line of the list. The kernel lists neighbours alike as one, the recorder's with others'.
static void put_line(struct trace_builder *trace_builder, const struct image *image,
		     const struct maps_line *line, struct trace_event *event, struct trace_vm *vm)
{
	uint8_t origin = vm->origin;
	uint64_t end;

	for (uint64_t at = line->start; at < line->end; at = end) {
		bool own = false;

		end = line->path_length ? line->end : own_until(image, at, line->end, &own);
		event->address = at;
		event->size = end - at;
		vm->origin = own ? TRACE_ORIGIN_RECORDER : origin;
		trace_builder_put(trace_builder, event);
	}
}

// Whose anonymous memory is that is no object's bss. Before a program begins the linker alone has
// mapped some; before an attach, the program and all of its libraries; what is new in a later list
// is libc's.
static uint8_t origin_of_anonymous(const struct image *image)
{
	if (image->listed)
		return TRACE_ORIGIN_LIBC;
	return image->arrival->hello.start == SEGMENT_START_ATTACH ? TRACE_ORIGIN_PROGRAM
								   : TRACE_ORIGIN_LOADER;
}

// Of what a process had before an attach: writable memory right above one page that may not be
// touched, the guard, is a thread's stack.
static bool is_guarded(const struct maps_line *guard, const struct maps_line *line)
{
	return guard->path_length == 0 && guard->protection == 0 &&
	       guard->end - guard->start == PAGE_BYTES && guard->end == line->start &&
	       line->path_length == 0 && (line->protection & PROT_WRITE_BIT);
}

// Whether what comes after `last` is not what that is: there is a gap, or shared memory. In the
// list of a beginning all that is right above an object is taken for its bss, as the linker puts
// libraries side by side. An attach puts the recorder below what was there, and its bss is told.
static bool is_apart(const struct image *image, const struct maps_line *last,
		     const struct maps_line *line)
{
	if (line->start != last->end || maps_text_begins(last, "/memfd:"))
		return true;
	return image->arrival->hello.start == SEGMENT_START_ATTACH && !image->listed &&
	       (last->path_length == 0 || maps_text_is_ours(last));
}

// What was mapped when the recording of the image began; or later, where not every call is seen.
// Anonymous memory that is new then is libc's, or blocks will be found in it.
//
// Anonymous memory right after an object's mapping is that object's.
static void put_list(struct trace_builder *trace_builder, struct stream *stream, uint32_t number,
		     bool part)
{
	struct image *image = stream->image;
	struct str text = take_list(image, number);
	const char *at = str_get(&text), *end = at + text.length;
	struct maps_line line, last = { 0 };
	uint8_t origin = origin_of_anonymous(image);

	while (at < end) {
		struct trace_vm vm = { 0 };
		struct trace_event event = {
			.kind = TRACE_MAPPED,
			.time_ns = trace_builder->now_ns,
			.thread = stream->thread,
			.vm = &vm,
		};
		uint32_t stack = 0;

		if (!maps_text_next(&at, end, &line))
			continue;
		if (line.path_length == 0 && is_apart(image, &last, &line))
			origin = origin_of_anonymous(image);
		if (part && maps_text_begins(&line, "[free]")) {
			put_gap(trace_builder, line.start, line.end, &event);
			continue;
		}
		if (image->listed && !part && line.start < KERNEL_HALF)
			put_gap(trace_builder, last.end ? last.end : PAGE_BYTES, line.start,
				&event);
		origin = origin_of(image, &line, origin);
		if (origin == TRACE_ORIGIN_PROGRAM && is_guarded(&last, &line))
			stack = MAP_STACK_FLAG;
		last = line;
		vm.protection = line.protection;
		vm.flags = stack | (line.shared ? MAP_SHARED_FLAG : MAP_PRIVATE_FLAG);
		if (line.inode == 0)
			vm.flags |= MAP_ANONYMOUS_FLAG;
		if (maps_text_begins(&line, "[stack]"))
			vm.flags |= MAP_GROWSDOWN_FLAG;
		vm.offset = line.offset;
		vm.file = file_table_put(&trace_builder->files, line.device, line.inode, line.path,
					 line.path_length);
		vm.origin = origin;
		put_line(trace_builder, image, &line, &event, &vm);
	}
	str_fini(&text);
	image->own_count = 0;
	image->listed = true;
}

// A call that is still open is waited for, as its result decides what it did; a tenth of a second
// at most.
void mappings_event(struct trace_builder *trace_builder, struct stream *stream)
{
	const struct lane_item *item = &stream->items[stream->first];
	struct lane_reader *reader = &stream->reader;
	const struct image *image = stream->image;
	struct lane_vm call;
	struct trace_event event = { .time_ns = trace_builder_time(trace_builder, item->time_ns) };
	struct trace_vm vm;

	ASSERT(item->kind == LANE_VM);
	if (lane_reader_vm(reader)->open)
		wait_for_end(stream);
	call = lane_reader_take_vm(reader);
	trace_builder_stream_thread(trace_builder, stream);
	if (call.kind == LANE_VM_BASELINE) {
		if (call.error)
			drop_list(stream->image, call.file);
		else
			put_list(trace_builder, stream, call.file, call.flags & LIST_IS_PART);
		return;
	}
	if (call.kind == LANE_VM_HEAP_GONE) {
		event.thread = stream->thread;
		event.stack = item->stack;
		if (trace_builder_heap_gone(stream, call.address, &event))
			trace_builder_put(trace_builder, &event);
		return;
	}
	if (call.kind == LANE_VM_OWN)
		own_put(stream->image, call.address, call.size);
	if (call.kind == LANE_VM_LOOK_BEGIN)
		rss_snapshots_begin(stream->image);
	if (call.kind == LANE_VM_LOOK_END)
		rss_snapshots_end(stream->image);
	if (call.kind < LANE_VM_MMAP || call.kind > LANE_VM_UNMAPPED)
		return; // of a newer recorder
	vm = (struct trace_vm){
		.old_size = call.old_size,
		.offset = call.offset,
		.protection = call.protection,
		.flags = call.flags,
		.file = call.file < image->files_capacity ? image->files[call.file] : 0,
		.error = call.error,
		.origin = call.origin,
	};
	event.kind = call.kind;
	event.address = call.address;
	event.old_address = call.old_address;
	event.size = call.size;
	event.stack = item->stack;
	event.thread = stream->thread;
	event.vm = &vm;
	trace_builder_put(trace_builder, &event);
}
