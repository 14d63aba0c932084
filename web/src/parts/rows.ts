// rows: the nested rows of the window's table. Each level is asked for by itself, with the row above
// as a filter, so that the figures of every row are its own: a peak is no sum.
import { type App, formatPath, keyText, keyValue, parsePath, pathParams, type Path, windowParams } from "../app";
import type { WindowAnswer, WindowRow } from "../ask/types";
import { COLUMN, COLUMNS, type Details, isLater } from "../base/columns";

export interface Node {
	path: Path;
	id: string;
	depth: number;
	key: string;
	row: WindowRow;
	name: string;
	place: string;
	opens: boolean;
	open: boolean;
	children: Node[];
	leftOut: number;
}

// These are open unless somebody shuts them.
const USUALLY_OPEN = new Set(["impact", "type"]);

export function isOpen(path: Path, toggled: string[]): boolean {
	const usual = path.length === 1 && USUALLY_OPEN.has(path[0][0]);
	return toggled.includes(formatPath(path)) ? !usual : usual;
}

// Lanes have short names of letters and digits.
function laneOf(id: string): string {
	let hash = 5381;
	for (let i = 0; i < id.length; i++) hash = (Math.imul(hash, 33) ^ id.charCodeAt(i)) >>> 0;
	return `rows-${hash.toString(36)}`;
}

export interface Level {
	nodes: Node[];
	leftOut: number;
	answer: WindowAnswer;
}

export async function loadLevel(app: App, above: Path, rows: number, details: Details): Promise<Level> {
	const state = app.store.state;
	const key = state.by[above.length];
	const single = key === "lifetime";
	const params = pathParams(above, windowParams(state, state.by.includes("layer")), app.marks);
	const sort = details === "0" && isLater(state.sort) ? "size" : state.sort;
	const answer = await app.source.get<WindowAnswer>("window", [
		...params, ["by", key], ["sort", COLUMNS.includes(sort) ? sort : "name"], ["n", String(rows)], ["details", details],
	], laneOf(formatPath(above)));

	const nodes = await Promise.all(answer.rows.map(async (row): Promise<Node> => {
		const path: Path = [...above, [key, keyValue(key, row.keys, row, app)]];
		const [name, place] = keyText(app, key, row.keys, row);
		const deeper = above.length + 1 < state.by.length && row.keys[key as "impact"] !== "orphan";
		const node: Node = {
			path, id: formatPath(path), depth: above.length, key, row, name, place,
			opens: deeper || (key === "stack" && (row.keys.stack?.length ?? 0) > 0) || single,
			open: isOpen(path, state.open), children: [], leftOut: 0,
		};
		if (node.open && deeper) {
			const below = await loadLevel(app, path, rows, details);
			node.children = below.nodes;
			node.leftOut = below.leftOut;
		}
		return node;
	}));
	return { nodes: ordered(nodes, state.sort, state.rising), leftOut: answer.rows_left_out, answer };
}

// The server's order is heaviest first; impacts and the like keep their own unless one asks otherwise.
function ordered(nodes: Node[], sort: string, rising: boolean): Node[] {
	const fixed = nodes.length > 0 && ["impact", "type", "layer", "mark"].includes(nodes[0].key);
	if (sort === "name") {
		nodes.sort((a, b) => a.name.localeCompare(b.name));
	} else if (!fixed) {
		const value = COLUMN[sort]?.value ?? "impacting_size";
		nodes.sort((a, b) => weight(b.row[value], sort) - weight(a.row[value], sort));
	}
	return rising && !fixed ? nodes.reverse() : nodes;
}

function weight(value: number | null, sort: string): number {
	return value === null ? -1 : sort === "impacting" ? Math.abs(value) : value;
}

export function flatten(nodes: Node[], into: Node[] = []): Node[] {
	for (const node of nodes) {
		into.push(node);
		if (node.open) flatten(node.children, into);
	}
	return into;
}

export function parentOf(id: string): string {
	return formatPath(parsePath(id).slice(0, -1));
}
