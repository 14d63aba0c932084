#!/usr/bin/env python3
# parallel: yes
"""`tidemark import` of Valgrind's and others' reports: massif, DHAT, leaks."""
import os
import shutil
import subprocess

from libanswer import TIDEMARK, answer, refused, run
from libtests import Skip, main, test

PROGRAM = r"""
#include <stdlib.h>
__attribute__((noinline)) static void *make(int size) { return malloc(size); }
__attribute__((noinline)) static void drop(int count)
{
	for (int i = 0; i < count; i++)
		*(volatile char *)make(24) = 1;
}
int main(void)
{
	drop(5);
	free(make(100000));
	*(volatile char *)make(7000) = 1;
	return 0;
}
"""
LEFT = {("make", "drop", "main"): (5, 120), ("make", "main"): (1, 7000)}


def text(name, content):
    with open(name, "w") as file:
        file.write(content)
    return name


def build(name, *options):
    subprocess.run(["gcc", "-g", "-O0", *options, "-o", name, text("app.c", PROGRAM)], check=True)
    return os.path.abspath(name)


def valgrind(*words):
    if not shutil.which("valgrind"):
        raise Skip("valgrind is not installed")
    subprocess.run(["valgrind", *words, build("app")], check=True, capture_output=True)


def imported(name):
    run("import", name, "-o", name + ".tide")
    return name + ".tide"


def ours(path, *words):
    """What lives, by the functions of the program's own, innermost first."""
    found = {}
    for row in answer("window", path, "--by", "stack", "--all-frames", *words)["rows"]:
        stack = tuple(frame["function"] for frame in row["keys"]["stack"]
                      if (frame["file"] or "").endswith("app.c"))
        if row["impacting_size"]:
            count = row["allocated_count"] - row["freed_count"]
            found[stack] = (count, row["impacting_size"])
    return found


def warned(path):
    return " ".join(answer("window", path)["warnings"])


@test
def leaks_that_the_sanitizer_finds_are_read():
    path = build("leaking", "-fsanitize=leak")
    with open("lsan.txt", "w") as out:
        subprocess.run([path], stderr=out, check=False)
    assert ours(imported("lsan.txt")) == LEFT, ours("lsan.txt.tide")
    assert "not freed at the end" in warned("lsan.txt.tide")


@test
def leaks_that_memcheck_finds_are_read():
    valgrind("--leak-check=full", "--log-file=memcheck.txt")
    assert ours(imported("memcheck.txt")) == LEFT, ours("memcheck.txt.tide")
    row = answer("window", "memcheck.txt.tide", "--by", "stack")["rows"][0]
    assert any(frame["line"] == 3 for frame in row["keys"]["stack"]), row


LOSES = r"""
#include <stdlib.h>
struct node { struct node *next; char data[1000]; };
__attribute__((noinline)) static struct node *chain(int count)
{
	struct node *first = NULL;
	for (int i = 0; i < count; i++) {
		struct node *one = calloc(1, sizeof *one);
		one->next = first;
		first = one;
	}
	return first;
}
__attribute__((noinline)) static void lose(int count)
{
	struct node *volatile head = calloc(1, sizeof *head);
	head->next = chain(count);
	head = NULL;
}
char *volatile kept, *volatile inside;
__attribute__((noinline)) static void clear(void) { volatile char stack[8192] = { 0 }; (void)stack; }
int main(void)
{
	for (int i = 0; i < 30; i++)
		lose(10);
	clear();
	kept = malloc(5000);
	inside = (char *)malloc(7000) + 100;
	return 0;
}
"""


def lost_of(path):
    """The findings of a loss: (blocks, bytes) by function; and what `report` says is unreachable."""
    found = {next(frame["function"] for frame in one["stack"] if "alloc" not in frame["function"]):
             (one["figures"]["count"], one["figures"]["bytes"])
             for one in answer("findings", path)["findings"] if one["kind"] == "unreachable"}
    reached = answer("report", path)["heap"]["reachability"]
    lost = [reached[state] for state in ("unreachable", "held", "inside", "reachable")]
    return found, [one["bytes"] for one in lost]


@test
def what_memcheck_says_is_lost_is_a_finding():
    subprocess.run(["gcc", "-g", "-O0", "-o", "loses", text("loses.c", LOSES)], check=True)
    for number, words in enumerate((["--show-leak-kinds=all"], [])):
        if not shutil.which("valgrind"):
            raise Skip("valgrind is not installed")
        subprocess.run(["valgrind", "--leak-check=full", f"--log-file=loses{number}.txt", *words, "./loses"], check=True,
                       capture_output=True)
        said = run("import", f"loses{number}.txt", "-o", f"loses{number}.tide").stderr
        assert ("--show-leak-kinds=all" in said) == (number == 1), said
        found, lost = lost_of(f"loses{number}.tide")
        held = "chain" if number == 0 else "[indirectly lost, of stacks that memcheck did not show]"
        assert found == {"lose": (30, 30240), held: (300 if number == 0 else 1, 302400)}, found
        assert lost == [30240, 302400, 7000, 5000 if number == 0 else 0], lost
        run("check", f"loses{number}.tide", "--max-unreachable", "332640")
        run("check", f"loses{number}.tide", "--max-unreachable", "332639", check=1)
        assert answer("report", f"loses{number}.tide")["trace"]["command"] == "./loses"


def check_of(pid, *lost, end="LEAK SUMMARY:\n==PID==    definitely lost: 0 bytes in 0 blocks"):
    """A leak check as memcheck prints it: (bytes, function) are lost."""
    lines = [line for number, (size, function) in enumerate(lost, 1) for line in
             (f"{size} bytes in 1 blocks are definitely lost in loss record {number} of {len(lost)}",
              "   at 0x4846828: malloc (vg_replace_malloc.c:442)", f"   by 0x109156: {function} (app.c:5)", "")]
    return "".join(f"==PID== {line}\n" for line in [*lines, end, ""]).replace("PID", str(pid))


CHECKED = "==7== Memcheck, a memory error detector\n==7== Command: ./app\n"


@test
def of_several_leak_checks_the_last_of_each_process_counts():
    rerun = "LEAK SUMMARY:\n==PID==    definitely lost: 9 bytes in 1 blocks\n==PID== Rerun with --leak-check=full"
    added = "LEAK SUMMARY:\n==PID==    definitely lost: 9 (+9) bytes in 1 (+1) blocks"
    freed = "All heap blocks were freed -- no leaks are possible"
    first, second = check_of(7, (10, "f")), check_of(7, (10, "f"), (20, "g"))
    for name, checks, sums, said in (
            ("one", [first], {"f": 10}, None),
            ("three", [first, second, second], {"f": 10, "g": 20}, "3 leak checks of 1 process:"),
            ("less", [second, first], {"f": 10}, "2 leak checks of 1 process:"),
            ("two", [second, check_of(8, (40, "f"))], {"f": 50, "g": 20}, "2 leak checks of 2 processes:"),
            ("both", [first, check_of(8, (1, "h")), second, check_of(8, (2, "h"))],
             {"f": 10, "g": 20, "h": 2}, "4 leak checks of 2 processes:"),
            ("clean", [second, check_of(8, (1, "h")), check_of(7)], {"h": 1}, "3 leak checks of 2 processes:"),
            ("freed", [second, check_of(8, (1, "h")), check_of(7, end=freed)], {"h": 1}, "3 leak checks of 2 processes:"),
            ("totals", [second, check_of(7, end=rerun)], {"f": 10, "g": 20}, None),
            ("more", [second, check_of(7, ("9 (+9)", "g"), end=added).replace("1 blocks", "1 (+1) blocks")],
             {"f": 10, "g": 20}, "1 loss records tell what has changed")):
        done = run("import", text(f"{name}.txt", CHECKED + "".join(checks)), "-o", f"{name}.tide").stderr
        assert ("leak checks of" in done or "loss records" in done) == bool(said) and (said or "") in done, (name, done)
        found = {row["keys"]["stack"][1]["function"]: row["impacting_size"]
                 for row in answer("window", f"{name}.tide", "--by", "stack")["rows"] if row["impacting_size"]}
        assert found == sums, (name, found)


@test
def direct_and_indirect_leaks_of_the_sanitizer_are_findings():
    subprocess.run(["gcc", "-g", "-O0", "-fsanitize=leak", "-o", "loses", text("loses.c", LOSES)], check=True)
    with open("lost.txt", "w") as out:
        subprocess.run(["./loses"], stderr=out, check=False)
    found, lost = lost_of(imported("lost.txt"))
    assert found == {"lose": (30, 30240), "chain": (300, 302400)}, found
    assert lost == [30240, 302400, 0, 0], lost


@test
def snapshots_of_massif_are_read():
    valgrind("--tool=massif", "--detailed-freq=1", "--massif-out-file=massif.out")
    found = {stack: size for stack, (_, size) in ours(imported("massif.out")).items()}
    assert found == {stack: size for stack, (_, size) in LEFT.items()}, found
    assert answer("report", "massif.out.tide")["heap"]["peak_bytes"] >= 100120
    valgrind("--tool=massif", "--detailed-freq=100", "--massif-out-file=few.out")
    assert "have no tree and are left out" in run("import", "few.out", "-o", "few.tide").stderr


MASSIF = """desc: (none)
cmd: ./app
time_unit: ms
""" + "".join(f"""#-----------
snapshot={number}
#-----------
time={time}
mem_heap_B={size}
mem_heap_extra_B=0
mem_stacks_B=0
heap_tree={tree}
""" for number, time, size, tree in (
    (0, 0, 0, "empty"),
    (1, 500, 12000, "peak\nn1: 12000 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.\n"
     " n0: 12000 0x1234: main (app.c:12)"),
    (2, 600, 9000, "empty"),
    (3, 900, 700, "empty")))


@test
def what_lives_at_the_end_of_massif_is_the_last_snapshot():
    said = run("import", text("end.out", MASSIF), "-o", "end.tide").stderr
    assert "2 of 3 snapshots have no tree" in said and "the last" in said, said
    report = answer("report", "end.tide")
    assert report["heap"]["live_at_exit"] == {"count": 1, "bytes": 700}, report["heap"]
    assert report["heap"]["peak_bytes"] == 12000 and report["heap"]["temporary"] is None, report["heap"]
    row, = report["sites"]["live_at_exit"]
    assert "has no tree" in row["stack"][0]["function"], row
    assert answer("window", "end.tide", "--to", "mark:snapshot 1 (peak)")["total"]["impacting_size"] == 12000
    assert answer("report", "end.tide")["trace"]["duration_ns"] == 900_000_000
    page = run("report", "end.tide").stdout
    assert "temporary       not known:" in page and "of the snapshots" in page, page
    # Nothing lives at the end of a file whose last snapshot has 0 bytes.
    run("import", text("none.out", MASSIF.replace("mem_heap_B=700", "mem_heap_B=0")), "-o", "none.tide")
    assert answer("report", "none.tide")["heap"]["live_at_exit"]["bytes"] == 0
    # With a tree in the last snapshot there is nothing to say.
    whole = MASSIF[:MASSIF.index("#-----------\nsnapshot=2")]
    assert answer("report", imported(text("whole.out", whole)))["heap"]["live_at_exit"]["bytes"] == 12000


@test
def dhats_peak_and_end_are_read():
    valgrind("--tool=dhat", "--dhat-out-file=dhat.json")
    assert ours(imported("dhat.json")) == LEFT, ours("dhat.json.tide")
    assert ours("dhat.json.tide", "--to", "mark:peak") == {("make", "drop", "main"): (5, 120),
                                                           ("make", "main"): (1, 100000)}
    # What of the file is not in the trace is said.
    assert "totals, lifetimes" in run("import", "dhat.json", "-o", "again.tide").stderr
    assert answer("report", "again.tide")["heap"]["temporary"] is None
    assert "damaged, or cut" in refused("import", text("bad", '{"dhatFileVersion":2,"pps":[{"gb":1'), "-o",
                                        "x.tide", code=3)


@test
def what_we_write_for_valgrinds_viewers_comes_back():
    subprocess.run([TIDEMARK, "record", "-o", "app.tide", build("app")], check=True,
                   stderr=subprocess.DEVNULL)
    heap = answer("report", "app.tide")["heap"]
    for name in ("massif", "dhat"):
        run("export", "app.tide", "--format", name, "-o", name)
        again = answer("report", imported(name))["heap"]
        assert heap["peak_bytes"] == again["peak_bytes"], (name, heap, again)
        left = "bytes" if name == "massif" else "count"  # massif's last snapshot has no tree
        assert heap["live_at_exit"][left] == again["live_at_exit"][left], (heap, again)


MEMLEAK = """Attaching to pid 4242, Ctrl+C to quit.
[12:00:05] Top 2 stacks with outstanding allocations:
\t320 bytes in 10 allocations from stack
\t\tmake+0x1a [app]
\t\tmain+0x30 [app]
\t64 bytes in 1 allocations from stack
\t\t0x00007f00deadbeef\t[unknown] [libx.so.1]
[12:00:10] Top 2 stacks with outstanding allocations:
\taddr = 558e9bf3cff0 size = 32
\t640 bytes in 20 allocations from stack
\t\t0x000055d0c0ffee00\tmake+0x1a [app]
\t\t0x000055d0c0ffee10\tmain+0x30 [app]
\t\t0x00007f6347bd1c6c\t[unknown]
"""


@test
def memleaks_reports_are_a_series():
    said = run("import", text("memleak", MEMLEAK), "-o", "memleak.tide").stderr
    assert "largest stacks alone" in said, said
    total = answer("window", "memleak.tide", "--from", "mark:12:00:05", "--to", "mark:12:00:10")["total"]
    assert total["impacting_size"] == 640 - 320 - 64, total
    rows = answer("window", "memleak.tide", "--by", "stack")["rows"]
    names = [[frame["function"] for frame in row["keys"]["stack"]] for row in rows]
    assert sorted(names) == [["libx.so.1 0x7f00deadbeef"], ["make", "main"],
                             ["make", "main", "? 0x7f6347bd1c6c"]], names


main()
