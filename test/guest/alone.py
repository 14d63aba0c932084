#!/usr/bin/env python3
"""LD_PRELOAD=libtidemark.so alone records too, and the program does not notice its collector."""
# parallel: yes
import glob
import os

from libguest import (LIBRARY, check, check_whole, closed, environment, equal,
                      main, program, run, test, wait_for)


def alone(command, **variables):
    """Run it; wait for the trace to be closed."""
    ended = run(command, env=environment(LD_PRELOAD=LIBRARY, **variables))
    return ended


@test
def preload_alone_records_into_the_named_file():
    ended = alone([program("resizes")], TIDEMARK_OUTPUT="t.tide")
    equal((0, "100\n", ""), (ended.code, ended.out, ended.err), "code, output and errors")
    trace = closed("t.tide")
    check_whole(trace)
    equal(100, len(trace.of_size(7201)), "blocks")


@test
def preload_alone_has_the_same_default_name():
    ended = alone([program("resizes")])
    equal(0, ended.code, "exit code")
    names = wait_for(lambda: glob.glob("tidemark.resizes.*.tide"), "a trace")
    equal(1, len(names), f"traces in {os.listdir('.')}")
    check_whole(closed(names[0]))


@test
def children_are_in_the_same_trace_and_no_child_is_ours():
    ended = alone([program("descends"), "fork_exec"], TIDEMARK_OUTPUT="t.tide")
    equal(0, ended.code, "exit code")
    trace = closed("t.tide")
    check_whole(trace)
    equal(3, len(trace.processes), "processes")
    equal(30, len(trace.of_size(7102)), "blocks of the fresh image")


@test
def options_come_from_the_environment():
    alone([program("resizes")], TIDEMARK_OUTPUT="t.tide", TIDEMARK_OPTIONS="free-stacks")
    trace = closed("t.tide")
    check(all(event.stack for event in trace.events if event.kind == "free"), "no stacks")


@test
def a_sample_of_the_blocks_may_be_asked_for_there():
    alone([program("many_stacks")], TIDEMARK_OUTPUT="t.tide", TIDEMARK_OPTIONS="sample=1K force")
    trace = closed("t.tide")
    check(1000 < trace.counts().allocations < 10000, trace.counts())


main()
