// A module is a line of what kind of names it has, and its path; below it what was opened and what
// was looked for in vain, as far as that is not the path itself. For example
//
//     dwarf    /lib/x86_64-linux-gnu/libc.so.6
//              debug /usr/lib/debug/.build-id/93/ac61….debug
//     dwarf    /home/me/app
//
// What is missing is named by its path in a store of such files. --missing lists these alone, for a
// script that fetches them: each once, however many modules ask for it.
#include "report/ask/sources.h"

#include "base/json.h"
#include "base/map.h"
#include "base/str.h"
#include "report/info.h"

#include <string.h>

enum { NAMES_COLUMNS = 9, PATH_COLUMNS = 400 };

static void write_found(struct paper *paper, const char *path, const char *as)
{
	if (!path)
		return;
	paper_format(paper, PAPER_DIM, "%*s%s ", NAMES_COLUMNS, "", as);
	paper_foreign(paper, PAPER_DIM, path, PATH_COLUMNS);
	sink_text(paper->sink, "\n");
}

// A line for each file of the trace, and below it where its names came from, or what would have
// them.
void sources_write_text(struct symbols *symbols, struct paper *paper)
{
	size_t count = symbols_open_all(symbols), missing = 0;
	const char *const *notes;

	for (size_t i = 0; i < count; i++) {
		struct symbols_source source = symbols_source(symbols, i);
		const struct symbols_status *status = &source.status;

		paper_field(paper, status->names ? PAPER_BOLD : PAPER_WARNING,
			    status->names ? status->names : "nothing", NAMES_COLUMNS, false);
		paper_foreign(paper, PAPER_PLAIN, *source.path ? source.path : "(no path)",
			      PATH_COLUMNS);
		sink_text(paper->sink, "\n");
		if (status->file && strcmp(status->file, source.path) != 0)
			write_found(paper, status->file, "file");
		write_found(paper, status->debug, "debug");
		write_found(paper, status->missing_file, "missing");
		write_found(paper, status->missing_debug, "missing");
		missing += (status->missing_file != NULL) + (size_t)(status->missing_debug != NULL);
	}
	count = symbols_notes(symbols, &notes);
	for (size_t i = 0; i < count; i++)
		paper_paragraph(paper, PAPER_WARNING, "symbols", notes[i]);
	if (missing > 0)
		paper_format(paper, PAPER_DIM,
			     missing == 1 ? "1 file is missing: --missing lists its key\n"
					  : "%zu files are missing: --missing lists their keys\n",
			     missing);
}

// True: the key was new and is written. Keys are names from a trace: what is no character of a line
// is written as "?", so that a line stays a line. They are compared by their FNV-1a hash.
static bool write_key(struct sink *sink, struct map *seen, const char *key)
{
	uint64_t hash = 0xcbf29ce484222325u;
	bool added;

	if (!key)
		return false;
	for (const char *at = key; *at; at++)
		hash = (hash ^ (unsigned char)*at) * 0x100000001b3u;
	map_put(seen, hash, &added);
	if (!added)
		return false;
	for (const char *at = key; *at; at++) {
		size_t control = str_control(at);

		sink_write(sink, control ? "?" : at, 1);
		at += control == 2;
	}
	sink_text(sink, "\n");
	return true;
}

// Returns how many lines were written.
size_t sources_write_missing(struct symbols *symbols, struct sink *sink)
{
	size_t count = symbols_open_all(symbols), written = 0;
	struct map seen = { 0 };

	for (size_t i = 0; i < count; i++) {
		struct symbols_source source = symbols_source(symbols, i);

		written += write_key(sink, &seen, source.status.missing_file);
		written += write_key(sink, &seen, source.status.missing_debug);
	}
	map_fini(&seen);
	return written;
}

// Notes come of opening the files, so they are asked for last.
void sources_write_json(struct symbols *symbols, bool complete, struct sink *sink)
{
	size_t count = symbols_open_all(symbols);
	const char *const *notes;
	struct json json;

	json_begin(&json, sink, true, "tidemark-symbols-1");
	json_kv_bool(&json, "complete", complete);
	json_kv_array(&json, "modules");
	for (size_t i = 0; i < count; i++) {
		struct symbols_source source = symbols_source(symbols, i);
		struct str build_id = { 0 };

		str_add_hex(&build_id, source.build_id, source.build_id_length);
		json_object_begin(&json);
		json_kv_string(&json, "path", source.path);
		json_kv_string(&json, "build_id", build_id.length ? build_id.text : NULL);
		json_kv_string(&json, "names", source.status.names);
		json_kv_string(&json, "file", source.status.file);
		json_kv_string(&json, "debug", source.status.debug);
		json_kv_string(&json, "missing_file", source.status.missing_file);
		json_kv_string(&json, "missing_debug", source.status.missing_debug);
		json_object_end(&json);
		str_fini(&build_id);
	}
	json_array_end(&json);
	json_kv_array(&json, "notes");
	count = symbols_notes(symbols, &notes);
	for (size_t i = 0; i < count; i++)
		json_string(&json, notes[i]);
	json_array_end(&json);
	json_end(&json);
}
