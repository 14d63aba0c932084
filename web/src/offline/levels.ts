// levels: curves and histograms, from cells and from the curves that the page was written with.
import { AskError } from "../ask/source";
import type { Amount, Bin, Histogram, Timeline } from "../ask/types";
import { octaveRange } from "./data";
import type { Question, Type } from "./question";

// A curve as the question wants it: so many equal buckets, of each the highest of what the data's own
// buckets have there.
export function timelineOf(question: Question, lines: Record<string, Timeline | undefined>, foreign = false): Timeline {
	const layer = question.one("layer") ?? "heap";
	const filters = ["process", "thread", "heap", "size", "module", "frame", "not-frame", "row", "not-row"].some((word) => question.words.has(word));
	const stored = lines[layer];

	if (filters && !foreign && layer !== "rss") return resampled(question, levels(question, layer), layer);
	if (!stored) throw new AskError(`this page has no curve of ${layer}`, "not-recorded", 409);
	const width = (stored.to_ns - stored.from_ns) / stored.buckets;
	return resampled(question, {
		edges: stored.peak_bytes.map((_, b) => stored.from_ns + b * width), start: stored.start_bytes, peak: stored.peak_bytes,
		count: stored.most_count ?? null,
	}, layer);
}

interface Levels {
	edges: number[]; // where they begin
	start: number;
	peak: (number | null)[];
	count: (number | null)[] | null;
}

// Of chosen cells: known at edges, so a bucket's peak is at least this.
function levels(question: Question, layer: string): Levels {
	const buckets = question.data.edges_ns.length - 1;
	const bytes = new Float64Array(buckets + 1), counts = new Float64Array(buckets + 1);
	const { cells } = question.data;
	let start = 0, startCount = 0;

	question.eachCell((cell) => {
		if (layer === "cumulative") {
			if (cells.begin[cell] >= 0) {
				bytes[cells.begin[cell]] += cells.bytes[cell];
				counts[cells.begin[cell]] += cells.count[cell];
			}
			return;
		}
		if (cells.begin[cell] < 0) {
			start += cells.bytes[cell];
			startCount += cells.count[cell];
		} else {
			bytes[cells.begin[cell]] += cells.bytes[cell];
			counts[cells.begin[cell]] += cells.count[cell];
		}
		bytes[cells.end[cell]] -= cells.bytes[cell];
		counts[cells.end[cell]] -= cells.count[cell];
	});
	let level = start, count = startCount;
	const peak: number[] = [], peakCount: number[] = [];
	for (let b = 0; b < buckets; b++) {
		peak.push(Math.max(level, level + bytes[b]));
		peakCount.push(Math.max(count, count + counts[b]));
		level += bytes[b];
		count += counts[b];
	}
	return { edges: question.data.edges_ns, start, peak, count: peakCount };
}

function resampled(question: Question, levels: Levels, layer: string): Timeline {
	const { edges } = levels;
	const exactly = (word: string | undefined, otherwise: number) => word === undefined ? otherwise : question.moment(word);
	const from = exactly(question.one("from"), 0), to = Math.max(from + 1, exactly(question.one("to"), question.data.view.duration_ns));
	const buckets = Math.max(1, Math.min(4096, Number(question.one("buckets") ?? 800)));
	const width = (to - from) / buckets;
	const highest = (values: (number | null)[]) => {
		const result: (number | null)[] = [];
		let first = 0;
		for (let b = 0; b < buckets; b++) {
			const low = from + b * width, high = low + width;
			while (first < values.length - 1 && edges[first + 1] <= low) first++;
			let most: number | null = null;
			for (let i = first; i < values.length && (edges[i] < high || edges[i + 1] === high); i++) {
				const value = values[i];
				if (value !== null && (most === null || value > most)) most = value;
			}
			result.push(most);
		}
		return result;
	};
	const before = Math.max(0, edges.findLastIndex((edge) => edge < from));
	return {
		layer, from_ns: from, to_ns: to, buckets, peak_bytes: highest(levels.peak), start_bytes: from === 0 ? levels.start : levels.peak[before] ?? 0,
		...(levels.count ? { most_count: highest(levels.count) } : {}),
	};
}

const CLASS: Record<Type, keyof Pick<Bin, "impacting" | "freed_before" | "transient" | "persistent">> = {
	AIFO: "impacting", AOFI: "freed_before", AIFI: "transient", AOFO: "persistent",
};

export function histogramOf(question: Question): Histogram {
	const bins = new Map<number, Bin>();
	const { cells } = question.data;
	const none = (): Amount => ({ count: 0, bytes: 0 });

	question.eachCell((cell) => {
		const type = question.type(cell);
		if (!type || !question.takesType(type)) return;
		const octave = cells.octave[cell];
		let bin = bins.get(octave);
		if (!bin) {
			const [size_min, size_max] = octaveRange(octave);
			bins.set(octave, bin = { size_min, size_max, impacting: none(), freed_before: none(), transient: none(), persistent: none() });
		}
		bin[CLASS[type]].count += cells.count[cell];
		bin[CLASS[type]].bytes += cells.bytes[cell];
	});
	return {
		from_ns: question.fromNs, to_ns: question.toNs,
		bins: [...bins.entries()].sort((a, b) => a[0] - b[0]).map(([, bin]) => bin),
	};
}
