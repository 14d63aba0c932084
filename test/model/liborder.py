"""Runs the model of the order protocol through every state."""
import os
import re
import shutil
import subprocess
import sys

MODEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "order.pml")
MEGABYTES = int(os.environ.get("MODEL_MEGABYTES", "1500"))

def search(folder, defines):
    """Every state of the model. Returns (errors, states, was the search complete)."""
    os.makedirs(folder, exist_ok=True)
    flags = [f"-D{name}" if value is True else f"-D{name}={value}"
             for name, value in defines.items()]
    subprocess.run(["spin", "-a", *flags, MODEL], cwd=folder, check=True,
                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    subprocess.run(["gcc", "-O2", "-w", "-DSAFETY", "-DNOCLAIM", "-DCOLLAPSE",
                    f"-DMEMLIM={MEGABYTES}", "-o", "pan", "pan.c"], cwd=folder, check=True)
    # -E: a thread may stop anywhere; a state from which nothing goes on is no error.
    output = subprocess.run(["./pan", "-E", "-m200000", "-w22"], cwd=folder, check=True,
                            stdout=subprocess.PIPE, text=True).stdout
    errors = int(re.search(r"errors: (\d+)", output)[1])
    states = float(re.search(r"([\d.e+]+) states, stored", output)[1])
    complete = "Search not completed" not in output and "max search depth" not in output
    return errors, int(states), complete


def check(sizes, mutations):
    """A line for each; exits."""
    if shutil.which("spin") is None:
        print("the model checker spin is not installed")
        sys.exit(77)
    print(f"1..{len(sizes) + len(mutations)}")
    failed = 0
    number = 0
    for size in sizes:
        number += 1
        errors, states, complete = search(f"size{number}", size)
        good = errors == 0 and complete
        failed += not good
        words = " ".join(f"{name.lower()} {value}" for name, value in size.items())
        print(f"{'ok' if good else 'not ok'} {number} - no wrong order in {states:,} states: "
              f"{words}", flush=True)
    for mutation, size in mutations.items():
        number += 1
        errors, states, complete = search(mutation, {**size, mutation: True})
        failed += errors == 0
        print(f"{'ok' if errors else 'not ok'} {number} - {mutation} is caught "
              f"after {states:,} states", flush=True)
    sys.exit(failed > 0)
