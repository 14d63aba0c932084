// words: the filters of the command line, typed into the search field; and the command line that
// answers what is on the screen.
import type { Filter, State } from "./state";
import { FILTER_WORDS, isFilter } from "./state";
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

// What to type for the same answer.
export function commandLine(state: State, file: string, other: string | null): string {
	const words = state.filters.flatMap(([word, value]) => [`--${word}`, quote(value)]);
	const edges = [
		...(state.from ? ["--from", quote(readableWord(state.from))] : []),
		...(state.to ? ["--to", quote(readableWord(state.to))] : []),
	];
	const layer = state.layer === "vm" ? ["--layer", "vm"] : [];
	return ["tidemark", ...commandOf(state, file, other, edges), ...layer, ...words].join(" ");
}

function commandOf(state: State, file: string, other: string | null, edges: string[]): string[] {
	const exit = state.exitFrees ? ["--exit-frees"] : [];
	const name = quote(file);

	switch (state.tab) {
	case "flame":
		if (state.value === "peak")
			return ["window", name, "--from", "peak", "--to", "peak", "--tree", state.kind, "--sort", "size"];
		return ["window", name, ...edges, "--tree", state.kind, "--sort", state.value, ...exit];
	case "sizes":
		return ["window", name, ...edges, "--by", "size,stack", ...exit];
	case "threads":
		return ["window", name, ...edges, "--by", "thread", ...exit];
	case "space":
		return ["map", name, ...(state.at ? ["--at", quote(readableWord(state.at))] : []),
			...(state.mapProcess ? ["--process", quote(state.mapProcess)] : [])];
	case "growth":
		return ["growth", name, ...edges];
	case "peaks":
		return ["transients", name, ...edges];
	case "resident":
		return ["reconcile", name];
	case "diff":
		return state.otherFrom || state.otherTo || !other
			? ["diff", name, ...edges, ...(state.otherFrom ? ["--with-from", quote(readableWord(state.otherFrom))] : []),
				...(state.otherTo ? ["--with-to", quote(readableWord(state.otherTo))] : []), "--sort", state.diffSort]
			: ["diff", name, quote(other), ...edges, "--sort", state.diffSort];
	default:
		return ["window", name, ...edges, "--by", state.by.join(","),
			...(state.sort !== "impacting" ? ["--sort", state.sort] : []), ...exit];
	}
}
