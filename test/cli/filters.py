#!/usr/bin/env python3
# parallel: yes
"""One set of filters: the same words choose the same allocations in each command that takes them.

What `report` counts with a filter is counted again here, from the lifetimes of all blocks as the
text of the trace has them.
"""
import difflib
import json
import os
import random
import re

from libanswer import answer, refused, run
from libtests import equal, main, test
from libtrends import Trace

TIDEMARK = os.environ["TIDEMARK"]


# ---- a trace, and its lifetimes ----

STACKS = {"one": ["leaf_one", "middle", "main"], "two": ["leaf_two", "middle", "main"],
          "three": ["leaf_three", "other", "main"]}
END = 10000


class Block:
    def __init__(self, thread, stack, size, begin):
        self.thread, self.stack, self.size, self.begin = thread, stack, size, begin
        self.end = None

    def lifetime(self):
        return (END if self.end is None else self.end) - self.begin


def build(path, seed):
    """Writes a trace; returns all its blocks. One event each nanosecond or later, one address each."""
    dice = random.Random(seed)
    lines = ["process p pid=70", "thread t p tid=70 \"first\"", "thread u p tid=71 \"second\""]
    for name, frames in STACKS.items():
        lines.append(f"stack {name} " + " < ".join(f'"{frame}"' for frame in frames))
    blocks, live, now = [], [], 0
    while now < END - 20:
        now += dice.randrange(1, 15)
        if now > 3000 and len([l for l in lines if " mark " in l]) == 0:
            lines.append(f'@{now} mark p t "step"')
        if live and dice.random() < 0.47:
            block = live.pop(dice.randrange(len(live)))
            block.end = now
            lines.append(f"@{now} t free 0x{block.address:x}")
            continue
        block = Block(dice.choice("tu"), dice.choice(list(STACKS)),
                      dice.choice([0, 1, 8, 40, 64, 100, 1024, 5000]), now)
        block.address = 0x10000 + 0x2000 * len(blocks)
        blocks.append(block)
        live.append(block)
        lines.append(f"@{now} {block.thread} malloc {block.stack} 0x{block.address:x} {block.size}")
    lines.append(f"end duration={END}")
    with open("built.txt", "w") as file:
        file.write("\n".join(lines) + "\n")
    run("dump", "--assemble", "built.txt", "-o", path, "--force")
    return blocks


def heap(path, *filters):
    return json.loads(run("report", path, "--json", *filters).stdout)["heap"]


def check(path, blocks, keeps, *filters):
    expected = [block for block in blocks if keeps(block)]
    found = heap(path, *filters)
    figures = (len(expected), sum(block.size for block in expected),
               len([block for block in expected if block.end is None]))
    assert figures == (found["allocations"], found["allocated_bytes"],
                       found["live_at_exit"]["count"]), (filters, figures, found)
    # dump shows the beginnings and ends of the same blocks
    items = run("dump", path, "--items", *filters).stdout.splitlines()
    begun = [line for line in items if " malloc " in line]
    ended = [line for line in items if " free " in line]
    if not any(word in filters for word in ("--from", "--to")):
        assert len(begun) == figures[0] and len(begun) - len(ended) == figures[2], \
            (filters, figures, len(begun), len(ended))


@test
def filters_select_what_their_words_say():
    for seed in range(3):
        blocks = build("built.tide", seed)
        for keeps, filters in [
                (lambda b: True, []),
                (lambda b: b.size == 40, ["--size", "40"]),
                (lambda b: 8 <= b.size <= 64, ["--size", "8..64"]),
                (lambda b: b.size <= 1024, ["--size", "..1K"]),
                (lambda b: b.size > 1024, ["--size", ">1K"]),
                (lambda b: b.size < 8 or b.size >= 5000, ["--size", "<8", "--size", ">=5000"]),
                (lambda b: b.size == 0, ["--size", "0"]),
                (lambda b: b.lifetime() < 200, ["--lifetime", "<200ns"]),
                (lambda b: 100 <= b.lifetime() <= 1000, ["--lifetime", "100ns..1us"]),
                (lambda b: b.lifetime() >= 3000, ["--lifetime", "3us.."]),
                (lambda b: b.thread == "u", ["--thread", "second"]),
                (lambda b: b.thread == "u" and b.size == 64, ["--thread", "71", "--size", "64"]),
                (lambda b: b.stack != "three", ["--frame", "^middle$"]),
                (lambda b: b.stack == "two", ["--frame", "middle", "--not-frame", "leaf_one"]),
                (lambda b: b.stack == "two", ["--row", "function:leaf_two"]),
                (lambda b: b.stack != "one", ["--row", "function:leaf_two", "--row",
                                              "function:leaf_three"]),
                (lambda b: b.stack == "three", ["--row", "function:leaf_three", "--frame", "main"]),
                (lambda b: False, ["--row", "function:leaf_three", "--not-frame", "other"]),
                (lambda b: b.stack != "three", ["--not-row", "function:leaf_three"]),
                (lambda b: b.stack == "one", ["--not-row", "function:leaf_three", "--not-row",
                                              "function:leaf_two"]),
                (lambda b: b.stack == "two", ["--row", "function:leaf_two", "--row",
                                              "function:leaf_one", "--not-row",
                                              "function:leaf_one"]),
                (lambda b: b.size != 40, ["--not-row", "size:40"]),
                (lambda b: not 8 <= b.size <= 64, ["--not-row", "size:8..64"]),
                (lambda b: 8 <= b.size < 64, ["--size", "8..1K", "--not-row", "size:64..1K"]),
                (lambda b: False, ["--size", "8..1K", "--not-row", "size:..5000"]),
                (lambda b: b.thread != "u", ["--not-row", "thread:second"]),
                (lambda b: b.thread == "t" and b.size > 40,
                 ["--not-row", "thread:71", "--not-row", "size:..40"]),
                (lambda b: False, ["--not-row", "heap:malloc"]),
                (lambda b: False, ["--not-row", "process:70"]),
                (lambda b: b.end is None, ["--impact", "impacting"]),
                (lambda b: b.end is not None, ["--impact", "transient"]),
                (lambda b: False, ["--impact", "persistent"]),
                (lambda b: b.stack == "one" and b.size > 8 and b.lifetime() < 500,
                 ["--frame", "_one", "--size", ">8", "--lifetime", "<500ns", "--layer", "heap"]),
                (lambda b: True, ["--heap", "malloc", "--process", "70"]),
        ]:
            check("built.tide", blocks, keeps, *filters)


@test
def filters_of_a_window():
    blocks = build("built.tide", 7)
    check("built.tide", blocks, lambda b: 2000 < b.begin <= 5000, "--from", "2us", "--to", "50%")
    check("built.tide", blocks, lambda b: b.begin > 3000, "--from", "mark:step")
    check("built.tide", blocks, lambda b: b.begin <= 8000, "--to", "-2us")
    born = lambda b: 2000 < b.begin <= 5000
    gone = lambda b: b.end is not None and b.end <= 5000
    # A report's window chooses what was allocated in it, and a class leaves some of that.
    window = ["--from", "2us", "--to", "5us", "--impact"]
    for keeps, word in [(lambda b: born(b) and gone(b), "transient"),
                        (lambda b: born(b) and not gone(b), "impacting"),
                        (lambda b: False, "persistent"),
                        (lambda b: False, "AOFI"),
                        (lambda b: born(b) and not gone(b), "aifo")]:
        check("built.tide", blocks, keeps, *window, word)


@test
def a_name_among_others_that_matches_nothing_is_said():
    build("wrong.tide", 5)
    for verb in ("report", "window", "active"):
        for words, wrong in ((("--frame", "^leaf_one$", "--frame", "^leaf_won$"), "^leaf_won$"),
                             (("--frame", "^leaf_one$", "--frame", "^leaf_two$"), None),
                             (("--frame", "^leaf_one$", "--not-frame", "^leaf_won$"), None)):
            told = answer(verb, "wrong.tide", *words)
            warned = " ".join((told if "warnings" in told else told["trace"])["warnings"])
            equal(wrong is not None, f"--frame '{wrong}' matches no function" in warned, (verb, words, warned))


@test
def filters_of_modules():
    with open("modules.txt", "w") as file:
        file.write("process p pid=1\nthread t p tid=1\n"
                   "module a p 0x1000-0x2000 \"/usr/lib/libfirst.so.1\"\n"
                   "module b p 0x3000-0x4000 \"/opt/tool\"\n"
                   "frame x a 0x1100\nframe y b 0x3100\nstack s x < y\nstack r y\n"
                   "+1 t malloc s 0x10 1\n+1 t malloc r 0x20 10\n+1 t malloc 0x30 100\nend\n")
    run("dump", "--assemble", "modules.txt", "-o", "modules.tide", "--force")
    for bytes, words in [(111, []), (1, ["libfirst"]), (11, ["^/opt/"]), (11, ["first", "tool$"]),
                         (0, ["nothing"])]:
        filters = [part for word in words for part in ("--module", word)]
        assert heap("modules.tide", *filters)["allocated_bytes"] == bytes, words
    for bytes, path in [(1, "/usr/lib/libfirst.so.1"), (10, "/opt/tool"), (100, "(no stack)")]:
        assert heap("modules.tide", "--row", f"module:{path}")["allocated_bytes"] == bytes, path


@test
def filters_of_a_stack_that_a_row_names():
    blocks = build("built.tide", 2)
    rows = json.loads(run("window", "built.tide", "--by", "stack", "--json").stdout)["rows"]
    assert len(rows) == 3, rows
    for row in rows:
        name = next(n for n, frames in STACKS.items()
                    if frames == [frame["function"] for frame in row["keys"]["stack"]])
        word = f"stack:{row['stack_id']}"
        check("built.tide", blocks, lambda b: b.stack == name, "--row", word)
        again = json.loads(run("window", "built.tide", "--row", word, "--json", "--by",
                               "none").stdout)
        assert again["total"]["count"] == row["count"], (row, again)


@test
def filters_of_heaps():
    with open("heaps.txt", "w") as file:
        file.write("process p pid=1\nthread t p tid=1\nheap h p \"arena\"\nheap w p handle=0x1f0000\n"
                   "+1 t malloc 0x10 1\n+1 t heap-alloc h 0x10 10\n+1 t heap-alloc w 0x20 100\n"
                   "+1 t heap-free h 0x10\nend\n")
    run("dump", "--assemble", "heaps.txt", "-o", "heaps.tide", "--force")
    for sizes, heaps in [("1", ["malloc"]), ("10 -", ["arena"]), ("100", ["0x1F0000"]),
                         ("1 10 -", ["arena", "malloc"])]:
        filters = [part for heap in heaps for part in ("--heap", heap)]
        items = run("dump", "heaps.tide", "--items", *filters).stdout.splitlines()
        found = " ".join("-" if "free" in line else line.split()[-1] for line in items)
        assert found == sizes, (heaps, items)
    assert "no heap 'arnea' in the trace; did you mean 'arena'?" in \
        refused("dump", "heaps.tide", "--heap", "arnea")
    assert "a report is about malloc's heap" in refused("report", "heaps.tide", "--heap", "arena")


@test
def blocks_of_pools_are_in_no_answer_about_the_heap():
    """They are parts of blocks of malloc's, and count where they are asked for: the trace with a
    pool has the figures of the trace without."""
    lines = ["process p pid=1", "thread t p tid=1", 'stack s "carve" < "main"', 'heap h p "arena"']
    for i in range(40):
        at, now = (i + 1) << 20, (i + 1) * 100_000_000
        lines += [f"@{now} t malloc s {at:#x} {4096 * (1 + i % 5)}",
                  f"@{now + 10} t heap-alloc s h {at + 64:#x} 1000",
                  f"@{now + 10} t heap-alloc s h {at + 2048:#x} 500",
                  f"@{now + 20} t heap-free h {at + 64:#x}"]
        if i % 3 == 0:
            lines += [f"@{now + 30} t free {at:#x}", f"@{now + 40} t heap-free h 0x77"]
    texts = {"with": lines, "without": [line for line in lines if "heap" not in line]}
    for name, text in texts.items():
        with open(name + ".txt", "w", encoding="utf-8") as file:
            file.write("\n".join(text) + "\n@5000000000 end p exit=0\nend\n")
        run("dump", "--assemble", name + ".txt", "-o", name + ".tide", "--force")

    def told(name, *words):
        found = answer(words[0], *([name + ".tide"] * (2 if words[0] == "diff" else 1)), *words[1:])
        for key in ("warnings", "trace", "traces", "events", "file", "notes", "pools", "heaps",
                    "before", "after"):
            found.pop(key, None)
        if words[0] == "active": # lists them apart
            found = [found["heap"], [row for row in found["rows"] if row["owner"] != "pool"]]
        return json.loads(re.sub(r'"(file|path|peak_event)": [^,}]*', '"":0', json.dumps(found)))

    for words in (["report"], ["window"], ["window", "--by", "stack"], ["window", "--by", "size"],
                  ["window", "--tree", "leaf"], ["window", "--from", "peak"], ["active"],
                  ["active", "--at", "peak"], ["transients"], ["growth"], ["findings"],
                  ["diff"], ["check", "--max-peak", "1G"]):
        one, other = told("without", *words), told("with", *words)
        assert one == other, (words, [line for line in difflib.ndiff(
            *(json.dumps(each, indent=1).splitlines() for each in (one, other))) if line[0] in "+-"])
    for kind in ("live", "sizes"):
        drawn = []
        for name in texts:
            run("plot", name + ".tide", kind, "-f", "-o", "p.svg", "--keep")
            with open("p.svg.dat", encoding="utf-8") as file:
                drawn.append(file.read())
        equal(drawn[1], drawn[0], kind)
    assert "blocks of 1 pool" in run("plot", "with.tide", "live", "-f", "-o", "p.svg").stderr
    for command in ("window", "transients", "growth", "findings"):
        found = answer(command, "with.tide")
        assert any("blocks of 1 pool" in text
                   for text in found.get("trace", found)["warnings"]), command
    both = answer("window", "with.tide", "--by", "heap")
    rows = {row["keys"]["heap"]: row["count"] for row in both["rows"] if row["count"]}
    equal((40, 80, 120), (rows["malloc"], rows["arena"], both["total"]["count"]), "by heap")
    assert any("the total has both" in text for text in both["warnings"]), both["warnings"]
    only = answer("window", "with.tide", "--heap", "arena")
    equal((80, []), (only["total"]["count"], only["warnings"]), "the pool alone")
    equal([40], [answer("window", "with.tide", "--not-row", "size:1")["total"]["count"]], "a filter")


@test
def filters_that_make_no_sense_are_told_in_every_command():
    build("built.tide", 1)
    for command in ["report", "dump"]:
        for because, *words in [
                ("'x..y' is not a range of sizes", "--size", "x..y"),
                ("'64..32' is not a range", "--size", "64..32"),
                ("'..' is not a range", "--size", ".."),
                ("'<0' is not a range", "--size", "<0"),
                ("'5x' is not a range of lifetimes", "--lifetime", "5x"),
                ("'-1s..' is not a range of lifetimes", "--lifetime", "-1s.."),
                ("--lifetime can be given once only", "--lifetime", "1s", "--lifetime", "2s"),
                ("an impact is impacting, transient, persistent", "--impact", "big"),
                ("a layer is heap or vm, not 'stack'", "--layer", "stack"),
                ("no process '99'", "--process", "99"),
                ("no thread 'third'", "--thread", "third"),
                ("no heap 'pool'", "--heap", "pool"),
                ("'a[' is not a regular expression", "--frame", "a["),
                ("'*' is not a regular expression", "--module", "*"),
                ("'leaf_one' is not a row (try: function:NAME", "--row", "leaf_one"),
                ("'one' is not the number of a stack", "--row", "stack:one"),
                ("'size:40' is not a row", "--row", "size:40"),
                ("'x' is not a range of sizes", "--not-row", "size:x"),
                ("no thread 'third'", "--not-row", "thread:third"),
                ("'me' is not an owner of memory", "--not-row", "owner:me"),
                ("rows by owner are for questions about windows", "--row", "owner:program"),
                ("the trace has no stack 9999", "--row", "stack:9999"),
                ("--from: 'soon' is not a time", "--from", "soon"),
                ("--to: no mark 'stpe' in the trace; did you mean 'step'?", "--to", "mark:stpe"),
                ("--from: 11us is after the end of the trace", "--from", "11us"),
                ("--from 9us (9.000 us) is after --to 5us", "--from", "9us", "--to", "5us")]:
            told = refused(command, "built.tide", *words)
            assert because in told, (command, words, told)


@test
def filters_a_report_is_about_the_heap():
    build("built.tide", 1)
    assert "tidemark window --layer vm" in refused("report", "built.tide", "--layer", "vm")


@test
def where_functions_have_no_names_a_frame_that_matches_none_says_so():
    trace = Trace()
    trace.lines += ['module app p0 0x400000-0x500000 "/bin/app"', "frame parse app 0x401000"]
    trace.alloc(1, 'parse < "main" "main.c":7', 10)
    path = trace.write("nameless.tide")
    said = " ".join(run("report", path, "--frame", "^parse").stdout.split())
    assert "no allocation passes the filters (1 of 2 frames in question have no function's name: tidemark symbols" in said, said
    said = run("report", path, "--frame", "^main", "--size", "99").stdout
    assert "(1 of" not in said, said
    assert "Nothing that was allocated is as the filters say" in said, said


main()
