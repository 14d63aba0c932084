#!/usr/bin/env python3
# parallel: yes
# timeout: 300
"""A trace in ClickHouse is asked as one in a file is, by every command, with the same answers."""
import atexit
import contextlib
import http.server
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import types
import urllib.parse

from libanswer import TIDEMARK, answer, assemble, make, measured, refused, run, sampled
from libclickhouse import Server
from libfleet import HOSTS, ODD, fleet_of, levels
from libschema import valid
from libtests import PATIENCE_SECONDS, Skip, check, equal, free_port, main, test
from libview import Server as Viewer

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
        # Of a file that is gone it is said that the names are the trace's own.
        equal(*([re.sub(r'"symbol_notes": \[[^]]*\]', "", text) for text in texts] for texts in (here, there)))
        # Once it is here, it is not fetched again; what was taken out of the caches is.
        when = os.stat(kept(trace)).st_ino
        run("report", server.place)
        equal(when, os.stat(kept(trace)).st_ino)
        shutil.rmtree("caches")
        equal(here[1], run("window", server.place, "--by", "stack", "--csv").stdout)


@test
def fetched_traces_are_bounded_and_what_is_in_use_stays():
    caches = os.path.abspath("bounded")
    folder = caches + "/tidemark/traces"
    paths = [assemble(f"bounded{number}", f"trace id={number:032x} began=1 tick=0\nprocess p pid=1\nthread t p tid=1\n"
                      f"@0 t malloc 0x1000 {number}\nend\n") for number in (1, 2, 4)]
    paths.insert(2, make("random.tide", 300, 500, 20_000))

    def ask(number, limit="1G"):
        run("window", f"{server.place}?trace={names[number - 1]}", "--by", "stack", "--from", "20%",
            env={"XDG_CACHE_HOME": caches, "TIDEMARK_TRACES_MAX": limit, "TIDEMARK_INDEX": "always"})

    def there():
        return sorted(names.index(name[:32]) + 1 for name in os.listdir(folder) if name.endswith(".tide") and name[:32] in names)

    with database("bounded") as server:
        names = push(server, *paths)
        for number in (1, 2, 3):
            ask(number)
        equal([1, 2, 3], there())
        own = names[2]
        check([name for name in os.listdir(folder) if name.startswith(own) and name.endswith("-index")], os.listdir(folder))
        # The first is the one that was asked for last; the second is being looked at.
        ask(1)
        with subprocess.Popen([TIDEMARK, "view", f"{server.place}?trace={names[1]}", "--no-open"], stdout=subprocess.PIPE,
                              env={**os.environ, "XDG_CACHE_HOME": caches}) as viewing:
            check(viewing.stdout.readline())
            for name in os.listdir(folder):
                if name.startswith(own):
                    os.utime(os.path.join(folder, name), (1, 1))
            with open(folder + "/mine.tide", "wb") as file:
                file.write(b"x" * 100)
            used = sum(os.path.getsize(os.path.join(at, name)) for at, _, files in os.walk(folder) for name in files)
            ask(4, limit=str(used - 100))
            equal([1, 2, 4], there())
            check(not [name for name in os.listdir(folder) if name.startswith(own)], os.listdir(folder))
            # However small it is: what is asked for now, and what is held.
            ask(3, limit="1")
            equal([2, 3], there())
            viewing.terminate()
        ask(1, limit="1")
        equal([1], there())
        equal(100, os.path.getsize(folder + "/mine.tide"))
        check("TIDEMARK_TRACES_MAX" in refused("window", f"{server.place}?trace={names[0]}",
                                               env={"XDG_CACHE_HOME": caches, "TIDEMARK_TRACES_MAX": "much"}))


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
        server.ask("INSERT INTO memory.blocks VALUES ('x', 'x', 0, 0, 0, '2099-12-31', 99)")
        check("newer tidemark" in refused("report", f"{place}?trace={trace}", code=3))


@test
def a_piece_that_is_missing_or_of_another_size_is_refused():
    path = assemble("kitchen")
    with database("broken") as server:
        push(server, path)
        columns = "trace, file, at, size, bytes, until, part"
        server.ask("CREATE TABLE memory.other AS memory.pieces_rows ENGINE = MergeTree() ORDER BY (trace, file, at)")
        server.ask(f"INSERT INTO memory.other SELECT {columns} FROM memory.pieces_rows")
        for change, said in (("trace, file, at + 1, size, bytes, until, part", "is missing"),
                             ("trace, file, at, size + 9999999, bytes, until, part", "is missing"),
                             ("trace, file, at, size + 1, bytes, until, part", "another size"),
                             ("trace, file, at, size, '', until, part", "another size")):
            server.ask("DROP TABLE memory.pieces_rows")
            server.ask("CREATE TABLE memory.pieces_rows AS memory.other ENGINE = MergeTree() ORDER BY (trace, file, at)")
            server.ask(f"INSERT INTO memory.pieces_rows SELECT {change} FROM memory.other")
            done = run("report", server.place, check=3, env={"XDG_CACHE_HOME": os.path.abspath("empty")})
            check(said in done.stderr and done.stderr.count("\n") == 1 and not done.stdout, change, done.stderr)
            equal([], os.listdir("empty/tidemark/traces") if os.path.exists("empty") else [])


@test
def a_server_that_is_not_there_is_said_soon():
    check("no answer from 127.0.0.1:" in refused("report", f"clickhouse://127.0.0.1:{free_port()}/memory", code=3))
    check("no user or password" in refused("report", "clickhouse://me:s3cret@127.0.0.1:1/memory"))
    check("s3cret" not in refused("report", "clickhouse://me:s3cret@127.0.0.1:1/memory"))


class Nonsense(http.server.BaseHTTPRequestHandler):
    """Answers what a server of tidemark's would, as far as it is told, and something else from then on;
    that it is too busy where it is told nothing. (body, N) breaks off N bytes before the end."""

    def do_POST(self):  # pylint: disable=invalid-name
        self.rfile.read(int(self.headers["Content-Length"] or 0))
        body = self.server.answers[min(self.server.asked, len(self.server.answers) - 1)]
        self.server.asked += 1
        body, missing = body if isinstance(body, tuple) else (body, 0)
        self.send_response(200 if body else 503)
        self.send_header("Content-Length", str(len(body) + missing))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def saying(answers):
    """The place of a server that answers so."""
    with http.server.HTTPServer(("127.0.0.1", 0), Nonsense) as server:
        server.asked, server.answers = 0, answers
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"clickhouse://127.0.0.1:{server.server_port}/memory"
        server.shutdown()


@test
def a_server_that_answers_nonsense_is_refused_with_one_line():
    trace = b"0123456789abcdef0123456789abcdef\n"
    begin = [b"18.16.1\n", b"2\n", b"1\n"]
    for words, answers, said in (
            (("report",), [b"hello"], "not ClickHouse"), (("fleet", "sites"), [b"1.1.54\n"], "too old"),
            (("fleet", "sites"), begin[:1] + [b"what\n"], "no trace was sent"), (("report",), begin[:2] + [b"x\n"], "not ClickHouse"),
            (("report",), begin + [b"0123\n"], "names a trace that is none"), (("report",), begin + [trace, b"\x1b[2J\n"], "is damaged"),
            (("report",), begin + [trace, b"\t0\t4000000000\t1\n"], "is missing"),
            (("report",), begin + [trace, b"\t0\t18446744073709551615\t1\n"], "is missing"),
            (("report",), begin + [trace, b"ff\t0\t5\t1\n"], "push it again"),
            (("report",), begin + [trace, b"\t0\t5\t1\n", b"\xff\xff\xff\xff\xff\xff\xff\xff"], "another size"),
            (("report",), begin + [trace, b"\t0\t5\t1\n", b"\x05hello"], "not a tidemark trace"),
            (("fleet", "grew"), begin + [b"2\t2\t2\t0\t0\n", b"1.0\\nX\x1b[2J\t1\t1\t1\t1\n"], "no version before"),
            (("fleet", "sites"), begin + [b"1\t2\n"], "makes no sense"), (("fleet", "sites"), begin + [b"1\t2\t3\t4\t5"], "makes no sense"),
            # Cut behind a tab; behind a line; a NUL in it.
            (("fleet", "sites"), begin + [b"1\t1\t1\t0\t0\n", b"10\t"], "makes no sense"),
            (("fleet", "traces"), begin + [b"1\t1\t1\t0\t0\n", trace[:-1] + b"\t1\t2\tv\th\t./it\n" + trace[:-1] + b"\t"], "makes no sense"),
            (("fleet", "sites"), begin + [b"1\t1\t1\t0\t0\n", b"10\t20\n\0\t"], "makes no sense"),
            (("fleet", "sites"), begin + [b"1\t1\t1\t0\t0\n", b"nan\tinf\n", b"\\"], "makes no sense")):
        with saying(answers) as place:
            found = refused(*words, place, code=None)
        check(said in found and "\x1b" not in found, answers, found)


@test
def who_interrupts_need_not_wait_for_a_server_that_says_nothing():
    path = assemble("kitchen")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        place = f"clickhouse://127.0.0.1:{port}/memory"
        for words in (("fleet", "sites", place), ("report", place), ("push", path, "--to", place),
                      ("push", path, "--to", f"otlp://127.0.0.1:{port}")):
            with subprocess.Popen([TIDEMARK, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as asking:
                taken, _ = silent.accept()
                check(taken.recv(1))  # the question is under way
                asking.send_signal(signal.SIGINT)
                out, said = asking.communicate(timeout=PATIENCE_SECONDS)
                taken.close()
            equal((-signal.SIGINT, ""), (asking.returncode, out), words)
            check(said in ("", f"tidemark {words[0]}: stopped\n"), words, said)


@test
def a_server_that_was_busy_is_asked_again_and_its_answer_counts():
    with saying([b"", b"18.16.1\n", b"2\n", b"1\n", b"1\t1\t1\t0\t0\n", b"v1\t5\t5\t1\t1\n",
                 b"v1\t10\t100\t10\t10\t1\n"]) as place:
        check("v1" in run("fleet", "trend", place).stdout)


@test
def an_answer_that_breaks_off_is_forgotten_when_it_is_asked_for_again():
    lines = [b"%032x\t1\t2\tv\th\t./it\n" % number for number in (1, 2)]
    with saying([b"18.16.1\n", b"2\n", b"1\n", b"2\t1\t1\t0\t0\n", (lines[0], len(lines[1])), b"".join(lines)]) as place:
        equal([f"{1:032x}", f"{2:032x}"], [row["trace"] for row in answer("fleet", "traces", place)["rows"]])


@test
def an_answer_that_never_ends_is_left_soon_and_not_asked_for_again():
    taken = []

    def pour(listening):
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection, contextlib.suppress(OSError):
                taken.append(connection.recv(65536))
                connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                while True:
                    connection.sendall(b"1\n" * 500_000)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=pour, args=(listening,), daemon=True).start()
        where = f"127.0.0.1:{listening.getsockname()[1]}"
        path = make("random.tide", 300, 500, 20_000)
        for words in (("fleet", "sites", f"clickhouse://{where}/memory"), ("push", path, "--to", f"otlp://{where}")):
            taken.clear()
            _, said, bytes_most = measured(*words, code=3)
            check(f"{where}: it answers with more than 256 MiB" in said and said.count("\n") == 1, said)
            check(bytes_most < 400 << 20, words, bytes_most)
            equal(1, len(taken))
        listening.shutdown(socket.SHUT_RDWR)


@test
def a_server_that_leads_elsewhere_is_not_followed():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        def lead():
            with listening.accept()[0] as connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n")

        threading.Thread(target=lead).start()
        said = refused("fleet", "sites", f"clickhouse://127.0.0.1:{listening.getsockname()[1]}/memory", code=3)
        check("answers 302: it leads elsewhere, which is not followed" in said, said)


# ---- many traces ----

@contextlib.contextmanager
def fleet_database():
    with database("questions") as server:
        if not traces(server):
            fleet_of(server)
        yield server


def fleet(server, question, *words, **more):
    return answer("fleet", question, server.place, *words, **more)


def mean(values):
    return sum(values) / len(values)


def error(values):
    """Twice the standard error of the mean, squared."""
    middle = mean(values)
    return 4 * sum((value - middle) ** 2 for value in values) / (len(values) - 1) / len(values)


def near(expected, found):
    check(abs(expected - found) <= 1, expected, found)


@test
def what_many_traces_say_is_what_their_sites_add_up_to():
    with fleet_database() as server:
        all_runs = [levels(version, host) for version in ("1.0", "1.1") for host in HOSTS] + [{"cache": 1}]
        found = fleet(server, "sites", "-n", "0")
        equal(11, found["runs"])
        equal(["cache", "leak", ODD], [row["function"] for row in found["rows"]])
        for row in found["rows"]:
            held = [each.get(row["function"], 0) for each in all_runs]
            near(2 * sum(held), row["byte_seconds"])
            near(mean(held), row["level_bytes"])
            equal([sum(map(bool, held))] * 2, [row["runs"], row["allocated_count"]])
            equal([max(held), sum(held), sum(held)], [row[key] for key in ("level_most_bytes", "kept_bytes", "allocated_bytes")])
        near(1e6, 1e6 * sum(row["share"] for row in found["rows"]))
        equal(1, len(fleet(server, "sites", "-n", "1")["rows"]))
        equal([5, 10], [fleet(server, "sites", "--label", label)["runs"] for label in ("version=1.0", "version=1.1")][:1]
              + [fleet(server, "sites", "--label", "host=web1")["runs"] * 5])

        # Which grew, from the last version but one to the last.
        for words in ((), ("--before", "1.0", "--after", "1.1"), ("--ago", "23h")):
            found = fleet(server, "grew", *words)
            equal(["1.0", "1.1", 5, 5], [found[key] for key in ("before", "after", "runs_before", "runs_after")])
            equal(["leak", ODD], [row["function"] for row in found["rows"]])
        for row in found["rows"]:
            before, after = ([levels(version, host).get(row["function"], 0) for host in HOSTS] for version in ("1.0", "1.1"))
            near(mean(after) - mean(before), row["change_bytes"])
            near((error(before) + error(after)) ** 0.5, row["spread_bytes"])
            near(mean(after), row["after_bytes"])
        equal(["yes", "no"], [row["sure"] for row in found["rows"]])
        equal("one run", fleet(server, "grew", "--label", "host=web1")["rows"][0]["sure"])

        # Which hosts are not like the others, and why.
        found = fleet(server, "hosts")
        equal({"web4": "cache"}, {row["host"]: row["most_above"] for row in found["rows"] if row["outlier"] == "yes"})
        for row in found["rows"]:
            held = [sum(levels(version, row["host"]).values()) for version in ("1.0", "1.1")]
            equal([2, min(held), max(held)], [row[key] for key in ("runs", "least_bytes", "most_bytes")])
            near(mean(held), row["level_bytes"])
        equal({"too few"}, {row["outlier"] for row in fleet(server, "hosts", "--label", "host=web1")["rows"]})

        # The trend of all, of a function, of one with everything in its name, of a site's number.
        for words, names in (((), None), (("--site", "leak"), {"leak"}), (("--site", ODD), {ODD})):
            rows = fleet(server, "trend", *words)["rows"]
            equal(["1.0", "1.1"], [row["version"] for row in rows])
            for row in rows:
                held = [sum(size for name, size in levels(row["version"], host).items() if not names or name in names)
                        for host in HOSTS]
                near(mean(held), row["level_bytes"])
                near(error(held) ** 0.5, row["spread_bytes"])
                equal([min(held), max(held), 5], [row["least_bytes"], row["most_bytes"], row["hosts"]])
        number = fleet(server, "grew")["rows"][0]["site"]
        equal(fleet(server, "trend", "--site", "leak")["rows"], fleet(server, "trend", "--site", str(number))["rows"])

        found = fleet(server, "traces", "-n", "0")["rows"]
        equal([f"{number:032x}" for number in (10, 9, 8, 7, 6, 11, 5, 4, 3, 2, 1)], [row["trace"] for row in found])
        equal(["web5", "1.1", 2.0, "./server"], [found[0][key] for key in ("host", "version", "seconds", "command")])
        for form in ((), ("--csv",), ("--jsonl",)):
            for question in ("sites", "grew", "hosts", "trend", "traces"):
                lines = run("fleet", question, server.place, *form).stdout.split("\n")
                check(len(lines) >= 3 and "\t" not in "".join(lines) or form == ("--csv",), question, form)


@test
def what_a_fleet_cannot_answer_is_said_in_one_line():
    with database("refused") as server:
        place = server.place
        check("no trace was sent to refused" in refused("fleet", "sites", place, code=3))
        run("push", assemble("kitchen"), "--to", place)
        for words, said in ((("grew",), "has the label version"), (("hosts",), "has the label host"),
                            (("trend",), "has the label version"), (("sites", "--label", "a=b"), "no run"),
                            (("sites", "--site", "x"), "--site is for trend"), (("trend", "--ago", "1h"), "are for grew"),
                            (("sites", "--since", "soon"), "a time"), (("sites", "--label", "x"), "NAME=VALUE"),
                            (("site",), "did you mean sites"), (("grew", "--before", "1", "--ago", "1h"), "not both")):
            check(said in refused("fleet", words[0], place, *words[1:]), words)
        check("QUESTION" in refused("fleet"))
        check("a database" in refused("fleet", "sites"))
        check("clickhouse://" in refused("fleet", "sites", "kitchen.tide"))
        check("no run" in refused("fleet", "sites", place, "--since", "1s"))
    with database("versions") as server:
        fleet_of(server)
        place = server.place
        for words, said in ((("--after", "1.0"), "no version before 1.0"), (("--before", "9"), "no run has version=9"),
                            (("--after", "it's"), "no run has version=it's"), (("--ago", "48h"), "old enough"),
                            (("--before", "1.1"), "compared with itself")):
            check(said in refused("fleet", "grew", place, *words), words)
        check("no site is called nothing" in refused("fleet", "trend", place, "--site", "nothing"))
        # What is less than whole, or of samples, is said.
        check("not complete" not in run("fleet", "sites", place).stdout)
        run("push", sampled(), "--to", place)
        check("1 of the runs were sampled" in run("fleet", "sites", place).stdout)


# ---- the viewer ----


def viewed(*words):
    if run("view", "--help", check=None).returncode:
        raise Skip("this tidemark was built without the viewer (libmicrohttpd)")
    return Viewer(*words, "--no-open")


@test
def the_viewer_answers_what_fleet_writes():
    with fleet_database() as server:
        with viewed(server.place) as viewer:
            told = viewer.ask("/api/view")
            valid(told, "view-fleet")
            equal(server.place, told["place"])
            for question, *words in (("sites",), ("grew",), ("hosts",), ("trend",), ("traces",), ("grew", "--before", "1.0", "--after", "1.1"),
                                     ("grew", "--ago", "23h"), ("trend", "--site", ODD), ("sites", "-n", "1"),
                                     ("sites", "--label", "host=web1", "--label", "version=1.0"), ("sites", "--since", "900000h"),
                                     ("hosts", "--host-label", "version"), ("trend", "--version-label", "host")):
                pairs = [("n" if name == "-n" else name[2:], value) for name, value in zip(words[::2], words[1::2])]
                came = viewer.get("/api/fleet?" + urllib.parse.urlencode([("question", question), *pairs]))
                equal(200, came.status, came.body)
                equal(run("fleet", question, server.place, "-n", "200", *words, "--json").stdout, came.body.decode(), (question, words))
            for query, said in (("", "not a question"), ("question=site", "did you mean sites"), ("question=sites&bye=1", "no parameter 'bye'"),
                                ("question=sites&site=x", "--site is for trend"), ("question=grew&before=1&ago=1h", "not both"),
                                ("question=sites&question=grew", "once"), ("question=trend&site=a&site=b", "once"),
                                ("question=sites&n=10001", "number from"), ("question=sites&since=soon", "a time"),
                                ("question=sites&label=x", "NAME=VALUE"), ("question=sites&label=a%3Db", "no run"),
                                ("question=trend&site=nothing", "no site is called nothing"), ("question=grew&after=3", "no run has version=3")):
                check(said in viewer.refused("/api/fleet?" + query, 400, "usage"), query)
            for path in ("/api/marks", "/api/window", "/api/fleet/", "/api/sites"):
                viewer.refused(path, 404, "path")
            viewer.refused("/api/fleet?question=sites", 401, "token", token=None)


@test
def a_database_that_goes_away_is_an_error_of_its_own():
    begin = [b"18.16.1\n", b"2\n", b"1\n"]
    with saying([*begin, *begin, b"hello", b"hello", *begin, b"1\t1\t1\t0\t0\n", b"10\t"]) as place, viewed(place) as viewer:
        for said in ("makes no sense", "not ClickHouse", "makes no sense"):
            check(said in viewer.refused("/api/fleet?question=sites", 502, "database"), said)


@test
def a_question_whose_page_is_closed_is_not_asked_on():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        answers = [b"18.16.1\n", b"2\n", b"1\n"]

        def talk():
            for body in answers:
                taken, _ = silent.accept()
                with taken:
                    taken.recv(65536)
                    taken.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

        talking = threading.Thread(target=talk)
        talking.start()
        with viewed(f"clickhouse://127.0.0.1:{silent.getsockname()[1]}/memory") as viewer:
            talking.join()
            with socket.create_connection(("127.0.0.1", viewer.port)) as page:
                page.sendall(f"GET /api/fleet?question=sites HTTP/1.1\r\nHost: {viewer.host}\r\n"
                             f"Authorization: Bearer {viewer.token}\r\n\r\n".encode())
                taken, _ = silent.accept()
                check(taken.recv(1))
            with taken:
                taken.settimeout(PATIENCE_SECONDS)
                while taken.recv(65536):
                    pass  # until the viewer hangs up


@test
def what_is_about_one_trace_is_refused_where_there_are_many():
    with database("many") as server:
        viewed_none = "no trace was sent to many"
        if run("view", "--help", check=None).returncode:
            raise Skip("this tidemark was built without the viewer (libmicrohttpd)")
        check(viewed_none in refused("view", server.place, "--no-open", code=3))
        for words in (("--html", "x.html"), ("--diff", "kitchen.tide"), ("--memory", "1G"), ("--mangled",)):
            check(f"{words[0]} is about one trace" in refused("view", server.place, *words), words)
        # A second trace may be in a database, too.
        first, second = push(server, assemble("kitchen"), assemble("family"))
        with viewed(f"{server.place}?trace={first}", "--diff", f"{server.place}?trace={second}") as viewer:
            equal(second, viewer.ask("/api/view")["diff"][:32])


main()
