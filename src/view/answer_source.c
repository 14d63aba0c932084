// The program's own text, where the trace's debug information names it.
//
// A page may show what a line of a stack looks like, and no other file: the trace's own debug
// information must name it. For example "module=/usr/bin/app&file=../src/parse.c&around=120": named
// by a frame of app; not rooted, so looked for under --source as src/parse.c, then as parse.c;
// lines 100 to 140 are given.
#include "view/answer.h"

#include "base/mem.h"
#include "os/file.h"

#include <string.h>

enum { SOURCE_BYTES_MAX = 8 << 20, LINES_DEFAULT = 41, LINES_MAX = 2000 };

// Whether any frame of the module is on a line of that file.
// Goes through all frames: asked once for a click, so no table is kept.
static bool is_named(const struct opened *opened, const char *module, const char *file)
{
	for (frame_id id = 1; id < reader_frames_count(opened->reader); id++) {
		size_t count;
		const struct symbol *symbols = names_find(opened->names, id, &count);

		for (size_t i = 0; i < count; i++)
			if (symbols[i].file && strcmp(symbols[i].file, file) == 0 &&
			    (strcmp(symbols[i].module, module) == 0 ||
			     (!*module && names_is_script(&symbols[i]))))
				return true;
	}
	return false;
}

// Whether any part of the path is "..".
static bool climbs(const char *path)
{
	static const char slashes[] = "/\\"; // as Windows has them, too

	ASSERT(path);
	for (const char *at = path; at; at = strpbrk(at, slashes)) {
		at += strspn(at, slashes);
		if (strncmp(at, "..", 2) == 0 && (at[2] == '\0' || strchr(slashes, at[2])))
			return true;
	}
	return false;
}

// As it is named; then under the root, with fewer and fewer folders in front.
static bool read_source(const struct viewer_options *options, const char *file, struct str *text)
{
	struct err ignored;

	if (file_is_rooted(file) && file_read_regular(file, SOURCE_BYTES_MAX, text, &ignored))
		return true;
	if (!options->source_root || climbs(file))
		return false;
	for (const char *part = file; part; part = strpbrk(part, "/\\")) {
		struct str path = { 0 };
		bool good;

		part += strspn(part, "/\\");
		str_format(&path, "%s/%s", options->source_root, part);
		good = file_read_regular(str_get(&path), SOURCE_BYTES_MAX, text, &ignored);
		str_fini(&path);
		if (good)
			return true;
	}
	return false;
}

// The lines from `first` on, at most `count`.
static void write_lines(const struct str *text, uint64_t first, uint64_t count, struct sink *sink)
{
	const char *at = str_get(text), *end = at + text->length;

	ASSERT(first > 0);
	for (uint64_t line = 1; at < end && line < first + count; line++) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *next = newline ? newline + 1 : end;

		if (line >= first)
			sink_write(sink, at, (size_t)(next - at));
		at = next;
	}
}

// What is no text, or is not there, is refused with the same words as what is not named: the answer
// tells nothing of which files exist.
bool answer_source(struct answer *answer, struct err *err)
{
	const char *module, *file;
	uint64_t around = 0, lines = LINES_DEFAULT, first;
	struct str text = { 0 };

	if (!params_take(&answer->params, "module", &module, err) ||
	    !params_take(&answer->params, "file", &file, err) ||
	    !params_take_number(&answer->params, "around", 1, UINT32_MAX, &around, err) ||
	    !params_take_number(&answer->params, "lines", 1, LINES_MAX, &lines, err) ||
	    !params_check_taken(&answer->params, err))
		return false;
	if (!module || !file)
		return err_set(err, ERR_USAGE, "needs 'module' and 'file'");
	if (!is_named(&answer->query_queue->opened, module, file) ||
	    !read_source(&answer->viewer->options, file, &text) ||
	    memchr(str_get(&text), '\0', text.length)) {
		str_fini(&text);
		return answer_refuse(answer, REFUSAL_PATH, err,
				     "the trace does not name that file, or it is not there");
	}
	first = around > lines / 2 ? around - lines / 2 : 1;
	answer->reply->is_text = true;
	answer->reply->first_line = first;
	write_lines(&text, first, lines, answer->sink);
	str_fini(&text);
	return true;
}
