#!/usr/bin/env python3
# soak: only
# timeout: 600
"""`tidemark push` that is killed, whose server is killed, and two at once: every row is there once."""
import signal
import subprocess
import time

from libanswer import TIDEMARK, answer, make, run
from libclickhouse import Server
from libtests import check, equal, main, test


def push(place, *files):
    return run("push", *files, "--to", place)


def figures(server):
    return server.ask("SELECT count(), sum(size), sum(begin_event), sum(end_ns) FROM memory.allocations")[0]


@test
def a_push_that_broke_off_goes_on_and_nothing_is_doubled():
    path = make("many.tide", 300, 500, 1_200_000)
    with Server() as server:
        push(server.place, path)
        whole = figures(server)
        equal(str(answer("window", path)["total"]["allocated_count"]), whole[0])
        equal("0 rows sent", push(server.place, path).stdout.split(": ")[1].split(" (")[0])
        equal(whole, figures(server))
        server.ask("DROP DATABASE memory")
        # Ends when some blocks are there, and not all.
        running = subprocess.Popen([TIDEMARK, "push", path, "--to", server.place], stdout=subprocess.DEVNULL)
        while running.poll() is None:
            try:
                if server.ask("SELECT count() FROM memory.blocks") >= [["1"]]:
                    running.send_signal(signal.SIGKILL)
                    break
            except AssertionError:
                pass  # there are no tables yet
        running.wait()
        # Rows without a record of their block are not seen.
        seen = int(figures(server)[0])
        check(seen < int(whole[0]) or running.returncode == 0, seen)
        push(server.place, path)
        equal(whole, figures(server))


@test
def a_server_that_is_killed_and_comes_back_has_all_of_it_once():
    path = make("many.tide", 300, 500, 1_200_000)
    with Server() as server:
        running = subprocess.Popen([TIDEMARK, "push", path, "--to", server.place], stdout=subprocess.DEVNULL)
        while True:
            try:
                if server.ask("SELECT count() FROM memory.allocations_rows") > [["0"]] or running.poll() is not None:
                    break
            except AssertionError:
                time.sleep(0.01)
        server.kill()
        server.start()
        equal(0, running.wait())
        total = answer("window", path)["total"]
        equal([str(total["allocated_count"]), str(total["allocated"])], figures(server)[:2])


@test
def two_pushes_at_once_are_seen_once():
    path = make("many.tide", 300, 500, 1_200_000)
    with Server() as server:
        both = [subprocess.Popen([TIDEMARK, "push", path, "--to", server.place], stdout=subprocess.DEVNULL)
                for _ in range(2)]
        equal([0, 0], [running.wait() for running in both])
        equal(str(answer("window", path)["total"]["allocated_count"]), figures(server)[0])


main()
