#!/usr/bin/env -S python3 -B
# timeout: 300
# parallel: yes
"""python3, every object a call of malloc, reading and writing JSON."""
import os

import libreal

SCRIPT = """
import json, sys
rows = [{"id": i, "name": "row %d" % i, "tags": ["a", "b%d" % (i % 10)], "value": i * 1.5}
        for i in range(int(sys.argv[1]))]
text = json.dumps(rows)
back = json.loads(text)
print(len(text), sum(row["id"] for row in back), text[-60:])
"""

python3 = libreal.find_program("/usr/bin/python3")
env = libreal.environment(PYTHONMALLOC="malloc", PYTHONHASHSEED="0")
# A folder of its own: python3 lists the one where the script lies.
os.mkdir("code")
with open("code/rows.py", "w", encoding="ascii") as file:
    file.write(SCRIPT)
proof = libreal.Proof()

big = [python3, "code/rows.py", "20000"]
untraced = libreal.must_run("big.untraced", big, env)
recording = libreal.record("big", big, env, options=["--native"])
libreal.check_same_run(proof, "big", untraced, recording)
libreal.check_sane(proof, "big", recording)
proof.check(recording.heap["allocations"] > 800_000, "big: more than 800,000 allocations",
            recording.heap)
functions = {frame["function"] for site in recording.report["sites"]["bytes"]
             for frame in site["stack"]}
proof.check({"PyObject_Malloc", "_PyEval_EvalFrameDefault"} & functions,
            "big: the stacks name python's functions", sorted(name or "" for name in functions)[:50])

short = libreal.Witnesses(proof, "short", [python3, "code/rows.py", "1000"], env)
short.run()
small_int = libreal.Reason("an int that holds an address has a digit less below 2^30, where "
                           "Valgrind places the heap", {28, 32}, 2000)
short.check(valgrind_reasons=[small_int])
proof.finish()
