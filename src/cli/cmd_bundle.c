// bundle: packs the symbols that a trace needs into it, so that it reads the same elsewhere.
//
// The names go to the end of the file, behind what is there already, which is not touched: a bundle
// that breaks off leaves a trace that reads as before. What this machine has no symbols of may be
// added by another run on the machine that has them.
#include "cli/args.h"

#include "base/str.h"
#include "symbols/symbols.h"
#include "trace/bundle.h"

#include <inttypes.h>
#include <string.h>

static const struct option_row bundle_options[] = {
	{ ARGS_TEXT(symbols_options, path), 0, "debug-path", "DIR:DIR",
	  "look for symbols here first" },
	{ ARGS_FLAG(symbols_options, debuginfod), 0, "debuginfod", NULL,
	  "ask debuginfod for what is missing" },
	{ 0 },
};

static int run(int argc, char **argv);

const struct command cmd_bundle = {
	.name = "bundle",
	.brief = "pack the symbols into a trace, so that it reads the same on any machine",
	.usage = "FILE [options]",
	.text = "Looks up every address in the trace once and adds the names to the end of the\n"
		"file. What is in the file already is not changed.",
	.examples = "  tidemark bundle app.tide && scp app.tide elsewhere:\n",
	.options = bundle_options,
	.run = run,
};

struct packing {
	const struct reader *reader;
	struct bundle *bundle;
	uint64_t files, bytes;
	uint64_t known; // files whose names are in the trace as they are
};

// One module's names, as symbols_pack has them. The same bytes are not added a second time, so
// bundling twice adds nothing.
static bool pack_file(void *opaque, const uint8_t *build_id, size_t build_id_length,
		      const void *bytes, size_t size, struct err *err)
{
	// Names are found by build-id, so that two processes with the same library share one pack.
	struct packing *packing = opaque;
	size_t there_size;
	const void *there = reader_bundle(packing->reader, build_id, build_id_length, &there_size);

	if (there && there_size == size && memcmp(there, bytes, size) == 0) {
		packing->known++;
		return true;
	}
	packing->files++;
	packing->bytes += size;
	return bundle_add(packing->bundle, build_id, build_id_length, bytes, size, err);
}

// Only when all names are written the bundle's end is: a bundle that broke off is not one to
// readers.
static bool pack(const char *path, const struct symbols_options *options, struct packing *packing,
		 struct err *err)
{
	struct reader *reader = reader_open(path, err);
	struct symbols *symbols;
	const char *const *notes;
	size_t notes_count;
	bool ok;

	if (!reader)
		return false;
	// All definitions are needed first: symbols_pack asks for the names of each frame of the
	// trace.
	reader_scan(reader);
	symbols = symbols_new(reader, options);
	packing->bundle = bundle_begin(path, err);
	packing->reader = reader;
	ok = packing->bundle && symbols_pack(symbols, pack_file, packing, err) &&
	     (packing->files == 0 || bundle_end(packing->bundle, err));
	notes_count = symbols_notes(symbols, &notes);
	for (size_t i = 0; i < notes_count && ok; i++)
		args_warn(&cmd_bundle, "%s", notes[i]);
	bundle_free(packing->bundle);
	symbols_free(symbols);
	reader_close(reader);
	return ok;
}

static int run(int argc, char **argv)
{
	struct symbols_options options = { 0 };
	struct packing packing = { 0 };
	const char *path = NULL;
	struct err err = { 0 };
	struct args args;

	args_init(&args, &cmd_bundle, argc, argv);
	args.into = &options;
	args.operand = &path;
	if (args_next(&args) != ARGS_END || !args_need(&args, path, "a trace FILE"))
		return args.exit_code;
	if (!pack(path, &options, &packing, &err))
		return args_fail(&cmd_bundle, &err);
	if (packing.files == 0 && packing.known > 0)
		fprintf(stderr, "tidemark: %s has its names already: nothing is added\n", path);
	else
		fprintf(stderr, "tidemark: names of %" PRIu64 " files added to %s, %s unpacked\n",
			packing.files, path, STR_BYTES(packing.bytes));
	return EXIT_ANSWERED;
}
