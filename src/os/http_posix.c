// http_posix: libcurl, loaded when it is needed.
//
// libcurl is loaded with dlopen and not linked: a tool that sends nothing needs no libcurl, and
// starts faster. Its functions are a list (FUNCTIONS) from which the fields, their types and their
// names are made.
#include "os/http.h"

#include "base/mem.h"
#include "os/library.h"

#include <curl/curl.h>
#include <string.h>

// A server that is busy with what we sent may be silent for long: five minutes without a byte, both
// ways, is taken for dead. An answer of ours is a table of figures; 256 MiB is no such table.
enum { CONNECT_SECONDS = 10, STALLED_SECONDS = 300, ANSWER_MAX = 256 << 20 };

static const char library_file[] = "libcurl.so.4";

#define FUNCTIONS(X)     \
	X(easy_init)     \
	X(easy_setopt)   \
	X(easy_perform)  \
	X(easy_getinfo)  \
	X(easy_cleanup)  \
	X(easy_strerror) \
	X(easy_escape)   \
	X(free)          \
	X(slist_append)  \
	X(slist_free_all)

// One connection, kept from request to request, with its headers. `final`: trying again would fail
// again.
struct http {
	struct library *library;
	CURL *curl;
	struct curl_slist *headers;
	char *trusted;             // a file of certificates; NULL: the system's
	char why[CURL_ERROR_SIZE]; // of the last request
	bool final;
	bool (*stop)(void *context); // NULL: never
	void *stop_context;
#define FIELD(name) __typeof__(curl_##name) *name;
	FUNCTIONS(FIELD)
#undef FIELD
};

// All functions must be there: an older library is refused with the name of what it lacks.
static bool load(struct http *http, struct err *err)
{
	struct str why = { 0 };
	const char *missing = NULL;

	http->library = library_open(library_file, &why);
	if (!http->library)
		err_set(err, ERR_IO, "cannot send: %s (package libcurl4)", str_get(&why));
	str_fini(&why);
	if (!http->library)
		return false;
#define FIND(name)                                                        \
	{                                                                 \
		void *found = library_find(http->library, "curl_" #name); \
                                                                          \
		memcpy(&http->name, &found, sizeof found);                \
		missing = found ? missing : "curl_" #name;                \
	}
	FUNCTIONS(FIND)
#undef FIND
	return !missing || err_set(err, ERR_IO, "cannot send: %s lacks %s", library_file, missing);
}

struct http *http_new(struct err *err)
{
	struct http *http = mem_alloc(1, sizeof *http);

	if (!load(http, err)) {
		mem_free(http);
		return NULL;
	}
	// It fails only for want of memory, which is said in the one place for that (base/mem.h).
	http->curl = http->easy_init();
	if (!http->curl)
		mem_none(1, 1 << 16);
	// Nothing is asked beforehand ("Expect: 100-continue").
	http_header(http, "Expect:");
	return http;
}

void http_free(struct http *http)
{
	if (!http)
		return;
	http->easy_cleanup(http->curl);
	http->slist_free_all(http->headers);
	MEM_FREE(http->trusted, http);
}

void http_header(struct http *http, const char *header)
{
	ASSERT(http->curl != NULL);
	http->headers = http->slist_append(http->headers, header);
}

void http_trust(struct http *http, const char *path)
{
	mem_free(http->trusted);
	http->trusted = mem_copy_text(path);
}

void http_stop(struct http *http, bool (*stop)(void *context), void *context)
{
	http->stop = stop;
	http->stop_context = context;
}

bool http_is_final(const struct http *http)
{
	return http->final;
}

void http_escape(struct http *http, const char *text, struct str *url)
{
	char *escaped = http->easy_escape(http->curl, text, 0);

	str_add(url, escaped ? escaped : "");
	http->free(escaped);
}

// libcurl calls it with each piece of an answer; less than all of it taken ends the request, with
// CURLE_WRITE_ERROR. An answer of more than 256 MiB is refused as it comes, before it is in memory.
static size_t take(char *bytes, size_t size, size_t count, void *context)
{
	struct str *answer = context;

	if (answer->length + size * count > ANSWER_MAX)
		return 0;
	str_add_bytes(answer, bytes, size * count);
	return size * count;
}

// libcurl asks it about once a second, and more often while bytes move: not 0 ends the request. So
// Ctrl-C is heard also while a server is silent.
static int stops(void *context, curl_off_t, curl_off_t, curl_off_t, curl_off_t)
{
	const struct http *http = context;

	return http->stop && http->stop(http->stop_context);
}

// Who the other side is, is always looked at; no answer leads elsewhere.
// Certificates and host names are checked, TLS is 1.2 or newer, and a redirection is an answer like
// any other.
static void set_safety(struct http *http)
{
	CURL *curl = http->curl;

	http->easy_setopt(curl, CURLOPT_ERRORBUFFER, http->why);
	http->easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 1L);
	http->easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 2L);
	http->easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	http->easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
	if (http->trusted)
		http->easy_setopt(curl, CURLOPT_CAINFO, http->trusted);
}

// No proxy from the environment: what is sent may be secret. A request that stalls for five minutes
// fails.
bool http_post(struct http *http, const char *url, const void *bytes, size_t size, unsigned *status,
	       struct str *answer, struct err *err)
{
	CURL *curl = http->curl;
	CURLcode code;
	long number = 0;

	ASSERT(size == 0 || bytes != NULL);
	http->easy_setopt(curl, CURLOPT_URL, url);
	http->easy_setopt(curl, CURLOPT_HTTPHEADER, http->headers);
	http->easy_setopt(curl, CURLOPT_POST, 1L);
	http->easy_setopt(curl, CURLOPT_POSTFIELDS, size ? bytes : "");
	http->easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)size);
	http->easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
	http->easy_setopt(curl, CURLOPT_WRITEDATA, answer);
	// No signals and no proxies: the first would be the whole process's, the second would see
	// all.
	http->easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	http->easy_setopt(curl, CURLOPT_NOPROXY, "*");
	http->easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
	http->easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
	http->easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)STALLED_SECONDS);
	http->easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
	http->easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, stops);
	http->easy_setopt(curl, CURLOPT_XFERINFODATA, http);
	set_safety(http);
	// A request that fails without a text has none of the one before it.
	http->why[0] = '\0';
	code = http->easy_perform(curl);
	// Only what no second try can mend: the other side is not who it should be, or our own file
	// of certificates is broken. A server that is away may come back.
	http->final = code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE;
	if (code == CURLE_ABORTED_BY_CALLBACK)
		return err_set(err, ERR_STOPPED, "stopped");
	if (code == CURLE_WRITE_ERROR)
		return err_set(err, ERR_FORMAT, "it answers with more than %d MiB",
			       ANSWER_MAX >> 20);
	if (code != CURLE_OK)
		return err_set(err, ERR_IO, "%s",
			       http->why[0] ? http->why : http->easy_strerror(code));
	http->easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &number);
	*status = (unsigned)number;
	return true;
}
