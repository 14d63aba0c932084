// eh: an .eh_frame_hdr for objects whose linker left it out (--no-eh-frame-hdr). The section
// headers of the file say where .eh_frame is; what is in memory there has to be the same bytes; and
// a sorted table is made of it, which then serves as the linker's would (cfi.h).
#include "recorder/eh_linux.h"

#include "recorder/cfi.h"
#include "recorder/elf.h"
#include "recorder/object_file_linux.h"
#include "recorder/recording.h"
#include "recorder/scope_linux.h"
#include "recorder/text.h"

enum {
	EH_CIE_MIN = 16,
	EH_COMPARED_BYTES = 256,
};

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
static bool eh_is_same(const struct object_file *file, const struct elf_section *section,
		       const uint8_t *frames)
{
	uint8_t bytes[EH_COMPARED_BYTES];
	size_t size = section->size < sizeof(bytes) ? section->size : sizeof(bytes);

	return object_file_read(file, section->offset, bytes, size) &&
	       memcmp(bytes, frames, size) == 0;
}

// Whether the section can be .eh_frame: memory that begins with an entry of the first kind.
//
// A CIE: its length, and then a zero where an FDE has the distance to its CIE.
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

// .eh_frame among the sections of the file; NULL: there is none.
static const struct elf_section *eh_find(const struct scope_object *object,
					 struct object_file *file)
{
	const struct elf_section *section;

	for (uint32_t i = 0; (section = object_file_section(file, i)); i++) {
		if (eh_is_frames(object, section) &&
		    object_file_is_named(file, section, ".eh_frame"))
			return section;
	}
	return NULL;
}

// Asked twice: how large it will be, and then to write it.
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

// The pages are the caller's; NULL: the object has no .eh_frame, or its file is not what was
// loaded.
uint8_t *eh_make_header(const struct scope_object *object, uintptr_t start, uintptr_t end,
			size_t *pages)
{
	const struct elf_section *section;
	struct object_file file;
	uint8_t *header = NULL;

	if (!object_file_open(&file, object))
		return NULL;
	section = eh_find(object, &file);
	if (section) {
		const uint8_t *frames = (const uint8_t *)object->bias + section->address;

		if (eh_is_same(&file, section, frames))
			header = eh_build(frames, section->size, start, end, pages);
	}
	object_file_close(&file);
	return header;
}
