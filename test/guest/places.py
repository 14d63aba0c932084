#!/usr/bin/env python3
# parallel: yes
"""A program may go anywhere, drop its rights and clear its environment: it is still recorded."""
import os
import shutil

from libguest import (LIBRARY, LIBRARY_32, TIDEMARK, Trace, check, check_whole, environment,
                      equal, main, need_root, program, record, run, test)


def recorded(how, *more, again=50):
    record([program("places"), how, *more])
    trace = Trace()
    check_whole(trace)
    equal(100, len(trace.of_size(7701)), "blocks before")
    equal(100, len(trace.of_size(7702)), "blocks after")
    equal(again, len(trace.of_size(7703)), "blocks of the image that was started afterwards")
    return trace


@test
def another_working_directory():
    recorded("chdir")


@test
def a_cleared_environment():
    recorded("clearenv")


@test
def not_dumpable():
    recorded("dumpable")


@test
def not_dumpable_as_an_unprivileged_user():
    as_nobody(["places", "dumpable"], {7701: 100, 7702: 100, 7703: 50})


def as_nobody(words, blocks):
    """Record as somebody who has no rights, with copies of everything in a folder of theirs."""
    need_root()
    os.chmod(".", 0o777)
    os.mkdir("own")
    for path in (TIDEMARK, LIBRARY, program(words[0])):
        shutil.copy(path, "own")
    os.chmod("own", 0o777)
    if os.path.abspath("own").startswith("/root"):
        from libguest import Skip
        raise Skip("nobody may look into this folder")
    own = os.path.abspath("own")
    parent = os.path.dirname(own)
    while parent != "/":  # the folder of this run is closed to others
        os.chmod(parent, os.stat(parent).st_mode | 0o011)
        parent = os.path.dirname(parent)
    ended = run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                 os.path.join(own, "tidemark"), "record", "-o", "t.tide",
                 os.path.join(own, words[0]), *words[1:]], cwd=own)
    equal(0, ended.code, f"exit code ({ended.err})")
    trace = Trace(os.path.join(own, "t.tide"))
    check_whole(trace)
    for size, count in blocks.items():
        equal(count, len(trace.of_size(size)), f"blocks of {size} bytes")


@test
def another_root():
    need_root()
    os.mkdir("root")
    recorded("chroot", os.path.abspath("root"), again=0)


@test
def a_child_that_cannot_load_the_recorder_runs_undisturbed_and_we_say_so():
    need_root()
    for path in ("/lib64/ld-linux-x86-64.so.2", "/lib/x86_64-linux-gnu/libc.so.6"):
        os.makedirs("root" + os.path.dirname(path), exist_ok=True)
        shutil.copy(os.path.realpath(path), "root" + path)
    shutil.copy(program("places"), "root")
    ended = record([program("places"), "chroot", os.path.abspath("root")])
    equal([], [line for line in ended.err.splitlines() if not line.startswith("tidemark: ")],
          "what the child's loader said")
    lines = ended.lines()[:-2]
    equal(1, sum("/places" in line for line in lines), f"lines about the child in {ended.err}")
    trace = Trace()
    check_whole(trace)
    equal(100, len(trace.of_size(7702)), "blocks of the parent")
    equal(0, len(trace.of_size(7703)), "blocks of the child")


@test
def a_sandbox_that_sees_neither_our_network_nor_our_tmp_is_said_with_what_to_do():
    need_root()
    # What is to be run is not in /tmp, which is empty there.
    script = "/bin/mount -t tmpfs none /tmp && exec /bin/sleep 0.5"
    for shown in (["-mn"], ["-m"], ["-n"]):
        where = "exec /bin/sleep 0.5" if shown == ["-n"] else script
        ended = record(["unshare", *shown, "sh", "-c", where], "--force")
        equal(shown == ["-mn"], "/sleep is not recorded" in ended.err, f"{shown}: {ended.err}")
        equal(shown == ["-mn"], "from there (try: let it see our /tmp, or our network)" in ended.err,
              f"{shown}: {ended.err}")


@test
def dropped_rights():
    need_root()
    trace = recorded_where_anybody_may_look()
    check_whole(trace)


def recorded_where_anybody_may_look():
    """The image that is started after the rights were dropped must be able to load the recorder."""
    parent = os.path.abspath(".")
    while parent != "/":
        os.chmod(parent, os.stat(parent).st_mode | 0o011)
        parent = os.path.dirname(parent)
    os.mkdir("own")
    for path in (TIDEMARK, LIBRARY, program("places")):
        shutil.copy(path, "own")
    own = os.path.abspath("own")
    ended = run([os.path.join(own, "tidemark"), "record", "-o", "t.tide",
                 os.path.join(own, "places"), "setuid"])
    equal(0, ended.code, f"exit code ({ended.err})")
    trace = Trace()
    for size, count in {7701: 100, 7702: 100, 7703: 50}.items():
        equal(count, len(trace.of_size(size)), f"blocks of {size} bytes")
    return trace


@test
def a_preload_of_the_users_own():
    witness = os.path.join(os.path.dirname(LIBRARY), "test", "witness", "libwitness.so")
    os.mkdir("counts")
    ended = run([TIDEMARK, "record", "-q", "-o", "t.tide", "sh", "-c", "echo $LD_PRELOAD"],
                env=environment(LD_PRELOAD=witness, WITNESS=os.path.abspath("counts")))
    ours = os.path.realpath(LIBRARY)
    if os.path.exists(LIBRARY_32):  # for programs of either class
        ours = os.path.join(os.path.dirname(ours), "preload", "$LIB", "libtidemark.so")
    equal(f"{ours}:{witness}\n", ended.out, "LD_PRELOAD of the program")
    check(len(os.listdir("counts")) >= 1, "the user's own library was loaded")


main()
