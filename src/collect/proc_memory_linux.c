// What of each mapping is resident is read either by pages, where the kernel has a call for all of
// a process at once, or from smaps. For example, mapping 0x1000-0x5000, and pages 0x2000-0x4000
// present and 0x4000-0x6000 swapped out: 0x2000 bytes are resident, 0x1000 swapped out, and the
// rest of the second run belongs to the next mapping, which count_pages goes on with.
#include "collect/proc_memory.h"

#include "base/mem.h"
#include "collect/maps_text.h"
#include "collect/peer.h"
#include "trace/snapshot.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

// Newer than the headers that we build with (<linux/fs.h>).
struct scan_region {
	uint64_t start, end, categories;
};

struct scan_arguments {
	uint64_t size, flags, start, end, walk_end, regions, regions_count, pages_max;
	uint64_t inverted, all, any, returned;
};

enum {
	SCAN_PRESENT = 1 << 3,
	SCAN_SWAPPED = 1 << 4,
	SCAN_ZERO = 1 << 5, // the shared page of zeros: resident, and counted nowhere
	REGIONS_AT_ONCE = 4096,
	ENTRIES_AT_ONCE = 8192,
};

#define SCAN_ASK _IOWR('f', 16, struct scan_arguments)
#define ADDRESS_END UINT64_C(0x7ffffffff000)
#define ENTRY_PRESENT (UINT64_C(1) << 63)
#define ENTRY_SWAPPED (UINT64_C(1) << 62)

static int open_proc(uint32_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%u/%s", pid, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

// A whole file of /proc, with a NUL behind it; NULL if it cannot be read or is empty.
static char *read_all(uint32_t pid, const char *name, size_t *length)
{
	int fd = open_proc(pid, name);
	size_t capacity = 0;
	char *text = NULL;
	ssize_t got;

	*length = 0;
	if (fd < 0)
		return NULL;
	do {
		// 64 KiB more each time: /proc gives a page or so a call, and 60,000 mappings have
		// 5 MB of smaps.
		text = mem_grow(text, &capacity, *length + (64 << 10) + 1, 1);
		got = read(fd, text + *length, capacity - *length - 1);
		*length += got > 0 ? (size_t)got : 0;
	} while (got > 0);
	close(fd);
	if (*length == 0) {
		mem_free(text);
		return NULL;
	}
	text[*length] = '\0';
	return text;
}

// The highest resident memory so far, bytes (VmHWM); 0: not known.
static uint64_t highest(uint32_t pid)
{
	size_t length;
	char *text = read_all(pid, "status", &length);
	const char *at = text ? strstr(text, "\nVmHWM:") : NULL;
	uint64_t bytes = at ? strtoull(at + 7, NULL, 10) * 1024 : 0;

	mem_free(text);
	return bytes;
}

#define FIGURE(word, field)                                                  \
	{                                                                    \
		word, sizeof word - 1, offsetof(struct trace_mapping, field) \
	}

// "Rss:   12 kB" into the mapping it belongs to. There are two dozen such lines a mapping.
static void take_figure(struct trace_mapping *mapping, const char *line, size_t length)
{
	static const struct {
		const char *word;
		size_t length, at;
	} figures[] = {
		FIGURE("Rss:", rss),
		FIGURE("Pss:", pss),
		FIGURE("Shared_Clean:", shared_clean),
		FIGURE("Shared_Dirty:", shared_dirty),
		FIGURE("Private_Clean:", private_clean),
		FIGURE("Private_Dirty:", private_dirty),
		FIGURE("Anonymous:", anonymous),
		FIGURE("Swap:", swap),
		FIGURE("Locked:", locked),
	};

	for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
		uint64_t bytes;

		if (*line != *figures[i].word || length <= figures[i].length ||
		    memcmp(line, figures[i].word, figures[i].length) != 0)
			continue;
		bytes = strtoull(line + figures[i].length, NULL, 10) * 1024;
		memcpy((char *)mapping + figures[i].at, &bytes, sizeof bytes);
		return;
	}
}

// The text of maps or smaps: a line for each mapping, and in smaps the figures of the mapping
// above. One that overlaps the one before is passed over: the process changed its mappings between
// two reads of the file.
static void take_mappings(const char *text, size_t length, struct file_table *files,
			  struct trace_snapshot *snapshot)
{
	const char *at = text, *end = text + length;
	size_t capacity = 0;

	while (at < end) {
		const char *begin = at;
		struct trace_mapping *last =
			snapshot->mappings_count ? &snapshot->mappings[snapshot->mappings_count - 1]
						 : NULL;
		struct maps_line line;

		// Figures begin with a capital letter, which no address does.
		if (*begin >= 'A' && *begin <= 'Z') {
			const char *stop = memchr(at, '\n', (size_t)(end - at));

			at = stop ? stop + 1 : end;
			if (last)
				take_figure(last, begin, (size_t)(at - begin));
			continue;
		}
		if (!maps_text_next(&at, end, &line) || (last && line.start < last->end))
			continue;
		MEM_ROOM(snapshot->mappings, capacity, snapshot->mappings_count + 1u);
		snapshot->mappings[snapshot->mappings_count++] = (struct trace_mapping){
			.start = line.start,
			.end = line.end,
			.offset = line.offset,
			.file = file_table_put(files, line.device, line.inode, line.path,
					       line.path_length),
			.protection = line.protection,
			.shared = line.shared,
		};
	}
}

// Pages [start, end), behind all others.
static void add_pages(struct trace_snapshot *snapshot, size_t *capacity, uint64_t start,
		      uint64_t end, uint8_t flags)
{
	struct trace_pages *last =
		snapshot->pages_count ? &snapshot->pages[snapshot->pages_count - 1] : NULL;

	ASSERT(!last || last->start < last->end);
	if (flags == 0 || start >= end || (last && start < last->end))
		return;
	if (last && last->end == start && last->flags == flags) {
		last->end = end;
		return;
	}
	MEM_ROOM(snapshot->pages, *capacity, snapshot->pages_count + 1u);
	snapshot->pages[snapshot->pages_count++] =
		(struct trace_pages){ .start = start, .end = end, .flags = flags };
}

static uint8_t flags_of_categories(uint64_t categories)
{
	bool present = (categories & SCAN_PRESENT) && !(categories & SCAN_ZERO);

	return (present ? TRACE_PAGES_PRESENT : 0) |
	       (categories & SCAN_SWAPPED ? TRACE_PAGES_SWAPPED : 0);
}

// Not asked for is whether a page is of a file: the kernel would have to look at what it knows of
// each page for that, and takes eight times as long. False: it has no such call.
static bool scan_pages(int fd, struct trace_snapshot *snapshot)
{
	struct scan_region *regions = mem_alloc(REGIONS_AT_ONCE, sizeof *regions);
	struct scan_arguments ask = {
		.size = sizeof ask,
		.end = ADDRESS_END,
		.regions = (uint64_t)(uintptr_t)regions,
		.regions_count = REGIONS_AT_ONCE,
		.any = SCAN_PRESENT | SCAN_SWAPPED,
		.returned = SCAN_PRESENT | SCAN_SWAPPED | SCAN_ZERO,
	};
	size_t capacity = 0;
	bool known = true;

	while (ask.start < ask.end) {
		int count = ioctl(fd, SCAN_ASK, &ask);

		if (count < 0) {
			known = snapshot->pages_count > 0;
			break;
		}
		for (int i = 0; i < count; i++)
			add_pages(snapshot, &capacity, regions[i].start, regions[i].end,
				  flags_of_categories(regions[i].categories));
		if (ask.walk_end <= ask.start)
			break;
		ask.start = ask.walk_end;
	}
	mem_free(regions);
	return known;
}

static uint8_t flags_of_entry(uint64_t entry)
{
	return (entry & ENTRY_PRESENT ? TRACE_PAGES_PRESENT : 0) |
	       (entry & ENTRY_SWAPPED ? TRACE_PAGES_SWAPPED : 0);
}

uint64_t proc_memory_touched(int pagemap, uint64_t start, uint64_t end)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), *entries;
	struct scan_region region = { 0 };
	struct scan_arguments ask = {
		.size = sizeof ask,
		.start = start,
		.end = end,
		.regions = (uint64_t)(uintptr_t)&region,
		.regions_count = 1,
		.pages_max = 1,
		.any = SCAN_PRESENT | SCAN_SWAPPED,
		.returned = SCAN_PRESENT | SCAN_SWAPPED,
	};
	int count = start < end ? ioctl(pagemap, SCAN_ASK, &ask) : 0;

	ASSERT(start % page == 0 && end % page == 0);
	if (count >= 0)
		return count > 0 ? region.start : end;
	entries = mem_alloc(ENTRIES_AT_ONCE, sizeof *entries);
	while (start < end) {
		uint64_t left = (end - start) / page;
		size_t wanted = left < ENTRIES_AT_ONCE ? (size_t)left : ENTRIES_AT_ONCE, i = 0;
		ssize_t got = pread(pagemap, entries, wanted * sizeof *entries,
				    (off_t)(start / page * sizeof *entries));

		if (got < (ssize_t)sizeof *entries)
			break;
		while (i < (size_t)got / sizeof *entries && flags_of_entry(entries[i]) == 0)
			i++;
		start += i * page;
		if (i < (size_t)got / sizeof *entries)
			break;
	}
	mem_free(entries);
	return start;
}

// Eight bytes a page, of the mappings that have any resident.
static void read_pages(int fd, struct trace_snapshot *snapshot)
{
	uint64_t *entries = mem_alloc(ENTRIES_AT_ONCE, sizeof *entries);
	uint64_t page = snapshot->page_bytes;
	size_t capacity = 0;

	ASSERT(page > 0);
	for (uint32_t i = 0; i < snapshot->mappings_count; i++) {
		const struct trace_mapping *mapping = &snapshot->mappings[i];
		uint64_t at = mapping->start;

		// A mapping of 1 GiB takes 2 MiB of entries: those of mappings with nothing
		// resident are not read.
		while (at < mapping->end && (mapping->rss || mapping->swap)) {
			uint64_t left = (mapping->end - at) / page;
			size_t wanted = left < ENTRIES_AT_ONCE ? (size_t)left : ENTRIES_AT_ONCE;
			ssize_t got = pread(fd, entries, wanted * sizeof *entries,
					    (off_t)(at / page * sizeof *entries));

			if (got < (ssize_t)sizeof *entries)
				break;
			for (size_t k = 0; k < (size_t)got / sizeof *entries; k++, at += page)
				add_pages(snapshot, &capacity, at, at + page,
					  flags_of_entry(entries[k]));
		}
	}
	mem_free(entries);
}

// The mappings, by one of two lists of the kernel's.
static bool read_mappings(uint32_t pid, const char *name, struct file_table *files,
			  struct trace_snapshot *snapshot)
{
	size_t length;
	char *text = read_all(pid, name, &length);

	if (text == NULL)
		return false;
	take_mappings(text, length, files, snapshot);
	mem_free(text);
	return true;
}

// What of each mapping is resident and swapped out, by its pages.
static void count_pages(struct trace_snapshot *snapshot)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < snapshot->pages_count; i++) {
		const struct trace_pages *pages = &snapshot->pages[i];

		// Both lists rise, so each is gone through once; a run of pages that reaches into
		// the next mapping looks at that one, too, and leaves `at` where it is.
		while (at < snapshot->mappings_count && snapshot->mappings[at].end <= pages->start)
			at++;
		for (uint32_t k = at;
		     k < snapshot->mappings_count && snapshot->mappings[k].start < pages->end;
		     k++) {
			struct trace_mapping *mapping = &snapshot->mappings[k];
			uint64_t start = pages->start > mapping->start ? pages->start
								       : mapping->start;
			uint64_t end = pages->end < mapping->end ? pages->end : mapping->end;

			if (pages->flags & TRACE_PAGES_PRESENT)
				mapping->rss += end - start;
			if (pages->flags & TRACE_PAGES_SWAPPED)
				mapping->swap += end - start;
		}
	}
}

// By pages where the kernel has a call for all of them at once, which is much faster; else, or if
// smaps is asked for, from smaps. Without any pages the snapshot says so (TRACE_SNAPSHOT_NO_PAGES).
bool proc_memory_take(uint32_t pid, struct file_table *files, bool smaps,
		      struct trace_snapshot *snapshot)
{
	int fd = open_proc(pid, "pagemap");
	bool good;

	ASSERT(files && snapshot);
	snapshot->mappings = NULL;
	snapshot->pages = NULL;
	snapshot->mappings_count = snapshot->pages_count = 0;
	snapshot->page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	good = !smaps && fd >= 0 && read_mappings(pid, "maps", files, snapshot) &&
	       scan_pages(fd, snapshot) && snapshot->pages_count > 0;
	if (good) {
		count_pages(snapshot);
		snapshot->flags |= TRACE_SNAPSHOT_NO_SMAPS;
	} else {
		snapshot_fini(snapshot);
		snapshot->mappings_count = snapshot->pages_count = 0;
		good = read_mappings(pid, "smaps", files, snapshot);
		if (good && fd >= 0 && !scan_pages(fd, snapshot))
			read_pages(fd, snapshot);
	}
	if (fd >= 0)
		close(fd);
	if (!good)
		return false;
	if (snapshot->pages_count == 0)
		snapshot->flags |= TRACE_SNAPSHOT_NO_PAGES;
	snapshot->rss_bytes = peer_resident(pid);
	snapshot->rss_bytes_max = highest(pid);
	return true;
}
