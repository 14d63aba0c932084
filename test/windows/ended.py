#!/usr/bin/env python3
"""Threads that are ended from outside, in the midst of the recorder or of a heap: the program goes
on, nothing of later threads is lost or called failed, and walks go on, however
many parts the address space has."""
# timeout: 400
# parallel: yes
import os
import re

import libwin
from libwin import ask, check, equal

libwin.need_wine()
EXE = libwin.built("tidemark.exe")
PROGRAM = os.path.join(libwin.SOURCE, "test", "programs", "win", "ended.c")


def finds_stack(name, done):
    """Does a walk know the last thread's stack?"""
    stack = int(re.search(r"stack (?:0x)?(\w+)", done.stdout)[1], 16)
    check(f"{name}: the stack of a later thread is found by a walk",
          any(int(place["start"], 16) <= stack < int(place["end"], 16)
              for place in ask("map", "ended.tide")["ranges"]), hex(stack))


def run(*arguments):
    return libwin.wine(EXE, "record", "--force", "-o", "ended.tide", "--", libwin.windows_path("ended.exe"),
                       *arguments, prefix="prefix", seconds=120, text=True)


def ready_before(bits):
    """A thread's first call is the loader's, which holds its lock: who is ended there holds it for good."""
    done = run("ready")
    found = [tuple(map(int, row)) for row in re.findall(r"mapped (\d+) (\d+) (\d+)", done.stdout)]
    check(f"{bits} bits: what a thread's events need is mapped by who makes the thread, {found}",
          len(found) == 3 and all(before < made == ran for before, made, ran in found), done)
    equal(0, ask("info", "ended.tide")["events"]["lost"], f"{bits} bits: and nothing is lost")


libwin.begin_prefix()
for BITS in libwin.WIDTHS:
    libwin.cross_compile(BITS, "ended.exe", PROGRAM)
    DONE = run(f"tidemark{BITS}.dll")
    FOUND = dict(re.findall(r"in ([a-z ]+): (\d+)", DONE.stdout))
    check(f"{BITS} bits: a program whose threads are ended goes on, {FOUND}", DONE.returncode == 3 and
          all(int(FOUND[place]) for place in ("the recorder", "calls on memory", "the heap")), DONE)
    TOTAL = ask("window", "ended.tide", "--size", "1234")["total"]
    equal(5000, TOTAL["count"], f"{BITS} bits: all that later threads allocate is recorded")
    equal(0, ask("report", "ended.tide")["heap"]["failed"], f"{BITS} bits: no call is said to have failed")
    finds_stack(f"{BITS} bits", DONE)
    ready_before(BITS)
    if BITS == 64:
        finds_stack("beside 34,500 reservations", run("none", "34500"))
libwin.end_prefix()
libwin.end()
