#!/usr/bin/env python3
"""LD_PRELOAD=libtidemark.so alone records too, and the program does not notice its collector."""
# parallel: yes
import fcntl
import glob
import os
import struct
import subprocess

from libguest import (LIBRARY, TIDEMARK, check, check_whole, closed, environment, equal,
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
def a_soft_limit_of_file_sizes_is_the_programs_and_not_the_collectors():
    ended = run(["bash", "-c", f"ulimit -S -f 1000; LD_PRELOAD={LIBRARY} TIDEMARK_OUTPUT=t.tide exec "
                 f"'{program('resizes')}'"])
    equal((0, "100\n", ""), (ended.code, ended.out, ended.err), "code, output and errors")
    trace = closed("t.tide")
    check_whole(trace)
    equal(100, len(trace.of_size(7201)), "blocks")


@test
def a_question_that_comes_before_the_collector_is_done_waits_for_it():
    for command in ("report", "findings", "info"):
        alone([program("resizes")], TIDEMARK_OUTPUT=f"{command}.tide")
        told = run([TIDEMARK, command, f"{command}.tide"])
        equal(0, told.code, "exit code")
        check("still being written" not in told.out + told.err, told)
        check("Nothing was allocated" not in told.out, told)


@test
def a_question_while_the_program_runs_is_answered_at_once():
    with open("running.txt", "w") as file:
        file.write(f"process p pid={os.getpid()} exe=/bin/p\nthread t p\nstack s \"f\"\n"
                   "@0 start p\n@1us t malloc s 0x10 16\n@2us t malloc s 0x20 16\n")
    equal(0, run([TIDEMARK, "dump", "--assemble", "running.txt", "-o", "running.tide"]).code, "code")
    with open("running.tide", "r+b") as file:
        file.truncate(os.path.getsize("running.tide") - 30)
        # As the collector claims it (os/file.h): by a lock of the open file.
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
        told = run([TIDEMARK, "report", "running.tide"])
        check("still being written" in told.out, told)


@test
def a_question_about_a_program_that_is_not_seen_says_what_it_waits_for():
    with open("unseen.txt", "w") as file:
        file.write("process p pid=0 exe=/bin/p\nthread t p\nstack s \"f\"\n"
                   "@0 start p\n@1us t malloc s 0x10 16\n@2us t malloc s 0x20 16\nend\n")
    for words in (["report"], ["info"]):
        equal(0, run([TIDEMARK, "dump", "--assemble", "unseen.txt", "-o", "unseen.tide", "-f"]).code, "code")
        with open("unseen.tide", "r+b") as file:
            whole = file.read()
            file.truncate(len(whole) - 30)
            fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
            asks = subprocess.Popen([TIDEMARK, *words, "unseen.tide"], stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True, env=environment())
            check("none of its processes is seen" in asks.stderr.readline(), words)
            file.seek(0)
            file.write(whole)
            file.flush()
        out, err = asks.communicate()
        check("being written" not in out and "NOT WHOLE" not in out and not err, (words, out, err))


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
