// For example, an executable has its own malloc at 0x401000, which begins
//
//     41 57             push %r15
//     49 89 ff          mov %rdi,%r15         5 bytes: enough for a jump
//
// They are copied to a trampoline in a page below the executable, with a jump to 0x401005 after
// them, and in their place is a jump to the hook, by way of the trampoline's page, since the hook
// is out of a short jump's reach. The hook's real function is the trampoline: it does what malloc
// did.
#include "recorder/enter_linux.h"

#include "recorder/allocators_linux.h"
#include "recorder/enter_pages_linux.h"
#include "recorder/enter_table_linux.h"
#include "recorder/hook_linux.h"
#include "recorder/hook_python_linux.h"
#include "recorder/hook_vm_linux.h"
#include "recorder/inside_linux.h"
#include "recorder/insn.h"
#include "recorder/kernel.h"
#include "recorder/language_heap.h"
#include "recorder/late_linux.h"
#include "recorder/notes.h"
#include "recorder/object_file_linux.h"
#include "recorder/patch_linux.h"
#include "recorder/real_linux.h"
#include "recorder/recording.h"
#include "recorder/scope_linux.h"
#include "recorder/static_linux.h"
#include "recorder/text.h"
#include "wire/lane_event.h"

enum {
	ENTER_JUMPS_MAX = 4, // that are followed
	ENTER_TEXT_MAX = 512,
	ENTER_HOOKS_MAX = 256,
	ENTER_HASHES = 1024,
	ENTER_NAME_MAX = 48,
	ENTER_OBJECTS_MAX = 32, // that have allocators
	ENTER_KNOWN_MAX = 1024,
};

// Every hook that can be entered, in a section of its own.
extern struct hook_entry __start_entered[] HIDDEN;
extern struct hook_entry __stop_entered[] HIDDEN;

// What only jemalloc has, and only tcmalloc (the one of Abseil; gperftools' has tc_malloc).
static struct hook_entry enter_sign
	__attribute__((section("entered"), used)) = { "arena_malloc_hard", NULL, NULL };
static struct hook_entry enter_sign_tcmalloc
	__attribute__((section("entered"), used)) = { "MallocExtension_Internal_GetStats", NULL,
						      NULL };

// Whose functions they are, by their names. Of each allocator.
enum enter_family {
	ENTER_USUAL,
	ENTER_JEMALLOC,
	ENTER_TCMALLOC,
	ENTER_MIMALLOC,
	ENTER_MOZJEMALLOC,
	ENTER_TBBMALLOC,
	ENTER_RPMALLOC,
	ENTER_FAMILIES,
};

// What jemalloc's names begin with where it is not je_: in Rust's programs, DuckDB's, Arrow's.
static const char *const enter_prefixes[] = { "_rjem_", "duckdb_je_", "je_arrow_" };

// An object that was entered.
struct enter_object {
	const struct scope_object *object; // NULL: free
	struct enter_pages pages;
};

// The object that is being looked at: what is where, hook by hook, and who says so.
static struct {
	const struct scope_object *object;
	struct enter_object *place;
	uint8_t *at[ENTER_HOOKS_MAX];
	uint8_t *moved[ENTER_HOOKS_MAX]; // the trampolines
	uint8_t seen[ENTER_HOOKS_MAX];   // enum note_seen
	bool twice[ENTER_HOOKS_MAX], local[ENTER_HOOKS_MAX];
	uint32_t done;
	char refused[ENTER_TEXT_MAX]; // names, and why
} enter_now;

static struct enter_object enter_objects[ENTER_OBJECTS_MAX];
static struct enter_object enter_none; // all are taken: the object is looked at, and not entered
// Open addressing: a hook is at its hash, or at the next free place.
static uint16_t enter_hashes[ENTER_HASHES]; // number of a hook + 1
static uint8_t enter_beginnings[512];       // of their names, a bit each
static struct {
	const struct scope_object *object;
	uintptr_t bias;
} enter_known[ENTER_KNOWN_MAX]; // have been looked at
static bool enter_started;
static const struct scope_object *enter_last; // that was loaded then; never unloaded
static bool enter_plain;                      // a static program's operators are left alone
static uint32_t enter_count;                  // of functions that were entered

// One line for an object, in the order in which they were met: "libfoo.so: malloc is too short,
// free has a jump into it". What does not fit into 512 bytes is left out.
static void enter_refuse(const char *name, const char *why)
{
	size_t used = text_length(enter_now.refused);
	const char *parts[] = { used ? ", " : enter_now.object->name,
				used || !*enter_now.object->name ? "" : ": ", name, " ", why };

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		size_t length = text_length(parts[i]);

		if (used + length >= sizeof(enter_now.refused))
			return;
		memcpy(enter_now.refused + used, parts[i], length + 1);
		used += length;
	}
}

// Where the function at this address went, or NULL.
//
// The same function under several names is moved once, and found here by its address.
static uint8_t *enter_moved(const uint8_t *at)
{
	for (uint32_t i = 0; i < ENTER_HOOKS_MAX; i++) {
		if (enter_now.at[i] == at && enter_now.moved[i])
			return enter_now.moved[i];
	}
	return NULL;
}

// Where a function really begins: `jmp body` is followed, but not into a table of addresses.
//
// endbr is passed over, since the jump may be after it. A jump through memory (ff 25) leads to
// another object and is an entry of the linkage table: it is not followed, as it is not this
// object's function.
static uint8_t *enter_body(uint8_t *at)
{
	for (int i = 0; i < ENTER_JUMPS_MAX && !enter_moved(at); i++) {
		const uint8_t *jump = at;
		struct insn insn;
		int32_t far;
		uint8_t *to;

		if (memcmp(jump, "\363\017\036", 3) == 0) // endbr
			jump += 4;
		if (!insn_decode(jump, INSN_BYTES_MAX, ENTER_PAGES_WIDE, &insn) ||
		    !insn.relative_at || insn.opcode_at || (jump[0] != 0xe9 && jump[0] != 0xeb))
			return at;
		memcpy(&far, jump + insn.relative_at, 4);
		to = (uint8_t *)jump + insn.length + (jump[0] == 0xeb ? (int8_t)jump[1] : far);
		jump = to;
		if (memcmp(jump, "\363\017\036", 3) == 0)
			jump += 4;
		if (jump[0] == 0xff || (jump[0] == 0xf2 && jump[1] == 0xff))
			return at;
		at = to;
	}
	return at;
}

// ---- What an object has -------------------------------------------------------------------------

static uint32_t enter_hooks_count(void)
{
	return (uint32_t)(__stop_entered - __start_entered);
}

// Of a name's first three characters: a large program has 400,000 names, and nearly all of them
// begin as no hook's does.
static uint32_t enter_beginning(const char *name)
{
	uint32_t beginning = 0;

	for (int i = 0; i < 3 && name[i]; i++)
		beginning = beginning * 31 + (uint8_t)name[i];
	return beginning % (8 * sizeof(enter_beginnings));
}

static void enter_know_beginning(const char *name)
{
	uint32_t beginning = enter_beginning(name);

	enter_beginnings[beginning / 8] |= (uint8_t)(1 << beginning % 8);
}

// Once for an image. A bit for a name's first three characters decides for most names of a program,
// before a hash is computed.
static void enter_hash_all(void)
{
	for (size_t i = 0; i < sizeof(enter_prefixes) / sizeof(*enter_prefixes); i++)
		enter_know_beginning(enter_prefixes[i]);
	for (uint32_t i = 0; i < enter_hooks_count(); i++) {
		uint32_t at = text_hash(__start_entered[i].name) % ENTER_HASHES;

		enter_know_beginning(__start_entered[i].name);
		while (enter_hashes[at])
			at = (at + 1) % ENTER_HASHES;
		enter_hashes[at] = (uint16_t)(i + 1);
	}
}

// The name made of both; NULL: it is longer than any hook's.
static const char *enter_join(const char *begins, const char *rest, char buffer[ENTER_NAME_MAX])
{
	size_t length = text_length(begins), more = text_length(rest);

	if (length + more >= ENTER_NAME_MAX)
		return NULL;
	memcpy(buffer, begins, length);
	memcpy(buffer + length, rest, more + 1);
	return buffer;
}

// The number of the hook for a function of that name, or UINT32_MAX. jemalloc's under other names
// have those of je_.
static uint32_t enter_hook_of(const char *name)
{
	uint32_t beginning = enter_beginning(name);
	char buffer[ENTER_NAME_MAX];

	if (!(enter_beginnings[beginning / 8] >> beginning % 8 & 1))
		return UINT32_MAX;
	for (size_t i = 0; i < sizeof(enter_prefixes) / sizeof(*enter_prefixes); i++) {
		const char *rest = text_after(name, enter_prefixes[i]);
		const char *joined = rest ? enter_join("je_", rest, buffer) : NULL;

		if (joined)
			name = joined;
	}
	for (uint32_t at = text_hash(name) % ENTER_HASHES; enter_hashes[at];
	     at = (at + 1) % ENTER_HASHES) {
		if (text_equal(__start_entered[enter_hashes[at] - 1].name, name))
			return enter_hashes[at] - 1u;
	}
	return UINT32_MAX;
}

// jemalloc's own functions (mallocx and so on) have no je_ where it was built without a prefix.
static enum enter_family enter_family_of(const char *name)
{
	static const struct {
		const char *begins;
		enum enter_family family;
	} families[] = {
		{ "je_", ENTER_JEMALLOC },     { "mallocx", ENTER_JEMALLOC },
		{ "rallocx", ENTER_JEMALLOC }, { "xallocx", ENTER_JEMALLOC },
		{ "dallocx", ENTER_JEMALLOC }, { "sdallocx", ENTER_JEMALLOC },
		{ "tc_", ENTER_TCMALLOC },     { "mi_", ENTER_MIMALLOC },
		{ "moz_", ENTER_MOZJEMALLOC }, { "scalable_", ENTER_TBBMALLOC },
		{ "rp", ENTER_RPMALLOC },
	};

	for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++) {
		if (text_after(name, families[i].begins))
			return families[i].family;
	}
	return ENTER_USUAL;
}

// Whether it copies a text. Only what exports malloc, too, has these for itself.
static bool enter_copies(uint32_t hook)
{
	return text_equal(__start_entered[hook].name, "strdup") ||
	       text_equal(__start_entered[hook].name, "__strdup");
}

static void enter_find_exported(void)
{
	bool libc = inside_is_libc(enter_now.object); // which has some under a second name

	for (uint32_t i = 0; i < enter_hooks_count(); i++) {
		if (libc && (enter_copies(i) || text_after(__start_entered[i].name, "__")))
			continue;
		enter_now.at[i] = scope_find(enter_now.object, __start_entered[i].name);
		enter_now.seen[i] = NOTE_SEEN_EXPORTED;
	}
}

// jemalloc's under other names, of a file that is stripped and exports them.
static void enter_find_prefixed(void)
{
	char name[ENTER_NAME_MAX];

	for (size_t i = 0; i < sizeof(enter_prefixes) / sizeof(*enter_prefixes); i++) {
		const char *prefix = enter_prefixes[i];

		if (!scope_find(enter_now.object, enter_join(prefix, "malloc", name)))
			continue;
		for (uint32_t hook = 0; hook < enter_hooks_count(); hook++) {
			const char *rest = text_after(__start_entered[hook].name, "je_");

			if (!rest || enter_now.at[hook] || !enter_join(prefix, rest, name))
				continue;
			enter_now.at[hook] = scope_find(enter_now.object, name);
			enter_now.seen[hook] = NOTE_SEEN_EXPORTED;
		}
	}
}

// What is a local function of several files is that of none; one that they share comes after these.
//
// A local function of one name in two files (a static `free`) is ambiguous, and neither is entered.
// A global one of that name is preferred to local ones.
static void enter_find_symbol(const struct elf_symbol *symbol, const char *name, bool debug)
{
	uint32_t hook = enter_hook_of(name);
	uint8_t *at = (uint8_t *)enter_now.object->bias + symbol->value;

	if (hook == UINT32_MAX || enter_now.at[hook] == at || enter_copies(hook) ||
	    (uintptr_t)at - enter_now.place->pages.start >=
		    enter_now.place->pages.end - enter_now.place->pages.start)
		return;
	if (enter_now.at[hook] && !(enter_now.local[hook] && symbol->info >> 4 != 0)) {
		enter_now.twice[hook] |= enter_now.seen[hook] != NOTE_SEEN_EXPORTED;
		return;
	}
	enter_now.twice[hook] = false;
	enter_now.local[hook] = symbol->info >> 4 == 0;
	enter_now.at[hook] = at;
	enter_now.seen[hook] = debug ? NOTE_SEEN_DEBUG : NOTE_SEEN_SYMBOLS;
}

// False: it is stripped.
static bool enter_find_named(void)
{
	enum { FUNCTION = 2 };
	struct object_symbols symbols;
	bool stripped;

	if (!object_file_symbols(enter_now.object, &symbols, &stripped))
		return !stripped;
	for (size_t i = 1; i < symbols.count; i++) {
		const struct elf_symbol *symbol = &symbols.symbols[i];

		if ((symbol->info & 0xf) == FUNCTION && symbol->section && symbol->value &&
		    symbol->name < symbols.names_bytes)
			enter_find_symbol(symbol, symbols.names + symbol->name, symbols.debug);
	}
	object_file_forget(&symbols);
	return true;
}

// A family is an allocator if it can allocate and free. The usual names may be those of anything
// where they are not exported, unless there are all that an allocator has.
//
// For example, a program that is not static, with functions `malloc` and `free` of its own that are
// not exported, and no calloc or realloc, is left alone: it may be an arena, or a wrapper.
static bool enter_has(enum enter_family family)
{
	static const char *const begins[] = { "calloc", "realloc", "malloc", "free" };
	bool takes = false, gives = false, usual[4] = { false };

	for (uint32_t i = 0; i < enter_hooks_count(); i++) {
		const char *name = __start_entered[i].name;
		size_t length = text_length(name);

		if (!enter_now.at[i] || enter_now.twice[i] || !__start_entered[i].hook ||
		    enter_family_of(name) != family)
			continue;
		for (size_t u = 0; u < 4; u++)
			usual[u] |= text_equal(name, begins[u]);
		if (text_equal(name, "malloc") &&
		    (static_is() || enter_now.seen[i] == NOTE_SEEN_EXPORTED))
			return true;
		for (const char *at = name; at < name + length; at++) {
			gives |= text_after(at, "free") || text_after(at, "dalloc");
			takes |= text_after(at, "malloc") != NULL;
		}
	}
	if (family == ENTER_USUAL)
		return usual[2] && usual[3] && (usual[0] || usual[1]);
	return takes && gives;
}

// ---- Entering it --------------------------------------------------------------------------------

// Enter what the hook is for, unless that was done by another name of it.
//
// In 32 bits there is one real function for each hook, kept with it. In 64 bits the bridge puts it
// into a register (r9), so a hook can serve several allocators at once.
static void enter_one(uint32_t number)
{
	struct hook_entry *entry = &__start_entered[number];
	uint8_t *body = enter_body(enter_now.at[number]);
	const char *why = NULL;

	enter_now.moved[number] = enter_moved(body);
	enter_now.at[number] = body;
	if (!ENTER_PAGES_WIDE && entry->function)
		why = "is a second one of this name";
	else if (!enter_now.moved[number])
		why = enter_pages_move(&enter_now.place->pages, body, entry->hook, false,
				       &enter_now.moved[number]);
	if (why) {
		enter_refuse(entry->name, why);
		return;
	}
	enter_now.done++;
	enter_count++;
	if (!ENTER_PAGES_WIDE)
		entry->function = enter_now.moved[number];
}

// NULL: it is not known where the object ends.
static struct enter_object *enter_find_place(const struct scope_object *object)
{
	for (uint32_t i = 0; i < ENTER_OBJECTS_MAX; i++) {
		struct enter_object *place = &enter_objects[i];

		if (!place->object)
			return scope_span(object, &place->pages.start, &place->pages.end) ? place
											  : NULL;
	}
	return scope_span(object, &enter_none.pages.start, &enter_none.pages.end) ? &enter_none
										  : NULL;
}

// What the report calls the allocator. NULL: nothing is known but malloc's usual names.
static const char *enter_name(const bool *has)
{
	for (uint32_t i = 0; i < enter_hooks_count(); i++) {
		if (__start_entered + i == &enter_sign && enter_now.at[i])
			return "jemalloc";
		if (__start_entered + i == &enter_sign_tcmalloc && enter_now.at[i])
			return "tcmalloc";
	}
	return has[ENTER_MOZJEMALLOC] ? "mozjemalloc"
	       : has[ENTER_JEMALLOC]  ? "jemalloc"
	       : has[ENTER_TCMALLOC]  ? "tcmalloc"
	       : has[ENTER_MIMALLOC]  ? "mimalloc"
	       : has[ENTER_TBBMALLOC] ? "tbbmalloc"
	       : has[ENTER_RPMALLOC]  ? "rpmalloc"
				      : NULL;
}

// Whether a static program has none but malloc and its like, and no operators that do without.
static bool enter_is_plain(const bool *has)
{
	for (uint32_t family = 0; family < ENTER_FAMILIES; family++) {
		if (has[family] && family != ENTER_USUAL)
			return false;
	}
	return !enter_name(has);
}

// Where the function of that name is, if it is exported.
static const uint8_t *enter_exported(const char *name)
{
	uint32_t hook = enter_hook_of(name);

	return hook != UINT32_MAX && enter_now.seen[hook] == NOTE_SEEN_EXPORTED ? enter_now.at[hook]
										: NULL;
}

// Functions beside those that are exported, which allocate as they do. They have to be found before
// those are changed.
static void enter_find_unchecked(uint8_t *found[ENTER_TABLES])
{
	const struct enter_table exported = {
		enter_exported("malloc"),     enter_exported("calloc"),
		enter_exported("memalign"),   enter_exported("realloc"),
		enter_exported("free"),       scope_find(enter_now.object, "malloc_usable_size"),
		enter_now.place->pages.start, enter_now.place->pages.end,
	};

	memset(found, 0, ENTER_TABLES * sizeof(*found));
	if (ENTER_PAGES_WIDE && exported.malloc && exported.calloc && exported.memalign &&
	    exported.realloc && exported.free)
		enter_table_find(&exported, found);
}

// Some may be exported, too, by another name (nothrow new).
static void enter_unchecked(uint8_t *const found[ENTER_TABLES])
{
	static const char *const names[ENTER_TABLES] = {
		"malloc", "calloc", "realloc", "mi_malloc_aligned", "mi_realloc_aligned", "free",
	}; // of hooks with the same arguments

	for (uint32_t i = 0; i < ENTER_TABLES; i++) {
		struct hook_entry *entry = &__start_entered[enter_hook_of(names[i])];
		const char *why;
		uint8_t *moved;

		if (!found[i] || enter_moved(found[i]))
			continue;
		why = enter_pages_move(&enter_now.place->pages, found[i], entry->hook, false,
				       &moved);
		if (why)
			enter_refuse(names[i], why);
		else
			enter_count++;
	}
}

// Patch all that was found. Returns the best that says where it is (enum note_seen).
//
// What cannot be moved is refused one by one, and the others are entered all the same: enter_refuse
// says which.
static uint32_t enter_all(const bool *has)
{
	uint32_t seen = NOTE_SEEN_STRIPPED;
	uint8_t *unchecked[ENTER_TABLES];

	enter_find_unchecked(unchecked);
	enter_plain = static_is() && enter_is_plain(has);
	enter_pages_make(&enter_now.place->pages);
	for (uint32_t i = 0; i < enter_hooks_count(); i++) {
		struct hook_entry *entry = &__start_entered[i];

		if (!enter_now.at[i] || enter_now.twice[i] || !has[enter_family_of(entry->name)] ||
		    (enter_plain && text_after(entry->name, "_Z")))
			continue;
		if (enter_now.seen[i] < seen)
			seen = enter_now.seen[i];
		if (entry->hook)
			enter_one(i);
		else
			entry->function = entry->function ? NULL : enter_now.at[i];
	}
	enter_unchecked(unchecked);
	if (enter_now.place->pages.bytes)
		enter_pages_protect(&enter_now.place->pages, true);
	return seen;
}

// Whether it is its C library's allocator. What calls that from inside are its own functions: of
// glibc they are in one file, of musl in several.
static bool enter_is_libc(void)
{
	const void *taken = static_find("malloc", false);

	return taken && (taken == static_find("__libc_malloc", false) ||
			 static_find("__libc_malloc_impl", false));
}

// Where the allocator's own code is, so that what it calls itself is not counted once more
// (inside_linux.h). With __libc_setup_tls it is glibc, and all between the first and the last
// function is its malloc.
static void enter_add_inside(void)
{
	uintptr_t start = UINTPTR_MAX, end = 0;

	for (uint32_t i = 0; i < enter_hooks_count(); i++) {
		uintptr_t at = (uintptr_t)enter_now.at[i], bytes;

		if (!enter_now.moved[i])
			continue;
		bytes = static_size(at);
		start = at < start ? at : start;
		end = at + bytes > end ? at + bytes : end;
		if (!static_find("__libc_setup_tls", false))
			inside_add_code(at, bytes);
	}
	if (static_find("__libc_setup_tls", false) && start < end)
		inside_add_code(start, end - start);
}

// False: it is not known where it ends.
static bool enter_begin(const struct scope_object *object)
{
	memset(&enter_now, 0, sizeof(enter_now));
	enter_now.object = object;
	enter_now.place = enter_find_place(object);
	return enter_now.place;
}

// Of what there is no room for, the first is said by name.
static void enter_say_full(const struct scope_object *object, const char *what, const char *why,
			   bool *said)
{
	if (*said)
		return;
	*said = true;
	enter_now.object = object;
	enter_now.refused[0] = 0;
	enter_refuse(what, why);
	notes_message(NOTE_MESSAGE_UNSEEN, enter_now.refused);
	enter_now.refused[0] = 0;
}

// Look whether the object has an allocator that calls itself, and enter it. False: it is stripped.
static bool enter_look(const struct scope_object *object, bool exported)
{
	static bool said;
	bool has[ENTER_FAMILIES], any = false, named;

	if (!enter_begin(object))
		return true;
	if (exported)
		enter_find_exported();
	named = (inside_is_libc(object) && !static_is()) || enter_find_named();
	if (!named)
		enter_find_prefixed();
	for (uint32_t family = 0; family < ENTER_FAMILIES; family++)
		any |= has[family] = enter_has(family);
	if (object == scope_objects() && !has[ENTER_USUAL] && enter_now.at[enter_hook_of("malloc")])
		enter_refuse("malloc", "is there, but not free, and calloc or realloc");
	if (any && enter_now.place == &enter_none) {
		enter_say_full(object, "its allocator",
			       "is not entered, nor are others after it: there is room for 32, and "
			       "calls of these are not recorded",
			       &said);
	} else if (any) {
		enter_now.place->object = object;
		allocators_add(object, enter_all(has), enter_name(has));
	}
	if (enter_now.done && enter_plain && enter_is_libc())
		enter_add_inside();
	else if (enter_now.done)
		inside_add_entered(object);
	if (enter_now.refused[0])
		notes_message(NOTE_MESSAGE_ENTRIES, enter_now.refused);
	return any || named;
}

// The C library's malloc is found by name, and we come before it. Who asks that library itself
// (a plug-in that was opened with RTLD_DEEPBIND, dlsym with RTLD_NEXT or a handle) comes by its
// entries, and what came by name goes past them.
static void enter_libc(void)
{
	static const bool has[ENTER_FAMILIES] = { [ENTER_USUAL] = true };
	const struct scope_object *libc = scope_libc();

	if (!ENTER_PAGES_WIDE || static_is() || !libc ||
	    !scope_find(libc, "gnu_get_libc_version") || !enter_begin(libc))
		return;
	for (uint32_t i = 0; i < enter_hooks_count(); i++) {
		if (real_get(__start_entered[i].name))
			enter_now.at[i] = scope_find(libc, __start_entered[i].name);
	}
	inside_know_libc(libc);
	late_write_many(true);
	enter_all(has);
	late_write_many(false);
	for (uint32_t i = 0; i < enter_hooks_count(); i++) {
		void **real_one = real_get(__start_entered[i].name);

		if (real_one && enter_now.moved[i] && *real_one == enter_now.at[i])
			*real_one = enter_now.moved[i];
	}
	if (enter_now.refused[0])
		notes_message(NOTE_MESSAGE_ENTRIES, enter_now.refused);
}

// Who comes late is not found by name when the program sets itself a system-call filter, and must
// know of it before its next call: what sets one is entered in the C library.
static void enter_filters(void)
{
	const struct {
		const char *name;
		void *hook;
		void **real_one;
	} functions[] = { { "prctl", (void *)hook_vm_prctl, (void **)&real.prctl },
			  { "syscall", (void *)hook_vm_syscall, (void **)&real.syscall } };
	const struct scope_object *libc = scope_libc();

	if (static_is() || !libc || !enter_begin(libc))
		return;
	enter_pages_make(&enter_now.place->pages);
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		uint8_t *at = scope_find(libc, functions[i].name), *moved = NULL;
		const char *why = at ? enter_pages_move(&enter_now.place->pages, at,
							functions[i].hook, true, &moved)
				     : NULL;

		if (why)
			enter_refuse(functions[i].name, why);
		else if (at)
			*functions[i].real_one = moved;
	}
	if (enter_now.place->pages.bytes) {
		enter_now.place->object = libc;
		enter_pages_protect(&enter_now.place->pages, true);
	}
	if (enter_now.refused[0])
		notes_message(NOTE_MESSAGE_ENTRIES, enter_now.refused);
}

// True: it is new to us.
//
// An object is known by its link_map and its bias. After dlclose another one can get the same
// link_map, which its bias gives away; enter_unloaded spoils the bias, for the case that both are
// the same.
static bool enter_meet(const struct scope_object *object)
{
	static bool said;
	uint32_t at = (uint32_t)((uintptr_t)object >> 4) % ENTER_KNOWN_MAX;

	for (uint32_t i = 0; i < ENTER_KNOWN_MAX; i++, at = (at + 1) % ENTER_KNOWN_MAX) {
		if (enter_known[at].object == object) {
			bool same = enter_known[at].bias == object->bias;

			enter_known[at].bias = object->bias;
			return !same;
		}
		if (!enter_known[at].object) {
			enter_known[at].object = object;
			enter_known[at].bias = object->bias;
			return true;
		}
	}
	enter_say_full(object, "and libraries after it",
		       "are not looked at: 1,024 were loaded before, and calls of their own "
		       "allocators are not recorded",
		       &said);
	return false;
}

// Whether it is a sanitizer's, which itself calls its malloc for some of what it comes before
// (strndup, realpath).
static bool enter_is_sanitizer(const struct scope_object *object)
{
	return scope_find(object, "__sanitizer_print_stack_trace");
}

// Whether it exports an allocator by names of its own. Who opens it (libtbb opens libtbbmalloc)
// asks it for them by dlsym with a handle, and does not find us.
static bool enter_exports_named(const struct scope_object *object)
{
	static const char *const names[] = { "mallocx",   "je_malloc",       "tc_malloc",
					     "mi_malloc", "scalable_malloc", "rpmalloc" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (scope_find(object, names[i]))
			return true;
	}
	return false;
}

// A library that exports malloc is found by name, if others call it. What is not the first one, or
// calls itself all the same, is entered; calls that came by name count once (inside_linux.h).
static void enter_library(const struct scope_object *object)
{
	struct scope_object *first = NULL;

	if (object == scope_ourselves() || scope_is_linker(object) ||
	    scope_find(object, "gnu_get_libc_version"))
		return;
	if (!scope_find(object, "malloc"))
		enter_look(object, enter_exports_named(object));
	else if (scope_is_symbolic(object) || enter_is_sanitizer(object) ||
		 (scope_next("malloc", &first) && first != object))
		enter_look(object, true);
}

// In another namespace (dlmopen) we are not found: its C library is entered as well, also behind
// another library that has malloc, which may leave some functions to it.
static void enter_namespace(const struct scope_object *first)
{
	bool found = false;

	for (const struct scope_object *at = first; at; at = at->next) {
		bool defines = !scope_is_linker(at) && scope_find(at, "malloc");

		if (enter_meet(at)) {
			if (defines && (!found || scope_find(at, "gnu_get_libc_version")))
				enter_look(at, true);
			else
				enter_library(at);
			patch_loaded(at);
		}
		found |= defines;
	}
}

bool enter_function(const char *name, void *hook, void **real_one)
{
	uint8_t *at = scope_find(scope_objects(), name);
	uint8_t *moved = NULL;
	const char *why;

	if (!at || !enter_now.place || !enter_now.place->pages.bytes ||
	    !enter_pages_protect(&enter_now.place->pages, false))
		return false;
	at = enter_body(at);
	why = enter_pages_move(&enter_now.place->pages, at, hook, true, &moved);
	enter_pages_protect(&enter_now.place->pages, true);
	if (!why && real_one)
		*real_one = moved;
	return !why;
}

bool enter_skips_operators(void)
{
	return enter_plain;
}

uint32_t enter_functions(void)
{
	return enter_count;
}

// Of an allocator's calls inside of it that count.
static void enter_say_inside(void)
{
	static bool said;

	if (inside_full && !said)
		notes_message(NOTE_MESSAGE_OTHER,
			      "more than 256 libraries have allocators, or are needed by one: what "
			      "others ask for inside of an allocator's call counts as a call of "
			      "the program's");
	said = inside_full;
}

// The executable first, then what the linker has loaded with it, in its order.
void enter_start(void)
{
	const struct scope_object *program = scope_objects();
	struct scope_object *first = NULL;

	if (!program)
		return;
	if (enter_hooks_count() > ENTER_HOOKS_MAX) { // a mistake of ours
		notes_message(NOTE_MESSAGE_UNSEEN, "allocators are not entered: there are more "
						   "hooks than ENTER_HOOKS_MAX");
		return;
	}
	enter_hash_all();
	enter_started = true;
	if (enter_meet(program) && !enter_look(program, !static_is()) &&
	    allocators_may_hide(program))
		allocators_add(program, NOTE_SEEN_STRIPPED, "unknown");
	// Where we came late, we are not found by name either.
	if (late_is() && scope_next("malloc", &first) && enter_meet(first))
		enter_look(first, true);
	if (late_is())
		enter_filters();
	else
		enter_libc();
	language_heap_meet(program);
	enter_last = program;
	for (const struct scope_object *at = program->next; at; at = at->next) {
		if (enter_meet(at)) {
			enter_library(at);
			language_heap_meet(at);
		}
		enter_last = at;
	}
	for (const void *at = NULL; late_is() && (program = scope_next_namespace(&at));)
		enter_namespace(program);
	enter_say_inside();
}

// In 32 bits the C library's own functions are not entered. A library that binds to them, and not
// to what comes first (RTLD_DEEPBIND), is not seen, which is said once.
static void enter_look_for_deep(void)
{
	static const char *const names[] = { "malloc", "calloc", "realloc", "free" };
	static bool said;
	const struct scope_object *libc = scope_libc();

	if (late_is() || !enter_last || !libc || said)
		return;
	for (const struct scope_object *at = enter_last->next; at && !said; at = at->next) {
		for (size_t i = 0; i < sizeof(names) / sizeof(*names) && !said; i++) {
			const void *real_one = scope_find(libc, names[i]);

			said = real_one && scope_calls(at, names[i], real_one);
			if (!said)
				continue;
			enter_now.object = at;
			enter_now.refused[0] = 0;
			enter_refuse(names[i], "is the C library's own there (RTLD_DEEPBIND), and "
					       "in 32 bits calls of that are not recorded");
			notes_message(NOTE_MESSAGE_UNSEEN, enter_now.refused);
		}
	}
}

void enter_end(void)
{
	uint64_t signals;

	if (ENTER_PAGES_WIDE || !enter_last || !enter_last->next)
		return;
	signals = kernel_block_signals();
	recording_lock(&recording_state->enter_lock);
	enter_look_for_deep();
	recording_unlock(&recording_state->enter_lock);
	kernel_restore_signals(signals);
}

// It runs each time that the linker protects something, and mostly finds nothing new: then it costs
// a hash look-up for each object.
void enter_loaded(void)
{
	const struct scope_object *first;
	uint64_t signals;

	if (recording_phase() != RECORDING_ON || !enter_started)
		return;
	signals = kernel_block_signals();
	recording_lock(&recording_state->enter_lock);
	for (const struct scope_object *at = scope_objects(); at; at = at->next) {
		if (enter_meet(at)) {
			enter_library(at);
			language_heap_meet(at);
			patch_loaded(at);
		}
	}
	if (!ENTER_PAGES_WIDE)
		enter_look_for_deep();
	for (const void *at = NULL; (first = scope_next_namespace(&at));)
		enter_namespace(first);
	enter_say_inside();
	recording_unlock(&recording_state->enter_lock);
	kernel_restore_signals(signals);
}

// The object's trampolines go with it.
//
// The object's own code is about to be unmapped, so what was changed in it need not be put back.
static void enter_leave(struct enter_object *place)
{
	inside_remove(place->object);
	enter_pages_free(&place->pages);
	place->object = NULL;
}

void enter_unloaded(uintptr_t start, uintptr_t bytes)
{
	uint64_t signals;

	if (recording_phase() != RECORDING_ON || !enter_started)
		return;
	signals = kernel_block_signals();
	recording_lock(&recording_state->enter_lock);
	hook_python_unloaded(start, bytes);
	patch_unloaded(start, bytes);
	for (uint32_t i = 0; i < ENTER_OBJECTS_MAX; i++) {
		if (enter_objects[i].object && enter_objects[i].pages.start - start < bytes)
			enter_leave(&enter_objects[i]);
	}
	for (uint32_t i = 0; i < ENTER_KNOWN_MAX; i++) {
		if (enter_known[i].object && enter_known[i].bias - start < bytes)
			enter_known[i].bias = UINTPTR_MAX;
	}
	recording_unlock(&recording_state->enter_lock);
	kernel_restore_signals(signals);
}
