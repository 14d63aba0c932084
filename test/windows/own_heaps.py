#!/usr/bin/env python3
"""Programs that have the signs of a runtime or of an allocator of their own: info, report, findings
and window name it on Windows as on Linux, and nothing else."""
# timeout: 300
# parallel: yes
import os
import shutil
import subprocess

import libwin
from libwin import ask, check

libwin.need_wine()
EXE = libwin.built("tidemark.exe")
PROGRAM = os.path.join(libwin.SOURCE, "test", "programs", "win", "own_heap.c")
TIDEMARK = os.environ["TIDEMARK"]
GO = "what its garbage collector gives out is in no figure"


def build(bits, name, *flags):
    libwin.cross_compile(bits, name, "-s", *flags, PROGRAM)


def record(bits, name, *words):
    trace = f"{name.split('.')[0]}{bits}.tide"
    done = libwin.wine(EXE, "record", "-f", "-o", trace, "--", libwin.windows_path(name), *words, prefix="prefix",
                       seconds=100, text=True)
    check(f"{bits} bits, {name}: recorded", done.returncode == 0 and "done" in done.stdout, done)
    return trace


def said(bits, name, trace, heap, language=None, line=None):
    """`heap`: as what the 64 MiB are called; None: as nobody's."""
    name = f"{bits} bits, {name}"
    rows = ask("window", trace, "--layer", "vm", "--by", "heap")["rows"]
    found = {row["keys"]["heap"]: row["impacting_size"] for row in rows}
    check(f"{name}: window names it", found.get(heap or "(virtual memory)", 0) >= 64 << 20, found)
    finding = [each for each in ask("findings", trace)["findings"] if each["kind"] == "outside"]
    check(f"{name}: so does the finding", [f"runtime's heap: {heap}" in each["what"] for each in finding] == [bool(heap)],
          finding)
    heaps = ask("report", trace)["heap"]["own_heaps"]
    check(f"{name}: and report", [each["heap"] for each in heaps] == [None if line else heap]
          and heaps[0]["outside"] == (not heap) and (not line or line in heaps[0]["text"]), heaps)
    text = " ".join(subprocess.run([TIDEMARK, "report", trace], capture_output=True, text=True, check=True).stdout.split())
    check(f"{name}: in text as in JSON", heaps[0]["text"] in text, text)
    process = ask("info", trace)["processes"][0]
    check(f"{name}: and info the language", process["interpreter"] == language, process)
    return process


libwin.begin_prefix()
for BITS in libwin.WIDTHS:
    build(BITS, "plain.exe")
    said(BITS, "plain", record(BITS, "plain.exe"), None)
    build(BITS, "gopher.exe", "-DSIGN_GO")
    said(BITS, "Go's table", record(BITS, "gopher.exe"), "Go heap", "Go", GO)
    build(BITS, "rusty.exe", "-DSIGN_MIMALLOC")
    process = said(BITS, "mimalloc's text", record(BITS, "rusty.exe"), "mimalloc")
    check(f"{BITS} bits: info says that its calls are not seen",
          [each["name"] for each in process["allocators"]] == ["mimalloc"], process)
    build(BITS, "speaks.exe", "-DSIGN_ONLY")
    said(BITS, "the text elsewhere", record(BITS, "speaks.exe"), None)
    shutil.copy("plain.exe", "Dart.exe")
    said(BITS, "Dart's name", record(BITS, "Dart.exe"), "Dart heap")
    build(BITS, "jvm.dll", "-shared", "-DLIBRARY=JNI_CreateJavaVM")
    said(BITS, "Java's library", record(BITS, "plain.exe", libwin.windows_path("jvm.dll"), "JNI_CreateJavaVM"), "Java VM",
         "java", "the collector's heap as mappings")
    build(BITS, "gopher.dll", "-shared", "-DSIGN_GO", "-DLIBRARY=Work")
    process = said(BITS, "a library of Go's", record(BITS, "plain.exe", libwin.windows_path("gopher.dll"), "Work"),
                   "Go heap", "Go", GO)
    check(f"{BITS} bits: info says which library it is",
          [(each["name"], each["file"].split("\\")[-1]) for each in process["allocators"]] == [("Go", "gopher.dll")], process)
    for SIGN, HEAP, LANGUAGE in (("DotNetRuntimeInfo", ".NET heap", ".NET"), ("DotNetRuntimeDebugHeader", ".NET heap", ".NET"),
                                 ("graal_create_isolate", "GraalVM heap", "GraalVM native image")):
        build(BITS, "single.exe", f"-DSIGN_RUNTIME={SIGN}")
        said(BITS, f"a runtime inside of a program, {SIGN}", record(BITS, "single.exe"), HEAP, LANGUAGE,
             "the collector's heap as mappings")
libwin.end_prefix()
libwin.end()
