// A demangled name is read from left to right, brackets are skipped whole, and an operator's own
// brackets are no brackets. For example, by position, "void ns::f<int>(long) const":
//
//     start 5         after the last blank outside of brackets: what was before is the return type
//     end 15          at the bracket of the parameters: "ns::f<int>"
//     params_end 21   after it
//
// A '(' that the name goes on after ("(anonymous namespace)::g", "f(int)::{lambda()#1}") is part
// of the name. What is too long loses parts in a fixed order, the least telling first.
#include "report/ask/cxxname.h"

#include <string.h>

// Where the parts of a name are, as positions in its text.
struct parts {
	size_t start;      // the qualified name begins here, after the return type
	size_t end;        // and ends here: at its parameters, or at the end of the text
	size_t params_end; // after the ')' of the parameters; == end if there are none
};

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

// A letter of a name, in UTF-8: bytes over 0x7f are letters.
static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '$' || (c & 0x80);
}

// Length of the operator that begins at `text` with the word "operator", or 0. Brackets in it do
// not nest and blanks in it do not separate. "operator<" in "operator<<int>" is "operator<<": the
// longer ones come first in the list. "operator" with a type after it ("operator bool") has its own
// length only.
static size_t operator_length(const char *text, size_t at)
{
	static const char *const symbols[] = {
		"()", "[]", "->*", "->", "<=>",    "<<=",  ">>=",       "<<",     ">>",
		"<=", ">=", "<",   ">",  " new[]", " new", " delete[]", " delete"
	};
	const char *after = text + at + strlen("operator");

	if (!begins(text + at, "operator") || (at > 0 && is_word(text[at - 1])) || is_word(*after))
		return 0;
	for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
		if (begins(after, symbols[i]))
			return strlen("operator") + strlen(symbols[i]);
	return strlen("operator");
}

// Position after the bracket that closes the one at `at`, or the end of the text. Any kind of
// bracket closes any other: a name is read, not checked.
static size_t skip_brackets(const char *text, size_t at)
{
	size_t depth = 0;

	while (text[at]) {
		size_t operator_bytes = operator_length(text, at);

		if (operator_bytes) {
			at += operator_bytes;
			continue;
		}
		if (strchr("<({[", text[at]))
			depth++;
		else if (strchr("])}", text[at]) || (text[at] == '>' && text[at - 1] != '-'))
			depth--;
		at++;
		if (depth == 0)
			break;
	}
	return at;
}

// Where the name goes on if the '(' at `at` belongs to it rather than to its parameters, else 0.
// `after` is the position after its ')'.
static size_t bracket_in_name(const char *text, size_t at, size_t after)
{
	static const char *const qualifiers[] = { " const", " volatile", " &&", " &" };
	size_t end = after;
	size_t i = 0;

	if (begins(text + at, "(anonymous namespace)"))
		return after;
	if ((at >= 8 && begins(text + at - 8, "decltype")) ||
	    (at >= 9 && begins(text + at - 9, "decltype ")))
		return after;
	while (i < sizeof qualifiers / sizeof *qualifiers) {
		if (begins(text + end, qualifiers[i])) {
			end += strlen(qualifiers[i]);
			i = 0;
		} else {
			i++;
		}
	}
	return begins(text + end, "::") ? end : 0;
}

// A blank after "operator" belongs to the name ("operator new"), until the next scope begins.
static struct parts find_parts(const char *text)
{
	struct parts parts = { 0 };
	bool in_operator = false;
	size_t at = 0;

	while (text[at]) {
		size_t operator_bytes = operator_length(text, at);

		if (operator_bytes) {
			in_operator = true;
			at += operator_bytes;
		} else if (text[at] == '(') {
			size_t after = skip_brackets(text, at);
			size_t on = bracket_in_name(text, at, after);

			if (!on) {
				parts.end = at;
				parts.params_end = after;
				return parts;
			}
			at = on;
		} else if (strchr("<{[", text[at])) {
			at = skip_brackets(text, at);
		} else if (text[at] == ' ' && text[at + 1] == '[') {
			break; // " [clone .cold]"
		} else {
			if (text[at] == ' ' && !in_operator)
				parts.start = at + 1;
			else if (text[at] == ':')
				in_operator = false;
			at++;
		}
	}
	parts.end = at;
	parts.params_end = at;
	return parts;
}

const char *cxxname_base(const char *text, size_t *length)
{
	struct parts parts = find_parts(text);

	*length = parts.end - parts.start;
	return text + parts.start;
}

const char *cxxname_scoped(const char *text)
{
	size_t length;
	const char *base = cxxname_base(text, &length);
	// Those of templates end at their arguments, and parameters follow.
	bool template = length > 0 && base[length - 1] == '>' && base[length] == '(';

	return template ? base : text;
}

// Bytes that continue a code point do not count. Wide characters take two columns on a terminal and
// are counted as one, so such a line may be longer.
size_t cxxname_columns(const char *text)
{
	size_t columns = 0;

	for (; *text; text++)
		if ((*text & 0xc0) != 0x80)
			columns++;
	return columns;
}

// Length of a default template argument at `text` (", std::allocator<…>" right before the closing
// bracket), or 0. Only the last arguments are defaults: std::map<int, T, std::less<int>,
// std::allocator<…> > loses both, and std::vector<std::allocator<int>, …> does not lose its first.
static size_t default_argument(const char *text)
{
	static const char *const defaults[] = { ", std::allocator<",      ", std::less<",
						", std::hash<",           ", std::equal_to<",
						", std::default_delete<", ", std::char_traits<" };

	for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++) {
		size_t after;

		if (!begins(text, defaults[i]))
			continue;
		after = skip_brackets(text, strlen(defaults[i]) - 1);
		// More defaults may follow this one.
		if (begins(text + after, " >") || text[after] == '>' ||
		    default_argument(text + after))
			return after;
	}
	return 0;
}

// The name as it would be written in a program, and safe to print.
static void simplify(const char *text, struct str *out)
{
	static const struct {
		const char *from, *to;
	} spellings[] = {
		{ "std::__cxx11::", "std::" },
		{ "std::basic_string<char, std::char_traits<char>, std::allocator<char> >",
		  "std::string" },
		{ "std::basic_string_view<char, std::char_traits<char> >", "std::string_view" },
		{ "std::basic_ostream<char, std::char_traits<char> >", "std::ostream" },
		{ "std::basic_istream<char, std::char_traits<char> >", "std::istream" },
		{ "__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >",
		  "string" },
	};
	size_t at = 0;

	while (text[at]) {
		size_t length = default_argument(text + at);

		for (size_t i = 0; length == 0 && i < sizeof spellings / sizeof *spellings; i++) {
			// "std::" + "__cxx11::basic_string<…" is one spelling in two pieces.
			if (begins(text + at, spellings[i].from) &&
			    !(i == 0 && begins(text + at + 5, spellings[5].from))) {
				str_add(out, spellings[i].to);
				length = strlen(spellings[i].from);
			}
		}
		if (length == 0) {
			size_t control = str_control(text + at);
			char c = text[at];

			if (!(c == ' ' && text[at + 1] == '>' && at > 0 && text[at - 1] == '>'))
				str_add_char(out, control ? '?' : c);
			length = control == 2 ? 2 : 1;
		}
		at += length;
	}
}

// [from, to) of `text` with the contents of its template argument lists replaced by "…", and those
// of the parameters of functions that it is in: "std::map<int, std::string>::insert" becomes
// "std::map<…>::insert", and "f(int)::{lambda(char)#1}::operator()" "f(…)::{lambda#1}::operator()".
static void fold_brackets(const char *text, size_t from, size_t to, struct str *out)
{
	size_t at = from;

	while (at < to) {
		size_t operator_bytes = operator_length(text, at);
		bool lambda = begins(text + at, "{lambda(");

		if (operator_bytes) {
			str_add_bytes(out, text + at, operator_bytes);
			at += operator_bytes;
		} else if (lambda) {
			str_add(out, "{lambda");
			at = skip_brackets(text, at + strlen("{lambda"));
		} else if (text[at] == '<' && at > from) {
			str_add(out, "<…>");
			at = skip_brackets(text, at);
		} else if (text[at] == '(' && at > from &&
			   !begins(text + at, "(anonymous namespace)")) {
			str_add(out, text[at + 1] == ')' ? "()" : "(…)");
			at = skip_brackets(text, at);
		} else {
			str_add_char(out, text[at++]);
		}
	}
}

// Where the name of a lambda ends that [from, to) of `text` is the call of, else `to`: that it is
// called needs no words.
static size_t without_call(const char *text, size_t from, size_t to)
{
	static const char call[] = "}::operator()";
	size_t end = to;

	// Of a generic one there are arguments after it.
	for (size_t at = from; at + strlen(call) <= to; at++)
		if (begins(text + at, call))
			end = text[at + strlen(call)] == '<' || at + strlen(call) == to ? at + 1
											: to;
	return end;
}

// Position after the first top-level "::", or 0. An operator's name is the last part: nothing is
// cut in it.
static size_t next_scope(const char *text)
{
	size_t at = 0;

	while (text[at]) {
		if (operator_length(text, at))
			return 0;
		if (strchr("<({[", text[at])) {
			at = skip_brackets(text, at);
			continue;
		}
		if (begins(text + at, "::"))
			return at + 2;
		at++;
	}
	return 0;
}

// Cut `text` to `width` columns, the last of them "…".
static void cut(const char *text, size_t width, struct str *out)
{
	size_t columns = 0;
	size_t at = 0;

	while (text[at] && columns + 1 < width) {
		at++;
		while ((text[at] & 0xc0) == 0x80)
			at++;
		columns++;
	}
	str_add_bytes(out, text, at);
	str_add(out, "…");
}

// What stays when the parameters, then the template arguments, then the outer scopes go.
// For example, in 20 columns, "void a::bb<int>::run(long)": without type and parameters it is
// "a::bb<int>::run(…)", which fits. In 14: "a::bb<…>::run(…)" has 16, so a scope goes: "…::run(…)".
static void shorten_in_steps(const char *text, size_t width, struct str *out)
{
	struct parts parts = find_parts(text);
	bool has_params = parts.params_end > parts.end + 2;
	const char *ending = has_params ? "(…)" : parts.params_end > parts.end ? "()" : "";
	struct str folded = { 0 };
	const char *rest;
	size_t scope = 0;

	str_add_bytes(&folded, text + parts.start, parts.end - parts.start);
	str_add(&folded, ending);
	if (cxxname_columns(str_get(&folded)) > width) {
		size_t end = without_call(text, parts.start, parts.end);

		str_clear(&folded);
		fold_brackets(text, parts.start, end, &folded);
		str_add(&folded, end < parts.end ? "" : ending);
	}
	rest = str_get(&folded);
	while (cxxname_columns(rest) + (scope ? 3 : 0) > width && next_scope(rest)) {
		scope = next_scope(rest);
		rest += scope;
	}
	if (scope && cxxname_columns(rest) + 3 <= width)
		str_add(out, "…::");
	if (cxxname_columns(rest) > width)
		cut(rest, width, out);
	else
		str_add(out, rest);
	str_fini(&folded);
}

// Before anything is shortened the text is made UTF-8, since columns are counted by it.
void cxxname_shorten(const char *text, size_t width, struct str *out)
{
	struct str clean = { 0 }, simple = { 0 };

	str_add_utf8(&clean, text, strlen(text));
	simplify(str_get(&clean), &simple);
	if (width < 8)
		width = 8;
	if (cxxname_columns(str_get(&simple)) <= width)
		str_add(out, str_get(&simple));
	else
		shorten_in_steps(str_get(&simple), width, out);
	STR_FINI(&clean, &simple);
}
