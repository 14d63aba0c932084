#!/usr/bin/env python3
"""Every legal use of the calls on virtual memory: what `map` says of each allocation at the end is what
the program's own VirtualQuery walk says, and the function that made it is named. Calls in random
order: so it is of the whole address space. In both sizes."""
# timeout: 300
# parallel: yes
import os
import re
import subprocess

import libwin
from libwin import ask, check, equal

libwin.need_wine()
EXE = libwin.built("tidemark.exe")
PROGRAMS = os.path.join(libwin.SOURCE, "test", "programs", "win")
SLOT = 65536
SEEDS = (2, 6, 7)
STEPS = 1000


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


def record(trace, program, *arguments):
    done = libwin.wine(EXE, "record", "-o", trace, "--", libwin.windows_path(program), *arguments,
                       prefix="prefix", text=True)
    check(f"{program} {arguments}: it is recorded", done.returncode == 0 and ", 0 events lost" in done.stderr, done)
    return done


def differences(walked, ranges):
    """Where two lists of (start, end, kind) do not agree: [(start, end, of the one, of the other)]"""
    edges = sorted({edge for each in walked + ranges for edge in each[:2]})
    both = []
    for regions in walked, ranges:
        kinds, at = [], 0
        for edge in edges:
            while at < len(regions) and regions[at][1] <= edge:
                at += 1
            kinds.append(regions[at][2] if at < len(regions) and regions[at][0] <= edge else "-")
        both.append(kinds)
    return [(low, high, one, other) for low, high, one, other in zip(edges, edges[1:], *both) if one != other]


def try_random(bits, seed):
    program, trace = f"vmrandom{bits}.exe", f"vmrandom{bits}.{seed}.tide"
    said = record(trace, program, str(seed), str(STEPS)).stdout
    walked = [(int(start, 16), int(end, 16), kind)
              for start, end, kind in re.findall(r"^region (\w+) (\w+) (\w)$", said, re.M)]
    mine = [(int(start, 16), int(end, 16), kind)
            for start, end, kind in re.findall(r"^mine (\w+) (\w+) (\w)$", said, re.M)]
    own = [each[:2] for each in mine if each[2] == "p"]  # what is committed in a view, another view may have done
    check(f"{bits} bits, {seed}: much is done", len(walked) > 50 and own, said)
    for moment in (("--at", "mark:calls"), ()):
        ranges = [(int(each["start"], 16), int(each["end"], 16), "c" if each["committed"] else "r", each["owner"])
                  for each in ask("map", trace, "-n", "0", "--process", "0", *moment)["ranges"]]
        wrong = []
        for low, high, one, other in differences(walked, ranges):
            # Of files it is not asked what is committed, and so they are not of the walk.
            file = one == "c" and other == "r" and any(start <= low < end and owner in ("file", "library", "tidemark")
                                                       for start, end, _kind, owner in ranges)
            # Wine calls so what Linux has mapped for itself since.
            linux = one == "r" and other == "-" and not any(low < end and start < high for start, end, _kind in mine)
            ours = not moment or any(low < end and start < high for start, end in own)
            if ours and not file and not linux:
                wrong.append((hex(low), hex(high), one, other))
        check(f"{bits} bits, {seed}, {moment or 'end'}: what is reserved and committed is what VirtualQuery says",
              not wrong, wrong)
    views = [start for start, _end, kind in mine if kind == "f"]
    equal(["file"] * len(views), [each[3] for view in views for each in ranges if each[0] <= view < each[1]],
          f"{bits} bits, {seed}: views of a file are a file's")


def try_size(bits):
    program, trace = f"vmcalls{bits}.exe", f"vmcalls{bits}.tide"
    libwin.cross_compile(bits, program, "-I", libwin.SOURCE, "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls",
                         os.path.join(PROGRAMS, "vmcalls.c"))
    done = record(trace, program)
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
    libwin.cross_compile(width, f"vmrandom{width}.exe", "-I", libwin.SOURCE, os.path.join(PROGRAMS, "vmrandom.c"))
    for number in SEEDS:
        try_random(width, number)
libwin.end_prefix()
libwin.end()
