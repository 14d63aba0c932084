// diff: what changed between two traces, or between the windows A and B of one.
import { edges, layerParams, messageOf, type App, type Screen, STACK_COLUMNS, stackName } from "../app";
import { isSuperseded, type Params } from "../ask/source";
import type { Change, Diff, DiffRow } from "../ask/types";
import { choice, fill, h } from "../base/dom";
import type { State } from "../base/state";
import { bytes, count, duration, plural, signedBytes, signedCount } from "../base/text";
import { Grid } from "../parts/grid";
import { site } from "./growth";
import { emptyState } from "./resident";

const STATES = { both: ["~", "on both sides"], new: ["+", "only on the second"], gone: ["−", "only on the first"], moved: ["→", "on both sides, in two places"] } as const;
const SORTS: [string, string][] = [["live", "Live at the end"], ["peak", "At the peak"], ["allocated", "Allocated"], ["count", "Count"], ["temporary", "Temporary"]];

export class DiffScreen implements Screen {
	readonly id = "diff";
	readonly title = "Compare";
	readonly root: HTMLElement;
	private grid: Grid<DiffRow>;
	private said = h("div", { class: "diff-totals" });
	private control: { root: HTMLElement; update(): void };
	private body: HTMLElement;
	private nothing = emptyState("Nothing to compare with yet",
		"Draw a second window with shift and the mouse on the timeline, or open two traces: tidemark view FILE --diff OTHER.");

	constructor(private app: App) {
		this.control = choice("Rank by the change in", SORTS, () => app.store.state.diffSort, (diffSort) => app.store.set({ diffSort }));
		this.grid = new Grid<DiffRow>({
			name: "Differences", empty: "Nothing changed.",
			columns: [
				{ key: "state", title: "", hint: "+ new, − gone, → moved, ~ on both sides", value: (row) => STATES[row.state][0], show: (row) => h("span", { title: STATES[row.state][1] }, STATES[row.state][0]) },
				{ key: "site", title: "Site", text: true, value: (row) => stackName(row).name, more: STACK_COLUMNS, show: (row) => site(row) },
				this.change("live", "Δ live"), this.change("peak", "Δ peak"), this.change("allocated", "Δ allocated"),
				{ key: "count", title: "Δ count", value: (row) => row.allocated.count, show: (row) => signed(row.allocated.count, signedCount) },
				{ key: "before", title: "Before", hint: "live bytes of the first", value: (row) => row.live.before_bytes, show: (row) => bytes(row.live.before_bytes), exact: (row) => `${count(row.live.before_bytes)} bytes` },
				{ key: "after", title: "After", hint: "live bytes of the second", value: (row) => row.live.after_bytes, show: (row) => bytes(row.live.after_bytes), exact: (row) => `${count(row.live.after_bytes)} bytes` },
			],
			chosen: (row) => app.showStack(row, stackName(row).name),
		});
		this.body = h("div", { class: "screen" }, h("div", { class: "bar" }, this.control.root), this.said, this.grid.root);
		this.root = h("div", { class: "screen" }, this.body);
	}

	private change(key: "live" | "peak" | "allocated", title: string) {
		return {
			key, title, value: (row: DiffRow) => row[key].bytes, show: (row: DiffRow) => signed(row[key].bytes, signedBytes),
			exact: (row: DiffRow) => `${count(row[key].before_bytes)} → ${count(row[key].after_bytes)} bytes`,
		};
	}

	// Of one trace: two windows; of two: the same window of both.
	private params(): Params | null {
		const state = this.app.store.state;
		const params = layerParams(state).filter(([word]) => word !== "impact");

		params.push(["sort", state.diffSort], ["n", "500"]);
		if (state.from) params.push(["from", state.from]);
		if (state.to) params.push(["to", state.to]);
		if (edges(this.app, true)) {
			params.push(["with", "self"], ["with-from", state.otherFrom || "begin"], ["with-to", state.otherTo || "end"]);
			return params;
		}
		return this.app.view.diff ? params : null;
	}

	update(changed: Set<keyof State>): void {
		this.control.update();
		if (this.app.dragging) return;
		if (["from", "to", "otherFrom", "otherTo", "filters", "layer", "diffSort", "tab"].some((key) => changed.has(key as keyof State)))
			void this.ask();
	}

	private async ask(): Promise<void> {
		const params = this.params();
		const shown = params ? this.body : this.nothing;

		if (this.root.firstChild !== shown) this.root.replaceChildren(shown);
		if (!params) return;
		this.grid.wait();
		try {
			const answer = await this.app.source.get<Diff>("diff", params, "diff");
			this.grid.set(answer.rows);
			this.showTotals(answer);
		} catch (error) {
			if (isSuperseded(error)) return;
			fill(this.said);
			this.grid.set([], messageOf(error));
		}
	}

	private showTotals(answer: Diff): void {
		const windows = edges(this.app, true) !== null;
		const name = (which: "before" | "after") => windows ? which === "before" ? "A" : "B"
			: which === "before" ? this.app.view.file : this.app.view.diff;
		const side = (which: "before" | "after") => h("span", {}, h("b", { class: which === "after" ? "tag-b" : "tag-a" }, name(which)),
			` ${duration(answer[which].from_ns)} – ${duration(answer[which].to_ns)}`);
		const figure = (title: string, change: Change | null) => change === null ? null : h("div", { class: "figure", "data-figure": `diff ${title}`, "data-value": change.bytes },
			h("span", { class: "name" }, title), h("span", { class: "value" }, signed(change.bytes, signedBytes)),
			h("span", { class: "name" }, `${bytes(change.before_bytes)} → ${bytes(change.after_bytes)}`));
		fill(this.said, h("div", { class: "sides" }, side("before"), " → ", side("after")),
			h("div", { class: "figures" }, figure("live", answer.total.live), figure("peak", answer.total.peak),
				figure("allocated", answer.total.allocated), figure("temporary", answer.total.temporary)),
			h("span", { class: "caption" }, `${plural(answer.stacks.new, "stack")} new, ${count(answer.stacks.gone)} gone, ${count(answer.stacks.moved)} moved, ` +
				`${count(answer.stacks.changed)} changed, ${count(answer.stacks.same)} the same`));
	}

	csv(): string {
		return this.grid.csv();
	}
}

// Told apart by more than colour.
function signed(value: number, text: (value: number) => string): Node {
	return h("span", { class: value > 0 ? "grew" : value < 0 ? "shrank" : "" },
		value === 0 ? "" : h("span", { class: "arrow", "aria-hidden": "true" }, value > 0 ? "▲ " : "▼ "), text(value));
}
