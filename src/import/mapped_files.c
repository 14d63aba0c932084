// For example the line
//
//     7f12000-7f34000 r-xp 00028000 08:01 131 /usr/lib/libc.so.6
//
// maps the file from byte 0x28000 on at 0x7f12000. If the file is here, its table of segments says
// at which address of its own that byte is; if that is 0x28000, too, the bias is 0x7f12000 -
// 0x28000.
#include "import/mapped_files.h"

#include "base/mem.h"
#include "import/number.h"
#include "os/file.h"
#include "trace/bytes.h"

#include <string.h>

enum { ELF_HEAD = 64, PROGRAM_ROW = 56, PROGRAM_ROWS_MAX = 64, PT_LOAD = 1 };

// As the line has it; `offset` is where in the file it begins. `path` is ours.
struct mapping_row {
	uint64_t start, end, offset;
	char *path;
	module_id module; // 0: not yet
};

void mapped_files_fini(struct mapped_files *mappings)
{
	for (size_t i = 0; i < mappings->count; i++)
		mem_free(mappings->rows[i].path);
	mem_free(mappings->rows);
	*mappings = (struct mapped_files){ 0 };
}

// `START-END rwxp OFFSET DEVICE INODE PATH`
// Only what can be run has code in it: the third letter of the protection is x.
void mapped_files_add(struct mapped_files *mappings, const char *line)
{
	struct mapping_row row = { 0 };
	size_t length = strcspn(line, "-");
	const char *path;

	if (!number_parse_hex(line, length, &row.start) || line[length] != '-')
		return;
	line += length + 1;
	length = strcspn(line, " ");
	if (!number_parse_hex(line, length, &row.end) || row.end <= row.start ||
	    strlen(line + length) < 6 || line[length + 3] != 'x')
		return;
	line += length + 6;
	if (!number_parse_hex(line, strcspn(line, " "), &row.offset))
		return;
	path = strchr(line, '/');
	if (!path)
		return;
	row.path = mem_copy_text(path);
	ASSERT(row.start < row.end && row.path);
	*MEM_ADD(mappings->rows, mappings->count, mappings->capacity) = row;
}

// What the address in the file's own terms is less than its offset in it, by its table of segments;
// 0 where the file is not here, as in most files it is.
// Of ELF files of 64 bits in little-endian order. A page of tolerance, as the kernel maps whole
// pages and a segment may begin within one. A file that is not what it was tells nonsense, and then
// names are wrong: the trace has no build-id to hold it against.
static uint64_t shift_of(const char *path, uint64_t offset)
{
	uint8_t head[ELF_HEAD], row[PROGRAM_ROW];
	int fd = file_open(path, FILE_READ);
	uint64_t shift = 0, at, size;

	if (fd < 0)
		return 0;
	if (file_is_regular(fd, &size) && file_read_at(fd, head, sizeof head, 0) == ELF_HEAD &&
	    memcmp(head,
		   "\x7f"
		   "ELF\2\1",
		   6) == 0 &&
	    bytes_get_u16(head + 54) == PROGRAM_ROW) {
		at = bytes_get_u64(head + 32);
		for (unsigned i = 0; i < bytes_get_u16(head + 56) && i < PROGRAM_ROWS_MAX; i++) {
			uint64_t begin;

			if (file_read_at(fd, row, sizeof row, at + i * PROGRAM_ROW) != PROGRAM_ROW)
				break;
			begin = bytes_get_u64(row + 8);
			if (bytes_get_u32(row) == PT_LOAD && offset + 4096 > begin &&
			    offset < begin + bytes_get_u64(row + 32) && (row[4] & 1))
				shift = bytes_get_u64(row + 16) - begin;
		}
	}
	file_close(fd);
	return shift;
}

// From the first row on: a process has some dozens, and each frame is asked for once.
module_id mapped_files_find(struct mapped_files *mappings, struct intake *intake,
			    process_id process, uint64_t address)
{
	for (size_t i = 0; i < mappings->count; i++) {
		struct mapping_row *row = &mappings->rows[i];

		if (address < row->start || address >= row->end)
			continue;
		if (!row->module)
			row->module = intake_module(
				intake, &(struct trace_module){
						.process = process,
						.start = row->start,
						.end = row->end,
						.bias = row->start - row->offset -
							shift_of(row->path, row->offset),
						.path = row->path,
					});
		return row->module;
	}
	return 0;
}
