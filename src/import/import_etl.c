// import_etl: what Windows' own tracing (WPR, xperf, PerfView) has written of memory: calls of
// VirtualAlloc and VirtualFree, and those on heaps, of all processes.
//
// The log is read twice. The first pass learns what stacks, processes and images there are, since
// a stack's frames and an image's identity stand behind the events that mean them. The second one
// takes the events of memory. Each waits in a ring for its stack, which comes after it, and is
// written when it is SECONDS_MAX old, or EVENTS_MAX others have come.
//
// For example VirtualAlloc at tick 1000 on thread 7 is an event of its own, and its stack is
// another event, which names tick 1000 and thread 7, a key and nothing more. The event waits in the
// ring; a hash of its time leads from the stack to it. The key's frames come much later in the
// file, so the first pass has collected them.
#include "base/map.h"
#include "base/mem.h"
#include "import/etl_put.h"
#include "import/import_formats.h"
#include "os/file.h"
#include "trace/bytes.h"

#include <inttypes.h>
#include <string.h>

enum {
	VIRTUAL_ALLOC = 98,
	VIRTUAL_FREE = 99,
	VIRTUAL_WAS_THERE = 128,
	MEM_COMMIT = 0x1000,
	MEM_RESERVE = 0x2000,
	MEM_DECOMMIT = 0x4000,
	MEM_RELEASE = 0x8000,

	HEAP_CREATE = 32,
	HEAP_ALLOC = 33,
	HEAP_REALLOC = 34,
	HEAP_DESTROY = 35,
	HEAP_FREE = 36,

	STACK_WALK = 32,
	STACK_CREATED = 34,
	STACK_GIVEN_UP = 35,
	STACK_AT_END = 36,
	STACK_KEY_KERNEL = 37,
	STACK_KEY_USER = 38,

	PROCESS_END = 2,
	THREAD_START = 1,
	THREAD_IS_THERE = 4,
	SWITCH = 36,

	EVENTS_MAX = 1 << 17,
	SECONDS_MAX = 2,
	EVENTS_PER_LOOK = 1 << 16,
};

// The ring has EVENTS_MAX slots: those from `first` to `next` wait, and event n is at n %
// EVENTS_MAX. `below` of a slot links those whose times have one hash.
_Static_assert((EVENTS_MAX & (EVENTS_MAX - 1)) == 0, "a hash is cut by a mask");

struct etl {
	struct import_work *work;
	struct intake *intake;
	struct etl_file *file;
	struct etl_stacks *stacks;
	struct etl_system *system;

	// Of the first pass.
	uint64_t events, walks, keyed, memory_events;

	struct etl_put put;
	struct etl_slot *ring;
	uint64_t first, next;  // events by number: those that wait
	uint64_t *heads;       // by the hash of a time: the last event, + 1
	struct map thread_pid; // the pid of a thread
	uint32_t *running;     // thread of each processor, + 1
	size_t running_count, running_capacity;
	uint64_t moved, partly, left_out;
};

// ---- reading fields ----

struct fields {
	struct bytes_cursor cursor;
	unsigned pointer;
};

// A cursor over the event's bytes: reading past their end gives 0 and is noticed once, at the end.
static struct fields fields_of(const struct etl_event *event)
{
	return (struct fields){ bytes_cursor(event->data, event->size), event->pointer_bytes };
}

static uint32_t take32(struct fields *fields)
{
	const uint8_t *at = bytes_next_raw(&fields->cursor, 4);

	return at ? bytes_get_u32(at) : 0;
}

static uint64_t take64(struct fields *fields)
{
	const uint8_t *at = bytes_next_raw(&fields->cursor, 8);

	return at ? bytes_get_u64(at) : 0;
}

static uint64_t take_pointer(struct fields *fields)
{
	return fields->pointer == 4 ? take32(fields) : take64(fields);
}

// The node of the frames that are left.
static uint32_t take_frames(struct etl *etl, struct fields *fields)
{
	size_t count = bytes_left(&fields->cursor) / fields->pointer;

	return etl_stacks_put(etl->stacks, fields->cursor.at, count, fields->pointer);
}

// ---- the first pass ----

static bool is_memory(const struct etl_event *event)
{
	switch (event->group) {
	case ETL_MEMORY:
		return event->opcode == VIRTUAL_ALLOC || event->opcode == VIRTUAL_FREE;
	case ETL_HEAP:
		return event->opcode >= HEAP_CREATE && event->opcode <= HEAP_FREE;
	default:
		return false;
	}
}

// Frames are kept as they come. Events that name a key come before the definition, or after one
// that says so.
static void learn_stack(struct etl *etl, const struct etl_event *event)
{
	struct fields fields = fields_of(event);
	uint64_t key;

	switch (event->opcode) {
	case STACK_WALK:
		etl->walks++;
		break;
	case STACK_KEY_KERNEL:
	case STACK_KEY_USER:
		bytes_next_raw(&fields.cursor, 16);
		key = take_pointer(&fields);
		if (fields.cursor.bad)
			break;
		etl->walks++;
		etl->keyed++;
		etl_stacks_refer(etl->stacks, key);
		break;
	case STACK_CREATED:
	case STACK_GIVEN_UP:
	case STACK_AT_END:
		key = take_pointer(&fields);
		if (!fields.cursor.bad)
			etl_stacks_define(etl->stacks, key, event->time, take_frames(etl, &fields),
					  event->opcode == STACK_CREATED);
		break;
	}
}

// Each pass is half of the progress.
static bool was_stopped(const struct etl *etl, bool second)
{
	const struct import_options *options = etl->work->options;
	// In bytes of the file; the second half begins where the first has ended.
	uint64_t read = etl_file_header(etl->file)->read / 2;

	if (options->progress)
		options->progress(options->context,
				  second ? etl_file_header(etl->file)->end / 2 + read : read);
	return options->stopped && options->stopped(options->context);
}

// False: the user stopped it.
static bool learn(struct etl *etl)
{
	struct etl_event event;

	while (etl_file_next(etl->file, &event)) {
		if (etl->events++ % EVENTS_PER_LOOK == 0 && was_stopped(etl, false))
			return false;
		etl->memory_events += is_memory(&event);
		if (event.group == ETL_STACK)
			learn_stack(etl, &event);
		else if (event.group != ETL_OTHER)
			etl_system_add(etl->system, &event);
	}
	etl_system_settle(etl->system);
	return true;
}

// ---- events that wait ----

// In the order in which they came, which is that of time.
static void put_oldest(struct etl *etl)
{
	ASSERT(etl->first <= etl->next);
	etl_put_slot(&etl->put, &etl->ring[etl->first++ % EVENTS_MAX]);
}

// Multiplied by 2^64 divided by the golden ratio, so that times that differ by little spread.
static uint64_t *head_of(struct etl *etl, uint64_t time)
{
	// EVENTS_MAX is a power of two: the mask takes the lowest 17 bits.
	return &etl->heads[(time * UINT64_C(0x9e3779b97f4a7c15)) >> 32 & (EVENTS_MAX - 1)];
}

// An event that left the ring before its stack came has none.
static void add_slot(struct etl *etl, const struct etl_slot *slot)
{
	// For example an event at tick 1000 as number 7: the head of the hash of 1000 was 4 (event
	// 3, at some other tick of that hash); `below` of the new slot is 4, and the head 8.
	uint64_t *head = head_of(etl, slot->time);
	struct etl_slot *place;

	ASSERT(etl->next - etl->first <= EVENTS_MAX);
	if (etl->next - etl->first == EVENTS_MAX)
		put_oldest(etl);
	place = &etl->ring[etl->next % EVENTS_MAX];
	*place = *slot;
	place->space = etl_put_space(&etl->put, slot->process);
	ASSERT(*head <= etl->next);
	place->below = *head;
	*head = ++etl->next;
}

// The oldest event of that time and thread that has no such part of a stack yet.
static struct etl_slot *find_slot(struct etl *etl, uint64_t time, uint32_t thread, bool kernel)
{
	struct etl_slot *found = NULL;

	// The list of a hash goes from the youngest to the oldest, and ends where events have left
	// the ring. Two events of one thread and time get their stacks in the order in which they
	// came.
	// `at` is a number + 1: 0 ends a list, as does a number that has left the ring.
	for (uint64_t at = *head_of(etl, time); at > etl->first;) {
		struct etl_slot *slot = &etl->ring[(at - 1) % EVENTS_MAX];

		if (slot->time == time && !(kernel ? slot->kernel : slot->user) &&
		    (slot->thread == thread || slot->thread == ETL_UNKNOWN))
			found = slot;
		ASSERT(slot->below < at);
		at = slot->below;
	}
	return found;
}

// One event may have two stacks, the kernel's part and the user's, told one after the other.
static void add_stack(struct etl *etl, const struct etl_event *event)
{
	struct fields fields = fields_of(event);
	uint64_t time = take64(&fields);
	uint32_t thread, node, callers;
	struct etl_slot *slot;
	bool kernel;

	// The process is not asked: thread and time name the event.
	take32(&fields); // process
	thread = take32(&fields);
	switch (event->opcode) {
	case STACK_WALK:
		slot = find_slot(etl, time, thread, false);
		slot = slot ? slot : find_slot(etl, time, thread, true);
		if (!slot)
			return;
		node = take_frames(etl, &fields);
		kernel = node && etl_put_is_kernel(&etl->put,
						   etl_stacks_frame(etl->stacks, node, &callers));
		// A walk without a key may have both parts in it: it is the kernel's only if all of
		// its frames are.
		for (; kernel && callers;)
			kernel = etl_put_is_kernel(&etl->put, etl_stacks_frame(etl->stacks, callers,
									       &callers));
		break;
	case STACK_KEY_KERNEL:
	case STACK_KEY_USER:
		kernel = event->opcode == STACK_KEY_KERNEL;
		slot = find_slot(etl, time, thread, kernel);
		if (!slot)
			return;
		node = etl_stacks_find(etl->stacks, take_pointer(&fields), event->time);
		break;
	default:
		return;
	}
	*(kernel ? &slot->kernel : &slot->user) = node;
	slot->thread = thread;
}

// Who acts, where the event's header does not say: headers of the kernel's own events have no
// thread. It is the one that the processor switched to last.
static uint32_t thread_of(const struct etl *etl, const struct etl_event *event)
{
	if (event->thread != ETL_UNKNOWN)
		return event->thread;
	return event->cpu < etl->running_count ? etl->running[event->cpu] - 1 : ETL_UNKNOWN;
}

// MEM_RESERVE maps, MEM_COMMIT makes what is mapped usable (as mprotect does in the trace),
// MEM_DECOMMIT undoes that, and MEM_RELEASE unmaps.
static void add_virtual(struct etl *etl, const struct etl_event *event)
{
	struct fields fields = fields_of(event);
	struct etl_slot slot = { .time = event->time, .thread = thread_of(etl, event) };
	uint32_t pid, flags;
	uint64_t committed;

	slot.address = take_pointer(&fields);
	slot.size = take_pointer(&fields);
	pid = take32(&fields);
	flags = take32(&fields);
	if (fields.cursor.bad || slot.size == 0 || slot.address > UINT64_MAX - slot.size) {
		etl->left_out++;
		return;
	}
	slot.process = etl_system_find(etl->system, pid, event->time);
	// The low twelve bits of the flags are what was asked for, and are told by the kind of
	// event.
	slot.flags = ETL_PUT_PRIVATE | (flags & ~0xfffu);
	slot.protection = flags & MEM_COMMIT ? ETL_PUT_READ_WRITE | TRACE_PROTECTION_COMMITTED : 0;
	if (event->opcode == VIRTUAL_WAS_THERE) {
		// A region that was there is reserved as a whole and committed in part: two events,
		// the second for as many bytes from its beginning.
		committed = take_pointer(&fields);
		if (fields.cursor.bad || committed > slot.size)
			committed = 0;
		etl->partly += committed > 0 && committed < slot.size;
		slot.kind = TRACE_MAPPED;
		slot.protection = 0;
		add_slot(etl, &slot);
		slot.size = committed;
		slot.protection = ETL_PUT_READ_WRITE | TRACE_PROTECTION_COMMITTED;
		if (committed)
			add_slot(etl, &slot);
		return;
	}
	if (event->opcode == VIRTUAL_FREE) {
		slot.kind = flags & MEM_RELEASE ? TRACE_MUNMAP : TRACE_MPROTECT;
		slot.protection = 0;
	} else if (flags & (MEM_RESERVE | MEM_COMMIT)) {
		slot.kind = flags & MEM_RESERVE ? TRACE_MMAP : TRACE_MPROTECT;
	} else {
		etl->left_out++;
		return;
	}
	add_slot(etl, &slot);
}

// False: the call came to nothing, or is told by other events. A block that moved has an event for
// its new place and one for its old place besides.
static bool read_heap_call(struct etl *etl, uint8_t opcode, struct fields *fields,
			   struct etl_slot *slot)
{
	switch (opcode) {
	case HEAP_CREATE:
		slot->flags = take32(fields);
		return true;
	case HEAP_ALLOC:
		slot->kind = TRACE_MALLOC;
		slot->size = take_pointer(fields);
		slot->address = take_pointer(fields);
		// No address was given: the call failed.
		if (!slot->address)
			slot->kind = TRACE_FAILED;
		return true;
	case HEAP_REALLOC:
		slot->kind = TRACE_REALLOC;
		slot->address = take_pointer(fields);
		slot->old_address = take_pointer(fields);
		slot->size = take_pointer(fields);
		// A block that moved is told by a HEAP_ALLOC and a HEAP_FREE of its own as well.
		etl->moved += slot->address != slot->old_address;
		return slot->address == slot->old_address && slot->address;
	case HEAP_DESTROY:
		slot->kind = TRACE_HEAP_DESTROY;
		return true;
	case HEAP_FREE:
		slot->kind = TRACE_FREE;
		slot->address = take_pointer(fields);
		return slot->address != 0;
	default:
		etl->left_out++;
		return false;
	}
}

// Events of heaps have a pid in their header as a rule; else it is that of the thread.
static void add_heap(struct etl *etl, const struct etl_event *event)
{
	struct fields fields = fields_of(event);
	struct etl_slot slot = { .time = event->time, .thread = thread_of(etl, event) };
	uint64_t *process;
	uint32_t pid = event->process;

	slot.handle = take_pointer(&fields);
	if (!read_heap_call(etl, event->opcode, &fields, &slot))
		return;
	if (pid == ETL_UNKNOWN) {
		process = map_find(&etl->thread_pid, slot.thread);
		pid = process ? (uint32_t)*process : ETL_UNKNOWN;
	}
	if (fields.cursor.bad) {
		etl->left_out++;
		return;
	}
	slot.process = etl_system_find(etl->system, pid, event->time);
	add_slot(etl, &slot);
}

// Which thread runs on a processor, and whose it is. A switch names the new thread first; a start
// names its process and then itself.
static void follow_thread(struct etl *etl, const struct etl_event *event)
{
	struct fields fields = fields_of(event);
	uint32_t first = take32(&fields), second = take32(&fields);

	if (fields.cursor.bad)
		return;
	if (event->opcode == SWITCH) {
		// Processors are few, and 0 is one of which no switch was seen.
		while (etl->running_count <= event->cpu) {
			*MEM_ADD(etl->running, etl->running_count, etl->running_capacity) = 0;
		}
		etl->running[event->cpu] = first + 1;
	} else if (event->opcode >= THREAD_START && event->opcode <= THREAD_IS_THERE) {
		*map_put(&etl->thread_pid, second, NULL) = first;
	}
}

// An exit goes through the ring like an event of memory, so that it stays behind those before it.
static void follow_process(struct etl *etl, const struct etl_event *event)
{
	struct fields fields = fields_of(event);
	struct etl_slot slot = { .time = event->time,
				 .kind = ETL_PUT_EXIT,
				 .thread = UINT32_MAX - 1 };
	uint32_t pid;

	if (etl_system_reloads(etl->system, event, &pid)) {
		etl_put_reload(&etl->put, etl_system_find(etl->system, pid, event->time));
		return;
	}
	if (event->group != ETL_PROCESS || event->opcode != PROCESS_END || event->version < 1)
		return;
	take_pointer(&fields);
	pid = take32(&fields);
	slot.process = etl_system_find(etl->system, pid, event->time);
	if (!fields.cursor.bad)
		add_slot(etl, &slot);
}

static void take_event(struct etl *etl, const struct etl_event *event)
{
	switch (event->group) {
	case ETL_MEMORY:
		if (event->opcode == VIRTUAL_ALLOC || event->opcode == VIRTUAL_FREE ||
		    event->opcode == VIRTUAL_WAS_THERE)
			add_virtual(etl, event);
		break;
	case ETL_HEAP:
		add_heap(etl, event);
		break;
	case ETL_STACK:
		add_stack(etl, event);
		break;
	case ETL_THREAD:
		follow_thread(etl, event);
		break;
	case ETL_PROCESS:
	case ETL_IMAGE:
		follow_process(etl, event);
		break;
	}
}

// An event is written when it has waited for two seconds of the log, or when the ring is full.
static bool follow(struct etl *etl)
{
	uint64_t wait = SECONDS_MAX * etl_file_header(etl->file)->frequency, count = 0;
	struct etl_event event;

	ASSERT(!etl->ring);
	etl->ring = mem_alloc(EVENTS_MAX, sizeof *etl->ring);
	etl->heads = mem_alloc(EVENTS_MAX, sizeof *etl->heads);
	etl_file_rewind(etl->file);
	while (etl_file_next(etl->file, &event)) {
		if (count++ % EVENTS_PER_LOOK == 0 && was_stopped(etl, true))
			return false;
		// The second comparison: a difference of unsigned numbers is large where an event
		// is older than the one that waits.
		while (etl->first < etl->next &&
		       event.time - etl->ring[etl->first % EVENTS_MAX].time > wait &&
		       event.time > etl->ring[etl->first % EVENTS_MAX].time)
			put_oldest(etl);
		take_event(etl, &event);
	}
	while (etl->first < etl->next)
		put_oldest(etl);
	return true;
}

// ---- the whole ----

// What was left out or assumed, in words for the user; nothing where there is nothing to say.
static void remark(struct etl *etl)
{
	struct str *remarks = etl->work->remarks;
	struct etl_stacks_counts stacks = etl_stacks_count(etl->stacks);

	if (etl->put.stackless)
		str_format(remarks, "%s of %s events have no stack in it\n",
			   STR_COUNT(etl->put.stackless), STR_COUNT(etl->put.written));
	if (stacks.unresolved)
		str_format(remarks, "%s of %s references to stacks have no definition\n",
			   STR_COUNT(stacks.unresolved), STR_COUNT(stacks.references));
	if (etl->moved)
		str_format(remarks,
			   "%s blocks that HeapReAlloc moved count as a free and an allocation, as "
			   "which they are recorded too\n",
			   STR_COUNT(etl->moved));
	if (etl->partly)
		str_format(remarks,
			   "%s regions were partly committed before the log began: which part is "
			   "not said, and their beginning is taken\n",
			   STR_COUNT(etl->partly));
	if (etl->left_out)
		str_format(remarks,
			   "%s events on heaps' own regions and states, and of calls that change "
			   "nothing, are left out\n",
			   STR_COUNT(etl->left_out));
	if (etl_file_header(etl->file)->damaged)
		str_format(remarks, "%s buffers are damaged: the rest of each is left out\n",
			   STR_COUNT(etl_file_header(etl->file)->damaged));
	if (etl_file_header(etl->file)->cut) {
		str_format(remarks,
			   "the log is cut: its buffers end at byte %" PRIu64
			   ", and what is before counts\n",
			   etl_file_header(etl->file)->end);
		etl->work->cut = true;
	}
}

static void lose(struct etl *etl)
{
	const struct etl_header *header = etl_file_header(etl->file);

	if (header->events_lost)
		intake_lose(etl->intake, header->events_lost, "Windows lost them");
	if (header->buffers_lost)
		intake_lose(etl->intake, header->buffers_lost, "Windows lost buffers of events");
}

// All that the log has is said, since the user has to find out which events to record.
static bool nothing_there(struct etl *etl, struct err *err)
{
	struct etl_stacks_counts stacks = etl_stacks_count(etl->stacks);

	return err_set(
		err, ERR_FORMAT,
		"there is no VirtualAlloc or heap event in it, but %s events of other kinds, "
		"%s stacks (%s by key, %s of them without a definition; %s of %s keys are used "
		"again), %s processes, %s images (%s with an RSDS)%s (try: wpr -start "
		"VirtualAllocation, or -start Heap)",
		STR_COUNT(etl->events), STR_COUNT(etl->walks), STR_COUNT(etl->keyed),
		STR_COUNT(stacks.unresolved), STR_COUNT(stacks.recycled), STR_COUNT(stacks.keys),
		STR_COUNT(etl_system_processes(etl->system)),
		STR_COUNT(etl_system_images(etl->system)), STR_COUNT(etl_system_named(etl->system)),
		etl_file_header(etl->file)->damaged ? ", and damaged buffers" : "");
}

static void describe(struct etl *etl)
{
	const struct etl_header *header = etl_file_header(etl->file);
	struct trace_info *info = intake_info(etl->intake);
	struct str host = { 0 };

	str_format(&host, "Windows (build %" PRIu32 "), %" PRIu32 " processors", header->build,
		   header->processors);
	info->host = str_take(&host);
	info->command = mem_copy_text("");
	info->began_unix_ns = header->began_unix_ns;
	info->tick_ns = header->tick_ns > 1 ? header->tick_ns : 0;
	intake_lacks(etl->intake, "layouts");
	if (!etl->walks)
		intake_lacks(etl->intake, "no-stacks");
}

// The first pass has to end before the trace is described: only then it is known whether there are
// stacks.
static bool read_log(struct etl *etl, struct err *err)
{
	if (!learn(etl))
		return true;
	if (!etl_file_ok(etl->file, err))
		return false;
	if (etl->memory_events == 0)
		return nothing_there(etl, err);
	etl->put = (struct etl_put){ .intake = etl->intake,
				     .file = etl->file,
				     .stacks = etl->stacks,
				     .system = etl->system };
	describe(etl);
	if (!follow(etl))
		return true;
	lose(etl);
	remark(etl);
	etl->work->read = etl_file_header(etl->file)->end;
	return etl_file_ok(etl->file, err);
}

// All of the input as a file of its own: what is packed or comes through a pipe cannot be read
// twice.
static bool spool(struct import_work *work, int fd, struct err *err)
{
	const uint8_t *bytes;
	size_t count;

	while ((count = source_some(work->source, &bytes)) > 0)
		if (!file_write_all(fd, bytes, count, err))
			return false;
	return source_ok(work->source, err);
}

// The input's own descriptor, where it can be read anywhere and is not packed; -1: it is not so.
// The file's first bytes have to be those of the unpacked source: a packed file is another one.
static int plain_file(struct import_work *work)
{
	uint8_t begin[BUFSIZ > 512 ? 512 : BUFSIZ];
	int fd = fileno(work->options->inputs[0].file);
	size_t length;
	const char *head = source_head(work->source, &length);
	ptrdiff_t count;
	uint64_t size;

	// Standard input may be a file, too (tidemark import - < x.etl).
	if (fd < 0 || !file_is_regular(fd, &size))
		return -1;
	count = file_read_at(fd, begin, sizeof begin, 0);
	return count >= 0 && (size_t)count <= length && memcmp(begin, head, (size_t)count) == 0
		       ? fd
		       : -1;
}

static void fini(struct etl *etl)
{
	etl_file_close(etl->file);
	etl_stacks_free(etl->stacks);
	etl_system_free(etl->system);
	etl_put_fini(&etl->put);
	MEM_FREE(etl->ring, etl->heads, etl->running);
	map_fini(&etl->thread_pid);
}

static bool is_etl(const char *head, size_t length)
{
	return etl_file_is((const uint8_t *)head, length);
}

// A file of its own is made where the input is packed or a pipe, and removed with its descriptor.
static bool read_etl(struct import_work *work, struct err *err)
{
	struct etl etl = { .work = work, .intake = work->intake };
	int own = plain_file(work), fd = own >= 0 ? own : file_temp(err);
	bool ok = fd >= 0 && (fd == own || spool(work, fd, err));

	if (ok)
		etl.file = etl_file_open(fd, err);
	etl.stacks = etl_stacks_new();
	etl.system = etl_system_new();
	ok = ok && etl.file && read_log(&etl, err);
	fini(&etl);
	if (fd >= 0 && fd != own)
		file_close(fd);
	return ok;
}

const struct import_format import_etl = {
	.name = "etl",
	.is = is_etl,
	.read = read_etl,
};
