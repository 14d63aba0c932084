// A module's number is its place in a table that is never moved, plus 1: so a frame that was
// compiled for it keeps its meaning while others come and go, and one that is gone keeps its
// place. Its name for a symbol store is the GUID and age of its PDB; the PDB's name is sent
// besides only where it is not the module's own with another ending: Foo.dll with foo.pdb says
// nothing new, Foo.dll with bar.pdb does.
//
// 32 bits have no tables of unwinding in the system's sense: there an image's DWARF, and the FPO
// rows of its PDB, are looked for when the first frame of it is met.
#include "recorder/codemap_win32.h"

#include "recorder/capture.h"
#include "recorder/client_win32.h"
#include "recorder/codemap.h"
#include "recorder/eh_win32.h"
#include "recorder/epilogue.h"
#include "recorder/fpo_win32.h"
#include "recorder/kernel.h"
#include "recorder/notes.h"
#include "recorder/nt_win32.h"
#include "recorder/pdata.h"
#include "recorder/recording.h"
#include "recorder/tables_win32.h"
#include "recorder/text.h"
#include "recorder/unwind.h"
#include "recorder/utf_win32.h"

enum {
	CODEMAP_MODULES_MAX = 16384,
	CODEMAP_PATH_MAX = 4096,
	CODEMAP_DEBUG_DIRECTORY = 6,
	CODEMAP_DEBUG_BYTES = 28, // of one entry
	CODEMAP_CODEVIEW = 2,
	CODEMAP_ID_BYTES = 20, // GUID and age
	CODEMAP_NAME_AT = 4 + CODEMAP_ID_BYTES,
	CODEMAP_NAME_MAX = 12,
};

struct codemap_module {
	uint8_t *base;
	uint32_t bytes;
	uint32_t id;
	bool gone;
	bool eh_made; // 32 bits: what follows was looked for
	uint8_t *eh_header;
	size_t eh_bytes;
	bool fpo_made; // the same of the PDB
	struct fpo_table *fpo;
	struct nt_text path; // the loader's text, there as long as the module is
};

static struct codemap_module *codemap_modules;
static bool codemap_reaching;               // under code_lock
static uint32_t codemap_modules_used;       // entries of the table
static uint32_t codemap_newest_id;          // one more each time
static char codemap_path[CODEMAP_PATH_MAX]; // the holder of code_lock's

void codemap_start(void)
{
	codemap_modules = recording_pages(sizeof(*codemap_modules) * CODEMAP_MODULES_MAX, false);
	codemap_start_frames();
}

static char codemap_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c | 32) : c;
}

// Whether `name` is the file's own name with .pdb for its ending.
static bool codemap_is_plain(const char *path, const char *name)
{
	const char *file = path;
	size_t i = 0;

	for (const char *at = path; *at; at++)
		file = *at == '\\' || *at == '/' ? at + 1 : file;
	for (; file[i] && file[i] != '.' && codemap_lower(file[i]) == codemap_lower(name[i]); i++)
		;
	return (!file[i] || file[i] == '.') && text_equal(name + i, ".pdb");
}

// What the image says of its PDB: a record of GUID, age and name. Returns where it is, and its
// bytes; NULL: there is none.
//
// The debug directory is a list of entries of 28 bytes. Of kind 2 (CodeView), the record is "RSDS",
// 16 bytes of GUID, 4 of age, and the PDB's path with a NUL.
static const uint8_t *codemap_pdb(const uint8_t *base, uint32_t bytes, uint32_t *record_bytes)
{
	const uint8_t *headers = base + text_load32(base + 0x3c);
	size_t directories = sizeof(void *) == 8 ? 24 + 112 : 24 + 96;
	const uint8_t *directory = headers + directories + 8 * CODEMAP_DEBUG_DIRECTORY;
	uint32_t at = text_load32(directory), size = text_load32(directory + 4);

	if (!at || at > bytes || size > bytes - at)
		return NULL;
	for (; size >= CODEMAP_DEBUG_BYTES;
	     size -= CODEMAP_DEBUG_BYTES, at += CODEMAP_DEBUG_BYTES) {
		const uint8_t *entry = base + at;
		uint32_t length = text_load32(entry + 16), where = text_load32(entry + 20);

		if (text_load32(entry + 12) != CODEMAP_CODEVIEW || !where || where > bytes ||
		    length > bytes - where || length < CODEMAP_NAME_AT + 1 ||
		    memcmp(base + where, "RSDS", 4) != 0)
			continue;
		*record_bytes = length;
		return base + where;
	}
	return NULL;
}

// What tells the image's debug file: GUID, age, and the file's name if that is another than the
// image's. Returns how many bytes; 0: there is none.
//
// It has room for 32 bytes: 20 of GUID and age, and a name of 12 at most. A longer name is left
// out, and the module's own is tried.
static uint32_t codemap_debug_id(const uint8_t *base, uint32_t bytes, const char *path,
				 uint8_t id[32])
{
	uint32_t length, name_length = 0;
	const uint8_t *record = codemap_pdb(base, bytes, &length);
	const char *end = (const char *)record + length, *file;

	if (!record)
		return 0;
	memcpy(id, record + 4, CODEMAP_ID_BYTES);
	file = (const char *)record + CODEMAP_NAME_AT;
	for (const char *c = file; c < end && *c; c++)
		file = *c == '\\' || *c == '/' ? c + 1 : file;
	while (file + name_length < end && file[name_length])
		name_length++;
	if (name_length > CODEMAP_NAME_MAX || file + name_length >= end ||
	    codemap_is_plain(path, file))
		return CODEMAP_ID_BYTES;
	memcpy(id + CODEMAP_ID_BYTES, file, name_length);
	return CODEMAP_ID_BYTES + name_length;
}

// Those that are gone have an address that may be another's by now.
static struct codemap_module *codemap_at(uintptr_t pc)
{
	for (uint32_t i = codemap_modules_used; i-- > 0;) {
		struct codemap_module *module = &codemap_modules[i];

		if (!module->gone && pc - (uintptr_t)module->base < module->bytes)
			return module;
	}
	return NULL;
}

// An entry: one whose module is gone, if there is one. NULL: all are taken, which is said once.
static struct codemap_module *codemap_take(void)
{
	static bool told;

	for (uint32_t i = 0; i < codemap_modules_used; i++)
		if (codemap_modules[i].gone)
			return &codemap_modules[i];
	if (codemap_modules_used < CODEMAP_MODULES_MAX)
		return &codemap_modules[codemap_modules_used++];
	if (!told)
		notes_message(NOTE_MESSAGE_OTHER, "more than 16,384 DLLs are loaded at one time: "
						  "functions of later ones have no names, and "
						  "stacks end there");
	told = true;
	return NULL;
}

// The caller holds code_lock. A module at an address that is known is not added twice: the loader's
// list and its notification may both name it.
static void codemap_add(uint8_t *base, uint32_t bytes, const struct nt_text *path)
{
	struct codemap_module *module;
	uint8_t id[32] = { 0 };
	uint32_t id_length;
	const char *text;

	if (codemap_at((uintptr_t)base))
		return;
	module = codemap_take();
	if (!module)
		return;
	*module = (struct codemap_module){
		.base = base, .bytes = bytes, .path = *path, .id = ++codemap_newest_id
	};
	utf_decode(path->text, path->bytes / 2, codemap_path, sizeof(codemap_path));
	text = codemap_path;
	id_length = codemap_debug_id(base, bytes, text, id);
	notes_module(module->id, (uintptr_t)base, (uintptr_t)base + bytes, (uintptr_t)base, id,
		     id_length, text);
	if (codemap_reaching)
		client_reach(base, bytes);
}

// All rules are forgotten, not those of the module alone: unloading is rare.
static void codemap_remove(const uint8_t *base)
{
	struct codemap_module *module = codemap_at((uintptr_t)base);

	if (!module)
		return;
	module->gone = true;
	if (module->eh_header)
		recording_give_back(module->eh_header, module->eh_bytes);
	if (module->fpo)
		recording_give_back(module->fpo, module->fpo->bytes);
	notes_module_gone(module->id);
	__atomic_fetch_add(&capture_epoch, 1, __ATOMIC_SEQ_CST);
	unwind_forget();
	epilogue_forget();
}

// The loader calls it under its own lock, when a module is mapped or before it is unmapped.
static NT_CALL void codemap_told(uint32_t reason, const struct nt_dll_notice *notice, void *)
{
	if (recording_phase() != RECORDING_ON)
		return;
	recording_lock(&recording_state->code_lock);
	if (reason == NT_DLL_LOADED)
		codemap_add(notice->base, notice->bytes, notice->path);
	else if (reason == NT_DLL_UNLOADED)
		codemap_remove(notice->base);
	recording_unlock(&recording_state->code_lock);
}

// First what is loaded already, in the loader's order; from then on notifications.
void codemap_watch(void)
{
	const struct nt_list *first = &kernel_peb()->loader->load;
	void *cookie;

	recording_lock(&recording_state->code_lock);
	for (const struct nt_list *at = first->next; at != first; at = at->next) {
		const struct nt_module *module = (const void *)at;

		codemap_add(module->base, module->bytes, &module->path);
	}
	recording_unlock(&recording_state->code_lock);
	LdrRegisterDllNotification(0, codemap_told, NULL, &cookie);
}

void codemap_reach(void)
{
	recording_lock(&recording_state->code_lock);
	codemap_reaching = true;
	for (uint32_t i = 0; i < codemap_modules_used; i++)
		if (!codemap_modules[i].gone)
			client_reach(codemap_modules[i].base, codemap_modules[i].bytes);
	recording_unlock(&recording_state->code_lock);
}

// In 64 bits, `function` is the image's own entry for pc, by which pdata.c makes a rule; in 32 bits
// `eh_header` is what mingw's images have, made once per module.
struct codemap_place codemap_find(uintptr_t pc)
{
	struct codemap_module *module = codemap_at(pc);
	struct codemap_place place = { 0 };

	if (!module) {
		if (sizeof(void *) == 8)
			tables_find(pc, &place);
		return place;
	}
	place.module = module->id;
	place.start = (uintptr_t)module->base;
	place.end = place.start + module->bytes;
	if (sizeof(void *) == 8) {
		place.function = pdata_find(module->base, pc);
		return place;
	}
	if (!module->eh_made)
		module->eh_header = eh_make_header(module->base, module->bytes, &module->eh_bytes);
	module->eh_made = true;
	place.eh_header = module->eh_header;
	return place;
}

// The row of the PDB for pc; `*base` is where its module begins. The PDB is looked for once per
// module. NULL: there is none, or no row.
const struct fpo_row *codemap_frame_data(uintptr_t pc, uintptr_t *base)
{
	struct codemap_module *module = codemap_at(pc);
	const uint8_t *record;
	uint32_t length;

	if (!module)
		return NULL;
	*base = (uintptr_t)module->base;
	if (!module->fpo_made) {
		module->fpo_made = true;
		record = codemap_pdb(module->base, module->bytes, &length);
		if (record) {
			const char *name = (const char *)record + CODEMAP_NAME_AT;
			uint32_t name_length = 0;

			while (name_length < length - CODEMAP_NAME_AT && name[name_length])
				name_length++;
			module->fpo = fpo_load(&module->path, name, name_length, record + 4,
					       module->bytes);
		}
	}
	return module->fpo ? fpo_find(module->fpo, (uint32_t)(pc - *base)) : NULL;
}
