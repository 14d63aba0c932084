// import_mtrace: the log of glibc's mtrace(3): a line for each call, with its caller.
//
// For example
//
//     @ ./app:(make+0x1a)[0x40113a] + 0x5010 0x18
//     @ ./app:(grow+0x20)[0x401180] < 0x5010
//     @ ./app:(grow+0x20)[0x401180] > 0x6020 0x1000
//     @ ./app:(stop+0x9)[0x4011c0] - 0x6020
//
// is a malloc of 24 bytes, a realloc to 4,096, of which `<` and `>` are the two halves, and a free.
// `!` is a realloc that failed.
#include "base/mem.h"
#include "base/str.h"
#include "import/import_formats.h"
#include "import/number.h"

#include <string.h>

enum { STEP_NS = 1000 };

// A first half waits for the next line; if that is no second half, the block was freed by
// realloc(p, 0).
struct mtrace {
	struct intake *intake;
	struct trace_event event; // the call of this line
	bool moving;              // the line before was the first half of a realloc,
	uint64_t old_address;     // of this block
	uint64_t lines;
	struct known_module {
		char *path;
		module_id id;
	} * modules;
	size_t modules_count, modules_capacity;
};

// All is one thread: the log does not say which.
static void put(struct mtrace *mtrace, uint8_t kind, uint64_t address, uint64_t size)
{
	mtrace->event.kind = kind;
	mtrace->event.address = address;
	mtrace->event.size = size;
	mtrace->event.old_address = kind == TRACE_REALLOC ? mtrace->old_address : 0;
	mtrace->event.thread =
		intake_thread(mtrace->intake, intake_process(mtrace->intake, NULL), NULL);
	intake_event(mtrace->intake, &mtrace->event);
}

// A first half without a second: the block is gone.
static void settle(struct mtrace *mtrace)
{
	if (mtrace->moving)
		put(mtrace, TRACE_FREE, mtrace->old_address, 0);
	mtrace->moving = false;
}

// Hexadecimal, with or without 0x; the size may be missing.
static bool take_numbers(const char *at, uint64_t *address, uint64_t *size)
{
	size_t length = strcspn(at, " ");

	*size = 0;
	if (strncmp(at, "(nil)", length) == 0)
		*address = 0;
	else if (!number_parse_hex(at, length, address))
		return false;
	at += length + strspn(at + length, " ");
	return !*at || number_parse_hex(at, strcspn(at, " "), size);
}

// A second half without a first is a realloc of NULL, which is a malloc.
static void put_call(struct mtrace *mtrace, char sign, uint64_t address, uint64_t size)
{
	bool moving = mtrace->moving;

	if (sign != '>')
		settle(mtrace);
	switch (sign) {
	case '+':
		put(mtrace, address ? TRACE_MALLOC : TRACE_FAILED, address, size);
		break;
	case '-':
		put(mtrace, TRACE_FREE, address, 0);
		break;
	case '<':
		mtrace->moving = true;
		mtrace->old_address = address;
		break;
	case '>':
		put(mtrace, moving ? TRACE_REALLOC : TRACE_MALLOC, address, size);
		mtrace->moving = false;
		break;
	default:
		put(mtrace, TRACE_REALLOC_FAILED, address, size);
	}
}

// The module of a path; addresses in it are those of its file.
// The address in brackets is one of the file, so the module covers all addresses and has no bias.
static module_id module_of(struct mtrace *mtrace, const char *path, size_t length)
{
	struct trace_module module = { .end = UINT64_MAX };
	struct known_module *known;

	for (size_t i = 0; i < mtrace->modules_count; i++) {
		known = &mtrace->modules[i];
		if (strlen(known->path) == length && memcmp(known->path, path, length) == 0)
			return known->id;
	}
	known = MEM_ADD(mtrace->modules, mtrace->modules_count, mtrace->modules_capacity);
	module.path = known->path = mem_copy_bytes(path, length);
	module.process = intake_process(mtrace->intake, NULL);
	known->id = intake_add_module(mtrace->intake, &module);
	return known->id;
}

// `MODULE:(FUNCTION+0xOFFSET)[0xADDRESS]` is its function; without one the address in the module's
// file; anything else as it is.
static stack_id stack_of(struct mtrace *mtrace, const char *caller, size_t length)
{
	const char *end = caller + length, *open = str_find_last(caller, '(', length);
	const char *address = str_find_last(caller, '[', length);
	uint64_t pc;
	frame_id frame;

	if (open && open + 1 < end && open[1] != '+' && open[1] != ')')
		frame = intake_frame_text(mtrace->intake, open + 1, strcspn(open + 1, "+)"));
	else if (address && address - caller > 1 && address[-1] == ':' &&
		 number_parse_hex(address + 1, strcspn(address + 1, "] "), &pc) && pc > 0)
		frame = intake_frame_address(
			mtrace->intake, module_of(mtrace, caller, (size_t)(address - 1 - caller)),
			pc - 1);
	else
		frame = intake_frame_text(mtrace->intake, caller, length);
	return intake_stack(mtrace->intake, 0, frame);
}

// `@ CALLER SIGN ADDRESS [SIZE]`. The caller may have blanks.
// The caller may have blanks in its path, so the sign is looked for with what must follow it.
static bool read_call(struct mtrace *mtrace, const char *line)
{
	const char *caller = line + 2, *at = line + 1;
	uint64_t address, size;

	if (strncmp(line, "@ ", 2) != 0)
		return false;
	for (; *at; at++) {
		if (*at != ' ' || !at[1] || !strchr("+-<>!", at[1]) || at[2] != ' ' ||
		    !take_numbers(at + 3, &address, &size))
			continue;
		mtrace->event.time_ns = mtrace->lines++ * STEP_NS;
		mtrace->event.stack = at > caller ? stack_of(mtrace, caller, (size_t)(at - caller))
						  : 0;
		put_call(mtrace, at[1], address, size);
		return true;
	}
	return false;
}

static bool is_mtrace(const char *head, size_t length)
{
	return (length >= 7 && strncmp(head, "= Start", 7) == 0) ||
	       (length >= 2 && strncmp(head, "@ ", 2) == 0);
}

static bool read_mtrace(struct import_work *work, struct err *err)
{
	struct mtrace mtrace = { .intake = work->intake };
	bool ok = true;
	size_t length;
	char *line;

	intake_lacks(work->intake, "no-clock");
	intake_lacks(work->intake, "no-threads");
	intake_lacks(work->intake, "callers");
	while (ok && import_line(work, &line, &length))
		if (*line && *line != '=' && !read_call(&mtrace, line))
			ok = err_set(err, ERR_FORMAT, "\"%.60s\" is not a line of mtrace", line);
	if (ok)
		settle(&mtrace);
	for (size_t i = 0; i < mtrace.modules_count; i++)
		mem_free(mtrace.modules[i].path);
	mem_free(mtrace.modules);
	return ok || import_was_cut(work, err);
}

const struct import_format import_mtrace = {
	.name = "mtrace",
	.is = is_mtrace,
	.read = read_mtrace,
};
