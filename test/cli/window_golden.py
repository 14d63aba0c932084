#!/usr/bin/env python3
# parallel: yes
"""Windows as a person sees them: each command below prints its file of test/golden, word for word.

After a change that is meant, run with TIDEMARK_ACCEPT=1 to keep what comes out now, and read the
difference before committing it.
"""
import json

from libanswer import assemble, golden, run
from libtests import case, main

GOLDEN = [
    ("kitchen", "window.kitchen.txt", []),
    ("kitchen", "window.kitchen.function.txt", ["--by", "function,size", "--columns", "all"]),
    ("kitchen", "window.kitchen.lifetime.txt", ["--by", "lifetime", "--from", "350us", "-n", "6"]),
    ("kitchen", "window.kitchen.json", ["--by", "type,stack", "--to", "50%", "--json"]),
    ("kitchen", "window.kitchen.leaf.txt", ["--tree", "leaf", "--color", "always"]),
    ("kitchen", "window.kitchen.flat.txt", ["--flat"]),
    ("family", "window.family.txt", ["--by", "process,impact", "--exit-frees"]),
    ("family", "window.family.csv", ["--by", "process,impact", "--csv"]),
    ("crowd", "window.crowd.txt", ["--by", "thread,size", "--sort", "count"]),
    ("exercise2_commits", "window.exercise2.whole.txt", ["--layer", "vm"]),
    ("exercise2_commits", "window.exercise2.zoom1.txt",
     ["--layer", "vm", "--from", "14.4s", "--to", "21.2s", "--by", "process,impact,stack"]),
    ("exercise2_commits", "window.exercise2.zoom2.txt",
     ["--layer", "vm", "--from", "21.3s", "--to", "31.7s", "--tree", "callers"]),
    ("exercise2_commits", "window.exercise2.butterfly.txt",
     ["--layer", "vm", "--butterfly", "Operation1"]),
    ("exercise2_commits", "window.exercise2.layers.txt", ["--by", "layer,owner,size"]),
    ("nothing", "window.nothing.txt", []),
]


def check(trace, name, words):
    text = run("window", assemble(trace), *words).stdout
    golden(name, text)
    if "--json" in words:
        json.loads(text)


for row in GOLDEN:
    case(row[1], check, *row)
main()
