// question: a question's words, turned into a window of whole buckets and a choice of cells.
import { AskError, type Params } from "../ask/source";
import type { Frame, Mark } from "../ask/types";
import { baseName } from "../base/text";
import { clockOf, markOf, timeNs } from "../base/times";
import { type Data, faceAt, octaveRange } from "./data";

export type Type = "AIFI" | "AIFO" | "AOFI" | "AOFO";
export const IMPACT: Record<Type, string> = { AIFI: "transient", AIFO: "impacting", AOFI: "impacting", AOFO: "persistent" };

const KNOWN = new Set(["from", "to", "process", "thread", "layer", "heap", "size", "module", "frame", "not-frame", "impact", "row", "not-row",
	"by", "sort", "n", "min-bytes", "exit-frees", "details", "kind", "nodes", "function", "buckets", "lane", "all-frames", "with", "lifetime"]);

function wrong(text: string): AskError {
	return new AskError(text, "usage", 400);
}

// "32..64", "..1K", ">1M", "4096": both ends included.
export function sizeBounds(word: string): [number, number] {
	const number = (text: string): number => {
		const parts = /^(\d+(?:\.\d+)?)\s*(?:([KMGT])(?:i?B)?|B)?$/i.exec(text.trim());
		if (!parts) throw wrong(`'${word}' is no size`);
		return Math.round(Number(parts[1]) * 1024 ** (parts[2] ? "KMGT".indexOf(parts[2].toUpperCase()) + 1 : 0));
	};
	const compared = /^(<=|>=|<|>)(.*)$/.exec(word);
	if (compared) {
		const value = number(compared[2]);
		return { "<": [0, value - 1], "<=": [0, value], ">": [value + 1, Infinity], ">=": [value, Infinity] }[compared[1]] as [number, number];
	}
	const dots = word.indexOf("..");
	if (dots < 0) return [number(word), number(word)];
	const [low, high] = [word.slice(0, dots), word.slice(dots + 2)];
	return [low ? number(low) : 0, high ? number(high) : Infinity];
}

export function ticksOf(data: Data): number[] {
	const marks = new Set(data.mark_edges);
	return data.edges_ns.map((_, edge) => edge).filter((edge) => !marks.has(edge));
}

export class Question {
	readonly words: Map<string, string[]> = new Map();
	readonly ticks: number[]; // edges that are no mark's
	readonly p: number; // the window is the buckets p to q - 1
	readonly q: number;
	readonly exitFrees: boolean;
	readonly layer: number | null; // null: both
	private takesStack: Uint8Array;

	constructor(readonly data: Data, params: Params) {
		for (const [word, value] of params) {
			if (!KNOWN.has(word)) throw wrong(`there is no parameter ${word}`);
			this.words.set(word, [...this.words.get(word) ?? [], value]);
		}
		if (this.words.has("lifetime"))
			throw new AskError("a page from a file knows lifetimes only to a stretch of time: filter by them in the trace", "not-recorded", 409);
		this.exitFrees = this.one("exit-frees") === "1";
		const layers = this.words.get("layer") ?? [];
		const both = (this.one("by") ?? "").split(",").includes("layer");
		this.layer = layers.length > 1 || (layers.length === 0 && both) ? null : layers[0] === "vm" ? 1 : 0;
		this.ticks = ticksOf(data);
		[this.p, this.q] = this.window();
		this.takesStack = this.stacksTaken();
	}

	one(word: string): string | undefined {
		const all = this.words.get(word);
		return all?.[all.length - 1];
	}

	moment(word: string): number {
		const ns = timeNs(word, clockOf(this.data.view, this.data.marks.marks, this.layer === 1 ? "vm" : "heap"));
		if (ns === null) throw wrong(`'${word}' is no moment of this trace`);
		return ns;
	}

	// The number of the edge that a word names: a mark's own, else the nearest that is no mark's (a
	// mark lies somewhere among what happened at its time).
	edge(word: string): number {
		const mark = markOf(word, this.data.marks.marks);
		return mark ? this.markEdge(mark) : this.ticks[this.tick(this.moment(word))];
	}

	markEdge(mark: Mark): number {
		return this.data.mark_edges[this.data.marks.marks.indexOf(mark)] ?? this.ticks[this.tick(mark.time_ns)];
	}

	// Of the edges that are no mark's, the one that is nearest to a moment.
	private tick(ns: number): number {
		const at = (tick: number) => this.data.edges_ns[this.ticks[tick]];
		let low = 0, high = this.ticks.length - 1;
		while (low < high) {
			const middle = (low + high) >> 1;
			if (at(middle) < ns) low = middle + 1;
			else high = middle;
		}
		return low > 0 && ns - at(low - 1) < at(low) - ns ? low - 1 : low;
	}

	get fromNs(): number {
		return this.data.edges_ns[this.p];
	}

	get toNs(): number {
		return this.data.edges_ns[this.q];
	}

	private window(): [number, number] {
		const p = this.edge(this.one("from") || "begin"), q = this.edge(this.one("to") || "end");
		if (p > q) throw wrong("the window ends before it begins");
		return [p, q];
	}

	get filtered(): boolean {
		return ["process", "thread", "heap", "size", "module", "frame", "not-frame", "row", "not-row", "impact"].some((word) => this.words.has(word));
	}

	// Anything but the whole trace.
	get narrow(): boolean {
		return this.filtered || this.p > 0 || this.q < this.data.edges_ns.length - 1;
	}

	// ---- stacks ----

	frame(number: number): Frame {
		const { frames, strings } = this.data;
		return {
			function: strings[frames.function[number]], file: strings[frames.file[number]], line: frames.line[number],
			module: strings[frames.module[number]], offset: frames.offset[number], inlined: Boolean(frames.inlined[number]),
		};
	}

	stack(number: number): Frame[] {
		return this.data.stacks[number].map((frame) => this.frame(frame));
	}

	face(stack: number): Frame | null {
		const frames = this.data.stacks[stack];
		return frames.length === 0 ? null : this.frame(frames[Math.max(0, faceAt(this.data, stack))]);
	}

	functionOf(stack: number): string {
		if (stack === this.data.rest) return "(rest)";
		const face = this.face(stack);
		return face ? face.function || `${baseName(face.module)}+0x${face.offset.toString(16)}` : "(no stack)";
	}

	// Of row or not-row: keys and values.
	private rows(word: string): [kind: string, value: string][] {
		return (this.words.get(word) ?? []).map((row) => [row.slice(0, row.indexOf(":")), row.slice(row.indexOf(":") + 1)]);
	}

	private stacksTaken(): Uint8Array {
		const regex = (word: string) => (this.words.get(word) ?? []).map((text) => {
			try {
				return new RegExp(text);
			} catch {
				throw wrong(`'${text}' is no regular expression`);
			}
		});
		const frame = regex("frame"), not = regex("not-frame"), module = regex("module");
		const stackRows = (word: string) => this.rows(word).filter(([kind]) => ["stack", "function", "module"].includes(kind));
		const wanted = stackRows("row"), unwanted = stackRows("not-row");
		const isIn = (number: number, [kind, value]: string[]) => kind === "stack" ? String(this.data.stack_ids[number]) === value
			: kind === "function" ? this.functionOf(number) === value : (this.face(number)?.module ?? "") === value;

		return Uint8Array.from(this.data.stacks, (_, number) => {
			const functions = () => this.data.stacks[number].map((one) => this.data.strings[this.data.frames.function[one]]);
			if (frame.length > 0 && !functions().some((name) => frame.some((one) => one.test(name)))) return 0;
			if (not.length > 0 && functions().some((name) => not.some((one) => one.test(name)))) return 0;
			if (module.length > 0 && !this.data.stacks[number].some((one) =>
				module.some((pattern) => pattern.test(this.data.strings[this.data.frames.module[one]])))) return 0;
			if (unwanted.some((row) => isIn(number, row))) return 0;
			return wanted.length === 0 || wanted.some((row) => isIn(number, row)) ? 1 : 0;
		});
	}

	// ---- cells ----

	private octavesOf(words: string[]): Set<number> | null {
		if (words.length === 0) return null;
		const taken = new Set<number>();
		for (const word of words) {
			const [low, high] = sizeBounds(word);
			for (let octave = 0; octave < 66; octave++) {
				const [min, max] = octaveRange(octave);
				if (max < low || min > high) continue;
				// A row of this page is named by its octave's upper end.
				if ((min < low || max > high) && !(low === high && low === max))
					throw wrong(`this page knows sizes by powers of two: ${min}..${max} can be chosen, ${word} cannot`);
				taken.add(octave);
			}
		}
		return taken;
	}

	// Calls back for each chosen cell. Of impacts: only where the window is known.
	eachCell(take: (cell: number) => void): void {
		const { cells, view } = this.data;
		const left = this.rows("not-row");
		const both = (word: string) => [this.words.get(word) ?? [], left.filter(([kind]) => kind === word).map(([, value]) => value)];
		// What passes: of numbers that words stand for, all or those asked for, but those left out.
		const chosen = (word: string, find: (value: string) => number[]) => {
			const [to, out] = both(word).map((values) => values.length > 0 ? new Set(values.flatMap(find)) : null);
			return (number: number) => (!to || to.has(number)) && !out?.has(number);
		};
		const [octaves, octavesOut] = both("size").map((words) => this.octavesOf(words));
		const process = chosen("process", (value) => view.processes.flatMap((process, i) =>
			String(process.pid) === value || String(process.id) === value || process.exe === value || baseName(process.exe) === value ? [i] : []));
		const thread = chosen("thread", (value) => view.threads.flatMap((thread, i) => String(thread.tid) === value || thread.name === value ? [i] : []));
		const heap = chosen("heap", (value) => view.heaps.flatMap((name, i) => name === value ? [i] : []));
		const named = this.words.has("heap") || (this.one("by") ?? "").split(",").includes("heap");
		const pool = (cell: number) => !named && cells.layer[cell] === 0 && view.pools.includes(cells.heap[cell]);
		const owners = this.rows("row").filter(([kind]) => kind === "owner").map(([, value]) => value);
		const ownersOut = left.filter(([kind]) => kind === "owner").map(([, value]) => value);

		for (let i = 0; i < cells.layer.length; i++) {
			if (this.layer !== null && cells.layer[i] !== this.layer) continue;
			if (!this.takesStack[cells.stack[i]] || (octaves && !octaves.has(cells.octave[i])) || octavesOut?.has(cells.octave[i])) continue;
			if (!process(cells.process[i]) || !thread(cells.thread[i]) || !heap(cells.heap[i]) || pool(i)) continue;
			if ((owners.length > 0 && !owners.includes(this.ownerOf(i))) || ownersOut.includes(this.ownerOf(i))) continue;
			take(i);
		}
	}

	ownerOf(cell: number): string {
		const { cells, strings } = this.data;
		return cells.layer[cell] === 0 ? "heap" : strings[cells.owner[cell]];
	}

	// What a cell is to the window [p, q); null: it did not live in it.
	type(cell: number, p = this.p, q = this.q): Type | null {
		const { cells, edges_ns } = this.data;
		const begin = cells.begin[cell];
		const never = edges_ns.length - 1;
		const end = !this.exitFrees && cells.kind[cell] >= 3 ? never : cells.end[cell];

		if (begin >= q || end < p) return null;
		const before = begin < p, after = end >= q;
		return before ? after ? "AOFO" : "AOFI" : after ? "AIFO" : "AIFI";
	}

	takesType(type: Type): boolean {
		const impacts = this.words.get("impact");
		return !impacts || impacts.includes(type) || impacts.includes(IMPACT[type]);
	}
}
