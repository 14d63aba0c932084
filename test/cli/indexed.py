#!/usr/bin/env python3
# timeout: 300
# parallel: yes
"""What is proved of windows is proved of those from an index too.

Small traces are answered from a list of all lifetimes, so the other scripts of this folder never
see an index. Here they run again, each with an index for every trace, whose blocks are so small
that a few hundred events take every path.
"""
import os
import subprocess
import sys

from libtests import case, main

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPTS = ["window", "window_golden", "window_tree", "exercise2_commits", "transients",
           "growth", "diff", "plot"]


def indexes(folder):
    return sum(name.endswith(".tide-index") for where, names, files in os.walk(folder)
               for name in names)


def again(name):
    os.mkdir(name)
    done = subprocess.run([sys.executable, "-B", os.path.join(HERE, name + ".py")], cwd=name,
                          env={**os.environ, "TIDEMARK_INDEX": "tiny"}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said = "\n".join(line for line in done.stdout.splitlines() if not line.startswith("ok"))
    assert done.returncode == 0, (done.returncode, said)
    assert indexes(name) > 0, said


for script in SCRIPTS:
    case(f"{script}, with an index of every trace", again, script)
main()
