import { describe, expect, it } from "vitest";
import { formatPath, parsePath, pathParams, stackName } from "../src/app";
import type { Frame, MapAnswer, Mark, TreeAnswer, TreeFigures } from "../src/ask/types";
import { SvgPen } from "../src/base/pen";
import { find, flamesOf, layout } from "../src/parts/flame_layout";
import { neighbour, type Region } from "../src/parts/picture";
import { isOpen } from "../src/parts/rows";
import { blocks } from "../src/parts/space_layout";

const figures = (impacting: number): TreeFigures => ({ count: 1, size: Math.abs(impacting), impacting_size: impacting, allocated: 0, freed: 0 });
const node = (id: number, parent: number | null, name: string, all: number, self: number) =>
	({ id, parent, function: name, file: "", line: 0, module: "m", offset: 0, ...figures(all), self: figures(self) });
const frame = (name: string): Frame => ({ function: name, file: "", line: 0, module: "/m", offset: 16, inlined: false });

describe("a flame graph", () => {
	const answer = { tree: "callers", from_ns: 0, to_ns: 1, total: figures(0), nodes: [
		node(0, null, "main", 0, 0), node(1, 0, "grows", 30, 30), node(2, 0, "shrinks", -30, -30), node(3, 0, "a/b", 0, 0),
	] } as TreeAnswer;
	it("is as wide as what grew and what shrank together", () => {
		expect(flamesOf(answer, "impacting")[0].width).toBe(60);
	});
	it("finds a box again by its path, whatever is in the name", () => {
		const roots = flamesOf(answer, "size");
		expect(find(roots, roots[0].children[2].path)?.name).toBe("a/b");
		expect(find(roots, "main/nobody")).toBeNull();
	});
	it("widens a box to the whole, and keeps those above it", () => {
		const roots = flamesOf(answer, "impacting");
		const focus = roots[0].children[0];
		expect(layout(roots, focus, 0.01).map((box) => [box.flame.name, box.w, box.above])).toEqual([["main", 1, true], [focus.name, 1, false]]);
	});
});

describe("an address space", () => {
	const map = {
		granularity: 65536, low: "0x0", high: "0x800000000000", ranges: [
			{ start: "0x10000", end: "0x11000", protection: 3, committed: true, owner: "program", mapped_file: "" },
			{ start: "0x20000", end: "0x40000", protection: 0, committed: false, owner: "library", mapped_file: "/x" },
			{ start: "0x7f0000000000", end: "0x7f0000010000", protection: 1, committed: true, owner: "kernel", mapped_file: "" },
		],
	} as unknown as MapAnswer;
	it("is cells of slots, with far holes folded", () => {
		const drawn = blocks(map, 1000);
		expect(drawn.unit).toBe(65536n);
		expect(drawn.blocks.map((block) => [block.cells.length, block.gap])).toEqual([[3, 0x10000n], [1, 0x7f0000000000n - 0x40000n]]);
		expect(drawn.blocks[0].cells.map((cell) => [cell.owner, cell.taken, cell.reserved])).toEqual([
			["program", 4096, false], ["library", 65536, true], ["library", 65536, true]]);
	});
	it("takes larger cells where there is much", () => {
		const large = { ...map, ranges: [{ ...map.ranges[0], end: "0x100000000" }] };
		expect(blocks(large, 1000).blocks[0].cells.length).toBeLessThan(1000);
	});
});

describe("rows", () => {
	const marks: Mark[] = [1, 2].map((nth) => ({ name: "m", nth, of: 2, time_ns: nth, process_id: 0, pid: 1, tid: 1 }));
	it("have paths that come back, whatever their names", () => {
		const path: [string, string][] = [["function", "a/b:c%"], ["stack", "7"]];
		expect(parsePath(formatPath(path))).toEqual(path);
	});
	it("become filters, and phases become windows", () => {
		expect(pathParams([["impact", "transient"], ["stack", "7"], ["thread", "4"]], [["from", "1s"]], marks))
			.toEqual([["from", "1s"], ["impact", "transient"], ["row", "stack:7"], ["thread", "4"]]);
		expect(pathParams([["mark", "m#1"]], [["from", "0s"], ["to", "9s"]], marks)).toEqual([["from", "mark:m#1"], ["to", "mark:m#2"]]);
		expect(pathParams([["mark", "m#2"]], [["to", "9s"]], marks)).toEqual([["to", "9s"], ["from", "mark:m#2"]]);
		expect(pathParams([["mark", "(begin)"]], [], marks)).toEqual([["to", "mark:m#1"]]);
	});
	it("of impacts are open unless shut", () => {
		expect(isOpen([["impact", "transient"]], [])).toBe(true);
		expect(isOpen([["impact", "transient"]], ["impact:transient"])).toBe(false);
		expect(isOpen([["thread", "1"]], ["thread:1"])).toBe(true);
	});
	it("are named by own code, not by allocators", () => {
		expect(stackName({ stack: [frame("__GI___mmap64"), frame("mmap"), frame("commit10"), frame("main")] }).name).toBe("commit10");
		expect(stackName({ stack: [frame("a"), frame("b")], user_frame: 1 }).name).toBe("b");
		expect(stackName({ stack: [frame("")] }).name).toBe("m+0x10");
	});
});

describe("a picture", () => {
	it("keeps hostile names as text in SVG", () => {
		const pen = new SvgPen(null);
		pen.text('</text><script>alert("x")&\u0001', 0, 0, { fill: "#000" });
		const svg = pen.finish({ name: "n", title: "<b>", width: 1, height: 1, background: "#fff", draw: () => {} });
		expect(svg).not.toMatch(/<script|<b>|\u0001/);
		expect(svg).toContain("&#60;script&#62;");
	});
	it("is walked to what is nearest that way", () => {
		const at = (x: number, y: number, w = 10): Region => ({ x, y, w, h: 10, label: `${x},${y}` });
		const regions = [at(0, 0, 100), at(0, 10, 40), at(40, 10, 60), at(40, 20, 20)];
		expect(neighbour(regions, regions[1], [1, 0])).toBe(regions[2]);
		expect(neighbour(regions, regions[2], [0, 1])).toBe(regions[3]);
		expect(neighbour(regions, regions[3], [0, -1])).toBe(regions[2]);
		expect(neighbour(regions, regions[0], [0, -1])).toBeNull();
	});
});
