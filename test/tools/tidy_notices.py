#!/usr/bin/env python3
"""tools/tidy notices each kind of mistake, in a small tree that has one of each.

Seen from outside: a tree without mistakes has no finding; then each mistake is made alone, and the
one finding that it must cause is there.
"""
# parallel: yes
import os
import shutil
import subprocess
import sys

SOURCE = os.environ["TIDEMARK_SOURCE"]

STYLE = """<!-- floors:begin -->
| folder | may include | must not |
|---|---|---|
| `wire` | | |
| `base` | | |
| `cli` | `base` | |
| `recorder` | `wire` | |
<!-- floors:end -->
<!-- words:begin -->
| `told/dear` | messages, man, headers, code | recorded | `not told apart` |
<!-- words:end -->
<!-- circles:begin -->
<!-- circles:end -->
[a link](STYLE.md)
"""
TREE = {
    "STYLE.md": STYLE,
    "src/wire/number.h": "// number: one.\nint number_one(void); // always 1\n",
    "src/wire/number.c": '#include "wire/number.h"\n\nint number_one(void)\n{\n\treturn 1;\n}\n',
    "src/base/word.h": "// word: one.\n\n// Never empty.\nint word_first(void);\n",
    "src/base/word.c": '#include "base/word.h"\n\nint word_first(void)\n{\n\treturn 1;\n}\n',
    "src/cli/cmd_say.c": '// say: one.\n#include "base/word.h"\n\nconst int cmd_say = 1;\n',
    "src/recorder/exports.map": "{ global: hooked; local: *; };\n",
    "src/recorder/imports.txt": "# nothing but\nneeded\n",
    "src/recorder/hook_malloc_linux.c": "// hook: one.\nextern int needed(void) __attribute__((weak));\n"
                                 "int hooked(void);\n\n"
                                 "int hooked(void)\n{\n\treturn needed();\n}\n",
    "docs/man/tidemark-say.1": ".TH say 1\n",
    "docs/glossary.md": "| **word** | one |\n",
    "test/unit/word_test.c": "int main(void)\n{\n\treturn 0;\n}\n",
}


def write(path, text):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def build():
    """What meson would have built, as far as tidy looks."""
    for folder, target in (("wire", "libtidemark_host.a.p"), ("base", "libtidemark_host.a.p"),
                           ("cli", "tidemark.p"), ("recorder", "libtidemark.so.p")):
        os.makedirs(f"build/{target}", exist_ok=True)
        for name in os.listdir(f"src/{folder}"):
            if name.endswith(".c") and name != "unlisted.c":
                subprocess.run(["gcc", "-fPIC", "-Isrc", "-c", f"src/{folder}/{name}",
                                "-o", f"build/{target}/src_{folder}_{name}.o"], check=True)
    for library in ("libtidemark.so", "libtidemark-musl.so"):
        subprocess.run(["gcc", "-shared", "-nostdlib", "-o", f"build/{library}",
                        "build/libtidemark.so.p/src_recorder_hook_malloc_linux.c.o"], check=True)
    os.makedirs("build/test", exist_ok=True)
    write("build/test/word_test", "")


def findings():
    said = subprocess.run([sys.executable, "tools/tidy", "--build", "build"],
                          capture_output=True, text=True)
    return said.returncode, said.stdout + said.stderr


def make_tree(changes):
    for folder in ("src", "docs", "test", "build", "tools"):
        shutil.rmtree(folder, ignore_errors=True)
    os.makedirs("tools")
    for name in ("tools/tidy", "tools/tidy_modules.py", "tools/tidy_words.py", ".clang-format"):
        shutil.copy(os.path.join(SOURCE, name), name)
    for path, text in {**TREE, **changes}.items():
        if text is None:
            continue
        write(path, text)
    build()


WORD = TREE["src/base/word.c"]
MISTAKES = [
    ("an include above its floor", "may not include",
     {"src/wire/number.c": '#include "base/word.h"\n' + TREE["src/wire/number.c"]}),
    ("an include that climbs", "climbs",
     {"src/base/word.c": '#include "../src/base/word.h"\n' + WORD}),
    ("a system header where there is no system", "freestanding",
     {"src/wire/number.c": "#include <stdio.h>\n\n" + TREE["src/wire/number.c"]}),
    ("two files of one name", "has the same name",
     {"src/wire/word.h": TREE["src/base/word.h"]}),
    ("a folder without a floor", "has no row in the floors",
     {"src/attic/word_attic.h": TREE["src/base/word.h"]}),
    ("Windows in the middle of things", "_WIN32",
     {"src/base/word.c": WORD + "\n#ifdef _WIN32\n#endif\n"}),
    ("a visible name without its file's prefix", "visible name stray",
     {"src/base/word.c": WORD + "\nint stray;\n"}),
    ("a source that nobody builds", "src/base/unlisted.c:1: is not built",
     {"src/base/unlisted.c": WORD}),
    ("a unit test that nobody builds", "test/unit/lost_test.c:1: is not built",
     {"test/unit/lost_test.c": TREE["test/unit/word_test.c"]}),
    ("a public function without a comment", "word_first has no comment",
     {"src/base/word.h": "// word: one.\n\nint word_first(void);\n"}),
    ("a command without a man page", "has no docs/man/tidemark-say.1",
     {"docs/man/tidemark-say.1": None}),
    ("a man page that is not installed", "meson.build:1: does not name docs/man/tidemark-say.1",
     {"docs/man/meson.build": "'tidemark-said'\n"}),
    ("a man page that the one for the whole does not have", "tidemark.1:1: does not name docs/man/tidemark-say.1",
     {"docs/man/tidemark.1": ".BR tidemark\\-said (1)\n"}),
    ("a link that leads nowhere", "leads nowhere",
     {"STYLE.md": STYLE + "[lost](nowhere.md)\n"}),
    ("a link to a heading that is not there", "no such heading",
     {"STYLE.md": STYLE + "[lost](STYLE.md#nowhere)\n"}),
    ("a coined word that the glossary does not have", "*lane* has no row",
     {"src/base/word.h": "// word: one.\n\n// In a *lane*.\nint word_first(void);\n"}),
    ("a row of the glossary without a use", "**lane** is used nowhere",
     {"docs/glossary.md": TREE["docs/glossary.md"] + "| **lane** | one |\n"}),
    ("a word that is not ours in a message", "word.c:8: \"told\"",
     {"src/base/word.c": WORD + "\nstatic const char text[] = \"nothing was told\";\n"}),
    ("a word that is not ours in a man page", "say.1:2: \"dear\"",
     {"docs/man/tidemark-say.1": ".TH say 1\nIt is dear.\n"}),
    ("a word that is not ours in a comment of a source", "word.c:1: \"told\"",
     {"src/base/word.c": "// What was told.\n" + WORD}),
    ("a word that is not ours in a header", "word.h:3: \"told\"",
     {"src/base/word.h": "// word: one.\n\n// Is told.\nint word_first(void);\n"}),
    ("a comment that names a file that is gone", "lost.h is not there",
     {"src/base/word.c": "// See (lost.h).\n" + WORD}),
    ("a header's comment that names a function that is gone", "word.h:3: word_last is not there",
     {"src/base/word.h": "// word: one.\n\n// Before word_last.\nint word_first(void);\n"}),
    ("a word of the glossary with two rows", "**word** has a row already",
     {"docs/glossary.md": TREE["docs/glossary.md"] + "| **word** | two |\n"}),
    ("a header of the system in the middle of things", "<unistd.h> outside of os/",
     {"src/base/word.c": WORD.replace("\n", "\n#include <unistd.h>\n", 1)}),
    ("instructions of one processor in the middle of things", "<emmintrin.h> outside of base/",
     {"src/trace/word_fast.c": "// Fast.\n#include <emmintrin.h>\n"}),
    ("a word of one processor that no page names", "word.c:1: rsp is x86's",
     {"ARCHITECTURE.md": "# A\n\n## To port it\n\n`base/other.c`\n", "src/base/word.c": WORD + "// In rsp.\n"}),
    ("a register of 32 bits that no page names", "word.c:1: esi is x86's",
     {"ARCHITECTURE.md": "# A\n\n## To port it\n\n`base/other.c`\n", "src/base/word.c": WORD + "// In esi.\n"}),
    ("a file that is gone, of a folder that is new", "attic/lost.c is not there",
     {"ARCHITECTURE.md": "# A\n\nSee `attic/lost.c`.\n", "src/attic/word_attic.h": TREE["src/base/word.h"]}),
    ("a circle of modules", "circle of modules that STYLE.md (section 1) does not explain: base/text base/word",
     {"src/base/word.c": '#include "base/text.h"\n' + WORD,
      "src/base/text.h": TREE["src/base/word.h"].replace("word", "text"),
      "src/base/text.c": '#include "base/text.h"\n#include "base/word.h"\n'}),
    ("a circle that is explained and gone", "no circle any more: base/text base/word",
     {"STYLE.md": STYLE.replace("<!-- circles:end -->",
                                "| `base` | `text` `word` | why |\n<!-- circles:end -->")}),
    ("a source without a header that says nothing", "does not begin with a comment",
     {"src/base/alone.c": "static int alone __attribute__((unused));\n"}),
    ("an export that is not listed", "export hooked of libtidemark.so is not listed",
     {"src/recorder/exports.map": "{ global: other; local: *; };\n"}),
    ("an import that is not listed", "import needed of libtidemark.so is not listed",
     {"src/recorder/imports.txt": "# nothing\n"}),
    ("a line that is too long", "columns",
     {"src/base/word.c": WORD + "// " + "x" * 100 + "\n"}),
]


def main():
    verdicts = []
    make_tree({})
    code, said = findings()
    verdicts.append(("a tree without mistakes has no finding", code == 0, said))
    for what, expected, changes in MISTAKES:
        make_tree(changes)
        code, said = findings()
        verdicts.append((f"{what} is noticed", code == 1 and expected in said, said))
    print(f"1..{len(verdicts)}")
    for number, (what, well, said) in enumerate(verdicts, 1):
        print(f"{'ok' if well else 'not ok'} {number} - {what}")
        if not well:
            print("# " + said.replace("\n", "\n# "))
    return 0 if all(verdict[1] for verdict in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
