#!/usr/bin/env python3
"""How memory is laid out, under Wine, in both sizes: pages that a few small blocks keep, free pages of
heaps, reservations of less than 64 KiB, and an address space in pieces are told of a program that has
them, and of one that looks alike they are not; pages are those that the program counts itself."""
# timeout: 240
# parallel: yes
import concurrent.futures
import os
import re

import libwin
from libwin import ask, check, equal

libwin.need_wine()
EXE = libwin.built("tidemark.exe")
PROGRAM = os.path.join(libwin.SOURCE, "test", "programs", "win", "layout.c")
KINDS = {"pinned": "take_small", "free-pages": None, "unaligned": "reserve", "holes": "take_too_much"}


def innermost(finding, names):
    own = names.stack(finding.get("stack") or [])
    return own[0] if own else None


def look(bits, how):
    trace, name = f"{how}{bits}.tide", f"{how}, {bits} bits"
    done = libwin.wine(EXE, "record", "-o", trace, "--", libwin.windows_path(f"layout{bits}.exe"), how,
                       prefix="prefix", text=True)
    return bits, how, trace, name, done


def judge(bits, how, trace, name, done):
    said = re.search(r"layout: small blocks are on (\d+) pages, heaps have (\d+)\n", done.stdout)
    check(f"{name}: it ran", said and done.returncode == 0 and "did not fail" not in done.stdout, done)
    pages, committed = map(int, said.groups())
    names = libwin.Names(bits, f"layout{bits}.exe")
    pins = ask("pins", trace, "--max-live", "4095")
    # What it prints, and its end, may take a page more.
    check(f"{name}: its heaps' pages, {pins['pages']}", abs(pins["pages"] - committed) <= 16, pins["pages"], committed)
    rows = {innermost(row, names): row for row in pins["rows"]}
    if how == "seeded":
        equal((pages, pages), (rows["take_small"]["pages"], rows["take_small"]["pages_alone"]),
              f"{name}: small blocks keep {pages} pages")
    else:
        check(f"{name}: small blocks keep nearly none", ask("pins", trace)["pages_pinned"] < 50)
    told = [one for one in ask("findings", trace)["findings"] if one["kind"] in KINDS]
    expected = set() if how == "alike" else {kind for kind in KINDS if bits == 32 or
                                             kind in ("pinned", "free-pages")}
    equal({(kind, KINDS[kind]) for kind in expected}, {(one["kind"], innermost(one, names)) for one in told},
          f"{name}: what is found")


libwin.begin_prefix()
for width in libwin.WIDTHS:
    libwin.cross_compile(width, f"layout{width}.exe", "-fno-omit-frame-pointer",
                         "-fno-optimize-sibling-calls", PROGRAM)
# They sleep most of the time.
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    for ran in list(pool.map(lambda one: look(*one), [(width, how) for width in libwin.WIDTHS
                                                      for how in ("seeded", "alike")])):
        judge(*ran)
libwin.end_prefix()
libwin.end()
