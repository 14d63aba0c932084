#!/usr/bin/env python3
# parallel: yes
"""`tidemark active`: what is allocated at a moment, counted a second time here, page by page and
block by block, from random traces; and every figure of one trace that was made by hand."""
import csv
import io
import json
import random

from libanswer import answer, assemble, run
from libtests import main, test

PAGE = 4096


def active(path, *words):
    return answer("active", path, *words)


def carved():
    return assemble("space")


def build(path, seed):
    """A random trace. Returns for each moment (a time) the blocks and the pages of then."""
    dice = random.Random(seed)
    lines = ["process p pid=5", "thread t p tid=5", "stack s here", "stack z there"]
    blocks, pages, moments = {}, {}, []  # address -> (size, stack, time); page -> (prot, time)
    for now in range(1, 400):
        stack = dice.choice("sz")
        kind = dice.choice("mmmffrpuuxv")
        if kind in "mrf":
            address = 0x10000 + 64 * dice.randrange(100)
            if kind == "m":
                blocks[address] = (dice.randrange(64), stack, now)
                lines.append(f"@{now} t malloc {stack} {address} {blocks[address][0]}")
            elif kind == "f":
                blocks.pop(address, None)
                lines.append(f"@{now} t free {address}")
            elif address in blocks:
                target = 0x10000 + 64 * dice.randrange(100)
                del blocks[address]
                blocks[target] = (dice.randrange(64), stack, now)
                lines.append(f"@{now} t realloc {stack} {address} -> {target} {blocks[target][0]}")
        else:
            first, count = 0x1000 + dice.randrange(60), dice.randrange(1, 9)
            address, size = first * PAGE, count * PAGE - dice.randrange(PAGE)
            prot = dice.choice(["rw", "r", "none"])
            covered = [page for page in range(first, first + count)]
            if kind == "p":
                for page in covered:
                    pages[page] = (prot, now, prot == "rw")
                lines.append(f"@{now} t mmap {stack} {address} {size} prot={prot} "
                             "flags=private|anonymous|fixed")
            elif kind == "u":
                for page in covered:
                    pages.pop(page, None)
                lines.append(f"@{now} t munmap {stack} {address} {size}")
            elif kind == "x":
                for page in covered:
                    if page in pages:
                        was = pages[page]
                        committed = prot == "rw" or (was[2] and prot != "none")
                        pages[page] = (prot, was[1], committed)
                lines.append(f"@{now} t mprotect {stack} {address} {size} prot={prot}")
            else:  # failed: nothing changes
                lines.append(f"@{now} t munmap {stack} {address} {size} error=12")
        moments.append((now, dict(blocks), dict(pages)))
    with open(path + ".txt", "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\nend duration=1000\n")
    run("dump", "--assemble", path + ".txt", "-o", path, "--force")
    return moments


@test
def random_lives_are_what_a_second_count_says():
    for seed in range(4):
        path = f"random{seed}.tide"
        moments = build(path, seed)
        for now, blocks, pages in random.Random(seed).sample(moments, 12):
            answer = active(path, "--at", f"{now}ns")
            heap = {int(row["address"], 16): (row["size"], row["age_ns"])
                    for row in answer["rows"] if row["layer"] == "heap"}
            assert heap == {address: (size, now - then)
                            for address, (size, _, then) in blocks.items()}, (seed, now)
            assert answer["heap"] == {"count": len(blocks),
                                      "bytes": sum(block[0] for block in blocks.values())}
            seen = {}
            for row in active(path, "--at", f"{now}ns", "--layer", "vm")["rows"]:
                assert row["owner"] == "program"
                assert row["committed"] == PAGE * sum(
                    pages[int(row["address"], 16) // PAGE + i][2] for i in range(row["size"] // PAGE))
                for page in range(row["size"] // PAGE):
                    seen[int(row["address"], 16) // PAGE + page] = now - row["age_ns"]
            assert seen == {page: then for page, (_, then, _) in pages.items()}, (seed, now)
            assert answer["vm"]["committed"] == PAGE * sum(page[2] for page in pages.values())


@test
def filters_choose_blocks_and_mappings_alike():
    moments = build("filtered.tide", 99)
    now, blocks, _ = moments[-1]
    rows = active("filtered.tide", "--frame", "^here$")["rows"]
    assert sorted(int(row["address"], 16) for row in rows if row["layer"] == "heap") == \
        sorted(address for address, block in blocks.items() if block[1] == "s")
    assert all(row["function"] == "here" for row in rows) and any(row["layer"] == "vm" for row in rows)
    rows = active("filtered.tide", "--size", "10..20")["rows"]
    assert sorted(row["size"] for row in rows) == \
        sorted(block[0] for block in blocks.values() if 10 <= block[0] <= 20)
    rows = active("filtered.tide", "--min-bytes", "4096", "-n", "3")["rows"]
    assert len(rows) == 3 and all(row["size"] >= 4096 for row in rows)
    assert rows[0]["size"] >= rows[1]["size"] >= rows[2]["size"]
    early = active("filtered.tide", "--at", f"{now}ns", "--from", "100ns", "--to", "200ns", "--layer",
                   "heap")["rows"]
    assert sorted(int(row["address"], 16) for row in early) == \
        sorted(address for address, block in blocks.items() if 100 < block[2] <= 200)


@test
def every_row_of_a_trace_made_by_hand():
    answer = active(carved())
    rows = {int(row["address"], 16): row for row in answer["rows"]}
    assert answer["at_exit"] and answer["at_ns"] == 10_000_000
    owners = {0x9000008: "malloc-heap", 0x9000400: "stdio", 0xf7000008: "malloc-large",
              0xf6400500: "malloc-arena", 0xf0000040: "allocator", 0xf0000050: "pool",
              0xf6600000: "thread-stack", 0xffbde000: "main-stack", 0xf7d00000: "library",
              0x804c000: "library", 0xf7fd0000: "kernel", 0xf6f00000: "file",
              0x40000000: "program"}
    assert {address: rows[address]["owner"] for address in owners} == owners
    assert rows[0xf0000050]["heap"] == "chips" and rows[0x9000008]["heap"] == "malloc"
    assert rows[0xf6600000]["size"] == 0x801000 and rows[0xf6600000]["committed"] == 0x800000
    assert rows[0xf6f00000]["mapped_file"] == "/opt/carve/share/wood.dat"
    # What was reserved in one call and cut in the middle is two.
    assert rows[0x50000000]["size"] == 0x10000000 and rows[0x70000000]["size"] == 0x30000000
    # The child has its own reservation and nothing of its parent's.
    assert [row["size"] for row in answer["rows"] if row["process"] == 701] == [0x10000000]
    # Nothing of malloc's stands there twice, and nothing of tidemark's at all.
    assert 0xf7000000 not in rows and 0x9000000 not in rows and 0xf7fe0000 not in rows
    mappings = {int(row["address"], 16) for row in active(carved(), "--layer", "vm")["rows"]}
    assert {0xf7000000, 0x9000000, 0xf6400000, 0xf0000000} < mappings
    assert 0xf7fe0000 not in mappings and 0x9000008 not in mappings
    assert 0x80000000 in {int(row["address"], 16)
                          for row in active(carved(), "--at", "4ms")["rows"]}


@test
def a_mark_and_the_peak_are_moments():
    at_mark = active(carved(), "--at", "mark:end of shredding")
    assert at_mark["at_ns"] == 7_000_000 and not at_mark["at_exit"]
    assert 0x50000000 not in {int(row["address"], 16) for row in at_mark["rows"]}
    # The peak is malloc's; a pool's first block comes after it.
    told = active(carved(), "--at", "peak")
    assert told["heap"]["bytes"] == 1_054_088 and told["pools"]["bytes"] == 0, told
    assert active(carved(), "--at", "end")["rows"] == []


@test
def live_at_exit_is_the_reports_with_pools_too():
    told = active(carved())
    report = answer("report", carved())
    assert told["heap"] == report["heap"]["live_at_exit"], (told["heap"], report["heap"])
    rows = [row for row in told["rows"] if row["owner"] == "pool"]
    assert told["pools"] == {"count": len(rows), "bytes": sum(row["size"] for row in rows)}
    assert told["pools"]["count"] == 1 and "of what the pools have" in run("active", carved()).stdout
    assert told["rows_left_out"] == 0
    only = active(carved(), "--heap", "chips")
    assert only["heap"]["count"] == 0 and only["pools"] == told["pools"], only


@test
def an_answer_has_one_form():
    for command in ("active", "report", "window", "growth", "transients"):
        for words in (("--json", "--csv"), ("--csv", "--markdown"), ("--markdown", "--json")):
            done = run(command, carved(), *words, check=2)
            assert done.stderr.count("\n") == 1 and "one at a time" in done.stderr, done
        run(command, carved(), "--json", "--json")


@test
def the_table_says_what_the_json_says():
    text = run("active", carved()).stdout
    assert "at exit" in text and "in 6 blocks" in text and "left out here (--layer vm)" in text
    assert "0xf7000008  malloc-large grow_table  src/table.c:30" in text
    assert "main-stack   [stack]" in text
    assert "more (-n 0 shows all)" in run("active", carved(), "-n", "3").stdout
    table = list(csv.DictReader(io.StringIO(run("active", carved(), "--csv").stdout)))
    rows = active(carved())["rows"]
    assert [(row["address"], int(row["size"]), row["owner"]) for row in table] == \
        [(row["address"], row["size"], row["owner"]) for row in rows]


@test
def absurd_ranges_are_told_and_not_believed():
    with open("absurd.txt", "w", encoding="utf-8") as file:
        file.write("process p pid=5\nthread t p tid=5\n"
                   "@1 t mmap 0x1000 0xffffffffffffffff prot=rw flags=private|anonymous\n"
                   "@2 t mmap 0x10001 4096 prot=rw flags=private|anonymous\n"
                   "@3 t mmap 0x100000 0x800000000000 prot=rw flags=private|anonymous\n"
                   "@4 t mmap 0x100000 0x3000 prot=rw flags=private|anonymous\n"
                   "@5 t mmap 0x101000 0x1000 prot=rw flags=private|anonymous\n"
                   "@6 t munmap 0xfffffffffffff000 0x2000\nend\n")
    run("dump", "--assemble", "absurd.txt", "-o", "absurd.tide")
    done = run("active", "absurd.tide", "--json")
    answer = json.loads(done.stdout)
    # A hundred and twenty-eight terabytes are possible, and are one row.
    assert "3 calls have ranges that no address space can hold" in done.stderr
    assert "2 mappings are where others had not ended" in done.stderr
    assert sorted(row["size"] for row in answer["rows"])[:2] == [0x1000, 0x1000]


@test
def what_a_walk_has_found_on_windows_may_end_unseen():
    path = assemble("walked", 'trace host="Windows x86_64"\nprocess p pid=5 bits=32\nthread t p tid=5\n'
                    'module m p 0x400000-0x500000 "a.exe"\nframe f m 0x1000\nstack s f\n'
                    "@1 t mapped 0x100000 0x100000 prot=none flags=private|anonymous origin=kernel\n"
                    "@2 t mmap s 0x110000 0x3000 prot=rw flags=private|anonymous\n"
                    "@3 t mmap s 0x112000 0x3000 prot=rw flags=private|anonymous\nend\n")
    done = run("active", path, "--json")
    assert "1 mappings are where others had not ended" in done.stderr, done.stderr


@test
def at_exit_an_image_that_became_another_has_what_it_never_freed_and_no_mapping():
    with open("execed.txt", "w", encoding="utf-8") as file:
        file.write("\n".join([
            "process p pid=9", "process q pid=9 generation=1", "thread t p tid=9", "thread u q tid=9",
            "stack a here < main", "@1 start p", "@2 t malloc a 0x500010 111",
            "@2 t mmap a 0x700000 0x1000 prot=rw flags=private|anonymous", "@3 end p exec",
            "@3 start q", "@4 u malloc a 0x500010 222",
            "@5 u mmap a 0x800000 0x2000 prot=rw flags=private|anonymous", "@6 end q exit=0",
            "end"]) + "\n")
    run("dump", "--assemble", "execed.txt", "-o", "execed.tide", "--force")
    for words in ([], ["--process", "9"]):
        rows = active("execed.tide", *words)["rows"]
        # as live at exit in the report
        assert sorted(row["size"] for row in rows) == [111, 222, 0x2000], rows
    for words in (["--at", "2ns"], ["--process", "0"]):  # then, or if nothing else is asked for
        rows = active("execed.tide", *words)["rows"]
        assert sorted(row["size"] for row in rows) == [111, 0x1000], rows
    # The first image had more of everything, and is past all the same.
    with open("execed.txt", encoding="utf-8") as file:
        text = file.read().replace("0x700000 0x1000", "0x700000 0x900000")
    with open("grown.txt", "w", encoding="utf-8") as file:
        file.write(text.replace("@3 end p", "@2 t malloc a 0x600010 1\n@3 end p"))
    run("dump", "--assemble", "grown.txt", "-o", "grown.tide", "--force")
    for command in ("map", "pins"):
        for words, chosen in ([], 1), (["--process", "0"], 0):
            answer = json.loads(run(command, "--json", *words, "grown.tide").stdout)
            assert answer["process_id"] == chosen, (command, words, answer)


@test
def what_an_attached_process_had_before_is_there_from_the_beginning():
    path = assemble("before", "process p pid=7 start=attach\nthread t p tid=7\n+2ms t before 0x1000 10\n"
                    "+0us t before 0x2000 20\n+0us blocks-before p value=2 \"with glibc\"\n"
                    "+1ms mark p \"attached\"\n+1ms t malloc 0x3000 30\n"
                    "+1ms t free 0x1000\nend\n")
    for words in (["--at", "0s"], ["--at", "begin"], ["--at", "1ms"], ["--at", "3ms"]):
        assert sorted(row["size"] for row in active(path, *words)["rows"]) == [10, 20], words
    assert sorted(row["size"] for row in active(path, "--at", "4ms")["rows"]) == [10, 20, 30]


@test
def mistakes_are_told_in_one_line():
    for words, part in ((["active"], "a trace FILE"),
                        (["active", carved(), "--at", "noon"], "--at"),
                        (["active", carved(), "--at", "2h"], "--at"),
                        (["active", carved(), "--at", "90s"], "after the end of the trace"),
                        (["active", carved(), "--process", "999"], "no process '999'"),
                        (["active", carved(), "--min-bytes", "x"], "min-bytes")):
        done = run(*words, check=2)
        assert part in done.stderr and done.stderr.count("\n") == 1 and not done.stdout, done
    assert run("active", "nowhere.tide", check=3).stderr.count("\n") == 1


@test
def what_was_there_before_an_attach_has_no_age():
    path = assemble("before", """process p pid=1 start=attach
process q pid=2
thread b p tid=0 "before"
thread t p tid=1
thread u q tid=2
stack s here
@5 t mapped 0x10000 8192 prot=rw flags=private|anonymous
@5 b before s 0x1000 800
@10 t malloc s 0x2000 8
@12 u malloc s 0x2000 16
end duration=20
""")
    ages = {(row["layer"], row["size"]): (row["age_ns"], row["thread"]) for row in active(path)["rows"]}
    assert ages == {("vm", 8192): (None, ages[("vm", 8192)][1]), ("heap", 800): (None, None), ("heap", 8): (10, 1),
                    ("heap", 16): (8, 2)}, ages
    lines = run("active", path).stdout.splitlines()
    assert sum(" before  " in line for line in lines) == 2, lines
    assert any(",800,,malloc," in line for line in run("active", path, "--csv").stdout.splitlines())


main()
