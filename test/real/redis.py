#!/usr/bin/env -S python3 -B
# timeout: 300
# parallel: yes
"""redis-server, with an allocator and threads of its own, under redis-benchmark."""
import os
import signal
import subprocess
import time

import libreal
from libtests import PATIENCE_SECONDS, free_port

server = libreal.find_program("redis-server")
cli = libreal.find_program("redis-cli")
benchmark = libreal.find_program("redis-benchmark")
env = libreal.environment()

COMMANDS = "".join(
    f"SET key:{i} value:{i * 7919}\nHSET hash:{i % 50} field:{i} {'x' * (i % 300)}\n"
    f"LPUSH list:{i % 20} {i}\n" for i in range(400)) + """
DBSIZE
SORT list:3 LIMIT 0 5
HLEN hash:7
DEL list:1 list:2 hash:3
GET key:77
"""


def answers(port, name):
    return libreal.must_run(name, [cli, "-p", port], env, "commands").output()


def is_up(port):
    return subprocess.run([cli, "-p", port, "PING"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, check=False).returncode == 0


def serve(name, prefix, server_env, load, stop):
    """Start a server, ask it, load it, stop it. Returns what it answered and its exit code."""
    port = str(free_port())
    command = [*prefix, server, "--port", port, "--bind", "127.0.0.1", "--save", "",
               "--appendonly", "no", "--dir", os.getcwd()]
    with open(f"{name}.log", "wb") as log, \
            subprocess.Popen(command, env=server_env, stdout=log, stderr=log) as process:
        try:
            deadline = time.monotonic() + PATIENCE_SECONDS
            while not is_up(port):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(open(f"{name}.log", errors="replace").read())
                time.sleep(0.05)
            said = answers(port, name)
            for arguments in load:
                libreal.must_run(f"{name}.load", [benchmark, "-p", port, "-q", *arguments], env)
            stop(process, port)
            code = process.wait(PATIENCE_SECONDS)
        finally:
            process.kill()
    return said, code


def server_pid(port):
    said = subprocess.run([cli, "-p", port, "INFO", "server"], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    return int(said.split("process_id:")[1].split()[0])


def by_shutdown(process, port):
    subprocess.run([cli, "-p", port, "SHUTDOWN", "NOSAVE"], check=False,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def by_signal(process, port):
    os.kill(server_pid(port), signal.SIGTERM)


LOAD = [["-n", "60000", "-c", "20", "-P", "16", "-t", "set,get,lpush,lpop,sadd,hset", "-r", "5000"]]

with open("commands", "w", encoding="ascii") as file:
    file.write(COMMANDS)
proof = libreal.Proof()
untraced, untraced_code = serve("untraced", [], env, [], by_shutdown)

for name, stop in (("shutdown", by_shutdown), ("sigterm", by_signal)):
    folder = f"{name}.counts"
    traced_env = libreal.witness_environment(folder, env)
    trace = f"{name}.tide"
    said, code = serve(name, [libreal.TIDEMARK, "record", "-o", trace, "--"], traced_env, LOAD,
                       stop)
    proof.equal(f"{name}: exit code as untraced", untraced_code, code)
    proof.check(said == untraced, f"{name}: answers as untraced",
                f"{name}.out and untraced.out differ")
    recording = libreal.Recording(None, trace, libreal.report_of(trace))
    libreal.check_sane(proof, name, recording)
    libreal.check_witness_of_same_run(proof, name, recording, folder)
    proof.check(recording.heap["allocations"] > 100_000, f"{name}: more than 100,000 allocations",
                recording.heap)
proof.finish()
