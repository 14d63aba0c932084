// The file is copied section by section, each to its own place, and what was packed goes behind its
// end; then the section's header says so. For example
//
//     .text          0x1000, 0x5000 bytes      nothing is there
//     .debug_info    0x9000, 0x300 bytes, packed by zstd; header: 0x20000, 0x1100 bytes, plain
//     .symtab        0x9800, 0x600 bytes       as in the file
//     (0x20000)      0x1100 bytes              .debug_info, unpacked
//
// Pages that nothing is put into take no memory. The file is read and not mapped: headers are
// written to, and a file that is cut meanwhile is one that ends in zeros.
#include "symbols/unpacked.h"

#include "base/mem.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

// Debug information packs 3 to 20 times. More than this is not debug information.
enum { RATIO_MAX = 1024, HEAD_BYTES = 4096, ALIGN_BYTES = 4096 };

static const size_t image_max = (size_t)1 << 40;

struct packed {
	size_t number; // of the section
	const uint8_t *bytes;
	size_t length;
	uint64_t size; // unpacked
};

// The sections that are packed by zstd.
struct list {
	struct packed *items;
	size_t count, capacity;
};

// To whole pages: what is not touched of one takes no memory.
static uint64_t round_up(uint64_t value)
{
	return (value + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
}

// Where variables are and what macros there were is not asked for.
static bool is_wanted(const char *name)
{
	return name && strncmp(name, ".debug_", 7) == 0 && strncmp(name, ".debug_loc", 10) != 0 &&
	       strncmp(name, ".debug_mac", 10) != 0;
}

// A section whose header cannot be read is left to libelf. False: one is there that is packed in
// an unknown form, or damaged.
static bool list_packed(struct list *list, Elf *elf, struct err *err)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names) != 0)
		return true;
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		GElf_Chdr packed;
		const char *name;
		Elf_Data *data;
		size_t head;

		if (!gelf_getshdr(section, &header) || !(header.sh_flags & SHF_COMPRESSED) ||
		    !gelf_getchdr(section, &packed))
			continue;
		name = elf_strptr(elf, names, header.sh_name);
		if (packed.ch_type == ELFCOMPRESS_ZLIB || !is_wanted(name))
			continue;
		if (packed.ch_type != ELFCOMPRESS_ZSTD)
			return err_set(err, ERR_FORMAT,
				       "%s is packed in a form that is not known (%u; zlib's is 1, "
				       "zstd's 2)",
				       name, packed.ch_type);
		data = elf_rawdata(section, NULL);
		head = gelf_getclass(elf) == ELFCLASS32 ? sizeof(Elf32_Chdr) : sizeof(Elf64_Chdr);
		if (!data || !data->d_buf || data->d_size < head ||
		    packed.ch_size / RATIO_MAX > data->d_size)
			return err_set(err, ERR_FORMAT, "%s is damaged", name);
		*MEM_ADD(list->items, list->count, list->capacity) = (struct packed){
			elf_ndxscn(section),
			(const uint8_t *)data->d_buf + head,
			data->d_size - head,
			packed.ch_size,
		};
	}
	return true;
}

// As much of it as there is.
static void read_at(int fd, uint8_t *bytes, size_t size, uint64_t at)
{
	ssize_t got;

	for (size_t done = 0; done < size; done += (size_t)got) {
		got = pread(fd, bytes + done, size - done, (off_t)(at + done));
		if (got <= 0)
			return;
	}
}

// Is it in the file, and asked by those who look for names? Code and data are not.
static bool is_kept(const GElf_Shdr *header, uint64_t file_bytes)
{
	if (header->sh_type == SHT_NOBITS || header->sh_flags & SHF_COMPRESSED ||
	    (header->sh_type == SHT_PROGBITS && header->sh_flags & SHF_ALLOC))
		return false;
	return header->sh_offset <= file_bytes && header->sh_size <= file_bytes - header->sh_offset;
}

// What is not packed, or packed by zlib, is as it was.
static void copy_sections(uint8_t *image, Elf *elf, int fd, uint64_t file_bytes)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	read_at(fd, image, file_bytes < HEAD_BYTES ? (size_t)file_bytes : HEAD_BYTES, 0);
	while ((section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &header)) {
			GElf_Chdr packed;
			GElf_Shdr plain = header;

			if (header.sh_flags & SHF_COMPRESSED && gelf_getchdr(section, &packed) &&
			    packed.ch_type == ELFCOMPRESS_ZLIB)
				plain.sh_flags &= ~(GElf_Xword)SHF_COMPRESSED;
			if (is_kept(&plain, file_bytes))
				read_at(fd, image + header.sh_offset, header.sh_size,
					header.sh_offset);
		}
}

// Say in the section's header where it is now. `headers` has all of them, as they are in the file.
static void move_section(uint8_t *headers, bool narrow, size_t number, uint64_t at, uint64_t size)
{
	if (narrow) {
		Elf32_Shdr header;

		memcpy(&header, headers + number * sizeof header, sizeof header);
		header.sh_flags &= ~(Elf32_Word)SHF_COMPRESSED;
		header.sh_offset = (Elf32_Off)at;
		header.sh_size = (Elf32_Word)size;
		memcpy(headers + number * sizeof header, &header, sizeof header);
	} else {
		Elf64_Shdr header;

		memcpy(&header, headers + number * sizeof header, sizeof header);
		header.sh_flags &= ~(Elf64_Xword)SHF_COMPRESSED;
		header.sh_offset = at;
		header.sh_size = size;
		memcpy(headers + number * sizeof header, &header, sizeof header);
	}
}

// What a damaged section claims to become is bounded before (RATIO_MAX), and zstd writes no more
// than it is given room for.
static bool unpack_all(uint8_t *image, Elf *elf, int fd, uint64_t file_bytes,
		       const struct list *list, struct err *err)
{
	bool narrow = gelf_getclass(elf) == ELFCLASS32;
	size_t header_bytes = narrow ? sizeof(Elf32_Shdr) : sizeof(Elf64_Shdr), count;
	uint64_t at = round_up(file_bytes);
	GElf_Ehdr head;

	if (!gelf_getehdr(elf, &head) || elf_getshdrnum(elf, &count) != 0 ||
	    head.e_shentsize != header_bytes || head.e_shoff > file_bytes ||
	    count > (file_bytes - head.e_shoff) / header_bytes)
		return err_set(err, ERR_FORMAT, "its table of sections is damaged");
	copy_sections(image, elf, fd, file_bytes);
	read_at(fd, image + head.e_shoff, count * header_bytes, head.e_shoff);
	for (size_t i = 0; i < list->count; i++) {
		const struct packed *packed = &list->items[i];

		ASSERT(packed->number < count);
		ASSERT(at % ALIGN_BYTES == 0);
		if (ZSTD_decompress(image + at, packed->size, packed->bytes, packed->length) !=
		    packed->size)
			return err_set(err, ERR_FORMAT, "a section that zstd packed is damaged");
		move_section(image + head.e_shoff, narrow, packed->number, at, packed->size);
		at += round_up(packed->size);
	}
	return true;
}

void *unpacked_new(Elf *elf, int fd, size_t *size_bytes, struct err *err)
{
	struct list list = { 0 };
	const char *ident = elf_getident(elf, NULL);
	size_t file_bytes = 0;
	void *image = NULL;
	uint64_t size;

	*err = (struct err){ 0 };
	if (elf_kind(elf) != ELF_K_ELF || !ident || ident[EI_DATA] != ELFDATA2LSB ||
	    !list_packed(&list, elf, err) || list.count == 0)
		goto out;
	elf_rawfile(elf, &file_bytes);
	size = round_up(file_bytes);
	// By RATIO_MAX each is bounded by the file's size: the sum cannot overflow at once.
	for (size_t i = 0; i < list.count && size <= image_max; i++)
		size += round_up(list.items[i].size);
	if (size <= image_max)
		image = mmap(NULL, size, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (!image || image == MAP_FAILED) {
		image = NULL;
		err_set(err, ERR_LIMIT, "there is not enough memory to unpack it");
		goto out;
	}
	*size_bytes = size;
	ASSERT(size >= file_bytes); // a damaged one may claim to be nothing
	if (!unpack_all(image, elf, fd, file_bytes, &list, err)) {
		munmap(image, size);
		image = NULL;
	}
out:
	mem_free(list.items);
	return image;
}

void unpacked_free(void *bytes, size_t size_bytes)
{
	if (bytes)
		munmap(bytes, size_bytes);
}
