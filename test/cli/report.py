#!/usr/bin/env python3
# timeout: 300
# parallel: yes
"""What `tidemark report` promises on the command line, on traces of real programs and on damaged ones.

The figures of a recorded family of processes are counted a second time here, from the text of
`tidemark dump`, line by line, and both must agree on every one.
"""
import collections
import csv
import gzip
import io
import json
import os
import re
import subprocess

import libschema
from libanswer import TIDEMARK, assemble, run
from libtests import main, test


def report(path, *words, **more):
    return json.loads(run("report", path, "--json", *words, **more).stdout)


def family():
    """A shell, pipes, children that exec, and one that forks without exec."""
    path = "recorded.tide"
    if not os.path.exists(path):
        script = "ls -l / | sort | head -3; (echo one; expr 1 + 1) | cat; perl -e 'if (!fork) { " \
                 "my @a = map { $_ x 10 } 1..2000; exit 0 } wait; my %h = map { $_ => [$_] } 1..500'"
        run("record", "-o", path, "--", "/bin/sh", "-c", script)
    return path


# ---- processes ----

@test
def a_title_that_a_program_gives_itself_is_shown_from_its_beginning():
    """Of a path the last part is shown; a title has paths in it, and is none."""
    path = assemble("titles", """\
process a pid=101 exe="/usr/sbin/nginx" arg="/usr/sbin/nginx" arg="-c" arg="/etc/a.conf"
process b pid=102 parent=a start=fork exe="/usr/sbin/nginx" arg="nginx: of /a"
process c pid=103 parent=a exe="/opt/chat" arg="/opt/chat --dir=/tmp"
process d pid=104 parent=a exe="" arg="/opt/My Programs/run"
process e pid=105 parent=a start=fork exe="/usr/sbin/nginx" arg="/usr/sbin/nginx" arg="-c"
thread t a tid=101
thread u e tid=105
stack s "main"
@10 t malloc s 0x1000 100
@11 title e "nginx: to become"
@12 u malloc s 0x2000 100
@13 title e "nginx: worker in /b"
@20 end a exit=0
end
""")
    shown = re.findall(r"10\d  (.*?)  +\d", run("report", path).stdout)
    assert shown == ["nginx -c /etc/a.conf", "nginx: of /a (forked)", "chat --dir=/tmp", "run",
                     "nginx: worker in /b (forked)"], shown
    assert "nginx: worker in /b 105\n" in run("window", path, "--by", "process").stdout
    titles = [process["process_title"] for process in report(path)["trace"]["processes"]]
    assert titles == [None, None, None, None, "nginx: worker in /b"], titles
    run("strip", path, "--arguments", "-o", "stripped.tide")
    assert "worker" not in run("dump", "stripped.tide").stdout


# ---- wrappers of one's own ----

@test
def functions_that_are_folded_name_no_row():
    path = assemble("folded", """\
process a pid=101 exe="/bin/app"
thread t a tid=101
stack s "arena::take(unsigned long)" < "grab_more" < "parse" < "main"
@10 t malloc s 0x1000 100
@20 end a exit=0
end
""")
    assert " arena::take" in run("report", path).stdout
    fold = ("--fold", "arena::*", "--fold=grab_more")
    for command in ("report", "window", "growth", "findings", "active"):
        shown = run(command, path, *fold).stdout
        assert "arena" not in shown and "grab" not in shown, (command, shown)
    assert " parse " in run("report", path, *fold).stdout
    assert " arena::take" in run("report", path, *fold, "--all-frames").stdout
    run("export", path, "--format", "pprof", *fold, "-o", "folded.pb.gz")
    with gzip.open("folded.pb.gz") as file:
        assert b"|arena::.*|grab_more|" in file.read(), "pprof is asked to fold them, too"
    assert "--fold takes" in run("report", path, "--fold=", check=2).stderr


# ---- rows of several processes ----

@test
def a_row_says_how_many_processes_have_any_of_what_it_counts():
    """Both allocate; one of them keeps its blocks."""
    path = assemble("ranks", """\
process a pid=101 exe="/bin/rank"
process b pid=102 exe="/bin/rank"
thread t a tid=101
thread u b tid=102
stack s "halo" < "main"
stack w "halo" < "main"
@10 t malloc s 0x1000 100
@11 u malloc w 0x1000 100
@12 t free 0x1000
@20 end a exit=0
@20 end b exit=0
end
""")
    text = run("report", path).stdout
    live, peak = text.split("LIVE AT EXIT")[1].split("AT THE PEAK")
    assert "[rank 102]" in live and "processes]" not in live, live
    assert "[rank, 2 processes]" in peak, peak


# ---- a second count, from the text ----

class Count:
    def __init__(self):
        self.allocations = self.frees = self.reallocations = self.failed = 0
        self.allocated_bytes = self.inherited_frees = self.orphan_frees = self.lost_frees = 0
        self.temporary = [0, 0]
        self.live_at_exit = [0, 0]
        self.peak_bytes = self.peak_ns = self.level = 0


VM_KINDS = ("mmap", "munmap", "mremap", "brk", "mprotect", "madvise", "mlock", "shmat", "shmdt",
            "remap-file-pages", "mapped", "unmapped")


class Model:
    """Counts what a dumped trace says."""

    def __init__(self, text):
        self.calls = {}
        self.forked = {}
        self.thread_process = {}
        self.counts = {}
        self.total = Count()
        self.live = {}        # (process, address) -> (size, thread, stack)
        self.latest = {}      # thread -> address of its latest allocation
        self.half = {}        # thread -> what the first half of a realloc ended
        self.inherited = set()
        self.sites = collections.Counter()
        self.events = 0
        for line in text.splitlines():
            self.line(line)
        for key in list(self.live):
            self.exit(key, leaves=False)

    def line(self, line):
        word = line.split(None, 1)[0]
        if word == "process":
            label = line.split()[1]
            self.forked[label] = " start=fork" in line
            self.counts[label] = Count()
        elif word == "thread":
            _, label, process = line.split()[:3]
            self.thread_process[label] = process
        elif word.startswith("@"):
            words = line.split()
            if words[1] in self.thread_process:
                self.event(int(word[1:]), *words[1:])
            elif words[1] == "end":
                for key in [key for key in self.live if key[0] == words[2]]:
                    self.exit(key, leaves=True)

    def exit(self, key, leaves):
        size = self.live.pop(key)[0]
        for count in (self.counts[key[0]], self.total):
            count.live_at_exit[0] += 1
            count.live_at_exit[1] += size
            if leaves:
                count.level -= size

    def allocate(self, time, thread, stack, address, size):
        process = self.thread_process[thread]
        lost = self.live.pop((process, address), None)
        for count in (self.counts[process], self.total):
            if lost:
                count.lost_frees += 1
                count.level -= lost[0]
            count.allocations += 1
            count.allocated_bytes += size
            count.level += size
            if count.level > count.peak_bytes:
                count.peak_bytes, count.peak_ns = count.level, time
        self.live[process, address] = (size, thread, stack)
        self.latest[thread] = address
        self.sites[process] += 1

    def release(self, thread, address):
        process = self.thread_process[thread]
        block = self.live.pop((process, address), None)
        inherits = block is None and self.forked[process] and (process, address) not in self.inherited
        if inherits:
            self.inherited.add((process, address))
        for count in (self.counts[process], self.total):
            if block is None:
                count.inherited_frees += inherits
                count.orphan_frees += not inherits
                continue
            count.frees += 1
            count.level -= block[0]
            if block[1] == thread and self.latest.get(thread) == address:
                count.temporary[0] += 1
                count.temporary[1] += block[0]
        return block

    def memory(self, kind, words):
        """A call on virtual memory: [how often, failed, bytes of those that did not fail]."""
        if "origin=recorder" in words or kind in ("mapped", "unmapped"):
            return
        call = self.calls.setdefault(kind.replace("-", "_"), [0, 0, 0])
        numbers = [int(word, 0) for word in words if re.fullmatch(r"0x[0-9a-f]+|\d+", word)]
        failed = any(word.startswith("error=") for word in words)
        call[0] += 1
        call[1] += failed
        if not failed:
            call[2] += abs(numbers[1] - numbers[0]) if kind == "brk" else numbers[-1]

    def event(self, time, thread, kind, *words):
        process = self.thread_process[thread]
        words = list(words)
        if kind in VM_KINDS:
            self.memory(kind, words)
            return
        stack = words.pop(0) if words and re.fullmatch(r"s\d+", words[0]) else None
        both = (self.counts[process], self.total)
        self.events += kind not in ("realloc-alloc", "realloc-undo")
        if kind in ("malloc", "calloc", "aligned"):
            self.allocate(time, thread, stack, words[0], int(words[1]))
        elif kind == "free":
            self.release(thread, words[0])
        elif kind in ("realloc", "realloc-alloc"):
            if kind == "realloc":
                self.release(thread, words[0])
                words = words[2:]
            self.allocate(time, thread, stack, words[0], int(words[1]))
            for count in both:
                count.reallocations += 1
        elif kind == "realloc-free":
            self.half[thread] = self.release(thread, words[0])
        elif kind in ("failed", "realloc-failed"):
            for count in both:
                count.failed += 1
        else:
            raise AssertionError(f"no such event in a recorded trace: {kind}")


FIGURES = ("allocations", "frees", "reallocations", "failed", "allocated_bytes", "peak_bytes",
           "peak_ns", "inherited_frees", "orphan_frees", "lost_frees")


def compare(expected, actual, who):
    for figure in FIGURES:
        assert getattr(expected, figure) == actual[figure], (who, figure, actual[figure],
                                                            getattr(expected, figure))
    for figure in ("live_at_exit", "temporary"):
        amount = [actual[figure]["count"], actual[figure]["bytes"]]
        assert getattr(expected, figure) == amount, (who, figure, amount)


@test
def text_that_goes_to_no_terminal_is_as_wide_as_it_is_told():
    path = assemble("kitchen")

    def text(columns):
        return run("report", path, env={"COLUMNS": columns}).stdout

    assert text("80") == text("40") and text("120") == text("9999") and text("100") == text("") == text("x") == text("0")
    assert len(set(map(text, ("80", "100", "120")))) == 3


@test
def every_figure_equals_a_second_count_from_the_dump():
    model = Model(run("dump", family()).stdout)
    answer = report(family(), "-n0")
    assert model.events == answer["trace"]["events"] > 2000
    assert len(answer["trace"]["processes"]) == len(model.counts) > 6
    compare(model.total, answer["heap"], "all")
    for process in answer["trace"]["processes"]:
        compare(model.counts[f"p{process['id']}"], process, process["pid"])
    told = {name: list(call.values()) for name, call in answer["vm"]["calls"].items()
            if call["count"]}
    assert told == model.calls and told["mmap"][0] > 10, (told, model.calls)
    assert answer["vm"]["peak_bytes"] > 1 << 20 < answer["vm"]["rss_peak_bytes"]


@test
def virtual_memory_is_that_of_the_processes_that_are_left():
    whole = report(family(), "-n0")
    calls = {}
    for pid in {process["pid"] for process in whole["trace"]["processes"]}:
        part = report(family(), "-n0", "--process", str(pid))["vm"]
        assert part["peak_bytes"] <= whole["vm"]["peak_bytes"], part
        for name, call in part["calls"].items():
            calls[name] = calls.get(name, 0) + call["count"]
    assert calls == {name: call["count"] for name, call in whole["vm"]["calls"].items()}, calls


@test
def sites_add_up_to_the_totals():
    answer = report(family(), "-n", "0")
    heap, sites = answer["heap"], answer["sites"]

    def sums(key):
        return sum(s["count"] for s in sites[key]), sum(s["bytes"] for s in sites[key])

    assert sums("bytes") == sums("calls") == (heap["allocations"], heap["allocated_bytes"])
    assert sums("peak") == (heap["peak_count"], heap["peak_bytes"])
    assert sums("live_at_exit") == tuple(heap["live_at_exit"].values())
    assert sums("temporary") == tuple(heap["temporary"].values())
    assert heap["allocations"] == heap["frees"] + heap["lost_frees"] + heap["live_at_exit"]["count"]


@test
def sites_are_ordered_and_cut_to_n():
    whole = report(family(), "-n0")["sites"]
    few = report(family(), "-n", "3")["sites"]
    weights = {"live_at_exit": "bytes", "peak": "bytes", "bytes": "bytes", "calls": "count",
               "temporary": "count"}
    for key, weight in weights.items():
        figures = [site[weight] for site in whole[key]]
        assert figures == sorted(figures, reverse=True)
        assert few[key] == whole[key][:3]
    large = report(family(), "-n0", "--min-bytes=1K")["sites"]["bytes"]
    assert large == [site for site in whole["bytes"] if site["bytes"] >= 1024]


@test
def processes_add_up_and_a_filter_leaves_the_others_out():
    whole = report(family())
    for process in whole["trace"]["processes"]:
        if sum(p["pid"] == process["pid"] for p in whole["trace"]["processes"]) > 1:
            continue
        alone = report(family(), "--process", str(process["pid"]))
        assert [p["pid"] for p in alone["trace"]["processes"]] == [process["pid"]]
        for figure in ("allocations", "frees", "allocated_bytes", "peak_bytes", "peak_ns"):
            assert alone["heap"][figure] == process[figure]
        assert alone["trace"]["events"] == whole["trace"]["events"]


@test
def what_lives_at_exit_may_be_more_than_the_peak():
    said = run("report", assemble("ends", "process p pid=1\nthread t p tid=1\n@10 t malloc 0x1000 100\n@11 end p exit=0\n"
                                  "process q pid=2\nthread u q tid=2\n@20 u malloc 0x1000 100\n@21 end q exit=0\nend\n")).stdout
    assert re.search(r"live at exit +200 B  in 2 blocks, of each process at its own end: not at one time\n", said), said


@test
def a_frame_and_its_opposite_share_all_allocations():
    path = assemble("kitchen")
    whole = report(path)["heap"]
    with_pot = report(path, "--frame", "^make_")["heap"]
    without = report(path, "--not-frame", "^make_")["heap"]
    for figure in ("allocations", "allocated_bytes", "frees", "failed"):
        assert with_pot[figure] + without[figure] == whole[figure]
    assert with_pot["allocations"] == 4


# ---- the schema ----

def wrong(answer):
    schema = libschema.load("report")
    return list(libschema.wrong(answer, schema, schema))


@test
def frees_of_which_no_filter_can_tell_are_neither_none_nor_silent():
    whole = report(family())["heap"]
    assert whole["inherited_frees"] > 0
    some = report(family(), "--size", "0..")["heap"]
    assert some["inherited_frees"] is None and some["orphan_frees"] is None, some
    assert some["allocations"] == whole["allocations"]
    left = whole["inherited_frees"] + whole["before_frees"] + whole["orphan_frees"]
    said = run("report", family(), "--size", "0..").stdout
    assert f"left out {left} frees" in " ".join(said.split()), said
    assert wrong(report(family(), "--size", "0..")) == []


@test
def json_is_what_the_schema_says():
    for path in (family(), *map(assemble, ("kitchen", "family", "crowd", "nothing"))):
        assert wrong(report(path, "-n0")) == []


@test
def the_schema_notices_what_is_missing_or_new():
    answer = report(assemble("kitchen"))
    del answer["heap"]["peak_ns"]
    answer["trace"]["processes"][0]["extra"] = 1
    answer["sites"]["peak"][0]["stack"][0]["line"] = "7"
    assert len(wrong(answer)) == 3, wrong(answer)


@test
def csv_has_the_rows_of_json():
    path = assemble("kitchen")
    rows = list(csv.DictReader(io.StringIO(run("report", path, "--csv", "-n0").stdout, newline="")))
    sites = report(path, "-n0")["sites"]
    assert len(rows) == sum(len(part) for part in sites.values())
    for row in rows:
        site = sites[row["section"]][int(row["rank"]) - 1]
        assert int(row["bytes"]) == site["bytes"] and int(row["count"]) == site["count"]
        if site["stack"]:
            assert row["function"] == (site["stack"][site["user_frame"]]["function"] or "")


@test
def csv_of_samples_has_their_standard_errors():
    with open("sampled.txt", "w", encoding="ascii") as file:
        file.write("trace sample=1000\nprocess p pid=1\nthread t p tid=1\n"
                   "stack small a.c:1 < main.c:1\nstack large b.c:1 < main.c:2\n"
                   "+1 t malloc small 0x1000 10\n+1 t malloc large 0x100000 100000\nend\n")
    run("dump", "--force", "-a", "sampled.txt", "-o", "sampled.tide")
    sites = report("sampled.tide", "-n0")["sites"]
    done = run("report", "sampled.tide", "--csv", "-n0")
    rows = list(csv.DictReader(io.StringIO(done.stdout, newline="")))
    assert len(rows) == 8 and list(rows[0])[-1] == "standard_error", rows
    for row in rows:
        site = sites[row["section"]][int(row["rank"]) - 1]
        assert int(row["standard_error"]) == site["standard_error"], row
    assert {row["standard_error"] == "0" for row in rows} == {True, False}, rows
    whole = csv.DictReader(io.StringIO(run("report", assemble("kitchen"), "--csv").stdout, newline=""))
    assert {row["standard_error"] for row in whole} == {""}


# ---- manners ----

@test
def colour_is_for_terminals_and_on_request():
    path = assemble("kitchen")
    assert "\033" not in run("report", path).stdout
    assert "\033" not in run("report", path, "--color=never").stdout
    assert "\033[1m" in run("report", path, "--color=always", env={"NO_COLOR": "1"}).stdout


@test
def a_status_of_windows_is_shown_as_people_know_it_and_stays_a_number_in_json():
    for status, words in ((0xc0000005, "exit 0xc0000005, access violation"), (0xc0001234, "exit 0xc0001234"),
                          (255, "exit 255")):
        path = assemble("status", "\n".join(["trace", "process p pid=9 exe=x.exe", "thread t p tid=9", 'stack s "main"',
                                             "@1 t malloc s 0x1000 8", f"@2 end p exit={status}", ""]))
        assert f"process 9, {words}\n" in run("report", path).stdout, status
        assert f"  {words}  from" in run("info", path).stdout, status
        assert [process["exit"] for process in report(path)["trace"]["processes"]] == [f"exit {status}"]


@test
def all_frames_shows_what_is_folded():
    path = assemble("kitchen")
    assert "xmalloc" not in run("report", path).stdout
    assert "… 4 more" in run("report", path).stdout
    whole = run("report", path, "--all-frames").stdout
    assert "xmalloc" in whole and "more\n" not in whole


@test
def no_line_of_a_pipe_is_wider_than_100_columns():
    for path in (family(), assemble("kitchen"), assemble("family")):
        for line in run("report", path, "-n0").stdout.splitlines():
            assert len(line) <= 100, line


@test
def mistakes_are_one_line_and_exit_code_2():
    path = assemble("kitchen")
    for words, message in ((["--process", "nobody"], "no process 'nobody'"),
                           (["--thread", "nobody"], "no thread 'nobody'"),
                           (["--frame", "("], "is not a regular expression"),
                           (["-n", "many"], "many"),
                           (["--min-bytes", "much"], "much"),
                           (["--color", "red"], "red"),
                           (["--jsno"], "--json")):
        done = run("report", path, *words, check=2)
        assert done.stdout == "" and done.stderr.count("\n") == 1, done
        assert message in done.stderr, done.stderr
    assert run("report", check=2).stderr.count("\n") == 1


@test
def a_word_that_names_nothing_is_answered_with_what_there_is():
    path = assemble("many", "".join(
        f'process p{pid} pid={pid} exe="/bin/{"sh" if pid < 30 else "python3"}"\n'
        f'thread t{pid} p{pid} tid={pid} "{"worker" if pid > 1 else "main"}"\n'
        for pid in range(1, 31)) + "end\n")
    for words, message in ((["--process", "pyth"], "it has python3 (pid 30), sh (29 processes)\n"),
                           (["--process", "x"], "it has sh (29 processes), python3 (pid 30)\n"),
                           (["--thread", "mai"], "it has main (tid 1), worker (29 threads)\n")):
        done = run("report", path, *words, check=2)
        assert done.stderr.endswith(message), done.stderr


@test
def what_python_keeps_for_itself_is_said_apart():
    path = assemble("keeps", """process p pid=1 exe="/none/python3.11"
thread t p tid=1
module py p 0x400000-0x500000 bias=0x400000 "/none/python3.11"
frame inside py 0x401000
stack own inside
stack loads inside < "_call" "<frozen importlib._bootstrap>":241 < "<module>" "/x/app.py":1
stack line inside < "keep" "/x/app.py":5 < "<module>" "/x/app.py":9
stack other "malloc_it" "c.c":1
@1 t malloc own 0x1000 3072
@2 t malloc loads 0x2000 2048
@3 t malloc line 0x4000 8192
@4 t malloc other 0x8000 512
end
""")
    text = " ".join(run("report", path).stdout.split())
    assert "python: of what is listed, 3.0 KiB in 1 block the interpreter asked for itself," in text, text
    assert "caches), 2.0 KiB in 1 block it asked for to load modules (their code and constants): CPython keeps" in text, text
    assert "python: of what" not in run("report", assemble("crowd")).stdout


@test
def what_cannot_be_read_is_said_with_exit_code_3():
    with open("other", "wb") as file:
        file.write(b"#!/bin/sh\n" * 100)
    open("empty", "wb").close()
    for path in ("missing.tide", "other", "empty", "/"):
        done = run("report", path, check=3)
        assert done.stdout == "" and done.stderr.count("\n") == 1 and path in done.stderr, done


@test
def what_cannot_be_written_is_said_with_exit_code_3():
    for words in ((), ("--json",), ("--csv",)):
        with open("/dev/full", "w") as full:
            done = subprocess.run([TIDEMARK, "report", assemble("kitchen"), *words], stdout=full,
                                  stderr=subprocess.PIPE, text=True)
        assert done.returncode == 3 and "No space left" in done.stderr, done


@test
def a_cut_trace_is_answered_with_a_warning():
    with open(assemble("family"), "rb") as file:
        whole = file.read()
    answered = 0
    for cut in list(range(0, len(whole), 97)) + [len(whole) - 1]:
        with open("cut.tide", "wb") as file:
            file.write(whole[:cut])
        done = run("report", "cut.tide", "--json", check=None)
        assert done.returncode in (0, 3), (cut, done)
        if done.returncode == 0:
            answered += 1
            answer = json.loads(done.stdout)
            assert not answer["trace"]["complete"] and wrong(answer) == []
            assert "the trace is not whole" in done.stderr
    assert answered > 3


@test
def damaged_bytes_do_no_harm():
    with open(assemble("kitchen"), "rb") as file:
        whole = file.read()
    for at in range(0, len(whole), 31):
        with open("damaged.tide", "wb") as file:
            file.write(whole[:at] + bytes([whole[at] ^ 0xff]) + whole[at + 1:])
        done = run("report", "damaged.tide", check=None)
        assert done.returncode in (0, 3), (at, done.returncode, done.stderr)


@test
def a_hostile_name_does_not_reach_the_terminal():
    with open("hostile.txt", "w", encoding="utf-8") as file:
        file.write('trace command="\\x1b]0;owned\\x07"\nprocess p pid=1 exe="/bin/\\x1b[2J" '
                   'arg="\\x1b[2J"\nprocess q pid=2\nthread t p\nstack s "f\\x1b[31m" '
                   '"a\\x1b[0m.c":1 < "main"\n@1 t malloc s 0x10 5\n@2 message p "\\x1b[5m"\nend\n')
    run("dump", "--assemble", "hostile.txt", "-o", "hostile.tide")
    assert "\033" not in run("report", "hostile.tide").stdout


@test
def what_several_processes_say_in_the_same_words_is_said_once():
    lines = [f'process p{i} pid={100 + i} exe="/bin/{chr(97 + max(0, i - 9))}"\n' for i in range(30)]
    notes = [f'@{i + 1} message p{i} "has a filter"\n' for i in range(10)]
    notes += [f'@{i + 20} message p{i} "is slow"\n' for i in [8, 8, *range(8, 16)]]
    other = [f'@{i + 50} message p{i} "has number {i}"\n' for i in range(30)]
    assemble("said", "".join([*lines, *notes, *other, "end\n"]))
    warnings = report("said.tide")["trace"]["warnings"]
    assert "10 processes of a (100, 101, 102, 103, 104, 105, 106, 107, …): has a filter" in warnings, warnings
    assert any(line.startswith("8 processes of a, b, c, d, … (108, ") for line in warnings), warnings
    assert "process 100: has number 0" in warnings and "12 more messages are in tidemark info" in warnings, warnings
    told = run("info", "said.tide").stdout
    assert "has a filter (10 times)\n" in told and told.count("has number") == 30, told


@test
def a_place_is_no_name_and_what_would_name_windows_modules_is_said():
    for name, said in (("app!sub_1000", True), ("work", False)):
        with open("places.txt", "w", encoding="utf-8") as file:
            file.write('process p pid=1\nmodule m 0x1000-0x9000 "C:\\\\app.exe"\nthread t\n'
                       f'frame f m 0x1000\nname f "{name}" C:/app.c:1\nstack s f\n'
                       '@1 t malloc s 0x10 5\nend\n')
        run("dump", "--assemble", "places.txt", "-o", "places.tide", "--force")
        done = run("report", "places.tide")
        assert ("tidemark symbols --missing" in " ".join(done.stdout.split())) == said, done


@test
def slabs_of_glib_are_said_to_be_slabs():
    for inner, said in (("f", True), ("h < f", False)):
        assemble("slices", 'process p pid=1\nthread t p\n'
                 'module l p 0x1000-0x9000 bias=0x1000 "/usr/lib/libglib-2.0.so.0"\n'
                 'module a p 0x10000-0x20000 bias=0x10000 "/bin/app"\n'
                 'frame f l 0x1500\nframe g l 0x1600\nname g "g_slice_alloc"\nframe h l 0x1700\n'
                 'name h "g_malloc0"\nframe m a 0x10100\nname m "main"\n'
                 f'stack s {inner} < g < m\n@1 t malloc s 0x10 496\nend\n')
        text = " ".join(run("report", "slices.tide").stdout.split())
        assert ("own heap: GLib's slices" in text and "G_SLICE=always-malloc" in text) == said, text


@test
def slabs_of_tcl_are_said_to_be_slabs():
    for inner, said in (("f < g", True), ("g", False), ("f < h", False)):
        assemble("slabs", 'process p pid=1\nthread t p\n'
                 'module l p 0x1000-0x9000 bias=0x1000 "/usr/lib/libtcl8.6.so"\n'
                 'module a p 0x10000-0x20000 bias=0x10000 "/bin/app"\n'
                 'frame f l 0x1500\nframe g l 0x1600\nname g "TclpAlloc"\nframe h l 0x1700\n'
                 'name h "Tcl_Eval"\nframe m a 0x10100\nname m "main"\n'
                 f'stack s {inner} < m\n@1 t malloc s 0x10 16384\nend\n')
        text = " ".join(run("report", "slabs.tide").stdout.split())
        assert ("own heap: Tcl's allocator as slabs of 16 KiB" in text) == said, text


@test
def a_runtime_s_heap_is_named_by_the_function_that_maps_it():
    for mapper, size, said in (("v8::base::OS::Allocate(void*, unsigned long)", 64, "V8 heap, as mappings: 64.0 MiB"),
                               ("os_alloc_gc_space", 64, "SBCL heap, as mappings: 64.0 MiB"),
                               ("pas_page_malloc_try_allocate", 64, "WebKit's bmalloc, as mappings: 64.0 MiB"),
                               ("os_alloc_gc_space", 7, None), ("pool_refill", 64, None)):
        assemble("runtime", 'process p pid=1 exe="/bin/app"\nthread t p\nmodule a p 0x10000-0x20000 "/bin/app"\n'
                 f'frame f a 0x10100\nname f "{mapper}"\nframe m a 0x10200\nname m "main"\nstack s f < m\nstack b m\n'
                 f"@1 t mmap s 0x90000000 {size << 20} prot=rw flags=private|anonymous\n"
                 "@2 t mmap b 0x80000000 8192 prot=rw flags=private|anonymous\n@3 t malloc b 0x80000010 500\nend\n")
        text = " ".join(run("report", "runtime.tide").stdout.split())
        assert (said is not None) == ("own heap" in text) and (said or "") in text, text


@test
def memory_outside_the_heap_that_is_no_known_runtime_s_is_said_too():
    for size, pool, blocks, said in ((64, "arena_refill", 0, "outside: 64.0 MiB when most was committed, in mappings that the program "
                                      "asked for itself, 64.0 MiB of it in arena_refill; what is inside of it is in no figure"),
                                     (7, "arena_refill", 0, None), (64, "arena_refill", 80, None), (64, "os_alloc_gc_space", 0, None)):
        assemble("arena", 'process p pid=1 exe="/bin/app"\nthread t p\nmodule a p 0x10000-0x20000 "/bin/app"\n'
                 f'frame f a 0x10100\nname f "{pool}"\nframe m a 0x10200\nname m "main"\nstack s f < m\nstack b m\n'
                 f"@1 t mmap s 0x90000000 {size << 20} prot=rw flags=private|anonymous\n"
                 f"@2 t mmap b 0x40000000 {(blocks << 20) + 8192} prot=rw flags=private|anonymous\n"
                 f"@3 t malloc b 0x40000010 {(blocks << 20) + 500}\n"
                 "@4 t mmap b 0x80000000 8192 prot=rw flags=private|anonymous\nend\n")
        text = " ".join(run("report", "arena.tide").stdout.split())
        assert (said is not None) == ("outside:" in text) and (said or "") in text, text


@test
def a_runtime_without_symbols_is_named_by_its_program():
    for program, named, said in (("deno", "", "V8 heap, as mappings: 64.0 MiB"), ("bun", "", "JavaScriptCore, mimalloc, as"),
                                 ("dart", "", "Dart heap, as mappings"),
                                 ("libmozjs-102.so.102.15.1", "", "SpiderMonkey heap, as mappings"), ("bundle", "", None), ("deno", 'name f "pool_refill"', None)):
        assemble("runtime", f'process p pid=1 exe="/opt/{program}"\nthread t p\nmodule a p 0x10000-0x20000 "/opt/{program}"\n'
                 f"frame f a 0x10100\n{named}\nstack s f\n"
                 f"@1 t mmap s 0x90000000 {64 << 20} prot=rw flags=private|anonymous\n"
                 "@2 t mmap s 0x80000000 8192 prot=rw flags=private|anonymous\n@3 t malloc s 0x80000010 500\nend\n")
        text = " ".join(run("report", "runtime.tide").stdout.split())
        assert (said is not None) == ("own heap" in text) and (said or "") in text, text


@test
def on_windows_a_heap_is_named_by_the_same_rules_past_the_system_s_unnamed_code():
    for program, named, notes, said in (
            ("Dart.exe", "", "", "Dart heap"), ("node.exe", 'name f "v8::base::OS::SetPermissions"', "", "V8 heap"),
            ("node.exe", 'name f "pool_refill"', "", None), ("app.exe", 'name f "mi_heap_malloc"', "", "mimalloc"),
            ("coreclr.dll", 'name f "coreclr!sub_100"', "", ".NET heap"), ("app.exe", 'name f "app!sub_100"', "", None),
            ("app.exe", 'name f "app!sub_100"', '@1 allocator p value=5 "mimalloc"', "mimalloc"),
            ("app.exe", 'name f "app!sub_100"', '@1 allocator p value=4 "mimalloc"', None),
            ("app.exe", 'name f "app!sub_100"', '@1 allocator p value=5 "mimalloc C:\\\\other.dll"', None)):
        assemble("windows", f'trace host="Windows x86_64"\nprocess p pid=1 exe="C:\\\\x\\\\app.exe"\nthread t p\n'
                 f'module a p 0x10000-0x20000 "C:\\\\x\\\\{program}"\nmodule k p 0x30000-0x40000 "C:\\\\system32\\\\KernelBase.dll"\n'
                 f"frame k1 k 0x30100\nframe f a 0x10100\n{named}\nstack s k1 < f\n{notes}\n"
                 f"@1 t mmap s 0x90000000 {64 << 20} prot=rw flags=private|anonymous\n"
                 "@2 t mmap s 0x80000000 8192 prot=rw flags=private|anonymous\n@3 t malloc s 0x80000010 500\nend\n")
        heaps = json.loads(run("report", "--json", "windows.tide").stdout)["heap"]["own_heaps"]
        assert [(heap["heap"], heap["outside"]) for heap in heaps] == [(said, not said)], (program, named, heaps)
        assert all(heap["committed_bytes"] == 64 << 20 and heap["text"].startswith(f"{said}, as mappings: 64.0 MiB" if said else "64.0 MiB when")
                   for heap in heaps), heaps


@test
def operators_of_the_program_s_own_that_nothing_came_by_are_said():
    for value, module, frame, filters, said in (
            (6, "/opt/game", "main", (), "game's own"), ('3 "rpmalloc"\n@0 allocator p value=6', "/opt/game", "main", (), None), (6, "/opt/game", "operator new(unsigned long)", (), None),
            (6, "/lib/libfoo.so", "operator new(unsigned long)", (), "game's own"), (2, "/opt/game", "main", (), None),
            (6, "/opt/game", "main", ("--size", ">1"), None)):
        assemble("operators", 'process p pid=1 exe="/opt/game"\nprocess q pid=2 exe="/opt/game"\nthread t p\n'
                 f'module a p 0x10000-0x20000 "{module}"\nframe f a 0x10100\nframe g a 0x10200\nname f "{frame}"\nname g "main"\n'
                 f'stack s f < g\n@0 allocator p value={value} "operators"\n@0 allocator q value={value} "operators"\n'
                 "@1 t malloc s 0x10 500\nend\n")
        heaps = json.loads(run("report", "--json", "operators.tide", *filters).stdout)["heap"]["own_heaps"]
        assert len(heaps) == (said is not None) and all(said in heap["text"] for heap in heaps), (value, module, frame, heaps)


@test
def own_heaps_are_in_json_as_they_are_in_text():
    for interpreter, begins in (("Go", "what its garbage collector"), ("node", "V8's heap as mappings"), ("perl", None)):
        assemble("named", f'process p pid=1\nthread t p\n@0 interpreter p value=0 "{interpreter}"\n'
                 "@1 t malloc 0x10 500\nend\n")
        heaps = json.loads(run("report", "--json", "named.tide").stdout)["heap"]["own_heaps"]
        text = " ".join(run("report", "named.tide").stdout.split())
        assert len(heaps) == text.count("own heap") == (begins is not None), (interpreter, heaps, text)
        assert all(heap["heap"] is None and heap["committed_bytes"] is None and heap["text"].startswith(begins)
                   and heap["text"] in text for heap in heaps), heaps


@test
def erlang_is_asked_by_its_own_variable():
    assemble("erl", 'process p pid=1 exe="/beam.smp"\nthread t p\nframe f1 0x10\nstack s1 flags=1 f1\n'
             '@0 interpreter p value=0 "erlang"\n@1 t malloc s1 0x10 500\nend\n')
    for command, said in (("info", 'record --jit with ERL_FLAGS="+JPperf true" in the environment'),
                          ("report", '(what erlang generates has names with record --jit and ERL_FLAGS="+JPperf true")')):
        text = " ".join(run(command, "erl.tide").stdout.split())
        assert said in text, text


@test
def a_runtime_that_generates_code_is_told_to_be_recorded_with_jit():
    for interpreter, value, options, exe, said in (
            ("node", 0, "", "/usr/bin/node", True), ("java", 0, "", "/opt/java", True), ("python 3.14.0", 0, "", "/py", True),
            (".NET 8.0", 0, "", "/app", True), ("node", 0, "jit", "/usr/bin/node", False), ("python 3.12.1", 1, "", "/py", False),
            ("python 3.11.2", 0, "", "/py", False), ("ruby 3.1.2", 0, "", "/ruby", False), ("node", 0, "", "C:\\\\node.exe", False)):
        assemble("jit", f'trace options="{options}"\nprocess p pid=1 exe="{exe}"\nthread t p\nframe f1 0x10\n'
                 f'stack s1 flags=1 f1\n@0 interpreter p value={value} "{interpreter}"\n@1 t malloc s1 0x10 500\nend\n')
        shown = " ".join(run("info", "jit.tide").stdout.split())
        text = " ".join(run("report", "jit.tide").stdout.split())
        assert said == ("record --jit has its functions in the stacks" in shown), (interpreter, shown)
        assert said == (f"(what {interpreter} generates has names with record --jit)" in text), (interpreter, text)
        [process] = json.loads(run("info", "--json", "jit.tide").stdout)["processes"]
        assert said == (process["interpreter_advice"] is not None), process


@test
def a_peak_of_processes_whose_ends_may_be_late_says_so():
    """Only where such a process may have been gone at the peak."""
    for late, again, ended, said in ((True, "", "310ms", 1), (False, "", "310ms", 0), (True, "@300ms u malloc 0x2000 10\n", "310ms", 0),
                                     (True, "", "3s", 0)):
        assemble("late", "process p pid=1\nprocess q pid=2 parent=p start=fork\nthread t p\nthread u q\n"
                 f"@1ms start p\n@2ms t malloc 0x10 100\n@100ms start q\n@101ms u malloc 0x1000 5000\n@200ms t malloc 0x3000 7000\n{again}"
                 f"@{ended} end q exit=0\n@4s end p exit=0\n" + ("@4s end-late q value=1\n" if late else "") + "end\n")
        text = " ".join(run("report", "late.tide").stdout.split())
        assert ("of 2 processes; 1 of them may have ended some milliseconds before" in text) == bool(said), text
        assert report("late.tide")["heap"]["peak_ends_late"] == said, (late, again, ended)


@test
def each_figure_of_samples_has_its_own_error_after_it():
    path = assemble("errors", "trace sample=1000\nprocess p pid=1\nthread t p tid=1\n" + "".join(
        f"+1 t malloc {0x1000 * (i + 1):#x} {10 + 90 * (i % 2)}\n" for i in range(100)) + "end\n")
    text = run("report", path).stdout
    heap = json.loads(run("report", "--json", path).stdout)["heap"]
    for key in ("allocated", "peak", "live at end"):
        assert re.search(rf"  {key} +[\d.]+ KiB  ± [\d.]+ %, in [\d,]+ blocks", text), text
    assert re.search("  peak .*, the highest of estimates: too high rather than too low\n", text), text
    assert "estimates" not in run("report", assemble("crowd")).stdout
    of_calls = f"blocks ± {100 * heap['standard_errors']['calls'] / heap['allocations']:.1f} %"
    assert of_calls in text, f"{of_calls}: {text}"


@test
def bounds_of_a_peak_that_read_the_same_are_left_out():
    for size, shown in ((4 << 20, False), (40, True)):
        path = assemble("bound", f"""trace tick=1000
process p pid=1
thread t p tid=1
thread u p tid=2
@1000 t malloc 0x100000 {size}
@2000 t malloc 0x1000 10
@5000 t free 0x1000
@5000 u malloc 0x2000 20
@9000 end p exit=0
end
""")
        heap = json.loads(run("report", "--json", path).stdout)["heap"]
        assert heap["peak_low_bytes"] < heap["peak_high_bytes"], heap
        text = run("report", path).stdout
        assert shown == ("threads overlap" in text), text


@test
def memory_that_was_mapped_before_is_said_to_be_no_calls():
    assemble("mapped", "process p pid=1\nthread t p\nstack s main\n"
             "@1 t mapped 0x100000 0x1000 prot=rw flags=private|anonymous origin=kernel\n"
             "@1 t malloc s 0x10 496\nend\n")
    said = " ".join(run("info", "mapped.tide").stdout.split())
    assert "mapped 1 not calls: what was mapped already" in said, said


main()
