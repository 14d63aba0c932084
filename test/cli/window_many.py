#!/usr/bin/env python3
# soak: only
# timeout: 600
"""Lifetimes of more allocations than the engine keeps at once: found by counting instead."""
import json

from libanswer import make, run

EVENTS = 18000000  # each of two threads keeps two million lifetimes, in room for four


make("many.tide", 20, 50, EVENTS)
total = json.loads(run("window", "many.tide", "--by", "none", "--json").stdout)["total"]
assert total["allocated_count"] > 2 << 22, total
assert 0 <= total["lifetime_median_ns"] < total["lifetime_p99_ns"], total
