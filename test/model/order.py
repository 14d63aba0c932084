#!/usr/bin/env -S python3 -B
# timeout: 600
# parallel: yes
"""The order protocol, checked in every state; and each of its rules, left out, is caught."""
import liborder
from libtests import main

liborder.register([
    {"THREADS": 2, "BLOCKS": 2, "SLOTS": 1, "OPERATIONS": 2},
    {"THREADS": 2, "BLOCKS": 2, "SLOTS": 2, "OPERATIONS": 2, "LANES": 3},
    {"THREADS": 2, "BLOCKS": 2, "SLOTS": 1, "OPERATIONS": 2, "DIRECT": 1},
    {"THREADS": 3, "BLOCKS": 1, "SLOTS": 1, "OPERATIONS": 1},
], {
    "FREE_AFTERWARDS": {"OPERATIONS": 2},
    "CHECK_EARLY": {"OPERATIONS": 3},
    "PUBLISH_LATE": {"OPERATIONS": 2},
    "NO_UNDO": {"OPERATIONS": 3},
    "LANE_RESET": {"OPERATIONS": 2},
    "STORE": {"OPERATIONS": 3},
}, "-O0")
main()
