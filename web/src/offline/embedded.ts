// embedded: answers from the data inside the page. It answers what a server would, for windows whose
// edges are the data's, and refuses what it cannot know.
import { AskError, type Params, type Source } from "../ask/source";
import type { MapAnswer } from "../ask/types";
import { type Data, decode } from "./data";
import { Question, ticksOf } from "./question";
import { histogramOf, timelineOf } from "./levels";
import { treeOf, windowOf } from "./windows";

// null: this page has none; a server has to answer.
export async function openEmbedded(): Promise<Source | null> {
	const element = document.getElementById("tidemark-data");
	return element ? new EmbeddedSource(await decode(element.textContent ?? "")) : null;
}

export class EmbeddedSource implements Source {
	readonly single = true;
	readonly edges: number[];

	constructor(private data: Data) {
		this.edges = ticksOf(data).map((edge) => data.edges_ns[edge]);
	}

	async get<T>(path: string, params: Params = []): Promise<T> {
		return this.answer(path, params) as T;
	}

	leaveTab(): void {} // whatever was asked is answered
	drop(): void {}

	async text(): Promise<never> {
		throw new AskError("a page from a file has no source texts inside", "path", 404);
	}

	private answer(path: string, params: Params): unknown {
		const { data } = this;

		switch (path) {
		case "view": return { ...data.view, single_file: true };
		case "info": return data.info;
		case "marks": return data.marks;
		case "window": return windowOf(new Question(data, params));
		case "tree": return treeOf(new Question(data, params));
		case "timeline": return timelineOf(new Question(data, params), data.timelines);
		case "diff/timeline": return timelineOf(new Question(data, params), data.diff_timelines ?? {}, true);
		case "histogram": return histogramOf(new Question(data, params));
		case "sizelife": return this.whole(data.sizelife, "lifetimes", params);
		case "findings": return this.whole(data.findings, "findings", params);
		case "growth": return this.whole(data.growth, "growth", params);
		case "transients": return this.whole(data.transients, "spikes", params);
		case "peaks": return this.peaks(params);
		case "map": return this.map(params);
		case "reconcile": return there(data.reconcile, "a snapshot of resident memory");
		case "diff":
			if (params.some(([word, value]) => word === "with" && value === "self"))
				throw new AskError("a page from a file cannot compare two windows: ask the trace", "not-recorded", 409);
			return this.whole(data.diff, "the differences", params);
		default: throw new AskError(`a page from a file cannot answer this (${path}): ask the trace`, "not-recorded", 409);
		}
	}

	// What was computed when the page was written: over all, without filters, of the heap.
	private whole<T>(answer: T | null | undefined, what: string, params: Params): T {
		const question = new Question(this.data, params);
		if (question.narrow || question.layer === 1)
			throw new AskError(`this page has ${what} of the whole trace's heap only: take all, without filters, or ask the trace`, "not-recorded", 409);
		return there(answer, what);
	}

	private peaks(params: Params): unknown {
		const question = new Question(this.data, params);
		if (question.filtered || question.layer === 1)
			throw new AskError("this page has the peaks of the whole heap only: take away the filters, or ask the trace", "not-recorded", 409);
		const all = there(this.data.peaks, "peaks");
		const { fromNs, toNs } = question;
		return { ...all, from_ns: fromNs, to_ns: toNs, peaks: all.peaks.filter((peak) => peak.time_ns >= fromNs && peak.time_ns <= toNs) };
	}

	// The map of the moment that is nearest.
	private map(params: Params): MapAnswer {
		const question = new Question(this.data, params.filter(([word]) => word !== "at" && word !== "process"));
		const at = question.moment(params.find(([word]) => word === "at")?.[1] ?? "end");
		const process = params.find(([word]) => word === "process")?.[1];
		const maps = (this.data.maps ?? []).filter((map) => process === undefined || String(map.process_id) === process || String(map.process) === process);
		return there(maps.reduce<MapAnswer | null>((best, map) =>
			!best || Math.abs(map.at_ns - at) < Math.abs(best.at_ns - at) ? map : best, null), "a map of the address space");
	}
}

function there<T>(answer: T | null | undefined, what: string): T {
	if (answer === null || answer === undefined) throw new AskError(`this page does not have ${what}`, "not-recorded", 409);
	return answer;
}
