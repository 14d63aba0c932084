// C++ and D names as c++filt shows them; Rust names as the compiler's authors wrote them down.
#include "base/mem.h"
#include "base/str.h"
#include "symbols/demangle.h"
#include "test/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(const char *expected, const char *mangled)
{
	char *text = demangle(mangled);

	CHECK_STR(expected, text);
	mem_free(text);
}

TEST(plain_names_are_left_alone)
{
	static const char *const names[] = { "",
					     "main",
					     "i",
					     "_",
					     "_Z",
					     "_R",
					     "_ZN",
					     "_Zebra",
					     "malloc",
					     "Z3foov",
					     "_RR",
					     "R3foo",
					     "_GLOBAL_OFFSET_" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		check(NULL, names[i]);
}

TEST(cpp_names_are_demangled)
{
	check("foo()", "_Z3foov");
	check("void foo::bar<int>(int)", "_ZN3foo3barIiEEvT_");
	check("operator new(unsigned long)", "_Znwm");
	check("operator delete[](void*, unsigned long)", "_ZdaPvm");
	check("(anonymous namespace)::hidden(int)", "_ZN12_GLOBAL__N_16hiddenEi");
	check("main::{lambda(int)#1}::operator()(int) const", "_ZZ4mainENKUliE_clEi");
	check("foo() [clone .cold]", "_Z3foov.cold");
	check("non-virtual thunk to both::~both()", "_ZThn8_N4bothD0Ev");
	check("typeinfo for std::exception", "_ZTISt9exception");
}

TEST(fortran_names_have_their_module)
{
	check("store::fill", "__store_MOD_fill");
	check("m_2::do_it.constprop.0", "__m_2_MOD_do_it.constprop.0");
	check("store::__copy_store_T", "__store_MOD___copy_store_T");
	check(NULL, "__MOD_x");
	check(NULL, "__store_MOD_");
	check(NULL, "__Store_MOD_x");
	check(NULL, "store_MOD_fill");
}

TEST(ocaml_names_have_their_modules)
{
	check("Stdlib.List.map", "camlStdlib__List__map_216");
	check("O.fill_it", "camlO__fill_it_81");
	check("O.+++", "camlO__$2b$2b$2b_401");
	check("O.fun_484", "camlO__fun_484");
	check("O.entry", "camlO__entry");
	check("Dune_exe.Main.go'", "camlDune_exe__Main.go'_12");
	check("O.a__B", "camlO__a__B_1");
	check(NULL, "camlO__code_begin");
	check(NULL, "caml_alloc_string_1");
	check(NULL, "camlO");
	check(NULL, "camlO__");
	check(NULL, "camlO___1");
	check(NULL, "camlO__$2_1");
	check(NULL, "camlO__$0a_1");
}

TEST(haskell_names_are_decoded)
{
	check("GHC.Base.map", "base_GHCziBase_map_info");
	check("GHC.Arr.$wbadSafeIndex", "base_GHCziArr_zdwbadSafeIndex_info");
	check("GHC.Base.C:Functor", "base_GHCziBase_CZCFunctor_con_info");
	check("GHC.Tuple.(,,)", "ghczmprim_GHCziTuple_Z3T_con_info");
	check("GHC.Tuple.()", "ghczmprim_GHCziTuple_Z0T_con_info");
	check("GHC.Base.++", "base_GHCziBase_zpzp_info");
	check("Data.Map.Internal.foldr'", "containerszm0zi6_DataziMapziInternal_foldrzq_info");
	check("My.Store.keep_it", "MyziStore_keepzuit_info");
	check("A.B.$f(,)", "AziB_zdfZLz2cUZR_info");
	check(NULL, "AziB_z0aU_info");
	check(NULL, "AziB_z2_info");
	check(NULL, "Main_main_info");
	check(NULL, "gtk_resize_info");
	check(NULL, "MyziStore_info");
	check(NULL, "base_GHCziBase_map");
	check(NULL, "base_GHCziBase_a_b_info");
	check(NULL, "base_GHCziBase_az_info");
	check(NULL, "base_GHCziBase_Z999999999999T_info");
	check(NULL, "base_GHCziBase__info");
}

TEST(every_cpp_name_of_the_standard_library_is_shown_as_by_cppfilt)
{
	const char *list = test_temp_path("names");
	char command[1024], name[65536], expected[65536];
	size_t count = 0;
	FILE *stream;

	snprintf(command, sizeof command,
		 "nm -D --defined-only /usr/lib/x86_64-linux-gnu/libstdc++.so.6 2> /dev/null | "
		 "sed 's/@.*//' | awk '$3 ~ /^_Z/ { print $3 }' > %s && "
		 "c++filt -i < %s | paste -d '\\t' %s -",
		 list, list, list);
	stream = popen(command, "r");
	CHECK(stream != NULL);
	while (fscanf(stream, "%65535[^\t]\t%65535[^\n]\n", name, expected) == 2) {
		check(expected, name);
		count++;
	}
	CHECK_EQ(0, pclose(stream));
	CHECK(count > 1000);
}

TEST(a_short_cpp_name_that_asks_for_an_endless_text_is_refused)
{
	// Each level doubles the text of the one before.
	char name[1024] = "_Z1fI1aE";
	char *text;

	strcpy(name, "_Z1fSt4pairI1aS0_E");
	for (int i = 1; i < 40; i++)
		sprintf(name + strlen(name), "S_IS%c_S%c_E",
			"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i % 36],
			"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i % 36]);
	text = demangle(name);
	CHECK(!text || strlen(text) <= 1024 * 1024);
	mem_free(text);
}

TEST(legacy_rust_names_lose_their_hash)
{
	check("core::ptr::drop_in_place", "_ZN4core3ptr13drop_in_place17h0123456789abcdefE");
	check("<Test + 'static as foo::Bar<Test>>::bar",
	      "_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$"
	      "3bar17h930b740aa94f1d3aE");
	check("foo", "_ZN3foo17h05af221e174051e9E.llvm.123");
	check("<alloc::vec::Vec<T> as core::ops::Drop>::drop",
	      "_ZN60_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$core..ops..Drop$GT$4drop"
	      "17h9f5c27a0c1e4b3d8E");
	check("std::rt::lang_start::{{closure}}",
	      "_ZN3std2rt10lang_start28_$u7b$$u7b$closure$u7d$$u7d$17hd2dd0cb2a0d6ba5dE");
	// All digits equal is no hash: that is C++.
	check("foo::h0000000000000000", "_ZN3foo17h0000000000000000E");
}

TEST(v0_rust_names_are_demangled)
{
	check("123foo::bar", "_RNvC6_123foo3bar");
	check("cc::spawn::{closure#0}::{closure#0}", "_RNCNCNgCs6DXkGYLi8lr_2cc5spawn00B5_");
	check("<core::slice::Iter<u8> as core::iter::iterator::Iterator>::rposition::"
	      "<core::slice::memchr::memrchr::{closure#1}>::{closure#0}",
	      "_RNCINkXs25_NgCsbmNqQUJIY6D_4core5sliceINyB9_4IterhENuNgNoBb_4iter8iterator8Iterator"
	      "9rpositionNCNgNpB9_6memchr7memrchrs_0E0Bb_");
	check("alloc::alloc::box_free::<dyn alloc::boxed::FnBox<(), Output = ()>>",
	      "_RINbNbCskIICzLVDPPb_5alloc5alloc8box_freeDINbNiB4_5boxed5FnBoxuEp6OutputuEL_E"
	      "Cs1iopQbuBiw2_3std");
	check("<arrayvec::ArrayVec<u8, 123>>::new", "_RNvMC0INtC8arrayvec8ArrayVechKj7b_E3new");
	check("<arrayvec::ArrayVec<-8>>", "_RMC0INtC8arrayvec8ArrayVecKan8_E");
	check("<const_generic::Char<'\\n'>>", "_RMCs4fqI2P2rA04_13const_genericINtB0_4CharKca_E");
	check("<const_generic::Char<'∂'>>", "_RMCs4fqI2P2rA04_13const_genericINtB0_4CharKc2202_E");
	check("<const_generic::Foo<_>>::foo::FOO",
	      "_RNvNvMCs4fqI2P2rA04_13const_genericINtB4_3FooKpE3foo3FOO");
	check("backtrace::foo", "_RNvC9backtrace3foo.llvm.A5310EB9");
	check("<dyn a::T as a::U>::foo", "_RNvYDNtC1a1TEL_NtC1a1U3foo");
	check("a::f::<for<'a> fn(&'a u8), for<'a, 'b> fn(&'a u8, &'b u16)>",
	      "_RINvC1a1fFG_RL0_hEuFG0_RL1_hRL0_tEuE");
	check("a::f::<*const u8, *mut u8, !, ..., i64>", "_RINvC1a1fPhOhzvxE");
	check("a::f::<(u8,), (), [u16; 4], &[str], &mut f32>", "_RINvC1a1fThETEAtj4_RSeQfE");
	check("a::f::<unsafe extern \"C\" fn(u8) -> u16>", "_RINvC1a1fFUKChEtE");
	check("a::f::<true, 0x123456789abcdef01>", "_RINvC1a1fKb1_Ko123456789abcdef01_E");
}

TEST(punycode_in_rust_names_is_decoded)
{
	check("utf8_idents::საჭმელად_გემრიელი_სადილი",
	      "_RNqCs4fqI2P2rA04_11utf8_identsu30____7hkackfecea1cbdathfdh9hlq6y");
	check("a::föö", "_RNvC1au6f_1gaa");
}

TEST(broken_rust_names_are_refused)
{
	static const char *const names[] = {
		"_RNvC0",           // an identifier is missing
		"_RNvC9toolong",    // shorter than it says
		"_RB_",             // refers to itself
		"_RNvB2_1a",        // refers forward
		"_RNvC1a1b!",       // not of the alphabet
		"_RINvC1a1fKb2_E",  // neither false nor true
		"_RNvC1a1bC1",      // half an instantiating crate
		"_RINvC1a1fRL0_hE", // a lifetime that nobody bound
		"_RNvC1au1b",       // no punycode
		"_RNvC99999999999999999999999999a1b",
		"_ZN3foo17hzzzzzzzzzzzzzzzzE.",
	};

	for (size_t i = 0; i + 1 < sizeof names / sizeof *names; i++)
		check(NULL, names[i]);
}

TEST(rust_names_that_nest_or_refer_without_end_are_refused)
{
	static char name[100000];
	size_t length;

	// Deeper than any compiler nests.
	strcpy(name, "_RINvC1a1f");
	memset(name + strlen(name), 'R', 5000);
	strcat(name, "hE");
	check(NULL, name);

	// Tuples of two references to the tuple before: the text doubles each time.
	strcpy(name, "_RINvC1a1fThhE");
	for (size_t at = 8, i = 0; i < 40; i++) {
		static const char digits[] =
			"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
		char reference[16];

		length = strlen(name) - 2;
		if (at == 0)
			strcpy(reference, "B_");
		else if (at - 1 < 62)
			sprintf(reference, "B%c_", digits[at - 1]);
		else
			sprintf(reference, "B%c%c_", digits[(at - 1) / 62], digits[(at - 1) % 62]);
		sprintf(name + strlen(name), "T%s%sE", reference, reference);
		at = length;
	}
	strcat(name, "E");
	check(NULL, name);
}

// Whether there is a readable form; an empty one is none.
static bool shows(const char *name)
{
	char *shown = demangle(name);
	bool any = shown != NULL;

	CHECK(!any || *shown);
	mem_free(shown);
	return any;
}

TEST(no_truncation_or_change_of_a_name_does_harm)
{
	static const char *const names[] = {
		"_RNCINkXs25_NgCsbmNqQUJIY6D_4core5sliceINyB9_4IterhENuNgNoBb_4iter8iterator8"
		"Iterator"
		"9rpositionNCNgNpB9_6memchr7memrchrs_0E0Bb_",
		"_RINbNbCskIICzLVDPPb_5alloc5alloc8box_freeDINbNiB4_5boxed5FnBoxuEp6OutputuEL_E"
		"Cs1iopQbuBiw2_3std",
		"_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$"
		"3bar17h930b740aa94f1d3aE",
		"_RNqCs4fqI2P2rA04_11utf8_identsu30____7hkackfecea1cbdathfdh9hlq6y",
		"_D3app5store3tabFAxayG3iPFNaNbNfiZiDFNiKdZiPOiANgiZHAyai",
		"_D3app5store__T4PairTSQuQs__TQoTuVii7ZQxVii3ZQBe6__ctorMFNaNbNcNiNfQBuZSQCsQCr__"
		"TQCoTQCmVii3ZQDa",
		"__store_MOD_fill",
		"camlO__$2b$2b$2b_401",
		"containerszm0zi6_DataziMapziInternal_Z3T_con_info",
	};

	size_t asked = 0, shown = 0;

	for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
		size_t length = strlen(names[n]);

		CHECK(shows(names[n]));
		for (size_t at = 0; at < length; at++) {
			char *name = (char *)test_guarded_copy(names[n], length + 1);

			name[at] = '\0';
			shown += shows(name);
			for (int c = 1; c < 128; c += 3, asked++) {
				name[at] = (char)c;
				shown += shows(name);
			}
		}
	}
	CHECK(shown > asked / 3 && shown < asked);
}

TEST(d_names_are_demangled)
{
	check("D main", "_Dmain");
	check("app.store.twice!(int).twice(int)", "_D3app5store__T5twiceTiZQjFNaNbNiNfiZi");
	check("app.store.nested(int).inner(int).deeper()",
	      "_D3app5store6nestedFiZ5innerMFiZ6deeperMFNaNbNiNfZi");
	check("app.store.Pair!(immutable(char)[], -5).Pair.get() const",
	      "_D3app5store__T4PairTAyaViN5ZQo3getMxFNaNbNiNfZQBa");
	check("app.store.Base.this(int)", "_D3app5store4Base6__ctorMFiZCQBbQBaQx");
	check("app.store.Impl.f(in char[], ref int, out double, lazy int, scope int*)",
	      "_D3app5store4Impl1fMFIAaKiJdLiMPiZv");
	check("app.store.tab(const(char)[], immutable(int[3]), int(int) pure nothrow @safe "
	      "function, int(ref double) @nogc delegate, shared(int)*, inout(int)[])",
	      "_D3app5store3tabFAxayG3iPFNaNbNfiZiDFNiKdZiPOiANgiZHAyai");
	check("a.f!(\"x\\n\"w, 'c', true, 0x1.8p-1, [1, 2], 7uL).f(int, ...)",
	      "_D1a__T1fVAyww2_780aVai99Vbi1Vde18PN1VAiA2i1i2Vmi7ZQBsFiYv");
	check("a.f(int[int], int...)", "_D1a1fFHiiiXv");
	check("a.f() [clone .cold]", "_D1a1fFZv.cold");
	// Of compilers before 2.077, without references.
	check("a.f!(int).f(int)", "_D1a8__T1fTiZ1fFiZv");
}

TEST(broken_d_names_are_refused)
{
	static const char *const names[] = {
		"_D",          "_D3",
		"_D4app",      "_D3app",
		"_DDD",        "_D1a1fFQ",
		"_D1a1fFQzZv", "_D1aQaFZv",
		"_D1a1fFiZ",   "_D18446744073709551616a",
		"_D1a1fFbc",   "_D1a__T1fTiFZv",
		"_D1a1fFZvZ",  "_D1a1fF\x80Zv",
	};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		check(NULL, names[i]);
}

TEST(every_d_name_of_the_standard_library_is_shown_as_by_cppfilt)
{
	const char *list = test_temp_path("d-names");
	static char command[1024], name[65536], expected[65536];
	size_t count = 0, refused = 0;
	FILE *stream;

	// c++filt knows no delegate that refers back, and has one name of copying in two ways.
	snprintf(command, sizeof command,
		 "ls /usr/lib/x86_64-linux-gnu/libphobos2-ldc-shared.so "
		 "/usr/lib/x86_64-linux-gnu/libgphobos.so.3 2> /dev/null | xargs -r nm -D "
		 "--defined-only 2> /dev/null | sed 's/@.*//' | awk '$2 ~ /[TW]/ && $3 ~ /^_D/ && "
		 "$3 !~ /__postblit/ { print $3 }' > %s && c++filt --format=dlang < %s | "
		 "paste -d '\\t' %s -",
		 list, list, list);
	stream = popen(command, "r");
	CHECK(stream != NULL);
	while (fscanf(stream, "%65535[^\t]\t%65535[^\n]\n", name, expected) == 2) {
		if (strncmp(expected, "_D", 2) != 0)
			check(expected, name);
		else
			refused++;
		count++;
	}
	CHECK_EQ(0, pclose(stream));
	CHECK(refused <= count / 10);
	if (count == 0)
		SKIP("no library of D is installed");
}

// What Microsoft's compilers write, and what their own debuggers show of it.
static const struct {
	const char *decorated, *shown;
} decorated[] = {
	{ "?f@@YAHXZ", "f" },
	{ "??$f@P6AHH@Z@@YAXXZ", "f<int (*)(int)>" },
	{ "??$f@P8C@@EAAXXZ@@YAXP8C@@EAAXXZ@Z", "f<void (C::*)(void)>" },
	{ "??$h@P8C@n@@EBAHH@Z@@YAXXZ", "h<int (n::C::*)(int)const >" },
	{ "??$g@PEQC@@H@@YAXPEQC@@H@Z", "g<int C::*>" },
	{ "??$g@PERC@@H@@YAXXZ", "g<const int C::*>" },
	{ "?m@@3PEQC@@HEQ1@", "m" },
	{ "?push_back@?$vector@HV?$allocator@H@std@@@std@@QEAAXH@Z",
	  "std::vector<int,std::allocator<int> >::push_back" },
	{ "??0?$vector@HV?$allocator@H@std@@@std@@QEAA@XZ",
	  "std::vector<int,std::allocator<int> >::vector" },
	{ "??1Foo@ns@@UEAA@XZ", "ns::Foo::~Foo" },
	{ "??BFoo@@QEBAHXZ", "Foo::operator int" },
	{ "??B?$array@H$03@inner@outer@@QBEHXZ", "outer::inner::array<int,4>::operator int" },
	{ "??A?$array@H$03@inner@outer@@QEAAAEAHH@Z", "outer::inner::array<int,4>::operator[]" },
	{ "??Ysquare@inner@outer@@QEAAAEAU012@AEBU012@@Z", "outer::inner::square::operator+=" },
	{ "??8square@inner@outer@@QBE_NABU012@@Z", "outer::inner::square::operator==" },
	{ "??2@YAPEAX_K@Z", "operator new" },
	{ "??_U@YAPEAX_K@Z", "operator new[]" },
	{ "??_Gsquare@inner@outer@@UEAAPEAXI@Z", "outer::inner::square::`scalar deleting dtor'" },
	{ "??RLambda@?A0x12345678@@QEBAXH@Z", "`anonymous namespace'::Lambda::operator()" },
	{ "??$max@H@std@@YAHHH@Z", "std::max<int>" },
	{ "??$sum_of@HJDM@outer@@YAHHJDM@Z", "outer::sum_of<int,long,char,float>" },
	{ "??$val@$0A@@@YAXXZ", "val<0>" },
	{ "??$val@$0?1@@YAXXZ", "val<-2>" },
	{ "??$call@P6AHH@Z@@YAHP6AHH@Z@Z", "call<int (*)(int)>" },
	{ "??$twice@$1?plain_c@@YAHH@Z@outer@@YAHH@Z", "outer::twice<&plain_c>" },
	{ "??$twice@PEBD$$QEAH@@YAXXZ", "twice<const char *,int &&>" },
	{ "?run@?1??g@@YAHH@Z@QEAAHXZ", "`g'::`2'::run" },
	{ "??__Ex@@YAXXZ", "`dynamic initializer for 'x''" },
	{ "??_7base@inner@outer@@6B@", "outer::inner::base::`vftable'" },
};

TEST(names_of_microsofts_compilers_are_undecorated)
{
	for (size_t i = 0; i < sizeof decorated / sizeof *decorated; i++) {
		char *shown = demangle(decorated[i].decorated);

		CHECK_STR(decorated[i].shown, shown);
		mem_free(shown);
	}
}

TEST(decorated_names_that_are_cut_anywhere_do_no_harm)
{
	size_t asked = 0, shown = 0;

	for (size_t i = 0; i < sizeof decorated / sizeof *decorated; i++) {
		size_t whole = strlen(decorated[i].decorated);

		for (size_t length = 0; length < whole; length++, asked++) {
			char *name = mem_copy_bytes(decorated[i].decorated, length);

			shown += shows((const char *)test_guarded_copy(name, length + 1));
			mem_free(name);
		}
	}
	CHECK(shown > asked / 4 && shown < asked / 2);
}

TEST(decorated_names_that_refer_to_each_other_come_to_an_end)
{
	struct str name = { 0 };

	str_add(&name, "??$f@");
	for (int i = 0; i < 300; i++)
		str_add(&name, "V?$a@");
	CHECK_STR(NULL, demangle(str_get(&name)));
	str_clear(&name);
	str_add(&name, "?");
	for (int i = 0; i < 12; i++)
		str_format(&name, "?$a@%s", i > 0 ? "V01@V01@V01@" : "H");
	mem_free(demangle(str_get(&name)));
	str_fini(&name);
}

TEST(a_name_that_reads_as_nothing_is_shown_as_it_is)
{
	CHECK_STR(NULL, demangle("_RCskIICzL_0")); // a crate whose name is empty
}
