#!/usr/bin/env python3
# parallel: yes
"""tidemark bench: a program several times, and what differs from run to run."""
import glob
import json
import os
import signal
import subprocess

import libschema
from libanswer import TIDEMARK, answer, refused, run
from libtests import check, equal, main, test

SAME = ["/bin/sh", "-c", "echo hel''lo; read line && exit 1; exit 0"]
# A list of a length that differs from run to run, and is told by the pid.
DIFFERS = ["/usr/bin/perl", "-e", "my @x = map { 'x' x 1000 } 1..(100 + $$ % 97);"]


def measure(*words):
    return libschema.valid(json.loads(run("bench", "--json", *words).stdout), "bench")


@test
def a_program_runs_so_often_and_its_traces_stay():
    done = run("bench", "--runs", "3", "-o", "same", "--", *SAME)
    check("hello" not in done.stdout, "the program's output is not shown:", done.stdout)
    check("the same in each run" in done.stdout and "same.3.tide" in done.stderr, done)
    equal(["same.1.tide", "same.2.tide", "same.3.tide"], sorted(glob.glob("same.*.tide")))
    figures = answer("report", "same.2.tide")["heap"]
    told = measure("--runs", "2", "-f", "-o", "same", "--", *SAME)
    equal(["same.1.tide", "same.2.tide"], told["traces"])
    values = {row["figure"]: row for row in told["figures"]}
    equal([figures["allocations"]] * 2, values["allocations"]["values"])
    equal(figures["peak_bytes"], values["peak"]["mean"])
    check("hello" in run("bench", "--runs", "1", "-o", "shown", "--show-output", "--", *SAME).stdout)


@test
def what_differs_is_said_with_its_least_and_its_most():
    told = measure("--runs", "4", "-o", "perl", "--reachability", "--", *DIFFERS)
    row = next(row for row in told["figures"] if row["figure"] == "peak")
    check(row["varies"] and row["least"] < row["mean"] < row["most"], row)
    check(any(row["figure"] == "unreachable" for row in told["figures"]))
    runs = sorted(glob.glob("perl.*.tide"))
    run("check", *runs, "--baseline", "perl.baseline", "--update")
    run("check", *runs, "--baseline", "perl.baseline")


@test
def what_too_few_runs_are_enough_for_is_said_before_and_after():
    for runs, first, last in (("2", "needs 4 runs of each", "tidemark bench --runs 4"),
                              ("3", "needs 4 runs of each", "tidemark check RUNS… --baseline FILE"),
                              ("4", "", "tidemark diff OLD… --against NEW…")):
        lines = run("bench", "-f", "--runs", runs, "-o", "few", "--", *SAME).stderr.splitlines()
        check(first in lines[0] and f"next: {last}" in lines[-1], runs, lines)
        equal(2 if first else 1, len(lines), lines)
    for prefix in "old", "new":
        run("bench", "-f", "--runs", "3", "-o", prefix, "--", *SAME)
    old, new = sorted(glob.glob("old.*.tide")), sorted(glob.glob("new.*.tide"))
    check("too few" in refused("diff", *old, "--against", *new))
    run("check", *old, "--baseline", "few.baseline", "--update")
    run("check", *new, "--baseline", "few.baseline")


@test
def a_run_that_fails_ends_it_with_its_code():
    done = run("bench", "--runs", "3", "-o", "fails", "--", "/bin/sh", "-c", "exit 7", check=7)
    check("run 1 ended with exit code 7: not measured" in done.stderr and not done.stdout, done)
    check(not os.path.exists("fails.2.tide"))
    run("bench", "-o", "none", "--", "/no/such/program", check=127)
    done = run("bench", "-o", "killed", "--", "/bin/sh", "-c", "kill -TERM $$", check=-15)
    check("ended by signal 15" in done.stderr, done)


@test
def it_ends_where_ends_of_children_are_ignored():
    ended = subprocess.run([TIDEMARK, "bench", "--runs", "1", "-o", "ignored", "--", "/bin/true"],
                           capture_output=True, check=False,
                           preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    equal(0, ended.returncode, ended.stderr)


@test
def nothing_is_overwritten_unasked_and_mistakes_are_one_line():
    with open("there.2.tide", "w", encoding="utf-8") as file:
        file.write("mine")
    check("there.2.tide exists" in refused("bench", "--runs", "2", "-o", "there", "--", *SAME))
    equal("mine", open("there.2.tide", encoding="utf-8").read())
    check(not os.path.exists("there.1.tide"))
    refused("bench")
    refused("bench", "--runs", "0", "--", *SAME)
    refused("bench", "--runs", "501", "--", *SAME)


main()
