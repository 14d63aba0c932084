#!/usr/bin/env python3
# parallel: yes
# timeout: 240
"""A trace that is kept short while it is written (record --keep, --max-size, --rotate, ctl save): what
lives at its end is what lives in a recording of everything, and nothing is lost."""
import csv
import glob
import json
import os
import re
import signal
import subprocess
import time

from libdisk import Disk
from libguest import TIDEMARK, check, environment, equal, main, program, test, wait_for

OPERATIONS = "400000"
FIXED = ("setarch", "-R")  # equal addresses in each run


def record(name, *options, how="", pause="2000", operations=OPERATIONS):
    """Record goes_on; what the program and tidemark said."""
    words = [*FIXED, TIDEMARK, "record", "-o", name, *options, program("goes_on"), operations, pause]
    done = subprocess.run(words + [how] * bool(how), capture_output=True, text=True, check=False,
                          env=environment(), timeout=200)
    equal(0, done.returncode, done.stderr)
    check("0 events lost" in done.stderr, done.stderr)
    return done


def read(name):
    with open(name, encoding="utf-8") as file:
        return file.read()


def ask(*words):
    done = subprocess.run([TIDEMARK, *words], capture_output=True, text=True, check=False,
                          env=environment())
    equal(0, done.returncode, (words, done.stderr))
    return done.stdout


def live(trace, layer):
    """What lives at the end, without ages."""
    rows = csv.DictReader(ask("active", trace, "--at", "exit", "-n", "0", "--layer", layer,
                              "--csv").splitlines())
    return sorted((row["address"], row["size"], row["owner"], row["process_id"], row["function"])
                  for row in rows)


def figures(text):
    """Of a report: blocks of before, allocations, live at exit."""
    def number(pattern):
        found = re.search(pattern, text)
        return int(found[1].replace(",", "")) if found else 0
    return (number(r"before +([\d,]+) +blocks"), number(r"allocated .* in ([\d,]+) blocks"),
            number(r"live at exit .* in ([\d,]+) blocks"))


def has_less(trace, operations):
    """It was cut."""
    before, allocations, _ = figures(ask("report", trace))
    check(before > 0, "nothing was left out of", trace)
    check(allocations < operations, allocations)
    check("NOT WHOLE" not in ask("info", trace), "it is not whole")


def record_cut(name, *options, how=""):
    """record, with longer naps until it was cut: a collector that gets no processor cuts late."""
    for pause in ("2000", "10000", "50000"):
        done = record(name, "-f", *options, how=how, pause=pause)
        if figures(ask("report", name))[0]:
            break
    has_less(name, int(OPERATIONS) * (2 if how else 1))
    return done


def bytes_per_event(trace):
    return json.loads(ask("info", trace, "--json"))["events"]["bytes_per_event"]


@test
def what_lives_is_what_lives_in_the_whole():
    for how in ("", "forks"):
        record(f"whole{how}.tide", how=how, pause="0")
        record_cut(f"kept{how}.tide", "--keep", "100ms", how=how)
        for layer in ("heap", "vm"):
            equal(live(f"whole{how}.tide", layer), live(f"kept{how}.tide", layer), layer)
        # What was cut away is not in the file, however much that was.
        check(bytes_per_event(f"kept{how}.tide") < 2 * bytes_per_event(f"whole{how}.tide"))
    equal([], glob.glob("*.part"))
    equal([0o600] * 4, [os.stat(name).st_mode & 0o777 for name in glob.glob("*.tide")])


@test
def threads_go_on_while_it_is_cut():
    done = record_cut("threads.tide", "--keep", "100ms", how="threads")
    blocks = int(re.search(r"live (\d+) ", done.stdout)[1])
    # The thread that was started has a block of the loader's.
    check(figures(ask("report", "threads.tide"))[2] - blocks in (0, 1))


@test
def a_trace_keeps_to_its_size():
    name, largest = "size.tide", 0
    process = subprocess.Popen([TIDEMARK, "record", "-q", "-o", name, "--max-size", "8M",
                                program("goes_on"), "2500000", "0"], env=environment(),
                               stdout=subprocess.DEVNULL)
    while process.poll() is None:
        if os.path.exists(name):
            largest = max(largest, os.path.getsize(name))
        time.sleep(0.01)
    equal(0, process.returncode)
    has_less(name, 2500000)
    # What the lanes still had comes on top.
    check(largest < 10 << 20, largest)


@test
def time_and_size_go_together():
    record_cut("both.tide", "--keep", "100ms", "--max-size", "8M")
    info = ask("info", "both.tide")
    check("keep=100ms" in info and "max-size=8M" in info, info)


@test
def a_rotated_trace_has_it_all():
    done = record("part.tide", "--rotate", "300ms")
    parts = sorted(glob.glob("part.*.tide"), key=lambda name: int(name.split(".")[1]))
    check(len(parts) >= 2, parts)
    for name in parts + ["part.tide"]:
        check("NOT WHOLE" not in ask("info", name), name)
        equal(0o600, os.stat(name).st_mode & 0o777, name)
        before, allocations, left = figures(ask("report", name))
        check(allocations > 0 and before + allocations >= left, name, before, allocations, left)
    equal(len(parts) + 1, len({re.search(r'"recording_id": "(\w+)"', ask("info", name, "--json"))[1]
                               for name in parts + ["part.tide"]}))
    equal(int(re.search(r"live (\d+) ", done.stdout)[1]), figures(ask("report", "part.tide"))[2])
    equal(sum(figures(ask("report", name))[1] for name in parts + ["part.tide"]) >= int(OPERATIONS),
          True)


def goes_on_after_a_full_disk(folder, *options):
    """No file can be made for a while: the disk has as many as it can have."""
    with Disk(folder, "256m,nr_inodes=300") as disk:
        with open("said", "w", encoding="utf-8") as said:
            process = subprocess.Popen([TIDEMARK, "record", "-o", f"{folder}/part.tide", *options,
                                        program("goes_on"), "1000000000", "2000"],
                                       env=environment(), stderr=said)
        try:
            wait_for(lambda: os.path.exists(f"{folder}/part.tide"), "the trace")
            disk.fill()
            wait_for(lambda: "not kept short for now" in read("said"), "the warning")
            check("No space left on device" in read("said"), read("said"))
            disk.clear()
            wait_for(lambda: "kept short again: nothing of it is missing" in read("said"), "the next file")
        finally:
            process.terminate()
            process.wait()
        equal(2, read("said").count("kept short"))
        check("0 events lost" in read("said"), read("said"))
        equal([], glob.glob(f"{folder}/*.part"))
        traces = sorted(glob.glob(f"{folder}/*.tide"))
        for name in traces:
            check("NOT WHOLE" not in ask("info", name), name)
        return [figures(ask("report", name)) for name in traces]


@test
def it_goes_on_when_the_disk_has_room_again():
    check(len(goes_on_after_a_full_disk("rotated", "--rotate", "300ms")) > 1)
    # What is not cut is there: the file has all the time that is to be kept.
    equal(1, len(goes_on_after_a_full_disk("kept", "--keep", "100ms")))


@test
def ctl_saves_what_there_is():
    process = subprocess.Popen([TIDEMARK, "record", "-q", "-o", "saved.tide", "--keep", "200ms",
                                program("goes_on"), "100000000", "1000"], env=environment(),
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        wait_for(lambda: subprocess.run(["pgrep", "-P", str(process.pid), "-x", "goes_on"],
                                        capture_output=True, check=False).stdout, "the program")
        pid = subprocess.check_output(["pgrep", "-P", str(process.pid), "-x", "goes_on"],
                                      text=True).split()[0]
        wait_for(lambda: subprocess.run([TIDEMARK, "ctl", pid, "save", "now.tide"],
                                        env=environment(), capture_output=True,
                                        check=False).returncode == 0, "the collector")
        check(figures(ask("report", "now.tide"))[1] > 0)
        equal(0o600, os.stat("now.tide").st_mode & 0o777)
        again = subprocess.run([TIDEMARK, "ctl", pid, "save", "now.tide"], env=environment(),
                               capture_output=True, text=True, check=False)
        check(again.returncode != 0 and "exists already" in again.stderr, again)
        # Whatever moment it is killed at, there is a trace under the name.
        os.kill(int(pid), signal.SIGKILL)
        process.wait()
        check("NOT WHOLE" not in ask("info", "saved.tide"))
    finally:
        process.kill()
        process.communicate()


@test
def what_cannot_be_is_refused():
    for words in (("--keep", "0s"), ("--keep", "soon"), ("--max-size", "1M"), ("--max-size", "much"),
                  ("--rotate", ""), ("--rotate", "1h", "--keep", "5m"), ("--keep", "5m", "--index"),
                  ("--keep", "5m", "-f", "-o", "/dev/null")):
        done = subprocess.run([TIDEMARK, "record", *words, "true"], env=environment(),
                              capture_output=True, text=True, check=False)
        equal(125, done.returncode, words)
        check(done.stderr.count("\n") <= 2 and done.stderr, words, done.stderr)


main()
