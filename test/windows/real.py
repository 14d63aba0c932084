#!/usr/bin/env python3
"""Windows programs that nobody here wrote say the same with the recorder inside as without, and
nothing of theirs is lost."""
# timeout: 240
# parallel: yes
import json
import os
import shutil
import subprocess

import libwin

libwin.need_wine()
EXE = os.path.join(os.environ["TIDEMARK_BUILD"] + "-win", "bin", "tidemark.exe")
if not os.path.exists(EXE):
    libwin.skip("tidemark.exe is not built (make win)")
TIDEMARK = os.environ["TIDEMARK"]
SYSTEM = "C:\\windows\\"
# Programs of 32 bits, where they run.
SMALL = SYSTEM + ("syswow64" if 32 in libwin.WIDTHS else "system32") + "\\"
DEBIAN = "/usr/share/win32/"

COMMANDS = [
    [SYSTEM + "system32\\reg.exe", "query", "HKLM\\Software\\Wine"],
    [SMALL + "reg.exe", "query", "HKLM\\Software\\Wine"],
    [SMALL + "reg.exe", "query", "HKLM\\Software\\Microsoft\\Cryptography", "/s"],
    [SMALL + "reg.exe", "query",
     "HKLM\\Software\\Microsoft\\Windows NT\\CurrentVersion\\Time Zones", "/s"],
    [SYSTEM + "system32\\xcopy.exe", "/s", "/y", "files", "copied\\"],
    [SYSTEM + "system32\\ipconfig.exe"],
    [SYSTEM + "system32\\xcopy.exe", "/?"],
    [SYSTEM + "system32\\msiexec.exe", "/?"],
    [SMALL + "cmd.exe", "/c", "echo one & ver"],
]
for name in ("gzip.exe", "cpio.exe"):  # of 32 bits
    if 32 in libwin.WIDTHS and os.path.exists(DEBIAN + name):
        shutil.copy(DEBIAN + name, name)
        COMMANDS.append(["Z:" + os.path.abspath(name).replace("/", "\\"), "--help"])

# A folder to copy.
os.makedirs("files/deeper", exist_ok=True)
for number in range(50):
    with open(f"files/deeper/{number}", "w", encoding="ascii") as file:
        file.write("text\n" * number)

# What is started first brings up a server that lives on and would keep our pipes open.
subprocess.run([libwin.WINE_RUN, "--prefix", "prefix", "--", "cmd.exe", "/c", "exit"],
               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
for number, command in enumerate(COMMANDS):
    trace = f"real{number}.tide"
    plain = libwin.wine(*command, prefix="prefix", seconds=100)
    traced = libwin.wine(EXE, "record", "-o", trace, "--", *command, prefix="prefix", seconds=100)
    if (plain.returncode, plain.stdout) != (traced.returncode, traced.stdout):
        raise SystemExit(f"not so: {command} says the same: {plain} {traced}")
    if b"0 events lost" not in traced.stderr:
        raise SystemExit(f"not so: {command} loses nothing: {traced.stderr}")
    done = subprocess.run([TIDEMARK, "window", "--json", trace], capture_output=True, check=True)
    total = json.loads(done.stdout)["total"]
    if total["count"] < 50 or total["orphan_frees"] > 2:
        raise SystemExit(f"not so: {command} is recorded from its beginning: {total}")
    print(f"ok {command[0]}: {total['count']} allocations, {total['freed_count']} frees")
if sorted(os.listdir("copied/deeper")) != sorted(os.listdir("files/deeper")):
    raise SystemExit(f"not so: xcopy copies all: {os.listdir('copied/deeper')}")
subprocess.run([libwin.WINE_RUN, "--prefix", "prefix", "--end"], check=False)
print(f"{len(COMMANDS)} passed")
