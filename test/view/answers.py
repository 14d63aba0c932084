#!/usr/bin/env python3
# parallel: yes
"""What the viewer is told is what the command of that name writes, and fits its schema."""
import copy
import json
import os
import random
import re
import threading
from urllib.parse import quote

from libanswer import assemble, run
from libschema import valid
from libtests import check, equal, main, test
from libview import Server, exercise2, long_trace


def command(*words):
    return run(*words, "--json").stdout


def same(server, target, *words, schema=None):
    """The answer is the command's, byte for byte."""
    answer = server.get(target)
    assert answer.status == 200, (target, answer.status, answer.body[:300])
    # What is known of symbols is the command's alone: here it would hang on what was asked before.
    told = re.sub(r'"symbol_notes": (\{[^}]*\}|\[[^]]*\])',
                  lambda notes: re.sub(r"\[[^]]*\]", "[]", notes[0]), command(*words))
    assert answer.body.decode() == told, (target, answer.body.decode()[:400], told[:400])
    valid(json.loads(told), schema or words[0])


@test
def windows_are_those_of_the_command():
    for name in ("kitchen", "family", "crowd"):
        path = assemble(name)
        with Server(path) as server:
            for query, words in [
                    ("", []),
                    ("by=stack", ["--by", "stack"]),
                    ("by=process,thread&sort=count", ["--by", "process,thread", "-s", "count"]),
                    ("by=type,size&from=20%25&to=90%25",
                     ["--by", "type,size", "--from", "20%", "--to", "90%"]),
                    ("by=function&impact=transient&exit-frees=1",
                     ["--by", "function", "--impact", "transient", "--exit-frees"]),
                    ("by=layer,owner", ["--by", "layer,owner"]),
                    ("by=lifetime&size=1..4K&min-bytes=8",
                     ["--by", "lifetime", "--size", "1..4K", "--min-bytes", "8"]),
                    ("by=impact,stack&n=1&lane=table", ["--by", "impact,stack", "-n", "1"]),
                    ("by=none&from=begin&to=peak", ["--by", "none", "--from", "begin", "--to",
                                                    "peak"])]:
                same(server, "/api/window?" + query, "window", path, *words)


@test
def a_row_and_what_is_left_without_it_are_all():
    def window(query):
        total = server.ask("/api/window?by=none&details=0&" + query)["total"]
        return [total[figure] for figure in ("count", "size", "impacting_size")]

    with Server(exercise2()) as server:
        for layer in ("heap", "vm"):
            whole = window("layer=" + layer)
            for key in ("stack", "function", "module", "owner", "process", "thread", "heap", "size"):
                rows = server.ask(f"/api/window?details=0&layer={layer}&by={key}")["rows"]
                assert rows, (layer, key)
                for row in rows[:5]:
                    value = row["stack_id"] if key == "stack" else row["keys"][key]
                    if value is None or (layer == "vm" and key == "heap"):
                        continue  # no module, no heap: nothing to name it by
                    word = "row" if key in ("stack", "function", "module", "owner") else key
                    value = quote(str(value), safe="")
                    to = f"row={key}:{value}" if word == "row" else f"{key}={value}"
                    inside = window(f"layer={layer}&{to}")
                    outside = window(f"layer={layer}&not-row={key}:{value}")
                    assert inside == [row["count"], row["size"], row["impacting_size"]], (key, row)
                    assert [a + b for a, b in zip(inside, outside)] == whole, (layer, key, value)
        both = server.ask("/api/window?by=layer&details=0&not-row=heap:malloc")["rows"]
        assert [row["keys"]["layer"] for row in both] == ["vm"], both


@test
def rows_without_details_are_the_same_but_for_these():
    with Server(assemble("kitchen")) as server:
        whole = server.ask("/api/window?by=stack")
        quick = server.ask("/api/window?by=stack&details=0")
        assert len(whole["rows"]) >= 2 and whole["rows"][0]["peak_size"] is not None
        for row, other in zip(whole["rows"], quick["rows"]):
            assert other["peak_size"] is None
            for key in ("count", "size", "impacting_size", "stack_id", "keys"):
                assert row[key] == other[key], (key, row, other)


@test
def what_was_asked_before_changes_no_answer():
    """Stacks that read the same are one row, named by the first of them that is in the window."""
    twins = assemble("twins", "process p pid=1\nprocess q pid=2\nthread t p tid=1\nthread u q tid=2\n"
                     "module m p 0x7000-0x9000 bias=0x7000 \"/lib/a.so\"\nmodule n q 0x8000-0xa000 bias=0x8000 \"/lib/a.so\"\n"
                     "frame one m 0x7100\nframe two n 0x8100\n"
                     "stack s one\nstack r two\n"
                     "+1 t malloc s 0x1000 10\n+1 t free 0x1000\n+50 u malloc r 0x2000 20\n+10 u free 0x2000\nend\n")
    for path in (twins, assemble("family"), assemble("crowd"), exercise2()):
        with Server(path) as server:
            windows = [f"/api/window?by={keys}&details=0&n=2000&from={begin}%25&to={end}%25"
                       for keys in ("stack", "function,stack", "impact,stack")
                       for begin, end in ((0, 100), (50, 100), (0, 20), (20, 60), (90, 100))]
            first = [server.get(window).body for window in windows]
            assert [server.get(window).body for window in reversed(windows)] == first[::-1]
        for window, body in list(zip(windows, first))[1:5]:
            with Server(path) as server:
                assert server.get(window).body == body, (path, window)


@test
def peaks_alone_are_the_same_but_for_lifetimes():
    lifetimes = ("lifetime_median_ns", "lifetime_p99_ns")
    with Server(exercise2()) as server:
        for query in ("by=none", "by=impact,stack", "by=impact", "by=stack&impact=impacting", "by=type,size",
                      "by=stack&impact=transient&layer=vm", "by=impact,stack&from=20%25&to=80%25",
                      "by=stack&from=20%25&to=80%25&impact=persistent", "by=function&layer=vm&exit-frees=1"):
            whole = server.ask("/api/window?" + query)
            quick = server.ask(f"/api/window?{query}&details=peaks")
            assert whole["total"]["peak_size"], query
            for row, other in zip([whole["total"], *whole["rows"]], [quick["total"], *quick["rows"]]):
                for key in row:
                    assert row[key] == other[key] or key in lifetimes, (query, key, row, other)
        # Sorted by what was not asked for, it is found.
        rows = server.ask("/api/window?by=stack&layer=vm&sort=median&details=peaks")["rows"]
        assert rows[0]["lifetime_median_ns"], rows[0]


@test
def trees_are_those_of_the_command():
    path = assemble("kitchen")
    with Server(path) as server:
        for query, words in [
                ("", ["--tree", "callers"]),
                ("kind=leaf&impact=impacting", ["--tree", "leaf", "--impact", "impacting"]),
                ("kind=flat&sort=size&all-frames=1", ["--flat", "--sort", "size", "-a"]),
                ("kind=butterfly&function=main", ["--butterfly", "main"])]:
            same(server, "/api/tree?" + query, "window", path, *words, schema="window-tree")


@test
def a_tree_that_is_cut_keeps_what_is_largest_and_says_how_much_is_missing():
    with Server(assemble("kitchen")) as server:
        whole = server.ask("/api/tree?sort=size")
        count = len(whole["nodes"])
        assert count > 8, count
        for nodes in (1, 2, count // 2, count - 1, count):
            cut = valid(server.ask(f"/api/tree?sort=size&nodes={nodes}"), "window-tree")
            assert len(cut["nodes"]) == nodes and cut["nodes_left_out"] == count - nodes, nodes
            sizes = sorted((node["size"] for node in whole["nodes"]), reverse=True)
            assert sorted((node["size"] for node in cut["nodes"]), reverse=True) == sizes[:nodes]
            ids = {node["id"] for node in cut["nodes"]}
            assert all(node["parent"] in ids | {None} for node in cut["nodes"])
            assert cut["total"] == whole["total"]


@test
def a_tree_that_is_cut_keeps_what_leads_to_large_impacts():
    # What grew and what shrank may cancel out above; the largest below a node counts for it.
    with Server(assemble("kitchen")) as server:
        for query in ("kind=callers", "kind=leaf&from=30%25&to=70%25", "kind=flat&from=50%25"):
            whole = server.ask("/api/tree?" + query)
            most = {}
            for node in reversed(whole["nodes"]):
                most[node["id"]] = max(most.get(node["id"], 0), abs(node["impacting_size"]))
                if node["parent"] is not None:
                    most[node["parent"]] = max(most.get(node["parent"], 0), most[node["id"]])
            largest = sorted(most.values(), reverse=True)
            for nodes in range(1, len(largest) + 1):
                cut = server.ask(f"/api/tree?{query}&nodes={nodes}")
                shown = {}
                for node in reversed(cut["nodes"]):
                    shown[node["id"]] = max(shown.get(node["id"], 0), abs(node["impacting_size"]))
                    if node["parent"] is not None:
                        shown[node["parent"]] = max(shown.get(node["parent"], 0),
                                                    shown[node["id"]])
                assert sorted(shown.values(), reverse=True) == largest[:nodes], (query, nodes)


@test
def findings_are_those_of_the_commands():
    path = exercise2()
    with Server(path) as server:
        same(server, "/api/findings", "findings", path)
        same(server, "/api/findings?n=1&from=5%25", "findings", path, "-n", "1", "--from", "5%")
        same(server, "/api/growth?n=10", "growth", path)
        same(server, "/api/growth?n=0&min-bytes=100&from=5%25", "growth", path, "-n", "0",
             "--min-bytes", "100", "--from", "5%")
        same(server, "/api/transients?n=10&layer=vm", "transients", path, "--layer", "vm")
        told = server.ask("/api/diff?with-from=mark:ex2.growth.begin&with-to=mark:ex2.growth.end"
                          "&to=mark:ex2.growth.begin&n=10&layer=vm")
        assert told == json.loads(command(
            "diff", path, "--with-from", "mark:ex2.growth.begin", "--with-to",
            "mark:ex2.growth.end", "--to", "mark:ex2.growth.begin", "--layer", "vm"))
        valid(told, "diff")


@test
def a_second_trace_is_compared():
    before, after = assemble("kitchen"), assemble("family")
    with Server(before, "--diff", after) as server:
        assert server.ask("/api/view")["diff"] == after
        same(server, "/api/diff?n=0&sort=count", "diff", before, after, "-n", "0", "--sort",
             "count")
        other = valid(server.ask("/api/diff/timeline?buckets=50"), "view-timeline")
        with Server(after) as alone:
            assert other == alone.ask("/api/timeline?buckets=50")
        assert "second window" in server.refused("/api/diff?with=self", 400, "usage")
    with Server(before) as server:
        assert "--diff" in server.refused("/api/diff?with=other", 409, "not-recorded")
        assert "--diff" in server.refused("/api/diff/timeline", 409, "not-recorded")


@test
def moments_are_those_of_the_commands():
    path = exercise2()
    with Server(path) as server:
        same(server, "/api/active?n=0", "active", path)
        same(server, "/api/active?n=3&at=50%25&layer=vm&min-bytes=1M", "active", path, "-n", "3",
             "--at", "50%", "--layer", "vm", "--min-bytes", "1M")
        same(server, "/api/map?at=mark:ex2.last4.begin&n=10", "map", path, "--at",
             "mark:ex2.last4.begin")
        same(server, "/api/map?granularity=1M&n=10&at=peak", "map", path, "--granularity", "1M",
             "--at", "peak")
        answer = server.get("/api/reconcile?n=5")
        if answer.status == 200:
            assert answer.body.decode() == command("reconcile", path, "-n", "5")
        else:
            assert answer.status == 409, answer.body
        assert "power of two" in server.refused("/api/map?granularity=5000", 400, "usage")
        assert "addresses" in server.refused("/api/map?range=a..b", 400, "usage")
        assert "no parameter 'from'" in server.refused("/api/active?from=1s", 400, "usage")


@test
def about_the_trace():
    path = exercise2()
    with Server(path) as server:
        same(server, "/api/info", "info", path)
        same(server, "/api/info", "info", path)
        view = valid(server.ask("/api/view"), "view")
        info = json.loads(command("info", path))
        assert view["duration_ns"] == info["trace"]["duration_ns"]
        assert view["layers"] == ["heap", "vm"] and view["has"]["map"] and view["complete"]
        assert view["peak"]["heap"]["bytes"] == 130000
        marks = valid(server.ask("/api/marks"), "view-marks")["marks"]
        assert [mark["name"] for mark in marks][:2] == ["ex2.heap10s.begin", "ex2.growth.begin"]


@test
def marks_of_one_name_are_numbered():
    path = assemble("marks", "process p pid=7\nthread t p tid=8\n" +
                    "".join(f'@{at}00 mark p t "{name}"\n' for at, name in
                            enumerate("abacab", 1)) + "end\n")
    with Server(path) as server:
        marks = valid(server.ask("/api/marks"), "view-marks")["marks"]
        assert [(mark["name"], mark["nth"], mark["of"]) for mark in marks] == \
            [("a", 1, 3), ("b", 1, 2), ("a", 2, 3), ("c", 1, 1), ("a", 3, 3), ("b", 2, 2)]
        assert {mark["time_ns"] for mark in marks} == {100, 200, 300, 400, 500, 600}
        assert marks[0]["pid"] == 7 and marks[0]["tid"] == 8
    # Those that are left out count.
    path = assemble("manymarks", "process p pid=7\nthread t p tid=8\n" +
                    "".join(f'@{at}00 mark p t "{at if 1 < at < 5000 else 1}"\n'
                            for at in range(1, 5001)) + "end\n")
    with Server(path) as server:
        told = valid(server.ask("/api/marks"), "view-marks")
        assert told["marks_left_out"] == 5000 - 4096, told["marks_left_out"]
        assert [mark["of"] for mark in told["marks"]] == [2] + [1] * 4095


# ---- what no command writes, counted again ----

def lifetimes(path, *words):
    """Each allocation of the heap: size, begin, end (None), and how it ended."""
    told = json.loads(command("window", path, "--by", "lifetime", *words))
    return [row["keys"]["lifetime"] for row in told["rows"] if "lifetime" in row["keys"]]


@test
def a_timeline_is_the_level_of_the_lifetimes():
    path = assemble("crowd")
    with Server(path) as server:
        duration = server.ask("/api/view")["duration_ns"]
        for query in ("", "&size=1..100", "&layer=heap&from=30%25&to=80%25", "&thread=41"):
            words = [word for word in re.split("[&=]", query.replace("%25", "%"))[1:]]
            words = [("--" + word if at % 2 == 0 else word) for at, word in enumerate(words)]
            answer = server.get("/api/timeline?buckets=40" + query)
            if answer.status == 400:  # no such thread in the trace
                continue
            told = valid(answer.json(), "view-timeline")
            filters = [word for at, word in enumerate(words)
                       if words[at - at % 2] not in ("--from", "--to")]
            blocks = lifetimes(path, *filters)
            width = (told["to_ns"] - told["from_ns"]) / 40
            assert len(told["peak_bytes"]) == 40
            for bucket in range(40):
                low = told["from_ns"] + bucket * width
                high = low + width
                # the level at the bucket's end, from single lifetimes
                level = sum(b["size"] for b in blocks if b["begin_ns"] <= high and
                            (b["end_ns"] is None or b["end_ns"] > high))
                if high < duration:
                    assert told["end_bytes"][bucket] == level, (query, bucket)
                assert told["peak_bytes"][bucket] >= told["end_bytes"][bucket]
                assert told["low_bytes"][bucket] <= told["end_bytes"][bucket]


def octave(number):
    """0, 1, 2, 3 to 4, 5 to 8 …, as their bounds."""
    if number <= 1:
        return (number, number)
    high = 1 << (number - 1).bit_length()
    return (high // 2 + 1, high)


@test
def a_histogram_counts_the_allocations_of_a_window_by_size():
    path = assemble("kitchen")
    for query, words in [("", []), ("from=30%25&to=70%25", ["--from", "30%", "--to", "70%"]),
                         ("impact=transient", ["--impact", "transient"])]:
        with Server(path) as server:
            told = valid(server.ask("/api/histogram?" + query), "view-histogram")
        rows = json.loads(command("window", path, "--by", "type,size", *words))["rows"]
        names = {"AIFO": "impacting", "AOFI": "freed_before", "AIFI": "transient",
                 "AOFO": "persistent"}
        expected = {}
        for row in rows:
            if row["keys"]["type"] in names:
                key = (octave(row["keys"]["size"]), names[row["keys"]["type"]])
                count, size = expected.get(key, (0, 0))
                expected[key] = (count + row["count"], size + row["size"])
        found = {((bin["size_min"], bin["size_max"]), name): (bin[name]["count"], bin[name]["bytes"])
                 for bin in told["bins"] for name in names.values() if bin[name]["count"]}
        assert expected == found, (query, expected, found)


@test
def sizes_and_lifetimes_count_each_allocation_once():
    path = assemble("kitchen")
    with Server(path) as server:
        told = valid(server.ask("/api/sizelife"), "view-sizelife")
    expected, never = {}, {}
    for block in lifetimes(path):
        if block["end"] in ("never", "exit", "exec"):
            count, size = never.get(octave(block["size"]), (0, 0))
            never[octave(block["size"])] = (count + 1, size + block["size"])
        else:
            key = (octave(block["size"]), octave(block["end_ns"] - block["begin_ns"]))
            count, size = expected.get(key, (0, 0))
            expected[key] = (count + 1, size + block["size"])
    assert expected and never
    assert expected == {((cell["size_min"], cell["size_max"]),
                         (cell["lifetime_min_ns"], cell["lifetime_max_ns"])):
                        (cell["count"], cell["bytes"]) for cell in told["cells"]}
    assert never == {(cell["size_min"], cell["size_max"]): (cell["count"], cell["bytes"])
                     for cell in told["never"]}


@test
def a_buffer_that_realloc_doubles_is_one_peak():
    steps = "".join(f"@{1000 + 100 * k} t realloc s {k << 32:#x} -> {k + 1 << 32:#x} {65536 << k}\n" for k in range(1, 8))
    path = assemble("doubling", "process p pid=1\nthread t\nstack s \"f\"\n@1000 t malloc s 0x100000000 65536\n"
                    f"{steps}@5000 t free 0x800000000\n@6000 end p exit=0\nend\n")
    with Server(path) as server:
        told = valid(server.ask("/api/peaks"), "view-peaks")["peaks"]
        equal([(8 << 20, 8 << 20, 1700)], [(peak["bytes"], peak["rise_bytes"], peak["time_ns"]) for peak in told])


def levels_of_buckets(steps, duration, count):
    """The lowest and highest level of each bucket, the one that it begins with included, from levels by time."""
    found, level, at = [], 0, 0
    for bucket in range(count):
        lowest = highest = level
        while at < len(steps) and (steps[at][0] * count <= duration * (bucket + 1) or bucket + 1 == count):
            level = steps[at][1]
            lowest, highest = min(lowest, level), max(highest, level)
            at += 1
        found.append((lowest, highest, level))
    return found


@test
def a_realloc_is_one_step_of_every_level():
    """What reads levels agrees on a buffer that grows, shrinks and grows again, beside small blocks of another stack."""
    choose = random.Random(5)
    lines, steps, level, size, address = [], [(0, 0)], 0, 1000, 1 << 32
    lines.append(f"@1000 t malloc s {address:#x} {size}")
    steps.append((1000, size))
    level = size
    small = []
    for k in range(2, 3000):
        time = 1000 * k
        if choose.random() < 0.3:
            address += 1 << 24
            new = max(1, size + choose.randrange(-3000, 4097))
            lines.append(f"@{time} t realloc s {address - (1 << 24):#x} -> {address:#x} {new}")
            level += new - size
            size = new
        elif small and choose.random() < 0.5:
            block, bytes_ = small.pop()
            lines.append(f"@{time} t free {block:#x}")
            level -= bytes_
        else:
            small.append((0x10000 + 128 * k, choose.randrange(1, 100)))
            lines.append(f"@{time} t malloc u {small[-1][0]:#x} {small[-1][1]}")
            level += small[-1][1]
        steps.append((time, level))
    path = assemble("moved", 'process p pid=1\nthread t\nstack s "buffer"\nstack u "other"\n' + "\n".join(lines) +
                    "\n@3000000 end p exit=0\nend\n")
    top = max(level for _, level in steps)
    equal(top, json.loads(command("report", path))["heap"]["peak_bytes"])
    for index in ("never", "always", "tiny"):
        os.environ["TIDEMARK_INDEX"] = index
        with Server(path) as server:
            del os.environ["TIDEMARK_INDEX"]
            equal(top, server.ask("/api/view")["peak"]["heap"]["bytes"])
            equal(top, max(peak["bytes"] for peak in valid(server.ask("/api/peaks"), "view-peaks")["peaks"]))
            for count in (7, 60, 900):
                expected = levels_of_buckets(steps, 3000000, count)
                # Of all there is, from the index's levels: borders of long buckets may be moved.
                told = valid(server.ask(f"/api/timeline?buckets={count}"), "view-timeline")
                equal(min(low for low, _, _ in expected[1:-1]), min(told["low_bytes"][1:-1]))
                equal(top, max(told["peak_bytes"]))
                # With a filter, step by step.
                told = valid(server.ask(f"/api/timeline?buckets={count}&size=1.."), "view-timeline")
                equal(expected[:-1], list(zip(told["low_bytes"], told["peak_bytes"], told["end_bytes"]))[:-1])


@test
def peaks_are_the_tops_of_the_curve():
    path = exercise2()
    with Server(path) as server:
        told = valid(server.ask("/api/peaks?layer=vm"), "view-peaks")
        tops = [peak for peak in told["peaks"] if peak["rise_bytes"] >= 10 << 20]
        assert len(tops) == 10, told  # each of the ten buffers
        assert all(a["time_ns"] < b["time_ns"] for a, b in zip(tops, tops[1:]))
        high = max(peak["bytes"] for peak in tops)
        assert high == server.ask("/api/view")["peak"]["vm"]["bytes"]
        assert len(server.ask("/api/peaks?layer=vm&n=3")["peaks"]) == 3
        at = tops[3]["time_ns"]
        there = server.ask(f"/api/window?by=none&layer=vm&from={at}ns&to={at}ns")["total"]
        assert abs(there["size"] - tops[3]["bytes"]) <= 10 << 20


@test
def cumulative_resident_and_the_largest_free_block():
    path = exercise2()
    with Server(path) as server:
        told = valid(server.ask("/api/timeline?layer=cumulative&buckets=30"), "view-timeline")
        assert told["peak_bytes"][-1] == 130000 and told["most_count"][-1] == 1200
        assert told["peak_bytes"] == sorted(told["peak_bytes"])
        rss = valid(server.ask("/api/timeline?layer=rss&buckets=30"), "view-timeline")
        highest = max(value for value in rss["peak_bytes"] if value)
        assert highest > 10 << 20
        # The snapshot at the peak lies between two samples.
        assert highest >= server.ask("/api/reconcile?at=peak")["statm_bytes"]
        curve = valid(server.ask("/api/curve?buckets=30"), "view-timeline")
        assert curve["layer"] == "largest-free" and max(filter(None, curve["peak_bytes"])) > 1 << 40


@test
def what_was_not_recorded_is_told_so():
    with Server(assemble("kitchen")) as server:
        for target in ("/api/timeline?layer=vm", "/api/timeline?layer=rss", "/api/curve",
                       "/api/map", "/api/reconcile"):
            server.refused(target, 409, "not-recorded")


@test
def an_empty_trace_has_answers_too():
    with Server(assemble("nothing")) as server:
        valid(server.ask("/api/view"), "view")
        assert valid(server.ask("/api/window"), "window")["rows"] == []
        valid(server.ask("/api/tree"), "window-tree")
        assert valid(server.ask("/api/histogram"), "view-histogram")["bins"] == []


@test
def a_trace_that_was_cut_is_answered_with_a_warning():
    with open(assemble("kitchen"), "rb") as file:
        whole = file.read()
    with open("cut.tide", "wb") as file:
        file.write(whole[:len(whole) - 20])
    with Server("cut.tide") as server:
        view = server.ask("/api/view")
        assert not view["complete"] and "not whole" in view["warnings"][0], view
        assert not server.ask("/api/window")["complete"]


# ---- hostile text, sources ----

EVIL = '</script><script>alert(1)</script>'


@test
def names_are_text_whatever_they_hold():
    names = [EVIL, '\\"quoted\\"', "tab\\there", "ünïcödé", "a\\nb", "%s%n", "x" * 3000]
    lines = [f'stack s{i} "{name}" < "main"' for i, name in enumerate(names)]
    events = [f"+1 t malloc s{i} 0x{i + 1}000 {i + 1}" for i in range(len(names))]
    path = assemble("hostile", "\n".join([
        'process p pid=1 exe="/bin/<img src=x onerror=alert(1)>"', 'thread t p tid=1 "<b>"', *lines,
        *events, "end"]) + "\n")
    with Server(path) as server:
        for target in ("/api/window?by=function", "/api/tree?kind=leaf", "/api/view", "/api/info",
                       "/api/active?n=0", "/api/growth"):
            answer = server.get(target)
            assert answer.status == 200, (target, answer.body)
            assert answer.headers["content-type"].startswith("application/json")
            assert answer.headers["x-content-type-options"] == "nosniff"
            answer.json()
        rows = server.ask("/api/window?by=function")["rows"]
        found = {row["keys"]["function"] for row in rows}
        assert EVIL in found and "ünïcödé" in found and '"quoted"' in found, found
        for name in found:
            one = server.ask("/api/window?by=none&row=" + quote("function:" + name, safe=""))
            assert one["total"]["count"] == 1, name


@test
def a_source_is_shown_where_the_trace_names_it_and_nowhere_else():
    os.makedirs("root/sub", exist_ok=True)
    here = os.path.abspath("named.c")
    for path in (here, "root/sub/moved.c", "root/other.c"):
        with open(path, "w", encoding="utf-8") as file:
            file.write("".join(f"line {number}\n" for number in range(1, 101)))
    with open("secret", "w", encoding="utf-8") as file:
        file.write("secret\n")
    with open("root/binary.c", "wb") as file:
        file.write(b"\0\1\2")
    os.mkfifo("root/pipe.c")
    secret = os.path.abspath("secret")
    named = [here, "/build/sub/moved.c", "/etc/shadow-is-not-here", "../secret",
             "root/../../secret", "binary.c", "pipe.c", "sub"]
    frames = "".join(f'frame f_{i} 0x{i + 1}0\nname f_{i} "work{i}" "{name}":50\nstack s_{i} f_{i}\n'
                     for i, name in enumerate(named))
    events = "".join(f"+1 t malloc s_{i} 0x{i + 1}000 {i + 1}\n" for i in range(len(named)))
    path = assemble("source", "process p pid=1\nthread t p tid=1\n" + frames + events + "end\n")
    with Server(path, "--source-root", "root") as server:
        answer = server.get("/api/source?module=&file=" + quote(here) + "&around=50&lines=3")
        assert answer.status == 200 and answer.body == b"line 49\nline 50\nline 51\n", answer.body
        assert answer.headers["x-tidemark-first-line"] == "49"
        assert answer.headers["content-type"].startswith("text/plain")
        answer = server.get("/api/source?module=&file=/build/sub/moved.c&lines=2")
        assert answer.body == b"line 1\nline 2\n", answer.body
        for file in (secret, "/etc/passwd", "root/other.c", *named[2:]):
            server.refused("/api/source?module=&file=" + quote(file), 404, "path")
        server.refused("/api/source?module=/bin/sh&file=" + quote(here), 404, "path")
        server.refused("/api/source?module=", 400, "usage")
    with Server(path) as server:
        server.refused("/api/source?module=&file=/build/sub/moved.c", 404, "path")


@test
def how_far_a_question_is_can_be_asked_while_it_is_answered():
    with Server(long_trace(), "--memory", "64M") as server:
        equal([], valid(server.ask("/api/progress"), "view-progress")["questions"])
        slow, done, seen = copy.copy(server), threading.Event(), []

        def ask():
            for _ in range(40):
                for question in ("active?at=90%25", "growth", "transients"):
                    slow.get(f"/api/{question}{'&' if '?' in question else '?'}lane=slow")
                if done.is_set():
                    return

        slow.connection = None
        asking = threading.Thread(target=ask)
        asking.start()
        while asking.is_alive() and len({one["done"] for one in seen}) < 4:
            for one in valid(server.ask("/api/progress"), "view-progress")["questions"]:
                equal(("slow", False), (one["lane"], one["waits"]))
                if one["doing"]:
                    seen.append(one)
        done.set()
        asking.join()
        slow.connection.close()
        check(len({one["done"] for one in seen}) >= 4, seen)
        check(all(0 <= one["done"] <= 1 for one in seen) and any(one["left_ns"] for one in seen), seen)


@test
def the_memory_that_was_given_is_enough_for_all_questions_at_once():
    questions = ["window?by=stack", "window?by=lifetime&n=2000", "tree?kind=callers", "growth",
                 "transients", "peaks", "active?at=50%25", "sizelife", "timeline?layer=cumulative",
                 "info", "histogram", "window?by=size,thread&details=1"]
    with Server(long_trace(), "--memory", "64M") as server:
        def ask(question):
            one = copy.copy(server)
            one.connection = None
            equal(200, one.get("/api/" + question).status, question)
            one.connection.close()

        asking = [threading.Thread(target=ask, args=(question,)) for question in questions * 2]
        for thread in asking:
            thread.start()
        for thread in asking:
            thread.join()
        with open(f"/proc/{server.process.pid}/status", encoding="ascii") as file:
            peak = int(re.search(r"VmHWM:\s+(\d+)", file.read())[1]) << 10
        print(f"# {peak >> 20} MiB resident at most")
        check(peak <= 64 << 20, f"{peak >> 20} MiB were resident, of 64")


main()
