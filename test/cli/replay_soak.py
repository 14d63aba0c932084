#!/usr/bin/env python3
# soak: only
# timeout: 900
"""A replay on glibc beside the program that was recorded: what its heap had resident at each snapshot of
the recording, and what the replay's had after the same call; and programs that really run under other
allocators. Prints the tables of docs/replay.md.

    tools/run-tests --soak --verbose cli/replay_soak
"""
import json
import os
import re
import subprocess

from libanswer import TIDEMARK, answer, run
from libtests import main, test

PYTHON = "/usr/bin/python3"
PROGRAMS = {
    "awk": ["awk", "BEGIN { for (i = 0; i < 300000; i++) a[i % 50000 \"k\" i] = i \"v\" i;"
            " for (k in a) if (a[k] % 3) delete a[k]; print length(a) }"],
    "perl": ["perl", "-e", "my %h; for my $i (1 .. 200000) { push @{$h{$i % 5000}}, \"v$i\" x ($i % 9);"
             " delete $h{$i % 7000} if $i % 11 == 0 } print scalar keys %h"],
    "python3": ["env", "PYTHONMALLOC=malloc", PYTHON, "-c", "import json\n"
                "a = [{'k%d' % i: list(range(i % 50))} for i in range(40000)]\n"
                "s = json.dumps(a); del a; b = json.loads(s); print(len(s))"],
    "sqlite3": ["sqlite3", ":memory:", "create table t(a, b); with recursive c(x) as (select 1 union all"
                " select x + 1 from c where x < 300000) insert into t select x, hex(x * x) from c;"
                " create index i on t(b); delete from t where a % 3; select count(*) from t"],
    "sort": ["sh", "-c", "seq 1 400000 | sort -R -S 64M > /dev/null"],
    "bash": ["bash", "-c", "for ((i = 0; i < 60000; i++)); do a[i]=v$((i * i)); done; echo ${#a[@]}"],
    "cc1": ["gcc", "-O2", "-c", "-o", "big.o", "big.c"],
}
LINES = ("live", "rounding", "free")
POINTS = 12
UNTOUCHED = ("sort", "cc1")  # they ask for buffers that they do not fill


def make_source():
    with open("big.c", "w") as file:
        for i in range(200):
            file.write(f"int f{i}(int *a, int n) {{ int s = {i}; for (int i = 0; i < n; i++) "
                       f"s += a[i] * (i % {i + 2}) ^ (s >> {i % 7}); return s; }}\n")


def recorded(name):
    path = name + ".tide"
    subprocess.run([TIDEMARK, "record", "-q", "--rss-exact", "-f", "-o", path, "--", *PROGRAMS[name]],
                   check=True, stdout=subprocess.DEVNULL)
    return path


def snapshots(path, process):
    """(time, calls that were over when it began to be read, and when it had been) of those of a process, at
    most POINTS, the last one among them."""
    text = run("dump", path).stdout
    found = [(int(at), int(began) - (reason == "release"), int(ended)) for reason, at, began, ended in
             re.findall(rf"^snapshot p{process} reason=(\S+) at=(\d+) began=(\d+) ended=(\d+)", text, re.M)]
    return found[::-1][::max(1, len(found) // POINTS)][::-1]


def compare(name):
    """(own, replayed) at each snapshot. The program runs on while one is read, beside load for 100,000 calls
    and more: so it is compared with what the replay had from the call before to the one behind, whichever is
    next to it."""
    path = recorded(name)
    told = answer("replay", path, "--process", os.path.basename(name), "--allocator", "glibc")
    replayed = {one["event"] + 1: one["resident_bytes"] for one in told["runs"][0]["samples"]}
    points = []
    for time_ns, began, ended in snapshots(path, told["process_id"]):
        if began not in replayed:  # before the first call; or there are too many
            continue
        last = min((number for number in replayed if number >= ended), default=max(replayed))
        meanwhile = [replayed[number] for number in replayed if began <= number <= last]
        lines = {line["line"]: line["bytes"] for line in answer(
            "reconcile", path, "--process", f"#{told['process_id']}", "--at", f"{time_ns}ns")["lines"]}
        own = sum(lines[one] for one in LINES)
        points.append((own, min(max(own, min(meanwhile)), max(meanwhile))))
    return points


def row(name):
    points = compare(name)
    peak = max(own for own, _ in points)
    parts = [abs(own - replayed) / peak for own, replayed in points]
    print(f"| {name} | {len(points)} | {peak / (1 << 20):.1f} MiB | {sum(parts) / len(parts):.2%} | "
          f"{max(parts):.2%} |")
    return points, sum(parts) / len(parts), max(parts)


@test
def on_glibc_it_is_as_large_as_the_programs_were():
    make_source()
    for name in PROGRAMS:
        points, mean, worst = row(name)
        if name in UNTOUCHED:  # the trace cannot know, and the replay takes the most
            assert all(replayed > 0.95 * own for own, replayed in points), points
        else:
            # One snapshot may come while the program fills a block that it has just been given.
            assert mean < 0.01 and worst < 0.05, points


# What the programs really take under other allocators, beside one of each that does nothing.
IDLE = {
    "perl": ["perl", "-e", "1"],
    "python3": ["env", "PYTHONMALLOC=malloc", PYTHON, "-c", "import json"],
    "sqlite3": ["sqlite3", ":memory:", "select 1"],
}
LIBRARIES = {"glibc": "", "jemalloc": "libjemalloc.so.2", "mimalloc": "libmimalloc.so.2.0",
             "tcmalloc": "libtcmalloc_minimal.so.4"}


def largest(command, library):
    """The most bytes that were resident, in the middle of three runs."""
    return 1024 * sorted(int(subprocess.run(
        ["/usr/bin/time", "-f", "%M", "env", f"LD_PRELOAD={library}", *command], check=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True).stderr.split()[-1])
        for _ in range(3))[1]


def replays(name, command):
    path = name + ".tide"
    subprocess.run([TIDEMARK, "record", "-q", "-f", "-o", path, "--", *command], check=True,
                   stdout=subprocess.DEVNULL)
    return {one["allocator"]: one["peak_resident_bytes"] for one in answer(
        "replay", path, "--process", os.path.basename(name.removesuffix("-idle")), "--allocator",
        ",".join(LIBRARIES))["runs"]}


@test
def under_other_allocators_it_is_as_large_as_the_programs_are():
    for name, idle in IDLE.items():
        told, small = replays(name, PROGRAMS[name]), replays(f"{name}-idle", idle)
        for allocator, library in LIBRARIES.items():
            real = largest(PROGRAMS[name], library) - largest(idle, library)
            replayed = told[allocator] - small[allocator]
            print(f"| {name} | {allocator} | {real / (1 << 20):.1f} MiB | "
                  f"{replayed / (1 << 20):.1f} MiB | {replayed / real - 1:+.1%} |")
            assert abs(replayed - real) < max(0.1 * real, 1 << 20), (name, allocator)


CALLS = 100_000_000
LOOP = """
#include <stdlib.h>
static void *slots[100000];
int main(int argc, char **argv)
{
    unsigned long calls = strtoul(argv[1], NULL, 10), x = 88172645463325252ul;
    (void)argc;
    for (unsigned long i = 0; i < calls / 2; i++) {
        x ^= x << 13; x ^= x >> 7; x ^= x << 17;
        free(slots[(x >> 20) % 100000]);
        slots[(x >> 20) % 100000] = malloc(16 + (x & ((x >> 40) & 15 ? 127 : 2047)));
    }
    return 0;
}
"""


@test
def a_hundred_million_calls_take_no_more_memory_than_few():
    with open("loop.c", "w") as file:
        file.write(LOOP)
    subprocess.run(["gcc", "-O1", "-o", "loop", "loop.c"], check=True)
    subprocess.run([TIDEMARK, "record", "-q", "-o", "loop.tide", "--", "./loop", str(CALLS)], check=True)
    ended = subprocess.run(["/usr/bin/time", "-f", "%M", TIDEMARK, "replay", "loop.tide", "--allocator",
                            "glibc", "--json"], check=True, capture_output=True, text=True)
    told = json.loads(ended.stdout)
    print(f"{told['calls'] / told['driver_took_ns'] * 1e3:.1f} million calls a second without an allocator, "
          f"{ended.stderr.split()[-1]} KiB")
    assert told["calls"] > 0.99 * CALLS and int(ended.stderr.split()[-1]) < 64 << 10, ended.stderr


main()
