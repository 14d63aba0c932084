"""libguest: what the tests of the polite guest share.

Each script here records programs of test/programs, which say in their first comment what must be
said about them, and compares: the trace's text (`tidemark dump`) with the program's own counters,
and the totals with those of the witness, a counting preload that stands behind the recorder and
sees the very same calls of the very same run.
"""
import collections
import json
import os
import re
import struct
import subprocess

import libi386
import libtests
# Scripts take all that they need from here.
from libtests import (PATIENCE_SECONDS, Failed, Skip, check, equal, main, test,  # noqa: F401
                      wait_for)

libtests.in_folders = True
BUILD = os.path.abspath(os.environ.get("TIDEMARK_BUILD", "build"))
SOURCE = os.environ.get("TIDEMARK_SOURCE", ".")
TIDEMARK = os.environ.get("TIDEMARK", os.path.join(BUILD, "tidemark"))
LIBRARY = os.path.join(BUILD, "libtidemark.so")
LIBRARY_32 = os.path.join(BUILD, "libtidemark32.so")
# Of the programs that are recorded: i386.py runs other scripts with those of 32 bits.
BITS = int(os.environ.get("GUEST_BITS", "64"))
WITNESS = os.path.join(BUILD, "test", "witness",
                       "libwitness.so" if BITS == 64 else "libwitness32.so")
ROOT = os.geteuid() == 0


def program(name, bits=BITS):
    return os.path.join(BUILD, "test", "programs", *(["i386"] if bits == 32 else []), name)


def python():
    """The system's python3 of the class, as a command and what its environment needs."""
    if BITS == 64:
        return ["/usr/bin/python3"], {"PYTHONMALLOC": "malloc"}
    home, why = libi386.find()
    if not home:
        raise Skip(why)
    return [libi386.program(home, "python3.11")], libi386.variables(home)


def why_not_32_bits():
    """Why programs of 32 bits are not recorded here; None where they are."""
    if not os.path.exists(LIBRARY_32):
        return "this build has no recorder for 32-bit programs"
    return libi386.why_none_runs()


def need_32_bits():
    if why_not_32_bits():
        raise Skip(why_not_32_bits())


JEMALLOC_NAMES = ("malloc", "calloc", "realloc", "memalign", "free", "aligned_alloc", "posix_memalign",
                  "valloc", "mallocx", "rallocx", "xallocx", "dallocx", "sdallocx")


def jemalloc(name, prefix=""):
    """jemalloc's archive, its functions called `prefix`…"""
    path = f"/usr/lib/x86_64-linux-gnu/lib{name}.a"
    if not os.path.exists(path):
        raise Skip(f"needs {path}")
    if not prefix:
        return path
    new = os.path.abspath(f"{prefix}{name}.a")
    words = [word for each in JEMALLOC_NAMES for word in ("--redefine-sym", f"{each}={prefix}{each}")]
    subprocess.run(["objcopy", *words, path, new], check=True, stderr=subprocess.DEVNULL)
    return new


def need_root():
    if not ROOT:
        raise Skip("needs root")


# --- Running ---

class Ended:
    def __init__(self, code, out, err):
        self.code = code  # negative: the signal that ended it
        self.out = out
        self.err = err

    def lines(self):
        """What tidemark itself said."""
        return [line for line in self.err.splitlines() if line.startswith("tidemark: ")]


def environment(**more):
    kept = {"PATH": "/usr/bin:/bin", "HOME": os.getcwd(), "LC_ALL": "C.UTF-8", "TMPDIR": "/tmp"}
    kept.update(more)
    return kept


def other_system(**how):
    """The environment of a tidemark on another system: other_system.c says which."""
    return environment(**{"LD_PRELOAD": program("libother_system.so", 64), **how})


def run(command, timeout=PATIENCE_SECONDS, text=None, **options):
    options.setdefault("env", environment())
    ended = subprocess.run(command, input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           timeout=timeout, check=False, **options)
    return Ended(ended.returncode, ended.stdout.decode("utf-8", "replace"),
                 ended.stderr.decode("utf-8", "replace"))


def record(command, *options, trace="t.tide", code=0, **more):
    """Record; the exit code must be `code`. Returns what it printed."""
    ended = run([TIDEMARK, "record", "-o", trace, *options, "--", *command], **more)
    equal(code, ended.code, f"exit code of {command[:2]} ({ended.err.strip()[-800:]})")
    return ended


def record_witnessed(command, *options, trace="t.tide", code=0, **more):
    """Record with the witness behind the recorder. Returns what was printed, and the counts."""
    os.makedirs("witness", mode=0o777, exist_ok=True)
    os.chmod("witness", 0o777)
    env = environment(LD_PRELOAD=WITNESS, WITNESS=os.path.abspath("witness"),
                      **more.pop("variables", {}))
    ended = record(command, *options, trace=trace, code=code, env=env, **more)
    return ended, witness_counts("witness")


Counts = collections.namedtuple("Counts", "allocations frees bytes reallocations failed")


def witness_counts(folder):
    """The sum of all images but those of tidemark itself, which the witness counts too."""
    total = [0] * 5
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), "rb") as file:
            data = file.read()
        if data[64:].split(b"\0")[0] != b"tidemark":
            total = [a + b for a, b in zip(total, struct.unpack_from("5Q", data))]
    return Counts(*total)


def counters(path, threads=3):
    """(allocations, frees, bytes) of each thread, as guest.h lays them out."""
    with open(path, "rb") as file:
        data = file.read()
    return [struct.unpack_from("3Q", data, 64 * n) for n in range(threads)]


# --- Reading traces ---

Event = collections.namedtuple("Event", "time thread kind stack old address size align")
WORD = re.compile(r'(?:"(?:[^"\\]|\\.)*"|[^\s"])+')
EVENT = re.compile(r"@(\d+) t(\d+) ([a-z-]+)(?: s(\d+))?(?: 0x([0-9a-f]+) ->)?"
                   r"(?: 0x([0-9a-f]+))?(?: (\d+))?(?: align=(\d+))?$")
ALLOCATING = {"malloc", "calloc", "aligned", "realloc", "realloc-alloc"}
FREEING = {"free", "realloc", "realloc-free"}


def unquote(word):
    if not word.startswith('"'):
        return word
    return re.sub(r"\\x([0-9a-f]{2})|\\(.)",
                  lambda m: chr(int(m[1], 16)) if m[1] else m[2], word[1:-1])


class Trace:
    """A trace, from its text form; without `events`, what it defines and how it ended alone."""

    def __init__(self, path="t.tide", events=True):
        ended = run([TIDEMARK, "dump", *([] if events else ["--definitions"]), path])
        equal(0, ended.code, f"dump ({ended.err.strip()})")
        self.warnings = ended.err
        self.processes = {}
        self.threads = {}  # id -> process
        self.modules = {}
        self.frames = {}  # id -> (module id, pc)
        self.stacks = {}  # id -> (frame, parent, flags)
        self.events = []
        self.notes = []  # (kind, process, rest)
        self.end = None
        self.options = ""
        for line in ended.out.splitlines():
            self.line(line)

    def line(self, line):
        if line.startswith("@"):
            match = EVENT.match(line)
            if match:
                self.event(match)
            else:
                self.note(line)
            return
        words = [unquote(word) for word in WORD.findall(line)]
        kind = words[0]
        fields = {key: unquote(value) for key, _, value in
                  (word.partition("=") for word in words[1:]) if value}
        if kind == "process":
            fields["args"] = [unquote(word[4:]) for word in words if word.startswith("arg=")]
            self.processes[int(words[1][1:])] = fields
        elif kind == "thread":
            self.threads[int(words[1][1:])] = int(words[2][1:])
        elif kind == "module":
            self.modules[int(words[1][1:])] = words[-1]
        elif kind == "frame":
            module = int(words[2][1:]) if words[2].startswith("m") else 0
            self.frames[int(words[1][1:])] = (module, int(words[3 if module else 2], 16))
        elif kind == "stack":
            at = [word for word in words[2:] if word[0] == "f" and "=" not in word][0]
            parent = int(words[-1][1:]) if words[-2] == "<" else 0
            self.stacks[int(words[1][1:])] = (int(at[1:]), parent, int(fields.get("flags", 0)))
        elif kind == "end":
            self.end = fields
        elif kind == "trace" and "options" in fields:
            self.options = fields["options"]

    def event(self, match):
        time, thread, kind, stack, old, address, size, align = match.groups()
        self.events.append(Event(int(time), int(thread), kind, int(stack or 0),
                                 int(old or "0", 16), int(address or "0", 16), int(size or 0),
                                 int(align or 0)))

    def note(self, line):
        words = [unquote(word) for word in WORD.findall(line)]
        process = next((int(word[1:]) for word in words[2:] if re.fullmatch(r"p\d+", word)), None)
        self.notes.append((words[1], process, line))

    def events_lost(self):
        return int((self.end or {}).get("events-lost", 0))

    def counts(self, process=None):
        """By the house's rules, of all processes or of one."""
        allocations = frees = size = reallocations = failed = 0
        for event in self.events:
            if process is not None and self.threads[event.thread] != process:
                continue
            if event.kind in ALLOCATING:
                allocations += 1
                size += event.size
            frees += event.kind in FREEING
            reallocations += event.kind in ("realloc", "realloc-alloc")
            failed += event.kind in ("failed", "realloc-failed", "realloc-undo")
            frees -= event.kind == "realloc-undo"
        return Counts(allocations, frees, size, reallocations, failed)

    def of_size(self, size, process=None):
        return [event for event in self.events if event.size == size and event.kind in ALLOCATING
                and (process is None or self.threads[event.thread] == process)]

    def frees_of_size(self, size):
        """Frees of blocks of that size, by pairing addresses in the trace's order."""
        live = {}
        count = 0
        for event in self.events:
            process = self.threads[event.thread]
            for address in ([event.old] if event.kind == "realloc" else
                            [event.address] if event.kind in FREEING else []):
                count += live.pop((process, address), None) == size
            if event.kind in ALLOCATING:
                live[(process, event.address)] = event.size
        return count

    def depth(self, stack):
        depth = 0
        while stack:
            stack = self.stacks[stack][1]
            depth += 1
        return depth

    def root(self, stack):
        while self.stacks[stack][1]:
            stack = self.stacks[stack][1]
        return stack

    def frames_of(self, stack):
        """Frames, innermost first."""
        found = []
        while stack:
            frame, stack, _ = self.stacks[stack]
            found.append(frame)
        return found

    def module_of(self, frame):
        return os.path.basename(self.modules.get(self.frames[frame][0], "?"))

    def check_ownership(self):
        """No address is owned twice, and no free is without its allocation, in one process."""
        live = {}
        inherited = {process: fields.get("start") == "fork"
                     for process, fields in self.processes.items()}
        for number, event in enumerate(self.events):
            process = self.threads[event.thread]
            blocks = live.setdefault(process, {})
            if event.kind in ("free", "realloc-free"):
                check(blocks.pop(event.address, None) is not None or inherited[process],
                      f"event {number} frees {event.address:#x}, which nobody owns")
            elif event.kind == "realloc":
                check(blocks.pop(event.old, None) is not None or inherited[process],
                      f"event {number} reallocates {event.old:#x}, which nobody owns")
            if event.kind in ALLOCATING or event.kind == "realloc-undo":
                check(event.address not in blocks,
                      f"event {number} gives out {event.address:#x}, which is owned by "
                      f"event {blocks.get(event.address)}")
                blocks[event.address] = number
        return live


def closed(path, events=True):
    """The trace at `path`, once it is whole: its collector works on after the program's end."""
    def whole():
        if not os.path.exists(path) or not os.path.getsize(path):
            return None
        trace = Trace(path, events=False)
        return trace if trace.end is not None else None
    trace = wait_for(whole, f"{path} to be closed", pause=0.05)
    return Trace(path) if events else trace


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


def runs(pid):
    """Whether the process has not ended; who has may still be there until somebody asks."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(") ")[2][0] != "Z"
    except FileNotFoundError:
        return False


def collector_of(launcher):
    """The collector's process id: the child that is tidemark too."""
    found = [pid for pid in children_of(launcher)
             if os.readlink(f"/proc/{pid}/exe") == os.path.realpath(TIDEMARK)]
    equal(1, len(found), "collectors below the launcher")
    return found[0]


def started(command, *options, env=None, **more):
    """A recording in progress, once its program has said that it is ready."""
    recorder = subprocess.Popen([TIDEMARK, "record", "-o", "t.tide", *options, "--", *command],
                                env=env or environment(), stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, **more)
    equal(b"ready\n", recorder.stdout.readline(), "the program's first line")
    return recorder


def finished(recorder):
    """Its exit code, what the program printed and what we said."""
    out, err = recorder.communicate(timeout=PATIENCE_SECONDS)
    return recorder.returncode, out.decode(), err.decode()


def report(trace="t.tide", *options):
    ended = run([TIDEMARK, "report", "--json", *options, trace])
    equal(0, ended.code, f"report ({ended.err.strip()})")
    return json.loads(ended.out)


def check_whole(trace, witness=None):
    """The trace is complete, lost nothing, and says what the witness says."""
    check(trace.end is not None, "the trace has no end record")
    equal("", trace.end.get("why", ""), "why the recording ended")
    equal(0, trace.events_lost(), "events lost")
    if witness is not None:
        equal(witness, trace.counts(), "counts (expected: the witness's)")
    trace.check_ownership()
