#!/usr/bin/env python3
"""`info` says of each process which allocators it uses, where they are, and how they are seen."""
# parallel: yes
import glob
import json
import os
import shutil

import libschema
from libguest import (SOURCE, TIDEMARK, Skip, Trace, check, environment, equal, main, program, record,
                      run, test)

# A library whose allocator is known by its names; each copy of it is another library.
LIBRARY = """
static char memory[1 << 16];
static unsigned long used;
void *scalable_malloc(unsigned long size)
{
	return memory + (used += (size + 15) & -16UL) - ((size + 15) & -16UL);
}
void scalable_free(void *block)
{
	static void *volatile last, *volatile before;

	before = last;
	last = block;
}
"""
OPENER = """
#include <dlfcn.h>
#include <stddef.h>
int main(int count, char **names)
{
	for (int i = 1; i < count; i++) {
		void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
		void *(*take)(size_t) = (void *(*)(size_t))dlsym(library, "scalable_malloc");

		take(7800 + (size_t)i);
	}
	return 0;
}
"""


# One that is linked in under names of its own, and operators that jump to it.
LINKED_IN = """
#include <stddef.h>
#include <new>
static char memory[1 << 16];
static size_t used;
static void *volatile last;
extern "C" __attribute__((noinline, noclone)) void *rpmalloc(size_t size)
{
	last = memory + used;
	used += (size + 15) & ~(size_t)15;
	return last;
}
extern "C" __attribute__((noinline, noclone)) void rpfree(void *block)
{
	static void *volatile before;

	before = last;
	last = block;
}
void *operator new(size_t size) { return rpmalloc(size); }
void operator delete(void *block) noexcept { rpfree(block); }
void operator delete(void *block, size_t) noexcept { rpfree(block); }
int main()
{
	for (int i = 0; i < 10; i++) {
		char *volatile block = new char[7801];
		delete[] block;
	}
	char *volatile kept = (char *)rpmalloc(7802);
	return kept == nullptr;
}
"""


def allocators_of(path, trace="t.tide"):
    """(name, file, how it is seen) of each, of all processes of that program."""
    info = json.loads(run([TIDEMARK, "info", "--json", trace]).out)
    with open(os.path.join(SOURCE, "docs", "schema", "info.json"), encoding="utf-8") as file:
        schema = json.load(file)
    equal([], list(libschema.wrong(info, schema, schema)), "against the schema")
    return [sorted((each["name"], os.path.basename(each["file"]), each["seen"])
                   for each in process["allocators"])
            for process in info["processes"] if process["exe"] == path]


def check_text(line, trace="t.tide"):
    out = run([TIDEMARK, "info", trace]).out
    check(line in out, f"not in what info says: {line!r}\n{out}")


@test
def the_c_library_s_is_seen_by_name():
    path = os.path.realpath("/usr/bin/true")
    record([path])
    equal([[("glibc", "libc.so.6", "name")]], allocators_of(path), "allocators")
    check_text(", by name\n")


@test
def a_preloaded_library_s_is_seen_by_name():
    for library, name in (("libjemalloc.so.2", "jemalloc"), ("libtcmalloc_minimal.so.4", "tcmalloc"),
                          ("libmimalloc.so.2.0", "mimalloc")):
        found = glob.glob(f"/usr/lib/x86_64-linux-gnu/{library}")
        if not found:
            raise Skip(f"needs {library}")
        record([program("named")], env=environment(LD_PRELOAD=found[0]), trace=f"{name}.tide")
        equal([[(name, library, "name")]], allocators_of(program("named"), f"{name}.tide"), name)


@test
def one_that_finds_faults_is_known_by_what_it_exports_besides():
    with open("plain.c", "w", encoding="ascii") as file:
        file.write("void *malloc(unsigned long size)\n{\n\tstatic char memory[1 << 20], *at = memory;\n\n"
                   "\treturn (at += (size + 15) & -16UL) - ((size + 15) & -16UL);\n}\n"
                   "void free(void *block)\n{\n\t(void)block;\n}\nvoid SIGN(void)\n{\n}\n")
    for sign, name in (("EF_Abort", "efence"), ("DUMA_Abort", "duma"), ("dmalloc_debug_setup", "dmalloc"),
                       ("__TBB_malloc_proxy", "tbbmalloc"), ("__scudo_print_stats", "scudo")):
        equal(0, run(["gcc", "-shared", "-fPIC", "-fno-builtin", f"-DSIGN={sign}", "-o", "libplain.so",
                      "plain.c"]).code, "gcc")
        record(["env", f"LD_PRELOAD={os.path.abspath('libplain.so')}", "true"], "--force")
        check_text(f"allocator {name} in ")


@test
def one_that_the_executable_exports_is_entered_in_a_forked_child_too():
    for name in ("jemalloc", "tcmalloc"):
        path = program(f"linked_in_{name}")
        if not os.path.exists(path):
            raise Skip(f"needs a static {name}")
        record([path, program("liblinked_in_plugin.so")], trace=f"{name}.tide")
        equal([[(name, os.path.basename(path), "exported")]] * 2,
              allocators_of(path, f"{name}.tide"), "allocators")
        check_text(f"allocator {name} in the executable, by patched entries of what it exports",
                   f"{name}.tide")


@test
def rpmalloc_is_known_by_its_names_where_operators_come_to_it():
    with open("rp.cpp", "w", encoding="utf-8") as file:
        file.write(LINKED_IN)
    built = run(["g++", "rp.cpp", "-O1", "-o", "rp"])
    equal(0, built.code, built.err)
    path = os.path.abspath("rp")
    record([path], "--strict", "--force")
    trace = Trace()
    equal((10, 10, 1, 0), (len(trace.of_size(7801)), trace.frees_of_size(7801), len(trace.of_size(7802)),
                           trace.frees_of_size(7802)), "blocks by size, and their ends")
    equal([("operators", "rp", "operators"), ("rpmalloc", "rp", "symbols")],
          [each for each in allocators_of(path)[0] if each[0] != "glibc"], "allocators")
    check("own heap" not in run([TIDEMARK, "report", "t.tide"]).out, "own heap is said")


def record_libraries(count):
    """Of a program that opens so many libraries with an allocator: the sizes that were recorded, and
    what `info` says that the program is."""
    for name, source, options in (("one.so", LIBRARY, ["-shared", "-fPIC", "-O1"]),
                                  ("opener", OPENER, ["-O1", "-ldl"])):
        with open(f"{name}.c", "w", encoding="utf-8") as file:
            file.write(source)
        built = run(["gcc", f"{name}.c", "-o", name, *options])
        equal(0, built.code, built.err)
    paths = [os.path.abspath(f"{number}.so") for number in range(1, count + 1)]
    for path in paths:
        shutil.copy("one.so", path)
    ended = record([os.path.abspath("opener"), *paths], "--force")
    seen = {event.size - 7800 for event in Trace().events if 7800 < event.size <= 7800 + count}
    return seen, ended.err, run([TIDEMARK, "info", "t.tide"]).out


@test
def as_many_as_there_is_room_for_are_entered_and_nothing_is_said():
    seen, err, info = record_libraries(30)
    equal(set(range(1, 31)), seen, "libraries whose calls are recorded")
    check("allocators" not in err and "not recorded" not in info, err, info)


@test
def allocators_for_which_there_is_no_room_are_said():
    seen, err, info = record_libraries(40)
    check(30 <= len(seen) < 40, seen)
    first = min(set(range(1, 41)) - seen)
    line = f"{os.path.abspath(f'{first}.so')}: its allocator is not entered"
    check(line in err and line in info, line, err, info)


@test
def libraries_that_an_allocator_needs_beyond_those_that_are_known_are_said():
    for count, said in ((20, False), (90, False), (300, True)):
        for name, source in (("one", "int one;"), ("all", LIBRARY)):
            with open(f"{name}.c", "w", encoding="utf-8") as file:
                file.write(source)
        built = run(["gcc", "-shared", "one.c", "-o", "one.so"])
        equal(0, built.code, built.err)
        paths = [os.path.abspath(f"needed{number}.so") for number in range(count)]
        for path in paths:
            shutil.copy("one.so", path)
        with open("opener.c", "w", encoding="utf-8") as file:
            file.write(OPENER)
        for command in (["-shared", "-fPIC", "all.c", "-o", "all.so", "-Wl,--no-as-needed", *paths],
                        ["opener.c", "-o", "opener", "-ldl"]):
            built = run(["gcc", *command])
            equal(0, built.code, built.err)
        record([os.path.abspath("opener"), os.path.abspath("all.so")], "--force")
        info = run([TIDEMARK, "info", "t.tide"]).out
        equal(said, "more than 256 libraries have allocators" in info, f"{count}: {info}")


main()
