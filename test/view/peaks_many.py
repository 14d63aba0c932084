#!/usr/bin/env python3
# soak: only
# timeout: 600
"""Peaks of a long window, which are looked for in buckets: the highest is the trace's, and each is
where it is said to be."""
import os
import subprocess
import sys

from libview import Server, valid, main

tests = []


def test(function):
    tests.append(function)
    return function


@test
def peaks_of_millions_of_steps_are_where_they_are_said_to_be():
    bench = os.path.join(os.environ["TIDEMARK_BUILD"], "test/bench/window_bench")
    subprocess.run([bench, "make", "20", "50", "9500000", "many.tide"], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with Server("many.tide") as server:
        highest = server.ask("/api/view")["peak"]["heap"]
        peaks = valid(server.ask("/api/peaks?n=50"), "view-peaks")["peaks"]
        assert highest["bytes"] in [peak["bytes"] for peak in peaks], (highest, peaks)
        assert max(peak["bytes"] for peak in peaks) == highest["bytes"]
        for peak in peaks[:5]:
            begin = max(peak['time_ns'] - 200000, 0)
            level = server.ask(f"/api/window?by=none&details=1&from={begin}ns"
                               f"&to={peak['time_ns']}ns")["total"]
            assert level["peak_size"] >= peak["bytes"], (level, peak)


if __name__ == "__main__":
    sys.exit(main(tests))
