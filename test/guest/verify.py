#!/usr/bin/env python3
"""Every stack that the recorder proves with its cache is the stack that a walk to the root finds."""
# timeout: 240
# parallel: yes
import json
import os

from libguest import BUILD, TIDEMARK, check, equal, environment, main, program, record, run, test


def verified(command, *options, **more):
    """Record with every stack walked twice; how many there were."""
    return verified_and_said(command, *options, **more)[0]


def verified_and_said(command, *options, **more):
    ended = record(command, "--verify-stacks", "--force", *options, **more)
    stacks = json.loads(run([TIDEMARK, "info", "--json", "t.tide"]).out)["stacks"]
    equal(0, stacks["mismatched"], f"stacks of {command[0]} that differ")
    return stacks, ended.out


@test
def four_threads_that_do_everything_to_their_stacks():
    stacks = verified([program("adversary"), "2500", "3"])
    check(stacks["verified"] > 300000, stacks)
    equal(0, stacks["incomplete"], "incomplete stacks")


@test
def the_same_with_the_stacks_of_frees():
    stacks = verified([program("adversary"), "1500", "11"], "--free-stacks")
    check(stacks["verified"] > 300000, stacks)
    equal(0, stacks["incomplete"], "incomplete stacks")


@test
def stacks_that_change_as_a_whole():
    """They are known again as a whole: those that part near the root, of few frames and of many,
    with frame pointers and without, and those of coroutines, each on memory of its own."""
    bench = os.path.join(BUILD, "test", "bench", "bench_parting")
    for parting in (bench, bench + "_frames"):
        for command in (["root", "40", "60000"], ["root", "5", "60000"], ["turns", "300", "30", "60"]):
            for options in ([], ["--free-stacks"]):
                stacks = verified([parting, *command], *options)
                check(stacks["verified"] > 50000, stacks)
                equal(0, stacks["incomplete"], f"incomplete stacks of {command}")


@test
def the_same_among_libraries_and_generated_code_that_come_and_go():
    """Where code has no tables a walk guesses, and may come to addresses of a library that another
    thread is about to close. Nobody may read there then: seeds of which one in five had crashed."""
    libraries = [program(f"libadversary_{name}.so") for name in "ab"]
    for seed in range(1, 7):
        stacks, out = verified_and_said([program("adversary"), "2500", str(seed), *libraries,
                                         "generated"])
        check(stacks["verified"] > 200000, stacks)
        check(0 < stacks["incomplete"] < stacks["verified"] // 10, stacks)
        check(int(out.split()[1]) > 300, "changes of libraries at one address:", out)


@test
def code_that_comes_and_goes_at_one_address():
    stacks = verified([program("reload"), program("libplugin_a.so"), program("libplugin_b.so")])
    check(stacks["verified"] > 6000, stacks)


@test
def programs_that_nobody_here_wrote():
    script = "import json; d = json.dumps([[i, str(i)] for i in range(20000)]); json.loads(d)"
    count = verified(["/usr/bin/python3", "-c", script],
                     env=environment(PYTHONMALLOC="malloc", PYTHONHASHSEED="0"))["verified"]
    count += verified(["perl", "-e", "my %h; $h{$_} = [$_] for 1 .. 60000"])["verified"]
    count += verified(["sqlite3", ":memory:",
                       "create table t(a,b); with recursive c(x) as (select 1 union all "
                       "select x+1 from c where x<80000) insert into t select x, x*7919%10007 "
                       "from c; create index i on t(b);"])["verified"]
    with open("many.cpp", "w", encoding="utf-8") as file:
        file.write("#include <map>\n#include <string>\n#include <vector>\n"
                   "std::map<std::string, std::vector<int>> all;\n")
        file.writelines(f"int f{i}(int a) {{ all[\"{i}\"].push_back(a); return a * {i}; }}\n"
                        for i in range(150))
    count += verified(["g++", "-O1", "-c", "many.cpp", "-o", os.devnull])["verified"]
    count += verified(["/usr/bin/gdb", "-nx", "-batch", "-ex", "info functions stress",
                       program("crowd")])["verified"]
    count += verified(["/usr/bin/node", "-e",
                       "let a = []; for (let i = 0; i < 20000; i++) "
                       "a.push(Buffer.from(String(i)));"])["verified"]
    check(count > 1000000, f"only {count} stacks")


main()
