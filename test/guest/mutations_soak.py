#!/usr/bin/env python3
"""guest/mutations with all rules."""
# timeout: 600
# soak: only
import os
import sys

os.environ["MUTATIONS_ALL"] = "1"
SHORT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mutations.py")
os.execv(sys.executable, [sys.executable, "-B", SHORT])
