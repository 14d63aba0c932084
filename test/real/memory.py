#!/usr/bin/env -S python3 -B
"""Of real programs, as many calls on virtual memory of as many bytes are recorded as strace sees."""
# timeout: 300
# parallel: yes
import os


from libreal import Proof, environment, find_program
from libmemory import Memory, count_strace, record_under_strace

PYTHON = """
import array, json, threading
def work(n):
    data = json.dumps([{"a": i, "b": [str(i)] * 5} for i in range(n)])
    return len(json.loads(data))
threads = [threading.Thread(target=work, args=(8000,)) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
grown = array.array("d")
for i in range(400000): grown.append(i)
print(len(grown))
"""

NODE = """
const kept = [];
for (let i = 0; i < 200; i++) kept.push(Buffer.alloc(100000, i), new Array(5000).fill(i));
console.log(kept.length);
"""

C = "".join(f"int f{i}(int x) {{ int s = 0; for (int i = 0; i < x; i++) s += i * {i}; return s; }}\n"
            for i in range(1500))


def compare(proof, name, command, exe, code=0, **options):
    ended = record_under_strace(command, env=environment(), **options)
    if not proof.check(ended == code, f"{name} runs as it would", f"exit code {ended}",
                       open("t.out", encoding="utf-8", errors="replace").read()[-800:]):
        return
    memory = Memory(os.path.realpath(exe))
    expected, own, begun = count_strace("t.strace", memory.tids, memory.base())
    proof.check(begun, f"{name}: tidemark's own calls are told apart", dict(own.count))
    count = memory.count()
    proof.check(count.count["mmap"] + count.count["mprotect"] + count.count["brk"] > 5,
                f"{name} asks for memory", dict(count.count))
    proof.check(not count.differences(expected), f"{name}: each call as often, of as many bytes",
                *count.differences(expected))
    proof.note(f"{name}: {dict(count.count)}")


def redis(proof):
    """A server that is told to shut down."""
    server, client, load = (find_program("redis-" + name)
                            for name in ("server", "cli", "benchmark"))
    path = os.path.abspath("redis.sock")
    script = (f"{server} --port 0 --unixsocket {path} --save '' --appendonly no >/dev/null & "
              f"while ! {client} -s {path} ping >/dev/null 2>&1; do sleep 0.1; done; "
              f"{load} -s {path} -q -n 30000 -r 30000 -d 1000 -t set >/dev/null; "
              f"{client} -s {path} flushall >/dev/null; "
              f"{client} -s {path} shutdown nosave; wait")
    compare(proof, "redis-server", ["/bin/sh", "-c", script], server)


def main():
    proof = Proof()
    with open("plain.c", "w", encoding="ascii") as out:
        out.write(C)
    python, node, clang = (find_program(name) for name in ("python3", "node", "clang"))
    compare(proof, "python3", [python, "-c", PYTHON], python)
    compare(proof, "node", [node, "-e", NODE], node)
    redis(proof)
    compare(proof, "clang", [clang, "-O1", "-S", "plain.c", "-o", "plain.s"], clang)
    proof.finish()


main()
