#!/usr/bin/env python3
# timeout: 300
# parallel: yes
"""Tables of far more rows than are shown: the same rows as of all, what is left out added up, and
no more memory than was said."""
import json
import re

import libanswer
from libanswer import make, measured
from libtests import main, test

SHOWN = 7
MIB = 1 << 20


def some():
    """Of few frames: the time goes into reading what is printed of a stack."""
    return make("some.tide", 18000, 20000, 200000, depth=2)


def many():
    path = make("many.tide", 300000, 200000, 2000000)
    run(path, "--by", "none", "-n", "1")  # builds the index
    return path


def run(path, *words, code=0):
    """What the command said, and the most memory that it took, in MiB."""
    out, err, most = measured("window", path, *words, code=code)
    return out if code == 0 else err, most / MIB


def table(path, *words):
    return json.loads(run(path, "--json", *words)[0])


def first_of_each(rows, by, most):
    """The rows that are shown of all, and how many are left out of those whose parent is shown."""
    children = {}
    kept = []
    for row in rows:
        path = ()
        shown = True
        for key in by:
            above, path = path, path + (json.dumps(row["keys"].get(key)),)
            seen = children.setdefault(above, {})
            rank = seen.setdefault(path, len(seen))
            if rank >= most:
                shown = False
                break
        if shown:
            kept.append(row)
    return kept, sum(max(0, len(seen) - most) for seen in children.values())


# These come first: what this program itself has taken when it starts the command counts as well.

@test
def rows_of_very_many_stacks_keep_to_the_memory():
    path = many()
    for by in ("stack", "impact,stack", "stack,impact", "function", "module,function"):
        _, taken = run(path, "--by", by, "--memory", "128M")
        assert taken < 128, (by, taken)
    _, taken = run(path, "--by", "function,stack", "--memory", "128M")
    assert taken < 106, taken  # of frames that have no name none is kept


@test
def medians_of_types_need_not_fit():
    path = make("aged.tide", 100, 2000, 1000000)
    text = run(path, "-c", "median", "--memory", "32M")[0]
    assert "left out" not in text, text
    # With a peak beside it the blocks are gone through.
    slow = run(path, "-c", "median,peak", "--memory", "1G")[0]
    want = [line.split()[0] for line in slow.splitlines() if re.search(r" (total|transient)$", line)]
    found = [line.split()[0] for line in text.splitlines() if re.search(r" (total|transient)$", line)]
    assert len(found) == 2 and found == want, (text, slow)


@test
def rows_that_do_not_fit_come_from_a_file():
    path = many()
    for words in (("--by", "stack", "--sort", "name", "-n", "9"),
                  ("--by", "stack", "--sort", "peak", "-n", "9", "--min-bytes", "100", "--json")):
        found, taken = run(path, *words, "--memory", "126M")
        assert taken < 126, (words, taken)
        assert found == run(path, *words, "--memory", "2G")[0], words


@test
def rows_that_others_are_below_are_refused_where_they_do_not_fit():
    path = many()
    for words, advice in ((("--by", "stack,impact", "-n", "0"), "show fewer (-n)"),
                          (("--by", "stack,impact", "--sort", "name"), "sort by another column")):
        said, taken = run(path, *words, "--memory", "126M", code=4)
        assert "rows above those of the last key do not fit in two thirds of the memory: " + advice in said, said
        assert "raise --memory to" in said and said.count("\n") == 1, said
        assert taken < 126, taken


@test
def rows_in_a_file_are_those_in_memory():
    path = make("middle.tide", 25000, 20000, 500000)
    for words in (("--by", "impact,stack", "-n", "0", "--json"),
                  ("--by", "impact,stack", "-n", "0", "-c", "size,median,impacting"),
                  ("--by", "stack,impact", "-n", "0", "--csv", "--from", "30%", "--to", "60%"),
                  ("--by", "thread,type,stack", "--sort", "name", "-n", "5"),
                  ("--by", "impact,stack", "--sort", "median", "-n", "5", "-c", "median,size")):
        assert run(path, *words, "--memory", "36M")[0] == run(path, *words, "--memory", "1G")[0], words


# ---- the rows themselves ----

@test
def rows_are_the_first_of_all():
    path = some()
    assert len(table(path, "--by", "stack")["rows"]) > 2 * 8192  # chosen from more than once
    for by, words in (("stack", ()), ("size", ("--sort", "count")), ("impact,stack", ()),
                      ("stack,impact", ("--from", "30%", "--to", "60%")), ("type,size", ()),
                      ("impact,function,stack", ("--sort", "size", "--impact", "transient")),
                      ("stack,size", ("--sort", "size"))):
        keys = by.split(",")
        every = table(path, "--by", by, *words)
        part = table(path, "--by", by, "-n", str(SHOWN), *words)
        rows, left_out = first_of_each(every["rows"], keys, SHOWN)
        assert every["rows_left_out"] == 0, by
        assert part["rows"] == rows, (by, len(part["rows"]), len(rows))
        assert part["rows_left_out"] == left_out, (by, part["rows_left_out"], left_out)
        assert part["total"] == every["total"], by


@test
def rows_below_a_size_are_left_out():
    path = some()
    every = table(path, "--by", "stack", "--sort", "size")["rows"]
    least = every[3]["size"]
    part = table(path, "--by", "stack", "--sort", "size", "-n", str(SHOWN), "--min-bytes",
                 str(least))
    assert part["rows"] == [row for row in every if row["size"] >= least][:SHOWN]
    assert part["rows_left_out"] == len(every) - len(part["rows"])


@test
def rows_that_are_left_out_are_added_up():
    text, _ = run(some(), "--by", "stack", "-n", str(SHOWN), "--columns", "count")
    counts = [(int(number.replace(",", "")), rest)
              for number, rest in re.findall(r"^ *([\d,]+)   (\S.*)$", text, re.M)]
    assert counts[0][1] == "total" and re.match(r"[\d,]+ more", counts[-1][1]), counts
    assert len(counts) == SHOWN + 2, counts
    assert counts[0][0] == sum(count for count, _ in counts[1:]), counts


@test
def rows_sorted_by_what_is_called_or_by_a_peak_are_found_among_all():
    path = some()
    for sort in ("name", "peak"):
        every = table(path, "--by", "stack", "--sort", sort)["rows"]
        assert table(path, "--by", "stack", "--sort", sort, "-n", "3")["rows"] == every[:3], sort


@test
def sites_that_fill_the_last_mark_of_a_snapshot_are_found():
    """An index marks where each 1,024th site of a snapshot begins; here they are 1,024 with the one of nothing."""
    sites = 1023
    with open("marks.txt", "w", encoding="ascii") as file:
        file.write("process p pid=7 exe=\"/p\" arg=\"p\"\nthread t p tid=7 \"p\"\n")
        for i in range(sites):
            file.write(f"stack s{i} \"text_{i:04}\"\n")
        for _ in range(300):
            for i in range(sites):
                at = f"{0x10000 + 64 * i:#x}"
                file.write(f"+1us t malloc s{i} {at} 16\n+1us t free {at}\n")
    libanswer.run("dump", "-a", "marks.txt", "-o", "marks.tide", "-f")
    for words in (("--frame", "text_1022"), ("--frame", "text_0500"), ()):
        rows = table("marks.tide", "--by", "stack", "--from", "61%", "--to", "75%", *words)["rows"]
        assert len(rows) == (1 if words else sites), (words, len(rows))
        assert {row["peak_size"] for row in rows} == {16} and all(41 <= row["count"] <= 43 for row in rows), words


main()
