#!/usr/bin/env python3
"""What a program of musl's had allocated before it was attached to is in the trace, block by block,
with the sizes that it asked for: compared with a preload that knows each block that lives."""
# timeout: 120
# parallel: yes
import os
import re
import shutil
import struct

from libguest import SOURCE, TIDEMARK, Skip, check, equal, main, run, test
from libtests import take

take("before", "none of its tests")
# pylint: disable=wrong-import-position
from before import Running, attach_again, known_to, read_before, read_in_time, record, report


def build(source, name, *options):
    if not shutil.which("musl-gcc"):
        raise Skip("needs musl-gcc")
    made = run(["musl-gcc", "-O1", "-g", "-fno-builtin", "-pthread", "-D_GNU_SOURCE", *options, "-o", name,
                os.path.join(SOURCE, "test", source)])
    equal(0, made.code, made.err)
    return os.path.abspath(name)


def started(*arguments):
    """The program, and the preload that knows its blocks."""
    blocks = build("witness/blocks.c", "libblocks.so", "-shared", "-fPIC", "-DBLOCKS_NEXT",
                   "-DBLOCKS_MUSL")
    return Running([build("programs/before.c", "of_musl"), *map(str, arguments)], LD_PRELOAD=blocks), blocks


def differences(arguments):
    """What its linker has is no call of the program's: the blocks that the preload knows nothing of."""
    running, blocks = started(*arguments)
    ended = record(running.ready())
    known, found = known_to(running, blocks), read_before()
    running.end(7)
    wrong = {hex(at): (size, found.get(at)) for at, size in known.items() if found.get(at) != size}
    equal({}, wrong, f"missing, or of another size, of {len(known)}")
    return ended, known, sorted(found[at] for at in found.keys() - known.keys())


@test
def blocks_are_found_all_and_no_others():
    _, known, linkers = differences(["0"])
    check(len(known) > 2000 and 0 in known.values() and max(known.values()) >= 4 << 20, len(known))
    check(len(linkers) < 30, "the linker's own", linkers)
    for arguments in (["5", "5000"], ["2", "100000"]):
        ended, known, more = differences(arguments)
        # What it has of the recorder is larger where there are threads.
        equal(linkers[:-1], more[:-1], "what is the linker's own, whatever the program has")
        equal(len(known) + len(more), read_in_time(ended, known), "blocks that were read")


@test
def their_frees_are_frees():
    running, _ = started("3")
    recording = Running([TIDEMARK, "record", "-p", str(running.ready().pid), "-o", "t.tide", "-f"], LD_PRELOAD="")
    recording.process.stderr.readline()
    running.end(7)
    recording.end(0)
    heap = report()["heap"]
    equal((0, 0, 0), (heap["orphan_frees"], heap["lost_frees"], heap["before_frees"]), "orphans, lost and unknown frees")
    check(heap["before"]["count"] > 10000, heap["before"])


@test
def threads_come_out_of_malloc_first():
    """They allocate all the time; one of them, as each has a signal handler, in the midst of it."""
    for more in ([], ["signals"]):
        running = Running([build("programs/attached.c", "attached"), "3", "1000", *more], LD_PRELOAD="").ready()
        attach_again(running, 3)


@test
def what_makes_no_sense_is_said():
    """In a block, in its group, and in the page that describes that. None of it is looked at by musl then."""
    for what, said in (("block", "a block that contradicts its group"),
                       ("group", "a group of blocks that contradicts itself"),
                       ("page", "a list of its pages that is broken"),
                       ("ring", "a list of its pages that is broken")):
        running, blocks = started("2")
        known = known_to(running.ready(), blocks)
        with open(f"/proc/{running.pid}/mem", "r+b", buffering=0) as memory:
            def word(at, value=None):
                memory.seek(at)
                return struct.unpack("<Q", memory.read(8))[0] if value is None else memory.write(struct.pack("<Q", value))

            # A block that has a mapping alone, which begins with where its description is, in a page that is not the last.
            block, page = next((at, word(at & ~4095) & ~4095) for at, size in known.items()
                               if at % 4096 and size > 140000 and word((word(at & ~4095) & ~4095) + 8))
            at = {"block": block - 8, "group": block & ~4095, "page": page + 16, "ring": page + 8}[what]
            old = word(at)
            word(at, page if what == "ring" else old ^ 0x41 << (40 if what == "block" else 0))
            ended = run([TIDEMARK, "record", "-p", str(running.pid), "-o", "t.tide", "-f", "--duration", "50ms"])
            word(at, old)
        equal(0, ended.code, ended.err)
        check(re.search("is not known: musl's heap has " + said, ended.err), ended.err)
        running.end(7)


main()
