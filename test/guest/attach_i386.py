#!/usr/bin/env python3
"""Programs of 32 bits that run already are attached to as those of 64: the same tests, with the same
programs."""
# timeout: 240
import os

os.environ["GUEST_BITS"] = "32"

# pylint: disable=wrong-import-position
import libguest
from libguest import main
from libtests import take

if not os.path.exists(libguest.LIBRARY_32):
    print("1..0 # SKIP this build has no recorder for 32-bit programs")
    raise SystemExit(77)
take("attach")
take("before")
main()
