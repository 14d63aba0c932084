// The text of a baseline: sections of figures, named by the filters that they were found with.
//
// For example, with a baseline of
//
//     [all]
//     peak = 1000
//     allocations = 50
//
// and a run that has a peak of 900 and 60 allocations, --update writes 900 and keeps 50: what was
// won is kept, and the 60 fail until --update --force takes them. Lines of other sections, and
// comments, are copied as they are.
#include "report/find/check.h"

#include "base/mem.h"

#include <inttypes.h>
#include <string.h>

// A control character would end the line or hide in it, so it becomes '?'. Two filters that differ
// only there would share a section.
char *check_section(const struct selection_words *words)
{
	struct str text = { 0 };

	for (int kind = 0; kind < SELECTION_KINDS; kind++)
		for (size_t i = 0; i < words->lists[kind].count; i++)
			str_format(&text, "%s--%s %s", text.length ? " " : "",
				   selection_names[kind], words->lists[kind].words[i]);
	for (size_t i = 0; i < text.length; i++)
		if ((unsigned char)text.text[i] < ' ')
			text.text[i] = '?';
	return text.length ? str_take(&text) : mem_copy_text("all");
}

// A line without the blanks around it, into `line`; what follows it. NULL: no more.
static const char *take_line(const char *text, struct str *line)
{
	size_t length = strcspn(text, "\n"), kept = length;
	const char *from = text;

	if (!*text)
		return NULL;
	while (kept && strchr(" \t\r", *from)) {
		from++;
		kept--;
	}
	while (kept && strchr(" \t\r", from[kept - 1]))
		kept--;
	str_clear(line);
	str_add_bytes(line, from, kept);
	return text + length + (text[length] == '\n');
}

static bool is_header(const char *line)
{
	return *line == '[' && line[strlen(line) - 1] == ']';
}

static bool is_header_of(const char *line, const char *section)
{
	size_t length = strlen(section);

	return is_header(line) && strlen(line) == length + 2 &&
	       memcmp(line + 1, section, length) == 0;
}

// "123 125 120": at least one number, and nothing else.
static bool take_runs(const char *text, struct check_runs *runs)
{
	struct str word = { 0 };
	bool good = *text != 0;
	uint64_t value;

	while (good && *text) {
		size_t length = strcspn(text, " \t");

		str_clear(&word);
		str_add_bytes(&word, text, length);
		good = str_parse_count(str_get(&word), &value);
		if (good)
			check_runs_add(runs, value);
		text += length + strspn(text + length, " \t");
	}
	str_fini(&word);
	return good;
}

// "peak = 123"; CHECK_FIGURES: it is none. The caller frees the values, in either case.
static enum check_figure take_figure(const char *line, struct check_runs *runs)
{
	size_t length = strcspn(line, " \t=");
	const char *rest = line + length + strspn(line + length, " \t=");

	for (int figure = 0; figure < CHECK_FIGURES; figure++)
		if (strlen(check_names[figure]) == length &&
		    memcmp(check_names[figure], line, length) == 0 && take_runs(rest, runs))
			return figure;
	return CHECK_FIGURES;
}

// Take one line that is no comment. False: it is nothing that a baseline has.
// The first line of a figure counts, and a limit of the command line, which is set before, counts
// more.
static bool read_line(const char *line, const char *section, bool *ours,
		      struct check_limit limits[static CHECK_FIGURES])
{
	struct check_runs runs = { 0 };
	enum check_figure figure;

	if (is_header(line)) {
		*ours = is_header_of(line, section);
		return true;
	}
	figure = take_figure(line, &runs);
	if (figure != CHECK_FIGURES && *ours && !limits[figure].given)
		limits[figure] = (struct check_limit){ true, true, check_runs_most(&runs), runs };
	else
		mem_free(runs.values);
	return figure != CHECK_FIGURES;
}

// Stops at the first line that is none, with its number; limits of lines before it stay set.
bool check_read_baseline(const char *path, const char *text, const char *section,
			 struct check_limit limits[static CHECK_FIGURES], struct err *err)
{
	bool ours = false, good = true;
	struct str line = { 0 };

	// The first bytes of a trace (docs/format.md).
	if (strncmp(text, "\x89TIDE", 5) == 0)
		return err_set(err, ERR_USAGE,
			       "%s is a trace, not a baseline (try: --update, which makes one, or "
			       "tidemark diff, which compares two traces)",
			       path);

	for (unsigned number = 1; good && (text = take_line(text, &line)); number++) {
		const char *now = str_get(&line);

		good = !*now || *now == '#' || read_line(now, section, &ours, limits) ||
		       err_set(err, ERR_USAGE,
			       "%s: line %u: a figure and its limit were expected (peak = 1048576)",
			       path, number);
	}
	str_fini(&line);
	return good;
}

// All values, so that later runs can be compared with how much these differ; one, if they do not.
static void write_figure(enum check_figure figure, const struct check_runs *runs, struct sink *sink)
{
	size_t count = check_runs_vary(runs) ? runs->count : 1;

	ASSERT(figure < CHECK_FIGURES && runs);
	sink_format(sink, "%s =", check_names[figure]);
	for (size_t i = 0; i < count; i++)
		sink_format(sink, " %" PRIu64, runs->values[i]);
	sink_text(sink, "\n");
}

// The figures of this run, and what the baseline had where that stays.
// A figure stays at its old value if this run does not know it, or is not lower. With --force only
// the former holds.
static void write_section(const struct check *check,
			  const struct check_limit old[static CHECK_FIGURES], const char *section,
			  bool force, struct sink *sink)
{
	sink_format(sink, "[%s]\n", section);
	for (int figure = 0; figure < CHECK_FIGURES; figure++) {
		const struct check_row *row = &check->rows[figure];
		bool stays = old[figure].given &&
			     (!row->known ||
			      (!force && !check_runs_lower(&row->runs, &old[figure].runs)));

		if (stays || row->known)
			write_figure(figure, stays ? &old[figure].runs : &row->runs, sink);
	}
}

// The text was read before as a baseline, so it has no line that cannot be read. Of its own section
// the lines of figures are replaced by what write_section writes at the header; a section that is
// not there is put at the end.
void check_write_baseline(const struct check *check, const char *text, const char *section,
			  bool force, struct sink *sink)
{
	struct check_limit old[CHECK_FIGURES] = { 0 };
	bool ours = false, written = false;
	struct str line = { 0 };
	struct err ignored = { 0 };
	const char *at = text;

	check_read_baseline("", text, section, old, &ignored);
	if (!*text)
		sink_text(sink,
			  "# What tidemark check --baseline compares with; --update lowers it.\n");
	while ((at = take_line(at, &line))) {
		const char *now = str_get(&line);

		if (is_header(now))
			ours = is_header_of(now, section);
		if (ours && is_header(now) && !written)
			write_section(check, old, section, force, sink);
		written = written || ours;
		if (!ours || *now == '#' || !*now)
			sink_format(sink, "%s\n", now);
	}
	if (!written)
		write_section(check, old, section, force, sink);
	for (int figure = 0; figure < CHECK_FIGURES; figure++)
		mem_free(old[figure].runs.values);
	str_fini(&line);
}
