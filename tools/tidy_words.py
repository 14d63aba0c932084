"""What tools/tidy checks of the words: the glossary, words that are not ours, files that comments name.

    findings(source)   yields (path, line, what is wrong)

The words that are not ours are a table of STYLE.md, between <!-- words:begin --> and <!-- words:end -->.
"""
import os
import re

STAR = re.compile(r"(?<![\w*/(`])\*([a-z][a-z-]*)\*(?![\w*])")
STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
COMMENT = re.compile(r"//.*")
PLACES = ("messages", "man", "headers", "docs", "code")
NOT_FOR_USERS = ("docs/notes", "docs/glossary.md")
GENERATED = ("page.html",)


def read(source, path):
    with open(os.path.join(source, path), encoding="utf-8") as file:
        return file.read()


def files_below(source, folder, *extensions):
    for root, folders, names in os.walk(os.path.join(source, folder)):
        folders.sort()
        for name in sorted(names):
            if name.endswith(extensions) and name not in GENERATED:
                yield os.path.relpath(os.path.join(root, name), source)


def table_between(source, path, name):
    """The rows of a table between <!-- name:begin --> and <!-- name:end -->, as lists of cells."""
    if not os.path.exists(os.path.join(source, path)):
        return
    text = read(source, path)
    first = text[:text.find(f"<!-- {name}:begin -->")].count("\n") + 1
    table = text.partition(f"<!-- {name}:begin -->")[2].partition(f"<!-- {name}:end -->")[0]
    for number, line in enumerate(table.splitlines(), first):
        if line.startswith("|"):
            yield number, [cell.strip() for cell in line.strip("|").split("|")]


def comments(text):
    for number, line in enumerate(text.splitlines(), 1):
        found = COMMENT.search(STRING.sub('""', line))
        if found:
            yield number, found.group()


def glossary(source):
    """line -> the word of its row"""
    if not os.path.exists(os.path.join(source, "docs/glossary.md")):
        return {}
    lines = read(source, "docs/glossary.md").splitlines()
    rows = ((number, re.match(r"\| \*\*(.+?)\*\*", line)) for number, line in enumerate(lines, 1))
    return {number: row.group(1).lower() for number, row in rows if row}


def check_glossary(source):
    """A starred word in a header has a row; a row has a use, and there is one of its words and what it is of."""
    words = glossary(source)
    known = set(words.values())
    rows = set()
    for number in words:
        row = read(source, "docs/glossary.md").splitlines()[number - 1].split(" | ")[0]
        if row in rows:
            yield "docs/glossary.md", number, f"{row[2:]} has a row already"
        rows.add(row)
    text = []
    for path in files_below(source, "src", ".c", ".h"):
        text.append(read(source, path).lower())
        if not path.endswith(".h"):
            continue
        for number, comment in comments(text[-1]):
            for word in STAR.findall(comment):
                if not known & {word, word.removesuffix("s")}:
                    yield path, number, f"*{word}* has no row in docs/glossary.md"
    for folder in ("docs", "web/src"):
        text += [read(source, path).lower() for path in files_below(source, folder, ".md", ".1", ".7", ".ts")
                 if path != os.path.join("docs", "glossary.md")]
    text = "\n".join(text)
    for number, word in words.items():
        if not re.search(r"\b" + re.sub(r"[ -]", "[ _-]", re.escape(word).replace("\\", "")), text):
            yield "docs/glossary.md", number, f"**{word}** is used nowhere"


def check_named_functions(source):
    """A name with a header's own prefix that its comments have is in the code."""
    headers = list(files_below(source, "src", ".h"))
    code = set()
    for path in [*headers, *files_below(source, "src", ".c", ".cpp")]:
        code.update(re.findall(r"[a-z]\w+", COMMENT.sub("", read(source, path))))
    for path in headers:
        own = os.path.basename(path).split(".")[0]
        for number, comment in comments(read(source, path)):
            for name in re.findall(rf"\b{own}_\w+(?![\w…*]|\.\.|\.[ch]\b)", comment):
                if name not in code and not any(name == os.path.basename(other)[:-2] for other in headers):
                    yield path, number, f"{name} is not there"


def pieces(source):
    """(place, path, line, text) of all that the words are looked for in."""
    for path in files_below(source, "src", ".c", ".h"):
        text = read(source, path)
        for number, line in enumerate(text.splitlines(), 1):
            if line.lstrip().startswith("#include"):
                continue
            for string in STRING.findall(line.partition("// ")[0]):
                yield "messages", path, number, string
        for number, comment in comments(text):
            yield "headers" if path.endswith(".h") else "code", path, number, comment
    for path in files_below(source, "docs/man", ".1", ".7"):
        for number, line in enumerate(read(source, path).splitlines(), 1):
            if not line.startswith('.\\"'):
                yield "man", path, number, line
    for path in files_below(source, "docs", ".md"):
        if not path.startswith(NOT_FOR_USERS):
            for number, line in enumerate(read(source, path).splitlines(), 1):
                yield "docs", path, number, line


def check_words(source):
    """Words that STYLE.md says are not used, where it says so."""
    rules = []
    for number, cells in table_between(source, "STYLE.md", "words"):
        if len(cells) < 4 or not cells[0].startswith("`"):
            continue
        places = cells[1].split(", ")
        if not set(places) <= set(PLACES):
            yield "STYLE.md", number, f"a word's place is one of {', '.join(PLACES)}"
        allowed = re.findall(r"`([^`]+)`", cells[3])
        rules.append((re.compile(r"\b(?:" + cells[0].strip("`").replace("/", "|") + r")\b", re.I),
                      places, cells[2], re.compile("|".join(allowed) or "(?!)", re.I)))
    for place, path, number, text in pieces(source):
        for word, places, instead, allowed in rules:
            if place not in places:
                continue
            found = word.search(allowed.sub("", text))
            if found:
                yield path, number, f'"{found.group()}" (say: {instead}; STYLE.md, section 2)'


def check_named_files(source):
    """A source file that a comment or a document names is there."""
    paths = list(files_below(source, "src", ".c", ".h"))
    there = {os.path.basename(path) for path in [*paths, *files_below(source, "include", ".h")]}
    folders = "|".join(sorted({path.split(os.sep)[1] for path in paths}))
    named = re.compile(rf"\((?:see )?(\w\w+\.[ch])\b(?!:)|\b((?:{folders})/(?:\w+/)*\w+\.[ch])\b")
    for path in [*paths, *files_below(source, "docs", ".md"), "ARCHITECTURE.md", "CONTRIBUTING.md", "STYLE.md"]:
        if not os.path.exists(os.path.join(source, path)):
            continue
        text = read(source, path)
        lines = comments(text) if path.endswith((".c", ".h")) else enumerate(text.splitlines(), 1)
        for number, line in lines:
            for name in named.finditer(line):
                name = name.group(1) or name.group(2)
                if re.search("[A-Z]", name):
                    continue  # a name to be filled in
                whole = "/" in name and os.path.exists(os.path.join(source, "src", name))
                if not whole and ("/" in name or os.path.basename(name) not in there):
                    yield path, number, f"{name} is not there"


def findings(source):
    yield from check_glossary(source)
    yield from check_words(source)
    yield from check_named_files(source)
    yield from check_named_functions(source)
