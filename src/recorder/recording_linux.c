// An image of a program becomes a process of the recording at its first event, or when the dynamic
// linker has loaded us, and a forked child at its own first event:
//
//     recording_begin      all signals blocked; one thread at a time
//       recording_prepare    once for an image: which session, from the environment
//       recording_join       hello, welcome, and the parts of the segment mapped
//       …                    the clock, the walk, the patches
//
// A forked child mostly waits for no welcome (recording_join_unheard): it makes its segment itself
// and sends it with its hello. It may have ended when the collector hears of it.
//
// What is static here survives a fork, and the state does not. So a child knows from
// recording_image that it is one.
//
// For example, process 100 forks 101 when all descriptors are in use. 101 cannot make a socket
// (EMFILE). If 100 got a spare segment before, 101 takes that one. If not, it clones 102, which
// shares its memory but not its table of descriptors: 102 closes 0 to 2, says hello in 101's name
// (SEGMENT_START_FORK_HELPED), maps the segment for both, and ends. If that fails too, 101 writes
// its pid and the reason into `unseen` of 100's segment, and is not asked again.
#include "recorder/recording_own.h"

#include "recorder/allocators_linux.h"
#include "recorder/alone_linux.h"
#include "recorder/client.h"
#include "recorder/clock.h"
#include "recorder/codemap.h"
#include "recorder/enter_linux.h"
#include "recorder/kernel.h"
#include "recorder/lane.h"
#include "recorder/late_linux.h"
#include "recorder/library_linux.h"
#include "recorder/notes.h"
#include "recorder/patch_linux.h"
#include "recorder/real_linux.h"
#include "recorder/sample.h"
#include "recorder/scope_linux.h"
#include "recorder/static_linux.h"
#include "recorder/text.h"
#include "recorder/unwind.h"
#include "recorder/usdt_linux.h"
#include "recorder/vm.h"

struct recording_state *recording_state;

enum {
	RECORDING_EPERM = 1,
	RECORDING_EAGAIN = 11,
	RECORDING_ENOMEM = 12,
	RECORDING_EMFILE = 24,
	RECORDING_SPARE = 256,           // lanes of a process under a filter
	RECORDING_SPARE_FEW = 64,        // the same where addresses are scarce
	RECORDING_SILENT_NS = 200000000, // no beat and no such process: the collector is gone
};

#define RECORDING_SILENT_SEALED_NS UINT64_C(3000000000)

// Kept over fork, unlike the state.
uint32_t recording_image;
__thread uint32_t recording_fork_lane;
__thread uint64_t recording_fork_head;
static __thread bool recording_fork_noted; // in the process's notes
static bool recording_goes_on;             // a forked child begins, whose fork its parent has noted
static __thread int recording_fork_errno;  // the thread's, before libc's fork
static bool recording_filtered; // the image was born under a filter, which lets our calls through
static bool recording_apart;    // in another namespace of processes than the collector
static bool recording_refused;  // by the collector, or there is none: do not ask again
// Of the last process in this line of forks that was recorded: mapped in its children too.
static struct segment *recording_parent;
// What it has in its header, and its children's have before the collector has looked at them: a
// child reads it here, and not in a page of its parent's that it would have to map.
static struct recording_header {
	uint32_t options, collector_pid;
	uint64_t sample_bytes;
	char reach_mark[SEGMENT_MARK_BYTES];
} recording_header;
uint32_t recording_why, recording_error;
char recording_session_name[108];
static char recording_session_variable[128];

const char *recording_session(void)
{
	return recording_session_variable;
}

// The program is about to put itself under a filter that may forbid our calls. All that will need
// one is made now: lanes for threads to come, spare segments for children, the list of mappings.
// True: the caller has to say afterwards whether the filter was set (recording_sealed).
bool recording_seal(bool strict, uint32_t lets)
{
	struct lane *lane;
	bool few; // a lane takes more than a megabyte of addresses

	if (recording_state && recording_state->pid && kernel_process_id() != recording_state->pid)
		return false;
	kernel_let = kernel_sealed ? kernel_let & lets : lets;
	if (kernel_sealed)
		return false;
	if (recording_phase() == RECORDING_ON || recording_begin()) {
		lane = lane_enter(); // the list of mappings is told while it can be
		if (lane)
			lane_leave(lane, lane->ring, lane->ring);
		few = recording_is_limited();
		recording_prepare_spares();
		lane_prepare(strict, few ? RECORDING_SPARE_FEW : RECORDING_SPARE);
		vm_seal();
		__atomic_store_n(&recording_state->segment->sealed, 1, __ATOMIC_RELEASE);
	}
	kernel_sealed = strict ? KERNEL_SEALED_STRICT : KERNEL_SEALED;
	return true;
}

// `done`: the filter is there. Else the program's call failed, and all is as it was.
void recording_sealed(bool done)
{
	uint64_t signals;

	if (!done)
		kernel_sealed = KERNEL_OPEN;
	if (recording_phase() != RECORDING_ON)
		return;
	__atomic_store_n(&recording_state->segment->sealed, done, __ATOMIC_RELEASE);
	if (!done)
		return;
	signals = kernel_block_signals();
	notes_message(NOTE_MESSAGE_FILTER, "");
	kernel_restore_signals(signals);
}

// The program has asked that reading the time-stamp counter be a fault (PR_SET_TSC). The clock goes
// on by the collector's ticks, which are coarser; the trace says so.
void recording_forbid_counter(void)
{
	uint64_t signals;

	if (!clock_counter_allowed && recording_phase() == RECORDING_ON)
		return;
	if (recording_phase() != RECORDING_ON && !recording_begin())
		return;
	signals = kernel_block_signals();
	recording_lock(&recording_state->lanes_lock);
	clock_forbid();
	recording_unlock(&recording_state->lanes_lock);
	notes_message(NOTE_MESSAGE_COUNTER, "");
	kernel_restore_signals(signals);
}

uint64_t recording_patience_ns(void)
{
	return kernel_sealed || recording_apart ? RECORDING_SILENT_SEALED_NS : RECORDING_SILENT_NS;
}

// One that has ended and that was not waited for can be sent signals, too.
//
// Its state is in /proc, after the name in parentheses: Z for one that has ended.
bool recording_collector_lives(void)
{
	char path[64], text[128];
	uint32_t pid = recording_state->segment->collector_pid;
	long fd, got;

	if (kernel_sealed || recording_apart)
		return false; // it cannot be asked
	if (kernel(__NR_kill, pid, 0) == -KERNEL_ESRCH)
		return false;
	text_put_fd(path, "/proc/", pid);
	memcpy(path + text_length(path), "/stat", sizeof("/stat"));
	fd = kernel(__NR_openat, KERNEL_AT_FDCWD, path, 0x80000 /* O_CLOEXEC */, 0);
	if (kernel_failed(fd))
		return true;
	got = kernel(__NR_read, fd, text, sizeof(text) - 1);
	kernel(__NR_close, fd);
	text[got > 0 ? got : 0] = 0;
	for (const char *at = text; *at; at++)
		if (text_after(at, ") Z"))
			return false;
	return true;
}

// "NAME=value" into `out`.
static void recording_keep_variable(char *out, size_t size, const char *name, const char *value)
{
	size_t name_length = text_length(name);
	size_t value_length = text_length(value);

	if (name_length + value_length + 2 > size)
		return;
	memcpy(out, name, name_length);
	out[name_length] = '=';
	memcpy(out + name_length + 1, value, value_length + 1);
}

// Keep why, and the error that the kernel gave; returns false, for the caller to return it.
bool recording_fail(uint32_t why, long result)
{
	recording_why = why;
	recording_error = kernel_failed(result) ? (uint32_t)-result : 0;
	return false;
}

// The process records into `segment`: its children will.
static void recording_keep_header(struct segment *segment)
{
	recording_parent = segment;
	recording_header.options = segment->options;
	recording_header.collector_pid = segment->collector_pid;
	recording_header.sample_bytes = segment->sample_bytes;
	memcpy(recording_header.reach_mark, segment->reach_mark,
	       sizeof(recording_header.reach_mark));
}

// The collector could not tell a process that cannot map its segment from one that ended before it
// could. So it is written into the file, which takes no mapping. A limit of what is written would
// cost a signal.
static void recording_leave_word(int segment_fd)
{
	static const uint32_t no = SEGMENT_JOINED_NO;

	if (kernel_limit(KERNEL_LIMIT_FILE) > SEGMENT_HEADER_BYTES)
		kernel(__NR_pwrite64, segment_fd, &no, sizeof(no), offsetof(struct segment, joined),
		       0);
}

// Hello to welcome. False: this process is not recorded so. `pid`: its own.
//
// The parent's spares and its segment are dropped only when the collector has answered: until then
// they are what there is to fall back on.
static bool recording_join_as(struct recording_state *state, uint32_t start, uint32_t pid)
{
	struct recording_answer answer;
	bool joined;

	if (!recording_talk(start, pid, 0, &answer))
		return false;
	recording_parent = NULL;
	recording_drop_spares();
	recording_fail(SEGMENT_WHY_MEMORY, 0);
	joined = recording_map_segment(state, &answer.welcome, answer.descriptors);
	state->pid = kernel_pid = pid;
	recording_apart = answer.welcome.pid != pid;
	if (!joined)
		recording_leave_word(answer.descriptors[1]);
	while (answer.count > 0)
		kernel(__NR_close, answer.descriptors[--answer.count]);
	state->copy = recording_image != 0;
	recording_image = answer.welcome.image;
	if (joined) {
		recording_keep_header(state->segment);
		__atomic_store_n(&state->segment->joined, SEGMENT_JOINED, __ATOMIC_RELEASE);
	}
	return joined;
}

// The collector will write the same. It asks for no snapshots of a small child.
static void recording_fill_header(struct segment *segment, uint32_t image)
{
	const struct recording_header *header = &recording_header;

	segment->magic = SEGMENT_MAGIC;
	segment->version = SEGMENT_VERSION;
	segment->image = image;
	segment->lanes_max = SEGMENT_LANES_MAX;
	segment->options = header->options;
	segment->collector_pid = header->collector_pid;
	segment->sample_bytes = header->sample_bytes;
	memcpy(segment->reach_mark, header->reach_mark, sizeof(header->reach_mark));
	segment->look_floor = SEGMENT_LOOK_CHILD_BYTES;
	segment->look_child = !(header->options & SEGMENT_REACHABILITY);
}

// The segment that a child has made becomes its own, in place of its parent's.
static bool recording_wear_own(struct recording_state *state, int fd, uint32_t pid, uint32_t image)
{
	const struct segment_welcome welcome = { .options = recording_header.options };

	recording_parent = NULL;
	recording_drop_spares();
	recording_fail(SEGMENT_WHY_MEMORY, 0);
	state->pid = kernel_pid = pid;
	state->copy = true;
	recording_image = image;
	if (!recording_map_segment(state, &welcome, (const int[]){ -1, fd })) {
		recording_leave_word(fd);
		return false;
	}
	recording_fill_header(state->segment, image);
	recording_parent = state->segment;
	__atomic_store_n(&state->segment->joined, SEGMENT_JOINED, __ATOMIC_RELEASE);
	return true;
}

// Whether a forked child can make its segment itself and go on. Its parent's notes hold its place
// in the order until the collector has heard of it, and no file may be so large under a limit.
static bool recording_may_go_on(const struct segment_clock *clock)
{
	return recording_goes_on && recording_parent && clock && !recording_apart &&
	       !recording_filtered && recording_knows_args() && clock->unheard_max != 0 &&
	       !recording_clock_is_over(clock) && !(recording_header.options & SEGMENT_NO_FOLLOW) &&
	       (uint32_t)kernel(__NR_getppid) == kernel_pid &&
	       kernel_limit(KERNEL_LIMIT_FILE) == UINT64_MAX;
}

// A forked child says hello, with a segment of its own making, and does not wait.
//
// There may be too many whom the collector has not heard yet: then it is waited for, so that
// programs do not get far ahead of it. `told`: the collector will hear of it in any case.
//
// A child that is killed after it has counted itself and before its hello stays in the count, until
// there are as many as there may be and the collector counts anew.
static bool recording_join_unheard(struct recording_state *state, bool *told)
{
	enum { MFD_CLOEXEC = 1, MFD_ALLOW_SEALING = 2, F_ADD_SEALS = 1033 };
	struct segment_clock *clock = recording_clock;
	uint32_t pid, image = 0;
	bool joined = false;
	long fd;

	if (!recording_may_go_on(clock))
		return false;
	if (__atomic_fetch_add(&clock->unheard, 1, __ATOMIC_RELAXED) >= clock->unheard_max) {
		__atomic_fetch_sub(&clock->unheard, 1, __ATOMIC_RELAXED);
		return false;
	}
	state->clock = clock;
	pid = kernel_process_id();
	fd = kernel(__NR_memfd_create, "tidemark", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (!kernel_failed(fd) &&
	    !kernel_failed(kernel(__NR_ftruncate, fd, (long)segment_ring_at(SEGMENT_LANES_MAX))) &&
	    !kernel_failed(kernel(__NR_fcntl, fd, F_ADD_SEALS, SEGMENT_SEALS))) {
		image = __atomic_add_fetch(&clock->images, 1, __ATOMIC_RELAXED);
		*told = recording_tell(pid, image, clock_now(), (int)fd);
	}
	if (*told)
		joined = recording_wear_own(state, (int)fd, pid, image);
	else
		__atomic_fetch_sub(&clock->unheard, 1, __ATOMIC_RELAXED);
	if (!kernel_failed(fd))
		kernel(__NR_close, fd);
	return joined;
}

// A forked child that has no descriptor left, and one thread. A process that shares its memory, and
// has descriptors of its own to close and limits of its own to raise, says hello for it.
//
// CLONE_VM: what it writes to `state` is ours. CLONE_VFORK: we go on when it has ended, so that
// both never run at once on one stack.
static __attribute__((noinline)) bool recording_join_helped(struct recording_state *state)
{
	enum { CLONE_VM = 0x100, CLONE_VFORK = 0x4000, WALL = 0x40000000 };
	uint32_t pid = kernel_process_id();
	long child = kernel(__NR_clone, CLONE_VM | CLONE_VFORK, 0, 0, 0, 0);

	if (child == 0) {
		uint64_t limits[2];

		// Three descriptors are enough: one socket, and the two that come with the welcome.
		for (int fd = 0; fd < 3; fd++)
			kernel(__NR_close, fd);
		kernel(__NR_prlimit64, 0, KERNEL_LIMIT_DESCRIPTORS, NULL, limits);
		limits[0] = limits[1];
		kernel(__NR_prlimit64, 0, KERNEL_LIMIT_DESCRIPTORS, limits, NULL);
		recording_join_as(state, SEGMENT_START_FORK_HELPED, pid);
		kernel(__NR_exit, 0);
	}
	if (kernel_failed(child))
		return false;
	kernel(__NR_wait4, child, NULL, WALL, 0);
	return state->segment && state->segment == recording_parent;
}

// A sealed child that may not ask: fork tells it its number; a bare one's is its parent's still.
static void recording_know_pid(void)
{
	if (kernel_sealed && kernel_let & KERNEL_LETS_PID)
		kernel_pid = kernel_process_id();
	else if (kernel_sealed)
		kernel_pid = kernel_thread_id_told() != kernel_pid ? kernel_thread_id_told() : 0;
}

// A forked child that cannot say hello has a segment of its parent's spares.
static bool recording_join_spare(struct recording_state *state)
{
	uint32_t parents = recording_count_shared();

	state->pid = kernel_process_id();
	if (!recording_take_spare(state, recording_clock))
		return false;
	kernel_pid = state->pid;
	if (!kernel_sealed)
		recording_drop_shared(parents, 0);
	recording_keep_header(state->segment);
	recording_image = state->segment->image;
	recording_apart = true; // it may be
	state->copy = true;
	return true;
}

// Hello by the socket; if that cannot be, one of the parent's spares; if only descriptors were
// lacking, by a helper. Where it was memory that was lacking, nothing more is tried.
static bool recording_join(struct recording_state *state)
{
	uint32_t start = recording_image ? SEGMENT_START_FORK
			 : late_is()     ? SEGMENT_START_ATTACH
					 : SEGMENT_START_EXEC;
	bool told = false;

	recording_know_pid();
	if (kernel_sealed)
		recording_fail(SEGMENT_WHY_FILTER, 0);
	else if (recording_join_unheard(state, &told) ||
		 (!told && recording_join_as(state, start, kernel_process_id())))
		return true;
	if (start != SEGMENT_START_FORK || !recording_why || recording_why == SEGMENT_WHY_MEMORY)
		return false;
	return recording_join_spare(state) ||
	       (recording_error == RECORDING_EMFILE && recording_join_helped(state));
}

// A forked child that is not recorded leaves word of it in its parent's segment, and so do those
// that it forks in turn.
static void recording_tell_unseen(void)
{
	struct segment *parent = recording_parent;
	struct segment_unseen *unseen;
	uint32_t at;

	if (!parent || !recording_why || recording_clock_is_over(recording_clock))
		return;
	at = __atomic_fetch_add(&parent->unseen_count, 1, __ATOMIC_ACQ_REL) % SEGMENT_UNSEEN_MAX;
	unseen = &parent->unseen[at];
	if (__atomic_load_n(&unseen->ready, __ATOMIC_ACQUIRE))
		return; // it is counted
	unseen->pid = kernel_process_id();
	unseen->why = recording_why;
	unseen->error = recording_error;
	unseen->fork_lane = recording_fork_lane;
	unseen->fork_head = recording_fork_head;
	__atomic_store_n(&unseen->ready, 1, __ATOMIC_RELEASE);
}

// Once per image: what does not change with fork.
//
// False: there is no session, and the process is left alone.
static bool recording_prepare(void)
{
	const char *session = late_is() ? late_session() : scope_environment("TIDEMARK_SESSION");

	if (recording_is_emulated())
		return false;
	library_start();
	if (!session && !late_is())
		session = alone_start();
	if (!session || text_length(session) + 2 > sizeof(recording_session_name))
		return false;
	memcpy(recording_session_name, session, text_length(session) + 1);
	recording_keep_variable(recording_session_variable, sizeof(recording_session_variable),
				"TIDEMARK_SESSION", session);
	if (!late_is())
		recording_find_args();
	return true;
}

// Where glibc keeps the thread's id: it has not moved for many years.
static void recording_find_tid(void)
{
	enum { PLACE = sizeof(void *) == 8 ? 0x2d0 : 0x68 };
	static bool asked, glibc; // kept over fork

	if (!asked)
		glibc = scope_next("gnu_get_libc_version", NULL) ||
			(static_is() && scope_next("__libc_setup_tls", NULL));
	asked = true;
	kernel_tid_at = glibc ? PLACE : 0;
	if (kernel_thread_id_told() != kernel_thread_id())
		kernel_tid_at = 0;
}

// Was the process born under a filter (seccomp)? What is called for that the dynamic linker has
// called too.
static bool recording_has_filters(struct recording_state *state)
{
	char *text = state->file_path;
	bool found = false;
	long got, fd = kernel(__NR_openat, KERNEL_AT_FDCWD, "/proc/self/status",
			      0x80000 /* O_CLOEXEC */, 0);

	if (kernel_failed(fd))
		return false;
	got = kernel(__NR_read, fd, text, sizeof(state->file_path) - 1);
	kernel(__NR_close, fd);
	text[got > 0 ? got : 0] = 0;
	for (; *text && !found; text++) {
		const char *at = text_after(text, "\nSeccomp:\t");

		found = at && *at != '0';
	}
	memset(state->file_path, 0, sizeof(state->file_path));
	return found;
}

enum recording_let {
	RECORDING_KILLED,      // a filter kills for one of our calls
	RECORDING_REFUSED,     // it refuses one
	RECORDING_REFUSED_PID, // and that for the process's number
	RECORDING_LET,
};

// Every call that we may make later, with arguments that do nothing.
//
// A filter that kills does so here, in a child, and the parent learns it from the way in which the
// child ended.
static enum recording_let recording_try_calls(void)
{
	enum { EPERM = 1, EACCES = 13 };
	static const uint16_t numbers[] = {
		__NR_getpid,   __NR_gettid,         __NR_getppid,   __NR_socket,
		__NR_connect,  __NR_sendto,         __NR_recvmsg,   __NR_setsockopt,
		__NR_readlink, __NR_mremap,         __NR_madvise,   __NR_mincore,
		__NR_tgkill,   __NR_rt_sigprocmask, __NR_nanosleep, __NR_clock_gettime,
		__NR_futex,    __NR_prctl,          __NR_getrusage, __NR_openat,
		__NR_fstat,
	};
	enum recording_let let = RECORDING_LET;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		long result = kernel(numbers[i], -1, 1, -1, -1, -1, -1);

		if (let != RECORDING_REFUSED_PID &&
		    (result == -EPERM || result == -EACCES || result == -KERNEL_ENOSYS))
			let = i == 0 ? RECORDING_REFUSED_PID : RECORDING_REFUSED;
	}
	// The start can do without these.
	kernel(__NR_access, -1, -1);
	kernel(__NR_getrandom, -1, 1, -1);
	kernel(__NR_mprotect, 0, 0, KERNEL_PROT_READ | KERNEL_PROT_WRITE | KERNEL_PROT_EXEC);
	return let;
}

// What the filters that the process was born under make of our calls: a child finds out.
static enum recording_let recording_try_filters(void)
{
	enum { WALL = 0x40000000 }; // __WALL: a child that announces nothing
	int status = 0;
	long child = kernel(__NR_clone, 0, 0, 0, 0, 0);

	if (child == 0)
		kernel(__NR_exit_group, recording_try_calls());
	if (kernel_failed(child) || kernel(__NR_wait4, child, &status, WALL, 0) != child ||
	    (status & 0x7f))
		return RECORDING_KILLED;
	return (enum recording_let)(status >> 8 & 0xff);
}

// By a filter that the image was born under. RECORDING_LET: no call is, or that is dealt with.
static enum recording_let recording_born_let = RECORDING_LET;

static bool recording_start_sampling(const struct recording_state *state)
{
	if (state->segment->options & SEGMENT_BUDGET)
		return sample_start_at_times(&state->clock->turn);
	return sample_start(state->segment->sample_bytes);
}

// All that makes a process of the recording of an image, or of a forked child. It runs once for
// each, with all signals blocked. False: this process is not recorded, and it is not asked again.
static bool recording_start(struct recording_state *state)
{
	bool fresh = recording_image == 0;
	enum recording_let let = RECORDING_LET;

	if (recording_refused) {
		recording_know_pid();
		recording_tell_unseen();
		return false;
	}
	if (fresh && recording_has_filters(state)) {
		recording_filtered = true;
		let = recording_try_filters();
	}
	if (let == RECORDING_KILLED) {
		recording_refused = true;
		return false;
	}
	if ((fresh && !recording_prepare()) || !recording_join(state) || !unwind_start() ||
	    !recording_start_sampling(state)) {
		recording_refused = true;
		recording_tell_unseen();
		return false;
	}
	// It refuses what lanes are mapped with, and most of its tools take malloc's place.
	if (fresh && scope_is_valgrinds()) {
		notes_message(
			NOTE_MESSAGE_UNSEEN,
			"it runs inside valgrind, where the recorder cannot be: what it allocates "
			"is not recorded (try: without valgrind)");
		__atomic_store_n(&state->segment->no_lane, SEGMENT_NO_LANE_VALGRIND,
				 __ATOMIC_RELAXED);
		recording_refused = true;
		return false;
	}
	if (fresh && scope_is_emulator())
		notes_message(
			NOTE_MESSAGE_UNSEEN,
			"it emulates a program: what that one allocates is not recorded, only "
			"what the emulator does");
	usdt_on = state->segment->options & SEGMENT_USDT;
	if (!kernel_sealed) {
		recording_find_tid();
		codemap_start();
		clock_start();
		if (fresh) // a child has hardly anything yet
			recording_measure();
	}
	if (!fresh)
		lane_forget();
	state->waits = late_waits();
	__atomic_store_n(&state->phase, RECORDING_ON, __ATOMIC_RELEASE);
	if (fresh && (state->options & SEGMENT_PAUSED))
		client_begin_paused();
	if (fresh) {
		late_write_many(true);
		patch_start();
		late_write_many(false);
		enter_start();
		static_enter();
		allocators_add_real();
		allocators_add_operators();
	} else {
		allocators_tell();
	}
	patch_tell();
	if (kernel_sealed) {
		lane_prepare(kernel_sealed == KERNEL_SEALED_STRICT, RECORDING_SPARE_LANES);
		notes_message(NOTE_MESSAGE_FILTER, "");
	}
	if (!clock_counter_allowed)
		notes_message(NOTE_MESSAGE_COUNTER, "");
	if (fresh && scope_is_go())
		notes_language(NOTE_LANGUAGE_NAMED, "Go", "");
	if (fresh && scope_is_audited())
		notes_message(NOTE_MESSAGE_OTHER,
			      "what libraries allocate that audit its linking (LD_AUDIT, DT_AUDIT) "
			      "is not seen: they have a malloc of their own");
	recording_born_let = let;
	return true;
}

// True: this thread is the one to start. False: another one has.
//
// Others wait for it, in steps of 50 µs: without a recording they could not record what they are
// about to do.
static bool recording_claim(struct recording_state *state)
{
	uint32_t phase = RECORDING_NEW;

	while (!__atomic_compare_exchange_n(&state->phase, &phase, RECORDING_STARTING, false,
					    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		if (phase != RECORDING_STARTING)
			return false;
		kernel_sleep_ns(50000);
		phase = RECORDING_NEW;
	}
	return true;
}

// The first event of any thread comes here. `recording_born_let` is dealt with after signals are
// let through again: to seal takes long.
COLD bool recording_begin(void)
{
	uint64_t signals;

	if (recording_phase() == RECORDING_OFF || (late_is() && !late_session()))
		return false;
	signals = kernel_block_signals();
	real_find();
	if (!recording_state)
		recording_state = recording_pages(sizeof(*recording_state), true);
	if (recording_state && recording_claim(recording_state) &&
	    !recording_start(recording_state))
		recording_stop();
	kernel_restore_signals(signals);
	if (recording_born_let != RECORDING_LET) {
		uint32_t lets = recording_born_let == RECORDING_REFUSED ? KERNEL_LETS_PID : 0;

		recording_born_let = RECORDING_LET;
		recording_sealed(recording_seal(false, lets));
	}
	return recording_phase() == RECORDING_ON;
}

// A place in the order for the fork: what this thread did so far, the child inherits.
void recording_before_fork(void)
{
	struct lane *lane = lane_get_mine();
	uint64_t signals;

	recording_fork_lane = 0;
	recording_fork_head = 0;
	recording_fork_noted = false;
	if (recording_phase() != RECORDING_ON)
		return;
	// What each child would have to make, it has from its parent: memory of a lane, what is
	// known of libc. Where that may fail it would count as an event that was lost.
	if (recording_state->lanes_count == 1 && !kernel_nested() && !kernel_sealed &&
	    !recording_is_limited()) {
		lane = lane_enter();
		if (lane)
			lane_leave(lane, lane->ring, lane->ring);
		lane = lane_get_mine();
	}
	recording_fork_noted = true;
	recording_fork_lane = (uint32_t)lane->id;
	recording_fork_head = lane->head;
	signals = kernel_block_signals();
	notes_fork(clock_now(), kernel_thread_id(), recording_fork_lane, recording_fork_head);
	clock_mark(); // who knows of the fork does what it does later
	kernel_restore_signals(signals);
}

// What is ours is all zero in the child. A page that is read first and then written is faulted in
// twice: so it is written first.
static void recording_forked(void)
{
	if (recording_state)
		__atomic_fetch_or(&recording_state->phase, RECORDING_NEW, __ATOMIC_RELAXED);
	recording_goes_on = recording_fork_noted;
	recording_begin();
	recording_goes_on = false;
}

// `result` is fork's: 0 in the child, a negative error, or the child's pid in the parent.
void recording_after_fork(long result)
{
	uint64_t signals;

	if (result == 0)
		recording_forked();
	if (result >= 0 || !recording_fork_noted || recording_phase() != RECORDING_ON)
		return;
	signals = kernel_block_signals();
	notes_fork_failed(kernel_thread_id());
	kernel_restore_signals(signals);
}

// libc's fork does not tell whom it calls after it whether there is a child. But errno is 0 before
// it then, and the reason after it where there is none. Else it is put back, but where another such
// function has changed it.
static int *recording_errno(void)
{
	return real.errno_location ? real.errno_location() : NULL;
}

static void recording_prepare_fork(void)
{
	int *number = recording_errno();

	recording_before_fork();
	if (!number)
		return;
	recording_fork_errno = *number;
	*number = 0;
}

static void recording_parent_forked(void)
{
	int *number = recording_errno();

	if (number && !*number)
		*number = recording_fork_errno;
	else if (number && (*number == RECORDING_EAGAIN || *number == RECORDING_ENOMEM ||
			    *number == RECORDING_EPERM || *number == KERNEL_ENOSYS))
		recording_after_fork(-*number);
}

static void recording_child_forked(void)
{
	int *number = recording_errno();

	if (number)
		*number = recording_fork_errno;
	recording_forked();
}

// The C library calls these around its own fork, also from inside of system() or posix_spawn where
// those use it. False: it has no such list.
bool recording_watch_forks(void)
{
	int (*register_atfork)(void (*)(void), void (*)(void), void (*)(void), void *);

	*(void **)&register_atfork = scope_next("__register_atfork", NULL);
	if (!register_atfork && late_is()) // musl's, which allocates
		*(void **)&register_atfork = scope_next("pthread_atfork", NULL);
	if (!register_atfork)
		return false;
	register_atfork(recording_prepare_fork, recording_parent_forked, recording_child_forked,
			NULL);
	return true;
}

void recording_tell_why(uint32_t *why, uint32_t *error)
{
	*why = recording_why;
	*error = recording_error;
}

// A program that allocates nothing is a process of the recording too, and so is a child that does
// not. (A child that comes from a bare system call is noticed at its first event.)
__attribute__((constructor)) static void recording_construct(void)
{
	if (recording_phase() == RECORDING_NEW)
		recording_begin();
	if (recording_phase() == RECORDING_ON)
		recording_watch_forks();
}
