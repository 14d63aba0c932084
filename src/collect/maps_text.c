// For example, the line
//
//     7f0000001000-7f0000003000 r-xp 00001000 fd:01 4711    /usr/lib/libz.so.1.2
//
// is from 0x7f0000001000 to 0x7f0000003000, protection 1 | 4 (read, execute), private, from byte
// 0x1000 of the file; the device is 0xfd << 20 | 1. What is not such a line is passed over.
#include "collect/maps_text.h"

#include "base/mem.h"
#include "wire/lane_event.h"

#include <string.h>

// What is left of a line.
struct words {
	const char *at, *end;
	bool bad;
};

// Digits up to `behind`, which is stepped over. A line that is otherwise is bad, and stays so.
static uint64_t take_number(struct words *words, unsigned base, char behind)
{
	uint64_t value = 0;
	const char *start = words->at;

	for (; words->at < words->end; words->at++) {
		char c = *words->at;
		unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
				 : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
							: base;

		if (digit >= base)
			break;
		value = value * base + digit;
	}
	if (words->at == start || (words->at < words->end && *words->at != behind))
		words->bad = true;
	if (words->at < words->end)
		words->at++;
	return value;
}

// "7f00-7f20 r-xp 00001000 08:01 42   /lib/x.so"; always moves on to the next line, so that one
// which cannot be read is passed over.
bool maps_text_next(const char **text, const char *end, struct maps_line *line)
{
	const char *stop = memchr(*text, '\n', (size_t)(end - *text));
	struct words words = { .at = *text, .end = stop ? stop : end };

	ASSERT(*text <= end && words.end <= end);
	*text = stop ? stop + 1 : end;
	*line = (struct maps_line){ 0 };
	line->start = take_number(&words, 16, '-');
	line->end = take_number(&words, 16, ' ');
	if (words.bad || words.end - words.at < 5 || words.at[4] != ' ')
		return false;
	line->protection = (words.at[0] == 'r' ? 1u : 0) | (words.at[1] == 'w' ? 2u : 0) |
			   (words.at[2] == 'x' ? 4u : 0);
	line->shared = words.at[3] == 's' || words.at[3] == 'S' || words.at[3] == 'C';
	if (words.at[3] == 'c' || words.at[3] == 'C')
		line->protection |= LANE_VM_COMMITTED;
	if (words.at[3] == 'S')
		line->protection |= LANE_VM_ACCESS;
	words.at += 5;
	line->offset = take_number(&words, 16, ' ');
	line->device = take_number(&words, 16, ':') << 20;
	line->device |= take_number(&words, 16, ' ');
	line->inode = take_number(&words, 10, ' ');
	while (words.at < words.end && *words.at == ' ')
		words.at++;
	line->path = words.at;
	line->path_length = (size_t)(words.end - words.at);
	return !words.bad && line->start < line->end;
}

bool maps_text_begins(const struct maps_line *line, const char *head)
{
	size_t length = strlen(head);

	return line->path_length >= length && memcmp(line->path, head, length) == 0;
}

// Whether the text from `path` to `end` ends with `tail`.
static bool path_ends(const char *path, const char *end, const char *tail)
{
	size_t length = strlen(tail);

	return (size_t)(end - path) >= length && memcmp(end - length, tail, length) == 0;
}

bool maps_text_is_ours(const struct maps_line *line)
{
	static const char *const libraries[] = { "/libtidemark.so", "/libtidemark32.so",
						 "/libtidemark-musl.so" };
	static const char deleted[] = " (deleted)"; // as the kernel says it
	const char *end = line->path + line->path_length;

	if (maps_text_begins(line, "/memfd:tidemark") || maps_text_begins(line, "[tidemark]"))
		return true;
	if (path_ends(line->path, end, deleted))
		end -= strlen(deleted);
	for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
		if (path_ends(line->path, end, libraries[i]))
			return true;
	return false;
}
