// What is inside of a Windows image is told by what it exports (V8's node, Java's VM …), or, where
// it takes VirtualAlloc and VirtualFree from the system, by the texts of allocators, as on Linux,
// and by the table of functions that Go's runtime goes by.
//
// For example esbuild.exe, stripped and without a build id, exports nothing, imports both, and has
// at 0x154760 of its .rdata f1 ff ff ff 00 00 01 08: the head of that table, of 64 bits, as Go 1.20
// and later have it.
#include "collect/hidden_allocator.h"

#include "os/file.h"
#include "trace/bytes.h"

#include <string.h>

enum {
	HIDDEN_ALLOCATOR_HEAD_AT = 60, // where the headers' place is
	HIDDEN_ALLOCATOR_OPTIONAL = 24,
	HIDDEN_ALLOCATOR_DLL = 0x2000, // a flag of the headers
	HIDDEN_ALLOCATOR_CODE = 0x20,  // one of a section
	HIDDEN_ALLOCATOR_WIDE = 0x20b, // 64 bits
	HIDDEN_ALLOCATOR_SECTION = 40,
	HIDDEN_ALLOCATOR_IMPORT = 20,
	HIDDEN_ALLOCATOR_IMPORTS_MAX = 65536,
	HIDDEN_ALLOCATOR_EXPORTS_MAX = 1 << 20,
};

// A file as it is, which need not be an image at all.
struct hidden_allocator_image {
	const uint8_t *bytes;
	size_t size;
	const uint8_t *sections;
	size_t sections_count;
	const uint8_t *directories; // exports, imports
	bool wide, dll;
};

// `size` bytes at `at` of the file; NULL: it does not have them.
static const uint8_t *hidden_allocator_bytes(const struct hidden_allocator_image *image,
					     uint64_t at, uint64_t size)
{
	return at <= image->size && size <= image->size - at ? image->bytes + at : NULL;
}

// What of a section is in the file.
static const uint8_t *hidden_allocator_section(const struct hidden_allocator_image *image,
					       size_t number, uint32_t *rva, size_t *size)
{
	const uint8_t *section = image->sections + number * HIDDEN_ALLOCATOR_SECTION;
	uint32_t at = bytes_get_u32(section + 20);

	ASSERT(number < image->sections_count);
	*rva = bytes_get_u32(section + 12);
	*size = bytes_get_u32(section + 16);
	if (at<image->size && * size> image->size - at)
		*size = image->size - at;
	return hidden_allocator_bytes(image, at, *size);
}

// What is at an address of the image, and how many bytes are there up to its section's end.
static const uint8_t *hidden_allocator_at(const struct hidden_allocator_image *image, uint64_t rva,
					  size_t *left)
{
	for (size_t i = 0; i < image->sections_count; i++) {
		uint32_t start;
		size_t size;
		const uint8_t *bytes = hidden_allocator_section(image, i, &start, &size);

		if (bytes && rva >= start && rva - start < size) {
			*left = size - (size_t)(rva - start);
			ASSERT(*left > 0 && *left <= image->size);
			return bytes + (rva - start);
		}
	}
	return NULL;
}

// A text there that ends in the file; else "".
static const char *hidden_allocator_text(const struct hidden_allocator_image *image, uint64_t rva)
{
	size_t left;
	const uint8_t *at = hidden_allocator_at(image, rva, &left);

	return at && memchr(at, 0, left) ? (const char *)at : "";
}

static bool hidden_allocator_open(struct hidden_allocator_image *image, const uint8_t *bytes,
				  size_t size)
{
	const uint8_t *head;
	uint16_t optional_bytes;
	uint32_t at;

	*image = (struct hidden_allocator_image){ .bytes = bytes, .size = size };
	if (size < HIDDEN_ALLOCATOR_HEAD_AT + 4 || memcmp(bytes, "MZ", 2) != 0)
		return false;
	at = bytes_get_u32(bytes + HIDDEN_ALLOCATOR_HEAD_AT);
	head = hidden_allocator_bytes(image, at, HIDDEN_ALLOCATOR_OPTIONAL + 112 + 16);
	if (!head || memcmp(head, "PE\0\0", 4) != 0)
		return false;
	image->sections_count = bytes_get_u16(head + 6);
	optional_bytes = bytes_get_u16(head + 20);
	image->dll = bytes_get_u16(head + 22) & HIDDEN_ALLOCATOR_DLL;
	image->wide = bytes_get_u16(head + HIDDEN_ALLOCATOR_OPTIONAL) == HIDDEN_ALLOCATOR_WIDE;
	image->directories = head + HIDDEN_ALLOCATOR_OPTIONAL + (image->wide ? 112 : 96);
	image->sections = hidden_allocator_bytes(
		image, (uint64_t)at + HIDDEN_ALLOCATOR_OPTIONAL + optional_bytes,
		image->sections_count * HIDDEN_ALLOCATOR_SECTION);
	return image->sections != NULL;
}

// Names of exports are in order, as strcmp has it.
static bool hidden_allocator_exports(const struct hidden_allocator_image *image, const char *name)
{
	uint32_t rva = bytes_get_u32(image->directories);
	size_t left;
	const uint8_t *table = rva ? hidden_allocator_at(image, rva, &left) : NULL, *names;
	uint32_t low = 0, high;

	if (!table || left < 40)
		return false;
	high = bytes_get_u32(table + 24);
	names = hidden_allocator_at(image, bytes_get_u32(table + 32), &left);
	if (!names || high > HIDDEN_ALLOCATOR_EXPORTS_MAX || high > left / 4)
		return false;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		int order = strcmp(name, hidden_allocator_text(
						 image, bytes_get_u32(names + 4 * (size_t)middle)));

		if (order == 0)
			return true;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return false;
}

// Of one DLL: those of the two names that are among what is imported by name, a bit each.
static unsigned hidden_allocator_imports_of(const struct hidden_allocator_image *image,
					    const uint8_t *import, size_t *budget)
{
	uint32_t rva = bytes_get_u32(import);
	size_t left, each = image->wide ? 8 : 4;
	const uint8_t *at =
		hidden_allocator_at(image, rva ? rva : bytes_get_u32(import + 16), &left);
	unsigned found = 0;

	for (; at && left >= each && *budget > 0; at += each, left -= each, --*budget) {
		uint64_t value = image->wide ? bytes_get_u64(at) : bytes_get_u32(at);
		const char *name;

		if (value == 0)
			break;
		if (value >> (8 * each - 1))
			continue; // by its number
		name = hidden_allocator_text(image, value + 2);
		found |= strcmp(name, "VirtualAlloc") == 0 ? 1 : 0;
		found |= strcmp(name, "VirtualFree") == 0 ? 2 : 0;
	}
	return found;
}

// Whether it asks the system for memory, and gives it back.
static bool hidden_allocator_maps(const struct hidden_allocator_image *image)
{
	uint32_t rva = bytes_get_u32(image->directories + 8);
	size_t left, budget = HIDDEN_ALLOCATOR_IMPORTS_MAX;
	const uint8_t *at = rva ? hidden_allocator_at(image, rva, &left) : NULL;
	unsigned found = 0;

	for (; at && left >= HIDDEN_ALLOCATOR_IMPORT && bytes_get_u32(at + 12) && budget > 0;
	     at += HIDDEN_ALLOCATOR_IMPORT, left -= HIDDEN_ALLOCATOR_IMPORT)
		found |= hidden_allocator_imports_of(image, at, &budget);
	return found == 3;
}

// Of a text its rarest byte is looked for, which is `rare` bytes from its beginning.
static bool hidden_allocator_has(const uint8_t *bytes, size_t size, const char *text, size_t rare)
{
	size_t length = strlen(text);
	const uint8_t *at = bytes + rare, *end = bytes + size;

	ASSERT(rare < length);
	for (; at < end && (at = memchr(at, text[rare], (size_t)(end - at))) != NULL; at++)
		if ((size_t)(end - at) >= length - rare && memcmp(at - rare, text, length) == 0)
			return true;
	return false;
}

// The head of the table of functions: a number of its version, two zeros, the size of the least
// instruction (1) and of a pointer.
static bool hidden_allocator_has_go(const uint8_t *bytes, size_t size)
{
	for (size_t at = 0; at + 8 <= size; at += 16) {
		uint32_t version = bytes_get_u32(bytes + at);

		if ((version == 0xfffffffb || version == 0xfffffffa || version == 0xfffffff0 ||
		     version == 0xfffffff1) &&
		    (memcmp(bytes + at + 4, "\0\0\1\4", 4) == 0 ||
		     memcmp(bytes + at + 4, "\0\0\1\10", 4) == 0))
			return true;
	}
	return false;
}

// In what is neither code nor to be written to.
static int hidden_allocator_constant(const struct hidden_allocator_image *image)
{
	static const struct {
		const char *text;
		size_t rare;
	} texts[] = {
		[HIDDEN_ALLOCATOR_JEMALLOC] = { "<jemalloc>: ", 0 },
		[HIDDEN_ALLOCATOR_MIMALLOC] = { "mimalloc: warning: ", 8 },
		[HIDDEN_ALLOCATOR_TCMALLOC] = { "tcmalloc.max_total_thread_cache_bytes", 12 },
	};
	int go = -1;

	for (size_t i = 0; i < image->sections_count; i++) {
		const uint8_t *section = image->sections + i * HIDDEN_ALLOCATOR_SECTION, *bytes;
		uint32_t rva;
		size_t size;

		if (memcmp(section, ".rdata", 7) != 0)
			continue;
		bytes = hidden_allocator_section(image, i, &rva, &size);
		for (int k = 0; bytes && k < (int)(sizeof texts / sizeof *texts); k++)
			if (hidden_allocator_has(bytes, size, texts[k].text, texts[k].rare))
				return k;
		if (bytes && !image->dll && hidden_allocator_has_go(bytes, size))
			go = HIDDEN_ALLOCATOR_GO;
	}
	return go;
}

int hidden_allocator_in_image(const char *path)
{
	// What each exports, as interpreters_linux.c has them.
	static const struct {
		const char *name;
		enum hidden_allocator_kind kind;
	} exports[] = {
		{ "?Start@node@@YAHHQEAPEAD@Z", HIDDEN_ALLOCATOR_NODE },
		{ "?Start@node@@YAHHQAPAD@Z", HIDDEN_ALLOCATOR_NODE },
		{ "JNI_CreateJavaVM", HIDDEN_ALLOCATOR_JAVA },
		{ "coreclr_execute_assembly", HIDDEN_ALLOCATOR_NET },
		{ "rb_profile_frames", HIDDEN_ALLOCATOR_RUBY },
		{ "zend_mm_get_heap", HIDDEN_ALLOCATOR_PHP },
		{ "perl_parse", HIDDEN_ALLOCATOR_PERL },
		{ "Perl_newSV", HIDDEN_ALLOCATOR_PERL },
	};
	struct hidden_allocator_image image;
	struct file_view view = { 0 };
	struct err err = { 0 };
	int found = -1;

	if (!file_view_open(&view, path, &err))
		return -1;
	if (hidden_allocator_open(&image, view.bytes, view.size)) {
		for (size_t i = 0; found < 0 && i < sizeof exports / sizeof *exports; i++)
			if (hidden_allocator_exports(&image, exports[i].name))
				found = (int)exports[i].kind;
		if (found < 0 && hidden_allocator_maps(&image))
			found = hidden_allocator_constant(&image);
	}
	file_view_close(&view);
	return found;
}
