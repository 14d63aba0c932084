#!/usr/bin/env python3
"""record --index: the index is built behind the recording, is whole when it ends, and is used."""
# timeout: 180
# parallel: yes
import json
import os
import signal
import subprocess
import sys

from libguest import (TIDEMARK, check, children_of, environment, equal, finished, main, need_root,
                      program, record, run, started, test, wait_for)

# Enough events for the index to have work while the program runs; the last ones come at once.
CHURN = """
import time
keep = []
for i in range(12):
    keep.append([str(n) * 5 for n in range(3000)])
    if i % 3 == 2:
        keep.pop(0)
    time.sleep(0.02)
"""
VIEW = ("--by", "process,type", "--from", "10%", "--to", "80%")
WAITS = ["/bin/sh", "-c", "echo ready; read word"]
PYTHON = environment(PYTHONMALLOC="malloc")


def window(path, index, *words):
    ended = run([TIDEMARK, "window", path, "--json", *VIEW, *words],
                env=environment(TIDEMARK_INDEX=index))
    equal(0, ended.code, f"window ({ended.err})")
    return json.loads(ended.out), ended.err


def rows(answer):
    return sorted(json.dumps(row, sort_keys=True) for row in answer["rows"])


def check_used(path):
    """The index that is there is used as it is, and says what a list of all lifetimes says."""
    head = os.path.join(path + "-index", "head")
    check(os.path.exists(head), "there is an index")
    before = os.stat(head).st_mtime_ns
    indexed, said = window(path, "always")
    equal("", said, "what is said")
    equal(before, os.stat(head).st_mtime_ns, "when the index was written")
    plain, said = window(path, "never")
    equal(rows(plain), rows(indexed), "rows")
    equal(plain["total"], indexed["total"], "total")


@test
def the_index_is_whole_when_the_recording_ends():
    ended = record([sys.executable, "-c", CHURN], "--index", env=PYTHON)
    check("tidemark: its index is ready (" in ended.err, ended.err)
    check_used("t.tide")


@test
def so_it_is_of_a_family_and_of_a_program_that_dies():
    record([program("family")], "--index")
    check_used("t.tide")
    record(["/bin/sh", "-c", "kill -SEGV $$"], "--index", trace="dead.tide", code=-signal.SIGSEGV)
    check_used("dead.tide")


@test
def symbols_that_are_bundled_leave_it_as_it_is():
    record([program("family")], "--index", "--bundle")
    check_used("t.tide")


@test
def without_the_option_nothing_is_built():
    record([program("family")])
    check(not os.path.exists("t.tide-index"), "an index that nobody asked for")


def indexer_of(launcher):
    """The process that builds the index; None: not yet."""
    for pid in children_of(launcher):
        with open(f"/proc/{pid}/comm", encoding="ascii") as file:
            if file.read().strip() == "tidemark-index":
                return pid
    return None


@test
def once_it_is_waited_for_it_has_the_priority_of_others():
    need_root()
    running = started(WAITS, "--index", stdin=subprocess.PIPE)
    wait_for(lambda: indexer_of(running.pid), "a process that builds the index")
    indexer = indexer_of(running.pid)
    wait_for(lambda: os.sched_getscheduler(indexer) == os.SCHED_IDLE, "its idle priority")
    # On a busy machine it would not be given a processor, so it cannot do that by itself.
    os.kill(indexer, signal.SIGSTOP)
    running.stdin.write(b"end\n")
    running.stdin.flush()
    wait_for(lambda: os.sched_getscheduler(indexer) == os.SCHED_OTHER, "its usual priority")
    os.kill(indexer, signal.SIGCONT)
    check("its index is ready (" in finished(running)[2], "no index")
    check_used("t.tide")


@test
def who_may_not_raise_it_starts_another_that_goes_on():
    need_root()
    ended = run(["setpriv", "--bounding-set", "-sys_nice", "--inh-caps", "-sys_nice", TIDEMARK,
                 "record", "-o", "t.tide", "--index", "--", program("family")])
    check("tidemark: its index is ready (" in ended.err, ended.err)
    check_used("t.tide")


@test
def an_indexer_that_is_killed_is_said_to_be_with_the_signal():
    running = started(WAITS, "--index", stdin=subprocess.PIPE)
    wait_for(lambda: indexer_of(running.pid), "a process that builds the index")
    os.kill(indexer_of(running.pid), signal.SIGKILL)
    check("no index: the process that builds it was ended by signal KILL" in
          finished(running)[2], "not said")


@test
def when_the_launcher_is_killed_the_first_question_goes_on():
    running = subprocess.Popen([TIDEMARK, "record", "--index", "-o", "t.tide", "--",
                                sys.executable, "-c", CHURN], env=PYTHON,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(lambda: os.path.exists("t.tide-index/events"), "an index that is begun")
    running.kill()
    running.wait()
    # The collector lives on until the program has ended, and closes the trace.
    def is_whole():
        ended = run([TIDEMARK, "info", "t.tide", "--json"])
        return ended.code == 0 and json.loads(ended.out)["trace"]["complete"]
    wait_for(is_whole, "a whole trace", pause=0.05)
    indexed, said = window("t.tide", "always")
    plain, _ = window("t.tide", "never")
    equal(rows(plain), rows(indexed), "rows")


@test
def a_place_where_no_index_can_be_is_told():
    os.mkdir("home")
    with open("t.tide-index", "w", encoding="ascii"):
        pass
    ended = record([program("family")], "--index")
    check("warning: no index: cannot make t.tide-index" in ended.err or
          "warning: no index: cannot open t.tide-index" in ended.err, ended.err)


main()
