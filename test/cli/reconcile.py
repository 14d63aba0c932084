#!/usr/bin/env python3
# parallel: yes
"""`tidemark reconcile`: each resident byte in one line, counted a second time here byte by byte."""
import json
import random

from libanswer import answer, assemble, run
from libtests import check, equal, main, test

PAGE = 4096


def reconcile(path, *words):
    return answer("reconcile", path, *words)


def lines_of(answer):
    return {line["line"]: line["bytes"] for line in answer["lines"]}


HEAP, OWN, STACK, LIBRARY, OURS = 0x500000, 0x700000, 0x800000, 0x900000, 0xa00000


def build(name, seed, step, unknown_pages=0, more="", mapped_more=0):
    """A heap of blocks `step(size)` apart; some pages of everything are resident. Returns the
    bytes of each line, byte by byte."""
    dice = random.Random(seed)
    lines = ["process p pid=9", "thread t p tid=9 \"nine\"", 'file stack "[stack]"',
             'file lib "/lib/libx.so"', "stack a make_a < main", "stack b make_b < main",
             "@1 t mapped 0x900000 0x10000 prot=rx file=lib origin=loader",
             "@1 t mapped 0x800000 0x8000 prot=rw file=stack origin=kernel",
             "@1 t mapped 0xa00000 0x4000 prot=rw origin=recorder",
             "@2 t brk a 0x500000 -> 0x540000 origin=allocator",
             "@3 t mmap b 0x700000 0x20000 prot=rw flags=private|anonymous"]
    owner = {}  # byte of the heap -> "live" or "rounding"
    live, at, stacks = 0, HEAP + 16, {}
    while at < HEAP + 0x30000:
        size, stack = dice.choice([1, 24, 25, 100, 1000, 5000]), dice.choice("ab")
        if dice.random() < 0.7:
            lines.append(f"@10 t malloc {stack} {at} {size}")
            first = at - 8 if step is glibc else at
            for byte in range(first, first + step(size)):
                owner[byte] = "live" if at <= byte < at + size else "rounding"
                stacks[byte] = stack
            live += size
        at += step(size)
    resident = sorted(page for start, count in ((HEAP, 64), (OWN, 32), (STACK, 8), (LIBRARY, 16),
                                                (OURS, 4))
                      for page in range(start // PAGE, start // PAGE + count) if dice.random() < 0.6)
    resident += range(0xb00, 0xb00 + unknown_pages)
    lines += ["@20 t malloc a 0x720000 5", "snapshot p reason=release at=15 rss=1000000 rss-max=1100000" + more]
    lines.append(f"mapping 0x500000-0xb10000 prot=rw rss={(len(resident) + mapped_more) * PAGE}")
    lines += [f"pages {hex(page * PAGE)}-{hex((page + 1) * PAGE)}" for page in resident]
    lines += ["@30 t free 0x720000", "end"]
    # The snapshot was begun and done before the malloc of @20.
    text = "\n".join(lines).replace("at=15 ", "at=15 began=%d ended=%d " % ((len(
        [line for line in lines if line.startswith("@")]) - 2,) * 2))
    wanted = dict.fromkeys(("live", "rounding", "free", "stacks", "files", "program", "libc",
                            "kernel", "tidemark", "unexplained"), 0)
    by_stack = {"a": 0, "b": 0}
    for page in resident:
        address = page * PAGE
        if HEAP <= address < HEAP + 0x40000:
            for byte in range(address, address + PAGE):
                wanted[owner.get(byte, "free")] += 1
                if owner.get(byte) == "live":
                    by_stack[stacks[byte]] += 1
        else:
            wanted["program" if address < STACK else "stacks" if address < LIBRARY else
                   "files" if address < OURS else "tidemark" if address < 0xb00000 else
                   "unexplained"] += PAGE
    return assemble(name, text), wanted, by_stack, live


def glibc(size):
    return max(32, (size + 8 + 15) // 16 * 16)


def classes(size):
    """Another allocator's: powers of two from 8 on, no header."""
    return max(8, 1 << (size - 1).bit_length())


@test
def each_byte_is_in_the_line_that_a_second_count_says():
    for seed in range(3):
        path, wanted, by_stack, live = build(f"glibc{seed}", seed, glibc)
        answer = reconcile(path)
        assert lines_of(answer) == wanted, (lines_of(answer), wanted)
        assert answer["allocator"] == "glibc" and answer["difference"] == 0
        assert answer["smaps_read"] is True and answer["pss_bytes"] == 0
        assert sum(wanted.values()) == answer["smaps_bytes"]
        rows = answer["lines"][0]["rows"]
        assert {row["stack"][0]["function"][-1]: row["bytes"] for row in rows} == by_stack
        assert answer["untouched"]["bytes"] == live - wanted["live"]
        assert answer["vmhwm_bytes"] == 1100000 and answer["statm_bytes"] == 1000000


@test
def a_moment_is_that_of_the_last_snapshot_before_it():
    path, wanted, _, _ = build("moment", 1, glibc)
    answer = reconcile(path, "--at", "18ns")
    assert lines_of(answer) == wanted and answer["at_ns"] == 15, answer
    assert not any("before that moment" in line for line in answer["warnings"]), answer["warnings"]
    assert "so early" in run("reconcile", path, "--at", "14ns", check=2).stderr
    far = reconcile(path, "--at", "29ns")
    assert any("before that moment" in line for line in far["warnings"]), far["warnings"]


@test
def without_smaps_the_sum_is_that_of_the_pages_and_it_is_said():
    path, wanted, _, _ = build("pages", 0, glibc, more=" flags=4")
    answer = reconcile(path)
    assert lines_of(answer) == wanted
    assert answer["smaps_read"] is False and answer["pss_bytes"] is None
    assert sum(wanted.values()) == answer["smaps_bytes"]
    text = run("reconcile", path).stdout
    assert "in all (by pages)" in text and "smaps was not read" in text and "PSS" not in text, text


@test
def readings_of_a_program_that_went_on_meanwhile_are_marked():
    for pages, marked in ((0, False), (1, True), (-1, True)):
        path, wanted, _, _ = build(f"went_on{pages}", 0, glibc, mapped_more=pages)
        answer = reconcile(path)
        assert lines_of(answer) == wanted and answer["difference"] == pages * PAGE, answer
        said = [line for line in answer["warnings"] if "differ by 4.0 KiB" in line and "went on" in line]
        assert bool(said) == marked, answer["warnings"]
        text = " ".join(run("reconcile", path).stdout.split())
        assert marked == ("went on while this snapshot was read" in text), text


@test
def another_allocators_rounding_is_told_from_its_blocks():
    path, wanted, _, _ = build("other", 5, classes)
    answer = reconcile(path)
    assert answer["allocator"] == "other"
    assert lines_of(answer) == wanted, (lines_of(answer), wanted)
    assert "the allocator is another" in run("reconcile", path).stdout.replace("\n", " ").replace(
        "           ", "")


@test
def pages_that_no_mapping_explains_are_told():
    path, wanted, _, _ = build("unknown", 7, glibc, unknown_pages=5)
    assert wanted["unexplained"] == 5 * PAGE
    assert lines_of(reconcile(path)) == wanted
    text = run("reconcile", path).stdout
    for part in ("RESIDENT MEMORY", "live heap blocks", "make_a", "[stack]", "/lib/libx.so",
                 "unexplained", "in all (smaps)", "VmHWM", "LIVE, NEVER TOUCHED"):
        assert part in text, part


@test
def a_forked_child_has_its_parents_blocks():
    path = assemble("forked", "\n".join([
        "process p pid=9", "process c parent=p pid=10 start=fork", "thread t p tid=9", "thread u c tid=10",
        "stack a here < main", "@1 start p", "@2 t brk a 0x500000 -> 0x510000 origin=allocator",
        "@3 t malloc a 0x500010 8000", "@4 start c", "@5 u malloc a 0x502010 4000",
        "snapshot c reason=exit at=5", "mapping 0x500000-0x510000 prot=rw rss=16384",
        "pages 0x500000-0x504000", "@6 end c exit=0", "@7 end p exit=0", "end"]) + "\n")
    answer = reconcile(path, "--at", "exit")
    assert answer["process"] == 10 and lines_of(answer)["live"] == 12000
    assert sum(lines_of(answer).values()) == 16384 and lines_of(answer)["unexplained"] == 0


@test
def at_the_peak_blocks_are_those_that_the_memory_was_for():
    """free comes first, and the pages go after it; so the snapshot before that finds little alive."""
    top = ["process p pid=9", "thread t p tid=9", "stack a make_a < main", "stack b make_b < main",
           "@1 start p", "@2 t brk a 0x500000 -> 0x540000 origin=allocator",
           "@3 t malloc b 0x500010 3000", "@4 t malloc a 0x501010 100000",
           "@5 t malloc a 0x51a010 50000", "@6 t free 0x501010", "@7 t free 0x51a010"]
    shot = ["snapshot p reason=release at=7 rss=262144 rss-max=262144",
            "mapping 0x500000-0x540000 prot=rw rss=262144", "pages 0x500000-0x540000"]
    tail = ["@8 t brk a 0x540000 -> 0x502000 origin=allocator", "@9 end p exit=0", "end"]
    answer = reconcile(assemble("plateau", "\n".join([*top, *shot, *tail]) + "\n"))
    lines, parts = lines_of(answer), answer["free_parts"]
    assert lines["live"] == 153000 and answer["blocks_at_ns"] == 5, answer
    assert sum(lines.values()) == 262144 and sum(parts.values()) == lines["free"], answer
    assert parts["top"] == 0x540000 - 0x526368, parts
    assert parts["main_gaps"] == lines["free"] - parts["top"], parts
    text = run("reconcile", "plateau.tide").stdout
    for part in ("when 149.4 KiB were alive", "at the snapshot 2.9 KiB", "after the main heap's"):
        assert part in text, (part, text)
    # Memory that was never given back was for them as well, unless the end is asked for.
    shot[0] = shot[0].replace("release", "exit")
    path = assemble("kept", "\n".join([*top, *shot, *tail[1:]]) + "\n")
    assert lines_of(reconcile(path))["live"] == 153000
    assert lines_of(reconcile(path, "--at", "exit"))["live"] == 3000
    # Where memory was given back in between, what was there before has nothing to do with it.
    given = [*top, "@7 t munmap a 0x900000 0x20000", *shot, *tail]
    answer = reconcile(assemble("given", "\n".join(given) + "\n"))
    assert lines_of(answer)["live"] == 3000 and answer["blocks_at_ns"] == 7, answer
    # Advice gives back too, and says by whom.
    given = [*top, "@7 t madvise b 0x520000 0x10000 flags=dontneed",
             "@7 t madvise b 0x520000 0x10000 flags=willneed",
             "@7 t madvise b 0x1 0x10000 flags=dontneed error=22", *shot, *tail]
    answer = reconcile(assemble("advised", "\n".join(given) + "\n"))
    assert lines_of(answer)["live"] == 3000, answer
    assert (answer["purges"]["count"], answer["purges"]["bytes"]) == (1, 0x10000), answer
    assert answer["purges"]["rows"][0]["stack"][0]["function"] == "make_b", answer
    # A block that was moved is one block.
    moved = [*top[:-1], "@7 t realloc-free 0x51a010", "@7 t realloc-undo a 0x51a010 90000", *shot,
             *tail]
    answer = reconcile(assemble("moved", "\n".join(moved) + "\n"))
    assert lines_of(answer)["live"] == 153000 and answer["blocks_at_ns"] == 5, answer


@test
def what_lies_between_the_marks_and_above_the_snapshot_is_told():
    answer = reconcile(assemble("between", "\n".join([
        "process p pid=9", "process q pid=10", "thread t p tid=9", "thread u q tid=10",
        "stack a make_a < main", "@1 start p", "@1 t brk a 0x500000 -> 0x540000 origin=allocator",
        "@2 t malloc a 0x500010 3000", "@3 t malloc a 0x501010 500", "@3 u malloc a 0x501010 7",
        "@4 t realloc a 0x501010 -> 0x502010 600", "@5 t free 0x502010", "@5 t free 0x500010",
        "@6 t mmap a 0x900000 0x2000 prot=rw flags=private|anonymous",
        "@6 t mmap a 0x0 0x2000 prot=rw flags=private|anonymous error=12", "@7 t malloc a 0x500010 1",
        "snapshot p reason=release at=6 began=2 ended=9 rss=262144 rss-max=262144",
        "mapping 0x500000-0x540000 prot=rw rss=262144", "pages 0x500000-0x540000",
        "@8 rss-max p value=1048576", "@9 end p exit=0", "end"]) + "\n"))
    assert answer["events_between"] == 7 and answer["between"] == {
        "allocations": 2, "allocated_bytes": 1100, "frees": 3, "calls": 1,
        "calls_bytes": 0x2000}, answer["between"]
    assert (answer["vmhwm_bytes"], answer["rss_max_bytes"]) == (262144, 1048576), answer
    text = run("reconcile", "between.tide").stdout
    for part in ("7 events are between", "2 allocations (1.1 KiB)", "3 frees and 1 calls",
                 "1.0 MiB  768.0 KiB (75.00 %) above: record --rss-exact"):
        assert part in text, (part, text)


@test
def of_several_processes_it_is_said_which_is_shown_and_who_has_no_snapshot():
    path = assemble("several", "\n".join([
        "process p pid=9", "process q pid=10", "process r pid=11", "thread t p tid=9", "@1 start p",
        "@1 t brk 0x500000 -> 0x540000 origin=allocator",
        "snapshot p reason=release at=6 began=2 ended=2 rss=262144 rss-max=262144",
        "mapping 0x500000-0x540000 prot=rw rss=262144", "pages 0x500000-0x540000",
        "@8 rss-max q value=1048576", "@9 end p exit=0", "end"]) + "\n")
    for words, part in (((), "one process of 3 is shown: its snapshot has the most resident memory (--process "
                             "chooses another); 2 of them have no snapshot, such as 10, which was resident "
                             "with 1.0 MiB at most"),
                        (("--process", "9"), None)):
        said = [line for line in reconcile(path, *words)["warnings"] if "is shown" in line]
        assert said == ([part] if part else []), (words, said)


@test
def what_was_mapped_at_a_moment_between_the_marks_alone_is_explained():
    """The process goes on while it is read, as where a list grows by mremap: before and after that
    moment other addresses are mapped."""
    anonymous = "prot=rw flags=private|anonymous"
    calls = [f"@5 t mmap a {at:#x} 0x10000 {anonymous}" if call else f"@5 t munmap {at:#x} 0x10000"
             for at, call in ((0xa00000, 1), (0x900000, 0), (0xa00000, 0), (0xb00000, 1))]
    path = assemble("moving", "\n".join([
        "process p pid=9", "process q pid=10", "thread t p tid=9", "thread u q tid=10", "stack a make_a < main", "@1 start p",
        f"@2 t mmap a 0x900000 0x10000 {anonymous}", "@3 t malloc a 0x500010 1", *calls[:2],
        f"@5 u mmap a 0xa00000 0x10000 {anonymous}", *calls[2:], "@6 t malloc a 0x600010 1",
        "snapshot p reason=growth at=6 began=2 ended=8 rss=131072 rss-max=131072",
        "mapping 0x900000-0x910000 prot=rw rss=65536", "mapping 0xa00000-0xa10000 prot=rw rss=65536",
        "pages 0x900000-0x910000", "pages 0xa00000-0xa10000", "@9 end p exit=0", "end"]) + "\n")
    for _ in "trace", "index":
        lines = lines_of(reconcile(path))
        assert (lines["program"], lines["unexplained"]) == (131072, 0), lines
        run("window", path)


@test
def another_allocators_mappings_are_not_large_blocks():
    """A block at the very beginning of a mapping is not glibc's: then no mapping of malloc's is."""
    path = assemble("foreign", "\n".join([
        "process p pid=9", "thread t p tid=9", "stack a make_a < main", "@1 start p",
        "@2 t mmap a 0x700000 0x10000 prot=rw flags=private|anonymous origin=allocator",
        "@3 t mmap a 0x800000 0x10000 prot=rw flags=private|anonymous origin=allocator",
        "@4 t malloc a 0x700000 64", "@5 t malloc a 0x700040 64",
        "@6 t mmap a 0x900000 0x10000 prot=rw flags=private|anonymous origin=allocator",
        "@7 end p exit=0", "end"]) + "\n")
    rows = json.loads(run("active", path, "--json", "--layer", "vm").stdout)["rows"]
    assert {row["owner"] for row in rows} == {"allocator"}, rows


@test
def a_call_that_was_being_made_at_the_snapshot_was_seen():
    """Another thread's mmap is done, and its event comes after; it may be next to another's."""
    head = ("process p pid=9\nthread t p tid=9\nthread u p tid=10\n@1 start p\n"
            "@2 t mmap 0x1000000 0x4000 prot=rw flags=private|anonymous\n"
            "snapshot p reason=growth at=4\nmapping 0x1000000-0x1004000 prot=rw rss=4096\n"
            "mapping 0x2000000-0x2009000 prot=rw rss=4096\n")
    late = "@{} {} mmap {:#x} {:#x} prot=rw flags=private|anonymous\n"
    tail = "@900000000 end p exit=0\nend\n"
    both = late.format(5, "u", 0x2003000, 0x3000) + late.format(6, "t", 0x2000000, 0x3000)
    for name, text, unseen in (("none", "", "36.0 KiB"), ("both", both, "12.0 KiB"), (
            "all", both + late.format(7, "u", 0x2006000, 0x3000), None), (
            "failed", "@5 u mmap 0x0 0x9000 prot=rw flags=private|anonymous error=12\n", "36.0 KiB"), (
            "long after", late.format(800000000, "u", 0x2000000, 0x9000), "36.0 KiB")):
        path = assemble(name.replace(" ", "-"), head + text + tail)
        for words in (["report"], ["info"], ["window", "--layer", "vm"]):
            done = run(words[0], path, *words[1:], check=None)
            out = " ".join((done.stdout + done.stderr).split())
            if unseen:
                assert f"recorded 0 B should be mapped that is not, and {unseen} is mapped" in out, \
                    (name, words, out)
            else:
                assert "should be mapped" not in out, (name, words, out)


@test
def what_was_being_given_back_at_the_snapshot_was_seen():
    """Another thread's munmap is not done, and its event came before; long after, it is."""
    for name, at, unseen in (("just before", 3, None), ("long before", 300000000, "16.0 KiB")):
        path = assemble(name.replace(" ", "-"),
                        "process p pid=9\nthread t p tid=9\nthread u p tid=10\n@1 start p\n"
                        "@2 t mmap 0x1000000 0x4000 prot=rw flags=private|anonymous\n"
                        "@2 t mmap 0x2000000 0x4000 prot=rw flags=private|anonymous\n"
                        f"@3 u munmap 0x2000000 0x4000\nsnapshot p reason=growth at={at + 1}\n"
                        "mapping 0x1000000-0x1004000 prot=rw rss=4096\n"
                        "mapping 0x2000000-0x2004000 prot=rw rss=4096\n@900000000 end p exit=0\nend\n")
        for words in (["report"], ["info"], ["window", "--layer", "vm"]):
            done = run(words[0], path, *words[1:], check=None)
            out = " ".join((done.stdout + done.stderr).split())
            if unseen:
                assert f"recorded 0 B should be mapped that is not, and {unseen} is mapped" in out, \
                    (name, words, out)
            else:
                assert "should be mapped" not in out, (name, words, out)


@test
def calls_that_nobody_saw_are_said_where_calls_were_seen_at_all():
    """The kernel's list and the calls, of the last snapshot; a process that has done nothing yet
    has not said what is mapped."""
    head = "process p pid=9\nthread t p tid=9\n@1 start p\n"
    seen = "@2 t mmap 0x1000000 0x4000 prot=rw flags=private|anonymous\n"
    tail = ("@3 t malloc 0x10 5\nsnapshot p reason=exit at=4\n"
            "mapping 0x1000000-0x1003000 prot=rw rss=4096\n"
            "mapping 0x2000000-0x2002000 prot=rw rss=4096\n@5 end p exit=0\nend\n")
    for name, text, said in (("some", head + seen + tail, True), ("nothing", head + tail, False)):
        path = assemble(name, text)
        for words in (["report"], ["map"], ["info"], ["window", "--layer", "vm"]):
            done = run(words[0], path, *words[1:], check=None)
            out = " ".join((done.stdout + done.stderr).split())
            assert ("recorded 4.0 KiB should be mapped that is not, and 8.0 KiB is mapped" in out) == said, \
                (words, out)


@test
def what_cannot_be_answered_is_refused_in_one_line():
    path, _, _, _ = build("plain", 1, glibc)
    none = assemble("none", "process p pid=9\nthread t p tid=9\n@1 t malloc 0x10 5\nend\n")
    blind = assemble("blind", "process p pid=9\nthread t p tid=9\n@1 t malloc 0x10 5\n"
                     "snapshot p reason=exit flags=2\nmapping 0x1000-0x2000 rss=4096\nend\n")
    short = assemble("short", "process p pid=9\nthread t p tid=9\n@1 t malloc 0x10 5\n"
                     "@2 snapshots-missed p value=3\nend\n")
    for words, part in (([none], "no snapshot of resident memory: one is taken when memory has grown"),
                        ([short], "3 were due, and there was no time (record --rss-exact"),
                        ([path, "--at", "exit"], "at the end of a process"),
                        ([path, "--at", "0"], "so early"),
                        ([path, "--at", "soon"], "--at"),
                        ([blind, "--at", "exit"], "does not say which pages")):
        done = run("reconcile", *words, check=2)
        assert part in done.stderr and done.stderr.count("\n") == 1 and not done.stdout, done


@test
def what_the_main_threads_stack_has_grown_by_is_a_stack_s():
    """It grows without a call, and no farther than to a mapping that is known."""
    for own, wanted in ((0x7d0000, (40, 0, 0)), (0x7f0000, (20, 4, 16))):
        path = assemble(f"grown{own}", "\n".join([
            "process p pid=7", "thread t p tid=7", 'file stack "[stack]"', "stack a make_a < main",
            f"@1 t mmap a {hex(own)} 0x4000 prot=rw flags=private|anonymous",
            "@1 t mapped 0x800000 0x8000 prot=rw flags=private|anonymous|growsdown file=stack origin=kernel",
            "snapshot p reason=exit at=15 began=2 ended=2 rss=163840 rss-max=163840",
            "mapping 0x7e0000-0x808000 prot=rw file=stack rss=163840", "pages 0x7e0000-0x808000", "end"]))
        lines = lines_of(reconcile(path))
        equal(wanted, tuple(lines[line] // PAGE for line in ("stacks", "program", "unexplained")))


@test
def a_list_of_mappings_that_was_not_there_yet_is_named():
    """Of an attached process the list may come with its first call, and the snapshot before that."""
    for mapped in (False, True):
        path = assemble(f"unlisted{mapped}", "\n".join([
            "process p pid=7 start=attach", "thread t p tid=7", 'file lib "/lib/libx.so"', "@1 t before 0x1000 10",
            *(["@2 t mapped 0x900000 0x10000 prot=rx file=lib origin=loader"] if mapped else []),
            f"snapshot p reason=growth at=15 began={1 + mapped} ended={1 + mapped} rss=16384 rss-max=16384",
            "mapping 0x900000-0x910000 prot=rx file=lib rss=16384", "pages 0x900000-0x904000", "end"]))
        answer = reconcile(path)
        check(any("had made no call by then" in one for one in answer["warnings"]) != mapped, answer["warnings"])
        equal(0 if mapped else 16384, lines_of(answer)["unexplained"])


main()
