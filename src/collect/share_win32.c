// A segment is a section of 290 MB whose memory is only reserved. Who uses a part of it commits it:
// the host all in front of the rings, the guest each ring, and the host that ring again before it
// reads, since what a process may touch is its own matter. A ring is mapped twice in a row
// (share_linux.c says why), for which Windows has no single call: a place is reserved, given up,
// and mapped at once. Another thread may take it in between, so that is tried sixteen times.
#include "collect/share.h"

#include "base/mem.h"

#include <stdint.h>
#include <string.h>
#include <windows.h>

enum { PLACE_TRIES = 16 };

static HANDLE section_of(const struct share *share)
{
	return (HANDLE)(intptr_t)share->fd;
}

// Memory of a section that is only reserved is there once it was asked for.
static bool commit(void *at, size_t size)
{
	return VirtualAlloc(at, size, MEM_COMMIT, PAGE_READWRITE) != NULL;
}

bool share_open(struct share *share, uint32_t image, uint32_t options, uint64_t sample_bytes,
		struct err *err)
{
	uint64_t size = segment_ring_at(SEGMENT_LANES_MAX);
	HANDLE section = CreateFileMappingW(INVALID_HANDLE_VALUE, NULL,
					    PAGE_READWRITE | SEC_RESERVE, (DWORD)(size >> 32),
					    (DWORD)size, NULL);
	char *base = section ? MapViewOfFile(section, FILE_MAP_WRITE, 0, 0, SEGMENT_RINGS_AT)
			     : NULL;

	memset(share, 0, sizeof *share);
	if (base == NULL || !commit(base, SEGMENT_RINGS_AT)) {
		err_set(err, ERR_IO, "cannot make a segment: error %lu", GetLastError());
		if (base)
			UnmapViewOfFile(base);
		if (section)
			CloseHandle(section);
		return false;
	}
	share->fd = (int)(intptr_t)section;
	share->bytes = size;
	share_begin(share, base, image, options, sample_bytes, GetCurrentProcessId());
	return true;
}

bool share_may_open(struct err *)
{
	return true; // what memory a process may have is found out as it is asked for
}

void share_close(struct share *share)
{
	if (share->segment == NULL)
		return;
	UnmapViewOfFile(share->segment);
	CloseHandle(section_of(share));
	memset(share, 0, sizeof *share);
}

bool share_empty(struct share *, uint32_t)
{
	return false; // there are no spares here
}

// Twice, end to end, at a place that was free just now: somebody may have taken it since.
static uint8_t *map_twice(HANDLE section, uint64_t at, size_t size)
{
	uint8_t *place = VirtualAlloc(NULL, 2 * size, MEM_RESERVE, PAGE_NOACCESS);
	bool good = place != NULL;

	if (!good)
		return NULL;
	VirtualFree(place, 0, MEM_RELEASE);
	for (size_t i = 0; i < 2 && good; i++) {
		good = MapViewOfFileEx(section, FILE_MAP_WRITE, (DWORD)(at >> 32), (DWORD)at, size,
				       place + i * size) != NULL;
		if (!good && i == 1)
			UnmapViewOfFile(place);
	}
	return good ? place : NULL;
}

const uint8_t *share_map_ring(const struct share *share, uint32_t lane)
{
	size_t size = segment_ring_bytes(lane);
	uint8_t *ring = NULL;

	ASSERT(lane < SEGMENT_LANES_MAX);
	for (int i = 0; i < PLACE_TRIES && ring == NULL; i++)
		ring = map_twice(section_of(share), segment_ring_at(lane), size);
	if (ring == NULL)
		return NULL;
	if (commit(ring, size) && commit(ring + size, size))
		return ring;
	share_unmap_ring(ring, lane);
	return NULL;
}

void share_unmap_ring(const uint8_t *ring, uint32_t lane)
{
	if (ring == NULL)
		return;
	UnmapViewOfFile(ring);
	UnmapViewOfFile(ring + segment_ring_bytes(lane));
}

bool share_copy(struct share *, const struct share *, struct err *err)
{
	return err_set(err, ERR_IO, "there are no spares here");
}

// What is committed, as if all rings of the lanes that were used were full: the system does not say
// what of a section is touched.
uint64_t share_bytes(const struct share *share)
{
	uint64_t bytes = SEGMENT_RINGS_AT;
	uint32_t lanes;

	if (share->segment == NULL)
		return 0;
	lanes = atomic_load(&share->segment->lanes_count);
	for (uint32_t i = 0; i < lanes && i < SEGMENT_LANES_MAX; i++)
		bytes += segment_ring_bytes(i);
	return bytes;
}
