// names: what a frame is called, from whoever knows: the trace itself, else the symbols, else
// nobody (then module and offset are all there is).
//
// Also turns a stack id into lines, inline frames included. Strings live as long as the names,
// the reader and the symbols do.
#pragma once

#include "base/str.h"
#include "symbols/symbols.h"

struct names;

// Both are borrowed; `symbols` may be NULL.
struct names *names_new(const struct reader *reader, struct symbols *symbols);
void names_free(struct names *names); // NULL is allowed

// The functions at `frame`, innermost first. At least one.
const struct symbol *names_find(struct names *names, frame_id frame, size_t *count);

// Whether nobody can know a name: the frame is in no file, and the trace gives it none. Then *place
// is what names_find would say. Keeps nothing.
bool names_nobody_knows(const struct names *names, frame_id frame, struct symbol *place);

// Whether a function's name is known. MODULE!sub_RVA, which recordings of Windows without symbols
// have, says where the function is and not what it is called.
bool names_is_named(const struct symbol *symbol);

// Whether the name is no name of one function: a script's own code (<module>, {main}), and what was
// given none (<lambda>, (anonymous), {closure:app.php:7}).
bool names_is_for_many(const char *function);

// Whether it is of a script (Python's, or JavaScript's), whose file is its module.
bool names_is_script(const struct symbol *symbol);

// What a line about the process begins with: its first argument, or what it has written over that;
// of a path the last part.
const char *names_process_word(const struct trace_process *process);

// What a row of the process is called: the title that it has given itself since it began, cut where
// it is long, or its program. Append.
void names_add_process(const struct trace_process *process, struct str *text);

// What its module is called in other traces too: a script by its place in the program
// (script_place.h), others by their file's name. Append.
void names_add_place(struct names *names, const struct symbol *symbol, struct str *text);

// Whether it allocates on behalf of its caller, by its name or its module (wrappers.h).
bool names_is_wrapper(const struct symbol *symbol);
// The same of a function at `frame`, and whether it does so by who calls it (inferred.h).
bool names_passes_on(struct names *names, frame_id frame, const struct symbol *symbol);

// What a line is in JSON, as lines.h writes it: stacks have lines in common, and one that was
// written is kept with the names. NULL: it was not, or there is no room.
struct names_text {
	const char *text;
	size_t length;
};

// One line of a stack.
struct names_line {
	const struct symbol *symbol;
	struct names_text *json;
	bool wrapper; // allocates on behalf of its caller (wrappers.h)
};

// For example malloc, operator new, parse, main, __libc_start_main, _start, of which the recorder
// has not the first: lines are operator new, parse, main and two more; user is 1, and roots are 2.
// In a program of node's, node::Allocate, v8::Call, alloc (node:buffer), load (app.js), main: user
// is 3, and inner 0.
struct names_stack {
	const struct names_line *lines; // innermost first
	size_t count;                   // 0: the call was recorded without a stack
	size_t user;                    // the first line that is the program's own (names_user)
	size_t inner;                   // the first that is no wrapper; 0 if all are
	size_t roots;                   // lines at the outer end where the thread began
	uint8_t flags;                  // enum trace_stack_flag
	struct names *names;            // whose lines they are; NULL: there are none
};

// What a program leaves at its exit without having asked for it, if the stack is of one: what
// libstdc++ keeps for exceptions that are thrown where there is no memory left, or the buffer of a
// stream of C's. NULL: it is none of these.
const char *names_runtime(const struct names_stack *stack);

// Keep what a line is in JSON.
void names_keep(const struct names_stack *stack, size_t line, const char *text, size_t length);

// Whole, always. `lines` stays valid until the next call.
struct names_stack names_stack(struct names *names, stack_id stack);

// For a stack whose innermost frame is no wrapper: of whom its allocation is. That is the stack
// itself, but for the native code of a runtime of JavaScript, if a script whose functions have
// names and lines is further out: then it begins where the runtime was called, by the innermost
// script that is not the runtime's own, or by an addon. A stack of the runtime's scripts alone
// begins with their innermost. An extension without names is passed over to the script too.
stack_id names_user(struct names *names, stack_id stack);

// How much of a name is left without the address that imported recordings give a function of which
// they know no more: "libfoo.so 0x7f31a0" is "libfoo.so". All of it, if it has none.
size_t names_without_address(const char *function);

// Whether a line at the outer end of a stack is where its thread began: start_thread and the like,
// or what a C library or dynamic linker without debug symbols does not name.
bool names_is_root(const struct symbol *symbol);

// What stands for a stack in tables: its first function that is the program's own (`innermost`: its
// very first). NULL: it has none. Valid until the next call of this or the two below for another
// stack.
const struct symbol *names_face(struct names *names, stack_id stack, bool innermost);

// What that is called, its place in the source, and the path of its file: "work", "libfoo.so+0x12",
// "(no stack)"; "/src/work.c:12", "/usr/lib/libfoo.so+0x12" where no line is known;
// "/usr/lib/libfoo.so", "(no file)". Append.
void names_add_function(struct names *names, stack_id stack, bool innermost, struct str *text);
void names_add_line(struct names *names, stack_id stack, bool innermost, struct str *text);
void names_add_module(struct names *names, stack_id stack, bool innermost, struct str *text);
