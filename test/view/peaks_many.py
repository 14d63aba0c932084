#!/usr/bin/env python3
# soak: only
# timeout: 600
"""Peaks of a long window, which are looked for in buckets: the highest is the trace's, and each is
where it is said to be."""

from libanswer import make
from libschema import valid
from libtests import main, test
from libview import Server


@test
def peaks_of_millions_of_steps_are_where_they_are_said_to_be():
    make("many.tide", 20, 50, 9500000)
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


main()
