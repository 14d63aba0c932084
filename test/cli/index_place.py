#!/usr/bin/env python3
# timeout: 120
# parallel: yes
"""Where an index lies, for whom, and for how long: with the rights of its trace, in the user's cache
where the trace's folder cannot be written to, and nowhere, in one line, where that is not possible."""
import os
import shutil
import subprocess

from libanswer import TIDEMARK
from libtests import Skip, main, test

VIEW = ("--by", "stack", "--from", "20%", "--to", "70%")


def make(path, blocks):
    with open("made.txt", "w", encoding="ascii") as file:
        file.write(f"trace id={blocks:032x}\n")
        file.write("process p pid=1\nthread t p tid=1\nframe f 0x10\nstack s f\n")
        for i in range(blocks):
            file.write(f"@{i * 1000} t malloc s {0x1000 + 64 * i} {i % 50}\n")
        file.write("end\n")
    subprocess.run([TIDEMARK, "dump", "-a", "made.txt", "-o", path, "--force"], check=True)


def ask(path, umask=-1):
    done = subprocess.run([TIDEMARK, "window", path, *VIEW], capture_output=True, text=True, umask=umask,
                          env={**os.environ, "TIDEMARK_INDEX": "always"})
    assert done.returncode == 0, done.stderr


def modes(path):
    """Of an index, the rights that others have, of the directory and of what is in it."""
    return (os.stat(path).st_mode & 0o777,
            {os.stat(os.path.join(path, name)).st_mode & 0o777 for name in os.listdir(path)})


@test
def an_index_is_for_those_who_may_read_the_trace():
    make("mine.tide", 300)
    for mode, folder, file in ((0o600, 0o700, 0o600), (0o640, 0o750, 0o640), (0o644, 0o755, 0o644),
                               (0o444, 0o755, 0o644), (0o660, 0o770, 0o660)):
        shutil.rmtree("mine.tide-index", ignore_errors=True)
        os.chmod("mine.tide", mode)
        for umask in (0o022, 0o077):
            shutil.rmtree("mine.tide-index", ignore_errors=True)
            ask("mine.tide", umask)
            assert modes("mine.tide-index") == (folder, {file}), (oct(mode), modes("mine.tide-index"))
    # One of an earlier version, and a trace that was closed later.
    os.chmod("mine.tide", 0o600)
    os.chmod("mine.tide-index", 0o755)
    ask("mine.tide")
    assert os.stat("mine.tide-index").st_mode & 0o777 == 0o700


@test
def a_link_in_the_place_of_an_index_changes_nobodys_rights():
    make("linked.tide", 300)
    os.chmod("linked.tide", 0o600)
    os.mkdir("elsewhere", 0o755)
    os.symlink("elsewhere", "linked.tide-index")
    ask("linked.tide")
    assert os.stat("elsewhere").st_mode & 0o777 == 0o755


def as_nobody(path, *words, **more):
    """Ask as somebody who may write nowhere but in the folder `home`."""
    if os.geteuid() != 0:
        raise Skip("needs root, to be somebody else")
    here = os.path.abspath(".")
    os.chmod(here, 0o755)
    while here != "/":
        if not os.stat(here).st_mode & 1:
            raise Skip(f"nobody may not enter {here}")
        here = os.path.dirname(here)
    os.makedirs("home", exist_ok=True)
    os.chown("home", 65534, 65534)
    shutil.copy(TIDEMARK, "program")  # that may lie where nobody may go
    return subprocess.run([os.path.abspath("program"), "window", os.path.abspath(path), *VIEW, *words],
                          capture_output=True, text=True, user=65534, group=65534,
                          extra_groups=[],
                          env={**os.environ, "TIDEMARK_INDEX": "always",
                               "HOME": os.path.abspath("home"), "XDG_CACHE_HOME": "", **more})


@test
def where_nothing_can_be_written_it_lies_in_the_cache_which_is_bounded():
    os.mkdir("shut")
    for i in range(4):
        make(f"shut/{i}.tide", 300 + i)
        os.chmod(f"shut/{i}.tide", 0o644)
    cache = "home/.cache/tidemark"

    def kept():
        return {name: os.stat(os.path.join(cache, name, "head")).st_mtime_ns
                for name in os.listdir(cache)}
    for i in range(3):
        done = as_nobody(f"shut/{i}.tide")
        assert done.returncode == 0, done.stderr
    first = kept()
    assert len(first) == 3, first
    for name in first:  # what a question leaves goes with its index
        for left in ("growth", "growth.new"):
            with open(os.path.join(cache, name, left), "wb"):
                pass
    assert os.stat(cache).st_mode & 0o777 == 0o700
    assert as_nobody("shut/0.tide").returncode == 0  # used last now, not first
    oldest, used = min(first, key=first.get), kept()
    assert used[oldest] > first[oldest], (first, used)
    one = sum(entry.stat().st_size for entry in os.scandir(os.path.join(cache, oldest)))
    done = as_nobody("shut/3.tide", TIDEMARK_CACHE=str(2 * one + one // 2))
    assert done.returncode == 0, done.stderr
    assert len(kept()) == 2 and oldest in kept(), (first, kept())
    done = as_nobody("shut/3.tide", TIDEMARK_CACHE="lots")
    assert done.returncode == 2 and "TIDEMARK_CACHE" in done.stderr, done
    assert sorted(os.listdir("shut")) == [f"{i}.tide" for i in range(4)]


@test
def where_it_can_be_nowhere_it_is_temporary_and_one_line_says_so():
    os.makedirs("closed", exist_ok=True)
    os.makedirs("room", exist_ok=True)
    os.chmod("room", 0o777)
    make("closed/t.tide", 300)
    os.chmod("closed/t.tide", 0o644)
    kept = as_nobody("closed/t.tide")
    done = as_nobody("closed/t.tide", HOME="", TMPDIR=os.path.abspath("room"))
    assert done.returncode == 0 and done.stdout == kept.stdout, done
    line = done.stderr.strip().splitlines()
    assert len(line) == 1 and "closed/t.tide-index" in line[0] and "Permission denied" in line[0] \
        and os.path.abspath("room/tidemark.") in line[0], done.stderr
    assert os.listdir("room") == [] and os.listdir("closed") == ["t.tide"]
    # Medians keep all lifetimes in order beside the index, where they can.
    one, two = (as_nobody("closed/t.tide", "--columns", "median", **more) for more in (
        {}, {"HOME": "", "TMPDIR": os.path.abspath("room")}))
    assert two.returncode == 0 and one.stdout == two.stdout and os.listdir("room") == []


@test
def where_there_is_no_room_for_that_either_one_line_says_what_to_do():
    os.makedirs("closed", exist_ok=True)
    make("closed/t.tide", 300)
    os.chmod("closed/t.tide", 0o644)
    done = as_nobody("closed/t.tide", HOME="", TMPDIR=os.path.abspath("closed"))
    assert done.returncode == 3 and done.stderr.count("\n") == 1, done
    assert "closed/t.tide-index" in done.stderr and "Permission denied" in done.stderr and \
        "TIDEMARK_INDEX=never" in done.stderr, done.stderr
    assert as_nobody("closed/t.tide", HOME="", TIDEMARK_INDEX="never").returncode == 0


@test
def lifetimes_without_an_index_are_refused_where_they_do_not_fit():
    make("many.tide", 400000)
    done = subprocess.run([TIDEMARK, "window", "many.tide", "--memory", "48M"], check=False, text=True,
                          capture_output=True, env={**os.environ, "TIDEMARK_INDEX": "never"})
    assert done.returncode == 4 and done.stdout == "" and done.stderr.count("\n") == 1, done
    assert "TIDEMARK_INDEX=never" in done.stderr and "--memory " in done.stderr, done.stderr
    enough = done.stderr.rsplit(" ", 1)[1].strip(")\n")
    both = [subprocess.run([TIDEMARK, "window", "many.tide", "--memory", enough], check=True, text=True,
                           capture_output=True, env={**os.environ, "TIDEMARK_INDEX": word}).stdout
            for word in ("never", "always")]
    assert both[0] == both[1]


main()
