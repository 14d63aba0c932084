"""libreplay: compares the order in a trace with what really happened.

The program `handover` writes down, for each of its threads, which blocks it was given and gave up,
and of each the how-manieth owner of that address it was: a number that comes from the allocator's
own handing over, not from any recorder (test/programs/handover.c). A trace is right if

* each thread's calls stand in it in the order in which the thread made them, all that returned are
  there, and at most one call more;
* in the trace's order, the owners of each address follow each other as they did: nobody owns what
  is owned, nobody gives up what is not, and the numbers rise.
"""
import bisect
import collections
import os
import re
import struct
import subprocess

from libguest import TIDEMARK, Failed, check, environment, program, run

TAKEN, GIVEN, KEPT = 1, 2, 3
# The halves of each event, and which address they are about: 0 the old one, 1 the new one.
HALVES = {
    "malloc": [(TAKEN, 1)], "calloc": [(TAKEN, 1)], "aligned": [(TAKEN, 1)], "free": [(GIVEN, 1)],
    "realloc": [(GIVEN, 0), (TAKEN, 1)], "realloc-free": [(GIVEN, 1)],
    "realloc-alloc": [(TAKEN, 1)], "realloc-undo": [(KEPT, 1)], "realloc-failed": [(KEPT, 1)],
}
LINE = re.compile(r"@\d+ t(\d+) (malloc|calloc|aligned|free|realloc(?:-free|-alloc|-undo|-failed)?)"
                  r"(?: s\d+)?(?: 0x([0-9a-f]+) ->)? 0x([0-9a-f]+)(?: (\d+))?")
THREAD = re.compile(r"thread t(\d+) p\d+ tid=(\d+)")

Replay = collections.namedtuple("Replay", "events handed_over wrong overlaps")


class Crashed(Failed):
    """The program was ended by a signal. `where` is the file whose code it was in, if it said so."""

    def __init__(self, text, errors):
        super().__init__(text)
        told = re.search(r"^crashed in (\S+)", errors, re.M)
        self.where = told[1] if told else None


def read_logs(path):
    """tid -> [(address, owner, what)], of calls that returned; and what was begun after them."""
    with open(path, "rb") as file:
        data = file.read()
    count, size = struct.unpack_from("2Q", data)
    logs = {}
    for index in range(count):
        at = 64 + index * size
        tid, done = struct.unpack_from("2Q", data, at)
        if tid:
            check(tid not in logs, "two threads had one id: run again")
            logs[tid] = [struct.unpack_from("<QII", data, at + 16 + 16 * n) for n in range(done)]
    return logs


class Verifier:
    """Takes the trace's calls in their order. `wrong` counts what cannot have happened, by kind."""

    def __init__(self, logs):
        self.logs = logs
        self.position = {tid: 0 for tid in logs}
        self.owners = {}  # address -> (owner's number, tid) while owned
        self.last = collections.Counter()  # address -> number of its last owner
        self.last_tid = {}
        self.starts = []  # of live blocks, sorted
        self.sizes = {}
        self.wrong = collections.Counter()
        self.events = self.handed_over = self.overlaps = 0

    def next_of(self, tid, what, address):
        """The owner's number that the thread's own log has for this call. None: still under way."""
        at = self.position[tid]
        self.position[tid] += 1
        if at >= len(self.logs[tid]):
            if at > len(self.logs[tid]) + 1:  # a realloc is two
                self.wrong["more calls than one under way"] += 1
            return None
        logged = self.logs[tid][at]
        if logged[0] != address or logged[2] != what:
            self.wrong["not the thread's next call"] += 1
            return None
        return logged[1]

    def taken(self, tid, address, size, owner):
        if address in self.owners:
            self.wrong["owned twice"] += 1
        if owner is not None and owner <= self.last[address]:
            self.wrong["owners in the wrong order"] += 1
        if owner is not None:
            self.last[address] = owner
        if self.last_tid.get(address, tid) != tid:
            self.handed_over += 1
        self.owners[address] = owner
        at = bisect.bisect_left(self.starts, address)
        if at and self.starts[at - 1] + self.sizes[self.starts[at - 1]] > address:
            self.overlaps += 1
        elif at < len(self.starts) and address + size > self.starts[at] > address:
            self.overlaps += 1
        if at == len(self.starts) or self.starts[at] != address:
            self.starts.insert(at, address)
        self.sizes[address] = size

    def given(self, tid, address, owner):
        if address not in self.owners:
            self.wrong["given up by no owner"] += 1
            return
        if owner is not None and self.owners[address] not in (owner, None):
            self.wrong["given up by the wrong owner"] += 1
        del self.owners[address]
        self.last_tid[address] = tid
        del self.starts[bisect.bisect_left(self.starts, address)]

    def call(self, tid, kind, old, address, size):
        for what, which in HALVES[kind]:
            self.events += 1
            at = address if which else old
            if kind == "realloc-undo":  # the first half was taken for the end of the block
                self.taken(tid, at, 0, None)
                owner = self.pending.pop(tid, None)
                self.owners[at] = owner
                self.last[at] = owner or self.last[at]
                continue
            owner = self.next_of(tid, what, at) if kind != "realloc-free" else \
                self.first_half(tid, at)
            if what == TAKEN:
                self.taken(tid, at, size, owner)
            elif what == GIVEN:
                self.given(tid, at, owner)
            elif at not in self.owners:
                self.wrong["kept by no owner"] += 1

    pending = {}

    def first_half(self, tid, address):
        """A realloc that will move, or fail and be undone: the log says which by its next entry."""
        at = self.position[tid]
        if at < len(self.logs[tid]) and self.logs[tid][at][2] == KEPT:
            self.position[tid] += 1
            self.pending[tid] = self.logs[tid][at][1]
            if self.logs[tid][at][0] != address:
                self.wrong["not the thread's next call"] += 1
            return self.logs[tid][at][1]
        return self.next_of(tid, GIVEN, address)


def verify(trace, log):
    logs = read_logs(log)
    verifier = Verifier(logs)
    tids = {}
    dump = subprocess.Popen([TIDEMARK, "dump", trace], stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, text=True)
    with dump:
        for line in dump.stdout:
            if line[0] != "@":
                match = THREAD.match(line)
                if match:
                    tids[int(match[1])] = int(match[2])
                continue
            match = LINE.match(line)
            if match and tids[int(match[1])] in logs:
                verifier.call(tids[int(match[1])], match[2], int(match[3] or "0", 16),
                              int(match[4], 16), int(match[5] or 0))
    for tid, entries in logs.items():
        if verifier.position[tid] < len(entries):
            verifier.wrong["calls that returned are missing"] += \
                len(entries) - verifier.position[tid]
    return Replay(verifier.events, verifier.handed_over, verifier.wrong, verifier.overlaps)


def handover(steps, seed, tidemark=TIDEMARK, preload=None, generations=4, library=None):
    """Record the program, and compare."""
    more = {"LD_PRELOAD": preload} if preload else {}
    if library:
        more["TIDEMARK_LIBRARY"] = library
    ended = run([tidemark, "record", "-q", "--force", "-o", "t.tide",
                 program("handover"), os.path.abspath("log"), "8", str(steps), str(seed),
                 str(generations)],
                env=environment(**more))
    if ended.code < 0:
        raise Crashed(f"handover, seed {seed}, ended with {ended.code}: {ended.err[-300:]}",
                      ended.err)
    check(ended.code == 0, f"handover ended with {ended.code}: {ended.err[-300:]}")
    return verify("t.tide", "log")
