#!/usr/bin/env -S python3 -B
# timeout: 240
# parallel: yes
"""Python: stacks have its functions, files and lines, the very ones that Python itself sees."""
import json
import os
import re
import shutil
import subprocess

from libguest import TIDEMARK, Skip, check, environment, equal, main, record, test

# Each block has a size that no other one has, and Python says where it was allocated.
SCRIPT = r"""
import asyncio, functools, json, sys, threading, zlib

seen = {}
count = 0
lock = threading.Lock()

def size():
    global count
    with lock:
        count += 1
        return 100_000 + 16 * count

def take(size, block):
    frames, frame = [], sys._getframe(1)
    while frame:
        code = frame.f_code
        frames.append((getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno))
        frame = frame.f_back
    seen[size] = frames
    return len(block)

def plain(): return take(n := size(), bytearray(n))

def lines():
    for turn in range(20):
        n = size()
        take(n, bytearray(n))
        if turn % 3 == 0:
            n = size(); take(n, bytearray(n))
        else:
            take(n := size(), bytearray(
                n))
            plain()

def deep(levels):
    if levels:
        if levels % 50 == 0:
            plain()
        return deep(levels - 1)
    return plain()

class Thing:
    where = take(n := size(), bytearray(n))
    def __init__(self): plain()
    def __lt__(self, other): return plain() > 0
    def __enter__(self): plain(); return self
    def __exit__(self, *rest): plain()
    @property
    def value(self): return take(n := size(), bytearray(n))
    @staticmethod
    def static(): return [plain() for i in range(3)]

def called_by_c():
    sorted([Thing() for i in range(5)])
    sorted(range(5), key=lambda x: plain())
    functools.reduce(lambda a, b: plain(), range(5))
    list(map(lambda x: take(n := size(), bytearray(n)), range(5)))
    json.dumps([1, object()], default=lambda x: plain())

def numbers():
    for i in range(5):
        n = size()
        yield take(n, bytearray(n))
        yield from (plain() for k in range(2))

def fails():
    try:
        try:
            undefined
        except NameError as error:
            plain()
            raise ValueError from error
        finally:
            plain()
    except ValueError:
        take(n := size(), bytearray(n))

async def waits(turns):
    for turn in range(turns):
        plain()
        await asyncio.sleep(0)

async def together():
    await asyncio.gather(*(waits(3) for i in range(5)))

def made_anew():
    # One code object after the other at the same address, with other names and lines.
    for turn in range(50):
        text = "\n" * (turn % 7) + f"def made_{turn}():\n  return plain()\nmade_{turn}()\nplain()\n"
        exec(compile(text, f"made{turn % 5}.py", "exec"), {"plain": plain})

def without_the_lock():
    # zlib releases the GIL, and allocates then.
    for i in range(20):
        zlib.compress(bytes(1000) * 100)
        plain()

def all_of_it():
    lines(); deep(400); called_by_c(); list(numbers()); fails()
    with Thing() as thing: thing.value
    Thing.static()
    asyncio.run(together())
    made_anew(); without_the_lock()

all_of_it()
threads = [threading.Thread(target=all_of_it, name=f"worker{i}") for i in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
plain()
json.dump(seen, open("seen.json", "w"))
"""


def debian_python():
    python = os.environ.get("PYTHON_OF_TEST", "/usr/bin/python3.11")
    if not shutil.which(python):
        raise Skip("no Python 3.11 of Debian's here")
    return python


def stacks_by_size(trace="t.tide"):
    """Of each allocation its size, and its stack as (function, file, line), Python's frames alone."""
    dumped = subprocess.run([TIDEMARK, "dump", trace], capture_output=True, text=True,
                            check=True).stdout
    names, sources, stacks, found = {}, set(), {}, {}
    for line in dumped.splitlines():
        words = line.split()
        if not words:
            continue
        if words[0] == "frame" and words[-1] == "flags=2":
            sources.add(words[1])
        elif words[0] == "name":
            match = re.match(r'name (f\d+) "(.*?)" "(.*)":(\d+)$', line)
            if match:
                names[match[1]] = (match[2], match[3], int(match[4]))
        elif words[0] == "stack":
            stacks[words[1]] = [word for word in words[2:] if word != "<" and "=" not in word]
        elif len(words) == 6 and words[2] in ("malloc", "calloc") and words[3].startswith("s"):
            found.setdefault(int(words[5]), []).append(words[3])

    def frames(stack):
        result = []
        while stack:
            parts = stacks[stack]
            stack = None
            for part in parts:
                if part.startswith("s"):
                    stack = part
                elif part in sources:
                    result.append(names[part])
        return result

    return {size: [frames(stack) for stack in each] for size, each in found.items()}


def compare(*options):
    with open("work.py", "w", encoding="ascii") as file:
        file.write(SCRIPT)
    record([debian_python(), "work.py"], *options, env=environment(PYTHONHASHSEED="0"))
    with open("seen.json", encoding="ascii") as file:
        seen = json.load(file)
    found = stacks_by_size()
    wrong = []
    for size, frames in seen.items():
        stacks = found.get(int(size) + 1, [])  # a bytearray ends with a NUL
        expected = [tuple(frame) for frame in frames]
        if expected not in stacks:
            wrong.append((size, expected[:6], [stack[:6] for stack in stacks]))
    check(len(seen) > 900, "only", len(seen), "blocks")
    check(not wrong, len(wrong), "of", len(seen), "differ, such as", wrong[:2])


def stacks_without_events(trace="t.tide"):
    """How many stacks are there, and how many of them are neither of an event nor below one's."""
    dumped = subprocess.run([TIDEMARK, "dump", trace], capture_output=True, text=True,
                            check=True).stdout
    callers, used = {}, set()
    for line in dumped.splitlines():
        if line.startswith("stack "):
            stack, *words = line.split()[1:]
            callers[stack] = [word for word in words if re.match(r"s\d+$", word)]
        elif line.startswith("@"):
            used.update(re.findall(r"\bs\d+\b", line))
    waiting = list(used)
    while waiting:
        for caller in callers.get(waiting.pop(), []):
            if caller not in used:
                used.add(caller)
                waiting.append(caller)
    return len(callers), len(callers.keys() - used)


@test
def native_stacks_that_no_event_has_are_not_in_the_trace():
    with open("work.py", "w", encoding="ascii") as file:
        file.write(SCRIPT)
    record([debian_python(), "work.py"], env=environment(PYTHONHASHSEED="0"))
    stacks, without = stacks_without_events()
    check(stacks > 1000, "only", stacks, "stacks")
    # Those from before the first function of Python's.
    check(without < 50, without, "of", stacks, "stacks have no event")


@test
def each_stack_is_what_python_sees():
    compare()
    said = subprocess.run([TIDEMARK, "info", "t.tide"], capture_output=True, text=True,
                          check=True).stdout
    check("not sure where" not in said and "not in the stacks" not in said, said)
    version = subprocess.run([debian_python(), "-V"], capture_output=True, text=True,
                             check=True).stdout.strip().lower()
    check(f"{version}, its functions are in the stacks" in said, version, said)


@test
def each_stack_is_what_python_sees_with_the_interpreters_frames():
    compare("--native")
    stacks = subprocess.run([TIDEMARK, "dump", "t.tide"], capture_output=True, text=True,
                            check=True).stdout
    check("flags=2" in stacks, "no frames of Python")


def with_its_own_trampolines():
    """For perf it generates code for each function, which calls the evaluator: no frames of that stay."""
    compare("--jit")
    out = subprocess.run([TIDEMARK, "window", "--json", "--all-frames", "t.tide"], capture_output=True, text=True,
                         check=True).stdout
    stacks = [[(frame["file"] or "", frame["line"]) for frame in row["keys"]["stack"]] for row in json.loads(out)["rows"]]
    ours = [stack for stack in stacks if any(file.endswith("work.py") for file, line in stack if line)]
    check(len(ours) > 100, len(ours), "stacks")
    equal([], [stack for stack in ours if any(file.endswith(".py") and not line for file, line in stack)],
          "stacks with frames of generated code")
    said = subprocess.run([TIDEMARK, "report", "t.tide"], capture_output=True, text=True, check=True).stdout
    check("not sure where" not in said and "not proven whole" not in said, said[:600])


if re.search(r"3\.1[2-9]$", os.environ.get("PYTHON_OF_TEST", "")):
    test(with_its_own_trampolines)


# Code objects one after the other at the same address, for the same frame, with nothing between
# them that malloc sees: of what calls inner() all but the name is the same.
REPLACED = r"""
import json
def inner():
    bytearray(size)
template = compile("inner()", "template.py", "exec")
names = ["outer%d" % (i % 7) for i in range(300)]
seen = []
turn = 0
while turn < len(names):
    size = 100001 + 16 * turn
    code = template.replace(co_name=names[turn], **OTHER)
    seen.append(id(code))
    exec(code)
    del code
    turn += 1
print(json.dumps([names, len(set(seen))]))
"""


@test
def an_outer_function_that_was_replaced_has_its_own_name():
    with open("replaced.py", "w", encoding="ascii") as file:
        file.write(REPLACED.replace("**OTHER", "**({'co_qualname': names[turn]} if "
                                               "hasattr(template, 'co_qualname') else {})"))
    ran = record([debian_python(), "replaced.py"], env=environment())
    names, places = json.loads(ran.out.splitlines()[0])
    check(places < len(names) / 2, places, "code objects of", len(names), "were apart")
    found = stacks_by_size()
    wrong = [(name, found.get(100002 + 16 * turn)) for turn, name in enumerate(names)
             if [frame[0] for frame in (found.get(100002 + 16 * turn) or [[]])[0]] !=
             ["inner", name, "<module>"]]
    check(not wrong, len(wrong), "of", len(names), "differ, such as", wrong[:2])


# Objects of kinds of which the interpreter keeps none for later: those it gives out again are
# nobody's allocation, but tracemalloc's.
COUNTED = r"""
import os, sys
if len(sys.argv) > 1:
    import tracemalloc
    tracemalloc.start(1)
class Node:
    __slots__ = ("number", "name")
    def __init__(self, i):
        self.number = i * 1000003
        self.name = "node%d" % i
def build(n):
    nodes = []
    for i in range(n):
        nodes.append(Node(i))
    return nodes
def texts(n):
    return {("k%d" % i): "text %d" % (i * i) for i in range(n)}
kept = [build(3000), texts(2000)]
kept.append([b"%d" % (i * 17) for i in range(1500)])
if len(sys.argv) > 1:
    for line in tracemalloc.take_snapshot().statistics("lineno"):
        if line.traceback[0].filename == __file__:
            print(line.traceback[0].lineno, line.count, line.size)
sys.stdout.flush()
os._exit(0)
"""


@test
def each_line_has_what_tracemalloc_says():
    with open("counted.py", "w", encoding="ascii") as file:
        file.write(COUNTED)
    env = environment(PYTHONHASHSEED="0", PYTHONMALLOC="malloc")
    said = subprocess.run([debian_python(), "counted.py", "1"], env=env, capture_output=True,
                          text=True, check=True).stdout
    expected = {int(line): (int(count), int(size))
                for line, count, size in map(str.split, said.splitlines()) if int(count) > 100}
    record([debian_python(), "counted.py"], env=env)
    window = json.loads(subprocess.run(
        [TIDEMARK, "window", "--by", "stack", "-n", "0", "--json", "t.tide"],
        capture_output=True, check=True).stdout)
    found = {}
    for row in window["rows"]:
        lines = [frame["line"] for frame in row["keys"]["stack"]
                 if (frame["file"] or "").endswith("counted.py")]
        if lines:
            count, size = found.get(lines[0], (0, 0))
            found[lines[0]] = (count + row["by_exit"]["count"],
                               size + row["by_exit"]["bytes"])
    check(len(expected) >= 5, expected)
    equal(expected, {line: found.get(line) for line in expected}, "blocks and bytes of each line")


# Threads of a C library: each has a state of the interpreter while it calls a function of Python, and
# none when it has come back. The next thread's is where the last one's was.
CALLER = r"""
#include <pthread.h>
#include <stdlib.h>
static void (*call)(void);
static void *run(void *unused)
{
	for (int i = 0; i < 2000; i++) {
		call();
		for (int k = 0; k < 20; k++)
			free(malloc(77771));
	}
	return unused;
}
void run_all(void (*function)(void))
{
	pthread_t threads[4];
	call = function;
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, run, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}
"""

CALLED = r"""
import ctypes
def called():
    bytearray(88888)
    sum(range(3000))
ctypes.CDLL("./caller.so").run_all(ctypes.CFUNCTYPE(None)(called))
"""


@test
def a_thread_without_a_state_has_no_functions_of_another_one():
    with open("caller.c", "w", encoding="ascii") as file:
        file.write(CALLER)
    with open("called.py", "w", encoding="ascii") as file:
        file.write(CALLED)
    subprocess.run(["gcc", "-O0", "-shared", "-fPIC", "-o", "caller.so", "caller.c"], check=True)
    record([debian_python(), "called.py"], "-f", env=environment(MALLOC_ARENA_MAX="1"))
    found = stacks_by_size()
    check(all(["called"] == [frame[0] for frame in stack] for stack in found[88889]),
          "a call of Python:", found[88889][:3])
    wrong = [stack for stack in found[77771] if stack]
    check(not wrong, len(wrong), "of", len(found[77771]), "have functions, such as", wrong[:2])


# What makes a generator is the interpreter's innermost frame still when it is given back, and with it, at
# some depth, the pages that it began.
GENERATORS = r"""
def numbers(first): yield first
def deep(levels): return deep(levels - 1) if levels else numbers(levels)
for levels in range(700): deep(levels)
bytearray(100001)
"""


@test
def a_generator_whose_frame_is_unmapped_while_it_is_innermost_does_no_harm():
    with open("generators.py", "w", encoding="ascii") as file:
        file.write(GENERATORS)
    record([debian_python(), "generators.py"], env=environment())
    equal([["<module>"]], [[frame[0] for frame in stack] for stack in stacks_by_size()[100002]], "the stack after it")


# 3,000 frames are all there; of 6,000 the outer ones are missing.
DEEP = r"""
import sys
sys.setrecursionlimit(20000)
def deep(levels, size):
    if levels:
        return deep(levels - 1, size)
    bytearray(size)
    bytearray(size)
def shallow(size): bytearray(size)
deep(3000, 100001); deep(6000, 100003); shallow(100005); deep(3000, 100007)
"""


@test
def a_stack_that_is_too_deep_is_marked_and_has_its_innermost_frames():
    with open("deep.py", "w", encoding="ascii") as file:
        file.write(DEEP)
    record([debian_python(), "deep.py"], env=environment())
    found = stacks_by_size()
    names = {size: [[frame[0] for frame in stack] for stack in found[size + 1]]
             for size in (100001, 100003, 100005, 100007)}
    for size in (100001, 100007):
        equal([["deep"] * 3001 + ["<module>"]] * 2, names[size], "a stack of 3,000 frames")
    equal([["deep"] * 4096] * 2, names[100003], "a stack of 6,000 frames")
    equal([7, 8], [stack[0][2] for stack in found[100004]], "the innermost lines")
    equal([["shallow", "<module>"]], names[100005], "a stack that is not deep")
    said = json.loads(subprocess.run([TIDEMARK, "info", "--json", "t.tide"], capture_output=True,
                                     text=True, check=True).stdout)
    check(said["stacks"]["deep"] >= 2, said["stacks"])


# What the interpreter's file defines, with nothing behind it.
IMPOSTOR = r"""
#include <stdlib.h>
char _PyRuntime[4096], PyCode_Type[512];
const unsigned long Py_Version = VERSION;
void *_PyThreadState_UncheckedGet(void) { return _PyRuntime; }
void *_PyEval_EvalFrameDefault(int size) { return malloc(size); }
int main(void) { return _PyEval_EvalFrameDefault(100000) == NULL; }
"""


def refused(version):
    with open("impostor.c", "w", encoding="ascii") as file:
        file.write(IMPOSTOR)
    subprocess.run(["gcc", "-O1", "-rdynamic", "-o", "impostor", f"-DVERSION={version}",
                    "impostor.c"], check=True)
    record(["./impostor"], "-f", env=environment())
    return subprocess.run([TIDEMARK, "info", "t.tide"], capture_output=True, text=True,
                          check=True).stdout


@test
def another_version_is_refused_in_a_line():
    said = refused("0x030d00f0")
    check("python 3.13.0: its functions are not in the stacks" in said, said)


@test
def another_layout_is_refused_in_a_line():
    said = refused("0x030b02f0")
    check("python 3.11.2: its functions are not in the stacks" in said, said)


main()
