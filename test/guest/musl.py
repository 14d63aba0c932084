#!/usr/bin/env python3
# parallel: yes
"""The recorder links nothing, so that one library serves programs of another libc as well."""
import shutil

from libguest import Skip, Trace, check_whole, equal, main, record, run, test

PROGRAM = r"""
#include <pthread.h>
#include <stdlib.h>
static void *work(void *unused)
{
	for (int i = 0; i < 1000; i++)
		free(realloc(malloc(7901), 7902));
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


@test
def a_musl_program_is_recorded_exactly():
    if not shutil.which("musl-gcc"):
        raise Skip("needs musl-gcc")
    with open("program.c", "w", encoding="utf-8") as file:
        file.write(PROGRAM)
    equal(0, run(["musl-gcc", "-O0", "-g", "program.c", "-o", "program"]).code, "musl-gcc")
    record(["./program"])
    trace = Trace()
    check_whole(trace)
    equal(2000, len(trace.of_size(7901)), "blocks")
    equal(2, len({event.thread for event in trace.of_size(7901)}), "threads")


main()
