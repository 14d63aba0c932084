// Resident memory and who holds it, for people.
#include "report/find/rss_breakdown.h"
#include "report/table/query_write.h"
#include "report/table/stack_text.h"

// What a row has before who holds it: bytes (18), how many (9) and " x " (3).
enum { ROW_COLUMNS = 30 };

// A line: its title, its bytes, and their part of what smaps says in all.
static void write_figure(struct paper *paper, const char *title, uint64_t bytes, uint64_t whole)
{
	paper_format(paper, PAPER_BOLD, "  %-30s", title);
	paper_field(paper, PAPER_BOLD, STR_BYTES(bytes), 11, true);
	paper_format(paper, PAPER_PLAIN, "%8.2f %%\n", paper_percent(bytes, whole));
}

static void write_row(const struct rss_breakdown *rss_breakdown, struct stack_text *stacks,
		      const struct rss_breakdown_row *row)
{
	const struct reader *reader = rss_breakdown->asked->reader;
	const struct trace_process *process =
		reader_process(reader, rss_breakdown->header->process);
	const struct trace_file *file = reader_file(reader, row->file);
	struct paper *paper = stacks->paper;

	paper_field(paper, PAPER_PLAIN, STR_BYTES(row->bytes), 18, true);
	paper_field(paper, PAPER_DIM, STR_COUNT(row->count), 9, true);
	paper_text(paper, PAPER_DIM, " x ");
	// It ends the line by itself.
	if (row->stack) {
		stack_text_write(stacks, rss_breakdown->header->process, row->stack);
		return;
	}
	if (row->file && file)
		paper_foreign(paper, PAPER_PLAIN, file->path, paper->width - ROW_COLUMNS);
	else
		paper_format(paper, PAPER_DIM, "(anonymous memory, mapped %s)",
			     process && process->start == TRACE_START_ATTACH &&
					     row->line < RSS_BREAKDOWN_LIBC
				     ? "before it was attached to"
				     : "without a stack");
	sink_text(paper->sink, "\n");
}

// Rows of one line stand together, and of them the largest are first. The limit is of each line.
// What is beyond it is added up in one row, so that nothing of the line goes unsaid.
static void write_rows(const struct rss_breakdown *rss_breakdown, struct stack_text *stacks,
		       uint8_t line, uint64_t rows_max)
{
	uint64_t shown = 0;
	uint64_t rest = 0;
	uint64_t rest_count = 0;

	ASSERT(line <= RSS_BREAKDOWN_PURGED);
	for (size_t i = 0; i < rss_breakdown->rows_count; i++) {
		const struct rss_breakdown_row *row = &rss_breakdown->rows[i];

		if (row->line != line)
			continue;
		if (rows_max && shown >= rows_max) {
			rest += row->bytes;
			rest_count++;
			continue;
		}
		write_row(rss_breakdown, stacks, row);
		shown++;
	}
	if (!rest_count)
		return;
	paper_field(stacks->paper, PAPER_DIM, STR_BYTES(rest), 18, true);
	paper_format(stacks->paper, PAPER_DIM, "%9s   of %s more (-n 0 shows all)\n", "",
		     STR_COUNT(rest_count));
}

// The trace says why the recorder took the snapshot just then. A reason that this version does not
// know reads as one that was asked for.
static const char *reason_of(const struct trace_snapshot *snapshot)
{
	switch (snapshot->reason) {
	case TRACE_SNAPSHOT_RELEASE:
		return "before memory was given back";
	case TRACE_SNAPSHOT_EXIT:
		return "just before the process ended";
	case TRACE_SNAPSHOT_GROWTH:
		return "because memory had grown";
	default:
		return "because it was asked for";
	}
}

// Bytes that advice gave back, as the calls asked for them: pages that were not resident count, and
// pages that were given back twice count twice. So they have no part in the sum, and the percentage
// only compares them with what is resident: it can be more than 100.
static void write_purges(const struct rss_breakdown *rss_breakdown, struct stack_text *stacks,
			 uint64_t rows_max)
{
	if (!rss_breakdown->purges)
		return;
	sink_text(stacks->paper->sink, "\n");
	paper_text(stacks->paper, PAPER_BOLD, "GIVEN BACK BY ADVICE");
	paper_format(stacks->paper, PAPER_DIM,
		     "  until then, by %s calls of madvise; in no figure above\n",
		     STR_COUNT(rss_breakdown->purges));
	write_figure(stacks->paper, "purged", rss_breakdown->purged, rss_breakdown->smaps_bytes);
	write_rows(rss_breakdown, stacks, RSS_BREAKDOWN_PURGED, rows_max);
}

// What the allocator keeps free, told apart.
static void write_frees(const struct rss_breakdown *rss_breakdown, struct paper *paper)
{
	for (int part = 0; part < RSS_BREAKDOWN_FREES; part++) {
		if (!rss_breakdown->frees[part])
			continue;
		paper_field(paper, PAPER_PLAIN, STR_BYTES(rss_breakdown->frees[part]), 18, true);
		paper_format(paper, PAPER_PLAIN, "%12s%s\n", "",
			     rss_breakdown_free_title((enum rss_breakdown_free)part));
	}
}

// Whose blocks they are, where they are not those of the snapshot itself.
static void write_plateau(const struct rss_breakdown *rss_breakdown, struct paper *paper)
{
	const struct plateau *plateau = &rss_breakdown->plateau;
	uint64_t at_ns = rss_breakdown->header->time_ns;

	if (!plateau->bytes)
		return;
	paper_format(paper, PAPER_PLAIN,
		     "  blocks as they were %s before, when %s were alive; at the snapshot %s "
		     "were, and no memory\n  was given back in between\n",
		     STR_DURATION(at_ns > plateau->edge.time_ns ? at_ns - plateau->edge.time_ns
								: 0),
		     STR_BYTES(plateau->bytes), STR_BYTES(plateau->bytes_end));
}

// Each of these may be in the snapshot or not.
static void write_between(const struct rss_breakdown *rss_breakdown, struct paper *paper)
{
	const struct rss_breakdown_between *between = &rss_breakdown->between;
	uint64_t events = rss_breakdown->header->ended - rss_breakdown->header->began;

	if (rss_breakdown->header->ended <= rss_breakdown->header->began)
		return;
	paper_format(paper, PAPER_DIM,
		     "  %s event%s between the snapshot's beginning and its end: %s allocations "
		     "(%s),\n  %s frees and %s calls on virtual memory (%s) are of this process\n",
		     STR_COUNT(events), events == 1 ? " is" : "s are",
		     STR_COUNT(between->allocations), STR_BYTES(between->allocated_bytes),
		     STR_COUNT(between->frees), STR_COUNT(between->calls),
		     STR_BYTES(between->calls_bytes));
}

// What the kernel itself says. These figures were read one after the other while the program may
// have run, so they differ by what it did in between; they are shown so that a reader can judge the
// sum above.
static void write_witnesses(const struct rss_breakdown *rss_breakdown, struct paper *paper)
{
	const struct trace_snapshot *snapshot = rss_breakdown->header;

	bool smaps = !(snapshot->flags & TRACE_SNAPSHOT_NO_SMAPS);

	write_figure(paper, smaps ? "in all (smaps)" : "in all (by pages)",
		     rss_breakdown->smaps_bytes, rss_breakdown->smaps_bytes);
	if (rss_breakdown->difference)
		paper_format(paper, PAPER_PLAIN, "  %-30s%11s  %s in smaps than in the page map\n",
			     "of it",
			     STR_BYTES(rss_breakdown->difference < 0
					       ? (uint64_t)-rss_breakdown->difference
					       : (uint64_t)rss_breakdown->difference),
			     rss_breakdown->difference < 0 ? "less" : "more");
	if (smaps)
		paper_format(paper, PAPER_PLAIN, "  %-30s%11s\n", "its share of it (PSS)",
			     STR_BYTES(rss_breakdown->pss_bytes));
	else
		paper_text(paper, PAPER_DIM,
			   "  smaps was not read: there was no time for it (record --rss-exact "
			   "takes it)\n");
	if (rss_breakdown->swap_bytes)
		paper_format(paper, PAPER_PLAIN, "  %-30s%11s\n", "swapped out, besides",
			     STR_BYTES(rss_breakdown->swap_bytes));
	paper_format(paper, PAPER_PLAIN, "  %-30s%11s\n", "statm at that moment",
		     STR_BYTES(snapshot->rss_bytes));
	paper_format(paper, PAPER_PLAIN, "  %-30s%11s", "the highest until then (VmHWM)",
		     STR_BYTES(snapshot->rss_bytes_max));
	if (snapshot->rss_bytes_max > rss_breakdown->smaps_bytes)
		paper_format(paper, PAPER_PLAIN, "  %s (%.2f %%) above",
			     STR_BYTES(snapshot->rss_bytes_max - rss_breakdown->smaps_bytes),
			     paper_percent(snapshot->rss_bytes_max - rss_breakdown->smaps_bytes,
					   snapshot->rss_bytes_max));
	sink_text(paper->sink, "\n");
	// The kernel counts in batches, so both of its figures can be below the pages.
	if (rss_breakdown->rss_max_bytes > snapshot->rss_bytes_max &&
	    rss_breakdown->rss_max_bytes > rss_breakdown->smaps_bytes) {
		paper_format(paper, PAPER_PLAIN, "  %-30s%11s", "the highest of the whole run",
			     STR_BYTES(rss_breakdown->rss_max_bytes));
		paper_format(
			paper, PAPER_PLAIN,
			"  %s (%.2f %%) above: record --rss-exact looks closer\n",
			STR_BYTES(rss_breakdown->rss_max_bytes - rss_breakdown->smaps_bytes),
			paper_percent(rss_breakdown->rss_max_bytes - rss_breakdown->smaps_bytes,
				      rss_breakdown->rss_max_bytes));
	}
	write_between(rss_breakdown, paper);
	sink_text(paper->sink, "\n");
}

// A line of 0 bytes is left out, but not "unexplained": that there is none is the best news. From
// the top: lines that add up (with the difference) to what smaps says, then what the kernel says
// itself, then what is beside that sum because it is not resident: blocks that were never touched,
// and what was given back. Where the blocks are not glibc's, a paragraph says that rounding is an
// estimate.
void rss_breakdown_write_text(const struct rss_breakdown *rss_breakdown, struct paper *paper,
			      uint64_t rows_max, bool all_frames)
{
	struct stack_text stacks =
		query_write_stacks(rss_breakdown->asked, paper, ROW_COLUMNS, 2, all_frames);

	stacks.several = false; // all are of one process
	moment_view_write_headline(rss_breakdown->asked, paper, rss_breakdown->header->process);
	paper_format(paper, PAPER_BOLD, "RESIDENT MEMORY");
	paper_format(
		paper, PAPER_DIM, "  a snapshot taken %s%s\n", reason_of(rss_breakdown->header),
		rss_breakdown->at_peak ? ", the one with the most (--at asks for another)" : "");
	write_plateau(rss_breakdown, paper);
	for (uint8_t line = 0; line < RSS_BREAKDOWN_LINES; line++) {
		if (!rss_breakdown->lines[line] && line != RSS_BREAKDOWN_UNEXPLAINED)
			continue;
		write_figure(paper, rss_breakdown_title((enum rss_breakdown_line)line),
			     rss_breakdown->lines[line], rss_breakdown->smaps_bytes);
		if (line == RSS_BREAKDOWN_FREE)
			write_frees(rss_breakdown, paper);
		write_rows(rss_breakdown, &stacks, line, rows_max);
	}
	sink_text(paper->sink, "\n");
	write_witnesses(rss_breakdown, paper);
	paper_text(paper, PAPER_BOLD, "LIVE, NEVER TOUCHED");
	paper_format(paper, PAPER_DIM, "  of %s live blocks; in no figure above\n",
		     STR_COUNT(rss_breakdown->blocks));
	write_figure(paper, "not resident", rss_breakdown->untouched, rss_breakdown->smaps_bytes);
	write_rows(rss_breakdown, &stacks, RSS_BREAKDOWN_UNTOUCHED, rows_max);
	write_purges(rss_breakdown, &stacks, rows_max);
	sink_text(paper->sink, "\n");
	if (rss_breakdown->lines[RSS_BREAKDOWN_FREE] && rss_breakdown->glibc)
		paper_paragraph(
			paper, PAPER_DIM, "free",
			"addresses do not show which of the gaps between blocks are in bins "
			"and which in a thread's cache");
	if (!rss_breakdown->glibc)
		paper_paragraph(paper, PAPER_DIM, "rounding",
				"blocks are closer together than glibc puts them, so the allocator "
				"is another; what it rounds up to is estimated from the distances "
				"of blocks of one size");
	query_write_last(rss_breakdown->asked, &stacks);
}
