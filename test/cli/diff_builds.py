#!/usr/bin/env python3
# parallel: yes
"""diff of two builds of one program, and of two runs: what does not change what a reader sees does not
part stacks."""
import json
import os
import shutil
import subprocess

from libanswer import answer, run
from libtests import main, test
from libtrends import functions

PROGRAM = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
//LINES
void *volatile kept[4096];
static int kept_count;
static void keep(void *block) { kept[__sync_fetch_and_add(&kept_count, 1)] = block; }
struct node { struct node *next; char text[40]; };
INLINED struct node *make(struct node *next) {
    struct node *LOCAL = (struct node *)malloc(sizeof(struct node));
    LOCAL->next = next;
    snprintf(LOCAL->text, sizeof LOCAL->text, "%p", (void *)next);
    return LOCAL;
}
INLINED void load(int count) {
    struct node *LOCAL = NULL;
    for (int i = 0; i < count; i++) keep(LOCAL = make(LOCAL));
}
INLINED void index_all(int count) {
    for (int i = 0; i < count; i++) { void *LOCAL = calloc(3, 100); keep(LOCAL); }
}
template <class F> static void each(int count, F what) { for (int i = 0; i < count; i++) what(i); }
static void *first(void *) { load(40); return NULL; }
static void *second(void *) { index_all(30); return NULL; }
static __attribute__((noinline)) void last(void) { load(25); }
int main() {
    pthread_t threads[2];
    //LAMBDA
    each(20, [](int i) { keep(malloc(70 + i)); });
    for (int i = 0; i < 50; i++) keep(new char[30 + i]);
    void *(*const starts[])(void *) = { ORDER };
    for (int i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, starts[i], NULL);
        pthread_join(threads[i], NULL);
    }
    last();
    return kept_count == 0;
}
"""


def build(name, flags=("-O1", "-g"), **changes):
    text = PROGRAM
    for word, other in {"INLINED": "static", "LOCAL": "block", "ORDER": "first, second",
                        **changes}.items():
        text = text.replace(word, other)
    os.makedirs(name, exist_ok=True)
    with open(f"{name}/app.cc", "w", encoding="utf-8") as file:
        file.write(text)
    subprocess.run(["g++", *flags, "-pthread", "-o", f"{name}/app", f"{name}/app.cc"], check=True)
    return f"{name}/app"


def record(app, name):
    path = f"{name}.tide"
    run("record", "-q", "-f", "-o", path, app)
    return path


def old():
    if not os.path.exists("old.tide"):
        record(build("old"), "old")
    return "old.tide"


def nothing_changed(path, *, moved=0):
    """No stack has other calls; what is held when threads end depends on their order, and is not asked."""
    told = answer("diff", old(), path, "--sort", "allocated", "-n", "0")
    changed = [(row["state"], functions(row), row["moved_from"] and [line["function"] for line in
                row["moved_from"]]) for row in told["rows"] if row["state"] != "moved" or not moved]
    assert changed == [], changed
    assert told["stacks"]["moved"] <= moved and told["stacks"]["same"] > 4, told["stacks"]


@test
def moved_lines_renamed_temporaries_and_a_lambda_written_above_another():
    nothing_changed(record(build("lines", **{
        "//LINES": "\n" * 40 + "static int unused_here = 1;\nint use(void) { return unused_here; }",
        "//LAMBDA": "auto other = [](int i) { keep((void *)(long)i); };\n"
                    "if (getenv(\"NEVER\")) each(1, other);",
        "LOCAL": "fresh"}), "lines"))


@test
def inlining_that_changed():
    nothing_changed(record(build("inlined", INLINED="static inline __attribute__((always_inline))"), "inlined"))
    # The whole optimizer, which copies functions for their callers.
    nothing_changed(record(build("o2", ("-O2", "-g", "-fno-optimize-sibling-calls")), "o2"), moved=2)


@test
def frames_that_no_debug_information_tells_of_are_shown_as_moved():
    """Without -g an inlined function is in no stack: what it did is its caller's."""
    plain = record(build("plain", ("-O1",), INLINED="static __attribute__((noinline))"), "plain")
    inlined = record(build("bare", ("-O1",), INLINED="static inline __attribute__((always_inline))"), "bare")
    told = answer("diff", plain, inlined, "--sort", "allocated", "-n", "0")
    assert (told["stacks"]["new"], told["stacks"]["gone"]) == (0, 0), told["stacks"]
    moved = {functions(row)[0]: row["moved_from"][0]["function"] for row in told["rows"]
             if row["state"] == "moved"}
    assert moved["first(void*)"] == "make(node*)" and moved["second(void*)"] == "index_all(int)", moved


@test
def a_program_that_is_built_anew_in_its_place():
    """Its names are in the old file: what keeps them is said, and with it nothing is new or gone."""
    app = build("place")
    record(app, "unbundled")
    run("bench", "--bundle", "--runs", "1", "-o", "bundled", app)
    os.makedirs("copies", exist_ok=True)
    shutil.copy(app, "copies/app")
    record(build("place", **{"//LINES": "\n" * 9 + "int use(void) { static int calls; return ++calls; }"}), "anew")

    def counts(*words):
        stacks = answer("diff", *words, "anew.tide", "-n", "0")["stacks"]
        said = " ".join(run("diff", *words, "anew.tide").stdout.split())
        return stacks["new"] + stacks["gone"] + stacks["moved"], "place/app has changed" in said and "record --bundle" in said

    found, said = counts("unbundled.tide")
    assert found > 0 and said, (found, said)
    for words in (("bundled.1.tide",), ("--symbols", "copies", "unbundled.tide")):
        assert counts(*words) == (0, False), (words, counts(*words))


@test
def what_a_text_says_of_symbols_its_other_forms_say():
    app = build("noted")
    old = record(app, "noted")
    build("noted", **{"//LINES": "\n" * 9 + "int use(void) { static int calls; return ++calls; }"})
    needle = "noted/app has changed since the recording"
    for words in (("report", old), ("window", old), ("window", old, "--tree", "callers"), ("active", old),
                  ("findings", old), ("growth", old), ("transients", old), ("map", old), ("pins", old),
                  ("check", old, "--max-live-at-exit", "1"), ("diff", old, "bundled.1.tide")):
        code = 1 if words[0] == "check" else 0
        text = needle in " ".join(run(*words, check=code).stdout.split())
        as_json = run(*words, "--json", check=code)
        notes = answer(*words, check=code)["symbol_notes"]
        if words[0] == "diff":
            assert not notes["after"], notes
            notes = notes["before"]
        assert text == any(needle in note for note in notes) == (needle in as_json.stderr), (words, text, notes)
        assert text or words[0] in ("growth", "transients", "map", "pins"), words
    # Of several runs the one whose places are shown, whichever it is.
    run("record", "-q", "-f", "-o", "true.tide", "--", "/bin/true")
    for runs in ((old, "true.tide"), ("true.tide", old)):
        words = ("check", *runs, "--max-live-at-exit", "1")
        told = run(*words, "--json", check=1)
        assert any(needle in note for note in json.loads(told.stdout)["symbol_notes"]), runs
        assert needle in told.stderr and needle in " ".join(run(*words, check=1).stdout.split()), runs
    for words in (("window", "--csv"), ("active", "--csv"), ("diff", "bundled.1.tide", "--csv"),
                  ("check", "--max-live-at-exit", "1", "--markdown"), ("export", "--format", "folded"),
                  ("export", "--format", "csv")):
        done = run(words[0], old, *words[1:], check=1 if words[0] == "check" else 0)
        assert needle in done.stderr and needle not in done.stdout, (words, done.stderr)
    for words in (("window",), ("diff", "bundled.1.tide")):
        done = run(words[0], old, *words[1:], "--markdown")
        assert needle not in done.stderr and needle in done.stdout, (words, done)


@test
def addresses_and_the_order_of_threads():
    path = record(build("order", ("-O1", "-g", "-no-pie"), ORDER="second, first"), "order")
    nothing_changed(path)
    old()
    subprocess.run(["setarch", "-R", os.environ["TIDEMARK"], "record", "-q", "-o", "fixed.tide", "old/app"],
                   check=True)
    nothing_changed("fixed.tide")


main()
