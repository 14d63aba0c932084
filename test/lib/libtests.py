"""libtests: what every script of tests shares: functions that are tests, run one after the other,
each with a line of its own (TAP).

    from libtests import main, test

    @test
    def the_name_is_the_sentence_that_is_true():
        …

    main()

run-tests puts this folder on the scripts' path. `script.py PART…` runs the tests whose name has a
part of that text in it.
"""
import functools
import importlib
import os
import resource
import socket
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
PROBLEM_CHARACTERS = 3000
# What a command or a condition is waited for where nothing but a hang takes that long: however
# busy the machine is. It is only for a script that somebody starts by hand: run-tests ends one that
# hangs before, by a limit that knows how busy the machine is.
PATIENCE_SECONDS = 3600
in_folders = False  # each test runs in a folder of its own
_cases = []  # (name, function)
_held = []  # sockets at ports of ours


class Skip(Exception):
    """Raised by a test that cannot be run here; its text is the reason."""


class Failed(AssertionError):
    """Raised by check() and equal(); its text says all."""


def check(condition, *what):
    if not condition:
        raise Failed(" ".join(str(word) for word in what))


def equal(expected, actual, what="this"):
    check(expected == actual, f"{what}: expected {expected!r}, got {actual!r}")


def processor_seconds():
    """Of this script, and of all that it has waited for."""
    return sum(used.ru_utime + used.ru_stime
               for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def wait_for(condition, what, seconds=PATIENCE_SECONDS, pause=0.01):
    """What condition() returns, once that is true."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        check(time.monotonic() < deadline, f"waited {seconds} s for: {what}")
        time.sleep(pause)
    return found


def free_port():
    """A port of ours for as long as this runs: it stays bound, so that nobody else is given it, also while no
    server listens. A server may, as it asks with SO_REUSEADDR; until then who connects is refused."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    _held.append(held)
    return held.getsockname()[1]


def test(function):
    """Register a test. Its name, with blanks, is the sentence that is true."""
    case(function.__name__.replace("_", " "), function)
    return function


def case(name, function, *words):
    """Register function(*words) as a test of this name: for tests that are rows of a table."""
    _cases.append((name, functools.partial(function, *words)))


def _tell(problem):
    """What went wrong, and which lines of the script led there."""
    text = str(problem) if isinstance(problem, Failed) else f"{type(problem).__name__}: {problem}"
    lines = text[:PROBLEM_CHARACTERS].splitlines()
    for frame in traceback.extract_tb(problem.__traceback__):
        if frame.filename.startswith(os.path.dirname(HERE)) and frame.name != "_run":
            lines.append(f"{os.path.basename(frame.filename)}:{frame.lineno}: {frame.line}")
    print("\n".join("#   " + line for line in lines), flush=True)


def _run(number, name, function):
    """Returns whether it went well."""
    began, used = time.monotonic(), processor_seconds()
    try:
        function()
        print(f"ok {number} - {name}\n# {time.monotonic() - began:.2f} s {processor_seconds() - used:.2f} cpu", flush=True)
    except Skip as reason:
        print(f"ok {number} - {name} # SKIP {reason}", flush=True)
    except Exception as problem:  # whatever it is, the others still run
        print(f"not ok {number} - {name}", flush=True)
        _tell(problem)
        return False
    return True


def _in_folder(name, function):
    folder = name.replace(" ", "_")
    os.makedirs(folder, exist_ok=True)
    os.chdir(folder)
    try:
        return function()
    finally:
        os.chdir("..")


def take(script, *parts):
    """Register the tests of another script too, or those with one of the parts in their names."""
    begun = len(_cases)
    importlib.import_module(script)
    _cases[begun:] = [(name, function) for name, function in _cases[begun:]
                      if not parts or _is_chosen(name, parts)]


def _is_chosen(name, parts):
    return any(part.replace("_", " ") in name for part in parts)


def main(after=None, needs=None):
    """Run all that is registered, calling `after` behind each, and end the script: with 1 if any failed.
    Where needs() raises Skip, all of it is skipped. In a script that another one imports it does
    nothing."""
    if sys._getframe(1).f_globals["__name__"] != "__main__":
        return
    try:
        if needs:
            needs()
    except Skip as reason:
        print(reason)
        sys.exit(77)
    chosen = [(name, function) for name, function in _cases
              if len(sys.argv) < 2 or _is_chosen(name, sys.argv[1:])]
    print(f"1..{len(chosen)}", flush=True)
    failed = 0
    for number, (name, function) in enumerate(chosen, 1):
        run = functools.partial(_run, number, name, function)
        failed += not (_in_folder(name, run) if in_folders else run())
        if after:
            after()
    sys.exit(1 if failed else 0)
