#!/usr/bin/env python3
# parallel: yes
# timeout: 300
"""`tidemark push --to otlp://`: a collector of OpenTelemetry's is sent each allocation once, while a program runs or at its end."""
import gzip
import http.server
import os
import re
import shutil
import signal
import ssl
import subprocess
import threading
import time

from libguest import SOURCE, TIDEMARK, check, environment, equal, main, program, test, wait_for
from libprotobuf import Otlp, message
from libtests import Skip

PATH = "/v1development/profiles"


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):  # pylint: disable=invalid-name
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if not self.path.endswith(PATH):  # another test's program waits for who had this port before
            self.send_error(404)
            return
        collector = self.server.collector
        status, said = collector.answers.pop(0) if collector.answers else (200, b"")
        collector.asked.append((status, self.path, self.headers, body))
        if status is None:
            self.close_connection = True
            return
        self.send_response(status)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_):
        pass


class Collector:
    """It keeps what comes, and answers as it is told: (status, body) for one request after the other, then 200."""

    def __init__(self, *answers, context=None, port=0):
        self.answers, self.asked = list(answers), []
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Answer)
        self.server.collector = self
        self.server.daemon_threads = True
        if context:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.place = f"{'otlps' if context else 'otlp'}://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def taken(self):
        """The messages that it has answered with 200."""
        return [Otlp(gzip.decompress(body) if headers["Content-Encoding"] == "gzip" else body)
                for status, _path, headers, body in list(self.asked) if status == 200]

    def sums(self):
        """Allocated blocks and bytes of all messages."""
        return [sum(column) for column in zip(*(each.sums()[:2] for each in self.taken()))] or [0, 0]


def push(*words, code=0, **more):
    done = subprocess.run([TIDEMARK, "push", *words], env=environment(**more), capture_output=True, text=True, check=False)
    equal(code, done.returncode, done.stderr)
    return done


def refused(*words, code=3, **more):
    said = push(*words, code=code, **more).stderr
    equal(1, said.count("\n") - said.count("\nTry") - said.count("--help'\n"), said)
    return said


def exported(path):
    return Otlp(subprocess.run([TIDEMARK, "export", path, "--format", "otlp"], check=True, capture_output=True).stdout)


def record(*words, operations="60000", pause="2000", how=()):
    return subprocess.Popen([TIDEMARK, "record", "-q", "-f", "-o", "live.tide", *words, program("goes_on"), operations, pause, *how],
                            env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def pid_of(process):
    found = []

    def look():
        found[:] = subprocess.run(["pgrep", "-P", str(process.pid), "-x", "goes_on"], capture_output=True, text=True,
                                  check=False).stdout.split()
        return found and subprocess.run([TIDEMARK, "ctl", found[0], "mark", "here"], env=environment(), capture_output=True,
                                        check=False).returncode == 0
    wait_for(look, "the program, being recorded")
    return found[0]


def finished(name="whole.tide", operations="3000"):
    subprocess.run([TIDEMARK, "record", "-q", "-f", "-o", name, program("goes_on"), operations, "0", "forks"], env=environment(),
                   stdout=subprocess.DEVNULL, check=True)
    return name


def times(each):
    profile = next(each.profiles())
    return profile[3][0], profile.get(4, [0])[0]


@test
def a_finished_trace_is_sent_as_it_is_exported():
    path = finished()
    for words in ((), ("--compression", "none")):
        with Collector() as collector:
            said = push(path, "--to", collector.place, *words).stdout
            check("1 message sent" in said, said)
            _status, asked, headers, body = collector.asked[0]
            equal((PATH, "application/x-protobuf", None if words else "gzip"),
                  (asked, headers["Content-Type"], headers["Content-Encoding"]))
            found, expected = collector.taken()[0], exported(path)
            equal(expected.sums(), found.sums())
            check(found.sums()[3] > 123457, "what lived at the end", found.sums())
            equal(sorted(expected.strings), sorted(found.strings))
            equal(times(expected), times(found))
            if not shutil.which("protoc"):
                raise Skip("protoc is not installed (Debian: protobuf-compiler)")
            decoded = subprocess.run(
                ["protoc", "--decode", "opentelemetry.proto.profiles.v1development.ProfilesData", "-I",
                 os.path.join(SOURCE, "test/proto"), "opentelemetry/proto/profiles/v1development/profiles.proto"],
                input=body if words else gzip.decompress(body), check=True, capture_output=True).stdout.decode()
            check(not re.search(r"^\s*\d+:", decoded, re.M), "fields that the proto does not have")
            for word in ("alloc_space", "inuse_objects", "resource_profiles", "thread.id"):
                check(word in decoded, word)


@test
def each_allocation_of_a_running_program_is_in_one_message():
    with Collector() as collector:
        process = record(operations="100000000", how=("threads",))
        pid = pid_of(process)
        sending = subprocess.Popen([TIDEMARK, "push", pid, "--every", "200ms", "--to", collector.place],
                                   env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_for(lambda: len(collector.taken()) > 4, "messages")
        os.kill(int(pid), signal.SIGKILL)
        process.wait()
        out, said = sending.communicate()
        equal((0, ""), (sending.returncode, said))
        taken, whole = collector.taken(), exported("live.tide").sums()
        check(f"{len(taken)} messages sent" in out, len(taken), out)
        equal(whole[:2], collector.sums())
        equal(whole[2:], taken[-1].sums()[2:], "what lived at the end")
        # One period after the other.
        for before, after in zip(taken, taken[1:]):
            equal(sum(times(before)), times(after)[0])
        check(all(each.sums()[2] > 1000 for each in taken[1:]), [each.sums() for each in taken])


@test
def a_sampled_recording_is_sent_as_estimates():
    with Collector() as collector:
        process = record("--sample", "4K", operations="200000", pause="5000")
        sending = subprocess.Popen([TIDEMARK, "push", "live.tide" if pid_of(process) else "", "--every", "200ms", "--to",
                                    collector.place], env=environment(), stdout=subprocess.DEVNULL)
        equal(0, process.wait())
        equal(0, sending.wait())
        whole, found = exported("live.tide").sums(), collector.sums()
        for expected, value in zip(whole, found):
            check(abs(expected - value) < expected / 500, "but for what is rounded", whole, found)
        period = next(collector.taken()[0].profiles())
        equal(4096, period[6][0])


@test
def a_trace_that_is_cut_anew_is_sent_whole():
    with Collector() as collector:
        process = record("--max-size", "8M", operations="900000", pause="1000")
        sending = subprocess.Popen([TIDEMARK, "push", pid_of(process), "--every", "300ms", "--to", collector.place],
                                   env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        equal(0, process.wait(), process.stderr.read())
        said = sending.communicate()[1]
        equal((0, ""), (sending.returncode, said))
        check(os.path.getsize("live.tide") < 12 << 20)
        # Each operation allocates once; and some of the loader's.
        check(900000 <= collector.sums()[0] < 901000, collector.sums())


@test
def a_rotated_trace_is_gone_on_with():
    with Collector() as collector:
        process = record("--rotate", "300ms", operations="400000", pause="5000")
        sending = subprocess.Popen([TIDEMARK, "push", pid_of(process), "--every", "200ms", "--to", collector.place],
                                   env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        wait_for(collector.taken, "a message")
        sending.send_signal(signal.SIGSTOP)  # parts come and go meanwhile
        equal(0, process.wait(), process.stderr.read())
        sending.send_signal(signal.SIGCONT)
        said = sending.communicate()[1]
        equal((0, ""), (sending.returncode, said))
        check(os.path.exists("live.2.tide"))  # on a busy machine a part takes a second
        check(400000 <= collector.sums()[0] < 401000, collector.sums())


@test
def a_collector_that_is_away_is_waited_for():
    with Collector() as collector:
        process = record(operations="100000000")
        pid = pid_of(process)
        sending = subprocess.Popen([TIDEMARK, "push", pid, "--every", "200ms", "--to", collector.place],
                                   env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        wait_for(lambda: len(collector.taken()) > 1, "messages")
        collector.answers[:] = [(503, b"busy"), (None, b""), (429, b"")]
        wait_for(lambda: not collector.answers, "the answers")
        before = len(collector.taken())
        wait_for(lambda: len(collector.taken()) > before + 1, "more messages")
        os.kill(int(pid), signal.SIGKILL)
        process.wait()
        said = sending.communicate()[1]
        equal(0, sending.returncode, said)
        check("answers 503: busy; what is allocated goes into a later profile" in said and said.count("answers again") == 1, said)
        equal(exported("live.tide").sums()[:2], collector.sums())


@test
def what_a_collector_says_is_said_in_a_line():
    path = finished("small.tide", "100")
    partial = b"\x0a\x0d\x08\x02\x12\x09too\x1b many"
    with Collector((200, partial), (200, b"\xff\xff\xff"), (200, b"<html>")) as collector:
        said = push(path, "--to", collector.place).stderr
        equal("tidemark push: 2 profiles were rejected: too  many\n", said)
        for _ in range(2):
            equal("", push(path, "--to", collector.place).stderr)
    for status, body, expected in ((400, b"\x08\x03\x12\x08no\x1b good", "answers 400: no  good"),
                                   (500, b"<html>\nwhat?", "answers 500: <html>"), (500, b"\x12\xff\xff", "answers 500: "),
                                   (404, b"page", "takes no profiles"), (401, b"", "OTEL_EXPORTER_OTLP_HEADERS"),
                                   (301, b"", "answers 301: it leads elsewhere, which is not followed"), (418, b"", "answers 418: nothing more")):
        with Collector((status, body)) as collector:
            said = refused(path, "--to", collector.place)
            check(expected in said and "\x1b" not in said and len(collector.asked) == 1, said, collector.asked)
    # One that is busy is asked again.
    with Collector((503, b""), (None, b""), (502, b"")) as collector:
        push(path, "--to", collector.place + "/base/")
        equal([503, None, 502, 200], [each[0] for each in collector.asked])
        equal({"/base" + PATH}, {each[1] for each in collector.asked})
    with Collector() as collector:
        pass
    check("no answer from 127.0.0.1:" in refused(path, "--to", collector.place))


@test
def who_sends_is_in_the_headers_and_in_no_message():
    path = finished("small.tide", "100")
    with Collector((403, b"s3cret?")) as collector:
        secret = {"OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20s3cret, x-tenant = one"}
        check("s3cret" not in refused(path, "--to", collector.place, **secret))
        push(path, "--to", collector.place, **secret)
        for _status, _path, headers, _body in collector.asked:
            equal(("Bearer s3cret", "one"), (headers["authorization"], headers["x-tenant"]))
        for odd in ("a", "=b", "a b=c", "a=%0d%0ax: y", ",,"):
            said = refused(path, "--to", collector.place, code=2, OTEL_EXPORTER_OTLP_HEADERS=odd)
            check("NAME=VALUE" in said, odd, said)
        equal(2, len(collector.asked))


@test
def what_makes_no_sense_is_refused():
    path = finished("small.tide", "100")
    for place in ("otlp://", "otlp:///x", "otlp://me:s3cret@127.0.0.1", "otlp://a b", "otlp://h/x?y=z", "http://127.0.0.1:4318"):
        check("s3cret" not in push(path, "--to", place, code=2).stderr)
    for words in (("--cluster", "x"), ("--ttl", "9d"), ("--credentials", "x"), ("--compression", "zip")):
        push(path, "--to", "otlp://127.0.0.1:1", *words, code=2)
    push(path, "--to", "clickhouse://127.0.0.1:1/x", "--compression", "none", code=2)
    push("none.tide", "--to", "otlp://127.0.0.1:1", code=3)


@test
def a_certificate_must_be_vouched_for():
    if not shutil.which("openssl"):
        raise Skip("needs openssl")
    path = finished("small.tide", "100")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "own.pem", "-days", "3",
                    "-subj", "/CN=own", "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain("own.pem", "key.pem")
    with Collector(context=context) as collector:
        check("is not who it should be, nothing was sent" in refused(path, "--to", collector.place))
        push(path, "--to", collector.place, OTEL_EXPORTER_OTLP_CERTIFICATE=os.path.abspath("own.pem"))
        equal(1, len(collector.asked))


main()
