#!/usr/bin/env python3
"""tools/set-up goes on where something cannot be had, and says what is not tested without it."""
# parallel: yes
import os
import shutil
import subprocess

from libtests import equal, main, test

SOURCE = os.environ["TIDEMARK_SOURCE"]
# What each of its tools does: a last line and an exit code.
TOOLS = {"deps": ("cannot install: chromium", 1), "win-build": ("nothing is built for Windows", 0),
         "wine-set-up": ("this root may not have mounts of its own (unshare -m)", 77),
         "runs-32-bit": ("this kernel runs no programs of 32 bits", 77),
         "i386-set-up": ("apt-get failed", 1),
         "packages-set-up": ("npm has no such package", 1),
         "web": ("npm could not fetch the packages", 1),
         "fuzz": ("no clang with libFuzzer here", 77)}


def set_up(what, *works):
    os.makedirs("tools", exist_ok=True)
    os.makedirs("bin", exist_ok=True)
    shutil.copy(os.path.join(SOURCE, "tools", "set-up"), "tools/set-up")
    for path, (said, code) in {**{f"tools/{name}": does for name, does in TOOLS.items()},
                               "bin/make": ("no rule", 2)}.items():
        well = "all" in works or os.path.basename(path) in works
        with open(path, "w", encoding="ascii") as file:
            file.write(f"#!/bin/sh\necho more before it; echo '{said}'; exit {0 if well else code}\n")
        os.chmod(path, 0o755)
    if "all" in works:
        os.makedirs("build-win/bin", exist_ok=True)
        with open("build-win/bin/tidemark.exe", "w", encoding="ascii"):
            pass
    done = subprocess.run(["tools/set-up", "build", what], capture_output=True, text=True, check=False,
                          env={**os.environ, "PATH": os.path.abspath("bin") + ":" + os.environ["PATH"]})
    equal(0, done.returncode, done.stderr)


def told():
    if not os.path.exists("build.not-set-up"):
        return []
    with open("build.not-set-up", encoding="utf-8") as file:
        return file.read().splitlines()


@test
def each_thing_that_cannot_be_had_has_a_line_with_its_reason():
    set_up("packages")
    set_up("rest")
    lines = told()
    # `make` and another set of packages; programs of i386 are not asked for where none can run.
    equal(len(TOOLS) + 1, len(lines), lines)
    for line, (said, _) in zip(lines, (does for name, does in TOOLS.items() if name != "i386-set-up")):
        assert line.endswith(f"({said})") and ": not tested: " in line, (line, said)


@test
def where_programs_of_32_bits_run_those_of_i386_are_asked_for():
    set_up("packages", "deps")
    set_up("rest", "runs-32-bit")
    said, _ = TOOLS["i386-set-up"]
    equal([f"no programs of i386: not tested: Debian's programs of i386 ({said})"],
          [line for line in told() if "i386" in line], "lines")


@test
def what_is_had_again_is_no_longer_told():
    set_up("packages", "all")
    set_up("rest", "all")
    equal([], told(), "lines")


main()
