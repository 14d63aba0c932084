#!/usr/bin/env -S python3 -B
# timeout: 300
# parallel: yes
"""g++'s compiler proper, on files made here."""
import os
import subprocess

import libreal

gxx = libreal.find_program("g++")
cc1plus = subprocess.run([gxx, "-print-prog-name=cc1plus"], check=True, stdout=subprocess.PIPE,
                         text=True).stdout.strip()
libreal.find_program(os.path.realpath(cc1plus))
env = libreal.environment()


def source(functions, headers):
    for header in headers:
        yield f"#include <{header}>\n"
    for number in range(functions):
        yield (f"template <int N> struct S{number} {{ int a[N]; int sum() const {{ int s = 0;\n"
               f"  for (int i = 0; i < N; i++) s += a[i] * {number}; return s; }} }};\n"
               f"static int f{number}(int x) {{\n  S{number}<{number % 7 + 1}> s{{}};\n"
               f"  s.a[0] = x; if (x > {number}) return s.sum();\n"
               f"  switch (x) {{ case 1: return 3; case {number + 5}: return x * 2; }}\n"
               f"  return x + {number};\n}}\nint g{number}(int y) {{ return f{number}(y) + 1; }}\n")


for name, functions, headers in (("big", 800, ["map", "string", "vector", "algorithm"]),
                                 ("short", 10, [])):
    with open(f"{name}.cc", "w", encoding="ascii") as file:
        file.writelines(source(functions, headers))
proof = libreal.Proof()

flags = [cc1plus, "-quiet", "-O1", "-imultiarch", "x86_64-linux-gnu", "-D_GNU_SOURCE"]
untraced = libreal.must_run("big.untraced", [*flags, "big.cc", "-o", "untraced.s"], env)
recording = libreal.record("big", [*flags, "big.cc", "-o", "traced.s"], env)
libreal.check_same_run(proof, "big", untraced, recording)
with open("untraced.s", "rb") as one, open("traced.s", "rb") as other:
    proof.check(one.read() == other.read(), "big: the assembly is the same, byte for byte")
libreal.check_sane(proof, "big", recording)
proof.check(recording.heap["allocations"] > 200_000, "big: more than 200,000 allocations",
            recording.heap)

# It asks whether its output is there already. So it is, for all.
command = [*flags, "short.cc", "-o", "short.s"]
libreal.must_run("short.first", command, env)
short = libreal.Witnesses(proof, "short", command, env)
short.run()
page_table = libreal.Reason("gcc keeps a table of 32 KiB for each 4 GiB of addresses that it gets "
                            "from the kernel, and those depend on what else is mapped",
                            {32768}, 4)
short.check(valgrind_reasons=[page_table], heaptrack_reasons=[page_table],
            alone_reason=page_table)
proof.finish()
