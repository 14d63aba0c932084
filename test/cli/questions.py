#!/usr/bin/env python3
# parallel: yes
"""One meaning for each word in every command: the peak, a window, a filter; and answers that agree
with each other, asked at random (libquestions; a failure names its seed)."""
import json
import os

from libanswer import refused, run
from libquestions import ask
from libtests import check, main, test

SEED = int(os.environ.get("TIDEMARK_SEED", "17"))

SMALL = """process p pid=70 exe="/opt/tool" arg="called" arg="me"
thread t p tid=70 "first"
stack one "leaf_one" < "main"
stack two "leaf_two" < "main"
@1000 t malloc one 0x1000 1000
@2000 t malloc two 0x2000 10
@3000 t free 0x1000
@4000 t malloc two 0x3000 10
@5000 t mmap one 0x7f0000000000 0x4000 prot=rw flags=private|anonymous
@6000 t free 0x2000
end duration=10000
"""

WINDOWS = ["window", "growth", "transients"]
MOMENTS = ["active", "map", "pins"]
FILTERS = [("--process", "70"), ("--thread", "70"), ("--layer", "heap"), ("--heap", "malloc"),
           ("--size", "10"), ("--lifetime", ">1ns"), ("--module", "x"), ("--frame", "leaf"),
           ("--not-frame", "leaf_two"), ("--row", "function:leaf_one"),
           ("--not-row", "size:10"), ("--impact", "transient"), ("--from", "1us"), ("--to", "5us")]


def small():
    with open("small.txt", "w", encoding="ascii") as file:
        file.write(SMALL)
    run("dump", "--force", "-a", "small.txt", "-o", "small.tide")
    return "small.tide"


def told(command, *words):
    return json.loads(run(command, small(), "--json", *words).stdout)


@test
def a_trace_with_lost_events_is_complete_for_no_command():
    with open("lost.txt", "w", encoding="ascii") as file:
        file.write(SMALL.replace("end ", "end events-lost=1003 "))
    run("dump", "--force", "-a", "lost.txt", "-o", "lost.tide")
    for command, *words in [["report"], ["info"], ["window"], ["growth"], ["transients"], ["active"], ["pins"],
                            ["map"], ["findings"], ["diff", "lost.tide"], ["check", "--max-peak", "1M"],
                            ["window", "--tree", "callers"], ["merge", "lost.tide", "-o", "two.tide", "--force"]]:
        json_too = [] if command == "merge" else ["--json"]
        ended = run(command, "lost.tide", *words, *json_too, check=3 if command == "check" else 0)
        check("1,003 events were lost" in ended.stderr or "not complete" in ended.stderr, command, words, ended.stderr)
        check(ended.stderr.count("1,003 events were lost") <= 1 + (command in ("diff", "check")), command, ended.stderr)
        if json_too:
            answer = json.loads(ended.stdout)
            parts = [answer] if "complete" in answer else [answer[key] for key in
                                                           ("trace", "old", "new", "before", "after") if key in answer]
            check(parts and not any(part["complete"] for part in parts), command, words, list(answer))
    check(json.loads(run("info", "two.tide", "--json").stdout)["trace"]["problem"].endswith("2,006 events were lost"))


@test
def the_peak_is_that_of_what_the_filters_select_in_every_command():
    for filters, peak in [([], 2000), (["--frame", "leaf_two"], 4000), (["--size", "10"], 4000)]:
        for command in WINDOWS:
            found = told(command, "--from", "peak", *filters)["from_ns"]
            check(found == peak, command, filters, found)
        found = told("active", "--at", "peak", *filters)["at_ns"]
        check(found == peak, "active", filters, found)
        items = run("dump", small(), "--items", "--from", "peak", *filters).stdout.splitlines()
        check(not any(f"@{peak} " in line for line in items), "dump", filters, items)
        report = told("report", "--to", "peak", *filters)["heap"]
        check(report["peak_ns"] == peak, "report", filters, report)
    check(told("map", "--at", "peak")["at_ns"] == 5000, "map")


@test
def a_window_that_ends_before_it_begins_is_refused_by_every_command():
    for command in [*WINDOWS, "report", "dump", "active"]:
        check("is after --to" in refused(command, small(), "--from", "5us", "--to", "2us"),
              command)


@test
def each_filter_is_honoured_or_refused_by_each_command():
    path = small()
    for command in [*WINDOWS, *MOMENTS, "report", "dump"]:
        for filter, word in FILTERS:
            done = run(command, path, filter, word, check=None)
            check(done.returncode in (0, 2), command, filter, done)
            if done.returncode == 2:
                check(done.stdout == "" and done.stderr.count("\n") == 1, command, filter, done)
    for command in ["pins", "reconcile"]:
        for filter, word in FILTERS[1:]:
            check(filter in refused(command, path, filter, word), command, filter)
    for filter in ["--size", "--thread", "--heap", "--lifetime", "--impact", "--from"]:
        word = dict(FILTERS)[filter]
        check(filter in refused("map", path, filter, word), filter)


SAME = [("--size", "10"), ("--frame", "leaf_two"), ("--not-frame", "leaf_one"),
        ("--row", "function:leaf_two"), ("--not-row", "size:1000")]
WHOLE = ["rss", "faults", "largest-free", "fragmentation"]  # of processes, not of allocations
COMMANDS = [*WINDOWS, *MOMENTS, "report", "reconcile", "findings"]
DRAWN = ["live", "blocks", "cumulative", "rate", "sizes", "lifetimes"]


def figures(command, *words):
    """What a command says, without what it says of the whole trace; None: it refuses."""
    if command.startswith("plot "):
        done = run("plot", small(), command[5:], "-o", "x.svg", "--keep", "--force", *words,
                   check=None)
        if done.returncode == 0:
            with open("x.svg.dat", encoding="utf-8") as file:
                return file.read()
    elif command == "export":
        done = run(command, small(), "--format", "folded", "--value", "size",
                   "-o", "-", *words, check=None)
        if done.returncode == 0:
            return done.stdout
    else:
        more = {"diff": [small()], "active": ["--layer", "heap"]}.get(command, [])
        done = run(command, small(), *more, "--json", *words, check=None)
        if done.returncode == 0:
            told = json.loads(done.stdout)
            return told.get("rows"), told.get("heap"), told.get("sites"), told.get("total")
    check(done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1, command,
          words, done)
    return None


@test
def filters_that_leave_the_same_allocations_have_the_same_answer_or_are_refused():
    for command in [*COMMANDS, "diff", "export", *[f"plot {kind}" for kind in DRAWN]]:
        told = {filter: figures(command, filter, word) for filter, word in SAME}
        honoured = {filter: figure for filter, figure in told.items() if figure is not None}
        check(len({str(figure) for figure in honoured.values()}) <= 1, command, honoured)
        if command in ("window", "report", "export", "diff", "active") or "plot" in command:
            check(len(honoured) == len(SAME), command, honoured.keys())
        if honoured and command not in ("active", "findings", "transients", "growth", "diff"):
            check(figures(command) not in honoured.values(), command, "is not narrowed")


@test
def what_is_of_whole_processes_is_not_drawn_as_of_selected_allocations():
    path = small()
    for kind in WHOLE:
        for filter, word in FILTERS:
            if filter in ("--process", "--from", "--to"):
                continue
            said = refused("plot", path, kind, "-o", "x.svg", "--force", filter, word)
            check(filter in said and "whole processes" in said, kind, filter, said)


@test
def a_class_leaves_some_of_a_window_and_adds_nothing():
    words = ["--from", "1us", "--to", "5us"]
    all_of_it = told("report", *words)["heap"]["allocations"]
    classes = [told("report", *words, "--impact", word)["heap"]["allocations"]
               for word in ("AIFI", "AIFO", "AOFI", "AOFO")]
    check(sum(classes) == all_of_it == 2 and classes[2:] == [0, 0], classes, all_of_it)


@test
def what_no_allocation_passes_is_answered_with_zeros_and_a_warning():
    for command in [*WINDOWS, "report", "active"]:
        found = told(command, "--size", "77777")
        warnings = found.get("warnings", found.get("trace", {}).get("warnings"))
        check(warnings == ["no allocation passes the filters"], command, warnings)
        if command == "window":
            most = [found["total"][key] for key in ("peak_size", "peak_count", "most_count")]
            check(most == [0, 0, 0] and found["total"]["first_ns"] is None, found["total"])


@test
def a_file_that_no_allocation_passes_into_is_written_and_that_is_said():
    said = "warning: no allocation passes the filters\n"
    commands = [["export", "--format", name, "-o", "none.out", "--force"] for name in
                ("csv", "jsonl", "folded", "flamegraph", "pprof", "speedscope", "callgrind", "massif",
                 "dhat", "perfetto", "heaptrack", "heaplog", "memory_tracker", "firefox", "otlp")]
    for command in [["dump"], *commands]:
        full = run(*command, small(), "--process", "tool", "--size", "1..")
        check(said not in full.stderr, command, full.stderr)
        none = run(*command, small(), "--process", "tool", "--size", "77777")
        check(none.stderr.count(said) == 1, command, none.stderr)


@test
def a_process_is_found_by_every_name_that_tables_print():
    for word in ["70", "0", "#0", "tool", "/opt/tool", "called"]:
        check(told("report", "--process", word)["heap"]["allocations"] == 3, word)
    check("it has tool (pid 70)" in refused("report", small(), "--process", "tol"))


@test
def a_recording_that_was_paused_says_so_above_every_answer():
    with open("paused.txt", "w", encoding="ascii") as file:
        file.write(SMALL.replace("@3000", "@2500 pause p t\n@3000"))
    run("dump", "--force", "-a", "paused.txt", "-o", "paused.tide")
    for command in [*WINDOWS, "active", "pins", "report"]:
        shown = " ".join(run(command, "paused.tide").stdout.split())
        check("recording was paused" in shown and "was not resumed" in shown, command, shown)


@test
def one_that_was_resumed_and_paused_again_is_not_called_not_resumed():
    with open("again.txt", "w", encoding="ascii") as file:
        file.write(SMALL.replace("@1000", "@500 pause p t\n@600 resume p t\n@1000")
                   .replace("@6000", "@5500 pause p t\n@6000"))
    run("dump", "--force", "-a", "again.txt", "-o", "again.tide")
    shown = " ".join(run("report", "again.tide").stdout.split())
    check("paused, first at 500 ns, and was resumed and paused again, from 5.500 us to the end:" in shown, shown)


@test
def a_trace_that_was_cut_says_where_its_events_end_and_what_lived_there():
    with open("cut.txt", "w", encoding="ascii") as file:
        file.write("process p pid=70 exe=\"/opt/tool\"\nthread t p tid=70 \"first\"\n"
                   "stack one \"leaf_one\" < \"main\"\n")
        for number in range(1, 70001):
            file.write(f"@{number}000 t malloc one 0x{number << 6:x} {32 + number * 7919 % 1000}\n")
        file.write("@70001000 end p exit=0\nend duration=70001000\n")
    run("dump", "--force", "-a", "cut.txt", "-o", "whole.tide")
    with open("whole.tide", "rb") as file:
        whole = file.read()
    shown = run("report", "whole.tide").stdout
    check("exit 0" in shown and "live at exit" in shown and " up to " not in shown, shown)
    cut = 0
    for part in range(30, 100, 2):
        with open("part.tide", "wb") as file:
            file.write(whole[:len(whole) * part // 100])
        shown = run("report", "part.tide").stdout
        if "65,536 events" not in shown or "exit 0" not in shown:
            continue
        cut += 1
        check("65,536 events up to 65.536 ms, process 70, exit 0" in shown, part, shown)
        check("live at cut" in shown and "LIVE AT THE CUT" in shown and "at exit" not in shown.lower(), part, shown)
        check(json.loads(run("report", "--json", "part.tide").stdout)["trace"]["events_end_ns"] == 65536000, part)
        check("at the cut" in run("active", "part.tide").stdout, "active")
        check("live at cut " in run("diff", "part.tide", "part.tide").stdout, "diff")
        check("live at end " in run("diff", "whole.tide", "part.tide").stdout, "diff of two that differ in that")
    check(cut > 0, "no such part")


@test
def a_process_whose_end_a_trace_does_not_have_still_runs_there():
    with open("runs.txt", "w", encoding="ascii") as file:
        file.write(SMALL.replace("end duration=10000", "end duration=10000 why=\"stopped\""))
    run("dump", "--force", "-a", "runs.txt", "-o", "runs.tide")
    shown = run("report", "runs.tide").stdout
    check("process 70, still running" in shown and "live at end" in shown and "LIVE AT THE END" in shown, shown)
    shown = run("info", "runs.tide").stdout
    check("/opt/tool  still running  from" in shown and "unknown" not in shown, shown)
    for command in ("active", "map"):
        check("at the end" in run(command, "runs.tide").stdout, command)
    check("live at end " in run("diff", "runs.tide", "runs.tide").stdout, "diff")


@test
def a_program_that_a_script_started_is_the_program_alone():
    for name, before in [("script", "process s pid=1 exe=\"/bin/sh\"\nthread v s tid=1\n"),
                         ("alone", "")]:
        with open(f"{name}.txt", "w", encoding="ascii") as file:
            file.write(before + SMALL)
        run("dump", "--force", "-a", f"{name}.txt", "-o", f"{name}.tide")
    found = json.loads(run("diff", "script.tide", "alone.tide", "--json").stdout)
    check([figure["bytes"] for figure in found["total"].values()] == [0, 0, 0, 0], found["total"])
    check(found["stacks"]["new"] == found["stacks"]["gone"] == 0, found["stacks"])


@test
def answers_agree_with_each_other():
    print(f"# seed {SEED}", flush=True)
    ask(SEED, int(os.environ.get("TIDEMARK_ROUNDS", "2")))


main()
