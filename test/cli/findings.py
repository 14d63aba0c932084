#!/usr/bin/env python3
# parallel: yes
"""Each kind of finding: a trace in which it must be found, and one that only looks like it."""
import os
import random
import re
import shlex

from libanswer import TIDEMARK, answer, assemble, make, measured, refused, run, sampled
from libtests import check, equal, main, test
from libtrends import MIB, Trace

SECOND = 1000000  # times are in microseconds


def stack(name, *callers):
    return " < ".join(f'"{part}" "{part}.c":10' for part in ("malloc", name, *callers, "main"))


class Calls(Trace):
    """A trace with stacks of frees, threads and failures."""

    def __init__(self, free_stacks=True):
        super().__init__()
        if free_stacks:
            self.lines[0] += ' options="free-stacks"'

    def thread(self, tid):
        self.lines.append(f"thread t{self.threads} p0 tid={tid}")
        self.threads += 1
        return self.threads - 1

    def free_by(self, time_us, address, name, *callers, thread=0):
        text = " < ".join(f'"{part}" "{part}.c":20' for part in (name, *callers))
        text = (text + " < " if text else "") + '"main" "main.c":10'
        self.note(time_us, f"t{thread} free {self.stack(text)} {address:#x}")

    def failed(self, time_us, name, size):
        self.note(time_us, f"t0 failed {self.stack(stack(name))} {size}")

    def realloc(self, time_us, name, old, new, size):
        self.note(time_us, f"t0 realloc {self.stack(stack(name))} {old:#x} -> {new:#x} {size}")


def found(trace, kind, *words, path="t", end_us=None):
    """The findings of a kind."""
    told = answer("findings", trace.write(path, end_us), "-n", "0", *words)
    return [one for one in told["findings"] if one["kind"] == kind]


def site(finding):
    return finding["stack"][finding["user_frame"]]["function"] if finding["stack"] else ""


def sites(*words, **more):
    return sorted(site(one) for one in found(*words, **more))


# ---- levels ----

@test
def growth_without_end_is_told_and_a_cache_a_queue_and_a_short_run_are_not():
    trace = Trace()
    for time_us in range(0, 70 * SECOND, 31250):
        trace.alloc(time_us, stack("leak"), 4000)
        if time_us < 20 * SECOND:
            trace.alloc(time_us, stack("cache"), 4000)
    for time_us in range(0, 70 * SECOND, SECOND):
        trace.free(time_us + SECOND // 2, trace.alloc(time_us, stack("queue"), MIB))
    told = answer("findings", trace.write("growth.tide", 70 * SECOND))
    kinds = {one["kind"]: site(one) for one in told["findings"]}
    equal("leak", kinds.get("growth"))
    equal(None, kinds.get("growth-lately"))
    equal("cache", kinds.get("cache"))
    growth = next(one for one in told["findings"] if one["kind"] == "growth")
    equal(("problem", "likely"), (growth["class"], growth["sure"]))
    check(growth["figures"]["grown_bytes"] > 5 * MIB, growth)
    check("not freed" in growth["why"] and growth["saves"]["peak_bytes"], growth)
    equal(growth["id"], told["findings"][0]["id"], "the first")

    brief = Trace()
    for time_us in range(0, 5 * SECOND, 3000):
        brief.alloc(time_us, stack("build"), 4000)
    told = answer("findings", brief.write("brief.tide", 5 * SECOND))
    check(not any(one["kind"] == "growth" for one in told["findings"]), told)
    check(any(one["kind"] == "growth" and "10 s" in one["why"] for one in told["not_looked_for"]))
    told = answer("findings", "brief.tide", "--from", "0.1s", "--to", "4.9s")
    check(any(one["kind"] == "growth" for one in told["findings"]), told)


@test
def steady_growth_needs_fewer_bytes_and_what_matters_is_said_where_nothing_is_found():
    for size, count in ((1000, 1), (200, 0)):  # 100 and 20 KiB in 12 s
        trace = Trace()
        for time_us in range(0, 12 * SECOND, 100000):
            trace.alloc(time_us, stack("session"), size)
        path = trace.write(f"steady{size}.tide", 12 * SECOND)
        told = answer("findings", path)
        equal(count, sum(one["kind"] == "growth" for one in told["findings"]), (size, told))
    text = run("findings", path).stdout
    check("nothing found that matters: 256.0 KiB or more, or 10,000 calls or more," in text, text)
    check("no call failed, and no one site makes many temporaries" in run("report", path).stdout)
    brief = Trace()  # in which nothing grows: it was not looked for all the same
    brief.alloc(1000, stack("build"), 4000)
    told = answer("findings", brief.write("still.tide", SECOND))
    check(any(one["kind"] == "growth" and "10 s" in one["why"] for one in told["not_looked_for"]))


@test
def a_peak_within_a_tick_of_the_clock_has_no_length_and_its_command_shows_it():
    trace = Trace()
    trace.alloc(0, stack("base"), 2 * MIB)
    trace.free(5 * SECOND, trace.alloc(5 * SECOND, stack("export"), 8 * MIB))
    [peak] = found(trace, "peak", end_us=10 * SECOND)
    check("for less than a tick of the clock (1.000 us): that makes" in peak["what"], peak)
    shown = run(*peak["command"].split()).stdout
    check("8.0 MiB for less than a tick of the clock (1.000 us) at 5.000 s" in shown, shown)


@test
def growth_that_began_late_is_told_apart_from_growth_and_from_what_ended():
    trace = Trace()
    for time_us in range(0, 70 * SECOND, 31250):
        if time_us > 50 * SECOND:
            trace.alloc(time_us, stack("late"), 4000)
            trace.free(time_us + 1000, trace.alloc(time_us, stack("work"), 4000))
        elif time_us < 20 * SECOND:
            trace.alloc(time_us, stack("ended"), 4000)
    told = answer("findings", trace.write("late.tide", 70 * SECOND))["findings"]
    [late] = [one for one in told if one["kind"] in ("growth", "growth-lately")]
    equal(("growth-lately", "late", "possible"), (late["kind"], site(late), late["sure"]))
    check("leak that began late, or a phase" in late["why"] and "--from" in late["advice"], late)


@test
def the_command_of_a_peak_shows_its_rise():
    trace = Trace()
    trace.alloc(0, stack("table"), MIB)
    big = trace.alloc(5 * SECOND, stack("export"), 8 * MIB)
    trace.free(5 * SECOND + 8000, big)
    [peak] = found(trace, "peak", end_us=10 * SECOND)
    check(re.search(r" --from [0-9.]+m?s --to [0-9.]+m?s", peak["command"]), peak["command"])
    shown = run(*peak["command"].split()).stdout
    check("heap: 1.0 MiB at the beginning, peak 9.0 MiB" in shown, shown)
    spikes = shown.split("SPIKES")[1].split("HILLS")[0]
    check("export" in spikes and "8.0 MiB" in spikes, shown)


@test
def a_peak_of_one_short_buffer_is_told_and_a_plateau_is_not():
    def program(length_us):
        trace = Trace()
        trace.alloc(0, stack("base"), 2 * MIB)
        trace.free(5 * SECOND + length_us, trace.alloc(5 * SECOND, stack("export"), 8 * MIB))
        return trace
    [peak] = found(program(20000), "peak", end_us=10 * SECOND)
    equal(("export", 8 * MIB), (site(peak), peak["saves"]["peak_bytes"]))
    equal([], found(program(4 * SECOND), "peak", end_us=10 * SECOND))
    for resident, saved in ((20 * MIB, 8), (8 * MIB, 8), (5 * MIB, 5), (100 << 10, 0)):
        trace = program(20000)
        trace.note(9 * SECOND, f"rss-max p0 value={resident}")
        told = found(trace, "peak", end_us=10 * SECOND)
        equal([saved * MIB] * (saved > 0), [one["saves"]["peak_bytes"] for one in told], "a buffer that is mostly untouched")
        for one in told:
            equal(saved < 8, "ever touched" in one["why"], one)


@test
def a_short_spike_makes_the_peak_by_however_many_blocks_and_sites():
    def program(sites, ripples=0, blocks=512):
        trace = Trace()
        trace.alloc(0, stack("base"), 2 * MIB)
        made = [trace.alloc(5 * SECOND + i, stack(f"part{i % sites}"), 16384) for i in range(blocks)]
        for ripple in range(ripples):  # each a spike of its own, on top of what the sites made
            time_us = 5 * SECOND + 1000 * (ripple + 1)
            trace.free(time_us + 100, trace.alloc(time_us, stack("ripple"), 256 << 10))
        for i, block in enumerate(made):
            trace.free(5 * SECOND + 20000 + i, block)
        return trace

    [peak] = found(program(1), "peak", end_us=10 * SECOND)
    equal(("part0", 8 * MIB, 512), (site(peak), peak["saves"]["peak_bytes"], peak["figures"]["site_count"]))
    check(peak["what"].startswith("8.0 MiB in 512 blocks of part0 come on top of the rest for "), peak)
    [peak] = found(program(8), "peak", end_us=10 * SECOND)
    equal(8 * MIB, peak["saves"]["peak_bytes"])
    check(peak["what"].startswith("8.0 MiB from 8 stacks (the largest part, 1.0 MiB, from part0) come on top"), peak)
    [peak] = found(program(1, ripples=3), "peak", end_us=10 * SECOND)
    equal(("part0", 8 * MIB), (site(peak), peak["saves"]["peak_bytes"]))
    check("and the peak of 10.2 MiB is on top of that." in peak["what"], peak)


@test
def a_peak_is_told_beside_what_lives_all_the_time_and_where_it_comes_again():
    def program(spikes, length_us, other=0):
        trace = Trace()
        trace.alloc(0, stack("table"), 64 << 10)
        base = trace.alloc(1000, stack("base"), 5 * MIB)
        for i in range(spikes):
            trace.free((2 + i) * SECOND + length_us, trace.alloc((2 + i) * SECOND, stack("export"), 64 * MIB))
        if other:
            trace.free(9 * SECOND + 1000, trace.alloc(9 * SECOND, stack("other"), other))
        trace.free(10 * SECOND - 1000, base)  # as it ends: no level outside of the spike is as high
        return trace

    for spikes, other in ((1, 0), (2, 0), (5, 0), (5, 40 * MIB), (1, 64 * MIB)):
        told = found(program(spikes, 20000, other), "peak", end_us=10 * SECOND)
        if other == 64 * MIB:
            equal([], told, "another one as high")
            continue
        [peak] = told
        equal(("export", 64 * MIB - other), (site(peak), peak["saves"]["peak_bytes"]))
        check(f"the highest level would be {'45.1' if other else '5.1'} MiB" in peak["why"], peak)
        equal(spikes > 1, f"such a spike comes {spikes} times; without them" in peak["why"], peak)


@test
def spikes_of_the_same_functions_are_one_that_comes_again_whatever_their_callers():
    for makers, saved in ((("bitmap", "mask"), 64), (("bitmap", "mask", "blend"), 192)):
        trace = Trace()
        trace.alloc(0, stack("table"), MIB)
        for i in range(4):  # each by a line of its own
            live = [trace.alloc((2 + i) * SECOND + 100 * at, stack(name, f"draw{i}"), 64 * MIB >> (name == "mask" and len(makers) == 2))
                    for at, name in enumerate(makers)]
            for block in live:
                trace.free((2 + i) * SECOND + 20000, block)
        [peak] = found(trace, "peak", end_us=10 * SECOND)
        equal(saved * MIB, peak["saves"]["peak_bytes"], "of the one that is half of it, or of all")
        check("such a spike comes 4 times; without them" in peak["why"], peak)


@test
def a_step_is_said_to_have_stayed_to_the_end_only_where_it_did():
    for freed in (False, True):
        trace = Trace()
        for time_us in range(0, 20 * SECOND, 500000):
            trace.free(time_us + 1000, trace.alloc(time_us, stack("work"), 4000))
        table = trace.alloc(8 * SECOND, stack("table"), 16 * MIB)
        if freed:
            trace.free(20 * SECOND - 1000, table)
        [step] = found(trace, "step", end_us=20 * SECOND)
        check(step["what"].endswith("at once, and stayed; most of it was freed as the process ended." if freed else
                                    "at once, and stayed until the end."), step)
        equal((16 * MIB, 0 if freed else 16 * MIB), (step["figures"]["live_bytes"], step["figures"]["live_at_exit_bytes"]))


@test
def a_peak_of_a_buffer_that_is_enlarged_for_a_short_time_is_told():
    trace = Trace()
    block = trace.alloc(0, stack("base"), 2 * MIB)
    block = trace.realloc(5 * SECOND, stack("base"), block, 10 * MIB)
    trace.realloc(5 * SECOND + 20000, stack("base"), block, 2 * MIB)
    [peak] = found(trace, "peak", end_us=10 * SECOND)
    equal(8 * MIB, peak["saves"]["peak_bytes"])
    check(peak["what"].startswith("8.0 MiB more in blocks of base come on top"), peak)


@test
def equal_buffers_that_never_overlap_are_told_and_overlapping_ones_are_not():
    def program(length_us):
        trace = Trace()
        for step in range(20):
            block = trace.alloc(step * 1000, stack("frame"), MIB)
            trace.free(step * 1000 + length_us, block)
        return trace
    [reuse] = found(program(500), "reuse")
    equal(("frame", 20, 38), (site(reuse), reuse["figures"]["count"], reuse["saves"]["calls"]))
    equal([], found(program(1500), "reuse"))
    trace = Trace()  # of three stacks of one function and one of another
    for step in range(40):
        block = trace.alloc(step * 1000, stack(*(("frame", "a"), ("frame", "b"), ("frame", "c"), ("image",))[step % 4]),
                            MIB >> (step % 4 == 2))
        trace.free(step * 1000 + 500, block)
    frame, image = sorted(found(trace, "reuse"), key=site)
    equal(("frame", 20, 2, 36, "image", 10), (site(frame), frame["figures"]["count"], frame["figures"]["stacks"],
                                              frame["saves"]["calls"], site(image), image["figures"]["count"]))
    check("20 times, from 2 stacks, of each never two at a time (and the same of 1 other size)" in frame["what"],
          frame["what"])


@test
def what_comes_after_a_hundred_others_of_its_kind_is_looked_at_too():
    trace = Trace()  # steeper growth of a short process, and a leak that is larger
    short = trace.process("/bin/short", 43)
    for time_us in range(0, 70 * SECOND, 250000):
        trace.alloc(time_us, stack("leak"), 1500)
        if time_us < 10 * SECOND:
            for site_at in range(110):
                trace.alloc(time_us, stack(f"early{site_at}"), 2000, thread=short)
    trace.note(12 * SECOND, f"end p{short} exit=0")
    check("leak" in sites(trace, "growth", end_us=70 * SECOND), "beside a hundred steeper ones")

    trace = Trace()  # many small buffers for each of a hundred lines, and a few of another
    for step in range(1200):
        block = trace.alloc(step * 1000, stack(f"line{step % 110}"), MIB)
        trace.free(step * 1000 + 400, block)
        if step % 100 == 0:
            trace.free(step * 1000 + 800, trace.alloc(step * 1000 + 500, stack("last"), MIB // 4))
    equal(111, len(found(trace, "reuse")))


@test
def what_a_peak_would_save_is_held_against_all_levels():
    trace = Trace()  # a hundred spikes before a plateau, and lower ones on it
    time_us = 0

    def spike(size, name):
        nonlocal time_us
        time_us += SECOND // 10
        trace.free(time_us + 10000, trace.alloc(time_us, stack(name), size))
    trace.alloc(0, stack("base"), 2 * MIB)
    for _ in range(130):
        spike(MIB, "low")
    trace.alloc(time_us + 50000, stack("plateau"), 8 * MIB)
    for _ in range(40):
        spike(MIB // 2, "high")
    spike(8 * MIB, "export")
    [peak] = found(trace, "peak", end_us=time_us + SECOND)
    equal(8 * MIB - MIB // 2, peak["saves"]["peak_bytes"], peak)


# ---- calls ----

COUNT = 20000


@test
def temporaries_are_told_with_who_frees_them_and_blocks_that_live_on_are_not():
    trace = Calls()
    live = []
    for step in range(COUNT):
        block = trace.alloc(step * 10, stack("format", "work"), 100 + step % 50, 0x10000)
        trace.free_by(step * 10 + 1, block, "work")
        live.append(trace.alloc(step * 10 + 2, stack("insert", "work"), 50))
    for number, block in enumerate(live):
        trace.free_by(COUNT * 10 + number, block, "clear", "work")
    [one] = found(trace, "temporaries")
    equal(("format", COUNT, 149), (site(one), one["figures"]["temporary_count"],
                                   one["figures"]["size_bytes_max"]))
    check("by the same call" in one["what"], one)
    equal(("freed by", "work"), (one["other"]["role"], one["other"]["stack"][0]["function"]))
    equal(2 * COUNT, one["saves"]["calls"])


@test
def without_stacks_of_frees_temporaries_say_what_would_have_told_more():
    trace = Calls(free_stacks=False)
    for step in range(COUNT):
        trace.free(step * 10 + 1, trace.alloc(step * 10, stack("format"), 100, 0x10000))
    [one] = found(trace, "temporaries")
    check("--free-stacks" in one["why"] and one["other"] is None, one)
    told = answer("findings", "t.tide")
    check(any(missed["kind"] == "new-free" and "--free-stacks" in missed["why"]
              for missed in told["not_looked_for"]))
    text = " ".join(run("findings", "t.tide").stdout.split())
    equal(1, text.count("needs a snapshot of resident pages"), "a reason of several kinds is told once")
    check("(and so: free-pages, thread-stacks)" in text, text)
    told = answer("findings", "t.tide", "--cpu")
    equal([None], [one["saves"]["cpu_ns"] for one in told["findings"]])
    check(any("which allocator it had is not known" in missed["why"]
              for missed in told["not_looked_for"]), told["not_looked_for"])


def growing(step_size, steps, buffers, by_copy=False):
    trace = Calls()
    time_us = 0
    for _ in range(buffers):
        size, block = 64, None
        for _ in range(steps):
            time_us += 1
            old, size = block, step_size(size)
            trace.address += size + 16
            block = trace.address
            if old is None or by_copy:
                trace.alloc(time_us, stack("append"), size, block)
                if old is not None:
                    trace.free_by(time_us + 0.5, old, "append")
            else:
                trace.realloc(time_us, "append", old, block, size)
        trace.free_by(time_us + 0.7, block, "close")
    return trace


@test
def a_buffer_that_grows_by_constants_is_told_and_one_that_doubles_is_not():
    [one] = found(growing(lambda size: size + 64, 1000, 1), "constant-growth")
    equal(("append", 999, "certain"), (site(one), one["figures"]["steps"], one["sure"]))
    # By copies it may be a queue of blocks that are larger and larger.
    [one] = found(growing(lambda size: size + 64, 1000, 1, by_copy=True), "constant-growth")
    equal("likely", one["sure"])
    check("a queue of blocks" in one["why"], one)
    equal([], found(growing(lambda size: size * 2, 18, 2), "constant-growth"))


@test
def containers_that_grow_step_by_step_are_told_by_realloc_and_by_copy():
    [one] = found(growing(lambda size: size * 2, 6, 4000), "containers")
    equal(("append", 20000, 4000, "certain"),
          (site(one), one["figures"]["steps"], one["figures"]["buffers"], one["sure"]))
    [one] = found(growing(lambda size: size * 2, 6, 4000, by_copy=True), "containers")
    equal((20000, 4000, "likely"), (one["figures"]["steps"], one["figures"]["buffers"], one["sure"]))
    # Each grows once; others are freed behind a larger one of another stack.
    equal([], found(growing(lambda size: size * 2, 2, 20000), "containers"))


def most_memory(path, rounds, last):
    """In bytes, where again and again small blocks are freed after one of `last` by the same stack."""
    with open(path + ".txt", "w") as file:
        file.write("process p pid=1\nthread t p tid=1\nframe f 0x10\nname f work\nstack s f\n")
        for _ in range(rounds):
            for number in range(1000):
                file.write(f"+1 t malloc s {0x100000 + number * 32:#x} 24\n")
            file.write(f"+1 t malloc s 0x10000 {last}\n")
            for number in range(1000):
                file.write(f"+1 t free {0x100000 + number * 32:#x}\n")
            file.write("+1 t free 0x10000\n")
        file.write("end\n")
    run("dump", "-a", path + ".txt", "-o", path + ".tide", "--force")
    run("window", path + ".tide", "--by", "stack")  # what an index takes to build is not asked
    child = os.posix_spawn(TIDEMARK, [TIDEMARK, "findings", path + ".tide"], os.environ,
                           file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
    _, status, usage = os.wait4(child, 0)
    equal(0, status)
    return usage.ru_maxrss * 1024


@test
def a_block_that_may_be_the_copy_of_many_is_kept_once():
    rounds = 500
    without = most_memory("other", rounds, 16)
    with_copies = most_memory("copies", rounds, 40)
    check(with_copies < without + rounds * 1000 * 16, with_copies, without)  # 56 bytes each are more


@test
def blocks_that_another_thread_frees_are_told_and_those_of_one_thread_are_not():
    for there in (True, False):
        trace = Calls()
        other = trace.thread(43)
        for step in range(COUNT):
            block = trace.alloc(step * 10, stack("produce"), 64)
            trace.alloc(step * 10 + 1, stack("keep"), 8)
            trace.free_by(step * 10 + 2, block, "consume", thread=other if there else 0)
        equal(["produce"] if there else [], sites(trace, "elsewhere"))


ARENA = 64 * MIB
ROUNDS = 80000  # a call each 2 us and more


def of_two_threads(size, arenas=(0, 0), turns=1):
    """Two threads take a block and give it back, in turn after so many times. From 0: the break."""
    trace = Calls(free_stacks=False)
    there = trace.thread(43)
    trace.note(0, f"t0 brk {trace.stack(stack('main'))} 0x1000000 -> 0x2000000 origin=allocator")
    for arena in set(arenas) - {0}:
        trace.note(0, f"t0 mmap {trace.stack(stack('start'))} {arena * ARENA - 4096:#x} {2 * ARENA} prot=none "
                      "flags=private|anonymous|noreserve origin=allocator")
    for step in range(ROUNDS):
        at = step // turns % 2
        block = (arenas[at] * ARENA or 0x1000000) + 4096 * (at + 1)
        thread = there if at else 0
        trace.alloc(step * 4, stack("take", "serve"), size, block, thread=thread)
        trace.free(step * 4 + 2, block, thread=thread)
    return trace


@test
def one_arena_of_two_threads_is_told_and_two_arenas_the_cache_or_one_after_the_other_are_not():
    for arenas in ((0, 0), (7, 7)):
        [one] = found(of_two_threads(2000, arenas), "contention")
        equal(("take", "possible", 2), (site(one), one["sure"], one["figures"]["threads"]), arenas)
        check(one["figures"]["calls"] >= 150000, one["figures"])
    equal([], found(of_two_threads(2000, (0, 7)), "contention"))
    equal([], found(of_two_threads(2000, (7, 9)), "contention"))
    equal([], found(of_two_threads(1000), "contention"))
    equal([], found(of_two_threads(2000, turns=ROUNDS // 4), "contention"))
    told = answer("findings", "t.tide", "--size", "1..")
    check(any(one["kind"] == "contention" and "without filters" in one["why"]
              for one in told["not_looked_for"]), told["not_looked_for"])


# ---- misuse ----

@test
def a_block_freed_twice_is_told_and_an_address_used_again_is_not():
    trace = Calls()
    twice = trace.alloc(0, stack("session"), 48)
    trace.free_by(10, twice, "close")
    trace.free_by(20, twice, "cleanup")
    again = trace.alloc(30, stack("session"), 48, 0x900000)
    trace.free_by(40, again, "close")
    trace.alloc(50, stack("session"), 48, 0x900000)
    trace.free_by(60, again, "close")
    [one] = found(trace, "freed-twice")
    equal(("cleanup", "first by", "close"),
          (one["stack"][0]["function"], one["other"]["role"], one["other"]["stack"][0]["function"]))
    equal(("error", twice, 48), (one["class"], one["figures"]["address"],
                                 one["figures"]["size_bytes"]))


@test
def the_inside_of_a_block_freed_is_told_and_what_was_never_seen_is_not():
    trace = Calls()
    block = trace.alloc(0, stack("header"), 64)
    trace.free_by(10, block + 16, "release")
    for step in range(20):
        trace.free_by(20 + step, 0xdead0000 + step * 64, "foreign")
    [one] = found(trace, "freed-wrong")
    equal(("certain", "release", "block of"),
          (one["sure"], one["stack"][0]["function"], one["other"]["role"]))
    check("16 bytes inside" in one["what"], one)


@test
def of_an_allocator_that_is_linked_in_wrong_frees_are_less_sure():
    for seen, twice_sure, wrong_sure in ((1, "likely", "certain"), (2, "possible", "likely"),
                                         (5, "possible", "likely"), (6, "likely", "certain")):
        trace = Calls()
        trace.note(0, f'allocator p0 value={seen} "unknown"')
        twice = trace.alloc(1, stack("session"), 48)
        for time_us in (10, 20):
            trace.free_by(time_us, twice, "close")
        trace.free_by(30, trace.alloc(25, stack("header"), 64) + 16, "release")
        told = {one["kind"]: one for one in answer("findings", trace.write("own.tide"))["findings"]}
        equal((twice_sure, wrong_sure), (told["freed-twice"]["sure"], told["freed-wrong"]["sure"]), seen)
        equal(wrong_sure == "likely", "not seen" in told["freed-wrong"]["why"], seen)


@test
def wrong_frees_among_many_blocks_are_looked_up_in_time():
    trace = Calls()
    blocks = [trace.alloc(step, stack("node"), 40) for step in range(50000)]
    for number in range(900):
        trace.free_by(60000 + number, blocks[number * 50] + 8, "release")
    for number in range(50):
        trace.free_by(70000 + 2 * number, blocks[number], "close")
        trace.free_by(70001 + 2 * number, blocks[number], "cleanup")
    told = answer("findings", trace.write("many.tide"), "-n", "0")["findings"]
    counts = {one["kind"]: one["figures"]["count"] for one in told
              if one["kind"] in ("freed-wrong", "freed-twice")}
    equal({"freed-wrong": 900, "freed-twice": 50}, counts)


@test
def a_recording_with_losses_or_pauses_blames_nobody_for_a_wrong_free():
    trace = Calls()
    block = trace.alloc(0, stack("session"), 48)
    trace.free_by(10, block, "close")
    trace.free_by(20, block, "cleanup")
    trace.note(5, 'loss p0 value=3 "full"')
    told = answer("findings", trace.write("lossy.tide"))
    check(not any(one["kind"] == "freed-twice" for one in told["findings"]), told)
    check(any(one["kind"] == "freed-twice" for one in told["not_looked_for"]), told)


@test
def failed_calls_are_told_with_why_and_a_trace_without_has_none():
    trace = Calls()
    trace.alloc(0, stack("ok"), 10)
    equal([], found(trace, "failed"))
    trace.failed(10, "parse", (1 << 64) - 16)
    trace.failed(20, "load", 1 << 33)
    told = {site(one): one for one in found(trace, "failed")}
    check("computed wrong" in told["parse"]["why"], told["parse"])
    check("control group" in told["load"]["why"], told["load"])


@test
def a_process_killed_with_much_memory_is_told_and_one_with_little_is_not():
    for size in (100 * MIB, MIB):
        trace = Calls()
        trace.alloc(0, stack("load"), size)
        trace.alloc(10, stack("last"), 100)
        path = trace.write("killed.tide")
        with open("killed.txt", encoding="utf-8") as file:
            text = file.read().replace("end p0 exit=0", "end p0 signal=9")
        told = answer("findings", assemble("killed", text))
        one = [each for each in told["findings"] if each["kind"] == "killed"]
        equal(size > MIB, bool(one), path)
        if one:
            equal(("load", "last"), (site(one[0]), one[0]["other"]["stack"][1]["function"]))
            equal("possible", one[0]["sure"])
            lines = text.split("\n")
            at = next(i for i, line in enumerate(lines) if "end p0 signal=9" in line)
            time = lines[at].split()[0]
            lines[at:at] = [f"{time} group-limit p0 value={200 * MIB}", f"{time} group-kills p0 value=2"]
            [one] = [each for each in answer("findings", assemble("killed2", "\n".join(lines)))["findings"]
                     if each["kind"] == "killed"]
            equal(("likely", 200 * MIB), (one["sure"], one["figures"]["group_limit_bytes"]))
            check("counted 2 kills " in one["why"], one["why"])
        for limit, kills, many in ((4 * MIB, 1, True), (5 * MIB, 1, False), (4 * MIB, 0, False)):
            lines = text.split("\n")
            at = next(i for i, line in enumerate(lines) if "end p0 signal=9" in line)
            time = lines[at].split()[0]
            lines[at:at] = [f"{time} group-limit p0 value={limit}", f"{time} group-kills p0 value={kills}"]
            kinds = [each["kind"] for each in answer("findings", assemble("small", "\n".join(lines)))["findings"]]
            equal(size > MIB or many, "killed" in kinds, (size, limit, kills))
    missed = {one["kind"]: one["why"] for one in
              answer("findings", assemble("unseen", text.replace("\nend", "\nend unseen=1", 1)))["not_looked_for"]}
    check("killed" not in missed and "not recorded wholly" in missed["freed-twice"], missed)
    with open("killed.tide", "r+b") as file:
        file.truncate(os.path.getsize("killed.tide") - 1)
    told = answer("findings", "killed.tide")
    check(any(one["kind"] == "killed" and "memory.oom.group" in one["why"]
              for one in told["not_looked_for"]), told["not_looked_for"])


def lost(size):
    trace = Trace()
    addresses = [trace.alloc(step, stack("login"), size) for step in range(4)] + [trace.alloc(9, stack("name"), size)]
    s = trace.stack(stack("login")), trace.stack(stack("name"))
    trace.lines.append("reach p0 reason=exit at=10000 number=5 total=5")
    for number, address in enumerate(addresses):
        held = f" block={addresses[0] + 8:#x}" if number in (2, 4) else ""
        trace.lines.append(f"{'held' if held else 'unreachable'} {address:#x} {size} t0 {s[number == 4]}{held}")
    return trace


@test
def lost_blocks_that_others_of_their_stack_lead_to_are_said():
    """report and check count by stack: the same number is to be found in all three."""
    [one] = found(lost(1 << 13), "unreachable", end_us=10)
    check("3 blocks of login with 2 more that only they lead to (1 of these of the same stack)" in one["what"] and
          "all 4 of the stack" in one["why"], one)


@test
def small_leaks_are_said_to_be_there():
    trace = lost(100)
    check(not found(trace, "unreachable", end_us=10), "100 bytes")
    told = answer("findings", trace.write("small.tide"))["not_looked_for"]
    check(any(one["kind"] == "unreachable" and "5 blocks, 500 B in all" in one["why"] for one in told), told)


class Windows(Calls):
    """Everything is in heaps that have a handle."""

    def __init__(self):
        super().__init__()
        self.lines[0] += ' host="Windows x86_64"'
        self.lines += ["heap w0 p0 handle=0x1f0000", "heap w1 p0 handle=0x2f0000"]

    def alloc(self, time_us, stack, size, address=None, thread=0, heap=0):
        address = super().alloc(time_us, stack, size, address, thread)
        self.events[-1] = (time_us, self.events[-1][1].replace(f" {address:#x}", f" w{heap} {address:#x}"))
        return address

    def free_by(self, time_us, address, name, *callers, thread=0, heap=0):
        super().free_by(time_us, address, name, *callers, thread=thread)
        self.events[-1] = (time_us, self.events[-1][1].replace(f" {address:#x}", f" w{heap} {address:#x}"))


@test
def what_windows_lacks_is_not_said_to_be_recorded_by_an_option():
    trace = Windows()
    trace.alloc(1, stack("main"), 100, 0x10000)
    told = answer("findings", trace.write("windows.tide"))["not_looked_for"]
    for kind in ("unreachable", "untouched"):
        why = [one["why"] for one in told if one["kind"] == kind]
        check(len(why) == 1 and "Windows" in why[0] and "record --r" not in why[0], kind, told)


@test
def heaps_of_windows_are_looked_at_as_malloc_is_and_pools_and_languages_are_not():
    trace = Windows()
    for step in range(COUNT):
        block = trace.alloc(step * 10, stack("format", "work"), 100 + step % 50, 0x10000)
        trace.free_by(step * 10 + 1, block, "work", "run")
    trace.note(COUNT * 10, f"t0 failed {trace.stack(stack('parse'))} w0 {(1 << 64) - 16}")
    twice = trace.alloc(COUNT * 10 + 1, stack("session"), 48, 0x700000)
    for time_us in (2, 3):
        trace.free_by(COUNT * 10 + time_us, twice, "close")
    told = answer("findings", trace.write("windows.tide"))["findings"]
    equal({("temporaries", "format"), ("failed", "parse"), ("freed-twice", "close")},
          {(one["kind"], site(one)) for one in told})
    why = {one["kind"]: one["why"] for one in answer("findings", "windows.tide")["not_looked_for"]}
    for kind in ("slack", "overhead", "contention"):
        check("heaps of Windows" in why[kind], why)
    for heap in ('handle=0 "pool"', 'handle=0x3f0000 "pymem"'):
        trace.lines = [f"heap w0 p0 {heap}" if line.startswith("heap w0") else line
                       for line in trace.lines]
        equal([], answer("findings", trace.write("windows.tide"))["findings"], heap)


@test
def a_block_of_another_heap_freed_is_told_and_an_address_that_another_heap_gave_out_is_not():
    trace = Windows()
    mixed = trace.alloc(0, stack("make"), 48, 0x700000, heap=1)
    trace.free_by(10, mixed, "drop", heap=0)
    again = trace.alloc(20, stack("first"), 48, 0x800000)
    trace.free_by(30, again, "close")
    trace.alloc(40, stack("second"), 48, 0x800000, heap=1)
    trace.free_by(50, again, "close", heap=1)
    told = [one for one in answer("findings", trace.write("mixed.tide"))["findings"]]
    equal([("freed-wrong", "drop")], [(one["kind"], one["stack"][0]["function"]) for one in told])
    check("of the heap 0x2f0000 is freed as one of the heap 0x1f0000" in told[0]["what"], told[0]["what"])
    equal("make", told[0]["other"]["stack"][1]["function"])


@test
def what_a_heap_refuses_to_free_is_told_and_a_realloc_without_memory_is_not():
    trace = Windows()
    block = trace.alloc(0, stack("make"), 48, 0x700000)
    trace.note(5, f"t0 mmap {trace.stack(stack('make'))} 0x900000 0x2000 prot=rw flags=private|anonymous")
    trace.note(10, f"t0 realloc-failed {trace.stack(stack('drop'))} w1 {0x123450:#x} 0")
    trace.note(20, f"t0 realloc-failed {trace.stack(stack('grow'))} w0 {block:#x} {1 << 40}")
    told = answer("findings", trace.write("refused.tide"))["findings"]
    equal({("freed-wrong", "drop", "certain"), ("failed", "grow", "certain")},
          {(one["kind"], site(one), one["sure"]) for one in told})
    heap = answer("report", "refused.tide")["heap"]
    equal((1, 1), (heap["failed"], heap["refused_frees"]))
    text = run("report", "refused.tide").stdout
    check("  failed: 1 call returned no memory\n" in text, text)
    check("  freed-wrong: 1 free that a heap refused\n" in text, text)
    equal(1, answer("map", "refused.tide")["failures_count"])


@test
def a_realloc_in_place_without_room_behind_it_is_no_want_of_memory():
    trace = Windows()
    block = trace.alloc(0, stack("make"), 48, 0x700000)
    trace.note(5, f"t0 mmap {trace.stack(stack('make'))} 0x900000 0x2000 prot=rw flags=private|anonymous")
    for time in range(10, 40):
        trace.note(time, f"t0 realloc-failed {trace.stack(stack('grow'))} w0 {block:#x} 5000 flags=0x18")
    told = answer("findings", trace.write("inplace.tide"))
    equal([], [one for one in told["findings"] if one["kind"] == "failed"])
    [why] = [one["why"] for one in told["not_looked_for"] if one["kind"] == "failed"]
    check(why.startswith("30 reallocs that may not move "), why)
    equal(30, answer("report", "inplace.tide")["heap"]["failed"])
    trace.note(50, f"t0 failed {trace.stack(stack('load'))} w0 {1 << 30}")
    trace.note(51, f"t0 realloc-failed {trace.stack(stack('grow'))} w0 {block:#x} 6000")
    told = answer("findings", trace.write("inplace.tide"))
    equal({("load", 1, 1 << 30), ("grow", 1, 6000)},
          {(site(one), one["figures"]["failed"], one["figures"]["size_bytes_max"])
           for one in told["findings"] if one["kind"] == "failed"})
    drawn = answer("map", "inplace.tide")
    equal((2, ["malloc", "realloc"], 30), (drawn["failures_count"], [one["call"] for one in drawn["failures"]],
                                           drawn["failures_in_place"]))
    check("30 calls that may not move" in run("map", "inplace.tide").stdout)


# ---- moments ----

@test
def small_blocks_cost_more_than_they_hold_and_large_ones_do_not():
    trace = Trace()
    address = 0x10000
    for step in range(20000):
        trace.alloc(step, stack("node"), 8, address)
        address += 32
    for step in range(500):
        trace.alloc(20000 + step, stack("page"), 4000, address)
        address += 4016
    [one] = found(trace, "overhead")
    equal(("node", 20000, 480000), (site(one), one["figures"]["count"],
                                    one["figures"]["overhead_bytes"]))
    # Of several stacks the one that is shown is not that of one larger block, but that of most.
    trace = Trace()
    for step in range(20001):
        callers = ("boot",) if step % 4000 == 0 else ("element",)
        trace.alloc(step, stack("node", *callers), 24 if step % 4000 == 0 else 8, 0x10000 + 32 * step)
    trace.alloc(20001, stack("page"), 1000000, 0x10000 + 32 * 20001)
    [one] = found(trace, "overhead")
    equal("element", one["stack"][2]["function"])


@test
def sizes_just_over_a_class_are_told_and_those_that_fit_are_not():
    for size in (57, 56):
        trace = Trace()
        for step in range(20000):
            trace.alloc(step, stack("node"), size, 0x10000 + step * (80 if size == 57 else 64))
        told = found(trace, "slack")
        equal(["node"] if size == 57 else [], [site(one) for one in told])
        if told:
            equal((20000, 320000), (told[0]["figures"]["count"], told[0]["saves"]["peak_bytes"]))
            check("16 bytes less" in told[0]["advice"], told[0])
    # Of all sizes: some are over a class by chance, and nothing can be done about it.
    trace = Trace()
    for step in range(60000):
        trace.alloc(step, stack("text"), 33 + step % 32, 0x10000 + step * 80)
    equal([], found(trace, "slack"))


@test
def what_is_told_of_small_blocks_takes_none_from_what_is_told_of_sizes():
    trace = Trace()
    for step in range(20000):
        trace.alloc(step, stack("node"), 8, 0x10000 + step * 32)
        trace.alloc(step, stack("name"), 57, 0x900000 + step * 80)
    told = answer("findings", trace.write("both.tide"))["findings"]
    equal([("overhead", "node", 20000), ("slack", "name", 20000)],
          sorted((one["kind"], site(one), one["figures"]["count"]) for one in told
                 if one["kind"] in ("overhead", "slack")))


def apart(size, distance, between=0, allocator=None):
    """20,000 blocks; `between` each two of them another was once."""
    trace = Trace()
    for step in range(20000):
        address = 0x100000 + step * distance
        trace.alloc(step * 10, stack("node"), size, address)
        if between:
            other = trace.alloc(step * 10 + 1, stack("name"), between, address + size + 24)
            trace.free(step * 10 + 2, other)
    if allocator:
        trace.note(0, f'allocator p0 value=1 "{allocator}"')
    return trace


@test
def blocks_that_take_more_than_they_hold_are_told_and_room_that_was_used_is_not():
    # Aligned by 64, of glibc: a chunk would be 96.
    [one] = found(apart(72, 128), "slack")
    equal(("node", 20000, 56 * 20000), (site(one), one["figures"]["count"], one["saves"]["peak_bytes"]))
    check("aligned" in one["what"] and "64" in one["why"], one)
    equal([], found(apart(104, 192, 48), "slack"))
    # Not aligned: something may have been there before the recording.
    equal([], found(apart(72, 144), "slack"))
    # Dense.
    equal([], found(apart(120, 128), "slack"))


@test
def equal_memory_of_forked_processes_is_told_and_of_two_is_not():
    for count in (5, 2):
        trace = Trace()
        for number in range(count):
            thread = trace.process("/bin/app", 100 + number)
            trace.lines[-2] += " start=fork"
            trace.alloc(1000 + number, stack("load_model"), 2 * MIB, thread=thread)
        told = found(trace, "processes")
        equal(["load_model"] if count == 5 else [], [site(one) for one in told])
        if told:
            equal(8 * MIB, told[0]["saves"]["peak_bytes"])
    # Three of one parent and three of another share nothing, though the program is the same.
    trace = Trace()
    for number in range(2):
        parent = trace.process("/bin/app", 100 + number)
        for child in range(3):
            thread = trace.process("/bin/app", 110 + 10 * number + child, parent=parent)
            trace.lines[-2] += " start=fork"
            trace.alloc(1000 + thread, stack("load_model"), 2 * MIB, thread=thread)
    equal([], found(trace, "processes"))


@test
def two_sites_of_one_line_of_forked_processes_are_one():
    trace = Trace()
    for at, line in enumerate((7, 7, 8)):
        trace.lines += [f"frame f{900 + at} 0x{at + 1}000", f'name f{900 + at} "load" load.c:{line}',
                        f"stack s{900 + at} f{900 + at}"]
    for number in range(5):
        thread = trace.process("/bin/app", 100 + number)
        trace.lines[-2] += " start=fork"
        for at in range(3):
            trace.note(1000 + number, f"t{thread} malloc s{900 + at} 0x{number + 1}{at}000000 {MIB}")
    equal([10 * MIB, 5 * MIB], [one["figures"]["bytes"] for one in found(trace, "processes")])


def failing(exe, *counts):
    """A trace of processes of which each has so many failures of one stack."""
    trace = Calls()
    for number, (name, count) in enumerate(zip(exe, counts)):
        thread = trace.process(name, 100 + number)
        trace.alloc(1000 + number, stack("start"), 100, thread=thread)
        for at in range(count):
            trace.note(2000 + 10 * number + at, f"t{thread} failed {trace.stack(stack('ask'))} {MIB}")
    return trace


@test
def what_processes_of_one_program_have_in_common_is_one_finding():
    trace = failing(["/bin/app"] * 10 + ["/bin/other"], 1, 3, *[1] * 8, 5)
    told = {one["exe"]: one for one in found(trace, "failed")}
    equal({"/bin/app", "/bin/other"}, set(told))
    app, other = told["/bin/app"], told["/bin/other"]
    equal((101, 3, {"failed": 12}), (app["process"], app["figures"]["failed"], app["together"]))
    check(app["what"].startswith("In 10 processes of app, most in process 101: "), app["what"])
    equal([101, 100, *range(102, 110)], [one["process"] for one in app["processes"]])
    equal([3] + [1] * 9, [one["figures"]["failed"] for one in app["processes"]])
    equal(([], {}), (other["processes"], other["together"]))
    text = run("findings", "t.tide").stdout
    check("together failed 12" in " ".join(text.split()), text)
    # All have as much: none has most.
    [one] = found(failing(["/bin/app"] * 3, 2, 2, 2), "failed")
    check(one["what"].startswith("In 3 processes of app, as in process 100: "), one["what"])


@test
def the_command_of_several_processes_asks_about_those_and_what_they_save_is_added_up():
    trace = Calls()
    for number in range(3):
        thread = trace.process("/bin/app", 100 + number)
        for at in range(10000 + (number == 1)):
            trace.free_by(1000 + at, trace.alloc(1000 + at, stack("work"), 32, thread=thread), "work", thread=thread)
    [one] = found(trace, "temporaries")
    check(one["what"].startswith("In 3 processes of app, most in process 101: "), one["what"])
    equal("report t.tide --process '#2' --process '#1' --process '#3' --frame '^work$'", one["command"])
    equal(sum(each["figures"]["freed_count"] for each in one["processes"]), one["together"]["freed_count"])
    equal(2 * one["together"]["freed_count"], one["saves"]["calls"])
    run(*shlex.split(one["command"]))
    # More of them than eight are asked for by their program's name.
    trace = Calls()
    for number in range(12):
        thread = trace.process("/bin/app", 100 + number)
        trace.note(1000, f"t{thread} mmap {trace.stack(stack('arena'))} 0x{number + 1}00000000 {64 * MIB} prot=rw flags=private|anonymous")
    [one] = found(trace, "outside")
    equal("window t.tide --process app --layer vm", one["command"])
    equal(64 * MIB * len(one["processes"]), one["together"]["outside_bytes"])


@test
def what_is_shown_of_forked_processes_is_most_of_what_one_of_them_holds():
    """A parent reads its configuration by the same allocating function, and has little of it."""
    trace = Trace()
    for number in range(6):
        thread = trace.process("/bin/app", 100 + number)
        trace.lines[-2] += " start=fork"
        if number == 0:
            trace.alloc(1000, stack("pool_alloc", "read_configuration"), MIB // 8, thread=thread)
            continue
        trace.alloc(1000 + number, stack("pool_alloc", "read_events"), MIB // 2, thread=thread)
        trace.alloc(2000 + number, stack("pool_alloc", "connections"), 2 * MIB, thread=thread)
        trace.alloc(3000 + number, stack("pool_alloc", "write_events"), MIB // 2, thread=thread)
    [told] = found(trace, "processes")
    equal(["pool_alloc", "connections"], [frame["function"] for frame in told["stack"][1:3]])
    equal((5, 15 * MIB), (told["figures"]["processes"], told["figures"]["bytes"]))
    check("largest part by this stack" in told["why"] and "equal stacks" not in told["why"], told["why"])
    shown = run(*shlex.split(told["command"])).stdout
    equal(5, sum("connections" in line and "connections.c" in line for line in shown.split("\n")), shown)


@test
def two_copies_of_a_library_are_told_and_two_libraries_are_not():
    def program(other):
        return assemble("libraries", "\n".join([
            'trace command="./app"', "process p pid=1", "thread t p tid=1",
            'module m1 p 0x10000-0x20000 build-id=aa "/usr/lib/libz.so.1"',
            f'module m2 p 0x30000-0x40000 build-id=bb "{other}"',
            "frame f1 m1 0x11000", "frame f2 m2 0x31000", "stack s1 f1", "stack s2 f2",
            "+1 t malloc s1 0x1000 10", "+1 t malloc s2 0x2000 10", "+1 end p exit=0", "end", ""]))
    for other, expected in (("/opt/lib/libz.so.1.2", 1), ("/opt/lib/libzstd.so.1", 0)):
        told = answer("findings", program(other))["findings"]
        equal(expected, sum(one["kind"] == "libraries" for one in told), other)


# ---- pages ----

PAGE = 4096
HEAP = 0x5000000


def listed(name, lines, kind):
    told = answer("findings", assemble(name, "\n".join([*lines, "end", ""])), "-n", "0")
    return [one for one in told["findings"] if one["kind"] == kind]


def pages_of(ranges):
    return [f"pages {low:#x}-{high:#x}" for low, high in ranges]


@test
def large_blocks_that_are_never_touched_are_told_and_touched_ones_are_not():
    size = 8 * MIB
    for resident, expected in ((size // 8, ["table"]), (size, [])):
        base = 0x7f0000000000
        told = listed("untouched", [
            "process p pid=9", "thread t p tid=9", f"stack s {stack('table')}",
            f"@1 t mmap s {base} {size + PAGE} prot=rw flags=private|anonymous origin=allocator",
            f"@2 t malloc s {base + 16} {size}",
            f"snapshot p reason=growth at={3 * SECOND * 1000} rss={resident}",
            f"mapping {base:#x}-{base + size + PAGE:#x} prot=rw rss={resident}",
            *pages_of([(base, base + resident)]), f"@{4 * SECOND * 1000} t malloc s 0x1000 10",
            f"@{5 * SECOND * 1000} end p exit=0"], "untouched")
        equal(expected, [site(one) for one in told])
        if told:
            check(told[0]["figures"]["untouched_bytes"] > 6 * MIB, told)


def windows_heap(lines):
    """The same in a heap of Windows, of which nobody knows what is resident."""
    lines = [re.sub(r"brk (\d+) -> (\d+)", lambda at: f"mmap s {at[1]} {int(at[2]) - int(at[1])} prot=rw "
                                                       "flags=private|anonymous", line) for line in lines]
    lines = [re.sub(r"t (malloc .|free) ", r"t \1 w ", line) for line in lines
             if not line.startswith(("snapshot", "mapping", "pages"))]
    return ['trace host="Windows x86_64"', lines[0], "heap w p handle=0x1f0000", *lines[1:]]


def sparse(name, every, seconds, resident=True, freed=3):
    """A heap of 8 MiB of which each `every`th page has one small block, and the rest none: they were
    freed at once, or when it says. Its end is after so many seconds."""
    count = 2048
    lines = ["process p pid=9", "thread t p tid=9", f"stack s {stack('node')}", f"stack b {stack('bulk')}",
             f"@1 t brk {HEAP} -> {HEAP + count * PAGE} origin=allocator"]
    lines += [f"@2 t malloc {'s' if page % every == 0 else 'b'} {HEAP + page * PAGE + 16} {64 if page % every == 0 else 4000}"
              for page in range(count)]
    lines += [f"@{freed} t free {HEAP + page * PAGE + 16}" for page in range(count) if page % every]
    end = seconds * SECOND * 1000
    lines += [f"snapshot p reason=exit at={end} rss={count * PAGE}",
              f"mapping {HEAP:#x}-{HEAP + count * PAGE:#x} prot=rw rss={count * PAGE if resident else 0}",
              *(pages_of([(HEAP, HEAP + count * PAGE)]) if resident else []), f"@{end} end p exit=0"]
    return name, lines


@test
def pages_that_few_small_blocks_keep_are_told_and_of_a_short_run_or_full_pages_are_not():
    [one] = listed(*sparse("pinned", 2, 20), "pinned")
    equal(("node", 1024 * PAGE, "certain"), (site(one), one["saves"]["end_bytes"], one["sure"]))
    equal(None, one["saves"]["peak_bytes"], "it is not about the peak")
    equal([], listed(*sparse("brief", 2, 5), "pinned"))
    equal([], listed(*sparse("few", 64, 20), "pinned"))  # 32 pages


@test
def free_pages_that_could_go_back_are_told_and_what_the_kernel_has_already_is_not():
    [one] = listed(*sparse("freepages", 8, 20), "free-pages")
    equal((1792 * PAGE, 256 * 64), (one["figures"]["free_bytes"], one["figures"]["live_bytes"]))
    equal([], listed(*sparse("given", 8, 20, resident=False), "free-pages"))
    equal([], listed(*sparse("short", 8, 5), "free-pages"))


@test
def pages_of_windows_heaps_are_told_and_of_full_ones_or_a_short_run_they_are_not():
    _, lines = sparse("", 2, 20)
    for kind, figure in (("pinned", "pages_bytes"), ("free-pages", "free_bytes")):
        [one] = listed("windows", windows_heap(lines), kind)
        equal((1024 * PAGE, "likely"), (one["figures"][figure], one["sure"]))
        check("resident" in one["why"] and "malloc_trim" not in one["advice"], one)
        equal([], listed("winbrief", windows_heap(sparse("", 2, 5)[1]), kind))
    equal([], listed("winfew", windows_heap(sparse("", 64, 20)[1]), "pinned"))
    full = [line for line in lines if "t free" not in line]
    equal([], listed("winfull", windows_heap(full), "free-pages"))


@test
def of_a_process_that_frees_all_it_has_as_it_ends_no_free_page_is_told_and_pinned_ones_are_of_before():
    late = 20 * SECOND * 1000 - 1000
    equal([], listed(*sparse("cleared", 8, 20, freed=late), "free-pages"))
    [one] = listed(*sparse("kept", 2, 20, freed=late), "pinned")
    check("before the process freed most" in one["why"] and "--at" in one["command"], one)
    told = answer("findings", "kept.tide")
    check(any(one["kind"] == "free-pages" and "before its end" in one["why"]
              for one in told["not_looked_for"]), told)


@test
def pages_that_were_pinned_until_a_process_cleared_up_are_told_and_in_a_brief_one_most_of_all_pages():
    def cleared(name, every, seconds):
        name, lines = sparse(name, every, seconds)
        end = lines.pop()
        lines = [line for line in lines if not line.startswith(("snapshot", "mapping", "pages"))]
        lines += [f"@{seconds * SECOND * 1000 - 1000} t free {HEAP + page * PAGE + 16}" for page in range(0, 2048, every)]
        return name, lines + [end]

    [one] = listed(*cleared("cleared", 2, 20), "pinned")
    equal(("node", 1024 * PAGE, "likely", None),
          (site(one), one["figures"]["pages_bytes"], one["sure"], one["saves"]["end_bytes"]))
    check("of node at 5.000 ns." in one["what"] or "at " in one["what"], one)
    shown = run(*one["command"].split()).stdout
    check("4.0 MiB" in shown and "node" in shown, shown)
    [one] = listed(*sparse("brief", 1, 2), "pinned")
    equal(2048 * PAGE, one["saves"]["end_bytes"])
    equal([], listed(*sparse("halfbrief", 2, 2), "pinned"))


# ---- addresses ----

def cut_up(step, asked, bits=32, halves=False, end=1 << 32, own_end=None):
    """An address space of which each `step` MiB, up to an end, begin with a page of the program's; then a
    call fails. `halves`: it is a realloc during which another thread did something. `own_end`: what the
    program says of its addresses."""
    lines = [f"process p pid=9 bits={bits}", "thread t p tid=9", f"stack c {stack('cutter')}",
             f"stack s {stack('load')}"]
    if own_end:
        lines += ["@0 address-low p value=65536", f"@0 address-end p value={own_end}"]
    lines += [f"@1 t mmap c {at} {PAGE} prot=rw flags=private|anonymous"
              for at in range(step * MIB, end, step * MIB)]
    fails = (["@2 t malloc s 0x10 8", "@2 t realloc-free 0x10", f"@2 t realloc-undo s 0x10 {asked * MIB}"]
             if halves else [f"@2 t failed s {asked * MIB}"])
    return [*lines, *fails, "@3 end p exit=0"]


@test
def holes_too_small_for_what_fails_are_told_and_a_failure_for_another_reason_is_not():
    [one] = listed("holes", cut_up(256, 300), "holes")
    equal(("load", 300 * MIB, "space"), (site(one), one["figures"]["size_bytes"], one["view"].split("tab=")[1].split("&")[0]))
    check(one["figures"]["free_bytes"] > 3000 * MIB and one["figures"]["largest_bytes"] < 300 * MIB, one)
    [again] = listed("halves", cut_up(256, 300, halves=True), "holes")
    equal((one["what"].replace("malloc", "realloc"), one["figures"]), (again["what"], again["figures"]))
    equal([], listed("room", cut_up(512, 300), "holes"))
    equal([], listed("sixty-four", cut_up(256, 300, bits=64), "holes"))
    equal([], listed("absurd", cut_up(256, 3000), "holes"))
    lines = cut_up(256, 300)
    lines[1:1] = ["heap w p handle=0x1f0000"]
    lines[-2:-1] = ["@2 t malloc s w 0x10 8", f"@2 t realloc-failed s w 0x10 {300 * MIB} flags=0"]
    equal(1, len(listed("may_move", lines, "holes")))
    # What only the walk after the failure finds cuts the space up, too.
    found = [line.replace(" mmap c ", " mapped ").replace("@1 ", "@2 ") for line in cut_up(256, 300)
             if " mmap c " in line]
    walked = ['trace host="Windows x86_64"', *[line for line in lines if " mmap c " not in line]]
    walked[-2:-2] = ["@2 t mmap c 0x10000 0x1000 prot=rw flags=private|anonymous"]
    walked[-1:-1] = found
    equal(1, len(listed("walked", walked, "holes")))
    walked[-1:-1] = ["@2 t munmap c 0x10000 0x1000"]
    equal(1, len(listed("walked", walked, "holes")))
    walked[-1 - len(found) - 1:-1] = ["@2 t munmap c 0x10000 0x1000", *found]
    equal([], listed("walked", walked, "holes"))
    lines[-2] = lines[-2].replace("flags=0", "flags=0x10")
    equal([], listed("inplace", lines, "holes"))
    # Of a program that may not have all of 4 GiB, what it may have decides.
    [half] = listed("half", cut_up(256, 300, end=1 << 31, own_end=0x7fff0000), "holes")
    check(half["figures"]["free_bytes"] < 2048 * MIB, half)
    equal([], listed("aware", cut_up(256, 300, end=1 << 31), "holes"))


@test
def a_call_of_the_system_that_fails_for_want_of_room_is_told_with_who_holds_it():
    """Also one for which there is not enough at all; a limit or a commit is no want of room, and what an
    allocator or the recorder tries is not the program's."""
    def calls(size, count=1, more="", bits=32, host=None, step=256):
        lines = [*([f'trace host="{host}"'] if host else []), *cut_up(step, 1, bits=bits)]
        fails = f"@2 t mmap s 0 {size * MIB} prot=rw flags=private|anonymous{more} error=12"
        return [line for line in lines[:-2]] + [fails] * count + [lines[-1]]

    [one] = listed("called", calls(300, 7), "holes")
    equal(("load", 300 * MIB, 7, "held by", "cutter"),
          (site(one), one["figures"]["size_bytes"], one["figures"]["failed"], one["other"]["role"],
           one["other"]["stack"][one["other"]["user_frame"]]["function"]))
    check(one["figures"]["without_bytes"] > 3000 * MIB and "unusable_bytes" not in one["figures"], one)
    check("15 mappings of cutter (60.0 KiB) cut it up" in one["why"] and "7 such failures" in one["why"], one)
    [failed] = listed("called", calls(300, 7), "failed")
    equal(("load", 7, True), (site(failed), failed["figures"]["failed"], "(mmap) 7 times" in failed["what"]))
    check("the largest hole" in failed["why"], failed)
    [one] = listed("windows", calls(300, host="Windows x86_64"), "holes")
    equal(15 * (65536 - PAGE), one["figures"]["unusable_bytes"])
    check("multiples of 64 KiB" in one["why"] and "whole 64 KiB" in one["advice"], one)
    full = calls(300)
    full[4] = "@1 t mmap c 0x10000 0xf0000000 prot=none flags=private|anonymous"
    [one] = listed("full", full, "holes")
    check("255.9 MiB of addresses are free" in one["what"], one)
    for name, lines in (("long", calls(300, bits=64)), ("allocators", calls(300, more=" origin=allocator")),
                        ("recorders", calls(300, more=" origin=recorder")), ("small", calls(200))):
        equal([], listed(name, lines, "holes"))
        equal(name in ("long", "small"), bool(listed(name, lines, "failed")))
    equal(1, len(listed("low", [line for line in calls(1000, more="|0x40", bits=64)], "holes")))
    stays = calls(300)
    stays[-2] = f"@2 t mremap s {256 * MIB} {PAGE} -> {256 * MIB} {300 * MIB} flags=0 error=12"
    equal([], listed("stays", stays, "failed") + listed("stays", stays, "holes"))
    check("1 call that may not move" in run("map", "stays.tide").stdout)
    commits = calls(300, host="Windows x86_64")
    commits[-2] = f"@2 t mprotect s {256 * MIB} {PAGE} prot=259 error=12"
    equal([], listed("commits", commits, "holes"))
    [one] = listed("commits", commits, "failed")
    check("(commit)" in one["what"] and "it was the commit limit" in one["why"], one)
    # What a call did not ask for is not what it lacked: a reservation, both, a view.
    for flags, call, said in (("0x2000", "VirtualAlloc", "a reservation commits nothing"),
                              ("0x3000", "VirtualAlloc", "the commit limit, or that of a job, if"),
                              ("0", "MapViewOfFile", "a view commits nothing but")):
        for size in (200, 300):
            lines = calls(size, host="Windows x86_64")
            lines[-2] = f"@2 t mmap s 0 {size * MIB} prot=none flags={flags} error=12"
            [one] = listed("kinds", lines, "failed")
            check(f"({call})" in one["what"] and (said in one["why"]) == (size == 200), one)
            check(size == 300 or flags != "0x2000" or "commit limit" not in one["why"], one)
            text = run("map", "kinds.tide").stdout
            check(f"  {call} " in text and "mmap" not in text, text)
            check(("it commits nothing" in text) == (flags == "0x2000" and size == 200), text)


def with_stacks(count, used, bits=32, limit=None):
    size, base = 8 * MIB, 0x10000000
    lines = [f"process p pid=9 bits={bits}", "thread t p tid=9", f"stack s {stack('start_workers')}",
             f"stack b {stack('work')}"]
    lines += [f"@1 t mmap s {base + k * size} {size} prot=rw flags=private|anonymous|stack origin=libc"
              for k in range(count)]
    lines += ["@2 t malloc b 0x8000010 100", f"snapshot p reason=growth at=1000000 rss={count * used}"]
    for k in range(count):
        top = base + (k + 1) * size
        lines += [f"mapping {top - size:#x}-{top:#x} prot=rw rss={used}", *pages_of([(top - used, top)])]
    lines.append("@2000000 t malloc b 0x8000110 100")
    if limit:
        lines.append(f"@2000001 mapped-limit p value={limit}")
    return [*lines, "@3000000 end p exit=0"]


@test
def stacks_that_take_addresses_and_are_not_used_are_told_and_used_or_harmless_ones_are_not():
    [one] = listed("stacks", with_stacks(80, 16 * PAGE), "thread-stacks")
    equal((80, 640 * MIB, 80 * 16 * PAGE), tuple(one["figures"][key] for key in
                                                 ("stacks", "bytes", "resident_bytes")))
    equal([], listed("fewstacks", with_stacks(20, 16 * PAGE), "thread-stacks"))
    equal([], listed("usedstacks", with_stacks(80, 4 * MIB), "thread-stacks"))
    equal([], listed("wide", with_stacks(80, 16 * PAGE, bits=64), "thread-stacks"))
    equal(1, len(listed("limited", with_stacks(20, 16 * PAGE, bits=64, limit=1 << 30), "thread-stacks")))


def reserving(size, host="Windows x86_64", bits=32):
    lines = [f'trace host="{host}"', f"process p pid=9 bits={bits}", "thread t p tid=9",
             f"stack s {stack('reserve_slab')}", f"stack b {stack('work')}", "@1 t malloc b 0x8000010 100"]
    lines += [f"@2 t mmap s {0x10000000 + k * 0x20000} {size} prot=rw flags=private|anonymous" for k in range(700)]
    return [*lines, "@3 end p exit=0"]


@test
def reservations_that_lose_the_rest_of_their_slots_are_told_and_whole_ones_are_not():
    [one] = listed("slots", reserving(PAGE), "unaligned")
    equal(("reserve_slab", 700, 700 * (65536 - PAGE)),
          (site(one), one["figures"]["reservations"], one["figures"]["lost_bytes"]))
    # Wine says of what is free beyond what it has set aside that the system has reserved it.
    rests = [f"@2 t mapped {base + PAGE:#x} {0x10000 - PAGE} prot=none flags=private|anonymous file=x "
             "origin=kernel"
             for base in (int(line.split()[4], 0) for line in reserving(PAGE) if " mmap " in line)]
    [one] = listed("wine", [*reserving(PAGE)[:-1], 'file x "[system]"', *rests, reserving(PAGE)[-1]], "unaligned")
    equal(700, one["figures"]["reservations"])
    equal([], listed("whole", reserving(0x10000), "unaligned"))
    equal([], listed("linux", reserving(PAGE, host="Linux x86_64"), "unaligned"))
    equal([], listed("win64", reserving(PAGE, bits=64), "unaligned"))


def mapping_and_allocating(mapped, blocks, mapper="pool_refill", *callers):
    """A program that maps so many MiB itself, and blocks of 1 MiB in mappings of their own."""
    lines = ["trace", "process p pid=9 exe=/bin/app", "thread t p tid=9", f"stack s {stack(mapper, *callers)}",
             f"stack b {stack('work')}",
             f"@2 t mmap s 0x10000000 {mapped * MIB} prot=rw flags=private|anonymous"]
    for k in range(blocks):
        base = 0x40000000 + k * 0x200000
        lines += [f"@{3 + 2 * k} t mmap b {base:#x} {MIB + PAGE} prot=rw flags=private|anonymous",
                  f"@{4 + 2 * k} t malloc b {base + 16:#x} {MIB}"]
    return [*lines, "@3000 end p exit=0"]


@test
def memory_outside_the_heap_is_told_and_a_small_pool_or_large_blocks_are_not():
    [one] = listed("pool", mapping_and_allocating(64, 4), "outside")
    # The last mapping is the peak, and its block comes after it: it is in neither figure.
    equal(("pool_refill", 64 * MIB, 3 * (MIB + PAGE)),
          (site(one), one["figures"]["outside_bytes"], one["figures"]["heap_bytes"]))
    equal([], listed("smallpool", mapping_and_allocating(7, 1), "outside"))
    equal([], listed("blocks", mapping_and_allocating(16, 32), "outside"))
    equal([], listed("large", ["trace", "process p pid=9 exe=/bin/app", "thread t p tid=9", f"stack b {stack('work')}",
                               f"@2 t mmap b 0x10000000 {64 * MIB + PAGE} prot=rw flags=private|anonymous",
                               f"@3 t malloc b 0x10000010 {64 * MIB}", "@9 end p exit=0"], "outside"))


@test
def whose_the_memory_outside_the_heap_is_is_said_where_a_runtime_s_function_maps_it():
    for heap, *mappers in (("V8 heap", "v8::base::OS::Allocate(void*, unsigned long)", "v8::internal::Heap::SetUp()"),
                           ("Zend heap", "zend_mm_chunk_alloc"), ("SBCL heap", "os_alloc_gc_space"),
                           ("Erlang heap", "syscall", "erts_mmap"), ("Mono heap", "mono_valloc_aligned"),
                           ("Chez Scheme heap", "S_getmem"), ("Nim heap", "requestOsChunks__system_4433"),
                           ("D heap", "_D4core8internal2gc2os10os_mem_mapFNbNimbZPv"),
                           ("D heap", "core.internal.gc.os.os_mem_map(ulong, bool)"), ("GAP heap", "SyAllocBags"),
                           (None, "pool_refill"),
                           (None, "uv_thread_create", "v8::internal::Builtin_HandleApiCall")):
        [one] = listed("runtime", mapping_and_allocating(64, 4, *mappers), "outside")
        equal((64 * MIB if heap else None, bool(heap)),
              (one["figures"].get("runtime_bytes"), f" are of a runtime's heap: {heap}" in one["what"]), mappers)
        name = heap or "(virtual memory)"
        sizes = {row["keys"]["heap"]: row["size"] for row in
                 answer("window", "runtime.tide", "--layer", "vm", "--by", "heap")["rows"]}
        equal(64 * MIB, sizes[name] - (0 if heap else 4 * (MIB + PAGE)), sizes)
        rows = answer("map", "runtime.tide", "--at", "peak")["rows"]
        equal([("program", heap, 64 * MIB)], [(row["owner"], row["heap"], row["bytes"]) for row in rows
                                              if row["bytes"] == 64 * MIB])
        check(heap is None or f" {heap} " in run("map", "runtime.tide", "--at", "peak").stdout, mappers)
    [one] = listed("zend", mapping_and_allocating(64, 4, "zend_mm_chunk_alloc"), "outside")
    check("USE_ZEND_ALLOC=0" in one["advice"], one["advice"])
    [one] = listed("nim", mapping_and_allocating(64, 4, "requestOsChunks__system_4433"), "outside")
    check("-d:useMalloc" in one["advice"], one["advice"])
    # Of which it is the smaller part, what makes the runtime's blocks seen shows little.
    lines = mapping_and_allocating(8, 4, "zend_mm_chunk_alloc")
    [one] = listed("zend", [*lines[:-1], f"stack o {stack('zend_shared_alloc')}",
                            f"@90 t mmap o 0x80000000 {32 * MIB} prot=rw flags=private|anonymous",
                            f"@91 t mmap o 0x90000000 {MIB} prot=rw flags=private|anonymous", lines[-1]], "outside")
    equal((40 * MIB, 8 * MIB), (one["figures"]["outside_bytes"], one["figures"]["runtime_bytes"]))
    check("USE_ZEND_ALLOC" not in one["advice"], one["advice"])


# ---- what a process is made of ----

def constructors(*later, from_main=False):
    outer = '"dl_open_worker" < "main"' if from_main else '"_dl_start_user"'
    return ['trace command="./app"', 'process p pid=1 exe="/bin/app"', "thread t p tid=1",
            'module m p 0x10000-0x20000 build-id=aa "/usr/lib/libheavy.so.1"',
            "frame f m 0x11000", 'name f "register_all" "r.c":3',
            f'stack s "malloc" < f < "call_init" < "_dl_init" < {outer}', 'stack w "malloc" < "work" < "main"',
            'stack u "malloc" < f < "use" < "main"',
            "+1 t malloc s 0x100000 2000000", "+1 t malloc w 0x400000 1000", *later, "+1 end p exit=0"]


@test
def a_library_that_only_allocates_before_main_is_told_and_one_that_is_used_is_not():
    [one] = listed("early", constructors(), "early")
    check("libheavy.so.1 takes 1.9 MiB in 1 blocks before main" in one["what"] and one["sure"] == "possible", one)
    equal([], listed("used", constructors("+1 t malloc u 0x500000 10"), "early"))
    equal([], listed("opened", constructors(from_main=True), "early"))


@test
def two_c_runtimes_are_told_and_one_beside_windows_own_is_not():
    for other, expected in (("C:\\\\app\\\\MSVCR100.dll", 1), ("C:\\\\Windows\\\\msvcrt.dll", 0)):
        told = listed("runtimes", [
            'trace command="app.exe" host="Windows x86_64"', "process p pid=1", "thread t p tid=1",
            'module m1 p 0x10000-0x20000 "C:\\\\Windows\\\\System32\\\\ucrtbase.dll"',
            f'module m2 p 0x30000-0x40000 "{other}"', "frame f1 m1 0x11000", "frame f2 m2 0x31000",
            "stack s1 f1", "stack s2 f2", "+1 t malloc s1 0x1000 10", "+1 t malloc s2 0x2000 10",
            "+1 end p exit=0"], "runtimes")
        equal(expected, len(told), other)


# ---- the command ----

@test
def filters_choose_and_explanations_need_no_trace():
    trace = Calls()
    for step in range(COUNT):
        trace.free(step * 10 + 1, trace.alloc(step * 10, stack("format"), 100, 0x10000))
    equal(["format"], sites(trace, "temporaries"))
    equal([], sites(trace, "temporaries", "--not-frame", "format"))
    check("stack" in run("findings", "--explain", "temporaries").stdout)
    check("format" in run("findings", "t.tide", "--explain", "temporaries#1").stdout)
    check("there are: " in refused("findings", "--explain", "nonsense"))
    check("no finding" in refused("findings", "t.tide", "--explain", "temporaries#7"))
    refused("findings", "t.tide", "--layer", "vm")
    refused("findings", "t.tide", "--impact", "AIFI")


@test
def a_sampled_recording_says_what_it_cannot_tell():
    told = answer("findings", sampled())
    check(any(one["kind"] == "temporaries" and "sampled" in one["why"]
              for one in told["not_looked_for"]), told)


@test
def commands_that_are_named_show_what_they_should():
    trace = Calls()
    choose = random.Random(1)
    for step in range(COUNT):
        block = trace.alloc(step * 10, stack("ns::format(int, char*)"), choose.randrange(1, 99),
                            0x10000)
        trace.free_by(step * 10 + 1, block, "work")
    [one] = found(trace, "temporaries")
    shown = run(*shlex.split(one["command"]))
    check(f"{COUNT:,}" in shown.stdout, one["command"], shown.stdout[:500])
    check(one["view"].startswith("tab="), one)


@test
def commands_of_functions_without_a_name_show_their_figures_alone():
    lines = ['trace command="./app" options="free-stacks"', "process p pid=1", "thread t p tid=1",
             'module m p 0x10000-0x20000 build-id=aa "/opt/it\'s/app.so"',
             "frame f1 m 0x11000", "frame f2 m 0x12000", "stack s1 f1", "stack s2 f2"]
    for step in range(COUNT):
        lines += [f"@{step * 10000 + 1} t malloc s1 0x1000 40", f"@{step * 10000 + 2} t free s1 0x1000",
                  f"@{step * 10000 + 3} t malloc s2 0x2000 8", f"@{step * 10000 + 4} t free s2 0x2000"]
    told = answer("findings", assemble("it's", "\n".join([*lines, f"@{COUNT * 10000} end p exit=0", "end", ""])))
    commands = [one["command"] for one in told["findings"] if one["kind"] == "temporaries"]
    equal(2, len(commands), told["findings"])
    for command in commands:
        shown = run(*shlex.split(command)).stdout
        figures = [figure for figure in ("0x11000", "0x12000") if f"app.so+{figure}" in shown]
        equal([figures[0]], figures, command)
        check(figures[0] in command and f"in {COUNT:,} blocks, from 1 site" in shown, shown)


@test
def stacks_of_one_function_are_one_finding_and_steps_at_different_times_are_two():
    trace = Trace()
    for time_us in range(0, 70 * SECOND, 31250):
        for caller in ("read", "write", "seek"):
            trace.alloc(time_us, stack("leak", caller), 1500)
    for time_us, caller in ((10, "early"), (11, "early too"), (50, "late")):
        for step in range(500):
            trace.alloc(time_us * SECOND + step * 10, stack("table", caller), 4000)
    told = answer("findings", trace.write("one.tide", 70 * SECOND))["findings"]
    [growth] = [one for one in told if one["kind"] == "growth"]
    equal(("leak", 3), (site(growth), growth["figures"]["stacks"]))
    check(growth["figures"]["live_at_exit_bytes"] == 3 * 2240 * 1500, growth["figures"])
    shown = run(*shlex.split(growth["command"])).stdout
    equal(3, sum("leak" in line for line in shown.split("\n") if "leak.c" in line), shown)
    steps = sorted(one["figures"].get("stacks", 1) for one in told if one["kind"] == "step")
    equal([1, 2], steps)


@test
def very_many_stacks_and_blocks_keep_to_the_memory():
    path = make("many.tide", 200000, 1000000, 3000000)
    _, _, most = measured("findings", path, "--progress", "none", "--memory", "128M")
    assert most < 128 * MIB, most


@test
def what_an_import_cannot_tell_is_not_looked_for():
    trace = Calls()
    for step in range(COUNT):
        trace.alloc(step * 1000, stack("format", "work"), 100, 0x10000 + step * 128)
    for number, (lacks, missed) in enumerate((
            ("csv", {"temporaries": "none in what", "growth": "none in what", "reuse": "none in what",
                     "libraries": "files of functions", "outside": "virtual memory", "killed": "processes ended"}),
            ("lsan snapshots no-addresses leaks no-threads",
             {"temporaries": "made of sums", "failed": "made of sums", "growth": "left at the end"}),
            ("heaptrack no-addresses no-threads", {"overhead": "addresses", "elsewhere": "none in what", "failed": "calls that failed"}))):
        trace.lines[0] = f'trace command="./app" tick=1000 options="imported={lacks} free-stacks"'
        told = answer("findings", trace.write(f"imported{number}.tide"))
        why = {one["kind"]: one["why"] for one in told["not_looked_for"]}
        for kind, words in missed.items():
            check(words in why.get(kind, ""), lacks, kind, why)
        equal(lacks == "csv", "failed" not in why, lacks)
        for verb in ("findings", "report", "window"):
            told_of = answer(verb, f"imported{number}.tide")
            warnings = (told_of if "warnings" in told_of else told_of["trace"])["warnings"]
            equal("snapshots" not in lacks, "there is no free" in " ".join(warnings), lacks)
        filtered = answer("report", f"imported{number}.tide", "--size", "1..200")["trace"]["warnings"]
        equal("snapshots" not in lacks, "there is no free" in " ".join(filtered), f"{lacks} with a filter")
        equal([], [one["kind"] for one in told["findings"]], lacks)
    trace.free_by(COUNT * 1000, 0x10000, "work", "run")
    told = answer("findings", trace.write("freed.tide"))
    check("threads" in {one["kind"]: one["why"] for one in told["not_looked_for"]}["elsewhere"], told)
    filtered = answer("report", "freed.tide", "--lifetime", "1h..2h")["trace"]["warnings"]
    check("there is no free" not in " ".join(filtered), "nothing that is selected was freed", filtered)
    equal(["growth"], [one["kind"] for one in told["findings"]])


main()
