// Findings about what nothing points to: blocks that the program has lost (reached.h).
//
// For example, a site that lost a list's head of 64 bytes and by it 1,000 nodes of other sites: one
// finding of 1 block with 1,000 more, of all their bytes, since freeing the head would free them.
// What is only held is no finding of its own: its leak is, but where it is not known (an import).
#include "report/find/findings_own.h"

#include "base/mem.h"
#include "report/ask/cautions.h"
#include "report/find/reached.h"

enum { LEAK_BYTES = 16 << 10 };

// Who found it out, and when.
static void say_why(struct findings *findings, struct finding *finding, const char *them)
{
	const struct trace_info *info = reader_info(findings->asked->reader);

	if (cautions_is_import(info))
		findings_say(&finding->why, "what was imported says that it was so at the end");
	else
		findings_say(&finding->why,
			     "no pointer to %s was found in its memory, behind all destructors: "
			     "since when there was none is not known (record --reachability-at "
			     "MARK asks earlier)",
			     them);
}

// Blocks that are lost by others: by which is not known.
static void tell_loose(struct findings *findings, const struct findings_kind *kind,
		       const struct reached_site *site)
{
	const struct heap_amount *lost = &site->loose;
	struct finding *finding =
		findings_add(findings, kind, FINDINGS_LIKELY, site->process, site->stack);
	bool one = lost->count == 1;

	findings_say(&finding->what,
		     "%s block%s of %s, %s in all, had not been freed at the end, and only blocks "
		     "that nothing pointed to led to %s any more.",
		     STR_COUNT(lost->count), one ? "" : "s",
		     findings_function(findings, site->stack), STR_BYTES(lost->bytes),
		     one ? "it" : "them");
	say_why(findings, finding, one ? "it" : "them");
	findings_say(&finding->advice, "free %s with the block%s by which %s lost",
		     one ? "it" : "them", one ? "" : "s", one ? "it is" : "they are");
	findings_figure(finding, "count", "blocks", FINDINGS_COUNT, lost->count);
	findings_figure(finding, "bytes", "lost", FINDINGS_BYTES, lost->bytes);
	finding->saves_bytes = lost->bytes;
	finding->at_end = true;
	findings_command(findings, finding, "active", "-n 0", false, true);
}

// What only these blocks hold is counted with them: without them it would have been free to go.
// Those of their own stack among it are said, since other commands count by stack alone.
static void tell(struct findings *findings, const struct findings_kind *kind,
		 const struct reached_site *site)
{
	const struct heap_amount *lost = &site->states[TRACE_REACH_UNREACHABLE];
	struct finding *finding =
		findings_add(findings, kind, FINDINGS_LIKELY, site->process, site->stack);
	struct heap_amount all = reached_lost(site->states);
	struct str with = { 0 };
	bool one = lost->count == 1;

	ASSERT(site->holds_own.count <= site->holds.count && lost->count <= all.count);
	if (site->holds.count > 0)
		str_format(&with, " with %s more that only %s to", STR_COUNT(site->holds.count),
			   one ? "it leads" : "they lead");
	if (site->holds_own.count > 0)
		str_format(&with, " (%s of these of the same stack)",
			   STR_COUNT(site->holds_own.count));
	findings_say(&finding->what,
		     "%s block%s of %s%s, %s in all, had not been freed at the end, and nothing "
		     "pointed to %s any more.",
		     STR_COUNT(lost->count), one ? "" : "s",
		     findings_function(findings, site->stack), str_get(&with),
		     STR_BYTES(lost->bytes + site->holds.bytes), one ? "it" : "them");
	say_why(findings, finding, one ? "it" : "them");
	str_clear(&with);
	if (site->holds_own.count > 0)
		str_format(
			&with,
			"%s; that one block of a stack leads to another may be chance, a pointer "
			"left over in memory that it did not write to: report and check count all "
			"%s of the stack",
			finding->why, STR_COUNT(all.count));
	if (with.length)
		findings_say(&finding->why, "%s", str_get(&with));
	str_fini(&with);
	findings_say(&finding->advice,
		     "free them where the last pointer to them is given up, or keep it");
	findings_figure(finding, "count", "blocks", FINDINGS_COUNT, lost->count);
	findings_figure(finding, "bytes", "lost", FINDINGS_BYTES, lost->bytes);
	if (!cautions_is_import(reader_info(findings->asked->reader))) {
		findings_figure(finding, "held_count", "held by them", FINDINGS_COUNT,
				site->holds.count);
		findings_figure(finding, "held_bytes", "held", FINDINGS_BYTES, site->holds.bytes);
	}
	finding->saves_bytes = lost->bytes + site->holds.bytes;
	finding->at_end = true;
	findings_command(findings, finding, "active", "-n 0", false, true);
}

// A site counts with what only it holds: a head of 64 bytes that holds 1 MiB is reported. Of less
// than 16 KiB only the sum is said, and the report has them.
bool findings_unreachable(struct findings *findings, const struct findings_kind *kind, struct err *)
{
	struct heap_amount small = { 0 };
	struct reached reached;

	ASSERT(findings && kind);
	reached_read(&reached, findings->asked);
	if (!reached.known)
		findings_miss(findings, kind, "%s", reached.why);
	for (size_t i = 0; reached.known && i < reached.count; i++) {
		const struct reached_site *site = &reached.sites[i];

		if (site->states[TRACE_REACH_UNREACHABLE].bytes + site->holds.bytes >= LEAK_BYTES &&
		    site->states[TRACE_REACH_UNREACHABLE].count > 0)
			tell(findings, kind, site);
		else
			small = window_sum(small, window_sum(site->states[TRACE_REACH_UNREACHABLE],
							     site->holds));
		if (site->loose.bytes >= LEAK_BYTES)
			tell_loose(findings, kind, site);
		else
			small = window_sum(small, site->loose);
	}
	if (small.count > 0)
		findings_miss(
			findings, kind,
			"%s block%s, %s in all, of sites that lost less than %s each, are not "
			"in the list: tidemark report has them, check --max-unreachable 0 fails "
			"for them",
			STR_COUNT(small.count), small.count == 1 ? "" : "s", STR_BYTES(small.bytes),
			STR_BYTES(LEAK_BYTES));
	reached_fini(&reached);
	return true;
}
