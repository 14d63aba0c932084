// times: the command line's words for moments, and back. A mark stays a mark where it can, because
// a mark is a place in the order of events and a time is not.
import type { Mark, View } from "../ask/types";

export interface Clock {
	duration: number;
	peak: number | null;
	marks: Mark[];
}

export function clockOf(view: View, marks: Mark[], layer: string): Clock {
	return { duration: view.duration_ns, peak: view.peak[layer]?.time_ns ?? null, marks };
}

const UNITS: Record<string, number> = { ns: 1, us: 1e3, "µs": 1e3, ms: 1e6, s: 1e9, min: 60e9, h: 3600e9 };

// "350ms" in ns; null: not a length of time. A number alone is seconds.
export function lengthNs(word: string): number | null {
	const parts = /^(\d+(?:\.\d*)?|\.\d+)\s*(ns|us|µs|ms|s|min|h)?$/.exec(word.trim());
	return parts ? Math.round(Number(parts[1]) * UNITS[parts[2] ?? "s"]) : null;
}

// Where a word is, in ns since the recording began; null: it makes no sense, or is outside.
export function timeNs(word: string, clock: Clock): number | null {
	const at = anywhere(word.trim(), clock);

	return at === null || at < 0 || at > clock.duration ? null : at;
}

function anywhere(word: string, clock: Clock): number | null {
	if (word === "begin" || word === "") return 0;
	if (word === "end") return clock.duration;
	if (word === "peak") return clock.peak;
	if (word.startsWith("mark:")) return markNs(word.slice(5), clock);
	const share = /^(\d+(?:\.\d+)?)%$/.exec(word);
	if (share) return Math.round(clock.duration * Number(share[1]) / 100);
	if (word.startsWith("-")) {
		const before = lengthNs(word.slice(1));
		return before === null ? null : clock.duration - before;
	}
	return lengthNs(word);
}

function markNs(word: string, clock: Clock): number | null {
	const shifted = /^(.*?)([+-])([\d.]+(?:ns|us|µs|ms|s|min|h)?)$/.exec(word);

	// A mark's own name may look like that.
	const plain = findMark(word, clock.marks);
	if (plain) return plain.time_ns;
	if (!shifted) return null;
	const mark = findMark(shifted[1], clock.marks);
	const by = lengthNs(shifted[3]);
	if (!mark || by === null) return null;
	return mark.time_ns + (shifted[2] === "+" ? by : -by);
}

// The mark that a word of time names, and nothing else; null: it is another word.
export function markOf(word: string, marks: Mark[]): Mark | null {
	return word.trim().startsWith("mark:") ? findMark(word.trim().slice(5), marks) : null;
}

export function findMark(word: string, marks: Mark[]): Mark | null {
	const numbered = /^(.*)#(-?\d+)$/.exec(word);
	const named = marks.filter((mark) => mark.name === (numbered ? numbered[1] : word));
	const nth = numbered ? Number(numbered[2]) : 1;

	return (nth < 0 ? named[named.length + nth] : named[nth - 1]) ?? null;
}

export function markWord(mark: Mark): string {
	return mark.of > 1 || mark.name.includes("#") ? `mark:${mark.name}#${mark.nth}` : `mark:${mark.name}`;
}

export function nsWord(ns: number): string {
	return `${Math.round(ns)}ns`;
}

// The same word, shorter to read: 1.2345s instead of 1234500000ns.
export function readableWord(word: string): string {
	const ns = /^(\d+)ns$/.exec(word);

	if (!ns) return word;
	const value = Number(ns[1]);
	for (const [unit, length] of [["s", 1e9], ["ms", 1e6], ["us", 1e3]] as const)
		if (value >= length) return `${Number((value / length).toPrecision(15))}${unit}`;
	return word;
}
