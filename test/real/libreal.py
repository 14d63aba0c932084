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
import gzip
import json
import os
import re
import shutil
import struct
import subprocess
import sys

BUILD = os.environ["TIDEMARK_BUILD"]
TIDEMARK = os.environ["TIDEMARK"]
WITNESS = os.path.join(BUILD, "test", "witness", "libwitness.so")
SKIPPED = 77


def environment(**more):
    """What a program of ours starts with: the same for everybody, wherever the test runs."""
    return {"PATH": "/usr/bin:/bin", "HOME": os.getcwd(), "LC_ALL": "C.UTF-8",
            "TMPDIR": os.getcwd(), **more}


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


def run(name, command, env, stdin=None, timeout=100):
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


def record(name, command, env, stdin=None, options=(), report_options=(), timeout=100):
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
    proof.check(live["bytes"] <= heap["peak_bytes"] <= heap["allocated_bytes"],
                f"{name}: live bytes <= peak <= allocated bytes", heap)
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

    expected, actual = sums(witness_counts(folder)), sums(recording.processes)
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
    return [program, "--tool=memcheck", "--run-libc-freeres=no", "--leak-check=no",
            "--undef-value-errors=no", f"--log-file={log}", *command]


def valgrind_counts(log):
    with open(log, encoding="utf-8", errors="replace") as file:
        found = re.findall(r"total heap usage: ([\d,]+) allocs, ([\d,]+) frees, ([\d,]+) bytes",
                           file.read())
    if len(found) != 1:
        raise RuntimeError(f"{log}: {len(found)} lines of total heap usage")
    return dict(zip(COMPARED, (int(figure.replace(",", "")) for figure in found[0])))


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
            calls.append((kind[:1].decode(), sizes[int(line.split()[1], 16)]))
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


RESYNC_CALLS = 24    # so many equal calls in a row are the same place again
RESYNC_REACH = 2000  # how far to look for it


def differences(expected, actual):
    """Two rows of calls, side by side: what only the one, and only the other has, each as
    (position in its own row, call)."""
    missing, extra = [], []
    i = j = 0
    while i < len(expected) and j < len(actual):
        if expected[i] == actual[j]:
            i, j = i + 1, j + 1
            continue
        skip = resync(expected, i, actual, j)
        if skip is None:
            break
        missing += [(at, expected[at]) for at in range(i, i + skip[0])]
        extra += [(at, actual[at]) for at in range(j, j + skip[1])]
        i, j = i + skip[0], j + skip[1]
    missing += [(at, expected[at]) for at in range(i, len(expected))]
    extra += [(at, actual[at]) for at in range(j, len(actual))]
    return missing, extra


def resync(expected, i, actual, j):
    """How many calls to step over on each side so that both go on alike."""
    for reach in range(1, RESYNC_REACH):
        for skip in ((reach, 0), (0, reach), (reach, reach)):
            here = expected[i + skip[0]:i + skip[0] + RESYNC_CALLS]
            there = actual[j + skip[1]:j + skip[1] + RESYNC_CALLS]
            if here and here == there:
                return skip
    return None


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
        self.valgrind = valgrind_counts(f"{name}.log")
        ended = must_run(f"{name}.heaptrack", heaptrack_command(f"{name}.heaptrack", self.command),
                         env["heaptrack"], self.stdin)
        self.heaptrack_temporary = heaptrack_temporary(ended)
        self.heaptrack = heaptrack_calls(f"{name}.heaptrack")

    def check(self, valgrind_differs=None):
        """valgrind_differs: what it counts more, where that is known and why."""
        proof, name = self.proof, self.name
        process = counts_of(self.recording.process_of(self.command[0]))
        proof.note(f"{name}: {process}")
        check_sane(proof, name, self.recording, whole_lists=True)
        proof.equal(f"{name}: one thread, so the peak is exact",
                    [self.recording.heap["peak_bytes"]] * 2,
                    [self.recording.heap[key] for key in ("peak_low_bytes", "peak_high_bytes")])
        check_witness_of_same_run(proof, name, self.recording, self.folders["tidemark"])
        proof.equal(f"{name}: the witness of an untraced run counts the same",
                    counts_of(self.alone), process)
        more = valgrind_differs or {}
        proof.equal(f"{name}: Valgrind counts the same, to the last call"
                    + (", but for what is named" if more else ""),
                    self.valgrind, {key: process[key] + more.get(key, 0) for key in COMPARED})
        self.check_heaptrack()

    def check_heaptrack(self):
        """heaptrack's row of calls is ours, call by call. What else it has, or has not, is named:

        - it is written in C++, and so the pool of libstdc++ for exceptions is there once more
        - at exit it ends its record, and makes the C library free what it keeps to the end
        - a program that copies its environment does so in the environment's order, which a
          tracer's own variables change
        """
        proof, name = self.proof, self.name
        calls = dump_calls(self.recording.trace)
        ours = [(what, size) for what, size, address in calls]
        missing, extra = differences(ours, self.heaptrack)
        moved = (collections.Counter(call for at, call in missing) &
                 collections.Counter(call for at, call in extra))
        missing, extra = without(missing, moved), without(extra, moved)
        own = [call for at, call in extra if call[1] == EMERGENCY_POOL_BYTES or call[0] == "-" and
               at >= len(self.heaptrack) - len(extra)]
        late = [call for at, call in missing if at >= len(ours) - len(missing)]
        proof.check(len(own) == len(extra) and own.count(POOL) <= 1,
                    f"{name}: heaptrack has no call that we have not, but for its own",
                    f"{len(extra)} calls, the first: {extra[:5]}")
        proof.check(len(late) == len(missing), f"{name}: we have no call that heaptrack has not, "
                    "but for the last ones, after the end of its record",
                    f"{len(missing)} calls, the first: {missing[:5]}")
        proof.check(moved.total() <= MOVED_MAX, f"{name}: the order is the same, but for the "
                    "environment's", f"{moved.total()} calls: {moved.most_common(9)}")
        proof.note(f"{name}: heaptrack's own: {own}; after its end: {late}; in another order: "
                   f"{moved.total()} of {len(ours)} calls")
        seen = calls[:len(calls) - len(missing)]
        proof.equal(f"{name}: by heaptrack's own rule as many temporary blocks",
                    sum(1 for before, now in zip(seen, seen[1:])
                        if before[0] == "+" and now[0] == "-" and before[2] == now[2]),
                    self.heaptrack_temporary)
        proof.check(self.recording.heap["temporary"]["count"] >= self.heaptrack_temporary,
                    f"{name}: by our rule, at least as many", self.recording.heap["temporary"])
        self.check_heaptrack_print(missing, own.count(POOL))

    def check_heaptrack_print(self, missing, pool):
        proof, name = self.proof, self.name
        process = self.recording.process_of(self.command[0])
        said = heaptrack_print(f"{name}.heaptrack")
        late = sum(1 for at, call in missing if call[0] == "+")
        proof.equal(f"{name}: heaptrack_print counts as many calls",
                    process["allocations"] - late + pool, int(said["calls"]))
        proof.equal(f"{name}: heaptrack_print has the same peak",
                    si(self.recording.heap["peak_bytes"] + pool * EMERGENCY_POOL_BYTES),
                    said["peak"])


# libstdc++ of gcc 12 allocates this once, for exceptions when there is no memory. heaptrack is
# written in C++ and brings the library into every program.
EMERGENCY_POOL_BYTES = 72704
POOL = ("+", EMERGENCY_POOL_BYTES)
MOVED_MAX = 200  # calls that may stand in another order


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


def si(size):
    """As heaptrack_print writes it."""
    units = ["B", "K", "M", "G", "T"]
    value = float(size)
    while value >= 1000 and len(units) > 1:
        value /= 1000
        units.pop(0)
    return f"{value:.0f}B" if units[0] == "B" else f"{value:.2f}{units[0]}"
