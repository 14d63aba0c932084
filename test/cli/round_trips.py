#!/usr/bin/env python3
# parallel: yes
"""What was exported and is imported again answers the same, as far as the format says it."""
import json
import os
import subprocess

from libanswer import TIDEMARK, answer, run
from libtests import case, main

CODE = "x = [str(i) * 20 for i in range(1000)]; y = x[::2]; del x; z = bytearray(10)\n" \
       "for i in range(50): z += b'0' * 1000"
LEVELS = ("allocations", "frees", "allocated_bytes", "peak_bytes", "live_at_exit")
# Format, and what it says: figures of the report, and keys by which windows are the same.
PAIRS = (
    ("csv", LEVELS + ("reallocations", "peak_count"), ("size", "stack", "thread"), True),
    ("jsonl", LEVELS + ("reallocations", "peak_count"), ("size", "stack", "thread"), True),
    ("heaptrack", LEVELS + ("peak_count",), ("size", "stack"), True),
    # A realloc is an end and a beginning, in this order: so the peak is right.
    ("memory_tracker", LEVELS, ("size",), True),
    ("heaplog", ("allocations", "frees", "allocated_bytes", "live_at_exit"), ("size",), True),
    ("pprof", ("allocations", "frees", "allocated_bytes", "live_at_exit"), ("stack",), False),
    ("dhat", ("live_at_exit",), (), False),
    ("massif", (), (), False),
)


def record():
    if not os.path.exists("app.tide"):
        subprocess.run([TIDEMARK, "record", "-o", "app.tide", "--", "/usr/bin/python3", "-S", "-c",
                        CODE + "\nimport os\nos._exit(0)"], check=True, stderr=subprocess.DEVNULL,
                       env={**os.environ, "PYTHONMALLOC": "malloc"})
    return "app.tide"


def figures(path, names):
    heap = answer("report", path)["heap"]
    return {name: heap[name] for name in names}


def sums(path, key, window):
    """Sums by key, in a window in the middle, too, where the format has times or at least an order."""
    found = {}
    words = ("--from", window[0], "--to", window[1]) if window else ()
    # Thousands of stacks: their schema is checked elsewhere.
    said = run("window", path, "--by", key, "--all-frames", "-n", "0", "--json", *words).stdout
    for row in json.loads(said)["rows"]:
        name = row["keys"][key]
        if key == "stack":
            # Imports have names for frames, recordings a place as well where a name is missing.
            name = tuple(frame["function"] or "?" for frame in name)
        sum_of = found.setdefault(str(name), [0, 0])
        sum_of[0] += row["allocated"]
        sum_of[1] += row["impacting_size"]
    return found


def round_trip(name, told, keys, orders):
    whole = record()
    run("export", whole, "--format", name, "-o", "out." + name + ".gz")
    run("import", "out." + name + ".gz", "-o", name + ".tide")
    before, after = figures(whole, told), figures(name + ".tide", told)
    assert after == before, (after, before)
    for key in keys:
        before, after = sums(whole, key, None), sums(name + ".tide", key, None)
        if key == "stack":
            named = [row for row in before if "?" not in row]
            before = {row: before[row] for row in named}
            after = {row: after.get(row) for row in named}
        if key == "thread":
            before, after = list(before.values()), list(after.values())
        assert after == before, (key, after, before)
    if not orders:
        return
    # The order is kept, so a window between two events is the same wherever the clock has them.
    for row in ("size",):
        assert sums(name + ".tide", row, ("begin", "peak")) == sums(whole, row, ("begin", "peak")), name


for pair in PAIRS:
    case(f"{pair[0]}, exported and imported again, answers the same", round_trip, *pair)
main()
