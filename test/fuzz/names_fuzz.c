// Any bytes as what names are read from. The first byte says as what: a mangled name, a bundle of
// names, a line table, or a whole ELF file with its debug information.
#include "base/mem.h"
#include "symbols/demangle.h"
#include "symbols/linetable.h"
#include "symbols/symbols_bundle.h"
#include "symbols/symbols_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_name(const uint8_t *data, size_t size)
{
	enum { TEXT_MAX_BYTES = 2 << 20 }; // more than any of the demanglers may write
	char *name = mem_copy_bytes(data, size);
	char *text = demangle(name), *again = demangle(name);

	// Nothing is left of one name for the next, and a name that is understood says something.
	if (!text != !again || (text && strcmp(text, again) != 0))
		abort();
	if (text && (!*text || strlen(text) > TEXT_MAX_BYTES))
		abort();
	mem_free(text);
	mem_free(again);
	mem_free(name);
}

static void try_bundle(const uint8_t *data, size_t size)
{
	struct symbols_bundle bundle;
	struct places places = { 0 };
	struct err err;

	if (symbols_bundle_open(&bundle, data, size, &err)) {
		for (uint64_t at = 0; at < 64; at++)
			symbols_bundle_find(&bundle, at, &places);
		for (size_t i = 0; i < places.count; i++)
			if (places.items[i].function && strlen(places.items[i].function) > size)
				abort();
	}
	places_fini(&places);
}

static void try_lines(const uint8_t *data, size_t size)
{
	struct linetable_source source = {
		.bytes = data,
		.size_bytes = size,
		.address_bytes = 8,
		.code_end = UINT64_MAX,
	};
	struct linetable table;
	uint32_t file, line;

	linetable_read(&table, &source, 0);
	for (uint64_t at = 0; at < 0x4000; at += 7)
		if (linetable_find(&table, at, &file, &line) && table.rows_count == 0)
			abort();
	linetable_fini(&table);
}

static void try_file(const uint8_t *data, size_t size)
{
	struct remarks remarks = { 0 };
	struct search search = { .remarks = &remarks };
	struct places places = { 0 };
	struct symbols_file *file;
	char path[32];
	int fd = memfd_create("names", 0);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	file = symbols_file_open(&(struct symbols_file_identity){ .path = path }, &search);
	for (uint64_t at = 0x1000; at < 0x1400; at += 3) {
		places_clear(&places);
		symbols_file_find(file, at, &places);
		if (places.count == 0)
			abort();
	}
	symbols_file_close(file);
	places_fini(&places);
	remarks_fini(&remarks);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	switch (data[0]) {
	case 'n':
		try_name(data + 1, size - 1);
		break;
	case 'b':
		try_bundle(data + 1, size - 1);
		break;
	case 'l':
		try_lines(data + 1, size - 1);
		break;
	case 'f':
		try_file(data + 1, size - 1);
		break;
	default:
		return -1;
	}
	return 0;
}
