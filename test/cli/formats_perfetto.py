#!/usr/bin/env python3
# parallel: yes
"""`tidemark export --format perfetto`: its packets taken apart by their published numbers
(perfetto_trace.proto of August 2026): the profile's sums and the counter's peak are `tidemark window`'s."""
import subprocess

from libanswer import TIDEMARK, answer, assemble
from libprotobuf import message
from libtests import check, equal, main, test

TRACES = ("kitchen", "family", "crowd")
WINDOWS = ((), ("--size", "..64"), ("--from", "30%"))
TRACK, EVENT, PROFILE, INTERNED = 60, 11, 37, 12
BEGINS, ENDS, COUNTS = 1, 2, 4


def exported(path, *words):
    done = subprocess.run([TIDEMARK, "export", path, "--format", "perfetto", *words], check=True,
                          capture_output=True)
    return done.stdout, done.stderr.decode()


class Trace:
    def __init__(self, data):
        self.packets = [message(each) for each in message(data)[1]]
        check(all(packet[10] == [1] for packet in self.packets), "one sequence")
        self.tracks = {each[1][0]: each for each in self.all_of(TRACK)}
        self.events = [(packet[8][0] if 8 in packet else 0, message(packet[EVENT][0]))
                       for packet in self.packets if EVENT in packet]
        (interned,) = self.all_of(INTERNED)
        self.interned = {field: {message(each)[1][0]: message(each) for each in values}
                         for field, values in interned.items()}
        self.dumps = [message(profile[5][0]) for profile in self.all_of(PROFILE)]

    def all_of(self, field):
        return [message(packet[field][0]) for packet in self.packets if field in packet]

    def counter(self, name):
        return [(time, event[30][0]) for time, event in self.events
                if event[9] == [COUNTS] and self.tracks[event[11][0]][2] == [name.encode()]]

    def samples(self, dump):
        for sample in map(message, dump.get(2, [])):
            yield {name: sample.get(field, [0])[0] for name, field in
                   (("stack", 1), ("allocated", 2), ("freed", 3), ("allocs", 5), ("frees", 6))}

    def functions(self, stack):
        """Outermost first."""
        frames = self.interned[7][stack][2]
        return [self.interned[5][self.interned[6][frame][2][0]][2][0].decode() for frame in frames]


def processes(path):
    return [("--process", str(each["id"])) for each in answer("info", path)["processes"]]


@test
def the_profile_is_the_window():
    for name in TRACES:
        path = assemble(name)
        for process in processes(path):
            for words in WINDOWS:
                if name == "family" and "--from" in words:
                    continue  # what a process left that ended before is gone here
                what = (name, process, words)
                trace = Trace(exported(path, *process, *words)[0])
                samples = [sample for dump in trace.dumps for sample in trace.samples(dump)]
                types = {row["keys"]["type"]: row
                         for row in answer("window", path, "--by", "type", *process, *words)["rows"]}
                live = [types[key] for key in ("AIFO", "AOFO") if key in types]
                rows = [types[key] for key in ("AIFI", "AIFO", "AOFI", "AOFO") if key in types]
                equal(sum(row["size"] for row in rows), sum(each["allocated"] for each in samples), what)
                equal(sum(row["count"] for row in rows), sum(each["allocs"] for each in samples), what)
                equal(sum(row["size"] for row in live),
                      sum(each["allocated"] - each["freed"] for each in samples), what)
                equal(sum(row["count"] for row in live),
                      sum(each["allocs"] - each["frees"] for each in samples), what)


@test
def the_counters_highest_value_is_our_peak():
    for name in TRACES:
        path = assemble(name)
        for words in ((), ("--size", "..64"), ("--from", "20%", "--to", "70%")):
            total = answer("window", path, *words)["total"]
            values = Trace(exported(path, *words)[0]).counter("live heap")
            equal(total["peak_size"], max(value for _, value in values), (name, words))
            equal(sorted(values, key=lambda each: each[0]), values, "in order of time")


@test
def the_counter_ends_with_what_lived_at_exit():
    for name in TRACES:
        path = assemble(name)
        for process in processes(path):
            rows = answer("window", path, "--by", "type", *process)["rows"]
            values = Trace(exported(path, *process)[0]).counter("live heap")
            equal(sum(row["size"] for row in rows if row["keys"]["type"] == "AIFO"), values[-1][1],
                  (name, process))


@test
def stacks_are_interned_once_and_refer_to_what_is_there():
    trace = Trace(exported(assemble("kitchen"))[0])
    names = [trace.functions(sample["stack"]) for dump in trace.dumps for sample in trace.samples(dump)]
    check(["_start", "__libc_start_call_main", "main", "cook", "make_pot", "xmalloc"] in names, names)
    check(["(no stack)"] in names and any("peel_one" in each and "peel_all" in each for each in names), names)
    for frame in trace.interned[6].values():
        if frame.get(3, [0])[0]:
            mapping = trace.interned[19][frame[3][0]]
            check(trace.interned[17][mapping[7][0]][2][0] and frame[4], mapping)
    for process in trace.tracks.values():
        check(process.get(5, [0])[0] in {0, *trace.tracks})


@test
def marks_are_slices_and_resident_memory_a_counter():
    path = assemble("marked", "process p pid=7 exe=\"/bin/app\"\nthread t p tid=7\n"
                    '@1ms mark p t "load"\n@1ms rss p value=5000000\n@2ms t malloc 0x1000 10\n'
                    '@4ms mark p t "work"\n@5ms t free 0x1000\n@9ms end p exit=0\nend\n')
    trace = Trace(exported(path)[0])
    slices = [(time, event[9][0], event.get(23, [b""])[0]) for time, event in trace.events
              if event[9][0] in (BEGINS, ENDS)]
    equal([(1000000, BEGINS, b"load"), (4000000, ENDS, b""), (4000000, BEGINS, b"work"),
           (9000000, ENDS, b"")], slices)
    equal([(1000000, 5000000)], trace.counter("resident memory"))


main()
