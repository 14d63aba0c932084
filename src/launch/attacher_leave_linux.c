// The end of a recording of a process that was attached to.
//
// For example two threads run, and one is inside of a hook, which called the real malloc:
//
//     1st try   one is stopped, and the recording ends there: hooks record nothing from then on
//               both are stopped, and the code is as it was before: no more calls come to a hook.
//               A return address on the stack of one leads to the recorder: it is not reset yet
//     1 ms      both go on; the call returns through the hook
//     2nd try   nothing leads there: the recorder is reset and its memory is unmapped
//
// Naps are 1 ms, then 2, up to 16. After 16 tries a page of code that a stack seems to lead to is
// left where it is; after 300 a thread that is really inside ends the attempt with an error.
#include "launch/attacher_own_linux.h"

#include "base/mem.h"
#include "launch/attachable_linux.h"
#include "launch/narrow_linux.h"
#include "os/now.h"

#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>

enum {
	ATTACHER_PATIENCE = 16,
	ATTACHER_LEAVES = 300,
};

static bool attacher_in(uint64_t at, const struct attach_range *range)
{
	return at >= range->start && at < range->end;
}

// Whether the thread is in the recorder, or a signal handler has interrupted it there.
static bool attacher_is_in(const struct attacher *attacher, const struct tracee_thread *thread)
{
	uint64_t at, sp;

	for (int n = 0; attacher_context(attacher, thread, n, &at, &sp); n++)
		if (attacher_in(at, &attacher->answer.text))
			return true;
	return false;
}

static bool attacher_is_inside(const struct attacher *attacher, const struct tracee *tracee)
{
	for (size_t i = 0; i < tracee->count; i++)
		if (!tracee->threads[i].gone && attacher_is_in(attacher, &tracee->threads[i]))
			return true;
	return false;
}

bool attacher_may_come(const struct attacher *attacher, const struct tracee_thread *thread,
		       const struct attach_range *range)
{
	static uint64_t words[ATTACHER_STACK_WORDS];
	const struct user_regs_struct *at = &thread->registers;
	bool narrow = narrow_is(at);
	// Registers that outlast a call: an address may be in one of them and not on the stack. Of
	// i386 esi and edi are among these.
	const uint64_t registers[] = { at->rip,
				       at->rbx,
				       at->rbp,
				       narrow ? at->rsi : at->r12,
				       narrow ? at->rdi : at->r13,
				       narrow ? 0 : at->r14,
				       narrow ? 0 : at->r15 };
	uint64_t sp = at->rsp & ~(uint64_t)(narrow_bytes(narrow) - 1);
	size_t count;

	for (size_t i = 0; i < sizeof(registers) / sizeof(*registers); i++)
		if (attacher_in(registers[i], range))
			return true;
	count = tracee_words(attacher->pid, sp, narrow, words, ATTACHER_STACK_WORDS);
	ASSERT(count <= ATTACHER_STACK_WORDS);
	for (size_t i = 0; i < count; i++)
		if (attacher_in(words[i], range))
			return true;
	return false;
}

static bool attacher_leads_there(const struct attacher *attacher, const struct tracee *tracee,
				 const struct attach_range *range)
{
	for (size_t i = 0; i < tracee->count; i++)
		if (!tracee->threads[i].gone &&
		    attacher_may_come(attacher, &tracee->threads[i], range))
			return true;
	return false;
}

// Where the thread keeps which lane is its. 0: that cannot be read.
static uint64_t attacher_lane(const struct attacher *attacher, const struct tracee_thread *thread)
{
	const struct attach_call *answer = &attacher->answer;
	uint64_t at = narrow_thread_pointer(&thread->registers);

	if (answer->lane_object && // the second word is where its DTV is
	    (!tracee_read(attacher->pid, at + 8, &at, sizeof(at)) ||
	     !tracee_read(attacher->pid, at + 8 * answer->lane_object, &at, sizeof(at))))
		return 0;
	return at + (uint64_t)answer->lane_at;
}

// The threads have no lane any more.
// Threads find their lane by a thread-local word. It leads to memory that is about to be given
// back, so it gets the value that it had before the first call.
static void attacher_clean(const struct attacher *attacher, const struct tracee *tracee)
{
	const struct attach_call *answer = &attacher->answer;

	for (size_t i = 0; i < tracee->count; i++)
		if (!tracee->threads[i].gone)
			tracee_write(attacher->pid, attacher_lane(attacher, &tracee->threads[i]),
				     &answer->nobody, narrow_bytes(attacher->objects.narrow));
}

// With all threads stopped: have the recorder make itself as it was loaded. False: not now.
// `answer` is overwritten by each call, and holds what ATTACH_ASK said: places, pages, where the
// lane's word is. That is still needed.
static bool attacher_reset(struct attacher *attacher, const struct tracee *tracee,
			   struct tracee_loan *loan)
{
	const struct attach_call before = attacher->answer;
	bool done = !attacher_is_inside(attacher, tracee) &&
		    attacher_call(attacher, loan, ATTACH_STOP, NULL) &&
		    attacher->answer.status != ATTACH_BUSY;

	attacher->answer = before;
	if (done)
		attacher_clean(attacher, tracee);
	return done;
}

// What the recorder there has changed, and its recording has ended. False: it records for somebody
// else, or for none.
static bool attacher_ask(struct attacher *attacher, struct tracee_loan *loan, const char *session)
{
	return attacher_call(attacher, loan, ATTACH_ASK, NULL) &&
	       attacher->answer.status == ATTACH_DONE &&
	       (!session || strcmp(attacher->answer.session, session) == 0) &&
	       attacher_call(attacher, loan, ATTACH_END, NULL);
}

// One thread, whichever can be stopped. *there: any of its threads has not ended.
// Whichever stands first: the call needs a thread, and it does not matter where that is, as the
// recorder's own code calls nothing of the program's.
static bool attacher_stop_any(const struct attacher *attacher, struct tracee *tracee, bool *there)
{
	size_t count;
	pid_t *list = tracee_list(attacher->pid, &count);
	bool stopped = false;
	struct err err;

	for (size_t i = 0; i < count && !stopped; i++)
		stopped = tracee_stop_one(tracee, attacher->pid, list[i], &err);
	*there = stopped || tracee_lives(attacher->pid);
	mem_free(list);
	return stopped;
}

// The pages that no thread's stack led to while all were stopped, as bits. Since then nothing does.
// *all: there are no others.
static uint64_t attacher_unused(const struct attacher *attacher, const struct tracee *tracee,
				bool *all)
{
	uint64_t unused = 0;

	_Static_assert(ATTACH_PAGES_MAX <= 64, "a bit each");
	*all = true;
	for (uint32_t i = 0; i < attacher->answer.pages_count && i < ATTACH_PAGES_MAX; i++)
		if (!attacher_leads_there(attacher, tracee, &attacher->answer.pages[i]))
			unused |= UINT64_C(1) << i;
		else
			*all = false;
	return unused;
}

static void attacher_unmap(const struct attacher *attacher, struct tracee_loan *loan,
			   uint64_t unused)
{
	for (uint32_t i = 0; i < attacher->answer.pages_count && i < ATTACH_PAGES_MAX; i++) {
		const struct attach_range *range = &attacher->answer.pages[i];
		uint64_t arguments[6] = { range->start, range->end - range->start, 0, 0, 0, 0 };

		if (unused >> i & 1)
			tracee_ask(loan, SYS_munmap, arguments);
	}
}

enum attacher_left { ATTACHER_LEFT, ATTACHER_NOT_YET, ATTACHER_NOT_THERE };

// One thread has what it needs before the others are stopped, and does after they have gone on what
// needs no stop. `patient`: code that may be needed yet is rather waited for than left for good.
static enum attacher_left attacher_leave_with(struct attacher *attacher, struct tracee *tracee,
					      struct tracee_loan *loan, const char *session,
					      bool patient, struct attacher_figures *figures)
{
	// The order is what makes it safe: ask and end (one thread stopped), stop the others, write
	// the code back, look whether a thread may come back into the recorder, have it reset
	// itself, let the others go on, unmap what nothing leads to.
	struct attach_patch *list;
	struct err err;
	uint64_t unused, stood_ns;
	bool done, all;

	if (!attacher_ask(attacher, loan, session))
		return ATTACHER_NOT_THERE;
	list = attacher_list(attacher);
	if (!tracee_stop_others(tracee, &err)) { // whether it is gone the next try finds
		mem_free(list);
		return ATTACHER_NOT_YET;
	}
	if (list)
		attacher_write(tracee, loan->thread, list, attacher->answer.patches_count,
			       offsetof(struct attach_patch, after),
			       offsetof(struct attach_patch, before));
	mem_free(list);
	unused = attacher_unused(attacher, tracee, &all);
	done = (all || !patient) && attacher_reset(attacher, tracee, loan);
	stood_ns = tracee_release_others(tracee, loan->thread->tid);
	if (stood_ns > figures->stop_ns)
		figures->stop_ns = stood_ns;
	if (done)
		attacher_unmap(attacher, loan, unused);
	return done ? ATTACHER_LEFT : ATTACHER_NOT_YET;
}

// One thread is stopped and asks the recorder; the others only once that has answered, so a process
// that does not know the recording does not stand.
static enum attacher_left attacher_try_to_leave(struct attacher *attacher, const char *session,
						bool patient, struct attacher_figures *figures)
{
	enum attacher_left left = ATTACHER_NOT_YET;
	struct tracee tracee;
	struct tracee_thread own;
	struct tracee_loan loan;
	struct err err;
	bool there;

	if (!attachable_await(attacher->pid, 0, -1, NULL, &err))
		return ATTACHER_NOT_YET;
	if (!attacher->entry || !attacher_stop_any(attacher, &tracee, &there))
		return attacher->entry && there ? ATTACHER_NOT_YET : ATTACHER_NOT_THERE;
	own = tracee.threads[0]; // the list moves as it grows
	if (tracee_borrow(&loan, &own, attacher->gate, &err)) {
		left = attacher_leave_with(attacher, &tracee, &loan, session, patient, figures);
		tracee_give_back(&loan);
	}
	tracee_release(&tracee);
	return left;
}

bool attacher_leave(struct attacher *attacher, const char *session,
		    struct attacher_figures *figures, struct err *err)
{
	for (int try = 0; try < ATTACHER_LEAVES; try++) {
		if (try > 0) // a thread needs the processor to come out
			now_sleep(ATTACHER_NAP_NS *
				  (uint64_t)(try < ATTACHER_PATIENCE ? try : ATTACHER_PATIENCE));
		if (attacher_try_to_leave(attacher, session, try < ATTACHER_PATIENCE, figures) !=
		    ATTACHER_NOT_YET)
			return true; // or it has ended, or is another program by now
	}
	return attachable_await(attacher->pid, 0, -1, NULL, err) &&
	       err_set(err, ERR_IO, "a thread of process %d does not come out of the recorder",
		       (int)attacher->pid);
}
