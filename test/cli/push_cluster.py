#!/usr/bin/env python3
# parallel: yes
# timeout: 300
"""`tidemark push --cluster`: the rows of a trace lie on two servers, each once, and either answers as a single one does and as
tidemark does of the file; one that is killed in the middle and comes back has lost nothing."""
import os
import re
import subprocess
import time

from libanswer import SOURCE, TIDEMARK, answer, assemble, make, refused, run
from libclickhouse import Server, cluster
from libtests import check, equal, main, test

os.environ["XDG_CACHE_HOME"] = os.path.abspath("caches")
# Ten million rows in push_cluster_soak.
EVENTS = int(os.environ.get("PUSH_CLUSTER_EVENTS", "1200000"))


def run_of(number, version, host, size):
    """A small run with labels."""
    return assemble(f"run{number}", f"""trace id={number:032x} began={number * 10**18} tick=0 command="./it's"
trace labels="version={version}\\nhost={host}\\n"
process p pid=1
thread t p tid=1
frame f1 1
name f1 "cache"
stack s1 f1
@0 t malloc s1 0x1000 {size}
@700000000 t free 0x1000
@700000001 t malloc s1 0x2000 {size * 3}
end duration=1700000000
""")


def runs():
    return [run_of(number, "1.0" if number < 5 else "1.1", f"web{number % 5}", 90_000 if number % 5 == 4 else 1_000 + number)
            for number in range(1, 10)]


def push(place, *files, **more):
    return run("push", *files, "--to", place, "--cluster", "two", **more)


def rounded(value):
    """The order of a sum of doubles is nobody's, so the last digits are not either."""
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value


def counts(servers):
    """Of the rows that each has itself."""
    return [int(server.ask("SELECT count() FROM memory_shard.allocations")[0][0]) for server in servers]


def whole(server, path):
    """All of it is there once, and a window is the file's."""
    total = answer("window", path)["total"]
    equal([str(total["allocated_count"]), str(total["allocated"])],
          server.ask("SELECT count(), sum(size) FROM memory.allocations")[0])
    window = answer("window", path, "--by", "type", "--from", "20%", "--to", "70%")
    found = server.ask(
        "SELECT multiIf(begin_ns > {0}, if(end_ns <= {1}, 'AIFI', 'AIFO'), end_ns <= {1}, 'AOFI', 'AOFO') AS type, "
        "count(), sum(size) FROM memory.allocations WHERE begin_ns <= {1} AND end_ns > {0} GROUP BY type"
        .format(window["from_ns"], window["to_ns"]))
    equal(sorted([row["keys"]["type"], str(row["count"]), str(row["size"])] for row in window["rows"] if row["count"]),
          sorted(found))


@test
def a_server_that_is_killed_in_the_middle_and_comes_back_has_lost_nothing():
    path = make("many.tide", 300, 500, EVENTS)
    with cluster() as (servers, place):
        running = subprocess.Popen([TIDEMARK, "push", path, "--to", place, "--cluster", "two"], stdout=subprocess.DEVNULL)
        while running.poll() is None:
            try:
                if int(servers[1].ask("SELECT count() FROM memory_shard.allocations_rows")[0][0]) > 0:
                    break
            except AssertionError:
                time.sleep(0.01)  # there are no tables yet
        check(running.poll() is None)
        servers[1].kill()
        servers[1].start()
        # It waits some seconds for a server; after that it is run again.
        if running.wait() != 0:
            push(place, path)
        # Nothing is sent twice.
        check(": 0 rows sent" in push(place, path).stdout)
        check(all(counts(servers)), counts(servers))
        for server in servers:
            whole(server, path)
        # Either of them answers, and has the trace itself.
        for server in servers:
            equal(run("window", path, "--by", "stack", "--csv").stdout, run("window", server.place, "--by", "stack", "--csv").stdout)


@test
def many_runs_have_the_same_answers_as_on_one_server():
    files = runs()
    with open(os.path.join(SOURCE, "docs/howto/fleet.md"), encoding="utf-8") as file:
        asked = [question.replace("FROM_NS", "0").replace("TO_NS", "600000000")
                 for question in re.findall(r"```sql\n(.*?)```", file.read(), re.S)]
    with Server() as alone, cluster() as (servers, place):
        run("push", *files, "--to", alone.place)
        push(place, *files)
        check(all(counts(servers)), counts(servers))
        for words in (("sites",), ("sites", "--label", "version=1.0"), ("grew",), ("hosts",), ("trend",), ("trend", "--site", "cache"),
                      ("traces",)):
            for server in servers:
                equal(rounded(answer("fleet", words[0], alone.place, *words[1:])),
                      rounded(answer("fleet", words[0], server.place, *words[1:])))
        for question in asked:
            equal(sorted(alone.ask(question)), sorted(servers[0].ask(question)), question)
        for file in files[:2]:
            number = re.search("[1-9]", file)[0]
            equal(run("report", file, "--json").stdout.replace(file, ""),
                  re.sub(r'"/[^"]*\.tide"', '""', run("report", f"{servers[1].place}?trace={int(number):032x}", "--json").stdout))


@test
def what_is_no_cluster_is_said_in_one_line():
    path = assemble("kitchen")
    with Server() as alone, cluster() as (servers, place):
        first, second = (server.place for server in servers)
        for words, said in ((("--to", place), "say --cluster NAME"), (("--to", place, "--cluster", "three"), "knows no cluster three"),
                            (("--to", place, "--cluster", "it's"), "cannot be the name of a cluster"),
                            (("--to", first, "--cluster", "two"), "has 2 shards: name a server of each"),
                            (("--to", first.replace("/memory", f",127.0.0.1:{servers[0].http}/memory"), "--cluster", "two"), "are of one shard"),
                            (("--to", alone.place, "--cluster", "two"), "knows no cluster two")):
            check(said in refused("push", path, *words), words)
        # Nothing was made so far. Once a database is spread, or is not, it stays so.
        equal([], [row for row in servers[0].ask("SHOW DATABASES") if row[0].startswith("memory")])
        push(place, path)
        check("say --cluster" in refused("push", path, "--to", second))
        run("push", path, "--to", first.replace("/memory", "/other"))
        check("on this server alone" in refused("push", path, "--to", place.replace("/memory", "/other"), "--cluster", "two"))
        # One of them is away: no half of an answer.
        servers[1].kill()
        said = refused("fleet", "sites", first, code=3)
        check("answers 500" in said, said)
        servers[1].start()
        run("fleet", "sites", first)


main()
