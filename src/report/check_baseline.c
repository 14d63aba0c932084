// The text of a baseline: sections of figures, named by the filters that they were found with.
#include "report/check.h"

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
	return text.length ? str_take(&text) : mem_copy_text("all");
}

// A line without the blanks around it, into `line`; what follows it. NULL: no more.
static const char *take_line(const char *text, char *line, size_t size)
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
	if (kept >= size)
		kept = size - 1;
	memcpy(line, from, kept);
	line[kept] = '\0';
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

bool check_read_baseline(const char *path, const char *text, const char *section,
			 struct check_limit limits[static CHECK_FIGURES], struct err *err)
{
	bool ours = false;
	char line[1024];

	for (unsigned number = 1; (text = take_line(text, line, sizeof line)); number++) {
		enum check_figure figure;
		uint64_t value;

		if (!*line || *line == '#')
			continue;
		if (is_header(line)) {
			ours = is_header_of(line, section);
			continue;
		}
		figure = take_figure(line, &value);
		if (figure == CHECK_FIGURES)
			return err_set(err, ERR_USAGE,
				       "%s: line %u: a figure and its limit were expected (peak = "
				       "1048576)",
				       path, number);
		if (ours && !limits[figure].given)
			limits[figure] = (struct check_limit){ true, true, value };
	}
	return true;
}

// The figures of this run, and what the baseline had where that stays.
static void write_section(const struct check *check, const uint64_t old[static CHECK_FIGURES],
			  const bool had[static CHECK_FIGURES], const char *section, bool force,
			  struct sink *sink)
{
	sink_format(sink, "[%s]\n", section);
	for (int figure = 0; figure < CHECK_FIGURES; figure++) {
		const struct check_row *row = &check->rows[figure];
		bool stays = had[figure] && (!row->known || (!force && row->value > old[figure]));

		if (stays || row->known)
			sink_format(sink, "%s = %" PRIu64 "\n", check_names[figure],
				    stays ? old[figure] : row->value);
	}
}

void check_write_baseline(const struct check *check, const char *text, const char *section,
			  bool force, struct sink *sink)
{
	uint64_t old[CHECK_FIGURES] = { 0 }, value;
	bool had[CHECK_FIGURES] = { false }, ours = false, written = false;
	const char *at = text;
	char line[1024];

	while ((at = take_line(at, line, sizeof line))) {
		enum check_figure figure = take_figure(line, &value);

		if (is_header(line))
			ours = is_header_of(line, section);
		if (!ours || figure == CHECK_FIGURES)
			continue;
		old[figure] = value;
		had[figure] = true;
	}
	if (!*text)
		sink_text(sink,
			  "# What tidemark check --baseline compares with; --update lowers it.\n");
	ours = false;
	for (at = text; (at = take_line(at, line, sizeof line));) {
		if (is_header(line))
			ours = is_header_of(line, section);
		if (ours && is_header(line) && !written)
			write_section(check, old, had, section, force, sink);
		written = written || ours;
		if (!ours || *line == '#' || !*line)
			sink_format(sink, "%s\n", line);
	}
	if (!written)
		write_section(check, old, had, section, force, sink);
}
