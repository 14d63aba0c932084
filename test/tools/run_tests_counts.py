#!/usr/bin/env python3
"""tools/run-tests tells what passed, failed and was skipped, and why, also of tests that misbehave."""
# parallel: yes
import os
import shutil
import signal
import subprocess
import sys
import time

SOURCE = os.environ["TIDEMARK_SOURCE"]
BUILD = os.environ["TIDEMARK_BUILD"]

# name: (text, what the summary must say of it; None: it passed)
SCRIPTS = {
    "passes": ("exit 0", None),
    "is_given_what_it_needs":
        ('test -d "$TMPDIR" && test "$TMPDIR" = "$PWD" && test -n "$TIDEMARK" && '
         'test -n "$TIDEMARK_SOURCE" && test -z "$(ls)"', None),
    "hears_an_interrupt": ("sh -c 'kill -INT $$; true'; test $? = 130", None),
    "skips": ("echo no such program; exit 77", "skipped: fake/skips: no such program"),
    "fails": ("exit 3", "failed: fake/fails"),
    "crashes": ("kill -SEGV $$", "failed: fake/crashes"),
    "hangs": ("# timeout: 1\nsleep 10000", "failed: fake/hangs"),
    "goes_on": ("# soak: only\nsleep 7654321", None),
    "leaves_a_child": ("setsid sleep 7654321 & exit 0", None),
    "counts_itself": ("echo 1..3; echo ok 1 - a; echo not ok 2 - b; echo 'ok 3 - c # SKIP no c'",
                      "skipped: fake/counts_itself: c: no c"),
    "is_not_for_here": ("echo '1..0 # SKIP no such kernel'", "skipped: fake/is_not_for_here: no such kernel"),
    "stops_early": ("echo 1..3; echo ok 1 - a; exit 0",
                    "failed: fake/stops_early: ended after 1 of 3"),
    "is_long": ("# soak: only\nexit 1", None),
    "_helper": ("exit 1", None),
}
LAST_LINE = "6 passed, 6 failed, 3 skipped"


def sleepers():
    found = subprocess.run(["pgrep", "-f", "^sleep 7654321"], capture_output=True, text=True)
    return found.stdout.split()


def main():
    os.makedirs("tools")
    os.makedirs("test/fake")
    shutil.copy(os.path.join(SOURCE, "tools", "run-tests"), "tools/run-tests")
    for name, (text, _) in SCRIPTS.items():
        path = f"test/fake/{name}.sh"
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n{text}\n")
        os.chmod(path, 0o755)
    with open("test/fake/not_executable.sh", "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\nexit 0\n")
    shutil.copytree(os.path.join(BUILD, "meson-info"), "build/meson-info")
    shutil.copytree(os.path.join(BUILD, "meson-private"), "build/meson-private")
    with open("build.not-set-up", "w", encoding="utf-8") as file:
        file.write("no Wine: not tested: Windows programs (no mounts)\n")
    said = subprocess.run(["tools/run-tests", "--build", "build", "fake/"],
                          capture_output=True, text=True,
                          preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    lines = said.stdout.splitlines()
    left = sleepers()
    ended = subprocess.Popen(["tools/run-tests", "--build", "build", "--soak", "fake/goes_on"],
                             stdout=subprocess.DEVNULL)
    while not sleepers() and ended.poll() is None:
        time.sleep(0.05)
    ended.terminate()
    claims = [
        ("who ends it ends its tests", ended.wait() == 130 and not sleepers()),
        ("the exit code says that something failed", said.returncode == 1),
        ("the last line counts", lines and lines[-1] == LAST_LINE),
        ("what could not be set up is told in the last lines", lines and lines[-2] ==
         "not set up: no Wine: not tested: Windows programs (no mounts)"),
        ("what a test leaves running is ended", not left),
        ("a script that cannot be run is a failure", "failed: fake/not_executable" in lines),
        ("a failed line of a script is named", "failed: fake/counts_itself: b" in lines),
        ("a helper is no test", "_helper" not in said.stdout),
        ("a soak test waits for --soak", "is_long" not in said.stdout),
    ]
    claims += [(f"{name} is told as it should be", expected in lines)
               for name, (_, expected) in SCRIPTS.items() if expected]
    print(f"1..{len(claims)}")
    for number, (claim, holds) in enumerate(claims, 1):
        print(f"{'ok' if holds else 'not ok'} {number} - {claim}")
    if not all(claim[1] for claim in claims):
        print("# " + (said.stdout + said.stderr).replace("\n", "\n# "))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
