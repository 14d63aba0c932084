// The grammar of RFC 2603, one function a rule.
//
// For example, _RNvCs1234_7mycrate3foo, of which `name` begins after _R:
//
//     N v                a path in the namespace of values, which ends with a name
//       C s1234_ 7mycrate  inside of a crate, with the number s1234_ that tells it from others
//       3foo               the name
//     mycrate::foo
//
// Numbers are in base 62 and end with _; a reference backwards, B and a number, is a place in
// `text`, from which the same rule is read again. That may refer further back, and a name of 100
// bytes can so say something of a megabyte: each rule that nests counts a step (enter), and depth,
// steps and text are bounded.
#include "symbols/rust_v0.h"

#include "base/mem.h"
#include "symbols/rust_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
	NAME_MAX_LENGTH = 64 * 1024,
	DEPTH_MAX = 300,
	STEPS_MAX = 200000,
	TEXT_MAX = 256 * 1024,
};

// The state of one name. After `broken` every function returns without doing anything.
struct v0 {
	const char *text; // after _R; backward references count from here
	size_t length, at;
	struct str out;
	unsigned depth, steps;
	unsigned quiet;     // > 0: read on, but print nothing
	uint64_t lifetimes; // bound by the binders around us
	bool broken;
};

// An identifier and the number that tells it from others of its name.
struct identifier {
	const char *text;
	size_t length;
	uint64_t number;
	bool punycode;
};

// Rules that contain each other. `in_value`: generic arguments have "::" before them, as in a value
// (Vec::<u8>::new) and not in a type (Vec<u8>).
static void read_path(struct v0 *v0, bool in_value);
static void read_type(struct v0 *v0);
static void read_constant(struct v0 *v0);

static bool fail(struct v0 *v0)
{
	v0->broken = true;
	return false;
}

// Called by each rule that nests. Pairs with leave, also if it returns false.
static bool enter(struct v0 *v0)
{
	// A reference back to a reference back … doubles the text with each step: 20 of them are a
	// million times. Text and steps end that; depth keeps the stack.
	if (++v0->depth > DEPTH_MAX || ++v0->steps > STEPS_MAX || v0->out.length > TEXT_MAX)
		fail(v0);
	return !v0->broken;
}

static void leave(struct v0 *v0)
{
	ASSERT(v0->depth > 0);
	v0->depth--;
}

static void print_bytes(struct v0 *v0, const char *text, size_t length)
{
	if (!v0->broken && v0->quiet == 0)
		str_add_bytes(&v0->out, text, length);
}

static void print(struct v0 *v0, const char *text)
{
	print_bytes(v0, text, strlen(text));
}

static void print_number(struct v0 *v0, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof text, "%" PRIu64, number);
	print(v0, text);
}

static char peek(const struct v0 *v0)
{
	return v0->at < v0->length ? v0->text[v0->at] : '\0';
}

static char next(struct v0 *v0)
{
	ASSERT(v0->at <= v0->length);
	if (v0->broken || v0->at == v0->length) {
		fail(v0);
		return '\0';
	}
	return v0->text[v0->at++];
}

// Is `c` the next character? Takes it if so.
static bool take(struct v0 *v0, char c)
{
	if (v0->broken || peek(v0) != c)
		return false;
	v0->at++;
	return true;
}

// base-62-number: "_" is 0, "0_" is 1.
static uint64_t read_base62(struct v0 *v0)
{
	uint64_t number = 0;

	if (take(v0, '_'))
		return 0;
	while (!take(v0, '_')) {
		char c = next(v0);
		uint64_t digit;

		if (c >= '0' && c <= '9')
			digit = (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'z')
			digit = (uint64_t)(c - 'a') + 10;
		else if (c >= 'A' && c <= 'Z')
			digit = (uint64_t)(c - 'A') + 36;
		else
			return fail(v0);
		// Before the multiplication, which could overflow; such a number is larger than any
		// name.
		if (number > (UINT64_MAX - 62) / 62)
			return fail(v0);
		number = number * 62 + digit;
	}
	// "_" is 0, so "0_" is 1, "z_" 36 and "Z_" 62.
	return number + 1;
}

// A number that is there only after its letter; 0 if it is not.
static uint64_t read_optional62(struct v0 *v0, char letter)
{
	uint64_t number;

	// So "s_" is 1 and no "s" is 0: crates of one name are told apart by it.
	if (!take(v0, letter))
		return 0;
	number = read_base62(v0);
	if (number == UINT64_MAX)
		return fail(v0);
	return number + 1;
}

static struct identifier read_plain_identifier(struct v0 *v0)
{
	struct identifier identifier = { 0 };
	size_t length = 0;

	identifier.punycode = take(v0, 'u');
	if (peek(v0) < '0' || peek(v0) > '9') {
		fail(v0);
		return identifier;
	}
	// A length of 0 is one digit: "05" is no length of 5.
	if (!take(v0, '0'))
		while (peek(v0) >= '0' && peek(v0) <= '9' && length <= v0->length)
			length = length * 10 + (size_t)(next(v0) - '0');
	// An underscore keeps the length apart from text that begins with a digit or underscore.
	take(v0, '_');
	if (v0->broken || length > v0->length - v0->at) {
		fail(v0);
		return identifier;
	}
	identifier.text = v0->text + v0->at;
	identifier.length = length;
	v0->at += length;
	return identifier;
}

static struct identifier read_identifier(struct v0 *v0)
{
	uint64_t number = read_optional62(v0, 's');
	struct identifier identifier = read_plain_identifier(v0);

	identifier.number = number;
	return identifier;
}

static void print_identifier(struct v0 *v0, const struct identifier *identifier)
{
	if (v0->broken || v0->quiet > 0)
		return;
	if (!identifier->punycode) {
		print_bytes(v0, identifier->text, identifier->length);
	} else if (!rust_text_add_punycode(&v0->out, identifier->text, identifier->length)) {
		fail(v0);
	}
}

// A lifetime by its distance from the innermost binder; 0 is the erased one.
static void print_lifetime(struct v0 *v0, uint64_t index)
{
	uint64_t depth;

	print(v0, "'");
	if (index == 0) {
		print(v0, "_");
		return;
	}
	if (index > v0->lifetimes) {
		fail(v0);
		return;
	}
	// With two bound by for<'a, 'b>, index 1 is 'b, the innermost, and 2 is 'a.
	// From the outermost: it is the first letter, whichever binder it belongs to.
	depth = v0->lifetimes - index;
	if (depth < 26) {
		print_bytes(v0, &"abcdefghijklmnopqrstuvwxyz"[depth], 1);
	} else {
		print(v0, "_");
		print_number(v0, depth);
	}
}

// "for<'a, 'b> " if there is a binder. Returns how many it binds; the caller takes them off
// v0->lifetimes when it is done.
static uint64_t read_binder(struct v0 *v0)
{
	uint64_t count = read_optional62(v0, 'G');

	// Each that is used takes a character at least; without this a number would print for ever.
	if (count > v0->length) // more than could ever be used
		return fail(v0);
	if (count == 0)
		return 0;
	print(v0, "for<");
	for (uint64_t i = 0; i < count && !v0->broken; i++) {
		if (i > 0)
			print(v0, ", ");
		v0->lifetimes++;
		print_lifetime(v0, 1);
	}
	print(v0, "> ");
	return count;
}

// A backward reference: run `rule` where it points to, then come back.
static void follow(struct v0 *v0, void (*rule)(struct v0 *v0))
{
	size_t from = v0->at - 1; // of the B
	uint64_t to = read_base62(v0);
	size_t back = v0->at;

	// Only backwards, so that no reference comes back to itself.
	if (v0->broken || to >= from) {
		fail(v0);
		return;
	}
	// What is not printed need not be followed: the text after the reference is what matters.
	if (v0->quiet > 0)
		return;
	v0->at = (size_t)to;
	rule(v0);
	v0->at = back;
}

static void read_path_as_value(struct v0 *v0)
{
	read_path(v0, true);
}

static void read_path_as_type(struct v0 *v0)
{
	read_path(v0, false);
}

static void read_generic_argument(struct v0 *v0)
{
	if (take(v0, 'L'))
		print_lifetime(v0, read_base62(v0));
	else if (take(v0, 'K'))
		read_constant(v0);
	else
		read_type(v0);
}

static void read_generic_arguments(struct v0 *v0)
{
	for (int i = 0; !v0->broken && !take(v0, 'E'); i++) {
		if (i > 0)
			print(v0, ", ");
		read_generic_argument(v0);
	}
}

// N: a name within a path. Capital letters are things without a name of their own.
static void read_nested(struct v0 *v0, bool in_value)
{
	char space = next(v0);
	struct identifier identifier;

	// Small letters are namespaces of the language (types, values), and are not shown.
	if (!((space >= 'a' && space <= 'z') || (space >= 'A' && space <= 'Z'))) {
		fail(v0);
		return;
	}
	read_path(v0, in_value);
	identifier = read_identifier(v0);
	if (space >= 'A' && space <= 'Z') {
		print(v0, "::{");
		if (space == 'C')
			print(v0, "closure");
		else if (space == 'S')
			print(v0, "shim");
		else
			print_bytes(v0, &space, 1);
		if (identifier.length > 0) {
			print(v0, ":");
			print_identifier(v0, &identifier);
		}
		print(v0, "#");
		print_number(v0, identifier.number);
		print(v0, "}");
	} else if (identifier.length > 0) {
		print(v0, "::");
		print_identifier(v0, &identifier);
	}
}

// M, X, Y: <type> and <type as trait>.
static void read_impl(struct v0 *v0, char kind)
{
	// For example <Vec<u8> as Clone>::clone: the path of the `impl` block is read, and what it
	// is for is printed.
	if (kind != 'Y') {
		// Where the impl stands says nothing to a reader.
		read_optional62(v0, 's');
		v0->quiet++;
		read_path(v0, false);
		v0->quiet--;
	}
	print(v0, "<");
	read_type(v0);
	if (kind != 'M') {
		print(v0, " as ");
		read_path(v0, false);
	}
	print(v0, ">");
}

// C is a crate, N a name within a path, M, X and Y a type with what is written for it, I a path
// with generic arguments, B a path that was there before. For example INvC3std3VechE: I, the path
// std::Vec, the argument h (u8): std::Vec<u8>.
static void read_path(struct v0 *v0, bool in_value)
{
	struct identifier crate;
	char kind;

	if (!enter(v0)) {
		leave(v0);
		return;
	}
	kind = next(v0);
	switch (kind) {
	case 'C':
		crate = read_identifier(v0);
		print_identifier(v0, &crate);
		break;
	case 'N':
		read_nested(v0, in_value);
		break;
	case 'M':
	case 'X':
	case 'Y':
		read_impl(v0, kind);
		break;
	case 'I':
		read_path(v0, in_value);
		print(v0, in_value ? "::<" : "<");
		read_generic_arguments(v0);
		print(v0, ">");
		break;
	case 'B':
		follow(v0, in_value ? read_path_as_value : read_path_as_type);
		break;
	default:
		fail(v0);
	}
	leave(v0);
}

static const char *basic_type(char letter)
{
	static const char *const names[26] = {
		['a' - 'a'] = "i8",   ['b' - 'a'] = "bool",  ['c' - 'a'] = "char",
		['d' - 'a'] = "f64",  ['e' - 'a'] = "str",   ['f' - 'a'] = "f32",
		['h' - 'a'] = "u8",   ['i' - 'a'] = "isize", ['j' - 'a'] = "usize",
		['l' - 'a'] = "i32",  ['m' - 'a'] = "u32",   ['n' - 'a'] = "i128",
		['o' - 'a'] = "u128", ['p' - 'a'] = "_",     ['s' - 'a'] = "i16",
		['t' - 'a'] = "u16",  ['u' - 'a'] = "()",    ['v' - 'a'] = "...",
		['x' - 'a'] = "i64",  ['y' - 'a'] = "u64",   ['z' - 'a'] = "!",
	};

	return letter >= 'a' && letter <= 'z' ? names[letter - 'a'] : NULL;
}

// F: for<'a> unsafe extern "C" fn(A, B) -> R.
static void read_function_type(struct v0 *v0)
{
	uint64_t bound = read_binder(v0);

	if (take(v0, 'U'))
		print(v0, "unsafe ");
	if (take(v0, 'K')) {
		print(v0, "extern \"");
		if (take(v0, 'C')) {
			print(v0, "C");
		} else {
			struct identifier abi = read_plain_identifier(v0);

			if (abi.punycode)
				fail(v0);
			// Dashes were written as underscores.
			for (size_t i = 0; !v0->broken && i < abi.length; i++)
				print_bytes(v0, abi.text[i] == '_' ? "-" : &abi.text[i], 1);
		}
		print(v0, "\" ");
	}
	print(v0, "fn(");
	for (int i = 0; !v0->broken && !take(v0, 'E'); i++) {
		if (i > 0)
			print(v0, ", ");
		read_type(v0);
	}
	print(v0, ")");
	// A function that returns () has no arrow.
	if (!take(v0, 'u')) {
		print(v0, " -> ");
		read_type(v0);
	}
	v0->lifetimes -= bound;
}

// A path whose list of generic arguments, if it has one, is left open, so that a dyn trait's
// associated types can join it.
static bool read_open_path(struct v0 *v0)
{
	bool open = false;

	if (!enter(v0)) {
		leave(v0);
		return false;
	}
	if (take(v0, 'B')) {
		size_t from = v0->at - 1;
		uint64_t to = read_base62(v0);
		size_t back = v0->at;

		// As in follow, whose rule has no answer to give.
		if (v0->broken || to >= from) {
			fail(v0);
		} else if (v0->quiet == 0) {
			v0->at = (size_t)to;
			open = read_open_path(v0);
			v0->at = back;
		}
	} else if (take(v0, 'I')) {
		read_path(v0, false);
		print(v0, "<");
		read_generic_arguments(v0);
		open = true;
	} else {
		read_path(v0, false);
	}
	leave(v0);
	return open;
}

// D: dyn Trait<A, Item = B> + Other + 'a.
static void read_dyn_type(struct v0 *v0)
{
	uint64_t bound, lifetime;

	print(v0, "dyn ");
	bound = read_binder(v0);
	// For example Iterator<Item = u8>: the path Iterator, which has no list, so "<" opens one
	// for the name and its type, and ">" closes it.
	for (int i = 0; !v0->broken && !take(v0, 'E'); i++) {
		bool open;

		if (i > 0)
			print(v0, " + ");
		open = read_open_path(v0);
		while (!v0->broken && take(v0, 'p')) {
			struct identifier name = read_plain_identifier(v0);

			print(v0, open ? ", " : "<");
			open = true;
			print_identifier(v0, &name);
			print(v0, " = ");
			read_type(v0);
		}
		if (open)
			print(v0, ">");
	}
	v0->lifetimes -= bound;
	if (!take(v0, 'L')) {
		fail(v0);
		return;
	}
	lifetime = read_base62(v0);
	if (lifetime > 0) {
		print(v0, " + ");
		print_lifetime(v0, lifetime);
	}
}

// Lifetime 0 was erased, and is not written: &str, and &'a str else.
static void read_reference(struct v0 *v0, bool mutable)
{
	print(v0, "&");
	if (take(v0, 'L')) {
		uint64_t lifetime = read_base62(v0);

		if (lifetime > 0) {
			print_lifetime(v0, lifetime);
			print(v0, " ");
		}
	}
	if (mutable)
		print(v0, "mut ");
	read_type(v0);
}

// A tuple of one has a comma, as in Rust: (u8,).
static void read_tuple(struct v0 *v0)
{
	int count = 0;

	print(v0, "(");
	for (; !v0->broken && !take(v0, 'E'); count++) {
		if (count > 0)
			print(v0, ", ");
		read_type(v0);
	}
	print(v0, count == 1 ? ",)" : ")");
}

static void read_array(struct v0 *v0, bool sized)
{
	print(v0, "[");
	read_type(v0);
	if (sized) {
		print(v0, "; ");
		read_constant(v0);
	}
	print(v0, "]");
}

// For example RSh: a reference (R) to a slice (S) of h, u8: &[u8].
static void read_type(struct v0 *v0)
{
	char letter;

	if (!enter(v0)) {
		leave(v0);
		return;
	}
	letter = next(v0);
	if (basic_type(letter)) {
		print(v0, basic_type(letter));
	} else if (letter == 'R' || letter == 'Q') {
		read_reference(v0, letter == 'Q');
	} else if (letter == 'P' || letter == 'O') {
		print(v0, letter == 'P' ? "*const " : "*mut ");
		read_type(v0);
	} else if (letter == 'A' || letter == 'S') {
		read_array(v0, letter == 'A');
	} else if (letter == 'T') {
		read_tuple(v0);
	} else if (letter == 'F') {
		read_function_type(v0);
	} else if (letter == 'D') {
		read_dyn_type(v0);
	} else if (letter == 'B') {
		follow(v0, read_type);
	} else if (!v0->broken) {
		// The letter is given back: read_path wants to see it.
		ASSERT(v0->at > 0);
		v0->at--; // a path, which begins with this letter
		read_path(v0, false);
	}
	leave(v0);
}

// The hexadecimal digits of a constant, up to their underscore. Leading zeros are left out.
static struct identifier read_hex(struct v0 *v0)
{
	struct identifier digits = { .text = v0->text + v0->at };

	while (!v0->broken && !take(v0, '_')) {
		char c = next(v0);

		if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
			fail(v0);
		digits.length++;
	}
	if (!v0->broken && digits.length == 0)
		fail(v0);
	// One digit stays: 0 is "0".
	while (!v0->broken && digits.length > 1 && digits.text[0] == '0') {
		digits.text++;
		digits.length--;
	}
	return digits;
}

// Their value, where it fits in 64 bits.
static bool hex_value(const struct identifier *digits, uint64_t *value)
{
	*value = 0;
	// Constants of 128 bits that need more are shown as they are, in hexadecimal.
	if (digits->length > 16)
		return false;
	for (size_t i = 0; i < digits->length; i++) {
		char c = digits->text[i];

		*value = *value * 16 + (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
	}
	return true;
}

// As a literal of Rust would be: '\n', '\u{1b}', 'a'.
static void print_char_constant(struct v0 *v0, uint64_t code)
{
	struct str text = { 0 };

	print(v0, "'");
	if (code == '\t')
		print(v0, "\\t");
	else if (code == '\r')
		print(v0, "\\r");
	else if (code == '\n')
		print(v0, "\\n");
	else if (code == '\'' || code == '\\')
		print_bytes(v0, (char[]){ '\\', (char)code }, 2);
	else if (code < 0x20 || code == 0x7f)
		str_format(&text, "\\u{%" PRIx64 "}", code);
	else if (code > UINT32_MAX || !rust_text_add_char(&text, (uint32_t)code))
		fail(v0);
	print(v0, str_get(&text));
	print(v0, "'");
	str_fini(&text);
}

// Digits are hexadecimal; what fits in 64 bits is written as a decimal number.
static void read_constant_of(struct v0 *v0, char type)
{
	struct identifier digits;
	// Only signed types: of others an n would be no digit and fail.
	bool negative = strchr("aslxni", type) && take(v0, 'n');
	uint64_t value = 0;
	bool fits;

	digits = read_hex(v0);
	if (v0->broken)
		return;
	fits = hex_value(&digits, &value);
	if (type == 'b') {
		if (!fits || value > 1)
			fail(v0);
		print(v0, value ? "true" : "false");
	} else if (type == 'c') {
		if (fits)
			print_char_constant(v0, value);
		else
			fail(v0);
	} else {
		print(v0, negative ? "-" : "");
		if (fits) {
			print_number(v0, value);
		} else {
			print(v0, "0x");
			print_bytes(v0, digits.text, digits.length);
		}
	}
}

static void read_constant(struct v0 *v0)
{
	if (enter(v0)) {
		char type = next(v0);

		if (type == 'B')
			follow(v0, read_constant);
		else if (type == 'p')
			print(v0, "_");
		else if (type != '\0' && strchr("hmtyojaslxnibc", type))
			read_constant_of(v0, type);
		else
			fail(v0);
	}
	leave(v0);
}

char *rust_v0_demangle(const char *name)
{
	struct v0 v0 = { .text = name };

	// What follows a dot or dollar was added after the compiler.
	v0.length = strcspn(name, ".$");
	if (v0.length > NAME_MAX_LENGTH || peek(&v0) < 'A' || peek(&v0) > 'Z')
		return NULL;
	read_path(&v0, true);
	// What is instantiated in another crate has that crate's path after its own.
	if (!v0.broken && v0.at < v0.length) {
		// The crate that asked for this instance.
		v0.quiet++;
		read_path(&v0, false);
	}
	if (v0.broken || v0.at != v0.length || v0.out.length > TEXT_MAX) {
		str_fini(&v0.out);
		return NULL;
	}
	return str_take(&v0.out);
}
