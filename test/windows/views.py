#!/usr/bin/env python3
"""Views of sections, under Wine: those of a file name it, with the place in it; those of the paging
file name none."""
# timeout: 400
# parallel: yes
import os
import re
import subprocess

import libwin
from libwin import equal

libwin.need_wine()
EXE = libwin.built("tidemark.exe")
PROGRAM = os.path.join(libwin.SOURCE, "test", "programs", "win", "views.c")
MIB = 1 << 20
libwin.begin_prefix()
for BITS in libwin.WIDTHS:
    libwin.cross_compile(BITS, f"views{BITS}.exe", PROGRAM)
    DONE = libwin.wine(EXE, "record", "-o", f"views{BITS}.tide", "--",
                       libwin.windows_path(f"views{BITS}.exe"), prefix="prefix", text=True)
    PLACES = re.search(r"views: (\w+) (\w+) (\w+)", DONE.stdout)
    equal((0, True), (DONE.returncode, PLACES is not None), f"{BITS} bits: it is recorded ({DONE})")
    DUMP = subprocess.run([os.environ["TIDEMARK"], "dump", f"views{BITS}.tide"], capture_output=True,
                          text=True, check=True).stdout
    FILES = {number: re.split(r"[\\/]", path)[-1] for number, path in
             re.findall(r'^file x(\d+) .*?"(.*)"$', DUMP, re.M)}
    VIEWS = {}
    for at, size, rest in re.findall(r" mmap s\d+ 0x(\w+) (\d+) prot=\w+ flags=shared(.*)$", DUMP,
                                     re.M):
        said = dict(re.findall(r"(file|offset)=x?(\w+)", rest))
        VIEWS[at] = (int(size), FILES.get(said.get("file")), int(said.get("offset", "0"), 0))
    for PLACE, EXPECTED in zip(PLACES.groups(), ((2 * MIB, "viewed.bin", MIB), (MIB, None, 0),
                                                 (65536, "viewed.bin", 0))):
        equal(EXPECTED, VIEWS.get(PLACE), f"{BITS} bits: the view at {PLACE}")
    SAID = libwin.ask("map", f"views{BITS}.tide")["owners"]
    equal((True, MIB), (SAID["file"] >= 2 * MIB, SAID["program"]),
          f"{BITS} bits: in a map too, what shows the file is a file's, and the rest the program's")
libwin.end_prefix()
libwin.end()
