// Allocation wrappers are known by their names, and nothing else is.
#include "report/ask/wrappers.h"
#include "test/test.h"

TEST(wrappers_know_what_allocates_for_others)
{
	static const char *const functions[] = {
		"operator new(unsigned long)",
		"operator new[](unsigned long, std::nothrow_t const&)",
		"Pool::operator new(unsigned long)",
		"std::__new_allocator<char>::allocate(unsigned long, void const*)",
		"__gnu_cxx::new_allocator<int>::allocate(unsigned long, void const*)",
		"void std::vector<app::X, std::allocator<app::X> >::_M_realloc_insert<app::X>(int)",
		"g_malloc0",
		"g_strdup_printf",
		"xmalloc",
		"__gmp_default_allocate",
		"mpfr_asprintf",
		"tidemark_pool_alloc",
		"xrealloc",
		"strdup",
		"__GI___strdup",
		"__vasprintf_internal",
		"PyMem_RawMalloc",
		"PyObject_Malloc",
		"sqlite3MemMalloc",
		"___asprintf",
		"___vasprintf_chk",
		"my_multi_malloc_large",
		"ngx_calloc",
		"stgMallocBytes",
		"isc__mem_get",
		"ber_memcalloc_x",
		"mosquitto__calloc",
		"Rf_allocVector3",
		"x264_malloc",
		"caml_stat_alloc_noexc",
		"moz_xmalloc",
		"caml_alloc_for_heap",
		"R_chk_realloc",
		"traced_realloc",
		"tor_malloc_zero_",
		"PR_Malloc",
		"PORT_ZAlloc_Util",
		"av_fast_mallocz",
		"QArrayData::allocate1(QArrayData**, long long)",
		"QString::fromLatin1_helper(char const*, int)",
		"QByteArray::QByteArray(int, Qt::Initialization)",
		"QHashData::allocateNode(int)",
		"Glib::ustring::ustring(char const*)",
		"xmlStrndup",
		"png_malloc_warn",
		"PL_malloc_atomic",
		"_talloc_zero",
		"talloc_strdup_append",
		"ResizeMagickMemory",
		"_MagickReallocateResourceLimitedMemory",
		"fz_malloc_no_throw",
		"g_object_new_valist",
		"g_ptr_array_add",
		"pa_xmalloc0",
		"ta_xrealloc_size",
		"js_realloc2",
		"SLcalloc",
		"XNFvasprintf",
		"__os_malloc",
		"_obstack_newchunk",
		"Standard_MMgrRaw::Allocate(unsigned long)",
		"xercesc_3_2::MemoryManagerImpl::allocate(unsigned long)",
		"_emalloc_56",
		"qemu_try_memalign",
		"duckdb::Allocator::AllocateData(unsigned long)",
		"CRYPTO_clear_realloc",
		"v8::internal::AllocAtLeastWithRetry(unsigned long)",
		"alloc::raw_vec::RawVec<T,A>::reserve::do_reserve_and_handle",
		"<alloc::string::String as core::clone::Clone>::clone",
		"<r::My as core::alloc::global::GlobalAlloc>::alloc",
		"<r::My<u8> as core::alloc::GlobalAlloc>::realloc",
		"<r::Arena as core::alloc::Allocator>::allocate",
		"__rustc::__rust_alloc",
		"__rustc[8f1b8d2c]::__rg_alloc",
		"<u64 as core::fmt::Display>::fmt",
		"<&mut alloc::string::String as core::fmt::Write>::write_str",
		"<str>::repeat",
		"<[u8]>::to_vec",
		"<(u8, app::X) as core::clone::Clone>::clone",
		"<T as core::convert::Into<U>>::into",
		"<u8 as alloc::vec::spec_from_elem::SpecFromElem>::from_elem",
		"<app::X as alloc::vec::spec_from_elem::SpecFromElem>::from_elem",
		"<hashbrown::map::HashMap<i32, i32>>::find_or_find_insert_index::<i32>",
		"<std::collections::hash::map::HashMap<i32, i32>>::insert",
		"std::collections::hash::map::HashMap<K,V,S>::insert",
		"_malloc_base",
		"_calloc_base",
		"_recalloc_base",
		"_malloc_dbg",
		"_heap_alloc_dbg",
		"heap_alloc_dbg_internal",
		"_nh_malloc_dbg",
		"_strdup_dbg",
		"HeapAlloc",
		"RtlAllocateHeap",
		"RtlpAllocateHeapInternal",
		"VirtualAllocEx",
		"VirtualAlloc2FromApp",
		"_o__malloc_base",
		"CRetailMalloc_Alloc",
		"SysReAllocStringLen",
		"StrDupW",
		"msvcrt_heap_alloc",
		"operator_new",
		"IMalloc_Alloc",
		"heap_alloc_zero",
		"rpl_malloc",
		"operator new(unsigned __int64)",
		"std::_Allocate<16,std::_Default_allocate_traits,0>",
		"llvm::SmallVectorBase<unsigned int>::grow_pod(void*, unsigned long)",
	};

	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
		if (!wrappers_match(functions[i]))
			CHECK_STR("a wrapper", functions[i]);
	}
}

TEST(wrappers_leave_the_programs_own_code_alone)
{
	static const char *const functions[] = {
		"main",
		"",
		"malloc_trim",
		"remalloc",
		"app::vector_of(std::vector<int, std::allocator<int> > const&)",
		"std::string app::name()",
		"void app::fill<std::vector<int> >(std::vector<int>&)",
		"my_xmalloc_user",
		"PyList_New",
		"sqlite3Prepare",
		"allocate",
		"pa_x11_client_new",
		"ta_node_alloc",
		"js_arena_alloc",
		"SLOT_dealloc",
		"cob_decimal_alloc",
		"opal_event_alloc",
		"SDL_surface_alloc",
		"(anonymous namespace)::run()",
		"<app::X as core::fmt::Display>::fmt",
		"<app::X as core::clone::Clone>::clone",
		"<app::X>::new",
		"<app::X<alloc::string::String>>::new",
		"<alloc::vec::Vec<u8> as app::Fill>::fill",
		"<u64 as app::Name>::name",
		"<string::X>::new",
		"<app::X<u8 as core::ops::Add> as app::Y>::f",
	};

	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
		if (wrappers_match(functions[i]))
			CHECK_STR("no wrapper", functions[i]);
	}
	CHECK(!wrappers_match(NULL));
}

TEST(wrappers_know_the_sources_of_rusts_library)
{
	CHECK(wrappers_match_source("/rustc/59807616e1fa/library/alloc/src/vec/mod.rs"));
	CHECK(wrappers_match_source("/rustc/59807616e1fa\\library\\alloc\\src\\vec\\mod.rs"));
	CHECK(wrappers_match_source("/usr/lib/rustlib/src/rust/library/core/src/fmt/mod.rs"));
	CHECK(wrappers_match_source("/rust/deps/hashbrown-0.15.4/src/map.rs"));
	CHECK(!wrappers_match_source("/rustc/59807616e1fa/compiler/rustc_span/src/lib.rs"));
	CHECK(!wrappers_match_source("/rustc/59807616e1fa/libraryx/src/lib.rs"));
	CHECK(!wrappers_match_source("/home/a/app/library/src/lib.rs"));
	CHECK(!wrappers_match_source("/rustc/"));
}

TEST(wrappers_know_whose_inner_code_has_no_name)
{
	CHECK(wrappers_match_module("/usr/lib/x86_64-linux-gnu/libc.so.6", false));
	CHECK(!wrappers_match_module("/usr/lib/x86_64-linux-gnu/libc.so.6", true));
	CHECK(wrappers_match_module("libc-2.31.so", false));
	CHECK(wrappers_match_module("/lib64/ld-linux-x86-64.so.2", false));
	CHECK(wrappers_match_module("C:\\Windows\\System32\\KERNELBASE.dll", false));
	CHECK(wrappers_match_module("C:\\windows\\system32\\ucrtbase.dll", false));
	CHECK(!wrappers_match_module("C:\\windows\\system32\\ntdll.dll", true));
	CHECK(!wrappers_match_module("C:\\ntdll.dll\\app.exe", false));
	CHECK(wrappers_match_module("/lib/ld-musl-x86_64.so.1", false));
	CHECK(wrappers_match_module("/usr/lib/tidemark/libtidemark32.so", true));
	CHECK(!wrappers_match_module("/usr/lib/libclang.so.14", false));
	CHECK(!wrappers_match_module("/usr/lib/libc++.so.1", false));
	CHECK(!wrappers_match_module("/opt/libc.so.6/app", false));
	CHECK(!wrappers_match_module("", false));
}

TEST(wrappers_know_which_have_inner_code_of_their_own)
{
	CHECK(wrappers_match_outer("palloc0"));
	CHECK(wrappers_match_outer("g_slice_alloc0"));
	CHECK(wrappers_match_outer("_talloc"));
	CHECK(wrappers_match_outer("operator new(unsigned long)"));
	CHECK(!wrappers_match_outer("std::for_each<int*, work>")); // it calls what it was given
	CHECK(!wrappers_match_outer("core::ops::function::FnOnce::call_once"));
	CHECK(!wrappers_match_outer("gtk_label_new"));
	CHECK(!wrappers_match_outer(NULL));
	wrappers_fold("pass_on*");
	CHECK(wrappers_match_outer("pass_on_zero"));
}

TEST(wrappers_know_where_threads_begin)
{
	CHECK(wrappers_match_root("_start"));
	CHECK(wrappers_match_root("__libc_start_main_impl"));
	CHECK(wrappers_match_root("start_thread"));
	CHECK(!wrappers_match_root("main"));
	CHECK(!wrappers_match_root("restart"));
	CHECK(!wrappers_match_root(NULL));
}
