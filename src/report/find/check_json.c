// What check says to programs: JSON of our own (docs/schema/check.json), SARIF 2.1.0, GitLab's code
// quality, and JUnit's XML.
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

void check_json(const struct check_page *page, struct sink *sink)
{
	const struct check *check = page->check;
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
	json_end(&json);
}

// ---- places in the source ----

static const struct symbol *face_of(const struct check_row *row)
{
	return row->sites_count ? names_face(row->asked->names, row->sites[0].stack, false) : NULL;
}

// Where the last folder of what ends with '/' begins; `length`: there is none to go back from.
static size_t last_folder(const char *text, size_t length)
{
	size_t at = length;

	if (length < 2)
		return length;
	for (at--; at > 0 && text[at - 1] != '/';)
		at--;
	return length - at == 3 && memcmp(text + at, "../", 3) == 0 ? length : at;
}

char *check_plain_path(const char *path)
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

// The path of a file below the folder of the sources, by the words of GitLab and GitHub, or in
// which the program was started; else all of it.
static void add_place(const struct check *check, const char *path, struct str *out)
{
	const char *folders[] = { getenv("CI_PROJECT_DIR"), getenv("GITHUB_WORKSPACE"),
				  reader_info(check->asked->reader)->directory };
	char *whole = check_plain_path(path);
	size_t skipped = 0;

	for (size_t i = 0; i < sizeof folders / sizeof *folders && !skipped; i++) {
		size_t length = folders[i] ? strlen(folders[i]) : 0;

		if (length && strncmp(whole, folders[i], length) == 0 && whole[length] == '/')
			skipped = length + 1;
	}
	str_add(out, whole + skipped);
	mem_free(whole);
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

static void add_row_words(const struct check *check, const struct check_row *row, struct str *out)
{
	if (row)
		check_describe(row, out);
	else
		str_format(out, "not judged: %s", check->refusal);
}

// ---- SARIF ----

static void write_message(struct json *json, const char *key, const char *text)
{
	json_kv_object(json, key);
	json_kv_string(json, "text", text);
	json_object_end(json);
}

static void write_location(const struct check *check, const struct symbol *face, struct json *json)
{
	struct str uri = { 0 }, place = { 0 };

	json_object_begin(json);
	if (face->file) {
		add_place(check, face->file, &place);
		add_uri(&uri, str_get(&place));
		json_kv_object(json, "physicalLocation");
		json_kv_object(json, "artifactLocation");
		json_kv_string(json, "uri", str_get(&uri));
		json_object_end(json);
		if (face->line) {
			json_kv_object(json, "region");
			json_kv_u64(json, "startLine", face->line);
			json_object_end(json);
		}
		json_object_end(json);
	}
	if (face->function) {
		json_kv_array(json, "logicalLocations");
		json_object_begin(json);
		json_kv_string(json, "fullyQualifiedName", face->function);
		json_kv_string(json, "kind", "function");
		json_object_end(json);
		json_array_end(json);
	}
	json_object_end(json);
	str_fini(&uri);
	str_fini(&place);
}

// `row` NULL: that nothing could be judged.
static void write_result(const struct check *check, const struct check_row *row, struct json *json)
{
	const struct symbol *face = row ? face_of(row) : NULL;
	struct str text = { 0 }, rule = { 0 };

	add_row_words(check, row, &text);
	str_format(&rule, "tidemark/%s", row ? check_names[row->figure] : "not-judged");
	json_object_begin(json);
	json_kv_string(json, "ruleId", str_get(&rule));
	json_kv_string(json, "level", "error");
	write_message(json, "message", str_get(&text));
	if (face && (face->file || face->function)) {
		json_kv_array(json, "locations");
		write_location(check, face, json);
		json_array_end(json);
	}
	json_object_end(json);
	str_fini(&text);
	str_fini(&rule);
}

static void write_rule(const char *name, const char *text, struct json *json)
{
	struct str id = { 0 };

	str_format(&id, "tidemark/%s", name);
	json_object_begin(json);
	json_kv_string(json, "id", str_get(&id));
	write_message(json, "shortDescription", text);
	json_object_end(json);
	str_fini(&id);
}

static void write_tool(struct json *json)
{
	static const char *const texts[CHECK_FIGURES] = {
		"the most bytes that lived at one time",
		"bytes that were live at exit",
		"calls that allocated",
		"blocks that were freed before their thread's next allocation",
		"bytes to which nothing pointed at exit",
		"calls that allocated where the program expects none",
		"bytes a minute that sites kept growing by",
	};

	json_kv_object(json, "tool");
	json_kv_object(json, "driver");
	json_kv_string(json, "name", "tidemark");
	json_kv_array(json, "rules");
	for (int figure = 0; figure < CHECK_FIGURES; figure++)
		write_rule(check_names[figure], texts[figure], json);
	write_rule("not-judged", "the trace is not whole, or its figures are estimates", json);
	json_array_end(json);
	json_object_end(json);
	json_object_end(json);
}

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
		write_result(check, NULL, &json);
	for (int figure = 0; figure < CHECK_FIGURES; figure++)
		if (check->rows[figure].exceeded)
			write_result(check, &check->rows[figure], &json);
	json_array_end(&json);
	json_object_end(&json);
	json_array_end(&json);
	json_end(&json);
}

// ---- GitLab ----

static void write_issue(const struct check *check, const struct check_row *row, struct json *json)
{
	const struct symbol *face = row ? face_of(row) : NULL;
	const char *name = row ? check_names[row->figure] : "not-judged";
	struct str text = { 0 }, print = { 0 }, place = { 0 };

	add_row_words(check, row, &text);
	add_place(check, face && face->file ? face->file : check->path, &place);
	// Equal for the same figure of the same place, whatever its value.
	str_format(&print, "%s %s %s", name, reader_info(check->asked->reader)->command,
		   face && face->function ? face->function : "");
	json_object_begin(json);
	json_kv_string(json, "description", str_get(&text));
	json_key(json, "check_name");
	json_string(json, name);
	json_key(json, "fingerprint");
	json_hex(json, index_set_hash_text(str_get(&print)));
	json_kv_string(json, "severity", "major");
	json_kv_object(json, "location");
	json_kv_string(json, "path", str_get(&place));
	json_kv_object(json, "lines");
	json_kv_u64(json, "begin", face && face->line ? face->line : 1);
	json_object_end(json);
	json_object_end(json);
	json_object_end(json);
	str_fini(&text);
	str_fini(&print);
	str_fini(&place);
}

void check_gitlab(const struct check_page *page, struct sink *sink)
{
	const struct check *check = page->check;
	struct json json;

	json_init(&json, sink, true);
	json_array_begin(&json);
	if (check->refusal)
		write_issue(check, NULL, &json);
	for (int figure = 0; figure < CHECK_FIGURES; figure++)
		if (check->rows[figure].exceeded)
			write_issue(check, &check->rows[figure], &json);
	json_array_end(&json);
	sink_text(sink, "\n");
}

// ---- JUnit ----

// Text in XML; what XML has no word for is '?'.
static void write_xml(struct sink *sink, const char *text)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '<' || c == '>' || c == '&' || c == '"')
			sink_format(sink, "&#%d;", c);
		else if ((c < 0x20 && c != '\n' && c != '\t') || c >= 0x7F)
			sink_text(sink, "?");
		else
			sink_write(sink, text, 1);
	}
}

static void write_case(const struct check *check, const struct check_row *row, struct sink *sink)
{
	struct str text = { 0 };

	sink_format(sink, "    <testcase classname=\"tidemark\" name=\"%s\" time=\"%.3f\">\n",
		    check_names[row->figure], (double)check->asked->duration_ns / 1e9);
	check_describe(row, &text);
	if (check->refusal) {
		sink_text(sink, "      <error type=\"not judged\" message=\"");
		write_xml(sink, check->refusal);
		sink_text(sink, "\"/>\n");
	} else if (row->exceeded) {
		sink_text(sink, "      <failure type=\"limit\" message=\"");
		write_xml(sink, str_get(&text));
		sink_text(sink, "\">");
		for (size_t i = 0; i < row->sites_count; i++) {
			struct str name = { 0 };

			names_add_function(row->asked->names, row->sites[i].stack, false, &name);
			sink_format(sink, "%" PRIu64 "  ", row->sites[i].value);
			write_xml(sink, str_get(&name));
			sink_text(sink, "\n");
			str_fini(&name);
		}
		sink_text(sink, "</failure>\n");
	}
	sink_text(sink, "      <system-out>");
	write_xml(sink, str_get(&text));
	sink_text(sink, "</system-out>\n    </testcase>\n");
	str_fini(&text);
}

void check_junit(const struct check_page *page, struct sink *sink)
{
	const struct check *check = page->check;

	sink_text(sink,
		  "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"");
	write_xml(sink, reader_info(check->asked->reader)->command);
	sink_format(sink, "\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\">\n", check->judged,
		    check->refusal ? (size_t)0 : check->exceeded,
		    check->refusal ? check->judged : (size_t)0);
	for (int figure = 0; figure < CHECK_FIGURES; figure++)
		if (check->rows[figure].limit.given)
			write_case(check, &check->rows[figure], sink);
	sink_text(sink, "  </testsuite>\n</testsuites>\n");
}
