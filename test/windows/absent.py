#!/usr/bin/env python3
"""Commands and options that a system lacks are refused in words: that they are not available on this
system, why, and what to use."""
# timeout: 120
# parallel: yes
import os
import subprocess

import libwin
from libwin import check

libwin.need_wine()
EXE = libwin.built("tidemark.exe")


def refused(done, code, name, system):
    check(f"{name} on {system}", done.returncode == code and not done.stdout and
          f"{name} is not available on {system}: " in done.stderr, done)


libwin.begin_prefix()
for option in ("--strict-vm", "--rss-exact", "--index"):
    done = libwin.wine(EXE, "record", option, "--", "cmd.exe", "/c", "exit", prefix="prefix", text=True)
    refused(done, 125, option, "Windows")
done = libwin.wine(EXE, "plot", "x.tide", "live", "-o", "x.svg", prefix="prefix", text=True)
check("no remedy of another system is named", done.returncode != 0 and "apt" not in done.stderr, done)
libwin.end_prefix()
done = subprocess.run([os.environ["TIDEMARK"], "watch", "x.exe"], capture_output=True, text=True, check=False)
refused(done, 2, "watch", "Linux")
libwin.end()
