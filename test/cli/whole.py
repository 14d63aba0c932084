#!/usr/bin/env python3
# timeout: 120
# parallel: yes
"""What a trace adds up to is counted once and kept beside its index: every answer made of it is, to
the byte, that of the pass over the events, whatever has become of the file meanwhile."""
import os
import shutil

from libanswer import assemble, run
from libtests import main, test

PREAMBLE, HEADER, EVENTS = 64, 64, b"\x02\0"  # trace/block.h
KEEP, NEVER = {"TIDEMARK_INDEX": "always"}, {"TIDEMARK_INDEX": "never"}
ASKS = (("report",), ("report", "--json"), ("report", "--csv", "-n", "0"), ("findings", "--json"),
        ("check", "--json", "--max-peak", "1G"))


def said(path, words, env):
    command, *options = words
    done = run(command, path, *options, env=env, check=None)
    return done.returncode, done.stdout, done.stderr


def whole(path, name="whole"):
    return os.path.join(path + "-index", name)


def recorded():
    """Forks and execs, with their ends."""
    path = "family.tide"
    if not os.path.exists(path):
        run("record", "-q", "-o", path, "--", "/bin/sh", "-c",
            "ls / | sort; perl -e 'if (!fork) { my @a = map { $_ x 9 } 1..900; exit 0 } wait'")
    return path


def threads():
    """Buffers that grow, frees by another thread, and calls that fail."""
    path = "threads.tide"
    if not os.path.exists(path):
        run("record", "-q", "--free-stacks", "-o", path, "--", "/bin/sh", "-c",
            "perl -e 'my $s; $s .= q(x) x 4000 for 1..900; for (1..9) { my @a = map { $_ } 1..99 }'")
    return path


def sampled():
    path = "sampled.tide"
    if not os.path.exists(path):
        run("record", "-q", "--sample", "4K", "-o", path, "--", "perl", "-e",
            "my %h = map { $_ => [$_ x 20] } 1..9000; print scalar %h")
    return path


def agree(path):
    """The pass without a file, the pass that writes it, and the answer from it."""
    for words in ASKS:
        shutil.rmtree(path + "-index", ignore_errors=True)
        right = said(path, words, NEVER)
        assert not os.path.exists(whole(path)), words
        assert said(path, words, KEEP) == right, words
        assert os.path.exists(whole(path)), words
        assert said(path, words, KEEP) == right, words


@test
def a_family_of_processes_has_the_answers_of_the_pass():
    agree(recorded())


@test
def a_sampled_recording_too_with_what_its_estimates_may_be_off():
    agree(sampled())


@test
def traces_with_everything_in_them_too():
    for name in ("exercise2_commits", "family", "kitchen", "nothing", "space"):
        agree(assemble(name))


@test
def diff_takes_temporary_blocks_from_it():
    paths = recorded(), sampled()
    for path in paths:
        shutil.rmtree(path + "-index", ignore_errors=True)
    words = [paths[0], paths[0], "--sort", "temporary", "--json"]
    right = run("diff", *words, env=NEVER).stdout
    for _ in range(2):
        assert run("diff", *words, env=KEEP).stdout == right
    assert os.path.exists(whole(paths[0]))


@test
def with_filters_it_is_neither_used_nor_made():
    path = recorded()
    shutil.rmtree(path + "-index", ignore_errors=True)
    right = run("report", path, "--size", "16..64", "--json", env=NEVER).stdout
    assert run("report", path, "--size", "16..64", "--json", env=KEEP).stdout == right
    assert not os.path.exists(whole(path))
    run("report", path, env=KEEP)
    assert run("report", path, "--size", "16..64", "--json", env=KEEP).stdout == right


def spoil(path, at, value):
    with open(path, "r+b") as file:
        file.seek(at, os.SEEK_END if at < 0 else os.SEEK_SET)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ value]))


def is_made_anew(words, name, other):
    path = threads()
    file = whole(path, name)
    right = run(words[0], path, *words[1:], env=KEEP).stdout
    good = open(file, "rb").read()
    written = os.stat(file).st_ino
    assert run(words[0], path, *words[1:], env=KEEP).stdout == right
    assert os.stat(file).st_ino == written  # it was taken

    def answers(content, why):
        with open(file, "wb") as out:
            out.write(content)
        if isinstance(why, int):
            spoil(file, why, 4)
        assert run(words[0], path, *words[1:], env=KEEP).stdout == right, why
        assert open(file, "rb").read() == good, why

    for at in (0, 9, 60, 100, len(good) // 2, -1):
        answers(good, at)
    for content in (b"", good[:3], good[:-5], good + b"x"):
        answers(content, len(content) // 2 if len(content) > 3 else "short")
    run(words[0], other, env=KEEP)
    answers(open(whole(other, name), "rb").read(), "another trace's")


@test
def damaged_or_of_another_trace_it_is_made_anew():
    is_made_anew(("report", "--json"), "whole", sampled())


@test
def so_are_the_lives_of_blocks_that_findings_keeps():
    is_made_anew(("findings", "--json"), "lives", recorded())


@test
def lives_are_kept_of_a_trace_with_wrong_frees_too():
    path = assemble("kitchen")
    shutil.rmtree(path + "-index", ignore_errors=True)
    right = run("findings", path, "--json", env=NEVER).stdout
    for _ in range(2):
        assert run("findings", path, "--json", env=KEEP).stdout == right
        assert os.path.exists(whole(path, "lives"))


@test
def a_trace_that_is_cut_has_none():
    path = "cut.tide"
    with open(recorded(), "rb") as file:
        content = file.read()
    with open(path, "wb") as file:
        file.write(content[:-40])
    for _ in range(2):
        assert "cut at byte" in run("report", path, env=KEEP).stdout
    assert not os.path.exists(whole(path))


@test
def where_it_is_there_no_event_is_read():
    path = "unread.tide"
    shutil.copy(recorded(), path)
    right = run("report", path, "--json", env=KEEP).stdout
    with open(path, "rb") as file:
        content = file.read()
    at = PREAMBLE
    while content[at + 8:at + 10] != EVENTS:
        at += HEADER + int.from_bytes(content[at + 12:at + 16], "little")
    spoil(path, at + HEADER, 1)
    assert "damaged" in run("report", path, env=NEVER).stdout
    assert run("report", path, "--json", env=KEEP).stdout == right


main()
