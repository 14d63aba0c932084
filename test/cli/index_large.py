#!/usr/bin/env python3
# soak: only
# timeout: 3600
"""Fifty million blocks that live at once, within the memory that is allowed.

Needs 2 GB of memory for the trace's maker, and 5 GB of disk.
"""
import json
import os
import shutil

from libanswer import make, measured
from libtests import main, test

MIB = 1 << 20


def peak(path, *words):
    out, said, most = measured("window", path, "--json", "--progress", "none", *words)
    return json.loads(out), most, said


@test
def fifty_million_living_blocks_fit():
    make("alive.tide", 100000, 50000000, 110000000)
    words = ("--by", "impact", "-c", "size,count", "--from", "30%", "--to", "90%")
    answer, bytes_peak, said = peak("alive.tide", *words)
    print(f"# built: {bytes_peak / MIB:.0f} MiB", flush=True)
    assert "temporary files" in said, said
    assert bytes_peak <= 256 * MIB, bytes_peak
    again, bytes_peak, said = peak("alive.tide", *words)
    print(f"# asked: {bytes_peak / MIB:.0f} MiB", flush=True)
    assert again == answer and said == "" and bytes_peak <= 256 * MIB, (bytes_peak, said)
    whole, _, _ = peak("alive.tide", "--by", "none")
    assert whole["total"]["impacting_size"] > 50000000 * 24, whole["total"]
    shutil.rmtree("alive.tide-index")
    os.unlink("alive.tide")


main()
