import { describe, expect, it } from "vitest";
import { DEFAULTS, formatState, opposite, parseState, type Filter, type State } from "../src/base/state";
import { programOf } from "../src/base/text";
import { commandLine, escapeRegex, exactly, parseTyped, quote, splitWords } from "../src/base/words";

const state = (change: Partial<State>): State => ({ ...structuredClone(DEFAULTS), ...change });

describe("words typed into the search field", () => {
	it("are split as a shell splits them", () => {
		expect(splitWords(`a 'b c' "d\\"e" f\\ g ''`)).toEqual(["a", "b c", 'd"e', "f g", ""]);
	});
	it("are filters in all three forms of writing", () => {
		expect(parseTyped("--size 32..64 --frame=^foo module:libc from=mark:load").filters)
			.toEqual([["size", "32..64"], ["frame", "^foo"], ["module", "libc"]]);
		expect(parseTyped("from=mark:load").from).toBe("mark:load");
	});
	it("are names where they are no filters", () => {
		expect(parseTyped("std::vector<int> size parse").rest).toEqual(["std::vector<int>", "size", "parse"]);
	});
	it("are refused where a filter lacks its value or is none", () => {
		expect(parseTyped("--size").wrong).toMatch(/size needs a value/);
		expect(parseTyped("--seize 3").wrong).toMatch(/no filter/);
		expect(parseTyped("--row size:3").wrong).toMatch(/no row/);
		expect(parseTyped("--not-row size:3").filters).toEqual([["not-row", "size:3"]]);
	});
});

describe("the command line", () => {
	it("says what is on the screen", () => {
		expect(commandLine(state({ from: "mark:a", to: "1500000000ns", filters: [["size", "32..64"]] }), "x.tide", null))
			.toBe("tidemark window x.tide --from mark:a --to 1.5s --by impact,stack --rows 200 --size 32..64");
		expect(commandLine(state({ tab: "flame", kind: "leaf", layer: "vm" }), "x.tide", null))
			.toBe("tidemark window x.tide --tree leaf --sort size --layer vm");
		expect(commandLine(state({ tab: "diff" }), "x.tide", "y.tide")).toBe("tidemark diff x.tide y.tide --sort live --rows 500");
	});
	it("asks what the page asks, and nothing that the tab does not take", () => {
		const narrowed = { filters: [["impact", "transient"], ["lifetime", "..1s"], ["process", "7"], ["size", "1..2"]] as Filter[], layer: "vm" };
		expect(commandLine(state({ tab: "growth", ...narrowed }), "/a b/x.tide", null))
			.toBe("tidemark growth '/a b/x.tide' --rows 200 --layer vm --process 7 --size 1..2");
		expect(commandLine(state({ tab: "resident", ...narrowed, snapshot: "exit" }), "/x.tide", null))
			.toBe("tidemark reconcile /x.tide --at exit --rows 100 --process 7");
		expect(commandLine(state({ tab: "space", ...narrowed, at: "50%" }), "/x.tide", null)).toBe("tidemark map /x.tide --at 50% --rows 200");
		expect(commandLine(state({ filters: [["layer", "vm"]], layer: "vm" }), "/x.tide", null))
			.toBe("tidemark window /x.tide --by impact,stack --rows 200 --layer vm");
		expect(commandLine(state({ by: ["layer"], layer: "vm" }), "/x.tide", null)).toBe("tidemark window /x.tide --by layer --rows 200");
		expect(commandLine(state({ columns: ["size", "p99"] }), "/x.tide", null)).toContain("--columns size,p99");
		expect(commandLine(state({ tab: "flame", value: "peak", from: "1s" }), "/x.tide", null, "1500000000ns"))
			.toContain("--from 1500000000ns --to 1500000000ns --tree callers --sort size");
	});
	it("cannot be broken out of by a name", () => {
		expect(quote("it's; rm -rf")).toBe(`'it'\\''s; rm -rf'`);
		expect(commandLine(state({ filters: [["frame", exactly("a(b)$(c)")]] }), "x.tide", null))
			.toContain(`--frame '^a\\(b\\)\\$\\(c\\)$'`);
	});
	it("names rows, and those that are left out", () => {
		expect(commandLine(state({ filters: [["row", "stack:17"], ["not-row", "function:a b"]] }), "x.tide", null))
			.toBe("tidemark window x.tide --by impact,stack --rows 200 --row stack:17 --not-row 'function:a b'");
	});
	it("matches a name that looks like a pattern, and nothing else", () => {
		const name = "std::vector<int*>::operator[](unsigned long) const";
		expect(new RegExp(exactly(name)).test(name)).toBe(true);
		expect(new RegExp(escapeRegex("a.b")).test("axb")).toBe(false);
	});
});

describe("the opposite of a filter", () => {
	it("lets pass what the filter does not, and its own opposite is the filter", () => {
		for (const filter of [["size", "33..64"], ["thread", "42"], ["heap", "pool"], ["process", "7"], ["row", "stack:3"], ["row", "owner:file"],
			["frame", "^a$"], ["layer", "vm"]] as [string, string][]) {
			const turned = opposite(filter)!;
			expect(turned).toHaveLength(1);
			expect(turned[0]).not.toEqual(filter);
			expect(opposite(turned[0])).toEqual([filter]);
		}
		expect(opposite(["impact", "transient"])).toEqual([["impact", "impacting"], ["impact", "persistent"]]);
		expect(opposite(["impact", "AIFI"])).toEqual([["impact", "AIFO"], ["impact", "AOFI"], ["impact", "AOFO"]]);
		expect(opposite(["lifetime", "..1s"])).toBeNull();
	});
});

describe("the address", () => {
	it("holds the whole state, and gives it back", () => {
		const odd = state({
			tab: "flame", layer: "vm", from: "mark:a b&c#2", to: "-5s", zoom: "5-10", otherFrom: "1s", otherTo: "2s",
			filters: [["frame", "^a&b=c$"], ["frame", "^d"], ["layer", "vm"], ["row", "function:x y"], ["not-row", "size:33..64"]], by: ["thread", "stack"],
			columns: ["size", "p99"], sort: "size", rising: true, open: ["impact:transient", "impact:impacting/stack:3"],
			row: "impact:impacting/stack:7", exitFrees: true, exact: true, strips: ["heap"], kind: "leaf", value: "count",
			focus: "main/x", asText: true, at: "50%", mapProcess: "42", snapshot: "exit", diffSort: "peak",
		});
		expect(parseState(formatState(odd))).toEqual(odd);
	});
	it("is empty where nothing was chosen", () => {
		expect(formatState(state({}))).toBe("tab=window");
		expect(parseState("t=0123&nonsense=1")).toEqual(state({ tab: "findings" }));
		expect(parseState("t=0123&tab=window")).toEqual(DEFAULTS);
		expect(parseState("t=0123&from=1s")).toEqual(state({ from: "1s" }));
	});
	it("leaves out what makes no sense", () => {
		const parsed = parseState("by=nonsense&columns=x,size&layer=disk&row=evil:1&not-row=9");
		expect(parsed.by).toEqual(DEFAULTS.by);
		expect(parsed.columns).toEqual(["size"]);
		expect(parsed.layer).toBe("heap");
		expect(parsed.filters).toEqual([]);
	});
});

describe("the program's name", () => {
	it("is that of what the first process became", () => {
		expect(programOf([{ pid: 7, exe: "/usr/bin/env" }, { pid: 8, exe: "/bin/sh" }, { pid: 7, exe: "/opt/app" }])).toBe("app");
		expect(programOf([{ pid: 7, exe: "/opt/app" }])).toBe("app");
		expect(programOf([])).toBe("");
	});
});
