#!/usr/bin/env python3
"""Stacks through code that a program generates are those that the system's RtlCaptureStackBackTrace
says, and proven, in each of the three ways in which a program gives the system tables of such code;
but for one: where the program says the frames by a function that is not simple."""
# timeout: 240
# parallel: yes
import os
import re
import subprocess

import libwin
from libwin import check

libwin.need_wine()
EXE = libwin.built("tidemark.exe")
PROGRAM = os.path.join(libwin.SOURCE, "test", "programs", "win", "generated.c")
PLACES, ROUNDS = 16, 3


def definitions(dump):
    """The frames' addresses, as the system says them, the stacks (a frame, the stack of its callers,
    whether it is marked), and the frames that are the recorder's own."""
    frames, stacks, own, modules = {}, {}, set(), set()
    for line in dump.splitlines():
        words = line.split()
        if line.startswith("module ") and "tidemark64" in line:
            modules.add(words[1])
        elif line.startswith("frame "):
            frames[words[1]] = int(next(word for word in words[2:] if word.startswith("0x")), 16)
            frames[words[1]] += "flags=1" not in words
            if words[2] in modules:
                own.add(words[1])
        elif line.startswith("stack "):
            marked = any(word.startswith("flags=") for word in words)
            words = [word for word in words if not word.startswith("flags=")]
            stacks[words[1]] = (words[2], words[4] if len(words) > 4 else None, marked)
    return frames, stacks, own


libwin.begin_prefix()
libwin.cross_compile(64, "generated64.exe", "-D_WIN32_WINNT=0x0602", PROGRAM)
done = libwin.wine(EXE, "record", "--verify-stacks", "-o", "generated.tide", "--",
                   libwin.windows_path("generated64.exe"), prefix="prefix", text=True)
libwin.end_prefix()
check("the program ends as it does without the recorder", done.returncode == 0, done)
said = {}
for line in done.stdout.splitlines():
    words = line.split()
    if words and words[0] == "stack":
        said[int(words[1])] = [int(word, 16) for word in words[2:]]
    elif words and words[0] == "asked":
        asked = int(words[1], 16)
check("the program says all its stacks", len(said) == PLACES * (5 * ROUNDS + 1), len(said), done)

dump = subprocess.run([os.environ["TIDEMARK"], "dump", "generated.tide"], capture_output=True,
                      text=True, check=True).stdout
frames, stacks, own = definitions(dump)
same = proven = guessed = 0
for stack, size in re.findall(r"^@\d+ t\d+ malloc (s\d+) h\d+ 0x\w+ (\d+)$", dump, re.M):
    expected = said.get(int(size))
    if expected is None:
        continue
    found, marked = [], False
    while stack:
        frame, stack, here = stacks[stack]
        marked |= here
        found.append(frames[frame])
    same += found[1:] == expected
    if any(0 <= pc - asked < 4096 for pc in expected):
        guessed += marked # a function that waits for a lock says the frames
        continue
    proven += not marked
    if found[1:] != expected or marked:
        raise SystemExit(f"not so: {[hex(pc) for pc in found]} is {[hex(pc) for pc in expected]}, "
                         f"marked: {marked}")
check(f"{same} stacks are those of the system, {proven} of them proven, {guessed} marked",
      same == len(said) and proven + guessed == same and guessed == (PLACES - 1) * ROUNDS)
check("no frame of the recorder is in a stack",
      not [stack for stack, (frame, _, _) in stacks.items() if frame in own])
stacks = libwin.ask("info", "generated.tide")["stacks"]
check(f"{stacks['verified']} stacks are the same when they are walked again",
      stacks["verified"] >= same and not stacks["mismatched"], stacks)
libwin.end()
