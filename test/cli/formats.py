#!/usr/bin/env python3
# parallel: yes
"""`tidemark export`: what each format holds adds up to what `tidemark window` says."""
import gzip
import json
import os
import re
import shutil
import subprocess
import xml.etree.ElementTree

import libschema
from libanswer import SOURCE, TIDEMARK, answer, assemble, refused, run, sampled
from libprotobuf import Otlp, message, packed
from libtests import Skip, check, equal, main, test

TRACES = ("kitchen", "family", "crowd")
WINDOWS = ((), ("--from", "20%", "--to", "70%"), ("--size", "..64"), ("--impact", "impacting"))


def exported(path, name, *words, text=True):
    """What it wrote, and what it said."""
    done = subprocess.run([TIDEMARK, "export", path, "--format", name, *words], check=True,
                          capture_output=True)
    return done.stdout.decode() if text else done.stdout, done.stderr.decode()


def totals(path, *words):
    """alloc_objects, alloc_space, inuse_objects, inuse_space by `window`."""
    types = {row["keys"]["type"]: row for row in answer("window", path, "--by", "type", *words)["rows"]}

    def total(names, figure):
        return sum(types[name][figure] for name in names if name in types)
    return [total(("AIFI", "AIFO"), "count"), total(("AIFI", "AIFO"), "size"),
            total(("AIFO", "AOFO"), "count"), total(("AIFO", "AOFO"), "size")]


class Pprof:
    def __init__(self, data):
        top = message(gzip.decompress(data))
        self.strings = [text.decode() for text in top[6]]
        self.names = [self.strings[message(each)[1][0]] for each in top[1]]
        self.functions = {m[1][0]: self.strings[m[2][0]] for m in map(message, top.get(5, []))}
        self.locations = {m[1][0]: m for m in map(message, top.get(4, []))}
        self.mappings = {m[1][0]: m for m in map(message, top.get(3, []))}
        self.samples = [message(each) for each in top.get(2, [])]
        self.top = top

    def sums(self):
        rows = [packed(sample[2][0]) for sample in self.samples]
        return [sum(column) for column in zip(*rows)] or [0] * 4

    def labels(self, sample):
        found = {}
        for label in map(message, sample.get(3, [])):
            key = self.strings[label[1][0]]
            found[key] = self.strings[label[2][0]] if 2 in label else label.get(3, [0])[0]
        return found


@test
def pprof_has_the_four_sums_of_the_window():
    for name in TRACES:
        path = assemble(name)
        for words in WINDOWS:
            profile = Pprof(exported(path, "pprof", *words, text=False)[0])
            equal(["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"], profile.names)
            equal(totals(path, *words), profile.sums(), (name, words))


@test
def pprof_refers_to_nothing_that_is_not_there():
    profile = Pprof(exported(assemble("family"), "pprof", text=False)[0])
    equal("", profile.strings[0])
    check(profile.samples)
    for sample in profile.samples:
        for location in packed(sample[1][0]):
            for line in map(message, profile.locations[location][4]):
                check(profile.functions[line[1][0]])
            check(profile.locations[location].get(2, [0])[0] in {0, *profile.mappings})
        labels = profile.labels(sample)
        check(labels["process"] and labels["thread"], labels)
        live = packed(sample[2][0])
        if live[0]:
            equal(live[1], live[0] * labels["bytes"], "bytes of blocks of one size")


def through_the_recorder():
    return assemble("order", """trace command="./app"
process p pid=42 exe="/bin/app"
thread t p tid=42
module cxx p 0x7f0000000000-0x7f0000100000 bias=0x7f0000000000 "/usr/lib/libstdc++.so.6"
module ours p 0x7f1000000000-0x7f1000100000 bias=0x7f1000000000 "/usr/lib/tidemark/libtidemark.so"
module app p 0x400000-0x500000 "/bin/app"
frame new cxx 0x7f0000001234
frame hook ours 0x7f1000001234
frame main app 0x401000
name new "operator new(unsigned long)" "":0
name hook "operator new(unsigned long)" "recorder/hook_cxx_linux.c":144
name main "main" "main.c":7
stack s new < hook < main
stack h hook
@1000 t malloc s 0x1000 100
@2000 t malloc h 0x2000 10
@2500 t malloc s 0x3000 1000
@3000 end p exit=0
end
""")


@test
def the_program_comes_first_and_the_recorder_is_in_no_stack():
    path = through_the_recorder()
    profile = Pprof(exported(path, "pprof", text=False)[0])
    first = message(profile.top[3][0])
    equal("/bin/app", profile.strings[first[5][0]])
    equal(1, first[1][0])
    equal(["app[42];main;operator new(unsigned long) 1100", "app[42];operator new(unsigned long) 10"],
          sorted(exported(path, "folded", "--value", "live")[0].splitlines()))


@test
def nor_is_it_in_stacks_that_are_tables():
    path = through_the_recorder()
    lines = gzip.decompress(exported(path, "heaptrack", text=False)[0]).decode().splitlines()
    strings = [line.split(" ", 2)[2] for line in lines if line.startswith("s ")]
    frames = [strings[int(line.split()[3], 16) - 1] for line in lines if line.startswith("i ")]
    traces = [tuple(int(word, 16) for word in line.split()[1:]) for line in lines if line.startswith("t ")]

    def heaptracks(number):
        frame, caller = traces[number - 1]
        return (heaptracks(caller) if caller else []) + [frames[frame - 1]]
    equal([["main", "operator new(unsigned long)"], ["operator new(unsigned long)"],
           ["main", "operator new(unsigned long)"]],
          [heaptracks(int(line.split()[2], 16)) for line in lines if line.startswith("a ")])

    thread = json.loads(exported(path, "firefox")[0])["threads"][0]
    texts = thread["stringArray"]

    def foxs(row):
        caller, frame = thread["stackTable"]["prefix"][row], thread["stackTable"]["frame"][row]
        name = texts[thread["funcTable"]["name"][thread["frameTable"]["func"][frame]]]
        return (foxs(caller) if caller is not None else []) + [name]
    equal([["main", "operator new(unsigned long)"], ["operator new(unsigned long)"],
           ["main", "operator new(unsigned long)"]],
          [foxs(row) for row in thread["nativeAllocations"]["stack"]])


def drops(profile, name):
    """As pprof's Prune looks at names."""
    return re.fullmatch(profile.strings[profile.top[7][0]], name.split("(")[0]) is not None


@test
def functions_that_allocate_for_others_are_those_that_pprof_drops():
    path = assemble("drops", """trace command="./app"
process p pid=42 exe="/bin/app"
thread t p tid=42
module app p 0x400000-0x500000 "/bin/app"
frame module app 0x401000
name module "<module>" "app.py":7
frame new app 0x401100
name new "operator new(unsigned long)" "":0
frame vector app 0x401200
name vector "void std::vector<int, std::allocator<int> >::_M_realloc_insert<int>(int)" "":0
stack s new < vector < module
@1000 t malloc s 0x1000 100
@3000 end p exit=0
end
""")
    profile = Pprof(exported(path, "pprof", text=False)[0])
    for name in ("malloc", "operator new(unsigned long)", "operator new[](unsigned long)", "xmalloc", "g_malloc0",
                 "__GI___strdup", "Own::operator new", "std::__new_allocator<std::pair<int, long> >::allocate(unsigned long)",
                 "std::__new_allocator::allocate", "std::allocator_traits::allocate"):
        check(drops(profile, name), name)
    for name in ("work", "main", "my_malloc_user", "std::sort<int*>", "_PyObject_GC_New", "operator newer", "core::iter::map",
                 "std::vector<int, std::allocator<int> >::push_back(int)"):
        check(not drops(profile, name), name)
    functions = {profile.strings[m[2][0]]: m for m in map(message, profile.top[5])}
    equal(0, functions["<module>"].get(3, [0])[0], "else pprof takes all of it for arguments of a template")
    check(functions["operator new(unsigned long)"][3][0])
    check("std::vector<int, std::allocator<int> >::_M_realloc_insert<int>(int)" in functions, "without a return type")
    run("export", path, "--format", "pprof", "-o", "drops.pb.gz", "--force")
    text = go_says("-top", "-unit=B", "-sample_index=alloc_space", "drops.pb.gz")
    check(re.search(r"100B +100% +100% +100B +100% +std::vector::_M_realloc_insert", text), text)
    check("<module>" in text and "operator new" not in text, text)


def go_says(*words):
    if not shutil.which("go"):
        raise Skip("go is not installed (Debian: golang-go; not among the packages that are set up: 430 MB)")
    return subprocess.run(["go", "tool", "pprof", *words], check=True, capture_output=True, text=True,
                          env={**os.environ, "HOME": os.getcwd(), "PPROF_TMPDIR": os.getcwd(),
                               "PPROF_BINARY_PATH": os.getcwd()}).stdout


@test
def go_tool_pprof_says_the_same_sums():
    for name in TRACES:
        path = assemble(name)
        for words in WINDOWS:
            run("export", path, "--format", "pprof", "-o", "out.pb.gz", "--force", *words)
            raw = go_says("-raw", "-sample_index=alloc_objects", "out.pb.gz")
            rows = re.findall(r"^ +((?:\d+ +){3}\d+):", raw, re.M)
            sums = [sum(column) for column in zip(*([int(word) for word in row.split()] for row in rows))]
            equal(totals(path, *words), sums or [0] * 4, (name, words))
            for index, total in zip(("alloc_objects", "alloc_space", "inuse_objects", "inuse_space"),
                                    totals(path, *words)):
                text = go_says("-top", "-unit=B", f"-sample_index={index}", "out.pb.gz")
                shown = re.search(r"of (\d+)B? total", text)
                equal(total, int(shown[1]) if shown else 0, (name, words, index, text))


@test
def a_profile_less_itself_is_nothing_to_go_tool_pprof():
    run("export", assemble("kitchen"), "--format", "pprof", "-o", "out.pb.gz", "--force")
    text = go_says("-top", "-unit=B", "-sample_index=alloc_space", "-diff_base=out.pb.gz", "out.pb.gz")
    check("accounting for 0, 0% of 9245B total" in text, text)
    check(all(line.split()[0] == "0" for line in text[text.index("flat%"):].splitlines()[1:]), text)


@test
def a_sampled_trace_is_scaled():
    profile = Pprof(exported(sampled(), "pprof", text=False)[0])
    # One block of 10 bytes at a mean distance of 1000: 1 / (1 - exp(-0.01)) = 100.501 blocks.
    equal([101, 1005], [profile.sums()[0], profile.sums()[1]])
    equal(1000, profile.top[12][0], "the period")


@test
def folded_lines_add_up_to_each_value():
    path = assemble("family")
    words = ("--from", "20%", "--to", "70%")
    row = answer("window", path, "--by", "layer", *words)["rows"][0]
    for value, expected in (("size", row["size"]), ("count", row["count"]),
                            ("allocated", row["allocated"]), ("freed", row["freed"])):
        text, said = exported(path, "folded", "--value", value, *words)
        lines = [line.rsplit(" ", 1) for line in text.splitlines()]
        equal(expected, sum(int(number) for _, number in lines), value)
        equal("", said)
        check(all(";" in stack for stack, _ in lines))


@test
def what_folded_cannot_say_is_said_with_how_much_it_is():
    path = assemble("family")
    words = ("--from", "40%", "--to", "90%")
    text, said = exported(path, "folded", "--value", "impacting", *words)
    grown = sum(int(line.rsplit(" ", 1)[1]) for line in text.splitlines())
    row = answer("window", path, "--by", "layer", *words)["rows"][0]
    if grown != row["impacting_size"]:
        check(f"by {grown - row['impacting_size']} in all" in said, said)


@test
def speedscope_has_a_profile_for_each_value():
    path = assemble("crowd")
    found = json.loads(exported(path, "speedscope")[0])
    frames = found["shared"]["frames"]
    sums = {}
    for profile in found["profiles"]:
        equal(len(profile["samples"]), len(profile["weights"]))
        equal(profile["endValue"], sum(profile["weights"]), profile["name"])
        check(all(0 <= frame < len(frames) for stack in profile["samples"] for frame in stack))
        sums[profile["name"]] = profile["endValue"]
    equal(totals(path), [sums["allocations"], sums["bytes allocated"],
                         sums["live blocks at the end"], sums["live bytes at the end"]])


@test
def speedscope_holds_to_its_schema():
    path = os.path.join(SOURCE, "web/node_modules/speedscope/dist/release/file-format-schema.json")
    if not os.path.exists(path):
        raise Skip("speedscope's schema is not here (tools/web setup)")
    with open(path, encoding="utf-8") as file:
        schema = json.load(file)
    for name in TRACES:
        found = json.loads(exported(assemble(name), "speedscope")[0])
        equal([], list(libschema.wrong(found, schema, schema))[:5], name)
    found["profiles"][0]["weights"] = "none"
    check(list(libschema.wrong(found, schema, schema)), "the schema is held to")


@test
def otlp_has_the_sums_of_pprof():
    for name in TRACES:
        path = assemble(name)
        for words in WINDOWS:
            otlp = Otlp(exported(path, "otlp", *words, text=False)[0])
            equal(Pprof(exported(path, "pprof", *words, text=False)[0]).sums(), otlp.sums(),
                  (name, words))
    equal([101, 1005], Otlp(exported(sampled(), "otlp", text=False)[0]).sums()[:2])


@test
def otlp_refers_to_entries_of_its_dictionary_alone():
    otlp = Otlp(exported(assemble("family"), "otlp", text=False)[0])
    mappings, locations, functions, _, strings, attributes, stacks = (
        otlp.dictionary.get(field, []) for field in range(1, 8))
    for table in (mappings, locations, functions, strings, attributes, stacks):
        equal(b"", table[0], "entry number 0")
    for profile in otlp.profiles():
        for sample in map(message, profile.get(2, [])):
            check(sample.get(1, [0])[0] < len(stacks))
            check(all(number < len(attributes) for number in packed(sample[2][0])))
    for stack in map(message, stacks[1:]):
        check(all(0 < number < len(locations) for number in packed(stack[1][0])))
    for location in map(message, locations[1:]):
        check(location.get(1, [0])[0] < len(mappings))
        check(all(0 < message(line)[1][0] < len(functions) for line in location[3]))
    for function in map(message, functions[1:]):
        check(strings[function[1][0]])


@test
def otlp_is_what_its_published_proto_says():
    if not shutil.which("protoc"):
        raise Skip("protoc is not installed (Debian: protobuf-compiler)")
    folder = "opentelemetry/proto/profiles/v1development/profiles.proto"
    done = subprocess.run(
        ["protoc", "--decode", "opentelemetry.proto.profiles.v1development.ProfilesData", "-I",
         os.path.join(SOURCE, "test/proto"), folder], check=True, capture_output=True,
        input=exported(assemble("family"), "otlp", text=False)[0])
    text = done.stdout.decode()
    check(not re.search(r"^\s*\d+:", text, re.M), "fields that the proto does not have", text[:500])
    for word in ("process.executable.path", "alloc_space", "thread.id", "resource_profiles"):
        check(word in text, word)


@test
def callgrind_annotate_says_the_same_total():
    if not shutil.which("callgrind_annotate"):
        raise Skip("callgrind_annotate is not installed (Debian: valgrind)")
    for name in TRACES:
        path = assemble(name)
        run("export", path, "--format", "callgrind", "-o", "out.callgrind", "--force")
        said = subprocess.run(["callgrind_annotate", "out.callgrind"], check=True,
                              capture_output=True, text=True)
        total = next(line for line in said.stdout.splitlines() if "PROGRAM TOTALS" in line)
        figures = [int(word.replace(",", "")) for word in re.findall(r"([\d,]+) \(", total)]
        objects, space, live_objects, live_space = totals(path)
        equal([space, objects, live_space, live_objects], figures, name)
        equal("", said.stderr)


@test
def callgrind_costs_of_functions_are_the_total_and_those_of_calls_are_not_above_it():
    path = assemble("family")
    text = exported(path, "callgrind")[0]
    summary, own, below = 0, 0, False
    for line in text.splitlines():
        if line.startswith("summary:"):
            summary = int(line.split()[1])
        elif line.startswith("calls="):
            below = True
        elif re.match(r"\d", line):
            bytes_ = int(line.split()[1])
            check(bytes_ <= summary, line)
            own += 0 if below else bytes_
            below = False
    equal(summary, own)


@test
def line_breaks_of_commands_and_names_do_not_break_lines_of_callgrind():
    path = assemble("breaks", 'trace command="sh -c \'a\\nb\'"\nprocess p pid=3 exe="/bin/app"\nthread t p tid=1\n'
                    'stack s0 "f\\nx" "a.c":1\n+1ms t malloc s0 0x1000 16\nend\n')
    lines = exported(path, "callgrind")[0].splitlines()
    check("cmd: sh -c 'a b'" in lines, lines)
    check(any(re.fullmatch(r"fn=\(\d+\) f x", line) for line in lines), lines)


@test
def a_flame_graph_is_as_wide_as_what_it_shows():
    path = assemble("family")
    text = exported(path, "flamegraph", "--value", "allocated")[0]
    picture = xml.etree.ElementTree.fromstring(text)
    space = "{http://www.w3.org/2000/svg}"
    nodes = [node for node in picture.iter(space + "g") if node.get("data-x")]
    widths = {}
    for node in nodes:
        rect = node.find(space + "rect")
        widths[rect.get("y")] = widths.get(rect.get("y"), 0) + float(node.get("data-w"))
    check(abs(max(widths.values()) - 1180) < 1, widths)  # what is too narrow is left out
    check(len({node.find(space + "title").text.split(" (")[0] for node in nodes}) > 3)
    check("http" not in text.replace("http://www.w3.org/2000/svg", ""), "asks for nothing elsewhere")


def assembled(name, blocks):
    text = f'process p pid={len(name)} exe="/bin/app"\nthread t p tid=1\n' + "".join(
        f'stack s{i} "{function}" "a.c":1 < "main" "a.c":9\n+1ms t malloc s{i} 0x{i + 1}000 {size}\n'
        for i, (function, size) in enumerate(blocks.items())) + "end\n"
    return assemble(name, text)


@test
def a_flame_graph_against_another_trace_shows_what_changed():
    new = assembled("newer", {"grown": 300, "same": 100, "shrunk": 50, "fresh": 20})
    old = assembled("old", {"grown": 100, "same": 100, "shrunk": 90, "lost": 7})
    text, said = exported(new, "flamegraph", "--against", old)
    titles = dict(re.findall(r"<title>(\S+) \((.*?)\)</title>", text))
    colours = dict(re.findall(r"<title>(\S+) .*?fill=\"(.*?)\"", text))
    for name, change in (("grown", "+200 B"), ("same", "; 0 B"), ("shrunk", "-40 B"), ("fresh", "+20 B"),
                         ("main", "+173 B"), ("app", "+173 B")):
        check(titles[name].endswith(change), name, titles)
    check("lost" not in titles and "7 bytes of what it is compared with" in said, said)
    check("only there: 7 B" in text and "+173 B against old.tide" in text)
    equal("rgb(240,240,240)", colours["same"])
    check(re.match(r"rgb\(240,9", colours["grown"]) and re.match(r"rgb\(2\d\d,2\d\d,240", colours["shrunk"]),
          colours)
    check("--against" in refused("export", new, "--format", "pprof", "--against", old))


@test
def every_format_is_in_the_help_the_man_page_and_the_document():
    with open(f"{SOURCE}/docs/formats.md", encoding="utf-8") as file:
        document = file.read()
    for command in ("import", "export"):
        said = refused(command, assemble("nothing"), "-o", "x", "--format", "nonsense")
        names = re.split(", | or ", re.search("--format is (.*), not", said)[1])
        with open(f"{SOURCE}/docs/man/tidemark-{command}.1", encoding="utf-8") as file:
            page = file.read().replace("\\-", "-")
        for place, text in (("help", run(command, "--help").stdout), ("man page", page), ("docs/formats.md", document)):
            equal([], [name for name in names if not re.search(rf"(?<![\w-]){name}(?![\w-])", text)], f"{command}: {place}")
        check(len(names) > 10, said)


@test
def a_flame_graph_of_nothing_says_so():
    check("nothing was allocated" in exported(assemble("nothing"), "flamegraph")[0])


@test
def what_makes_no_sense_is_refused():
    path = assemble("kitchen")
    check("--value" in refused("export", path, "--format", "pprof", "--value", "size"))
    refused("export", path, "--format", "nonsense")
    refused("export", path)
    check("never add up" in refused("export", path, "--format", "folded", "--layer", "heap",
                                    "--layer", "vm"))
    run("export", path, "--format", "folded", "-o", "there.txt")
    check("--force" in refused("export", path, "--format", "folded", "-o", "there.txt", code=3))


main()
