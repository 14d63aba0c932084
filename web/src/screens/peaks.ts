// peaks: where the level stands out, what makes it rise and fall back, and buffers that could be kept.
import { type App, edges, messageOf, type Screen, STACK_COLUMNS, stackName, windowParams } from "../app";
import { isSuperseded, type Question } from "../ask/source";
import type { Peak, Peaks, Series, Spike, Transients } from "../ask/types";
import { h } from "../base/dom";
import type { State } from "../base/state";
import { bytes, count, csvTables, duration, plural } from "../base/text";
import { nsWord } from "../base/times";
import { Grid } from "../parts/grid";
import { site } from "./growth";

export class PeaksScreen implements Screen {
	readonly id = "peaks";
	readonly title = "Peaks";
	readonly root: HTMLElement;
	private peaks: Grid<Peak>;
	private spikes: Grid<Spike>;
	private series: Grid<Series>;
	private said = h("span", { class: "caption" });
	// The window whose peaks are listed; none: all of the time. A peak that is chosen becomes the
	// window, one moment, and the list stays.
	private span: [string, string][] = [];

	constructor(private app: App) {
		this.peaks = new Grid<Peak>({
			name: "Peaks", sort: "", empty: "The level has no top here: it only rises, or only falls.",
			columns: [
				{ key: "time", title: "At", value: (row) => row.time_ns, show: (row) => duration(row.time_ns) },
				{ key: "bytes", title: "Level", value: (row) => row.bytes, show: (row) => bytes(row.bytes), exact: (row) => `${count(row.bytes)} bytes` },
				{ key: "count", title: "Blocks", value: (row) => row.count, show: (row) => count(row.count) },
				{ key: "rise", title: "Stands out by", hint: "above the higher of the two valleys beside it", value: (row) => row.rise_bytes, show: (row) => bytes(row.rise_bytes) },
			],
			chosen: (row) => this.goTo(row),
		});
		this.spikes = new Grid<Spike>({
			name: "Spikes", empty: "Nothing rises and falls back in this window.",
			columns: [
				{ key: "maker", title: "Who", text: true, value: (row) => row.makers[0] ? stackName(row.makers[0]).name : "", more: STACK_COLUMNS.map(([title, value]) => [title, (row) => row.makers[0] ? value(row.makers[0]) : ""]), show: (row) => row.makers[0] ? site(row.makers[0]) : "–" },
				{ key: "height", title: "Height", value: (row) => row.height_bytes, show: (row) => bytes(row.height_bytes), exact: (row) => `${count(row.height_bytes)} bytes` },
				{ key: "spikes", title: "Spikes", value: (row) => row.spikes, show: (row) => row.hill ? "hill" : count(row.spikes) },
				{ key: "begin", title: "Begins", hint: "rises above half its height", value: (row) => row.half_begin_ns, show: (row) => duration(row.half_begin_ns) },
				{ key: "length", title: "Takes", hint: "above half its height", value: (row) => row.half_end_ns - row.half_begin_ns, show: (row) => `${duration(row.half_end_ns - row.half_begin_ns)}${row.ended ? "" : " +"}` },
			],
			chosen: (row) => {
				if (row.makers[0]) app.showStack(row.makers[0], stackName(row.makers[0]).name);
				app.highlight([[row.begin_ns, row.end_ns]]);
			},
		});
		this.series = new Grid<Series>({
			name: "Reusable buffers", empty: "No equal buffers that live one at a time.",
			columns: [
				{ key: "site", title: "One buffer would do", text: true, value: (row) => stackName(row).name, more: STACK_COLUMNS, show: (row) => site(row) },
				{ key: "count", title: "Times", value: (row) => row.count, show: (row) => count(row.count) },
				{ key: "size", title: "Size", value: (row) => row.size, show: (row) => bytes(row.size), exact: (row) => `${count(row.size)} bytes` },
				{ key: "life", title: "Lives", value: (row) => row.lifetime_ns, show: (row) => duration(row.lifetime_ns) },
				{ key: "period", title: "Every", value: (row) => row.period_ns, show: (row) => duration(row.period_ns) },
			],
			chosen: (row) => app.showStack(row, stackName(row).name),
		});
		this.root = h("div", { class: "screen columns" },
			h("section", { class: "narrow-part", "aria-label": "Peaks" }, h("header", {}, h("h2", {}, "Peaks"), this.said), this.peaks.root),
			h("div", { class: "halves" },
				h("section", { "aria-label": "Spikes" }, h("header", {}, h("h2", {}, "Spikes"), h("span", { class: "caption" }, "rises that fall back")), this.spikes.root),
				h("section", { "aria-label": "Reusable buffers" }, h("header", {}, h("h2", {}, "Equal buffers, one at a time"), h("span", { class: "caption" }, "each could be allocated once and kept")), this.series.root)));
	}

	update(changed: Set<keyof State>): void {
		if (this.app.dragging) return;
		const before = JSON.stringify(this.span), window = edges(this.app);
		if (!window || window[0] !== window[1])
			this.span = windowParams(this.app.store.state).filter(([word]) => word === "from" || word === "to");
		if (before !== JSON.stringify(this.span) || ["filters", "layer", "tab"].some((key) => changed.has(key as keyof State))) void this.askPeaks();
		if (["from", "to", "filters", "layer", "tab"].some((key) => changed.has(key as keyof State))) void this.askSpikes();
	}

	private params(): [string, string][] {
		return windowParams(this.app.store.state).filter(([word]) => !["impact", "exit-frees"].includes(word));
	}

	ahead(): Question[] {
		const filters = this.params().filter(([word]) => word !== "from" && word !== "to");

		return [["peaks", [...this.span, ...filters, ["n", "100"]]], ["transients", this.params()]];
	}

	private async askPeaks(): Promise<Peak[]> {
		this.peaks.wait();
		this.said.textContent = `${this.span.length > 0 ? "of the window; " : ""}n: the next of all; choose one: what lived there`;
		try {
			const answer = await this.app.source.get<Peaks>(...this.ahead()[0], "peaks");
			this.peaks.set(answer.peaks);
			return answer.peaks;
		} catch (error) {
			if (!isSuperseded(error)) this.peaks.set([], messageOf(error));
			return [];
		}
	}

	private async askSpikes(): Promise<void> {
		const window = edges(this.app);
		if (window && window[0] === window[1]) {
			this.spikes.set([], "The window is one moment: nothing can rise and fall in it.");
			this.series.set([], "The window is one moment.");
			return;
		}
		this.spikes.wait();
		this.series.wait();
		try {
			const answer = await this.app.source.get<Transients>(...this.ahead()[1], "transients");
			this.spikes.set(answer.spikes);
			this.series.set(answer.series);
		} catch (error) {
			if (isSuperseded(error)) return;
			this.spikes.set([], messageOf(error));
			this.series.set([], messageOf(error));
		}
	}

	private goTo(peak: Peak): void {
		const word = nsWord(peak.time_ns);
		this.app.store.set({ from: word, to: word, row: "" });
		this.app.say(`peak of ${bytes(peak.bytes)} in ${plural(peak.count, "block")} at ${duration(peak.time_ns)}`);
	}

	// The first peak behind the window's beginning; after the last comes the first again.
	async next(): Promise<void> {
		this.span = [];
		const peaks = await this.askPeaks();
		const from = this.app.store.state.from ? edges(this.app)?.[0] ?? -1 : -1;
		const peak = peaks.find((one) => one.time_ns > from) ?? peaks[0];
		if (!peak) {
			this.app.say("no peak stands out here");
			return;
		}
		this.goTo(peak);
		this.peaks.select(peaks.indexOf(peak));
	}

	csv(): string {
		return csvTables([["Peaks", this.peaks.csv()], ["Spikes", this.spikes.csv()], ["Equal buffers", this.series.csv()]]);
	}
}
