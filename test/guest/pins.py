#!/usr/bin/env python3
# parallel: yes
"""What `tidemark pins` says could go back is what malloc_trim gives back, as the kernel counts it."""
import json

from libguest import TIDEMARK, check, equal, main, program, record, run, test

PAGE = 4096


def pins(*words):
    done = run([TIDEMARK, "pins", "t.tide", "--json", *words])
    equal(0, done.code, f"exit code ({done.err})")
    return json.loads(done.out)


@test
def resident_memory_falls_by_what_was_said():
    done = record([program("pinned")])
    before, trimmed, after = map(int, done.out.split())
    answer = pins("--at", "mark:pinned")
    guilty = answer["rows"][0]
    equal("leave_pin", guilty["stack"][0]["function"], "who pins most")
    # Each pin is on one page or on two, and they keep a third of the memory.
    check(4000 <= guilty["pages"] <= 4200, guilty["pages"])
    check(4000 * 20 <= guilty["live_bytes"] <= 4000 * 24, guilty["live_bytes"])
    fall = trimmed - after
    check(abs(guilty["could_go_back"] - fall) <= 0.05 * fall,
          f"pins: {guilty['could_go_back']}, malloc_trim without the pins: {fall}")
    if answer["mapped"]:
        fall = before - trimmed
        free = answer["pages_free"] * PAGE
        check(abs(free - fall) <= 0.05 * fall, f"free: {free}, malloc_trim: {fall}")
    # Nothing is left to say when they are gone.
    done = run([TIDEMARK, "pins", "t.tide", "--at", "mark:unpinned"])
    check(done.code == 2 and "no blocks are live" in done.err, done.out, done.err)


main()
