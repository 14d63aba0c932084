// hook_process_win32: how a process begins others, how it ends, and what its threads are called.
#include "recorder/client.h"
#include "recorder/hook_win32.h"
#include "recorder/recording_win32.h"
#include "recorder/utf_win32.h"
#include "recorder/vm_win32.h"
#include "recorder/walk_win32.h"

enum {
	HOOK_PROCESS_ACCESS = 0x0002 | 0x0008 | 0x0010 | 0x0020 | 0x0040 | 0x0400 | 0x1000 |
			      0x100000, // threads, memory, handles, query, wait
	HOOK_THREAD_ACCESS = 0x0002 | 0x0008 | 0x0010 | 0x0040 | 0x100000,
	HOOK_ANSWER_NS = 1000000,
	HOOK_ANSWER_NAPS = 10000, // 10 s
	HOOK_TAKEN_NAPS = 60000,  // of what the collector is at
	HOOK_NAME_BYTES = 16,
};

// A place among the visits. NULL: there is none.
static struct visit *hook_take_visit(void)
{
	struct visit *visits = recording_visits();

	for (uint32_t i = 0; visits && i < INVITE_VISITS_MAX; i++) {
		uint32_t nobody = VISIT_FREE;

		if (__atomic_compare_exchange_n(&visits[i].state, &nobody, VISIT_HELD, false,
						__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return &visits[i];
	}
	return NULL;
}

// Until it is answered, or so many naps are over in all. Returns its state then.
static uint32_t hook_await_visit(const struct visit *visit, uint32_t *naps, uint32_t naps_max)
{
	uint32_t state;

	while ((state = __atomic_load_n(&visit->state, __ATOMIC_ACQUIRE)) != VISIT_DONE &&
	       (*naps)++ < naps_max) {
		kernel_wake(&recording_state->clock->bell);
		kernel_sleep_ns(HOOK_ANSWER_NS);
	}
	return state;
}

// False: it is not what it was any more.
static bool hook_give_up_visit(struct visit *visit, uint32_t was, uint32_t now)
{
	return __atomic_compare_exchange_n(&visit->state, &was, now, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

// The collector is asked, and its answer is waited for, as a child would else run without us; for
// 10 s at most, as the program stands still meanwhile, and somewhat longer where the collector is
// at it. False: it was not asked.
static bool hook_ask(enum visit_kind kind, uint32_t pid, void *process, void *thread)
{
	struct visit *visit = hook_take_visit();
	uint32_t naps = 0;

	for (; !visit && naps < HOOK_ANSWER_NAPS; naps++) {
		kernel_wake(&recording_state->clock->bell);
		kernel_sleep_ns(HOOK_ANSWER_NS);
		visit = hook_take_visit();
	}
	if (!visit)
		return false;
	visit->image = recording_state->segment->image;
	visit->kind = kind;
	visit->pid = pid;
	visit->process = (uint32_t)(uintptr_t)process;
	visit->thread = (uint32_t)(uintptr_t)thread;
	visit->answer = 0;
	__atomic_store_n(&visit->state, VISIT_ASKED, __ATOMIC_RELEASE);
	if (hook_await_visit(visit, &naps, HOOK_ANSWER_NAPS) == VISIT_ASKED &&
	    hook_give_up_visit(visit, VISIT_ASKED, VISIT_FREE))
		return false;
	if (hook_await_visit(visit, &naps, HOOK_TAKEN_NAPS) != VISIT_DONE &&
	    hook_give_up_visit(visit, VISIT_TAKEN, VISIT_LEFT))
		return true;
	__atomic_store_n(&visit->state, VISIT_FREE, __ATOMIC_RELEASE);
	return true;
}

// A child, which has not run yet. What the collector was not asked is counted.
static void hook_announce(enum visit_kind kind, void *process, void *thread)
{
	if (!hook_ask(kind, 0, process, thread))
		__atomic_fetch_add(&recording_state->segment->unasked, 1, __ATOMIC_RELAXED);
}

// Whether a process is to be made of no file: it becomes a copy of this one.
static bool hook_is_copy(const struct nt_attributes *attributes)
{
	size_t bytes = attributes ? attributes->bytes : 0;
	size_t count = bytes / sizeof(attributes->list[0]); // what is before the list is less

	for (size_t i = 0; i < count; i++)
		if ((attributes->list[i].kind & 0xffff) == NT_ATTRIBUTE_IMAGE)
			return false;
	return true;
}

// In the copy, which has this thread alone, and nothing of what is mapped for the recorder.
static void hook_end_copy(void)
{
	recording_stop();
	kernel_set_own(NULL);
}

// The child begins suspended whatever the program asked for, so that it is invited before its first
// instruction, and its handles can do what the collector needs of them. A program that asked for a
// suspended one goes on to resume it itself.
NT_CALL nt_status hook_NtCreateUserProcess(void **process, void **thread, uint32_t process_access,
					   uint32_t thread_access, void *process_object,
					   void *thread_object, uint32_t process_flags,
					   uint32_t thread_flags, void *parameters, void *info,
					   void *attributes)
{
	bool follow = recording_phase() == RECORDING_ON &&
		      !(recording_state->options & SEGMENT_NO_FOLLOW);
	bool copy = hook_is_copy(attributes), waits = thread_flags & NT_THREAD_SUSPENDED;
	nt_status status;

	if (follow && !copy) {
		process_access |= HOOK_PROCESS_ACCESS;
		thread_access |= HOOK_THREAD_ACCESS;
		thread_flags |= NT_THREAD_SUSPENDED;
	}
	status = patch_real.NtCreateUserProcess(process, thread, process_access, thread_access,
						process_object, thread_object, process_flags,
						thread_flags, parameters, info, attributes);
	if (status == NT_COPIED)
		hook_end_copy();
	if (!follow || status < 0 || status == NT_COPIED)
		return status;
	if (copy)
		hook_announce(VISIT_COPIED, *process, *thread);
	else
		hook_announce(waits ? VISIT_WAITS : VISIT_BEGINS, *process, *thread);
	if (!copy && !waits)
		patch_real.NtResumeThread(*thread, NULL);
	return status;
}

// A thread of process `pid` is about to run (0: of an unknown one, for the handle does not let it
// be asked). It may be a child that has waited for it, and was changed meanwhile.
static void hook_let_run(uint32_t pid)
{
	if (pid != kernel_process_id())
		hook_ask(VISIT_RESUMES, pid, NULL, NULL);
}

static bool hook_looks(void)
{
	return recording_phase() == RECORDING_ON && recording_child_waits();
}

static uint32_t hook_pid_of_thread(void *thread)
{
	struct nt_thread said;

	if (NtQueryInformationThread(thread, NT_BASIC_INFORMATION, &said, sizeof(said), NULL) < 0)
		return 0;
	return (uint32_t)said.client.process;
}

static uint32_t hook_pid_of(void *process)
{
	struct nt_process said;

	if (NtQueryInformationProcess(process, NT_BASIC_INFORMATION, &said, sizeof(said), NULL) < 0)
		return 0;
	return (uint32_t)said.pid;
}

NT_CALL nt_status hook_NtResumeThread(void *thread, uint32_t *count)
{
	if (unlikely(hook_looks()))
		hook_let_run(hook_pid_of_thread(thread));
	return patch_real.NtResumeThread(thread, count);
}

NT_CALL nt_status hook_NtAlertResumeThread(void *thread, uint32_t *count)
{
	if (unlikely(hook_looks()))
		hook_let_run(hook_pid_of_thread(thread));
	return patch_real.NtAlertResumeThread(thread, count);
}

NT_CALL nt_status hook_NtResumeProcess(void *process)
{
	if (unlikely(hook_looks()))
		hook_let_run(hook_pid_of(process));
	return patch_real.NtResumeProcess(process);
}

// The first thread that runs makes a process ready, whichever it is. A thread's first call on a
// heap is made by the loader, which holds its lock: what takes long there is done before, for a
// thread that is ended meanwhile (TerminateThread) holds that lock for good.
NT_CALL nt_status hook_NtCreateThreadEx(void **thread, uint32_t access, void *object, void *process,
					void *start, void *argument, uint32_t flags,
					uintptr_t zero_bits, size_t stack_commit,
					size_t stack_reserve, void *attributes)
{
	kernel_need_stack(HOOK_FRAME);
	if (unlikely(process != NT_SELF && hook_looks()))
		hook_let_run(hook_pid_of(process));
	else if (process == NT_SELF && recording_phase() == RECORDING_ON)
		lane_make_ready();
	return patch_real.NtCreateThreadEx(thread, access, object, process, start, argument, flags,
					   zero_bits, stack_commit, stack_reserve, attributes);
}

// The status is only said: a process that ends otherwise has nothing less in its trace.
NT_CALL nt_status hook_NtTerminateProcess(void *process, int32_t status)
{
	if ((process == NULL || process == NT_SELF) && recording_phase() == RECORDING_ON) {
		struct segment *segment = recording_state->segment;

		vm_check_code();
		walk_last();
		__atomic_store_n(&segment->exit_status, (uint32_t)status, __ATOMIC_RELAXED);
		__atomic_store_n(&segment->exit_noted, 1, __ATOMIC_RELEASE);
	}
	return patch_real.NtTerminateProcess(process, status);
}

// A thread that gives itself a name. Of what is given to others the collector hears later, if they
// live long enough, or they ask themselves, where they have had no call yet.
NT_CALL nt_status hook_NtSetInformationThread(void *thread, uint32_t what, const void *in,
					      uint32_t size)
{
	const struct nt_text *text = in;
	char name[HOOK_NAME_BYTES];
	bool own = thread == NT_THIS_THREAD && recording_phase() == RECORDING_ON;
	nt_status status;

	if (what == NT_THREAD_NAME && !own)
		__atomic_store_n(&kernel_names_given, true, __ATOMIC_RELEASE);
	status = patch_real.NtSetInformationThread(thread, what, in, size);
	if (status < 0 || what != NT_THREAD_NAME || !own)
		return status;
	utf_decode(text->text, text->bytes / 2, name, sizeof(name));
	client_name_thread(name);
	return status;
}
