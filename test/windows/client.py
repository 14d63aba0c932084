#!/usr/bin/env python3
"""tidemark.h in Windows programs of both sizes: marks, phases, names of threads, pools and pauses
stand where they were said; and a sampled recording is one."""
# timeout: 400
# parallel: yes
import os
import re
import subprocess

import libwin
from libwin import ask, check

libwin.need_wine()
EXE = libwin.built("tidemark.exe")
PROGRAM = os.path.join(libwin.SOURCE, "test", "programs", "win", "client.c")


def record(bits, trace, *words, options=(), code=0):
    done = libwin.wine(EXE, "record", *options, "-o", trace, "--",
                       libwin.windows_path(f"client{bits}.exe"), *words, prefix="prefix",
                       text=True)
    check(f"{bits} bits {words} {options}: it ran",
          done.returncode == code and ", 0 events lost" in done.stderr, done)
    return done.stdout


def items(trace):
    """Marks by name, allocations by size, pauses: in their order."""
    said = subprocess.run([os.environ["TIDEMARK"], "dump", "--items", trace], capture_output=True,
                          text=True, check=True).stdout
    found = []
    for line in said.splitlines():
        mark = re.match(r'@\d+ t\d+ mark .*"(.*)"', line) or re.match(r'@\d+ mark .*"(.*)"', line)
        block = re.match(r"@\d+ t\d+ malloc s\d+ h\d+ 0x\w+ (760\d)$", line)
        if mark:
            found.append(mark[1])
        elif block:
            found.append(int(block[1]))
        elif re.match(r"@\d+ .*\b(pause|resume)\b", line):
            found.append(re.search(r"\b(pause|resume)\b", line)[1])
    return found


def marks(bits, trace):
    found = items(trace)
    check(f"{bits} bits: 100 marks, each between its blocks",
          found[:300] == [7601, "between", 7602] * 100, found[:300])
    # Of different threads: within a tick of the clock either may come first.
    check(f"{bits} bits: the phase holds its ten blocks",
          [one for one in found if one in ("work.begin", 7603, "work.end")] ==
          ["work.begin"] + [7603] * 10 + ["work.end"], found[300:])
    check(f"{bits} bits: the pause holds no block",
          [one for one in found if one in (7605, "pause", "resume")] ==
          [7605] * 20 + ["pause", "resume"], found[300:])
    rows = ask("window", trace, "--by", "thread", "--size", "7603")["rows"]
    name = [thread["name"] for thread in threads(trace) if thread["tid"] == rows[0]["keys"]["thread"]]
    check(f"{bits} bits: the thread has its name", name == ["worker 3"], rows, name)
    freed = ask("window", trace, "--size", "7605")["total"]
    check(f"{bits} bits: frees in a pause are recorded", freed["freed_count"] == 20, freed)


def threads(trace):
    said = subprocess.run([os.environ["TIDEMARK"], "dump", trace], capture_output=True, text=True,
                          check=True).stdout
    names = {number: "" for number in re.findall(r"^thread t(\d+)", said, re.M)}
    tids = dict(re.findall(r"^thread t(\d+) .*tid=(\d+)", said, re.M))
    names.update(re.findall(r'^thread t(\d+) .*"(.*)"$', said, re.M))
    names.update(re.findall(r'^@\d+ thread-name t(\d+) "(.*)"$', said, re.M))
    return [{"tid": int(tids[number]), "name": name} for number, name in names.items()]


def described(bits, trace):
    """The system's own names of threads, where it tells them (Windows 10, Wine 7 and later)."""
    rows = ask("window", trace, "--by", "thread", "--size", "7606")["rows"]
    name = [thread["name"] for thread in threads(trace) if thread["tid"] == rows[0]["keys"]["thread"]]
    check(f"{bits} bits: a thread that named itself to the system has that name",
          name == ["described"], name)


def pools(bits, trace):
    rows = {row["keys"]["heap"]: row for row in
            ask("window", trace, "--by", "heap", "--to", "mark:pooled")["rows"]}
    row = rows.get("nodes")
    check(f"{bits} bits: the pool has its blocks",
          row and (row["count"], row["freed_count"], row["impacting_size"]) ==
          (65, 33, 31 * 24 + 48), row)
    row = ask("window", trace, "--heap", "nodes", "--to", "mark:reset")["total"]
    check(f"{bits} bits: a reset ends them", row["impacting_size"] == 0, row)


def sampled(bits):
    """200,000 blocks of 100 bytes, a hundred thousand resized to 50: the estimates are near, and
    the trace is small."""
    said = record(bits, "sample.tide", "sample", options=("--sample", "4K", "--force"))
    made, size = map(int, re.search(r"made (\d+) bytes (\d+)", said).groups())
    heap = ask("report", "sample.tide", "--size", "50", "--size", "100")["heap"]
    allocated = heap["allocated_bytes"]
    expected = size + made / 2 * 50
    # 25 MB in samples of 4 KiB: some 6,100 of them, so 1.3 % is one standard deviation.
    check(f"{bits} bits: {allocated} of {expected} bytes are estimated",
          abs(allocated - expected) < 0.08 * expected, allocated, expected)
    live = ask("window", "sample.tide", "--from", "mark:full", "--to", "mark:full",
               "--size", "50")["total"]
    # Some 1,230 samples: 2.9 % is one standard deviation.
    check(f"{bits} bits: the blocks that lived at the mark are estimated",
          abs(live["count"] - made / 2) < 0.15 * made / 2 and live["orphan_frees"] is None, live)
    end = ask("window", "sample.tide", "--size", "50")["total"]
    check(f"{bits} bits: none of them lives on", end["impacting_size"] == 0, end)
    check(f"{bits} bits: little is written", os.path.getsize("sample.tide") < 400000)


libwin.begin_prefix()
for BITS in libwin.WIDTHS:
    libwin.cross_compile(BITS, f"client{BITS}.exe", "-I", libwin.SOURCE, "-fno-omit-frame-pointer",
                         "-fno-optimize-sibling-calls", PROGRAM)
    alone = libwin.wine(f"./client{BITS}.exe", prefix="prefix")
    check(f"{BITS} bits: unrecorded, it finds nobody", alone.returncode == 3, alone)
    for OPTIONS in ((), ("--clock=ns",)):
        TRACE = f"client{BITS}{len(OPTIONS)}.tide"
        record(BITS, TRACE, options=OPTIONS)
        marks(BITS, TRACE)
        pools(BITS, TRACE)
    described(BITS, TRACE)
    sampled(BITS)
    record(BITS, f"paused{BITS}.tide", options=("--paused",))
    FOUND = items(f"paused{BITS}.tide")
    check(f"{BITS} bits: --paused records no block until the program resumes",
          [each for each in FOUND if isinstance(each, int)] == [], FOUND)
libwin.end_prefix()
libwin.end()
