"""What tools/tidy checks of modules: systems, circles, comments and assertions by folder.

    findings(source)   yields (path, line, what is wrong)
    show(source)       prints, per folder, comment lines per line of code and assertions

A module is what has one name: x.c, x.h, x_linux.c and x_own.h are the module x, and so is x_part.c
where there is no x_part.h. What must not be silent is a table of STYLE.md, between
<!-- circles:begin --> and <!-- circles:end -->: circles that are there with a reason.
"""
import os
import re

from tidy_words import files_below, read, table_between

SYSTEM_FILE = re.compile(r"_(posix|linux|win32)\.[ch]$")
SUFFIXES = ("posix", "linux", "win32", "x64", "i386", "own")

# Standard C, and threads, which every system that we build for has by this name.
PORTABLE = re.compile(r"(assert|ctype|errno|float|inttypes|limits|locale|math|pthread|setjmp|signal|stdalign|"
                      r"stdarg|stdatomic|stdbool|stddef|stdint|stdio|stdlib|string|strings|time)\.h")
# Libraries, and what the compiler brings.
LIBRARIES = re.compile(r"(zstd|zlib|ini|lzma|expat|dwarf|elf|gelf|microhttpd|regex|cpuid|\w+intrin)\.h|elfutils/.*")
# What only x86 has: its registers, its instructions by name, the compiler's words for it.
PROCESSOR = re.compile(r"\b([re](?:[abcd]x|[sd]i|[sbi]p|flags)|r(?:8|9|1[0-5])|[xy]mm\d+|[fg]s_base|orig_[re]ax|rdtscp?|"
                       r"user_regs_struct|cpuid\.h|\wmmintrin\.h|EM_X86_64|EM_386|R_X86_64_\w+|R_386_\w+|__x86_64__|__i386__)\b")
PROCESSOR_FILE = re.compile(r"_(x64|i386)_|_win32\.[ch]$")  # and Windows, which has a page of its own
WITHOUT_LIBRARIES = ("wire", "recorder")  # freestanding: tools/tidy has their list

RATIO_C_MIN, RATIO_H_MIN, ASSERTS_MIN = 0.13, 0.58, 10.2  # what there is; STYLE.md has the aims


def folder_of(path):
    return path.split(os.sep)[1]


def check_systems(source):
    """Headers of a system are included under os/, and in files that name the system."""
    for path in files_below(source, "src", ".c", ".h"):
        if SYSTEM_FILE.search(path) or folder_of(path) in ("os", *WITHOUT_LIBRARIES):
            continue
        for number, line in enumerate(read(source, path).splitlines(), 1):
            name = re.match(r"\s*#\s*include\s*<([^>]+)>", line)
            if name and not PORTABLE.fullmatch(name.group(1)) and not LIBRARIES.fullmatch(name.group(1)):
                yield path, number, f"<{name.group(1)}> outside of os/, *_posix, *_linux and *_win32"
            elif name and name.group(1).endswith("intrin.h") and folder_of(path) != "base":
                yield path, number, f"<{name.group(1)}> outside of base/: sse2.h has a plain form of each"


def check_processors(source):
    """What is of a processor says so by its name, or in ARCHITECTURE.md, where a port begins."""
    if not os.path.exists(os.path.join(source, "ARCHITECTURE.md")):
        return
    page = read(source, "ARCHITECTURE.md").partition("\n## To port it\n")[2].partition("\n## ")[0]
    named = {os.path.basename(name) for name in re.findall(r"`([\w/]+\.[ch])`", page.partition("**macOS**")[0])}
    for path in files_below(source, "src", ".c", ".h"):
        name = os.path.basename(path)
        if PROCESSOR_FILE.search(path) or name in named:
            continue
        found = PROCESSOR.search(read(source, path))
        if found:
            yield path, 1, f"{found.group()} is x86's: a row of ARCHITECTURE.md (To port it), or _x64 in its name"


def stem_of(path):
    words = os.path.splitext(os.path.basename(path))[0].split("_")
    while len(words) > 1 and words[-1] in SUFFIXES:
        words.pop()
    return words


def module_of(path, headers):
    """engine/index_read for src/engine/index/index_read.c"""
    folder, words = folder_of(path), stem_of(path)
    for count in range(len(words), 0, -1):
        name = f"{folder}/{'_'.join(words[:count])}"
        if name in headers:
            return name
    return f"{folder}/{'_'.join(words)}"


def modules(source):
    """module -> the modules that it includes"""
    paths = list(files_below(source, "src", ".c", ".h"))
    headers = {f"{folder_of(path)}/{'_'.join(stem_of(path))}" for path in paths if path.endswith(".h")}
    graph = {}
    for path in paths:
        module = module_of(path, headers)
        to = graph.setdefault(module, set())
        for name in re.findall(r'^#include "([^"]+\.[ch])"', read(source, path), re.M):
            to.add(module_of(os.path.join("src", name), headers))
        to.discard(module)
    return graph


def reachable(graph, start):
    seen, todo = set(), [start]
    while todo:
        for name in graph.get(todo.pop(), ()):
            if name not in seen:
                seen.add(name)
                todo.append(name)
    return seen


def circles(graph):
    """The sets of modules of which each includes, by others of the set, all of it."""
    below = {name: reachable(graph, name) for name in graph}
    found = {frozenset(other for other in below[name] if name in below.get(other, ()))
             for name in graph if name in below[name]}
    return sorted(found, key=sorted)


def family(circle):
    """Parts of one module that have headers of their own: plot, plot_keys and plot_parts."""
    names = sorted(circle, key=len)
    return all(name.startswith(names[0] + "_") for name in names[1:])


def check_circles(source):
    explained, one_piece = {}, set()
    for number, cells in table_between(source, "STYLE.md", "circles"):
        names = re.findall(r"`(\w+)`", cells[1]) if len(cells) > 2 else []
        folder = cells[0].strip("`")
        if len(cells) > 2 and cells[1] == "all":
            one_piece.add(folder)
        elif names:
            explained[frozenset(f"{folder}/{name}" for name in names)] = number
    for circle in circles(modules(source)):
        if family(circle) or explained.pop(circle, None) or {name.split("/")[0] for name in circle} <= one_piece:
            continue
        names = " ".join(sorted(circle))
        yield sorted(circle)[0].join(("src/", ".c")), 1, f"a circle of modules that STYLE.md (section 1) does not explain: {names}"
    for circle, number in explained.items():
        yield "STYLE.md", number, f"no circle any more: {' '.join(sorted(circle))}"


def measure(source):
    """folder -> [code and comment lines of .c, of .h, assertions, lines]"""
    sums = {}
    for path in files_below(source, "src", ".c", ".h"):
        row = sums.setdefault(folder_of(path), [0, 0, 0, 0, 0, 0])
        at = 0 if path.endswith(".c") else 2
        for line in read(source, path).splitlines():
            row[5] += 1
            if line.lstrip().startswith("//"):
                row[at + 1] += 1
            elif line.strip():
                row[at] += 1
                row[4] += bool(re.search(r"\b(ASSERT|_Static_assert)\(", line))
    return sums


def ratios(rows):
    code_c, comments_c, code_h, comments_h, asserts, lines = (sum(column) for column in zip(*rows))
    return comments_c / max(code_c, 1), comments_h / max(code_h, 1), asserts * 1000 / max(lines, 1)


def check_measures(source):
    sums = measure(source)
    if sum(row[5] for row in sums.values()) < 10000:
        return  # a tree too small to be measured
    c, h, asserts = ratios(sums.values())
    host = ratios([row for folder, row in sums.items() if folder != "recorder"])[2]
    if c < RATIO_C_MIN:
        yield "src", 1, f"{c:.3f} comment lines per line of code in .c, at least {RATIO_C_MIN}"
    if h < RATIO_H_MIN:
        yield "src", 1, f"{h:.2f} comment lines per line of code in .h, at least {RATIO_H_MIN}"
    if host < ASSERTS_MIN:
        yield "src", 1, f"{host:.2f} assertions in 1,000 lines of the host, at least {ASSERTS_MIN}"


def check_heads(source):
    """A .c file without a header of its own begins with a comment that says what it is."""
    paths = list(files_below(source, "src", ".c", ".h"))
    headers = {f"{folder_of(path)}/{'_'.join(stem_of(path))}" for path in paths if path.endswith(".h")}
    for path in paths:
        own = f"{folder_of(path)}/{'_'.join(stem_of(path))}" in headers
        if path.endswith(".c") and not own and not read(source, path).startswith("//"):
            yield path, 1, "has no header of its own, and does not begin with a comment that says what it is"


def show(source):
    sums = measure(source)
    print("comment lines per line of code in .c and .h, assertions in 1,000 lines:")
    for folder, row in [*sorted(sums.items()), ("all", [sum(c) for c in zip(*sums.values())])]:
        c, h, asserts = ratios([row])
        print(f"  {folder:10} {c:5.2f} {h:5.2f} {asserts:5.1f}")


def findings(source):
    yield from check_systems(source)
    yield from check_processors(source)
    yield from check_circles(source)
    yield from check_heads(source)
    yield from check_measures(source)
