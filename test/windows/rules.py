#!/usr/bin/env python3
"""What the code of 32-bit functions says of their frames is what .eh_frame says, behind each call of
Wine's DLLs, from the place on and from the function's start, through virtual calls too; and small
pieces of code in the forms of Microsoft's compilers are understood."""
# timeout: 200
# parallel: yes
import os
import re
import subprocess

import libwin
from libwin import check

NAMES = ["ntdll.dll", "kernel32.dll", "kernelbase.dll", "msvcrt.dll", "ucrtbase.dll"]
PARTS = ["epilogue", "epilogue_insn", "cfi", "eh_win32", "insn", "text"]
FOLDER = os.path.join(libwin.SOURCE, "src")

libwin.need_wine(32)
subprocess.run(["i686-w64-mingw32-gcc", "-O2", "-I", FOLDER, "-o", "rules.exe",
                os.path.join(libwin.SOURCE, "test", "programs", "win", "rules.c"),
                *(os.path.join(FOLDER, "recorder", f"{part}.c") for part in PARTS)], check=True)
libwin.begin_prefix()
done = libwin.wine("rules.exe", *NAMES, "msxml3.dll", prefix="prefix", text=True)
libwin.end_prefix()
said = re.search(r"^forms (\d+) wrong (\d+)", done.stdout, re.M)
check(f"{said and said[1]} pieces of code are understood", said and said[2] == "0", done.stdout)
for name in NAMES:
    said = re.search(rf"^rules {name} same (\d+) other (\d+) sure-and-other \d+ unknown (\d+)",
                     done.stdout, re.M)
    check(f"{name} is gone through", said, done.stdout)
    same, other, unknown = (int(word) for word in said.groups())
    places = same + other + unknown
    # Functions that come back from nowhere, and assembly whose tables are wrong, are the others.
    check(f"{name}: of {places} places {100 * same / places:.2f} % are as .eh_frame says, "
          f"{100 * unknown / places:.2f} % are unknown",
          places > 1000 and same > 0.93 * places and other < 0.02 * places, done.stdout)
for name in (*NAMES, "msxml3.dll"): # which calls objects
    made, other = map(int, re.search(rf"^rules {name} .* made (\d+) made-other (\d+)$", done.stdout, re.M).groups())
    # Assembly whose tables do not say what it pushes.
    check(f"{name}: {made} frames are as the function's start says, {other} are not", made > 700 and other < 6,
          done.stdout)
libwin.end()
