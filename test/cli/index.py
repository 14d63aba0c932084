#!/usr/bin/env python3
# timeout: 300
# parallel: yes
"""The bad days of an index: stopped, killed, full disks, small budgets, two at once, other traces.

Whatever happened to its making, an answer is the one that a list of all lifetimes gives, or there
is none and one line says why.
"""
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import time

from libanswer import TIDEMARK, assemble, make, measured, run
from libdisk import Disk
from libtests import PATIENCE_SECONDS, main, test

MIB = 1 << 20
VIEW = ("--by", "stack", "--from", "20%", "--to", "70%")


def command(path, *words):
    return [TIDEMARK, "window", path, "--json", "--progress", "none", *words]


def ask(path, *words, check=0, **more):
    return run("window", path, "--json", "--progress", "none", *words, check=check, env=more)


def right(path, *words):
    """What a list of all lifetimes says."""
    return json.loads(ask(path, *(words or VIEW), "--memory", "4G", TIDEMARK_INDEX="never").stdout)


def check_right(path, *words):
    answer = json.loads(ask(path, *VIEW, *words).stdout)
    assert answer == right(path)


def start(path, *words):
    return subprocess.Popen(command(path, *VIEW, *words), stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def wait_for_work(running, index):
    """Until the build has written something."""
    while running.poll() is None:
        try:
            if os.stat(os.path.join(index, "events")).st_size > 0:
                return
        except FileNotFoundError:
            pass
        time.sleep(0.001)


@test
def ctrl_c_ends_it_in_one_line_and_the_next_question_goes_on():
    path = make("stopped.tide", 300, 50000, 1500000)
    running = start(path)
    wait_for_work(running, "stopped.tide-index")
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=PATIENCE_SECONDS)
    assert running.returncode == -signal.SIGINT, running.returncode
    assert out == "" and err.count("\n") == 1 and "interrupted (what is done is kept" in err, err
    assert not os.path.exists("stopped.tide-index/head")
    again = ask(path, *VIEW)
    assert re.search(r"going on with the index where it was left, at [1-9]\d* %", again.stderr)
    assert json.loads(again.stdout) == right(path)
    assert not os.path.exists("stopped.tide-index/state")
    assert ask(path, *VIEW).stderr == ""


@test
def kill_9_at_any_moment_leaves_nothing_that_is_believed():
    path = make("killed.tide", 300, 50000, 500000)
    dice = random.Random(1)
    expected = right(path)
    for _ in range(10):
        running = start(path)
        time.sleep(dice.random() * 0.2)
        running.kill()
        running.communicate()
        if dice.random() < 0.2:
            assert json.loads(ask(path, *VIEW).stdout) == expected
            shutil.rmtree("killed.tide-index")
    assert json.loads(ask(path, *VIEW).stdout) == expected
    left = [name for name in os.listdir("killed.tide-index")
            if name.startswith(("temporary", "state", "vm-calls")) or name.endswith(".new")]
    assert not left, left


@test
def two_that_ask_at_once_build_one_index():
    path = make("both.tide", 300, 50000, 500000)
    expected = right(path)
    running = [start(path) for _ in range(3)]
    ended = [one.communicate(timeout=PATIENCE_SECONDS) for one in running]
    for out, err in ended:
        assert json.loads(out) == expected, err
    assert sum("another process" in err for out, err in ended) <= 2
    assert all(re.fullmatch("(tidemark window: the index is being built by another process; "
                            "waiting\n)?", err) for out, err in ended), ended


@test
def the_index_of_another_trace_is_not_used():
    one, other = make("one.tide", 50, 300, 200000), make("other.tide", 70, 400, 200000)
    check_right(one)
    check_right(other)
    shutil.rmtree("other.tide-index")
    shutil.move("one.tide-index", "other.tide-index")
    check_right(other)
    os.unlink("one.tide")
    os.rename("other.tide", "one.tide")
    os.rename("other.tide-index", "one.tide-index")
    before = os.stat("one.tide-index/head").st_mtime_ns
    check_right("one.tide")
    assert os.stat("one.tide-index/head").st_mtime_ns == before


@test
def a_damaged_index_gives_no_wrong_number():
    path = make("damaged.tide", 50, 3000, 150000)
    dice = random.Random(3)
    expected = right(path)
    again = 0
    for _ in range(12):
        assert json.loads(ask(path, *VIEW).stdout) == expected
        name = dice.choice(sorted(name for name in os.listdir("damaged.tide-index")
                                  if os.path.getsize("damaged.tide-index/" + name)))
        with open("damaged.tide-index/" + name, "r+b") as file:
            at = dice.randrange(os.path.getsize(file.name))
            file.seek(at)
            byte = file.read(1)[0]
            file.seek(at)
            file.write(bytes([byte ^ 1 << dice.randrange(8)]))
            if dice.random() < 0.2:
                file.truncate(at)
        done = subprocess.run(command(path, *VIEW), capture_output=True, text=True, timeout=PATIENCE_SECONDS)
        # What a question finds is said, with the index's path, and the same call builds it again.
        again += "it is built again" in done.stderr
        assert done.returncode == 0 and json.loads(done.stdout) == expected, done
        assert done.stderr.count("damaged.tide-index") == ("it is built again" in done.stderr), done
    assert again > 0


def damage_told(*words):
    done = run(*words, env={"TIDEMARK_INDEX": "always"})
    return re.findall(r"damaged at byte \d+: [^;]*; blocks lost: \d+",
                      " ".join((done.stderr + done.stdout).split()))


@test
def damage_of_the_trace_is_said_where_the_index_answers():
    with open(make("sound.tide", 50, 3000, 300000), "rb") as file:
        content = file.read()
    said = 0
    for share in (15, 30, 45, 60, 75, 90):
        at = len(content) * share // 100
        with open("spoilt.tide", "wb") as file:
            file.write(content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1:])
        shutil.rmtree("spoilt.tide-index", ignore_errors=True)
        first = damage_told("window", "spoilt.tide")
        for question in ("window", "growth", "transients", "findings"):
            assert damage_told(question, "spoilt.tide") == first, (share, question)
        said += len(first)
    assert said >= 4


@test
def symbols_that_are_bundled_later_leave_the_index_as_it_is():
    subprocess.run([TIDEMARK, "record", "-q", "-o", "ls.tide", "--", "/bin/ls", "/"], check=True,
                   stdout=subprocess.DEVNULL)
    ask("ls.tide", TIDEMARK_INDEX="always")
    before = os.stat("ls.tide-index/head").st_mtime_ns
    subprocess.run([TIDEMARK, "bundle", "ls.tide"], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    ask("ls.tide", TIDEMARK_INDEX="always")
    assert os.stat("ls.tide-index/head").st_mtime_ns == before


# ---- budgets ----

def peak(path, *words):
    """The answer, and what it took of memory."""
    out, said, most = measured(*command(path, *VIEW, *words)[1:])
    return json.loads(out), most, said


@test
def a_budget_is_kept_by_the_kernels_own_measure():
    path = make("wide.tide", 300, 1200000, 2600000)
    expected = right(path)
    answer, bytes_peak, said = peak(path, "--memory", "64M")
    assert answer == expected and bytes_peak <= 64 * MIB, (bytes_peak, said)
    answer, bytes_peak, said = peak(path, "--memory", "64M")
    assert answer == expected and said == "" and bytes_peak <= 64 * MIB, (bytes_peak, said)
    shutil.rmtree("wide.tide-index")
    answer, bytes_peak, said = peak(path, "--memory", "40M")
    assert answer == expected and bytes_peak <= 64 * MIB, (bytes_peak, said)
    assert "temporary files" in said, said


@test
def what_lives_at_a_moment_is_little_for_each_block():
    path = make("wide.tide", 300, 1200000, 2600000)
    ask(path, TIDEMARK_INDEX="always")
    for asked in ("active", "pins"):
        out, _, most = measured(asked, path, "--at", "90%")
        assert out.startswith("synthetic") and most <= 88 * MIB, (asked, most)

@test
def a_budget_that_is_too_small_says_how_much_is_needed():
    path = make("kinds.tide", 200000, 20000, 800000)
    done = ask(path, "--by", "process", "--memory", "9M", check=4)
    assert "at least 32 MiB" in done.stderr and "--memory 32M" in done.stderr, done.stderr
    done = ask(path, "--by", "process", "--memory", "32M", check=4)
    needed = re.search(r"too many for 32 MiB of memory \(try: --memory (\d+)M\)", done.stderr)
    assert needed and done.stderr.count("\n") == 1 and done.stdout == "", done.stderr
    assert 32 < int(needed[1]) <= 256
    enough = json.loads(ask(path, "--by", "process", "--memory", "256M").stdout)
    assert enough == right(path, "--by", "process")
    for little in ("9M", "32M"):  # with the index there, too
        again = ask(path, "--by", "process", "--memory", little, check=4)
        assert "too many for 32 MiB" in again.stderr or "at least 32 MiB" in again.stderr, again
    # What is asked for then is enough, and kept.
    answer, bytes_peak, said = peak(path, "-n", "5", "--memory", needed[1] + "M")
    assert answer == right(path, *VIEW, "-n", "5"), said
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # counts until the exec
    assert bytes_peak <= max(int(needed[1]) * MIB, own), (bytes_peak, needed[1])


@test
def what_is_needed_is_said_right_at_once_and_taken_where_no_limit_is_given():
    path = make("stacks.tide", 2000000, 20000, 3500000)
    words = ("--by", "process", "--from", "50%")

    def needed():
        done = ask(path, *words, "--memory", "256M", check=4)
        return re.search(r"the trace has (\d+) stacks and (\d+) kinds .* for 256 MiB of memory "
                         r"\(try: --memory (\d+)M\)", done.stderr).groups()
    before = needed()  # counted, as there is no index
    done = ask(path, *words)
    assert "kinds of allocations take up to" in done.stderr, done.stderr
    assert int(before[1]) > 0 and needed() == before
    answer = ask(path, *words, "--memory", before[2] + "M")
    assert answer.stdout == done.stdout and "kinds of allocations" not in answer.stderr, answer
    assert run("findings", path).returncode == 0


@test
def a_stack_of_many_processes_counts_for_each_of_them():
    # 60 processes have 1,000 stacks in common: 60,000 rows by process and stack, some 38 MiB.
    text = "\n".join(["trace"] + [f"process p{p} pid={p + 1}\nthread t{p} p{p} tid={p + 1}" for p in range(60)]
                     + [f'stack s{i} "f{i}"' for i in range(1000)]
                     + [f"+1 t{p} malloc s{i} {0x1000 + i * 64:#x} 24" for p in range(60) for i in range(1000)]
                     + ["end\n"])
    path = assemble("shared", text)
    words = ("--by", "process,stack", "-n", "3")
    done = ask(path, *words, "--memory", "32M", check=4, TIDEMARK_INDEX="always")
    needed = re.search(r"the trace has 1000 stacks and 60000 kinds of allocations, too many for 32 MiB of memory "
                       r"\(try: --memory (\d+)M\)", done.stderr)
    assert needed, done.stderr
    answer, bytes_peak, said = peak(path, *words, "--memory", needed[1] + "M")
    assert len(answer["rows"]) > 0 and bytes_peak <= int(needed[1]) * MIB, (bytes_peak, said)


@test
def stacks_that_only_call_others_take_little():
    names = [" < ".join(f'"f{i}_{k}"' for k in range(120)) for i in range(300)]
    text = "\n".join(["trace", "process p pid=1", "thread t p tid=1"]
                     + [f"stack s{i} {names[i]}" for i in range(300)]
                     + [f"@{i}us t malloc s{i} {0x1000 + i * 64:#x} 24" for i in range(300)] + ["end\n"])
    path = assemble("deep", text)
    answer = json.loads(ask(path, *VIEW, "--memory", "32M", TIDEMARK_INDEX="always").stdout)
    assert answer == right(path) and os.path.exists("deep.tide-index/head")


@test
def the_first_of_more_single_allocations_than_fit_are_found():
    path = make("singles.tide", 300, 50000, 600000)
    for words in (("--by", "lifetime", "-n", "5"), ("--by", "impact,lifetime", "-n", "3"),
                  ("--by", "stack,lifetime", "-n", "2", "--sort", "first"),
                  ("--by", "type,lifetime", "-n", "4", "--sort", "size", "--min-bytes", "40")):
        few = json.loads(ask(path, *words, "--memory", "32M").stdout)
        assert few == right(path, *words, "--memory", "3G"), words
        assert len(few["rows"]) > 0, words
    done = ask(path, "--by", "lifetime", "--memory", "32M", check=4)
    assert "single allocations do not fit" in done.stderr and "(-n)" in done.stderr, done.stderr


# ---- full disks ----

def check_full(disk, path, *words):
    """There is no room: one line, no index; then there is."""
    expected = right(path)
    done = ask(path, *VIEW, *words, check=3)
    last = done.stderr.splitlines()[-1]
    assert "No space left on device" in last and done.stdout == "", done
    found = re.search("; it is " + re.escape(path) + r"-index, had ([0-9.]+ [KM]iB) and needs (more|some "
                      r"([0-9.]+ [KM]iB)) \(TIDEMARK_INDEX=never ", last)
    assert found and found[1] != found[3], last
    assert not os.path.exists(path + "-index"), os.listdir(path + "-index")
    disk.grow(300 * MIB)
    answer = json.loads(ask(path, *VIEW, *words).stdout)
    assert answer == expected


@test
def a_full_disk_is_an_error_and_no_wrong_number():
    with Disk("tiny", 400 << 10):
        # All of the trace is read before much is written: what is needed is not known.
        done = run("window", make("tiny/full.tide", 300, 500, 100000), check=3, env={"TIDEMARK_INDEX": "always"})
        found = re.search("full.tide-index, had ([0-9.]+ [KM]iB) and needs (more|some ([0-9.]+ [KM]iB)) ", done.stderr)
        assert found and found[1] != found[3], done.stderr
    with Disk("small", 8 * MIB) as disk:
        check_full(disk, make("small/full.tide", 300, 50000, 1300000))


@test
def a_disk_that_is_full_of_temporary_files_is_one_too():
    with Disk("smaller", 45 * MIB) as disk:
        path = make("smaller/full.tide", 300, 1200000, 2600000)
        done = ask(path, *VIEW, "--memory", "32M", check=3)
        assert "temporary files of up to" in done.stderr.splitlines()[0], done.stderr
        check_full(disk, path, "--memory", "32M")


@test
def a_disk_that_is_full_of_rows_is_one_too():
    with Disk("rows", 30 * MIB) as disk:
        path = make("rows/full.tide", 60000, 30000, 900000)
        words = ("--by", "impact,stack", "-n", "0", "-c", "size,count")
        want = json.loads(ask(path, *words, "--memory", "1G").stdout)
        done = ask(path, *words, "--memory", "50M", check=3)
        assert "No space left on device" in done.stderr and done.stderr.count("\n") == 1, done.stderr
        disk.grow(300 * MIB)
        found = json.loads(ask(path, *words, "--memory", "50M").stdout)
        # Of fewer rows there is room for peaks.
        assert found["total"] == want["total"] and \
            [row["size"] for row in found["rows"]] == [row["size"] for row in want["rows"]]


def clear():
    for path in os.listdir("."):
        if path.endswith(".tide"):
            os.unlink(path)
        elif path.endswith("-index"):
            shutil.rmtree(path)


main(after=clear)
