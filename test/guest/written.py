#!/usr/bin/env python3
"""A trace that is still being written is called that by every command, and cut only once nobody
writes it any more."""
# timeout: 120
# parallel: yes
import fcntl
import json
import os
import signal
import struct
import subprocess
import sys

from libguest import PATIENCE_SECONDS, TIDEMARK, check, environment, equal, main, run, test, wait_for
from libview import Server

STAYS = "import os, sys; kept = [bytearray(70000) for _ in range(200)]; print(os.getpid(), " \
        "flush=True); sys.stdin.read()"
COMMANDS = ["report", "window", "growth", "transients", "active", "map", "pins", "reconcile", "dump",
            "export"]
WORDS = {"export": ["--format", "folded", "-o", "out", "--force"]}
WRITTEN = "the trace is still being written"
CUT = "the recording did not end"


class Recording:
    def __enter__(self):
        self.running = subprocess.Popen(
            [TIDEMARK, "record", "-q", "--rss-exact", "-o", "t.tide", "--", sys.executable, "-c", STAYS],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env=environment(PYTHONMALLOC="malloc"))
        self.pid = int(self.running.stdout.readline())
        wait_for(lambda: info()["events"]["total"] > 0, "events in the file")
        return self

    def __exit__(self, *ignored):
        self.running.communicate(timeout=PATIENCE_SECONDS)


def info():
    return json.loads(run([TIDEMARK, "info", "--json", "t.tide"]).out)


def said(command):
    """All that it says, in text, with spaces for ends of lines."""
    ended = run([TIDEMARK, command, "t.tide", *WORDS.get(command, [])])
    equal(0, ended.code, f"{command}: {ended.err}")
    return " ".join((ended.out + ended.err).split())


def told(command):
    found = json.loads(run([TIDEMARK, command, "--json", "t.tide"]).out)
    found = found.get("trace", found)
    return found["complete"], " ".join(found["warnings"])


@test
def every_command_says_that_a_trace_is_still_being_written():
    with Recording():
        for command in COMMANDS:
            text = said(command)
            check(WRITTEN in text and CUT not in text, command, text)
        for command in COMMANDS[:-2]:
            complete, warnings = told(command)
            check(not complete and WRITTEN in warnings and CUT not in warnings, command, warnings)
        trace = info()["trace"]
        check(not trace["complete"] and "still being written" in trace["problem"], trace)
        check("STILL BEING WRITTEN" in said("info"))
    for command in COMMANDS:
        check(WRITTEN not in said(command), command)
    check(info()["trace"]["complete"])


@test
def the_viewer_says_so_too():
    with Recording(), Server("t.tide") as server:
        view = server.ask("/api/view")
        check(not view["complete"] and WRITTEN in view["warnings"][0], view)


@test
def what_cannot_be_done_to_it_yet_says_when_it_can():
    with Recording():
        ended = run([TIDEMARK, "bundle", "t.tide"])
        equal(3, ended.code, ended.err)
        check("again when the recording has ended" in ended.err, ended.err)
        check("it was still being written" in run([TIDEMARK, "repair", "t.tide"]).out)


@test
def check_waits_for_the_end_of_a_trace_that_is_about_to_be_closed():
    equal(0, run([TIDEMARK, "record", "-q", "-o", "w.tide", "true"]).code, "record")
    with open("w.tide", "r+b") as file:
        fcntl.fcntl(file, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))  # F_OFD_SETLK
        checking = subprocess.Popen([TIDEMARK, "check", "w.tide", "--max-peak", "1G"],
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

        def has_it():
            folder = f"/proc/{checking.pid}/fd"
            try:
                return any(os.readlink(f"{folder}/{fd}") == os.path.abspath("w.tide")
                           for fd in os.listdir(folder)) or checking.poll() is not None
            except FileNotFoundError:
                return False
        wait_for(has_it, "the check")
    text = checking.communicate()[0]
    equal(0, checking.returncode, text)


@test
def check_does_not_wait_for_a_program_that_runs():
    """Each look whether it has ended is a sleep: a thousand are five seconds."""
    with Recording():
        with open("said", "w+", encoding="utf-8") as said_by:
            checking = subprocess.Popen([TIDEMARK, "check", "t.tide", "--max-peak", "1G"], stdout=said_by,
                                        stderr=subprocess.STDOUT)
            _, status, usage = os.wait4(checking.pid, 0)
            checking.returncode = os.waitstatus_to_exitcode(status)
            said_by.seek(0)
            text = said_by.read()
        equal(3, checking.returncode, text)
        check(WRITTEN in text.replace("\n", " "), text)
        check(usage.ru_nvcsw < 800, usage.ru_nvcsw, "times that it slept")


@test
def once_its_collector_is_killed_it_is_cut():
    with Recording() as recording:
        with open(f"/proc/{recording.running.pid}/task/{recording.running.pid}/children",
                  encoding="ascii") as file:
            collector = next(int(pid) for pid in file.read().split() if int(pid) != recording.pid)
        os.kill(collector, signal.SIGKILL)
        wait_for(lambda: "still being written" not in info()["trace"]["problem"], "the lock's end")
        check(CUT in said("report"))
    check(CUT in said("window"))


main()
