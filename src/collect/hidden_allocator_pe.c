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
#include "trace/pe.h"

#include <string.h>

enum {
	HIDDEN_ALLOCATOR_EXPORT = 40, // the head of the table
	HIDDEN_ALLOCATOR_IMPORT = 20, // one DLL's
	HIDDEN_ALLOCATOR_IMPORTS_MAX = 65536,
	HIDDEN_ALLOCATOR_EXPORTS_MAX = 1 << 20,
};

// A text of the image, or "".
static const char *hidden_allocator_text(const struct pe *pe, uint64_t rva)
{
	const char *text = rva <= UINT32_MAX ? pe_text(pe, (uint32_t)rva) : NULL;

	return text ? text : "";
}

// Names of exports are in order, as strcmp has it.
static bool hidden_allocator_exports(const struct pe *pe, const char *name)
{
	uint32_t rva = pe->directories[PE_EXPORTS].rva, low = 0, high;
	const uint8_t *table = rva ? pe_at(pe, rva, HIDDEN_ALLOCATOR_EXPORT) : NULL, *names;

	if (!table)
		return false;
	high = bytes_get_u32(table + 24);
	if (high > HIDDEN_ALLOCATOR_EXPORTS_MAX)
		return false;
	names = pe_at(pe, bytes_get_u32(table + 32), 4 * (size_t)high);
	if (!names)
		return false;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		int order = strcmp(
			name, hidden_allocator_text(pe, bytes_get_u32(names + 4 * (size_t)middle)));

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
static unsigned hidden_allocator_imports_of(const struct pe *pe, const uint8_t *import,
					    size_t *budget)
{
	uint32_t rva = bytes_get_u32(import);
	size_t left, each = pe->is_64 ? 8 : 4;
	const uint8_t *at = pe_rest(pe, rva ? rva : bytes_get_u32(import + 16), &left);
	unsigned found = 0;

	for (; at && left >= each && *budget > 0; at += each, left -= each, --*budget) {
		uint64_t value = pe->is_64 ? bytes_get_u64(at) : bytes_get_u32(at);
		const char *name;

		if (value == 0)
			break;
		if (value >> (8 * each - 1))
			continue; // by its number
		name = hidden_allocator_text(pe, value + 2);
		found |= strcmp(name, "VirtualAlloc") == 0 ? 1 : 0;
		found |= strcmp(name, "VirtualFree") == 0 ? 2 : 0;
	}
	return found;
}

// Whether it asks the system for memory, and gives it back.
static bool hidden_allocator_maps(const struct pe *pe)
{
	uint32_t rva = pe->directories[PE_IMPORTS].rva;
	size_t left, budget = HIDDEN_ALLOCATOR_IMPORTS_MAX;
	const uint8_t *at = rva ? pe_rest(pe, rva, &left) : NULL;
	unsigned found = 0;

	for (; at && left >= HIDDEN_ALLOCATOR_IMPORT && bytes_get_u32(at + 12) && budget > 0;
	     at += HIDDEN_ALLOCATOR_IMPORT, left -= HIDDEN_ALLOCATOR_IMPORT)
		found |= hidden_allocator_imports_of(pe, at, &budget);
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
static int hidden_allocator_constant(const struct pe *pe)
{
	int go = -1;

	for (size_t i = 0; i < pe->sections_count; i++) {
		const struct pe_section *section = &pe->sections[i];

		if (!section->bytes || section->name_length != 6 ||
		    memcmp(section->name, ".rdata", 6) != 0)
			continue;
		for (int k = 0; k < HIDDEN_ALLOCATOR_ALLOCATORS; k++)
			if (hidden_allocator_has(section->bytes, section->bytes_count,
						 hidden_allocator_texts[k].text,
						 hidden_allocator_texts[k].rare))
				return k;
		if (hidden_allocator_has_go(section->bytes, section->bytes_count))
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
		{ "graal_create_isolate", HIDDEN_ALLOCATOR_GRAAL },
		{ "JNI_CreateJavaVM", HIDDEN_ALLOCATOR_JAVA },
		{ "coreclr_execute_assembly", HIDDEN_ALLOCATOR_NET },
		{ "DotNetRuntimeInfo", HIDDEN_ALLOCATOR_NET },        // a single file
		{ "DotNetRuntimeDebugHeader", HIDDEN_ALLOCATOR_NET }, // compiled beforehand
		{ "rb_profile_frames", HIDDEN_ALLOCATOR_RUBY },
		{ "zend_mm_get_heap", HIDDEN_ALLOCATOR_PHP },
		{ "perl_parse", HIDDEN_ALLOCATOR_PERL },
		{ "Perl_newSV", HIDDEN_ALLOCATOR_PERL },
	};
	struct pe pe = { 0 };
	struct file_view view = { 0 };
	struct err err = { 0 };
	int found = -1;

	if (!file_view_open(&view, path, &err))
		return -1;
	if (pe_open(&pe, view.bytes, view.size, &err)) {
		for (size_t i = 0; found < 0 && i < sizeof exports / sizeof *exports; i++)
			if (hidden_allocator_exports(&pe, exports[i].name))
				found = (int)exports[i].kind;
		if (found < 0 && hidden_allocator_maps(&pe))
			found = hidden_allocator_constant(&pe);
	}
	pe_close(&pe);
	file_view_close(&view);
	return found;
}
