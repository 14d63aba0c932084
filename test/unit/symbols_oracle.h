// What addr2line says, and the few rules by which we may differ from it.
//
// Each rule is proved from a third source (nm or readelf), never from our own answer:
//
//     gap     no symbol covers the address. addr2line then names the function before it.
//     alias   the outermost functions are two names of one address.
//     inner   addr2line gives an inlined function that has no linkage name (a lambda, a function of
//             an unnamed namespace) the name of the function around it.
//     plain   for a function without a linkage name addr2line says now the plain name, now the
//             symbol's, as the questions before went; we say what nm says, always.
//     part    addr2line names the split-off part ("main.cold"), we the function ("main").
//     file    same function, same line, other file: readelf's line table is on our side.
//             (addr2line 2.40 keeps the unit's first file after some changes of file in DWARF 5.)
#pragma once

#include "base/mem.h"
#include "base/str.h"
#include "symbols/demangle.h"
#include "symbols/object.h"
#include "symbols/symbols_file.h"
#include "test/test.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Run a shell command; it must succeed.
__attribute__((format(printf, 1, 2))) static inline void oracle_run(const char *format, ...)
{
	struct str command = { 0 };
	va_list args;
	int status;

	va_start(args, format);
	str_vformat(&command, format, args);
	va_end(args);
	status = system(str_get(&command));
	if (status != 0)
		printf("failed: %s\n", str_get(&command));
	str_fini(&command);
	CHECK_EQ(0, status);
}

struct oracle_symbol {
	uint64_t start, end;
	char *name;
};

struct oracle_row {
	uint64_t address;
	uint32_t line;
	char *file;
};

struct oracle {
	struct oracle_symbol *symbols; // by nm
	size_t symbols_count, symbols_capacity;
	struct oracle_row *rows; // by readelf
	size_t rows_count, rows_capacity;
	size_t same, gap, alias, inner, whole, plain, part, file, wrong;
};

// The answer of either side: names and "file:line" in turn, innermost first.
struct oracle_answer {
	char *lines[256];
	size_t count;
};

static inline void oracle_clear(struct oracle_answer *answer)
{
	for (size_t i = 0; i < answer->count; i++)
		mem_free(answer->lines[i]);
	answer->count = 0;
}

static inline bool oracle_line(FILE *file, struct str *line)
{
	char buffer[65536];

	str_clear(line);
	if (!fgets(buffer, sizeof buffer, file))
		return false;
	buffer[strcspn(buffer, "\n")] = '\0';
	str_add(line, buffer);
	return true;
}

// `nm -S -C`: address, size (if any), type, name.
static inline void oracle_read_symbols(struct oracle *oracle, const char *file)
{
	const char *list = test_temp_path("oracle.nm");
	struct str line = { 0 };
	FILE *input;

	oracle_run("{ nm -S -C --defined-only %s; nm -D -S -C --defined-only %s; } "
		   "> %s 2> /dev/null || true",
		   file, file, list);
	input = fopen(list, "r");
	CHECK(input != NULL);
	while (oracle_line(input, &line)) {
		unsigned long long start, size = 0;
		char type;
		int at = 0;

		if (sscanf(str_get(&line), "%llx %llx %c %n", &start, &size, &type, &at) != 3 &&
		    sscanf(str_get(&line), "%llx %c %n", &start, &type, &at) != 2)
			continue;
		if (!strchr("tTwWiuV", type))
			continue;
		oracle->symbols = mem_grow(oracle->symbols, &oracle->symbols_capacity,
					   oracle->symbols_count + 1, sizeof *oracle->symbols);
		oracle->symbols[oracle->symbols_count++] =
			(struct oracle_symbol){ start, start + size,
						mem_copy_text(str_get(&line) + at) };
	}
	fclose(input);
	str_fini(&line);
}

// `readelf -wL`: file, line, address.
static inline void oracle_read_rows(struct oracle *oracle, const char *file)
{
	const char *list = test_temp_path("oracle.rows");
	struct str line = { 0 };
	FILE *input;

	oracle_run("readelf -W --debug-dump=decodedline %s > %s 2> /dev/null", file, list);
	input = fopen(list, "r");
	CHECK(input != NULL);
	while (oracle_line(input, &line)) {
		unsigned long long address;
		char name[1024];
		unsigned number;

		if (sscanf(str_get(&line), "%1023s %u %llx", name, &number, &address) != 3)
			continue;
		oracle->rows = mem_grow(oracle->rows, &oracle->rows_capacity,
					oracle->rows_count + 1, sizeof *oracle->rows);
		oracle->rows[oracle->rows_count++] =
			(struct oracle_row){ address, number, mem_copy_text(name) };
	}
	fclose(input);
	str_fini(&line);
}

static inline void oracle_fini(struct oracle *oracle)
{
	for (size_t i = 0; i < oracle->symbols_count; i++)
		mem_free(oracle->symbols[i].name);
	for (size_t i = 0; i < oracle->rows_count; i++)
		mem_free(oracle->rows[i].file);
	mem_free(oracle->symbols);
	mem_free(oracle->rows);
	*oracle = (struct oracle){ 0 };
}

// Our answer, in addr2line's form.
static inline void oracle_ask_us(struct symbols_file *file, uint64_t offset,
				 struct oracle_answer *answer)
{
	struct places places = { 0 };

	symbols_file_find(file, offset, &places);
	for (size_t i = 0; i < places.count && i < 128; i++) {
		const struct place *place = &places.items[i];
		const char *version = place->function ? strchr(place->function, '@') : NULL;
		char *readable = place->function ? demangle(place->function) : NULL;
		struct str text = { 0 };

		if (version && !readable)
			readable = mem_copy_bytes(place->function,
						  (size_t)(version - place->function));
		answer->lines[answer->count++] = mem_copy_text(readable          ? readable
							       : place->function ? place->function
										 : "??");
		mem_free(readable);
		str_format(&text, "%s:", place->file ? place->file : "??");
		if (place->line)
			str_format(&text, "%u", place->line);
		else
			str_add(&text, "?");
		answer->lines[answer->count++] = str_take(&text);
	}
	places_fini(&places);
}

// A line of addr2line's, without what we do not show.
static inline char *oracle_clean(const char *line)
{
	const char *discriminator = strstr(line, " (discriminator ");
	char *clean = discriminator ? mem_copy_bytes(line, (size_t)(discriminator - line))
				    : mem_copy_text(line);
	size_t length = strlen(clean);

	if (length > 2 && strcmp(clean + length - 2, ":0") == 0)
		clean[length - 1] = '?';
	if (strcmp(clean, ":?") == 0) {
		mem_free(clean);
		clean = mem_copy_text("??:?");
	}
	return clean;
}

static inline bool oracle_is_covered(const struct oracle *oracle, uint64_t offset)
{
	for (size_t i = 0; i < oracle->symbols_count; i++)
		if (offset >= oracle->symbols[i].start && offset < oracle->symbols[i].end)
			return true;
	return false;
}

// Do two names stand at one address that covers the offset?
static inline bool oracle_is_alias(const struct oracle *oracle, uint64_t offset, const char *one,
				   const char *two)
{
	for (size_t i = 0; i < oracle->symbols_count; i++) {
		const struct oracle_symbol *a = &oracle->symbols[i];

		if (offset < a->start || strncmp(a->name, one, strlen(one)) != 0 ||
		    (a->name[strlen(one)] != '\0' && a->name[strlen(one)] != '@'))
			continue;
		for (size_t j = 0; j < oracle->symbols_count; j++) {
			const struct oracle_symbol *b = &oracle->symbols[j];

			if (b->start == a->start && strncmp(b->name, two, strlen(two)) == 0 &&
			    (b->name[strlen(two)] == '\0' || b->name[strlen(two)] == '@'))
				return true;
		}
	}
	return false;
}

// Does nm have this name for a symbol that covers the offset?
static inline bool oracle_has_symbol(const struct oracle *oracle, uint64_t offset, const char *name)
{
	for (size_t i = 0; i < oracle->symbols_count; i++)
		if (offset >= oracle->symbols[i].start && offset < oracle->symbols[i].end &&
		    strcmp(oracle->symbols[i].name, name) == 0)
			return true;
	return false;
}

static inline const char *oracle_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

// Is "…/name:line" what readelf has for the address?
static inline bool oracle_has_row(const struct oracle *oracle, uint64_t offset, const char *place)
{
	uint64_t best = 0;
	struct str text = { 0 };
	bool found = false;

	for (size_t i = 0; i < oracle->rows_count; i++)
		if (oracle->rows[i].address <= offset && oracle->rows[i].address > best)
			best = oracle->rows[i].address;
	for (size_t i = 0; i < oracle->rows_count && !found; i++) {
		if (oracle->rows[i].address != best)
			continue;
		str_clear(&text);
		str_format(&text, "%s:%u", oracle_base(oracle->rows[i].file), oracle->rows[i].line);
		found = strcmp(str_get(&text), oracle_base(place)) == 0;
	}
	str_fini(&text);
	return found;
}

static inline bool oracle_same_line(const char *one, const char *two)
{
	return strcmp(strrchr(one, ':'), strrchr(two, ':')) == 0;
}

// Is `plain` the last part of the name `whole`, which has its scopes and its parameters?
static inline bool oracle_ends_with(const char *whole, const char *plain)
{
	size_t bare = strcspn(plain, "<");
	const char *at = whole;

	while ((at = strstr(at, plain[bare] ? "" : plain)) && *at) {
		size_t length = plain[bare] ? bare : strlen(plain);

		if (strncmp(at, plain, length) == 0 && (at == whole || at[-1] == ':') &&
		    strchr(plain[bare] ? "<" : "(", at[length]) && at[length])
			return true;
		at++;
	}
	return false;
}

// Count the pair under the rule that explains it.
static inline void oracle_judge(struct oracle *oracle, uint64_t offset,
				const struct oracle_answer *theirs,
				const struct oracle_answer *ours)
{
	size_t count = ours->count;
	bool same_names = theirs->count == count, same_places = same_names, same_outer;
	bool inner = false, whole = false;

	for (size_t i = 0; same_names && i < count; i += 2) {
		if (strcmp(theirs->lines[i + 1], ours->lines[i + 1]) != 0)
			same_places = false;
		// The outermost name may be explained by itself.
		if (i + 2 == count || strcmp(theirs->lines[i], ours->lines[i]) == 0)
			continue;
		if (strcmp(theirs->lines[i], theirs->lines[count - 2]) == 0)
			inner = true;
		else if (oracle_ends_with(ours->lines[i], theirs->lines[i]))
			whole = true;
		else
			same_names = false;
	}
	same_outer = same_names && strcmp(theirs->lines[count - 2], ours->lines[count - 2]) == 0;
	if (same_outer && same_places && !inner && !whole) {
		oracle->same++;
	} else if (same_outer && same_places && whole) {
		oracle->whole++;
	} else if (same_outer && same_places) {
		oracle->inner++;
	} else if (strcmp(ours->lines[0], "??") == 0 && !oracle_is_covered(oracle, offset)) {
		oracle->gap++;
	} else if (same_outer && oracle_same_line(theirs->lines[1], ours->lines[1]) &&
		   oracle_has_row(oracle, offset, ours->lines[1])) {
		oracle->file++;
	} else if (same_names &&
		   strncmp(theirs->lines[count - 2], ours->lines[count - 2],
			   strlen(ours->lines[count - 2])) == 0 &&
		   theirs->lines[count - 2][strlen(ours->lines[count - 2])] == '.' && same_places) {
		oracle->part++;
	} else if (same_names && same_places &&
		   oracle_is_alias(oracle, offset, theirs->lines[count - 2],
				   ours->lines[count - 2])) {
		oracle->alias++;
	} else if (same_names && same_places && strchr(ours->lines[count - 2], '(') &&
		   oracle_has_symbol(oracle, offset, ours->lines[count - 2])) {
		oracle->plain++;
	} else if (oracle->wrong++ < 10) {
		printf("0x%llx\n", (unsigned long long)offset);
		for (size_t i = 0; i < theirs->count; i++)
			printf("    addr2line: %s\n", theirs->lines[i]);
		for (size_t i = 0; i < ours->count; i++)
			printf("    ours:      %s\n", ours->lines[i]);
	}
}

// Compare at `start`, start + step, … below `end`. `symbols` is the file that nm reads, which may
// be a separate debug file.
static inline void oracle_compare(struct oracle *oracle, struct symbols_file *file,
				  const char *path, const char *symbols, uint64_t start,
				  uint64_t end, uint64_t step)
{
	const char *offsets = test_temp_path("oracle.offsets");
	const char *answers = test_temp_path("oracle.answers");
	struct oracle_answer theirs = { 0 }, ours = { 0 };
	struct str line = { 0 };
	FILE *stream = fopen(offsets, "w");
	bool more;

	CHECK(stream != NULL);
	for (uint64_t at = start; at < end; at += step)
		fprintf(stream, "0x%llx\n", (unsigned long long)at);
	fclose(stream);
	oracle_run("addr2line -afiC -e %s < %s > %s", path, offsets, answers);
	oracle_read_symbols(oracle, symbols);
	oracle_read_rows(oracle, symbols);
	stream = fopen(answers, "r");
	CHECK(stream != NULL);
	more = oracle_line(stream, &line);
	for (uint64_t at = start; at < end; at += step) {
		CHECK(more);
		CHECK_EQ(at, strtoull(str_get(&line), NULL, 16));
		while ((more = oracle_line(stream, &line)) &&
		       strncmp(str_get(&line), "0x", 2) != 0 && theirs.count < 256)
			theirs.lines[theirs.count++] = oracle_clean(str_get(&line));
		oracle_ask_us(file, at, &ours);
		oracle_judge(oracle, at, &theirs, &ours);
		oracle_clear(&theirs);
		oracle_clear(&ours);
	}
	fclose(stream);
	str_fini(&line);
}

// The bounds of a file's .text.
static inline void oracle_text(const char *path, uint64_t *start, uint64_t *end)
{
	struct err err;
	struct object *object = object_open(path, &err);
	Elf_Scn *section;
	GElf_Shdr header;

	CHECK(object != NULL);
	section = object_find_section(object, ".text");
	CHECK(section != NULL && gelf_getshdr(section, &header));
	*start = header.sh_addr;
	*end = header.sh_addr + header.sh_size;
	object_close(object);
}
