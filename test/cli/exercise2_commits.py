#!/usr/bin/env python3
# parallel: yes
"""What Windows Performance Analyzer shows of a program, `tidemark window` says too.

The 40 commits of Microsoft's "Memory Footprint Optimization Exercise 2", rebuilt from its published
screens (test/traces/exercise2_commits.txt). Each screen's table is here as published: the row, its
Count, its Size and its Impacting Size, in the three viewports that the exercise zooms to.
"""

from libanswer import answer, assemble
from libtests import main, test

MIB10 = 10485760

#      viewport                process            impacting          transient       persistent
VIEWS = [(None, None, {"process": (40, 126038016, 0), "transient": (40, 126038016, 0)}),
         ("14.4s", "21.2s", {"process": (30, 42127360, 10493952),
                             "impacting": (2, 10493952, 10493952),
                             "transient": (2, 20971520, 0), "persistent": (26, 10661888, 0)}),
         ("21.3s", "31.7s", {"process": (34, 63123456, 24576), "impacting": (2, 24576, 24576),
                             "transient": (4, 41943040, 0), "persistent": (28, 21155840, 0)})]


def window(*words):
    return answer("window", assemble("exercise2_commits"), "--layer", "vm", *words)


def figures(row):
    return row["count"], row["size"], row["impacting_size"]


def view(from_, to):
    return (["--from", from_] if from_ else []) + (["--to", to] if to else [])


@test
def the_three_viewports_are_as_published():
    for from_, to, published in VIEWS:
        found = window(*view(from_, to), "--by", "process,impact")
        rows = {row["keys"]["impact"]: figures(row) for row in found["rows"]}
        rows["process"] = figures(found["total"])
        assert rows == published, (from_, to, rows)
        assert all(row["keys"]["process"] == 4872 for row in found["rows"])


@test
def the_step_and_the_spikes_have_their_stacks():
    def of(impact, from_, to):
        return [(figures(row), row["keys"]["stack"][1]["function"], row)
                for row in window(*view(from_, to), "--impact", impact, "--by", "stack")["rows"]]
    step = [found for found in of("impacting", "14.4s", "21.2s") if found[0][1] == MIB10]
    assert [found[:2] for found in step] == [((1, MIB10, MIB10), "wmain")]
    assert step[0][2]["first_ns"] == 18505189436
    spikes = of("transient", "21.3s", "31.7s")
    assert [found[:2] for found in spikes] == \
        [((4, 4 * MIB10, 0), "ManipulateTemporaryBuffer")]
    names = [frame["function"] for frame in spikes[0][2]["keys"]["stack"]]
    assert names == ["VirtualAlloc", "ManipulateTemporaryBuffer", "Operation1", "wmain",
                     "wmainCRTStartup"]
    assert spikes[0][2]["lifetime_median_ns"] == 109823450
    assert spikes[0][2]["peak_size"] == MIB10, "one at a time"


@test
def the_spikes_are_where_they_are_published():
    rows = window(*view("21.3s", "31.7s"), "--impact", "transient", "--by", "lifetime")["rows"]
    times = sorted((row["keys"]["lifetime"]["begin_ns"], row["keys"]["lifetime"]["end_ns"])
                   for row in rows)
    seconds = [(round(begin / 1e9, 4), round(end / 1e9, 4)) for begin, end in times]
    assert seconds == [(21.7708, 21.8807), (25.0052, 25.115), (28.2395, 28.3494),
                       (31.4739, 31.5837)], seconds


@test
def the_peak_is_the_graphs():
    total = window("--by", "none")["total"]
    assert 31.4e6 < total["peak_size"] < 31.7e6, total["peak_size"]
    assert total["by_exit"]["count"] == 0


@test
def views_that_touch_add_up():
    cuts = ["0s", "5s", "14.4s", "18505189436ns", "21.2s", "31.7s", "-5s", "48s"]
    parts = [window("--from", a, "--to", b, "--by", "none")["total"]
             for a, b in zip(cuts, cuts[1:])]
    whole = window("--by", "none")["total"]
    for name in ("impacting_size", "allocated", "freed"):
        assert sum(part[name] for part in parts) == whole[name], name


main()
