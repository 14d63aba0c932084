#!/usr/bin/env -S python3 -B
# timeout: 300
# parallel: yes
"""Resident memory of real programs, divided up: hardly anything is left unexplained, all of it adds
up to what the kernel says, and what is tidemark's own is called so."""
import json
import os
import re
import subprocess
import time

from libreal import (TIDEMARK, Proof, dump_lines, environment, find_program, must_run, record, run,
                     total)
from libtests import PATIENCE_SECONDS

UNEXPLAINED_SHARE = 0.005
# More anonymous memory than this, of its own, no dynamic linker has.
LOADER_BYTES_MAX = 1 << 20

PYTHON = """
import json
kept = [json.loads(json.dumps([{"a": i, "b": [str(i)] * 5} for i in range(4000)]))
        for _ in range(5)]
print(len(kept))
"""

SQL = """
CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)
INSERT INTO t SELECT i, hex(i * 7919) || ' some text to be kept' FROM n;
CREATE INDEX u ON t(b);
SELECT count(*), max(b) FROM t;
"""

NODE = """
const kept = [];
for (let i = 0; i < 200; i++) kept.push(Buffer.alloc(100000, i), new Array(5000).fill(i));
console.log(kept.length);
"""

C = "".join(f"int f{i}(int x) {{ int s = 0; for (int i = 0; i < x; i++) s += i * {i}; return s; }}\n"
            for i in range(800))


def answer(trace, command, *words):
    """What a command says as JSON; None if it says that the trace has nothing of the kind."""
    ended = run(f"{trace}.{command}", [TIDEMARK, command, "--json", *words, trace], environment())
    if ended.code == 2 and "no snapshot" in ended.errors():
        return None
    if ended.code != 0:
        raise RuntimeError(f"{command} {trace}: exit code {ended.code}: {ended.errors()}")
    return json.loads(ended.output())


def check_balance(proof, name, trace, exe):
    pid = process_of(trace, exe)
    when, balance = next(((when, found) for when, found in
                          ((when, answer(trace, "reconcile", "--at", when, "--process", pid,
                                         "-n", "0")) for when in ("peak", "exit")) if found),
                         (None, None))
    if not proof.check(balance, f"{name}: there is a snapshot"):
        return
    lines = {line["line"]: line["bytes"] for line in balance["lines"]}
    smaps = balance["smaps_bytes"]
    proof.note(f"{name} at {when} ({balance['reason']}): smaps {smaps}, {lines}")
    proof.equal(f"{name}: the lines are what smaps says", smaps,
                sum(lines.values()) + balance["difference"])
    # Nobody waits for a snapshot that is taken because memory grew: a busy machine may let the program
    # go on between its two readings, in each of several tries. Then it is marked, and by how much.
    apart = abs(balance["difference"])
    marked = any("went on while this snapshot was read" in line for line in balance["warnings"])
    proof.check(apart <= UNEXPLAINED_SHARE * smaps or marked and balance["reason"] == "growth",
                f"{name}: smaps and the page map agree", apart, balance["warnings"])
    proof.check(lines["unexplained"] <= UNEXPLAINED_SHARE * smaps + (apart if marked else 0),
                f"{name}: at most 0.5 % is unexplained", lines, apart)
    for line in balance["lines"]:
        if line["rows"]:
            proof.equal(f"{name}: the rows of {line['line']} add up", line["bytes"],
                        total(line["rows"], "bytes"))
    check_own(proof, name, trace, pid)


def check_own(proof, name, trace, pid):
    """The recorder's own memory, of which the trace says each piece, belongs to nobody else."""
    owners = answer(trace, "map", "--process", pid)["owners"]
    proof.note(f"{name}: {owners}")
    proof.check(owners.get("loader", 0) <= LOADER_BYTES_MAX,
                f"{name}: nothing of tidemark's is shown as the loader's", owners)
    proof.check(owners.get("tidemark", 0) > 4 << 20, f"{name}: tidemark's own is shown", owners)


def process_of(trace, exe):
    """The pid of the program's one image."""
    pids = [re.search(r" pid=(\d+) ", line)[1] for line in dump_lines(trace)
            if line.startswith("process ") and f' exe="{os.path.realpath(exe)}"' in line]
    if len(pids) != 1:
        raise RuntimeError(f"{len(pids)} images of {exe}")
    return pids[0]


def plain(proof, name, command, exe=None, **more):
    recording = record(name, command, environment(**more.pop("env", {})), **more)
    proof.equal(f"{name}: it runs as it would", 0, recording.ended.code)
    check_balance(proof, name, recording.trace, exe or command[0])


def redis(proof):
    """Debian's has an allocator of its own, jemalloc."""
    server, client, load = (find_program("redis-" + name)
                            for name in ("server", "cli", "benchmark"))
    path = os.path.abspath("redis.sock")
    command = [TIDEMARK, "record", "-o", "redis.tide", "--", server, "--port", "0", "--unixsocket",
               path, "--save", "", "--appendonly", "no"]
    with open("redis.log", "wb") as log, \
            subprocess.Popen(command, env=environment(), stdout=log, stderr=log) as process:
        try:
            deadline = time.monotonic() + PATIENCE_SECONDS
            while not os.path.exists(path):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(open("redis.log", errors="replace").read())
                time.sleep(0.05)
            must_run("load", [load, "-s", path, "-q", "-n", "30000", "-r", "30000", "-d", "1000",
                              "-t", "set"], environment())
            must_run("stop", [client, "-s", path, "flushall"], environment())
            run("stop", [client, "-s", path, "shutdown", "nosave"], environment())
            proof.equal("redis-server: it ends as it would", 0, process.wait(PATIENCE_SECONDS))
        finally:
            process.kill()
    check_balance(proof, "redis-server", "redis.tide", server)


def main():
    proof = Proof()
    python, sqlite, node, gcc, clang = (find_program(name) for name in
                                        ("python3", "sqlite3", "node", "gcc", "clang"))
    compiler = must_run("where", [gcc, "-print-prog-name=cc1plus"], environment())
    compiler = find_program(compiler.output().decode().strip())
    with open("plain.cc", "w", encoding="ascii") as out:
        out.write(C)
    with open("script.sql", "w", encoding="ascii") as out:
        out.write(SQL)
    plain(proof, "python3", [python, "-c", PYTHON], env={"PYTHONMALLOC": "malloc"})
    plain(proof, "sqlite3", [sqlite, ":memory:"], stdin="script.sql")
    redis(proof)
    plain(proof, "node", [node, "-e", NODE])
    plain(proof, "cc1plus", [compiler, "-quiet", "-O1", "plain.cc", "-o", "plain.s"])
    # The functions alone, not that many: clang is slow on them.
    with open("plain.c", "w", encoding="ascii") as out:
        out.write("".join(C.splitlines(True)[:300]))
    plain(proof, "clang", [clang, "-O1", "-S", "plain.c", "-o", "plain_c.s"])
    proof.finish()


main()
