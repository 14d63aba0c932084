#!/usr/bin/env python3
"""Programs with an allocator of their own linked in: each call counts once, whoever makes it, and
the stack is the caller's."""
# parallel: yes
import os

from libguest import (BUILD, TIDEMARK, Skip, Trace, check, equal, main, need_32_bits, program, record,
                      run, test)

PLUGIN = os.path.join(BUILD, "test", "programs", "liblinked_in_plugin.so")


def check_counts(trace, expected):
    equal(0, trace.events_lost(), "events lost")
    trace.check_ownership()
    equal({size: (count, count) for size, count in expected.items()},
          {size: (len(trace.of_size(size)), trace.frees_of_size(size)) for size in expected},
          "blocks by size, and their ends")


def check_stacks(trace):
    """All from the very caller to the program's start."""
    whole = 0
    for event in trace.events:
        if not event.stack:
            continue
        modules = [trace.module_of(frame) for frame in trace.frames_of(event.stack)]
        check("libtidemark.so" not in modules, f"a frame of ours: {modules}")
        check("?" not in modules, f"a frame in no module: {modules}")
        whole += 1
    check(whole > 100, f"only {whole} stacks")


def linked_with(name):
    path = program(f"linked_in_{name}")
    if not os.path.exists(path):
        raise Skip(f"needs a static {name}")
    plain = run([path, PLUGIN])
    equal(0, plain.code, plain.err)
    ended = record([path, PLUGIN], "--strict")
    equal(plain.out, ended.out, "output")
    trace = Trace()
    check_counts(trace, {int(size): int(count) for size, count in
                         map(str.split, ended.out.splitlines())})
    equal(2, len(trace.processes), "processes")
    check_stacks(trace)
    for size in (7801, 7810, 7813):
        event = trace.of_size(size)[0]
        frame = trace.frames_of(event.stack)[0]
        equal(os.path.basename(path), trace.module_of(frame), f"who asked for {size} bytes")


@test
def jemalloc_is_entered():
    linked_with("jemalloc")


@test
def tcmalloc_is_entered():
    linked_with("tcmalloc")


@test
def an_allocator_around_the_c_library_s_counts_once():
    record([program("wrapped")], "--strict")
    trace = Trace()
    check_counts(trace, {7821: 10, 7822: 10})
    equal(0, len(trace.of_size(7821 + 64)), "blocks that it asks the C library for")
    equal(10, trace.counts().reallocations, "reallocations")


@test
def a_toy_is_entered_too_be_it_exported_or_not():
    for name, bits in (("toy_malloc", 64), ("toy_malloc_hidden", 64), ("toy_malloc", 32)):
        path = program(name, bits)
        if bits == 32:
            need_32_bits()
        plain = run([path])
        ended = record([path], "--strict", trace=f"{name}.{bits}.tide")
        equal(plain.out, ended.out, "output")
        trace = Trace(f"{name}.{bits}.tide")
        trace.check_ownership()
        equal(100, len(trace.of_size(7001)), "blocks that main asks for")
        equal(10000, len(trace.of_size(103)), "blocks by calloc, which calls malloc")
        equal("", "".join(ended.lines()[:-2]), "what record says besides")
        check(run([TIDEMARK, "report", f"{name}.{bits}.tide"]).out, "no report")


@test
def what_the_c_library_does_by_its_realloc_is_done_so():
    for bits in (64, 32):
        path = program("toy_malloc", bits)
        if bits == 32:
            need_32_bits()
        plain = run([path, "others"])
        equal("seven 1\ntoy\n", plain.out, "untraced")
        ended = record([path, "others"], "--strict", trace=f"others.{bits}.tide")
        equal((0, plain.out), (ended.code, ended.out), ended.err)
        trace = Trace(f"others.{bits}.tide")
        trace.check_ownership()
        equal((1, 1, 1, 1), (len(trace.of_size(7002)), trace.frees_of_size(7002),
                             len(trace.of_size(7007)), trace.frees_of_size(7007)), "blocks, and their ends")
        frames = trace.frames_of(trace.of_size(7007)[0].stack)
        equal("toy_malloc", trace.module_of(frames[0]), "who asked for 7007 bytes")


main()
