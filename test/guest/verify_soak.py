#!/usr/bin/env python3
"""More than ten million stacks, each walked twice: no two walks differ."""
# timeout: 1800
# soak: only
import json
import os

from libguest import TIDEMARK, check, environment, equal, main, program, record, run, test

SQL = ("create table t(a,b); with recursive c(x) as (select 1 union all select x+1 from c where "
       "x<400000) insert into t select x, x*7919%10007 from c; create index i on t(b);")
PYTHON = "import json; d = json.dumps([[i, str(i)] for i in range(200000)]); json.loads(d)"
NODE = ("let a = []; for (let i = 0; i < 400000; i++) a.push(Buffer.from(String(i)));"
        "JSON.parse(JSON.stringify(a.map(String)));")
PERL = "my %h; $h{$_} = [$_] for 1 .. 400000"


def verified(command, **variables):
    record(command, "--verify-stacks", "--force", env=environment(**variables))
    stacks = json.loads(run([TIDEMARK, "info", "--json", "t.tide"]).out)["stacks"]
    equal(0, stacks["mismatched"], f"stacks of {command[0]} that differ")
    print(f"# {command[0]}: {stacks['verified']}", flush=True)
    return stacks["verified"]


@test
def ten_million_of_them():
    with open("many.cpp", "w", encoding="utf-8") as file:
        file.write("#include <map>\n#include <string>\n#include <vector>\n#include <regex>\n"
                   "std::map<std::string, std::vector<int>> all;\n")
        file.writelines(f"int f{i}(int a) {{ all[\"{i}\"].push_back(a); return a * {i}; }}\n"
                        for i in range(1500))
    count = verified(["/usr/bin/g++", "-O1", "-c", "many.cpp", "-o", os.devnull])
    count += verified(["/usr/bin/clang", "-O1", "-c", "many.cpp", "-o", os.devnull])
    count += verified(["/usr/bin/python3", "-c", PYTHON], PYTHONMALLOC="malloc")
    count += verified(["/usr/bin/sqlite3", ":memory:", SQL])
    count += verified(["/usr/bin/perl", "-e", PERL])
    count += verified(["/usr/bin/node", "-e", NODE])
    count += verified(["/usr/bin/gdb", "-nx", "-batch", "-ex", "info functions a",
                       "/usr/bin/python3"])
    libraries = [program(f"libadversary_{name}.so") for name in "ab"]
    count += verified([program("adversary"), "20000", "5"])
    count += verified([program("adversary"), "20000", "6", *libraries])
    count += verified([program("adversary"), "20000", "7", *libraries, "generated"])
    check(count > 10000000, f"only {count} stacks")


main()
