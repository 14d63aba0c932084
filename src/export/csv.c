// csv: the blocks of the heaps as lines of CSV or JSON, for scripts and data frames.
//
// A line for each beginning and each end (`op` is alloc or free, `call` what did it; a realloc is
// an end and a beginning), or, with --lifetimes, one for each block with both. A column is declared
// where its cell is written: the heading of CSV is a line whose cells write their names. Stacks are
// written as folded ones, outermost first, and each is put together once.
//
// For example
//
//     time_ns,op,call,address,size,old_address,heap,process_id,pid,thread,stack
//     1200,alloc,malloc,0x5010,64,,malloc,0,4242,4242,main;parse
//     3400,free,free,0x5010,64,,malloc,0,4242,4242,main;drop
//
// A trace of a hundred million events is written at some hundred bytes a line, so what is in each
// line (digits, separators, stacks) is put into a buffer by hand and not by printf.
#include "engine/index/spill.h"
#include "export/events.h"
#include "export/locations.h"

#include "base/json.h"
#include "base/mem.h"

#include <string.h>

// A line is put together in a buffer that has room for all of it but texts of the trace, which ask
// for theirs; what repeats from line to line (stacks, a time) is kept as it was written.
enum { LINE_MAX = 1024, BUFFER_BYTES = 1 << 18, DIGITS_MAX = 20 };

struct rows {
	const struct export_source *source;
	const struct reader *reader;
	struct sink *sink;
	char *buffer, *at; // where the next byte goes
	size_t capacity;
	bool json, heading, any; // `any`: the line has a cell
	struct locations locations;
	struct str stacks; // texts as they are written; what is more than so many bytes:
	size_t stacks_most;
	struct spill file; // is here, or, where no file can be had, they are begun again
	bool no_file;
	struct stack_text {
		uint64_t at;
		uint32_t length;
		bool known, in_file;
	} * stack_texts; // by stack
	size_t stack_texts_count;
	uint64_t time_ns; // its text is kept
	char time[DIGITS_MAX];
	size_t time_length;
};

// ---- the buffer ----

static void flush(struct rows *rows)
{
	sink_write(rows->sink, rows->buffer, (size_t)(rows->at - rows->buffer));
	rows->at = rows->buffer;
}

// Room for so many bytes, and for the rest of the line.
static void make_room(struct rows *rows, size_t bytes)
{
	size_t used = (size_t)(rows->at - rows->buffer);

	if (used + bytes + LINE_MAX <= rows->capacity)
		return;
	rows->buffer = mem_grow(rows->buffer, &rows->capacity, used + bytes + LINE_MAX, 1);
	rows->at = rows->buffer + used;
}

// For what is known to be shorter than what make_room left: LINE_MAX is more than all numbers,
// names and separators of a line.
static inline void put(struct rows *rows, const char *text, size_t length)
{
	memcpy(rows->at, text, length);
	rows->at += length;
}

// For texts of any length.
static void put_text(struct rows *rows, const char *text, size_t length)
{
	make_room(rows, length);
	put(rows, text, length);
}

// Two digits at a time. Returns how many there are; they end at `end`.
static size_t digits_of(uint64_t value, char *end)
{
	static const char pairs[] = "00010203040506070809101112131415161718192021222324"
				    "25262728293031323334353637383940414243444546474849"
				    "50515253545556575859606162636465666768697071727374"
				    "75767778798081828384858687888990919293949596979899";
	char *at = end;

	// For example 12,345: 45, then 23, then 1, written from the end: three rounds for five
	// digits.
	for (; value >= 100; value /= 100) {
		at -= 2;
		memcpy(at, pairs + value % 100 * 2, 2);
	}
	if (value >= 10) {
		at -= 2;
		memcpy(at, pairs + value * 2, 2);
	} else {
		*--at = (char)('0' + value);
	}
	return (size_t)(end - at);
}

static void put_decimal(struct rows *rows, uint64_t value)
{
	char digits[DIGITS_MAX];
	size_t length = digits_of(value, digits + DIGITS_MAX);

	put(rows, digits + DIGITS_MAX - length, length);
}

static void put_hex(struct rows *rows, uint64_t value)
{
	// A digit for each four bits: 0x5010 has 15, so (67 - 49) / 4 = 4 digits.
	unsigned length = value ? (unsigned)(67 - __builtin_clzll(value)) / 4 : 1;

	for (unsigned i = length; i-- > 0; value /= 16)
		rows->at[i] = "0123456789abcdef"[value % 16];
	rows->at += length;
}

// ---- cells ----

// The name is a literal, so its length is known.
#define CELL(rows, name) begin_cell(rows, name, sizeof name - 1)

// In JSON the name is written in each line; in CSV only in the heading.
__attribute__((always_inline)) static inline void begin_cell(struct rows *rows, const char *name,
							     size_t length)
{
	// `{"time_ns":1200` or `,"op":…` in JSON; in CSV only what separates cells, but for the
	// heading.
	if (rows->json) {
		put(rows, rows->any ? ",\"" : "{\"", 2);
		put(rows, name, length);
		put(rows, "\":", 2);
	} else {
		if (rows->any)
			*rows->at++ = ',';
		if (rows->heading)
			put(rows, name, length);
	}
	rows->any = true;
}

// A number that may not be known.
static void number(struct rows *rows, bool known, uint64_t value)
{
	if (known && !rows->heading)
		put_decimal(rows, value);
	else if (rows->json)
		put(rows, "null", 4);
}

// In JSON a text, since a number of 64 bits is more than many readers hold.
static void address(struct rows *rows, bool known, uint64_t value)
{
	if (!known || rows->heading) {
		number(rows, false, 0);
		return;
	}
	if (rows->json)
		*rows->at++ = '"';
	put(rows, "0x", 2);
	put_hex(rows, value);
	if (rows->json)
		*rows->at++ = '"';
}

// Most events have the time of the one before.
static void time_of(struct rows *rows, uint64_t time_ns)
{
	if (rows->heading)
		return;
	if (time_ns != rows->time_ns || rows->time_length == 0) {
		rows->time_ns = time_ns;
		rows->time_length = digits_of(time_ns, rows->time + DIGITS_MAX);
	}
	put(rows, rows->time + DIGITS_MAX - rows->time_length, rows->time_length);
}

// Append a text as the format wants it.
static void quote(const struct rows *rows, const char *text, struct str *out)
{
	struct sink sink = sink_to_str(out);
	struct json json;

	// CSV by RFC 4180: what has a comma, a quote or a line break is put into quotes, a quote
	// within it doubled.
	if (rows->json) {
		json_init(&json, &sink, false);
		json_string(&json, text);
	} else if (!text[strcspn(text, ",\"\r\n")]) {
		str_add(out, text);
	} else {
		str_add_char(out, '"');
		for (; *text; text++) {
			if (*text == '"')
				str_add_char(out, '"');
			str_add_char(out, *text);
		}
		str_add_char(out, '"');
	}
}

static void text(struct rows *rows, const char *name)
{
	struct str quoted = { 0 };

	if (rows->heading)
		return;
	quote(rows, name, &quoted);
	put_text(rows, str_get(&quoted), quoted.length);
	str_fini(&quoted);
}

// One of our own words, which need no quotes in CSV.
static void word(struct rows *rows, const char *name)
{
	if (rows->heading)
		return;
	if (rows->json)
		*rows->at++ = '"';
	put(rows, name, strlen(name));
	if (rows->json)
		*rows->at++ = '"';
}

static void forget_texts(struct rows *rows)
{
	str_clear(&rows->stacks);
	memset(rows->stack_texts, 0, rows->stack_texts_count * sizeof *rows->stack_texts);
}

// A file that fails is not asked again: all that is in it is made once more, when it is needed.
static void leave_file(struct rows *rows)
{
	spill_close(&rows->file);
	rows->no_file = true;
	forget_texts(rows);
}

static bool put_in_file(struct rows *rows, struct stack_text *found, const struct str *quoted)
{
	enum { FILE_BUFFER = 1 << 16 };
	struct err ignored = { 0 };

	if (rows->no_file)
		return false;
	if (!rows->file.buffer && !spill_open_anywhere(&rows->file, FILE_BUFFER, &ignored)) {
		rows->no_file = true;
		return false;
	}
	found->at = rows->file.size;
	found->in_file = true;
	for (size_t at = 0; at < quoted->length; at += FILE_BUFFER) {
		size_t left = quoted->length - at;

		spill_put(&rows->file, quoted->text + at, left < FILE_BUFFER ? left : FILE_BUFFER);
	}
	if (rows->file.error)
		leave_file(rows);
	return !rows->no_file;
}

// Offsets and not pointers, as the list of texts moves when it grows. To read a text back takes
// less than to put it together again.
static struct stack_text *text_of(struct rows *rows, stack_id stack)
{
	struct stack_text *found = &rows->stack_texts[stack];
	struct str folded = { 0 }, quoted = { 0 };
	bool full = rows->stacks.length >= rows->stacks_most;

	if (found->known)
		return found;
	if (stack)
		locations_fold(&rows->locations, stack, &folded);
	quote(rows, str_get(&folded), &quoted);
	if (!full || !put_in_file(rows, found, &quoted)) {
		if (full)
			forget_texts(rows);
		found->at = rows->stacks.length;
		str_add_bytes(&rows->stacks, str_get(&quoted), quoted.length);
	}
	found->length = (uint32_t)quoted.length;
	found->known = true;
	str_fini(&folded);
	str_fini(&quoted);
	return found;
}

static void stack(struct rows *rows, stack_id id)
{
	const struct stack_text *found;

	if (rows->heading)
		return;
	// A stack that the table does not have is written as none.
	found = text_of(rows, id < rows->stack_texts_count ? id : 0);
	if (!found->in_file) {
		put_text(rows, str_get(&rows->stacks) + found->at, found->length);
		return;
	}
	make_room(rows, found->length);
	if (spill_copy(&rows->file, found->at, rows->at, found->length)) {
		rows->at += found->length;
		return;
	}
	leave_file(rows);
	found = text_of(rows, id < rows->stack_texts_count ? id : 0);
	put_text(rows, str_get(&rows->stacks) + found->at, found->length);
}

static void thread(struct rows *rows, thread_id id)
{
	const struct trace_thread *found = reader_thread(rows->reader, id);

	number(rows, found != NULL, found ? found->tid : 0);
}

// ---- lines ----

static void end_line(struct rows *rows)
{
	put(rows, rows->json ? "}\n" : "\n", rows->json ? 2 : 1);
	// The buffer goes out at 256 KiB, and is made ready for another line.
	if (rows->at - rows->buffer >= BUFFER_BYTES)
		flush(rows);
	make_room(rows, 0);
	rows->any = false;
}

static void cell_heap(struct rows *rows, heap_id id)
{
	const struct trace_heap *heap = id ? reader_heap(rows->reader, id) : NULL;

	CELL(rows, "heap");
	if (!heap)
		word(rows, "malloc");
	else if (heap->handle && !heap->name[0])
		address(rows, true, heap->handle);
	else
		text(rows, heap->name);
}

// What both kinds of lines have.
// The size of a block that was not seen to begin is not known.
static void cells_of_block(struct rows *rows, const struct lives_block *block)
{
	const struct trace_process *process = reader_process(rows->reader, block->process);

	CELL(rows, "address");
	address(rows, true, block->address);
	CELL(rows, "size");
	number(rows, block->origin == LIVES_BEGUN, block->size);
	CELL(rows, "old_address");
	address(rows, block->moved && block->old_address, block->old_address);
	cell_heap(rows, block->heap);
	CELL(rows, "process_id");
	number(rows, true, block->process);
	CELL(rows, "pid");
	number(rows, process != NULL, process ? process->pid : 0);
}

static void write_event(struct rows *rows, const struct lives_block *block, const char *op,
			const char *call, const struct lives_end *end)
{
	CELL(rows, "time_ns");
	time_of(rows, end ? end->time_ns : block->time_ns);
	CELL(rows, "op");
	word(rows, op);
	CELL(rows, "call");
	word(rows, call);
	cells_of_block(rows, block);
	CELL(rows, "thread");
	thread(rows, end ? end->thread : block->thread);
	CELL(rows, "stack");
	stack(rows, end ? end->stack : block->stack);
	end_line(rows);
}

static const char *const causes[] = {
	[LIVES_FREE] = "free",       [LIVES_REALLOC] = "realloc", [LIVES_LOST] = "lost",
	[LIVES_DESTROY] = "destroy", [LIVES_EXIT] = "exit",       [LIVES_EXEC] = "exec",
	[LIVES_RUNNING] = "running",
};
_Static_assert(sizeof causes / sizeof *causes == LIVES_RUNNING + 1, "a word each");

static void write_begin(void *context, const struct lives_block *block)
{
	write_event(context, block, "alloc", block->moved ? "realloc" : "malloc", NULL);
}

// What ends with its process has no event: no call ended it.
static void write_end(void *context, const struct lives_block *block, const struct lives_end *end)
{
	if (end->cause < LIVES_EXIT)
		write_event(context, block, "free", causes[end->cause], end);
}

static const char *class_name(enum query_type type)
{
	return type == QUERY_AIFI   ? "AIFI"
	       : type == QUERY_AIFO ? "AIFO"
	       : type == QUERY_AOFI ? "AOFI"
				    : "AOFO";
}

// A block that was never freed while the trace lasted has no end_ns: the cell is empty, or null.
static void write_life(void *context, const struct lives_block *block, const struct lives_end *end)
{
	struct rows *rows = context;

	CELL(rows, "begin_ns");
	time_of(rows, block->time_ns);
	CELL(rows, "end_ns");
	number(rows, end->cause != LIVES_RUNNING, end->time_ns);
	CELL(rows, "end");
	word(rows, causes[end->cause]);
	CELL(rows, "class");
	word(rows, class_name(events_class(rows->source, block, end)));
	cells_of_block(rows, block);
	CELL(rows, "thread");
	thread(rows, block->thread);
	CELL(rows, "end_thread");
	thread(rows, end->thread);
	CELL(rows, "stack");
	stack(rows, block->stack);
	end_line(rows);
}

// ---- the whole ----

// A line of a made-up block, whose cells write their names in place of values.
static void write_heading(struct rows *rows)
{
	const struct lives_block block = { .moved = true, .old_address = 1 };
	const struct lives_end end = { 0 };

	rows->heading = true;
	if (rows->source->lifetimes)
		write_life(rows, &block, &end);
	else
		write_begin(rows, &block);
	rows->heading = false;
}

// Both kinds of lines come from one reading of blocks: events are a line where a block begins and
// one where it ends, lifetimes one line where it ends, or where the window does.
static bool write(const struct export_source *source, struct sink *sink, bool json, struct err *err)
{
	struct rows rows = {
		.source = source,
		.reader = source->asked->reader,
		.sink = sink,
		.json = json,
		.stacks_most = window_memory_of(&source->asked->options.window) / 8,
		.locations = { .reader = source->asked->reader, .names = source->asked->names },
	};
	const struct events_watcher watcher = {
		.begin = source->lifetimes ? NULL : write_begin,
		.end = source->lifetimes ? write_life : write_end,
		.context = &rows,
		.whole_lives = source->lifetimes,
		.origins = true,
		.process = TRACE_NONE,
	};
	bool good;

	rows.stack_texts_count = reader_stacks_count(rows.reader);
	rows.stack_texts = mem_alloc(rows.stack_texts_count, sizeof *rows.stack_texts);
	rows.at = rows.buffer = mem_alloc(BUFFER_BYTES + LINE_MAX, 1);
	rows.capacity = BUFFER_BYTES + LINE_MAX;
	if (!json)
		write_heading(&rows);
	good = events_read(source, &watcher, err);
	locations_fini(&rows.locations);
	flush(&rows);
	MEM_FREE(rows.stack_texts, rows.buffer);
	str_fini(&rows.stacks);
	spill_close(&rows.file);
	return good;
}

static bool write_csv(const struct export_source *source, struct sink *sink, struct err *err)
{
	return write(source, sink, false, err);
}

static bool write_jsonl(const struct export_source *source, struct sink *sink, struct err *err)
{
	return write(source, sink, true, err);
}

const struct export_format csv_format = {
	.name = "csv",
	.brief = "a line for each event, or for each block",
	.is_text = true,
	.has_lifetimes = true,
	.write = write_csv,
};

const struct export_format csv_jsonl_format = {
	.name = "jsonl",
	.brief = "the same as JSON, an object a line",
	.is_text = true,
	.has_lifetimes = true,
	.write = write_jsonl,
};
