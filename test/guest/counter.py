#!/usr/bin/env python3
# parallel: yes
"""A program that forbids itself the processor's counter (PR_SET_TSC) is recorded without it."""
import json

from libguest import TIDEMARK, Trace, check, equal, main, program, run, test

WAYS = ("prctl", "syscall")
PAUSE_NS = 100_000_000
LATE_NS = 50_000_000  # what a busy machine may take away; more if the trace says that a tick was so long


def recorded(way, *options):
    ended = run([TIDEMARK, "record", "--force", *options, "-o", "t.tide", program("uncounted"), way])
    equal(7, ended.code, f"code of {way} {options} ({ended.err})")
    trace = Trace()
    equal(0, trace.events_lost(), "events lost")
    equal(100, len(trace.of_size(7801)), "blocks of before")
    equal(3 * 60000, len(trace.of_size(7802)), "blocks of after")
    return trace


@test
def it_lives_and_all_is_recorded():
    for way in WAYS:
        recorded(way)
        recorded(way, "--clock=ns")


@test
def its_times_go_on():
    for options in ((), ("--clock=ns",)):
        trace = recorded("prctl", *options)
        late_ns = max(LATE_NS, json.loads(run([TIDEMARK, "info", "--json", "t.tide"]).out)["trace"]["tick_worst_ns"] or 0)
        for thread in {event.thread for event in trace.of_size(7802)}:
            times = [event.time for event in trace.of_size(7802) if event.thread == thread]
            equal(sorted(times), times, "times in order")
            widest = max(after - before for before, after in zip(times, times[1:]))
            check(widest >= PAUSE_NS - late_ns, f"the pause is {widest} ns ({options})")


@test
def it_is_said_so():
    recorded("prctl")
    for command in ("info", "report"):
        ended = run([TIDEMARK, command, "t.tide"])
        said = " ".join((ended.out + ended.err).split())
        check("must not read the processor's counter" in said, f"{command} does not say so: {said}")


main()
