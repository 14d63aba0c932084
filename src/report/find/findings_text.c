// Findings for people: each with its sentence, how sure it is, what proves it, what to do.
//
// A finding is a heading ("growth#1  problem, likely"), its sentence, and lines with a label each:
//
//     growth#1  problem, likely
//                 parse keeps more and more: 40 MiB more in 60 s (700 KiB a second), …
//        why      steady: R² 0.999 of a straight line; …
//        figures  grown 40 MiB, blocks more 10,000, …
//        stack    parse  parse.c:120 …
//        do       find who should let these blocks go: …
//        see      tidemark growth app.tide --frame '^parse$'
#include "base/mem.h"
#include "report/find/findings_own.h"
#include "report/table/query_write.h"
#include "report/table/stack_text.h"

#include <inttypes.h>
#include <string.h>

enum { INDENT = 12, CALLERS_SHOWN = 6 };

// An address is a count by its unit, and the only one that is shown in hexadecimal.
static void add_figure(struct str *out, const struct findings_figure *figure)
{
	if (out->length)
		str_add(out, ", ");
	str_format(out, "%s ", figure->label);
	switch (figure->unit) {
	case FINDINGS_BYTES:
		str_add(out, STR_BYTES(figure->value));
		break;
	case FINDINGS_RATE:
		str_format(out, "%s/s", STR_BYTES(figure->value));
		break;
	case FINDINGS_TIME:
		str_add(out, STR_DURATION(figure->value));
		break;
	case FINDINGS_SHARE:
		str_format(out, "%.3f", (double)figure->value / 1000);
		break;
	default:
		if (strcmp(figure->key, "address") == 0)
			str_format(out, "0x%" PRIx64, figure->value);
		else
			str_add(out, STR_COUNT(figure->value));
		break;
	}
}

static void write_label(struct paper *paper, const char *label)
{
	paper_text(paper, PAPER_DIM, "   ");
	paper_field(paper, PAPER_DIM, label, INDENT - 3, false);
}

// A label and its text, broken at the last blank that fits; a word that is longer than a line is
// not broken. Bytes are counted and not columns, which is at most a short line.
static void write_part(struct paper *paper, const char *label, const char *text)
{
	unsigned width = paper->width > INDENT + 20 ? paper->width - INDENT : 60;

	write_label(paper, label);
	while (*text) {
		size_t length = strlen(text), cut = length;

		if (length > width) {
			cut = width;
			while (cut > 0 && text[cut] != ' ')
				cut--;
			if (cut == 0)
				cut = strcspn(text, " ");
		}
		sink_write(paper->sink, text, cut);
		sink_text(paper->sink, "\n");
		text += cut;
		while (*text == ' ')
			text++;
		if (*text)
			paper_format(paper, PAPER_PLAIN, "%*s", INDENT, "");
	}
}

static void write_stack(struct stack_text *stacks, const char *label, process_id process,
			stack_id stack)
{
	if (!stack)
		return;
	write_label(stacks->paper, label);
	stack_text_write(stacks, process, stack);
}

// What it would save at most, in up to three amounts; nothing where it is not known.
static void write_saves(struct paper *paper, const struct finding *finding)
{
	struct str text = { 0 };

	if (finding->saves_bytes)
		str_format(&text, "up to %s at the %s", STR_BYTES(finding->saves_bytes),
			   finding->at_end ? "end" : "peak");
	if (finding->saves_calls)
		str_format(&text, "%s%s calls", text.length ? ", " : "up to ",
			   STR_COUNT(finding->saves_calls));
	if (finding->saves_ns > 0)
		str_format(&text, ", about %s of processor time as replayed",
			   STR_DURATION((uint64_t)finding->saves_ns));
	if (text.length)
		write_part(paper, "saves", str_get(&text));
	str_fini(&text);
}

// In the order of the questions: what, why we think so, by which figures, where, what to do, what
// it would save, where to see it.
static void write_finding(struct stack_text *stacks, const struct finding *finding)
{
	struct paper *paper = stacks->paper;
	struct findings_figure sums[FINDINGS_FIGURES_MAX];
	size_t sums_count = findings_together(finding, sums);
	struct str figures = { 0 }, together = { 0 };

	for (size_t i = 0; i < finding->figures_count; i++)
		add_figure(&figures, &finding->figures[i]);
	for (size_t i = 0; i < sums_count; i++)
		add_figure(&together, &sums[i]);
	paper_format(paper, PAPER_BOLD, "%s#%u", finding->kind->id, finding->number);
	paper_format(paper, finding->kind->class >= FINDINGS_PROBLEM ? PAPER_WARNING : PAPER_DIM,
		     "  %s, %s\n", findings_class_words[finding->kind->class],
		     findings_sure_words[finding->sure]);
	write_part(paper, "", finding->what);
	write_part(paper, "why", finding->why);
	if (figures.length)
		write_part(paper, "figures", str_get(&figures));
	if (together.length)
		write_part(paper, "together", str_get(&together));
	write_stack(stacks, "stack", finding->process, finding->stack);
	if (finding->other_role)
		write_stack(stacks, finding->other_role, finding->process, finding->other_stack);
	write_part(paper, "do", finding->advice);
	write_saves(paper, finding);
	write_label(paper, "see");
	sink_format(paper->sink, "tidemark %s\n\n", finding->command);
	STR_FINI(&figures, &together);
}

// Whether an earlier kind was not looked for by the same reason, and has named this one too.
static bool is_told(const struct findings *findings, size_t missed)
{
	ASSERT(missed < findings->missed_count);
	for (size_t i = 0; i < missed; i++)
		if (strcmp(findings->missed[i].why, findings->missed[missed].why) == 0)
			return true;
	return false;
}

// Kinds that lack the same thing share a line, under the first of them.
static void write_missed(const struct findings *findings, struct paper *paper)
{
	if (!findings->missed_count)
		return;
	paper_text(paper, PAPER_BOLD, "NOT LOOKED FOR\n");
	for (size_t i = 0; i < findings->missed_count; i++) {
		const char *why = findings->missed[i].why;
		struct str label = { 0 }, text = { 0 };
		const char *begin = " (and so: ";

		if (is_told(findings, i))
			continue;
		str_format(&label, "  %s", findings->missed[i].kind->id);
		str_add(&text, why);
		for (size_t j = i + 1; j < findings->missed_count; j++) {
			if (strcmp(findings->missed[j].why, why) != 0)
				continue;
			str_format(&text, "%s%s", begin, findings->missed[j].kind->id);
			begin = ", ";
		}
		str_add(&text, *begin == ',' ? ")" : "");
		paper_paragraph(paper, PAPER_DIM, str_get(&label), str_get(&text));
		STR_FINI(&label, &text);
	}
}

// "growth" is all findings of a kind, "growth#2" one of them.
bool findings_is_of(const struct finding *finding, const char *only)
{
	char id[64];

	snprintf(id, sizeof id, "%s#%u", finding->kind->id, finding->number);
	return !only || strcmp(only, finding->kind->id) == 0 || strcmp(only, id) == 0;
}

size_t findings_count_of(const struct findings *findings, const char *only)
{
	size_t count = 0;

	for (size_t i = 0; i < findings->count; i++)
		count += findings_is_of(&findings->list[i], only);
	return count;
}

// A kind without findings is an answer; "growth#7", of which there are two, is a mistake.
bool findings_check_only(const struct findings_page *page, struct err *err)
{
	if (!page->only || !strchr(page->only, '#') ||
	    findings_count_of(page->findings, page->only))
		return true;
	return err_set(err, ERR_USAGE,
		       "there is no finding %s in this trace (try: tidemark "
		       "findings %s)",
		       page->only, page->findings->path);
}

// What would have mattered: sites below that are in other tables.
static void write_nothing(const struct findings *findings, struct paper *paper)
{
	struct str text = { 0 };

	str_format(&text,
		   "%s or more, or %s calls or more, were looked for (of steady growth a quarter); "
		   "what is less, and what lived at exit, is in tidemark report",
		   STR_BYTES(findings_bytes_min(findings)),
		   STR_COUNT(findings_calls_min(findings)));
	paper_paragraph(paper, PAPER_PLAIN, "nothing found that matters", str_get(&text));
	sink_text(paper->sink, "\n");
	str_fini(&text);
}

// One that was asked for by name is shown with all callers and with the text of its kind. The limit
// of rows is of each kind: numbers count within it, so with 3 the findings #1 to #3 of every kind
// are shown.
bool findings_text(const struct findings_page *page, struct sink *sink, struct err *err)
{
	const struct findings *findings = page->findings;
	struct paper paper = { .sink = sink, .colour = page->colour, .width = page->width };
	struct stack_text stacks = query_write_stacks(
		findings->asked, &paper, INDENT, page->only ? 0 : CALLERS_SHOWN, page->all_frames);
	size_t left_out = 0;

	if (!findings_check_only(page, err))
		return false;
	if (page->only) {
		findings_explain(findings_kind_find(page->only), sink, page->width);
		sink_text(sink, "\n");
	}
	query_write_headline(findings->asked, &paper);
	if (!findings_count_of(findings, page->only))
		write_nothing(findings, &paper);
	for (size_t i = 0; i < findings->count; i++) {
		const struct finding *finding = &findings->list[i];

		if (!findings_is_of(finding, page->only))
			continue;
		if (page->only || !page->rows_max || finding->number <= page->rows_max)
			write_finding(&stacks, finding);
		else
			left_out++;
	}
	if (left_out)
		paper_format(&paper, PAPER_DIM, "… %zu more (-n 0 shows all)\n\n", left_out);
	if (!page->only)
		write_missed(findings, &paper);
	query_write_last(findings->asked, &stacks);
	return true;
}

// Of what a kind needs only that is said which `record` can be asked for. What an import lacks is
// said where that is asked (cannot_look).
void findings_explain(const struct findings_kind *kind, struct sink *sink, unsigned width)
{
	struct paper paper = { .sink = sink, .width = width };

	sink_format(sink, "%s: %s (%s)\n\n", kind->id, kind->title,
		    findings_class_words[kind->class]);
	paper_paragraph(&paper, PAPER_PLAIN, "how", kind->text);
	if (kind->needs & FINDINGS_FREE_STACKS)
		sink_text(sink, "needs: tidemark record --free-stacks\n");
	if (kind->needs & FINDINGS_EVERY_CALL)
		sink_text(sink, "needs: every call (no --sample)\n");
	if (kind->needs & (FINDINGS_SNAPSHOTS | FINDINGS_PAGES))
		sink_text(sink, "needs: snapshots of resident pages\n");
}
