#!/usr/bin/env python3
# soak: only
# timeout: 1800
"""How often diff of several runs calls something changed: of 100 equal runs of programs that differ from
run to run, and of runs with a known change among them. docs/comparing.md has the figures."""
import json
import os
import random
import subprocess

from libanswer import TIDEMARK, run
from libtests import main, test

RUNS = 100
SIDES = ((5, 100), (10, 25))  # runs a side, and how often
PYTHON = "/usr/bin/python3"
PROGRAMS = {
    # Hashes of strings and the order of sets change with each run.
    "python3": [PYTHON, "-c", "import json, re, sys\n"
                "d = {str(i): {str(j) for j in range(i % 17)} for i in range(3000)}\n"
                "t = [re.sub('[a-f]+', 'x', str(v)) for v in d.values()]\n"
                "for extra in range(int(sys.argv[1])): t.append(bytearray(700))", "0"],
    # Two threads that share work as they come.
    "threads": [PYTHON, "-c", "import threading, queue, sys\n"
                "q = queue.Queue(); out = []\n"
                "def work():\n"
                "    while (n := q.get()) is not None: out.append(bytearray(600 + n % 9 * 100))\n"
                "ts = [threading.Thread(target=work) for _ in range(3)]\n"
                "[t.start() for t in ts]\n"
                "for i in range(3000): q.put(i)\n"
                "[q.put(None) for _ in ts]; [t.join() for t in ts]\n"
                "for extra in range(int(sys.argv[1])): out.append(bytearray(700))", "0"],
    "perl": ["perl", "-e", "my %h; $h{$_ % 700} .= $_ for 1..20000; my @k = keys %h; "
             "my $s = join(',', @k[0..300]); my @x = map { $s } 1..$ARGV[0]", "0"],
    "git": ["git", "--no-pager", "-C", os.environ["TIDEMARK_SOURCE"], "log", "--stat", "-n", "20"],
}


def record(name, number, extra=0):
    path = f"{name}-{extra}-{number}.tide"
    words = [*PROGRAMS[name]]
    if extra:
        words[-1] = str(extra)
    if not os.path.exists(path):
        subprocess.run([TIDEMARK, "record", "-q", "-o", path, "--", *words], check=True,
                       stdout=subprocess.DEVNULL, env={key: value for key, value in os.environ.items()
                                                       if key != "PYTHONHASHSEED"})
    return path


def changed(before, after):
    told = json.loads(run("diff", *before, "--against", *after, "-n", "0", "--json").stdout)
    rows = told["stacks"]["new"] + told["stacks"]["gone"] + told["stacks"]["changed"]
    return rows, any(told["total"][figure]["changed"] for figure in ("live", "peak", "allocated")), told


def false_alarms(name, runs, side, tries):
    choose = random.Random(f"{name} {side}")
    wrong = rows = varied = 0
    for _ in range(tries):
        chosen = choose.sample(runs, 2 * side)
        count, total, told = changed(chosen[:side], chosen[side:])
        wrong += count > 0 or total
        rows += count
        varied += told["stacks"]["varied"]
    print(f"{name}: {side} and {side} of {len(runs)} equal runs, {tries} times: {wrong} show a change, "
          f"{rows} rows in all; {varied / tries:.0f} stacks vary", flush=True)
    return wrong


@test
def of_100_equal_runs_one_comparison_in_twenty_is_wrong_at_most():
    for name in PROGRAMS:
        runs = [record(name, number) for number in range(RUNS)]
        for side, tries in SIDES:
            wrong = false_alarms(name, runs, side, tries)
            assert wrong <= tries / 20 + 2 * (tries / 20) ** 0.5, (name, side, wrong)


@test
def a_few_calls_more_are_found():
    for name in ("python3", "threads", "perl"):
        for side, _ in SIDES:
            found = 0
            after = [record(name, number, 25) for number in range(side)]
            for start in range(0, 5 * side, side):
                found += changed([record(name, number) for number in range(start, start + side)], after)[0] > 0
            print(f"{name}: {side} and {side} runs, 25 calls more: found in {found} of 5", flush=True)
            assert found >= 4, (name, side, found)


main()
