#!/usr/bin/env python3
# timeout: 120
# parallel: yes
"""Moments are the same with an index as without: active, map, pins, reconcile, and findings, to the
byte.

A real program is recorded and asked, then its index is built, whose blocks are so small that all
but the last few events come from it. A byte of it is changed then: the trace is asked instead.
"""
import os
import shutil

from libanswer import run
from libtests import main, test

MOMENTS = ("exit", "peak", "50%", "99%", "begin")
QUESTIONS = ([("active", "--at", at, "--json") for at in MOMENTS] +
             [("active", "--at", "50%", "--size", "64..", "--json"),
              ("active", "--at", "70%", "--frame", "PyObject", "--layer", "heap", "--json"),
              ("active", "--at", "60%", "--lifetime", "1ms..", "--json"),
              ("active", "--at", "30%")] +
             [("map", "--at", at, "--json") for at in MOMENTS] +
             [("map", "--tracefrag")] +
             [("pins", "--at", at, "--json") for at in MOMENTS] +
             [("reconcile", "--at", at, "--json") for at in ("peak", "exit")] +
             [("findings", "--json", "-n", "0"), ("findings", "--size", "100..", "--json")])
PROGRAM = """
import mmap
keep, maps = {}, []
for i in range(8000):
    keep[i * 7919 % 5000] = "x" * (i % 300)
    if i % 500 == 0:
        maps.append(mmap.mmap(-1, 65536))
        maps = maps[-9:]
"""


def ask(words, index):
    done = run(words[0], "python.tide", *words[1:], env={"TIDEMARK_INDEX": index}, check=None)
    return done.returncode, done.stdout, done.stderr


@test
def moments_are_the_same_from_the_index_and_from_the_trace():
    run("record", "-q", "--rss-exact", "-o", "python.tide", "--", "python3", "-c", PROGRAM,
        env={"PYTHONMALLOC": "malloc"})
    right = [ask(words, "never") for words in QUESTIONS]
    assert sum(answer[0] == 0 for answer in right) > len(right) - 12, right
    assert not os.path.exists("python.tide-index")
    run("window", "python.tide", "--json", env={"TIDEMARK_INDEX": "tiny"})
    assert os.path.getsize("python.tide-index/addresses") > 0
    for words, answer in zip(QUESTIONS, right):
        assert ask(words, "always") == answer, words


@test
def a_damaged_index_changes_no_answer():
    right = [ask(words, "never") for words in QUESTIONS]
    for name in ("addresses", "calls", "long3", "head"):
        shutil.copytree("python.tide-index", "kept")
        with open(f"python.tide-index/{name}", "r+b") as file:
            size = os.path.getsize(f"python.tide-index/{name}")
            for at in range(size // 7, size, size // 5 + 1):
                file.seek(at)
                byte = file.read(1)[0]
                file.seek(at)
                file.write(bytes([byte ^ 64]))
        for words, answer in list(zip(QUESTIONS, right))[::6]:
            assert ask(words, "always") == answer, (name, words)
        shutil.rmtree("python.tide-index")
        os.rename("kept", "python.tide-index")


main()
