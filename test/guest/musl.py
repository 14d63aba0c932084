#!/usr/bin/env python3
# parallel: yes
"""The recorder links nothing, so that one library serves programs of another libc as well."""
import shutil

from libguest import (Skip, TIDEMARK, Trace, check, check_whole, equal, main, record, run, test,
                      why_not_32_bits)

PROGRAM = r"""
#include <pthread.h>
#include <stdlib.h>
static __attribute__((noinline)) void deeper(int depth)
{
	if (depth)
		deeper(depth - 1);
	else
		free(realloc(malloc(7901), 7902));
	__asm__ volatile("");
}
static void *work(void *unused)
{
	for (int i = 0; i < 1000; i++)
		deeper(i % 10);
	return unused;
}
int main(void)
{
	pthread_t thread;
	pthread_create(&thread, 0, work, 0);
	work(0);
	pthread_join(thread, 0);
	return 0;
}
"""

CALLED_BACK = r"""
#include <stdlib.h>
void *volatile kept;
static int compare(const void *a, const void *b)
{
	kept = malloc(7903);
	free(kept);
	return *(const int *)a - *(const int *)b;
}
int main(void)
{
	int numbers[100];
	for (int i = 0; i < 100; i++)
		numbers[i] = i * 37 % 100;
	qsort(numbers, 100, sizeof(*numbers), compare);
	return 0;
}
"""

ALIGNED = r"""
#include <malloc.h>
#include <stdlib.h>
int main(void)
{
	void *block = 0;
	void *volatile kept; // so that nothing is optimized away
	for (int i = 0; i < 50; i++) {
		posix_memalign(&block, 64, 7911), free(block);
		kept = aligned_alloc(128, 7912), free(kept);
		kept = memalign(256, 7913), free(kept);
		kept = valloc(7914), free(kept);
		kept = calloc(3, 2639), kept = realloc(kept, 7916), free(kept);
		kept = malloc(7918), free(kept);
	}
	return 0;
}
"""

FORKED = r"""
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static void *work(void *unused)
{
	char *kept[100] = { 0 };
	for (int i = 0; i < 20000; i++) {
		free(kept[i % 100]);
		kept[i % 100] = memset(malloc(16 + i * 37 % 5000), 1, 16);
	}
	for (int i = 0; i < 100; i++)
		free(kept[i]);
	return unused;
}
int main(void)
{
	pthread_attr_t attributes;
	pthread_t thread;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 4 << 20);
	pthread_create(&thread, &attributes, work, 0);
	pthread_join(thread, 0);
	for (int i = 0; i < 3; i++) {
		if (!fork()) {
			work(0);
			exit(3);
		}
		wait(0);
	}
	return 0;
}
"""


def build(*command, text=PROGRAM):
    with open("program.c", "w", encoding="utf-8") as file:
        file.write(text)
    equal(0, run([*command, "-g", "program.c", "-o", "program"]).code, command[0])


def check_recorded():
    record(["./program"], "--verify-stacks", "--force")
    trace = Trace()
    check_whole(trace)
    equal(2000, len(trace.of_size(7901)), "blocks")
    equal(2, len({event.thread for event in trace.of_size(7901)}), "threads")
    check(int(trace.end.get("stacks-verified", 0)) > 0, "no stack was verified")
    equal(0, int(trace.end.get("stacks-mismatched", 0)), "stacks that differ")
    return trace


def check_stacks(trace):
    """Each stack goes through deeper, one to ten times, and work, to where the thread began."""
    for event in trace.of_size(7901):
        frames = trace.frames_of(event.stack)
        ours = [trace.module_of(frame) == "program" for frame in frames]
        equal(0, trace.stacks[event.stack][2], f"flags of {frames}")
        check(2 <= ours.index(False) <= 12, f"frames of the program's own: {ours}")
        check(not all(ours), "frames of libc's start")
    depths = {trace.depth(event.stack) for event in trace.of_size(7901)}
    check(max(depths) - min(depths) in (9, 10, 11, 12), f"depths {depths}")


@test
def a_musl_program_is_recorded_exactly_with_whole_stacks():
    if not shutil.which("musl-gcc"):
        raise Skip("needs musl-gcc")
    for options in (["-O0"], ["-O2"], ["-O2", "-no-pie"], ["-O1", "-fomit-frame-pointer", "-s"]):
        build("musl-gcc", *options)
        check_stacks(check_recorded())


@test
def a_stack_that_goes_through_musl_itself_is_whole_or_marked():
    if not shutil.which("musl-gcc"):
        raise Skip("needs musl-gcc")
    build("musl-gcc", "-O1", text=CALLED_BACK)
    record(["./program"])
    trace = Trace()
    check_whole(trace)
    events = trace.of_size(7903)
    check(len(events) > 100, events)
    for stack in {event.stack for event in events}:
        ours = [trace.module_of(frame) == "program" for frame in trace.frames_of(stack)]
        check(trace.stacks[stack][2] or ours.count(True) > 1 and not ours[-1], ours)


@test
def what_a_forked_child_lists_corrects_what_its_parent_had():
    """musl gives a thread's stack back unseen: a list says that it is gone, the child's own too."""
    if not shutil.which("musl-gcc"):
        raise Skip("needs musl-gcc")
    build("musl-gcc", "-O1", text=FORKED)
    record(["./program"], "--rss-exact")
    said = run([TIDEMARK, "report", "--json", "t.tide"]).err
    check("should be mapped" not in said, said)


@test
def what_musls_functions_call_themselves_counts_once():
    if not shutil.which("musl-gcc"):
        raise Skip("needs musl-gcc")
    build("musl-gcc", "-O1", text=ALIGNED)
    record(["./program"])
    trace = Trace()
    check_whole(trace)
    kinds = {7911: "aligned", 7912: "aligned", 7913: "aligned", 7914: "aligned", 7917: "calloc", 7918: "malloc"}
    for size, kind in kinds.items():
        equal([kind] * 50, [event.kind for event in trace.of_size(size)], size)
    equal(50, len([event for event in trace.of_size(7916) if event.kind.startswith("realloc")]))


@test
def a_program_without_eh_frame_hdr_has_whole_stacks():
    narrow = [] if why_not_32_bits() else [["-m32"], ["-m32", "-no-pie"]]
    for options in ([], ["-no-pie"], *narrow):
        build("gcc", "-O1", "-pthread", "-Wl,--no-eh-frame-hdr", *options)
        headers = run(["readelf", "-lW", "program"]).out
        check("GNU_EH_FRAME" not in headers, headers)
        check_stacks(check_recorded())


main()
