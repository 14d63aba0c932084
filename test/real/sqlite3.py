#!/usr/bin/env -S python3 -B
# timeout: 300
# parallel: yes
"""sqlite3, a table, an index and a few questions; nothing in it is random."""
import libreal

SCRIPT = """
CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, price INTEGER);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
INSERT INTO item SELECT i, 'item ' || (i * 7919 % 100003), i * 31 % 1009 FROM n;
CREATE INDEX item_name ON item(name);
SELECT count(*), sum(price), max(name) FROM item;
SELECT price, count(*) FROM item GROUP BY price ORDER BY 2 DESC, 1 LIMIT 5;
SELECT count(*) FROM item a JOIN item b ON a.name = b.name WHERE a.id < 1000;
"""

sqlite3 = libreal.find_program("sqlite3")
env = libreal.environment()
for name, rows in (("big", 500_000), ("short", 10_000)):
    with open(f"{name}.sql", "w", encoding="ascii") as file:
        file.write(SCRIPT.format(rows=rows))
proof = libreal.Proof()

untraced = libreal.must_run("big.untraced", [sqlite3, "untraced.db"], env, "big.sql")
recording = libreal.record("big", [sqlite3, "traced.db"], env, "big.sql")
libreal.check_same_run(proof, "big", untraced, recording)
libreal.check_sane(proof, "big", recording)
with open("untraced.db", "rb") as one, open("traced.db", "rb") as other:
    proof.check(one.read() == other.read(), "big: the database is the same, byte for byte")
proof.check(recording.heap["allocations"] > 500_000, "big: more than 500,000 allocations",
            recording.heap)

short = libreal.Witnesses(proof, "short", [sqlite3, ":memory:"], env, "short.sql")
short.run()
short.check()
proof.finish()
