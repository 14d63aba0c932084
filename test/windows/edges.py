#!/usr/bin/env python3
"""Programs at the edges of what the system lets them do: they do the same with the recorder inside as
without, and what they counted is in the trace. In both sizes."""
# timeout: 400
# parallel: yes
import os
import re

import libwin
from libwin import ask, check, equal

libwin.need_wine()
EXE = libwin.built("tidemark.exe")
PROGRAM = os.path.join(libwin.SOURCE, "test", "programs", "win", "edges.c")


def run(bits, edge, *options):
    """Recorded; what it counted is checked. Returns its trace, and what it said."""
    name, trace = f"{edge}, {bits} bits", f"{edge}{bits}.tide"
    done = libwin.wine(EXE, "record", "--force", "-o", trace, *options, "--", libwin.windows_path(f"edges{bits}.exe"),
                       edge, prefix="prefix", seconds=100, text=True)
    counts = re.findall(r"^expect (\d+) (\d+) (\d+)$", done.stdout, re.M)
    check(f"{name}: it comes to its end", counts and done.returncode == 0, done)
    for size, allocations, frees in counts:
        total = ask("window", trace, "--size", size)["total"]
        equal((int(allocations), int(frees)), (total["count"], total["freed_count"]),
              f"{name}: all blocks of {size} bytes are recorded, and what became of them")
    check(f"{name}: the trace is whole", ask("info", trace)["trace"]["complete"], done)
    return trace, done.stdout


def nothing_failed(bits, edge):
    equal(0, ask("report", run(bits, edge)[0])["heap"]["failed"], f"{edge}, {bits} bits: no call is said to have failed")


def refuses(bits):
    trace, said = run(bits, "refuses")
    refused = int(re.search(r"^refused (\d+)$", said, re.M)[1])
    equal(refused, ask("report", trace)["heap"]["failed"], f"refuses, {bits} bits: each refusal is recorded")
    told = ask("findings", trace)
    found = [each for each in told["findings"] if each["kind"] == "failed"]
    check(f"refuses, {bits} bits: it is said when a heap refuses", len(found) == 1 and
          found[0]["figures"]["failed"] == refused - 10 and "HeapCreate" in found[0]["why"] and
          "control group" not in found[0]["why"], found)
    beside = [each["why"] for each in told["not_looked_for"] if each["kind"] == "failed"]
    check(f"refuses, {bits} bits: ten reallocs that may not move are no want of memory",
          len(beside) == 1 and beside[0].startswith("10 reallocs"), beside)


libwin.begin_prefix()
for BITS in libwin.WIDTHS:
    libwin.cross_compile(BITS, f"edges{BITS}.exe", PROGRAM)
    nothing_failed(BITS, "overflow")
    nothing_failed(BITS, "hooked")
    refuses(BITS)
libwin.end_prefix()
libwin.end()
