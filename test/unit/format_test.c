// docs/format.md has examples. They are true.
#include "test/test.h"
#include "test/unit/sample_trace.h"
#include "trace/asm.h"

#include "base/crc32c.h"
#include "wire/varint.h"

static char *document(void)
{
	size_t size;
	uint8_t *bytes = sample_load(test_source_path("docs/format.md"), &size);

	bytes[size] = '\0';
	return (char *)bytes;
}

// What stands in the nth (from 0) block that begins with ```KIND. mem_free.
static char *example(const char *kind, int nth)
{
	char *text = document();
	char fence[16];
	const char *at = text, *end;
	char *found;

	snprintf(fence, sizeof fence, "```%s\n", kind);
	for (int i = 0; i <= nth; i++) {
		at = strstr(at, fence);
		CHECK(at != NULL);
		at += strlen(fence);
	}
	end = strstr(at, "```");
	CHECK(end != NULL);
	found = mem_copy_bytes(at, (size_t)(end - at));
	mem_free(text);
	return found;
}

// "0040  8b 54 44  ; words" lines as bytes. The offsets in front must be right.
static size_t bytes_of(const char *text, uint8_t *out, size_t max)
{
	size_t size = 0;

	while (*text) {
		const char *end = strchr(text, '\n');
		char *at;

		CHECK_EQ(size, strtoul(text, &at, 16));
		while (at < end && *at != ';') {
			char *behind;
			unsigned long byte = strtoul(at, &behind, 16);

			if (behind == at)
				break;
			CHECK(byte < 256 && size < max);
			out[size++] = (uint8_t)byte;
			at = behind + strspn(behind, " ");
		}
		text = end + 1;
	}
	return size;
}

TEST(format_example_reads_as_the_text_beside_it)
{
	const char *path = test_temp_path("example.tide");
	struct asm_options options = asm_dump_all();
	char *text = example("text", 0), *hex = example("hex", 0);
	struct str dumped = { 0 };
	struct sink sink = sink_to_str(&dumped);
	struct err err = { 0 };
	uint8_t bytes[4096];
	struct reader *reader;

	sample_store(path, bytes, bytes_of(hex, bytes, sizeof bytes));
	reader = reader_open(path, &err);
	CHECK(reader != NULL);
	CHECK(asm_dump(reader, &options, &sink, &err));
	CHECK_STR(text, str_get(&dumped));
	CHECK(reader_ok(reader, &err));
	reader_close(reader);
	str_fini(&dumped);
	mem_free(text);
	mem_free(hex);
}

TEST(format_example_is_what_a_writer_makes_of_the_text)
{
	const char *path = test_temp_path("example.tide");
	char *text = example("text", 0), *hex = example("hex", 0);
	uint8_t expected[4096], *made;
	size_t size = bytes_of(hex, expected, sizeof expected), made_size;
	struct err err = { 0 };
	int fd = sample_create(path);

	CHECK(asm_read(text, strlen(text), fd, &err));
	close(fd);
	made = sample_load(path, &made_size);
	CHECK_EQ(size, made_size);
	CHECK_BYTES(expected, made, size);
	mem_free(made);
	mem_free(text);
	mem_free(hex);
}

TEST(format_text_written_by_hand_assembles)
{
	char *text = example("text", 1);
	struct err err = { 0 };
	int fd = sample_create(test_temp_path("hand.tide"));

	CHECK(asm_read(text, strlen(text), fd, &err));
	close(fd);
	mem_free(text);
}

TEST(format_numbers_of_section_2_are_right)
{
	static const struct {
		uint64_t value;
		uint8_t bytes[VARINT_BYTES_MAX];
	} rows[] = { { 0, { 0 } },
		     { 127, { 0x7f } },
		     { 128, { 0x80, 0x01 } },
		     { 300, { 0xac, 0x02 } },
		     { UINT64_MAX,
		       { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01 } } };
	uint8_t bytes[VARINT_BYTES_MAX];

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		CHECK_BYTES(rows[i].bytes, bytes, varint_encode(rows[i].value, bytes));
	CHECK_EQ(0xe3069283, crc32c(0, "123456789", 9));
}
