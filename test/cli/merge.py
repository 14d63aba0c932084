#!/usr/bin/env python3
# parallel: yes
"""`tidemark merge` and `tidemark strip`: traces written anew say what they said."""
import collections
import os
import re
import subprocess

from libanswer import SOURCE, TIDEMARK, answer, assemble, refused, run
from libtests import main, test

# What is in no trace of test/traces.
RARE = """trace command="x"
process p pid=1 exe="/bin/x"
thread t p tid=1 "x"
@10 t malloc 0x1000 8
snapshot reason=exit rss=8192
mapping 0x1000-0x3000 prot=rw rss=4096
pages 0x1000-0x2000
reach at=5 number=18
reachable 0x1000 8 t block=0x1000
end duration=20
"""
CODE = {"one": "x = [str(i) * 20 for i in range(5000)]", "two": "y = [[i] for i in range(9000)]"}


def record(name):
    path = name + ".tide"
    if not os.path.exists(path):
        subprocess.run([TIDEMARK, "record", "--rss-exact", "-o", path, "--", "/bin/sh", "-c",
                        f"/usr/bin/python3 -S -c '{CODE[name]}'; exit 3"], stderr=subprocess.DEVNULL,
                       check=False)
    return path


def figures(path):
    heap = answer("report", path)["heap"]
    return [heap["allocations"], heap["frees"], heap["allocated_bytes"], heap["reallocations"],
            heap["live_at_exit"]["count"], heap["live_at_exit"]["bytes"]]


def stacks(path, *words):
    """What was allocated, by the stack's names."""
    found = {}
    for row in answer("window", path, "--by", "stack", "--all-frames", "-n", "0", *words)["rows"]:
        key = tuple((frame["function"], frame["offset"]) for frame in row["keys"]["stack"])
        found[key] = found.get(key, 0) + row["allocated"]
    return found


@test
def a_merged_trace_has_the_sums_of_its_parts():
    one, two = record("one"), record("two")
    run("merge", one, two, "-o", "both.tide")
    sums = [left + right for left, right in zip(figures(one), figures(two))]
    assert figures("both.tide") == sums, (figures("both.tide"), sums)
    together = stacks(one)
    for key, value in stacks(two).items():
        together[key] = together.get(key, 0) + value
    assert stacks("both.tide") == together
    # Each process ends as it did, and its snapshots are its own.
    ends = [[process["exit"] for process in answer("report", path)["trace"]["processes"]]
            for path in (one, two, "both.tide")]
    assert ends[2] == ends[0] + ends[1], ends
    assert answer("reconcile", "both.tide")["schema"].startswith("tidemark-reconcile")
    assert "whole" in run("info", "both.tide").stdout


@test
def clocks_are_moved_by_their_offsets():
    one, two = record("one"), record("two")
    spans = []
    for words in ((), ("--together",)):
        run("merge", one, two, *words, "-o", "moved.tide", "--force")
        spans.append([process["began_ns"] for process in answer("report", "moved.tide")["trace"]
                      ["processes"]])
    began = [answer("report", path)["trace"] for path in (one, two)]
    apart = began[1]["began_unix_ns"] - began[0]["began_unix_ns"]
    first = len(began[0]["processes"])
    assert spans[0][first] - spans[1][first] == apart, (spans, apart)
    run("merge", one, two, "--offset", "-100s", "-o", "ahead.tide")
    found = answer("report", "ahead.tide")["trace"]
    assert found["began_unix_ns"] == began[0]["began_unix_ns"] + apart - 100 * 10**9, found
    assert figures("ahead.tide") == figures("moved.tide")


@test
def a_stripped_trace_answers_the_same():
    one = record("one")
    said = run("strip", one, "-o", "public.tide").stderr
    assert "no symbols in the trace and no path any more" in said and f"tidemark bundle {one}" in said, said
    assert figures("public.tide") == figures(one)
    assert run("dump", "--items", "public.tide").stdout == run("dump", "--items", one).stdout
    text = run("dump", "public.tide").stdout
    for word in ("/usr/bin", "range(5000)", os.getcwd()):
        assert word in run("dump", one).stdout and word not in text, word
    assert "bundle" not in run("strip", one, "--arguments", "-o", "paths.tide").stderr
    text = run("dump", "paths.tide").stdout
    assert "/usr/bin" in text and "range(5000)" not in text


@test
def addresses_are_stripped_and_figures_stay():
    one = record("one")
    assert "virtual memory" in run("strip", one, "--addresses", "-o", "places.tide").stderr
    assert figures("places.tide") == figures(one)
    rows = [run("window", path, "--by", "process,thread,stack,size,type", "-n", "0", "--csv").stdout
            for path in (one, "places.tide")]
    assert sorted(rows[0].split("\n")) == sorted(rows[1].split("\n"))
    said = answer("window", "places.tide")["warnings"]
    assert any("addresses were stripped" in line for line in said), said
    text = run("dump", "places.tide").stdout
    assert not re.search("0x[0-9a-f]{9,}", text), re.findall(".*0x[0-9a-f]{9,}.*", text)[:5]


@test
def each_kind_of_line_is_there_as_often_as_in_the_parts():
    def kinds(path):
        words = [re.match(r"(?:[@+]\d+ (?:\S+ )?)?([a-z-]+)", line) for line in run("dump", path).stdout.splitlines()]
        return collections.Counter(word[1] for word in words if word and word[1] not in ("trace", "end"))

    names = [name[:-4] for name in sorted(os.listdir(f"{SOURCE}/test/traces"))]
    for path in [assemble("rare", RARE), *(assemble(name) for name in names)]:
        run("merge", path, path, "-o", "twice.tide", "--force")
        assert kinds("twice.tide") == collections.Counter(2 * list(kinds(path).elements())), path


@test
def labels_that_differ_have_the_values_of_all():
    for name, labels in (("l1", "host=web1\\nversion=1\\n"), ("l2", "host=web2\\nversion=1\\n"), ("l3", "host=web1\\nx=y\\n")):
        assemble(name, f'trace labels="{labels}"\nprocess p pid=1\nthread t p tid=1\n@10 t malloc 0x1000 8\nend\n')
    done = run("merge", "l1.tide", "l2.tide", "l3.tide", "-o", "labels.tide")
    assert answer("info", "labels.tide")["trace"]["labels"] == {"host": "web1, web2", "version": "1, none", "x": "none, y"}
    assert "labels differ" in done.stderr, done.stderr
    assert answer("info", "labels.tide")["trace"]["labels_differ"]
    assert "labels differ among the traces" in run("info", "labels.tide").stdout
    run("merge", "l1.tide", "l1.tide", "-o", "same.tide")
    assert not answer("info", "same.tide")["trace"]["labels_differ"]
    assert "labels differ" not in run("info", "same.tide").stdout
    assert answer("info", "same.tide")["trace"]["labels"] == {"host": "web1", "version": "1"}


@test
def what_does_not_go_together_is_refused():
    one = record("one")
    assert "two FILEs" in refused("merge", one, "-o", "x.tide", code=2)
    assert "after the FILE" in refused("merge", "--offset", "1s", one, one, "-o", "x.tide", code=2)
    with open("bad.tide", "w") as file:
        file.write("no trace")
    assert "bad.tide" in refused("merge", one, "bad.tide", "-o", "x.tide", code=3)
    assert not os.path.exists("x.tide")
    with open(one, "rb") as file:
        content = file.read()
    with open("cut.tide", "wb") as file:
        file.write(content[:len(content) - 40])
    assert "not complete" in run("merge", one, "cut.tide", "-o", "rest.tide").stderr
    assert not answer("report", "rest.tide")["trace"]["complete"]


main()
