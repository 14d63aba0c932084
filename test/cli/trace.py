#!/usr/bin/env python3
# timeout: 300
# parallel: yes
"""What `tidemark info`, `dump`, `repair` and `bundle` promise on the command line."""
import json
import os
import re
import shutil
import stat
import subprocess

from libanswer import SOURCE, TIDEMARK, assemble, run
from libtests import main, test


SMALL = """trace id=00000000000000000000000000000000 began=0 tick=100000
trace command="./app"
process p0 pid=42 exe="/bin/app" arg="./app"
process p1 pid=43 parent=p0 start=fork exe="/bin/app"
thread t0 p0 tid=42 "main"
thread t1 p1 tid=43
frame f1 0x10
name f1 "work" "app.c":10
stack s1 f1
@0 t0 malloc s1 0x1000 64
@5000000 t1 free 0x1000
@2000000000 mark p0 t0 "late"
@2000000001 end p0 signal=11
end duration=2000000001
"""


def refused(code, *words):
    """Refused with one line on stderr and nothing on stdout. That line."""
    done = run(*words, check=code)
    assert done.stdout == "", done.stdout
    assert done.stderr.startswith("tidemark") and "exists already" in done.stderr \
        or done.stderr.count("\n") <= 2, done.stderr
    return done.stderr


def small():
    """A small trace of known text."""
    if not os.path.exists("small.tide"):
        write("small.txt", SMALL)
        run("dump", "--assemble", "small.txt", "-o", "small.tide")
    return "small.tide"


def recorded():
    """A trace of a real program."""
    if not os.path.exists("recorded.tide"):
        run("record", "-o", "recorded.tide", "--", "/bin/sh", "-c", "ls -l / | sort | head -3")
    return "recorded.tide"


def read(path):
    with open(path, "rb") as file:
        return file.read()


def write(path, content):
    with open(path, "wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
    return path


def equal(expected, actual):
    assert expected == actual, f"expected {expected!r}, is {actual!r}"


# ---- dump ----

@test
def dump_prints_what_was_assembled():
    equal(SMALL, run("dump", small()).stdout)


@test
def dump_of_a_recording_assembles_to_a_trace_that_dumps_the_same():
    first = run("dump", recorded()).stdout
    write("first.txt", first)
    run("dump", "-a", "first.txt", "-o", "second.tide")
    equal(first, run("dump", "second.tide").stdout)
    assert first.count("\n") > 500, "a recording of something"


@test
def dump_can_leave_out_what_is_not_asked_for():
    items = run("dump", small(), "--items").stdout
    assert all(line.startswith("@") for line in items.splitlines()), items
    assert "@" not in run("dump", small(), "--definitions").stdout
    equal(items.splitlines()[:2], run("dump", small(), "--items", "-n2").stdout.splitlines())
    equal('@2000000000 mark p0 t0 "late"\n',
          run("dump", small(), "--items", "--from", "5.1ms", "--to", "2s").stdout)


@test
def dump_refuses_a_time_that_is_none():
    assert "--from: 'soon' is not a time" in refused(2, "dump", small(), "--from", "soon")
    assert "--to: -1min is before the beginning" in refused(2, "dump", small(), "--to", "-1min")


@test
def dump_never_overwrites_without_being_told():
    write("there.txt", "mine")
    assert "exists already (--force overwrites it)" in refused(3, "dump", small(), "-o", "there.txt")
    equal(b"mine", read("there.txt"))
    run("dump", small(), "-o", "there.txt", "--force")
    equal(SMALL, read("there.txt").decode())


@test
def a_mistake_in_a_text_is_told_with_its_place_and_leaves_no_file():
    write("bad.txt", "process p\nthread t\n@0 t munch 0x10\n")
    line = refused(3, "dump", "--assemble", "bad.txt", "-o", "bad.tide")
    equal('tidemark dump: bad.txt: line 3, column 6: no event is called "munch"\n', line)
    assert not os.path.exists("bad.tide") and not [n for n in os.listdir() if n.endswith(".part")]
    assert "--assemble needs -o FILE" in refused(2, "dump", "--assemble", "bad.txt")


@test
def dump_writes_to_a_device_without_replacing_it():
    run("dump", small(), "-o", "/dev/null", "--force")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@test
def dump_says_that_its_output_could_not_be_written():
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run([TIDEMARK, "dump", small()], stdout=full, stderr=subprocess.PIPE,
                              text=True, check=False)
    equal(3, done.returncode)
    assert "No space left on device" in done.stderr, done.stderr


# ---- info ----

def is_type(value, name):
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None),
             "integer": int, "number": (int, float)}
    return isinstance(value, kinds[name]) and not (isinstance(value, bool) and name != "boolean")


def wrong(value, schema, root, where="$"):
    """The part of JSON Schema that docs/schema/info.json uses. Yields what is wrong."""
    if "$ref" in schema:
        yield from wrong(value, root["$defs"][schema["$ref"].rsplit("/", 1)[1]], root, where)
    if "const" in schema and value != schema["const"] or value not in schema.get("enum", [value]):
        yield f"{where}: {value!r}"
    types = schema.get("type", [])
    if types and not any(is_type(value, t) for t in ([types] if isinstance(types, str) else types)):
        yield f"{where} is no {types}"
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        yield f"{where}: {value!r} does not match"
    if isinstance(value, dict) and "properties" in schema:
        yield from (f"{where}.{key} is missing" for key in schema["required"] if key not in value)
        yield from (f"{where}.{key} is new" for key in value if key not in schema["properties"])
    if isinstance(value, dict):
        for key, item in value.items():
            part = schema.get("properties", {}).get(key, schema.get("additionalProperties"))
            if isinstance(part, dict):
                yield from wrong(item, part, root, f"{where}.{key}")
    if isinstance(value, list):
        for at, item in enumerate(value):
            yield from wrong(item, schema.get("items", {}), root, f"{where}[{at}]")


def info(path):
    answer = json.loads(run("info", "--json", path).stdout)
    with open(os.path.join(SOURCE, "docs/schema/info.json"), encoding="utf-8") as file:
        schema = json.load(file)
    equal([], list(wrong(answer, schema, schema)))
    return answer


@test
def info_json_is_as_its_schema_says():
    answer = info(small())
    equal(2, answer["events"]["total"])
    equal(1, answer["events"]["by_kind"]["malloc"])
    equal(1, answer["notes"]["marks"])
    equal(2000000001, answer["trace"]["duration_ns"])
    equal(["signal SIGSEGV", "unknown"], [row["exit"] for row in answer["processes"]])
    equal([None, 0], [row["parent_id"] for row in answer["processes"]])
    equal([1, 1], [row["events"] for row in answer["processes"]])
    assert answer["trace"]["complete"] and answer["trace"]["problem"] is None


@test
def a_heap_of_windows_that_is_named_again_when_it_is_gone_is_listed_once():
    path = assemble("echo", "process p pid=1\nthread t p tid=1\nheap h p handle=0x10 created=0\n"
                    "heap i p handle=0x10\n@1 t malloc h 0x100 1\n@2 t heap-destroy h\nend\n")
    text = run("info", path).stdout
    assert re.findall("0x10 .*", text) == ["0x10 of process 1, made with none; 1 call with none"], text
    assert len(info(path)["heaps"]) == 1


@test
def info_of_a_recording_counts_what_dump_prints():
    answer = info(recorded())
    lines = run("dump", recorded()).stdout.splitlines()
    kinds = {}
    for line in lines:
        words = line.split()
        if words[0].startswith("@") and re.fullmatch("t[0-9]+", words[1]):
            kinds[words[2]] = kinds.get(words[2], 0) + 1
    equal(kinds, {kind: count for kind, count in answer["events"]["by_kind"].items() if count})
    equal(sum(line.startswith("process ") for line in lines), len(answer["processes"]))
    equal(sum(line.startswith("stack ") for line in lines), answer["stacks"]["stacks"])
    assert answer["cost"]["collector_bytes_peak"] > 0 and answer["events"]["lost"] == 0


@test
def info_shows_the_tree_of_processes():
    text = run("info", small()).stdout
    assert re.search(r"^  42 +/bin/app  signal SIGSEGV", text, re.M), text
    assert re.search(r"^    43 +/bin/app \(forked\)  still running", text, re.M), text
    assert "whole" in text.splitlines()[0] and "NOT WHOLE" not in text


@test
def info_lists_many_processes_only_when_asked():
    write("many.txt", "".join(f"process p{i} pid={i + 10}\n" for i in range(100)) + "end\n")
    run("dump", "-a", "many.txt", "-o", "many.tide")
    short, long = run("info", "many.tide").stdout, run("info", "--all", "many.tide").stdout
    assert "... and 60 more" in short
    equal(100, sum("(not known)" in line for line in long.splitlines()))


@test
def info_prints_no_control_characters_of_a_trace():
    write("rude.txt", 'trace command="\\x1b[2J"\nprocess p exe="/bin/\\x1b]0;x\\x07"\n'
          'heap h p handle=0x10 "\\x1b[31mpool"\nend\n')
    run("dump", "-a", "rude.txt", "-o", "rude.tide")
    text = run("info", "rude.tide").stdout
    assert "\x1b" not in text and "?[31mpool of process" in text, text


@test
def nor_does_it_print_those_of_unicode():
    write("wide.txt", 'trace command="\\xc2\\x9b2J"\nprocess p exe="/bin/\\xc2\\x9d0;x"\nend\n')
    run("dump", "-a", "wide.txt", "-o", "wide.tide")
    text = run("info", "wide.tide").stdout
    assert not re.search("[\x80-\x9f]", text) and "/bin/?0;x" in text, text


@test
def symbols_says_that_a_trace_is_cut():
    write("cut.tide", read(recorded())[:-1])
    done = run("symbols", "cut.tide")
    assert "not whole" in done.stderr, done.stderr
    assert not json.loads(run("symbols", "--json", "cut.tide").stdout)["complete"]
    done = run("symbols", recorded(), "--json")
    assert not done.stderr and json.loads(done.stdout)["complete"], done.stderr


@test
def info_says_where_a_trace_is_cut():
    write("cut.tide", read(recorded())[:-1])
    done = run("info", "cut.tide")
    assert "NOT WHOLE" in done.stdout and "cut at byte" in done.stderr
    assert not info("cut.tide")["trace"]["complete"]


# ---- bad input, to every command that reads a trace ----

@test
def what_is_no_trace_is_refused_in_one_line():
    write("empty", b"")
    write("text", "hello, this is text and no trace\n" * 10)
    newer = bytearray(read(small()))
    newer[8:10] = (2).to_bytes(2, "little")
    newer[60:64] = crc32c(bytes(newer[:60])).to_bytes(4, "little")
    write("newer", bytes(newer))
    write("head", read(small())[:30])
    write("program", b"\177ELF" + bytes(200))
    for command in ("info", "dump", "repair", "bundle", "report"):
        for path, part in (("missing", "No such file"), ("empty", "is empty"),
                           ("text", "is not a tidemark trace (tidemark import"), ("program", "is a program, and is not"),
                           ("newer", "format 2.0"),
                           ("head", "is cut"), ("/", "not a regular file")):
            line = refused(3, command, path)
            assert part in line and line.count("\n") == 1, (command, line)


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


# ---- repair ----

@test
def repair_of_a_whole_trace_writes_nothing():
    before = sorted(os.listdir())
    assert "nothing to repair" in run("repair", small()).stdout
    equal(before, sorted(os.listdir()))


@test
def repair_makes_a_sound_trace_beside_the_cut_one():
    content = read(recorded())
    write("broken.tide", content[:len(content) * 3 // 4])
    kept = run("dump", "--items", "broken.tide").stdout
    run("repair", "broken.tide")
    equal(content[:len(content) * 3 // 4], read("broken.tide"))
    equal(kept, run("dump", "--items", "broken.repaired.tide").stdout)
    answer = info("broken.repaired.tide")
    assert "cut at byte" in answer["trace"]["problem"], answer["trace"]
    assert "(repaired)" in answer["trace"]["problem"]
    assert "nothing to repair" in run("repair", "broken.repaired.tide").stdout
    assert "exists already" in refused(3, "repair", "broken.tide")


@test
def repair_in_place_needs_force():
    write("place.tide", read(recorded())[:-100])
    before = read("place.tide")
    refused(3, "repair", "place.tide", "-o", "place.tide")
    equal(before, read("place.tide"))
    run("repair", "place.tide", "-o", "place.tide", "--force")
    assert info("place.tide")["events"]["total"] > 0


# ---- bundle ----

@test
def bundle_keeps_the_names_when_the_program_is_gone():
    shutil.copy("/bin/ls", "mine")
    run("record", "-o", "mine.tide", "--", "./mine", "-l", "/")
    functions = names_in("mine.tide")
    assert functions, "some frame of ls has a name"
    before = read("mine.tide")
    run("bundle", "mine.tide")
    assert read("mine.tide").startswith(before)
    os.remove("mine")
    equal(functions, names_in("mine.tide"))
    assert info("mine.tide")["blocks"]["bundles"] > 0


def names_in(path):
    """Names of functions in all stacks of the report."""
    sites = json.loads(run("report", path, "--json", "-n", "0").stdout)["sites"]["calls"]
    return sorted({frame["function"] or "" for site in sites for frame in site["stack"]})


@test
def bundle_refuses_a_trace_that_is_cut_and_says_what_to_do():
    write("cut.tide", read(recorded())[:-1])
    before = read("cut.tide")
    assert "(try: tidemark repair)" in refused(3, "bundle", "cut.tide")
    equal(before, read("cut.tide"))


@test
def what_was_said_of_a_run_is_in_info_and_goes_with_it():
    run("record", "-q", "-f", "-o", "labels.tide", "--label", "version=1.2", "--label", "note=a b=c", "--", "true")
    found = json.loads(run("info", "labels.tide", "--json").stdout)["trace"]["labels"]
    assert found["version"] == "1.2" and found["note"] == "a b=c" and found["host"], found
    assert "label      note = a b=c\n" in run("info", "labels.tide").stdout
    with open("labels.txt", "w", encoding="utf-8") as file:
        file.write(run("dump", "labels.tide").stdout)
    for words in (("dump", "--assemble", "labels.txt"), ("trim", "labels.tide", "--from", "10%"),
                  ("merge", "labels.tide", "labels.tide")):
        run(*words, "-o", "same.tide", "--force")
        assert json.loads(run("info", "same.tide", "--json").stdout)["trace"]["labels"] == found, words
    run("strip", "labels.tide", "-o", "same.tide", "--force")
    assert json.loads(run("info", "same.tide", "--json").stdout)["trace"]["labels"] == {}
    run("record", "-q", "-f", "-o", "labels.tide", "--", "true")
    assert json.loads(run("info", "labels.tide", "--json").stdout)["trace"]["labels"] == {}
    for odd in (["a"], ["=b"], ["a b=c"], ["a=b\nc=d"], ["a=1", "--label", "a=2"], ["a=" + "x" * 300]):
        refused(125, "record", "--label", *odd, "--", "true")


main()
