"""libreal: what the tests on real programs share.

Each script here records a program that nobody here wrote, and says one line for each thing that
must be true. What the figures are compared with:

    the witness    test/witness, a counting preload: behind the recorder it sees the very same
                   calls of the very same run; alone it says what the program does untraced
    Valgrind       "total heap usage"
    heaptrack      its event stream, call by call

A program that copies its environment (perl, python3) allocates for every variable, and every
tracer leaves other variables behind. So all runs that are compared get the same number of
variables with names and values of the same lengths: see environments_fill().
"""
import collections
import ctypes
import gzip
import json
import os
import re
import shutil
import struct
import subprocess
import sys

from libtests import PATIENCE_SECONDS

BUILD = os.environ["TIDEMARK_BUILD"]
TIDEMARK = os.environ["TIDEMARK"]
WITNESS = os.path.join(BUILD, "test", "witness", "libwitness.so")
SKIPPED = 77
ADDR_NO_RANDOMIZE = 0x0040000


def environment(**more):
    """What a program of ours starts with: the same for everybody, wherever the test runs."""
    return {"PATH": "/usr/bin:/bin", "HOME": os.getcwd(), "PWD": os.getcwd(),
            "TMPDIR": os.getcwd(), "LC_ALL": "C.UTF-8", **more}


def addresses_fixed():
    """From here on the kernel gives all programs the same addresses each time."""
    if ctypes.CDLL(None).personality(ADDR_NO_RANDOMIZE) < 0:
        raise RuntimeError("no personality without randomized addresses")


def find_program(path):
    """The path of a Debian program; where there is none, the test is skipped with that reason."""
    if os.path.isabs(path):
        found = path if os.access(path, os.X_OK) else None
    else:
        found = shutil.which(path, path="/usr/bin:/bin")
    if not found:
        print(f"no {path} here")
        sys.exit(SKIPPED)
    return found


class Proof:
    """Says one line for each thing that was looked at."""

    def __init__(self):
        self.count = 0
        self.failures = 0

    def check(self, true, sentence, *details):
        self.count += 1
        self.failures += not true
        print(f"{'ok' if true else 'not ok'} {self.count} - {sentence}")
        if not true:
            for detail in details:
                self.note(detail)
        sys.stdout.flush()
        return true

    def equal(self, sentence, expected, actual):
        return self.check(expected == actual, sentence, f"expected {expected}", f"got {actual}")

    def note(self, text):
        for line in str(text).splitlines():
            print(f"# {line}")

    def finish(self):
        print(f"1..{self.count}")
        sys.exit(1 if self.failures else 0)


class Ended:
    """A program that ran: its code, and the files with what it wrote."""

    def __init__(self, code, out, err):
        self.code = code
        self.out = out
        self.err = err

    def output(self):
        with open(self.out, "rb") as file:
            return file.read()

    def errors(self):
        with open(self.err, encoding="utf-8", errors="replace") as file:
            return file.read()


def run(name, command, env, stdin=None, timeout=PATIENCE_SECONDS):
    """Standard output goes to a file: what it is decides how the C library buffers it."""
    with open(stdin or os.devnull, "rb") as input_file, \
            open(f"{name}.out", "wb") as out, open(f"{name}.err", "wb") as err:
        code = subprocess.run(command, env=env, stdin=input_file, stdout=out, stderr=err,
                              timeout=timeout, check=False).returncode
    return Ended(code, f"{name}.out", f"{name}.err")


def must_run(name, command, env, stdin=None):
    ended = run(name, command, env, stdin)
    if ended.code != 0:
        raise RuntimeError(f"{command}: exit code {ended.code}: {ended.errors()[-2000:]}")
    return ended


# --- Recording and reporting ---

class Recording:
    def __init__(self, ended, trace, report):
        self.ended = ended
        self.trace = trace
        self.report = report
        self.heap = report["heap"]
        self.processes = report["trace"]["processes"]

    def process_of(self, program):
        """The one process image of this program."""
        found = [process for process in self.processes
                 if os.path.basename(os.path.realpath(process["exe"])) ==
                 os.path.basename(os.path.realpath(program))]
        if len(found) != 1:
            raise RuntimeError(f"{len(found)} images of {program}: {self.processes}")
        return found[0]


def report_of(trace, *options):
    ended = must_run(trace + ".report", [TIDEMARK, "report", "--json", *options, trace],
                     environment())
    return json.loads(ended.output())


def record(name, command, env, stdin=None, options=(), report_options=(),
           timeout=PATIENCE_SECONDS):
    trace = f"{name}.tide"
    ended = run(name, [TIDEMARK, "record", "-o", trace, *options, "--", *command], env, stdin,
                timeout)
    if not os.path.exists(trace):
        raise RuntimeError(f"no trace: exit code {ended.code}: {ended.errors()[-2000:]}")
    return Recording(ended, trace, report_of(trace, *report_options))


def total(rows, key):
    return sum(row[key] for row in rows)


def check_sane(proof, name, recording, whole_lists=False):
    """What must hold in any whole recording of any program. whole_lists: the report's lists were
    not cut."""
    heap, sites = recording.heap, recording.report["sites"]
    trace, processes = recording.report["trace"], recording.processes
    live = heap["live_at_exit"]
    proof.equal(f"{name}: schema", "tidemark-report-1", recording.report["schema"])
    proof.equal(f"{name}: the trace is complete", True, trace["complete"])
    proof.equal(f"{name}: no event is lost", 0, trace["events_lost"])
    for key in ("allocations", "frees", "allocated_bytes"):
        proof.equal(f"{name}: {key} are those of the processes together", total(processes, key),
                    heap[key])
    proof.equal(f"{name}: what was not freed is live at exit",
                heap["allocations"] - heap["frees"], live["count"])
    for key in ("orphan_frees", "lost_frees"):
        proof.equal(f"{name}: no {key}", 0, heap[key])
    wrong = [one for one in ((heap,) if len(processes) == 1 else processes)
             if not one["live_at_exit"]["bytes"] <= one["peak_bytes"] <= one["allocated_bytes"]]
    proof.check(not wrong, f"{name}: in each process live bytes <= peak <= allocated bytes", wrong)
    proof.check(heap["temporary"]["count"] <= heap["frees"] and
                heap["temporary"]["bytes"] <= heap["allocated_bytes"],
                f"{name}: temporary blocks are among the freed", heap)
    proof.check(0 <= heap["peak_ns"] <= trace["duration_ns"], f"{name}: the peak is in the run",
                heap, trace["duration_ns"])
    # A reallocation is one event, an allocation and a free.
    proof.check(trace["events"] >= heap["allocations"] + heap["frees"] - heap["reallocations"],
                f"{name}: every call is an event", trace, heap)
    if whole_lists:
        check_sites(proof, name, heap, sites)
    for list_name in ("bytes", "calls", "peak"):
        proof.check(sites[list_name] and all(site["stack"] for site in sites[list_name]),
                    f"{name}: sites.{list_name} have stacks")


def check_sites(proof, name, heap, sites):
    """The lists, not cut, add up to the totals."""
    proof.equal(f"{name}: sites.bytes add up", heap["allocated_bytes"],
                total(sites["bytes"], "bytes"))
    proof.equal(f"{name}: sites.calls add up", heap["allocations"], total(sites["calls"], "count"))
    proof.equal(f"{name}: sites.peak add up", heap["peak_bytes"], total(sites["peak"], "bytes"))
    for key in ("live_at_exit", "temporary"):
        proof.equal(f"{name}: sites.{key} add up", heap[key],
                    {"count": total(sites[key], "count"), "bytes": total(sites[key], "bytes")})


def check_same_run(proof, name, untraced, recording):
    """The program does not notice."""
    proof.equal(f"{name}: exit code as untraced", untraced.code, recording.ended.code)
    proof.check(untraced.output() == recording.ended.output(), f"{name}: output as untraced",
                f"{untraced.out} and {recording.ended.out} differ")


# --- Events, from the text form of a trace ---

ALLOCATING = {"malloc", "calloc", "aligned", "realloc", "realloc-alloc"}


def dump_lines(trace):
    with subprocess.Popen([TIDEMARK, "dump", trace], stdout=subprocess.PIPE, text=True,
                          errors="replace") as process:
        yield from process.stdout
    if process.returncode != 0:
        raise RuntimeError(f"tidemark dump {trace}: exit code {process.returncode}")


def dump_calls(trace):
    """(what began or ended, its size, its address), in the trace's order. A realloc is two. For
    traces of one process."""
    live = {}
    calls = []

    def ends(address):
        calls.append(("-", live.pop(address, None), address))

    for line in dump_lines(trace):
        words = line.split()
        if len(words) < 3 or words[0][0] != "@" or not re.fullmatch(r"t\d+", words[1]):
            continue
        kind = words[2]
        rest = [word for word in words[3:] if not re.fullmatch(r"s\d+|->|align=.*", word)]
        if kind in ("free", "realloc-free"):
            ends(rest[0])
        elif kind in ALLOCATING:
            if kind == "realloc":
                ends(rest[0])
            live[rest[-2]] = int(rest[-1])
            calls.append(("+", int(rest[-1]), rest[-2]))
    return calls


# --- The witness ---

WITNESS_FORMAT = "<8Q64s"
WITNESS_KEYS = ("allocations", "frees", "allocated_bytes", "reallocations", "failed", "calls",
                "aligned", "zero")


def witness_environment(folder, env):
    os.makedirs(folder)
    return dict(env, LD_PRELOAD=WITNESS, WITNESS=os.path.abspath(folder))


def witness_counts(folder):
    """One row for each process image of the program, with `program` and `pid`. The recorder's own
    processes, which find the witness in their environment too, are not among them."""
    rows = []
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as file:
            *counts, program = struct.unpack(WITNESS_FORMAT,
                                             file.read(struct.calcsize(WITNESS_FORMAT)))
        rows.append(dict(zip(WITNESS_KEYS, counts), pid=int(name.split(".")[0]),
                         program=program.rstrip(b"\0").decode()))
    return [row for row in rows if row["program"] != os.path.basename(TIDEMARK)]


def witness_of(folder, program):
    rows = [row for row in witness_counts(folder)
            if row["program"] == os.path.basename(program)]
    if len(rows) != 1:
        raise RuntimeError(f"{len(rows)} images of {program} among {witness_counts(folder)}")
    return rows[0]


COMPARED = ("allocations", "frees", "allocated_bytes")


def counts_of(row, keys=COMPARED):
    return {key: row[key] for key in keys}


def check_witness_of_same_run(proof, name, recording, folder):
    """Process for process, what the witness behind the recorder counted in this very run."""
    def sums(rows):
        per_pid = {}
        for row in rows:
            counts = per_pid.setdefault(row["pid"], dict.fromkeys(COMPARED, 0))
            for key in COMPARED:
                counts[key] += row[key]
        return {pid: counts for pid, counts in per_pid.items() if any(counts.values())}

    # What a forked process frees of its parent's is counted apart.
    expected = sums(witness_counts(folder))
    actual = sums([dict(process, frees=process["frees"] + process["inherited_frees"])
                   for process in recording.processes])
    proof.equal(f"{name}: the witness of the same run counts the same, in each process", expected,
                actual)
    rows = witness_counts(folder)
    for key in ("reallocations", "failed"):
        proof.equal(f"{name}: the witness of the same run counts the same {key}", total(rows, key),
                    recording.heap[key])


# --- Valgrind ---

def valgrind_command(log, command):
    # Debian's wrapper adds variables; the program behind it does not.
    program = shutil.which("valgrind.bin", path="/usr/bin") or find_program("valgrind")
    return [program, "--tool=memcheck", "--run-libc-freeres=no", "--run-cxx-freeres=no",
            "--leak-check=no", "--undef-value-errors=no", "--trace-malloc=yes",
            f"--log-file={log}", *command]


def valgrind_totals(log):
    with open(log, encoding="utf-8", errors="replace") as file:
        found = re.findall(r"total heap usage: ([\d,]+) allocs, ([\d,]+) frees, ([\d,]+) bytes",
                           file.read())
    if len(found) != 1:
        raise RuntimeError(f"{log}: {len(found)} lines of total heap usage")
    return dict(zip(COMPARED, (int(figure.replace(",", "")) for figure in found[0])))


def valgrind_calls(log):
    """The same as dump_calls, from what --trace-malloc prints."""
    live = {}
    calls = []
    with open(log, encoding="utf-8", errors="replace") as file:
        for line in file:
            found = re.match(r"--\d+-- (\w+)\(([^)]*)\)(?:.*= (0x[0-9A-F]+))?", line)
            if not found:
                continue
            function, numbers, result = found.groups()
            numbers = [int(number, 0) for number in re.findall(r"0x[0-9A-F]+|\d+", numbers)]
            if function in ("free", "realloc") or function.startswith("_Zd"):
                if not numbers[0]:  # free(NULL) is nothing; realloc(NULL, n) says malloc again
                    if function != "realloc":
                        continue
                    numbers, function = numbers[1:], "malloc"
                else:
                    calls.append(("-", live.pop(numbers[0], None), numbers[0]))
                    numbers = numbers[1:]
            if result and int(result, 16):
                size = numbers[0] * numbers[1] if function == "calloc" else numbers[-1]
                live[int(result, 16)] = size
                calls.append(("+", size, int(result, 16)))
    return calls


# --- heaptrack ---

def heaptrack_command(name, command):
    return [find_program("heaptrack"), "-o", os.path.abspath(name), *command]


def heaptrack_calls(name):
    """The same as dump_calls, from heaptrack's own file."""
    if os.path.exists(name + ".zst"):
        text = subprocess.run(["zstd", "-dcq", name + ".zst"], check=True,
                              stdout=subprocess.PIPE).stdout
    else:
        with gzip.open(name + ".gz") as file:
            text = file.read()
    sizes = []
    calls = []
    for line in text.split(b"\n"):
        kind = line[:2]
        if kind == b"a ":
            sizes.append(int(line.split()[1], 16))
        elif kind in (b"+ ", b"- "):
            calls.append((kind[:1].decode(), sizes[int(line.split()[1], 16)], None))
    return calls


def heaptrack_temporary(ended):
    """What it said at the end: blocks whose free was the very next call after their allocation."""
    return int(re.search(r"^\s*temporary allocations:\s*(\d+)", ended.errors() +
                         ended.output().decode(errors="replace"), re.MULTILINE).group(1))


def heaptrack_print(name):
    """What heaptrack_print says in sum."""
    path = next(name + end for end in (".zst", ".gz") if os.path.exists(name + end))
    text = subprocess.run([find_program("heaptrack_print"), "-f", path, "-a", "0", "-p", "0",
                           "-T", "0", "-l", "0"], check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, errors="replace").stdout
    return {key: re.search(pattern, text, re.MULTILINE).group(1) for key, pattern in (
        ("calls", r"^calls to allocation functions: (\d+)"),
        ("temporary", r"^temporary memory allocations: (\d+)"),
        ("peak", r"^peak heap memory consumption: (\S+)"),
        ("leaked", r"^total memory leaked: (\S+)"))}


# --- Rows of calls, side by side ---

def plain(calls):
    """What and how much, without the address: runs differ in these."""
    return [call[:2] for call in calls]


def totals(calls):
    """What a row of calls adds up to."""
    began = [size for what, size, address in calls if what == "+"]
    return {"allocations": len(began), "frees": len(calls) - len(began),
            "allocated_bytes": sum(began)}


def peak(calls):
    level = highest = 0
    for what, size, address in calls:
        level += size if what == "+" else -size
        highest = max(highest, level)
    return highest


def temporary(calls):
    """Blocks freed before the next allocation: (count, bytes). For traces of one thread."""
    last = None
    count = size = 0
    for call in calls:
        if call[0] == "+":
            last = call
        elif last and call[2] == last[2]:
            count, size, last = count + 1, size + last[1], None
    return {"count": count, "bytes": size}


def temporary_at_once(calls):
    """heaptrack's rule: the free is the very next call."""
    return sum(1 for before, now in zip(calls, calls[1:])
               if before[0] == "+" and now[0] == "-" and before[2] == now[2])


def differences(expected, actual):
    """What only the one, and only the other has, each as (position in its own row, call)."""
    for name, calls in (("expected.calls", expected), ("actual.calls", actual)):
        with open(name, "w", encoding="ascii") as file:
            file.writelines(f"{what} {size}\n" for what, size in calls)
    told = subprocess.run(["diff", "--old-line-format=< %dn%c' '%L", "--unchanged-line-format=",
                           "--new-line-format=> %dn%c' '%L", "expected.calls", "actual.calls"],
                          check=False, stdout=subprocess.PIPE, text=True)
    if told.returncode > 1:
        raise RuntimeError(f"diff: exit code {told.returncode}")
    only = {"<": [], ">": []}
    for line in told.stdout.splitlines():
        side, at, what, size = line.split()
        only[side].append((int(at) - 1, (what, int(size))))
    return only["<"], only[">"]


def without(calls, counted):
    """The calls, less so many of each."""
    left = dict(counted)
    kept = []
    for at, call in calls:
        if left.get(call):
            left[call] -= 1
        else:
            kept.append((at, call))
    return kept


class Reason:
    """Why a peer's row of calls may differ from ours, and in what: `sizes` of the blocks, at most
    `calls_max` calls, which only the peer makes ("more"), only we ("less"), or either of us."""

    def __init__(self, text, sizes, calls_max, side="either"):
        self.text = text
        self.sizes = sizes
        self.calls_max = calls_max
        self.side = side

    def covers(self, side, call):
        return self.side in (side, "either") and call[1] in self.sizes


# The block in which the C library keeps the next 32 functions that are called at exit.
ATEXIT_BYTES = 1040
# libstdc++ of gcc 12 allocates this once, for exceptions when there is no memory.
EMERGENCY_POOL_BYTES = 72704
MOVED_MAX = 1000  # calls that may stand in another order

HEAPTRACK_REASONS = [
    Reason("heaptrack is written in C++: the pool of libstdc++ is there once more",
           {EMERGENCY_POOL_BYTES}, 2, "more"),
    Reason("heaptrack and its libraries register functions for the exit", {ATEXIT_BYTES}, 2),
]


# --- The same environment for all ---

def environment_seen(name, command, env):
    """The variables that a program finds when it is run by a tool."""
    ended = must_run(name, [*command, "/usr/bin/env", "-0"], env)
    return dict(variable.split("=", 1)
                for variable in re.findall(r"[A-Za-z_]\w*=[^\0]*", ended.output().decode()))


def environments_fill(seen, environments):
    """Each tool's environment with dummies added, so that all programs see as many variables,
    with names and values as long. seen: tool -> variables that a program finds."""
    added = {tool: sorted((len(key), len(value)) for key, value in variables.items()
                          if environments[tool].get(key) != value or key in ("LD_PRELOAD",
                                                                              "WITNESS"))
             for tool, variables in seen.items()}
    filled = {}
    for tool in seen:
        filled[tool] = dict(environments[tool])
        number = 0
        for other, lengths in added.items():
            for name_length, value_length in lengths if other != tool else ():
                number += 1
                filled[tool][f"Q{number}".ljust(name_length, "Q")] = "v" * value_length
    return filled


# --- All witnesses of one short run ---

class Witnesses:
    """The same short run of a program of one thread, by everybody who can count it."""

    def __init__(self, proof, name, command, env, stdin=None):
        addresses_fixed()
        self.proof = proof
        self.name = name
        self.command = command
        self.stdin = stdin
        self.folders = {"tidemark": f"{name}.counts.traced", "alone": f"{name}.counts"}
        tools = {
            "tidemark": ([TIDEMARK, "record", "-o", f"{name}.env.tide", "--"],
                         witness_environment(self.folders["tidemark"], env)),
            "alone": ([], witness_environment(self.folders["alone"], env)),
            "valgrind": (valgrind_command(f"{name}.env.log", []), env),
            "heaptrack": (heaptrack_command(f"{name}.env", []), env),
        }
        seen = {tool: environment_seen(f"{name}.env.{tool}", prefix, tool_env)
                for tool, (prefix, tool_env) in tools.items()}
        self.environments = environments_fill(seen, {tool: pair[1]
                                                     for tool, pair in tools.items()})
        for folder in self.folders.values():
            shutil.rmtree(folder)
            os.makedirs(folder)

    def run(self):
        name, env = self.name, self.environments
        self.recording = record(name, self.command, env["tidemark"], self.stdin,
                                report_options=("-n", "0"))
        self.traced = witness_of(self.folders["tidemark"], self.command[0])
        must_run(f"{name}.alone", self.command, env["alone"], self.stdin)
        self.alone = witness_of(self.folders["alone"], self.command[0])
        must_run(f"{name}.valgrind", valgrind_command(f"{name}.log", self.command),
                 env["valgrind"], self.stdin)
        self.valgrind = valgrind_calls(f"{name}.log")
        ended = must_run(f"{name}.heaptrack", heaptrack_command(f"{name}.heaptrack", self.command),
                         env["heaptrack"], self.stdin)
        self.heaptrack = heaptrack_calls(f"{name}.heaptrack")
        self.heaptrack_temporary = heaptrack_temporary(ended)

    def check(self, valgrind_reasons=(), heaptrack_reasons=(), alone_reason=None):
        """The reasons are those that hold for this program only."""
        proof, name = self.proof, self.name
        ours = dump_calls(self.recording.trace)
        check_sane(proof, name, self.recording, whole_lists=True)
        self.check_totals(ours)
        check_witness_of_same_run(proof, name, self.recording, self.folders["tidemark"])
        self.check_alone(alone_reason)
        proof.equal(f"{name}: Valgrind's total heap usage is what its calls add up to",
                    valgrind_totals(f"{name}.log"), totals(self.valgrind))
        self.check_peer("Valgrind", ours, self.valgrind, list(valgrind_reasons))
        moved = self.check_peer("heaptrack", ours, self.heaptrack,
                                HEAPTRACK_REASONS + list(heaptrack_reasons))
        self.check_heaptrack_print(ours, moved)

    def check_totals(self, ours):
        """The report's figures, worked out once more from the events."""
        proof, name, heap = self.proof, self.name, self.recording.heap
        proof.note(f"{name}: {totals(ours)}")
        proof.equal(f"{name}: the totals are what the events add up to", totals(ours),
                    counts_of(self.recording.process_of(self.command[0])))
        proof.equal(f"{name}: one thread, so the peak is exact, and what the events make it",
                    [peak(ours)] * 3,
                    [heap[key] for key in ("peak_bytes", "peak_low_bytes", "peak_high_bytes")])
        proof.equal(f"{name}: the temporary blocks are what the events make them",
                    temporary(ours), heap["temporary"])

    def check_alone(self, reason):
        """The witness of an untraced run. A reason covers so many blocks that are never freed."""
        alone = counts_of(self.alone)
        ours = counts_of(self.recording.process_of(self.command[0]))
        more = alone["allocations"] - ours["allocations"]
        if reason and abs(more) <= reason.calls_max:
            alone["allocations"] -= more
            alone["allocated_bytes"] -= more * min(reason.sizes)
            self.proof.note(f"{self.name}: untraced {more:+} allocations: {reason.text}")
        self.proof.equal(f"{self.name}: the witness of an untraced run counts the same", alone,
                         ours)

    def check_peer(self, peer, ours, theirs, reasons):
        """The peer's row of calls is ours, call by call, but for what is named. Returns how many
        calls stand in another order: a program that copies its environment does so in the
        environment's order, which a tracer's own variables change."""
        proof, name = self.proof, self.name
        less, more = differences(plain(ours), plain(theirs))
        moved = (collections.Counter(call for at, call in less) &
                 collections.Counter(call for at, call in more))
        sides = {"less": without(less, moved), "more": without(more, moved)}
        for reason in reasons:
            covered = {side: [call for at, call in calls if reason.covers(side, call)]
                       for side, calls in sides.items()}
            if not any(covered.values()) or sum(map(len, covered.values())) > reason.calls_max:
                continue
            for side, calls in covered.items():
                sides[side] = without(sides[side], collections.Counter(calls))
            proof.note(f"{name}: {peer}: {collections.Counter(covered['more']).most_common(4)} "
                       f"more, {collections.Counter(covered['less']).most_common(4)} less: "
                       f"{reason.text}")
        proof.check(not any(sides.values()),
                    f"{name}: {peer} has the same {len(ours)} calls, but for those named",
                    *(f"{len(calls)} calls {side}: {calls[:5]}" for side, calls in sides.items()))
        proof.check(moved.total() <= MOVED_MAX, f"{name}: {peer} has them in the same order, but "
                    "for the environment's", f"{moved.total()} calls: {moved.most_common(9)}")
        proof.note(f"{name}: {peer}: {moved.total()} of {len(ours)} calls in another order")
        return moved.total()

    def check_heaptrack_print(self, ours, moved):
        proof, name = self.proof, self.name
        said = heaptrack_print(f"{name}.heaptrack")
        counted = totals(self.heaptrack)
        proof.equal(f"{name}: heaptrack_print counts the calls of its file",
                    counted["allocations"], int(said["calls"]))
        proof.equal(f"{name}: heaptrack_print has their peak", si(peak(self.heaptrack)),
                    said["peak"])
        own = peak(self.heaptrack) - peak(ours)
        proof.check(abs(own - EMERGENCY_POOL_BYTES) <= PEAK_TOLERANCE_BYTES,
                    f"{name}: the peak is heaptrack's, less its own pool", f"{own} bytes apart")
        proof.check(abs(temporary_at_once(ours) - self.heaptrack_temporary) <= moved + 8,
                    f"{name}: by heaptrack's rule, the same number of temporary blocks",
                    f"{temporary_at_once(ours)} and {self.heaptrack_temporary}")


# What stands in another order may stand on the other side of the peak.
PEAK_TOLERANCE_BYTES = 40000


def si(size):
    """As heaptrack_print writes it."""
    units = ["B", "K", "M", "G", "T"]
    value = float(size)
    while value >= 1000 and len(units) > 1:
        value /= 1000
        units.pop(0)
    return f"{value:.0f}B" if units[0] == "B" else f"{value:.2f}{units[0]}"
