"""Runs the model of the order protocol through every state."""
import os
import re
import shutil
import subprocess
import sys

from libtests import case, equal

MODEL = os.path.join(os.environ["TIDEMARK_SOURCE"], "test", "model", "order.pml")
MEGABYTES = int(os.environ.get("MODEL_MEGABYTES", "1500"))


def search(folder, defines, optimise):
    """Every state of the model. Returns (errors, states, was the search complete)."""
    os.makedirs(folder, exist_ok=True)
    flags = [f"-D{name}" if value is True else f"-D{name}={value}"
             for name, value in defines.items()]
    subprocess.run(["spin", "-a", *flags, MODEL], cwd=folder, check=True,
                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    subprocess.run(["gcc", optimise, "-w", "-DSAFETY", "-DNOCLAIM", "-DCOLLAPSE",
                    f"-DMEMLIM={MEGABYTES}", "-o", "pan", "pan.c"], cwd=folder, check=True)
    # -E: a thread may stop anywhere; a state from which nothing goes on is no error.
    output = subprocess.run(["./pan", "-E", "-m200000", "-w22"], cwd=folder, check=True,
                            stdout=subprocess.PIPE, text=True).stdout
    errors = int(re.search(r"errors: (\d+)", output)[1])
    states = float(re.search(r"([\d.e+]+) states, stored", output)[1])
    complete = "Search not completed" not in output and "max search depth" not in output
    return errors, int(states), complete


def holds(folder, size, optimise):
    errors, states, complete = search(folder, size, optimise)
    print(f"# {states:,} states", flush=True)
    equal((0, True), (errors, complete), "wrong orders, and whether all states were seen")


def is_caught(mutation, size, optimise):
    errors, states, _complete = search(mutation, {**size, mutation: True}, optimise)
    print(f"# after {states:,} states", flush=True)
    assert errors, f"no order was wrong in {states:,} states"


def register(sizes, mutations, optimise):
    """A test for each. Where there are few states, compiling the search takes longer than the search."""
    if shutil.which("spin") is None:
        print("the model checker spin is not installed")
        sys.exit(77)
    for number, size in enumerate(sizes):
        words = " ".join(f"{name.lower()} {value}" for name, value in size.items())
        case(f"no wrong order: {words}", holds, f"size{number}", size, optimise)
    for mutation, size in mutations.items():
        case(f"{mutation} is caught", is_caught, mutation, size, optimise)
