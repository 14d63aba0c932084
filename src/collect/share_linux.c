// A ring is mapped twice, end to end, so that a record that goes over the ring's end can be read,
// and written, as if it went on. For example, of a ring of 65,536 bytes a record of 20 bytes at
// 65,530: its bytes from 65,536 on are, in the second mapping, the ring's first 14.
#include "collect/share.h"

#include "base/mem.h"
#include "base/str.h"
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	SHARE_LANES_MIN = 2, // for notes, and for one thread
	// What a recording takes at least: a segment, the rings of one thread and of notes, and
	// what is made of their events; and stacks of its threads, of which one keeps the time
	// where the processor's counter is not trusted.
	SHARE_ROOM_BYTES = SEGMENT_RINGS_AT + (32 << 20),
	// Descriptors: of the collector itself, with visitors and what is open for a moment; and of
	// each process (segment, pidfd, folder of its lists of generated code).
	SHARE_FILES_OWN = 20,
	SHARE_FILES_EACH = 3,
};

static _Atomic unsigned share_count; // that are open

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
	return share->whole ? share->bytes : SEGMENT_RINGS_AT;
}

// Of the addresses that the collector has it uses so many now.
static uint64_t share_addresses(void)
{
	unsigned long long pages = 0;
	FILE *statm = fopen("/proc/self/statm", "re");

	if (statm == NULL)
		return 0;
	if (fscanf(statm, "%llu", &pages) != 1)
		pages = 0;
	fclose(statm);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

// As ulimit wants it.
static unsigned long long share_kib(uint64_t bytes)
{
	return (bytes + 1023) / 1024;
}

// So many bytes of addresses could not be had. Always false.
static bool share_no_addresses(struct err *err, int error, uint64_t bytes)
{
	struct rlimit limit;

	ASSERT(error != 0 && bytes > 0);
	if (error != ENOMEM || getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
		return err_errno(err, error, "cannot map a segment");
	return err_set(err, ERR_LIMIT,
		       "the collector's addresses are limited to %s (ulimit -v, RLIMIT_AS), and it "
		       "needs at least %llu KiB",
		       STR_BYTES(limit.rlim_cur), share_kib(share_addresses() + bytes));
}

// Memory that has a descriptor is a file to the kernel. As large as all rings would be, or as a
// file may be: its rings are fewer then. 0: it may not be large enough for one.
static uint64_t share_file_bytes(struct err *err)
{
	uint64_t limit = file_limit();

	if (limit >= segment_ring_at(SEGMENT_LANES_MAX))
		return segment_ring_at(SEGMENT_LANES_MAX);
	if (segment_lanes(limit) >= SHARE_LANES_MIN)
		return segment_ring_at(segment_lanes(limit));
	err_set(err, ERR_LIMIT,
		"the size of files is limited to %s (ulimit -f, RLIMIT_FSIZE), which counts for "
		"memory that is shared with a program, too; recording one needs at least %llu KiB",
		STR_BYTES(limit), share_kib(segment_ring_at(SHARE_LANES_MIN)));
	return 0;
}

// Where one descriptor of a process were missing its end would not be noticed, or what /proc says
// of it not be read. So it is refused as a whole.
static bool share_has_files(struct err *err)
{
	unsigned long long need =
		SHARE_FILES_OWN + SHARE_FILES_EACH * (atomic_load(&share_count) + 1ull);
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= need)
		return true;
	return err_set(
		err, ERR_LIMIT,
		"the number of open files is limited to %llu (ulimit -n, RLIMIT_NOFILE), and "
		"the collector needs at least %llu for one more process",
		(unsigned long long)limit.rlim_cur, need);
}

bool share_may_open(struct err *err)
{
	void *room;

	if (share_file_bytes(err) == 0 || !share_has_files(err))
		return false;
	if (share_may_be_whole())
		return true;
	room = mmap(NULL, SHARE_ROOM_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (room == MAP_FAILED)
		return share_no_addresses(err, errno, SHARE_ROOM_BYTES);
	munmap(room, SHARE_ROOM_BYTES);
	return true;
}

// The file is the share's, or still the caller's.
static bool share_map(struct share *share, int fd, uint32_t image, uint32_t options,
		      uint64_t sample_bytes, struct err *err)
{
	char *base;

	share->whole = share_may_be_whole();
	base = mmap(NULL, share_mapped_bytes(share), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		return share_no_addresses(err, errno, SEGMENT_RINGS_AT);
	share->fd = fd;
	atomic_fetch_add(&share_count, 1);
	share_begin(share, base, image, options, sample_bytes, (uint32_t)getpid());
	return true;
}

// A file without a name, and sparse: only what is touched takes memory.
bool share_open(struct share *share, uint32_t image, uint32_t options, uint64_t sample_bytes,
		struct err *err)
{
	uint64_t bytes = share_file_bytes(err);
	int fd;

	memset(share, 0, sizeof *share);
	if (bytes == 0 || !share_has_files(err))
		return false;
	fd = memfd_create("tidemark", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return err_errno(err, errno, "cannot make a segment");
	ASSERT(bytes >= segment_ring_at(SHARE_LANES_MIN));
	share->bytes = bytes;
	if (ftruncate(fd, (off_t)bytes) != 0 || fcntl(fd, F_ADD_SEALS, SEGMENT_SEALS) != 0)
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
	share->bytes = segment_ring_at(SEGMENT_LANES_MAX);
	// The kernel drops a descriptor where there is no room for it.
	if (fd < 0)
		return err_errno(err, EMFILE, "its segment did not come");
	if (!share_is_fit(fd))
		err_set(err, ERR_IO, "what it sent is not a segment");
	else if (share_has_files(err) && share_map(share, fd, image, options, sample_bytes, err))
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
	atomic_fetch_sub(&share_count, 1);
	memset(share, 0, sizeof *share);
}

// Punching a hole gives all pages back, and what is read then is zeros. The header is made once
// more with what does not change: options, distance of samples, mark.
bool share_empty(struct share *share, uint32_t image)
{
	const struct segment was = *share->segment;

	if (fallocate(share->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
		      (off_t)share->bytes) != 0)
		return false;
	share_begin(share, share->segment, image, was.options, was.sample_bytes, was.collector_pid);
	memcpy(share->segment->reach_mark, was.reach_mark, sizeof was.reach_mark);
	return true;
}

// What is there from `at` on, up to `end`.
static bool share_copy_part(const struct share *share, const struct share *from, off_t at,
			    off_t end)
{
	enum { AT_ONCE = 64 << 10 };
	char *bytes = mem_alloc(AT_ONCE, 1);
	bool good = true;

	for (ssize_t got; good && at < end; at += got) {
		size_t wanted = end - at < AT_ONCE ? (size_t)(end - at) : AT_ONCE;

		got = pread(from->fd, bytes, wanted, at);
		good = got > 0 && pwrite(share->fd, bytes, (size_t)got, at) == got;
	}
	mem_free(bytes);
	return good;
}

// Holes stay holes: what was never touched is not read.
bool share_copy(struct share *share, const struct share *from, struct err *err)
{
	const struct segment *was = from->segment;
	off_t at = 0, end;

	if (!share_open(share, was->image, was->options, was->sample_bytes, err))
		return false;
	ASSERT(share->bytes == from->bytes);
	while ((at = lseek(from->fd, at, SEEK_DATA)) >= 0) {
		end = lseek(from->fd, at, SEEK_HOLE);
		if (!share_copy_part(share, from, at, end)) {
			share_close(share);
			return err_set(err, ERR_IO, "cannot copy a segment");
		}
		at = end;
	}
	return true;
}

// A place of twice the size first, then both halves over it: nothing else can come between.
const uint8_t *share_map_ring(const struct share *share, uint32_t lane)
{
	size_t size = segment_ring_bytes(lane);
	off_t at = (off_t)segment_ring_at(lane);
	uint8_t *ring;

	ASSERT(lane < SEGMENT_LANES_MAX);
	if ((uint64_t)at + size > share->bytes) // no lane of an honest guest
		return NULL;
	ring = mmap(NULL, 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
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
