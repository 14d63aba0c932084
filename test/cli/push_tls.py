#!/usr/bin/env python3
# parallel: yes
# timeout: 300
"""`clickhouses://`: a trace goes to a server whose certificate is vouched for, and to no other one; nothing is sent unencrypted."""
import contextlib
import os
import shutil
import socket
import ssl
import subprocess
import threading

from libanswer import answer, assemble, refused, run
from libclickhouse import Server
from libtests import Skip, check, equal, main, test

os.environ["XDG_CACHE_HOME"] = os.path.abspath("caches")
WHO = {"TIDEMARK_CLICKHOUSE_USER": "writer", "TIDEMARK_CLICKHOUSE_PASSWORD": "s3cret"}
CONFIG = """[ca]
default_ca=own
[own]
database=index
serial=serial
new_certs_dir=.
default_md=sha256
policy=any
[any]
commonName=supplied
"""


def openssl(*words):
    subprocess.run(["openssl", *words], check=True, capture_output=True)


def authority(name):
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", name + ".key", "-out", name + ".pem", "-days", "30",
            "-subj", f"/CN={name}")


def certificate(name, san, days=("20200101000000Z", "20990101000000Z")):
    """Of the authority `own`; openssl x509 knows no beginning and end."""
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", name + ".key", "-out", name + ".csr", "-subj", f"/CN={name}")
    with open("ca.cnf", "w", encoding="ascii") as file:
        file.write(CONFIG)
    with open("san.cnf", "w", encoding="ascii") as file:
        file.write(f"subjectAltName={san}\n")
    for file in ("index", "index.attr"):
        open(file, "w", encoding="ascii").close()
    openssl("ca", "-batch", "-config", "ca.cnf", "-rand_serial", "-cert", "own.pem", "-keyfile", "own.key", "-in", name + ".csr",
            "-out", name + ".pem", "-notext", "-startdate", days[0], "-enddate", days[1], "-extfile", "san.cnf")
    return name


class Front:
    """TLS before a server: what comes is kept as it came, and decrypted goes on."""

    def __init__(self, to, name):
        self.to, self.came, self.plain = to, [], []
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(name + ".pem", name + ".key")
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                asked, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(asked,), daemon=True).start()

    def serve(self, asked):
        """MSG_PEEK: the first bytes as they came, before they are read as TLS."""
        with contextlib.suppress(OSError), asked:
            self.came.append(asked.recv(3, socket.MSG_PEEK))
            with self.context.wrap_socket(asked, server_side=True) as near, socket.create_connection(("127.0.0.1", self.to)) as far:
                back = threading.Thread(target=self.copy, args=(far, near, []), daemon=True)
                back.start()
                self.copy(near, far, self.plain)
                far.shutdown(socket.SHUT_WR)
                back.join()

    @staticmethod
    def copy(source, to, kept):
        with contextlib.suppress(OSError):
            while piece := source.recv(1 << 16):
                kept.append(piece)
                to.sendall(piece)

    def place(self, host="localhost"):
        return f"clickhouses://{host}:{self.port}/memory"


@test
def a_server_that_is_vouched_for_gets_the_trace_and_no_other_one_anything():
    if not shutil.which("openssl"):
        raise Skip("needs openssl")
    path = assemble("kitchen")
    authority("own")
    authority("other")
    good = certificate("good", "DNS:localhost,IP:127.0.0.1")
    own, other = ({**WHO, "TIDEMARK_CLICKHOUSE_CA": os.path.abspath(name)} for name in ("own.pem", "other.pem"))
    with Server() as server:
        front = Front(server.http, good)
        run("push", path, "--to", front.place(), env=own)
        check(b"s3cret" in b"".join(front.plain))
        check(front.came and all(first[:2] == b"\x16\x03" for first in front.came), front.came)
        # Asked for over TLS too, by name and by address.
        for host in ("localhost", "127.0.0.1"):
            equal(run("report", path, "--csv").stdout, run("report", front.place(host), "--csv", env=own).stdout)
        run("fleet", "sites", front.place(), env=own)
        certificate("elsewhere", "DNS:db.example")
        certificate("expired", "DNS:localhost", ("20200101000000Z", "20210101000000Z"))
        certificate("early", "DNS:localhost", ("20980101000000Z", "20990101000000Z"))
        for name, who, said in (("good", other, "certificate"), ("good", WHO, "certificate"),
                                ("elsewhere", own, "localhost"), ("expired", own, "expired"), ("early", own, "not yet valid"),
                                ("good", {**own, "TIDEMARK_CLICKHOUSE_CA": "/nowhere"}, "/nowhere")):
            front = Front(server.http, name)
            for words in (("push", path, "--to", front.place()), ("fleet", "sites", front.place())):
                found = refused(*words, code=3, env=who)
                check("is not who it should be" in found and said in found, name, found)
            # Each of the two came once, if at all: another try would end the same way.
            check(len(front.came) <= 2, front.came)
            check(all(first[:2] == b"\x16\x03" for first in front.came) and not front.plain, front.plain)


@test
def a_server_without_tls_is_told_apart_and_sent_nothing():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        came = []

        def listen():
            with contextlib.suppress(OSError):
                while True:
                    asked, _ = listener.accept()
                    with asked:
                        came.append(asked.recv(1 << 16))
                        asked.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        threading.Thread(target=listen, daemon=True).start()
        found = refused("fleet", "sites", f"clickhouses://127.0.0.1:{listener.getsockname()[1]}/memory", code=3, env=WHO)
        check("no answer from 127.0.0.1:" in found, found)
        check(came and all(first[:2] == b"\x16\x03" and b"s3cret" not in first for first in came))


main()
