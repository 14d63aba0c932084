// Two kinds of messages come back: ExportProfilesServiceResponse where all is well, and Status
// where it is not. Of the first, field 1 is a message whose fields are the number of rejected
// profiles (1) and a text (2); of the second, field 2 is a text. Whatever else comes is shown as
// the line that it begins with.
#include "sql/otlp_send.h"

#include "base/mem.h"
#include "export/gzip.h"
#include "os/http.h"
#include "sql/place.h"
#include "trace/bytes.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { PORT = 4318, PREFIX_MAX = 1024, FIELD_PARTIAL = 1, FIELD_REJECTED = 1, FIELD_TEXT = 2 };

struct otlp_send {
	struct http *http;
	struct str server; // "HOST:PORT", for messages
	struct str url;
	bool plain;
	bool (*stop)(void *context);
	bool busy; // the last try
};

// ---- the place ----

static const char scheme[] = "otlp://", scheme_tls[] = "otlps://";
static const char path[] = "/v1development/profiles";

bool otlp_send_is(const char *word)
{
	return strncmp(word, scheme, strlen(scheme)) == 0 ||
	       strncmp(word, scheme_tls, strlen(scheme_tls)) == 0;
}

// What may be before the path: words of a URL's path, without a question.
static bool is_prefix(const char *text)
{
	if (strlen(text) > PREFIX_MAX)
		return false;
	for (; *text; text++)
		if (!isalnum((unsigned char)*text) && !strchr("/-._~%", *text))
			return false;
	return true;
}

// For example otlp://collector/tenant/ becomes http://collector:4318/tenant/v1development/profiles.
// A user or a password has no place in it: they go into a header.
static bool take_place(struct otlp_send *send, const char *url, struct err *err)
{
	bool tls = strncmp(url, scheme_tls, strlen(scheme_tls)) == 0;
	const char *server = url + strlen(tls ? scheme_tls : scheme);
	size_t length = strcspn(server, "/");
	const char *prefix = server + length;

	if (strchr(server, '@'))
		return err_set(err, ERR_USAGE,
			       "no user or password in a place: headers come from "
			       "OTEL_EXPORTER_OTLP_HEADERS");
	if (!is_prefix(prefix) || !place_add_server(&send->server, server, length, PORT))
		return err_set(err, ERR_USAGE, "a place is otlp://HOST:PORT");
	str_format(&send->url, "%s://%s%s", tls ? "https" : "http", send->server.text, prefix);
	// A slash at the end would be doubled by that of the path.
	while (send->url.text[send->url.length - 1] == '/')
		send->url.text[--send->url.length] = '\0';
	str_add(&send->url, path);
	return true;
}

// ---- who sends ----

// A name of a header, and what may be in its value once that is decoded.
static bool is_header(const struct str *name, const struct str *value)
{
	for (size_t i = 0; i < name->length; i++)
		if (!isalnum((unsigned char)name->text[i]) && !strchr("-_.", name->text[i]))
			return false;
	for (size_t i = 0; i < value->length; i++)
		if ((unsigned char)value->text[i] < ' ' || value->text[i] == 127)
			return false;
	return name->length > 0;
}

// A word without the spaces around it; %41 is an A.
static void add_word(struct str *out, const char *at, const char *end)
{
	while (at < end && *at == ' ')
		at++;
	while (end > at && end[-1] == ' ')
		end--;
	for (; at < end; at++) {
		// What is no encoding is taken as it is: "50%" stays.
		int high = end - at > 2 && *at == '%' ? str_hex_digit(at[1]) : -1;
		int low = high >= 0 ? str_hex_digit(at[2]) : -1;

		if (low >= 0)
			at += 2;
		str_add_char(out, low >= 0 ? (char)(high << 4 | low) : *at);
	}
}

// Ends a text that may be a token, and overwrites it first.
static void forget(struct str *secret)
{
	if (secret->text)
		memset(secret->text, 0, secret->length);
	str_fini(secret);
}

// "NAME=VALUE,NAME=VALUE". The message about a mistake does not show the list: values may be
// tokens. A word without = has no name, and is a mistake.
static bool take_headers(struct otlp_send *send, const char *list, struct err *err)
{
	bool good = true;

	while (good && list && *list) {
		const char *end = list + strcspn(list, ",");
		const char *sign = memchr(list, '=', (size_t)(end - list));
		struct str name = { 0 }, value = { 0 }, header = { 0 };

		// Without '=' the name is empty, which is_header refuses.
		add_word(&name, list, sign ? sign : list);
		add_word(&value, sign ? sign + 1 : end, end);
		good = is_header(&name, &value);
		str_format(&header, "%s: %s", str_get(&name), str_get(&value));
		if (good)
			http_header(send->http, header.text);
		str_fini(&name);
		forget(&value);
		forget(&header);
		list = *end ? end + 1 : end;
	}
	return good || err_set(err, ERR_USAGE,
			       "OTEL_EXPORTER_OTLP_HEADERS is a list of NAME=VALUE, with commas");
}

struct otlp_send *otlp_send_new(const struct otlp_place *place, struct err *err)
{
	struct otlp_send *send = mem_alloc(1, sizeof *send);
	const char *trusted = getenv("OTEL_EXPORTER_OTLP_CERTIFICATE");

	send->plain = place->plain;
	send->stop = place->stop;
	// In this order, so that a slip in the place is found without libcurl.
	if (!take_place(send, place->url, err) || !(send->http = http_new(err)) ||
	    !take_headers(send, getenv("OTEL_EXPORTER_OTLP_HEADERS"), err)) {
		otlp_send_free(send);
		return NULL;
	}
	http_stop(send->http, send->stop, NULL);
	http_header(send->http, "Content-Type: application/x-protobuf");
	if (!send->plain)
		http_header(send->http, "Content-Encoding: gzip");
	if (trusted && *trusted)
		http_trust(send->http, trusted);
	return send;
}

void otlp_send_free(struct otlp_send *send)
{
	if (!send)
		return;
	http_free(send->http);
	STR_FINI(&send->server, &send->url);
	mem_free(send);
}

bool otlp_send_may_retry(const struct otlp_send *send)
{
	return send->busy;
}

// ---- what comes back ----

// A field of a message: its bytes, or its number where it has none. False at the end, or where it
// is no message. The last three bits of a tag say how the field is laid out: 0 a varint, 1 eight
// bytes, 2 a length and so many bytes, 5 four bytes. Of no others do we know how long they are.
static bool next_field(struct bytes_cursor *in, uint64_t *field, uint64_t *value,
		       struct bytes_cursor *part)
{
	uint64_t tag = bytes_left(in) > 0 ? bytes_next(in) : 0;

	*field = tag >> 3;
	*value = 0;
	*part = (struct bytes_cursor){ 0 };
	switch (tag & 7) {
	case 0:
		*value = bytes_next(in);
		break;
	case 1:
		bytes_next_raw(in, 8);
		break;
	case 2:
		*part = bytes_next_part(in);
		break;
	case 5:
		bytes_next_raw(in, 4);
		break;
	default:
		return false;
	}
	return *field > 0 && !in->bad;
}

// The last text of field 2, and number of field 1, of a message. False: it is no message.
static bool read_said(struct bytes_cursor in, uint64_t *number, struct bytes_cursor *text)
{
	struct bytes_cursor part;
	uint64_t field, value;

	while (bytes_left(&in) > 0) {
		if (!next_field(&in, &field, &value, &part))
			return false;
		if (field == FIELD_REJECTED)
			*number = value;
		else if (field == FIELD_TEXT)
			*text = part;
	}
	return true;
}

// Of a partial success that breaks off in the middle nothing is believed. All profiles may be taken
// and a text be there all the same: a warning.
static void take_answer(const struct str *answer, struct otlp_said *said)
{
	struct bytes_cursor in = bytes_cursor(str_get(answer), answer->length), part;
	struct bytes_cursor text = { 0 };
	uint64_t field, value, rejected = 0;
	char line[PLACE_LINE];

	while (bytes_left(&in) > 0 && next_field(&in, &field, &value, &part))
		if (field == FIELD_PARTIAL && !read_said(part, &rejected, &text))
			return;
	said->rejected = rejected;
	if (bytes_left(&text) > 0)
		str_add(&said->why, place_line((const char *)text.at, bytes_left(&text), line));
	else if (said->rejected)
		str_add(&said->why, "it does not say why");
}

// Which statuses may pass is what OTLP says: 429, 502, 503 and 504. What comes with others is a
// Status as a rule; what is none, such as a proxy's page, is shown from its beginning.
static bool refuse(struct otlp_send *send, unsigned status, const struct str *answer,
		   struct err *err)
{
	struct bytes_cursor in = bytes_cursor(str_get(answer), answer->length);
	struct bytes_cursor text = { 0 };
	char line[PLACE_LINE];
	uint64_t code = 0;

	ASSERT(status / 100 != 2);
	send->busy = status == 429 || (status >= 502 && status <= 504);
	if (status == 401 || status == 403)
		return err_set(err, ERR_IO,
			       "%s does not let us in (%u; what it wants to know goes into "
			       "OTEL_EXPORTER_OTLP_HEADERS)",
			       send->server.text, status);
	if (status == 404)
		return err_set(err, ERR_IO,
			       "%s takes no profiles (404 of %s): its collector may be too old, or "
			       "may not have them turned on",
			       send->server.text, path);
	if (!read_said(in, &code, &text) || bytes_left(&text) == 0)
		text = in;
	return err_set(err, ERR_IO, "%s answers %u: %s", send->server.text, status,
		       place_said(status, (const char *)text.at, bytes_left(&text), line));
}

// ---- sending ----

// `busy` becomes whether another try may help. Only bytes that were accepted are counted.
static bool try_once(struct otlp_send *send, const struct str *bytes, struct otlp_said *said,
		     struct err *err)
{
	struct str answer = { 0 };
	unsigned status = 0;
	bool good;

	// Until there is an answer: a connection that fails may be better the next time.
	send->busy = true;
	good = http_post(send->http, send->url.text, bytes->text, bytes->length, &status, &answer,
			 err);
	if (!good) {
		send->busy = place_explain(send->http, send->server.text, err);
	} else if (status / 100 == 2) {
		send->busy = false;
		said->bytes += bytes->length;
		take_answer(&answer, said);
	} else {
		good = refuse(send, status, &answer, err);
	}
	str_fini(&answer);
	return good;
}

static void compress(const struct str *message, struct str *bytes)
{
	struct sink sink = sink_to_str(bytes);
	struct gzip *gzip = gzip_begin(&sink);

	gzip_write(gzip, message->text, message->length);
	gzip_end(gzip);
}

// Compressed once, and sent as often as it takes.
bool otlp_send_profiles(struct otlp_send *send, const struct str *message, bool once,
			struct otlp_said *said, struct err *err)
{
	struct str bytes = { 0 };
	unsigned tries = 0;
	bool good;

	ASSERT(message->length > 0);
	if (!send->plain)
		compress(message, &bytes);
	do
		good = try_once(send, send->plain ? message : &bytes, said, err);
	while (!good && !once && send->busy && place_wait(++tries, 0, send->stop, NULL));
	str_fini(&bytes);
	return good;
}
