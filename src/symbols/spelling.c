// A type is read from left to right: qualifiers, the name with its brackets, and what is after it.
// For example "const std::vector<char *> *const" is "std::vector<char*> const* const":
//
//     const                 goes after the name
//     std::vector<char *>   the name; "char *", in its brackets, is a type again
//     *const                " *" is "*", and "const" has a blank before it
#include "symbols/spelling.h"

#include "base/mem.h"

#include <string.h>

enum { NESTING_MAX = 64 }; // deeper than that a text stays as it is

// A text that is read. It ends at `end`, not at a zero byte: arguments are pieces of the name that
// they are in, and are not copied.
struct text {
	const char *at, *end;
};

// Is `with` what comes next? Nothing is read beyond the end.
static bool begins(const struct text *text, const char *with)
{
	size_t length = strlen(with);

	return (size_t)(text->end - text->at) >= length && strncmp(text->at, with, length) == 0;
}

// The same, and go past it.
static bool take(struct text *text, const char *with)
{
	if (!begins(text, with))
		return false;
	text->at += strlen(with);
	return true;
}

// A letter of a name, in UTF-8: bytes over 0x7f are letters.
static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '$' || (c & 0x80);
}

// A word, and not the beginning of a longer one.
static bool take_word(struct text *text, const char *word)
{
	size_t length = strlen(word);

	if (!begins(text, word) || (text->at + length < text->end && is_word(text->at[length])))
		return false;
	text->at += length;
	return true;
}

// Between the parts of a type there may be any number, and what we write has its own.
static void skip_blanks(struct text *text)
{
	while (text->at < text->end && *text->at == ' ')
		text->at++;
}

// After the bracket that closes the one at `at`, or `end`. The '>' of "->" closes none.
static const char *after_brackets(const char *at, const char *end)
{
	size_t depth = 0;

	ASSERT(at < end && strchr("<({[", *at));
	for (; at < end; at++) {
		if (strchr("<({[", *at) && *at)
			depth++;
		else if ((*at == ')' || *at == '}' || *at == ']' ||
			  (*at == '>' && at[-1] != '-')) &&
			 --depth == 0)
			return at + 1;
	}
	return end;
}

// A comma in brackets is one of an inner list: "int, f<a, b>" are two arguments.
bool spelling_next(const char **at, const char *end, const char **argument, size_t *length)
{
	const char *stop;

	ASSERT(*at <= end);
	while (*at < end && **at == ' ')
		(*at)++;
	if (*at >= end)
		return false;
	for (stop = *at; stop < end && *stop != ',';)
		stop = *stop && strchr("<({[", *stop) ? after_brackets(stop, end) : stop + 1;
	*argument = *at;
	*at = stop < end ? stop + 1 : end;
	while (stop > *argument && stop[-1] == ' ')
		stop--;
	*length = (size_t)(stop - *argument);
	return true;
}

bool spelling_arguments(const char *name, const char **inside, size_t *length)
{
	const char *end = name + strlen(name), *at = name;

	ASSERT(inside && length);
	// "operator>" ends with one that closes nothing.
	if (end == name || end[-1] != '>' || strncmp(name, "operator", 8) == 0)
		return false;
	// The last brackets of the name: of "a<b>::c<d>" those of c.
	while (at < end) {
		const char *after = strchr("<({[", *at) ? after_brackets(at, end) : at + 1;

		if (after == end && *at == '<') {
			*inside = at + 1;
			*length = (size_t)(end - 1 - *inside);
			return true;
		}
		at = after;
	}
	return false;
}

static void add_type(struct str *out, const char *text, size_t length, unsigned nesting);

// A list of types in the brackets at text->at. Two of '<' or '>' have a blank between them, as the
// demangler writes them.
static void add_list(struct str *out, struct text *text, unsigned nesting)
{
	const char *after = after_brackets(text->at, text->end), *argument, *at = text->at + 1;
	const char *end = after > at && strchr(">)]}", after[-1]) ? after - 1 : after;
	size_t length, from;

	ASSERT(text->at < text->end && after <= text->end);
	if (*text->at == '<' && out->length > 0 && out->text[out->length - 1] == '<')
		str_add_char(out, ' ');
	str_add_char(out, *text->at);
	from = out->length;
	while (spelling_next(&at, end, &argument, &length)) {
		if (out->length > from)
			str_add(out, ", ");
		add_type(out, argument, length, nesting);
	}
	if (end < after && *end == '>' && out->length > from && out->text[out->length - 1] == '>')
		str_add_char(out, ' ');
	str_add_bytes(out, end, (size_t)(after - end));
	text->at = after;
}

const char *spelling_base(const char *name)
{
	static const char *const names[][2] = {
		{ "long int", "long" },
		{ "long unsigned int", "unsigned long" },
		{ "long long int", "long long" },
		{ "long long unsigned int", "unsigned long long" },
		{ "short int", "short" },
		{ "short unsigned int", "unsigned short" },
		{ "__int128 unsigned", "unsigned __int128" },
		{ "complex float", "float _Complex" },
		{ "complex double", "double _Complex" },
		{ "complex long double", "long double _Complex" },
	};

	ASSERT(name);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(name, names[i][0]) == 0)
			return names[i][1];
	return name;
}

// What has no name in the program: "{anonymous}", "<lambda(int)>". False: there is none here.
static bool add_nameless(struct str *out, struct text *text, unsigned nesting)
{
	if (take(text, "(anonymous namespace)") || take(text, "{anonymous}")) {
		str_add(out, "(anonymous namespace)");
		return true;
	}
	if (!begins(text, "<lambda("))
		return false;
	text->at += strlen("<lambda");
	str_add(out, "{lambda");
	add_list(out, text, nesting);
	str_add_char(out, '}');
	take(text, ">");
	return true;
}

// Up to what is no part of the name: "*", " const", " (*)(int)", " [4]".
static void add_core(struct str *out, struct text *text, unsigned nesting)
{
	size_t from = out->length;
	const char *base;

	while (text->at < text->end) {
		char c = *text->at, next = text->at + 1 < text->end ? text->at[1] : 0;

		if (c == '*' || c == '&' || c == '[')
			break;
		// "unsigned long" goes on after the blank, "s const" and "s *" do not.
		if (c == ' ') {
			struct text word = { text->at + 1, text->end };

			if (!is_word(next) || take_word(&word, "const") ||
			    take_word(&word, "volatile"))
				break;
		}
		if (add_nameless(out, text, nesting))
			continue;
		if (c == '<' || c == '(') {
			add_list(out, text, nesting);
			continue;
		}
		str_add_char(out, c);
		text->at++;
	}
	// A name of C's is known only when it is whole.
	base = spelling_base(str_get(out) + from);
	if (base != str_get(out) + from) {
		out->length = from;
		str_add(out, base);
	}
}

// Pointers, references, arrays, functions; const of any of them.
static void add_rest(struct str *out, struct text *text, unsigned nesting)
{
	bool declared = false; // "(*)" was there: what comes is the parameters

	for (skip_blanks(text); text->at < text->end; skip_blanks(text)) {
		char next = text->at + 1 < text->end ? text->at[1] : 0;

		if (take_word(text, "const")) {
			str_add(out, " const");
		} else if (take_word(text, "volatile")) {
			str_add(out, " volatile");
		} else if (*text->at == '[') {
			const char *after = after_brackets(text->at, text->end);

			str_add_char(out, ' ');
			str_add_bytes(out, text->at, (size_t)(after - text->at));
			text->at = after;
		} else if (*text->at == '(' && !declared) {
			const char *after = after_brackets(text->at, text->end);

			// "(*)", "(&)", "(ns::s::*)".
			declared = next == '*' || next == '&' ||
				   (after - text->at > 2 && after[-2] == '*');
			str_add_char(out, ' ');
			add_list(out, text, nesting);
		} else if (*text->at == '(') {
			add_list(out, text, nesting);
		} else {
			str_add_char(out, *text->at++);
		}
	}
}

static void add_type(struct str *out, const char *at, size_t length, unsigned nesting)
{
	struct text text = { at, at + length };
	bool is_const = false, is_volatile = false;

	if (nesting >= NESTING_MAX) {
		str_add_bytes(out, at, length);
		return;
	}
	// GCC and clang write qualifiers first, the demangler last.
	for (skip_blanks(&text);; skip_blanks(&text)) {
		if (take_word(&text, "const"))
			is_const = true;
		else if (take_word(&text, "volatile"))
			is_volatile = true;
		else
			break;
	}
	add_core(out, &text, nesting + 1);
	str_add(out, is_const ? " const" : "");
	str_add(out, is_volatile ? " volatile" : "");
	add_rest(out, &text, nesting + 1);
}

void spelling_add_type(struct str *out, const char *text, size_t length)
{
	add_type(out, text, length, 0);
}
