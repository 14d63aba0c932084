// A call is two bytes (what, kind), a set of the fields that are not 0 as one varint, and these
// fields as varints in the order of the enum. Steps, events and times rise and are differences to
// the call before; addresses jump both ways and are differences in zigzag. For example a munmap of
// 4096 bytes at 0x7f0000003000, 10 steps and 10 events after a call at 0x7f0000001000 and 1,000 ns
// later, by thread 0 with stack 300:
//
//     what, kind                                     2 bytes
//     { STEP EVENTS TIME ADDRESS SIZE STACK } = 175  2
//     10  10  1000  16384  4096  300                 1 + 1 + 2 + 3 + 2 + 2
//
// 15 bytes in all. The numbers of the fields are in files: new ones go to the end.
#include "engine/space/vm_calls.h"

#include "base/mem.h"
#include "engine/index/index_bits.h"

enum {
	STEP,
	EVENTS,
	TIME,
	ADDRESS,
	OLD_ADDRESS,
	SIZE,
	THREAD,
	STACK,
	HEAP,
	FLAGS,
	ALIGN,
	OLD_SIZE,
	OFFSET,
	PROTECTION,
	VM_FLAGS,
	VM_FILE,
	VM_ERROR,
	ORIGIN,
	PROCESS,
	VALUE,
	FIELDS
};

// A byte each for what and kind, the set of fields that are not 0, and these.
enum { BYTES_MAX = VM_CALLS_BYTES_MAX };
_Static_assert(2 + 10 + (int)FIELDS * 10 <= (int)BYTES_MAX, "a call has room");

// A note has no address and no event: only process, thread and value. A claim has no time of its
// own.
static void take_apart(const struct vm_call *call, const struct vm_calls_last *last,
		       uint64_t fields[static FIELDS])
{
	const struct trace_event *event = &call->event;
	uint64_t time_ns = call->what == VM_CALL_NOTE ? call->note.time_ns : event->time_ns;

	fields[STEP] = call->step - last->step;
	fields[EVENTS] = call->events - last->events;
	fields[TIME] = call->what == VM_CALL_CLAIM ? 0 : time_ns - last->time_ns;
	fields[PROCESS] = call->process;
	if (call->what == VM_CALL_NOTE) {
		fields[PROCESS] = call->note.process;
		fields[THREAD] = call->note.thread;
		fields[VALUE] = call->note.value;
		return;
	}
	fields[ADDRESS] = bits_zigzag(event->address - last->address);
	fields[OLD_ADDRESS] = event->old_address;
	fields[SIZE] = event->size;
	fields[THREAD] = event->thread;
	fields[STACK] = event->stack;
	fields[HEAP] = event->heap;
	fields[FLAGS] = event->flags;
	fields[ALIGN] = event->align_log2;
	fields[OLD_SIZE] = call->vm.old_size;
	fields[OFFSET] = call->vm.offset;
	fields[PROTECTION] = call->vm.protection;
	fields[VM_FLAGS] = call->vm.flags;
	fields[VM_FILE] = call->vm.file;
	fields[VM_ERROR] = call->vm.error;
	fields[ORIGIN] = call->vm.origin;
}

// What take_apart has subtracted is what the next call is held against. Both sides do this.
static void remember(struct vm_calls_last *last, const struct vm_call *call)
{
	last->step = call->step;
	last->events = call->events;
	if (call->what != VM_CALL_CLAIM)
		last->time_ns = call->what == VM_CALL_NOTE ? call->note.time_ns
							   : call->event.time_ns;
	if (call->what != VM_CALL_NOTE)
		last->address = call->event.address;
}

// A byte for what it is, one for its kind, a mask of the fields that are not 0 after the last call
// was taken away, and these fields: most calls of a program differ little from the one before.
void vm_calls_put(struct vault *calls, struct vm_calls_last *last, const struct vm_call *call)
{
	uint64_t fields[FIELDS] = { 0 }, set = 0;
	uint8_t out[BYTES_MAX], *at = out;

	ASSERT(call->what <= VM_CALL_NOTE);
	take_apart(call, last, fields);
	for (unsigned i = 0; i < FIELDS; i++)
		set |= (uint64_t)(fields[i] != 0) << i;
	*at++ = call->what;
	*at++ = call->what == VM_CALL_NOTE ? call->note.kind : call->event.kind;
	at += bits_put_varint(at, set);
	for (unsigned i = 0; i < FIELDS; i++)
		if (fields[i])
			at += bits_put_varint(at, fields[i]);
	vault_append(calls, out, (size_t)(at - out));
	remember(last, call);
}

// The bytes come from a file. A varint that runs past the end leaves *at past `end`, so one look
// after all of them is enough; bits of the set that no field has, or a call of a kind that is
// unknown, are damage.
bool vm_calls_next(const uint8_t **at, const uint8_t *end, struct vm_calls_last *last,
		   struct vm_call *call)
{
	uint64_t fields[FIELDS] = { 0 }, set;
	uint8_t kind;

	if (end - *at < 3)
		return false;
	*call = (struct vm_call){ .what = *(*at)++, .note.text = "" };
	kind = *(*at)++;
	set = bits_take_varint(at, end);
	for (unsigned i = 0; i < FIELDS; i++)
		if (set >> i & 1)
			fields[i] = bits_take_varint(at, end);
	if (*at > end || set >> FIELDS || call->what > VM_CALL_NOTE)
		return false;
	call->step = last->step + fields[STEP];
	call->events = last->events + fields[EVENTS];
	call->process = (process_id)fields[PROCESS];
	call->note.kind = kind;
	call->note.process = call->process;
	call->note.thread = (thread_id)fields[THREAD];
	call->note.value = fields[VALUE];
	call->note.time_ns = last->time_ns + fields[TIME];
	call->event = (struct trace_event){
		.number = call->events,
		.time_ns = call->note.time_ns,
		.address = last->address + bits_unzigzag(fields[ADDRESS]),
		.old_address = fields[OLD_ADDRESS],
		.size = fields[SIZE],
		.thread = (thread_id)fields[THREAD],
		.stack = (stack_id)fields[STACK],
		.heap = (heap_id)fields[HEAP],
		.flags = (uint32_t)fields[FLAGS],
		.kind = kind,
		.align_log2 = (uint8_t)fields[ALIGN],
	};
	call->vm = (struct trace_vm){
		.old_size = fields[OLD_SIZE],
		.offset = fields[OFFSET],
		.protection = (uint32_t)fields[PROTECTION],
		.flags = (uint32_t)fields[VM_FLAGS],
		.file = (file_id)fields[VM_FILE],
		.error = (uint32_t)fields[VM_ERROR],
		.origin = (uint8_t)fields[ORIGIN],
	};
	if (trace_kind_is_vm(kind))
		call->event.vm = &call->vm;
	remember(last, call);
	return true;
}

bool vm_calls_fit(const struct vm_call *call, const struct reader *reader)
{
	const struct trace_thread *thread = reader_thread(reader, call->event.thread);

	return thread && thread->process < reader_processes_count(reader) &&
	       call->event.stack < reader_stacks_count(reader) &&
	       call->event.heap < reader_heaps_count(reader) &&
	       call->vm.file < reader_files_count(reader);
}
