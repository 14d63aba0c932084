#!/usr/bin/env python3
# parallel: yes
"""--markdown of the commands that write tables: the rows of --csv with figures for people, the title, the
warnings, and how many rows are left out."""
import csv
import io
import json
import re

from libanswer import assemble, refused, run
from libtests import check, equal, main, test

COMMANDS = ("report", "window", "growth", "transients", "active", "pins")
TRACES = ("kitchen", "family", "crowd")


def tables(text):
    """Of each table its heading and its rows."""
    found = []
    for block in re.findall(r"(?:^\|.*\n)+", text, re.M):
        lines = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
                 for line in block.splitlines()]
        check(all(len(line) == len(lines[0]) for line in lines), block)
        check(all(re.fullmatch(":---|---:", cell) for cell in lines[1]), lines[1])
        found.append((lines[0], lines[2:]))
    return found


@test
def it_has_as_many_rows_as_the_values_have():
    for trace in TRACES:
        path = assemble(trace)
        for command in COMMANDS:
            text = run(command, path, "--markdown", "-n", "3").stdout
            values = list(csv.DictReader(io.StringIO(run(command, path, "--csv", "-n", "3").stdout)))
            equal(len(values), sum(len(rows) for _, rows in tables(text)), (trace, command))
            check(text.startswith(f"### tidemark {command}\n\n{trace}.tide"), text[:200])
            check(values or "No rows." in text, text)


@test
def lines_of_json_are_the_rows_of_json():
    for trace in TRACES:
        path = assemble(trace)
        for command in COMMANDS:
            lines = [json.loads(line) for line in run(command, path, "--jsonl", "-n", "3").stdout.splitlines()]
            whole = json.loads(run(command, path, "--json", "-n", "3").stdout)
            if command == "report":
                sections = {line.pop("section"): None for line in lines}
                equal([row for key in sections for row in whole["sites"][key]], lines, (trace, command))
            elif command != "transients":  # whose document has spikes and series apart
                equal(whole["rows"], lines, (trace, command))


@test
def figures_are_those_of_the_values():
    rows = tables(run("active", assemble("kitchen"), "--markdown").stdout)[0]
    equal(["layer", "address", "size"], rows[0][:3])
    equal(["heap", "0x5000", "2.0 KiB"], rows[1][0][:3])
    heading, rows = tables(run("diff", assemble("kitchen"), assemble("crowd"), "--markdown").stdout)[0]
    first = dict(zip(heading, rows[0]))
    equal(("gone", "−2.0 KiB", "2.0 KiB"),
          (first["state"], first["live bytes"], first["live bytes before"]))
    check(first["stack"].startswith("stir (src/stir.c:7)<br>") and "… 10 more" in first["stack"])


@test
def what_is_left_out_is_said():
    text = run("active", assemble("kitchen"), "--markdown", "-n", "3").stdout
    everything = len(tables(run("active", assemble("kitchen"), "--markdown", "-n", "0").stdout)[0][1])
    check(f"*{everything - 3} more rows are left out" in text, text)
    check("left out" not in run("active", assemble("kitchen"), "--markdown", "-n", "0").stdout)
    text = run("window", assemble("kitchen"), "--markdown", "--by", "stack", "-n", "2").stdout
    rows = len(tables(run("window", assemble("kitchen"), "--markdown", "--by", "stack", "-n", "0").stdout)[0][1])
    found = re.search(r"\*(\d+) more row", text)
    equal(rows - len(tables(text)[0][1]), int(found[1]), text)


@test
def warnings_are_in_it_and_nowhere_else():
    for command in COMMANDS:
        done = run(command, assemble("crowd"), "--markdown")
        check("> **Warning:** the trace is not whole" in done.stdout, command)
        equal("", done.stderr, command)
    done = run("diff", assemble("kitchen"), assemble("crowd"), "--markdown")
    check("> **Warning:** the trace is not whole" in done.stdout and done.stderr == "")
    check("**A** kitchen.tide" in done.stdout and "**B** crowd.tide" in done.stdout)


@test
def names_are_no_markup():
    path = assemble("markup", "process p pid=7\nthread t p tid=7\n"
                    'stack s "a|b<i>`*_[x](y)" "f|g.c":3\n+1ms t malloc s 0x1000 10\nend\n')
    text = run("report", path, "--markdown").stdout
    check(r"a\|b&lt;i&gt;\`\*\_\[x\](y) (f\|g.c:3)" in text, text)
    tables(text)


@test
def trees_are_refused():
    check("--markdown" in refused("window", assemble("kitchen"), "--tree", "leaf", "--markdown"))


main()
