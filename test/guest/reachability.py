#!/usr/bin/env python3
# parallel: yes
"""Which blocks of a program are reachable at its end, as its first comment says, and as Valgrind
and LeakSanitizer see it."""
import json
import os
import re
import shutil
import subprocess

import libguest
from libguest import (TIDEMARK, Skip, check, environment, equal, main, program, record, run, test)

# By size, as the comment of reaches.c has it.
STATES = {1001: "reachable", 1002: "reachable", 1003: "inside", 1004: "inside", 1005: "inside",
          1006: "unreachable", 1007: "held", 1008: "unreachable", 1009: "held",
          1010: "reachable", 1011: "reachable", 1012: "unreachable", 1013: "reachable",
          1014: "unreachable", 1015: "reachable", 1016: "reachable", 1017: "unreachable"}
LOST = ("unreachable", "held")


def ask(*words):
    ended = run([TIDEMARK, *words, "--json"])
    equal(0, ended.code, ended.err)
    return json.loads(ended.out)


def lines(trace="t.tide"):
    """What the trace has: (size, state, place, address), by size."""
    ended = run([TIDEMARK, "dump", trace])
    equal(0, ended.code, ended.err)
    pattern = r"^(reachable|inside|unreachable|held) (0x\w+) (\d+) t\d+(?: s\d+)?(?: (\w+)=.*)?$"
    return {int(size): (state, place, address) for state, address, size, place
            in re.findall(pattern, ended.out, re.M)}


@test
def each_block_is_what_the_program_says():
    record([program("reaches")], "--reachability")
    told = lines()
    equal(STATES, {size: told[size][0] for size in STATES})
    places = {1001: "global", 1002: "block", 1003: "global", 1004: "block", 1005: "block",
              1007: "block", 1011: "stack", 1013: "other", 1015: "stack"}
    equal(places, {size: told[size][1] for size in places})
    figures = ask("report", "t.tide", "--size", "1001..1017")["heap"]["reachability"]
    for state in ("inside", "unreachable", "held"):
        sizes = [size for size in STATES if STATES[size] == state]
        equal({"count": len(sizes), "bytes": sum(sizes)}, figures[state], state)


# The last block of a program. Its address is left on the stack by who allocated it. How main ends:
ENDS = r"""
#include <err.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
	void *volatile block = malloc(4001);
	switch (argc > 1 ? argv[1][0] : 0) {
	case 'e': exit(0);
	case 'r': err(0, "end"); // which calls exit inside of libc
	}
	return block == NULL;
}
"""


@test
def what_only_the_stack_of_a_main_that_has_returned_points_to_is_lost():
    with open("ends.c", "w", encoding="utf-8") as file:
        file.write(ENDS)
    equal(0, run(["gcc", "-O0", "-g", "ends.c", "-o", "ends"]).code)
    for words, state in ((["exit"], "reachable"), (["raise"], "reachable"), ([], "unreachable")):
        record(["./ends", *words], "--reachability", "-f")
        equal(state, lines()[4001][0], words)


@test
def the_way_to_a_block_is_told():
    record([program("reaches")], "--reachability")
    told = lines()
    way = ask("active", "t.tide", "--why", told[1002][2])
    equal("reachable", way["state"])
    equal([1002, 1001], [block["size"] for block in way["blocks"]])
    equal(("global", 0), (way["place"], way["blocks"][1]["offset"]))
    check("reaches+0x" in way["root"], way["root"])
    way = ask("active", "t.tide", "--why", told[1005][2])
    equal(("inside", [1005, 1004, 1001]),
          (way["state"], [block["size"] for block in way["blocks"]]))
    way = ask("active", "t.tide", "--why", told[1007][2])
    equal(("held", [1007, 1006], "nowhere"),
          (way["state"], [block["size"] for block in way["blocks"]], way["place"]))
    ended = run([TIDEMARK, "active", "t.tide", "--why", "0x10"])
    equal(2, ended.code)
    check("no block was at 0x10" in ended.err, ended.err)


@test
def limits_and_filters_are_kept_to():
    lost = sum(size for size in STATES if STATES[size] in LOST)
    record([program("reaches")], "--reachability")
    equal(0, run([TIDEMARK, "check", "t.tide", "--max-unreachable", str(lost)]).code)
    equal(1, run([TIDEMARK, "check", "t.tide", "--max-unreachable", str(lost - 1)]).code)
    equal(0, run([TIDEMARK, "check", "t.tide", "--max-unreachable", "0", "--size", "1001..1005"])
          .code)
    equal(1, run([TIDEMARK, "check", "t.tide", "--max-unreachable", "1016", "--size", "1017"])
          .code)
    # A suppression of Valgrind's is about the kinds that it names: of those that are reachable, it hides no leak.
    for kinds, code in ("reachable", 1), ("possible, none", 1), ("definite", 1), ("indirect", 1), ("definite,indirect", 0), ("all", 0):
        with open("kinds.txt", "w", encoding="utf-8") as file:
            file.write("{\n x\n Memcheck:Leak\n match-leak-kinds: " + kinds + "\n fun:malloc\n ...\n}\n")
        equal(code, run([TIDEMARK, "check", "t.tide", "--max-unreachable", "0", "--suppressions", "kinds.txt"]).code, kinds)
    # Of what was allocated in a part of the time it is not known, and that is said.
    ended = run([TIDEMARK, "check", "t.tide", "--max-unreachable", "0", "--from", "1us"])
    equal(3, ended.code, ended.out)


@test
def what_is_not_known_is_said():
    ended = run([TIDEMARK, "record", "-o", "s.tide", "--reachability", "--sample", "1K", "--",
                 program("reaches")])
    equal(125, ended.code)
    check("--sample" in ended.err, ended.err)
    record(["sh", "-c", "kill -9 $$"], "--reachability", trace="k.tide", code=-9)
    warned = ask("report", "k.tide")
    equal(None, warned["heap"]["reachability"])
    check(any("was not searched" in line for line in warned["trace"]["warnings"]), warned["trace"])
    equal(3, run([TIDEMARK, "check", "k.tide", "--max-unreachable", "0"]).code)


@test
def who_is_ended_by_a_signal_is_not_searched_which_is_said():
    ended = run([TIDEMARK, "record", "-o", "t.tide", "--reachability", "--", "sh", "-c", "kill -TERM $$"])
    check("a signal has ended 1 of its processes before" in ended.err, ended.err)
    ended = run([TIDEMARK, "record", "-f", "-o", "t.tide", "--", "sh", "-c", "kill -TERM $$"])
    check("a signal has ended" not in ended.err, ended.err)


@test
def children_are_searched_too():
    record(["sh", "-c", f"{program('reaches')}; {program('reaches')}; exit 0"], "--reachability")
    told = ask("report", "t.tide")
    figures = told["heap"]["reachability"]
    sizes = [size for size in STATES if STATES[size] == "unreachable"]
    check(figures is not None, told["trace"]["warnings"])
    equal(2 * len(sizes), figures["unreachable"]["count"])


@test
def a_text_and_a_merged_trace_say_the_same():
    record([program("reaches")], "--reachability")
    text = run([TIDEMARK, "dump", "t.tide"]).out
    with open("t.txt", "w", encoding="utf-8") as file:
        file.write(text)
    equal(0, run([TIDEMARK, "dump", "--assemble", "t.txt", "-o", "a.tide"]).code)
    equal(lines(), lines("a.tide"))
    equal(0, run([TIDEMARK, "merge", "t.tide", "t.tide", "-o", "m.tide"]).code)
    figures = ask("report", "m.tide")["heap"]["reachability"]
    equal(2 * sum(size for size in STATES if STATES[size] == "held"), figures["held"]["bytes"])


@test
def a_running_program_is_searched_when_it_is_asked_for():
    running = subprocess.Popen([TIDEMARK, "record", "-q", "-o", "t.tide", "--", program("reaches"),
                                "lines"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                               env=environment())
    equal("ready\n", running.stdout.readline())
    listed = run(["pgrep", "-P", str(running.pid), "-f", "reaches"]).out.split()
    pids = [pid for pid in listed if os.readlink(f"/proc/{pid}/exe").endswith("/reaches")]
    equal(1, len(pids), listed)
    for _ in range(2):
        ended = run([TIDEMARK, "ctl", pids[0], "reachability"])
        equal(0, ended.code, ended.err)
        check(re.match(r"unreachable .* in [\d,]+ blocks, of [\d,]+ that are live", ended.out),
              ended.out)
        running.stdin.write("on\n")
        running.stdin.flush()
        equal("done\n", running.stdout.readline())
    running.stdin.close()
    equal(0, running.wait())
    text = run([TIDEMARK, "dump", "t.tide"]).out
    equal(2, len(re.findall(r"^reach p0 reason=asked", text, re.M)), "searches")
    for size, state in STATES.items():
        equal([state] * 2, re.findall(rf"^(reachable|inside|unreachable|held) 0x\w+ {size} t", text,
                                      re.M), f"the block of {size}")
    equal(["unreachable"], re.findall(r"^(\w+) 0x\w+ 70002 t", text, re.M)[:1], "one that followed")


MARKED = r"""
#include "tidemark.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void *volatile kept[2];
static __attribute__((noinline)) void begin(void)
{
	kept[0] = malloc(71001);
	kept[1] = malloc(71002);
}
static __attribute__((noinline)) void clear(void)
{
	char room[4096];
	memset(room, 0, sizeof(room));
	__asm__ volatile("" : : "r"(room) : "memory");
}
int main(void)
{
	begin();
	tidemark_mark("other");
	kept[0] = NULL;
	clear();
	tidemark_mark("dropped");
	kept[1] = NULL;
	clear();
	tidemark_mark("dropped too");
	return 0;
}
"""


def marked():
    with open("marked.c", "w", encoding="utf-8") as file:
        file.write(MARKED)
    equal(0, run(["gcc", "-O1", "-I", os.path.join(os.environ["TIDEMARK_SOURCE"], "include"), "marked.c",
                  "-o", "marked"]).code)


@test
def a_program_is_searched_at_a_mark_and_waits_for_it():
    marked()
    for mark, states in (("other", ("reachable", "reachable")), ("dropped", ("unreachable", "reachable")),
                         ("dropped too", ("unreachable", "unreachable"))):
        record(["./marked"], "--reachability-at", mark, "--force")
        text = run([TIDEMARK, "dump", "t.tide"]).out
        equal(["mark"], re.findall(r"^reach p0 reason=(\w+)", text, re.M), mark)
        told = lines()
        equal(states, (told[71001][0], told[71002][0]), mark)
        way = ask("active", "t.tide", "--why", told[71001][2])
        equal(states[0], way["state"], mark)
    record(["./marked"], "--reachability-at", "dropped", "--reachability", "--force")
    text = run([TIDEMARK, "dump", "t.tide"]).out
    equal(["mark", "exit"], re.findall(r"^reach p0 reason=(\w+)", text, re.M))
    # What was live at exit is said of exit.
    equal(71001 + 71002, ask("report", "t.tide", "--size", "71001..71002")["heap"]["reachability"]
          ["unreachable"]["bytes"])
    record(["./marked"], "--reachability-at", "no such mark", "--force")
    equal([], re.findall(r"^reach", run([TIDEMARK, "dump", "t.tide"]).out, re.M))
    for words in (["--reachability-at", "m" * 64], ["--reachability-at", ""],
                  ["--reachability-at", "m", "--sample", "1K"]):
        equal(125, run([TIDEMARK, "record", "-o", "s.tide", *words, "--", "./marked"]).code)


@test
def a_mark_from_outside_is_one_too():
    running = subprocess.Popen([TIDEMARK, "record", "-q", "-o", "t.tide", "--reachability-at", "now", "--",
                                program("reaches"), "lines"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True, env=environment())
    equal("ready\n", running.stdout.readline())
    pid = next(pid for pid in run(["pgrep", "-P", str(running.pid), "-f", "reaches"]).out.split()
               if os.readlink(f"/proc/{pid}/exe").endswith("/reaches"))
    equal("", run([TIDEMARK, "ctl", pid, "mark", "then"]).out)
    ended = run([TIDEMARK, "ctl", pid, "mark", "now"])
    check(re.match(r"unreachable .* in [\d,]+ blocks, of [\d,]+ that are live", ended.out), ended)
    running.stdin.close()
    equal(0, running.wait())
    text = run([TIDEMARK, "dump", "t.tide"]).out
    equal(["mark"], re.findall(r"^reach p0 reason=(\w+)", text, re.M))


@test
def the_recorder_alone_searches_too():
    env = environment(LD_PRELOAD=libguest.LIBRARY, TIDEMARK_OPTIONS="reachability",
                      TIDEMARK_OUTPUT=os.path.abspath("alone.tide"))
    equal(0, run([program("reaches")], env=env).code)
    libguest.wait_for(lambda: "\nend duration" in run([TIDEMARK, "dump", "alone.tide"]).out,
                      "the trace")
    equal(STATES, {size: state for size, (state, _, _) in lines("alone.tide").items()
                   if size in STATES})


# What a program does that goes on while a copy of it is searched, and what it must not see of that:
# no child, no signal, no open end of a pipe. What it keeps from its children is searched, too.
COPIED = r"""
#include "tidemark.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static void *volatile kept[2], **apart;
static volatile int children;
static void on_child(int number) { children += number != 0; }
static __attribute__((noinline)) void begin(void)
{
	kept[0] = malloc(71001);
	kept[1] = malloc(71002);
	*apart = malloc(71003);
}
int main(int argc, char **argv)
{
	void *lists[2000];
	int pipes[2];
	char byte;

	(void)argv;
	signal(SIGCHLD, on_child);
	apart = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (apart == MAP_FAILED || pipe(pipes) != 0 || madvise(apart, 4096, argc > 1 ? MADV_DONTFORK : MADV_WIPEONFORK) != 0)
		return 1;
	begin();
	for (int i = 0; i < 2000; i++)
		lists[i] = malloc(4096);
	tidemark_mark("now");
	// It has gone on, and is not searched as it is from here on.
	for (int round = 0; round < 100; round++) {
		kept[0] = NULL;
		for (int i = 0; i < 2000; i++) {
			memset(lists[i], 0, 4096);
			free(lists[i]);
			lists[i] = malloc(4096);
		}
	}
	close(pipes[1]);
	if (read(pipes[0], &byte, 1) != 0)
		return 2; // the copy had it open
	if (wait(NULL) != -1 || errno != ECHILD || children != 0)
		return 3;
	return 0;
}
"""


def copied(*words):
    with open("copied.c", "w", encoding="utf-8") as file:
        file.write(COPIED)
    equal(0, run(["gcc", "-O1", "-I", os.path.join(os.environ["TIDEMARK_SOURCE"], "include"), "copied.c",
                  "-o", "copied"]).code)
    record(["./copied", *words], "--reachability-at", "now")
    text = run([TIDEMARK, "dump", "t.tide"]).out
    found = re.search(r"^reach p0 reason=mark at=(\d+) number=(\d+)", text, re.M)
    check(found, text[-500:])
    # It is of the moment of the mark, however much came after it.
    check(int(found[2]) < 3000, found[0])
    told = lines()
    equal(["reachable"] * 3, [told[size][0] for size in (71001, 71002, 71003)])
    equal(2000, len(re.findall(r"^reachable 0x\w+ 4096 t", text, re.M)))


@test
def the_program_goes_on_while_a_copy_is_searched_and_sees_nothing_of_it():
    copied()


# Whose only pointer is in memory that is shared, or that may not be written any more.
SHARED = r"""
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
static void *sealed[512] __attribute__((aligned(4096))) = { sealed };
static __attribute__((noinline)) void keep(int flags, int file, size_t block)
{
	void **memory = mmap(NULL, 16384, PROT_READ | PROT_WRITE, flags, file, 0);
	if (memory == MAP_FAILED)
		exit(1);
	memory[1026] = malloc(block); // of its third page
	if (flags == (MAP_PRIVATE | MAP_ANONYMOUS))
		mprotect(memory, 16384, PROT_READ);
}
int main(int argc, char **argv)
{
	int file = memfd_create("file", 0);
	(void)argv;
	if (ftruncate(file, 16384) != 0)
		return 1;
	if (argc > 1)
		madvise(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096, MADV_DONTFORK);
	keep(MAP_SHARED | MAP_ANONYMOUS, -1, 72001);
	keep(MAP_SHARED, file, 72002);
	keep(MAP_PRIVATE | MAP_ANONYMOUS, -1, 72003);
	sealed[5] = malloc(72004);
	mprotect(sealed, sizeof sealed, PROT_READ);
	return 0;
}
"""


@test
def what_shared_and_sealed_memory_points_to_is_reachable():
    with open("shared.c", "w", encoding="utf-8") as file:
        file.write(SHARED)
    equal(0, run(["gcc", "-O1", "shared.c", "-o", "shared"]).code)
    for words in ([], ["no copy"]):
        record(["./shared", *words], "--reachability", "-f")
        told = lines()
        equal([("reachable", "other")] * 3 + [("reachable", "global")],
              [told[size][:2] for size in (72001, 72002, 72003, 72004)], words)


RESERVED = r"""
#include <stdlib.h>
#include <sys/mman.h>
int main(void)
{
	size_t size = (size_t)16 << 40;
	int reserved = MAP_ANONYMOUS | MAP_NORESERVE;
	char *own = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | reserved, -1, 0);
	char *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | reserved, -1, 0);
	char **block = malloc((size_t)1 << 30);

	if (own == MAP_FAILED || shared == MAP_FAILED || block == NULL)
		return 3;
	own[0] = 1;
	*(void **)(own + size - 4096) = malloc(73001);
	*(void **)(shared + size / 2 + 16) = malloc(73002);
	block[(700 << 20) / sizeof *block] = malloc(73003);
	*(void **)(own + size / 2) = block;
	*(void *volatile *)(own + 8) = malloc(73004);
	*(void *volatile *)(own + 8) = NULL;
	return 0;
}
"""


@test
def what_is_reserved_and_was_never_touched_is_passed_over():
    with open("reserved.c", "w", encoding="utf-8") as file:
        file.write(RESERVED)
    equal(0, run(["gcc", "-O1", "reserved.c", "-o", "reserved"]).code)
    ended = run([TIDEMARK, "record", "-q", "-f", "-o", "t.tide", "--reachability", "--",
                 "./reserved"])
    if ended.code == 3:
        raise Skip("16 TiB cannot be reserved")
    equal(0, ended.code, ended.err)
    told = lines()
    equal([("reachable", "other"), ("reachable", "other"), ("reachable", "block"),
           ("unreachable", "")], [told[size][:2] for size in (73001, 73002, 73003, 73004)])
    check(int(re.search(r"^reach p0 .* read=(\d+)",
                        run([TIDEMARK, "dump", "t.tide"]).out, re.M)[1]) < 1 << 20, "what was read")


@test
def what_cannot_be_copied_is_searched_while_it_stands():
    copied("kept from children")


@test
def no_copy_is_left_over():
    running = subprocess.Popen([TIDEMARK, "record", "-q", "-o", "t.tide", "--", program("reaches"),
                                "lines"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                               env=environment())
    equal("ready\n", running.stdout.readline())
    pid = next(pid for pid in run(["pgrep", "-P", str(running.pid), "-f", "reaches"]).out.split()
               if os.readlink(f"/proc/{pid}/exe").endswith("/reaches"))
    for _ in range(5):
        equal(0, run([TIDEMARK, "ctl", pid, "reachability"]).code)
        equal("", run(["pgrep", "-P", pid]).out)
    running.stdin.close()
    equal(0, running.wait())


# Threads that have ended, joined and detached, of which glibc keeps the stacks and what belongs to these.
ENDED = r"""
#include <pthread.h>
#include <stdlib.h>
static __thread int own[100];
static void *run(void *argument)
{
	own[5] = argument != NULL;
	return NULL;
}
int main(void)
{
	pthread_t threads[4];
	for (int i = 0; i < 4; i++)
		if (pthread_create(&threads[i], NULL, run, threads) != 0)
			return 1;
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
"""


@test
def what_is_kept_of_ended_threads_is_no_leak():
    with open("ended.c", "w", encoding="utf-8") as file:
        file.write(ENDED)
    for bits in ("-m64", "-m32"):
        equal(0, run(["gcc", bits, "-O1", "ended.c", "-o", "ended", "-lpthread"]).code)
        record(["./ended"], "--reachability", "-f")
        found = ask("report", "t.tide")["heap"]["reachability"]
        equal(0, found["unreachable"]["count"], bits)
        check(found["inside"]["count"] >= 4, found)


# A thread that has gone to another stack (a coroutine) when the program ends: what it has for itself, and what the
# stack that it left holds.
ELSEWHERE = r"""
#include <pthread.h>
#include <stdlib.h>
#include <ucontext.h>
#include <unistd.h>
static __thread char *own;
static ucontext_t home, away;
static char stack[65536];
static volatile int there;
static void wait_there(void)
{
	there = 1;
	for (;;)
		pause();
}
static void *run(void *argument)
{
	char *volatile held = malloc(1000);
	own = malloc(2000);
	getcontext(&away);
	away.uc_stack.ss_sp = stack;
	away.uc_stack.ss_size = sizeof stack;
	makecontext(&away, wait_there, 0);
	swapcontext(&home, &away);
	held[0] = own[0] = 1;
	return argument;
}
int main(void)
{
	pthread_t thread;
	if (pthread_create(&thread, NULL, run, NULL) != 0)
		return 1;
	while (!there)
		usleep(1000);
	_exit(0);
}
"""


@test
def what_a_thread_on_another_stack_has_is_no_leak():
    with open("elsewhere.c", "w", encoding="utf-8") as file:
        file.write(ELSEWHERE)
    for bits in ("-m64", "-m32"):
        equal(0, run(["gcc", bits, "-O1", "elsewhere.c", "-o", "elsewhere", "-lpthread"]).code)
        record(["./elsewhere"], "--reachability", "-f")
        equal(0, ask("report", "t.tide")["heap"]["reachability"]["unreachable"]["count"], bits)


@test
def memory_that_was_not_read_is_told():
    record([program("reaches")], "--reachability")
    text = run([TIDEMARK, "dump", "t.tide"]).out
    text = re.sub(r"^(reach p0 .*total=\d+)$", r"\1 flags=2", text, flags=re.M)
    with open("t.txt", "w", encoding="utf-8") as file:
        file.write(text)
    equal(0, run([TIDEMARK, "dump", "--assemble", "t.txt", "-o", "a.tide"]).code)
    told = ask("report", "a.tide")
    equal(None, told["heap"]["reachability"])
    check(any("could not be read" in line for line in told["trace"]["warnings"]), told["trace"])
    equal(3, run([TIDEMARK, "check", "a.tide", "--max-unreachable", "0"]).code)


# --- As others see it ---

@test
def valgrind_sees_the_same():
    if not shutil.which("valgrind"):
        raise Skip("no valgrind")
    for command in ([program("reaches")], ["tar", "cf", "/dev/null", os.path.dirname(__file__)],
                    ["perl", "-e", "my $a = {}; $a->{a} = $a; print 1"],
                    ["sqlite3", ":memory:", "create table t(a); select * from t"]):
        record(command, "--reachability", "-f")
        ours = ask("report", "t.tide")["heap"]["reachability"]
        ended = subprocess.run(["valgrind", "--leak-check=full", "--run-libc-freeres=no",
                                "--run-cxx-freeres=no", "--leak-check-heuristics=none", *command],
                               capture_output=True, text=True, check=False, env=environment())
        theirs = {what: int(number.replace(",", "")) for what, number in re.findall(
            r"(definitely|indirectly) lost: ([\d,]+) bytes", ended.stderr)}
        equal((theirs.get("definitely", 0), theirs.get("indirectly", 0)),
              (ours["unreachable"]["bytes"], ours["held"]["bytes"]), command[0])


main()
