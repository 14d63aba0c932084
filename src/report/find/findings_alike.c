// Findings that processes of one program have in common are one: of the same kind, of the same
// line, with the same advice.
//
// For example 64 ranks of which each maps 8 MiB in main: one finding, which is told as it is where
// it is most ("In 64 processes of rank, most in process 2101: 8.0 MiB of 10.2 MiB …"), with the
// sums of what can be added up, and with what each has for programs. Two findings of one process
// stay two.
#include "report/find/findings_own.h"

#include "base/mem.h"

#include <inttypes.h>
#include <string.h>

enum { NAMED_MAX = 8 }; // processes that a command names one by one

// Figures of a single block, a largest one, a limit, or a place: those of several processes make
// no sum.
static const char *const single[] = {
	"address",    "size_bytes",    "size_bytes_min",    "size_bytes_max",
	"longest",    "largest_bytes", "last_size_bytes",   "limit_bytes",
	"peak_bytes", "rss_bytes_max", "group_limit_bytes", "stacks",
};

static bool adds_up(const struct findings_figure *figure)
{
	if (figure->unit != FINDINGS_COUNT && figure->unit != FINDINGS_BYTES)
		return false;
	for (size_t i = 0; i < sizeof single / sizeof *single; i++)
		if (strcmp(single[i], figure->key) == 0)
			return false;
	return true;
}

// A figure that a process does not have is 0 there.
size_t findings_together(const struct finding *finding,
			 struct findings_figure sums[FINDINGS_FIGURES_MAX])
{
	size_t count = 0;

	for (size_t i = 0; finding->shares && i < finding->figures_count; i++) {
		struct findings_figure *sum = &sums[count];

		if (!adds_up(&finding->figures[i]))
			continue;
		*sum = finding->figures[i];
		sum->value = 0;
		count++;
		for (size_t j = 0; j < finding->shares_count; j++)
			for (size_t k = 0; k < finding->shares[j].figures_count; k++)
				if (strcmp(finding->shares[j].figures[k].key, sum->key) == 0)
					sum->value += finding->shares[j].figures[k].value;
	}
	return count;
}

void findings_free_texts(struct finding *finding)
{
	MEM_FREE(finding->what, finding->why, finding->advice, finding->command, finding->shares);
}

static const char *program_of(const struct findings *findings, const struct finding *finding)
{
	const struct trace_process *process =
		reader_process(findings->asked->reader, finding->process);

	return process && process->exe ? process->exe : "";
}

static bool has_process(const struct finding *finding, process_id process)
{
	for (size_t i = 0; i < finding->shares_count; i++)
		if (finding->shares[i].process == process)
			return true;
	return finding->process == process;
}

// Whether two processes have the same finding. What is of one kind, and gives the same advice, has
// the same cause.
static bool are_alike(struct findings *findings, const struct finding *one,
		      const struct finding *other, bool by_stack)
{
	if (one->kind != other->kind || one->sure != other->sure || one->at_end != other->at_end ||
	    one->of_several || other->of_several || has_process(one, other->process))
		return false;
	if (by_stack ? one->stack != other->stack
		     : findings_line(findings, one->stack) == 0 ||
			       findings_line(findings, one->stack) !=
				       findings_line(findings, other->stack))
		return false;
	return one->advice && other->advice && strcmp(one->advice, other->advice) == 0 &&
	       strcmp(program_of(findings, one), program_of(findings, other)) == 0;
}

static struct finding *find_alike(struct findings *findings, size_t count,
				  const struct finding *finding)
{
	for (int by_stack = 1; by_stack >= 0; by_stack--)
		for (size_t i = 0; i < count; i++)
			if (are_alike(findings, &findings->list[i], finding, by_stack))
				return &findings->list[i];
	return NULL;
}

static struct findings_share share_of(const struct finding *finding)
{
	struct findings_share share = { .process = finding->process,
					.figures_count = finding->figures_count,
					.saves_calls = finding->saves_calls,
					.saves_size = finding->saves_size };

	memcpy(share.figures, finding->figures, sizeof share.figures);
	return share;
}

// By what it would save, then by its figures. > 0: one is more; 0: they are equal.
static int compare(const struct finding *one, const struct finding *other)
{
	if (one->saves_bytes != other->saves_bytes)
		return one->saves_bytes > other->saves_bytes ? 1 : -1;
	if (one->saves_calls != other->saves_calls)
		return one->saves_calls > other->saves_calls ? 1 : -1;
	for (size_t i = 0; i < one->figures_count && i < other->figures_count; i++) {
		const struct findings_figure *a = &one->figures[i], *b = &other->figures[i];

		if (adds_up(a) && strcmp(a->key, b->key) == 0 && a->value != b->value)
			return a->value > b->value ? 1 : -1;
	}
	return 0;
}

// What the sum would save is in `sums`, by place in the list; the list keeps that of one process
// until all are in, for it says which is most.
struct sum {
	uint64_t bytes, calls;
	bool differ; // in what compare() looks at
};

static void add_alike(struct finding *to, struct sum *sum, struct finding *finding)
{
	int order = compare(finding, to);
	struct finding less = *to;

	ASSERT(to != finding && !finding->shares);
	if (!to->shares)
		*MEM_ADD(to->shares, to->shares_count, to->shares_capacity) = share_of(to);
	MEM_ROOM(to->shares, to->shares_capacity, to->shares_count + 1);
	to->shares[to->shares_count++] = share_of(finding);
	sum->bytes += finding->saves_bytes;
	sum->calls += finding->saves_calls;
	sum->differ |= order != 0;
	if (order > 0) { // the one with most is first
		memmove(to->shares + 1, to->shares, (to->shares_count - 1) * sizeof *to->shares);
		to->shares[0] = share_of(finding);
		finding->shares = to->shares;
		finding->shares_count = to->shares_count;
		finding->shares_capacity = to->shares_capacity;
		*to = *finding;
		*finding = less;
		finding->shares = NULL;
	}
	findings_free_texts(finding);
}

// Commands that show one process, whichever are chosen.
static bool shows_one(const char *command)
{
	static const char *const verbs[] = { "map ", "pins ", "reconcile ", "dump " };

	for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
		if (strncmp(command, verbs[i], strlen(verbs[i])) == 0)
			return true;
	return false;
}

// Few processes by their places in the list; all that there are by nothing; else all of their
// program by its name.
static void choose_processes(const struct findings *findings, struct finding *finding)
{
	struct str text = { 0 };

	ASSERT(finding->process_at + finding->process_length <= strlen(finding->command));
	if (!finding->process_length || shows_one(finding->command))
		return;
	str_add_bytes(&text, finding->command, finding->process_at);
	if (finding->shares_count < reader_processes_count(findings->asked->reader)) {
		if (finding->shares_count > NAMED_MAX) {
			str_add(&text, " --process ");
			str_add_shell(&text, str_last_part(program_of(findings, finding)));
		}
		for (size_t i = 0; finding->shares_count <= NAMED_MAX && i < finding->shares_count;
		     i++)
			findings_add_process(&text, finding->shares[i].process);
	}
	str_add(&text, finding->command + finding->process_at + finding->process_length);
	mem_free(finding->command);
	finding->command = str_take(&text);
	finding->process_at = finding->process_length = 0;
}

static void tell_of_all(const struct findings *findings, struct finding *finding, bool differ)
{
	const struct trace_process *process =
		reader_process(findings->asked->reader, finding->process);
	const char *program = str_last_part(program_of(findings, finding));
	char *what = finding->what;

	ASSERT(finding->shares_count > 1);
	finding->what = NULL;
	findings_say(&finding->what, "In %s processes%s%s, %s in process %" PRIu32 ": %s",
		     STR_COUNT(finding->shares_count), *program ? " of " : "", program,
		     differ ? "most" : "as", process ? (uint32_t)process->pid : finding->process,
		     what);
	mem_free(what);
	choose_processes(findings, finding);
}

// The list is as the kinds added to it; what is alike comes to the first.
void findings_fold_alike(struct findings *findings)
{
	struct sum *sums = mem_alloc(findings->count + 1, sizeof *sums);
	size_t count = 0;

	for (size_t i = 0; i < findings->count; i++) {
		struct finding *finding = &findings->list[i], *alike;

		alike = find_alike(findings, count, finding);
		if (alike) {
			add_alike(alike, &sums[alike - findings->list], finding);
			continue;
		}
		sums[count] = (struct sum){ finding->saves_bytes, finding->saves_calls, false };
		findings->list[count++] = *finding;
	}
	findings->count = count;
	for (size_t i = 0; i < count; i++) {
		struct finding *finding = &findings->list[i];

		if (!finding->shares)
			continue;
		finding->saves_bytes = sums[i].bytes;
		finding->saves_calls = sums[i].calls;
		tell_of_all(findings, finding, sums[i].differ);
	}
	mem_free(sums);
}
