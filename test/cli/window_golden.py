#!/usr/bin/env python3
# parallel: yes
"""Windows as a person sees them: each command below prints its file of test/golden, word for word.

After a change that is meant, run with TIDEMARK_ACCEPT=1 to keep what comes out now, and read the
difference before committing it.
"""
import difflib
import json
import os
import subprocess
import sys

TIDEMARK = os.environ["TIDEMARK"]
SOURCE = os.environ["TIDEMARK_SOURCE"]

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


def assemble(name):
    path = name + ".tide"
    if not os.path.exists(path):
        subprocess.run([TIDEMARK, "dump", "-a", os.path.join(SOURCE, "test/traces", name + ".txt"),
                        "-o", path], check=True, timeout=60)
    return path


def check(trace, golden, words):
    done = subprocess.run([TIDEMARK, "window", assemble(trace), *words], capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    path = os.path.join(SOURCE, "test/golden", golden)
    if os.environ.get("TIDEMARK_ACCEPT"):
        with open(path, "w", newline="") as file:
            file.write(done.stdout)
    with open(path, newline="") as file:
        expected = file.read()
    assert expected == done.stdout, "\n".join(difflib.unified_diff(
        expected.splitlines(), done.stdout.splitlines(), golden, "now", lineterm=""))
    if "--json" in words:
        json.loads(done.stdout)


def main():
    failed = 0
    print(f"1..{len(GOLDEN)}", flush=True)
    for number, (trace, golden, words) in enumerate(GOLDEN, 1):
        try:
            check(trace, golden, words)
            print(f"ok {number} - {golden}", flush=True)
        except Exception as problem:  # whatever it is, the others still run
            failed += 1
            print(f"not ok {number} - {golden}\n# {type(problem).__name__}: {problem}"[:3000],
                  flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
