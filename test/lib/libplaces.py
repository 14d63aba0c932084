"""What we, addr2line and llvm-symbolizer say of the addresses of Windows modules."""
import bisect
import json
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
    found = {}
    for line in run("llvm-symbolizer", f"--obj={path}", "--no-demangle", "--output-style=JSON", "-i",
                    *options, input="".join(f"{base + a:#x}\n" for a in addresses)).splitlines():
        answer = json.loads(line)
        found[int(answer["Address"], 16) - base] = [
            (symbol["FunctionName"], symbol["FileName"], symbol["Line"])
            for symbol in answer.get("Symbol", [])]
    return found


class Site:
    """A function, or an inlined one, as llvm-pdbutil prints its records."""

    def __init__(self, name, start, size=0, line=0):
        self.name, self.start, self.size = name, start, size
        self.sites, self.rows, self.line, self.at, self.ends = [], [], line, 0, []

    def annotate(self, text):
        """One step: code goes on, the line changes, or the code ends."""
        line = re.search(r"line \S+ \(([-+]\d+)\)", text)
        code = re.search(r"code 0x[0-9A-F]+ \(\+0x([0-9A-F]+)\)", text)
        end = re.search(r"code end 0x[0-9A-F]+ \(\+0x([0-9A-F]+)\)", text)
        if line:
            self.line += int(line[1])
        if code:
            self.at += int(code[1], 16)
            self.rows.append((self.start + self.at, self.line))
        if end:
            self.at += int(end[1], 16)
            self.rows.append((self.start + self.at, None))

    def line_at(self, rva):
        at = bisect.bisect_right(self.rows, rva, key=lambda row: row[0]) - 1
        return self.rows[at][1] if at >= 0 else None


class Pdb:
    """What llvm-pdbutil prints of a PDB: the lines of every address, innermost first, by the rows of
    the tables and the steps of the annotations themselves."""

    def __init__(self, pdb, sections):
        self.sections = sections
        self.functions, self.lines = [], []
        self.read_symbols(run("llvm-pdbutil", "dump", "-symbols", pdb), self.read_inlinees(pdb))
        self.read_lines(run("llvm-pdbutil", "dump", "-l", pdb))
        self.functions.sort(key=lambda site: site.start)

    @staticmethod
    def read_inlinees(pdb):
        """(module, item) -> its first line."""
        found, module = {}, None
        for line in run("llvm-pdbutil", "dump", "-il", pdb).splitlines():
            match = re.match(r"Mod (\d+) \|", line)
            module = int(match[1]) if match else module
            match = re.match(r"\s+(0x[0-9A-F]+) \|\s+(\d+) \|", line)
            if match:
                found[module, match[1]] = int(match[2])
        return found

    def read_symbols(self, text, inlinees):
        module, stack, kind = None, [], ""
        for line in text.splitlines():
            match = re.match(r"\s*Mod (\d+) \|", line)
            module = int(match[1]) if match else module
            match = re.match(r"\s*\d+ \| (S_\w+)(?: \[size = \d+\])?(?: `(.*)`)?", line)
            if match:
                kind, name = match[1], match[2]
                if kind in ("S_INLINESITE_END", "S_END", "S_PROC_ID_END") and stack:
                    stack.pop()
                elif kind in ("S_BLOCK32", "S_THUNK32"):
                    stack.append(stack[-1] if stack else None)
                continue
            match = re.search(r"addr = (\d+):(\d+), code size = (\d+)", line)
            if match and kind in ("S_GPROC32", "S_LPROC32", "S_GPROC32_ID", "S_LPROC32_ID"):
                start = self.sections[int(match[1]) - 1] + int(match[2])
                stack = [Site(name, start, int(match[3]))]
                self.functions.append(stack[0])
                continue
            match = re.search(r"inlinee = (0x[0-9A-F]+) \((.*)\), parent", line)
            if match and kind == "S_INLINESITE":
                site = Site(match[2], stack[0].start, 0, inlinees[module, match[1]])
                stack[-1].sites.append(site)
                stack.append(site)
            elif kind == "S_INLINESITE" and stack:
                stack[-1].annotate(line)

    def read_lines(self, text):
        end, first = None, None
        for line in text.splitlines():
            match = re.match(r"\s+(\d+):([0-9A-F]{8})-([0-9A-F]{8}), line/addr entries", line)
            if match:
                section = self.sections[int(match[1]) - 1]
                end = section + int(match[3], 16)
                first = section + int(match[2], 16)
                self.lines.append((end, None))
            elif end:
                for number, at in re.findall(r"(\d+) ([0-9A-F]{8})", line):
                    # Code that begins with what was inlined has its first row later.
                    self.lines.append((first or section + int(at, 16), int(number)))
                    first = None
        # Where one run of code ends another may begin: the end comes first, and rows stay as they
        # stood.
        self.lines.sort(key=lambda row: (row[0], row[1] is not None))

    def lines_at(self, rva):
        at = bisect.bisect_right(self.functions, rva, key=lambda site: site.start) - 1
        function = self.functions[at] if at >= 0 else None
        if not function or rva >= function.start + function.size:
            return None
        found, site = [], function
        while site:
            site = next((inner for inner in site.sites if inner.line_at(rva) is not None), None)
            if site:
                found.insert(0, site.line_at(rva))
        at = bisect.bisect_right(self.lines, rva, key=lambda row: row[0]) - 1
        return [*found, self.lines[at][1] if at >= 0 else None]


def is_whole(ours, plain):
    """Is `plain` the last part of our name, which has its scopes and parameters? So binutils and
    LLVM name functions that have no linkage name."""
    bare = plain.partition("<")[0]
    return re.search(rf"(^|::){re.escape(bare)}[(<]", ours) is not None
