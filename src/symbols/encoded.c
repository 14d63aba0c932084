// One function for each compiler, which all are asked: no name has the form of two.
//
// GHC writes a name as PACKAGE_MODULE_NAME_info, each part of letters and digits alone: what else
// it has, and a z or Z, is an escape (z-encoding). GHCziArr_zdwbadSafeIndex_info is of module
// GHC.Arr, and called $wbadSafeIndex.
#include "symbols/encoded.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdbool.h>
#include <string.h>

enum {
	ENCODED_MAX = 64 * 1024, // longer names are not tried
	ENCODED_PARTS = 3,       // of Haskell's: package, module, name
	ENCODED_TUPLE_MAX = 100,
};

static bool encoded_is_lower(char c)
{
	return c >= 'a' && c <= 'z';
}

static bool encoded_is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

static bool encoded_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool encoded_is_word(char c)
{
	return encoded_is_lower(c) || encoded_is_upper(c) || encoded_is_digit(c) || c == '_';
}

// __store_MOD_fill.constprop.0: Fortran has no capitals, so the first _MOD_ ends the module's name.
static bool encoded_fortran(const char *name, struct str *out)
{
	const char *at = name + 2, *mod;

	if (name[0] != '_' || name[1] != '_' || !encoded_is_lower(*at))
		return false;
	mod = strstr(at, "_MOD_");
	if (!mod || !encoded_is_word(mod[5]))
		return false;
	for (; at < mod; at++)
		if (!encoded_is_word(*at) || encoded_is_upper(*at))
			return false;
	str_format(out, "%.*s::%s", (int)(mod - name - 2), name + 2, mod + 5);
	return true;
}

// The value of a digit, of which both compilers write small ones; -1: it is none.
static int encoded_hex(char c)
{
	return encoded_is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// A name of OCaml's: what is no letter is $ and two digits.
static bool encoded_ocaml_name(const char *at, const char *end, struct str *out)
{
	for (; at < end; at++) {
		char c = *at;

		if (c == '$') {
			int high = at + 2 < end ? encoded_hex(at[1]) : -1;
			int low = high >= 2 && high < 8 ? encoded_hex(at[2]) : -1;

			if (low < 0)
				return false;
			c = (char)(high << 4 | low);
			at += 2;
		} else if (!encoded_is_word(c) && c != '\'') {
			return false;
		}
		str_add_bytes(out, &c, 1);
	}
	return true;
}

// caml, modules that begin with a capital and end with __ (. since 5.1), a name and its number,
// which tells functions of one name and is left out, save where there is no name: fun_484. What a
// module does when the program begins is `entry`.
static bool encoded_ocaml(const char *name, struct str *out)
{
	const char *at = name + 4, *end = name + strlen(name), *number = end;

	if (strncmp(name, "caml", 4) != 0 || !encoded_is_upper(*at))
		return false;
	while (encoded_is_upper(*at)) {
		const char *module = at;

		while (encoded_is_word(*at) && !(at[0] == '_' && at[1] == '_'))
			at++;
		if (*at != '.' && *at != '_')
			return false;
		str_format(out, "%.*s.", (int)(at - module), module);
		at += *at == '.' ? 1 : 2;
	}
	while (number > at && encoded_is_digit(number[-1]))
		number--;
	if (strcmp(at, "entry") == 0)
		number = end;
	else if (number == end || number - at < 2 || number[-1] != '_')
		return false;
	else
		number--;
	if (number - at == 3 && strncmp(at, "fun", 3) == 0)
		number = end;
	return encoded_ocaml_name(at, number, out);
}

// (,,) of Z3T, and (#,,#) of Z3H. Returns where it ends; NULL: it is none.
static const char *encoded_haskell_tuple(const char *at, struct str *out)
{
	const char *hash;
	unsigned count = 0;

	for (; encoded_is_digit(*at) && count < ENCODED_TUPLE_MAX; at++)
		count = 10 * count + (unsigned)(*at - '0');
	if ((*at != 'T' && *at != 'H') || count > ENCODED_TUPLE_MAX)
		return NULL;
	hash = *at == 'H' ? "#" : "";
	str_format(out, "(%s", hash);
	for (unsigned i = 1; i < count; i++)
		str_add(out, ",");
	str_format(out, "%s)", hash);
	return at + 1;
}

// A character by its number, z2cU for a comma. Its digits begin with one below a.
// Returns where it ends; NULL: it is none, or not of ASCII.
static const char *encoded_haskell_number(const char *at, struct str *out)
{
	int high = encoded_is_digit(*at) ? *at - '0' : -1;
	int low = high >= 2 && high < 8 ? encoded_hex(at[1]) : -1;
	char c;

	if (low < 0 || at[2] != 'U')
		return NULL;
	c = (char)(high << 4 | low);
	str_add_bytes(out, &c, 1);
	return at + 3;
}

// One escape, from behind its z or Z on. Returns where it ends; NULL: it is none.
static const char *encoded_haskell_escape(const char *at, bool is_lower, struct str *out)
{
	static const char lower[] = "zza&b|c^d$e=g>h#i.l<m-n!p+q'r\\s/t*u_v%";
	static const char upper[] = "ZZL(R)M[N]C:";
	const char *table = is_lower ? lower : upper;
	size_t size = is_lower ? sizeof(lower) - 1 : sizeof(upper) - 1;

	if (!is_lower && encoded_is_digit(*at))
		return encoded_haskell_tuple(at, out);
	for (size_t i = 0; i < size; i += 2)
		if (*at == table[i]) {
			str_add_bytes(out, &table[i + 1], 1);
			return at + 1;
		}
	return is_lower ? encoded_haskell_number(at, out) : NULL;
}

// Decodes one part, from `at` to `end`. An escape that would go beyond it is none.
// What was decoded before that stays in `out`, which the caller clears.
static bool encoded_haskell_part(const char *at, const char *end, struct str *out)
{
	while (at < end) {
		char c = *at++;

		if (c == 'z' || c == 'Z') {
			at = encoded_haskell_escape(at, c == 'z', out);
			if (!at || at > end)
				return false;
		} else {
			str_add_bytes(out, &c, 1);
		}
	}
	return true;
}

// Whether a part is a module's name with a point in it, which is what makes the form sure.
static bool encoded_haskell_is_module(const char *at, const char *end)
{
	if (!encoded_is_upper(*at))
		return false;
	for (; end - at > 2; at++)
		if (at[0] == 'z' && at[1] == 'i' && encoded_is_upper(at[2]))
			return true;
	return false;
}

// For example base_GHCziBase_CZCFunctor_con_info: `base` is the package, GHC.Base the module, and
// C:Functor the name of a constructor, whose code ends with con_info.
//
// The parts are found by the _ between them, of which they have none themselves.
static bool encoded_haskell(const char *name, struct str *out)
{
	const char *parts[ENCODED_PARTS + 1], *at = name;
	size_t count = 0;

	for (; count <= ENCODED_PARTS; count++) {
		parts[count] = at;
		if (strcmp(at, "info") == 0 || strcmp(at, "con_info") == 0)
			break;
		while (*at && encoded_is_word(*at) && *at != '_')
			at++;
		if (*at != '_' || at == parts[count])
			return false;
		at++;
	}
	// The program's own modules have no package before them.
	if (count < 2 || count > ENCODED_PARTS ||
	    !encoded_haskell_is_module(parts[count - 2], parts[count - 1] - 1) ||
	    !encoded_haskell_part(parts[count - 2], parts[count - 1] - 1, out))
		return false;
	str_add(out, ".");
	return encoded_haskell_part(parts[count - 1], parts[count] - 1, out);
}

// A reader that says no may have written something already.
char *encoded_demangle(const char *name)
{
	static bool (*const readers[])(const char *, struct str *) = {
		encoded_fortran,
		encoded_ocaml,
		encoded_haskell,
	};
	struct str out = { 0 };

	ASSERT(name);
	if (strlen(name) > ENCODED_MAX)
		return NULL;
	for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) {
		if (readers[i](name, &out))
			return str_take(&out);
		str_clear(&out);
	}
	str_fini(&out);
	return NULL;
}
