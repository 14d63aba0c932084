#!/usr/bin/env python3
# timeout: 300
# parallel: yes
"""`tidemark window` against a model that goes through a list of all lifetimes, on random traces.

The traces have several processes, threads, heaps, reallocs, frees of nothing known, exits, execs,
ticks that hold many events, and marks inside of them. Every row of every table is compared, with
every figure. The classes are also computed by SQL, from the lifetimes as the command lists them.
"""
import collections
import csv
import io
import itertools
import json
import os
import random
import sqlite3
import subprocess

from libanswer import TIDEMARK, answer, assemble, run
from libtests import main, test


def window(path, *words):
    return answer("window", path, *words)


def refused(because, *words, code=2):
    done = run("window", *words, check=code)
    assert done.stdout == "" and done.stderr.count("\n") == 1, done
    assert because in done.stderr, (because, done.stderr)


# ---- random traces, and their lifetimes ----

FRAMES = {"s1": ["malloc_wrapper", "parse", "main"], "s2": ["grow", "parse", "main"],
          "s3": ["draw", "main"], "s4": ["xmalloc", "draw", "main"]}
FACES = {"s1": "malloc_wrapper", "s2": "grow", "s3": "draw", "s4": "draw", None: "(no stack)"}
NEVER = 1 << 60


class Life:
    def __init__(self, **fields):
        self.end = self.exit = NEVER
        self.end_ns = self.exit_kind = None
        self.kind = "never"
        self.__dict__.update(fields)

    def level_end(self):
        return min(self.end, self.exit)


class Trace:
    """Writes a random trace, and knows what is in it. `at` numbers the items from 1."""

    def __init__(self, path, seed, items=400):
        self.dice = random.Random(seed)
        self.path = path
        self.lines, self.lives, self.orphans, self.marks = [], [], [], []
        self.times = [0]
        self.at, self.now, self.next_address = 1, 0, 0x1000
        self.live = {}
        self.define()
        for _ in range(items):
            self.step()
        self.lines.append(f"end duration={self.now + 100}")
        self.duration = self.now + 100
        with open("random.txt", "w") as file:
            file.write("\n".join(self.lines) + "\n")
        run("dump", "--assemble", "random.txt", "-o", path, "--force")

    def define(self):
        self.threads = {"t": ("p", 100), "u": ("p", 101), "v": ("q", 200), "w": ("r", 200)}
        self.pids = {"p": 100, "q": 200, "r": 200}
        self.ids = {"p": 0, "q": 1, "r": 2}
        self.lines += ["trace command=random", "process p pid=100 exe=/bin/one",
                       "process q pid=200 exe=/bin/two",
                       "process r pid=200 generation=1 exe=/bin/three"]
        self.lines += [f"thread {name} {process} tid={tid} \"{name}\""
                       for name, (process, tid) in self.threads.items()]
        self.lines += ["heap pool p \"pool\"", "heap win p handle=0x1f0000"]
        for name, frames in FRAMES.items():
            self.lines.append(f"stack {name} " + " < ".join(frames))
        self.alive = ["p", "q"]

    def item(self, text):
        if self.dice.random() < 0.3:
            self.now += self.dice.choice([1, 10, 100])
        self.lines.append(f"@{self.now} {text}")
        if text.startswith("mark"):
            return
        self.times.append(self.now)
        self.at += 1

    def begin(self, thread, heap, stack, address, size, realloc):
        process = self.threads[thread][0]
        life = Life(process=process, thread=thread, heap=heap, stack=stack, address=address,
                    size=size, begin=self.at, begin_ns=None, realloc=realloc)
        self.lives.append(life)
        self.live[process, heap, address] = life
        return life

    def end(self, key, kind):
        life = self.live.pop(key)
        life.end, life.kind = self.at, kind
        return life

    def step(self):
        dice = self.dice
        choice = dice.random()
        threads = [name for name, (process, _) in self.threads.items() if process in self.alive]
        thread = dice.choice(threads)
        process = self.threads[thread][0]
        stack = dice.choice(list(FRAMES) + [None])
        size = dice.choice([0, 8, 8, 40, 100, 1000])
        mine = [key for key in self.live if key[0] == process]
        if choice < 0.04:
            name = dice.choice(["load", "step", "step"])
            self.item(f"mark {process} {thread} \"{name}\"")
            self.marks.append((name, self.at, self.now))
        elif choice < 0.06:
            self.orphans.append((self.at, thread))
            self.item(f"{thread} free 0x{dice.randrange(1, 64):x}")
        elif choice < 0.07 and "q" in self.alive:
            self.leave("q", "exec")
        elif choice < 0.075 and "r" in self.alive and len(self.alive) > 1:
            self.leave("r", "exit")
        elif choice < 0.09 and process == "p":
            heap = dice.choice(["pool", "win"])
            for key in [key for key in mine if key[1] == heap]:
                self.end(key, "destroy")
            self.item(f"{thread} heap-reset {heap}")
        elif choice < 0.5 or not mine:
            heap = dice.choice(["malloc", "malloc", "pool", "win"]) if process == "p" else "malloc"
            self.next_address += 0x1000
            life = self.begin(thread, heap, stack, self.next_address, size, False)
            what = "malloc" if heap == "malloc" else "heap-alloc"
            self.item(f"{thread} {what}{' ' + stack if stack else ''}"
                      f"{'' if heap == 'malloc' else ' ' + heap} 0x{life.address:x} {size}")
            life.begin_ns = self.now
        else:
            key = dice.choice(mine)
            heap = key[1]
            if heap == "malloc" and dice.random() < 0.25:
                old = self.end(key, "realloc")
                self.next_address += 0x1000
                address = dice.choice([old.address, self.next_address])
                life = self.begin(thread, heap, stack, address, size, True)
                self.item(f"{thread} realloc{' ' + stack if stack else ''} 0x{old.address:x} -> "
                          f"0x{address:x} {size}")
                life.begin_ns = old.end_ns = self.now
                return
            life = self.end(key, "free")
            what = "free" if heap == "malloc" else "heap-free " + heap
            self.item(f"{thread} {what} 0x{life.address:x}")
        for life in self.lives:
            if life.end == self.at - 1 and life.end_ns is None:
                life.end_ns = self.now

    def leave(self, process, how):
        for key in [key for key in self.live if key[0] == process]:
            life = self.live.pop(key)
            life.exit, life.exit_kind, life.kind = self.at, how, how
        self.item(f"end {process} " + ("exec" if how == "exec" else "exit=0"))
        for life in self.lives:
            if life.exit == self.at - 1 and life.end_ns is None:
                life.end_ns = self.now
        self.alive.remove(process)
        if process == "q":
            self.alive.append("r")

    # ---- the model ----

    def edge_at(self, time):
        """Behind the last item at or before `time`."""
        return sum(1 for moment in self.times if moment <= time)

    def edges(self, rng):
        """A random window: words for the command line, and its edges."""
        def one():
            named = [mark for mark in self.marks if mark[0] == "step"]
            if named and rng.random() < 0.5:
                which = rng.randrange(len(named))
                return f"mark:step#{which + 1}", named[which][1]
            time = rng.randrange(0, self.duration + 1)
            return f"{time}ns", self.edge_at(time)
        while True:
            (a, from_), (b, to) = one(), one()
            if from_ <= to and self.time_of(a) <= self.time_of(b):
                return ["--from", a, "--to", b], from_, to

    def time_of(self, word):
        if word.startswith("mark"):
            return [m for m in self.marks if m[0] == "step"][int(word.split("#")[1]) - 1][2]
        return int(word[:-2])

    def keys(self, life, keys, type_, phase):
        impact = {"AIFI": "transient", "AOFO": "persistent"}.get(type_, "impacting")
        values = {"process": self.pids[life.process], "layer": "heap",
                  "heap": "0x1f0000" if life.heap == "win" else life.heap,
                  "thread": self.threads[life.thread][1], "owner": "heap",
                  "module": "(no file)" if life.stack else "(no stack)",
                  "function": FACES[life.stack], "line": FACES[life.stack], "stack": tuple(FRAMES.get(life.stack, ())),
                  "impact": impact, "type": type_, "size": life.size, "mark": phase,
                  "lifetime": life.address}
        found = tuple(values[key] for key in keys)
        return found + ((self.ids[life.process],) if "process" in keys else ())

    def rows(self, keys, from_, to, keeps=lambda life, type_: True, exit_frees=False, pools=False):
        """Key -> figures, and the total's. `pools`: heaps were asked for by their names."""
        groups, everything = collections.defaultdict(list), []
        if "heap" not in keys and not pools:
            everyone, keeps = keeps, lambda life, type_: life.heap != "pool" and everyone(life, type_)
        phases = [(None, from_, to)]
        if "mark" in keys:
            phases = self.phases(from_, to)
        for name, first, last in phases:
            for life in self.lives:
                type_ = classify(life, first, last, exit_frees)
                if type_ and keeps(life, type_):
                    groups[self.keys(life, keys, type_, name)].append((life, type_, first, last))
        for life in self.lives:
            type_ = classify(life, from_, to, exit_frees)
            if type_ and keeps(life, type_):
                everything.append((life, type_, from_, to))
        return {key: self.figures(group) for key, group in groups.items()}, \
            self.figures(everything)

    def phases(self, from_, to):
        found, name, seen = [], "(begin)", collections.Counter()
        start, start_ns = from_, self.span[0]
        count = collections.Counter(mark[0] for mark in self.marks)
        for mark, at, now in self.marks + [(None, to, self.span[1])]:
            seen[mark] += 1
            if mark is not None and at >= to:
                continue
            # One that was set when the window begins names the phase that it begins in.
            if mark is None or at > from_ or (at == from_ and now > self.span[0]):
                if start < at or start_ns < now:
                    found.append((name, start, at))
                start, start_ns = at, now
            name = mark if count[mark] == 1 else f"{mark}#{seen[mark]}"
        return found

    def figures(self, group):
        if not group:
            return dict.fromkeys(("count", "size", "impacting_size", "allocated", "freed"), 0)
        _, _, from_, to = group[0]
        size = lambda *types: sum(life.size for life, type_, _, _ in group if type_ in types)
        born = [life for life, type_, _, _ in group if type_[:2] == "AI"]
        freed = sorted(life.end_ns - life.begin_ns for life, _, _, _ in group
                       if from_ <= life.end < to)
        level = blocks = peak = peak_blocks = most = 0
        changes = collections.defaultdict(list)
        for life, _, _, _ in group:
            if life.level_end() < from_:
                continue  # outstanding, but its process was gone before
            changes[max(life.begin, from_ - 1)].append((life.size, 1))
            if life.level_end() < to:
                changes[life.level_end()].append((-life.size, -1))
        for at in sorted(changes):
            level += sum(change[0] for change in changes[at])
            blocks += sum(change[1] for change in changes[at])
            most = max(most, blocks)
            if level > peak or at < from_:
                peak, peak_blocks = level, blocks
        return {"count": len(group), "size": size("AIFI", "AIFO", "AOFI", "AOFO"),
                "impacting_size": size("AIFO") - size("AOFI"),
                "allocated": size("AIFI", "AIFO"), "freed": size("AIFI", "AOFI"),
                "peak_size": peak, "peak_count": peak_blocks, "most_count": most,
                "first_ns": min((life.begin_ns for life in born), default=None),
                "last_ns": max((life.begin_ns for life in born), default=None),
                "lifetime_median_ns": freed[(len(freed) - 1) // 2] if freed else None,
                "lifetime_p99_ns": freed[(len(freed) - 1) * 99 // 100] if freed else None}


def classify(life, from_, to, exit_frees):
    end = min(life.end, life.exit) if exit_frees else life.end
    if from_ == to:
        return "AOFO" if life.begin < from_ <= end else None
    if life.begin >= to or end < from_:
        return None
    return ("AI" if life.begin >= from_ else "AO") + ("FI" if end < to else "FO")


def key_of(row, by):
    keys = dict(row["keys"])
    assert set(keys) == set(by), (keys, by)
    if "stack" in keys:
        keys["stack"] = tuple(frame["function"] for frame in keys["stack"])
    if "lifetime" in keys:
        keys["lifetime"] = int(keys["lifetime"]["address"], 16)
    found = tuple(keys[key] for key in by)
    return found + ((row["process_id"],) if "process" in by else ())


def compare(trace, by, words, from_, to, filters=(), **more):
    found = window(trace.path, *words, *filters, *(["--by", ",".join(by)] if by else
                                                   ["--by", "none"]))
    trace.span = (trace.time_of(words[1]), trace.time_of(words[3])) \
        if words and words[0] == "--from" else (0, trace.duration)
    rows, total = trace.rows(by, from_, to, pools="--heap" in filters, **more)
    case = (trace.path, by, words, filters)
    mine = [row for row in found["rows"] if row["count"]]
    if by:
        assert {key_of(row, by) for row in mine} == set(rows), \
            (case, {key_of(row, by) for row in mine} ^ set(rows))
        assert len(mine) == len(rows), case
    for row in mine:
        expected = rows[key_of(row, by)]
        wrong = {name: (value, row[name]) for name, value in expected.items()
                 if row[name] != value}
        assert not wrong, (case, row["keys"], wrong)
    if "layer" in by:
        assert found["total"] is None, case
        return found
    wrong = {name: (value, found["total"][name]) for name, value in total.items()
             if found["total"][name] != value}
    assert not wrong, (case, "total", wrong)
    if "mark" not in by and mine:
        for name in ("count", "size", "impacting_size", "allocated", "freed"):
            assert sum(row[name] for row in mine) == total[name], (case, name)
    return found


KEYS = ["process", "layer", "heap", "thread", "owner", "module", "function", "line", "stack", "impact",
        "type", "size", "mark"]


@test
def every_row_by_every_key_equals_the_model():
    for seed in range(4):
        trace = Trace(f"r{seed}.tide", seed)
        rng = random.Random(seed)
        for key in [[]] + [[key] for key in KEYS]:
            words, from_, to = trace.edges(rng)
            compare(trace, key, words, from_, to)
        for _ in range(25):
            by = rng.sample(KEYS, rng.randrange(1, 5))
            words, from_, to = trace.edges(rng)
            compare(trace, by, words, from_, to)
        compare(trace, ["impact", "stack"], [], 1, trace.at)


@test
def the_end_of_a_process_frees_only_when_asked():
    for seed in range(4):
        trace = Trace(f"e{seed}.tide", 100 + seed)
        rng = random.Random(seed)
        for by in (["type"], ["process", "impact"], ["stack"], []):
            words, from_, to = trace.edges(rng)
            words = [] if seed == 0 else words
            from_, to = (1, trace.at) if seed == 0 else (from_, to)
            found = compare(trace, by, words + ["--exit-frees"], from_, to, exit_frees=True)
            plain = window(trace.path, *words, "--by", "none")["total"]
            for how in ("exit", "exec"):
                gone = [life.size for life in trace.lives
                        if life.exit_kind == how and life.heap != "pool" and from_ <= life.exit < to]
                for total in (found["total"], plain):
                    assert total["by_" + how] == {"count": len(gone), "bytes": sum(gone)}, how
            reset = [life.size for life in trace.lives
                     if life.kind == "destroy" and life.heap != "pool" and from_ <= life.end < to]
            assert plain["by_destroy"] == {"count": len(reset), "bytes": sum(reset)}


@test
def filters_leave_out_what_they_say():
    trace = Trace("f.tide", 31, items=600)
    rng = random.Random(5)
    lifetime = lambda life: (trace.duration if life.end_ns is None else life.end_ns) - \
        life.begin_ns
    for keeps, filters in [
            (lambda l, t: l.size == 8, ["--size", "8"]),
            (lambda l, t: 1 <= l.size <= 100, ["--size", "1..100"]),
            (lambda l, t: l.process == "p", ["--process", "100"]),
            (lambda l, t: l.process in "qr", ["--process", "two", "--process", "three"]),
            (lambda l, t: l.thread == "u", ["--thread", "101"]),
            (lambda l, t: l.heap == "pool", ["--heap", "pool"]),
            (lambda l, t: l.heap != "malloc", ["--heap", "pool", "--heap", "0x1f0000"]),
            (lambda l, t: l.stack in ("s1", "s2"), ["--frame", "^parse$"]),
            (lambda l, t: l.stack in ("s1", "s2", None), ["--not-frame", "draw"]),
            (lambda l, t: lifetime(l) < 500, ["--lifetime", "<500ns"]),
            (lambda l, t: lifetime(l) >= 100, ["--lifetime", "100ns.."]),
            (lambda l, t: t == "AIFI", ["--impact", "transient"]),
            (lambda l, t: t in ("AIFO", "AOFI"), ["--impact", "impacting"]),
            (lambda l, t: t in ("AOFO", "AOFI"), ["--impact", "AOFO", "--impact", "aofi"]),
            (lambda l, t: l.size > 8 and l.thread != "u" and t != "AIFI" and l.stack == "s3",
             ["--size", ">8", "--thread", "t", "--thread", "v", "--thread", "w", "--impact",
              "impacting", "--impact", "persistent", "--not-frame", "xmalloc", "--frame",
              "draw"])]:
        for by in ([], ["stack"], ["type"], ["impact", "size"]):
            words, from_, to = trace.edges(rng)
            compare(trace, by, words, from_, to, filters=filters, keeps=keeps)


@test
def impacting_size_is_what_the_level_changed_by():
    trace = Trace("i.tide", 77, items=500)
    rng = random.Random(9)
    for _ in range(12):
        words, _, _ = trace.edges(rng)
        by = rng.choice(["stack", "process,heap", "size", "thread,function"])
        key = lambda row: json.dumps(row["keys"]) + str(row.get("process_id"))
        rows = {key(row): row["impacting_size"]
                for row in window(trace.path, *words, "--by", by)["rows"]}
        outs = []
        for moment in (words[1], words[3]):
            at = window(trace.path, "--from", moment, "--to", moment, "--by", by)
            assert all(row["size"] == row["peak_size"] for row in at["rows"] if row["count"])
            outs.append({key(row): row["size"] for row in at["rows"]})
        # What lives at a moment leaves out who has exited; the classes do not.
        if trace.alive == ["p", "q"]:
            for name in set(outs[0]) | set(outs[1]):
                assert rows.get(name, 0) == outs[1].get(name, 0) - outs[0].get(name, 0)
        halves = window(trace.path, words[0], words[1], "--to", words[3], "--by", "mark")
        assert sum(row["impacting_size"] for row in halves["rows"]) == \
            halves["total"]["impacting_size"]


@test
def sql_finds_the_same_classes():
    trace = Trace("s.tide", 5, items=700)
    lives = window(trace.path, "--by", "process,heap,type,lifetime")
    database = sqlite3.connect(":memory:")
    database.execute("create table life (pid, heap, size, born, died, thread)")
    for row in lives["rows"]:
        if not row["count"]:
            continue
        life = row["keys"]["lifetime"]
        ended = life["end"] in ("free", "realloc", "lost", "destroy")
        database.execute("insert into life values (?, ?, ?, ?, ?, ?)",
                         (row["keys"]["process"], row["keys"]["heap"], life["size"],
                          life["begin_ns"], life["end_ns"] if ended else None, life["thread"]))
    assert database.execute("select count(*) from life").fetchone()[0] == len(trace.lives)
    query = """
        select pid, heap, case when born > :t0 then 'AI' else 'AO' end ||
                          case when died is not null and died <= :t1 then 'FI' else 'FO' end type,
               count(*), sum(size)
          from life where born <= :t1 and (died is null or died > :t0) group by 1, 2, 3"""
    rng = random.Random(3)
    for _ in range(20):
        t0, t1 = sorted(rng.sample(range(0, trace.duration), 2))
        expected = {tuple(row[:3]): row[3:] for row in
                    database.execute(query, {"t0": t0, "t1": t1})}
        found = window(trace.path, "--from", f"{t0}ns", "--to", f"{t1}ns", "--by",
                       "process,heap,type")
        mine = collections.Counter()
        sizes = collections.Counter()
        for row in found["rows"]:
            if row["count"]:
                key = tuple(row["keys"][name] for name in ("process", "heap", "type"))
                mine[key] += row["count"]
                sizes[key] += row["size"]
        assert {key: (mine[key], sizes[key]) for key in mine} == expected, (t0, t1)


@test
def single_allocations_have_all_that_is_known():
    trace = Trace("l.tide", 12)
    rng = random.Random(1)
    for by in (["lifetime"], ["process", "lifetime"], ["impact", "stack", "lifetime"]):
        words, from_, to = trace.edges(rng)
        found = window(trace.path, *words, "--by", ",".join(by))
        expected = [life for life in trace.lives
                    if life.heap != "pool" and classify(life, from_, to, False)]
        assert len([row for row in found["rows"] if row["count"]]) == len(expected)
        known = collections.Counter(
            (life.begin_ns, life.address, life.size, life.kind, life.end_ns, life.realloc,
             trace.threads[life.thread][1], tuple(FRAMES.get(life.stack, ())))
            for life in expected)
        told = collections.Counter()
        for row in found["rows"]:
            if not row["count"]:
                continue
            life = row["keys"]["lifetime"]
            told[(life["begin_ns"], int(life["address"], 16), life["size"], life["end"],
                  life["end_ns"], life["reallocated"], life["thread"],
                  tuple(frame["function"] for frame in life["stack"]))] += 1
            assert row["size"] == life["size"] and row["count"] == 1
        assert told == known, (told - known, known - told)


def children_of(found):
    """Rows of single allocations, by what they are below."""
    children = collections.defaultdict(list)
    for row in found["rows"]:
        if not row["orphan_frees"]:
            above = {key: value for key, value in row["keys"].items() if key != "lifetime"}
            children[json.dumps([above, row.get("process_id")])].append(row)
    return children


@test
def single_allocations_that_are_shown_are_the_first_of_all():
    # Of each parent, however few are looked at; and what is left out is counted.
    rng = random.Random(3)
    for seed in (31, 32):
        trace = Trace("s.tide", seed)
        for by in (["size", "lifetime"], ["lifetime"], ["stack", "lifetime"],
                   ["impact", "size", "lifetime"], ["process", "type", "lifetime"],
                   ["mark", "lifetime"]):
            words = trace.edges(rng)[0] if rng.random() < 0.7 else []
            words = [*words, "--by", ",".join(by)]
            words += rng.choice([[], [], ["--sort", "size"], ["--sort", "freed"], ["--exit-frees"],
                                 ["--size", "8.."], ["--impact", "transient"],
                                 ["--sort", "median"], ["--lifetime", "100ns.."]])
            every = children_of(window(trace.path, *words, "-n", "0"))
            for most in (1, 3, 7):
                found = children_of(window(trace.path, *words, "-n", str(most)))
                for parent, rows in found.items():
                    assert rows == every[parent][:most], (words, most, parent)


@test
def frees_of_nothing_known_have_a_row():
    trace = Trace("o.tide", 21)
    rng = random.Random(2)
    for by in ([], ["stack"], ["process"], ["impact", "stack"], ["mark"]):
        words, from_, to = trace.edges(rng)
        count = len([at for at, _ in trace.orphans if from_ <= at < to])
        found = window(trace.path, *words, "--by", ",".join(by) or "none")
        assert found["total"]["orphan_frees"] == count
        rows = [row for row in found["rows"] if row["orphan_frees"]]
        assert not by or sum(row["orphan_frees"] for row in rows) == count
        assert all(row["count"] == 0 and row["size"] == 0 for row in rows)
    text = run("window", trace.path).stdout
    assert text.count("frees of addresses where nothing was known to live") == 1
    # What chooses by size, stack or fate cannot know.
    for words in (("--size", "..1G"), ("--frame", "."), ("--lifetime", "..1h"), ("--impact", "transient")):
        found = window(trace.path, *words)
        assert found["total"]["orphan_frees"] is None, words
        assert all(row["orphan_frees"] is None for row in found["rows"]), words
        assert any(f"left out: {len(trace.orphans)} frees of addresses" in text
                   for text in found["warnings"]), found["warnings"]
        flat = run("window", trace.path, *words, "--csv").stdout
        assert all(row["orphan_frees"] == "" for row in csv.DictReader(flat.splitlines())), flat


@test
def sorting_cutting_and_leaving_out():
    trace = Trace("c.tide", 41)
    columns = {"impacting": "impacting_size", "size": "size", "count": "count",
               "allocated": "allocated", "freed": "freed", "peak": "peak_size",
               "peak-count": "peak_count", "most-count": "most_count", "last": "last_ns",
               "median": "lifetime_median_ns",
               "p99": "lifetime_p99_ns"}
    for word, name in columns.items():
        rows = window(trace.path, "--by", "size,stack", "--sort", word)["rows"]
        whole = window(trace.path, "--by", "stack", "-s", word)["rows"]
        assert window(trace.path, "--by", "stack", "-s", name)["rows"] == whole, name
        assert run("window", trace.path, "--by", "stack", "-c", name).stdout == \
            run("window", trace.path, "--by", "stack", "-c", word).stdout, name
        figures = [abs(row[name] or 0) for row in whole if row["count"]]
        assert figures == sorted(figures, reverse=True), (word, figures)
        sizes = [row["keys"]["size"] for row in rows if row["count"]]
        assert len(list(itertools.groupby(sizes))) == len(set(sizes)), "rows of a group together"
    rows = window(trace.path, "--by", "function", "--sort", "name")["rows"]
    names = [row["keys"]["function"] for row in rows if row["count"]]
    assert names == sorted(names)
    first = [row["first_ns"] for row in
             window(trace.path, "--by", "stack", "--sort", "first")["rows"] if row["count"]]
    assert first == sorted(first)
    cut = window(trace.path, "--by", "stack", "-n", "2")
    all_rows = window(trace.path, "--by", "stack")
    assert [row for row in cut["rows"] if row["count"]] == \
        [row for row in all_rows["rows"] if row["count"]][:2]
    assert cut["rows_left_out"] == len([r for r in all_rows["rows"] if r["count"]]) - 2
    assert cut["total"] == all_rows["total"]
    large = window(trace.path, "--by", "size", "--min-bytes", "1K")["rows"]
    assert {row["keys"]["size"] for row in large if row["count"]} == \
        {size for size in (0, 8, 40, 100, 1000)
         if sum(l.size for l in trace.lives if l.size == size) >= 1024}


@test
def lines_of_one_function_are_rows():
    with open("lines.c", "w", encoding="utf-8") as file:
        file.write("#include <stdlib.h>\nvoid *volatile kept;\nint main(void)\n{\n\tkept = malloc(100);\n"
                   "\tfor (int i = 0; i < 3; i++)\n\t\tkept = malloc(1000);\n\treturn 0;\n}\n")
    subprocess.run(["gcc", "-g", "-O0", "-o", "lines", "lines.c"], check=True)
    subprocess.run([TIDEMARK, "record", "-q", "-f", "-o", "lines.tide", "--", "./lines"], check=True)
    words = ("lines.tide", "--frame", "^main$")
    place = os.path.realpath("lines.c")
    assert {row["keys"]["line"]: (row["count"], row["size"]) for row in window(*words, "--by", "line")["rows"]} == \
        {f"{place}:5": (1, 100), f"{place}:7": (3, 3000)}
    folder = os.path.basename(os.path.dirname(place))
    said = run("window", *words, "--by", "function,line").stdout
    assert f"  {folder}/lines.c:7\n" in said and "  main\n" in said, said


@test
def csv_has_the_rows_of_json():
    trace = Trace("v.tide", 51)
    for by in ("process,impact", "heap", "none", "thread,size", "stack"):
        answer = window(trace.path, "--by", by)
        rows = list(csv.DictReader(io.StringIO(
            run("window", trace.path, "--csv", "--by", by).stdout)))
        expected = answer["rows"] if by != "none" else [answer["total"]]
        assert len(rows) == len(expected), by
        for row, wanted in zip(rows, expected):
            for name in ("count", "size", "impacting_size", "peak_size", "first_ns",
                         "lifetime_p99_ns", "orphan_frees"):
                value = "" if wanted[name] is None else str(wanted[name])
                assert row[name] == value, (by, name, row, wanted)


@test
def text_is_for_people():
    trace = Trace("t.tide", 61)
    text = run("window", trace.path).stdout
    assert "window   the beginning to the end" in text and "IMPACTING" in text
    assert "\033" not in text
    assert "\033[1m" in run("window", trace.path, "--color", "always").stdout
    assert "\033" not in run("window", trace.path, env={"TERM": "xterm"}).stdout
    words = "impacting,size,count,allocated,freed,peak,peak-count,most-count,first,last,median,p99,allocated-count"
    meanings = run("window", "--columns", "help").stdout
    assert words.split(",") == [line.split()[0] for line in meanings.splitlines()], meanings
    assert "most-count       the most blocks that were live at once\n" in meanings
    wide = run("window", trace.path, "--columns", "all").stdout
    assert wide == run("window", trace.path, "-c", words).stdout
    heading = next(line for line in wide.splitlines() if "IMPACTING" in line)
    assert heading.split() == "IMPACTING SIZE COUNT ALLOCATED FREED PEAK PEAK " \
        "COUNT MOST COUNT FIRST LAST MEDIAN P99 ALLOCATED COUNT".split()
    two = run("window", trace.path, "--from", "mark:step#2", "--to", "-1ns", "--by", "mark").stdout
    count = len([mark for mark in trace.marks if mark[0] == "step"])
    assert f"mark:step#2 of {count} (" in two, two
    live = run("window", trace.path, "--from", "peak", "--to", "peak", "--by", "stack").stdout
    assert "peak (" in live
    assert "--exit-frees counts them as freed" in text or not any(
        life.exit_kind for life in trace.lives)


@test
def a_phase_that_began_before_the_window_keeps_its_name():
    with open("phases.txt", "w", encoding="utf-8") as file:
        file.write("""process p pid=1
process q pid=2
thread t p tid=1
thread u q tid=2
@1000000 t malloc 0x1000 10
@2000000 mark p t "load"
@3000000 t malloc 0x2000 20
@3000000 u malloc 0x2000 200
@4000000 mark q u "step"
@5000000 t malloc 0x3000 30
@5000000 u malloc 0x3000 300
@6000000 mark p t "step"
@7000000 t malloc 0x4000 40
end duration=8000000
""")
    run("dump", "-a", "phases.txt", "-o", "phases.tide", "--force")
    for words, names in (([], ["(begin)", "load", "step#1", "step#2"]),
                         (["--from", "2.5ms"], ["load", "step#1", "step#2"]),
                         (["--from", "3.5ms", "--to", "5.5ms"], ["load", "step#1"]),
                         (["--from", "4.5ms", "--process", "1"], ["load", "step#2"]),
                         (["--from", "6.5ms", "--process", "2"], ["step#1"]),
                         (["--from", "mark:step#2"], ["step#2"])):
        rows = window("phases.tide", "--by", "mark", *words)["rows"]
        assert [row["keys"]["mark"] for row in rows] == names, (words, rows)


@test
def a_window_at_the_peak_holds_the_peak():
    for seed in range(3):
        trace = Trace("p.tide", 200 + seed)
        total = window(trace.path, "--by", "none")["total"]
        at = window(trace.path, "--from", "peak", "--to", "peak", "--by", "none",
                    "--exit-frees")["total"]
        assert at["size"] == total["peak_size"] and at["peak_size"] == at["size"]


# Six processes in turn, each of which leaves its block when it exits, and one that waits for them.
LEFT = "process p pid=1 exe=/bin/par\nthread p p\nstack s \"work\"\n" + "".join(
    f"process c{i} pid={i + 2} parent=p exe=/bin/child\nthread c{i} c{i}\n" for i in range(6)) + \
    "@0 start p\n@1ms p malloc s 0x10 1\n" + "".join(
        f"@{10 * i + 10}ms start c{i}\n@{10 * i + 12}ms c{i} malloc s 0x1000 {1000 + i}\n"
        f"@{10 * i + 15}ms end c{i} exit=0\n" for i in range(6)) + "@90ms end p exit=0\nend duration=90000000\n"


@test
def what_lives_at_a_moment_where_an_exit_frees_is_of_processes_that_live():
    with open("left.txt", "w") as file:
        file.write(LEFT)
    run("dump", "--assemble", "left.txt", "-o", "left.tide", "--force")
    for word, live in (("peak", 1006), ("45ms", 1), ("33ms", 1003), ("end", 0)):
        at = window("left.tide", "--from", word, "--to", word, "--by", "none", "--exit-frees")["total"]
        assert at["size"] == live, (word, at)
        assert answer("active", "left.tide", "--at", word)["heap"]["bytes"] == live, word
        tree = answer("window", "left.tide", "--from", word, "--to", word, "--tree", "leaf", "--exit-frees")
        assert tree["total"]["size"] == live, (word, tree)
        for words in (["--from", word, "--to", word], ["--to", word]):
            done = run("export", "left.tide", "--format", "folded", *words, "--exit-frees")
            assert sum(int(line.split()[-1]) for line in done.stdout.splitlines()) == live, done
            assert "ended" not in done.stderr, done


@test
def what_ended_processes_left_is_said():
    left = "2.9 KiB in 3 blocks were left by processes that had ended"
    text = run("window", "left.tide", "--from", "42ms").stdout.replace("\n         ", " ")
    assert "before, " in text and left in text, text
    assert left in " ".join(window("left.tide", "--from", "42ms")["warnings"])
    assert "ended (" not in run("window", "left.tide", "--from", "42ms", "--exit-frees").stdout
    assert "had ended" not in run("window", "left.tide").stdout
    done = run("export", "left.tide", "--format", "folded", "--to", "42ms")
    assert left in done.stderr, done
    done = run("export", "left.tide", "--format", "csv", "--exit-frees", check=2)
    assert "--exit-frees" in done.stderr, done


# 100 bytes of a mapping of 8192 are a block; a second process is the same.
BOTH_LAYERS = "".join(f"process p{i} pid={i} exe=/bin/app\nthread t{i} p{i}\n" for i in (1, 2)) + \
    "stack s work\n" + "".join(line.format(i) for line in (
        "@1ms start p{0}\n", "@2ms t{0} mmap s 0x1000000 8192 prot=3\n",
        "@3ms t{0} malloc s 0x1000010 100\n", "@4ms end p{0} exit=0\n") for i in (1, 2)) + "end\n"


@test
def layers_add_up_in_no_line():
    with open("both.txt", "w") as file:
        file.write(BOTH_LAYERS)
    run("dump", "--assemble", "both.txt", "-o", "both.tide", "--force")
    for by in ("layer", "process,layer", "layer,process"):
        text = " ".join(run("window", "both.tide", "--by", by).stdout.split())
        assert "200 B in 2 blocks of the heap lived" in text, text
        assert "16.0 KiB in 2 blocks of virtual memory lived" in text, text
        assert "16.2 KiB" not in text and "8.1 KiB" not in text, text


TWICE_MAPPED = """process p pid=1 exe="/bin/app"
thread t p
thread u p
module m p 0x1000-0x2000 bias=0x1000 "/lib/m.so"
module n p 0x8000-0x9000 bias=0x8000 "/lib/m.so"
frame g1 m 0x1234
frame g2 n 0x8234
stack s1 g1
stack s2 g2
@1ms t malloc s1 0x30 30
@2ms t free 0x30
@3ms t malloc s2 0x40 40
@4ms u malloc s1 0x50 50
end
"""


@test
def an_index_names_the_same_stack_for_a_row_of_several():
    with open("twice.txt", "w", encoding="ascii") as file:
        file.write(TWICE_MAPPED)
    run("dump", "-a", "twice.txt", "-o", "twice.tide", "--force")
    answers = [run("window", "twice.tide", "--from", "2ms", "--by", "stack", "--json",
                   env={"TIDEMARK_INDEX": how}).stdout for how in ("never", "always", "tiny")]
    assert answers[0] == answers[1] == answers[2], answers
    rows = json.loads(answers[0])["rows"]
    assert [(row["size"], row["stack_id"]) for row in rows] == [(90, 1)], rows


@test
def lifetimes_of_types_are_the_same_with_an_index():
    rng = random.Random(9)
    for seed in (81, 82):
        trace = Trace("types.tide", seed)
        for by in ("impact,stack", "stack,type", "type", "size,impact", "mark,impact,stack", "none"):
            for more in ([], ["--impact", "transient"], ["--impact", "impacting"], ["--exit-frees"],
                         ["--sort", "p99"], ["--process", "one"]):
                words = [*rng.choice([[], trace.edges(rng)[0]]), "--by", by, *more, "-c", "median,p99"]
                texts = [run("window", trace.path, *words, env={"TIDEMARK_INDEX": how}).stdout
                         for how in ("never", "always", "tiny")]
                assert texts[0] == texts[1] == texts[2], (words, texts)


@test
def a_cut_trace_is_answered_with_a_warning():
    trace = Trace("whole.tide", 71, items=300)
    with open("whole.tide", "rb") as file:
        data = file.read()
    with open("cut.tide", "wb") as file:
        file.write(data[:len(data) - 60])
    done = run("window", "cut.tide", "--json")
    assert json.loads(done.stdout)["complete"] is False
    assert "the trace is not whole" in done.stderr
    assert "warning: the trace is not whole" in run("window", "cut.tide").stdout


@test
def a_sampled_trace_is_answered_with_a_warning():
    with open("sampled.txt", "w") as file:
        file.write("trace sample=1000\nprocess p pid=1\nthread t p tid=1\n"
                   "+1 t malloc 0x1000 10\nend\n")
    run("dump", "-a", "sampled.txt", "-o", "sampled.tide")
    done = run("window", "sampled.tide", "--json", "--by", "none")
    assert json.loads(done.stdout)["sampled"] is True and "is sampled" in done.stderr
    # 10 bytes at 1,000: 1 / (1 - exp(-10 / 1000)) = 100.5 blocks, rounded down.
    total = window("sampled.tide")["total"]
    assert (total["size"], total["count"]) == (1005, 100), total
    assert "warning: the recording is sampled" in run("window", "sampled.tide").stdout


@test
def mistakes_are_told_in_one_line():
    trace = Trace("m.tide", 81)
    path = trace.path
    refused("needs a trace FILE")
    refused("no key 'stak'; did you mean 'stack'?", path, "--by", "impact,stak")
    refused("no key ''", path, "--by", "stack,")
    refused("key 'size' is given twice", path, "--by", "size,heap,size")
    refused("it can only be the last", path, "--by", "lifetime,stack")
    refused("key 'tag' needs --tags FILE", path, "--by", "tag")
    refused("no column 'siez'; did you mean 'size'?", path, "--sort", "siez")
    refused("no column 'everything'", path, "--columns", "everything")
    refused("no column 'name'", path, "--columns", "name")
    refused("--rows needs a whole number", path, "-n", "few")
    refused("--memory needs a size", path, "--memory", "lots")
    refused("--from: 'noon' is not a time", path, "--from", "noon")
    refused("is after the end of the trace", path, "--to", "1min")
    refused("is before the beginning", path, "--from", "-1min")
    refused("is after --to", path, "--from", "50%", "--to", "10%")
    refused("no mark 'stpe' in the trace; did you mean 'step'?", path, "--from", "mark:stpe")
    refused("was set", path, "--from", "mark:step#9999")
    refused("no process 'nobody'", path, "--process", "nobody")
    refused("the layers heap and vm never add up", path, "--layer", "heap", "--layer", "vm")
    refused("is not a range of sizes", path, "--size", "big")
    refused("--lifetime 0ns alone does not apply", path, "--lifetime", "0s")
    refused("unknown option --form; did you mean --from?", path, "--form", "1s")
    refused("cannot read none.xml", path, "--tags", "none.xml", code=3)
    refused("none.tide", "none.tide", code=3)
    refused("is not a tidemark trace", __file__, code=3)
    # With an index so little is refused before.
    little = ("an index needs at least 32 MiB" if os.environ.get("TIDEMARK_INDEX") == "tiny"
              else "do not fit in half of the memory")
    refused(little, path, "--by", "lifetime", "--memory", "4K", code=4)


@test
def an_empty_trace_is_a_window_too():
    found = window(assemble("nothing"))
    assert found["rows"] == [] and found["total"]["count"] == 0
    assert "total" in run("window", "nothing.tide").stdout


main()
