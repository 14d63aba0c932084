#!/usr/bin/env python3
# parallel: yes
"""What `tidemark plot` draws, by the data that it gives to gnuplot, and how it refuses."""
import os
import re
import shutil
import struct
import subprocess
import sys
import xml.etree.ElementTree

from libanswer import run
from libtests import main, test


TEXT = r"""
trace tick=100000 command="it's `touch owned` $(touch owned) \"quoted\" ''two''' and '\\''"
process p1 pid=42 exe=/bin/app
thread t1 tid=42 "main"
thread t2 tid=43 "it's @1"
heap h1 p1 "pool's"
stack s1 steady app.c:10 < main app.c:3
stack s2 spike app.c:20 < main app.c:4
stack s3 "odd'name{}_^" app.c:30 < main app.c:5
@0 start p1
@0 rss p1 value=1048576
@0 minor-faults p1 value=50
@1ms t1 malloc s1 0x1000 1000
@200ms mark p1 t1 "it's a `mark`"
@250ms rss p1 value=3145728
@250ms minor-faults p1 value=850
@250ms major-faults p1 value=3
@300ms t1 malloc s2 0x100000 10485760
@300100us t1 free 0x100000
@400ms t2 malloc s3 0x2000 3000
@500ms t2 malloc s3 0x3000 0
@600ms t1 heap-alloc s1 h1 0x4000 512
@700ms t1 heap-free h1 0x4000
@800ms t2 free 0x2000
@1s end p1 exit=0
end duration=1000000000
"""


def trace():
    if not os.path.exists("a.tide"):
        with open("a.txt", "w", encoding="utf-8") as file:
            file.write(TEXT)
        run("dump", "--assemble", "a.txt", "-o", "a.tide")
    return "a.tide"


def plot(kind, *words, name="x.svg", path=None):
    """Draw, and return the data: {curve: [(x, y), …]}."""
    run("plot", path or trace(), kind, "-f", "-o", name, "--keep", *words)
    curves, points = {}, None
    with open(name + ".dat", encoding="utf-8") as file:
        for line in file:
            if line.startswith("# "):
                points = curves.setdefault(line[2:].rstrip("\n"), [])
            elif line.strip():
                points.append(tuple(map(float, line.split())))
    return curves


def highest(points):
    return max(y for _, y in points)


@test
def a_spike_keeps_its_height_however_short_it_is():
    curves = plot("live")
    assert list(curves) == ["heap"], curves.keys()
    assert highest(curves["heap"]) == 1000 + 10485760
    top = [x for x, y in curves["heap"] if y == 1000 + 10485760]
    assert 299e6 <= min(top) and max(top) <= 302e6, (min(top), max(top))
    assert highest(plot("live", "--from", "500ms")["heap"]) == 4000
    blocks = plot("blocks")["heap"]
    assert highest(blocks) == 3


@test
def by_a_key_there_is_a_curve_for_each_value_and_one_for_the_others():
    curves = plot("live", "--by", "function")
    assert list(curves) == ["spike", "odd'name{}_^", "steady"], list(curves)
    assert [highest(c) for c in curves.values()] == [10485760, 3000, 1000]
    curves = plot("live", "--by", "function", "-n", "1")
    assert list(curves) == ["spike", "2 others"], list(curves)
    assert highest(curves["2 others"]) == 4000
    # Of blocks the most are of another one than of bytes: two of 3,000 bytes, one of 10 MiB.
    curves = plot("blocks", "--by", "function", "-n", "1")
    assert list(curves) == ["odd'name{}_^", "2 others"], list(curves)
    assert highest(curves["odd'name{}_^"]) == 2
    assert list(plot("live", "--by", "heap")) == ["malloc", "pool's"]
    assert list(plot("live", "--by", "process")) == ["app 42"]
    assert list(plot("rate", "--by", "thread")) == ["main 42", "it's @1 43"]
    assert list(plot("live", "--by", "stack"))[0] == "spike < main"
    assert list(plot("cumulative", "--thread", "43", "--by", "function")) == ["odd'name{}_^"]


@test
def what_was_allocated_adds_up_to_the_end():
    curve = plot("cumulative")["all"]
    assert curve[0] == (0, 0) and curve[-1] == (1e9, 1000 + 10485760 + 3000), curve[-1]
    assert all(a[1] <= b[1] for a, b in zip(curve, curve[1:]))
    curve = plot("rate")["all"]
    # As drawn: corners of a step line. What is below it is what was allocated.
    area = sum((b[0] - a[0]) / 1e9 * a[1] for a, b in zip(curve, curve[1:]))
    assert abs(area - 10489760) < 2, area


@test
def what_is_to_be_known_of_the_trace_is_said_beside_the_picture_whole():
    with open("sampled.txt", "w", encoding="utf-8") as file:
        file.write(TEXT.replace("trace ", "trace sample=1000 ", 1).replace(
            "end duration=", "end events-lost=7 duration="))
    run("dump", "--force", "--assemble", "sampled.txt", "-o", "sampled.tide")
    done = run("plot", "sampled.tide", "live", "-o", "sampled.svg", "--force")
    told = done.stderr.splitlines()
    assert len(told) == 3 and "blocks of 1 pool" in told[2], told
    assert "7 events were lost" in told[0], told
    assert "is sampled" in told[1] and told[1].endswith("are as they are in it"), told
    with open("sampled.svg", encoding="utf-8") as file:
        assert "the recording is sampled" in file.read()
    assert not run("plot", trace(), "live", "--heap", "malloc", "-o", "whole.svg", "--force").stderr


FALLS_APART = """
trace tick=100000 command="falls apart"
process p pid=7 exe=/bin/x
thread t tid=7
stack s "fill" "x.c":3
@0 start p
@1ms t mmap s 0x100000 1048576 prot=rw flags=private|anonymous
@1ms t mmap s 0x900000 4194304 prot=rw flags=private|anonymous
@2ms t malloc s 0x100010 800000
@3ms t malloc s 0x1e0000 104858
@500ms t free 0x100010
@1s end p exit=0
end duration=1000000000
"""


@test
def what_lives_in_the_heap_is_drawn_beside_what_the_heap_has():
    with open("f.txt", "w", encoding="utf-8") as file:
        file.write(FALLS_APART)
    run("dump", "--assemble", "f.txt", "-o", "f.tide")
    curves = plot("fragmentation", path="f.tide")
    names = list(curves)
    # The other mapping is the program's own: no block is in it.
    assert names[0] == "committed for the heap" and max(y for _, y in curves[names[0]]) == 1048576, names
    assert re.fullmatch(r"live in it, at the least 10 % at 50\d(\.\d+)? ms", names[1]), names
    assert max(y for _, y in curves[names[1]]) == 904858
    assert {y for x, y in curves[names[1]] if 510e6 < x < 990e6} == {104858}


@test
def resident_memory_is_drawn_as_it_was_sampled():
    curves = plot("rss")
    assert list(curves) == ["resident", "live in the heap"], list(curves)
    resident = curves["resident"]
    assert (0, 1048576) in resident and (250e6, 3145728) in resident, resident
    assert resident[-1] == (1e9, 0), resident[-1]


@test
def resident_memory_is_not_0_before_it_was_measured():
    with open("late.txt", "w", encoding="utf-8") as file:
        file.write(TEXT.replace("@0 rss p1 value=1048576\n", "", 1))
    run("dump", "--assemble", "late.txt", "-o", "late.tide")
    resident = plot("rss", path="late.tide")["resident"]
    assert resident[0] == (250e6, 3145728) and resident[-1] == (1e9, 0), resident
    resident = plot("rss", "--from", "300ms", path="late.tide")["resident"]
    assert resident[0] == (300e6, 3145728), resident
    early = run("plot", "late.tide", "rss", "--to", "200ms", "-o", "early.svg", "--force", check=2)
    assert "no samples of resident memory before this window's end" in early.stderr, early.stderr


@test
def a_snapshot_is_drawn_in_its_time_and_behind_the_beginning_of_the_window():
    snapshot = "snapshot p1 reason=growth at={0} began=0 ended=0 page=4096 rss={1} rss-max={1} cost=1\n"
    with open("s.txt", "w", encoding="utf-8") as file:
        file.write(TEXT.replace("@300ms", snapshot.format(280000000, 4 << 20) + "@300ms", 1)
                   .replace("@1s end", snapshot.format(900000000, 5 << 20) + "@1s end", 1))
    run("dump", "--assemble", "s.txt", "-o", "s.tide")
    curves = plot("rss", "--from", "260ms", "--to", "950ms", path="s.tide")
    levels = [(260e6, 3), (280e6, 3), (280e6, 4), (900e6, 4), (900e6, 5), (950e6, 5)]
    assert curves["resident"] == [(at, level << 20) for at, level in levels], curves["resident"]


@test
def page_faults_are_drawn_by_the_second():
    curves = plot("faults")
    assert list(curves) == ["without reading (minor)", "read from a disk (major)"], list(curves)
    for curve, count in zip(curves.values(), (850, 3)):
        area = sum((b[0] - a[0]) / 1e9 * a[1] for a, b in zip(curve, curve[1:]))
        assert abs(area - count) < 1, (area, count)
    # Samples come ten times a second: what is told later came about in the last tenth.
    minor = list(curves.values())[0]
    assert abs(dict(minor)[200e6] - 8000) < 1 and dict(minor)[100e6] < 1, minor
    assert list(plot("faults", "--from", "500ms").values())[0][-1] == (1e9, 0)


@test
def sizes_and_lifetimes_count_every_allocation():
    cells = list(plot("sizes").values())[0]
    assert sum(cell[4] for cell in cells) == 4, cells
    assert any(low == 0.5 and high == 1 for low, high, *_ in cells), "a size of 0 has no place"
    cells = list(plot("lifetimes").values())[0]
    assert sum(cell[4] for cell in cells) == 4, cells
    script = open("x.svg.gnuplot", encoding="utf-8").read()
    assert "'not freed'" in script
    outline = plot("sizes", "--by", "function")
    assert highest(outline["spike"]) == 1, outline["spike"]


@test
def every_kind_and_every_form_is_a_picture():
    for kind in ("live", "blocks", "cumulative", "rate", "rss", "sizes", "lifetimes"):
        run("plot", trace(), kind, "-o", kind + ".svg")
        root = xml.etree.ElementTree.parse(kind + ".svg").getroot()
        assert root.tag.endswith("svg") and root.get("width") == "1200", root.attrib
        assert not os.path.exists(kind + ".svg.dat")
    run("plot", trace(), "live", "-o", "a.png", "--picture", "640x400")
    with open("a.png", "rb") as file:
        head = file.read(24)
    assert head[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">II", head[16:]) == (640, 400)
    run("plot", trace(), "live", "-o", "a.PDF")
    with open("a.PDF", "rb") as file:
        assert file.read(5) == b"%PDF-"
    left = [name for name in os.listdir(".") if name.endswith(".tmp")]
    assert not left, left


@test
def names_out_of_a_trace_are_only_names():
    plot("live", "--by", "function")
    text = "".join(xml.etree.ElementTree.parse("x.svg").getroot().itertext())
    assert "odd'name{}_^" in text and "it's a `mark`" in text and "$(touch owned)" in text, text
    assert "''two''' and '\\''" in text, text
    plot("cumulative", name="it's `touch owned` {}.svg")
    plot("cumulative", name="''two''' quotes'\\''.svg")
    assert os.path.exists("it's `touch owned` {}.svg")
    assert not os.path.exists("owned")


@test
def a_kept_script_draws_the_same_again():
    plot("live", "--by", "function")
    with open("x.svg", "rb") as file:
        before = file.read()
    os.remove("x.svg")
    subprocess.run(["gnuplot", "x.svg.gnuplot"], check=True)
    with open("x.svg", "rb") as file:
        assert file.read() == before


@test
def mistakes_are_told_in_one_line():
    cases = [
        (2, ["plot", trace(), "liv", "-o", "n.svg"], "did you mean 'live'"),
        (2, ["plot", trace(), "-o", "n.svg"], "needs a kind of picture (live, "),
        (2, ["plot", trace(), "live"], "-o FILE"),
        (2, ["plot", trace(), "live", "-o", "n.gif"], ".svg, .png or .pdf"),
        (2, ["plot", trace(), "live", "-o", "n.svg", "--by", "functio"], "'function'"),
        (2, ["plot", trace(), "rss", "-o", "n.svg", "--by", "heap"], "by a key"),
        (2, ["plot", trace(), "live", "-o", "n.svg", "--picture", "5x5"], "--picture"),
        (2, ["plot", trace(), "live", "-o", "n.svg", "--from", "50%", "--to", "50%"], "window"),
        (2, ["plot", trace(), "largest-free", "-o", "n.svg"], "virtual memory"),
        (2, ["plot", trace(), "fragmentation", "-o", "n.svg"], "virtual memory"),
        (2, ["plot", trace(), "sizes", "-o", "n.svg", "--from", "900ms"], "nothing"),
        (2, ["plot", trace(), "live", "-o", "a.txt.svg", "--from", "mark:no"], "mark"),
        (3, ["plot", trace(), "live", "-o", "no/n.svg"], "cannot write no/n.svg"),
        (3, ["plot", "none.tide", "live", "-o", "n.svg"], "none.tide"),
        (2, ["plot", trace(), "live", "-o", "n.svg", "--memory", "lots"], "--memory needs a size"),
    ]
    for code, words, said in cases:
        done = run(*words, check=code)
        assert said in done.stderr and done.stderr.count("\n") == 1, (words, done.stderr)
        assert not os.path.exists("n.svg"), words
    run("plot", trace(), "live", "-o", "twice.svg")
    assert "--force" in run("plot", trace(), "live", "-o", "twice.svg", check=3).stderr
    run("plot", trace(), "live", "-o", "twice.svg", "--force")
    os.makedirs("bin/gnuplot")
    for path in "/nowhere", os.path.abspath("bin"):
        done = run("plot", trace(), "live", "-o", "n.svg", check=3, env={"PATH": path})
        assert re.search("gnuplot, .*apt install gnuplot-nox", done.stderr), done.stderr


if not shutil.which("gnuplot"):
    print("needs gnuplot")
    sys.exit(77)
main()
