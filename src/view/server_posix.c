// Between libmicrohttpd, which speaks HTTP, and the viewer, which answers. A request is: its
// target kept as it was sent, its headers given to the gate (gate.h: does it come from this
// machine's browser, with the token), then either the page or an answer. Connections have a
// thread each while they are answered; at most REQUESTS_MAX at a time, and what waits to be read
// by slow clients is bounded in bytes.
//
// For example, a browser that is closed while a question runs: is_closed sees it, the question is
// stopped, and its place goes to the next one.
#include "view/server.h"

#include "base/mem.h"
#include "os/random.h"
#include "view/headers.h"
#include "view/httpd.h"
#include "view/page.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
	CONNECTIONS_MAX = 512,
	REQUESTS_MAX = 256, // being answered or waiting
	IDLE_SECONDS = 8,   // of a connection that does not go on with what it sends or reads
	CONNECTION_BYTES = 64 << 10, // for the headers of one
	STOP_MS = 2000,
};

struct server {
	struct server_answers answers;
	struct gate gate;
	struct httpd httpd;
	struct MHD_Daemon *daemon;
	atomic_int requests;
	atomic_size_t sending_bytes; // of answers that were not read to their end
	char address[96];
};

// A request's target as it was sent, and what its headers say.
struct request {
	char *target; // owned
	size_t length;
	char *query; // in target, behind the '?'; NULL: none
	struct gate_request gate;
};

// Called before the library takes the encoding off: the answer's parameters are decoded by
// params.h, which knows '+' and refuses what is no encoding.
static void *on_target(void *, const char *target, struct MHD_Connection *)
{
	struct request *request = mem_alloc(1, sizeof *request);

	request->target = mem_copy_text(target);
	// As it was sent, for the gate, which bounds it.
	request->length = strlen(target);
	request->query = strchr(request->target, '?');
	if (request->query)
		*request->query++ = '\0';
	return request;
}

static void on_completed(void *, struct MHD_Connection *, void **context,
			 enum MHD_RequestTerminationCode)
{
	struct request *request = *context;

	if (request)
		mem_free(request->target);
	mem_free(request);
	*context = NULL;
}

static enum MHD_Result on_header(void *context, enum MHD_ValueKind, const char *key,
				 const char *value)
{
	gate_header(context, key, value ? value : "");
	return MHD_YES;
}

// ---- responses ----

// A response that headers are added to.
struct outgoing {
	const struct httpd *httpd;
	struct MHD_Response *response;
};

static void add_header(void *context, const char *name, const char *value)
{
	const struct outgoing *outgoing = context;

	outgoing->httpd->add_response_header(outgoing->response, name, value);
}

static enum MHD_Result queue(const struct httpd *httpd, struct MHD_Connection *connection,
			     unsigned status, struct MHD_Response *response)
{
	enum MHD_Result result = httpd->queue_response(connection, status, response);

	httpd->destroy_response(response);
	return result;
}

static enum MHD_Result send_page(const struct httpd *httpd, struct MHD_Connection *connection)
{
	struct MHD_Response *response = httpd->create_response_from_buffer(
		page_html_size, (void *)(uintptr_t)page_html, MHD_RESPMEM_PERSISTENT);

	headers_of_page(add_header, &(struct outgoing){ httpd, response });
	return queue(httpd, connection, MHD_HTTP_OK, response);
}

// An answer on its way.
struct sending {
	struct server *server;
	char *body;
	size_t length;
};

// Called by the library when the last byte was taken, or the connection ended.
static void on_sent(void *context)
{
	struct sending *sending = context;

	ASSERT(atomic_load(&sending->server->sending_bytes) >= sending->length);
	atomic_fetch_sub(&sending->server->sending_bytes, sending->length);
	MEM_FREE(sending->body, sending);
}

// Takes the body.
static enum MHD_Result send_reply(struct server *server, struct MHD_Connection *connection,
				  struct viewer_reply *reply)
{
	const struct httpd *httpd = &server->httpd;
	struct sending *sending = mem_alloc(1, sizeof *sending);
	struct MHD_Response *response;

	sending->server = server;
	sending->length = reply->body.length;
	sending->body = str_take(&reply->body);
	if (!sending->body)
		sending->body = mem_copy_text("");
	atomic_fetch_add(&server->sending_bytes, sending->length);
	response = httpd->create_response_from_buffer_with_free_callback_cls(
		sending->length, sending->body, on_sent, sending);
	headers_of_reply(reply, add_header, &(struct outgoing){ httpd, response });
	return queue(httpd, connection, refusal_status(reply->refusal), response);
}

static enum MHD_Result send_refusal(struct server *server, struct MHD_Connection *connection,
				    enum refusal refusal, const char *why)
{
	struct viewer_reply reply = { .refusal = refusal };

	refusal_write(refusal, why, &reply.body);
	return send_reply(server, connection, &reply);
}

static enum MHD_Result send_nothing(const struct httpd *httpd, struct MHD_Connection *connection)
{
	struct MHD_Response *response =
		httpd->create_response_from_buffer(0, "", MHD_RESPMEM_PERSISTENT);

	headers_of_nothing(add_header, &(struct outgoing){ httpd, response });
	return queue(httpd, connection, MHD_HTTP_NO_CONTENT, response);
}

// Whether the other end of the connection was closed. From any thread.
static bool is_closed(void *context)
{
	struct pollfd look = { .fd = *(const int *)context, .events = POLLRDHUP };

	return poll(&look, 1, 0) > 0 && (look.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

// Answers that wait to be read have one queue's part of the memory, together; one alone always
// fits.
static bool fits(struct server *server, const struct viewer_reply *reply)
{
	size_t waiting = atomic_load(&server->sending_bytes);

	// Two that look at the same time may both go in: the bound is for clients that do not read,
	// and so need not hold to the byte.
	return waiting == 0 || waiting + reply->body.length <= server->answers.unread_bytes_max;
}

static enum MHD_Result answer(struct server *server, struct MHD_Connection *connection,
			      const struct request *request)
{
	const union MHD_ConnectionInfo *info =
		server->httpd.get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	const char *path = request->gate.path;
	struct viewer_reply reply; // all of it is set by the answer
	int fd = info ? info->connect_fd : -1;

	if (strcmp(path, "/") == 0)
		return send_page(&server->httpd, connection);
	if (strcmp(path, "/favicon.ico") == 0)
		return send_nothing(&server->httpd, connection);
	// What takes its time is no idleness; the clock begins anew when the answer is there.
	server->httpd.set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, 0u);
	server->answers.answer(server->answers.of, path, request->query, is_closed, &fd, &reply);
	server->httpd.set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT,
					    (unsigned)IDLE_SECONDS);
	if (fits(server, &reply))
		return send_reply(server, connection, &reply);
	viewer_reply_fini(&reply);
	return send_refusal(server, connection, REFUSAL_BUSY,
			    "answers that were not read fill the memory");
}

// The gate comes before everything else, and answers nothing of what is asked.
static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *,
				  const char *method, const char *, const char *, size_t *,
				  void **request_context)
{
	struct server *server = context;
	struct request *request = *request_context;
	const char *why = "";
	enum refusal refusal;
	enum MHD_Result result;

	if (!request)
		return MHD_NO;
	request->gate = (struct gate_request){
		.method = method,
		.path = request->target,
		.length = request->length,
	};
	server->httpd.get_connection_values(connection, MHD_HEADER_KIND, on_header, &request->gate);
	refusal = gate_check(&server->gate, &request->gate, &why);
	if (refusal)
		return send_refusal(server, connection, refusal, why);
	// Counted before it is looked at, so that no more than so many are ever let in.
	if (atomic_fetch_add(&server->requests, 1) < REQUESTS_MAX)
		result = answer(server, connection, request);
	else
		result =
			send_refusal(server, connection, REFUSAL_BUSY, "too many requests at once");
	atomic_fetch_sub(&server->requests, 1);
	return result;
}

// ---- life ----

// A listening socket on the loopback interface, and its port.
// 127.0.0.1 and no other address, whatever the machine is called.
static int listen_at(uint16_t *port, struct err *err)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(*port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t length = sizeof address;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int yes = 1;

	if (fd < 0) {
		err_errno(err, errno, "cannot open a socket");
		return -1;
	}
	// A port whose last server ended a moment ago has connections that are not over yet.
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
	if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 64) != 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &length) != 0) {
		err_errno(err, errno, "cannot listen on port %u of the loopback interface", *port);
		close(fd);
		return -1;
	}
	*port = ntohs(address.sin_port); // port 0 asked for any that is free
	ASSERT(*port > 0);
	return fd;
}

struct server *server_start(const struct server_answers *answers, uint16_t port, struct err *err)
{
	struct server *server = mem_alloc(1, sizeof *server);
	uint8_t bytes[GATE_TOKEN_BYTES];
	int fd = -1;

	ASSERT(answers->answer && answers->stop);
	server->answers = *answers;
	signal(SIGPIPE, SIG_IGN); // a browser that goes away
	if (httpd_load(&server->httpd, err) && random_bytes(bytes, sizeof bytes, err))
		fd = listen_at(&port, err);
	if (fd < 0) {
		mem_free(server);
		return NULL;
	}
	gate_init(&server->gate, port, bytes);
	snprintf(server->address, sizeof server->address, "http://127.0.0.1:%u/#t=%s", port,
		 server->gate.token);
	server->daemon = server->httpd.start_daemon(
		MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION, port, NULL, NULL,
		on_request, server, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_URI_LOG_CALLBACK,
		on_target, server, MHD_OPTION_NOTIFY_COMPLETED, on_completed, server,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES, MHD_OPTION_END);
	if (!server->daemon) {
		err_set(err, ERR_IO, "cannot start the server");
		close(fd);
		mem_free(server);
		return NULL;
	}
	return server;
}

const char *server_address(const struct server *server)
{
	return server->address;
}

bool server_stop(struct server *server)
{
	const struct timespec step = { .tv_nsec = 10 * 1000 * 1000 };

	ASSERT(server->daemon);
	server->answers.stop(server->answers.of);
	for (int i = 0; i < STOP_MS / 10 && atomic_load(&server->requests) > 0; i++)
		nanosleep(&step, NULL);
	// The library would wait for its threads without end: the caller ends the program instead.
	if (atomic_load(&server->requests) > 0)
		return false;
	server->httpd.stop_daemon(server->daemon);
	mem_free(server);
	return true;
}
