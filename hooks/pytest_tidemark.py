"""pytest_tidemark: tests that fail when they exceed limits of memory, child processes included.

    pytest -p pytest_tidemark --tidemark

    @pytest.mark.limit_memory("24 MB")            the most that lived at one time, of the test's own
    @pytest.mark.limit_leaks("1 MB", warmups=1)   that one place of the code leaves at the test's end
    @pytest.mark.limit_allocations(1000)
    @pytest.mark.tidemark("--max-temporary", "10")     any options of tidemark check

All of pytest runs once, under tidemark record; each test that has a limit is a stretch of the
recording, and is checked when all have run. Without --tidemark the marks mean nothing. What a test
allocates is what any thread, and any process that it started, allocated from its beginning to
its end, without fixtures; where pytest-xdist runs tests side by side (-n), of the worker and the processes below it.
Objects of Python's own heaps count as other allocations do, and so do blocks of malloc. What
exceeds its limits is a failure in --junitxml FILE, too. --tidemark-trace FILE keeps the trace;
TIDEMARK names the program tidemark.

limit_leaks runs the test's function warmups times first (1), so that caches are full, and collects
garbage before and after: what is left then is what the last run allocated and did not free. Each
place (stack) by itself is held against the limit, as pytest-memray does it.
"""
import ctypes
import gc
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

import pytest

_client = None  # looked for once: a test's figures are not to have that in them
_begun = 0  # tests that have limits
INSIDE = "TIDEMARK_PYTEST"  # a file that gets the tests' limits, when pytest is recorded


def pytest_addoption(parser):
    group = parser.getgroup("tidemark")
    group.addoption("--tidemark", action="store_true", help="record the tests, and check limits")
    group.addoption("--tidemark-trace", metavar="FILE", help="keep the trace")


def pytest_configure(config):
    for mark in ('limit_memory(size): at most so many bytes at one time, as in "24 MB"',
                 'limit_leaks(size, warmups=1): no place leaves more than so many bytes at the end',
                 "limit_allocations(count): at most so many allocations",
                 "tidemark(*options): options of tidemark check"):
        config.addinivalue_line("markers", mark)


# --- inside ---

def _mark(name, suffix):
    """What tidemark_mark of tidemark.h does."""
    global _client

    class Client(ctypes.Structure):
        _fields_ = [("size", ctypes.c_size_t),
                    ("mark", ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p))]
    try:
        _client = _client or Client.in_dll(ctypes.CDLL(None), "tidemark_client_v1").mark
    except ValueError:
        return False
    _client(name.encode(), suffix.encode())
    return True


def _size(text):
    """As tidemark reads it: "24 MB" is 24M."""
    return re.sub(r"\s|i?[bB]$", "", str(text))


def _limits(item):
    """Options of tidemark check."""
    options = []
    for mark in item.iter_markers("limit_memory"):
        options += ["--max-peak", _size(mark.args[0])]
    for mark in item.iter_markers("limit_allocations"):
        options += ["--max-allocations", str(mark.args[0])]
    for mark in item.iter_markers("tidemark"):
        options += [str(word) for word in mark.args]
    return options


def _warm_up(item):
    """The test once more. If it fails, so it does in the run that counts."""
    try:
        item.runtest()
    except BaseException:  # pytest's own outcomes (skip, fail) are no Exceptions
        pass


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    global _begun
    told = os.environ.get(INSIDE)
    options = _limits(item) if told else []
    leaks = item.get_closest_marker("limit_leaks") if told else None
    _begun += 1
    # Names of marks are cut, and a test may run again: the number keeps them apart.
    name = f"test {os.getpid()}.{_begun} {item.nodeid}"[:200]
    if leaks:
        for _ in range(leaks.kwargs.get("warmups", 1)):
            _warm_up(item)
        gc.collect()
    if (options or leaks) and not _mark(name, ".begin"):
        raise RuntimeError("tidemark does not record this process")
    if options or leaks:
        item.user_properties.append((INSIDE, name))  # which --junitxml writes beside its case
    yield
    if leaks:
        gc.collect()
    if options or leaks:
        _mark(name, ".end")
        worker = os.getpid() if "PYTEST_XDIST_WORKER" in os.environ else None
        with open(told, "a", encoding="utf-8") as file:
            file.write(json.dumps([item.nodeid, name, options, leaks and _size(leaks.args[0]), worker]) + "\n")


# --- outside ---

def _check(tidemark, trace, name, options):
    command = [tidemark, "check", trace, "--from", f"mark:{name}.begin", "--to", f"mark:{name}.end"]
    return subprocess.run(command + options, capture_output=True, text=True, check=False,
                          env={**os.environ, "TIDEMARK_CONF": ""})


def _leaks(tidemark, trace, name, limit, below):
    """What exceeds the limit, "": nothing; or why that is not known."""
    command = [tidemark, "window", trace, "--from", f"mark:{name}.begin", "--to", f"mark:{name}.end",
               "--impact", "AIFO", "--exit-frees", "--by", "stack", "--min-bytes", limit, *below]
    env = {**os.environ, "TIDEMARK_CONF": ""}
    done = subprocess.run(command + ["--json"], capture_output=True, text=True, check=False, env=env)
    if done.returncode:
        return done.stdout + done.stderr
    rows = json.loads(done.stdout)["rows"]
    if not rows:
        return ""
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    return f"FAILED  leaks: {len(rows)} place{'s' if len(rows) > 1 else ''} left {limit} or more each\n{done.stdout}"


def _below(tidemark, trace, worker):
    """Filters for a process and those that it started."""
    told = json.loads(subprocess.run([tidemark, "info", trace, "--json"], capture_output=True,
                                     check=True).stdout)
    chosen = set()
    for process in told["processes"]:  # parents come before their children
        if process["pid"] == worker or process["parent_id"] in chosen:
            chosen.add(process["id"])
    return [f"--process=#{number}" for number in sorted(chosen)]


def _add_failures(path, failures):
    """To what pytest has written: failures by the name of a test's marks."""
    tree = xml.etree.ElementTree.parse(path)
    for suite in tree.iter("testsuite"):
        for case in suite.iter("testcase"):
            found = {name.get("value"): name for name in case.iter("property")
                     if name.get("name") == INSIDE}
            why = next((failures[name] for name in found if name in failures), None)
            for properties in case.findall("properties"):
                for one in found.values():
                    if one in properties:
                        properties.remove(one)
                if not len(properties):
                    case.remove(properties)
            if why and case.find("failure") is None and case.find("error") is None:
                failure = xml.etree.ElementTree.SubElement(
                    case, "failure", message="exceeds limits of memory, or could not be judged")
                failure.text = re.sub("[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", "?", why)
                suite.set("failures", str(int(suite.get("failures", "0")) + 1))
    tree.write(path, encoding="utf-8", xml_declaration=True)


def _run(config, folder):
    tidemark = os.environ.get("TIDEMARK", "tidemark")
    trace = os.path.abspath(config.getoption("tidemark_trace") or os.path.join(folder, "pytest.tide"))
    told = os.path.join(folder, "limits")
    if not shutil.which(tidemark):
        raise pytest.UsageError(f"{tidemark}: no such program (TIDEMARK names it, or PATH)")
    code = subprocess.run(
        [tidemark, "record", "-q", "-f", "--language-heaps", "-o", trace, "--", sys.executable, "-m", "pytest",
         *config.invocation_params.args], check=False, env={**os.environ, INSIDE: told}).returncode
    if not os.path.exists(told):
        return code
    failures, below = {}, {None: []}
    with open(told, encoding="utf-8") as file:
        for nodeid, name, options, leaks, worker in map(json.loads, file):
            if worker not in below:
                below[worker] = _below(tidemark, trace, worker)
            why = ""
            if options:
                done = _check(tidemark, trace, name, options + below[worker])
                why = done.stdout + done.stderr if done.returncode else ""
            if leaks:
                why += _leaks(tidemark, trace, name, leaks, below[worker])
            if why:
                failures[name] = why
                print(f"TIDEMARK {nodeid}\n{failures[name]}")
    if failures:
        print(f"{len(failures)} test{'s' if len(failures) > 1 else ''} exceeded limits of memory, or "
              f"could not be judged")
    path = config.getoption("xmlpath", None)
    if path:
        _add_failures(os.path.expanduser(os.path.expandvars(path)), failures)
    return code or (1 if failures else 0)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    if not config.getoption("tidemark") or INSIDE in os.environ:
        return None
    with tempfile.TemporaryDirectory() as folder:
        return _run(config, folder)
