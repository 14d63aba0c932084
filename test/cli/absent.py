#!/usr/bin/env python3
# parallel: yes
"""JSON in which absent is null and none is 0, lists that say how many rows they left out, and events
that are one number wherever they are counted: in every command, on traces that lack this or that."""
import functools
import glob
import json
import os

from libanswer import SOURCE, answer, assemble, run, sampled
from libschema import valid
from libtests import check, equal, main, test

# What is there only with a key that was asked for.
OPTIONAL = {"window.json": {"keys", "row"}}
SAID = ["absent", "0: not known", "0: none", "empty: not", "empty: none", "else 0", "\"\": "]

MIXED = """process p pid=70 exe="/opt/tool" arg="tool"
thread t p tid=70 "first"
thread u p tid=71 "second"
stack one "leaf_one" < "main"
stack two "leaf_two" < "main"
stack three "leaf_three" < "main"
heap pool p "pool"
@0 t mmap one 0x7f0000000000 0x4000 prot=rw flags=private|anonymous
@1000 t malloc one 0x7f0000000010 1000
@2000 t malloc two 0x7f0000001010 10
@2100 t realloc-free 0x7f0000001010
@2200 u malloc three 0x7f0000002010 70
@2300 t realloc-undo one 0x7f0000001010 4000
@2400 t realloc two 0x7f0000001010 -> 0x7f0000003010 30
@2500 t realloc-free 0x7f0000003010
@2600 u malloc one 0x7f0000001010 8
@2700 t realloc-alloc one 0x7f0000003210 99
@2800 t failed two 70000
@3000 t heap-alloc one pool 0x7f0000000100 16
@3100 t free 0x7f0000000010
@90000 u mmap two 0x7f0000010000 0x1000 prot=rw flags=private|anonymous
end duration=100000
"""

BARE = """process p pid=1
thread t p tid=1
@1000 t malloc 0x1000 10
@2000 t free 0x1000
"""


def mixed():
    return "mixed.tide" if os.path.exists("mixed.tide") else assemble("mixed", MIXED)


def traces():
    if not os.path.exists("real.tide"):
        run("record", "-o", "real.tide", "--", "ls", "-l", "/")
    return ["real.tide", mixed(), assemble("bare", BARE), sampled(),
            assemble("nothing"), assemble("crowd"), assemble("family"), assemble("kitchen")]


@functools.cache
def answers(path, *more):
    """Every command's answer about a trace that does not refuse it: the words, and the answer."""
    return list(every_answer(path, *more))


def every_answer(path, *more):
    for words in [["report"], ["info"], ["window"], ["window", "--tree", "leaf"],
                  ["window", "--by", "lifetime"], ["window", "--by", "process,stack"],
                  ["window", "--layer", "vm"], ["active"], ["active", "--at", "50%"], ["growth"],
                  ["transients"], ["findings"], ["pins"], ["map"], ["reconcile"], ["diff", path]]:
        if words[0] == "info" and more:
            continue
        done = run(words[0], path, *words[1:], "--json", *more, check=None)
        check(done.returncode in (0, 2), words, path, done)
        if done.returncode == 0:
            told = json.loads(done.stdout)
            yield words, valid(told, f"{words[0]}-tree" if "nodes" in told else words[0])


def values(told, where=""):
    if isinstance(told, dict):
        for key, value in told.items():
            yield from values(value, f"{where}.{key}")
    elif isinstance(told, list):
        for value in told:
            yield from values(value, f"{where}[]")
    else:
        yield where, told


def objects(schema, where=""):
    if isinstance(schema, dict):
        if "properties" in schema:
            yield where, schema
        for key, value in schema.items():
            yield from objects(value, key if key not in ("items", "properties") else where)
    elif isinstance(schema, list):
        for value in schema:
            yield from objects(value, where)


@test
def every_schema_has_all_its_keys_always():
    for path in glob.glob(os.path.join(SOURCE, "docs/schema/*.json")):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        name = os.path.basename(path)
        for where, schema in objects(json.loads(text)):
            lacking = set(schema["properties"]) - set(schema.get("required", []))
            check(not lacking or where in OPTIONAL.get(name, ()), name, where, lacking)
        for word in SAID:
            check(word not in text.replace("\\\"", "\"").lower(), name, word)


@test
def what_is_absent_is_null_and_no_text_is_empty():
    for path in traces():
        for words, told in answers(path):
            for where, value in values(told):
                check(value != "" or where.endswith((".args[]", "threads[].name")), path, words,
                      where)


@test
def what_a_trace_does_not_say_is_null():
    path = assemble("bare", BARE)
    report, info = answer("report", path), answer("info", path)
    equal([None] * 5, [report["trace"][key] for key in ("began_unix_ns", "command", "host",
                                                        "directory", "sample_bytes")])
    equal((None, None), (report["vm"]["rss_peak_bytes"], report["heap"]["standard_errors"]))
    equal((None, 0), (report["trace"]["processes"][0]["parent"],
                      report["heap"]["live_at_exit"]["count"]))
    equal([None] * 4, list(info["cost"].values()), "cost of a recording that did not end")
    equal([None] * 5, [info["processes"][0][key] for key in (
        "rss_max_bytes", "pss_max_bytes", "swap_max_bytes", "minor_faults", "major_faults")])
    nothing = answer("report", assemble("nothing"))
    equal((0, None, []), (nothing["heap"]["peak_bytes"], nothing["heap"]["peak_ns"],
                          nothing["pools"]))


@test
def events_are_the_recorded_memory_calls_everywhere():
    for path in traces():
        info = answer("info", path)["events"]
        calls = answer("report", path)["trace"]["events"]
        equal((calls, sum(info["by_kind"].values())),
              (info["total"], info["total"] + info["others"]), path)
        for words, told in answers(path):
            for key in ("trace", "before", "after"):
                if "events" in told.get(key, {}):
                    equal(calls, told[key]["events"], (path, words))
    equal(9, answer("report", mixed())["trace"]["events"])


def lists(told, where=""):
    """The lists that rows can be left out of: their place, length, and what was left out."""
    if isinstance(told, dict):
        for key, value in told.items():
            if key.endswith("_left_out") and isinstance(value, int):
                yield where, key, len(told[key[:-len("_left_out")]]), value
            elif key == "sites_left_out":
                for name, count in value.items():
                    yield name, key, len(told["sites"][name]), count
            else:
                yield from lists(value, f"{where}.{key}")
    elif isinstance(told, list):
        for number, value in enumerate(told):
            yield from lists(value, f"{where}[{number}]")


@test
def every_list_says_how_many_rows_it_left_out():
    seen = set()
    for path in traces():
        whole = {str(words): told for words, told in answers(path, "-n", "0")}
        for words, told in answers(path, "-n", "1"):
            all_of = {(where, key): count + left
                      for where, key, count, left in lists(whole[str(words)])}
            check(all_of or words[0] in ("info",), "no list says what it left out", words)
            for where, key, count, left in lists(told):
                # Rows in rows are left out with what they are in.
                nested = words[0] == "window" and words[-1] != "lifetime"
                if not nested and (where, key) in all_of:
                    equal(all_of[where, key], count + left, (path, words, where, key))
                if left:
                    seen.add((words[0], key))
            if any(left for _, _, _, left in lists(told)) and words[0] != "reconcile":
                text = run(words[0], path, *words[1:], "-n", "1").stdout
                check(" more" in text, path, words, text)
    for each in [("report", "sites_left_out"), ("active", "rows_left_out"),
                 ("window", "rows_left_out"), ("diff", "rows_left_out"), ("map", "rows_left_out")]:
        check(each in seen or each[0] == "diff", each, seen)


@test
def rows_that_are_too_small_are_left_out_and_counted():
    path = mixed()
    whole, some = answer("active", path, "-n", "0"), answer("active", path, "--min-bytes", "90")
    equal(len(whole["rows"]), len(some["rows"]) + some["rows_left_out"])
    check(some["rows_left_out"] > 0 and " more" in
          run("active", path, "--min-bytes", "90", "-n", "0").stdout)
    told = answer("diff", path, assemble("bare", BARE), "--min-bytes", "90")
    every = answer("diff", path, assemble("bare", BARE), "-n", "0")
    equal(len(every["rows"]), len(told["rows"]) + told["rows_left_out"] + told["rows_elsewhere"])
    check(told["rows_left_out"] > 0)


main()
