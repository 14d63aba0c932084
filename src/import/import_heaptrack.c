// import_heaptrack: what heaptrack records, raw (as its library writes it, versions 1 to 3) and
// interpreted (what `heaptrack` leaves behind, versions 0 to 3).
//
// Both are lines of a letter and hexadecimal numbers. A raw one has instruction pointers, modules
// and the addresses of blocks. In an interpreted one functions have names, and blocks have none:
// `+` and `-` name a pair of size and stack (`a`), of which the latest block is taken to be freed,
// as blocks of a pair are not told apart.
//
// For example, interpreted, of version 3 (numbers are hexadecimal):
//
//     s 4 main           the first string
//     i 401136 0 1 0 0   the first pointer: module none, function 1, no file
//     t 1 0              the first trace: pointer 1, called by nothing
//     a 28 1             pair 0: 40 bytes by trace 1
//     + 0                a block of it begins
//     - 0                its latest one ends
#include "base/mem.h"
#include "import/import_formats.h"
#include "import/number.h"

#include <inttypes.h>
#include <string.h>

enum { VERSION_MAX = 3, NAMES_MAX = 256, NS_PER_MS = 1000000, TICK_MS = 10 };

// Numbers of strings, pointers and traces count from 1, and those of pairs from 0, by their order
// in the file. All of it grows with the program, but for `blocks`, which grow with what lives.
struct heaptrack {
	struct import_work *work;
	struct intake *intake;
	unsigned version;
	bool raw;
	bool begun;
	process_id process;
	thread_id thread;
	char *exe;
	uint64_t time_ns, page_bytes;

	char **strings; // by number, from 1
	size_t strings_count, strings_capacity;
	struct pointer {
		frame_id frame;
		uint64_t pc;
		bool nameless_cxx; // in C++'s library, without a name
		bool asks_new; // a function of an allocator, which calls nothing but operator new
	} * pointers;          // by number of an instruction pointer, from 1
	size_t pointers_count, pointers_capacity;
	struct node {
		stack_id stack;
		uint32_t pointer; // of an interpreted file
	} * nodes;                // by number of a trace, from 1
	size_t nodes_count, nodes_capacity;

	// Raw: what was mapped, also in the past.
	struct raw_module {
		char *path;
		uint64_t start, end, bias;
		module_id id;
		bool mapped;
	} * modules;
	size_t modules_count, modules_capacity;

	// Interpreted: pairs of size and stack, and their blocks that live.
	struct pair {
		uint64_t size;
		stack_id stack;
		uint32_t top; // block + 1
	} * pairs;
	size_t pairs_count, pairs_capacity;
	struct numbered_block {
		uint64_t address;
		uint32_t below; // + 1
	} * blocks;
	size_t blocks_count, blocks_capacity;
	uint32_t spare; // blocks to use again: + 1
	uint64_t next_address;
	uint64_t unmatched; // frees of pairs without a block
	bool attached;
};

// The next hexadecimal number of a line. False: there is none.
static bool take_hex(char **at, uint64_t *number)
{
	char *begin = *at + strspn(*at, " ");
	size_t length = strcspn(begin, " ");

	if (!number_parse_hex(begin, length, number))
		return false;
	*at = begin + length;
	return true;
}

static bool take_hex32(char **at, uint32_t *number)
{
	uint64_t wide;

	if (!take_hex(at, &wide) || wide > UINT32_MAX)
		return false;
	*number = (uint32_t)wide;
	return true;
}

// The next text of a line, as this version writes it: "4 main" from version 3 on, where the text
// may have blanks in it. Before that it ends with the next blank, or (`rest`) with the line.
static bool take_text(const struct heaptrack *heaptrack, char **at, bool rest, char **text,
		      size_t *length)
{
	uint64_t count;

	if (heaptrack->version >= 3) {
		if (!take_hex(at, &count) || (count > 0 && **at != ' ') ||
		    count > strlen(*at) - (**at == ' '))
			return false;
		*text = *at + (**at == ' ');
		*length = (size_t)count;
	} else {
		*text = *at + (**at == ' ');
		*length = rest ? strlen(*text) : strcspn(*text, " ");
	}
	*at = *text + *length;
	return true;
}

// Before the first definition, when the command is known: lines about the whole come first.
static void begin(struct heaptrack *heaptrack)
{
	const char *command = intake_info(heaptrack->intake)->command;
	char *exe;

	if (heaptrack->begun)
		return;
	heaptrack->begun = true;
	exe = heaptrack->exe ? mem_copy_text(heaptrack->exe)
	      : command      ? mem_copy_bytes(command, strcspn(command, " "))
			     : mem_copy_text("");
	heaptrack->process = intake_add_process(heaptrack->intake, exe);
	heaptrack->thread = intake_thread(heaptrack->intake, heaptrack->process, NULL);
	mem_free(exe);
}

// ---- definitions ----

// A version that is too new is refused by read_line, whatever line says it.
static bool read_version(struct heaptrack *heaptrack, char *at)
{
	uint64_t program, version = 0;

	if (!take_hex(&at, &program))
		return false;
	// Before it had versions it called the first one so.
	if (!take_hex(&at, &version) && program == 0x10200)
		version = 1;
	heaptrack->version = version > VERSION_MAX ? VERSION_MAX + 1 : (unsigned)version;
	if (heaptrack->begun)
		return true;
	intake_info(heaptrack->intake)->tick_ns = TICK_MS * NS_PER_MS;
	intake_lacks(heaptrack->intake, "no-threads");
	if (!heaptrack->raw && version > 0)
		intake_lacks(heaptrack->intake, "no-addresses");
	return true;
}

static bool read_command(struct heaptrack *heaptrack, char *at)
{
	struct trace_info *info = intake_info(heaptrack->intake);

	if (!info->command)
		info->command = mem_copy_text(at + strspn(at, " "));
	return true;
}

static bool read_exe(struct heaptrack *heaptrack, char *at)
{
	size_t length;
	char *text;

	if (!take_text(heaptrack, &at, true, &text, &length))
		return false;
	mem_free(heaptrack->exe);
	heaptrack->exe = mem_copy_bytes(text, length);
	return true;
}

static bool read_string(struct heaptrack *heaptrack, char *at)
{
	size_t length;
	char *text;

	if (!take_text(heaptrack, &at, true, &text, &length))
		return false;
	*MEM_ADD(heaptrack->strings, heaptrack->strings_count, heaptrack->strings_capacity) =
		mem_copy_bytes(text, length);
	return true;
}

static char *string_of(const struct heaptrack *heaptrack, uint64_t number)
{
	return number > 0 && number <= heaptrack->strings_count ? heaptrack->strings[number - 1]
								: "";
}

// GCC's or Clang's, by the name of the file.
static bool is_cxx_library(const char *path)
{
	const char *name = str_last_part(path);

	return strncmp(name, "libstdc++", 9) == 0 || strncmp(name, "libc++", 6) == 0;
}

// By the three names that allocators have had in these libraries.
static bool asks_new(const char *function)
{
	static const char *const allocators[] = { "std::__new_allocator<",
						  "__gnu_cxx::new_allocator<",
						  "std::__1::allocator<" };

	for (size_t i = 0; i < sizeof allocators / sizeof *allocators; i++)
		if (strncmp(function, allocators[i], strlen(allocators[i])) == 0)
			return strstr(function, ">::allocate(") != NULL;
	return false;
}

// An instruction pointer of an interpreted file: its module, and the functions there, innermost
// first. A frame for each pointer: inlined functions are several names. Without a name it is called
// by its module and address.
static bool read_pointer(struct heaptrack *heaptrack, char *at)
{
	struct trace_name names[NAMES_MAX];
	uint64_t pc, module = 0, function, file, line;
	struct str unknown = { 0 };
	struct pointer *pointer;
	size_t count = 0;

	if (!take_hex(&at, &pc))
		return false;
	take_hex(&at, &module);
	while (count < NAMES_MAX && take_hex(&at, &function) && take_hex(&at, &file) &&
	       take_hex(&at, &line))
		names[count++] = (struct trace_name){
			.function = string_of(heaptrack, function),
			.file = string_of(heaptrack, file),
			.line = line > UINT32_MAX ? 0 : (uint32_t)line,
		};
	ASSERT(count <= NAMES_MAX);
	begin(heaptrack);
	pointer = MEM_ADD(heaptrack->pointers, heaptrack->pointers_count,
			  heaptrack->pointers_capacity);
	*pointer = (struct pointer){ .pc = pc };
	if (count == 0 || !*names[0].function) {
		pointer->nameless_cxx = is_cxx_library(string_of(heaptrack, module));
		str_format(&unknown, "%s 0x%" PRIx64, str_last_part(string_of(heaptrack, module)),
			   pc);
		names[0] = (struct trace_name){ .function = unknown.text, .file = "" };
		count = 1;
	}
	pointer->asks_new = asks_new(names[0].function);
	pointer->frame = intake_frame_names(heaptrack->intake, pc, names, count);
	str_fini(&unknown);
	return true;
}

// A module that was mapped before at the same place is that one again.
static void add_module(struct heaptrack *heaptrack, struct raw_module *wanted)
{
	for (size_t i = 0; i < heaptrack->modules_count; i++) {
		if (heaptrack->modules[i].start == wanted->start &&
		    heaptrack->modules[i].end == wanted->end &&
		    strcmp(heaptrack->modules[i].path, wanted->path) == 0) {
			heaptrack->modules[i].mapped = true;
			return;
		}
	}
	begin(heaptrack);
	wanted->id = intake_add_module(heaptrack->intake, &(struct trace_module){
								  .process = heaptrack->process,
								  .start = wanted->start,
								  .end = wanted->end,
								  .bias = wanted->bias,
								  .path = wanted->path,
							  });
	MEM_ROOM(heaptrack->modules, heaptrack->modules_capacity, heaptrack->modules_count + 1);
	heaptrack->modules[heaptrack->modules_count] = *wanted;
	heaptrack->modules[heaptrack->modules_count].path = mem_copy_text(wanted->path);
	heaptrack->modules[heaptrack->modules_count++].mapped = true;
}

// `m PATH BIAS` and pairs of address and size of its segments; `m -`: all are gone, and those that
// are there are told next.
static bool read_module(struct heaptrack *heaptrack, char *at)
{
	struct raw_module module = { .start = UINT64_MAX };
	uint64_t address, size;
	size_t length;
	char *text;

	if (!take_text(heaptrack, &at, false, &text, &length))
		return false;
	if (length == 1 && *text == '-') {
		for (size_t i = 0; i < heaptrack->modules_count; i++)
			heaptrack->modules[i].mapped = false;
		return true;
	}
	if (!take_hex(&at, &module.bias))
		return false;
	while (take_hex(&at, &address) && take_hex(&at, &size)) {
		address += module.bias;
		if (address < module.start)
			module.start = address;
		if (address + size > module.end)
			module.end = address + size;
	}
	module.path = length == 1 && *text == 'x' && heaptrack->exe ? mem_copy_text(heaptrack->exe)
								    : mem_copy_bytes(text, length);
	if (module.start < module.end)
		add_module(heaptrack, &module);
	mem_free(module.path);
	return true;
}

// The latest that is mapped there.
static module_id find_module(const struct heaptrack *heaptrack, uint64_t pc)
{
	for (size_t i = heaptrack->modules_count; i-- > 0;) {
		const struct raw_module *module = &heaptrack->modules[i];

		if (module->mapped && pc >= module->start && pc < module->end)
			return module->id;
	}
	return 0;
}

// The frame of a pointer whose caller is known. C++'s library without symbols has no name for what
// an allocator calls, which is operator new: so that it is left out of stacks as in others, it gets
// that name. A trace that came before by another caller keeps the address.
static frame_id frame_called_by(struct heaptrack *heaptrack, uint64_t number, uint32_t parent)
{
	struct trace_name name = { .function = "operator new(unsigned long)", .file = "" };
	struct pointer *pointer = number ? &heaptrack->pointers[number - 1] : NULL;
	uint32_t caller = parent ? heaptrack->nodes[parent - 1].pointer : 0;

	if (!pointer)
		return 0;
	ASSERT(number <= heaptrack->pointers_count && caller <= heaptrack->pointers_count);
	if (pointer->nameless_cxx && caller && heaptrack->pointers[caller - 1].asks_new) {
		pointer->nameless_cxx = false;
		pointer->frame = intake_frame_names(heaptrack->intake, pointer->pc, &name, 1);
	}
	return pointer->frame;
}

// A node of the tree of stacks: its pointer and its caller, which comes before it in the file and
// so has a number already.
static bool read_trace(struct heaptrack *heaptrack, char *at)
{
	uint64_t pointer;
	uint32_t parent;
	frame_id frame;
	stack_id callers;

	if (!take_hex(&at, &pointer) || !take_hex32(&at, &parent) ||
	    parent > heaptrack->nodes_count)
		return false;
	begin(heaptrack);
	// A raw one is a return address.
	if (heaptrack->raw)
		frame = intake_frame_address(heaptrack->intake, find_module(heaptrack, pointer - 1),
					     pointer - 1);
	else if (pointer > heaptrack->pointers_count || pointer > UINT32_MAX)
		return false;
	else
		frame = frame_called_by(heaptrack, pointer, parent);
	callers = parent ? heaptrack->nodes[parent - 1].stack : 0;
	*MEM_ADD(heaptrack->nodes, heaptrack->nodes_count, heaptrack->nodes_capacity) =
		(struct node){ intake_stack(heaptrack->intake, callers, frame),
			       heaptrack->raw ? 0 : (uint32_t)pointer };
	return true;
}

static bool take_stack(const struct heaptrack *heaptrack, char **at, stack_id *stack)
{
	uint32_t number;

	if (!take_hex32(at, &number) || number > heaptrack->nodes_count)
		return false;
	ASSERT(number <= heaptrack->nodes_count);
	*stack = number ? heaptrack->nodes[number - 1].stack : 0;
	return true;
}

// Blocks of a pair are a list from the latest to the first: `top`, then `below` of each.
static bool read_pair(struct heaptrack *heaptrack, char *at)
{
	struct pair pair = { 0 };

	if (!take_hex(&at, &pair.size) || !take_stack(heaptrack, &at, &pair.stack))
		return false;
	*MEM_ADD(heaptrack->pairs, heaptrack->pairs_count, heaptrack->pairs_capacity) = pair;
	return true;
}

// ---- events ----

static void put(struct heaptrack *heaptrack, uint8_t kind, uint64_t address, uint64_t size,
		stack_id stack)
{
	begin(heaptrack);
	intake_event(heaptrack->intake, &(struct trace_event){
						.kind = kind,
						.time_ns = heaptrack->time_ns,
						.thread = heaptrack->thread,
						.address = address,
						.size = size,
						.stack = stack,
					});
}

// A block of a pair begins: it gets an address that no other had, with room behind it.
static void begin_block(struct heaptrack *heaptrack, struct pair *pair)
{
	uint64_t room = pair->size < (1u << 30) ? pair->size : 1u << 30;
	uint32_t at = heaptrack->spare;

	if (at) {
		ASSERT(at <= heaptrack->blocks_count);
		heaptrack->spare = heaptrack->blocks[at - 1].below;
	} else {
		MEM_ROOM(heaptrack->blocks, heaptrack->blocks_capacity,
			 heaptrack->blocks_count + 1);
		at = (uint32_t)++heaptrack->blocks_count;
	}
	// As far from the block before as malloc's header is, so that no two touch.
	heaptrack->next_address += 16;
	heaptrack->blocks[at - 1] = (struct numbered_block){
		.address = heaptrack->next_address,
		.below = pair->top,
	};
	heaptrack->next_address += (room + 15) & ~(uint64_t)15;
	pair->top = at;
	put(heaptrack, TRACE_MALLOC, heaptrack->blocks[at - 1].address, pair->size, pair->stack);
}

// The latest block of the pair ends. A pair without a block that lives: heaptrack was attached
// later than the block was made. Places of blocks that ended are used again; their addresses are
// not.
static void end_block(struct heaptrack *heaptrack, struct pair *pair)
{
	struct numbered_block *block;
	uint32_t at = pair->top;

	if (!at) {
		heaptrack->unmatched++;
		return;
	}
	ASSERT(at <= heaptrack->blocks_count);
	block = &heaptrack->blocks[at - 1];
	ASSERT(block->below <= heaptrack->blocks_count);
	pair->top = block->below;
	block->below = heaptrack->spare;
	heaptrack->spare = at;
	put(heaptrack, TRACE_FREE, block->address, 0, 0);
}

// Version 0 of the interpreted form has addresses, as the raw one.
static bool read_event(struct heaptrack *heaptrack, char letter, char *at)
{
	uint64_t address, size;
	stack_id stack;

	if (heaptrack->raw || heaptrack->version == 0) {
		if (letter == '+') {
			if (!take_hex(&at, &size) || !take_stack(heaptrack, &at, &stack) ||
			    !take_hex(&at, &address))
				return false;
			put(heaptrack, TRACE_MALLOC, address, size, stack);
		} else {
			if (!take_hex(&at, &address))
				return false;
			put(heaptrack, TRACE_FREE, address, 0, 0);
		}
		return true;
	}
	if (!take_hex(&at, &address) || address >= heaptrack->pairs_count)
		return false;
	if (letter == '+')
		begin_block(heaptrack, &heaptrack->pairs[address]);
	else
		end_block(heaptrack, &heaptrack->pairs[address]);
	return true;
}

// Milliseconds since it began. A time that falls is left out.
static bool read_clock(struct heaptrack *heaptrack, char *at)
{
	uint64_t ms, time_ns;

	if (!take_hex(&at, &ms) || __builtin_mul_overflow(ms, (uint64_t)NS_PER_MS, &time_ns))
		return false;
	if (time_ns > heaptrack->time_ns)
		heaptrack->time_ns = time_ns;
	return true;
}

// In pages, whose size an I line says; without one it is not used.
static bool read_resident(struct heaptrack *heaptrack, char *at)
{
	uint64_t pages;

	if (!take_hex(&at, &pages))
		return false;
	begin(heaptrack);
	if (heaptrack->page_bytes && pages < UINT64_MAX / heaptrack->page_bytes)
		intake_note(heaptrack->intake, &(struct trace_note){
						       .kind = TRACE_NOTE_RSS,
						       .process = heaptrack->process,
						       .thread = TRACE_NONE,
						       .time_ns = heaptrack->time_ns,
						       .value = pages * heaptrack->page_bytes,
						       .text = "",
					       });
	return true;
}

static bool read_system(struct heaptrack *heaptrack, char *at)
{
	return take_hex(&at, &heaptrack->page_bytes);
}

static bool read_attached(struct heaptrack *heaptrack, char *)
{
	heaptrack->attached = true;
	return true;
}

// ---- the file ----

static bool read_line(struct heaptrack *heaptrack, char *line, struct err *err)
{
	static const struct {
		char letter;
		bool (*read)(struct heaptrack *heaptrack, char *at);
	} lines[] = {
		{ 't', read_trace },   { 'c', read_clock },   { 'R', read_resident },
		{ 'a', read_pair },    { 'i', read_pointer }, { 's', read_string },
		{ 'm', read_module },  { 'x', read_exe },     { 'X', read_command },
		{ 'v', read_version }, { 'I', read_system },  { 'A', read_attached },
	};
	char letter = *line;
	bool ok;

	if (letter == '\0' || letter == '#' || letter == 'S')
		return true;
	if (letter == '+' || letter == '-') {
		ok = read_event(heaptrack, letter, line + 1);
		return ok ||
		       err_set(err, ERR_FORMAT, "\"%.60s\" is not an event of heaptrack", line);
	}
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		if (lines[i].letter != letter)
			continue;
		ok = lines[i].read(heaptrack, line + 1);
		if (ok && heaptrack->version > VERSION_MAX)
			return err_set(err, ERR_FORMAT,
				       "heaptrack's file is of a newer version than %d",
				       VERSION_MAX);
		return ok || err_set(err, ERR_FORMAT, "\"%.60s\" is not a line of heaptrack", line);
	}
	return err_set(err, ERR_FORMAT, "\"%.60s\" is not a line of heaptrack", line);
}

// The line behind the first says which of both it is.
static bool is_raw(const char *head, size_t length)
{
	const char *end = memchr(head, '\n', length);

	return end && (size_t)(end + 1 - head) < length && end[1] == 'x';
}

// The first line is `v` and hexadecimal numbers.
static bool is_heaptrack(const char *head, size_t length)
{
	size_t at = 2;

	if (length < 4 || head[0] != 'v' || head[1] != ' ')
		return false;
	while (at < length && head[at] && strchr("0123456789abcdef ", head[at]))
		at++;
	return at < length && head[at] == '\n';
}

static void free_all(struct heaptrack *heaptrack)
{
	for (size_t i = 0; i < heaptrack->strings_count; i++)
		mem_free(heaptrack->strings[i]);
	for (size_t i = 0; i < heaptrack->modules_count; i++)
		mem_free(heaptrack->modules[i].path);
	MEM_FREE(heaptrack->strings, heaptrack->modules, heaptrack->pointers, heaptrack->nodes,
		 heaptrack->pairs, heaptrack->blocks, heaptrack->exe);
}

static void remark(const struct heaptrack *heaptrack, struct str *remarks)
{
	if (heaptrack->unmatched)
		str_format(remarks,
			   "%s frees are left out: nothing of their size and stack lives\n",
			   STR_COUNT(heaptrack->unmatched));
	if (heaptrack->attached)
		str_add(remarks, "heaptrack was attached to a running program: what it had "
				 "allocated before is not there\n");
}

// Remarks are made also after a failure, as of what was read until then.
static bool read_heaptrack(struct import_work *work, struct err *err)
{
	struct heaptrack heaptrack = { .work = work, .intake = work->intake };
	size_t length;
	const char *head = source_head(work->source, &length);
	bool ok = true;
	char *line;

	heaptrack.raw = is_raw(head, length);
	while (ok && import_line(work, &line, &length)) {
		// Each line has its end; one that has not was cut, whatever it says.
		if (source_position(work->source)->line_open) {
			import_was_cut(work, err);
			break;
		}
		ok = read_line(&heaptrack, line, err);
	}
	remark(&heaptrack, work->remarks);
	free_all(&heaptrack);
	return ok || import_was_cut(work, err);
}

const struct import_format import_heaptrack = {
	.name = "heaptrack",
	.is = is_heaptrack,
	.read = read_heaptrack,
};
