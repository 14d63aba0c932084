#!/usr/bin/env python3
"""tidemark ctl: from outside, a recording is stopped and started, and marks are set."""
# timeout: 120
# parallel: yes
import json
import os
import shutil
import signal
import subprocess
import sys
import threading

from libguest import (PATIENCE_SECONDS, TIDEMARK, check, environment, equal, main, need_root, run,
                      test)

# Does what it is told, line by line, and says when it is done: blocks of a size that nobody else has.
OBEDIENT = """
import os, sys
kept = []
print(os.getpid(), flush=True)
for line in sys.stdin:
    word, count, size = (line.split() + ["0", "0"])[:3]
    if word == "keep":
        kept.append([bytearray(int(size)) for _ in range(int(count))])
    elif word == "drop":
        kept = []
    elif word == "fork" and os.fork() == 0:
        more = [bytearray(int(size)) for _ in range(int(count))]
        os._exit(0)
    elif word == "fork":
        os.wait()
    print("done", flush=True)
"""


class Program:
    def __init__(self, *options, trace="t.tide"):
        self.trace = trace
        self.running = subprocess.Popen(
            [TIDEMARK, "record", "-q", "-o", trace, *options, "--", sys.executable, "-u", "-c",
             OBEDIENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, env=environment(PYTHONMALLOC="malloc"))
        self.pid = self.running.stdout.readline().strip()

    def say(self, *words):
        self.running.stdin.write(" ".join(map(str, words)) + "\n")
        self.running.stdin.flush()
        equal("done\n", self.running.stdout.readline(), "what the program answers")

    def ctl(self, *words, code=0, **more):
        ended = run([TIDEMARK, "ctl", self.pid, *words], **more)
        equal(code, ended.code, f"ctl {words} ({ended.err})")
        return ended.err

    def end(self):
        self.running.stdin.close()
        equal(0, self.running.wait(timeout=PATIENCE_SECONDS), self.running.stderr.read())
        self.running.stdout.close()

    def blocks(self, size, *words):
        """(begun, freed) of so many bytes, in a window."""
        ended = run([TIDEMARK, "window", self.trace, "--json", "--by", "size", "--size",
                     f"{size}..{size + 200}", *words])
        equal(0, ended.code, ended.err)
        total = json.loads(ended.out)["total"]
        return total["allocated_count"], total["freed_count"]


def notes(trace, *kinds):
    ended = run([TIDEMARK, "dump", trace])
    return [line.split(" ", 1)[1] for line in ended.out.splitlines()
            if line.startswith("@") and line.split()[1] in kinds]


@test
def what_is_allocated_between_stop_and_start_is_left_out():
    program = Program()
    program.say("keep", 100, 70000)
    equal("", program.ctl("stop"), "what ctl says")
    program.say("keep", 200, 80000)
    program.ctl("start")
    program.say("keep", 300, 90000)
    program.say("drop")
    program.end()
    equal((100, 100), program.blocks(70000), "blocks from before")
    equal((0, 0), program.blocks(80000), "blocks that are left out")
    equal((300, 300), program.blocks(90000), "blocks from after")
    equal(["pause", "resume"], [note.split()[0] for note in notes("t.tide", "pause", "resume")],
          "notes")


@test
def what_was_recorded_ends_while_the_recording_is_stopped():
    program = Program()
    program.say("keep", 100, 70000)
    program.ctl("stop")
    program.say("drop")
    program.end()
    equal((100, 100), program.blocks(70000), "blocks")


@test
def a_program_that_began_paused_is_started():
    program = Program("--paused")
    program.say("keep", 100, 70000)
    program.ctl("start")
    program.say("keep", 200, 80000)
    program.ctl("stop")
    program.say("keep", 300, 90000)
    program.ctl("start")
    program.say("keep", 400, 60000)
    program.end()
    equal([0, 200, 0, 400], [program.blocks(size)[0] for size in (70000, 80000, 90000, 60000)],
          "blocks")


@test
def a_mark_stands_behind_what_was_done_before_it():
    program = Program()
    program.say("keep", 100, 70000)
    program.ctl("mark", "half way")
    program.say("keep", 200, 80000)
    program.ctl("mark", "end")
    program.end()
    equal((100, 0), program.blocks(70000, "--to", "mark:half way"), "before")
    equal((0, 0), program.blocks(70000, "--from", "mark:half way", "--to", "mark:end"), "after")
    equal((200, 0), program.blocks(80000, "--from", "mark:half way", "--to", "mark:end"), "new")
    equal((0, 0), program.blocks(80000, "--to", "mark:half way"), "new, before")


@test
def a_process_that_is_started_meanwhile_is_recorded():
    program = Program()
    program.ctl("stop")
    program.say("fork", 50, 75000)
    program.say("keep", 60, 85000)
    program.end()
    equal(50, program.blocks(75000)[0], "blocks of the child")
    equal(0, program.blocks(85000)[0], "blocks of its parent")


@test
def each_of_two_recordings_hears_what_is_meant_for_it():
    one, other = Program(trace="one.tide"), Program(trace="other.tide")
    one.ctl("mark", "mine")
    other.ctl("stop")
    one.say("keep", 10, 70000)
    other.say("keep", 10, 70000)
    one.end()
    other.end()
    equal(10, one.blocks(70000, "--from", "mark:mine")[0], "blocks of one")
    equal((0, 0), other.blocks(70000), "blocks of the other")


@test
def asking_again_and_again_from_many_sides_is_no_harm():
    program = Program()

    def ask(number):
        for i in range(20):
            program.ctl("mark", f"m{number}.{i}")

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    program.say("keep", 1000, 5000)
    for thread in threads:
        thread.join()
    program.end()
    marks = notes("t.tide", "mark")
    equal(80, len(marks), "marks")
    for number in range(4):
        mine = [mark for mark in marks if f"m{number}." in mark]
        check(mine == sorted(mine, key=lambda mark: int(mark.split(".")[-1].rstrip('"'))), mine)


@test
def what_is_saved_is_called_a_copy_and_not_damaged():
    program = Program()
    program.say("keep", 10, 7000)
    program.ctl("save", "now.tide")
    ended = run([TIDEMARK, "check", "now.tide", "--max-peak", "1G"])
    equal(3, ended.code, "its programs go on, so it is not judged")
    check("it went on after this copy" in ended.out + ended.err, ended.out, ended.err)
    check("cut at" not in ended.out + ended.err, ended.out, ended.err)
    program.end()


@test
def mistakes_are_told_in_one_line():
    for because, *words in (("is not a process id", "x", "start"),
                            ("is not a process id", "0", "start"),
                            ("did you mean 'start'", "1", "stort"), ("a PID",),
                            ("start, stop, detach, reachability, save, sample or mark", "1"),
                            ("needs a NAME", "1", "mark"), ("needs a SIZE", "1", "sample"),
                            ("a power of two", "1", "sample", "5000"),
                            ("a power of two", "1", "sample", "1"),
                            ("1 to 255 bytes", "1", "mark", "n" * 256),
                            ("1 to 255 bytes", "1", "mark", ""),
                            ("too many words", "1", "stop", "now"),
                            ("is not being recorded", str(os.getpid()), "stop")):
        ended = run([TIDEMARK, "ctl", *words])
        equal(2, ended.code, words)
        check(because in ended.err and ended.err.count("\n") == 1, words, ended.err)


def nobody():
    """How ./tidemark is run as another user, who may have no way in where the build lies."""
    os.chmod(".", 0o755)
    shutil.copy(TIDEMARK, "tidemark")
    return {"user": 65534, "group": 65534, "extra_groups": []}


@test
def a_process_that_nobody_records_is_known_without_an_answer():
    program = Program()
    with open(f"/proc/{program.running.pid}/task/{program.running.pid}/children",
              encoding="ascii") as file:
        collector = next(pid for pid in map(int, file.read().split())
                         if os.readlink(f"/proc/{pid}/exe") == os.path.realpath(TIDEMARK))
    os.kill(collector, signal.SIGSTOP)
    ended = run([TIDEMARK, "ctl", str(os.getpid()), "stop"])
    unseen = run(["./tidemark", "ctl", str(os.getpid()), "stop"], **nobody()) if os.geteuid() == 0 else None
    os.kill(collector, signal.SIGCONT)
    equal((2, f"tidemark ctl: process {os.getpid()} is not being recorded\n"),
          (ended.code, ended.err), "ctl of this process")
    # Nor is it that collector's where it cannot be seen what the process has mapped.
    if unseen:
        equal(2, unseen.code, unseen.err)
        check("is not being recorded, or by another user" in unseen.err, unseen.err)
    program.say("keep", 10, 70000)
    program.end()
    equal(10, program.blocks(70000)[0], "blocks")


@test
def another_user_is_refused():
    need_root()
    program = Program()
    ended = run(["./tidemark", "ctl", program.pid, "stop"], **nobody())
    equal(2, ended.code, ended.err)
    said = ended.err
    check("another user" in said, said)
    program.say("keep", 10, 70000)
    program.end()
    equal(10, program.blocks(70000)[0], "blocks")


main()
