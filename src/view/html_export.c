// A page that needs no server: the viewer's own page, with the answers that it would ask for put
// into it as JSON. What is asked is what the server would say, byte for byte, so each answer is
// asked of the viewer itself. Windows that a user may choose later cannot all be asked ahead: for
// these the page has sums (view/aggregate.h), of which it makes tables by itself.
//
// If the page is larger than the user allows it is made again with fewer stacks and cells, up to
// TRIES times; what is coarser by that is said in the page (`coarse`). For example, with 21 MB
// allowed, 31 MB made, and 1 MB of it the page itself: of 1,500,000 cells 1,500,000 * 0.8 * 20 / 30
// = 800,000 are kept, and three quarters of the stacks.
#include "view/html_export.h"

#include "base/json.h"
#include "base/mem.h"
#include "engine/moment.h"
#include "os/file.h"
#include "trace/fresh.h"
#include "view/aggregate.h"
#include "view/packed.h"
#include "view/page.h"
#include "view/scrub.h"

#include <inttypes.h>
#include <string.h>

enum {
	STACKS_FIRST = 20000,
	CELLS_FIRST = 1500000,
	MAPS = 16,
	MAPS_OF_LONG = 4, // each goes through the recording
	LONG_STEPS = 20 * 1000 * 1000,
	TRIES = 6,
	COARSE_MAX = 9,
};

struct html_export {
	struct viewer *viewer;
	const struct html_export_options *options;
	struct scrub scrub;
	struct aggregate aggregate;
	struct str json; // the data
	int tries;
	char *coarse[COARSE_MAX];
	size_t coarse_count;
};

// ---- what the server would say ----

// The answer as the value of a key. What the viewer refuses becomes null, and the page shows that
// there is nothing of the kind. False: it should have been there.
static bool add_answer(struct html_export *single, struct json *json, const char *key,
		       const char *path, const char *query, struct err *err)
{
	struct viewer_reply reply;
	struct str scrubbed = { 0 };
	const struct str *body = &reply.body;
	bool good = true;

	viewer_answer(single->viewer, path, query, NULL, NULL, &reply);
	if (key)
		json_key(json, key);
	if (reply.refusal == REFUSAL_NONE) {
		if (single->options->scrub) {
			scrub_json(&single->scrub, str_get(body), body->length, &scrubbed);
			body = &scrubbed;
		}
		json_raw(json, str_get(body), body->length);
	} else {
		json_null(json);
		// A trace without time has no curves, and one with too little memory no series.
		good = reply.refusal == REFUSAL_NOT_RECORDED || reply.refusal == REFUSAL_USAGE ||
		       reply.refusal == REFUSAL_LIMIT ||
		       err_set(err, ERR_IO, "%s: %s", path, str_get(&reply.body));
	}
	str_fini(&scrubbed);
	viewer_reply_fini(&reply);
	return good;
}

static bool add_answers(struct html_export *single, struct json *json, struct err *err)
{
	static const struct {
		const char *key, *path, *query;
	} parts[] = {
		{ "info", "/api/info", NULL },
		{ "marks", "/api/marks", NULL },
		{ "peaks", "/api/peaks", "n=100" },
		{ "sizelife", "/api/sizelife", NULL },
		{ "findings", "/api/findings", NULL },
		{ "growth", "/api/growth", NULL },
		{ "transients", "/api/transients", "n=50" },
		{ "reconcile", "/api/reconcile", NULL },
	};

	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (!add_answer(single, json, parts[i].key, parts[i].path, parts[i].query, err))
			return false;
	if (single->viewer->options.other)
		return add_answer(single, json, "diff", "/api/diff", NULL, err);
	json_kv_null(json, "diff");
	return true;
}

// As many buckets as the sums have ticks, so that the page's curves and its windows agree. The
// second trace of a comparison has no curve of the largest free block: no question gives it.
static bool add_timelines(struct html_export *single, struct json *json, const char *key,
			  const char *path, struct err *err)
{
	static const char *const layers[] = { "heap", "vm", "rss", "cumulative", NULL };
	bool other = strcmp(path, "/api/timeline") != 0;
	char query[64];

	json_kv_object(json, key);
	for (int i = 0; layers[i]; i++) {
		snprintf(query, sizeof query, "layer=%s&buckets=%zu", layers[i],
			 single->aggregate.ticks);
		if (!add_answer(single, json, layers[i], path, query, err))
			return false;
	}
	snprintf(query, sizeof query, "buckets=%zu", single->aggregate.ticks);
	if (!other && !add_answer(single, json, "largest_free", "/api/curve", query, err))
		return false;
	json_object_end(json);
	return true;
}

// A map is a pass over the recording, so a long one has few, and a file that was too large has
// fewer.
static size_t maps_count(const struct html_export *single)
{
	const struct window_facts *facts = window_facts(single->viewer->sums.opened.window);

	if (!(facts->layers & WINDOW_VM) || single->tries >= TRIES / 2)
		return 0;
	return single->tries > 0 || facts->steps_end > LONG_STEPS ? MAPS_OF_LONG : MAPS;
}

// In the middles of equal parts of the time: of 4 maps of 8 s at 1, 3, 5 and 7 s.
static bool add_maps(struct html_export *single, struct json *json, struct err *err)
{
	uint64_t duration = moment_duration(single->viewer->sums.opened.reader);
	size_t count = maps_count(single);
	char query[64];

	json_kv_array(json, "maps");
	for (size_t i = 0; i < count; i++) {
		snprintf(query, sizeof query, "at=%" PRIu64 "ns&n=50",
			 (uint64_t)((unsigned __int128)duration * (2 * i + 1) / (2 * count)));
		if (!add_answer(single, json, NULL, "/api/map", query, err))
			return false;
	}
	json_array_end(json);
	return true;
}

// ---- the document ----

static void say_coarse(struct html_export *single, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void say_coarse(struct html_export *single, const char *format, ...)
{
	struct str text = { 0 };
	va_list args;

	ASSERT(single->coarse_count < COARSE_MAX);
	va_start(args, format);
	str_vformat(&text, format, args);
	va_end(args);
	single->coarse[single->coarse_count++] = str_take(&text);
}

static void forget_coarse(struct html_export *single)
{
	for (size_t i = 0; i < single->coarse_count; i++)
		mem_free(single->coarse[i]);
	single->coarse_count = 0;
}

// What the page says of itself, in words: where its figures are exact, and where they are not.
static void tell_coarse(struct html_export *single)
{
	const struct aggregate *aggregate = &single->aggregate;
	size_t marks;

	forget_coarse(single);
	say_coarse(single,
		   "windows begin and end at marks and at the borders of %zu stretches of %s; for "
		   "these, counts and bytes are exact",
		   aggregate->ticks,
		   STR_DURATION(aggregate->edges_ns[aggregate->buckets] / aggregate->ticks));
	window_marks(single->viewer->sums.opened.window, &marks);
	if (marks > aggregate->marks)
		say_coarse(single, "of %zu marks the first %zu are exact", marks, aggregate->marks);
	if (aggregate->rest)
		say_coarse(single,
			   "of %zu stacks the heaviest %zu are listed, the "
			   "others are one row",
			   aggregate->stacks_total, aggregate->stacks_count - 2);
	if (!aggregate->threads)
		say_coarse(single, "threads are not told apart");
	say_coarse(single, "peaks of rows are those at these edges, so the true ones "
			   "may be higher");
	say_coarse(single, "sizes are known to an octave, lifetimes of rows to a stretch");
	if (maps_count(single) > 0)
		say_coarse(single, "the address space is there at %zu moments", maps_count(single));
	if (single->options->scrub)
		say_coarse(single, "paths and arguments were taken out");
	single->viewer->coarse = (const char *const *)single->coarse;
	single->viewer->coarse_count = single->coarse_count;
}

// What is coarse is put into words first, as the answer about the view has these sentences in it.
static bool make_json(struct html_export *single, struct err *err)
{
	struct sink sink = sink_to_str(&single->json);
	bool with_other = single->viewer->options.other != NULL;
	struct json json;

	str_clear(&single->json);
	tell_coarse(single);
	json_begin(&json, &sink, false, "tidemark-view-data-1");
	if (!add_answer(single, &json, "view", "/api/view", NULL, err) ||
	    !add_answers(single, &json, err) ||
	    !add_timelines(single, &json, "timelines", "/api/timeline", err) ||
	    (with_other &&
	     !add_timelines(single, &json, "diff_timelines", "/api/diff/timeline", err)) ||
	    !add_maps(single, &json, err))
		return false;
	if (!with_other) {
		json_kv_null(&json, "diff_timelines");
	}
	aggregate_write(&single->aggregate, single->options->scrub ? &single->scrub : NULL, &json);
	json_object_end(&json);
	return true;
}

// ---- the page ----

// The policy of the server's page, but that nothing may be fetched at all: a page from a file can
// be opened anywhere, and a name in a trace, whatever it is, must not send data away.
static void add_policy(struct str *page)
{
	static const char fetches[] = "connect-src 'self'";
	const char *at = strstr(page_policy, fetches);

	ASSERT(at);
	str_add(page, "<meta http-equiv=\"Content-Security-Policy\" content=\"");
	str_add_bytes(page, page_policy, (size_t)(at - page_policy));
	str_add(page, "connect-src 'none'");
	str_add(page, at + sizeof fetches - 1);
	str_add(page, "\">");
}

// The page has two comments that stand for the policy and for the data.
static bool make_page(struct html_export *single, struct str *page, struct err *err)
{
	const char *policy = strstr(page_html, PAGE_POLICY_MARK);
	const char *data = strstr(page_html, PAGE_DATA_MARK);
	bool good;

	ASSERT(policy && data && policy < data); // embed.py saw to it
	str_clear(page);
	str_add_bytes(page, page_html, (size_t)(policy - page_html));
	add_policy(page);
	policy += sizeof PAGE_POLICY_MARK - 1;
	str_add_bytes(page, policy, (size_t)(data - policy));
	// A type that no browser runs: the script in the page reads it as text.
	str_add(page, "<script type=\"application/octet-stream\" id=\"tidemark-data\">");
	good = packed_add(page, str_get(&single->json), single->json.length, err);
	str_add(page, "</script>");
	str_add(page, data + sizeof PAGE_DATA_MARK - 1);
	return good;
}

// With fewer and fewer cells, until it is small enough.
static bool make_small(struct html_export *single, struct str *page, struct err *err)
{
	uint64_t most = single->options->bytes_max;
	size_t stacks = STACKS_FIRST, cells = CELLS_FIRST;

	if (most <= page_html_size)
		return err_set(err, ERR_LIMIT,
			       "the page alone has %zu bytes (try a larger --max-bytes)",
			       page_html_size);
	for (single->tries = 0; single->tries < TRIES; single->tries++) {
		if (!aggregate_take(&single->aggregate, &single->viewer->sums.opened, stacks, cells,
				    err))
			return false;
		if (!make_json(single, err) || !make_page(single, page, err))
			return false;
		if (page->length <= most)
			return true;
		// By the measure of what is too much, and a little more.
		cells = (size_t)((double)single->aggregate.cells_count * 0.8 *
				 (double)(most - page_html_size) /
				 (double)(page->length - page_html_size));
		stacks = single->aggregate.stacks_count * 3 / 4;
		aggregate_fini(&single->aggregate);
	}
	return err_set(err, ERR_LIMIT,
		       "the smallest file that could be made has %zu bytes, not %" PRIu64
		       " (try a larger --max-bytes)",
		       page->length, most);
}

// A file is written beside it and renamed, so that it is whole or not there.
static bool write_page(const struct html_export_options *options, const struct str *page,
		       struct err *err)
{
	struct fresh fresh = { .fd = -1 };
	bool good = fresh_open(&fresh, options->path, options->force, err);

	ASSERT(options->path);
	if (good)
		good = file_write_all(fresh.fd, str_get(page), page->length, err) ||
		       err_wrap(err, "cannot write %s", options->path);
	good = good && fresh_keep(&fresh, err);
	fresh_close(&fresh);
	return good;
}

// What the viewer answers from here on is for a file: without the text of sources, and without
// where traces are. The sentences on what is coarse are owned here, so the viewer forgets them at
// the end.
bool html_export_write(struct viewer *viewer, const struct html_export_options *options,
		       struct err *err)
{
	struct html_export single = { .viewer = viewer, .options = options };
	struct str page = { 0 };
	bool good = !options->scrub || scrub_init(&single.scrub, err);

	ASSERT(options->path && viewer);
	viewer->html_export_file = true;
	viewer->scrubbed = options->scrub;
	good = good && make_small(&single, &page, err) && write_page(options, &page, err);
	aggregate_fini(&single.aggregate);
	forget_coarse(&single);
	viewer->coarse_count = 0;
	STR_FINI(&single.json, &page);
	return good;
}
