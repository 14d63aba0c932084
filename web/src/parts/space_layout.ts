// space_layout: an address space as cells. Most of one is empty, so far holes are folded to one line.
import type { MapAnswer, MapRange } from "../ask/types";

export interface Piece {
	start: bigint;
	end: bigint;
	range: MapRange;
}

export interface Cell {
	start: bigint;
	end: bigint;
	owner: string; // of most of its bytes; "": nothing mapped
	taken: number; // bytes mapped
	reserved: boolean; // mapped, none of it committed
	range: MapRange | null; // the largest part
}

export interface Block {
	start: bigint;
	end: bigint;
	gap: bigint; // free bytes in front of it
	cells: Cell[];
}

const FOLD = 64n << 20n; // a hole of so much separates two blocks

export function pieces(map: MapAnswer): Piece[] {
	return map.ranges.map((range) => ({ start: BigInt(range.start), end: BigInt(range.end), range }))
		.filter((piece) => piece.end > piece.start).sort((a, b) => a.start < b.start ? -1 : 1);
}

// The smallest power of two, from the slots' size on, with which all blocks fit into so many cells.
function unitFor(spans: bigint[], granularity: number, cellsMax: number): bigint {
	let unit = BigInt(Math.max(4096, granularity));
	for (;;) {
		const cells = spans.reduce((sum, span) => sum + span / unit + 2n, 0n);
		if (cells <= BigInt(cellsMax)) return unit;
		unit *= 2n;
	}
}

export function blocks(map: MapAnswer, cellsMax: number): { unit: bigint; blocks: Block[] } {
	const all = pieces(map);
	const groups: Piece[][] = [];
	let end = 0n;

	for (const piece of all) {
		if (groups.length === 0 || piece.start - end > FOLD) groups.push([]);
		groups[groups.length - 1].push(piece);
		if (piece.end > end) end = piece.end;
	}
	const spanOf = (group: Piece[]) => group.reduce((most, piece) => piece.end > most ? piece.end : most, 0n) - group[0].start;
	const unit = unitFor(groups.map(spanOf), map.granularity, Math.max(cellsMax, groups.length * 3));
	let before = BigInt(map.low);
	return {
		unit,
		blocks: groups.map((group): Block => {
			const start = group[0].start / unit * unit;
			const last = (group[0].start + spanOf(group) + unit - 1n) / unit * unit;
			const gap = group[0].start - before;
			before = group[0].start + spanOf(group);
			return { start, end: last, gap, cells: cellsOf(group, start, last, unit) };
		}),
	};
}

function cellsOf(group: Piece[], start: bigint, end: bigint, unit: bigint): Cell[] {
	const cells: Cell[] = [];
	let first = 0;

	for (let at = start; at < end; at += unit) {
		const cell: Cell = { start: at, end: at + unit, owner: "", taken: 0, reserved: true, range: null };
		const byOwner = new Map<string, number>();
		let largest = 0;
		while (first < group.length && group[first].end <= at) first++;
		for (let i = first; i < group.length && group[i].start < cell.end; i++) {
			const from = group[i].start > at ? group[i].start : at, to = group[i].end < cell.end ? group[i].end : cell.end;
			const size = Number(to - from);
			if (size <= 0) continue;
			cell.taken += size;
			if (group[i].range.committed) cell.reserved = false;
			byOwner.set(group[i].range.owner, (byOwner.get(group[i].range.owner) ?? 0) + size);
			if (size > largest) {
				largest = size;
				cell.range = group[i].range;
			}
		}
		cell.owner = [...byOwner].sort((a, b) => b[1] - a[1])[0]?.[0] ?? "";
		cells.push(cell);
	}
	return cells;
}
