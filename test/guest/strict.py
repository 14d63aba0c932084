#!/usr/bin/env python3
"""With --strict-vm the memory calls that a program makes without libc are seen as well."""
# timeout: 120
# parallel: yes
import collections
import json

from libguest import (TIDEMARK, Trace, check, environment, equal, main, program, python, record, run, test)
from libmemory import Memory, count_strace, map_differences, record_under_strace

PATH = program("raw_calls")


def seen(memory):
    count = collections.Counter()
    size = collections.Counter()
    for call in memory.calls:
        if call["kind"] in ("mapped", "unmapped", "brk") or call.get("origin"):
            continue
        count[call["kind"]] += 1
        size[call["kind"]] += 0 if call.get("error") else call["size"]
    return {kind: (count[kind], size[kind]) for kind in count}


def told(out):
    return {name: (int(count), int(size)) for name, count, size in
            (line.split() for line in out.splitlines())}


def calls_of(trace="t.tide"):
    return [(process["memory_calls"], process["memory_calls_why"]) for process in
            json.loads(run([TIDEMARK, "info", "--json", trace]).out)["processes"]]


@test
def calls_without_libc_are_all_seen():
    ended = record([PATH], "--strict-vm")
    how = calls_of()
    equal({("dispatched", None), ("dispatched", "but not in threads that it makes itself")}, set(how),
          "how they were seen: the children make no thread")
    made, found = told(ended.out), seen(Memory(PATH))
    equal([], [(kind, made[kind], found.get(kind)) for kind in made if made[kind] != found.get(kind)],
          "calls of the program that were made, and seen")
    children = [line for line in run([TIDEMARK, "dump", "t.tide"]).out.splitlines()
                if " end p" in line]
    check(any("exit=3" in line for line in children) and
          any("exit=4" in line for line in children), "forked children are recorded:", children)


@test
def without_it_they_are_seen_where_the_code_was_there_from_the_start():
    ended = record([PATH], "--force")
    equal({("patched", None)}, set(calls_of()), "how they were seen")
    made, found = told(ended.out), seen(Memory(PATH))
    equal(made, {kind: found.get(kind) for kind in made}, "calls of the program's own")
    out = run([TIDEMARK, "window", "--json", "--layer", "vm", "--by", "stack", "t.tide"]).out
    check('"churn"' in out and '"work"' in out, out[:3000])


@test
def who_gives_back_the_stack_it_stands_on_is_seen():
    for how in ("thread", "clone"):
        ended = record([program("raw_stack"), how], "--force")
        equal(0, ended.code, f"exit code of {how}: {ended.err}")
        equal({("patched", None if how == "thread" else
                "but not in threads that it makes itself")}, set(calls_of()), how)
        ends = [call for call in Memory(program("raw_stack")).calls
                if call["kind"] == "munmap" and call["size"] == 77 * 4096]
        equal(8 if how == "thread" else 0, len(ends), f"stacks that {how} gives back")


@test
def calls_of_libraries_that_are_opened_are_seen_too():
    record([program("raw_opens"), program("libraw_library.so"), program("libplugin_a.so")],
           "--force")
    calls = Memory(program("raw_opens")).calls
    for kind in ("mmap", "munmap"):
        equal(40, sum(call["kind"] == kind and call["size"] == 77 * 4096 for call in calls),
              f"calls of {kind} by the library")


@test
def a_library_that_changes_between_two_programs_is_looked_through_again():
    raw, other = program("libraw_library.so"), program("libplugin_a.so")
    again = f"{program('raw_opens')} ./changing.so {other}"
    script = f"""
        put() {{ cat "$1" > changing.so && truncate -s 1M changing.so; }}
        put {other} && {program("raw_opens")} {raw} ./changing.so && put {raw} && {again} && {again}
    """
    record(["sh", "-c", script], "--force")
    calls = Memory(program("raw_opens")).lines  # of all processes
    equal(120, sum(call["kind"] == "mmap" and call["size"] == 77 * 4096 for call in calls),
          "calls of mmap by the library")


@test
def what_one_program_was_looked_through_for_the_next_one_does_not_read():
    def reads(count):
        ended = record(["sh", "-c", "; ".join(["cat /proc/self/io"] * count)], "--force")
        return [int(line.split()[1]) for line in ended.out.splitlines() if line.startswith("rchar")]

    # Each reads its own /proc/self/maps, too: two mappings that happen to touch are a line less.
    each = reads(3)
    check(len(each) == 3 and each[0] - max(each[1:]) > 8192, "bytes that each reads:", each)


OTHER_NAMESPACE = """
import ctypes
libc = ctypes.CDLL(None)
libc.dlmopen.restype = libc.dlsym.restype = ctypes.c_void_p
library = ctypes.c_void_p(libc.dlmopen(ctypes.c_long(-1), LIBRARY, 2))
work = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)(libc.dlsym(library, b"plugin_work"))
for _ in range(10): work(400001)
"""


@test
def calls_of_the_c_library_of_another_namespace_are_seen():
    command, variables = python()
    script = OTHER_NAMESPACE.replace("LIBRARY", repr(program("libplugin_a.so").encode()))
    record([*command, "-c", script], "--force", "--rss-exact", env=environment(**variables))
    equal(10, len(Trace().of_size(400001)), "blocks")
    out = run([TIDEMARK, "report", "--json", "t.tide"]).out
    check("calls were not seen" not in out, json.loads(out)["trace"]["warnings"])


@test
def what_is_not_seen_is_said():
    for options, told_of in (((), True), (("--strict-vm",), False)):
        record([program("raw_late")], "--force", "--rss-exact", *options)
        out = json.loads(run([TIDEMARK, "reconcile", "--json", "--at", "exit", "t.tide"]).out)
        warnings = " ".join(out["warnings"])
        equal(told_of, "some calls were not seen" in warnings, f"{options} {warnings}")
        if told_of:
            check("5.0 MiB should be mapped that is not, and 8.0 MiB is mapped" in warnings,
                  warnings)
        for words in (["report"], ["map"], ["active"], ["window", "--layer", "vm"],
                      ["transients", "--layer", "vm"], ["info"]):
            found = json.loads(run([TIDEMARK, *words, "--json", "t.tide"]).out)
            lines = found.get("warnings", found.get("trace", {}).get("warnings", [])) + \
                found.get("notes", {}).get("messages", [])
            equal(told_of, "some calls were not seen" in " ".join(lines), (options, words, lines))
        # Of the heap's figures it takes nothing away.
        out = run([TIDEMARK, "window", "--json", "t.tide"]).out
        check("calls were not seen" not in out, out)


@test
def strace_sees_as_many():
    code = record_under_strace([PATH], "--strict-vm", env=environment())
    equal(0, code, "exit code")
    memory = Memory(PATH)
    expected, _, begun = count_strace("t.strace", memory.tids, memory.base())
    check(begun, "strace did not see the recorder begin")
    count = memory.count()
    check(count.count["mremap"] > 250, dict(count.count))
    equal([], count.differences(expected), "differences")


@test
def a_call_has_the_stack_of_its_caller():
    record([PATH], "--strict-vm")
    out = run([TIDEMARK, "window", "--json", "--layer", "vm", "--by", "stack", "t.tide"]).out
    check('"churn"' in out and '"work"' in out, out[:3000])


@test
def programs_that_make_no_calls_of_their_own_run_as_they_would():
    for name, words in (("vm_churn", ["8", "2"]), ("throws", []), ("crowd", []),
                        ("early_late", [program("libearly_late_library.so")])):
        plain = run([program(name), *words])
        ended = run([TIDEMARK, "record", "-q", "--force", "--strict-vm", "-o", f"{name}.tide", "--",
                     program(name), *words])
        equal(plain.code, ended.code, f"exit code of {name} ({ended.err})")
    code = run([TIDEMARK, "record", "--force", "-q", "--strict-vm", "-o", "t.tide", "--",
                program("vm_churn"), "8", "2"], env=environment(MAPS="t.maps")).code
    equal(0, code, "exit code")
    equal([], map_differences(Memory(program("vm_churn")), "t.maps"), "what is mapped in the end")


main()
