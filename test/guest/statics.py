#!/usr/bin/env python3
"""Statically linked programs are recorded as others are; those that cannot be are told why."""
# parallel: yes
import os
import shutil
import signal

from libguest import (SOURCE, TIDEMARK, Skip, Trace, check, check_whole, environment, equal, main,
                      other_system, record, run, test, why_not_32_bits)

WAYS = {
    "static": ["gcc", "-static", "-no-pie"],
    "pie": ["gcc", "-static-pie", "-fPIE"],
    "musl": ["musl-gcc", "-static"],
    "dynamic": ["gcc"],
    "narrow": ["gcc", "-m32", "-static"],
}


def build(way, name="statics.c", *options):
    command = list(WAYS[way])
    if name.endswith("cpp"):
        command[0] = command[0].replace("gcc", "g++")
    if not shutil.which(command[0]):
        raise Skip(f"needs {command[0]}")
    source = os.path.join(SOURCE, "test", "programs", name)
    path = f"./{way}"
    made = run([*command, "-g", "-O1", "-fno-builtin", "-pthread", source, *options, "-o", path])
    equal(0, made.code, made.err)
    return path


def check_counts(trace, said, times=1):
    check_whole(trace)
    expected = {int(size): (times * int(count), times * int(count))
                for size, count in map(str.split, said.splitlines())}
    equal(expected, {size: (len(trace.of_size(size)), trace.frees_of_size(size))
                     for size in expected}, "blocks by size, and their ends")


def check_stacks(trace, name, sizes):
    """From who asked to where the program begins, and none of ours."""
    for size in sizes:
        for stack in {event.stack for event in trace.of_size(size)}:
            modules = {trace.module_of(frame) for frame in trace.frames_of(stack)}
            equal({name}, modules, f"modules of a stack of {size}")
            equal(0, trace.stacks[stack][2], f"flags of a stack of {size}")


def recorded_alike(way, name="statics.c"):
    path = build(way, name)
    plain = run([path])
    equal(0, plain.code, plain.err)
    ended = record([path], "--strict", "--verify-stacks")
    equal(plain.out, ended.out, "output")
    equal(2, len(ended.err.splitlines()), f"lines of ours: {ended.err}")
    trace = Trace()
    check_counts(trace, plain.out)
    return trace


@test
def its_heap_grows_where_addresses_are_not_random():
    path = build("static", "far_text.c")
    equal("32\n", run([path]).out, "MiB without us")
    equal("32\n", record([path], "--strict").out, "MiB")


@test
def what_gcc_links_is_exact_and_its_stacks_are_whole():
    for way in ("static", "pie"):
        trace = recorded_alike(way)
        equal(2, len(trace.processes), "processes")
        check_stacks(trace, way, (7501, 7502, 7503, 7504, 7552, 7488, 7505, 7506, 7507))
        check("glibc in the executable" in run([TIDEMARK, "info", "t.tide"]).out, "no allocator")
        rows = run([TIDEMARK, "report", "-n", "30", "t.tide"]).out
        check("work  " in rows and "statics.c:" in rows, rows)
        os.remove("t.tide")


@test
def what_musl_links_is_exact():
    trace = recorded_alike("musl")
    equal(2, len(trace.processes), "processes")
    check_stacks(trace, "musl", (7501, 7503, 7504, 7552, 7488, 7505, 7507))


@test
def operators_count_once_and_exceptions_pass():
    for way in ("static", "pie"):
        trace = recorded_alike(way, "statics_cxx.cpp")
        equal({64}, {event.align for event in trace.of_size(640)}, "alignments")
        check_stacks(trace, way, (7601, 640, 7602))
        os.remove("t.tide")


@test
def programs_start_each_other_in_every_order():
    ways = [way for way in WAYS if way != "narrow" and shutil.which(WAYS[way][0])]
    paths = [build(way) for way in ways]
    chain = [*paths, *paths[::-1]]
    ended = record([chain[0], "-", *chain[1:]], "--strict")
    trace = Trace()
    equal(2 * len(chain), len(trace.processes), f"processes ({ended.err})")
    check_counts(trace, "\n".join(ended.out.splitlines()[:9]), len(chain))
    for process, fields in trace.processes.items():
        equal(10 if fields.get("start") == "fork" else 5, len(trace.of_size(7505, process)),
              f"blocks of {fields}")


@test
def nothing_is_left_of_the_way_in():
    for way in ("static", "pie", "musl"):
        path = build(way)
        equal(run([path, "tls"]).out, record([path, "tls"], "--strict", "--force").out, way)
    if shutil.which("strace"):
        ended = record(["strace", "-f", "-o", "calls", "./static"], "--force", code=0)
        check("exit_group" in open("calls", encoding="utf-8").read(), "strace saw nothing")
        check("may not be traced" in ended.err or "may not trace" in ended.err, ended.err)


@test
def what_is_killed_has_left_all_it_did():
    path = build("static")
    ended = run([TIDEMARK, "record", "-o", "t.tide", "--", path, "kill"])
    equal(-signal.SIGKILL, ended.code, ended.err)
    trace = Trace()
    equal((4000, 4000, 50), tuple(len(trace.of_size(size)) for size in (7501, 7503, 7507)),
          "blocks")


def refused(command, *words, **variables):
    """It runs as ever, one line says why; under --strict it is not started."""
    plain = run(command)
    ended = record(command, "--force", code=plain.code, env=environment(**variables))
    equal(plain.out, ended.out, "output")
    said = [line for line in ended.lines() if "linked statically" in line]
    equal(1, len(said), f"lines that say so: {ended.err}")
    check(all(word in said[0] for word in words), f"{words} in {said[0]}")
    ended = run([TIDEMARK, "record", "--strict", "-o", "s.tide", "--", *command],
                env=environment(**variables))
    equal(125, ended.code, f"under --strict: {ended.err}")
    equal("", ended.out, "nothing was started")
    check(not os.path.exists("s.tide"), "a file was left behind")


NO_LIBC = """
void _start(void)
{
	__asm__ volatile("mov $60, %eax; xor %edi, %edi; syscall");
}
"""


@test
def what_cannot_be_entered_says_why():
    path = build("static")
    equal(0, run(["strip", "-o", "stripped", path]).code, "strip")
    refused(["./stripped"], "stripped", "try:")
    # Go's own linker (-s, esbuild) leaves this one, which its runtime reads.
    equal(0, run(["objcopy", "--add-section", ".gopclntab=/proc/self/cmdline", "stripped", "gone"]).code, "objcopy")
    refused(["./gone"], "Go's", "garbage collector")
    if not why_not_32_bits():
        refused([build("narrow")], "not of 64 bits", "dynamic build")
    with open("scope", "w", encoding="ascii") as file:
        file.write("3\n")
    refused([path], "kernel.yama.ptrace_scope is 3", "dynamic build",
            **other_system(OTHER_SCOPE=os.path.abspath("scope")))
    with open("bare.c", "w", encoding="utf-8") as file:
        file.write(NO_LIBC)
    equal(0, run(["gcc", "-static", "-nostdlib", "bare.c", "-o", "bare"]).code, "bare")
    refused(["./bare"], "neither glibc nor musl", "cmem")
    shutil.copy(path, "privileged")
    os.chmod("privileged", 0o4755)
    refused(["./privileged"], "privileges")


@test
def operators_that_throw_past_us_are_not_entered():
    path = build("static", "statics_cxx.cpp", "-Wl,--whole-archive", "-ltcmalloc_minimal",
                 "-Wl,--no-whole-archive") if os.path.exists(
                     "/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.a") else None
    if not path:
        raise Skip("needs a static tcmalloc")
    refused([path], "exceptions", "dynamic build")


@test
def go_is_told_as_what_it_is():
    if not shutil.which("go"):
        raise Skip("needs go")
    with open("hello.go", "w", encoding="utf-8") as file:
        file.write('package main\n\nfunc main() { println("go") }\n')
    made = run(["go", "build", "-o", "hello", "hello.go"],
               env=environment(CGO_ENABLED="0", GO111MODULE="off", GOFLAGS="-mod=mod",
                               GOCACHE=os.path.abspath("cache")))
    equal(0, made.code, made.err)
    refused(["./hello"], "Go", "garbage collector")


@test
def marks_are_recorded_in_c_and_in_cxx():
    with open("marks.cpp", "w", encoding="ascii") as file:
        file.write('#include <tidemark.h>\nint main() { tidemark_mark("one"); return 0; }\n')
    shutil.copy("marks.cpp", "marks.c")
    for compiler, source in ("gcc", "marks.c"), ("g++", "marks.cpp"):
        if not shutil.which(compiler):
            raise Skip(f"needs {compiler}")
        made = run([compiler, "-static", "-I", os.path.join(SOURCE, "include"), source, "-o", "marks"])
        equal(0, made.code, made.err)
        record(["./marks"], "--force")
        check("1 marks" in run([TIDEMARK, "info", "t.tide"]).out, compiler,
              run([TIDEMARK, "info", "t.tide"]).out)


@test
def each_that_a_program_starts_in_vain_is_named():
    path = build("static")
    for name in ("one", "two", "three"):
        equal(0, run(["strip", "-o", name, path]).code, "strip")
    ended = record(["sh", "-c", "./one tls; ./two tls; ./three tls; :"])
    for name in ("one", "two", "three"):
        equal(1, sum(f"./{name} is not recorded" in line for line in ended.lines()), ended.err)
    equal(3, int(Trace().end["unseen"]), "programs that were not recorded")


main()
