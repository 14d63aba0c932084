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


LTTNG = """[12:34:56.100000000] (+?.?????????) box other:event: { cpu_id = 1 }, { a = 1 }
[23:59:59.900000000] (+0.000001234) box lttng_ust_libc:malloc: { cpu_id = 1 }, { vpid = 7, vtid = 8 }, { size = 64, ptr = 0x55D0C0 }
[23:59:59.950000000] (+0.000001234) box lttng_ust_libc:calloc: { cpu_id = 1 }, { vpid = 7, vtid = 9 }, { nmemb = 3, size = 10, ptr = 0x55D100 }
[00:00:00.100000000] (+0.000001234) box lttng_ust_libc:realloc: { cpu_id = 1 }, { vpid = 7, vtid = 8 }, { in_ptr = 0x55D0C0, size = 100, ptr = 0x55D200 }
[00:00:00.200000000] (+0.000001234) box lttng_ust_libc:free: { cpu_id = 1 }, { vpid = 7, vtid = 8 }, { ptr = 0x55D100 }
"""


@test
def what_babeltrace_prints_of_lttng_is_read():
    path, _ = imported("lttng", LTTNG)
    assert heap(path) == {"allocations": 3, "frees": 2, "reallocations": 1, "failed": 0,
                          "allocated_bytes": 194, "peak_bytes": 130, "left": 100}, heap(path)
    text = run("dump", path).stdout
    assert "pid=7" in text and "tid=9" in text and "@300000000 " in text, text
    assert "no stacks" in warned(path), warned(path)


PERF = """app  4242/4243 [001]    12.345678: probe_libc:malloc: (7f12) size=0x40
\t            7f12 malloc+0x0 (/lib/libc.so.6)
\t            55d0 make(int, char)+0x1a (/tmp/my app)
\t            5600 [unknown] (/tmp/app)

my app 1 4242/4250 [000]    12.345679: probe_libc:calloc: (7f13) n=3 size=10

app  4242/4243 [001]    12.345680: probe_libc:malloc__return: (7f12 <- 55d0) ret=0x55d0c0

my app 1 4242/4250 [000]    12.345690: probe_libc:calloc__return: (7f13 <- 55d0) arg1=0x55d100

app  4242/4243 [001]    12.345700: probe_libc:free: (7f14) mem=0x55d0c0
app  4242/4243 [001]    12.345710: probe_libc:realloc: (7f14) p=0x55d100 size=200
app  4242/4243 [001]    12.345720: probe_libc:realloc__return: (7f14 <- 5) arg1=0x55d200
app  4242/4243 [001]    12.345730: probe_libc:malloc__return: (7f14 <- 5) arg1=0x55d300
app  4242/4243 [001]    12.345740: probe_libc:malloc: (7f14) size=1
"""


@test
def what_perf_prints_of_probes_is_read():
    path, said = imported("perf", PERF)
    assert heap(path) == {"allocations": 3, "frees": 2, "reallocations": 1, "failed": 0,
                          "allocated_bytes": 64 + 30 + 200, "peak_bytes": 200, "left": 200}, heap(path)
    assert "1 calls without a return and 1 returns without a call" in said, said
    text = run("dump", path).stdout
    assert '"make(int, char)"' in text and '"app 0x5600"' in text and "tid=4250" in text, text
    names = [[frame["function"] for frame in row["keys"]["stack"]]
             for row in answer("window", path, "--by", "stack", "--all-frames")["rows"]]
    assert ["malloc", "make(int, char)", "app 0x5600"] in names, names


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
