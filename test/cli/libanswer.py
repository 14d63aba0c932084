"""What the tests of commands share that answer questions: run one, and hold its JSON to its schema."""
import json
import os
import subprocess

import libschema

SOURCE = os.environ["TIDEMARK_SOURCE"]
TIDEMARK = os.environ["TIDEMARK"]


def run(*words, check=0, **more):
    """check: the exit code that must come, None for any. more: subprocess.run's."""
    done = subprocess.run([TIDEMARK, *words], capture_output=True, text=True, timeout=120, **more)
    if check is not None:
        assert done.returncode == check, (words, done.returncode, done.stdout, done.stderr)
    return done


def answer(command, *words):
    """The JSON of a command, checked against its schema."""
    return libschema.valid(json.loads(run(command, *words, "--json").stdout), command)


def sampled():
    """The path of a trace of which it is said that it is sampled, with one block."""
    with open("sampled.txt", "w", encoding="ascii") as file:
        file.write("trace sample=1000\nprocess p pid=1\nthread t p tid=1\n"
                   "+1 t malloc 0x1000 10\nend\n")
    run("dump", "--force", "-a", "sampled.txt", "-o", "sampled.tide")
    return "sampled.tide"
