// An address is looked for in the linker's list of objects. While the linker loads one, it maps the
// object's code before it lists it, and a walk may come through there (a hook of its own is called
// meanwhile). For example, code was mapped at 0x7f2000-0x7f9000 by the linker, and 0x7f3456 is
// looked for: it is no object's, but coming, so what is found is not kept, and asked again the next
// time. Once the linker lists 0x7f2000, it has come.
//
// A module is known by where it begins. Unmapped, it is `gone`, and the same address is another
// module if something is loaded there again.
//
// A thread may fork while another one adds a module: then the child has any part of what was
// written, since its pages are copied one by one. So an entry has its number last, when the
// collector has been told of it, and is none before; it does not cross a page.
#include "recorder/codemap.h"

#include "recorder/eh_linux.h"
#include "recorder/elf.h"
#include "recorder/interpreters_linux.h"
#include "recorder/kernel.h"
#include "recorder/notes.h"
#include "recorder/python.h"
#include "recorder/recording.h"
#include "recorder/scope_linux.h"
#include "recorder/static_linux.h"
#include "recorder/text.h"
#include "recorder/vm.h"

// struct dl_find_object of glibc 2.35 and later (<dlfcn.h>). On i386 the first reserved word is the
// base of data in .eh_frame_hdr.
struct codemap_linker_object {
	uint64_t flags;
	uintptr_t map_start, map_end;
	const struct scope_object *link_map;
	const uint8_t *eh_header;
	uint64_t reserved[7];
};

struct codemap_module {
	_Alignas(64) uintptr_t start;
	uintptr_t end;
	const struct scope_object *object; // the linker's
	const uint8_t *eh_header;
	uint8_t *eh_made; // what it is, if it is ours, and its bytes
	size_t eh_bytes;
	uint32_t id;
	bool gone;
};

enum {
	CODEMAP_MODULES_MAX = 16384,
	CODEMAP_PATH_MAX = 4096,
	CODEMAP_COMING_MAX = 256, // addresses looked for while objects are coming
};

static int (*codemap_linker_find)(void *, struct codemap_linker_object *);

// Kept over fork: ids up to those that were given mean the parent's modules.
static struct codemap_module *codemap_modules;
static uint32_t codemap_modules_used;  // entries of the table that ever were
static uint32_t codemap_modules_given; // ids

static bool codemap_unmaps; // objects were unmapped: the linker may still list them

// All addresses that were looked for and were in no file.
static uintptr_t codemap_loose_low = UINTPTR_MAX, codemap_loose_high;

// What the linker has mapped and will list, all of it at once.
static struct {
	uintptr_t first;     // in the first of the objects
	uintptr_t low, high; // all lie in here
	uint32_t asked;      // so often was an address there looked for
} codemap_coming;

// Where the linker has no _dl_find_object (musl, glibc before 2.35): look through its list.
static int codemap_find_in_list(void *address, struct codemap_linker_object *result)
{
	uintptr_t pc = (uintptr_t)address;

	for (const struct scope_object *at = scope_objects(); at; at = at->next) {
		uint16_t count = 0;
		const struct elf_program *program = scope_programs(at, &count);
		bool inside = false;

		memset(result, 0, sizeof(*result));
		result->map_start = UINTPTR_MAX;
		result->link_map = at;
		for (uint16_t i = 0; program && i < count; i++) {
			uintptr_t start = at->bias + program[i].address;
			uintptr_t end = start + program[i].memory_size;

			if (program[i].type == ELF_EH_FRAME)
				result->eh_header = (const uint8_t *)start;
			if (program[i].type != ELF_LOAD)
				continue;
			inside |= pc >= start && pc < end;
			if (start < result->map_start)
				result->map_start = start & ~(uintptr_t)(KERNEL_PAGE - 1);
			if (end > result->map_end)
				result->map_end = end;
		}
		if (inside)
			return 0;
	}
	return -1;
}

uint32_t codemap_modules_count(void)
{
	return codemap_modules_given + 1;
}

// The tables survive a fork, with what they know of modules: a child has the same ones.
void codemap_start(void)
{
	if (codemap_modules)
		return;
	codemap_modules = recording_pages(sizeof(*codemap_modules) * CODEMAP_MODULES_MAX, false);
	codemap_start_frames();
	if (!static_is()) // whose list is of what it has loaded itself
		*(void **)&codemap_linker_find = scope_next("_dl_find_object", NULL);
	if (!codemap_linker_find)
		codemap_linker_find = codemap_find_in_list;
}

// `path` from the root: a library may have been opened by a relative one. The directory is today's,
// which is the one at dlopen unless the program has changed it since.
static const char *codemap_absolute(const char *path)
{
	static char absolute[2 * CODEMAP_PATH_MAX]; // the caller holds the lock
	size_t length = text_length(path);
	long directory;

	if (!path[0] || path[0] == '/' || length >= CODEMAP_PATH_MAX)
		return path;
	if (text_after(path, "linux-vdso") || text_after(path, "linux-gate"))
		return path;
	directory = kernel(__NR_getcwd, absolute, CODEMAP_PATH_MAX);
	if (kernel_failed(directory) || absolute[0] != '/')
		return path;
	absolute[directory - 1] = '/'; // in place of the NUL
	memcpy(absolute + directory, path, length + 1);
	return absolute;
}

// The build-id is read from memory, where the loaded object's notes are, and not from the file,
// which may be another one by now.
static void codemap_tell(const struct codemap_module *module, uint32_t id, uintptr_t bias,
			 const char *path)
{
	const struct elf_header *elf = (const void *)module->start;
	const uint8_t *build_id = NULL;
	uint32_t build_id_length = 0;

	if (memcmp(elf->identity, "\177ELF", 4) == 0) {
		const struct elf_program *program = (const void *)(module->start + elf->program_at);

		for (uint16_t i = 0; i < elf->program_count && !build_id; i++) {
			if (program[i].type == ELF_NOTE)
				build_id = scope_build_id(bias, &program[i], &build_id_length);
		}
	}
	notes_module(id, module->start, module->end, bias, build_id, build_id_length,
		     codemap_absolute(path));
	vm_missed();
}

// The linker's object at pc. It forgets an object only after unmapping it.
static bool codemap_find_object(uintptr_t pc, struct codemap_linker_object *object)
{
	if (!codemap_linker_find || codemap_linker_find((void *)pc, object) != 0)
		return false;
	return !__atomic_load_n(&codemap_unmaps, __ATOMIC_RELAXED) || kernel_sealed ||
	       (kernel_can_read(object->map_start) &&
		(!object->eh_header || kernel_can_read((uintptr_t)object->eh_header)));
}

// The linker's objects that were coming are there by now, or will never be.
static void codemap_have_come(void)
{
	memset(&codemap_coming, 0, sizeof(codemap_coming));
}

static bool codemap_has_listed(uintptr_t address)
{
	struct codemap_linker_object object;

	return codemap_linker_find && codemap_linker_find((void *)address, &object) == 0;
}

// Whether pc lies where objects are coming. A linker that never lists them is not waited for.
static bool codemap_is_coming(uintptr_t pc)
{
	if (pc - codemap_coming.low >= codemap_coming.high - codemap_coming.low)
		return false;
	if (codemap_coming.asked++ < CODEMAP_COMING_MAX &&
	    !codemap_has_listed(codemap_coming.first))
		return true;
	codemap_have_come();
	return false;
}

// An entry for one more module: that of one that is gone, or a new one. NULL: there is none.
static struct codemap_module *codemap_free_entry(void)
{
	for (uint32_t i = 0; i < codemap_modules_used; i++)
		if (codemap_modules[i].gone)
			return &codemap_modules[i];
	if (codemap_modules_used == CODEMAP_MODULES_MAX)
		return NULL;
	return &codemap_modules[codemap_modules_used++];
}

// What comes out: the module's number and range, and its .eh_frame_hdr; a number of 0 says that no
// object has the address. The caller holds code_lock.
struct codemap_place codemap_find(uintptr_t pc)
{
	// Before it is looked for: it may be listed meanwhile.
	struct codemap_place place = { .coming = codemap_is_coming(pc) };
	struct codemap_linker_object object;
	struct codemap_module *module;

	if (!codemap_find_object(pc, &object)) {
		if (pc < codemap_loose_low)
			codemap_loose_low = pc;
		if (pc >= codemap_loose_high)
			codemap_loose_high = pc + 1;
		return place;
	}
	place.coming = false;
	place.eh_header = object.eh_header;
	place.start = object.map_start;
	place.end = object.map_end;
	for (uint32_t i = codemap_modules_used; i-- > 0;) {
		module = &codemap_modules[i];
		if (module->start == object.map_start && !module->gone && module->id) {
			place.module = module->id;
			place.eh_header = module->eh_header;
			return place;
		}
	}
	module = codemap_free_entry();
	if (!module)
		return place;
	__atomic_store_n(&module->id, 0, __ATOMIC_SEQ_CST);
	*module = (struct codemap_module){
		.start = object.map_start,
		.end = object.map_end,
		.object = object.link_map,
		.eh_header = object.eh_header,
	};
	if (!object.eh_header)
		module->eh_header = module->eh_made = eh_make_header(
			object.link_map, object.map_start, object.map_end, &module->eh_bytes);
	place.eh_header = module->eh_header;
	place.module = ++codemap_modules_given;
	codemap_tell(module, place.module, object.link_map->bias, object.link_map->name);
	python_meet(object.link_map, place.module, place.eh_header);
	__atomic_store_n(&module->id, place.module, __ATOMIC_RELEASE);
	interpreters_meet(object.link_map);
	return place;
}

static void codemap_go(struct codemap_module *module)
{
	module->gone = true;
	if (module->eh_made)
		recording_give_back(module->eh_made, module->eh_bytes);
	notes_module_gone(module->id);
}

// Returns whether a module was among what goes, so that rules are to be forgotten.
bool codemap_unmapped(uintptr_t start, uintptr_t end)
{
	bool any = false;

	for (uint32_t i = 0; i < codemap_modules_used; i++) {
		struct codemap_module *module = &codemap_modules[i];

		if (module->id && !module->gone && module->start < end && module->end > start) {
			codemap_go(module);
			any = true;
		}
	}
	if (codemap_coming.first - start < end - start)
		codemap_have_come();
	return any;
}

void codemap_closes(void)
{
	__atomic_store_n(&codemap_unmaps, true, __ATOMIC_RELAXED);
}

bool codemap_closed(void)
{
	struct codemap_linker_object object;
	bool any = false;

	for (uint32_t i = 0; codemap_linker_find && i < codemap_modules_used; i++) {
		struct codemap_module *module = &codemap_modules[i];

		if (!module->id || module->gone ||
		    (codemap_linker_find((void *)module->start, &object) == 0 &&
		     object.link_map == module->object && object.map_end == module->end))
			continue;
		codemap_go(module);
		any = true;
	}
	return any;
}

// Returns whether addresses in there were looked for when no object had them.
bool codemap_mapped(uintptr_t start, uintptr_t end, bool by_linker)
{
	if (by_linker) {
		if (!codemap_coming.first || codemap_has_listed(codemap_coming.first)) {
			codemap_have_come();
			codemap_coming.first = codemap_coming.low = start;
		}
		if (start < codemap_coming.low)
			codemap_coming.low = start;
		if (end > codemap_coming.high)
			codemap_coming.high = end;
	}
	return start < codemap_loose_high && end > codemap_loose_low;
}

// With musl and old glibc it cannot be asked cheaply, and it is said to be none.
bool codemap_is_object(uintptr_t address)
{
	if (codemap_linker_find == codemap_find_in_list || !codemap_has_listed(address))
		return false;
	__atomic_store_n(&codemap_unmaps, true, __ATOMIC_RELAXED);
	return true;
}
