#!/usr/bin/env python3
# parallel: yes
"""Functions of templates are found by their namespaces; where a program was compiled with -g1, the
namespaces of inlined functions are not known, and a question for them says so."""
import os
import subprocess

from libanswer import run
from libtests import check, equal, main, test

SOURCE = os.path.join(os.environ["TIDEMARK_SOURCE"], "test/programs/symbols_bare.cpp")
MISSED = "whose namespaces and classes are not known"


def record(flag):
    path = flag.strip("-") + ".tide"
    if not os.path.exists(path):
        subprocess.run(["g++", "-O2", flag, "-o", "app", SOURCE], check=True)
        run("record", "-q", "-f", "--bundle", "-o", path, "./app")
        os.remove("app")
    return path


def report(flag, expression):
    done = run("report", record(flag), "--frame", expression)
    return " ".join((done.stdout + done.stderr).split())


@test
def functions_of_templates_are_found_by_their_namespace():
    for flag in ["-g", "-g1"]:
        said = report(flag, "^ns::made<")
        check("ns::made<int>" in said and "1 block" in said, said)


@test
def what_is_missed_is_said():
    asked = [("-g1", "^ns::"), ("-g1", "made"), ("-g", "^ns::")]
    equal([True, False, False], [MISSED in report(*words) for words in asked])


main()
