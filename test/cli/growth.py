#!/usr/bin/env python3
# parallel: yes
"""What `tidemark growth` promises, on programs whose growth is known because it is spelled out."""
import csv
import io
import math
import os
import random
import shutil

from libanswer import answer, golden, refused, run, sampled
from libtests import main, test
from libtrends import MIB, Trace, functions

SECOND = 1000000  # times are in microseconds


def stack(name, line=10):
    return f'"malloc" < "{name}" "{name}.c":{line} < "main" "app.c":80'


def leak(trace, name="leak", size=40, every_us=31250, until_us=60 * SECOND):
    for time_us in range(0, until_us, every_us):
        trace.alloc(time_us, stack(name), size)


def cache(trace, name="cache", size=4096, entries=256, until_us=60 * SECOND, seed=1):
    """Look-ups of random keys; what is missing is put in. Fills up like 1 - exp(-t)."""
    choose = random.Random(seed)
    known = set()
    for time_us in range(0, until_us, 50000):
        key = choose.randrange(entries)
        if key not in known:
            known.add(key)
            trace.alloc(time_us, stack(name), size)


def sawtooth(trace, name="batch", size=65536, tooth=40, until_us=60 * SECOND):
    """A queue that is filled and emptied, again and again."""
    blocks = []
    for time_us in range(0, until_us, 100000):
        blocks.append(trace.alloc(time_us, stack(name), size))
        if len(blocks) == tooth:
            for block in blocks:
                trace.free(time_us + 1, block)
            blocks = []


def temporaries(trace, name="noise", until_us=60 * SECOND, seed=2):
    choose = random.Random(seed)
    for time_us in range(0, until_us, 70000):
        block = trace.alloc(time_us, stack(name), choose.randrange(1, 1 << 20))
        trace.free(time_us + choose.randrange(1, 60000), block)


def start_up(trace, name="tables"):
    for time_us in range(0, SECOND, 10000):
        trace.alloc(time_us, stack(name), 8192)


def step(trace, name="phase", at_us=31 * SECOND):
    trace.alloc(at_us, stack(name), 5 * MIB)


def ramp(trace, name="pool", size=10000, until_us=35 * SECOND):
    for time_us in range(0, until_us, 100000):
        trace.alloc(time_us, stack(name), size)


def late(trace, name="late"):
    for time_us in range(50 * SECOND, 60 * SECOND, 100000):
        trace.alloc(time_us, stack(name), 1000)


def everything(path="all.tide"):
    trace = Trace("./app --serve", "/bin/app")
    for part in (leak, cache, sawtooth, temporaries, start_up, step, ramp, late):
        part(trace)
    return trace.write(path, 60 * SECOND)


def verdicts(told):
    return {functions(row)[1]: row["verdict"] for row in told["rows"]}


@test
def each_shape_of_growth_is_told_from_the_others():
    told = answer("growth", everything())
    assert verdicts(told) == {"leak": "grows", "cache": "levels_off", "pool": "levels_off",
                              "phase": "steps", "late": "recent"}, verdicts(told)


@test
def the_slope_of_a_leak_is_what_it_leaks():
    for size, every_us in ((40, 31250), (1000, 5000), (65536, 400000)):
        trace = Trace()
        leak(trace, size=size, every_us=every_us)
        temporaries(trace)
        row = answer("growth", trace.write("leak.tide", 60 * SECOND))["rows"][0]
        slope = size * SECOND / every_us
        assert row["verdict"] == "grows"
        assert math.isclose(row["slope_bytes_per_s"], slope, rel_tol=0.02), (row, slope)
        assert row["fit"] > 0.99 and functions(row)[1] == "leak"
        # From 6 s to 57 s, less what a bucket's own growth is.
        assert math.isclose(row["grown_bytes"], slope * 51 * 59 / 60, rel_tol=0.03), row
        assert math.isclose(row["grown_count"] * size, slope * 51, rel_tol=0.03)
        assert math.isclose(row["live_bytes"], slope * 57, rel_tol=0.03)


@test
def a_slow_leak_is_seen_under_noise_of_its_own_site():
    trace = Trace()
    choose = random.Random(3)
    site = stack("session")
    for time_us in range(0, 60 * SECOND, 20000):
        block = trace.alloc(time_us, site, 2000)
        if choose.random() < 0.98:  # one of fifty is forgotten
            trace.free(min(time_us + choose.randrange(1, 400000), 60 * SECOND), block)
    row = answer("growth", trace.write("noise.tide", 60 * SECOND))["rows"][0]
    assert row["verdict"] == "grows" and row["fit"] > 0.95, row
    assert math.isclose(row["slope_bytes_per_s"], 0.02 * 2000 * 50, rel_tol=0.3), row


@test
def a_sawtooth_does_not_grow_and_hides_no_leak():
    trace = Trace()
    sawtooth(trace)
    assert answer("growth", trace.write("sawtooth.tide", 60 * SECOND))["rows"] == []
    trace = Trace()
    blocks = []
    for k, time_us in enumerate(range(0, 60 * SECOND, 50000)):
        block = trace.alloc(time_us, stack("queue"), 1000)
        if k % 10:  # one of ten is never freed
            blocks.append(block)
        if len(blocks) == 60:
            for block in blocks:
                trace.free(time_us + 1, block)
            blocks = []
    row = answer("growth", trace.write("queue.tide", 60 * SECOND))["rows"][0]
    assert row["verdict"] == "grows", row
    assert math.isclose(row["slope_bytes_per_s"], 2000, rel_tol=0.2), row


@test
def a_cache_says_since_when_it_is_level():
    trace = Trace()
    ramp(trace, until_us=20 * SECOND)
    row = answer("growth", trace.write("ramp.tide", 60 * SECOND))["rows"][0]
    assert row["verdict"] == "levels_off" and 19e9 <= row["since_ns"] <= 21e9, row


@test
def a_step_says_when_it_was():
    trace = Trace()
    step(trace)
    row = answer("growth", trace.write("step.tide", 60 * SECOND))["rows"][0]
    assert row["verdict"] == "steps" and 30e9 <= row["since_ns"] <= 32e9, row
    assert row["grown_bytes"] == 5 * MIB and row["grown_count"] == 1


@test
def start_up_and_tear_down_are_left_out_unless_asked_for():
    trace = Trace()
    start_up(trace)
    blocks = [trace.alloc(time_us, stack("list"), 1000)
              for time_us in range(0, 59 * SECOND, 100000)]
    for block in blocks:  # the leak is tidied up at the end
        trace.free(59 * SECOND + 1, block)
    path = trace.write("tidy.tide", 60 * SECOND)
    assert verdicts(answer("growth", path)) == {"list": "grows"}
    whole = answer("growth", path, "--from", "0", "--to", "60s")
    assert verdicts(whole) == {"list": "grows", "tables": "steps"}, verdicts(whole)
    assert verdicts(answer("growth", path, "--to", "58s"))["list"] == "grows"


@test
def each_process_is_judged_over_its_own_life():
    trace = Trace()
    child = trace.process("/bin/worker", 43, began_us=20 * SECOND)
    for k in range(200):
        trace.alloc(20 * SECOND + k * 50000, stack("leak"), 100, thread=child)
    trace.note(30 * SECOND, f"end p{child} exit=0")
    trace.alloc(59 * SECOND, stack("other"), 10)
    rows = answer("growth", trace.write("worker.tide", 60 * SECOND))["rows"]
    assert [row["verdict"] for row in rows] == ["grows"], rows
    assert rows[0]["process"] == 43 and rows[0]["exe"] == "/bin/worker"


INDEXES = ("never", "always", "tiny")
PAGE = 4096


def grows_by_realloc(trace, name="grow", thread=0, began_us=0, every_us=50000, until_us=60 * SECOND, small=0, shrinks=0,
                     names=None):
    """A buffer that realloc enlarges by a page to the end, with small blocks between; each `shrinks`th time it is made
    smaller by half a page first. `names`: the functions that take turns."""
    names = names or [name]
    buffer, size = trace.alloc(began_us, stack(names[0]), PAGE, thread=thread), PAGE
    for k, time_us in enumerate(range(began_us + every_us, until_us, every_us), 1):
        for n in range(small):
            trace.free(time_us - 7, trace.alloc(time_us - 9, stack("small"), 16 + n % 50, thread=thread), thread=thread)
        if shrinks and k % shrinks == 0:
            buffer = trace.realloc(time_us, stack(names[k % len(names)]), buffer, size - PAGE // 2, thread=thread)
        size += PAGE
        buffer = trace.realloc(time_us, stack(names[k % len(names)]), buffer, size, thread=thread)
    return buffer


def is_buffer(row, name="grow", every_us=50000, lived_us=60 * SECOND):
    """Of pages that a buffer had from a tenth of its life to a twentieth before its end, less a bucket's."""
    slope = PAGE * SECOND / every_us
    span = lived_us / SECOND * 0.85
    assert functions(row)[1] == name and row["verdict"] == "grows", row
    assert math.isclose(row["slope_bytes_per_s"], slope, rel_tol=0.02), (row, slope)
    assert math.isclose(row["grown_bytes"], slope * span * 59 / 60, rel_tol=0.02), row
    assert math.isclose(row["live_bytes"], slope * lived_us / SECOND * 0.95, rel_tol=0.02), row
    assert row["grown_count"] == 0, row  # it is one block


@test
def a_buffer_that_realloc_enlarges_to_the_end_grows():
    """Between the halves of a realloc the level is lower by the whole buffer, and never was."""
    for small in (0, 1, 9):  # some reallocs are in two of an index's blocks, and of its levels
        for shrinks in (0, 3):
            trace = Trace()
            grows_by_realloc(trace, small=small, shrinks=shrinks)
            path = trace.write(f"buffer{small}{shrinks}.tide", 60 * SECOND)
            for index in INDEXES:
                for words in ([], ["--frame", "^grow$"], ["--size", "4K.."], ["--lifetime", "0.."]):
                    rows = answer("growth", path, *words, env={"TIDEMARK_INDEX": index})["rows"]
                    assert len(rows) == 1, (small, index, words, rows)
                    is_buffer(rows[0])


@test
def buffers_of_several_processes_grow_each_for_itself():
    trace = Trace()
    child = trace.process("/bin/worker", 43, began_us=20 * SECOND)
    grows_by_realloc(trace)
    grows_by_realloc(trace, "other", thread=child, began_us=20 * SECOND, every_us=40000)
    trace.note(60 * SECOND, f"end p{child} exit=0")
    path = trace.write("buffers.tide", 60 * SECOND)
    for index in INDEXES:
        rows = answer("growth", path, env={"TIDEMARK_INDEX": index})["rows"]
        assert len(rows) == 2, rows
        for row in rows:
            if row["process"] == 43:
                is_buffer(row, "other", 40000, 40 * SECOND)
            else:
                is_buffer(row)


@test
def of_a_row_that_has_one_half_of_a_realloc_the_level_falls():
    """The buffer goes from one function to the other and back: each of them has nothing in between. Both together
    have it all the time."""
    trace = Trace()
    grows_by_realloc(trace, names=("ping", "pong"))
    path = trace.write("turns.tide", 60 * SECOND)
    for index in INDEXES:
        env = {"TIDEMARK_INDEX": index}
        assert answer("growth", path, env=env)["rows"] == []
        for words in (["--frame", "^ping$"], ["--frame", "^pong$"]):
            assert answer("growth", path, *words, env=env)["rows"] == []


@test
def a_realloc_that_fails_ends_nothing_and_one_in_two_halves_does():
    for failed in (True, False):
        trace = Trace()
        other = trace.process("/bin/worker", 43)
        buffer, size = trace.alloc(0, stack("grow"), PAGE), PAGE
        for k, time_us in enumerate(range(50000, 60 * SECOND, 50000)):
            if k % 10 == 9:
                buffer = trace.realloc_apart(time_us, stack("grow"), buffer, size * 4 if failed else size, failed=failed,
                                             then=lambda at=time_us: trace.alloc(at, stack("other"), 1, thread=other))
            size += PAGE
            buffer = trace.realloc(time_us, stack("grow"), buffer, size)
        path = trace.write("apart.tide", 60 * SECOND)
        for index in INDEXES:
            rows = answer("growth", path, env={"TIDEMARK_INDEX": index})["rows"]
            # With others' calls between its halves a realloc is a free and an allocation.
            assert len(rows) == failed, (index, rows)
            for row in rows:
                is_buffer(row)


@test
def for_people_it_looks_like_this():
    golden("growth.txt", run("growth", everything()).stdout)


@test
def what_did_not_grow_is_said_in_one_line():
    trace = Trace()
    start_up(trace)
    temporaries(trace)
    path = trace.write("steady.tide", 60 * SECOND)
    assert answer("growth", path)["rows"] == []
    assert "no site kept 1.0 KiB more" in run("growth", path).stdout
    empty = Trace().write("empty.tide")
    assert answer("growth", empty)["rows"] == []
    assert "nothing lived long enough" in run("growth", empty).stdout


@test
def the_usual_question_has_its_answer_kept_and_no_other_has():
    path = shutil.copy(everything(), "kept.tide")
    file = path + "-index/growth"
    forms = ((), ("--json",), ("-n", "1"), ("-n", "0", "--csv"), ("--min-bytes", "1K", "--all-frames"))
    others = (("--min-bytes", "1M"), ("--from", "10%"), ("--to", "30s"), ("--frame", "^cache$"), ("--size", "4096"))

    def asked(words, word="always"):
        return run("growth", path, *words, env={"TIDEMARK_INDEX": word}).stdout
    for words in others:
        assert asked(words) == asked(words, "never"), words
        assert not os.path.exists(file), words
    for words in forms + others + forms:
        assert asked(words) == asked(words, "never"), words
    good, written = open(file, "rb").read(), os.stat(file).st_ino
    assert asked(()) == asked((), "never") and os.stat(file).st_ino == written
    for content in (good[:-5], good[:99] + b"!" + good[100:], b"", good + b"x"):
        open(file, "wb").write(content)
        assert asked(("--json",)) == asked(("--json",), "never")
        assert open(file, "rb").read() == good


@test
def rows_and_sizes_are_limited():
    path = everything()
    assert len(answer("growth", path, "-n", "1")["rows"]) < len(answer("growth", path)["rows"])
    big = answer("growth", path, "--min-bytes", "1M")["rows"]
    assert all(row["grown_bytes"] >= MIB for row in big) and len(big) >= 1
    only = answer("growth", path, "--frame", "^cache$")
    assert set(verdicts(only)) == {"cache"}
    rows = list(csv.DictReader(io.StringIO(run("growth", path, "--csv").stdout)))
    assert rows[0]["verdict"] == "grows" and rows[0]["function"] == "leak"
    assert float(rows[0]["fit"]) > 0.99


@test
def a_sampled_trace_is_answered_with_a_warning():
    path = sampled()
    for command in ("growth", "transients"):
        assert "is sampled" in run(command, path).stdout, command
        for form in ("--json", "--csv"):
            assert "is sampled" in run(command, path, form).stderr, command


@test
def mistakes_are_one_clear_line():
    assert "needs a trace FILE" in refused("growth")
    assert "--impact" in refused("growth", everything(), "--impact", "transient")
    assert "needs a size" in refused("growth", "all.tide", "--min-bytes", "much")


main()
