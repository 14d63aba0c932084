#!/usr/bin/env python3
# parallel: yes
# timeout: 600
"""A program that is killed, executes another one or loses its first thread at any moment of a stop
by ptrace has ended, or goes on, as if nobody had stopped it; and so does its recording."""
import os
import signal
import subprocess

from libguest import PATIENCE_SECONDS, TIDEMARK, check, environment, equal, main, run, test

NEVER = 10**9

# Before a call of ptrace, for odd moments, or after it something is done to the process, and waited for.
SHIM = r"""
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
static int field(int tid, const char *name)
{
	char path[64], line[256];
	int value = -1;
	snprintf(path, sizeof path, "/proc/%d/status", tid);
	FILE *file = fopen(path, "r");
	while (file && value < 0 && fgets(line, sizeof line, file))
		if (strncmp(line, name, strlen(name)) == 0)
			value = *name == 'S' ? line[strlen(name)] : atoi(line + strlen(name));
	if (file)
		fclose(file);
	return value;
}
static int last_thread(int pid, int *alive)
{
	char path[64];
	int last = pid;
	snprintf(path, sizeof path, "/proc/%d/task", pid);
	DIR *folder = opendir(path);
	for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
		int tid = atoi(entry->d_name), state = tid ? field(tid, "State:\t") : 'Z';
		*alive += state > 0 && state != 'Z' && state != 'X';
		last = tid > last ? tid : last;
	}
	if (folder)
		closedir(folder);
	return last;
}
static void act(const char *action, int tid)
{
	static int pid; // not that of a copy
	int alive = 0, thread, began;
	if (pid == 0)
		pid = field(tid, "Tgid:\t");
	if (*action == '-' || pid <= 0)
		return;
	thread = last_thread(pid, &alive);
	began = alive;
	if (*action == 'k')
		kill(pid, SIGKILL);
	else
		syscall(SYS_tgkill, pid, *action == 'e' ? thread : pid, SIGUSR1);
	for (int i = 0; i < 100; i++) {
		usleep(1000);
		alive = 0;
		last_thread(pid, &alive);
		if (alive == 0 || (*action == 'e' && i > 20) || (*action == 'l' && (alive < began || i > 20)))
			break;
	}
}
long ptrace(int request, int tid, void *at, void *data)
{
	static long (*real)(int, int, void *, void *);
	static _Atomic int count;
	const char *when = getenv("SHIM_AT"), *action = getenv("SHIM_ACTION");
	int number = ++count, told = open("calls", O_WRONLY | O_CREAT | O_APPEND, 0666);
	long result;
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "ptrace");
	write(told, "x", 1);
	close(told);
	act(2 * number - 1 == atoi(when) ? action : "-", tid);
	result = real(request, tid, at, data);
	if (2 * number == atoi(when))
		act(action, tid);
	return result;
}
"""

# With "single", memory that no copy would have: it is searched while it stands.
PROGRAM = r"""
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
static const char *action;
static void act(int number)
{
	if (action[0] == 'e')
		execl("/bin/sleep", "sleep", "0.1", (char *)0);
	syscall(SYS_exit, number * 0);
}
static void *idle(void *argument) { for (;;) usleep(100000); return argument; }
int main(int argc, char **argv)
{
	char *memory = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t threads[3];
	action = argv[1];
	if (strcmp(argv[2], "stands") == 0)
		madvise(memory, 1 << 20, MADV_DONTFORK);
	memory[0] = 1;
	signal(SIGUSR1, act);
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, idle, NULL);
	puts("ready");
	fflush(stdout);
	idle(NULL);
	return argc;
}
"""


def built():
    for name, text, options in (("shim.so", SHIM, ["-shared", "-fPIC", "-w"]), ("idles", PROGRAM, [])):
        with open("t.c", "w", encoding="utf-8") as file:
            file.write(text)
        made = run(["gcc", "-O1", "t.c", "-o", name, *options, "-lpthread", "-ldl"])
        equal(0, made.code, made.err)


def shimmed(action, moment):
    if os.path.exists("calls"):
        os.unlink("calls")
    return environment(LD_PRELOAD=os.path.abspath("shim.so"), SHIM_AT=str(moment), SHIM_ACTION=action)


def calls():
    return os.path.getsize("calls") if os.path.exists("calls") else 0


def ended(process, what):
    try:
        process.wait(timeout=PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        check(False, f"{what} goes on")


def asked(action, moment, kind):
    """Its reachability is asked for. How many calls of ptrace there were."""
    running = subprocess.Popen([TIDEMARK, "record", "-q", "-f", "-o", "t.tide", "--", "./idles", action, kind],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                               env=shimmed(action, moment))
    equal("ready\n", running.stdout.readline())
    pid = next(int(pid) for pid in run(["pgrep", "-P", str(running.pid), "-x", "idles"]).out.split())
    run([TIDEMARK, "ctl", str(pid), "reachability"])
    count = calls()
    if action == "leaves" or 2 * count < moment:
        os.kill(pid, signal.SIGKILL)
    ended(running, f"the recording of a program that {action}, which {kind}, at {moment},")
    return count


def attached(action, moment, _):
    program = subprocess.Popen(["./idles", action, "-"], stdout=subprocess.PIPE, text=True)
    equal("ready\n", program.stdout.readline())
    recording = subprocess.Popen([TIDEMARK, "record", "-q", "-f", "-o", "t.tide", "-p", str(program.pid),
                                  "--duration", "50ms"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                 env=shimmed(action, moment))
    if action != "leaves":
        ended(recording, f"the recording of a process that {action} at {moment}")
    else:
        ended(recording, f"the recording of a process whose first thread {action} at {moment}")
    # Its parent has not waited for it, so it is in /proc: that it has ended is seen, and not tried again.
    check(action != "kills" or calls() < moment // 2 + 50, f"calls of ptrace, killed at {moment}: {calls()}")
    if action == "leaves" or 2 * calls() < moment:
        program.kill()
    ended(program, f"a process that {action} at {moment}")
    return calls()


def at_each_moment(way, action, kind="", moments=1000):
    """At each, or at about as many as that."""
    built()
    count = 2 * way(action, NEVER, kind)
    check(count > 20, "calls of ptrace", count)
    for moment in range(1, count + 1, count // moments + 1):
        way(action, moment, kind)


@test
def who_is_killed_while_it_is_copied_has_ended():
    at_each_moment(asked, "kills", "copied", moments=60)


@test
def who_is_killed_while_it_stands_has_ended():
    at_each_moment(asked, "kills", "stands")


@test
def who_executes_another_program_while_it_is_stopped_goes_on():
    at_each_moment(asked, "executes", "copied", moments=40)


@test
def who_loses_its_first_thread_while_it_is_stopped_goes_on():
    at_each_moment(asked, "leaves", "stands")


@test
def who_is_killed_while_it_is_attached_to_has_ended():
    at_each_moment(attached, "kills", moments=30)


@test
def who_executes_another_program_while_it_is_attached_to_goes_on():
    at_each_moment(attached, "executes", moments=20)


main()
