#!/usr/bin/env python3
"""exercise2.exe under Wine, in both sizes: what Windows Performance Analyzer's tables *VirtualAlloc
Commit Lifetimes* and *Heap Allocations* would say, by process, handle, impacting type and stack, to
the byte; in windows that the program's own marks name."""
# timeout: 200
# parallel: yes
import os
import re
import subprocess

import libwin
from libwin import ask, equal

libwin.need_wine()
EXE = libwin.built("tidemark.exe")
PROGRAM = os.path.join(libwin.SOURCE, "test", "programs", "win", "exercise2.cpp")
SCALE = 0.03
BUFFER = 10 * 1024 * 1024


def window(trace, *words, phase=None):
    if phase:
        words += ("--from", f"mark:{phase}.begin", "--to", f"mark:{phase}.end")
    return ask("window", trace, *words)


class Table:
    """{impact: (count, size, impacting size)}, of the rows whose stack begins with these functions
    (behind the runtime's own operator new)."""

    def __init__(self, names):
        self.names = names

    def own(self, row):
        stack = self.names.stack(row["keys"]["stack"])
        while stack and stack[0] in ("operator new", "malloc"):
            stack.pop(0)
        return stack

    def __call__(self, answer, *shape):
        sums = {}
        for row in answer["rows"]:
            if tuple(self.own(row)[:len(shape)]) != shape:
                continue
            before = sums.get(row["keys"]["impact"], (0, 0, 0))
            sums[row["keys"]["impact"]] = tuple(
                a + row[key] for a, key in zip(before, ("count", "size", "impacting_size")))
        return sums


INNER = ("InnerLoopOperation", "Operation1", "main")
STARTUP = ("Startup", "main")
SIZES = ("--size", "40", "--size", "504", "--size", "840")
SPIKE = ("commit10", "ManipulateTemporaryBuffer", "Operation1", "main")


def heap(bits, trace, table, handle):
    """Heap Allocations: by process, handle, type, stack."""
    name = f"{bits} bits"
    answer = window(trace, "--heap", handle, "--by", "impact,stack", *SIZES)
    equal({"impacting": (1024, 40960, 40960)}, table(answer, *INNER), f"{name}: the leaks")
    equal({"impacting": (176, 89040, 89040)}, table(answer, *STARTUP), f"{name}: Startup")
    answer = window(trace, "--heap", handle, "--exit-frees", *SIZES)
    equal({"transient": (1024, 40960, 0)}, table(answer, *INNER),
          f"{name}: and all transient where the exit frees, as WPA has it")
    answer = window(trace, "--heap", handle, *SIZES, phase="ex2.heap10s")
    equal({"impacting": (319, 12760, 12760), "persistent": (352, 14080, 0)}, table(answer, *INNER),
          f"{name}: ten seconds of leaks")
    equal({"persistent": (176, 89040, 0)}, table(answer, *STARTUP),
          f"{name}: what was there before")
    answer = window(trace, "--by", "process,heap,impact", phase="ex2.heap10s")
    rows = [row for row in answer["rows"] if row["keys"]["heap"] == handle
            and row["keys"]["impact"] == "impacting"]
    equal([(319, 12760, 12760)], [(row["count"], row["size"], row["impacting_size"])
                                  for row in rows], f"{name}: by process, handle, type")
    sizes = window(trace, "--heap", handle, "--by", "impact,size", "--impact", "impacting",
                   phase="ex2.heap10s")
    equal([(40, 319)], [(row["keys"]["size"], row["count"]) for row in sizes["rows"]],
          f"{name}: by size")
    threads = window(trace, "--heap", handle, "--by", "thread", phase="ex2.heap10s")
    equal(1, len(threads["rows"]), f"{name}: of one thread")


def commits(name, trace, table):
    """VirtualAlloc Commit Lifetimes."""
    answer = window(trace, "--layer", "vm")
    equal({"transient": (12, 12 * BUFFER, 0)}, table(answer, "commit10"), f"{name}: twelve commits")
    answer = window(trace, "--layer", "vm", phase="ex2.growth")
    equal({"impacting": (1, BUFFER, BUFFER), "persistent": (1, BUFFER, 0)},
          table(answer, "commit10"), f"{name}: the growth")
    equal({"impacting": (1, BUFFER, BUFFER)}, table(answer, "commit10", "grow", "main"),
          f"{name}: who grew")
    answer = window(trace, "--layer", "vm", phase="ex2.last4")
    equal({"transient": (4, 4 * BUFFER, 0), "persistent": (2, 2 * BUFFER, 0)},
          table(answer, "commit10"), f"{name}: the last four operations")
    equal({"transient": (4, 4 * BUFFER, 0)}, table(answer, *SPIKE), f"{name}: the four spikes")
    single = window(trace, "--layer", "vm", "--by", "lifetime", "--impact", "transient",
                    "--size", str(BUFFER), phase="ex2.last4")
    lived = [row["keys"]["lifetime"]["end_ns"] - row["keys"]["lifetime"]["begin_ns"]
             for row in single["rows"]]
    equal(4, sum(each >= 0.1e9 * SCALE - 300e3 for each in lived), f"{name}: {lived} ns long each")
    for moment, level in (("ex2.growth.begin", 1), ("ex2.growth.end", 2)):
        answer = window(trace, "--layer", "vm", "--from", f"mark:{moment}", "--to", f"mark:{moment}")
        equal({"persistent": (level, level * BUFFER, 0)}, table(answer, "commit10"),
              f"{name}: the level at {moment}")


def shelf(name, trace, table):
    """The first buffer is given back in two halves."""
    answer = window(trace, "--layer", "vm")
    equal({"transient": (13, 12 * BUFFER, 0)}, table(answer, "commit10"),
          f"{name}: a decommit splits a commit")
    answer = window(trace, "--layer", "vm", "--from", "mark:ex2.shelf", "--to", "mark:ex2.shelf")
    equal({"persistent": (2, 15728640, 0)}, table(answer, "commit10"), f"{name}: the shelf")


def record(bits, trace, **variables):
    done = libwin.wine(EXE, "record", "-o", trace, "--", libwin.windows_path(f"exercise2_{bits}.exe"),
                       prefix="prefix", seconds=100, text=True,
                       env={**os.environ, "EX2_SCALE": str(SCALE), **variables})
    said = re.search(r"exercise2: heap (\w+) pid (\d+)", done.stdout)
    if not said or done.returncode != 0 or ", 0 events lost" not in done.stderr:
        raise SystemExit(f"not so: {trace} is recorded: {done}")
    return f"0x{said[1]}"


def bare():
    """Without frame pointers a 32-bit stack goes by the image's .eh_frame, and is proven."""
    libwin.cross_compile_cxx(32, "exercise2_32.exe", PROGRAM, "-fomit-frame-pointer")
    handle = record(32, "bare32.tide")
    rows = window("bare32.tide", "--heap", handle, *SIZES)
    table = Table(libwin.Names(32, "exercise2_32.exe"))
    equal({"impacting": (1024, 40960, 40960)}, table(rows, *INNER), "no frame pointers: the leaks")
    equal({"impacting": (176, 89040, 89040)}, table(rows, *STARTUP), "no frame pointers: Startup")
    dump = subprocess.run([os.environ["TIDEMARK"], "dump", "bare32.tide"], capture_output=True,
                          text=True, check=True).stdout
    stacks = set(re.findall(r" malloc (s\d+) h\d+ 0x\w+ 40$", dump, re.M))
    marked = set(re.findall(r"^stack (s\d+) flags=1 ", dump, re.M))
    equal((True, set()), (bool(stacks), stacks & marked), "no frame pointers: no stack is a guess")


libwin.begin_prefix()
for BITS in libwin.WIDTHS:
    libwin.cross_compile_cxx(BITS, f"exercise2_{BITS}.exe", PROGRAM)
    TABLE = Table(libwin.Names(BITS, f"exercise2_{BITS}.exe"))
    HANDLE = record(BITS, f"whole{BITS}.tide")
    heap(BITS, f"whole{BITS}.tide", TABLE, HANDLE)
    commits(f"{BITS} bits", f"whole{BITS}.tide", TABLE)
    record(BITS, f"shelf{BITS}.tide", EX2_PARTIAL="1")
    shelf(f"{BITS} bits", f"shelf{BITS}.tide", TABLE)
if 32 in libwin.WIDTHS:
    bare()
libwin.end_prefix()
libwin.end()
