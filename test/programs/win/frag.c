// Breaks the address space of a 32-bit program up, as Firefox did. What must be said about it, at
// its mark "broken":
//
//     hoard        2,000 reservations of one page each live: 60 KiB of each slot wasted
//     churn        1,000 of 12 KiB were made, and 999 released; one lives
//     tidy_up      200 of whole slots: no waste
//     commit_more  ends of hoard's pages are committed again: no reservation
//
// Then it walks its own address space with VirtualQuery, and says
// "frag: mark NAME free BYTES largest BYTES regions N unusable BYTES end HEX", largest being in
// whole slots, end behind the last region;
// at its end it reserves more than there is, which fails, and walks again ("ended").
#include "include/tidemark.h"

#include <stdio.h>
#include <stdlib.h>
#include <windows.h>

enum { SLOT = 65536, PAGE = 4096, HOARD = 2000, CHURN = 1000, TIDY = 200 };

static char *pages[HOARD];

static __attribute__((noinline)) void hoard(int i)
{
	pages[i] = VirtualAlloc(NULL, PAGE, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}

static __attribute__((noinline)) void *churn(void)
{
	return VirtualAlloc(NULL, 3 * PAGE, MEM_RESERVE, PAGE_NOACCESS);
}

static __attribute__((noinline)) void *tidy_up(void)
{
	return VirtualAlloc(NULL, SLOT, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}

static __attribute__((noinline)) void commit_more(int i)
{
	VirtualAlloc(pages[i], PAGE, MEM_COMMIT, PAGE_READONLY);
}

static __attribute__((noinline)) void *reserve_all(void)
{
	return VirtualAlloc(NULL, 0x7ff00000, MEM_RESERVE, PAGE_NOACCESS);
}

struct figures {
	unsigned long long open_bytes, largest, unusable, end;
	unsigned regions;
};

// Nothing in here maps, unmaps or allocates.
static void walk(struct figures *figures)
{
	MEMORY_BASIC_INFORMATION region;
	char *at = NULL;

	while (VirtualQuery(at, &region, sizeof region)) {
		size_t start = (size_t)region.BaseAddress, end = start + region.RegionSize;

		at = (char *)end;
		figures->end = end;
		if (region.State == MEM_FREE) {
			size_t first = (start + SLOT - 1) & ~(size_t)(SLOT - 1);
			size_t last = end & ~(size_t)(SLOT - 1);
			size_t whole = last > first ? last - first : 0;

			figures->open_bytes += region.RegionSize;
			figures->unusable += region.RegionSize - whole;
			figures->largest = whole > figures->largest ? whole : figures->largest;
		} else {
			figures->regions++;
		}
		if (end == 0)
			break;
	}
}

static void say(const char *mark, const struct figures *figures)
{
	printf("frag: mark %s free %llu largest %llu regions %u unusable %llu end %llx\n", mark,
	       figures->open_bytes, figures->largest, figures->regions, figures->unusable,
	       figures->end);
	fflush(stdout);
}

int main(void)
{
	struct figures broken = { 0 }, ended = { 0 };
	void *churned = NULL;

	for (int i = 0; i < HOARD; i++) {
		hoard(i);
		if (i % 2 == 0) {
			if (churned)
				VirtualFree(churned, 0, MEM_RELEASE);
			churned = churn();
		}
		if (i % 10 == 0)
			tidy_up();
		commit_more(i);
	}
	say("started", &broken); // what printing needs is there from here on
	walk(&broken);
	tidemark_mark("broken");
	if (reserve_all())
		return 1;
	walk(&ended);
	tidemark_mark("ended");
	say("broken", &broken);
	say("ended", &ended);
	return 0;
}
