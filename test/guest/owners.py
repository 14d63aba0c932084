#!/usr/bin/env python3
"""Whose each piece of memory is: what the program itself knows of it, and `active` says."""
# parallel: yes
import json

from libguest import TIDEMARK, check, equal, main, program, record, run, test


def active(*words):
    done = run([TIDEMARK, "active", "--json", "--at", "mark:here", *words, "t.tide"])
    equal(0, done.code, done.err)
    return sorted((int(row["address"], 16), row["size"], row["owner"])
                  for row in json.loads(done.out)["rows"])


def owner_at(rows, address):
    found = [owner for start, size, owner in rows if start <= address < start + size]
    return found[0] if len(found) == 1 else found


@test
def every_mapping_and_block_has_its_owner():
    ended = record([program("owners")])
    truth = [line.split() for line in ended.out.splitlines()]
    check(len(truth) > 120, "only", len(truth), "lines")
    rows = {"vm": active("--layer", "vm"), "heap": active("--layer", "heap")}
    wrong = [(layer, address, owner, owner_at(rows[layer], int(address, 16)))
             for layer, address, owner in truth
             if owner_at(rows[layer], int(address, 16)) != owner]
    equal([], wrong, "what the program says, and active")


main()
