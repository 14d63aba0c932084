#!/usr/bin/env python3
# timeout: 240
# parallel: yes
"""What all commands that write a file promise: a file that is there is kept unless --force says
otherwise, which is told before the work; a pipe is written to and stays one; a tool that is needed is
missed before the work. And the pages of the manual, which are files too."""
import glob
import os
import re
import resource
import shutil
import signal
import stat
import subprocess
import threading

from libanswer import SOURCE, TIDEMARK, assemble, make, run
from libdisk import Disk
from libtests import Skip, main, test, wait_for


def trace(name="space"):
    return assemble(name)


def broken():
    with open(trace(), "rb") as whole, open("broken.tide", "wb") as cut:
        cut.write(whole.read()[:-20])
    return "broken.tide"


def writers():
    """Of each command that writes a file: its words but for the file, and the option that names it.
    What needs a tool that is not here is left out."""
    yield ["map", trace(), "--process", "700"], "-o", ".svg"
    if shutil.which("rsvg-convert"):
        yield ["map", trace(), "--process", "700"], "-o", ".png"
    if shutil.which("gnuplot"):
        yield ["plot", trace(), "live", "--layer", "vm"], "-o", ".svg"
        yield ["plot", trace(), "live", "--layer", "vm"], "-o", ".pdf"
    yield ["view", trace()], "--html", ".html"
    yield ["export", trace("kitchen"), "--process", "0", "--format", "heaplog"], "-o", ".heaplog"
    yield ["dump", trace()], "-o", ".txt"
    yield ["dump", "-a", os.path.join(SOURCE, "test/traces/space.txt")], "-o", ".tide"
    yield ["repair", broken()], "-o", ".tide"


def reading(path):
    """Begin to read what comes out of a pipe; call what is returned for all of it."""
    said = []

    def read():
        with open(path, "rb") as file:
            said.append(file.read())
    thread = threading.Thread(target=read, daemon=True)
    thread.start()

    def end():
        thread.join(30)
        return said[0] if said else None
    return end


@test
def a_file_that_is_there_is_kept_unless_told():
    for number, (words, option, ending) in enumerate(writers()):
        path = f"there{number}{ending}"
        with open(path, "w", encoding="ascii") as file:
            file.write("mine")
        done = run(*words, option, path, check=3)
        assert path in done.stderr and "--force" in done.stderr and not done.stdout, (words, done)
        with open(path, encoding="ascii") as file:
            assert file.read() == "mine", words
        run(*words, option, path, "-f")
        assert os.path.getsize(path) > 4, words
    assert not glob.glob("*.part") and not glob.glob("*.tmp")


@test
def what_is_read_is_not_written_over_by_whatever_name():
    """The others besides writers() that write a trace, too; names that have an ending are links. Repair in place
    is what --force of repair is for: see cli/trace."""
    more = [(["strip", trace()], "-o", ".tide"), (["trim", trace(), "--from", "0%"], "-o", ".tide"),
            (["merge", trace(), trace("kitchen")], "-o", ".tide"),
            (["import", trace()], "-o", ".tide"), (["sql", trace(), "select 1"], "-o", ".parquet"),
            (["check", trace(), "--max-peak", "1G"], "--junit", ".xml"),
            (["export", trace(), "--format", "flamegraph"], "-o", ".svg")]
    rows = [row for row in [*writers(), *more] if row[0][0] != "repair"]
    for number, (words, option, ending) in enumerate(rows):
        read = next(word for word in words if word.startswith(("space", "kitchen", "broken")) or "/" in word)
        if "/" in read: # not in the tree
            shutil.copy(read, "read.txt")
            words = ["read.txt" if word == read else word for word in words]
            read = "read.txt"
        with open(read, "rb") as file:
            was = file.read()
        soft, hard = f"soft{number}{ending}", f"hard{number}{ending}"
        os.symlink(read, soft)
        os.link(read, hard)
        fd = os.open(read, os.O_RDONLY)
        fds = f"/proc/self/fd/{fd}"
        for path in (read, "./" + read, soft, hard, fds):
            if words[0] in ("plot", "map") and not path.endswith(ending):
                continue
            force = [] if option == "--junit" else ["-f"]
            done = run(*words, option, path, *force, check=2, pass_fds=[fd])
            assert "is what is read" in done.stderr and done.stderr.count("\n") == 1, (words, done)
        with open(read, "rb") as file:
            assert file.read() == was, words
        os.close(fd)
        os.remove(soft)
        os.remove(hard)
    with open(trace(), "rb") as file:
        done = subprocess.run([os.environ["TIDEMARK"], "import", "-", "-o", trace(), "-f"], stdin=file,
                              capture_output=True, check=False, text=True)
    assert done.returncode == 2 and "is what is read" in done.stderr, done
    assert "is what is read" in run("export", trace("kitchen"), "--format", "flamegraph", "--against",
                                    trace(), "-o", trace(), "-f", check=2).stderr
    assert not glob.glob("*.part")


@test
def what_check_reads_beside_the_trace_is_not_written_over():
    limit = ["check", trace(), "--max-peak", "1G"]
    run(*limit, "--baseline", "memory.baseline", "--update")
    with open("known.supp", "w", encoding="ascii") as file:
        file.write("leak:nobody\n")
    os.link("memory.baseline", "hard.xml")
    os.symlink("known.supp", "soft.xml")
    for option in ("--junit", "--sarif"):
        for path in ("memory.baseline", "hard.xml", "known.supp", "./soft.xml"):
            with open(path, "rb") as file:
                was = file.read()
            done = run(*limit, "--baseline", "memory.baseline", "--suppressions", "known.supp", option, path, check=2)
            assert "is what is read" in done.stderr and not done.stdout, done
            with open(path, "rb") as file:
                assert file.read() == was, path
    for more in (["--junit", "hard.xml", "--baseline", "memory.baseline", "--update"], ["--junit", "x", "--sarif", "x"]):
        done = run(*limit, *more, check=2)
        assert "two files at once" in done.stderr and not done.stdout and not os.path.exists("x"), done
    run(*limit, "--junit", "/dev/null", "--sarif", "/dev/null")
    assert "no/such" in run(*limit, "--sarif", "no/such/x.sarif", check=3).stderr


@test
def what_can_not_be_written_is_told_before_the_trace_is_read():
    for words, option, ending in writers():
        file = next(at for at, word in enumerate(words) if word.startswith(("space", "kitchen"))
                    or "/" in word or word.startswith("broken"))
        words = [*words]
        words[file] = "no-such-trace"
        for path in ("no/such/folder" + ending, "there" + ending):
            with open("there" + ending, "w", encoding="ascii"):
                pass
            done = run(*words, option, path, check=3)
            # repair and dump -a open what they read first: it says whether there is work at all
            assert path in done.stderr or words[0] in ("repair", "dump"), (words, done.stderr)


@test
def a_pipe_gets_what_a_file_would_and_stays_a_pipe():
    for number, (words, option, ending) in enumerate(writers()):
        path, plain = f"pipe{number}{ending}", f"plain{number}{ending}"
        os.mkfifo(path)
        for force in ([], ["-f"]):
            read = reading(path)
            done = run(*words, option, path, *force, check=None)
            assert stat.S_ISFIFO(os.stat(path).st_mode), words
            if done.returncode != 0:  # refused: in words
                assert done.returncode == 3 and path in done.stderr, (words, done)
                with open(path, "wb"):
                    pass
                read()
                continue
            got = read()
            run(*words, option, plain, "-f")
            with open(plain, "rb") as file:
                same = file.read()
            assert got and abs(len(got) - len(same)) <= len(same) // 4, (words, len(got), len(same))
    assert not glob.glob("*.part")


@test
def a_device_is_written_to_and_stays_one():
    for words, option, ending in writers():
        link = "null" + ending
        if not os.path.lexists(link):
            os.symlink("/dev/null", link)
        run(*words, option, link, "-f")
        assert os.path.islink(link) and stat.S_ISCHR(os.stat("/dev/null").st_mode), words


@test
def a_dash_is_no_file():
    whole = trace()
    for words in (["repair", broken()], ["strip", whole], ["merge", whole, trace("kitchen")],
                  ["trim", whole, "--from", "0%"], ["view", whole, "--html", "-"]):
        words = words if "--html" in words else [*words, "-o", "-"]
        assert "./-" in run(*words, check=2).stderr, words
        assert not os.path.exists("-"), words


@test
def a_tool_that_is_missing_is_missed_before_the_work():
    """The trace is none, which only who begins to work finds out."""
    bare = {**os.environ, "PATH": "/nowhere"}
    done = run("map", "no-such-trace", "-o", "x.png", check=3, env=bare)
    assert "librsvg2-bin" in done.stderr, done.stderr
    done = run("plot", "no-such-trace", "live", "-o", "x.svg", check=3, env=bare)
    assert "gnuplot-nox" in done.stderr, done.stderr
    assert not glob.glob("x.*")


@test
def force_is_about_a_file():
    assert "--force" in run("map", trace(), "-f", check=2).stderr


@test
def what_is_kept_of_a_plot_is_a_file_too():
    if not shutil.which("gnuplot"):
        raise Skip("needs gnuplot")
    with open("kept.svg.dat", "w", encoding="ascii") as file:
        file.write("mine")
    words = ["plot", trace(), "live", "--layer", "vm", "--keep", "-o", "kept.svg"]
    assert "kept.svg.dat" in run(*words, check=3).stderr
    with open("kept.svg.dat", encoding="ascii") as file:
        assert file.read() == "mine"
    run(*words, "--force")
    assert os.path.getsize("kept.svg.dat") > 4 and os.path.exists("kept.svg.gnuplot")


@test
def bundling_twice_is_bundling_once():
    run("record", "-o", "ls.tide", "--", "/bin/ls", "/")
    assert "files added" in run("bundle", "ls.tide").stderr
    with open("ls.tide", "rb") as file:
        once = file.read()
    assert "already" in run("bundle", "ls.tide").stderr
    with open("ls.tide", "rb") as file:
        assert file.read() == once


@test
def the_version_is_told_by_all_its_names():
    told = {run(word).stdout for word in ("--version", "-V", "version")}
    assert len(told) == 1 and told.pop().startswith("tidemark "), told


@test
def every_page_of_the_manual_reads_without_a_warning():
    if not shutil.which("man"):
        raise Skip("needs man")
    pages = sorted(glob.glob(os.path.join(SOURCE, "docs/man/*.[1-9]")))
    assert len(pages) > 20
    for page in pages:
        done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", page],
                              capture_output=True, text=True,
                              env={**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "80",
                                   "MANROFFSEQ": ""})
        assert done.returncode == 0 and not done.stderr, (page, done.stderr)
    shown = subprocess.run(["man", "-E", "UTF-8", "-l", "-Tutf8",
                            os.path.join(SOURCE, "docs/man/tidemark-watch.1")], check=True,
                           capture_output=True, text=True,
                           env={**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "200"}).stdout
    shown = "".join(re.sub(".\b", "", shown).split()).replace("‐", "")
    for words in (r"Software\Microsoft\Windows NT\CurrentVersion\Image File Execution Options\NAME.exe",
                  r"C:\traces\%e.%p.tide"):
        assert words.replace(" ", "") in shown, shown


PICTURES = (".png", ".pdf")


@test
def what_does_not_fit_leaves_nothing_behind():
    path = make("many.tide", 300, 500, 20_000)
    words = [*writers(), (["trim", path, "--from", "20%"], "-o", ".tide"), (["merge", path, path], "-o", ".tide"),
             *((["export", path, "--format", name], "-o", "." + name) for name in
               ("pprof", "csv", "jsonl", "parquet", "heaptrack", "firefox", "perfetto", "speedscope", "folded", "callgrind"))]
    with Disk("full", 64 << 10):
        with open("full/other", "wb", buffering=0) as other:
            try:
                while other.write(bytes(4096)):
                    pass
            except OSError:
                pass
        for command, option, ending in words:
            done = run(*command, option, "full/out" + ending, check=3)
            # A tool that makes a picture has a word of its own.
            assert "No space left on device" in done.stderr or ending in PICTURES, (command, done.stderr)
            assert done.stderr.count("\n") == 1 or ending in PICTURES, (command, done.stderr)
            assert "full/out" in done.stderr.splitlines()[-1], (command, done.stderr)
            assert os.listdir("full") == ["other"], (command, os.listdir("full"))


@test
def what_is_ended_by_a_signal_leaves_nothing_behind():
    os.mkdir("tools")
    with open("tools/rsvg-convert", "w", encoding="ascii") as file:
        file.write("#!/bin/sh\n[ $# = 1 ] && exit 0\n: >came\nexec sleep 1000\n")
    os.chmod("tools/rsvg-convert", 0o755)
    tools = {**os.environ, "PATH": os.path.abspath("tools") + ":" + os.environ["PATH"]}
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        running = subprocess.Popen([TIDEMARK, "map", trace(), "--process", "700", "-o", "ended.png"], env=tools,
                                   start_new_session=True)
        wait_for(lambda: os.path.exists("came"), "the tool")
        assert glob.glob("ended.png.*.part")
        running.send_signal(number)
        # Ctrl-C is remembered while there is something to be ended in good order: the tool is, too.
        if number == signal.SIGINT:
            os.killpg(running.pid, signal.SIGINT)
        assert running.wait(60) == -number, number
        if number != signal.SIGINT:
            os.killpg(running.pid, signal.SIGKILL)
        assert not glob.glob("ended.png*"), number
        os.remove("came")


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


@test
def a_second_signal_waits_until_the_folder_is_removed():
    if not shutil.which("strace"):
        raise Skip("needs strace")
    os.makedirs("slow/tools")
    os.makedirs("slow/temporary")
    with open("slow/tools/gnuplot", "w", encoding="ascii") as file:
        file.write("#!/bin/sh\n: >slow/came\nexec sleep 1000\n")
    os.chmod("slow/tools/gnuplot", 0o755)
    env = {**os.environ, "PATH": os.path.abspath("slow/tools") + ":" + os.environ["PATH"],
           "TMPDIR": os.path.abspath("slow/temporary")}
    with subprocess.Popen(["strace", "-f", "-o", "slow/log", "-e", "trace=unlinkat", "-e",
                           "inject=unlinkat:delay_enter=500000", TIDEMARK, "plot", trace(), "live", "-o",
                           "slow/ended.png"], env=env, start_new_session=True) as running:
        wait_for(lambda: os.path.exists("slow/came"), "the tool")
        assert os.listdir("slow/temporary")
        (tidemark,) = children_of(running.pid)
        before = children_of(tidemark)
        os.kill(tidemark, signal.SIGTERM)
        wait_for(lambda: set(children_of(tidemark)) - set(before), "what removes the folder")
        (remover,) = set(children_of(tidemark)) - set(before)
        wait_for(lambda: "rm" in open(f"/proc/{remover}/comm", encoding="ascii").read(), "rm")
        for pid in remover, tidemark:  # as who ends a whole group sends it
            os.kill(pid, signal.SIGTERM)
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        running.wait(60)
    assert not os.listdir("slow/temporary") and not glob.glob("slow/ended*"), os.listdir("slow/temporary")


@test
def nor_does_its_folder_for_what_other_programs_read_and_write():
    os.makedirs("tools", exist_ok=True)
    os.makedirs("temporary", exist_ok=True)
    with open("tools/gnuplot", "w", encoding="ascii") as file:
        file.write('#!/bin/sh\n: >came\nexec sleep 1000\n')
    os.chmod("tools/gnuplot", 0o755)
    tools = {**os.environ, "PATH": os.path.abspath("tools") + ":" + os.environ["PATH"],
             "TMPDIR": os.path.abspath("temporary")}
    running = subprocess.Popen([TIDEMARK, "plot", trace(), "live", "-o", "ended.svg"], env=tools, start_new_session=True)
    wait_for(lambda: os.path.exists("came"), "gnuplot")
    assert os.listdir("temporary")
    running.send_signal(signal.SIGTERM)
    assert running.wait(60) == -signal.SIGTERM
    os.killpg(running.pid, signal.SIGKILL)
    assert not os.listdir("temporary") and not glob.glob("ended.svg*")


@test
def a_limit_of_file_sizes_is_a_failing_write():
    for words in (["export", "--format", "csv"], ["dump"], ["strip"]):
        done = subprocess.run([TIDEMARK, *words, trace("kitchen"), "-o", "limited"], capture_output=True, text=True,
                              check=False, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)))
        assert done.returncode == 3 and "File too large" in done.stderr, (words, done)
        assert not glob.glob("limited*"), words


main()
