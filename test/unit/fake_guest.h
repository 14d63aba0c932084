// fake_guest: a recorder made of a few functions, for tests of the collector.
//
// It says hello, maps its segment, and writes records into lanes as wire/lane_event.h describes,
// with every field under the test's control, so that a test can also write nonsense.
#pragma once

#include "wire/lane_event.h"
#include "wire/segment.h"
#include "wire/varint.h"

#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct fake_guest {
	struct segment_welcome welcome;
	struct segment_clock *clock;
	struct segment *segment;
	struct lane_shared *lanes;
	struct segment_frame *frames;
	int segment_fd, clock_fd;
	bool refused;
	uint32_t frames_count, modules_count;
	uint64_t notes_head;
};

struct fake_lane {
	struct fake_guest *guest;
	uint32_t number;
	uint8_t *ring; // mapped twice
	uint32_t ring_bytes;
	uint64_t head;
	uint64_t address; // of the last event
	uint64_t time_ns;
	uint8_t *record; // the record being made
	size_t length;
};

static inline int fake_connect(const char *socket_name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t length = offsetof(struct sockaddr_un, sun_path) + 1 + strlen(socket_name);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	memcpy(address.sun_path + 1, socket_name, strlen(socket_name));
	for (int i = 0; i < 5000; i++) {
		if (connect(fd, (struct sockaddr *)&address, (socklen_t)length) == 0)
			return fd;
		usleep(1000);
	}
	close(fd);
	return -1;
}

// Say `hello` (whose exe is "/bin/fake" when its length is 0) and map what comes back.
static inline bool fake_join(struct fake_guest *guest, const char *socket_name,
			     struct segment_hello *hello)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(2 * sizeof(int))];
	} control;
	struct iovec part = { &guest->welcome, sizeof guest->welcome };
	struct msghdr message = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof control.bytes,
	};
	int fd = fake_connect(socket_name);
	int fds[2];
	char *base;

	memset(guest, 0, sizeof *guest);
	hello->magic = SEGMENT_MAGIC;
	hello->version = SEGMENT_VERSION;
	hello->pid = (uint32_t)getpid();
	hello->parent_pid = (uint32_t)getppid();
	hello->abi = 64;
	if (hello->start == 0)
		hello->start = SEGMENT_START_EXEC;
	if (hello->exe_length == 0) {
		hello->exe_length = 9;
		memcpy(hello->exe, "/bin/fake", 9);
	}
	if (fd < 0 ||
	    send(fd, hello, offsetof(struct segment_hello, exe) + hello->exe_length, MSG_NOSIGNAL) <
		    0 ||
	    recvmsg(fd, &message, MSG_CMSG_CLOEXEC) != (ssize_t)sizeof guest->welcome) {
		close(fd);
		return false;
	}
	close(fd);
	guest->refused = guest->welcome.refused != 0;
	if (guest->refused)
		return true;
	memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fds);
	guest->clock = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
	base = mmap(NULL, SEGMENT_RINGS_AT, PROT_READ | PROT_WRITE, MAP_SHARED, fds[1], 0);
	guest->clock_fd = fds[0];
	guest->segment_fd = fds[1];
	guest->segment = (struct segment *)(void *)base;
	atomic_store(&guest->segment->joined, 1);
	guest->lanes = (struct lane_shared *)(void *)(base + SEGMENT_LANES_AT);
	guest->frames = (struct segment_frame *)(void *)(base + SEGMENT_FRAMES_AT);
	guest->frames_count = hello->frames_count > 0 ? hello->frames_count : 1;
	guest->modules_count = hello->modules_count > 0 ? hello->modules_count : 1;
	return true;
}

static inline void fake_leave(struct fake_guest *guest)
{
	munmap(guest->segment, SEGMENT_RINGS_AT);
	munmap(guest->clock, 4096);
	close(guest->segment_fd);
	close(guest->clock_fd);
}

// A segment's file as a guest makes it: its size is sealed, or could still be changed.
static inline int fake_segment_file(bool sealed)
{
	int fd = memfd_create("segment", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd >= 0 &&
	    (ftruncate(fd, (off_t)segment_ring_at(SEGMENT_LANES_MAX)) != 0 ||
	     (sealed && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)))) {
		close(fd);
		return -1;
	}
	return fd;
}

static inline uint64_t fake_now(const struct fake_guest *guest)
{
	return atomic_load(&guest->clock->now_ns);
}

// A tick goes by: it is as long as the collector takes to come by, on a busy machine many times 0.1
// ms. What is recorded afterwards is later than all that came before.
static inline void fake_later(const struct fake_guest *guest)
{
	uint64_t now = fake_now(guest);

	while (fake_now(guest) == now && now != SEGMENT_CLOCK_STOP)
		usleep(100);
}

static inline void fake_lane_open(struct fake_lane *lane, struct fake_guest *guest, uint32_t number)
{
	uint32_t size = segment_ring_bytes(number);
	off_t at = (off_t)segment_ring_at(number);
	uint32_t count = atomic_load(&guest->segment->lanes_count);

	memset(lane, 0, sizeof *lane);
	lane->guest = guest;
	lane->number = number;
	lane->ring_bytes = size;
	lane->ring = mmap(NULL, 2 * (size_t)size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (size_t i = 0; i < 2; i++)
		mmap(lane->ring + i * size, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		     guest->segment_fd, at);
	while (count <= number &&
	       !atomic_compare_exchange_weak(&guest->segment->lanes_count, &count, number + 1))
		;
}

static inline void fake_lane_close(struct fake_lane *lane)
{
	munmap(lane->ring, 2 * (size_t)lane->ring_bytes);
}

// Begin a record of at most `size` bytes: wait for room, unless nobody reads any more.
static inline void fake_begin(struct fake_lane *lane, size_t size)
{
	_Atomic uint64_t *tail = &lane->guest->lanes[lane->number].tail;

	while (lane->head + size >
	       atomic_load_explicit(tail, memory_order_acquire) + lane->ring_bytes) {
		if (fake_now(lane->guest) == SEGMENT_CLOCK_STOP)
			break;
		usleep(50); // who yields again and again may get no time for minutes
	}
	lane->record = lane->ring + (lane->head & (lane->ring_bytes - 1));
	lane->length = 0;
}

static inline void fake_put(struct fake_lane *lane, uint64_t value, size_t size)
{
	memcpy(lane->record + lane->length, &value, size);
	lane->length += size;
}

static inline void fake_publish(struct fake_lane *lane)
{
	atomic_store_explicit(&lane->guest->lanes[lane->number].head, lane->head,
			      memory_order_release);
}

// End the record; it is seen once it is published.
static inline void fake_end(struct fake_lane *lane)
{
	lane->head += lane->length;
}

static inline size_t fake_length(uint64_t value)
{
	return value == 0 ? 0 : (size_t)(71 - __builtin_clzll(value)) / 8;
}

struct fake_event {
	uint32_t type; // enum lane_type
	uint64_t address, size;
	uint64_t time_ns; // absolute; 0: the lane's last
	uint64_t owner;   // 0: no marker
	uint8_t align_log2;
	bool edit; // has a stack edit
	uint32_t keep, push, push_flags;
	const uint32_t *frames;
	bool numbered;   // the edit gets `number`
	bool again;      // the edit is the one with `number`; nothing else is said of it
	uint32_t number; // below LANE_EDITS, or from there on of a whole stack
};

// The time is too far from the lane's last one for four bytes: a record of its own says it, and is
// published with the record behind it.
static inline void fake_time64(struct fake_lane *lane, uint64_t time_ns)
{
	fake_put(lane, LANE_TIME64, 2);
	fake_put(lane, time_ns, 8);
	fake_end(lane);
	lane->record += lane->length;
	lane->length = 0;
	lane->time_ns = time_ns;
}

static inline void fake_edit(struct fake_lane *lane, const struct fake_event *event)
{
	if (event->again) {
		fake_put(lane, LANE_KEEP_AGAIN | event->number, 2);
		return;
	}
	fake_put(lane, event->keep | (event->numbered ? LANE_KEEP_NUMBERED : 0u), 2);
	fake_put(lane, event->push | event->push_flags, 2);
	for (uint32_t i = 0; i < event->push; i++)
		fake_put(lane, event->frames[i], 4);
	if (event->numbered)
		fake_put(lane, event->number, 2);
}

// Write an event, without publishing it.
static inline void fake_write(struct fake_lane *lane, const struct fake_event *event)
{
	bool has_address = event->type != LANE_FAILED;
	bool has_size = event->type != LANE_FREE && event->type != LANE_REALLOC_FREE;
	uint64_t delta = varint_zigzag((int64_t)(event->address - lane->address));
	size_t address_length = has_address ? fake_length(delta) : 0;
	size_t size_length = has_size ? fake_length(event->size) : 0;
	bool timed;

	fake_begin(lane, 64 + 4 * (size_t)event->push);
	if (event->time_ns > lane->time_ns && event->time_ns - lane->time_ns > UINT32_MAX)
		fake_time64(lane, event->time_ns);
	timed = event->time_ns > lane->time_ns;
	fake_put(lane,
		 event->type | address_length << LANE_ADDRESS_SHIFT |
			 size_length << LANE_SIZE_SHIFT | (timed ? LANE_TIME : 0u) |
			 (event->owner ? LANE_OWNER : 0u) | (event->edit ? LANE_STACK : 0u),
		 2);
	if (timed) {
		fake_put(lane, event->time_ns - lane->time_ns, 4);
		lane->time_ns = event->time_ns;
	}
	if (event->owner)
		fake_put(lane, event->owner, 8);
	fake_put(lane, delta, address_length);
	if (has_address)
		lane->address = event->address;
	fake_put(lane, event->size, size_length);
	if (event->type == LANE_ALIGNED)
		fake_put(lane, event->align_log2, 1);
	if (event->edit)
		fake_edit(lane, event);
	fake_end(lane);
}

static inline void fake_record(struct fake_lane *lane, const struct fake_event *event)
{
	fake_write(lane, event);
	fake_publish(lane);
}

static inline void fake_thread(struct fake_lane *lane, uint32_t tid, const char *name)
{
	char text[16] = { 0 };
	uint64_t half;

	snprintf(text, sizeof text, "%s", name);
	fake_begin(lane, 22);
	fake_put(lane, LANE_THREAD, 2);
	fake_put(lane, tid, 4);
	memcpy(&half, text, 8);
	fake_put(lane, half, 8);
	memcpy(&half, text + 8, 8);
	fake_put(lane, half, 8);
	fake_end(lane);
	fake_publish(lane);
}

// A frame of the image; returns its number.
static inline uint32_t fake_frame(struct fake_guest *guest, uint64_t pc, uint32_t module)
{
	guest->frames[guest->frames_count] = (struct segment_frame){ .pc = pc, .module = module };
	atomic_store(&guest->segment->frames_count, guest->frames_count + 1);
	return guest->frames_count++;
}

// Begin a note in lane 0, opened with fake_lane_open; put the payload; then fake_note_end.
static inline void fake_note(struct fake_lane *notes, uint16_t type)
{
	fake_begin(notes, 8192);
	fake_put(notes, type, 2);
	fake_put(notes, 0, 2);
}

static inline void fake_note_end(struct fake_lane *notes)
{
	uint16_t length = (uint16_t)(notes->length - 4);

	memcpy(notes->record + 2, &length, 2);
	fake_end(notes);
	fake_publish(notes);
}

static inline uint32_t fake_module(struct fake_lane *notes, uint64_t start, const char *path)
{
	uint32_t id = notes->guest->modules_count++;

	fake_note(notes, NOTE_MODULE);
	fake_put(notes, id, 4);
	fake_put(notes, start, 8);
	fake_put(notes, start + 0x1000, 8);
	fake_put(notes, start, 8);
	fake_put(notes, 0, 1);
	for (int i = 0; i < 4; i++)
		fake_put(notes, 0, 8);
	fake_put(notes, strlen(path), 2);
	for (size_t i = 0; i < strlen(path); i++)
		fake_put(notes, (uint8_t)path[i], 1);
	fake_note_end(notes);
	return id;
}

// A mark or a fork, behind what `lane` (NULL: none) has written so far.
static inline void fake_place(struct fake_lane *notes, uint16_t type, uint64_t time_ns,
			      const struct fake_lane *lane, const char *name)
{
	fake_note(notes, type);
	fake_put(notes, time_ns, 8);
	fake_put(notes, (uint64_t)getpid(), 4);
	fake_put(notes, lane != NULL ? lane->number : 0, 4);
	fake_put(notes, lane != NULL ? lane->head : 0, 8);
	for (size_t i = 0; name != NULL && i < strlen(name); i++)
		fake_put(notes, (uint8_t)name[i], 1);
	fake_note_end(notes);
}
