#!/usr/bin/env python3
"""DLLs that come to where others were: each allocation's stack names the one that was there then."""
# timeout: 400
# parallel: yes
import os
import re

import libwin
from libwin import ask

libwin.need_wine()
EXE = libwin.built("tidemark.exe")
PROGRAM = os.path.join(libwin.SOURCE, "test", "programs", "win", "reload.c")
SIZES = {"first": 1001, "second": 1002}

libwin.begin_prefix()
for BITS in libwin.WIDTHS:
    for NAME, SIZE in SIZES.items():
        libwin.cross_compile(BITS, f"{NAME}.dll", "-shared", f"-DPART={NAME}", f"-DBYTES={SIZE}",
                             "-fno-omit-frame-pointer", "-Wl,--image-base,0x62000000",
                             "-Wl,--disable-dynamicbase", PROGRAM)
    libwin.cross_compile(BITS, "reload.exe", "-fno-omit-frame-pointer", PROGRAM)
    DONE = libwin.wine(EXE, "record", "--force", "-o", "reload.tide", "--",
                       libwin.windows_path("reload.exe"), prefix="prefix", text=True)
    if not re.search(r"reload: 1\b", DONE.stdout):
        raise SystemExit(f"not so: {BITS} bits: both DLLs lie in one place: {DONE}")
    for NAME, SIZE in SIZES.items():
        ROWS = ask("window", "reload.tide", "--by", "stack", "--size", str(SIZE))["rows"]
        COUNT = sum(row["count"] for row in ROWS)
        FILES = {re.split(r"[\\/]", row["keys"]["stack"][0]["module"] or "")[-1] for row in ROWS}
        if (COUNT, FILES) != (10, {f"{NAME}.dll"}):
            raise SystemExit(f"not so: {BITS} bits: {NAME}'s blocks are its own: {COUNT} {FILES}")
        print(f"ok {BITS} bits: the ten blocks of {NAME}.dll are its own")
libwin.end_prefix()
print("4 passed")
