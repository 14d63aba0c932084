#!/usr/bin/env python3
# parallel: yes
"""What `tidemark check` promises: limits, baselines, suppressions, forms, exit codes."""
import json
import os
import xml.etree.ElementTree

from libanswer import TIDEMARK, answer, assemble, refused, run, sampled
from libtests import check, equal, main, test
from libtrends import MIB, Trace

SECOND = 1000000  # times are in microseconds


def stack(name, *callers):
    return " < ".join(f'"{part}" "/src/app/{part}.c":{7}' for part in ("malloc", name, *callers,
                                                                      "main"))


def program(path="app.tide", leaks=3):
    """A peak of 8 MiB and a bit, 1,000 temporary blocks, some of 1,000 bytes left at exit."""
    trace = Trace()
    trace.free(SECOND + 10, trace.alloc(SECOND, stack("export"), 8 * MIB))
    for step in range(1000):
        trace.free(step * 10 + 1, trace.alloc(step * 10, stack("format"), 10, 0x9000000))
    for step in range(leaks):
        trace.alloc(2 * SECOND + step, stack("session", "serve"), 1000)
    trace.alloc(2 * SECOND + 50, stack("cache", "lookup"), 500)
    return trace.write(path)


def verdict(*words, code, **more):
    return run("check", *words, check=code, **more).stdout


# ---- limits ----

@test
def each_limit_passes_at_its_figure_and_fails_below_it():
    path = program()
    figures = {"peak": 8 * MIB, "live-at-exit": 3500, "allocations": 1005, "temporary": 1001}
    for name, value in figures.items():
        verdict(path, f"--max-{name}", str(value), code=0)
        text = verdict(path, f"--max-{name}", str(value - 1), code=1)
        check("FAILED" in text and name in text, text)
    told = answer("check", path, "--max-peak", "8M", "--max-temporary", "0", check=1)
    equal([("peak", 8 * MIB, False), ("temporary", 0, True)],
          [(row["figure"], row["limit"], row["exceeded"]) for row in told["figures"]
           if row["limit"] is not None])
    temporary = next(row for row in told["figures"] if row["figure"] == "temporary")
    site = temporary["sites"][0]
    equal(("format", 1000), (site["stack"][site["user_frame"]]["function"], site["value"]))
    equal((False, True), (told["passed"], told["judged"]))


@test
def how_much_was_recorded_is_said_whatever_is_limited():
    path = program()
    equal(2006, answer("info", path)["events"]["total"])
    for words in ((), ("--max-growth", "1G"), ("--frame", "format")):
        equal(2006, answer("check", path, "--max-peak", "1G", *words)["trace"]["events"], words)
    check(", 2,006 events" in verdict(path, "--max-peak", "1G", code=0))


@test
def filters_and_windows_choose_what_is_limited():
    path = program()
    verdict(path, "--frame", "^session$", "--max-live-at-exit", "3000", code=0)
    verdict(path, "--frame", "^session$", "--max-live-at-exit", "2999", code=1)
    verdict(path, "--from", "0.5s", "--to", "1.5s", "--max-allocations", "1", code=0)
    verdict(path, "--from", "0.5s", "--to", "1.5s", "--max-allocations", "0", code=1)


@test
def growth_is_limited_by_the_minute_and_needs_a_long_enough_run():
    trace = Trace()
    for time_us in range(0, 60 * SECOND, 50000):
        trace.alloc(time_us, stack("leak"), 1000)
    path = trace.write("growing.tide", 60 * SECOND)  # 1.2 MB a minute
    verdict(path, "--max-growth", "1300K", code=0)
    check("leak" in verdict(path, "--max-growth", "1000K", code=1))
    brief = Trace()
    brief.alloc(0, stack("once"), 10)
    done = run("check", brief.write("brief.tide"), "--max-growth", "1M", check=3)
    check("long enough" in done.stderr, done)


@test
def a_filter_that_names_nothing_in_the_trace_is_not_judged():
    path = program()
    for words in (("--frame", "no_such_function"), ("--module", "no_such_file"),
                  ("--row", "function:no_such_function"), ("--not-frame", ".")):
        done = run("check", path, *words, "--max-allocations", "0", check=3)
        check("not judged: no stack of the trace is as " in done.stderr, words, done.stderr)
        run("check", path, *words, "--baseline", "nothing.baseline", "--update", check=3)
        check(not os.path.exists("nothing.baseline"), words)
    # What is there, and has none of that size, keeps to it.
    run("check", path, "--frame", "format", "--size", "1G..2G", "--max-allocations", "0", check=0)


# ---- what is not whole ----

@test
def a_cut_a_lossy_and_a_sampled_trace_never_pass():
    path = program()
    with open(path, "rb") as file:
        data = file.read()
    with open("cut.tide", "wb") as file:
        file.write(data[:-20])
    lossy = assemble("lossy", 'trace command="./app"\nprocess p pid=1\nthread t p tid=1\n'
                     '+1 t malloc 0x1000 10\n+1 loss p value=3 "full"\n+1 end p exit=0\nend\n')
    for bad in ("cut.tide", lossy, sampled()):
        done = run("check", bad, "--max-peak", "1G", check=3)
        check("not judged: " in done.stderr, bad, done.stderr)
        done = run("check", bad, "--max-peak", "0", "--junit", "bad.xml", "--sarif", "bad.sarif",
                   "--json", check=3)
        equal((False, False), tuple(json.loads(done.stdout)[key] for key in ("judged", "passed")))
        check("<error" in open("bad.xml", encoding="utf-8").read())
        equal("tidemark/not-judged", json.load(open("bad.sarif", encoding="utf-8"))
              ["runs"][0]["results"][0]["ruleId"])
        run("check", bad, "--baseline", "never.baseline", "--update", check=3)
        check(not os.path.exists("never.baseline"))


@test
def a_baseline_that_was_written_is_said_and_a_trace_is_none():
    path = program()
    done = run("check", path, "--baseline", "said.baseline", "--update")
    check("said.baseline written" in done.stderr, done.stderr)
    check("is a trace, not a baseline" in refused("check", path, "--baseline", path), path)


@test
def figures_that_an_import_has_as_sums_or_estimates_never_pass():
    trace = Trace()
    trace.alloc(0, stack("take"), 1000)
    trace.free(1, trace.alloc(1, stack("take"), 100))
    for number, (lacks, known) in enumerate((("massif no-addresses snapshots numbered no-counts", {"live-at-exit"}),
                                             ("dhat snapshots totals", {"live-at-exit", "allocations"}),
                                             ("pprof snapshots estimated", set()), ("lsan leaks", {"live-at-exit"}),
                                             ("heaptrack no-threads", {"live-at-exit", "peak", "allocations", "temporary"}),
                                             ("csv", {"allocations"}))):
        trace.lines[0] = f'trace command="./app" tick=1000 options="imported={lacks}"'
        if lacks == "csv":  # without a single free
            trace.events.pop()
        path = trace.write(f"imported{number}.tide")
        figures = {row["figure"]: row["value"] for row in answer("check", path, "--max-live-at-exit", "1G", check=None)["figures"]}
        equal(known, {figure for figure, value in figures.items() if value is not None}, lacks)
        for figure in ("peak", "live-at-exit", "allocations", "temporary"):
            done = run("check", path, f"--max-{figure}", "100000", check=0 if figure in known else 3)
            equal(figure in known, f"{figure} is not known" not in done.stderr, done)
        filtered = answer("check", path, "--size", "1..2000", "--max-live-at-exit", "1G", check=None)["figures"]
        equal(known, {row["figure"] for row in filtered if row["value"] is not None}, f"{lacks} with a filter")
        run("check", path, "--baseline", f"{number}.baseline", "--update", check=0)
        text = open(f"{number}.baseline", encoding="utf-8").read()
        equal(known, {line.split()[0] for line in text.splitlines() if "=" in line}, lacks)


@test
def texts_may_begin_with_a_byte_order_mark_and_are_named_where_they_cannot_be_read():
    path = program()
    for name, text in (("marked.baseline", "[all]\r\nlive-at-exit = 3499\r\n"), ("marked.supp", "leak:^serve$\r\n")):
        with open(name, "w", encoding="utf-8-sig", newline="") as file:
            file.write(text)
    verdict(path, "--baseline", "marked.baseline", code=1)
    verdict(path, "--max-live-at-exit", "500", "--suppressions", "marked.supp", code=0)
    os.mkdir("folder")
    for name in ("folder", "nowhere"):
        for option in ("--baseline", "--suppressions"):
            check(f"{name}: " in refused("check", path, "--max-peak", "1", option, name, code=3))


@test
def unexpected_allocations_are_those_between_from_and_to():
    trace = Trace()
    for begin in (10000, 30000):
        trace.note(begin, 'mark p0 t0 "no-alloc a.c:1.begin"')
        trace.note(begin, f'mark p0 t0 "in{begin}"')
        for size in (100, 2000):
            trace.alloc(begin + 500, stack("hot"), size)
        trace.note(begin + 1000, 'mark p0 t0 "no-alloc a.c:1.end"')
    trace.note(40000, 'mark p0 t0 "no-alloc b.c:1.begin"')
    path = trace.write("expected.tide", 50000)
    for words, count in (((), 4), (("--to", "20ms"), 2), (("--from", "20ms"), 2), (("--from", "10600us", "--to", "29ms"), 0),
                         (("--from", "mark:in30000", "--to", "mark:in30000+1ms"), 2), (("--size", "2000"), 2),
                         (("--from", "10.2ms", "--to", "10.3ms"), 0), (("--from", "45ms"), 0), (("--lifetime", ">1s"), 0),
                         (("--from", "1ms", "--to", "2ms"), None), (("--from", "35ms", "--to", "36ms"), None)):
        told = json.loads(run("check", path, "--max-unexpected", "9", "--json", *words, check=None).stdout)
        row = next(row for row in told["figures"] if row["figure"] == "unexpected")
        equal(count, row["value"], words)
    check("between --from and --to" in verdict(path, "--max-unexpected", "0", "--to", "1ms", code=3).replace("\n", " "))


@test
def what_the_runtime_of_cpp_leaves_is_named_as_that():
    path = assemble("runtime", """trace command="./app"
process p pid=42 exe="/bin/app"
thread t p tid=42
module app p 0x400000-0x500000 "/bin/app"
module cxx p 0x600000-0x700000 "/lib/libstdc++.so.6"
module ld p 0x800000-0x900000 "/lib64/ld-linux-x86-64.so.2"
frame reserve cxx 0x6a57b9
frame run ld 0x801000
frame buffer app 0x401000
name buffer "__GI__IO_file_doallocate" "":0
frame own app 0x401100
name own "own" "":0
stack r reserve < run
stack b buffer < own
stack o own
+1 t malloc r 0x1000 72704
+1 t malloc b 0x100000 4096
+1 t malloc o 0x200000 512
+1 end p exit=0
end
""")
    text = " ".join(verdict(path, "--max-live-at-exit", "0", code=1).split())
    check("runtime: 71.0 KiB is libstdc++'s reserve for exceptions, 4.0 KiB is the buffer of a stream" in text, text)
    text = verdict(path, "--max-live-at-exit", "0", "--frame", "^own$", code=1)
    check("for exceptions" not in text, text)
    # So does report, and of what was imported.
    run("export", "--format", "heaptrack", path, "-o", "runtime.heaptrack")
    run("import", "runtime.heaptrack", "-o", "imported.tide")
    for each in (path, "imported.tide"):
        text = " ".join(run("report", each).stdout.split())
        check("4.0 KiB is the buffer of a stream: the runtime's own, which no program frees AT THE PEAK" in text and
              "runtime: 71.0 KiB is libstdc++'s reserve for exceptions, " in text, each, text)
    text = run("report", "--frame", "^own$", path).stdout
    check("for exceptions" not in text, text)


# ---- baselines ----

@test
def a_baseline_goes_down_by_itself_and_up_only_by_force():
    verdict(program("three.tide"), "--baseline", "b", "--update", code=0)
    verdict("three.tide", "--baseline", "b", code=0)
    verdict(program("five.tide", 5), "--baseline", "b", code=1)
    before = open("b", encoding="utf-8").read()
    verdict("five.tide", "--baseline", "b", "--update", code=1)
    equal(before, open("b", encoding="utf-8").read(), "not raised")
    verdict(program("one.tide", 1), "--baseline", "b", "--update", code=0)
    check("live-at-exit = 1500\n" in open("b", encoding="utf-8").read())
    verdict("three.tide", "--baseline", "b", code=1)
    verdict("five.tide", "--baseline", "b", "--update", "--force", code=0)
    check("live-at-exit = 5500\n" in open("b", encoding="utf-8").read())


@test
def what_is_over_a_baseline_is_blamed_on_no_site_but_on_what_diff_says():
    verdict(program("three.tide"), "--baseline", "sites", "--update", code=0)
    path = program("thirty.tide", 30)
    text = verdict(path, "--baseline", "sites", "--annotate", "github", "--sarif", "sites.sarif", "--junit", "out.xml",
                   code=1)
    command = "which have grown since the baseline: tidemark diff OLD thirty.tide"
    check(f"sites: the largest; {command}" in text, text)
    [live, _] = [line for line in text.splitlines() if line.startswith("::error ")]
    check(" by " not in live and live.endswith(command) and "file=" not in live, live)
    results = json.load(open("sites.sarif", encoding="utf-8"))["runs"][0]["results"]
    check(all("logicalLocations" not in result["locations"][0] for result in results), results)
    check(command in open("out.xml", encoding="utf-8").read())
    check(command in verdict(path, "--baseline", "sites", "--markdown", code=1).replace("\\", ""))
    # Of a limit that is given the largest is a site to look at.
    check("of it by session" in verdict(path, "--max-live-at-exit", "5000", "--annotate", "github", code=1))


@test
def a_baseline_keeps_a_section_for_each_set_of_filters_and_its_comments():
    path = program()
    with open("kept", "w", encoding="utf-8") as file:
        file.write("# ours\n[all]\npeak = 9000000\n[--frame ^format$]\ntemporary = 5000\n")
    verdict(path, "--baseline", "kept", "--update", "--frame", "^format$", code=0)
    text = open("kept", encoding="utf-8").read()
    check(text.startswith("# ours\n[all]\npeak = 9000000\n"), text)
    check("[--frame ^format$]\n" in text and "temporary = 1000\n" in text, text)
    check("5000" not in text, text)
    # A limit on the command line stands before the baseline's.
    verdict(path, "--baseline", "kept", "--max-peak", "1", code=1)
    check("no limit" in refused("check", path, "--baseline", "kept", "--frame", "^main$"))
    with open("bad", "w", encoding="utf-8") as file:
        file.write("[all]\npeek = 1\n")
    check("line 2" in refused("check", path, "--baseline", "bad"))


@test
def a_section_of_a_long_filter_is_kept_whole():
    path, long = program(), "^(" + "|".join(f"function_number_{n}" for n in range(200)) + "|format)$"
    verdict(path, "--baseline", "long", "--update", "--frame", long, code=0)
    verdict(path, "--baseline", "long", "--update", code=0)
    verdict(path, "--baseline", "long", "--frame", long, code=0)
    check(f"[--frame {long}]\n" in open("long", encoding="utf-8").read())


# ---- several runs ----

def runs_of(prefix, leaks, seeds):
    """Runs of a program whose peak, and nothing else, differs from run to run."""
    paths = []
    for number, seed in enumerate(seeds):
        trace = Trace()
        trace.free(SECOND + 10, trace.alloc(SECOND, stack("export"), MIB + seed * 1000))
        for step in range(leaks):
            trace.alloc(2 * SECOND + step, stack("session", "serve"), 1000)
        paths.append(trace.write(f"{prefix}{number}.tide"))
    return paths


@test
def of_several_runs_each_keeps_to_a_limit():
    runs = runs_of("k", 3, (5, 9, 1))
    verdict(*runs, "--max-peak", str(MIB + 9000), code=0)
    text = verdict(*runs, "--max-peak", str(MIB + 8999), code=1)
    check("at most in 3 runs" in text, text)
    told = answer("check", *runs, "--max-peak", str(MIB + 8999), check=1)
    peak = told["figures"][0]
    equal(([MIB + 5000, MIB + 9000, MIB + 1000], MIB + 9000, False),
          (peak["runs"], peak["value"], peak["compared"]))
    equal(MIB + 9000, peak["sites"][0]["value"], "the sites are those of the run with most")


@test
def a_baseline_that_differs_is_exceeded_only_by_more_than_runs_differ():
    old = runs_of("b", 3, (50, 20, 70, 40))
    verdict(*old, "--baseline", "runs.baseline", "--update", code=0)
    text = open("runs.baseline", encoding="utf-8").read()
    check(f"peak = {MIB + 50000} {MIB + 20000} {MIB + 70000} {MIB + 40000}\n" in text, text)
    check("allocations = 4\n" in text, "what is alike is one value:", text)
    same = runs_of("s", 3, (60, 75, 30))
    check("not more than runs differ by" in verdict(*same, "--baseline", "runs.baseline", code=0))
    more = runs_of("m", 3, (90, 95, 99))
    text = verdict(*more, "--baseline", "runs.baseline", "--junit", "runs.xml", "--sarif", "runs.sarif", code=1)
    check("in the mean of 3 runs" in text and "more by" in text and "export" in text, text)
    check("more by" in open("runs.xml", encoding="utf-8").read())
    told = answer("check", *more, "--baseline", "runs.baseline", check=1)
    peak = told["figures"][0]
    check(peak["compared"] and 0 < peak["least_change"] < 50000, peak)
    equal([False] * 3, [row["exceeded"] for row in told["figures"][1:4]])
    # What is exact needs one run, and is not hidden by what is not.
    leaky = runs_of("l", 4, (50, 20, 70, 40))
    check("FAILED  allocations" in verdict(*leaky, "--baseline", "runs.baseline", code=1))


@test
def too_few_runs_are_not_judged_and_say_how_many_it_takes():
    verdict(*runs_of("b", 3, (50, 20, 70, 40)), "--baseline", "few.baseline", "--update", code=0)
    done = run("check", *runs_of("one", 3, (45,)), "--baseline", "few.baseline", check=3)
    check("3 runs are needed to compare with its 4, and there is 1" in done.stderr, done.stderr)
    verdict(*runs_of("b", 3, (50, 20, 70, 40)), "--baseline", "few.baseline", "--update", code=0)


@test
def a_baseline_of_runs_goes_down_when_runs_are_lower_and_not_by_chance():
    verdict(*runs_of("b", 3, (50, 20, 70, 40)), "--baseline", "down.baseline", "--update", code=0)
    before = open("down.baseline", encoding="utf-8").read()
    verdict(*runs_of("c", 3, (30, 45, 25)), "--baseline", "down.baseline", "--update", code=0)
    equal(before, open("down.baseline", encoding="utf-8").read(), "lower by chance")
    verdict(*runs_of("d", 3, (3, 4, 5)), "--baseline", "down.baseline", "--update", code=0)
    check(f"peak = {MIB + 3000} {MIB + 4000} {MIB + 5000}\n" in
          open("down.baseline", encoding="utf-8").read())
    for bad in ("peak = 1 x", "peak =", "peak = 1 -2"):
        with open("bad.baseline", "w", encoding="utf-8") as file:
            file.write(f"[all]\n{bad}\n")
        check("line 2" in refused("check", "b0.tide", "--baseline", "bad.baseline"), bad)


@test
def a_run_that_is_not_whole_is_named():
    runs = runs_of("w", 3, (1, 2))
    done = run("check", *runs, sampled(), "--max-peak", "1G", check=3)
    check("sampled.tide: " in done.stderr, done.stderr)


# ---- suppressions ----

@test
def suppressions_of_both_languages_leave_out_what_they_name_and_unused_ones_are_told():
    path = program()
    with open("lsan.txt", "w", encoding="utf-8") as file:
        file.write("# known\nleak:^serve$\nrace:whatever\nleak:nothing_of_ours\n")
    text = verdict(path, "--max-live-at-exit", "500", "--suppressions", "lsan.txt", code=0)
    check("unused suppression: leak:nothing_of_ours (lsan.txt:4)" in text, text)
    with open("valgrind.txt", "w", encoding="utf-8") as file:
        file.write("{\n   sessions\n   Memcheck:Leak\n   match-leak-kinds: reachable\n"
                   "   fun:malloc\n   fun:sess*\n   ...\n   fun:main\n}\n"
                   "{\n   other\n   Memcheck:Cond\n   fun:x\n}\n"
                   "{\n   caches\n   Memcheck:Leak\n   fun:malloc\n   fun:cache\n   src:lookup.c:7\n}\n")
    text = verdict(path, "--max-live-at-exit", "0", "--suppressions", "valgrind.txt", code=0)
    check("unused" not in text, text)
    os.symlink("lsan.txt", "my list.txt")
    for options, code in (("verbosity=0:suppressions=lsan.txt", 0), ("print_suppressions=0:suppressions=lsan.txt", 0),
                          ("suppressions='my list.txt' verbosity=0", 0), ("suppressions=nowhere,suppressions=lsan.txt", 0),
                          ('log_path="a:suppressions=lsan.txt"', 1), ("suppressions", 1), ("print_suppressions=0", 1)):
        verdict(path, "--max-live-at-exit", "500", code=code, env={"LSAN_OPTIONS": options})
    verdict(path, "--max-live-at-exit", "499", "--suppressions", "lsan.txt", code=1)
    with open("bad.txt", "w", encoding="utf-8") as file:
        file.write("leak:fine\nnonsense\n")
    check("line 2" in refused("check", path, "--max-peak", "1G", "--suppressions", "bad.txt"))
    with open("bad.txt", "w", encoding="utf-8") as file:
        file.write("{\n   x\n   Memcheck:Leak\n   match-leak-kinds: definite,most\n   fun:x\n}\n")
    check("line 4" in refused("check", path, "--max-peak", "1G", "--suppressions", "bad.txt"))


def live_without(path, glob):
    """The bytes that live at exit and that no suppression of that name takes."""
    with open("globs.txt", "w", encoding="utf-8") as file:
        file.write("{\n   x\n   Memcheck:Leak\n   fun:_Zn*\n   fun:" + glob + "\n}\n")
    told = answer("check", path, "--max-live-at-exit", "1G", "--suppressions", "globs.txt")
    return {row["figure"]: row["value"] for row in told["figures"]}["live-at-exit"]


@test
def mangled_names_with_wildcards_are_of_what_they_begin_with():
    trace = Trace()
    for number, name in enumerate(("base::Lazy::get(int)", "long* base::make<long>(long)", "base::maker()", "top(int)")):
        trace.alloc(number, stack(name), 1 << number)
    path = trace.write("mangled.tide")
    for glob, left in (("_ZN4base*", 8), ("_ZN4bas*", 8), ("_ZN3bas*", 15), ("_ZN4base4Lazy*", 14), ("_ZN4base4makeI*", 13),
                       ("_ZN4base4make*", 13), ("_ZN4base4makeE*", 15), ("_ZN4base5makerE*", 11), ("_ZN4base3mak*", 15),
                       ("_ZN4base4Lazy3getEi*", 14), ("_ZN4base*get*", 14), ("_ZN4base*set*", 15), ("_Z3top*", 7), ("_Z3to*", 7),
                       ("_ZN0base*", 15), ("_ZN*", 8), ("_ZNK*", 8), ("_Z*", 0), ("_ZL*", 0), ("_Z*ake*", 9), ("_ZN*get*", 14)):
        equal(left, live_without(path, glob), glob)
    plain = Trace()
    plain.alloc(0, stack("plain"), 1)
    equal(1, live_without(plain.write("plain.tide"), "_Z*"), "a name of C's is not mangled")


@test
def mangled_names_of_lists_that_others_keep_are_understood():
    trace = Trace()
    for number, name in enumerate(("base::Lazy::get(int)", "base::Lazy::Lazy(int)", "base::Lazy::~Lazy()", "top(int)",
                                   "(anonymous namespace)::cache()", "base::(anonymous namespace)::cache()")):
        trace.alloc(number, stack(name), 1 << number)
    path = trace.write("kept.tide")
    for glob, left in (("*_ZN4base4Lazy3g*", 62), ("**_ZN4base4LazyE*", 63), ("_ZN4base4LazyC?E*", 61), ("_ZN4base4LazyC1E*", 61),
                       ("_ZN4base4LazyD*", 59), ("_ZL3top*", 55), ("_ZN12_GLOBAL__N_1*", 47), ("_ZN4base12_GLOBAL__N_15cac*", 31)):
        equal(left, live_without(path, glob), glob)


@test
def suppressions_that_are_generated_suppress_everything():
    path = program()
    with open("made.txt", "w", encoding="utf-8") as file:
        file.write(verdict(path, "--gen-suppressions", code=0))
    verdict(path, "--max-live-at-exit", "0", "--suppressions", "made.txt", code=0)


def cxx(path, *sizes):
    """Blocks of these sizes: of libstdc++'s pool, of main, without a stack, of login by operator new, of a nameless caller's."""
    trace = Trace()
    trace.lines += ['module cxx p0 0x7f0000000000-0x7f0000100000 bias=0x7f0000000000 "/usr/lib/libstdc++.so.6"',
                    "frame pool cxx 0x7f0000001234", "frame new cxx 0x7f0000002345", 'name new "operator new(unsigned long)" "":0']
    stacks = ('pool < "call_init" "dl-init.c":7', stack("main"), None, 'new < "login" "login.cpp":7 < "main" "main.c":9',
              'new < pool < "insert" "insert.cpp":8 < "main" "main.c":9')
    for number, (text, size) in enumerate(zip(stacks, sizes)):
        if text:
            trace.alloc(number, text, size)
        else:
            trace.events.append((number, f"t0 malloc 0x9000000 {size}"))
    return trace.write(path)


@test
def suppressions_that_are_generated_hide_nothing_else():
    """Neither what goes through the file of a function without a name, nor what a named one calls."""
    with open("made.txt", "w", encoding="utf-8") as file:
        file.write(verdict(cxx("before.tide", 1, 2, 4), "--gen-suppressions", code=0))
    check("without a stack" in open("made.txt", encoding="utf-8").read())
    verdict("before.tide", "--max-live-at-exit", "4", "--suppressions", "made.txt", code=0)
    verdict(cxx("after.tide", 1, 2, 4, 8, 16), "--max-live-at-exit", "28", "--suppressions", "made.txt", code=0)
    verdict("after.tide", "--max-live-at-exit", "27", "--suppressions", "made.txt", code=1)
    name = "work<" + "long, " * 200 + "int>"
    long = Trace()
    long.alloc(0, f'"{name}" "work.c":7', 1)
    with open("made.txt", "w", encoding="utf-8") as file:
        file.write(verdict(long.write("long.tide"), "--gen-suppressions", code=0))
    verdict("long.tide", "--max-live-at-exit", "0", "--suppressions", "made.txt", code=0)


def left_of(path, *suppressed):
    """Bytes live at exit that are left by each list of suppressions."""
    for text, left in suppressed:
        with open("library.txt", "w", encoding="utf-8") as file:
            file.write(text + "\n")
        told = answer("check", path, "--max-live-at-exit", "1G", "--suppressions", "library.txt")
        equal(left, {row["figure"]: row["value"] for row in told["figures"]}["live-at-exit"], text)


@test
def a_library_that_operator_new_is_in_is_not_that_of_its_callers():
    left_of(cxx("callers.tide", 1, 2, 4, 8, 16),
            ("leak:libstdc++", 14), ("leak:operator new", 7), ("{\nx\nMemcheck:Leak\n...\nobj:*/libstdc++*\n}", 14),
            ("{\nx\nMemcheck:Leak\nfun:_Znwm\nobj:*/libstdc++*\n}", 14))


@test
def a_library_that_g_malloc_is_in_is_on_the_stack_as_for_the_sanitizer():
    trace = Trace()
    trace.lines += ['module glib p0 0x7f0000000000-0x7f0000100000 bias=0x7f0000000000 "/usr/lib/libglib-2.0.so.0"',
                    "frame gm glib 0x7f0000001234", 'name gm "g_malloc" "gmem.c":100']
    trace.alloc(0, 'gm < "work" "work.c":7', 1)
    trace.alloc(1, '"work" "work.c":8', 2)
    left_of(trace.write("glib.tide"),
            ("leak:libglib", 2), ("leak:gmem.c", 2), ("leak:g_malloc", 2), ("leak:work", 0))


@test
def suppressions_for_the_sanitizer_name_functions_but_neither_main_nor_files():
    path = cxx("sanitized.tide", 1, 2, 4, 8, 16)
    text = verdict(path, "--gen-lsan-suppressions", code=0)
    equal(["leak:^login$"], [line for line in text.splitlines() if not line.startswith("#")], text)
    for said in ("in main:", "in libstdc++.so.6, in a function without a name", "without a stack",
                 "# 8 bytes in 1 blocks\nleak:^login$", "every frame of a stack"):
        check(said in text, said, text)
    with open("made.txt", "w", encoding="utf-8") as file:
        file.write(text)
    verdict(path, "--max-live-at-exit", "23", "--suppressions", "made.txt", code=0)
    verdict(path, "--max-live-at-exit", "22", "--suppressions", "made.txt", code=1)
    for name, lines in (("lines(char const*)", ["leak:^lines(char const*)$", "leak:^lines$"]),
                        ("ns::f<int>(int)::$_1", ["leak:^ns::f<int>(int)::*_1$"]),
                        ("copy(int) [clone .isra.0]", ["leak:^copy(int)*", "leak:^copy$"])):
        one = Trace()
        one.alloc(0, f'"{name}" "work.c":7', 1)
        text = verdict(one.write("one.tide"), "--gen-lsan-suppressions", code=0)
        equal(lines, [line for line in text.splitlines() if not line.startswith("#")], name)


@test
def suppressions_that_are_generated_name_no_function_that_many_are():
    trace = Trace()
    for at, name in enumerate(("<module>", "(anonymous)", "{closure:app.php:7}", "<lambda>", "{main}")):
        trace.alloc(2 * at, f'"{name}" "/x/app.py":{at + 1} < "main" "/x/app.py":90', 10)
        trace.alloc(2 * at + 1, f'"{name}" "/x/other.py":{at + 1} < "main" "/x/app.py":90', 1)
    for root in ("_start", "start_thread"):
        trace.alloc(20, f'"{root}"', 100)
    path = trace.write("many.tide")
    text = verdict(path, "--module", "app.py", "--gen-lsan-suppressions", code=0)
    check(not [line for line in text.splitlines() if not line.startswith("#")], text)
    check("# in <module> of /x/app.py:1: leak:^<module>$ would name others too" in text, text)
    check("# in start_thread: leak:^start_thread$ would name all" in verdict(path, "--gen-lsan-suppressions", code=0))
    with open("made.txt", "w", encoding="utf-8") as file:
        file.write(verdict(path, "--row", "module:/x/app.py", "--gen-suppressions", code=0))
    # What is of app.py alone; the others stay.
    left_of(path, (open("made.txt", encoding="utf-8").read(), 205))


# ---- forms ----

def suite_of(path="out.xml"):
    return xml.etree.ElementTree.parse(path).getroot().find("testsuite")


@test
def junit_has_a_case_for_each_limit_and_the_failure_of_those_exceeded():
    path = program()
    verdict(path, "--max-peak", "1G", "--max-temporary", "5", "--junit", "out.xml", code=1)
    suite = suite_of()
    equal(("2", "1", "0"), tuple(suite.get(key) for key in ("tests", "failures", "errors")))
    cases = {case.get("name"): case for case in suite.findall("testcase")}
    check(cases["peak of ./app"].find("failure") is None)
    check("1,000  format  /src/app/format.c:7\n" in cases["temporary of ./app"].find("failure").text)
    # Cases of one name are one to GitLab: those of other filters have other names.
    verdict(path, "--frame", "^format$", "--max-peak", "1G", "--junit", "out.xml", code=0)
    equal("peak of ./app, --frame ^format$", suite_of().find("testcase").get("name"))


@test
def what_cannot_be_judged_has_an_error_in_junit_even_without_a_limit():
    verdict(sampled(), "--baseline", "none.baseline", "--update", "--junit", "out.xml", code=3)
    suite = suite_of()
    equal(("1", "1"), (suite.get("tests"), suite.get("errors")))
    check("sampled" in suite.find("testcase").find("error").get("message"))


HOSTILE = r"<é&\"'>]]>\x01\x1b\n\xff" + "\uffff"  # as a trace's text spells it


def hostile():
    """A program whose command, function and file have in them what forms could stumble over."""
    trace = Trace(command="./app " + HOSTILE)
    trace.alloc(0, f'"malloc" "m.c":1 < "{HOSTILE}" "/src/a b,c:d%{HOSTILE}":7', 100)
    return trace.write("hostile.tide")


@test
def names_with_anything_in_them_stay_what_they_are_in_xml_json_and_commands():
    text = verdict(hostile(), "--max-peak", "5", "--junit", "out.xml", "--sarif", "out.sarif",
                   "--annotate", "github", code=1)
    name = "<é&\"'>]]>??\n\ufffd?"
    suite = suite_of()
    equal("./app " + name, suite.get("name"))
    failure = suite.find("testcase").find("failure")
    equal(f"100 B  {name}  /src/a b,c:d%{name}:7\n", failure.text)
    [result] = json.load(open("out.sarif", encoding="utf-8"))["runs"][0]["results"]
    name = "<é&\"'>]]>\x01\x1b\n\ufffd\uffff"
    equal(name, result["locations"][0]["logicalLocations"][0]["fullyQualifiedName"])
    check(result["message"]["text"].endswith("at most 5 B; 100 B of it by " + name), result)
    lines = [line for line in text.split("\n") if line.startswith("::error ")]
    equal(1, len(lines), "a line feed in a name begins no command")
    check(lines[0].startswith("::error file=/src/a b%2Cc%3Ad%25<é&"), lines[0])
    check("\ufffd\uffff" in lines[0], "a byte that is no UTF-8")
    check("\ufffd\uffff" in verdict(hostile(), "--max-peak", "5", "--markdown", code=1))


@test
def sarif_has_a_result_with_its_rule_and_its_place():
    path = program()
    verdict(path, "--max-temporary", "5", "--max-peak", "1G", "--sarif", "out.sarif", code=1)
    told = json.load(open("out.sarif", encoding="utf-8"))
    equal("2.1.0", told["version"])
    [one] = told["runs"]
    [result] = one["results"]
    rules = one["tool"]["driver"]["rules"]
    check(result["ruleId"] in [rule["id"] for rule in rules])
    for rule in rules:  # GitHub's rules
        check(all(rule[key]["text"] for key in ("shortDescription", "fullDescription", "help")), rule)
    check(one["tool"]["driver"]["version"])
    equal("error", result["level"])
    place = result["locations"][0]["physicalLocation"]
    equal(("file:///src/app/format.c", 7), (place["artifactLocation"]["uri"],
                                            place["region"]["startLine"]))
    prints = set()
    for words in (("5",), ("9",), ("5", "--frame", "^format$")):
        verdict(path, "--sarif", "out.sarif", "--max-temporary", *words, code=1)
        told = json.load(open("out.sarif", encoding="utf-8"))["runs"][0]["results"]
        prints.add(told[0]["partialFingerprints"]["tidemarkFigure/v1"])
    equal(2, len(prints), "the value has no part in it, the filters have")


@test
def a_result_is_at_the_next_caller_with_a_line_else_in_the_trace():
    # GitHub refuses a file in which any result is nowhere.
    for number, (stack_text, file, line) in enumerate((
            ('"malloc" < "lib" < "main" "/src/main.c":9', "file:///src/main.c", 9),
            ('"malloc" < "lib" < "main"', "where1.tide", 1))):
        trace = Trace()
        trace.alloc(0, stack_text, 100)
        path = trace.write(f"where{number}.tide")
        verdict(path, "--max-peak", "5", "--sarif", "out.sarif", code=1)
        [result] = json.load(open("out.sarif", encoding="utf-8"))["runs"][0]["results"]
        place = result["locations"][0]["physicalLocation"]
        equal((file, line), (place["artifactLocation"]["uri"], place["region"]["startLine"]))
    verdict(sampled(), "--max-peak", "5", "--sarif", "out.sarif", code=3)
    result = json.load(open("out.sarif", encoding="utf-8"))["runs"][0]["results"][0]
    equal("sampled.tide", result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"])


@test
def annotations_are_githubs_commands_and_gitlabs_report():
    path = program()
    text = verdict(path, "--max-temporary", "5", "--annotate", "github", code=1)
    [line] = [line for line in text.splitlines() if line.startswith("::")]
    equal("::error file=/src/app/format.c,line=7,title=tidemark temporary::./app: temporary 1,001, "
          "at most 5; 1,000 of it by format", line)
    [issue] = json.loads(verdict(path, "--max-temporary", "5", "--annotate", "gitlab", code=1))
    equal(("temporary", "/src/app/format.c", 7, "major"),
          (issue["check_name"], issue["location"]["path"], issue["location"]["lines"]["begin"],
           issue["severity"]))
    [again] = json.loads(verdict(path, "--max-temporary", "9", "--annotate", "gitlab", code=1))
    equal(issue["fingerprint"], again["fingerprint"])
    [other] = json.loads(verdict(path, "--frame", "^format$", "--max-temporary", "9", "--annotate", "gitlab", code=1))
    check(issue["fingerprint"] != other["fingerprint"], "of other filters")
    equal([], json.loads(verdict(path, "--max-peak", "1G", "--annotate", "gitlab", code=0)))


@test
def places_are_below_the_folder_of_the_sources_and_without_dots():
    for file, plain, below in (("/src/app/build/../lib/./x.c", "/src/app/lib/x.c", "app/lib/x.c"),
                               ("/src/a/b/../../../../x.c", "/../x.c", "/../x.c"),
                               ("../../lib/a/../x.c", "../../lib/x.c", "../../lib/x.c")):
        trace = Trace()
        trace.alloc(0, f'"malloc" "m.c":1 < "make" "{file}":7', 100)
        path = trace.write("dots.tide")
        text = verdict(path, "--max-peak", "5", "--annotate", "github", code=1)
        check(f"::error file={plain},line=7," in text, text)
        for name in ("CI_PROJECT_DIR", "GITHUB_WORKSPACE"):
            [issue] = json.loads(verdict(path, "--max-peak", "5", "--annotate", "gitlab", code=1,
                                         env={name: "/src/"}))
            equal(below, issue["location"]["path"], name)
            text = verdict(path, "--max-peak", "5", "--annotate", "github", code=1, env={name: "/src"})
            check(f"::error file={below},line=7," in text, text)


@test
def a_finding_is_shown_at_the_first_caller_whose_file_is_in_the_checkout():
    os.makedirs("checkout/tests", exist_ok=True)
    with open("checkout/tests/test_mem.py", "w", encoding="utf-8") as file:
        file.write("x = 1\n")
    here = os.path.realpath("checkout")
    trace = Trace()
    trace.alloc(0, '"list_resize" "/tmp/python-build/Objects/listobject.c":70 < "concatenate" "<__array_function__ internals>":200 '
                   f'< "test" "{here}/tests/test_mem.py":7 < "run" "/venv/pytest.py":9', 100)
    path = trace.write("here.tide")
    for env, place in (({}, "checkout/tests/test_mem.py"), ({"GITHUB_WORKSPACE": here}, "tests/test_mem.py"),
                       ({"CI_PROJECT_DIR": here + "/"}, "tests/test_mem.py")):
        text = verdict(path, "--max-peak", "5", "--annotate", "github", "--junit", "out.xml", "--sarif", "out.sarif", code=1,
                       env=env)
        check(f"{place},line=7," in text, text, env)
        check("test_mem.py:7" in open("out.xml", encoding="utf-8").read())
        [result] = json.load(open("out.sarif", encoding="utf-8"))["runs"][0]["results"]
        where = result["locations"][0]["physicalLocation"]
        check(where["artifactLocation"]["uri"].endswith(place) and where["region"]["startLine"] == 7, where)
    os.remove("checkout/tests/test_mem.py")
    text = verdict(path, "--max-peak", "5", "--annotate", "github", code=1)
    check("/listobject.c,line=70," in text, text)


@test
def markdown_is_a_table_of_figures_and_one_of_sites():
    text = verdict(program(), "--max-temporary", "5", "--max-peak", "1G", "--markdown", code=1)
    check("| FAILED | temporary | 1,001 | 5 |" in text, text)
    check("| 1,000 | format format.c:7 |" in text, text)


@test
def mistakes_are_refused():
    path = program()
    check("no limit" in refused("check", path))
    refused("check", path, "--max-peak", "much")
    told = run("check", path, "--max-unreachable", "0", check=3).stderr
    check("record --reachability" in told, told)
    check("--baseline" in refused("check", path, "--update"))
    refused("check", path, "--max-peak", "1", "--force")
    refused("check", path, "--max-peak", "1", "--json", "--markdown")
    refused("check", path, "--max-peak", "1", "--layer", "vm")
    refused("check", path, "--max-peak", "1", "--baseline", "nowhere", code=3)
    refused("check", "nowhere.tide", "--max-peak", "1", code=3)
    check(TIDEMARK)


main()
