// Symbol files inside a trace. A file is cut into parts, each in a BUNDLE block of its own, since a
// block has a bounded size. A part says whose it is, how large the whole is and where it goes:
//
//     build-id 93ac…   file_size 12 MiB   at 0       8 MiB follow
//     build-id 93ac…   file_size 12 MiB   at 8 MiB   4 MiB follow
//
// A file that was packed twice is there twice; the last copy counts. Nothing is unpacked before it
// is asked for, and a file that was asked for is kept.
#include "trace/bundle_reader.h"

void bundle_reader_fini(struct bundle_reader *bundle_reader)
{
	for (size_t i = 0; i < bundle_reader->files_count; i++) {
		MEM_FREE(bundle_reader->files[i]->bytes, bundle_reader->files[i]);
	}
	MEM_FREE(bundle_reader->files, bundle_reader->blocks, bundle_reader->parts);
	*bundle_reader = (struct bundle_reader){ 0 };
}

void bundle_reader_add(struct bundle_reader *bundle_reader, uint64_t block_at)
{
	*MEM_ADD(bundle_reader->blocks, bundle_reader->blocks_count,
		 bundle_reader->blocks_capacity) = block_at;
}

// The payload of a BUNDLE block. `bytes` is borrowed from the payload.
// The file's size is bounded before anything is allocated by it, and each part must be inside of
// it.
static bool decode(struct bytes_cursor payload, struct bundle_reader_part *part,
		   const uint8_t **bytes)
{
	uint64_t length = bytes_next(&payload);
	const uint8_t *build_id = bytes_next_raw(&payload, length);

	*part = (struct bundle_reader_part){ 0 };
	part->file_size = bytes_next(&payload);
	part->at = bytes_next(&payload);
	part->size = bytes_left(&payload);
	*bytes = payload.at;
	if (payload.bad || length > BUNDLE_READER_LABEL_MAX ||
	    part->file_size > BUNDLE_READER_FILE_MAX || part->at > part->file_size ||
	    part->size > part->file_size - part->at)
		return false;
	memcpy(part->build_id, build_id, length);
	part->build_id_length = (size_t)length;
	return true;
}

// The size of the part itself is that of the block.
void bundle_reader_encode(struct bytes *out, const struct bundle_reader_part *part,
			  const uint8_t *bytes)
{
	ASSERT(part->build_id_length <= BUNDLE_READER_LABEL_MAX && part->at <= part->file_size);
	bytes_add_varint(out, part->build_id_length);
	bytes_add(out, part->build_id, part->build_id_length);
	bytes_add_varint(out, part->file_size);
	bytes_add_varint(out, part->at);
	bytes_add(out, bytes, part->size);
}

// The part points into the loader's buffer, which the next load overwrites.
static bool load(struct walk_loader *loader, const struct store *store, uint64_t at,
		 struct bundle_reader_part *part, const uint8_t **bytes)
{
	uint8_t header[BLOCK_HEADER_BYTES];
	struct bytes_cursor payload;
	struct err ignored;
	struct block block;

	return store_read(store, at, header, sizeof header) == sizeof header &&
	       block_header_decode(header, &block) && block.type == BLOCK_BUNDLE &&
	       walk_load(loader, store, &block, at, &payload, &ignored) &&
	       decode(payload, part, bytes);
}

// Each BUNDLE block is unpacked once for its label, at the first question. Blocks that were added
// since the last question are read at the next.
static void read_labels(struct bundle_reader *bundle_reader, struct walk_loader *loader,
			const struct store *store)
{
	for (; bundle_reader->blocks_read < bundle_reader->blocks_count;
	     bundle_reader->blocks_read++) {
		uint64_t at = bundle_reader->blocks[bundle_reader->blocks_read];
		struct bundle_reader_part part;
		const uint8_t *bytes;

		if (!load(loader, store, at, &part, &bytes))
			continue;
		part.block_at = at;
		*MEM_ADD(bundle_reader->parts, bundle_reader->parts_count,
			 bundle_reader->parts_capacity) = part;
	}
}

static bool same(const uint8_t *left, size_t left_length, const uint8_t *right, size_t right_length)
{
	return left_length == right_length && memcmp(left, right, left_length) == 0;
}

// Where the last copy of a file begins: it was packed again because more is known.
// A part that begins at 0 begins a copy.
static size_t last_copy(const struct bundle_reader *bundle_reader, const uint8_t *build_id,
			size_t length)
{
	size_t first = 0;

	for (size_t i = 0; i < bundle_reader->parts_count; i++)
		if (bundle_reader->parts[i].at == 0 &&
		    same(bundle_reader->parts[i].build_id, bundle_reader->parts[i].build_id_length,
			 build_id, length))
			first = i;
	return first;
}

// Put the parts together. They lie in order, each beginning where the one before ended.
// A part that is damaged or missing leaves the file unfinished, and so there is none: half of a
// symbol table would name functions wrongly.
static struct bundle_reader_file *assemble(struct bundle_reader *bundle_reader,
					   struct walk_loader *loader, const struct store *store,
					   const uint8_t *build_id, size_t length)
{
	struct bundle_reader_file *file = mem_alloc(1, sizeof *file);
	struct bytes whole = { 0 };
	bool begun = false;

	for (size_t i = last_copy(bundle_reader, build_id, length); i < bundle_reader->parts_count;
	     i++) {
		struct bundle_reader_part part = bundle_reader->parts[i];
		uint64_t at = part.block_at;
		const uint8_t *bytes;

		if (!same(part.build_id, part.build_id_length, build_id, length) ||
		    part.at != whole.size || (begun && part.file_size != file->size))
			continue;
		if (!load(loader, store, at, &part, &bytes))
			continue;
		bytes_add(&whole, bytes, part.size);
		file->size = part.file_size;
		begun = true;
		if (whole.size == file->size)
			break;
	}
	if (!begun || whole.size != file->size) {
		bytes_fini(&whole);
		mem_free(file);
		return NULL;
	}
	ASSERT(length <= BUNDLE_READER_LABEL_MAX);
	memcpy(file->build_id, build_id, length);
	file->build_id_length = length;
	file->bytes = whole.data ? whole.data : mem_alloc(1, 1);
	return file;
}

// A file that is not there is looked for again at each question: callers ask once for each module.
const void *bundle_reader_find(struct bundle_reader *bundle_reader, const struct store *store,
			       const uint8_t *build_id, size_t build_id_length, size_t *size)
{
	struct walk_loader loader = { 0 };
	struct bundle_reader_file *file = NULL;

	if (bundle_reader->blocks_count == 0 || build_id_length > BUNDLE_READER_LABEL_MAX)
		return NULL;
	for (size_t i = 0; i < bundle_reader->files_count && !file; i++)
		if (same(bundle_reader->files[i]->build_id,
			 bundle_reader->files[i]->build_id_length, build_id, build_id_length))
			file = bundle_reader->files[i];
	if (!file) {
		read_labels(bundle_reader, &loader, store);
		file = assemble(bundle_reader, &loader, store, build_id, build_id_length);
		walk_loader_fini(&loader);
		if (!file)
			return NULL;
		*MEM_ADD(bundle_reader->files, bundle_reader->files_count,
			 bundle_reader->files_capacity) = file;
	}
	*size = (size_t)file->size;
	return file->bytes;
}
