// maps_text: the kernel's list of a process's mappings, /proc/PID/maps or smaps, line by line. For
// example
//
//     7f3c8a200000-7f3c8a228000 r--p 00000000 08:01 1835   /usr/lib/x86_64-linux-gnu/libc.so.6
//
// is start 0x7f3c8a200000, end 0x7f3c8a228000, protection 1, not shared, offset 0, device 8 << 20 |
// 1, inode 1835 and the path. smaps has lines of figures after each ("Rss:   148 kB"), which are
// not of a mapping. On Windows the guest sends a list in the same form.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct maps_line {
	uint64_t start, end, offset;
	uint64_t device, inode; // major << 20 | minor
	uint32_t protection;    // PROT_*, and enum lane_vm_access
	bool shared;
	const char *path; // borrowed from the text, not ended by a NUL
	size_t path_length;
};

// Take the line that begins at `*text` apart and move past it. False if it is not of a mapping
// (`*text` is after it then too).
bool maps_text_next(const char **text, const char *end, struct maps_line *line);

bool maps_text_begins(const struct maps_line *line, const char *head); // its path

// Whether it is the recorder's: its library, of either class, also if the file was replaced since;
// what it shares with the collector; on Windows all that the recorder calls its own.
bool maps_text_is_ours(const struct maps_line *line);
