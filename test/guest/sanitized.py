#!/usr/bin/env python3
"""A program that refuses to start behind another library runs as it would without us."""
# timeout: 120
# parallel: yes
import glob
import os
import shutil

from libguest import (TIDEMARK, Skip, Trace, check, environment, equal, main, need_32_bits, record,
                      run, test)

SOURCE = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv)
{
	char *volatile block = malloc(7701);
	if (argc > 1)
		block[7701] = 1; // one too far
	free(block);
	puts("ready");
	return 3;
}
"""
COPIES = """
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define TIMES(count, what) for (int i = 0; i < (count); i++) block = (what)
char *__strdup(const char *);
int main(void)
{
	char text[9000];
	char *volatile block;
	memset(text, 'x', 8000);
	text[8000] = 0;
	TIMES(11, strdup(text));
	TIMES(12, __strdup(text + 10));
	TIMES(13, strndup(text, 7000));
	TIMES(14, reallocarray(NULL, 70, 101));
	for (int i = 0; i < 15; i++)
		free(strdup(text + 20));
	for (int i = 0; i < 16; i++)
		if (asprintf((char **)&block, "%s", text + 30) < 0)
			return 1;
	for (int i = 0; i < 17; i++)
		free(realpath("/", NULL));
	_exit(3);
}
"""
ASAN = "-fsanitize=address"
FOLLOW = "ASAN_OPTIONS=verify_asan_link_order=0:exitcode=5"


def made(name, *compiler, source=SOURCE):
    if not shutil.which(compiler[0]):
        raise Skip(f"there is no {compiler[0]}")
    with open(name + ".c", "w", encoding="utf-8") as out:
        out.write(source)
    ended = run([*compiler, "-g", "-O0", name + ".c", "-o", name])
    if ended.code != 0:
        raise Skip(f"{' '.join(compiler)}: {ended.err.strip()[-200:]}")
    return os.path.abspath(name)


def freed_of(trace, size):
    """How many blocks of that size were freed; None: of no known size."""
    sizes, freed = {}, []
    for event in trace.events:
        if event.kind in ("free", "realloc-free"):
            freed.append(sizes.pop(event.address, None))
        elif event.kind == "realloc":
            freed.append(sizes.pop(event.old, None))
        if event.size:
            sizes[event.address] = event.size
    return freed.count(size)


def clang_runtime():
    """Where clang's runtime is: not where the loader looks."""
    ended = run(["clang", "-print-file-name=libclang_rt.asan-x86_64.so"])
    found = glob.glob("/usr/lib/llvm*/lib/clang/*/lib/linux/libclang_rt.asan-x86_64.so")
    path = ended.out.strip() if "/" in ended.out else found[0] if found else ""
    return os.path.dirname(path)


def check_runs(path, **more):
    env = environment(**more)
    ended = record([path], "--force", code=3, env=env)
    equal("ready\n", ended.out, f"output of {path} ({ended.err})")
    check(any("AddressSanitizer" in line and "verify_asan_link_order=0" in line
              for line in ended.lines()), ended.err)
    ended = run([TIDEMARK, "record", "--force", "--strict", "-o", "t.tide", path], env=env)
    equal((125, ""), (ended.code, ended.out), f"exit code, and output, of {path} under --strict")


def check_child_runs(path, *words):
    shell = ["/bin/sh", "-c", f"exec env {' '.join(words)} {path}"]
    ended = record(shell, "--force", code=3)
    equal("ready\n", ended.out, f"output of a child ({ended.err})")
    told = [line for line in ended.lines() if "AddressSanitizer" in line and "not recorded" in line]
    equal(1, len(told), f"lines that say so ({ended.err})")
    check(int(Trace().end["unseen"]) > 0, Trace().end)
    ended = run([TIDEMARK, "record", "--force", "--strict", "-o", "t.tide", *shell])
    equal(125, ended.code, f"exit code under --strict ({ended.err})")


@test
def programs_of_gcc_with_a_sanitizer_start():
    path = made("address", "gcc", ASAN)
    check_runs(path)
    check_child_runs(path)


@test
def programs_of_clang_with_a_shared_sanitizer_start():
    path = made("shared", "clang", ASAN, "-shared-libasan")
    check_runs(path, LD_LIBRARY_PATH=clang_runtime())
    check_child_runs(path, f"LD_LIBRARY_PATH={clang_runtime()}")


@test
def programs_that_preload_a_sanitizer_start():
    path = made("plain", "gcc")
    library = run(["gcc", "-print-file-name=libasan.so"]).out.strip()
    if "/" not in library:
        raise Skip("there is no libasan.so")
    library = os.path.realpath(library)
    check_runs(path, LD_PRELOAD=library)
    check_child_runs(path, f"LD_PRELOAD={library}")


@test
def programs_of_32_bits_with_a_sanitizer_start():
    need_32_bits()
    path = made("narrow", "gcc", "-m32", ASAN)
    check_runs(path)
    check_child_runs(path)


@test
def a_sanitizer_that_may_come_behind_is_recorded_and_finds_what_it_should():
    path = made("behind", "gcc", ASAN)
    for words in ([], ["far"]):
        for command in ([path, *words], ["/usr/bin/env", FOLLOW, path, *words]):
            name, value = FOLLOW.split("=", 1)
            ended = record(command, "--force", code=5 if words else 3,
                           env=environment(**({name: value} if command[0] == path else {})))
            equal(bool(words), "heap-buffer-overflow" in ended.err, "what it found")
            check(not any("AddressSanitizer" in line for line in ended.lines()), ended.err)
            equal(1, len(Trace().of_size(7701)), "blocks of the program")


@test
def what_a_sanitizer_allocates_for_the_program_is_recorded():
    programs = [(f"{compiler}_{name}_{kind}", compiler, f"-fsanitize={name}", *more)
                for name in ("address", "thread", "leak")
                for compiler, kind, *more in (("gcc", "shared"), ("clang", "static"),
                                              ("gcc", "static", f"-static-lib{name[0]}san"))]
    done = 0
    for name, *compiler in programs:
        try:
            path = made(name, *compiler, source=COPIES)
        except Skip:
            continue
        done += 1
        record([path], "--force", code=3, env=environment(
            ASAN_OPTIONS="verify_asan_link_order=0:detect_leaks=0"))
        trace = Trace()
        for size, count in ((8001, 11), (7991, 12), (7001, 13), (7070, 14), (7981, 15)):
            equal(count, len(trace.of_size(size)), f"blocks of {size} bytes in {name}")
        equal((15, 0), (freed_of(trace, 7981), freed_of(trace, None)),
              f"freed of 7,981 bytes in {name}, and of what was not seen to begin")
    if not done:
        raise Skip("no compiler has a sanitizer")


@test
def programs_with_other_sanitizers_are_recorded():
    for name in ("thread", "leak", "undefined"):
        ended = record([made(name, "gcc", f"-fsanitize={name}")], "--force", code=3)
        equal("ready\n", ended.out, f"output with {name} ({ended.err})")
        equal(1, len(Trace().of_size(7701)), f"blocks with {name}")


main()
