#!/usr/bin/env python3
"""real/python_lines with the other versions of Python that are here: those of PATH, and pyenv's."""
# timeout: 900
# soak: only
import glob
import os
import shutil
import subprocess
import sys

LINES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "python_lines.py")
PYENV = os.environ.get("PYENV_ROOT", os.path.join(os.path.expanduser("~"), ".pyenv"))
# Those whose frames are read, beside 3.11.
VERSIONS = ("3.9", "3.12", "3.13")


def find(version):
    found = sorted(glob.glob(os.path.join(PYENV, "versions", version + ".*", "bin",
                                          "python" + version)))
    return found[-1] if found else shutil.which("python" + version)


def main():
    failed = 0
    for version in VERSIONS:
        python = find(version)
        print(f"# python {version}: {python or 'not here'}", flush=True)
        if not python:
            print(f"ok - stacks of Python {version} # SKIP no Python {version} here", flush=True)
            continue
        os.makedirs(version)
        failed |= subprocess.run([sys.executable, "-B", LINES], check=False, cwd=version,
                                 env={**os.environ, "PYTHON_OF_TEST": python}).returncode
    sys.exit(1 if failed else 0)


main()
