#!/usr/bin/env python3
# parallel: yes
# timeout: 300
"""A trace in ClickHouse is asked as one in a file is, by every command, with the same answers."""
import atexit
import contextlib
import os
import shutil
import time
import types

from libanswer import assemble, make, refused, run
from libclickhouse import Server, free_port
from libtests import check, equal, main, test

os.environ["XDG_CACHE_HOME"] = os.path.abspath("caches")
KEPT = os.path.abspath("caches/tidemark/traces")


SERVERS = []


@contextlib.contextmanager
def database(name):
    """A database of its own in the one server."""
    if not SERVERS:
        SERVERS.append(Server())
        atexit.register(SERVERS[0].kill)
    yield types.SimpleNamespace(place=SERVERS[0].place.replace("/memory", "/" + name),
                                ask=lambda sql: SERVERS[0].ask(sql.replace("memory.", name + ".")))


def push(server, *files):
    """The traces that came anew, in the order of the files."""
    came = []
    for file in files:
        before = traces(server)
        run("push", file, "--to", server.place)
        came += sorted(set(traces(server)) - set(before))
    return came


def traces(server):
    try:
        return [row[0] for row in server.ask("SELECT trace FROM memory.runs")]
    except AssertionError:
        return []  # nothing was sent yet


def kept(trace):
    names = [name for name in os.listdir(KEPT) if name.startswith(trace) and name.endswith(".tide")]
    equal(1, len(names))
    return os.path.join(KEPT, names[0])


def gone(server, table, where):
    """Take rows away; the server does it when it likes."""
    server.ask(f"ALTER TABLE memory.{table} DELETE WHERE {where}")
    for _ in range(300):
        if server.ask(f"SELECT count() FROM memory.{table} WHERE {where}") == [["0"]]:
            return
        time.sleep(0.1)
    check(False, "rows stay")


QUESTIONS = (
    ("report",), ("report", "--json"), ("growth",), ("active", "--at", "50%"), ("transients",), ("findings", "--json"),
    ("window", "--from", "20%", "--to", "70%", "--by", "type,stack"),
    ("window", "--from", "20%", "--to", "70%", "--by", "process,thread,heap,function", "--csv"),
    ("window", "--by", "lifetime", "--size", "16..64", "--impact", "transient", "--json"),
    ("export", "--format", "folded", "-o", "-"),
    ("map",), ("reconcile",), ("plot", "timeline", "--gnuplot", "-o", "-"),
)


@test
def every_command_answers_there_as_on_the_file():
    with database("answers") as server:
        files = assemble("kitchen"), assemble("family"), make("random.tide", 300, 500, 20_000)
        for path, trace in zip(files, push(server, *files)):
            for command, *words in QUESTIONS:
                there = run(command, f"{server.place}?trace={trace[:-2]}", *words, check=None)
                here = run(command, path, *words, check=None)
                equal([here.returncode, here.stdout], [there.returncode, there.stdout.replace(kept(trace), path)],
                      (path, command, words))
            with open(path, "rb") as sent, open(kept(trace), "rb") as came:
                equal(sent.read(), came.read())
        first, second, _ = traces(server)
        there = run("diff", f"{server.place}?trace={first}", f"{server.place}?trace={second}", "--csv").stdout
        equal(run("diff", kept(first), kept(second), "--csv").stdout, there)


@test
def names_come_with_it_to_machines_that_do_not_have_the_program():
    shutil.copy("/bin/ls", "program")
    run("record", "-o", "program.tide", "-f", "-q", "--", "./program", ".")
    asked = ("report", "--json", "-a"), ("window", "--by", "stack", "--csv"), ("growth", "--json")
    with database("names") as server:
        trace, = push(server, "program.tide")
        here = [run(command, "program.tide", *words).stdout for command, *words in asked]
        os.unlink("program")
        there = [run(command, server.place, *words).stdout.replace(kept(trace), "program.tide") for command, *words in asked]
        equal(here, there)
        # Once it is here, it is not fetched again; what was taken out of the caches is.
        when = os.stat(kept(trace)).st_ino
        run("report", server.place)
        equal(when, os.stat(kept(trace)).st_ino)
        shutil.rmtree("caches")
        equal(here[1], run("window", server.place, "--by", "stack", "--csv").stdout)


@test
def what_is_not_there_is_said_in_one_line():
    path, other = assemble("kitchen"), assemble("family")
    with database("missing") as server:
        place = server.place
        check("no trace was sent to missing" in refused("window", place, code=3))
        trace, = push(server, path)
        check("there is no trace 1234" in refused("window", place + "?trace=1234"))
        for odd in ("?trace=xyz", "?trace=%27", "?trace=" + "0" * 33, "?host=a", "?"):
            refused("window", place + odd)
        second, = push(server, other)
        said = refused("report", place)
        check(trace in said and second in said, said)
        same = os.path.commonprefix([trace, second])
        check("several traces" in refused("report", f"{place}?trace={same}") or not same)
        # One that was sent by a version that did not send the file: sent again, it is there.
        gone(server, "blocks", f"trace = '{trace}' AND name = 'pieces'")
        check("push it again" in refused("report", f"{place}?trace={trace}", code=3))
        run("push", path, "--to", place)
        run("report", f"{place}?trace={trace}")
        # Tables that a newer one has made.
        server.ask("INSERT INTO memory.blocks VALUES ('x', 'x', 0, 0, 0, 99)")
        check("newer tidemark" in refused("report", f"{place}?trace={trace}", code=3))


@test
def a_piece_that_is_missing_or_of_another_size_is_refused():
    path = assemble("kitchen")
    with database("broken") as server:
        push(server, path)
        columns = "trace, file, at, size, bytes, block, part"
        server.ask("CREATE TABLE memory.other AS memory.pieces_rows ENGINE = MergeTree() ORDER BY (trace, file, at)")
        server.ask(f"INSERT INTO memory.other SELECT {columns} FROM memory.pieces_rows")
        for change, said in (("trace, file, at + 1, size, bytes, block, part", "is missing"),
                             ("trace, file, at, size + 9999999, bytes, block, part", "is missing"),
                             ("trace, file, at, size + 1, bytes, block, part", "another size"),
                             ("trace, file, at, size, '', block, part", "another size")):
            server.ask("DROP TABLE memory.pieces_rows")
            server.ask("CREATE TABLE memory.pieces_rows AS memory.other ENGINE = MergeTree() ORDER BY (trace, file, at)")
            server.ask(f"INSERT INTO memory.pieces_rows SELECT {change} FROM memory.other")
            done = run("report", server.place, check=3, env={"XDG_CACHE_HOME": os.path.abspath("empty")})
            check(said in done.stderr and done.stderr.count("\n") == 1 and not done.stdout, change, done.stderr)
            equal([], os.listdir("empty/tidemark/traces") if os.path.exists("empty") else [])


@test
def a_server_that_is_not_there_is_said_soon():
    begin = time.monotonic()
    check("no answer from 127.0.0.1:" in refused("report", f"clickhouse://127.0.0.1:{free_port()}/memory", code=3))
    check(time.monotonic() - begin < 60)
    check("no user or password" in refused("report", "clickhouse://me:s3cret@127.0.0.1:1/memory"))
    check("s3cret" not in refused("report", "clickhouse://me:s3cret@127.0.0.1:1/memory"))


main()
