// The log has pids, base addresses and pointers; a trace has ids. Each is defined when it is first
// needed, and kept in a map. A process may have several address spaces one after the other (images
// are loaded anew), so frames are known by space and address. A command line becomes words as a
// shell of Windows has it: for example
//
//     "C:\a b\x.exe" -q    is the words  C:\a b\x.exe  and  -q
//
// since blanks part words but within quotes, which are left out.
#include "import/etl_put.h"

#include "base/index_set.h"
#include "base/mem.h"
#include "import/spans.h"

#include <string.h>

enum { FRAMES_MAX = 1 << 13 };

// What the trace knows of a process of the log.
// `reserved` are the addresses that are known to be reserved, so that memory which is committed
// without having been reserved in the log gets a reservation first.
struct etl_owner {
	bool defined;
	process_id id;
	uint32_t space;
	struct spans reserved;
};

void etl_put_fini(struct etl_put *put)
{
	for (size_t i = 0; i < put->owners_count; i++)
		spans_fini(&put->owners[i].reserved);
	mem_free(put->owners);
	MAP_FINI(&put->by_pid, &put->threads, &put->heaps, &put->modules, &put->frames,
		 &put->stack_ids);
}

// ---- what the trace defines ----

// Owners are in the order of the processes of etl_system, and made when the first of them is asked
// for.
static struct etl_owner *owner_of(struct etl_put *put, uint32_t process)
{
	while (put->owners_count <= process) {
		*MEM_ADD(put->owners, put->owners_count, put->owners_capacity) =
			(struct etl_owner){ .space = ++put->spaces };
	}
	ASSERT(process < put->owners_count);
	return &put->owners[process];
}

uint32_t etl_put_space(struct etl_put *put, uint32_t process)
{
	return owner_of(put, process)->space;
}

void etl_put_reload(struct etl_put *put, uint32_t process)
{
	owner_of(put, process)->space = ++put->spaces;
}

// A command line as words: blanks part them, but within quotes. The words are parts of `line`.
// `line` is changed: words are moved to close the gaps of the quotes. Words beyond `max` are left
// out.
static uint32_t split_words(char *line, char **words, uint32_t max)
{
	uint32_t count = 0;
	bool quoted = false, within = false;
	char *to = line;

	for (; *line; line++) {
		if (*line == '"') {
			quoted = !quoted;
		} else if (!quoted && (*line == ' ' || *line == '\t')) {
			if (within)
				*to++ = '\0';
			within = false;
			continue;
		}
		if (!within && count < max)
			words[count++] = to;
		within = true;
		if (*line != '"')
			*to++ = *line;
	}
	ASSERT(count <= max && to <= line);
	*to = '\0';
	return count;
}

// A parent is the process with that pid that was defined last; one that is not in the trace is
// none.
static process_id define_process(struct etl_put *put, uint32_t number)
{
	const struct etl_process *process = etl_system_process(put->system, number);
	struct etl_owner *owner = owner_of(put, number);
	uint64_t *parent;
	char *words[64], *line;
	struct trace_process told = {
		.parent = TRACE_NONE,
		.pid = process->pid,
		.start = TRACE_START_EXEC,
		.bits = (uint8_t)(8 * etl_file_header(put->file)->pointer_bytes),
		.began_ns = etl_file_ns(put->file, process->began),
		.exe = process->name,
		.args = words,
	};

	if (owner->defined)
		return owner->id;
	line = mem_copy_text(process->command);
	told.args_count = split_words(line, words, sizeof words / sizeof *words);
	parent = map_find(&put->by_pid, process->parent);
	if (parent)
		told.parent = (process_id)*parent;
	owner->id = intake_put_process(put->intake, &told);
	owner->defined = true;
	*map_put(&put->by_pid, process->pid, NULL) = owner->id;
	mem_free(line);
	return owner->id;
}

// A thread that no event names is tid 0.
static thread_id define_thread(struct etl_put *put, process_id process, uint32_t tid)
{
	bool added;
	uint64_t *thread = map_put(&put->threads, (uint64_t)process << 32 | tid, &added);

	if (added)
		*thread = intake_put_thread(put->intake, process, tid == ETL_UNKNOWN ? 0 : tid);
	return (thread_id)*thread;
}

static uint64_t heap_key(process_id process, uint64_t handle)
{
	return index_set_hash((const uint64_t[]){ process, handle }, 2);
}

// A handle is used again when its heap was destroyed: HEAP_CREATE makes a new one.
static heap_id define_heap(struct etl_put *put, process_id process, const struct etl_slot *slot)
{
	bool added, created = slot->kind == ETL_PUT_HEAP_MADE;
	uint64_t *heap = map_put(&put->heaps, heap_key(process, slot->handle), &added);

	if (added || created)
		*heap = intake_put_heap(put->intake, &(struct trace_heap){
							     .process = process,
							     .handle = slot->handle,
							     .created = created,
							     .flags = created ? slot->flags : 0,
							     .name = "",
						     });
	return (heap_id)*heap;
}

// ---- stacks ----

bool etl_put_is_kernel(const struct etl_put *put, uint64_t address)
{
	return etl_file_header(put->file)->pointer_bytes == 4
		       ? address >> 31 & 1 && !(address >> 32)
		       : address >> 47 == 0x1ffff;
}

// An image of the kernel is defined once for each process whose stacks go through it.
static module_id define_module(struct etl_put *put, uint32_t process, uint32_t number)
{
	const struct etl_image *image = etl_system_image(put->system, number);
	bool added;
	uint64_t *module = map_put(&put->modules, (uint64_t)process << 32 | number, &added);
	struct trace_module told = {
		.process = owner_of(put, process)->id,
		.start = image->start,
		.end = image->end,
		.bias = image->start,
		.file_size = image->end - image->start,
		.file_mtime_ns = (uint64_t)image->linked * 1000000000,
		.build_id_length = image->build_id_length,
		.path = image->path,
	};

	if (!added)
		return (module_id)*module;
	memcpy(told.build_id, image->build_id, sizeof image->build_id);
	*module = intake_add_module(put->intake, &told);
	return (module_id)*module;
}

// A frame is a return address: one less lies within the call. Frames are kept by address space and
// node, so each is looked up once.
static frame_id frame_of(struct etl_put *put, const struct etl_slot *slot, uint32_t node,
			 uint32_t *callers)
{
	uint32_t pid = etl_system_process(put->system, slot->process)->pid, image;
	uint64_t pc = etl_stacks_frame(put->stacks, node, callers) - 1;
	module_id module = 0;
	bool added;
	uint64_t *frame = map_put(&put->frames, (uint64_t)slot->space << 32 | node, &added);

	if (!added)
		return (frame_id)*frame;
	if (etl_put_is_kernel(put, pc))
		pid = 0;
	image = etl_system_find_image(put->system, pid, pc, slot->time);
	if (image != UINT32_MAX)
		module = define_module(put, slot->process, image);
	*frame = intake_frame_address(put->intake, module, pc);
	return (frame_id)*frame;
}

// The node's frames, above those of `stack`.
// Nodes lead outwards, and stacks are made inwards: they are collected first.
static stack_id add_part(struct etl_put *put, const struct etl_slot *slot, uint32_t node,
			 stack_id stack)
{
	frame_id frames[FRAMES_MAX];
	size_t count = 0;

	while (node && count < FRAMES_MAX)
		frames[count++] = frame_of(put, slot, node, &node);
	ASSERT(count <= FRAMES_MAX);
	while (count > 0)
		stack = intake_stack(put->intake, stack, frames[--count]);
	return stack;
}

// The kernel's part is the inner one: it was entered from the user's.
static stack_id stack_of(struct etl_put *put, const struct etl_slot *slot)
{
	bool added;
	uint64_t *stack, key[2] = { (uint64_t)slot->space << 32 | slot->user, slot->kernel };
	stack_id made;

	if (!slot->user && !slot->kernel)
		return 0;
	stack = map_put(&put->stack_ids, index_set_hash(key, 2), &added);
	if (!added)
		return (stack_id)*stack;
	made = add_part(put, slot, slot->user, 0);
	made = add_part(put, slot, slot->kernel, made);
	*stack = made;
	return made;
}

// ---- events ----

// For example a log that begins late commits 64 KiB at A, of which the first 16 KiB are reserved in
// the log: the rest, 48 KiB from A + 16 KiB on, gets a MAPPED event before it, once.
static void put_vm(struct etl_put *put, struct trace_event *event, const struct etl_slot *slot)
{
	struct spans *reserved = &owner_of(put, slot->process)->reserved;
	uint64_t at = slot->address, end = slot->address + slot->size, gap;
	struct trace_vm vm = { .protection = slot->protection, .flags = slot->flags };

	ASSERT(at <= end);
	event->vm = &vm;
	if (slot->kind == TRACE_MUNMAP)
		spans_remove(reserved, at, end);
	else if (slot->kind != TRACE_MPROTECT)
		spans_add(reserved, at, end);
	// What is committed lies in memory that was reserved before the log began.
	if (slot->kind == TRACE_MPROTECT && slot->protection) {
		for (; (gap = spans_gap(reserved, &at, end)) != 0; at += gap) {
			struct trace_vm before = { .flags = ETL_PUT_PRIVATE };
			struct trace_event mapped = *event;

			mapped.kind = TRACE_MAPPED;
			mapped.address = at;
			mapped.size = gap;
			mapped.stack = 0;
			mapped.vm = &before;
			intake_event(put->intake, &mapped);
			spans_add(reserved, at, at + gap);
		}
	}
	intake_event(put->intake, event);
}

// A process that never did anything with memory is not in the trace, and its exit is not either.
static void put_exit(struct etl_put *put, const struct etl_slot *slot)
{
	struct etl_owner *owner = owner_of(put, slot->process);

	if (owner->defined)
		intake_exit(put->intake, owner->id, etl_file_ns(put->file, slot->time),
			    TRACE_EXIT_CODE,
			    (uint32_t)etl_system_process(put->system, slot->process)->exit);
	spans_fini(&owner->reserved);
}

// A heap that is made is a definition and no event: it has the number ETL_PUT_HEAP_MADE, 0.
void etl_put_slot(struct etl_put *put, const struct etl_slot *slot)
{
	struct trace_event event = {
		.kind = slot->kind,
		.time_ns = etl_file_ns(put->file, slot->time),
		.address = slot->address,
		.old_address = slot->old_address,
		.size = slot->size,
	};
	process_id process;

	if (slot->kind == ETL_PUT_EXIT) {
		put_exit(put, slot);
		return;
	}
	process = define_process(put, slot->process);
	event.thread = define_thread(put, process, slot->thread);
	event.stack = stack_of(put, slot);
	if (trace_kind_is_vm(slot->kind)) {
		put_vm(put, &event, slot);
	} else {
		event.heap = define_heap(put, process, slot);
		if (slot->kind)
			intake_event(put->intake, &event);
		if (slot->kind == TRACE_HEAP_DESTROY)
			map_remove(&put->heaps, heap_key(process, slot->handle));
	}
	put->written += slot->kind && slot->kind != TRACE_MAPPED;
	put->stackless += slot->kind && slot->kind != TRACE_MAPPED && !event.stack;
}
