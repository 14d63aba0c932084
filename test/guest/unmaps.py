#!/usr/bin/env python3
"""A program that takes memory away that it does not know does not take the recorder's: it neither
crashes in it nor loses an event, and is told."""
# timeout: 120
# parallel: yes
from libguest import TIDEMARK, Trace, check, equal, main, program, record, run, test

KEEP = ("unmap", "protect", "forget", "dontfork", "all")  # succeed, and do nothing
REFUSED = ("over", "away", "onto")  # cannot do what is asked, and fail


def taken_away(*way, name="unmaps"):
    plain = run([program(name), *way])
    equal(0, plain.code, f"exit code of {way} without us ({plain.err})")
    ended = record([program(name), *way], "--force")
    trace = Trace()
    equal(0, trace.events_lost(), f"events lost by {way}")
    for size in (7951, 7952, 7953, 7954):
        equal((1000, 1000), (len(trace.of_size(size)), trace.frees_of_size(size)),
              f"blocks of {size}, and their ends ({way})")
    trace.check_ownership()
    said = " ".join(run([TIDEMARK, "info", "t.tide"]).out.split())
    check("memory of the recorder" in said, f"info does not say so: {said}")
    return int(plain.out), int(ended.out)


@test
def what_takes_memory_away_takes_none_of_ours():
    for way in KEEP:
        plain, failed = taken_away(way)
        equal(plain, failed, f"calls of {way} that failed")


@test
def what_puts_something_in_our_place_fails():
    for way in REFUSED:
        plain, failed = taken_away(way)
        check(failed > plain, f"{way}: {failed} calls failed")


def asks_the_kernel_itself(name):
    for way in KEEP:
        plain, failed = taken_away(way, "raw", name=name)
        equal(plain, failed, f"calls of {way} that failed")
    for way in REFUSED:
        plain, failed = taken_away(way, "raw", name=name)
        check(failed > plain, f"{way}: {failed} calls failed")


@test
def nor_does_who_asks_the_kernel_itself():
    asks_the_kernel_itself("unmaps")


@test
def nor_does_who_does_so_by_one_instruction_for_all_calls():
    asks_the_kernel_itself("unmaps_small")


main()
