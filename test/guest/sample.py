#!/usr/bin/env python3
"""A sampled recording estimates the whole without bias, and says how far off it may be."""
# timeout: 180
# parallel: yes
import json
import math
import os
import subprocess

from libguest import (TIDEMARK, Trace, check, environment, equal, main, program, record,
                      record_witnessed, report, run, test, wait_for)

PYTHON = ("d = [bytearray(i % 5000) for i in range(60000)]; e = [str(i) * 10 for i in "
          "range(100000)]; d = d[::3]; del e; import os; os._exit(0)")


def estimates(mean, times):
    """Of the same program, several times over."""
    found = []
    for _ in range(times):
        record(["/usr/bin/python3", "-c", PYTHON], "-q", "--force", "--sample", mean,
               env=environment(PYTHONMALLOC="malloc", PYTHONHASHSEED="0"))
        found.append(report())
    return found


def truth():
    record(["/usr/bin/python3", "-c", PYTHON], "-q", "--force",
           env=environment(PYTHONMALLOC="malloc", PYTHONHASHSEED="0"))
    return report()["heap"]


@test
def the_estimates_lie_around_the_truth_as_closely_as_their_errors_say():
    real = truth()
    runs = estimates("64K", 10)
    for key, figure, error in (("allocated", "allocated_bytes", "bytes"),
                               ("peak", "peak_bytes", "peak"),
                               ("calls", "allocations", "calls")):
        off = []
        for one in runs:
            heap = one["heap"]
            check(heap["standard_errors"][error] > 0, f"{key} has no error")
            off.append((heap[figure] - real[figure]) / heap["standard_errors"][error])
        mean = sum(off) / len(off)
        # Ten estimates: their mean is off by a standard error / sqrt(10), one time in 15,000 by
        # four of those. The peak of an estimate is a little high, being the largest of many.
        low, high = -4 / math.sqrt(10), (4 if key != "peak" else 8) / math.sqrt(10)
        check(low < mean < high, f"{key}: {mean:.2f} standard errors off on average: {off}")
        check(max(abs(value) for value in off) < 5, f"{key}: {off}")
    live = [one["heap"]["live_at_exit"]["bytes"] for one in runs]
    error = sum(one["heap"]["standard_errors"]["live_at_exit"] for one in runs) / len(runs)
    check(abs(sum(live) / len(live) - real["live_at_exit"]["bytes"]) < 4 * error / math.sqrt(10),
          f"live at exit: {live} for {real['live_at_exit']['bytes']}")


@test
def every_end_of_a_sample_is_seen_whoever_frees_it():
    ended = run([TIDEMARK, "record", "-q", "-o", "t.tide", "--sample", "300", program("handover"),
                 os.path.abspath("log"), "8", "80000", "3"], env=environment())
    equal(0, ended.code, ended.err)
    trace = Trace()
    trace.check_ownership()
    equal(0, trace.events_lost(), "events lost")
    counts = trace.counts()
    check(counts.allocations > 10000, counts)
    check(counts.allocations - counts.frees < 1000, f"ends are missing: {counts}")


@test
def a_free_of_nothing_disturbs_no_sample():
    source = """
#include <stdlib.h>
int main(void)
{
	static void *blocks[20000];
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < 20000; i++)
			blocks[i] = malloc(100);
		for (int i = 0; i < 20000; i++)
			free(NULL);
		for (int i = 0; i < 20000; i++)
			free(blocks[i]);
	}
	return 0;
}
"""
    with open("nothing.c", "w", encoding="utf-8") as file:
        file.write(source)
    equal(0, run(["gcc", "-O0", "-o", "nothing", "nothing.c"]).code, "compiler")
    record(["./nothing"], "-q", "--sample", "100")
    trace = Trace()
    trace.check_ownership()
    counts = trace.counts()
    check(counts.allocations > 100000, counts)
    check(counts.allocations - counts.frees < 20, f"ends are missing: {counts}")


@test
def blocks_of_no_bytes_are_estimated_like_those_of_one():
    source = """
#include <stdlib.h>
int main(void)
{
	for (int i = 0; i < 300000; i++) {
		void *volatile block = i % 2 ? calloc(0, 8) : malloc(0);
		free(block);
	}
	return 0;
}
"""
    with open("empty.c", "w", encoding="utf-8") as file:
        file.write(source)
    equal(0, run(["gcc", "-O0", "-o", "empty", "empty.c"]).code, "compiler")
    record(["./empty"], "-q", "--sample", "100")
    heap = report()["heap"]
    off = abs(heap["allocations"] - 300000)
    check(off < 5 * heap["standard_errors"]["calls"], heap)
    check(1000 < heap["standard_errors"]["calls"] < 12000, heap)
    check(heap["allocated_bytes"] < 10000, heap)


@test
def calls_of_all_kinds_and_children_are_sampled_alike():
    _, witness = record_witnessed([program("family"), "pool"], "--sample", "1")
    trace = Trace()
    trace.check_ownership()
    counts = trace.counts()
    # Of blocks that are much larger than the distance all are samples.
    check(witness.allocations * 0.9 < counts.allocations <= witness.allocations,
          f"{counts} of {witness}")


@test
def what_watches_a_sampled_recording_shows_what_the_report_does():
    record(["/usr/bin/python3", "-c", PYTHON], "-q", "--force", "--sample", "64K",
           env=environment(PYTHONMALLOC="malloc"))
    watched = run([TIDEMARK, "top", "t.tide", "--once", "--json"])
    equal(0, watched.code, watched.err)
    peaks = [process["peak_bytes"] for process in json.loads(watched.out)["processes"]]
    equal([report()["heap"]["peak_bytes"]], peaks, "peaks")


@test
def the_report_says_that_it_is_sampled():
    ended = record(["/usr/bin/python3", "-c", PYTHON], "--force", "--sample", "64K",
                   env=environment(PYTHONMALLOC="malloc"))
    check("0 events lost; these are samples" in ended.err, ended.err)
    text = run([TIDEMARK, "report", "t.tide"]).out
    check("sampled: one allocation in 64.0 KiB" in text, text[:600])
    check("±" in text, text[:600])
    whole = report()
    equal(True, whole["trace"]["sampled"], "trace.sampled")
    equal(65536, whole["trace"]["sample_bytes"], "trace.sample_bytes")
    equal(None, whole["heap"]["reallocations"], "reallocations, which samples cannot tell")
    equal(65536, json.loads(run([TIDEMARK, "info", "--json", "t.tide"]).out)["trace"]
          ["sample_bytes"], "what info says")


@test
def the_other_commands_say_so_too():
    record(["/usr/bin/python3", "-c", PYTHON], "-q", "--force", "--sample", "64K", "--rss-exact",
           env=environment(PYTHONMALLOC="malloc"))
    for command in ("active", "map", "reconcile", "pins", "window", "growth", "transients"):
        ended = run([TIDEMARK, command, "t.tide"])
        equal(0, ended.code, f"{command}: {ended.err}")
        equal(1, ended.out.count("warning: the recording is sampled"), f"warnings of {command}")
        equal(command in ("reconcile", "pins"), "counts as free" in ended.out, ended.out[:600])
        tables = command in ("active", "window", "growth", "transients")
        for form in ("--json", "--csv") if tables else ("--json",):
            ended = run([TIDEMARK, command, form, "t.tide"])
            check("is sampled" in ended.err, f"{command} {form}: {ended.err}")


@test
def a_recording_without_a_sample_does_not_say_that_nothing_was_allocated():
    record(["/bin/true"], "-q", "--sample", "1T")
    text = run([TIDEMARK, "report", "t.tide"]).out
    check("No allocation was a sample." in text and "Nothing was" not in text, text)


@test
def a_distance_that_is_none_is_refused():
    for word in ("0", "-1", "some", "1Q", "1e9", "", "2T", str(2**64 - 1), str(2**64)):
        ended = run([TIDEMARK, "record", "--sample", word, "/bin/true"])
        equal(125, ended.code, f"--sample {word}")
        check("--sample" in ended.err, ended.err)
    equal(0, run([TIDEMARK, "record", "-q", "--sample", "1T", "/bin/true"]).code, "--sample 1T")



GDB = """set pagination off
break -probe-stap otel_memory:alloc
commands
silent
printf "alloc %lu %lu %lu\\n", $_probe_arg0, $_probe_arg1, $_probe_arg2
continue
end
break -probe-stap otel_memory:free
commands
silent
printf "free %lu\\n", $_probe_arg0
continue
end
continue
"""


@test
def whoever_watches_the_probes_sees_the_samples():
    """A debugger comes while the program runs: what its probes say from then on is what the end of the
    trace has."""
    with open("watch.gdb", "w") as file:
        file.write(GDB)
    process = subprocess.Popen([TIDEMARK, "record", "-q", "-o", "usdt.tide", "--sample", "64K",
                                "--usdt", program("goes_on"), "30000", "100000"],
                               env=environment(), stdout=subprocess.DEVNULL)
    find = ["pgrep", "-P", str(process.pid), "-x", "goes_on"]
    wait_for(lambda: subprocess.run(find, capture_output=True, check=False).stdout, "the program")
    pid = subprocess.check_output(find, text=True).split()[0]
    watched = run(["/usr/bin/gdb", "-nx", "-batch", "-p", pid, "-x", "watch.gdb"])
    equal(0, process.wait())
    lines = [line.split() for line in watched.out.splitlines() if line.startswith(("alloc", "free"))]
    seen, made = [], []
    for kind, address, *more in lines:
        seen.append((kind, int(address), int(more[0]) if more else 0))
        if more:
            check(int(more[1]) == (64 << 10) * max(1, int(more[1]) >> 16), more)
    check(len(seen) > 20 and {kind for kind, *_ in seen} == {"alloc", "free"}, watched.out)
    for event in Trace("usdt.tide").events:
        if "free" in event.kind:
            made.append(("free", event.address, 0))
        elif event.kind == "realloc":
            made += [("free", event.old, 0), ("alloc", event.address, event.size)]
        elif event.kind in ("malloc", "calloc", "realloc-alloc"):
            made.append(("alloc", event.address, event.size))
    equal(made[-len(seen):], seen, "the probes")
    refused = run([TIDEMARK, "record", "--usdt", "true"])
    check(refused.code == 125 and "--sample" in refused.err, refused.err)



main()
