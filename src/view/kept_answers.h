// kept_answers: what was answered, for whoever asks the same again.
//
// A trace does not change while it is open, so the answer to a question of the same words is the
// same. Those of the queues that take long are kept, up to a number of bytes; what was asked for
// least lately goes first. Any thread.
//
//     kept_answers_init
//       kept_answers_find    an answer, copied
//       kept_answers_add
//     kept_answers_fini
//
// For example the page is opened: findings take seconds. One looks at the flame graph and comes
// back: they are there at once, though another question is being answered at their queue.
#pragma once

#include "base/str.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct kept_answer; // private

struct kept_answers {
	pthread_mutex_t lock;      // the rest is private
	struct kept_answer *first; // what was asked for last
	uint64_t bytes, bytes_max;
};

void kept_answers_init(struct kept_answers *kept);
void kept_answers_fini(struct kept_answers *kept);

// From here on at most so many bytes are kept, questions with them; at first none are.
void kept_answers_limit(struct kept_answers *kept, uint64_t bytes_max);

// Appends the answer to `body`. False: it is not kept.
bool kept_answers_find(struct kept_answers *kept, const char *question, struct str *body);

// Copies both. Nothing is kept of an answer that would take more than half of the bytes.
void kept_answers_add(struct kept_answers *kept, const char *question, const struct str *body);
