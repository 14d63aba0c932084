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

// Without a NUL: the record's length says where it ends. What is longer than a path can be is cut.
static size_t notes_length(const char *text)
{
	size_t length = text_length(text);

	return length < NOTES_PATH_MAX ? length : NOTES_PATH_MAX;
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

// A part of a record.
struct notes_part {
	const void *at;
	size_t size;
};

static void notes_write(uint16_t type, const struct notes_part *parts, size_t count)
{
	struct notes_record record;

	if (!notes_open(&record, type))
		return;
	for (size_t i = 0; i < count; i++) {
		memcpy(record.at, parts[i].at, parts[i].size);
		record.at += parts[i].size;
	}
	notes_close(&record);
}

#define NOTES_WRITE(type, ...)                                           \
	notes_write(type, (const struct notes_part[]){ __VA_ARGS__ },    \
		    sizeof((const struct notes_part[]){ __VA_ARGS__ }) / \
			    sizeof(struct notes_part))
#define NOTES_OF(value)                 \
	{                               \
		&(value), sizeof(value) \
	}
#define NOTES_TEXT(text)                 \
	{                                \
		text, notes_length(text) \
	}

// Here a length is written before the path, as the record has something before it of a fixed size:
// a build-id of 32 bytes, filled up with zeros.
void notes_module(uint32_t id, uint64_t start, uint64_t end, uint64_t bias, const uint8_t *build_id,
		  uint32_t build_id_length, const char *path)
{
	uint8_t padded[32] = { 0 };
	uint8_t length8 = (uint8_t)build_id_length;
	uint16_t length16 = (uint16_t)notes_length(path);

	if (build_id)
		memcpy(padded, build_id, build_id_length);
	NOTES_WRITE(NOTE_MODULE, NOTES_OF(id), NOTES_OF(start), NOTES_OF(end), NOTES_OF(bias),
		    NOTES_OF(length8), NOTES_OF(padded), NOTES_OF(length16), { path, length16 });
}

void notes_module_gone(uint32_t id)
{
	NOTES_WRITE(NOTE_MODULE_GONE, NOTES_OF(id));
}

void notes_language(uint32_t module, const char *name, const char *version)
{
	NOTES_WRITE(NOTE_LANGUAGE, NOTES_OF(module), NOTES_TEXT(name), { " ", version[0] != 0 },
		    NOTES_TEXT(version));
}

void notes_code(uint32_t number, const char *name, const char *file)
{
	uint16_t length = (uint16_t)text_length(name);

	NOTES_WRITE(NOTE_CODE, NOTES_OF(number), NOTES_OF(length), { name, length },
		    NOTES_TEXT(file));
}

// The image is about to be another one. This is the last that is heard of the old one, if the call
// succeeds.
void notes_exec(uint32_t reason, const char *path)
{
	uint32_t pid = kernel_process_id(); // a vfork child writes into its parent's lane

	if (!recording_is_over())
		NOTES_WRITE(NOTE_EXEC, NOTES_OF(reason), NOTES_OF(pid), NOTES_TEXT(path));
}

// It did not: `error` is a positive errno.
void notes_exec_failed(uint32_t error)
{
	uint32_t pid = kernel_process_id();

	NOTES_WRITE(NOTE_EXEC_FAILED, NOTES_OF(error), NOTES_OF(pid));
}

// A place in a lane: `head` bytes of the lane were written before it, that is its place among the
// lane's events. `time_ns` is a time of the recording.
#define NOTES_PLACE NOTES_OF(time_ns), NOTES_OF(tid), NOTES_OF(lane), NOTES_OF(head)

// The child's arrival will be paired with it by lane and head.
void notes_fork(uint64_t time_ns, uint32_t tid, uint32_t lane, uint64_t head)
{
	if (!recording_is_over())
		NOTES_WRITE(NOTE_FORK, NOTES_PLACE);
}

void notes_fork_failed(uint32_t tid)
{
	NOTES_WRITE(NOTE_FORK_FAILED, NOTES_OF(tid));
}

// `length` bytes at `name`, without a NUL.
void notes_mark(uint64_t time_ns, uint32_t tid, uint32_t lane, uint64_t head, const char *name,
		uint32_t length)
{
	NOTES_WRITE(NOTE_MARK, NOTES_PLACE, { name, length });
}

void notes_pause(uint64_t time_ns, uint32_t tid, uint32_t lane, uint64_t head, bool paused)
{
	uint8_t byte = paused;

	NOTES_WRITE(NOTE_PAUSE, NOTES_PLACE, NOTES_OF(byte));
}

void notes_waited(uint64_t time_ns, uint32_t tid, uint32_t lane, uint64_t head, uint32_t pid,
		  uint32_t status)
{
	NOTES_WRITE(NOTE_WAITED, NOTES_PLACE, NOTES_OF(pid), NOTES_OF(status));
}

void notes_pool(uint32_t id, const char *name, uint32_t length)
{
	NOTES_WRITE(NOTE_POOL, NOTES_OF(id), { name, length });
}

// `device` and `inode` as the kernel's stat has them, widened.
void notes_file(uint32_t id, uint64_t device, uint64_t inode, const char *path)
{
	NOTES_WRITE(NOTE_FILE, NOTES_OF(id), NOTES_OF(device), NOTES_OF(inode), NOTES_TEXT(path));
}

// A part of /proc/self/maps, of whole or of cut lines: the collector puts the parts of one `list`
// together.
void notes_maps(uint32_t list, const char *text)
{
	NOTES_WRITE(NOTE_MAPS, NOTES_OF(list), NOTES_TEXT(text));
}

void notes_calls(uint32_t how, const char *why)
{
	NOTES_WRITE(NOTE_CALLS, NOTES_OF(how), NOTES_TEXT(why));
}

void notes_allocator(uint32_t seen, const char *name, const char *path)
{
	NOTES_WRITE(NOTE_ALLOCATOR, NOTES_OF(seen), NOTES_TEXT(name), { " ", path[0] != 0 },
		    NOTES_TEXT(path));
}

// Where the program may have memory: [low, end).
void notes_space(uint64_t low, uint64_t end)
{
	NOTES_WRITE(NOTE_SPACE, NOTES_OF(low), NOTES_OF(end));
}

void notes_message(uint32_t message, const char *text)
{
	NOTES_WRITE(NOTE_MESSAGE, NOTES_OF(message), NOTES_TEXT(text));
}
