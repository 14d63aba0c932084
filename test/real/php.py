#!/usr/bin/env python3
"""PHP: its extensions are opened with RTLD_DEEPBIND, and find libc's malloc before ours. They are
recorded all the same: no free of theirs is without its allocation."""
# parallel: yes
import glob
import json
import os
import shutil

from libguest import TIDEMARK, Skip, check, environment, equal, main, record, run, test

SCRIPT = """<?php
$x = new DOMDocument();
$x->loadXML('<r>' . str_repeat('<a b="c">t</a>', 2000) . '</r>');
foreach ($x->getElementsByTagName('a') as $n) $n->setAttribute('q', strtoupper($n->nodeValue));
$s = $x->saveXML();
$p = xml_parser_create();
xml_parse($p, $s, true);
xml_parser_free($p);
echo strlen($s), ' ', strlen(simplexml_load_string($s)->asXML()), "\\n";
"""


def php():
    found = shutil.which("php")
    if not found or not glob.glob("/usr/lib/php/*/dom.so"):
        raise Skip("needs php-cli and php-xml")
    with open("a.php", "w", encoding="utf-8") as file:
        file.write(SCRIPT)
    return [os.path.realpath(found), "a.php"]


@test
def extensions_lose_no_free():
    command = php()
    plain = run(command)
    equal(0, plain.code, plain.err)
    for zend in ("1", "0"):
        ended = record(command, "--strict", "-f", env=environment(USE_ZEND_ALLOC=zend))
        shutil.copy("t.tide", f"z{zend}.tide")
        equal(plain.out, ended.out, "PHP's own answer")
        report = json.loads(run([TIDEMARK, "report", "--json", "t.tide"]).out)
        heap = report["heap"]
        equal((0, 0), (heap["orphan_frees"], heap["lost_frees"]), "orphans and lost frees")
        equal([], report["trace"]["warnings"], "warnings")
    info = run([TIDEMARK, "info", "t.tide"]).out
    check("Zend has none (USE_ZEND_ALLOC=0 is set): its blocks are malloc's" in info, info)
    for trace, heap in (("z0", "Zend has none (USE"), ("z1", "Zend's heap as its mappings of 2 MiB")):
        process = json.loads(run([TIDEMARK, "info", "--json", f"{trace}.tide"]).out)["processes"][0]
        check(process["own_heap"].startswith(heap) and "unless" not in process["own_heap"], process)
    answer = json.loads(run([TIDEMARK, "window", "--layer", "vm", "--by", "heap", "--json", "z1.tide"]).out)
    check(any(row["keys"]["heap"] == "Zend heap" and row["size"] >= 2 << 20 for row in answer["rows"]), answer["rows"])
    check("own heap: Zend's heap" in run([TIDEMARK, "report", "z1.tide"]).out, "in the report")


@test
def libxml_s_blocks_are_recorded():
    record(php(), "--strict")
    for module, least in (("libxml2", 10000), ("dom.so", 1)):
        # The list of stacks alone: each allocation is in one row.
        window = run([TIDEMARK, "window", "--json", "--by", "stack", "--module", module, "t.tide"])
        equal(0, window.code, window.err)
        count = sum(row["allocated_count"] for row in json.loads(window.out)["rows"])
        check(count >= least, f"{count} allocations by {module}")


main()
