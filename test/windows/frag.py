#!/usr/bin/env python3
"""tracefrag's question, under Wine: a 32-bit program with thousands of small reservations. Free
memory, the largest free block and what is wasted are those of the program's own VirtualQuery walk, to
the byte; the guilty stack is named; `map --tracefrag` lists the same reservations."""
# timeout: 400
# parallel: yes
import os
import re
import subprocess

import libwin
from libwin import ask, check, equal

libwin.need_wine(32)
EXE = libwin.built("tidemark.exe")
PROGRAM = os.path.join(libwin.SOURCE, "test", "programs", "win", "frag.c")
SLOT, PAGE = 65536, 4096


def own_walk(said, mark):
    found = re.search(rf"frag: mark {mark} free (\d+) largest (\d+) regions (\d+) "
                      r"unusable (\d+) end (\w+)", said)
    return int(found[1]), int(found[2]), int(found[4]), found[5]


def tracefrag(*filters):
    """{the program's own function: its reservations}"""
    done = subprocess.run([os.environ["TIDEMARK"], "map", "frag.tide", "--tracefrag", *filters],
                          capture_output=True, text=True, check=True)
    stacks, frames = {}, []
    for line in done.stdout.splitlines():
        line = re.sub(r"^\d{17} \d+ \d+\.\d\d: trcmem32: ", "", line)
        if line.startswith("0x"):
            frames = []
        elif line.startswith("  ["):
            frames.append(line)
        else:
            number, address, size, kind, protection, made, freed = line.split()
            own = next((name for name in map(function, frames) if name), None)
            stacks.setdefault(own, []).append(
                (int(address, 16), int(size), kind, protection, int(made), int(freed)))
            assert number.startswith("#")
    return stacks


def function(line):
    """Of a frame's line, if it is one of frag.c's."""
    own = re.search(r" frag32\.exe(?:!(\w+)|\+0x(\w+))", line)
    if not own:
        return None
    if own[1]:
        return own[1]
    return NAMES.stack([{"inlined": False, "module": "frag32.exe", "offset": int(own[2], 16)}])[0]


libwin.begin_prefix()
libwin.cross_compile(32, "frag32.exe", "-I", libwin.SOURCE, "-fno-omit-frame-pointer",
                     "-fno-optimize-sibling-calls", PROGRAM)
NAMES = libwin.Names(32, "frag32.exe")
DONE = libwin.wine(EXE, "record", "-o", "frag.tide", "--", libwin.windows_path("frag32.exe"),
                   prefix="prefix", text=True)
libwin.cross_compile(32, "large32.exe", "-I", libwin.SOURCE, "-Wl,--large-address-aware", PROGRAM)
LARGE = libwin.wine(EXE, "record", "-o", "large.tide", "--", libwin.windows_path("large32.exe"),
                    prefix="prefix", text=True)
libwin.end_prefix()
equal((0, True), (DONE.returncode, ", 0 events lost" in DONE.stderr), f"it is recorded ({DONE})")

# The walk that the recorder makes when the reservation fails sees what the system maps by itself:
# from then on nothing is left to name.
free, largest, unusable, end = own_walk(DONE.stdout, "ended")
ended = ask("map", "frag.tide", "--at", "mark:ended", "--range", f"0..{end}")
equal(free, ended["free"], "free bytes are those of the program's own walk")
equal(largest, ended["largest_free_slots"] * SLOT, "and the largest free block")
equal(unusable, ended["unusable"], "and the unusable rest of slots")
# A program of 32 bits has 2 GiB, unless its image says that it can take more.
whole = ask("map", "frag.tide", "--at", "mark:ended")
equal((0x10000, int(end, 16), free - 0x10000),
      (int(whole["low"], 16), int(whole["high"], 16), whole["free"]), "what it may map is its own")
check("which is 2 GiB", int(end, 16) <= 1 << 31, end)
large = ask("map", "large.tide", "--at", "mark:ended")
equal(own_walk(LARGE.stdout, "ended")[3], large["high"][2:], "and more, where it asked for more")
check("which is nearly 4 GiB", int(large["high"], 16) > 3 << 30, large["high"])

# Before it: all but what the system took by itself since the program began.
free, largest, unusable, end = own_walk(DONE.stdout, "broken")
broken = ask("map", "frag.tide", "-n", "0", "--at", "mark:broken", "--range", f"0..{end}")
system = sum(ended["owners"][owner] - broken["owners"][owner] for owner in ("kernel", "file"))
ours = ended["owners"]["tidemark"] - broken["owners"]["tidemark"]
equal(free, broken["free"] - system - ours, "without a walk too, but for what the system and "
      f"tidemark took since the last one ({system} and {ours} bytes)")

guilty = broken["rows"][0]
equal("hoard", NAMES.stack(guilty["stack"])[0], "the guilty stack comes first")
equal((2000, 2000 * PAGE, 2000 * (SLOT - PAGE)),
      (guilty["count"], guilty["bytes"], guilty["waste"]), "its count, bytes and waste")
rows = {NAMES.stack(row["stack"])[0]: row for row in broken["rows"] if NAMES.stack(row["stack"])}
equal((200, 0), (rows["tidy_up"]["count"], rows["tidy_up"]["waste"]), "whole slots waste nothing")
equal((1, SLOT - 3 * PAGE), (rows["churn"]["count"], rows["churn"]["waste"]), "one of churn's lives")
failed = [each for each in ended["failures"] if each["size"] == 0x7ff00000]
equal(["reserve_all"], [NAMES.stack(each["stack"])[0] for each in failed], "who failed is named")

listed = tracefrag()
equal({"hoard", "churn"}, {name for name in listed if name in
                           ("hoard", "churn", "tidy_up", "commit_more", "reserve_all")},
      "tracefrag's format lists what leaves a part of its slot")
equal({(PAGE, "3000", "4", 0)}, {(size, kind, protection, freed) for
                                 _at, size, kind, protection, _made, freed in listed["hoard"]},
      "sizes, types and protections of hoard's, none freed")
# TRCMEM_SKIP_STACK_WITH_SYMBOL: stacks with a function of that name are left out.
skipped = tracefrag("--not-frame", "^hoard$")
equal((0, 1000), (len(skipped.get("hoard", [])), len(skipped["churn"])), "--not-frame leaves a stack out")
rest = ask("map", "frag.tide", "-n", "0", "--at", "mark:broken", "--not-frame", "^(hoard|tidy_up)$")
equal((set(), 1), ({"hoard", "tidy_up"} & {(NAMES.stack(row["stack"]) or [""])[0] for row in rest["rows"]},
                   sum(NAMES.stack(row["stack"])[:1] == ["churn"] for row in rest["rows"])),
      "and two, from the rows")
equal(2000, len({row[0] for row in listed["hoard"]}), "2,000 different addresses")
equal((1000, 999), (len(listed["churn"]), sum(row[5] > 0 for row in listed["churn"])),
      "churn's were made 1,000 times, and freed 999 times")
equal({(3 * PAGE, "2000", "1")}, {row[1:4] for row in listed["churn"]}, "reserved alone")
libwin.end()
