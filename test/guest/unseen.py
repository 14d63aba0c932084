#!/usr/bin/env python3
"""Who is seen to begin is recorded, or told of by name: never silently missing."""
# timeout: 180
# parallel: yes
import json
import os
import re
import shutil
import struct

from libguest import (LIBRARY, TIDEMARK, Skip, Trace, check, equal, main, need_root, program, record,
                      run, test, wait_for)

PROGRAM = ["/bin/echo", "ready"]
WAYS = ["fork", "bare", "raw", "clone", "clone3", "cloned", "double"]
IMAGES = ["execve", "execveat", "fexecve", "memfd", "raw-execveat", "spawn", "vfork"]


def recorded(*words):
    ended = run([TIDEMARK, "record", "--force", "-o", "t.tide", program("starts"), *words])
    if ended.code == 77:
        raise Skip(f"starts {' '.join(words)}: {ended.err.splitlines()[0]}")
    equal(0, ended.code, f"exit code of {words} ({ended.err})")
    return ended


def complete():
    """What every command says of it."""
    said = set()
    for command in ("info", "report", "window"):
        ended = run([TIDEMARK, command, "--json", "t.tide"])
        equal(0, ended.code, f"{command} ({ended.err})")
        data = json.loads(ended.out)
        said.add(data["trace"]["complete"] if "trace" in data else data["complete"])
    equal(1, len(said), f"answers to whether it is whole: {said}")
    return said.pop()


def check_told(ended, *names, answers=False):
    """The user and the trace say that it is not recorded, and every answer."""
    check(any("not recorded" in line and all(name in line for name in names)
              for line in ended.lines()), "stderr does not say so:", ended.err)
    trace = Trace()
    unseen = [line for kind, _, line in trace.notes if kind == "exec-unseen"]
    check(any(all(name in line for name in names) for line in unseen), "no note:", trace.notes)
    check(int(trace.end["unseen"]) > 0, trace.end)
    if not answers:
        return
    check(not complete(), "the trace is called whole")
    for command in ("info", "report"):
        ended = run([TIDEMARK, command, "t.tide"])
        said = " ".join((ended.out + ended.err).split())
        check(all(name in said for name in names),
              f"{command} does not name it: {ended.out} {ended.err}")


def check_strict(*words):
    ended = run([TIDEMARK, "record", "--force", "--strict", "-o", "s.tide", program("starts"),
                 *words])
    equal(125, ended.code, f"exit code of {words} under --strict ({ended.err})")


def check_seen(ended, processes, size=7701, blocks=10):
    trace = Trace()
    equal(processes, len(trace.processes), f"processes ({ended.err})")
    equal(blocks, len(trace.of_size(size)) if blocks else blocks, "blocks of the child")
    equal("", trace.end.get("unseen", ""), f"programs that were not recorded ({ended.err})")


@test
def children_by_every_way_are_recorded():
    for way in WAYS:
        check_seen(recorded(way), 3 if way == "double" else 2)
    check(complete(), "the trace is not called whole")


@test
def images_by_every_way_are_recorded_with_an_empty_environment():
    for way in IMAGES:
        for environment in ("env=empty", "env=nonsense"):
            ended = recorded(environment, way, *PROGRAM)
            check_seen(ended, 2, 0, 0)
            equal("ready\n", ended.out, f"output by {way}")


@test
def an_image_whose_environment_names_another_recording_is_told_of():
    for way in IMAGES:
        check_told(recorded("env=other", way, *PROGRAM), "another recording",
                   answers=way == "execve")
    check_strict("env=other", "execve", *PROGRAM)


@test
def an_image_that_has_other_rights_than_its_parent_is_told_of_with_the_reason():
    """Of a file with capabilities, which no user but root gets without; and where the parent's ids differ."""
    need_root()
    parent = os.path.abspath(".")
    while parent != "/":
        os.chmod(parent, os.stat(parent).st_mode | 0o011)
        parent = os.path.dirname(parent)
    os.chmod(".", 0o777)
    for path in (TIDEMARK, LIBRARY, "/bin/echo"):
        shutil.copy(path, ".")
    try:  # VFS_CAP_REVISION_2, effective: CAP_NET_RAW
        os.setxattr("echo", "security.capability", struct.pack("<5I", 0x02000001, 1 << 13, 0, 0, 0))
    except OSError as err:
        raise Skip(f"the file system has no capabilities: {err}") from err
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    for words in ([*nobody, "./tidemark"], [TIDEMARK]):
        starts = "./echo ready; exit 0" if words != [TIDEMARK] else "setpriv --euid=65534 /bin/echo ready; exit 0"
        ended = run([*words, "record", "--force", "-o", "t.tide", "sh", "-c", starts])
        equal((0, "ready\n"), (ended.code, ended.out), ended.err)
        check_told(ended, "echo", "other privileges")


@test
def an_image_that_has_no_descriptor_left_is_told_of_with_the_reason():
    for bits in ("ulimit -n 4; exec", "ulimit -n 5; exec 4</dev/null; exec"):
        ended = record(["sh", "-c", f"{bits} {' '.join(PROGRAM)}"], "--force")
        check("descriptors leaves no room for the recorder's two" in ended.err, ended.err)


@test
def an_image_that_has_no_room_for_the_recorder_is_told_of_as_itself():
    """With a limit at which perl runs and joins, and its recorder then has no memory for its tables."""
    said = []
    for limit in range(11000, 16000, 500):
        ended = run([TIDEMARK, "record", "--force", "-o", "t.tide", "sh", "-c",
                     f"ulimit -v {limit}; exec /usr/bin/perl -e 1"]) # at 11000 perl has too little itself
        check("a child that" not in ended.err and "a forked child" not in ended.err, ended.err)
        said += re.findall(r"/usr/bin/perl is not recorded: .*ulimit -v", ended.err)
    check(said, "no limit was such that it is said")


@test
def a_child_that_cannot_map_its_segment_is_told_of():
    release = [int(part) for part in os.uname().release.split("-")[0].split(".")[:2]]
    if release < [6, 16]:
        raise Skip("needs Linux 6.16: a forked child waits for an answer before")
    ended = record(["sh", "-c", "ulimit -v 1000; (exit 0); exit 0"], "--force")
    check_told(ended, "a forked child", "could not map", answers=True)


@test
def a_child_that_cannot_map_its_segment_is_told_of_however_it_ends():
    killed = "(read pid rest </proc/self/stat; kill -9 $pid)"
    for limits in ("ulimit -v 1000", "ulimit -f 1000; ulimit -v 1000"):  # the second waits
        for ends in ("(exit 0)", killed):
            ended = record(["sh", "-c", f"{limits}; {ends}; exit 0"], "--force")
            check_told(ended, "a forked child", "could not map", answers=True)


@test
def a_child_in_another_namespace_is_recorded():
    need_root()
    for obstacles in (["net"], ["users"], ["pids"], ["net", "pids"]):
        for way in WAYS if obstacles == ["net"] else ["fork", "clone3"]:
            check_seen(recorded(*obstacles, way), 3 if way == "double" else 2)
    check(complete(), "the trace is not called whole")


@test
def an_image_in_another_namespace_is_recorded():
    need_root()
    for obstacles in (["net"], ["users"], ["net", "pids"]):
        for way in IMAGES if obstacles == ["net"] else ["spawn", "vfork"]:
            ended = recorded(*obstacles, way, *PROGRAM)
            equal("ready\n", ended.out, f"output by {way}")
            check_seen(ended, 2, 0, 0)
    check(complete(), "the trace is not called whole")


SANDBOXES = {
    "unshare": (["unshare", "-Urnpf", "--mount-proc"],),
    "bwrap": (["bwrap", "--bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--unshare-all"],
              ["bwrap", "--ro-bind", "/", "/", "--bind", "/tmp", "/tmp", "--unshare-net"],
              ["bwrap", "--ro-bind", "/", "/", "--tmpfs", "/tmp", "--unshare-pid"]),
}


def sandboxed(tool):
    for command in SANDBOXES[tool]:
        if shutil.which(tool) is None or run([*command, "true"]).code != 0:
            raise Skip(f"cannot run {' '.join(command)}")
        ended = run([TIDEMARK, "record", "--strict", "--force", "-o", "t.tide", "--", *command,
                     "ls", "/usr"])
        equal(0, ended.code, f"{command}: {ended.err}")
        trace = Trace()
        names = [os.path.basename(fields["exe"]) for fields in trace.processes.values()]
        check("ls" in names and len(trace.events) > 100, f"{command}: {names}")
        check(complete(), "the trace is not called whole")


@test
def an_image_that_is_stopped_for_long_before_it_can_say_hello_is_waited_for():
    script = f"(sleep 13; kill -CONT $$) & exec {program('held_start')}"
    ended = run([TIDEMARK, "record", "--force", "-o", "t.tide", "sh", "-c", script])
    equal(0, ended.code, ended.err)
    check("not recorded" not in ended.err, ended.err)
    trace = Trace()
    equal(30, len(trace.of_size(7102)), "blocks of the image")
    equal("", trace.end.get("unseen", ""), "programs that were not recorded")


@test
def what_runs_in_the_namespaces_of_unshare_is_recorded():
    sandboxed("unshare")


@test
def what_runs_in_bubblewrap_is_recorded():
    sandboxed("bwrap")


@test
def a_collector_inside_of_a_sandbox_with_a_read_only_root_records():
    if shutil.which("bwrap") is None:
        raise Skip("needs bubblewrap")
    here = os.getcwd()
    command = ["bwrap", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--bind", here,
               here, "--unshare-all"]
    if run([*command, "true"]).code != 0:
        raise Skip(f"cannot run {' '.join(command)}")
    ended = run([*command, TIDEMARK, "record", "--strict", "-o", "t.tide", "ls", "/usr"])
    equal(0, ended.code, ended.err)
    check(len(Trace().events) > 100, "few events")


@test
def nothing_stays_in_tmp():
    before = set(os.listdir("/tmp"))
    recorded("fork")
    new = {name for name in os.listdir("/tmp") if name.startswith(".tidemark")} - before
    # Others record, too: what is theirs goes when they end.
    wait_for(lambda: not new & set(os.listdir("/tmp")), f"an end of {new} in /tmp", pause=0.1)


@test
def a_child_that_the_collector_is_out_of_reach_for_is_recorded():
    need_root()
    for obstacles in (["net", "hidden"], ["net", "pids", "hidden"]):
        for way in WAYS if "pids" not in obstacles else ["fork", "double"]:
            check_seen(recorded(*obstacles, way), 3 if way == "double" else 2)
            check_pids()
    check(complete(), "the trace is not called whole")


def check_pids():
    """Each process is the one that we see, whatever it calls itself."""
    pids = [int(fields["pid"]) for fields in Trace().processes.values()]
    check(min(pids) > 100 and len(set(pids)) == len(pids), f"pids {pids}")


@test
def children_one_after_the_other_take_over_what_others_had():
    need_root()
    check_seen(recorded("net", "hidden", "line"), 101, blocks=1000)


@test
def a_child_that_nothing_was_prepared_for_is_told_of():
    need_root()
    for way in WAYS:
        check_told(recorded("unseen", way), "forked", "not to be reached", answers=way == "raw")
    check_strict("unseen", "fork")


@test
def an_image_that_the_collector_is_out_of_reach_for_is_told_of():
    need_root()
    for way in IMAGES:
        ended = recorded("net", "hidden", way, *PROGRAM)
        equal("ready\n", ended.out, f"output by {way}")
        check_told(ended, "image" if way == "memfd" else "echo")
    check_strict("net", "hidden", "execve", *PROGRAM)
    check_strict("net", "hidden", "vfork", *PROGRAM)


@test
def a_filtered_image_in_another_root_is_told_of_and_its_linker_does_not_complain():
    """As systemd-nspawn and flatpak start programs: a root of their own, and a filter (seccomp)."""
    hide = ["--tmpfs", os.path.dirname(os.path.abspath(TIDEMARK))]
    with open("let.bpf", "wb") as file:
        file.write(struct.pack("HBBI", 0x06, 0, 0, 0x7fff0000))
    command = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", *hide]
    if shutil.which("bwrap") is None or run([*command, "true"]).code != 0:
        raise Skip(f"cannot run {' '.join(command)}")
    for script in ("exec bwrap", "exec bwrap --unshare-pid"):
        ended = run([TIDEMARK, "record", "--force", "-o", "t.tide", "--", "/bin/sh", "-c",
                     f"exec 9<let.bpf; {script} --seccomp 9 \"$@\"", "sh", *command[1:], *PROGRAM])
        equal("ready\n", ended.out, ended.err)
        check("ld.so" not in ended.err, ended.err)
        check_told(ended, "echo", "out of its reach")


LINKER = "/lib64/ld-linux-x86-64.so.2"


@test
def a_program_that_the_linker_is_told_to_run_is_recorded():
    for words in (LINKER, f"env -i {LINKER}", f"{LINKER} --argv0 other"):
        ended = run([TIDEMARK, "record", "--force", "--strict", "-o", "t.tide", "sh", "-c",
                     f"{words} /bin/sh -c 'echo ready'; true"])
        equal((0, "ready\n"), (ended.code, ended.out), f"{words} ({ended.err})")
        check(complete(), f"the trace of {words} is called cut ({ended.err})")
        check(len(Trace().processes) >= 2, f"{words}: {ended.err}")


@test
def a_linker_that_only_answers_is_nothing_that_is_missing():
    for words in (f"{LINKER} --verify /bin/sh", f"{LINKER} --list /bin/sh", "ldd /bin/sh"):
        ended = run([TIDEMARK, "record", "--force", "--strict", "-o", "t.tide", "sh", "-c",
                     f"{words} >out; true"])
        equal(0, ended.code, f"exit code of {words} under --strict ({ended.err})")


# Execs WORDS with so many bytes of arguments behind them; 7 is for more than there may be.
EXECS = """
import os, resource
resource.setrlimit(resource.RLIMIT_STACK, (1 << 20, 1 << 20))
def execs(size):
    words = WORDS + ["x" * 1000] * (size // 1000) + ["x" * (size % 1000)]
    try:
        os.execve(words[0], words, ENVIRONMENT)
    except OSError:
        os._exit(7)
def starts(size):
    pid = os.fork() or execs(size)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 7
"""
MOST = """
low, high = 0, 1 << 20
while high - low > 1:
    middle = (low + high) // 2
    low, high = (middle, high) if starts(middle) else (low, middle)
print(low)
"""


def execs(words, environment, then):
    script = EXECS.replace("WORDS", repr(words)).replace("ENVIRONMENT", environment)
    return ["/usr/bin/python3", "-c", script + then]


def most(words, environment="{}"):
    """So many bytes of arguments have room without us."""
    bytes_ = int(run(execs(words, environment, MOST)).out.split()[-1])
    check(bytes_ > 100000, f"most bytes of arguments: {bytes_}")
    return bytes_


@test
def an_image_whose_arguments_leave_no_room_for_the_recorder_starts_and_is_told_of():
    for environment in ("{}", "os.environ"):
        bytes_ = most(["/bin/true"], environment)
        for then in (f"execs({bytes_})", f"if not starts({bytes_}): raise SystemExit(9)"):
            command = execs(["/bin/true"], environment, then)
            ended = run([TIDEMARK, "record", "--force", "-o", "t.tide", *command])
            equal(0, ended.code, f"exit code with {environment} ({ended.err})")
            check_told(ended, "/bin/true", "no room", answers=True)
        equal(125, run([TIDEMARK, "record", "--force", "--strict", "-o", "s.tide", *command]).code,
              "exit code under --strict")


@test
def a_program_whose_arguments_leave_no_room_for_the_recorder_starts_and_is_told_of():
    os.symlink(TIDEMARK, "t")  # what it is called must not leave the room
    words = ["./t", "record", "--force", "-o", "t.tide", "--", "/bin/echo"]
    bytes_ = most(words)
    ended = run(execs(words, "{}", f"execs({bytes_})"))
    equal((0, bytes_), (ended.code, len(ended.out.replace(" ", "")) - 1), f"{ended.err}")
    check(any("no room" in line for line in ended.lines()), ended.err)
    trace = Trace()
    check(int(trace.end["unseen"]) > 0, trace.end)
    words.insert(2, "--strict")
    ended = run(execs(words, "{}", f"execs({most(words)})"))
    equal((125, ""), (ended.code, ended.out), f"under --strict ({ended.err})")


@test
def a_child_without_a_descriptor_left_is_recorded():
    for way in WAYS:
        check_seen(recorded("fds", way), 3 if way == "double" else 2)
    check(complete(), "the trace is not called whole")


@test
def a_child_that_may_open_no_descriptor_is_recorded():
    for limit in ("fds=now", "fds=never"):
        for way in ("fork", "raw", "clone3", "double"):
            check_seen(recorded(limit, way), 3 if way == "double" else 2)
        check(complete(), f"the trace is not called whole ({limit})")


@test
def what_libraries_that_audit_allocate_is_told():
    with open("audits.c", "w", encoding="ascii") as file:
        file.write("unsigned la_version(unsigned version) { return version; }\n")
    made = run(["gcc", "-shared", "-fPIC", "-o", "audits.so", "audits.c"])
    equal(0, made.code, made.err)
    with open("audited.c", "w", encoding="ascii") as file:
        file.write("int main(void) { return 0; }\n")
    for option in ("--audit", "--depaudit"):
        made = run(["gcc", "-o", "audited" + option, "audited.c", f"-Wl,{option}=./audits.so"])
        equal(0, made.code, made.err)
    for program in (["/usr/bin/env", "LD_AUDIT=./audits.so", "/bin/ls", "/"], ["./audited--audit"],
                    ["./audited--depaudit"]):
        for words, code in (([], 0), (["--strict"], 125)):
            ended = run([TIDEMARK, "record", *words, "-o", "a.tide", "-f", "--", *program])
            equal(code, ended.code, ended.err)
            for text in (ended.err, run([TIDEMARK, "info", "a.tide"]).out,
                         run([TIDEMARK, "report", "--json", "a.tide"]).out):
                check("LD_AUDIT" in text, program, text)
    # A static program has no linker that reads the variable.
    made = run(["gcc", "-static", "-o", "alone", "audited.c"])
    equal(0, made.code, made.err)
    ended = run([TIDEMARK, "record", "--strict", "-o", "a.tide", "-f", "--", "/usr/bin/env", "-i",
                 "/bin/sh", "-c", "LD_AUDIT=./audits.so exec ./alone"])
    check("LD_AUDIT" not in ended.err, ended.err)


STARTS_LS = """
#include <stdlib.h>
int main(int count, char **) { free(malloc(1000)); return count > 1 ? 0 : system("/bin/true"); }
"""


@test
def the_program_itself_is_said_to_be_missing_where_what_it_starts_is_recorded():
    """A static one that is stripped: a trace of its children alone looked whole."""
    with open("alone.c", "w", encoding="utf-8") as file:
        file.write(STARTS_LS)
    made = run(["gcc", "-static", "-s", "-o", "alone", "alone.c"])
    equal(0, made.code, made.err)
    for words in ([], ["childless"]):
        ended = run([TIDEMARK, "record", "--force", "-o", "t.tide", "./alone", *words])
        equal(0, ended.code, ended.err)
        equal(1, ended.err.count("./alone is linked statically, and stripped"), ended.err)
        check(not complete(), "the trace is called whole")
        for command in ("info", "report"):
            said = " ".join(run([TIDEMARK, command, "t.tide"]).out.split())
            equal(1, said.count("./alone is linked statically, and stripped"), said)
            check("say hello" not in said, said)
        equal(1, int(Trace().end["unseen"]), words)


@test
def what_valgrind_runs_is_said_to_be_unseen():
    """It refuses what the recorder maps, and most of its tools take malloc's place."""
    if not shutil.which("valgrind"):
        raise Skip("no valgrind")
    for tool in ("none", "memcheck"):
        ended = run([TIDEMARK, "record", "--force", "-o", "t.tide", "valgrind", "-q", f"--tool={tool}", *PROGRAM])
        equal(0, ended.code, ended.err)
        check_told(ended, "it runs inside valgrind", "try: without valgrind", answers=True)
        said = " ".join(run([TIDEMARK, "report", "t.tide"]).out.split())
        check(tool == "memcheck" or "were lost: it ran inside valgrind" in said, said)
        check("ulimit" not in said and "should not be" not in said, said)
        # The program's user would take an error of ours for one of the program's.
        equal([], [line for line in ended.err.splitlines() if line.startswith("==")], tool)


@test
def what_qemu_emulates_is_left_alone_and_said_to_be_unseen():
    """It hands its environment to the program, which finds the recorder there and the pid of a
    process that is recorded."""
    if not shutil.which("qemu-x86_64"):
        raise Skip("no qemu-x86_64")
    ended = run([TIDEMARK, "record", "--force", "-o", "t.tide", "qemu-x86_64", "/bin/sh", "-c",
                 "echo ready; (exit 3); exit $?"])
    equal((3, "ready\n"), (ended.code, ended.out), ended.err)
    check_told(ended, "it emulates a program", answers=True)
    processes = json.loads(run([TIDEMARK, "info", "--json", "t.tide"]).out)["processes"]
    equal(["qemu-x86_64"] * 2, [os.path.basename(each["exe"]) for each in processes])
    # The recorder alone begins no recording there.
    alone = run(["qemu-x86_64", "-E", f"LD_PRELOAD={LIBRARY}", *PROGRAM])
    equal((0, "ready\n"), (alone.code, alone.out), alone.err)
    equal([], [name for name in os.listdir(".") if "qemu" in name], "traces")


GO = """
#include <stdlib.h>

__asm__(".pushsection .note.go.buildid,\\"a\\",@note\\n.long 4, 4, 4\\n.asciz \\"Go\\"\\n.byte 0\\n"
	".long 1\\n.popsection");

int main(void)
{
	return !malloc(7);
}
"""


@test
def a_heap_of_gos_is_said_to_be_in_no_figure():
    with open("go.c", "w", encoding="ascii") as file:
        file.write(GO)
    made = run(["gcc", "-O0", "-o", "go", "go.c"])
    equal(0, made.code, made.err)
    ended = run([TIDEMARK, "record", "--strict", "--force", "-o", "t.tide", "./go"])
    equal(0, ended.code, ended.err)
    check("Go, by its own functions" in run([TIDEMARK, "info", "t.tide"]).out, "info")
    said = " ".join(run([TIDEMARK, "report", "t.tide"]).out.split())
    check("own heap: what its garbage collector gives out is in no figure" in said, said)
    check("programs that it starts without our LD_PRELOAD" in said, said)


RUNTIME = """
#include <stdlib.h>
#include <sys/mman.h>

SIGN

static void *other(size_t size)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

int main(void)
{
	return !malloc(7) || other(32 << 20) == MAP_FAILED || other(4096) == MAP_FAILED;
}
"""


@test
def a_program_that_has_a_runtime_inside_is_said_to_have_and_its_mappings_are_that_heap_s():
    for sign, language, heap in (("int DotNetRuntimeInfo = 1;", ".NET", ".NET heap"),
                                 ("void graal_create_isolate(void) {} void JNI_CreateJavaVM(void) {}", "GraalVM native image",
                                  "GraalVM heap")):
        with open("runtime.c", "w", encoding="ascii") as file:
            file.write(RUNTIME.replace("SIGN", sign))
        made = run(["gcc", "-O0", "-rdynamic", "-o", "runtime", "runtime.c"])
        equal(0, made.code, made.err)
        ended = run([TIDEMARK, "record", "--strict", "--force", "-o", "t.tide", "./runtime"])
        equal(0, ended.code, ended.err)
        check(f"{language}, by its own functions" in run([TIDEMARK, "info", "t.tide"]).out, "info")
        said = " ".join(run([TIDEMARK, "report", "t.tide"]).out.split())
        check("own heap: the collector's heap as mappings" in said, said)
        answer = json.loads(run([TIDEMARK, "window", "--layer", "vm", "--by", "heap", "--json", "t.tide"]).out)
        check(any(row["keys"]["heap"] == heap and row["size"] >= 32 << 20 for row in answer["rows"]), answer["rows"])


LARGE = """
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(void)
{
	usleep(300000);
	for (int i = 0; i < 8; i++) {
		memset(malloc(16 << 20), 1, 16 << 20);
		usleep(150000);
	}
	return 0;
}
"""


def resident(notes):
    """A value of 0, as of a process that has become another program, is left out of a line."""
    values = [re.search(r"value=(\d+)", line) for kind, _, line in notes if kind == "rss"]
    return [int(value[1]) if value else 0 for value in values]


@test
def memory_of_a_program_that_is_not_recorded_is_nobody_elses():
    """A process that becomes one is not measured as what it was before."""
    with open("large.c", "w", encoding="ascii") as file:
        file.write(LARGE)
    for options in (["-static", "-s", "-o", "unseen"], ["-o", "seen"]):
        made = run(["gcc", *options, "large.c"])
        equal(0, made.code, made.err)
    for script in ("exec ./unseen", "(exec ./unseen); true"):
        ended = run([TIDEMARK, "record", "--force", "--rss-exact", "-o", "t.tide", "/bin/sh", "-c", script])
        equal(0, ended.code, ended.err)
        check_told(ended, "unseen", "stripped")
        processes = json.loads(run([TIDEMARK, "info", "--json", "t.tide"]).out)["processes"]
        check(all((each["rss_max_bytes"] or 0) < 16 << 20 for each in processes), script, processes)
        notes = Trace().notes
        check("should be mapped" not in str(notes), script, notes)
        check(all(value < 16 << 20 for value in resident(notes)), script, notes)
    # An exec that fails changes nothing.
    code = ("import os, time\ntry:\n os.execv('./nothing', ['nothing'])\nexcept OSError:\n"
            " kept = b'x' * (64 << 20)\n time.sleep(.5)\n")
    record(["python3", "-S", "-c", code], "--force")
    process = json.loads(run([TIDEMARK, "info", "--json", "t.tide"]).out)["processes"][0]
    check(process["rss_max_bytes"] > 64 << 20, process)
    check(max(resident(Trace().notes)) > 64 << 20, "measured no more")


main()
