#!/usr/bin/env python3
"""Every call on virtual memory is seen, of libc and of the dynamic linker too."""
# timeout: 120
import re

from libguest import TIDEMARK, check, environment, equal, main, program, record, run, test
from libmemory import Memory, count_strace, map_differences, record_under_strace


@test
def twenty_threads_ask_for_as_much_as_strace_sees():
    code = record_under_strace([program("vm_churn"), "20", "4"], env=environment())
    equal(0, code, "exit code")
    memory = Memory(program("vm_churn"))
    expected, own, begun = count_strace("t.strace", memory.tids, memory.base())
    check(begun, "strace did not see the recorder begin")
    check(own.count["mmap"] > 0, "strace saw no mapping of the recorder's own")
    count = memory.count()
    check(count.count["munmap"] > 300 and count.count["brk"] > 3 and
          count.count["mremap"] > 100 and count.count["mprotect"] > 400, dict(count.count))
    equal([], count.differences(expected), "differences")


@test
def what_the_calls_leave_is_what_the_program_sees_mapped():
    for round_number in range(3):
        code = record_plain([program("vm_churn"), "20", "8"])
        equal(0, code, "exit code")
        equal([], map_differences(Memory(program("vm_churn")), "t.maps"), "differences")


@test
def the_peak_of_resident_memory_is_what_the_kernel_says():
    ended = record([program("vm_peak")])
    highest, after = (int(word) for word in ended.out.split())
    text = run([TIDEMARK, "dump", "t.tide"]).out
    told = [int(line.rsplit("=", 1)[1]) for line in text.splitlines() if " rss-max " in line]
    equal(1, len(told), "processes that tell it")
    check(abs(told[0] - highest) <= max(highest // 100, 1 << 20), told[0], "for", highest)
    shots = snapshots(text)
    # All snapshots together cost a small share of the run; where it is used up, the last is not made.
    whole = int(re.search(r"^end duration=(\d+)", text, re.M)[1])
    allowed = whole // 100 + 10_000_000
    at_end = shots[-1]["reason"] == "exit"
    check(at_end or sum(shot["cost"] for shot in shots) > allowed - whole // 200,
          "no snapshot at the end")
    for shot in shots:
        if shot["reason"] != "growth":  # then the program waits
            equal(shot["mapped"], shot["resident"], "resident by mapping, and by page")
    best = max(shot["mapped"] for shot in shots)
    check(best >= highest - highest // 8, "no snapshot near the peak:", best, "of", highest)
    check(after < highest // 2 and (not at_end or shots[-1]["mapped"] < highest // 2),
          "the end is no valley")
    cost = sum(shot["cost"] for shot in shots)
    check(cost <= allowed + shots[-1]["cost"], cost, "ns of", whole)


@test
def snapshots_lie_between_their_marks():
    record([program("vm_peak")])
    text = run([TIDEMARK, "dump", "t.tide"]).out
    events = sum(1 for line in text.splitlines() if re.match(r"@\d+ t", line))
    for shot in snapshots(text):
        check(0 <= shot["began"] <= shot["ended"] <= events, shot, "of", events)


def snapshots(text):
    """The snapshots of a dump, with what their lines add up to."""
    shots = []
    for line in text.splitlines():
        words = line.split()
        if line.startswith("snapshot "):
            shots.append({"reason": words[2].split("=")[1], "mapped": 0, "resident": 0, "cost": 0})
            shots[-1].update({key: int(value) for key, value in
                              (word.split("=") for word in words[3:])})
        elif line.startswith("mapping "):
            rss = re.search(r" rss=(\d+)", line)
            shots[-1]["mapped"] += int(rss[1]) if rss else 0
        elif line.startswith("pages ") and "present" in words[2]:
            low, high = (int(word, 16) for word in words[1].split("-"))
            shots[-1]["resident"] += high - low
    return shots


def record_plain(command):
    return run([TIDEMARK, "record", "--force", "-o", "t.tide", "--", *command],
               env=environment(MAPS="t.maps")).code


main()
