#!/usr/bin/env python3
"""Statically linked programs that run already are attached to as others are: what those of glibc do
is recorded exactly, and they are as they were; what has no room for the recorder is refused."""
# timeout: 240
# parallel: yes
import os
import shutil

os.environ["GUEST_LINKED"] = "-static-pie -fPIE"
os.environ.setdefault("ATTACH_ROUNDS", "8")

# pylint: disable=wrong-import-position
from libguest import TIDEMARK, Trace, equal, main, run, test, why_not_32_bits
from libtests import take

take("attach", "twenty times", "from before", "who is killed")
take("statics", "none of these")
from attach import Running, refused
from statics import build, check_counts, check_stacks


@test
def what_it_does_from_then_on_is_exact():
    """By threads to come, children, jumps and signal handlers: counted by the program itself."""
    for way in ("static", "pie"):
        running = Running([build(way), "wait"]).ready()
        recording = Running([TIDEMARK, "record", "-p", str(running.pid), "-o", "t.tide", "-f"])
        recording.process.stderr.readline()  # it is attached to
        out, err = running.process.communicate("go\n")
        equal(0, running.process.returncode, err)
        recording.end(0)
        trace = Trace()
        equal(2, len(trace.processes), "processes")
        check_counts(trace, out)
        check_stacks(trace, way, (7501, 7502, 7503, 7504, 7552, 7488, 7505, 7506, 7507))


@test
def what_has_no_room_or_no_names_is_refused():
    ways = {"static": "stripped"}
    if shutil.which("musl-gcc"):
        ways["musl"] = "musl"
    if not why_not_32_bits():
        ways["narrow"] = "not of 64 bits"
    for way, said in ways.items():
        path = build(way)
        if way == "static":
            equal(0, run(["strip", path]).code, "strip")
        running = Running([path, "wait"]).ready()
        refused(running.pid, "statically linked", said, "try:")
        out, _ = running.process.communicate("go\n")
        equal(run([path]).out, out, "what it says")


main()
