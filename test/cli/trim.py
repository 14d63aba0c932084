#!/usr/bin/env python3
# parallel: yes
"""`tidemark trim`: the trace of a window answers about the window as the whole trace does."""
import os
import subprocess

from libanswer import TIDEMARK, answer, assemble, refused, run
from libtests import main, test

CODE = """
import threading
kept = [str(i) * 20 for i in range(2000)]
def work():
    for i in range(100):
        grown = bytearray(10)
        for _ in range(40):
            grown += b"x" * 100
        kept[i] = str(grown)
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
del kept[500:1500]
"""


def record():
    if not os.path.exists("whole.tide"):
        with open("code.py", "w") as file:
            file.write(CODE)
        subprocess.run([TIDEMARK, "record", "-o", "whole.tide", "--", "/bin/sh", "-c",
                        "/usr/bin/python3 -S code.py; exit 0"], stderr=subprocess.DEVNULL,
                       check=True, env={**os.environ, "PYTHONMALLOC": "malloc"})
    return "whole.tide"


def rows(path, by, *words):
    """All that a window says, but for the order of equal rows."""
    return sorted(run("window", path, "--by", by, "-n", "0", "--csv", *words).stdout.split("\n"))


@test
def a_window_of_the_part_is_that_of_the_whole():
    for path in (record(), assemble("crowd")):
        for edges in (("20%", "70%"), ("peak", "end")):
            words = ("--from", edges[0], "--to", edges[1])
            run("trim", path, *words, "-o", "part.tide", "--force")
            for by in ("process,type,stack", "thread,size"):
                expected, found = rows(path, by, *words), rows("part.tide", by)
                assert found == expected, (path, edges, by, found, expected)
            # The peak of another layer is another moment.
            if "peak" not in words:
                assert rows("part.tide", "type", "--layer", "vm") == \
                    rows(path, "type", "--layer", "vm", *words), edges


@test
def report_counts_what_was_before_apart():
    whole = record()
    run("trim", whole, "--from", "40%", "--to", "80%", "-o", "middle.tide")
    heap = answer("report", "middle.tide")["heap"]
    window = {row["keys"]["type"]: row for row in
              answer("window", whole, "--by", "type", "--from", "40%", "--to", "80%")["rows"]}
    assert heap["before"]["count"] + heap["allocations"] == \
        heap["frees"] + heap["lost_frees"] + heap["live_at_exit"]["count"], heap
    assert heap["allocations"] == sum(window[name]["allocated_count"] for name in ("AIFI", "AIFO")
                                      if name in window), (heap, window)
    assert heap["orphan_frees"] == answer("report", whole)["heap"]["orphan_frees"]
    said = run("report", "middle.tide")
    assert "trimmed to what came after" in said.stdout + said.stderr
    assert answer("report", whole)["heap"]["before"]["count"] == 0


@test
def what_was_mapped_before_a_part_is_in_levels_alone():
    with open("vm.txt", "w", encoding="ascii") as file:
        file.write('process p pid=1\nthread t p\n@1ms t mmap 0x90000000 104857600 prot=rw flags=private|anonymous\n'
                   "@2ms t munmap 0x90000000 62914560\n@3ms t malloc 0x10 500\n@2s t malloc 0x1010 500\n"
                   "@3s t mmap 0xA0000000 4096 prot=rw flags=private|anonymous\n@4s t munmap 0xA0000000 4096\n"
                   "@5s t free 0x10\nend\n")
    run("dump", "-a", "vm.txt", "-o", "vm.tide")
    for begin, peak, calls in (("1s", 41947136, 2), ("3500ms", 41947136, 1), ("4500ms", 41943040, 0)):
        run("trim", "vm.tide", "--from", begin, "-o", f"{begin}.tide")
        vm = answer("report", f"{begin}.tide")["vm"]
        assert (vm["peak_bytes"], sum(each["count"] for each in vm["calls"].values())) == (peak, calls), (begin, vm)


@test
def a_part_of_a_part_is_a_part():
    whole = record()
    # What lived when a process ended counts ever after in the whole trace alone.
    python = answer("info", whole)["processes"][-1]
    begin, length = python["began_ns"], python["ended_ns"] - python["began_ns"]
    middle = f"{begin + length * 3 // 5}ns"
    run("trim", whole, "--from", f"{begin + length // 5}ns", "-o", "tail.tide")
    run("trim", "tail.tide", "--from", middle, "-o", "half.tide")
    assert rows("half.tide", "type,stack") == rows(whole, "type,stack", "--from", middle)
    # Moments are those of the whole; what is before the part is refused.
    assert "trimmed" in refused("window", "half.tide", "--from", "1ns", code=2)
    assert run("dump", "--items", "half.tide").stdout.count('"trimmed"') == 1


@test
def what_makes_no_sense_is_refused():
    whole = record()
    assert "-o OUT" in refused("trim", whole, code=2)
    assert "after --to" in refused("trim", whole, "--from", "80%", "--to", "10%", "-o", "x.tide",
                                   code=2)
    run("trim", whole, "--from", "50%", "-o", "late.tide")
    assert "merge whole traces, then trim" in refused("merge", "late.tide", whole, "-o", "x.tide", code=3)
    assert not os.path.exists("x.tide")


main()
