#!/usr/bin/env python3
# parallel: yes
# timeout: 300
"""`record --push`: while a program runs, its allocations come into ClickHouse; each is counted once at any moment,
whatever is killed, and at the end the rows are those that `push` sends of the whole trace."""
import glob
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time

from libclickhouse import Server, cluster
from libguest import PATIENCE_SECONDS, TIDEMARK, Skip, check, environment, equal, main, program, test, wait_for
from libtests import free_port

NEVER = 2**64 - 1
COLUMNS = {
    "allocations": "process, thread, heap, kind, address, size, begin_ns, end_ns, gone_ns, begin_event, end_event, end_kind, "
                   "end_thread, stack, end_stack, weight",
    "stacks": "stack, parent, depth, frames, function, identity, names_identity",
    "frames": "frame, inline, function, file, line, offset",
    "processes": "process, pid, exe, command, began_ns, ended_ns, exit",
    "threads": "thread, process, tid",
    "marks": "event, time_ns, name",
    "rss": "process, time_ns, bytes",
    "sites": "site, stack, function, count, bytes, kept_count, kept_bytes, byte_seconds",
    "labels": "name, value",
    "runs": "command, duration_ns, sample_bytes, events_lost, complete",
}


def start(place, *options, operations="150000", pause="5000", how=()):
    return subprocess.Popen([TIDEMARK, "record", "-f", "-o", "live.tide", "--push", place, "--every", "300ms", *options,
                             program("goes_on"), operations, pause, *how], env=environment(),
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def push(*words, code=0):
    done = subprocess.run([TIDEMARK, "push", *words], env=environment(), capture_output=True, text=True, check=False)
    equal(code, done.returncode, done.stderr)
    return done


def rows(server, table):
    if table == "allocations":  # many
        return server.ask(f"SELECT count(), sum(cityHash64({COLUMNS[table]})) FROM memory.{table}")
    return sorted(server.ask(f"SELECT {COLUMNS[table]} FROM memory.{table}"))


def pid_of(process):
    """The traced program's."""
    def look():
        found = subprocess.run(["pgrep", "-P", str(process.pid), "-x", "goes_on"], capture_output=True, text=True, check=False)
        return found.stdout.split()
    wait_for(look, "the program")
    return int(look()[0])


def child(process, word):
    """A child of record's that has the word in its command line."""
    found = subprocess.run(["pgrep", "-P", str(process.pid), "-f", "--", word], capture_output=True, text=True, check=False)
    return [int(pid) for pid in found.stdout.split()]


def count(server):
    try:
        return [int(value) for value in server.ask(
            "SELECT count(), uniqExact(begin_event), countIf(end_kind = 'running') FROM memory.allocations")[0]]
    except AssertionError:
        return [0, 0, 0]  # no tables yet


def same_as_whole(server, trace="live.tide"):
    """What is there is what a push of the whole file brings, and that brings nothing more."""
    said = push(trace, "--to", server.place).stdout
    check(" 0 rows sent" in said, said)
    found = {table: rows(server, table) for table in COLUMNS}
    server.ask("DROP DATABASE memory")
    push(trace, "--to", server.place)
    for table, values in found.items():
        equal(rows(server, table), values, table)


@test
def each_is_counted_once_at_any_moment():
    with Server() as server:
        process = start(server.place, "--label", "version=1", operations="100000000", how=("threads",))
        pid = pid_of(process)
        seen = []

        def look():
            seen.append(count(server))
            equal(seen[-1][0], seen[-1][1], "rows and blocks")
            # Some were seen while they lived.
            return len({one[0] for one in seen}) > 3 and any(one[2] > 1000 for one in seen)
        wait_for(look, "epochs")
        os.kill(pid, signal.SIGTERM)
        while process.poll() is None:
            look()
            time.sleep(0.1)
        said = process.communicate()[1]
        equal(-signal.SIGTERM, process.returncode, said)
        check("rows sent" in said, said)
        same_as_whole(server)
        done = subprocess.run([TIDEMARK, "report", server.place, "--json"], env=environment(), capture_output=True, text=True,
                              check=False)
        equal(0, done.returncode, done.stderr)


@test
def a_trace_goes_to_one_shard_of_a_cluster_whatever_is_killed():
    with cluster() as (servers, place):
        process = start(place, "--cluster", "two", operations="100000000")
        pid = pid_of(process)

        def epochs(more):
            def look():
                found = count(servers[0])
                equal(found[0], found[1], "rows and blocks")
                return found[0] > more
            wait_for(look, "epochs")
        epochs(0)
        of_each = [int(server.ask("SELECT count() FROM memory_shard.allocations")[0][0]) for server in servers]
        equal(1, sum(each > 0 for each in of_each), of_each)
        there = max(servers, key=lambda server: of_each[servers.index(server)])
        there.kill()
        there.start()
        epochs(sum(of_each))
        os.kill(pid, signal.SIGTERM)
        said = process.communicate()[1]
        check("rows sent" in said, said)
        for way in ((), ("--follow",)):
            check(" 0 rows sent" in push("live.tide", *way, "--to", place, "--cluster", "two").stdout)
        found = [{table: rows(server, table) for table in COLUMNS} for server in servers]
        equal(found[0], found[1])
        with Server() as alone:
            push("live.tide", "--to", alone.place)
            for table, values in found[0].items():
                equal(rows(alone, table), values, table)


@test
def a_trace_that_ended_is_sent_once_whichever_way():
    subprocess.run([TIDEMARK, "record", "-q", "-o", "ended.tide", program("goes_on"), "20000", "0"], env=environment(),
                   stdout=subprocess.DEVNULL, check=True)
    with Server() as server:
        whole = None
        for ways in (((), ("--follow",)), (("--follow",), ()), (("--follow",), ("--follow",))):
            for way in ways:
                said = push("ended.tide", *way, "--to", server.place).stdout
            check(" 0 rows sent" in said, ways, said)
            whole = whole or {table: rows(server, table) for table in COLUMNS}
            for table, values in whole.items():
                equal(values, rows(server, table), (ways, table))
            server.ask("DROP DATABASE memory")
        # Both at once: the second of two that do not go together is refused.
        both = [subprocess.Popen([TIDEMARK, "push", "ended.tide", *way, "--to", server.place], env=environment(),
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for way in ((), ("--follow",))]
        for one in both:
            said = one.communicate()[1]
            check(one.returncode == 0 or "being sent by another" in said, one.returncode, said)
        push("ended.tide", "--to", server.place)
        for table, values in whole.items():
            equal(values, rows(server, table), table)


@test
def what_ends_before_it_is_sent_is_sent_once():
    with Server() as server:
        process = start(server.place, "--every", "1h", operations="20000", pause="0")
        said = process.communicate()[1]
        equal(0, process.returncode, said)
        same_as_whole(server)


@test
def who_was_killed_is_gone_on_with():
    with Server() as server:
        process = start(server.place, operations="100000000")
        wait_for(lambda: count(server)[0] > 20000, "rows")
        os.kill(child(process, "--follow")[0], signal.SIGKILL)
        pid = pid_of(process)
        check("being written" in push("live.tide", "--to", server.place, code=3).stderr)
        before = count(server)
        # Another goes on while it is written; and the collector dies.
        again = subprocess.Popen([TIDEMARK, "push", str(pid), "--follow", "--every", "100ms", "--to", server.place],
                                 env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        wait_for(lambda: count(server)[0] > before[0] + 20000, "more rows")
        check("being sent by another" in push("live.tide", "--follow", "--to", server.place, code=3).stderr)
        collector = child(process, "tidemark record")
        os.kill(collector[0], signal.SIGKILL)
        equal(0, again.wait(), again.stderr.read())
        os.kill(pid, signal.SIGKILL)
        process.communicate()
        found = count(server)
        equal(found[0], found[1])
        same_as_whole(server)


def is_free(port):
    with socket.socket() as asked:
        try:
            asked.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


@test
def a_database_that_has_nothing_of_it_any_more_is_said():
    with Server() as server:
        process = start(server.place, operations="100000000")
        pid = pid_of(process)
        wait_for(lambda: count(server)[0] > 500, "rows")
        server.ask("TRUNCATE TABLE memory.blocks")
        said = ""
        while "not sent to its end" not in said:
            said += process.stderr.readline() or "(no more is said) not sent to its end"
        os.kill(pid, signal.SIGTERM)
        process.communicate()
        check("nothing of this recording any more" in said, said)
        push("live.tide", "--to", server.place)
        found = count(server)
        check(found[0] == found[1] > 500, found)


@test
def a_database_that_is_away_is_waited_for():
    with Server() as server:
        process = start(server.place, "--sample", "4K", operations="100000000", pause="1000")
        pid = pid_of(process)
        wait_for(lambda: count(server)[0] > 500, "rows")
        server.kill()
        check(not is_free(server.http), "somebody else could answer at its port meanwhile")
        said = ""
        while "waits in live.tide" not in said:
            said += process.stderr.readline() or "(no more is said) waits in live.tide"
        server.start()
        before = count(server)[0]
        wait_for(lambda: count(server)[0] > before + 500, "more rows")
        os.kill(pid, signal.SIGTERM)
        said += process.communicate()[1]
        equal(-signal.SIGTERM, process.returncode)
        check("answers again" in said and "no more is said" not in said, said)
        same_as_whole(server)


@test
def what_did_not_fit_into_the_spool_is_said():
    with Server() as server:
        process = start(server.place, "--spool", "8M", operations="100000000", pause="0")
        pid = pid_of(process)
        wait_for(lambda: count(server)[0] > 5000, "rows")
        server.kill()
        # It is cut four times meanwhile, half of it each time: what the follower had, which may be as
        # far ahead as the end of what was written, is gone.
        def files():
            return os.stat("live.tide").st_ino
        for _ in range(4):
            before = files()
            wait_for(lambda at=before: files() != at, "another file")
        check(os.path.getsize("live.tide") < 12 << 20)
        server.start()
        os.kill(pid, signal.SIGKILL)
        said = process.communicate()[1]
        check(re.search(r"not sent: what began and ended from .* to .*, which the trace has no more", said), said)
        found = count(server)
        check(found[0] > 5000, found)
        equal([["0"]], server.ask("SELECT complete FROM memory.runs"))
        info = subprocess.run([TIDEMARK, "info", "live.tide"], env=environment(), capture_output=True, text=True, check=False).stdout
        check("spool=8M" in info, info)
        # Rows alone are there.
        done = subprocess.run([TIDEMARK, "report", server.place], env=environment(), capture_output=True, text=True, check=False)
        check(done.returncode != 0 and "while it was recorded" in done.stderr, done)


@test
def a_cut_trace_is_sent_whole():
    with Server() as server:
        process = start(server.place, "--spool", "8M", operations="900000", pause="1000")
        said = process.communicate()[1]
        equal(0, process.returncode, said)
        check("not sent" not in said, said)
        found = count(server)
        check(os.path.getsize("live.tide") < 12 << 20)
        # Each operation allocates once; and some of the loader's.
        check(900000 <= found[0] < 901000, found)
        equal([["4097"]], server.ask(f"SELECT count() FROM memory.allocations WHERE end_kind = 'exit' AND end_ns = {NEVER} AND size > 0 AND function != '' AND 1"
                                     .replace("AND function != '' AND 1", "AND stack != 0")))


def figures_of(path):
    """Of a part: recording id, blocks of before, allocations, blocks that live at its end."""
    def json_of(*words):
        done = subprocess.run([TIDEMARK, *words, "--json"], env=environment(), capture_output=True, text=True, check=False)
        equal(0, done.returncode, done.stderr)
        return json.loads(done.stdout)
    heap = json_of("report", path)["heap"]
    return json_of("info", path)["trace"]["recording_id"], heap["before"]["count"], heap["allocations"], heap["live_at_exit"]["count"]


@test
def each_part_of_a_rotated_recording_is_a_trace():
    with Server() as server:
        def runs(which):
            try:
                return int(server.ask(f"SELECT count() FROM memory.runs WHERE {which}")[0][0])
            except AssertionError:
                return 0
        process = start(server.place, "--rotate", "1500ms", "--ttl", "30d", operations="100000000")
        pid = pid_of(process)
        wait_for(lambda: runs("complete = 1") >= 2, "parts")
        os.kill(pid, signal.SIGTERM)
        said = process.communicate()[1]
        equal(-signal.SIGTERM, process.returncode, said)
        equal(1, said.count("has no TTL"), said)
        parts = sorted(glob.glob("live.*.tide"), key=lambda name: int(name.split(".")[1])) + ["live.tide"]
        equal(len(parts), runs("complete = 1"), said)
        equal([["30"]], server.ask("SELECT DISTINCT toInt64(until) - toInt64(today()) FROM memory.blocks WHERE name = 'allocations'"))
        seen = set()
        for path in parts:
            trace, before, allocations, live = figures_of(path)
            check(trace not in seen and (before > 0) == bool(seen), path, trace, before)
            seen.add(trace)
            equal([[str(allocations), str(live)]],
                  server.ask(f"SELECT sum(count), sum(kept_count) FROM memory.sites WHERE trace = '{trace}'"), path)
        said = push(*parts, "--to", server.place).stdout
        equal(len(parts), said.count(" 0 rows sent"), said)
        found = {table: rows(server, table) for table in COLUMNS}
        server.ask("DROP DATABASE memory")
        push(*parts, "--to", server.place)
        for table, values in found.items():
            equal(rows(server, table), values, table)


@test
def what_cannot_be_is_refused_before_the_program_starts():
    with open("who", "w", encoding="ascii") as file:
        file.write("writer\ns3cret\n")
    os.chmod("who", 0o644)
    place = f"clickhouse://127.0.0.1:{free_port()}/memory"
    for words in (("--push", "http://127.0.0.1/x"), ("--push", "clickhouse://127.0.0.1"), ("--push", "clickhouse://a:s3cret@127.0.0.1/x"),
                  ("--push", place, "--credentials", "who"), ("--push", place, "--spool", "1M"), ("--push", place, "--rotate", "1h", "--spool", "1G"),
                  ("--push", place, "--ttl", "1h"), ("--ttl", "1d"),
                  ("--push", place, "--every", "soon"), ("--spool", "1G"), ("--push", place, "--index")):
        done = subprocess.run([TIDEMARK, "record", *words, "touch", "started"], env=environment(), capture_output=True, text=True,
                              check=False)
        equal(125, done.returncode, words)
        check(done.stderr.count("\n") <= 2 and "s3cret" not in done.stderr, words, done.stderr)
    check(not os.path.exists("started"))


@test
def who_sends_and_cannot_be_watched_is_not_left_running():
    if not shutil.which("strace"):
        raise Skip("needs strace")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        done = subprocess.run(["strace", "-qq", "-o", "/dev/null", "-e", "trace=pidfd_open", "-e",
                               "inject=pidfd_open:error=EMFILE", TIDEMARK, "record", "-f", "-o", "live.tide", "--push",
                               f"clickhouse://127.0.0.1:{silent.getsockname()[1]}/memory", "/bin/true"],
                              env=environment(), capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS)
        check("cannot start what sends the trace: Too many open files" in done.stderr, done.stderr)
        equal([], [pid for pid in os.listdir("/proc") if pid.isdigit() and is_sender(pid)], "who sends")


def is_sender(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return b"--follow" in file.read() and os.readlink(f"/proc/{pid}/cwd") == os.getcwd()
    except OSError:
        return False


@test
def who_sends_is_in_no_place():
    with open("who", "w", encoding="ascii") as file:
        file.write("writer\ns3cret\n")
    os.chmod("who", 0o600)
    with Server() as server:
        process = start(server.place, "--credentials", "who", operations="100000000")
        wait_for(lambda: count(server)[0] > 5000, "rows")
        for pid in [process.pid] + child(process, "tidemark"):
            for name in ("cmdline", "environ"):
                with open(f"/proc/{pid}/{name}", "rb") as file:
                    check(b"s3cret" not in file.read(), pid, name)
        os.kill(pid_of(process), signal.SIGKILL)
        said = process.communicate()[1]
        with open("live.tide", "rb") as file:
            check(b"s3cret" not in file.read() and "s3cret" not in said)
        # A wrong password is said, and the program is recorded all the same.
        done = subprocess.run([TIDEMARK, "record", "-f", "-o", "live.tide", "--push", server.place, "true"], capture_output=True,
                              text=True, check=False, env=environment(TIDEMARK_CLICKHOUSE_USER="writer",
                                                                      TIDEMARK_CLICKHOUSE_PASSWORD="wr0ng"))
        equal(0, done.returncode)
        check("refuses this user or password" in done.stderr and "wr0ng" not in done.stderr and "tidemark push live.tide"
              in done.stderr, done.stderr)


@test
def a_server_that_does_not_answer_is_asked_for_some_seconds_once():
    """Not each of the tries some times in turn, which took two minutes."""
    asked = []
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(64)

        def refuse():
            while True:
                try:
                    visitor, _ = listening.accept()
                except OSError:
                    return
                asked.append(1)
                visitor.close()
        threading.Thread(target=refuse, daemon=True).start()
        place = f"clickhouse://127.0.0.1:{listening.getsockname()[1]}/memory"
        done = subprocess.run([TIDEMARK, "record", "-o", "gone.tide", "--push", place, "true"],
                              env=environment(), capture_output=True, text=True, check=False)
        listening.shutdown(socket.SHUT_RDWR)
    equal(0, done.returncode, done.stderr)
    check("no answer from" in done.stderr, done.stderr)
    check(len(asked) <= 2 * 8, f"asked {len(asked)} times", done.stderr)


main()
