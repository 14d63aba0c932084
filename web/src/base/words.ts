// words: the filters of the command line, typed into the search field; and the command line that
// answers what is on the screen.
import type { Filter, State } from "./state";
import { DEFAULTS, FILTER_WORDS, isFilter } from "./state";
import { readableWord } from "./times";

// Splits as a shell does: blanks between words, quotes around blanks, a backslash before either.
export function splitWords(text: string): string[] {
	const words: string[] = [];
	let word = "", quote = "", inside = false;

	for (let i = 0; i < text.length; i++) {
		const c = text[i];
		if (quote) {
			if (c === quote) quote = "";
			else if (c === "\\" && quote === '"' && i + 1 < text.length) word += text[++i];
			else word += c;
		} else if (c === "'" || c === '"') {
			quote = c;
			inside = true;
		} else if (c === "\\" && i + 1 < text.length) {
			word += text[++i];
			inside = true;
		} else if (/\s/.test(c)) {
			if (inside || word) words.push(word);
			word = "";
			inside = false;
		} else {
			word += c;
		}
	}
	if (inside || word) words.push(word);
	return words;
}

export interface Typed {
	filters: Filter[];
	from?: string;
	to?: string;
	rest: string[]; // words that are no filters: names to look for
	wrong: string | null; // a filter without a value
}

// "--size 32..64 --frame=^foo", "size:32..64 frame:^foo", "from=mark:load": all three forms.
export function parseTyped(text: string): Typed {
	const typed: Typed = { filters: [], rest: [], wrong: null };
	const words = splitWords(text);

	for (let i = 0; i < words.length; i++) {
		const match = /^(?:--)?([a-z-]+)(?:[=:](.*))?$/s.exec(words[i]);
		const name = match?.[1] ?? "";
		const known = name === "from" || name === "to" || FILTER_WORDS.includes(name);
		const dashed = words[i].startsWith("--");
		if (!match || !known || (match[2] === undefined && !dashed)) {
			if (dashed) typed.wrong ??= `${words[i]} is no filter`;
			else typed.rest.push(words[i]);
			continue;
		}
		const value = match[2] ?? words[++i];
		if (!value) {
			typed.wrong ??= `${name} needs a value`;
		} else if (name === "from" || name === "to") {
			typed[name] = value;
		} else if (!isFilter(name, value)) {
			typed.wrong ??= `${value} is no row (function:NAME, module:PATH, stack:ID …)`;
		} else {
			typed.filters.push([name, value]);
		}
	}
	return typed;
}

// A name as a POSIX extended regular expression that matches it alone.
export function exactly(name: string): string {
	return `^${escapeRegex(name)}$`;
}

export function escapeRegex(text: string): string {
	return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

export function quote(word: string): string {
	return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replace(/'/g, "'\\''")}'`;
}

// The filters that a tab's question does not take: growth is not about what is freed again …
const UNASKED: Record<string, string[]> = {
	growth: ["impact", "lifetime"], peaks: ["impact"], diff: ["impact"],
};

// What to type for the same answer, wherever one is. Paths are those of the view.
// `at`: the moment that a flame graph of the peak shows.
export function commandLine(state: State, file: string, other: string | null, at = "peak"): string {
	const edges = [
		...(state.from ? ["--from", quote(readableWord(state.from))] : []),
		...(state.to ? ["--to", quote(readableWord(state.to))] : []),
	];
	return ["tidemark", ...commandOf(state, file, other, edges, at), ...filtersOf(state)].join(" ");
}

// As the page sends them: see layerParams.
function filtersOf(state: State): string[] {
	const asked = ([word]: Filter) => state.tab === "space" ? false
		: state.tab === "resident" ? word === "process" : !UNASKED[state.tab]?.includes(word);
	const filters = state.filters.filter(asked).flatMap(([word, value]) => [`--${word}`, quote(value)]);
	const both = ["space", "resident"].includes(state.tab) || (["window", "sizes"].includes(state.tab) && state.by.includes("layer"));

	return state.layer === "vm" && !both && !state.filters.some(([word]) => word === "layer") ? ["--layer", "vm", ...filters] : filters;
}

function same(a: string[], b: string[]): boolean {
	return a.join() === b.join();
}

function commandOf(state: State, file: string, other: string | null, edges: string[], at: string): string[] {
	const exit = state.exitFrees ? ["--exit-frees"] : [];
	const name = quote(file);

	switch (state.tab) {
	case "flame":
		if (state.value === "peak")
			return ["window", name, "--from", quote(at), "--to", quote(at), "--tree", state.kind, "--sort", "size", ...exit];
		return ["window", name, ...edges, "--tree", state.kind, "--sort", state.value, ...exit];
	case "threads":
		return ["window", name, ...edges, "--by", "thread", "--sort", "size", "--rows", "200", ...exit];
	case "space":
		return ["map", name, ...(state.at ? ["--at", quote(readableWord(state.at))] : []),
			...(state.mapProcess ? ["--process", quote(state.mapProcess)] : []), "--rows", "200"];
	case "findings":
		return ["findings", name, ...edges];
	case "growth":
		return ["growth", name, ...edges, "--rows", "200"];
	case "peaks":
		return ["transients", name, ...edges, "--rows", "200"];
	case "resident":
		return ["reconcile", name, "--at", state.snapshot, "--rows", "100"];
	case "diff":
		return state.otherFrom || state.otherTo || !other
			? ["diff", name, ...edges, "--with-from", quote(readableWord(state.otherFrom || "begin")),
				"--with-to", quote(readableWord(state.otherTo || "end")), "--sort", state.diffSort, "--rows", "500"]
			: ["diff", name, quote(other), ...edges, "--sort", state.diffSort, "--rows", "500"];
	default:
		return ["window", name, ...edges, "--by", state.by.join(","),
			...(state.sort !== "impacting" ? ["--sort", state.sort] : []),
			...(same(state.columns, DEFAULTS.columns) ? [] : ["--columns", state.columns.join(",")]), "--rows", "200", ...exit];
	}
}
