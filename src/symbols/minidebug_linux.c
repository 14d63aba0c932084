// .gnu_debugdata is an ELF file with the table of symbols that was stripped, packed by xz. It is
// unpacked piece by piece, because how long it becomes is written nowhere; a file that says
// little and becomes much is refused at 512 MiB, a dictionary above 128 MiB before it is made.
#include "symbols/minidebug.h"

#include "base/mem.h"

#include <lzma.h>

enum {
	BYTES_MAX = 512 * 1024 * 1024,  // of the table, unpacked
	MEMORY_MAX = 128 * 1024 * 1024, // for the decoder's dictionary
	STEP_BYTES = 256 * 1024,
};

struct object *minidebug_open(const struct object *object, struct err *err)
{
	const Elf_Data *packed = object_find_data(object, ".gnu_debugdata");
	lzma_stream stream = LZMA_STREAM_INIT;
	lzma_ret result = LZMA_OK;
	uint8_t *bytes = NULL;
	size_t capacity = 0, used = 0;

	*err = (struct err){ 0 };
	if (!packed)
		return NULL;
	if (lzma_stream_decoder(&stream, MEMORY_MAX, 0) != LZMA_OK) {
		err_set(err, ERR_FORMAT, "%s: .gnu_debugdata cannot be unpacked", object->path);
		return NULL;
	}
	// Room for a step each time round: `capacity` at least doubles, so bytes are moved few
	// times.
	stream.next_in = packed->d_buf;
	stream.avail_in = packed->d_size;
	while (result == LZMA_OK && used < BYTES_MAX) {
		bytes = mem_grow(bytes, &capacity, used + STEP_BYTES, 1);
		stream.next_out = bytes + used;
		stream.avail_out = capacity - used;
		result = lzma_code(&stream, LZMA_FINISH);
		used = (size_t)(stream.next_out - bytes);
		ASSERT(used <= capacity);
	}
	lzma_end(&stream);
	if (result != LZMA_STREAM_END) {
		mem_free(bytes);
		err_set(err, ERR_FORMAT, "%s: .gnu_debugdata is damaged", object->path);
		return NULL;
	}
	// From here on the object owns the bytes.
	return object_take_bytes(bytes, used, object->path, err);
}
