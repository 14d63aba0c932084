// library: where the recorder's file is, and how LD_PRELOAD has to name it. An installation has one
// for each class of programs below one folder:
//
//     <folder>/preload/lib/x86_64-linux-gnu/libtidemark.so
//     <folder>/preload/lib32/libtidemark.so, or preload/lib/i386-linux-gnu/…
//     <folder>/libtidemark.so                                the first of these, plainly
//
// glibc's linker puts its own word in place of $LIB, so that the entry
// <folder>/preload/$LIB/libtidemark.so is right for both. musl's knows no $LIB and gets the plain
// file.
#include "recorder/library_linux.h"

#include "recorder/kernel.h"
#include "recorder/scope_linux.h"
#include "recorder/text.h"

enum { LIBRARY_PATH_MAX = 4096, LIBRARY_OWN_BITS = 8 * sizeof(void *) };

#define LIBRARY_64 "preload/lib/x86_64-linux-gnu/libtidemark.so"
#define LIBRARY_32 "preload/lib32/libtidemark.so"
#define LIBRARY_32_MULTIARCH "preload/lib/i386-linux-gnu/libtidemark.so"

static char library_at[LIBRARY_PATH_MAX];     // the folder
static char library_own[LIBRARY_PATH_MAX];    // our own file, as the linker was told of it
static char library_plain[LIBRARY_PATH_MAX];  // the one for programs of 64 bits
static char library_either[LIBRARY_PATH_MAX]; // with "$LIB" in it; "": there is only one class

// The folder and `tail`. False: too long.
static bool library_join(char out[LIBRARY_PATH_MAX], const char *tail)
{
	size_t folder = text_length(library_at);
	size_t length = text_length(tail);

	if (folder + length + 1 > LIBRARY_PATH_MAX)
		return false;
	memcpy(out, library_at, folder);
	memcpy(out + folder, tail, length + 1);
	return true;
}

bool library_can_ask(void)
{
	return !kernel_sealed || kernel_let & KERNEL_LETS_ACCESS;
}

static bool library_can_read(const char *path)
{
	return path[0] && library_can_ask() && kernel_pass(__NR_access, path, 4 /* R_OK */) == 0;
}

// Whether the file is at `tail` of the folder.
static bool library_lies_at(const char *tail)
{
	char path[LIBRARY_PATH_MAX];

	return library_join(path, tail) && library_can_read(path);
}

// Where our own path ends with `tail`: how long it is before that; else 0.
static size_t library_before(const char *tail)
{
	size_t length = text_length(library_own);
	size_t end = text_length(tail);

	return length > end && text_equal(library_own + length - end, tail) ? length - end : 0;
}

// All paths follow from our own, as the linker has it. False: that is not known.
bool library_start(void)
{
	static const char *const tails[] = { LIBRARY_64, LIBRARY_32, LIBRARY_32_MULTIARCH };
	const struct scope_object *library = scope_ourselves();
	size_t length = library ? text_length(library->name) : 0;
	size_t folder = 0;

	if (!length || length + 1 > sizeof(library_own))
		return false;
	memcpy(library_own, library->name, length + 1);
	for (size_t i = 0; i < sizeof(tails) / sizeof(*tails) && !folder; i++)
		folder = library_before(tails[i]);
	for (size_t at = length; at > 0 && !folder; at--)
		folder = library_own[at - 1] == '/' ? at : 0;
	memcpy(library_at, library_own, folder);
	if (LIBRARY_OWN_BITS == 64 && !library_before(LIBRARY_64))
		memcpy(library_plain, library_own, length + 1);
	else if (!library_join(library_plain, "libtidemark.so"))
		library_plain[0] = 0;
	if ((library_lies_at(LIBRARY_32) || library_lies_at(LIBRARY_32_MULTIARCH)) &&
	    library_lies_at(LIBRARY_64) &&
	    !library_join(library_either, "preload/$LIB/libtidemark.so"))
		library_either[0] = 0;
	return true;
}

const char *library_folder(void)
{
	return library_at;
}

// Whether there is a recorder for such an image at all.
bool library_exists(struct library_image image)
{
	if (image.bits == 32 && image.musl)
		return false;
	return library_either[0] || image.bits == 0 || image.bits == LIBRARY_OWN_BITS;
}

// A process that has changed its root, or its user, may not be able to.
bool library_readable(struct library_image image)
{
	const char *entry = library_entry(image);

	if (entry != library_either)
		return library_can_read(entry);
	if (image.bits == 32 || (!image.bits && LIBRARY_OWN_BITS == 32))
		return library_lies_at(LIBRARY_32) || library_lies_at(LIBRARY_32_MULTIARCH);
	return library_lies_at(LIBRARY_64);
}

// What LD_PRELOAD is to have for such an image.
const char *library_entry(struct library_image image)
{
	if (image.musl && image.bits == 64)
		return library_plain;
	if (library_either[0])
		return library_either;
	return library_own;
}

static bool library_is(const char *entry, size_t length, const char *path)
{
	return text_length(path) == length && memcmp(entry, path, length) == 0;
}

// Any of our forms: a program may pass on an environment that another process of the recording
// made.
bool library_is_ours(const char *entry, size_t length)
{
	return length && (library_is(entry, length, library_own) ||
			  library_is(entry, length, library_plain) ||
			  library_is(entry, length, library_either));
}
