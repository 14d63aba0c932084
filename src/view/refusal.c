// What the page needs to know of a refusal is its kind, as a word; HTTP's status is for other
// readers.
#include "view/refusal.h"

#include "base/json.h"
#include "base/mem.h"

static const struct kind {
	unsigned status;
	const char *word;
} kinds[REFUSALS] = {
	[REFUSAL_NONE] = { 200, "none" },
	[REFUSAL_USAGE] = { 400, "usage" },
	[REFUSAL_TOKEN] = { 401, "token" },
	[REFUSAL_ORIGIN] = { 403, "origin" },
	[REFUSAL_PATH] = { 404, "path" },
	[REFUSAL_METHOD] = { 405, "method" },
	[REFUSAL_NOT_RECORDED] = { 409, "not-recorded" },
	[REFUSAL_GONE] = { 410, "gone" },
	[REFUSAL_LIMIT] = { 413, "limit" },
	[REFUSAL_QUERY] = { 414, "query" },
	[REFUSAL_HOST] = { 421, "host" },
	[REFUSAL_INTERNAL] = { 500, "internal" },
	[REFUSAL_DATABASE] = { 502, "database" },
	[REFUSAL_BUSY] = { 503, "busy" },
	[REFUSAL_SUPERSEDED] = { 503, "busy" },
};

unsigned refusal_status(enum refusal refusal)
{
	ASSERT(refusal < REFUSALS);
	return kinds[refusal].status;
}

// A file that cannot be read, or is damaged, is no mistake of who asks.
enum refusal refusal_of(const struct err *err)
{
	switch (err->kind) {
	case ERR_USAGE:
		return REFUSAL_USAGE;
	case ERR_LIMIT:
		return REFUSAL_LIMIT;
	case ERR_NONE:
	case ERR_IO:
	case ERR_FORMAT:
	case ERR_STOPPED:
	case ERR_INDEX:
		break;
	}
	return REFUSAL_INTERNAL;
}

// A superseded question has the status and the word of a busy one. The page can tell which of both
// it was by "superseded".
void refusal_write(enum refusal refusal, const char *text, struct str *body)
{
	struct sink sink = sink_to_str(body);
	struct json json;

	ASSERT(refusal != REFUSAL_NONE && refusal < REFUSALS);
	json_begin(&json, &sink, false, "tidemark-view-error-1");
	json_kv_string(&json, "error", text);
	json_kv_string(&json, "kind", kinds[refusal].word);
	json_kv_bool(&json, "superseded", refusal == REFUSAL_SUPERSEDED);
	json_end(&json);
}
