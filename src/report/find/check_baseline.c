// The text of a baseline: sections of figures, named by the filters that they were found with.
#include "report/find/check.h"

#include "base/mem.h"

#include <inttypes.h>
#include <string.h>

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

// "peak = 123"; CHECK_FIGURES: it is none.
static enum check_figure take_figure(const char *line, uint64_t *value)
{
	size_t length = strcspn(line, " \t=");
	const char *rest = line + length + strspn(line + length, " \t=");

	for (int figure = 0; figure < CHECK_FIGURES; figure++)
		if (strlen(check_names[figure]) == length &&
		    memcmp(check_names[figure], line, length) == 0 && str_parse_count(rest, value))
			return figure;
	return CHECK_FIGURES;
}

// Take one line that is no comment. False: it is nothing that a baseline has.
static bool read_line(const char *line, const char *section, bool *ours,
		      struct check_limit limits[static CHECK_FIGURES])
{
	enum check_figure figure;
	uint64_t value;

	if (is_header(line)) {
		*ours = is_header_of(line, section);
		return true;
	}
	figure = take_figure(line, &value);
	if (figure == CHECK_FIGURES)
		return false;
	if (*ours && !limits[figure].given)
		limits[figure] = (struct check_limit){ true, true, value };
	return true;
}

bool check_read_baseline(const char *path, const char *text, const char *section,
			 struct check_limit limits[static CHECK_FIGURES], struct err *err)
{
	bool ours = false, good = true;
	struct str line = { 0 };

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

// The figures of this run, and what the baseline had where that stays.
static void write_section(const struct check *check,
			  const struct check_limit old[static CHECK_FIGURES], const char *section,
			  bool force, struct sink *sink)
{
	sink_format(sink, "[%s]\n", section);
	for (int figure = 0; figure < CHECK_FIGURES; figure++) {
		const struct check_row *row = &check->rows[figure];
		bool stays = old[figure].given &&
			     (!row->known || (!force && row->value > old[figure].most));

		if (stays || row->known)
			sink_format(sink, "%s = %" PRIu64 "\n", check_names[figure],
				    stays ? old[figure].most : row->value);
	}
}

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
	str_fini(&line);
}
