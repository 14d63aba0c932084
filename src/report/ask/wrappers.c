// A table of names and patterns, and how they are compared with a demangled name. For example the
// stack malloc, operator new(unsigned long), std::vector<int>::_M_realloc_insert, parse: the first
// three are in the table ("malloc", "operator new", "std::*"), so the row is called parse.
//
// A name is compared without its return type, its parameters and its template's arguments, which
// may be thousands of characters. Each frame's name is compared once (names.c keeps the answer).
#include "report/ask/wrappers.h"

#include "base/mem.h"
#include "report/ask/cxxname.h"

#include <string.h>
#include <strings.h>

// Names without return type and parameters; '*' stands for any text. Each group says why it is
// here.
static const char *const wrappers[] = {
	// The C library's own: they return what malloc gave them.
	"malloc",
	"calloc",
	"realloc",
	"reallocarray",
	"memalign",
	"aligned_alloc",
	"posix_memalign",
	"valloc",
	"pvalloc",
	"__libc_malloc",
	"__libc_calloc",
	"__libc_realloc",
	"__libc_memalign",
	"__libc_reallocarray",
	"__libc_valloc",
	"__libc_pvalloc",
	"__posix_memalign",
	"_mid_memalign",
	"strdup",
	"strndup",
	"__strdup",
	"__strndup",
	"wcsdup",
	"__wcsdup",
	"asprintf",
	"vasprintf",
	"__asprintf",
	"__vasprintf_internal",
	"__vasprintf_chk",
	"__asprintf_chk",
	"___asprintf*",
	"___vasprintf*",
	"_IO_vasprintf",
	"__zend_malloc",
	"__zend_calloc",
	"__zend_realloc",
	"__gmp_default_allocate",
	"__gmp_default_reallocate",
	"mpfr_allocate_func",
	"mpfr_reallocate_func",
	"mpfr_vasnprintf_aux",
	"mpfr_asprintf",
	"mpfr_vasprintf",

	// Microsoft's C runtime, from the first to the universal one, and its debug forms.
	"_malloc_base",
	"_calloc_base",
	"_realloc_base",
	"_recalloc*",
	"_expand*",
	"_malloc_crt",
	"_calloc_crt",
	"_realloc_crt",
	"_malloc_dbg",
	"_calloc_dbg",
	"_realloc_dbg",
	"realloc_dbg_nolock",
	"heap_alloc_dbg*",
	"_heap_alloc*",
	"_nh_malloc*",
	"_calloc_impl",
	"_calloc_dbg_impl",
	"try_malloc*",
	"_aligned_malloc*",
	"_aligned_realloc*",
	"_aligned_recalloc*",
	"_aligned_offset_*",
	"_strdup*",
	"_wcsdup*",
	"_mbsdup*",
	"_o_malloc", // under the names that system DLLs know it by
	"_o_calloc",
	"_o_realloc",
	"_o__*alloc*",
	"_o__*dup",
	"std::_Allocate*",
	"std::_Default_allocate_traits::_Allocate*",
	"std::allocator*::allocate",

	// Windows: what lies between a program and its heaps, and its address space.
	"HeapAlloc*",
	"HeapReAlloc*",
	"LocalAlloc",
	"LocalReAlloc",
	"GlobalAlloc",
	"GlobalReAlloc",
	"RtlAllocateHeap*",
	"RtlReAllocateHeap*",
	"Rtlp*AllocateHeap*",
	"RtlDebugAllocateHeap",
	"RtlDebugReAllocateHeap",
	"VirtualAlloc*",
	"VirtualProtect*",
	"VirtualFree*",
	"MapViewOfFile*",
	"UnmapViewOfFile*",
	"NtAllocateVirtualMemory*",
	"NtProtectVirtualMemory",
	"NtMapViewOfSection*",
	"ZwAllocateVirtualMemory*",
	"CoTaskMemAlloc",
	"CoTaskMemRealloc",
	"CRetailMalloc_Alloc", // what IMalloc is there
	"CRetailMalloc_Realloc",
	"SysAllocString*",
	"SysReAllocString*",
	"SHAlloc",
	"SHStrDup*",
	"StrDupA",
	"StrDupW",
	"CryptMemAlloc",
	"CryptMemRealloc",

	// Wine's own, in place of these.
	"msvcrt_heap_alloc",
	"msvcrt_heap_realloc",
	"operator_new*",
	"allocator_Alloc",
	"allocator_Realloc",
	"IMalloc_Alloc",
	"IMalloc_Realloc",
	"heap_alloc",
	"heap_alloc_zero",
	"heap_calloc",
	"heap_realloc",
	"heap_realloc_zero",

	// Calls on virtual memory, and what lies in glibc between them and malloc or a new thread.
	"mmap",
	"mmap64",
	"__mmap*",
	"mremap",
	"__mremap",
	"mprotect",
	"__mprotect",
	"madvise",
	"__madvise",
	"brk",
	"sbrk",
	"syscall",
	"__brk*",
	"__sbrk",
	"__glibc_morecore",
	"__default_morecore",
	"_int_malloc",
	"_int_realloc",
	"_int_memalign",
	"sysmalloc*",
	"systrim*",
	"heap_trim*",
	"shrink_heap",
	"free",
	"_int_free*",
	"__libc_free",
	"operator delete*",
	"mremap_chunk",
	"new_heap",
	"alloc_new_heap",
	"grow_heap",
	"_int_new_arena",
	"arena_get2*",
	"tcache_init*",
	"ptmalloc_init*",
	"allocate_stack",
	"setup_stack_prot",
	"pthread_create*",
	"__pthread_create*",

	// C++: operator new in all its forms, a class's own too, and what stands between it and the
	// program in libstdc++ and libc++. A container grows because its owner put something in.
	"operator new",
	"operator new[]",
	"*::operator new",
	"*::operator new[]",
	"std::*",
	"__gnu_cxx::*",
	"__cxa_allocate_exception",

	// Rust: the global allocator, and the standard library on top of it (is_rusts, too).
	"__rustc::*",
	"__rustc[*",
	"__rust_alloc*",
	"__rust_realloc",
	"__rdl_alloc*",
	"__rdl_realloc",
	"__rg_alloc*",
	"__rg_realloc",
	"alloc::*",
	"hashbrown::*",
	"core::*",

	// Ada, Free Pascal by its unit cmem, Go's calls of C, D.
	"__gnat_malloc",
	"__gnat_realloc",
	"system__memory__alloc",
	"CMEM_$$_*",
	"SYSTEM_$$_GETMEM*",
	"SYSTEM_$$_REALLOCMEM*",
	"_cgo_*_Cfunc__CMalloc",
	"core.stdc.stdlib.malloc",

	// GLib: end the program or return zeroed memory; and copies of strings.
	"g_malloc*",
	"g_realloc*",
	"g_try_malloc*",
	"g_try_realloc*",
	"g_slice_alloc*",
	"g_slice_copy",
	"g_strdup*",
	"g_strndup",
	"g_memdup*",
	"g_aligned_alloc*",
	// Its objects, and its containers, which grow because their owner put something in.
	"g_type_create_instance",
	"g_object_new*",
	"g_list_append",
	"g_list_prepend",
	"g_list_insert",
	"g_list_copy",
	"g_slist_append",
	"g_slist_prepend",
	"g_slist_insert",
	"g_slist_copy",
	"g_queue_new",
	"g_queue_push_*",
	"g_array_new",
	"g_array_sized_new",
	"g_array_append_vals",
	"g_array_insert_vals",
	"g_array_prepend_vals",
	"g_array_set_size",
	"g_ptr_array_new*",
	"g_ptr_array_sized_new",
	"g_ptr_array_add",
	"g_byte_array_*",
	"g_string_new*",
	"g_string_sized_new",
	"g_string_append*",
	"g_string_insert*",
	"g_string_vprintf",
	"g_string_printf",
	"g_hash_table_new*",
	"g_hash_table_insert",
	"g_hash_table_replace",
	"g_hash_table_add",

	// A program that tells of its own allocator (tidemark.h).
	"tidemark_pool_*",

	// PostgreSQL's contexts and copies of texts.
	"palloc*",
	"repalloc*",
	"pstrdup",
	"pnstrdup",
	"MemoryContextAlloc*",
	"MemoryContextStrdup",
	"AllocSetContextCreateInternal",
	"GenerationContextCreate",
	"SlabContextCreate",
	"pg_malloc*",
	"pg_realloc*",
	"pg_strdup",

	// The many "or end the program" families: gnulib, git, GCC and others.
	"rpl_malloc",
	"rpl_calloc",
	"rpl_realloc",
	"xmalloc*",
	"xcalloc*",
	"xzalloc*",
	"xrealloc*",
	"x2realloc*",
	"x2nrealloc*",
	"xnmalloc*",
	"xnrealloc*",
	"xcharalloc",
	"xmemdup*",
	"xstrdup*",
	"xstrndup*",
	"xasprintf",
	"xvasprintf",
	"xreallocarray",
	"ximalloc",
	"xirealloc",
	"xicalloc",
	"do_xmalloc",
	"do_xmallocz",
	"safe_malloc",
	"safe_realloc",
	"safe_calloc",
	"emalloc",
	"erealloc",
	"ecalloc",
	"ckmalloc",
	"ckrealloc",
	"ckzalloc",

	// Interpreters: the layer between their objects and malloc.
	"PyMem_*",
	"_PyMem_*",
	"PyObject_Malloc",
	"PyObject_Calloc",
	"PyObject_Realloc",
	"_PyObject_Malloc",
	"_PyObject_Calloc",
	"_PyObject_Realloc",
	"pymalloc_alloc",
	"_PyObject_New",
	"_PyObject_NewVar",
	"_PyObject_GC_New",
	"_PyObject_GC_NewVar",
	"_PyObject_GC_Malloc",
	"_PyObject_GC_Resize",
	"_PyObject_GC_Alloc",
	"gc_alloc",
	"PyType_GenericAlloc",
	"_PyType_AllocNoTrack",
	"arena_map_get",
	"arena_map_mark_used",
	"new_arena",
	"allocate_from_new_pool",
	"_PyObject_ArenaMalloc",
	"_PyObject_ArenaMmap",
	"Perl_safesys*",
	"Perl_malloc",
	"ruby_xmalloc*",
	"ruby_xcalloc*",
	"ruby_xrealloc*",
	"l_alloc",
	"luaM_malloc_",
	"luaM_realloc_",
	"luaM_saferealloc_",
	"os::malloc",
	"os::realloc",
	"AllocateHeap",
	"ReallocateHeap",
	"stg*Bytes", // GHC's runtime
	"stgStrndup",
	"caml_stat_*",
	"caml_alloc_for_heap",
	// R's: its vectors, and what its C code asks for.
	"Rf_allocVector*",
	"R_alloc",
	"R_chk_calloc",
	"R_chk_realloc",
	"S_alloc",
	"S_realloc",
	// What pandas' tables count by tracemalloc.
	"traced_malloc",
	"traced_calloc",
	"traced_realloc",
	"scm_malloc",
	"scm_calloc",
	"scm_realloc",
	"scm_strdup",
	"scm_strndup",
	"successful_malloc", // SBCL's
	"erts_sys_alloc",
	"erts_sys_realloc",
	"erts_sys_aligned_*",
	"moz_x*", // SpiderMonkey and all else of Mozilla's
	"node::Malloc*",
	"node::Realloc*",
	"node::UncheckedMalloc*",
	"node::UncheckedRealloc*",
	"node::Calloc*",
	"v8::base::Malloc",
	"v8::base::AlignedAlloc",
	"v8::internal::Alloc*WithRetry",
	"v8::internal::Aligned*",
	"v8::internal::NewArray*",

	// Databases, servers and libraries with an allocator interface of their own.
	"sqlite3MemMalloc",
	"sqlite3MemRealloc",
	"sqlite3Malloc*",
	"sqlite3_malloc*",
	"sqlite3Realloc",
	"sqlite3_realloc*",
	"sqlite3DbMalloc*",
	"sqlite3DbRealloc*",
	"sqlite3DbStrDup",
	"sqlite3DbStrNDup",
	"sqlite3DbReallocOrFree",
	"mallocWithAlarm",
	"dbMallocRawFinish",
	"dbReallocFinish",
	"zmalloc*",
	"ztrymalloc*",
	"zcalloc*",
	"ztrycalloc*",
	"zrealloc*",
	"ztryrealloc*",
	"zstrdup",
	"CRYPTO_malloc",
	"CRYPTO_zalloc",
	"CRYPTO_calloc",
	"CRYPTO_*realloc",
	"CRYPTO_secure_*",
	"CRYPTO_strdup",
	"CRYPTO_strndup",
	"CRYPTO_memdup",
	"uv__malloc",
	"uv__calloc",
	"uv__realloc",
	"uv__reallocf",
	"uv__strdup",
	"my_malloc",
	"my_realloc",
	"my_multi_malloc*",
	"my_strdup",
	"my_strndup",
	"my_memdup",
	"ngx_alloc",
	"ngx_calloc",
	"ngx_memalign",
	"event_mm_*",
	"isc__mem_get*",
	"isc__mem_allocate*",
	"isc__mem_re*",
	"isc__mem_strdup*",
	"isc__mem_strndup*",
	"isc__mempool_get*",
	"ber_memalloc*", // OpenLDAP's
	"ber_memcalloc*",
	"ber_memrealloc*",
	"ber_strdup*",
	"ber_strndup*",
	"ch_malloc",
	"ch_calloc",
	"ch_realloc",
	"ch_strdup",
	"mosquitto__malloc",
	"mosquitto__calloc",
	"mosquitto__realloc",
	"mosquitto__strdup",
	"x264_malloc",
	"av_malloc*",
	"av_mallocz*",
	"av_realloc*",
	"av_calloc",
	"av_strdup",
	"av_strndup",
	"av_memdup",
	"av_fast_malloc*",
	"av_fast_realloc",
	// Tor's.
	"tor_malloc*",
	"tor_calloc*",
	"tor_realloc*",
	"tor_strdup*",
	"tor_strndup*",
	"tor_memdup*",
	"tor_asprintf",
	"tor_vasprintf",
	// NSPR's, and NSS's on top of it.
	"PR_Malloc",
	"PR_Calloc",
	"PR_Realloc",
	"PL_strdup",
	"PL_strndup",
	"PORT_Alloc*",
	"PORT_ZAlloc*",
	"PORT_Realloc*",
	"PORT_Strdup*",
	// What Qt's strings, lists and arrays keep their content in.
	"QArrayData::allocate*",
	"QArrayData::reallocate*",
	"QByteArray::*",
	"QString::*",
	"QListData::*",
	"QHashData::*",
	"QMapDataBase::*",
	// GTK's strings for C++; strings of libxml2 and D-Bus; pictures; Prolog.
	"Glib::ustring::*",
	"xmlStrdup",
	"xmlStrndup",
	"dbus_malloc*",
	"dbus_realloc",
	"_dbus_string_init*",
	"png_malloc*",
	"png_calloc",
	// Samba's talloc.
	"_talloc",
	"_talloc_zero",
	"_talloc_array",
	"_talloc_zero_array",
	"_talloc_memdup",
	"_talloc_realloc*",
	"_talloc_pooled_object",
	"talloc_strdup*",
	"talloc_strndup*",
	"talloc_asprintf*",
	"talloc_vasprintf*",
	"talloc_named*",
	"talloc_size",
	"talloc_pool",
	// Of libraries and programs: PulseAudio's, mpv's tree of
	// allocations, qemu's, systemd's. What an own pool hands out is not recorded: where one of
	// these is on top, the pool grew, or passes each call on.
	"pa_xmalloc*",
	"pa_xrealloc",
	"pa_xmemdup",
	"pa_xstrdup",
	"pa_xstrndup",
	"ta_*alloc_size",
	"ta_talloc_*",
	"ta_memdup",
	"ta_strdup",
	"ta_strndup",
	"ta_xmemdup",
	"ta_xstrdup",
	"ta_xstrndup",
	"qemu_*memalign",
	"mempool_alloc*_tile",
	// Apache's pools.
	"apr_palloc*",
	"apr_pcalloc*",
	"apr_pstr*dup",
	"apr_pmemdup",
	"apr_allocator_alloc",
	// PHP's, which pass each call on where USE_ZEND_ALLOC is 0.
	"_emalloc*",
	"_ecalloc",
	"_erealloc*",
	"_estr*dup",
	"_safe_*alloc",
	"zend_strndup",
	"__zend_strdup",
	// HDF5's, hyphenation's, libgcrypt's, Guile's.
	"H5MM_*alloc",
	"H5FL_*alloc",
	"H5MM_*strdup",
	"hnj_*alloc",
	"gcry_*alloc",
	"gcry_*strdup",
	"ksba_*alloc",
	"scm_gc_*alloc",
	// Small interpreters': QuickJS, jq, Duktape, COBOL, Objective-C, mono.
	"js_malloc*",
	"js_calloc*",
	"js_realloc*",
	"js_strdup*",
	"js_strndup*",
	"jv_mem_*alloc",
	"duk_*alloc",
	"cob_malloc",
	"cob_realloc",
	"cob_cache_*alloc",
	"cob_fast_malloc",
	"objc_*alloc",
	"monoeg_*alloc*",
	// For numbers, and for messages between machines.
	"fftw*_malloc",
	"cholmod_*alloc",
	"gk_*alloc",
	"pari_malloc",
	"pari_calloc",
	"pari_realloc",
	"ucs_malloc",
	"ucs_calloc",
	"ucs_realloc",
	"opal_malloc",
	"opal_calloc",
	"opal_realloc",
	"nghttp2_mem_*alloc",
	"ares_malloc",
	"ares_realloc",
	"ares_strdup",
	"lws_realloc*",
	// Desktops, sound and pictures.
	"avahi_malloc*",
	"avahi_realloc",
	"avahi_memdup",
	"avahi_strdup",
	"avahi_strndup",
	"SDL_malloc*",
	"SDL_calloc*",
	"SDL_realloc*",
	"SDL_SIMDRealloc",
	"SDL_strdup",
	"SLmalloc",
	"SLcalloc",
	"SLrealloc",
	"SLdebug_*alloc",
	"vlc_obj_*alloc",
	"gegl_malloc",
	"gegl_calloc",
	"gegl_try_malloc",
	"gegl_scratch_alloc*",
	"babl_malloc",
	"exif_mem_*alloc",
	// Servers.
	"slap_sl_*alloc",
	"slapi_ch_*alloc",
	"smb_xmalloc*",
	"smb_xmemdup",
	"XNFalloc",
	"XNFcalloc*",
	"XNFrealloc*",
	"XNFstrdup",
	"XNF*printf",
	"_TIFF*alloc",
	// Berkeley DB's, lighttpd's, zsh's, graphviz's; obstacks, which grow for their owner.
	"__os_malloc*",
	"__os_calloc*",
	"__os_realloc*",
	"__os_strdup*",
	"__os_umalloc*",
	"__os_urealloc*",
	"ck_malloc",
	"ck_calloc",
	"ck_realloc*",
	"zalloc",
	"zshcalloc",
	"gmalloc",
	"gcalloc",
	"grealloc",
	"agalloc",
	"_obstack_begin*",
	"_obstack_newchunk",
	// Scanners that flex wrote.
	"*yyalloc",
	"*yyrealloc",
	// What C++ containers and databases ask.
	"btAlignedAllocInternal",
	"irr::core::array<*>::*",
	"duckdb::Allocator::*",
	"rocksdb::port::cacheline_aligned_alloc",
	"tbb::detail::r1::cache_aligned_allocate",
	"xercesc_*::MemoryManagerImpl::allocate",
	"Standard::Allocate*",
	"Standard::Reallocate",
	"Standard_MMgr*::Allocate",
	"Standard_MMgr*::Reallocate",
	"MemPoolMalloc::allocate",
	// ImageMagick's and GraphicsMagick's; MuPDF's; CLISP's.
	"AcquireAlignedMemory",
	"AcquireCriticalMemory",
	"AcquireMagickMemory",
	"AcquireQuantumMemory",
	"AcquireVirtualMemory",
	"ResizeMagickMemory",
	"ResizeQuantumMemory",
	"AcquireString",
	"CloneString",
	"ConstantString",
	"MagickMalloc*",
	"MagickRealloc*",
	"_Magick*ResourceLimitedMemory",
	"fz_malloc*",
	"fz_calloc*",
	"fz_realloc*",
	"fz_strdup",
	"clisp_malloc",
	"clisp_realloc",
	"PL_malloc*",
	"PL_realloc",

	// Compilers.
	"ggc_internal_alloc*",
	"ggc_internal_cleared_alloc*",
	"ggc_alloc*",
	"ggc_realloc*",
	"llvm::safe_malloc",
	"llvm::safe_realloc",
	"llvm::safe_calloc",
	"llvm::allocate_buffer",
	"llvm::SmallVectorBase<*>::grow_pod",
	"llvm::SmallVectorBase<*>::mallocForGrow",
};

// The user's, borrowed. They are the same for all that is asked in a run.
static struct {
	const char **patterns;
	size_t count, capacity;
} own;

// Where threads begin.
static const char *const roots[] = {
	"_start",
	"__libc_start_main*",
	"__libc_start_call_main",
	"start_thread",
	"clone",
	"clone3",
	"__clone",
	"__clone3",
};

// `pattern` against the whole of text[0..length); '*' matches any text. Where it goes wrong after a
// star, the star takes one character more; an earlier star need not be looked at again, since the
// later one can take all that it could. For example "a*b*c" on "axbxbc": the second star takes "",
// "x", then "xb" and c fits.
static bool matches(const char *pattern, const char *text, size_t length)
{
	const char *star = NULL; // the last one passed
	size_t taken = 0;        // what it has taken so far ends here
	size_t at = 0;

	for (;;) {
		if (*pattern == '*') {
			star = pattern++;
			taken = at;
		} else if (at < length && *pattern == text[at]) {
			pattern++;
			at++;
		} else if (at == length && !*pattern) {
			return true;
		} else if (star && taken < length) {
			pattern = star + 1;
			at = ++taken;
		} else {
			return false;
		}
	}
}

// The first pattern that a function's name is like, or NULL.
static const char *first_match(const char *const *patterns, size_t count, const char *function)
{
	const char *base;
	size_t length;

	if (!function)
		return NULL;
	base = cxxname_base(function, &length);
	// glibc's debug symbols have a function under its name inside of glibc: __GI___strdup.
	if (length > 5 && memcmp(base, "__GI_", 5) == 0) {
		base += 5;
		length -= 5;
	}
	for (size_t i = 0; i < count; i++)
		if (matches(patterns[i], base, length))
			return patterns[i];
	return NULL;
}

static bool matches_any(const char *const *patterns, size_t count, const char *function)
{
	return first_match(patterns, count, function) != NULL;
}

bool wrappers_match_pattern(const char *pattern, const char *function)
{
	return matches_any(&pattern, 1, function);
}

// Whether a text begins with one of these. They end with NULL, as the lists of files above do.
static bool begins(const char *text, const char *const *with)
{
	for (; *with; with++)
		if (strncmp(text, *with, strlen(*with)) == 0)
			return true;
	return false;
}

// Types of Rust itself, references to them, slices and tuples: "&mut alloc::string::String as …",
// "[u8]>", "u64 as …". A parameter is one too, since only the standard library may implement its
// traits for "T". What is after the type is not looked at.
static bool is_rusts_type(const char *type)
{
	static const char *const signs[] = { "&", "*const ", "*mut ", "mut ", "dyn " };
	static const char *const crates[] = { "alloc::", "core::", "std::", "hashbrown::",
					      "[",       "(",      NULL };
	static const char *const words[] = {
		"str", "bool", "char", "u8",  "u16",  "u32",   "u64", "u128", "usize",
		"i8",  "i16",  "i32",  "i64", "i128", "isize", "f32", "f64",
	};
	size_t length;

	for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
		while (strncmp(type, signs[i], strlen(signs[i])) == 0)
			type += strlen(signs[i]);
	length = strcspn(type, " >");
	if (begins(type, crates) || (length == 1 && *type >= 'A' && *type <= 'Z'))
		return true;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strlen(words[i]) == length && memcmp(type, words[i], length) == 0)
			return true;
	return false;
}

// What is in the brackets of "<T as Trait>::f" or "<T>::f". For example
//
//     <u64 as core::fmt::Display>::fmt          its trait for its type: the standard library
//     <u8 as alloc::vec::…::SpecFromElem>::f    its own trait, for any type
//     <app::Arena as core::alloc::Allocator>::f an allocator, and so a wrapper
//     <app::X as core::fmt::Display>::fmt       the program's type: the program
//     <alloc::vec::Vec<u8> as app::Fill>::fill  the program's trait: the program
static bool is_rusts(const char *function)
{
	static const char *const allocators[] = { "core::alloc::GlobalAlloc>",
						  "core::alloc::global::GlobalAlloc>",
						  "core::alloc::Allocator>", "alloc::", NULL };
	static const char *const crates[] = { "core::", "std::", "hashbrown::", NULL };
	const char *trait = NULL;
	size_t depth = 0;

	for (const char *at = function; *at && !trait; at++) {
		if (strchr("<([", *at))
			depth++;
		else if (strchr(")]", *at) || (*at == '>' && at[-1] != '-'))
			depth--;
		if (depth == 0)
			break;
		if (depth == 1 && strncmp(at, " as ", 4) == 0)
			trait = at + 4;
	}
	if (!trait)
		return is_rusts_type(function + 1);
	return begins(trait, allocators) || (begins(trait, crates) && is_rusts_type(function + 1));
}

// Compared before ours: there are few.
void wrappers_fold(const char *pattern)
{
	ASSERT(pattern);
	*MEM_ADD(own.patterns, own.count, own.capacity) = pattern;
}

bool wrappers_match(const char *function)
{
	return matches_any(own.patterns, own.count, function) ||
	       matches_any(wrappers, sizeof wrappers / sizeof *wrappers, function) ||
	       (function && *function == '<' && is_rusts(function));
}

// Scopes have functions that call what the program gave them (std::sort), and are compiled into its
// own file.
static bool is_scope(const char *pattern)
{
	return strstr(pattern, "::") && strncmp(pattern, "*::", 3) != 0;
}

// Python's objects come by way of its garbage collector, which runs finalizers; GLib's begin with
// their class's function, and its tables ask for a hash.
static bool calls_nobody(const char *pattern)
{
	static const char *const callers[] = {
		"_PyObject_GC*", "gc_alloc", "PyType_GenericAlloc", "_PyType_AllocNoTrack",
		"g_object_new*", "g_type_*", "g_hash_table_*",
	};

	for (size_t i = 0; i < sizeof callers / sizeof *callers; i++)
		if (matches(callers[i], pattern, strlen(pattern)))
			return false;
	return !is_scope(pattern);
}

bool wrappers_match_outer(const char *function)
{
	const char *pattern = first_match(wrappers, sizeof wrappers / sizeof *wrappers, function);

	ASSERT(!pattern || *pattern);
	return (pattern && !is_scope(pattern)) || matches_any(own.patterns, own.count, function);
}

// The whole of it is one alternative after another: (__GI_)?(malloc|calloc|…)
static void add_expression(struct str *text, const char *pattern)
{
	str_add(text, text->length ? "|" : "(__GI_)?(");
	for (const char *at = pattern; *at; at++) {
		if (strchr("[]$.+?(){}|^\\", *at))
			str_add_char(text, '\\');
		str_add(text, *at == '*' ? ".*" : (char[]){ *at, '\0' });
	}
}

void wrappers_add_expression(struct str *text)
{
	ASSERT(text->length == 0);
	for (size_t i = 0; i < sizeof wrappers / sizeof *wrappers; i++)
		if (calls_nobody(wrappers[i]))
			add_expression(text, wrappers[i]);
	for (size_t i = 0; i < own.count; i++)
		add_expression(text, own.patterns[i]);
	// Of scopes those that are known to do nothing else. pprof leaves out the arguments of
	// templates before it compares, other readers do not.
	str_add(text, "|(std|__gnu_cxx)::(__new_allocator|new_allocator|allocator|allocator_traits|"
		      "__alloc_traits|_Vector_base)(<.*>)?::(_M_)?allocate)");
}

// Does the file's name begin as one of these? Windows does not care for case.
static bool is_named(const char *path, const char *const *beginnings)
{
	const char *name = str_last_part(path);

	for (; *beginnings; beginnings++)
		if (strncasecmp(name, *beginnings, strlen(*beginnings)) == 0)
			return true;
	return false;
}

// glibc's file is libc.so.6, before 2.34 a link to libc-2.31.so or the like; its linker is
// ld-linux… or ld-2.31.so. In musl both are one file, ld-musl-….
bool wrappers_match_module(const char *module, bool named)
{
	static const char *const ours[] = { "libtidemark", NULL };
	static const char *const unnamed[] = {
		"libc.so.",     "libc-2.",        "ld-linux", "ld-2.",      "ld-musl-", "ntdll.dll",
		"kernel32.dll", "kernelbase.dll", "ucrtbase", "msvcrt.dll", NULL,
	};

	return is_named(module, ours) || (!named && is_named(module, unnamed));
}

// "/rustc/59807616e1fa/library/alloc/src/vec/mod.rs", with Windows' slashes from "library" on where
// it was compiled there; the compiler's own files are in /rustc/…/compiler.
bool wrappers_match_source(const char *file)
{
	static const char *const installed = "/rustlib/src/rust/library/";
	const char *in;

	if (strncmp(file, "/rust/deps/", 11) == 0)
		return true;
	if (strncmp(file, "/rustc/", 7) != 0)
		return strstr(file, installed) != NULL;
	in = file + 7 + strcspn(file + 7, "/\\");
	return *in && strncmp(in + 1, "library", 7) == 0 && (in[8] == '/' || in[8] == '\\');
}

// The programs by their whole names, as an addon may be called node_sqlite3.node.
bool wrappers_match_runtime(const char *module, const char *function)
{
	static const char *const files[] = {
		"node",     "nodejs", "electron",     "deno",     "bun",     "chrome", "chromium",
		"node.exe", "d8",     "electron.exe", "deno.exe", "bun.exe", NULL,
	};
	static const char *const libraries[] = { "libnode.", "libv8", NULL };
	static const char *const functions[] = { "v8::*", "node::*", "Builtins_*" };
	const char *name = str_last_part(module);

	for (size_t i = 0; files[i]; i++)
		if (strcasecmp(name, files[i]) == 0)
			return true;
	return is_named(module, libraries) ||
	       matches_any(functions, sizeof functions / sizeof *functions, function);
}

bool wrappers_match_runtime_script(const char *file)
{
	return strncmp(file, "node:", 5) == 0 || strncmp(file, "ext:", 4) == 0;
}

bool wrappers_match_root(const char *function)
{
	return matches_any(roots, sizeof roots / sizeof *roots, function);
}
