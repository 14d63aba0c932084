// One image is one "process" of dbghelp's: the library keeps what it knows by a handle, which need
// not be a handle of anything, so the address of our struct serves. Each image is loaded at the
// same made-up address, BASE: the RVA 0x1234 is asked for as 0x10001234, and what is known of one
// image can never answer for another.
//
// The library is not safe to call from several threads; `symbols` is used by one thread at a time.
#include "symbols/dbghelp.h"

#include "base/map.h"
#include "base/mem.h"
#include "os/wide_win32.h"

#include <stdlib.h>
#include <string.h>
#include <windows.h>

#include <dbghelp.h>

// NAME_MAX_UNITS: of a name in UTF-16; the library cuts a longer one. INLINED_MAX: more functions
// inlined at one address are taken for nonsense. ALL_SIZES: SYMOPT_INCLUDE_32BIT_MODULES, so that a
// program of 64 bits may ask of images of 32.
enum { NAME_MAX_UNITS = 2000, BASE = 0x10000000, INLINED_MAX = 256, ALL_SIZES = 0x2000 };

// Not in all headers of mingw-w64.
DWORD WINAPI SymAddrIncludeInlineTrace(HANDLE process, DWORD64 at);
BOOL WINAPI SymQueryInlineTrace(HANDLE process, DWORD64 begin, DWORD begin_context,
				DWORD64 begin_return, DWORD64 at, DWORD *context, DWORD *index);
BOOL WINAPI SymFromInlineContextW(HANDLE process, DWORD64 at, ULONG context, DWORD64 *distance,
				  SYMBOL_INFOW *symbol);

// What of the library is asked for. Those of inlined functions came with Windows 8.
#define FUNCTIONS(X)                 \
	X(SymSetOptions)             \
	X(SymInitializeW)            \
	X(SymCleanup)                \
	X(SymLoadModuleExW)          \
	X(SymGetModuleInfoW64)       \
	X(SymEnumSourceFilesW)       \
	X(SymFromAddrW)              \
	X(SymGetLineFromAddrW64)     \
	X(SymAddrIncludeInlineTrace) \
	X(SymQueryInlineTrace)       \
	X(SymFromInlineContextW)

static struct library {
	bool tried, there, inlines;
#define DECLARE(name) __typeof__(name) *name;
	FUNCTIONS(DECLARE)
#undef DECLARE
} library;

// One module, by itself: what it is known by is its own address.
struct dbghelp {
	char **texts; // names that were handed out
	size_t texts_count, texts_capacity;
	struct map files; // hash of a path -> number of its text + 1
};

static bool load_library(void)
{
	HMODULE module;

	if (library.tried)
		return library.there;
	library.tried = true;
	// At run time: where the library is missing all else still works.
	module = LoadLibraryW(L"dbghelp.dll");
	if (!module)
		return false;
#define TAKE(name) library.name = (__typeof__(name) *)(void *)GetProcAddress(module, #name);
	FUNCTIONS(TAKE)
#undef TAKE
	library.there = library.SymSetOptions && library.SymInitializeW && library.SymCleanup &&
			library.SymLoadModuleExW && library.SymGetModuleInfoW64 &&
			library.SymEnumSourceFilesW && library.SymFromAddrW &&
			library.SymGetLineFromAddrW64;
	library.inlines = library.SymAddrIncludeInlineTrace && library.SymQueryInlineTrace &&
			  library.SymFromInlineContextW;
	if (library.there)
		// Only what belongs to the image (EXACT), with lines, and without windows that ask
		// the user.
		library.SymSetOptions(SYMOPT_EXACT_SYMBOLS | SYMOPT_LOAD_LINES | ALL_SIZES |
				      SYMOPT_FAIL_CRITICAL_ERRORS | SYMOPT_NO_PROMPTS);
	return library.there;
}

// Folders of a search path have ';' between them, and none at its ends.
static void add_folder(struct str *path, const char *folder, size_t length)
{
	if (length > 0)
		str_format(path, "%s%.*s", path->length > 0 ? ";" : "", (int)length, folder);
}

// Where it is to look: as we do.
static uint16_t *search_path(const char *image, const struct search *search)
{
	static const char *const names[] = { "_NT_ALT_SYMBOL_PATH", "_NT_ALTERNATE_SYMBOL_PATH",
					     "_NT_SYMBOL_PATH" };
	const char *end = strrchr(image, '\\');
	struct str path = { 0 };
	uint16_t *wide;

	if (search->directories)
		add_folder(&path, search->directories, strlen(search->directories));
	add_folder(&path, image, end ? (size_t)(end - image) : 0);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const char *value = getenv(names[i]);

		add_folder(&path, value ? value : "", value ? strlen(value) : 0);
	}
	wide = wide_new(path.length > 0 ? path.text : ".");
	str_fini(&path);
	return wide;
}

static BOOL CALLBACK note_source(SOURCEFILEW *, void *found)
{
	*(bool *)found = true;
	return FALSE; // one is enough
}

// Does it know more of the module than what that exports? Of DWARF that it cannot read Wine's says
// that it is there.
static bool is_known(HANDLE handle)
{
	IMAGEHLP_MODULEW64 module = { .SizeOfStruct = sizeof module };
	bool sources = false;

	if (!library.SymGetModuleInfoW64(handle, BASE, &module) || module.PdbUnmatched ||
	    module.DbgUnmatched)
		return false;
	if (module.SymType == SymPdb)
		return true;
	if (module.SymType != SymDia && module.SymType != SymCv)
		return false;
	library.SymEnumSourceFilesW(handle, BASE, NULL, note_source, &sources);
	return sources;
}

struct dbghelp *dbghelp_open(const char *path, uint32_t image_bytes, const struct search *search)
{
	struct dbghelp *help;
	uint16_t *image, *folders;
	bool known;

	if (!load_library()) {
		remarks_add(search->remarks, "dbghelp.dll is not on this machine: what tidemark "
					     "does not read itself has no names");
		return NULL;
	}
	help = mem_alloc(1, sizeof *help);
	image = wide_new_path(path);
	folders = search_path(path, search);
	if (!library.SymInitializeW(help, (const wchar_t *)folders, FALSE)) {
		mem_free(image);
		mem_free(folders);
		mem_free(help);
		return NULL;
	}
	// Loading succeeds for any image; is_known says whether more than exports came of it.
	known = library.SymLoadModuleExW(help, NULL, (const wchar_t *)image, NULL, BASE,
					 image_bytes, NULL, 0) == BASE &&
		is_known(help);
	mem_free(image);
	mem_free(folders);
	if (known)
		return help;
	dbghelp_close(help);
	return NULL;
}

void dbghelp_close(struct dbghelp *help)
{
	if (!help)
		return;
	library.SymCleanup(help);
	for (size_t i = 0; i < help->texts_count; i++)
		mem_free(help->texts[i]);
	mem_free(help->texts);
	map_fini(&help->files);
	mem_free(help);
}

// The library gives a name in a buffer of ours that the next question overwrites, and places borrow
// their texts: so each name becomes UTF-8 and lives until dbghelp_close.
static const char *keep_text(struct dbghelp *help, const wchar_t *wide)
{
	struct str text = { 0 };

	wide_add(&text, (const uint16_t *)wide, wcslen(wide));
	MEM_ROOM(help->texts, help->texts_capacity, help->texts_count + 1);
	return help->texts[help->texts_count++] = str_take(&text);
}

// Few files have many lines.
static const char *keep_file(struct dbghelp *help, const wchar_t *wide)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	uint64_t *number;
	bool added;

	for (const wchar_t *at = wide; *at; at++)
		hash = (hash ^ *at) * UINT64_C(0x100000001b3);
	number = map_put(&help->files, hash, &added);
	if (added) {
		keep_text(help, wide);
		*number = help->texts_count;
	}
	ASSERT(*number > 0 && *number <= help->texts_count);
	return help->texts[*number - 1];
}

static void put_line(struct dbghelp *help, struct place *place, const IMAGEHLP_LINEW64 *line)
{
	if (line->LineNumber == 0 || line->LineNumber >= 0xf00000 || !line->FileName)
		return; // no line, or one of those that mean that there is none
	place->line = line->LineNumber;
	place->file = keep_file(help, line->FileName);
}

// Room for a name behind it.
union name {
	SYMBOL_INFOW info;
	char room[sizeof(SYMBOL_INFOW) + NAME_MAX_UNITS * sizeof(wchar_t)];
};

static void clear_name(union name *name)
{
	memset(&name->info, 0, sizeof name->info);
	name->info.SizeOfStruct = sizeof name->info;
	name->info.MaxNameLen = NAME_MAX_UNITS;
}

// Functions inlined at `at`, innermost first. Of which line each is, versions of the library do not
// agree: so they are without.
static bool find_inlined(struct dbghelp *help, DWORD64 at, struct places *places)
{
	DWORD count = library.inlines ? library.SymAddrIncludeInlineTrace(help, at) : 0;
	DWORD context = 0, index = 0;
	DWORD64 distance;
	union name name;

	if (count == 0 || count > INLINED_MAX ||
	    !library.SymQueryInlineTrace(help, at, 0, at, at, &context, &index))
		return false;
	// Contexts of one address are numbered on from that of the innermost function.
	for (DWORD i = 0; i < count; i++, context++) {
		struct place *place;

		clear_name(&name);
		if (!library.SymFromInlineContextW(help, at, context, &distance, &name.info))
			continue;
		place = places_add(places);
		if (!place)
			break;
		place->function = keep_text(help, name.info.Name);
	}
	return true;
}

bool dbghelp_find(struct dbghelp *help, uint32_t rva, struct places *places)
{
	IMAGEHLP_LINEW64 line = { .SizeOfStruct = sizeof line };
	DWORD64 at = (DWORD64)BASE + rva, distance = 0;
	struct place *place;
	union name name;
	DWORD offset;
	bool inlined;

	clear_name(&name);
	// The library answers with the last symbol before the address, however far away. It counts
	// only if the address is in that function; exports and symbols without a size prove
	// nothing.
	if (!library.SymFromAddrW(help, at, &distance, &name.info) ||
	    (name.info.Flags & SYMFLAG_EXPORT) || name.info.Size == 0 || distance >= name.info.Size)
		return false;
	// The line that the library knows is that of the innermost place. Where functions are
	// inlined that is not this one, so it is left out.
	inlined = find_inlined(help, at, places);
	place = places_add(places);
	if (!place)
		return true;
	place->function = keep_text(help, name.info.Name);
	if (!inlined && library.SymGetLineFromAddrW64(help, at, &offset, &line))
		put_line(help, place, &line);
	return true;
}
