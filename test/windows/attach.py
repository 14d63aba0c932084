#!/usr/bin/env python3
"""tidemark.exe attach, under Wine: a program of either size that runs already is recorded from there
on; one that another has hooked before us as well, and that is said; one that forbids dynamic code runs
on, unrecorded; of one that takes hooks away that is said. tidemark.exe watch writes its
keys, and --off leaves none."""
# timeout: 400
# parallel: yes
import os
import re
import subprocess

import libwin
from libtests import PATIENCE_SECONDS
from libwin import ask, check

libwin.need_wine()
EXE = libwin.built("tidemark.exe")
PROGRAM = os.path.join(libwin.SOURCE, "test", "programs", "win", "attached.c")
KEYS = "\\Software\\Microsoft\\Windows NT\\CurrentVersion\\Image File Execution Options"


def attach(bits, *words):
    name = " ".join([f"{bits} bits", *words])
    trace = f"attached{bits}{'-'.join(words)}.tide"
    command = [libwin.WINE_RUN, "--prefix", "prefix", "--time", str(PATIENCE_SECONDS), "--",
               libwin.windows_path(f"attached{bits}.exe"), *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        pid = re.search(r"pid (\d+)", running.stdout.readline())[1]
        done = libwin.wine(EXE, "attach", pid, "-o", trace, prefix="prefix", seconds=100, text=True)
        if done.returncode != 0:
            running.kill()
            raise SystemExit(f"not so: {name} is attached to: {done}")
        said = running.stdout.read()
        check(f"{name}: the program ran on", running.wait() == 0, said)
    check(f"{name}: nothing is lost", ", 0 events lost" in done.stderr, done)
    heap = "0x" + re.search(r"heap (\w+)", said)[1]
    row = ask("window", trace, "--heap", heap)["total"]
    check(f"{name}: allocations and frees are exact",
          (row["count"], row["allocated"], row["freed_count"]) == (5000, 240000, 2500), row)
    check(f"{name}: frees of what it had before are no mistakes", row["orphan_frees"] == 0, row)
    process = ask("info", trace)["processes"][0]
    check(f"{name}: it is said to have been attached to", process["start"] == "attach", process)
    text = " ".join(subprocess.run([os.environ["TIDEMARK"], "report", trace], capture_output=True, text=True,
                                   check=True).stdout.split())
    check(f"{name}: and what is not known of it", "was attached to while it ran: what it had allocated before is in no "
          "figure" in text, text)
    row = ask("window", trace, "--heap", heap, "--from", "mark:work.begin", "--to",
              "mark:work.end")["total"]
    check(f"{name}: marks reach the trace", (row["count"], row["freed_count"]) == (5000, 2500), row)
    names = libwin.Names(bits, f"attached{bits}.exe")
    rows = ask("window", trace, "--heap", heap, "--by", "stack", "--size", "48")["rows"]
    check(f"{name}: stacks are whole",
          all(names.stack(row["keys"]["stack"])[:2] == ["work", "main"] for row in rows), rows)
    hooked = re.search(r"RtlFreeHeap was hooked by somebody else before us", done.stderr)
    check(f"{name}: another's hook is {'told' if 'hooked' in words else 'not there'}",
          bool(hooked) == ("hooked" in words), done.stderr)
    odd = re.search(r"NtUnmapViewOfSectionEx begins with", done.stderr)
    check(f"{name}: what cannot be hooked is {'told' if 'odd' in words else 'not there'}",
          bool(odd) == ("odd" in words), done.stderr)
    check(f"{name}: the trace is {'not ' if odd else ''}whole",
          ask("info", trace)["trace"]["complete"] == (not odd), done.stderr)


def unhooked(bits, word, expected):
    """A program that gives functions their own code back."""
    name, trace = f"{bits} bits, {word}", f"{word}{bits}.tide"
    command = [libwin.WINE_RUN, "--prefix", "prefix", "--time", str(PATIENCE_SECONDS), "--",
               libwin.windows_path(f"attached{bits}.exe"), word]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        pid = re.search(r"pid (\d+)", running.stdout.readline())[1]
        done = libwin.wine(EXE, "record", "-p", pid, "--strict", "-o", trace, prefix="prefix", seconds=100, text=True)
        said = running.stdout.read()
        check(f"{name}: the program runs on", running.wait() == 0 and "heap" in said, said)
    check(f"{name}: it is said, and --strict fails", done.returncode == 125 and expected in done.stderr, done)
    check(f"{name}: the trace says so", any(expected in each for each in ask("info", trace)["notes"]["messages"]))


def forbidden(bits):
    """A program whose memory cannot become code."""
    name, trace = f"{bits} bits, forbids", f"forbids{bits}.tide"
    command = [libwin.WINE_RUN, "--prefix", "prefix", "--time", str(PATIENCE_SECONDS), "--",
               libwin.windows_path(f"attached{bits}.exe"), "forbids"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        pid = re.search(r"pid (\d+)", running.stdout.readline())[1]
        done = libwin.wine(EXE, "attach", pid, "-o", trace, prefix="prefix", seconds=100, text=True)
        if done.returncode == 0:
            running.kill()
        said = running.stdout.read()
        check(f"{name}: the program runs on", running.wait() == 0 and "heap" in said, said)
    check(f"{name}: it is refused, and why is said", done.returncode == 125
          and "it forbids dynamic code" in done.stderr, done)
    check(f"{name}: no trace is left", not os.path.exists(trace))


def refused():
    for word, code in (("0", 125), ("word", 125), ("4294967295", 127), ("", 125)):
        done = libwin.wine(EXE, "attach", *([word] if word else []), prefix="prefix", text=True)
        check(f"attach '{word}' is refused in a line", done.returncode == code
              and done.stderr.count("\n") == 1, done)


def registry(view):
    """All keys and values of images, in one of the two views."""
    done = libwin.wine("C:\\windows\\system32\\reg.exe", "query", "HKLM" + KEYS, "/s",
                       f"/reg:{view}", prefix="prefix", text=True)
    return done.stdout


def watch():
    before = [registry(view) for view in (64, 32)]
    done = libwin.wine(EXE, "watch", "Editor.exe", "-o", "C:\\a folder\\%e.%p.tide",
                       prefix="prefix", text=True)
    check("watch: it is done", done.returncode == 0 and not done.stderr, done)
    for view in (64, 32):
        said = registry(view)
        check(f"watch: the key is there, {view} bits", re.search(
            r'Debugger +REG_SZ +".*tidemark\.exe" watched "C:\\a folder\\%e\.%p\.tide"', said), said)
    done = libwin.wine(EXE, "watch", prefix="prefix", text=True)
    check("watch: it is listed", re.match(r"Editor\.exe  C:\\a folder\\%e\.%p\.tide", done.stdout),
          done)
    done = libwin.wine(EXE, "watch", "Editor.exe", "--off", prefix="prefix", text=True)
    check("watch --off: it is done", done.returncode == 0 and not done.stderr, done)
    check("watch --off: nothing of it is left",
          [registry(view) for view in (64, 32)] == before, before, registry(64))
    done = libwin.wine(EXE, "watch", "Editor.exe", "--off", prefix="prefix", text=True)
    check("watch --off: what is not watched is told", done.returncode == 2
          and "not watched" in done.stderr, done)
    done = libwin.wine(EXE, "watch", "C:\\x\\editor.exe", prefix="prefix", text=True)
    check("watch: a path is refused", done.returncode == 2, done)
    libwin.wine("C:\\windows\\system32\\reg.exe", "add", "HKLM" + KEYS + "\\other.exe", "/v",
                "Debugger", "/d", "C:\\debugger.exe", prefix="prefix")
    done = libwin.wine(EXE, "watch", "other.exe", prefix="prefix", text=True)
    check("watch: another's debugger is left alone", done.returncode == 3
          and "another debugger" in done.stderr and "C:\\debugger.exe" in registry(64), done)


def watched():
    """What the key's command does with the program's own command line behind it."""
    done = libwin.wine(EXE, "watched", "watched.tide", "C:\\windows\\system32\\cmd.exe", "/c",
                       "echo one & exit 5", prefix="prefix", text=True)
    check("a watched program is itself for its parent", done.returncode == 5
          and done.stdout.strip() == "one" and not done.stderr, done)
    check("and is recorded", ask("window", "watched.tide")["total"]["count"] > 50)


libwin.begin_prefix()
for BITS in libwin.WIDTHS:
    libwin.cross_compile(BITS, f"attached{BITS}.exe", "-I", libwin.SOURCE, "-fno-omit-frame-pointer",
                         "-fno-optimize-sibling-calls", PROGRAM)
    attach(BITS)
    attach(BITS, "hooked")
    attach(BITS, "odd")
    forbidden(BITS)
    unhooked(BITS, "unhooks", "RtlAllocateHeap has got its own code back, by the program")
    unhooked(BITS, "unhooks-all", "made the code of ntdll writable, and the recorder was not called since")
refused()
watch()
watched()
libwin.end_prefix()
libwin.end()
