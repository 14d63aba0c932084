#!/usr/bin/env python3
"""guest/attach with a hundred rounds of attaching and leaving instead of twenty."""
# timeout: 600
# soak: only
import os
import sys

os.environ["ATTACH_ROUNDS"] = "100"
ATTACH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "attach.py")
os.execv(sys.executable, [sys.executable, ATTACH, "twenty_times"])
