#!/usr/bin/env python3
# parallel: yes
"""`tidemark import`: recordings of other programs answer as those that tidemark made."""
import gzip
import json
import os
import re
import shutil
import subprocess

from libanswer import BUILD, SOURCE, TIDEMARK, answer, refused, run
from libtests import Skip, main, test

LOG = """time_ns,op,address,size,old_address,thread,process,stack
0,malloc,0x1000,100,,11,7,main;work
1000000,malloc,0x2000,50,,11,7,main;work
2000000,free,0x1000,,,12,7,main;done (end.c:9)
3000000,realloc,0x3000,70,0x2000,11,7,"main;grow(int, char)"
4000000,realloc,0,99,0x3000,11,7,main
5000000,malloc,0,12345,,11,7,main
6000000,free,0,,,11,7,main
7000000,calloc,0x4000,10,,11,7,main;work
"""


def write(name, text, mode="w"):
    with open(name, mode, **({} if "b" in mode else {"encoding": "utf-8"})) as file:
        file.write(text)
    return name


def imported(name, content, *words):
    """The trace of that content."""
    path = write(name, content, "wb" if isinstance(content, bytes) else "w")
    run("import", path, "-o", name + ".tide", "--force", *words)
    return name + ".tide"


def heap(path):
    return answer("report", path)["heap"]


def warnings(command, path):
    found = answer(command, path)
    return (found.get("trace") or found)["warnings"] if command != "growth" else \
        run(command, path, "--json").stdout.splitlines()


def items(path):
    return run("dump", "--items", path).stdout


def check_log(path):
    found = heap(path)
    assert found["allocations"] == 4 and found["frees"] == 2, found
    assert found["allocated_bytes"] == 230 and found["peak_bytes"] == 150, found
    assert found["failed"] == 2 and found["reallocations"] == 1, found
    rows = answer("window", path, "--by", "stack")["rows"]
    assert sum(row["count"] for row in rows) == 4, rows
    text = run("dump", path).stdout
    assert '"grow(int, char)"' in text and '"done" "end.c":9' in text, text
    assert "pid=7" in text and "tid=12" in text, text


@test
def a_table_with_a_header_is_a_trace():
    check_log(imported("log.csv", LOG))


@test
def separators_marks_comments_and_line_ends_do_not_matter():
    text = LOG.replace("main;", "main:").replace(",", ";").replace("main:", "main ").replace('"', "")
    found = heap(imported("semicolon.csv", "\ufeff# a log\n" + text.replace("\n", "\r\n")
                          .replace("grow(int; char)", "grow")))
    assert found["allocations"] == 4 and found["peak_bytes"] == 150, found


def as_jsonl():
    rows = [line.split(",", 7) for line in LOG.splitlines()]
    out = []
    for row in rows[1:]:
        one = {key: value for key, value in zip(rows[0], row) if value}
        one["size"] = int(one.get("size", 0))
        one["stack"] = one["stack"].strip('"').split(";")
        out.append(json.dumps(one) + "\n")
    return "".join(out)


@test
def objects_a_line_say_the_same():
    check_log(imported("log.jsonl", as_jsonl()))
    check_log(imported("spaced.jsonl", as_jsonl().replace('": ', '" :  ').replace('main"', '\\u006dain"')
                       .replace("{", '{ "more": {"a": [1, "}"]}, "none": null, ')))


@test
def a_nul_in_a_text_cuts_nothing_off():
    path = imported("nul.jsonl", '{"op":"malloc","address":16,"size":8,"stack":["a\\u0000b"],"more":"\\u0000"}\n')
    assert r'"a\xef\xbf\xbdb"' in run("dump", path).stdout, run("dump", path).stdout


@test
def packed_input_and_pipes_are_read():
    check_log(imported("log.gz", gzip.compress(LOG.encode()[:100]) + gzip.compress(LOG.encode()[100:])))
    with open("log.gz", "rb") as file:
        subprocess.run([TIDEMARK, "import", "-", "-o", "piped.tide"], stdin=file, check=True,
                       stdout=subprocess.DEVNULL)
    check_log("piped.tide")


@test
def units_of_time_are_those_of_the_header():
    for name, second in (("time_ns", "1000000000"), ("time_us", "1000000"), ("time_ms", "1000.000"),
                         ("time_s", "1"), ("time", "1.0"), ("time", "1000000000")):
        path = imported("unit.csv", f"{name},op,address,size\n{second},malloc,16,8\n")
        assert "@1000000000 " in items(path), (name, second, items(path))
    path = imported("clock.csv", "time,op,address,size\n1700000000.25,malloc,16,8\n"
                                 "1700000000.75,free,16,\n")
    assert "@500000000 t0 free" in items(path), items(path)
    assert "began=1700000000250000000" in run("dump", path).stdout


@test
def backtraces_are_innermost_first():
    texts = [run("dump", imported("order.csv", f"op,address,size,{name}\nmalloc,16,8,{stack}\n")).stdout
             for name, stack in (("stack", "main;f;g"), ("backtrace", "g;f;main"))]
    drop = [[line for line in text.splitlines() if not line.startswith("trace")] for text in texts]
    stacks = [line for line in drop[0] if line.startswith(("name", "stack"))]
    assert len(stacks) == 6, texts
    names = [{line.split()[1]: line.split()[2] for line in text if line.startswith("name")}
             for text in drop]
    for each, text in zip(names, drop):
        frames = [line.split()[2] for line in text if line.startswith("stack")]
        assert [each[frame] for frame in frames] == ['"main"', '"f"', '"g"'], text


@test
def what_the_source_lacks_is_said_above_every_answer():
    path = imported("bare.csv", "op,address,size\nmalloc,16,8\nfree,16,\n")
    for command in ("report", "window", "transients", "active", "growth"):
        said = " ".join(warnings(command, path))
        assert "imported from csv: times are the order of events alone" in said, (command, said)
        assert "threads are not told apart; there are no stacks" in said, (command, said)
    assert "imported=csv no-clock no-threads no-stacks" in run("info", path).stdout
    assert "an end that is not known" in run("report", path).stdout, "nobody knows whether it still runs"
    whole = " ".join(warnings("report", imported("log.csv", LOG)))
    assert "imported from csv" in whole and "threads" not in whole, whole


@test
def what_is_left_out_is_counted():
    path = write("other.csv", LOG + "8000000,open,0,0,,11,7,\n1,free,0x3000,,,11,7,\n")
    said = run("import", path, "-o", "other.tide").stderr
    assert "1 rows are left out: their op is open" in said, said
    assert "1 times are earlier than the one before" in said, said


@test
def bad_input_is_refused_in_one_line_and_nothing_is_written():
    for text, why in (("", "it is empty"),
                      ("no such thing\n", "its format is not known"),
                      ('<?xml version="1.0"?>\n\n<valgrindoutput>\n\n<protocolversion>4<', "(try: valgrind without --xml=yes)"),
                      ("op,address,size\n", "there is no event"),
                      ("op,address\nmalloc,1\n", 'there is no column "size"'),
                      ("op,address,size\nmalloc,x,1\n", 'line 2: "x" is not a number (address'),
                      ("op,address,size\nmalloc,1\n", "line 2: it has 2 fields, and the header has 3"),
                      ("time,op,address,size\n-1,malloc,1,1\n", 'line 2: "-1" is not a time'),
                      ('op,address,size\n"malloc,1,2\nfree,1,\n', "line 2: a quote is not closed"),
                      ('{"op":"malloc","address":1\n{}\n', "line 1: it is not a JSON object on one line"),
                      ('{"op":"malloc","address":1,"size":8,"stack":["a" "b"]}\n', "line 1: it is not a JSON object on one line")):
        said = refused("import", write("bad", text), "-o", "bad.tide", code=3)
        assert why in said and said.startswith("tidemark import: bad: "), (text, said)
        assert not os.path.exists("bad.tide"), text
    assert "--format" not in refused("import", "none", "-o", "bad.tide", code=3)
    refused("import", "bad", code=2)
    refused("import", "bad", "-o", "x.tide", "--format", "nonesuch", code=2)
    write("there.tide", "mine")
    refused("import", write("log.csv", LOG), "-o", "there.tide", code=3)
    with open("there.tide", encoding="utf-8") as file:
        assert file.read() == "mine"


@test
def input_that_ends_early_counts_as_far_as_it_goes():
    path = write("cut.csv", LOG + "8000000,malloc,0x5000")
    said = run("import", path, "-o", "cut.tide").stderr
    assert "the input ends within line 10" in said, said
    assert "ends early" in " ".join(warnings("window", "cut.tide"))
    write("cut.gz", gzip.compress((LOG * 1)[:-1].encode())[:-12], "wb")
    assert "ends early, after" in run("import", "cut.gz", "-o", "cutz.tide").stderr


# ---- heaptrack ----

PROGRAM = ("/usr/bin/python3", "-S", "-c", "import json; x = [json.dumps([i]) for i in range(2000)]")


def heaptrack(name, *words):
    """What heaptrack records of a program."""
    subprocess.run(["heaptrack", *words, "-o", name, *PROGRAM], check=True, capture_output=True,
                   env={**os.environ, "PYTHONHASHSEED": "0"})
    return next(each for each in os.listdir(".") if each.startswith(name + ".") and
                each.endswith((".zst", ".gz")))


def printed(path, what):
    """heaptrack_print's total, exact: the sum of its flame graph."""
    subprocess.run(["heaptrack_print", "-f", path, "-F", "flame." + what, "--flamegraph-cost-type", what,
                    "--disable-builtin-suppressions", "--disable-embedded-suppressions"],
                   check=True, capture_output=True)
    with open("flame." + what, encoding="utf-8") as file:
        return sum(int(line.rsplit(" ", 1)[1]) for line in file)


@test
def heaptrack_and_its_import_have_the_same_totals():
    if not shutil.which("heaptrack_print"):
        raise Skip("heaptrack is not installed")
    path = heaptrack("whole")
    run("import", path, "-o", "whole.tide")
    found = heap("whole.tide")
    for what, ours in (("allocations", found["allocations"]), ("peak", found["peak_bytes"]),
                       ("leaked", found["live_at_exit"]["bytes"])):
        assert printed(path, what) == ours, (what, printed(path, what), found)
    # tidemark's are those that their thread frees before its next allocation: no fewer.
    assert found["temporary"]["count"] >= printed(path, "temporary") > 0, found
    said = " ".join(warnings("window", "whole.tide"))
    for word in ("from heaptrack", "numbers of blocks", "threads are not", "known to 10.000 ms"):
        assert word in said, (word, said)
    # Its module and address, where the interpreter found no name.
    text = run("dump", "--definitions", "whole.tide").stdout
    assert re.search(r'^name \w+ "(python3\S* 0x|_?Py)', text, re.M), text


@test
def a_raw_recording_of_heaptrack_has_addresses_and_modules():
    if not shutil.which("heaptrack_print"):
        raise Skip("heaptrack is not installed")
    path = heaptrack("raw", "--raw")
    run("import", path, "-o", "raw.tide")
    with open("interpreted", "wb") as out:
        plain = subprocess.run(["zstd", "-dc", path], check=True, capture_output=True).stdout
        subprocess.run(["/usr/lib/heaptrack/libexec/heaptrack_interpret"], input=plain, stdout=out,
                       stderr=subprocess.DEVNULL, check=True)
    found = heap("raw.tide")
    for what, ours in (("allocations", found["allocations"]), ("peak", found["peak_bytes"]),
                       ("leaked", found["live_at_exit"]["bytes"])):
        assert printed("interpreted", what) == ours, (what, found)
    assert "numbers of blocks" not in " ".join(warnings("window", "raw.tide"))
    assert "python3" in run("dump", "--definitions", "raw.tide").stdout
    addresses = re.findall(r"^\+ \w+ \w+ (\w+)$", plain.decode(), re.M)
    ours = re.findall(r"malloc (?:s\d+ )?0x(\w+)", items("raw.tide"))
    assert ours == addresses, (len(ours), len(addresses))


@test
def what_an_allocator_calls_in_cpps_library_is_operator_new():
    texts = ["/lib/libstdc++.so.6", "std::__new_allocator<int>::allocate(unsigned long, void const*)", "a.h",
             "own()", "/lib/libother.so"]
    lines = ["v 10400 3", "X app", *(f"s {len(text):x} {text}" for text in texts),
             "i 7f00 1",             # 1: nameless, of libstdc++
             "i 4010 0 2 3 7 4 3 9",  # 2: the allocator, inlined into own
             "i 8f00 5",             # 3: nameless, of another library
             "t 2 0", "t 1 1", "t 3 1", "a 28 2", "a 10 3", "+ 0", "+ 1"]
    told = json.loads(run("report", "--json", imported("nameless", "\n".join(lines) + "\n")).stdout)
    inner = {site["bytes"]: site["stack"][0]["function"] for site in told["sites"]["live_at_exit"]}
    assert inner == {0x28: "operator new(unsigned long)", 0x10: "libother.so 0x8f00"}, inner


@test
def old_versions_of_heaptrack_are_read():
    old = ("v 10000\nX app --x\nI 1000 10\ns app\ns my function\ns a b.c\ni 1000 1 2 3 7\nt 1 0\n"
           "c 5\n+ 40 1 5000\nR 2\n+ 10 1 6000\n- 5000\n- 7000\n")
    found = heap(imported("old0", old))
    assert (found["allocations"], found["peak_bytes"], found["live_at_exit"]["bytes"]) == (2, 80, 16), found
    text = run("dump", "old0.tide").stdout
    assert '"my function" "a b.c":7' in text and "@5000000 " in text and "value=8192" in text, text
    one = old.replace("v 10000", "v 10200 1").replace("+ 40 1 5000", "a 40 1\na 10 1\n+ 0") \
        .replace("+ 10 1 6000", "+ 1").replace("- 5000", "- 0").replace("- 7000", "- 0")
    path = write("old1", one)
    assert "1 frees are left out" in run("import", path, "-o", "old1.tide").stderr
    assert heap("old1.tide")["live_at_exit"]["bytes"] == 16
    raw = "v 10400 2\nx /bin/app\nX app\nm x 400000 0 1000\nt 400010 0\n+ 8 1 5000\nm -\n- 5000\n"
    text = run("dump", imported("raw2", raw)).stdout
    assert '"/bin/app"' in text and "f1 m1 0x40000f" in text, text
    for bad, why in (("v 10400 9\nX app\n", "newer version"), ("v 1 2\nX a\n+ 0\n", "line 3"),
                     ("v 1 2\nX a\nq\n", "line 3"), ("v 1 2\nX a\nt 1 1\n", "line 3")):
        assert why in refused("import", write("bad", bad), "-o", "bad.tide", code=3), bad


def damaged(content):
    """That content cut at every byte, and with a byte of it changed; a long one at some of them."""
    for at in range(0, len(content), len(content) // 500 + 1):
        yield content[:at]
        yield content[:at] + bytes([content[at] ^ (1 << at % 8)]) + content[at + 1:]


@test
def damaged_input_of_every_format_does_no_harm():
    os.makedirs("seeds")
    os.makedirs("damaged")
    subprocess.run([os.path.join(SOURCE, "test/fuzz/import_seeds"), "seeds"], check=True)
    count = 0
    for name in sorted(os.listdir("seeds")):
        with open(os.path.join("seeds", name), "rb") as file:
            content = file.read()
        for one in damaged(content):
            count += 1
            write(f"damaged/{count}", one, "wb")
    subprocess.run([os.path.join(BUILD, "test/fuzz/import_replay"), "seeds", "damaged"], check=True,
                   stdout=subprocess.DEVNULL)


@test
def what_would_name_an_imports_frames_is_not_a_build_with_g():
    with open("names.csv", "w", encoding="utf-8") as file:
        file.write("time_ns,op,address,size,stack\n1,malloc,0x1000,64,main;work\n2,malloc,0x2000,64,main;rest\n")
    run("import", "names.csv", "-o", "names.tide")
    page = run("report", "names.tide").stdout
    assert "work" in page and "symbols:" not in page, page


main()
