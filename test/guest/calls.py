#!/usr/bin/env python3
"""Every call of every function that gives or takes memory is seen once, as what it is."""
# parallel: yes
import collections
import json
import os

from libguest import (BITS, TIDEMARK, Trace, check, check_whole, equal, main, program, record,
                      record_witnessed, report, run, test)

TOO_MUCH = 1 << (BITS - 1)  # guest.h


@test
def each_function_of_the_family_is_seen_a_hundred_times():
    _, witness = record_witnessed([program("family")])
    trace = Trace()
    check_whole(trace, witness)
    expected = {7001: ("malloc", 0), 7002: ("calloc", 0), 7504: ("calloc", 0),
                7003: ("malloc", 0), 7004: ("malloc", 0), 7005: ("aligned", 64),
                7040: ("aligned", 128), 7007: ("aligned", 256), 7008: ("aligned", 4096),
                7009: ("aligned", 4096), 7010: ("malloc", 0), 7011: ("malloc", 0),
                7012: ("malloc", 0), 7019: ("malloc", 0)}
    for size, (kind, align) in expected.items():
        found = trace.of_size(size)
        equal(100, len(found), f"allocations of {size} bytes")
        equal({(kind, align)}, {(event.kind, event.align) for event in found},
              f"kind and alignment of {size} bytes")
        equal(100, trace.frees_of_size(size), f"frees of {size} bytes")
    failed = collections.Counter(event.size for event in trace.events if event.kind == "failed")
    equal({TOO_MUCH: 200, 2 * TOO_MUCH - 1: 100}, dict(failed), "failed calls by size")


@test
def a_call_that_asks_for_nothing_counts_with_0_bytes():
    _, witness = record_witnessed([program("family")])
    trace = Trace()
    zero = [event for event in trace.events if event.kind == "malloc" and event.size == 0]
    equal(100, len(zero), "blocks of 0 bytes")


@test
def each_form_of_new_is_counted_once():
    _, witness = record_witnessed([program("family_cxx")])
    trace = Trace()
    check_whole(trace, witness)
    plain = [7101, 7102, 7103, 7104, 7109, 7110, 7113, 7115, 7116]
    for size in [*plain, 7168, 7232, 7296, 7360, 7424, 7488]:
        equal(100, len(trace.of_size(size)), f"allocations of {size} bytes")
        equal(100, trace.frees_of_size(size), f"frees of {size} bytes")
    failed = sum(event.kind == "failed" and event.size == TOO_MUCH for event in trace.events)
    equal(200, failed, "failed calls")


@test
def an_aligned_new_has_the_size_that_was_asked_for():
    record([program("rounded")])
    trace = Trace()
    check_whole(trace)
    equal(100, len(trace.of_size(7505)), "blocks of operator new")
    equal(1, len(trace.of_size(7552)), "blocks of aligned_alloc")


@test
def realloc_is_one_event_whatever_becomes_of_it():
    ended, witness = record_witnessed([program("resizes")])
    trace = Trace()
    check_whole(trace, witness)
    kinds = collections.Counter((event.kind, event.size) for event in trace.events)
    # One whose halves the collector saw at two looks, because the program was held up between
    # them, is told in halves.
    halves = [(first, second) for first, second in zip(trace.events, trace.events[1:])
              if second.kind == "realloc-alloc"]
    check(len(halves) < 5, f"{len(halves)} reallocs in halves")
    equal({"realloc-free"} if halves else set(), {first.kind for first, _ in halves}, "first halves")
    for size in (7301, 7202, 200003):
        split = sum(second.size == size for _, second in halves)
        equal(100, kinds["realloc", size] + split, f"reallocs to {size} bytes")
    moved = sum(event.kind == "realloc" and event.size == 200003 and event.old != event.address
                for event in trace.events)
    moved += sum(second.size == 200003 and first.address != second.address
                 for first, second in halves)
    equal(int(ended.out), moved, "reallocs that moved")
    undone = collections.Counter(event.size for event in trace.events
                                 if event.kind == "realloc-undo")
    equal(100, kinds["realloc-failed", TOO_MUCH] + undone[TOO_MUCH], "failed reallocs")
    equal(100, kinds["realloc-failed", 2 * TOO_MUCH - 1] + undone[2 * TOO_MUCH - 1],
          "reallocarrays that overflowed")
    equal(100, kinds["malloc", 7205], "reallocs of NULL")
    # A first half that is told by itself looks like one.
    equal(100 + len(halves) + undone.total(), kinds["realloc-free", 0], "reallocs to nothing")
    heap = report()["heap"]
    equal(witness._asdict(), {"allocations": heap["allocations"], "frees": heap["frees"],
                              "bytes": heap["allocated_bytes"],
                              "reallocations": heap["reallocations"], "failed": heap["failed"]},
          "the report's figures")


@test
def code_before_and_after_main_is_recorded_exactly():
    _, witness = record_witnessed([program("early_late"),
                                   program("libearly_late_library.so")])
    trace = Trace()
    check_whole(trace, witness)
    for size in range(7301, 7309):
        equal(10, len(trace.of_size(size)), f"blocks of {size} bytes")


@test
def each_call_belongs_to_the_library_whose_code_it_is():
    libraries = [program("libplugin_a.so"), program("libplugin_b.so")]
    ended = record([program("reload"), *libraries])
    equal("3\n", ended.out, "how often the second library lay where the first had been")
    trace = Trace()
    check_whole(trace)
    modules = collections.Counter()
    for event in trace.of_size(7401):
        modules[trace.module_of(trace.frames_of(event.stack)[0])] += 1
    equal({"libplugin_a.so": 3000, "libplugin_b.so": 3000}, dict(modules), "calls by library")
    names = collections.Counter()
    for site in report("t.tide", "-n", "0", "--all-frames")["sites"]["calls"]:
        functions = [frame["function"] for frame in site["stack"]]
        for name in ("plugin_a", "plugin_b"):
            names[name] += site["count"] * (name in functions)
    equal({"plugin_a": 3000, "plugin_b": 3000}, dict(names), "calls by function")


@test
def a_library_has_its_name_however_many_were_loaded_before():
    libraries = [program("libplugin_a.so"), program("libplugin_b.so")]
    # A call of the kernel costs 32 bits eight times as much, and each of these is some hundred:
    # i386_soak.py has them all.
    rounds = 8300 if BITS == 64 or "CALLS_ALL" in os.environ else 1000
    record([program("reload"), *libraries, str(rounds)])
    ended = run([TIDEMARK, "window", "--json", "--by", "module", "t.tide"])
    rows = {os.path.basename(row["keys"]["module"]): row["count"]
            for row in json.loads(ended.out)["rows"]}
    equal((rounds, rounds), (rows.get("libplugin_a.so"), rows.get("libplugin_b.so")), f"calls: {rows}")


@test
def ns_clock_gives_each_event_a_time_and_the_tick_moves():
    record([program("still"), "0", "10"], "--clock=ns", trace="ns.tide")
    record([program("still"), "0", "10"], trace="tick.tide")
    ns, tick = Trace("ns.tide"), Trace("tick.tide")
    own = [event.time for event in ns.of_size(7901)]
    check(len(set(own)) > len(own) * 0.9, f"{len(set(own))} times for {len(own)} events")
    equal(sorted(own), own, "times in order")
    check(len({event.time for event in tick.events}) > 50, "the tick moves")
    equal("clock=ns", ns.options, "options in the trace")


@test
def free_stacks_gives_every_free_a_stack():
    record([program("resizes")], "--free-stacks")
    trace = Trace()
    frees = [event for event in trace.events if event.kind == "free"]
    check(frees and all(event.stack for event in frees), "a free without a stack")
    record([program("resizes")], trace="without.tide")
    check(not any(event.stack for event in Trace("without.tide").events if event.kind == "free"),
          "a stack with a free that was not asked for")


main()
