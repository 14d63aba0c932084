#!/usr/bin/env python3
"""embed: the viewer's page as C, with the policy that allows what is in it and nothing else.

    embed.py page.html out.c
"""
import base64
import hashlib
import re
import sys

MARKS = ("<!--tidemark:policy-->", "<!--tidemark:data-->")


def sources(text, element):
    """'sha256-…' of each inline element of that name; 'none' without any."""
    bodies = re.findall(rf"<{element}(?:\s[^>]*)?>(.*?)</{element}>", text, re.S)
    hashes = [base64.b64encode(hashlib.sha256(body.encode()).digest()).decode() for body in bodies]
    return " ".join(f"'sha256-{value}'" for value in hashes) or "'none'"


def main():
    with open(sys.argv[1], encoding="utf-8", newline="") as file:
        text = file.read()
    for mark in MARKS:
        if text.count(mark) != 1:
            sys.exit(f"embed: {sys.argv[1]} needs {mark} once, and has it {text.count(mark)} times")
    if re.search(r"<(?:script|link|img)\b[^>]*\b(?:src|href)\s*=\s*[\"']?https?:", text):
        sys.exit(f"embed: {sys.argv[1]} loads something from elsewhere")
    policy = ("default-src 'none'; script-src " + sources(text, "script") + "; style-src " +
              sources(text, "style") + "; connect-src 'self'; img-src 'self' data: blob:; "
              "base-uri 'none'; form-action 'none'")
    data = text.encode()
    signed = [byte - 256 * (byte > 127) for byte in data]
    rows = [",".join(map(str, signed[at:at + 32])) for at in range(0, len(data), 32)]
    with open(sys.argv[2], "w", encoding="ascii") as out:
        out.write('#include "view/page.h"\n\nconst char page_html[] = {\n' +
                  ",\n".join(rows) + ",0\n};\n" +
                  f"const size_t page_html_size = {len(data)};\n" +
                  f'const char page_policy[] = "{policy}";\n')


if __name__ == "__main__":
    main()
