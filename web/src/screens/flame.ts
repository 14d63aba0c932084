// flame: the window's stacks as boxes upon boxes, or as an outline to be read.
import { type App, messageOf, type Screen, windowParams } from "../app";
import { isSuperseded, type Params } from "../ask/source";
import type { Peaks, TreeAnswer } from "../ask/types";
import { choice, fill, h } from "../base/dom";
import { fitted, type Pen, type Picture } from "../base/pen";
import type { State } from "../base/state";
import { bytes, count, csvLine, percent, shortPath, signedBytes } from "../base/text";
import { hueOf, theme } from "../base/theme";
import { nsWord } from "../base/times";
import { exactly } from "../base/words";
import { find, type Flame, flamesOf, layout, valueOf } from "../parts/flame_layout";
import { Outline } from "../parts/outline";
import { PictureView, type Region } from "../parts/picture";

const LINE = 21;

export class FlameScreen implements Screen {
	readonly id = "flame";
	readonly title = "Flame graph";
	readonly root: HTMLElement;
	private view: PictureView;
	private outline: Outline;
	private stage = h("div", { class: "stage" });
	private crumbs = h("div", { class: "crumbs" });
	private controls: { update(): void }[];
	private answer: TreeAnswer | null = null;
	private roots: Flame[] = [];
	private problem = "";
	private counting = false;
	private at = "peak"; // the moment of a graph of the peak
	private generation = 0;

	constructor(private app: App) {
		this.view = new PictureView(app, "Flame graph");
		this.outline = new Outline((flame) => this.widen(flame));
		const set = (key: keyof State) => (value: string) => app.store.set({ [key]: value, focus: "" });
		const kind = choice("Direction", [["callers", "Callers"], ["leaf", "Inverted"]], () => app.store.state.kind, set("kind"));
		const value = choice("Boxes are as wide as", [["impacting", "Impacting"], ["size", "Size"], ["count", "Count"], ["peak", "At the peak"]],
			() => app.store.state.value, set("value"));
		const form = choice("Form", [["", "Picture"], ["1", "Text"]], () => app.store.state.asText ? "1" : "",
			(text) => app.store.set({ asText: text === "1" }));
		this.controls = [kind, value, form];
		this.root = h("div", { class: "screen" },
			h("div", { class: "bar" }, kind.root, value.root, form.root, this.crumbs), this.stage);
		new ResizeObserver(() => this.show()).observe(this.stage);
	}

	update(changed: Set<keyof State>): void {
		for (const control of this.controls) control.update();
		if (["from", "to", "filters", "layer", "exitFrees", "kind", "value", "tab"].some((key) => changed.has(key as keyof State)))
			void this.ask();
		else if (changed.has("focus") || changed.has("asText")) this.show();
	}

	private async params(): Promise<Params> {
		const state = this.app.store.state;
		const params = windowParams(state);

		if (state.value !== "peak") return params;
		const rest = params.filter(([word]) => word !== "from" && word !== "to");
		this.at = "peak";
		if (!state.from && !state.to) return [...rest, ["from", "peak"], ["to", "peak"]];
		const asked = params.filter(([word]) => word !== "impact" && word !== "exit-frees");
		const peaks = (await this.app.source.get<Peaks>("peaks", [...asked, ["n", "50"]], "flame-peak")).peaks;
		const highest = peaks.reduce((best, peak) => peak.bytes > best.bytes ? peak : best, peaks[0]);
		// A window without a top of its own is highest where it ends or begins.
		const at = highest ? nsWord(highest.time_ns) : state.to || "end";
		this.at = at;
		return [...rest, ["from", at], ["to", at]];
	}

	private async ask(): Promise<void> {
		const generation = ++this.generation;
		const { kind, value } = this.app.store.state;

		this.counting = true;
		if (this.roots.length === 0) this.show();
		try {
			const sort = value === "peak" ? "size" : value;
			const params = await this.params();
			if (generation !== this.generation) return; // its next question would overtake a newer one
			const answer = await this.app.source.get<TreeAnswer>("tree",
				[...params, ["kind", kind], ["sort", sort]], "tree");
			if (generation !== this.generation) return;
			this.answer = answer;
			this.roots = flamesOf(answer, value);
			this.problem = "";
		} catch (error) {
			if (isSuperseded(error) || generation !== this.generation) return;
			this.roots = [];
			this.problem = messageOf(error);
		}
		this.counting = false;
		this.show();
	}

	private get whole(): number {
		return this.roots.reduce((sum, flame) => sum + flame.width, 0);
	}

	private show(): void {
		const state = this.app.store.state;
		const focus = find(this.roots, state.focus);

		if (!this.stage.isConnected) return;
		this.showCrumbs(focus);
		if (this.roots.length === 0 || this.whole === 0) {
			fill(this.stage, h("p", { class: this.problem ? "error" : "empty" }, this.counting ? "Counting …" : this.problem ||
				(state.value === "impacting" ? "Nothing grew or shrank in this window." : "Nothing lived in this window.")));
			return;
		}
		if (state.asText) {
			this.outline.set(focus ? [focus] : this.roots, (flame) => this.figures(flame), this.whole);
			if (this.stage.firstChild !== this.outline.root) this.stage.replaceChildren(this.outline.root);
			return;
		}
		if (this.stage.firstChild !== this.view.root) this.stage.replaceChildren(this.view.root);
		const width = this.stage.clientWidth - 28;
		this.view.render(width, this.heightOf(focus, width), (pen) => this.draw(pen, width));
	}

	private heightOf(focus: Flame | null, width: number): number {
		return (Math.max(0, ...layout(this.roots, focus, 1.5 / width).map((box) => box.depth)) + 1) * LINE + 4;
	}

	private draw(pen: Pen, width: number): Region[] {
		const boxes = layout(this.roots, find(this.roots, this.app.store.state.focus), 1.5 / width);
		const colours = theme();

		return boxes.map((box): Region => {
			const x = box.x * width, w = box.w * width, y = box.depth * LINE;
			const style = { fill: colours.text, size: 11.5, mono: true, middle: true };
			const colour = box.above ? colours.panel : this.colour(box.flame);
			pen.rect(x, y, Math.max(1, w - 1), LINE - 1, colour);
			if (w > 28) {
				const figure = this.short(box.flame);
				const name = fitted(pen, box.flame.name, w - 10, style);
				pen.text(name, x + 5, y + LINE / 2, style);
				const taken = pen.measure(name, style) + 20;
				const small = { fill: colours.quiet, size: 10.5, middle: true, align: "right" as const };
				if (pen.measure(figure, small) + taken < w) pen.text(figure, x + w - 7, y + LINE / 2, small);
			}
			return {
				x, y, w: Math.max(1, w), h: LINE, id: box.flame.path, label: this.label(box.flame),
				choose: () => this.widen(box.flame),
			};
		});
	}

	private colour(flame: Flame): string {
		if (this.app.store.state.value !== "impacting") return hueOf(flame.node.module || flame.name);
		const dark = document.documentElement.dataset.theme === "dark";
		const net = flame.node.impacting_size;
		if (net > 0) return dark ? "#7a4520" : "#f7cfae";
		if (net < 0) return dark ? "#5c3f54" : "#e6cbdb";
		return dark ? "#3a4047" : "#e3e6e9";
	}

	private short(flame: Flame): string {
		const { value } = this.app.store.state;
		const own = valueOf(flame.node, value);
		return value === "count" ? count(own) : value === "impacting" ? signedBytes(own) : bytes(own);
	}

	private figures(flame: Flame): { own: string; self: string; share: string; place: string } {
		const { value } = this.app.store.state;
		const self = valueOf(flame.node.self, value);
		return {
			own: this.short(flame), place: flame.node.file ? `${shortPath(flame.node.file)}${flame.node.line ? `:${flame.node.line}` : ""}` : "",
			self: value === "count" ? count(self) : value === "impacting" ? signedBytes(self) : bytes(self),
			share: percent(flame.width / this.whole),
		};
	}

	private label(flame: Flame): string {
		const node = flame.node;
		const figures = this.figures(flame);
		return [flame.name, figures.place || node.module,
			`${figures.own}, ${figures.share} of the window; itself ${figures.self}`,
			`impacting ${signedBytes(node.impacting_size)}, size ${bytes(node.size)}, count ${count(node.count)}`]
			.filter(Boolean).join("\n");
	}

	private widen(flame: Flame): void {
		const focus = this.app.store.state.focus;
		this.app.store.set({ focus: focus === flame.path ? "" : flame.path });
	}

	private showCrumbs(focus: Flame | null): void {
		if (!focus) {
			fill(this.crumbs, h("span", { class: "caption" }, (this.answer?.nodes_left_out ?? 0) > 0
				? `${count(this.answer!.nodes_left_out!)} of the smallest functions are left out` : "click a box to widen it"));
			return;
		}
		fill(this.crumbs, h("span", { class: "code" }, focus.name), " ",
			h("button", { type: "button", class: "quiet", onclick: () => this.app.store.set({ focus: "" }) }, "Show all"),
			h("button", {
				type: "button", class: "quiet", disabled: !focus.node.function, title: "only allocations through this function",
				onclick: () => this.app.store.set({
					filters: [...this.app.store.state.filters, ["frame", exactly(focus.node.function ?? "")]], focus: "",
				}),
			}, "Filter to"),
			h("button", {
				type: "button", class: "quiet", disabled: !focus.node.function, title: "no allocations through this function",
				onclick: () => this.app.store.set({
					filters: [...this.app.store.state.filters, ["not-frame", exactly(focus.node.function ?? "")]], focus: "",
				}),
			}, "Filter out"));
	}

	moment(): string {
		return this.at;
	}

	csv(): string {
		const lines = [csvLine(["depth", "function", "file", "line", "module", "impacting", "size", "count", "self_impacting", "self_size", "self_count"])];
		const walk = (flames: Flame[]) => {
			for (const flame of flames) {
				const { node } = flame;
				lines.push(csvLine([flame.depth, flame.name, node.file, node.line, node.module, node.impacting_size, node.size, node.count,
					node.self.impacting_size, node.self.size, node.self.count]));
				walk(flame.children);
			}
		};
		walk(this.roots);
		return lines.join("");
	}

	pictures(): Picture[] {
		if (this.roots.length === 0) return [];
		const width = Math.max(800, this.stage.clientWidth - 28);
		const height = this.heightOf(find(this.roots, this.app.store.state.focus), width);
		return [{
			name: "flame", title: `Flame graph of ${this.app.view.file}`, width, height, background: theme().ground,
			draw: (pen) => void this.draw(pen, width),
		}];
	}

	key(event: KeyboardEvent): boolean {
		if (event.key === "Escape" && this.app.store.state.focus) {
			this.app.store.set({ focus: "" });
			return true;
		}
		if (event.key === "i") {
			this.app.store.set({ kind: this.app.store.state.kind === "leaf" ? "callers" : "leaf", focus: "" });
			return true;
		}
		return false;
	}
}
