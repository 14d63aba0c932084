// A statement goes in the body of a POST; with bytes to insert it goes in the address, and the
// bytes are the body. For example
//
//     POST /?…&decompress=1&query=INSERT%20INTO%20db.marks_rows%20FORMAT%20Native
//
// with compressed blocks after it. User and password are headers, and never in an address, which
// servers write into their logs.
#include "sql/clickhouse.h"

#include "base/mem.h"
#include "os/http.h"
#include "os/secret.h"
#include "sql/place.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { PORT = 8123, PORT_TLS = 8443 };

struct clickhouse {
	struct http *http;
	struct str server; // "HOST:PORT", for messages
	struct str base;   // "http://HOST:PORT/?…&query="
	struct str database;
	unsigned tries_max;
	bool (*stop)(void *context);
	void *stop_context;
	bool busy; // the last try
};

// ---- the place ----

static const char scheme[] = "clickhouse://", scheme_tls[] = "clickhouses://";

bool clickhouse_is(const char *word)
{
	return strncmp(word, scheme, strlen(scheme)) == 0 ||
	       strncmp(word, scheme_tls, strlen(scheme_tls)) == 0;
}

// What needs no quotes in SQL, so that a name of a database can be put into statements as it is.
static bool is_name(const char *text)
{
	if (!isalpha((unsigned char)*text) && *text != '_')
		return false;
	for (; *text; text++)
		if (!isalnum((unsigned char)*text) && *text != '_')
			return false;
	return true;
}

// A database must be said: statements name their tables with it.
static bool take_place(struct clickhouse *clickhouse, const char *url, struct err *err)
{
	bool tls = strncmp(url, scheme_tls, strlen(scheme_tls)) == 0;
	const char *server = url + strlen(tls ? scheme_tls : scheme);
	const char *database = strchr(server, '/');

	if (strchr(server, '@'))
		return err_set(err, ERR_USAGE,
			       "no user or password in a place: they come from "
			       "TIDEMARK_CLICKHOUSE_USER and TIDEMARK_CLICKHOUSE_PASSWORD, or a "
			       "file (TIDEMARK_CLICKHOUSE_CREDENTIALS)");
	if (!database || !is_name(database + 1) ||
	    !place_add_server(&clickhouse->server, server, (size_t)(database - server),
			      tls ? PORT_TLS : PORT))
		return err_set(err, ERR_USAGE, "a place is clickhouse://HOST:PORT/DATABASE");
	str_add(&clickhouse->database, database + 1);
	// Blocks of data bear no checksum of ClickHouse's own kind: the connection has its own.
	// The settings of all requests are in the address; what one of them needs is appended.
	str_format(&clickhouse->base,
		   "%s://%s/?http_native_compression_disable_checksumming_on_decompress=1",
		   tls ? "https" : "http", clickhouse->server.text);
	return true;
}

// ---- who asks ----

// The text is cleared once it was handed over, since it may be a password.
static void add_header(struct clickhouse *clickhouse, const char *name, const char *value)
{
	struct str header = { 0 };

	str_format(&header, "%s: %s", name, value);
	http_header(clickhouse->http, header.text);
	memset(header.text, 0, header.length);
	str_fini(&header);
}

static void take_trust(struct clickhouse *clickhouse)
{
	const char *path = getenv("TIDEMARK_CLICKHOUSE_CA");

	if (path && *path)
		http_trust(clickhouse->http, path);
}

// A user and a password, which may be empty, a line each.
static bool take_lines(const char *path, char *text, const char **user, const char **password,
		       struct err *err)
{
	// The third shows whether there is more than two.
	const char *lines[3] = { "", NULL, NULL };
	size_t count = 0;

	for (char *at = text; at && count < 3; count++) {
		char *end = strchr(at, '\n');

		lines[count] = at;
		if (end)
			*end = '\0';
		at[strcspn(at, "\r")] = '\0';
		at = end && end[1] ? end + 1 : NULL;
	}
	*user = lines[0];
	*password = lines[1];
	return (lines[0][0] && lines[1] && (!lines[2] || !lines[2][0])) ||
	       err_set(err, ERR_USAGE, "%s must have two lines, a user and a password", path);
}

// It is said in a line of its own.
static bool check_word(const char *word, struct err *err)
{
	for (; word && *word; word++)
		if ((unsigned char)*word < ' ' || *word == 127)
			return err_set(err, ERR_USAGE,
				       "a user or a password has control characters in it");
	return true;
}

// A file goes before the environment. What it had is cleared.
static bool take_credentials(struct clickhouse *clickhouse, const char *path, struct err *err)
{
	const char *user = getenv("TIDEMARK_CLICKHOUSE_USER");
	const char *password = getenv("TIDEMARK_CLICKHOUSE_PASSWORD");
	struct str file = { 0 };
	bool good = true;

	// In this order: the option, a file that the environment names, then the environment
	// itself.
	path = path ? path : getenv("TIDEMARK_CLICKHOUSE_CREDENTIALS");
	if (path && *path) {
		if (!secret_read(path, &file, err)) {
			str_fini(&file);
			return false;
		}
		good = take_lines(path, file.text, &user, &password, err);
	}
	good = good && check_word(user, err) && check_word(password, err);
	if (good && user && *user)
		add_header(clickhouse, "X-ClickHouse-User", user);
	if (good && password && *password)
		add_header(clickhouse, "X-ClickHouse-Key", password);
	if (file.text)
		memset(file.text, 0, file.length);
	str_fini(&file);
	return good;
}

struct clickhouse *clickhouse_new(const struct clickhouse_place *place, struct err *err)
{
	struct clickhouse *clickhouse = mem_alloc(1, sizeof *clickhouse);

	clickhouse->stop = place->stop;
	clickhouse->stop_context = place->stop_context;
	clickhouse->tries_max = place->tries;
	if (take_place(clickhouse, place->url, err) && (clickhouse->http = http_new(err)) &&
	    take_credentials(clickhouse, place->credentials, err)) {
		take_trust(clickhouse);
		http_stop(clickhouse->http, place->stop, place->stop_context);
		return clickhouse;
	}
	clickhouse_free(clickhouse);
	return NULL;
}

void clickhouse_free(struct clickhouse *clickhouse)
{
	if (!clickhouse)
		return;
	http_free(clickhouse->http);
	STR_FINI(&clickhouse->server, &clickhouse->base, &clickhouse->database);
	mem_free(clickhouse);
}

const char *clickhouse_database(const struct clickhouse *clickhouse)
{
	return str_get(&clickhouse->database);
}

bool clickhouse_may_retry(const struct clickhouse *clickhouse)
{
	return clickhouse->busy;
}

bool clickhouse_wait(const struct clickhouse *clickhouse, unsigned tries)
{
	return place_wait(tries, clickhouse->tries_max, clickhouse->stop, clickhouse->stop_context);
}

// ---- asking ----

// Its number of an error: too many parts, too many questions at once, too little memory just now,
// a timeout, a server that is stopping.
static bool is_passing(const char *answer)
{
	static const long passing[] = { 159, 202, 209, 210, 236, 241, 252 };
	// An error begins with "Code: 252. DB::Exception: …".
	long code = strncmp(answer, "Code: ", 6) == 0 ? strtol(answer + 6, NULL, 10) : 0;

	for (size_t i = 0; i < sizeof passing / sizeof *passing; i++)
		if (code == passing[i])
			return true;
	return false;
}

// What it said, as one line of some length.
static bool refuse(struct clickhouse *clickhouse, unsigned status, const char *answer,
		   struct err *err)
{
	char line[PLACE_LINE];

	// 429 and 502, 503 are said by a balancer in front of it.
	clickhouse->busy = is_passing(answer) || status == 429 || status == 502 || status == 503;
	if (status == 401 || status == 403 || strstr(answer, "Code: 516") ||
	    strstr(answer, "Code: 193") || strstr(answer, "Code: 192"))
		return err_set(err, ERR_IO, "%s refuses this user or password",
			       clickhouse->server.text);
	return err_set(err, ERR_IO, "%s answers %u: %s", clickhouse->server.text, status,
		       place_said(status, answer, strlen(answer), line));
}

// Only what was there before.
static void shorten(struct str *answer, size_t length)
{
	ASSERT(length <= answer->length);
	answer->length = length;
	if (answer->text)
		answer->text[length] = '\0';
}

// `busy` says whether another try may help: there was no answer, or one that says "later".
static bool try_once(struct clickhouse *clickhouse, const char *url, const struct str *bytes,
		     struct str *answer, struct err *err)
{
	unsigned status = 0;
	// Callers append one answer to another.
	size_t before = answer->length;

	clickhouse->busy = true;
	if (!http_post(clickhouse->http, url, bytes->text, bytes->length, &status, answer, err)) {
		// What had come of it would stand before the answer of another try.
		shorten(answer, before);
		clickhouse->busy = place_explain(clickhouse->http, clickhouse->server.text, err);
		return false;
	}
	clickhouse->busy = false;
	if (status == 200)
		return true;
	refuse(clickhouse, status, str_get(answer) + before, err);
	shorten(answer, before);
	return false;
}

// A statement that only reads, or that is safe to repeat, is tried again here; an INSERT of a block
// is not (`once`), since the server may have taken it although no answer came.
bool clickhouse_run(struct clickhouse *clickhouse, const char *sql, const struct str *bytes,
		    bool once, struct str *answer, struct err *err)
{
	struct str url = { 0 }, statement = { 0 };
	unsigned tries = 0;
	bool good;

	ASSERT(sql);
	str_add(&url, clickhouse->base.text);
	if (bytes) {
		// The statement is part of the address then, so it is encoded.
		str_add(&url, "&decompress=1&query=");
		http_escape(clickhouse->http, sql, &url);
	} else {
		// An answer is whole, or is an error.
		str_add(&url, "&wait_end_of_query=1");
		str_add(&statement, sql);
	}
	do
		good = try_once(clickhouse, url.text, bytes ? bytes : &statement, answer, err);
	while (!good && !once && clickhouse->busy && clickhouse_wait(clickhouse, ++tries));
	STR_FINI(&url, &statement);
	return good;
}
