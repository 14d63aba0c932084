#!/usr/bin/env python3
"""A program that runs already is attached to and left again: nothing of it is lost or wrong, and it
is as it was. What cannot be attached to is refused with what to do about it, and left alone."""
# timeout: 240
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

from libguest import (BITS, BUILD, LIBRARY, PATIENCE_SECONDS, SOURCE, TIDEMARK, Skip, Trace, check,
                      children_of, closed, environment, equal, main, need_root, other_system,
                      program, python, run, runs, test, wait_for, why_not_32_bits)

THREADS = 4
KEPT = 1000
ROUNDS = int(os.environ.get("ATTACH_ROUNDS", "20"))
NOBODY = {"user": 65534, "group": 65534, "extra_groups": []}


class Running:
    def __init__(self, command, **more):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True,
                                        **{"env": environment(), **more})
        self.pid = self.process.pid

    def ready(self):
        equal("ready\n", self.process.stdout.readline(), "what the program says first")
        return self

    def go_on(self):
        """It waits for a byte."""
        self.process.stdin.write("x")
        self.process.stdin.flush()
        return self

    def end(self, code=0):
        out, err = self.process.communicate(timeout=PATIENCE_SECONDS)
        equal(code, self.process.returncode, f"the program's exit code ({err})")
        return out


def looper():
    """The program that loops, linked as attach_static.py wants it; and what its malloc is in."""
    way = os.environ.get("GUEST_LINKED")
    if not way:
        return program("attached"), "libc.so"
    if not os.path.exists("linked"):
        made = run(["gcc", *way.split(), "-O1", "-fno-builtin", "-pthread", "-o", "linked",
                    os.path.join(SOURCE, "test", "programs", "attached.c")])
        equal(0, made.code, made.err)
    return "./linked", "/linked"


def looping(threads=THREADS):
    return Running([looper()[0], str(threads), str(KEPT)]).ready()


def attach(running, *options, trace="t.tide", code=0, command=("record", "-p"), **more):
    ended = run([TIDEMARK, *command, str(running.pid), "-o", trace, "-f", *options], **more)
    equal(code, ended.code, f"exit code of {options} ({ended.err.strip()[-800:]})")
    return ended


def attach_until(running, duration, least=1000, trace="t.tide"):
    """attach for so long, or as long as it takes until more than so many allocations are in the trace: others
    may have the processor meanwhile."""
    for seconds in (duration, "2s", "20s"):
        ended = attach(running, "--duration", seconds, trace=trace)
        if int(re.search(r" ([\d,]+) allocations?,", ended.err)[1].replace(",", "")) > least:
            break
    return ended


def report(trace="t.tide"):
    ended = run([TIDEMARK, "report", "--json", trace])
    equal(0, ended.code, ended.err)
    return json.loads(ended.out)


def code_of(pid, name=None):
    """What is mapped as code of that library, as it is in memory."""
    name = name or looper()[1]
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        spans = [line.split()[0] for line in maps if " r-xp " in line and name in line]
    found = b""
    with open(f"/proc/{pid}/mem", "rb") as memory:
        for span in spans:
            start, end = (int(word, 16) for word in span.split("-"))
            memory.seek(start)
            found += memory.read(end - start)
    return found


def maps_of(pid):
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        return maps.read()


def page_tables_of(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as status:
        return int(re.search(r"^VmPTE:\s+(\d+) kB", status.read(), re.M)[1])


# A busy machine may have taken the processor from a thread in malloc at each of thirty stops.
UNREAD = "in its allocator whenever it was stopped"


def unread(answer):
    return any(UNREAD in line for line in answer["trace"]["warnings"])


def check_whole(trace, kept=0, known=True, least=1000):
    """Each block of the program's own sizes is freed by who has it: no call is missing."""
    answer = report(trace)
    heap = answer["heap"]
    equal(0, answer["trace"]["events_lost"], "events lost")
    equal((0, 0, 0), (heap["orphan_frees"], heap["lost_frees"], heap["inherited_frees"]),
          "orphans, lost and inherited frees")
    check(heap["allocations"] > least, f"only {heap['allocations']} allocations")
    if unread(answer):
        return answer
    equal(heap["allocations"] + heap["before"]["count"], heap["frees"] + heap["live_at_exit"]["count"], "what lives at last")
    check(heap["before"]["count"] >= kept * 3 // 4, f"{heap['before']} blocks of before", answer["trace"]["warnings"])
    check(not known or heap["before_frees"] == 0, f"{heap['before_frees']} frees of nothing known")
    return answer


@test
def twenty_times_in_a_row_nothing_is_lost_and_nothing_stays():
    running = looping()
    before = code_of(running.pid)
    stops, unread_rounds = [], 0
    for number in range(ROUNDS):
        # What is looked at below has some thousand blocks.
        ended = attach_until(running, "50ms", 1000 if number % 4 == 0 else -1, f"{number}.tide")
        check(", 0 events lost" in ended.err, ended.err)
        check(re.search(r"for [\d.]+ (ms|us|s) while it loaded the recorder", ended.err), ended.err)
        was_read = re.search(r"and (all )?for [\d.]+ (ms|us|s) while its [\d,]+ blocks were read", ended.err)
        unread_rounds += not was_read
        check(was_read or UNREAD in ended.err, ended.err)
        match = re.search(r"stood still for ([\d.]+) (ms|us|s) at most", ended.err)
        check(match, ended.err)
        stops.append(float(match[1]) * {"us": 0.001, "ms": 1, "s": 1000}[match[2]])
        check(before == code_of(running.pid), f"code is not as it was after round {number}")
        code = len(re.findall(r"r-xp 00000000 00:00 0 *$", maps_of(running.pid), re.M))
        check(code <= 2 * 2, f"{code} stretches of code of ours are left")
        check("memfd:tidemark" not in maps_of(running.pid), "the recorder's memory is still there")
    check(unread_rounds < ROUNDS, "blocks were read in no round")
    # The program's threads take all processors, so that to count takes time.
    check(running.end(7).endswith(" 0 wrong\n"), "the program was disturbed")
    for number in range(0, ROUNDS, 4):
        check_whole(f"{number}.tide", KEPT)
    # How long that is depends on who else wants the processors: it is said, and not judged.
    print(f"# threads stood still for {min(stops)} ms at least, {sorted(stops)[len(stops) // 2]} ms mostly")


@test
def the_memory_of_a_program_that_waits_is_known():
    """Its threads make no call while they are looked at. What it had mapped is its own, or a stack of theirs."""
    running = Running([looper()[0], str(THREADS), str(KEPT), "waits"]).ready()
    tables = page_tables_of(running.pid)
    ended = attach(running, "--duration", "300ms")
    check(" 0 allocations" in ended.err, ended.err)
    # To look at each of the 65,536 pages that it has not used would make 512 KiB of tables.
    check(page_tables_of(running.pid) - tables < 256, f"{page_tables_of(running.pid)} KiB of page tables, {tables} before")
    ended = run([TIDEMARK, "reconcile", "--json", "t.tide"])
    equal(0, ended.code, ended.err)
    lines = {line["line"]: line for line in json.loads(ended.out)["lines"]}
    kib = {name: line["bytes"] >> 10 for name, line in lines.items()}
    check(kib["unexplained"] < 64, kib)
    check(8 << 10 <= kib["program"] < 9 << 10, kib)
    check(kib["libc"] < 256 and kib["tidemark"] < 2 << 10, kib)
    equal(THREADS, sum(row["count"] for row in lines["stacks"]["rows"] if not row["mapped_file"]), "stacks of threads")
    text = run([TIDEMARK, "reconcile", "t.tide"]).out
    check("mapped before it was attached to" in text, text)
    [process] = json.loads(run([TIDEMARK, "info", "--json", "t.tide"]).out)["processes"]
    equal(1, process["threads"], "threads, of which one was made to list the mappings")
    # The stack of the call that made the list is none of the program's memory, and gone.
    attach(running, "--rss-exact", "--duration", "300ms")
    text = " ".join(run([TIDEMARK, "report", "t.tide"]).out.split())
    check("should be mapped that is not" not in text, text[:1000])
    running.go_on()
    running.end(7)


@test
def where_no_address_is_free_below_the_libraries_what_is_above_serves():
    """Databases (mariadbd) reserve some TiB there. Without random addresses the stack is near, above the libraries."""
    if BITS == 32:
        raise Skip("a jump reaches all of 4 GiB")
    for words in ([], ["setarch", "-R"]):
        running = Running([*words, looper()[0], "2", "100", "full"]).ready()
        ended = attach_until(running, "100ms")
        check("may not be changed" not in ended.err, ended.err)
        check_whole("t.tide")
        running.go_on()
        running.end(7)


@test
def what_is_there_from_before_is_told_apart():
    for _ in range(3):
        running = looping()
        attach_until(running, "500ms")
        check(running.end(7), "output")
        answer = check_whole("t.tide", KEPT)
        if not unread(answer):
            break
    check(not unread(answer), "three times nothing was read")
    equal([True], [process["attached"] for process in answer["trace"]["processes"]], "attached")
    check(any("attached to while it ran" in line for line in answer["trace"]["warnings"]),
          answer["trace"]["warnings"])
    for command in ("window", "growth", "active", "transients"):
        ended = run([TIDEMARK, command, "t.tide"])
        check("attached to while it ran" in ended.out + ended.err, f"{command} does not say it")
    info = json.loads(run([TIDEMARK, "info", "--json", "t.tide"]).out)
    equal("attach", info["processes"][0]["start"], "how it began")
    check("stood still for" in run([TIDEMARK, "info", "t.tide"]).out, "how long it stood")
    lines = run([TIDEMARK, "dump", "--to", "1%", "t.tide"]).out
    check("go_round" in run([TIDEMARK, "report", "-n", "3", "t.tide"]).out, "who allocates")
    check("incomplete" not in lines, "stacks lead to the thread's start")


@test
def ctrl_c_ends_the_recording_and_not_the_program():
    for how in ("interrupt", "ctl", "end"):
        running = looping(2)
        recording = Running([TIDEMARK, "attach", str(running.pid), "-o", "t.tide", "-f"])
        wait_for(lambda: os.path.exists("t.tide") and os.path.getsize("t.tide") > 4096,
                 "the recording begins")
        if how == "interrupt":
            os.kill(recording.pid, signal.SIGINT)
        elif how == "ctl":
            equal(0, run([TIDEMARK, "ctl", str(running.pid), "detach"]).code, "ctl detach")
        else:
            running.end(7)
        recording.end(0)
        if how != "end":
            running.end(7)
        equal("whole", run([TIDEMARK, "info", "t.tide"]).out.splitlines()[0].split()[-1], how)
        check_whole("t.tide", KEPT, least=-1)  # however little came before the end
        os.remove("t.tide")


@test
def duration_ends_the_recording_of_a_program_that_record_starts():
    for duration in ("300ms", "3s", "30s"):  # others may have the processor meanwhile
        running = Running([TIDEMARK, "record", "-o", "t.tide", "-f", "--duration", duration, "--",
                           program("attached"), "2", "10"]).ready()
        closed("t.tide", events=False)  # there may be millions
        equal(None, running.process.poll(), "the program runs on")
        running.end(7)
        allocations = report()["heap"]["allocations"]
        if allocations > 100:
            break
    check(allocations > 100, f"what was recorded in {duration}: {allocations} allocations")


@test
def a_collector_that_is_killed_leaves_no_socket():
    running = looping(1)
    recording = Running([TIDEMARK, "record", "-p", str(running.pid), "-o", "t.tide", "-f"])
    recording.process.stderr.readline()
    with open(f"/proc/{recording.pid}/task/{recording.pid}/children", encoding="utf-8") as words:
        collector = int(words.read().split()[0])
    held = []
    for fd in os.listdir(f"/proc/{collector}/fd"):
        with contextlib.suppress(FileNotFoundError):  # it was closed just now
            held.append(os.readlink(f"/proc/{collector}/fd/{fd}"))
    with open("/proc/net/unix", encoding="utf-8") as sockets:
        ours = [line.split()[-1] for line in sockets
                if " /tmp/." in line and f"socket:[{line.split()[6]}]" in held]
    check(len(ours) == 1 and os.path.exists(ours[0]), f"sockets at a path: {ours}")
    os.kill(collector, signal.SIGKILL)
    recording.process.communicate(timeout=PATIENCE_SECONDS)
    check(not os.path.exists(ours[0]), f"{ours[0]} is left")
    running.end(7)


@test
def who_is_killed_while_attached_leaves_what_the_next_one_puts_right():
    running = looping(2)
    before = code_of(running.pid)
    recording = Running([TIDEMARK, "record", "-p", str(running.pid), "-o", "t.tide"])
    recording.process.stderr.readline()
    collector = children_of(recording.pid)[0]
    recording.process.kill()
    recording.process.communicate()
    check(before != code_of(running.pid), "the code was not changed")
    wait_for(lambda: run([TIDEMARK, "info", "t.tide"]).out.split("\n")[0].endswith(" whole"),
             "the trace is whole")
    wait_for(lambda: not runs(collector), "the collector's end")
    attach_until(running, "100ms", trace="again.tide")
    equal(before, code_of(running.pid), "the code")
    check(running.end(7).endswith(" 0 wrong\n"), "the program was disturbed")
    check_whole("again.tide", KEPT)


FORKING = """
import os, sys, time
print("ready", flush=True)
sys.stdin.readline()
done, tell = os.pipe()
child = os.fork()
for _ in range(2000):
    kept = [bytearray(70123) for _ in range(3)]
if child == 0:
    os.write(tell, b"x")
    while not os.path.exists("over"):
        kept = [bytearray(70123) for _ in range(3)]
        time.sleep(0.001)
    os._exit(3)
os.read(done, 1)
print("forked", child, flush=True)
sys.stdin.readline()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@test
def children_are_recorded_and_left_too():
    command, variables = python()
    running = Running([*command, "-u", "-c", FORKING], env=environment(**variables)).ready()
    recording = Running([TIDEMARK, "record", "-p", str(running.pid), "-o", "t.tide", "-f"])
    recording.process.stderr.readline()
    before = code_of(running.pid)
    running.process.stdin.write("go\n")
    running.process.stdin.flush()
    child = int(running.process.stdout.readline().split()[1])
    os.kill(recording.pid, signal.SIGINT)
    recording.end(0)
    answer = report()
    processes = answer["trace"]["processes"]
    equal([(True, False), (False, True)],
          [(process["attached"], process["forked"]) for process in processes], "processes")
    check(all(process["allocations"] > 6000 for process in processes), processes)
    check(code_of(running.pid) != before, "the code was never changed")
    equal(code_of(running.pid), code_of(child), "the child's code and its parent's")
    with open("over", "w", encoding="utf-8"):
        pass
    running.end(3)


@test
def python_as_a_whole_and_a_server_under_load():
    script = "import json\nprint('ready', flush=True)\nd = None\n" \
             "while 'libtidemark' not in open('/proc/self/maps').read():\n pass\nfor _ in range(600):\n" \
             " d = json.loads(json.dumps([{'a': i, 'b': str(i)} for i in range(200)]))\n"
    command, variables = python()
    running = Running([*command, "-c", script], env=environment(**variables)).ready()
    attach(running)
    running.end(0)
    check_whole("t.tide", 1000)
    if not shutil.which("redis-server"):
        raise Skip("needs redis-server")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    server = Running(["redis-server", "--port", port, "--save", "", "--appendonly", "no"])
    ping = ["redis-cli", "-p", port, "ping"]
    wait_for(lambda: run(ping).out == "PONG\n", "the server answers")
    load = Running(["redis-benchmark", "-p", port, "-n", "40000", "-l", "-q", "-t", "set,lpush"])
    attach_until(server, "1s")
    load.process.kill()
    load.process.communicate()
    run(["redis-cli", "-p", port, "shutdown", "nosave"])
    server.end(0)
    check_whole("t.tide", known=False)


@test
def what_runs_another_program_is_named_also_where_it_waits():
    for command, named in ((["/usr/bin/python3", "-c", "import sys; print('ready', flush=True); sys.stdin.read()"], "python"),
                           (["php", "-n", "-r", "echo \"ready\\n\"; fgets(STDIN);"], "php")):
        if not shutil.which(command[0]):
            continue
        running = Running(command).ready()
        ended = run([TIDEMARK, "record", "-p", str(running.pid), "--duration", "100ms", "-f", "-o", "t.tide"])
        equal(0, ended.code, ended.err)
        running.end(0)
        process = json.loads(run([TIDEMARK, "info", "--json", "t.tide"]).out)["processes"][0]
        equal(0, process["events"], "it waited")
        equal(named, (process["interpreter"] or "").split(" ")[0], f"what {command[0]} is")


@test
def a_server_whose_program_was_replaced_has_the_names_that_it_began_with():
    shutil.copy(looper()[0], "served")
    server = Running([os.path.abspath("served"), "1", str(KEPT)]).ready()
    shutil.copy(program("family"), "new")
    os.rename("new", "served")
    attach(server, "--duration", "300ms", "--bundle")
    server.go_on().end(7)
    functions = [frame["function"] for site in report()["sites"]["calls"]
                 for frame in site["stack"] if "/served" in frame["module"]]
    check(functions and all(functions), "names of the old file:", functions)


@test
def a_call_that_is_under_way_when_it_is_left_is_none_of_the_recording():
    """What it is given may have been freed by then, which no hook has seen."""
    for way in ("malloc", "calloc", "realloc"):
        running = Running([program("left_within"), way]).ready()
        recording = Running([TIDEMARK, "record", "-p", str(running.pid), "-o", "t.tide", "-f"])
        equal("inside\n", running.process.stdout.readline(), "what it says then")
        recording.process.stderr.readline()  # it is attached to
        os.kill(recording.pid, signal.SIGINT)
        equal("over\n", running.process.stdout.readline(), f"{way}: what it says at last")
        recording.end(0)
        running.end(7)
        answer = report()
        heap, warnings = answer["heap"], "\n".join(answer["trace"]["warnings"])
        equal((0, 0, 0), (answer["trace"]["events_lost"], heap["lost_frees"], heap["orphan_frees"]),
              f"{way}: events and frees that are lost, orphans")
        trace = Trace()
        equal((1, int(way == "realloc")), (len(trace.of_size(7777)), len(trace.of_size(7778))),
              f"{way}: blocks that were given out")
        equal(way == "realloc", "1 realloc was under way when the recording ended" in warnings, warnings)


@test
def a_child_that_is_forked_while_threads_are_led_out_of_the_allocator_is_as_without():
    """Places where they are stopped are in no memory that a child has a copy of."""
    running = Running([program("forks_within")]).ready()
    for _ in range(10):
        attach(running, "--duration", "20ms")
    equal("0 wrong\n", running.end(7), "children that did not end as they should")


@test
def who_lives_in_a_signal_handler_or_has_been_in_one_is_attached_to():
    """As postgres' children are: forked in a handler of a parent that waited, or later, with what handlers left on
    the stack."""
    for how in ("left", "forever"):
        if how == "forever" and BITS == 32:
            continue  # what a call of 32 bits waited in is not to be seen behind it
        running = Running([program("interrupted"), how]).ready()
        attach_until(running, "500ms", least=100)
        check_whole("t.tide", least=100)
        running.end(7)


def code_waits(pid):
    """The system call that a process is in."""
    names = {"230": "clock_nanosleep", "35": "nanosleep", "219": "restart_syscall"}
    with open(f"/proc/{pid}/syscall", encoding="ascii") as file:
        return names.get(file.read().split()[0], "")


def state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        return file.read().rsplit(")", 1)[1].split()[0]


def is_kernel(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
            return file.read() == "kthreadd\n"
    except OSError:
        return False


def refused(pid, *words, code=126, lines=1, **more):
    ended = run([*more.pop("tidemark", [TIDEMARK]), "record", "-p", str(pid), "-o", "no.tide"],
                **more)
    equal(code, ended.code, ended.err)
    equal(lines, len(ended.err.strip().splitlines()), f"lines of {ended.err}")
    for word in words:
        check(word in ended.err, f"{word} is not in: {ended.err}")
    check(not os.path.exists("no.tide"), "a trace was left")


@test
def a_program_that_ends_just_as_it_is_left_has_ended_once():
    """The launcher hears of both at one time: it was stopped meanwhile."""
    running = looping(1)
    recording = Running([TIDEMARK, "record", "-p", str(running.pid), "-o", "t.tide", "-f"])
    recording.process.stderr.readline()
    os.kill(recording.pid, signal.SIGSTOP)
    wait_for(lambda: ") T " in open(f"/proc/{recording.pid}/stat", encoding="utf-8").read(), "T")
    running.process.kill()
    running.process.wait(PATIENCE_SECONDS)
    os.kill(recording.pid, signal.SIGINT)
    os.kill(recording.pid, signal.SIGCONT)
    recording.end(0)
    dump = run([TIDEMARK, "dump", "t.tide"]).out
    equal(1, dump.count("attached while it ran"), "notes of the attachment")


@test
def what_cannot_be_attached_to_is_refused_with_the_remedy():
    refused(4194303, "there is no process 4194303", code=127)
    running = looping(1)
    thread = max(map(int, os.listdir(f"/proc/{running.pid}/task")))
    refused(thread, f"-p {running.pid}")
    os.kill(running.pid, signal.SIGSTOP)
    wait_for(lambda: ") T " in open(f"/proc/{running.pid}/stat", encoding="utf-8").read(), "T")
    refused(running.pid, f"kill -CONT {running.pid}")
    os.kill(running.pid, signal.SIGCONT)
    check("libtidemark" not in maps_of(running.pid), "it was changed")
    if shutil.which("strace"):
        tracer = Running(["strace", "-f", "-o", "/dev/null", "-p", str(running.pid)])
        wait_for(lambda: "TracerPid:\t0" not in
                 open(f"/proc/{running.pid}/status", encoding="utf-8").read(), "strace")
        refused(running.pid, f"traced by process {tracer.pid}")
        os.kill(tracer.pid, signal.SIGINT)
        tracer.process.communicate(timeout=PATIENCE_SECONDS)
    recording = Running([TIDEMARK, "record", "-p", str(running.pid), "-o", "t.tide"])
    recording.process.stderr.readline()
    refused(running.pid, "recorded already", code=125)
    os.kill(recording.pid, signal.SIGINT)
    recording.end(0)
    running.end(7)
    running = Running(["/bin/sh", "-c", "trap '' SEGV; echo ready; read line"]).ready()
    refused(running.pid, "ignores SIGSEGV")
    running.process.communicate(timeout=PATIENCE_SECONDS)
    zombie = Running(["/bin/true"])
    wait_for(lambda: ") Z " in open(f"/proc/{zombie.pid}/stat", encoding="utf-8").read(), "Z")
    refused(zombie.pid, f"process {zombie.pid} has ended")
    zombie.end(0)
    if is_kernel(2):
        refused(2, "thread of the kernel")
    headless = Running(["/usr/bin/python3", "-c", "import ctypes, threading\n"
                        "threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
                        "ctypes.CDLL(None).pthread_exit(None)"])
    wait_for(lambda: ") Z " in open(f"/proc/{headless.pid}/stat", encoding="utf-8").read(), "Z")
    refused(headless.pid, "and other threads go on")
    headless.process.kill()
    headless.process.communicate()


FILTERED = r"""#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
static void *work(void *unused)
{
	struct sock_filter steps[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_gettid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { 4, steps };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, 2, &filter) ||
	    write(1, "ready\n", 6) != 6)
		exit(1);
	for (;;) {
		free(malloc(7901));
		usleep(1000);
	}
}
int main(void)
{
	pthread_t thread;
	char byte;

	pthread_create(&thread, NULL, work, NULL);
	return read(0, &byte, 1) == 1 ? 7 : 1;
}
"""

# When it is told to, it allows itself what it needs to go on and is killed for any other call.
FILTERS_ITSELF = r"""#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
static void churn(int rounds)
{
	for (int i = 0; i < rounds; i++)
		free(malloc(7901));
}
int main(int argc, char **argv)
{
	static const int let[] = { SYS_read, SYS_write, SYS_exit_group, SYS_brk, SYS_munmap, SYS_restart_syscall };
	struct sock_filter steps[16] = { BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0) };
	struct sock_fprog filter = { 0, steps };
	char byte;

	for (int i = 0; i < 6; i++)
		steps[++filter.len] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, let[i], 6 - i, 0);
	steps[++filter.len] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	steps[++filter.len] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	filter.len++;
	churn(1000);
	if (write(1, "ready\n", 6) != 6 || read(0, &byte, 1) != 1)
		return 1;
	churn(1000);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return 1;
	if (strcmp(argv[1], "prctl") == 0 ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) :
					    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter))
		return 1;
	churn(100000);
	if (write(1, "ready\n", 6) != 6 || read(0, &byte, 1) != 1)
		return 1;
	churn(100000);
	return 7;
}
"""

VFORKS = r"""#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	char byte;

	if (argc > 1 && (write(1, "ready\n", 6) != 6 || read(0, &byte, 1) != 1))
		return 1;
	if (vfork() == 0)
		_exit(write(1, "ready\n", 6) != 6 || read(0, &byte, 1) != 1);
	for (;;) {
		free(malloc(7901));
		usleep(1000);
	}
}
"""


@test
def a_filter_that_comes_later_is_made_room_for():
    with open("filters.c", "w", encoding="ascii") as file:
        file.write(FILTERS_ITSELF)
    for options in ((), ("-static",)) if BITS == 64 else (("-m32",),):
        made = run(["gcc", *options, "-O1", "-fno-builtin", "-o", "filters", "filters.c"])
        equal(0, made.code, made.err)
        for how in ("prctl", "syscall"):
            running = Running(["./filters", how]).ready()
            recording = Running([TIDEMARK, "record", "-p", str(running.pid), "-o", "t.tide", "-f"])
            check(any("attached" in line for line in recording.process.stderr), "it is not attached to")
            running.go_on().ready()
            os.kill(recording.pid, signal.SIGINT)
            said = recording.process.communicate(timeout=PATIENCE_SECONDS)[1]
            check("the recorder stays in it, and records nothing more" in said, said)
            running.process.communicate("x", timeout=PATIENCE_SECONDS)
            equal(7, running.process.returncode, f"{options} {how}: its end")
            answer = report()
            equal((101000, 0), (answer["heap"]["allocations"], answer["trace"]["events_lost"]), f"{options} {how}: calls, lost")
            check(any("system-call filter" in line for line in answer["trace"]["warnings"]), answer["trace"]["warnings"])


@test
def a_thread_that_can_not_be_stopped_is_told_and_waited_for():
    with open("vforks.c", "w", encoding="ascii") as file:
        file.write(VFORKS)
    for bits in ("-m64",) if why_not_32_bits() else ("-m64", "-m32"):
        made = run(["gcc", bits, "-w", "-O1", "-fno-builtin", "-o", "vforks", "vforks.c"])
        equal(0, made.code, made.err)
        running = Running(["./vforks"]).ready()
        refused(running.pid, "waits in vfork for a child", f"its thread {running.pid}", code=125, lines=2,
                env=other_system(OTHER_NAPS="1"))
        recording = Running([TIDEMARK, "record", "-p", str(running.pid), "-o", "t.tide", "-f"])
        said = recording.process.stderr.readline()
        check(f"waiting for thread {running.pid}" in said and "vfork" in said, said)
        check("libtidemark" not in maps_of(running.pid), "it was changed")
        os.kill(recording.pid, signal.SIGINT)
        recording.process.communicate(timeout=PATIENCE_SECONDS)
        check(recording.process.returncode != 0, "an interrupted wait is no recording")
        recording = Running([TIDEMARK, "record", "-p", str(running.pid), "-o", "t.tide", "-f"])
        check("waiting for" in recording.process.stderr.readline(), "it waits anew")
        running.go_on()
        check("recording" in recording.process.stderr.readline(), "it is not attached to")
        os.kill(recording.pid, signal.SIGINT)
        recording.end(0)
        running.process.kill()
        running.process.communicate()


@test
def one_that_cannot_be_left_is_left_by_the_next_recording():
    with open("vforks.c", "w", encoding="ascii") as file:
        file.write(VFORKS)
    for bits in ("-m64",) if why_not_32_bits() else ("-m64", "-m32"):
        made = run(["gcc", bits, "-w", "-O1", "-fno-builtin", "-o", "vforks", "vforks.c"])
        equal(0, made.code, made.err)
        running = Running(["./vforks", "late"]).ready()
        recording = Running([TIDEMARK, "record", "-p", str(running.pid), "-o", "t.tide", "-f"],
                            env=other_system(OTHER_NAPS="1"))
        check("attached" in recording.process.stderr.readline(), "it is not attached to")
        running.go_on().ready()
        os.kill(recording.pid, signal.SIGINT)
        said = recording.process.communicate(timeout=PATIENCE_SECONDS)[1]
        check("the recorder stays in it" in said and f"record -p {running.pid}" in said, said)
        # Its collector may end a moment later than it.
        wait_for(lambda: run([TIDEMARK, "ctl", str(running.pid), "detach"]).code == 2, "nobody listens there")
        running.go_on()
        check("memfd:tidemark" in maps_of(running.pid), "it does not stay")
        ended = attach(running, "--duration", "100ms")
        check("stays" not in ended.err, ended.err)
        check("memfd:tidemark" not in maps_of(running.pid), "the recorder's memory is still there")
        running.process.kill()
        running.process.communicate()


@test
def a_thread_under_a_filter_is_not_killed_by_us():
    with open("filtered.c", "w", encoding="ascii") as file:
        file.write(FILTERED)
    made = run(["gcc", "-w", "-O1", "-fno-builtin", "-pthread", "-o", "filtered", "filtered.c"])
    equal(0, made.code, made.err)
    running = Running(["./filtered"]).ready()
    refused(running.pid, "is under a system-call filter")
    running.process.stdin.write("x")
    running.end(7)


@test
def who_was_started_by_record_is_not_told_to_detach():
    recording = Running([TIDEMARK, "record", "-o", "t.tide", "-f", looper()[0], "1", str(KEPT)]).ready()
    pid = int(run(["pgrep", "-P", str(recording.pid), "-f", "^" + looper()[0]]).out)
    equal(0, run([TIDEMARK, "ctl", str(pid), "detach"]).code, "detaching")
    wait_for(lambda: "is not being" in run([TIDEMARK, "ctl", str(pid), "mark", "x"]).err, "the end")
    ended = run([TIDEMARK, "record", "-p", str(pid), "-o", "no.tide"])
    check(ended.code == 125 and "started by tidemark record" in ended.err and
          "detach" not in ended.err, ended.code, ended.err)
    os.kill(pid, signal.SIGKILL)
    recording.process.communicate(timeout=PATIENCE_SECONDS)


OF_MUSL = '#include <unistd.h>\nint main(void) { return write(1, "ready\\n", 6) == 6 && pause(); }'


@test
def who_was_stopped_while_it_slept_is_attached_to_and_twice_is_refused():
    """It goes on by restart_syscall, which says nothing of the call that it is in."""
    running = Running(["sleep", "1000"])
    wait_for(lambda: "nanosleep" in code_waits(running.pid), "it sleeps")
    running.process.send_signal(signal.SIGSTOP)
    wait_for(lambda: state_of(running.pid) == "T", "it is stopped")
    running.process.send_signal(signal.SIGCONT)
    wait_for(lambda: "restart" in code_waits(running.pid), "it goes on")
    attach(running, "--duration", "100ms")
    recording = Running([TIDEMARK, "record", "-p", str(running.pid), "-o", "t.tide", "-f"])
    check("recording" in recording.process.stderr.readline(), "it is not attached to")
    ended = run([TIDEMARK, "record", "-p", str(running.pid), "-o", "no.tide"])
    check(ended.code == 125 and "is being recorded already" in ended.err, ended.code, ended.err)
    os.kill(recording.pid, signal.SIGINT)
    recording.end(0)
    running.process.kill()
    running.process.communicate()


@test
def another_kind_of_program_is_refused():
    if shutil.which("musl-gcc"):  # a recorder alone, without the one for musl beside it
        run(["musl-gcc", "-x", "c", "-", "-o", "of_musl"], text=OF_MUSL.encode())
        running = Running([os.path.abspath("of_musl")]).ready()  # else its loader may not be mapped yet
        shutil.copy(LIBRARY, "lonely.so")
        refused(running.pid, "a program of musl's", "no recorder beside", "try: tidemark record, which starts",
                env=environment(TIDEMARK_LIBRARY=os.path.abspath("lonely.so")))
        running.process.kill()
        running.process.communicate()
    if not why_not_32_bits():
        small = program("still", 32)
        shutil.copy(LIBRARY, "lonely.so")
        running = Running([small, "1000"]).ready()
        refused(running.pid, "32 bits", "no recorder beside", "gcc can do -m32",
                env=environment(TIDEMARK_LIBRARY=os.path.abspath("lonely.so")))
        running.process.kill()
        running.process.communicate()


@test
def who_ends_while_it_is_looked_at_has_ended():
    """What /proc says of it then is what it says of the kernel's threads, or of other programs."""
    for file in ("exe", "maps"):
        running = Running([program("still"), "1000"]).ready()
        refused(running.pid, f"process {running.pid} has ended", env=other_system(OTHER_ENDS=file))
        running.end(-signal.SIGKILL)


@test
def another_place_is_refused():
    need_root()
    running = Running(["unshare", "-n", program("attached"), "1", "1"]).ready()
    refused(running.pid, "network namespace", f"nsenter --net -t {running.pid}")
    if shutil.which("nsenter"):  # which is what it is told to try
        ended = run(["nsenter", "--net", "-t", str(running.pid), TIDEMARK, "record", "-p",
                     str(running.pid), "-o", "t.tide", "--duration", "100ms"])
        equal(0, ended.code, ended.err)
        equal(1, len(report()["trace"]["processes"]), "processes")
    running.end(7)
    os.makedirs("root")
    code = f"import os, sys; os.chroot('{os.getcwd()}/root'); print('ready', flush=True);" \
           "sys.stdin.readline()"
    running = Running([sys.executable, "-c", code]).ready()
    refused(running.pid, "sees other files", "TIDEMARK_LIBRARY")
    running.end(0)


# Where anybody may look.
def public_copy():
    own = f"/tmp/tidemark-attach-{os.getpid()}"
    os.makedirs(own)
    os.chmod(own, 0o777)
    for path in (TIDEMARK, LIBRARY, program("attached"), program("libother_system.so", 64)):
        shutil.copy(path, own)
    if BITS == 32:
        shutil.copytree(os.path.join(BUILD, "preload"), os.path.join(own, "preload"))
    return own


@test
def what_the_kernel_forbids_is_refused_with_the_remedy():
    need_root()
    own = public_copy()
    tidemark = [os.path.join(own, "tidemark")]
    command = [os.path.join(own, "attached"), "1", "1"]
    try:
        running = Running(command).ready()
        refused(running.pid, "belongs to another user, 0", "sudo", tidemark=tidemark, cwd=own,
                **NOBODY)
        running.end(7)
        running = Running(command, **NOBODY).ready()
        scope = os.path.join(own, "scope")
        for value, remedy in ((1, "kernel.yama.ptrace_scope=0"), (2, "sudo"), (3, "next boot")):
            with open(scope, "w", encoding="utf-8") as file:
                file.write(f"{value}\n")
            refused(running.pid, f"ptrace_scope is {value}", remedy, tidemark=tidemark, cwd=own,
                    env=other_system(OTHER_SCOPE=scope, LD_PRELOAD=os.path.join(own, "libother_system.so")),
                    **NOBODY)
        ended = run([*tidemark, "record", "-p", str(running.pid), "--duration", "100ms", "-o",
                     os.path.join(own, "t.tide")], cwd=own, **NOBODY)
        equal(0, ended.code, ended.err)
        running.end(7)
        quiet = "import ctypes, sys; ctypes.CDLL(None).prctl(4, 0); print('ready', flush=True);" \
                "sys.stdin.readline()"
        running = Running(["/usr/bin/python3", "-c", quiet], **NOBODY).ready()
        refused(running.pid, "protected itself", "sudo", tidemark=tidemark, cwd=own, **NOBODY)
        running.end(0)
    finally:
        shutil.rmtree(own)


@test
def words_that_make_no_sense_together_are_refused():
    for words in (["-p", "1", "/bin/true"], ["-p", "x"], ["-p", "1", "--paused"],
                  ["-p", "1", "--strict-vm"], ["--duration", "soon", "/bin/true"]):
        equal(125, run([TIDEMARK, "record", *words]).code, str(words))


if __name__ == "__main__":
    main()
