// A ring is mapped twice, end to end, so that a record that goes over the ring's end can be read,
// and written, as if it went on. For example, of a ring of 65,536 bytes a record of 20 bytes at
// 65,530: its bytes from 65,536 on are, in the second mapping, the ring's first 14.
#include "collect/share.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(SEGMENT_SEALS == (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW), "as the kernel's");

// Where the collector's addresses are limited (ulimit -v) a segment takes no more than it needs.
static bool share_may_be_whole(void)
{
	static _Atomic int may; // 1: yes, -1: no
	struct rlimit limit;

	if (may == 0)
		may = getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY ? 1 : -1;
	return may > 0;
}

static size_t share_mapped_bytes(const struct share *share)
{
	return share->whole ? segment_ring_at(SEGMENT_LANES_MAX) : SEGMENT_RINGS_AT;
}

// The file is the share's, or still the caller's.
static bool share_map(struct share *share, int fd, uint32_t image, uint32_t options,
		      uint64_t sample_bytes, struct err *err)
{
	char *base;

	share->whole = share_may_be_whole();
	base = mmap(NULL, share_mapped_bytes(share), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		return err_errno(err, errno, "cannot map a segment");
	share->fd = fd;
	share_begin(share, base, image, options, sample_bytes, (uint32_t)getpid());
	return true;
}

// A file without a name, as large as all rings would be and sparse: only what is touched takes
// memory.
bool share_open(struct share *share, uint32_t image, uint32_t options, uint64_t sample_bytes,
		struct err *err)
{
	int fd = memfd_create("tidemark", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	memset(share, 0, sizeof *share);
	if (fd < 0)
		return err_errno(err, errno, "cannot make a segment");
	if (ftruncate(fd, (off_t)segment_ring_at(SEGMENT_LANES_MAX)) != 0 ||
	    fcntl(fd, F_ADD_SEALS, SEGMENT_SEALS) != 0)
		err_errno(err, errno, "cannot size a segment");
	else if (share_map(share, fd, image, options, sample_bytes, err))
		return true;
	close(fd);
	return false;
}

// Memory of the kernel's (a file of another kind could block who reads it), large enough, and it
// stays so.
static bool share_is_fit(int fd)
{
	struct stat status;
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & SEGMENT_SEALS) == SEGMENT_SEALS && fstat(fd, &status) == 0 &&
	       status.st_size == (off_t)segment_ring_at(SEGMENT_LANES_MAX);
}

void share_refuse(int fd)
{
	struct segment *segment = MAP_FAILED;

	if (share_is_fit(fd))
		segment =
			mmap(NULL, SEGMENT_HEADER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (segment != MAP_FAILED) {
		atomic_store(&segment->heard, SEGMENT_HEARD_NO);
		munmap(segment, SEGMENT_HEADER_BYTES);
	}
	close(fd);
}

bool share_adopt(struct share *share, int fd, uint32_t image, uint32_t options,
		 uint64_t sample_bytes, struct err *err)
{
	memset(share, 0, sizeof *share);
	if (!share_is_fit(fd))
		err_set(err, ERR_IO, "what it sent is not a segment");
	else if (share_map(share, fd, image, options, sample_bytes, err))
		return true;
	share_refuse(fd);
	return false;
}

void share_close(struct share *share)
{
	if (share->segment == NULL)
		return;
	munmap(share->segment, share_mapped_bytes(share));
	close(share->fd);
	memset(share, 0, sizeof *share);
}

// Punching a hole gives all pages back, and what is read then is zeros. The header is made once
// more with what does not change: options, distance of samples, mark.
bool share_empty(struct share *share, uint32_t image)
{
	const struct segment was = *share->segment;

	if (fallocate(share->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
		      (off_t)segment_ring_at(SEGMENT_LANES_MAX)) != 0)
		return false;
	share_begin(share, share->segment, image, was.options, was.sample_bytes, was.collector_pid);
	memcpy(share->segment->reach_mark, was.reach_mark, sizeof was.reach_mark);
	return true;
}

// A place of twice the size first, then both halves over it: nothing else can come between.
const uint8_t *share_map_ring(const struct share *share, uint32_t lane)
{
	size_t size = segment_ring_bytes(lane);
	off_t at = (off_t)segment_ring_at(lane);
	uint8_t *ring = mmap(NULL, 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT(lane < SEGMENT_LANES_MAX);
	if (ring == MAP_FAILED)
		return NULL;
	for (size_t i = 0; i < 2; i++)
		if (mmap(ring + i * size, size, PROT_READ, MAP_SHARED | MAP_FIXED, share->fd, at) ==
		    MAP_FAILED) {
			munmap(ring, 2 * size);
			return NULL;
		}
	return ring;
}

void share_unmap_ring(const uint8_t *ring, uint32_t lane)
{
	if (ring != NULL)
		munmap((void *)(uintptr_t)ring, 2 * (size_t)segment_ring_bytes(lane));
}

// What the file takes, in blocks of 512 bytes, as stat counts.
uint64_t share_bytes(const struct share *share)
{
	struct stat status;

	if (share->segment == NULL || fstat(share->fd, &status) != 0)
		return 0;
	return (uint64_t)status.st_blocks * 512;
}
