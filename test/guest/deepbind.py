#!/usr/bin/env python3
"""What asks the C library itself for malloc (RTLD_DEEPBIND, dlsym of RTLD_NEXT or of a handle,
dlvsym) is recorded as what asks by name is: once, with the caller's stack."""
# parallel: yes
from libguest import Trace, equal, main, program, record, run, test


def opened_with(library, *flags, options=()):
    command = [program("deepbind"), program(library), *flags]
    trace = f"{library}.{''.join(flags)}.tide"
    plain = run(command)
    ended = record(command, "--strict", *options, trace=trace)
    equal(plain.out, ended.out, "output")
    trace = Trace(trace)
    equal(0, trace.events_lost(), "events lost")
    trace.check_ownership()
    expected = {int(size): int(count) for size, count in map(str.split, ended.out.splitlines())}
    equal({size: (count, count) for size, count in expected.items()},
          {size: (len(trace.of_size(size)), trace.frees_of_size(size)) for size in expected},
          "blocks by size, and their ends")
    return trace


@test
def a_plug_in_that_binds_deeply_is_recorded():
    for library in ("libdeepbind_library.so", "libdeepbind_plain.so"):
        for flags in (["deep"], ["deep", "lazy"]):
            opened_with(library, *flags)


@test
def one_that_does_not_may_ask_the_c_library_all_the_same():
    for flags in ([], ["lazy"]):
        opened_with("libdeepbind_library.so", *flags)


@test
def the_stack_is_the_caller_s():
    trace = opened_with("libdeepbind_library.so", "deep")
    for size in (7922, 7925, 7921):
        for event in trace.of_size(size):
            frames = [trace.module_of(frame) for frame in trace.frames_of(event.stack)]
            equal("libdeepbind_library.so", frames[0], f"who asked for {size} bytes, of {frames}")
            equal("deepbind", frames[-1], "where the stack begins")


main()
