#!/usr/bin/env python3
# parallel: yes
"""`tidemark export --format heaplog`: the layout of docs/heaplog.md, and the same figures as a window."""
import gzip
import json
import os
import re
import struct

from libanswer import SOURCE, assemble, run
from libtests import main, test


def records_of_docs():
    """The few lines of Python that docs/heaplog.md shows."""
    with open(os.path.join(SOURCE, "docs", "heaplog.md"), encoding="utf-8") as file:
        code = re.search(r"```python\n(.*?)```", file.read(), re.S)[1]
    scope = {}
    exec(code, scope)  # pylint: disable=exec-used
    return scope["records"]


def export(path, *words):
    run("export", path, "--format", "heaplog", "-o", "out.heaplog", "--force", *words)
    return list(records_of_docs()("out.heaplog"))


def figures(records):
    """Blocks begun, their bytes, blocks ended, and what lives at the end."""
    live = {}
    begun = size = ended = 0
    for what, heap, _time, address, bytes_ in records:
        if what == "begin":
            live[heap, address] = bytes_
            begun += 1
            size += bytes_
        else:
            live.pop((heap, address), None)
            ended += 1
    return begun, size, ended, len(live), sum(live.values())


def window(path, *words):
    total = json.loads(run("window", path, "--json", *words).stdout)["total"]
    return (total["count"], total["allocated"], total["freed_count"], None, total["impacting_size"])


def same(path, *words, orphans=0):
    found, expected = figures(export(path, *words)), window(path, *words)
    assert found[0] == expected[0], (path, words, found, expected)
    assert found[1] == expected[1], (path, words, found, expected)
    assert found[2] - orphans <= expected[2] <= found[2], (path, words, found, expected)
    assert found[4] == expected[4], (path, words, found, expected)


@test
def the_figures_are_those_of_a_window():
    path = assemble("crowd")
    same(path)
    same(path, "--size", "..100")
    same(path, "--frame", "w.*")


@test
def every_record_has_its_layout():
    export(assemble("crowd"))
    with open("out.heaplog", "rb") as file:
        data = file.read()
    magic, version, header, _pid, bits, _began = struct.unpack_from("<4sHHIIQ", data)
    assert (magic, version, bits) == (b"TMHL", 1, 64), data[:32]
    begun, _size, ended, _live, _bytes = figures(export(assemble("crowd")))
    assert len(data) == header + 17 * begun + 13 * ended, len(data)


@test
def times_and_addresses_are_those_of_the_trace():
    path = assemble("crowd")
    said = []
    for line in run("dump", "--items", path).stdout.splitlines():
        found = re.match(r"@(\d+) t\d+ (malloc|calloc|free) (?:s\d+ )?0x(\w+)", line)
        if found:
            said.append(("end" if found[2] == "free" else "begin",
                         int(found[1]) // 100000, int(found[3], 16)))
    found = [(what, round(time * 1e4), address)
             for what, _heap, time, address, _size in export(path)]
    assert said and [each for each in found if each in set(said)] == said, (said[:9], found[:9])


@test
def reallocs_resets_and_failures_are_as_the_page_says():
    with open("odd.txt", "w", encoding="utf-8") as file:
        file.write("""
process p pid=7 exe="/odd"
thread t p tid=7
thread u p tid=8
heap pool p "pool"
+100us t malloc 0x1000 10
+100us t realloc 0x1000 -> 0x2000 20
+100us t realloc-free 0x2000
+0us   u malloc 0x3000 30
+100us t realloc-undo 0x2000 99
+100us t realloc-free 0x2000
+0us   u malloc 0x2000 5
+100us t realloc-alloc 0x4000 40
+100us t heap-alloc pool 0x5000 50
+0us   t heap-alloc pool 0x6000 60
+100us t heap-reset pool
+100us t failed 70
+0us   u free 0x9000
+1ms   end p exit=0
end
""")
    run("dump", "--assemble", "odd.txt", "-o", "odd.tide")
    found = [(what, heap, address, size) for what, heap, _time, address, size in export("odd.tide")]
    resets = {("end", 1, 0x5000, None), ("end", 1, 0x6000, None)}
    assert set(found[9:11]) == resets, found
    assert found[:9] + found[11:] == [
        ("begin", 0, 0x1000, 10), ("end", 0, 0x1000, None), ("begin", 0, 0x2000, 20),
        ("begin", 0, 0x3000, 30), ("end", 0, 0x2000, None), ("begin", 0, 0x2000, 5),
        ("begin", 0, 0x4000, 40), ("begin", 1, 0x5000, 50), ("begin", 1, 0x6000, 60),
        ("end", 0, 0x9000, None)], found


@test
def several_processes_are_refused_and_one_is_chosen():
    path = assemble("family")
    done = run("export", path, "--format", "heaplog", "-o", "none.heaplog", check=2)
    assert "--process" in done.stderr and not os.path.exists("none.heaplog"), done
    first = json.loads(run("info", "--json", path).stdout)["processes"][0]["pid"]
    assert export(path, "--process", str(first)) is not None


@test
def addresses_are_those_of_the_process_that_is_exported():
    """A frame stands for a place in a file: its own address is that of the first process that had it."""
    path = assemble("places", """trace command="./app"
process p pid=42 exe="/bin/app"
process q pid=43 exe="/bin/app" parent=p start=exec
process r pid=44 exe="/bin/app" parent=q start=fork
thread t p tid=42
thread u q tid=43
thread v r tid=44
module a p 0x400000-0x500000 "/bin/app" bias=0x400000
module b q 0x7f0000400000-0x7f0000500000 "/bin/app" bias=0x7f0000400000
frame leaf a 0x401234
stack s leaf
@1000 t malloc s 0x1000 100
@2000 u malloc s 0x2000 200
@2500 v malloc s 0x3000 300
@3000 u mmap s 0x10000000 0x4000 prot=rw flags=private|anonymous
end duration=10000
""")

    def written(form, *words):
        run("export", path, "--format", form, "--force", "-o", "out.gz", *words)
        with open("out.gz", "rb") as file:
            data = file.read()
        return (gzip.decompress(data) if form == "heaptrack" else data).decode().lower()
    for form in ("dhat", "massif", "memory_tracker", "heaptrack"):
        for pid, wanted in ((42, "401234"), (43, "7f0000401234"), (44, "7f0000401234")):
            found = set(re.findall(r"\b(?:0x)?([0-9a-f]*401234)\b", written(form, "--process", str(pid))))
            assert found == {wanted}, (form, pid, found)
    assert "0x401234" in written("dhat"), "of several the first one's"
    shown = run("map", path, "--process", "43", "--tracefrag").stdout
    assert " 7f0000401234 " in shown and " 401234 " not in shown, shown


@test
def the_name_of_the_output_says_the_format():
    path = assemble("crowd")
    for ending, name in ((".pb.gz", "pprof"), (".speedscope.json", "speedscope"), (".folded", "folded"),
                         (".svg", "flamegraph"), (".csv", "csv"), (".jsonl", "jsonl"), (".heaplog", "heaplog")):
        run("export", path, "-o", f"by-name{ending}", "--force")
        run("export", path, "-o", "by-option", "--force", "--format", name)
        with open(f"by-name{ending}", "rb") as one, open("by-option", "rb") as other:
            assert one.read() == other.read(), name
    said = run("export", path, "-o", "app.json", check=2).stderr
    assert "needs --format NAME: pprof, otlp, " in said and said.count("\n") == 1, said


@test
def mistakes_are_told():
    path = assemble("crowd")
    run("export", path, "-o", "x", check=2)
    assert "heaplog" in run("export", path, "--format", "excel", "-o", "x", check=2).stderr
    with open("taken", "w", encoding="utf-8") as file:
        file.write("here")
    run("export", path, "--format", "heaplog", "-o", "taken", check=3)
    run("export", "none.tide", "--format", "heaplog", "-o", "x", check=3)
    assert not os.path.exists("x")


main()
