// Findings for programs: docs/schema/findings.json describes them.
#include "report/find/findings_own.h"
#include "report/table/query_write.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

// A value in a fragment: "function:std::list<int>" is "function:std::list%3Cint%3E" then. What
// names of C functions are made of stays as it is, so that most links can be read.
static void add_escaped(struct str *out, const char *text)
{
	for (; *text; text++) {
		if (isalnum((unsigned char)*text) || strchr("-_.:", *text))
			str_add_char(out, *text);
		else
			str_format(out, "%%%02X", (unsigned char)*text);
	}
}

// What stands behind the viewer's address to open it there. The window is part of it only if it is
// less than the whole recording, and the process only if there are several: by its place in the
// list ("#3"), since two processes may have one pid.
static void add_link(const struct findings *findings, const struct finding *finding,
		     struct str *out)
{
	const struct query_context *asked = findings->asked;
	const struct symbol *face = names_face(asked->names, finding->stack, false);

	str_format(out, "tab=%s", finding->tab);
	if (finding->from_ns > 0 || finding->to_ns < asked->duration_ns)
		str_format(out, "&from=%" PRIu64 "ns&to=%" PRIu64 "ns", finding->from_ns,
			   finding->to_ns);
	if (reader_processes_count(asked->reader) > 1)
		str_format(out, "&process=%%23%" PRIu32, finding->process);
	if (face && face->function) {
		str_add(out, "&row=");
		add_escaped(out, "function:");
		add_escaped(out, face->function);
	}
}

static void write_numbers(struct json *json, const char *key, const struct findings_figure *figures,
			  size_t count)
{
	json_kv_object(json, key);
	for (size_t i = 0; i < count; i++)
		json_kv_u64(json, figures[i].key, figures[i].value);
	json_object_end(json);
}

// Of several processes with the same finding: their sums, and what each has.
static void write_shares(const struct findings *findings, struct json *json,
			 const struct finding *finding)
{
	struct findings_figure sums[FINDINGS_FIGURES_MAX];

	write_numbers(json, "together", sums, findings_together(finding, sums));
	json_kv_array(json, "processes");
	for (size_t i = 0; i < finding->shares_count; i++) {
		const struct findings_share *share = &finding->shares[i];
		const struct trace_process *process =
			reader_process(findings->asked->reader, share->process);

		json_object_begin(json);
		json_kv_u64_if(json, "process", process, process ? process->pid : 0);
		json_kv_u64(json, "process_id", share->process);
		write_numbers(json, "figures", share->figures, share->figures_count);
		json_object_end(json);
	}
	json_array_end(json);
}

// What a finding would save at the peak and what at the end are two keys: they must not be added
// up.
static void write_figures(struct json *json, const struct finding *finding)
{
	write_numbers(json, "figures", finding->figures, finding->figures_count);
	json_kv_object(json, "saves");
	json_kv_u64_if(json, "peak_bytes", finding->saves_bytes > 0 && !finding->at_end,
		       finding->saves_bytes);
	json_kv_u64_if(json, "end_bytes", finding->saves_bytes > 0 && finding->at_end,
		       finding->saves_bytes);
	json_kv_u64_if(json, "calls", finding->saves_calls > 0, finding->saves_calls);
	json_kv_u64_if(json, "cpu_ns", finding->saves_ns >= 1, (uint64_t)finding->saves_ns);
	json_object_end(json);
}

// null where there is no other stack, so that the key is always there.
static void write_other(const struct findings *findings, struct json *json,
			const struct finding *finding)
{
	json_key(json, "other");
	if (!finding->other_role || !finding->other_stack) {
		json_null(json);
		return;
	}
	json_object_begin(json);
	json_kv_string(json, "role", finding->other_role);
	query_write_stack(findings->asked, json, finding->other_stack);
	json_object_end(json);
}

// `id` is the kind and the rank within it: growth#1 is the one of its kind that matters most.
// `view` opens the finding in the viewer.
static void write_finding(const struct findings *findings, struct json *json,
			  const struct finding *finding)
{
	struct str text = { 0 };

	json_object_begin(json);
	str_format(&text, "%s#%u", finding->kind->id, finding->number);
	json_kv_string(json, "id", str_get(&text));
	json_kv_string(json, "kind", finding->kind->id);
	json_kv_string(json, "title", finding->kind->title);
	json_kv_string(json, "class", findings_class_words[finding->kind->class]);
	json_kv_string(json, "sure", findings_sure_words[finding->sure]);
	json_kv_string(json, "what", finding->what);
	json_kv_string(json, "why", finding->why);
	json_kv_string(json, "advice", finding->advice);
	json_kv_string(json, "command", finding->command);
	str_clear(&text);
	add_link(findings, finding, &text);
	json_kv_string(json, "view", str_get(&text));
	json_kv_u64(json, "from_ns", finding->from_ns);
	json_kv_u64(json, "to_ns", finding->to_ns);
	write_figures(json, finding);
	write_shares(findings, json, finding);
	query_write_place(findings->asked, json, finding->process, finding->stack);
	write_other(findings, json, finding);
	json_object_end(json);
	str_fini(&text);
}

// What is left out is counted: a reader that adds findings up can see that it has not all. The
// limit of rows is of each kind, and it is off where one kind or finding was asked for. What was
// not looked for is listed with the reason, so that "nothing found" is not read as "nothing there".
bool findings_json(const struct findings_page *page, struct sink *sink, struct err *err)
{
	const struct findings *findings = page->findings;
	uint64_t total = findings_count_of(findings, page->only), shown = 0;
	struct json json;

	if (!findings_check_only(page, err))
		return false;
	json_begin(&json, sink, true, "tidemark-findings-1");
	query_write_trace(findings->asked, &json);
	json_kv_u64(&json, "peak_bytes", findings->peak_bytes);
	json_kv_u64(&json, "allocations", findings->allocations);
	json_kv_object(&json, "least");
	json_kv_u64(&json, "bytes", findings_bytes_min(findings));
	json_kv_u64(&json, "calls", findings_calls_min(findings));
	json_object_end(&json);
	json_kv_u64(&json, "total", total);
	json_kv_array(&json, "findings");
	for (size_t i = 0; i < findings->count; i++) {
		const struct finding *finding = &findings->list[i];

		if (!findings_is_of(finding, page->only) ||
		    (!page->only && page->rows_max && finding->number > page->rows_max))
			continue;
		write_finding(findings, &json, finding);
		shown++;
	}
	json_array_end(&json);
	json_kv_u64(&json, "findings_left_out", total - shown);
	json_kv_array(&json, "not_looked_for");
	for (size_t i = 0; i < findings->missed_count; i++) {
		json_object_begin(&json);
		json_kv_string(&json, "kind", findings->missed[i].kind->id);
		json_kv_string(&json, "title", findings->missed[i].kind->title);
		json_kv_string(&json, "why", findings->missed[i].why);
		json_object_end(&json);
	}
	json_array_end(&json);
	query_write_end(findings->asked, &json);
	return true;
}
