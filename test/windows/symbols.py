#!/usr/bin/env -S python3 -B
"""Names of Windows modules, read on Linux: every instruction is named as addr2line or
llvm-symbolizer names it, and a stripped library's functions are never given another's name.

Where we differ from both, it is for a reason that nm shows:

    table   the other knows the symbol table's source file alone, we the function that nm has there
    behind  the other takes the last symbol for the name of all that follows it
    line    both have a line there and no function; the function is the one that nm has there

llvm-symbolizer goes wrong where inlined code changes its line (a change of line counts from the row
before), and at the first address where a table has several rows; where it says another line than we,
the rows and steps themselves, as llvm-pdbutil prints them, are on our side ("rows").
"""
# timeout: 300
# parallel: yes
import bisect
import collections
import glob
import json
import os
import re
import shutil
import struct
import subprocess

import libplaces
import libwin

# Where a Wine is set up beside the test, its modules are not those that are meant here.
os.environ.pop("WINEPREFIX", None)
PROGRAMS = os.path.join(libwin.SOURCE, "test", "programs")
NAMED = os.path.join(PROGRAMS, "win", "named.c")
NAMED_CXX = os.path.join(PROGRAMS, "win", "named.cpp")
TEMPLATES = os.path.join(PROGRAMS, "symbols_templates.cpp")
TIDEMARK = os.environ["TIDEMARK"]

for tool in (*(f"{target}-g++" for target in libwin.BITS.values()), "clang++", "lld-link",
             "llvm-pdbutil", "llvm-symbolizer", "objdump"):
    if not shutil.which(tool):
        libwin.skip(f"there is no {tool} here (make deps-win)")


class Table:
    """What nm says: which names stand for which addresses."""

    def __init__(self, path, bits):
        base = libplaces.image_base(path)
        names = collections.defaultdict(set)
        for line in libplaces.run("nm", path).splitlines():
            match = re.match(r"([0-9a-f]+) [tTwW] ([^.\s]\S*)$", line)
            if match:
                names[int(match[1], 16) - base].add(undecorated(match[2], bits))
        self.addresses = sorted(names)
        self.names = names

    def at(self, rva):
        at = bisect.bisect_right(self.addresses, rva) - 1
        return self.names[self.addresses[at]] if at >= 0 else set()


def undecorated(name, bits):
    return name[1:] if bits == 32 and name.startswith("_") else name


def outer_undecorated(places, bits):
    """llvm-symbolizer gives functions as the symbol table has them: with an underscore on x86."""
    function, file, line = places[-1]
    return [*places[:-1], (undecorated(function, bits), file, line)]


def is_same(we, other):
    return len(we) == len(other) and all(
        a[1:] == b[1:] and (a[0] == b[0] or i + 1 < len(we) and libplaces.is_whole(a[0], b[0]))
        for i, (a, b) in enumerate(zip(we, other)))


def classify(rva, we, others, table, last):
    if any(is_same(we, other) for other in others):
        return "same"
    # Behind the last symbol of all may be anything: it has no name, whatever others say.
    if "!sub_" in we[0][0] and table.at(rva) == table.at(last):
        return "behind"
    if len(we) != 1 or we[0][0] not in table.at(rva):
        return "wrong"
    if all(other[0][2] == 0 for other in others) and we[0][2] == 0:
        return "table"
    return "line" if any(other[0][1:] == we[0][1:] for other in others) else "wrong"


def compare(name, bits, path):
    addresses = libplaces.instructions(path)
    found, remarks = libplaces.ours(path, addresses)
    by_binutils = libplaces.addr2line(path, addresses)
    by_llvm = libplaces.llvm_symbolizer(path, addresses)
    table = Table(path, bits)
    kinds = collections.Counter()
    for rva in addresses:
        others = [by_binutils[rva], by_llvm[rva], outer_undecorated(by_llvm[rva], bits)]
        kind = classify(rva, found[rva], others, table, addresses[-1])
        kinds[kind] += 1
        if kind == "wrong":
            print(f"{name}: {rva:#x}: {found[rva]}\n    {others}")
    print(f"{name}, {bits} bits: {dict(kinds)}")
    assert kinds["wrong"] == 0 and kinds["same"] > 5 * (kinds["table"] + kinds["line"]), name
    assert not remarks, remarks
    assert any(len(places) > 4 for places in found.values()), "no inlined functions"


def check_dwarf(bits):
    for name, compiler, source, flags in (
            ("c", "gcc", NAMED, "-O2 -g"), ("c, version 4", "gcc", NAMED, "-O1 -gdwarf-4"),
            ("c++", "g++", TEMPLATES, "-O2 -g")):
        path = f"{compiler}{bits}.exe"
        subprocess.run([f"{libwin.BITS[bits]}-{compiler}", *flags.split(), "-w", "-o", path, source],
                       check=True)
        compare(name, bits, path)


def sections_of(path):
    return [int(match[1], 16) - libplaces.image_base(path)
            for match in re.finditer(r"^\s*\d+ \S+\s+[0-9a-f]+\s+([0-9a-f]+)",
                                     libplaces.run("objdump", "-h", path), re.M)]


def classify_pdb(rva, we, other, rows, functions):
    if we == other:
        return "same"
    if [place[:2] for place in we] == [place[:2] for place in other]:
        return "rows" if [place[2] for place in we] == rows else "wrong"
    # What the records of functions do not cover: code without any, padding, tables of switches.
    return "outside" if not rows and not any(place[2] for place in we) else "wrong"


def compare_pdb(name, path, pdb, inside=lambda places: True):
    addresses = libplaces.instructions(path)
    found, remarks = libplaces.ours(path, addresses)
    by_llvm = libplaces.llvm_symbolizer(path, addresses, "-f=short")
    truth = libplaces.Pdb(pdb, sections_of(path))
    kinds = collections.Counter()
    for rva in addresses:
        rows = truth.lines_at(rva)
        if not rows and not inside(found[rva]):
            continue
        kind = classify_pdb(rva, found[rva], by_llvm.get(rva, []), rows, truth)
        kinds[kind] += 1
        if kind == "wrong":
            print(f"{name}: {rva:#x}: {found[rva]}\n    {by_llvm.get(rva)}\n    {rows}")
    print(f"pdb, {name}: {dict(kinds)}")
    assert kinds["wrong"] == 0 and kinds["same"] > 3 * kinds["outside"], name
    assert not remarks, remarks


def clang(bits, source, output, *flags):
    """As Microsoft's compiler would: objects and a PDB of that form, without any library."""
    machine = {64: "x86_64", 32: "i686"}[bits]
    subprocess.run(["clang++", f"--target={machine}-pc-windows-msvc", "-x",
                    "c++" if source.endswith("pp") else "c", "-w", *flags, "-fno-exceptions",
                    "-fno-rtti", "-fno-threadsafe-statics", "-c", source, "-o", "linked.obj"],
                   check=True)
    subprocess.run(["lld-link", "/debug", "/nodefaultlib", "/subsystem:console", "linked.obj",
                    f"/entry:{'start' if source.endswith('pp') else 'main'}", f"/out:{output}",
                    f"/pdb:{output[:-4]}.pdb", *(["/dll"] if output.endswith("dll") else [])],
                   check=True)


def check_pdb(bits):
    for name, source, flags in (("c", NAMED, "-O2"), ("c, not optimised", NAMED, "-O0"),
                                ("c++", NAMED_CXX, "-O1 -std=c++17"),
                                ("c++, inlined", NAMED_CXX, "-O2 -std=c++17 -DALONE=inline")):
        path = f"pdb{bits}.exe"
        clang(bits, source, path, "-g", "-gcodeview", *flags.split())
        compare_pdb(f"{name}, {bits} bits", path, f"pdb{bits}.pdb")
    # A program with a C++ library; what is in it without a PDB is told by its DWARF.
    target = libwin.BITS[bits]
    library = glob.glob(f"/usr/lib/gcc/{target}/*-win32")[0]
    path = f"library{bits}.exe"
    subprocess.run(["clang++", f"--target={target}", "-fuse-ld=lld", f"-L{library}",
                    f"-I{library}/include/c++", f"-I{library}/include/c++/{target}", "-O2", "-w",
                    "-g", "-gcodeview", f"-Wl,--pdb=library{bits}.pdb", TEMPLATES, "-o", path],
                   check=True)
    compare_pdb(f"c++ with its library, {bits} bits", path, f"library{bits}.pdb",
                lambda places: False)


def check_exports(bits):
    """What a stripped library exports is named so far as it surely goes; the rest is MODULE!sub_…"""
    for flags in ("-O2", "-Os", "-O2 -Wl,--export-all-symbols"):
        path, stripped = f"named{bits}.dll", f"stripped{bits}.dll"
        subprocess.run([f"{libwin.BITS[bits]}-gcc", *flags.split(), "-g", "-shared", "-o", path,
                        NAMED], check=True)
        subprocess.run(["strip", "-o", stripped, path], check=True)
        addresses = libplaces.instructions(path)
        truth, _ = libplaces.ours(path, addresses)
        table = Table(path, bits)
        kinds, unnamed = collections.Counter(), collections.Counter()
        for rva, places in libplaces.ours(stripped, addresses)[0].items():
            function = places[0][0]
            if function.startswith(f"stripped{bits}!sub_"):
                kinds["unnamed"] += 1
                unnamed[function] += 1
            else:
                named = function == truth[rva][-1][0] or function in table.at(rva)
                kinds["named" if named else "wrong"] += 1
                assert named, (hex(rva), function, truth[rva])
        print(f"exports, {bits} bits, {flags}: {dict(kinds)}")
        assert kinds["named"] > 50 and kinds["unnamed"] > 500, kinds
        if bits == 64:  # all of a function is one
            assert max(unnamed.values()) > 20, unnamed


def symbol(path, name, bits):
    for line in libplaces.run("nm", path).splitlines():
        match = re.match(r"([0-9a-f]+) [tT] (\S+)$", line)
        if match and undecorated(match[2], bits) == name:
            return int(match[1], 16) - libplaces.image_base(path)
    raise KeyError(name)


def check_trace(bits):
    """A trace of Windows' is reported with names; a module that has changed is told."""
    path = os.path.abspath(f"trace{bits}.exe")
    subprocess.run([f"{libwin.BITS[bits]}-gcc", "-O2", "-g", "-o", path, NAMED], check=True)
    pc = 0x400000 + symbol(path, "is_split", bits) + 8
    size, linked = header(path, "SizeOfImage"), timestamp(path)
    for size, linked, named in ((size, linked, True), (size + 4096, linked, False),
                                (size, linked + 1, False)):
        text = (f"process p1 pid=42 bits={bits}\nthread t1 \"main\"\n"
                f"module m1 0x400000-0x{0x400000 + size:x} bias=0x400000 file-size={size} "
                f"file-time={linked * 10 ** 9} {quoted(libplaces.windows_path(path))}\n"
                f"frame f1 m1 0x{pc:x}\nstack s1 f1\n+10ns t1 alloc s1 0x1000 64\nend\n")
        with open("trace.txt", "w") as file:
            file.write(text)
        subprocess.run([TIDEMARK, "dump", "--assemble", "trace.txt", "-o", "t.tide"], check=True)
        done = subprocess.run([TIDEMARK, "report", "--json", "t.tide"], check=True,
                              capture_output=True, text=True)
        frames = json.loads(done.stdout)["sites"]["peak"][0]["stack"]
        assert (frames[-1]["function"] == "is_split") == named, frames
        assert (frames[-1]["file"] or "").endswith("named.c") == named, frames
        said = subprocess.run([TIDEMARK, "report", "t.tide"], check=True, capture_output=True,
                              text=True).stdout
        assert ("has changed since the recording" in said.replace("\n", " ")) != named, said
        os.remove("t.tide")


def header(path, name):
    return int(re.search(rf"{name}\s+([0-9a-f]+)", libplaces.run("objdump", "-p", path))[1], 16)


def timestamp(path):
    with open(path, "rb") as file:
        head = file.read(1024)
    return struct.unpack_from("<I", head, struct.unpack_from("<I", head, 60)[0] + 8)[0]


def quoted(text):
    return '"' + text.replace("\\", "\\\\") + '"'


for each in (64, 32):
    check_dwarf(each)
    check_pdb(each)
    check_exports(each)
    check_trace(each)
