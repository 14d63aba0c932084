#!/usr/bin/env python3
# parallel: yes
# timeout: 240
"""A recording that is exact at times and sampled at others (record --max-overhead): what was
recorded as every call was is exact, what was drawn is estimated, and each says which it is."""
import json
import math
import os
import subprocess

from libguest import (TIDEMARK, Trace, check, environment, equal, main, program, report, run, test,
                      wait_for)

KEPT, MOVED, DRAWN, THREADS = 2000, 200, 20000, 3
SIGMAS = 6  # of a normal distribution: once in 500 million


class Recording:
    """Of `turns`, which waits at the end of each phase."""

    def __init__(self, *options, how=(), name="t.tide", budget="100%"):
        self.name = name
        self.child = subprocess.Popen(
            [TIDEMARK, "record", "-q", "--force", "-o", name, "--max-overhead", budget, *options,
             program("turns"), *how], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=environment())
        self.pid = None

    def hear(self, phase):
        equal(phase + "\n", self.child.stdout.readline(), "phase")
        if self.pid is None:
            def find():
                with open(f"/proc/{self.child.pid}/task/{self.child.pid}/children",
                          encoding="ascii") as file:
                    return [pid for pid in file.read().split()
                            if run([TIDEMARK, "ctl", pid, "mark", "found"]).code == 0]
            self.pid = wait_for(find, "the program's pid")[0]

    def ctl(self, *words):
        return run([TIDEMARK, "ctl", self.pid, *words])

    def sample(self, distance):
        done = self.ctl("sample", distance)
        equal(0, done.code, done.err)

    def go_on(self):
        self.child.stdin.write("\n")
        self.child.stdin.flush()

    def end(self):
        self.go_on()
        self.child.stdin.close()
        self.child.stdout.read()
        equal(0, self.child.wait(), "record")


def recorded(distance, *options):
    recording = Recording(*options)
    recording.hear("two")
    recording.sample(distance)
    recording.go_on()
    recording.hear("three")
    recording.sample("all")
    # That is noted in the pass after it; what is asked next is later.
    equal(0, recording.ctl("mark", "exact").code, "a mark")
    recording.end()


def ask(*words, code=0):
    done = run([TIDEMARK, *words])
    equal(code, done.code, done.err)
    return done.out


def rows(*options):
    """The window's rows by function; frees and allocations of one that nobody called are 0."""
    answer = json.loads(ask("window", "t.tide", "--json", "--by", "function", "-n", "0", *options))
    return {row["keys"]["function"]: row for row in answer["rows"]}, answer


def is_exact(row, count, size, freed):
    equal((count, count * size, freed, freed * size),
          (row["allocated_count"], row["allocated"], row["freed_count"], row["freed"]), row["keys"])
    check(row["standard_errors"] is None, row)


def variance(sizes, mean):
    """Of the estimates of how many and how many bytes blocks of these sizes are, from samples."""
    count = size = 0
    for one in sizes:
        p = -math.expm1(-one / mean)
        count += (1 - p) / p
        size += one * one * (1 - p) / p
    return count, size


def is_near(found, truth, spread, what):
    check(abs(found - truth) <= SIGMAS * math.sqrt(spread) + 1,
          f"{what}: {found} for {truth}, ± {math.sqrt(spread):.0f}")


def is_drawn(row, sizes, mean, freed):
    """`freed`: the sizes of those that were freed."""
    counts, spread = variance(sizes, mean)
    is_near(row["allocated_count"], len(sizes), counts, "allocations")
    is_near(row["allocated"], sum(sizes), spread, "allocated")
    is_near(row["freed"], sum(freed), variance(freed, mean)[1], "freed")
    error = row["standard_errors"]["allocated"]
    # Of so many samples the estimate of the error is within a third.
    check(0.66 * math.sqrt(spread) < error < 1.5 * math.sqrt(spread), f"{error} for {spread}")


SIZES = [40 + 8 * (i % 32) for i in range(DRAWN)] * THREADS


def judge(mean):
    found, answer = rows()
    check(answer["sampled"] and any("sampled at times" in line for line in answer["warnings"]),
          answer["warnings"])
    # Of the first, those are freed that the child had not inherited, and what was moved.
    is_exact(found["first"], KEPT, 200, KEPT // 2 + MOVED)
    is_exact(found["last"], KEPT, 100, 0)
    is_exact(found["grown"], DRAWN * THREADS // 2, 1000, DRAWN * THREADS // 2)
    is_drawn(found["drawn"], SIZES, mean, SIZES)
    is_drawn(found["child"], [100] * DRAWN, mean, [100] * DRAWN)
    total = answer["total"]
    spread = variance(SIZES + [100] * DRAWN + [300] * MOVED, mean)[1]
    truth = (KEPT * 300 + DRAWN * THREADS // 2 * 1000 + sum(SIZES) + 100 * DRAWN + 300 * MOVED)
    other = sum(row["allocated"] for name, row in found.items()
                if name not in ("first", "last", "grown", "drawn", "child", "moved"))
    is_near(total["allocated"] - other, truth, spread + 1e6, "all of it")
    check(total["allocated"] >= sum(row["allocated"] for row in found.values()), "rows and total")


@test
def what_was_exact_is_exact_and_what_was_drawn_is_near_at_several_distances():
    for distance, mean in (("1K", 1024), ("4K", 4096), ("16K", 16384)):
        recorded(distance)
        trace = Trace()
        trace.check_ownership()
        equal(0, trace.events_lost(), "events lost")
        judge(mean)


@test
def the_report_weighs_alike_and_knows_the_share_of_exact_time():
    recorded("4K")
    answer = report()
    check(answer["trace"]["sampled"] and answer["trace"]["sample_bytes"] is None, answer["trace"])
    equal(None, answer["heap"]["reallocations"], "what samples cannot tell")
    _, window = rows()
    total = window["total"]
    # A window leaves out a fraction of each of its four sums, and the report rounds one.
    check(abs(answer["heap"]["allocated_bytes"] - total["allocated"]) < 4,
          answer["heap"]["allocated_bytes"], total["allocated"])
    check(abs(answer["heap"]["standard_errors"]["bytes"] - total["standard_errors"]["allocated"])
          < 2, answer["heap"]["standard_errors"])
    live = answer["heap"]["live_at_exit"]
    check(live["bytes"] >= KEPT * 100 + (KEPT // 2 - MOVED) * 200, live)
    text = ask("report", "t.tide")
    check("at times:" in text and "% of the time each call is in the trace" in text, text[:500])
    text = ask("window", "t.tide", "--by", "function")
    lines = {line.split()[-1]: line for line in text.splitlines() if line}
    check("±" in lines["drawn"] and "±" not in lines["first"] + lines["last"], text)


@test
def in_the_report_what_is_exact_has_no_error_beside_it():
    recorded("4K")
    text = ask("report", "t.tide", "-n", "0")
    lines = [line for line in text.splitlines() if " last " in line]
    check(lines and not any("±" in line for line in lines), lines or text)
    check(any("±" in line for line in text.splitlines() if " drawn " in line), text)


@test
def an_index_answers_as_the_list_of_all_blocks_does():
    recorded("4K")
    for words in (["--by", "function"], ["--by", "impact,stack"], ["--by", "size"],
                  ["--by", "thread", "--from", "20%"], ["--tree", "leaf"],
                  ["--by", "function", "--lifetime", "<10ms"]):
        told = [run([TIDEMARK, "window", "t.tide", "--json", *words],
                    env=environment(TIDEMARK_INDEX=word)) for word in ("never", "always")]
        equal(0, told[1].code, told[1].err)
        equal(told[0].out, told[1].out, words)


@test
def a_program_that_runs_is_exact_and_sampled_in_turn():
    program_ = subprocess.Popen([program("turns")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                text=True, env=environment())
    equal("two\n", program_.stdout.readline(), "phase")
    recorder = subprocess.Popen([TIDEMARK, "record", "-q", "--force", "-o", "t.tide",
                                 "--max-overhead", "100%", "-p", str(program_.pid)],
                                stderr=subprocess.PIPE, text=True, env=environment())
    while "attached to process" not in (line := recorder.stderr.readline()):
        check(line, "it ended")
    program_.stdin.write("\n")
    program_.stdin.flush()
    equal("three\n", program_.stdout.readline(), "phase")
    done = run([TIDEMARK, "ctl", str(program_.pid), "sample", "1K"])
    equal(0, done.code, done.err)
    program_.stdin.close()
    recorder.stderr.read()
    equal(0, recorder.wait(), "record")
    program_.wait()
    found, _ = rows()
    # The end of its input ends the program: what it did before was exact.
    equal((len(SIZES), sum(SIZES)),
          (found["drawn"]["allocated_count"], found["drawn"]["allocated"]), "drawn")
    equal((MOVED, MOVED * 300), (found["moved"]["allocated_count"], found["moved"]["allocated"]),
          "moved")


@test
def a_window_of_exact_time_alone_is_exact():
    recorded("4K")
    turn, back = json.loads(ask("info", "t.tide", "--json"))["trace"]["turns"]
    equal((4096, None), (turn["sample_bytes"], back["sample_bytes"]), "turns")
    check(turn["time_ns"] < back["time_ns"], (turn, back))
    found, answer = rows("--to", f"{turn['time_ns']}ns")
    is_exact(found["first"], KEPT, 200, 0)
    check(answer["total"]["standard_errors"] is None, answer["total"])
    found, _ = rows("--from", "mark:exact")
    is_exact(found["last"], KEPT, 100, 0)
    is_exact(found["grown"], DRAWN * THREADS // 2, 1000, DRAWN * THREADS // 2)


@test
def profiles_for_other_programs_are_weighed_too():
    recorded("4K")
    found, _ = rows()
    for value, key in (("allocations", "allocated_count"), ("allocated", "allocated")):
        lines = ask("export", "t.tide", "--format", "folded", "--value", value).splitlines()
        total = sum(int(line.rsplit(" ", 1)[1]) for line in lines)
        truth = sum(row[key] for row in found.values())
        # A fraction is left out of each stack, of what ended and of what did not.
        check(abs(total - truth) <= 2 * (len(lines) + len(found)), f"{value}: {total}, {truth}")


@test
def it_is_refused_where_each_call_is_needed():
    recorded("4K")
    done = run([TIDEMARK, "check", "t.tide", "--max-peak", "1G"])
    equal(3, done.code, done.out + done.err)
    check("sampled at times" in done.out + done.err, done.out + done.err)
    done = run([TIDEMARK, "replay", "t.tide"])
    equal(3, done.code, done.err)
    os.rename("t.tide", "a.tide")
    recorded("4K")
    done = run([TIDEMARK, "merge", "a.tide", "t.tide", "-o", "both.tide"])
    equal(3, done.code, done.err)
    check("sampled at times" in done.err, done.err)
    for words in (["--sample", "64K"], ["--reachability"], ["--language-heaps"],
                  ["--sample", "64K", "--usdt"], ["--push", "clickhouse://127.0.0.1:1/x"]):
        done = run([TIDEMARK, "record", "--max-overhead", "3%", *words, "true"])
        equal(125, done.code, words)
        check("--max-overhead does not go with" in done.err, done.err)
    for share in ("3", "0%", "200%", "x%", "", "-1%"):
        equal(125, run([TIDEMARK, "record", "--max-overhead", share, "true"]).code, share)


@test
def without_a_turn_it_is_as_exact_as_any_other():
    recording = Recording()
    recording.hear("two")
    done = recording.ctl("sample", "5000")
    equal(2, done.code, done.err)
    recording.sample("all")
    recording.go_on()
    recording.hear("three")
    recording.end()
    found, answer = rows()
    check(not answer["sampled"], answer["warnings"])
    is_exact(found["moved"], MOVED, 300, 0)
    equal(len(SIZES), found["drawn"]["allocated_count"], "drawn")
    equal(sum(SIZES), found["drawn"]["allocated"], "drawn")
    heap = report()["heap"]
    equal(MOVED + DRAWN * THREADS // 2, heap["reallocations"], heap)
    equal(0, run([TIDEMARK, "check", "t.tide", "--max-peak", "1G"]).code, "check")
    equal(None, heap["orphan_frees"], "what it does not see")
    told = " ".join(ask("findings", "t.tide").split())
    check("freed-twice: needs frees of what is not known to live" in told, told[-800:])
    with open("t.tide", "rb") as file:
        check(b"max-overhead=100%\x01" in file.read(), "older readers take it for sampled")


@test
def what_is_cut_out_and_copied_says_the_same():
    recorded("4K", "--free-stacks")
    before = rows()[0]["drawn"]
    ask("trim", "t.tide", "--from", "0ns", "-o", "cut.tide")
    text = ask("dump", "cut.tide")
    check(" sampling value=12" in text and " sampling\n" in text, "turns")
    with open("text", "w", encoding="utf-8") as file:
        file.write(text)
    ask("dump", "--assemble", "text", "-o", "again.tide")
    equal(text, ask("dump", "again.tide"), "the text again")
    os.rename("cut.tide", "t.tide")
    equal(before["allocated"], rows()[0]["drawn"]["allocated"], "drawn")


@test
def it_turns_by_itself_and_back_when_there_is_little_to_record():
    recording = Recording(how=["loop"], budget="3%")
    recording.hear("busy")

    def turns():
        done = recording.ctl("save", "now.tide")
        if done.code != 0:
            return []
        found = json.loads(ask("info", "now.tide", "--json"))["trace"]["turns"]
        os.unlink("now.tide")
        return found

    def last():
        found = turns()
        return found[-1:] if found else None

    wait_for(lambda: (last() or [{"sample_bytes": None}])[0]["sample_bytes"], "samples", pause=0.2)
    recording.go_on()
    recording.hear("quiet")
    wait_for(lambda: (last() or [{"sample_bytes": 1}])[0]["sample_bytes"] is None,
             "each call again", pause=0.5)
    recording.end()
    found, _ = rows()
    is_exact(found["last"], KEPT, 100, 0)
    check(found["drawn"]["standard_errors"], found["drawn"])


main()
