#!/usr/bin/env python3
"""Many threads: exact, in an order in which no address is ever owned twice."""
# timeout: 180
# parallel: yes
import collections
import json

from libguest import (TIDEMARK, Trace, check, check_whole, environment, equal, main, program,
                      python, record, record_witnessed, run, test)


def crowd(how):
    ended, witness = record_witnessed([program("crowd"), how])
    trace = Trace()
    check_whole(trace, witness)
    return int(ended.out), trace


@test
def eight_threads_that_free_each_others_blocks_never_own_one_twice():
    steps, trace = crowd("stress")
    workers = collections.Counter(event.thread for event in trace.events
                                  if event.kind == "malloc")
    equal(8, sum(count >= 20000 for count in workers.values()), "threads with all their steps")
    owners, foreign = {}, 0
    for event in trace.events:
        if event.kind == "malloc":
            owners[event.address] = event.thread
        elif event.kind == "free":
            foreign += owners.pop(event.address, event.thread) != event.thread
    check(foreign > steps // 20, f"only {foreign} frees were another thread's")


@test
def a_thousand_threads_at_once():
    own, trace = crowd("together")
    equal(own, len(trace.of_size(7801)) + len(trace.of_size(7802)), "blocks")
    equal(1000, len({event.thread for event in trace.of_size(7802)}), "threads")
    equal(100000, trace.frees_of_size(7801), "frees")


@test
def a_hundred_threads_go_round_their_rings():
    record([program("crowd"), "busy", "100"], "--force")
    told = json.loads(run([TIDEMARK, "report", "--json", "t.tide"]).out)["trace"]
    equal((0, True), (told["events_lost"], told["complete"]), "events lost, and all is there")
    check(told["events"] >= 4000000, f"{told['events']} events")


THREADS = """
import threading
here = threading.Barrier(101)
def work(): bytearray(5000); here.wait(); here.wait()
threads = [threading.Thread(target=work) for _ in range(100)]
for thread in threads: thread.start()
here.wait()
print(sum("memfd:tidemark " in line for line in open("/proc/self/maps")))
here.wait()
"""


@test
def a_thread_takes_one_mapping_of_the_segment():
    command, variables = python()
    ended = record([*command, "-c", THREADS], "--force", env=environment(**variables))
    check(100 < int(ended.out) < 100 + 50, f"{ended.out} mappings of 101 threads")


@test
def twenty_thousand_threads_one_after_the_other():
    own, trace = crowd("in_turn")
    equal(own, len(trace.of_size(7803)), "blocks")
    equal(own, trace.frees_of_size(7803), "frees")
    equal(own, len({event.thread for event in trace.of_size(7803)}), "threads")


@test
def a_thread_without_room_for_its_lane_is_counted_and_told_and_takes_nothing():
    for more in (1024, 2048, 4096):
        _, alone = map(int, run([program("crowd"), "tight", str(more)]).out.split())
        ended = record([program("crowd"), "tight", str(more)], "--force", "--strict", code=125)
        own, grown = map(int, ended.out.split())
        # With more room there is a stack, and nothing else, either way.
        check(grown <= alone + 64, f"{more} KiB: {grown} KiB for {alone} KiB")
        trace = Trace()
        equal(0, len(trace.of_size(7804)), "blocks of the thread")
        check(trace.events_lost() >= 2 * own, f"{trace.events_lost()} events lost")
        said = " ".join(run([TIDEMARK, "report", "t.tide"]).out.split())
        check("no memory could be had to record more threads" in said, said)
        check("no memory could be had" in run([TIDEMARK, "info", "t.tide"]).out, "info")


main()
