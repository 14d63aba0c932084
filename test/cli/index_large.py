#!/usr/bin/env python3
# soak: only
# timeout: 3600
"""Fifty million blocks that live at once, within the memory that is allowed.

Needs 2 GB of memory for the trace's maker, and 5 GB of disk.
"""
import json
import os
import shutil
import subprocess
import sys

from libtests import run_all

TIDEMARK = os.environ["TIDEMARK"]
BENCH = os.path.join(os.environ["TIDEMARK_BUILD"], "test", "bench", "window_bench")
MIB = 1 << 20
tests = []


def test(function):
    tests.append(function)
    return function


def peak(path, *words):
    """The answer, and the most memory that was resident, by the kernel's own mark."""
    with open("answer.json", "w+", encoding="utf-8") as out:
        running = subprocess.Popen([TIDEMARK, "window", path, "--json", "--progress", "none",
                                    *words], stdout=out, stderr=subprocess.PIPE, text=True)
        err = running.stderr.read()
        _, status, usage = os.wait4(running.pid, 0)
        running.returncode = os.waitstatus_to_exitcode(status)
        assert running.returncode == 0, err
        out.seek(0)
        return json.load(out), usage.ru_maxrss * 1024, err


@test
def fifty_million_living_blocks_fit():
    subprocess.run([BENCH, "make", "100000", "50000000", "110000000", "alive.tide"], check=True)
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


if __name__ == "__main__":
    sys.exit(run_all(tests))
