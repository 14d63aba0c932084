#!/usr/bin/env python3
# parallel: yes
"""What `tidemark transients` promises: spikes, hills and series with the numbers of their traces.

Levels are counted a second time here, from the events themselves.
"""
import csv
import io
import random

from libanswer import answer, golden, refused, run
from libtests import main, test
from libtrends import MIB, Trace, functions

WORK = '"malloc" < "make_buffer" "app.c":9 < "work" "app.c":40 < "main" "app.c":80'
KEEP = '"keep" "app.c":70 < "main" "app.c":81'
LEAK = '"inner_loop" "app.c":20 < "main" "app.c":82'


def exercise():
    """A buffer that stays, four spikes, one that stays a while with four spikes on it, a leak."""
    trace = Trace("./exercise", "/bin/exercise")
    trace.alloc(0, KEEP, 10 * MIB)
    for first in (3000000, 21771000):
        for k in range(4):
            buffer = trace.alloc(first + k * 3234000, WORK, 10 * MIB, address=0x90000000)
            trace.free(first + k * 3234000 + 110000, buffer)
    second = trace.alloc(18505000, KEEP, 10 * MIB)
    trace.free(39694000, second)
    for k in range(1200):
        trace.alloc(k * 31250, LEAK, 40)
    return trace.write("exercise.tide", 48000000)


@test
def the_spikes_of_an_exercise_are_eight_and_the_plateau_under_four_of_them():
    rows = answer("transients", exercise())["spikes"]
    spikes = [row for row in rows if row["spikes"] == 1]
    assert len(rows) == 9 and len(spikes) == 8, rows
    begins = sorted(row["half_begin_ns"] for row in spikes)
    assert begins == [(first + k * 3234000) * 1000
                      for first in (3000000, 21771000) for k in range(4)], begins
    for row in spikes:
        assert 10 * MIB <= row["height_bytes"] < 10 * MIB + 40 * 110, row
        assert row["half_end_ns"] - row["half_begin_ns"] == 110000000
        assert row["makers"][0]["bytes"] == 10 * MIB and row["makers"][0]["count"] == 1
        assert functions(row["makers"][0])[1:] == ["make_buffer", "work", "main"]
        assert row["makers"][0]["user_frame"] == 1
    plateau = next(row for row in rows if row["spikes"] == 4)
    assert (plateau["half_begin_ns"], plateau["half_end_ns"]) == (18505000000, 39694000000)
    assert functions(plateau["makers"][0]) == ["keep", "main"]


@test
def of_a_sampled_recording_all_is_as_it_is_in_it():
    """Levels are, so what they begin from and who made a rise is, too."""
    text = run("dump", exercise()).stdout
    with open("sampled.txt", "w", encoding="utf-8") as file:
        file.write(text.replace("trace ", "trace sample=10485760 ", 1))
    run("dump", "-a", "sampled.txt", "-o", "sampled.tide", "--force")
    for window in ([], ["--from", "20s", "--to", "45s"]):
        whole, sampled = [answer("transients", trace, *window)
                          for trace in (exercise(), "sampled.tide")]
        assert "is sampled" in run("transients", "sampled.tide", *window).stdout
        for key in whole:
            if key not in ("trace", "recording_id"):
                assert whole[key] == sampled[key], (key, whole[key], sampled[key])


@test
def equal_buffers_of_one_site_that_never_overlap_are_a_series():
    found = answer("transients", exercise(), "--from", "21s", "--to", "32s")["series"]
    assert len(found) == 1
    series = found[0]
    assert (series["count"], series["size"]) == (4, 10 * MIB)
    assert series["period_ns"] == series["period_min_ns"] == series["period_max_ns"] == 3234000000
    assert series["lifetime_ns"] == series["lifetime_max_ns"] == 110000000
    assert functions(series)[1:] == ["make_buffer", "work", "main"]
    text = run("transients", "exercise.tide", "--from", "21s", "--to", "32s").stdout
    assert "4 buffers of 10.0 MiB, one at a time, every 3.234 s, 110.000 ms each" in text, text


@test
def for_people_it_looks_like_this():
    golden("transients.txt", run("transients", exercise()).stdout)


@test
def buffers_that_overlap_differ_or_stand_alone_are_no_series():
    trace = Trace()
    both = [trace.alloc(10 + k, WORK, MIB) for k in range(2)]  # two live at a time
    for k in range(2):
        trace.free(20 + k, both[k])
    for k in range(5):  # five sizes
        trace.free(35 + 10 * k, trace.alloc(30 + 10 * k, KEEP, MIB + k))
    trace.free(210, trace.alloc(200, LEAK, MIB))  # once
    assert answer("transients", trace.write("none.tide"))["series"] == []


@test
def what_lives_at_the_windows_beginning_can_overlap():
    trace = Trace()
    first = trace.alloc(10, WORK, MIB)
    for k in range(3):
        trace.free(35 + 10 * k, trace.alloc(30 + 10 * k, WORK, MIB))
    trace.free(100, first)
    path = trace.write("before.tide")
    assert answer("transients", path, "--from", "20us")["series"] == []
    assert answer("transients", path, "--from", "20us", "--to", "90us")["series"] == []


def random_trace(path, seed):
    """Several stacks, blocks of all sizes, some kept, some moved by realloc; and its level after each event."""
    trace = Trace()
    choose = random.Random(seed)
    live = []
    levels = [(0, 0)]
    level = 0
    for time_us in range(1, 400):
        if live and choose.random() < 0.5:
            address, size = live.pop(choose.randrange(len(live)))
            level -= size
            if choose.random() < 0.3:
                size = int(10 ** choose.uniform(0, 5))
                live.append((trace.realloc(time_us, choose.choice((WORK, KEEP, LEAK)), address, size), size))
                level += size
            else:
                trace.free(time_us, address)
        else:
            size = int(10 ** choose.uniform(0, 5))
            live.append((trace.alloc(time_us, choose.choice((WORK, KEEP, LEAK)), size), size))
            level += size
        levels.append((time_us * 1000, level))
    trace.write(path)
    return levels


def prominent(levels, least):
    """Tops of prominence >= least, by definition: (time, level)."""
    found = set()
    for at in range(1, len(levels)):
        top = levels[at][1]
        left = right = top
        for k in range(at - 1, -1, -1):
            if levels[k][1] >= top:
                break
            left = min(left, levels[k][1])
        else:
            k = -1
        equal = k >= 0 and levels[k][1] == top  # the same top, or one told already
        for n in range(at + 1, len(levels)):
            if levels[n][1] > top:
                break
            right = min(right, levels[n][1])
        if not equal and top - max(left, right) >= least:
            found.add(levels[at])
    return found


@test
def on_random_traces_spikes_are_the_prominent_tops_and_their_makers_add_up():
    for seed in range(24):
        least = 3000
        levels = random_trace("random.tide", seed)
        told = answer("transients", "random.tide", "--min-bytes", str(least), "-n", "0",
                      env={"TIDEMARK_INDEX": ("never", "tiny")[seed % 2]})
        spikes = [row for row in told["spikes"] if row["spikes"] == 1]
        assert {(row["top_ns"], row["top_bytes"]) for row in spikes} == prominent(levels, least), \
            seed
        for row in told["spikes"]:
            inside = [level for time, level in levels
                      if row["begin_ns"] <= time < row["end_ns"]]
            before = [level for time, level in levels if time < row["begin_ns"]]
            assert all(level > row["base_bytes"] for level in inside)
            assert max(inside) == row["top_bytes"] and before[-1] <= row["base_bytes"]
            if row["ended"]:
                after = [level for time, level in levels if time >= row["end_ns"]]
                assert after[0] <= row["base_bytes"]
            assert row["risen_bytes"] == row["body_bytes"] - before[-1]
            if row["risen_bytes"]:
                gains = sum(maker["bytes"] for maker in row["makers"])
                assert gains >= row["risen_bytes"]


def doubling(path, small=0):
    """Twice a buffer that realloc doubles up to 8 MiB, with small blocks in between."""
    trace = Trace()
    trace.alloc(1, KEEP, MIB)
    for begin in (1000, 3000):
        buffer = trace.alloc(begin, WORK, MIB // 8)
        for k in range(1, 7):
            for n in range(small):
                trace.free(begin + 100 * k - 40, trace.alloc(begin + 100 * k - 50, LEAK, 16 + n % 50))
            buffer = trace.realloc(begin + 100 * k, WORK, buffer, MIB // 8 << k)
        trace.free(begin + 1000, buffer)
    return trace.write(path, 5000)


@test
def a_buffer_that_realloc_doubles_is_one_spike():
    for small in (0, 1, 100):  # of an index with blocks of few steps, some reallocs are in two
        path = doubling(f"doubling{small}.tide", small)
        for index in ("never", "always", "tiny"):
            for words in ([], ["--frame", "^work$"], ["--layer", "heap", "--size", "128K.."]):
                told = answer("transients", path, *words, env={"TIDEMARK_INDEX": index})
                assert [(row["begin_ns"], row["end_ns"], row["top_bytes"] - row["base_bytes"], row["risen_bytes"])
                        for row in sorted(told["spikes"], key=lambda row: row["begin_ns"])] == \
                    [(at * 1000, (at + 1000) * 1000, 8 * MIB, 8 * MIB) for at in (1000, 3000)], (index, told["spikes"])
                assert [functions(row["makers"][0])[1] for row in told["spikes"]] == ["make_buffer"] * 2


@test
def what_a_filter_leaves_of_a_realloc_is_a_fall():
    """The buffer goes from one stack to another, and back: of each alone it comes and goes."""
    trace = Trace()
    buffer = trace.alloc(10, WORK, MIB)
    for k in range(1, 5):
        buffer = trace.realloc(10 + 10 * k, WORK if k % 2 == 0 else KEEP, buffer, MIB)
    trace.free(100, buffer)
    path = trace.write("back.tide", 200)
    for index in ("never", "always", "tiny"):
        for name, begins in (("work", [10, 30, 50]), ("keep", [20, 40])):
            rows = answer("transients", path, "--frame", f"^{name}$", env={"TIDEMARK_INDEX": index})["spikes"]
            assert sorted((row["begin_ns"], row["end_ns"]) for row in rows if row["spikes"] == 1) == \
                [(at * 1000, (at + (50 if at == 50 else 10)) * 1000) for at in begins], (index, name, rows)
        rows = answer("transients", path, env={"TIDEMARK_INDEX": index})["spikes"]
        assert [(row["begin_ns"], row["end_ns"]) for row in rows] == [(10000, 100000)], rows


def many_spikes(path, filler):
    """Spikes inside and beside each other, of several stacks; behind them as many small blocks."""
    trace = Trace()
    choose = random.Random(7)
    time_us = 0
    for _ in range(40):
        for _ in range(2):
            blocks = []
            for _ in range(choose.randrange(1, 5)):
                time_us += 1
                stack = choose.choice((WORK, KEEP, LEAK))
                blocks.append(trace.alloc(time_us, stack, choose.randrange(1, 40) * 1000))
            for block in blocks[1:]:
                time_us += 1
                trace.free(time_us, block)
        time_us += 1
        trace.free(time_us, blocks[0])
    for k in range(filler):
        trace.free(time_us + 2, trace.alloc(time_us + 1 + k // 1000, LEAK, 1))
        time_us += 2
    return trace.write(path, 10_000_000)


@test
def who_made_many_spikes_is_the_same_asked_for_one_by_one_and_in_one_pass():
    args = ("-n", "0", "--min-bytes", "10K")
    passed = answer("transients", many_spikes("passed.tide", 0), *args)["spikes"]
    asked = answer("transients", many_spikes("asked.tide", 3000), *args)["spikes"]
    assert len(passed) > 30 and any(len(row["makers"]) > 1 for row in passed)
    for one, other in zip(passed, asked, strict=True):
        one, other = ([(maker["bytes"], maker["count"], functions(maker))
                       for maker in row["makers"]] for row in (one, other))
        assert one == other, (one, other)


@test
def a_window_ends_what_it_cuts():
    path = exercise()
    rows = answer("transients", path, "--from", "3.05s", "--to", "24s")["spikes"]
    # The spike at its beginning only falls there, and the second plateau has not fallen back.
    assert all(row["begin_ns"] > 3050000000 for row in rows)
    assert sorted(row["half_begin_ns"] // 1000000 for row in rows) == [6234, 9468, 12702, 21771]


@test
def what_ends_with_the_last_process_does_not_fall_back_but_an_earlier_one_does():
    trace = Trace()
    child = trace.process("/bin/child", 43)
    trace.alloc(10, KEEP, 100000)
    trace.alloc(20, WORK, 50000, address=0x5000, thread=child)
    trace.note(30, f"end p{child} exit=0")
    trace.alloc(40, LEAK, 10)
    rows = answer("transients", trace.write("child.tide", 50))["spikes"]
    assert len(rows) == 1 and rows[0]["height_bytes"] == 50000 - 0, rows
    assert rows[0]["makers"][0]["process"] == 43


@test
def filters_choose_whose_level_it_is():
    path = exercise()
    only = answer("transients", path, "--frame", "^keep$")
    assert [row["height_bytes"] for row in only["spikes"]] == [10 * MIB]
    assert only["peak_bytes"] == 20 * MIB
    none = answer("transients", path, "--size", "..40")
    assert none["spikes"] == [] and none["series"] == []
    assert "none of" in run("transients", path, "--size", "..40").stdout


@test
def committed_memory_has_spikes_too():
    trace = Trace()
    buffer = trace.stack('"mmap" < "buffer" "app.c":5 < "main" "app.c":9')
    trace.events.append((1, f"t0 mmap {buffer} 0x40000000 0xa00000 prot=rw flags=private|anonymous"))
    for k in range(4):
        at = 1000000 * (k + 1)
        trace.events.append((at, f"t0 mmap {buffer} 0x50000000 0xa00000 prot=rw "
                                 "flags=private|anonymous"))
        # Given back in two halves: two lifetimes that end one after the other.
        trace.events.append((at + 100000, f"t0 munmap {buffer} 0x50000000 0x500000"))
        trace.events.append((at + 110000, f"t0 munmap {buffer} 0x50500000 0x500000"))
    path = trace.write("vm.tide", 6000000)
    told = answer("transients", path, "--layer", "vm")
    assert told["layer"] == "vm" and told["peak_bytes"] == 20 * MIB
    assert [row["height_bytes"] for row in told["spikes"]] == [10 * MIB] * 4, told["spikes"]
    assert all(row["makers"][0]["bytes"] == 10 * MIB for row in told["spikes"])
    assert answer("transients", path)["spikes"] == []


@test
def rows_are_limited_and_the_rest_is_counted():
    told = answer("transients", exercise(), "-n", "2")
    assert len(told["spikes"]) == 2 and told["spikes_total"] == 9
    assert "7 more (-n 0 shows all)" in run("transients", "exercise.tide", "-n", "2").stdout
    high = answer("transients", "exercise.tide", "--min-bytes", "11M")
    # Of spikes that cannot be told apart one is left, as high as they are together.
    assert [row["height_bytes"] // MIB for row in high["spikes"]] == [19], high["spikes"]
    assert answer("transients", "exercise.tide", "--min-bytes", "25M")["spikes"] == []


@test
def the_table_has_a_line_for_each_maker_and_series():
    rows = list(csv.DictReader(io.StringIO(run("transients", exercise(), "--csv").stdout)))
    assert [row["section"] for row in rows].count("series") == 1
    assert rows[0]["height"].isdigit() and rows[0]["function"] == "make_buffer"
    assert rows[-1]["count"] == "8" and rows[-1]["bytes"] == str(80 * MIB)


@test
def an_empty_trace_has_no_spikes():
    told = answer("transients", Trace().write("empty.tide"))
    assert told["spikes"] == [] and told["series"] == [] and told["peak_bytes"] == 0
    assert "nothing lived" in run("transients", "empty.tide").stdout


@test
def mistakes_are_one_clear_line():
    path = exercise()
    assert "needs a trace FILE" in refused("transients")
    assert "unexpected" in refused("transients", path, path)
    assert "is after" in refused("transients", path, "--from", "9s", "--to", "3s")
    assert "--impact" in refused("transients", path, "--impact", "transient")
    assert "--layer" in refused("transients", path, "--layer", "heap", "--layer", "vm")
    assert "no mark" in refused("transients", path, "--from", "mark:nowhere")
    run("transients", "nothing.tide", check=3)


main()
