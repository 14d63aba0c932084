#!/usr/bin/env python3
"""What tidemark.exe says is for a user of Windows: its help lists nothing that is refused there, its next
command is one that cmd.exe takes, and what failed has the reason that the system gave."""
# timeout: 240
# parallel: yes
import os
import re

import libwin
from libwin import check, equal, windows_path

libwin.need_wine()
EXE = libwin.built("tidemark.exe")
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline)) static void *twice(void)
{
	return malloc(4000);
}

int main(int argc, char **argv)
{
	void *block = twice();

	free(block);
	if (argc > 1)
		free(block);
	puts("ran");
	return 7;
}
"""


def say(*words):
    return libwin.wine(EXE, *words, prefix="prefix", text=True)


def helped():
    """An option of the help is one that is taken; a command of the list answers."""
    done = say("record", "--help")
    options = re.findall(r"^  (?:-\w, |    )--([\w-]+)(=?)", done.stdout, re.M)
    check("record's help has what Windows has", {"output", "sample", "paused"} <= {name for name, _ in options}, done)
    check("and no word of another system", not re.search(r"libtidemark|make -j|\./|\(1\)", done.stdout), done)
    for name, value in options:
        if name not in ("help", "pid"):
            told = say("record", f"--{name}={'x' if value else ''}" if value else f"--{name}", "--", "nosuch.exe")
            check(f"--{name} is not refused", "is not available" not in told.stderr, told)
    listed = re.findall(r"^  ([a-z]+) ", say("--help").stdout, re.M)
    check("no command is listed that is refused", "record" in listed and "watch" in listed and
          not {"ctl", "push", "fleet", "bench", "top"} & set(listed), listed)
    for name in ("ctl", "push", "fleet"):
        told = say(name, "1", "stop")
        check(f"{name} is refused in words", told.returncode == 2 and
              f"{name} is not available on Windows: " in told.stderr, told)
    for name in ("report", "dump", "check", "active", "findings", "transients", "sql"):
        examples = say(name, "--help").stdout.partition("Examples\n")[2].partition("\n\n")[0]
        check(f"{name}: its examples are quoted as cmd.exe reads them", '"' in examples and
              "'" not in examples, examples)
    done = say("attach", "--help")
    check("attach: its own exit codes", "the program's own" not in done.stdout and "127" in done.stdout, done)


def next_command():
    """It is typed as it stands."""
    os.makedirs("two words", exist_ok=True)
    trace = "two words\\one (1).tide"
    done = say("record", "-o", trace, "--", "words.exe")
    words = re.search(r"next: tidemark (report .*)", done.stderr)
    check("a trace in a folder with a blank is made", done.returncode == 7 and words, done)
    equal(f'report "{trace}"', words[1], "its path is in double quotes")
    with open("typed.bat", "wb") as file:
        file.write(f"@{windows_path(EXE)} {words[1]} -n 1\r\n".encode())
    done = libwin.wine("cmd.exe", "/c", "typed.bat", prefix="prefix", text=True)
    check("cmd.exe takes it", done.returncode == 0 and "words.exe" in done.stdout, done)
    done = say("record", "--force", "-o", trace, "--", "words.exe", "twice")
    done = say("findings", trace)
    commands = re.findall(r"^   see +tidemark (\w+ .*)", done.stdout, re.M)
    check("what findings names is quoted so as well", commands and
          all(f'"{trace}"' in each and "'" not in each for each in commands), done)


def failed():
    """The system's own reason, and what to do."""
    with open("text.exe", "w", encoding="ascii") as file:
        file.write("no program\n")
    done = say("record", "--", "text.exe")
    check("what is no program is said to be none", done.returncode == 126 and
          re.search(r"\(error 193\): it is not a program of this Windows", done.stderr), done)
    done = say("record", "-o", "words.tide", "--", "words.exe")
    check("a path without blanks is as it was", done.stderr.endswith("next: tidemark report words.tide\n"), done)
    for words in (("dump", "words.tide", "-o"), ("map", "words.tide", "-o"), ("view", "words.tide", "--html"),
                  ("trim", "words.tide", "--from", "1%", "-o"), ("export", "words.tide", "--format", "pprof", "-o")):
        done = say(*words, "C:\\no such\\folder\\x.png")
        check(f"{words[0]}: a folder that is not there is the reason", done.returncode != 0 and
              "x.png: No such file or directory" in done.stderr, done)


def script():
    """As cmd.exe finds it: without its ending."""
    with open("script.cmd", "wb") as file:
        file.write(b"@words.exe\r\n@exit /b 9\r\n")
    done = say("record", "-o", "script.tide", "--", "script")
    check("a script is found by its name alone, and what it starts is recorded", done.returncode == 9 and
          "ran" in done.stdout and "2 processes" in done.stderr, done)


# It stays, and does to who records it what Windows does when the console is closed.
CLOSES = r"""
#include <stdio.h>
#include <stdlib.h>
#include <windows.h>
#include <winternl.h>

int main(void)
{
	LPTHREAD_START_ROUTINE routine = (void *)GetProcAddress(GetModuleHandleA("kernelbase"), "CtrlRoutine");
	PROCESS_BASIC_INFORMATION self;
	HANDLE parent, thread;

	puts("begun");
	fflush(stdout);
	for (int i = 0; i < 1000; i++)
		*(void *volatile *)&(void *){ NULL } = malloc(4321);
	NtQueryInformationProcess(GetCurrentProcess(), 0, &self, sizeof(self), NULL);
	parent = OpenProcess(PROCESS_ALL_ACCESS, FALSE, (DWORD)self.InheritedFromUniqueProcessId);
	thread = CreateRemoteThread(parent, NULL, 0, routine, (void *)CTRL_CLOSE_EVENT, 0, NULL);
	WaitForSingleObject(thread, 20000);
	TerminateProcess(parent, 7);
	return !thread;
}
"""


def closed():
    """A console that is closed: Windows ends a process when its handler is back."""
    with open("closes.c", "w", encoding="utf-8") as source:
        source.write(CLOSES)
    libwin.cross_compile(64, "closes.exe", "closes.c", "-lntdll")
    done = say("record", "-o", "closes.tide", "--", "closes.exe")
    check("a recording whose console is closed is ended by the system", done.returncode == 7, done)
    trace = libwin.ask("info", "closes.tide")["trace"]
    check("and the trace says that it was stopped, and is not cut", "stopped while programs ran" in trace["problem"], trace)
    equal(1000, libwin.ask("window", "closes.tide", "--size", "4321")["total"]["count"], "with all that was allocated")


libwin.begin_prefix()
with open("words.c", "w", encoding="utf-8") as source:
    source.write(PROGRAM)
libwin.cross_compile(64, "words.exe", "words.c")
helped()
next_command()
failed()
script()
closed()
libwin.end_prefix()
libwin.end()
