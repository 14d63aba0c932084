#!/usr/bin/env python3
# parallel: yes
"""tidemark.conf: options of a project, found from the working directory upwards."""
import os
import subprocess

from libanswer import TIDEMARK, assemble
from libtests import check, equal, main, test

TEXT = """process p pid=42 exe=/bin/app
thread t "main"
stack s "work" "app.c":10 < "main" "app.c":3
+0ns t alloc s 0x1000 1000
+0ns t alloc s 0x2000 1000
+0ns t free 0x1000
end
"""


def ask(*words, cwd=".", **env):
    return subprocess.run([TIDEMARK, *words], capture_output=True, text=True, check=False, cwd=cwd,
                          env={**os.environ, **env})


def conf(text, folder="."):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "tidemark.conf"), "w", encoding="utf-8") as file:
        file.write(text)


def trace():
    return os.path.abspath(assemble("app", TEXT))


@test
def limits_are_read_from_the_folder_or_above_it_and_flags_win():
    path = trace()
    equal(2, ask("check", path).returncode, "no limit")
    conf("# limits\n[check]\nmax-peak = 1999   ; too little\n")
    os.makedirs("deep/down", exist_ok=True)
    ended = ask("check", path, cwd="deep/down")
    equal(1, ended.returncode, ended.stderr)
    check("at most" in ended.stdout, ended.stdout)
    equal(0, ask("check", path, "--max-peak", "2000", cwd="deep/down").returncode)
    conf("[check]\nmax-peak = 2000\n", "deep")
    equal(0, ask("check", path, cwd="deep/down").returncode, "the nearest file counts")


@test
def another_file_may_be_named_or_none():
    path = trace()
    conf("[check]\nmax-peak = 1\n")
    conf("[check]\nmax-peak = 2000\n", "other")
    equal(1, ask("check", path).returncode)
    equal(0, ask("check", path, TIDEMARK_CONF="other/tidemark.conf").returncode)
    equal(2, ask("check", path, TIDEMARK_CONF="").returncode, "no limit")
    ended = ask("check", path, TIDEMARK_CONF="nowhere")
    equal(3, ended.returncode, ended.stderr)
    check("nowhere" in ended.stderr, ended.stderr)


@test
def switches_are_yes_or_no_and_sections_are_commands():
    path = trace()
    conf("[report]\njson = yes\n[check]\njson = no\nmax-peak = 2000\n")
    check(ask("report", path).stdout.startswith("{"))
    check(not ask("check", path).stdout.startswith("{"))


@test
def mistakes_are_told_with_file_and_line():
    path = trace()
    for text, line, what in (
            ("[check]\nmax-paek = 1\n", 2, "did you mean 'max-peak'"),
            ("[chekc]\nmax-peak = 1\n", 2, "did you mean 'check'"),
            ("\n[report]\njson = perhaps\n", 3, "yes or no"),
            ("[check]\nmax-peak = much\n", 2, "much"),
            ("[check]\nnonsense\n", 2, "OPTION = VALUE"),
            ("[check]\nhelp = yes\n", 2, "no option"),
            ("[check]\nmax-peak = " + 300 * "1" + "\n", 2, "")):
        conf(text)
        ended = ask("check", path)
        equal(2, ended.returncode, (text, ended.stderr))
        check(f"tidemark.conf:{line}: " in ended.stderr and what in ended.stderr,
              text, ended.stderr)
        equal(1, ended.stderr.count("\n"), ended.stderr)
        equal("", ended.stdout)
    # Also those of other commands: a file is right or wrong as a whole.
    conf("[record]\nsmaple = 1K\n")
    equal(2, ask("report", path).returncode)
    ended = ask("record", "true")
    equal(125, ended.returncode, ended.stderr)
    check("did you mean 'sample'" in ended.stderr, ended.stderr)


@test
def a_recording_takes_its_options_from_there():
    conf("[record]\nfree-stacks = yes\noutput = mine.tide\nforce = yes\nquiet = on\n")
    equal(0, ask("record", "true").returncode)
    check("free-stacks" in ask("dump", "mine.tide").stdout)


main()
