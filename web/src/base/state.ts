// state: all that the person has chosen, and nothing else. It is what stands behind the # of the
// address: sending the address sends the state, and the browser's way back goes back in it.
import { COLUMNS } from "./columns";

export type Filter = [word: string, value: string];

export interface State {
	tab: string;
	layer: string;
	from: string; // words of time; "" is the beginning
	to: string; // "": the end
	zoom: string; // "FROM_NS-TO_NS" of the timeline; "": all
	otherFrom: string; // the second window; both "": there is none
	otherTo: string;
	filters: Filter[];
	by: string[];
	columns: string[];
	sort: string;
	rising: boolean;
	open: string[]; // rows whose being open differs from what is usual
	row: string; // the selected row: its path
	exitFrees: boolean;
	exact: boolean; // figures to the byte
	strips: string[]; // of the timeline
	kind: string; // of the flame graph: callers, leaf
	value: string; // impacting, size, count, peak
	asText: boolean; // the flame graph as an outline
	focus: string; // the function that the flame graph is widened to, as a path
	at: string; // moment of the address space
	mapProcess: string;
	snapshot: string; // exit, peak
	diffSort: string;
}

export const FILTER_WORDS = ["process", "thread", "layer", "heap", "size", "lifetime", "module",
	"frame", "not-frame", "impact", "row", "not-row"];
// What --row and --not-row name: a key and its value.
export const ROW = /^(function|module|stack|owner):./s;
export const NOT_ROW = /^(function|module|stack|owner|process|thread|heap|size):./s;
export const KEYS = ["process", "layer", "heap", "thread", "owner", "module", "function", "stack",
	"impact", "type", "size", "mark", "lifetime"];

export const DEFAULTS: State = {
	tab: "window",
	layer: "heap",
	from: "",
	to: "",
	zoom: "",
	otherFrom: "",
	otherTo: "",
	filters: [],
	by: ["impact", "stack"],
	columns: ["impacting", "size", "count", "peak"],
	sort: "impacting",
	rising: false,
	open: [],
	row: "",
	exitFrees: false,
	exact: false,
	strips: ["heap", "vm", "rss"],
	kind: "callers",
	value: "size",
	asText: false,
	focus: "",
	at: "",
	mapProcess: "",
	snapshot: "peak",
	diffSort: "live",
};

// The address's word for a field, where it is not the field's own name.
const NAMES: Partial<Record<keyof State, string>> = {
	otherFrom: "with-from", otherTo: "with-to", exitFrees: "exit-frees", asText: "text", mapProcess: "space",
	diffSort: "diff",
};

const SPLIT = new Set<keyof State>(["by", "columns", "strips"]);

export function formatState(state: State): string {
	const words = new URLSearchParams();

	for (const key of Object.keys(DEFAULTS) as (keyof State)[]) {
		const name = NAMES[key] ?? key;
		const value = state[key];
		if (key === "filters") {
			for (const [word, chosen] of state.filters) words.append(word === "layer" ? "only" : word, chosen);
		} else if (key === "open") {
			for (const path of state.open) words.append("open", path);
		} else if (JSON.stringify(value) !== JSON.stringify(DEFAULTS[key])) {
			words.append(name, Array.isArray(value) ? value.join(",") : value === true ? "1" : String(value));
		}
	}
	// Nothing at all is the first page.
	if (words.size === 0) words.append("tab", state.tab);
	// Kept readable: what need not be escaped in a fragment is not.
	return words.toString().replace(/%3A/g, ":").replace(/%2C/g, ",").replace(/%2F/g, "/").replace(/%23/g, "%23");
}

export function isFilter(word: string, value: string): boolean {
	return word === "row" ? ROW.test(value) : word === "not-row" ? NOT_ROW.test(value) : FILTER_WORDS.includes(word);
}

// The filter that lets pass what this one does not; null: there is none.
export function opposite([word, value]: Filter): Filter[] | null {
	const colon = value.indexOf(":");
	const [key, name] = [value.slice(0, colon), value.slice(colon + 1)];
	const impacts = ["impacting", "transient", "persistent"], types = ["AIFI", "AIFO", "AOFI", "AOFO"];

	switch (word) {
	case "process": case "thread": case "heap": case "size": return [["not-row", `${word}:${value}`]];
	case "row": return [["not-row", value]];
	case "not-row": return [ROW.test(value) ? ["row", value] : [key, name]];
	case "frame": return [["not-frame", value]];
	case "not-frame": return [["frame", value]];
	case "layer": return [["layer", value === "vm" ? "heap" : "vm"]];
	case "impact":
		return [impacts, types].find((list) => list.includes(value))?.filter((one) => one !== value).map((one): Filter => ["impact", one]) ?? null;
	default: return null;
	}
}

function isKnown(word: string): boolean {
	return ["only", "open", "selected", ...FILTER_WORDS].includes(word) ||
		(Object.keys(DEFAULTS) as (keyof State)[]).some((key) => (NAMES[key] ?? key) === word);
}

// What is not understood is left out: an address from another version still opens.
export function parseState(text: string): State {
	const words = new URLSearchParams(text);
	const state = structuredClone(DEFAULTS) as unknown as Record<string, unknown>;
	const filters: Filter[] = [];

	for (const [word, value] of words) {
		if (word === "only") filters.push(["layer", value]);
		else if (FILTER_WORDS.includes(word) && word !== "layer" && isFilter(word, value)) filters.push([word, value]);
	}
	for (const key of Object.keys(DEFAULTS) as (keyof State)[]) {
		const value = words.get(key === "row" ? "selected" : NAMES[key] ?? key);
		if (value === null || key === "filters" || key === "open") continue;
		if (SPLIT.has(key)) state[key] = value.split(",").filter(Boolean);
		else state[key] = typeof DEFAULTS[key] === "boolean" ? value === "1" : value;
	}
	const result = state as unknown as State;
	if (![...words.keys()].some((word) => isKnown(word))) result.tab = "findings";
	result.open = words.getAll("open");
	result.filters = filters;
	result.by = result.by.filter((key) => KEYS.includes(key));
	if (result.by.length === 0) result.by = [...DEFAULTS.by];
	result.columns = result.columns.filter((column) => COLUMNS.includes(column));
	if (result.columns.length === 0) result.columns = [...DEFAULTS.columns];
	if (result.layer !== "vm") result.layer = "heap";
	return result;
}

NAMES.row = "selected";

export const FORM: Form<State> = { parse: parseState, format: formatState };

// How a state is written into the address, and read from there.
export interface Form<S> {
	parse(text: string): S;
	format(state: S): string;
}

// Holds the state, keeps the address in step, and tells who listens what changed.
export class Store<S extends object = State> {
	state: S;
	private listeners: ((changed: Set<keyof S>) => void)[] = [];
	private depth = 0;

	// prefix: what else stands in the fragment (the token).
	constructor(text: string, private prefix: string, private form: Form<S>) {
		this.state = form.parse(text);
		window.addEventListener("popstate", () => this.restore());
		window.addEventListener("hashchange", () => this.restore());
		this.write(true);
	}

	listen(listener: (changed: Set<keyof S>) => void): void {
		this.listeners.push(listener);
	}

	// brief: this is a step of something that goes on (a drag), not one to go back to.
	set(change: Partial<S>, brief = false): void {
		const before = this.state;
		const changed = differences(before, { ...before, ...change });

		if (changed.size === 0) return;
		this.state = { ...before, ...change };
		this.write(brief);
		this.tell(changed);
	}

	// Nothing changed, but what was answered quickly shall be answered in full.
	touch(key: keyof S): void {
		this.tell(new Set([key]));
	}

	get canGoBack(): boolean {
		return this.depth > 0;
	}

	back(): void {
		if (this.depth > 0) window.history.back();
	}

	private write(brief: boolean): void {
		const words = [this.prefix, this.form.format(this.state)].filter(Boolean).join("&");
		const url = `#${words}`;
		if (`#${window.location.hash.slice(1)}` === url) return;
		if (brief) {
			window.history.replaceState({ depth: this.depth }, "", url);
		} else {
			this.depth++;
			window.history.pushState({ depth: this.depth }, "", url);
		}
	}

	private restore(): void {
		const before = this.state;

		this.state = this.form.parse(window.location.hash.slice(1));
		this.depth = window.history.state?.depth ?? 0;
		const changed = differences(before, this.state);
		if (changed.size > 0) this.tell(changed);
	}

	private tell(changed: Set<keyof S>): void {
		for (const listener of this.listeners) listener(changed);
	}
}

function differences<S extends object>(a: S, b: S): Set<keyof S> {
	const keys = Object.keys(a) as (keyof S)[];
	return new Set(keys.filter((key) => JSON.stringify(a[key]) !== JSON.stringify(b[key])));
}
