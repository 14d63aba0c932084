#!/usr/bin/env python3
"""The viewer's page: that the one in the tree is what web/ builds, how large it is, its own tests."""
# timeout: 600
# parallel: yes
import gzip
import os
import re
import shutil
import subprocess
import sys

SOURCE = os.environ["TIDEMARK_SOURCE"]
PAGE = os.path.join(SOURCE, "src", "view", "page.html")
GZIPPED_MAX = 100 * 1024

failed = 0
number = 0


def tell(name, problem=None):
    global number, failed
    number += 1
    print(f"{'not ok' if problem else 'ok'} {number} - {name}")
    if problem:
        failed += 1
        print(problem)


def tool(*words, **variables):
    done = subprocess.run([os.path.join(SOURCE, "tools", "web"), *words], capture_output=True, text=True,
                          env={**os.environ, **variables})
    return None if done.returncode == 0 else done.stdout + done.stderr or f"exit code {done.returncode}"


def read(path):
    with open(path, "rb") as file:
        return file.read()


def problem_of_marks(page):
    """What the C side looks for in the page stands there once, and nothing needs another file."""
    for text, times in (("<!--tidemark:policy-->", 1), ("<!--tidemark:data-->", 1), ("<style>", 1),
                        ("</style>", 1), ('<script type="module">', 1), ("</script>", 1),
                        (" src=", 0), (" style=", 0)):
        markup = re.sub(r'(?s)(<script type="module">|<style>).*?(</script>|</style>)', r"\1\2", page)
        if markup.count(text) != times:
            return f"{text} stands there {markup.count(text)} times, not {times}"
    if not page.index("<!--tidemark:policy-->") < page.index("<style>") < page.index("<script"):
        return "the policy does not stand before what it is about"
    return None


page = read(PAGE)
size = len(gzip.compress(page, 9))
print("1..5")
tell("the page is at most 100 KiB, gzipped",
     f"{size} bytes" if size > GZIPPED_MAX else None)
tell("the page has the marks that it is completed by, and needs no other file",
     problem_of_marks(page.decode()))
if not shutil.which("node") or not os.path.exists(os.path.join(SOURCE, "web", "node_modules", "vite")):
    for name in ("the page is what web/ builds", "the types are right", "its unit tests pass"):
        number += 1
        print(f"ok {number} - {name} # SKIP needs node and npm packages (tools/web setup)")
    sys.exit(0)
problem = tool("build", TIDEMARK_PAGE=os.path.abspath("page.html"))
if not problem and read("page.html") != page:
    problem = "src/view/page.html is not what web/ builds: run make web"
tell("the page is what web/ builds", problem)
tell("the types are right", tool("check"))
tell("its unit tests pass", tool("test"))
sys.exit(failed > 0)
