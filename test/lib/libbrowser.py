"""libbrowser: checks of the viewer's page in Debian's chromium, which are written in JavaScript."""
import json
import os
import shutil
import subprocess
import sys
import threading

SOURCE = os.environ["TIDEMARK_SOURCE"]
SECONDS_MAX = 840


def skip(reason):
    print(reason)
    sys.exit(77)


def need_browser():
    if not os.path.exists("/usr/bin/chromium"):
        skip("needs Debian's chromium")
    if not shutil.which("node") or not os.path.exists(os.path.join(SOURCE, "web", "node_modules", "playwright-core")):
        skip("needs node and npm packages (tools/web setup)")
    if subprocess.run([os.environ["TIDEMARK"], "view", "--help"], stdout=subprocess.DEVNULL, check=False).returncode:
        skip("this tidemark was built without the viewer (libmicrohttpd)")


def run_checks(script, given, asked):
    """test/web/SCRIPT with what it is given. asked: {word: function} for lines "# word" of it, each of
    which it waits for. Its exit code."""
    with subprocess.Popen(["node", os.path.join(SOURCE, "test", "web", script), json.dumps(given)],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as browser:
        killer = threading.Timer(SECONDS_MAX, browser.kill)
        killer.start()
        for line in browser.stdout:
            if line[2:-1] in asked:
                asked[line[2:-1]]()
                browser.stdin.write("done\n")
                browser.stdin.flush()
                continue
            print(line, end="", flush=True)
        killer.cancel()
        return browser.wait()
