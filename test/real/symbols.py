#!/usr/bin/env -S python3 -B
# timeout: 300
# parallel: yes
"""Every code address in the traces of real programs, named as addr2line names it.

Where the two differ, a third witness must say why: nm, which knows what each symbol covers, or
readelf, which reads line tables by itself.

    gap    no symbol covers the address; addr2line names the nearest one before it, we do not
    alias  two names of one address
    file   the same function and line, another file; readelf's line table is on our side
    plain  a C++ function without a linkage name: addr2line says its plain name or the symbol's,
           depending on what it was asked before; nm has the name that we say
    inner  addr2line gives an inlined function without a linkage name its caller's name, or its
           plain one, and we its scopes and parameters as well
"""
import bisect
import collections
import json
import os
import re
import subprocess

import libplaces
import libreal

PROGRAM = os.path.join(os.environ["TIDEMARK_SOURCE"], "test", "programs", "symbols_templates.cpp")


def run(*command, **more):
    return subprocess.run(command, check=True, capture_output=True, encoding="utf-8",
                          errors="replace", **more).stdout


def addresses(report):
    """(module, offset) -> [(function, file, line), …], innermost first."""
    found = {}
    for sites in report["sites"].values():
        for site in sites:
            places = []
            for frame in site["stack"]:
                places.append((frame["function"] or None, frame["file"] or None, frame["line"] or 0))
                if frame["inlined"]:
                    continue
                found[frame["module"], frame["offset"]] = places
                places = []
    return found


def number(offset):
    return int(offset, 16) if isinstance(offset, str) else offset


def ask_addr2line(module, offsets):
    text = run("addr2line", "-afiC", "-e", module, input="".join(f"{o:#x}\n" for o in offsets))
    answers = []
    for line in text.splitlines():
        if re.fullmatch("0x[0-9a-f]{8,}", line):
            answers.append([])
        else:
            answers[-1].append(re.sub(r" \(discriminator \d+\)", "", line))
    places = []
    for answer in answers:
        chain = []
        for function, where in zip(answer[0::2], answer[1::2]):
            file, _, line = where.rpartition(":")
            chain.append((None if function == "??" else function,
                          None if file in ("??", "") else file,
                          int(line) if line.isdigit() else 0))
        places.append(chain)
    return places


class Witness:
    """What nm and readelf say of a module, or of its debug file where it has one."""

    def __init__(self, module):
        self.file = module
        notes = subprocess.run(["readelf", "-n", module], capture_output=True, encoding="utf-8",
                               check=False).stdout
        build_id = re.search(r"Build ID: ([0-9a-f]+)", notes)
        if build_id:
            digits = build_id[1]
            debug = f"/usr/lib/debug/.build-id/{digits[:2]}/{digits[2:]}.debug"
            if os.path.exists(debug):
                self.file = debug
        self.symbols = []
        self.at = collections.defaultdict(set)
        for options in ((), ("-D",)):
            listing = subprocess.run(["nm", *options, "-S", "-C", "--defined-only", self.file],
                                     capture_output=True, encoding="utf-8", errors="replace",
                                     check=False).stdout
            for line in listing.splitlines():
                match = re.match(r"([0-9a-f]+) (?:([0-9a-f]+) )?([tTwWiuV]) (.*)", line)
                if match:
                    start, size = int(match[1], 16), int(match[2] or "0", 16)
                    name = match[4].split("@")[0]
                    self.symbols.append((start, start + size, name))
                    self.at[start].add(name)
        self.symbols.sort()
        self.starts = [symbol[0] for symbol in self.symbols]
        self.rows = None

    def covering(self, offset):
        """Names of the symbols that cover the offset. They nest a few deep at most."""
        last = bisect.bisect_right(self.starts, offset)
        return {name for start, end, name in self.symbols[max(0, last - 200):last]
                if start <= offset < end}

    def aliases(self, one, two):
        return any(one in names and two in names for names in self.at.values())

    def has_row(self, offset, file, line):
        if self.rows is None:
            self.rows = collections.defaultdict(set)
            for row in run("readelf", "-W", "--debug-dump=decodedline", self.file).splitlines():
                match = re.match(r"(\S+)\s+(\d+)\s+(0x[0-9a-f]+)", row)
                if match:
                    self.rows[int(match[3], 16)].add((match[1], int(match[2])))
            self.row_starts = sorted(self.rows)
        at = bisect.bisect_right(self.row_starts, offset) - 1
        return at >= 0 and (os.path.basename(file or ""), line) in self.rows[self.row_starts[at]]


def judge(witness, offset, theirs, ours):
    if theirs == ours:
        return "same"
    if ours[0][0] is None and not witness.covering(offset):
        return "gap"
    if len(theirs) != len(ours):
        return "wrong"
    names = [(a[0], b[0]) for a, b in zip(theirs, ours)]
    outer_theirs, outer_ours = names[-1]
    if [a[1:] for a in theirs] != [b[1:] for b in ours]:
        same = all(a == b for a, b in names) and theirs[0][2] == ours[0][2]
        return "file" if same and witness.has_row(offset, *ours[0][1:]) else "wrong"
    if any(a not in (b, outer_theirs) and not libplaces.is_whole(b or "", a)
           for a, b in names[:-1]):
        return "wrong"
    if outer_theirs == outer_ours:
        return "inner"
    if witness.aliases(outer_theirs, outer_ours):
        return "alias"
    return "plain" if "(" in outer_ours and outer_ours in witness.covering(offset) else "wrong"


def is_elf(path):
    try:
        with open(path or "", "rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError:
        return False


def check(proof, name, command, env):
    trace = name + ".tide"
    recorded = subprocess.run([libreal.TIDEMARK, "record", "--force", "-o", trace, "--", *command],
                              env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, encoding="utf-8", check=False)
    if not proof.equal(f"{name}: is recorded", 0, recorded.returncode):
        proof.note(recorded.stderr)
        return
    report = json.loads(run(libreal.TIDEMARK, "report", "--json", "--all-frames", "-n", "0", trace))
    modules = collections.defaultdict(dict)
    for (module, offset), places in addresses(report).items():
        modules[module][number(offset)] = places
    counts = collections.Counter()
    for module, answers in modules.items():
        if not is_elf(module):  # generated code; a script, of a language's functions
            continue
        witness = Witness(module)
        offsets = sorted(answers)
        for offset, theirs in zip(offsets, ask_addr2line(module, offsets)):
            verdict = judge(witness, offset, theirs, answers[offset])
            counts[verdict] += 1
            if verdict == "wrong" and counts["wrong"] <= 5:
                proof.note(f"{module} {offset:#x}\naddr2line {theirs}\nours      {answers[offset]}")
    summary = ", ".join(f"{counts[key]} {key}" for key in sorted(counts))
    proof.check(counts["wrong"] == 0 and counts["same"] > 10,
                f"{name}: every address is named as addr2line names it ({summary})")


env = libreal.environment()
proof = libreal.Proof()
subprocess.run(["g++", "-O2", "-g", PROGRAM, "-o", "templates"], check=True)
check(proof, "templates", ["./templates"], env)
check(proof, "perl", [libreal.find_program("perl"), "-e",
                      "my %h = map { $_ => [$_] } 1 .. 2000; print scalar(keys %h)"], env)
check(proof, "python3", [libreal.find_program("/usr/bin/python3"), "-c",
                         "import json; json.dumps([{str(i): i} for i in range(2000)])"],
      {**env, "PYTHONMALLOC": "malloc"})
check(proof, "sqlite3", [libreal.find_program("sqlite3"), ":memory:",
                         "create table t(a, b); insert into t values(1, 'x'), (2, 'y');"
                         "create index i on t(b); select * from t order by b desc;"], env)
proof.finish()
