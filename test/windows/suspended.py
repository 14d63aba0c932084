#!/usr/bin/env python3
"""Children that are started suspended and changed before they run: what was to bring the recorder in
is gone, and it comes in by another way, or the trace says that it did not."""
# timeout: 400
# parallel: yes
import os

import libwin
from libwin import ask, check, equal

libwin.need_wine()
EXE = libwin.built("tidemark.exe")
PROGRAM = os.path.join(libwin.SOURCE, "test", "programs", "win", "suspended.c")
CODE = 7


def run(bits, child, way, resume):
    name, trace = f"{way}, {resume}, {bits} to {child}", f"{way}-{resume}-{bits}-{child}.tide"
    done = libwin.wine(EXE, "record", "--force", "-o", trace, "--", libwin.windows_path(f"suspended{bits}.exe"), way,
                       resume, libwin.windows_path(f"suspended{child}.exe"), prefix="prefix", seconds=100, text=True)
    info = ask("info", trace)
    check(f"{name}: both end with the child's code", done.returncode == CODE and
          [each["exit"] for each in info["processes"]] == [f"exit {CODE}"] * 2, done, info)
    return name, trace, done, info


def recorded(bits, child, way, resume):
    name, trace, done, info = run(bits, child, way, resume)
    total = ask("window", trace, "--size", "12347")["total"]
    check(f"{name}: it ran", "child" in done.stdout, done)
    equal((1000, 500), (total["count"], total["freed_count"]), f"{name}: what it did is recorded")
    check(f"{name}: the trace is whole", info["trace"]["complete"], done)
    later = [each for each in info["notes"]["messages"] if "was changed by who started it" in each]
    equal(way != "plain", len(later) == 1, f"{name}: what is missing at its beginning is said")


def not_recorded(bits, child, way, resume, why):
    name, _, done, info = run(bits, child, way, resume)
    check(f"{name}: the trace says that it is not recorded, and why", f"is not recorded: {why}" in done.stderr and
          not info["trace"]["complete"] and why in str(info), done, info)


def not_begun(bits, child, way, resume):
    name, _, done, info = run(bits, child, way, resume)
    check(f"{name}: nothing of it is missing", info["trace"]["complete"] and "not recorded" not in done.stderr, done)


libwin.begin_prefix()
for BITS in libwin.WIDTHS:
    libwin.cross_compile(BITS, f"suspended{BITS}.exe", "-Wl,--disable-dynamicbase", PROGRAM)
for BITS in libwin.WIDTHS:
    for WAY, RESUME in (("plain", "thread"), ("plain", "asked"), ("restored", "thread"), ("hollowed", "thread"),
                        ("restored", "twice"), ("restored", "alert"), ("hollowed", "process")):
        recorded(BITS, BITS, WAY, RESUME)
    not_recorded(BITS, BITS, "wiped", "thread", "who started it changed its memory before it ran")
    not_begun(BITS, BITS, "restored", "never")
    not_begun(BITS, BITS, "plain", "remote")
not_recorded(64, 64, "restored", "remote", "it has not loaded the recorder")
if 32 in libwin.WIDTHS:
    recorded(64, 32, "hollowed", "thread")
    recorded(32, 64, "plain", "thread")
libwin.end_prefix()
libwin.end()
