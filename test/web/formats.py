#!/usr/bin/env python3
"""What `tidemark export` writes, in the pages of those whose formats they are (libformats.mjs): Valgrind's
dh_view.html, speedscope's page; and the flame graph, in Chromium."""
# timeout: 300
# parallel: yes
import json
import os
import shutil
import subprocess
import sys

from libanswer import SOURCE, answer, assemble, run

PAGES = {"dh_view": ["/usr/libexec/valgrind/dh_view.html", "/usr/lib/valgrind/dh_view.html",
                     "/usr/lib/x86_64-linux-gnu/valgrind/dh_view.html"],
         "speedscope": [os.path.join(SOURCE, "web/node_modules/speedscope/dist/release/index.html")]}


def skip(reason):
    print(reason)
    sys.exit(77)


def export(path, name, out, *words):
    run("export", path, "--format", name, "-o", out, "--force", *words)
    return os.path.abspath(out)


def prepare():
    path = assemble("kitchen")
    row = answer("window", path, "--by", "layer")["rows"][0]
    peak = answer("active", path, "--at", "peak")["heap"]
    return {
        "pages": {name: next(filter(os.path.exists, paths), None) for name, paths in PAGES.items()},
        "dhat": export(path, "dhat", "kitchen.dhat"),
        "empty_dhat": export(assemble("nothing"), "dhat", "nothing.dhat"),
        "family_dhat": export(assemble("family"), "dhat", "family.dhat"),
        "speedscope": export(path, "speedscope", "kitchen.speedscope.json"),
        "flamegraph": export(path, "flamegraph", "kitchen.svg", "--value", "allocated"),
        "row": row, "peak": peak,
    }


def main():
    if not os.path.exists("/usr/bin/chromium"):
        skip("needs Debian's chromium")
    if not shutil.which("node") or not os.path.exists(os.path.join(SOURCE, "web/node_modules/playwright-core")):
        skip("needs node and npm packages (tools/web setup)")
    return subprocess.run(["node", os.path.join(SOURCE, "test/web/libformats.mjs"),
                           json.dumps(prepare())]).returncode


sys.exit(main())
