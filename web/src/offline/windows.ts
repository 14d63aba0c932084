// windows: rows and trees of a window, from cells.
import { AskError } from "../ask/source";
import type { Keys, TreeAnswer, TreeFigures, TreeNode, WindowAnswer, WindowRow } from "../ask/types";
import { ROOTS } from "../app";
import { COLUMN } from "../base/columns";
import { faceAt, octaveRange } from "./data";
import { IMPACT, Question, type Type } from "./question";

interface Sums extends TreeFigures {
	allocated_count: number;
	freed_count: number;
	change: Float64Array | null; // of the level, by bucket; the level at p in front
}

function newSums(buckets: number): Sums {
	return {
		count: 0, size: 0, impacting_size: 0, allocated: 0, allocated_count: 0, freed: 0, freed_count: 0,
		change: buckets > 0 ? new Float64Array(buckets + 1) : null,
	};
}

function addCell(sums: Sums, question: Question, cell: number, type: Type, p: number, q: number): void {
	const { count, bytes, begin, end } = question.data.cells;
	const n = count[cell], size = bytes[cell];

	sums.count += n;
	sums.size += size;
	if (type[1] === "I") {
		sums.allocated += size;
		sums.allocated_count += n;
	}
	if (type[3] === "I") {
		sums.freed += size;
		sums.freed_count += n;
	}
	sums.impacting_size += type === "AIFO" ? size : type === "AOFI" ? -size : 0;
	if (!sums.change) return;
	// Levels fall when a process ends, whatever its blocks count as.
	if (begin[cell] < p) sums.change[0] += size;
	else sums.change[begin[cell] - p + 1] += size;
	if (end[cell] < p) sums.change[0] -= size;
	else if (end[cell] < q) sums.change[end[cell] - p + 1] -= size;
}

function peakOf(sums: Sums): number | null {
	if (!sums.change) return null;
	let level = 0, most = 0;
	for (const change of sums.change) {
		level += change;
		if (level > most) most = level;
	}
	return most;
}

function figuresOf(sums: Sums): Omit<WindowRow, "keys"> {
	return {
		count: sums.count, size: sums.size, impacting_size: sums.impacting_size, allocated: sums.allocated,
		allocated_count: sums.allocated_count, freed: sums.freed, freed_count: sums.freed_count, peak_size: peakOf(sums),
		peak_count: null, most_count: null, first_ns: null, last_ns: null, lifetime_median_ns: null, lifetime_p99_ns: null,
	};
}

interface Phase {
	name: string;
	p: number;
	q: number;
}

// Between the marks in the window, each its own window.
function phases(question: Question): Phase[] {
	const { marks } = question.data.marks;
	const inside = marks.filter((mark) => question.markEdge(mark) > question.p && question.markEdge(mark) < question.q);
	const before = marks.filter((mark) => question.markEdge(mark) <= question.p).pop();
	const name = (mark: typeof marks[number]) => mark.of > 1 ? `${mark.name}#${mark.nth}` : mark.name;
	const starts = [{ name: before ? name(before) : "(begin)", at: question.p },
		...inside.map((mark) => ({ name: name(mark), at: question.markEdge(mark) }))];
	return starts.map((start, i) => ({ name: start.name, p: start.at, q: starts[i + 1]?.at ?? question.q }));
}

// One key of a cell: what stands in the row, and a name for it.
function keyOf(question: Question, key: string, cell: number, type: Type): { id: string; keys: Keys; more?: Partial<WindowRow> } {
	const { cells, view, stack_ids, rest } = question.data;

	switch (key) {
	case "impact": return { id: IMPACT[type], keys: { impact: IMPACT[type] } };
	case "type": return { id: type, keys: { type } };
	case "layer": return { id: String(cells.layer[cell]), keys: { layer: cells.layer[cell] ? "vm" : "heap" } };
	case "process": {
		const process = view.processes[cells.process[cell]];
		return { id: String(process?.id ?? -1), keys: { process: process?.pid ?? -1 }, more: { process_id: process?.id } };
	}
	case "thread": return { id: String(cells.thread[cell]), keys: { thread: view.threads[cells.thread[cell]]?.tid ?? -1 } };
	case "heap": return { id: String(cells.heap[cell]), keys: { heap: view.heaps[cells.heap[cell]] ?? "(none)" } };
	case "owner": return { id: question.ownerOf(cell), keys: { owner: question.ownerOf(cell) } };
	case "function": return { id: question.functionOf(cells.stack[cell]), keys: { function: question.functionOf(cells.stack[cell]) } };
	case "module": {
		const module = cells.stack[cell] === rest ? "(rest)" : question.face(cells.stack[cell])?.module ?? "";
		return { id: module, keys: { module } };
	}
	case "stack": {
		const stack = cells.stack[cell];
		const frames = stack === rest
			? [{ function: "(rest: stacks too small for this page)", file: "", line: 0, module: "", offset: 0, inlined: false }] : question.stack(stack);
		return { id: String(stack), keys: { stack: frames }, more: { stack_id: stack_ids[stack], user_frame: stack === rest ? 0 : faceAt(question.data, stack) } };
	}
	case "size": return { id: String(cells.octave[cell]), keys: { size: octaveRange(cells.octave[cell])[1] } };
	case "lifetime":
		throw new AskError("a page from a file does not have single allocations: ask the trace", "not-recorded", 409);
	default:
		throw new AskError(`there is no key '${key}'`, "usage", 400);
	}
}

const FIXED: Record<string, string[]> = {
	impact: ["impacting", "transient", "persistent"], type: ["AIFO", "AOFI", "AIFI", "AOFO"], layer: ["heap", "vm"],
};

export function windowOf(question: Question): WindowAnswer {
	const by = (question.one("by") ?? "impact,stack").split(",").filter((key) => key !== "none");
	const groups = new Map<string, { keys: Keys; more: Partial<WindowRow>; sums: Sums; order: number }>();
	const details = question.one("details") !== "0";
	const whole = newSums(details ? question.q - question.p : 0);
	const split = by.includes("mark") ? phases(question) : [{ name: "", p: question.p, q: question.q }];

	question.eachCell((cell) => {
		const overall = question.type(cell);
		if (overall && question.takesType(overall)) addCell(whole, question, cell, overall, question.p, question.q);
		split.forEach((phase, order) => {
			const type = question.type(cell, phase.p, phase.q);
			if (!type || !question.takesType(type) || by.length === 0) return;
			const parts = by.map((key) => key === "mark" ? { id: phase.name, keys: { mark: phase.name } as Keys } : keyOf(question, key, cell, type));
			const id = parts.map((part) => part.id).join("\u0000");
			let group = groups.get(id);
			if (!group) {
				group = {
					keys: Object.assign({}, ...parts.map((part) => part.keys)),
					more: Object.assign({}, ...parts.map((part) => ("more" in part ? part.more : undefined) ?? {})),
					sums: newSums(details ? phase.q - phase.p : 0), order: by.includes("mark") ? order : FIXED[by[0]]?.indexOf(parts[0].id) ?? 0,
				};
				groups.set(id, group);
			}
			addCell(group.sums, question, cell, type, phase.p, phase.q);
		});
	});
	const rows = sortedRows([...groups.values()], question.one("sort") ?? "impacting", by);
	const limit = Number(question.one("n") ?? 200) || 10_000;
	const layers = question.layer === null;
	return {
		schema: "tidemark-window-1", from_ns: question.fromNs, to_ns: question.toNs, complete: question.data.view.complete, warnings: [],
		by, rows: rows.slice(0, limit), rows_left_out: Math.max(0, rows.length - limit),
		total: layers ? null : { ...figuresOf(whole), peak_size: exactPeak(question) ?? figuresOf(whole).peak_size },
	};
}

// Without filters the timeline knows the peak between edges too, if they are no marks'.
function exactPeak(question: Question): number | null {
	const line = question.data.timelines[question.layer === 1 ? "vm" : "heap"];
	const p = question.ticks.indexOf(question.p), q = question.ticks.indexOf(question.q);
	if (question.filtered || !line || p < 0 || q <= p || line.peak_bytes.length !== question.ticks.length - 1) return null;
	return line.peak_bytes.slice(p, q).reduce<number>((most, value) => Math.max(most, value ?? 0), 0);
}

function sortedRows(groups: { keys: Keys; more: Partial<WindowRow>; sums: Sums; order: number }[], sort: string, by: string[]): WindowRow[] {
	const value = COLUMN[sort]?.value ?? "impacting_size";
	const fixed = by[0] === "mark" || FIXED[by[0]] !== undefined;
	const rows = groups.map((group) => ({ row: { keys: group.keys, ...group.more, ...figuresOf(group.sums) } as WindowRow, order: group.order }));
	return rows.sort((a, b) => (fixed ? a.order - b.order : 0) || Math.abs(Number(b.row[value] ?? -1)) - Math.abs(Number(a.row[value] ?? -1)) ||
		b.row.size - a.row.size).map(({ row }) => row);
}

// ---- trees ----

interface Branch extends TreeNode {
	below: Map<string, Branch>;
}

function addTo(figures: TreeFigures, sums: TreeFigures): void {
	figures.count += sums.count;
	figures.size += sums.size;
	figures.impacting_size += sums.impacting_size;
	figures.allocated += sums.allocated;
	figures.freed += sums.freed;
}

function noFigures(): TreeFigures {
	return { count: 0, size: 0, impacting_size: 0, allocated: 0, freed: 0 };
}

export function treeOf(question: Question): TreeAnswer {
	const kind = question.one("kind") ?? "callers";
	const stacks = new Map<number, Sums>();
	const total = newSums(0);

	if (kind === "butterfly") throw new AskError("a page from a file has no butterfly: ask the trace", "not-recorded", 409);
	question.eachCell((cell) => {
		const type = question.type(cell);
		if (!type || !question.takesType(type)) return;
		const stack = question.data.cells.stack[cell];
		let sums = stacks.get(stack);
		if (!sums) stacks.set(stack, sums = newSums(0));
		addCell(sums, question, cell, type, question.p, question.q);
		addCell(total, question, cell, type, question.p, question.q);
	});
	const nodes = kind === "flat" ? flat(question, stacks) : nested(question, stacks, kind === "leaf");
	return { tree: kind, from_ns: question.fromNs, to_ns: question.toNs, nodes, nodes_left_out: 0, total };
}

// From the function that allocated outwards, without what is below main.
function path(question: Question, stack: number): { name: string; frame: ReturnType<Question["frame"]> }[] {
	if (stack === question.data.rest)
		return [{ name: "(rest)", frame: { function: "(rest)", file: "", line: 0, module: "", offset: 0, inlined: false } }];
	const frames = question.stack(stack).slice(Math.max(0, faceAt(question.data, stack)));
	const own = frames.filter((frame) => !ROOTS.test(frame.function ?? ""));
	const shown = own.length > 0 ? own : frames;
	if (shown.length === 0) return [{ name: "(no stack)", frame: { function: "(no stack)", file: "", line: 0, module: "", offset: 0, inlined: false } }];
	return shown.map((frame) => ({ name: frame.function || `${frame.module ?? ""}+${frame.offset}`, frame }));
}

function branch(id: number, parent: number | null, frame: ReturnType<Question["frame"]>): Branch {
	return {
		id, parent, side: null, function: frame.function, file: frame.file, line: frame.line, module: frame.module, offset: frame.function ? 0 : frame.offset,
		...noFigures(), self: noFigures(), below: new Map(),
	};
}

// Which function it is: of its module and of its source file. Where the file is not known, it is of the first of that name.
function functionKey(files: Map<string, string>, name: string, frame: ReturnType<Question["frame"]>): string {
	// A script is its file.
	const key = `${name}\u0000${frame.module === frame.file ? "" : frame.module}`, first = files.get(key);

	if (!first) files.set(key, frame.file ?? "");
	return !first || !frame.file || frame.file === first ? key : `${key}\u0000${frame.file}`;
}

function nested(question: Question, stacks: Map<number, Sums>, leaf: boolean): TreeNode[] {
	const roots = new Map<string, Branch>(), files = new Map<string, string>(), nodes: Branch[] = [];

	for (const [stack, sums] of stacks) {
		const steps = path(question, stack);
		if (!leaf) steps.reverse();
		let level = roots, above: Branch | null = null;
		for (const { name, frame } of steps) {
			const key = functionKey(files, name, frame);
			let node = level.get(key);
			if (!node) {
				node = branch(nodes.length, above?.id ?? null, frame);
				nodes.push(node);
				level.set(key, node);
			}
			if (node.line !== frame.line) node.line = 0;
			addTo(node, sums);
			above = node;
			level = node.below;
		}
		if (above) addTo(above.self, sums);
	}
	return nodes;
}

function flat(question: Question, stacks: Map<number, Sums>): TreeNode[] {
	const byName = new Map<string, Branch>(), files = new Map<string, string>(), nodes: Branch[] = [];

	for (const [stack, sums] of stacks) {
		const seen = new Set<Branch>();
		path(question, stack).forEach(({ name, frame }, i) => {
			const key = functionKey(files, name, frame);
			let node = byName.get(key);
			if (!node) {
				node = branch(nodes.length, null, frame);
				nodes.push(node);
				byName.set(key, node);
			}
			if (!seen.has(node)) addTo(node, sums);
			seen.add(node);
			if (i === 0) addTo(node.self, sums);
		});
	}
	return nodes;
}
