#!/usr/bin/env python3
"""tools/wine-run is the Windows program for its parent: output, arguments, exit code, signals, time."""
# parallel: yes
# timeout: 600
import os
import signal
import subprocess

import libwin
from libtests import PATIENCE_SECONDS, wait_for
from libwin import check

ADDR_NO_RANDOMIZE = 0x40000

libwin.need_wine()

START_SECONDS = 100  # then Wine is started once more
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <windows.h>

int main(int argc, char **argv)
{
	char line[80];

	printf("%d bits, %d arguments, last '%s'\n", (int)sizeof(void *) * 8, argc - 1, argv[argc - 1]);
	if (fgets(line, sizeof line, stdin))
		printf("read %s", line);
	fflush(stdout);
	if (argc > 2)
		Sleep(atoi(argv[1]));
	return 42;
}
"""

with open("hello.c", "w", encoding="utf-8") as file:
    file.write(PROGRAM)
for bits in libwin.WIDTHS:
    libwin.cross_compile(bits, f"hello{bits}.exe", "hello.c")
    # Wine itself, of which this is no test, now and then never gets as far as the program.
    for _ in range(2):
        done = libwin.wine(f"./hello{bits}.exe", "two words", input=b"a line\n", prefix="prefix",
                           seconds=START_SECONDS)
        if done.returncode != 124 or done.stdout:
            break
        print(f"{bits}: Wine did not start it within {START_SECONDS} s", flush=True)
    check(f"{bits}: output, arguments, input and exit code pass",
          done.returncode == 42 and done.stdout.replace(b"\r", b"") ==
          b"%d bits, 1 arguments, last 'two words'\nread a line\n" % bits, done)

# An hour: longer than all of this script is waited for.
done = libwin.wine("./hello64.exe", "3600000", "x", prefix="prefix", seconds=2,
                   stdin=subprocess.DEVNULL)
check("a program that takes too long is ended", done.returncode == 124, done)
done = libwin.wine("cmd.exe", "/c", "start /b hello64.exe 3600000 lives-on & echo started", prefix="prefix",
                   stdin=subprocess.DEVNULL)
check("what a program leaves behind is not waited for", b"started" in done.stdout, done)
left = wait_for(lambda: [pid for pid in filter(str.isdigit, os.listdir("/proc"))
                         if b"lives-on" in libwin.command_line(pid)], "the program that was left behind")
# Where this may be asked for at all.
if subprocess.run(["setarch", "-R", "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
    with open(f"/proc/{left[0]}/personality", encoding="ascii") as file:
        flags = int(file.read(), 16)
    check("no heap of Linux's is where Wine wants a page", flags & ADDR_NO_RANDOMIZE, hex(flags))
subprocess.run([libwin.WINE_RUN, "--prefix", "prefix", "--end"], check=True)
check("a prefix stays", os.path.isdir("prefix/drive_c/windows"))

before = set(os.listdir("."))
process = subprocess.Popen([libwin.WINE_RUN, f"./hello{libwin.WIDTHS[-1]}.exe", "3600000", "y"],
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
line = process.stdout.readline()
check("without --prefix it runs in a fresh one", b"%d bits" % libwin.WIDTHS[-1] in line, line)
process.send_signal(signal.SIGTERM)
check("a signal is passed on", process.wait(timeout=PATIENCE_SECONDS) == 143, process.returncode)
check("which is gone afterwards", set(os.listdir(".")) == before, os.listdir("."))

libwin.end()
