#!/usr/bin/env python3
"""Programs of 32 bits are recorded as those of 64: the same tests, with the same programs."""
# timeout: 240
# parallel: yes
import importlib
import json
import os
import shutil

os.environ["GUEST_BITS"] = "32"

# pylint: disable=wrong-import-position
import libguest
from libguest import (TIDEMARK, Trace, check, check_whole, environment, equal, main, program,
                      record, report, run, test)
from libtests import take


def images(trace="t.tide"):
    """(process id, bits, exit, sizes of the program's own blocks) of each image, in order."""
    text = Trace(trace)
    check_whole(text)
    listed = report(trace)["trace"]["processes"]
    return [(each["pid"], int(fields.get("bits", 64)), each["exit"],
             sorted({event.size for event in text.events if 7700 <= event.size < 7800 and
                     text.threads[event.thread] == number}))
            for each, (number, fields) in zip(listed, sorted(text.processes.items()))]


@test
def exec_goes_from_64_bits_to_32_and_back_without_an_environment():
    chain = [program("across", bits) for bits in (64, 32, 32, 64, 64, 32)]
    ended = record(chain)
    equal("", "".join(line for line in ended.err.splitlines(True) if "ld.so" in line),
          "what the loader says")
    found = images()
    equal(1, len({pid for pid, _, _, _ in found}), "processes")
    equal([64, 32, 32, 64, 64, 32], [bits for _, bits, _, _ in found], "bits")
    equal([[7706], [7705], [7704], [7703], [7702], [7701]], [own for _, _, _, own in found],
          "blocks")
    equal(["exec"] * 5 + ["exit 0"], [ended for _, _, ended, _ in found], "ends")


PLUG_IN = """
#include <stdlib.h>
void *plug_in(size_t size) { void *volatile block = malloc(size); free(block); return malloc(size); }
"""
OPENS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
int main(int count, char **words)
{
	void *library = dlopen(words[1], RTLD_LAZY | (count > 2 ? RTLD_DEEPBIND : 0));
	void *(*plug_in)(size_t) = library ? (void *(*)(size_t))dlsym(library, "plug_in") : NULL;
	return !plug_in || !plug_in(7777);
}
"""


@test
def a_plug_in_that_binds_deeply_is_named_as_not_recorded():
    for name, text in (("plug_in", PLUG_IN), ("opens", OPENS)):
        with open(name + ".c", "w", encoding="utf-8") as file:
            file.write(text)
    for relro in ("now", "lazy,-z,norelro"):
        equal(0, run(["gcc", "-m32", "-fPIC", "-shared", "plug_in.c", "-o", "plug_in.so",
                      "-Wl,-z," + relro]).code, "gcc")
        equal(0, run(["gcc", "-m32", "opens.c", "-o", "opens", "-ldl"]).code, "gcc")
        for deep in ([], ["deep"]):
            ended = run([TIDEMARK, "record", "-f", "--strict", "-o", "t.tide", "./opens",
                         "./plug_in.so", *deep])
            equal(125 if deep else 0, ended.code, ended.err)
            equal(bool(deep), "./plug_in.so: " in ended.err and "RTLD_DEEPBIND" in ended.err,
                  ended.err)
            equal(not deep, report()["trace"]["complete"], "complete")


@test
def children_of_a_shell_are_recorded_whatever_their_class():
    ended = record(["/bin/sh", "-c", " ; ".join(program("across", bits) for bits in (32, 64, 32))])
    check("ld.so" not in ended.err, ended.err)
    found = images()
    equal([64, 32, 64, 32], [bits for _, bits, _, _ in found], "bits")
    equal([[], [7701], [7701], [7701]], [own for _, _, _, own in found], "blocks")


@test
def without_a_recorder_for_them_programs_of_32_bits_run_and_one_line_says_so():
    shutil.copy(libguest.LIBRARY, "lonely.so")
    lonely = environment(TIDEMARK_LIBRARY=os.path.abspath("lonely.so"))
    ended = record([program("across", 64), program("across", 32), program("across", 64)],
                   env=lonely)
    check("ld.so" not in ended.err, ended.err)
    told = [line for line in ended.lines() if "no recorder for 32-bit programs" in line]
    equal(1, len(told), f"lines that say so ({ended.err})")
    equal([64], [bits for _, bits, _, _ in images()], "bits")
    ended = record([program("still", 32)], env=lonely, trace="s.tide")
    told = [line for line in ended.lines() if "is a 32-bit program" in line]
    equal(1, len(told), f"lines that say so ({ended.err})")


@test
def preloaded_alone_the_recorder_starts_a_collector():
    entry = os.path.join(libguest.BUILD, "preload", "$LIB", "libtidemark.so")
    ended = run([program("across", 32), program("across", 64)],
                         env=environment(LD_PRELOAD=entry, TIDEMARK_OUTPUT="t.tide"))
    equal((0, ""), (ended.code, ended.err), "exit code, and what is said")
    libguest.closed("t.tide", events=False)
    equal([(32, [7702]), (64, [7701])], [(bits, own) for _, bits, _, own in images()], "images")


@test
def a_sample_of_the_blocks_is_recorded():
    record([program("crowd")], "--sample", "64K")
    heap = report()["heap"]
    real = 160000
    check(abs(heap["allocations"] - real) < 5 * heap["standard_errors"]["calls"], heap)


@test
def threads_hand_over_blocks_in_the_order_of_the_trace():
    replay = importlib.import_module("libreplay").handover(16000, 3)
    equal({}, dict(replay.wrong), f"what cannot have happened, in {replay.events} events")
    check(replay.handed_over > 1000, replay)


def largest_given(ranges):
    """The largest hole that the kernel gives: not the gap that it keeps below the main stack, nor
    the lowest addresses."""
    with open("/proc/sys/vm/mmap_min_addr", encoding="ascii") as file:
        at, largest = int(file.read()), 0
    for each in ranges:
        gap = 1 << 20 if each["owner"] == "main-stack" else 0
        largest = max(largest, int(each["start"], 16) - gap - at)
        at = max(at, int(each["end"], 16))
    return max(largest, (1 << 32) - at)


@test
def the_addresses_that_a_process_may_have_are_its_own():
    for words, high in (([], 0xffffe000), (["setarch", "-3"], 0xc0000000)):
        record([*words, program("shatter")], "--force")
        answer = json.loads(run([TIDEMARK, "map", "t.tide", "--process", "shatter", "--json"]).out)
        equal(hex(high), answer["high"], f"behind the last address, with {words}")


@test
def a_whole_address_space_broken_up_is_shown_with_the_programs_own_figures():
    ended = record([program("shatter")])
    after, before = ended.out.splitlines()
    free, holes, largest, everything, shards = map(int, after.split())
    answer = json.loads(run([TIDEMARK, "map", "t.tide", "--at", "mark:walked", "--range", "0..100000000",
                             "--json"]).out)
    equal((free, holes, largest), (answer["free"], answer["holes"], answer["largest_free"]),
          "free bytes, holes, the largest")
    equal(everything, answer["mapped"] - answer["owners"].get("main-stack", 0)
          - answer["owners"].get("kernel", 0), "bytes of all ranges")
    guilty = answer["rows"][0]
    equal("place_shard", guilty["stack"][1]["function"], f"who is in the way ({guilty['stack']})")
    equal((shards, 4096 * shards), (guilty["count"], guilty["bytes"]), "its mappings")
    equal(int(before), guilty["largest_without"], "the largest hole without them")
    failed = [each for each in answer["failures"] if each["size"] == 256 << 20]
    equal(1, len(failed), "calls that failed")
    equal("reserve_board", failed[0]["stack"][1]["function"], "who")
    equal(largest_given(answer["ranges"]), failed[0]["largest_free"], "for want of what")
    curve = [point["largest_free"] for point in answer["curve"]]
    check(max(curve) >= int(before) > largest == min(curve), curve)
    run([TIDEMARK, "map", "t.tide", "--at", "mark:walked", "-o", "t.svg"])
    with open("t.svg", encoding="utf-8") as file:
        check(file.read().count('fill="#d55e00"') >= shards, "cells of the program")


@test
def stacks_are_those_of_another_unwinder():
    importlib.import_module("unwinder").agree([program("adversary"), "300", "5"], 53, 500,
                                              whole=False, beyond=1)


@test
def a_program_that_does_everything_to_its_stacks_is_walked_the_same_twice():
    libraries = [program(f"libadversary_{name}.so") for name in "ab"]
    for number, more in enumerate(([], libraries, [*libraries, "generated"])):
        record([program("adversary"), "500", "7", *more], "--verify-stacks", trace=f"{number}.tide")
        end = Trace(f"{number}.tide").end
        check(int(end["stacks-verified"]) > 3000, end)
        equal(0, int(end.get("stacks-mismatched", 0)), "stacks that differ")


take("calls")
take("endings")
take("stacks")
take("memory", "strace", "mapped", "peak")
take("interposed", "own_calls", "callers")
take("exercise2", "the_heap_has", "no_call_freed", "ten_seconds", "spikes_come",
     "120_mebibytes", "operator_new")
main(needs=libguest.need_32_bits)
