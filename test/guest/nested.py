#!/usr/bin/env python3
"""A signal handler may allocate, whatever it interrupts: in the recorder, too, and in the midst of a
realloc. Nothing is lost but in the fourth handler within another, and what is lost is counted."""
# parallel: yes
from libguest import TIDEMARK, Trace, check, equal, main, program, record, run, test

DEPTH_MAX = 3  # handlers within each other that are recorded


@test
def handlers_that_interrupt_the_recorder_lose_nothing():
    ended = record([program("nested"), "timer"])
    handled, pairs = map(int, ended.out.split())
    trace = Trace()
    equal(0, trace.events_lost(), "events lost")
    for size, count in ((7610, pairs), (7611, handled)):
        equal((count, count), (len(trace.of_size(size)), trace.frees_of_size(size)),
              f"blocks of {size}, and their ends")
    trace.check_ownership()


def within_each_other(depth):
    record([program("nested"), "depth", str(depth)], trace=f"{depth}.tide")
    trace = Trace(f"{depth}.tide")
    recorded = min(depth, DEPTH_MAX)
    for size, count in ((7620, 1), (7621, 1), (7622, recorded), (7623, recorded)):
        equal((count, count), (len(trace.of_size(size)), trace.frees_of_size(size)),
              f"blocks of {size}, and their ends")
    trace.check_ownership()
    return trace.events_lost()


@test
def handlers_within_each_other_lose_nothing_or_it_is_counted():
    for depth in range(DEPTH_MAX + 1):
        equal(0, within_each_other(depth), f"events lost at a depth of {depth}")
    for more in (1, 2, 5):
        lost = within_each_other(DEPTH_MAX + more)
        # Of each handler further in: a malloc, one or both halves of a realloc, a free.
        check(3 * more <= lost <= 4 * more, f"{lost} events are counted as lost")
        said = run([TIDEMARK, "report", f"{DEPTH_MAX + more}.tide"])
        check(f"{lost} events of process" in said.out and "were lost" in said.out, said.out[:600])


main()
