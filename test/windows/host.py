#!/usr/bin/env python3
"""tidemark.exe says of a trace of Linux what tidemark says of it."""
# timeout: 240
# parallel: yes
import glob
import json
import os
import shutil
import subprocess

import libwin
from libwin import check

libwin.need_wine()
EXE = libwin.built("tidemark.exe")
TIDEMARK = os.environ["TIDEMARK"]
TRACES = os.path.join(libwin.SOURCE, "test", "traces")


def both(*words):
    """What the two say: exit code and standard output."""
    here = subprocess.run([TIDEMARK, *words], capture_output=True)
    there = libwin.wine(EXE, *words, prefix="prefix")
    check(f"{' '.join(words)}: the same exit code", here.returncode == there.returncode,
          here, there)
    return here.stdout, there.stdout


def without_notes(text):
    """Why names are missing is not the same on both systems."""
    return [line for line in text.decode().splitlines()
            if not line.startswith(("symbols:", "         "))]


for source in sorted(glob.glob(os.path.join(TRACES, "*.txt"))):
    name = os.path.basename(source)[:-4]
    subprocess.run([TIDEMARK, "dump", "--assemble", source, "-o", f"{name}.tide"], check=True)
    here, there = both("report", f"{name}.tide")
    check(f"{name}: report says the same", without_notes(here) == without_notes(there), here, there)

here, there = both("dump", "kitchen.tide")
check("dump: to the byte", here == there)
done = libwin.wine(EXE, "dump", "--assemble", os.path.join(TRACES, "crowd.txt"), "-o", "again.tide",
                   prefix="prefix")
check("a trace that tidemark.exe writes is the same",
      open("again.tide", "rb").read() == open("crowd.tide", "rb").read(), done)
here, there = both("info", "family.tide")
check("info: to the byte", here == there)
here, there = both("window", "--json", "crowd.tide")
here, there = json.loads(here), json.loads(there)
check("window --json: the same rows", here["rows"] == there["rows"] and len(here["rows"]) > 0)

# An index is built and read back, its spill files are gone, its pages are checked.
os.environ["TIDEMARK_INDEX"] = "always"
here, there = both("window", "--csv", "--frame", "w.*", "crowd.tide")
check("with an index and an expression: the same", here == there)
left = os.listdir("crowd.tide-index")
check("the index lies beside the trace", "head" in left, left)
check("and nothing that was for the moment is left",
      not [name for name in left if name.startswith(("temporary", "lock"))], left)

shutil.copy("crowd.tide", "ä b ☃.tide")
here, there = both("info", "ä b ☃.tide")
check("a name with blanks and other letters", here == there and b"\xe2\x98\x83" in there, here, there)

with open("long.txt", "w", encoding="ascii") as file:
    file.write("process p pid=1\nthread t p tid=1\nstack s f < main\n")
    file.writelines(f"+1 t malloc s {0x10000 + 64 * number:#x} 8\n" for number in range(20000))
    file.write("end\n")
subprocess.run([TIDEMARK, "dump", "--assemble", "long.txt", "-o", "long.tide"], check=True)
with open("told", "wb") as told, subprocess.Popen(
        [libwin.WINE_RUN, "--prefix", "prefix", "--", EXE, "dump", "long.tide"], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=told) as running:
    line = running.stdout.readline()
    running.stdout.close()
    code = running.wait()
with open("told", "rb") as told:
    told = told.read()
check("who writes to a pipe that nobody reads any more ends quietly", line and code == 3 and not told, code, told)

done = libwin.wine(EXE, "report", "none.tide", prefix="prefix")
check("a file that is missing: exit code 3 and its name",
      done.returncode == 3 and b"none.tide" in done.stderr, done)
done = libwin.wine(EXE, "report", "C:\\windows", prefix="prefix")
check("a folder is refused", done.returncode == 3, done)
subprocess.run([libwin.WINE_RUN, "--prefix", "prefix", "--end"], check=True)

libwin.end()
