"""libclickhouse: servers of Debian's ClickHouse on loopback, in folders of the test; where NEWEST is set, of the
newest engine (chDB, behind libchdb.cjs)."""
import contextlib
import os
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request

from libpackages import packages
from libtests import Skip, check, free_port, wait_for

CONFIG = """<yandex>
<logger><level>warning</level><log>{folder}/log</log><errorlog>{folder}/err</errorlog></logger>
<http_port>{http}</http_port><tcp_port>{tcp}</tcp_port><interserver_http_port>{inter}</interserver_http_port>
<listen_host>127.0.0.1</listen_host><path>{folder}/data/</path><tmp_path>{folder}/tmp/</tmp_path>
<users_config>{folder}/users.xml</users_config><default_profile>default</default_profile>
<default_database>default</default_database><mark_cache_size>100000000</mark_cache_size>
<max_concurrent_queries>20</max_concurrent_queries>
<remote_servers>{clusters}</remote_servers>
</yandex>
"""
USERS = """<yandex>
<profiles><default><max_memory_usage>4000000000</max_memory_usage></default></profiles>
<users>
<default><password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default>
<writer><password>s3cret</password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></writer>
</users>
<quotas><default><interval><duration>3600</duration></interval></default></quotas>
</yandex>
"""


NEWEST = False


class Server:
    """A server that runs until `stop` or `kill`; `start` goes on with its data."""

    def __init__(self, name="server", tcp=None, clusters=""):
        if NEWEST:
            self.begin_newest(name)
        else:
            self.begin(name, tcp, clusters)
        self.place = f"clickhouse://127.0.0.1:{self.http}/memory"
        self.running = None
        self.start()

    def complaint(self):
        if not os.path.exists(self.folder + "/err"):
            return ""
        with open(self.folder + "/err", encoding="utf-8", errors="replace") as file:
            return file.read()

    def make_folder(self, name):
        self.folder = os.path.abspath(name)
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder + "/data")
        self.http = free_port()

    def begin_newest(self, name):
        home = packages("chdb")
        if not shutil.which("node"):
            raise Skip("needs node")
        self.make_folder(name)
        self.words = ["node", os.path.join(os.path.dirname(__file__), "libchdb.cjs"), home, self.folder, str(self.http)]

    def begin(self, name, tcp, clusters):
        program = shutil.which("clickhouse-server") or shutil.which("clickhouse-server", path="/usr/sbin")
        if not program:
            raise Skip("needs Debian's clickhouse-server")
        self.make_folder(name)
        self.words = [program, f"--config-file={self.folder}/config.xml"]
        with open(self.folder + "/config.xml", "w", encoding="ascii") as file:
            file.write(CONFIG.format(folder=self.folder, http=self.http, tcp=tcp or free_port(), inter=free_port(),
                                     clusters=clusters))
        with open(self.folder + "/users.xml", "w", encoding="ascii") as file:
            file.write(USERS)

    def start(self):
        with open(self.folder + "/out", "ab") as out:
            self.running = subprocess.Popen(self.words, stdout=out, stderr=out, cwd=self.folder)
        wait_for(self.answers, "the server's answer", pause=0.1)

    def answers(self):
        check(self.running.poll() is None, "the server ended:", self.complaint()[-1000:])
        try:
            return self.ask("SELECT 1")
        except OSError:
            return None

    def kill(self):
        self.running.kill()
        self.running.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def ask(self, sql):
        """The rows of an answer, as texts."""
        url = f"http://127.0.0.1:{self.http}/?database=default"
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(url, data=sql.encode()) as answer:
                return [line.split("\t") for line in answer.read().decode().splitlines()]
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read().decode()) from error


@contextlib.contextmanager
def cluster(count=2):
    """Servers that are the shards of a cluster `two`, and the place that names them all."""
    ports = [free_port() for _ in range(count)]
    shards = "".join(f"<shard><replica><host>127.0.0.1</host><port>{port}</port></replica></shard>" for port in ports)
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(Server(f"shard{number}", port, f"<two>{shards}</two>")) for number, port in enumerate(ports)]
        yield servers, "clickhouse://" + ",".join(f"127.0.0.1:{server.http}" for server in servers) + "/memory"
