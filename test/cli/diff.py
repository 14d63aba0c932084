#!/usr/bin/env python3
# parallel: yes
"""What `tidemark diff` promises, on pairs of traces whose differences are spelled out."""
import csv
import io
import random

from libanswer import answer, assemble, golden, refused, run, sampled
from libtests import main, test
from libtrends import Trace, functions

SECOND = 1000000
FIGURES = ("live", "peak", "allocated", "temporary")


def stack(name, line=10, inlined=""):
    return f'"malloc" < {inlined}"{name}" "{name}.c":{line} < "main" "app.c":{line + 70}'


def before():
    trace = Trace("./app --old", "/opt/app-1.0")
    for k in range(10):
        trace.alloc(k, stack("leak"), 100)
    trace.alloc(20, stack("keep"), 1000)
    for k in range(5):
        trace.free(31 + 2 * k, trace.alloc(30 + 2 * k, stack("work"), 500))
    trace.alloc(50, stack("old_table"), 4000)
    return trace.write("before.tide", 100)


def after():
    """The leak is smaller, a table is another one, work is done more often; all lines differ."""
    trace = Trace("./app --new", "/opt/app-1.1")
    for k in range(4):
        trace.alloc(k, stack("leak", 17), 100)
    trace.alloc(20, stack("keep", 99), 1000)
    for k in range(8):
        trace.free(31 + 2 * k, trace.alloc(30 + 2 * k, stack("work", 33), 500))
    trace.alloc(60, stack("new_table", 5), 3000)
    return trace.write("after.tide", 100)


def counts(**given):
    return {**dict.fromkeys(("new", "gone", "moved", "changed", "varied", "same"), 0), **given}


def by_name(told):
    return {functions(row)[1]: row for row in told["rows"]}


@test
def stacks_are_matched_by_name_and_their_changes_are_exact():
    told = answer("diff", before(), after(), "-n", "0")
    rows = by_name(told)
    assert set(rows) == {"leak", "old_table", "new_table", "work"}, set(rows)
    assert rows["leak"]["live"] == {"before_bytes": 1000, "after_bytes": 400, "before_count": 10,
                                    "after_count": 4, "bytes": -600, "count": -6, "changed": True,
                                    "bytes_low": None, "bytes_high": None, "count_low": None,
                                    "count_high": None}
    assert rows["leak"]["state"] == "both" and rows["leak"]["stack"][1]["line"] == 17
    assert rows["old_table"]["state"] == "gone" and rows["old_table"]["live"]["bytes"] == -4000
    assert rows["new_table"]["state"] == "new" and rows["new_table"]["live"]["bytes"] == 3000
    assert told["stacks"] == counts(new=1, gone=1, changed=2, same=1)
    assert [functions(row)[1] for row in told["rows"]] == ["old_table", "new_table", "leak", "work"]
    by_count = answer("diff", "before.tide", "after.tide", "--sort", "count")["rows"]
    assert functions(by_count[0])[1] == "leak" and by_count[0]["allocated"]["count"] == -6
    assert functions(by_count[1])[1] == "work" and by_count[1]["allocated"]["count"] == 3
    temporary = answer("diff", "before.tide", "after.tide", "--sort", "temporary")["rows"]
    assert [(functions(row)[1], row["temporary"]["count"]) for row in temporary] == [("work", 3)]


@test
def what_changed_in_another_figure_alone_is_counted_and_listed_without_a_limit():
    quick, slow = Trace("./app", "/opt/app"), Trace("./app", "/opt/app")
    for trace, count in ((quick, 5), (slow, 8)):
        trace.alloc(0, stack("keep"), 1000)
        for k in range(count):
            trace.free(31 + 2 * k, trace.alloc(30 + 2 * k, stack("work"), 500))
    paths = quick.write("quick.tide", 100), slow.write("slow.tide", 100)
    told = answer("diff", *paths)
    assert told["rows"] == [] and told["rows_elsewhere"] == 1, told
    said = run("diff", *paths).stdout
    assert ("no stack changed in live\n  … 1 stack changed in other figures alone (--sort ranks by another figure, "
            "-n 0 shows all)\n") in said, said
    # With a limit of bytes it stays out, whatever the limit of rows is.
    said = run("diff", *paths, "-n", "0", "--min-bytes", "1").stdout
    assert "alone (--sort ranks by another figure)\n" in said, said
    said = run("diff", before(), after(), "--min-bytes", "1M").stdout
    assert "no stack changed in live by 1.0 MiB or more\n  … 3 more stacks\n" in said, said
    told = answer("diff", *paths, "-n", "0")
    assert [functions(row)[1] for row in told["rows"]] == ["work"] and told["rows_elsewhere"] == 0, told
    table = list(csv.DictReader(io.StringIO(run("diff", *paths, "-n", "0", "--csv").stdout)))
    assert len(table) == 1, table


def script_run(folder, sizes):
    trace = Trace("python3 app.py")
    trace.lines[1] = 'process p0 pid=42 exe="/usr/bin/python3" arg="python3" arg="app.py"'
    for at, (file, size) in enumerate(sizes.items()):
        trace.alloc(at, f'"grow" "{folder}/{file}":7 < "main" "{folder}/app.py":3 < "<module>" "{folder}/app.py":9', size)
    return trace.write(f"{folder.replace('/', '_')}.tide", 100)


@test
def functions_of_one_name_in_two_scripts_are_two():
    one = script_run("/ci/1", {"caches.py": 400, "a/utils.py": 10, "b/utils.py": 20})
    two = script_run("/ci/2", {"caches.py": 400, "a/utils.py": 10, "b/utils.py": 720})
    told = answer("diff", one, two, "-n", "0")
    assert told["stacks"] == counts(changed=1, same=2), told["stacks"]
    assert [(row["stack"][0]["file"], row["live"]["bytes"]) for row in told["rows"]] == [("/ci/2/b/utils.py", 700)]
    swapped = script_run("/ci/3", {"caches.py": 10, "a/utils.py": 400, "b/utils.py": 20})
    told = answer("diff", one, swapped, "-n", "0")
    assert told["stacks"] == counts(changed=2, same=1), told["stacks"]


def built(name, files, sizes):
    text = f'process p pid=1 exe="/opt/{name}"\nthread t p tid=1\nmodule m p 0x1000-0x9000 bias=0x1000 "/opt/{name}"\n'
    for at, (file, size) in enumerate(zip(files, sizes)):
        place = f' "{file}":{at + 2}' if file else ""
        text += (f'frame l{at} m {0x1100 + at:#x}\nname l{at} "load"{place}\nframe c{at} m {0x2100 + at:#x}\n'
                 f'name c{at} "from{at}"{place}\nstack s{at} l{at} < c{at}\n@{at} t malloc s{at} {0x1000 * (at + 1):#x} {size}\n')
    return assemble(name, text + "end\n")


@test
def static_functions_of_one_name_are_told_apart_by_their_source_unless_a_build_has_none():
    one = built("one", ("/a/c1.c", "/a/c2.c"), (100, 1000))
    told = answer("diff", one, built("two", ("/b/c1.c", "/b/c2.c"), (150, 1000)), "-n", "0")
    assert told["stacks"] == counts(changed=1, same=1), told["stacks"]
    assert told["rows"][0]["stack"][0]["file"] == "/b/c1.c", told["rows"]
    bare = built("bare", (None, None), (100, 1000))
    assert answer("diff", bare, one, "-n", "0")["stacks"] == counts(same=2)
    # Both are the first `load` then.
    assert answer("diff", one, bare, "-n", "0")["stacks"] == counts(same=1, moved=1)
    alone = built("alone", ("/a/c1.c",), (100,)), built("bare_alone", (None,), (100,))
    assert answer("diff", *alone, "-n", "0")["stacks"] == counts(same=1)


def loads(name, main, sizes):
    """A program whose main calls functions of one name, each in a file of C of its own."""
    place = f' "{main}":9' if main else ""
    text = (f'process p pid=1 exe="/opt/{name}"\nthread t p tid=1\nmodule m p 0x1000-0x9000 bias=0x1000 "/opt/{name}"\n'
            f'frame main m 0x3000\nname main "main"{place}\nstack main main\n')
    for at, (file, size) in enumerate(sizes.items()):
        text += (f'frame l{at} m {0x1100 + at:#x}\nname l{at} "load" "{file}":3\nstack s{at} l{at} < main\n'
                 f'@{at} t malloc s{at} {0x1000 * (at + 1):#x} {size}\n')
    return assemble(name, text + "end\n")


@test
def files_of_one_name_in_two_folders_are_two_wherever_the_program_was_built():
    one = loads("one", "/o/src/main.c", {"/o/src/a/util.c": 100, "/o/b/util.c": 1000, "/o/src/c.c": 7})
    two = loads("two", "/home/n/src/main.c", {"/home/n/b/util.c": 1500, "/home/n/src/a/util.c": 100, "/home/n/src/c.c": 7})
    told = answer("diff", one, two, "-n", "0")
    assert told["stacks"] == counts(changed=1, same=2), told["stacks"]
    assert told["rows"][0]["stack"][0]["file"] == "/home/n/b/util.c", told["rows"]
    other = loads("other", "/n/src/main.c", {"/n/src/b/util.c": 100, "/n/src/c.c": 7})
    alone = loads("alone", "/o/src/main.c", {"/o/src/a/util.c": 100, "/o/src/c.c": 7})
    assert answer("diff", alone, other, "-n", "0")["stacks"] == counts(moved=1, same=1)
    # Where it is not known where the program was built, files are told by their names alone.
    bare = loads("unplaced", None, {"/n/src/b/util.c": 100, "/n/src/c.c": 7})
    assert answer("diff", alone, bare, "-n", "0")["stacks"] == counts(same=2)
    assert answer("diff", bare, alone, "-n", "0")["stacks"] == counts(same=2)
    # A library of the system has nothing in common with the program but "/".
    far = loads("far", "/o/src/main.c", {"/usr/a/util.c": 100}), loads("near", "/n/src/main.c", {"/opt/x/util.c": 100})
    assert answer("diff", *far, "-n", "0")["stacks"] == counts(same=1)


@test
def totals_are_those_of_two_reports_and_rows_add_up_to_them():
    paths = before(), after()
    told = answer("diff", *paths, "-n", "0", "--sort", "peak")
    reports = [answer("report", path)["heap"] for path in paths]
    total = told["total"]
    for side, heap in zip(("before", "after"), reports):
        assert total["live"][side + "_bytes"] == heap["live_at_exit"]["bytes"]
        assert total["peak"][side + "_bytes"] == heap["peak_bytes"]
        assert total["allocated"][side + "_bytes"] == heap["allocated_bytes"]
        assert total["allocated"][side + "_count"] == heap["allocations"]
        assert total["temporary"][side + "_count"] == heap["temporary"]["count"]
    assert sum(row["peak"]["bytes"] for row in told["rows"]) == total["peak"]["bytes"]


@test
def the_other_way_round_everything_has_the_other_sign():
    there = answer("diff", before(), after(), "-n", "0")
    back = answer("diff", "after.tide", "before.tide", "-n", "0")
    for figure in FIGURES:
        assert there["total"][figure]["bytes"] == -back["total"][figure]["bytes"]
    assert {name: row["live"]["bytes"] for name, row in by_name(there).items()} == \
        {name: -row["live"]["bytes"] for name, row in by_name(back).items()}


@test
def a_trace_does_not_differ_from_itself():
    told = answer("diff", before(), "before.tide")
    assert told["rows"] == [] and told["stacks"]["same"] == 4
    assert "no stack changed in live" in run("diff", "before.tide", "before.tide").stdout


@test
def for_people_it_looks_like_this():
    golden("diff.txt", run("diff", before(), after()).stdout)
    family = []
    for name, extra in (("one", 0), ("two", 1)):
        trace = Trace("sh -c jobs", "/bin/sh")
        trace.alloc(1, stack("shell"), 64)
        for k in range(2 + extra):
            job = trace.process("/usr/bin/job", 50 + 10 * extra + k, began_us=10)
            for n in range(3):
                trace.alloc(20 + n, stack("work"), 100 + extra, thread=job)
            trace.note(50, f"end p{job} exit=0")
        family.append(trace.write(name + ".tide", 60))
    golden("diff_family.txt", run("diff", *family).stdout)
    told = answer("diff", *family)
    assert [(row["before_id"], row["after_id"]) for row in told["processes"]] == \
        [(0, 0), (1, 1), (2, 2), (None, 3)], told["processes"]
    # One row for the work of all jobs: 2 * 3 blocks of 100 became 3 * 3 of 101.
    assert [(row["exe"], row["live"]["bytes"]) for row in told["rows"]] == \
        [("/usr/bin/job", 9 * 101 - 6 * 100)]


def family(name, root, *children):
    """Processes below a root, as (key, parent's key or None for the root, program); their numbers. Each
    allocates once."""
    trace, numbers = Trace("run", root), {None: 0}
    trace.alloc(1, stack("work"), 10)
    for at, (key, parent, exe) in enumerate(children):
        numbers[key] = trace.process(exe, 50 + at, began_us=1, parent=numbers[parent])
        trace.alloc(2 + at, stack("work"), 10, thread=numbers[key])
    return trace.write(name, 60), numbers


def paired(first, second):
    """The pairs that diff finds, as keys of either side; a key without a partner has None."""
    names = [{number: key for key, number in numbers.items()} for _, numbers in (first, second)]
    rows = answer("diff", first[0], second[0])["processes"]
    return {tuple(key if number is None else names[side][number] or "root"
                  for side, (key, number) in enumerate([(None, row["before_id"]),
                                                        (None, row["after_id"])])) for row in rows}


@test
def processes_are_paired_by_program_and_place_in_the_tree():
    # The same compiler from two parents, which begin in another order.
    first = family("p1.tide", "/bin/make", ("lib", None, "/bin/lib"), ("app", None, "/bin/app"),
                   ("l1", "lib", "/bin/cc"), ("l2", "lib", "/bin/cc"), ("a1", "app", "/bin/cc"))
    second = family("p2.tide", "/bin/make", ("app", None, "/bin/app"), ("a1", "app", "/bin/cc"),
                    ("a2", "app", "/bin/cc"), ("lib", None, "/bin/lib"), ("l1", "lib", "/bin/cc"),
                    ("l2", "lib", "/bin/cc"))
    check_pairs = {(key, key) for key in ("root", "lib", "app", "l1", "l2", "a1")}
    assert paired(first, second) == check_pairs | {(None, "a2")}, paired(first, second)
    assert paired(second, first) == check_pairs | {("a2", None)}, paired(second, first)


@test
def a_program_that_a_script_started_and_its_children_are_those_of_the_program_alone():
    script = family("s1.tide", "/bin/sh", ("tool", None, "/opt/tool"), ("child", "tool", "/opt/help"),
                    ("other", None, "/opt/help"))
    alone = family("s2.tide", "/opt/tool", ("child", None, "/opt/help"))
    assert paired(script, alone) == {("root", None), ("tool", "root"), ("child", "child"),
                                     ("other", None)}, paired(script, alone)
    assert paired(alone, script) == {(None, "root"), ("root", "tool"), ("child", "child"),
                                     (None, "other")}, paired(alone, script)


@test
def clones_inlining_modules_and_versions_do_not_part_what_belongs_together():
    trace = Trace(exe="/opt/one")
    trace.lines.append('module l p0 0x1000-0x2000 bias=0x1000 "/usr/lib/libwork.so.1.2"')
    trace.lines.append('frame f l 0x1500\nname f "step" "l.c":3')
    trace.alloc(1, 'f < "solve.constprop.0" < "main"', 10)
    trace.alloc(2, 'f < "outer(int) [clone .isra.0]" < "main"', 20)
    one = trace.write("one.tide")
    trace = Trace(exe="/opt/two")
    trace.lines.append('module l p0 0x7000-0x9000 bias=0x7000 "/opt/lib/libwork.so.1.3.1"')
    trace.lines.append('frame f l 0x7a00\nname f "step" "l.c":9 < "solve" "l.c":20')
    trace.lines.append('frame g l 0x7b00\nname g "step" "l.c":9')
    trace.alloc(1, 'g < "solve" < "main"', 10)
    trace.alloc(2, 'g < "outer(int)" < "main"', 20)
    told = answer("diff", one, trace.write("two.tide"))
    assert told["stacks"] == counts(same=2), told


@test
def where_a_thread_begins_parts_no_stacks():
    paths = []
    for number, (library, main_by, thread_by) in enumerate((
            ("libc.so.6", "f", "g"), ("libc.so.6", '"__libc_start_call_main" < "__libc_start_main_impl" < "_start"',
                                      '"start_thread" < "clone3"'),
            ("libc-2.31.so", '"__libc_start_main" < "_start"', 'g < "clone"'),
            ("libc.so.6", '"__libc_start_main_impl" < h', '"start_thread" < "clone3"'))):
        trace = Trace()
        trace.lines.append(f'module l p0 0x1000-0x2000 bias=0x1000 "/lib/{library}"')
        trace.lines.append('module d p0 0x3000-0x4000 bias=0x3000 "/lib/ld-linux-x86-64.so.2"')
        trace.lines += [f"frame f l {0x1500 + number:#x}", f"frame g l {0x1700 + number:#x}",
                        f"frame e d {0x3100 + number:#x}", 'module x p0 0x5000-0x6000 bias=0x5000 "/bin/app"',
                        "frame h x 0x5000"]
        trace.alloc(1, f'"malloc" < "work" < "main" < {main_by}', 10)
        trace.alloc(2, f'"malloc" < "work" < "worker" < {thread_by}', 10)
        trace.alloc(3, '"malloc" < "init" < e', 10)
        trace.alloc(4, "f" if number == 0 else '"start_thread"', 10)
        paths.append(trace.write(f"libc{number}.tide"))
        # Nor are they shown.
        found = run("report", paths[-1], "-n", "0").stdout
        assert "clone" not in found and "libc.so.6+0x700" not in found and "app+0x" not in found, found
    for other in paths[1:]:
        told = answer("diff", paths[0], other, "-n", "0")
        assert told["stacks"] == counts(new=1, gone=1, same=3), (other, told["stacks"])
    assert answer("diff", paths[1], paths[2], "-n", "0")["stacks"] == counts(same=4)


@test
def addresses_that_stand_for_names_in_imported_recordings_part_no_stacks():
    paths = []
    for number in (1, 2):
        trace = Trace()
        trace.alloc(1, f'"libstdc++.so.6 0x7f0bbd2a958{number}" < "cache(int)" < "main" < "__libc_start_call_main" < '
                    f'"app 0x555f79e7f{number}f0"', 10)
        trace.alloc(2, f'"malloc" < "0x4900{number}B9" < "main"', 20)
        trace.alloc(3, f'"malloc" < "take 0x{number}z" < "main"', 30)
        paths.append(trace.write(f"named{number}.tide"))
    assert "libc_start" not in run("report", paths[0]).stdout
    told = answer("diff", *paths)["stacks"]
    assert told == counts(moved=1, same=2), told


@test
def lambdas_and_closures_are_the_same_when_one_is_written_above_them():
    paths = []
    for number in (1, 2):
        trace = Trace()
        trace.alloc(1, f'f < "run()::{{lambda(int)#{number}}}::operator()(int) const" < "main"', 10)
        trace.alloc(2, f'f < "run()::{{lambda(char)#{number}}}::operator()(char) const" < "main"', 10)
        trace.alloc(3, f'f < "app::run::{{closure#{number}}}" < "main"', 10)
        trace.alloc(4, f'f < "run()::$_{number}::operator()() const" < "main"', 10)
        trace.alloc(5, f'f < "step{number}" < "main"', 10)
        paths.append(trace.write(f"lambda{number}.tide"))
    told = answer("diff", *paths)["stacks"]
    assert told == counts(moved=1, same=4), told


@test
def a_function_of_another_module_is_another_one():
    paths = []
    for module in ("libone.so.1", "libtwo.so.1"):
        trace = Trace()
        trace.lines.append(f'module l p0 0x1000-0x2000 bias=0x1000 "/usr/lib/{module}"')
        trace.lines.append('frame f l 0x1500\nname f "init" "l.c":3')
        trace.alloc(1, 'f < "main"', 10)
        paths.append(trace.write(module + ".tide"))
    assert answer("diff", *paths)["stacks"] == counts(moved=1)


@test
def two_windows_of_one_trace_are_compared_as_well():
    trace = Trace()
    for second in range(20):
        for k in range(2 if second < 10 else 5):
            trace.alloc(second * SECOND + k, stack("leak"), 100)
        trace.free(second * SECOND + 11, trace.alloc(second * SECOND + 10, stack("work"), 700))
    path = trace.write("windows.tide", 20 * SECOND)
    told = answer("diff", path, "--from", "0.5s", "--to", "5.5s", "--with-from", "10.5s",
                  "--with-to", "15.5s")
    leak = by_name(told)["leak"]
    assert (leak["allocated"]["before_count"], leak["allocated"]["after_count"]) == (10, 25)
    assert leak["live"]["before_bytes"] == 1200 and leak["live"]["after_bytes"] == 5000
    assert told["total"]["temporary"]["before_count"] == told["total"]["temporary"]["after_count"]
    assert (told["before"]["from_ns"], told["after"]["to_ns"]) == (500000000, 15500000000)
    only = answer("diff", path, "--to", "5.5s", "--with-to", "15.5s")
    assert only["total"]["allocated"]["count"] == 4 * 2 + 6 * 5 + 10


def random_trace(path, seed):
    choose = random.Random(seed)
    trace = Trace()
    live = []
    names = ["alpha", "beta", "gamma", "delta", "epsilon"]
    for time_us in range(1, 300):
        if live and choose.random() < 0.45:
            trace.free(time_us, live.pop(choose.randrange(len(live))))
        else:
            name = choose.choice(names[seed % 2:])
            live.append(trace.alloc(time_us, stack(name, choose.randrange(1, 50)),
                                    choose.randrange(1, 5000)))
    return trace.write(path, 400)


@test
def on_random_traces_each_row_is_the_difference_of_two_reports_by_function():
    for seed in range(6):
        paths = random_trace("a.tide", seed), random_trace("b.tide", seed + 101)
        told = by_name(answer("diff", *paths, "-n", "0"))
        sums = []
        for path in paths:
            sums.append({})
            sites = answer("report", path, "-n", "0")["sites"]["live_at_exit"]
            for row in sites:
                name = row["stack"][1]["function"]
                sums[-1][name] = sums[-1].get(name, 0) + row["bytes"]
        for name in set(sums[0]) | set(sums[1]):
            change = sums[1].get(name, 0) - sums[0].get(name, 0)
            assert (told[name]["live"]["bytes"] if name in told else 0) == change, (seed, name)


@test
def filters_rows_and_sizes_narrow_it():
    paths = before(), after()
    only = answer("diff", *paths, "--frame", "table")
    assert set(by_name(only)) == {"old_table", "new_table"}
    assert only["total"]["live"]["bytes"] == -1000
    assert answer("diff", *paths, "--size", "..100")["total"]["live"]["bytes"] == -600
    assert set(by_name(answer("diff", *paths, "--min-bytes", "1000"))) == {"old_table", "new_table"}
    first = answer("diff", *paths, "-n", "1")
    assert len(first["rows"]) == 1 and first["rows_total"] == 3
    assert "2 more stacks (-n 0 shows all)" in run("diff", *paths, "-n", "1").stdout


@test
def the_table_has_a_line_for_each_stack():
    rows = list(csv.DictReader(io.StringIO(run("diff", before(), after(), "--csv").stdout)))
    assert [(row["state"], row["live_bytes"]) for row in rows] == \
        [("gone", "-4000"), ("new", "3000"), ("both", "-600")]
    assert rows[2]["function"] == "leak" and rows[2]["live_bytes_before"] == "1000"


@test
def a_warning_names_the_trace_that_it_is_about():
    path = sampled()
    for form in ("--json", "--csv"):
        told = run("diff", before(), path, form).stderr.splitlines()
        assert len(told) == 1 and f"warning: {path}: the recording is sampled" in told[0], told


@test
def an_empty_trace_is_nothing_to_compare_with():
    empty = Trace().write("empty.tide")
    told = answer("diff", empty, before())
    assert told["stacks"]["new"] == 4 and told["total"]["live"]["bytes"] == 6000
    assert answer("diff", empty, empty)["rows"] == []


@test
def more_stacks_than_there_is_memory_for_are_refused_with_what_to_do():
    count = 40000
    trace = Trace()
    for k in range(count):
        trace.alloc(k, f'"f{k}"', 10)
    paths = trace.write("many.tide"), Trace().write("none.tide")
    assert answer("diff", *paths)["stacks"]["gone"] == count
    told = run("diff", *paths, "--memory", "40M", check=4).stderr
    assert "choose fewer with filters, or raise --memory" in told, told
    assert answer("diff", *paths, "--memory", "40M", "--frame", "f1.*")["stacks"]["gone"] == 11111


# ---- several runs a side ----

def a_run(path, calls, jitter, renamed=False, extra=0):
    """A run: `calls` calls that are exact, a table of a random size, and what comes with the runs."""
    trace = Trace()
    for k in range(calls):
        trace.alloc(k, stack("exact"), 100)
    trace.alloc(2000, stack("table"), 5000 + jitter * 100)
    for k in range(30 + jitter % 7):
        trace.alloc(3000 + k, stack("hashed"), 64)
    for k in range(5):
        trace.alloc(4000 + k, stack("parse_new" if renamed else "parse_old"), 200)
    for k in range(extra):
        trace.alloc(5000 + k, stack("added"), 10)
    return trace.write(path, 6000)


def runs(prefix, jitters, **more):
    return [a_run(f"{prefix}{k}.tide", more.get("calls", 100), jitter, more.get("renamed", False),
                  more.get("extra", 0)) for k, jitter in enumerate(jitters)]


@test
def of_several_runs_only_what_differs_by_more_than_they_do_has_changed():
    old = runs("old", (3, 1, 4, 2, 6))
    new = runs("new", (2, 5, 1, 3, 4), calls=103, extra=2)
    told = answer("diff", *old, "--against", *new, "-n", "0")
    rows = by_name(told)
    assert set(rows) == {"exact", "added"}, set(rows)
    assert (told["before_runs"], told["after_runs"]) == (5, 5)
    live = rows["exact"]["live"]
    assert (live["count"], live["count_low"], live["count_high"], live["changed"]) == (3, 3, 3, True)
    assert (live["before_bytes"], live["after_bytes"]) == (10000, 10300)
    assert rows["added"]["state"] == "new" and rows["added"]["live"]["bytes_low"] == 20
    assert told["stacks"] == counts(new=1, changed=1, varied=2, same=1), told["stacks"]
    # In all the noise of the table hides 320 bytes, but not the calls.
    assert not told["total"]["live"]["changed"] or told["total"]["live"]["bytes_low"] > -1000
    low, high = (told["total"]["live"][key] for key in ("bytes_low", "bytes_high"))
    assert low < told["total"]["live"]["bytes"] < high


@test
def equal_runs_show_no_change_and_say_so():
    old, new = runs("e", (3, 1, 4, 2, 6)), runs("f", (2, 5, 1, 3, 4))
    told = answer("diff", *old, "--against", *new, "-n", "0")
    assert told["rows"] == [] and told["stacks"] == counts(varied=2, same=2), told["stacks"]
    text = run("diff", *old, "--against", *new).stdout
    assert "no stack changed in live" in text and "2 ≈" in text and "4 more runs" in text, text
    # The other way round, and with two runs of one side more, nothing is said either.
    assert answer("diff", *new, "--against", *old)["rows"] == []
    assert answer("diff", *old, *new[:2], "--against", *new[2:])["rows"] == []


@test
def what_moved_is_one_row_with_both_places():
    one = a_run("one.tide", 100, 0)
    told = answer("diff", one, a_run("two.tide", 100, 0, renamed=True), "-n", "0")
    row, = told["rows"]
    assert row["state"] == "moved" and row["live"]["bytes"] == 0 and not row["live"]["changed"]
    assert functions(row)[1] == "parse_new" and row["moved_from"][1]["function"] == "parse_old"
    assert told["stacks"] == counts(moved=1, same=3)
    # Of several runs too, with what the noise of others leaves.
    old, new = runs("m", (3, 1, 4, 2)), runs("n", (2, 5, 1, 3), renamed=True)
    rows = by_name(answer("diff", *old, "--against", *new, "-n", "0"))
    assert set(rows) == {"parse_new"} and rows["parse_new"]["state"] == "moved"
    golden("diff_runs.txt", run("diff", *old, "--against",
                                *runs("o", (2, 5, 1, 3), renamed=True, calls=140)).stdout)
    table = list(csv.DictReader(io.StringIO(run("diff", *old, "--against", *new, "--csv").stdout)))
    assert table[0]["state"] == "moved" and "parse_old" in table[0]["moved_from"]


@test
def what_only_looks_alike_has_not_moved():
    one, two = Trace(), Trace()
    one.alloc(1, '"f" < "one" < "main"', 100)
    one.alloc(2, '"g" < "alpha" < "beta" < "main"', 70)
    two.alloc(1, '"f" < "one" < "main"', 100)
    two.alloc(2, '"h" < "gamma" < "delta" < "main"', 70)  # as much, elsewhere
    two.alloc(3, '"g" < "alpha" < "other" < "main"', 700)  # nearly there, but more
    told = answer("diff", one.write("one.tide"), two.write("two.tide"), "-n", "0")
    assert told["stacks"] == counts(new=2, gone=1, same=1), told["stacks"]


@test
def warnings_of_every_run_are_kept():
    path = sampled()
    plain = runs("w", (1, 2, 3, 4))
    told = answer("diff", *plain, "--against", *runs("v", (1, 2, 3)), path)
    assert any("sampled" in line for line in told["after"]["warnings"]), told["after"]


@test
def mistakes_are_one_clear_line():
    path = before()
    assert "two traces" in refused("diff")
    assert "needs a second trace" in refused("diff", path)
    assert "where does the second side begin" in refused("diff", path, path, path)
    assert "two traces" in refused("diff", "--against", path)
    told = refused("diff", path, path, path, "--against", path, path, path)
    assert "3 and 3 runs are too few" in told and "4 and 4" in told, told
    assert "--impact" in refused("diff", path, path, "--impact", "AIFO")
    assert "is after" in refused("diff", path, "--with-from", "90us", "--with-to", "10us")
    refused("diff", path, "--with-from", "whenever")
    assert "temporary" in refused("diff", path, path, "--sort", "temporary", "--layer", "vm")
    assert "live" in refused("diff", path, path, "--sort", "colour")
    run("diff", path, "nowhere.tide", check=3)


main()
