#!/usr/bin/env python3
# parallel: yes
"""What other build systems and test frameworks are given: each in a small project of its own."""
import os
import re
import shutil
import subprocess
import xml.etree.ElementTree

from libanswer import SOURCE, TIDEMARK
from libtests import Skip, check, equal, main, test

HERE = os.path.join(os.path.abspath(SOURCE), "test/hooks")
HOOKS = os.path.join(os.path.abspath(SOURCE), "hooks")
INCLUDE = os.path.join(os.path.abspath(SOURCE), "include")
ENV = {**os.environ, "TIDEMARK": os.path.abspath(TIDEMARK)}


def need(program):
    if not shutil.which(program):
        raise Skip(f"no {program}")


def run(*words, code=0, **more):
    done = subprocess.run(words, capture_output=True, text=True, check=False,
                          env={**ENV, **more.pop("env", {})}, **more)
    equal(code, done.returncode, f"{words[:3]}: {done.stdout[-1500:]} {done.stderr[-1500:]}")
    return done.stdout + done.stderr


@test
def a_test_that_is_wrapped_fails_by_its_own_code_or_by_its_limits():
    wrapper = os.path.join(HOOKS, "tidemark-run-test")
    equal("hello\n", run(wrapper, "--max-peak", "1M", "--", "echo", "hello"))
    run(wrapper, "--", "true")
    run(wrapper, "--max-peak", "0", "--", "sh", "-c", "exit 7", code=7)
    check("FAILED" in run(wrapper, "--max-allocations", "1", "--", "ls", code=1))
    run(wrapper, code=2)


@test
def cmake_has_tests_with_limits():
    need("cmake")
    run("cmake", "-S", os.path.join(HERE, "cmake"), "-B", "build", f"-DHOOKS={HOOKS}",
        f"-DTIDEMARK={ENV['TIDEMARK']}")
    run("cmake", "--build", "build")
    told = run("ctest", "--test-dir", "build", "--output-on-failure", code=8)
    equal({"within": "Passed", "beyond": "Failed", "leaking": "Failed"},
          {name: how.strip("*") for name, how in
           re.findall(r"Test +#\d+: (\w+) \.+ *(\*{3}Failed|Passed)", told)}, told)


@test
def meson_has_a_wrapper():
    need("meson")
    shutil.copytree(os.path.join(HERE, "meson"), "small")
    shutil.copy(os.path.join(HERE, "leaks.c"), "small")
    run("meson", "setup", "build", "small")
    wrapper = os.path.join(HOOKS, "tidemark-run-test")
    told = run("meson", "test", "-C", "build", "--wrapper", f"{wrapper} --max-unreachable 0 --",
               code=1)
    check(re.search(r"within +OK", told) and re.search(r"leaking +FAIL", told), told)


@test
def pytest_has_limits_by_mark():
    python = next((path for path in ("/usr/bin/python3", shutil.which("python3")) if path and
                   subprocess.run([path, "-c", "import pytest"], capture_output=True,
                                  check=False).returncode == 0), None)
    if not python:
        raise Skip("no python3-pytest")
    command = [python, "-m", "pytest", "-p", "pytest_tidemark", "-p", "no:cacheprovider", "-q",
               "--junitxml", "out.xml", os.path.join(HERE, "pytest")]
    env = {"PYTHONPATH": HOOKS, "PYTHONDONTWRITEBYTECODE": "1"}
    check("11 passed" in run(*command, env=env))
    beyond = ["test_beyond", "test_child_beyond", "test_keeps", "test_name_longer_than_a_mark[beyond",
              "test_small_objects_beyond",
              "test_told_apart_behind_what_is_cut[" + "x" * 220 + "-8388608]"]
    side_by_side = subprocess.run([python, "-c", "import xdist"], capture_output=True,
                                  check=False).returncode == 0
    for words in ((), ("-n", "2")) if side_by_side else ((),):
        told = run(*command, "--tidemark", *words, code=1, env=env)
        equal(beyond, sorted(name.split("::")[-1].split(" x")[0]
                             for name in re.findall(r"^TIDEMARK (.*)$", told, re.M)), told)
        check("11 passed" in told and "6 tests exceeded" in told, told)
        cases = list(xml.etree.ElementTree.parse("out.xml").iter("testcase"))
        failed = {case.get("name").split(" x")[0]: case.find("failure").text for case in cases
                  if case.find("failure") is not None}
        equal((11, beyond), (len(cases), sorted(failed)))
        check(all("FAILED  " + ("leaks" if name == "test_keeps" else "peak") in text
                  for name, text in failed.items()), failed)
        [suite] = xml.etree.ElementTree.parse("out.xml").iter("testsuite")
        equal(("11", "6", None), (suite.get("tests"), suite.get("failures"), suite.find(".//property")))


@test
def google_test_has_a_phase_for_each_test():
    if not os.path.exists("/usr/include/gtest/gtest.h"):
        raise Skip("no libgtest-dev")
    run("g++", "-I", INCLUDE, os.path.join(HERE, "gtest/test.cpp"), "-o", "suite", "-lgtest",
        "-lpthread")
    run(ENV["TIDEMARK"], "record", "-q", "-o", "g.tide", "./suite")
    for name, code in (("Within", 0), ("Beyond", 1)):
        run(ENV["TIDEMARK"], "check", "g.tide", "--from", f"mark:Small.{name}.begin", "--to",
            f"mark:Small.{name}.end", "--max-peak", "100K", code=code)


@test
def what_is_expected_not_to_allocate_is_checked():
    for compiler in ("gcc", "clang", "g++"):
        need(compiler)
        words = ["-x", "c++"] if compiler == "g++" else []
        run(compiler, "-Wall", "-Wextra", "-Werror", "-O0", "-g", "-fno-builtin", "-I", INCLUDE,
            *words, os.path.join(HERE, "expect.c"), "-o", "expect", "-lpthread")
        run(ENV["TIDEMARK"], "record", "-q", "-f", "-o", "e.tide", "./expect")
        told = run(ENV["TIDEMARK"], "check", "e.tide", "--max-unexpected", "2", code=1)
        check("unexpected 3, at most 2" in told and "early" in told, told)
        run(ENV["TIDEMARK"], "check", "e.tide", "--max-unexpected", "3")
    run(ENV["TIDEMARK"], "record", "-q", "-f", "-o", "e.tide", "true")
    check("was reached" in run(ENV["TIDEMARK"], "check", "e.tide", "--max-unexpected", "0", code=3))


main()
