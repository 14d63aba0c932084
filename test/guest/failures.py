#!/usr/bin/env python3
"""When we fail, the program does not: it runs on, and the trace is whole up to there."""
# timeout: 240
# parallel: yes
import contextlib
import json
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import time

from libdisk import HangingDisk
from libguest import (LIBRARY, PATIENCE_SECONDS, TIDEMARK, Skip, Trace, check, children_of, collector_of,
                      counters, environment, equal, finished, main, need_root, program, report,
                      run, runs, started, test, wait_for)


def collectors(launcher):
    """None or one: the one of its children that leads a group."""
    return [pid for pid in children_of(launcher) if os.getpgid(pid) == pid]


def collector_is_killed(strict):
    path = os.path.abspath("counters")
    recorder = started([program("still"), "1000"], *strict, env=environment(COUNTERS=path))

    def seconds_of_rounds(count):
        began, upto = time.monotonic(), counters(path)[1][2] + count
        wait_for(lambda: counters(path)[1][2] >= upto, f"{count} rounds of the program")
        return time.monotonic() - began

    before = seconds_of_rounds(100)
    os.kill(collector_of(recorder.pid), signal.SIGKILL)
    # Others may have the processor for seconds, but not each time.
    after = min(seconds_of_rounds(100) for _ in range(5))
    check(after < 10 * before + 5, f"the program is slow: {before} s, then {after} s")
    os.kill(recorder.pid, signal.SIGTERM)
    code, _, err = finished(recorder)
    equal(125 if strict else 5, code, f"exit code ({err})")
    check("warning" in err and "collector" in err, "no warning:", err)
    ended = run([TIDEMARK, "report", "--json", "t.tide"])
    equal(0, ended.code, f"report of the trace that was cut ({ended.err})")
    check('"complete":false' in ended.out.replace(" ", ""), "the trace says that it is cut")


@test
def a_killed_collector_leaves_the_program_running_at_normal_speed():
    collector_is_killed([])


@test
def a_killed_collector_is_a_failure_under_strict():
    collector_is_killed(["--strict"])


@test
def a_collector_that_nobody_waits_for_is_dead():
    """Whoever should is stopped: it can be sent signals still."""
    path = os.path.abspath("counters")
    recorder = started([program("still"), "1000"], env=environment(COUNTERS=path))
    recorder.send_signal(signal.SIGSTOP)
    os.kill(collector_of(recorder.pid), signal.SIGKILL)
    upto = counters(path)[1][2] + 2000
    try:
        wait_for(lambda: counters(path)[1][2] >= upto, "2000 rounds of the program")
    finally:
        recorder.send_signal(signal.SIGCONT)
        os.kill(recorder.pid, signal.SIGTERM)
    code, _, err = finished(recorder)
    equal(5, code, f"exit code ({err})")
    equal(1, err.count("collector died"), f"lines that say so in {err}")


@test
def a_collector_may_die_at_any_moment():
    script = "import sys; blocks = [bytes(1000) for _ in range(300000)]; sys.exit(7)"
    for after in (0, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2):
        recorder = subprocess.Popen(
            [TIDEMARK, "record", "--force", "-o", "t.tide", "/usr/bin/python3", "-c", script],
            env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_for(lambda: recorder.poll() is not None or collectors(recorder.pid), "a collector")
        time.sleep(after)
        for pid in collectors(recorder.pid):
            os.kill(pid, signal.SIGKILL)
        code, _, err = finished(recorder)
        check(code in (7, 125), f"exit code {code} after {after} s ({err})")
        check(code == 7 or "did not start" in err, f"after {after} s: {err}")
        check(err.count("collector died") <= 1, f"after {after} s: {err}")


def cut(trace, hold, notice):
    """A program that waits for a collector which does not move: that is said, and Ctrl-C twice ends both."""
    with open("said", "w", encoding="utf-8") as said:
        recorder = subprocess.Popen([TIDEMARK, "record", "-o", trace, "--", program("still"), "1000", "100000"],
                                    stdout=subprocess.PIPE, stderr=said)
    equal(b"ready\n", recorder.stdout.readline(), "the program's first line")
    hold(recorder)

    def told():
        with open("said", encoding="utf-8") as said:
            return said.read()
    wait_for(lambda: notice in told(), "a line that says so")
    for _ in range(2):
        os.kill(recorder.pid, signal.SIGINT)
        equal(b"INT\n", recorder.stdout.readline(), "what the program heard")
    equal(6, recorder.wait(timeout=PATIENCE_SECONDS), "exit code")
    equal(1, told().count("the recording was cut"), told())
    equal(1, told().count("the program waits for it"), told())


@test
def a_stopped_collector_holds_the_program_with_a_word_and_until_ctrl_c_twice():
    cut("t.tide", lambda recorder: os.kill(collector_of(recorder.pid), signal.SIGSTOP), "is stopped")
    ended = run([TIDEMARK, "report", "--json", "t.tide"])
    check('"complete":false' in ended.out.replace(" ", ""), "the trace says that it is cut", ended.err)


@test
def a_collector_whose_disk_hangs_holds_the_program_with_a_word_and_until_ctrl_c_twice():
    """It cannot even be killed."""
    with HangingDisk("disk", 8192):
        cut("disk/t.tide", lambda recorder: None, "its disk does not answer")


@test
def a_collector_whose_disk_hangs_lets_the_program_go_when_the_launcher_is_killed():
    path = os.path.abspath("counters")
    with HangingDisk("disk", 8192):
        recorder = subprocess.Popen([TIDEMARK, "record", "-o", "disk/t.tide", "--", program("still"), "1000", "100000"],
                                    env=environment(COUNTERS=path), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        equal(b"ready\n", recorder.stdout.readline(), "the program's first line")
        [still] = [pid for pid in children_of(recorder.pid) if pid != collector_of(recorder.pid)]
        wait_for(lambda: b"does not answer" in os.read(recorder.stderr.fileno(), 1 << 16), "a line that says so")
        recorder.kill()
        recorder.wait()
        upto = counters(path)[1][2] + 50  # ten million calls: more than there is room for
        try:
            wait_for(lambda: counters(path)[1][2] >= upto, "50 rounds of the program")
        finally:
            os.kill(still, signal.SIGKILL)


@test
def a_collector_that_was_stopped_goes_on_and_has_all():
    path = os.path.abspath("counters")
    with open("said", "w+", encoding="utf-8") as said:
        recorder = subprocess.Popen([TIDEMARK, "record", "-o", "t.tide", "--", program("still"), "1000", "100000"],
                                    env=environment(COUNTERS=path), stdout=subprocess.PIPE, stderr=said)
        equal(b"ready\n", recorder.stdout.readline(), "the program's first line")

        def told():
            said.seek(0)
            return said.read()
        collector = collector_of(recorder.pid)
        os.kill(collector, signal.SIGSTOP)
        wait_for(lambda: "is stopped" in told(), "a line that says so")
        os.kill(recorder.pid, signal.SIGINT)  # one is the program's alone
        os.kill(collector, signal.SIGCONT)
        wait_for(lambda: "the collector goes on" in told() or recorder.poll() is not None, "a line that says so")
        equal(6, recorder.wait(timeout=PATIENCE_SECONDS), "exit code")
    trace = Trace()
    equal(0, trace.events_lost(), "events lost")
    equal(counters(path)[1][:2], (len(trace.of_size(7901)), trace.frees_of_size(7901)), "blocks of the program")


@test
def another_tracer_that_is_preloaded_is_no_matter_of_ours():
    tracer = os.path.join(os.path.dirname(program("still")), "libtracer_library.so")
    script = "import sys; sys.exit(7)"
    for locks in ("yes", "no"):
        variables = environment(LD_PRELOAD=tracer, TRACER_LOCKS=locks)
        ended = run([TIDEMARK, "record", "--force", "-o", "t.tide", "/usr/bin/python3", "-c",
                     script], env=variables)
        equal(7, ended.code, f"exit code ({ended.err})")
        trace = Trace()
        equal(1, len(trace.processes), f"processes ({ended.err})")
        equal("0", trace.end.get("events-lost", "0"), f"events lost ({ended.err})")


@test
def a_tracer_in_the_collector_ends_in_a_failure_and_in_no_hang():
    tracer = os.path.join(os.path.dirname(program("still")), "libtracer_library.so")
    for locks in ("yes", "no"):
        # As if it were in /etc/ld.so.preload: there is no way around it.
        variables = environment(LD_PRELOAD=tracer, TRACER_LOCKS=locks, TIDEMARK_PRELOAD="")
        ended = run([TIDEMARK, "record", "--force", "-o", "t.tide", "/bin/sh", "-c", "exit 7"],
                    env=variables)
        check(ended.code in (7, 125), f"exit code {ended.code} ({ended.err})")
        check(ended.code == 7 or "did not start" in ended.err, ended.err)


def small_disk():
    need_root()
    os.mkdir("disk")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "none", "disk"],
                      stderr=subprocess.DEVNULL, check=False).returncode != 0:
        raise Skip("may not mount a tmpfs")


def unmount():
    subprocess.run(["umount", "-l", "disk"], check=False, stderr=subprocess.DEVNULL)


def processor_seconds():
    """Of all that was waited for: another's work is not in it."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def fill(strict):
    """Stacks by the hundred thousand do not fit into 400 KiB; the first of them do."""
    small_disk()
    try:
        began = processor_seconds()
        plain = run([program("many_stacks")])
        plain_seconds = processor_seconds() - began
        began = processor_seconds()
        ended = run([TIDEMARK, "record", *strict, "-o", "disk/t.tide", program("many_stacks")])
        seconds = processor_seconds() - began
        equal(125 if strict else 0, ended.code, f"exit code ({ended.err})")
        equal(1, len(plain.out.splitlines()), "lines of the program")
        equal(1, len(ended.out.splitlines()), "lines of the program under the recorder")
        check("warning" in ended.err and "space" in ended.err, "no warning:", ended.err)
        check("unrecorded to its end" in ended.err, "what becomes of the recording:", ended.err)
        check(seconds < 20 * plain_seconds + 5, f"{seconds} s of processors instead of {plain_seconds} s")
        read = run([TIDEMARK, "report", "--json", "disk/t.tide"])
        equal(0, read.code, f"report of the trace that was cut ({read.err})")
        data = json.loads(read.out)
        check(not data["trace"]["complete"], "the trace says that it is whole")
        check(data["trace"]["events"] > 10000, f"only {data['trace']['events']} events")
        check(data["trace"]["events_lost"] > 0, "the trace says that it lost nothing")
        has = re.search(r"the trace has ([\d,]+) of these ([\d,]+) events", ended.err)
        check(has, "what of it the trace has:", ended.err)
        Trace("disk/t.tide").check_ownership()
        info = run([TIDEMARK, "info", "disk/t.tide"])
        check("space" in info.out + info.err, "info says why:", info.out, info.err)
        counts = re.search(r"^events +([\d,]+), and ([\d,]+) others", info.out, re.M)
        equal(sum(int(count.replace(",", "")) for count in counts.groups()),
              int(has[1].replace(",", "")), "events that the trace has")
    finally:
        unmount()


@test
def a_full_disk_leaves_the_program_running_and_the_trace_whole_up_to_there():
    fill([])


@test
def a_full_disk_is_a_failure_under_strict():
    fill(["--strict"])


@test
def the_programs_limits_are_not_the_collectors():
    script = (f'ulimit -S -f 16; ulimit -S -n 16; exec "{TIDEMARK}" record -o t.tide sh -c '
              f'"ulimit -f; ulimit -n; \'{program("many_stacks")}\'"')
    ended = run(["bash", "-c", script])
    equal(0, ended.code, f"exit code ({ended.err})")
    equal(["16", "16"], [str(int(word) // unit) for word, unit in
                         zip(ended.out.splitlines(), (2, 1))], "limits of the program")
    heap = report("t.tide", "-n", "1")["heap"]
    check(heap["allocations"] > 131072, heap)


def limited(which, most, command, **more):
    """Under a limit that cannot be raised again: who may do so would not be limited."""
    with open("/proc/self/status", encoding="ascii") as status:
        may = int(re.search(r"CapEff:\s*(\w+)", status.read()).group(1), 16)
    if may >> 24 & 1:  # CAP_SYS_RESOURCE
        command = ["setpriv", "--bounding-set", "-sys_resource", "--inh-caps", "-sys_resource", *command]
        if not shutil.which("setpriv"):
            raise Skip("needs setpriv, to give a right away")
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                          timeout=PATIENCE_SECONDS,
                          preexec_fn=lambda: resource.setrlimit(which, (most, most)), **more)


@test
def a_limit_of_file_sizes_leaves_fewer_lanes_and_the_same_calls():
    allocations = set()
    for most in (resource.RLIM_INFINITY, 100 << 20, 40 << 20, 19 << 20):
        ended = limited(resource.RLIMIT_FSIZE, most,
                        [TIDEMARK, "record", "-f", "-o", "t.tide", "sh", "-c",
                         f"ulimit -f; exec '{program('many_stacks')}'"])
        equal(0, ended.returncode, f"exit code under {most} ({ended.stderr})")
        equal("unlimited" if most < 0 else str(most // 512), ended.stdout.split()[0], "the program's limit")
        trace = report("t.tide", "-n", "1")
        check(trace["trace"]["complete"], (most, ended.stderr))
        allocations.add(trace["heap"]["allocations"])
    equal(1, len(allocations), f"allocations: {allocations}")


@test
def more_threads_than_a_limit_of_file_sizes_has_room_for_are_told_of():
    ended = limited(resource.RLIMIT_FSIZE, 20 << 20,
                    [TIDEMARK, "record", "-f", "-o", "t.tide", program("crowd"), "busy", "8"])
    equal(0, ended.returncode, f"exit code ({ended.stderr})")
    said = run([TIDEMARK, "report", "t.tide"]).out
    check("lost: more threads ran at once than the limit" in " ".join(said.split()) and "RLIMIT_FSIZE" in said, said)


@test
def a_program_s_limit_of_addresses_that_loses_events_is_named_by_record():
    """Of several processes that lose some for one reason the first is."""
    program_s = "for n in 1 2 3; do (ulimit -v 20000; exec /usr/bin/perl -e 'my @a = map { 3 } 1..1000'); done"
    ended = run([TIDEMARK, "record", "-o", "t.tide", "sh", "-c", program_s])
    equal(0, ended.code, ended.err)
    if " 0 events lost" in ended.err:
        raise Skip("a perl of 20,000 KiB of addresses has room for the recorder here")
    said = re.findall(r"tidemark: events of process \d+ are lost: no memory could be had .*ulimit -v", ended.err)
    equal(1, len(said), ended.err)


@test
def a_limit_that_leaves_no_room_for_the_recorder_is_named_with_how_high_it_must_be():
    for which, most, word in ((resource.RLIMIT_FSIZE, 2048, "RLIMIT_FSIZE"),
                              (resource.RLIMIT_FSIZE, 10 << 20, "RLIMIT_FSIZE"),
                              (resource.RLIMIT_AS, 30 << 20, "RLIMIT_AS")):
        ended = limited(which, most, [TIDEMARK, "record", "-o", "t.tide", "touch", "started"])
        equal(125, ended.returncode, f"exit code ({ended.stderr})")
        needs = re.search(r"limited to .*" + word + r".* needs at least (\d+) KiB", ended.stderr)
        check(needs and len(ended.stderr.splitlines()) == 1, ended.stderr)
        equal([], os.listdir("."), "files")
        enough = int(needs.group(1)) << 10
        ended = limited(which, enough, [TIDEMARK, "record", "-o", "t.tide", "true"])
        equal(0, ended.returncode, f"exit code with what it needs ({ended.stderr})")
        check("1 process, 0 events lost" in ended.stderr, ended.stderr)
        os.remove("t.tide")


@test
def too_few_descriptors_are_named_and_nothing_hangs_or_is_written_elsewhere():
    """From three that are free on, as one loads libraries; those handed down are not the trace's."""
    recorded = []
    for handed in (0, 30):
        with contextlib.ExitStack() as stack:
            held = [stack.enter_context(open(f"held{i}", "w+b")) for i in range(handed)]
            last = max([2, *(file.fileno() for file in held)])
            for most in range(last + 4, last + 26):
                ended = limited(resource.RLIMIT_NOFILE, most, [TIDEMARK, "record", "-f", "-o", "t.tide", "true"],
                                pass_fds=[file.fileno() for file in held])
                check(ended.returncode == 0 or "ulimit -n" in ended.stderr, (most, ended))
                recorded.append("1 process, 0 events lost" in ended.stderr)
            equal([0] * handed, [os.path.getsize(f"held{i}") for i in range(handed)], "sizes of other files")
        check(recorded[-1] and not recorded[0], (handed, recorded))
        recorded.clear()


@test
def processes_that_the_collector_has_no_descriptors_for_are_named_and_not_waited_for():
    began = time.monotonic()
    ended = limited(resource.RLIMIT_NOFILE, 40,
                    [TIDEMARK, "record", "-o", "t.tide", "sh", "-c",
                     "for i in $(seq 30); do sleep 1 & done; wait"])
    took = time.monotonic() - began
    equal(0, ended.returncode, f"exit code ({ended.stderr})")
    check(ended.stderr.count("open files is limited to 40 (ulimit -n") > 20, ended.stderr)
    said = run([TIDEMARK, "info", "t.tide"]).out
    check("no exact place" not in said and "not listed" not in said, said)
    check(took < 20, f"{took} s")  # a second for each that it waited for


@test
def what_is_refused_for_want_of_descriptors_holds_none():
    """Sixty that come one after the other, where there are some for one process alone."""
    ended = limited(resource.RLIMIT_NOFILE, 24,
                    [TIDEMARK, "record", "-o", "t.tide", "sh", "-c", "for i in $(seq 60); do /bin/true; done"])
    equal(0, ended.returncode, f"exit code ({ended.stderr})")
    check(ended.stderr.count("/true, is not recorded: the number of open files") > 50, ended.stderr)
    check("Too many open files" not in ended.stderr, ended.stderr)


@test
def what_is_refused_for_want_of_descriptors_is_named_once():
    """Also where the image before it had announced it."""
    ended = limited(resource.RLIMIT_NOFILE, 24, [TIDEMARK, "record", "-o", "t.tide", "sh", "-c", "exec env true"])
    equal(0, ended.returncode, f"exit code ({ended.stderr})")
    for name in ("env", "true"):
        equal(1, ended.stderr.count(f"/{name}"), f"lines about {name} in {ended.stderr}")


@test
def a_stripped_static_executable_runs_and_we_say_why_nothing_is_seen():
    equal(0, run(["strip", "-o", "still_static", program("still_static")]).code, "strip")
    ended = run([TIDEMARK, "record", "-o", "t.tide", "./still_static", "0"])
    equal(0, ended.code, f"exit code ({ended.err})")
    equal("ready\n", ended.out, "standard output")
    check("statically" in ended.err, "no message:", ended.err)
    equal(0, run([TIDEMARK, "info", "t.tide"]).code, "info of the empty trace")
    ended = run([TIDEMARK, "record", "--strict", "-o", "s.tide", "./still_static", "0"])
    equal(125, ended.code, "exit code under --strict")
    equal("", ended.out, "nothing was started")
    check(not os.path.exists("s.tide"), "a file was left behind")


@test
def a_stripped_static_child_is_told_as_well():
    equal(0, run(["strip", "-o", "still_static", program("still_static")]).code, "strip")
    ended = run([TIDEMARK, "record", "-o", "t.tide", "sh", "-c", "./still_static 0; true"])
    equal(0, ended.code, f"exit code ({ended.err})")
    trace = Trace()
    unseen = [line for kind, _, line in trace.notes if kind == "exec-unseen"]
    check(any("still_static" in line for line in unseen), "no note:", trace.notes)
    equal(1, sum("still_static" in line for line in ended.lines()[:-2]), f"lines in {ended.err}")
    ended = run([TIDEMARK, "record", "--strict", "-o", "s.tide", "sh", "-c",
                 "./still_static 0; true"])
    equal(125, ended.code, "exit code under --strict")


def tiny_program_of_32_bits(path):
    """exit(42), in 96 bytes."""
    code = bytes.fromhex("b801000000" "bb2a000000" "cd80")
    base = 0x8048000
    header = struct.pack("<16sHHIIIIIHHHHHH", b"\x7fELF\1\1\1", 2, 3, 1, base + 84, 52, 0, 0,
                         52, 32, 1, 0, 0, 0)
    segment = struct.pack("<8I", 1, 0, base, base, 84 + len(code), 84 + len(code), 5, 0x1000)
    with open(path, "wb") as file:
        file.write(header + segment + code)
    os.chmod(path, 0o755)


@test
def a_program_of_32_bits_that_cannot_be_recorded_runs_and_we_say_why():
    tiny_program_of_32_bits("tiny")
    try:
        equal(42, run(["./tiny"]).code, "exit code untraced")
    except OSError as problem:
        raise Skip(f"this kernel runs no 32-bit programs ({problem})") from problem
    ended = run([TIDEMARK, "record", "-o", "t.tide", "./tiny"])
    equal(42, ended.code, f"exit code ({ended.err})")
    check("linked statically" in ended.err, "no message:", ended.err)
    # Where there is no recorder for it, that is what we say.
    shutil.copy(LIBRARY, "lonely.so")
    variables = environment(TIDEMARK_LIBRARY=os.path.abspath("lonely.so"))
    ended = run([TIDEMARK, "record", "-o", "u.tide", "./tiny"], env=variables)
    equal(42, ended.code, f"exit code ({ended.err})")
    check("32-bit program" in ended.err, "no message:", ended.err)
    check("ld.so" not in ended.err, "the loader complains:", ended.err)
    ended = run([TIDEMARK, "record", "--strict", "-o", "s.tide", "./tiny"])
    equal(125, ended.code, f"exit code under --strict ({ended.err})")


@test
def a_setuid_executable_runs_and_we_say_why_nothing_is_seen():
    need_root()
    parent = os.path.abspath(".")
    while parent != "/":
        os.chmod(parent, os.stat(parent).st_mode | 0o011)
        parent = os.path.dirname(parent)
    os.mkdir("own")
    for path in (TIDEMARK, LIBRARY, program("still")):
        shutil.copy(path, "own")
    os.chmod("own", 0o777)
    os.chmod("own/still", 0o4755)
    own = os.path.abspath("own")
    if os.statvfs(own).f_flag & os.ST_NOSUID:
        raise Skip("setuid has no effect on this file system")
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    command = [*nobody, os.path.join(own, "tidemark"), "record", "-o", "t.tide"]
    ended = run([*command, os.path.join(own, "still"), "0"], cwd=own)
    equal(0, ended.code, f"exit code ({ended.err})")
    equal("ready\n", ended.out, "standard output")
    check("setuid" in ended.err, "no message:", ended.err)
    ended = run([*command[:-1], "s.tide", "--strict", os.path.join(own, "still"), "0"], cwd=own)
    equal(125, ended.code, "exit code under --strict")
    equal("", ended.out, "nothing was started")


@test
def nothing_of_ours_is_left_running():
    recorder = started([program("still"), "0"])
    collector = collector_of(recorder.pid)
    finished(recorder)
    check(not runs(collector), "the collector lives on")


@test
def a_killed_launcher_leaves_the_program_running_and_the_trace_whole():
    path = os.path.abspath("counters")
    recorder = started([program("still"), "1", "10"], env=environment(COUNTERS=path))
    collector = collector_of(recorder.pid)
    recorder.kill()
    recorder.communicate(timeout=PATIENCE_SECONDS)
    wait_for(lambda: not runs(collector), "the collector's end")
    trace = Trace()
    check(trace.end is not None, "the trace was not closed")
    equal(counters(path)[1][0], len(trace.of_size(7901)), "blocks of the program")


@test
def a_thread_for_which_there_is_one_mapping_left_takes_the_pages_of_one_lane():
    with open("/proc/sys/vm/max_map_count", encoding="ascii") as file:
        if int(file.read()) > 100000:
            raise Skip("more mappings are allowed than the program makes (vm.max_map_count)")
    ended = run([TIDEMARK, "record", "-o", "t.tide", program("few_maps")])
    equal(0, ended.code, f"exit code ({ended.err})")
    lane_pages = 740
    check(int(ended.out) < 2 * lane_pages, f"{ended.out} pages of addresses")
    said = run([TIDEMARK, "info", "t.tide"]).out
    check("no memory could be had to record more threads" in said, said)


main()
