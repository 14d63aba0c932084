#!/usr/bin/env python3
"""The HeapAlloc logger's questions, under Wine: exact counts by heap, thread and size, and by the flags of
the calls; cumulative use
and the histogram of sizes as pictures; and the log itself, the same on Windows as here."""
# timeout: 400
# parallel: yes
import filecmp
import os
import re
import shutil
import struct
import subprocess

import libwin
from libwin import ask, equal

libwin.need_wine()
EXE = libwin.built("tidemark.exe")
TIDEMARK = os.environ["TIDEMARK"]
PROGRAM = os.path.join(libwin.SOURCE, "test", "programs", "win", "heaps.c")
HEAP_GROWABLE = 2  # that HeapCreate adds
# Frees one block twice and one in another heap than its own, and what is as it should be.
WRONG = r"""
#include <windows.h>
__declspec(noinline) static void twice(HANDLE heap)
{
	void *block = HeapAlloc(heap, 0, 77);
	HeapFree(heap, 0, block);
	HeapFree(heap, 0, block);
}
__declspec(noinline) static void elsewhere(HANDLE heap, HANDLE other)
{
	HeapFree(other, 0, HeapAlloc(heap, 0, 48));
	HeapFree(heap, 0, HeapAlloc(heap, 0, 49));
}
int main(void)
{
	HANDLE own = HeapCreate(0, 0, 0);
	elsewhere(own, GetProcessHeap());
	twice(GetProcessHeap());
	return 0;
}
"""
# Makes and destroys heaps one after the other, which may all have one handle, and says what they were made with.
AGAIN = r"""
#include <windows.h>
#include <stdio.h>
int main(void)
{
	static const DWORD made[] = { 0, HEAP_GENERATE_EXCEPTIONS, HEAP_NO_SERIALIZE, 0, HEAP_NO_SERIALIZE };
	for (int i = 0; i < 5; i++) {
		HANDLE heap = HeapCreate(made[i], 0, 0);
		printf("0x%llx 0x%lx\n", (unsigned long long)(ULONG_PTR)heap, made[i]);
		fflush(stdout);
		HeapAlloc(heap, 0, 100);
		HeapDestroy(heap);
	}
	return 0;
}
"""


def own_table(said):
    return {(f"0x{heap}", int(tid), int(size)): (int(allocs), int(frees)) for
            heap, tid, size, allocs, frees in
            re.findall(r"heaps: (\w+) (\d+) (\d+) (\d+) (\d+)", said) if int(allocs)}


def logged(path):
    """{heap: [allocations, bytes, frees]} of a heaplog, by docs/heaplog.md."""
    with open(path, "rb") as file:
        data = file.read()
    magic, _version, at, _pid, _bits, _began = struct.unpack_from("<4sHHIIQ", data)
    handles = struct.unpack_from(f"<{(at - 24) // 8}Q", data, 24)
    found = {}
    while at < len(data):
        begins = data[at] & 0x80
        row = found.setdefault(f"0x{handles[data[at] & 0x7f]:x}", [0, 0, 0])
        if begins:
            row[0] += 1
            row[1] += struct.unpack_from("<I", data, at + 5)[0]
        else:
            row[2] += 1
        at += 17 if begins else 13
    return magic, found


def log(trace, name):
    subprocess.run([TIDEMARK, "export", trace, "--format", "heaplog", "-o", f"{name}.here"], check=True)
    done = libwin.wine(EXE, "export", trace, "--format", "heaplog", "-o", f"{name}.there",
                       prefix="prefix")
    equal(0, done.returncode, f"{name}: tidemark.exe writes a heaplog ({done})")
    equal(True, filecmp.cmp(f"{name}.here", f"{name}.there", shallow=False),
          f"{name}: the same on both systems")
    return logged(f"{name}.here")


def picture(trace, kind):
    if not shutil.which("gnuplot"):
        return
    subprocess.run([TIDEMARK, "plot", trace, kind, "-o", f"{kind}.svg", "--keep", "--force"], check=True)
    with open(f"{kind}.svg.dat", encoding="utf-8") as file:
        points = [line for line in file if line.strip() and not line.startswith("#")]
    with open(f"{kind}.svg", encoding="utf-8") as file:
        drawn = file.read()
    equal(True, len(points) > 3 and "<path" in drawn, f"a picture of {kind}, {len(points)} points")
    if kind == "sizes":
        with open("sizes.svg.gnuplot", encoding="utf-8") as file:
            script = file.read()
        equal(True, "logscale" in script, "whose axes are logarithmic")


libwin.begin_prefix()
for BITS in libwin.WIDTHS:
    libwin.cross_compile(BITS, f"heaps{BITS}.exe", "-fno-omit-frame-pointer", PROGRAM)
    TRACE = f"heaps{BITS}.tide"
    DONE = libwin.wine(EXE, "record", "-o", TRACE, "--", libwin.windows_path(f"heaps{BITS}.exe"),
                       prefix="prefix", text=True)
    OWN = own_table(DONE.stdout)
    equal(True, len(OWN) > 40, f"{BITS} bits: the program's own table has {len(OWN)} rows ({DONE})")
    HEAPS = sorted({heap for heap, _tid, _size in OWN})
    ROWS = ask("window", TRACE, "--by", "heap,thread,size", "-n", "0",
               *[word for heap in HEAPS for word in ("--heap", heap)])["rows"]
    FOUND = {(row["keys"]["heap"], row["keys"]["thread"], row["keys"]["size"]):
             (row["count"], row["freed_count"]) for row in ROWS}
    equal(OWN, FOUND, f"{BITS} bits: counts by heap, thread and size")
    FLAGS = re.findall(r"heaps: flags (\w+) (\d+) (\d+) (\d+)", DONE.stdout)
    INFO = {row["handle"]: row for row in ask("info", TRACE)["heaps"]}
    for HEAP, MADE, NONE, ZERO in FLAGS:
        ROW = INFO[f"0x{HEAP}"]
        equal((int(MADE), [{"flags": 0, "count": int(NONE)}, {"flags": 8, "count": int(ZERO)}]),
              (ROW["created_flags"] & ~HEAP_GROWABLE, ROW["calls"]),
              f"{BITS} bits: the flags of heap 0x{HEAP} and of the calls on it")
    MAGIC, LOGGED = log(TRACE, f"heaps{BITS}")
    equal(b"TMHL", MAGIC, f"{BITS} bits: a heaplog")
    for HEAP in HEAPS:
        MINE = [(size, counts) for (heap, _tid, size), counts in OWN.items() if heap == HEAP]
        equal([sum(a for _size, (a, _f) in MINE), sum(size * a for size, (a, _f) in MINE),
               sum(f for _size, (_a, f) in MINE)], LOGGED[HEAP], f"{BITS} bits: the log of {HEAP}")
    equal([], [one["what"] for one in ask("findings", TRACE)["findings"] if one["class"] == "error"],
          f"{BITS} bits: no finding of a mistake")
    with open("wrong.c", "w", encoding="utf-8") as FILE:
        FILE.write(WRONG)
    libwin.cross_compile(BITS, "wrong.exe", "wrong.c")
    libwin.wine(EXE, "record", "-f", "-o", "wrong.tide", "--", libwin.windows_path("wrong.exe"), prefix="prefix")
    equal({("freed-twice", "certain"), ("freed-wrong", "certain")},
          {(one["kind"], one["sure"]) for one in ask("findings", "wrong.tide")["findings"]
           if one["class"] == "error"},
          f"{BITS} bits: what was freed wrongly")
    with open("again.c", "w", encoding="utf-8") as FILE:
        FILE.write(AGAIN)
    libwin.cross_compile(BITS, "again.exe", "again.c")
    DONE = libwin.wine(EXE, "record", "-f", "-o", "again.tide", "--", libwin.windows_path("again.exe"),
                       prefix="prefix", text=True)
    MADE = [tuple(line.split()) for line in DONE.stdout.splitlines()]
    TEXT = subprocess.run([TIDEMARK, "dump", "again.tide"], capture_output=True, text=True, check=True).stdout
    FOUND = re.findall(r"^heap \w+ p0 handle=(\w+)(?: created=(\w+))?", TEXT, re.M)
    equal((5, MADE), (len(MADE), [(handle, made and hex(int(made, 16) & ~HEAP_GROWABLE)) for handle, made in FOUND
                                  if handle in dict(MADE)]), f"{BITS} bits: heaps of one handle, each as it was made")
for KIND in ("cumulative", "live", "sizes"):
    picture(TRACE, KIND)
# A trace of Linux, exported on both.
subprocess.run([TIDEMARK, "dump", "--assemble",
                os.path.join(libwin.SOURCE, "test", "traces", "crowd.txt"), "-o", "crowd.tide"], check=True)
log("crowd.tide", "crowd")
libwin.end_prefix()
libwin.end()
