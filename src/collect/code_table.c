// A frame's key is its file << 35 | marks << 33 | flags << 32 | its offset, so that equal keys are
// equal frames. What does not fit, a file of 4 GiB or number 2^29, is a frame of its own each time.
#include "collect/code_table.h"

#include "base/mem.h"

#include <string.h>

enum { OFFSET_BITS = 32, FLAGS_BITS = 1, MARKS_BITS = 2 };

_Static_assert(CODE_TABLE_MARKS == 1 << MARKS_BITS, "marks have their place in a key");
_Static_assert(TRACE_FRAME_EXACT_PC < 1 << FLAGS_BITS, "and so has the flag of native frames");

struct code_function {
	char *name, *file;
};

void code_table_fini(struct code_table *table)
{
	for (size_t i = 0; i < table->count; i++)
		mem_free(table->files[i].path);
	for (size_t i = 0; i < table->functions_count; i++) {
		MEM_FREE(table->functions[i].name, table->functions[i].file);
	}
	MEM_FREE(table->files, table->functions);
	index_set_fini(&table->known);
	index_set_fini(&table->functions_known);
	MAP_FINI(&table->frames, &table->lines);
	*table = (struct code_table){ 0 };
}

// All but whose module it is and where.
static bool is_same(const void *context, uint32_t position, const void *key)
{
	const struct code_table *table = context;
	const struct trace_module *a = &table->files[position], *b = key;

	return a->start - a->bias == b->start - b->bias && a->end - a->bias == b->end - b->bias &&
	       a->file_size == b->file_size && a->file_mtime_ns == b->file_mtime_ns &&
	       a->build_id_length == b->build_id_length &&
	       memcmp(a->build_id, b->build_id, sizeof a->build_id) == 0 &&
	       strcmp(a->path, b->path) == 0;
}

// Is it known well enough what file it is?
static bool is_certain(const struct trace_module *module)
{
	return module->build_id_length > 0 || (module->file_size > 0 && module->file_mtime_ns > 0);
}

uint32_t code_table_file(struct code_table *table, const struct trace_module *module)
{
	const uint64_t words[] = { index_set_hash_text(module->path), module->file_size,
				   module->file_mtime_ns };
	uint32_t file = (uint32_t)table->count;

	if (is_certain(module))
		file = index_set_put(&table->known, index_set_hash(words, 3), is_same, table,
				     module, file);
	ASSERT(file <= table->count);
	if (file == table->count) {
		struct trace_module *fresh = MEM_ADD(table->files, table->count, table->capacity);

		*fresh = *module;
		fresh->path = mem_copy_text(module->path);
	}
	return file;
}

frame_id code_table_frame(struct code_table *table, uint32_t file, uint64_t offset, uint32_t flags,
			  uint32_t marks)
{
	const struct trace_module *module = &table->files[file];
	uint64_t key = (uint64_t)file << MARKS_BITS | marks;
	uint64_t *frame;

	ASSERT(file < table->count && marks < CODE_TABLE_MARKS && flags >> FLAGS_BITS == 0);
	key = (key << FLAGS_BITS | flags) << OFFSET_BITS | offset;
	if (offset >> OFFSET_BITS || file >> (64 - OFFSET_BITS - FLAGS_BITS - MARKS_BITS))
		return writer_add_frame(table->writer, module->id, module->bias + offset, flags);
	frame = map_put(&table->frames, key, NULL);
	if (*frame == 0)
		*frame = writer_add_frame(table->writer, module->id, module->bias + offset, flags);
	return (frame_id)*frame;
}

static bool is_same_function(const void *context, uint32_t position, const void *key)
{
	const struct code_table *table = context;
	const struct code_function *a = &table->functions[position], *b = key;

	return strcmp(a->name, b->name) == 0 && strcmp(a->file, b->file) == 0;
}

static uint32_t number_of(struct code_table *table, const struct code_function *function)
{
	const uint64_t words[] = { index_set_hash_text(function->name),
				   index_set_hash_text(function->file) };
	uint32_t count = (uint32_t)table->functions_count;
	uint32_t number = index_set_put(&table->functions_known, index_set_hash(words, 2),
					is_same_function, table, function, count);

	ASSERT(number <= count);
	if (number == count)
		*MEM_ADD(table->functions, table->functions_count, table->functions_capacity) =
			(struct code_function){ .name = mem_copy_text(function->name),
						.file = mem_copy_text(function->file) };
	return number;
}

// Two functions of one name at one line are one: there is nothing by which they could be told apart
// in what is shown.
frame_id code_table_line(struct code_table *table, const char *function, const char *file,
			 uint32_t line)
{
	const struct trace_name name = { .function = (char *)(uintptr_t)function,
					 .file = (char *)(uintptr_t)file,
					 .line = line };
	const struct code_function known = { .name = name.function, .file = name.file };
	uint64_t key = (uint64_t)number_of(table, &known) << 32 | line;
	uint64_t *frame = map_put(&table->lines, key, NULL);

	if (*frame != 0)
		return (frame_id)*frame;
	*frame = writer_add_frame(table->writer, 0, key, TRACE_FRAME_SOURCE);
	writer_add_name(table->writer, (frame_id)*frame, &name, 1);
	return (frame_id)*frame;
}
