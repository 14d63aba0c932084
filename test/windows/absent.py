#!/usr/bin/env python3
"""Commands and options that a system lacks are refused in words: that they are not available on this
system, why, and what to use. A program that the recorder cannot enter is said so, and why, by its file
alone: one of ARM64, which Wine cannot run, and one of x64 whose headers say that its code is ARM64EC,
which Wine runs. So is one that Windows cannot load."""
# timeout: 240
# parallel: yes
import os
import re
import struct
import subprocess

import libwin
from libtests import PATIENCE_SECONDS
from libwin import ask, check, windows_path

libwin.need_wine()
EXE = libwin.built("tidemark.exe")
# The load configuration has its size in front, and says at 200 where ARM64EC code is described.
PROGRAM = r"""
#include <stdio.h>
#include <windows.h>

const unsigned config[64] __attribute__((section(".config"), used)) = { 208, [50] = 0x1000 };

int main(int argc, char **argv)
{
	printf("ran, pid %lu\n", GetCurrentProcessId());
	fflush(stdout);
	if (argc > 1)
		getchar();
	return 7;
}
"""


def refused(done, code, name, system):
    check(f"{name} on {system}", done.returncode == code and not done.stdout and
          f"{name} is not available on {system}: " in done.stderr, done)


def foreign():
    """Copies of a program for other processors, as their headers say."""
    with open("own.c", "w", encoding="utf-8") as file:
        file.write(PROGRAM)
    libwin.cross_compile(64, "own.exe", "own.c")
    with open("own.exe", "rb") as file:
        image = bytearray(file.read())
    at = struct.unpack_from("<I", image, 0x3c)[0]
    sections, optional = struct.unpack_from("<6xH12xH", image, at)
    table = at + 24 + optional
    rva = next(struct.unpack_from("<I", image, table + 40 * i + 12)[0] for i in range(sections)
               if image[table + 40 * i:table + 40 * i + 8] == b".config\0")
    for name, machine, config in (("arm64.exe", 0xaa64, 0), ("arm.exe", 0x1c4, 0), ("arm64ec.exe", 0x8664, rva)):
        struct.pack_into("<H", image, at + 4, machine)
        struct.pack_into("<II", image, at + 24 + 112 + 8 * 10, config, 208 if config else 0)
        with open(name, "wb") as file:
            file.write(image)


def record(trace, *words):
    return libwin.wine(EXE, "record", "-o", trace, *words, prefix="prefix", text=True)


def unentered():
    """The recorder cannot enter it: in a line, before it is started; in the trace; in every answer."""
    foreign()
    for name, words in (("arm64", "it is an ARM64 program, and the recorder is for x86 and x64"),
                        ("arm", "it is an ARM program, and"), ("arm64ec", "its code is ARM64EC, and")):
        done = record("strict.tide", "--strict", "--", windows_path(f"{name}.exe"))
        check(f"{name}: --strict refuses in a line, before it is started", done.returncode == 125
              and words in done.stderr and "(--strict: not started)" in done.stderr
              and done.stderr.count("\n") == 1 and not done.stdout, done)
        check(f"{name}: no trace is left", not os.path.exists("strict.tide"))
        if name != "arm64ec":
            done = record("x.tide", "--", windows_path(f"{name}.exe"))
            check(f"{name}: one that the system does not start is told with its reason",
                  done.returncode == 126 and words in done.stderr, done)
    done = record("own.tide", "--strict", "--", windows_path("own.exe"))
    check("x64: one without such code is recorded", done.returncode == 7, done)
    cmd = r"C:\windows\system32\cmd.exe"
    for trace, command in (("main", ()), ("child", (cmd, "/c"))):
        done = record(f"{trace}.tide", "--", *command, windows_path("arm64ec.exe"))
        said = re.findall(rf"arm64ec\.exe \(process [1-9]\d*\) is not recorded: {words}", done.stderr)
        check(f"{trace}: it runs, and a line says that it is unrecorded", done.returncode == 7
              and done.stdout.startswith("ran") and len(said) == 1, done)
        info = ask("info", f"{trace}.tide")
        check(f"{trace}: the trace says so", len(info["notes"]["messages"]) == 1 and said[0] in
              info["notes"]["messages"][0] and not info["trace"]["complete"], info)
    done = record("child.tide", "--force", "--strict", "--", cmd, "/c", windows_path("arm64ec.exe"))
    check("child: --strict fails in the end", done.returncode == 125 and words in done.stderr, done)
    attach(words)


def guarded():
    """One that asks for Control Flow Guard or for hardware-enforced stacks is recorded, and a line says
    that this was not tried."""
    with open("own.exe", "rb") as file:
        image = bytearray(file.read())
    at = struct.unpack_from("<I", image, 0x3c)[0]
    sections, optional = struct.unpack_from("<6xH12xH", image, at)
    for i in range(sections):
        name, rva, place = struct.unpack_from("<8s4xI4xI", image, at + 24 + optional + 40 * i)
        if name == b".config\0": # what describes ARM64EC elsewhere has room for an entry and its flags
            entry, start = place + 64, rva + 64
    struct.pack_into("<12xIIII", image, entry, 20, 4, 0, entry + 28)
    struct.pack_into("<I", image, entry + 28, 1)
    plain = image[at + 24 + 70:at + 24 + 72]
    for file, flow, stacks, words in (("cfg.exe", 1, 0, "Control Flow Guard: "),
                                      ("cet.exe", 0, 1, "hardware-enforced stacks (CET): "),
                                      ("both.exe", 1, 1, "Guard and for hardware-enforced stacks (CET): ")):
        flags = int.from_bytes(plain, "little") & ~0x4000 | 0x4000 * flow
        struct.pack_into("<H", image, at + 24 + 70, flags)
        struct.pack_into("<II", image, at + 24 + 112 + 8 * 6, start * stacks, 28 * stacks)
        with open(file, "wb") as out:
            out.write(image)
        done = record(f"{file}.tide", "--strict", "--", windows_path(file))
        said = [line for line in done.stderr.splitlines() if "asks for" in line]
        check(f"{file} is recorded, and one line says what was not tried", done.returncode == 7
              and len(said) == 1 and words in said[0], done)
        info = ask("info", f"{file}.tide")
        check(f"{file}: the trace says so", words in info["notes"]["messages"][0]
              and info["trace"]["complete"], info)


def unloaded():
    """What Windows cannot load, since a DLL of it is missing, says so."""
    with open("own.exe", "rb") as file:
        image = file.read()
    with open("unloaded.exe", "wb") as file:
        file.write(re.sub(rb"(?i)msvcrt\.dll\0", b"absent.dll\0", image))
    done = record("unloaded.tide", "--", windows_path("unloaded.exe"))
    check("a missing DLL is named as the reason", "unloaded.exe is not recorded: it ended before its first "
          "instruction, with status 0xc0000135: a DLL that it needs" in done.stderr, done)
    info = ask("info", "unloaded.tide")
    check("the trace says so", not info["trace"]["complete"], info)


def attach(words):
    command = [libwin.WINE_RUN, "--prefix", "prefix", "--time", str(PATIENCE_SECONDS), "--",
               windows_path("arm64ec.exe"), "wait"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        pid = re.search(r"pid (\d+)", running.stdout.readline())[1]
        done = libwin.wine(EXE, "attach", pid, "-o", "attached.tide", prefix="prefix", text=True)
        running.communicate("\n")
        check("attach: it is refused in a line, and runs on", done.returncode == 125 and running.returncode == 7
              and re.fullmatch(rf"tidemark: process {pid}: {words}.*\n", done.stderr), done)
    check("attach: no trace is left", not os.path.exists("attached.tide"))


libwin.begin_prefix()
for option in ("--strict-vm", "--rss-exact", "--index"):
    done = libwin.wine(EXE, "record", option, "--", "cmd.exe", "/c", "exit", prefix="prefix", text=True)
    refused(done, 125, option, "Windows")
done = libwin.wine(EXE, "plot", "x.tide", "live", "-o", "x.svg", prefix="prefix", text=True)
check("no remedy of another system is named", done.returncode != 0 and "apt" not in done.stderr, done)
for words in (("push", "x.tide", "--to", "clickhouse://localhost:1/x"), ("sql", "x.tide", "select 1"),
              ("record", "--push", "clickhouse://localhost:1/x", "--", "cmd.exe")):
    done = libwin.wine(EXE, *words, prefix="prefix", text=True)
    check(f"{words[0]}: nor one that Windows has not", done.returncode != 0 and "use tidemark push" not in done.stderr
          and ("from Linux" in done.stderr or "win32-x64" in done.stderr), done)
unentered()
guarded()
unloaded()
libwin.end_prefix()
done = subprocess.run([os.environ["TIDEMARK"], "reconcile", "own.tide"], capture_output=True, text=True, check=False)
check("reconcile says what a trace of Windows lacks", done.returncode == 2 and "is of Windows" in done.stderr
      and "tidemark map" in done.stderr, done)
done = subprocess.run([os.environ["TIDEMARK"], "watch", "x.exe"], capture_output=True, text=True, check=False)
refused(done, 2, "watch", "Linux")
libwin.end()
