#!/usr/bin/env python3
"""Where libc's code may not be changed, or looks otherwise, a program's own calls on virtual memory
are seen by name; the rest is looked up. `info` says which."""
# parallel: yes
import collections
import json
import os
import shutil

from libguest import (BITS, SOURCE, TIDEMARK, Skip, Trace, check, environment, equal, main, program, python,
                      record, run, test)
from libmemory import Memory, map_differences

LIBRARY = program("libplugin_a.so")


def told(out):
    return {name: (int(count), int(size)) for name, count, size in
            (line.split() for line in out.splitlines())}


def seen(memory, origins=("program",)):
    """Number and bytes of the program's own calls, by kind."""
    count = collections.Counter()
    size = collections.Counter()
    for call in memory.calls:
        if call["kind"] in ("mapped", "unmapped") or call.get("origin", "program") not in origins:
            continue
        count[call["kind"]] += 1
        if not call.get("error"):
            size[call["kind"]] += call["size"]
    return {kind: (count[kind], size[kind]) for kind in count}


def process_of(path, trace="t.tide"):
    info = json.loads(run([TIDEMARK, "info", "--json", trace]).out)
    return next(process for process in info["processes"] if process["exe"] == path)


def check_own(path, how, command, trace="t.tide", libc_calls=False):
    ended = record(command, trace=trace, env=environment(MAPS="t.maps"))
    memory = Memory(path, trace)
    process = process_of(path, trace)
    equal(how, process["memory_calls"], f"how they were seen ({process['memory_calls_why']})")
    expected = told(ended.out)
    found = seen(memory)
    if not libc_calls:  # sbrk asks first where the break is
        equal(expected["brk"][1], found["brk"][1], "bytes of brk")
        found.pop("brk", 0)
        expected.pop("brk", 0)
    equal([], [f"{kind}: {expected[kind]} were made, {found.get(kind)} were seen"
               for kind in expected if expected[kind] != found.get(kind)], "differences")
    equal([], map_differences(memory, "t.maps"), "what is mapped in the end")
    return memory, process


@test
def own_calls_are_all_seen_where_code_may_be_changed():
    path = program("vm_own")
    memory, process = check_own(path, "patched", [path, LIBRARY])
    equal(None, process["memory_calls_why"], "why")
    check(any(call.get("origin") == "allocator" for call in memory.calls), "malloc's own are seen")


@test
def own_calls_are_all_seen_where_code_may_not_be_changed():
    path = program("vm_own")
    memory, process = check_own(path, "interposed", [program("denied"), path, LIBRARY])
    equal("its code may not be changed", process["memory_calls_why"], "why")
    check(not any(call.get("origin") in ("allocator", "loader") for call in memory.calls
                  if call["kind"] not in ("mapped", "unmapped")), "nothing else is seen")
    mapped = {memory.files.get(call.get("file"), "") for call in memory.calls
              if call["kind"] == "mapped"}
    check(LIBRARY in mapped, "a library that was opened later is looked up:", mapped)
    text = run([TIDEMARK, "info", "t.tide"]).out
    check("memory calls interposed (its code may not be changed)" in text, text)


@test
def a_library_at_the_place_of_one_that_was_closed_has_its_own_names():
    libraries = [LIBRARY, program("libplugin_b.so")]
    ended = record([program("denied"), program("reload"), *libraries])
    equal("3\n", ended.out, "how often the second library lay where the first had been")
    trace = Trace()
    modules = collections.Counter(trace.module_of(trace.frames_of(event.stack)[0])
                                  for event in trace.of_size(7401))
    equal({"libplugin_a.so": 3000, "libplugin_b.so": 3000}, dict(modules), "calls by library")


@test
def what_the_kernel_maps_for_another_call_is_seen():
    path = program("aio_ring")
    for before in ([], [program("denied")]):
        record([*before, path], "--force", env=environment(MAPS="t.maps"))
        equal([], map_differences(Memory(path), "t.maps"), f"what is mapped in the end {before}")


@test
def the_calls_have_the_stacks_of_their_callers():
    path = program("vm_own")
    record([program("denied"), path])
    ended = run([TIDEMARK, "report", "--json", "--layer", "vm", "t.tide"])
    if ended.code != 0:
        ended = run([TIDEMARK, "window", "--json", "--layer", "vm", "--by", "stack", "t.tide"])
    check("map_and_unmap" in ended.out and "libtidemark" not in ended.out, ended.err, ended.out[:3000])


@test
def a_program_of_musl_is_seen_as_well():
    if not shutil.which("musl-gcc"):
        raise Skip("needs musl-gcc")
    source = os.path.join(SOURCE, "test", "programs", "vm_own.c")
    built = run(["musl-gcc", "-O0", "-g", "-D_GNU_SOURCE", "-fno-builtin", source, "-o", "own"])
    equal(0, built.code, built.err)
    path = os.path.abspath("own")
    ended = record([path], env=environment(MAPS="t.maps"))
    memory = Memory(path)
    equal("interposed", process_of(path)["memory_calls"], "how they were seen")
    found = seen(memory, ("program",))
    expected = told(ended.out)
    equal(expected, {kind: found.get(kind) for kind in expected}, "calls of the program")
    equal([], map_differences(memory, "t.maps"), "what is mapped in the end")


OTHERS = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
class Vector(ctypes.Structure):
    _fields_ = [("at", ctypes.c_void_p), ("size", ctypes.c_size_t)]
memory = ctypes.create_string_buffer(1 << 16)
vector = Vector((ctypes.addressof(memory) + 4095) & ~4095, 4096)
ready, leave = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    os.write(ready[1], b"x")
    os.read(leave[0], 1)
    os._exit(0)
os.read(ready[0], 1)
done = 0
for whom in (child, child, os.getpid()):
    done += libc.process_madvise(os.pidfd_open(whom), ctypes.byref(vector), 1, 20, 0) == 4096
os.write(leave[1], b"x")
os.waitpid(child, 0)
print(done)
"""


@test
def a_call_on_another_process_s_memory_is_counted_apart():
    interpreter, variables = python()
    if BITS != 64:
        raise Skip("asked of 64 bits")
    ended = record([*interpreter, "-c", OTHERS], env=environment(**variables))
    if ended.out != "3\n":
        raise Skip("a process may not be advised by another here")
    info = json.loads(run([TIDEMARK, "info", "--json", "t.tide"]).out)
    equal([2, 0], [each["calls_elsewhere"] for each in info["processes"]], "calls")
    check("2 calls on the memory of other processes, not recorded" in
          run([TIDEMARK, "info", "t.tide"]).out, "what info says")


main()
