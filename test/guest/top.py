#!/usr/bin/env python3
"""What lives in a trace that is still being written: as text, as JSON, and on a terminal; by the
process's number as well as by the file's name."""
# parallel: yes
import contextlib
import json
import os
import pty
import select
import signal
import subprocess
import termios
import time

from libguest import TIDEMARK, check, environment, equal, main, run, test, wait_for
from libschema import valid
from libtests import PATIENCE_SECONDS


def start(*command):
    running = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, env=environment())
    return running


# Two megabytes that stay, and blocks that come and go, not too many: each look reads all of them.
STEADY = """
import select, sys, time
kept = [bytearray(7000) for _ in range(300)]
print("ready", flush=True)
while not select.select([sys.stdin], [], [], 0.001)[0]:
    passing = [bytearray(9000) for _ in range(20)]
"""


def recorded():
    running = start(TIDEMARK, "record", "-f", "-o", "t.tide", "--", "/usr/bin/python3", "-c", STEADY)
    equal("ready\n", running.stdout.readline(), "what the program says first")
    with open(f"/proc/{running.pid}/task/{running.pid}/children", encoding="utf-8") as children:
        pids = [int(word) for word in children.read().split()]
    child = [pid for pid in pids if "python" in os.readlink(f"/proc/{pid}/exe")][0]
    return running, child


def once(what, *options):
    ended = run([TIDEMARK, "top", str(what), "--once", "--json", *options])
    equal(0, ended.code, ended.err)
    answer = json.loads(ended.out)
    valid(answer, "top")
    return answer


@test
def a_recording_that_goes_on_is_watched_by_file_and_by_process():
    running, child = recorded()
    wait_for(lambda: os.path.getsize("t.tide") > 4096 and once("t.tide")["live"]["bytes"] > 300 * 7000,
             "something is written")
    first = once(child)
    check(first["growing"] and not first["complete"], first)
    check(first["peak_bytes"] >= first["live"]["bytes"] > 300 * 7000, first)
    equal(first["live"]["bytes"], sum(row["live"]["bytes"] for row in first["rows"]), "rows")
    equal([child], [process["pid"] for process in first["processes"]], "processes")
    wait_for(lambda: once(child)["at_ns"] > first["at_ns"] + 10**9, "it goes on")
    check(once(child)["allocations_per_second"] > 100, "rate")
    narrow = once(child, "--frame", "Py", "-n", "1")
    equal(1, len(narrow["rows"]), "rows")
    check(any("Py" in (frame["function"] or "") for frame in narrow["rows"][0]["stack"]), narrow)
    asked = run([TIDEMARK, "active", str(child)])
    equal((3, f"tidemark active: there is no file {child}; process {child} is recorded into {os.path.realpath('t.tide')}\n"),
          (asked.code, asked.err), "a process where a file is wanted")
    text = run([TIDEMARK, "top", str(child), "--once"]).out
    check("being written" in text and "Py" in text and "allocations/s" in text, text)
    running.communicate(timeout=PATIENCE_SECONDS)
    last = once("t.tide")
    check(last["complete"] and not last["growing"], last)
    check(last["processes"][0]["ended"], last["processes"])


@test
def several_processes_are_each_a_line_of_their_own():
    """Three children, each with a megabyte more than the one before, and their parent."""
    family = "import os\nfor n in range(3):\n if not (inner := os.fork()):\n  kept = bytearray((n + 1) << 20)\n" \
             "  open(f'{n}', 'w').close()\n  os.read(0, 1)\n  os._exit(0)\nos.read(0, 1)\n"
    running = start(TIDEMARK, "record", "-o", "f.tide", "-f", "--", "/usr/bin/python3", "-c", family)
    wait_for(lambda: all(os.path.exists(str(n)) for n in range(3)), "the children are there")
    wait_for(lambda: os.path.exists("f.tide") and os.path.getsize("f.tide") > 4096, "something is written")
    own = lambda answer: [process for process in answer["processes"] if process["live"]["bytes"] > 1 << 20]
    wait_for(lambda: len(own(once("f.tide"))) == 3, "the children's blocks are read")
    answer = once("f.tide")
    equal(4, len(answer["processes"]), answer["processes"])
    equal([n + 1 for n in range(3)], sorted(process["live"]["bytes"] >> 20 for process in own(answer)), "their megabytes")
    equal(answer["live"]["bytes"], sum(process["live"]["bytes"] for process in answer["processes"]), "all together")
    for process in answer["processes"]:
        rows = [row["live"]["bytes"] for row in answer["rows"] if row["process_id"] == process["id"]]
        equal(process["live"]["bytes"], sum(rows), f"sites of {process['pid']}")
        equal(4, len(once(process["pid"])["processes"]), "in the recording that it is in")
    text = run([TIDEMARK, "top", "f.tide", "--once"]).out
    check(all(f" {process['pid']} " in text.partition("PROCESS")[2] for process in answer["processes"]), text)
    running.communicate("abcd", timeout=PATIENCE_SECONDS)


def on_a_screen():
    """`top` in a terminal: what records, what is recorded, top's pid and the terminal's other end."""
    running, child = recorded()
    wait_for(lambda: os.path.getsize("t.tide") > 4096, "something is written")
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(TIDEMARK, ["tidemark", "top", "t.tide"], environment(TERM="xterm"))
    return running, child, pid, terminal


@test
def the_screen_obeys_its_keys():
    running, child, pid, terminal = on_a_screen()
    seen = b""

    def until(words, keys=b""):
        nonlocal seen
        seen = b""
        os.write(terminal, keys)
        end = time.monotonic() + PATIENCE_SECONDS
        while words not in seen:
            check(time.monotonic() < end, f"no {words} in {seen[-600:]}")
            if select.select([terminal], [], [], 1)[0]:
                seen += os.read(terminal, 65536)

    until(b"being written")
    until(b"(mark)", b"m")
    until(b"by GROWN", b"s")
    until(b" " * 43, b"\n\033[B")
    until(b"/Py_", b"/Py")
    os.write(terminal, b"\nq")
    equal(0, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), "exit code")
    os.kill(child, signal.SIGKILL)
    running.communicate(timeout=PATIENCE_SECONDS)


def ends_on_a_screen(end, number):
    """Left as it was, the shell after it would show nothing of what is typed."""
    running, child, pid, terminal = on_a_screen()
    seen = b""

    def read_on(until):
        nonlocal seen
        limit = time.monotonic() + PATIENCE_SECONDS
        while not until():
            check(time.monotonic() < limit, f"not yet: {seen[-600:]}")
            if select.select([terminal], [], [], 0.1)[0]:
                with contextlib.suppress(OSError):  # its other end may be gone
                    seen += os.read(terminal, 65536)

    echoes = lambda: bool(termios.tcgetattr(terminal)[3] & termios.ECHO)
    read_on(lambda: b"being written" in seen)
    check(not echoes(), "keys are not shown")
    end(pid, terminal)
    read_on(lambda: os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT))
    check(echoes(), "they are again")
    equal(-number, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), "ended by the signal")
    os.kill(child, signal.SIGKILL)
    running.communicate(timeout=PATIENCE_SECONDS)


@test
def what_ends_it_finds_the_terminal_put_back():
    ends_on_a_screen(lambda pid, terminal: os.write(terminal, b"\x03"), signal.SIGINT)
    for number in (signal.SIGTERM, signal.SIGHUP):
        ends_on_a_screen(lambda pid, terminal, number=number: os.kill(pid, number), number)


@test
def a_sampled_recording_says_that_its_figures_are_estimates():
    run([TIDEMARK, "record", "-q", "--sample", "4K", "-o", "s.tide", "--", "/usr/bin/python3", "-c",
         "x = [bytearray(7000 + i) for i in range(300)]"])
    check("figures are estimates" in " ".join(run([TIDEMARK, "top", "s.tide", "--once"]).out.split()), "text")
    check("figures are estimates" in " ".join(once("s.tide")["warnings"]), "JSON")


@test
def what_cannot_be_watched_is_said():
    ended = run([TIDEMARK, "top", "1", "--once"])
    equal(2, ended.code, ended.err)
    check("is not being recorded" in ended.err and "record -p 1" in ended.err, ended.err)
    equal(3, run([TIDEMARK, "top", "none.tide", "--once"]).code, "no such file")
    for words in ([], ["t.tide"], ["t.tide", "--once", "--sort", "x"], ["99999999999", "--once"]):
        equal(2, run([TIDEMARK, "top", *words]).code, str(words))


if __name__ == "__main__":
    main()
