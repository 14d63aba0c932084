#!/usr/bin/env python3
# parallel: yes
"""A child that was waited for has ended before its parent goes on, however late the collector hears
of it: what both have does not add up."""
from libguest import Trace, check, equal, main, program, record, report, test

COUNT, CHILD_BYTES = 40, 40 * 100_000


def one_after_the_other(how, ends="exit 3"):
    record([program("waited"), how, str(COUNT)], "--force")
    said = report()
    equal([ends] * COUNT, [each["exit"] for each in said["trace"]["processes"][1:]], "ends")
    for name in "peak_low_bytes", "peak_high_bytes":
        check(CHILD_BYTES <= said["heap"][name] < CHILD_BYTES + 50_000,
              f"{how}: {name} is {said['heap'][name]}")


@test
def who_was_waited_for_is_over():
    for how in "waitpid", "wait", "wait3", "wait4", "waitid":
        one_after_the_other(how)


@test
def so_is_who_was_killed():
    one_after_the_other("killed", "signal SIGKILL")


@test
def who_was_not_waited_for_is_said_to_have_ended_late():
    """Where it is counted beside the next one, the report says so."""
    record([program("waited"), "ignored", str(COUNT)], "--force")
    late = [process for kind, process, _ in Trace().notes if kind == "end-late"]
    equal(list(range(1, COUNT + 1)), late, "processes whose ends are late")
    heap = report()["heap"]
    check(heap["peak_bytes"] < CHILD_BYTES + 50_000 or heap["peak_ends_late"] > 0, f"the peak: {heap}")


main()
