// Answers that are kept: what view/viewer.h promises of whoever asks again.
#include "test/test.h"
#include "test/unit/assembled.h"
#include "view/viewer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char text[] = "process p pid=1\nthread t p tid=1\n"
			   "module m p 0x7000-0x9000 bias=0x7000 \"/lib/a.so\"\n"
			   "frame f m 0x7100\nstack s f\n"
			   "+1 t malloc s 0x1000 10\n+1 t malloc s 0x2000 10\n"
			   "+1 t free 0x1000\n+50 t malloc s 0x3000 20\nend\n";

static bool is_gone(void *context)
{
	(void)context;
	return true;
}

// Its answer, for the caller to free; NULL: it was refused. Who does not wait is at no queue, so
// what is answered was kept.
static char *ask(struct viewer *viewer, const char *path, const char *query, bool waits)
{
	struct viewer_reply reply;
	char *answer;

	viewer_answer(viewer, path, query, waits ? NULL : is_gone, NULL, &reply);
	answer = reply.refusal == REFUSAL_NONE ? mem_copy_text(str_get(&reply.body)) : NULL;
	if (!waits && !answer)
		CHECK_EQ(REFUSAL_BUSY, reply.refusal);
	viewer_reply_fini(&reply);
	return answer;
}

TEST(who_asks_the_same_again_waits_for_nobody)
{
	static const char *const questions[][2] = {
		{ "/api/growth", NULL },
		{ "/api/growth", "n=5&lane=ahead" },
		{ "/api/findings", "process=1" },
		{ "/api/window", "by=impact&details=1" },
		{ "/api/info", "" },
	};
	enum { COUNT = sizeof questions / sizeof *questions };
	struct viewer viewer;
	struct err err = { 0 };
	char *answers[COUNT], *again;

	reader_close(assembled_open(text));
	CHECK(viewer_open(&viewer,
			  &(struct viewer_options){ .path = test_temp_path("assembled.tide"),
						    .version = "1" },
			  &err));
	CHECK_STR("", err.text);
	for (size_t i = 0; i < COUNT; i++) {
		CHECK(!ask(&viewer, questions[i][0], questions[i][1], false));
		answers[i] = ask(&viewer, questions[i][0], questions[i][1], true);
		CHECK(answers[i]);
	}
	for (size_t i = 0; i < COUNT; i++) {
		again = ask(&viewer, questions[i][0], questions[i][1], false);
		CHECK(again);
		CHECK_STR(answers[i], again);
		MEM_FREE(again, answers[i]);
	}
	// The lane does not matter, a filter does.
	again = ask(&viewer, "/api/growth", "lane=growth&n=5", false);
	CHECK(again);
	mem_free(again);
	CHECK(!ask(&viewer, "/api/growth", "n=6", false));
	CHECK(!ask(&viewer, "/api/findings", "process=1&from=begin", false));
	// Nor are a name and a value taken for others.
	CHECK(!ask(&viewer, "/api/findings", "thread=1", false));
	again = ask(&viewer, "/api/growth", "process=1&n=5", true);
	CHECK(again);
	mem_free(again);
	CHECK(!ask(&viewer, "/api/growth", "process=1%20n%3D5", false));
	// Nor is what was refused kept, or what is asked while a window is dragged.
	CHECK(!ask(&viewer, "/api/growth", "n=none", true));
	CHECK(!ask(&viewer, "/api/growth", "n=none", false));
	again = ask(&viewer, "/api/window", "by=impact&details=0", true);
	CHECK(again);
	mem_free(again);
	CHECK(!ask(&viewer, "/api/window", "by=impact&details=0", false));
	viewer_close(&viewer);
}

// ---- a trace that changes ----

// It is still wanted, but what it is about has changed.
static bool change_trace(void *context)
{
	FILE *file = fopen(context, "ab");

	CHECK(file);
	fputc('x', file);
	fclose(file);
	return false;
}

TEST(nothing_is_kept_or_given_of_a_trace_that_changed)
{
	const char *path = test_temp_path("assembled.tide");
	struct viewer viewer;
	struct viewer_reply reply;
	struct err err = { 0 };
	uint64_t kept_bytes;
	char *answer;

	reader_close(assembled_open(text));
	CHECK(viewer_open(&viewer,
			  &(struct viewer_options){
				  .path = path, .version = "1", .window.memory_bytes = 256 << 20 },
			  &err));
	CHECK_EQ((256 << 20) / 5 / 4, viewer.kept.bytes_max);
	answer = ask(&viewer, "/api/growth", NULL, true);
	CHECK(answer);
	mem_free(answer);
	kept_bytes = viewer.kept.bytes;
	// While it is answered, and before it is asked.
	viewer_answer(&viewer, "/api/growth", "n=7", change_trace, (void *)path, &reply);
	CHECK_EQ(REFUSAL_GONE, reply.refusal);
	viewer_reply_fini(&reply);
	CHECK_EQ(kept_bytes, viewer.kept.bytes);
	viewer_answer(&viewer, "/api/growth", NULL, NULL, NULL, &reply);
	CHECK_EQ(REFUSAL_GONE, reply.refusal);
	viewer_reply_fini(&reply);
	viewer_close(&viewer);
}

struct behind {
	struct viewer *viewer;
	char *answer;
};

static void *ask_behind(void *context)
{
	struct behind *behind = context;

	behind->answer = ask(behind->viewer, "/api/growth", NULL, true);
	return NULL;
}

// As if who was in front had asked the same.
TEST(who_waited_is_given_what_was_kept_meanwhile)
{
	const struct query_queue_asker front = { 0 };
	struct viewer viewer;
	struct behind behind = { .viewer = &viewer };
	struct str body = { 0 };
	struct err err = { 0 };
	pthread_t thread;
	bool waits = false;

	reader_close(assembled_open(text));
	CHECK(viewer_open(&viewer,
			  &(struct viewer_options){ .path = test_temp_path("assembled.tide"),
						    .version = "1" },
			  &err));
	CHECK_EQ(QUERY_QUEUE_MINE, query_queue_enter(&viewer.replays, &front));
	CHECK_EQ(0, pthread_create(&thread, NULL, ask_behind, &behind));
	while (!waits) {
		usleep(1000);
		pthread_mutex_lock(&viewer.replays.mutex);
		waits = viewer.replays.first != NULL;
		pthread_mutex_unlock(&viewer.replays.mutex);
	}
	str_add(&body, "kept");
	kept_answers_add(&viewer.kept, "/api/growth", &body);
	str_fini(&body);
	CHECK_EQ(QUERY_QUEUE_MINE, query_queue_leave(&viewer.replays));
	pthread_join(thread, NULL);
	CHECK_STR("kept", behind.answer);
	mem_free(behind.answer);
	viewer_close(&viewer);
}

// ---- questions that answer in turn ----

struct other_queue {
	struct viewer *viewer;
	atomic_bool over;
};

// As if the other queue that takes long came to the end of its answer, somewhat later.
static void *end_later(void *context)
{
	struct other_queue *other = context;

	usleep(200000);
	pthread_mutex_lock(&other->viewer->lock);
	other->over = true;
	other->viewer->turn_taken = false;
	pthread_cond_broadcast(&other->viewer->moved);
	pthread_mutex_unlock(&other->viewer->lock);
	return NULL;
}

static bool is_gone_soon(void *context)
{
	int *asked = context;

	return ++*asked > 3;
}

TEST(where_memory_is_short_what_takes_long_takes_turns_and_windows_do_not_wait)
{
	static const char *const slow[][2] = { { "/api/growth", NULL },
					       { "/api/window", "by=impact&details=1" } };
	struct other_queue other = { 0 };
	struct viewer viewer;
	struct viewer_reply reply;
	struct err err = { 0 };
	int gone_asked = 0;
	pthread_t thread;
	char *answer;

	reader_close(assembled_open(text));
	CHECK(viewer_open(&viewer,
			  &(struct viewer_options){ .path = test_temp_path("assembled.tide"),
						    .version = "1" },
			  &err));
	CHECK(!viewer.in_turn); // of so few stacks all fit
	viewer.in_turn = true;
	other.viewer = &viewer;
	for (size_t i = 0; i < sizeof slow / sizeof *slow; i++) {
		other.over = false;
		viewer.turn_taken = true;
		answer = ask(&viewer, "/api/window", "by=impact&details=0", true);
		CHECK(answer);
		mem_free(answer);
		CHECK_EQ(0, pthread_create(&thread, NULL, end_later, &other));
		answer = ask(&viewer, slow[i][0], slow[i][1], true);
		CHECK(other.over);
		CHECK(answer);
		CHECK(!viewer.turn_taken);
		mem_free(answer);
		pthread_join(thread, NULL);
	}
	// Who goes away while it waits for its turn has none, and takes none from others.
	viewer.turn_taken = true;
	viewer_answer(&viewer, "/api/transients", NULL, is_gone_soon, &gone_asked, &reply);
	CHECK_EQ(REFUSAL_BUSY, reply.refusal);
	viewer_reply_fini(&reply);
	CHECK(viewer.turn_taken);
	CHECK_EQ(0, viewer.asked);
	viewer.turn_taken = false;
	viewer_close(&viewer);
}
