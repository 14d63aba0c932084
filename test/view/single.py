#!/usr/bin/env python3
# timeout: 240
# parallel: yes
"""The single file: for windows of whole buckets its cells say what the trace says, and where it is
coarser it tells; with --scrub no path is in it."""
import base64
import gzip
import json
import os
import random
import re

from libanswer import assemble, run
from libschema import valid
from libtests import main, test
from libview import exercise2


def write(path, out, *words):
    if os.path.exists(out):
        os.unlink(out)
    done = run("view", path, "--html", out, *words)
    assert done.stdout == "" and done.stderr == "", done
    with open(out, encoding="utf-8") as file:
        page = file.read()
    found = re.findall(r'<script type="application/octet-stream" id="tidemark-data">([^<]*)</script>',
                       page)
    assert len(found) == 1
    data = json.loads(gzip.decompress(base64.b64decode(found[0], validate=True)))
    assert data["schema"] == "tidemark-view-data-1"
    return page, data


class Cells:
    def __init__(self, data):
        self.data, self.cells = data, data["cells"]
        self.buckets = len(data["edges_ns"]) - 1
        assert len({len(column) for column in self.cells.values()}) == 1
        self.rows = list(zip(*(self.cells[name] for name in (
            "layer", "process", "thread", "stack", "octave", "begin", "end", "kind", "count",
            "bytes"))))

    def ask(self, p, q, key, layer=0, exit_frees=False):
        """{key: [count, size, impacting]} of the window of buckets [p, q)."""
        found = {}
        for (cell_layer, process, thread, stack, octave, begin, end, kind, count,
             size) in self.rows:
            if cell_layer != layer:
                continue
            if kind in (3, 4) and not exit_frees:
                end = self.buckets
            if begin >= q or end < p or (begin < p and end < p):
                continue
            ends = end < q
            born = begin >= p
            row = found.setdefault(key(process, thread, stack, octave, born, ends), [0, 0, 0])
            row[0] += count
            row[1] += size
            row[2] += size * (born and not ends) - size * (ends and not born)
        return {name: row for name, row in found.items() if row[0]}


def octave_of(size):
    return size if size <= 1 else 1 + (size - 1).bit_length()


def word_of(data, edge):
    """What names an edge on the command line."""
    if edge in data["mark_edges"]:
        mark = data["marks"]["marks"][data["mark_edges"].index(edge)]
        return f"mark:{mark['name']}#{mark['nth']}"
    return "begin" if edge == 0 else "end" if edge == len(data["edges_ns"]) - 1 else \
        f"{data['edges_ns'][edge]}ns"


def window(path, data, p, q, *words):
    return json.loads(run("window", path, "--json", "--from", word_of(data, p),
                          "--to", word_of(data, q), *words).stdout)["rows"]


KEYS = {
    "impact": (lambda process, thread, stack, octave, born, ends:
               "impacting" if born != ends else "transient" if born else "persistent",
               lambda keys, data, row: keys["impact"]),
    "type": (lambda process, thread, stack, octave, born, ends:
             "A" + "OI"[born] + "F" + "OI"[ends], lambda keys, data, row: keys["type"]),
    "process": (lambda process, thread, stack, octave, born, ends: process,
                lambda keys, data, row: row["process_id"]),
    "thread": (lambda process, thread, stack, octave, born, ends: thread,
               lambda keys, data, row: keys["thread"]),
    "stack": (lambda process, thread, stack, octave, born, ends: stack,
              lambda keys, data, row: row["stack_id"]),
    "size": (lambda process, thread, stack, octave, born, ends: octave,
             lambda keys, data, row: octave_of(keys["size"])),
}


def compare(path, data, p, q, by, layer, exit_frees=False):
    ours, theirs = KEYS[by]
    words = ["--by", by, "--layer", "vm" if layer else "heap"] + ["--exit-frees"] * exit_frees
    expected = {}
    for row in window(path, data, p, q, *words):
        if row["count"] == 0:
            continue
        sums = expected.setdefault(theirs(row["keys"], data, row), [0, 0, 0])
        for at, name in enumerate(("count", "size", "impacting_size")):
            sums[at] += row[name]
    found = {}
    for name, sums in Cells(data).ask(p, q, ours, layer, exit_frees).items():
        if by == "thread":
            name = data["view"]["threads"][name]["tid"]
        if by == "stack":
            name = data["stack_ids"][name]
        row = found.setdefault(name, [0, 0, 0])
        for at in range(3):
            row[at] += sums[at]
    assert expected == found, (path, p, q, by, layer, expected, found)


@test
def every_window_of_whole_buckets_is_exact():
    dice = random.Random(7)
    for path in (assemble("kitchen"), assemble("family"), assemble("crowd"), exercise2()):
        _, data = write(path, "exact.html")
        buckets = len(data["edges_ns"]) - 1
        for layer in (0, 1):
            for by in KEYS:
                p, q = sorted(dice.sample(range(buckets + 1), 2))
                compare(path, data, p, q, by, layer)
            compare(path, data, 0, buckets, "impact", layer)
            compare(path, data, 0, buckets, "type", layer, exit_frees=True)


@test
def windows_between_marks_say_what_exercise2_did():
    path = exercise2()
    _, data = write(path, "exercise2.html")
    names = [mark["name"] for mark in data["marks"]["marks"]]
    assert len(data["mark_edges"]) == len(names)

    def sums(phase, layer, function):
        p, q = (data["mark_edges"][names.index(f"ex2.{phase}.{edge}")] for edge in ("begin", "end"))
        compare(path, data, p, q, "impact", layer)
        wanted = [any(data["strings"][data["frames"]["function"][frame]] == function
                      for frame in stack) for stack in data["stacks"]]
        key = KEYS["impact"][0]
        rows = Cells(data).ask(p, q, lambda process, thread, stack, octave, born, ends:
                               key(0, 0, 0, 0, born, ends) if wanted[stack] else "other", layer)
        rows.pop("other", None)
        return rows

    assert sums("growth", 1, "commit10") == {"impacting": [1, 10485760, 10485760],
                                             "persistent": [1, 10485760, 0]}
    assert sums("last4", 1, "commit10") == {"transient": [4, 41943040, 0],
                                            "persistent": [2, 20971520, 0]}
    assert sums("heap10s", 0, "InnerLoopOperation")["impacting"] == [319, 12760, 12760]


@test
def it_has_what_the_server_would_say():
    path = exercise2()
    _, data = write(path, "whole.html")
    for key, name in [("view", "view"), ("info", "info"), ("marks", "view-marks"),
                      ("peaks", "view-peaks"), ("sizelife", "view-sizelife"),
                      ("growth", "growth"), ("transients", "transients")]:
        valid(data[key], name)
    assert data["view"]["single_file"] and not data["view"]["scrubbed"]
    assert data["view"]["coarse"]
    for layer in ("heap", "vm", "cumulative", "largest_free"):
        assert len(valid(data["timelines"][layer], "view-timeline")["peak_bytes"]) == \
            len(data["edges_ns"]) - 1 - len(data["mark_edges"])
    assert data["maps"] and all(map is None or valid(map, "map") for map in data["maps"])
    assert data["diff"] is None
    # names of stacks
    names = {data["strings"][number] for number in data["frames"]["function"]}
    assert {"InnerLoopOperation", "ManipulateTemporaryBuffer", "main"} <= names
    faces = {data["strings"][data["frames"]["function"][face]] for face in data["faces"]
             if face >= 0}
    assert "InnerLoopOperation" in faces, faces


@test
def two_traces_are_compared_in_it():
    _, data = write(assemble("kitchen"), "two.html", "--diff", assemble("family"))
    valid(data["diff"], "diff")
    valid(data["diff_timelines"]["heap"], "view-timeline")
    assert data["view"]["diff"] == "family.tide"


@test
def the_page_can_fetch_nothing():
    page, _ = write(assemble("kitchen"), "policy.html")
    found = re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', page)
    assert "connect-src 'none'" in found.group(1) and "default-src 'none'" in found.group(1)
    assert page.index(found.group(0)) < page.index("<style") < page.index("<script")
    assert not re.search(r"<(script|link|img|iframe)\b[^>]*\b(src|href)\s*=\s*[\"']?(https?:)?//",
                         page)


@test
def a_small_budget_makes_it_coarser_and_it_says_so():
    path = busy()
    full, data = write(path, "full.html")
    size = os.path.getsize("full.html")
    assert data["rest"] is None
    page = len(re.sub(r'(id="tidemark-data">)[^<]*', r"\1", full))
    budget = page + (size - page) // 3
    _, data = write(path, "small.html", "--max-bytes", str(budget))
    assert os.path.getsize("small.html") <= budget
    assert data["rest"] is not None and data["stacks"][data["rest"]] == []
    assert any("the others are one row" in line for line in data["view"]["coarse"]), data["view"]
    buckets = len(data["edges_ns"]) - 1
    for p, q in ((0, buckets), (buckets // 4, buckets // 2)):
        compare(path, data, p, q, "impact", 0)  # the sums stay exact
        compare(path, data, p, q, "size", 0)
    done = run("view", path, "--html", "none.html", "--max-bytes", "1000", check=4)
    assert "--max-bytes" in done.stderr and not os.path.exists("none.html")


def busy():
    """Many stacks, many times."""
    path = "busy.tide"
    if os.path.exists(path):
        return path
    dice = random.Random(3)
    lines = ["process p pid=7", "thread t p tid=7"]
    lines += [f'stack s_{i} "leaf{i}" < "middle{i % 50}" < "main"' for i in range(3000)]
    live, now = [], 0
    for number in range(40000):
        now += dice.randrange(1, 2000)
        if live and dice.random() < 0.45:
            lines.append(f"@{now} t free 0x{live.pop(dice.randrange(len(live))):x}")
        else:
            address = 0x100000 + number * 0x1000
            live.append(address)
            lines.append(f"@{now} t malloc s_{int(dice.random() ** 2 * 3000)} 0x{address:x} "
                         f"{dice.choice([8, 40, 100, 3000])}")
    return assemble(path.removesuffix(".tide"), "\n".join(lines + ["end"]) + "\n")


@test
def scrubbed_it_knows_no_path():
    secrets = ["hush", "secret", "private", "whisper"]
    text = f"""trace id=00000000000000000000000000000000 began=0 tick=0 host="{secrets[3]}host"
trace command="./{secrets[0]} --password {secrets[1]}" directory="/home/{secrets[0]}"
process p pid=42 exe="/home/{secrets[0]}/bin/{secrets[1]}" arg="./{secrets[0]}" arg="--{secrets[1]}"
thread t p tid=42 "worker"
module a p 0x1000-0x2000 "/opt/{secrets[2]} dir/lib{secrets[1]}.so.1"
frame f_1 a 0x1100
frame f_2 a 0x1200
name f_1 "work" "/src/{secrets[2]}/a b/{secrets[1]}.c":10
frame f_3 0x33
name f_3 "{{lambda at /src/{secrets[2]}/x.cc:3}}" "{secrets[1]}.cc":7
stack s f_1 < f_2
stack r f_3
+10 t malloc s 0x1000 64
+10 mark p t "went to /tmp/{secrets[2]}/x"
+10 t malloc r 0x2000 64
+10 t free 0x2000
+1000 end p exit=0
end
"""
    try:
        path = assemble(secrets[0], text)
    except AssertionError:  # a head that knows fewer words
        path = assemble(secrets[0], re.sub(r' host="[^"]*"| directory="[^"]*"', "", text))
    plain, _ = write(path, "plain.html")
    page, data = write(path, "scrubbed.html", "--scrub")
    text = json.dumps(data, ensure_ascii=False)
    for secret in secrets[:3]:
        assert secret not in text, (secret, [part for part in re.findall(r'"[^"]*"', text)
                                             if secret in part])
        assert secret not in page
    assert data["view"]["scrubbed"]
    strings = data["strings"]
    assert "work" in strings and any(re.fullmatch(r"path-[0-9a-f]{8}\.c", s) for s in strings)
    assert any(re.fullmatch(r"path-[0-9a-f]{8}\.so\.1", s) for s in strings), strings
    # Equal within a file, different in the next.
    exe = data["view"]["processes"][0]["exe"]
    assert exe == data["info"]["processes"][0]["exe"] and exe.startswith("path-")
    assert data["info"]["processes"][0]["args"] == ["***", "***"]
    _, again = write(path, "again.html", "--scrub")
    assert again["view"]["processes"][0]["exe"] != exe


@test
def a_file_that_is_there_is_kept_unless_told():
    path = assemble("kitchen")
    with open("there.html", "w", encoding="ascii") as file:
        file.write("mine")
    done = run("view", path, "--html", "there.html", check=3)
    assert "--force" in done.stderr
    with open("there.html", encoding="ascii") as file:
        assert file.read() == "mine"
    run("view", path, "--html", "there.html", "--force")
    assert os.path.getsize("there.html") > 1000
    done = run("view", path, "--html", "no/such/folder.html", check=3)
    assert "no/such/folder.html" in done.stderr
    assert not [name for name in os.listdir() if name.endswith(".part")]
    for words in ("--scrub",), ("--max-bytes", "1M"), ("--max-bytes", "15M"):
        done = run("view", path, *words, check=2)
        assert "--html" in done.stderr, (words, done.stderr)
    for words in ("--port", "1234"), ("--no-open",):
        done = run("view", path, "--html", "there.html", "--force", *words, check=2)
        assert words[0] in done.stderr, (words, done.stderr)


@test
def names_cannot_leave_their_place():
    evil = "</script><script>alert(1)</script><!--"
    path = assemble("evil", f'process p pid=1\nthread t p tid=1\nstack s "{evil}"\n'
                    "+1 t malloc s 0x1000 64\n+1000 t free 0x1000\nend\n")
    page, data = write(path, "evil.html")
    assert "alert(1)" not in page
    assert evil in data["strings"]


@test
def an_empty_trace_makes_a_file_too():
    _, data = write(assemble("nothing"), "nothing.html")
    assert data["cells"]["count"] == []


main()
