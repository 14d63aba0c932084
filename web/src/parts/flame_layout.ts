// flame_layout: from a tree of functions to boxes.
import type { TreeAnswer, TreeFigures, TreeNode } from "../ask/types";

export interface Flame {
	node: TreeNode;
	name: string;
	path: string; // names from the top down
	children: Flame[];
	depth: number;
	width: number; // what its box is as wide as
}

export interface Box {
	flame: Flame;
	x: number; // share of the whole, 0 to 1
	w: number;
	depth: number;
	above: boolean; // above the one that is looked at
}

export function valueOf(figures: TreeFigures, value: string): number {
	return value === "count" ? figures.count : value === "impacting" ? figures.impacting_size : figures.size;
}

export function nodeName(node: TreeNode): string {
	if (node.function) return node.function;
	const module = node.module?.slice(node.module.lastIndexOf("/") + 1);
	return module || node.offset ? `${module || "generated code"}+0x${(node.offset ?? 0).toString(16)}` : "(no stack)";
}

// Growth and shrinking cancel out on the way to the root, but a box must hold those on it: impacting
// bytes are as wide as what grew and what shrank together.
export function flamesOf(answer: TreeAnswer, value: string): Flame[] {
	const flames: Flame[] = [], roots: Flame[] = [];

	for (const node of answer.nodes) {
		const above = node.parent === null ? null : flames[node.parent];
		const name = nodeName(node);
		const flame: Flame = {
			node, name, path: above ? `${above.path}/${encodeURIComponent(name)}` : encodeURIComponent(name),
			children: [], depth: above ? above.depth + 1 : 0, width: 0,
		};
		flames[node.id] = flame;
		(above ? above.children : roots).push(flame);
	}
	for (let i = answer.nodes.length - 1; i >= 0; i--) {
		const flame = flames[answer.nodes[i].id];
		const below = flame.children.reduce((sum, child) => sum + child.width, 0);
		flame.width = value === "impacting" ? Math.abs(flame.node.self.impacting_size) + below
			: Math.max(valueOf(flame.node, value), below);
	}
	for (const flame of flames) flame?.children.sort((a, b) => b.width - a.width);
	return roots.sort((a, b) => b.width - a.width);
}

export function find(roots: Flame[], path: string): Flame | null {
	let level = roots, found: Flame | null = null;

	for (const part of path.split("/").filter(Boolean)) {
		found = level.find((flame) => encodeURIComponent(flame.name) === part) ?? null;
		if (!found) return null;
		level = found.children;
	}
	return found;
}

function ancestors(roots: Flame[], flame: Flame): Flame[] {
	const parts = flame.path.split("/");
	return parts.slice(0, -1).map((_, i) => find(roots, parts.slice(0, i + 1).join("/"))!);
}

// Boxes narrower than `least` are left out, with all above them.
export function layout(roots: Flame[], focus: Flame | null, least: number): Box[] {
	const boxes: Box[] = [];
	const place = (flames: Flame[], x: number, scale: number) => {
		for (const flame of flames) {
			const w = flame.width * scale;
			if (w >= least) {
				boxes.push({ flame, x, w, depth: flame.depth, above: false });
				place(flame.children, x, scale);
			}
			x += w;
		}
	};

	if (focus) {
		for (const flame of ancestors(roots, focus)) boxes.push({ flame, x: 0, w: 1, depth: flame.depth, above: true });
		place([focus], 0, 1 / Math.max(1e-9, focus.width));
	} else {
		place(roots, 0, 1 / Math.max(1e-9, roots.reduce((sum, flame) => sum + flame.width, 0)));
	}
	return boxes;
}
