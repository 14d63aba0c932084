#!/usr/bin/env -S python3 -B
"""Debian's own programs of 32 bits are recorded whole: as many blocks as the witness counts, as many
calls on virtual memory as strace sees, each stack whole and as libgcc walks it."""
# timeout: 300
# parallel: yes
import importlib
import json
import os
import sys

SOURCE = os.environ["TIDEMARK_SOURCE"]
sys.path.insert(0, os.path.join(SOURCE, "test", "guest"))
os.environ["GUEST_BITS"] = "32"

# pylint: disable=wrong-import-position
import libi386  # noqa: E402
from libguest import (TIDEMARK, Trace, check, check_whole, environment, equal,  # noqa: E402
                      main, need_32_bits, record, record_witnessed, report, run, test)
from libmemory import Memory, count_strace, record_under_strace  # noqa: E402

SQL = ("CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL "
       "SELECT i + 1 FROM n WHERE i < 20000) INSERT INTO t SELECT i, hex(i * 7919) || ' kept' "
       "FROM n; CREATE INDEX u ON t(b); SELECT count(*), max(b) FROM t;")
PYTHON = """
import hashlib, json, threading
def work(n):
    data = json.dumps([{"a": i, "b": [str(i)] * 5} for i in range(n)])
    return len(json.loads(data))
threads = [threading.Thread(target=work, args=(1500,)) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
grown = []
for i in range(300000): grown.append(i)
print(len(grown), hashlib.sha256(b"x").hexdigest()[:8])
"""


# Until there is no hole of 64 MiB any more.
FILL = """
import mmap
kept = []
try:
    while True:
        kept.append(mmap.mmap(-1, 64 << 20))
except OSError as problem:
    print(len(kept), problem.errno)
"""


HOME, WHY = libi386.find()
if not HOME:
    print(WHY)
    sys.exit(77)
LIBRARIES = libi386.libraries(HOME)
SQLITE = [libi386.program(HOME, "sqlite3"), ":memory:", SQL]
PYTHON3 = [libi386.program(HOME, "python3.11"), "-c", PYTHON]
VARIABLES = libi386.variables(HOME)


def check_recording(command, least, out):
    plain = run(command, env=environment(**VARIABLES))
    ended, counts = record_witnessed(command, variables=VARIABLES)
    equal((plain.code, plain.out), (ended.code, ended.out), "what it does, untraced and traced")
    check(out in ended.out, ended.out)
    heap = report()["heap"]
    equal(list(counts), [heap[key] for key in ("allocations", "frees", "allocated_bytes",
                                               "reallocations", "failed")],
          "what the witness counts, and the report")
    check(heap["allocations"] > least, heap)
    text = Trace()
    check_whole(text)
    equal(["32"], [process["bits"] for process in text.processes.values()], "bits")
    cut = {stack for stack, (_, _, flags) in text.stacks.items() if flags}
    equal([], [stack for stack in cut if stack], "stacks that are not whole")
    equal({("patched", None)}, {(process["memory_calls"], process["memory_calls_why"])
                                for process in json.loads(
                                    run([TIDEMARK, "info", "--json", "t.tide"]).out)["processes"]},
          "how memory calls were seen")


@test
def every_block_of_sqlite3_is_there_with_its_whole_stack():
    check_recording(SQLITE, 50000, "20000|")


@test
def every_block_of_python3_is_there_with_its_whole_stack():
    check_recording(PYTHON3, 100000, "300000 2d711642")


@test
def each_stack_is_walked_the_same_twice():
    for command in (SQLITE, PYTHON3):
        record(command, "--force", "--verify-stacks", env=environment(**VARIABLES))
        end = Trace().end
        check(int(end["stacks-verified"]) > 20000, end)
        equal(0, int(end.get("stacks-mismatched", 0)), "stacks that differ")


@test
def stacks_are_those_of_another_unwinder():
    agree = importlib.import_module("unwinder").agree
    for name, command, every in (("sqlite3", SQLITE, 53), ("python3", PYTHON3, 211)):
        os.makedirs(name)
        os.chdir(name)
        agree(command, every, 400, whole=False, beyond=1, **VARIABLES)
        os.chdir("..")


@test
def strace_sees_the_same_calls_of_as_many_bytes():
    for command, least in ((SQLITE, 15), (PYTHON3, 100)):
        code = record_under_strace(command, env=environment(**VARIABLES))
        equal(0, code, "exit code")
        memory = Memory(command[0])
        expected, _, begun = count_strace("t.strace", memory.tids, memory.base())
        check(begun, "strace did not see the recorder begin")
        count = memory.count()
        check(sum(count.count.values()) > least, dict(count.count))
        print(f"# {os.path.basename(command[0])}: {dict(count.count)}")
        equal([], count.differences(expected), "differences")


@test
def with_the_c_library_of_i386_itself_too():
    """Its linker replaces $LIB by another folder than that of Debian's 32-bit libc for x86-64."""
    linker = os.path.join(HOME, "libc/lib/i386-linux-gnu/ld-linux.so.2")
    libraries = os.path.dirname(linker) + ":" + LIBRARIES
    ended = record([linker, "--library-path", libraries, *SQLITE], env=environment())
    check("ld.so" not in ended.err and "20000|" in ended.out, ended.err, ended.out)
    heap = report()["heap"]
    check(heap["allocations"] > 50000, heap)
    check(any(path.endswith(os.path.join(HOME, "libc/lib/i386-linux-gnu/libc.so.6"))
              for path in Trace().modules.values()), Trace().modules)


@test
def resident_memory_is_divided_up_and_adds_up():
    record(PYTHON3, "--force", "--rss-exact", env=environment(**VARIABLES))
    for when in ("peak", "exit"):
        done = run([TIDEMARK, "reconcile", "--json", "--at", when, "t.tide"])
        if done.code == 2 and "no snapshot" in done.err:
            continue
        answer = json.loads(done.out)
        lines = {line["line"]: line["bytes"] for line in answer["lines"]}
        equal(answer["smaps_bytes"], sum(lines.values()) + answer["difference"], f"sum at {when}")
        check(lines["unexplained"] <= answer["smaps_bytes"] // 200, lines)
        check(lines["live"] > 10000, lines)  # the program's peak, if there was time to look then
        return
    check(False, "no snapshot at all")


@test
def a_full_address_space_is_told_with_who_fills_it():
    ended = record([PYTHON3[0], "-c", FILL], env=environment(**VARIABLES))
    kept, errno = map(int, ended.out.split())
    answer = json.loads(run([TIDEMARK, "map", "--json", "t.tide"]).out)
    equal(1, len(answer["failures"]), "calls that failed for want of memory")
    failure = answer["failures"][0]
    equal(("mmap", 64 << 20, errno), (failure["call"], failure["size"], failure["error"]), "which")
    check(0 < failure["largest_free"] < 64 << 20, failure)
    culprit = failure["in_the_way"]
    equal((kept, kept * (64 << 20)), (culprit["count"], culprit["bytes"]), "who is in the way")
    check(culprit["largest_without"] > 2 << 30, culprit)
    check(any("mmap.cpython" in (line["module"] or "") for line in failure["stack"]), failure["stack"])


main(needs=need_32_bits)
