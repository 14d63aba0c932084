#!/usr/bin/env -S python3 -B
# timeout: 300
# parallel: yes
"""Windows of real recordings: the index, and a list of all lifetimes, say the same.

Of each recording every question of the engine is asked about random windows (window_same), and
the command's own about windows by time, with all filters and groupings, of both layers. In every
row of every table the impacting size is what lives at the end less what lives at the beginning.
"""
import json
import os
import subprocess

import libreal

WINDOW_SAME = os.path.join(libreal.BUILD, "test", "witness", "window_same")
ROWS = """
import json, sys
rows = [{"id": i, "name": "row %d" % i, "tags": ["a", "b%d" % (i % 10)], "value": i * 1.5}
        for i in range(int(sys.argv[1]))]
text = json.dumps(rows)
back = json.loads(text)
print(len(text), sum(row["id"] for row in back))
"""
FAMILY = """
import os, mmap
keep = [bytes(100 + i % 300) for i in range(3000)]
for child in range(3):
    if os.fork() == 0:
        more = [str(i) * 3 for i in range(4000)]
        del keep[::2]
        area = mmap.mmap(-1, 1 << 20)
        area[0] = 1
        if child == 1:
            os.execv("/bin/sh", ["sh", "-c", "for i in 1 2 3; do (echo $i); done; exec true"])
        os._exit(child)
    del keep[::5]
for _ in range(3):
    os.wait()
"""
proof = libreal.Proof()
env = libreal.environment(PYTHONMALLOC="malloc", PYTHONHASHSEED="0", EX2_SCALE="0.02")
os.mkdir("code")
for name, text in (("rows.py", ROWS), ("family.py", FAMILY)):
    with open(os.path.join("code", name), "w", encoding="ascii") as file:
        file.write(text)


def ask(trace, index, *words):
    done = subprocess.run([libreal.TIDEMARK, "window", trace, "--json", "--memory", "16G", *words],
                          env={**env, "TIDEMARK_INDEX": index}, capture_output=True, text=True)
    assert done.returncode == 0, (words, done.stderr)
    return json.loads(done.stdout)


def by_keys(answer):
    """Rows by their keys. Images of one process that follow each other by exec have one pid."""
    rows = {}
    for row in answer["rows"]:
        rows[json.dumps([row["keys"], row.get("process_id")], sort_keys=True)] = row
    assert len(rows) == len(answer["rows"])
    return rows


SPANS = [("0%", "100%"), ("20%", "60%"), ("45%", "50%"), ("peak", "100%"), ("30%", "30%")]
VIEWS = [
    ("--by", "impact,stack"),
    ("--by", "process,layer,heap,thread"),
    ("--by", "type,size", "--size", "1..300"),
    ("--by", "function", "--exit-frees"),
    ("--by", "module,impact", "--not-frame", "main"),
    ("--by", "stack", "--frame", "alloc", "-c", "all"),
    ("--by", "process,impact", "--module", "libc"),
    ("--by", "process,type", "--lifetime", "1us..5ms"),
    ("--by", "stack", "--impact", "transient", "--min-bytes", "1K"),
    ("--by", "owner,stack", "--layer", "vm", "-c", "all"),
    ("--by", "process,owner,impact", "--layer", "vm", "--exit-frees"),
    ("--by", "layer,process,type", "--lifetime", "100us..1000s"),
    ("--by", "owner,size", "--layer", "vm", "--size", "4K..1M"),
]


def check_same(name, trace):
    different = []
    rows = 0
    for number, view in enumerate(VIEWS):
        begin, end = SPANS[number % len(SPANS)]
        words = (*view, "--from", begin, "--to", end)
        plain, indexed = ask(trace, "never", *words), ask(trace, "always", *words)
        rows += len(plain["rows"])
        if plain != indexed:
            different.append(words)
    proof.check(not different, f"{name}: the command says the same with an index and without",
                *different[:5])
    proof.check(rows > 25, f"{name}: there was something to compare", rows)


def sizes(trace, at, *view):
    """What lives at one moment, by row."""
    answer = ask(trace, "always", *view, "--from", at, "--to", at)
    return {keys: (row["count"], row["size"]) for keys, row in by_keys(answer).items()}


def check_identity(name, trace):
    """ImpactingSize = Out(t1) - Out(t0), whatever the rows are."""
    wrong, rows = [], 0
    for begin, end in (SPANS[1], SPANS[3]):
        for view in VIEWS:
            if {"--lifetime", "--impact"} & set(view) or "impact" in view[1] or "type" in view[1]:
                continue
            view = [word for word in view if word not in ("-c", "all")]
            before, after = sizes(trace, begin, *view), sizes(trace, end, *view)
            found = by_keys(ask(trace, "always", *view, "--from", begin, "--to", end))
            rows += len(found)
            for keys in {*found, *before, *after}:
                impact = found[keys]["impacting_size"] if keys in found else 0
                if impact != after.get(keys, (0, 0))[1] - before.get(keys, (0, 0))[1]:
                    wrong.append((view, begin, end, keys[:200], impact, after.get(keys),
                                  before.get(keys)))
    proof.check(not wrong, f"{name}: a row's impacting size is Out(t1) - Out(t0)", *wrong[:5])
    proof.check(rows > 25, f"{name}: there were rows to look at", rows)


def check_vm(name, trace, recording):
    """The layer of virtual memory ends where the report says it does."""
    vm = recording.report["vm"]
    peak = ask(trace, "always", "--layer", "vm", "--by", "owner", "--exit-frees", "--from", "peak",
               "--to", "peak")
    ours = sum(row["size"] for row in peak["rows"] if row["keys"]["owner"] == "tidemark")
    proof.equal(f"{name}: what is committed at the peak is the report's vm.peak_bytes",
                vm["peak_bytes"], peak["total"]["size"] - ours)


def check_engine(name, trace, windows):
    done = subprocess.run([WINDOW_SAME], capture_output=True, text=True,
                          env={**os.environ, "TRACE": trace, "WINDOWS": str(windows)})
    proof.check(done.returncode == 0 and "SKIPPED" not in done.stdout + done.stderr,
                f"{name}: every answer of the engine is the same, {windows} windows",
                done.stdout[-2000:], done.stderr[-2000:])


def prove(name, command, windows, processes):
    trace = f"{name}.tide"
    recording = libreal.record(name, command, env)
    proof.check(len(recording.processes) >= processes, f"{name}: {processes} processes or more",
                len(recording.processes))
    check_engine(name, trace, windows)
    check_same(name, trace)
    check_identity(name, trace)
    check_vm(name, trace, recording)


python3 = libreal.find_program("/usr/bin/python3")
programs = os.path.join(libreal.BUILD, "test", "programs")
prove("python3", [python3, "code/rows.py", "700"], 12, 1)
prove("forks", [python3, "code/family.py"], 12, 6)
prove("exercise2", [os.path.join(programs, "exercise2"), "fork"], 60, 2)
proof.finish()
