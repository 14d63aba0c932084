// A table is declared once and written in every form: what is a figure to people is a number to
// programs, and what is not known is empty, null, or 0 where a form has always had one.
#include "report/table/sheet.h"
#include "test/test.h"

struct row {
	const char *name;
	uint64_t bytes, since_ns;
	int64_t change;
	double rate;
	uint32_t count;
	bool began;
};

static struct sheet_cell get_since(const struct sheet_at *at)
{
	const struct row *row = at->row;

	return sheet_u64(row->began, row->since_ns);
}

static void write_pair(const struct sheet_at *at)
{
	const struct row *row = at->row;

	json_kv_u64(at->sheet->json, at->column->name, row->count);
}

#define FIELD(member) SHEET_FIELD(struct row, member)
static const struct sheet_column columns[] = {
	{ "name", SHEET_TEXT, 0, FIELD(name), .meaning = "what it is called" },
	{ "bytes", SHEET_BYTES, 0, FIELD(bytes), .meaning = "bytes" },
	{ "change", SHEET_BYTES, SHEET_CHANGE, FIELD(change), .meaning = "what changed" },
	{ "slope_bytes_per_s", SHEET_RATE, 0, FIELD(rate), .meaning = "how fast" },
	{ "since_ns", SHEET_TIME, SHEET_ZERO, get_since, 0, .meaning = "since when" },
	{ "count", SHEET_COUNT, SHEET_FLAT_ONLY, FIELD(count), .meaning = "how many" },
	{ "rank", SHEET_NUMBER, SHEET_PROGRAMS, FIELD(count), .meaning = "which" },
	{ "pair", SHEET_OBJECT, SHEET_JSON_ONLY, .json = write_pair },
};

static const struct row rows[] = {
	{ "a, \"b\"", 2048, 1500000, -512, 1024.5, 7, true },
	{ "", 0, 99, 3, 0, 1234567, false },
};

static const char *write_rows(struct sheet sheet, struct str *text)
{
	sheet_begin(&sheet, columns, sizeof columns / sizeof *columns);
	sheet_row(&sheet, &rows[0]);
	sheet_row(&sheet, &rows[1]);
	sheet_end(&sheet);
	return str_get(text);
}

TEST(sheet_as_values_with_commas)
{
	struct str text = { 0 };
	struct sink sink = sink_to_str(&text);

	CHECK_STR("name,bytes,change,slope_bytes_per_s,since_ns,count,rank\r\n"
		  "\"a, \"\"b\"\"\",2048,-512,1024.500,1500000,7,7\r\n"
		  ",0,3,0.000,0,1234567,1234567\r\n",
		  write_rows((struct sheet){ .form = &sheet_csv, .sink = &sink }, &text));
	str_fini(&text);
}

TEST(sheet_as_objects_of_json)
{
	struct str text = { 0 };
	struct sink sink = sink_to_str(&text);
	struct json json;

	json_init(&json, &sink, false);
	json_array_begin(&json);
	write_rows(sheet_in_json(&json), &text);
	json_array_end(&json);
	CHECK_STR("[{\"name\":\"a, \\\"b\\\"\",\"bytes\":2048,\"change\":-512,"
		  "\"slope_bytes_per_s\":1024.5,\"since_ns\":1500000,\"rank\":7,\"pair\":7},"
		  "{\"name\":null,\"bytes\":0,\"change\":3,\"slope_bytes_per_s\":0,"
		  "\"since_ns\":null,\"rank\":1234567,\"pair\":1234567}]",
		  str_get(&text));
	str_fini(&text);
}

TEST(sheet_as_a_line_of_json_for_each_row)
{
	struct str text = { 0 };
	struct sink sink = sink_to_str(&text);

	CHECK_STR("{\"name\":\"a, \\\"b\\\"\",\"bytes\":2048,\"change\":-512,"
		  "\"slope_bytes_per_s\":1024.5,\"since_ns\":1500000,\"rank\":7,\"pair\":7}\n"
		  "{\"name\":null,\"bytes\":0,\"change\":3,\"slope_bytes_per_s\":0,"
		  "\"since_ns\":null,\"rank\":1234567,\"pair\":1234567}\n",
		  write_rows((struct sheet){ .form = &sheet_jsonl, .sink = &sink }, &text));
	str_fini(&text);
}

TEST(sheet_as_markdown_for_people)
{
	struct str text = { 0 };
	struct sink sink = sink_to_str(&text);
	struct sheet sheet = {
		.form = &sheet_markdown, .sink = &sink, .page.command = "test", .left_out = 1
	};

	CHECK_STR("### tidemark test\n\n"
		  "| name | bytes | change | slope | since | count |\n"
		  "| :--- | ---: | ---: | ---: | ---: | ---: |\n"
		  "| a, \"b\" | 2.0 KiB | −512 B | 1.0 KiB/s | 1.500 ms | 7 |\n"
		  "|  | 0 B | +3 B | 0 B/s | 0 ns | 1,234,567 |\n"
		  "\n*1 more row is left out (`-n 0` shows all).*\n",
		  write_rows(sheet, &text));
	str_fini(&text);
}

TEST(sheet_of_no_rows_says_so)
{
	struct str text = { 0 };
	struct sink sink = sink_to_str(&text);
	struct sheet sheet = { .form = &sheet_markdown, .sink = &sink, .page.command = "test" };

	sheet_begin(&sheet, columns, sizeof columns / sizeof *columns);
	sheet_end(&sheet);
	CHECK_STR("### tidemark test\n\nNo rows.\n", str_get(&text));
	str_fini(&text);
}
