#!/usr/bin/env python3
"""Every legal use of the calls on virtual memory: what `map` says of each allocation at the end is what
the program's own VirtualQuery walk says, and the function that made it is named. In both sizes."""
# timeout: 300
# parallel: yes
import os
import re
import subprocess

import libwin
from libwin import ask, check, equal

libwin.need_wine()
EXE = libwin.built("tidemark.exe")
PROGRAM = os.path.join(libwin.SOURCE, "test", "programs", "win", "vmcalls.c")
SLOT = 65536


def within(ranges, start, size):
    """(bytes mapped, bytes committed) in [start, start + size)"""
    mapped = committed = 0
    for each in ranges:
        low, high = int(each["start"], 16), int(each["end"], 16)
        part = min(high, start + size) - max(low, start)
        if part > 0:
            mapped += part
            committed += part if each["committed"] else 0
    return mapped, committed


def reservations(trace, names):
    """What tracefrag's list says: {address: the program's function}"""
    done = subprocess.run([os.environ["TIDEMARK"], "map", trace, "--tracefrag"], capture_output=True,
                          text=True, check=True)
    found, frames = {}, []
    for line in done.stdout.splitlines():
        line = re.sub(r"^\d{17} \d+ \d+\.\d\d: trcmem\d\d: ", "", line)
        if line.startswith("0x"):
            frames = []
        elif line.startswith("  ["):
            frames.append(line)
        else:
            named = [re.search(r"\.exe!(\w+)", frame) for frame in frames]
            found[int(line.split()[1], 16)] = [name[1] for name in named if name and name[1] in names]
    return found


def try_size(bits):
    program, trace = f"vmcalls{bits}.exe", f"vmcalls{bits}.tide"
    libwin.cross_compile(bits, program, "-I", libwin.SOURCE, "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls",
                         PROGRAM)
    done = libwin.wine(EXE, "record", "-o", trace, "--", libwin.windows_path(program), prefix="prefix",
                       text=True)
    check(f"{bits} bits: it is recorded", done.returncode == 0 and ", 0 events lost" in done.stderr, done)
    for line in re.findall(r"vm: (?:failed )?\w+(?: no)?$", done.stdout, re.M):
        print(f"{bits} bits: not in this Wine: {line}")
    walked = {}
    for name, *figures in re.findall(r"vm: (\w+) (\w+) (\w+) (\w+) (\w+)$", done.stdout, re.M):
        walked[name] = [int(figure, 16) for figure in figures]
    check(f"{bits} bits: the program came to its end", len(walked) > 15, done.stdout)

    # Before the walk that the recorder makes at the end, and behind it.
    early = ask("map", trace, "-n", "0", "--process", "0", "--at", "mark:done")
    answer = ask("map", trace, "-n", "0", "--process", "0")
    for name, (start, size, reserved, committed) in walked.items():
        equal([(reserved, committed)] * 2, [within(each["ranges"], start, size) for each in (early, answer)],
              f"{bits} bits: {name}: reserved and committed are those of VirtualQuery")
    listed = reservations(trace, set(walked) | {"placeholder"})
    for name in ("commit_alone", "commit_odd", "commit_by_nt", "commit_unreadable", "commit_read_only",
                 "write_watch", "unused_again", "decommit_all", "own_handle"):
        check(f"{bits} bits: {name} is in tracefrag's list, with its stack",
              listed.get(walked[name][0], [None])[0] == name, listed.get(walked[name][0]))

    elsewhere = int(re.search(r"vm: elsewhere (\d+)", done.stdout)[1])
    info = ask("info", trace)
    told = [each["calls_elsewhere"] for each in info["processes"]]
    check(f"{bits} bits: calls for another process are counted apart", elsewhere == 2 and
          told[0] == elsewhere and not any(told[1:]), told)
    own = [each for each in answer["ranges"] if int(each["end"], 16) - int(each["start"], 16) >= 99 * SLOT
           and each["owner"] == "program"]
    equal([], own, f"{bits} bits: and are not this one's memory")


libwin.begin_prefix()
for width in libwin.WIDTHS:
    try_size(width)
libwin.end_prefix()
libwin.end()
