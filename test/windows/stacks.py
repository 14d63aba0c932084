#!/usr/bin/env python3
"""Stacks of 64-bit programs are those that the system's RtlCaptureStackBackTrace says, each of them,
and each is the same when it is walked again without what is remembered. One that leads to no code
ends before that, and is marked."""
# timeout: 400
# parallel: yes
import os
import re
import subprocess

import libwin

libwin.need_wine()
EXE = os.path.join(os.environ["TIDEMARK_BUILD"] + "-win", "bin", "tidemark.exe")
if not os.path.exists(EXE):
    libwin.skip("tidemark.exe is not built (make win)")
PROGRAM = [os.path.join(libwin.SOURCE, "test", "programs", "win", name)
           for name in ("stacks.c", "stacks.S")]
COUNT = 180
TIDEMARK = os.environ["TIDEMARK"]


def definitions(dump):
    """The frames' addresses, as the system says them, and the stacks: a frame and the stack of its
    callers. A return address is kept as the address before it, that of an instruction that was
    interrupted as it is."""
    frames, stacks = {}, {}
    for line in dump.splitlines():
        words = line.split()
        if line.startswith("frame "):
            frames[words[1]] = int(next(word for word in words[2:] if word.startswith("0x")), 16)
            frames[words[1]] += "flags=1" not in words
        elif line.startswith("stack "):
            words = [word for word in words if not word.startswith("flags=")]
            stacks[words[1]] = (words[2], words[4] if len(words) > 4 else None)
    return frames, stacks


# What is started first brings up a server that lives on and would keep our pipes open.
subprocess.run([libwin.WINE_RUN, "--prefix", "prefix", "--", "cmd.exe", "/c", "exit"],
               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
libwin.cross_compile(64, "stacks64.exe", "-D_WIN32_WINNT=0x0602", *PROGRAM)
done = libwin.wine(EXE, "record", "--verify-stacks", "-o", "stacks.tide", "--",
                   "Z:" + os.path.abspath("stacks64.exe").replace("/", "\\"), prefix="prefix",
                   text=True)
libwin.wine(EXE, "record", "-o", "astray.tide", "--", libwin.windows_path("stacks64.exe"), "astray",
            prefix="prefix")
subprocess.run([libwin.WINE_RUN, "--prefix", "prefix", "--end"], check=False)
said = {}
for line in done.stdout.splitlines():
    words = line.split()
    if words and words[0] == "stack":
        said[int(words[1])] = [int(word, 16) for word in words[2:]]
if len(said) != COUNT:
    raise SystemExit(f"not so: the program says {COUNT} stacks: {done}")

dump = subprocess.run([TIDEMARK, "dump", "stacks.tide"], capture_output=True, text=True,
                      check=True).stdout
frames, stacks = definitions(dump)
seen = 0
for stack, size in re.findall(r"^@\d+ t\d+ malloc (s\d+) h\d+ 0x\w+ (\d+)$", dump, re.M):
    expected = said.get(int(size))
    if expected is None:
        continue
    found = []
    while stack:
        frame, stack = stacks[stack]
        found.append(frames[frame])
    if found[1:] != expected:
        raise SystemExit(f"not so: {[hex(pc) for pc in found]} is {[hex(pc) for pc in expected]}")
    seen += 1
if seen != len(said):
    raise SystemExit(f"not so: {seen} of {len(said)} allocations are in the trace")
end = next(line for line in dump.splitlines() if line.startswith("end"))
verified = int(re.search(r"stacks-verified=(\d+)", end)[1])
if verified < COUNT or "stacks-mismatched" in end:
    raise SystemExit(f"not so: all stacks are the same when walked again: {end}")
if "stacks-incomplete" in end:
    raise SystemExit(f"not so: all stacks reach the start of their thread: {end}")
dump = subprocess.run([TIDEMARK, "dump", "astray.tide"], capture_output=True, text=True, check=True).stdout
numbers = re.findall(r"^@\d+ t\d+ malloc (s\d+) h\d+ 0x\w+ 1000[12]$", dump, re.M)
astray = [re.search(rf"^stack {number} flags=1 (f\d+) < (s\d+)$", dump, re.M) for number in numbers]
ends = {re.search(rf"^stack {each[2]} flags=1 (f\d+)$", dump, re.M) is not None for each in astray if each}
if len(astray) != 2 or None in astray or ends != {True}:
    raise SystemExit(f"not so: two stacks of two frames each, that are marked: {numbers} {astray} {ends}")
print("ok stacks that lead to no code end before it, and are marked")
print(f"ok {seen} stacks are those of the system, {verified} are the same when walked again")
print("3 passed")
