#!/usr/bin/env python3
"""The viewer in a browser (libchecks.mjs): traces are recorded and served here, Chromium looks at them."""
# timeout: 900
# parallel: yes
import json
import os
import re
import shutil
import subprocess
import sys

from libbrowser import need_browser, run_checks

TIDEMARK = os.environ["TIDEMARK"]
BUILD = os.environ["TIDEMARK_BUILD"]
HOSTILE = r'''
#include <stdlib.h>
__attribute__((noinline)) void leak(void) { for (int i = 0; i < 50; i++) *(volatile char *)malloc(100) = 1; }
int main(void) { leak(); return 0; }
'''

servers = []


def run(*words, **more):
    return subprocess.run(words, capture_output=True, text=True, **more)


def record(trace, *words, **variables):
    done = run(TIDEMARK, "record", "-q", "--force", "-o", trace, "--", *words, env={**os.environ, **variables})
    if done.returncode:
        raise RuntimeError(f"record {words}: {done.stderr}")


def serve(*words):
    """The address that the server prints."""
    server = subprocess.Popen([TIDEMARK, "view", *words, "--no-open"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
    servers.append(server)
    found = re.search(r"http://\S+", server.stdout.readline())
    if not found:
        raise RuntimeError(f"view {words} printed no address")
    return found[0]


def answer(url, path):
    home, token = url.split("/#t=")
    done = run("python3", "-c", "import sys, urllib.request as u; sys.stdout.buffer.write("
               "u.urlopen(u.Request(sys.argv[1], headers={'Authorization': 'Bearer ' + sys.argv[2]})).read())",
               f"{home}/api/{path}", token)
    if done.returncode:
        raise RuntimeError(f"{path}: {done.stderr}")
    return json.loads(done.stdout)


def hostile():
    """A program one of whose functions is called like markup."""
    if not shutil.which("gcc") or not shutil.which("objcopy"):
        return None
    with open("hostile.c", "w", encoding="utf-8") as file:
        file.write(HOSTILE)
    for words in (("gcc", "-O1", "-o", "hostile", "hostile.c"),
                  ("objcopy", "--redefine-sym", "leak=<img src=x onerror=alert(1)>", "hostile")):
        done = run(*words)
        if done.returncode:
            raise RuntimeError(f"{words}: {done.stderr}")
    record("hostile.tide", "./hostile")
    return serve("hostile.tide")


def html_export_file():
    if "--html" not in run(TIDEMARK, "view", "--help").stdout:
        return None
    done = run(TIDEMARK, "view", "ex2.tide", "--html", "single.html")
    if done.returncode:
        raise RuntimeError(f"view --html: {done.stderr}")
    return "single.html"


def with_findings():
    """A peak of one short buffer, a block that is freed twice, a site that could save calls."""
    lines = ['trace command="./app"', 'process p pid=7 exe="/bin/app"', "thread t p tid=7",
             'stack b "malloc" < "base" < "main"', 'stack e "malloc" < "export" "export.c":10 < "main" "app.c":80',
             'stack f "malloc" < "format" "format.c":3 < "main" "app.c":90',
             "@1ms t malloc b 0x100000 2097152"]
    for step in range(12000):
        lines += [f"@{2000000 + step * 1000} t malloc f 0x90000 100", f"@{2000500 + step * 1000} t free 0x90000"]
    lines += ["@5s t malloc e 0x1000000 8388608", "@5020ms t free 0x1000000", "@6s t malloc f 0x50000 40",
              "@7s t free 0x50000", "@8s t free 0x50000", "@10s end p exit=0", "end", ""]
    with open("findings.txt", "w", encoding="utf-8") as file:
        file.write("\n".join(lines))
    done = run(TIDEMARK, "dump", "--assemble", "findings.txt", "-o", "findings.tide")
    if done.returncode:
        raise RuntimeError(done.stderr)
    return serve("findings.tide")


def prepare():
    exercise = os.path.join(BUILD, "test", "programs", "exercise2")
    record("ex2.tide", exercise, EX2_SCALE=os.environ.get("EX2_SCALE", "0.05"))
    record("other.tide", exercise, "threads", EX2_SCALE="0.01")
    shutil.copy("ex2.tide", "gone.tide")
    with open("ex2.tide", "rb") as file:
        whole = file.read()
    with open("cut.tide", "wb") as file:
        file.write(whole[:len(whole) - 40])
    url = serve("ex2.tide", "--diff", "other.tide")
    growth = json.loads(run(TIDEMARK, "growth", "ex2.tide", "--json").stdout)
    resident = json.loads(run(TIDEMARK, "reconcile", "ex2.tide", "--json").stdout)
    diff = json.loads(run(TIDEMARK, "diff", "ex2.tide", "other.tide", "--json").stdout)
    return {
        "url": url, "marks": answer(url, "marks")["marks"], "duration_ns": answer(url, "view")["duration_ns"],
        "rss_peak": max(resident["rss_max_bytes"], resident["vmhwm_bytes"]),
        "diff_allocated": diff["total"]["allocated"]["bytes"], "hostile": hostile(), "cut": serve("cut.tide"),
        "growth": next(row["verdict"] for row in growth["rows"]
                       if any(frame["function"] == "InnerLoopOperation" for frame in row["stack"])),
        "gone": serve("gone.tide"), "findings": with_findings(), "single": html_export_file(),
    }


def main():
    need_browser()
    return run_checks("libchecks.mjs", prepare(), {"remove": lambda: os.remove("gone.tide")})


try:
    status = main()
finally:
    for server in servers:
        server.terminate()
        server.wait(10)
sys.exit(status)
