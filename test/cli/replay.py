#!/usr/bin/env python3
# parallel: yes
"""`tidemark replay`: the recorded calls are made again, under allocators that are asked for."""
import os
import subprocess

from libanswer import TIDEMARK, answer, assemble, refused, run
from libtests import main, test

PROGRAM = r"""
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
enum { BLOCKS = 20000 };
static void *touch(void *block, size_t size) { return memset(block, 1, size); }
static void *work(void *seed)
{
	static __thread void *kept[BLOCKS];
	unsigned next = (unsigned)(size_t)seed;

	for (int i = 0; i < 3 * BLOCKS; i++) {
		size_t size = (next = next * 1103515245 + 12345) % 700 + 1;
		void **slot = &kept[(next >> 8) % BLOCKS];

		if (i % 5 == 0 && *slot) {
			*slot = touch(realloc(*slot, size * 2), size * 2);
		} else {
			free(*slot);
			*slot = touch(malloc(size), size);
		}
	}
	return NULL;
}
int main(int argc, char **argv)
{
	pthread_t threads[3];

	(void)argv;
	for (int i = 0; i < 3 && argc > 1; i++)
		pthread_create(&threads[i], NULL, work, (void *)(size_t)(i + 1));
	for (int i = 0; i < 3 && argc > 1; i++)
		pthread_join(threads[i], NULL);
	work((void *)7);
	return 0;
}
"""
# Nothing is copied, so what is not touched is not resident.
PLAIN = r"""
#include <stdlib.h>
int main(void)
{
	static void *blocks[20000];

	for (int i = 0; i < 20000; i++)
		blocks[i] = malloc(300 + i % 50);
	for (int i = 0; i < 20000; i++)
		free(blocks[i]);
	return 0;
}
"""
OWN = r"""
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
// Never gives anything back.
static char *at, *end;
static void *take(size_t size, size_t align)
{
	char *block;

	size = (size + 31) & ~(size_t)15;
	if (!at || at + size + align > end) {
		size_t more = size + align + (64 << 20);

		at = mmap(NULL, more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		end = at + more;
	}
	block = (char *)(((uintptr_t)at + 16 + align - 1) & ~(align - 1));
	at = block + size;
	((size_t *)block)[-1] = size - 16;
	return block;
}
void *malloc(size_t size) { return take(size, 16); }
void *calloc(size_t n, size_t size) { return take(n * size, 16); }
void *memalign(size_t align, size_t size) { return take(size, align < 16 ? 16 : align); }
size_t malloc_usable_size(void *block) { return ((size_t *)block)[-1]; }
void free(void *block) { (void)block; }
void *realloc(void *block, size_t size)
{
	void *moved = malloc(size);
	size_t old = block ? malloc_usable_size(block) : 0;

	return block ? memcpy(moved, block, old < size ? old : size) : moved;
}
"""


def recorded(name, *words, source=PROGRAM):
    path = name + ".tide"
    if not os.path.exists(path):
        with open(name + ".c", "w") as file:
            file.write(source)
        subprocess.run(["gcc", "-O1", "-pthread", "-o", name, name + ".c"], check=True)
        subprocess.run([TIDEMARK, "record", "-o", path, "--", "./" + name, *words], check=True,
                       stderr=subprocess.DEVNULL)
    return path


@test
def all_calls_are_made_and_memory_is_that_of_the_blocks():
    path = recorded("one")
    heap = answer("report", path)["heap"]
    found = answer("replay", path, "--allocator", "glibc,jemalloc,mimalloc,tcmalloc")
    assert [row["allocator"] for row in found["runs"]] == \
        ["glibc", "jemalloc", "mimalloc", "tcmalloc"], found
    # A realloc is one call, and an allocation and a free.
    assert found["calls"] == heap["allocations"] + heap["frees"] - heap["reallocations"], found["calls"]
    assert found["peak_live_bytes"] == heap["peak_bytes"] and found["unknown_frees"] == 0
    for row in found["runs"]:
        assert row["calls"] == found["calls"] and row["failed"] == 0, row["allocator"]
        # Headers and rounding, what tcmalloc takes for itself; not less than what is in the blocks.
        assert heap["peak_bytes"] < row["peak_resident_bytes"] < 2 * heap["peak_bytes"] + (6 << 20), \
            (row["allocator"], row["peak_resident_bytes"], heap["peak_bytes"])
        assert row["samples"][-1]["live_bytes"] == heap["live_at_exit"]["bytes"]
        assert sum(row["allocations"] for row in row["classes"]) == heap["allocations"]


@test
def of_calls_that_take_turns_both_kinds_are_timed():
    """Every second call is a free: one call of so many must not always be the same kind."""
    path = recorded("turns", source=r"""
#include <stdlib.h>
int main(void)
{
	for (int i = 0; i < 20000; i++)
		free(*(void *volatile *)&(void *){ malloc(300) });
	return 0;
}
""")
    done = run("replay", path, "--allocator", "glibc").stdout
    assert "standard error" in done and "±" in done, done
    row = answer("replay", path, "--allocator", "glibc")["runs"][0]
    sizes = {each["size_from"]: each for each in row["classes"]}
    for figure in ("begin_ns", "begin_error_ns", "end_ns", "end_error_ns"):
        assert sizes[256][figure] is not None, sizes[256]
    # A class of which little was timed has no more than there is.
    assert all((each["begin_ns"] is None) <= (each["begin_error_ns"] is None) for each in row["classes"])
    assert row["interrupted"] >= 0


@test
def on_glibc_it_is_as_large_as_the_program_was():
    path = recorded("one")
    lines = {line["line"]: line["bytes"] for line in answer("reconcile", path, "--at", "exit")["lines"]}
    own = lines["live"] + lines["rounding"] + lines["free"]
    end = answer("replay", path, "--allocator", "glibc")["runs"][0]["end_resident_bytes"]
    assert abs(end - own) < 0.03 * own, (end, own, lines)


@test
def threads_take_turns_in_the_order_of_the_trace():
    path = recorded("many", "threads")
    found = answer("replay", path, "--allocator", "glibc,jemalloc")
    alone = answer("replay", path, "--allocator", "glibc", "--threads", "one")
    assert not found["one_thread"] and alone["one_thread"]
    for row in found["runs"] + alone["runs"]:
        assert row["calls"] == found["calls"] and row["failed"] == 0, row
    assert [one["live_bytes"] for one in found["runs"][0]["samples"]] == \
        [one["live_bytes"] for one in alone["runs"][0]["samples"]]
    assert "in one thread" in run("replay", path, "--allocator", "glibc", "--threads", "one").stdout


@test
def what_is_touched_is_what_is_resident():
    path = recorded("plain", source=PLAIN)
    sizes = [answer("replay", path, "--allocator", "jemalloc", "--touch", how)["runs"][0]
             ["peak_resident_bytes"] for how in ("none", "first", "all")]
    # What the allocator itself does in its background differs by a few pages.
    assert sizes[0] <= sizes[1] <= 1.01 * sizes[2] and sizes[0] < 0.5 * sizes[2], sizes
    assert "not touched" in run("replay", path, "--allocator", "glibc", "--touch", "none").stdout
    assert "does not say" in run("replay", path, "--allocator", "glibc").stdout


@test
def an_allocator_of_ones_own_and_settings():
    path = recorded("one")
    with open("own.c", "w") as file:
        file.write(OWN)
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-fno-builtin", "-o", "own.so", "own.c"], check=True)
    found = answer("replay", path, "--allocator", "glibc,./own.so", "--settings",
                   "glibc:GLIBC_TUNABLES=glibc.malloc.tcache_count=0|glibc.malloc.mmap_threshold=500")
    assert [(row["allocator"], row["setting"]) for row in found["runs"]] == [
        ("glibc", None), ("glibc", "GLIBC_TUNABLES=glibc.malloc.tcache_count=0"),
        ("glibc", "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=500"), ("./own.so", None)], found
    glibc, _, mapped, own = [row["peak_resident_bytes"] for row in found["runs"]]
    # One never gives back, and one maps each block of 500 bytes for itself.
    assert own > 2 * glibc and mapped > 1.1 * glibc, (glibc, mapped, own)
    assert found["runs"][3]["library"].endswith("own.so")
    assert any(row["given_for_asked"] for row in found["runs"][3]["classes"])
    # Another library's malloc_usable_size would read what is not there for it.
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-fno-builtin", "-Dmalloc_usable_size=size_of", "-o", "mute.so", "own.c"],
                   check=True)
    found = answer("replay", path, "--allocator", "./mute.so")
    assert [row["given_for_asked"] for row in found["runs"][0]["classes"]] == \
        [None] * len(found["runs"][0]["classes"]), found
    assert "  -\n" in run("replay", path, "--allocator", "./mute.so").stdout
    # The = of a path is not that of a setting.
    os.rename("own.so", "a=b.so")
    found = answer("replay", path, "--allocator", "./a=b.so", "--settings", "./a=b.so:NAME")
    assert [row["setting"] for row in found["runs"]] == [None, "./a=b.so:NAME"], found


@test
def a_picture_has_a_curve_for_each():
    path = recorded("one")
    run("replay", path, "--allocator", "glibc,jemalloc", "--svg", "all.svg")
    with open("all.svg") as file:
        text = file.read()
    assert ">glibc<" in text and ">jemalloc<" in text and "live, as asked for" in text
    assert "exists" in refused("replay", path, "--allocator", "glibc", "--svg", "all.svg", code=3)


@test
def halves_of_reallocs_and_what_is_not_known():
    trace = assemble("halves", """
process p1 pid=42 exe=/bin/app
thread t1 "main"
thread t2 "other"
+0ns t1 alloc 0x1000 64
+1ns t1 realloc-free 0x1000
+1ns t2 alloc 0x1000 32
+1ns t1 realloc-alloc 0x2000 128
+1ns t1 realloc-free 0x2000
+1ns t1 realloc-undo 0x2000 1000
+1ns t2 free 0x1000
+1ns t2 free 0x9000
+1ns t1 realloc-free 0x2000
+1ns t1 alloc 0x3000 16
+1ns t1 alloc 0x3000 24
+1ns t1 failed 999
end
""")
    found = answer("replay", trace, "--allocator", "glibc")
    # Five allocations and reallocs, and frees of three blocks: the other, one by realloc, one unseen.
    assert found["calls"] == 8 and found["unknown_frees"] == 1 and found["failed"] == 2, found
    assert found["runs"][0]["samples"][-1]["live_bytes"] == 24
    assert found["peak_live_bytes"] == 32 + 128


@test
def a_realloc_that_fails_changes_nothing_meanwhile():
    """Another thread's block is there between its halves, and so is its own: what report has."""
    trace = assemble("undone", """
process p1 pid=42 exe=/bin/app
thread t1 "main"
thread t2 "other"
+0ns t1 alloc 0x1000 100000
+1ns t1 realloc-free 0x1000
+1ns t2 alloc 0x400000 50000
+1ns t2 free 0x400000
+1ns t1 realloc-undo 0x1000 200000
+1ns t1 free 0x1000
end
""")
    found = answer("replay", trace, "--allocator", "glibc")
    assert found["peak_live_bytes"] == answer("report", trace)["heap"]["peak_bytes"] == 150000
    assert (found["calls"], found["failed"], found["unknown_frees"]) == (4, 1, 0)
    assert [sample["live_bytes"] for sample in found["runs"][0]["samples"]] == \
        [100000, 100000, 150000, 100000, 100000, 0]


@test
def what_cannot_be_replayed_is_refused():
    path = recorded("one")
    assert "jemalloc, mimalloc" in refused("replay", path, "--allocator", "nothing", code=2)
    assert "jemalloc, mimalloc" in refused("replay", path, "--allocator", "", code=2)
    assert "no such library" in refused("replay", path, "--allocator", "./absent.so", code=3)
    assert "NAME=VALUE" in refused("replay", path, "--settings", "nothing", code=2)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", "empty.so", "-x", "c", "-"], input=b"int x;", check=True)
    assert "has no malloc" in refused("replay", path, "--allocator", "./empty.so", code=3)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", "crash.so", "-x", "c", "-"], check=True,
                   input=b"void *malloc(unsigned long n) { return *(void **)(n & 0xff); }")
    assert "signal 11" in refused("replay", path, "--allocator", "./crash.so", code=3)
    subprocess.run([TIDEMARK, "record", "--sample", "4096", "-o", "sampled.tide", "--", "./one"], check=True,
                   stderr=subprocess.DEVNULL)
    assert "sampled" in refused("replay", "sampled.tide", code=3)


main()
