#include "engine/query.h"

#include "base/mem.h"
#include "base/str.h"

#include <string.h>

void query_fini(struct query *query)
{
	mem_free(query->processes);
	mem_free(query->threads);
	*query = (struct query){ 0 };
}

static bool names_executable(const struct trace_process *process, const char *word)
{
	const char *slash = strrchr(process->exe, '/');

	return strcmp(process->exe, word) == 0 || (slash && strcmp(slash + 1, word) == 0);
}

bool query_add_process(struct query *query, const struct reader *reader, const char *word,
		       struct err *err)
{
	uint32_t count = reader_processes_count(reader);
	uint64_t number = 0;
	bool is_number = str_parse_count(word, &number);
	bool found = false;

	if (!query->processes) {
		query->processes = mem_alloc(count + 1, sizeof *query->processes);
		query->processes_count = count;
	}
	for (process_id id = 0; id < count; id++) {
		const struct trace_process *process = reader_process(reader, id);

		if ((is_number && process->pid == number) || names_executable(process, word)) {
			query->processes[id] = true;
			found = true;
		}
	}
	if (!found && is_number && number < count) {
		query->processes[number] = true;
		found = true;
	}
	if (!found)
		return err_set(err, ERR_USAGE,
			       "no process '%s' in the trace (a pid, a position in the list of "
			       "processes, or an executable's name)",
			       word);
	return true;
}

bool query_add_thread(struct query *query, const struct reader *reader, const char *word,
		      struct err *err)
{
	uint32_t count = reader_threads_count(reader);
	uint64_t number = 0;
	bool is_number = str_parse_count(word, &number);
	bool found = false;

	if (!query->threads) {
		query->threads = mem_alloc(count + 1, sizeof *query->threads);
		query->threads_count = count;
	}
	for (thread_id id = 0; id < count; id++) {
		const struct trace_thread *thread = reader_thread(reader, id);

		if ((is_number && thread->tid == number) || strcmp(thread->name, word) == 0) {
			query->threads[id] = true;
			found = true;
		}
	}
	if (!found)
		return err_set(err, ERR_USAGE, "no thread '%s' in the trace (a tid, or a name)",
			       word);
	return true;
}

bool query_has_process(const struct query *query, process_id process)
{
	return !query->processes || (process < query->processes_count && query->processes[process]);
}

bool query_has_thread(const struct query *query, thread_id thread)
{
	return !query->threads || (thread < query->threads_count && query->threads[thread]);
}

bool query_narrows(const struct query *query)
{
	return query->processes || query->threads || query->stack;
}
