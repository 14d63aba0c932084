// How a name is found, as the linker finds it. For example, malloc: its hash (h * 33 + c, from
// 5381) is 0x0d39ad3d. libc's GNU hash table has buckets; with 1,009 of them, bucket 221,883,709 %
// 1,009 says at which symbol those of this bucket begin. The chain has a hash for each symbol from
// there on, whose lowest bit says that it is the bucket's last; the name is compared where the
// other 31 bits are the same.
//
// The objects are taken in the linker's order, from the one after ours: that is what RTLD_NEXT
// means.
#include "recorder/scope_linux.h"

#include "recorder/kernel.h"
#include "recorder/late_linux.h"
#include "recorder/static_linux.h"
#include "recorder/text.h"

// What we import, all weak: scope_linux.c is the only file that imports anything (imports.txt).
// The debugger's rendez-vous of glibc; the list of objects is its second word.
struct scope_debug {
	int version;
	struct scope_object *objects;
	uintptr_t stop;
	int state;
	uintptr_t linker;
	const struct scope_debug *next; // from version 2 on: of another namespace (dlmopen)
};
extern struct scope_debug _r_debug __attribute__((weak));
extern void *__libc_stack_end __attribute__((weak)); // glibc's linker: address of argc

extern const char __ehdr_start[] HIDDEN;

enum {
	SCOPE_SPAN_MAX = sizeof(void *) == 8 ? 1 << 30 : 1 << 29, // no library is larger
	SCOPE_PAGE = 4096,
	NT_GNU_BUILD_ID = 3,
	NT_GO_BUILD_ID = 4,
	DT_NEEDED = 1,
	DT_HASH = 4,
	DT_STRTAB = 5,
	DT_SYMTAB = 6,
	DT_REL = 17,
	DT_RELSZ = 18,
	DT_JMPREL = 23,
	DT_PLTRELSZ = 2,
	DT_GNU_HASH = 0x6ffffef5,
	DT_VERSYM = 0x6ffffff0,
	DT_DEBUG = 21,
	DT_FLAGS = 30,
	DT_DEPAUDIT = 0x6ffffefb,
	DT_AUDIT = 0x6ffffefc,
	DF_SYMBOLIC = 2,
	STT_OBJECT = 1,
	STT_FUNC = 2,
	STT_GNU_IFUNC = 10,
	AT_PHDR = 3,
	AT_PHNUM = 5,
	AT_BASE = 7,
};

// argc, argv…, 0, envp…, 0, auxv: as the kernel laid them out. Copied from /proc/self where the
// linker does not say where they are (musl).
static struct elf_pair scope_auxv_copy[32];
static char scope_environ_copy[16384];

// Up to `size` bytes. Returns how many there were, or -1. Not by stdio, which allocates.
static long scope_read_file(const char *path, void *out, size_t size)
{
	long fd = kernel(__NR_openat, KERNEL_AT_FDCWD, path, 0x80000 /* O_CLOEXEC */, 0);
	long total = 0;

	if (kernel_failed(fd))
		return -1;
	while ((size_t)total < size) {
		long got = kernel(__NR_read, fd, (char *)out + total, size - (size_t)total);

		if (got <= 0)
			break;
		total += got;
	}
	kernel(__NR_close, fd);
	return total;
}

// NULL where the linker does not say where the stack began (musl): then the copies of /proc/self
// are used.
static const char *const *scope_envp(void)
{
	const elf_word *words = &__libc_stack_end ? __libc_stack_end : NULL;

	if (!words)
		return NULL;
	return (const char *const *)(words + 1 + words[0] + 1);
}

// It comes right after the environment's closing NULL.
static const struct elf_pair *scope_auxv(void)
{
	const char *const *envp = scope_envp();

	if (envp) {
		while (*envp)
			envp++;
		return (const struct elf_pair *)(envp + 1);
	}
	if (!scope_auxv_copy[0].tag)
		scope_read_file("/proc/self/auxv", scope_auxv_copy,
				sizeof(scope_auxv_copy) - sizeof(scope_auxv_copy[0]));
	return scope_auxv_copy;
}

uintptr_t scope_auxiliary(uint32_t type)
{
	for (const struct elf_pair *pair = scope_auxv(); pair->tag; pair++) {
		if (pair->tag == type)
			return pair->value;
	}
	return 0;
}

const char *scope_arguments(size_t *bytes)
{
	const elf_word *words = &__libc_stack_end ? __libc_stack_end : NULL;
	const char *const *args = (const char *const *)(words ? words + 1 : NULL);
	const char *last;

	if (!words || !words[0] || !scope_auxiliary(AT_BASE))
		return NULL;
	last = args[words[0] - 1];
	*bytes = (size_t)(last - args[0]) + text_length(last) + 1;
	return args[0];
}

// Where the environment's beginning is not known it is read from the kernel, as it was when the
// program began. Two bytes are left for the end: of a text that was cut, and of the list.
const char *scope_environment(const char *name)
{
	const char *const *envp = scope_envp();

	if (envp) {
		for (; *envp; envp++) {
			const char *value = text_after(*envp, name);

			if (value && *value == '=')
				return value + 1;
		}
		return NULL;
	}
	if (!scope_environ_copy[0])
		scope_read_file("/proc/self/environ", scope_environ_copy,
				sizeof(scope_environ_copy) - 2);
	for (const char *at = scope_environ_copy; *at; at += text_length(at) + 1) {
		const char *value = text_after(at, name);

		if (value && *value == '=')
			return value + 1;
	}
	return NULL;
}

bool scope_is_audited(void)
{
	const char *list = scope_environment("LD_AUDIT");
	const struct scope_object *program = scope_objects();

	if (!&__libc_stack_end || static_is())
		return false; // musl's linker and static programs know nothing of it
	if (list && *list)
		return true;
	for (const struct elf_pair *at = program ? program->dynamic : NULL; at && at->tag; at++) {
		if (at->tag == DT_AUDIT || at->tag == DT_DEPAUDIT)
			return true;
	}
	return false;
}

bool scope_is_valgrinds(void)
{
	for (const struct scope_object *at = scope_objects(); at; at = at->next)
		if (at->name && text_has(at->name, "/vgpreload_"))
			return true;
	return false;
}

// Those of whole machines have neither.
bool scope_is_emulator(void)
{
	const struct scope_object *program = scope_objects();

	return program && scope_find_data(program, "guest_base") &&
	       scope_find(program, "target_mmap");
}

uintptr_t scope_stack_end(void)
{
	return &__libc_stack_end ? (uintptr_t)__libc_stack_end : 0;
}

// musl and others: the executable's DT_DEBUG entry points to the rendez-vous.
static struct scope_object *scope_objects_by_headers(void)
{
	const struct elf_program *header = (const void *)scope_auxiliary(AT_PHDR);
	size_t count = scope_auxiliary(AT_PHNUM);
	const struct elf_pair *dynamic = NULL;
	uintptr_t bias = 0;

	if (!header)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		if (header[i].type == ELF_HEADERS)
			bias = (uintptr_t)header - header[i].address;
	}
	for (size_t i = 0; i < count; i++) {
		if (header[i].type == ELF_DYNAMIC)
			dynamic = (const struct elf_pair *)(bias + header[i].address);
	}
	for (; dynamic && dynamic->tag; dynamic++) {
		if (dynamic->tag == DT_DEBUG && dynamic->value)
			return ((struct scope_debug *)dynamic->value)->objects;
	}
	return NULL;
}

struct scope_object *scope_objects(void)
{
	if (&_r_debug && _r_debug.objects)
		return _r_debug.objects;
	return scope_objects_by_headers();
}

// A linker that has lists of namespaces (r_debug of version 2, glibc 2.35) has them one after the
// other. The first is the program's own, and not given here.
const struct scope_object *scope_next_namespace(const void **at)
{
	const struct scope_debug *space = *at;

	if (!space)
		space = &_r_debug && _r_debug.version > 1 ? &_r_debug : NULL;
	space = space ? space->next : NULL;
	*at = space;
	return space ? space->objects : NULL;
}

// An entry of the dynamic section as an address: glibc has relocated it, others have not. One that
// has been is near that section, whatever address the library is linked to: that may be in the
// kernel's half of memory (the kernel's own library of User-Mode Linux).
static uintptr_t scope_dynamic(const struct scope_object *object, uint32_t tag)
{
	uintptr_t dynamic = (uintptr_t)object->dynamic;

	for (const struct elf_pair *at = object->dynamic; at && at->tag; at++) {
		uintptr_t away = at->value > dynamic ? at->value - dynamic : dynamic - at->value;

		if (at->tag == tag)
			return away < SCOPE_SPAN_MAX ? at->value : at->value + object->bias;
	}
	return 0;
}

// A symbol that is looked for: a function, or data.
struct scope_wanted {
	const char *name;
	bool data;
};

// An undefined symbol has no section, and a local one is no other object's business. In
// .gnu.version bit 15 says that a symbol is not the default one of its name (foo@V1 beside
// foo@@V2).
static bool scope_matches(const struct elf_symbol *symbol, const char *strings,
			  const uint16_t *versions, uint32_t index,
			  const struct scope_wanted *wanted)
{
	uint8_t type = symbol->info & 0xf;

	if (!symbol->section || !symbol->value || (symbol->info >> 4) == 0)
		return false;
	if (wanted->data ? type != STT_OBJECT : type != STT_FUNC && type != STT_GNU_IFUNC)
		return false;
	if (versions && (versions[index] & 0x8000)) // an old version, hidden from new programs
		return false;
	return text_equal(strings + symbol->name, wanted->name);
}

// The table is four words (how many buckets, the first symbol that is in it, words of the Bloom
// filter, a shift), the filter, the buckets, and a hash for each symbol, whose lowest bit says that
// its bucket ends there.
//
// The Bloom filter is skipped: it saves looking at objects that lack a name, and costs two more
// cache lines where they have it.
static const struct elf_symbol *scope_find_gnu(const struct elf_symbol *symbols,
					       const char *strings, const uint16_t *versions,
					       const uint32_t *table,
					       const struct scope_wanted *wanted)
{
	uint32_t buckets_count = table[0];
	uint32_t first = table[1];
	uint32_t bloom_count = table[2];
	const uint32_t *buckets = table + 4 + bloom_count * (sizeof(elf_word) / 4);
	const uint32_t *chain = buckets + buckets_count;
	uint32_t hash = 5381;
	uint32_t index;

	for (const char *at = wanted->name; *at; at++)
		hash = hash * 33 + (uint8_t)*at;
	index = buckets_count ? buckets[hash % buckets_count] : 0;
	if (index < first)
		return NULL;
	for (;; index++) {
		uint32_t entry = chain[index - first];

		if ((entry | 1) == (hash | 1) &&
		    scope_matches(&symbols[index], strings, versions, index, wanted))
			return &symbols[index];
		if (entry & 1)
			return NULL;
	}
}

// An STT_GNU_IFUNC's value is no function but one that returns it, chosen for the processor. The
// linker calls it as well, so that to call it once more does no harm. The old kind of table is not
// hashed into: all symbols are compared.
static void *scope_look(const struct scope_object *object, const struct scope_wanted *wanted)
{
	const struct elf_symbol *symbols = (const void *)scope_dynamic(object, DT_SYMTAB);
	const char *strings = (const char *)scope_dynamic(object, DT_STRTAB);
	const uint16_t *versions = (const void *)scope_dynamic(object, DT_VERSYM);
	const uint32_t *gnu = (const void *)scope_dynamic(object, DT_GNU_HASH);
	const uint32_t *hash = (const void *)scope_dynamic(object, DT_HASH);
	const struct elf_symbol *found = NULL;

	if (!symbols || !strings)
		return NULL;
	if (gnu) {
		found = scope_find_gnu(symbols, strings, versions, gnu, wanted);
	} else if (hash) {
		for (uint32_t i = 1; i < hash[1] && !found; i++) {
			if (scope_matches(&symbols[i], strings, versions, i, wanted))
				found = &symbols[i];
		}
	}
	if (!found)
		return NULL;
	if ((found->info & 0xf) == STT_GNU_IFUNC)
		return ((void *(*)(void))(object->bias + found->value))();
	return (void *)(object->bias + found->value);
}

// A static program has no dynamic symbols: its file's symbol table is read instead
// (static_linux.h).
static bool scope_is_static(const struct scope_object *object)
{
	return unlikely(static_is()) && object == scope_objects();
}

void *scope_find(const struct scope_object *object, const char *name)
{
	if (scope_is_static(object))
		return static_find(name, false);
	return scope_look(object, &(struct scope_wanted){ name, false });
}

void *scope_find_data(const struct scope_object *object, const char *name)
{
	if (scope_is_static(object))
		return static_find(name, true);
	return scope_look(object, &(struct scope_wanted){ name, true });
}

// A number of the dynamic section, as it is.
static uintptr_t scope_number(const struct scope_object *object, uint32_t tag)
{
	for (const struct elf_pair *at = object->dynamic; at && at->tag; at++) {
		if (at->tag == tag)
			return at->value;
	}
	return 0;
}

bool scope_is_symbolic(const struct scope_object *object)
{
	return scope_number(object, DT_FLAGS) & DF_SYMBOLIC;
}

// How many symbols a GNU hash table leads to: up to the end of the last bucket.
static uint32_t scope_count_gnu(const uint32_t *table)
{
	uint32_t buckets_count = table[0], first = table[1], last = 0;
	const uint32_t *buckets = table + 4 + table[2] * (sizeof(elf_word) / 4);
	const uint32_t *chain = buckets + buckets_count;

	for (uint32_t i = 0; i < buckets_count; i++)
		if (buckets[i] > last)
			last = buckets[i];
	if (last < first)
		return first;
	while (!(chain[last - first] & 1))
		last++;
	return last + 1;
}

// An undefined symbol. The old hash table says how many symbols there are. A GNU one has the
// defined ones at its end, and among them undefined ones that are called and whose address is
// taken.
const char *scope_next_asked(const struct scope_object *object, struct scope_asked *asked)
{
	const struct elf_symbol *symbols = (const void *)scope_dynamic(object, DT_SYMTAB);
	const char *strings = (const char *)scope_dynamic(object, DT_STRTAB);
	const uint32_t *gnu = (const void *)scope_dynamic(object, DT_GNU_HASH);
	const uint32_t *hash = (const void *)scope_dynamic(object, DT_HASH);

	if (!asked->count)
		asked->count = hash ? hash[1] : gnu ? scope_count_gnu(gnu) : 0;
	while (symbols && strings && ++asked->at < asked->count) {
		if (!symbols[asked->at].section)
			return strings + symbols[asked->at].name;
	}
	return NULL;
}

bool scope_asks(const struct scope_object *object, const char *name)
{
	struct scope_asked asked = { 0 };
	const char *each;

	while ((each = scope_next_asked(object, &asked)))
		if (text_equal(each, name))
			return true;
	return false;
}

// On i386 relocations are pairs of words: where, and `symbol << 8 | kind`. What stands there is
// compared with `target`, so a lazy entry that was not called yet does not count.
bool scope_calls(const struct scope_object *object, const char *name, const void *target)
{
	enum { GLOB_DAT = 6, JUMP_SLOT = 7, NUMBER_SHIFT = 8 };
	const struct elf_symbol *symbols = (const void *)scope_dynamic(object, DT_SYMTAB);
	const char *strings = (const char *)scope_dynamic(object, DT_STRTAB);
	static const struct {
		uint32_t tag, size_tag;
	} lists[] = { { DT_REL, DT_RELSZ }, { DT_JMPREL, DT_PLTRELSZ } };

	if (sizeof(elf_word) == 8 || !symbols || !strings)
		return false;
	for (size_t list = 0; list < sizeof(lists) / sizeof(*lists); list++) {
		const struct elf_pair *at = (const void *)scope_dynamic(object, lists[list].tag);
		size_t count = scope_number(object, lists[list].size_tag) / sizeof(*at);

		for (size_t i = 0; at && i < count; i++) { // where, and what: a pair, too
			elf_word kind = at[i].value & 0xff, number = at[i].value >> NUMBER_SHIFT;

			if ((kind == GLOB_DAT || kind == JUMP_SLOT) &&
			    text_equal(strings + symbols[number].name, name) &&
			    *(const void **)(object->bias + at[i].tag) == target)
				return true;
		}
	}
	return false;
}

struct scope_object *scope_ourselves(void)
{
	struct scope_object *at = scope_objects();

	while (at && at->bias != (uintptr_t)__ehdr_start)
		at = at->next;
	return at;
}

// The C library comes before us in the list: we were loaded by dlopen or by an attach, and no name
// leads to us.
bool scope_is_late(void)
{
	const struct scope_object *at = static_is() ? NULL : scope_objects();

	for (; at && at->bias != (uintptr_t)__ehdr_start; at = at->next) {
		if (scope_find(at, "__libc_start_main"))
			return true;
	}
	return false;
}

// As dlsym(RTLD_NEXT): what comes after us in the order of the search. Where that says nothing (we
// came late, after the C library, or the program is static) all objects but ours are looked at.
void *scope_next(const char *name, struct scope_object **object)
{
	const struct scope_object *ourselves = scope_ourselves();
	struct scope_object *at = ourselves ? ourselves->next : NULL;

	for (at = late_is() || static_is() ? scope_objects() : at; at; at = at->next) {
		void *found = at == ourselves ? NULL : scope_find(at, name);

		if (found) {
			if (object)
				*object = at;
			return found;
		}
	}
	return NULL;
}

void *scope_before(const char *name)
{
	const struct scope_object *ourselves = scope_ourselves();
	void *found = NULL;

	if (!ourselves || late_is() || static_is())
		return NULL;
	for (struct scope_object *at = scope_objects(); at && at != ourselves && !found;
	     at = at->next)
		found = scope_find(at, name);
	return found;
}

struct scope_object *scope_libc(void)
{
	static struct scope_object *libc; // it stays where it is, in forked children, too

	if (!libc && static_is())
		libc = scope_objects();
	if (!libc)
		scope_next("execve", &libc);
	return libc;
}

// Where it begins. One that is linked to an address of its own does so before the first of its
// tables, and not at its bias, where nothing may be. 0: that is not known.
static uintptr_t scope_begin(const struct scope_object *object)
{
	static const uint32_t tables[] = { DT_GNU_HASH, DT_HASH, DT_SYMTAB };
	uintptr_t first = UINTPTR_MAX;

	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
		uintptr_t table = scope_dynamic(object, tables[i]);

		if (table && table < first)
			first = table;
	}
	first &= ~(uintptr_t)(SCOPE_PAGE - 1);
	if (first <= (uintptr_t)object->dynamic && memcmp((const void *)first, "\177ELF", 4) == 0)
		return first;
	return (uintptr_t)object->dynamic - object->bias < SCOPE_SPAN_MAX ? object->bias : 0;
}

const struct elf_program *scope_programs(const struct scope_object *object, uint16_t *count)
{
	const struct elf_header *elf;

	if (object == scope_objects()) {
		*count = (uint16_t)scope_auxiliary(AT_PHNUM);
		return (const void *)scope_auxiliary(AT_PHDR);
	}
	elf = (const void *)scope_begin(object);
	if (!elf || memcmp(elf->identity, "\177ELF", 4) != 0)
		return NULL;
	*count = elf->program_count;
	return (const void *)((uintptr_t)elf + elf->program_at);
}

// A note is its three sizes (name, value, type), the name, and the value, each filled up to four
// bytes: 04 00 00 00 14 00 00 00 03 00 00 00 "GNU\0" and 20 bytes of the id. The value of the one
// with this name of three letters or fewer and this type, or NULL.
static const uint8_t *scope_note(uintptr_t bias, const struct elf_program *note, const char name[4],
				 uint32_t wanted, uint32_t *length)
{
	const uint8_t *at = (const uint8_t *)(bias + note->address);
	const uint8_t *end = at + note->memory_size;

	while (at + 12 <= end) {
		uint32_t name_size, value_size, type;

		memcpy(&name_size, at, 4);
		memcpy(&value_size, at + 4, 4);
		memcpy(&type, at + 8, 4);
		at += 12;
		if (name_size > (size_t)(end - at) || value_size > (size_t)(end - at))
			return NULL;
		if (type == wanted && name_size == 4 && memcmp(at, name, 4) == 0 &&
		    at + 4 + value_size <= end) {
			*length = value_size;
			return at + 4;
		}
		at += ((name_size + 3) & ~3u) + ((value_size + 3) & ~3u);
	}
	return NULL;
}

const uint8_t *scope_build_id(uintptr_t bias, const struct elf_program *note, uint32_t *length)
{
	const uint8_t *id = scope_note(bias, note, "GNU", NT_GNU_BUILD_ID, length);

	if (id && *length > 32)
		*length = 32;
	return id;
}

bool scope_is_go(void)
{
	const struct scope_object *program = scope_objects();
	uint16_t count = 0;
	const struct elf_program *header = program ? scope_programs(program, &count) : NULL;
	uint32_t length;

	for (uint16_t i = 0; header && i < count; i++)
		if (header[i].type == ELF_NOTE &&
		    scope_note(program->bias, &header[i], "Go\0", NT_GO_BUILD_ID, &length))
			return true;
	return false;
}

bool scope_span(const struct scope_object *object, uintptr_t *start, uintptr_t *end)
{
	uint16_t count = 0;
	const struct elf_program *program = scope_programs(object, &count);

	*start = UINTPTR_MAX;
	*end = 0;
	for (uint16_t i = 0; program && i < count; i++) {
		uintptr_t first = object->bias + program[i].address;

		if (program[i].type != ELF_LOAD)
			continue;
		if (first < *start)
			*start = first;
		if (first + program[i].memory_size > *end)
			*end = first + program[i].memory_size;
	}
	return *start < *end;
}

static const char *scope_last_part(const char *path)
{
	const char *last = path;

	for (const char *at = path; at && *at; at++) {
		if (*at == '/')
			last = at + 1;
	}
	return last;
}

// By the last part of both paths: DT_NEEDED mostly has no more than that.
bool scope_needs(const struct scope_object *object, const struct scope_object *other)
{
	const char *strings = (const char *)scope_dynamic(object, DT_STRTAB);
	const char *name = scope_last_part(other->name);

	for (const struct elf_pair *at = object->dynamic; strings && name && *name && at && at->tag;
	     at++) {
		if (at->tag == DT_NEEDED && text_equal(scope_last_part(strings + at->value), name))
			return true;
	}
	return false;
}

bool scope_is_linker(const struct scope_object *object)
{
	return object->bias && object->bias == scope_auxiliary(AT_BASE);
}
