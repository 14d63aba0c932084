// The server without libmicrohttpd, which Windows has not got: a thread accepts, and each
// connection has one of its own, which reads a head (head.h), asks the gate, and answers.
//
// A connection waits for no longer than IDLE_SECONDS for a whole head, and as long for a client
// that reads no further; then it is closed, and the next one that waits for a place comes in.
// Sockets never block, and no thread waits longer than a step without looking whether the server is
// being stopped: so no thread ever touches another's socket.
#include "view/server.h"

#include "base/mem.h"
#include "os/random.h"
#include "view/head.h"
#include "view/headers.h"
#include "view/page.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <winsock2.h>

enum {
	CONNECTIONS_MAX = 64, // more wait until one ends
	IDLE_SECONDS = 8,
	STEP_MS = 100,
	STOP_MS = 2000,
};

struct server {
	struct server_answers answers;
	struct gate gate;
	SOCKET listening;
	pthread_t accepting;
	atomic_bool stopping;
	atomic_int connections;
	atomic_size_t sending_bytes; // of answers that were not read to their end
	char address[96];
};

// Of its thread.
struct connection {
	struct server *server;
	SOCKET socket;
	size_t length; // bytes received and not yet answered
	char bytes[HEAD_BYTES_MAX];
};

// ---- waiting ----

// Whether there is something to read, or room to write, within so many milliseconds.
static bool is_ready(SOCKET handle, bool writes, unsigned ms)
{
	// Winsock's set is a list of handles with its length, not bits: no macro is needed.
	struct timeval time = { .tv_usec = (long)ms * 1000 };
	fd_set set = { .fd_count = 1, .fd_array = { handle } };

	return select(0, writes ? NULL : &set, writes ? &set : NULL, NULL, &time) > 0;
}

// False: it is not ready in time, or the server stops.
static bool wait_for(const struct connection *connection, bool writes, ULONGLONG until)
{
	// A step is 100 ms: that long a server that is being stopped waits at most for each of its
	// threads.
	while (!atomic_load(&connection->server->stopping) && GetTickCount64() < until)
		if (is_ready(connection->socket, writes, STEP_MS))
			return true;
	// A thread that got no processor until now finds what came in time.
	return !atomic_load(&connection->server->stopping) &&
	       is_ready(connection->socket, writes, 0);
}

static bool would_block(void)
{
	return WSAGetLastError() == WSAEWOULDBLOCK;
}

// Whether the other end of the connection was closed. From any thread.
static bool is_closed(void *context)
{
	const struct connection *connection = context;
	char byte;
	int got;

	if (!is_ready(connection->socket, false, 0))
		return false;
	// Readable is also what has sent its next request already; that stays to be read.
	got = recv(connection->socket, &byte, 1, MSG_PEEK);
	return got == 0 || (got < 0 && !would_block());
}

// ---- sending ----

// Each part that is taken gives it time for the next.
static bool send_all(const struct connection *connection, const char *bytes, size_t length)
{
	while (length > 0) {
		// send takes an int; and after each MiB the peer is given its time anew.
		int part = length < 1 << 20 ? (int)length : 1 << 20;
		int sent = send(connection->socket, bytes, part, 0);

		ASSERT(sent <= part);
		if (sent > 0) {
			bytes += sent;
			length -= (size_t)sent;
		} else if (!would_block() ||
			   !wait_for(connection, true, GetTickCount64() + IDLE_SECONDS * 1000)) {
			return false;
		}
	}
	return true;
}

static void add_header(void *context, const char *name, const char *value)
{
	str_format(context, "%s: %s\r\n", name, value);
}

static const char *reason_of(unsigned status)
{
	return status == 200 ? "OK" : status == 204 ? "No Content" : "Refused";
}

// `told`: the headers so far. False: nothing more can be said on this connection.
static bool send_response(const struct connection *connection, const struct head *head,
			  unsigned status, const struct str *told, const char *body, size_t length)
{
	struct str text = { 0 };
	bool good;

	// The head and the body are sent one after the other: a body may be of megabytes, and is
	// not copied.
	str_format(&text, "HTTP/1.1 %u %s\r\n%s", status, reason_of(status), str_get(told));
	if (status != 204)
		str_format(&text, "Content-Length: %zu\r\n", length);
	str_add(&text, head->closes ? "Connection: close\r\n\r\n" : "\r\n");
	good = send_all(connection, str_get(&text), text.length) &&
	       (head->is_head || send_all(connection, body, length));
	str_fini(&text);
	return good;
}

static bool send_page(const struct connection *connection, const struct head *head)
{
	struct str told = { 0 };
	bool good;

	headers_of_page(add_header, &told);
	good = send_response(connection, head, 200, &told, page_html, page_html_size);
	str_fini(&told);
	return good;
}

static bool send_nothing(const struct connection *connection, const struct head *head)
{
	struct str told = { 0 };
	bool good;

	headers_of_nothing(add_header, &told);
	good = send_response(connection, head, 204, &told, "", 0);
	str_fini(&told);
	return good;
}

// Empties the reply.
static bool send_reply(const struct connection *connection, const struct head *head,
		       struct viewer_reply *reply)
{
	atomic_size_t *sending = &connection->server->sending_bytes;
	struct str told = { 0 };
	bool good;

	headers_of_reply(reply, add_header, &told);
	// Counted while it is on its way: a client that does not read keeps its answer here.
	atomic_fetch_add(sending, reply->body.length);
	good = send_response(connection, head, refusal_status(reply->refusal), &told,
			     str_get(&reply->body), reply->body.length);
	atomic_fetch_sub(sending, reply->body.length);
	str_fini(&told);
	viewer_reply_fini(reply);
	return good;
}

static bool send_refusal(const struct connection *connection, const struct head *head,
			 enum refusal refusal, const char *why)
{
	struct viewer_reply reply = { .refusal = refusal };

	refusal_write(refusal, why, &reply.body);
	return send_reply(connection, head, &reply);
}

// ---- answering ----

// Answers that wait to be read have one queue's part of the memory, together; one alone always
// fits.
static bool fits(struct server *server, const struct viewer_reply *reply)
{
	// Two may pass this at once, and be over the limit by one answer.
	size_t waiting = atomic_load(&server->sending_bytes);

	return waiting == 0 || waiting + reply->body.length <= server->answers.unread_bytes_max;
}

// False: the connection is of no use any more.
static bool answer(struct connection *connection, const struct head *head)
{
	struct server *server = connection->server;
	struct viewer_reply reply;
	enum refusal refusal;
	const char *why = "";

	refusal = gate_check(&server->gate, &head->gate, &why);
	if (refusal)
		return send_refusal(connection, head, refusal, why);
	if (strcmp(head->gate.path, "/") == 0)
		return send_page(connection, head);
	if (strcmp(head->gate.path, "/favicon.ico") == 0)
		return send_nothing(connection, head);
	server->answers.answer(server->answers.of, head->gate.path, head->query, is_closed,
			       connection, &reply);
	if (fits(server, &reply))
		return send_reply(connection, head, &reply);
	viewer_reply_fini(&reply);
	return send_refusal(connection, head, REFUSAL_BUSY,
			    "answers that were not read fill the memory");
}

// ---- a connection ----

// The size of the next request's head. 0: there is none, or none that is whole in time. What is
// longer than all that we have room for has the size of what is there.
static size_t receive_head(struct connection *connection)
{
	ULONGLONG until = GetTickCount64() + IDLE_SECONDS * 1000;
	size_t seen = 0, size;

	while ((size = head_size(connection->bytes, connection->length, seen)) == 0) {
		int got;

		seen = connection->length;
		ASSERT(seen <= HEAD_BYTES_MAX);
		if (seen == HEAD_BYTES_MAX)
			return seen;
		if (!wait_for(connection, false, until))
			return 0;
		got = recv(connection->socket, connection->bytes + seen,
			   (int)(HEAD_BYTES_MAX - seen), 0);
		if (got > 0)
			connection->length += (size_t)got;
		else if (got == 0 || !would_block())
			return 0;
	}
	return size;
}

// A head that never ends, or one that is none. False, as the connection ends with it.
static bool refuse_head(const struct connection *connection, const char *why)
{
	const struct head head = { .closes = true };
	bool is_long = !why;

	if (!is_long)
		send_refusal(connection, &head, REFUSAL_USAGE, why);
	else if (memchr(connection->bytes, '\n', connection->length))
		send_refusal(connection, &head, REFUSAL_LIMIT,
			     "the headers are longer than 64 KiB");
	else
		send_refusal(connection, &head, REFUSAL_QUERY,
			     "path and query are longer than 8192 bytes");
	return false;
}

// Whether another request may follow.
static bool serve_one(struct connection *connection, bool *lingers)
{
	size_t size = receive_head(connection);
	const char *why = NULL;
	struct head head;

	*lingers = size > 0;
	if (size == 0)
		return false;
	// receive_head has filled all of its room without finding the end.
	if (head_size(connection->bytes, size, size) == 0)
		return refuse_head(connection, NULL);
	if (!head_parse(&head, connection->bytes, size, &why))
		return refuse_head(connection, why);
	if (!answer(connection, &head)) {
		*lingers = false;
		return false;
	}
	// What follows is the beginning of the next request, of a client that did not wait.
	ASSERT(size <= connection->length);
	connection->length -= size;
	memmove(connection->bytes, connection->bytes + size, connection->length);
	return !head.closes;
}

// To close with bytes unread would take the answer away from who sent them.
static void linger(struct connection *connection)
{
	ULONGLONG until = GetTickCount64() + IDLE_SECONDS * 1000;

	shutdown(connection->socket, SD_SEND);
	// What it sends is thrown away: closing a socket with unread bytes makes Windows reset the
	// connection, and the peer may lose what it has not read.
	// Until it closes its end, too; or, of one that never does, as long as for a head.
	while (GetTickCount64() < until && wait_for(connection, false, until)) {
		int got = recv(connection->socket, connection->bytes, sizeof connection->bytes, 0);

		if (got == 0 || (got < 0 && !would_block()))
			return;
	}
}

static void *serve(void *context)
{
	struct connection *connection = context;
	struct server *server = connection->server;
	bool lingers = false;

	// One request after another on one connection, as HTTP/1.1 has it.
	while (serve_one(connection, &lingers))
		;
	if (lingers)
		linger(connection);
	closesocket(connection->socket);
	mem_free(connection);
	atomic_fetch_sub(&server->connections, 1); // the last that we know of it
	return NULL;
}

// The handle is the thread's from here on. False: the caller closes it.
static bool start_connection(struct server *server, SOCKET handle)
{
	struct connection *connection = mem_alloc(1, sizeof *connection);
	u_long yes = 1;
	pthread_t thread;

	connection->server = server;
	connection->socket = handle;
	SetHandleInformation((HANDLE)handle, HANDLE_FLAG_INHERIT, 0);
	// Counted here and not in the thread, so that accept_all sees it before it takes the next
	// one.
	atomic_fetch_add(&server->connections, 1);
	if (ioctlsocket(handle, (long)FIONBIO, &yes) == 0 &&
	    pthread_create(&thread, NULL, serve, connection) == 0) {
		pthread_detach(thread);
		return true;
	}
	atomic_fetch_sub(&server->connections, 1);
	mem_free(connection);
	return false;
}

// Looks ten times a second whether the server stops.
static void *accept_all(void *context)
{
	struct server *server = context;
	SOCKET handle;

	while (!atomic_load(&server->stopping)) {
		if (atomic_load(&server->connections) >= CONNECTIONS_MAX) {
			Sleep(STEP_MS / 10);
			continue;
		}
		// The socket does not block: between the look and the accept the peer may be gone.
		if (!is_ready(server->listening, false, STEP_MS))
			continue;
		handle = accept(server->listening, NULL, NULL);
		if (handle != INVALID_SOCKET && !start_connection(server, handle))
			closesocket(handle);
	}
	return NULL;
}

// ---- life ----

static bool fail(struct err *err, uint16_t port)
{
	int number = WSAGetLastError();

	if (number == WSAEADDRINUSE || number == WSAEACCES)
		return err_set(err, ERR_IO,
			       "cannot listen on port %u of the loopback interface: it is in use "
			       "(try another --port)",
			       port);
	return err_set(err, ERR_IO, "cannot listen on port %u of the loopback interface: error %d",
		       port, number);
}

// A listening socket on the loopback interface, which no other program can share, and its port.
static bool listen_at(SOCKET *handle, uint16_t *port, struct err *err)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(*port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int length = sizeof address;
	BOOL alone = TRUE;
	u_long yes = 1;

	*handle = WSASocketW(AF_INET, SOCK_STREAM, IPPROTO_TCP, NULL, 0, WSA_FLAG_OVERLAPPED);
	if (*handle == INVALID_SOCKET)
		return err_set(err, ERR_IO, "cannot open a socket: error %d", WSAGetLastError());
	SetHandleInformation((HANDLE)*handle, HANDLE_FLAG_INHERIT, 0);
	// On Windows two programs can listen on one port by SO_REUSEADDR, and the second would see
	// what was meant for us: this keeps it out.
	if (setsockopt(*handle, SOL_SOCKET, SO_EXCLUSIVEADDRUSE, (const char *)&alone,
		       sizeof alone) != 0 ||
	    bind(*handle, (struct sockaddr *)&address, sizeof address) != 0 ||
	    listen(*handle, SOMAXCONN) != 0 || ioctlsocket(*handle, (long)FIONBIO, &yes) != 0 ||
	    getsockname(*handle, (struct sockaddr *)&address, &length) != 0) {
		fail(err, *port);
		closesocket(*handle);
		return false;
	}
	*port = ntohs(address.sin_port);
	return true;
}

// The port's door and who stands at it. False: nothing is left behind.
static bool open_door(struct server *server, uint16_t port, struct err *err)
{
	uint8_t bytes[GATE_TOKEN_BYTES];

	if (!random_bytes(bytes, sizeof bytes, err) || !listen_at(&server->listening, &port, err))
		return false;
	gate_init(&server->gate, port, bytes);
	// The token comes after '#', which a browser keeps to itself.
	snprintf(server->address, sizeof server->address, "http://127.0.0.1:%u/#t=%s", port,
		 server->gate.token);
	if (pthread_create(&server->accepting, NULL, accept_all, server) == 0)
		return true;
	closesocket(server->listening);
	return err_set(err, ERR_IO, "cannot start the server");
}

struct server *server_start(const struct server_answers *answers, uint16_t port, struct err *err)
{
	struct server *server;
	WSADATA data;

	if (WSAStartup(MAKEWORD(2, 2), &data) != 0) {
		err_set(err, ERR_IO, "the viewer cannot be served: there is no winsock");
		return NULL;
	}
	ASSERT(answers->answer && answers->stop);
	server = mem_alloc(1, sizeof *server);
	server->answers = *answers;
	if (open_door(server, port, err))
		return server;
	mem_free(server);
	WSACleanup();
	return NULL;
}

const char *server_address(const struct server *server)
{
	return server->address;
}

// The threads close their own sockets; they are counted, and waited for.
bool server_stop(struct server *server)
{
	server->answers.stop(server->answers.of);
	atomic_store(&server->stopping, true);
	pthread_join(server->accepting, NULL);
	closesocket(server->listening);
	for (int i = 0; i < STOP_MS / 10 && atomic_load(&server->connections) > 0; i++)
		Sleep(10);
	if (atomic_load(&server->connections) > 0)
		return false;
	mem_free(server);
	WSACleanup();
	return true;
}
