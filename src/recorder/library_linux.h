// library: where the recorder's own files are, and how LD_PRELOAD names them for other images.
//
// There is one file for each class of programs: libtidemark.so and, for i386, libtidemark32.so.
// Beside them, in preload/, they are once more in the folders that glibc's dynamic linker puts in
// the place of "$LIB", all with the same name:
//
//     preload/lib/x86_64-linux-gnu/libtidemark.so
//     preload/lib32/libtidemark.so, preload/lib/i386-linux-gnu/libtidemark.so
//
// So one entry of LD_PRELOAD, …/preload/$LIB/libtidemark.so, means the right one to programs of
// either class, however often one starts the other. Where there is no recorder for i386 the entry
// is the plain path, and so it is for musl's linker, which knows no "$LIB".
#pragma once

#include "wire/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// What is known of another image before it is started.
struct library_image {
	uint32_t bits; // 64, 32, or 0: not known
	bool musl;
	bool asan; // it needs a shared AddressSanitizer
};

// Once per image: find out. False: we have no name.
HIDDEN bool library_start(void);

// The folder of libtidemark.so, with a slash at its end.
HIDDEN const char *library_folder(void);

// Whether there is a recorder for such an image, and whether it can be read now (it cannot from
// within a chroot).
HIDDEN bool library_exists(struct library_image image);
HIDDEN bool library_readable(struct library_image image);

// Whether that can be asked: under a system-call filter, only where it is known to let us.
HIDDEN bool library_can_ask(void);

// The entry of LD_PRELOAD for such an image.
HIDDEN const char *library_entry(struct library_image image);

// Whether the first `length` bytes are an entry that means one of our files.
HIDDEN bool library_is_ours(const char *entry, size_t length);
