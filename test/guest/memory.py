#!/usr/bin/env python3
"""Every call on virtual memory is seen, of libc and of the dynamic linker too."""
# timeout: 120
# parallel: yes
import json
import os
import re
import subprocess

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
def of_calls_in_which_the_process_ends_none_or_all_are_recorded():
    for round_number in range(4):
        code = record_under_strace([program("vm_cut")], env=environment())
        equal(0, code, "exit code")
        memory = Memory(program("vm_cut"))
        expected, _, begun = count_strace("t.strace", memory.tids, memory.base())
        check(begun and expected.cut.count.total() > 0, "no call was cut short", dict(expected.count))
        equal([], memory.count().differences(expected), "differences")


@test
def what_the_calls_leave_is_what_the_program_sees_mapped():
    for round_number in range(3):
        code = record_plain([program("vm_churn"), "20", "8"])
        equal(0, code, "exit code")
        equal([], map_differences(Memory(program("vm_churn")), "t.maps"), "differences")


@test
def code_that_is_changed_stays_one_mapping_of_its_library():
    maps = record(["cat", "/proc/self/maps"], "--force").out.splitlines()
    code = [line for line in maps if " r-xp " in line and re.search(r"/(libc|ld-)[^/]*so", line)]
    equal(sorted({line.split()[-1] for line in code}), [line.split()[-1] for line in sorted(
        code, key=lambda line: line.split()[-1])], "libraries, and the mappings of their code")


@test
def a_forked_child_maps_its_segment_over_its_parents():
    script = "import os\nif os.fork() == 0:\n    os._exit(0)\nos.wait()"
    subprocess.run(["strace", "-f", "-o", "t.strace", TIDEMARK, "record", "--force", "-o", "t.tide",
                    "--", "python3", "-S", "-c", script], stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, check=True, env=environment())
    with open("t.strace", encoding="utf-8", errors="replace") as log:
        lines = log.read().splitlines()
    hellos = [line.split()[0] for line in lines if "connect(" in line and "@\"tidemark-" in line]
    child = [line for line in lines if line.split()[0] == hellos[-1]]
    check(len(set(hellos)) == 2 and any("exit_group(" in line for line in child), hellos)
    # Its parent's ring, and what was mapped to see whether there is room for its own.
    check(sum("munmap(" in line for line in child) <= 2, [x for x in child if "munmap(" in x])
    equal([], [line for line in child if "readlink(" in line or "mincore(" in line], "questions")


@test
def all_of_the_recorders_own_that_is_mapped_is_called_so():
    record([program("vm_own")], "--force")
    ranges = json.loads(run([TIDEMARK, "map", "--json", "t.tide"]).out)["ranges"]
    ours = [each for each in ranges if "tidemark" in os.path.basename(each["mapped_file"] or "")]
    check(any("libtidemark" in (each["mapped_file"] or "") for each in ours), ranges)
    equal({"tidemark"}, {each["owner"] for each in ours}, "whose they are")
    equal([], [each for each in ranges if each["owner"] == "tidemark" and each["mapped_file"] and
               each not in ours], "mappings of others")


@test
def the_peak_of_resident_memory_is_what_the_kernel_says():
    # What snapshots may cost is a share of the run's time; on a busy machine they cost more than
    # that, and then there are fewer. So not each run has one near the peak, but most have.
    near = any(check_peak() for _ in range(6))
    check(near, "no snapshot near the peak in six runs")


def check_peak():
    """Whether the recording has a snapshot near the peak, and one at the end. What must be true of
    every recording is checked."""
    ended = record([program("vm_peak")], "--force")
    highest, after = (int(word) for word in ended.out.split())
    text = run([TIDEMARK, "dump", "t.tide"]).out
    told = [int(line.rsplit("=", 1)[1]) for line in text.splitlines() if " rss-max " in line]
    equal(1, len(told), "processes that tell it")
    check(abs(told[0] - highest) <= max(highest // 100, 1 << 20), told[0], "for", highest)
    shots = snapshots(text)
    at_end = bool(shots) and shots[-1]["reason"] == "exit"
    for shot in shots:
        if shot["reason"] != "growth":  # then the program waits
            equal(shot["mapped"], shot["resident"], "resident by mapping, and by page")
    best = max((shot["mapped"] for shot in shots), default=0)
    check(after < highest // 2 and (not at_end or shots[-1]["mapped"] < highest // 2),
          "the end is no valley")
    spent = 0
    for shot in shots:  # each is begun only while there is something left of a hundredth
        if shot["reason"] != "exit":  # which has a little in any case
            check(spent <= shot["at"] // 100, spent, "ns before", shot)
        spent += shot["cost"]
    info = json.loads(run([TIDEMARK, "info", "--json", "t.tide"]).out)["snapshots"]
    missed = sum(int(line.rsplit("=", 1)[1]) for line in text.splitlines()
                 if " snapshots-missed " in line)
    by_pages = sum(1 for shot in shots if shot.get("flags", 0) & 4)
    equal({"count": len(shots), "cost_ns": spent, "by_pages": by_pages, "missed": missed}, info,
          "what info says of snapshots")
    return best >= highest - highest // 8 and at_end


@test
def every_process_has_a_snapshot_at_its_end_children_too():
    own = program("vm_own")
    command = ["/bin/sh", "-c", f"{own} >/dev/null; {own} > /dev/null; ({own} >/dev/null); exit 3"]
    record(command, "--rss-exact", code=3)
    text = run([TIDEMARK, "dump", "t.tide"]).out
    ended = re.findall(r" end (p\d+) exit=", text)
    check(len(ended) >= 4, ended)
    equal(set(ended), set(re.findall(r"^snapshot (p\d+) reason=exit", text, re.M)), "with one")
    for pid in re.findall(r"^process p\d+ pid=(\d+)", text, re.M):
        answer = json.loads(run([TIDEMARK, "reconcile", "--json", "--at", "exit", "--process", pid,
                                 "t.tide"]).out)
        check(answer["smaps_bytes"] > 0 and answer["smaps_read"], answer)


@test
def a_run_too_short_for_smaps_is_looked_at_page_by_page():
    record([program("vm_own")])
    shots = snapshots(run([TIDEMARK, "dump", "t.tide"]).out)
    if not shots or not shots[-1].get("flags", 0) & 4:
        return  # so busy a machine that it took too long, or was not that short; an older kernel
    answer = json.loads(run([TIDEMARK, "reconcile", "--json", "--at", "exit", "t.tide"]).out)
    equal((False, None), (answer["smaps_read"], answer["pss_bytes"]), "of smaps")
    equal(answer["smaps_bytes"], sum(line["bytes"] for line in answer["lines"]), "sum")
    check("smaps was not read" in run([TIDEMARK, "reconcile", "--at", "exit", "t.tide"]).out, "why")


@test
def shares_and_faults_are_sampled_beside_resident_memory():
    record([program("vm_peak")])
    process = json.loads(run([TIDEMARK, "info", "--json", "t.tide"]).out)["processes"][-1]
    check(process["rss_max_bytes"] > 90 << 20, process)
    check(8 << 20 < process["pss_max_bytes"] <= process["rss_max_bytes"], process)
    check(process["minor_faults"] > 1000, process)
    text = run([TIDEMARK, "dump", "t.tide"]).out
    for word in ("rss", "pss", "minor-faults"):
        check(f" {word} p0 value=" in text, word)
    shares = re.findall(r" pss p0 value=(\d+)( \"carried\")?$", text, re.M)
    check(not re.search(r" pss p0(?! value=)", text), "no share is 0, not even while it ends")
    counted = sum(1 for _, carried in shares if not carried)
    notes = json.loads(run([TIDEMARK, "info", "--json", "t.tide"]).out)["notes"]
    equal((len(shares), counted), (notes["pss"], notes["pss_counted"]), "shares, and those counted")
    check(counted > 0 and not shares[0][1], "the first is counted:", shares)
    check(all(int(value) <= process["rss_max_bytes"] + (1 << 20) for value, _ in shares), shares)
    out = run([TIDEMARK, "plot", "--help"])
    if out.code == 0 and run([TIDEMARK, "plot", "rss", "-o", "t.svg", "t.tide"]).code == 0:
        with open("t.svg", encoding="utf-8") as file:
            check("PSS" in file.read(), "no curve for the share")


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
