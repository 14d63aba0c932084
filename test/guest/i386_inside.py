#!/usr/bin/env python3
"""In programs of 32 bits, too: an allocator whose functions call each other, signals and jumps in the
midst of it, memory that is taken away, and filters."""
# timeout: 240
# parallel: yes
import os

os.environ["GUEST_BITS"] = "32"

# pylint: disable=wrong-import-position
from libguest import main, need_32_bits
from libtests import take

take("layered")
take("nested")
take("jumps")
take("unmaps", "what_")
take("sandbox", "calls_that", "next_to_nothing", "threads_that_begin", "take_over")
main(needs=need_32_bits)
