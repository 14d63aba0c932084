#!/usr/bin/env python3
# parallel: yes
"""`tidemark pins`: pages of a heap, counted a second time here, page by page."""
import csv
import io
import random

from libanswer import answer, run
from libtests import main, test

PAGE, HEAP, PAGES = 4096, 0x500000, 96


def pins(path, *words):
    return answer("pins", path, *words)


def build(name, seed, mapped, snapshot=False, windows=None):
    """A sparse heap of glibc's, or (bits) of Windows'. Returns for each page the berths on it: (bytes,
    live, stack, address)."""
    dice = random.Random(seed)
    lines = [f"process p pid=9 bits={windows or 64}", "thread t p tid=9", "stack a by_a < main",
             "stack b by_b < main"]
    heap, unit, least = "", 16, 32
    if windows:
        # A block of a pool is inside of another one, and counts for no page.
        lines = ['trace host="Windows x86_64"', *lines, "heap w p handle=0x1f0000", 'heap q p handle=0 "pool"',
                 f"@1 t malloc a q {HEAP + PAGES * PAGE - 64} 16"]
        heap, unit, least = "w ", windows // 4, 16
    if mapped and windows:
        lines.append(f"@1 t mmap a {HEAP} {PAGES * PAGE} prot=rw flags=private|anonymous origin=allocator")
        # Reserved, and not committed: no page.
        lines.append(f"@1 t mmap a {HEAP + PAGES * PAGE} {PAGE} prot=none flags=private|anonymous origin=allocator")
    elif mapped:
        lines.append(f"@1 t brk {HEAP} -> {HEAP + PAGES * PAGE} origin=allocator")
    pages, at = {}, HEAP + 16
    while True:
        at += unit * dice.randrange(0, 9600 // unit)
        size, stack = dice.choice([8, 24, 100, 1000, 3000, 9000]), dice.choice("ab")
        chunk = max(least, (size + 8 + unit - 1) // unit * unit)
        if at + chunk > HEAP + (PAGES - 1) * PAGE:
            break
        lines.append(f"@2 t malloc {stack} {heap}{at} {size}")
        for page in range((at - 8) // PAGE, (at - 8 + chunk - 1) // PAGE + 1):
            low, high = page * PAGE, (page + 1) * PAGE
            pages.setdefault(page, []).append(
                (min(high, at - 8 + chunk) - max(low, at - 8),
                 max(0, min(high, at + size) - max(low, at)), stack, at))
        at += chunk
    resident = None
    if snapshot:
        resident = {page for page in range(HEAP // PAGE, HEAP // PAGE + PAGES) if dice.random() < 0.5}
        lines.append("snapshot p reason=exit")
        lines.append(f"mapping {HEAP}-{HEAP + PAGES * PAGE} prot=rw rss={len(resident) * PAGE}")
        lines += [f"pages {page * PAGE}-{(page + 1) * PAGE}" for page in sorted(resident)]
    with open(name + ".txt", "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\nend\n")
    run("dump", "--assemble", name + ".txt", "-o", name + ".tide", "--force")
    return name + ".tide", pages, resident


def check(answer, pages, limit, resident=None):
    here = {page: berths for page, berths in pages.items() if resident is None or page in resident}
    pinned = {page: berths for page, berths in here.items()
              if sum(berth[0] for berth in berths) <= limit}
    assert answer["pages_pinned"] == len(pinned) and answer["pages_used"] == len(here) - len(pinned)
    assert answer["pinned_bytes"] == sum(berth[1] for berths in pinned.values() for berth in berths)
    if answer["mapped"]:
        whole = PAGES if resident is None else len(resident)
        assert answer["pages_free"] == whole - len(here), (answer["pages_free"], whole, len(here))
    for row in answer["rows"]:
        stack = row["stack"][0]["function"][-1]
        on = [berths for berths in pinned.values() if any(berth[2] == stack for berth in berths)]
        alone = [berths for berths in on if all(berth[2] == stack for berth in berths)]
        assert (row["pages"], row["pages_alone"]) == (len(on), len(alone)), (row, len(on), len(alone))
        assert row["could_go_back"] == PAGE * len(alone)
        assert row["blocks"] == len({berth[3] for berths in on for berth in berths if berth[2] == stack})
        assert row["live_bytes"] == sum(berth[1] for berths in on for berth in berths
                                        if berth[2] == stack)


@test
def every_page_is_what_a_second_count_says():
    for seed in range(5):
        for mapped in (True, False):
            path, pages, _ = build(f"heap{seed}{mapped}", seed, mapped)
            for limit in (64, 1024, 4095):
                answer = pins(path, "--max-live", str(limit))
                assert answer["mapped"] == mapped and not answer["resident"]
                check(answer, pages, limit)


@test
def pages_that_are_not_resident_do_not_count():
    path, pages, resident = build("snapshot", 3, True, snapshot=True)
    answer = pins(path)
    assert answer["resident"]
    check(answer, pages, 1024, resident)
    assert "resident: could go back now" in run("pins", path).stdout


@test
def a_snapshot_that_was_read_while_the_program_went_on_is_of_no_moment():
    for ended, quiet in ((2, True), (3, False)):
        with open("growth.txt", "w", encoding="utf-8") as file:
            file.write("process p pid=9\nthread t p tid=9\nstack a by_a < main\n"
                       f"@1 t brk {HEAP} -> {HEAP + 4 * PAGE} origin=allocator\n"
                       f"@2 t malloc a {HEAP + 16} 24\n"
                       f"snapshot p reason=growth began=2 ended={ended}\n"
                       f"mapping {HEAP}-{HEAP + 4 * PAGE} prot=rw rss={PAGE}\n"
                       f"pages {HEAP + PAGE}-{HEAP + 2 * PAGE}\n"
                       f"@3 t malloc a {HEAP + 2 * PAGE} 24\nend\n")
        run("dump", "--assemble", "growth.txt", "-o", "growth.tide", "--force")
        found = pins("growth.tide", "--at", "2ns")
        assert (found["resident"], found["pages_pinned"]) == (quiet, 0 if quiet else 1), found


@test
def pages_of_windows_heaps_are_those_that_are_committed():
    for bits in (64, 32):
        for mapped in (True, False):
            path, pages, _ = build(f"windows{bits}{mapped}", bits, mapped, windows=bits)
            answer = pins(path)
            assert (answer["mapped"], answer["resident"]) == (mapped, False)
            check(answer, pages, 1024)
            assert ("the heaps keep them committed" in run("pins", path).stdout) == mapped


@test
def rows_are_the_same_in_every_form():
    path, _, _ = build("forms", 2, True)
    rows = pins(path)["rows"]
    table = list(csv.DictReader(io.StringIO(run("pins", path, "--csv").stdout)))
    assert len(rows) == len(table) == 2, table
    for row, line in zip(rows, table):
        assert line["function"] == row["stack"][row["user_frame"]]["function"], (row, line)
        assert (line["process"], line["on_pinned"]) == ("9", str(PAGE * row["pages"])), line
        for key in ("blocks", "live_bytes", "pages", "pages_alone", "could_go_back"):
            assert line[key] == str(row[key]), (key, row, line)


@test
def mistakes_are_told_in_one_line():
    path, _, _ = build("plain", 1, True)
    for words, part in ((["pins"], "a trace FILE"), (["pins", path, "--max-live", "4096"], "less than"),
                        (["pins", path, "--at", "0ns"], "no blocks are live")):
        done = run(*words, check=2)
        assert part in done.stderr and done.stderr.count("\n") == 1 and not done.stdout, done


main()
