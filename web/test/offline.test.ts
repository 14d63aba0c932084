// The answers of a page with its data inside, held against the lifetimes that the data was made of.
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import type { Timeline, TreeAnswer, WindowAnswer } from "../src/ask/types";
import { type Data, decode, octaveRange } from "../src/offline/data";
import { EmbeddedSource } from "../src/offline/embedded";
import { sizeBounds } from "../src/offline/question";

// Twelve stretches of time, the seventh of which begins where a mark lies: between the edges 6 and 7 is what happened at the
// mark's time, but before the mark.
const BUCKETS = 13, MARK = 7;
const timeOf = (edge: number) => (edge < MARK ? edge : edge - 1) * 1000;
const wordOf = (edge: number) => edge === MARK ? "mark:half" : `${timeOf(edge)}ns`;
const NAMES = ["", "malloc", "leak", "spike", "main", "/bin/app", "app.c"];

interface Life { begin: number; end: number; kind: number; stack: number; size: number; thread: number }

// A stream of numbers that is the same each time.
function numbers(seed: number): (below: number) => number {
	let state = seed;
	return (below) => {
		state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
		return Math.floor(state / 2 ** 32 * below);
	};
}

function someLives(): Life[] {
	const pick = numbers(7);
	return Array.from({ length: 400 }, () => {
		const begin = pick(BUCKETS + 1) - 1;
		const end = pick(3) === 0 ? BUCKETS : Math.max(0, begin) + pick(BUCKETS - Math.max(0, begin));
		const kind = end < BUCKETS ? pick(4) === 0 ? 3 : 1 : 0;
		return { begin, end, kind, stack: 1 + pick(2), size: 1 + pick(4), thread: pick(2) };
	});
}

function dataOf(lives: Life[]): Data {
	const duration = timeOf(BUCKETS);
	const octave = (size: number) => size <= 2 ? size : 3;
	return {
		schema: "tidemark-view-data-1",
		view: {
			schema: "", version: "0", file: "x.tide", diff: null, single_file: true, scrubbed: false, coarse: [], complete: true, sampled: false,
			warnings: [], duration_ns: duration, steps: 1, layers: ["heap"], has: { rss: false, map: false, snapshots: false, source: false },
			peak: { heap: { time_ns: 5000, bytes: 1, count: 1 } }, processes: [{ id: 0, pid: 42, exe: "/bin/app", began_ns: 0, ended_ns: null }],
			threads: [{ tid: 42, process_id: 0, name: "app" }, { tid: 43, process_id: 0, name: "worker" }], heaps: ["malloc"], pools: [], diff_duration_ns: null,
		} as unknown as Data["view"],
		info: {} as Data["info"],
		marks: { marks: [{ name: "half", nth: 1, of: 1, time_ns: 6000, process_id: 0, pid: 42, tid: 42 }] },
		edges_ns: Array.from({ length: BUCKETS + 1 }, (_, i) => timeOf(i)), mark_edges: [MARK],
		strings: NAMES,
		frames: { function: [1, 2, 3, 4], file: [0, 6, 6, 6], line: [0, 3, 7, 9], module: [0, 5, 5, 5], offset: [1, 2, 3, 4], inlined: [0, 0, 0, 0] },
		stacks: [[], [0, 1, 3], [0, 2, 3]], stack_ids: [0, 17, 23], faces: [-1, 1, 2], rest: null,
		cells: {
			layer: lives.map(() => 0), process: lives.map(() => 0), thread: lives.map((l) => l.thread), heap: lives.map(() => 0),
			owner: lives.map(() => 0), stack: lives.map((l) => l.stack), octave: lives.map((l) => octave(l.size)), begin: lives.map((l) => l.begin),
			end: lives.map((l) => l.end), kind: lives.map((l) => l.kind), count: lives.map(() => 1), bytes: lives.map((l) => l.size),
		},
		timelines: {},
	};
}

const lives = someLives();
const source = new EmbeddedSource(dataOf(lives));
const ask = (words: Record<string, string>) => source.get<WindowAnswer>("window", Object.entries(words));

// The rules of a window, straight from their words.
function expected(p: number, q: number, exitFrees: boolean, chosen: (life: Life) => boolean) {
	const sums: Record<string, { count: number; size: number; impacting: number }> = {};
	for (const life of lives.filter(chosen)) {
		const end = life.kind === 3 && !exitFrees ? Infinity : life.end;
		if (life.begin >= q || end < p) continue;
		const began = life.begin >= p, freed = end < q;
		const impact = began === freed ? began ? "transient" : "persistent" : "impacting";
		const sum = sums[impact] ??= { count: 0, size: 0, impacting: 0 };
		sum.count++;
		sum.size += life.size;
		if (impact === "impacting") sum.impacting += began ? life.size : -life.size;
	}
	return sums;
}

function told(answer: WindowAnswer) {
	return Object.fromEntries(answer.rows.map((row) =>
		[row.keys.impact, { count: row.count, size: row.size, impacting: row.impacting_size }]));
}

describe("windows of a page with its data inside", () => {
	for (const exitFrees of [false, true])
		it(`are exact for every pair of edges${exitFrees ? ", where an exit frees" : ""}`, async () => {
			for (let p = 0; p <= BUCKETS; p++)
				for (let q = p; q <= BUCKETS; q++) {
					const answer = await ask({ from: wordOf(p), to: wordOf(q), by: "impact", ...(exitFrees ? { "exit-frees": "1" } : {}) });
					expect(told(answer)).toEqual(expected(p, q, exitFrees, () => true));
					expect([answer.from_ns, answer.to_ns]).toEqual([timeOf(p), timeOf(q)]);
				}
		});
	it("take the command line's filters", async () => {
		for (const [words, chosen] of [
			[{ frame: "^leak$" }, (life: Life) => life.stack === 1], [{ "not-frame": "leak" }, (life: Life) => life.stack === 2],
			[{ thread: "worker" }, (life: Life) => life.thread === 1], [{ thread: "42" }, (life: Life) => life.thread === 0],
			[{ size: "..2" }, (life: Life) => life.size <= 2], [{ size: "3..4" }, (life: Life) => life.size >= 3],
			[{ row: "stack:23" }, (life: Life) => life.stack === 2], [{ row: "function:spike" }, (life: Life) => life.stack === 2],
			[{ "not-row": "stack:23" }, (life: Life) => life.stack !== 2], [{ "not-row": "function:spike" }, (life: Life) => life.stack !== 2],
			[{ "not-row": "size:3..4" }, (life: Life) => life.size < 3], [{ "not-row": "thread:43" }, (life: Life) => life.thread === 0],
			[{ thread: "42", "not-row": "thread:42" }, () => false], [{ "not-row": "heap:malloc" }, () => false],
			[{ "not-row": "module:/bin/app" }, () => false], [{ "not-row": "process:7" }, () => true], [{ "not-row": "owner:heap" }, () => false],
			[{ module: "^/bin/app$" }, () => true], [{ process: "app" }, () => true], [{ process: "7" }, () => false],
		] as [Record<string, string>, (life: Life) => boolean][])
			expect(told(await ask({ from: "3000ns", to: "9000ns", by: "impact", ...words })), JSON.stringify(words)).toEqual(expected(3, 10, false, chosen));
	});
	it("begin and end at the nearest edges, and say which", async () => {
		const answer = await ask({ from: "2400ns", to: "mark:half", by: "none" });
		expect([answer.from_ns, answer.to_ns]).toEqual([2000, 6000]);
	});
	it("that touch add up", async () => {
		const parts = await Promise.all([ask({ to: "mark:half", by: "none" }), ask({ from: "mark:half", by: "none" }), ask({ by: "none" })]);
		const [a, b, whole] = parts.map((part) => part.total!.impacting_size);
		expect(a + b).toBe(whole);
	});
	it("have rows that sum up to the total", async () => {
		for (const key of ["stack", "function", "thread", "size", "type", "process", "heap", "module"]) {
			const answer = await ask({ from: "3000ns", to: "9000ns", by: key });
			expect(answer.rows.reduce((sum, row) => sum + row.size, 0), key).toBe(answer.total!.size);
		}
		expect((await ask({ by: "mark" })).rows.map((row) => row.keys.mark)).toEqual(["(begin)", "half"]);
	});
	it("refuse what the data cannot tell", async () => {
		await expect(ask({ size: "3" })).rejects.toThrow(/powers of two/);
		await expect(ask({ lifetime: "<1ms" })).rejects.toThrow(/lifetimes only/);
		await expect(ask({ by: "lifetime" })).rejects.toThrow(/single allocations/);
		await expect(ask({ from: "20s" })).rejects.toThrow(/no moment/);
		await expect(ask({ frame: "(" })).rejects.toThrow(/no regular expression/);
		await expect(ask({ fram: "x" })).rejects.toThrow(/no parameter/);
		await expect(source.get("growth", [["from", "3000ns"]])).rejects.toThrow(/whole trace/);
		await expect(source.get("active", [])).rejects.toThrow(/ask the trace/);
	});
});

describe("trees and curves of a page with its data inside", () => {
	it("name stacks from both ends, without wrappers", async () => {
		const callers = await source.get<TreeAnswer>("tree", [["kind", "callers"]]);
		expect(callers.nodes.filter((node) => node.parent === null).map((node) => node.function)).toEqual(["main"]);
		expect(callers.nodes[0].size).toBe(callers.total.size);
		const leaf = await source.get<TreeAnswer>("tree", [["kind", "leaf"]]);
		expect(leaf.nodes.filter((node) => node.parent === null).map((node) => node.function).sort()).toEqual(["leak", "spike"]);
	});
	it("of one row are the levels of its blocks", async () => {
		const line = await source.get<Timeline>("timeline", [["layer", "heap"], ["row", "stack:17"], ["buckets", "12"]]);
		const level = (edge: number) => lives.filter((life) => life.stack === 1 && life.begin < edge && life.end >= edge)
			.reduce((sum, life) => sum + life.size, 0);
		expect(line.peak_bytes).toEqual(Array.from({ length: 12 }, (_, b) =>
			Math.max(...Array.from({ length: BUCKETS + 1 }, (_, edge) => edge).filter((edge) => timeOf(edge) >= b * 1000 && timeOf(edge) <= (b + 1) * 1000 &&
				(b !== 6 || edge !== 6)).map(level))));
	});
});

describe("the data", () => {
	it("comes out of the element as it went in", async () => {
		const data = dataOf(lives);
		expect(await decode(`\n${gzipSync(JSON.stringify(data)).toString("base64")}\n`)).toEqual(data);
		await expect(decode(gzipSync('{"schema":"other"}').toString("base64"))).rejects.toThrow(/of the form other/);
		await expect(decode(gzipSync("{}").toString("base64").slice(0, 20))).rejects.toThrow();
	});
	it("has octaves that leave no size out", () => {
		expect([0, 1, 2, 3, 4, 5].map(octaveRange)).toEqual([[0, 0], [1, 1], [2, 2], [3, 4], [5, 8], [9, 16]]);
		expect([sizeBounds("32..64"), sizeBounds("..1K"), sizeBounds(">1M"), sizeBounds("4096")])
			.toEqual([[32, 64], [0, 1024], [1048577, Infinity], [4096, 4096]]);
	});
});
