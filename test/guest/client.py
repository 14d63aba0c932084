#!/usr/bin/env python3
"""What a program says of itself through tidemark.h stands in the trace exactly where it was said."""
# parallel: yes
# timeout: 400
import collections
import json
import os
import re
import shutil

from libguest import (LIBRARY, SOURCE, TIDEMARK, Skip, Trace, WORD, check, check_whole,
                      environment, equal, main, program, record, report, run, test, unquote)

Item = collections.namedtuple("Item", "time kind thread heap old address size text stack process")


def item_of(line):
    """One item of a dump."""
    fields = dict.fromkeys(Item._fields)
    numbers = []
    words = WORD.findall(line)
    fields["time"] = int(words[0][1:])
    for word in words[1:]:
        if word.startswith('"'):
            fields["text"] = unquote(word)
        elif re.fullmatch(r"[tsph]\d+", word):
            name = {"t": "thread", "s": "stack", "p": "process", "h": "heap"}[word[0]]
            fields[name] = int(word[1:])
        elif word.startswith("0x"):
            fields["old"], fields["address"] = fields["address"], int(word, 16)
        elif word.isdigit():
            numbers.append(int(word))
        elif word != "->" and fields["kind"] is None:
            fields["kind"] = word
    fields["size"] = numbers[-1] if numbers else None
    return Item(**fields)


def items(path="t.tide"):
    ended = run([TIDEMARK, "dump", path])
    equal(0, ended.code, f"dump ({ended.err.strip()})")
    return [item_of(line) for line in ended.out.splitlines() if line.startswith("@")]


def heaps(path="t.tide"):
    """id -> (process, name)"""
    ended = run([TIDEMARK, "dump", path])
    found = {}
    for line in ended.out.splitlines():
        words = [unquote(word) for word in WORD.findall(line)]
        if words and words[0] == "heap":
            found[int(words[1][1:])] = (words[2], words[-1])
    return found


@test
def a_mark_stands_between_what_its_thread_did_before_and_after():
    for options in ([], ["--clock=ns"], ["--free-stacks"]):
        record([program("client"), "marks"], *options, "--force")
        before = between = after = 0
        for item in items():
            if item.kind == "mark" and item.text == "between":
                equal((between + 1, between), (before, after), f"blocks before mark {between}")
                between += 1
            before += item.size == 7601
            after += item.size == 7602
        equal((100, 100, 100), (before, between, after), "blocks and marks")
        inside = [item.kind if item.size == 7603 else item.text for item in items()
                  if item.size == 7603 or (item.kind == "mark" and item.text != "between")]
        equal(["work.begin"] + ["malloc"] * 10 + ["work.end"], inside, "the phase")
        check_whole(Trace())


@test
def what_others_did_is_between_the_marks_that_knew_of_it():
    for options in ([], ["--clock=ns"]):
        record([program("client"), "others"], *options, "--force")
        inside = [item.text if item.kind == "mark" else item.size for item in items()
                  if item.kind == "mark" or (item.kind == "malloc" and item.size == 7650)]
        expected = ["begin", 7650, "end"] * 320
        wrong = next((at for at, pair in enumerate(zip(expected, inside)) if pair[0] != pair[1]), len(inside))
        equal(expected, inside, f"blocks and marks {options}, from {inside[max(wrong - 3, 0):wrong + 6]} at {wrong} on")


@test
def what_children_did_is_between_the_marks_however_late_it_is_looked_at():
    if not shutil.which("strace"):
        raise Skip("needs strace")
    # The collector wakes up late, or hears late of whom it has answered.
    for call in ("futex", "sendmsg"):
        ended = run(["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e",
                     f"inject={call}:delay_exit=30000", TIDEMARK, "record", "--force", "-o", "t.tide",
                     program("client"), "killed"])
        equal(0, ended.code, ended.err)
        inside = [item.text if item.kind == "mark" else item.size for item in items()
                  if item.kind == "mark" or (item.kind == "malloc" and item.size == 7650)]
        equal(["begin", 7650, "end"] * 10, inside, f"blocks and marks, {call} delayed")


@test
def a_mark_of_a_signal_handler_is_kept_whatever_it_interrupts():
    ended = record([program("client"), "handler"])
    marks, blocks = map(int, ended.out.split())
    trace = Trace()
    check_whole(trace)
    equal(blocks, len(trace.of_size(7605)), "blocks")
    equal(marks, sum(item.kind == "mark" for item in items()), "marks")


@test
def threads_have_the_names_that_the_program_gives_them():
    record([program("client"), "names"])
    names = {}
    for item in items():
        if item.kind == "thread-name":
            names[item.thread] = item.text
        if item.size == 7606:
            equal("given", names.get(item.thread), "the name through tidemark.h")
    text = run([TIDEMARK, "dump", "t.tide"]).out
    thread = next(item.thread for item in items() if item.size == 7607)
    check(re.search(rf'^thread t{thread} .*"system"$', text, re.M), "the system's name", text)


@test
def events_of_a_pool_are_in_the_order_in_which_they_happened():
    ended = record([program("client"), "pools"])
    names = heaps()
    live = collections.defaultdict(dict)
    counts = collections.Counter()
    for number, item in enumerate(items()):
        if item.heap is None:
            continue
        blocks = live[item.heap]
        name = names[item.heap][1]
        counts[name, item.kind] += 1
        if item.kind == "heap-alloc":
            check(item.address not in blocks, f"item {number}: {item.address:#x} has two owners")
            check(item.stack, f"item {number} has no stack")
            blocks[item.address] = item.size
        elif item.kind == "heap-free" and name == "shared":
            check(blocks.pop(item.address, None), f"item {number}: {item.address:#x} is free")
        elif item.kind == "heap-free":
            counts["unknown"] += blocks.pop(item.address, None) is None
        else:
            check(item.stack, f"item {number} has no stack")
            blocks.clear()
    equal(list(map(int, ended.out.split())),
          [counts["shared", "heap-alloc"], counts["shared", "heap-free"],
           counts["shared", "heap-reset"]], "allocations, frees and resets")
    equal((12, 3, 1, 1), (counts["other", "heap-alloc"], counts["other", "heap-free"],
                          counts["unknown"], counts["other", "heap-destroy"]), "the other pool")
    trace = Trace()
    check_whole(trace)
    told = report()
    equal(trace.counts().allocations, told["heap"]["allocations"], "malloc's own figures")
    pools = {pool["name"]: pool for pool in told["pools"]}
    equal({"shared", "other"}, set(pools), "pools of the report")
    for name, kinds in (("shared", ("heap-alloc", "heap-free", "heap-reset")),
                        ("other", ("heap-alloc", "heap-free", "heap-destroy"))):
        pool = pools[name]
        equal([counts[name, kind] for kind in kinds],
              [pool["allocations"], pool["frees"] + pool["unknown_frees"], pool["resets"]],
              f"what the report says of {name}")
    equal((counts["unknown"], 0), (pools["other"]["unknown_frees"],
                                   pools["shared"]["unknown_frees"]), "frees of nothing known")
    peak, level, blocks = 0, 0, {}
    for item in items():
        if item.heap is None or names[item.heap][1] != "shared":
            continue
        if item.kind == "heap-alloc":
            blocks[item.address] = item.size
            level += item.size
            peak = max(peak, level)
        elif item.kind == "heap-free":
            level -= blocks.pop(item.address)
        else:
            blocks.clear()
            level = 0
    equal((peak, level), (pools["shared"]["peak_bytes"],
                                        pools["shared"]["live_at_end"]["bytes"]), "levels")
    text = run([TIDEMARK, "report", "t.tide"]).out
    check(re.search(r"^POOLS .*^ +\S+ \S+ +40,000   shared: peak ", text, re.M | re.S), text)


@test
def a_block_of_a_pool_has_the_stack_of_its_call():
    record([program("client"), "pools"])
    trace = Trace()
    module = {trace.module_of(trace.frames_of(item.stack)[0]) for item in items()
              if item.kind == "heap-alloc"}
    equal({"client"}, module, "whose code the innermost frame is")
    window = run([TIDEMARK, "window", "t.tide", "--by", "function", "--heap", "shared", "--json"])
    functions = {row["keys"]["function"] for row in json.loads(window.out)["rows"]}
    equal({"take_place"}, functions, "who is named as the allocator")
    depths = {trace.depth(item.stack) for item in items() if item.size == 7613}
    check(min(depths) >= 3, f"depths {depths}")


@test
def a_forked_child_has_its_parents_pools():
    record([program("client"), "fork"])
    names = heaps()
    seen = collections.Counter((names[item.heap], item.kind, item.size) for item in items()
                               if item.heap is not None)
    equal({(("p0", "kept"), "heap-alloc", 7630): 10, (("p1", "kept"), "heap-free", None): 2,
           (("p1", "kept"), "heap-alloc", 7631): 3, (("p1", "mine"), "heap-alloc", 7632): 1},
          dict(seen), "calls by process and pool")


@test
def a_pause_leaves_out_allocations_and_keeps_frees():
    record([program("client"), "pause"])
    own = [(item.kind, item.size) for item in items() if item.kind in ("pause", "resume")
           or (item.size or 0) // 10 == 764]
    equal([("malloc", 7640), ("malloc", 7640), ("pause", None), ("resume", None),
           ("malloc", 7644)], own, "what is recorded")
    live = {}
    for item in items():
        if item.kind == "malloc" and item.size == 7640:
            live[item.address] = True
        elif item.kind in ("free", "realloc-free") and item.address in live:
            live[item.address] = False
    equal([False, False], list(live.values()), "the blocks from before the pause still live")
    check(report()["heap"]["orphan_frees"] >= 2, "frees of blocks of the pause are counted")


@test
def a_recording_can_begin_with_a_pause():
    record([program("client"), "pause"], "--paused")
    own = [(item.kind, item.size) for item in items() if item.kind in ("pause", "resume")
           or (item.size or 0) // 10 == 764]
    equal([("pause", None), ("resume", None), ("malloc", 7644)], own, "what is recorded")


SMALL = r"""
#include <tidemark.h>
#include <unistd.h>
int main(void)
{
	tidemark_mark("small");
	return write(1, tidemark_recorded() ? "yes\n" : "no\n", tidemark_recorded() ? 4 : 3) < 0;
}
"""
PLUGIN = r"""
#include <tidemark.h>
int plugin(void)
{
	tidemark_mark("plugin");
	return tidemark_recorded();
}
"""
HOST = r"""
#include <dlfcn.h>
#include <unistd.h>
int main(void)
{
	void *library = dlopen("./plugin.so", RTLD_NOW);
	int (*plugin)(void);
	*(void **)&plugin = library ? dlsym(library, "plugin") : 0;
	if (!plugin)
		return 1;
	return plugin() ? write(1, "yes\n", 4) != 4 : write(1, "no\n", 3) != 3;
}
"""
INCLUDE = ["-I", os.path.join(SOURCE, "include"), "-Wall", "-Wextra", "-Werror", "-pedantic"]


def compile_text(compiler, text, name, *options):
    with open(name + ".c", "w", encoding="utf-8") as file:
        file.write(text)
    ended = run([*compiler, *INCLUDE, *options, name + ".c", "-o", name])
    return ended.code == 0, ended.err


@test
def the_header_finds_the_recorder_however_the_program_is_linked():
    compilers = [[name] for name in ("gcc", "clang", "musl-gcc") if shutil.which(name)]
    linkers = [name for name in ("bfd", "gold", "lld") if shutil.which("ld." + name)]
    forms = {"position-dependent": ["-fno-pic", "-no-pie"], "pie": ["-fPIE", "-pie"],
             "optimised": ["-O2", "-flto", "-no-pie"], "hidden": ["-fvisibility=hidden"]}
    tried = 0
    for compiler in compilers:
        for linker in linkers:
            every = compiler == compilers[0] and linker == linkers[0]
            for form, options in list(forms.items())[:None if every else 1]:
                made, _ = compile_text(compiler, SMALL, "small", "-std=c99",
                                       "-fuse-ld=" + linker, *options)
                if not made:  # this compiler and this linker do not get along
                    continue
                tried += 1
                what = f"{compiler[0]}, {linker}, {form}"
                equal("no\n", run(["./small"]).out, f"{what}: unrecorded")
                equal("yes\n", record(["./small"], "--force").out, f"{what}: recorded")
                equal(["small"], [item.text for item in items() if item.kind == "mark"],
                      f"{what}: marks")
    check(tried >= 5, f"only {tried} ways to link were possible")


@test
def the_header_works_in_a_static_program():
    for options in (["-static", "-no-pie"], ["-static-pie", "-fPIE"],
                    ["-static", "-O2", "-flto"]):
        made, errors = compile_text(["gcc"], SMALL, "small", *options)
        check(made, errors)
        equal("no\n", run(["./small"], env=environment(LD_PRELOAD=LIBRARY)).out, f"{options}")
        equal("yes\n", record(["./small"], "--force").out, f"{options}: recorded")
        equal(["small"], [item.text for item in items() if item.kind == "mark"], "marks")


@test
def the_header_works_in_libraries_that_are_opened_later():
    made, errors = compile_text(["gcc"], HOST, "host", "-no-pie", "-Wno-pedantic", "-ldl")
    check(made, errors)
    for options in ([], ["-Wl,-Bsymbolic"], ["-Wl,-z,defs"], ["-fno-plt", "-O2"]):
        made, errors = compile_text(["gcc"], PLUGIN, "plugin.so", "-shared", "-fPIC", *options)
        check(made, errors)
        equal("no\n", run(["./host"]).out, f"{options}: unrecorded")
        equal("yes\n", record(["./host"], "--force").out, f"{options}: recorded")
        equal(["plugin"], [item.text for item in items() if item.kind == "mark"], "marks")


@test
def the_header_is_c99_and_cxx11_and_nothing_where_it_is_disabled():
    for compiler in (["gcc", "-std=c99"], ["gcc", "-std=c90"], ["clang", "-std=c17"],
                     ["g++", "-x", "c++", "-std=c++11"], ["clang++", "-x", "c++", "-std=c++20"],
                     ["gcc", "-masm=intel"]):
        if not shutil.which(compiler[0]):
            continue
        made, errors = compile_text(compiler, SMALL, "small")
        check(made, compiler, errors)
        equal("yes\n", record(["./small"], "--force").out, f"{compiler}")
    made, errors = compile_text(["gcc"], SMALL, "small", "-DTIDEMARK_DISABLE", "-O0")
    check(made, errors)
    equal("no\n", record(["./small"], "--force").out, "disabled")
    check("tidemark" not in run(["nm", "-D", "small"]).out, "disabled, it refers to the recorder")
    ended = run(["gcc", "-m32", *INCLUDE, "-O2", "-S", "small.c", "-o", "small.s"])
    if ended.code == 0:
        ended = run(["as", "--32", "small.s", "-o", "small32.o"])
        equal(0, ended.code, f"the header's assembler for 32 bits ({ended.err})")
        check("GOT" in run(["readelf", "-rW", "small32.o"]).out, "no reference through the table")


@test
def calls_leave_an_unrecorded_program_as_it_was():
    ended = run([program("client"), "still"])
    equal("0\n", ended.out, "recorded")
    for part in ("marks", "pools", "fork", "pause", "names"):
        equal(0, run([program("client"), part]).code, part)


main()
