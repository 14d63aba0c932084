#!/usr/bin/env python3
"""Every process that descends from the program is in the one trace, with exact counts."""
# timeout: 120
# parallel: yes
import collections
import glob
import os
import re
import shutil
import signal

from libguest import (TIDEMARK, Skip, Trace, check, check_whole, children_of, collector_of, equal, finished,
                      main, need_root, program, python, record, report, run, started, test, wait_for)

FIRST, FORKED, IMAGE = 7100, 7101, 7102


def recorded(how, *options, first=20, forked=0, images=0, inherited=0):
    ended = record([program("descends"), how], *options)
    trace = Trace()
    check_whole(trace)
    equal(first, len(trace.of_size(FIRST)), "blocks of the first process")
    equal(forked, len(trace.of_size(FORKED)), "blocks of forked children")
    equal(images, len(trace.of_size(IMAGE)), "blocks of fresh images")
    inherited_frees(trace, inherited)
    said = re.search(r", ([\d,]+) frees?, ", ended.err)
    check(said, f"the summary does not count frees: {ended.err}")
    equal(report()["heap"]["frees"], int(said[1].replace(",", "")), "frees in the summary")
    return ended, trace


def inherited_frees(trace, expected):
    """Frees by a forked child of blocks that its parent had."""
    live, found = {}, 0
    for event in trace.events:
        process = trace.threads[event.thread]
        if event.kind == "malloc" and event.size == FIRST:
            live.setdefault(event.address, process)
        elif event.kind == "free" and live.get(event.address, process) != process:
            found += 1
    equal(expected, found, "frees of inherited blocks")
    equal(0, report()["heap"]["live_at_exit"]["bytes"] - live_bytes(trace), "live at exit")


def live_bytes(trace):
    """What live_at_exit must say: every process's own blocks that it did not free itself."""
    live = {}
    for event in trace.events:
        process = trace.threads[event.thread]
        if event.kind in ("free", "realloc-free"):
            live.pop((process, event.address), None)
        elif event.kind == "realloc":
            live.pop((process, event.old), None)
        if event.kind in ("malloc", "calloc", "aligned", "realloc", "realloc-alloc"):
            live[process, event.address] = event.size
    return sum(live.values())


def images_of(trace, name="descends"):
    return [fields for fields in trace.processes.values() if fields["exe"].endswith("/" + name)]


@test
def fork_is_followed():
    _, trace = recorded("fork", forked=20, inherited=5)
    equal(2, len(trace.processes), "processes")
    child = trace.processes[1]
    equal(("fork", "p0"), (child["start"], child["parent"]), "the child's start and parent")


@test
def a_fork_that_fails_is_not_waited_for():
    _, trace = recorded("fork_fails", forked=20, inherited=5)
    equal(2, len(trace.processes), "processes")
    check("no exact place" not in str(trace.notes), trace.notes)


@test
def a_child_that_was_killed_before_it_ran_is_not_waited_for():
    _, trace = recorded("fork_killed")
    notes = str(trace.notes)
    check("no exact place" not in notes, notes)
    ended = re.search(r"(\d+) forked child(?:ren)? ended before", notes)
    equal(21, len(trace.processes) + int(ended[1] if ended else 0), "processes")


@test
def fork_and_exec_are_followed():
    _, trace = recorded("fork_exec", forked=20, images=30, inherited=5)
    equal(3, len(trace.processes), "processes")
    equal(trace.processes[1]["pid"], trace.processes[2]["pid"], "the pid across exec")
    equal("1", trace.processes[2]["generation"], "the generation after exec")
    exits = [row["exit"] for row in report()["trace"]["processes"]]
    equal(["exit 0", "exec", "exit 0"], exits, "how each ended")


@test
def runs_of_one_program_have_their_stacks_in_common():
    def recorded_runs(count):
        record(["sh", "-c", " && ".join([f"{program('descends')} image"] * count)], "-f")
        trace = Trace()
        check_whole(trace)
        found = collections.defaultdict(set)
        for event in trace.events:
            found[trace.threads[event.thread]].add(event.stack)
        return trace, [found[number] for number, fields in trace.processes.items()
                       if fields["exe"].endswith("/descends")]

    _, [alone] = recorded_runs(1)
    trace, runs = recorded_runs(8)
    equal((8, [len(alone)] * 8), (len(runs), [len(each) for each in runs]), "stacks of each run")
    equal([runs[0]] * 8, runs, "the same stacks in each")
    # Frames are of modules of the first run, each of which has its own all the same.
    of_runs = collections.Counter(path for path in trace.modules.values() if path.endswith("/descends"))
    equal([8], list(of_runs.values()), "modules of the program")
    # What is said of each is what is said of the first.
    rows = [run([TIDEMARK, "window", "t.tide", "--by", "stack", "-n", "0", "--process", str(fields["pid"])])
            for fields in images_of(trace)]
    equal([(0, rows[0].out)] * 8, [(each.code, each.out) for each in rows], "windows of each run")
    check("descends" in rows[0].out and "keep" in rows[0].out, rows[0].out)


@test
def exec_of_itself_is_followed():
    _, trace = recorded("exec_self", first=10, images=30)
    equal(2, len(trace.processes), "processes")
    equal("1", trace.processes[1]["generation"], "the generation after exec")
    equal("image", trace.processes[1]["args"][1], "the arguments of the second image")


@test
def an_exec_that_fails_changes_nothing():
    _, trace = recorded("exec_fails")
    equal(1, len(trace.processes), "processes")


@test
def an_environment_that_cannot_be_read_is_the_kernels_matter():
    _, trace = recorded("exec_unreadable")
    equal(1, len(trace.processes), "processes")


@test
def system_is_followed():
    _, trace = recorded("system", images=30)
    check(len(trace.processes) >= 2, trace.processes)


@test
def popen_is_followed():
    recorded("popen", images=30)


@test
def posix_spawn_is_followed():
    _, trace = recorded("spawn", images=30)
    equal(2, len(images_of(trace)), "images of the program")


@test
def a_spawned_child_that_starts_after_its_parent_has_ended_is_followed():
    _, trace = recorded("leave", images=30)
    equal(2, len(trace.processes), "processes")


@test
def vfork_is_followed():
    _, trace = recorded("vfork", images=30)
    equal(2, len(images_of(trace)), "images of the program")


@test
def a_vfork_child_that_allocates_is_survived():
    _, trace = recorded("vfork_allocates", forked=len(Trace_of_vfork()), images=30)
    equal(2, len(images_of(trace)), "images of the program")


def Trace_of_vfork():
    """The block is of its parent's memory: it is recorded, or left out together with its free."""
    record([program("descends"), "vfork_allocates"], trace="first.tide")
    trace = Trace("first.tide")
    equal(len(trace.of_size(FORKED)), trace.frees_of_size(FORKED), "pairs in the vfork child")
    return trace.of_size(FORKED)


@test
def a_vfork_child_that_exits_is_survived():
    recorded("vfork_exits")


@test
def a_child_that_maps_in_its_parents_memory_and_thread_disturbs_nothing():
    ended, _ = recorded("beside", forked=20)
    told = re.findall(r" mmap .* 28672 ", run([TIDEMARK, "dump", "t.tide"]).out)
    equal([], told, "calls of the child, as if they were its parent's")
    said = "40,000 calls were made on memory that are not recorded"
    check(said in ended.err, f"record does not say so: {ended.err}")
    for command in ("info", "report"):
        answer = run([TIDEMARK, command, "t.tide"])
        check(said in " ".join((answer.out + answer.err).split()), f"{command}: {answer.out}")


@test
def a_child_that_executes_beside_its_parent_disturbs_nothing():
    """Both have the same variables of the thread: calls were missed for as long as the child wrote
    its notes, or for good."""
    ended, _ = recorded("beside_exec", forked=20, images=300)
    equal([int(ended.out)] * 2,
          [len(re.findall(rf" {call} .*\b28672\b", run([TIDEMARK, "dump", "t.tide"]).out))
           for call in ("mmap", "munmap")], "calls of the parent")


@test
def a_shell_is_followed():
    _, trace = recorded("sh", images=30)
    check(any("sh" in fields["exe"] for fields in trace.processes.values()), "the shell is there")


@test
def env_is_followed():
    recorded("env", images=30)


@test
def env_i_is_followed():
    recorded("env_empty", images=30)


@test
def an_exec_with_no_environment_is_followed():
    recorded("no_environment", images=30)


@test
def a_child_that_outlives_its_parent_is_recorded_to_its_end():
    _, trace = recorded("orphan", forked=20, inherited=5)
    exits = [row["exit"] for row in report()["trace"]["processes"]]
    equal(["exit 0", "exit 0"], exits, "how each ended")


@test
def children_of_children_are_followed():
    _, trace = recorded("chain", forked=40, images=30, inherited=5)
    parents = [fields.get("parent") for fields in trace.processes.values()]
    equal([None, "p0", "p1", "p1"], parents, "parents; an exec changes nobody's parent")


@test
def two_thousand_short_children_are_recorded():
    _, trace = recorded("many", forked=2000)
    equal(2001, len(trace.processes), "processes")
    forks = [fields for fields in trace.processes.values() if fields.get("start") == "fork"]
    equal(2000, len(forks), "forked children")


@test
def children_that_end_before_the_collector_hears_of_them_are_recorded():
    """It stands still until they are gone: nobody waits for it, and nothing of them is missing."""
    release = [int(part) for part in os.uname().release.split("-")[0].split(".")[:2]]
    if release < [6, 16]:
        raise Skip("needs Linux 6.16: how a process ended is not kept before")
    limit = "ulimit -d 4000000 && exec"
    recorder = started(["sh", "-c", f"{limit} {program('descends')} unheard"])
    collector = collector_of(recorder.pid)
    os.kill(collector, signal.SIGSTOP)
    try:
        open("go", "w", encoding="ascii").close()
        wait_for(lambda: os.path.exists("done"), "the children")
    finally:
        os.kill(collector, signal.SIGCONT)
    code, _, err = finished(recorder)
    equal(0, code, err)
    trace = Trace()
    check_whole(trace)
    equal((20, 9, 30), tuple(len(trace.of_size(size)) for size in (FIRST, FORKED, IMAGE)), "blocks")
    rows = report()["trace"]["processes"]
    exits = sorted(row["exit"] for row in rows[2:])
    equal(["exec", "exit 0", "exit 0", "exit 1", "exit 2", "exit 3", "exit 4", "exit 5", "exit 55",
           "signal SIGKILL"], exits, "how they ended")
    named = [fields for fields in trace.processes.values() if fields.get("start") == "fork"]
    equal([[program("descends"), "unheard"]] * 9, [fields["args"] for fields in named], "arguments")
    limits = [line for kind, _, line in trace.notes if kind == "data-limit"]
    equal(len(rows) - 1, sum(str(4000000 * 1024) in line for line in limits), "limits of data")


def name_of(pid):
    with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
        return file.read().strip()


@test
def arguments_of_a_child_that_became_another_program_are_its_own():
    """They are written over to their end, so that the kernel is asked how they go on."""
    recorder = started([*python()[0], "-c", """
import ctypes, os, time
start, end = (int(field) for field in open("/proc/self/stat").read().rsplit(")")[1].split()[45:47])
ctypes.memset(start, ord("x"), end - start)
print("ready", flush=True)
while not os.path.exists("go"): time.sleep(0.01)
child = os.fork()
if child == 0:
    os.execl("/bin/sh", "sh", "-c", "touch done; while [ ! -e over ]; do sleep 0.01; done")
os.waitpid(child, 0)
"""])
    collector = collector_of(recorder.pid)
    os.kill(collector, signal.SIGSTOP)
    try:
        open("go", "w", encoding="ascii").close()
        # The new program waits for the collector.
        wait_for(lambda: any(name_of(pid) == "sh" for parent in children_of(recorder.pid)
                             for pid in children_of(parent)), "the child's exec")
    finally:
        os.kill(collector, signal.SIGCONT)
    wait_for(lambda: os.path.exists("done"), "the program")
    open("over", "w", encoding="ascii").close()
    code, _, err = finished(recorder)
    equal(0, code, err)
    forked = [fields for fields in Trace().processes.values() if fields.get("start") == "fork"]
    equal({"x"}, set(forked[0]["args"][0]), "arguments of the child")


@test
def a_library_of_a_child_that_has_ended_is_looked_for_in_its_root():
    """By then nothing says any more which root that was, but its parent."""
    need_root()
    libraries = glob.glob("/lib/*/libbz2.so.1.0")
    if not libraries:
        raise Skip("needs libbz2")
    os.mkdir("root")
    shutil.copy(libraries[0], "root/libother.so")
    recorder = started([*python()[0], "-c", """
import ctypes, os, time
os.chroot("root")
os.chdir("/")
print("ready", flush=True)
while not os.path.exists("go"): time.sleep(0.01)
child = os.fork()
if child == 0:
    room, length = ctypes.create_string_buffer(1000), ctypes.c_uint(1000)
    library = ctypes.CDLL("/libother.so")
    library.BZ2_bzBuffToBuffCompress(room, ctypes.byref(length), bytes(100), 100, 1, 0, 0)
    os._exit(0)
os.waitpid(child, 0)
open("done", "w").close()
while not os.path.exists("over"): time.sleep(0.01)
"""])
    collector = collector_of(recorder.pid)
    os.kill(collector, signal.SIGSTOP)
    try:
        open("root/go", "w", encoding="ascii").close()
        wait_for(lambda: os.path.exists("root/done"), "the child")
    finally:
        os.kill(collector, signal.SIGCONT)
    # What the collector copies, it has read before, also of the child.
    program, = (pid for pid in children_of(recorder.pid) if pid != collector)
    equal(0, run([TIDEMARK, "ctl", str(program), "save", "copy.tide"]).code, "a copy")
    open("root/over", "w", encoding="ascii").close()
    code, _, err = finished(recorder)
    equal(0, code, err)
    found = {path for path in Trace().modules.values() if path.endswith("/libother.so")}
    equal({os.path.abspath("root/libother.so")}, found, "the library")


@test
def fork_in_the_midst_of_threads_that_allocate_is_followed():
    _, trace = recorded("fork_threads", forked=50)
    equal(51, len(trace.processes), "processes")
    for process, fields in trace.processes.items():
        if fields.get("start") == "fork":
            equal(1, len(trace.of_size(FORKED, process)), f"blocks of process {process}")
            equal(0, len(trace.of_size(7103, process)), "blocks of threads that do not exist")


@test
def exec_in_the_midst_of_threads_that_allocate_is_followed():
    _, trace = recorded("exec_threads", first=10, images=30)
    equal(2, len(trace.processes), "processes")


@test
def no_follow_records_the_first_process_alone():
    for how, first in (("fork", 20), ("system", 20), ("spawn", 20), ("vfork", 20)):
        _, trace = recorded(how, "--no-follow", "--force", first=first)
        equal(1, len(trace.processes), f"processes of {how}")
        equal("no-follow", trace.options, "options in the trace")


main()
