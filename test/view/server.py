#!/usr/bin/env python3
# parallel: yes
"""Who may ask the viewer, and what becomes of it when it is asked badly, often, or for a trace that
is no longer there."""
import concurrent.futures
import http.client
import itertools
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import time

from libanswer import TIDEMARK, assemble, run
from libschema import valid
from libtests import PATIENCE_SECONDS, equal, main, test, wait_for
from libview import Answer, Server, exercise2, long_trace


@test
def the_page_needs_no_token_and_may_run_only_itself():
    with Server(assemble("kitchen")) as server:
        answer = server.get("/", token=None)
        assert answer.status == 200 and answer.headers["content-type"].startswith("text/html")
        assert answer.body.lower().startswith(b"<!doctype html>")
        policy = answer.headers["content-security-policy"]
        words = dict(part.strip().split(" ", 1) for part in policy.split(";"))
        assert words["default-src"] == "'none'" and words["frame-ancestors"] == "'none'"
        assert words["connect-src"] == "'self'" and words["base-uri"] == "'none'"
        assert re.fullmatch(r"'sha256-[A-Za-z0-9+/]{43}='( 'sha256-[A-Za-z0-9+/]{43}=')*",
                            words["script-src"])
        assert "unsafe" not in policy and "*" not in policy and "http" not in policy
        for name, value in [("x-content-type-options", "nosniff"), ("cache-control", "no-store"),
                            ("referrer-policy", "no-referrer"),
                            ("cross-origin-resource-policy", "same-origin")]:
            assert answer.headers[name] == value, (name, answer.headers)
        assert not [name for name in answer.headers if name.startswith("access-control")]
        assert server.get("/favicon.ico", token=None).status == 204
        assert server.get("/", method="HEAD", token=None).body == b""


@test
def the_hashes_of_the_policy_are_those_of_the_page():
    import base64
    import hashlib
    with Server(assemble("kitchen")) as server:
        answer = server.get("/", token=None)
        for element, word in (("script", "script-src"), ("style", "style-src")):
            bodies = re.findall(rf"<{element}(?:\s[^>]*)?>(.*?)</{element}>".encode(), answer.body,
                                re.S)
            assert bodies
            for body in bodies:
                digest = base64.b64encode(hashlib.sha256(body).digest()).decode()
                assert f"'sha256-{digest}'" in answer.headers["content-security-policy"], word


@test
def nothing_is_told_without_the_token():
    with Server(assemble("kitchen")) as server:
        wrong = ("0" if server.token[0] != "0" else "1") + server.token[1:]
        for token in (None, wrong, "", server.token[:-1], server.token + "0",
                      server.token.upper() + "x"):
            server.refused("/api/view", 401, "token", token=token)
            server.refused("/api/nothing", 401, "token", token=token)
        for value in (server.token, "Basic " + server.token, "bearer " + server.token,
                      "Bearer  " + server.token):
            server.refused("/api/view", 401, "token", token=None,
                           headers={"Authorization": value})
        assert server.get(f"/api/view?t={server.token}", token=None).status == 401
        assert server.get("/api/view", token=None).headers["www-authenticate"] == "Bearer"
        assert server.ask("/api/view")


@test
def each_start_has_a_token_of_its_own():
    tokens = set()
    for _ in range(3):
        with Server(assemble("kitchen")) as server:
            tokens.add(server.token)
    assert len(tokens) == 3


@test
def another_host_is_refused_before_anything_else():
    with Server(assemble("kitchen")) as server:
        for host in ("evil.example", f"evil.example:{server.port}", "127.0.0.1",
                     f"127.0.0.1:{server.port + 1}", f"localhost.:{server.port}", "localhost",
                     f"127.0.0.1:{server.port}.evil.example", f"127.1:{server.port}",
                     f"0.0.0.0:{server.port}", f"[::1]:{server.port}", " "):
            server.refused("/", 421, "host", host=host)
            server.refused("/api/view", 421, "host", host=host)
        server.refused("/api/view", 421, "host", headers={"Host": [server.host, "evil.example"]})
        assert server.get("/api/view", host=f"localhost:{server.port}").status == 200


@test
def another_page_is_refused():
    with Server(assemble("kitchen")) as server:
        own = f"http://127.0.0.1:{server.port}"
        for origin in ("http://evil.example", "null", own + ".evil.example", own + "/",
                       f"https://127.0.0.1:{server.port}", f"http://127.0.0.1:{server.port + 1}",
                       "", "file://"):
            server.refused("/api/view", 403, "origin", headers={"Origin": origin})
            server.refused("/", 403, "origin", headers={"Origin": origin})
        for site in ("cross-site", "same-site"):
            server.refused("/api/view", 403, "origin", headers={"Sec-Fetch-Site": site})
        # A link from anywhere may lead to the page, which knows nothing by itself.
        assert server.get("/", headers={"Sec-Fetch-Site": "cross-site"}).status == 200
        assert server.get("/api/view", headers={"Origin": own,
                                                "Sec-Fetch-Site": "same-origin"}).status == 200


@test
def it_can_only_be_read():
    with Server(assemble("kitchen")) as server:
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
            answer = server.get("/api/view", method=method)
            assert answer.status == 405, (method, answer.status)
            assert answer.headers["allow"] == "GET, HEAD"
        answer = server.get("/api/view", method="POST", body=b"x" * 100000)
        assert answer.status == 405
        server.connection.close()
        server.connection = None
        assert server.get("/api/view", method="HEAD").body == b""


@test
def paths_lead_nowhere_else():
    with Server(assemble("kitchen")) as server:
        for path in ("/api/", "/api/view/", "/api/View", "/api/../api/view", "/api//view",
                     "/api/%76iew", "/api/view%00", "/../../etc/passwd", "/etc/passwd",
                     "/index.html", "//evil.example/", "/%2e%2e/%2e%2e/etc/passwd", "/api/view;x"):
            answer = server.get(path)
            assert answer.status == 404, (path, answer.status, answer.body[:100])
            valid(answer.json(), "view-error")


@test
def a_question_that_makes_no_sense_is_told_why():
    with Server(assemble("kitchen")) as server:
        for query, why in [("bye=stack", "no parameter 'bye'"), ("by=stck", "stack"),
                           ("by=stack&by=size", "once"), ("from=1s&from=2s", "once"),
                           ("from=soon", "not a time"), ("to=-99s", "before the beginning"),
                           ("size=x", "range of sizes"), ("process=99999", "no process"),
                           ("n=-1", "number from"), ("n=10001", "number from"),
                           ("n=99999999999999999999", "number from"), ("sort=weight", "sort"),
                           ("details=2", "0, 1 or peaks"), ("min-bytes=big", "size such as"),
                           ("frame=%5B", "regular expression"), ("from=%zz", "encode"),
                           ("by=%00", "encode"), ("by=%", "encode"), ("row=x", "not a row"),
                           ("layer=rss", "layer"), ("lane=a%20b", "lane"),
                           ("lifetime=1s&lifetime=2s", "once"), ("from=9us&to=1us", "after")]:
            told = server.refused("/api/window?" + query, 400, "usage")
            assert why in told, (query, told)
        for target in ("/api/view?x=1", "/api/info?from=1s", "/api/tree?kind=round",
                       "/api/tree?by=stack", "/api/tree?sort=peak", "/api/tree?kind=butterfly",
                       "/api/tree?function=main", "/api/tree?nodes=0", "/api/timeline?buckets=0",
                       "/api/timeline?buckets=4097", "/api/timeline?impact=transient",
                       "/api/timeline?from=10ns&to=10ns", "/api/active?at=never",
                       "/api/window?layer=heap&layer=vm", "/api/timeline?layer=vm&layer=heap"):
            server.refused(target, 400, "usage")


@test
def a_huge_question_is_refused():
    with Server(assemble("kitchen")) as server:
        server.refused("/api/window?frame=" + "a" * 8192, 414, "query")
        server.refused("/api/window?" + "&".join(["size=1"] * 129), 414, "query")
        assert server.get("/api/window?" + "&".join(["size=1"] * 128)).status == 200
        assert server.get("/api/window?frame=" + "a" * 8000).status == 200
        for size in (20000, 60000, 100000, 1000000):  # the library's own limits, too
            try:
                answer = server.get("/api/window?frame=" + "a" * size)
                assert answer.status in (414, 431), answer.status
            except (ConnectionError, OSError):
                pass
            if server.connection:
                server.connection.close()
            server.connection = None
        try:
            answer = server.get("/api/view", headers={"X-Long": "a" * 200000})
            assert answer.status in (413, 431), answer.status
        except (ConnectionError, OSError):
            pass
        if server.connection:
            server.connection.close()
        server.connection = None
        assert server.get("/api/view").status == 200


@test
def no_http_at_all_does_it_no_harm():
    with Server(assemble("kitchen")) as server:
        for text in (b"\x16\x03\x01\x02\x00\x01\x00", b"\0" * 1000, b"GET\r\n\r\n", b"\r\n" * 500,
                     b"GET / HTTP/9.9\r\n\r\n", b"GET /api/view HTTP/1.0\r\n\r\n",
                     b"GET / HTTP/1.1\r\nHost: " + b"\xff" * 50 + b"\r\n\r\n"):
            with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_SECONDS) as connection:
                connection.sendall(text)
                connection.shutdown(socket.SHUT_WR)
                told = b""
                try:
                    while part := connection.recv(4096):
                        told += part
                except ConnectionError:
                    pass
                assert b" 200 " not in told.split(b"\r\n")[0], (text, told)
        assert server.get("/api/view").status == 200


@test
def connections_that_do_not_go_on_end_in_seconds():
    with Server(assemble("kitchen")) as server:
        stuck = [socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_SECONDS) for _ in range(5)]
        for connection, text in zip(stuck, (b"", b"G", b"GET / HTTP/1.1\r\n",
                                            b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: ",
                                            b"GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n"
                                            % server.port)):
            connection.sendall(text)
        for connection in stuck:
            try:
                while connection.recv(65536):
                    pass
            except ConnectionError:
                pass
            connection.close()
        assert server.get("/api/view").status == 200


IDLE_SECONDS = 8  # of view/server_posix.c


def within_memory(server, most):
    """A sanitizer has memory of its own."""
    with open(f"/proc/{server.process.pid}/status", encoding="ascii") as file:
        highest = int(re.search(r"VmHWM:\s+(\d+) kB", file.read()).group(1)) << 10
    return "TIDEMARK_SERVER" in os.environ or highest <= most


def first_lines_of_slow_readers(connections):
    """What each was answered first. Who has an answer goes on reading a little of it until all have
    one: a connection that reads nothing for seconds is closed, and its answer takes no memory."""
    told, reading = {}, list(connections)
    while len(told) < len(connections):
        for connection in select.select(reading, [], [], PATIENCE_SECONDS)[0]:
            text = connection.recv(2048)
            told.setdefault(connection, text.split(b"\r\n")[0])
            if not text:
                reading.remove(connection)
        time.sleep(0.2)
    return list(told.values())


@test
def answers_that_nobody_reads_take_no_more_than_their_part():
    with Server(long_trace(), "--memory", "64M") as server:
        target, answer = next(
            (target, answer) for n in (10000, 3000, 1000, 300, 100)
            for target in [f"/api/window?by=lifetime&details=0&n={n}"]
            for answer in [server.get(target)] if answer.status == 200)
        largest = len(answer.body)
        head = (f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
                f"Authorization: Bearer {server.token}\r\n\r\n").encode()
        enough = (64 << 20) // 5 // largest + 4
        stuck = []
        for _ in range(min(enough, 60)):
            connection = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_SECONDS)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.sendall(head)
            stuck.append(connection)
        begun = time.monotonic()
        told = first_lines_of_slow_readers(stuck)
        assert any(b" 200 " in one for one in told), told
        # Where counting takes long, the first are closed, and their memory is free, before the last.
        quick = time.monotonic() - begun < IDLE_SECONDS
        assert not quick or enough > 60 or any(b" 503 " in one for one in told), (told, largest)
        assert within_memory(server, 64 << 20)
        for connection in stuck:
            connection.close()
        assert server.get("/api/view").status == 200


@test
def two_hundred_at_once_are_all_answered():
    path = exercise2()
    targets = ["/api/window", "/api/tree?kind=leaf", "/api/view", "/api/histogram",
               "/api/timeline?buckets=100", "/api/marks", "/api/active?n=5", "/api/peaks?layer=vm"]
    with Server(path) as server:
        expected = [server.get(target).body for target in targets]

        def ask(number):
            client = Client(server)
            answer = client.get(targets[number % len(targets)])
            client.connection.close()
            return number, answer

        with concurrent.futures.ThreadPoolExecutor(200) as pool:
            for number, answer in pool.map(ask, range(200)):
                assert answer.status == 200, (number, answer.status, answer.body)
                assert answer.body == expected[number % len(targets)], number


class Client(Server):
    """A connection of its own to a server that runs."""

    def __init__(self, server):
        self.port, self.token, self.host = server.port, server.token, server.host
        self.connection = None

    def send(self, target):
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_SECONDS)
        self.connection.request("GET", target, headers={"Authorization": "Bearer " + self.token})

    def receive(self):
        return Answer(self.connection.getresponse())


@test
def of_one_lane_only_the_newest_is_answered():
    with Server(exercise2()) as server:
        def ask(number):
            client = Client(server)
            lane = "&lane=brush" if number else ""
            answer = client.get(f"/api/growth?min-bytes={number + 1}{lane}")
            client.connection.close()
            return answer

        for _ in range(20):
            with concurrent.futures.ThreadPoolExecutor(40) as pool:
                answers = list(pool.map(ask, range(40)))
            superseded = [a for a in answers if a.status == 503]
            assert {a.status for a in answers} <= {200, 503}
            assert all(a.json()["superseded"] and a.json()["kind"] == "busy" for a in superseded)
            assert answers[0].status == 200
            if superseded:
                return
        raise AssertionError("no question was ever overtaken")


MOMENTS = itertools.count()


def anew(target):
    """With a moment behind it that was not asked for before, so that no answer is kept."""
    return f"{target}1.{next(MOMENTS):06}%25"


@test
def a_newer_question_of_its_lane_stops_one_that_is_being_answered():
    targets = ["/api/sizelife?lane=x&from=", "/api/timeline?layer=cumulative&lane=x&from=",
               "/api/transients?lane=x&from=", "/api/active?lane=x&at=", "/api/window?by=stack&lane=x&from="]
    with Server(long_trace()) as server, Server(long_trace()) as quiet:
        for target in targets:
            for attempt in range(1, 1000):
                slow, asked = Client(server), anew(target)
                slow.send(asked)
                time.sleep(0.0005 * (attempt % 60))  # nobody else asks, so that it does not wait
                newer = Client(server)
                answers = [newer.get(asked), slow.receive()]
                newer.connection.close()
                slow.connection.close()
                expected = quiet.get(asked).body
                for answer in answers:  # on a busy machine the second may be the first to come
                    assert answer.status == 503 and answer.json()["superseded"] or \
                        answer.status == 200 and answer.body == expected, asked
                assert server.get(asked).body == expected, asked  # nothing that was stopped is kept
                assert [answer.status for answer in answers] != [503, 503], target
                if answers[1].status == 503:
                    break
            else:
                raise AssertionError(target + " was never stopped")


def cpu_seconds(process):
    with open(f"/proc/{process.pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def seconds_for_those_who_leave(server, target, times):
    """Of the server's processors, for as many who do not wait for the answer, and one who does."""
    before = cpu_seconds(server.process)
    for _ in range(times):
        client = Client(server)
        client.send(anew(target))
        time.sleep(0.01)
        client.connection.close()
    assert server.get(anew(target)).status == 200  # behind all of them
    return cpu_seconds(server.process) - before


@test
def nobody_is_answered_who_has_gone():
    times = 8
    with Server(long_trace()) as server:
        # Questions that take many times what passes until somebody leaves.
        for target in ("/api/transients?from=", "/api/window?by=stack,size&lifetime=1ms..&from="):
            server.get(anew(target))
            before = cpu_seconds(server.process)
            server.get(anew(target))
            whole = cpu_seconds(server.process) - before
            # On a busy machine it may hear late that somebody has gone; if it never listens, it
            # spends nine times as much, however often one looks.
            spent = [seconds_for_those_who_leave(server, target, times)]
            while spent[-1] >= whole * (1 + times / 2) and len(spent) < 5:
                spent.append(seconds_for_those_who_leave(server, target, times))
            assert spent[-1] < whole * (1 + times / 2), (target, spent, whole)


@test
def all_that_is_asked_at_once_stays_within_the_memory():
    if "TIDEMARK_SERVER" in os.environ:
        return  # a sanitizer has memory of its own
    rows = ["/api/window?by=impact,stack", "/api/tree?kind=leaf", "/api/window?by=stack&from=30%25",
            "/api/window?by=lifetime&n=200", "/api/window?by=lifetime&row=stack:33&n=2000"]
    curves = ["/api/timeline?layer=cumulative", "/api/timeline?size=1..4K", "/api/sizelife",
              "/api/timeline?row=stack:33", "/api/timeline?lifetime=..1s"]
    replays = ["/api/growth", "/api/transients", "/api/peaks", "/api/active", "/api/info"]
    with Server(long_trace(), "--memory", "64M") as server:
        def ask(targets):
            client = Client(server)
            return [client.get(target).status for target in targets]

        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            for statuses in pool.map(ask, (rows, curves, replays)):
                assert set(statuses) <= {200, 413}, statuses
        assert within_memory(server, 64 << 20)


@test
def a_trace_that_goes_away_is_gone():
    for change in ("delete", "replace", "cut", "grow"):
        shutil.copy(exercise2(), "victim.tide")
        with Server("victim.tide") as server:
            server.ask("/api/window")
            if change == "delete":
                os.unlink("victim.tide")
            elif change == "replace":
                shutil.copy(exercise2(), "other.tide")
                os.rename("other.tide", "victim.tide")
            else:
                with open("victim.tide", "r+b") as file:
                    if change == "cut":
                        file.truncate(100)
                    else:
                        file.seek(0, 2)
                        file.write(b"more")
            for target in ("/api/window", "/api/active", "/api/map", "/api/info", "/api/view"):
                assert "start tidemark view again" in server.refused(target, 410, "gone"), change
            assert server.get("/").status == 200
        if os.path.exists("victim.tide"):
            os.unlink("victim.tide")


@test
def a_program_that_is_built_anew_while_its_names_are_read_ends_nothing():
    program = os.path.join(os.environ["TIDEMARK_BUILD"], "test/programs/exercise2")
    for size in (0, 4096):  # in its place: what is mapped is not there any more
        shutil.copy(program, "victim")
        run("record", "--force", "-o", "victim.tide", "--", "./victim",
            env={**os.environ, "EX2_SCALE": "0.01"})
        with Server("victim.tide") as server:
            server.ask("/api/window?by=stack&size=504")  # opens the program's file
            os.truncate("victim", size)
            for target in ("/api/window?by=stack", "/api/tree?kind=callers", "/api/window?layer=vm",
                           "/api/growth", "/api/active", "/api/source?module=x&file=y"):
                assert server.get(target).status in (200, 404), target


def damage(index):
    """All of it but its head, which is read when it is opened."""
    for name in set(os.listdir(index)) - {"head"}:
        with open(os.path.join(index, name), "r+b") as file:
            text = bytearray(file.read())
            for at in range(11, len(text), 61):
                text[at] ^= 0x55
            file.seek(0)
            file.write(text)


@test
def an_index_that_is_damaged_while_it_is_asked_is_built_again():
    path = long_trace()
    targets = ["/api/window?by=stack&from=20%25&to=70%25", "/api/window?by=size&details=0&from=31%25",
               "/api/timeline?from=10%25&to=60%25&buckets=300&function=step",
               "/api/growth?from=11%25", "/api/histogram?from=33%25"]
    with Server(path) as server:
        right = [server.get(target) for target in targets]
    with Server(path) as server:
        for _ in range(2):
            damage(path + "-index")

            def ask(target):
                client = Client(server)
                answer = client.get(target)
                client.connection.close()
                return answer

            with concurrent.futures.ThreadPoolExecutor(len(targets)) as pool:
                answers = list(pool.map(ask, targets))
            for target, expected, answer in zip(targets, right, answers):
                equal((expected.status, expected.body), (answer.status, answer.body), target)


@test
def the_second_trace_may_not_go_away_either():
    shutil.copy(exercise2(), "second.tide")
    with Server(assemble("kitchen"), "--diff", "second.tide") as server:
        server.ask("/api/diff")
        os.unlink("second.tide")
        server.refused("/api/diff", 410, "gone")


@test
def it_ends_well_however_it_is_ended():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        with Server(assemble("kitchen")) as server:
            server.ask("/api/view")
            idle = socket.create_connection(("127.0.0.1", server.port))
            assert "until Ctrl-C" in server.end(number)
            idle.close()
            server.end = lambda: None


@test
def it_listens_on_the_loopback_interface_alone():
    with Server(assemble("kitchen")) as server:
        with open(f"/proc/{server.process.pid}/net/tcp", encoding="ascii") as file:
            listening = [line.split()[1] for line in file.readlines()[1:]
                         if line.split()[3] == "0A"]
        mine = [where for where in listening if int(where.split(":")[1], 16) == server.port]
        assert mine == [f"0100007F:{server.port:04X}"], mine


@test
def a_port_can_be_chosen_and_may_be_taken():
    with Server(assemble("kitchen")) as server:
        done = run("view", assemble("kitchen"), "--no-open", "--port", str(server.port), check=3)
        assert "cannot listen on port" in done.stderr and "in use" in done.stderr, done.stderr
        port = server.port
    with Server(assemble("kitchen"), "--port", str(port)) as server:
        assert server.port == port


@test
def its_library_is_loaded_by_nothing_but_a_server():
    needs = subprocess.run(["ldd", TIDEMARK], capture_output=True, text=True, check=True).stdout
    libm = re.search(r"libm\.so\S* => (\S+)", needs).group(1)
    for name in re.findall(r"^\s*(\S+)", needs, re.MULTILINE):  # each costs every recording
        assert re.search(r"(linux-vdso|libm|libc|ld-linux-x86-64)\.so\.\d+$", name), needs
    os.makedirs("libs", exist_ok=True)
    env = {**os.environ, "LD_LIBRARY_PATH": os.path.abspath("libs")}
    trace = assemble("kitchen")
    shutil.copy(libm, "libs/libmicrohttpd.so.12")
    done = run("view", trace, "--no-open", check=3, env=env)
    assert "libmicrohttpd.so.12 lacks MHD_" in done.stderr and done.stdout == "", done
    with open("libs/libmicrohttpd.so.12", "w", encoding="ascii") as file:
        file.write("no library at all")
    done = run("view", trace, "--no-open", check=3, env=env)
    assert "cannot be served" in done.stderr and "libmicrohttpd12" in done.stderr, done
    run("view", trace, "--html", "alone.html", env=env)
    assert os.path.getsize("alone.html") > 0


@test
def mistakes_on_the_command_line_are_told():
    for code, why, *words in [
            (2, "needs a trace FILE"), (2, "unknown option", "x.tide", "--prot", "1"),
            (2, "from 1 to 65535", assemble("kitchen"), "--port", "65536"),
            (2, "unexpected", assemble("kitchen"), "other.tide"),
            (3, "no-such.tide", "no-such.tide"), (3, "no-such", assemble("kitchen"), "-d",
                                                  "no-such.tide")]:
        done = run("view", *words, check=code)
        assert why in done.stderr and done.stdout == "", (words, done)


@test
def the_browser_is_given_the_address_in_a_file_of_ours():
    os.makedirs("bin", exist_ok=True)
    with open("bin/xdg-open", "w", encoding="ascii") as file:
        file.write('#!/bin/sh\ncp "$1" opened.html\nstat -c %a "$(dirname "$1")" > mode\n'
                   'echo "$#" > count\nmv count done\n')
    os.chmod("bin/xdg-open", 0o755)
    env = {**os.environ, "PATH": os.path.abspath("bin") + ":" + os.environ["PATH"],
           "DISPLAY": ":7"}
    process = subprocess.Popen([TIDEMARK, "view", assemble("kitchen")], env=env, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    address = process.stdout.readline().strip()
    wait_for(lambda: os.path.exists("done"), "a browser")
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == 0
    with open("opened.html", encoding="ascii") as file:
        assert f"url={address}\"" in file.read()
    with open("mode", encoding="ascii") as file:
        assert file.read() == "700\n"
    assert not [name for name in os.listdir(os.environ.get("TMPDIR", "/tmp"))
                if name.startswith("tidemark.") and os.path.isdir(name) and
                os.path.exists(os.path.join(name, "view.html"))]


main()
