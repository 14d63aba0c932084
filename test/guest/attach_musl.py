#!/usr/bin/env python3
"""Programs of musl's that run already are attached to: threads that are and threads to come are
recorded exactly, children too, and the program is as it was."""
# timeout: 120
# parallel: yes
import json
import os
import re
import shutil

from libguest import SOURCE, TIDEMARK, Skip, Trace, check, equal, main, run, test
from libtests import take

take("attach", "none of its tests")
# pylint: disable=wrong-import-position
from attach import Running, attach_until, check_whole, code_of, maps_of

ROUNDS = 4
THREADS = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void *work(void *size)
{
	for (int i = 0; i < 500; i++)
		free(calloc(1, (size_t)size));
	return malloc((size_t)size + 1);
}
int main(void)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_t threads[4];
	char line[8];

	printf("ready\n"), fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	for (size_t i = 0; i < 4; i++)
		pthread_create(&threads[i], 0, work, (void *)(7600 + 10 * i));
	for (int i = 0; i < 4; i++) {
		void *kept;

		pthread_join(threads[i], &kept);
		free(kept);
	}
	if (fork() == 0) {
		free(malloc(7651));
		_exit(0);
	}
	wait(0);
	return pthread_mutex_lock(&lock);
}
"""


def build(*options, text=None):
    if not shutil.which("musl-gcc"):
        raise Skip("needs musl-gcc")
    source = os.path.join(SOURCE, "test", "programs", "attached.c")
    if text:
        source = "own.c"
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
    made = run(["musl-gcc", "-O1", "-g", "-fno-builtin", "-pthread", "-o", "of_musl", source, *options])
    equal(0, made.code, made.err)
    return os.path.abspath("of_musl")


@test
def several_times_in_a_row_nothing_is_lost_and_nothing_stays():
    running = Running([build(), "3", "0"]).ready()
    with open(f"/proc/{running.pid}/maps", encoding="utf-8") as maps:
        libc = {line.split()[-1] for line in maps if re.search(r"/(libc\.so|ld-musl\S*)$", line)}
    equal(1, len(libc), "C libraries")
    libc = libc.pop()
    before = code_of(running.pid, libc)
    for number in range(ROUNDS):
        ended = attach_until(running, "50ms", trace=f"{number}.tide")
        check(", 0 events lost" in ended.err, ended.err)
        check("memfd:tidemark" not in maps_of(running.pid), "the recorder's memory is still there")
    check(before == code_of(running.pid, libc), "code is not as it was")
    check(running.end(7).endswith(" 0 wrong\n"), "the program was disturbed")
    for number in range(ROUNDS):
        check_whole(f"{number}.tide")


@test
def what_it_does_from_then_on_is_exact():
    for options in ((), ("-no-pie",)):
        running = Running([build(*options, text=THREADS)]).ready()
        recording = Running([TIDEMARK, "record", "-p", str(running.pid), "-o", "t.tide", "-f"])
        while "attached to process" not in recording.process.stderr.readline():
            pass
        _, err = running.process.communicate("go\n")
        equal(0, running.process.returncode, err)
        recording.end(0)
        trace = Trace()
        equal(2, len(trace.processes), "processes")
        for i in range(4):
            events = trace.of_size(7600 + 10 * i)
            equal(500, len(events), "blocks of a thread to come")
            equal(1, len({event.thread for event in events}), "its threads")
            equal(1, len(trace.of_size(7601 + 10 * i)), "and the block that it returns")
            for stack in {event.stack for event in events}:
                equal(0, trace.stacks[stack][2], "flags of its stacks")
        equal(1, len(trace.of_size(7651)), "the child's")
        said = json.loads(run([TIDEMARK, "info", "--json", "t.tide"]).out)
        equal("attach", said["processes"][0]["start"], "how it began")


main()
