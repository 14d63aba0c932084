#!/usr/bin/env python3
"""Programs of 32 bits that run already are attached to as those of 64: the same tests, with the same
programs."""
# timeout: 240
# parallel: yes
import os

os.environ["GUEST_BITS"] = "32"
os.environ.setdefault("ATTACH_ROUNDS", "8")

# pylint: disable=wrong-import-position
from libguest import main, need_32_bits
from libtests import take

take("attach")
take("before")
main(needs=need_32_bits)
