#!/usr/bin/env python3
# timeout: 400
"""Browsers, which bring their own allocators: the same picture, every process, and nothing lost."""
import json
import os
import shutil
import tempfile

from libguest import TIDEMARK, Skip, check, environment, equal, main, run, test

PAGE = """<html><body><ul id=l></ul><script>
let kept = [];
for (let i = 0; i < 30000; i++) kept.push({ number: i, text: "item " + i });
for (let i = 0; i < 100; i++) {
	let item = document.createElement("li");
	item.textContent = kept[i * 7].text;
	l.appendChild(item);
}
</script></body></html>
"""
CHROMIUM = ["--headless", "--disable-gpu", "--no-first-run", "--hide-scrollbars",
            "--window-size=800,600"]
# Its sandbox is for users: root becomes one.
USER = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
FIREFOX = ["--headless", "--no-remote", "--window-size=800,600"]


def user(folder):
    if os.geteuid() != 0:
        return []
    shutil.chown(folder, "nobody")
    able = [*USER, "sh", "-c", f"test -w {folder} && test -x {TIDEMARK} && unshare -U true"]
    return USER if run(able).code == 0 else []


def picture(name, command, *record):
    profile = os.path.abspath(f"profile-{name}")
    os.mkdir(profile)
    if command[:len(USER)] == USER:
        shutil.chown(profile, "nobody")
    with open("page.html", "w", encoding="ascii") as file:
        file.write(PAGE)
    env = environment(HOME=profile, MOZ_HEADLESS="1")
    page = "file://" + os.path.abspath("page.html")
    shot = os.path.abspath(f"{name}.png")
    options = [f"--user-data-dir={profile}", f"--screenshot={shot}"] if "chromium" in command \
        else ["--profile", profile, "--screenshot", shot]
    words = [*command[:len(USER)], *record, *command[len(USER):]] if command[0] == USER[0] \
        else [*record, *command]
    ended = run([*words, *options, page], env=env)
    equal(0, ended.code, f"exit code ({ended.err[-800:]})")
    with open(shot, "rb") as file:
        return file.read(), ended


def recorded(name, command, allocator):
    if shutil.which(name) is None:
        raise Skip(f"needs {name}")
    plain, _ = picture("plain", command)
    shown, _ = picture("recorded", command, TIDEMARK, "record", "-o", "t.tide", "--")
    check(plain == shown, "another picture")
    info = json.loads(run([TIDEMARK, "info", "--json", "t.tide"]).out)
    equal(0, info["events"]["lost"], "events lost")
    equal(True, info["trace"]["complete"], f"is it whole? {info['notes']['messages']}")
    own = [process for process in info["processes"]
           if name in os.path.basename(process["exe"])]
    check(len(own) > 4, f"{len(own)} processes")
    for process in own:
        # 241: a renderer's end when its browser is gone.
        check(process["exit"] in ("exit 0", "exit 241", "exec", "signal SIGTERM",
                                  "signal SIGKILL"), process)
        seen = [each for each in process["allocators"] if each["seen"] == "exported"]
        equal([(allocator, process["exe"])], [(each["name"], each["file"]) for each in seen],
              "its allocator")
    report = json.loads(run([TIDEMARK, "report", "--json", "t.tide"]).out)
    check(report["heap"]["allocations"] > 100_000, report["heap"])
    return report["heap"]


@test
def chromium_with_its_sandbox():
    with tempfile.TemporaryDirectory() as folder: # what is ours others may not look into
        as_user, before = user(folder), os.getcwd()
        options = [] if as_user or os.geteuid() != 0 else ["--no-sandbox"]
        os.chdir(folder)
        try:
            check_chromium([*as_user, "chromium", *CHROMIUM, *options], options)
        finally:
            os.chdir(before)


def check_chromium(command, options):
    heap = recorded("chromium", command, "unknown")
    info = json.loads(run([TIDEMARK, "info", "--json", "t.tide"]).out)
    filters = [line for line in info["notes"]["messages"] if "system-call filter" in str(line)]
    check(options or len(filters) > 1, "no process was in a sandbox")
    equal((0, 0), (heap["orphan_frees"], heap["lost_frees"]), "orphans, and lost frees")


@test
def firefox_with_its_sandbox():
    heap = recorded("firefox-esr", ["firefox-esr", *FIREFOX], "mozjemalloc")
    equal((0, 0), (heap["orphan_frees"], heap["lost_frees"]), "orphans, and lost frees")


# At its end it tells how many operations its allocator counts, the 21st word of jemalloc_stats_t,
# and makes a block whose size is nobody else's.
COUNTS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
__attribute__((destructor)) static void tell(void)
{
	static unsigned long words[64];
	void (*stats)(void *, void *) = dlsym(RTLD_DEFAULT, "jemalloc_stats_internal");
	if (!stats)
		return;
	stats(words, NULL);
	*(void *volatile *)words = malloc(77777);
	dprintf(open("counts.txt", O_CREAT | O_WRONLY | O_APPEND, 0600), "%lu\n", words[20]);
}
"""


@test
def mozjemalloc_counts_as_many_operations():
    """One for each block made and each freed; a realloc that moves is both, another is none."""
    if shutil.which("firefox-esr") is None:
        raise Skip("needs firefox-esr")
    with open("counts.c", "w", encoding="ascii") as file:
        file.write(COUNTS)
    equal(0, run(["gcc", "-shared", "-fPIC", "-fno-builtin", "counts.c", "-o", "libcounts.so"]).code, "gcc")
    ended = run([TIDEMARK, "record", "-f", "-o", "c.tide", "--", "firefox-esr", "--version"],
                env=environment(HOME=os.getcwd(), LD_PRELOAD=os.path.abspath("libcounts.so")))
    equal(0, ended.code, ended.err)
    with open("counts.txt", encoding="ascii") as file:
        counted = int(file.read())
    operations, own = 0, None
    for line in run([TIDEMARK, "dump", "c.tide"]).out.splitlines():
        words = line.split()
        if line.startswith("@") and words[2] in ("malloc", "calloc", "free", "realloc") and own is None:
            own = operations if words[-1] == "77777" else None
            operations += (1 if words[2] != "realloc" else 2 * (words[4] != words[6]))
    check(operations > 500, operations)
    equal(counted, own, "operations, as mozjemalloc counts them, and as recorded")


main()
