#!/usr/bin/env python3
# parallel: yes
"""`tidemark export`: the formats of events hold each block that `tidemark window` counts."""
import csv
import io
import json
import os
import random
import re
import shutil
import subprocess

from libanswer import TIDEMARK, answer, assemble, refused, run, sampled
from libtests import Skip, check, equal, main, test

TRACES = ("kitchen", "family", "crowd")
WINDOWS = ((), ("--from", "20%", "--to", "70%"), ("--size", "..64"), ("--impact", "impacting"),
           ("--from", "20%", "--to", "70%", "--impact", "transient"))


def exported(path, name, *words):
    """What it wrote, and what it said."""
    done = subprocess.run([TIDEMARK, "export", path, "--format", name, *words], check=True,
                          capture_output=True)
    return done.stdout, done.stderr.decode()


def rows_of(path, *words):
    """The rows of the CSV; those of JSONL say the same."""
    rows = list(csv.DictReader(io.StringIO(exported(path, "csv", *words)[0].decode())))
    objects = [json.loads(line) for line in exported(path, "jsonl", *words)[0].splitlines()]
    equal(rows, [{key: "" if value is None else str(value) for key, value in each.items()}
                 for each in objects])
    return rows


def assembled(name, text):
    with open(f"{name}.txt", "w", encoding="utf-8") as file:
        file.write(text)
    run("dump", "--assemble", f"{name}.txt", "-o", f"{name}.tide", "--force")
    return f"{name}.tide"


def failed_realloc():
    """An allocator asks the kernel for memory inside of a realloc, in vain."""
    return assembled("failed", """
process p pid=7 exe="/odd"
thread t p tid=7
thread u p tid=8
+100us t malloc 0x1000 10
+100us t realloc-free 0x1000
+0us   u malloc 0x3000 30
+100us t mmap 0x7f0000000000 4096 prot=rw flags=private|anonymous error=12
+100us t realloc-undo 0x1000 99
+1ms   end p exit=0
end
""")


@test
def a_realloc_that_failed_changes_nothing_whatever_the_allocator_did_inside_of_it():
    path = failed_realloc()
    equal(40, answer("window", path)["total"]["impacting_size"])
    equal(["alloc", "alloc"], [row["op"] for row in rows_of(path)])


@test
def lifetimes_are_the_blocks_of_the_window():
    for name in TRACES:
        path = assemble(name)
        for words in WINDOWS:
            found = {}
            for row in rows_of(path, "--lifetimes", *words):
                sums = found.setdefault(row["class"], [0, 0])
                sums[0] += 1
                sums[1] += int(row["size"])
            expected = {row["keys"]["type"]: [row["count"], row["size"]]
                        for row in answer("window", path, "--by", "type", *words)["rows"]
                        if row["count"]}
            equal(expected, found, (name, words))


@test
def events_add_up_to_what_a_window_allocated_and_freed():
    for name in TRACES:
        path = assemble(name)
        for words in WINDOWS[:3]:
            total = answer("window", path, *words)["total"]
            rows = rows_of(path, *words)
            begun = [int(row["size"]) for row in rows if row["op"] == "alloc"]
            ended = [int(row["size"]) for row in rows if row["op"] == "free" and row["size"]]
            equal((total["allocated_count"], total["allocated"]), (len(begun), sum(begun)))
            equal((total["freed_count"], total["freed"]), (len(ended), sum(ended)))
            times = [int(row["time_ns"]) for row in rows]
            equal(sorted(times), times)


@test
def a_name_with_a_comma_is_one_cell():
    rows = rows_of(assemble("kitchen"))
    check(any("std::allocator<spice::Jar> >" in row["stack"] and ", " in row["stack"]
              for row in rows))
    check(all(row["stack"].startswith(("main;", "_start", "signal", "")) for row in rows))
    check(any(row["call"] == "realloc" and row["old_address"] for row in rows))


def anything(name, seed, count, known=False):
    """All that can happen to blocks, at addresses of some thousand pages; most of them live on. known: but what makes
    an index say that it does not have each event as it is."""
    dice = random.Random(seed)
    lines = ["process p pid=7 exe=/odd", "thread t p tid=7", "thread u p tid=8", "heap h p handle=1",
             "process q parent=p pid=9 start=fork exe=/odd", "thread v q tid=9", "stack s here"]
    live, halves = {"t": [0x1000], "v": [0x1000]}, {}  # addresses by process; of halves by thread

    def address(blocks):
        if dice.random() < 0.9:
            return dice.choice(blocks)
        return dice.randrange(1, 1 << 13) << 12 | dice.randrange(4) << 6

    for i in range(count):
        thread = dice.choice("ttttuuuuvvv")
        blocks = live["v" if thread == "v" else "t"]
        kind = dice.choice("mmmmmmmmmmffrnhHF") if thread not in halves else dice.choice("aux")
        when = f"{dice.choice(('+0us', '+0us', '+1us'))} {thread}"
        old, new = address(blocks), dice.randrange(1, 1 << 13) << 12 | dice.randrange(4) << 6
        if kind in "mra":
            blocks.append(new)
        if kind in "xu" and halves[thread] is None or known and (kind == "u" or thread == "v" and kind in "hH"):
            kind = "m"
        lines.append(when + {
            "m": f" malloc s {new} {dice.randrange(100)}",
            "f": f" free s {old}",
            "r": f" realloc {old} -> {new} 50",
            "n": f" realloc-free {old}",
            "a": f" realloc-alloc s {new} 70",
            "u": f" realloc-undo {halves.get(thread)} 99",
            "x": f" free {old}",
            "h": f" heap-alloc h {new} 10",
            "H": f" heap-free h {new}",
            "F": " failed 77"}[kind])
        halves.pop(thread, None)
        if kind == "n":
            halves[thread] = old
        if i == count // 2:
            lines += ["+0us mark p t \"half\"", "+0us t heap-reset h"]
        if i == count * 3 // 4 and not known:
            lines += ["+0us end q exit=0", "+0us t heap-destroy h"]
            live["v"] = live["t"]  # of a process that has ended: what comes is of nothing known
    return assembled(name, "\n".join(lines) + "\n+1ms end p exec\nend\n")


@test
def where_blocks_do_not_fit_in_memory_each_byte_is_the_same():
    for seed in range(3):
        path = anything("anything", seed, 6000)
        for name, words in (("csv", ()), ("csv", ("--lifetimes",)), ("jsonl", ("--from", "30%", "--to", "90%")),
                            ("csv", ("--lifetimes", "--from", "half", "--size", "..50")), ("massif", ()),
                            ("dhat", ("--from", "20%")), ("perfetto", ()),
                            *((each, ("--process", "#0", "--to", "80%"))
                              for each in ("heaptrack", "firefox", "heaplog", "memory_tracker"))):
            words = [word.replace("half", "mark:half") for word in words]
            equal(exported(path, name, *words), exported(path, name, *words, "--memory", "64K"))


# What lives when a window begins comes of the index then, and not of all that was before.
@test
def with_an_index_each_byte_is_the_same():
    os.environ["TIDEMARK_INDEX"] = "tiny"
    for seed, known in ((1, True), (2, True), (3, False)):
        plain, path = (anything(name, seed, 6000, known) for name in ("plain", "known"))
        run("window", path, "--by", "stack")
        check(os.path.exists(path + "-index") and not os.path.exists(plain + "-index"))
        for name, words in (("csv", ("--from", "30%", "--to", "33%")), ("jsonl", ("--from", "half",)), ("csv", ()),
                            ("csv", ("--lifetimes", "--from", "70%", "--to", "90%")), ("massif", ("--from", "60%")),
                            ("dhat", ("--from", "20%", "--to", "half")), ("perfetto", ("--from", "80%")),
                            ("csv", ("--from", "40%", "--to", "70%", "--size", "..50")),
                            *((each, ("--process", "#0", "--from", "55%", "--to", "85%"))
                              for each in ("heaptrack", "firefox", "heaplog", "memory_tracker"))):
            words = [word.replace("half", "mark:half") for word in words]
            whole = exported(plain, name, *words)
            equal(whole, exported(path, name, *words))
            equal(whole, exported(path, name, *words, "--memory", "64K"))
    del os.environ["TIDEMARK_INDEX"]


@test
def lifetimes_are_written_within_the_memory_that_is_given():
    def peak(*words):  # or that of this program, which began it, where that is more
        with subprocess.Popen([TIDEMARK, "export", "many.tide", "--format", "csv",
                               "--lifetimes", *words],
                              stdout=subprocess.DEVNULL) as running:
            _, status, usage = os.wait4(running.pid, 0)
            running.returncode = os.waitstatus_to_exitcode(status)
        equal(running.returncode, 0)
        return usage.ru_maxrss >> 10

    with open("many.txt", "w", encoding="utf-8") as file:
        file.write("process p\nthread t p\n")
        for i in range(1, 600_000):
            file.write(f"+0us t malloc {i << 6} 64\n")
    run("dump", "--assemble", "many.txt", "-o", "many.tide")
    little, much = peak("--memory", "8M"), peak()
    check(little < much - 20, little, much)


@test
def what_ended_long_before_a_window_is_passed_over():
    with open("far.txt", "w", encoding="utf-8") as file:
        file.write("process p pid=7 exe=/many\nthread t p tid=7\n+1us t malloc 0x100040 1\n+1us t malloc 0x200040 2\n")
        for i in range(200_000):
            file.write("+1us t malloc 0x1000 32\n+0us t free 0x1000\n" + "+0us t malloc 0x300040 3\n" * (i == 150_000))
        file.write("+9us t realloc 0x100040 -> 0x100080 4\n+0us t free 0x300040\n+9us t free 0x200040\n"
                   "+1ms end p exit=0\nend\n")
    for name in ("far", "near"):
        run("dump", "--assemble", "far.txt", "-o", name + ".tide")
    run("window", "near.tide", "--by", "stack")
    for name in ("csv", "heaplog", "massif", "heaptrack", "memory_tracker"):
        equal(*(exported(path, name, "--from", "200004us") for path in ("far.tide", "near.tide")))
    columns = json.loads(exported("far.tide", "firefox")[0])["threads"][0]["nativeAllocations"]  # by way of files
    equal({400_007}, {len(columns[name]) for name in ("time", "weight", "stack", "memoryAddress", "threadId")})
    equal([32, -32, 32], columns["weight"][2:5])
    equal([0x1000, 0x1000, 0x100040, 0x100080, 0x300040, 0x200040], columns["memoryAddress"][-6:])


def heaptrack_says(path, *words):
    if not shutil.which("heaptrack_print"):
        raise Skip("heaptrack_print is not installed (Debian: heaptrack)")
    text, said = exported(path, "heaptrack", *words)
    with open("out.gz", "wb") as file:
        file.write(text)
    done = subprocess.run(["heaptrack_print", "-f", "out.gz", "-F", "out.folded",
                           "--flamegraph-cost-type", "leaked"],
                          check=True, capture_output=True, text=True)
    equal("", done.stderr)
    with open("out.folded", encoding="utf-8") as file:
        leaked = sum(int(line.rsplit(" ", 1)[1]) for line in file)
    calls = int(re.search(r"calls to allocation functions: (\d+)", done.stdout)[1])
    peak = re.search(r"peak heap memory consumption: (\S+)", done.stdout)[1]
    return calls, leaked, peak, done.stdout, said


def heaptrack_bytes(count):
    """As heaptrack_print writes it."""
    for unit in ("B", "K", "M"):
        if count < 1000:
            return f"{count:g}{unit}" if unit == "B" else f"{count:.2f}{unit}"
        count /= 1000
    return f"{count:.2f}G"


@test
def heaptrack_print_has_our_totals_and_peaks():
    for name in TRACES:
        path = assemble(name)
        for process in answer("info", path)["processes"]:
            words = ("--process", str(process["id"]))
            row = answer("window", path, "--by", "layer", *words)["rows"]
            if not row:
                continue
            calls, leaked, peak, _text, _said = heaptrack_says(path, *words)
            equal(row[0]["allocated_count"], calls, (name, words))
            equal(row[0]["impacting_size"], leaked, (name, words))
            equal(heaptrack_bytes(row[0]["peak_size"]), peak, (name, words))


@test
def heaptrack_has_what_lived_before_the_window_and_says_so():
    path = assemble("crowd")
    words = ("--from", "40%", "--to", "80%")
    row = answer("window", path, "--by", "layer", *words)["rows"][0]
    calls, leaked, peak, _text, said = heaptrack_says(path, *words)
    before = int(re.search(r"(\d+) blocks of", said)[1])
    equal(row["allocated_count"], calls - before)
    types = {each["keys"]["type"]: each for each in
             answer("window", path, "--by", "type", *words)["rows"]}
    equal(sum(types[name]["size"] for name in ("AIFO", "AOFO") if name in types), leaked)
    check(peak != "0B")


@test
def heaptrack_print_finds_functions_and_files():
    text = heaptrack_says(assemble("kitchen"))[3]
    check("make_pot" in text and "src/pot.c:20" in text and "peel_one" in text, text)


def active(text):
    """As memory_tracker's active_allocations reads its lines: what is not freed, by address."""
    pattern = re.compile(r"(\S*):\s*0x([0-9a-f]+)\s*0?x?([0-9a-f]*)\s*(\S*)\s*(\S*)\s*0?x?([0-9a-f]*)")
    found = {}
    for line in text.splitlines():
        what, address, size = pattern.search(line).groups()[:3]
        if "malloc" in what:
            check(address not in found, line)
            found[address] = int(size, 16)
        else:
            check("free" in what, line)
            found.pop(address, None)
    return found


@test
def memory_trackers_lines_leave_what_lives():
    for name in TRACES:
        path = assemble(name)
        for process in answer("info", path)["processes"]:
            words = ("--process", str(process["id"]))
            text = exported(path, "memory_tracker", *words)[0].decode()
            row = answer("window", path, "--by", "layer", *words)["rows"]
            found = active(text)
            equal(row[0]["impacting_size"] if row else 0, sum(found.values()), (name, words))
            equal(row[0]["allocated_count"] if row else 0, text.count("malloc:") + text.count("malloc(realloc):"))
    text = exported(assemble("kitchen"), "memory_tracker")[0].decode()
    check("malloc: 0x1000 0x64 " in text and "free(realloc): 0x10000 " in text, text)


@test
def that_samples_are_not_scaled_is_said():
    for words in (("csv",), ("jsonl", "--lifetimes"), ("heaptrack",), ("firefox",), ("memory_tracker",),
                  ("heaplog",), ("perfetto",), ("massif",), ("dhat",), ("parquet", "--table", "allocations")):
        said = exported(sampled(), *words)[1]
        check("totals in it are too low" in said and "estimate the whole" not in said, words, said)
    for words in (("pprof",), ("folded",), ("otlp",)):
        said = exported(sampled(), *words)[1]
        check("estimate the whole" in said and "too low" not in said, words, said)


@test
def a_name_by_which_heaptrack_does_not_know_its_file_is_said():
    for name, wrong in (("app.heaptrack", True), ("app.zst", True), ("app.gz", False), ("/dev/null", False)):
        said = run("export", sampled(), "--format", "heaptrack", "--force", "-o", name).stderr
        check(wrong == (f"try: -o {name}.gz" in said), name, said)


@test
def tracefrags_log_is_what_map_prints():
    path = assemble("space")
    words = ("--process", "700")
    text = exported(path, "tracefrag", *words)[0].decode()
    equal(run("map", path, "--tracefrag", *words).stdout, text)
    check("#4 80000000 4096 3000 4 4 6" in text, text)
    one = exported(path, "tracefrag", *words, "--size", "8392704")[0].decode()
    equal(1, one.count("  #"))
    check("--from" in refused("export", path, "--format", "tracefrag", *words, "--from", "1ms"))


@test
def what_makes_no_sense_is_refused():
    path = assemble("family")
    check("--lifetimes" in refused("export", path, "--format", "pprof", "--lifetimes"))
    check("--process" in refused("export", path, "--format", "heaptrack"))
    check("--layer vm" in refused("export", path, "--format", "csv", "--layer", "vm"))


main()
