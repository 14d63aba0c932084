#!/usr/bin/env python3
"""Windows of exercise2, recorded for real: every figure is known to the byte.

The program has the shape of Microsoft's memory footprint optimisation, exercise 2: it grows once,
has spikes of 10 MiB, and leaks small blocks. Its windows are named by its own marks, so that they
are the same however fast it ran.
"""
# timeout: 240
# parallel: yes
import json
import os
import re
import shutil

from libguest import (TIDEMARK, Skip, Trace, check, check_whole, environment, equal, main, program,
                      record, report, run, test)

SCALE = os.environ.get("EX2_SCALE", "0.03")
BUFFER = 10 * 1024 * 1024
STARTUP = ["Startup", "main"]
INNER = ["InnerLoopOperation", "step_of_main", "Operation1", "main"]
SPIKE = ["commit10", "ManipulateTemporaryBuffer", "Operation1", "main"]


def recorded(name="exercise2", *words, variables=None, options=()):
    """The trace of one form, recorded once for all tests of this folder."""
    path = "../" + "-".join([name, *words, *(variables or {}), *options]).replace("/", "") + ".tide"
    if not os.path.exists(path):
        record([program(name), *words], *options, trace=path,
               env=environment(EX2_SCALE=SCALE, **(variables or {})))
        check_whole(Trace(path))
    return path


def window(path, *words, phase=None):
    if phase:
        words += ("--from", f"mark:{phase}.begin", "--to", f"mark:{phase}.end")
    ended = run([TIDEMARK, "window", path, "--json", *words])
    equal(0, ended.code, f"window {words} ({ended.err.strip()})")
    return json.loads(ended.out)


def functions(row):
    """From the program's own code outwards: a call on virtual memory ends in libc's mmap."""
    names = [frame["function"] for frame in row["keys"]["stack"]]
    while names and re.search("mmap|munmap", names[0]):
        names.pop(0)
    return names


def table(answer, shape=None):
    """{impact: (count, size, impacting size)}, of the rows whose stack begins with `shape`."""
    sums = {}
    for row in answer["rows"]:
        if shape and functions(row)[:len(shape)] != shape:
            continue
        before = sums.get(row["keys"]["impact"], (0, 0, 0))
        sums[row["keys"]["impact"]] = tuple(
            a + row[key] for a, key in zip(before, ("count", "size", "impacting_size")))
    return sums


def own(answer):
    """The same, of the rows that the program's own functions have made."""
    names = {"Startup", "InnerLoopOperation", "commit10"}
    answer = dict(answer, rows=[row for row in answer["rows"] if names & set(functions(row))])
    return table(answer)


def total(answer):
    return tuple(answer["total"][key] for key in ("count", "size", "impacting_size"))


# ---- the heap ----

@test
def the_heap_has_1200_blocks_of_130000_bytes_and_frees_none():
    heap = report(recorded())["heap"]
    equal((1200, 130000, 0), (heap["allocations"], heap["allocated_bytes"], heap["frees"]),
          "allocations, bytes, frees")


@test
def what_an_exit_frees_is_transient_where_that_is_asked_for():
    answer = window(recorded(), "--exit-frees")
    equal((1200, 130000, 0), total(answer), "the whole run")
    equal({"transient": (1200, 130000, 0)}, table(answer), "impacts")


@test
def what_no_call_freed_is_impacting():
    answer = window(recorded())
    equal({"impacting": (1200, 130000, 130000)}, table(answer), "impacts")
    equal({"impacting": (1024, 40960, 40960)}, table(answer, INNER), "InnerLoopOperation")
    equal({"impacting": (176, 89040, 89040)}, table(answer, STARTUP), "Startup")


def check_ten_seconds(path, inner, times=1, *words):
    answer = window(path, *words, phase="ex2.heap10s")
    equal({"impacting": (319 * times, 12760 * times, 12760 * times),
           "persistent": (528 * times, 103120 * times, 0)}, own(answer), "impacts")
    equal({"impacting": (319 * times, 12760 * times, 12760 * times),
           "persistent": (352 * times, 14080 * times, 0)}, table(answer, inner), "by steps")
    return answer


@test
def ten_seconds_leak_319_blocks_of_40_bytes_through_InnerLoopOperation():
    answer = check_ten_seconds(recorded(), INNER)
    equal((847, 115880, 12760), total(answer), "the window")
    sizes = window(recorded(), "--by", "impact,size", phase="ex2.heap10s")
    equal({("impacting", 40): 319, ("persistent", 40): 352, ("persistent", 504): 175,
           ("persistent", 840): 1},
          {(row["keys"]["impact"], row["keys"]["size"]): row["count"] for row in sizes["rows"]},
          "by size")


@test
def windows_that_touch_add_up():
    edges = ["begin", *(f"mark:ex2.{name}" for name in
                        ("heap10s.begin", "growth.begin", "growth.end", "last4.begin",
                         "heap10s.end", "last4.end")), "end"]
    allocated = impacting = 0
    for before, after in zip(edges, edges[1:]):
        answer = window(recorded(), "--from", before, "--to", after)
        allocated += answer["total"]["allocated"]
        impacting += answer["total"]["impacting_size"]
    equal((130000, 130000), (allocated, impacting), "allocated, impacting")


@test
def the_clock_and_stacks_of_frees_change_no_figure():
    for options in (("--clock=ns",), ("--free-stacks",)):
        check_ten_seconds(recorded(options=options), INNER)


# ---- virtual memory ----

def vm(path, *words, **more):
    with_calls = any(re.match(r"@\d+ t\d+ mmap ", line)
                     for line in run([TIDEMARK, "dump", path]).out.splitlines())
    if not with_calls:
        raise Skip("virtual memory is not recorded yet")
    return window(path, "--layer", "vm", "--frame", "^commit10$", *words, **more)


@test
def main_commits_10_mebibytes_more_in_the_middle():
    answer = vm(recorded(), phase="ex2.growth")
    equal({"impacting": (1, BUFFER, BUFFER), "persistent": (1, BUFFER, 0)}, table(answer),
          "impacts")
    row = next(row for row in answer["rows"] if row["keys"]["impact"] == "impacting")
    equal(["commit10", "grow", "main"], functions(row)[:3], "who")


@test
def four_spikes_come_and_go_in_Operation1():
    answer = vm(recorded(), phase="ex2.last4")
    equal({"transient": (4, 4 * BUFFER, 0), "persistent": (2, 2 * BUFFER, 0)}, table(answer),
          "impacts")
    equal({"transient": (4, 4 * BUFFER, 0)}, table(answer, SPIKE), "the spikes")
    equal((6, 62914560, 0), total(answer), "the window")
    single = vm(recorded(), "--by", "lifetime", "--impact", "transient", phase="ex2.last4")
    equal(4, len(single["rows"]), "single commits")
    for row in single["rows"]:
        single = row["keys"]["lifetime"]
        lived = single["end_ns"] - single["begin_ns"]
        check(lived >= 0.1e9 * float(SCALE) - 200e3, f"a spike of {lived} ns")


@test
def the_whole_run_commits_120_mebibytes_twelve_times_and_keeps_none():
    equal({"transient": (12, 12 * BUFFER, 0)}, table(vm(recorded())), "impacts")
    equal(3 * BUFFER, vm(recorded())["total"]["peak_size"], "the peak")
    for moment, level in (("mark:ex2.growth.begin", BUFFER), ("mark:ex2.growth.end", 2 * BUFFER)):
        answer = vm(recorded(), "--from", moment, "--to", moment)
        equal(level, answer["total"]["size"], f"the level at {moment}")


@test
def a_buffer_that_is_released_in_halves_leaves_a_shelf():
    path = recorded(variables={"EX2_PARTIAL": "1"})
    answer = vm(path)
    equal({"transient": (13, 12 * BUFFER, 0)}, table(answer), "impacts")
    answer = vm(path, "--from", "mark:ex2.last4.end", "--by", "lifetime")
    sizes = sorted(row["size"] for row in answer["rows"])
    equal([BUFFER // 2, BUFFER // 2, BUFFER], sizes, "what is released at the end")
    equal(15728640, sum(sizes) - min(sizes), "the shelf")


# ---- other forms ----

@test
def operator_new_has_the_same_figures():
    path = recorded("exercise2_cxx")
    heap = report(path, "--frame", "^(Startup|InnerLoopOperation)")["heap"]
    equal((1200, 130000), (heap["allocations"], heap["allocated_bytes"]), "allocations, bytes")
    ended = run([TIDEMARK, "window", path, "--from", "mark:ex2.heap10s.begin", "--to",
                 "mark:ex2.heap10s.end"])
    check(re.search(r"319 +InnerLoopOperation", ended.out), ended.out)
    answer = window(path, "--by", "impact,function", phase="ex2.heap10s")
    rows = {(row["keys"]["impact"], row["keys"]["function"].partition("(")[0]): row
            for row in answer["rows"]}
    row = rows["impacting", "InnerLoopOperation"]
    equal((319, 12760), (row["count"], row["impacting_size"]), "InnerLoopOperation")


@test
def eight_threads_have_eight_times_the_figures():
    path = recorded("exercise2", "threads")
    inner = ["InnerLoopOperation", "work"]
    answer = window(path)
    equal({"impacting": (8 * 1200, 8 * 130000, 8 * 130000)}, own(answer), "the whole run")
    check_ten_seconds(path, inner, 8)
    by_thread = window(path, "--by", "thread", "--frame", "^InnerLoopOperation$",
                       phase="ex2.heap10s")
    equal([12760] * 8, [row["impacting_size"] for row in by_thread["rows"]], "by thread")


@test
def a_forked_child_has_figures_of_its_own():
    path = recorded("exercise2", "fork")
    parent, child = report(path)["trace"]["processes"]
    check_ten_seconds(path, INNER, 1, "--process", str(parent["pid"]))
    answer = window(path, "--process", str(child["pid"]))
    equal({"impacting": (1024, 40960, 40960)}, table(answer), "the child's own")
    answer = window(path)
    equal({"impacting": (1200 + 1024, 170960, 170960)}, own(answer), "both")


@test
def heaptrack_says_the_same_of_the_same_program():
    if not shutil.which("heaptrack"):
        raise Skip("needs heaptrack")
    # The one in C++: heaptrack's own library brings libstdc++ along, and its block of 72,704 bytes.
    ended = run(["heaptrack", "-o", "peer", program("exercise2_cxx")],
                env=environment(EX2_SCALE="0.01"))
    equal(0, ended.code, f"heaptrack ({ended.err})")
    peer = next(name for name in os.listdir(".") if name.startswith("peer."))
    said = run(["heaptrack_print", "-f", peer]).out
    calls = re.search(r"calls to allocation functions: (\d+)", said)
    temporary = re.search(r"temporary memory allocations: (\d+)", said)
    peak = re.search(r"peak heap memory consumption: ([\d.]+)(\w)", said)
    leaked = re.search(r"total memory leaked: ([\d.]+)(\w)", said)
    heap = report(recorded("exercise2_cxx"))["heap"]
    equal(int(calls[1]), heap["allocations"], "allocations")
    equal(int(temporary[1]), heap["temporary"]["count"], "temporary")
    # heaptrack rounds to two places of units of 1000, and makes libstdc++ free its block.
    equal(f"{heap['peak_bytes'] / 1000:.2f}K", peak[1] + peak[2], "the peak")
    ours = report(recorded("exercise2_cxx"), "--not-frame", "^_?_?call_init")["heap"]
    equal(f"{ours['live_at_exit']['bytes'] / 1000:.2f}K", leaked[1] + leaked[2], "leaks")


main()
