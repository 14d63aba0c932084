"""libmemory: what the tests of virtual memory share.

A traced program runs under strace as well, which sees the same calls of the same run from outside:
each with the address of the instruction that made it. Calls that the recorder passes on for the
program are made in its function vm_relay, its own elsewhere in its library; so they are told apart
without asking it. What counts is what comes after the first recognisable call of the recorder's own:
it opens /proc/self/maps to copy the baseline.
"""
import collections
import os
import re
import subprocess

from libtests import PATIENCE_SECONDS

BUILD = os.path.abspath(os.environ.get("TIDEMARK_BUILD", "build"))
TIDEMARK = os.environ.get("TIDEMARK", os.path.join(BUILD, "tidemark"))
BITS = int(os.environ.get("GUEST_BITS", "64"))
LIBRARY = os.path.join(BUILD, "libtidemark.so" if BITS == 64 else "libtidemark32.so")
PAGE = 4096

# Each system call, and what a trace calls it.
CALLS = {"mmap": "mmap", "mmap2": "mmap", "munmap": "munmap", "mremap": "mremap", "brk": "brk",
         "mprotect": "mprotect", "pkey_mprotect": "mprotect", "madvise": "madvise",
         "mlock": "mlock", "mlock2": "mlock", "munlock": "mlock", "mlockall": "mlock",
         "munlockall": "mlock", "shmat": "shmat", "shmdt": "shmdt",
         "remap_file_pages": "remap-file-pages"}

# Calls whose lengths strace does not show.
UNSIZED = {"shmat", "shmdt", "mlockall", "munlockall"}


def relay_range():
    """Where vm_relay lies in the library."""
    out = subprocess.run(["nm", "-S", LIBRARY], stdout=subprocess.PIPE, check=True, text=True)
    for line in out.stdout.splitlines():
        words = line.split()
        if len(words) == 4 and words[3] == "vm_relay":
            return int(words[0], 16), int(words[0], 16) + int(words[1], 16)
    raise RuntimeError(f"{LIBRARY} has no vm_relay")


def record_under_strace(command, *words, trace="t.tide", log="t.strace", timeout=PATIENCE_SECONDS, **options):
    """Record the program while strace looks on. Its exit code."""
    with open("t.out", "wb") as out:
        return subprocess.run([TIDEMARK, "record", "--force", *words, "-o", trace, "--",
                               "/usr/bin/strace",
                               "-f", "-i", "-o", log, "-e", "signal=none", "-e",
                               "trace=" + ",".join([*CALLS, "openat", "execve"]), "--", *command],
                              stdout=out, stderr=subprocess.STDOUT, timeout=timeout, check=False,
                              **options).returncode


class Plain:
    """So many calls, of so many bytes (of those that succeeded)."""

    def __init__(self):
        self.count = collections.Counter()
        self.bytes = collections.Counter()

    def add(self, call, size):
        self.count[call] += 1
        self.bytes[call] += size


class Count(Plain):
    """The same of a whole run. Of `cut` ones nobody outside knows whether they were made: the process
    was killed, or ended, while a thread was in them. The recorder has such a call if it writes it down
    first (munmap), and has not if it does so afterwards.

    A thread may also be killed when the recorder has written its munmap down and the kernel was not
    asked yet: strace never sees that call. So each thread that lived when the process ended may have
    one call more here than there, its last: `last` and `numbers` tell which."""

    def __init__(self):
        super().__init__()
        self.cut = Plain()
        self.alive = set()                     # threads that lived when the process ended
        self.last = {}                         # thread -> its last call and size
        self.numbers = collections.Counter()   # of each thread and call

    def add_of(self, thread, call, size):
        self.add(call, size)
        self.last[thread] = call, size
        self.numbers[thread, call] += 1

    def unasked(self, other):
        """The calls here of which `other`, what strace saw, has not even the beginning."""
        plain = Plain()
        for thread in other.alive & set(self.last):
            call, size = self.last[thread]
            if self.numbers[thread, call] == other.numbers[thread, call] + 1:
                plain.add(call, size)
        return plain

    def differences(self, other):
        more = self.unasked(other)
        return [f"{name} of {call}: {left[call]} here, {right[call]} there "
                f"(and {cut[call]} cut, {last[call]} not asked)"
                for name, left, right, cut, last in (
                    ("number", self.count, other.count, other.cut.count, more.count),
                    ("bytes", self.bytes, other.bytes, other.cut.bytes, more.bytes))
                for call in sorted(set(left) | set(right))
                if not right[call] <= left[call] - last[call] <= right[call] + cut[call]]


def strace_lines(log):
    """(pid, instruction, call, arguments, result) of each call, halves put together. The result is "?"
    where there is none: what was begun when the thread was killed. A thread's end is the call "+++"."""
    halves = {}
    with open(log, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            match = re.match(r"(\d+) +\[([0-9a-f?]+)\] (.*)", line)
            if not match:
                continue
            pid, text = int(match[1]), match[3]
            if text.startswith("+++"):
                yield pid, 0, "+++", "", ""
                continue
            where = 0 if "?" in match[2] else int(match[2], 16)
            if text.endswith("<unfinished ...>"):
                halves[pid] = (where, text[:-len("<unfinished ...>")].rstrip())
                continue
            resumed = re.match(r"<\.\.\. (\w+) resumed>(.*)", text)
            if resumed:
                where, begun = halves.pop(pid, (where, resumed[1] + "("))
                text = begun + resumed[2]
            call = re.match(r"(\w+)\((.*)\) += (\S+)", text)
            if call:
                yield pid, where, call[1], call[2], call[3]
    for pid, (where, text) in halves.items():
        call = re.match(r"(\w+)\((.*)", text)
        if call:
            yield pid, where, call[1], call[2].rstrip(","), "?"


def split(arguments):
    return [word.strip() for word in arguments.split(",")]


def size_of(call, arguments):
    if call in UNSIZED:
        return 0
    return int(split(arguments)[2 if call == "mremap" else 1])


def last_calls(lines):
    """Which lines are the last ones of threads that lived when the process ended. More than one thread
    did: all but one were killed, maybe between the call and its record."""
    last, final = {}, 0
    for index, (pid, _, call, _, result) in enumerate(lines):
        if call in CALLS:
            last[pid] = index
            final = final if result == "?" else index
    for pid, _, call, _, _ in lines[:final]:
        if call == "+++":
            last.pop(pid, None)
    return set(last.values()) if len(last) > 1 else set()


def count_strace(log, pids, base):
    """What strace saw of the threads `pids`, from the recorder's first own call on."""
    low, high = relay_range()
    with open(LIBRARY, "rb"):
        end = base + os.path.getsize(LIBRARY) + (1 << 20)
    count, own, begun, brk = Count(), Count(), False, None
    lines = [line for line in strace_lines(log) if line[0] in pids]
    last = last_calls(lines)
    count.alive = {lines[index][0] for index in last}
    for index, (pid, where, call, arguments, result) in enumerate(lines):
        ours = base <= where < end
        relayed = base + low <= where <= base + high
        if ours and not relayed and call == "openat" and "/proc/self/maps" in arguments:
            begun = True
        if call == "brk" and result != "?":
            before, brk = brk, int(result, 16)
        if not begun or call not in CALLS:
            continue
        target = own if ours and not relayed else count
        if call == "brk":
            asked = split(arguments)[0]
            moved = result != "?" and asked != "NULL" and int(asked, 16) == brk and before is not None
            size = abs(brk - before) if moved else 0
        else:
            size = 0 if result == "-1" else size_of(call, arguments)
        (target.cut if result == "?" or index in last else target).add(CALLS[call], size)
        target.numbers[pid, CALLS[call]] += 1
    return count, own, begun


class Memory:
    """The calls of one process in a trace, and what they leave mapped."""

    def __init__(self, exe, trace="t.tide"):
        text = subprocess.run([TIDEMARK, "dump", trace], stdout=subprocess.PIPE, check=True,
                              text=True).stdout
        self.processes = {}  # label -> (pid, exe)
        self.threads = {}    # label -> (process, tid)
        self.files = {}
        self.lines = []
        for line in text.splitlines():
            self._take(line)
        chosen = [label for label, (_, path) in self.processes.items() if path == exe]
        if not chosen:
            raise RuntimeError(f"no process of {exe} in the trace")
        self.process = chosen[0]
        self.pid = self.processes[self.process][0]
        mine = {label for label, (process, _) in self.threads.items() if process == self.process}
        self.tids = {tid for label, (_, tid) in self.threads.items() if label in mine} | {self.pid}
        self.calls = [call for call in self.lines if call["thread"] in mine]

    def _take(self, line):
        words = line.split(" ")
        if words[0] == "process":
            exe = re.search(r' exe="((?:[^"\\]|\\.)*)"', line)
            self.processes[words[1]] = (int(words[2][4:]), exe[1] if exe else "")
        elif words[0] == "thread":
            self.threads[words[1]] = (words[2], int(words[3][4:]))
        elif words[0] == "file":
            self.files[words[1]] = line[line.index('"') + 1:-1]
        elif words[0][0] == "@" and len(words) > 2 and words[2] in KINDS:
            self.lines.append(parse_call(words))

    def base(self):
        """Where the recorder's library is mapped."""
        return min(call["address"] for call in self.calls if call["kind"] == "mapped" and
                   self.files.get(call.get("file"), "") == LIBRARY)

    def count(self):
        count = Count()
        for call in self.calls:
            if call["kind"] in ("mapped", "unmapped") or call.get("origin") == "recorder":
                continue
            size = call["size"] if not call.get("error") else 0
            if call["kind"] in ("shmat", "shmdt"):
                size = 0
            count.add_of(self.threads[call["thread"]][1], call["kind"], size)
        return count

    def replay(self):
        """Page by page: (start, end, protection, ours) of what is mapped in the end, in order."""
        space = Space()
        for call in self.calls:
            if not call.get("error"):
                space.apply(call)
        return space.ranges


KINDS = set(CALLS.values()) | {"mapped", "unmapped"}


def parse_call(words):
    call = {"time": int(words[0][1:]), "thread": words[1], "kind": words[2]}
    plain = [word for word in words[3:] if "=" not in word]
    for word in words[3:]:
        if "=" in word:
            key, value = word.split("=", 1)
            call[key] = value
    if plain and re.fullmatch(r"s\d+", plain[0]):
        call["stack"] = plain.pop(0)
    if call["kind"] == "brk":
        call["old"], call["address"] = int(plain[0], 16), int(plain[2], 16)
        call["size"] = abs(call["address"] - call["old"])
    elif call["kind"] == "mremap":
        call["old"], call["old_size"] = int(plain[0], 16), int(plain[1])
        call["address"], call["size"] = int(plain[3], 16), int(plain[4])
    else:
        call["address"], call["size"] = int(plain[0], 16), int(plain[1])
    return call


def pages(size):
    return (size + PAGE - 1) // PAGE * PAGE


class Space:
    """What is mapped, as disjoint ranges in order. Simple, and slow."""

    def __init__(self):
        self.ranges = []  # [start, end, protection, ours]

    def cut(self, start, end):
        """Take [start, end) out; returns the parts that were there."""
        kept, taken = [], []
        for low, high, protection, ours in self.ranges:
            if high <= start or low >= end:
                kept.append((low, high, protection, ours))
                continue
            if low < start:
                kept.append((low, start, protection, ours))
            if high > end:
                kept.append((end, high, protection, ours))
            taken.append((max(low, start), min(high, end), protection, ours))
        self.ranges = kept
        return taken

    def put(self, start, end, protection, ours):
        self.cut(start, end)
        self.ranges.append((start, end, protection, ours))
        self.ranges.sort()

    def apply(self, call):
        kind, address, size = call["kind"], call["address"], pages(call["size"])
        ours = call.get("origin") == "recorder"
        if kind in ("mmap", "mapped", "shmat"):
            self.put(address, address + size, call["prot"], ours)
        elif kind in ("munmap", "unmapped", "shmdt"):
            self.cut(address, address + size)
        elif kind == "mprotect":
            for low, high, _, mine in self.cut(address, address + size):
                self.put(low, high, call["prot"], mine)
        elif kind == "brk":
            old, new = pages(call["old"]), pages(call["address"])
            if new > old:
                self.put(old, new, "rw", False)
            elif new < old:
                self.cut(new, old)
        elif kind == "mremap":
            taken = self.cut(call["old"], call["old"] + pages(call["old_size"]))
            protection = taken[0][2] if taken else "rw"
            self.put(address, address + size, protection, False)


def joined(ranges):
    """Neighbours alike as one."""
    out = []
    for start, end, *rest in sorted(ranges):
        if out and out[-1][1] == start and out[-1][2:] == rest:
            out[-1][1] = end
        else:
            out.append([start, end, *rest])
    return out


def read_maps(path):
    ranges = []
    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            words = line.split(maxsplit=5)
            start, end = (int(word, 16) for word in words[0].split("-"))
            name = words[5].strip() if len(words) > 5 else ""
            if name == "[stack]":  # the kernel grows it
                continue
            letters = words[1][:3].replace("-", "") or "none"
            ranges.append((start, end, letters))
    return ranges


def map_differences(memory, path):
    """Where the replay and the program's own copy of its map differ; tidemark's own left out."""
    replayed = memory.replay()
    ours = [(low, high) for low, high, _, mine in replayed if mine]
    stack = [call for call in memory.calls if call["kind"] == "mapped" and
             memory.files.get(call.get("file")) == "[stack]"]
    there = Space()
    for low, high, protection in read_maps(path):
        there.ranges.append((low, high, protection, False))
    for low, high in ours:
        there.cut(low, high)
    here = Space()
    here.ranges = [piece for piece in replayed if not piece[3]]
    for call in stack:
        here.cut(call["address"], call["address"] + call["size"])
    left = {tuple(piece) for piece in joined([piece[:3] for piece in here.ranges])}
    right = {tuple(piece) for piece in joined([piece[:3] for piece in there.ranges])}
    return ([f"only in the replay: {low:x}-{high:x} {prot}" for low, high, prot in
             sorted(left - right)] +
            [f"only in the map: {low:x}-{high:x} {prot}" for low, high, prot in
             sorted(right - left)])
