#!/usr/bin/env python3
# parallel: yes
"""A program that breaks its address space up: the map, the curve and the table name who did it, and
the figures are those of the program's own walk of /proc/self/maps."""
import json

from libguest import Skip, TIDEMARK, check, equal, main, program, record, run, test

LOW, HIGH, PAGE = 0x40000000, 0x80000000, 4096


def mapped(*words):
    done = run([TIDEMARK, "map", "t.tide", "--range", f"{LOW:x}..{HIGH:x}", *words])
    if done.code == 2 and "may not have been recorded" in done.err:
        raise Skip("this build records no virtual memory")
    equal(0, done.code, f"exit code ({done.err})")
    return done


@test
def the_guilty_stack_is_named_and_the_figures_are_the_programs_own():
    done = record([program("fragmenter")])
    free, holes, largest, everything = map(int, done.out.split())
    answer = json.loads(mapped("--at", "mark:walked", "--json").out)
    equal(free, answer["free"], "free bytes")
    equal(holes, answer["holes"], "holes")
    equal(largest, answer["largest_free"], "the largest hole")
    guilty = answer["rows"][0]
    check(any(frame["function"] == "place_shard" for frame in guilty["stack"]), guilty["stack"])
    equal(HIGH - LOW, guilty["largest_without"], "the largest hole without the shards")
    # The failure, as it was then.
    failed = [each for each in answer["failures"] if each["size"] == 64 << 20]
    equal(1, len(failed), "calls that failed for 64 MiB")
    failed = failed[0]
    equal((hex(LOW), hex(HIGH)), (failed["low"], failed["high"]), "where MAP_32BIT looks")
    equal((16 << 20), failed["largest_free"], "the largest hole when it failed")
    equal(63, failed["in_the_way"]["count"], "shards in the way")
    check(any(frame["function"] == "reserve_board" for frame in failed["stack"]), failed["stack"])
    # The curve goes down to that, and up again.
    lowest = min(point["largest_free"] for point in answer["curve"])
    equal(16 << 20, lowest, "the lowest point of the curve")
    equal((32 << 20) - PAGE, largest, "after the sweep")
    whole = json.loads(run([TIDEMARK, "map", "t.tide", "--at", "mark:walked", "--json"]).out)
    equal(everything, whole["mapped"] - whole["owners"].get("main-stack", 0)
          - whole["owners"].get("kernel", 0), "bytes of all ranges")


@test
def a_limit_that_was_reached_is_named():
    record(["prlimit", f"--as={4 << 30}", program("fragmenter")])
    answer = json.loads(run([TIDEMARK, "map", "t.tide", "--process", "fragmenter", "--json"]).out)
    equal((4 << 30, None), (answer["mapped_limit"], answer["data_limit"]), "the limits, as they were")
    equal((hex((1 << 47) - PAGE), True), (answer["high"], int(answer["low"], 16) > 0), "its addresses")
    record(["sh", "-c", "ulimit -v 400000; exec /usr/bin/python3 -c 'bytearray(1 << 30)'"],
           "--force", code=1)
    said = run([TIDEMARK, "map", "t.tide", "--process", "1"]).out
    check("but of a limit: " in said and " were mapped of 390.6 MiB (RLIMIT_AS)" in said, said)


@test
def the_picture_and_the_text_show_it():
    record([program("fragmenter")])
    text = mapped("--at", "mark:shattered").out
    check("FAILED FOR WANT OF MEMORY" in text and "place_shard" in text and "64.0 MiB" in text, text)
    mapped("--at", "mark:shattered", "-o", "t.svg")
    with open("t.svg", encoding="utf-8") as file:
        check(file.read().count('fill="#d55e00"') >= 63, "cells of the program")


main()
