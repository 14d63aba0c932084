#!/usr/bin/env python3
"""What is left in the midst of malloc, by a jump out of a handler or by the end of a thread, is
recorded from there on as before; and a stack that overflows there is the program's own matter."""
# timeout: 240
# parallel: yes
from libguest import Trace, equal, main, program, record, run, test


def jumped(size, *words):
    """How often it was left; and behind each of `words`' last, a block of `size` was recorded."""
    plain = run([program("jumps"), *words])
    equal(0, plain.code, f"exit code of {words} without us")
    ended = record([program("jumps"), *words], "--force")
    trace = Trace()
    equal(0, trace.events_lost(), f"events lost by {words}")
    count = int(words[-1])
    equal((count, count), (len(trace.of_size(size)), trace.frees_of_size(size)),
          f"blocks of {size}, and their ends")
    return int(plain.out), int(ended.out), trace


@test
def a_stack_that_overflows_in_malloc_reaches_the_handler():
    _, left, trace = jumped(7801, "overflow", "200")
    equal(200, left, "overflows that were handled")
    trace.check_ownership()


@test
def it_does_so_in_the_first_malloc_of_a_thread():
    plain, left, _ = jumped(7831, "edge", "400")
    equal(True, plain <= left < 400, f"{plain} overflows without us, {left} with us")


@test
def handlers_that_jump_out_of_malloc_lose_nothing():
    _, left, _ = jumped(7812, "timer", "150")
    equal(150, left, "jumps")


@test
def threads_that_end_in_malloc_lose_nothing():
    for way in ("thread", "cancel"):
        _, left, trace = jumped(7822, way, "16")
        equal(16, left, f"threads that ended by {way}")
        trace.check_ownership()


main()
