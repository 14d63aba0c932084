#!/usr/bin/env python3
"""However a program ends, no event is lost; nor where the recording ends before it."""
# timeout: 120
# parallel: yes
import os
import signal
import subprocess
import time

from libguest import (PATIENCE_SECONDS, TIDEMARK, Trace, check, check_whole, children_of, closed,
                      counters, environment, equal, finished, main, program, record_witnessed,
                      report, started, test)

PAIRS, KEPT = 5000, 100


def ends(how, code, exit_text):
    path = os.path.abspath("counters")
    _, witness = record_witnessed([program("endings"), how], code=code,
                                  variables={"COUNTERS": path})
    trace = Trace()
    check_whole(trace, witness)
    for number in (1, 2):
        allocations, frees, size = counters(path)[number]
        equal((PAIRS, PAIRS - KEPT), (allocations, frees), "the program's own counters")
        equal(allocations, len(trace.of_size(7000 + number)), f"blocks of thread {number}")
        equal(frees, trace.frees_of_size(7000 + number), f"frees of thread {number}")
    equal(exit_text, report()["trace"]["processes"][0]["exit"], "how it ended")


@test
def return_from_main_loses_nothing():
    ends("return", 0, "exit 0")


@test
def exit_loses_nothing():
    ends("exit", 7, "exit 7")


@test
def _exit_loses_nothing():
    ends("_exit", 8, "exit 8")


@test
def quick_exit_loses_nothing():
    ends("quick_exit", 9, "exit 9")


@test
def abort_loses_nothing_and_the_signal_becomes_ours():
    ends("abort", -signal.SIGABRT, "signal SIGABRT")


@test
def a_segmentation_fault_loses_nothing_and_the_signal_becomes_ours():
    ends("segv", -signal.SIGSEGV, "signal SIGSEGV")


def in_flight(trace, path):
    """Each thread's completed calls are all there; at most one more was under way."""
    for number in (1, 2):
        allocations, frees, _ = counters(path)[number]
        if not allocations:
            continue
        seen = len(trace.of_size(7000 + number))
        freed = trace.frees_of_size(7000 + number)
        check(allocations <= seen <= allocations + 1,
              f"thread {number}: {allocations} calls returned, {seen} are in the trace")
        check(frees <= freed <= frees + 1,
              f"thread {number}: {frees} frees returned, {freed} are in the trace")


@test
def exit_with_running_threads_loses_nothing():
    path = os.path.abspath("counters")
    record_witnessed([program("endings"), "threads"], variables={"COUNTERS": path})
    trace = Trace()
    check_whole(trace)
    in_flight(trace, path)


@test
def sigkill_in_mid_run_loses_no_call_that_had_returned():
    path = os.path.abspath("counters")
    recorder = subprocess.Popen([TIDEMARK, "record", "-q", "-o", "t.tide", program("endings"),
                                 "kill"], env=environment(COUNTERS=path))
    while not os.path.exists(path) or os.path.getsize(path) < 4096 or counters(path)[2][0] < 20000:
        time.sleep(0.002)
    victim = [pid for pid in children_of(recorder.pid) if os.readlink(f"/proc/{pid}/exe").endswith("endings")]
    equal(1, len(victim), "programs below the launcher")
    os.kill(victim[0], signal.SIGKILL)
    equal(-signal.SIGKILL, recorder.wait(PATIENCE_SECONDS), "exit code of record")
    trace = Trace()
    check_whole(trace)
    in_flight(trace, path)
    equal("signal SIGKILL", report()["trace"]["processes"][0]["exit"], "how it ended")


def stopped(command, end):
    """A recording that ends before its program, which `end` ends once the trace is closed."""
    recorder = started(command, "--force", "--strict", "--duration", "300ms", stdin=subprocess.PIPE)
    trace = closed("t.tide", events=False)  # there may be millions
    equal(None, recorder.poll(), "the program runs on")
    end()
    code, _, said = finished(recorder)
    equal(7, code, f"exit code under --strict ({said})")
    equal(0, trace.events_lost(), f"events lost ({said})")
    equal("", trace.end.get("unseen", ""), f"programs that were not recorded ({said})")
    os.remove("t.tide")


@test
def what_a_program_does_after_the_recording_is_not_lost():
    stopped([program("attached"), "2", "10"], lambda: None) # its input ends with it


@test
def what_it_starts_after_the_recording_is_not_unseen():
    loop = "echo ready; until [ -e over ]; do {}; done; exit 7"
    for starts in ("/bin/true", "(exec /bin/true)", "(:)"):
        for _ in range(3):
            stopped(["/bin/sh", "-c", loop.format(starts)],
                    lambda: open("over", "w", encoding="ascii").close())
            os.remove("over")


main()
