// Each question has a connection of its own. Few are asked at once: the database has others to
// serve. Who waits for a place is asked now and then whether they still do.
#include "cli/fleet_desk.h"

#include "base/json.h"
#include "base/mem.h"
#include "cli/interrupt.h"
#include "os/now.h"
#include "sql/fleet_question.h"
#include "sql/tables.h"
#include "view/params.h"

#include <string.h>

enum {
	TRIES = 3,
	ASKING_MAX = 2,
	PAUSE_NS = 20000000,
	ROWS_DEFAULT = 200, // as the viewer's other answers
	ROWS_MAX = 10000,
};

// A question and who asks it, while the answer is made.
struct asker {
	struct fleet_desk *desk;
	bool (*gone)(void *context);
	void *context;
};

// Asked by the connection while it waits, from the thread of the answer.
static bool is_off(void *context)
{
	const struct asker *asker = context;

	return atomic_load(&asker->desk->stopping) || (asker->gone && asker->gone(asker->context));
}

bool fleet_desk_open(struct fleet_desk *desk, const char *url, const char *version, struct err *err)
{
	// Only to see whether it can be reached, so that a slip in the address ends the command and
	// not the first question of the page.
	const struct clickhouse_place place = { url, .tries = TRIES, .stop = interrupt_came };
	struct clickhouse *clickhouse = clickhouse_new(&place, err);
	bool good = clickhouse && tables_check(clickhouse, err);

	*desk = (struct fleet_desk){ .url = url, .version = version };
	clickhouse_free(clickhouse);
	// From here on threads come and go, one for each connection of the viewer.
	mem_share();
	return good;
}

// ---- words ----

// Whether the name was given before.
static bool is_twice(const struct params *params, size_t at)
{
	ASSERT(at < params->count);
	for (size_t i = 0; i < at; i++)
		if (strcmp(params->list[i].name, params->list[at].name) == 0)
			return true;
	return false;
}

// `lane` is what the page calls a question of which a newer one makes the older moot: it closes
// that one's connection, so there is nothing to do here.
// n=0 is the most that is given, rather than all: the page would not bear a million rows. A word
// that no one takes is a mistake.
static bool take_words(struct params *params, struct fleet_question *asked, struct err *err)
{
	uint64_t rows = ROWS_DEFAULT;
	const char *name, *lane;

	if (!params_take(params, "question", &name, err) ||
	    !params_take(params, "lane", &lane, err) ||
	    !params_take_number(params, "n", 0, ROWS_MAX, &rows, err) ||
	    !fleet_question_find(asked, name ? name : "", err))
		return false;
	asked->wish.rows_max = rows ? rows : ROWS_MAX;
	for (size_t i = 0; i < params->count; i++) {
		struct params_one *one = &params->list[i];

		// What the question itself has no use for is refused by params_check_taken.
		if (one->taken)
			continue;
		if (!fleet_question_take(asked, one->name, one->value, &one->taken, err))
			return false;
		if (is_twice(params, i) && strcmp(one->name, "label") != 0)
			return err_set(err, ERR_USAGE, "'%s' can be given once only", one->name);
	}
	return params_check_taken(params, err) && fleet_question_check(asked, err);
}

// ---- answers ----

static void give_view(const struct fleet_desk *desk, struct sink *sink)
{
	struct json json;

	json_begin(&json, sink, false, "tidemark-view-fleet-1");
	json_kv_string(&json, "version", desk->version);
	json_kv_string(&json, "place", desk->url);
	json_end(&json);
}

static bool ask(struct asker *asker, const struct fleet_question *asked, struct sink *sink,
		struct err *err)
{
	const struct clickhouse_place place = {
		asker->desk->url,
		.tries = TRIES,
		.stop = is_off,
		.stop_context = asker,
	};
	struct clickhouse *clickhouse = clickhouse_new(&place, err);
	struct fleet_answer answer;
	bool good = clickhouse && asked->row->ask(clickhouse, &asked->wish, &answer, err);

	clickhouse_free(clickhouse);
	if (!good)
		return false;
	fleet_question_write_json(asked, sink, &answer);
	fleet_answer_fini(&answer);
	return true;
}

// A place is taken by counting up; who finds two taken counts down and sleeps for 20 ms. Order is
// not kept: with few askers it does not matter.
static bool wait_and_ask(struct asker *asker, const struct fleet_question *asked, struct sink *sink,
			 struct err *err)
{
	atomic_int *asking = &asker->desk->asking;
	bool good;

	ASSERT(asked->row);
	while (atomic_fetch_add(asking, 1) >= ASKING_MAX) {
		atomic_fetch_sub(asking, 1);
		if (is_off(asker))
			return err_set(err, ERR_STOPPED, "the answer is no longer wanted");
		now_sleep(PAUSE_NS);
	}
	good = ask(asker, asked, sink, err);
	atomic_fetch_sub(asking, 1);
	return good;
}

// What failed at the database is told as its fault, and not as the page's.
static enum refusal refusal_for(const struct err *err)
{
	switch (err->kind) {
	case ERR_STOPPED:
		return REFUSAL_BUSY;
	case ERR_IO:
	case ERR_FORMAT:
		return REFUSAL_DATABASE;
	case ERR_NONE:
	case ERR_INDEX:
	case ERR_USAGE:
	case ERR_LIMIT:
		break;
	}
	return refusal_of(err);
}

static bool give_fleet(struct asker *asker, const char *query, struct viewer_reply *reply,
		       struct err *err)
{
	struct sink sink = sink_to_str(&reply->body);
	struct fleet_question asked;
	struct params params;
	bool good;

	fleet_question_init(&asked);
	good = params_parse(&params, query, err) && take_words(&params, &asked, err) &&
	       wait_and_ask(asker, &asked, &sink, err);
	fleet_question_fini(&asked);
	params_fini(&params);
	return good;
}

// An answer that fails may have begun: what is there of it goes, and the refusal stands alone.
void fleet_desk_answer(void *desk, const char *path, const char *query, bool (*gone)(void *context),
		       void *context, struct viewer_reply *reply)
{
	struct asker asker = { desk, gone, context };
	struct err err = { 0 };

	*reply = (struct viewer_reply){ 0 };
	if (strcmp(path, "/api/view") == 0) {
		struct sink sink = sink_to_str(&reply->body);

		give_view(desk, &sink);
	} else if (strcmp(path, "/api/fleet") != 0) {
		reply->refusal = REFUSAL_PATH;
		err_set(&err, ERR_USAGE, "there is no such question");
	} else if (!give_fleet(&asker, query, reply, &err)) {
		reply->refusal = refusal_for(&err);
	}
	if (reply->refusal) {
		// A refusal is a document of its own.
		str_clear(&reply->body);
		refusal_write(reply->refusal, err.text, &reply->body);
	}
}

void fleet_desk_stop(void *desk)
{
	atomic_store(&((struct fleet_desk *)desk)->stopping, true);
}
