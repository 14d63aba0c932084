#include "import/import.h"

#include "base/mem.h"
#include "import/import_formats.h"

#include <inttypes.h>

// What has a sign of its own comes first, a header of names last.
// clang-format off
const struct import_format *const import_formats[] = {
	&import_etl,
	&import_heaplog,
	&import_mtrace,
	&import_tracker,
	&import_tracefrag,
	&import_heap_text,
	&import_massif,
	&import_dhat,
	&import_lsan,
	&import_memcheck,
	&import_memleak,
	&import_lttng,
	&import_perf,
	&import_pprof,
	&import_heaptrack,
	&import_jsonl,
	&import_csv,
	NULL,
};
// clang-format on

enum { LINES_PER_LOOK = 1 << 12, CONTENT_BYTES_MAX = 1 << 30 };

// The user is asked every 4,096 lines, and the progress told.
bool import_line(struct import_work *work, char **line, size_t *length)
{
	if (source_position(work->source)->lines % LINES_PER_LOOK == 0 && import_was_stopped(work))
		return false;
	return source_line(work->source, line, length);
}

// The line that failed must be the last, without an end, or within a packed frame that did not end:
// then a file was cut there, and it is no error. Another line after it means that it is one.
bool import_was_cut(struct import_work *work, struct err *err)
{
	char *line;
	size_t length;

	// In this order: a line that failed in the middle of a file is an error, whatever comes
	// later.
	if (!source_position(work->source)->line_open && !source_cut(work->source))
		return false;
	if (source_line(work->source, &line, &length))
		return false;
	*err = (struct err){ 0 };
	work->cut = true;
	str_format(work->remarks,
		   "the input ends within line %" PRIu64 ": what is before it counts\n",
		   source_position(work->source)->lines);
	return true;
}

void import_end_here(struct import_work *work)
{
	work->cut = true;
	str_format(work->remarks,
		   "the input ends within a record, at byte %" PRIu64
		   ": what is before it counts\n",
		   source_position(work->source)->taken);
}

bool import_was_stopped(const struct import_work *work)
{
	const struct import_options *options = work->options;

	if (options->progress)
		options->progress(options->context, source_position(work->source)->read);
	return options->stopped && options->stopped(options->context);
}

bool import_content(struct import_work *work, struct str *content, struct err *err)
{
	const uint8_t *bytes;
	size_t count;

	while ((count = source_some(work->source, &bytes)) > 0) {
		// A profile is read as a whole; one of more than a gigabyte is no profile.
		if (content->length + count > CONTENT_BYTES_MAX)
			return err_set(err, ERR_FORMAT, "it is larger than %d MiB",
				       CONTENT_BYTES_MAX >> 20);
		str_add_bytes(content, bytes, count);
		if (import_was_stopped(work))
			return true;
	}
	return source_ok(work->source, err);
}

// The first format that says yes; NULL: none.
static const struct import_format *recognise(struct source *source)
{
	size_t length;
	const char *head = source_head(source, &length);

	// The order decides where several say yes: see the list.
	for (const struct import_format *const *format = import_formats; *format; format++)
		if ((*format)->is(head, length))
			return *format;
	return NULL;
}

// Why no format was found: the head could not be read, there is nothing in it, or it is of none of
// these. The first comes first, since a file that cannot be read looks empty.
static bool nothing_is_known(struct source *source, struct err *err)
{
	static const char xml[] = "<valgrindoutput>";
	struct str names = { 0 };
	const char *head;
	size_t length;

	ASSERT(source);
	head = source_head(source, &length);
	if (!source_ok(source, err))
		return false;
	for (const struct import_format *const *format = import_formats; *format; format++)
		str_format(&names, "%s%s", names.length ? ", " : "", (*format)->name);
	if (length == 0)
		err_set(err, ERR_FORMAT, "it is empty");
	else if (mem_search(head, length, xml, sizeof xml - 1))
		err_set(err, ERR_FORMAT,
			"it is a report of Valgrind's in XML, which is not read (try: valgrind "
			"without --xml=yes)");
	else
		err_set(err, ERR_FORMAT, "its format is not known; known are %s", str_get(&names));
	str_fini(&names);
	return false;
}

// A trace's times never fall. Where the input's do, its order is believed and the times are not.
static void remark_times(struct import_work *work)
{
	uint64_t raised = intake_raised(work->intake);

	if (raised)
		str_format(work->remarks,
			   "%s times are earlier than the one before: the order is that of the "
			   "input, and they were raised\n",
			   STR_COUNT(raised));
}

// One of the inputs. The first one's format makes the intake, and all others must be of it. Several
// inputs are moments of one program, which only formats of snapshots have. What a format's reader
// leaves to this function: the number of the line, where the format has lines; that the user
// stopped it, at which a reader just ends; and that the source could not be read to its end.
static bool read_input(struct import_work *work, const struct import_format **format,
		       struct err *err)
{
	// --format overrules what the input looks like.
	const struct import_format *found = work->options->format ? work->options->format
								  : recognise(work->source);

	ASSERT(work->source);
	if (!found)
		return nothing_is_known(work->source, err);
	// The trace begins with the first input whose format is known; before that nothing is
	// written.
	if (!*format) {
		*format = found;
		work->intake = intake_new(work->fd, found->name);
		work->series = found->snapshots ? series_new(work->intake) : NULL;
	}
	if (found != *format)
		return err_set(err, ERR_FORMAT, "it is of another format (%s) than the first (%s)",
			       found->name, (*format)->name);
	if (!found->snapshots && work->options->inputs_count > 1)
		return err_set(
			err, ERR_FORMAT,
			"several files become one trace only of snapshots, and %s has events "
			"(try: import each, then tidemark merge)",
			found->name);
	if (!found->read(work, err)) {
		if (source_position(work->source)->lines > 0 && err->kind == ERR_FORMAT)
			err_wrap(err, "line %" PRIu64, source_position(work->source)->lines);
		return false;
	}
	if (work->options->stopped && work->options->stopped(work->options->context))
		return err_set(err, ERR_STOPPED, "stopped");
	return source_ok(work->source, err);
}

// The source itself may end early (a packed stream that breaks off), also where its reader saw
// nothing but an end. What came before is in the trace, and the trace's end says that it is cut.
static void end_input(struct import_work *work, struct import_result *result)
{
	if (source_cut(work->source)) {
		str_format(work->remarks,
			   "the input ends early, after %" PRIu64 " bytes: what is there counts\n",
			   source_position(work->source)->read);
		work->cut = true;
	}
	ASSERT(work->source);
	// `read` is set by a format that reads a file by itself.
	result->bytes += work->read ? work->read : source_position(work->source)->read;
	source_free(work->source);
	work->source = NULL;
}

// Inputs are read one after the other into one trace; the messages name the one that failed.
static bool read_all(struct import_work *work, struct import_result *result, struct err *err)
{
	const struct import_options *options = work->options;

	for (work->input = 0; work->input < options->inputs_count; work->input++) {
		bool ok;

		work->source = source_new(options->inputs[work->input].file);
		ok = read_input(work, &result->format, err);
		end_input(work, result);
		if (!ok)
			return err_wrap(err, "%s", options->inputs[work->input].path);
	}
	// What follows is about the whole, and speaks of the first.
	work->input = 0;
	if (intake_events(work->intake) == 0)
		return err_set(err, ERR_FORMAT, "%s: there is no event of memory in it (%s)",
			       options->inputs[0].path, result->format->name);
	remark_times(work);
	if (work->series && series_joined(work->series))
		str_format(work->remarks,
			   "%" PRIu64
			   " sums are of too many blocks: they are fewer and larger in the "
			   "trace, of as many bytes\n",
			   series_joined(work->series));
	return intake_end(work->intake, work->cut ? "the imported file ends early" : NULL, err);
}

// `remarks` are there also after a failure, for what was understood by then.
bool import_trace(const struct import_options *options, int fd, struct import_result *result,
		  struct err *err)
{
	struct str remarks = { 0 };
	struct import_work work = { .remarks = &remarks, .options = options, .fd = fd };
	bool ok;

	ASSERT(options->inputs_count > 0);
	*result = (struct import_result){ 0 };
	ok = read_all(&work, result, err);
	result->events = work.intake ? intake_events(work.intake) : 0;
	result->remarks = mem_copy_text(str_get(&remarks));
	series_free(work.series);
	intake_free(work.intake);
	str_fini(&remarks);
	return ok;
}
