#!/usr/bin/env python3
"""What an allocator's function calls itself counts once, as the outermost call; what the program's
own code does in the midst of it is the program's."""
# parallel: yes
from libguest import Trace, check, equal, main, program, record, test


def traced(way):
    count = int(record([program("layered"), way]).out)
    trace = Trace()
    equal(0, trace.events_lost(), "events lost")
    trace.check_ownership()
    return count, trace


def check_pairs(trace, size, count):
    equal((count, count), (len(trace.of_size(size)), trace.frees_of_size(size)),
          f"blocks of {size}, and their ends")


@test
def a_call_is_recorded_once_whatever_it_calls():
    count, trace = traced("family")
    for size in range(7701, 7701 + count):
        check_pairs(trace, size, 1)
    check_pairs(trace, 7701 + count - 1 + 50, 1)  # the last one grew
    equal([], [event for event in trace.events if event.size == 61], "notes of the allocator's")


@test
def what_a_new_handler_does_is_the_programs():
    count, trace = traced("handler")
    equal(6, count, "calls of the handler")
    check_pairs(trace, 7731, count)
    check_pairs(trace, 7732, 1)


@test
def what_a_signal_handler_does_is_the_programs():
    count, trace = traced("signal")
    equal(200, count, "signals")
    check_pairs(trace, 7741, count)
    check_pairs(trace, 7742, 100)


@test
def a_call_that_is_left_does_not_hide_others():
    count, trace = traced("left")
    equal(200, count, "calls after others were left")
    check_pairs(trace, 7751, count)


@test
def another_context_is_not_inside():
    count, trace = traced("switched")
    check_pairs(trace, 7761, count)
    check_pairs(trace, 7763, 100)


main()
