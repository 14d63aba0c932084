#!/usr/bin/env python3
"""`tidemark record` and the command line: codes, signals, files, and what is said about mistakes."""
# timeout: 120
# parallel: yes
import fcntl
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import termios

from libguest import (PATIENCE_SECONDS, TIDEMARK, Trace, check, check_whole, children_of,
                      environment, equal, finished, main, program, record, report, run, started, test, wait_for)


def files():
    return sorted(os.listdir("."))


def says(ended, code, *words):
    """One line on standard error, with these words, and the code."""
    equal(code, ended.code, f"exit code ({ended.err})")
    equal(1, len(ended.err.splitlines()), f"lines of {ended.err!r}")
    for word in words:
        check(word in ended.err, f"'{word}' is not in {ended.err!r}")
    equal("", ended.out, "standard output")


@test
def the_programs_code_is_ours():
    for code in (0, 1, 7, 255):
        ended = run([TIDEMARK, "record", "-q", "-o", f"{code}.tide", "sh", "-c", f"exit {code}"])
        equal(code, ended.code, "exit code")


@test
def the_programs_signal_is_ours():
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGINT, signal.SIGPIPE):
        ended = run([TIDEMARK, "record", "-q", "-o", f"{number}.tide", "sh", "-c",
                     f"kill -{int(number)} $$"])
        equal(-number, ended.code, f"exit code ({ended.err})")
        check_whole(Trace(f"{number}.tide"))
    check(not [name for name in files() if name.startswith("core")], "a core file")


@test
def a_program_that_is_missing_is_127_and_no_file():
    says(run([TIDEMARK, "record", "no-such-program"]), 127, "no-such-program")
    says(run([TIDEMARK, "record", "./no-such-program"]), 127, "no-such-program")
    says(run([TIDEMARK, "record", "./no-such-program 100"]), 127, "without the quotes")
    says(run([TIDEMARK, "record", "no-such-program 100"]), 127, "without the quotes")
    equal([], files(), "files")


@test
def a_program_that_cannot_be_executed_is_126_and_no_file():
    with open("plain", "w", encoding="ascii") as file:
        file.write("text\n")
    says(run([TIDEMARK, "record", "./plain"]), 126, "plain", "not executable")
    says(run([TIDEMARK, "record", "/tmp"]), 126, "/tmp", "directory")
    equal(["plain"], files(), "files")


@test
def a_script_without_a_first_line_is_run_by_the_shell():
    with open("script", "w", encoding="ascii") as file:
        file.write('echo "$0 $1"; exit 3\n')
    os.chmod("script", 0o755)
    ended = run([TIDEMARK, "record", "-q", "-o", "t.tide", "./script", "word"])
    equal((3, "./script word\n"), (ended.code, ended.out), "code and output")


@test
def an_output_that_cannot_be_written_is_125_before_the_program_starts():
    says(run([TIDEMARK, "record", "-o", "no/folder/t.tide", "touch", "started"]), 125,
         "no/folder/t.tide")
    says(run([TIDEMARK, "record", "-o", ".", "touch", "started"]), 125)
    equal([], files(), "files")


@test
def an_existing_file_is_overwritten_only_when_forced():
    with open("t.tide", "w", encoding="ascii") as file:
        file.write("mine\n")
    says(run([TIDEMARK, "record", "-o", "t.tide", "touch", "started"]), 125, "t.tide", "--force")
    equal(["t.tide"], files(), "files")
    with open("t.tide", encoding="ascii") as file:
        equal("mine\n", file.read(), "the file")
    equal(0, run([TIDEMARK, "record", "--force", "-o", "t.tide", "true"]).code, "with --force")
    with open("t.tide", "rb") as trace:
        before = trace.read()
    with open("broken", "w", encoding="utf-8") as script:
        script.write("#!/nonexistent/interpreter\n")
    os.chmod("broken", 0o700)
    for asked in (["./broken"], ["/nonexistent"]):
        failed = run([TIDEMARK, "record", "--force", "-o", "t.tide", *asked])
        check(failed.code in (126, 127), (asked, failed))
        check(asked != ["./broken"] or "its interpreter /nonexistent/interpreter is missing" in failed.err,
              failed.err)
        with open("t.tide", "rb") as trace:
            equal(before, trace.read(), f"what was there before {asked}")
    equal([], [name for name in os.listdir() if name.endswith(".old")], "what is left")
    check_whole(Trace())


@test
def a_trace_is_never_written_to_what_the_program_is_reads_or_writes():
    shutil.copy("/bin/true", "own")
    with open("own", "rb") as file:
        whole = file.read()
    says(run([TIDEMARK, "record", "--force", "-o", "own", "./own"]), 125, "own", "program itself")
    with open("own", "rb") as file:
        equal(whole, file.read(), "the program")
    for stream, what in ((0, "input"), (1, "output"), (2, "errors")):
        line = f"exec {TIDEMARK} record --force -o all.txt touch started {stream}<>all.txt"
        ended = run(["sh", "-c", line])
        equal(125, ended.code, f"exit code ({ended.err})")
        with open("all.txt", encoding="utf-8") as file:
            said = ended.err + file.read()
        check(f"program's {what}" in said and "another -o" in said, said)
        os.remove("all.txt")
    says(run([TIDEMARK, "record", "--force", "-o", "/dev/stdout", "touch", "started"]), 125,
         "/dev/stdout", "program's output")
    says(run([TIDEMARK, "record", "-o", "-", "touch", "started"]), 125, "another -o")
    equal(["own"], files(), "files")
    line = f"exec {TIDEMARK} record --force -o /dev/null true >/dev/null"
    equal(0, run(["sh", "-c", line]).code, "to /dev/null, where its output goes too")


@test
def nor_to_what_it_would_have_to_wait_for():
    os.mkfifo("pipe")
    os.symlink("pipe", "link")
    for path in "pipe", "link":
        for force in [], ["--force"]:
            says(run([TIDEMARK, "record", *force, "-o", path, "touch", "started"]), 125, path, "a pipe",
                 "another -o")
    read, write = os.pipe()
    ended = subprocess.run([TIDEMARK, "record", "-f", "-o", f"/dev/fd/{write}", "touch", "started"],
                           stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                           timeout=PATIENCE_SECONDS, pass_fds=[write])
    check(ended.returncode == 125 and "a pipe" in ended.stderr, ended)
    os.close(write)
    equal(b"", os.read(read, 1), "what came through the pipe")
    os.close(read)
    master, terminal = os.openpty()
    says(run([TIDEMARK, "record", "--force", "-o", os.ttyname(terminal), "touch", "started"]), 125, "a terminal")
    os.close(master)
    os.close(terminal)
    equal(["link", "pipe"], files(), "files")


@test
def nor_to_what_the_program_is_given():
    for argument in "in.txt", "--in=in.txt", "./in.txt":
        with open("in.txt", "w", encoding="ascii") as file:
            file.write("kept\n")
        says(run([TIDEMARK, "record", "--force", "-o", "in.txt", "touch", argument]), 125, "in.txt",
             "argument", "another -o")
        with open("in.txt", encoding="ascii") as file:
            equal("kept\n", file.read(), "what the program is given")


@test
def nor_over_a_trace_that_is_being_written():
    with subprocess.Popen([TIDEMARK, "record", "-q", "-o", "t.tide", "sh", "-c", "echo begun; read x"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as recorder:
        equal("begun\n", recorder.stdout.readline(), "the first recording")
        says(run([TIDEMARK, "record", "--force", "-o", "t.tide", "touch", "started"]), 125, "t.tide",
             "another recording", "another -o")
        recorder.communicate("\n")
        equal(0, recorder.returncode, "the first recording")
    check_whole(Trace())
    equal(["t.tide"], files(), "files")


@test
def the_default_name_is_new_each_time():
    for _ in range(3):
        equal(0, run([TIDEMARK, "record", "-q", "true"]).code, "exit code")
    names = files()
    equal(3, len(names), "files")
    for name in names:
        check(re.fullmatch(r"tidemark\.true\.\d+\.tide", name), name)
        pid = int(name.split(".")[2])
        equal(pid, report(name)["trace"]["processes"][0]["pid"], "the pid in the name")


@test
def patterns_in_the_output_name_are_filled_in():
    for _ in range(2):
        equal(0, run([TIDEMARK, "record", "-q", "-o", "x%%-%e-%n.tide", "true"]).code, "code")
    equal(["x%-true-0.tide", "x%-true-1.tide"], files(), "files")
    ended = run([TIDEMARK, "record", "-q", "-o", "%p.%t.%h", "true"])
    equal(0, ended.code, "code")
    check(any(re.fullmatch(r"\d+\.\d{10}\..+", name) for name in files()), files())
    says(run([TIDEMARK, "record", "-o", "%z", "true"]), 125, "%z")


@test
def two_lines_at_the_end_and_none_with_quiet():
    ended = record(["true"])
    lines = ended.err.splitlines()
    equal(2, len(lines), f"lines of {ended.err!r}")
    check(re.fullmatch(r"tidemark: [\d.]+ \S+, [\d,]+ allocations?, [\d,]+ frees?, .* allocated, "
                       r"1 process, 0 events lost", lines[0]), lines[0])
    check(re.fullmatch(r"tidemark: trace t\.tide \(.*\); next: tidemark report t\.tide", lines[1]),
          lines[1])
    heap = report()["heap"]
    check(f"{heap['allocations']:,} allocation" in lines[0], lines[0], heap)
    check(f"{heap['frees']:,} free" in lines[0], lines[0], heap)
    equal("", record(["true"], "-q", "--force").err, "standard error with -q")


@test
def everything_after_the_program_is_the_programs():
    ended = record(["echo", "-q", "--force", "--", "-o"])
    equal("-q --force -- -o\n", ended.out, "arguments")
    equal(["echo", "-q", "--force", "--", "-o"], report()["trace"]["processes"][0]["args"],
          "arguments in the trace")


@test
def ctrl_c_reaches_the_program_and_the_trace_stays_whole():
    """By a terminal's key: of a signal to a group from another session nothing tells us that the
    program has it already."""
    ours, theirs = pty.openpty()
    recorder = started([program("still"), "100", "10"], start_new_session=True, stdin=theirs,
                       preexec_fn=lambda: fcntl.ioctl(theirs, termios.TIOCSCTTY, 0))
    os.write(ours, b"\x03")
    code, out, err = finished(recorder)
    equal(("INT\n", 6), (out, code), f"what reached the program, and its code ({err})")
    check_whole(Trace())


@test
def the_collector_is_of_our_session_and_of_no_group_of_the_terminals():
    recorder = started([program("still"), "100", "10"], start_new_session=True)
    children = [int(pid) for pid in
                open(f"/proc/{recorder.pid}/task/{recorder.pid}/children").read().split()]
    equal({os.getsid(recorder.pid)}, {os.getsid(pid) for pid in children}, "sessions")
    equal(2, len(children), "children: the program and the collector")
    equal([True, False], sorted((os.getpgid(pid) != os.getpgid(recorder.pid) for pid in children),
                                reverse=True), "who left the group")
    os.kill(recorder.pid, signal.SIGTERM)
    equal(5, finished(recorder)[0], "exit code")


@test
def a_terminal_that_hangs_up_ends_the_program_and_what_it_left_and_the_trace_stays_whole():
    pid, terminal = pty.fork()
    if pid == 0:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # as a terminal's shell has it
        rest = f"{sys.executable} -c 'print(\"ready\", flush=True); import time; time.sleep(40)'"
        os.execve(TIDEMARK, [TIDEMARK, "record", "-o", "t.tide", "sh", "-c",
                             f"{rest} & exec {rest}"], environment())
    said = b""
    while said.count(b"ready") < 2:  # a process that has done nothing yet is not in the trace
        said += os.read(terminal, 100)
    os.close(terminal)
    equal(-signal.SIGHUP, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), "how we ended")
    check_whole(Trace())
    ends = {row["pid"]: row["exit"] for row in report()["trace"]["processes"]}
    equal(["signal SIGHUP"] * 2, list(ends.values()), "how the two ended")


@test
def ctrl_c_that_ends_the_program_ends_us_by_the_same_signal():
    recorder = subprocess.Popen([TIDEMARK, "record", "-o", "t.tide", "sh", "-c",
                                 "echo ready; exec sleep 100"], env=environment(),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                start_new_session=True)
    equal(b"ready\n", recorder.stdout.readline(), "the first line")
    os.killpg(recorder.pid, signal.SIGINT)
    code, _, err = finished(recorder)
    equal(-signal.SIGINT, code, f"exit code ({err})")
    check_whole(Trace())


@test
def signals_that_are_sent_to_us_are_passed_on():
    recorder = started([program("still"), "100", "10"], start_new_session=True)
    for number, name in ((signal.SIGUSR1, b"USR1\n"), (signal.SIGHUP, b"HUP\n"),
                         (signal.SIGTERM, b"TERM\n")):
        os.kill(recorder.pid, number)
        equal(name, recorder.stdout.readline(), "what reached the program")
    code, _, err = finished(recorder)
    equal(5, code, f"exit code ({err})")
    check_whole(Trace())


# It prints what reaches it, by name; SIGALRM is in its own hands.
HEARS = """import signal
numbers = (signal.SIGINT, signal.SIGQUIT, signal.SIGWINCH, signal.SIGIO, signal.SIGALRM,
           signal.SIGRTMIN + 3, signal.SIGTSTP, signal.SIGTERM)
signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
print("ready", flush=True)
while (info := signal.sigtimedwait(numbers, 100)) and info.si_signo != signal.SIGTERM:
    print(info.si_signo, flush=True)
"""


def hears(*before, **options):
    recorder = subprocess.Popen([*before, TIDEMARK, "record", "--force", "-o", "t.tide", sys.executable,
                                 "-c", HEARS], env=environment(), stdout=subprocess.PIPE, **options)
    equal(b"ready\n", recorder.stdout.readline(), "the first line")
    return recorder


def ends(recorder, pid=None):
    os.kill(pid or recorder.pid, signal.SIGTERM)
    left, _ = recorder.communicate(timeout=PATIENCE_SECONDS)
    equal((b"", 0), (left, recorder.returncode), "what else reached the program, and its code")
    check_whole(Trace())


@test
def a_supervisors_signals_are_passed_on_whichever_they_are():
    """Those that stop nginx, postgres, apache and a service manager: SIGQUIT, SIGINT, SIGWINCH …"""
    for own_session in (True, False):
        recorder = hears(start_new_session=own_session)
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGWINCH, signal.SIGIO,
                       signal.SIGALRM, signal.SIGRTMIN + 3, signal.SIGINT):
            os.kill(recorder.pid, number)
            equal(b"%d\n" % number, recorder.stdout.readline(), "what reached the program")
        ends(recorder)


@test
def what_a_shell_sends_to_its_job_reaches_the_program_once():
    recorder = hears(process_group=0)
    os.killpg(recorder.pid, signal.SIGINT)
    equal(b"%d\n" % signal.SIGINT, recorder.stdout.readline(), "what reached the program")
    ends(recorder)


def state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        return file.read().rpartition(") ")[2][0]


@test
def what_stops_us_reaches_the_program_too_and_once():
    """In a job that a shell leads, and that somebody is there to continue."""
    for send, before in ((os.kill, ("sh", "-c", '"$@" & wait', "sh")), (os.killpg, ())):
        recorder = hears(*before, process_group=0)
        us = children_of(recorder.pid)[0] if before else recorder.pid
        send(us, signal.SIGTSTP)
        equal(b"%d\n" % signal.SIGTSTP, recorder.stdout.readline(), "what reached the program")
        wait_for(lambda pid=us: state_of(pid) == "T", "our own stop")
        send(us, signal.SIGCONT)
        ends(recorder, us)


@test
def an_alarm_that_was_set_before_us_is_the_programs():
    recorder = hears("perl", "-e", "alarm 2; exec @ARGV")
    equal(b"%d\n" % signal.SIGALRM, recorder.stdout.readline(), "what reached the program")
    ends(recorder)


@test
def processes_that_outlive_the_program_are_waited_for_until_we_are_told_to_stop():
    recorder = subprocess.Popen([TIDEMARK, "record", "-o", "t.tide", "sh", "-c",
                                 f"{program('still')} 100 10 2>/dev/null & exit 4"],
                                env=environment(), stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, start_new_session=True)
    equal(b"ready\n", recorder.stdout.readline(), "the first line")
    line = recorder.stderr.readline().decode()
    check("live on" in line, "no line says why we wait:", line)
    os.kill(recorder.pid, signal.SIGINT)
    code = recorder.wait(PATIENCE_SECONDS)
    err = recorder.stderr.read().decode()
    equal(4, code, f"exit code ({err})")
    trace = Trace()
    equal("", trace.end.get("why", ""), "why the recording ended")
    exits = [row["exit"] for row in report()["trace"]["processes"]]
    check("unknown" in exits and "exit 4" in exits, exits)
    os.killpg(recorder.pid, signal.SIGKILL)


@test
def bundle_packs_the_symbols_and_prints_nothing_on_standard_output():
    ended = record([program("resizes")], "--bundle")
    equal("100\n", ended.out, "standard output")
    check_whole(Trace())
    plain = os.path.getsize("t.tide")
    record([program("resizes")], trace="plain.tide")
    check(plain > os.path.getsize("plain.tide"), "nothing was added to the trace")
    ended = record([program("resizes")], "--bundle", trace="-x.tide")
    check("added to -x.tide" in ended.err, "nothing was added", ended.err)


@test
def tidemark_alone_says_what_it_can_do():
    ended = run([TIDEMARK])
    equal(0, ended.code, "exit code")
    check(10 <= len(ended.out.splitlines()) <= 44, ended.out)
    for command in ("record", "report", "info", "dump", "repair", "bundle"):
        check(f"\n  {command} " in ended.out, f"{command} is not in the list")
    check("collect" not in ended.out, "a command of ours is in the list")
    check(re.fullmatch(r"tidemark \d+\.\d+\.\d+\n", run([TIDEMARK, "--version"]).out), "version")


@test
def every_command_has_help_and_a_man_page_that_name_all_options():
    source = os.environ.get("TIDEMARK_SOURCE", "/")
    with open(os.path.join(source, "docs", "man", "tidemark-filters.7"), encoding="utf-8") as file:
        filters = file.read().replace("\\-", "-")
    listed = re.findall(r"^  ([a-z]+) +[a-z]", run([TIDEMARK]).out, re.M)
    check(len(listed) > 14, listed)
    for command in set(listed) - {"tidemark"}:
        ended = run([TIDEMARK, command, "--help"])
        equal(0, ended.code, f"exit code of {command} --help")
        equal(ended.out, run([TIDEMARK, "help", command]).out, f"help {command}")
        check(ended.out.startswith(f"usage: tidemark {command} "), ended.out[:80])
        options = re.findall(r"^  (?:-., |    )--([a-z-]+)", ended.out, re.M)
        check(options, "no options in", ended.out)
        with open(os.path.join(source, "docs", "man", f"tidemark-{command}.1"),
                  encoding="utf-8") as file:
            page = file.read().replace("\\-", "-")
        for option in set(options) - {"help"}:
            known = page + filters if "tidemark-filters" in page else page
            check(f"--{option}" in known, f"--{option} is not in the man page of {command}")


@test
def mistakes_get_one_line_and_the_nearest_word():
    says(run([TIDEMARK, "recrod", "ls"]), 2, "recrod", "record")
    says(run([TIDEMARK, "ls"]), 2, "unknown command 'ls'")
    says(run([TIDEMARK, "--frobnicate"]), 2, "--frobnicate")
    says(run([TIDEMARK, "record", "--forse", "ls"]), 125, "--forse", "--force")
    says(run([TIDEMARK, "record"]), 125, "program")
    says(run([TIDEMARK, "record", "-o"]), 125, "-o")
    says(run([TIDEMARK, "record", "--clock=sundial", "ls"]), 125, "sundial", "tick", "ns")
    says(run([TIDEMARK, "record", "--force=yes", "ls"]), 125, "--force")
    says(run([TIDEMARK, "report"]), 2)
    says(run([TIDEMARK, "report", "--jsno", "x"]), 2, "--json")
    says(run([TIDEMARK, "report", "no-such.tide"]), 3, "no-such.tide")
    equal([], files(), "files")


@test
def a_program_of_this_folder_is_proposed():
    with open("here", "w", encoding="ascii") as file:
        file.write("#!/bin/sh\n")
    os.chmod("here", 0o755)
    says(run([TIDEMARK, "record", "here"]), 127, "(try: ./here)")


@test
def an_output_behind_the_program_is_said_to_be_the_programs():
    ended = run([TIDEMARK, "record", "sh", "-c", "echo $@", "sh", "-o", "late.tide"])
    equal("-o late.tide\n", ended.out, "what the program got")
    check("warning: -o late.tide comes after the program" in ended.err, ended.err)
    ended = run([TIDEMARK, "record", "-o", "early.tide", "sh", "-c", "echo $@", "sh", "-o", "late.o"])
    check("warning" not in ended.err, ended.err)


@test
def a_name_in_place_of_a_pid_is_answered_with_how_to_find_it():
    says(run([TIDEMARK, "record", "-p", "nginx"]), 125, "not 'nginx'", "pgrep")


@test
def words_of_other_tools_are_answered_with_ours():
    for word, here in (("print", "tidemark report FILE"), ("tree", "window FILE --tree callers"),
                       ("leaks", "record --reachability"), ("gui", "tidemark view FILE"),
                       ("app.tide", "tidemark report app.tide")):
        says(run([TIDEMARK, word]), 2, word, here)
    says(run([TIDEMARK, "foo"]), 2, "unknown command 'foo' (try")
    for words, here in ((["-o", "a b.tide", "./app"], "tidemark record -o 'a b.tide' ./app)"),
                        (["--pid=7"], "tidemark record --pid=7)"), (["--leak-check=full", "./app"], "--reachability"),
                        (["--json", "report"], "a command comes first")):
        says(run([TIDEMARK, *words]), 2, here)
    for command, option, here in (("report", "--print-leaks", "record --reachability"), ("report", "-F", "flamegraph"),
                                  ("report", "--top", "--rows N"), ("active", "--function=x", "--frame REGEX"),
                                  ("check", "--max-leak", "--max-unreachable"), ("check", "--github", "--annotate")):
        says(run([TIDEMARK, command, option]), 2, option.split("=")[0], here)
    says(run([TIDEMARK, "record", "--leak-check=full", "./app"]), 125, "--reachability")
    says(run([TIDEMARK, "strip", "--top"]), 2, "unknown option --top", "strip --help")


@test
def what_words_of_other_tools_are_answered_with_is_there():
    with open(os.path.join(os.environ.get("TIDEMARK_SOURCE", "/"), "src", "cli", "args_habits.c"), encoding="utf-8") as file:
        rows = re.findall(r'^\t\{ "([a-z*]*)", "[^"]+",\s+"([^"]+)" \},', file.read(), re.M)
    check(len(rows) > 30, len(rows))
    for command, here in rows:
        for part in re.split(r"(?=tidemark )", here):
            named = re.match(r"tidemark ([a-z]+)", part)
            for option in re.findall(r"--([a-z-]+)", part) if named or command != "*" else []:
                at = "record" if f"record --{option}" in part else named[1] if named else command
                check(f"--{option}" in run([TIDEMARK, at, "--help"]).out, at, option)


@test
def a_library_that_cannot_be_preloaded_is_told_before_the_program_starts():
    says(run([TIDEMARK, "record", "touch", "started"],
             env=environment(TIDEMARK_LIBRARY="/no/such.so")), 125, "/no/such.so")
    os.mkdir("a blank")
    with open("a blank/lib.so", "wb"):
        pass
    says(run([TIDEMARK, "record", "touch", "started"],
             env=environment(TIDEMARK_LIBRARY="a blank/lib.so")), 125, "blank")
    equal(["a blank"], files(), "files")


@test
def a_name_that_a_shell_would_cut_is_quoted_and_a_folder_is_called_one():
    done = subprocess.run([TIDEMARK, "record", "-o", "sp ace.tide", "--", "/bin/true"], check=True, capture_output=True, text=True)
    check("next: tidemark report 'sp ace.tide'" in done.stderr, done.stderr)
    os.mkdir("folder")
    done = subprocess.run([TIDEMARK, "record", "-o", "folder", "--", "/bin/true"], check=False, capture_output=True, text=True)
    check(done.returncode and "folder is a folder (try: -o folder/" in done.stderr and "force" not in done.stderr, done.stderr)


main()
