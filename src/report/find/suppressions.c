// A glob is compared without recursion: where a star was, it goes back there and lets the star
// have a letter more. For example a*bc with abbc: a fits, b fits, c is not b: so back, the star
// takes the first b, and bc is the rest. A pattern of LeakSanitizer's is a glob with a star at
// either end that ^ or $ does not close: foo is *foo*, ^foo$ is foo itself.
//
// Valgrind's lists are compared frame by frame from the innermost on; "..." stands for any number
// of frames, and is tried the same way as the star.
#include "report/find/suppressions.h"

#include "base/mem.h"
#include "base/str.h"
#include "report/ask/wrappers.h"
#include "symbols/demangle.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum part_kind { PART_FUNCTION, PART_OBJECT, PART_SOURCE, PART_ANY };

struct part {
	enum part_kind kind;
	char *glob;
	unsigned line; // of a source; 0: any
	// Of a mangled name with wildcards: what it begins with, readable; the glob is of what
	// follows. NULL: of all.
	char *prefix;
	char next; // after the prefix: '<', '(', ':' for whatever is no letter, 0 for anything
	// Of a mangled name that begins with a wildcard: what a readable one has in it. NULL: of
	// all others.
	const char *has;
};

// One of a list; which of both languages, `pattern` says.
struct suppression {
	char *name;    // "leak:foo", or what Valgrind's is called
	char *pattern; // LeakSanitizer's; NULL: it is Valgrind's
	struct part *parts;
	size_t parts_count, parts_capacity;
	unsigned states; // that it names, as for suppressions_match; 0: any
	const char *path;
	unsigned line;
	uint64_t blocks;
};

struct suppressions {
	struct suppression *list;
	size_t count, capacity;
	char **paths; // owned
	size_t paths_count, paths_capacity;
};

struct suppressions *suppressions_new(void)
{
	return mem_alloc(1, sizeof(struct suppressions));
}

// Frees what one has, for one of another tool that was read half way.
static void forget(struct suppression *each)
{
	for (size_t j = 0; j < each->parts_count; j++) {
		MEM_FREE(each->parts[j].glob, each->parts[j].prefix);
	}
	MEM_FREE(each->parts, each->name, each->pattern);
}

void suppressions_free(struct suppressions *suppressions)
{
	if (!suppressions)
		return;
	for (size_t i = 0; i < suppressions->count; i++) {
		struct suppression *each = &suppressions->list[i];

		forget(each);
	}
	for (size_t i = 0; i < suppressions->paths_count; i++)
		mem_free(suppressions->paths[i]);
	MEM_FREE(suppressions->list, suppressions->paths, suppressions);
}

// ---- patterns ----

// Whether all of the text is as the glob says.
static bool suppressions_is_glob(const char *glob, const char *text)
{
	const char *star = NULL, *again = NULL;

	while (*text) {
		if (*glob == '*') {
			star = ++glob;
			again = text;
		} else if (*glob == '?' || *glob == *text) {
			glob++;
			text++;
		} else if (star) {
			glob = star;
			text = ++again;
		} else {
			return false;
		}
	}
	while (*glob == '*')
		glob++;
	return !*glob;
}

// Whether the text has the pattern in it, as LeakSanitizer's.
static bool suppressions_fits(const char *pattern, const char *text)
{
	size_t length = strlen(pattern);
	bool begins = *pattern == '^';
	bool ends = length > begins && pattern[length - 1] == '$';
	struct str glob = { 0 };
	bool fits;

	if (!begins)
		str_add_char(&glob, '*');
	str_add_bytes(&glob, pattern + begins, length - begins - ends);
	if (!ends)
		str_add_char(&glob, '*');
	fits = *text && suppressions_is_glob(str_get(&glob), text);
	str_fini(&glob);
	return fits;
}

// ---- reading ----

// Valid until the next one is added. `path` is borrowed from the list of paths.
static struct suppression *add(struct suppressions *suppressions, const char *path, unsigned line)
{
	*MEM_ADD(suppressions->list, suppressions->count, suppressions->capacity) =
		(struct suppression){ .path = path, .line = line };
	return &suppressions->list[suppressions->count - 1];
}

// The beginning of a mangled name, up to its first wildcard: _ZN4base4Lazy* is base::Lazy and what
// is no letter, _ZN4base4La* base::La and anything, _ZN4base3fooEi* a base::foo with parameters and
// _ZN4base4LazyC* base::Lazy::Lazy; _Z* is any name that can be mangled, _ZN* one in a namespace or
// class. A star before it adds nothing.
static void read_mangled(struct part *part, const char *glob)
{
	const char *start = glob + strspn(glob, "*"), *wild = strpbrk(start, "*?"), *at = start + 2;
	struct str prefix = { 0 };
	const char *last = NULL;
	size_t last_length = 0;
	bool whole = true, member = false; // names so far; behind them C or D

	if (!wild || strncmp(start, "_Z", 2) != 0)
		return;
	at += *at == 'L';
	if (*at == 'N')
		at += 1 + strspn(at + 1, "KVrRO");
	if (strncmp(at, "St", 2) == 0) {
		str_add(&prefix, "std");
		at += 2;
	}
	while (at < wild && *at >= '1' && *at <= '9' && whole) {
		char *name;
		size_t length = strtoul(at, &name, 10), left = (size_t)(wild - name);

		whole = length <= left && length > 0;
		if (prefix.length)
			str_add(&prefix, "::");
		last = name;
		last_length = whole ? length : left;
		if (strncmp(name, "_GLOBAL__N_1", last_length) == 0 && last_length == 12)
			str_add(&prefix, "(anonymous namespace)");
		else
			str_add_bytes(&prefix, name, last_length);
		at = name + last_length;
	}
	if (!prefix.length) {
		if (at == wild) {
			part->has = memchr(start, 'N', (size_t)(wild - start)) ? "::" : "(";
			part->glob = mem_copy_text(wild);
		}
		return;
	}
	if (last && whole && (*at == 'C' || *at == 'D')) { // what makes one, and what ends it
		member = true;
		str_add(&prefix, *at == 'C' ? "::" : "::~");
		str_add_bytes(&prefix, last, last_length);
	}
	part->prefix = str_take(&prefix);
	part->next = !whole ? '\0' : *at == 'I' ? '<' : *at == 'E' || member ? '(' : ':';
	part->glob = mem_copy_text(member ? "*" : wild);
}

// A name without wildcards is demangled whole and compared as text; one with them as far as it
// goes.
static void add_part(struct suppression *suppression, enum part_kind kind, const char *glob)
{
	struct part part = { .kind = kind };
	char *colon;

	ASSERT(kind <= PART_ANY && glob);
	if (kind == PART_FUNCTION && strpbrk(glob, "*?"))
		read_mangled(&part, glob);
	else if (kind == PART_FUNCTION)
		part.glob = demangle(glob);
	if (!part.glob)
		part.glob = mem_copy_text(glob);
	colon = strrchr(part.glob, ':');
	if (kind == PART_SOURCE && colon) {
		part.line = (unsigned)strtoul(colon + 1, NULL, 10);
		*colon = '\0';
	}
	*MEM_ADD(suppression->parts, suppression->parts_count, suppression->parts_capacity) = part;
}

// Where reading is: a line without the blanks around it.
struct cursor {
	const char *text, *path;
	unsigned number;
	char line[1024];
};

// Blank lines and comments are passed over. A line that is too long is cut: what is kept decides.
static bool next_line(struct cursor *cursor)
{
	while (*cursor->text) {
		size_t length = strcspn(cursor->text, "\n");
		const char *from = cursor->text;
		size_t kept = length;

		cursor->text += length + (cursor->text[length] == '\n');
		cursor->number++;
		while (kept && strchr(" \t\r", *from)) {
			from++;
			kept--;
		}
		while (kept && strchr(" \t\r", from[kept - 1]))
			kept--;
		if (!kept || *from == '#')
			continue;
		if (kept >= sizeof cursor->line)
			kept = sizeof cursor->line - 1;
		memcpy(cursor->line, from, kept);
		cursor->line[kept] = '\0';
		return true;
	}
	return false;
}

// Says where, and returns false.
static bool is_wrong(const struct cursor *cursor, const char *what, struct err *err)
{
	return err_set(err, ERR_USAGE, "%s: line %u: %s", cursor->path, cursor->number, what);
}

// What is behind match-leak-kinds: "definite, indirect". Valgrind's "none" is a state that no block
// has, so that the suppression is never used.
static bool take_kinds(struct suppression *suppression, const char *text)
{
	static const struct {
		const char *name;
		unsigned states;
	} kinds[] = {
		{ "definite", 1u << TRACE_REACH_UNREACHABLE },
		{ "indirect", 1u << TRACE_REACH_HELD },
		{ "possible", 1u << TRACE_REACH_INSIDE },
		{ "reachable", 1u << TRACE_REACH_REACHABLE },
		{ "all", SUPPRESSIONS_ALL },
		{ "none", 1u << TRACE_REACH_STATES_COUNT }, // which no block is in
	};
	size_t length, i;

	suppression->states = 0;
	for (text += strspn(text, ", \t"); *text; text += strspn(text, ", \t")) {
		length = strcspn(text, ", \t");
		for (i = 0; i < sizeof kinds / sizeof *kinds; i++)
			if (strlen(kinds[i].name) == length &&
			    memcmp(kinds[i].name, text, length) == 0)
				break;
		if (i == sizeof kinds / sizeof *kinds)
			return false;
		suppression->states |= kinds[i].states;
		text += length;
	}
	return suppression->states != 0;
}

// A line of one of Valgrind's: a frame, any frames ("..."), or the kinds of leaks. False: it is
// none of these.
static bool take_part(struct suppression *suppression, const char *line)
{
	static const char kinds[] = "match-leak-kinds:";

	if (strcmp(line, "...") == 0)
		add_part(suppression, PART_ANY, "");
	else if (strncmp(line, "fun:", 4) == 0)
		add_part(suppression, PART_FUNCTION, line + 4);
	else if (strncmp(line, "obj:", 4) == 0)
		add_part(suppression, PART_OBJECT, line + 4);
	else if (strncmp(line, "src:", 4) == 0)
		add_part(suppression, PART_SOURCE, line + 4);
	else
		return strncmp(line, kinds, strlen(kinds)) == 0 &&
		       take_kinds(suppression, line + strlen(kinds));
	return true;
}

// Behind a "{": a name, then the tool and kind, then frames up to "}". One of another tool is read
// to its end and dropped, since its lines may be anything.
static bool read_valgrind(struct suppressions *suppressions, struct cursor *cursor, struct err *err)
{
	struct suppression *suppression = add(suppressions, cursor->path, cursor->number);
	bool ours;

	if (!next_line(cursor))
		return is_wrong(cursor, "the suppression has no end", err);
	suppression->name = mem_copy_text(cursor->line);
	if (!next_line(cursor))
		return is_wrong(cursor, "the suppression has no end", err);
	ours = strstr(cursor->line, "Memcheck:Leak") != NULL;
	if (!ours && !strchr(cursor->line, ':'))
		return is_wrong(cursor, "a tool and a kind were expected (Memcheck:Leak)", err);
	while (next_line(cursor)) {
		if (strcmp(cursor->line, "}") == 0) {
			if (!ours)
				forget(&suppressions->list[--suppressions->count]);
			return true;
		}
		if (ours && !take_part(suppression, cursor->line))
			return is_wrong(cursor,
					"fun:, obj:, src:, ..., } or match-leak-kinds: (definite, "
					"indirect, possible, reachable, all, none) was expected",
					err);
	}
	return is_wrong(cursor, "the suppression has no end", err);
}

// Lines of other kinds of LeakSanitizer's files ("race:", "thread:") are none of ours.
static bool read_line(struct suppressions *suppressions, const struct cursor *cursor,
		      struct err *err)
{
	const char *colon = strchr(cursor->line, ':');
	struct suppression *suppression;

	if (!colon || colon == cursor->line || !colon[1])
		return is_wrong(cursor, "leak:PATTERN or { was expected", err);
	if (strncmp(cursor->line, "leak:", 5) != 0)
		return true;
	suppression = add(suppressions, cursor->path, cursor->number);
	suppression->name = mem_copy_text(cursor->line);
	suppression->pattern = mem_copy_text(colon + 1);
	return true;
}

// What was read before a mistake stays; the caller gives up then.
bool suppressions_add(struct suppressions *suppressions, const char *path, const char *text,
		      struct err *err)
{
	struct cursor cursor = { .text = text };

	MEM_ROOM(suppressions->paths, suppressions->paths_capacity, suppressions->paths_count + 1);
	cursor.path = suppressions->paths[suppressions->paths_count++] = mem_copy_text(path);
	while (next_line(&cursor))
		if (strcmp(cursor.line, "{") == 0 ? !read_valgrind(suppressions, &cursor, err)
						  : !read_line(suppressions, &cursor, err))
			return false;
	return true;
}

// ---- matching ----

// Is it operator new, called for a caller? In stacks of the sanitizer it is its own, and in
// Valgrind's that one's; in ours libstdc++'s, where leak:libstdc++ would name all that C++
// allocates.
static bool is_operator_new(const struct names_stack *stack, size_t line)
{
	return line < stack->inner &&
	       wrappers_match_pattern("operator new*", stack->lines[line].symbol->function);
}

// As LeakSanitizer has it: a pattern is held against function, file and module of every frame.
static bool fits_any(const struct suppression *suppression, const struct names_stack *stack)
{
	for (size_t i = 0; i < stack->count; i++) {
		const struct symbol *symbol = stack->lines[i].symbol;

		if ((symbol->function &&
		     suppressions_fits(suppression->pattern, symbol->function)) ||
		    (!is_operator_new(stack, i) &&
		     ((symbol->file && suppressions_fits(suppression->pattern, symbol->file)) ||
		      suppressions_fits(suppression->pattern, symbol->module))))
			return true;
	}
	return false;
}

// A readable name may have a type before it: "long *base::make<long>(long)".
static bool is_function(const struct part *part, const char *function)
{
	size_t length = part->prefix ? strlen(part->prefix) : 0;

	if (!part->prefix)
		return (!part->has || strstr(function, part->has) || strstr(function, "::")) &&
		       suppressions_is_glob(part->glob, function);
	for (const char *at = function; (at = strstr(at, part->prefix)); at++) {
		const char *after = at + length;
		bool next = part->next == ':'   ? !isalnum((unsigned char)*after) && *after != '_'
			    : part->next == '(' ? *after == '(' || *after == '\0'
						: !part->next || *after == part->next;

		if ((at == function || strchr(" *&", at[-1])) && next &&
		    suppressions_is_glob(part->glob, after))
			return true;
	}
	return false;
}

// A source is compared with and without its folders, as Valgrind knows only the file's name.
static bool is_part(const struct part *part, const struct names_stack *stack, size_t line)
{
	const struct symbol *symbol = stack->lines[line].symbol;

	if (part->kind != PART_FUNCTION && is_operator_new(stack, line))
		return false;
	switch (part->kind) {
	case PART_FUNCTION:
		return symbol->function && is_function(part, symbol->function);
	case PART_OBJECT:
		return suppressions_is_glob(part->glob, symbol->module);
	case PART_SOURCE:
		return symbol->file && (!part->line || part->line == symbol->line) &&
		       (suppressions_is_glob(part->glob, symbol->file) ||
			suppressions_is_glob(part->glob, str_last_part(symbol->file)));
	default:
		return true;
	}
}

// Parts from `part` on are the innermost frames from `line` on; "..." any number of them. It is the
// same as for a glob: after "..." a frame that does not fit lets it take one more frame.
static bool is_stack(const struct suppression *suppression, size_t part,
		     const struct names_stack *stack, size_t line)
{
	size_t any = SIZE_MAX, again = 0;

	ASSERT(part <= suppression->parts_count);
	while (part < suppression->parts_count) {
		const struct part *now = &suppression->parts[part];

		if (now->kind == PART_ANY) {
			any = ++part;
			again = line;
		} else if (line < stack->count && is_part(now, stack, line)) {
			part++;
			line++;
		} else if (any != SIZE_MAX && again < stack->count) {
			part = any;
			line = ++again;
		} else {
			return false;
		}
	}
	return true;
}

// Whether the part names the allocator's function, which stands on no stack of ours.
static bool is_the_call(const struct part *part)
{
	static const char *const names[] = {
		"malloc",
		"calloc",
		"realloc",
		"memalign",
		"posix_memalign",
		"aligned_alloc",
		"valloc",
		"_Znwm",
		"_Znam",
		"_Znwj",
		"_Znaj",
		"operator new(unsigned long)",
		"operator new[](unsigned long)",
		"operator new(unsigned int)",
		"operator new[](unsigned int)",
	};

	if (part->kind != PART_FUNCTION)
		return false;
	for (size_t i = 0; i < sizeof names / sizeof *names && !part->prefix; i++)
		if (is_function(part, names[i]))
			return true;
	return false;
}

// With a first line for malloc, frames may also begin at the program's own: Valgrind's stack has
// the wrappers that ours passes over.
const char *suppressions_match(struct suppressions *suppressions, const struct names_stack *stack,
			       unsigned states, uint64_t blocks)
{
	ASSERT(states != 0);
	for (size_t i = 0; i < suppressions->count; i++) {
		struct suppression *each = &suppressions->list[i];
		bool fits = each->pattern ? fits_any(each, stack) : is_stack(each, 0, stack, 0);

		if (each->states && !(each->states & states))
			continue;
		if (!fits && !each->pattern && each->parts_count && is_the_call(&each->parts[0]))
			fits = is_stack(each, 1, stack, 0) ||
			       is_stack(each, 1, stack, stack->inner) ||
			       is_stack(each, 1, stack, stack->user);
		if (!fits)
			continue;
		each->blocks += blocks;
		return each->name;
	}
	return NULL;
}

const char *suppressions_unused(const struct suppressions *suppressions, size_t *at,
				const char **path, unsigned *line)
{
	while (*at < suppressions->count) {
		const struct suppression *each = &suppressions->list[(*at)++];

		if (each->blocks)
			continue;
		*path = each->path;
		*line = each->line;
		return each->name;
	}
	return NULL;
}
