#include "collect/file_table.h"

#include "base/mem.h"

#include <string.h>

void file_table_fini(struct file_table *table)
{
	for (size_t i = 0; i < table->count; i++)
		mem_free(table->files[i].path);
	mem_free(table->files);
	map_fini(&table->map);
	*table = (struct file_table){ 0 };
}

// FNV-1a.
static uint64_t hash_of(uint64_t device, uint64_t inode, const char *path, size_t length)
{
	uint64_t hash = 0xcbf29ce484222325 ^ device * 0x9e3779b97f4a7c15 ^ inode;

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)path[i]) * 0x100000001b3;
	return hash;
}

// The number of a file that is known by device, inode and path together; 0: it is none (anonymous
// memory). Where a hash is taken by another file the next one is tried.
file_id file_table_put(struct file_table *table, uint64_t device, uint64_t inode, const char *path,
		       size_t length)
{
	uint64_t hash = hash_of(device, inode, path, length);
	const uint64_t *index;
	struct trace_file *file;

	if (length == 0 && inode == 0)
		return 0;
	for (; (index = map_find(&table->map, hash)) != NULL; hash++) {
		ASSERT(*index > 0 && *index <= table->count);
		file = &table->files[*index - 1];
		if (file->device == device && file->inode == inode &&
		    strlen(file->path) == length && memcmp(file->path, path, length) == 0)
			return file->id;
	}
	file = MEM_ADD(table->files, table->count, table->capacity);
	*file = (struct trace_file){
		.device = device,
		.inode = inode,
		.path = mem_copy_bytes(path, length),
	};
	file->id = writer_add_file(table->writer, file);
	*map_put(&table->map, hash, NULL) = table->count;
	return file->id;
}
