#!/usr/bin/env python3
# parallel: yes
"""`tidemark import` of Windows event logs: stacks, processes, images and blocks are those of the log.

Logs of Windows itself are read from the folder TIDEMARK_ETL, where there is one."""
import gzip
import os
import re
import subprocess

from libanswer import BUILD, TIDEMARK, answer, refused, run
from libetl import FIRST, Log
from libtests import Skip, main, test

ALLOC, FREE, WAS_THERE = 98, 99, 128
COMMIT, RESERVE, DECOMMIT, RELEASE = 0x1000, 0x2000, 0x4000, 0x8000
CREATE, HEAP_ALLOC, REALLOC, DESTROY, HEAP_FREE = 32, 33, 34, 35, 36
APP, NTDLL, KERNEL = 0x140000000, 0x7ff800000000, 0xfffff80000000000
GUID = bytes(range(16))
MIB = 1 << 20


def ms(at):
    return FIRST + at * 10_000


def imported(log, name="log", **how):
    path = log.write(name + ".etl", **how)
    said = run("import", path, "-o", name + ".tide", "--force").stderr
    return name + ".tide", said


def system(log):
    """Two processes of one pid, a parent, images with and without RSDS."""
    log.process(ms(0), 3, 4, "System")
    log.image(ms(0), 3, 0, KERNEL, MIB, "\\SystemRoot\\ntoskrnl.exe")
    log.process(ms(1), 1, 700, "app.exe", '"C:\\My Tools\\app.exe" --x "a b"')
    log.image(ms(1), 10, 700, APP, MIB, "\\Device\\HarddiskVolume3\\app.exe")
    log.image(ms(1), 10, 700, NTDLL, MIB, "\\Device\\HarddiskVolume3\\Windows\\System32\\ntdll.dll")
    log.rsds(ms(1), 700, APP, GUID, 3, "C:\\build\\App.pdb")
    log.rsds(ms(1), 700, NTDLL, GUID[::-1], 1, "wntdll.pdb")
    return log


def frames_of(row):
    return [f"{frame['module'].split(chr(92))[-1]}+{frame['offset']:#x}" for frame in row["keys"]["stack"]]


@test
def commits_last_from_a_call_to_a_call():
    log = system(Log())
    log.virtual(ms(2), ALLOC, 0x10000, MIB, 700, RESERVE, tid=9)
    log.virtual(ms(3), ALLOC, 0x10000, MIB // 2, 700, COMMIT, tid=9)
    log.virtual(ms(4), ALLOC, 0x900000, 4096, 700, RESERVE | COMMIT, tid=9)
    log.virtual(ms(5), FREE, 0x10000, MIB // 4, 700, DECOMMIT, tid=9)
    log.virtual(ms(6), FREE, 0x900000, 4096, 700, RELEASE, tid=9)
    # Reserved before the log began: it says so with the commit.
    log.virtual(ms(7), ALLOC, 0x5000000, 8192, 700, COMMIT, tid=9)
    path, said = imported(log)
    window = answer("window", path, "--layer", "vm", "--from", "0", "--to", "4500us")
    assert window["total"]["size"] == MIB // 2 + 4096, window["total"]
    window = answer("window", path, "--layer", "vm")
    assert window["total"]["impacting_size"] == MIB // 4 + 8192, window["total"]
    assert "6 of 6 events have no stack" in said, said
    assert "checked against what is published" in str(answer("window", path)["warnings"])


@test
def heaps_have_their_blocks():
    log = system(Log())
    log.heap(ms(2), CREATE, 700, 9, 0xb60000, flags=(2).to_bytes(4, "little"))
    log.heap(ms(3), HEAP_ALLOC, 700, 9, 0xb60000, 40, 0xb60100)
    log.heap(ms(4), HEAP_ALLOC, 700, 9, 0xb60000, 60, 0xb60200)
    log.heap(ms(5), REALLOC, 700, 9, 0xb60000, 0xb60100, 0xb60100, 48, 40)
    log.heap(ms(6), REALLOC, 700, 9, 0xb60000, 0xb60300, 0xb60200, 90, 60)
    log.heap(ms(6), HEAP_ALLOC, 700, 9, 0xb60000, 90, 0xb60300)
    log.heap(ms(6), HEAP_FREE, 700, 9, 0xb60000, 0xb60200)
    log.heap(ms(7), HEAP_ALLOC, 700, 9, 0xd30000, 7, 0xd30100)
    log.heap(ms(8), DESTROY, 700, 9, 0xb60000)
    path, said = imported(log)
    heap = answer("report", path)["heap"]
    assert heap["allocations"] == 5 and heap["reallocations"] == 1, heap
    assert heap["allocated_bytes"] == 40 + 60 + 48 + 90 + 7, heap
    assert heap["live_at_exit"]["bytes"] == 7, heap
    rows = {row["keys"]["heap"]: row["count"]
            for row in answer("window", path, "--by", "heap")["rows"]}
    assert rows == {"0xb60000": 4, "0xd30000": 1}, rows
    assert "1 blocks that HeapReAlloc moved" in said, said


@test
def a_recycled_key_means_its_next_definition():
    log = system(Log())
    for at, key, of in ((10, 0xaa, 1), (20, 0xaa, 2), (30, 0xbb, 3), (40, 0xaa, 4)):
        log.heap(ms(at), HEAP_ALLOC, 700, 9, 0x10, of, 0x1000 * of, cpu=of % 2)
        log.key(ms(at) + 30, ms(at), 700, 9, key, cpu=1)
    log.define(ms(15), 0xaa, APP + 0x101, APP + 0x201)
    log.define(ms(25), 0xaa, APP + 0x301, APP + 0x201)
    log.define(ms(90), 0xaa, NTDLL + 0x11, APP + 0x201, at_end=True, cpu=3)
    log.define(ms(90), 0xbb, APP + 0x401, at_end=True)
    path, said = imported(log)
    rows = {row["size"]: frames_of(row)
            for row in answer("window", path, "--by", "stack", "--all-frames")["rows"]}
    assert rows == {1: ["app.exe+0x100", "app.exe+0x200"], 2: ["app.exe+0x300", "app.exe+0x200"],
                    3: ["app.exe+0x400"], 4: ["ntdll.dll+0x10", "app.exe+0x200"]}, rows
    assert "have no stack" not in said and "no definition" not in said, said


@test
def kernel_and_user_parts_are_one_stack():
    log = system(Log())
    log.switch(ms(1), 9)
    log.virtual(ms(2), ALLOC, 0x10000, 4096, 700, RESERVE | COMMIT, short=True)
    log.key(ms(2) + 1, ms(2), 700, 9, 0xcc, kernel=True)
    log.walk(ms(300), ms(2), 700, 9, APP + 0x101)
    log.define(ms(400), 0xcc, KERNEL + 0x501, KERNEL + 0x601)
    # The thread of one whose header names none is that of its stack.
    log.virtual(ms(500), ALLOC, 0x20000, 8192, 700, RESERVE | COMMIT, cpu=1, short=True)
    log.walk(ms(501), ms(500), 700, 11, KERNEL + 0x501, NTDLL + 0x21, cpu=1)
    path, _ = imported(log)
    rows = {row["size"]: (row["keys"]["thread"], frames_of(row))
            for row in answer("window", path, "--layer", "vm", "--by", "thread,stack",
                              "--all-frames")["rows"]}
    assert rows == {4096: (9, ["ntoskrnl.exe+0x500", "ntoskrnl.exe+0x600", "app.exe+0x100"]),
                    8192: (11, ["ntoskrnl.exe+0x500", "ntdll.dll+0x20"])}, rows


@test
def processes_of_one_pid_are_told_apart():
    log = system(Log(lost=7))
    log.heap(ms(2), HEAP_ALLOC, 700, 9, 0x10, 5, 0x1000)
    log.process(ms(3), 2, 700, "app.exe", status=3)
    log.process(ms(5), 1, 700, "other.exe", "other.exe 1")
    log.heap(ms(6), HEAP_ALLOC, 700, 12, 0x10, 6, 0x1000)
    log.heap(ms(6), HEAP_ALLOC, 4, 8, 0x10, 6, 0x1000)
    path, _ = imported(log)
    text = run("dump", "--definitions", path).stdout
    assert '"app.exe"' in text and '"other.exe"' in text and '"System"' in text, text
    found = answer("report", path)
    assert [each["exit"] for each in found["trace"]["processes"]] == ["exit 3", "unknown", "unknown"], found
    assert re.search(r"events? lost|lost", run("info", path).stdout), run("info", path).stdout
    assert "C:\\\\My Tools\\\\app.exe" in text and '"a b"' in text, text


@test
def images_lead_to_their_symbols():
    log = system(Log())
    log.heap(ms(2), HEAP_ALLOC, 700, 9, 0x10, 5, 0x1000)
    log.walk(ms(2) + 1, ms(2), 700, 9, NTDLL + 0x21, APP + 0x101)
    # Another image where one has been.
    log.image(ms(3), 2, 700, NTDLL, MIB, "ntdll.dll")
    log.image(ms(4), 10, 700, NTDLL, 2 * MIB, "\\plugin.dll")
    log.heap(ms(5), HEAP_ALLOC, 700, 9, 0x10, 6, 0x2000)
    log.walk(ms(5) + 1, ms(5), 700, 9, NTDLL + 0x21, APP + 0x101)
    path, _ = imported(log)
    text = run("dump", "--definitions", path).stdout
    assert GUID.hex() + "03000000 " in text.replace('"', " "), text
    assert GUID[::-1].hex() + "01000000" + b"wntdll.pdb".hex() in text, text
    rows = {row["size"]: frames_of(row)
            for row in answer("window", path, "--by", "stack", "--all-frames")["rows"]}
    assert rows == {5: ["ntdll.dll+0x20", "app.exe+0x100"], 6: ["plugin.dll+0x20", "app.exe+0x100"]}, rows


def of_machine(volume, pid, tid, shift, later, more=0):
    """One program: on another machine its images, blocks, numbers and times are others."""
    app, ntdll, log = APP + shift, NTDLL + 3 * shift, Log()
    log.process(ms(0), 3, 4, "System")
    log.process(ms(1), 1, pid, "app.exe", "app.exe")
    log.image(ms(1), 10, pid, app, MIB, f"\\Device\\HarddiskVolume{volume}\\app.exe")
    log.image(ms(1), 10, pid, ntdll, MIB, f"\\Device\\HarddiskVolume{volume}\\Windows\\System32\\ntdll.dll")
    for at in range(30 + more):
        time = ms(2 + later) + at * 1000
        log.heap(time, HEAP_ALLOC, pid, tid, 0x10 + shift, 100, 0x100000 + shift + 128 * at)
        log.walk(time + 1, time, pid, tid, ntdll + 0x21, app + 0x101 + 16 * (at % 3))
    return log


@test
def logs_of_two_machines_differ_by_what_the_program_did_alone():
    first, _ = imported(of_machine(3, 700, 9, 0, 0), "first")
    for name, more in (("same", 0), ("more", 3)):
        other, _ = imported(of_machine(5, 4321, 77, 0x5550000, 40, more), name)
        told = answer("diff", first, other)
        counts = told["stacks"]
        assert (counts["new"], counts["gone"], counts["changed"]) == (0, 0, more), (name, counts)
        assert told["total"]["allocated"]["count"] == more, told["total"]


def busy(count=3000, **how):
    """Many blocks, on four processors."""
    log = system(Log(**how))
    for at in range(count):
        time, tid = FIRST + 100_000 + at * 100, 9 + at % 4
        log.heap(time, HEAP_ALLOC, 700, tid, 0x10, at % 50 + 1, 0x10000 + 64 * (at % 512), cpu=at % 4)
        log.walk(time + 1, time, 700, tid, APP + 0x101 + at % 7, cpu=at % 4)
        log.heap(time + 50, HEAP_FREE, 700, tid, 0x10, 0x10000 + 64 * (at % 512), cpu=(at + 1) % 4)
    return log


@test
def packed_logs_pipes_and_logs_of_32_bits_say_the_same():
    plain = busy()
    path, said = imported(plain, "plain")
    assert "3,000 of 6,000 events have no stack" in said, said
    heap = answer("report", path)["heap"]
    assert (heap["allocations"], heap["frees"], heap["live_at_exit"]["bytes"]) == (3000, 3000, 0), heap
    assert heap["peak_bytes"] == 50, heap
    text = run("dump", "--items", path).stdout
    for name, log, how in (("packed", plain, {"compress": True}), ("large", plain, {"room": 1 << 16}),
                           ("packed64k", plain, {"room": 1 << 16, "compress": True})):
        assert run("dump", "--items", imported(log, name, **how)[0]).stdout == text, name
    with open("plain.etl", "rb") as file:
        content = file.read()
    with open("plain.gz", "wb") as file:
        file.write(gzip.compress(content))
    run("import", "plain.gz", "-o", "gz.tide")
    subprocess.run([TIDEMARK, "import", "-", "-o", "pipe.tide"], input=content, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert run("dump", "--items", "gz.tide").stdout == run("dump", "--items", "pipe.tide").stdout == text
    small = Log(pointer=4)
    small.process(ms(0), 1, 700, "app.exe")
    small.heap(ms(2), HEAP_ALLOC, 700, 9, 0x10, 5, 0x1000)
    small.walk(ms(2) + 1, ms(2), 700, 9, 0x80001001, 0x401001)
    text = run("dump", imported(small, "small")[0]).stdout
    assert "bits=32" in text or " 32" in text, text
    assert "0x80001000" in text and "0x401000" in text, text


@test
def what_cannot_be_unpacked_is_named():
    log = busy(40)
    for packing, name in ((2, "LZNT1"), (4, "XPRESS-Huffman")):
        said = refused("import", log.write("other.etl", compress=True, packing=packing), "-o", "x.tide", code=3)
        assert f"packed by {name}" in said and "xperf -merge" in said, said
        # A number without packed buffers is not a packing.
        imported(log, "unpacked", packing=packing)


@test
def a_cut_log_counts_as_far_as_it_goes():
    path = busy().write("whole.etl")
    with open(path, "rb") as file:
        content = file.read()
    with open("cut.etl", "wb") as file:
        file.write(content[:len(content) // 2 + 100])
    said = run("import", "cut.etl", "-o", "cut.tide").stderr
    assert "the log is cut: its buffers end at byte " in said, said
    assert "ends early" in str(answer("report", "cut.tide")), answer("report", "cut.tide")


@test
def damaged_logs_do_no_harm():
    os.makedirs("damaged")
    small = busy(12)
    small.key(ms(20), FIRST + 100_000, 700, 9, 0xaa)
    small.define(ms(30), 0xaa, APP + 0x101, APP + 0x201)
    for compress in (False, True):
        with open(small.write("small.etl", room=1024, compress=compress), "rb") as file:
            content = file.read()
        for at in range(0, len(content), 5 if compress else 11):
            with open(f"damaged/cut{compress}{at}", "wb") as file:
                file.write(content[:at])
            with open(f"damaged/flip{compress}{at}", "wb") as file:
                file.write(content[:at] + bytes([content[at] ^ (1 << at % 8)]) + content[at + 1:])
    subprocess.run([os.path.join(BUILD, "test/fuzz/import_replay"), "damaged"], check=True,
                   stdout=subprocess.DEVNULL)


@test
def a_log_of_windows_has_its_known_counts():
    folder = os.environ.get("TIDEMARK_ETL")
    path = os.path.join(folder or "", "perfview_net452_x64.etl")
    if not folder or not os.path.exists(path):
        raise Skip("TIDEMARK_ETL names no folder with perfview_net452_x64.etl")
    said = refused("import", path, "-o", "x.tide", code=3)
    for word in ("179,474 events", "9,359 stacks (9,107 by key, 0 of them without a definition",
                 "646 of 1,077 keys are used again"):
        assert word in said, (word, said)
    with open(path, "rb") as file:
        content = file.read()
    with open("part.etl", "wb") as file:
        file.write(content[:len(content) // 2])
    refused("import", "part.etl", "-o", "x.tide", code=3)


main()
