// sizes: how many allocations had which size, and how long those of which size lived. A band or a
// cell that is chosen becomes a filter, and the table below follows.
import { type App, messageOf, type Screen, windowParams } from "../app";
import { isSuperseded, type Params, type Question } from "../ask/source";
import type { Histogram, SizeLife } from "../ask/types";
import { choice, h } from "../base/dom";
import type { Pen, Picture } from "../base/pen";
import type { Filter, State } from "../base/state";
import { bytes, count, csvLine, csvTables, duration, sizeRange } from "../base/text";
import { theme } from "../base/theme";
import { TablePart } from "../parts/table";
import { PictureView, type Region } from "../parts/picture";
import { alpha } from "../parts/timeline";

const CLASSES = ["impacting", "transient", "persistent", "freed_before"] as const;
const CLASS_NAMES = { impacting: "impacting", transient: "transient", persistent: "persistent", freed_before: "freed, from before" };
const CLASS_GLYPHS = { impacting: "▲", transient: "◆", persistent: "■", freed_before: "▽" };
const HEIGHT = 190, LEFT = 62, BOTTOM = 34, TOP = 18;

// 0: 0, 1: 1, 2: 2, 3: 3–4, 4: 5–8 …
export function octaveOf(max: number): number {
	return max === 0 ? 0 : Math.ceil(Math.log2(max)) + 1;
}

export class SizesScreen implements Screen {
	readonly id = "sizes";
	readonly title = "Sizes";
	readonly root: HTMLElement;
	private bars: PictureView;
	private heat: PictureView;
	private histogram: Histogram | null = null;
	private sizeLife: SizeLife | null = null;
	private pictureRow: HTMLElement;
	private note = h("p", { class: "caption" });
	private table: TablePart;
	private counting = new Set<string>();
	private measure = "count";
	private control: { root: HTMLElement; update(): void };

	constructor(private app: App) {
		this.bars = new PictureView(app, "Histogram of sizes");
		this.heat = new PictureView(app, "Size against lifetime");
		this.table = new TablePart(app, () => {});
		this.control = choice("Measure", [["count", "Count"], ["bytes", "Bytes"]], () => this.measure, (value) => {
			this.measure = value;
			this.control.update();
			this.show();
		});
		this.pictureRow = h("div", { class: "pictures" },
			h("figure", {}, h("figcaption", {}, "Sizes ", h("span", {}, "both axes logarithmic; a band filters")), this.bars.root),
			h("figure", {}, h("figcaption", {}, "Size × lifetime ", h("span", {}, "of allocations begun in the window; a cell filters")), this.heat.root));
		this.root = h("div", { class: "screen" }, h("div", { class: "bar" }, this.control.root, this.note), this.pictureRow, this.table.root);
		new ResizeObserver(() => this.show()).observe(this.pictureRow);
	}

	update(changed: Set<keyof State>): void {
		if (["from", "to", "filters", "layer", "tab", "exitFrees"].some((key) => changed.has(key as keyof State))) void this.ask();
		this.table.update(changed);
	}

	ahead(): Question[] {
		return [["sizelife", this.params().filter(([word]) => word !== "impact")]];
	}

	private params(): Params {
		return windowParams(this.app.store.state).filter(([word]) => !["size", "lifetime", "exit-frees"].includes(word));
	}

	// The pictures show all sizes and lifetimes, whatever band is chosen in them.
	private async ask(): Promise<void> {
		const ask = async <T>(path: string, params: Params, keep: (answer: T | null) => void) => {
			this.counting.add(path);
			try {
				keep(await this.app.source.get<T>(path, params, path));
				this.note.textContent = "";
			} catch (error) {
				if (isSuperseded(error)) return;
				keep(null);
				this.note.textContent = messageOf(error);
			}
			this.counting.delete(path);
			this.show(); // each when it is there
		};
		const asked = Promise.all([
			ask<Histogram>("histogram", this.params(), (answer) => { this.histogram = answer; }),
			ask<SizeLife>(...this.ahead()[0], (answer) => { this.sizeLife = answer; }),
		]);
		this.show();
		await asked;
	}

	private waits(path: string): string {
		return this.counting.has(path) ? "counting …" : "";
	}

	private show(): void {
		const width = this.bars.root.parentElement!.clientWidth;
		if (width < 50 || !this.root.isConnected) return;
		this.bars.render(width, HEIGHT, (pen) => this.drawBars(pen, width));
		this.heat.render(width, HEIGHT, (pen) => this.drawHeat(pen, width));
	}

	private chosen(word: string): string | undefined {
		return this.app.store.state.filters.find(([one]) => one === word)?.[1];
	}

	private choose(size: string, lifetime?: string): void {
		const { filters } = this.app.store.state;
		const same = this.chosen("size") === size && this.chosen("lifetime") === lifetime;
		const rest: Filter[] = filters.filter(([word]) => word !== "size" && word !== "lifetime");
		this.app.store.set({
			filters: same ? rest : [...rest, ["size", size], ...(lifetime ? [["lifetime", lifetime] as Filter] : [])], row: "",
		});
	}

	private octaves(): [number, number] {
		const bins = [...(this.histogram?.bins ?? []), ...(this.sizeLife?.cells ?? []), ...(this.sizeLife?.never ?? [])];
		const all = bins.map((bin) => octaveOf(bin.size_max));
		return all.length > 0 ? [Math.max(0, Math.min(...all) - 1), Math.max(...all) + 1] : [3, 12];
	}

	private sizeAxis(pen: Pen, width: number, slot: number, low: number, high: number): void {
		const style = { fill: theme().quiet, align: "center" as const };
		const every = Math.max(1, Math.ceil(58 / slot));
		for (let octave = low; octave <= high; octave++)
			if ((octave - low) % every === 0)
				pen.text(bytes(octave === 0 ? 0 : 2 ** (octave - 1)).replace(".0", ""), LEFT + (octave - low + 0.5) * slot, HEIGHT - BOTTOM + 15, style);
		pen.text("size, up to", width - 8, HEIGHT - 5, { fill: theme().quiet, size: 10, align: "right" });
	}

	private drawBars(pen: Pen, width: number): Region[] {
		const colours = theme();
		const bins = this.histogram?.bins ?? [];
		const measure = this.measure as "count" | "bytes";
		const [low, high] = this.octaves();
		const slot = (width - LEFT - 8) / (high - low + 1);
		const most = Math.max(1, ...bins.flatMap((bin) => CLASSES.map((name) => bin[name][measure])));
		const step = measure === "count" ? 10 : 1024;
		const decades = Math.max(1, Math.ceil(Math.log(most) / Math.log(step) - 1e-9));
		const y = (value: number) => HEIGHT - BOTTOM - (value <= 0 ? 0 : (Math.log(value) / Math.log(step) + 0.12) / (decades + 0.12)) *
			(HEIGHT - BOTTOM - TOP);
		const regions: Region[] = [];

		for (let power = 0; power <= decades; power++) {
			pen.line([[LEFT, y(step ** power)], [width - 8, y(step ** power)]], colours.grid);
			pen.text(measure === "count" ? count(step ** power) : bytes(step ** power).replace(".0", ""), LEFT - 8, y(step ** power),
				{ fill: colours.quiet, align: "right", middle: true });
		}
		if (bins.length === 0) pen.text(this.histogram ? "nothing lived in this window" : this.waits("histogram"), width / 2, HEIGHT / 2, { fill: colours.quiet, align: "center" });
		CLASSES.forEach((name, i) => pen.text(`${CLASS_GLYPHS[name]} ${CLASS_NAMES[name]}`, LEFT + 4 + i * 84, 10,
			{ fill: this.colour(name), size: 10.5 }));
		for (const bin of bins) {
			const x = LEFT + (octaveOf(bin.size_max) - low) * slot;
			const words = `${bin.size_min}..${bin.size_max}`;
			if (this.chosen("size") === words) pen.rect(x, TOP, slot, HEIGHT - BOTTOM - TOP, alpha(colours.accent, 0.16));
			const w = Math.min(22, (slot - 6) / CLASSES.length);
			CLASSES.forEach((name, i) => {
				const value = bin[name][measure];
				const left = x + slot / 2 + (i - CLASSES.length / 2) * w;
				if (value > 0) pen.rect(left, y(value), Math.max(1.5, w - 1), HEIGHT - BOTTOM - y(value), this.colour(name));
			});
			regions.push({
				x, y: TOP, w: slot, h: HEIGHT - BOTTOM - TOP, id: words, choose: () => this.choose(words),
				label: [sizeRange(bin.size_min, bin.size_max), ...CLASSES.filter((name) => bin[name].count > 0).map((name) =>
					`${CLASS_NAMES[name]}: ${count(bin[name].count)}, ${bytes(bin[name].bytes)}`)].join("\n"),
			});
		}
		pen.line([[LEFT, HEIGHT - BOTTOM], [width - 8, HEIGHT - BOTTOM]], colours.faint);
		this.sizeAxis(pen, width, slot, low, high);
		return regions;
	}

	private colour(name: typeof CLASSES[number]): string {
		const colours = theme();
		return name === "freed_before" ? colours.freed : colours[name];
	}

	private drawHeat(pen: Pen, width: number): Region[] {
		const colours = theme();
		const cells = this.sizeLife?.cells ?? [], never = this.sizeLife?.never ?? [];
		const measure = this.measure as "count" | "bytes";
		const [low, high] = this.octaves();
		const slot = (width - LEFT - 8) / (high - low + 1);
		const lives = cells.map((cell) => octaveOf(cell.lifetime_max_ns)).filter((octave) => octave > 1);
		const first = lives.length > 0 ? Math.max(2, Math.min(...lives) - 1) : 10;
		const last = lives.length > 0 ? Math.max(...lives, first + 6) : 30;
		// The uppermost row is what no call ended, the lowest what ended in the tick that it began in.
		const rows = last - first + 3;
		const tall = (HEIGHT - BOTTOM - TOP) / rows;
		const top = (octave: number) => HEIGHT - BOTTOM - (octave <= 1 ? 1 : octave - first + 2) * tall;
		const most = Math.log(1 + Math.max(1, ...cells.map((cell) => cell[measure]), ...never.map((cell) => cell[measure])));
		const regions: Region[] = [];
		const put = (cell: { size_min: number; size_max: number; count: number; bytes: number }, y: number, life: string, lifetime?: string) => {
			const x = LEFT + (octaveOf(cell.size_max) - low) * slot;
			const words = `${cell.size_min}..${cell.size_max}`;
			const share = Math.log(1 + cell[measure]) / most;
			const picked = this.chosen("size") === words && this.chosen("lifetime") === lifetime;
			pen.rect(x + 1, y + 1, slot - 2, tall - 1.5, alpha(lifetime ? colours.transient : colours.impacting, 0.16 + 0.84 * share),
				picked ? colours.text : null);
			regions.push({
				x, y, w: slot, h: tall, id: `${words} ${lifetime}`, choose: () => this.choose(words, lifetime),
				label: `${sizeRange(cell.size_min, cell.size_max)}\n${life}\n${count(cell.count)}, ${bytes(cell.bytes)}`,
			});
		};

		const labelled = Math.max(1, Math.ceil(15 / tall));
		pen.text("at once", LEFT - 8, top(0) + tall / 2, { fill: colours.quiet, align: "right", middle: true });
		for (let octave = first + labelled; octave <= last - Math.ceil(13 / tall) + 1; octave++) {
			if ((octave - first) % labelled) continue;
			pen.line([[LEFT, top(octave)], [width - 8, top(octave)]], colours.grid);
			pen.text(duration(2 ** (octave - 1)).replace(/\.\d+/, ""), LEFT - 8, top(octave) + tall / 2,
				{ fill: colours.quiet, align: "right", middle: true });
		}
		pen.text("not freed", LEFT - 8, TOP + tall / 2, { fill: colours.impacting, align: "right", middle: true });
		for (const cell of cells)
			put(cell, top(octaveOf(cell.lifetime_max_ns)), cell.lifetime_max_ns <= 1 ? "ended in the tick that it began in"
				: `lived ${duration(cell.lifetime_min_ns)} – ${duration(cell.lifetime_max_ns)}`,
				`${cell.lifetime_min_ns}ns..${cell.lifetime_max_ns}ns`);
		for (const cell of never) put(cell, TOP, "not freed by a call");
		if (cells.length + never.length === 0)
			pen.text(this.sizeLife ? "nothing began in this window" : this.waits("sizelife"), width / 2, HEIGHT / 2, { fill: colours.quiet, align: "center" });
		pen.line([[LEFT, HEIGHT - BOTTOM], [width - 8, HEIGHT - BOTTOM]], colours.faint);
		this.sizeAxis(pen, width, slot, low, high);
		return regions;
	}

	pictures(): Picture[] {
		const width = 720, background = theme().ground;
		return [
			{ name: "sizes", title: `Sizes of ${this.app.view.file}`, width, height: HEIGHT, background, draw: (pen) => void this.drawBars(pen, width) },
			{ name: "lifetimes", title: `Size by lifetime of ${this.app.view.file}`, width, height: HEIGHT, background, draw: (pen) => void this.drawHeat(pen, width) },
		];
	}

	csv(): string {
		const bins = (this.histogram?.bins ?? []).map((bin) => csvLine([bin.size_min, bin.size_max, ...CLASSES.flatMap((name) => [bin[name].count, bin[name].bytes])]));
		const cells = (this.sizeLife?.cells ?? []).map((cell) => csvLine([cell.size_min, cell.size_max, cell.lifetime_min_ns, cell.lifetime_max_ns, cell.count, cell.bytes]));
		const never = (this.sizeLife?.never ?? []).map((cell) => csvLine([cell.size_min, cell.size_max, "not freed", "not freed", cell.count, cell.bytes]));
		return csvTables([["Table", this.table.csv()],
			["Sizes", csvLine(["size_min", "size_max", ...CLASSES.flatMap((name) => [`${name}_count`, `${name}_bytes`])]) + bins.join("")],
			["Size by lifetime", csvLine(["size_min", "size_max", "lifetime_min_ns", "lifetime_max_ns", "count", "bytes"]) + [...cells, ...never].join("")]]);
	}
}
