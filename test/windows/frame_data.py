#!/usr/bin/env python3
"""Stacks of 32-bit programs whose code does not say where its frames are, since their functions call
others that remove their arguments and are known when it runs alone: with frame pointers, and with what
a PDB says of frames, each stack has the callers that the program itself knows, and is proven; without
either, what is not right is marked."""
# timeout: 300
# parallel: yes
import collections
import os
import re
import shutil
import subprocess

import libwin
from libwin import check

SOURCE = os.path.join(libwin.SOURCE, "test", "programs", "win", "virtual.cpp")
COMPILE = ["clang++", "--target=i686-w64-mingw32", "-std=c++17", "-c", "-g", "-gcodeview",
           "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-fno-exceptions", "-fno-rtti",
           "-fno-optimize-sibling-calls", "-fno-strict-aliasing"]
LINK = ["clang++", "--target=i686-w64-mingw32", "-fuse-ld=lld", "-static"]
BARE = "-fomit-frame-pointer"


def libraries():
    """Where mingw's gcc has its own, which clang does not look for."""
    said = subprocess.run([libwin.BITS[32] + "-g++", "-print-libgcc-file-name"], check=True,
                          capture_output=True, text=True).stdout
    return "-L" + os.path.dirname(said.strip())


def link(name, *options):
    subprocess.run([*LINK, libraries(), f"-Wl,--pdb={name}.pdb", *options, "-o", f"{name}.exe",
                    f"{name}.o"], check=True)


def build(name, *options):
    subprocess.run([*COMPILE, *options, "-o", f"{name}.o", SOURCE], check=True)
    link(name)


def record(name):
    """How many stacks are right or not, and marked or not."""
    done = libwin.wine(libwin.built("tidemark.exe"), "record", "-q", "--force", "-o", "made.tide",
                       "--", f"{name}.exe", prefix="prefix", text=True)
    check(f"{name} ends well", done.returncode == 0, done)
    said = {size: [int(pc, 16) for pc in rest.split()] for size, rest in
            re.findall(r"^said (\d+)((?: [0-9a-f]+)*)", done.stdout, re.M)}
    dump = subprocess.run([os.environ["TIDEMARK"], "dump", "made.tide"], capture_output=True,
                          text=True, check=True).stdout
    frames = {frame: int(at, 16) + 1 for frame, at in
              re.findall(r"^frame (f\d+) .*?0x(\w+)", dump, re.M)}
    stacks, marked = {"": ()}, {}
    for stack, flags, frame, outer in re.findall(
            r"^stack (s\d+)(?: flags=(\d+))? (f\d+)(?: < (s\d+))?", dump, re.M):
        stacks[stack], marked[stack] = (frames[frame], *stacks[outer]), bool(int(flags or 0))
    found = collections.Counter()
    for stack, size in re.findall(r"^@\d+ t\d+ malloc (s\d+) h\d+ 0x\w+ (\d+)$", dump, re.M):
        if size in said:
            right = list(stacks[stack][1:len(said[size]) + 1]) == said[size]
            found["right" if right else "wrong", "marked" if marked[stack] else "proven"] += 1
    check(f"{name}: each allocation that it tells of is there", sum(found.values()) == len(said) > 100,
          found, len(said))
    return found


libwin.need_wine(32)
if not shutil.which("clang++") or not shutil.which("lld"):
    libwin.skip("there is no clang or lld here")
libwin.begin_prefix()
try:
    build("frames", "-O2", "-fno-omit-frame-pointer")
    os.unlink("frames.pdb")
    found = record("frames")
    check("with frame pointers all stacks are right, and proven", set(found) == {("right", "proven")},
          found)
    for level in ("-O2", "-Os"):
        name = "made" + level
        build(name, level, BARE)
        os.rename(f"{name}.pdb", "kept.pdb")
        found = record(name)
        check(f"{name}: without the PDB, of {sum(found.values())} stacks {found['right', 'marked']} are right "
              f"and marked, {found['right', 'proven']} right and proven; what is not is marked", ("wrong", "proven") not in found, found)
        os.rename("kept.pdb", f"{name}.pdb")
        found = record(name)
        check(f"{name}: by the PDB all stacks are right, and proven", set(found) == {("right", "proven")},
              found)
    shutil.copy("made-O2.pdb", "made-Os.pdb")
    found = record("made-Os")
    check("the PDB of another build is not used", ("wrong", "proven") not in found and
          found["wrong", "marked"] > 0, found)
    os.mkdir("elsewhere")
    link("made-O2", "-Wl,-Xlink=-pdbaltpath:" + libwin.windows_path("made-O2.pdb"))
    os.rename("made-O2.exe", "elsewhere/made-O2.exe")
    found = record("elsewhere/made-O2")
    check("a PDB is found where the linker wrote it", set(found) == {("right", "proven")}, found)
finally:
    libwin.end_prefix()
libwin.end()
