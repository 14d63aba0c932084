// What check says to programs: JSON of our own (docs/schema/check.json), SARIF 2.1.0, GitLab's code
// quality, and JUnit's XML.
//
// One function for each form; they share check_announce for the sentence, check_place for the line
// in the source and fingerprint for what makes two results the same. For example, "peak" over its
// limit in parse.c:120 is in SARIF a result of the rule tidemark/peak with that location, in
// GitLab's list an issue of severity major, in JUnit a failed case "peak of ./app", and in our own
// form a row with "exceeded": true.
#include "report/find/check.h"
#include "report/table/lines.h"
#include "report/table/query_write.h"

#include "base/mem.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- our own ----

static void write_values(struct json *json, const char *key, const struct check_runs *runs)
{
	json_kv_array(json, key);
	for (size_t i = 0; i < runs->count; i++)
		json_u64(json, runs->values[i]);
	json_array_end(json);
}

// A value that is not known and a limit that was not given are null, so no reader takes them for 0.
static void write_row(const struct check_row *row, struct json *json)
{
	json_object_begin(json);
	json_kv_string(json, "figure", check_names[row->figure]);
	json_kv_u64_if(json, "value", row->known, row->value);
	json_kv_u64_if(json, "limit", row->limit.given, row->limit.most);
	json_kv_bool(json, "of_baseline", row->limit.of_baseline);
	json_kv_bool(json, "exceeded", row->exceeded);
	json_kv_bool(json, "compared", row->compared);
	json_key(json, "least_change");
	// The test can say that nothing is sure, which is minus infinity and no number of JSON.
	if (row->compared && row->least_change > -INFINITY)
		json_i64(json, (int64_t)llround(row->least_change));
	else
		json_null(json);
	write_values(json, "runs", &row->runs);
	write_values(json, "baseline_runs", &row->limit.runs);
	json_kv_u64(json, "sites_total", row->sites_total);
	json_kv_array(json, "sites");
	for (size_t i = 0; i < row->sites_count; i++) {
		json_object_begin(json);
		json_kv_u64(json, "value", row->sites[i].value);
		json_kv_u64(json, "count", row->sites[i].count);
		query_write_place(row->asked, json, row->sites[i].process, row->sites[i].stack);
		json_object_end(json);
	}
	json_array_end(json);
	json_kv_u64(json, "sites_left_out", row->sites_total - row->sites_count);
	json_object_end(json);
}

// A suppression that matched nothing is listed with its file and line, so that it can be mended or
// deleted.
static void write_unused(const struct check_page *page, struct json *json)
{
	const char *name, *path;
	unsigned line;
	size_t at = 0;

	json_kv_array(json, "unused_suppressions");
	while (page->suppressions &&
	       (name = suppressions_unused(page->suppressions, &at, &path, &line))) {
		json_object_begin(json);
		json_kv_string(json, "name", name);
		json_kv_string(json, "file", path);
		json_kv_u64(json, "line", line);
		json_object_end(json);
	}
	json_array_end(json);
}

// `passed` is false where there is a refusal, whatever the figures are. All figures are there, also
// those without a limit.
void check_json(const struct check_page *page, struct sink *sink)
{
	const struct check *check = page->check;
	const struct query_context *shown[CHECK_FIGURES + 1];
	struct json json;

	json_begin(&json, sink, true, "tidemark-check-1");
	query_write_trace(check->asked, &json);
	json_kv_bool(&json, "judged", !check->refusal);
	json_kv_string(&json, "refusal", check->refusal);
	json_kv_bool(&json, "passed", !check->refusal && !check->exceeded);
	json_kv_u64(&json, "suppressed_count", check->suppressed.count);
	json_kv_u64(&json, "suppressed_bytes", check->suppressed.bytes);
	write_unused(page, &json);
	json_kv_array(&json, "figures");
	for (int figure = 0; figure < CHECK_FIGURES; figure++)
		write_row(&check->rows[figure], &json);
	json_array_end(&json);
	query_write_end_of_several(shown, check_shown(check, shown), &json);
}

// ---- places in the source ----

// Where the last folder of what ends with '/' begins; `length`: there is none to go back from.
static size_t last_folder(const char *text, size_t length)
{
	size_t at = length;

	ASSERT(length == 0 || text[length - 1] == '/');
	if (length < 2)
		return length;
	for (at--; at > 0 && text[at - 1] != '/';)
		at--;
	return length - at == 3 && memcmp(text + at, "../", 3) == 0 ? length : at;
}

// A path without what ".." and "." in it take back: "/app/build/../src/x.c" is "/app/src/x.c".
// By the text alone: what a link points to is on the machine that built it, not here. The caller
// frees it.
static char *plain_path(const char *path)
{
	char *plain = mem_copy_text(path);
	size_t length = 0, back;

	while (*path) {
		size_t part = strcspn(path, "/");

		part += path[part] == '/';
		back = part == 3 && memcmp(path, "../", 3) == 0 ? last_folder(plain, length)
								: length;
		if (back < length) {
			length = back;
		} else if (part != 2 || memcmp(path, "./", 2) != 0) {
			memmove(plain + length, path, part);
			length += part;
		}
		path += part;
	}
	plain[length] = '\0';
	return plain;
}

// What is left of a path below a folder. NULL: it is not there.
static const char *path_below(const char *path, const char *folder)
{
	size_t length = folder ? strlen(folder) : 0;

	ASSERT(path != NULL);
	while (length && folder[length - 1] == '/')
		length--;
	return length && strncmp(path, folder, length) == 0 && path[length] == '/'
		       ? path + length + 1
		       : NULL;
}

// The first of the folders that the path is in counts. A path outside of all of them is written
// whole.
static void add_path(const struct query_context *asked, const char *path, struct str *text)
{
	const char *folders[] = { getenv("CI_PROJECT_DIR"), getenv("GITHUB_WORKSPACE"),
				  reader_info(asked->reader)->directory };
	char *whole = plain_path(path);
	const char *rest = NULL;

	for (size_t i = 0; i < sizeof folders / sizeof *folders && !rest; i++)
		rest = path_below(whole, folders[i]);
	str_add(text, rest ? rest : whole);
	mem_free(whole);
}

void check_add_path(const struct check *check, const char *path, struct str *text)
{
	add_path(check->asked, path, text);
}

// Whether the file is one of the sources, which are where the check is made. For example
// objects/list.c of /tmp/build/python is not, and tests/app.py is, or /ci/repo/tests/app.py in
// /ci/repo.
static bool is_here(const struct check_row *row, const char *file)
{
	const char *here = row->sources->here;
	const char *folders[] = { getenv("CI_PROJECT_DIR"), getenv("GITHUB_WORKSPACE"), here };
	struct str path = { 0 }, whole = { 0 };
	const char *rest;
	bool found = false;

	if (!row->sources->has)
		return false;
	add_path(row->asked, file, &path);
	rest = path_below(str_get(&path), here);
	rest = rest ? rest : str_get(&path);
	for (size_t i = 0; i < sizeof folders / sizeof *folders && !found; i++) {
		if (!folders[i] || !*folders[i] || *rest == '/' || strncmp(rest, "../", 3) == 0)
			continue;
		str_clear(&whole);
		str_format(&whole, "%s/%s", folders[i], rest);
		found = row->sources->has(str_get(&whole));
	}
	STR_FINI(&path, &whole);
	return found;
}

// From the program's own innermost frame outwards: a line in the allocator's wrapper would be shown
// for all results alike. One in a library's source, or in what is no file (<string>), can be shown
// nowhere.
static const struct symbol *place_of(const struct check_row *row, stack_id id)
{
	struct names_stack stack = names_stack(row->asked->names, id);
	const struct symbol *first = NULL;

	for (size_t i = stack.user; i < stack.count; i++) {
		const struct symbol *symbol = stack.lines[i].symbol;

		if (!symbol->file || !symbol->line)
			continue;
		if (is_here(row, symbol->file))
			return symbol;
		first = first ? first : symbol;
	}
	return first;
}

const struct symbol *check_place(const struct check_row *row)
{
	const struct check_site *site = row ? check_blamed(row) : NULL;

	return site ? place_of(row, site->stack) : NULL;
}

// As a URI reference: what may not stand in one is escaped, a path from the root is a file's.
static void add_uri(struct str *out, const char *path)
{
	if (*path == '/')
		str_add(out, "file://");
	for (; *path; path++) {
		if (isalnum((unsigned char)*path) || strchr("/-._~+", *path))
			str_add_char(out, *path);
		else
			str_format(out, "%%%02X", (unsigned char)*path);
	}
}

// ---- SARIF ----

static void write_message(struct json *json, const char *key, const char *text)
{
	json_kv_object(json, key);
	json_kv_string(json, "text", text);
	json_object_end(json);
}

// Where a result without a line in the source is, too: readers refuse one that is nowhere. It is in
// the trace then.
static void add_result_path(const struct check *check, const struct symbol *place, struct str *path)
{
	check_add_path(check, place ? place->file : check->path, path);
}

// The same for a figure of one program, filters and function, whatever its value and line: so a
// result stays the same from commit to commit, and a CI can tell a new one from an old one.
static uint64_t fingerprint(const struct check_page *page, const struct check_row *row)
{
	const struct check_site *site = row ? check_blamed(row) : NULL;
	const struct symbol *face = site ? names_face(row->asked->names, site->stack, false) : NULL;
	struct str text = { 0 };
	uint64_t print;

	str_format(&text, "%s ", row ? check_names[row->figure] : "not-judged");
	check_subject(page, &text);
	str_format(&text, " %s", face && face->function ? face->function : "");
	print = index_set_hash_text(str_get(&text));
	str_fini(&text);
	return print;
}

// Of the heaviest site alone. SARIF wants a line, so a result of which none is known is at line 1.
static void write_location(const struct check *check, const struct check_row *row,
			   struct json *json)
{
	const struct check_site *site = row ? check_blamed(row) : NULL;
	const struct symbol *place = check_place(row);
	struct str uri = { 0 }, path = { 0 }, name = { 0 };

	add_result_path(check, place, &path);
	add_uri(&uri, str_get(&path));
	json_object_begin(json);
	json_kv_object(json, "physicalLocation");
	json_kv_object(json, "artifactLocation");
	json_kv_string(json, "uri", str_get(&uri));
	json_object_end(json);
	json_kv_object(json, "region");
	json_kv_u64(json, "startLine", place ? place->line : 1);
	json_object_end(json);
	json_object_end(json);
	if (site) {
		names_add_function(row->asked->names, site->stack, false, &name);
		json_kv_array(json, "logicalLocations");
		json_object_begin(json);
		json_kv_string(json, "fullyQualifiedName", str_get(&name));
		json_kv_string(json, "kind", "function");
		json_object_end(json);
		json_array_end(json);
	}
	json_object_end(json);
	STR_FINI(&uri, &path, &name);
}

// `row` NULL: that nothing could be judged.
static void write_result(const struct check_page *page, const struct check_row *row,
			 struct json *json)
{
	struct str text = { 0 }, rule = { 0 };

	ASSERT(row ? row->exceeded : page->check->refusal != NULL);
	check_announce(page, row, &text);
	str_format(&rule, "tidemark/%s", row ? check_names[row->figure] : "not-judged");
	json_object_begin(json);
	json_kv_string(json, "ruleId", str_get(&rule));
	json_kv_string(json, "level", "error");
	write_message(json, "message", str_get(&text));
	json_kv_array(json, "locations");
	write_location(page->check, row, json);
	json_array_end(json);
	json_kv_object(json, "partialFingerprints");
	json_kv_hex(json, "tidemarkFigure/v1", fingerprint(page, row));
	json_object_end(json);
	json_object_end(json);
	STR_FINI(&text, &rule);
}

// A row of the table of rules that a reader of SARIF shows: what it means, and what to do.
struct rule {
	const char *what, *help;
};

static void write_rule(const char *name, const struct rule *rule, struct json *json)
{
	struct str id = { 0 };

	str_format(&id, "tidemark/%s", name);
	json_object_begin(json);
	json_kv_string(json, "id", str_get(&id));
	write_message(json, "shortDescription", rule->what);
	write_message(json, "fullDescription", rule->what);
	write_message(json, "help", rule->help);
	json_object_end(json);
	str_fini(&id);
}

// All rules are there, whether they have a result or not. Their order is that of enum check_figure.
static void write_tool(struct json *json)
{
	static const struct rule rules[CHECK_FIGURES] = {
		{ "The most bytes that lived at one time are over their limit.",
		  "tidemark active FILE --at peak lists the blocks." },
		{ "Bytes that were live at exit are over their limit.",
		  "tidemark active FILE --at exit lists the blocks." },
		{ "Calls that allocated are over their limit.",
		  "tidemark report FILE shows which stacks call most." },
		{ "Blocks freed before their thread's next allocation are over their limit.",
		  "tidemark findings FILE names buffers that could be kept or be on the stack." },
		{ "Bytes to which nothing pointed at exit are over their limit.",
		  "tidemark findings FILE names what was leaked, and by whom." },
		{ "The program allocated where it expects not to.",
		  "A TIDEMARK_EXPECT_NO_ALLOC block of the program says where." },
		{ "Sites kept growing by more bytes a minute than their limit.",
		  "tidemark growth FILE shows their curves." },
	};
	static const struct rule not_judged = {
		"The trace could not be judged: it is not whole, or its figures are estimates.",
		"tidemark info FILE says what is missing; record the program once more.",
	};

	json_kv_object(json, "tool");
	json_kv_object(json, "driver");
	json_kv_string(json, "name", "tidemark");
	json_kv_string(json, "version", TIDEMARK_VERSION);
	json_kv_array(json, "rules");
	for (int figure = 0; figure < CHECK_FIGURES; figure++)
		write_rule(check_names[figure], &rules[figure], json);
	write_rule("not-judged", &not_judged, json);
	json_array_end(json);
	json_object_end(json);
	json_object_end(json);
}

// A refusal is a result of its own beside those of figures: what could not be judged must not look
// as if it had passed.
void check_sarif(const struct check_page *page, struct sink *sink)
{
	const struct check *check = page->check;
	struct json json;

	json_init(&json, sink, true);
	json_object_begin(&json);
	json_kv_string(&json, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
	json_kv_string(&json, "version", "2.1.0");
	json_kv_array(&json, "runs");
	json_object_begin(&json);
	write_tool(&json);
	json_kv_array(&json, "results");
	if (check->refusal)
		write_result(page, NULL, &json);
	for (int figure = 0; figure < CHECK_FIGURES; figure++)
		if (check->rows[figure].exceeded)
			write_result(page, &check->rows[figure], &json);
	json_array_end(&json);
	json_object_end(&json);
	json_array_end(&json);
	json_end(&json);
}

// ---- GitLab ----

// As in SARIF: the same sentence, place and fingerprint, so that both show the same issue.
static void write_issue(const struct check_page *page, const struct check_row *row,
			struct json *json)
{
	const struct symbol *place = check_place(row);
	struct str text = { 0 }, path = { 0 };

	ASSERT(row ? row->exceeded : page->check->refusal != NULL);
	check_announce(page, row, &text);
	add_result_path(page->check, place, &path);
	json_object_begin(json);
	json_kv_string(json, "description", str_get(&text));
	json_kv_string(json, "check_name", row ? check_names[row->figure] : "not-judged");
	json_kv_hex(json, "fingerprint", fingerprint(page, row));
	json_kv_string(json, "severity", "major");
	json_kv_object(json, "location");
	json_kv_string(json, "path", str_get(&path));
	json_kv_object(json, "lines");
	json_kv_u64(json, "begin", place ? place->line : 1);
	json_object_end(json);
	json_object_end(json);
	json_object_end(json);
	STR_FINI(&text, &path);
}

// A list without an object around it, as GitLab's code quality has it.
void check_gitlab(const struct check_page *page, struct sink *sink)
{
	const struct check *check = page->check;
	struct json json;

	json_init(&json, sink, true);
	json_array_begin(&json);
	if (check->refusal)
		write_issue(page, NULL, &json);
	for (int figure = 0; figure < CHECK_FIGURES; figure++)
		if (check->rows[figure].exceeded)
			write_issue(page, &check->rows[figure], &json);
	json_array_end(&json);
	sink_text(sink, "\n");
}

// ---- JUnit ----

// Text in XML: what XML has no word for is '?', and what is no UTF-8 U+FFFD.
static void write_xml(struct sink *sink, const char *text)
{
	size_t left = strlen(text), length;

	for (; left; text += length, left -= length) {
		unsigned char c = (unsigned char)*text;

		length = str_utf8_length((const unsigned char *)text, left);
		if (strchr("<>&\"\n\t\r", c))
			sink_format(sink, "&#%d;", c);
		else if (c < 0x20 || (c == 0xEF && strncmp(text, "\xEF\xBF\xBE", 2) == 0 &&
				      (unsigned char)text[2] >= 0xBE))
			sink_text(sink, "?");
		else if (!length)
			sink_text(sink, "\xEF\xBF\xBD");
		else
			sink_write(sink, text, length);
		length += !length;
	}
}

// Writes the text and ends it.
static void write_xml_words(struct sink *sink, struct str *text)
{
	write_xml(sink, str_get(text));
	str_fini(text);
}

// Cases of one name are one case to some readers, so that each has the program and the filters.
static void begin_case(const struct check_page *page, const char *figure, struct sink *sink)
{
	struct str name = { 0 };

	str_format(&name, "%s of ", figure);
	check_subject(page, &name);
	sink_text(sink, "    <testcase classname=\"tidemark\" name=\"");
	write_xml_words(sink, &name);
	sink_text(sink, "\" time=\"0.000\">\n");
}

// An error and no failure: JUnit has the first for a test that could not be run.
static void write_refusal(const struct check *check, struct sink *sink)
{
	ASSERT(check->refusal);
	sink_text(sink, "      <error type=\"not judged\" message=\"");
	write_xml(sink, check->refusal);
	sink_text(sink, "\"/>\n");
}

// The text of the failure lists the sites, one on a line, as a reader of JUnit shows it as it is.
static void write_failure(const struct check *check, const struct check_row *row, const char *text,
			  struct sink *sink)
{
	ASSERT(row->exceeded);
	sink_text(sink, "      <failure type=\"limit\" message=\"");
	write_xml(sink, text);
	sink_text(sink, "\">");
	if (row->sites_count && !check_blamed(row)) {
		struct str line = { 0 };

		str_add(&line, "the largest sites; ");
		check_add_diff(check, &line);
		write_xml_words(sink, &line);
		sink_text(sink, "\n");
	}
	for (size_t i = 0; i < row->sites_count; i++) {
		struct names *names = row->asked->names;
		const struct symbol *place = place_of(row, row->sites[i].stack);
		struct str line = { 0 };

		check_add_value(&line, row->figure, row->sites[i].value);
		str_add(&line, "  ");
		names_add_function(names, row->sites[i].stack, false, &line);
		if (place)
			str_format(&line, "  %s:%" PRIu32, place->file, place->line);
		write_xml_words(sink, &line);
		sink_text(sink, "\n");
	}
	sink_text(sink, "</failure>\n");
}

// In a trace that cannot be judged each limit is an error, also one that is kept: no figure of it
// counts.
static void write_case(const struct check_page *page, const struct check_row *row,
		       struct sink *sink)
{
	struct str text = { 0 };

	ASSERT(row->limit.given);
	begin_case(page, check_names[row->figure], sink);
	check_describe(row, &text);
	if (page->check->refusal)
		write_refusal(page->check, sink);
	else if (row->exceeded)
		write_failure(page->check, row, str_get(&text), sink);
	sink_text(sink, "      <system-out>");
	write_xml_words(sink, &text);
	sink_text(sink, "</system-out>\n    </testcase>\n");
}

// One case for each limit. Where nothing was limited and the trace cannot be judged there is still
// one case, an error.
void check_junit(const struct check_page *page, struct sink *sink)
{
	const struct check *check = page->check;
	bool alone = check->refusal && !check->judged; // what cannot be judged never looks passed
	size_t cases = check->judged + alone;

	sink_text(sink,
		  "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"");
	write_xml(sink, reader_info(check->asked->reader)->command);
	sink_format(sink, "\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" time=\"%.3f\">\n",
		    cases, check->refusal ? (size_t)0 : check->exceeded,
		    check->refusal ? cases : (size_t)0, (double)check->asked->duration_ns / 1e9);
	for (int figure = 0; figure < CHECK_FIGURES; figure++)
		if (check->rows[figure].limit.given)
			write_case(page, &check->rows[figure], sink);
	if (alone) {
		begin_case(page, "check", sink);
		write_refusal(check, sink);
		sink_text(sink, "    </testcase>\n");
	}
	sink_text(sink, "  </testsuite>\n</testsuites>\n");
}
