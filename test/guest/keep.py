#!/usr/bin/env python3
# parallel: yes
# timeout: 360
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

OPERATIONS = 400000
FIXED = ("setarch", "-R")  # equal addresses in each run


def record(name, *options, how="alone", pause="2000", until=None):
    """Record goes_on; what the program said. With until(): it stands at its gate, with three quarters
    done, until that is true, however fast or slow we are."""
    gate, servers = f"{name}.gate", 1 if how == "alone" else 2
    words = [*FIXED, TIDEMARK, "record", "-o", name, *options, program("goes_on"),
             str(OPERATIONS), pause, how, gate]
    if not until:
        open(gate, "w", encoding="utf-8").close()
    with open("out", "w", encoding="utf-8") as out, open("err", "w", encoding="utf-8") as err:
        process = subprocess.Popen(words, stdout=out, stderr=err, env=environment())
    try:
        if until:
            wait_for(lambda: process.poll() is not None or read("out").count("waits") == servers,
                     "the gate")
            wait_for(lambda: process.poll() is not None or until(), f"what {name} is to be")
            open(gate, "w", encoding="utf-8").close()
        equal(0, process.wait(), read("err"))
    finally:
        process.kill()
        process.wait()
    check("0 events lost" in read("err"), read("err"))
    return read("out")


def is_cut(name, servers=1):
    """That next to nothing of what came before this is asked is in the trace. The first file that takes the
    name then may have been begun before; the next one was not."""
    files = []

    def is_it():
        now = os.stat(name)
        if files[-1:] != [now.st_ino]:
            files.append(now.st_ino)
        return len(files) > 2 and now.st_size < servers * OPERATIONS  # an operation has some six bytes
    return is_it


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
            number(r"live at (?:exit|end) .* in ([\d,]+) blocks"))


def has_less(trace, operations):
    """It was cut."""
    before, allocations, _ = figures(ask("report", trace))
    check(before > 0, "nothing was left out of", trace)
    check(allocations < operations, allocations)
    check("NOT WHOLE" not in ask("info", trace), "it is not whole")


@test
def what_lives_is_what_lives_in_the_whole():
    for how, servers in (("alone", 1), ("forks", 2)):
        whole, kept = f"whole-{how}.tide", f"kept-{how}.tide"
        record(whole, how=how, pause="0")
        record(kept, "--keep", "100ms", how=how, until=is_cut(kept, servers))
        has_less(kept, OPERATIONS * servers)
        for layer in ("heap", "vm"):
            equal(live(whole, layer), live(kept, layer), layer)
        check(os.path.getsize(kept) < os.path.getsize(whole) * 0.9)
    equal([], glob.glob("*.part"))
    equal([0o600] * 4, [os.stat(name).st_mode & 0o777 for name in glob.glob("*.tide")])


@test
def threads_go_on_while_it_is_cut():
    said = record("threads.tide", "--keep", "100ms", how="threads", until=is_cut("threads.tide", 2))
    blocks = int(re.search(r"live (\d+) ", said)[1])
    has_less("threads.tide", 2 * OPERATIONS)
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
    record("both.tide", "--keep", "100ms", "--max-size", "8M", until=is_cut("both.tide"))
    has_less("both.tide", OPERATIONS)
    kept, of = re.search(r"whole run; both.tide has ([\d,]+) of its ([\d,]+) events", read("err")).groups()
    check(int(kept.replace(",", "")) < int(of.replace(",", "")), "what the figures of its last lines are of")
    info = ask("info", "both.tide")
    check("keep=100ms" in info and "max-size=8M" in info, info)


@test
def a_rotated_trace_has_it_all():
    said = record("part.tide", "--rotate", "300ms", until=lambda: len(glob.glob("part.*.tide")) >= 2)
    parts = sorted(glob.glob("part.*.tide"), key=lambda name: int(name.split(".")[1]))
    for name in parts + ["part.tide"]:
        check("NOT WHOLE" not in ask("info", name), name)
        equal(0o600, os.stat(name).st_mode & 0o777, name)
        before, allocations, left = figures(ask("report", name))
        check(before + allocations >= max(left, 1), name, before, allocations, left)
    equal(len(parts) + 1, len({re.search(r'"recording_id": "(\w+)"', ask("info", name, "--json"))[1]
                               for name in parts + ["part.tide"]}))
    equal(int(re.search(r"live (\d+) ", said)[1]), figures(ask("report", "part.tide"))[2])
    check(sum(figures(ask("report", name))[1] for name in parts + ["part.tide"]) >= OPERATIONS)


def merged(output, *parts):
    return subprocess.run([TIDEMARK, "merge", *parts, "-o", output, "--force"], capture_output=True,
                          text=True, check=False, env=environment())


def rotated():
    """A recording in four files or more, the newest last. However slow the machine is: the program goes
    slower until there are as many."""
    def parts():
        return sorted(glob.glob("file.*.tide"), key=lambda name: int(name.split(".")[1]))
    for pause in ("2000", "10000", "50000"):
        if len(parts()) < 3:
            for name in parts():
                os.remove(name)
            record("file.tide", "--rotate", "200ms", "--force", how="forks", pause=pause)
    check(len(parts()) >= 3, "it was not rotated")
    return parts() + ["file.tide"]


def missing_parts_are_named(parts):
    # Of one file that is missing its neighbours may have all; of two they have not.
    for after, said in ((2, "was not given"), (3, r"was not given: [\d.]+ m?s to [\d.]+ m?s of the recording is missing")):
        done = merged("gap.tide", parts[0], *parts[after:])
        equal(3, done.returncode)
        check(re.search(f"between {parts[0]} and {parts[after]} {said}", done.stderr), done.stderr)
    check(not os.path.exists("gap.tide"))
    # The first ones: what lived then is known, and what is said is said of a trimmed trace, too.
    done = merged("late.tide", *parts[1:])
    check(done.returncode == 0 and "the first parts of the recording are missing" in done.stderr, done.stderr)
    equal(live(parts[-1], "heap"), live("late.tide", "heap"))
    check("trimmed to what came after" in ask("report", "late.tide"))
    # The last: it ends early.
    done = merged("early.tide", *parts[:-1])
    check(done.returncode == 0 and "goes on in a file beside these" in done.stderr, done.stderr)
    for words in ((parts[0], parts[0], parts[1]), (parts[1], "one.tide"), (parts[0], "--offset", "1s", parts[1])):
        check(merged("no.tide", *words).returncode in (2, 3), words)


def by_size_and_function(name):
    rows = json.loads(ask("window", name, "--by", "size,function", "-n", "0", "--json"))["rows"]
    return sorted((row["keys"]["size"], row["keys"]["function"], row["allocated_count"], row["freed_count"])
                  for row in rows)


@test
def joined_parts_are_the_whole_and_missing_ones_are_named():
    record("one.tide", how="forks", pause="0")
    parts = rotated()
    done = merged("joined.tide", *reversed(parts))
    equal((0, ""), (done.returncode, done.stderr))
    # Once joined it is a trace as others are.
    equal(0, merged("two.tide", "joined.tide", "one.tide").returncode)
    reports = [json.loads(ask("report", name, "--json")) for name in ("one.tide", "joined.tide")]
    # When the two processes run beside each other is another matter each time; what each does is not.
    for key in reports[0]["heap"]:
        if not key.startswith("peak"):
            equal(reports[0]["heap"][key], reports[1]["heap"][key], key)
    for one, joined in zip(*(report["trace"]["processes"] for report in reports)):
        for key in one:
            if key not in ("pid", "parent") and not key.endswith("_ns"):
                equal(without_pause(one[key]), without_pause(joined[key]), key)
    equal(*([report["trace"][key] for key in ("complete", "events", "warnings")] for report in reports))
    kinds = [json.loads(ask("info", name, "--json"))["events"]["by_kind"] for name in ("one.tide", "joined.tide")]
    for kind in ("malloc", "calloc", "free", "mprotect", "madvise"):
        equal(kinds[0][kind], kinds[1][kind], kind)
    for layer in ("heap", "vm"):
        equal(live("one.tide", layer), live("joined.tide", layer), layer)
    equal(*(by_size_and_function(name) for name in ("one.tide", "joined.tide")))
    missing_parts_are_named(parts)


def without_pause(value):
    """The command line but for its pause and its gate, which do not change what is allocated."""
    return value[:2] + value[3:4] if isinstance(value, list) else value


def goes_on_after_a_full_disk(folder, *options):
    """No file can be made for a while: the disk has as many as it can have."""
    with Disk(folder, "256m,nr_inodes=300") as disk:
        with open("said", "w", encoding="utf-8") as said:
            process = subprocess.Popen([TIDEMARK, "record", "-o", f"{folder}/part.tide", *options,
                                        program("goes_on"), "1000000000", "2000"],
                                       env=environment(), stderr=said)
        try:
            wait_for(lambda: os.path.exists(f"{folder}/part.tide"), "the trace")
            # Again and again: a file that took another one's place meanwhile has left room for one.
            wait_for(lambda: disk.fill() or "not kept short for now" in read("said"), "the warning")
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


def saves(pid):
    """Whether ctl can save, and the program has begun to allocate."""
    done = subprocess.run([TIDEMARK, "ctl", pid, "save", "now.tide"], env=environment(),
                          capture_output=True, check=False)
    if done.returncode != 0:
        return False
    if figures(ask("report", "now.tide"))[1] > 0:
        return True
    os.remove("now.tide")
    return False


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
        wait_for(lambda: saves(pid), "what the program has allocated")
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
