// threads: who allocated: processes, threads, heaps, side by side.
import { type App, keyText, keyValue, messageOf, type Screen, windowParams } from "../app";
import { isSuperseded } from "../ask/source";
import type { WindowAnswer, WindowRow } from "../ask/types";
import { h } from "../base/dom";
import type { State } from "../base/state";
import { bytes, count, csvTables, signedBytes } from "../base/text";
import { Grid } from "../parts/grid";

const KEYS: [string, string, string][] = [["thread", "Thread", "Threads"], ["heap", "Heap", "Heaps"], ["process", "Process", "Processes"], ["owner", "Owner", "Owners"]];

export class ThreadsScreen implements Screen {
	readonly id = "threads";
	readonly title = "Threads & heaps";
	readonly root: HTMLElement;
	private counting = new Set<string>(); // keys of rows whose peaks are not there yet
	private grids = new Map<string, { grid: Grid<WindowRow>; box: HTMLElement }>();

	constructor(private app: App) {
		for (const [key, one, title] of KEYS) {
			const grid = this.grid(key, one, title);
			this.grids.set(key, { grid, box: h("section", { "aria-label": title }, h("h2", {}, title), grid.root) });
		}
		this.root = h("div", { class: "screen four" }, ...[...this.grids.values()].map(({ box }) => box));
	}

	private grid(key: string, one: string, title: string): Grid<WindowRow> {
		const bytesOf = (n: number) => `${count(n)} bytes`;
		return new Grid<WindowRow>({
			name: title, sort: "size", empty: "Nothing lived in this window.",
			columns: [
				{ key: "name", title: one, text: true, value: (row) => keyText(this.app, key, row.keys, row)[0], more: key === "process" ? [["process_id", (row) => row.process_id ?? null]] : [] },
				{ key: "impacting", title: "Impacting", value: (row) => row.impacting_size, show: (row) => signedBytes(row.impacting_size), exact: (row) => bytesOf(row.impacting_size) },
				{ key: "allocated", title: "Allocated", value: (row) => row.allocated, show: (row) => bytes(row.allocated), exact: (row) => bytesOf(row.allocated) },
				{ key: "size", title: "Size", value: (row) => row.size, show: (row) => bytes(row.size), exact: (row) => bytesOf(row.size) },
				{ key: "count", title: "Count", value: (row) => row.count, show: (row) => count(row.count) },
				{ key: "peak", title: "Peak", value: (row) => row.peak_size, show: (row) => row.peak_size === null ? this.counting.has(key) ? "…" : "–" : bytes(row.peak_size) },
			],
			chosen: (row) => {
				const value = keyValue(key, row.keys, row, this.app);
				const filter: [string, string] = key === "owner" ? ["row", `owner:${value}`] : [key, value];
				const { filters } = this.app.store.state;
				const there = filters.some(([word, what]) => word === filter[0] && what === filter[1]);
				this.app.store.set({
					filters: there ? filters.filter(([word, what]) => word !== filter[0] || what !== filter[1]) : [...filters, filter],
				});
			},
		});
	}

	update(changed: Set<keyof State>): void {
		if (!["from", "to", "filters", "layer", "exitFrees", "tab"].some((key) => changed.has(key as keyof State))) return;
		const vm = this.app.store.state.layer === "vm";
		this.grids.get("heap")!.box.hidden = vm;
		this.grids.get("owner")!.box.hidden = !vm;
		for (const [key, { grid, box }] of this.grids)
			if (!box.hidden) void this.ask(key, grid);
	}

	private async ask(key: string, grid: Grid<WindowRow>): Promise<void> {
		grid.wait();
		try {
			for (const details of this.app.dragging ? ["0"] : ["0", "peaks"]) {
				const answer = await this.app.source.get<WindowAnswer>("window", [...windowParams(this.app.store.state), ["by", key],
					["sort", "size"], ["details", details]], `by-${key}`);
				if (details === "0") this.counting.add(key);
				else this.counting.delete(key);
				grid.set(answer.rows);
			}
		} catch (error) {
			if (!isSuperseded(error)) grid.set([], messageOf(error));
		}
	}

	csv(): string {
		return csvTables(KEYS.filter(([key]) => !this.grids.get(key)!.box.hidden)
			.map(([key, , title]) => [title, this.grids.get(key)!.grid.csv()]));
	}
}
