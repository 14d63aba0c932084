// resident: resident memory divided up among those who hold it, at a snapshot.
import { type App, messageOf, type Screen, STACK_COLUMNS, stackName } from "../app";
import { isSuperseded } from "../ask/source";
import type { Reconcile, StackRow } from "../ask/types";
import { choice, fill, h } from "../base/dom";
import type { Pen, Picture } from "../base/pen";
import type { State } from "../base/state";
import { bytes, count, csvLine, csvTables, duration, percent, signedBytes } from "../base/text";
import { theme } from "../base/theme";
import { Grid } from "../parts/grid";
import { PictureView, type Region } from "../parts/picture";
import { site } from "./growth";

const LINES: Record<string, [title: string, hint: string, light: string, dark: string]> = {
	live: ["Live blocks", "what the program asked for and has not freed", "#0067ad", "#63b8f0"],
	rounding: ["Headers and rounding", "what the allocator adds to each block", "#7fb3d9", "#2f6f9f"],
	free: ["Free in the allocator", "given back by the program, not to the system", "#e0a62b", "#f0c75a"],
	stacks: ["Stacks", "of threads", "#00795a", "#3cc49a"],
	files: ["Code and files", "mapped from files", "#8c4a77", "#dc9bc4"],
	program: ["The program's own mappings", "by mmap", "#b84a00", "#f59a55"],
	libc: ["The C library's", "mappings of its own", "#6d7781", "#98a3ad"],
	kernel: ["The kernel's", "vdso and the like", "#9aa3ab", "#6b7580"],
	tidemark: ["tidemark's", "the recorder in the process", "#c9ced3", "#4a525a"],
	unexplained: ["Unexplained", "nobody known holds it", "#b3261e", "#ff8a80"],
};
const BAR = 64;

type Row = StackRow & { count: number; bytes: number };

export class ResidentScreen implements Screen {
	readonly id = "resident";
	readonly title = "Resident";
	readonly root: HTMLElement;
	private bar: PictureView;
	private lines: Grid<Reconcile["lines"][number]>;
	private holders: Grid<Row>;
	private said = h("p", { class: "caption" });
	private peak = h("b", { "data-figure": "resident peak" });
	private holdersTitle = h("h2", {}, "Who holds it");
	private control: { root: HTMLElement; update(): void };
	private answer: Reconcile | null = null;
	private barRow: HTMLElement;

	constructor(private app: App) {
		this.bar = new PictureView(app, "Resident memory by holder");
		this.control = choice("Snapshot", [["peak", "At its peak"], ["exit", "At the end"]], () => app.store.state.snapshot,
			(snapshot) => app.store.set({ snapshot }));
		this.lines = new Grid({
			name: "Resident memory", empty: "No snapshot.",
			columns: [
				{ key: "line", title: "Held by", text: true, value: (row) => LINES[row.line]?.[0] ?? row.line, show: (row) => this.lineName(row.line) },
				{ key: "bytes", title: "Bytes", value: (row) => row.bytes, show: (row) => bytes(row.bytes), exact: (row) => `${count(row.bytes)} bytes` },
				{ key: "share", title: "Share", value: (row) => row.bytes / (this.answer?.smaps_bytes || 1), show: (row) => percent(row.bytes / (this.answer?.smaps_bytes || 1)) },
			],
			chosen: (row) => this.showHolders(row.line),
		});
		this.holders = new Grid<Row>({
			name: "Holders", sort: "bytes", empty: "Nobody in particular.",
			columns: [
				{ key: "site", title: "Site or file", text: true, value: (row) => stackName(row).name, more: STACK_COLUMNS, show: (row) => site(row) },
				{ key: "bytes", title: "Bytes", value: (row) => row.bytes, show: (row) => bytes(row.bytes), exact: (row) => `${count(row.bytes)} bytes` },
				{ key: "count", title: "Count", value: (row) => row.count, show: (row) => count(row.count) },
			],
			chosen: (row) => app.showStack(row, stackName(row).name),
		});
		this.barRow = h("div", { class: "bar-picture" }, this.bar.root);
		this.root = h("div", { class: "screen" }, h("div", { class: "bar" }, this.control.root, this.peak, this.said), this.barRow,
			h("div", { class: "columns" },
				h("section", { class: "wide-part", "aria-label": "Held by" }, this.lines.root),
				h("section", { "aria-label": "Who holds it" }, h("header", {}, this.holdersTitle), this.holders.root)));
		new ResizeObserver(() => this.draw()).observe(this.barRow);
	}

	private colour(line: string): string {
		return LINES[line]?.[document.documentElement.dataset.theme === "dark" ? 3 : 2] ?? theme().faint;
	}

	private lineName(line: string): Node {
		const swatch = h("span", { class: "swatch-box", "aria-hidden": "true" });
		swatch.style.background = this.colour(line);
		return h("span", {}, swatch, LINES[line]?.[0] ?? line, h("span", { class: "place" }, LINES[line]?.[1] ?? ""));
	}

	update(changed: Set<keyof State>): void {
		this.control.update();
		if (["snapshot", "filters", "tab"].some((key) => changed.has(key as keyof State))) void this.ask();
	}

	private async ask(): Promise<void> {
		const state = this.app.store.state;
		const process = state.filters.filter(([word]) => word === "process");
		this.lines.wait();
		this.holders.wait();
		try {
			this.answer = await this.app.source.get<Reconcile>("reconcile", [["at", state.snapshot], ...process, ["n", "100"]], "reconcile");
			const one = this.answer;
			const peak = Math.max(one.rss_max_bytes ?? 0, one.vmhwm_bytes);
			this.peak.dataset.value = String(peak);
			this.peak.textContent = `${bytes(peak)} at its peak`;
			this.said.textContent = `divided up below: ${bytes(one.smaps_bytes)}, ${percent(one.smaps_bytes / (peak || 1))} of it, as of ${duration(one.at_ns)}` +
				(one.difference ? `; ${signedBytes(one.difference)} differ from the page map` : "") +
				(one.untouched.bytes > 0 ? `; ${bytes(one.untouched.bytes)} of live blocks were never touched` : "");
			this.lines.set(one.lines.filter((line) => line.bytes > 0));
			const first = one.lines.reduce((best, line) => line.bytes > best.bytes && line.line !== "tidemark" ? line : best, one.lines[0]);
			this.showHolders(first?.line ?? "");
		} catch (error) {
			if (isSuperseded(error)) return;
			this.answer = null;
			this.said.textContent = this.peak.textContent = "";
			this.lines.set([], messageOf(error));
			this.holders.set([]);
		}
		this.draw();
	}

	private showHolders(line: string): void {
		const found = this.answer?.lines.find((one) => one.line === line);
		this.holdersTitle.textContent = LINES[line]?.[0] ?? line;
		this.holders.set(found?.rows ?? []);
	}

	private draw(): void {
		const width = this.barRow.clientWidth - 28;
		if (this.root.isConnected && width > 50) this.bar.render(width, this.answer ? BAR : 1, (pen) => this.drawBar(pen, width));
	}

	private drawBar(pen: Pen, width: number): Region[] {
		const regions: Region[] = [];
		if (!this.answer) return regions;
		const whole = Math.max(1, this.answer.lines.reduce((sum, line) => sum + line.bytes, 0));
		let x = 0;
		for (const line of this.answer.lines) {
			const w = line.bytes / whole * width;
			if (w < 0.5) continue;
			pen.rect(x, 4, Math.max(1, w - 1), 30, this.colour(line.line));
			const title = LINES[line.line]?.[0] ?? line.line;
			const style = { fill: theme().text, size: 11 };
			if (pen.measure(title, style) < w - 4) {
				pen.text(title, x + 1, 48, style);
				pen.text(bytes(line.bytes), x + 1, 61, { fill: theme().quiet, size: 10.5 });
			}
			regions.push({
				x, y: 4, w: Math.max(2, w), h: 30, id: line.line, choose: () => this.showHolders(line.line),
				label: `${title}: ${bytes(line.bytes)}, ${percent(line.bytes / whole)}\n${LINES[line.line]?.[1] ?? ""}`,
			});
			x += w;
		}
		return regions;
	}

	pictures(): Picture[] {
		return this.answer ? [{
			name: "resident", title: `Resident memory of ${this.app.view.file}`, width: 1000, height: BAR, background: theme().ground,
			draw: (pen) => void this.drawBar(pen, 1000),
		}] : [];
	}

	csv(): string {
		const holders = (this.answer?.lines ?? []).flatMap((line) => (line.rows ?? []).map((row) =>
			csvLine([LINES[line.line]?.[0] ?? line.line, stackName(row).name, row.bytes, row.count, ...STACK_COLUMNS.map(([, value]) => value(row))])));
		return csvTables([["Held by", this.lines.csv()],
			["Who holds it", csvLine(["Held by", "Site or file", "Bytes", "Count", ...STACK_COLUMNS.map(([title]) => title)]) + holders.join("")]]);
	}
}

export function emptyState(title: string, text: string): HTMLElement {
	const box = h("div", { class: "empty-state" });
	fill(box, h("h2", {}, title), h("p", {}, text));
	return box;
}
