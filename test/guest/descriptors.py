#!/usr/bin/env python3
"""Whatever a program does to its descriptors, its files are its own and the recording goes on."""
# parallel: yes
import os
import subprocess

from libguest import (PATIENCE_SECONDS, TIDEMARK, Trace, check, check_whole, environment, equal,
                      main, program, record_witnessed, run, test)


def contents(folder):
    found = {}
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as file:
            found[name] = file.read()
    return found


def is_untouched(how, pairs):
    os.mkdir("files")
    files = os.path.abspath("files")
    equal(0, run([program("descriptors"), how, files]).code, "exit code untraced")
    expected = contents(files)
    for name in expected:
        os.unlink(os.path.join(files, name))
    _, witness = record_witnessed([program("descriptors"), how, files])
    equal(expected, contents(files), "the program's files")
    trace = Trace()
    check_whole(trace, witness)
    equal(pairs, len(trace.of_size(7010)), "blocks of the program")


@test
def close_range_leaves_files_and_recording_whole():
    is_untouched("close_range", 1001)


@test
def closing_one_by_one_leaves_files_and_recording_whole():
    is_untouched("loop", 1001)


@test
def dup2_over_everything_leaves_files_and_recording_whole():
    is_untouched("dup2", 2001)


@test
def the_program_is_given_what_we_were_given():
    command = ["nice", "-n", "3", "sh", "-c",
               "umask 027; trap '' USR1 PIPE CHLD; ulimit -n 512; exec \"$@\"", "sh"]
    own = [program("given"), "one", "two words", ""]
    recording = [TIDEMARK, "record", "-q", "-o", "t.tide", "--"]

    is_given_the_same([*command], recording, own)


def is_given_the_same(command, recording, own):
    def given(prefix):
        with open("input", "wb+") as file:
            return subprocess.run([*command, *prefix, *own], env=environment(X="1"), stdin=file,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True,
                                  timeout=PATIENCE_SECONDS).stdout.decode().splitlines()

    plain, traced = given([]), given(recording)
    check(len(plain) > 60, f"only {len(plain)} lines")
    equal([], [line for line in plain if line not in traced], "lines missing under the recorder")
    equal([], [line for line in traced if line not in plain], "lines new under the recorder")


@test
def standard_descriptors_that_are_closed_stay_closed():
    is_given_the_same(["sh", "-c", "exec <&- 2>&-; exec \"$@\"", "sh"],
                      [TIDEMARK, "record", "-q", "-o", "t.tide", "--"], [program("given")])
    check_whole(Trace())


@test
def standard_streams_pass_through_untouched():
    script = "cat; echo to-stderr >&2"
    text = bytes(range(256)) * 1000
    ended = run([TIDEMARK, "record", "-q", "-o", "t.tide", "sh", "-c", script], text=text)
    plain = run(["sh", "-c", script], text=text)
    equal(plain.out, ended.out, "standard output")
    equal("to-stderr\n", ended.err, "standard error with -q")


main()
