"""A `tidemark view` that runs, and requests to it, byte for byte as a test wants them."""
import http.client
import json
import os
import re
import signal
import subprocess

from libanswer import TIDEMARK, make, run
from libschema import valid
from libtests import PATIENCE_SECONDS

SERVER = os.environ.get("TIDEMARK_SERVER", TIDEMARK)  # another build of it


def exercise2(scale="0.02"):
    path = "exercise2.tide"
    if not os.path.exists(path):
        program = os.path.join(os.environ["TIDEMARK_BUILD"], "test/programs/exercise2")
        run("record", "-o", path, "--", program, env={"EX2_SCALE": scale})
    return path


def long_trace():
    """So many events that going through them takes a while; for a server under sanitizers that is fewer."""
    path = "long.tide"
    if not os.path.exists(path):
        make(path, 500, 8, 3000000 if SERVER == TIDEMARK else 400000)
        run("window", path, "--json", "--progress", "none", "--rows", "1")  # builds the index
    return path


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.body = response.read()

    def json(self):
        return json.loads(self.body)


class Server:
    """with Server("app.tide") as server: server.get("/api/view")"""

    def __init__(self, *words):
        env = {name: value for name, value in os.environ.items()
               if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
        self.process = subprocess.Popen([SERVER, "view", *words], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env=env)
        self.address = self.process.stdout.readline().strip()
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/#t=([0-9a-f]{32})", self.address)
        if not found:
            raise AssertionError((self.address, self.process.communicate(timeout=PATIENCE_SECONDS)))
        self.port, self.token = int(found.group(1)), found.group(2)
        self.host = f"127.0.0.1:{self.port}"
        self.connection = None

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind:
            self.process.kill()
            self.process.communicate(timeout=PATIENCE_SECONDS)
        else:
            self.end()

    def end(self, number=signal.SIGINT):
        """Ended by a signal it leaves with 0, and has said nothing but that it serves."""
        if self.connection:
            self.connection.close()
        self.process.send_signal(number)
        out, self.said = self.process.communicate(timeout=PATIENCE_SECONDS)
        assert self.process.returncode == 0, (self.process.returncode, self.said)
        assert out == "", out
        return self.said

    def get(self, target, method="GET", headers=None, host=None, token="own", body=None):
        """Over one connection that is kept. token: "own", another text, or None."""
        if not self.connection:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port,
                                                         timeout=PATIENCE_SECONDS)
        sent = {"Host": host or self.host}
        if token:
            sent["Authorization"] = "Bearer " + (self.token if token == "own" else token)
        sent.update(headers or {})
        try:
            self.connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
            for name, value in sent.items():
                for one in value if isinstance(value, list) else [value]:
                    self.connection.putheader(name, one)
            if body is not None:
                self.connection.putheader("Content-Length", str(len(body)))
            self.connection.endheaders(body)
            return Answer(self.connection.getresponse())
        except (http.client.HTTPException, ConnectionError):
            self.connection.close()
            self.connection = None
            raise

    def ask(self, target):
        """The answer as JSON; it must be one."""
        answer = self.get(target)
        assert answer.status == 200, (target, answer.status, answer.body[:500])
        return answer.json()

    def refused(self, target, status, kind, **more):
        """The error's line."""
        answer = self.get(target, **more)
        assert answer.status == status, (target, answer.status, answer.body[:500])
        told = answer.json()
        valid(told, "view-error")
        assert told["kind"] == kind, told
        return told["error"]
