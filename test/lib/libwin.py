"""What tests of Windows programs share: where Wine and the cross-built programs are."""
import bisect
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

import libi386

SOURCE = os.environ["TIDEMARK_SOURCE"]
TOOLS = os.path.join(SOURCE, "tools")
WINE_RUN = os.path.join(TOOLS, "wine-run")
BITS = {64: "x86_64-w64-mingw32", 32: "i686-w64-mingw32"}
WIDTHS = (64,) if libi386.why_none_runs() else (64, 32)  # of programs that can be run


_passed = 0


def check(name, condition, *said):
    """One test, by its name. A script ends with the first that fails."""
    global _passed
    if not condition:
        raise SystemExit(f"not so: {name}: " + "\n".join(map(how_it_ended, said)))
    _passed += 1
    print(f"ok {name}", flush=True)


def how_it_ended(said):
    """What came out of a program says more than how it was called."""
    if not isinstance(said, subprocess.CompletedProcess):
        return str(said)
    return "\n".join((f"exit code {said.returncode}", f"it wrote: {said.stdout}", f"it said: {said.stderr}"))


def equal(expected, found, name):
    check(name, expected == found, f"{found} is not {expected}")


def end():
    """A script's last line."""
    print(f"{_passed} passed")


def skip(reason):
    print(reason)
    sys.exit(77)


def need_wine(bits=64):
    """Skip, saying why, where Windows programs of so many bits cannot be run or built."""
    if bits not in WIDTHS:
        skip(libi386.why_none_runs())
    for target in BITS.values():
        if not shutil.which(f"{target}-gcc"):
            skip(f"there is no {target}-gcc here (make deps-win)")
    done = subprocess.run([os.path.join(TOOLS, "wine-set-up"), "--where"], capture_output=True,
                          text=True)
    if done.returncode != 0:
        skip(done.stderr.strip().removeprefix("wine-set-up: "))


def built(name):
    """What `make win` built: tidemark.exe and the recorder's DLLs lie in one folder."""
    path = os.path.join(os.environ["TIDEMARK_BUILD"] + "-win", "bin", name)
    if not os.path.exists(path):
        skip(f"{name} is not built (make win)")
    return path


def cross_compile(bits, output, *arguments):
    """A Windows program of a few C files."""
    subprocess.run([f"{BITS[bits]}-gcc", "-O1", "-g", "-o", output, *arguments], check=True)


def cross_compile_cxx(bits, output, *arguments):
    """One of C++, that needs no library of the compiler's beside it."""
    subprocess.run([f"{BITS[bits]}-g++", "-O1", "-g", "-static", "-I", SOURCE,
                    "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-o", output,
                    *arguments], check=True)


def wine(*command, prefix=None, seconds=150, **keywords):
    """Run a Windows program to its end. Where tools/wine-run may not ask for addresses that are not
    random, Wine's start.exe now and then cannot start it, and says so, or fails without a word: then
    once more."""
    place = ["--prefix", prefix] if prefix else []
    captures = keywords.pop("capture_output", True)
    for _ in range(3):
        done = run_captured([WINE_RUN, *place, "--time", str(seconds), "--", *command], captures,
                            **keywords)
        said = done.stdout or b""
        refused = (b"ShellExecuteEx failed" if isinstance(said, bytes) else
                   "ShellExecuteEx failed") in said
        if not refused and (done.returncode == 0 or done.stdout or done.stderr or not captures):
            break
        print(f"wine: {command[0]} was not started ({done})", flush=True)
    return done


def run_captured(command, captures, text=False, **keywords):
    """subprocess.run, but for its pipes: what Wine brings up beside a program (its desktop, above all)
    lives on and holds their other ends, so that they have no end."""
    if not captures:
        return subprocess.run(command, text=text, **keywords)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        done = subprocess.run(command, stdout=out, stderr=err, **keywords)
        for stream in out, err:
            stream.seek(0)
        said = [stream.read() for stream in (out, err)]
    if text:
        said = [each.decode().replace("\r\n", "\n").replace("\r", "\n") for each in said]
    done.stdout, done.stderr = said
    return done


def command_line(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


def windows_path(name):
    return "Z:" + os.path.abspath(name).replace("/", "\\")


def begin_prefix():
    """What is started first brings up a server that lives on and would keep our pipes open."""
    subprocess.run([WINE_RUN, "--prefix", "prefix", "--", "cmd.exe", "/c", "exit"],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def end_prefix():
    subprocess.run([WINE_RUN, "--prefix", "prefix", "--end"], check=False)


def ask(*words):
    """What tidemark here says, as JSON."""
    done = subprocess.run([os.environ["TIDEMARK"], *words, "--json"], capture_output=True,
                          check=False)
    if done.returncode != 0:
        raise SystemExit(f"not so: tidemark {words} answers: {done}")
    return json.loads(done.stdout)


class Names:
    """The functions of a program, by its own table of symbols: what a stack must say, whoever asks
    and whatever tidemark itself can read."""

    def __init__(self, bits, path):
        with open(path, "rb") as file:
            head = file.read(1024)
        at = struct.unpack_from("<I", head, 0x3c)[0] + 24
        base = struct.unpack_from("<Q" if bits == 64 else "<I", head, at + (24 if bits == 64 else 28))[0]
        said = subprocess.run([f"{BITS[bits]}-nm", "-n", "-C", path], capture_output=True,
                              text=True, check=True).stdout
        found = [(int(at, 16) - base, name) for at, name in
                 re.findall(r"^(\w+) [tT] (.+)$", said, re.M) if not name.startswith(".")]
        self.starts = [at for at, _name in found]
        self.names = [re.sub(r"\(.*| const$", "", name).lstrip("_") for _at, name in found]
        self.file = os.path.basename(path)

    def stack(self, frames):
        """The program's own functions of a stack, innermost first."""
        names = []
        for frame in frames:
            if not frame["inlined"] and re.split(r"[\\/]", frame["module"] or "")[-1] == self.file:
                names.append(self.names[bisect.bisect(self.starts, frame["offset"]) - 1])
        return names


def count_stacks(trace):
    """Of a trace's allocations: how many there are, how many have a stack that reaches the start of
    its thread, which is in ntdll, and how many one that is proven to be whole."""
    dump = subprocess.run([os.environ["TIDEMARK"], "dump", trace], capture_output=True, text=True,
                          check=True).stdout
    ntdll, starts, stacks = set(), set(), {}
    count = reaching = proven = 0
    for line in dump.splitlines():
        words = line.split()
        if line.startswith("module ") and line.lower().endswith('ntdll.dll"'):
            ntdll.add(words[1])
        elif line.startswith("frame ") and words[2] in ntdll:
            starts.add(words[1])
        elif line.startswith("stack "):
            marked = any(word.startswith("flags=") for word in words)
            words = [word for word in words if not word.startswith("flags=")]
            outer = stacks[words[4]] if len(words) > 4 else (words[2] in starts, True)
            stacks[words[1]] = (outer[0], outer[1] and not marked)
        elif line.startswith("@") and words[2] in ("malloc", "realloc"):
            stack = next(word for word in words[3:] if re.fullmatch(r"s\d+", word))
            count += 1
            reaching += stacks.get(stack, (False, False))[0]
            proven += stacks.get(stack, (False, False))[1]
    return count, reaching, proven
