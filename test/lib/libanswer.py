"""libanswer: what the tests of commands share: run one, hold its JSON to its schema, make traces."""
import difflib
import json
import os
import subprocess

import libschema
from libtests import PATIENCE_SECONDS, check

SOURCE = os.environ["TIDEMARK_SOURCE"]
BUILD = os.environ["TIDEMARK_BUILD"]
TIDEMARK = os.environ["TIDEMARK"]


def run(*words, check=0, env=None, **more):
    """check: the exit code that must come, None for any. env: variables besides those that are
    there. more: subprocess.run's."""
    done = subprocess.run([TIDEMARK, *words], capture_output=True, text=True, check=False,
                          timeout=PATIENCE_SECONDS, env={**os.environ, **(env or {})}, **more)
    if check is not None:
        assert done.returncode == check, (words, done.returncode, done.stdout, done.stderr)
    return done


def answer(command, *words, **more):
    """The JSON of a command, checked against its schema."""
    found = json.loads(run(command, *words, "--json", **more).stdout)
    return libschema.valid(found, f"{command}-tree" if "nodes" in found else command)


def refused(*words, code=2, **more):
    """Refused with one line on stderr, beside what is said of symbols, and nothing on stdout. That line."""
    done = run(*words, check=code, **more)
    lines = [line for line in done.stderr.splitlines(True) if ": warning: symbols: " not in line]
    assert done.stdout == "" and len(lines) == 1, done
    return lines[0]


def measured(*words, code=0, env=None):
    """What a command printed, what it said on stderr, and the most bytes of it that were resident, by
    the kernel's own mark."""
    with open("measured.out", "w+", encoding="utf-8") as out, \
            open("measured.err", "w+", encoding="utf-8") as err:
        running = subprocess.Popen([TIDEMARK, *words], stdout=out, stderr=err,
                                   env={**os.environ, **(env or {})})
        _, status, usage = os.wait4(running.pid, 0)
        running.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        said = err.read()
        assert running.returncode == code, (words, running.returncode, said)
        return out.read(), said, usage.ru_maxrss * 1024


# ---- traces ----

def assemble(name, text=None):
    """The trace name.tide of that text, made anew; without one, of test/traces, made once."""
    path, source = name + ".tide", os.path.join(SOURCE, "test/traces", name + ".txt")
    if text is None and os.path.exists(path):
        return path
    if text is not None:
        source = name + ".txt"
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
    run("dump", "--assemble", source, "-o", path, "--force")
    return path


def make(path, stacks, live, events, depth=64):
    """A trace of so many events, as the bench makes them. Most stacks have some more than `depth` frames."""
    if not os.path.exists(path):
        subprocess.run([os.path.join(BUILD, "test/bench/window_bench"), "make", str(stacks), str(live),
                        str(events), path, str(depth)], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
    return path


def sampled():
    """A trace of which it is said that it is sampled, with one block."""
    return assemble("sampled", "trace sample=1000\nprocess p pid=1\nthread t p tid=1\n"
                    "+1 t malloc 0x1000 10\nend\n")


def golden(name, text):
    """`text` is test/golden/NAME; with TIDEMARK_ACCEPT=1 it becomes it."""
    path = os.path.join(SOURCE, "test/golden", name)
    if os.environ.get("TIDEMARK_ACCEPT"):
        with open(path, "w", newline="", encoding="utf-8") as file:
            file.write(text)
    with open(path, newline="", encoding="utf-8") as file:
        expected = file.read()
    check(expected == text, "\n".join(difflib.unified_diff(
        expected.splitlines(), text.splitlines(), name, "now", lineterm="")))
