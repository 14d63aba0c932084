// enter_pages: the pages of an object's trampolines, and functions whose beginnings move there.
//
// A jump of 5 bytes reaches 2 GiB, so the pages are near the object: below it where there is room,
// since above an executable its heap grows. They are written first and executed afterwards, never
// both at one time.
//
//     enter_pages_make       pages that may be written; maybe none
//       enter_pages_move     for each function
//     enter_pages_protect    true: they may be executed, and not be written
//     enter_pages_free
//     enter_pages_near       pages of others, who jump as far
//
// For example, malloc at 0x401000 begins with a push of 2 bytes and a mov of 3. One trampoline then
// has, from its start: those 5 bytes, a jump to 0x401005, and (64 bits) movabs of its own address
// to %r9 with a jump to the hook, which finds there what the real malloc is now. At 0x401000 there
// is a jump to that movabs.
#pragma once

#include "wire/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ENTER_PAGES_WIDE = sizeof(void *) == 8 };

struct enter_pages {
	uintptr_t start, end; // of the object
	uint8_t *bytes;       // NULL: there are none
	uint32_t used;
};

// Take pages for the object between `start` and `end`. There may be none within reach, or none that
// may be executed: `bytes` is NULL then, and enter_pages_move says so of each function.
HIDDEN void enter_pages_make(struct enter_pages *pages);

// May what was written be executed? Not everywhere: then nothing may lead to it.
HIDDEN bool enter_pages_protect(const struct enter_pages *pages, bool done);

// Make the function at `at` begin with a jump to `hook`, which is given the real function or
// (`plain`) gets all registers as they are. NULL: done, and `*moved` is its beginning now. Else why
// not.
HIDDEN const char *enter_pages_move(struct enter_pages *pages, uint8_t *at, void *hook, bool plain,
				    uint8_t **moved);

// Accepts one without pages.
HIDDEN void enter_pages_free(struct enter_pages *pages);

// Pages that may be written, within reach of a jump from anywhere between `start` and `end`: below
// that if there is room, else above. NULL: there are none.
HIDDEN void *enter_pages_near(uintptr_t start, uintptr_t end, size_t bytes);
