// What launch/elf_look.h and launch/inspect.h promise about executables, good and bad.
#include "test/test.h"

#include "base/mem.h"
#include "launch/elf_look.h"
#include "launch/inspect.h"
#include "launch/loader_file_linux.h"
#include "os/file.h"
#include "wire/lane_event.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *program(const char *name)
{
	static char path[4096];
	const char *build = getenv("TIDEMARK_BUILD");

	if (!build)
		SKIP("TIDEMARK_BUILD does not say where the programs are");
	snprintf(path, sizeof(path), "%s/test/programs/%s", build, name);
	return path;
}

static struct elf_look look_at(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct elf_look look;

	CHECK(fd >= 0);
	look = elf_look_at(fd);
	close(fd);
	return look;
}

static const char *written(const char *name, const void *bytes, size_t size, mode_t mode)
{
	static char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", test_temp_dir(), name);
	fd = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
	CHECK(fd >= 0);
	CHECK_EQ((ssize_t)size, write(fd, bytes, size));
	CHECK_EQ(0, fchmod(fd, mode));
	close(fd);
	return path;
}

TEST(elf_look_knows_a_dynamic_from_a_static_program)
{
	struct elf_look dynamic = look_at(program("still"));
	struct elf_look whole = look_at(program("still_static"));

	CHECK(dynamic.elf && dynamic.interpreter && !dynamic.is_library);
	CHECK_EQ(64, dynamic.bits);
	CHECK_EQ(EM_X86_64, dynamic.machine);
	CHECK(whole.elf && !whole.interpreter && !whole.is_library);
}

TEST(elf_look_survives_every_cut_and_every_damaged_header)
{
	struct file_view view;
	struct err err = { 0 };
	uint8_t *bytes;
	size_t size;

	CHECK(file_view_open(&view, program("toy_malloc"), &err));
	size = view.size;
	bytes = mem_alloc(size, 1);
	memcpy(bytes, view.bytes, size);
	file_view_close(&view);
	for (size_t cut = 0; cut < size; cut += cut < 1000 ? 1 : 499)
		look_at(written("cut", bytes, cut, 0755));
	for (size_t at = 0; at < sizeof(Elf64_Ehdr) + 13 * sizeof(Elf64_Phdr); at++) {
		bytes[at] ^= 0xff;
		look_at(written("flip", bytes, size, 0755));
		bytes[at] ^= 0xff;
	}
	for (size_t at = ((Elf64_Ehdr *)(void *)bytes)->e_shoff; at < size; at += 3) {
		bytes[at] ^= 0xff;
		look_at(written("flip", bytes, size, 0755));
		bytes[at] ^= 0xff;
	}
	CHECK(look_at(written("same", bytes, size, 0755)).interpreter);
	mem_free(bytes);
}

TEST(elf_look_says_of_other_files_that_they_are_none)
{
	CHECK(!look_at("/dev/null").elf);
	CHECK(!look_at(written("text", "#!/bin/sh\n", 10, 0755)).elf);
	CHECK(!look_at(written("empty", "", 0, 0755)).elf);
	CHECK(!look_at(test_temp_dir()).elf);
}

static void inspected(const char *path, enum inspect_verdict verdict, const char *why)
{
	struct inspect inspect;

	inspect_program(&inspect, path, false);
	CHECK_EQ(verdict, inspect.verdict);
	if (why)
		CHECK_CONTAINS(why, str_get(&inspect.why));
	else
		CHECK_STR("", str_get(&inspect.why));
	inspect_fini(&inspect);
}

// A static program, as large as it is, or without what says where its sections are.
static const char *copied(const char *name, bool stripped)
{
	struct file_view view;
	struct err err = { 0 };
	const char *path;
	Elf64_Ehdr header;
	uint8_t *bytes;

	CHECK(file_view_open(&view, program("still_static"), &err));
	bytes = mem_alloc(view.size, 1);
	memcpy(bytes, view.bytes, view.size);
	memcpy(&header, bytes, sizeof(header));
	if (stripped)
		header.e_shoff = header.e_shnum = header.e_shstrndx = 0;
	memcpy(bytes, &header, sizeof(header));
	path = written(name, bytes, view.size, 0755);
	mem_free(bytes);
	file_view_close(&view);
	return path;
}

static uint32_t judged(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct str why = { 0 };
	uint32_t verdict;

	CHECK(fd >= 0);
	verdict = loader_file_look(fd, &why);
	CHECK_EQ(verdict == NOTE_EXEC_OK, why.length == 0);
	str_fini(&why);
	close(fd);
	return verdict;
}

TEST(loader_knows_by_symbols_whether_a_static_program_can_be_entered)
{
	const char *path = copied("privileged", false);

	CHECK_EQ(NOTE_EXEC_OK, judged(program("still_static")));
	CHECK_EQ(0, chmod(path, 04755));
	CHECK_EQ(NOTE_EXEC_SETUID, judged(path));
	CHECK_EQ(NOTE_EXEC_STRIPPED, judged(copied("stripped", true)));
	CHECK_EQ(NOTE_EXEC_STATIC, judged(written("none", "", 0, 0755)));
}

// Where the headers of sections are, damage leads to other tables and other strings.
TEST(loader_survives_every_damaged_header)
{
	const char *path = copied("damaged", false);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	Elf64_Ehdr header;
	struct stat status;

	CHECK(fd >= 0 && fstat(fd, &status) == 0);
	CHECK_EQ((ssize_t)sizeof(header), pread(fd, &header, sizeof(header), 0));
	for (off_t at = 0;
	     at < (off_t)(header.e_shoff + (Elf64_Off)header.e_shnum * sizeof(Elf64_Shdr)); at++) {
		uint8_t byte, damaged;

		if (at == (off_t)(sizeof(header) + 4 * sizeof(Elf64_Phdr)))
			at = (off_t)header.e_shoff;
		CHECK_EQ(1, pread(fd, &byte, 1, at));
		damaged = byte ^ 0xff;
		CHECK_EQ(1, pwrite(fd, &damaged, 1, at));
		judged(path);
		CHECK_EQ(1, pwrite(fd, &byte, 1, at));
	}
	CHECK_EQ(NOTE_EXEC_OK, judged(path));
	for (off_t cut = status.st_size; cut > 0; cut -= cut < 600 ? 1 : 4999) {
		CHECK_EQ(0, ftruncate(fd, cut));
		judged(path);
	}
	close(fd);
}

// Where the tests are built with it (make asan), programs that are linked dynamically have it, too.
static void inspected_dynamic(const char *name)
{
#ifdef __SANITIZE_ADDRESS__
	inspected(program(name), INSPECT_ASAN, "AddressSanitizer");
#else
	inspected(program(name), INSPECT_OK, NULL);
#endif
}

TEST(inspect_says_what_cannot_be_recorded)
{
	inspected_dynamic("still");
	inspected(program("still_static"), INSPECT_OK, NULL);
	inspected(copied("stripped", true), INSPECT_STATIC, "linked statically");
	inspected_dynamic("toy_malloc");
	inspected_dynamic("toy_malloc_hidden");
	inspected("/nonexistent", INSPECT_OK, NULL);
}

TEST(inspect_follows_scripts_to_what_will_run)
{
	char line[5000];
	char first[4096];
	int length = snprintf(line, sizeof(line), "#! %s -x\necho\n", copied("stripped", true));

	strcpy(first, written("first", line, (size_t)length, 0755));
	inspected(first, INSPECT_STATIC, "stripped");
	length = snprintf(line, sizeof(line), "#!%s\n", first);
	inspected(written("second", line, (size_t)length, 0755), INSPECT_STATIC, "stripped");
	length = snprintf(line, sizeof(line), "#!%s/loop\n", test_temp_dir());
	inspected(written("loop", line, (size_t)length, 0755), INSPECT_OK, NULL);
}

TEST(inspect_knows_32_bit_and_foreign_programs_by_their_headers)
{
	Elf64_Ehdr header;
	struct elf_look look = look_at(program("still"));

	CHECK(look.elf);
	memset(&header, 0, sizeof(header));
	memcpy(header.e_ident, ELFMAG, SELFMAG);
	header.e_ident[EI_CLASS] = ELFCLASS32;
	header.e_ident[EI_DATA] = ELFDATA2LSB;
	header.e_ident[EI_VERSION] = EV_CURRENT;
	header.e_version = EV_CURRENT; // at the same place in both classes
	header.e_type = ET_EXEC;
	header.e_machine = EM_386;
	inspected(written("i386", &header, sizeof(header), 0755), INSPECT_BITS, "32-bit program");
	header.e_machine = EM_X86_64;
	inspected(written("x32", &header, sizeof(header), 0755), INSPECT_BITS, "x32");
	header.e_ident[EI_CLASS] = ELFCLASS64;
	header.e_machine = EM_AARCH64;
	inspected(written("arm", &header, sizeof(header), 0755), INSPECT_MACHINE,
		  "another processor");
}

TEST(inspect_knows_programs_that_run_with_other_rights)
{
	const char *path = written("own", "", 0, 0755);

	if (geteuid() != 0)
		SKIP("needs root to give a file away");
	CHECK_EQ(0, chown(path, 65534, 65534));
	CHECK_EQ(0, chmod(path, 04755));
	inspected(path, INSPECT_PRIVILEGED, "setuid");
	CHECK_EQ(0, chmod(path, 02755));
	inspected(path, INSPECT_PRIVILEGED, "setgid");
	CHECK_EQ(0, chmod(path, 0755));
	inspected(path, INSPECT_OK, NULL);
}
