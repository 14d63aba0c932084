#!/usr/bin/env python3
"""real/jit with all hostile lists, and with what is asked of a runtime."""
# timeout: 600
# soak: only
import os
import sys

os.environ["JIT_ALL"] = "1"
JIT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "jit.py")
os.execv(sys.executable, [sys.executable, "-B", JIT])
