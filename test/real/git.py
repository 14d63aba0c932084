#!/usr/bin/env -S python3 -B
# timeout: 300
# parallel: yes
"""git log -p on a repository made here."""
import libreal

git = libreal.find_program("git")
env = libreal.environment(GIT_CONFIG_NOSYSTEM="1", GIT_CONFIG_GLOBAL="/dev/null",
                          GIT_PAGER="cat")


def history(commits):
    """A history for git fast-import, the same on every machine: a few files that change."""
    lines = {}
    yield "reset refs/heads/main\n"
    for number in range(1, commits + 1):
        name = f"file{number * number % 23}.c"
        text = lines.setdefault(name, [])
        for line in range(12):
            at = (number * 31 + line * 7) % (len(text) + 1)
            text.insert(at, f"int value_{number}_{line} = {number * 7919 % 1009 + line};\n")
        if number % 5 == 0:
            del text[:6]
        data = "".join(text)
        message = f"change {name} for the {number}th time\n"
        yield (f"commit refs/heads/main\nmark :{number}\n"
               f"committer A U Thor <author@example.com> {1600000000 + number * 3600} +0000\n"
               f"data {len(message)}\n{message}")
        if number > 1:
            yield f"from :{number - 1}\n"
        yield f"M 100644 inline {name}\ndata {len(data)}\n{data}\n"


def make_repository(name, commits):
    libreal.must_run(f"{name}.init", [git, "init", "-q", "-b", "main", name], env)
    for key, value in (("gc.auto", "0"), ("maintenance.auto", "false"), ("core.pager", "cat")):
        libreal.must_run(f"{name}.config", [git, "-C", name, "config", key, value], env)
    with open(f"{name}.import", "w", encoding="ascii") as file:
        file.writelines(history(commits))
    libreal.must_run(f"{name}.fill", [git, "-C", name, "fast-import", "--quiet"], env,
                     f"{name}.import")


proof = libreal.Proof()
make_repository("big.git", 1500)
big = [git, "-C", "big.git", "--no-pager", "log", "-p", "--stat", "main"]
untraced = libreal.must_run("big.untraced", big, env)
recording = libreal.record("big", big, env)
libreal.check_same_run(proof, "big", untraced, recording)
libreal.check_sane(proof, "big", recording)
proof.check(recording.heap["allocations"] > 100_000, "big: more than 100,000 allocations",
            recording.heap)

make_repository("short.git", 60)
short = libreal.Witnesses(proof, "short", [git, "-C", "short.git", "--no-pager", "log", "-p",
                                           "main"], env)
short.run()
short.check()
proof.finish()
