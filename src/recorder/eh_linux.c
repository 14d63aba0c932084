#include "recorder/eh_linux.h"

#include "recorder/cfi.h"
#include "recorder/elf.h"
#include "recorder/kernel.h"
#include "recorder/recording.h"
#include "recorder/scope_linux.h"
#include "recorder/text.h"

enum {
	EH_CIE_MIN = 16,
	EH_AT_ONCE = 16, // sections
	EH_COMPARED_BYTES = 256,
};

static bool eh_read(int fd, uint64_t at, void *out, size_t bytes)
{
#ifdef __x86_64__
	return kernel(__NR_pread64, fd, out, bytes, at) == (long)bytes;
#else
	return kernel(__NR_pread64, fd, out, bytes, (uint32_t)at, (uint32_t)(at >> 32)) ==
	       (long)bytes;
#endif
}

// Whether [at, at + bytes) is read from the file and stays as it is.
static bool eh_is_constant(const struct scope_object *object, uintptr_t at, uintptr_t bytes)
{
	uint16_t count = 0;
	const struct elf_program *program = scope_programs(object, &count);

	for (uint16_t i = 0; program && i < count; i++) {
		uintptr_t offset = at - (object->bias + program[i].address);

		if (program[i].type == ELF_LOAD && (program[i].flags & ELF_READABLE) &&
		    !(program[i].flags & ELF_WRITABLE) && offset < program[i].file_size &&
		    bytes <= program[i].file_size - offset)
			return true;
	}
	return false;
}

// Whether memory holds what the file does there.
static bool eh_is_same(int fd, const struct elf_section *section, const uint8_t *frames)
{
	uint8_t bytes[EH_COMPARED_BYTES];
	size_t size = section->size < sizeof(bytes) ? section->size : sizeof(bytes);

	return eh_read(fd, section->offset, bytes, size) && memcmp(bytes, frames, size) == 0;
}

// Whether the section can be .eh_frame: memory that begins with an entry of the first kind.
static bool eh_is_frames(const struct scope_object *object, const struct elf_section *section)
{
	uintptr_t at = object->bias + section->address;
	uint32_t head[2];

	if ((section->type != ELF_SECTION_BITS && section->type != ELF_SECTION_UNWIND) ||
	    (section->flags & (ELF_SECTION_ALLOCATED | ELF_SECTION_CODE)) !=
		    ELF_SECTION_ALLOCATED ||
	    section->size < EH_CIE_MIN || !eh_is_constant(object, at, section->size))
		return false;
	memcpy(head, (const void *)at, sizeof(head));
	return head[0] >= EH_CIE_MIN - 4 && head[0] < section->size && head[1] == 0;
}

// .eh_frame among the sections of the file. False: there is none.
static bool eh_find(const struct scope_object *object, int fd, const struct elf_header *elf,
		    struct elf_section *found)
{
	static const char name[] = ".eh_frame";
	struct elf_section sections[EH_AT_ONCE], names;
	char called[sizeof(name)];

	if (elf->section_size != sizeof(*sections) || elf->section_names >= elf->section_count ||
	    !eh_read(fd, elf->section_at + (uint64_t)elf->section_names * sizeof(names), &names,
		     sizeof(names)))
		return false;
	for (uint32_t i = 0; i < elf->section_count; i++) {
		uint32_t left = elf->section_count - i, here = i % EH_AT_ONCE;

		if (here == 0 &&
		    !eh_read(fd, elf->section_at + (uint64_t)i * sizeof(*sections), sections,
			     (left < EH_AT_ONCE ? left : EH_AT_ONCE) * sizeof(*sections)))
			return false;
		if (!eh_is_frames(object, &sections[here]) ||
		    !eh_read(fd, names.offset + sections[here].name, called, sizeof(called)) ||
		    memcmp(called, name, sizeof(name)) != 0)
			continue;
		*found = sections[here];
		return true;
	}
	return false;
}

// The object's file, if that is what was loaded. Negative: it cannot be had.
static int eh_open(const char *path, const struct elf_header *loaded, struct elf_header *elf)
{
	long fd = kernel(__NR_openat, KERNEL_AT_FDCWD, path, 0x80000 /* O_CLOEXEC */, 0);

	if (kernel_failed(fd))
		return -1;
	if (eh_read((int)fd, 0, elf, sizeof(*elf)) && memcmp(elf, loaded, sizeof(*elf)) == 0)
		return (int)fd;
	kernel(__NR_close, fd);
	return -1;
}

static uint8_t *eh_build(const uint8_t *frames, size_t bytes, uintptr_t start, uintptr_t end,
			 size_t *pages)
{
	uint8_t *header = NULL;

	*pages = cfi_index(frames, bytes, start, end, NULL);
	if (*pages)
		header = recording_pages(*pages, false);
	if (header)
		cfi_index(frames, bytes, start, end, header);
	return header;
}

uint8_t *eh_make_header(const struct scope_object *object, uintptr_t start, uintptr_t end,
			size_t *pages)
{
	const struct elf_header *loaded = (const void *)start;
	struct elf_section section;
	struct elf_header elf;
	uint8_t *header = NULL;
	int fd = -1;

	if (memcmp(loaded->identity, "\177ELF", 4) != 0)
		return NULL;
	if (object == scope_objects())
		fd = eh_open("/proc/self/exe", loaded, &elf);
	if (fd < 0 && object->name[0])
		fd = eh_open(object->name, loaded, &elf);
	if (fd < 0)
		return NULL;
	if (eh_find(object, fd, &elf, &section)) {
		const uint8_t *frames = (const uint8_t *)object->bias + section.address;

		if (eh_is_same(fd, &section, frames))
			header = eh_build(frames, section.size, start, end, pages);
	}
	kernel(__NR_close, fd);
	return header;
}
