// An ELF file by libelf. ELF_C_READ_MMAP maps it privately, so opening costs nothing by itself:
// pages are read when a section is. After the head was looked at, the descriptor is closed
// (ELF_C_FDREAD tells libelf to go without): 5,000 modules would otherwise need 5,000 descriptors,
// and a shell gives 1,024.
//
// A mapped file that is cut while it is open would end the program by SIGBUS where a page is read
// that is no longer there. mapped_watch says which mappings may do so, and puts zeros in place of
// such pages (os/mapped.h).
#include "symbols/object.h"

#include "base/mem.h"
#include "os/mapped.h"
#include "symbols/unpacked.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

// A debug file has headers of all sections of its module, without the bytes of code and data
// (SHT_NOBITS): such a section is not found, as it is somewhere else.
Elf_Scn *object_find_section(const struct object *object, const char *name)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(object->elf, &names) != 0)
		return NULL;
	while ((section = elf_nextscn(object->elf, section))) {
		GElf_Shdr header;
		const char *found;

		if (!gelf_getshdr(section, &header) || header.sh_type == SHT_NOBITS)
			continue;
		found = elf_strptr(object->elf, names, header.sh_name);
		if (found && strcmp(found, name) == 0)
			return section;
	}
	return NULL;
}

const Elf_Data *object_find_data(const struct object *object, const char *name)
{
	Elf_Scn *section = object_find_section(object, name);
	Elf_Data *data = section ? elf_rawdata(section, NULL) : NULL;

	return data && data->d_buf && data->d_size > 0 ? data : NULL;
}

bool object_is(const struct object *object, const uint8_t *build_id, size_t length)
{
	return length > 0 && object->build_id_length == length &&
	       memcmp(object->build_id, build_id, length) == 0;
}

// A build-id longer than 32 bytes is taken for none; linkers write 8 to 20.
static void read_build_id(struct object *object)
{
	const void *bytes;
	ssize_t length = dwelf_elf_gnu_build_id(object->elf, &bytes);

	if (length <= 0 || (size_t)length > sizeof object->build_id)
		return;
	memcpy(object->build_id, bytes, (size_t)length);
	object->build_id_length = (size_t)length;
	ASSERT(object->build_id_length > 0); // 0 is "none"
}

// From the lowest to the highest byte of executable sections. Ranges of debug information outside
// of it belong to functions that the linker dropped. Without any such section it is [UINT64_MAX,
// 0), which nothing is in.
static void read_code_bounds(struct object *object)
{
	Elf_Scn *section = NULL;

	object->code_start = UINT64_MAX;
	while ((section = elf_nextscn(object->elf, section))) {
		GElf_Shdr header;

		if (!gelf_getshdr(section, &header) || !(header.sh_flags & SHF_EXECINSTR))
			continue;
		if (header.sh_size == 0 || header.sh_addr + header.sh_size < header.sh_addr)
			continue;
		if (header.sh_addr < object->code_start)
			object->code_start = header.sh_addr;
		if (header.sh_addr + header.sh_size > object->code_end)
			object->code_end = header.sh_addr + header.sh_size;
	}
}

// What is common to files and bytes. `object->elf` may be NULL.
static bool look_inside(struct object *object, struct err *err)
{
	GElf_Ehdr header;

	if (!object->elf || elf_kind(object->elf) != ELF_K_ELF ||
	    !gelf_getehdr(object->elf, &header))
		return err_set(err, ERR_FORMAT, "%s: not an ELF file", object->path);
	read_build_id(object);
	read_code_bounds(object);
	if (object_find_section(object, ".debug_info") ||
	    object_find_section(object, ".zdebug_info"))
		object->dwarf = dwarf_begin_elf(object->elf, DWARF_C_READ, NULL);
	return true;
}

// Who builds the program anew may write into its old file.
static void watch(struct object *object)
{
	size_t size = 0;

	if (object->elf)
		object->mapped = elf_rawfile(object->elf, &size);
	if (object->mapped)
		mapped_watch(object->mapped, size);
}

// A file whose debug sections are packed by zstd is read from a copy, in which they are not.
static void unpack(struct object *object, int fd)
{
	struct err err;

	if (!object->elf)
		return;
	object->unpacked = unpacked_new(object->elf, fd, &object->unpacked_bytes, &err);
	if (object->unpacked) {
		elf_end(object->elf);
		object->elf = elf_memory(object->unpacked, object->unpacked_bytes);
	} else if (err.kind != ERR_NONE) {
		object->trouble = mem_copy_text(err.text);
	}
}

struct object *object_open(const char *path, struct err *err)
{
	struct object *object;
	struct stat status;
	bool ok = false;
	int fd;

	elf_version(EV_CURRENT);
	// A path in a trace may be a fifo or a terminal by now: opening must not wait for another
	// end, nor make it our terminal.
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0) {
		err_errno(err, errno, "%s", path);
		return NULL;
	}
	object = mem_alloc(1, sizeof *object);
	object->path = mem_copy_text(path);
	if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
		err_set(err, ERR_FORMAT, "%s: not a regular file", path);
	} else {
		object->size_bytes = (uint64_t)status.st_size;
		object->mtime_ns = (uint64_t)status.st_mtim.tv_sec * 1000000000 +
				   (uint64_t)status.st_mtim.tv_nsec;
		object->elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
		unpack(object, fd);
		if (!object->unpacked)
			watch(object);
		ok = look_inside(object, err);
		// libdw knows by now in which directory the file lies, and what lies beside it.
		if (ok && !object->unpacked && elf_cntl(object->elf, ELF_C_FDREAD) != 0)
			ok = err_set(err, ERR_FORMAT, "%s: cannot be read", path);
	}
	close(fd);
	if (!ok) {
		object_close(object);
		return NULL;
	}
	return object;
}

struct object *object_take_bytes(void *bytes, size_t size_bytes, const char *path, struct err *err)
{
	struct object *object = mem_alloc(1, sizeof *object);

	elf_version(EV_CURRENT);
	object->path = mem_copy_text(path);
	object->bytes = bytes;
	object->size_bytes = size_bytes;
	object->elf = elf_memory(bytes, size_bytes);
	if (!look_inside(object, err)) {
		object_close(object);
		return NULL;
	}
	return object;
}

void object_close(struct object *object)
{
	if (!object)
		return;
	if (object->dwarf)
		dwarf_end(object->dwarf);
	if (object->mapped)
		mapped_forget(object->mapped);
	if (object->elf)
		elf_end(object->elf);
	unpacked_free(object->unpacked, object->unpacked_bytes);
	MEM_FREE(object->trouble, object->bytes, object->path, object);
}

// zlib's CRC-32: of "123456789" it is cbf43926. Only asked where there is no build-id.
bool object_crc(const char *path, uint32_t *crc)
{
	uint8_t buffer[65536];
	uLong sum = 0;
	ssize_t got;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return false;
	while ((got = read(fd, buffer, sizeof buffer)) > 0)
		sum = crc32(sum, buffer, (uInt)got);
	close(fd);
	*crc = (uint32_t)sum;
	return got == 0;
}
