// growth: which sites keep more and more, and what was never freed.
import { type App, messageOf, type Screen, stackLine, STACK_COLUMNS, stackName, windowParams } from "../app";
import { isSuperseded, type Question } from "../ask/source";
import type { Growth, GrowthRow, WindowAnswer, WindowRow } from "../ask/types";
import { h } from "../base/dom";
import { drawOn } from "../base/pen";
import type { State } from "../base/state";
import { bytes, count, csvTables, duration, plural, signedBytes } from "../base/text";
import { onTheme, theme } from "../base/theme";
import { Grid } from "../parts/grid";
import { alpha } from "../parts/timeline";

const VERDICTS = {
	grows: ["▲ grows", "and still did at the end"], recent: ["◂ began lately", "too short a time to judge"],
	levels_off: ["━ levels off", "like a cache that filled"], steps: ["┛ took steps", "and stays there"],
} as const;

export class GrowthScreen implements Screen {
	readonly id = "growth";
	readonly title = "Leaks & growth";
	readonly root: HTMLElement;
	private growth: Grid<GrowthRow>;
	private held: Grid<WindowRow>;
	private said = h("p", { class: "caption" });
	private heldSaid = h("span", { class: "caption" });

	constructor(private app: App) {
		this.growth = new Grid<GrowthRow>({
			name: "Growth", empty: "Nothing grows in this window.",
			columns: [
				{ key: "site", title: "Site", text: true, value: (row) => stackName(row).name, more: STACK_COLUMNS, show: (row) => site(row) },
				{ key: "verdict", title: "Verdict", value: (row) => VERDICTS[row.verdict][0], show: (row) => h("span", { class: `verdict ${row.verdict}`, title: VERDICTS[row.verdict][1] }, VERDICTS[row.verdict][0]) },
				{ key: "curve", title: "Floor", hint: "the lowest level in each sixtieth of the time", value: (row) => row.lows[row.lows.length - 1] ?? 0, show: (row) => spark(row.lows) },
				{ key: "slope", title: "Slope", value: (row) => row.slope_bytes_per_s, show: (row) => `${signedBytes(row.slope_bytes_per_s)}/s` },
				{ key: "grown", title: "Grown", value: (row) => row.grown_bytes, show: (row) => signedBytes(row.grown_bytes), exact: (row) => `${count(row.grown_bytes)} bytes, ${plural(row.grown_count, "block")}` },
				{ key: "live", title: "Live", value: (row) => row.live_bytes, show: (row) => bytes(row.live_bytes), exact: (row) => `${count(row.live_bytes)} bytes` },
				{ key: "blocks", title: "Blocks", value: (row) => row.live_count, show: (row) => count(row.live_count) },
				{ key: "fit", title: "Fit", hint: "R² of a straight line: 1 is perfectly steady", value: (row) => row.fit, show: (row) => row.fit.toFixed(2) },
			],
			chosen: (row) => app.showStack(row, stackName(row).name),
		});
		this.held = new Grid<WindowRow>({
			name: "Still allocated", sort: "size", empty: "Nothing that was allocated in this window is still there at its end.",
			columns: [
				{ key: "site", title: "Site", text: true, value: (row) => stackName(stackOf(row)).name, more: STACK_COLUMNS.map(([title, value]) => [title, (row) => value(stackOf(row))]), show: (row) => site(stackOf(row)) },
				{ key: "size", title: "Size", value: (row) => row.size, show: (row) => bytes(row.size), exact: (row) => `${count(row.size)} bytes` },
				{ key: "count", title: "Count", value: (row) => row.count, show: (row) => count(row.count) },
				{ key: "each", title: "Each", hint: "bytes of one, on average", value: (row) => row.size / row.count, show: (row) => bytes(row.size / row.count) },
				{ key: "first", title: "First", value: (row) => row.first_ns, show: (row) => duration(row.first_ns) },
				{ key: "last", title: "Last", value: (row) => row.last_ns, show: (row) => duration(row.last_ns) },
			],
			chosen: (row) => app.showStack(stackOf(row), stackName(stackOf(row)).name),
		});
		this.root = h("div", { class: "screen halves" },
			h("section", { "aria-label": "Growth" }, h("header", {}, h("h2", {}, "Growth"), this.said), this.growth.root),
			h("section", { "aria-label": "Still allocated" }, h("header", {}, h("h2", {}, "Allocated in the window and never freed in it"), this.heldSaid), this.held.root));
		onTheme(() => {
			if (this.root.isConnected) void this.ask();
		});
	}

	update(changed: Set<keyof State>): void {
		if (this.app.dragging) return;
		if (["from", "to", "filters", "layer", "tab"].some((key) => changed.has(key as keyof State))) void this.ask();
	}

	ahead(): Question[] {
		const params = windowParams(this.app.store.state).filter(([word]) => word !== "impact" && word !== "exit-frees");

		return [["growth", params.filter(([word]) => word !== "lifetime")],
			["window", [...params, ["impact", "AIFO"], ["by", "stack"], ["sort", "size"], ["details", "peaks"]]]];
	}

	private async ask(): Promise<void> {
		const [growth, held] = this.ahead();
		this.growth.wait();
		this.held.wait();
		const grows = this.app.source.get<Growth>(...growth, "growth").then((answer) => {
			// An empty answer must not look like a clean one.
			this.growth.set(answer.rows, answer.processes_judged > 0 ? undefined
				: "Nothing was judged: no process lived long enough in this window. Choose a longer one, or record for longer.");
			this.said.textContent = [
				plural(answer.totals.grows?.sites ?? 0, "site grows", "sites grow"),
				answer.processes_too_brief > 0 ? `${plural(answer.processes_too_brief, "process was", "processes were")} too brief to judge` : "",
				answer.processes_not_judged > 0 ? `${plural(answer.processes_not_judged, "process was", "processes were")} not judged` : "",
			].filter(Boolean).join("; ");
		}).catch((error) => {
			if (!isSuperseded(error)) this.growth.set([], messageOf(error));
		});
		const holds = this.app.source.get<WindowAnswer>(...held, "held").then((answer) => {
			this.held.set(answer.rows);
			this.heldSaid.textContent = answer.total ? `${bytes(answer.total.size)} in ${plural(answer.total.count, "block")}; ` +
				"live at the end, which is not yet a leak" : "";
		}).catch((error) => {
			if (!isSuperseded(error)) this.held.set([], messageOf(error));
		});
		await Promise.all([grows, holds]);
	}

	csv(): string {
		return csvTables([["Growth", this.growth.csv()], ["Still allocated", this.held.csv()]]);
	}
}

function stackOf(row: WindowRow): { stack: NonNullable<WindowRow["keys"]["stack"]>; user_frame?: number } {
	return { stack: row.keys.stack ?? [], user_frame: row.user_frame };
}

export function site(row: { stack: WindowRow["keys"]["stack"] & object; user_frame?: number; mapped_file?: string | null }): Node {
	const { name, place } = stackName(row);
	return h("span", {}, h("span", { class: "code", title: name }, name), h("span", { class: "place" }, place),
		h("span", { class: "callers" }, stackLine(row)));
}

export function spark(values: number[]): HTMLElement {
	const canvas = h("canvas", { "aria-hidden": "true", class: "spark" });
	const most = Math.max(1, ...values);
	drawOn(canvas, 120, 18, (pen) => {
		const points = values.map((value, i): [number, number] => [1 + i / Math.max(1, values.length - 1) * 118, 17 - value / most * 15]);
		pen.area([[1, 18], ...points, [119, 18]], alpha(theme().accent, 0.15));
		pen.line(points, theme().accent, 1.5);
	});
	return canvas;
}
