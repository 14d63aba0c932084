// DWARF in a PE file is DWARF, only its sections have no ELF file around them, which libdw wants.
// So one is put together in memory: sections of debug information as they are, those of code by
// address and size alone, then a table of names, and the headers. For example, of an image with
// the base 0x140000000
//
//     .text at RVA 0x1000, 0x2000 bytes    SHT_NOBITS, at 0x140001000
//     .debug_info, 0x500 bytes             SHT_PROGBITS, its bytes are copied
//     .data                                left out
//
// Addresses in the DWARF are those of the base, so an offset in the image is asked for as base +
// offset.
#include "symbols/pe_dwarf.h"

#include "base/mem.h"
#include "base/str.h"
#include "symbols/debuginfo.h"

#include <string.h>

struct pe_dwarf {
	struct object *object;
	struct debuginfo *debuginfo;
	uint64_t base;
};

// An ELF file that is put together. Offsets and sizes of both classes fit the larger one.
struct elf_maker {
	struct str bytes;
	struct str names; // .shstrtab
	Elf64_Shdr *headers;
	size_t count, capacity;
};

static Elf64_Shdr *add_header(struct elf_maker *maker, const char *name, size_t length)
{
	Elf64_Shdr *header;

	header = MEM_ADD(maker->headers, maker->count, maker->capacity);
	memset(header, 0, sizeof *header);
	header->sh_name = (Elf64_Word)maker->names.length;
	header->sh_addralign = 1;
	str_add_bytes(&maker->names, name, length);
	str_add_char(&maker->names, 0);
	return header;
}

static void add_bytes(struct elf_maker *maker, Elf64_Shdr *header, const void *bytes, size_t size)
{
	header->sh_offset = maker->bytes.length;
	header->sh_size = size;
	str_add_bytes(&maker->bytes, bytes, size);
}

static bool is_debug(const struct pe_section *section)
{
	return section->bytes && section->name_length > 7 &&
	       (memcmp(section->name, ".debug_", 7) == 0 ||
		memcmp(section->name, ".zdebug", 7) == 0);
}

// Names of sections come through the COFF string table, so they are whole (.debug_info and not /4).
static void add_section(struct elf_maker *maker, const struct pe *pe,
			const struct pe_section *section)
{
	Elf64_Shdr *header;

	if (is_debug(section)) {
		header = add_header(maker, section->name, section->name_length);
		header->sh_type = SHT_PROGBITS;
		add_bytes(maker, header, section->bytes, section->bytes_count);
	} else if (section->code) {
		header = add_header(maker, section->name, section->name_length);
		header->sh_type = SHT_NOBITS;
		header->sh_flags = SHF_ALLOC | SHF_EXECINSTR;
		header->sh_addr = pe->base + section->rva;
		header->sh_size = section->size_bytes;
	}
}

// Headers last, when it is known where everything is; the file's head was left free for write_head.
static void add_headers(struct elf_maker *maker, bool is_64)
{
	while (maker->bytes.length % 8 != 0)
		str_add_char(&maker->bytes, 0);
	for (size_t i = 0; i < maker->count; i++) {
		const Elf64_Shdr *header = &maker->headers[i];
		Elf32_Shdr narrow = {
			.sh_name = header->sh_name,
			.sh_type = header->sh_type,
			.sh_flags = (Elf32_Word)header->sh_flags,
			.sh_addr = (Elf32_Addr)header->sh_addr,
			.sh_offset = (Elf32_Off)header->sh_offset,
			.sh_size = (Elf32_Word)header->sh_size,
			.sh_addralign = 1,
		};

		if (is_64)
			str_add_bytes(&maker->bytes, header, sizeof *header);
		else
			str_add_bytes(&maker->bytes, &narrow, sizeof narrow);
	}
}

// 64 bytes were left free for it, the length of the longer of the two; the shorter one leaves 12 of
// them unused. The table of names is the last section.
static void write_head(struct elf_maker *maker, bool is_64, size_t headers_at)
{
	Elf64_Ehdr wide = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_EXEC,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_shoff = headers_at,
		.e_ehsize = sizeof wide,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = (Elf64_Half)maker->count,
		.e_shstrndx = (Elf64_Half)(maker->count - 1),
	};
	Elf32_Ehdr narrow = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS32, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_EXEC,
		.e_machine = EM_386,
		.e_version = EV_CURRENT,
		.e_shoff = (Elf32_Off)headers_at,
		.e_ehsize = sizeof narrow,
		.e_shentsize = sizeof(Elf32_Shdr),
		.e_shnum = (Elf32_Half)maker->count,
		.e_shstrndx = (Elf32_Half)(maker->count - 1),
	};

	ASSERT(maker->count > 0 && maker->count <= SHN_LORESERVE && headers_at >= sizeof wide);
	if (is_64)
		memcpy(maker->bytes.text, &wide, sizeof wide);
	else
		memcpy(maker->bytes.text, &narrow, sizeof narrow);
}

// The bytes of the ELF file, from mem_alloc.
static void *make_elf(const struct pe *pe, size_t *size)
{
	static const Elf64_Ehdr nothing;
	struct elf_maker maker = { 0 };
	Elf64_Shdr *header;
	size_t headers_at;

	str_add_bytes(&maker.bytes, &nothing, sizeof nothing);
	add_header(&maker, "", 0);
	// Section 0 is empty, as ELF wants it; numbers from SHN_LORESERVE on mean other things.
	for (size_t i = 0; i < pe->sections_count && maker.count < SHN_LORESERVE - 1; i++)
		add_section(&maker, pe, &pe->sections[i]);
	header = add_header(&maker, ".shstrtab", 9);
	header->sh_type = SHT_STRTAB;
	add_bytes(&maker, header, maker.names.text, maker.names.length);
	add_headers(&maker, pe->is_64);
	headers_at = maker.bytes.length -
		     maker.count * (pe->is_64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr));
	write_head(&maker, pe->is_64, headers_at);
	str_fini(&maker.names);
	mem_free(maker.headers);
	*size = maker.bytes.length;
	return str_take(&maker.bytes);
}

struct pe_dwarf *pe_dwarf_new(const struct pe *pe, const char *path, struct remarks *remarks)
{
	struct pe_dwarf *dwarf;
	struct object *object;
	struct err err;
	size_t size;
	void *bytes;

	if (!pe_section_named(pe, ".debug_info") && !pe_section_named(pe, ".zdebug_info"))
		return NULL;
	bytes = make_elf(pe, &size);
	// It owns the bytes, also where it fails.
	object = object_take_bytes(bytes, size, path, &err);
	if (!object || !object->dwarf) {
		remarks_add(remarks, "%s: its DWARF cannot be read", path);
		object_close(object);
		return NULL;
	}
	dwarf = mem_alloc(1, sizeof *dwarf);
	dwarf->object = object;
	dwarf->base = pe->base;
	dwarf->debuginfo = debuginfo_new(object, object->code_start, object->code_end, remarks);
	return dwarf;
}

void pe_dwarf_free(struct pe_dwarf *dwarf)
{
	if (!dwarf)
		return;
	debuginfo_free(dwarf->debuginfo);
	object_close(dwarf->object);
	mem_free(dwarf);
}

bool pe_dwarf_find(struct pe_dwarf *dwarf, uint32_t rva, struct places *places)
{
	return debuginfo_find(dwarf->debuginfo, dwarf->base + rva, places);
}
