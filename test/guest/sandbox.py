#!/usr/bin/env python3
"""Under a system-call filter the recorder calls nothing, changes nothing and loses nothing."""
# timeout: 180
# parallel: yes
import json
import resource
import time

from libguest import BITS, TIDEMARK, Skip, Trace, check, equal, main, program, run, test

OURS = ("rt_sigprocmask,gettid,getpid,tgkill,nanosleep,getrusage,mincore,prctl,kill,madvise,"
        "mremap,socket,connect,recvmsg,openat")

IMAGE = ["/bin/echo", "on"] if BITS == 64 else [program("still"), "0"]
UNSEEN = f"{IMAGE[0]} is not recorded"


def sandboxed(*words, options=()):
    """What it does is what it does untraced. Returns what was recorded."""
    command = [program("sandboxed"), *[str(word) for word in words]]
    plain = run(command)
    if plain.code == 77:
        raise Skip("the kernel has no filters")
    ended = run([TIDEMARK, "record", "--force", *options, "-o", "t.tide", *command])
    equal((plain.code, plain.out), (ended.code, ended.out),
          f"code and output of {words} ({ended.err})")
    return ended


def check_exact(ended, pairs):
    trace = Trace()
    equal("0", trace.end.get("events-lost", "0"), f"events lost ({ended.err})")
    equal(100, len(trace.of_size(7801)), "blocks of before")
    equal(pairs, len(trace.of_size(7802)), "blocks of under the filter")
    equal("", trace.end.get("unseen", ""), f"programs that were not recorded ({ended.err})")
    return trace


def check_said():
    for command in ("info", "report"):
        ended = run([TIDEMARK, command, "t.tide"])
        said = " ".join((ended.out + ended.err).split())
        check("system-call filter" in said and "no snapshots" in said and "spins" in said,
              f"{command} does not say so: {said}")


@test
def calls_that_are_killed_for_trapped_or_refused_are_not_made():
    for action in ("kill", "trap", "eperm", "enosys"):
        check_exact(sandboxed(action, OURS, 0, 60000), 60000)
        check_said()


@test
def a_process_that_may_do_next_to_nothing_is_recorded():
    for action in ("only-kill", "only-trap", "strict"):
        check_exact(sandboxed(action, "none", 0, 200000), 200000)


ASKS = r"""
#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void)
{
	char *volatile kept = malloc(7801);
	if (syscall(SYS_seccomp, 1, 0, NULL) == 0 || errno != EFAULT)
		return 77;
	free(kept);
	return 0;
}
"""


@test
def who_asks_whether_there_are_filters_has_seen_all_mappings():
    """As qemu does, by a filter at no address: what was got ready for one is told as ours."""
    with open("asks.c", "w", encoding="ascii") as file:
        file.write(ASKS)
    narrow = ["-m32"] if BITS == 32 else []
    equal(0, run(["gcc", *narrow, "-o", "asks", "asks.c"]).code, "gcc")
    ended = run([TIDEMARK, "record", "--rss-exact", "-o", "asks.tide", "--", "./asks"])
    if ended.code == 77:
        raise Skip("the kernel has no filters")
    equal(0, ended.code, ended.err)
    info = json.loads(run([TIDEMARK, "info", "--json", "asks.tide"]).out)
    equal([], info["notes"]["messages"], "messages")
    equal(1, len(Trace("asks.tide").of_size(7801)), "blocks")


IDLES = r"""
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>
int main(void)
{
	struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog filter = { 1, &all };
	char *volatile kept = malloc(7801);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, 2, &filter))
		return 77;
	sleep(3);
	for (int i = 0; i < 300000; i++)
		free(kept), kept = malloc(7802);
	free(kept);
	return 0;
}
"""


@test
def the_collector_sleeps_while_a_process_under_the_filter_is_idle():
    """In 3 s some 200 times, where it was 3,000; what comes all at once then loses nothing."""
    with open("idles.c", "w", encoding="ascii") as file:
        file.write(IDLES)
    narrow = ["-m32"] if BITS == 32 else []
    equal(0, run(["gcc", *narrow, "-o", "idles", "idles.c"]).code, "gcc")
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_nvcsw
    ended = run([TIDEMARK, "record", "-o", "idles.tide", "--", "./idles"])
    waits = resource.getrusage(resource.RUSAGE_CHILDREN).ru_nvcsw - before
    if ended.code == 77:
        raise Skip("the kernel has no filters")
    equal(0, ended.code, ended.err)
    trace = Trace("idles.tide")
    equal(300000, len(trace.of_size(7802)), "blocks of under the filter")
    equal("0", trace.end.get("events-lost", "0"), "events lost")
    check(waits < 1500, f"woken {waits} times")


@test
def strict_is_content_with_a_filter():
    sandboxed("kill", OURS, 0, 1000, options=["--strict"])


@test
def own_times_and_verified_stacks_need_no_call():
    for action in ("only-trap", "strict"):
        check_exact(sandboxed(action, "none", 0, 3000, options=["--clock=ns"]), 3000)
    check_exact(sandboxed("only-kill", "none", 0, 3000, options=["--free-stacks"]), 3000)


@test
def threads_that_begin_under_the_filter_are_recorded():
    calls = OURS.replace("rt_sigprocmask,", "").replace("gettid,", "").replace("madvise,", "")
    if BITS == 32: # where libc counts the processors for its third arena already
        calls = calls.replace(",openat", "")
    for action in ("kill", "trap", "enosys", "dup"):
        trace = check_exact(sandboxed(action, calls, 8, 5000), 40000)
        equal(9, len(trace.threads), "threads")


@test
def threads_by_the_hundred_take_over_the_lanes_of_those_that_ended():
    check_exact(sandboxed("enosys", "mremap,socket,tgkill", 200, 200), 40000)


@test
def where_all_lanes_are_taken_the_end_of_a_thread_is_waited_for():
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (1 << 40, hard)) # with a limit there are fewer lanes
    check_exact(sandboxed("enosys", "mremap,socket,tgkill", 200, 2500), 500000)
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@test
def threads_by_the_hundred_that_all_live_at_one_time_lose_nothing():
    if BITS == 32:
        raise Skip("addresses of 32 bits have room for 64 lanes")
    for action in ("enosys", "kill"):
        trace = check_exact(sandboxed(action, "mremap,socket,tgkill", "200+", 300), 60000)
        equal(201, len(trace.threads), "threads")


@test
def stacks_under_the_filter_reach_the_beginning():
    sandboxed("enosys", "rt_sigprocmask,gettid", 2, 500)
    equal("", Trace().end.get("stacks-incomplete", ""), "stacks that are not proven whole")


@test
def children_that_are_forked_under_the_filter_are_recorded():
    calls = "madvise,mremap,socket,connect,recvmsg,openat,prctl,kill,tgkill,gettid,futex"
    for action in ("kill", "trap", "eperm", "enosys"):
        more = ",rt_sigprocmask" if action in ("eperm", "enosys") else ""
        trace = check_exact(sandboxed(action, calls + more, "f3", 1000), 4000)
        equal(4, len(trace.processes), "processes")
        parents = [fields.get("parent") for fields in trace.processes.values()]
        equal([None, "p0", "p1", "p2"], parents, "whose children they are")
        check_said()


CROWD = r"""
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **words)
{
	struct sock_filter steps[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_connect, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, count > 1 ? SYS_mremap : SYS_connect, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
	};
	struct sock_fprog filter = { sizeof steps / sizeof *steps, steps };
	char *volatile kept = malloc(7801);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, 2, &filter))
		return 77;
	for (int i = 0; i < 24; i++)
		if (fork() == 0) {
			for (int k = 0; k < 100; k++)
				free(kept), kept = malloc(7802);
			usleep(50000);
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
	return 0;
}
"""


@test
def more_children_at_once_than_there_are_segments_for_wait_for_one_another_alone():
    """What one has left goes to the next: 24 took 20 s, and 20 of them had no place in the order.

    Where mremap is refused, too, there are four segments, and else sixteen.
    """
    with open("crowd.c", "w", encoding="ascii") as file:
        file.write(CROWD)
    narrow = ["-m32"] if BITS == 32 else []
    equal(0, run(["gcc", *narrow, "-o", "crowd", "crowd.c"]).code, "gcc")
    for words in [], ["mremap"]:
        began = time.monotonic()
        ended = run([TIDEMARK, "record", "--force", "-o", "crowd.tide", "--", "./crowd", *words])
        took = time.monotonic() - began
        if ended.code == 77:
            raise Skip("the kernel has no filters")
        equal(0, ended.code, ended.err)
        trace = Trace("crowd.tide")
        equal(25, len(trace.processes), "processes")
        equal(2400, len(trace.of_size(7802)), "blocks of under the filter")
        info = json.loads(run([TIDEMARK, "info", "--json", "crowd.tide"]).out)
        said = set(info["notes"]["messages"])
        equal(1, len(said), f"what is said, other than that there is a filter: {said}")
        check(took < 10, f"it took {took:.1f} s")


@test
def a_child_under_a_filter_that_ends_before_it_is_looked_for_ends_as_its_parent_says():
    check_exact(sandboxed("kill", "socket", "s8", 1), 8)
    info = json.loads(run([TIDEMARK, "info", "--json", "t.tide"]).out)
    ends = [process["exit"] for process in info["processes"]]
    # One at most was over for us before its parent had said so: the machine may be that busy.
    check(len({f"exit {number}" for number in range(9)} - set(ends)) <= 1 and len(ends) == 9, ends)


@test
def children_under_a_filter_that_kills_who_asks_for_its_number_are_recorded():
    trace = check_exact(sandboxed("kill", "getpid", "f2", 1000), 3000)
    equal(3, len(trace.processes), "processes")


@test
def an_image_under_a_filter_that_kills_runs_and_is_told_of():
    for action in ("kill", "trap"):
        ended = sandboxed(action, "socket,connect,recvmsg", 0, 10, *IMAGE)
        check(any(UNSEEN in line for line in ended.lines()), ended.err)
    ended = run([TIDEMARK, "record", "--strict", "-o", "s.tide", program("sandboxed"), "kill",
                 "socket", "0", "10", *IMAGE])
    equal(125, ended.code, f"exit code under --strict ({ended.err})")


@test
def an_image_under_a_filter_that_refuses_the_socket_is_told_of():
    for action in ("eperm", "enosys"):
        for call in ("socket", "connect", "recvmsg"):
            ended = sandboxed(action, call, 0, 10, *IMAGE)
            check(any(UNSEEN in line for line in ended.lines()), ended.err)


@test
def an_image_under_a_filter_that_lets_it_is_recorded():
    for calls in ("mincore,getrusage,tgkill", "gettid,rt_sigprocmask", "kill"):
        ended = sandboxed("enosys", calls, 0, 10, *IMAGE)
        check_exact(ended, 10)
        check(len(Trace().processes) >= 2, "the image is not there:", ended.err)
        check_said()


@test
def children_by_vfork_are_told_from_their_parent_under_a_filter():
    image = program("sandboxed") # without a word it ends at once
    for action, calls, seen in (("enosys", "mincore,tgkill", 3), ("kill", "recvmsg", 0)):
        ended = sandboxed(action, calls, 0, "10v", image)
        trace = Trace()
        equal(40, len(trace.of_size(7802)), "blocks of under the filter")
        equal(3 - seen, int(trace.end.get("unseen", "0")), f"not recorded ({ended.err})")
        equal(3 - seen, sum(f"{image} is not recorded" in line for line in ended.lines()), ended.err)
        equal([0] * (3 - seen), [process for kind, process, _ in trace.notes if kind == "exec-unseen"],
              "whose children they are")
        equal(1 + seen, len(trace.processes), "processes")
        info = json.loads(run([TIDEMARK, "info", "--json", "t.tide"]).out)
        equal("exit 0", info["processes"][0]["exit"], "how it ended")


main()
