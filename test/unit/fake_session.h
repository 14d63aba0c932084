// fake_session: a collector in a thread of the test, and what it wrote.
#pragma once

#include "collect/collect.h"
#include "test/test.h"
#include "trace/reader.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

struct fake_session {
	char socket_name[64];
	const char *path;
	struct collect_options options;
	struct collect_summary summary;
	struct err err;
	bool good;
	int launcher_fd; // our end
	pthread_t thread;
};

static inline void *fake_session_main(void *argument)
{
	struct fake_session *session = argument;

	session->good = collect_run(&session->options, &session->summary, &session->err);
	return NULL;
}

// The next message of a kind; false if none comes within ten seconds.
static inline bool fake_session_hear(struct fake_session *session, uint32_t kind,
				     struct collect_message *message)
{
	do {
		if (recv(session->launcher_fd, message, sizeof *message, 0) !=
		    (ssize_t)sizeof *message)
			return false;
	} while (message->kind != kind);
	return true;
}

// With the options that are set in `session`, and those of every session.
static inline void fake_session_begin(struct fake_session *session, uint32_t segment_options,
				      int output_fd)
{
	static int number;
	struct collect_message message;
	int pair[2];

	snprintf(session->socket_name, sizeof session->socket_name, "tidemark-test-%d-%d", getpid(),
		 number++);
	CHECK_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	session->launcher_fd = pair[0];
	setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ .tv_sec = 10 },
		   sizeof(struct timeval));
	session->options = (struct collect_options){
		.output_fd = output_fd,
		.socket_name = session->socket_name,
		.segment_options = segment_options,
		.report_fd = pair[1],
		.stop_fd = -1,
		.listen_fd = -1,
		.keep = session->options.keep,
		.keep_wishes = session->options.keep_wishes,
		.info = { .tool = (char *)"test",
			  .host = (char *)"",
			  .command = (char *)"fake",
			  .directory = (char *)"/",
			  .options = (char *)"" },
	};
	pthread_create(&session->thread, NULL, fake_session_main, session);
	CHECK(fake_session_hear(session, COLLECT_READY, &message));
}

static inline void fake_session_open_to(struct fake_session *session, uint32_t segment_options,
					int output_fd)
{
	memset(session, 0, sizeof *session);
	fake_session_begin(session, segment_options, output_fd);
}

static inline void fake_session_open_kept(struct fake_session *session, uint32_t segment_options,
					  const struct collect_keep *keep, const void *keep_wishes)
{
	const char *path = test_temp_path("fake.tide");

	memset(session, 0, sizeof *session);
	session->options.keep = keep;
	session->options.keep_wishes = keep_wishes;
	fake_session_begin(session, segment_options,
			   open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
	session->path = path;
}

static inline void fake_session_open(struct fake_session *session, uint32_t segment_options)
{
	fake_session_open_kept(session, segment_options, NULL, NULL);
}

static inline void fake_session_say(struct fake_session *session, uint32_t kind, uint32_t pid,
				    int status)
{
	struct collect_message message = { .kind = kind, .pid = pid, .status = status };

	CHECK_EQ(sizeof message,
		 send(session->launcher_fd, &message, sizeof message, MSG_NOSIGNAL));
}

// The main program has ended: wait for the trace. `kind`: COLLECT_ENDED or COLLECT_STOP.
static inline void fake_session_close(struct fake_session *session, uint32_t kind)
{
	fake_session_say(session, kind, 0, 0);
	pthread_join(session->thread, NULL);
	close(session->launcher_fd);
	close(session->options.report_fd);
	close(session->options.output_fd);
}

// Run `guest` in a process of its own and wait for its end. It is to _exit.
#define FAKE_PROCESS(pid, body)   \
	do {                      \
		(pid) = fork();   \
		if ((pid) == 0) { \
			body;     \
			_exit(0); \
		}                 \
	} while (0)
