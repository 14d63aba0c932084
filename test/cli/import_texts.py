#!/usr/bin/env python3
# parallel: yes
"""`tidemark import` of small formats of events: mtrace, memory_tracker, tracefrag, heaplog."""
import os
import re
import subprocess

from libanswer import TIDEMARK, answer, refused, run
from libtests import Skip, main, test


def imported(name, content):
    with open(name, "wb" if isinstance(content, bytes) else "w") as file:
        file.write(content)
    said = run("import", name, "-o", name + ".tide", "--force").stderr
    return name + ".tide", said


def heap(path):
    found = answer("report", path)["heap"]
    return {key: found[key] for key in ("allocations", "frees", "reallocations", "allocated_bytes",
                                        "peak_bytes", "failed")} | \
        {"left": found["live_at_exit"]["bytes"]}


def warned(path):
    return " ".join(answer("window", path)["warnings"])


PROGRAM = r"""
#include <mcheck.h>
#include <stdlib.h>
static void *make(size_t size) { return malloc(size); }
int main(void)
{
	char *a, *b;

	mtrace();
	a = make(100);
	b = malloc(50);
	a = realloc(a, 200000);
	free(b);
	b = calloc(3, 10);
	return a && b ? 0 : 1;
}
"""


@test
def what_mtrace_of_the_c_library_writes_is_read():
    with open("app.c", "w") as file:
        file.write(PROGRAM)
    subprocess.run(["gcc", "-g", "-o", "app", "app.c"], check=True)
    subprocess.run([os.path.abspath("app")], check=True, env={
        **os.environ, "MALLOC_TRACE": "log", "LD_PRELOAD": "libc_malloc_debug.so.0"})
    if not os.path.exists("log"):
        raise Skip("the C library has no mtrace")
    run("import", "log", "-o", "log.tide")
    assert heap("log.tide") == {"allocations": 4, "frees": 2, "reallocations": 1, "failed": 0,
                                "allocated_bytes": 100 + 50 + 200000 + 30, "peak_bytes": 200050,
                                "left": 200030}, heap("log.tide")
    assert "stacks are the caller alone" in warned("log.tide"), warned("log.tide")
    rows = answer("window", "log.tide", "--by", "stack")["rows"]
    names = {(frame["function"], frame["file"].split("/")[-1]) for row in rows
             for frame in row["keys"]["stack"]}
    assert names == {("main", "app.c"), ("make", "app.c")}, names


@test
def a_log_of_mtrace_may_have_names_failures_and_halves():
    path, _ = imported("mtrace", "= Start\n@ /bin/a b:(grow+0x1c)[0x4011] + 0x1000 0x64\n"
                       "@ [0x7f12] ! 0x1000 0x7fffffff\n@ app:[0x1] + (nil) 0x10\n"
                       "@ /bin/a b:(grow+0x1c)[0x4011] < 0x1000\n@ x - 0x2000\n+ 0x1\n= End\n"
                       .replace("+ 0x1\n", ""))
    found = heap(path)
    assert (found["allocations"], found["failed"], found["left"]) == (1, 2, 0), found
    assert '"grow"' in run("dump", path).stdout
    assert "line 2" in refused("import", _write("bad", "= Start\n@ nothing\n"), "-o", "x", code=3)


def _write(name, text):
    with open(name, "w") as file:
        file.write(text)
    return name


TRACKER = """malloc: 0x55d0c0 0x20 /usr/bin/app make 0x401136
malloc: 0x55d200 0x10 (null) (null) (nil)
free(realloc): 0x55d0c0 /usr/bin/app grow 0x401180
malloc(realloc): 0x55d100 0x40 /usr/bin/app grow 0x401180
free: 0x55d200 /usr/bin/app (null) 0x4011c0
"""


@test
def memory_trackers_text_is_read():
    path, _ = imported("tracker", TRACKER)
    assert heap(path) == {"allocations": 3, "frees": 2, "reallocations": 1, "failed": 0,
                          "allocated_bytes": 0x70, "peak_bytes": 0x50, "left": 0x40}, heap(path)
    text = run("dump", path).stdout
    assert '"make"' in text and '"app 0x4011c0"' in text, text
    assert "line 2" in refused("import", _write("bad", TRACKER.split("\n")[0] + "\nmalloc: x\n"), "-o",
                               "x", code=3)


FRAG = """20261123221501123 4242 12.34: trcmem32: 0x0a1b2c3d 1
20261123221501123 4242 12.34: trcmem32:   [0] 401130 app.exe!grow
20261123221501123 4242 12.34: trcmem32:   [1] 402000 app.exe+0x2000
20261123221501123 4242 12.34: trcmem32:   #1 200000 4096 2000 1 10 50
20261123221501123 4242 12.34: trcmem32:   #3 200000 8192 3000 4 50 0
20261123221501123 4242 12.34: trcmem32: 0x0a1b2c3e 2
20261123221501123 4242 12.34: trcmem32:   [0] 401150 app.exe!other
20261123221501123 4242 12.34: trcmem32:   #2 300000 12288 3000 4 20 20
"""


@test
def logs_of_tracefrag_are_read_and_written_again():
    path, _ = imported("frag", FRAG)
    again = run("map", path, "--tracefrag").stdout
    frames = re.compile(r"0x\w{8} |\[(\d)\] \w+ (?:\S+!)?")
    expect = [frames.sub("", line) for line in FRAG.splitlines()]
    got = [frames.sub("", line.replace("?!", "")) for line in again.splitlines()]
    # Numbers of frames are given at the import, and #n is by time.
    assert [line.split(": ")[0] for line in got] == [line.split(": ")[0] for line in expect], again
    rows = sorted(line.split("#")[1].split()[1:] for line in got if "#" in line)
    assert rows == sorted(line.split("#")[1].split()[1:] for line in expect if "#" in line), again
    assert "64 KiB slot" in warned(path) and "threads" in warned(path), warned(path)
    assert answer("window", path, "--layer", "vm")["total"]["impacting_size"] == 8192
    assert "bits=32" in run("dump", "--definitions", path).stdout, run("dump", path).stdout


@test
def heaplogs_are_what_was_exported():
    subprocess.run([TIDEMARK, "record", "-o", "app.tide", "--", "python3", "-S", "-c",
                    "x = [str(i) * 50 for i in range(20000)]"], check=True, stderr=subprocess.DEVNULL)
    run("export", "app.tide", "--format", "heaplog", "-o", "app.log")
    run("import", "app.log", "-o", "again.tide")
    before, after = heap("app.tide"), heap("again.tide")
    # A realloc is an end and a beginning there, so the peak between them is not the same.
    for key in ("allocations", "frees", "allocated_bytes"):
        assert before[key] == after[key], (key, before, after)
    run("export", "again.tide", "--format", "heaplog", "-o", "again.log")
    with open("app.log", "rb") as one, open("again.log", "rb") as other:
        assert one.read() == other.read()
    with open("app.log", "rb") as file:
        content = file.read()
    assert "ends within a record" in imported("cut", content[:-3])[1]
    assert "there is no heap 5" in refused("import", _bytes("bad", content[:32] + b"\x85" + bytes(16)),
                                           "-o", "x", code=3)


def _bytes(name, content):
    with open(name, "wb") as file:
        file.write(content)
    return name


main()
