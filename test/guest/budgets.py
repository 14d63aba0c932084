#!/usr/bin/env python3
"""What a recording takes of memory, and what it says of waiting."""
# timeout: 240
# parallel: yes
import json
import os
import resource
import shutil
import signal
import subprocess
import time

from libguest import (BUILD, Skip, TIDEMARK, Trace, check, children_of, collector_of, counters, environment,
                      equal, finished, main, program, record, report, run, started, test, wait_for)

PROGRAM_KIB, THREAD_KIB = 3 << 10, 1 << 10  # what it may take in the program
COLLECTOR_BYTES = 512 << 20
CROWD = 300  # threads, from which on each takes less
MANY = 600
STOPPED_SECONDS = 0.5


def added_kib(command, trace="t.tide"):
    """What recording adds to the peak of a program that prints it."""
    plain = int(run(command).out)
    return int(record(command, "--force", trace=trace).out) - plain


def cost(trace="t.tide"):
    return json.loads(run([TIDEMARK, "info", "--json", trace]).out)["cost"]


@test
def a_program_takes_3_MiB_more_and_1_for_each_busy_thread_at_most():
    for threads in (1, 2, 8, 64, CROWD, MANY):
        added = added_kib([program("crowd"), "busy", str(threads)])
        allowed = PROGRAM_KIB + threads * THREAD_KIB // (2 if threads >= CROWD else 1)
        print(f"# {threads} threads: {added} KiB of {allowed}")
        check(added <= allowed, f"{threads} threads: {added} KiB")
    used = cost()["collector_bytes_peak"]
    print(f"# {used >> 20} MiB in the collector")
    check(0 < used <= COLLECTOR_BYTES, f"{used} bytes in the collector")


def faults_of(how, *words):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt
    how(*words)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt - before


@test
def a_thread_or_a_child_that_does_little_touches_few_pages():
    starts = os.path.join(BUILD, "test", "bench", "bench_starts")
    for what, count, allowed in ("threads", 300, 44), ("forks", 300, 92):
        each = 0
        for sign, part in (-1, 20), (1, 20 + count):
            command = [starts, what, str(part)]
            each += sign * (faults_of(record, command, "--force") - faults_of(run, command)) / count
        print(f"# {what}: {each:.1f} page faults more for each")
        check(each <= allowed, f"{what}: {each} page faults more for each")


@test
def memory_for_many_threads_is_mapped_for_many_at_once():
    if not shutil.which("strace"):
        raise Skip("needs strace")
    starts = os.path.join(BUILD, "test", "bench", "bench_starts")
    run(["strace", "-f", "-qq", "-e", "trace=madvise", "-o", "calls", TIDEMARK, "record", "--force",
         "-o", "t.tide", starts, "threads", "300"])
    with open("calls", encoding="utf-8") as file:
        asked = file.read().count("MADV_WIPEONFORK")
    print(f"# wiped in a child: {asked} mappings")
    check(1 < asked < 60, f"{asked} mappings for 300 threads")


@test
def a_million_stacks_are_the_collectors_and_fit_into_512_MiB():
    added = added_kib([program("many_stacks"), "20"])
    check(added <= PROGRAM_KIB + THREAD_KIB, f"{added} KiB added to the program")
    used = cost()["collector_bytes_peak"]
    print(f"# {added} KiB in the program, {used >> 20} MiB in the collector")
    check(0 < used <= COLLECTOR_BYTES, f"{used} bytes in the collector")
    info = json.loads(run([TIDEMARK, "info", "--json", "t.tide"]).out)
    check(info["stacks"]["stacks"] >= 1 << 20, info["stacks"])
    check(report("t.tide", "-n", "1")["heap"]["allocations"] >= 1 << 20, "allocations")


def stood_still(path, pid):
    """Until it sleeps, and has done nothing, for STOPPED_SECONDS on end: the ring is full. A program
    that is not given a processor is ready to run all the time."""
    since, seen = time.monotonic(), None

    def stands():
        nonlocal since, seen
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            sleeps = file.read().rpartition(") ")[2][0] == "S"
        pairs = counters(path)[1][0]
        if pairs != seen:
            since, seen = time.monotonic(), pairs
        return sleeps and time.monotonic() - since >= STOPPED_SECONDS
    wait_for(stands, "a program that waits")


@test
def a_program_that_had_to_wait_lost_nothing_and_the_trace_says_how_long_it_waited():
    path = os.path.abspath("counters")
    recorder = started([program("still"), "1000", "100000"], env=environment(COUNTERS=path))
    collector = collector_of(recorder.pid)
    os.kill(collector, signal.SIGSTOP)
    stood_still(path, next(pid for pid in children_of(recorder.pid) if pid != collector))
    os.kill(collector, signal.SIGCONT)
    os.kill(recorder.pid, signal.SIGTERM)
    code, _, err = finished(recorder)
    equal(5, code, f"exit code ({err})")
    waited = cost()["waited_ns"]
    check(waited >= STOPPED_SECONDS * 1e9, f"waited {waited} ns")
    said = run([TIDEMARK, "info", "t.tide"]).out
    check("of waiting" in said and " 0 ns of waiting" not in said, said)
    trace = Trace()
    equal(0, trace.events_lost(), "events lost")
    equal(counters(path)[1][:2], (len(trace.of_size(7901)), trace.frees_of_size(7901)),
          "blocks of the program")


@test
def a_child_that_is_stopped_while_it_waits_for_the_collector_is_recorded():
    # Under a limit of files it waits: its segment would be one.
    recorder = started(["python3", "-c", "import os, resource, time\nprint('ready', flush=True)\n"
                        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))\n"
                        "while not os.path.exists('go'): time.sleep(0.01)\n"
                        "child = os.fork()\n"
                        "if child: open('child.part', 'w').write(str(child)); os.rename('child.part', 'child'); os.wait()\n"
                        "else: os._exit(0)"])
    collector = collector_of(recorder.pid)
    os.kill(collector, signal.SIGSTOP)
    open("go", "w", encoding="ascii").close()
    wait_for(lambda: os.path.exists("child"), "the child")
    with open("child", encoding="ascii") as file:
        child = int(file.read())
    for _ in range(30):
        os.kill(child, signal.SIGSTOP)
        time.sleep(0.01)
        os.kill(child, signal.SIGCONT)
        time.sleep(0.01)
    os.kill(collector, signal.SIGCONT)
    code, _, err = finished(recorder)
    recorded = json.loads(run([TIDEMARK, "info", "--json", "t.tide"]).out)["processes"]
    equal((0, 2, False), (code, len(recorded), "not recorded" in err), err)


CHILDREN_THAT_END = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
	int gate[2], status, waited = 0;
	struct rusage usage;
	char byte;
	if (pipe(gate))
		return 1;
	for (int i = 0; i < 20; i++)
		if (!fork()) {
			close(gate[1]);
			free(malloc(10));
			if (read(gate[0], &byte, 1))
				_exit(1);
			exit(!memset(malloc(20 << 20), 1, 20 << 20));
		}
	puts("ready");
	fflush(stdout);
	getchar();
	close(gate[1]);
	while (wait4(-1, &status, 0, &usage) > 0)
		waited += usage.ru_nvcsw > 12;
	printf("%d\n", waited);
	return 0;
}
"""


@test
def of_children_that_end_at_once_one_at_a_time_asks_for_a_snapshot():
    """Beside a collector that has no processor: who asks takes twenty naps, one after the other."""
    run(["gcc", "-fno-builtin", "-x", "c", "-", "-o", "ends"], text=CHILDREN_THAT_END.encode())
    recorder = started(["./ends"], "--force", stdin=subprocess.PIPE)
    collector = collector_of(recorder.pid)
    time.sleep(1)  # of which a hundredth is for snapshots
    os.kill(collector, signal.SIGSTOP)
    recorder.stdin.write(b"\n")
    recorder.stdin.flush()
    waited = int(recorder.stdout.readline())
    os.kill(collector, signal.SIGCONT)
    equal(0, finished(recorder)[0], "exit code")
    print(f"# of 20 children {waited} waited for the collector")
    check(1 <= waited <= 3, f"{waited} waited")


main()
