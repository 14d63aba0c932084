#!/usr/bin/env -S python3 -B
# timeout: 7200
# soak: only
"""The order protocol in more states: three operations of each thread, and three threads."""
import liborder
from libtests import main

liborder.register([
    {"THREADS": 2, "BLOCKS": 2, "SLOTS": 1, "OPERATIONS": 3},
    {"THREADS": 2, "BLOCKS": 2, "SLOTS": 2, "OPERATIONS": 3, "LANES": 3},
    {"THREADS": 2, "BLOCKS": 2, "SLOTS": 1, "OPERATIONS": 3, "DIRECT": 1},
    {"THREADS": 3, "BLOCKS": 1, "SLOTS": 1, "OPERATIONS": 2},
], {}, "-O2")
main()
