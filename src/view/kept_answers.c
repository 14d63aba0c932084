// A list in the order in which they were asked for. There are some tens of them, and each took a
// queue its time, so they are looked through one by one.
#include "view/kept_answers.h"

#include "base/mem.h"

#include <string.h>

// Question and answer are behind it.
struct kept_answer {
	struct kept_answer *next;
	size_t question_bytes, body_bytes; // of the question with its NUL
	char text[];
};

static uint64_t bytes_of(const struct kept_answer *answer)
{
	return sizeof *answer + answer->question_bytes + answer->body_bytes;
}

void kept_answers_init(struct kept_answers *kept)
{
	*kept = (struct kept_answers){ 0 };
	pthread_mutex_init(&kept->lock, NULL);
}

// Out of the list: `link` points at it.
static struct kept_answer *take_out(struct kept_answers *kept, struct kept_answer **link)
{
	struct kept_answer *answer = *link;

	ASSERT(kept->bytes >= bytes_of(answer));
	*link = answer->next;
	kept->bytes -= bytes_of(answer);
	return answer;
}

static void put_first(struct kept_answers *kept, struct kept_answer *answer)
{
	answer->next = kept->first;
	kept->first = answer;
	kept->bytes += bytes_of(answer);
}

// The last in the list was asked for least lately.
static void make_room(struct kept_answers *kept, uint64_t bytes)
{
	while (kept->first && kept->bytes + bytes > kept->bytes_max) {
		struct kept_answer **link = &kept->first;

		while ((*link)->next)
			link = &(*link)->next;
		mem_free(take_out(kept, link));
	}
}

void kept_answers_fini(struct kept_answers *kept)
{
	kept->bytes_max = 0;
	make_room(kept, 0);
	pthread_mutex_destroy(&kept->lock);
	ASSERT(!kept->first && kept->bytes == 0);
}

void kept_answers_limit(struct kept_answers *kept, uint64_t bytes_max)
{
	pthread_mutex_lock(&kept->lock);
	kept->bytes_max = bytes_max;
	make_room(kept, 0);
	pthread_mutex_unlock(&kept->lock);
}

// Where it is in the list; at its end NULL.
static struct kept_answer **find(struct kept_answers *kept, const char *question)
{
	struct kept_answer **link = &kept->first;

	while (*link && strcmp((*link)->text, question) != 0)
		link = &(*link)->next;
	return link;
}

bool kept_answers_find(struct kept_answers *kept, const char *question, struct str *body)
{
	struct kept_answer **link;
	bool found;

	pthread_mutex_lock(&kept->lock);
	link = find(kept, question);
	found = *link != NULL;
	if (found) {
		struct kept_answer *answer = take_out(kept, link);

		put_first(kept, answer);
		str_add_bytes(body, answer->text + answer->question_bytes, answer->body_bytes);
	}
	pthread_mutex_unlock(&kept->lock);
	return found;
}

// Of two that asked the same at one time the first is kept.
void kept_answers_add(struct kept_answers *kept, const char *question, const struct str *body)
{
	size_t question_bytes = strlen(question) + 1;
	struct kept_answer *answer;

	pthread_mutex_lock(&kept->lock);
	if (sizeof *answer + question_bytes + body->length <= kept->bytes_max / 2 &&
	    !*find(kept, question)) {
		answer = mem_alloc(1, sizeof *answer + question_bytes + body->length);
		answer->question_bytes = question_bytes;
		answer->body_bytes = body->length;
		memcpy(answer->text, question, question_bytes);
		memcpy(answer->text + question_bytes, str_get(body), body->length);
		make_room(kept, bytes_of(answer));
		put_first(kept, answer);
		ASSERT(kept->bytes <= kept->bytes_max);
	}
	pthread_mutex_unlock(&kept->lock);
}
