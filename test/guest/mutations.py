#!/usr/bin/env python3
"""Each rule of the order protocol is needed: a recorder without it is caught.

The recorder is built anew with one rule left out, by an edit of its source, and with the threads
held up at the places where it matters. What the traces of such a recorder show is compared with
what really happened (libreplay.py). The same recorder with all its rules, held up in the same
places, is never wrong. docs/notes/0001-order-without-clocks.md lists the rules. Four of them here;
with MUTATIONS_ALL, in mutations_soak.py, all.
"""
# timeout: 400
# parallel: yes
import concurrent.futures
import functools
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess

from libguest import BUILD, SOURCE, TIDEMARK, check, equal, main, test
from libreplay import handover

# Where threads are held up: between looking at the owner and taking over, between taking over and
# publishing, between publishing and the real free, and after the real malloc.
DELAY = '''
static inline void order_delay(void)
{
	static __thread uint64_t seed __attribute__((tls_model("initial-exec")));

	seed = (seed + (uint64_t)&seed) * 6364136223846793005u + 1442695040888963407u;
	if (seed >> 60 == 0)
		kernel(__NR_sched_yield, 0, 0, 0);
}
'''
# How free records a block, and gives it back: by the short way, and where that cannot.
QUICK = ("\telse if (unlikely(!event_quick(LANE_FREE, EVENT_ADDRESS, (uintptr_t)ptr, 0, NULL)))\n"
         "\t\thook_free_put(ptr, HOOK_FRAME HOOK_GIVES_REAL);\n\telse\n\t\tHOOK_REAL(free)(ptr);\n}\n")
PUT = ("\tevent_record(LANE_FREE, EVENT_ADDRESS, (uintptr_t)ptr, 0, 0, frame);\n"
       "\tHOOK_REAL(free)(ptr);\n")
HELD_UP = [
    ("order.h", '#include "recorder/lane.h"\n',
     '#include "recorder/lane.h"\n#include "recorder/kernel.h"\n' + DELAY),
    ("order.h", "\tdo {\n", "\torder_delay();\n\tdo {\n"),
    ("order.h", "\treturn true;\n", "\torder_delay();\n\treturn true;\n"),
    ("hook_malloc_linux.c", QUICK, QUICK.replace("\telse\n\t\tHOOK_REAL(free)(ptr);\n",
                                                  "\telse {\n\t\torder_delay();\n\t\tHOOK_REAL(free)(ptr);\n\t}\n")),
    ("hook_malloc_linux.c", PUT, PUT.replace("\tHOOK_REAL", "\torder_delay();\n\tHOOK_REAL")),
    ("hook_malloc_linux.c", "\tptr = HOOK_REAL(malloc)(size);\n\tif (unlikely(!ptr) ||",
     "\tptr = HOOK_REAL(malloc)(size);\n\torder_delay();\n\tif (unlikely(!ptr) ||"),
]
MUTATIONS = {
    "a free that is recorded after it happened": [
        ("hook_malloc_linux.c", HELD_UP[3][2],
         "\telse {\n\t\tHOOK_REAL(free)(ptr);\n\t\torder_delay();\n"
         "\t\tif (!event_quick(LANE_FREE, EVENT_ADDRESS, (uintptr_t)ptr, 0, NULL))\n"
         "\t\t\tevent_record(LANE_FREE, EVENT_ADDRESS, (uintptr_t)ptr, 0, 0, HOOK_FRAME);\n\t}\n}\n")],
    "an owner that is remembered from before malloc": [
        ("order.h", "\tif (likely((word & ORDER_LANE) == lane->id))\n",
         "\tstatic __thread uint64_t before __attribute__((tls_model(\"initial-exec\")));\n"
         "\tbool known = before == (uint64_t)owner;\n\n\tbefore = (uint64_t)owner;\n"
         "\tif (likely((word & ORDER_LANE) == lane->id) || known)\n")],
    "events that are published eight at a time": [
        ("lane.h", "\t__atomic_store_n(&lane->shared->head, head, __ATOMIC_RELEASE);\n",
         "\tstatic __thread unsigned late __attribute__((tls_model(\"initial-exec\")));\n\n"
         "\tif (++late % 8 == 0)\n"
         "\t\t__atomic_store_n(&lane->shared->head, head, __ATOMIC_RELEASE);\n")],
    "an owner that is stored, not exchanged": [
        ("order.h", "\t} while (!__atomic_compare_exchange_n(owner, &word,\n\t\t\t\t\t      *seq << 16 | "
         "(word & ORDER_LARGE) | lane->id, true,\n\t\t\t\t\t      __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));\n",
         "\t\t__atomic_store_n(owner, *seq << 16 | lane->id, __ATOMIC_SEQ_CST);\n\t} while (0);\n")],
    "a failed realloc that is not undone": [
        ("hook_malloc_linux.c", "\t\tat = event_put(lane, start, LANE_REALLOC_UNDO, EVENT_ADDRESS | "
         "EVENT_SIZE, &call);\n", "\t\tat = start;\n")],
    "a time that is looked at every eighth event": [
        ("event.h", "\tif (unlikely(large) ||\n"
         "\t    unlikely(__atomic_load_n(lane->tick, __ATOMIC_RELAXED) != lane->time_ns)) {\n",
         "\tstatic __thread unsigned late __attribute__((tls_model(\"initial-exec\")));\n\n"
         "\tif (unlikely(large) || (++late % 8 == 0 &&\n"
         "\t    unlikely(__atomic_load_n(lane->tick, __ATOMIC_RELAXED) != lane->time_ns))) {\n")],
}


# The collector's part of the protocol: what a lane owned belongs to the lane, not to its thread.
FORGETFUL = [
    ("stream.c", "void stream_add_runs(struct stream *stream,",
     """void forget(struct stream *stream, const struct lane_item *item)
{
	for (size_t i = 0; item->kind == LANE_ITEM_THREAD && stream->chunks && i < STREAM_CHUNKS; i++)
		for (size_t j = 0; stream->chunks[i] && j < STREAM_CHUNK_SLOTS; j++)
			stream->chunks[i][j] = (struct stream_interval){ 0 };
}

void stream_add_runs(struct stream *stream,"""),
    ("stream.c", "\t\tif (lane_item_has_slot(item) && item->run == 0)\n",
     "\t\tforget(stream, item);\n\t\tif (lane_item_has_slot(item) && item->run == 0)\n"),
    ("merge.c", "static void add_runs(",
     "void forget(struct stream *, const struct lane_item *);\n\nstatic void add_runs("),
    ("merge.c", "\t\tif (lane_item_has_slot(item) && item->run == 0 &&\n",
     "\t\tforget(stream, item);\n\t\tif (lane_item_has_slot(item) && item->run == 0 &&\n"),
]
# It is asked for only where a lane gets a slot, and another thread, within a tick. In 100 us that
# comes by chance: 400 generations of threads bring it about in each trace where a tick is 20 ms.
LONG_TICKS = [("collect.c", "\tTICK_NS = 100000,\n", "\tTICK_NS = 20000000,\n")]


def edit(folder, edits):
    for name, old, new in edits:
        path = os.path.join(folder, name)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        equal(1, text.count(old), f"places in {name} that read {old!r}")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace(old, new))


def listed(text, name):
    """The words in quotes that meson.build gives a name."""
    return re.findall(r"'([^']+)'", re.search(rf"^{name} = (.*?[)\]])$", text, re.M | re.S)[1])


objects_built = {}  # of a source: [(what it includes, as digests, and the object of that)]


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).digest()


def built(command, source):
    """The object of it, and what the compiler said if it failed. Most sources see nothing of an edit."""
    before = objects_built.setdefault(source, [])
    for seen, made in before:
        if all(digest(path) == content for path, content in seen.items()):
            return made, ""
    made = os.path.abspath(f"../{os.path.basename(source)}.{len(before)}.o")
    said = compiled([*command, "-MMD", "-MF", made + ".d", "-c", source, "-o", made])
    if not said:
        with open(made + ".d", encoding="utf-8") as file:
            words = file.read().replace("\\\n", " ").split()
        before.append(({path: digest(path) for path in words[1:]}, made))
    return made, said


@functools.cache
def build(*edits):
    """A recorder of edited sources, with the flags of the real one. Returns its path."""
    shutil.rmtree("src", ignore_errors=True)
    for name in ("recorder", "wire"):
        shutil.copytree(os.path.join(SOURCE, "src", name), os.path.join("src", name))
    edit("src/recorder", edits)
    # The flags are those of meson.build, which is text that Python can nearly read.
    with open("src/recorder/meson.build", encoding="utf-8") as file:
        text = file.read()
    flags = listed(text, "recorder_c_args") + listed(text, "recorder_c_args_64")
    sources = listed(text, "recorder_sources") + listed(text, "recorder_sources_64")
    compiler = ["gcc", "-std=gnu17", "-O2", "-D_GNU_SOURCE", "-fPIC", "-Isrc",
                '-DTIDEMARK_VERSION="0.1.0"', *flags]
    objects = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for made, said in pool.map(lambda name: built(compiler, os.path.join("src", "recorder", name)),
                                   sources):
            check(not said, f"does not build: {said[-1500:]}")
            objects.append(made)
    said = compiled([*compiler, "-shared", "-nostdlib", "-Wl,-z,now",
                     "-Wl,--version-script=src/recorder/exports.map", "-o", "libtidemark.so", *objects])
    check(not said, f"does not build: {said[-1500:]}")
    return os.path.abspath("libtidemark.so")


def compiled(command):
    """What the compiler said, if it failed."""
    ended = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    return ended.stderr or "no reason given" if ended.returncode else ""


def build_tidemark(edits):
    """A tidemark with an edited collector, linked as the real one is."""
    shutil.rmtree("src", ignore_errors=True)
    shutil.copytree(os.path.join(SOURCE, "src"), "src")
    edit("src/collect", edits)
    with open(os.path.join(BUILD, "compile_commands.json"), encoding="utf-8") as file:
        command = next(entry["command"] for entry in json.load(file)
                       if entry["file"].endswith("src/collect/stream.c"))
    flags = [word for word in shlex.split(command) if word.startswith(("-D", "-std", "-O", "-g"))]
    with open(os.path.join(BUILD, "build.ninja"), encoding="utf-8") as file:
        rule = file.read().split("\nbuild tidemark: ")[1].split("\nbuild ")[0]
    objects = [os.path.join(BUILD, word) for word in rule.split() if word.startswith("tidemark.p/")]
    link = rule.split("LINK_ARGS = ")[1].splitlines()[0]
    link = link.replace(" libtidemark_host.a", " " + os.path.join(BUILD, "libtidemark_host.a"))
    # What is defined already is not taken from the library any more.
    command = ["gcc", *flags, "-Isrc", "-o", "tidemark",
               *sorted({os.path.join("src/collect", name) for name, _, _ in edits}), *objects,
               *shlex.split(link)]
    said = compiled(command)
    check(not said, f"does not build: {said[-1500:]}")
    return os.path.abspath("tidemark")


def replays(library, count, tidemark=TIDEMARK, generations=4):
    """The first that is wrong, or the last. A program that ends badly is wrong enough."""
    for seed in range(1, count + 1):
        replay = handover(24000, seed, tidemark, library=library, generations=generations)
        if replay.wrong:
            break
    return replay


def soak(function):
    return test(function) if "MUTATIONS_ALL" in os.environ else function


def caught(name):
    replay = replays(build(*HELD_UP, *MUTATIONS[name]), 12)
    check(replay.wrong, f"{name}: nothing wrong in twelve traces of {replay.events} events")
    print(f"# {name}: {dict(replay.wrong)}")


@test
def with_all_its_rules_a_recorder_that_is_held_up_is_never_wrong():
    replay = replays(build(*HELD_UP), 4)
    replay = replay if replay.wrong else replays(build(*HELD_UP), 2, generations=60)
    equal({}, dict(replay.wrong), f"what cannot have happened, in {replay.events} events")


@test
def a_free_that_is_recorded_after_it_happened_is_caught():
    caught("a free that is recorded after it happened")


@soak
def an_owner_that_is_remembered_from_before_malloc_is_caught():
    caught("an owner that is remembered from before malloc")


@soak
def events_that_are_published_eight_at_a_time_are_caught():
    caught("events that are published eight at a time")


@soak
def a_collector_that_forgets_what_a_lane_owned_when_its_thread_changes_is_caught():
    library = build(*HELD_UP)
    replay = replays(library, 2, build_tidemark(LONG_TICKS), generations=400)
    equal({}, dict(replay.wrong), f"what cannot have happened, in {replay.events} events")
    replay = replays(library, 2, build_tidemark(LONG_TICKS + FORGETFUL), generations=400)
    check(replay.wrong, f"nothing wrong in two traces of {replay.events} events")
    print(f"# {dict(replay.wrong)}")


@test
def an_owner_that_is_stored_and_not_exchanged_is_caught():
    caught("an owner that is stored, not exchanged")


@test
def a_failed_realloc_that_is_not_undone_is_caught():
    caught("a failed realloc that is not undone")


@soak
def a_time_that_is_looked_at_every_eighth_event_is_caught():
    caught("a time that is looked at every eighth event")


main()
