#!/usr/bin/env python3
# parallel: yes
# timeout: 300
"""`tidemark push`: every row of a trace is in ClickHouse once, whatever happens on the way, and the questions
of `tidemark window` have the same answers there."""
import http.server
import os
import re
import threading
import time

from libanswer import SOURCE, answer, assemble, make, refused, run
from libclickhouse import Server
from libdisk import Disk
from libtests import check, equal, free_port, main, test
from librows import columns, databases, sql


def push(place, *files, code=0, **more):
    return run("push", *files, "--to", place, check=code, **more)


def text(value):
    return f"[{','.join(map(str, value))}]" if isinstance(value, list) else str(value)


@test
def the_rows_are_those_of_sql():
    databases()
    with Server() as server:
        for path in (assemble("kitchen"), assemble("family"), make("random.tide", 300, 500, 20_000)):
            push(server.place, path)
            trace = sql(path, "SELECT trace FROM runs")[0]["trace"]
            for table, kinds in columns().items():
                names = ", ".join(f'"{name}"' for name, kind in kinds if kind != "double")
                quoted = names.replace('"', "`")
                found = server.ask(f"SELECT {quoted} FROM memory.{table} WHERE trace = '{trace}' FORMAT TabSeparatedRaw")
                expected = [[text(value) for value in row.values()] for row in sql(path, f"SELECT {names} FROM {table}")]
                equal(sorted(expected), sorted(found), (path, table))


@test
def a_window_has_the_same_answer_there():
    path = make("random.tide", 300, 500, 20_000)
    with Server() as server:
        push(server.place, path)
        check("0 rows sent" in push(server.place, path).stdout)
        window = answer("window", path, "--by", "type", "--from", "20%", "--to", "70%")
        found = server.ask(
            "SELECT multiIf(begin_ns > {0}, if(end_ns <= {1}, 'AIFI', 'AIFO'), end_ns <= {1}, 'AOFI', 'AOFO') AS type, "
            "count(), sum(size) FROM memory.allocations WHERE begin_ns <= {1} AND end_ns > {0} GROUP BY type"
            .format(window["from_ns"], window["to_ns"]))
        equal(sorted([row["keys"]["type"], str(row["count"]), str(row["size"])] for row in window["rows"] if row["count"]),
              sorted(found))
        with Disk("cache", 16 << 10):
            said = run("report", server.place, check=3, env={"XDG_CACHE_HOME": os.path.abspath("cache")}).stderr
            check("cannot fetch the trace to " in said and "No space left" in said and said.count("\n") == 1, said)
            equal([], os.listdir("cache/tidemark/traces"))


@test
def another_part_of_a_recording_is_not_mixed_with_it():
    path = make("random.tide", 300, 500, 20_000)
    run("trim", path, "--from", "50%", "-o", "part.tide", check=0)
    with Server() as server:
        push(server.place, "part.tide")
        before = server.ask("SELECT count(), sum(size) FROM memory.allocations")
        check("another part of this recording" in push(server.place, path, code=3).stderr)
        equal(before, server.ask("SELECT count(), sum(size) FROM memory.allocations"))
        check("0 rows sent" in push(server.place, "part.tide").stdout)


@test
def a_copy_that_was_sent_first_stays_what_it_was():
    path = make("long.tide", 300, 500, 2_200_000)
    check(os.path.getsize(path) > 4 << 20, os.path.getsize(path))
    run("trim", path, "-o", "begin.tide", "--to", "10%")
    # As many rows, and yet not the same: it is trimmed.
    short = make("short.tide", 300, 500, 2_000)
    run("trim", short, "-o", "same.tide", "--from", "0s")
    with Server() as server:
        push(server.place, "begin.tide")
        check("another part of this recording" in push(server.place, path, code=3).stderr)
        equal(run("window", "begin.tide", "--csv").stdout, run("window", server.place, "--csv").stdout)
        other = server.place.replace("/memory", "/other")
        push(other, short)
        check("another part of this recording" in push(other, "same.tide", code=3).stderr)


@test
def what_the_howto_asks_is_answered():
    path = make("random.tide", 300, 500, 20_000)
    with open(os.path.join(SOURCE, "docs/howto/fleet.md"), encoding="utf-8") as file:
        asked = re.findall(r"```sql\n(.*?)```", file.read(), re.S)
    with Server() as server:
        push(server.place, path, assemble("kitchen"))
        for question in asked:
            check(server.ask(question.replace("FROM_NS", "0").replace("TO_NS", "5000000")), question)
        # All that was never freed and has a stack, over both.
        kept = sum(answer("window", each, "--by", "none")["total"]["impacting_size"] for each in (path, "kitchen.tide"))
        without = int(server.ask("SELECT sum(size) FROM memory.allocations WHERE stack = 0 AND end_ns = 18446744073709551615")[0][0])
        sites = server.ask(asked[1].replace("LIMIT 20", ""))
        equal(kept, sum(int(row[2]) for row in sites), without)
        server.ask("ALTER TABLE memory.blocks DELETE WHERE trace LIKE '0000%'")
        for _ in range(100):
            if server.ask("SELECT count() FROM memory.runs") == [["1"]]:
                break
            time.sleep(0.1)
        equal([["1"]], server.ask("SELECT count() FROM memory.runs"))


@test
def who_sends_is_in_no_place_and_in_no_message():
    path = assemble("kitchen")
    check("TIDEMARK_CLICKHOUSE_PASSWORD" in refused("push", path, "--to", "clickhouse://writer:s3cret@127.0.0.1:1/memory"))
    with open("who", "w", encoding="ascii") as file:
        file.write("writer\ns3cret\n")
    os.chmod("who", 0o644)
    check("chmod 600" in refused("push", path, "--to", "clickhouse://127.0.0.1:1/memory", "--credentials", "who"))
    os.chmod("who", 0o600)
    with Server() as server:
        said = push(server.place, path, code=3, env={"TIDEMARK_CLICKHOUSE_USER": "writer",
                                                     "TIDEMARK_CLICKHOUSE_PASSWORD": "wr0ng"}).stderr
        check("refuses this user or password" in said and "wr0ng" not in said, said)
        push(server.place, path, env={"TIDEMARK_CLICKHOUSE_USER": "writer", "TIDEMARK_CLICKHOUSE_PASSWORD": "s3cret"})
        run("push", path, "--to", server.place, "--credentials", "who")
        # Tables that a newer one has made.
        server.ask("INSERT INTO memory.blocks VALUES ('x', 'x', 0, 0, 0, '2099-12-31', 99)")
        check("newer tidemark" in push(server.place, path, code=3).stderr)


@test
def who_asks_is_two_lines_and_no_more():
    for text, said in (("me", "two lines"), ("", "two lines"), ("\n", "two lines"), ("me s3cret\n", "two lines"), ("\ns3cret\n", "two lines"),
                       ("me\ns3cret\nmore", "two lines"), ("me\ns3c\x01ret\n", "control characters"), ("x" * 70_000, "who")):
        with open("who", "w", encoding="ascii") as file:
            file.write(text)
        os.chmod("who", 0o600)
        line = refused("fleet", "sites", "clickhouse://127.0.0.1:1/memory", "--credentials", "who", code=3 if len(text) > 9999 else 2)
        check(said in line and "s3c" not in line, text[:20], line)
    for text in ("me\n\n", "me\r\ns3cret\r\n", "me\ns3cret"):
        with open("who", "w", encoding="ascii", newline="") as file:
            file.write(text)
        check("no answer" in refused("fleet", "sites", "clickhouse://127.0.0.1:1/memory", "--credentials", "who", code=3))
    for name in ("USER", "PASSWORD"):
        line = refused("fleet", "sites", "clickhouse://127.0.0.1:1/memory", env={"TIDEMARK_CLICKHOUSE_" + name: "s3cret\r\nX-Other: 1"})
        check("control characters" in line and "s3cret" not in line, line)


@test
def what_has_a_time_to_live_is_not_seen_after_it():
    path = assemble("kitchen")
    with Server() as server:
        # 18.16 has no TTL of its own: that is said, once.
        said = run("push", path, assemble("family"), "--to", server.place, "--ttl", "90d").stderr
        equal(1, said.count("this ClickHouse has no TTL"), said)
        whole = server.ask("SELECT count() FROM memory.allocations")
        days = server.ask("SELECT DISTINCT toInt64(until) - toInt64(today()) FROM memory.blocks WHERE name = 'allocations'")
        equal([["90"]], days)
        equal(whole, server.ask("SELECT count() FROM memory.allocations_rows WHERE until - 90 = today()"))
        # The last day, and the day after.
        for age, seen in ((90, whole), (91, [["0"]])):
            server.ask("DROP TABLE IF EXISTS memory.other")
            server.ask("CREATE TABLE memory.other AS memory.blocks ENGINE = MergeTree() ORDER BY trace")
            server.ask(f"INSERT INTO memory.other SELECT trace, name, block, part, rows, until - {age}, schema_version FROM memory.blocks")
            server.ask("RENAME TABLE memory.blocks TO memory.kept, memory.other TO memory.blocks")
            equal(seen, server.ask("SELECT count() FROM memory.allocations"))
            if age == 90:
                server.ask("RENAME TABLE memory.blocks TO memory.other, memory.kept TO memory.blocks")
        # It was there: what fleet asks stays.
        equal([["2"]], server.ask("SELECT count() FROM memory.runs"))
        trace = server.ask("SELECT trace FROM memory.runs")[0][0]
        check("push it again" in refused("report", server.place + "?trace=" + trace, code=3))
        push(server.place, path, "family.tide")
        equal(whole, server.ask("SELECT count() FROM memory.allocations"))
    for odd in ("90", "d", "-1d", "0d", "1h", "99999999d"):
        check("90d expected" in refused("push", path, "--to", server.place, "--ttl", odd))


# ---- servers that are none ----

class Odd(http.server.BaseHTTPRequestHandler):
    answers = []

    def do_POST(self):  # pylint: disable=invalid-name
        self.rfile.read(int(self.headers["Content-Length"] or 0))
        status, body = self.answers[min(self.server.asked, len(self.answers) - 1)]
        self.server.asked += 1
        if status is None:
            self.connection.close()
            return
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) + (100 if status == 206 else 0)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def odd(*answers):
    """What `push` says of a server that answers so, one line."""
    Odd.answers = answers
    with http.server.HTTPServer(("127.0.0.1", 0), Odd) as server:
        server.asked = 0
        threading.Thread(target=server.serve_forever, daemon=True).start()
        said = refused("push", assemble("kitchen"), "--to", f"clickhouse://127.0.0.1:{server.server_port}/memory", code=3)
        server.shutdown()
        return said, server.asked


@test
def a_server_that_answers_oddly_is_refused_with_one_line():
    for answers, expected in (
            ([(200, b"<html>hello</html>")], "not ClickHouse"),
            ([(200, b"1.1.54\n")], "too old"),
            ([(404, b"no such page\nmore\n")], "answers 404: no such page"),
            ([(200, b"18.16.1\n"), (500, b"Code: 243, e.displayText() = DB::Exception: Cannot reserve\x1b[2J\n")], "Cannot reserve"),
            ([(200, b"18.16.1\n"), (500, b"")], "answers 500"),
            ([(206, b"18.16")] * 9, "no answer from"),
            ([(200, b"18.16.1\n")] + [(200, b"")] * 20, "not ClickHouse")):
        said, _asked = odd(*answers)
        check(expected in said and "\x1b" not in said, said)


@test
def a_busy_server_is_asked_again():
    said, asked = odd((500, b"Code: 202, Too many simultaneous queries"), (500, b"Code: 252, Too many parts"),
                      (None, b""), (404, b"gone"))
    check("answers 404: gone" in said and asked == 4, said, asked)


@test
def a_server_that_is_not_there_is_said_after_some_tries():
    said = refused("push", assemble("kitchen"), "--to", f"clickhouse://127.0.0.1:{free_port()}/memory", code=3)
    check("no answer from 127.0.0.1:" in said, said)


@test
def a_place_that_makes_no_sense_is_refused():
    path = assemble("kitchen")
    for place in ("http://127.0.0.1/x", "clickhouse://127.0.0.1", "clickhouse://127.0.0.1/", "clickhouse:///x",
                  "clickhouse://127.0.0.1/a;b", "clickhouse://a b/x", "clickhouse://h/x?user=me", "clickhouse://h:0/x", "clickhouse://h:99999/x",
                  "clickhouse://h:/x", "clickhouse://h:80a/x", "clickhouse://:8123/x", "clickhouse://h:1:2/x", "clickhouse://[::1]8/x",
                  "clickhouse://[::1/x", "otlp://h:99999", "otlp://h:x", "otlp://:1"):
        refused("push", path, "--to", place)
    for place in ("clickhouse://[::1]:1/x", "clickhouse://127.0.0.1:1/x"):
        refused("report", place, code=3)
    refused("push", "--to", "clickhouse://127.0.0.1:1/x")
    refused("push", path)


main()
