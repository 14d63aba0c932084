#!/usr/bin/env python3
"""`tidemark import` of what other tracers print: perf and LTTng record a program that tidemark
records too, and both know the same blocks."""
import os
import shutil
import signal
import subprocess

from libanswer import TIDEMARK, answer, run
from libtests import PATIENCE_SECONDS, Skip, main, test

PROGRAM = r"""
#include <stdlib.h>
static void *kept[100];
__attribute__((noinline)) static void *take(size_t size) { return malloc(size); }
int main(void)
{
	for (int i = 0; i < 100; i++)
		kept[i] = take(i * 10 + 1);
	for (int i = 0; i < 50; i++)
		free(kept[i]);
	kept[60] = realloc(kept[60], 5000);
	kept[61] = calloc(3, 7);
	return kept[61] == NULL;
}
"""
LIBC = "/lib/x86_64-linux-gnu/libc.so.6"
WRAPPER = "/usr/lib/x86_64-linux-gnu/liblttng-ust-libc-wrapper.so.1"
PROBES = ("malloc size=%di:u64", "malloc%return ret=$retval", "calloc n=%di:u64 size=%si:u64",
          "calloc%return ret=$retval", "realloc ptr=%di size=%si:u64", "realloc%return ret=$retval",
          "free ptr=%di")


def program():
    if not os.path.exists("app"):
        with open("app.c", "w") as file:
            file.write(PROGRAM)
        subprocess.run(["gcc", "-g", "-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls",
                        "-o", "app", "app.c"], check=True)
        subprocess.run([TIDEMARK, "record", "-o", "app.tide", "--", "./app"], check=True,
                       stderr=subprocess.DEVNULL)
    return os.path.abspath("app")


def said(*words, **more):
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS,
                          stdin=subprocess.DEVNULL, **more)


def sums(path, *words):
    heap = answer("report", path, *words)["heap"]
    return {name: heap[name] for name in ("allocations", "frees", "reallocations", "allocated_bytes",
                                          "orphan_frees")} | heap["live_at_exit"]


def by_function(path):
    """What was allocated, by the function in the program that asked, and its caller."""
    found = {}
    for row in answer("window", path, "--by", "stack", "--all-frames", "-n", "0")["rows"]:
        names = [frame["function"] for frame in row["keys"]["stack"]]
        own = tuple(name for name in names if name in ("take", "main"))
        if own:
            found[own] = found.get(own, 0) + row["allocated"]
    return found


@test
def perf_and_tidemark_saw_the_same_calls():
    path = program()
    if not shutil.which("perf") or os.geteuid() != 0:
        raise Skip("perf probe needs perf and root")
    for probe in PROBES:
        done = said("perf", "probe", "-q", "-f", "-x", LIBC, probe)
        if done.returncode:
            said("perf", "probe", "-q", "-d", "probe_libc:*")
            raise Skip("the kernel takes no probes: " + (done.stderr.strip().split("\n") or [""])[0])
    try:
        subprocess.run(["perf", "record", "-q", "-g", "-e", "probe_libc:*", "-o", "perf.data", "--",
                        path], check=True, capture_output=True)
    finally:
        said("perf", "probe", "-q", "-d", "probe_libc:*")
    for fields in ("+pid,+ip,+sym,+dso", "+pid,+ip,+sym"):
        with open("perf.txt", "w") as file:
            subprocess.run(["perf", "script", "-i", "perf.data", "-F", fields], check=True,
                           stdout=file, stderr=subprocess.DEVNULL)
        run("import", "perf.txt", "-o", "perf.tide", "--force")
        assert sums("perf.tide") == sums("app.tide"), (sums("perf.tide"), sums("app.tide"))
        assert by_function("perf.tide") == by_function("app.tide"), by_function("perf.tide")


@test
def lttng_and_tidemark_saw_the_same_calls():
    path = program()
    if not shutil.which("lttng-sessiond") or not shutil.which("babeltrace2") or \
            not os.path.exists(WRAPPER):
        raise Skip("LTTng is not installed (lttng-tools, liblttng-ust1, babeltrace2)")
    home, name = os.path.abspath("lttng"), f"tidemark-{os.getpid()}"
    os.mkdir(home)
    env = {**os.environ, "LTTNG_HOME": home, "HOME": home}
    started = said("lttng-sessiond", "--daemonize", "--no-kernel", f"--pidfile={home}/pid", env=env)
    try:
        for words in (["create", name, "--output=" + home + "/out"],
                      ["enable-event", "-u", "lttng_ust_libc:*"],
                      ["add-context", "-u", "-t", "vpid", "-t", "vtid"], ["start"]):
            done = said("lttng", "-n", *words, env=env)
            if done.returncode:
                raise Skip("LTTng does not run here: " + " ".join(
                    (started.stderr + done.stderr + done.stdout).split("\n")))
        subprocess.run([path], check=True, timeout=PATIENCE_SECONDS, env={**env, "LD_PRELOAD": WRAPPER})
        said("lttng", "-n", "destroy", name, env=env)
    finally:
        if os.path.exists(home + "/pid"):
            with open(home + "/pid") as file:
                os.kill(int(file.read()), signal.SIGTERM)
    with open("lttng.txt", "w") as file:
        subprocess.run(["babeltrace2", home + "/out"], check=True, stdout=file)
    run("import", "lttng.txt", "-o", "lttng.tide")
    found, expected = sums("lttng.tide"), sums("app.tide")
    # LTTng's own calls are among them: it names no library, so they cannot be left out.
    for name in ("allocations", "frees", "allocated_bytes", "count", "bytes"):
        assert found[name] >= expected[name], (name, found, expected)
    assert found["reallocations"] == expected["reallocations"] and found["orphan_frees"] == 0, found
    sizes = {row["keys"]["size"]: row["allocated_count"]
             for row in answer("window", "lttng.tide", "--by", "size", "-n", "0")["rows"]}
    assert all(sizes.get(i * 10 + 1, 0) >= 1 for i in range(100)) and sizes[5000] == 1, sizes


main()
