#!/usr/bin/env python3
# parallel: yes
"""How many instructions an event costs in the program: the path that all programs take does not grow.

The processor counts them one by one (test/bench/steps.c), so the figures are the same on each run
and on each machine, given the compiler. Who makes the path longer by a tenth has to say so here;
who makes it shorter writes down the new figure.
"""
import bisect
import collections
import json
import os
import re
import subprocess

from libguest import BUILD, LIBRARY, Skip, check, main, record, test

COUNT = 50  # STEPS_COUNT
TOLERANCE = 1.10
STEPS = os.path.join(BUILD, "test", "bench", "bench_steps")
FRAMES = " with frame pointers"  # of the program's own functions

# Instructions in libtidemark.so for a pair of malloc and free, or a call of realloc. gcc 12, -O2.
FIGURES = {
    ("same", 5, False): 186,
    ("same", 40, False): 349,
    ("random", 15, False): 1013,
    ("turns", 15, False): 398,
    ("turns" + FRAMES, 15, False): 596,
    ("round", 15, False): 400,
    ("alike", 40, False): 554,
    ("outside", 40, False): 879,
    ("realloc", 10, False): 261,
    ("same", 5, True): 562,
    ("same", 40, True): 888,
    ("random", 15, True): 1291,
}


def code():
    """The library's functions as (address, name), and what is added to an offset in the file."""
    listing = subprocess.run(["nm", LIBRARY], check=True, stdout=subprocess.PIPE, text=True).stdout
    functions = sorted((int(words[0], 16), words[2]) for words in map(str.split, listing.splitlines())
                       if len(words) == 3 and words[1] in "tTwW")
    headers = subprocess.run(["readelf", "-lW", LIBRARY], check=True, stdout=subprocess.PIPE,
                             text=True).stdout
    load = re.search(r"LOAD +0x(\w+) 0x(\w+) .* R E ", headers)
    return functions, int(load[2], 16) - int(load[1], 16)


def counted(work, depth, free_stacks):
    options = ["--free-stacks"] if free_stacks else []
    program = STEPS + "_frames" if work.endswith(FRAMES) else STEPS
    record([program, "counts", "libtidemark.so", work.removesuffix(FRAMES), str(depth)], "--force",
           *options)
    functions, bias = code()
    starts = [start for start, _ in functions]
    found = collections.Counter()
    with open("counts", encoding="ascii") as file:
        for line in file:
            offset, times = line.split()
            at = bisect.bisect_right(starts, int(offset, 16) + bias) - 1
            found[functions[at][1]] += int(times)
    return found


@test
def an_event_costs_no_more_instructions_than_it_did():
    options = subprocess.run(["meson", "introspect", "--buildoptions", BUILD], check=True,
                             stdout=subprocess.PIPE, text=True).stdout
    level = next(option["value"] for option in json.loads(options)
                 if option["name"] == "optimization")
    if level != "2":
        raise Skip(f"built with -O{level}; the figures are of -O2")
    grown = []
    for (work, depth, free_stacks), figure in FIGURES.items():
        found = counted(work, depth, free_stacks)
        total = sum(found.values()) / COUNT
        name = f"{work} {depth}{' with stacks of frees' if free_stacks else ''}"
        most = ", ".join(f"{function} {times / COUNT:.0f}"
                         for function, times in found.most_common(5))
        print(f"# {name}: {total:.1f}, was {figure} ({most})")
        check(total > figure / 3, f"{name}: only {total:.1f} instructions were counted")
        if total > figure * TOLERANCE:
            grown.append(f"{name}: {total:.1f} instead of {figure} ({most})")
    check(not grown, "\n".join(grown))


main()
