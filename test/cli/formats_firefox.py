#!/usr/bin/env python3
# parallel: yes
"""`tidemark export --format firefox`, read by the command line of Firefox's profiler: what it says was
retained in a range is what `tidemark window` says lives at its end and began in it."""
import array
import json
import os
import re
import shutil
import subprocess
import time

from libanswer import BUILD, SOURCE, TIDEMARK, answer, assemble, refused, run
from libtests import PATIENCE_SECONDS, Skip, check, equal, main, test

CLI = os.path.join(SOURCE, "web/node_modules/@firefox-devtools/profiler-cli/dist/profiler-cli.js")
RANGES = {  # ms, between events
    "kitchen": ((0.15, 0.45), (0.35, 0.65), (0.05, 3.5)),
    "crowd": ((0.15, 0.35), (0.25, 0.65)),
    "family": ((0.5, 7.5), (2.5, 12.5)),
}


class Session:
    """The profile, and the profiler's process that holds it: a child of ours, since `load` does not wait
    for it where the machine is busy."""

    number = 0

    def __init__(self, path, *words):
        if not shutil.which("node") or not os.path.exists(CLI):
            raise Skip("needs node and profiler-cli (tools/web setup)")
        run("export", path, "--format", "firefox", "-o", "out.json", "--force", *words)
        Session.number += 1
        self.name = f"session{Session.number}"
        self.env = {**os.environ, "HOME": os.getcwd(), "PROFILER_CLI_NO_SYMBOLICATE": "1",
                    "PROFILER_CLI_SESSION_DIR": os.path.join(os.getcwd(), "sessions")}

    def __enter__(self):
        os.makedirs("sessions", exist_ok=True)
        self.holder = subprocess.Popen(["node", CLI, "--daemon", os.path.abspath("out.json"), "--session",
                                        self.name], env=self.env, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
        # Whoever asks before it listens makes it unreachable for good: its log tells.
        end = time.monotonic() + PATIENCE_SECONDS
        log = os.path.join("sessions", self.name + ".log")
        while not self.has_loaded(log):
            if time.monotonic() > end or self.holder.poll() is not None:
                self.__exit__()
                check(False, "it does not load the profile")
            time.sleep(0.1)
        self.told("strategy", "native-retained-allocations")
        return self

    def __exit__(self, *_):
        self.holder.terminate()
        self.holder.wait(PATIENCE_SECONDS)

    @staticmethod
    def has_loaded(log):
        if not os.path.exists(log):
            return False
        with open(log, encoding="utf-8") as file:
            return "loaded successfully" in file.read()

    def ask(self, *words):
        return subprocess.run(["node", CLI, *words, "--session", self.name], capture_output=True, text=True,
                              timeout=PATIENCE_SECONDS, env=self.env, check=False)

    def told(self, *words):
        done = self.ask(*words)
        check(done.returncode == 0, words, done.stdout, done.stderr)
        return done.stdout

    def retained(self):
        return {row["name"]: row["selfSamples"] for row in
                json.loads(self.told("thread", "functions", "--json", "--limit", "100000"))["functions"]}


def began_and_lives(path, *words):
    return sum(row["size"] for row in answer("window", path, "--by", "type", *words)["rows"]
               if row["keys"]["type"] == "AIFO")


def busiest(path):
    """The process that allocated most."""
    choices = [("--process", str(process["id"])) for process in answer("info", path)["processes"]]
    return max(choices, key=lambda words: answer("window", path, *words)["total"]["allocated"])


@test
def what_is_retained_in_a_range_is_ours():
    for name, ranges in RANGES.items():
        path = assemble(name)
        process = busiest(path)
        with Session(path, *process) as session:
            equal(began_and_lives(path, *process), sum(session.retained().values()), name)
            for begin, end in ranges:
                session.told("zoom", "push", f"{begin}ms,{end}ms")
                expected = began_and_lives(path, *process, "--from", f"{begin}ms", "--to", f"{end}ms")
                equal(expected, sum(session.retained().values()), (name, begin, end))
                session.told("zoom", "clear")


@test
def it_has_our_functions_inlined_ones_too():
    with Session(assemble("kitchen")) as session:
        found = session.retained()
        equal(2000, found["stir"])
        session.told("strategy", "native-allocations")
        names = set(session.retained())
        check({"peel_one", "peel_all", "make_pot"} <= names, names)


@test
def what_has_no_stack_is_a_function():
    path = assemble("bare", "process p pid=7\nthread t p tid=7\n+1ms t malloc 0x1000 10\n"
                    "+1ms t malloc 0x2000 20\n+1ms t free 0x1000\n+1ms end p exit=0\nend\n")
    with Session(path) as session:
        equal({"(no stack)": 20}, session.retained())


@test
def what_is_more_than_it_can_hold_is_counted():
    events, most = 8_500_000, 1 << 23
    subprocess.run([os.path.join(BUILD, "test/bench/window_bench"), "make", "10", "1000", str(events),
                    "large.tide"], check=True, stdout=subprocess.DEVNULL)
    with open("large.json", "wb") as file:
        said = subprocess.run([TIDEMARK, "export", "large.tide", "--format", "firefox"], check=True, stdout=file,
                              stderr=subprocess.PIPE, text=True).stderr
    check(f"{events - most:,} of {events:,} events are left out" in said, said)
    end = re.search(r"ends at (\d+) ns", said)[1]
    with open("large.json", encoding="utf-8") as file:
        text = file.read()
    # It is the profile of the window up to there.
    begin = text.index('"weight":[')
    weights = array.array("q", (int(each[0]) for each in re.compile("-?[0-9]+").finditer(
        text, begin, text.index("]", begin))))
    equal(most, len(weights))
    window = answer("window", "large.tide", "--layer", "heap", "--to", end + "ns")["total"]
    check(abs(window["impacting_size"] - sum(weights)) <= 1e4, window)
    os.remove("large.json")


@test
def it_is_of_one_process():
    check("--process" in refused("export", assemble("family"), "--format", "firefox"))


main()
