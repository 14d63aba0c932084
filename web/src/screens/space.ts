// space: what is mapped in a process at a moment, cell by cell, and how the largest hole went over time.
import { type App, clock, faceOf, frameName, messageOf, processName, type Screen, STACK_COLUMNS, stackName } from "../app";
import { isSuperseded } from "../ask/source";
import type { Active, MapAnswer, MapRow, StackRow } from "../ask/types";
import { fill, h } from "../base/dom";
import type { Pen, Picture } from "../base/pen";
import type { State } from "../base/state";
import { baseName, bytes, count, csvLine, csvTables, duration, plural } from "../base/text";
import { theme } from "../base/theme";
import { nsWord, timeNs } from "../base/times";
import { Grid } from "../parts/grid";
import { PictureView, type Region } from "../parts/picture";
import { blocks, type Cell } from "../parts/space_layout";
import { alpha } from "../parts/timeline";
import { site } from "./growth";
import { emptyState } from "./resident";

const KINDS: [owners: string[], title: string, light: string, dark: string][] = [
	[["malloc-heap", "malloc-arena", "malloc-large", "malloc", "allocator", "pool"], "malloc", "#0067ad", "#63b8f0"],
	[["main-stack", "thread-stack"], "stacks", "#00795a", "#3cc49a"],
	[["program"], "own mappings", "#c65a11", "#f59a55"],
	[["library", "file", "libc", "loader", "stdio"], "files, libraries", "#9a5c86", "#dc9bc4"],
	[["kernel"], "kernel", "#6d7781", "#98a3ad"],
	[["tidemark"], "tidemark's own", "#c3c9ce", "#444c54"],
];
const CELL = 8, GAP = 1, CELLS_MAX = 9000, HEADER = 20;
const STEPS = 1000;

export class SpaceScreen implements Screen {
	readonly id = "space";
	readonly title = "Address space";
	readonly root: HTMLElement;
	private view: PictureView;
	private curve: PictureView;
	private slider: HTMLInputElement;
	private when = h("output", { class: "when" });
	private facts = h("div", { class: "figures" });
	private said = h("div", { class: "caption said", role: "status" });
	private legend = h("div", { class: "legend", "aria-hidden": "true" });
	private rows: Grid<MapRow>;
	private map: MapAnswer | null = null;
	private active: { at: number; process: number; answer: Promise<Active> } | null = null;
	private stage = h("div", { class: "stage" });
	private curveBox = h("div", { class: "curve-box" });
	private processes: HTMLSelectElement;
	private body: HTMLElement;
	private playing = 0;
	private play: HTMLButtonElement;

	constructor(private app: App) {
		this.view = new PictureView(app, "Address space");
		this.curve = new PictureView(app, "Largest free block over time");
		this.slider = h("input", { type: "range", min: "0", max: STEPS, value: STEPS, "aria-label": "Moment", class: "moment" });
		this.slider.addEventListener("input", () =>
			this.app.store.set({ at: nsWord(Number(this.slider.value) / STEPS * app.view.duration_ns) }, true));
		this.play = h("button", { type: "button", title: "let time run (p)", onclick: () => this.togglePlay() }, "▶ Play");
		this.processes = h("select", { "aria-label": "Process" });
		this.processes.addEventListener("change", () => app.store.set({ mapProcess: this.processes.value }));
		this.rows = new Grid<MapRow>({
			name: "Who is in the way", empty: "Nothing is mapped.",
			columns: [
				{ key: "owner", title: "Mapped by", text: true, value: (row) => row.stack.length ? stackName(row).name : `${row.owner} ${baseName(row.mapped_file)}`, more: STACK_COLUMNS, show: (row) => h("span", {}, this.swatch(row.owner), row.stack.length ? site(row) : `${row.owner} ${baseName(row.mapped_file)}`) },
				{ key: "bytes", title: "Bytes", value: (row) => row.bytes, show: (row) => bytes(row.bytes), exact: (row) => `${count(row.bytes)} bytes` },
				{ key: "count", title: "Mappings", value: (row) => row.count, show: (row) => count(row.count) },
				{ key: "waste", title: "Unusable", hint: "free bytes in slots that these take in part", value: (row) => row.waste, show: (row) => bytes(row.waste) },
				{ key: "without", title: "Largest hole without", value: (row) => row.largest_without, show: (row) => bytes(row.largest_without) },
			],
			chosen: (row) => app.showStack(row, stackName(row).name),
		});
		this.body = h("div", { class: "screen" },
			h("div", { class: "bar" }, app.view.processes.length > 1 ? this.processes : null, h("label", { class: "scrub" }, "At ", this.slider), this.when, this.play, this.facts),
			this.curveBox, this.legend,
			h("div", { class: "columns" }, this.stage, h("section", { class: "side-part", "aria-label": "Who is in the way" }, this.rows.root)),
			this.said);
		this.curveBox.append(this.curve.root);
		this.stage.append(this.view.root);
		this.root = h("div", { class: "screen" }, app.view.has.map ? this.body
			: emptyState("No address space in this trace", "Calls on virtual memory were not recorded: record again with this version, without --no-vm."));
		new ResizeObserver(() => this.draw()).observe(this.stage);
	}

	private swatch(owner: string): HTMLElement {
		const box = h("span", { class: "swatch-box", "aria-hidden": "true" });
		box.style.background = this.colour(owner);
		return box;
	}

	private colour(owner: string): string {
		const kind = KINDS.find(([owners]) => owners.includes(owner)) ?? KINDS[2];
		return document.documentElement.dataset.theme === "dark" ? kind[3] : kind[2];
	}

	private get at(): number {
		const word = this.app.store.state.at;
		return word ? timeNs(word, clock(this.app)) ?? this.app.view.duration_ns : this.app.view.duration_ns;
	}

	update(changed: Set<keyof State>): void {
		if (!this.app.view.has.map) return;
		this.slider.value = String(Math.round(this.at / this.app.view.duration_ns * STEPS));
		this.when.textContent = this.app.store.state.at ? duration(this.at) : "exit";
		this.slider.setAttribute("aria-valuetext", this.when.textContent);
		if (changed.has("tab")) this.fillProcesses();
		if (changed.has("tab")) this.showLegend();
		if (["at", "mapProcess", "tab"].some((key) => changed.has(key as keyof State))) void this.ask();
	}

	private fillProcesses(): void {
		fill(this.processes, h("option", { value: "" }, "largest process"), ...this.app.view.processes.slice(0, 500).map((process) =>
			h("option", { value: process.id, selected: String(process.id) === this.app.store.state.mapProcess }, processName(this.app, process.pid, process.id))));
	}

	private params(): [string, string][] {
		const { at, mapProcess } = this.app.store.state;
		return [...(at ? [["at", at] as [string, string]] : []), ...(mapProcess ? [["process", mapProcess] as [string, string]] : [])];
	}

	private async ask(): Promise<void> {
		this.rows.wait();
		if (!this.map) fill(this.facts, h("span", { class: "loading" }, "counting …"));
		try {
			this.map = await this.app.source.get<MapAnswer>("map", [...this.params(), ["n", "200"]], "map");
			this.rows.set(this.map.rows);
			this.showFacts(this.map);
		} catch (error) {
			if (isSuperseded(error)) return;
			this.map = null;
			this.rows.set([]);
			fill(this.facts);
			this.stage.replaceChildren(h("p", { class: "empty", role: "status" }, messageOf(error)));
			this.stopPlay();
		}
		this.curveBox.hidden = !this.map;
		if (this.map && this.stage.firstChild !== this.view.root) this.stage.replaceChildren(this.view.root);
		this.draw();
	}

	private showFacts(map: MapAnswer): void {
		const figure = (name: string, text: string, raw: number) => h("div", { class: "figure", "data-figure": name, "data-value": raw, title: `${count(raw)} bytes` },
			h("span", { class: "name" }, name), h("span", { class: "value" }, text));
		fill(this.facts, figure("largest free", bytes(map.largest_free), map.largest_free), figure("free", bytes(map.free), map.free),
			figure("holes", count(map.holes), map.holes), figure("unusable", bytes(map.unusable), map.unusable),
			figure("mapped", bytes(map.mapped), map.mapped), figure("committed", bytes(map.committed), map.committed));
		const failed = map.failures.map((one) => `${one.call} of ${bytes(one.size)} failed at ${duration(one.time_ns)}: the largest hole was ${bytes(one.largest_free)}` +
			(one.stack.length ? ` (${frameName(one.stack[faceOf({ stack: one.stack })])})` : ""));
		this.said.textContent = failed.length > 0 ? `${plural(map.failures_count, "call")} failed. ${failed.slice(0, 3).join("; ")}` : "";
	}

	private showLegend(): void {
		const swatch = (colour: string, title: string, kind = "") => {
			const box = h("span", { class: `swatch-box ${kind}` });
			box.style.background = colour;
			return h("span", {}, box, title);
		};
		const dark = document.documentElement.dataset.theme === "dark";
		fill(this.legend, ...KINDS.map(([, title, light, night]) => swatch(dark ? night : light, title)), swatch("none", "free", "outlined"),
			swatch("none", "partly taken: unusable", "hatched"), swatch("none", "reserved, not committed", "hollow"));
	}

	private draw(): void {
		const width = this.stage.clientWidth - 28, whole = this.curveBox.clientWidth - 28;
		if (!this.root.isConnected || width < 100 || !this.map) return;
		const map = this.map;
		const drawn = blocks(map, CELLS_MAX);
		const columns = Math.floor(width / (CELL + GAP));
		const height = drawn.blocks.reduce((sum, block) => sum + HEADER + Math.ceil(block.cells.length / columns) * (CELL + GAP) + 4, 8);
		this.view.render(width, Math.min(height, 16000), (pen) => this.drawMap(pen, drawn, columns, width));
		this.curve.render(whole, 58, (pen) => this.drawCurve(pen, map, whole));
	}

	private drawMap(pen: Pen, { unit, blocks: all }: ReturnType<typeof blocks>, columns: number, width: number): Region[] {
		const colours = theme();
		const regions: Region[] = [];
		let y = 0;

		for (const block of all) {
			if (block.gap > 0n) pen.text(`${bytes(Number(block.gap))} free`, width, y + 14, { fill: colours.quiet, size: 10.5, align: "right" });
			pen.text(`0x${block.start.toString(16)}`, 0, y + 14, { fill: colours.quiet, size: 10.5, mono: true });
			if (y === 0) pen.text(`a cell is ${bytes(Number(unit))}`, 150, y + 14, { fill: colours.quiet, size: 10.5 });
			y += HEADER;
			block.cells.forEach((cell, i) => {
				const x = i % columns * (CELL + GAP), top = y + Math.floor(i / columns) * (CELL + GAP);
				this.drawCell(pen, cell, x, top, Number(unit));
				regions.push({
					x, y: top, w: CELL + GAP, h: CELL + GAP, id: cell.start.toString(16), label: this.label(cell, Number(unit)),
					choose: cell.range ? () => void this.choose(cell) : undefined,
				});
			});
			y += Math.ceil(block.cells.length / columns) * (CELL + GAP) + 4;
		}
		return regions;
	}

	private drawCell(pen: Pen, cell: Cell, x: number, y: number, unit: number): void {
		const colours = theme();
		if (!cell.range) {
			pen.rect(x, y, CELL, CELL, null, colours.edge);
			return;
		}
		const colour = this.colour(cell.owner);
		if (cell.reserved) {
			pen.rect(x, y, CELL, CELL, alpha(colour, 0.15), colour);
		} else {
			pen.rect(x, y, CELL, CELL, colour);
		}
		// What is free in a slot that is taken in part cannot be had.
		if (cell.taken < unit) pen.area([[x + CELL, y], [x + CELL, y + CELL], [x, y + CELL]], colours.ground), pen.line([[x + CELL, y], [x, y + CELL]], colour);
	}

	private label(cell: Cell, unit: number): string {
		const where = `0x${cell.start.toString(16)} – 0x${cell.end.toString(16)}`;
		if (!cell.range) return `${where}\nfree`;
		const range = cell.range;
		const rights = ["r", "w", "x"].map((letter, i) => range.protection & 1 << i ? letter : "-").join("");
		return [where, `${range.owner}${range.mapped_file ? `, ${range.mapped_file}` : ""}, ${rights}${range.committed ? "" : ", not committed"}`,
			cell.taken < unit ? `${bytes(cell.taken)} taken, ${bytes(unit - cell.taken)} unusable` : "full",
			`part of 0x${range.start.slice(2)} – 0x${range.end.slice(2)}`].join("\n");
	}

	// The stack that holds the cell: the map's own row, else the mapping that is active there.
	private async choose(cell: Cell): Promise<void> {
		const map = this.map!, range = cell.range!;
		const title = `${range.owner} at ${range.start}`;
		const row: StackRow | undefined = typeof range.row === "number" ? map.rows[range.row] : undefined;

		if (row) {
			this.app.showStack({ ...row, mapped_file: range.mapped_file || row.mapped_file }, title);
			return;
		}
		try {
			const found = this.app.source.single ? undefined : await this.mappingAt(BigInt(range.start), map);
			this.app.showStack({ stack: found?.stack ?? [], user_frame: found?.user_frame, mapped_file: range.mapped_file }, title);
		} catch (error) {
			if (!isSuperseded(error)) this.said.textContent = messageOf(error);
		}
	}

	private async mappingAt(address: bigint, map: MapAnswer) {
		if (this.active?.at !== map.at_ns || this.active.process !== map.process) {
			const params: [string, string][] = [["layer", "vm"], ["n", "0"], ["process", String(map.process)],
				...(this.app.store.state.at ? [["at", this.app.store.state.at] as [string, string]] : [])];
			this.active = { at: map.at_ns, process: map.process, answer: this.app.source.get<Active>("active", params) };
			this.active.answer.catch(() => { this.active = null; }); // the next click asks anew
		}
		return (await this.active.answer).rows.find((row) => BigInt(row.address) <= address && address < BigInt(row.address) + BigInt(row.size));
	}

	// ---- the largest hole over time ----

	private drawCurve(pen: Pen, map: MapAnswer, width: number): Region[] {
		const colours = theme();
		const left = 78, right = 14, height = 58;
		const x = (ns: number) => left + ns / this.app.view.duration_ns * (width - left - right);
		const values = map.curve.map((point) => point.largest_free);
		const top = Math.max(1, ...values), low = Math.min(top, ...values);
		// Of 64 bits the largest hole is always enormous: what changes is what is shown.
		const base = low > top * 0.6 ? low - (top - low || 1) * 0.2 : 0;
		const y = (value: number) => 50 - (value - base) / (top - base || 1) * 38;
		const regions: Region[] = [];

		pen.text(bytes(top), left - 8, 14, { fill: colours.quiet, align: "right", middle: true });
		pen.text(bytes(Math.max(0, base)), left - 8, 50, { fill: colours.quiet, align: "right", middle: true });
		pen.line([[left, 50], [width - right, 50]], colours.grid);
		const points: [number, number][] = [];
		let from = 0;
		for (const point of map.curve) {
			points.push([x(from), y(point.largest_free)], [x(point.to_ns), y(point.largest_free)]);
			const begin = from;
			regions.push({
				x: x(from), y: 0, w: Math.max(1, x(point.to_ns) - x(from)), h: height, id: String(point.to_ns),
				label: `${duration(begin)} – ${duration(point.to_ns)}\nlargest free ${bytes(point.largest_free)}\n${plural(point.holes, "hole")}, ${bytes(point.mapped)} mapped`,
				choose: () => this.app.store.set({ at: nsWord(point.to_ns) }),
			});
			from = point.to_ns;
		}
		if (points.length > 0) {
			pen.area([[points[0][0], 50], ...points, [points[points.length - 1][0], 50]], alpha(colours.vm, 0.14));
			pen.line(points, colours.vm, 1.5);
		}
		pen.text("largest free block", left + 6, 10, { fill: colours.vm, bold: true, size: 10.5 });
		for (const one of map.failures) pen.text("✗", x(one.time_ns), 14, { fill: colours.warn, align: "center", bold: true });
		pen.line([[x(this.at), 2], [x(this.at), 56]], colours.accent, 2);
		return regions;
	}

	// ---- time runs ----

	private togglePlay(): void {
		if (this.playing) {
			this.stopPlay();
			return;
		}
		this.play.textContent = "❚❚ Pause";
		let at = this.at >= this.app.view.duration_ns ? 0 : this.at;
		const step = async () => {
			at += this.app.view.duration_ns / 60;
			if (at > this.app.view.duration_ns || !this.root.isConnected) {
				this.stopPlay();
				return;
			}
			this.app.store.set({ at: nsWord(at) }, true);
			this.playing = window.setTimeout(() => void step(), 250);
		};
		this.playing = window.setTimeout(() => void step(), 0);
	}

	private stopPlay(): void {
		clearTimeout(this.playing);
		this.playing = 0;
		this.play.textContent = "▶ Play";
	}

	key(event: KeyboardEvent): boolean {
		if (event.key !== "p") return false;
		this.togglePlay();
		return true;
	}

	pictures(): Picture[] {
		if (!this.map) return [];
		const map = this.map, drawn = blocks(map, CELLS_MAX), width = 1000, columns = Math.floor(width / (CELL + GAP));
		const height = drawn.blocks.reduce((sum, block) => sum + HEADER + Math.ceil(block.cells.length / columns) * (CELL + GAP) + 4, 8);
		return [
			{ name: "map", title: `Address space of ${this.app.view.file}`, width, height, background: theme().ground, draw: (pen) => void this.drawMap(pen, drawn, columns, width) },
			{ name: "largest-free", title: `Largest free block of ${this.app.view.file}`, width, height: 58, background: theme().ground, draw: (pen) => void this.drawCurve(pen, map, width) },
		];
	}

	csv(): string {
		const curve = (this.map?.curve ?? []).map((point) => csvLine([point.to_ns, point.largest_free, point.holes, point.mapped]));
		return csvTables([["Who is in the way", this.rows.csv()],
			["Largest free block over time", csvLine(["to_ns", "largest_free", "holes", "mapped"]) + curve.join("")]]);
	}
}
