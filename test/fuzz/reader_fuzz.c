// Any bytes as a trace: read to the end, scan, seek, bundles, dump and repair.
//
// Checksums would stop nearly every change that a fuzzer makes at the first block. So bytes that do
// not begin like a trace are taken as the *payloads* of blocks, with headers that are right: each
// begins with a type, a count of events and a length. Of a type with the highest bit set they are
// packed: the size that they have when they are unpacked follows, in three bytes.
#include "base/crc32c.h"
#include "trace/asm.h"
#include "trace/block.h"
#include "trace/reader.h"
#include "trace/repair.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put(int fd, const void *bytes, size_t size)
{
	if (write(fd, bytes, size) != (ssize_t)size)
		abort();
}

// As packed, whatever they are.
static void put_packed(int fd, struct block *block, const uint8_t *data, size_t size)
{
	uint8_t head[BLOCK_HEADER_BYTES];

	if (size < 3)
		return;
	block->codec = BLOCK_ZSTD;
	block->raw_size = data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16;
	block->stored_size = (uint32_t)size - 3;
	block->payload_crc = crc32c(0, data + 3, size - 3);
	block_header_encode(block, head);
	put(fd, head, sizeof head);
	put(fd, data + 3, size - 3);
}

// Blocks around payloads.
static void put_blocks(int fd, const uint8_t *data, size_t size)
{
	struct block_packer packer = { 0 };
	struct block_preamble preamble = { .version_major = 1 };
	struct block block = { 0 };
	uint8_t head[BLOCK_PREAMBLE_BYTES];

	block_preamble_encode(&preamble, head);
	put(fd, head, sizeof head);
	while (size >= 4) {
		struct bytes out = { 0 };
		size_t length = (size_t)data[2] | (size_t)data[3] << 8;
		bool packed = data[0] & 0x80;

		block.type = (data[0] & 0x7f) % 7;
		block.events_count = block.type == BLOCK_EVENTS ? data[1] : 0;
		data += 4;
		size -= 4;
		length = length < size ? length : size;
		if (packed)
			put_packed(fd, &block, data, length);
		else
			block_pack(&packer, &block, data, length, false, &out);
		put(fd, out.data, out.size);
		bytes_fini(&out);
		data += length;
		size -= length;
		block.sequence++;
		block.first_event += block.events_count;
	}
	block_packer_fini(&packer);
}

static void check_item(const struct reader *reader, enum reader_item item,
		       const struct trace_event *event, const struct trace_note *note)
{
	if (item == READER_NOTE) {
		if (!note->text || strlen(note->text) > BLOCK_SIZE_MAX)
			abort();
		return;
	}
	if (event->thread >= reader_threads_count(reader) ||
	    event->stack >= reader_stacks_count(reader) ||
	    event->heap >= reader_heaps_count(reader) ||
	    (event->vm && event->vm->file >= reader_files_count(reader)))
		abort();
}

static void use(struct reader *reader)
{
	struct asm_options options = asm_dump_all();
	struct trace_event event;
	struct trace_note note;
	enum reader_item item;
	struct str text = { 0 };
	struct sink sink = sink_to_str(&text);
	struct err err = { 0 };
	uint64_t last_ns = 0;
	size_t size;

	while ((item = reader_next(reader, &event, &note)) != READER_END) {
		check_item(reader, item, &event, &note);
		if ((item == READER_EVENT ? event.time_ns : note.time_ns) < last_ns)
			abort();
		last_ns = item == READER_EVENT ? event.time_ns : note.time_ns;
	}
	if (reader_ok(reader, &err) != reader_complete(reader))
		abort();
	reader_seek(reader, last_ns / 2, &err);
	reader_next(reader, &event, &note);
	reader_bundle(reader, (const uint8_t *)"build-id", 8, &size);
	for (module_id id = 0; id < reader_modules_count(reader); id++) {
		const struct trace_module *module = reader_module(reader, id);

		reader_bundle(reader, module->build_id, module->build_id_length, &size);
	}
	options.count = 1000;
	if (reader_stacks_count(reader) < 10000)
		asm_dump(reader, &options, &sink, &err);
	str_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("trace", 0), mended = memfd_create("mended", 0);
	struct repair_result result;
	struct err err = { 0 };
	struct reader *reader;
	char path[40];

	if (size > 0 && data[0] == 0x89)
		put(fd, data, size);
	else
		put_blocks(fd, data, size);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	reader = reader_open(path, &err);
	if (reader)
		use(reader);
	reader_close(reader);
	if (repair_trace(path, mended, &result, &err)) {
		snprintf(path, sizeof path, "/proc/self/fd/%d", mended);
		reader = reader_open(path, &err);
		if (!reader) {
			fprintf(stderr, "%s\n", err.text);
			abort(); // what repair makes can be opened
		}
		use(reader);
		reader_close(reader);
	}
	close(fd);
	close(mended);
	return 0;
}
