#!/usr/bin/env python3
"""The documents have the figures of docs/performance.json, and tools/bench-tables notices where not."""
# parallel: yes
import os
import shutil
import subprocess
import sys

SOURCE = os.environ["TIDEMARK_SOURCE"]
FILES = ("tools/bench-tables", "docs/performance.json", "docs/performance.md", "README.md")


def tables(*words):
    return subprocess.run([sys.executable, "tools/bench-tables", *words], capture_output=True, text=True)


def main():
    for name in FILES:
        os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
        shutil.copy(os.path.join(SOURCE, name), name)
    agree = tables("--check")
    with open("README.md", encoding="utf-8") as file:
        text = file.read()
    with open("README.md", "w", encoding="utf-8") as file:
        file.write(text.replace("| sqlite3 | 2,", "| sqlite3 | 3,"))
    noticed = tables("--check")
    tables()
    with open("README.md", encoding="utf-8") as file:
        again = file.read()
    verdicts = [("documents say what was measured", agree.returncode == 0, agree.stdout),
                ("a figure that was changed by hand is noticed",
                 noticed.returncode == 1 and "README.md" in noticed.stdout, noticed.stdout),
                ("and is written again", again == text, "")]
    print(f"1..{len(verdicts)}")
    for number, (what, well, said) in enumerate(verdicts, 1):
        print(f"{'ok' if well else 'not ok'} {number} - {what}")
        if not well:
            print("# " + said)
    return 0 if all(verdict[1] for verdict in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
