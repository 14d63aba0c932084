#!/usr/bin/env -S python3 -B
# timeout: 240
# parallel: yes
"""Heaps of Python: each object once, with its line, and as many as with PYTHONMALLOC=malloc."""
import collections
import csv
import io
import json
import os
import shutil
import subprocess

from libguest import TIDEMARK, Skip, check, environment, equal, main, record, test

SCRIPT = r"""
import json, os, sys
class Node:
    def __init__(self, i):
        self.number = i
        self.more = {"k": [i] * 10}
nodes = [Node(i) for i in range(2000)]
texts = json.loads(json.dumps([str(i) * 30 for i in range(2000)]))
small = [bytes(219) for i in range(300)]
large = [bytes(3967) for i in range(200)]
del nodes[::2], small[100:], large[50:]
sys.stdout.flush()
os._exit(0)
"""


def debian_python():
    python = "/usr/bin/python3.11"
    if not shutil.which(python):
        raise Skip("no Python 3.11 of Debian's here")
    return python


def run(trace, *options, malloc="pymalloc", script=SCRIPT, file="work.py"):
    with open(file, "w", encoding="ascii") as out:
        out.write(script)
    record([debian_python(), "-B", file], "--force", *options, trace=trace,
           env=environment(PYTHONHASHSEED="0", PYTHONMALLOC=malloc))


def recorded():
    """The script with its heaps, once for all tests."""
    trace = os.path.abspath("../pymalloc.tide")
    if not os.path.exists(trace):
        run(trace, "--language-heaps", "--rss-exact")
    return trace


def ask(*words):
    return json.loads(subprocess.run([TIDEMARK, *words, "--json"], capture_output=True,
                                     check=True).stdout)


def heap_of(trace):
    heap = ask("report", trace)["heap"]
    equal(0, heap["orphan_frees"], "frees of what was not seen, " + trace)
    equal(0, heap["lost_frees"], "ends that were not seen, " + trace)
    return heap


def events(trace):
    """Rows of op and size, where a size of 0 is 1. A whole number of 32 bytes is one of 28: a type's table of
    subclasses has their addresses, and the kernel puts the heap of a program that is not relocatable beyond 2**30 once in
    some two hundred runs."""
    text = subprocess.run([TIDEMARK, "export", "--format", "csv", "-o", "-", trace], text=True,
                          capture_output=True, check=True).stdout
    return [(row["op"], row["call"], {0: 1, 32: 28}.get(int(row["size"] or 0), int(row["size"] or 0)), row["heap"], row["stack"])
            for row in csv.DictReader(io.StringIO(text))]


@test
def each_object_is_in_its_heap_once_with_its_line():
    pymalloc = recorded()
    heap_of(pymalloc)
    rows = ask("window", pymalloc, "--by", "heap,size,stack", "-n", "0")["rows"]
    for size, line, made, kept in ((252, 9, 300, 100), (4000, 10, 200, 50)):
        found = [row for row in rows if row["keys"]["size"] == size
                 and any(frame["line"] == line for frame in row["keys"]["stack"])]
        equal([("pyobject", made, kept)], [(row["keys"]["heap"], row["allocated_count"],
                                            row["by_exit"]["count"]) for row in found], size)
        equal((size, "work.py"), (size, found[0]["keys"]["stack"][0]["file"].split("/")[-1]))
        check(not [row for row in rows if row["keys"]["size"] == size
                   and row["keys"]["heap"] == "malloc"], "counted twice:", size)
    by_heap = {row["keys"]["heap"]: row["allocated_count"]
               for row in ask("window", pymalloc, "--by", "heap")["rows"]}
    equal({"malloc", "pymem", "pyobject"}, set(by_heap))
    equal(heap_of(pymalloc)["allocations"], sum(by_heap.values()), "the heaps together")
    equal("recorded", ask("report", pymalloc)["heap"]["language_heaps"])
    only = ask("report", pymalloc, "--heap", "pyobject")["heap"]["allocations"]
    equal(by_heap["pyobject"], only, "report --heap")


@test
def events_are_those_of_pythonmalloc():
    run("plain.tide", malloc="malloc")
    run("heaps.tide", "--language-heaps", malloc="malloc")
    plain, heaps = events("plain.tide"), events("heaps.tide")
    # What is hashed by its address may be resized at another time.
    one = collections.Counter(row[:3] for row in plain)
    other = collections.Counter(row[:3] for row in heaps)
    apart = (one - other) + (other - one)
    check(len(plain) > 40000 and sum(apart.values()) <= 20, len(plain), apart.most_common(5))
    equal({"malloc"}, {row[3] for row in plain})
    equal({"malloc", "pymem", "pyobject"}, {row[3] for row in heaps})
    before, after = heap_of("heaps.tide"), heap_of(recorded())
    more = after["allocations"] - before["allocations"]
    check(abs(more) < 20, more, "allocations more than with malloc: tables of arenas are four")


@test
def a_report_without_the_heaps_says_so():
    run("off.tide")
    equal("not recorded", ask("report", "off.tide")["heap"]["language_heaps"])
    text = subprocess.run([TIDEMARK, "report", "off.tide"], capture_output=True, text=True, check=True).stdout
    check("--language-heaps" in text, text[:1000])
    text = subprocess.run([TIDEMARK, "report", recorded()], capture_output=True, text=True, check=True).stdout
    check("--language-heaps" not in text.split("\n\n")[1], text[:1000])


@test
def a_debugging_allocator_is_not_seen_in_sizes():
    whole = heap_of(recorded())
    run("debug.tide", "--language-heaps", malloc="debug")
    heap = heap_of("debug.tide")
    check(abs(heap["allocations"] - whole["allocations"]) < 30, heap, whole)
    check(abs(heap["allocated_bytes"] - whole["allocated_bytes"]) < 50000, heap, whole)


# A wrapper in front of ours, threads, a fork that gives back what its parent made, failures.
MANNERS = r"""
import os, threading, tracemalloc
kept = [str(i) * 3 for i in range(3000)]
def work(): return len([str(i) * 30 for i in range(3000)])
threads = [threading.Thread(target=work) for i in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
tracemalloc.start(5)
more = [str(i) * 30 for i in range(3000)]
tracemalloc.take_snapshot()
tracemalloc.stop()
del more
pid = os.fork()
if pid == 0:
    del kept[:2000]
    large = [bytes(700 + i) for i in range(500)]
    os._exit(0)
os.waitpid(pid, 0)
try: bytes(1 << 60)
except MemoryError: pass
"""


@test
def threads_tracemalloc_and_forks_lose_nothing():
    run("t.tide", "--language-heaps", script=MANNERS)
    heap = heap_of("t.tide")
    check(2000 <= heap["inherited_frees"] < 2100, heap["inherited_frees"])
    equal(1, heap["failed"])


@test
def a_sample_of_objects_estimates_the_whole():
    whole = heap_of(recorded())["allocated_bytes"]
    run("s.tide", "--language-heaps", "--sample", "4K")
    report = ask("report", "s.tide")
    error = report["heap"]["standard_errors"]["bytes"]
    check(abs(report["heap"]["allocated_bytes"] - whole) < 5 * error, report["heap"], whole, error)
    equal(0, report["heap"]["orphan_frees"])


@test
def what_is_resident_is_told_apart():
    reconcile = ask("reconcile", recorded())
    lines = {line["line"]: line["bytes"] for line in reconcile["lines"]}
    equal("glibc", reconcile["allocator"])
    check(lines["live"] > 1000000, "objects are no live blocks", lines)
    check(lines["unexplained"] == 0, lines)


@test
def an_interpreter_in_a_library_is_seen():
    if not shutil.which("gdb"):
        raise Skip("no gdb here")
    record(["gdb", "-batch", "-nx", "-ex", "python x = [bytes(319) for i in range(5000)]"],
           "--language-heaps")
    heap_of("t.tide")
    rows = ask("window", "t.tide", "--by", "heap,size", "-n", "0")["rows"]
    counts = [row["allocated_count"] for row in rows
              if row["keys"] == {"heap": "pyobject", "size": 352}]
    check(len(counts) == 1 and 5000 <= counts[0] < 5100, counts)


@test
def a_process_that_runs_is_refused():
    result = subprocess.run([TIDEMARK, "record", "--language-heaps", "-p", "1"], text=True,
                            capture_output=True, check=False)
    equal(125, result.returncode)
    check("--language-heaps needs a program that record starts" in result.stderr, result.stderr)


main()
