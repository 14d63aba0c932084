// symbols: from a code address in a module to function, file, line and inline frames.
//
// Lazy: a module's files are opened when the first of its addresses is asked for. Names that the
// trace itself gives to a frame win; then those in its bundle; then, by build-id: the file itself,
// /usr/lib/debug/.build-id, the .gnu_debuglink file, .gnu_debugdata (a compressed symbol table
// inside the file); DWARF first, then .symtab, then .dynsym. A file whose build-id, or (without
// build-id) size and time, differ from what was recorded is not used, and symbols_notes says so.
// debuginfod only if asked for. Windows modules have a search of their own (pe_file.h). C++
// (Itanium) and Rust (legacy and v0) names are demangled.
//
// One thread asks. Knows nothing of allocations.
#pragma once

#include "base/err.h"
#include "symbols/symbols_status.h"
#include "trace/reader.h"

struct symbols;

struct symbols_options {
	const char *path; // extra directories, ':'-separated, searched first; NULL: none
	bool debuginfod;  // ask debuginfod for what is missing
	bool mangled;     // do not demangle
};

// One function at an address. For an address inside inlined code there are several, innermost
// first; all but the last are `inlined`.
struct symbol {
	const char *function; // NULL: not known
	const char *file;     // NULL: not known
	uint32_t line;        // 0: not known
	const char *module;   // path of the module; "" for generated code
	uint64_t offset;      // address in the module's file (what addr2line takes)
	bool inlined;
	bool bare; // nothing says which namespaces and classes `function` is in
};

// `reader` is borrowed for the life of the symbols.
struct symbols *symbols_new(const struct reader *reader, const struct symbols_options *options);
void symbols_free(struct symbols *symbols);

// The functions at `frame`, innermost first. At least one. Strings and the array belong to
// `symbols` and stay valid until symbols_free. Cached by (module file, offset).
const struct symbol *symbols_find(struct symbols *symbols, frame_id frame, size_t *count);

// The names of a stack's frames will be asked for: their files are opened by a thread, while the
// caller does something else that needs no names. What comes of it is as if they were opened later.
void symbols_expect(struct symbols *symbols, stack_id stack);
// Nothing more is expected for now: the thread begins. It has ended before any other call answers.
void symbols_open_expected(struct symbols *symbols);

// Receives the names of one file, to be stored in the trace under `build_id` (writer_bundle). False
// with *err set ends the packing.
typedef bool symbols_pack_sink(void *opaque, const uint8_t *build_id, size_t build_id_length,
			       const void *bytes, size_t size, struct err *err);

// Look up every frame the reader knows (after reader_scan) and hand each file's names to `sink`,
// once per file. A file without a build-id gets a label of its own that no build-id has.
bool symbols_pack(struct symbols *symbols, symbols_pack_sink *sink, void *opaque, struct err *err);

// Where the names of one file come from. Texts belong to `symbols`.
struct symbols_source {
	const char *path; // as recorded
	const uint8_t *build_id;
	size_t build_id_length;
	struct symbols_status status;
};

// Open every file that the reader knows (after reader_scan), each once; returns how many, in the
// order of the trace.
size_t symbols_open_all(struct symbols *symbols);
// `index` counts from 0, below what symbols_open_all returned, and only after it.
struct symbols_source symbols_source(const struct symbols *symbols, size_t index);

// What could not be used and why, one line each ("libfoo.so.1 has changed since the recording").
size_t symbols_notes(const struct symbols *symbols, const char *const **lines);
