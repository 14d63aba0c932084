// What the kernel counts is what /proc/self/status says, in KiB. For example, a program under a
// limit of 70,000 KiB of addresses has VmSize 9,000, of which 6,000 are ours, and asks for 65,536:
// together 74,536, which is refused. Without ours it would be 68,536: the recorder was in the way.
//
// Of data and of what is locked it is not known how much is ours: not more than all of it. So there
// it is only said that it may have been in the way.
#include "recorder/refused_linux.h"

#include "recorder/kernel.h"
#include "recorder/notes.h"
#include "recorder/own_linux.h"
#include "recorder/recording.h"
#include "recorder/text.h"
#include "wire/lane_event.h"

enum {
	REFUSED_ENOMEM = 12,
	REFUSED_EAGAIN = 11,
	REFUSED_LOOKS = 256, // in a process: one that is refused for ever is not looked at for ever
	REFUSED_KIB = 1024,
};

// The number after `name` in /proc/self/status, in bytes; 0: it is not there.
static uint64_t refused_figure(const char *status, const char *name)
{
	const char *at = NULL;
	uint64_t kib = 0;

	for (; *status && !at; status++)
		at = text_after(status, name);
	while (at && (*at == ' ' || *at == '\t'))
		at++;
	for (; at && *at >= '0' && *at <= '9'; at++)
		kib = kib * 10 + (uint64_t)(*at - '0');
	return kib * REFUSED_KIB;
}

// Whether `has` and `size` are more than the limit, and without `ours` they are not.
static bool refused_for_ours(uint64_t has, uint64_t size, uint64_t ours, uint64_t limit)
{
	uint64_t without = has - (ours < has ? ours : has);

	return limit != UINT64_MAX && has + size > limit && without + size <= limit;
}

static void refused_tell(const char *why, uint64_t ours)
{
	char text[320];
	size_t length;

	text_put_fd(text, why, (uint32_t)(ours / REFUSED_KIB));
	length = text_length(text);
	memcpy(text + length, ")", 2);
	notes_message(NOTE_MESSAGE_OTHER, text);
}

// Under files_lock. True: it is told.
static bool refused_look_at(const char *status, uint64_t size, bool locks)
{
	uint64_t ours = own_bytes();

	if (!locks && refused_for_ours(refused_figure(status, "\nVmSize:"), size, ours,
				       kernel_limit(KERNEL_LIMIT_ADDRESSES)))
		refused_tell("a call of its on memory failed for its limit of addresses "
			     "(RLIMIT_AS, ulimit -v), and would not have without the recorder, "
			     "whose mappings count (try: a limit that is higher by their size, in "
			     "KiB: ",
			     ours);
	else if (!locks && refused_for_ours(refused_figure(status, "\nVmData:"), size, ours,
					    kernel_limit(KERNEL_LIMIT_DATA)))
		refused_tell("a call of its on memory failed for its limit of data (RLIMIT_DATA, "
			     "ulimit -d), and may not have without the recorder, whose mappings "
			     "count (try: a limit that is higher by their size, in KiB: ",
			     ours);
	else if (refused_for_ours(refused_figure(status, locks && !size ? "\nVmSize:" : "\nVmLck:"),
				  size, ours, kernel_limit(KERNEL_LIMIT_LOCKED)))
		refused_tell("a call of its on memory failed for its limit of what is locked "
			     "(RLIMIT_MEMLOCK, ulimit -l), and may not have without the recorder, "
			     "whose mappings count (try: a limit that is higher by their size, in "
			     "KiB: ",
			     ours);
	else
		return false;
	return true;
}

COLD void refused_look(uint32_t error, uint64_t size, bool locks)
{
	static _Atomic uint32_t looks; // REFUSED_LOOKS: it is told
	struct recording_state *state = recording_state;
	uint64_t signals;
	long fd, got;

	if ((error != REFUSED_ENOMEM && error != REFUSED_EAGAIN) || kernel_sealed ||
	    recording_phase() != RECORDING_ON ||
	    __atomic_load_n(&looks, __ATOMIC_RELAXED) >= REFUSED_LOOKS)
		return;
	__atomic_fetch_add(&looks, 1, __ATOMIC_RELAXED);
	signals = kernel_block_signals();
	fd = kernel(__NR_openat, KERNEL_AT_FDCWD, "/proc/self/status", 0x80000 /* O_CLOEXEC */, 0);
	if (!kernel_failed(fd)) {
		recording_lock(&state->files_lock);
		got = kernel(__NR_read, fd, state->file_path, sizeof(state->file_path) - 1);
		state->file_path[got > 0 ? got : 0] = 0;
		if (refused_look_at(state->file_path, size, locks))
			__atomic_store_n(&looks, REFUSED_LOOKS, __ATOMIC_RELAXED);
		recording_unlock(&state->files_lock);
		kernel(__NR_close, fd);
	}
	kernel_restore_signals(signals);
}
