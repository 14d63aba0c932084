#!/usr/bin/env python3
"""What jemalloc, tcmalloc, mimalloc and glibc call by names of their own is recorded as the same
call by its usual name would be; where nobody has such a function, it works all the same."""
# parallel: yes
import glob
import json
import os
import re

from libguest import SOURCE, TIDEMARK, Skip, Trace, check, environment, equal, main, program, record, run, test

MADE = {7902: 1, 7903: 1, 7910: 1, 7911: 1, 7914: 1, 7918: 1, 7919: 1}


def check_named(library, opened=False):
    found = glob.glob(f"/usr/lib/x86_64-linux-gnu/{library}") if library else [""]
    if not found:
        raise Skip(f"needs {library}")
    count = int(record([program("named"), *(found if opened else [])],
                       env=environment(LD_PRELOAD="" if opened else found[0])).out)
    trace = Trace()
    equal(0, trace.events_lost(), "events lost")
    trace.check_ownership()
    sizes = {**{7800 + n: 1 for n in range(1, count + 1)}, **MADE}
    seen = {size: (len(trace.of_size(size)), trace.frees_of_size(size)) for size in sizes}
    equal({size: (1, 1) for size in sizes}, seen, "blocks by size, and their ends")
    return trace


@test
def without_any_of_them_they_are_mallocs():
    check_named(None)


TITLED = r"""
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static void call_it(char **arguments, char *last, const char *title)
{
	memset(arguments[0], 0, (size_t)(last + strlen(last) - arguments[0]));
	strcpy(arguments[0], title);
}
int main(int count, char **arguments)
{
	char *volatile block = malloc(7801);
	if (fork() == 0) {
		call_it(arguments, arguments[count - 1], "titled: worker process");
		free(block);
		sleep(1);
		if (fork() == 0) {
			call_it(arguments, arguments[0], "ends soon");
			_exit(0);
		}
		wait(NULL);
		execl("/bin/true", "another program", NULL);
	}
	wait(NULL);
	return 0;
}
"""


@test
def what_a_worker_calls_itself_after_the_fork_is_its_title():
    with open("titled.c", "w", encoding="ascii") as file:
        file.write(TITLED)
    equal(0, run(["gcc", "-o", "titled", "titled.c"]).code, "gcc")
    record(["./titled", "with", "some", "arguments", "to", "write", "over"])
    trace = json.loads(run([TIDEMARK, "report", "--json", "t.tide"]).out)["trace"]
    titles = [process["process_title"] for process in trace["processes"]]
    equal([None, "titled: worker process"], titles[:2], "titles")
    check("another program" not in titles, f"a program is not its successor: {titles}")


@test
def those_of_jemalloc_are_recorded():
    check_named("libjemalloc.so.2")


@test
def those_of_tcmalloc_are_recorded():
    check_named("libtcmalloc_minimal.so.4")


@test
def those_of_mimalloc_are_recorded():
    check_named("libmimalloc.so.2*")


@test
def those_of_onetbb_are_recorded():
    check_named("libtbbmalloc.so.2")


@test
def those_of_onetbb_are_recorded_where_it_is_opened():
    trace = check_named("libtbbmalloc.so.2", opened=True)
    check(any("tbbmalloc /" in rest for kind, _, rest in trace.notes if kind == "allocator"),
          f"no allocator tbbmalloc: {trace.notes}")


# Functions of these libraries that give the program no block and take none, or (the last line)
# that hook_named_linux.c leaves out.
OTHERS = re.compile(r"""_|MallocExtension_|MallocHook_|RunningOnValgrind|TCMallocGetenvSafe
    |(mi_|tc_)?malloc_(usable_size|size|good_size|stats\w*)$|(tc_)?mall(info|opt)$|mallctl|(tc_)?nallocx$|sallocx$
    |scalable_(msize|allocation_)|MallocInitializeITT$
    |tc_(version|query_new_mode|set_new_mode)$
    |mi_(heap_)?(collect|check_owned|new|new_in_arena|delete|get_\w+|set_default|contains_block|visit_blocks)$
    |mi_(arena|debug|is_|manage|option|process|register|reserve|stats|thread|good_size|usable_size|version)
    |(mi_)?(reallocarr|w?dupenv_s|wcsdup|(heap_)?realpath)$|vfree$|reallocf$""", re.VERBOSE)


@test
def each_function_of_the_libraries_is_recorded_or_is_known_to_allocate_nothing():
    ours = re.findall(r"\w+(?=;)", open(os.path.join(SOURCE, "src/recorder/exports.map")).read())
    for library in ("libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2*", "libtbbmalloc.so.2"):
        for found in glob.glob(f"/usr/lib/x86_64-linux-gnu/{library}"):
            names = set(re.findall(r" [TW] (\w+)", run(["nm", "-D", found]).out))
            check(len(names) > 8, f"{library}: {names}")
            equal(set(), {name for name in names - set(ours) if not OTHERS.match(name)}, library)


@test
def no_free_is_without_its_allocation_in_a_real_program():
    for library in ("libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2*"):
        found = glob.glob(f"/usr/lib/x86_64-linux-gnu/{library}")
        if not found:
            raise Skip(f"needs {library}")
        record(["g++", "-std=c++17", "-O1", "-S", "-o", "/dev/null", "-x", "c++", "/dev/stdin"],
               text=b"#include <map>\n#include <string>\nstd::map<std::string, int> m;\n",
               trace=f"{library[:6]}.tide", env=environment(LD_PRELOAD=found[0]))
        trace = Trace(f"{library[:6]}.tide")
        check(len(trace.events) > 10000, f"{library}: {len(trace.events)}")
        trace.check_ownership()


main()
