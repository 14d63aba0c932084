"""What we, addr2line and llvm-symbolizer say of the addresses of Windows modules."""
import os
import re
import subprocess

PLACES = os.path.join(os.environ["TIDEMARK_BUILD"], "test", "witness", "places")


def run(*command, **more):
    return subprocess.run(command, check=True, capture_output=True, encoding="utf-8",
                          errors="replace", **more).stdout


def image_base(path):
    return int(re.search(r"ImageBase\s+([0-9a-f]+)", run("objdump", "-p", path))[1], 16)


PADDING = re.compile(r"((data16|cs)\s+)*(nop|int3|xchg\s+%ax,%ax|lea\s+0x0\(%e[sd]i)")


def instructions(path):
    """The RVA of every instruction, but for what fills the room between functions."""
    base = image_base(path)
    found = []
    for line in run("objdump", "-d", "--no-show-raw-insn", path).splitlines():
        match = re.match(r"\s*([0-9a-f]+):\t(.*)$", line)
        if match and not PADDING.match(match[2]):
            found.append(int(match[1], 16) - base)
    return found


def windows_path(path):
    return "Z:" + os.path.abspath(path).replace("/", "\\")


def ours(path, addresses, directories=None, **environment):
    """RVA -> [(function, file, line), …], innermost first; and what was remarked."""
    done = subprocess.run([PLACES, windows_path(path), *([directories] if directories else [])],
                          input="".join(f"{a:x}\n" for a in addresses), capture_output=True,
                          encoding="utf-8", check=True,
                          env={**os.environ, "HOME": "/nonexistent", **environment})
    found = {}
    for line in done.stdout.splitlines():
        if line.startswith("="):
            places = found[int(line[1:], 16)] = []
        else:
            function, file, number = line.split("\t")
            places.append((function, file, int(number)))
    return found, done.stderr


def parse(text, base):
    """Lines of an address, and then of a function and of a place, by turns."""
    found, lines = {}, iter(text.splitlines())
    for line in lines:
        if re.fullmatch("0x[0-9a-f]+", line):
            places = found[int(line, 16) - base] = []
        elif line:
            where = re.sub(r" \(discriminator \d+\)", "", next(lines))
            file, _, number = where.rpartition(":")
            places.append(("" if line == "??" else line, "" if file == "??" else file,
                           int(number) if number.isdigit() else 0))
    return found


def addr2line(path, addresses):
    base = image_base(path)
    return parse(run("addr2line", "-afi", "-e", path,
                     input="".join(f"{base + a:#x}\n" for a in addresses)), base)


def llvm_symbolizer(path, addresses, *options):
    base = image_base(path)
    return parse(run("llvm-symbolizer", f"--obj={path}", "--no-demangle", "--output-style=GNU",
                     "-a", "-i", *options,
                     input="".join(f"{base + a:#x}\n" for a in addresses)), base)
