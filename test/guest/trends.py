#!/usr/bin/env python3
# timeout: 180
# parallel: yes
"""Growth, spikes and differences of programs that were really run."""
import json
import os
import re
import shutil
import subprocess

from libguest import TIDEMARK, Skip, main, program, test

MIB = 1 << 20


def ask(*words):
    done = subprocess.run([TIDEMARK, *words, "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def record(name, path, *words):
    done = subprocess.run([TIDEMARK, "record", *words, "-o", path, "--", program(name)],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return path


def site(row):
    return next((line["function"] for line in row["stack"]
                 if line["function"] not in ("malloc", "calloc")), "")


@test
def a_leak_a_cache_a_batch_and_a_buffer_are_told_apart():
    path = record("growing", "growing.tide")
    rows = {site(row): row for row in ask("growth", path)["rows"]}
    leak, cache = rows["leak_session"], rows["cache_look_up"]
    assert leak["verdict"] == "grows", leak
    assert cache["verdict"] == "levels_off" and cache["live_count"] == 400, cache
    assert rows.get("fill_batch", {"verdict": "recent"})["verdict"] == "recent", rows["fill_batch"]
    assert "with_buffer" not in rows and "main" not in rows

    # 1,600 blocks of 200 bytes in the time of the run, at an even rate.
    seconds = (leak["to_ns"] - leak["from_ns"]) / 1e9
    assert abs(leak["slope_bytes_per_s"] * seconds / (leak["grown_count"] * 200) - 1) < 0.15, leak

    told = ask("transients", path, "--min-bytes", "4M")
    spikes = [row for row in told["spikes"] if site(row["makers"][0]) == "with_buffer"]
    assert len(spikes) == 6, told
    for row in spikes:
        assert row["makers"][0]["bytes"] == 8 * MIB
        assert row["half_end_ns"] - row["half_begin_ns"] >= 4900000, row
    series = told["series"]
    assert [(site(row), row["count"], row["size"]) for row in series] == \
        [("with_buffer", 6, 8 * MIB)], series


@test
def a_fix_shows_as_what_it_frees_though_every_line_has_moved():
    before = record("mended_before", "before.tide")
    after = record("mended_after", "after.tide")
    told = ask("diff", before, after, "-n", "0")
    rows = {site(row): row for row in told["rows"]}
    assert set(rows) == {"read_name", "journal"}, rows
    assert rows["read_name"]["live"]["bytes"] == -300 * 64
    assert rows["read_name"]["live"]["count"] == -300
    assert rows["read_name"]["state"] == "both" and rows["journal"]["state"] == "new"
    assert rows["journal"]["live"]["bytes"] == 5000
    assert told["total"]["live"]["bytes"] == 5000 - 300 * 64
    assert told["stacks"]["gone"] == 0 and told["stacks"]["new"] == 1, told["stacks"]
    by_count = ask("diff", before, after, "--sort", "count")["rows"]
    assert [site(row) for row in by_count] == ["journal"], by_count


@test
def two_runs_of_one_program_do_not_differ_though_its_addresses_do():
    first, second = (record("mended_after", f"{name}.tide") for name in ("one", "two"))
    told = ask("diff", first, second)
    assert told["rows"] == [] and told["stacks"]["same"] > 3, told["stacks"]
    assert told["stacks"]["new"] == told["stacks"]["gone"] == told["stacks"]["changed"] == 0


def heaptrack(name):
    """The file that Debian's heaptrack makes of a run."""
    if not shutil.which("heaptrack_print"):
        raise Skip("no heaptrack")
    subprocess.run(["heaptrack", "-o", os.path.abspath(name), program(name)], capture_output=True,
                   check=True)
    return next(file for file in os.listdir(".") if file.startswith(name + "."))


def totals(text):
    """calls to allocation functions, temporary ones, bytes leaked, as heaptrack_print words them."""
    calls = re.search(r"calls to allocation functions: (-?\d+)", text)
    temporary = re.search(r"temporary memory allocations: (-?\d+)", text)
    leaked = re.search(r"total memory leaked: (-?[\d.]+)(\w+)", text)
    peak = re.search(r"peak heap memory consumption: (-?[\d.]+)(\w+)", text)
    unit = {"B": 1, "K": 1000, "M": 1000000, "G": 1000000000}
    return (int(calls.group(1)), int(temporary.group(1)),
            float(leaked.group(1)) * unit[leaked.group(2)],
            float(peak.group(1)) * unit[peak.group(2)])


def heaptrack_print(*words):
    done = subprocess.run(["heaptrack_print", *words], capture_output=True, text=True)
    return totals(done.stdout)


# heaptrack's library brings libstdc++ into the program, and with it one block that is not its own.
POOL = 72704


@test
def heaptrack_says_the_same_of_both_runs_and_of_their_difference():
    files = {name: heaptrack(name) for name in ("mended_before", "mended_after")}
    for name, file in files.items():
        heap = ask("report", record(name, name + ".tide"))["heap"]
        calls, temporary, leaked, peak = heaptrack_print(file)
        assert calls - heap["allocations"] in (0, 1), (calls, heap)
        assert temporary - heap["temporary"]["count"] in (0, 1), (temporary, heap)
        # It rounds to two decimals of a unit.
        assert abs(leaked - heap["live_at_exit"]["bytes"]) <= 10, (leaked, heap)
        assert min(abs(peak - heap["peak_bytes"]), abs(peak - POOL - heap["peak_bytes"])) <= 10, \
            (peak, heap)
    calls, temporary, leaked, peak = heaptrack_print("-d", files["mended_before"],
                                                     files["mended_after"])
    total = ask("diff", "mended_before.tide", "mended_after.tide")["total"]
    assert calls == total["allocated"]["count"], (calls, total)
    assert temporary == total["temporary"]["count"], (temporary, total)
    assert abs(leaked - total["live"]["bytes"]) <= 10, (leaked, total)
    assert abs(peak - total["peak"]["bytes"]) <= 10, (peak, total)


main()
