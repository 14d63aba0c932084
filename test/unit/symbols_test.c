// Names for the frames of a trace: from files, from the trace itself, and from a bundle.
#include "symbols_oracle.h"

#include "symbols/symbols.h"
#include "trace/bundle.h"
#include "trace/reader.h"
#include "trace/writer.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

// A trace of two processes that ran the same program, with the frames that a test asks for.
struct recorded {
	const char *program, *trace;
	uint64_t offset;     // of `symbol` in the program
	uint64_t inlined_at; // where a function begins into which much is inlined
	uint64_t bias;
	frame_id in_first, in_second, in_no_place, inlined, generated, in_vdso, given;
};

enum { INLINED_COUNT = 100 };

static uint64_t offset_of(const char *path, const char *symbol)
{
	const char *out = test_temp_path("offset");
	unsigned long long offset = 0;
	FILE *file;

	oracle_run("nm %s | awk '$3 == \"%s\" { print $1 }' > %s", path, symbol, out);
	file = fopen(out, "r");
	CHECK(file != NULL && fscanf(file, "%llx", &offset) == 1);
	fclose(file);
	return offset;
}

static module_id add_module(struct writer *writer, process_id process, const char *path,
			    const char *said, uint64_t bias)
{
	struct trace_module module = { .process = process,
				       .start = bias,
				       .end = bias + 0x100000,
				       .bias = bias,
				       .path = (char *)said };
	struct err err;
	struct object *object = object_open(path, &err);

	if (object) {
		module.build_id_length = (uint8_t)object->build_id_length;
		memcpy(module.build_id, object->build_id, object->build_id_length);
		module.file_size = object->size_bytes;
		module.file_mtime_ns = object->mtime_ns;
	}
	object_close(object);
	if (module.build_id_length == 0)
		module.path = (char *)path;
	return writer_add_module(writer, &module);
}

// The vdso as the recorder would note it: by the build-id of the one in this process.
static module_id add_vdso(struct writer *writer, process_id process)
{
	const uint8_t *bytes = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	struct trace_module module = { .process = process,
				       .start = 0x7fff00000000,
				       .end = 0x7fff00002000,
				       .bias = 0x7fff00000000,
				       .path = (char *)"linux-vdso.so.1" };

	// The note: name size 4, description size, type 3, "GNU".
	for (size_t at = 0; bytes && at + 36 < 4096; at += 4) {
		if (memcmp(bytes + at + 8, "\3\0\0\0GNU", 8) == 0 && bytes[at] == 4 &&
		    bytes[at + 4] <= 20) {
			module.build_id_length = bytes[at + 4];
			memcpy(module.build_id, bytes + at + 16, module.build_id_length);
		}
	}
	return writer_add_module(writer, &module);
}

static void write_items(struct writer *writer, struct recorded *recorded)
{
	struct trace_process process = { .parent = TRACE_NONE,
					 .pid = 100,
					 .bits = 64,
					 .start = TRACE_START_EXEC,
					 .exe = (char *)recorded->program };
	struct trace_name names[] = { { .function = "given_inner", .file = "g.c", .line = 1 },
				      { .function = "given_outer", .file = "", .line = 0 } };
	process_id first = writer_add_process(writer, &process), second;
	module_id one, two, three, vdso;

	process.pid = 101;
	second = writer_add_process(writer, &process);
	one = add_module(writer, first, recorded->program, recorded->program, recorded->bias);
	two = add_module(writer, second, recorded->program, recorded->program, 2 * recorded->bias);
	three = add_module(writer, second, recorded->program, "/", 3 * recorded->bias);
	vdso = add_vdso(writer, second);
	recorded->in_first = writer_add_frame(writer, one, recorded->bias + recorded->offset, 0);
	recorded->in_second =
		writer_add_frame(writer, two, 2 * recorded->bias + recorded->offset, 0);
	recorded->in_no_place =
		writer_add_frame(writer, three, 3 * recorded->bias + recorded->offset, 0);
	// Somewhere in the first bytes something is inlined.
	for (uint64_t i = 0; i < INLINED_COUNT; i++) {
		frame_id id =
			writer_add_frame(writer, one, recorded->bias + recorded->inlined_at + i, 0);

		if (i == 0)
			recorded->inlined = id;
	}
	recorded->generated = writer_add_frame(writer, 0, 0xdead000, 0);
	recorded->in_vdso = writer_add_frame(writer, vdso, 0x7fff00000000 + 0x10, 0);
	recorded->given = writer_add_frame(writer, one, recorded->bias + 1, 0);
	writer_add_name(writer, recorded->given, names, 2);
}

// `compile` gets the path of the program at its end.
static struct recorded record_as(const char *compile, const char *symbol, const char *inlined)
{
	struct recorded recorded = { .program = test_temp_path("program"),
				     .trace = test_temp_path("t.tide"),
				     .bias = 0x555500000000 };
	struct trace_info info = {
		.tool = "t", .host = "h", .command = "c", .directory = "/", .options = ""
	};
	struct trace_event event = { .kind = TRACE_MALLOC, .address = 0x1000, .size = 8 };
	struct trace_end end = { .why = "" };
	struct writer *writer;
	struct err err;
	int fd;

	unlink(recorded.program);
	unlink(recorded.trace);
	oracle_run("cd %s/test/programs && %s -o %s", test_source_path("."), compile,
		   recorded.program);
	recorded.offset = offset_of(recorded.program, symbol);
	recorded.inlined_at = offset_of(recorded.program, inlined);
	fd = open(recorded.trace, O_RDWR | O_CREAT | O_TRUNC, 0600);
	CHECK(fd >= 0);
	writer = writer_new(fd, &info, &err);
	CHECK(writer != NULL);
	write_items(writer, &recorded);
	event.thread = writer_add_thread(writer, 0, 100, "main");
	event.stack = writer_add_stack(writer, 0, recorded.in_first, 0);
	writer_event(writer, &event);
	writer_end(writer, &end);
	CHECK(writer_ok(writer, &err));
	writer_free(writer);
	close(fd);
	return recorded;
}

static struct recorded record(const char *flags)
{
	struct str compile = { 0 };
	struct recorded recorded;

	str_format(&compile, "gcc -w -O2 -g %s symbols_inlined.c", flags);
	recorded = record_as(str_get(&compile), "is_split", "stands_alone");
	str_fini(&compile);
	return recorded;
}

struct reading {
	struct reader *reader;
	struct symbols *symbols;
};

static struct reading reading_open(const struct recorded *recorded,
				   const struct symbols_options *options)
{
	struct reading reading;
	struct err err;

	reading.reader = reader_open(recorded->trace, &err);
	CHECK(reading.reader != NULL);
	reader_scan(reading.reader);
	reading.symbols = symbols_new(reading.reader, options);
	return reading;
}

static void reading_close(struct reading *reading)
{
	symbols_free(reading->symbols);
	reader_close(reading->reader);
}

TEST(one_file_in_two_processes_gives_the_same_answer_twice)
{
	struct recorded recorded = record("");
	struct reading reading = reading_open(&recorded, NULL);
	const struct symbol *one, *two;
	const char *const *lines;
	size_t count;

	one = symbols_find(reading.symbols, recorded.in_first, &count);
	CHECK_EQ(1, count);
	CHECK_STR("is_split", one->function);
	CHECK_CONTAINS("symbols_inlined.c", one->file);
	CHECK(one->line > 0);
	CHECK_STR(recorded.program, one->module);
	CHECK_EQ(recorded.offset, one->offset);
	CHECK(!one->inlined);
	two = symbols_find(reading.symbols, recorded.in_second, &count);
	CHECK(one == two);
	CHECK_EQ(0, symbols_notes(reading.symbols, &lines));
	reading_close(&reading);
}

TEST(a_program_whose_path_is_that_of_a_mount_is_found_by_its_build_id)
{
	struct recorded recorded = record("-Wl,--build-id");
	struct reading reading = reading_open(&recorded, NULL);
	size_t count;
	const struct symbol *one = symbols_find(reading.symbols, recorded.in_no_place, &count);

	CHECK_STR("is_split", one->function);
	CHECK_STR(recorded.program, one->module);
	reading_close(&reading);
}

TEST(inlined_functions_come_innermost_first)
{
	struct recorded recorded = record("");
	struct reading reading = reading_open(&recorded, NULL);
	const struct symbol *symbols = NULL;
	size_t count = 0;

	for (frame_id i = 0; i < INLINED_COUNT && count < 6; i++)
		symbols = symbols_find(reading.symbols, recorded.inlined + i, &count);
	CHECK(count >= 6);
	for (size_t i = 0; i < count; i++) {
		CHECK_EQ(i + 1 < count, symbols[i].inlined);
		CHECK(symbols[i].function != NULL);
		CHECK_EQ(symbols[0].offset, symbols[i].offset);
	}
	CHECK_STR("stands_alone", symbols[count - 1].function);
	CHECK_STR("inlined_1", symbols[count - 2].function);
	reading_close(&reading);
}

TEST(frames_in_no_file_and_ids_of_no_frame_have_no_name)
{
	struct recorded recorded = record("");
	struct reading reading = reading_open(&recorded, NULL);
	const struct symbol *symbol;
	size_t count;

	symbol = symbols_find(reading.symbols, recorded.generated, &count);
	CHECK_EQ(1, count);
	CHECK(symbol->function == NULL);
	CHECK_STR("", symbol->module);
	CHECK_EQ(0xdead000, symbol->offset);
	symbol = symbols_find(reading.symbols, 0, &count);
	CHECK_EQ(1, count);
	CHECK_STR("", symbol->module);
	symbol = symbols_find(reading.symbols, UINT32_MAX, &count);
	CHECK_EQ(1, count);
	symbol = symbols_find(reading.symbols, recorded.in_vdso, &count);
	CHECK_EQ(1, count);
	CHECK_STR("linux-vdso.so.1", symbol->module);
	CHECK_EQ(0x10, symbol->offset);
	reading_close(&reading);
}

TEST(names_given_by_the_trace_win)
{
	struct recorded recorded = record("");
	struct reading reading = reading_open(&recorded, NULL);
	const struct symbol *symbols;
	size_t count;

	symbols = symbols_find(reading.symbols, recorded.given, &count);
	CHECK_EQ(2, count);
	CHECK_STR("given_inner", symbols[0].function);
	CHECK_STR("g.c", symbols[0].file);
	CHECK(symbols[0].inlined);
	CHECK_STR("given_outer", symbols[1].function);
	CHECK(symbols[1].file == NULL);
	CHECK(!symbols[1].inlined);
	CHECK_EQ(1, symbols[1].offset);
	reading_close(&reading);
}

TEST(the_vdso_of_this_kernel_is_named)
{
	struct recorded recorded = record("");
	struct reading reading = reading_open(&recorded, NULL);
	const struct trace_frame *frame = reader_frame(reading.reader, recorded.in_vdso);
	const struct trace_module *vdso = reader_module(reading.reader, frame->module);
	struct symbols_file_identity identity = {
		.path = vdso->path,
		.build_id = vdso->build_id,
		.build_id_length = vdso->build_id_length,
	};
	struct remarks remarks = { 0 };
	struct search search = { .remarks = &remarks };
	struct symbols_file *file;
	bool found = false;

	if (vdso->build_id_length == 0)
		SKIP("this kernel's vdso has no build-id");
	file = symbols_file_open(&identity, &search);
	for (uint64_t at = 0; at < 0x3000 && !found; at++) {
		struct places places = { 0 };

		symbols_file_find(file, at, &places);
		found = places.items[0].function &&
			strstr(places.items[0].function, "clock_gettime");
		places_fini(&places);
	}
	CHECK(found);
	symbols_file_close(file);
	reading_close(&reading);
}

TEST(a_program_that_was_built_anew_is_noticed_and_not_misread)
{
	struct recorded recorded = record("");
	struct reading reading;
	const struct symbol *symbol;
	const char *const *lines;
	size_t count;

	unlink(recorded.program);
	oracle_run("gcc -w -O1 -g %s -o %s", test_source_path("test/programs/symbols_inlined.c"),
		   recorded.program);
	reading = reading_open(&recorded, NULL);
	symbol = symbols_find(reading.symbols, recorded.in_first, &count);
	CHECK_EQ(1, count);
	CHECK(symbol->function == NULL && symbol->file == NULL);
	CHECK_STR(recorded.program, symbol->module);
	CHECK_EQ(recorded.offset, symbol->offset);
	CHECK_EQ(1, symbols_notes(reading.symbols, &lines));
	CHECK_CONTAINS("has changed since the recording", lines[0]);
	reading_close(&reading);
}

TEST(a_file_that_was_opened_ahead_is_remarked_on_once_it_is_needed)
{
	struct recorded recorded = record("");
	struct reading reading = reading_open(&recorded, NULL);
	const struct symbol *symbol;
	const char *const *lines;
	size_t count;

	symbols_open_expected(reading.symbols);
	symbols_expect(reading.symbols, 1);
	symbols_open_expected(reading.symbols);
	symbol = symbols_find(reading.symbols, recorded.in_first, &count);
	CHECK_EQ(1, count);
	CHECK_STR("is_split", symbol->function);
	CHECK_EQ(0, symbols_notes(reading.symbols, &lines));
	reading_close(&reading);

	unlink(recorded.program);
	oracle_run("gcc -w -O1 -g %s -o %s", test_source_path("test/programs/symbols_inlined.c"),
		   recorded.program);
	reading = reading_open(&recorded, NULL);
	symbols_expect(reading.symbols, 1);
	symbols_open_expected(reading.symbols);
	CHECK_EQ(0, symbols_notes(reading.symbols, &lines));
	symbol = symbols_find(reading.symbols, recorded.in_second, &count);
	CHECK(symbol->function == NULL);
	CHECK_EQ(1, symbols_notes(reading.symbols, &lines));
	CHECK_CONTAINS("has changed since the recording", lines[0]);
	// One that is not needed after all.
	symbols_free(reading.symbols);
	reading.symbols = symbols_new(reading.reader, NULL);
	symbols_expect(reading.symbols, 1);
	symbols_open_expected(reading.symbols);
	reading_close(&reading);
}

struct packed {
	struct bundle *bundle;
	size_t files;
};

static bool pack(void *opaque, const uint8_t *build_id, size_t build_id_length, const void *bytes,
		 size_t size, struct err *err)
{
	struct packed *packed = opaque;

	packed->files++;
	return bundle_add(packed->bundle, build_id, build_id_length, bytes, size, err);
}

// All that a reading says, as text.
static char *say_all(struct reading *reading)
{
	struct str text = { 0 };

	for (frame_id id = 0; id < reader_frames_count(reading->reader); id++) {
		size_t count;
		const struct symbol *symbols = symbols_find(reading->symbols, id, &count);

		for (size_t i = 0; i < count; i++)
			str_format(&text, "%u %s %s:%u %s+0x%llx %d\n", id,
				   symbols[i].function ? symbols[i].function : "?",
				   symbols[i].file ? symbols[i].file : "?", symbols[i].line,
				   symbols[i].module, (unsigned long long)symbols[i].offset,
				   symbols[i].inlined);
	}
	return str_take(&text);
}

static void check_bundle(const char *flags)
{
	struct recorded recorded = record(flags);
	struct reading reading = reading_open(&recorded, NULL);
	struct packed packed = { 0 };
	const char *const *lines;
	char *before, *after;
	struct err err;

	before = say_all(&reading);
	CHECK_CONTAINS("inlined_1", before);
	packed.bundle = bundle_begin(recorded.trace, &err);
	CHECK(packed.bundle != NULL);
	CHECK(symbols_pack(reading.symbols, pack, &packed, &err));
	CHECK(bundle_end(packed.bundle, &err));
	bundle_free(packed.bundle);
	CHECK_EQ(1, packed.files);
	reading_close(&reading);

	// As on another machine.
	unlink(recorded.program);
	reading = reading_open(&recorded, NULL);
	after = say_all(&reading);
	CHECK_STR(before, after);
	for (size_t i = 0; i < symbols_notes(reading.symbols, &lines); i++)
		printf("note: %s\n", lines[i]);
	CHECK_EQ(0, symbols_notes(reading.symbols, &lines));
	mem_free(before);
	mem_free(after);
	reading_close(&reading);
}

TEST(a_bundle_reads_the_same_when_the_program_is_gone)
{
	check_bundle("");
}

TEST(a_bundle_reads_the_same_for_a_program_without_a_build_id)
{
	check_bundle("-Wl,--build-id=none");
}

TEST(mangled_names_are_left_alone_on_request)
{
	static const struct symbols_options options = { .mangled = true };
	static const char symbol_name[] = "_ZN12_GLOBAL__N_16hiddenERKSt6vectorIiSaIiEE";
	struct recorded recorded =
		record_as("g++ -w -O2 -g0 symbols_templates.cpp", symbol_name, "plain_c_name");
	struct reading reading = reading_open(&recorded, &options);
	const struct symbol *symbol;
	size_t count;

	symbol = symbols_find(reading.symbols, recorded.in_first, &count);
	CHECK_STR(symbol_name, symbol->function);
	symbol = symbols_find(reading.symbols, recorded.inlined, &count);
	CHECK_STR("plain_c_name", symbol->function);
	reading_close(&reading);
	reading = reading_open(&recorded, NULL);
	symbol = symbols_find(reading.symbols, recorded.in_first, &count);
	CHECK_STR("(anonymous namespace)::hidden(std::vector<int, std::allocator<int> > const&)",
		  symbol->function);
	reading_close(&reading);
}

TEST(debuginfod_is_asked_only_on_request_and_its_absence_is_noted)
{
	static const struct symbols_options options = { .debuginfod = true };
	struct recorded recorded = record("");
	const char *const *lines;
	struct reading reading;
	size_t count;

	unsetenv("DEBUGINFOD_URLS");
	reading = reading_open(&recorded, NULL);
	symbols_find(reading.symbols, recorded.in_first, &count);
	CHECK_EQ(0, symbols_notes(reading.symbols, &lines));
	reading_close(&reading);

	reading = reading_open(&recorded, &options);
	CHECK_EQ(1, symbols_notes(reading.symbols, &lines));
	CHECK_CONTAINS("DEBUGINFOD_URLS", lines[0]);
	reading_close(&reading);
}

// A directory that answers like a server.
static void serve(const struct recorded *recorded)
{
	struct str place = { 0 };
	struct object *object;
	struct err err;

	object = object_open(recorded->program, &err);
	CHECK(object != NULL);
	str_format(&place, "%s/server/buildid/", test_temp_dir());
	for (size_t i = 0; i < object->build_id_length; i++)
		str_format(&place, "%02x", object->build_id[i]);
	object_close(object);
	oracle_run("mkdir -p %s && cp %s %s/executable && "
		   "objcopy --only-keep-debug %s %s/debuginfo && strip -s %s",
		   str_get(&place), recorded->program, str_get(&place), recorded->program,
		   str_get(&place), recorded->program);
	str_clear(&place);
	str_format(&place, "file://%s/server", test_temp_dir());
	setenv("DEBUGINFOD_URLS", str_get(&place), 1);
	setenv("DEBUGINFOD_CACHE_PATH", test_temp_path("cache"), 1);
	str_fini(&place);
}

TEST(debuginfod_brings_what_is_missing)
{
	static const struct symbols_options options = { .debuginfod = true };
	struct recorded recorded = record("");
	const struct symbol *symbol;
	const char *const *lines;
	struct reading reading;
	size_t count;

	serve(&recorded);
	reading = reading_open(&recorded, &options);
	if (symbols_notes(reading.symbols, &lines) > 0)
		SKIP("libdebuginfod.so.1 is not installed");
	symbol = symbols_find(reading.symbols, recorded.in_first, &count);
	CHECK_STR("is_split", symbol->function);
	CHECK(symbol->line > 0);
	CHECK_EQ(0, symbols_notes(reading.symbols, &lines));
	reading_close(&reading);

	// The program itself comes from there as well.
	unlink(recorded.program);
	reading = reading_open(&recorded, &options);
	symbol = symbols_find(reading.symbols, recorded.in_first, &count);
	CHECK_STR("is_split", symbol->function);
	CHECK(symbol->line > 0);
	reading_close(&reading);

	// Without being asked for, what it has fetched is used, and it is not asked.
	reading = reading_open(&recorded, NULL);
	symbol = symbols_find(reading.symbols, recorded.in_first, &count);
	CHECK_STR("is_split", symbol->function);
	CHECK(symbol->line > 0);
	reading_close(&reading);
	setenv("DEBUGINFOD_CACHE_PATH", test_temp_path("empty"), 1);
	reading = reading_open(&recorded, NULL);
	symbol = symbols_find(reading.symbols, recorded.in_first, &count);
	CHECK(symbol->function == NULL);
	reading_close(&reading);
}
