#!/usr/bin/env python3
"""The time of an event is at most a tick behind the truth, and never ahead of it."""
import os
import time

from libguest import PATIENCE_SECONDS, ROOT, Trace, check, equal, main, program, record, test

TICK_NS = 100_000
SLACK_NS = 5_000  # the counter is compared with the clock within less
# What is tested is the clock, and not who is given a processor: program and collector come first.
if ROOT:
    os.nice(-10)


def slack(trace, lines, size):
    """How far the recorded times of the blocks of `size` lie apart from what the program saw, beyond
    one constant: the program's clock does not begin with the recording."""
    said = [(int(before), int(after)) for what, before, after in lines if int(what) == size]
    times = [event.time for event in trace.of_size(size)]
    equal(len(said), len(times), f"blocks of {size} bytes")
    earliest = max(before - time for (before, _), time in zip(said, times))
    latest = min(after - time for (_, after), time in zip(said, times))
    return earliest - latest


def recorded(*options):
    ended = record([program("pauses")], *options)
    trace = Trace()
    lines = [line.split() for line in ended.out.splitlines()]
    times = [event.time for event in trace.events]
    check(times == sorted(times), "times fall")
    return trace, lines


@test
def events_after_a_pause_have_the_time_of_then():
    """If the collector was awake in the pause, for which a busy machine may have no time: then it
    is looked at again."""
    found = []
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not found or found[-1] > TICK_NS + SLACK_NS and time.monotonic() < deadline:
        found.append(slack(*recorded("--force"), 7801))
    check(found[-1] <= TICK_NS + SLACK_NS, found)


@test
def each_event_has_its_own_time():
    trace, lines = recorded("--clock=ns")
    for size in 7801, 7803:
        check(slack(trace, lines, size) <= 0, slack(trace, lines, size))
    pairs = trace.of_size(7802)
    check(len({event.time for event in pairs}) > len(pairs) * 0.99, "times are shared")


main()
