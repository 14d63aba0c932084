// Any bytes as what a database answers: to who fetches a trace, asks a question of many, sends to
// a cluster, or sends a trace, bit by bit and then its file, to one where some of it is already; or
// as what a collector of profiles does. The first byte says which; each answer
// then is its length (two bytes; the top bit: it is an error), and so many bytes. After the last
// one nobody answers any more.
//
// The connection is ours: these are the functions of os/http.
#include "base/mem.h"
#include "os/file.h"
#include "os/http.h"
#include "sql/fleet.h"
#include "sql/otlp_send.h"
#include "sql/pull.h"
#include "sql/push_live.h"
#include "trace/writer.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct {
	const uint8_t *at;
	size_t left;
} answers;

struct http {
	int nothing;
};

struct http *http_new(struct err *err)
{
	(void)err;
	return mem_alloc(1, sizeof(struct http));
}

void http_free(struct http *http)
{
	mem_free(http);
}

void http_header(struct http *http, const char *header)
{
	(void)http;
	(void)header;
}

void http_trust(struct http *http, const char *path)
{
	(void)http;
	(void)path;
}

bool http_is_final(const struct http *http)
{
	(void)http;
	return false;
}

void http_stop(struct http *http, bool (*stop)(void *context), void *context)
{
	(void)http;
	(void)stop;
	(void)context;
}

void http_escape(struct http *http, const char *text, struct str *url)
{
	(void)http;
	str_add(url, text);
}

static bool take_answer(unsigned *status, struct str *answer)
{
	size_t length;

	if (answers.left < 2)
		return false;
	length = (size_t)answers.at[0] | (size_t)(answers.at[1] & 0x7f) << 8;
	*status = answers.at[1] & 0x80 ? 500 : 200;
	answers.at += 2;
	answers.left -= 2;
	length = length < answers.left ? length : answers.left;
	str_add_bytes(answer, answers.at, length);
	answers.at += length;
	answers.left -= length;
	return true;
}

bool http_post(struct http *http, const char *url, const void *bytes, size_t size, unsigned *status,
	       struct str *answer, struct err *err)
{
	static pthread_mutex_t one_by_one = PTHREAD_MUTEX_INITIALIZER;
	bool answered;

	(void)http;
	(void)url;
	(void)bytes;
	(void)size;
	pthread_mutex_lock(&one_by_one);
	answered = take_answer(status, answer);
	pthread_mutex_unlock(&one_by_one);
	return answered || err_set(err, ERR_IO, "nobody answers");
}

// What is refused is refused in words.
static void check(bool good, const struct err *err)
{
	if (!good && (!err->text[0] || err->kind == ERR_NONE))
		abort();
}

static void fetch(struct clickhouse *clickhouse)
{
	struct err err = { 0 };
	struct pull *pull = pull_new(clickhouse, "", &err);
	char path[64];
	bool named;

	check(pull != NULL, &err);
	if (!pull)
		return;
	snprintf(path, sizeof path, "/tmp/server_fuzz.%ld.tide", (long)getpid());
	check(pull_write(pull, path, PROGRESS_NONE, &named, &err), &err);
	file_remove(path);
	pull_free(pull);
}

static void ask(struct clickhouse *clickhouse, fleet_question_asker *question)
{
	const struct fleet_wish wish = { .version = "version", .host = "host" };
	struct fleet_answer answer;
	struct err err = { 0 };
	bool good = question(clickhouse, &wish, &answer, &err);

	check(good, &err);
	if (!good)
		return;
	for (size_t i = 0; i < answer.count; i++)
		if (answer.rows[i].name && strlen(answer.rows[i].name) > 1 << 16)
			abort();
	fleet_answer_fini(&answer);
}

static void spread(const char *url)
{
	const struct clickhouse_place place = { .url = url, .tries = 1 };
	struct err err = { 0 };
	struct shards *shards = shards_new(&place, "two", &err);
	bool good = shards && tables_make(shards, NULL, &err);

	check(good, &err);
	if (good && shards_count(shards) != 2)
		abort();
	shards_free(shards);
}

static char folder[] = "/tmp/server_fuzz.XXXXXX", trace_path[64];

static void remove_trace(void)
{
	file_remove(trace_path);
	rmdir(folder);
}

// A block that lives, and one that does not.
static void make_trace(void)
{
	const struct trace_info info = {
		.recording_id = { 1 },
		.tool = (char *)"",
		.host = (char *)"",
		.command = (char *)"fuzz",
		.directory = (char *)"",
		.options = (char *)"",
	};
	const struct trace_process process = { .pid = 1, .parent = TRACE_NONE };
	struct trace_event event = { .kind = TRACE_MALLOC, .address = 0x1000, .size = 5 };
	struct trace_end end = { .duration_ns = 10, .why = (char *)"" };
	struct writer *writer;
	struct err err;
	int fd;

	if (!mkdtemp(folder))
		abort();
	snprintf(trace_path, sizeof trace_path, "%s/a.tide", folder);
	fd = file_open(trace_path, FILE_WRITE | FILE_NEW);
	writer = fd >= 0 ? writer_new(fd, &info, &err) : NULL;
	if (!writer)
		abort();
	writer_add_thread(writer, writer_add_process(writer, &process), 1, "t");
	event.stack = writer_add_stack(writer, 0, writer_add_frame(writer, 0, 1, 0), 0);
	writer_event(writer, &event);
	event.address = 0x2000;
	writer_event(writer, &event);
	event.kind = TRACE_FREE;
	writer_event(writer, &event);
	writer_end(writer, &end);
	writer_free(writer);
	file_close(fd);
	atexit(remove_trace);
}

static bool never(void *context)
{
	(void)context;
	return false;
}

static void say(const char *line)
{
	if (!*line)
		abort();
}

static void drop(const struct reader *reader, uint64_t from_ns, uint64_t to_ns)
{
	(void)reader;
	if (from_ns >= to_ns)
		abort();
}

static void send(void)
{
	const struct clickhouse_place place = { .url = "clickhouse://db/memory", .tries = 1 };
	const struct push_live_options options = {
		.path = trace_path,
		.stop = never,
		.say = say,
		.dropped = drop,
	};
	struct push_result result = { 0 };
	struct err err = { 0 };
	struct shards *shards = shards_new(&place, NULL, &err);

	check(shards && push_live_run(shards, &options, &result, &err), &err);
	shards_free(shards);
}

static void profile(void)
{
	const struct otlp_place place = { .url = "otlp://collector" };
	const struct str message = { .text = "x", .length = 1 };
	struct otlp_said said = { 0 };
	struct err err = { 0 };
	struct otlp_send *send = otlp_send_new(&place, &err);
	bool good = otlp_send_profiles(send, &message, true, &said, &err);

	check(good, &err);
	if (good && said.rejected && said.why.length == 0)
		abort();
	str_fini(&said.why);
	otlp_send_free(send);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static fleet_question_asker *const questions[] = { fleet_sites, fleet_grew, fleet_hosts,
							   fleet_trend, fleet_traces };
	const struct clickhouse_place place = { .url = "clickhouse://db/memory", .tries = 1 };
	struct err err = { 0 };
	struct clickhouse *clickhouse;

	if (size == 0)
		return 0;
	answers.at = data + 1;
	answers.left = size - 1;
	if (data[0] == 'o') {
		profile();
		return 0;
	}
	if (data[0] == 's') {
		if (!*trace_path)
			make_trace();
		send();
		return 0;
	}
	clickhouse = clickhouse_new(&place, &err);
	if (data[0] == 'p')
		fetch(clickhouse);
	else if (data[0] == 'c')
		spread("clickhouse://a:1,b:2/memory");
	else if (data[0] - '0' < (int)(sizeof questions / sizeof *questions) && data[0] >= '0')
		ask(clickhouse, questions[data[0] - '0']);
	clickhouse_free(clickhouse);
	return 0;
}
