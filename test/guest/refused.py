#!/usr/bin/env python3
"""What the recorder maps counts against a program's limits: who is refused memory for that is told."""
# parallel: yes
from libguest import TIDEMARK, equal, main, program, run, test


def refused(way, limit):
    """What the program said, and whether we say that it was for us: in each answer, or in none."""
    plain = run([program("refused"), way, str(limit)]).out.strip()
    ended = run([TIDEMARK, "record", "-o", "t.tide", "--force", program("refused"), way, str(limit)])
    equal(0, ended.code, f"exit code of {way} ({ended.err})")
    texts = [ended.err] + [run([TIDEMARK, command, "t.tide"]).out for command in ("info", "report")]
    said = {"have without the recorder, whose mappings count" in " ".join(text.split())
            for text in texts}
    equal(1, len(said), f"answers of {way} {limit}: {texts}")
    return plain, ended.out.strip(), said.pop()


def enough(way, high):
    """The least limit in KiB, to 64, at which the program has what it asks for without the recorder."""
    low = 0
    while high - low > 64:
        middle = (low + high) // 2
        had = run([program("refused"), way, str(middle)]).out.strip() == "had"
        low, high = (low, middle) if had else (middle, high)
    return high


@test
def who_is_refused_memory_for_what_the_recorder_maps_is_told():
    for way, high in (("map", 200000), ("data", 200000), ("lock", 8000)):
        limit = enough(way, high) + 64
        equal(("had", "refused", True), refused(way, limit), f"{way} {limit}")


@test
def who_would_be_refused_without_it_is_not():
    equal(("refused", "refused", False), refused("map", 4500), "map")
    equal(("had", "had", False), refused("map", 500000), "with a limit that is high enough")


main()
