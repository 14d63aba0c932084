#!/usr/bin/env python3
"""What a recording takes of memory, and what it says of waiting."""
# timeout: 240
import json
import os
import signal
import subprocess
import time

from libguest import (TIDEMARK, Trace, check, counters, environment, equal, main, program, record,
                      report, run, test)

PROGRAM_KIB, THREAD_KIB = 3 << 10, 1 << 10  # what it may take in the program
COLLECTOR_BYTES = 512 << 20
CROWD = 300  # threads, from which on each takes less
MANY = 600
STOPPED_SECONDS = 0.5


def added_kib(command, trace="t.tide"):
    """What recording adds to the peak of a program that prints it."""
    plain = int(run(command, timeout=60).out)
    return int(record(command, "--force", trace=trace, timeout=120).out) - plain


def cost(trace="t.tide"):
    return json.loads(run([TIDEMARK, "info", "--json", trace], timeout=60).out)["cost"]


@test
def a_program_takes_3_MiB_more_and_1_for_each_busy_thread_at_most():
    for threads in (1, 2, 8, 64, CROWD, MANY):
        added = added_kib([program("crowd"), "busy", str(threads)])
        allowed = PROGRAM_KIB + threads * THREAD_KIB // (2 if threads >= CROWD else 1)
        print(f"# {threads} threads: {added} KiB of {allowed}")
        check(added <= allowed, f"{threads} threads: {added} KiB")
    used = cost()["collector_bytes_peak"]
    print(f"# {used >> 20} MiB in the collector")
    check(0 < used <= COLLECTOR_BYTES, f"{used} bytes in the collector")


@test
def a_million_stacks_are_the_collectors_and_fit_into_512_MiB():
    added = added_kib([program("many_stacks"), "20"])
    check(added <= PROGRAM_KIB + THREAD_KIB, f"{added} KiB added to the program")
    used = cost()["collector_bytes_peak"]
    print(f"# {added} KiB in the program, {used >> 20} MiB in the collector")
    check(0 < used <= COLLECTOR_BYTES, f"{used} bytes in the collector")
    info = json.loads(run([TIDEMARK, "info", "--json", "t.tide"], timeout=60).out)
    check(info["stacks"]["stacks"] >= 1 << 20, info["stacks"])
    check(report("t.tide", "-n", "1")["heap"]["allocations"] >= 1 << 20, "allocations")


def collector_of(recorder):
    with open(f"/proc/{recorder.pid}/task/{recorder.pid}/children", encoding="ascii") as file:
        found = [pid for pid in map(int, file.read().split())
                 if os.readlink(f"/proc/{pid}/exe") == os.path.realpath(TIDEMARK)]
    equal(1, len(found), "collectors")
    return found[0]


@test
def a_program_that_had_to_wait_lost_nothing_and_the_trace_says_how_long_it_waited():
    path = os.path.abspath("counters")
    with subprocess.Popen([TIDEMARK, "record", "-o", "t.tide", program("still"), "10", "100000"],
                          env=environment(COUNTERS=path), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as recorder:
        recorder.stdout.readline()
        collector = collector_of(recorder)
        os.kill(collector, signal.SIGSTOP)
        time.sleep(STOPPED_SECONDS)
        before = counters(path)[1][0]
        time.sleep(STOPPED_SECONDS)
        after = counters(path)[1][0]
        os.kill(collector, signal.SIGCONT)
        os.kill(recorder.pid, signal.SIGTERM)
        _, err = recorder.communicate(timeout=60)
    equal(5, recorder.returncode, f"exit code ({err.decode()})")
    equal(before, after, "pairs, while the ring was full")
    waited = cost()["waited_ns"]
    check(waited >= STOPPED_SECONDS * 1e9, f"waited {waited} ns")
    said = run([TIDEMARK, "info", "t.tide"]).out
    check("of waiting" in said and " 0 ns of waiting" not in said, said)
    trace = Trace()
    equal(0, trace.events_lost(), "events lost")
    equal(counters(path)[1][:2], (len(trace.of_size(7901)), trace.frees_of_size(7901)),
          "blocks of the program")


main()
