// Lane 0 is shared by all threads, under a lock. For example, module 3 was unmapped:
//
//     02 00 04 00    NOTE_MODULE_GONE, 4 bytes follow
//     03 00 00 00    module 3
//
// The head of lane 0 is published when the record is whole, and so is what speaks of it only later:
// an event with a frame of a new module is published after the note that says what module that is.
#include "recorder/notes.h"

#include "recorder/kernel.h"
#include "recorder/recording.h"
#include "recorder/text.h"

enum { NOTES_PATH_MAX = 4096, NOTES_BYTES_MAX = 4096 + 128 };

// A record being put together, directly in the ring.
struct notes_record {
	uint8_t *start;
	uint8_t *at;
};

// Take the lock and wait for room. False: nothing can be written (and the lock is not held).
//
// Room for the largest record is waited for before the record is begun, so that none of the
// functions below can fail in the middle. The lock is held until notes_close.
static bool notes_open(struct notes_record *record, uint16_t type)
{
	struct recording_state *state = recording_state;
	struct recording_wait wait = { 0 };

	if (recording_phase() != RECORDING_ON && recording_phase() != RECORDING_STARTING)
		return false;
	recording_lock(&state->notes_lock);
	while (state->notes_head + NOTES_BYTES_MAX >
	       __atomic_load_n(&state->shared[0].tail, __ATOMIC_ACQUIRE) +
		       SEGMENT_RING_NOTES_BYTES) {
		if (recording_wait_is_vain(&wait)) {
			recording_unlock(&state->notes_lock);
			return false;
		}
	}
	record->start = state->notes_ring + (state->notes_head & (SEGMENT_RING_NOTES_BYTES - 1));
	record->at = record->start + 4;
	memcpy(record->start, &type, 2);
	return true;
}

static void notes_put(struct notes_record *record, const void *bytes, size_t size)
{
	memcpy(record->at, bytes, size);
	record->at += size;
}

// Without a NUL: the record's length says where it ends. What is longer than a path can be is cut.
static void notes_put_text(struct notes_record *record, const char *text)
{
	size_t length = text_length(text);

	notes_put(record, text, length < NOTES_PATH_MAX ? length : NOTES_PATH_MAX);
}

// The length is written last, and then the head is moved: a reader sees all of the record or
// nothing.
static void notes_close(struct notes_record *record)
{
	struct recording_state *state = recording_state;
	uint16_t length = (uint16_t)(record->at - record->start - 4);

	memcpy(record->start + 2, &length, 2);
	state->notes_head += (uint64_t)(record->at - record->start);
	__atomic_store_n(&state->shared[0].head, state->notes_head, __ATOMIC_RELEASE);
	recording_unlock(&state->notes_lock);
}

// Here a length is written before the path, as the record has something before it of a fixed size:
// a build-id of 32 bytes, filled up with zeros.
void notes_module(uint32_t id, uint64_t start, uint64_t end, uint64_t bias, const uint8_t *build_id,
		  uint32_t build_id_length, const char *path)
{
	struct notes_record record;
	uint8_t padded[32] = { 0 };
	uint8_t length8 = (uint8_t)build_id_length;
	size_t path_length = text_length(path);
	uint16_t length16 = (uint16_t)(path_length < NOTES_PATH_MAX ? path_length : NOTES_PATH_MAX);

	if (!notes_open(&record, NOTE_MODULE))
		return;
	if (build_id)
		memcpy(padded, build_id, build_id_length);
	notes_put(&record, &id, 4);
	notes_put(&record, &start, 8);
	notes_put(&record, &end, 8);
	notes_put(&record, &bias, 8);
	notes_put(&record, &length8, 1);
	notes_put(&record, padded, sizeof(padded));
	notes_put(&record, &length16, 2);
	notes_put(&record, path, length16);
	notes_close(&record);
}

void notes_module_gone(uint32_t id)
{
	struct notes_record record;

	if (!notes_open(&record, NOTE_MODULE_GONE))
		return;
	notes_put(&record, &id, 4);
	notes_close(&record);
}

void notes_language(uint32_t module, const char *name, const char *version)
{
	struct notes_record record;

	if (!notes_open(&record, NOTE_LANGUAGE))
		return;
	notes_put(&record, &module, 4);
	notes_put_text(&record, name);
	if (version[0]) {
		notes_put(&record, " ", 1);
		notes_put_text(&record, version);
	}
	notes_close(&record);
}

void notes_code(uint32_t number, const char *name, const char *file)
{
	struct notes_record record;
	uint16_t length = (uint16_t)text_length(name);

	if (!notes_open(&record, NOTE_CODE))
		return;
	notes_put(&record, &number, 4);
	notes_put(&record, &length, 2);
	notes_put(&record, name, length);
	notes_put_text(&record, file);
	notes_close(&record);
}

// The image is about to be another one. This is the last that is heard of the old one, if the call
// succeeds.
void notes_exec(uint32_t reason, const char *path)
{
	struct notes_record record;

	uint32_t pid = kernel_process_id(); // a vfork child writes into its parent's lane

	if (recording_is_over() || !notes_open(&record, NOTE_EXEC))
		return;
	notes_put(&record, &reason, 4);
	notes_put(&record, &pid, 4);
	notes_put_text(&record, path);
	notes_close(&record);
}

// It did not: `error` is a positive errno.
void notes_exec_failed(uint32_t error)
{
	struct notes_record record;
	uint32_t pid = kernel_process_id();

	if (!notes_open(&record, NOTE_EXEC_FAILED))
		return;
	notes_put(&record, &error, 4);
	notes_put(&record, &pid, 4);
	notes_close(&record);
}

// Open a note of a place in a lane.
//
// `head` bytes of the lane were written before it: that is its place among the lane's events.
// `time_ns` is a time of the recording.
static bool notes_open_place(struct notes_record *record, uint16_t type, uint64_t time_ns,
			     uint32_t tid, uint32_t lane, uint64_t head)
{
	if (!notes_open(record, type))
		return false;
	notes_put(record, &time_ns, 8);
	notes_put(record, &tid, 4);
	notes_put(record, &lane, 4);
	notes_put(record, &head, 8);
	return true;
}

// The child's arrival will be paired with it by lane and head.
void notes_fork(uint64_t time_ns, uint32_t tid, uint32_t lane, uint64_t head)
{
	struct notes_record record;

	if (!recording_is_over() && notes_open_place(&record, NOTE_FORK, time_ns, tid, lane, head))
		notes_close(&record);
}

void notes_fork_failed(uint32_t tid)
{
	struct notes_record record;

	if (!notes_open(&record, NOTE_FORK_FAILED))
		return;
	notes_put(&record, &tid, 4);
	notes_close(&record);
}

// `length` bytes at `name`, without a NUL.
void notes_mark(uint64_t time_ns, uint32_t tid, uint32_t lane, uint64_t head, const char *name,
		uint32_t length)
{
	struct notes_record record;

	if (!notes_open_place(&record, NOTE_MARK, time_ns, tid, lane, head))
		return;
	notes_put(&record, name, length);
	notes_close(&record);
}

void notes_pause(uint64_t time_ns, uint32_t tid, uint32_t lane, uint64_t head, bool paused)
{
	struct notes_record record;
	uint8_t byte = paused;

	if (!notes_open_place(&record, NOTE_PAUSE, time_ns, tid, lane, head))
		return;
	notes_put(&record, &byte, 1);
	notes_close(&record);
}

void notes_pool(uint32_t id, const char *name, uint32_t length)
{
	struct notes_record record;

	if (!notes_open(&record, NOTE_POOL))
		return;
	notes_put(&record, &id, 4);
	notes_put(&record, name, length);
	notes_close(&record);
}

// `device` and `inode` as the kernel's stat has them, widened.
void notes_file(uint32_t id, uint64_t device, uint64_t inode, const char *path)
{
	struct notes_record record;

	if (!notes_open(&record, NOTE_FILE))
		return;
	notes_put(&record, &id, 4);
	notes_put(&record, &device, 8);
	notes_put(&record, &inode, 8);
	notes_put_text(&record, path);
	notes_close(&record);
}

// A part of /proc/self/maps, of whole or of cut lines: the collector puts the parts of one `list`
// together.
void notes_maps(uint32_t list, const char *text)
{
	struct notes_record record;

	if (!notes_open(&record, NOTE_MAPS))
		return;
	notes_put(&record, &list, 4);
	notes_put_text(&record, text);
	notes_close(&record);
}

void notes_calls(uint32_t how, const char *why)
{
	struct notes_record record;

	if (!notes_open(&record, NOTE_CALLS))
		return;
	notes_put(&record, &how, 4);
	notes_put_text(&record, why);
	notes_close(&record);
}

void notes_allocator(uint32_t seen, const char *name, const char *path)
{
	struct notes_record record;

	if (!notes_open(&record, NOTE_ALLOCATOR))
		return;
	notes_put(&record, &seen, 4);
	notes_put_text(&record, name);
	if (path[0]) {
		notes_put(&record, " ", 1);
		notes_put_text(&record, path);
	}
	notes_close(&record);
}

// Where the program may have memory: [low, end).
void notes_space(uint64_t low, uint64_t end)
{
	struct notes_record record;

	if (!notes_open(&record, NOTE_SPACE))
		return;
	notes_put(&record, &low, 8);
	notes_put(&record, &end, 8);
	notes_close(&record);
}

void notes_message(uint32_t message, const char *text)
{
	struct notes_record record;

	if (!notes_open(&record, NOTE_MESSAGE))
		return;
	notes_put(&record, &message, 4);
	notes_put_text(&record, text);
	notes_close(&record);
}
