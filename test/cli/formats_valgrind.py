#!/usr/bin/env python3
# parallel: yes
"""`tidemark export`: the formats of Valgrind's tools, whose levels, peaks and ends are `tidemark
window`'s. Their own readers: ms_print here, dh_view.html in web/formats."""
import json
import re
import shutil
import subprocess

from libanswer import TIDEMARK, answer, assemble, run, sampled
from libtests import Skip, check, equal, main, test

TRACES = ("kitchen", "family", "crowd")
WINDOWS = ((), ("--from", "20%", "--to", "70%"), ("--size", "..64"), ("--impact", "impacting"),
           ("--from", "30%"))


def exported(path, name, *words):
    """What it wrote, and what it said."""
    done = subprocess.run([TIDEMARK, "export", path, "--format", name, *words], check=True,
                          capture_output=True, text=True)
    return done.stdout, done.stderr


def processes(path):
    return [("--process", str(each["id"])) for each in answer("info", path)["processes"]]


def row_of(path, *words):
    """The whole window; None: nothing lived in it."""
    rows = answer("window", path, "--by", "layer", *words)["rows"]
    return rows[0] if rows else None


def types_of(path, *words):
    types = {row["keys"]["type"]: row for row in answer("window", path, "--by", "type", *words)["rows"]}
    return {name: (types[name]["count"], types[name]["size"]) if name in types else (0, 0)
            for name in ("AIFI", "AIFO", "AOFI", "AOFO")}


def snapshots(text):
    """(time, bytes, kind, lines of the tree) of each."""
    found = []
    for part in re.split(r"#-+\nsnapshot=\d+\n#-+\n", text)[1:]:
        head, tree = part.split("heap_tree=")
        fields = dict(line.split("=") for line in head.splitlines())
        kind, *lines = tree.splitlines()
        found.append((int(fields["time"]), int(fields["mem_heap_B"]), kind, lines))
    return found


def check_tree(lines):
    """Each node has as many lines below it as it says, and their bytes are not more than its own;
    where there are any, exactly its own, or less by what was allocated there."""
    open_nodes = []
    for line in lines:
        indent, children, size = re.match(r"( *)n(\d+): (\d+) ", line).groups()
        depth = len(indent)
        while len(open_nodes) > depth:
            left, total, bytes_ = open_nodes.pop()
            check(left == 0 and total <= bytes_, (line, left, total, bytes_))
        equal(depth, len(open_nodes), line)
        if open_nodes:
            open_nodes[-1][0] -= 1
            open_nodes[-1][1] += int(size)
        open_nodes.append([int(children), 0, int(size)])


@test
def massif_has_our_levels_and_our_peak():
    for name in TRACES:
        path = assemble(name)
        for process in processes(path):
            for words in WINDOWS:
                row = row_of(path, *process, *words)
                found = snapshots(exported(path, "massif", *process, *words)[0])
                equal(sorted(each[0] for each in found), [each[0] for each in found])
                equal([each[2] for each in found].count("peak"), 1)
                peak = next(each for each in found if each[2] == "peak")
                equal(row["peak_size"] if row else 0, peak[1], (name, process, words))
                equal(max(each[1] for each in found), peak[1])
                equal(peak[1], int(re.match(r"n\d+: (\d+)", peak[3][0])[1]))
                check_tree(peak[3])
                if not words:  # what lived at exit was not freed
                    equal(types_of(path, *process)["AIFO"][1], found[-1][1], (name, process))


@test
def ms_print_takes_it():
    if not shutil.which("ms_print"):
        raise Skip("ms_print is not installed (Debian: valgrind)")
    for name in (*TRACES, "nothing"):
        path = assemble(name)
        run("export", path, "--format", "massif", "-o", "out.massif", "--force")
        done = subprocess.run(["ms_print", "out.massif"], check=True, capture_output=True, text=True)
        equal("", done.stderr)
        with open("out.massif", encoding="utf-8") as file:
            peak = next(each for each in snapshots(file.read()) if each[2] == "peak")
        if peak[1]:
            check(re.search(rf"100\.00% \({peak[1]:,}B\) \(heap allocation functions\)", done.stdout),
                  done.stdout)
            check("(peak)" in done.stdout)


@test
def massif_says_who_was_at_the_peak():
    text = exported(assemble("kitchen"), "massif")[0]
    check("n1: 4196 0x4: xmalloc (lib/xmalloc.c:41)\n  n1: 4196 0x5: make_pot (src/pot.c:20)\n" in text,
          text)


@test
def massif_puts_what_is_below_its_threshold_on_one_line():
    sizes = (100000, 300, 300, 400)
    path = assemble("threshold", "process p pid=7\nthread t p tid=7\n" + "".join(
        f'stack s{i} "f{i}" "a.c":{i} < "main" "a.c":9\n+1ms t malloc s{i} 0x{i + 1}00000 {size}\n'
        for i, size in enumerate(sizes)) + "end\n")
    peak = next(each for each in snapshots(exported(path, "massif")[0]) if each[2] == "peak")
    equal(["n2: 101000", "n1: 100000", "n0: 100000", "n0: 1000 in 3 places, all below massif's "
           "threshold (1.00%)"], [" ".join(line.split()[:None if "places" in line else 2])
                                  for line in peak[3]])


def sums(found, *keys):
    return tuple(sum(point[key] for point in found["pps"]) for key in keys)


@test
def dhat_has_our_totals_peaks_and_ends():
    for name in TRACES:
        path = assemble(name)
        for process in processes(path):
            for words in WINDOWS:
                if name == "family" and "--from" in words:
                    continue  # of a process that has ended the classes have what it left; here it is gone
                what = (name, process, words)
                found = json.loads(exported(path, "dhat", *process, *words)[0])
                row, types = row_of(path, *process, *words), types_of(path, *process, *words)
                count, size = (sum(column) for column in zip(*types.values()))
                equal((size, count), sums(found, "tb", "tbk"), what)
                equal((types["AIFO"][1] + types["AOFO"][1], types["AIFO"][0] + types["AOFO"][0]),
                      sums(found, "eb", "ebk"), what)
                equal(row["peak_size"] if row else 0, sums(found, "gb")[0], what)
                if row and not words:
                    heap = answer("active", path, "--at", "peak", *process)["heap"]
                    equal((heap["bytes"], heap["count"]), sums(found, "gb", "gbk"), what)
                for point in found["pps"]:
                    check(point["gb"] <= point["mb"] <= point["tb"] and point["eb"] <= point["mb"], point)
                    check(point["tl"] <= point["tbk"] * found["te"], point)
                    check(all(0 < each < len(found["ftbl"]) for each in point["fs"]))


@test
def dhat_has_the_lifetimes_of_the_blocks():
    for name in TRACES:
        path = assemble(name)
        for process in processes(path):
            found = json.loads(exported(path, "dhat", *process)[0])
            lines = exported(path, "jsonl", "--lifetimes", *process)[0].splitlines()
            end = answer("window", path)["to_ns"]
            lived = sum((each["end_ns"] or end) - each["begin_ns"] for each in map(json.loads, lines))
            check(abs(lived / 1000 - sums(found, "tl")[0]) <= len(found["pps"]), (name, process))


@test
def what_is_not_valgrinds_is_said():
    for name in ("massif", "dhat"):
        said = exported(assemble("family"), name)[1]
        check(re.search(r"of one process, and these are \d+", said), said)
        check("sampled" in exported(sampled(), name)[1])
        words = ("--from", "40%")
        said = exported(assemble("crowd"), name, *words)[1]
        types = types_of(assemble("crowd"), *words)
        check(f"{types['AOFI'][0] + types['AOFO'][0]} blocks of" in said, said)


main()
