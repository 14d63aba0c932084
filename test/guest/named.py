#!/usr/bin/env python3
"""What jemalloc, tcmalloc, mimalloc and glibc call by names of their own is recorded as the same
call by its usual name would be; where nobody has such a function, it works all the same."""
# parallel: yes
import glob

from libguest import Skip, Trace, check, environment, equal, main, program, record, test

MADE = {7902: 1, 7903: 1, 7910: 1, 7911: 1}


def check_named(library):
    found = glob.glob(f"/usr/lib/x86_64-linux-gnu/{library}") if library else [""]
    if not found:
        raise Skip(f"needs {library}")
    count = int(record([program("named")], env=environment(LD_PRELOAD=found[0])).out)
    trace = Trace()
    equal(0, trace.events_lost(), "events lost")
    trace.check_ownership()
    sizes = {**{7800 + n: 1 for n in range(1, count + 1)}, **MADE}
    seen = {size: (len(trace.of_size(size)), trace.frees_of_size(size)) for size in sizes}
    equal({size: (1, 1) for size in sizes}, seen, "blocks by size, and their ends")
    return trace


@test
def without_any_of_them_they_are_mallocs():
    check_named(None)


@test
def those_of_jemalloc_are_recorded():
    check_named("libjemalloc.so.2")


@test
def those_of_tcmalloc_are_recorded():
    check_named("libtcmalloc_minimal.so.4")


@test
def those_of_mimalloc_are_recorded():
    check_named("libmimalloc.so.2*")


@test
def no_free_is_without_its_allocation_in_a_real_program():
    for library in ("libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2*"):
        found = glob.glob(f"/usr/lib/x86_64-linux-gnu/{library}")
        if not found:
            raise Skip(f"needs {library}")
        record(["g++", "-std=c++17", "-O1", "-S", "-o", "/dev/null", "-x", "c++", "/dev/stdin"],
               text=b"#include <map>\n#include <string>\nstd::map<std::string, int> m;\n",
               trace=f"{library[:6]}.tide", env=environment(LD_PRELOAD=found[0]), timeout=60)
        trace = Trace(f"{library[:6]}.tide")
        check(len(trace.events) > 10000, f"{library}: {len(trace.events)}")
        trace.check_ownership()


main()
