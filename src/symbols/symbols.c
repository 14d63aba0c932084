// From a frame to names: the frame's module is a file that was mapped, in however many processes;
// the file is opened when it is first asked, and each offset in it is answered once. For example
// libc, mapped at 0x7f1000000000 in one process and at 0x7e2000000000 in another: the frames at
// 0x9a2f0 after either beginning are one offset of one file, and the second finds the answer that
// the first has left.
//
// Answers never move, so that callers keep pointers into them. Files are one if path, identity and
// size are; what was bundled with the trace comes before what is on this machine.
#include "symbols/symbols.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/thread.h"
#include "symbols/demangle.h"
#include "symbols/symbols_bundle.h"
#include "symbols/symbols_file.h"

#include <string.h>

// The answer for one address. Never moves.
struct answer {
	size_t count;
	struct symbol symbols[];
};

enum { LABEL_MAX = 32 };

// A file that was mapped, in however many processes.
struct mapped {
	char *path; // as recorded
	uint8_t build_id[LABEL_MAX];
	size_t build_id_length;
	uint64_t size_bytes, mtime_ns;
	uint64_t memory_bytes; // of a Windows module; else 0
	uint8_t bits;
	// Of a process that had it mapped when the recording ended, and may live; 0: none.
	uint32_t pid;
	uint8_t label[LABEL_MAX]; // its name in a trace's bundles: the build-id, or made up
	size_t label_length;
	size_t pack_as; // the first file with this label
	bool opened, bundled;
	struct symbols_bundle bundle;
	struct symbols_file *file; // NULL until needed, or expected
	struct remarks remarks;    // of an opening ahead, until its names are needed
	struct map answers;        // offset -> struct answer, owned
};

struct symbols {
	const struct reader *reader; // borrowed
	bool mangled;
	char *directories; // owned; NULL: none
	struct debuginfod *debuginfod;
	struct symbol_path symbol_path;
	struct remarks remarks;
	struct mapped **files;
	size_t files_count, files_capacity;
	struct map files_by_hash;   // identity -> file index + 1
	struct map files_by_module; // module -> file index + 1
	struct map files_by_label;  // hash of the label -> index + 1 of the first file that has it
	struct map names;           // raw name -> text to show; owned if it is another
	struct map orphans;         // frame without a file -> struct answer, owned
	struct answer *nobody;      // for ids out of range
	struct places places;       // kept for its memory
	struct mapped **expected;   // that a thread opens
	size_t expected_count, expected_capacity;
	struct thread *thread; // NULL: it has ended
};

static struct answer *answer_new(size_t count)
{
	struct answer *answer = mem_alloc(1, sizeof *answer + count * sizeof answer->symbols[0]);

	ASSERT(count > 0); // symbols_find promises one at least
	answer->count = count;
	return answer;
}

// If no server of debuginfod can be asked, that is a remark and no error: most names come from
// elsewhere.
struct symbols *symbols_new(const struct reader *reader, const struct symbols_options *options)
{
	struct symbols *symbols = mem_alloc(1, sizeof *symbols);
	struct err err;

	symbols->reader = reader;
	// An answer that is always there: an id that is out of range, as in a damaged trace, gets
	// it.
	symbols->nobody = answer_new(1);
	symbols->nobody->symbols[0].module = "";
	symbol_path_add_environment(&symbols->symbol_path, &symbols->remarks);
	if (!options)
		return symbols;
	symbols->mangled = options->mangled;
	symbols->directories = options->path ? mem_copy_text(options->path) : NULL;
	if (options->debuginfod) {
		symbols->debuginfod = debuginfod_new(&err);
		if (!symbols->debuginfod)
			remarks_add(&symbols->remarks, "%s", err.text);
	}
	return symbols;
}

static void free_answers(struct map *answers)
{
	uint64_t key, value;
	size_t at = 0;

	// Values of the map are pointers, as numbers.
	while (map_next(answers, &at, &key, &value))
		mem_free((void *)(uintptr_t)value);
	map_fini(answers);
}

// A name that needed no other text is borrowed from its file, and is its own text here.
static void free_names(struct map *names)
{
	uint64_t raw, text;
	size_t at = 0;

	while (map_next(names, &at, &raw, &text))
		if (text != raw)
			mem_free((void *)(uintptr_t)text);
	map_fini(names);
}

void symbols_free(struct symbols *symbols)
{
	if (!symbols)
		return;
	thread_join(symbols->thread);
	for (size_t i = 0; i < symbols->files_count; i++) {
		struct mapped *file = symbols->files[i];

		free_answers(&file->answers);
		symbols_file_close(file->file);
		remarks_fini(&file->remarks);
		MEM_FREE(file->path, file);
	}
	mem_free(symbols->files);
	MAP_FINI(&symbols->files_by_hash, &symbols->files_by_module, &symbols->files_by_label);
	free_names(&symbols->names);
	free_answers(&symbols->orphans);
	debuginfod_free(symbols->debuginfod);
	symbol_path_fini(&symbols->symbol_path);
	remarks_fini(&symbols->remarks);
	places_fini(&symbols->places);
	MEM_FREE(symbols->directories, symbols->nobody, symbols->expected, symbols);
}

#define HASH_SEED UINT64_C(0xcbf29ce484222325)

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t length)
{
	const uint8_t *at = bytes;

	// FNV-1a: files are few, and what is hashed is short.
	for (size_t i = 0; i < length; i++)
		hash = (hash ^ at[i]) * 0x100000001b3u;
	return hash;
}

// In a process of 32 bits Windows shows another file under the same path.
static uint64_t memory_bytes(const struct trace_module *module)
{
	return str_is_windows_path(module->path) ? module->end - module->start : 0;
}

static uint64_t hash_identity(const struct trace_module *module, uint64_t seed)
{
	uint64_t hash = hash_bytes(HASH_SEED ^ seed, module->path, strlen(module->path));
	uint64_t memory = memory_bytes(module);

	if (memory > 0)
		hash = hash_bytes(hash, &memory, sizeof memory);
	hash = hash_bytes(hash, module->build_id, module->build_id_length);
	hash = hash_bytes(hash, &module->file_size, sizeof module->file_size);
	return hash_bytes(hash, &module->file_mtime_ns, sizeof module->file_mtime_ns);
}

// The file's name in a bundle, so two files must not have the same. Where there is no build-id it
// is a text and two hashes of path, size and time: no linker makes a build-id of 24 bytes.
static void make_label(struct mapped *file, const struct trace_module *module)
{
	uint64_t hashes[2] = { hash_identity(module, 0), hash_identity(module, 1) };

	if (file->build_id_length > 0) {
		memcpy(file->label, file->build_id, file->build_id_length);
		file->label_length = file->build_id_length;
		return;
	}
	memcpy(file->label, "no-id---", 8);
	memcpy(file->label + 8, hashes, sizeof hashes);
	file->label_length = 8 + sizeof hashes;
}

// A file that was replaced between two processes of one recording is two files.
static bool is_same(const struct mapped *file, const struct trace_module *module)
{
	return strcmp(file->path, module->path) == 0 &&
	       file->build_id_length == module->build_id_length &&
	       memcmp(file->build_id, module->build_id, file->build_id_length) == 0 &&
	       file->size_bytes == module->file_size && file->mtime_ns == module->file_mtime_ns &&
	       file->memory_bytes == memory_bytes(module);
}

// Files of one label share a bundle: the same build-id at two paths, such as a library and its copy
// in a container. It is packed under the number of the first.
static size_t add_file(struct symbols *symbols, const struct trace_module *module)
{
	const struct trace_process *process = reader_process(symbols->reader, module->process);
	struct mapped *file = mem_alloc(1, sizeof *file);
	uint64_t *first;

	ASSERT(module->build_id_length <= LABEL_MAX);
	file->path = mem_copy_text(module->path);
	file->build_id_length = module->build_id_length;
	memcpy(file->build_id, module->build_id, file->build_id_length);
	file->size_bytes = module->file_size;
	file->mtime_ns = module->file_mtime_ns;
	file->memory_bytes = memory_bytes(module);
	file->bits = process ? process->bits : 0;
	make_label(file, module);
	*MEM_ADD(symbols->files, symbols->files_count, symbols->files_capacity) = file;
	first = map_put(&symbols->files_by_label,
			hash_bytes(HASH_SEED, file->label, file->label_length), NULL);
	// For example libz.so at /usr/lib (file 3) and in a container (file 9), with one build-id:
	// the label of both leads to 3, and what is packed for either is packed once.
	if (*first == 0)
		*first = symbols->files_count;
	file->pack_as = (size_t)*first - 1;
	return symbols->files_count - 1;
}

// Who had it mapped when the recording ended: a server that was attached to and left lives on.
static void note_living(const struct symbols *symbols, struct mapped *file,
			const struct trace_module *module)
{
	const struct trace_process *process = reader_process(symbols->reader, module->process);

	if (process && process->exit == TRACE_EXIT_UNKNOWN)
		file->pid = process->pid;
}

// A program that executes itself by a mount of its own, as crun does (open_tree), has the path "/"
// there, whose file nothing can open. What has the same build-id elsewhere is the same file.
static const struct trace_module *where_it_is(const struct symbols *symbols,
					      const struct trace_module *module)
{
	ASSERT(module->path != NULL);
	if (strcmp(module->path, "/") != 0 || module->build_id_length == 0)
		return module;
	for (module_id id = 1; id < reader_modules_count(symbols->reader); id++) {
		const struct trace_module *other = reader_module(symbols->reader, id);

		if (strcmp(other->path, "/") != 0 &&
		    other->build_id_length == module->build_id_length &&
		    memcmp(other->build_id, module->build_id, module->build_id_length) == 0)
			return other;
	}
	return module;
}

// The file of a module, the same for all processes that mapped it. A module that was met before is
// found by its id; else by what identifies the file. Two files whose hashes are equal take turns in
// the slot: each is then opened anew for each module, which costs time and no name.
static struct mapped *find_file(struct symbols *symbols, const struct trace_module *module)
{
	// Modules are many (each process maps libc again), files are few.
	uint64_t *by_module = map_put(&symbols->files_by_module, module->id, NULL);
	const struct trace_module *there;
	uint64_t *by_hash;

	if (*by_module != 0)
		return symbols->files[*by_module - 1];
	there = where_it_is(symbols, module);
	by_hash = map_put(&symbols->files_by_hash, hash_identity(there, 0), NULL);
	if (*by_hash == 0 || !is_same(symbols->files[*by_hash - 1], there))
		*by_hash = add_file(symbols, there) + 1;
	note_living(symbols, symbols->files[*by_hash - 1], module);
	ASSERT(*by_hash > 0 && *by_hash <= symbols->files_count);
	*by_module = *by_hash;
	return symbols->files[*by_hash - 1];
}

static void open_bundle(struct symbols *symbols, struct mapped *file)
{
	size_t size = 0;
	const void *bytes = reader_bundle(symbols->reader, file->label, file->label_length, &size);
	struct err err;

	if (!bytes)
		return;
	file->bundled = symbols_bundle_open(&file->bundle, bytes, size, &err);
	if (!file->bundled)
		remarks_add(&symbols->remarks, "%s: %s", file->path, err.text);
}

static void open_file(struct symbols *symbols, struct mapped *file, struct remarks *remarks)
{
	struct symbols_file_identity identity = {
		.path = file->path,
		.build_id = file->build_id,
		.build_id_length = file->build_id_length,
		.size_bytes = file->size_bytes,
		.mtime_ns = file->mtime_ns,
		.memory_bytes = file->memory_bytes,
		.bits = file->bits,
		.pid = file->pid,
	};
	struct search search = {
		.directories = symbols->directories,
		.debuginfod = symbols->debuginfod,
		.symbol_path = &symbols->symbol_path,
		.remarks = remarks,
	};

	file->file = symbols_file_open(&identity, &search);
}

// What was remarked on when it was opened ahead is said now, as it is now that it is needed. So the
// notes of a report are those, in the order, that they would be if no file was opened ahead: of a
// file that is not needed after all nothing is said.
static void need_file(struct symbols *symbols, struct mapped *file)
{
	thread_join(symbols->thread);
	symbols->thread = NULL;
	if (!file->file)
		open_file(symbols, file, &symbols->remarks);
	for (size_t i = 0; i < file->remarks.count; i++)
		remarks_add(&symbols->remarks, "%s", file->remarks.lines[i]);
	remarks_fini(&file->remarks);
}

// The places at `offset` into symbols->places.
static void find_places(struct symbols *symbols, struct mapped *file, uint64_t offset)
{
	// In order of how sure they are: what travelled with the trace was looked up where it was
	// recorded.
	places_clear(&symbols->places);
	if (!file->opened) {
		file->opened = true;
		open_bundle(symbols, file);
	}
	if (file->bundled && symbols_bundle_find(&file->bundle, offset, &symbols->places))
		return;
	need_file(symbols, file);
	// It adds one place at least, if only an empty one, so an answer is never without one.
	symbols_file_find(file->file, offset, &symbols->places);
}

// The text to show for a raw name. Demangling is the most expensive part of an answer, and a name
// comes again in many frames, by the same pointer: each is done once.
static const char *show(struct symbols *symbols, const char *raw)
{
	uint64_t *text;
	const char *version;
	char *readable;

	if (!raw)
		return NULL;
	text = map_put(&symbols->names, (uintptr_t)raw, NULL);
	if (*text == 0) {
		// Symbol tables write versions behind names: memcpy@@GLIBC_2.14.
		// So do Windows' the bytes of arguments: f@8. Microsoft's C++ names begin with ?.
		version = raw[0] != '?' ? strchr(raw, '@') : NULL;
		readable = version && version > raw ? mem_copy_bytes(raw, (size_t)(version - raw))
						    : NULL;
		if (!symbols->mangled) {
			char *shown = demangle(readable ? readable : raw);

			if (shown) {
				mem_free(readable);
				readable = shown;
			}
		}
		*text = readable ? (uintptr_t)readable : (uintptr_t)raw;
	}
	return (const char *)(uintptr_t)*text;
}

// symbols->places holds one answer at a time, in memory that is used again; what is kept is a list
// of its own. Texts in it are the file's, or those of symbols->names.
static struct answer *answer_from_file(struct symbols *symbols, struct mapped *file,
				       uint64_t offset)
{
	// Nothing is put into this map before the slot is set: it stays where it is.
	uint64_t *slot = map_put(&file->answers, offset, NULL);
	struct answer *answer;

	if (*slot != 0)
		return (struct answer *)(uintptr_t)*slot;
	find_places(symbols, file, offset);
	ASSERT(symbols->places.count > 0);
	answer = answer_new(symbols->places.count);
	for (size_t i = 0; i < answer->count; i++) {
		const struct place *place = &symbols->places.items[i];

		answer->symbols[i] = (struct symbol){
			.function = show(symbols, place->function),
			.file = place->file,
			.line = place->line,
			.module = file->path,
			.offset = offset,
			.inlined = i + 1 < answer->count,
			.bare = place->bare,
		};
	}
	*slot = (uintptr_t)answer;
	return answer;
}

// For frames in no file, and for frames that the trace itself names.
static struct answer *answer_orphan(struct symbols *symbols, const struct trace_frame *frame,
				    struct mapped *file, uint64_t offset)
{
	uint64_t *slot = map_put(&symbols->orphans, frame->id, NULL);
	const struct trace_name *names;
	struct answer *answer;
	size_t count = 0;

	if (*slot != 0)
		return (struct answer *)(uintptr_t)*slot;
	names = reader_frame_names(symbols->reader, frame->id, &count);
	answer = answer_new(names && count > 0 ? count : 1);
	for (size_t i = 0; i < answer->count; i++) {
		struct symbol *symbol = &answer->symbols[i];

		symbol->module = file ? file->path : "";
		symbol->offset = offset;
		symbol->inlined = i + 1 < answer->count;
		if (i >= count)
			continue;
		symbol->function = *names[i].function ? names[i].function : NULL;
		symbol->file = *names[i].file ? names[i].file : NULL;
		symbol->line = names[i].line;
	}
	*slot = (uintptr_t)answer;
	return answer;
}

const struct symbol *symbols_find(struct symbols *symbols, frame_id id, size_t *count)
{
	const struct trace_frame *frame = id != 0 ? reader_frame(symbols->reader, id) : NULL;
	const struct trace_module *module;
	struct answer *answer = symbols->nobody;
	struct mapped *file = NULL;
	size_t names_count = 0;
	uint64_t offset;

	if (frame) {
		module = frame->module != 0 ? reader_module(symbols->reader, frame->module) : NULL;
		// Without a module the address itself is what can be said (generated code), but of
		// a line of an interpreted program it is only a number.
		offset = module                              ? frame->pc - module->bias
			 : frame->flags & TRACE_FRAME_SOURCE ? 0
							     : frame->pc;
		if (module)
			file = find_file(symbols, module);
		// The trace's own names (of generated code, of an interpreter's lines) are better
		// than a file's.
		if (!file ||
		    (reader_frame_names(symbols->reader, id, &names_count) && names_count > 0))
			answer = answer_orphan(symbols, frame, file, offset);
		else
			answer = answer_from_file(symbols, file, offset);
	}
	*count = answer->count;
	return answer->symbols;
}

// Windows modules have a path of their own, debuginfod a connection, and what is in a bundle may
// need no file. A program has some dozens of files at most in the stacks that are shown, so that a
// list is enough.
static void expect_file(struct symbols *symbols, struct mapped *file)
{
	size_t size;

	ASSERT(!symbols->thread);
	for (size_t i = 0; i < symbols->expected_count; i++)
		if (symbols->expected[i] == file)
			return;
	if (!file->file && !file->memory_bytes &&
	    !reader_bundle(symbols->reader, file->label, file->label_length, &size))
		*MEM_ADD(symbols->expected, symbols->expected_count, symbols->expected_capacity) =
			file;
}

// One file is mostly asked for by many frames in a row: a library calls itself. While the thread
// runs nothing is added to what it goes through.
void symbols_expect(struct symbols *symbols, stack_id id)
{
	const struct trace_module *last = NULL, *module;
	const struct trace_frame *frame;

	if (symbols->thread || symbols->debuginfod)
		return;
	for (const struct trace_stack *stack; (stack = reader_stack(symbols->reader, id)) && id;
	     id = stack->parent) {
		frame = reader_frame(symbols->reader, stack->frame);
		module = frame && frame->module ? reader_module(symbols->reader, frame->module)
						: NULL;
		if (module && module != last)
			expect_file(symbols, find_file(symbols, module));
		last = module;
	}
}

// In the thread. What it finds, and what it has to say, is in the file until need_file.
static void *open_expected(void *context)
{
	struct symbols *symbols = context;

	for (size_t i = 0; i < symbols->expected_count; i++)
		open_file(symbols, symbols->expected[i], &symbols->expected[i]->remarks);
	symbols->expected_count = 0;
	return NULL;
}

// Without a thread each is opened when it is needed.
void symbols_open_expected(struct symbols *symbols)
{
	if (!symbols->thread && symbols->expected_count > 0)
		symbols->thread = thread_start(open_expected, symbols);
}

// Is there anything in the places that a module and an offset do not say?
static bool is_worth_packing(const struct places *places)
{
	for (size_t i = 0; i < places->count; i++)
		if (places->items[i].function || places->items[i].file)
			return true;
	return false;
}

// A bundle under way for each file.
struct packing {
	struct symbols_bundle_maker **makers; // by file; NULL: nothing to pack
	size_t count, capacity;
	struct map *seen; // by file: offsets that are in
};

// The lists grow with the files that frames have led to: find_file may have added one. Frames of
// two processes may be one offset of one file, which is packed once.
static void pack_frame(struct symbols *symbols, struct packing *packing,
		       const struct trace_frame *frame)
{
	const struct trace_module *module =
		frame && frame->module != 0 ? reader_module(symbols->reader, frame->module) : NULL;
	struct mapped *file;
	uint64_t offset;
	size_t at;
	bool added;

	if (!module)
		return;
	file = find_file(symbols, module);
	at = file->pack_as;
	if (at >= packing->count) {
		size_t count = symbols->files_count;

		packing->makers = mem_resize(packing->makers, count, sizeof *packing->makers);
		packing->seen = mem_resize(packing->seen, count, sizeof *packing->seen);
		memset(packing->makers + packing->count, 0,
		       (count - packing->count) * sizeof *packing->makers);
		memset(packing->seen + packing->count, 0,
		       (count - packing->count) * sizeof *packing->seen);
		packing->count = count;
	}
	offset = frame->pc - module->bias;
	// By offset: 40 processes that call malloc at one place in libc pack it once.
	map_put(&packing->seen[at], offset, &added);
	if (!added)
		return;
	find_places(symbols, file, offset);
	if (!is_worth_packing(&symbols->places))
		return;
	if (!packing->makers[at])
		packing->makers[at] = symbols_bundle_maker_new();
	symbols_bundle_add(packing->makers[at], offset, &symbols->places);
}

// After `sink` has failed it is given no more, but all that was made is still freed.
bool symbols_pack(struct symbols *symbols, symbols_pack_sink *sink, void *opaque, struct err *err)
{
	struct packing packing = { 0 };
	bool ok = true;

	for (frame_id id = 1; id < reader_frames_count(symbols->reader); id++)
		pack_frame(symbols, &packing, reader_frame(symbols->reader, id));
	for (size_t i = 0; i < packing.count; i++) {
		const struct mapped *file = symbols->files[i];
		size_t size;
		void *bytes;

		map_fini(&packing.seen[i]);
		if (packing.makers[i] && ok) {
			bytes = symbols_bundle_take(packing.makers[i], &size);
			ok = sink(opaque, file->label, file->label_length, bytes, size, err);
			mem_free(bytes);
		}
		symbols_bundle_maker_free(packing.makers[i]);
	}
	MEM_FREE(packing.makers, packing.seen);
	return ok;
}

// Also where a bundle has the names: what this machine lacks is to be said as well.
size_t symbols_open_all(struct symbols *symbols)
{
	// Each file is opened, however many modules lead to it; for a large program that is some
	// hundred.
	for (module_id id = 1; id < reader_modules_count(symbols->reader); id++) {
		const struct trace_module *module = reader_module(symbols->reader, id);
		struct mapped *file = module ? find_file(symbols, module) : NULL;

		if (!file)
			continue;
		if (!file->opened)
			open_bundle(symbols, file);
		file->opened = true;
		need_file(symbols, file);
	}
	return symbols->files_count;
}

struct symbols_source symbols_source(const struct symbols *symbols, size_t index)
{
	const struct mapped *file;
	struct symbols_source source;

	ASSERT(index < symbols->files_count);
	file = symbols->files[index];
	ASSERT(file->file != NULL); // by symbols_open_all
	source = (struct symbols_source){
		.path = file->path,
		.build_id = file->build_id,
		.build_id_length = file->build_id_length,
	};
	symbols_file_status(file->file, &source.status);
	if (file->bundled)
		source.status.names = "bundle";
	return source;
}

size_t symbols_notes(const struct symbols *symbols, const char *const **lines)
{
	*lines = (const char *const *)symbols->remarks.lines;
	return symbols->remarks.count;
}
