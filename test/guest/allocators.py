#!/usr/bin/env python3
"""`info` says of each process which allocators it uses, where they are, and how they are seen."""
# parallel: yes
import glob
import json
import os

import libschema
from libguest import (SOURCE, TIDEMARK, Skip, check, environment, equal, main, program, record, run,
                      test)


def allocators_of(path, trace="t.tide"):
    """(name, file, how it is seen) of each, of all processes of that program."""
    info = json.loads(run([TIDEMARK, "info", "--json", trace]).out)
    with open(os.path.join(SOURCE, "docs", "schema", "info.json"), encoding="utf-8") as file:
        schema = json.load(file)
    equal([], list(libschema.wrong(info, schema, schema)), "against the schema")
    return [sorted((each["name"], os.path.basename(each["file"]), each["seen"])
                   for each in process["allocators"])
            for process in info["processes"] if process["exe"] == path]


def check_text(line, trace="t.tide"):
    out = run([TIDEMARK, "info", trace]).out
    check(line in out, f"not in what info says: {line!r}\n{out}")


@test
def the_c_library_s_is_seen_by_name():
    path = os.path.realpath("/usr/bin/true")
    record([path])
    equal([[("glibc", "libc.so.6", "name")]], allocators_of(path), "allocators")
    check_text(", by name\n")


@test
def a_preloaded_library_s_is_seen_by_name():
    for library, name in (("libjemalloc.so.2", "jemalloc"), ("libtcmalloc_minimal.so.4", "tcmalloc"),
                          ("libmimalloc.so.2.0", "mimalloc")):
        found = glob.glob(f"/usr/lib/x86_64-linux-gnu/{library}")
        if not found:
            raise Skip(f"needs {library}")
        record([program("named")], env=environment(LD_PRELOAD=found[0]), trace=f"{name}.tide")
        equal([[(name, library, "name")]], allocators_of(program("named"), f"{name}.tide"), name)


@test
def one_that_the_executable_exports_is_entered_in_a_forked_child_too():
    for name in ("jemalloc", "tcmalloc"):
        path = program(f"linked_in_{name}")
        if not os.path.exists(path):
            raise Skip(f"needs a static {name}")
        record([path, program("liblinked_in_plugin.so")], trace=f"{name}.tide")
        equal([[(name, os.path.basename(path), "exported")]] * 2,
              allocators_of(path, f"{name}.tide"), "allocators")
        check_text(f"allocator {name} in the executable, by patched entries of what it exports",
                   f"{name}.tide")


main()
