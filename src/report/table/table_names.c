// What the rows of a table are called.
//
// For example, with --by process,thread,stack a row of the first level is "app 4242", one of the
// second "thread 4243 worker", one of the third the name of a function. The key of a row's last
// level says which function makes the name; keys whose values are labels of texts have the text
// itself.
#include "report/table/table.h"

#include "base/str.h"
#include "engine/space/space.h"

#include <inttypes.h>

static const char *const impact_words[] = { "impacting", "transient", "persistent" };
_Static_assert(sizeof impact_words / sizeof *impact_words == TABLE_PERSISTENT + 1, "a word each");
static const char *const type_words[] = { "AIFI", "AIFO", "AOFI", "AOFO" };
_Static_assert(sizeof type_words / sizeof *type_words == WINDOW_TYPES, "a word each");

static const char *table_type_word(uint64_t type)
{
	return type < WINDOW_TYPES ? type_words[type] : "";
}

const char *table_impact_word(uint64_t impact)
{
	return impact <= TABLE_PERSISTENT ? impact_words[impact] : "";
}

// The total has no key.
enum keys_key table_key(const struct table *table, const struct table_row *row)
{
	ASSERT(row->depth > 0 && row->depth <= table->options->keys.count);
	return table->options->keys.list[row->depth - 1];
}

stack_id table_stack(const struct table *table, const struct table_row *row)
{
	return labels_first(table->labels, (uint32_t)row->value);
}

void table_describe_function(const struct table *table, stack_id stack, struct str *text)
{
	names_add_function(table->asked->names, stack, table->options->all_frames, text);
}

// A pid that ran several programs, one after the other by exec, has images, counted from 1 here.
static void describe_process(const struct table *table, uint64_t value, struct str *text)
{
	const struct trace_process *process =
		reader_process(table->asked->reader, (process_id)value);

	if (!process) {
		str_add(text, "(no process)");
		return;
	}
	names_add_process(process, text);
	str_format(text, " %" PRIu32, process->pid);
	if (process->generation)
		str_format(text, " (image %" PRIu32 ")", process->generation + 1);
}

// A row of a tid may be several threads of several processes; the first that has a name gives it.
static void describe_thread(const struct table *table, uint64_t tid, struct str *text)
{
	uint32_t count = reader_threads_count(table->asked->reader);

	str_format(text, "thread %" PRIu64, tid);
	for (thread_id id = 0; id < count; id++) {
		const struct trace_thread *thread = reader_thread(table->asked->reader, id);

		if (thread->tid != tid || !*thread->name)
			continue;
		str_format(text, " %s", thread->name);
		return;
	}
}

static void describe_allocation(const struct table *table, uint64_t value, struct str *text)
{
	const struct window_allocation *allocation = &table->allocations[value];

	str_format(text, "0x%" PRIx64 "  at %s", allocation->address,
		   STR_DURATION(allocation->begin_ns));
	if (allocation->end_kind == WINDOW_END_NEVER)
		str_add(text, ", never freed");
	else
		str_format(text, ", for %s",
			   STR_DURATION(allocation->end_ns - allocation->begin_ns));
}

// What a row's value is depends on its key (value_of in table.c). An owner's is one more than its
// number, as 0 is a heap. A row of frees of nothing known has neither impact nor type.
void table_describe(const struct table *table, const struct table_row *row, struct str *text)
{
	if (row->depth == 0) {
		str_add(text, "total");
		return;
	}
	switch (table_key(table, row)) {
	case KEYS_PROCESS:
		describe_process(table, row->value, text);
		break;
	case KEYS_LAYER:
		str_add(text, row->value == WINDOW_VM ? "vm" : "heap");
		break;
	case KEYS_THREAD:
		describe_thread(table, row->value, text);
		break;
	case KEYS_OWNER:
		str_add(text,
			row->value ? space_owner_word((enum space_owner)(row->value - 1)) : "heap");
		break;
	case KEYS_STACK:
		table_describe_function(table, table_stack(table, row), text);
		break;
	case KEYS_IMPACT:
	case KEYS_TYPE:
		if (row->orphans)
			str_add(text, "orphan");
		else
			str_add(text, table_key(table, row) == KEYS_TYPE
					      ? table_type_word(row->value)
					      : table_impact_word(row->value));
		break;
	case KEYS_SIZE:
		str_format(text, "%s byte%s", STR_COUNT(row->value), row->value == 1 ? "" : "s");
		break;
	case KEYS_MARK:
		ASSERT(row->value < table->phases_count);
		str_add(text, table->phases[row->value].name);
		break;
	case KEYS_LIFETIME:
		describe_allocation(table, row->value, text);
		break;
	default:
		str_add(text, labels_get_text(table->labels, (uint32_t)row->value));
		break;
	}
}
