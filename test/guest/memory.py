#!/usr/bin/env python3
"""Every call on virtual memory is seen, of libc and of the dynamic linker too."""
# timeout: 120
from libguest import check, environment, equal, main, program, test
from libmemory import Memory, count_strace, map_differences, record_under_strace


@test
def twenty_threads_ask_for_as_much_as_strace_sees():
    code = record_under_strace([program("vm_churn"), "20", "4"], env=environment())
    equal(0, code, "exit code")
    memory = Memory(program("vm_churn"))
    expected, own, begun = count_strace("t.strace", memory.tids, memory.base())
    check(begun, "strace did not see the recorder begin")
    check(own.count["mmap"] > 0, "strace saw no mapping of the recorder's own")
    count = memory.count()
    check(count.count["munmap"] > 300 and count.count["brk"] > 3 and
          count.count["mremap"] > 100 and count.count["mprotect"] > 400, dict(count.count))
    equal([], count.differences(expected), "differences")


@test
def what_the_calls_leave_is_what_the_program_sees_mapped():
    for round_number in range(3):
        code = record_plain([program("vm_churn"), "20", "8"])
        equal(0, code, "exit code")
        equal([], map_differences(Memory(program("vm_churn")), "t.maps"), "differences")


def record_plain(command):
    from libguest import run, TIDEMARK
    return run([TIDEMARK, "record", "--force", "-o", "t.tide", "--", *command],
               env=environment(MAPS="t.maps")).code


main()
