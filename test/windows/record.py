#!/usr/bin/env python3
"""tidemark.exe record, under Wine: a program's own counters are what the trace says, in both sizes,
however the program ends; and the trace is read here."""
# timeout: 600
# parallel: yes
import json
import os
import re
import signal
import struct
import subprocess
import time

import libwin
from libtests import PATIENCE_SECONDS
from libwin import check

libwin.need_wine()
EXE = os.path.join(os.environ["TIDEMARK_BUILD"] + "-win", "bin", "tidemark.exe")
if not os.path.exists(EXE):
    libwin.skip("tidemark.exe is not built (make win)")
TIDEMARK = os.environ["TIDEMARK"]
PROGRAM = os.path.join(libwin.SOURCE, "test", "programs", "win", "exact.c")
COUNTS = struct.Struct("<6q")  # allocs, frees, reallocs, failed, bytes, heap


def ask(*words):
    done = subprocess.run([TIDEMARK, *words], capture_output=True, check=True)
    return json.loads(done.stdout)


def windows_path(name):
    return "Z:" + os.path.abspath(name).replace("/", "\\")


def heap_row(trace, heap):
    rows = [row for row in ask("window", "--by", "heap", "--json", trace)["rows"]
            if row["keys"]["heap"] == f"0x{heap:x}"]
    return rows[0] if len(rows) == 1 else None


def same(name, trace, heap, allocs, frees, reallocs, size, slack=0):
    """The heap's row in the trace is what the program counted. `slack`: calls that it may have made
    and not counted when it was killed, or counted and not made."""
    row = heap_row(trace, heap)
    check(f"{name}: its heap is in the trace", row is not None, trace)
    check(f"{name}: allocations, {row['count']}", 0 <= row["count"] - allocs - reallocs <= slack,
          row, allocs, reallocs)
    check(f"{name}: bytes, {row['allocated']}",
          0 <= row["allocated"] - size <= slack * 1000, row, size)
    check(f"{name}: no address is owned twice", row["orphan_frees"] == 0, row)
    if frees is not None:
        check(f"{name}: frees, {row['freed_count']}",
              abs(row["freed_count"] - frees - reallocs) <= slack, row, frees, reallocs)


def record(trace, *command):
    return libwin.wine(EXE, "record", "--force", "-o", trace, "--", *command, prefix="prefix", seconds=120,
                       text=True)


def run(bits, how, code):
    name, trace = f"{how}, {bits} bits", f"{how}{bits}.tide"
    for _ in range(5):
        done = record(trace, windows_path(f"exact{bits}.exe"), how)
        # One free in some hundred thousand is read by the collector before it has failed. That is
        # said; it is not what is tested here.
        if "is freed in the trace" not in done.stderr:
            break
    said = re.search(r"exact: heap (\w+) allocs (\d+) frees (\d+) reallocs (\d+) failed (\d+) "
                     r"bytes (\d+) thrown (\d+)", done.stdout)
    check(f"{name}: it ran", said is not None, done)
    check(f"{name}: the exit code is the program's", done.returncode == code, done)
    heap, allocs, frees, reallocs, _failed, size, thrown = [int(said[1], 16),
                                                            *map(int, said.groups()[1:])]
    if how == "destroy":
        row = heap_row(trace, heap)
        check(f"{name}: what lived ended with the heap",
              row["by_destroy"]["count"] == allocs - frees > 0 and row["impacting_size"] == 0, row)
        frees = allocs
    if how == "raise":
        check(f"{name}: exceptions left the heap's functions", thrown == 20, done.stdout)
        dump = subprocess.run([TIDEMARK, "dump", "--items", trace], capture_output=True, text=True,
                              check=True).stdout
        failed = len(re.findall(r" failed (?:s\d+ )?(?:h\d+ )?1048576$", dump, re.M))
        check(f"{name}: the allocations that raised them have failed", failed == 10, failed)
    if how == "mended":
        mender, times = re.search(r"exact: mender (\w+) (\d+)", done.stdout).groups()
        row = heap_row(trace, int(mender, 16))
        check(f"{name}: {times} exceptions were mended by handlers that allocate",
              int(times) > 10 and row["count"] == row["freed_count"] == int(times), row, times)
        totals = ask("report", "--json", trace)["heap"]
        check(f"{name}: nothing failed", totals["failed"] == 0, totals)
    if how in ("wrong", "damaged"):
        refused(name, trace, heap, how)
    same(name, trace, heap, allocs, frees, reallocs, size)
    info = ask("info", "--json", trace)
    check(f"{name}: whole, and nothing lost", info["trace"]["complete"]
          and "0 events lost" in done.stderr, done.stderr)


def refused(name, trace, heap, how):
    """A HeapFree that failed is told as such, with its heap and stack, and ended nothing."""
    dump = subprocess.run([TIDEMARK, "dump", trace], capture_output=True, text=True,
                          check=True).stdout
    number = re.search(rf"^heap h(\d+) p0 handle=0x{heap:x}\b", dump, re.M)[1]
    told = re.findall(r" realloc-failed s\d+ h(\d+) 0x\w+ 0$", dump, re.M)
    expected = 100 if how == "wrong" else 300
    check(f"{name}: {expected} frees were refused", len(told) == expected and
          (set(told) == {number}) == (how == "damaged"), len(told), set(told), number)
    rows = ask("window", "--by", "heap", "--json", trace)["rows"]
    check(f"{name}: no other heap heard of it", sum(row["orphan_frees"] for row in rows) == 0, rows)


def wait_for_counts(path, least):
    """Until the program has done enough."""
    for _ in range(2400):
        if os.path.exists(path) and os.path.getsize(path) >= COUNTS.size:
            with open(path, "rb") as file:
                counts = COUNTS.unpack(file.read(COUNTS.size))
            if counts[0] >= least:
                return counts
        time.sleep(0.05)
    raise SystemExit(f"{path}: the program does not get on")


def pid_of(beginning):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if libwin.command_line(pid).startswith(beginning):
            return int(pid)
    raise SystemExit(f"no process begins with {beginning}")


def kill(bits):
    """SIGKILL in mid-loop: what the program counted before is in the trace."""
    name, trace, path = f"SIGKILL, {bits} bits", f"kill{bits}.tide", f"kill{bits}.counts"
    program = windows_path(f"exact{bits}.exe")
    command = [libwin.WINE_RUN, "--prefix", "prefix", "--time", str(PATIENCE_SECONDS), "--", EXE, "record", "-o",
               trace, "--", program, "loop", windows_path(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        wait_for_counts(path, 20000)
        os.kill(pid_of(program.encode()), signal.SIGKILL)
        running.communicate()
    allocs, frees, reallocs, _failed, size, heap = wait_for_counts(path, 20000)
    same(name, trace, heap, allocs, frees, reallocs, size, slack=1)


def outside(bits):
    """TerminateProcess by its parent."""
    name, trace, path = f"ended by another, {bits} bits", f"other{bits}.tide", f"other{bits}.counts"
    record(trace, windows_path(f"exact{bits}.exe"), "outside", windows_path(path))
    allocs, frees, reallocs, _failed, size, heap = wait_for_counts(path, 1000)
    same(name, trace, heap, allocs, frees, reallocs, size, slack=1)


def unborn(bits):
    """One that its parent starts suspended and ends before it has run: nothing of it is missing."""
    name, trace = f"never run, {bits} bits", f"unborn{bits}.tide"
    done = libwin.wine(EXE, "record", "--strict", "-o", trace, "--", windows_path(f"exact{bits}.exe"), "unborn",
                       prefix="prefix", seconds=120, text=True)
    info = ask("info", "--json", trace)
    check(f"{name}: it is in the trace, with its end, and nothing is told of it", done.returncode == 9
          and "not recorded" not in done.stderr and info["trace"]["complete"]
          and [each["exit"] for each in info["processes"]] == ["exit 9"] * 2, done, info)


def late_image(name):
    """A copy of a program that says it is .NET, so that its list of imports is left alone: its first
    thread has to bring the recorder in."""
    with open(name, "rb") as file:
        image = bytearray(file.read())
    at = struct.unpack_from("<I", image, 0x3c)[0]
    sections, optional = struct.unpack_from("<6xH12xH", image, at)[0], struct.unpack_from(
        "<20xH", image, at)[0]
    wide = struct.unpack_from("<H", image, at + 24)[0] == 0x20b
    table = at + 24 + optional
    rva = next(struct.unpack_from("<I", image, table + 40 * i + 12)[0] for i in range(sections)
               if image[table + 40 * i:table + 40 * i + 4] == b".bss")
    struct.pack_into("<II", image, at + 24 + (112 if wide else 96) + 8 * 14, rva, 72)
    with open(f"late-{name}", "wb") as file:
        file.write(image)


def late(bits):
    """Where the imports cannot be changed: less of the beginning is seen, the program itself is exact."""
    late_image(f"exact{bits}.exe")
    done = record(f"late{bits}.tide", windows_path(f"late-exact{bits}.exe"), "return")
    said = re.search(r"heap (\w+) allocs (\d+) frees (\d+) reallocs (\d+) failed \d+ bytes (\d+)",
                     done.stdout)
    check(f"without imports, {bits} bits: it ran", said and done.returncode == 0, done)
    heap, *counts = int(said[1], 16), *map(int, said.groups()[1:])
    same(f"without imports, {bits} bits", f"late{bits}.tide", heap, *counts)
    early, late_ones = (ask("window", "--json", f"{trace}{bits}.tide")["total"]["count"] for trace in
                        ("return", "late"))
    check(f"without imports, {bits} bits: it came in later, {early} and {late_ones}",
          late_ones < early - 10, early, late_ones)


def children():
    """A parent of either size, children of both."""
    shells = {64: r"C:\windows\system32\cmd.exe", 32: r"C:\windows\syswow64\cmd.exe"}
    for bits in libwin.WIDTHS:
        trace = f"family{bits}.tide"
        line = " & ".join(windows_path(f"exact{child}.exe") + " return" for child in libwin.WIDTHS)
        done = record(trace, shells[bits], "/c", line)
        processes = ask("info", "--json", trace)["processes"]
        check(f"children of {bits} bits: the processes, {[p['bits'] for p in processes]}",
              sorted(p["bits"] for p in processes) == sorted([bits, *libwin.WIDTHS]), done, processes)
        for heap, allocs, frees, reallocs in re.findall(
                r"heap (\w+) allocs (\d+) frees (\d+) reallocs (\d+)", done.stdout):
            row = heap_row(trace, int(heap, 16))
            check(f"children of {bits} bits: heap {heap} is exact",
                  row and row["count"] >= int(allocs) + int(reallocs)
                  and row["freed_count"] >= int(frees) + int(reallocs), row, done.stdout)


def pids_of(*words):
    """Processes with all of these in their command lines that are Wine's own."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                line = file.read()
            with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
                name = file.read()
        except OSError:
            continue  # it has ended
        if name.startswith("tidemark.exe") and all(word.encode() in line for word in words):
            found.append(int(pid))
    return found


def stalled():
    """A collector that does not look for so long that a child runs without it: it is said."""
    command = [libwin.WINE_RUN, "--prefix", "prefix", "--time", str(PATIENCE_SECONDS), "--", EXE, "record", "-o",
               "stalled.tide", "--", "cmd.exe", "/c", "echo ready & set /p x= & " + windows_path("exact64.exe") + " return"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as running:
        check("stalled: it begins", "ready" in running.stdout.readline())
        collectors = pids_of("stalled.tide")
        for pid in collectors:
            os.kill(pid, signal.SIGSTOP)
        try:
            running.stdin.write("\n")
            running.stdin.flush()
            line = running.stdout.readline()
        finally:
            for pid in collectors:
                os.kill(pid, signal.SIGCONT)
        err = running.communicate()[1]
    check("stalled: the child ran meanwhile", collectors and "heap" in line, line, collectors)
    check("stalled: it is said", re.search(r"cmd\.exe began 1 program that is not recorded", err), err)
    info = ask("info", "--json", "stalled.tide")
    check("stalled: and the trace is not whole", len(info["processes"]) == 1 and not info["trace"]["complete"], info)


# What is started first brings up a server that lives on and would keep our pipes open.
subprocess.run([libwin.WINE_RUN, "--prefix", "prefix", "--", "cmd.exe", "/c", "exit"],
               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
for BITS in (64, 32):
    said = subprocess.run([f"{libwin.BITS[BITS]}-objdump", "-p", libwin.built(f"tidemark{BITS}.dll")],
                          capture_output=True, text=True, check=True).stdout
    check(f"the recorder of {BITS} bits imports ntdll alone",
          re.findall(r"DLL Name: (\S+)", said) == ["ntdll.dll"], said)
    libwin.cross_compile(BITS, f"exact{BITS}.exe", "-fno-omit-frame-pointer", PROGRAM)
for BITS in libwin.WIDTHS:
    for HOW, CODE in (("return", 0), ("exit", 7), ("terminate", 8), ("fault", 5), ("abort", 3),
                      ("threads", 0), ("raise", 0), ("mended", 0), ("closes", 0), ("destroy", 0), ("wrong", 0), ("damaged", 0), ("heaps", 0),
                      ("attach", 0)):
        run(BITS, HOW, CODE)
    kill(BITS)
    outside(BITS)
    unborn(BITS)
    late(BITS)
children()
stalled()
subprocess.run([libwin.WINE_RUN, "--prefix", "prefix", "--end"], check=False)
libwin.end()
