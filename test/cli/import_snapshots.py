#!/usr/bin/env python3
# parallel: yes
"""`tidemark import` of sums: heap profiles as snapshots and as series of them."""
import glob
import os
import shutil
import subprocess

from libanswer import TIDEMARK, answer, refused, run
from libtests import Skip, main, test

PROGRAM = r"""
#include <stdlib.h>
#include <string.h>
static void *keep[10000];
static int count;
__attribute__((noinline)) static void *leaf(size_t size) { return memset(malloc(size), 1, size); }
__attribute__((noinline)) static void grow(int by)
{
	for (int i = 0; i < by; i++)
		keep[count++] = leaf(128);
}
int main(void)
{
	grow(1000);
	for (int i = 0; i < 500; i++)
		free(keep[--count]);
	grow(3000);
	return 0;
}
"""
LIBRARIES = "/usr/lib/x86_64-linux-gnu"


def library(name):
    path = os.path.join(LIBRARIES, name)
    if not os.path.exists(path):
        raise Skip(f"{name} is not installed")
    with open("app.c", "w") as file:
        file.write(PROGRAM)
    subprocess.run(["gcc", "-g", "-O1", "-o", "app", "app.c"], check=True)
    return path


def program(**environment):
    subprocess.run([os.path.abspath("app")], check=True, stderr=subprocess.DEVNULL,
                   env={**os.environ, **environment})


def live(path):
    left = answer("report", path)["heap"]["live_at_exit"]
    return left["count"], left["bytes"]


def warned(path):
    return " ".join(answer("window", path)["warnings"])


def functions(row):
    return [frame["function"] for frame in row["keys"]["stack"]]


def sums(path):
    """What lives, by stack, of those whose functions all have names."""
    found = {}
    for row in answer("window", path, "--by", "stack", "--all-frames", "-n", "100000")["rows"]:
        if row["impacting_size"]:
            stack = tuple(frame["function"] or
                          f"{frame['module'].split('/')[-1]}+{frame['offset']:#x}"
                          for frame in row["keys"]["stack"])
            found[stack] = found.get(stack, 0) + row["impacting_size"]
    return found


def record(name, code):
    subprocess.run([TIDEMARK, "record", "-o", name, "--", "/usr/bin/python3", "-S", "-c",
                    "import os\n" + code + "\nos._exit(0)"],
                   check=True, stderr=subprocess.DEVNULL)
    return name


@test
def a_profile_of_ours_holds_what_lived():
    record("app.tide", "x = [str(i) * 50 for i in range(20000)]")
    run("export", "app.tide", "--format", "pprof", "-o", "app.pb.gz")
    run("import", "app.pb.gz", "-o", "again.tide")
    assert live("app.tide") == live("again.tide"), (live("app.tide"), live("again.tide"))
    for word in ("made of sums", "numbers of blocks", "estimates"):
        assert word in warned("again.tide"), warned("again.tide")
    # What came and went is counted, too, and nothing is made temporary by it.
    before, after = (answer("report", path)["heap"] for path in ("app.tide", "again.tide"))
    for figure in ("allocations", "frees", "allocated_bytes"):
        assert before[figure] == after[figure], (figure, before, after)
    assert after["temporary"] is None, after
    # By stack, too: its names, and what lives of it.
    before, after = (sums(path) for path in ("app.tide", "again.tide"))
    assert before == after and len(before) > 5, (len(before), len(after))


@test
def what_a_profile_does_not_say_is_not_made_up():
    record("big.tide", "x = [bytes(9000000) for _ in range(1)]\ndel x\ny = bytes(8000000)\ndel y")
    run("export", "big.tide", "--format", "pprof", "-o", "big.pb.gz")
    run("import", "big.pb.gz", "-o", "big.again.tide")
    said = answer("report", "big.again.tide")
    # Sums of all that was ever allocated do not say what lived at one time.
    heap = said["heap"]
    for figure in ("peak_bytes", "peak_low_bytes", "peak_high_bytes", "peak_count", "peak_ns", "temporary"):
        assert heap[figure] is None, (figure, heap)
    assert said["sites"]["peak"] == [] and said["sites"]["temporary"] == [], said["sites"]
    assert said["sites"]["live_at_exit"] and said["sites"]["bytes"], said["sites"]
    page = run("report", "big.again.tide").stdout
    assert "peak            not known: what was imported does not tell what lived at one time" in page, page
    assert "temporary       not known:" in page and "AT THE PEAK  not known" in page, page
    # One process, as in the profile.
    processes = said["trace"]["processes"]
    assert len(processes) == 1 and processes[0]["peak_bytes"] is None, processes
    assert "peak" in run("check", "big.again.tide", "--max-peak", "1G", check=3).stderr


@test
def several_profiles_are_a_series():
    for at in (1000, 3000, 2000):
        record(f"{at}.tide", f"x = ['a' * 600 + str(i) for i in range({at})]")
        run("export", f"{at}.tide", "--format", "pprof", "-o", f"{at}.pb.gz")
    run("import", "1000.pb.gz", "3000.pb.gz", "2000.pb.gz", "-o", "all.tide")
    for at in (1000, 3000, 2000):
        moment = answer("window", "all.tide", "--to", f"mark:{at}.pb.gz")
        assert moment["total"]["impacting_size"] == live(f"{at}.tide")[1], (at, moment["total"])
    # What came between two of them.
    rows = answer("window", "all.tide", "--from", "mark:1000.pb.gz", "--to", "mark:3000.pb.gz")
    assert abs(rows["total"]["impacting_size"] - 2000 * 650) < 200_000, rows["total"]
    assert live("all.tide") == live("2000.tide")
    assert "growth" in answer("growth", "all.tide")["schema"]
    assert "another format" in refused("import", "1000.pb.gz", _text("t.csv", "op,address,size\nmalloc,1,1\n"),
                                       "-o", "x.tide", code=3)
    assert "tidemark merge" in refused("import", "t.csv", "t.csv", "-o", "x.tide", code=3)


def _text(name, text):
    with open(name, "w") as file:
        file.write(text)
    return name


@test
def profiles_of_jemalloc_are_read():
    path = library("libjemalloc.so.2")
    program(LD_PRELOAD=path, MALLOC_CONF="prof:true,lg_prof_sample:0,prof_final:true,prof_prefix:whole")
    run("import", *glob.glob("whole*.heap"), "-o", "whole.tide")
    rows = [row for row in answer("window", "whole.tide", "--by", "stack", "--all-frames")["rows"]
            if "grow" in functions(row)]
    assert sum(row["count"] for row in rows) == 3500, rows
    assert sum(row["impacting_size"] for row in rows) == 3500 * 128, rows
    names = functions(rows[0])
    at = names.index("leaf")
    assert names[at:at + 3] == ["leaf", "grow", "main"], names
    program(LD_PRELOAD=path, MALLOC_CONF="prof:true,lg_prof_sample:12,lg_prof_interval:17,"
            "prof_final:true,prof_prefix:sampled")
    files = sorted(glob.glob("sampled*.heap"), key=lambda each: int(each.split(".")[2]))
    assert len(files) > 2, files
    run("import", *files, "-o", "sampled.tide")
    assert answer("report", "sampled.tide")["trace"]["sampled"]
    # Of 3500 blocks one in 32 is there: their estimate is within five standard errors.
    found = answer("report", "sampled.tide")["heap"]["live_at_exit"]
    value = found["bytes"]
    assert 0.5 * 3500 * 128 < value < 1.7 * 3500 * 128 + 81920, found


@test
def profiles_of_gperftools_are_read():
    program_library = library("libtcmalloc.so.4")
    program(LD_PRELOAD=program_library, HEAPPROFILE="profile", HEAP_PROFILE_INUSE_INTERVAL="100000")
    files = sorted(glob.glob("profile.*.heap"))
    assert len(files) > 2, files
    run("import", *files, "-o", "series.tide")
    assert live("series.tide") == (3500, 3500 * 128), live("series.tide")
    with open(files[1]) as file:
        bytes_there = int(file.readline().split(":")[2].split()[0])
    moment = answer("window", "series.tide", "--to", f"mark:{files[1]}")
    assert moment["total"]["impacting_size"] == bytes_there, moment["total"]


GO = """package main

import ("os"; "runtime"; "runtime/pprof")

var keep [][]byte

func grow() { for i := 0; i < 1000; i++ { keep = append(keep, make([]byte, 1000)) } }

func main() {
	runtime.MemProfileRate = 1
	grow()
	runtime.GC()
	file, _ := os.Create("go.pb.gz")
	pprof.WriteHeapProfile(file)
	file.Close()
}
"""


@test
def profiles_of_go_are_read():
    if not shutil.which("go"):
        raise Skip("golang-go is not installed")
    _text("app.go", GO)
    subprocess.run(["go", "build", "-o", "goapp", "app.go"], check=True, env={
        **os.environ, "GOCACHE": os.path.abspath("cache"), "GOFLAGS": "-mod=mod", "GO111MODULE": "off",
        "HOME": os.getcwd()})
    subprocess.run(["./goapp"], check=True)
    run("import", "go.pb.gz", "-o", "go.tide")
    rows = [row for row in answer("window", "go.tide", "--by", "stack")["rows"]
            if functions(row)[0] == "main.grow" and row["count"] >= 1000]
    assert rows and rows[0]["impacting_size"] >= 1024 * 1000, rows
    assert rows[0]["keys"]["stack"][0]["file"].endswith("app.go"), rows[0]


@test
def what_is_no_heap_profile_says_so():
    for text, why in (("heap profile: 1: 2 [1: 2] @ growthz\n", "growthz"),
                      ("heap_v2/x\n", "not a distance"),
                      ("heap_v2/1024\n  t*: 1: x\n", "line 2")):
        assert why in refused("import", _text("bad", text), "-o", "x.tide", code=3), text
    record("pass.tide", "pass")
    run("export", "pass.tide", "--format", "pprof", "-o", "pass.pb.gz")
    with open("pass.pb.gz", "rb") as file:
        content = file.read()
    for kept in (len(content) // 2, len(content) - 4):  # the second ends behind the last field
        with open("cut.pb.gz", "wb") as file:
            file.write(content[:kept])
        assert "damaged" in refused("import", "cut.pb.gz", "-o", "x.tide", code=3), kept
    # A profile of what was allocated alone.
    parts = ((1, b"\x08\x01\x10\x02"), (2, b"\x12\x01\x05"), (6, b""), (6, b"alloc_space"), (6, b"bytes"))
    with open("allocs.pb", "wb") as file:
        file.write(b"".join(bytes([tag << 3 | 2, len(part)]) + part for tag, part in parts))
    said = refused("import", "allocs.pb", "-o", "x.tide", code=3)
    assert "what was allocated (alloc_space), not what lives" in said and "go tool pprof" in said, said
    # Counts that no memory has are told as fewer blocks.
    said = run("import", _text("many", "heap profile: 1: 2 [1: 2] @ heapprofile\n"
                               "99999999999: 999999999990 [1: 2] @ 0x5\n"), "-o", "many.tide").stderr
    assert "too many blocks" in said and live("many.tide")[1] == 999999999990, said


main()
