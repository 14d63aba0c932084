#!/usr/bin/env python3
"""Stacks of 32-bit programs, however their functions make their frames: each has the callers that are
known beforehand, is proven up to the thread's start, and has no frame of tidemark's own."""
# timeout: 400
# parallel: yes
import collections
import os
import re
import shutil
import subprocess

import libwin

SOURCE = os.path.join(libwin.SOURCE, "test", "programs", "win", "ways.cpp")
CALLERS = {
    7001: ["site", "realigned", "main"],
    7002: ["site", "realigned", "thread"],
    7010: ["site", "compare", "sorts", "main"],
    7020: ["site", "grows", "main"],
    7030: ["site", "takes_back", "large"],
    7040: ["site", "derived::call", "virtually", "main"],
    7050: ["site"] + ["deeper"] * 6 + ["main"],
    7060: ["site", "through_jump", "main"],
    7070: ["site", "calls_pointers", "by_addresses", "main"],
    7090: ["site", "in_fiber"],
    7080: ["site", "ends_thread", "never_back", "other_thread"],
    7100: ["site", "aligned_by_ebx", "calls_shifted", "shifts", "main"],
    7110: ["site", "with_handlers"],
    7120: ["site", "ends_by_throw", "throws", "throwing"],
}
FRAMELESS = (7070, 7080, 7100, 7120)  # the system misses assembly that makes no frame
GCC = ["i686-w64-mingw32-g++", "-static"]
# Without .eh_frame, as Microsoft's compilers leave it: the code itself is asked.
BARE = ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-fno-exceptions", "-fno-rtti",
        "-fomit-frame-pointer"]
FRAMES = ["-fno-omit-frame-pointer", "-DWITH_FRAMES"]
CLANG = ["clang++", "--target=i686-w64-mingw32", "-c"]
WAYS = {
    "gcc-O0": [*GCC, "-O0"],
    "gcc-Os": [*GCC, "-Os"],
    "gcc-O2": [*GCC, "-O2", "-fomit-frame-pointer"],
    "gcc-O1-frames": [*GCC, "-O1", *FRAMES],
    "gcc-O2-frames": [*GCC, "-O2", *FRAMES],
    "gcc-O2-arguments": [*GCC, "-O2", "-maccumulate-outgoing-args"],
    "bare-O0": [*GCC, "-O0", *BARE],
    "bare-Os": [*GCC, "-Os", *BARE],
    "bare-O2": [*GCC, "-O2", *BARE],
    "clang-O0": [*CLANG, "-O0", *BARE],
    "clang-Os": [*CLANG, "-Os", *BARE],
    "clang-O2": [*CLANG, "-O2", *BARE],
    "clang-O2-frames": [*CLANG, "-O2", *BARE[:-1], *FRAMES],
}


def modules_of(dump):
    found = []
    for low, high, bias, name in re.findall(
            r'^module \S+ p\d+ 0x(\w+)-0x(\w+) bias=0x(\w+).* "([^"]+)"$', dump, re.M):
        found.append((int(low, 16), int(high, 16), int(bias, 16), re.split(r"[\\/]", name)[-1]))
    return found


class Trace:
    """The stacks of a trace, by their numbers."""

    def __init__(self, path):
        self.dump = subprocess.run([os.environ["TIDEMARK"], "dump", path], capture_output=True,
                                   text=True, check=True).stdout
        self.frames = {name: int(at, 16) for name, at in
                       re.findall(r"^frame (f\d+) .*?0x(\w+)", self.dump, re.M)}
        self.stacks, self.flags = {}, {}
        for name, flags, frame, outer in re.findall(
                r"^stack (s\d+)(?: flags=(\d+))? (f\d+)(?: < (s\d+))?", self.dump, re.M):
            self.stacks[name] = (frame, outer)
            self.flags[name] = int(flags or 0)
        self.modules = modules_of(self.dump)

    def addresses(self, stack):
        found = []
        while stack:
            frame, stack = self.stacks[stack]
            found.append(self.frames[frame])
        return found

    def place(self, pc):
        for low, high, bias, name in self.modules:
            if low <= pc < high:
                return name, pc - bias
        return "", pc

    def events(self):
        """Stacks with how often each was recorded."""
        return collections.Counter(re.findall(r"^@\d+ t\d+ \S+ (s\d+) ", self.dump, re.M))


def record(program):
    done = libwin.wine(libwin.built("tidemark.exe"), "record", "-q", "--force", "--verify-stacks",
                       "-o", "ways.tide", "--", program, prefix="prefix", text=True)
    libwin.check(f"{program} ends well", done.returncode == 0, done)
    said = {}
    for size, rest in re.findall(r"^said (\d+)((?: [0-9a-f]+)*)", done.stdout, re.M):
        said.setdefault(size, []).append([int(pc, 16) for pc in rest.split()])
    return Trace("ways.tide"), said


def check_program(name):
    program = f"{name}.exe"
    trace, said = record(program)
    names = libwin.Names(32, program)
    seen = collections.Counter()
    for stack, size in re.findall(r"^@\d+ t\d+ malloc (s\d+) h\d+ 0x\w+ (\d+)$", trace.dump, re.M):
        if int(size) not in CALLERS:
            continue
        found = []
        for pc in trace.addresses(stack):
            module, offset = trace.place(pc)
            if module == program:
                found.append({"inlined": False, "module": module, "offset": offset})
        own = [re.sub(r"@\d+$", "", each) for each in names.stack(found)]
        own = [each for each in own if "tmainCRTStartup" not in each
               and "mainCRTStartup" not in each and each != "WinMainCRTStartup"]
        expected = CALLERS[int(size)]
        if int(size) == 7030:
            own, seen[size] = own[:len(expected)], seen[size] + 1
        libwin.check(f"{name}: the callers of {size}", own == expected, own)
        seen[size] += 1
        found = [pc + 1 for pc in trace.addresses(stack)][1:]
        libwin.check(f"{name}: the system says the same callers of {size}",
                     not said or int(size) in FRAMELESS
                     or any(found in (each, each[1:]) for each in said[size]),
                     [hex(pc) for pc in found], said.get(size))
    libwin.check(f"{name}: all ways were gone", len(seen) == len(CALLERS), seen)
    libwin.check(f"{name}: no stack is another one when it is walked again",
                 "stacks-mismatched" not in trace.dump.splitlines()[-1])
    ours = [stack for stack in trace.events()
            if any(trace.place(pc)[0] == "tidemark32.dll" for pc in trace.addresses(stack))]
    libwin.equal([], ours, f"{name}: no frame of tidemark's own is in a stack")
    marked = [stack for stack in trace.events() if trace.flags[stack]]
    libwin.equal([], [[hex(pc) for pc in trace.addresses(stack)] for stack in marked],
                 f"{name}: all stacks are proven")


libwin.need_wine(32)
libwin.begin_prefix()
try:
    for way, command in WAYS.items():
        made = f"{way}.o" if command[0] == "clang++" else f"{way}.exe"
        if not shutil.which(command[0]):
            continue
        subprocess.run([*command, "-g", "-msse2", "-fno-optimize-sibling-calls", "-o", made, SOURCE],
                       check=True)
        if made.endswith(".o"):
            subprocess.run([*GCC, "-o", f"{way}.exe", made], check=True)
        check_program(way)
finally:
    libwin.end_prefix()
libwin.end()
