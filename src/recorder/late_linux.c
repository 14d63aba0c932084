// Code of other threads may run while the recorder starts, so what it would change is only listed
// here: place, length, the bytes before and after. The launcher stops all threads, steps them out
// of these bytes, and writes. A place that is found again before that is listed once; of two
// libraries at one place, of which the first was unloaded, the later counts. At the end the list
// is gone through backwards by the launcher, with the bytes before.
//
// Our variables are copied as they were loaded, before anything is set: that copy is put back when
// a recording ends, so that the next one begins as the first did.
#include "recorder/late_linux.h"

#include "recorder/dtv_linux.h"
#include "recorder/elf.h"
#include "recorder/enter_linux.h"
#include "recorder/interpreters_linux.h"
#include "recorder/kernel.h"
#include "recorder/lane.h"
#include "recorder/python.h"
#include "recorder/recording.h"
#include "recorder/scope_linux.h"
#include "recorder/static_linux.h"
#include "recorder/text.h"
#include "recorder/vm.h"
#include "recorder/vm_write_linux.h"
#include "wire/attach.h"

enum { LATE_OPEN_MAX = 32, LATE_WHOLE_BYTES = 2 << 20 };

extern const char __ehdr_start[] HIDDEN;

EXPORT void tidemark_late_v1(struct attach_call *call);

// What outlasts a recording.
struct late_kept {
	uint8_t *pristine; // a copy of our initialised variables as they were loaded
	bool forks;        // libc tells of forks
	bool alone;        // the program is linked statically
};

static struct late_kept late_kept;
static char late_session_name[ATTACH_SESSION_BYTES];
static struct attach_patch late_patches[ATTACH_PATCHES_MAX];
static uint32_t late_count;
static bool late_begins; // other threads run, and may be there
static struct attach_range late_code[ATTACH_PAGES_MAX];
static uint32_t late_code_count;

// Asked once, as it looks names up. In a static program it is always so.
bool late_is(void)
{
	static uint8_t known; // 1: no, 2: yes

	if (late_kept.alone)
		return true;
	if (unlikely(!known))
		known = scope_is_late() ? 2 : 1;
	return known == 2;
}

const char *late_session(void)
{
	return late_session_name[0] ? late_session_name : NULL;
}

bool late_waits(void)
{
	return late_begins;
}

// Pages with code of ours (thunks, trampolines): threads may be in there, so that a detach has to
// know them all.
void late_pages(const void *start, size_t bytes, bool gone)
{
	for (uint32_t i = 0; gone && i < late_code_count; i++) {
		if (late_code[i].start == (uintptr_t)start)
			late_code[i] = late_code[--late_code_count];
	}
	if (!gone && late_code_count < ATTACH_PAGES_MAX)
		late_code[late_code_count++] =
			(struct attach_range){ (uintptr_t)start, (uintptr_t)start + bytes };
}

// False: it cannot be listed. What is listed is `before` and `after`, so that the launcher can also
// put it back.
static bool late_list(uint8_t *at, const uint8_t *bytes, size_t length)
{
	struct attach_patch *patch = &late_patches[late_count];

	for (uint32_t i = 0; i < late_count; i++)
		if (late_patches[i].at == (uintptr_t)at) {
			if (late_begins)
				return true;      // found again, since it is not yet written
			patch = &late_patches[i]; // another library's, at the same place
			late_count--;
			break;
		}
	if (late_count == ATTACH_PATCHES_MAX || length > ATTACH_PATCH_BYTES)
		return false;
	patch->at = (uintptr_t)at;
	patch->length = (uint32_t)length;
	memcpy(patch->before, at, length);
	memcpy(patch->after, bytes, length);
	late_count++;
	return true;
}

// `page` and `end` are multiples of a page. False: the system does not allow it.
static bool late_protect(uintptr_t page, uintptr_t end, bool writable)
{
	return !kernel_failed(
		kernel(__NR_mprotect, page, end - page,
		       KERNEL_PROT_READ | KERNEL_PROT_EXEC | (writable ? KERNEL_PROT_WRITE : 0)));
}

struct late_range {
	uintptr_t start, end;
};

// Code that is writable, while many places are changed.
static struct {
	bool many;
	uint32_t count;
	struct late_range ranges[LATE_OPEN_MAX];
} late_open;

// All of a small library's code is made writable at once: a page of it would stay a mapping of its
// own ever after, and each fork copies all mappings.
static struct late_range late_range_around(uintptr_t page)
{
	for (const struct scope_object *object = scope_objects(); object; object = object->next) {
		uint16_t count = 0;
		const struct elf_program *program = scope_programs(object, &count);

		for (uint16_t i = 0; program && i < count; i++) {
			uintptr_t start = object->bias + program[i].address;
			uintptr_t end = start + program[i].memory_size + KERNEL_PAGE - 1;

			start &= ~(uintptr_t)(KERNEL_PAGE - 1);
			end &= ~(uintptr_t)(KERNEL_PAGE - 1);
			if (program[i].type == ELF_LOAD && (program[i].flags & ELF_EXECUTABLE) &&
			    page >= start && page < end && end - start <= LATE_WHOLE_BYTES)
				return (struct late_range){ start, end };
		}
	}
	return (struct late_range){ page, page + KERNEL_PAGE };
}

// Whether the page at `page` is writable already, or stays so from here on.
//
// If all of the library cannot be made writable, one page is tried.
static bool late_is_open(uintptr_t page)
{
	struct late_range range;

	for (uint32_t i = 0; i < late_open.count; i++) {
		if (page >= late_open.ranges[i].start && page < late_open.ranges[i].end)
			return true;
	}
	if (!late_open.many || late_open.count == LATE_OPEN_MAX)
		return false;
	range = late_range_around(page);
	if (!late_protect(range.start, range.end, true)) {
		range = (struct late_range){ page, page + KERNEL_PAGE };
		if (!late_protect(range.start, range.end, true))
			return false;
	}
	late_open.ranges[late_open.count++] = range;
	return true;
}

// Begin or end a time in which pages stay writable once they were written to: some hundred places
// are changed at the start, most of them in one library.
void late_write_many(bool many)
{
	late_open.many = many;
	while (!many && late_open.count > 0) {
		struct late_range range = late_open.ranges[--late_open.count];

		late_protect(range.start, range.end, false);
	}
}

// Change code. In a process that runs already it is listed before; while it begins, only listed.
// False: neither can be.
bool late_write(uint8_t *at, const uint8_t *bytes, size_t length)
{
	uintptr_t page = (uintptr_t)at & ~(uintptr_t)(KERNEL_PAGE - 1);
	uintptr_t end = ((uintptr_t)at + length + KERNEL_PAGE - 1) & ~(uintptr_t)(KERNEL_PAGE - 1);

	if (late_is() && (!late_list(at, bytes, length) || late_begins))
		return late_begins;
	if (end - page == KERNEL_PAGE && late_is_open(page)) {
		memcpy(at, bytes, length);
		return true;
	}
	late_write_many(false); // none of them is made read-only below our hands
	if (!late_protect(page, end, true))
		return false;
	memcpy(at, bytes, length);
	late_protect(page, end, false);
	return true;
}

// Our variables: initialised ones, and behind them those that began as 0. What the linker has made
// read-only is not among them.
struct late_data {
	uint8_t *start, *zeros, *end;
};

// There is one writable segment. RELRO is at its beginning, ends at a page, and is read-only by
// now.
static struct late_data late_find_data(void)
{
	const struct elf_header *elf = (const void *)__ehdr_start;
	const struct elf_program *program = (const void *)(__ehdr_start + elf->program_at);
	uintptr_t bias = (uintptr_t)__ehdr_start;
	uintptr_t fixed = 0;
	struct late_data data = { 0 };

	for (uint16_t i = 0; i < elf->program_count; i++) {
		uintptr_t at = bias + program[i].address;

		if (program[i].type == ELF_RELRO)
			fixed = (at + program[i].memory_size) & ~(uintptr_t)(KERNEL_PAGE - 1);
		if (program[i].type != ELF_LOAD || !(program[i].flags & ELF_WRITABLE))
			continue;
		data.start = (uint8_t *)at;
		data.zeros = (uint8_t *)at + program[i].file_size;
		data.end = (uint8_t *)at + program[i].memory_size;
	}
	if (fixed > (uintptr_t)data.start)
		data.start = (uint8_t *)fixed;
	return data;
}

// Only initialised variables are copied; the others began as zeros and are made so again.
static bool late_keep_pristine(void)
{
	struct late_data data = late_find_data();

	if (late_kept.pristine)
		return true;
	late_kept.pristine = kernel_pages((size_t)(data.zeros - data.start));
	if (late_kept.pristine)
		memcpy(late_kept.pristine, data.start, (size_t)(data.zeros - data.start));
	return late_kept.pristine;
}

// All that was learnt is forgotten. No thread is in here, and none comes in.
//
// What outlasts it is in late_kept, which is copied over the reset. The order: what was put into
// the program's memory first, then our mappings, then the variables by which both are known.
static void late_reset(void)
{
	struct late_data data = late_find_data();
	struct late_kept kept = late_kept;

	python_leave();
	static_forget();
	recording_unmap();
	memcpy(data.start, kept.pristine, (size_t)(data.zeros - data.start));
	memset(data.zeros, 0, (size_t)(data.end - data.zeros));
	late_kept = kept;
}

// What the launcher has to know, filled into its own struct, which is in memory of this process:
// where our code is, what is to be patched, and where the words are that it looks at later.
static void late_answer(struct attach_call *call)
{
	const struct elf_header *elf = (const void *)__ehdr_start;
	const struct elf_program *program = (const void *)(__ehdr_start + elf->program_at);

	for (uint16_t i = 0; i < elf->program_count; i++) {
		uintptr_t at = (uintptr_t)__ehdr_start + program[i].address;

		if (program[i].type == ELF_LOAD && (program[i].flags & ELF_EXECUTABLE))
			call->text = (struct attach_range){ at, at + program[i].memory_size };
	}
	memcpy(call->session, late_session_name, sizeof(call->session));
	call->patches = (uintptr_t)late_patches;
	call->patches_count = late_count;
	call->pages_count = late_code_count;
	memcpy(call->pages, late_code, sizeof(late_code));
	call->lane_object = dtv_find(&lane_mine, &call->lane_at);
	call->nobody = (uintptr_t)lane_nobody_words;
	call->session_at = (uintptr_t)late_session_name;
	call->waits_at = recording_state ? (uintptr_t)&recording_state->waits : 0;
	call->entered = enter_functions();
}

// What was mapped before may be right above our zeros: the kernel lists both as one.
static void late_own_zeros(void)
{
	struct late_data data = late_find_data();
	uintptr_t start = (uintptr_t)data.zeros + KERNEL_PAGE - 1;
	uintptr_t end = (uintptr_t)data.end + KERNEL_PAGE - 1;

	start &= ~(uintptr_t)(KERNEL_PAGE - 1);
	end &= ~(uintptr_t)(KERNEL_PAGE - 1);
	if (end > start)
		vm_own((const void *)start, end - start, false);
}

// While `late_begins` is set, late_write only lists what is to be changed.
static uint32_t late_start(struct attach_call *call)
{
	if (late_session())
		return ATTACH_RUNS;
	if (!dtv_has(&lane_mine))
		return ATTACH_NO_ROOM;
	if (!late_keep_pristine()) {
		call->error = 12; // ENOMEM
		return ATTACH_FAILED;
	}
	memcpy(late_session_name, call->session, sizeof(late_session_name));
	late_session_name[sizeof(late_session_name) - 1] = 0;
	late_begins = true;
	late_kept.alone = call->alone;
	if ((late_kept.alone && !static_find_program()) || !recording_begin()) {
		recording_tell_why(&call->why, &call->error);
		late_reset();
		return ATTACH_FAILED;
	}
	late_begins = false;
	late_own_zeros();
	if (late_kept.alone) // forks are seen where they are made (static_enter)
		static_fill_places();
	else if (!late_kept.forks)
		late_kept.forks = recording_watch_forks();
	return ATTACH_DONE;
}

// A thread that is in the midst of an event has a busy lane. (One that was killed there has not.)
static bool late_is_busy(void)
{
	const struct recording_state *state = recording_state;

	for (uint32_t id = 1; state && id < state->lanes_count; id++) {
		const struct lane *lane = state->lanes[id];

		if (lane && lane->tid && (!lane->limit || lane->between) &&
		    kernel_thread_lives(state->pid, lane->tid))
			return true;
	}
	return false;
}

// The clock stops, as at the end of any recording. A hook looks at it after the real malloc and
// before the real free, so that what is recorded is what was before one moment.
//
// For example t2 is in the real malloc, t3 finds the clock stopped and frees 0x1000, and t2 is
// given that: t2 finds the clock stopped, too. Recorded, it would have been given out twice.
static uint32_t late_end(void)
{
	if (!late_session() || !recording_state || !recording_state->clock)
		return ATTACH_IDLE;
	__atomic_store_n(&recording_state->clock->now_ns, SEGMENT_CLOCK_STOP, __ATOMIC_RELEASE);
	return ATTACH_DONE;
}

static uint32_t late_stop(void)
{
	if (!late_session())
		return ATTACH_IDLE;
	if (late_is_busy())
		return ATTACH_BUSY;
	late_reset();
	return ATTACH_DONE;
}

// The first lane has what was mapped before (vm_begin). Without it nothing would be known of the
// memory of a program that waits, nor what runs it.
//
// The stack that it runs on is in the list, and unmapped when it returns: it is none of the
// program's memory.
static uint32_t late_list_mappings(const struct attach_call *call)
{
	const void *stack = (const void *)((uintptr_t)call & ~(uintptr_t)(KERNEL_PAGE - 1));
	struct vm_write_door door;

	if (!late_session())
		return ATTACH_IDLE;
	vm_own(stack, ATTACH_STACK_BYTES, false);
	door = vm_write_enter();
	vm_write_leave(&door);
	interpreters_meet_all();
	vm_own(stack, ATTACH_STACK_BYTES, true);
	return ATTACH_DONE;
}

// Called by the launcher, in a thread of the process. `call` is its struct, in this process's
// memory: the verb comes in it, and `status` is the answer.
void tidemark_late_v1(struct attach_call *call)
{
	if (call->magic != ATTACH_MAGIC || call->version != SEGMENT_VERSION) {
		call->status = ATTACH_OTHER;
		return;
	}
	if (call->verb == ATTACH_ENTER) {
		static_begin(call);
		return;
	}
	if (call->alone ? static_is() && !late_kept.alone : !late_is()) {
		call->status = ATTACH_PRELOAD;
		return;
	}
	switch (call->verb) {
	case ATTACH_START:
		call->status = late_start(call);
		break;
	case ATTACH_STOP:
		call->status = late_stop();
		break;
	case ATTACH_END:
		call->status = late_end();
		break;
	case ATTACH_LIST:
		call->status = late_list_mappings(call);
		break;
	default:
		call->status = late_session() ? ATTACH_DONE : ATTACH_IDLE;
		break;
	}
	late_answer(call);
}
