#!/usr/bin/env python3
"""The viewer's page about many traces, in a browser (libfleetchecks.mjs), beside what `tidemark fleet` says."""
# timeout: 300
# parallel: yes
import json
import re
import subprocess
import sys

from libanswer import TIDEMARK, run
from libbrowser import need_browser, run_checks, skip
from libclickhouse import Server
from libfleet import ODD, fleet_of
from libtests import Skip

COMMANDS = ("grew", "sites", "hosts", "trend", "traces"), ("trend", "--site", ODD), ("sites", "--label", "host=web4"), \
    ("grew", "--before", "1.0", "--after", "1.1"), ("hosts", "--label", "host=web1")


def main():
    need_browser()
    try:
        server = Server()
    except Skip as reason:
        skip(str(reason))
    viewing = None
    try:
        fleet_of(server)
        viewing = subprocess.Popen([TIDEMARK, "view", server.place, "--no-open"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        url = re.search(r"http://\S+", viewing.stdout.readline())[0]
        asked = [(question,) for question in COMMANDS[0]] + list(COMMANDS[1:])
        answers = {"/".join(words): json.loads(run("fleet", words[0], server.place, *words[1:], "--rows", "200", "--json").stdout) for words in asked}
        return run_checks("libfleetchecks.mjs", {"url": url, "place": server.place, "odd": ODD, "answers": answers},
                          {"kill": server.kill, "start": server.start})
    finally:
        server.kill()
        if viewing:
            viewing.terminate()
            viewing.wait(10)


sys.exit(main())
