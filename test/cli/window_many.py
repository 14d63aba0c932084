#!/usr/bin/env python3
# soak: only
# timeout: 600
"""Lifetimes of more allocations than the engine keeps at once: found by counting instead."""
import json
import os
import subprocess
import sys

TIDEMARK = os.environ["TIDEMARK"]
EVENTS = 18000000  # each of two threads keeps two million lifetimes, in room for four


def main():
    bench = os.path.join(os.environ["TIDEMARK_BUILD"], "test/bench/window_bench")
    subprocess.run([bench, "make", "20", "50", str(EVENTS), "many.tide"], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    done = subprocess.run([TIDEMARK, "window", "many.tide", "--by", "none", "--json"],
                          capture_output=True, text=True)
    assert done.returncode == 0, (done.returncode, done.stderr)
    total = json.loads(done.stdout)["total"]
    assert total["allocated_count"] > 2 << 22, total
    assert 0 <= total["lifetime_median_ns"] < total["lifetime_p99_ns"], total


if __name__ == "__main__":
    sys.exit(main())
