// A frame's names are looked for once, and kept by its number: a trace of 700,000 stacks has some
// 50,000 frames, and each is on hundreds of stacks. What is asked first is what the trace itself
// says (an imported recording, a function of Python), then the symbols; what is known nowhere is
// its module and its offset there, for which one symbol without a function is made.
//
// For example, frame 12 is 0x55d0c0de1234 in ./app, which is mapped with a bias of
// 0x55d0c0de0000. The symbols say that `copy` is inlined into `parse` there: two lines, `copy`
// (inlined) and `parse`. Without symbols it is one line, app+0x1234.
#include "report/ask/names.h"

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "report/ask/inferred.h"
#include "report/ask/script_place.h"
#include "report/ask/wrappers.h"
#include "trace/defs.h"

#include <inttypes.h>
#include <string.h>

enum {
	WRAPPERS_KNOWN = 32,
	TITLE_MAX = 48, // of a process, in a row
};

// What a frame is for names_user.
enum kind {
	KIND_NATIVE,  // the program's, or a library's
	KIND_RUNTIME, // of a runtime of JavaScript, or generated code without a line, or wrappers
	KIND_LIBRARY, // a script of the runtime's own
	KIND_SCRIPT,
};

// What was found for a frame: ours or the symbols'.
struct found {
	const struct symbol *symbols;
	struct names_text *json; // of each; NULL: of no stack yet
	uint32_t count;
	uint32_t wrappers; // which of the first WRAPPERS_KNOWN allocate on behalf of their callers
	enum kind kind;
};

struct names {
	const struct reader *reader;
	struct symbols *symbols;
	struct inferred *inferred;
	struct arena arena;   // of symbols
	struct found *frames; // by frame id
	size_t frames_count;
	struct found nobody; // for id 0
	struct symbol face;  // the last that was asked for
	struct names_line *lines;
	size_t lines_capacity;
	stack_id last; // whose lines these are; 0: of none
	struct names_stack last_stack;
	size_t kept; // bytes of `arena` that names_keep took
	struct script_place place;
};

struct names *names_new(const struct reader *reader, struct symbols *symbols)
{
	struct names *names = mem_alloc(1, sizeof *names);

	names->reader = reader;
	names->symbols = symbols;
	names->inferred = inferred_new(reader);
	return names;
}

void names_free(struct names *names)
{
	if (!names)
		return;
	arena_fini(&names->arena);
	inferred_free(names->inferred);
	MEM_FREE(names->frames, names->lines, names);
}

// A symbol without a function: the file and the offset in it. `bias` is what the loader added to
// the file's own addresses. A frame of a source line has no address, so none is shown.
static struct symbol place_of(const struct names *names, const struct trace_frame *frame)
{
	const struct trace_module *module = NULL;
	struct symbol symbol = { .module = "" };

	if (!frame)
		return symbol;
	module = reader_module(names->reader, frame->module);
	symbol.offset = frame->flags & TRACE_FRAME_SOURCE ? 0 : frame->pc;
	if (module) {
		symbol.module = module->path;
		symbol.offset = frame->pc - module->bias;
	}
	return symbol;
}

// The names that the trace itself gives. Empty texts mean not known, and become NULL, as the
// symbols give them. All but the last are inlined. A script's file is the module of its functions:
// they are mapped from no other.
static struct found from_trace(struct names *names, const struct trace_frame *frame,
			       const struct trace_name *given, size_t count)
{
	struct symbol *symbols = arena_take(&names->arena, count * sizeof *symbols);

	for (size_t i = 0; i < count; i++) {
		symbols[i] = place_of(names, frame);
		symbols[i].function = *given[i].function ? given[i].function : NULL;
		symbols[i].file = *given[i].file ? given[i].file : NULL;
		symbols[i].line = given[i].line;
		if (frame->module == 0 && symbols[i].file) {
			symbols[i].module = symbols[i].file;
			symbols[i].offset = 0; // an address says nothing of a script
		}
		symbols[i].inlined = i + 1 < count;
	}
	return (struct found){ .symbols = symbols, .count = (uint32_t)count };
}

// The three sources in their order. Lives as long as the names do. A frame of no module has no
// name: generated code of which no list was there.
static struct found ask(struct names *names, frame_id id)
{
	const struct trace_frame *frame = reader_frame(names->reader, id);
	const struct trace_name *given;
	const struct symbol *symbols;
	struct symbol *symbol;
	size_t count = 0;

	given = frame ? reader_frame_names(names->reader, id, &count) : NULL;
	if (given && count > 0)
		return from_trace(names, frame, given, count);
	if (names->symbols && frame && frame->module != 0) {
		symbols = symbols_find(names->symbols, id, &count);
		return (struct found){ .symbols = symbols, .count = (uint32_t)count };
	}
	symbol = arena_take(&names->arena, sizeof *symbol);
	*symbol = place_of(names, frame);
	return (struct found){ .symbols = symbol, .count = 1 };
}

bool names_nobody_knows(const struct names *names, frame_id id, struct symbol *place)
{
	const struct trace_frame *frame = reader_frame(names->reader, id);
	size_t count = 0;

	if (!frame || frame->module != 0 ||
	    (reader_frame_names(names->reader, id, &count) && count > 0))
		return false;
	*place = place_of(names, frame);
	return true;
}

bool names_is_named(const struct symbol *symbol)
{
	return symbol->function && !strstr(symbol->function, "!sub_");
}

bool names_is_script(const struct symbol *symbol)
{
	return symbol->file && symbol->file == symbol->module;
}

bool names_is_for_many(const char *function)
{
	static const char *const brackets[] = { "<>", "()", "{}" };
	size_t length = strlen(function);

	for (size_t i = 0; i < sizeof brackets / sizeof *brackets; i++)
		if (length > 2 && function[0] == brackets[i][0] &&
		    strchr(function, brackets[i][1]) == function + length - 1)
			return true;
	return false;
}

// What a program has written over its arguments (setproctitle) is no path, whatever paths are in
// it: "sshd: /usr/sbin/sshd -D [listener]", "/usr/lib/chromium/chromium --type=gpu --dir=/tmp".
const char *names_process_word(const struct trace_process *process)
{
	const char *exe = process->exe, *text = process->title;
	size_t length = strlen(exe), before;

	if (!text && process->args_count == 0)
		return str_last_part(exe);
	text = text ? text : process->args[0];
	before = strcspn(text, " ");
	if (length > 0 && strncmp(text, exe, length) == 0)
		return text + (str_last_part(exe) - exe);
	return text[before] && strcspn(text, "/\\") > before ? text : str_last_part(text);
}

// Not within a character of several bytes (UTF-8).
void names_add_process(const struct trace_process *process, struct str *text)
{
	const char *word = process->title ? names_process_word(process) : defs_program(process);
	size_t length = strnlen(word, TITLE_MAX);

	while (length > 0 && ((unsigned char)word[length] & 0xc0) == 0x80)
		length--;
	str_add_bytes(text, word, length);
	if (word[length])
		str_add(text, "…");
}

void names_add_place(struct names *names, const struct symbol *symbol, struct str *text)
{
	str_add(text, names_is_script(symbol)
			      ? script_place_of(&names->place, names->reader, symbol->file)
			      : str_last_part(symbol->module));
}

bool names_is_wrapper(const struct symbol *symbol)
{
	return wrappers_match(symbol->function) ||
	       wrappers_match_module(symbol->module, names_is_named(symbol)) ||
	       (symbol->file && wrappers_match_source(symbol->file));
}

bool names_passes_on(struct names *names, frame_id frame, const struct symbol *symbol)
{
	return names_is_wrapper(symbol) ||
	       (!symbol->function && inferred_match(names->inferred, frame));
}

// From the end back: digits, then "0x", then a blank or the beginning. "work 0x12" has 4
// characters that are its name, "0x12" none, "matrix0x12" all ten.
size_t names_without_address(const char *function)
{
	size_t length = strlen(function), at = length;

	while (at > 0 && str_hex_digit(function[at - 1]) >= 0)
		at--;
	if (at == length || at < 2 || function[at - 1] != 'x' || function[at - 2] != '0' ||
	    (at > 2 && function[at - 3] != ' '))
		return length;
	return at > 2 ? at - 3 : 0;
}

// A name that is only an address of an imported recording is none.
static bool is_named(const struct symbol *symbol)
{
	return symbol->function && !symbol->function[names_without_address(symbol->function)];
}

bool names_is_root(const struct symbol *symbol)
{
	return wrappers_match_root(symbol->function) ||
	       (!names_is_named(symbol) && wrappers_match_module(symbol->module, false));
}

// Of a frame with more inlined functions than the mask has bits, the others are compared each time.
static bool found_wrapper(const struct found *found, size_t i)
{
	return i < WRAPPERS_KNOWN ? found->wrappers >> i & 1 : names_is_wrapper(&found->symbols[i]);
}

// The same, with what is known by who calls it (inferred.h).
static bool line_wraps(struct names *names, frame_id frame, const struct found *found, size_t i)
{
	return found_wrapper(found, i) ||
	       (!found->symbols[i].function && inferred_match(names->inferred, frame));
}

// Generated code is in no module; what its runtime wrote down for perf has a name, and for
// functions of a script a file and a line.
static enum kind kind_of(const struct names *names, frame_id id, const struct found *found)
{
	const struct trace_frame *frame = reader_frame(names->reader, id);
	const struct symbol *symbol = &found->symbols[found->count - 1];

	if (frame && frame->module == 0) {
		if (!symbol->function || !symbol->file || !symbol->line)
			return KIND_RUNTIME;
		return wrappers_match_runtime_script(symbol->file) ? KIND_LIBRARY : KIND_SCRIPT;
	}
	for (size_t i = 0; i < found->count; i++)
		if (!found_wrapper(found, i) &&
		    !wrappers_match_runtime(found->symbols[i].module, found->symbols[i].function))
			return KIND_NATIVE;
	return KIND_RUNTIME;
}

// Whether an unnamed function belongs to the wrapper of the same file that calls it: palloc of a
// PostgreSQL without symbols calls such a one before malloc.
static bool is_inner(const struct symbol *symbol, const struct symbol *caller)
{
	return !symbol->function && wrappers_match_outer(caller->function) &&
	       strcmp(symbol->module, caller->module) == 0;
}

// Another unnamed function of the same file, between `symbol` and what may be its wrapper.
static bool is_inner_too(const struct symbol *symbol, const struct symbol *caller)
{
	return !symbol->function && !caller->function &&
	       strcmp(symbol->module, caller->module) == 0;
}

// How many lines from `line` on, of `count`, are inner functions of a wrapper.
static size_t inner_lines(const struct names_line *lines, size_t line, size_t count)
{
	size_t end = line + 1;

	ASSERT(line < count);
	while (end < count && is_inner_too(lines[line].symbol, lines[end].symbol))
		end++;
	return end < count && is_inner(lines[line].symbol, lines[end].symbol) ? end - line : 0;
}

// An attached trace grows while it is read, and frames with it; ids keep their places. Those of a
// trace that does not grow are touched only where one is asked for.
static void grow_frames(struct names *names)
{
	size_t count = reader_frames_count(names->reader);

	if (!names->frames) {
		names->frames = mem_alloc(count, sizeof *names->frames);
		names->frames_count = count;
		return;
	}
	names->frames = mem_resize(names->frames, count, sizeof *names->frames);
	memset(names->frames + names->frames_count, 0,
	       (count - names->frames_count) * sizeof *names->frames);
	names->frames_count = count;
}

// The slot of a frame, filled when it is first asked for. Valid until frames are added to the
// trace.
static struct found *find(struct names *names, frame_id frame)
{
	struct found *found = &names->nobody;

	if (frame != 0 && frame < reader_frames_count(names->reader)) {
		if (frame >= names->frames_count)
			grow_frames(names);
		found = &names->frames[frame];
	}
	if (found->symbols)
		return found;
	*found = ask(names, frame);
	for (size_t i = 0; i < found->count && i < WRAPPERS_KNOWN; i++)
		found->wrappers |= (uint32_t)names_is_wrapper(&found->symbols[i]) << i;
	found->kind = kind_of(names, frame, found);
	return found;
}

// Of code that cannot have a name nothing is kept.
static enum kind find_kind(struct names *names, frame_id frame)
{
	struct symbol place;

	return names_nobody_knows(names, frame, &place) ? KIND_RUNTIME : find(names, frame)->kind;
}

// The caller of a stack. Parents have lower ids than their stacks, which a damaged trace may not
// keep: a parent that is not lower ends the walk.
static stack_id caller_of(const struct names *names, stack_id stack)
{
	const struct trace_stack *node = reader_stack(names->reader, stack);
	stack_id caller = node && node->parent < stack ? node->parent : 0;

	return reader_stack(names->reader, caller) ? caller : 0;
}

// Python's own code, which calls an extension's.
static bool is_interpreter(const struct symbol *symbol)
{
	const char *file = str_last_part(symbol->module);

	ASSERT(file >= symbol->module);
	return strncmp(file, "libpython", 9) == 0 || strncmp(file, "python", 6) == 0;
}

// The script that called an extension without names (numpy's), whose offsets say nothing. One that
// is called by code with a name, of whatever is not the interpreter's, stays.
static stack_id script_above(struct names *names, stack_id stack)
{
	for (stack_id at = stack; at; at = caller_of(names, at)) {
		frame_id id = reader_stack(names->reader, at)->frame;
		const struct trace_frame *frame = reader_frame(names->reader, id);
		const struct found *found;

		if (frame && frame->flags & TRACE_FRAME_SOURCE &&
		    find_kind(names, id) == KIND_SCRIPT)
			return at;
		if (!frame || frame->module == 0)
			break;
		found = find(names, id);
		for (size_t i = 0; i < found->count; i++)
			if (names_is_named(&found->symbols[i]) &&
			    (at == stack || !is_interpreter(&found->symbols[i])))
				return stack;
	}
	return stack;
}

// What is of a runtime is passed over, and its own scripts with it, to the first that is not. That
// is whom it is of: a script's function, or one of an addon that a script called. Where it is
// neither (main of the program), it is of the innermost of the runtime's own scripts.
stack_id names_user(struct names *names, stack_id stack)
{
	const struct trace_stack *node = reader_stack(names->reader, stack);
	const struct trace_frame *frame = node ? reader_frame(names->reader, node->frame) : NULL;
	stack_id library = 0, native = 0;

	if (!frame || frame->module == 0)
		return stack;
	if (find(names, node->frame)->kind == KIND_NATIVE)
		return script_above(names, stack);
	for (stack_id at = caller_of(names, stack); at; at = caller_of(names, at)) {
		enum kind kind = find_kind(names, reader_stack(names->reader, at)->frame);

		if (native && kind >= KIND_LIBRARY)
			return native;
		if (kind == KIND_SCRIPT)
			return at;
		if (kind == KIND_LIBRARY && !library)
			library = at;
		if (kind == KIND_NATIVE && !native)
			native = at;
	}
	return library ? library : stack;
}

const struct symbol *names_find(struct names *names, frame_id frame, size_t *count)
{
	const struct found *found = find(names, frame);

	*count = found->count;
	return found->symbols;
}

// Which line of a stack is the first of `to`, one of its callers, that is no wrapper.
static size_t line_of(struct names *names, stack_id stack, stack_id to)
{
	size_t line = 0;
	const struct found *found;

	for (stack_id at = stack; at != to; at = caller_of(names, at))
		line += find(names, reader_stack(names->reader, at)->frame)->count;
	found = find(names, reader_stack(names->reader, to)->frame);
	for (size_t i = 0; i < found->count; i++)
		if (!line_wraps(names, reader_stack(names->reader, to)->frame, found, i))
			return line + i;
	return line;
}

// Line `inner`, or the one that stands for it (names_user).
static size_t user_line(struct names *names, stack_id stack, size_t inner)
{
	size_t lines = 0;

	for (stack_id at = stack; at; at = caller_of(names, at)) {
		stack_id user;

		lines += find(names, reader_stack(names->reader, at)->frame)->count;
		if (lines <= inner)
			continue;
		user = names_user(names, at);
		return user == at ? inner : line_of(names, stack, user);
	}
	return inner;
}

// One list of lines is used for all stacks, so the last call's is overwritten.
struct names_stack names_stack(struct names *names, stack_id stack)
{
	struct names_stack result = { .names = names };
	stack_id id = stack;

	ASSERT(names->reader);
	// Who has written a stack asks once more whose it is. Its lines are still there: the names
	// of frames never change once they were found, and each other stack that is asked for
	// comes by here.
	if (stack && stack == names->last)
		return names->last_stack;
	names->last = 0;
	while (id) {
		const struct trace_stack *node = reader_stack(names->reader, id);
		struct found *found;

		if (!node)
			break;
		found = find(names, node->frame);
		if (!found->json)
			found->json = arena_take(&names->arena, found->count * sizeof *found->json);
		MEM_ROOM(names->lines, names->lines_capacity, result.count + found->count);
		for (size_t i = 0; i < found->count; i++)
			names->lines[result.count++] = (struct names_line){
				.symbol = &found->symbols[i],
				.json = &found->json[i],
				.wrapper = line_wraps(names, node->frame, found, i),
			};
		result.flags |= node->flags;
		id = caller_of(names, id);
	}
	result.lines = names->lines;
	while (result.inner < result.count) {
		size_t lines = names->lines[result.inner].wrapper
				       ? 1
				       : inner_lines(names->lines, result.inner, result.count);

		if (!lines)
			break;
		result.inner += lines;
	}
	if (result.inner == result.count)
		result.inner = 0;
	result.user = result.count ? user_line(names, stack, result.inner) : 0;
	// _start, of a program without its symbols.
	if (result.user + 2 < result.count && !is_named(names->lines[result.count - 1].symbol))
		result.roots = wrappers_match_root(names->lines[result.count - 2].symbol->function);
	while (result.user + result.roots + 1 < result.count &&
	       names_is_root(names->lines[result.count - 1 - result.roots].symbol))
		result.roots++;
	names->last = stack;
	names->last_stack = result;
	return result;
}

void names_keep(const struct names_stack *stack, size_t line, const char *text, size_t length)
{
	enum { KEPT_MAX = 16 << 20 };
	struct names *names = stack->names;
	char *copy;

	ASSERT(line < stack->count && !stack->lines[line].json->text);
	if (length > KEPT_MAX - names->kept)
		return;
	copy = arena_take(&names->arena, length + 1);
	memcpy(copy, text, length);
	names->kept += length;
	*stack->lines[line].json = (struct names_text){ copy, length };
}

// A frame that can have no name is not kept, since there may be a million of them: what stands for
// it is made each time, in `place`. A wrapper it cannot be.
static struct found find_or_make(struct names *names, frame_id frame, struct symbol *place)
{
	if (names_nobody_knows(names, frame, place))
		return (struct found){ .symbols = place, .count = 1 };
	return *find(names, frame);
}

// As names_face, but for names_user: `at` becomes the part of the stack that begins with it, 0 if
// it is a wrapper.
static const struct symbol *find_face(struct names *names, stack_id stack, bool innermost,
				      stack_id *at)
{
	bool any = false, waits = false; // what could be a wrapper's waits for its caller
	struct symbol first = { 0 }, unnamed = { 0 }, place;

	*at = 0;
	for (stack_id id = stack; id; id = caller_of(names, id)) {
		const struct trace_stack *node = reader_stack(names->reader, id);
		struct found found;

		if (!node)
			break;
		found = find_or_make(names, node->frame, &place);
		if (!any)
			first = *found.symbols;
		any = true;
		for (size_t i = 0; i < found.count; i++) {
			const struct symbol *symbol = &found.symbols[i];

			if (waits && is_inner_too(&unnamed, symbol))
				continue;
			if (waits && !is_inner(&unnamed, symbol)) {
				names->face = unnamed;
				return &names->face;
			}
			waits = false;
			if (line_wraps(names, node->frame, &found, i) && !innermost)
				continue;
			names->face = *symbol;
			*at = id;
			if (innermost || symbol->function)
				return &names->face;
			unnamed = *symbol;
			waits = true;
		}
	}
	if (!waits)
		*at = 0;
	names->face = waits ? unnamed : first;
	return any ? &names->face : NULL;
}

// A stack of wrappers alone is called after its innermost function.
// The same answer as the `user` line of names_stack, without a list of all lines: tables ask for it
// for each of their rows.
const struct symbol *names_face(struct names *names, stack_id stack, bool innermost)
{
	stack_id at, user;
	const struct symbol *face = find_face(names, stack, innermost, &at);
	const struct found *found;

	if (innermost || !at)
		return face;
	user = names_user(names, at);
	if (user == at)
		return face;
	found = find(names, reader_stack(names->reader, user)->frame);
	names->face = found->symbols[line_of(names, user, user)];
	return &names->face;
}

void names_add_function(struct names *names, stack_id stack, bool innermost, struct str *text)
{
	const struct symbol *symbol = names_face(names, stack, innermost);

	if (!symbol)
		str_add(text, "(no stack)");
	else if (symbol->function)
		str_add(text, symbol->function);
	else
		str_format(text, "%s%s0x%" PRIx64, str_last_part(symbol->module),
			   *symbol->module ? "+" : "", symbol->offset);
}

void names_add_line(struct names *names, stack_id stack, bool innermost, struct str *text)
{
	const struct symbol *symbol = names_face(names, stack, innermost);

	if (!symbol)
		str_add(text, "(no stack)");
	else if (symbol->file && symbol->line)
		str_format(text, "%s:%" PRIu32, symbol->file, symbol->line);
	else if (*symbol->module || !symbol->function)
		str_format(text, "%s%s0x%" PRIx64, symbol->module, *symbol->module ? "+" : "",
			   symbol->offset);
	else // a name that stands for no place
		str_add(text, symbol->function);
}

void names_add_module(struct names *names, stack_id stack, bool innermost, struct str *text)
{
	const struct symbol *symbol = names_face(names, stack, innermost);

	if (!symbol)
		str_add(text, "(no stack)");
	else
		str_add(text, *symbol->module ? symbol->module : "(no file)");
}

// Whether the file's name begins so. In what was imported the name of a function that has none may
// be that, and the place in it.
static bool is_in_file(const struct symbol *symbol, const char *name)
{
	return strncmp(str_last_part(symbol->module), name, strlen(name)) == 0 ||
	       (symbol->function && strncmp(symbol->function, name, strlen(name)) == 0);
}

// For example, the first line of libstdc++'s reserve is in libstdc++, the second one is call_init.
const char *names_runtime(const struct names_stack *stack)
{
	for (size_t i = 0; i < stack->count; i++) {
		const struct symbol *symbol = stack->lines[i].symbol;
		const struct symbol *caller = i + 1 < stack->count ? stack->lines[i + 1].symbol
								   : symbol;

		if (symbol->function && str_ends_with(symbol->function, "_IO_file_doallocate"))
			return "the buffer of a stream";
		// In files without symbols neither of the two has a name.
		if (i + 1 < stack->count && is_in_file(symbol, "libstdc++") &&
		    (caller->function ? strcmp(caller->function, "call_init") == 0 ||
						strcmp(caller->function, "_dl_init") == 0 ||
						strncmp(caller->function, "ld-", 3) == 0
				      : is_in_file(caller, "ld-")))
			return "libstdc++'s reserve for exceptions";
	}
	return NULL;
}
