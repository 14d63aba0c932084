#!/usr/bin/env python3
"""guest/i386 with a library that is loaded 16,600 times."""
# timeout: 600
# soak: only
import os
import sys

os.environ["CALLS_ALL"] = "1"
I386 = os.path.join(os.path.dirname(os.path.abspath(__file__)), "i386.py")
os.execv(sys.executable, [sys.executable, "-B", I386, "however_many_were_loaded"])
