#!/usr/bin/env python3
# parallel: yes
"""Findings in a program that was really run, and makes each mistake once."""
import json
import os

import libguest
from libguest import Skip, TIDEMARK, check, environment, equal, main, program, record, run, test


def findings(*words, trace="t.tide"):
    ended = run([TIDEMARK, "findings", "--json", "-n", "0", *words, trace])
    equal(0, ended.code, ended.err)
    return json.loads(ended.out)


def functions(finding):
    return [line["function"].split("(")[0] for line in finding["stack"]]


def of_kind(told, kind, function):
    """The one finding of a kind, which passes through the function."""
    some = [one for one in told["findings"] if one["kind"] == kind]
    equal(1, len(some), f"findings of {kind} ({[one['what'] for one in some]})")
    check(function in functions(some[0]), functions(some[0]))
    return some[0]


@test
def each_mistake_is_found_and_what_looks_like_it_is_not():
    record([program("mistakes")], "--free-stacks")
    told = findings()
    wrong = {function: one for one in told["findings"] if one["kind"] == "new-free"
             for function in functions(one)}
    equal(2, sum(one["kind"] == "new-free" for one in told["findings"]), "new-free")
    equal(1, wrong["new_with_free"]["figures"]["count"])
    equal(2, wrong["malloc_with_delete"]["figures"]["count"])
    failed = of_kind(told, "failed", "ask_for_too_much")
    equal((1 << 64) - 16, failed["figures"]["size_bytes_max"])
    constant = of_kind(told, "constant-growth", "by_constants")
    equal((1, 499, 498), tuple(constant["figures"][key]
                               for key in ("buffers", "steps", "constant_steps")))
    temporary = [one for one in told["findings"] if one["kind"] == "temporaries" and
                 "temporary_string" in functions(one)]
    equal(1, len(temporary), "temporaries")
    equal(20000, temporary[0]["figures"]["temporary_count"])
    check("by the same call" in temporary[0]["what"], temporary[0]["what"])
    check(not any("live_on" in functions(one) for one in told["findings"]
                  if one["kind"] == "temporaries"))
    containers = of_kind(told, "containers", "push_back")
    equal((4000, 24000), (containers["figures"]["buffers"], containers["figures"]["steps"]))
    equal(20000, of_kind(told, "elsewhere", "hand_over")["figures"]["elsewhere_count"])
    check(not any(one["kind"] in ("growth", "freed-twice", "freed-wrong", "killed", "processes")
                  for one in told["findings"]), [one["id"] for one in told["findings"]])


@test
def what_calls_cost_is_measured_by_a_replay_where_it_is_asked_for():
    record([program("mistakes")], "-f")
    saves = {one["kind"]: one["saves"] for one in findings()["findings"]}
    equal((40000, None), (saves["temporaries"]["calls"], saves["temporaries"]["cpu_ns"]))
    told = findings("--cpu")
    saves = {one["kind"]: one["saves"] for one in told["findings"]}
    check(saves["temporaries"]["cpu_ns"] > 0, saves)
    equal((48000, None), (saves["containers"]["calls"], saves["containers"]["cpu_ns"]))
    why = {one["kind"]: one["why"] for one in told["not_looked_for"]}
    check("processor time" in why["containers"] and "temporaries" not in why, why)
    text = run([TIDEMARK, "findings", "--cpu", "t.tide"]).out
    check("of processor time as replayed" in text, text)


# new[] is freed by delete, by the one that belongs to it, and malloc by delete[]. With OWN the program
# has operators of its own, as some have: then any of that is its own affair.
FAMILIES = r"""
#include <cstdlib>
#include <new>
#ifdef OWN
void *operator new(size_t size) { return malloc(size); }
void operator delete(void *block) noexcept { free(block); }
void operator delete(void *block, size_t) noexcept { free(block); }
#endif
struct alignas(64) wide { char bytes[64]; };
static void *volatile kept;
static __attribute__((noinline)) void array_by_delete()
{
	kept = operator new[](24);
	operator delete(kept);
}
static __attribute__((noinline)) void malloc_by_array()
{
	kept = malloc(24);
	operator delete[](kept);
}
static __attribute__((noinline)) void aligned_by_delete()
{
	kept = operator new(64, std::align_val_t(64));
	operator delete(kept);
}
static __attribute__((noinline)) void as_it_should_be()
{
	kept = operator new[](24);
	operator delete[](kept);
	kept = operator new(24);
	operator delete(kept);
	kept = new wide;
	delete (wide *)kept;
	kept = new wide[2];
	delete[] (wide *)kept;
	kept = aligned_alloc(64, 64);
	free(kept);
}
int main()
{
	as_it_should_be();
	array_by_delete();
	malloc_by_array();
	aligned_by_delete();
}
"""


@test
def families_are_told_apart_and_a_program_with_operators_of_its_own_is_not_blamed():
    with open("families.cpp", "w", encoding="utf-8") as file:
        file.write(FAMILIES)
    equal(0, run(["g++", "-std=c++17", "-O1", "families.cpp", "-o", "families"]).code)
    record(["./families"], "--free-stacks", "-f")
    told = {functions(one)[one["user_frame"]]: (one["sure"], one["what"]) for one in findings()["findings"]
            if one["kind"] == "new-free"}
    equal({"array_by_delete": ("certain", "1 block of operator new[] is freed by operator delete."),
           "malloc_by_array": ("likely", "1 block of malloc is freed by operator delete[]."),
           "aligned_by_delete": ("certain", "1 block of operator new with an alignment is freed by "
                                            "operator delete without an alignment.")},
          told)
    # Two runs have the same stacks, and mistakes of their own: one finding of both.
    record(["sh", "-c", "./families; ./families"], "--free-stacks", "-f")
    told = [(functions(one)[one["user_frame"]], share["process"]) for one in findings()["findings"]
            if one["kind"] == "new-free" for share in one["processes"]]
    equal((6, 6), (len(told), len(set(told))), told)
    equal(0, run(["g++", "-std=c++17", "-O1", "-DOWN", "families.cpp", "-o", "own"]).code)
    record(["./own"], "--free-stacks", "-f")
    told = findings()
    equal([], [one["what"] for one in told["findings"] if one["kind"] == "new-free"])
    check(any(one["kind"] == "new-free" and "own" in one["why"] for one in told["not_looked_for"]),
          told["not_looked_for"])
    info = json.loads(run([TIDEMARK, "info", "--json", "t.tide"]).out)
    seen = {one["seen"]: os.path.basename(one["file"]) for one in info["processes"][0]["allocators"]}
    equal("own", seen.get("operators"), info["processes"][0]["allocators"])


# What jemalloc gives for 1,040 bytes is 1,280; what it gives for 1,024 is that.
CLASSES = r"""
#include <stdlib.h>
#include <string.h>
static void *volatile kept[3][10000];
static __attribute__((noinline)) void over(int i) { kept[0][i] = memset(malloc(1040), 1, 1040); }
static __attribute__((noinline)) void just(int i) { kept[1][i] = memset(malloc(1024), 1, 1024); }
static __attribute__((noinline)) void lines(int i)
{
	kept[2][i] = memset(aligned_alloc(64, 72), 1, 72);
}
int main(int argc, char **argv)
{
	for (int i = 0; i < 10000; i++)
		over(i);
	for (int i = 0; i < 10000; i++)
		just(i);
	for (int i = 0; i < 10000 && argc > 1; i++)
		lines(i);
	return argv[0] == NULL;
}
"""


@test
def what_blocks_take_more_than_they_hold_is_seen_by_their_addresses():
    with open("classes.c", "w", encoding="utf-8") as file:
        file.write(CLASSES)
    equal(0, run(["gcc", "-O1", "classes.c", "-o", "classes"]).code)
    record(["./classes"], "-f")
    equal([], [one["what"] for one in findings()["findings"] if one["kind"] == "slack"])
    record(["./classes", "aligned"], "-f")
    aligned = of_kind(findings(), "slack", "lines")
    check("aligned" in aligned["what"], aligned)
    jemalloc = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"
    if not os.path.exists(jemalloc):
        raise Skip("no jemalloc (sizes of other allocators)")
    record(["./classes"], "-f", env=environment(LD_PRELOAD=jemalloc))
    over = of_kind(findings(), "slack", "over")
    equal(10000 * 240, over["saves"]["peak_bytes"])


# Each thread leaves a block (leaves), or main frees it (gives). With a second argument all wait for
# the end of the process.
THREADS = r"""
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void *volatile kept[100];
static pthread_barrier_t all;
static int stay, first;
static __attribute__((noinline)) void *leaves(long i)
{
	size_t size = !first ? 200000 : i == 0 ? 8 * 200000 : 100;
	return kept[i] = memset(malloc(size), 1, size);
}
static __attribute__((noinline)) void *gives(void) { return memset(malloc(200001), 1, 200001); }
static void *work(void *number)
{
	void *given = gives();
	leaves((long)number);
	if (stay) {
		pthread_barrier_wait(&all);
		pause();
	}
	return given;
}
int main(int argc, char **argv)
{
	pthread_t threads[100];
	long count = atoi(argv[1]);
	void *given;
	stay = argc > 2 && argv[2][0] == 's';
	first = argc > 2 && argv[2][0] == 'f';
	pthread_barrier_init(&all, NULL, (unsigned)count + 1);
	for (long i = 0; i < count; i++)
		pthread_create(&threads[i], NULL, work, (void *)i);
	if (stay)
		pthread_barrier_wait(&all);
	for (long i = 0; i < count && !stay; i++) {
		pthread_join(threads[i], &given);
		free(given);
	}
	return 0;
}
"""


@test
def what_ended_threads_left_is_told_and_what_is_freed_or_of_few_or_of_those_that_live_is_not():
    with open("threads.c", "w", encoding="utf-8") as file:
        file.write(THREADS)
    equal(0, run(["gcc", "-O1", "threads.c", "-o", "threads", "-pthread"]).code)
    for words, count in ((["8"], 8), (["3"], 0), (["8", "stay"], 0), (["8", "first"], 0)):
        record(["./threads", *words], "-f")
        some = [one for one in findings()["findings"] if one["kind"] == "ended-threads"]
        equal([count] if count else [], [one["figures"]["threads"] for one in some], words)
        if some:
            check("leaves" in functions(some[0]), some[0])
            equal(8 * 200000, some[0]["figures"]["bytes"])


HOARDS = r"""
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static __attribute__((noinline)) void *hoard(size_t size) { return memset(malloc(size), 1, size); }
int main(int argc, char **argv)
{
	static void *volatile kept[1000];
	for (int i = 0; i < atoi(argv[1]); i++)
		kept[i] = hoard(1 << 20);
	if (argc > 4 && unlink(argv[4]) != 0) // the group goes with its last process
		return 1;
	if (argc > 3) { // as the kernel would have counted
		int file = open(argv[3], O_WRONLY | O_TRUNC);
		if (file < 0 || write(file, "oom 1\noom_kill 3\n", 17) != 17)
			return 1;
	}
	return argc > 2 ? kill(getpid(), SIGKILL) : 0;
}
"""
GROUPS = ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")


def build_hoards():
    with open("hoards.c", "w", encoding="utf-8") as file:
        file.write(HOARDS)
    equal(0, run(["gcc", "-O1", "-g", "hoards.c", "-o", "hoards"]).code)


def make_group(limit):
    """A control group of its own for memory; its path."""
    for mount, file in GROUPS:
        path = os.path.join(mount, f"tidemark-test-{os.getpid()}")
        try:
            os.mkdir(path)
        except OSError:
            continue
        try:
            with open(os.path.join(path, file), "w", encoding="utf-8") as out:
                out.write(str(limit))
            return path
        except OSError:
            os.rmdir(path)
    raise Skip("no control group for memory can be made here")


@test
def a_process_killed_for_lack_of_memory_is_told_by_its_group_and_one_that_kills_itself_is_not():
    build_hoards()
    group = make_group(160 << 20)
    try:
        for words, sure in ((["900"], "likely"), (["80", "itself"], "possible")):
            record(["sh", "-c", f"echo $$ > {group}/cgroup.procs; exec ./hoards {' '.join(words)}"],
                   "--force", code=-9)
            one = of_kind(findings(), "killed", "hoard")
            equal(sure, one["sure"], one["why"])
            equal(160 << 20, one["figures"]["group_limit_bytes"])
            check("hoard has" in one["what"], one["what"])
            equal(1 << 20, one["figures"]["last_size_bytes"])
            check(("counted 1 kill " in one["why"]) == (sure == "likely"), one["why"])
    finally:
        libguest.wait_for(lambda: not open(os.path.join(group, "cgroup.procs"), encoding="utf-8").read(),
                          "the group to be empty")
        os.rmdir(group)


@test
def the_limit_is_found_in_both_forms_and_in_the_groups_around():
    """A tree of files at the place of the kernel's, in a namespace of mounts of our own."""
    build_hoards()
    if run(["unshare", "-m", "true"]).code != 0:
        raise Skip("no namespace of mounts can be made here")
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        groups = dict(line.rstrip("\n").split(":", 2)[1:] for line in file)
    forms = [(":memory:", "/memory", groups.get("memory"), "memory.limit_in_bytes", "memory.oom_control"),
             ("0::", "", groups.get(""), "memory.max", "memory.events"),
             ("0::", "/unified", groups.get(""), "memory.max", "memory.events")]
    tried = 0
    for _, mount, group, limit, events in forms:
        if group is None:
            continue
        tried += 1
        root = "/sys/fs/cgroup" + mount
        own = root + group.rstrip("/")
        ended = run(["unshare", "-m", "sh", "-c", f"""
mount -t tmpfs none /sys/fs/cgroup && mkdir -p {own} || exit 99
echo max > {own}/{limit}
echo {200 << 20} > {root}/{limit}
printf 'oom 0\\noom_kill 1\\n' > {own}/{events}
exec {TIDEMARK} record -q --force -o t.tide -- ./hoards 80 itself {own}/{events}"""])
        if ended.code == 99:
            raise Skip("no file system can be mounted here")
        equal(-9, ended.code, ended.err)
        one = of_kind(findings(), "killed", "hoard")
        equal(("likely", 200 << 20), (one["sure"], one["figures"]["group_limit_bytes"]), limit)
        check("counted 2 kills " in one["why"], one["why"])
    if not tried:
        raise Skip("no control group for memory here")


def unified():
    """Where the hierarchy of version 2 is."""
    with open("/proc/mounts", encoding="utf-8") as file:
        for line in file:
            if line.split()[2] == "cgroup2":
                return line.split()[1]
    raise Skip("no control groups of version 2 here")


@test
def a_kill_in_a_group_of_version_2_that_is_gone_is_counted_by_the_one_around_it():
    """In real groups, with a tree of files at the place of the kernel's."""
    build_hoards()
    name = f"tidemark-test-{os.getpid()}"
    top, own = os.path.join(unified(), name), f"/sys/fs/cgroup/{name}"
    try:
        os.makedirs(os.path.join(top, "scope"))
    except OSError as error:
        raise Skip("no control group of version 2 can be made here") from error
    try:
        for gone, sure in (([], "possible"), ([f"{own}/scope/memory.events"], "likely")):
            ended = run(["unshare", "-m", "sh", "-c", f"""
echo $$ > {top}/scope/cgroup.procs && mount -t tmpfs none /sys/fs/cgroup && mkdir -p {own}/scope || exit 99
echo {300 << 20} > {own}/memory.max
echo {200 << 20} > {own}/scope/memory.max
printf 'oom 0\\noom_kill 1\\n' > {own}/memory.events
printf 'oom 0\\noom_kill 0\\n' > {own}/scope/memory.events
exec {TIDEMARK} record -q --force -o t.tide -- ./hoards 80 itself {own}/memory.events {' '.join(gone)}"""])
            if ended.code == 99:
                raise Skip("no file system can be mounted here")
            equal(-9, ended.code, ended.err)
            one = of_kind(findings(), "killed", "hoard")
            equal((sure, 200 << 20), (one["sure"], one["figures"]["group_limit_bytes"]), one["why"])
            check(("counted 2 kills " in one["why"]) == bool(gone), one["why"])
    finally:
        libguest.wait_for(lambda: not open(os.path.join(top, "scope/cgroup.procs"), encoding="utf-8").read(),
                          "the group to be empty")
        os.rmdir(os.path.join(top, "scope"))
        os.rmdir(top)


main()
