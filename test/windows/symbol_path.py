#!/usr/bin/env -S python3 -B
"""tidemark symbols: what is missing has a key; put into a store under that key it is found, in every
form of a store and of the symbol path, and nothing of another build is taken. One list for modules of
Windows and of Linux."""
# timeout: 300
# parallel: yes
import json
import os
import re
import shutil
import struct
import subprocess

import libschema
import libwin
from libwin import check

TIDEMARK = os.environ["TIDEMARK"]
NAMED = os.path.join(libwin.SOURCE, "test", "programs", "win", "named.c")
for tool in ("clang", "lld-link", "llvm-pdbutil", "objdump", "readelf"):
    if not shutil.which(tool):
        libwin.skip(f"there is no {tool} here (make deps-win)")
os.environ["HOME"] = "/nonexistent"
for name in ("WINEPREFIX", "_NT_SYMBOL_PATH", "_NT_ALT_SYMBOL_PATH", "_NT_ALTERNATE_SYMBOL_PATH"):
    os.environ.pop(name, None)


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def ask(*options, **environment):
    return subprocess.run([TIDEMARK, "symbols", "t.tide", *options], check=True, text=True,
                          capture_output=True, env={**os.environ, **environment}).stdout


def modules(*options, **environment):
    answer = json.loads(ask("--json", *options, **environment))
    libschema.valid(answer, "symbols")
    return answer["modules"], " ".join(answer["notes"])


def build(folder):
    os.makedirs(folder)
    subprocess.run(["clang", "--target=x86_64-pc-windows-msvc", "-O1", "-g", "-gcodeview", "-c",
                    NAMED, "-o", f"{folder}/a.obj"], check=True)
    subprocess.run(["lld-link", "/debug", "/nodefaultlib", "/subsystem:console", "/entry:main",
                    f"{folder}/a.obj", f"/out:{folder}/app.exe", f"/pdb:{folder}/app.pdb",
                    "/pdbaltpath:C:\\built\\elsewhere\\app.pdb"], check=True)


build("one")
build("two")  # another file is linked: its GUID differs
subprocess.run(["lld-link", "/debug", "/nodefaultlib", "/subsystem:console", "/entry:main",
                "two/a.obj", "/out:two/app.exe", "/pdb:two/app.pdb", "/merge:.rdata=.data"],
               check=True)
with open("one/app.exe", "rb") as file:
    image = file.read()
at = image.index(b"RSDS")
guid, age = image[at + 4:at + 20], struct.unpack_from("<I", image, at + 20)[0]
fields = struct.unpack("<IHH8s", guid)
header = struct.unpack_from("<I", image, 60)[0]
timestamp, = struct.unpack_from("<I", image, header + 8)
size, = struct.unpack_from("<I", image, header + 24 + 56)
PDB_KEY = f"{fields[0]:08X}{fields[1]:04X}{fields[2]:04X}{fields[3].hex().upper()}{age:X}"
by_llvm = re.search(r"GUID: \{([0-9A-F-]+)\}", run("llvm-pdbutil", "dump", "-summary",
                                                 "one/app.pdb"))[1].replace("-", "")
check("the key is the GUID that llvm-pdbutil prints, and the age", PDB_KEY == f"{by_llvm}{age:X}")
IMAGE_KEY = f"{timestamp:08X}{size:x}"
fake_id = "0123456789abcdef0123456789abcdef01234567"

base = 0x140000000
entry = int(re.search(r"AddressOfEntryPoint\s+([0-9a-f]+)", run("objdump", "-p", "one/app.exe"))[1],
            16)
with open("t.txt", "w") as file:
    file.write(
        "process p1 pid=42 bits=64\nthread t1 \"main\"\n"
        f"module m1 0x{base:x}-0x{base + size:x} bias=0x{base:x} file-size={size} "
        f"file-time={timestamp * 10 ** 9} build-id={guid.hex()}{struct.pack('<I', age).hex()} "
        "\"Q:\\\\gone\\\\app.exe\"\n"
        f"module m2 0x1000-0x2000 bias=0x1000 build-id={fake_id} \"/nonexistent/libgone.so\"\n"
        f"frame f1 m1 0x{base + entry:x}\nstack s1 f1\n+10ns t1 alloc s1 0x1000 64\nend\n")
run(TIDEMARK, "dump", "--assemble", "t.txt", "-o", "t.tide")

WANTED = [f"app.exe/{IMAGE_KEY}/app.exe", f"app.pdb/{PDB_KEY}/app.pdb",
          f".build-id/01/{fake_id[2:]}", f".build-id/01/{fake_id[2:]}.debug"]
check("what is missing is listed by key", ask("--missing").splitlines() == WANTED,
      ask("--missing"), WANTED)
check("and told of each module", [(each["names"], each["missing_debug"] is not None)
                                  for each in modules()[0]] == [(None, True)] * 2, modules())
check("in words, too", "4 files are missing" in ask(), ask())


def put(path, what):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    shutil.copy(what, path)


def found(**environment):
    first = modules(**environment)[0][0]
    return first["names"], first["file"], first["debug"]


def function(**environment):
    report = subprocess.run([TIDEMARK, "report", "--json", "t.tide"], check=True, text=True,
                            capture_output=True, env={**os.environ, **environment}).stdout
    return json.loads(report)["sites"]["bytes"][0]["stack"][-1]["function"]


here = os.getcwd()
put(f"store/{WANTED[1]}", "one/app.pdb")
check("a PDB alone gives names", found(_NT_SYMBOL_PATH=f"srv*{here}/store")
      == ("pdb", None, f"{here}/store/{WANTED[1]}"), found(_NT_SYMBOL_PATH=f"srv*{here}/store"))
check("in a report as well", function(_NT_SYMBOL_PATH=f"srv*{here}/store") == "main")
check("without it there is none", not function(), function())
put(f"store/{WANTED[0]}", "one/app.exe")
for variable in ("_NT_SYMBOL_PATH", "_NT_ALT_SYMBOL_PATH", "_NT_ALTERNATE_SYMBOL_PATH"):
    for form in ("srv*{}/store", "SRV*{}/empty*{}/store*https://symbols.invalid/x", "cache*{}/store",
                 "symsrv*symsrv.dll*{}/store", "{}/empty;{}/store", "{}/store;"):
        names, exe, pdb = found(**{variable: form.replace("{}", here)})
        check(f"{variable}={form}", names == "pdb" and exe and pdb, names, exe, pdb)
said = modules(_NT_SYMBOL_PATH="srv*https://symbols.invalid/x")[1]
check("a server is named and not asked", "https://symbols.invalid/x is not asked" in said, said)

put(f"three/ap/{WANTED[1]}", "one/app.pdb")
check("a store of three tiers", found(_NT_SYMBOL_PATH=f"srv*{here}/three")[0] == "pdb")
put(f"lower/{WANTED[1].lower()}", "one/app.pdb")
check("in any case", found(_NT_SYMBOL_PATH=f"srv*{here}/lower")[0] == "pdb")
os.makedirs(f"pointing/app.pdb/{PDB_KEY}")
with open(f"pointing/app.pdb/{PDB_KEY}/file.ptr", "w") as file:
    file.write(f"PATH:{here}/one/app.pdb\r\n")
check("file.ptr", found(_NT_SYMBOL_PATH=f"srv*{here}/pointing")[2] == f"{here}/one/app.pdb")
put(f"packed/app.pdb/{PDB_KEY}/app.pd_", "one/app.pdb")
names, said = modules(_NT_SYMBOL_PATH=f"srv*{here}/packed")
check("a compressed file is told", "is compressed" in said and names[0]["names"] is None, said)
check("a directory", found(_NT_SYMBOL_PATH=f"{here}/one")[0] == "pdb")
check("a directory of dbghelp's form",
      (put("plain/symbols/pdb/app.pdb", "one/app.pdb"),
       found(_NT_SYMBOL_PATH=f"{here}/plain"))[1][0] == "pdb")
first = modules("--symbols", f"{here}/empty:{here}/one")[0][0]
check("the user's directories", first["names"] == "pdb" and first["file"] == f"{here}/one/app.exe",
      first)

names, said = modules(_NT_SYMBOL_PATH=f"{here}/two")
check("another build is refused, and told", names[0]["names"] is None and names[0]["file"] is None
      and "another build" in said, names, said)
put("mixed/app.exe", "one/app.exe")
put("mixed/app.pdb", "two/app.pdb")
names, said = modules(_NT_SYMBOL_PATH=f"{here}/mixed")
check("its PDB as well", names[0]["names"] == "exports" and names[0]["debug"] is None
      and "is of another build than app.exe" in said, names, said)
with open("one/app.pdb", "rb") as file:
    whole = file.read()
os.makedirs("cut")
with open("cut/app.pdb", "wb") as file:
    file.write(whole[:5000])
names, said = modules(_NT_SYMBOL_PATH=f"{here}/cut")
check("a PDB that is cut is told", names[0]["names"] is None and "cut/app.pdb" in said, said)

run(TIDEMARK, "bundle", "--debug-path", f"{here}/one", "t.tide")
check("a bundle has the names", function() == "main" and modules()[0][0]["names"] == "bundle",
      function(), modules())
libwin.end()
