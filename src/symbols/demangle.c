#include "symbols/demangle.h"

#include "base/mem.h"
#include "base/str.h"
#include "symbols/dlang.h"
#include "symbols/encoded.h"
#include "symbols/rust.h"
#include "symbols/undecorate.h"

#include <setjmp.h>
#include <string.h>

enum {
	CPP_NAME_MAX = 64 * 1024,   // longer names are not tried
	CPP_TEXT_MAX = 1024 * 1024, // a short name can ask for a text of any length
};

// The demangler of the C++ runtime (libsupc++). It allocates nothing: it hands the text over in
// pieces. Returns 0 if it is not a mangled name.
typedef void cpp_piece(const char *text, size_t length, void *opaque);
int __gcclibcxx_demangle_callback(const char *name, cpp_piece *callback, void *opaque);

struct cpp {
	struct str text;
	jmp_buf too_long;
};

static void add_piece(const char *text, size_t length, void *opaque)
{
	struct cpp *cpp = opaque;

	// Leaving in the middle is safe, since the demangler holds nothing that must be given back.
	if (cpp->text.length + length > CPP_TEXT_MAX)
		longjmp(cpp->too_long, 1);
	str_add_bytes(&cpp->text, text, length);
}

static char *demangle_cpp(const char *name)
{
	struct cpp cpp = { 0 };

	if (strlen(name) > CPP_NAME_MAX)
		return NULL;
	// What add_piece has put into `cpp` is there after a longjmp: its address is known outside,
	// so it is kept in memory and not in a register.
	if (setjmp(cpp.too_long) != 0 ||
	    __gcclibcxx_demangle_callback(name, add_piece, &cpp) != 0 || cpp.text.length == 0) {
		str_fini(&cpp.text);
		return NULL;
	}
	return str_take(&cpp.text);
}

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

static char *read_name(const char *name)
{
	char *text;

	// By how a name begins: ? is Microsoft's, _D is D's, _R and _ZN…17h… are Rust's, _Z the
	// Itanium ABI's.
	// Rust is asked before C++, since its older names are valid ones of that ABI as well.
	if (name[0] == '?')
		return undecorate(name);
	if (begins(name, "_D"))
		return dlang_demangle(name);
	text = rust_demangle(name);
	if (text)
		return text;
	// The demangler would also take "i" for int: plain names are not for it.
	if (begins(name, "_Z") || begins(name, "_GLOBAL_"))
		return demangle_cpp(name);
	return encoded_demangle(name);
}

char *demangle(const char *name)
{
	char *text;

	ASSERT(name);
	text = read_name(name);
	if (!text || *text)
		return text;
	mem_free(text); // a crate without a name, say: the name as it is says more
	return NULL;
}
