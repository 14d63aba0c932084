#!/usr/bin/env -S python3 -B
# timeout: 240
# parallel: yes
"""Generated code has the names that its runtime writes for perf, and hostile lists do no harm."""
import json
import os
import shutil
import subprocess
import tempfile

from libguest import TIDEMARK, check, equal, main, test

NODE = shutil.which("node", path="/usr/bin:/bin")
JAVA = shutil.which("java", path="/usr/bin:/bin")
JAVAC = shutil.which("javac", path="/usr/bin:/bin")
ALL = "JIT_ALL" in os.environ  # real/jit_soak

WORK = r"""
const fs = require('fs');
function innermost(i) { return Buffer.alloc(9000 + i % 100, 1); }
function middle(i) { const row = []; for (let k = 0; k < 10; k++) row.push(innermost(i + k)); return row; }
const kept = [];
for (let i = 0; i < 500; i++) kept.push(middle(i));
const map = `/tmp/perf-${process.pid}.map`;
"""

DEFLATE = r"""
import java.util.zip.Deflater;
public class Work {
	static int squeeze(byte[] in) {
		Deflater deflater = new Deflater();
		deflater.setInput(in);
		deflater.finish();
		int size = deflater.deflate(new byte[in.length + 100]);
		deflater.end();
		return size;
	}
	public static void main(String[] words) {
		int sum = 0;
		for (int i = 0; i < 30000; i++) sum += squeeze(new byte[2000 + i % 50]);
		System.out.println(sum);
	}
}
"""


def test_of_many(function):
    """One that says little more than the others, and takes as long."""
    return test(function) if ALL else function


def need(program, name):
    if not program:
        print(f"# no {name} here: not looked at")
    return bool(program)


def recorded(*command, options=(), env=None):
    """The report of a recording, and what the launcher said."""
    ended = subprocess.run([TIDEMARK, "record", "-q", "-f", "-o", "t.tide", *options, "--",
                            *command], env={**os.environ, **(env or {})}, text=True,
                           stdin=subprocess.DEVNULL, capture_output=True, check=False)
    equal(0, ended.returncode, f"{command}: {ended.stderr}")
    answer = json.loads(subprocess.run([TIDEMARK, "report", "--json", "-n", "0", "t.tide"],
                                       capture_output=True, check=True).stdout)
    for process in answer["trace"]["processes"]:
        forget(f"/tmp/perf-{process['pid']}.map")
    return answer, ended.stderr


def forget(path):
    """What the runtime or the test left there."""
    for name in (path, path + ".x"):
        if os.path.isdir(name) and not os.path.islink(name):
            os.rmdir(name)
        elif os.path.lexists(name):
            os.unlink(name)


def stacks_of(report):
    """All stacks, as lists of (function, file, line)."""
    found = []

    def look(value):
        if isinstance(value, dict):
            frames = value.get("stack")
            if isinstance(frames, list):
                found.append([(frame["function"], frame["file"], frame["line"])
                              for frame in frames])
            for part in value.values():
                look(part)
        elif isinstance(value, list):
            for part in value:
                look(part)

    look(report)
    return found


def calls(report, *functions):
    """Does any stack have these functions one after the other, innermost first?"""
    for stack in stacks_of(report):
        names = [frame[0] for frame in stack]
        for at in range(len(names)):
            if names[at:at + len(functions)] == list(functions):
                return stack[at:at + len(functions)]
    return None


def node(more, *options, env=None):
    with open("work.js", "w", encoding="ascii") as file:
        file.write(WORK + more)
    return recorded(NODE, "work.js", options=options, env=env)


def messages():
    """What `info` says of the recording."""
    text = subprocess.run([TIDEMARK, "info", "t.tide"], capture_output=True, text=True,
                          errors="replace", check=True)
    return text.stdout + text.stderr


@test
def functions_of_node_have_their_names_and_places():
    if not need(NODE, "node"):
        return
    report, said = node("", "--jit")
    inner, outer = calls(report, "innermost", "middle") or (None, None)
    check(inner, "no stack has innermost, called by middle")
    equal(os.path.realpath("work.js"), inner[1], "its file")
    equal((3, 4), (inner[2], outer[2]), "where both begin")
    check("--jit: " in said and "NODE_OPTIONS" in said, said)
    check("jit" in messages(), "info does not say what was asked for")


def who(rows):
    """The line that stands for each row."""
    return [row["stack"][row["user_frame"]] for row in rows if row["stack"]]


ADDON = r"""
#include <stdlib.h>
typedef void *value;
extern int napi_create_function(value, const char *, size_t, value (*)(value, value), value, value *);
extern int napi_create_buffer(value, size_t, void **, value *);
void *held[100];
value addon_buffer(value env, value info) {
	void *data;
	value made = NULL;
	napi_create_buffer(env, 33333, &data, &made);
	for (int i = 0; i < 100 && !held[i]; i++) held[i] = malloc(22222);
	return made;
}
value napi_register_module_v1(value env, value exports) {
	napi_create_function(env, "buffer", 6, addon_buffer, NULL, &exports);
	return exports;
}
"""


@test
def a_script_stands_for_what_its_runtime_allocates_and_an_addon_for_itself():
    if not need(NODE, "node"):
        return
    with open("addon.c", "w", encoding="ascii") as file:
        file.write(ADDON)
    subprocess.run(["cc", "-w", "-O1", "-shared", "-fPIC", "-o", "addon.node", "addon.c"], check=True)
    report, _ = node("const take = require('./addon.node'); function ask() { return take(); }\n"
                     "const held = []; for (let i = 0; i < 50; i++) held.push(ask());\n"
                     "function digest(i) { return require('crypto').createHash('md5').update('x' + i)"
                     ".digest('hex'); }\n"
                     "for (let i = 0; i < 60000; i++) digest(i);\n"
                     "process.exit(0);", "--jit")
    first = who(report["sites"]["live_at_exit"])
    path = os.path.realpath("work.js")
    equal(path, first[0]["file"], "who holds most")  # V8 puts innermost into middle, sooner or later
    check(("innermost", path, 3) in [(line["function"], line["file"], line["line"]) for line in first],
          f"the function and its line: {first[:9]}")
    check(any(line["function"] == "addon_buffer" for line in first), f"an addon's call: {first[:9]}")
    asked = [row for row in report["sites"]["bytes"] if row["stack"] and
             row["stack"][row["user_frame"]]["function"] == "addon_buffer"]
    check(any(row["user_frame"] > 1 for row in asked), "what an addon has its runtime allocate")
    text = subprocess.run([TIDEMARK, "report", "-n", "1", "t.tide"], capture_output=True, text=True,
                          check=True).stdout
    check("work.js:" in text.split("LIVE AT EXIT")[1].splitlines()[1], text)
    by_function = json.loads(subprocess.run(
        [TIDEMARK, "window", "--by", "function", "--json", "t.tide"], capture_output=True,
        check=True).stdout)["rows"]
    check({"innermost", "addon_buffer"} <= {row["keys"]["function"] for row in by_function},
          f"a window by function: {by_function}")
    found = json.loads(subprocess.run([TIDEMARK, "findings", "--json", "t.tide"],
                                      capture_output=True, check=True).stdout)["findings"]
    told = [(one["what"], one["stack"][one["user_frame"]]["file"]) for one in found
            if one["kind"] == "temporaries"]
    check([what for what, file in told if file == path], f"temporaries of a script: {told}")


@test_of_many
def nothing_is_asked_of_a_runtime_without_jit():
    if not need(NODE, "node"):
        return
    report, said = node("process.stderr.write(String(process.env.NODE_OPTIONS));")
    check(not calls(report, "innermost"), "it has a name")
    equal("undefined", said.strip(), "what was said")


@test_of_many
def options_of_the_user_stay():
    if not need(NODE, "node"):
        return
    report, _ = node("if (!process.execArgv || !process.env.NODE_OPTIONS.startsWith('--no-warnings '))"
                     " process.exit(3);", "--jit", env={"NODE_OPTIONS": "--no-warnings"})
    check(calls(report, "innermost", "middle"), "no names")


@test
def a_jitdump_is_read_as_well():
    if not need(NODE, "node"):
        return
    with open("work.js", "w", encoding="ascii") as file:
        file.write(WORK)
    report, _ = recorded(NODE, "--perf-prof", "--interpreted-frames-native-stack", "work.js")
    check(calls(report, "innermost", "middle"), "no names")


@test
def methods_of_java_have_their_names():
    if not need(JAVA and JAVAC, "java"):
        return
    with open("Work.java", "w", encoding="ascii") as file:
        file.write(DEFLATE)
    subprocess.run([JAVAC, "Work.java"], check=True)
    report, said = recorded(JAVA, "-cp", ".", "Work", options=["--jit"])
    check(any("Work.squeeze" in (frame[0] or "") for stack in stacks_of(report)
              for frame in stack), "no Work.squeeze", said)


def hostile(what, change, expected):
    report, _ = node(change, "--jit")
    check(expected in messages(), what, messages())
    return report


@test
def a_map_that_is_no_plain_file_of_the_user_is_not_read():
    if not need(NODE, "node"):
        return
    rest = "which names generated code, is not read: "
    hostile("a link", "fs.renameSync(map, map + '.x'); fs.symlinkSync(map + '.x', map);",
            rest + "it is a symbolic link")
    if not ALL:
        return
    hostile("a pipe", "fs.unlinkSync(map);"
            "require('child_process').execFileSync('mkfifo', [map]);",
            rest + "it is not a regular file")
    hostile("a folder", "fs.unlinkSync(map); fs.mkdirSync(map);", rest + "it is not a regular file")
    if os.getuid() == 0:
        hostile("another user's", "fs.chownSync(map, 12345, 12345);",
                rest + "it is another user's")


@test_of_many
def a_map_of_any_bytes_is_bounded():
    if not need(NODE, "node"):
        return
    hostile("too large", "fs.truncateSync(map, 80 << 20);", "it has more than 64 MiB")
    hostile("overlapping", "fs.unlinkSync(map); fs.writeFileSync(map, '1000 40000000 all\\n'"
            ".repeat(1e6));", "")
    report = hostile("no text", r"""
fs.writeFileSync(map + '.x', Buffer.from(fs.readFileSync(map, 'latin1').split('\n')
	.filter(line => line.includes('innermost'))
	.map(line => line.split(' ').slice(0, 2).join(' ') + ' \xff\xfe\x1b[31m\n').join(''), 'latin1'));
fs.renameSync(map + '.x', map);
""", "")
    check(not calls(report, "innermost"), "the last line did not count")


@test
def a_mark_from_outside_reads_what_is_there_by_then():
    """The map is gone at the end; without a mark there would be no names."""
    if not need(NODE, "node"):
        return
    mark = f"require('child_process').execFileSync({TIDEMARK!r}, ['ctl', String(process.pid), 'mark', 'now']);"
    for more, named in ((mark, True), ("", False)):
        report, _ = node(f"{more} fs.unlinkSync(map);", "--jit")
        equal(named, calls(report, "innermost", "middle") is not None, "are there names?")


@test_of_many
def a_map_that_an_earlier_process_left_names_nothing():
    if not need(NODE, "node"):
        return
    report, _ = node("fs.utimesSync(map, 1000000000, 1000000000);", "--jit")
    check(not calls(report, "innermost"), "an old list was believed")


@test_of_many
def a_process_with_a_tmp_of_its_own_is_read_there():
    inside = "mount -t tmpfs none /tmp && exec \"$@\""
    if not need(NODE, "node"):
        return
    if subprocess.run(["unshare", "-m", "sh", "-c", inside, "sh", "true"], check=False,
                      capture_output=True).returncode != 0:
        print("# no mounts of one's own here: not looked at")
        return
    with open("work.js", "w", encoding="ascii") as file:
        file.write(WORK)
    with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
        shutil.copy("work.js", place)
        report, _ = recorded("unshare", "-m", "sh", "-c", inside, "sh", NODE,
                             os.path.join(place, "work.js"), options=["--jit"])
    check(calls(report, "innermost", "middle"), "no names")


main()
