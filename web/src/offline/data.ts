// data: what stands inside a page from a file: allocations alike in stack, size and so on, counted by
// the stretches of time in which they began and ended (docs/viewer.md, tidemark-view-data-1).
import type { Diff, Findings, Growth, Info, MapAnswer, Mark, Peaks, Reconcile, SizeLife, Timeline, Transients, View } from "../ask/types";

export interface Cells {
	layer: number[];
	process: number[];
	thread: number[];
	heap: number[];
	owner: number[];
	stack: number[];
	octave: number[];
	begin: number[];
	end: number[];
	kind: number[];
	count: number[];
	bytes: number[];
}

export interface Data {
	schema: string;
	view: View;
	info: Info;
	marks: { marks: Mark[] };
	edges_ns: number[];
	mark_edges: number[]; // by mark: the number of its edge
	strings: string[];
	frames: { function: number[]; file: number[]; line: number[]; module: number[]; offset: number[]; inlined: (number | boolean)[] };
	stacks: number[][];
	stack_ids: number[];
	faces: number[];
	rest: number | null;
	cells: Cells;
	timelines: Record<string, Timeline | undefined>;
	peaks?: Peaks | null;
	sizelife?: SizeLife | null;
	findings?: Findings | null;
	growth?: Growth | null;
	transients?: Transients | null;
	maps?: MapAnswer[];
	reconcile?: Reconcile | null;
	diff?: Diff | null;
	diff_timelines?: Record<string, Timeline | undefined> | null;
}

export const SCHEMA = "tidemark-view-data-1";

// The element's text: base64 of gzip of JSON.
export async function decode(text: string): Promise<Data> {
	const packed = Uint8Array.from(atob(text.replace(/\s+/g, "")), (c) => c.charCodeAt(0));
	const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
	const data = JSON.parse(await new Response(stream).text()) as Data;

	if (data.schema !== SCHEMA) throw new Error(`the data is of the form ${String(data.schema)}, this page reads ${SCHEMA}`);
	return data;
}

// Where in a stack the frame is that names it; -1: it has none.
export function faceAt(data: Data, stack: number): number {
	return data.stacks[stack].indexOf(data.faces[stack] ?? -1);
}

// 0: 0, 1: 1, 2: 2, 3: 3–4, 4: 5–8 …
export function octaveRange(octave: number): [min: number, max: number] {
	return octave === 0 ? [0, 0] : octave === 1 ? [1, 1] : [2 ** (octave - 2) + 1, 2 ** (octave - 1)];
}
