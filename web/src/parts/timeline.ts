// timeline: levels over time in strips under each other, and on them the window: drawn with the
// mouse, moved with the arrow keys, snapped to marks. uPlot draws the curves; what can be moved is
// on a canvas above them.
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { type App, edges, layerParams, messageOf, parsePath, pathParams, windowParams } from "../app";
import { isSuperseded, type Params } from "../ask/source";
import type { Mark, Timeline } from "../ask/types";
import { h } from "../base/dom";
import { CanvasPen, drawOn, fitted, type Pen, type Picture } from "../base/pen";
import type { State } from "../base/state";
import { bytes, duration, moment } from "../base/text";
import { onTheme, theme } from "../base/theme";
import { markWord, nsWord } from "../base/times";
import { binaryStep, decimalStep, splitsOf } from "./axis";
import { type Gesture, Gestures } from "./gestures";

export const LEFT = 78;
export const RIGHT = 14;
const TOP = 18; // room for the marks' names
const TALL = 118, LOW = 46, AXIS = 24;
const COUNTING = "counting …";
// A window so low leaves the strips less.
const shrunk = () => window.innerHeight < 500 ? 0.48 : window.innerHeight < 700 ? 0.6 : 1;

interface Strip {
	id: string;
	title: string;
	box: HTMLElement;
	plot: uPlot | null;
	line: Timeline | null;
	said: string; // in the place of a curve: it is being counted, or why there is none
	row: Timeline | null; // the selected row's own curve
	other: Timeline | null; // the second trace's
}

const STRIPS: [string, string][] = [
	["heap", "Live heap"], ["vm", "Virtual memory"], ["rss", "Resident"], ["cumulative", "Allocated so far"],
];

export class TimelinePart {
	readonly root: HTMLElement;
	private strips: Strip[] = [];
	private body = h("div", { class: "strips" });
	private canvas = h("canvas", { class: "overlay", "aria-hidden": "true" });
	private readout = h("div", { class: "readout", "aria-hidden": "true" });
	private surface = h("div", {
		class: "surface", tabindex: "0", role: "application", "aria-roledescription": "timeline",
		"aria-label": "Timeline. Arrow keys move the window, shift and arrow keys its end, " +
			"control and arrow keys its beginning, m takes the next phase between marks, z zooms, Escape takes all.",
	});
	private toggles = h("div", { class: "toggles", role: "group", "aria-label": "Curves" });
	private intervals: [number, number][] = [];
	private hover: number | null = null;
	private generation = 0;

	constructor(private app: App) {
		this.surface.append(this.body, this.canvas, this.readout);
		this.root = h("section", { class: "timeline", "aria-label": "Timeline" }, this.toggles, this.surface);
		new Gestures(this.surface, this.gesture());
		new ResizeObserver(() => this.redraw()).observe(this.surface);
		let last = shrunk();
		window.addEventListener("resize", () => {
			if (last === shrunk()) return;
			last = shrunk();
			this.fit();
		});
		onTheme(() => this.redraw());
		this.build();
	}

	// What lies over the curves: where transient allocations of the chosen row lived.
	highlight(intervals: [number, number][]): void {
		this.intervals = intervals;
		this.paint();
	}

	update(changed: Set<keyof State>): void {
		const has = (...keys: (keyof State)[]) => keys.some((key) => changed.has(key));

		if (has("strips", "layer")) this.build();
		if (has("strips", "layer", "zoom", "filters", "tab")) void this.ask();
		else if (has("row") || (has("from", "to") && this.app.store.state.row && !this.app.dragging)) void this.askRow();
		this.paint();
	}

	// ---- time and place ----

	private range(): [number, number] {
		const zoom = /^(\d+)-(\d+)$/.exec(this.app.store.state.zoom);
		if (!zoom || Number(zoom[2]) <= Number(zoom[1])) return [0, Math.max(1, this.app.view.duration_ns)];
		return [Number(zoom[1]), Number(zoom[2])];
	}

	private get plotWidth(): number {
		return Math.max(50, this.surface.clientWidth - LEFT - RIGHT);
	}

	private x(ns: number): number {
		const [from, to] = this.range();
		return LEFT + (ns - from) / (to - from) * this.plotWidth;
	}

	private ns(x: number): number {
		const [from, to] = this.range();
		return Math.round(from + Math.min(1, Math.max(0, (x - LEFT) / this.plotWidth)) * (to - from));
	}

	private gesture(): Gesture {
		const set = (a: number, b: number, second: boolean, brief: boolean) => {
			const from = this.word(Math.min(a, b)), to = this.word(Math.max(a, b));
			this.app.store.set(second ? { otherFrom: from, otherTo: to } : { from, to }, brief);
		};
		return {
			edges: () => {
				const window = this.app.store.state.from || this.app.store.state.to ? edges(this.app) : null;
				return window && [this.x(window[0]), this.x(window[1])];
			},
			drag: (a, b, second, brief) => {
				this.app.dragging = true;
				set(a, b, second, brief);
			},
			done: () => {
				this.app.dragging = false;
				this.app.store.touch("from");
			},
			all: () => this.app.store.set({ from: "", to: "", otherFrom: "", otherTo: "", zoom: "" }),
			hover: (x) => {
				this.hover = x === null ? null : this.ns(x);
				this.paint();
			},
			zoomAt: (x, factor) => this.zoomAt(this.ns(x), factor),
			click: (x, y) => this.click(x, y),
			key: (event) => this.key(event),
		};
	}

	// An edge where x is: a mark that is near, else the time, to a pixel.
	private word(x: number): string {
		const near = this.app.marks.map((mark) => ({ mark, away: Math.abs(this.x(mark.time_ns) - x) }))
			.filter(({ away }) => away <= 6).sort((a, b) => a.away - b.away)[0];
		if (near) return markWord(near.mark);
		const ns = this.snapped(this.ns(x));
		return ns <= 0 ? "" : ns >= this.app.view.duration_ns ? "" : nsWord(ns);
	}

	private snapped(ns: number): number {
		const places = this.app.source.edges;
		if (places.length === 0) return ns;
		return places.reduce((best, edge) => Math.abs(edge - ns) < Math.abs(best - ns) ? edge : best, places[0]);
	}

	private click(x: number, y: number): void {
		if (y > TOP) return;
		const mark = this.labels().find((label) => x >= label.left && x <= label.right)?.mark;
		if (mark) this.choosePhase(mark);
	}

	// From the mark to its own end ("x.begin" to "x.end"), or to the next mark.
	choosePhase(mark: Mark): void {
		const marks = this.app.marks;
		const partner = mark.name.endsWith(".begin")
			? marks.find((one) => one.name === mark.name.slice(0, -5) + "end" && one.nth === mark.nth) : undefined;
		const next = partner ?? marks[marks.indexOf(mark) + 1];
		this.app.store.set({ from: markWord(mark), to: next ? markWord(next) : "" });
	}

	private zoomAt(ns: number, factor: number): void {
		const [from, to] = this.range();
		const span = Math.min(this.app.view.duration_ns, Math.max(1000, (to - from) * factor));
		const begin = Math.max(0, Math.min(this.app.view.duration_ns - span, ns - (ns - from) * span / (to - from)));
		this.app.store.set({
			zoom: span >= this.app.view.duration_ns ? "" : `${Math.round(begin)}-${Math.round(begin + span)}`,
		}, true);
	}

	private key(event: KeyboardEvent): boolean {
		const state = this.app.store.state;
		const window = edges(this.app) ?? [0, this.app.view.duration_ns];
		const [left, right] = this.range();
		const step = Math.max(1, Math.round((right - left) / (event.altKey ? 1000 : 100)));
		const direction = event.key === "ArrowLeft" ? -1 : event.key === "ArrowRight" ? 1 : 0;

		if (direction) {
			const whole = !state.from && !state.to;
			const by = direction * step;
			let [from, to] = whole ? [left, left + Math.round((right - left) / 10)] : window;
			if (!whole) {
				if (!event.shiftKey) from += by;
				if (!event.ctrlKey) to += by;
			}
			from = this.snapped(Math.max(0, Math.min(from, to)));
			to = this.snapped(Math.min(this.app.view.duration_ns, Math.max(from, to)));
			this.app.store.set({ from: nsWord(from), to: nsWord(to) }, true);
			this.app.say(`window from ${duration(from)} to ${duration(to)}`);
			return true;
		}
		if (event.key === "m" && this.app.marks.length > 0) {
			const at = this.app.marks.findIndex((mark) => markWord(mark) === state.from);
			const next = this.app.marks[(at + 1) % this.app.marks.length];
			this.choosePhase(next);
			this.app.say(`phase ${next.name}`);
			return true;
		}
		if (event.key === "Escape") {
			this.app.store.set({ from: "", to: "", otherFrom: "", otherTo: "", zoom: "" });
			return true;
		}
		return false;
	}

	// ---- strips ----

	private shown(): string[] {
		const view = this.app.view, state = this.app.store.state;
		return STRIPS.map(([id]) => id).filter((id) => id === state.layer ||
			(state.strips.includes(id) && (id === "rss" ? view.has.rss : id === "cumulative" || view.layers.includes(id))));
	}

	private build(): void {
		const state = this.app.store.state, view = this.app.view;

		for (const strip of this.strips) strip.plot?.destroy();
		this.strips = this.shown().map((id) => ({
			id, title: STRIPS.find(([one]) => one === id)![1],
			box: h("div", { class: id === state.layer ? "strip tall" : "strip" }),
			plot: null, line: null, said: COUNTING, row: null, other: null,
		}));
		this.fit();
		this.body.replaceChildren(...this.strips.map((strip) => strip.box));
		this.toggles.replaceChildren(...STRIPS.filter(([id]) =>
			id === "rss" ? view.has.rss : id === "cumulative" || view.layers.includes(id)).map(([id, title]) =>
			h("button", {
				type: "button", class: `toggle series-${id}`, disabled: id === state.layer,
				"aria-pressed": String(this.shown().includes(id)),
				title: id === state.layer ? "what the windows are about" : `show or hide: ${title}`,
				onclick: () => {
					const strips = this.app.store.state.strips;
					this.app.store.set({
						strips: strips.includes(id) ? strips.filter((one) => one !== id) : [...strips, id],
					});
				},
			}, h("span", { class: "swatch" }), title)));
		this.redraw();
	}

	// uPlot puts its elements in a moment later; what lies above must know the heights now.
	private fit(): void {
		this.strips.forEach((strip, i) => {
			strip.box.style.height = `${this.heightOf(strip) + (i === this.strips.length - 1 ? AXIS : 0)}px`;
		});
	}

	private heightOf(strip: Strip): number {
		return Math.round((strip.box.classList.contains("tall") ? TALL : LOW) * shrunk());
	}

	private buckets(): number {
		return Math.min(4096, Math.max(100, Math.round(this.plotWidth)));
	}

	private zoomParams(): Params {
		const [from, to] = this.range();
		const params: Params = [["buckets", String(this.buckets())]];
		return this.app.store.state.zoom ? [...params, ["from", nsWord(from)], ["to", nsWord(to)]] : params;
	}

	async ask(): Promise<void> {
		const generation = ++this.generation;

		for (const strip of this.strips) strip.said = COUNTING;
		this.paint();
		await Promise.all([...this.strips.map((strip) => this.askStrip(strip, generation)), this.askRow()]);
	}

	// Painted when it is answered, whatever others still count.
	private async askStrip(strip: Strip, generation: number): Promise<void> {
		const state = this.app.store.state;
		const filters = strip.id === "rss"
			? state.filters.filter(([word]) => word === "process")
			: layerParams(state).filter(([word]) => word !== "layer" && word !== "impact");
		const params: Params = [["layer", strip.id], ...filters, ...this.zoomParams()];
		const paint = () => {
			if (generation !== this.generation) return;
			if (this.surface.clientWidth >= 100) this.draw(strip);
			this.paint();
		};

		try {
			const line = await this.app.source.get<Timeline>("timeline", params, `line-${strip.id}`);
			if (generation !== this.generation) return;
			strip.line = line;
			strip.other = null;
			strip.said = "";
			paint();
			if (state.tab !== "diff" || !this.app.view.diff || state.otherFrom || state.otherTo || state.zoom) return;
			strip.other = await this.app.source.get<Timeline>("diff/timeline", params, `other-${strip.id}`);
		} catch (error) {
			if (isSuperseded(error) || generation !== this.generation) return;
			if (strip.said) strip.line = null;
			strip.said = strip.line ? "" : messageOf(error);
		}
		paint();
	}

	// The selected row's own curve, and when its transient allocations lived.
	private async askRow(): Promise<void> {
		const state = this.app.store.state;
		const strip = this.strips.find((one) => one.id === state.layer);
		const path = parsePath(state.row).filter(([key]) => key !== "lifetime");

		if (!strip) return;
		for (const lane of ["line-row", "lives"]) this.app.source.drop(lane); // of a row that is chosen no more
		strip.row = null;
		this.intervals = [];
		if (path.length > 0) {
			const row = pathParams(path, layerParams(state), this.app.marks)
				.filter(([word]) => !["impact", "layer", "from", "to"].includes(word));
			const calls: Promise<void>[] = [];
			if (path.some(([key]) => !["impact", "type", "layer", "mark"].includes(key)))
				calls.push(this.app.source.get<Timeline>("timeline",
					[["layer", state.layer], ...row, ...this.zoomParams()], "line-row").then((line) => { strip.row = line; }));
			const transient = path.some(([key, value]) => (key === "impact" && value === "transient") || value === "AIFI");
			if (transient)
				calls.push(this.app.source.get<{ rows: { keys: { lifetime?: { begin_ns: number; end_ns: number | null } } }[] }>(
					"window", [...pathParams(path, windowParams(state), this.app.marks), ["by", "lifetime"], ["n", "2000"], ["details", "0"]],
					"lives").then((answer) => {
					this.intervals = answer.rows.map(({ keys }) =>
						[keys.lifetime!.begin_ns, keys.lifetime!.end_ns ?? this.app.view.duration_ns]);
				}));
			try {
				await Promise.all(calls);
			} catch (error) {
				if (isSuperseded(error)) return;
			}
		}
		this.redraw();
	}

	redraw(): void {
		if (this.surface.clientWidth < 100) return;
		for (const strip of this.strips) this.draw(strip);
		this.paint();
	}

	private data(strip: Strip): uPlot.AlignedData {
		const line = strip.line;
		const [from, to] = this.range();
		if (!line) return [[from / 1e9, to / 1e9], [null, null], [null, null], [null, null]];
		const width = (line.to_ns - line.from_ns) / line.buckets;
		const x = line.peak_bytes.map((_, i) => (line.from_ns + width * (i + 1)) / 1e9);
		const empty = () => line.peak_bytes.map(() => null);
		const same = (other: Timeline | null) => other ? onto(line, other) : empty();
		const first = line.layer === "rss" ? line.peak_bytes[0] : line.start_bytes;
		return [[line.from_ns / 1e9, ...x], [first, ...line.peak_bytes],
			[strip.row?.start_bytes ?? null, ...same(strip.row)], [strip.other?.start_bytes ?? null, ...same(strip.other)]];
	}

	private draw(strip: Strip): void {
		const colours = theme();
		const colour = colours[strip.id as "heap"];
		const tall = strip.box.classList.contains("tall");
		const last = strip === this.strips[this.strips.length - 1];
		const height = this.heightOf(strip) + (last ? AXIS : 0);
		const [from, to] = this.range();
		const font = "11px Inter, system-ui, sans-serif";
		const paths = uPlot.paths.stepped!({ align: -1 });
		const top = Math.max(1, ...this.tops(strip));

		strip.plot?.destroy();
		strip.plot = new uPlot({
			width: this.surface.clientWidth, height,
			padding: [6, RIGHT, last ? 0 : 4, 0],
			legend: { show: false },
			cursor: { show: false },
			select: { show: false, left: 0, top: 0, width: 0, height: 0 },
			scales: { x: { time: false, range: [from / 1e9, to / 1e9] }, y: { range: [0, top * 1.08] } },
			axes: [
				{
					show: true, size: last ? AXIS : 0, font, stroke: colours.quiet,
					grid: { stroke: colours.grid, width: 1 }, ticks: { show: false },
					splits: () => splitsOf(from / 1e9, to / 1e9, decimalStep((to - from) / 1e9, this.plotWidth / 110)),
					values: (_, splits) => last ? splits.map((s) => moment(s * 1e9, splits.length > 1 ? (splits[1] - splits[0]) * 1e9 : 1e9))
						: splits.map(() => ""),
				},
				{
					size: LEFT, font, stroke: colours.quiet, grid: { stroke: colours.grid, width: 1 }, ticks: { show: false },
					splits: () => splitsOf(0, top * 1.08, binaryStep(top, (tall ? 4 : 1.6) * (shrunk() < 0.5 ? 0.5 : 1))), values: (_, splits) => splits.map((s) => strip.line ? bytes(s) : ""),
				},
			],
			series: [
				{},
				{ stroke: colour, width: 1.5, fill: strip.row ? undefined : alpha(colour, tall ? 0.16 : 0.08), paths, points: { show: false } },
				{ stroke: colours.select, width: 1.5, fill: alpha(colours.select, 0.28), paths, points: { show: false } },
				{ stroke: colours.other, width: 1.5, dash: [5, 3], paths, points: { show: false } },
			],
		}, this.data(strip), strip.box);
	}

	private tops(strip: Strip): number[] {
		return [strip.line, strip.row, strip.other].flatMap((line) =>
			line ? [line.start_bytes, line.peak_bytes.reduce<number>((top, value) => Math.max(top, value ?? 0), 0)] : []);
	}

	// ---- what lies above ----

	private labels(): { mark: Mark; left: number; right: number; text: string }[] {
		const pen = new CanvasPen(this.canvas.getContext("2d")!);
		const style = { fill: "", size: 10 };
		const shown: { mark: Mark; left: number; right: number; text: string }[] = [];
		let free = LEFT;

		for (const mark of this.app.marks) {
			const at = this.x(mark.time_ns);
			if (at < LEFT - 0.5 || at > LEFT + this.plotWidth + 0.5) continue;
			const width = Math.min(pen.measure(mark.name, style), 140);
			// At the right end the name stands to the left of its mark.
			const left = at + width + 14 > LEFT + this.plotWidth + RIGHT ? at - width - 16 : at - 3;
			if (left < free) continue;
			shown.push({ mark, left, right: left + width + 12, text: fitted(pen, mark.name, 140, style) });
			free = left + width + 18;
		}
		return shown;
	}

	private paint(): void {
		const height = this.body.clientHeight;
		if (this.surface.clientWidth < 100) return;
		drawOn(this.canvas, this.surface.clientWidth, height, (pen) => this.paintOn(pen, height));
		this.paintReadout();
	}

	// Filters select allocations; resident memory is of whole processes, and says so beside what is filtered.
	// Of several it is added up, with what they share in it for each.
	private nameOf(strip: Strip): string {
		const { filters } = this.app.store.state;
		const several = this.app.view.processes.length > 1 && filters.filter(([word]) => word === "process").length !== 1;

		if (strip.id !== "rss") return strip.title;
		return strip.title + (several ? ", processes added up" : "") +
			(filters.some(([word]) => word !== "process") ? ", not filtered" : "");
	}

	private paintOn(pen: Pen, height: number): void {
		const colours = theme();
		const bottom = height - AXIS;

		this.paintIntervals(pen, bottom);
		this.band(pen, edges(this.app, true), colours.other, bottom, "B");
		const whole = !this.app.store.state.from && !this.app.store.state.to;
		this.band(pen, whole ? null : edges(this.app), colours.accent, bottom, this.app.store.state.otherFrom ? "A" : "");
		for (const mark of this.app.marks) {
			const at = Math.round(this.x(mark.time_ns)) + 0.5;
			if (at >= LEFT && at <= LEFT + this.plotWidth + 1) pen.line([[at, TOP - 3], [at, bottom]], colours.faint, 1, [2, 3]);
		}
		for (const label of this.labels()) {
			const at = this.x(label.mark.time_ns);
			pen.area([[at - 3, TOP - 7], [at + 3, TOP - 7], [at, TOP - 2]], colours.quiet);
			pen.text(label.text, label.left + 10, TOP - 4, { fill: colours.quiet, size: 10 });
		}
		let y = TOP;
		for (const strip of this.strips) {
			strip.box.dataset.state = strip.line ? strip.said ? "stale" : "shown" : strip.said === COUNTING ? "counting" : "none";
			const style = { fill: colours[strip.id as "heap"], bold: true, halo: colours.ground };
			const name = this.nameOf(strip);
			pen.text(name, LEFT + 8, y + 19, style);
			if (strip.said)
				pen.text(strip.said, LEFT + 18 + pen.measure(name, style), y + 19, { fill: colours.quiet, halo: colours.ground });
			y += this.heightOf(strip);
		}
		if (this.hover !== null) {
			const at = Math.round(this.x(this.hover)) + 0.5;
			pen.line([[at, TOP], [at, bottom]], colours.quiet, 1);
		}
	}

	private band(pen: Pen, window: [number, number] | null, colour: string, bottom: number, name: string): void {
		if (!window) return;
		const clamp = (x: number) => Math.min(LEFT + this.plotWidth, Math.max(LEFT, x));
		const left = clamp(this.x(window[0])), right = clamp(this.x(window[1]));
		pen.rect(left, TOP, Math.max(1, right - left), bottom - TOP, alpha(colour, 0.13));
		for (const x of [left, right]) pen.line([[x, TOP], [x, bottom]], colour, 1.5);
		if (name) pen.text(name, right - 12, TOP + 12, { fill: colour, bold: true });
	}

	private paintIntervals(pen: Pen, bottom: number): void {
		this.surface.dataset.intervals = String(this.intervals.length);
		const colour = theme().select;
		for (const [from, to] of this.intervals) {
			const left = Math.max(LEFT, this.x(from)), right = Math.min(LEFT + this.plotWidth, this.x(to));
			if (right >= left) pen.rect(left, TOP, Math.max(1.5, right - left), bottom - TOP, alpha(colour, 0.22));
		}
	}

	private paintReadout(): void {
		this.readout.hidden = this.hover === null;
		if (this.hover === null) return;
		const texts = this.strips.map((strip) => {
			const line = strip.line;
			if (!line) return "";
			const bucket = Math.min(line.buckets - 1, Math.max(0,
				Math.floor((this.hover! - line.from_ns) / (line.to_ns - line.from_ns) * line.buckets)));
			return `${this.nameOf(strip).toLowerCase()} ${bytes(line.peak_bytes[bucket])}`;
		});
		this.readout.textContent = [duration(this.hover), ...texts.filter(Boolean)].join("   ");
		const at = this.x(this.hover);
		this.readout.style.left = at > this.surface.clientWidth / 2 ? "" : `${at + 8}px`;
		this.readout.style.right = at > this.surface.clientWidth / 2 ? `${this.surface.clientWidth - at + 8}px` : "";
	}

	// ---- for a file ----

	picture(): Picture {
		const width = this.surface.clientWidth;
		const sizes = this.strips.map((strip) => this.heightOf(strip));
		const height = TOP + sizes.reduce((a, b) => a + b, 0) + AXIS;

		return {
			name: "timeline", title: `Timeline of ${this.app.view.file}`, width, height, background: theme().ground,
			draw: (pen) => {
				let y = TOP;
				this.strips.forEach((strip, i) => {
					this.drawStrip(pen, strip, y, sizes[i]);
					y += sizes[i];
				});
				const [from, to] = this.range();
				const step = decimalStep((to - from) / 1e9, this.plotWidth / 110);
				for (const s of splitsOf(from / 1e9, to / 1e9, step))
					pen.text(moment(s * 1e9, step * 1e9), this.x(s * 1e9), height - 8, { fill: theme().quiet, align: "center" });
				this.hover = null;
				this.paintOn(pen, height);
			},
		};
	}

	private drawStrip(pen: Pen, strip: Strip, top: number, height: number): void {
		const colours = theme();
		const most = Math.max(1, ...this.tops(strip)) * 1.08;
		const y = (value: number) => top + height - 4 - value / most * (height - 10);
		const tall = strip.box.classList.contains("tall");

		for (const value of strip.line ? splitsOf(0, most, binaryStep(most / 1.08, tall ? 4 : 1.6)) : []) {
			pen.line([[LEFT, y(value)], [LEFT + this.plotWidth, y(value)]], colours.grid);
			pen.text(bytes(value), LEFT - 8, y(value), { fill: colours.quiet, align: "right", middle: true });
		}
		for (const [line, colour] of [[strip.line, colours[strip.id as "heap"]], [strip.row, colours.select], [strip.other, colours.other]] as const) {
			if (!line) continue;
			// Before the first measurement of resident memory there is no line.
			const points: [number, number][] = line.layer === "rss" ? [] : [[this.x(line.from_ns), y(line.start_bytes)]];
			const width = (line.to_ns - line.from_ns) / line.buckets;
			line.peak_bytes.forEach((value, i) => {
				if (value === null) return;
				points.push([this.x(line.from_ns + width * i), y(value)], [this.x(line.from_ns + width * (i + 1)), y(value)]);
			});
			pen.line(points, colour, 1.5);
		}
	}

	zoomToWindow(): void {
		const window = edges(this.app);
		if (window && window[1] > window[0] && (this.app.store.state.from || this.app.store.state.to))
			this.app.store.set({ zoom: `${Math.round(window[0])}-${Math.round(window[1])}` });
	}

}

// A curve with the buckets of another, in the same time: of each the highest that falls into it.
export function onto(line: Timeline, other: Timeline): (number | null)[] {
	const width = (line.to_ns - line.from_ns) / line.buckets, theirs = (other.to_ns - other.from_ns) / other.buckets;

	return line.peak_bytes.map((_, i) => {
		const from = line.from_ns + i * width - other.from_ns, to = from + width;
		if (from >= other.to_ns - other.from_ns || to <= 0) return null;
		const first = Math.max(0, Math.floor(from / theirs + 1e-6)), last = Math.min(other.buckets - 1, Math.ceil(to / theirs - 1e-6) - 1);
		let most: number | null = null;
		for (let b = first; b <= Math.max(first, last); b++) {
			const value = other.peak_bytes[b] ?? null;
			if (value !== null && (most === null || value > most)) most = value;
		}
		return most;
	});
}

export function alpha(colour: string, share: number): string {
	const hex = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(colour);
	if (!hex) return colour;
	return `rgba(${hex.slice(1).map((part) => parseInt(part, 16)).join(", ")}, ${share})`;
}
