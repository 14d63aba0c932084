#!/usr/bin/env -S python3 -B
"""A program that tidemark.exe recorded under Wine has names: here by DWARF and by PDB, in both sizes,
and under Wine by tidemark.exe report, where the PDB says the same to the letter, and DWARF of a kind
that Wine's dbghelp reads the same functions; window and map say the same. What is bundled has its
names where the program is not, on both systems. Wine's own libraries
have names, too, those of the size that the program loaded."""
# timeout: 600
# parallel: yes
import glob
import json
import os
import re
import shutil
import subprocess

import libwin

libwin.need_wine()
EXE = libwin.built("tidemark.exe")
TIDEMARK = os.environ["TIDEMARK"]
PROGRAM = os.path.join(libwin.SOURCE, "test", "programs", "win", "sites.c")
if not shutil.which("clang"):
    libwin.skip("there is no clang here (make deps-win)")
os.environ["WINEPREFIX"] = os.path.abspath("prefix")


def build(bits, form):
    target, output = libwin.BITS[bits], f"{form}{bits}.exe"
    flags = ["-O1", "-g", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-o", output,
             PROGRAM]
    if form != "pdb":
        version = {"dwarf": "-gdwarf-5", "dwarf4": "-gdwarf-4"}[form]
        subprocess.run([f"{target}-gcc", version, *flags], check=True)
    else:
        library = glob.glob(f"/usr/lib/gcc/{target}/*-win32")[0]
        subprocess.run(["clang", f"--target={target}", "-fuse-ld=lld", f"-L{library}", "-gcodeview",
                        f"-Wl,--pdb={form}{bits}.pdb", *flags], check=True)
    return output


def site(report):
    """Frames of the site with the ten blocks, from keep on to main, and then the rest."""
    for each in report["sites"]["bytes"]:
        names = [frame["function"] for frame in each["stack"]]
        if each["count"] == 10 and "main" in names:
            at = names.index("keep") if "keep" in names else 0
            end = names.index("main") + 1
            return each["stack"][at:end], names[end:]
    raise AssertionError(report["sites"]["bytes"])


def words(frames):
    return [(frame["function"], re.split(r"[/\\]", frame["file"] or "")[-1], frame["line"],
             frame["inlined"]) for frame in frames]


def helped(there, frames, trace):
    """Read by Wine's own dbghelp: lines are those of the debug information where nothing is inlined."""
    for mine, other in zip(frames, there, strict=True):
        assert (mine["function"], mine["inlined"]) == (other["function"], other["inlined"]), there
        assert other["line"] in (None, mine["line"]), (there, frames)
    assert there[0]["line"] == 7 and there[-1]["line"] == 26, there
    said = libwin.wine(EXE, "symbols", trace, prefix="prefix", seconds=120, text=True).stdout
    assert re.search(r"^dbghelp +Z:.*dwarf4", said, re.M), said


def bundled(program, trace, frames):
    subprocess.run([TIDEMARK, "bundle", trace], check=True, capture_output=True)
    os.rename(program, "elsewhere.exe")
    done = subprocess.run([TIDEMARK, "report", "--json", trace], check=True, capture_output=True)
    assert site(json.loads(done.stdout))[0] == frames, (done, frames)
    done = libwin.wine(EXE, "report", "--json", trace, prefix="prefix", seconds=120, text=True)
    assert site(json.loads(done.stdout))[0] == frames, (done, frames)
    os.rename("elsewhere.exe", program)


WHOLE = [("keep", "sites.c", 7, False), ("via", "sites.c", 15, True),
         ("work", "sites.c", 21, False), ("main", "sites.c", 26, False)]
SYSTEM = {"BaseThreadInitThunk", "RtlUserThreadStart", "call_thread_func"}

libwin.begin_prefix()
for bits in libwin.WIDTHS:
    for form in ("dwarf", "dwarf4", "pdb"):
        program, trace = build(bits, form), f"{form}{bits}.tide"
        done = libwin.wine(EXE, "record", "-o", trace, "--",
                           libwin.windows_path(program), prefix="prefix",
                           seconds=120, text=True)
        assert done.returncode == 0, done
        here = json.loads(subprocess.run([TIDEMARK, "report", "--json", trace], check=True,
                                         capture_output=True).stdout)
        frames, rest = site(here)
        assert words(frames) == WHOLE, (form, bits, words(frames))
        assert SYSTEM & set(rest), (form, bits, rest)
        done = libwin.wine(EXE, "report", "--json", trace, prefix="prefix", seconds=120, text=True)
        there, _ = site(json.loads(done.stdout))
        if form == "pdb":
            assert there == frames, (there, frames)
        elif form == "dwarf4":
            helped(there, frames, trace)
        else:
            assert [frame["function"] for frame in there] == ["keep", "work", "main"], there
            said = libwin.wine(EXE, "report", trace, prefix="prefix", seconds=120, text=True).stdout
            assert "of DWARF are not read on Windows" in " ".join(said.split()), said
        asked = ["window", "--json", "--by", "stack", trace]
        done = libwin.wine(EXE, *asked, prefix="prefix", seconds=120, text=True)
        rows = [[frame["function"] for frame in row["keys"]["stack"]]
                for row in json.loads(done.stdout)["rows"]]
        names = [frame["function"] for frame in there]
        assert any(row[at:at + len(names)] == names for row in rows for at in range(len(row))), rows
        done = libwin.wine(EXE, "map", "--json", trace, prefix="prefix", seconds=120, text=True)
        assert json.loads(done.stdout)["rows"] is not None, done
        bundled(program, trace, frames)
        print(f"ok {form}, {bits} bits: {' < '.join(name for name, *_ in words(frames))}")

libwin.end_prefix()
