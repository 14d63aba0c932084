// The grammar of D's ABI (dlang.org/spec/abi.html, "Name Mangling"), one function a rule.
//
// For example, _D3app__T5twiceTiZQjFNaNbiZi:
//
//     3app                  app
//     __T5twice Ti Z        a template, .twice!(int)
//     Qj                    the name that is 10 bytes before: 5twice, so .twice
//     F Na Nb i Z           a function, pure and nothrow, of an int: (int)
//     i                     what it returns, which is left out
//     app.twice!(int).twice(int)
//
// Numbers backwards are in base 26: capitals, and a small letter ends them. Types are written after
// what is in them: AyPi, an array of immutable pointers to int, is immutable(int*)[].
#include "symbols/dlang.h"

#include "base/mem.h"
#include "base/str.h"

#include <inttypes.h>
#include <string.h>

enum {
	NAME_MAX_LENGTH = 64 * 1024,
	DEPTH_MAX = 200,
	STEPS_MAX = 100000,
	TEXT_MAX = 256 * 1024,
};

// The state of one name. After `broken` every function returns without doing anything.
struct dlang {
	const char *text;
	size_t length, at;
	struct str out;
	unsigned depth, steps;
	bool broken;
};

static void read_type(struct dlang *dlang);
static void read_qualified(struct dlang *dlang, bool is_whole);
static void read_mangled(struct dlang *dlang);
static void read_value(struct dlang *dlang, char type, const char *name);

// Whatever is read from then on is read in vain, and ends soon: each loop asks.
static bool fail(struct dlang *dlang)
{
	dlang->broken = true;
	return false;
}

// Called by each rule that nests. Pairs with leave, also if it returns false.
static bool enter(struct dlang *dlang)
{
	if (++dlang->depth > DEPTH_MAX || ++dlang->steps > STEPS_MAX ||
	    dlang->out.length > TEXT_MAX)
		fail(dlang);
	return !dlang->broken;
}

// What `enter` has counted.
static void leave(struct dlang *dlang)
{
	ASSERT(dlang->depth > 0);
	dlang->depth--;
}

// The letter that many after the next one, or 0 behind the end.
static char peek_at(const struct dlang *dlang, size_t ahead)
{
	return ahead < dlang->length - dlang->at ? dlang->text[dlang->at + ahead] : '\0';
}

static char peek(const struct dlang *dlang)
{
	return peek_at(dlang, 0);
}

// Behind the end the name is broken.
static char next(struct dlang *dlang)
{
	ASSERT(dlang->at <= dlang->length);
	if (dlang->broken || dlang->at == dlang->length) {
		fail(dlang);
		return '\0';
	}
	return dlang->text[dlang->at++];
}

// Go past `text` if that is what comes next.
static bool take(struct dlang *dlang, const char *text)
{
	size_t length = strlen(text);

	if (dlang->broken || dlang->length - dlang->at < length ||
	    memcmp(dlang->text + dlang->at, text, length) != 0)
		return false;
	dlang->at += length;
	return true;
}

// A name that is broken says nothing more, so that its text does not grow for nothing.
static void print(struct dlang *dlang, const char *text)
{
	if (!dlang->broken)
		str_add(&dlang->out, text);
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

// Leave out what was printed from `length` on.
static void cut(struct dlang *dlang, size_t length)
{
	ASSERT(length <= dlang->out.length);
	dlang->out.length = length;
	if (dlang->out.text)
		dlang->out.text[length] = '\0';
}

// What was printed from `from` on, taken out again.
static char *take_back(struct dlang *dlang, size_t from)
{
	char *text;

	ASSERT(from <= dlang->out.length);
	text = mem_copy_bytes(str_get(&dlang->out) + from, dlang->out.length - from);
	cut(dlang, from);
	return text;
}

// Decimal. More than 64 bits are no number of a compiler's.
static uint64_t read_number(struct dlang *dlang)
{
	uint64_t number = 0;

	if (!is_digit(peek(dlang)))
		fail(dlang);
	while (!dlang->broken && is_digit(peek(dlang))) {
		unsigned digit = (unsigned)(next(dlang) - '0');

		if (number > (UINT64_MAX - digit) / 10)
			fail(dlang);
		else
			number = number * 10 + digit;
	}
	return number;
}

// After Q: how far back, from the Q on. 0: broken.
static size_t read_distance(const struct dlang *dlang, size_t *at)
{
	size_t distance = 0, from = *at;

	ASSERT(from < dlang->length && dlang->text[from] == 'Q');
	for ((*at)++; *at < dlang->length; (*at)++) {
		char c = dlang->text[*at];

		// Farther than any name is long: before the number can overflow.
		if (distance > NAME_MAX_LENGTH)
			return 0;
		if (c >= 'a' && c <= 'z') {
			(*at)++;
			distance = distance * 26 + (size_t)(c - 'a');
			return distance <= from ? distance : 0;
		}
		if (c < 'A' || c > 'Z')
			return 0;
		distance = distance * 26 + (size_t)(c - 'A');
	}
	return 0;
}

// What the reference at `dlang` stands for is at *to, before it; the name goes on after it.
static bool read_back(struct dlang *dlang, size_t *to)
{
	size_t from = dlang->at, distance = read_distance(dlang, &dlang->at);

	if (distance == 0)
		return fail(dlang);
	*to = from - distance;
	ASSERT(*to < from); // so that a reference to itself has no end
	return true;
}

// Does a name begin here? A reference may be to a name or to a type.
static bool is_symbol(const struct dlang *dlang)
{
	size_t at = dlang->at, distance;

	if (dlang->broken || at == dlang->length)
		return false;
	if (is_digit(dlang->text[at]))
		return true;
	if (dlang->text[at] == '_')
		return peek_at(dlang, 1) == '_' &&
		       (peek_at(dlang, 2) == 'T' || peek_at(dlang, 2) == 'U');
	if (dlang->text[at] != 'Q')
		return false;
	// A name that was written before begins with its length; a type never begins with a digit.
	distance = read_distance(dlang, &at);
	return distance > 0 && is_digit(dlang->text[dlang->at - distance]);
}

// How a function is called begins its type: as D's, C's, Windows', Pascal's, C++'s and
// Objective-C's are.
static bool is_convention(char c)
{
	return c && strchr("FUWVRY", c);
}

// For example "NaNb": "pure nothrow ". Ng, Nh, Nk and Nn belong to the first parameter.
static void read_attributes(struct dlang *dlang)
{
	static const char *const names[26] = {
		['a' - 'a'] = "pure ",      ['b' - 'a'] = "nothrow ",  ['c' - 'a'] = "ref ",
		['d' - 'a'] = "@property ", ['e' - 'a'] = "@trusted ", ['f' - 'a'] = "@safe ",
		['i' - 'a'] = "@nogc ",     ['j' - 'a'] = "return ",   ['l' - 'a'] = "scope ",
		['m' - 'a'] = "@live ",
	};

	while (peek(dlang) == 'N') {
		char letter = peek_at(dlang, 1);

		if (letter < 'a' || letter > 'z' || !names[letter - 'a'])
			break;
		print(dlang, names[letter - 'a']);
		dlang->at += 2;
	}
}

// How one parameter is passed: "scope", "in", "ref" and others.
static void read_storage(struct dlang *dlang)
{
	static const char *const classes[][2] = { { "M", "scope " }, { "Nk", "return " },
						  { "I", "in " },    { "J", "out " },
						  { "K", "ref " },   { "L", "lazy " } };
	bool found = true;

	while (found) {
		found = false;
		// In any order.
		for (size_t i = 0; i < sizeof classes / sizeof *classes && !found; i++) {
			found = take(dlang, classes[i][0]);
			if (found)
				print(dlang, classes[i][1]);
		}
	}
}

// With the letter that ends the list: Z, or X or Y where any number may follow.
static void read_parameters(struct dlang *dlang)
{
	for (size_t i = 0; !dlang->broken; i++) {
		if (take(dlang, "Z"))
			return;
		if (take(dlang, "X")) {
			print(dlang, "...");
			return;
		}
		if (i > 0)
			print(dlang, ", ");
		if (take(dlang, "Y")) {
			print(dlang, "...");
			return;
		}
		read_storage(dlang);
		read_type(dlang);
	}
}

// A type of functions, of which it is said what they return: "int(char) pure ".
static void read_function_type(struct dlang *dlang)
{
	static const char *const conventions[][2] = {
		{ "F", "" },
		{ "U", "extern(C) " },
		{ "W", "extern(Windows) " },
		{ "V", "extern(Pascal) " },
		{ "R", "extern(C++) " },
		{ "Y", "extern(Objective-C) " },
	};
	size_t from, i;
	char *parameters, *attributes;

	for (i = 0; i < sizeof conventions / sizeof *conventions; i++)
		if (take(dlang, conventions[i][0]))
			break;
	if (i == sizeof conventions / sizeof *conventions) {
		fail(dlang);
		return;
	}
	print(dlang, conventions[i][1]);
	from = dlang->out.length;
	read_attributes(dlang);
	attributes = take_back(dlang, from);
	read_parameters(dlang);
	parameters = take_back(dlang, from);
	// What it returns is last in the name and first in the text.
	read_type(dlang);
	print(dlang, "(");
	print(dlang, parameters);
	print(dlang, ") ");
	print(dlang, attributes);
	MEM_FREE(parameters, attributes);
}

// The same where it may be one that was written before.
static void read_function_or_back(struct dlang *dlang)
{
	size_t to, after;

	if (peek(dlang) != 'Q') {
		read_function_type(dlang);
	} else if (read_back(dlang, &to)) {
		after = dlang->at;
		dlang->at = to;
		read_function_type(dlang);
		dlang->at = after;
	}
}

// const, immutable, shared and inout, of the object that a method or delegate is called on.
static void read_modifiers(struct dlang *dlang)
{
	static const char *const modifiers[][2] = {
		{ "x", " const" }, { "y", " immutable" }, { "O", " shared" }, { "Ng", " inout" }
	};
	bool found = true;

	while (found) {
		found = false;
		for (size_t i = 0; i < sizeof modifiers / sizeof *modifiers && !found; i++) {
			found = take(dlang, modifiers[i][0]);
			if (found)
				print(dlang, modifiers[i][1]);
		}
	}
}

// const(T) and others, of which only the word differs.
static void read_in_brackets(struct dlang *dlang, const char *name)
{
	print(dlang, name);
	print(dlang, "(");
	read_type(dlang);
	print(dlang, ")");
}

// int[4] is G4i.
static void read_static_array(struct dlang *dlang)
{
	uint64_t count = read_number(dlang);

	read_type(dlang);
	if (!dlang->broken)
		str_format(&dlang->out, "[%" PRIu64 "]", count);
}

// int[string] is HAyai: the key is first.
// A reference in the value counts from where it is in the name, wherever it is printed.
static void read_map(struct dlang *dlang)
{
	size_t from = dlang->out.length;
	char *key;

	read_type(dlang);
	key = take_back(dlang, from);
	// The value's type, which is written before the key's.
	read_type(dlang);
	print(dlang, "[");
	print(dlang, key);
	print(dlang, "]");
	mem_free(key);
}

// Its modifiers are said last.
// For example DxFiZv: void(int) delegate const.
static void read_delegate(struct dlang *dlang)
{
	size_t from = dlang->out.length;
	char *modifiers;

	read_modifiers(dlang);
	modifiers = take_back(dlang, from);
	read_function_or_back(dlang);
	print(dlang, "delegate");
	print(dlang, modifiers);
	mem_free(modifiers);
}

// How many and what; newer compilers write it as parameters.
static void read_tuple(struct dlang *dlang)
{
	uint64_t count;

	print(dlang, "Tuple!(");
	if (is_digit(peek(dlang))) {
		count = read_number(dlang);
		for (uint64_t i = 0; i < count && !dlang->broken; i++) {
			print(dlang, i > 0 ? ", " : "");
			read_type(dlang);
		}
	} else {
		read_parameters(dlang);
	}
	print(dlang, ")");
}

// A type that was written before.
// It may refer further back, never forward: so it comes to an end.
static void read_type_again(struct dlang *dlang)
{
	size_t to, after;

	if (!read_back(dlang, &to))
		return;
	after = dlang->at;
	dlang->at = to;
	read_type(dlang);
	dlang->at = after;
}

// NULL: it is none of those with a letter of their own.
// x, y and z are no types by themselves.
static const char *basic_type(char c)
{
	static const char *const names[26] = {
		['a' - 'a'] = "char",    ['b' - 'a'] = "bool",         ['c' - 'a'] = "creal",
		['d' - 'a'] = "double",  ['e' - 'a'] = "real",         ['f' - 'a'] = "float",
		['g' - 'a'] = "byte",    ['h' - 'a'] = "ubyte",        ['i' - 'a'] = "int",
		['j' - 'a'] = "ireal",   ['k' - 'a'] = "uint",         ['l' - 'a'] = "long",
		['m' - 'a'] = "ulong",   ['n' - 'a'] = "typeof(null)", ['o' - 'a'] = "ifloat",
		['p' - 'a'] = "idouble", ['q' - 'a'] = "cfloat",       ['r' - 'a'] = "cdouble",
		['s' - 'a'] = "short",   ['t' - 'a'] = "ushort",       ['u' - 'a'] = "wchar",
		['v' - 'a'] = "void",    ['w' - 'a'] = "dchar",
	};

	return c >= 'a' && c <= 'z' ? names[c - 'a'] : NULL;
}

// Those with other types in them. The letter is read already.
static void read_type_by_letter(struct dlang *dlang, char letter)
{
	switch (letter) {
	case 'O':
		read_in_brackets(dlang, "shared");
		break;
	case 'x':
		read_in_brackets(dlang, "const");
		break;
	case 'y':
		read_in_brackets(dlang, "immutable");
		break;
	case 'A':
		read_type(dlang);
		print(dlang, "[]");
		break;
	case 'G':
		read_static_array(dlang);
		break;
	case 'H':
		read_map(dlang);
		break;
	case 'P':
		if (is_convention(peek(dlang))) {
			read_function_type(dlang);
			print(dlang, "function");
		} else {
			read_type(dlang);
			print(dlang, "*");
		}
		break;
	case 'C':
	case 'S':
	case 'E':
	case 'T':
		read_qualified(dlang, false);
		break;
	case 'D':
		read_delegate(dlang);
		break;
	case 'B':
		read_tuple(dlang);
		break;
	default:
		fail(dlang);
	}
}

// The small letters, pairs of letters, references, functions, and then what has a type in it. A
// function's type that no pointer leads to is an argument of a template: "int(char)".
static void read_type(struct dlang *dlang)
{
	const char *basic;

	if (!enter(dlang)) {
		leave(dlang);
		return;
	}
	ASSERT(dlang->at <= dlang->length);
	basic = basic_type(peek(dlang));
	if (basic) {
		dlang->at++;
		print(dlang, basic);
	} else if (take(dlang, "Ng")) {
		read_in_brackets(dlang, "inout");
	} else if (take(dlang, "Nh")) {
		read_in_brackets(dlang, "__vector");
	} else if (take(dlang, "Nn")) {
		print(dlang, "typeof(*null)");
	} else if (take(dlang, "zi")) {
		print(dlang, "cent");
	} else if (take(dlang, "zk")) {
		print(dlang, "ucent");
	} else if (peek(dlang) == 'Q') {
		read_type_again(dlang);
	} else if (is_convention(peek(dlang))) {
		read_function_type(dlang);
		cut(dlang, dlang->broken ? dlang->out.length : dlang->out.length - 1);
	} else {
		read_type_by_letter(dlang, next(dlang));
	}
	leave(dlang);
}

// A character in a text between quotes.
// What would end a line or move a cursor is written by its number.
static void print_character(struct dlang *dlang, unsigned c)
{
	// The character and the letter that it is written by.
	static const char *const escapes[] = { "\tt", "\nn", "\rr", "\ff", "\vv" };

	for (size_t i = 0; i < sizeof escapes / sizeof *escapes; i++)
		if ((char)c == escapes[i][0]) {
			str_add_char(&dlang->out, '\\');
			str_add_char(&dlang->out, escapes[i][1]);
			return;
		}
	if (c >= ' ' && c <= '~')
		str_add_char(&dlang->out, (char)c);
	else
		str_format(&dlang->out, "\\x%02x", c);
}

// -1: it is none. D's texts have small letters.
static int hex_digit(char c)
{
	if (is_digit(c))
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// a, w or d for its characters, how many there are, and two digits for each byte: a3_616263.
// Text is bounded by the name: two digits for each byte.
static void read_text(struct dlang *dlang)
{
	char kind = next(dlang);
	uint64_t length = read_number(dlang);

	if (!take(dlang, "_") || length > (dlang->length - dlang->at) / 2) {
		fail(dlang);
		return;
	}
	print(dlang, "\"");
	for (uint64_t i = 0; i < length && !dlang->broken; i++) {
		int high = hex_digit(next(dlang)), low = hex_digit(next(dlang));

		if (high < 0 || low < 0)
			fail(dlang);
		else
			print_character(dlang, (unsigned)(high * 16 + low));
	}
	print(dlang, "\"");
	if (kind != 'a' && !dlang->broken)
		str_add_char(&dlang->out, kind);
}

// NAN, INF, NINF, or digits in hexadecimal and the power of 2: 18P3 is 0x1.8p3.
// Digits are those of the compiler, as many as there are: no number is made of them.
static void read_real(struct dlang *dlang)
{
	if (take(dlang, "NAN")) {
		print(dlang, "NaN");
		return;
	}
	if (take(dlang, "INF") || take(dlang, "NINF")) {
		print(dlang, dlang->text[dlang->at - 4] == 'N' ? "-Inf" : "Inf");
		return;
	}
	print(dlang, take(dlang, "N") ? "-0x" : "0x");
	// The point is after the first digit.
	for (size_t i = 0; strchr("0123456789ABCDEF", peek(dlang)) && peek(dlang); i++) {
		if (i == 1)
			print(dlang, ".");
		str_add_char(&dlang->out, next(dlang));
	}
	if (!take(dlang, "P")) {
		fail(dlang);
		return;
	}
	print(dlang, take(dlang, "N") ? "p-" : "p");
	if (!is_digit(peek(dlang)))
		fail(dlang);
	while (is_digit(peek(dlang)))
		str_add_char(&dlang->out, next(dlang));
}

// As the program would write it: characters in quotes, and letters behind numbers that are not int.
static void read_integer(struct dlang *dlang, char type)
{
	uint64_t number = read_number(dlang);

	if (dlang->broken)
		return;
	if (type == 'b') {
		print(dlang, number ? "true" : "false");
		return;
	}
	if (type == 'a' || type == 'u' || type == 'w') {
		print(dlang, "'");
		if (type == 'a' && number >= ' ' && number <= '~')
			str_add_char(&dlang->out, (char)number);
		else
			str_format(&dlang->out,
				   type == 'a'   ? "\\x%02" PRIx64
				   : type == 'u' ? "\\u%04" PRIx64
						 : "\\U%08" PRIx64,
				   number);
		print(dlang, "'");
		return;
	}
	str_format(&dlang->out, "%" PRIu64, number);
	if (type && strchr("htk", type))
		print(dlang, "u");
	else if (type == 'l')
		print(dlang, "L");
	else if (type == 'm')
		print(dlang, "uL");
}

// What is between brackets, so many of them; of a map with its keys.
// An empty list has its brackets. How many there are is untrusted: the name ends first.
static void read_list(struct dlang *dlang, const char *open, const char *close, bool keys)
{
	uint64_t count = read_number(dlang);

	print(dlang, open);
	for (uint64_t i = 0; i < count && !dlang->broken; i++) {
		print(dlang, i > 0 ? ", " : "");
		read_value(dlang, 0, NULL);
		if (keys) {
			print(dlang, ":");
			read_value(dlang, 0, NULL);
		}
	}
	print(dlang, close);
}

// `type` is the letter of its type, and `name` how that is written; of a value within another one
// neither is known.
static void read_value(struct dlang *dlang, char type, const char *name)
{
	char c = peek(dlang);

	if (!enter(dlang)) {
		leave(dlang);
		return;
	}
	if (take(dlang, "n")) {
		print(dlang, "null");
	} else if (take(dlang, "N")) {
		print(dlang, "-");
		read_integer(dlang, type);
	} else if (is_digit(c) || take(dlang, "i")) {
		read_integer(dlang, type);
	} else if (take(dlang, "e")) {
		read_real(dlang);
	} else if (take(dlang, "c")) {
		read_real(dlang);
		print(dlang, "+");
		if (!take(dlang, "c"))
			fail(dlang);
		read_real(dlang);
		print(dlang, "i");
	} else if (c == 'a' || c == 'w' || c == 'd') {
		read_text(dlang);
	} else if (take(dlang, "A")) {
		read_list(dlang, "[", "]", type == 'H');
	} else if (take(dlang, "S")) {
		print(dlang, name ? name : "");
		read_list(dlang, "(", ")", false);
	} else if (take(dlang, "f") && take(dlang, "_D") && is_symbol(dlang)) {
		read_mangled(dlang);
	} else {
		fail(dlang);
	}
	leave(dlang);
}

// The type of a value says how it is written, and is not written itself.
static void read_typed_value(struct dlang *dlang)
{
	size_t from = dlang->out.length, at = dlang->at, distance;
	char letter = peek(dlang), *name;

	ASSERT(at <= dlang->length);
	// A reference leads to the letter; the type itself is read below.
	if (letter == 'Q') {
		distance = read_distance(dlang, &at);
		letter = distance > 0 ? dlang->text[dlang->at - distance] : '\0';
	}
	read_type(dlang);
	name = take_back(dlang, from);
	read_value(dlang, letter, name);
	mem_free(name);
}

// T a type, V a value, S a symbol, X a name of another language; Z ends them. H before one says
// that it was matched by a specialization.
// For example of !(int, 3u): TiVki3Z. A list that does not end is broken.
static void read_arguments(struct dlang *dlang)
{
	for (size_t i = 0; !dlang->broken && !take(dlang, "Z"); i++) {
		// A list of 0 has no comma, and no list has one at its end.
		print(dlang, i > 0 ? ", " : "");
		take(dlang, "H");
		if (take(dlang, "T")) {
			read_type(dlang);
		} else if (take(dlang, "V")) {
			read_typed_value(dlang);
		} else if (take(dlang, "S")) {
			if (take(dlang, "_D"))
				read_mangled(dlang);
			else
				read_qualified(dlang, false);
		} else if (take(dlang, "X")) {
			uint64_t length = read_number(dlang);

			if (dlang->broken || length > dlang->length - dlang->at) {
				fail(dlang);
				return;
			}
			str_add_bytes(&dlang->out, dlang->text + dlang->at, length);
			dlang->at += length;
		} else {
			fail(dlang);
		}
	}
}

static void read_identifier(struct dlang *dlang);

// After __T or __U.
// Its name may be said by where it was before, as others.
static void read_template(struct dlang *dlang)
{
	if (!is_symbol(dlang) || peek(dlang) == '0') {
		fail(dlang);
		return;
	}
	read_identifier(dlang);
	print(dlang, "!(");
	read_arguments(dlang);
	print(dlang, ")");
}

// Constructors and destructors have names that no program can give.
// All others are as they are, in UTF-8.
static void print_identifier(struct dlang *dlang, const char *text, size_t length)
{
	static const char *const special[][2] = { { "__ctor", "this" }, { "__dtor", "~this" } };

	for (size_t i = 0; i < sizeof special / sizeof *special; i++)
		if (strlen(special[i][0]) == length && memcmp(text, special[i][0], length) == 0) {
			print(dlang, special[i][1]);
			return;
		}
	str_add_bytes(&dlang->out, text, length);
}

// __S and digits tell functions of one name apart that are in one function; it is no scope.
static bool is_number_of_scope(const char *text, size_t length)
{
	if (length < 4 || memcmp(text, "__S", 3) != 0)
		return false;
	for (size_t i = 3; i < length; i++)
		if (!is_digit(text[i]))
			return false;
	return true;
}

// 5twice, with its length before it.
static void read_long_identifier(struct dlang *dlang)
{
	uint64_t length = read_number(dlang);
	const char *text = dlang->text + dlang->at;
	size_t end;

	if (dlang->broken || length == 0 || length > dlang->length - dlang->at) {
		fail(dlang);
		return;
	}
	end = dlang->at + length;
	// Compilers before 2.077 wrote how long a template's name is.
	// The length is what proves that all of it was read.
	if (length >= 5 && (memcmp(text, "__T", 3) == 0 || memcmp(text, "__U", 3) == 0)) {
		dlang->at += 3;
		read_template(dlang);
		if (dlang->at != end)
			fail(dlang);
	} else if (is_number_of_scope(text, length)) {
		dlang->at = end;
		read_identifier(dlang);
	} else {
		print_identifier(dlang, text, length);
		dlang->at = end;
	}
}

// One name, which may be said by where it was before.
static void read_identifier(struct dlang *dlang)
{
	size_t to, after;

	ASSERT(dlang->at <= dlang->length);
	if (!enter(dlang)) {
		leave(dlang);
		return;
	}
	if (peek(dlang) == 'Q') {
		if (read_back(dlang, &to)) {
			after = dlang->at;
			dlang->at = to;
			read_long_identifier(dlang);
			dlang->at = after;
		}
	} else if (take(dlang, "__T") || take(dlang, "__U")) {
		read_template(dlang);
	} else {
		read_long_identifier(dlang);
	}
	leave(dlang);
}

// Parameters of a function that others are in, or that the name is of. What it returns follows only
// the last one; a name that ends with them is a type's.
static void read_scope_parameters(struct dlang *dlang, bool is_whole)
{
	size_t from = dlang->out.length, at = dlang->at;
	char *modifiers;

	ASSERT(at < dlang->length);
	if (take(dlang, "M"))
		read_modifiers(dlang);
	modifiers = take_back(dlang, from);
	// Attributes of a function that is named are left out, as c++filt leaves them.
	if (is_convention(peek(dlang))) {
		dlang->at++;
		read_attributes(dlang);
		cut(dlang, from);
		print(dlang, "(");
		read_parameters(dlang);
		print(dlang, ")");
		print(dlang, is_whole ? modifiers : "");
	}
	mem_free(modifiers);
	// An M without a function is the next parameter's "scope".
	if (dlang->out.length == from || dlang->broken || dlang->at == dlang->length) {
		dlang->broken = false;
		dlang->at = at;
		cut(dlang, from);
	}
}

// Names from the outermost scope on. `is_whole`: it is a function's, and not an argument's.
static void read_qualified(struct dlang *dlang, bool is_whole)
{
	if (!enter(dlang)) {
		leave(dlang);
		return;
	}
	if (!is_symbol(dlang))
		fail(dlang);
	for (size_t i = 0; is_symbol(dlang); i++) {
		// A scope without a name: a block of a function, or an unnamed struct. Several may
		// follow each other.
		if (peek(dlang) == '0') {
			while (peek(dlang) == '0')
				dlang->at++;
			continue;
		}
		print(dlang, i > 0 ? "." : "");
		read_identifier(dlang);
		if (!dlang->broken && (peek(dlang) == 'M' || is_convention(peek(dlang))))
			read_scope_parameters(dlang, is_whole);
	}
	leave(dlang);
}

// After _D: the name, and then what it returns, or of data its type, which is left out.
static void read_mangled(struct dlang *dlang)
{
	size_t length;

	ASSERT(dlang->depth <= DEPTH_MAX);
	read_qualified(dlang, true);
	length = dlang->out.length;
	// What the compiler makes of itself (an initializer, a table) has no type.
	if (take(dlang, "Z"))
		return;
	read_type(dlang);
	if (!dlang->broken)
		cut(dlang, length);
}

char *dlang_demangle(const char *name)
{
	struct dlang dlang = { .text = name, .length = strcspn(name, ".") };

	if (strncmp(name, "_D", 2) != 0 || strlen(name) > NAME_MAX_LENGTH)
		return NULL;
	if (strcmp(name, "_Dmain") == 0)
		return mem_copy_text("D main");
	// C's names may begin with _D as well.
	dlang.at = 2;
	if (!is_symbol(&dlang))
		return NULL;
	read_mangled(&dlang);
	ASSERT(dlang.depth == 0);
	ASSERT(dlang.at <= dlang.length);
	if (dlang.broken || dlang.at != dlang.length || dlang.out.length == 0) {
		str_fini(&dlang.out);
		return NULL;
	}
	// What the compiler split off, as of C++'s names.
	if (name[dlang.length])
		str_format(&dlang.out, " [clone %s]", name + dlang.length);
	return str_take(&dlang.out);
}
