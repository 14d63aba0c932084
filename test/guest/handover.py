#!/usr/bin/env python3
"""Eight threads hand each other blocks: the trace's order is what really happened, whoever's
allocator it is, and whenever they are killed."""
# timeout: 300
import glob
import os
import random
import signal
import subprocess
import time

from libguest import TIDEMARK, Skip, check, environment, equal, main, program, test
from libreplay import handover, verify


def allocator(library):
    found = glob.glob(f"/usr/lib/x86_64-linux-gnu/{library}")
    if not found:
        raise Skip(f"{library} is not installed")
    return found[0]


def exact(preload=None):
    for seed in (1, 2):
        replay = handover(40000, seed, preload=preload)
        equal({}, dict(replay.wrong), f"what cannot have happened, in {replay.events} events")
        check(replay.events > 300000, replay)
        check(replay.handed_over > 2000, "too few hand-overs", replay)


@test
def in_the_c_librarys_allocator():
    exact()


@test
def in_mimalloc():
    exact(allocator("libmimalloc.so.2*"))


@test
def in_jemalloc():
    exact(allocator("libjemalloc.so.2"))


@test
def in_tcmalloc():
    exact(allocator("libtcmalloc_minimal.so.4"))


@test
def killed_at_any_moment_no_call_that_returned_is_missing():
    chance = random.Random(7)
    events = 0
    for _ in range(12):
        if os.path.exists("log"):
            os.unlink("log")
        with subprocess.Popen([TIDEMARK, "record", "-q", "--force", "-o", "t.tide",
                               program("handover"), os.path.abspath("log"), "8", "400000", "3"],
                              env=environment()) as recorder:
            while not os.path.exists("log") or not os.path.getsize("log"):
                time.sleep(0.002)
            time.sleep(chance.uniform(0, 0.2))
            with open(f"/proc/{recorder.pid}/task/{recorder.pid}/children",
                      encoding="ascii") as file:
                for pid in map(int, file.read().split()):
                    if os.readlink(f"/proc/{pid}/exe").endswith("/handover"):
                        os.kill(pid, signal.SIGKILL)
            recorder.wait(30)
        if os.path.getsize("log") and os.path.exists("t.tide"):
            replay = verify("t.tide", "log")
            equal({}, dict(replay.wrong), f"what cannot have happened, in {replay.events} events")
            events += replay.events
    check(events > 100000, f"only {events} events in all")


main()
