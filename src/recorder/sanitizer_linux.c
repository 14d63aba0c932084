// A program that needs a shared AddressSanitizer ends at its start if another library was loaded
// before that. It is known before the exec: the first entries of the file's dynamic section name
// the libraries that it needs, by their places in a table of texts. For example "libasan.so.8" is
// one; so is an entry of LD_PRELOAD with that name.
#include "recorder/sanitizer_linux.h"

#include "recorder/kernel.h"

enum {
	SANITIZER_ENTRIES_MAX = 128, // of the dynamic section, which begins with what is needed
	SANITIZER_NAME_BYTES = 256,
	SANITIZER_NEEDED = 1,  // DT_NEEDED
	SANITIZER_STRINGS = 5, // DT_STRTAB
};

// pread64 has its offset in two registers of 32 bits on i386.
static long sanitizer_read(long fd, void *out, size_t size, uint64_t at)
{
#ifdef __x86_64__
	return kernel(__NR_pread64, fd, out, size, at);
#else
	return kernel(__NR_pread64, fd, out, size, (uint32_t)at, (uint32_t)(at >> 32));
#endif
}

// gcc's library, and clang's.
bool sanitizer_listed(const char *list)
{
	return text_has(list, "libasan.so") || text_has(list, "libclang_rt.asan");
}

bool sanitizer_lets(const char *options)
{
	return text_has(options, "verify_asan_link_order=0") ||
	       text_has(options, "verify_asan_link_order=n") ||
	       text_has(options, "verify_asan_link_order=f");
}

// Where in the file an address lies. 0: nowhere.
//
// Addresses in the dynamic section are those in memory; the segment that has one says where it is
// in the file.
static uint64_t sanitizer_offset(const struct elf_file *file, uint64_t address)
{
	const struct elf_file_class *class = file->class;
	uint32_t type;
	uint64_t at;

	for (uint16_t i = 0; (at = elf_file_segment(file, i, &type)) != 0; i++) {
		uint64_t start = elf_file_number(file, at + class->address_at);

		if (type == ELF_LOAD && address >= start &&
		    address - start < elf_file_number(file, at + class->size_at))
			return elf_file_number(file, at + class->offset_at) + address - start;
	}
	return 0;
}

static uint64_t sanitizer_word(const uint8_t *words, const struct elf_file_class *class, size_t i)
{
	uint64_t value = 0;

	memcpy(&value, words + i * class->bits / 8, class->bits / 8);
	return value;
}

// Whether one of `count` entries of the dynamic section names it.
static bool sanitizer_in_entries(long fd, const struct elf_file *file, const uint8_t *words,
				 size_t count)
{
	char name[SANITIZER_NAME_BYTES + 1];
	uint64_t strings = 0;

	for (size_t i = 0; i < count && !strings; i++)
		if (sanitizer_word(words, file->class, 2 * i) == SANITIZER_STRINGS)
			strings = sanitizer_offset(file,
						   sanitizer_word(words, file->class, 2 * i + 1));
	for (size_t i = 0; i < count && strings; i++) {
		uint64_t tag = sanitizer_word(words, file->class, 2 * i);
		uint64_t at = strings + sanitizer_word(words, file->class, 2 * i + 1);
		long got;

		if (tag != SANITIZER_NEEDED)
			continue;
		got = sanitizer_read(fd, name, SANITIZER_NAME_BYTES, at);
		name[got > 0 ? got : 0] = 0;
		if (sanitizer_listed(name))
			return true;
	}
	return false;
}

// Only the first 2 KiB of the dynamic section are read: what is needed comes first in it. False
// also where the file cannot be read.
bool sanitizer_needed(long fd, const struct elf_file *file)
{
	uint8_t words[SANITIZER_ENTRIES_MAX * 16];
	size_t bytes = file->class->bits / 4;
	uint32_t type;
	uint64_t at;

	for (uint16_t i = 0; (at = elf_file_segment(file, i, &type)) != 0; i++) {
		uint64_t size = elf_file_number(file, at + file->class->size_at);
		long got;

		if (type != ELF_DYNAMIC)
			continue;
		got = sanitizer_read(fd, words, size < sizeof(words) ? (size_t)size : sizeof(words),
				     elf_file_number(file, at + file->class->offset_at));
		return got > 0 && sanitizer_in_entries(fd, file, words, (size_t)got / bytes);
	}
	return false;
}
