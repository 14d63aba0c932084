#!/usr/bin/env -S python3 -B
# timeout: 300
# parallel: yes
"""node: threads, code made while it runs, and buffers outside its own heap."""
import json

import libreal

SCRIPT = r"""
const crypto = require('crypto');
const zlib = require('zlib');
const rounds = Number(process.argv[2]);
let kept = [], sum = 0;
for (let i = 0; i < rounds; i++) {
	const buffer = Buffer.alloc(9000 + i % 5000, i & 255);
	if (i % 10 === 0) kept.push(buffer);
	const object = { id: i, list: Array.from({ length: i % 50 }, (_, k) => `item ${k}`) };
	sum += JSON.stringify(object).length;
	if (i % 50 === 0) sum += zlib.deflateSync(buffer).length;
	if (i % 100 === 0) sum += crypto.createHash('sha256').update(buffer).digest()[0];
}
const map = new Map(kept.map((buffer, i) => [i, buffer.toString('hex', 0, 8)]));
zlib.deflate(Buffer.concat(kept.slice(0, 20)), (error, packed) => {
	console.log(kept.length, map.size, sum, error, zlib.inflateSync(packed).length);
});
"""

node = libreal.find_program("node")
env = libreal.environment()
with open("work.js", "w", encoding="ascii") as file:
    file.write(SCRIPT)
proof = libreal.Proof()

command = [node, "work.js", "5000"]
untraced = libreal.must_run("untraced", command, env)
recording = libreal.record("node", command, libreal.witness_environment("counts", env))
libreal.check_same_run(proof, "node", untraced, recording)
libreal.check_sane(proof, "node", recording)
libreal.check_witness_of_same_run(proof, "node", recording, "counts")
proof.check(recording.heap["allocations"] > 20_000, "node: more than 20,000 allocations",
            recording.heap)
rows = json.loads(libreal.must_run("heaps", [libreal.TIDEMARK, "window", "--layer", "vm", "--by", "owner,heap",
                                             "--json", recording.trace], env).output())["rows"]
v8 = {row["keys"]["owner"]: row["size"] for row in rows if row["keys"].get("heap") == "V8 heap"}
proof.check(list(v8) == ["program"] and v8["program"] > 4 << 20, "node: V8's heap is named", rows)
proof.finish()
