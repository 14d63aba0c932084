// By recursive descent, with a text for what was read and a list for what is referred to.
//
// For example, ?push_back@?$vector@HV?$allocator@H@std@@@std@@QEAAXH@Z:
//
//     ?                       a symbol follows
//     push_back@              its name
//     ?$vector@               a template as the next scope, vector, with arguments
//       H                       int
//       V?$allocator@H@std@@    a class: allocator of int, in std
//     @                       no more arguments
//     std@@                   the scope of vector; @ ends the scopes
//     QEAAXH@Z                a public method, void (int): read, and not written
//
// A digit stands for the name, or the type of an argument, that was read as that number; a template
// begins a numbering of its own. Names grow by references to references: what all of them wrote is
// counted, and ends at 64 KiB; depth and steps are bounded too. A name that is not understood is
// shown as it is.
#include "symbols/undecorate.h"

#include "base/mem.h"
#include "base/str.h"

#include <string.h>

enum {
	BACK_MAX = 10, // a digit refers back
	SCOPES_MAX = 64,
	DEPTH_MAX = 48, // of templates within templates, pointers to pointers …
	STEPS_MAX = 20000,
	TEXT_MAX = 64 * 1024,
	NAME_MAX_BYTES = 16 * 1024,
};

// What digits refer to. A template has its own.
struct back {
	char *names[BACK_MAX]; // owned
	size_t names_count;
	char *types[BACK_MAX]; // owned
	size_t types_count;
};

struct reading {
	const char *at;
	struct back back;
	size_t written; // of all texts, so that references to references come to an end
	int depth, steps;
	bool bad;
};

// A name that is being put together: its parts stand from the innermost scope outwards.
struct scopes {
	char *parts[SCOPES_MAX]; // owned
	size_t count;
};

static void read_type(struct reading *reading, struct str *out);
static void read_name(struct reading *reading, struct str *out, bool symbol);
static void read_signature(struct reading *reading, struct str *result, struct str *arguments);
static const char *read_function(struct reading *reading, bool member, struct str *result,
				 struct str *arguments);

// The rest of the name becomes empty text, so that every rule comes to its end by itself, without a
// test after each step.
static void fail(struct reading *reading)
{
	// For example a loop that reads until "@" is at a NUL then, which no rule takes: it sees
	// `bad` and ends.
	reading->bad = true;
	reading->at = "";
}

// Every function that calls itself asks here first: depth and steps end, whatever the name.
static bool enter(struct reading *reading)
{
	// Depth is given back by who entered; steps never are, so that a name of 16 KiB whose rules
	// branch does not take minutes.
	if (++reading->depth > DEPTH_MAX || ++reading->steps > STEPS_MAX)
		fail(reading);
	return !reading->bad;
}

static bool take(struct reading *reading, const char *text)
{
	size_t length = strlen(text);

	if (strncmp(reading->at, text, length) != 0)
		return false;
	reading->at += length;
	return true;
}

// All text goes through here, so that its sum is bounded.
static void put(struct reading *reading, struct str *out, const char *text)
{
	size_t length = strlen(text);

	ASSERT(reading->written <= TEXT_MAX || reading->bad);
	// Counted although it may go into a text that is dropped: what is bounded is the work.
	reading->written += length;
	if (reading->written > TEXT_MAX)
		fail(reading);
	else
		str_add_bytes(out, text, length);
}

static void free_back(struct back *back)
{
	for (size_t i = 0; i < back->names_count; i++)
		mem_free(back->names[i]);
	for (size_t i = 0; i < back->types_count; i++)
		mem_free(back->types[i]);
	*back = (struct back){ 0 };
}

// The first ten different ones have a digit each; what comes later has none.
static void remember_name(struct reading *reading, const char *text)
{
	struct back *back = &reading->back;

	ASSERT(back->names_count <= BACK_MAX);
	for (size_t i = 0; i < back->names_count; i++)
		if (strcmp(back->names[i], text) == 0)
			return;
	if (back->names_count < BACK_MAX)
		back->names[back->names_count++] = mem_copy_text(text);
}

// 1 to 10 are digits, all else letters A to P with @ behind them; ? in front is a minus.
static uint64_t read_number(struct reading *reading, bool *negative)
{
	uint64_t value = 0;

	*negative = take(reading, "?");
	// For example "2" is 3, "BA@" is 16 (B is 1, A is 0), and "?0" is -1.
	if (*reading->at >= '0' && *reading->at <= '9')
		return (uint64_t)(*reading->at++ - '0') + 1;
	for (int i = 0; i < 16 && *reading->at >= 'A' && *reading->at <= 'P'; i++)
		value = value << 4 | (uint64_t)(*reading->at++ - 'A');
	if (!take(reading, "@"))
		fail(reading);
	return value;
}

static void put_number(struct reading *reading, struct str *out)
{
	bool negative;
	uint64_t value = read_number(reading, &negative);
	struct str text = { 0 };

	str_format(&text, "%s%llu", negative ? "-" : "", (unsigned long long)value);
	put(reading, out, text.text);
	str_fini(&text);
}

// Text up to the next @.
static void read_simple(struct reading *reading, struct str *out)
{
	size_t length = strcspn(reading->at, "@");
	char *text;

	// No name is empty, and each ends with an @ that is there.
	if (length == 0 || reading->at[length] == 0) {
		fail(reading);
		return;
	}
	text = mem_copy_bytes(reading->at, length);
	reading->at += length + 1;
	put(reading, out, text);
	mem_free(text);
}

// ---- templates ----

// A pointer to something that has a name: &name.
static void read_symbol(struct reading *reading, struct str *out)
{
	if (!take(reading, "?")) {
		fail(reading);
		return;
	}
	read_name(reading, out, true);
	read_signature(reading, NULL, NULL);
}

// Not all arguments are types: $0 is a number, $1 the address of something that has a name, $E a
// reference to such. For example $02 is 3 (a digit is one less), as the size in std::array<int,3>.
static void read_argument(struct reading *reading, struct str *out)
{
	struct str type = { 0 };

	if (take(reading, "$M")) // the type of what follows
		read_type(reading, &type);
	str_fini(&type);
	if (take(reading, "$0")) {
		put_number(reading, out);
	} else if (take(reading, "$1")) {
		put(reading, out, "&");
		read_symbol(reading, out);
	} else if (take(reading, "$E")) {
		read_symbol(reading, out);
	} else {
		read_type(reading, out);
	}
}

// An argument that is a pack of nothing, and the mark where a pack ends, write nothing.
static void read_arguments(struct reading *reading, struct str *out)
{
	bool first = true;

	while (!reading->bad && !take(reading, "@")) {
		if (take(reading, "$$V") || take(reading, "$$$V") || take(reading, "$$Z") ||
		    take(reading, "$S"))
			continue; // nothing
		if (!first)
			put(reading, out, ",");
		first = false;
		if (*reading->at == 0)
			fail(reading);
		else
			read_argument(reading, out);
	}
}

static const char *find_operator(struct reading *reading);

// Behind ?$: the name, the arguments. Digits within mean what is within.
static void read_template(struct reading *reading, struct str *out, bool remember)
{
	// The outer numbering is put aside whole and comes back after the template, which is then
	// one name of it.
	struct back outer = reading->back;
	struct str text = { 0 };
	const char *operator_text;

	reading->back = (struct back){ 0 };
	if (enter(reading)) {
		if (take(reading, "?")) {
			operator_text = find_operator(reading);
			if (operator_text)
				put(reading, &text, operator_text);
			else
				fail(reading);
		} else {
			read_simple(reading, &text);
			if (text.length > 0)
				remember_name(reading, text.text);
		}
		put(reading, &text, "<");
		read_arguments(reading, &text);
		// A blank between two closing brackets, as undname writes them: vector<vector<int>
		// >.
		if (text.length > 0 && text.text[text.length - 1] == '>')
			put(reading, &text, " ");
		put(reading, &text, ">");
	}
	reading->depth--;
	free_back(&reading->back);
	reading->back = outer;
	if (!reading->bad && remember)
		remember_name(reading, text.text);
	put(reading, out, str_get(&text));
	str_fini(&text);
}

// ---- types ----

static const struct {
	const char *code, *text;
} plain_types[] = {
	{ "X", "void" },
	{ "D", "char" },
	{ "C", "signed char" },
	{ "E", "unsigned char" },
	{ "F", "short" },
	{ "G", "unsigned short" },
	{ "H", "int" },
	{ "I", "unsigned int" },
	{ "J", "long" },
	{ "K", "unsigned long" },
	{ "M", "float" },
	{ "N", "double" },
	{ "O", "long double" },
	{ "_J", "__int64" },
	{ "_K", "unsigned __int64" },
	{ "_N", "bool" },
	{ "_W", "wchar_t" },
	{ "_S", "char16_t" },
	{ "_U", "char32_t" },
	{ "_Q", "char8_t" },
	{ "_L", "__int128" },
	{ "_M", "unsigned __int128" },
	{ "_P", "auto" },
	{ "$$T", "std::nullptr_t" },
};

static const char *find_plain(struct reading *reading)
{
	for (size_t i = 0; i < sizeof plain_types / sizeof *plain_types; i++)
		if (take(reading, plain_types[i].code))
			return plain_types[i].text;
	return NULL;
}

// A to D: what is const and what volatile of the thing that is meant.
static const char *read_qualifiers(struct reading *reading)
{
	static const char *const texts[] = { "", "const ", "volatile ", "const volatile " };
	char code = *reading->at;

	if (code < 'A' || code > 'D') { // based pointers
		fail(reading);
		return "";
	}
	reading->at++;
	return texts[code - 'A'];
}

// Q to T: the same of a class's member, with the class. NULL: it is none.
static const char *read_member(struct reading *reading, struct str *class)
{
	static const char *const texts[] = { "", "const ", "volatile ", "const volatile " };
	char code = *reading->at;

	if (code < 'Q' || code > 'T')
		return NULL;
	reading->at++;
	read_name(reading, class, false);
	return texts[code - 'Q'];
}

// A pointer to a function: what that returns, the pointer, what it takes. Of a class's member (8)
// the class and what is const of it are told.
static void read_function_pointer(struct reading *reading, struct str *out, const char *sign)
{
	struct str class = { 0 }, result = { 0 }, arguments = { 0 };
	bool member = *reading->at++ == '8';
	const char *qualifiers;

	ASSERT(member || reading->at[-1] == '6');
	if (member)
		read_name(reading, &class, false);
	qualifiers = read_function(reading, member, &result, &arguments);
	put(reading, out, str_get(&result));
	put(reading, out, " (");
	put(reading, out, str_get(&class));
	put(reading, out, member ? "::" : "");
	put(reading, out, sign);
	put(reading, out, ")(");
	put(reading, out, str_get(&arguments));
	put(reading, out, ")");
	put(reading, out, qualifiers);
	STR_FINI(&class, &result, &arguments);
}

// For example PEBD: P a pointer, E of 64 bits, B to something const, D char: const char *.
static void read_pointer(struct reading *reading, struct str *out, const char *sign,
			 const char *own)
{
	struct str class = { 0 };
	const char *qualifiers;

	while (take(reading, "E") || take(reading, "F") || take(reading, "I"))
		; // __ptr64, __unaligned, __restrict
	if (*reading->at == '6' || *reading->at == '8') {
		read_function_pointer(reading, out, sign);
		return;
	}
	qualifiers = read_member(reading, &class);
	put(reading, out, qualifiers ? qualifiers : read_qualifiers(reading));
	read_type(reading, out);
	put(reading, out, " ");
	if (qualifiers) {
		put(reading, out, str_get(&class));
		put(reading, out, "::");
	}
	put(reading, out, sign);
	put(reading, out, own);
	str_fini(&class);
}

// For example Y123H: two dimensions, of 3 and of 4, and then the type: int[3][4].
static void read_array(struct reading *reading, struct str *out)
{
	struct str sizes = { 0 };
	bool negative;
	uint64_t count = read_number(reading, &negative);

	for (uint64_t i = 0; i < count && !reading->bad; i++) {
		put(reading, &sizes, "[");
		put_number(reading, &sizes);
		put(reading, &sizes, "]");
	}
	read_type(reading, out);
	put(reading, out, str_get(&sizes));
	str_fini(&sizes);
}

static const struct {
	const char *code, *sign, *own;
} pointers[] = {
	{ "P", "*", "" },         { "Q", "*", "const" },
	{ "R", "*", "volatile" }, { "S", "*", "const volatile" },
	{ "A", "&", "" },         { "B", "&", "volatile" },
	{ "$$Q", "&&", "" },      { "$$R", "&&", "volatile" },
};

// Union, struct, class and enum (T, U, V, W4) are written by their names alone. A type of a
// function ($$A6) has the 6 that read_signature wants to see: one step back.
static void read_compound(struct reading *reading, struct str *out)
{
	for (size_t i = 0; i < sizeof pointers / sizeof *pointers; i++) {
		if (!take(reading, pointers[i].code))
			continue;
		read_pointer(reading, out, pointers[i].sign, pointers[i].own);
		return;
	}
	if (take(reading, "T") || take(reading, "U") || take(reading, "V") || take(reading, "W4")) {
		read_name(reading, out, false);
	} else if (take(reading, "$$C") || take(reading, "?")) {
		put(reading, out, read_qualifiers(reading));
		read_type(reading, out);
	} else if (take(reading, "$$A6")) {
		struct str result = { 0 }, arguments = { 0 };

		reading->at--;
		read_signature(reading, &result, &arguments);
		put(reading, out, str_get(&result));
		put(reading, out, " (");
		put(reading, out, str_get(&arguments));
		put(reading, out, ")");
		STR_FINI(&result, &arguments);
	} else if (take(reading, "$$B")) {
		read_type(reading, out);
	} else if (take(reading, "$$Y")) {
		read_name(reading, out, false);
	} else if (take(reading, "Y")) {
		read_array(reading, out);
	} else {
		fail(reading);
	}
}

static void read_type(struct reading *reading, struct str *out)
{
	const char *plain;

	if (enter(reading)) {
		plain = find_plain(reading);
		if (plain)
			put(reading, out, plain);
		else
			read_compound(reading, out);
	}
	reading->depth--;
}

// ---- what a function takes and returns ----

// One argument. Those that take more than one character can be referred to.
static void read_parameter(struct reading *reading, struct str *out)
{
	const char *before = reading->at;
	struct str text = { 0 };
	size_t index = (size_t)(*reading->at - '0');

	// Any other character is far above 9 as an unsigned difference.
	if (index < BACK_MAX) {
		if (index >= reading->back.types_count)
			fail(reading);
		else
			put(reading, out, reading->back.types[index]);
		reading->at += !reading->bad;
		return;
	}
	read_type(reading, &text);
	// Types of one letter are not numbered: a reference to one would not be shorter.
	if (!reading->bad && reading->at - before > 1 && reading->back.types_count < BACK_MAX)
		reading->back.types[reading->back.types_count++] = mem_copy_text(str_get(&text));
	put(reading, out, str_get(&text));
	str_fini(&text);
}

// X alone is a list of none; Z ends one in "...", and @ any other.
static void read_parameters(struct reading *reading, struct str *out)
{
	bool first = true;

	if (take(reading, "X")) {
		put(reading, out, "void");
		return;
	}
	while (!reading->bad && !take(reading, "@")) {
		if (!first)
			put(reading, out, ",");
		first = false;
		if (take(reading, "Z")) {
			put(reading, out, "...");
			return;
		}
		if (*reading->at == 0)
			fail(reading);
		else
			read_parameter(reading, out);
	}
}

// What a function returns and takes; of a member, what is const of its object, which is returned.
static const char *read_function(struct reading *reading, bool member, struct str *result,
				 struct str *arguments)
{
	const char *qualifiers = "";

	// E of 64 bits, F __unaligned, I __restrict; G and H are the & and && of a member function.
	while (member && (take(reading, "E") || take(reading, "F") || take(reading, "I") ||
			  take(reading, "G") || take(reading, "H")))
		;
	if (member)
		qualifiers = read_qualifiers(reading);
	if (*reading->at < 'A' || *reading->at > 'Z') {
		fail(reading);
		return "";
	}
	reading->at++; // how it is called
	if (!take(reading, "@")) {
		if (take(reading, "?"))
			put(reading, result, read_qualifiers(reading));
		read_type(reading, result);
	}
	read_parameters(reading, arguments);
	if (!take(reading, "Z") && !take(reading, "_E"))
		fail(reading);
	return qualifiers;
}

// What stands behind a symbol's name: a letter for what it is, and then its type. `result` and
// `arguments` may be NULL.
static void read_signature(struct reading *reading, struct str *result, struct str *arguments)
{
	struct str ignored = { 0 };
	char kind = *reading->at;
	bool negative;

	if (!enter(reading) || kind == 0) {
		fail(reading);
		return;
	}
	reading->at++;
	if (kind == '9') { // nothing is told
		reading->depth--;
		return;
	}
	if (kind >= '0' && kind <= '4') { // a variable
		read_type(reading, &ignored);
		take(reading, "E");
		if (!read_member(reading, &ignored))
			read_qualifiers(reading);
	} else if ((kind >= 'A' && kind <= 'Z') || kind == '6') {
		// Of each four or eight letters, two are static; some have an offset to this.
		// For example Q (public, a member): (16) % 8 = 0; S (public, static): 18 % 8 = 2. Y
		// and Z are no members.
		bool member = kind < 'Y' && kind >= 'A' && (kind - 'A') % 8 != 2 &&
			      (kind - 'A') % 8 != 3;

		if (member && (kind - 'A') % 8 >= 6)
			read_number(reading, &negative);
		read_function(reading, member, result ? result : &ignored,
			      arguments ? arguments : &ignored);
	} else {
		fail(reading);
	}
	reading->depth--;
	str_fini(&ignored);
}

// ---- names ----

static const struct {
	const char *code, *text;
} operators[] = {
	{ "2", "operator new" },
	{ "3", "operator delete" },
	{ "4", "operator=" },
	{ "5", "operator>>" },
	{ "6", "operator<<" },
	{ "7", "operator!" },
	{ "8", "operator==" },
	{ "9", "operator!=" },
	{ "A", "operator[]" },
	{ "C", "operator->" },
	{ "D", "operator*" },
	{ "E", "operator++" },
	{ "F", "operator--" },
	{ "G", "operator-" },
	{ "H", "operator+" },
	{ "I", "operator&" },
	{ "J", "operator->*" },
	{ "K", "operator/" },
	{ "L", "operator%" },
	{ "M", "operator<" },
	{ "N", "operator<=" },
	{ "O", "operator>" },
	{ "P", "operator>=" },
	{ "Q", "operator," },
	{ "R", "operator()" },
	{ "S", "operator~" },
	{ "T", "operator^" },
	{ "U", "operator|" },
	{ "V", "operator&&" },
	{ "W", "operator||" },
	{ "X", "operator*=" },
	{ "Y", "operator+=" },
	{ "Z", "operator-=" },
	{ "_0", "operator/=" },
	{ "_1", "operator%=" },
	{ "_2", "operator>>=" },
	{ "_3", "operator<<=" },
	{ "_4", "operator&=" },
	{ "_5", "operator|=" },
	{ "_6", "operator^=" },
	{ "_7", "`vftable'" },
	{ "_8", "`vbtable'" },
	{ "_9", "`vcall'" },
	{ "_D", "`vbase dtor'" },
	{ "_E", "`vector deleting dtor'" },
	{ "_F", "`default ctor closure'" },
	{ "_G", "`scalar deleting dtor'" },
	{ "_H", "`vector ctor iterator'" },
	{ "_I", "`vector dtor iterator'" },
	{ "_J", "`vector vbase ctor iterator'" },
	{ "_L", "`eh vector ctor iterator'" },
	{ "_M", "`eh vector dtor iterator'" },
	{ "_N", "`eh vector vbase ctor iterator'" },
	{ "_O", "`copy ctor closure'" },
	{ "_U", "operator new[]" },
	{ "_V", "operator delete[]" },
	{ "__L", "operator co_await" },
	{ "__M", "operator<=>" },
};

static const char *find_operator(struct reading *reading)
{
	for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
		if (take(reading, operators[i].code))
			return operators[i].text;
	return NULL;
}

// Functions without a name of their own: two have that of their class, which is read after them,
// and one that of the type that it returns.
enum special { SPECIAL_NONE, SPECIAL_CONSTRUCTOR, SPECIAL_DESTRUCTOR, SPECIAL_CAST };

// Behind a ?: an operator, or what is named after its class.
static enum special read_special(struct reading *reading, struct str *out)
{
	const char *text;

	if (take(reading, "0"))
		return SPECIAL_CONSTRUCTOR;
	if (take(reading, "1"))
		return SPECIAL_DESTRUCTOR;
	if (take(reading, "B"))
		return SPECIAL_CAST;
	if (take(reading, "__K")) {
		put(reading, out, "operator \"\"");
		read_simple(reading, out);
		return SPECIAL_NONE;
	}
	if (take(reading, "__E") || take(reading, "__F")) {
		put(reading, out,
		    reading->at[-1] == 'E' ? "`dynamic initializer for '"
					   : "`dynamic atexit destructor for '");
		if (take(reading, "?")) {
			read_name(reading, out, true);
			read_signature(reading, NULL, NULL);
			take(reading, "@");
		} else {
			read_simple(reading, out);
		}
		put(reading, out, "''");
		return SPECIAL_NONE;
	}
	text = find_operator(reading);
	if (text)
		put(reading, out, text);
	else
		fail(reading);
	return SPECIAL_NONE;
}

// What can stand for a scope and for a name alike. False: it is none of these.
static bool read_common(struct reading *reading, struct str *out, bool remember)
{
	size_t index = (size_t)(*reading->at - '0');

	// A digit is a name that was read before; "?$" a template; anything else but "?" a plain
	// name.
	if (index < BACK_MAX) {
		if (index >= reading->back.names_count)
			fail(reading);
		else
			put(reading, out, reading->back.names[index]);
		reading->at += !reading->bad;
	} else if (take(reading, "?$")) {
		read_template(reading, out, remember);
	} else if (*reading->at != '?') {
		read_simple(reading, out);
		if (!reading->bad)
			remember_name(reading, out->text);
	} else {
		return false;
	}
	return true;
}

static void read_scope(struct reading *reading, struct str *out)
{
	struct str inner = { 0 };

	if (read_common(reading, out, true))
		return;
	if (take(reading, "?A")) { // and a number that makes it unique
		// The number is of no use to a reader: all anonymous namespaces read alike.
		size_t length = strcspn(reading->at, "@");

		if (reading->at[length] == 0)
			fail(reading);
		else
			reading->at += length + 1;
		remember_name(reading, "`anonymous namespace'");
		put(reading, out, "`anonymous namespace'");
		return;
	}
	// Within a function: ? number ? the function. For example ?1??main@@YAHXZ is the second
	// scope in main: `main'::`2'.
	reading->at++;
	put(reading, &inner, "`");
	put_number(reading, &inner);
	put(reading, &inner, "'");
	if (!take(reading, "?")) {
		fail(reading);
	} else {
		put(reading, out, "`");
		if (!take(reading, "?"))
			fail(reading);
		else
			read_name(reading, out, true);
		read_signature(reading, NULL, NULL);
		put(reading, out, "'::");
		put(reading, out, str_get(&inner));
	}
	str_fini(&inner);
}

// The innermost scope without the arguments of its template: what constructors are called.
static void put_class(struct reading *reading, struct str *out, const struct scopes *scopes)
{
	const char *text = scopes->count > 1 ? scopes->parts[1] : NULL;
	char *name;

	ASSERT(scopes->count <= SCOPES_MAX);
	if (!text) {
		fail(reading);
		return;
	}
	name = mem_copy_bytes(text, strcspn(text, "<"));
	put(reading, out, name);
	mem_free(name);
}

// A name and its scopes, up to the @ that ends them. A symbol's may be an operator.
static void read_name(struct reading *reading, struct str *out, bool symbol)
{
	enum special special = SPECIAL_NONE;
	struct scopes scopes = { 0 };
	struct str part = { 0 }, type = { 0 };

	if (!enter(reading))
		return;
	if (!read_common(reading, &part, !symbol)) {
		if (symbol && take(reading, "?"))
			special = read_special(reading, &part);
		else
			fail(reading);
	}
	scopes.parts[scopes.count++] = str_take(&part);
	while (!reading->bad && !take(reading, "@")) {
		if (*reading->at == 0 || scopes.count == SCOPES_MAX) {
			fail(reading);
			break;
		}
		read_scope(reading, &part);
		scopes.parts[scopes.count++] = part.text ? str_take(&part) : mem_copy_text("");
	}
	// Parts were read from the innermost out, and are written the other way round.
	for (size_t i = scopes.count; i-- > 1;) {
		put(reading, out, scopes.parts[i]);
		put(reading, out, "::");
	}
	if (special == SPECIAL_DESTRUCTOR)
		put(reading, out, "~");
	if (special == SPECIAL_CONSTRUCTOR || special == SPECIAL_DESTRUCTOR) {
		put_class(reading, out, &scopes);
	} else if (special == SPECIAL_CAST) {
		// A cast's name is the type that it returns, which is in the signature, after the
		// scopes: so it is looked at ahead.
		const char *at = reading->at;

		read_signature(reading, &type, NULL); // and it is read once more by who asked
		if (!reading->bad)
			reading->at = at;
		put(reading, out, "operator ");
		put(reading, out, str_get(&type));
	} else if (scopes.parts[0]) {
		put(reading, out, scopes.parts[0]);
	}
	for (size_t i = 0; i < scopes.count; i++)
		mem_free(scopes.parts[i]);
	STR_FINI(&part, &type);
	reading->depth--;
}

char *undecorate(const char *name)
{
	struct reading reading = { .at = name + 1 };
	struct str text = { 0 };

	ASSERT(name);
	// Longer ones do not come from a compiler (it shortens them to a hash from 4,096 on).
	if (name[0] != '?' || strlen(name) > NAME_MAX_BYTES)
		return NULL;
	read_name(&reading, &text, true);
	free_back(&reading.back);
	if (reading.bad || text.length == 0) {
		str_fini(&text);
		return NULL;
	}
	return str_take(&text);
}
