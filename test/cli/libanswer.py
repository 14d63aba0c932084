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
