// app: what all parts of the page share: the answers' source, the state, and questions that are
// the same for many parts.
import type { Params, Question, Source } from "./ask/source";
import { AskError } from "./ask/source";
import type { Frame, Keys, Mark, StackRow, View } from "./ask/types";
import type { Filter, State, Store } from "./base/state";
import { baseName, bytes, count, duration, shortPath } from "./base/text";
import { clockOf, timeNs, type Clock } from "./base/times";
import type { Picture } from "./base/pen";

// What a tab shows.
export interface Screen {
	readonly id: string;
	readonly title: string;
	readonly root: HTMLElement;
	// The state changed (or the tab was opened): ask again where that matters.
	update(changed: Set<keyof State>): void;
	ahead?(): Question[]; // what it asks first, where that takes long
	csv?(): string | null; // the table on the screen
	pictures?(): Picture[];
	moment?(): string; // that it found, to be asked for in a command
	resize?(): void;
	key?(event: KeyboardEvent): boolean; // true: taken
}

export interface App {
	source: Source;
	store: Store;
	view: View;
	marks: Mark[];
	dragging: boolean; // a window is being drawn: quick answers
	say(text: string): void; // to readers of the screen
	highlight(intervals: [number, number][]): void; // in the timeline
	showStack(row: StackRow, title: string): void;
}

export function clock(app: App): Clock {
	return clockOf(app.view, app.marks, app.store.state.layer);
}

// The window's edges in ns, the second's too.
export function edges(app: App, other = false): [number, number] | null {
	const state = app.store.state;
	const [from, to] = other ? [state.otherFrom, state.otherTo] : [state.from, state.to];

	if (other && !from && !to) return null;
	const begin = timeNs(from || "begin", clock(app)), end = timeNs(to || "end", clock(app));
	return begin === null || end === null || end < begin ? null : [begin, end];
}

export function layerParams(state: State, bothLayers = false): Params {
	const params: Params = state.filters.map(([word, value]) => [word, value]);

	if (!bothLayers && state.layer === "vm" && !state.filters.some(([word]) => word === "layer"))
		params.push(["layer", "vm"]);
	return params;
}

export function windowParams(state: State, bothLayers = false): Params {
	const params = layerParams(state, bothLayers);

	if (state.from) params.push(["from", state.from]);
	if (state.to) params.push(["to", state.to]);
	if (state.exitFrees) params.push(["exit-frees", "1"]);
	return params;
}

// ---- rows as paths: "impact:transient/stack:17" ----

export type Path = [key: string, value: string][];

export function formatPath(path: Path): string {
	return path.map(([key, value]) => `${key}:${encodeURIComponent(value)}`).join("/");
}

export function parsePath(text: string): Path {
	return text.split("/").filter(Boolean).map((part) => {
		const colon = part.indexOf(":");
		let value = part.slice(colon + 1);
		try {
			value = decodeURIComponent(value);
		} catch { /* an address that somebody edited */ }
		return [part.slice(0, colon), value];
	});
}

// What must be asked so that only this row's allocations count. Marks are phases: they move the window.
export function pathParams(path: Path, params: Params, marks: Mark[]): Params {
	let result = params;

	for (const [key, value] of path) {
		if (key === "mark") {
			result = phaseParams(value, result, marks);
		} else if (key === "type") {
			result = [...result, ["impact", value]];
		} else if (["stack", "function", "module", "owner"].includes(key)) {
			result = [...result, ["row", `${key}:${value}`]];
		} else if (["process", "thread", "heap", "size", "impact", "layer"].includes(key)) {
			result = [...result.filter(([word]) => word !== key), [key, value]];
		}
	}
	return result;
}

function phaseParams(name: string, params: Params, marks: Mark[]): Params {
	const word = (mark: Mark) => `mark:${mark.name}#${mark.nth}`;
	const at = marks.findIndex((mark) => mark.name === name || `${mark.name}#${mark.nth}` === name);
	const next = name === "(begin)" ? marks[0] : marks[at + 1];
	const rest = params.filter(([key]) => (key !== "from" || at < 0) && (key !== "to" || !next));

	return [...rest, ...(at >= 0 ? [["from", word(marks[at])] as [string, string]] : []),
		...(next ? [["to", word(next)] as [string, string]] : [])];
}

// The path's last step as a filter; null: there is no filter of this kind.
export function filterOf([key, value]: [string, string]): Filter | null {
	if (["process", "thread", "heap", "size", "impact", "layer"].includes(key)) return [key, value];
	if (key === "type") return ["impact", value];
	if (["stack", "function", "module", "owner"].includes(key)) return ["row", `${key}:${value}`];
	return null;
}

// ---- names ----

const ALLOCATING = /^(_*(GI_)?_*(libc_)?(malloc|calloc|realloc|memalign|valloc|aligned_alloc|posix_memalign|strdup|mmap(64)?|munmap|mremap|brk|sbrk|morecore|mprotect)|operator new.*|sysmalloc|_int_(malloc|realloc|free)|tcache_init|__brk_call|__glibc_morecore|sysmalloc_mmap|arena_get2|new_heap|_int_new_arena|\(.*\))$/;

// The frame that names a stack: where own code begins.
export function faceOf(row: StackRow): number {
	if (row.user_frame !== undefined && row.user_frame >= 0 && row.user_frame < row.stack.length)
		return row.user_frame;
	const first = row.stack.findIndex((frame) => !ALLOCATING.test(frame.function ?? "") && baseName(frame.module) !== "libtidemark.so");
	return first < 0 ? 0 : first;
}

export function frameName(frame: Frame): string {
	return frame.function || `${baseName(frame.module) || "generated code"}+0x${frame.offset.toString(16)}`;
}

export function framePlace(frame: Frame): string {
	if (frame.file) return frame.line ? `${shortPath(frame.file)}:${frame.line}` : shortPath(frame.file);
	return frame.module ? baseName(frame.module) : "";
}

export function stackName(row: StackRow): { name: string; place: string } {
	if (row.stack.length === 0) return { name: row.mapped_file ? baseName(row.mapped_file) : "(no stack)", place: "" };
	const frame = row.stack[faceOf(row)];
	return { name: frameName(frame), place: framePlace(frame) };
}

// What the system has below a program's own main, or a thread's.
export const ROOTS = /^(_start|__libc_start\w*|__GI___clone3?|clone3?|start_thread|thread_start)$/;

// A stack as one line, from own code outwards: what tells two rows of one function apart.
export function stackLine(row: StackRow): string {
	return row.stack.slice(faceOf(row) + 1, faceOf(row) + 4).filter((frame) => !ROOTS.test(frame.function ?? "")).map((frame) => `← ${frameName(frame)}`).join(" ");
}

// The whole of it, for a file.
export function stackText(row: StackRow): string {
	return row.stack.map((frame) => framePlace(frame) ? `${frameName(frame)} (${framePlace(frame)})` : frameName(frame)).join(" < ");
}

// Columns of a file for what has a stack.
export const STACK_COLUMNS: [string, (row: StackRow) => string | number | null][] = [
	["place", (row) => stackName(row).place], ["stack", stackText],
];

export const IMPACTS: Record<string, { glyph: string; title: string; hint: string }> = {
	impacting: { glyph: "▲", title: "Impacting", hint: "begun inside and still there, or there before and freed inside" },
	transient: { glyph: "◆", title: "Transient", hint: "begun and freed inside" },
	persistent: { glyph: "■", title: "Persistent", hint: "there before and after" },
	orphan: { glyph: "?", title: "Orphan frees", hint: "of addresses where nothing was known to live" },
};

const TYPES: Record<string, string> = {
	AIFO: "begun inside, still there", AIFI: "begun and freed inside",
	AOFI: "begun before, freed inside", AOFO: "there before and after", orphan: "orphan frees",
};

export function keyTitle(key: string): string {
	return key === "stack" ? "Stack" : key === "lifetime" ? "Allocation" : key[0].toUpperCase() + key.slice(1);
}

export function processName(app: App, pid: number, id?: number): string {
	const process = app.view.processes.find((one) => id === undefined ? one.pid === pid : one.id === id);
	return process ? `${baseName(process.exe)} (${pid})` : `process ${pid}`;
}

export function threadName(app: App, tid: number): string {
	const thread = app.view.threads.find((one) => one.tid === tid);
	return thread?.name ? `${thread.name} (${tid})` : `thread ${tid}`;
}

// What a row is called: a name, and something quieter beside it.
export function keyText(app: App, key: string, keys: Keys, row: { user_frame?: number; process_id?: number }): [string, string] {
	const value = keys[key as keyof Keys];

	switch (key) {
	case "impact":
		return [IMPACTS[String(value)]?.title ?? String(value), IMPACTS[String(value)]?.hint ?? ""];
	case "type":
		return [String(value), TYPES[String(value)] ?? ""];
	case "process":
		return [processName(app, Number(value), row.process_id), ""];
	case "thread":
		return [threadName(app, Number(value)), ""];
	case "size":
		return [bytes(Number(value)), Number(value) >= 1024 ? `${count(Number(value))} B` : ""];
	case "layer":
		return [value === "vm" ? "Virtual memory" : "Heap", ""];
	case "module":
		return [value ? baseName(String(value)) : "(no module)", String(value ?? "")];
	case "stack": {
		const { name, place } = stackName({ stack: keys.stack ?? [], user_frame: row.user_frame });
		return [name, place];
	}
	case "lifetime": {
		const life = keys.lifetime!;
		const until = life.end_ns === null ? "to the end" : `${duration(life.end_ns - life.begin_ns)}, ${life.end}`;
		return [life.address, `at ${duration(life.begin_ns)}, ${until}`];
	}
	default:
		return [String(value ?? ""), ""];
	}
}

// The value that names the row in a path.
export function keyValue(key: string, keys: Keys, row: { stack_id?: number; process_id?: number }, app?: App): string {
	// The images of one pid are told apart by their position in the list, which is understood where it is no pid.
	if (key === "process" && app && row.process_id !== undefined && !app.view.processes.some((one) => one.pid === row.process_id))
		return String(row.process_id);
	if (key === "stack") return String(row.stack_id ?? -1);
	if (key === "lifetime") return `${keys.lifetime!.address}@${keys.lifetime!.begin_ns}`;
	return String(keys[key as keyof Keys]);
}

export function messageOf(error: unknown): string {
	return error instanceof AskError || error instanceof Error ? error.message : String(error);
}
