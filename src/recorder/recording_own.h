// recording, between its parts: recording_wait.c (of all systems), recording_linux.c (start, fork,
// stop), recording_memory_linux.c (what is mapped), recording_talk_linux.c (what is said to the
// collector) and recording_spares_linux.c (segments for children that cannot say anything). What is
// declared here is kept over fork.
#pragma once

#include "recorder/recording.h"

// Of the system: how long the collector may be silent until it is asked after, and whether it
// lives. Where it cannot be asked it is dead by then.
HIDDEN uint64_t recording_patience_ns(void);
HIDDEN bool recording_collector_lives(void);

// Our image's number; in a child that has not begun: its parent's.
HIDDEN extern uint32_t recording_image;
HIDDEN extern uint32_t recording_why, recording_error; // why the hello failed: enum segment_why

// The name of the session, which is that of the collector's socket.
HIDDEN extern char recording_session_name[108];

// Of the thread's last fork: the lane it had, and how far it had written.
HIDDEN extern __thread uint32_t recording_fork_lane;
HIDDEN extern __thread uint64_t recording_fork_head;

// What the collector answered. Its descriptors are the caller's to close.
struct recording_answer {
	struct segment_welcome welcome;
	uint32_t count;
	int descriptors[SEGMENT_SPARES_AT_ONCE];
};

// Say hello and hear the answer. `start`: enum segment_start; `pid`: of the process that it is
// about; `spares`: how many are wanted with SEGMENT_START_SPARES. False: recording_why says why, 0:
// the collector knows.
HIDDEN bool recording_talk(uint32_t start, uint32_t pid, uint32_t spares,
			   struct recording_answer *answer);

// Whether an emulator runs this code (qemu-x86_64): the process is the emulator's, and the recorder
// that runs in it outside of the emulation speaks for it.
HIDDEN bool recording_is_emulated(void);

// Keep where the program's arguments are, before it runs.
HIDDEN void recording_find_args(void);
HIDDEN bool recording_knows_args(void);

// Hello of a forked child that goes on at once: as `image`, with the segment that it has made. The
// arguments are known.
// False: it could not be said, and nobody has heard of it.
HIDDEN bool recording_tell(uint32_t pid, uint32_t image, uint64_t time_ns, int segment_fd);

// False: the hello fails, for this reason.
HIDDEN bool recording_fail(uint32_t why, long result);

// The session's clock, mapped once. NULL: not yet.
HIDDEN extern struct segment_clock *recording_clock;

// Map all that a lane and the notes need of a segment, and fill the state with where it is.
// `descriptors` are the session's clock and the segment's file, as they came with the welcome; they
// are the caller's. False: the kernel has no room.
HIDDEN bool recording_map_segment(struct recording_state *state,
				  const struct segment_welcome *welcome, const int descriptors[2]);

// In a forked child: unmap the first `count` mappings, which are its parent's of its segment. The
// clock is kept, and the mapping that begins at `over`, 0 for none.
HIDDEN void recording_drop_shared(uint32_t count, uintptr_t over);

// How many mappings of a segment there are so far, for recording_drop_shared.
HIDDEN uint32_t recording_count_shared(void);

// A part of a segment, or the clock page. NULL: the kernel has no room.
HIDDEN void *recording_map_part(int fd, uint32_t part_at, size_t bytes);

// The ring of lane `lane`, at whose first page *next is mapped; *next moves on to the next one's.
// `noted`: a forked child that gets a segment of its own unmaps it.
HIDDEN uint8_t *recording_map_ring_at(uint8_t **next, uint32_t lane, bool noted);

// In a forked child: record into a spare. False: there is none, and nothing has changed.
HIDDEN bool recording_take_spare(struct recording_state *state, struct segment_clock *clock);

// Rings of the spare that the process records into, mapped before. NULL: this one was not.
HIDDEN uint8_t *recording_ring_of_spare(uint32_t lane);

// Before a process is sealed: some spares that a child can record into without any call.
HIDDEN void recording_prepare_spares(void);

// Unmap all spares. In a forked child that has a segment of its own: they were its parent's.
HIDDEN void recording_drop_spares(void);

// How many lanes a child of a sealed process has.
enum { RECORDING_SPARE_LANES = 8 };
