#!/usr/bin/env python3
"""Recorded stacks are those that libunwind finds, frame by frame, in programs nobody here wrote.

libunwind walks at every Nth allocating call (test/witness/unwinder.c), in the very same run. Where it
gives up early (code without tables) the frames before that are compared.
"""
# timeout: 300
# parallel: yes
import glob
import os
import re
import struct

from libguest import BITS, BUILD, TIDEMARK, Skip, check, environment, equal, main, program, run, test

UNWINDER = os.path.join(BUILD, "test", "witness",
                        "libunwinder.so" if BITS == 64 else "libunwinder32.so")
FRAME = re.compile(r"frame f(\d+)(?: m(\d+))? 0x([0-9a-f]+)(?: flags=(\d+))?")
MODULE = re.compile(r"module m(\d+) p(\d+) \S+ bias=0x([0-9a-f]+) (.*)")
STACK = re.compile(r"stack s(\d+)(?: flags=\d+)? f(\d+)(?: < s(\d+))?$")
THREAD = re.compile(r"thread t(\d+) p(\d+) tid=(\d+)")
PROCESS = re.compile(r"process p(\d+) pid=(\d+)(?: parent=p(\d+))?")
CALL = re.compile(r"@\d+ t(\d+) "
                  r"(?:malloc|calloc|aligned|realloc|realloc-alloc|realloc-undo|realloc-failed|failed)"
                  r"(?: s(\d+))?(?= |$)")
RECORDER_FRAMES_MAX = 6  # of libunwind's, that are the recorder's and the witness's own


def samples():
    """(pid, tid, number) -> addresses, innermost first."""
    found = {}
    for path in glob.glob("unwound_*"):
        pid = int(path.split("_")[1])
        with open(path, "rb") as file:
            data = file.read()
        at = 0
        while at < len(data):
            tid, depth, number = struct.unpack_from("<IIQ", data, at)
            found[(pid, tid, number)] = struct.unpack_from(f"<{depth}Q", data, at + 16)
            at += 16 + 8 * depth
    return found


class Stacks:
    """The stacks of a trace, and of the calls that were sampled."""

    def __init__(self, wanted):
        self.frames, self.stacks, self.threads, self.calls = {}, {}, {}, {}
        self.pids, self.taken, self.parents, self.modules = {}, {}, {}, {}
        self.wanted = wanted
        ended = run([TIDEMARK, "dump", "t.tide"])
        for line in ended.out.splitlines():
            self.line(line)

    def line(self, line):
        if line[0] == "@":
            match = CALL.match(line)
            if match:
                key = self.threads[int(match[1])]
                number = self.calls.get(key, 0)
                self.calls[key] = number + 1
                if (*key, number) in self.wanted:
                    self.taken[(*key, number)] = int(match[2] or 0)
        elif line.startswith("frame "):
            match = FRAME.match(line)
            self.frames[int(match[1])] = (int(match[2] or 0), int(match[3], 16), int(match[4] or 0))
        elif line.startswith("module "):
            match = MODULE.match(line)
            self.modules[int(match[1])] = (int(match[2]), int(match[3], 16), match[4])
        elif line.startswith("stack "):
            match = STACK.match(line)
            self.stacks[int(match[1])] = (int(match[2]), int(match[3] or 0))
        elif line.startswith("thread"):
            match = THREAD.match(line)
            self.threads[int(match[1])] = (self.pids[int(match[2])], int(match[3]))
        elif line.startswith("process"):
            match = PROCESS.match(line)
            self.pids[int(match[1])] = int(match[2])
            self.parents[int(match[1])] = int(match[3]) if match[3] else None

    def places(self, module, pc, pid):
        """A frame is of the first process that had its file: where it is in this one, or its parents."""
        if not module:
            return {pc}
        _, bias, file = self.modules[module]
        found, process = set(), next(number for number, its in self.pids.items() if its == pid)
        while process is not None:
            found |= {pc - bias + its for owner, its, name in self.modules.values()
                      if owner == process and name == file}
            process = self.parents[process]
        return found

    def addresses(self, stack, pid):
        """As libunwind would say them, each of a few: return addresses, exact ones for interrupted
        frames. It knows nothing of the functions of languages (2)."""
        found = []
        while stack:
            frame, stack = self.stacks[stack]
            module, pc, flags = self.frames[frame]
            if not flags & 2:
                found.append({place + (not flags & 1) for place in self.places(module, pc, pid)})
        return found


def same(ours, theirs, beyond):
    """Whether one is the other, but for the recorder's own frames: (agrees, frames compared).
    `beyond`: frames that libunwind may show beyond our outermost one."""
    for own in range(min(RECORDER_FRAMES_MAX, len(theirs))):
        if ours and theirs[own] in ours[0]:
            rest = theirs[own:]
            shared = min(len(ours), len(rest))
            return all(map(set.__contains__, ours, rest)) and len(rest) <= len(ours) + beyond, shared
    return False, 0


def agree(command, every, least, whole=True, beyond=0, **variables):
    """Record, and compare. `whole`: libunwind reaches the root of each stack, as we do."""
    if not os.path.exists(UNWINDER):
        raise Skip("libunwind-dev is not installed")
    env = environment(LD_PRELOAD=UNWINDER, UNWINDER=os.path.abspath("unwound"),
                      UNWINDER_EVERY=str(every), **variables)
    ended = run([TIDEMARK, "record", "-q", "--native", "-o", "t.tide", "--", *command], env=env)
    equal(0, ended.code, f"exit code of {command[0]} ({ended.err[-300:]})")
    wanted = samples()
    stacks = Stacks(wanted)
    compared = short = 0
    check(stacks.calls, "no calls in the trace")
    for key, theirs in wanted.items():
        if list(stacks.pids.values()).count(key[0]) != 1:
            continue  # tidemark itself, or several images of one pid
        check(key in stacks.taken, f"call {key} is not in the trace")
        ours = stacks.addresses(stacks.taken[key], key[0])
        good, shared = same(ours, theirs, beyond)
        check(good, f"call {key}:\n  ours   {[[hex(pc) for pc in places] for places in ours]}\n"
                    f"  theirs {[hex(pc) for pc in theirs]}")
        compared += 1
        short += shared < len(ours)
    print(f"# {compared} stacks of {os.path.basename(command[0])}, {short} of them longer than "
          "libunwind follows")
    check(compared >= least, f"only {compared} stacks")
    check(not whole or short <= compared // 100, f"libunwind gave up on {short} of {compared}")


@test
def in_a_compiler():
    with open("many.cpp", "w", encoding="utf-8") as file:
        file.write("#include <map>\n#include <string>\nstd::map<std::string, int> all;\n")
        file.writelines(f"int f{i}(int a) {{ return all[\"{i}\"] += a; }}\n" for i in range(100))
    agree(["/usr/bin/g++", "-O1", "-c", "many.cpp", "-o", os.devnull], 101, 5000)


@test
def in_python():
    script = "import json; d = json.dumps([[i, str(i)] for i in range(20000)]); json.loads(d)"
    agree(["/usr/bin/python3", "-c", script], 101, 1000, PYTHONMALLOC="malloc")


@test
def in_perl():
    agree(["/usr/bin/perl", "-e", "my %h; $h{$_} = [$_] for 1 .. 60000"], 47, 1000)


@test
def in_sqlite():
    agree(["/usr/bin/sqlite3", ":memory:",
           "create table t(a,b); with recursive c(x) as (select 1 union all select x+1 from c "
           "where x<60000) insert into t select x, x*7919%10007 from c; create index i on t(b);"],
          31, 1000)


@test
def in_node_as_far_as_there_are_tables():
    agree(["/usr/bin/node", "-e",
           "let a = []; for (let i = 0; i < 30000; i++) a.push(Buffer.from(String(i)));"],
          17, 500, whole=False)


@test
def in_gdb():
    agree(["/usr/bin/gdb", "-nx", "-batch", "-ex", "info line main", program("crowd")], 17, 500)


@test
def in_a_program_that_does_everything_to_its_stacks():
    # A coroutine's outermost "return address" is the beginning of the C library's function that runs
    # when the coroutine returns; nobody called from there, and it is not part of our stacks.
    agree([program("adversary"), "300", "5"], 53, 500, whole=False, beyond=1)


@test
def in_the_same_among_libraries_that_are_opened_at_the_same_address():
    libraries = [program(f"libadversary_{name}.so") for name in "ab"]
    agree([program("adversary"), "500", "5", *libraries], 53, 500, whole=False, beyond=1)


main()
