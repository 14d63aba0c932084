#!/usr/bin/env python3
"""A signal handler may allocate, whatever it interrupts: in the recorder, too, and in the midst of a
realloc. Nothing is lost, however many come within each other."""
# parallel: yes
from libguest import Trace, equal, main, program, record, test

LEVELS = 4  # lanes of one thread that are tried, before it begins anew


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


@test
def handlers_within_each_other_lose_nothing():
    for depth in (0, 1, LEVELS - 1, LEVELS, LEVELS + 1, 2 * LEVELS + 1):
        record([program("nested"), "depth", str(depth)], trace=f"{depth}.tide")
        trace = Trace(f"{depth}.tide")
        for size, count in ((7620, 1), (7621, 1), (7622, depth), (7623, depth)):
            equal((count, count), (len(trace.of_size(size)), trace.frees_of_size(size)),
                  f"blocks of {size}, and their ends")
        trace.check_ownership()
        equal(0, trace.events_lost(), f"events lost at a depth of {depth}")


main()
