// For example
//
//     GET /api/view?n=1 HTTP/1.1
//     Host: 127.0.0.1:8700
//
// has method GET, path /api/view and query "n=1", and goes on with the next request. Zeroes are put
// where words end, so nothing is copied.
#include "view/head.h"
#include "base/mem.h"

#include <string.h>
#include <strings.h>

size_t head_size(const char *bytes, size_t length, size_t from)
{
	static const char end[] = { '\r', '\n', '\r', '\n' };

	ASSERT(from <= length);
	// The end may have begun in what was looked at before: up to three of its four bytes.
	for (size_t at = from < sizeof end ? 0 : from - sizeof end; at + sizeof end <= length; at++)
		if (memcmp(bytes + at, end, sizeof end) == 0)
			return at + sizeof end;
	return 0;
}

// Control characters, but for the tab, only as the ends of lines.
static bool is_text(const char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		unsigned char c = (unsigned char)bytes[i];

		if (c == '\r' && i + 1 < size && bytes[i + 1] == '\n')
			i++;
		else if ((c < ' ' && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

// The line at *at, ended by a zero; *at moves behind it.
static char *take_line(char **at)
{
	char *line = *at, *end = strstr(line, "\r\n");

	*end = '\0';
	*at = end + 2;
	return line;
}

// "GET /path?query HTTP/1.1"
static bool take_request(struct head *head, char *line, const char **why)
{
	static const char version[] = "HTTP/1.1";
	char *target = strchr(line, ' ');
	char *end = target ? strchr(target + 1, ' ') : NULL;
	char *query;

	*why = "that is not a request of HTTP/1.1";
	if (!end || target == line || strcmp(end + 1, version) != 0)
		return false;
	*target++ = *end = '\0';
	*why = "that is not a path";
	if (*target != '/')
		return false;
	for (const char *at = target; *at; at++)
		if (*at <= ' ' || *at > '~')
			return false;
	head->gate.length = (size_t)(end - target);
	query = strchr(target, '?');
	if (query)
		*query++ = '\0';
	head->gate.method = line;
	head->gate.path = target;
	head->query = query;
	head->is_head = strcmp(line, "HEAD") == 0;
	return true;
}

// A comma or a space ends a word.
static bool has_word(const char *value, const char *word)
{
	static const char between[] = ", \t";

	for (value += strspn(value, between); *value; value += strspn(value, between)) {
		size_t length = strcspn(value, between);

		if (length == strlen(word) && strncasecmp(value, word, length) == 0)
			return true;
		value += length;
	}
	return false;
}

// "Name: value"
// A name with a blank in it is none: some readers drop it and others do not, which is how requests
// are smuggled past a gate.
static bool take_header(struct head *head, char *line)
{
	char *value = strchr(line, ':'), *end;

	if (!value || value == line || strcspn(line, " \t") < (size_t)(value - line))
		return false;
	*value++ = '\0';
	value += strspn(value, " \t");
	for (end = value + strlen(value); end > value && (end[-1] == ' ' || end[-1] == '\t'); end--)
		;
	*end = '\0';
	gate_header(&head->gate, line, value);
	// A body is not read: what follows the head would be taken for the next request. So that is
	// the last one.
	head->closes |= (strcasecmp(line, "Connection") == 0 && has_word(value, "close")) ||
			(strcasecmp(line, "Content-Length") == 0 && strcmp(value, "0") != 0) ||
			strcasecmp(line, "Transfer-Encoding") == 0;
	return true;
}

// `why` is said before each step, of what it means if that fails.
bool head_parse(struct head *head, char *bytes, size_t size, const char **why)
{
	char *at = bytes, *line;

	*head = (struct head){ 0 };
	*why = "there are control characters in it";
	if (!is_text(bytes, size))
		return false;
	if (!take_request(head, take_line(&at), why))
		return false;
	*why = "one of its headers is none";
	while (*(line = take_line(&at)))
		if (!take_header(head, line))
			return false;
	return true;
}
