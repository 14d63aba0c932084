#!/usr/bin/env python3
# parallel: yes
"""`tidemark map`: every figure counted a second time, page by page, on random address spaces; the
pictures are well formed and as large as the space in use; tracefrag's lines say what happened."""
import os
import random
import re
import shutil
import xml.etree.ElementTree

from libanswer import answer, assemble, run
from libtests import main, test

PAGE, SLOT = 4096, 16  # bytes; pages


def drawn(path, *words):
    return answer("map", path, *words)


LOW, PAGES = 0x1000, 300  # the part of the space that is used: first page, how many
STACKS = "abcd"


def random_space(name, seed):
    """A trace and, page by page, which stack mapped what is there."""
    dice = random.Random(seed)
    lines = ["process p pid=5 bits=32", "thread t p tid=5",
             *(f"stack {stack} by_{stack} < main" for stack in STACKS)]
    pages = {}
    for now in range(1, 150):
        first, count = LOW + dice.randrange(PAGES), dice.randrange(1, 12)
        stack = dice.choice(STACKS)
        if dice.random() < 0.6:
            lines.append(f"@{now} t mmap {stack} {first * PAGE} {count * PAGE} prot=rw "
                         "flags=private|anonymous|fixed")
            pages.update({page: stack for page in range(first, first + count)})
        else:
            lines.append(f"@{now} t munmap {stack} {first * PAGE} {count * PAGE}")
            for page in range(first, first + count):
                pages.pop(page, None)
    return assemble(name, "\n".join(lines) + "\nend\n"), pages


def holes_of(pages, low, high):
    """Runs of free pages."""
    holes, run_from = [], low
    for page in sorted(page for page in pages if low <= page < high):
        if page > run_from:
            holes.append((run_from, page))
        run_from = page + 1
    if run_from < high:
        holes.append((run_from, high))
    return holes


@test
def every_figure_of_random_spaces_is_what_a_second_count_says():
    for seed in range(6):
        path, pages = random_space(f"space{seed}", seed)
        low, high = LOW - 50, LOW + PAGES + 70
        answer = drawn(path, "--range", f"{low * PAGE:x}..{high * PAGE:x}", "-n", "0")
        holes = holes_of(pages, low, high)
        assert answer["free"] == PAGE * sum(b - a for a, b in holes)
        assert answer["holes"] == len(holes)
        assert answer["largest_free"] == PAGE * max(b - a for a, b in holes)
        assert answer["mapped"] == PAGE * len(pages) == answer["committed"]
        slots = [range(slot, slot + SLOT) for slot in range(0, high + SLOT, SLOT)]
        whole = sum(all(page not in pages for page in slot) and slot[0] >= low and slot[-1] < high
                    for slot in slots)
        assert answer["unusable"] == answer["free"] - whole * SLOT * PAGE
        # What were, if a stack's mappings were not there.
        for row in answer["rows"]:
            stack = row["stack"][0]["function"][-1]
            without = {page for page, who in pages.items() if who != stack}
            assert row["bytes"] == PAGE * (len(pages) - len(without)), (seed, stack)
            alone = holes_of(without, low, high)
            assert row["largest_without"] == PAGE * max(b - a for a, b in alone), (seed, stack)
        assert {row["stack"][0]["function"][-1] for row in answer["rows"]} == set(pages.values())
        # Waste: free pages of a slot belong to the mapping below in it, else to the one above.
        waste = dict.fromkeys(STACKS, 0)
        for a, b in holes:
            for page in range(a, b):
                slot = page - page % SLOT
                below = next((pages[p] for p in range(page - 1, slot - 1, -1) if p in pages), None)
                above = next((pages[p] for p in range(page + 1, slot + SLOT)
                              if p in pages and p < high), None)
                if below or above:
                    waste[below or above] += PAGE
        assert {row["stack"][0]["function"][-1]: row["waste"] for row in answer["rows"]} == \
            {stack: bytes for stack, bytes in waste.items() if stack in set(pages.values())}, seed


@test
def a_hole_that_was_small_for_a_moment_is_so_in_the_curve_at_that_moment_alone():
    lines = ["process p pid=5 bits=32", "thread t p tid=5", "stack a by_a < main",
             f"@1ms t mmap a {LOW * PAGE} {PAGE} prot=rw flags=private|anonymous|fixed",
             f"@500ms t mmap a {(LOW + 1) * PAGE} {PAGES * PAGE} prot=rw flags=private|anonymous|fixed",
             f"@500100us t munmap a {(LOW + 1) * PAGE} {PAGES * PAGE}",
             f"@1s t mmap a {(LOW + 2) * PAGE} {PAGE} prot=rw flags=private|anonymous|fixed"]
    path = assemble("moment", "\n".join(lines) + "\nend\n")
    committed = [point["committed"] for point in drawn(path)["curve"]]
    assert committed[120] == (PAGES + 1) * PAGE, committed
    assert committed[:120] == [PAGE] * 120 and committed[121:239] == [PAGE] * 118, committed
    assert committed[239] == 2 * PAGE, committed


@test
def the_trace_made_by_hand_names_who_is_in_the_way():
    answer = drawn(assemble("space"), "--process", "700")
    assert (answer["bits"], answer["low"], answer["high"]) == (32, "0x0", "0x100000000")
    assert answer["owners"]["thread-stack"] == 0x801000 and answer["owners"]["tidemark"] == 0x2000
    assert answer["largest_free"] == 0x40000000 - 0x9021000
    assert answer["failures_count"] == 2
    failed = answer["failures"][0]
    assert failed["call"] == "mmap" and failed["size"] == 0x50000000 and failed["error"] == 12
    assert failed["largest_free"] == 0x40000000 - 0x1000 and failed["holes"] == 15
    guilty = failed["in_the_way"]
    assert guilty["stack"][0]["function"] == "pin_page" and guilty["count"] == 3
    assert guilty["bytes"] == 3 * PAGE and guilty["largest_without"] == 0xf0000000 - 0x9021000
    assert answer["failures"][1]["call"] == "malloc"
    lowest = min(answer["curve"], key=lambda point: point["largest_free"])
    assert lowest["largest_free"] == answer["largest_free"]
    assert len(answer["curve"]) == 240 and answer["curve"][-1]["to_ns"] == 10_000_000
    text = run("map", "space.tide", "--process", "700").stdout
    for part in ("WHO IS IN THE WAY", "pin_page", "largest hole 1.0 GiB", "FAILED FOR WANT OF MEMORY",
                 "3.6 GiB without 3 mappings (12.0 KiB)", "each character: 2.0 MiB"):
        assert part in text, part
    # 32 lines of 64 characters are 4 GiB.
    assert len(re.findall(r"^ +[0-9a-f]+ [.A-Za-z]{64}$", text, re.M)) == 32
    # Filters choose among those in the way; that none is chosen is said.
    for filter, warnings in (("pin_page", []), ("nosuch", ["no mapper passes the filters"])):
        chosen = drawn("space.tide", "--process", "700", "--frame", filter)
        assert chosen["warnings"] == answer["warnings"] + warnings, chosen["warnings"]
    # The child has what it inherited, and its own.
    child = drawn("space.tide", "--process", "701")
    assert child["mapped"] > 0x10000000 and child["owners"]["program"] >= 0x10000000


@test
def the_peak_is_that_of_committed_memory():
    path = assemble("peaks", "\n".join([
        "process p pid=9", "thread t p tid=9", "process q pid=10", "thread u q tid=10",
        "stack a here < main", "@1 start p", "@1 start q", "@2 t malloc a 0x10 900",
        "@3 t free 0x10", "@4 t mmap a 0x100000 0x9000 prot=rw flags=private|anonymous",
        "@5 t mmap a 0x200000 0x90000 prot=none flags=private|anonymous",
        "@6 t munmap a 0x100000 0x5000",
        "@7 u mmap a 0x100000 0x2000 prot=rw flags=private|anonymous",
        "@8 u munmap a 0x100000 0x2000", "@9 end p exit=0", "@9 end q exit=0", "end"]) + "\n")
    answer = drawn(path, "--at", "peak", "--process", "9")
    assert answer["at_ns"] == 4 and answer["mapped"] == 0x9000, answer
    answer = drawn(path, "--at", "peak", "--process", "10")
    assert answer["at_ns"] == 7 and answer["mapped"] == 0x2000, answer
    none = assemble("unmapped", "process p pid=9\nthread t p tid=9\n@1 t malloc 0x10 5\nend\n")
    assert "there is no peak" in run("map", none, "--at", "peak", check=2).stderr


@test
def a_failure_that_no_hole_explains_says_so():
    path = assemble("limit", "process p pid=5\nthread t p tid=5\nstack s big < main\n"
                    "@1 t mmap s 0x40000000 0x1000 prot=rw flags=private|anonymous\n"
                    "@2 t mmap s 0 0x100000 prot=rw flags=private|anonymous error=12\n"
                    "@3 t mmap s 0 0x40000000 prot=rw flags=private|anonymous|0x40 error=12\nend\n")
    text = run("map", path).stdout
    assert "it was not for want of address space" in text
    failures = drawn(path)["failures"]
    assert failures[0]["in_the_way"] is None or failures[0]["largest_free"] > failures[0]["size"]
    # MAP_32BIT looks in one gigabyte only.
    assert (failures[1]["low"], failures[1]["high"]) == ("0x40000000", "0x80000000")
    assert failures[1]["largest_free"] == 0x40000000 - PAGE
    assert failures[1]["in_the_way"]["largest_without"] == 0x40000000


@test
def calls_that_fail_alike_are_one_row_and_those_of_another_size_are_another():
    lines = ["process p pid=5 bits=32", "thread t p tid=5", "stack s big < main", "stack z other < main",
             "@1 t mmap s 0x40000000 0x1000 prot=rw flags=private|anonymous"]
    def fails(time, stack, size):
        return f"@{time} t mmap {stack} 0 {size} prot=rw flags=private|anonymous error=12"
    lines += [fails(time, "s", 0xf0000000) for time in range(10, 60)] + [fails(70, "s", 0xf1000000)]
    lines += [fails(80 + k, "z", 0xf0000000 - k * PAGE) for k in range(20)]
    path = assemble("alike", "\n".join(lines) + "\nend\n")
    answer = drawn(path)
    first, second, *others = answer["failures"]
    assert (first["count"], first["time_ns"], first["last_ns"]) == (50, 10, 59), first
    assert (second["count"], second["size"]) == (1, 0xf1000000), second
    assert len(others) == 18 and answer["failures_left_out"] == 2 and answer["failures_count"] == 71
    text = run("map", path).stdout
    assert "50 times, the last at 59 ns" in text and "\n  2 more\n" in text, text


@test
def on_windows_a_failure_is_weighed_with_what_the_walk_after_it_found():
    """Also where nothing but the process's end comes after that, and not where a call came between."""
    def failures(host, *between, end=()):
        lines = [f'trace host="{host}"', "process p pid=5 bits=32", "thread t p tid=5", "stack s big < main",
                 "@1 t mmap s 0x10000 0x10000 prot=rw flags=private|anonymous",
                 "@2 t mmap s 0 0x70000000 prot=none flags=private|anonymous error=12", *between,
                 "@3 t mapped 0x80000000 0x7fff0000 prot=none flags=private|anonymous origin=kernel", *end]
        return drawn(assemble("walked", "\n".join([*lines, "@9 end p exit=0", "end", ""])))["failures"]
    low, high = 0x80000000 - 0x20000, 0x100000000 - 0x20000
    after = "@4 t mmap s 0x20000 0x10000 prot=rw flags=private|anonymous"
    for end in ((), (after,)):
        assert [one["largest_free"] for one in failures("Windows x86_64", end=end)] == [low]
    freed = "@2 t munmap s 0x10000 0x10000"
    assert failures("Windows x86_64", freed)[0]["largest_free"] == high
    assert failures("Linux x86_64")[0]["largest_free"] == high


@test
def what_the_kernel_never_gives_is_no_hole_that_a_call_could_have_had():
    """The gap below the main stack, and the lowest 64 KiB."""
    low, stack, gap = 0x10000, 0xf0000000, 0x100000
    lines = ["process p pid=5 bits=32", "thread t p tid=5", "stack s big < main",
             'file stack "[stack]"',
             f"@0 t mapped {stack:#x} 0x21000 prot=rw file=stack origin=kernel",
             f"@1 t mmap s {stack + 0x21000:#x} {0x10000000 - 0x21000:#x} prot=rw "
             "flags=private|anonymous",
             "@2 t mmap s 0x80000000 0x1000 prot=rw flags=private|anonymous",
             f"@3 t mmap s 0 {0x80000000 - low + PAGE:#x} prot=rw flags=private|anonymous error=12",
             "@4 t mmap s 0x1000 0x7ffff000 prot=rw flags=private|anonymous|fixed",
             f"@5 t mmap s 0 {stack - 0x80001000 - gap + PAGE:#x} prot=rw "
             "flags=private|anonymous error=12",
             f"@6 t mmap s 0 {stack - 0x80001000 - gap:#x} prot=rw flags=private|anonymous error=12"]
    path = assemble("gap", "\n".join(lines) + "\nend\n")
    first, second, third = drawn(path)["failures"]
    assert first["largest_free"] == 0x80000000 - low < first["size"], first
    assert second["largest_free"] == stack - 0x80001000 - gap < second["size"], second
    assert third["largest_free"] == third["size"], third
    # Without the mapping at the low end of it, that hole would be larger, without the gap as well.
    assert second["in_the_way"]["largest_without"] == stack - gap - low, second
    text = run("map", path).stdout
    assert text.count("it was not for want of address space") == 1, text


@test
def a_space_of_128_tib_is_a_small_picture():
    lines = ["process p pid=5", "thread t p tid=5", "stack s vast < main"]
    lines += ["@1 t mmap s 0x10000 0x7ffffffe0000 prot=none flags=private|anonymous|noreserve",
              "@2 t munmap s 0x400000000000 0x1000"]
    path = assemble("vast", "\n".join(lines) + "\nend\n")
    answer = drawn(path)
    assert answer["mapped"] == 0x7ffffffe0000 - 0x1000 and answer["committed"] == 0
    text = run("map", path).stdout
    assert len(text.splitlines()) < 120 and "64.0 TiB program, reserved" in text, text
    run("map", path, "-o", "vast.svg")
    assert os.path.getsize("vast.svg") < 200_000
    # Far apart, and many: the cells are capped.
    lines[3:] = [f"@{i} t mmap s {hex(0x10000000 + i * 0x40000000)} 0x1000 prot=rw "
                 "flags=private|anonymous" for i in range(3000)]
    path = assemble("sparse", "\n".join(lines) + "\nend\n")
    run("map", path, "-o", "sparse.svg")
    assert os.path.getsize("sparse.svg") < 4_000_000
    assert drawn(path)["holes"] == 3001


@test
def the_picture_is_well_formed_and_shows_each_slot_once():
    run("map", assemble("space"), "--process", "700", "-o", "space.svg")
    root = xml.etree.ElementTree.parse("space.svg").getroot()
    name = "{http://www.w3.org/2000/svg}"
    assert root.tag == name + "svg"
    rects = [rect for rect in root.iter(name + "rect") if rect.get("x") and rect.get("height") == "4"]
    drawn_cells = {}
    for rect in rects:
        if rect.get("fill") == "#d55e00":  # the program's own
            for x in range(int(rect.get("x")), int(rect.get("x")) + int(rect.get("width")), 4):
                key = (x, int(rect.get("y")))
                assert key not in drawn_cells
                drawn_cells[key] = True
    assert len(drawn_cells) == 0x40000000 // 0x10000  # two reservations; the pins fill less
    largest = sum(int(rect.get("width")) for rect in rects if rect.get("fill") == "#dcebc8") // 4
    assert abs(largest * 0x10000 - drawn("space.tide", "--process", "700")["largest_free"]) <= \
        2 * 0x10000, largest
    labels = [text.text for text in root.iter(name + "text") if text.get("class") == "address"]
    assert "00000000" in labels, labels
    height = int(root.get("height"))
    assert all(int(text.get("y")) <= height for text in root.iter(name + "text"))
    if not shutil.which("rsvg-convert"):
        assert "librsvg2-bin" in run("map", "space.tide", "-o", "space.png", check=3).stderr
        return
    run("map", "space.tide", "--process", "700", "-o", "space.png")
    with open("space.png", "rb") as file:
        assert file.read(8) == b"\x89PNG\r\n\x1a\n"


@test
def tracefrags_lines():
    text = run("map", assemble("space"), "--tracefrag", "--process", "700").stdout
    prefix = r"^\d{17} 700 0\.01: trcmem32: "
    assert all(re.match(prefix, line) for line in text.splitlines())
    lines = [re.sub(prefix, "", line) for line in text.splitlines()]
    assert all(re.fullmatch(r"0x[0-9a-f]{8} \d+|  \[\d+\] [0-9a-f]+ \S+!.*"
                            r"|  #\d+ [0-9a-f]+ \d+ [0-9a-f]+ [0-9a-f]+ \d+ \d+", line)
               for line in lines), lines
    rows = [line.split() for line in lines if line.startswith("  #")]
    # One serial over the run; only what leaves a slot partly unused; the released page has an end.
    assert sorted(int(row[0][1:]) for row in rows) == [1, 2, 3, 4, 5]
    assert ["#4", "80000000", "4096", "3000", "4", "4", "6"] in rows
    assert ["#3", "40000000", "4096", "3000", "4", "4", "0"] in rows
    assert ["#2", "f6600000", "8392704", "2000", "1", "3", "0"] in rows
    # Decommitted is not released; half unmapped is not; moved is not; all of it in pieces is.
    path = assemble("pieces", "process p pid=5\nthread t p tid=5\nstack s here < main\n"
                    "@1ms t mmap s 0x100000 0x3000 prot=rw flags=private|anonymous\n"
                    "@2ms t mprotect s 0x100000 0x3000 prot=none\n"
                    "@3ms t munmap s 0x101000 0x1000\n"
                    "@4ms t mmap s 0x200000 0x1000 prot=rw flags=private|anonymous\n"
                    "@5ms t mremap s 0x200000 0x1000 -> 0x300000 0x1000 flags=maymove\n"
                    "@6ms t mmap s 0x100000 0x1000 prot=r flags=private|anonymous|fixed\n"
                    "@7ms t munmap s 0x102000 0x1000\n"
                    "@8ms t mmap s 0x200000 0x1000 prot=r flags=private|anonymous\nend\n")
    rows = {line.split("#")[1].split()[0]: line.split("#")[1].split()[1:]
            for line in run("map", path, "--tracefrag").stdout.splitlines() if "#" in line}
    assert rows["1"][-2:] == ["1", "7"], rows
    assert rows["2"][-2:] == ["4", "0"] and rows["3"][-2:] == ["6", "0"]
    assert rows["4"] == ["200000", "4096", "2000", "2", "8", "0"]


@test
def tracefrags_lines_are_filtered_by_the_functions_of_their_stacks():
    space = assemble("space")

    def rows(*words):
        text = run("map", space, "--tracefrag", "--process", "700", *words).stdout
        return sorted(int(number) for number in re.findall(r"  #(\d+) ", text)), text
    everything, text = rows()
    assert "!pin_page" in text and len(everything) == 5
    # As TRCMEM_SKIP_STACK_WITH_SYMBOL=pin_page, and the other way round.
    without, text = rows("--not-frame", "^pin_page$")
    assert "!pin_page" not in text and "!load_wood" in text, text
    alone, text = rows("--frame", "^pin_page$")
    assert "!pin_page" in text and "!load_wood" not in text, text
    assert without and alone and len(without) + len(alone) == 5, (without, alone)


@test
def what_a_windows_program_reserved_is_listed_as_it_asked():
    path = assemble("reserved", 'trace host="Windows x86_64"\nprocess p pid=5 bits=32\n'
                    "thread t p tid=5\nstack s here < main\n"
                    "@1ms t mmap s 0x100000 0x1000 prot=rw flags=private|anonymous|executable|locked\n"
                    "@2ms t mmap s 0x200000 0x3000 prot=none flags=private|anonymous|locked\n"
                    "@3ms t mmap s 0x300000 0x1000 prot=r flags=shared\n"
                    "@4ms t mprotect s 0x200000 0x1000 prot=rw\nend\n")
    rows = [line.split("#")[1].split() for line in
            run("map", path, "--tracefrag").stdout.splitlines() if "#" in line]
    assert rows == [["1", "100000", "4096", "3000", "4", "1", "0"],
                    ["2", "200000", "12288", "2000", "1", "2", "0"]], rows


@test
def mistakes_are_told_in_one_line():
    space = assemble("space")
    for words, part in ((["map"], "a trace FILE"),
                        (["map", space, "--granularity", "5000"], "power of two"),
                        (["map", space, "--granularity", "1K"], "from 4K"),
                        (["map", space, "--range", "1..2"], "--range"),
                        (["map", space, "--range", "0x2000..0x1000"], "--range"),
                        (["map", space, "-o", "x.jpg"], ".svg or .png")):
        done = run(*words, check=2)
        assert part in done.stderr and done.stderr.count("\n") == 1 and not done.stdout, done
    heap_only = assemble("heaponly", "process p pid=5\nthread t p tid=5\n@1 t malloc 0x10 5\nend\n")
    assert "virtual memory may not have been recorded" in run("map", heap_only, check=2).stderr
    assert run("map", space, "-o", "/nowhere/x.svg", check=3).stderr.count("\n") >= 1


main()
