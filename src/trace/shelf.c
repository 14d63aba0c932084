#include "trace/shelf.h"

void shelf_fini(struct shelf *shelf)
{
	for (size_t i = 0; i < shelf->files_count; i++) {
		mem_free(shelf->files[i]->bytes);
		mem_free(shelf->files[i]);
	}
	mem_free(shelf->files);
	mem_free(shelf->blocks);
	mem_free(shelf->parts);
	*shelf = (struct shelf){ 0 };
}

void shelf_add(struct shelf *shelf, uint64_t block_at)
{
	shelf->blocks = mem_grow(shelf->blocks, &shelf->blocks_capacity, shelf->blocks_count + 1,
				 sizeof *shelf->blocks);
	shelf->blocks[shelf->blocks_count++] = block_at;
}

bool shelf_decode(struct bytes_cursor payload, struct shelf_part *part, const uint8_t **bytes)
{
	uint64_t length = bytes_next(&payload);
	const uint8_t *build_id = bytes_next_raw(&payload, length);

	*part = (struct shelf_part){ 0 };
	part->file_size = bytes_next(&payload);
	part->at = bytes_next(&payload);
	part->size = bytes_left(&payload);
	*bytes = payload.at;
	if (payload.bad || length > SHELF_LABEL_MAX || part->file_size > SHELF_FILE_MAX ||
	    part->at > part->file_size || part->size > part->file_size - part->at)
		return false;
	memcpy(part->build_id, build_id, length);
	part->build_id_length = (size_t)length;
	return true;
}

void shelf_encode(struct bytes *out, const struct shelf_part *part, const uint8_t *bytes)
{
	bytes_add_varint(out, part->build_id_length);
	bytes_add(out, part->build_id, part->build_id_length);
	bytes_add_varint(out, part->file_size);
	bytes_add_varint(out, part->at);
	bytes_add(out, bytes, part->size);
}

static bool load(struct walk_loader *loader, const struct store *store, uint64_t at,
		 struct shelf_part *part, const uint8_t **bytes)
{
	uint8_t header[BLOCK_HEADER_BYTES];
	struct bytes_cursor payload;
	struct err ignored;
	struct block block;

	return store_read(store, at, header, sizeof header) == sizeof header &&
	       block_header_decode(header, &block) && block.type == BLOCK_BUNDLE &&
	       walk_load(loader, store, &block, at, &payload, &ignored) &&
	       shelf_decode(payload, part, bytes);
}

static void read_labels(struct shelf *shelf, struct walk_loader *loader, const struct store *store)
{
	for (; shelf->blocks_read < shelf->blocks_count; shelf->blocks_read++) {
		uint64_t at = shelf->blocks[shelf->blocks_read];
		struct shelf_part part;
		const uint8_t *bytes;

		if (!load(loader, store, at, &part, &bytes))
			continue;
		part.block_at = at;
		shelf->parts = mem_grow(shelf->parts, &shelf->parts_capacity,
					shelf->parts_count + 1, sizeof *shelf->parts);
		shelf->parts[shelf->parts_count++] = part;
	}
}

static bool same(const uint8_t *left, size_t left_length, const uint8_t *right, size_t right_length)
{
	return left_length == right_length && memcmp(left, right, left_length) == 0;
}

// Where the last copy of a file begins: it was packed again because more is known.
static size_t last_copy(const struct shelf *shelf, const uint8_t *build_id, size_t length)
{
	size_t first = 0;

	for (size_t i = 0; i < shelf->parts_count; i++)
		if (shelf->parts[i].at == 0 &&
		    same(shelf->parts[i].build_id, shelf->parts[i].build_id_length, build_id,
			 length))
			first = i;
	return first;
}

// Put the parts together. They lie in order, each beginning where the one before ended.
static struct shelf_file *assemble(struct shelf *shelf, struct walk_loader *loader,
				   const struct store *store, const uint8_t *build_id,
				   size_t length)
{
	struct shelf_file *file = mem_alloc(1, sizeof *file);
	struct bytes whole = { 0 };
	bool begun = false;

	for (size_t i = last_copy(shelf, build_id, length); i < shelf->parts_count; i++) {
		struct shelf_part part = shelf->parts[i];
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
	memcpy(file->build_id, build_id, length);
	file->build_id_length = length;
	file->bytes = whole.data ? whole.data : mem_alloc(1, 1);
	return file;
}

const void *shelf_find(struct shelf *shelf, const struct store *store, const uint8_t *build_id,
		       size_t build_id_length, size_t *size)
{
	struct walk_loader loader = { 0 };
	struct shelf_file *file = NULL;

	if (shelf->blocks_count == 0 || build_id_length > SHELF_LABEL_MAX)
		return NULL;
	for (size_t i = 0; i < shelf->files_count && !file; i++)
		if (same(shelf->files[i]->build_id, shelf->files[i]->build_id_length, build_id,
			 build_id_length))
			file = shelf->files[i];
	if (!file) {
		read_labels(shelf, &loader, store);
		file = assemble(shelf, &loader, store, build_id, build_id_length);
		walk_loader_fini(&loader);
		if (!file)
			return NULL;
		shelf->files = mem_grow(shelf->files, &shelf->files_capacity,
					shelf->files_count + 1, sizeof *shelf->files);
		shelf->files[shelf->files_count++] = file;
	}
	*size = (size_t)file->size;
	return file->bytes;
}
