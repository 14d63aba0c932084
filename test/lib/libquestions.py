"""libquestions: what every answer must agree with: windows that touch, filters and what they leave
out, groups and their totals, moments and windows, a difference and its reverse."""
import os
import random

from libanswer import answer, run
from libtests import equal

LAYERS = [[], ["--layer", "vm"]]


def recorded():
    """A trace of a real program, and how long it is."""
    if not os.path.exists("real.tide"):
        run("record", "--rss-exact", "-o", "real.tide", "--", "python3", "-S", "-c",
            "x = [str(i) * (i % 50) for i in range(3000)]\ndel x[::2]\n"
            "y = [bytearray(i) for i in range(0, 90000, 600)]\ndel x\n")
    return "real.tide", answer("window", "real.tide", "--by", "none")["to_ns"]


def total(*words):
    return answer("window", *words, "--by", "none")["total"]


class Asker:
    """Random questions about one trace."""

    def __init__(self, seed):
        self.dice = random.Random(seed)
        self.path, self.length = recorded()
        rows = answer("window", self.path, "--by", "function", "-n", "20")["rows"]
        self.functions = [row["keys"]["function"] for row in rows
                          if not row["keys"]["function"].startswith("(")]

    def times(self, count):
        return [f"{time}ns" for time in sorted(self.dice.sample(range(1, self.length), count))]

    def filters(self):
        """Filters, and those that choose what these leave out."""
        low, high = sorted(self.dice.sample(range(1, 3000), 2))
        function = self.dice.choice(self.functions)
        return self.dice.choice([
            (["--size", f"{low}..{high}"], ["--not-row", f"size:{low}..{high}"]),
            (["--row", f"function:{function}"], ["--not-row", f"function:{function}"]),
            (["--frame", "alloc"], ["--not-frame", "alloc"])])

    def windows_that_touch_add_up(self):
        first, middle, last = self.times(3)
        filters = self.filters()[0]
        parts = [total(self.path, "--from", a, "--to", b, *filters)
                 for a, b in ((first, middle), (middle, last), (first, last))]
        for key in ("allocated", "allocated_count", "freed", "freed_count", "impacting_size"):
            equal(parts[2][key], parts[0][key] + parts[1][key], (first, middle, last, filters, key))

    def a_filter_and_its_complement_are_all(self):
        first, last = self.times(2)
        words = ["--from", first, "--to", last, *self.dice.choice(LAYERS)]
        inside, outside = self.filters()
        parts = [total(self.path, *words, *filters) for filters in (inside, outside, [])]
        for key in ("count", "size", "allocated", "freed", "impacting_size"):
            equal(parts[2][key], parts[0][key] + parts[1][key], (words, inside, key))

    def groups_add_up(self):
        first, last = self.times(2)
        by = self.dice.choice(["stack", "function", "module", "impact", "size", "thread,impact"])
        told = answer("window", self.path, "--from", first, "--to", last, "--by", by)
        for key in ("count", "size", "allocated", "freed", "impacting_size"):
            equal(told["total"][key], sum(row[key] for row in told["rows"]), (first, last, by, key))

    def active_is_a_window_of_no_length(self):
        (time,) = self.times(1)
        filters = self.filters()[0]
        active = answer("active", self.path, "--at", time, "--layer", "heap", *filters)["heap"]
        window = total(self.path, "--from", time, "--to", time, "--exit-frees", *filters)
        equal((window["count"], window["size"]), (active["count"], active["bytes"]),
              (time, filters))

    def live_at_exit_is_one_figure(self):
        filters = self.filters()[0]
        equal(answer("report", self.path, *filters)["heap"]["live_at_exit"],
              answer("active", self.path, "--heap", "malloc", *filters)["heap"], filters)

    def moments_agree(self):
        """Blocks by active, by pins and in the report; mappings by active and by map."""
        at = self.dice.choice(["exit", *self.times(1)])
        active = answer("active", self.path, "--at", at, "-n", "1")
        if active["heap"]["count"] == 0:
            return  # of which pins has nothing to say
        pins, space = (answer(command, self.path, "--at", at, "-n", "1")
                       for command in ("pins", "map"))
        window = total(self.path, *([] if at == "exit" else ["--from", at, "--to", at]))
        equal(active["heap"]["bytes"], pins["live_bytes"], ("pins", at))
        mapped = active["vm"]["bytes"] + active["mappings_of_malloc"]["bytes"]
        ours = space["owners"].get("tidemark", 0)
        equal(space["mapped"], mapped + ours, ("map", at))
        if at != "exit":
            equal(active["heap"]["count"], window["count"], ("window", at))

    def resident_memory_is_divided_up_without_a_rest(self):
        told = answer("reconcile", self.path, "-n", "1")
        equal(told["smaps_bytes"] - told["difference"], sum(line["bytes"] for line in told["lines"]))
        live = next(line["bytes"] for line in told["lines"] if line["line"] == "live")
        peak = total(self.path)["peak_size"]
        if live > peak:
            raise AssertionError(("more live blocks are resident than ever lived", live, peak))

    def a_peak_is_one_moment(self):
        filters = self.filters()[0]
        window = answer("window", self.path, "--from", "peak", "--to", "peak", "--by", "none",
                        *filters)
        whole = total(self.path, *filters)
        equal(whole["peak_size"], window["total"]["size"], ("the level at the peak", filters))
        peak = window["from_ns"]
        for command in ("growth", "transients"):
            equal(peak, answer(command, self.path, "--from", "peak", *filters)["from_ns"],
                  (command, filters))
        active = answer("active", self.path, "--at", "peak", "--layer", "heap", *filters)
        equal((peak, whole["peak_size"]), (active["at_ns"], active["heap"]["bytes"]),
              ("active", filters))
        equal(total(self.path, "--to", "peak", *filters)["allocated_count"],
              answer("report", self.path, "--to", "peak", *filters)["heap"]["allocations"],
              ("report", filters))

    def a_difference_turns_around(self):
        first, middle, last = self.times(3)
        one, other = ["--from", first, "--to", middle], ["--from", middle, "--to", last]
        there, back = self.difference(one, other), self.difference(other, one)
        for figure, pair in there.items():
            for key in ("bytes", "count"):
                equal(pair[key], -back[figure][key], (first, middle, last, figure, key))
        for figure, pair in self.difference(one, one).items():
            equal((0, 0), (pair["bytes"], pair["count"]), ("with itself", one, figure))

    def difference(self, one, other):
        return answer("diff", self.path, *one, "--with-from", other[1], "--with-to",
                      other[3])["total"]


def ask(seed, rounds):
    """Every rule, with questions of this seed."""
    asker = Asker(seed)
    asker.resident_memory_is_divided_up_without_a_rest()
    for _ in range(rounds):
        asker.windows_that_touch_add_up()
        asker.a_filter_and_its_complement_are_all()
        asker.groups_add_up()
        asker.active_is_a_window_of_no_length()
        asker.live_at_exit_is_one_figure()
        asker.moments_agree()
        asker.a_peak_is_one_moment()
        asker.a_difference_turns_around()
