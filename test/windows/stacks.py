#!/usr/bin/env python3
"""Stacks of 64-bit programs, of gcc and of clang, are those that the system's RtlCaptureStackBackTrace says, each of them,
and each is the same when it is walked again without what is remembered. One that leads to no code
ends before that, and is marked."""
# timeout: 400
# parallel: yes
import os
import re
import shutil
import subprocess

import libwin
from libwin import check

libwin.need_wine()
EXE = libwin.built("tidemark.exe")
PROGRAM = [os.path.join(libwin.SOURCE, "test", "programs", "win", name)
           for name in ("stacks.c", "stacks.S")]
COMPILERS = [("gcc", "-O1"), ("gcc", "-O2"), ("clang", "-O0"), ("clang", "-O2")]
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


def build(compiler, program):
    if compiler[0] == "gcc":
        libwin.cross_compile(64, program, "-D_WIN32_WINNT=0x0602", *compiler[1:], *PROGRAM)
        return
    subprocess.run(["clang", "--target=x86_64-w64-mingw32", "-g", "-c", "-D_WIN32_WINNT=0x0602", *compiler[1:],
                    "-o", "stacks.o", PROGRAM[0]], check=True)
    libwin.cross_compile(64, program, "stacks.o", PROGRAM[1])


def record(program, trace):
    """What the program says of each of its stacks, by their sizes."""
    done = libwin.wine(EXE, "record", "--verify-stacks", "-o", trace, "--", libwin.windows_path(program),
                       prefix="prefix", text=True)
    said = {int(size): [int(word, 16) for word in words.split()]
            for size, words in re.findall(r"^stack (\d+)(.*)$", done.stdout, re.M)}
    check(f"{program} says {COUNT} stacks", len(said) == COUNT, done)
    return said


def compare(trace, said):
    dump = subprocess.run([TIDEMARK, "dump", trace], capture_output=True, text=True, check=True).stdout
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
            check(f"{trace}: {size}", False, [hex(pc) for pc in found], "is", [hex(pc) for pc in expected])
        seen += 1
    end = next(line for line in dump.splitlines() if line.startswith("end"))
    verified = int(re.search(r"stacks-verified=(\d+)", end)[1])
    check(f"{trace}: {seen} of {len(said)} stacks are those of the system", seen == len(said))
    check(f"{trace}: {verified} are the same when walked again", verified >= COUNT and "stacks-mismatched" not in end, end)
    check(f"{trace}: all reach the start of their thread", "stacks-incomplete" not in end, end)


libwin.begin_prefix()
for compiler in COMPILERS:
    name = "".join(compiler)
    if shutil.which(compiler[0]) or compiler[0] == "gcc":
        build(compiler, f"{name}.exe")
        compare(f"{name}.tide", record(f"{name}.exe", f"{name}.tide"))
libwin.wine(EXE, "record", "-o", "astray.tide", "--", libwin.windows_path("gcc-O1.exe"), "astray", prefix="prefix")
libwin.end_prefix()
dump = subprocess.run([TIDEMARK, "dump", "astray.tide"], capture_output=True, text=True, check=True).stdout
numbers = re.findall(r"^@\d+ t\d+ malloc (s\d+) h\d+ 0x\w+ 1000[12]$", dump, re.M)
astray = [re.search(rf"^stack {number} flags=1 (f\d+) < (s\d+)$", dump, re.M) for number in numbers]
ends = {re.search(rf"^stack {each[2]} flags=1 (f\d+)$", dump, re.M) is not None for each in astray if each}
check("stacks that lead to no code end before it, and are marked",
      len(astray) == 2 and None not in astray and ends == {True}, numbers, astray, ends)
libwin.end()
