#!/usr/bin/env -S python3 -B
# timeout: 300
# parallel: yes
"""Programs that start others: every process in the one trace, each with counts of its own."""
import os

import libreal

env = libreal.environment()
proof = libreal.Proof()


def prove(name, command, programs, options=()):
    """Record it with the witness behind the recorder, which counts in each process too."""
    folder = f"{name}.counts"
    untraced = libreal.must_run(f"{name}.untraced", command, env)
    recording = libreal.record(name, command, libreal.witness_environment(folder, env),
                               options=options)
    libreal.check_same_run(proof, name, untraced, recording)
    libreal.check_sane(proof, name, recording)
    libreal.check_witness_of_same_run(proof, name, recording, folder)
    seen = {os.path.basename(process["exe"]) for process in recording.processes}
    proof.check(programs <= seen, f"{name}: recorded are {', '.join(sorted(programs))}",
                f"only {sorted(seen)}")
    ends = {process["exit"] for process in recording.processes}
    proof.check("unknown" not in ends, f"{name}: how each process ended is known", sorted(ends))
    check_tree(name, recording)
    return recording


def check_tree(name, recording):
    ids = {process["id"] for process in recording.processes}
    first = recording.processes[0]
    lost = [process for process in recording.processes
            if process["parent_id"] not in ids and process["pid"] != first["pid"]]
    proof.check(not lost, f"{name}: every process but the first has a parent", lost)
    proof.equal(f"{name}: the first process was not forked", False, first["forked"])


with open("hello.cc", "w", encoding="ascii") as file:
    file.write("#include <cstdio>\nint main() { std::puts(\"hello\"); }\n")
prove("compiler", [libreal.find_program("g++"), "-O1", "hello.cc", "-o", "hello"],
      {"cc1plus", os.path.basename(os.path.realpath(libreal.find_program("as"))),
       os.path.basename(os.path.realpath(libreal.find_program("ld")))})

# A shell's pipes, subshells and background jobs: forks that exec and forks that do not.
SCRIPT = """
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
	(x=$(printf '%s\\n' a$i b$i c$i | sort -r | head -n 2); echo $x; (exit $i); echo $?)
done
for i in 1 2 3 4 5; do sleep 0.0$i & done
wait
exec sed -n '1,3p' hello.cc
"""
with open("jobs.sh", "w", encoding="ascii") as file:
    file.write(SCRIPT)
for shell in ("bash", "dash"):
    prove(shell, [libreal.find_program(shell), "jobs.sh"], {shell, "sort", "head", "sleep", "sed"})

proof.finish()
