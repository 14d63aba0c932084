#!/usr/bin/env python3
"""Allocators that nobody exports: in a program or a library, under the usual names or their own.
They are found by the symbol table, or by a file of debugging information."""
# parallel: yes
import json
import os
import re
import shutil
import subprocess

from libguest import (SOURCE, TIDEMARK, Skip, Trace, check, environment, equal, jemalloc, main,
                      need_root, record, run, test)

TEXT = os.path.join(SOURCE, "test", "programs", "own_allocator.c")
SIZES = {7801: 1000, 7802: 1, 7803: 1, 7808: 1, 7903: 1, 70903: 1}
ROOMY = {"GLIBC_TUNABLES": "glibc.rtld.optional_static_tls=16384"}


def build(name, archive, prefix="", *options):
    """A program with that allocator inside, which exports none of it."""
    named = f"-DOWN(name)={prefix}##name" if prefix else "-DOWN(name)=name"
    subprocess.run(["gcc", "-g", "-O1", "-fno-builtin", named, *options,
                    "-DOWN_MAIN" if name != "plugin" else "-shared", "-fPIC", TEXT, archive,
                    "-Wl,--exclude-libs,ALL", "-lm", "-lpthread", "-ldl", "-o", name], check=True)
    out = run(["nm", "-D", "--defined-only", name]).out
    check(not re.search(r" T \w*(alloc|free)", out), "it exports", out)
    return os.path.abspath(name)


def caller():
    subprocess.run(["gcc", "-g", "-O1", "-fno-builtin", "-DOWN_MAIN", TEXT, "-ldl", "-o", "caller"],
                   check=True)
    return os.path.abspath("caller")


def allocators(trace="t.tide"):
    info = json.loads(run([TIDEMARK, "info", "--json", trace]).out)
    return [(each["name"], os.path.basename(each["file"]), each["seen"])
            for each in info["processes"][0]["allocators"]], info


def check_seen(times=1, c_library=1, trace="t.tide"):
    told = Trace(trace)
    equal(0, told.events_lost(), "events lost")
    told.check_ownership()
    expected = {size: (count * times,) * 2 for size, count in SIZES.items()}
    expected[7811] = (c_library,) * 2
    equal(expected, {size: (len(told.of_size(size)), told.frees_of_size(size))
                     for size in expected}, "blocks by size, and their ends")
    equal(2 * times, told.counts().reallocations, "reallocations")
    for size in SIZES:
        frame = told.frames_of(told.of_size(size)[0].stack)[0]
        check(told.module_of(frame) in ("program", "plugin"), f"who asked for {size} bytes")


@test
def under_the_usual_names_in_a_program():
    record([build("program", jemalloc("jemalloc"), "", "-DOWN_ALONE")], "--strict")
    check_seen(c_library=0)
    check(("jemalloc", "program", "symbols") in allocators()[0], allocators()[0])


@test
def under_names_of_their_own():
    for prefix, name in (("je_", "jemalloc"), ("_rjem_", "jemalloc"), ("mi_", "mimalloc"),
                         ("tc_", "tcmalloc"), ("duckdb_je_", "jemalloc"), ("je_arrow_", "jemalloc")):
        trace = f"{prefix}.tide"
        record([build("program", jemalloc("jemalloc", prefix), prefix)], "--strict", trace=trace)
        check_seen(trace=trace)
        equal([(name, "program", "symbols"), ("glibc", "libc.so.6", "name")],
              allocators(trace)[0], "allocators")


@test
def in_libraries_at_start_and_later_and_in_another_namespace():
    plugin = build("plugin", jemalloc("jemalloc_pic"))
    for how, variables in (("dlopen", {}), ("dlmopen", {}), ("there", {"LD_PRELOAD": plugin})):
        record([caller(), how, "1", plugin], "--strict", trace=f"{how}.tide",
               env=environment(**ROOMY, **variables))
        check_seen(trace=f"{how}.tide")
        check(("jemalloc", "plugin", "symbols") in allocators(f"{how}.tide")[0],
              allocators(f"{how}.tide")[0])


# In front of the C library for two of its functions; each calls the next one.
WRAPPER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
static void *(*next_malloc)(size_t);
static void (*next_free)(void *);
__attribute__((constructor)) static void find(void)
{
	*(void **)&next_malloc = dlsym(RTLD_NEXT, "malloc");
	*(void **)&next_free = dlsym(RTLD_NEXT, "free");
}
void *malloc(size_t size) { return next_malloc(size); }
void free(void *ptr) { next_free(ptr); }
"""


@test
def behind_a_library_that_wraps_some_of_it_in_another_namespace():
    """What that leaves to the C library of its namespace is seen, and what goes through both once."""
    with open("wrapper.c", "w", encoding="utf-8") as file:
        file.write(WRAPPER)
    subprocess.run(["gcc", "-O1", "-fno-builtin", "-shared", "-fPIC", "wrapper.c", "-ldl", "-o", "libwrapper.so"],
                   check=True)
    subprocess.run(["gcc", "-g", "-O1", "-fno-builtin", "-DOWN(name)=name", "-shared", "-fPIC", TEXT,
                    "./libwrapper.so", "-o", "plugin"], check=True)
    for how in ("dlmopen", "dlopen"):
        record([caller(), how, "3", os.path.abspath("plugin")], "--strict", "-f")
        check_seen(times=3)
        heap = json.loads(run([TIDEMARK, "report", "--json", "t.tide"]).out)["heap"]
        equal((0, 0), (heap["orphan_frees"], heap["lost_frees"]), f"{how}: orphans, and lost frees")


TOY = r"""
#include <stddef.h>
#include <string.h>
static char memory[16 << 20];
static size_t used, freed;
#define HIDDEN __attribute__((visibility("hidden"), noinline))
HIDDEN void *mi_malloc(size_t size)
{
	char *ptr = memory + used + 16;
	used += (size + 31) & ~(size_t)15;
	return ptr;
}
HIDDEN void mi_free(void *ptr) { freed += ptr != NULL; }
HIDDEN void *mi_calloc(size_t count, size_t size) { return mi_malloc(count * size); }
HIDDEN void *mi_realloc(void *ptr, size_t size) { return memcpy(mi_malloc(size), ptr, 7803); }
HIDDEN void *mi_memalign(size_t alignment, size_t size)
{
	used = (used + alignment - 1) & ~(alignment - 1);
	return mi_malloc(size);
}
"""


@test
def in_a_library_that_comes_and_goes():
    with open("toy.c", "w", encoding="utf-8") as file:
        file.write(TOY)
    subprocess.run(["gcc", "-O1", "-fPIC", "-c", "toy.c", "-o", "toy.o"], check=True)
    plugin = build("plugin", "toy.o", "mi_")
    record([caller(), "dlopen", "20", plugin], "--strict")
    check_seen(times=20)
    equal(1, [each[1] for each in allocators()[0]].count("plugin"), "times that it is said")


@test
def tcmalloc_of_abseil_is_named_by_what_it_alone_has():
    """workerd's: its functions have the usual names."""
    with open("toy.c", "w", encoding="utf-8") as file:
        file.write(TOY.replace("mi_", "") + "HIDDEN int MallocExtension_Internal_GetStats(void) { return 0; }\n")
    subprocess.run(["gcc", "-O1", "-fPIC", "-fno-builtin", "-c", "toy.c", "-o", "toy.o"], check=True)
    record([caller(), "dlopen", "1", build("plugin", "toy.o")], "--strict")
    check_seen()
    check(("tcmalloc", "plugin", "symbols") in allocators()[0], allocators()[0])


@test
def in_a_library_that_exports_it_and_does_not_ask_who_comes_first():
    archive = jemalloc("jemalloc_pic")
    for link in ("-Bsymbolic", "-Bsymbolic-functions"):
        subprocess.run(["gcc", "-g", "-O1", "-fno-builtin", "-DOWN(name)=name", "-shared", "-fPIC",
                        TEXT, archive, f"-Wl,{link}", "-lm", "-lpthread", "-ldl", "-o", "plugin"],
                       check=True)
        plugin = os.path.abspath("plugin")
        cases = [("dlopen", {}, 1)]
        if link == "-Bsymbolic":
            cases.append(("there", {"LD_PRELOAD": plugin}, 1))
        for how, variables, count in cases:
            record([caller(), how, "1", plugin], "--strict", "-f",
                   env=environment(**ROOMY, **variables))
            check_seen(c_library=count)
            check(("jemalloc", "plugin", "exported") in allocators()[0], allocators()[0])


@test
def by_a_debug_file():
    need_root()
    program = build("program", jemalloc("jemalloc", "je_"), "je_")
    note = run(["readelf", "-n", program]).out
    build_id = re.search(r"Build ID: ([0-9a-f]+)", note)[1]
    folder = os.path.abspath("debug/.build-id/" + build_id[:2])
    os.makedirs(folder)
    subprocess.run(["objcopy", "--only-keep-debug", program,
                    os.path.join(folder, build_id[2:] + ".debug")], check=True)
    subprocess.run(["strip", program], check=True)
    if not os.path.isdir("/usr/lib/debug") or not shutil.which("unshare"):
        raise Skip("needs /usr/lib/debug and unshare")
    ended = run(["unshare", "-m", "sh", "-c",
                 'mount --bind debug /usr/lib/debug && exec "$@"', "sh", TIDEMARK, "record",
                 "--strict", "-o", "t.tide", "--", program])
    if "mount" in ended.err:
        raise Skip("may not mount")
    equal(0, ended.code, ended.err)
    check_seen()
    equal(("jemalloc", "program", "debug-file"), allocators()[0][0], "the allocator")


# As chromium's: what malloc calls is in a table, and so is what is not exported.
TABLE = r"""
#include <stddef.h>
#include <string.h>
static char memory[64 << 20];
static size_t used;
static void *take(size_t size, void *more)
{
	char *ptr;
	(void)more;
	used = (used + 63) & ~(size_t)63;
	ptr = memory + used + 64;
	*(size_t *)(ptr - 8) = size;
	used += size + 64;
	return ptr;
}
static void *zero(size_t count, size_t size, void *more) { return take(count * size, more); }
static void *line(size_t to, size_t size, void *more) { (void)to; return take(size, more); }
static void *grow(void *ptr, size_t size, void *more)
{
	size_t old = ptr ? *(size_t *)((char *)ptr - 8) : 0;
	char *now = take(size, more);
	return old ? memcpy(now, ptr, old < size ? old : size) : now;
}
static void drop(void *ptr, void *more) { (void)ptr, (void)more; }
static size_t size(void *ptr, void *more) { (void)more; return *(size_t *)((char *)ptr - 8); }
static void *side(size_t size, size_t to, void *more) { (void)to; return take(size, more); }
static void *side_grow(void *ptr, size_t size, size_t to, void *more) { (void)to; return grow(ptr, size, more); }
static const struct table {
	void *(*alloc)(size_t, void *), *(*alloc_unchecked)(size_t, void *);
	void *(*zero)(size_t, size_t, void *), *(*zero_unchecked)(size_t, size_t, void *);
	void *(*line)(size_t, size_t, void *), *(*line_unchecked)(size_t, size_t, void *);
	void *(*grow)(void *, size_t, void *), *(*grow_unchecked)(void *, size_t, void *);
	void (*drop)(void *, void *);
	size_t (*size)(void *, void *);
	void *(*side)(size_t, size_t, void *), *(*side_unchecked)(size_t, size_t, void *);
	void *(*side_grow)(void *, size_t, size_t, void *);
	void *(*side_grow_unchecked)(void *, size_t, size_t, void *);
	void (*side_drop)(void *, void *);
} table = { take, take, zero, zero, line, line, grow, grow, drop, size,
	    side, side, side_grow, side_grow, drop };
__attribute__((visibility("hidden"))) const struct table *volatile chain = &table;
#define OUTSIDE __attribute__((noinline))
#define INSIDE __attribute__((visibility("hidden"), noinline))
OUTSIDE void *malloc(size_t size) { return chain->alloc(size, 0); }
INSIDE void *unchecked(size_t size) { return chain->alloc_unchecked(size, 0); }
#ifdef TWELVE // as where it has to be kept beyond the call
#define CALLS(name, offset) __asm__(".globl " #name "\n.type " #name ", @function\n.p2align 4, 0xcc\n" \
	#name ": push %r12\n mov chain(%rip), %r12\n xor %edx, %edx\n call *" #offset "(%r12)\n"      \
	" pop %r12\n ret\n .p2align 4, 0xcc\n")
CALLS(calloc, 0x10);
CALLS(memalign, 0x20);
CALLS(realloc, 0x30);
extern void *calloc(size_t count, size_t size), *memalign(size_t to, size_t size);
extern void *realloc(void *ptr, size_t size);
#else
OUTSIDE void *calloc(size_t count, size_t size) { return chain->zero(count, size, 0); }
OUTSIDE void *memalign(size_t to, size_t size) { return chain->line(to, size, 0); }
OUTSIDE void *realloc(void *ptr, size_t size) { return chain->grow(ptr, size, 0); }
#endif
INSIDE void *unchecked_zero(size_t count, size_t size) { return chain->zero_unchecked(count, size, 0); }
INSIDE void *unchecked_grow(void *ptr, size_t size) { return chain->grow_unchecked(ptr, size, 0); }
OUTSIDE void free(void *ptr) { chain->drop(ptr, 0); }
OUTSIDE size_t malloc_usable_size(void *ptr) { return chain->size(ptr, 0); }
INSIDE void *unchecked_side(size_t size, size_t to) { return chain->side_unchecked(size, to, 0); }
INSIDE void *unchecked_side_grow(void *ptr, size_t size, size_t to) { return chain->side_grow_unchecked(ptr, size, to, 0); }
INSIDE void side_free(void *ptr) { chain->side_drop(ptr, 0); }
int main(void)
{
	for (int i = 0; i < 100; i++) {
		free(unchecked(7801));
		free(unchecked_zero(2, 3902));
		free(unchecked_grow(malloc(7802), 7803));
		side_free(unchecked_side_grow(unchecked_side(7805, 64), 7806, 64));
		if (malloc_usable_size(calloc(1, 7807)) != 7807)
			return 1;
	}
	return 0;
}
"""


def check_table(*options):
    with open("table.c", "w", encoding="ascii") as file:
        file.write(TABLE)
    subprocess.run(["gcc", "-O2", "-fno-builtin", "-rdynamic", "-s", *options, "-o", "table",
                    "table.c"], check=True)
    record([os.path.abspath("table")], "--strict")
    told = Trace()
    told.check_ownership()
    expected = {size: (100, 100) for size in (7801, 7804, 7802, 7803, 7805, 7806)}
    equal(expected, {size: (len(told.of_size(size)), told.frees_of_size(size))
                     for size in expected}, "blocks by size, and their ends")
    equal(200, told.counts().reallocations, "reallocations")


@test
def functions_of_a_stripped_one_that_go_through_the_same_table():
    check_table()


@test
def the_same_where_the_table_is_in_r12():
    check_table("-DTWELVE")


def linked(folder, *options):
    """A stripped program, whose debug file its .gnu_debuglink leads to."""
    os.makedirs(folder, exist_ok=True)
    program = build("program", jemalloc("jemalloc", "je_"), "je_", *options)
    debug = os.path.join(folder, "program.debug")
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    subprocess.run(["strip", program], check=True)
    subprocess.run(["objcopy", f"--add-gnu-debuglink={debug}", program], check=True)
    return program, debug


@test
def by_a_debug_file_that_the_program_names():
    for folder in (".", ".debug"):
        for options in ([], ["-Wl,--build-id=none"]):
            program, debug = linked(folder, *options)
            record([program], "--strict", "-f")
            check_seen()
            equal(("jemalloc", "program", "debug-file"), allocators()[0][0], f"{debug}: it")
            os.remove(debug)


@test
def not_by_a_debug_file_of_another_build():
    for options in ([], ["-Wl,--build-id=none"]):
        program, debug = linked(".", *options)
        with open(debug, "r+b") as file:
            data = file.read()
            note = re.search(r"Build ID: ([0-9a-f]+)", run(["readelf", "-n", debug]).out)
            check(bool(note) != bool(options), "a build-id?", note)
            at = data.find(bytes.fromhex(note[1])) if note else len(data) - 1
            file.seek(at)
            file.write(bytes([data[at] ^ 1]))
        record([program], "-f")
        equal(0, len(Trace().of_size(7801)), "blocks seen")
        os.remove(debug)


@test
def a_stripped_one_is_told_though_the_program_asks_libc_too():
    """In the program, and in a library that comes later; not if a debug file names it."""
    program, plugin = build("program", jemalloc("jemalloc", "je_"), "je_"), build("plugin", jemalloc("jemalloc_pic"))
    for name in (program, plugin):
        subprocess.run(["strip", name], check=True)
    for command, name in (([program], "program"), ([caller(), "dlopen", "3", plugin], "plugin")):
        ended = run([TIDEMARK, "record", "-f", "-o", "t.tide", "--", *command], env=environment(**ROOMY))
        equal(0, ended.code, ended.err)
        check(("jemalloc", name, "stripped") in allocators()[0], allocators()[0])
        said = f"{name} has jemalloc inside and is stripped: what is allocated with that is not recorded"
        equal(1, ended.err.count(said), ended.err)
        warnings = json.loads(run([TIDEMARK, "report", "--json", "t.tide"]).out)["trace"]["warnings"]
        check(any(said in line for line in warnings), warnings)
    ended = run([TIDEMARK, "record", "--strict", "-f", "-o", "t.tide", "--", program])
    equal(125, ended.code, ended.err)


@test
def one_whose_table_of_symbols_says_nothing_of_it_is_as_good_as_stripped():
    """bun's has what it exports, once more."""
    program = build("program", jemalloc("jemalloc", "je_"), "je_")
    subprocess.run(["strip", "--keep-symbol=main", program], check=True)
    check(" main" in run(["nm", program]).out, "no table of symbols")
    ended = run([TIDEMARK, "record", "-f", "-o", "t.tide", "--", program])
    check("program has jemalloc inside and is stripped" in ended.err, ended.err)
    check(("jemalloc", "program", "stripped") in allocators()[0], allocators()[0])


@test
def one_with_names_that_are_not_known_is_told_though_it_is_not_stripped():
    """Nobody asks for symbols that are there."""
    program = build("program", jemalloc("jemalloc", "acme_"), "acme_")
    ended = run([TIDEMARK, "record", "-f", "-o", "t.tide", "--", program])
    said = "program has jemalloc inside and its functions have names of their own: what is allocated with that"
    equal(1, ended.err.count(said), ended.err)
    check("try: a build with symbols" not in ended.err, ended.err)
    check(("jemalloc", "program", "stripped") in allocators()[0], allocators()[0])
    check("names of their own" in run([TIDEMARK, "info", "t.tide"]).out, "not in the text")


@test
def a_stripped_library_that_exports_its_own_names_is_entered():
    """As a module of DuckDB's is that was stripped: no function of ours has these names."""
    archive, prefix = jemalloc("jemalloc_pic", "duckdb_je_"), "duckdb_je_"
    subprocess.run(["gcc", "-g", "-O1", "-fno-builtin", f"-DOWN(name)={prefix}##name", "-shared", "-fPIC", TEXT,
                    archive, "-lm", "-lpthread", "-ldl", "-o", "plugin"], check=True)
    subprocess.run(["strip", "plugin"], check=True)
    record([caller(), "dlopen", "1", os.path.abspath("plugin")], "--strict", "-f", env=environment(**ROOMY))
    check_seen()
    check(("jemalloc", "plugin", "exported") in allocators()[0], allocators()[0])


@test
def a_stripped_one_is_said_to_be_unseen_if_it_is_there():
    program = build("program", jemalloc("jemalloc", "je_"), "je_", "-DOWN_ALONE")
    subprocess.run(["strip", program], check=True)
    record([program])
    equal(0, len(Trace().of_size(7801)), "blocks seen")
    check(("unknown", "program", "stripped") in allocators()[0], allocators()[0])
    check("the executable is stripped" in run([TIDEMARK, "info", "t.tide"]).out, "not in the text")
    record([os.path.realpath("/usr/bin/env"), "true"], trace="o.tide")
    equal([("glibc", "libc.so.6", "name")], allocators("o.tide")[0], "of one that asks for malloc")


@test
def one_that_allocates_by_a_library_alone_is_not_said_to_have_one():
    """As ffmpeg does by av_malloc; it is larger than a launcher, and asks for mmap."""
    for name, text, *options in (("libgive.so", "void *own_malloc(int size) { return malloc(size); } void own_free(void *p) { free(p); }", "-shared", "-fPIC"),
                                 ("asks", "#include <sys/mman.h>\nvoid *own_malloc(int); void own_free(void *); char room[1 << 17] = { 1 };\n"
                                  "int main(void) { munmap(mmap(0, 4096, 3, 34, -1, 0), 4096); own_free(own_malloc(7806)); return !room[0]; }",
                                  "-L.", "-lgive", "-Wl,-rpath,.", "-s")):
        subprocess.run(["gcc", "-fno-builtin", "-include", "stdlib.h", "-x", "c", "-", "-o", name, *options],
                       input=text, text=True, check=True)
    record([os.path.abspath("asks")], "--strict")
    equal(1, len(Trace().of_size(7806)), "blocks seen")
    equal([("glibc", "libc.so.6", "name")], allocators()[0])


@test
def one_that_takes_the_address_of_malloc_too_is_not_said_to_have_one():
    """As redis does: such symbols are among those that are hashed."""
    subprocess.run(["gcc", "-fno-builtin", "-x", "c", "-", "-o", "asks", "-s"], text=True, check=True,
                   input="#include <stdlib.h>\n#include <sys/mman.h>\nvoid *(*give)(size_t); void (*take)(void *);\n"
                   "int main(void) { munmap(mmap(0, 4096, 3, 34, -1, 0), 4096);"
                   " give = malloc, take = free; free(malloc(7807)); return 0; }")
    record([os.path.abspath("asks")], "--strict")
    equal(1, len(Trace().of_size(7807)), "blocks seen")
    equal([("glibc", "libc.so.6", "name")], allocators()[0])


@test
def a_launcher_that_only_calls_its_library_is_not_said_to_have_one():
    for name, text, *options in (("liball.so", "int all(void) { free(malloc(7805)); return 0; }", "-shared", "-fPIC"),
                                 ("launcher", "int all(void); int main(void) { return all(); }", "-L.", "-lall", "-Wl,-rpath,.", "-s")):
        subprocess.run(["gcc", "-fno-builtin", "-include", "stdlib.h", "-x", "c", "-", "-o", name, *options],
                       input=text, text=True, check=True)
    record([os.path.abspath("launcher")], "--strict")
    equal(1, len(Trace().of_size(7805)), "blocks seen")
    equal([("glibc", "libc.so.6", "name")], allocators()[0])


main()
