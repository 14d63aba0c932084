// What a program says by tidemark.h goes through a table of functions, whose size says which of
// them this recorder has: a program that was built with a newer header finds a smaller size, and
// does not call what is not there.
//
// A mark or a pause belongs between what the thread wrote and what it writes next. So the lane is
// busy while the note is written, with the lane's head in it: at head 4,096, the mark is after the
// event that ends there and before the one that begins there, whatever other threads do.
#include "recorder/client.h"

#include "recorder/clock.h"
#include "recorder/event.h"
#include "recorder/notes.h"
#include "recorder/python.h"
#include "recorder/recording.h"
#include "recorder/vm.h"

// The table, as tidemark.h declares it.
struct client_table {
	size_t size;
	void (*mark)(const char *name, const char *suffix);
	void (*name_thread)(const char *name);
	void (*pause)(int paused);
	unsigned (*pool_create)(const char *name);
	void (*pool_alloc)(unsigned pool, const void *block, size_t bytes);
	void (*pool_free)(unsigned pool, const void *block);
	void (*pool_end)(unsigned pool, int destroy);
};

enum { CLIENT_TEXT_MAX = 255, CLIENT_NAME_BYTES = 16 };

uint32_t client_state;

// Kept over fork: a child goes on numbering where its parent was.
static _Atomic uint32_t client_pools = 1;

// Where the walk of the stack begins: to be taken in the function that the program called.
#define CLIENT_FRAME ((const uintptr_t *)__builtin_frame_address(0))

// A text of the program's, cut to what we keep.
struct client_text {
	char bytes[CLIENT_TEXT_MAX + 16]; // and a suffix
	uint32_t length;
};

static void client_add_text(struct client_text *text, const char *from, uint32_t max)
{
	while (from && *from && text->length < max)
		text->bytes[text->length++] = *from++;
}

uint32_t client_pools_count(void)
{
	return __atomic_load_n(&client_pools, __ATOMIC_ACQUIRE);
}

void client_begin_paused(void)
{
	// The first lane belongs to the thread that we are in, the only one.
	client_state |= CLIENT_PAUSED;
	notes_pause(clock_now(), kernel_thread_id(), 1, 0, true);
}

// The tick is raised before a note and after it, so that the note has one of its own: what other
// threads did before has an earlier time, and what they do once they know of it a later one. For
// example, a child ends, and its parent marks the end of a test in the same tick: the child's last
// calls are of that test.
static uint64_t client_own_tick(struct lane *lane)
{
	if (!lane->exact)
		return clock_mark();
	clock_set_exact(lane);
	return lane->exact_ns;
}

// What a note of a place says.
struct client_note {
	const struct client_text *mark; // or else
	uint32_t waited, status;        // a child that was waited for, and how it ended; or else
	bool paused;
};

// A note of a place in this thread's lane: what the thread wrote is before it. The lane is busy
// meanwhile, so that no signal handler comes in between.
//
// Both ends of the note raise the tick (client_own_tick): its time is shared with no event.
static void client_note_place(const struct client_note *note)
{
	struct lane *lane = lane_enter();
	uint32_t tid, id;
	uint64_t now_ns, signals;
	uint8_t *at;

	if (!lane)
		return;
	at = lane_at(lane, lane->head);
	now_ns = client_own_tick(lane);
	if (now_ns == SEGMENT_CLOCK_STOP) {
		event_stopped(lane);
	} else {
		tid = kernel_thread_id();
		id = (uint32_t)lane->id;
		signals = kernel_block_signals();
		if (note->mark)
			notes_mark(now_ns, tid, id, lane->head, note->mark->bytes,
				   note->mark->length);
		else if (note->waited)
			notes_waited(now_ns, tid, id, lane->head, note->waited, note->status);
		else
			notes_pause(now_ns, tid, id, lane->head, note->paused);
		client_own_tick(lane);
		kernel_restore_signals(signals);
	}
	lane_leave(lane, at, at);
}

void client_waited(uint32_t pid, uint32_t status)
{
	if (recording_phase() == RECORDING_ON)
		client_note_place(&(struct client_note){ .waited = pid, .status = status });
}

// Whether this is the mark at which reachable blocks are looked for.
static bool client_is_searched(const struct client_text *mark)
{
	struct recording_state *state = recording_state;
	const char *wanted = state ? state->segment->reach_mark : "";
	uint32_t i = 0;

	while (i < mark->length && i < SEGMENT_MARK_BYTES && wanted[i] == mark->bytes[i])
		i++;
	return i > 0 && i == mark->length && i < SEGMENT_MARK_BYTES && wanted[i] == '\0';
}

static void client_mark(const char *name, const char *suffix)
{
	struct client_text text;

	text.length = 0;
	client_add_text(&text, name, CLIENT_TEXT_MAX);
	client_add_text(&text, suffix, CLIENT_TEXT_MAX + 16);
	client_note_place(&(struct client_note){ .mark = &text });
	if (client_is_searched(&text))
		vm_mark();
}

// The note of a pause comes before the flag is set, and that of a resume after it was cleared: an
// event between the two notes is of a thread that was in a call already.
static void client_pause(int paused)
{
	// What is not recorded lies between the notes.
	if (paused && !(__atomic_load_n(&client_state, __ATOMIC_ACQUIRE) & CLIENT_PAUSED))
		client_note_place(&(struct client_note){ .paused = true });
	if (paused)
		__atomic_fetch_or(&client_state, CLIENT_PAUSED, __ATOMIC_ACQ_REL);
	else if (__atomic_fetch_and(&client_state, ~(uint32_t)CLIENT_PAUSED, __ATOMIC_ACQ_REL) &
		 CLIENT_PAUSED)
		client_note_place(&(struct client_note){ .paused = false });
}

// A recording can also be resumed from outside (tidemark's own command), which raises `resumes`: a
// thread that finds another number than the last one resumes for all.
bool client_stays_paused(void)
{
	struct recording_state *state = recording_state;
	uint32_t resumes;

	if (!(__atomic_load_n(&client_state, __ATOMIC_RELAXED) & CLIENT_PAUSED))
		return false;
	if (!state || recording_phase() != RECORDING_ON)
		return true;
	resumes = __atomic_load_n(&state->segment->resumes, __ATOMIC_ACQUIRE);
	if (__atomic_exchange_n(&state->resumes, resumes, __ATOMIC_ACQ_REL) == resumes)
		return true;
	client_pause(0);
	return false;
}

void client_read_frames(void)
{
	__atomic_fetch_or(&client_state, CLIENT_READS_FRAMES, __ATOMIC_ACQ_REL);
}

void client_language_heaps(void)
{
	__atomic_fetch_or(&client_state, CLIENT_LANGUAGE_HEAPS, __ATOMIC_ACQ_REL);
}

// A record of 22 bytes: three words of head, and 16 bytes of name with a NUL.
void client_name_thread(const char *name)
{
	struct lane *lane = lane_enter();
	const uint16_t head[3] = { LANE_EXTRA, LANE_EXTRA_NAME, CLIENT_NAME_BYTES };
	uint8_t *start, *at;

	if (!lane)
		return;
	start = lane_at(lane, lane->head);
	at = start;
	__builtin_memcpy(at, head, sizeof(head));
	at += sizeof(head);
	for (uint32_t i = 0; i < CLIENT_NAME_BYTES; i++)
		*at++ = i + 1 < CLIENT_NAME_BYTES && name && *name ? (uint8_t)*name++ : 0;
	lane_leave(lane, start, at);
}

// 0: nothing is recorded. The note is written under a lock, which a signal handler of this thread
// must not come to wait for.
static unsigned client_pool_create(const char *name)
{
	struct client_text text;
	uint64_t signals;
	uint32_t pool;

	if (!recording_begin())
		return 0;
	text.length = 0;
	client_add_text(&text, name, CLIENT_TEXT_MAX);
	pool = __atomic_fetch_add(&client_pools, 1, __ATOMIC_ACQ_REL);
	signals = kernel_block_signals();
	notes_pool(pool, text.bytes, text.length);
	kernel_restore_signals(signals);
	return pool;
}

// One call on a block of a pool.
struct client_call {
	uint32_t pool;
	uint8_t what; // enum lane_pool
	uint64_t address;
	uint64_t size;
	const uintptr_t *frame;
};

// The record, up to its end. NULL: nothing was written.
//
// Two bytes between head and pool are filled in at the end, when it is known whether the slot was
// taken over and whether there is a stack.
static uint8_t *client_put(struct lane *lane, const uint8_t *start, uint8_t *at,
			   const struct client_call *call)
{
	uint8_t *record = at;
	uint16_t head[3] = { LANE_EXTRA, LANE_EXTRA_POOL, 0 };
	uint64_t seq;
	uint8_t flags = 0;

	at += sizeof(head) + 2;
	__builtin_memcpy(at, &call->pool, 4);
	at += 4;
	if (order_touch(lane, lane_pool_address(call->pool), &seq)) {
		flags |= LANE_POOL_OWNER;
		event_store(at, seq);
		at += 8;
	}
	event_store(at, call->address);
	event_store(at + 8, call->size);
	at += 16;
	if (call->what != LANE_POOL_FREE || lane->free_stacks) {
		if (capture_take(&lane->capture, call->frame)) {
			const uint8_t *edit = at;

			flags |= LANE_POOL_STACK;
			at = event_put_stack(lane, start, at);
			if (!at)
				return NULL;
			if (lane->verify)
				event_follow(lane, edit);
		}
		if (lane->verify) {
			event_verify(lane, call->frame);
			event_verify_edit(lane);
		}
	}
	head[2] = (uint16_t)((size_t)(at - record) - sizeof(head));
	__builtin_memcpy(record, head, sizeof(head));
	record[sizeof(head)] = call->what;
	record[sizeof(head) + 1] = flags;
	return at;
}

// The time, where it is not what the lane said last, as a record of its own. NULL: no more.
static uint8_t *client_put_time(struct lane *lane, uint8_t *at)
{
	const uint16_t head = LANE_TIME64;
	uint64_t now_ns = clock_turn(lane);

	if (now_ns == SEGMENT_CLOCK_STOP) {
		event_stopped(lane);
		return NULL;
	}
	if (now_ns <= lane->time_ns)
		return at;
	lane->time_ns = now_ns;
	__builtin_memcpy(at, &head, 2);
	event_store(at + 2, now_ns);
	return at + 10;
}

// A pool's slot is by the pool's number, not by the block's address: all events of a pool are in
// one order.
static void client_event(const struct client_call *call)
{
	struct lane *lane = lane_enter();
	uint8_t *start, *at;

	if (!lane)
		return;
	if (python_on)
		python_write(lane);
	start = lane_at(lane, lane->head);
	at = start;
	if (__atomic_load_n(lane->tick, __ATOMIC_RELAXED) != lane->time_ns)
		at = client_put_time(lane, at);
	if (at)
		at = client_put(lane, start, at, call);
	lane_leave(lane, start, at ? at : start);
}

static void client_pool_alloc(unsigned pool, const void *block, size_t bytes)
{
	struct client_call call = { pool, LANE_POOL_ALLOC, (uintptr_t)block, bytes, CLIENT_FRAME };

	if (!(client_state & CLIENT_PAUSED))
		client_event(&call);
}

static void client_pool_free(unsigned pool, const void *block)
{
	struct client_call call = { pool, LANE_POOL_FREE, (uintptr_t)block, 0, CLIENT_FRAME };

	client_event(&call);
}

static void client_pool_end(unsigned pool, int destroy)
{
	struct client_call call = { pool, destroy ? LANE_POOL_DESTROY : LANE_POOL_RESET, 0, 0,
				    CLIENT_FRAME };

	client_event(&call);
}

CLIENT_VISIBLE const struct client_table tidemark_client_v1 = {
	.size = sizeof(struct client_table),
	.mark = client_mark,
	.name_thread = client_name_thread,
	.pause = client_pause,
	.pool_create = client_pool_create,
	.pool_alloc = client_pool_alloc,
	.pool_free = client_pool_free,
	.pool_end = client_pool_end,
};
