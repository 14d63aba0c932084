#!/usr/bin/env python3
# parallel: yes
"""Trees of a window's stacks: each is put together a second time here, from the rows by stack.

Random stacks, with recursion, inlined functions, wrappers in front and thread roots behind; all four
kinds of tree, in JSON; and what a person sees.
"""
import collections
import os
import random
import re

from libanswer import TIDEMARK, answer, run
from libtests import main, test

FIGURES = ("count", "size", "impacting_size", "allocated", "freed")
WRAPPERS = ("xmalloc", "g_malloc", "operator new(unsigned long)")
ROOTS = ("_start", "__libc_start_main")


def window(*words):
    return answer("window", *words)


def build(path, seed):
    dice = random.Random(seed)
    names = ["parse", "load", "draw", "walk", "visit", "alloc_node", "flush"]
    lines = ["process p pid=1", "thread t p tid=1", "frame both 0x100",
             'name both "inner" "a.c":1 < "outer" "a.c":2']
    for number in range(14):
        frames = [dice.choice(WRAPPERS)] if dice.random() < 0.5 else []
        for _ in range(dice.randrange(1, 6)):
            name = dice.choice(names)
            frames.append(f'"{name}" "{name}.c":{dice.randrange(1, 4)}'
                          if dice.random() < 0.8 else name)
        if dice.random() < 0.3:
            frames.insert(dice.randrange(len(frames) + 1), "both")
        frames += ["main", "__libc_start_main", "_start"]
        frames = [frame if frame == "both" or frame.startswith('"') else f'"{frame}"'
                  for frame in frames]
        lines.append(f"stack s{number} " + " < ".join(frames))
    live, now = [], 0
    for number in range(300):
        now += dice.randrange(0, 5)
        if live and dice.random() < 0.45:
            lines.append(f"@{now} t free 0x{live.pop(dice.randrange(len(live))):x}")
            continue
        live.append(0x1000 * (number + 1))
        stack = f"s{dice.randrange(14)} " if dice.random() < 0.95 else ""
        lines.append(f"@{now} t malloc {stack}0x{live[-1]:x} {dice.choice([8, 100, 5000])}")
    with open("tree.txt", "w") as file:
        file.write("\n".join(lines) + "\nend\n")
    run("dump", "-a", "tree.txt", "-o", path, "--force")


def stacks(path, *words, whole=False):
    """The window's stacks, innermost first, as a tree shows them, with their figures."""
    found = []
    for row in window(path, "--by", "stack", *words)["rows"]:
        names = [frame["function"] for frame in row["keys"]["stack"]]
        if not whole:
            while len(names) > 1 and names[0] in WRAPPERS:
                names.pop(0)
            while len(names) > 1 and names[-1] in ROOTS:
                names.pop()
        found.append((names or [""], collections.Counter({name: row[name] for name in FIGURES})))
    return found


def add(table, key, figures):
    table.setdefault(key, collections.Counter())
    for name in FIGURES:
        table[key][name] += figures[name]


def paths(answer, side=None):
    """Path of functions -> figures, and those of what ends there."""
    nodes = {node["id"]: node for node in answer["nodes"]}
    whole, own = {}, {}
    for node in answer["nodes"]:
        if node["side"] != side:
            continue
        path, at = [], node
        while at:
            path.insert(0, at["function"] or "")
            at = nodes.get(at["parent"])
        assert tuple(path) not in whole, "a node for each path"
        whole[tuple(path)] = {name: node[name] for name in FIGURES}
        own[tuple(path)] = {name: node["self"][name] for name in FIGURES}
    return whole, own


def same(expected, found, case):
    expected = {key: {name: value[name] for name in FIGURES} for key, value in expected.items()}
    assert expected == found, (case, {key: (expected.get(key), found.get(key))
                                      for key in set(expected) | set(found)
                                      if expected.get(key) != found.get(key)})


CASES = [[], ["--from", "100ns", "--to", "500ns"], ["--impact", "impacting"], ["--size", "8"]]


@test
def trees_from_the_root_and_from_the_leaf():
    for seed in range(3):
        build("t.tide", seed)
        for words in CASES:
            for all_frames in ([], ["--all-frames"]):
                known = stacks("t.tide", *words, whole=bool(all_frames))
                callers, leaf, own = {}, {}, {}
                for names, figures in known:
                    for depth in range(1, len(names) + 1):
                        add(callers, tuple(names[::-1][:depth]), figures)
                        add(leaf, tuple(names[:depth]), figures)
                    add(own, tuple(names[::-1]), figures)
                answer = window("t.tide", "--tree", "callers", *words, *all_frames)
                found, ends = paths(answer)
                same(callers, found, (seed, words, "callers"))
                same({key: own.get(key, collections.Counter()) for key in found}, ends,
                     (seed, words, "self"))
                found, _ = paths(window("t.tide", "-t", "leaf", *words, *all_frames))
                same(leaf, found, (seed, words, "leaf"))
                for name in FIGURES:
                    assert sum(figures[name] for _, figures in known) == answer["total"][name]


@test
def flat_counts_a_recursive_function_once():
    for seed in range(3):
        build("t.tide", 10 + seed)
        for words in CASES:
            whole, own = {}, {}
            for names, figures in stacks("t.tide", *words):
                for name in set(names):
                    add(whole, (name,), figures)
                add(own, (names[0],), figures)
            found, ends = paths(window("t.tide", "--flat", *words))
            same(whole, found, (seed, words))
            same({key: own.get(key, collections.Counter()) for key in found}, ends, (seed, words))


@test
def butterflies_have_callers_and_callees():
    for seed in range(3):
        build("t.tide", 20 + seed)
        for pivot in ("walk", "parse", "main", "outer"):
            up, down = {}, {}
            for names, figures in stacks("t.tide"):
                if pivot not in names:
                    continue
                at = len(names) - 1 - names[::-1].index(pivot)  # the outermost
                for depth in range(len(names) - at):
                    add(up, tuple(names[at:at + depth + 1]), figures)
                for depth in range(at + 1):
                    add(down, tuple(names[at - depth:at + 1][::-1]), figures)
            if not up:
                continue
            answer = window("t.tide", "--butterfly", pivot)
            same(up, paths(answer, "callers")[0], (seed, pivot, "callers"))
            same(down, paths(answer, "callees")[0], (seed, pivot, "callees"))


@test
def csv_has_the_nodes_of_json():
    build("t.tide", 31)
    for words in (["--tree", "leaf"], ["--flat"], ["--butterfly", "main"]):
        lines = run("window", "t.tide", "--csv", *words).stdout.splitlines()
        nodes = window("t.tide", *words)["nodes"]
        assert len(lines) == len(nodes) + 1 and lines[0].startswith("id,parent,side,function")
        for line, node in zip(lines[1:], nodes):
            assert line.startswith(f"{node['id']},"), (line, node)
            assert f",{node['count']},{node['size']},{node['impacting_size']}," in line


@test
def runs_of_single_children_are_folded():
    with open("run.txt", "w") as file:
        file.write('process p pid=1\nthread t p tid=1\nstack a "leaf" "l.c":1 < d < c < b < main\n'
                   'stack z "leaf" "l.c":2 < y < b < main\n+1 t malloc a 0x1000 1000\n'
                   '+1 t malloc z 0x2000 24\nend\n')
    run("dump", "-a", "run.txt", "-o", "run.tide", "--force")
    lines = run("window", "run.tide", "--tree", "callers").stdout.splitlines()
    text = [line[37:] for line in lines]
    tree = text[text.index("total"):]
    assert [re.sub(r"(?<=\w)  .*", "", part.strip()) for part in tree[:8]] == \
        ["total", "└ main", "b", "├ c", "│ d", "│ leaf", "└ y", "leaf"], tree
    figures = [line[:37].split() for line in lines if line.strip()]
    assert ["+1000", "B", "1000", "B", "1"] in figures and ["+24", "B", "24", "B", "1"] in figures
    leaf = run("window", "run.tide", "--tree", "leaf").stdout
    assert "leaf  l.c\n" in leaf, "calls from several lines are one node: " + leaf
    flat = run("window", "run.tide", "--flat").stdout
    assert "SELF" in flat and "WITH ALL IT CALLED" in flat
    both = run("window", "run.tide", "--butterfly", "b").stdout
    assert both.index("CALLERS") < both.index("main") < both.index("CALLEES") < both.index(" y")


@test
def deep_recursion_is_no_matter():
    depth = 20000
    with open("deep.txt", "w") as file:
        file.write("process p pid=1\nthread t p tid=1\nframe f 0x10\nname f down\n"
                   "frame g 0x20\nname g down\nstack s0 f\n")
        for number in range(1, depth):
            file.write(f"stack s{number} {'fg'[number % 2]} < s{number - 1}\n")
        file.write(f"+1 t malloc s{depth - 1} 0x1000 8\n+1 t malloc s9 0x2000 8\nend\n")
    run("dump", "-a", "deep.txt", "-o", "deep.tide", "--force")
    for words in (["--tree", "callers"], ["--tree", "leaf"], ["--butterfly", "down"]):
        assert "more" in run("window", "deep.tide", *words).stdout
        assert len(window("deep.tide", *words)["nodes"]) >= depth
    nodes = window("deep.tide", "--flat")["nodes"]
    assert [(node["function"], node["count"]) for node in nodes] == [("down", 2)]


@test
def small_branches_are_summed_up():
    with open("wide.txt", "w") as file:
        file.write("process p pid=1\nthread t p tid=1\n")
        for number in range(30):
            file.write(f"stack s{number} leaf{number} < main\n")
        for number in range(30):
            file.write(f"+1 t malloc s{number} 0x{number + 1}000 {1000 - number}\n")
        file.write("end\n")
    run("dump", "-a", "wide.txt", "-o", "wide.tide", "--force")
    text = run("window", "wide.tide", "--tree", "callers").stdout
    assert "20 more (-n 0 shows all)" in text and "leaf9 " in text and "leaf10" not in text
    assert "leaf29" in run("window", "wide.tide", "--tree", "callers", "-n", "0").stdout


@test
def equals_stand_in_the_order_of_their_names():
    texts = []
    for order in (1, -1):
        with open("equal.txt", "w") as file:
            file.write("process p pid=1\nthread t p tid=1\n")
            for number in range(30)[::order]:
                file.write(f"stack s{number} \"leaf{number % 5}\" \"l.c\":7 < "
                           f"\"f{number}\" \"f.c\":{number + 1} < \"main\" \"m.c\":9\n"
                           f"+1 t malloc s{number} 0x{number + 1}000 16\n")
            file.write("end\n")
        run("dump", "-a", "equal.txt", "-o", "equal.tide", "--force")
        for words in (["--tree", "callers"], ["--tree", "leaf"], ["--flat", "-n", "0"],
                      ["--butterfly", "leaf1"], ["--flat", "--csv"], ["--tree", "leaf", "--csv"]):
            texts.append(run("window", "equal.tide", *words).stdout)
    assert texts[:len(texts) // 2] == texts[len(texts) // 2:]


def most_memory(*words):
    """The kernel's high-water mark of a run, in bytes."""
    child = os.posix_spawn(TIDEMARK, [TIDEMARK, *words], os.environ,
                           file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
    _, status, usage = os.wait4(child, 0)
    assert status == 0, words
    return usage.ru_maxrss * 1024


@test
def a_tree_costs_memory_by_its_stacks_and_not_by_its_nodes():
    ends, depth, each = 3000, 120, 64
    dice = random.Random(7)
    with open("many.txt", "w") as file:
        file.write("process p pid=1\nthread t p tid=1\n")
        for number in range(depth):
            file.write(f"frame code{number} 0x{number + 1}0\n"
                       f"name code{number} trunk{number}\n"
                       f"stack s{number} code{number}" + (f" < s{number - 1}\n" if number else "\n"))
        for number in range(ends):
            file.write(f"stack e{number} leaf{number} < s{depth - 1}\n"
                       f"+1 t malloc e{number} 0x{number + 1}000 {dice.randrange(1, 900)}\n")
        file.write("end\n")
    run("dump", "-a", "many.txt", "-o", "many.tide", "--force")
    without = most_memory("window", "many.tide", "--by", "stack", "-n", "1")
    for words in (["-n", "0"], ["--json"], ["--csv"]):
        assert most_memory("window", "many.tide", "--tree", "leaf", *words) < \
            without + ends * depth * each, words
    nodes = run("window", "many.tide", "--tree", "leaf", "--csv").stdout.count("\n") - 1
    assert nodes == ends * (depth + 1), nodes


@test
def tags_name_stacks():
    build("t.tide", 41)
    with open("app.stacktags", "w") as file:
        file.write('<?xml version="1.0" encoding="utf-8"?>\n<Tag Name="">\n'
                   '  <Tag Name="Input"><Entrypoint Module="*" Method="parse"/>\n'
                   '    <Tag Name="Files" Priority="1"><Entrypoint Module="*" Method="lo*d"/></Tag>\n'
                   '  </Tag>\n  <Tag Name="Screen"><Entrypoint Method="draw"/></Tag>\n</Tag>\n')
    expected = collections.Counter()
    for names, figures in stacks("t.tide", whole=True):
        tag = "(no tag)"
        for name in names:
            if name in ("parse", "draw") and tag == "(no tag)":
                tag = "Input" if name == "parse" else "Screen"
        if "load" in names:
            tag = "Input\\Files"
        expected[tag] += figures["size"]
    rows = window("t.tide", "--tags", "app.stacktags", "--by", "tag")["rows"]
    assert {row["keys"]["tag"]: row["size"] for row in rows} == dict(expected)
    assert "Input\\Files" in run("window", "t.tide", "--tags", "app.stacktags", "--by",
                                 "tag,impact").stdout


@test
def nodes_of_fewer_bytes_than_asked_for_are_left_out():
    build("t.tide", 7)
    for words in (["--flat"], ["--tree", "callers"], ["--tree", "leaf"]):
        every = window("t.tide", *words)
        some = window("t.tide", *words, "--min-bytes", "20000")
        sizes = [node["size"] for node in every["nodes"]]
        assert min(sizes) < 20000 <= max(sizes), sizes
        assert [node["size"] for node in some["nodes"]] == [size for size in sizes if size >= 20000], (words, some)
        assert some["total"] == every["total"] and some["nodes_left_out"] > 0, (words, some)
        text = run("window", "t.tide", *words, "--min-bytes", "20000").stdout
        assert re.search(r" more$", text, re.M) and "-n 0 shows" not in text, text


@test
def functions_of_one_name_in_two_files_are_two():
    # Two sources of one program; two scripts; and calls whose source is not known.
    with open("twice.txt", "w") as file:
        file.write('process p pid=1\nthread t p tid=1\nmodule m p 0x1000-0x9000 bias=0x1000 "/opt/app"\n'
                   'frame c1 m 0x1100\nname c1 "load" "src/c1.c":2\nframe c2 m 0x1200\nname c2 "load" "src/c2.c":2\n'
                   'frame c0 m 0x1300\nname c0 "load"\nstack s0 c1\nstack s1 c2\nstack s2 c0\n'
                   'stack s3 "grow" "/x/a.py":1 < "<module>" "/x/app.py":3\n'
                   'stack s4 "grow" "/x/b.py":1 < "<module>" "/x/lib.py":3\n'
                   + "".join(f"@{i} t malloc s{i} {0x1000 * (i + 1):#x} {10 ** (i + 1)}\n" for i in range(5)) + "end\n")
    run("dump", "-a", "twice.txt", "-o", "twice.tide", "--force")
    expected = {("load", "src/c1.c"): 10 + 1000, ("load", "src/c2.c"): 100, ("grow", "/x/a.py"): 10000,
                ("grow", "/x/b.py"): 100000}
    for words in (["--flat"], ["--tree", "leaf"]):
        nodes = window("twice.tide", *words)["nodes"]
        assert {(node["function"], node["file"]): node["size"] for node in nodes
                if node["function"] in ("load", "grow")} == expected, (words, nodes)
    modules = {"/opt/app": 1110, "/x/a.py": 10000, "/x/b.py": 100000}
    rows = window("twice.tide", "--by", "module")["rows"]
    assert {row["keys"]["module"]: row["size"] for row in rows} == modules, rows
    for words in (["--module", "b[.]py$"], ["--row", "module:/x/b.py"]):
        assert window("twice.tide", *words)["total"]["size"] == 100000, words


def refused(because, *words, code=2):
    done = run("window", *words, check=code)
    assert done.stdout == "" and done.stderr.count("\n") == 1 and because in done.stderr, done


@test
def mistakes_are_told_in_one_line():
    build("t.tide", 51)
    refused("did you mean 'parse'?", "t.tide", "--butterfly", "prase")
    refused("no allocation in the window passes 'nothing_of_it'", "t.tide", "--butterfly",
            "nothing_of_it")
    refused("only one of them", "t.tide", "--flat", "--tree", "leaf")
    refused("--tree is callers or leaf, not 'root'", "t.tide", "--tree", "root")
    refused("a tree has no keys", "t.tide", "--flat", "--by", "stack")
    refused("a tree has no columns of peaks", "t.tide", "--flat", "--columns", "size,peak")
    with open("bad.stacktags", "w") as file:
        file.write("<Tag Name=''>\n<Tag Name='x'\n")
    refused("bad.stacktags: line 2, column 1", "t.tide", "--tags", "bad.stacktags", "--by", "tag", code=3)


main()
