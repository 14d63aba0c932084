#!/usr/bin/env python3
"""The documents have the figures of docs/performance.json, and tools/bench-tables notices where not."""
# parallel: yes
import json
import os
import shutil
import subprocess
import sys

SOURCE = os.environ["TIDEMARK_SOURCE"]
FILES = ("tools/bench-tables", "docs/performance.json", "docs/performance.md", "README.md")


def tables(*words):
    return subprocess.run([sys.executable, "tools/bench-tables", *words], capture_output=True, text=True)


def tool(seconds):
    return {"cpu": [seconds] * 4, "wall": [seconds] * 4, "bytes": 100, "memory": 1 << 20}


def native():
    return {"cpu": 0.5, "wall": 0.5, "memory": 1 << 20}


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
    measured = [{"name": "sqlite3", "start": False, "events": 1000, "tools": {
                    "tidemark": tool(0.1), "heaptrack": tool(2.0), "debian": tool(3.0)},
                 "native": native(), "versions": {"heaptrack": "9.9", "debian": "1.4.0"}},
                {"name": "true", "start": True, "events": 0, "tools": {"tidemark": tool(0.0025)},
                 "native": native(), "versions": {}}]
    with open("measured", "w", encoding="ascii") as file:
        json.dump(measured, file)
    tables("--from", "measured")
    with open("docs/performance.md", encoding="utf-8") as file:
        taken = file.read()
    verdicts = [("documents say what was measured", agree.returncode == 0, agree.stdout),
                ("a figure that was changed by hand is noticed",
                 noticed.returncode == 1 and "README.md" in noticed.stdout, noticed.stdout),
                ("and is written again", again == text, ""),
                ("a newer heaptrack is who the ratio is of, and Debian's is beside it",
                 "| sqlite3 | 1,000 | 500 | 100 ±0 | 2000 ±0 | 9.9 | **20.0** | 15 | 30.0 |" in taken, taken),
                ("a start has no calls to be divided by", "| true | 500 | **2.5 ±0.0** | 3 | – |" in taken, taken),
                ("what was not measured keeps its row", "| perl | 4,020,102 |" in taken, taken)]
    print(f"1..{len(verdicts)}")
    for number, (what, well, said) in enumerate(verdicts, 1):
        print(f"{'ok' if well else 'not ok'} {number} - {what}")
        if not well:
            print("# " + said)
    return 0 if all(verdict[1] for verdict in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
