// share: the collector's side of a segment (wire/segment.h): its file, and where it is mapped.
//
// The header, the lanes' words and the frames are mapped at once; a lane's ring, twice end to end,
// when it is first looked at. Where addresses are plenty all rings are mapped with the header, once
// each: that is enough for a lane until its first record goes over its ring's end, which few lanes
// of a short process or thread ever do. What the guest writes there is not to be trusted.
#pragma once

#include "base/err.h"
#include "wire/segment.h"

struct share {
	int fd;
	uint64_t bytes; // of the file, rings included
	struct segment *segment;
	struct lane_shared *lanes;
	struct segment_frame *frames;
	bool whole; // the rings are mapped after the frames, once each
};

// Make a segment for image `image`. Where the size of files is limited it has room for fewer lanes,
// for one at least: less is an error, which says how high the limit has to be.
bool share_open(struct share *share, uint32_t image, uint32_t options, uint64_t sample_bytes,
		struct err *err);

// Linux: the same with the file `fd` that a guest has made. It is taken: refused where that fails.
// -1: it was lost on the way.
bool share_adopt(struct share *share, int fd, uint32_t image, uint32_t options,
		 uint64_t sample_bytes, struct err *err);

// Whether the limits of this process (RLIMIT_FSIZE, RLIMIT_AS, RLIMIT_NOFILE) let it make a segment
// and read it. False: `*err` says which does not, and how high it has to be.
bool share_may_open(struct err *err);

// Linux: tell the guest that made it that nobody will read the file `fd`, which is taken.
void share_refuse(int fd);

void share_close(struct share *share); // accepts { 0 } and a share that was closed

// Linux: a segment of its own for what `from` has in its memory, which is not written to any more.
bool share_copy(struct share *share, const struct share *from, struct err *err);

// For share_open: the head of the segment, which is mapped at `base`; `bytes` is set.
void share_begin(struct share *share, void *base, uint32_t image, uint32_t options,
		 uint64_t sample_bytes, uint32_t collector_pid);

// Its memory is given back and all is 0, for another image with the same options, by a guest that
// has it mapped. False: the system cannot.
bool share_empty(struct share *share, uint32_t image);

// Lane `lane`'s ring as the segment has it, for as long as nothing went over its end. NULL: it
// has to be mapped twice.
const uint8_t *share_plain_ring(const struct share *share, uint32_t lane);

// Map lane `lane`'s ring twice. NULL when the system refuses.
const uint8_t *share_map_ring(const struct share *share, uint32_t lane);
void share_unmap_ring(const uint8_t *ring, uint32_t lane); // NULL is allowed

// Bytes of memory that the segment takes.
uint64_t share_bytes(const struct share *share);
