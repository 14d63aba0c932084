#!/usr/bin/env python3
"""tidemark view on Windows: its server answers what the commands say, only those whom the gate lets
in, and ends with Ctrl-C; the file that it writes is the one that is written here."""
# timeout: 300
# parallel: yes
import contextlib
import os
import re
import signal
import socket
import subprocess
import time

import libanswer
import libview
import libwin
from libtests import PATIENCE_SECONDS
from libwin import check, equal

libwin.need_wine()
EXE = libwin.built("tidemark.exe")
TRACE = libanswer.assemble("kitchen")
IDLE_SECONDS = 8  # as src/view/server_win32.c has it


def pid_of(mark):
    """Of the Windows program that was started with that word."""
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if (words[0].startswith(b"Z:") or words[0] == EXE.encode()) and mark.encode() in words:
            return int(entry)
    return None


class Server(libview.Server):
    """One under Wine, where SIGINT is Ctrl-C."""

    def __init__(self, mark, *words):
        self.mark = f"{mark}.{os.getpid()}"  # of this run alone: it is looked for in all of /proc
        self.process = subprocess.Popen(
            [libwin.WINE_RUN, "--prefix", "prefix", "--time", str(PATIENCE_SECONDS), "--", EXE, "view", *words,
             "--no-open", "--source-root", self.mark],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/#t=([0-9a-f]{32})", self.address)
        check(f"{mark}: its address is printed", found, self.address)
        self.port, self.token = int(found.group(1)), found.group(2)
        self.host = f"127.0.0.1:{self.port}"
        self.connection = None

    def __exit__(self, kind, value, trace):
        # Where a test failed: tools/wine-run is killed, and what it started would keep the pipes open.
        pid = kind and pid_of(self.mark)
        if pid:
            os.kill(pid, signal.SIGKILL)
        super().__exit__(kind, value, trace)

    def end(self, number=signal.SIGINT):
        if self.connection:
            self.connection.close()
        os.kill(pid_of(self.mark), number)
        out, said = self.process.communicate(timeout=PATIENCE_SECONDS)
        check(f"{self.mark}: it ends well", self.process.returncode == 0 and out == "", said)
        return said


def said_to(server, *parts):
    """What the server says to bytes of ours until it closes the connection."""
    told = b""
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_SECONDS) as connection:
        # Who is refused while it still sends may not send all; the answer is there all the same.
        with contextlib.suppress(ConnectionError):
            for part in parts:
                connection.sendall(part)
        try:
            while part := connection.recv(65536):
                told += part
        except ConnectionError:
            pass
        except TimeoutError:
            check("the server closes a connection whose head is refused", False, told[:500])
    return told


def status_of(told):
    return int(told.split(b" ")[1]) if told.startswith(b"HTTP/1.1 ") else None


def answers(server):
    page = server.get("/", token=None)
    check("the page is served", page.status == 200 and page.body.startswith(b"<!doctype html>"))
    check("and may run only itself", "default-src 'none'" in page.headers["content-security-policy"])
    check("no body where none is wanted", server.get("/", method="HEAD", token=None).body == b"")
    equal(204, server.get("/favicon.ico", token=None).status, "there is no icon")
    for target, words in [("/api/window?by=stack&n=0", ["window", "--by", "stack", "-n", "0"]),
                          ("/api/growth", ["growth"]), ("/api/info", ["info"])]:
        answer = server.get(target)
        expected = libanswer.run(words[0], TRACE, *words[1:], "--json").stdout
        check(f"{target} is what the command says", answer.status == 200, answer.body[:500])
        expected = re.sub(r'"symbol_notes": \[[^]]*\]', '"symbol_notes": []', expected)  # the command's alone
        equal(expected, answer.body.decode(), target)


def gate(server):
    wrong = ("0" if server.token[0] != "0" else "1") + server.token[1:]
    for token in (None, wrong, server.token + "0"):
        server.refused("/api/view", 401, "token", token=token)
    for host in ("evil.example", f"evil.example:{server.port}", "127.0.0.1", f"[::1]:{server.port}"):
        server.refused("/", 421, "host", host=host)
    server.refused("/", 421, "host", headers={"Host": [server.host, server.host]})
    for origin in ("http://evil.example", "null", f"http://127.0.0.1:{server.port + 1}"):
        server.refused("/api/view", 403, "origin", headers={"Origin": origin})
    server.refused("/api/view", 403, "origin", headers={"Sec-Fetch-Site": "cross-site"})
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        server.refused("/api/view", 405, "method", method=method)
    equal(405, server.get("/api/view", method="POST", body=b"x" * 100000).status, "no body is taken")
    server.connection.close()
    server.connection = None
    server.refused("/api/nothing", 404, "path")
    check("who is let in is answered", server.ask("/api/view"))


def no_request(server):
    host = b"Host: 127.0.0.1:%d\r\n" % server.port
    for text in (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", b"GET\r\n\r\n", b"\r\n\r\n", b"GET / HTTP/1.0\r\n" + host + b"\r\n",
                 b"GET http://x/ HTTP/1.1\r\n" + host + b"\r\n", b"GET / HTTP/1.1\r\n" + host + b" folded: x\r\n\r\n",
                 b"GET / HTTP/1.1\r\nHost : 127.0.0.1\r\n\r\n", b"GET /\0 HTTP/1.1\r\n" + host + b"\r\n"):
        equal(400, status_of(said_to(server, text)), f"{text[:40]} is refused")
    head = b"GET / HTTP/1.1\r\n" + host
    equal(413, status_of(said_to(server, head + b"X: " + b"a" * 100000 + b"\r\n\r\n")), "long headers")
    equal(414, status_of(said_to(server, b"GET /" + b"a" * 100000)), "a long target")
    equal(414, server.get("/api/window?frame=" + "a" * 8192).status, "a target too long")
    two = said_to(server, b"HEAD / HTTP/1.1\r\n" + host + b"\r\nHEAD / HTTP/1.1\r\nConnection: close\r\n" + host + b"\r\n")
    equal(2, two.count(b"HTTP/1.1 200 OK"), "two requests at once are answered both")


def sends_on(server):
    """Who is refused and sends on for 2.5 s is not cut off, which could take the answer from it. After
    IDLE_SECONDS it may be, as a machine that is busy may make of 2.5 s."""
    begun = time.monotonic()
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_SECONDS) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nX: " + b"a" * 70000)
        told = b"".join(iter(lambda: connection.recv(65536), b""))
        equal(413, status_of(told), "it is refused before its head ends")
        cut = False
        while not cut and time.monotonic() - begun < 2.5:
            try:
                connection.sendall(b"a" * 100)
            except ConnectionError:
                cut = True
            time.sleep(0.1)
    check("who sends on is not cut off", not cut or time.monotonic() - begun > IDLE_SECONDS)


def ends(connection):
    """Reads what is sent until the server closes it; waiting for that has an end by its timeout."""
    try:
        while connection.recv(65536):
            pass
    except ConnectionError:
        pass
    connection.close()
    return True


def half_open(server):
    stuck = [socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_SECONDS)
             for _ in range(80)]
    for connection in stuck[1:3]:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.0")
    check("more than there are places for wait, and none for ever", server.ask("/api/view"))
    check("connections that do not go on end", all(map(ends, stuck)))
    slow = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_SECONDS)
    begun = time.monotonic()
    try:
        while time.monotonic() - begun < PATIENCE_SECONDS:
            slow.sendall(b"G")
            time.sleep(0.5)
    except ConnectionError:
        pass
    slow.close()
    check("nor does it help to be slow", time.monotonic() - begun < PATIENCE_SECONDS)


def loopback_alone(server):
    with open("/proc/net/tcp", encoding="ascii") as file:
        mine = [line.split()[1] for line in file.readlines()[1:] if line.split()[3] == "0A" and
                int(line.split()[1].split(":")[1], 16) == server.port]
    equal([f"0100007F:{server.port:04X}"], mine, "it listens on the loopback interface alone")


def taken_port(server):
    done = libwin.wine(EXE, "view", TRACE, "--no-open", "--port", str(server.port), prefix="prefix", text=True)
    check("a port that is taken is told", done.returncode == 3 and "is in use" in done.stderr, done)


def html_export_file():
    libanswer.run("view", TRACE, "--html", "here.html")
    done = libwin.wine(EXE, "view", TRACE, "--html", "there.html", prefix="prefix", text=True)
    check("a file is written", done.returncode == 0, done)
    with open("here.html", "rb") as here, open("there.html", "rb") as there:
        check("which is the one that is written here", here.read() == there.read())
    done = libwin.wine(EXE, "view", TRACE, "--html", "there.html", prefix="prefix", text=True)
    check("it is replaced only if asked", done.returncode != 0 and "there.html" in done.stderr, done)
    done = libwin.wine(EXE, "view", TRACE, "--html", "there.html", "--force", "--scrub", prefix="prefix", text=True)
    check("and then it is", done.returncode == 0, done)


libwin.begin_prefix()
with Server("first", TRACE) as running:
    answers(running)
    gate(running)
    no_request(running)
    sends_on(running)
    loopback_alone(running)
    taken_port(running)
    half_open(running)
with Server("second", TRACE, "--diff", TRACE) as running:
    check("a second trace is compared with", running.ask("/api/diff"))
    idle = socket.create_connection(("127.0.0.1", running.port))
    check("it says how it ends, and nobody who is idle holds it up", "until Ctrl-C" in running.end())
    idle.close()
    running.end = lambda: None
html_export_file()
libwin.end_prefix()
libwin.end()
