// The DIE of a function that was inlined refers to that of the function, and this one, where it is
// a class's, to the declaration in it. What is around that one is the scope (scopes.h). For example
//
//     namespace app                   app
//       class store                   app::store
//         subprogram open             app::store::open(int), by its parameters
//       subprogram run                app::run()
//         lexical block
//           class, without a name     app::run()::{lambda(char)#1}, by the parameters of
//             subprogram operator()
//
// What DWARF does not have: the numbers of lambdas and of types without a name are by their order
// here; the parameter of a generic lambda has the type that it was compiled for.
#include "symbols/dies_names.h"

#include "base/mem.h"
#include "base/str.h"
#include "symbols/demangle.h"
#include "symbols/dies.h"
#include "symbols/scopes.h"
#include "symbols/spelling.h"

#include <dwarf.h>
#include <inttypes.h>
#include <string.h>

enum {
	NEST_MAX = 64,         // scopes and types within types
	STEPS_MAX = 1 << 16,   // DIEs that are looked at for one name
	TEXT_MAX = 64 * 1024,  // of one name
	DECLARATOR_MAX = 4096, // of what is after one type's name
	FIRST_MAX = 64,        // children among which parameters are looked for
	REFERENCES_MAX = 8,    // that lead from a DIE to the one that has the name
};

// A name that is put together. Its parts are added to `out` from left to right. The counts end
// what a hostile file would make long.
struct naming {
	struct dies_names *names;
	struct str out;
	unsigned nesting, steps;
};

// One step to the DIE that says what this one leaves out. False: it says all there is.
static bool refer(Dwarf_Die *die)
{
	static const unsigned kinds[] = { DW_AT_abstract_origin, DW_AT_specification,
					  DW_AT_signature };
	Dwarf_Attribute attribute;
	Dwarf_Die next;

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (dwarf_attr(die, kinds[i], &attribute) && dwarf_formref_die(&attribute, &next)) {
			*die = next;
			return true;
		}
	return false;
}

// Whether it lists any itself.
static bool has_parameters(Dwarf_Die *die)
{
	Dwarf_Off last = dwarf_dieoffset(die);
	Dwarf_Die child;
	bool more = dies_descend(die, &child, &last);

	// They are among a function's first children, though types may be between them.
	for (unsigned i = 0; i < FIRST_MAX && more; i++) {
		int tag = dwarf_tag(&child);

		if (tag == DW_TAG_formal_parameter || tag == DW_TAG_GNU_formal_parameter_pack)
			return true;
		more = dies_step(&child, &last);
	}
	return false;
}

// The DIE that has the name, and is where the name is: a function's in its class, a class's in the
// unit of types that has it. *told: the one that has the parameters, or a class's arguments, since
// a declaration that only stands for a class in another unit may have none.
static Dwarf_Die named_die(const Dwarf_Die *die, Dwarf_Die *told)
{
	Dwarf_Die at = *die;

	ASSERT(at.addr && at.cu);
	*told = at;
	for (unsigned i = 0; i < REFERENCES_MAX && refer(&at); i++)
		if (scopes_is_class(dwarf_tag(&at)) ? !dwarf_hasattr(&at, DW_AT_declaration)
						    : has_parameters(&at) || !has_parameters(told))
			*told = at;
	return at;
}

// Each function that is called for a part of a name asks here first.
static bool enter(struct naming *naming)
{
	if (naming->nesting >= NEST_MAX || naming->steps >= STEPS_MAX ||
	    naming->out.length > TEXT_MAX)
		return false;
	naming->nesting++;
	naming->steps++;
	return true;
}

// The children of a DIE one by one. `child` is unset before the first.
static bool next_child(struct naming *naming, Dwarf_Die *die, Dwarf_Die *child, Dwarf_Off *last)
{
	if (naming->steps++ >= STEPS_MAX || naming->out.length > TEXT_MAX)
		return false;
	if (*last == 0) {
		*last = dwarf_dieoffset(die);
		return dies_descend(die, child, last);
	}
	return dies_step(child, last);
}

// False: none is given, which is void's way to be written.
static bool type_of(Dwarf_Die *die, Dwarf_Die *type)
{
	Dwarf_Attribute attribute;

	return dwarf_attr(die, DW_AT_type, &attribute) && dwarf_formref_die(&attribute, type);
}

static void add_type(struct naming *naming, Dwarf_Die *die);
static void add_name(struct naming *naming, Dwarf_Die *die);

// Typedefs are only other names. `bare`: what is const or volatile as a whole is not told, as of a
// parameter, which the caller has a copy of.
static bool resolve(struct naming *naming, Dwarf_Die *die, bool bare)
{
	for (;;) {
		int tag = dwarf_tag(die);
		Dwarf_Die type;

		if (tag != DW_TAG_typedef &&
		    !(bare && (tag == DW_TAG_const_type || tag == DW_TAG_volatile_type)))
			return true;
		if (naming->steps++ >= STEPS_MAX || !type_of(die, &type))
			return false;
		*die = type;
	}
}

// What the compiler added, as `this`, is no parameter to the reader.
static bool is_artificial(Dwarf_Die *die)
{
	return dies_flag(die, DW_AT_artificial);
}

// After the parameters of a method: which object it is called on. The object is the first
// parameter, a pointer that the compiler added.
static void add_qualifiers(struct naming *naming, Dwarf_Die *die)
{
	Dwarf_Die child, type, object;
	Dwarf_Off last = 0;

	while (next_child(naming, die, &child, &last)) {
		if (dwarf_tag(&child) != DW_TAG_formal_parameter)
			continue;
		if (!is_artificial(&child) || !type_of(&child, &type) ||
		    !resolve(naming, &type, true) || dwarf_tag(&type) != DW_TAG_pointer_type)
			return;
		// const and volatile, in either order.
		while (type_of(&type, &object) && naming->steps++ < STEPS_MAX &&
		       (dwarf_tag(&object) == DW_TAG_const_type ||
			dwarf_tag(&object) == DW_TAG_volatile_type)) {
			str_add(&naming->out,
				dwarf_tag(&object) == DW_TAG_const_type ? " const" : " volatile");
			type = object;
		}
		break;
	}
	if (dies_flag(die, DW_AT_reference))
		str_add(&naming->out, " &");
	if (dies_flag(die, DW_AT_rvalue_reference))
		str_add(&naming->out, " &&");
}

// `from` is where the list begins.
static void add_comma(struct naming *naming, size_t from)
{
	if (naming->out.length > from)
		str_add(&naming->out, ", ");
}

// Parameters of a function or of a type of functions, in brackets.
static void add_parameters(struct naming *naming, Dwarf_Die *die)
{
	Dwarf_Die child, inner, type;
	Dwarf_Off last = 0, inner_last;
	size_t from;

	str_add_char(&naming->out, '(');
	from = naming->out.length;
	while (next_child(naming, die, &child, &last)) {
		int tag = dwarf_tag(&child);

		if (tag == DW_TAG_unspecified_parameters) {
			add_comma(naming, from);
			str_add(&naming->out, "...");
		} else if (tag == DW_TAG_GNU_formal_parameter_pack) {
			inner_last = 0;
			while (next_child(naming, &child, &inner, &inner_last)) {
				if (!type_of(&inner, &type) || !resolve(naming, &type, true))
					continue;
				add_comma(naming, from);
				add_type(naming, &type);
			}
		} else if (tag == DW_TAG_formal_parameter && !is_artificial(&child)) {
			if (!type_of(&child, &type) || !resolve(naming, &type, true))
				continue;
			add_comma(naming, from);
			add_type(naming, &type);
		}
	}
	str_add_char(&naming->out, ')');
}

static void add_base(struct naming *naming, Dwarf_Die *die)
{
	const char *name = dwarf_diename(die);

	str_add(&naming->out, name ? spelling_base(name) : "?");
}

// What is after a type's name, put together from its end: what is nearest to a parameter's name is
// outermost in DWARF. For example of an array of 4 pointers to functions
//
//     array, pointer, function, int      " [4]"   "* [4]"   " (* [4])(long)"   "int (* [4])(long)"
struct declarator {
	struct str text;
	bool constant; // said of an array: it is of what is in it
};

// Declarators are short, so a copy for each step is cheap; DECLARATOR_MAX bounds them.
static void put_before(struct declarator *declarator, const char *text)
{
	struct str whole = { 0 };

	str_add(&whole, text);
	str_add(&whole, str_get(&declarator->text));
	str_fini(&declarator->text);
	declarator->text = whole;
}

// A pointer to an array or a function is in brackets: " (*) [4]".
static void put_in_brackets(struct declarator *declarator)
{
	if (declarator->text.length == 0)
		return;
	put_before(declarator, " (");
	str_add_char(&declarator->text, ')');
}

// How many one dimension of an array has: GCC writes the last index, clang the number. False: the
// program does not say.
static bool read_dimension(Dwarf_Die *die, uint64_t *count)
{
	Dwarf_Attribute attribute;
	Dwarf_Word number;

	if (dwarf_attr(die, DW_AT_count, &attribute))
		return dwarf_formudata(&attribute, count) == 0;
	if (!dwarf_attr(die, DW_AT_upper_bound, &attribute) ||
	    dwarf_formudata(&attribute, &number) != 0)
		return false;
	*count = number + 1;
	return true;
}

// An array, " [2][4]", or a vector of the processor's, " __vector(4)", which is no array to what
// points to it.
static void put_dimensions(struct naming *naming, Dwarf_Die *die, struct declarator *declarator)
{
	bool vector = dies_flag(die, DW_AT_GNU_vector), any = false;
	struct str dimensions = { 0 };
	Dwarf_Off last = 0;
	Dwarf_Die child;
	uint64_t count;

	str_add(&dimensions, vector ? " __vector" : " ");
	while (next_child(naming, die, &child, &last)) {
		if (dwarf_tag(&child) != DW_TAG_subrange_type)
			continue;
		any = true;
		if (read_dimension(&child, &count))
			str_format(&dimensions, vector ? "(%" PRIu64 ")" : "[%" PRIu64 "]", count);
		else
			str_add(&dimensions, "[]");
	}
	str_add(&dimensions, any ? "" : "[]");
	if (vector) {
		put_before(declarator, str_get(&dimensions));
	} else {
		put_in_brackets(declarator);
		str_add(&declarator->text, str_get(&dimensions));
	}
	str_fini(&dimensions);
}

// Of a type of functions. What is written in between (a type among the parameters) has its own
// declarator.
static void put_parameters(struct naming *naming, Dwarf_Die *die, struct declarator *declarator)
{
	struct str before = naming->out;

	put_in_brackets(declarator);
	if (declarator->text.length == 0)
		str_add_char(&declarator->text, ' ');
	naming->out = (struct str){ 0 };
	add_parameters(naming, die);
	add_qualifiers(naming, die);
	str_add(&declarator->text, str_get(&naming->out));
	str_fini(&naming->out);
	naming->out = before;
}

// A pointer to a member: of which class.
static void put_class(struct naming *naming, Dwarf_Die *die, struct declarator *declarator,
		      bool function)
{
	struct str before = naming->out;
	Dwarf_Attribute attribute;
	Dwarf_Die class;

	naming->out = (struct str){ 0 };
	if (dwarf_attr(die, DW_AT_containing_type, &attribute) &&
	    dwarf_formref_die(&attribute, &class))
		add_type(naming, &class);
	else
		str_add_char(&naming->out, '?');
	put_before(declarator, "::*");
	put_before(declarator, str_get(&naming->out));
	if (!function)
		put_before(declarator, " ");
	str_fini(&naming->out);
	naming->out = before;
}

// Of types that say one thing of another. NULL: it is none of these.
static const char *mark_of(int tag)
{
	switch (tag) {
	case DW_TAG_pointer_type:
		return "*";
	case DW_TAG_reference_type:
		return "&";
	case DW_TAG_rvalue_reference_type:
		return "&&";
	case DW_TAG_const_type:
		return " const";
	case DW_TAG_volatile_type:
		return " volatile";
	case DW_TAG_restrict_type:
		return " __restrict";
	case DW_TAG_atomic_type:
		return " _Atomic";
	default:
		return NULL;
	}
}

// One step from a type to what it is made of, with its part of the declarator. False: it is a name.
static bool put_step(struct naming *naming, Dwarf_Die *die, struct declarator *declarator)
{
	int tag = dwarf_tag(die);
	const char *mark = mark_of(tag);
	Dwarf_Die of;
	bool typed;

	ASSERT(die->addr && die->cu);
	if (!mark && tag != DW_TAG_array_type && tag != DW_TAG_subroutine_type &&
	    tag != DW_TAG_ptr_to_member_type)
		return false;
	typed = type_of(die, &of) && resolve(naming, &of, false);
	// What points, or qualifies, goes before all that is there.
	if (tag == DW_TAG_const_type && typed && dwarf_tag(&of) == DW_TAG_array_type) {
		declarator->constant = true;
	} else if (mark) {
		put_before(declarator, mark);
	} else if (tag == DW_TAG_array_type) {
		put_dimensions(naming, die, declarator);
		// GCC says it of both.
		if (declarator->constant && typed && dwarf_tag(&of) != DW_TAG_const_type)
			put_before(declarator, " const");
		declarator->constant = false;
	} else if (tag == DW_TAG_subroutine_type) {
		put_parameters(naming, die, declarator);
	} else {
		put_class(naming, die, declarator,
			  typed && dwarf_tag(&of) == DW_TAG_subroutine_type);
	}
	if (!typed)
		die->addr = NULL; // void
	else
		*die = of;
	return true;
}

// One type as it is written within parameters or arguments. What is nested deeper than any type of
// a real program is "?".
static void add_type(struct naming *naming, Dwarf_Die *of)
{
	struct declarator declarator = { 0 };
	Dwarf_Die die = *of;

	if (!enter(naming)) {
		str_add(&naming->out, "?");
		return;
	}
	// A typedef of no type is void.
	if (!resolve(naming, &die, false))
		die.addr = NULL;
	while (die.addr && naming->steps++ < STEPS_MAX && declarator.text.length < DECLARATOR_MAX &&
	       put_step(naming, &die, &declarator))
		continue;
	if (!die.addr)
		str_add(&naming->out, "void");
	else if (dwarf_tag(&die) == DW_TAG_base_type || dwarf_tag(&die) == DW_TAG_unspecified_type)
		add_base(naming, &die);
	else
		add_name(naming, &die);
	str_add(&naming->out, str_get(&declarator.text));
	str_fini(&declarator.text);
	naming->nesting--;
}

// libdw reads a constant of one byte as a signed one, and only its type tells.
static bool is_unsigned(Dwarf_Die *type)
{
	Dwarf_Attribute attribute;
	Dwarf_Word encoding;

	return dwarf_attr(type, DW_AT_encoding, &attribute) &&
	       dwarf_formudata(&attribute, &encoding) == 0 &&
	       (encoding == DW_ATE_unsigned || encoding == DW_ATE_unsigned_char);
}

// The bits that a number of that type has.
static uint64_t mask_of(Dwarf_Die *type)
{
	int bytes = dwarf_bytesize(type);

	return bytes > 0 && bytes < 8 ? (UINT64_C(1) << bytes * 8) - 1 : UINT64_MAX;
}

// A value that a template was given: 3, 4ul, true, (app::mode)1. An address has no constant, and is
// "?".
static void add_value(struct naming *naming, Dwarf_Die *die)
{
	static const char *const endings[][2] = {
		{ "unsigned int", "u" },         { "long", "l" },
		{ "unsigned long", "ul" },       { "long long", "ll" },
		{ "unsigned long long", "ull" },
	};
	const char *name, *ending = "";
	Dwarf_Attribute attribute;
	Dwarf_Sword number;
	Dwarf_Die type;

	if (!type_of(die, &type) || !resolve(naming, &type, true) ||
	    !dwarf_attr(die, DW_AT_const_value, &attribute) ||
	    dwarf_formsdata(&attribute, &number) != 0) {
		str_add_char(&naming->out, '?');
		return;
	}
	name = dwarf_tag(&type) == DW_TAG_base_type ? dwarf_diename(&type) : NULL;
	name = name ? spelling_base(name) : NULL;
	if (name && strcmp(name, "bool") == 0) {
		str_add(&naming->out, number ? "true" : "false");
		return;
	}
	for (size_t i = 0; name && i < sizeof endings / sizeof *endings; i++)
		if (strcmp(name, endings[i][0]) == 0)
			ending = endings[i][1];
	if (!*ending && (!name || strcmp(name, "int") != 0)) {
		str_add_char(&naming->out, '(');
		add_type(naming, &type);
		str_add_char(&naming->out, ')');
	}
	if (is_unsigned(&type))
		str_format(&naming->out, "%llu%s", (unsigned long long)number & mask_of(&type),
			   ending);
	else
		str_format(&naming->out, "%lld%s", (long long)number, ending);
}

// One parameter of a template. False: `die` is none.
static bool add_argument(struct naming *naming, Dwarf_Die *die, size_t from)
{
	const char *name;
	Dwarf_Die type;

	switch (dwarf_tag(die)) {
	case DW_TAG_template_type_parameter:
		add_comma(naming, from);
		if (type_of(die, &type))
			add_type(naming, &type);
		else
			str_add(&naming->out, "void");
		return true;
	case DW_TAG_template_value_parameter:
		add_comma(naming, from);
		add_value(naming, die);
		return true;
	case DW_TAG_GNU_template_template_param:
		add_comma(naming, from);
		name = dies_text(die, DW_AT_GNU_template_name);
		str_add(&naming->out, name ? name : "?");
		return true;
	default:
		return false;
	}
}

// Arguments that were written so far.
struct arguments {
	size_t from;    // where they begin
	size_t count;   // those of packs among them
	size_t certain; // that come before any pack, and
	size_t end;     // where these end
	bool any;       // there are brackets, if empty ones
};

// Those that the DIE lists; those of a pack are among them one by one.
static void add_listed(struct naming *naming, Dwarf_Die *die, struct arguments *arguments)
{
	Dwarf_Die child, inner;
	Dwarf_Off last = 0, inner_last;
	const char *before = NULL;
	bool packed = false;

	while (next_child(naming, die, &child, &last)) {
		const char *name = dwarf_diename(&child);

		// GCC lists what a generic lambda was compiled for twice.
		if (arguments->count > 0 && name && before && strcmp(name, before) == 0)
			continue;
		before = name;
		if (add_argument(naming, &child, arguments->from)) {
			arguments->count++;
			if (!packed) {
				arguments->certain++;
				arguments->end = naming->out.length;
			}
		} else if (dwarf_tag(&child) == DW_TAG_GNU_template_parameter_pack) {
			packed = arguments->any = true;
			inner_last = 0;
			while (next_child(naming, &child, &inner, &inner_last))
				arguments->count += add_argument(naming, &inner, arguments->from);
		}
	}
}

// GCC does not list parameters without a name, and of a partial specialization those of the
// template itself, such as an empty pack. The arguments in the DIE's `name` are all of them.
static void add_written(struct naming *naming, const char *name, struct arguments *arguments)
{
	const char *text, *at, *argument;
	size_t length, argument_length, count = 0;

	if (!spelling_arguments(name, &text, &length))
		return;
	arguments->any = true;
	for (at = text; spelling_next(&at, text + length, &argument, &argument_length);)
		count++;
	if (count == arguments->count)
		return;
	ASSERT(arguments->end >= arguments->from && arguments->end <= naming->out.length);
	// Before a pack they are in the order of the text, and are written better than there.
	naming->out.length = arguments->end;
	at = text;
	arguments->count = 0;
	// For example "false" of _Head_base<0, char*, false>, whose DIE lists two.
	while (spelling_next(&at, text + length, &argument, &argument_length)) {
		if (arguments->count++ < arguments->certain)
			continue;
		add_comma(naming, arguments->from);
		spelling_add_type(&naming->out, argument, argument_length);
	}
}

// Arguments of a template, in brackets. Two '>' have a blank between them, as in the demangler's
// names.
static void add_arguments(struct naming *naming, Dwarf_Die *die, const char *name)
{
	struct arguments arguments = { 0 };
	size_t begin = naming->out.length;

	if (begin > 0 && naming->out.text[begin - 1] == '<')
		str_add_char(&naming->out, ' ');
	str_add_char(&naming->out, '<');
	arguments.from = arguments.end = naming->out.length;
	add_listed(naming, die, &arguments);
	add_written(naming, name, &arguments);
	ASSERT(naming->out.length >= arguments.from);
	if (arguments.count == 0 && !arguments.any) {
		naming->out.length = begin;
		naming->out.text[begin] = 0;
		return;
	}
	if (naming->out.text[naming->out.length - 1] == '>')
		str_add_char(&naming->out, ' ');
	str_add_char(&naming->out, '>');
}

// Where the arguments begin in a name such as "vector<int>", or its end. In "operator<< <int>" they
// are after the operator.
static size_t base_length(const char *name)
{
	static const char *const operators[] = { "()", "->*", "->",  "<=>", "<<=", "<<",
						 "<=", "<",   ">>=", ">>",  ">=",  ">" };
	size_t at = 0, length;

	if (strncmp(name, "operator", 8) == 0) {
		at = 8;
		for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
			length = strlen(operators[i]);
			if (strncmp(name + at, operators[i], length) == 0) {
				at += length;
				break;
			}
		}
	}
	at += strcspn(name + at, "<");
	return name[at] && at > 0 && name[at - 1] == ' ' ? at - 1 : at;
}

// A class without a name that can be called is a lambda. `*call`: how. A class that a program
// itself left without a name, and gave an operator(), looks the same.
static bool is_lambda(struct naming *naming, Dwarf_Die *die, Dwarf_Die *call)
{
	Dwarf_Die child;
	Dwarf_Off last = 0;
	const char *name;

	if (!scopes_is_class(dwarf_tag(die)) || dwarf_diename(die))
		return false;
	while (next_child(naming, die, &child, &last)) {
		name = dwarf_tag(&child) == DW_TAG_subprogram ? dwarf_diename(&child) : NULL;
		if (name && strncmp(name, "operator()", 10) == 0) {
			*call = child;
			return true;
		}
	}
	return false;
}

// Where the program declares it; 0: that is not known.
static int declared_line(Dwarf_Die *die)
{
	int line;

	return dwarf_decl_line(die, &line) == 0 ? line : 0;
}

// How many like `die` come before it in its scope, and itself. Lambdas have numbers of their own,
// and so have other classes without a name. clang's are in the order of their first use; so lines
// are asked first.
static unsigned count_before(struct naming *naming, const struct scopes *scopes, uint32_t at,
			     Dwarf_Die *of, bool lambda)
{
	uint32_t parent = scopes->items[at].parent;
	int line = declared_line(of);
	unsigned count = 1;

	ASSERT(at < scopes->count);
	ASSERT(parent == SCOPES_NONE || parent < at);
	// What is in a scope follows it without a gap, and what is in that is between.
	for (uint32_t i = parent == SCOPES_NONE ? 0 : parent + 1; i < scopes->count; i++) {
		uint32_t in = scopes->items[i].parent;
		Dwarf_Die die, call;

		if (parent != SCOPES_NONE && (in == SCOPES_NONE || in < parent))
			break;
		if (in != parent || i == at)
			continue;
		if (naming->steps++ >= STEPS_MAX)
			break;
		die = scopes_die(scopes, i, of);
		if (scopes_is_scope(dwarf_tag(&die)) && dwarf_tag(&die) != DW_TAG_namespace &&
		    dwarf_tag(&die) != DW_TAG_subprogram && !dwarf_diename(&die) &&
		    is_lambda(naming, &die, &call) == lambda &&
		    (declared_line(&die) < line || (declared_line(&die) == line && i < at)))
			count++;
	}
	return count;
}

// Numbers are those that the demangler writes where the order of DIEs is that of the source.
static void add_nameless(struct naming *naming, Dwarf_Die *die, const struct scopes *scopes,
			 uint32_t at)
{
	Dwarf_Die call;
	bool lambda;

	if (dwarf_tag(die) == DW_TAG_namespace) {
		str_add(&naming->out, "(anonymous namespace)");
		return;
	}
	lambda = is_lambda(naming, die, &call);
	str_add(&naming->out, lambda ? "{lambda" : "{unnamed type");
	if (lambda)
		add_parameters(naming, &call);
	str_format(&naming->out, "#%u}",
		   at != SCOPES_NONE ? count_before(naming, scopes, at, die, lambda) : 1);
}

// "operator bool", whose type DWARF writes by whatever name it has in the class.
static bool is_conversion(const char *name)
{
	static const char *const others[] = { "new", "new[]", "delete", "delete[]", "co_await" };

	if (strncmp(name, "operator ", 9) != 0)
		return false;
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (strcmp(name + 9, others[i]) == 0)
			return false;
	return name[9] != '"';
}

// The DIE's own part of its name, after its scopes.
static void add_own(struct naming *naming, Dwarf_Die *die, Dwarf_Die *told,
		    const struct scopes *scopes, uint32_t at)
{
	const char *name = dwarf_diename(die);
	size_t from = naming->out.length;
	Dwarf_Die type;
	int tag = dwarf_tag(die);

	// GCC's struct of va_list is "typedef __va_list_tag __va_list_tag".
	if (name && strncmp(name, "typedef ", 8) == 0)
		name = strrchr(name, ' ') + 1;
	if (!name || !*name) {
		add_nameless(naming, die, scopes, at);
		return;
	}
	if (tag == DW_TAG_subprogram && is_conversion(name) && type_of(told, &type)) {
		str_add(&naming->out, "operator ");
		add_type(naming, &type);
	} else {
		str_add_bytes(&naming->out, name, base_length(name));
		if (scopes_is_class(tag) || tag == DW_TAG_subprogram)
			add_arguments(naming, scopes_is_class(tag) ? told : die, name);
		// "<x" is no name of C++, but may be in a file.
		if (naming->out.length == from)
			str_add(&naming->out, name);
	}
	if (tag != DW_TAG_subprogram)
		return;
	add_parameters(naming, told);
	add_qualifiers(naming, told);
}

// The names that the C++ ABI has short forms for, as its demangler writes them. Only whole names:
// the class within another name has been shortened before.
static void shorten(struct str *out, size_t from)
{
	static const char *const names[][2] = {
		{ "std::basic_string<char, std::char_traits<char>, std::allocator<char> >",
		  "std::string" },
		{ "std::basic_istream<char, std::char_traits<char> >", "std::istream" },
		{ "std::basic_ostream<char, std::char_traits<char> >", "std::ostream" },
		{ "std::basic_iostream<char, std::char_traits<char> >", "std::iostream" },
	};

	ASSERT(from < out->length);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(out->text + from, names[i][0]) == 0) {
			out->length = from;
			str_add(out, names[i][1]);
			return;
		}
}

// A function's name as it is in that of what is inside of it: without the type of its result. The
// ABI has a form for that, _ZZ…E1x for an x in _Z…. NULL: it is not of C++.
static char *demangle_around(const char *linkage)
{
	static const char inside[] = "::x";
	struct str name = { 0 };
	char *shown;

	ASSERT(linkage);
	if (strncmp(linkage, "_Z", 2) != 0)
		return demangle(linkage);
	str_format(&name, "_ZZ%sE1x", linkage + 2);
	shown = demangle(str_get(&name));
	str_fini(&name);
	if (!shown || !str_ends_with(shown, inside)) {
		mem_free(shown);
		return demangle(linkage);
	}
	shown[strlen(shown) - strlen(inside)] = 0;
	return shown;
}

// Others of the program may call it, and it has no mangled name: it is one of C, such as main. What
// is in a scope is not: then the names were left out (-g1).
static bool is_plain(const struct scopes *scopes, Dwarf_Die *die)
{
	uint32_t at = scopes_find(scopes, die);

	return (at == SCOPES_NONE || scopes->items[at].parent == SCOPES_NONE) &&
	       dies_flag(die, DW_AT_external) && !dies_linkage_name(die);
}

// The whole name of a type, a namespace or a function: that of its scope, and its own. A function
// with a linkage name has it whole there, as the scope of a lambda often does.
static void add_name(struct naming *naming, Dwarf_Die *of)
{
	Dwarf_Die told, die = named_die(of, &told), parent;
	size_t from = naming->out.length;
	const struct scopes *scopes;
	const char *linkage;
	char *shown;
	uint32_t at;

	if (!enter(naming)) {
		str_add_char(&naming->out, '?');
		return;
	}
	// What is in a function of C's has its plain name, as in the ABI: main::{lambda()#1}.
	linkage = dwarf_tag(&die) == DW_TAG_subprogram ? dies_linkage_name(&die) : NULL;
	shown = linkage && dies_linkage_tells(linkage) ? demangle_around(linkage) : NULL;
	if (shown) {
		str_add(&naming->out, shown);
		mem_free(shown);
	} else {
		scopes = scopes_of(&naming->names->units, &die);
		at = scopes_find(scopes, &die);
		if (at != SCOPES_NONE && scopes->items[at].parent != SCOPES_NONE) {
			parent = scopes_die(scopes, scopes->items[at].parent, &die);
			add_name(naming, &parent);
			str_add(&naming->out, "::");
		}
		if (dwarf_tag(&die) == DW_TAG_subprogram && !linkage && is_plain(scopes, &die))
			str_add(&naming->out, dwarf_diename(&die) ? dwarf_diename(&die) : "?");
		else
			add_own(naming, &die, &told, scopes, at);
		if (scopes_is_class(dwarf_tag(&die)))
			shorten(&naming->out, from);
	}
	naming->nesting--;
}

const char *dies_names_find(struct dies_names *names, Dwarf_Die *of, bool cpp)
{
	struct naming naming = { .names = names };
	Dwarf_Die told, die = named_die(of, &told);
	const struct scopes *scopes;
	uint64_t *slot;
	bool added;

	if (!dwarf_diename(&die))
		return NULL;
	// A function that is inlined in many places is one DIE.
	slot = map_put(&names->texts, (uintptr_t)die.addr, &added);
	if (!added)
		return (const char *)(uintptr_t)*slot;
	scopes = scopes_of(&names->units, &die);
	if (scopes->language >= 0 ? !dies_is_cpp(scopes->language) : !cpp)
		return NULL;
	if (!scopes->typed || is_plain(scopes, &die))
		return NULL;
	add_name(&naming, of);
	ASSERT(naming.nesting == 0);
	*slot = (uintptr_t)str_take(&naming.out);
	return (const char *)(uintptr_t)*slot;
}

// A DIE that has no name of ours is there with 0.
void dies_names_fini(struct dies_names *names)
{
	uint64_t key, value;
	size_t at = 0;

	while (map_next(&names->texts, &at, &key, &value))
		mem_free((char *)(uintptr_t)value);
	scopes_fini(&names->units);
	MAP_FINI(&names->texts);
}
