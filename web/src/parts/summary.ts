// summary: the window in words and figures, its edges to be typed, and the ways to and from it.
import { type App, clock, edges, messageOf, windowParams } from "../app";
import { isSuperseded } from "../ask/source";
import type { WindowAnswer } from "../ask/types";
import { fill, freshId, h } from "../base/dom";
import type { State } from "../base/state";
import { bytes, count, duration, plural, signedBytes } from "../base/text";
import { markWord, readableWord, timeNs } from "../base/times";

export class SummaryPart {
	readonly root: HTMLElement;
	private figures = h("div", { class: "figures" });
	private notes = h("div", { class: "notes" });
	private from: HTMLInputElement;
	private to: HTMLInputElement;
	private second = h("div", { class: "second" });
	private back: HTMLButtonElement;

	constructor(private app: App, zoom: () => void) {
		const list = freshId("times");
		this.from = this.edge("from", "Window begins at", list);
		this.to = this.edge("to", "Window ends at", list);
		this.back = this.button("Back", "the window before (Backspace)", () => app.store.back());
		this.root = h("section", { class: "summary", "aria-label": "Window" },
			h("div", { class: "edges" },
				h("label", {}, "Window ", this.from), h("label", {}, "to ", this.to),
				h("datalist", { id: list },
					...["begin", "end", "peak", "50%"].map((word) => h("option", { value: word })),
					...app.marks.slice(0, 500).map((mark) => h("option", { value: markWord(mark) }))),
				this.button("Zoom", "widen the timeline to the window (z)", zoom), this.back,
				this.button("All", "the whole trace (a, or a double click on the timeline)", () =>
					app.store.set({ from: "", to: "", zoom: "", otherFrom: "", otherTo: "" }))),
			this.figures, this.second, this.notes);
	}

	private button(text: string, title: string, click: () => void): HTMLButtonElement {
		return h("button", { type: "button", class: "quiet", title, onclick: click }, text);
	}

	private edge(which: "from" | "to", name: string, list: string): HTMLInputElement {
		const input = h("input", {
			class: "time", "aria-label": name, list, spellcheck: "false", autocomplete: "off",
			placeholder: which === "from" ? "begin" : "end",
			title: "12.5s, 350ms, 50%, -5s (before the end), peak, mark:NAME, mark:NAME+2s",
		});
		input.addEventListener("change", () => this.typed(which, input));
		return input;
	}

	private typed(which: "from" | "to", input: HTMLInputElement): void {
		const word = input.value.trim();
		const known = timeNs(word || (which === "from" ? "begin" : "end"), clock(this.app)) !== null;

		input.setAttribute("aria-invalid", String(!known));
		if (!known) {
			this.app.say(`${word} is no moment of this trace`);
			return;
		}
		this.app.store.set({ [which]: word === "begin" && which === "from" ? "" : word === "end" && which === "to" ? "" : word });
	}

	update(changed: Set<keyof State>): void {
		const state = this.app.store.state;

		for (const [input, word] of [[this.from, state.from], [this.to, state.to]] as const) {
			if (document.activeElement !== input || changed.has("from")) input.value = readableWord(word);
			input.setAttribute("aria-invalid", "false");
		}
		this.back.disabled = !this.app.store.canGoBack;
		if (["from", "to", "filters", "layer", "exitFrees", "otherFrom", "otherTo", "exact", "tab"]
			.some((key) => changed.has(key as keyof State))) void this.ask();
	}

	private async ask(): Promise<void> {
		const state = this.app.store.state;
		const ask = (details: string) => this.app.source.get<WindowAnswer>("window",
			[...windowParams(state), ["by", "none"], ["details", details]], "summary");
		// What stands there is of another window.
		if (!this.figures.firstChild) fill(this.figures, h("span", { class: "loading" }, "counting …"));
		const late = setTimeout(() => this.figures.setAttribute("aria-busy", "true"), 150);
		try {
			this.show(await ask("0"), "…");
			if (!this.app.dragging) void ask("peaks").then((answer) => this.show(answer, "–"), () => {}); // the figures but for the peak are there
		} catch (error) {
			if (isSuperseded(error)) {
				clearTimeout(late);
				return;
			}
			fill(this.figures, h("span", { class: "error" }, messageOf(error)));
		}
		clearTimeout(late);
		this.figures.removeAttribute("aria-busy");
		await this.askSecond();
	}

	private async askSecond(): Promise<void> {
		const state = this.app.store.state;
		const window = edges(this.app, true);

		if (!window) {
			fill(this.second);
			return;
		}
		try {
			const params = windowParams({ ...state, from: state.otherFrom, to: state.otherTo });
			const answer = await this.app.source.get<WindowAnswer>("window",
				[...params, ["by", "none"], ["details", "0"]], "summary-b");
			fill(this.second, h("b", { class: "tag-b" }, "B"),
				` ${duration(answer.from_ns)} – ${duration(answer.to_ns)}: `,
				h("b", {}, signedBytes(answer.total?.impacting_size ?? 0)), ` impacting, ${bytes(answer.total?.allocated ?? 0)} allocated `,
				this.button("Compare A with B", "what changed, stack by stack", () => this.app.store.set({ tab: "diff" })),
				this.button("Forget B", "one window alone", () => this.app.store.set({ otherFrom: "", otherTo: "" })));
		} catch (error) {
			if (!isSuperseded(error)) fill(this.second, h("span", { class: "error" }, messageOf(error)));
		}
	}

	private show(answer: WindowAnswer, unknown: string): void {
		const total = answer.total;
		const size = this.app.store.state.exact ? (n: number | null) => n === null ? "–" : `${count(n)} B` : bytes;

		if (!total) {
			fill(this.figures, "two layers never add up");
			return;
		}
		const before = total.size - total.allocated;
		const figure = (name: string, text: string, raw: number | null, kind = "") =>
			h("div", { class: `figure ${kind}`, "data-figure": name, "data-value": raw, title: raw === null ? "" : `${count(raw)} bytes` },
				h("span", { class: "name" }, name), h("span", { class: "value" }, text));
		fill(this.figures,
			figure("length", duration(answer.to_ns - answer.from_ns), null),
			figure("before", size(before), before),
			figure("after", size(before + total.impacting_size), before + total.impacting_size),
			figure("impacting", this.app.store.state.exact
				? (total.impacting_size > 0 ? "+" : "") + size(total.impacting_size) : signedBytes(total.impacting_size),
				total.impacting_size, total.impacting_size > 0 ? "grew" : total.impacting_size < 0 ? "shrank" : ""),
			figure("allocated", size(total.allocated), total.allocated),
			h("div", { class: "figure", "data-figure": "blocks", "data-value": total.count, title: "that lived in the window" },
				h("span", { class: "name" }, this.app.store.state.layer === "vm" ? "pieces" : "blocks"),
				h("span", { class: "value" }, count(total.count))),
			figure("peak", total.peak_size === null ? unknown : size(total.peak_size), total.peak_size));
		const snapped = this.app.source.single && (this.app.store.state.from || this.app.store.state.to)
			? ["edges are those of the page's data: the nearest to what was chosen"] : [];
		fill(this.notes, ...[...answer.warnings.filter((one) => !this.app.view.warnings.includes(one)), ...snapped].map((warning) => h("p", {}, warning)));
		this.app.say(`${duration(answer.to_ns - answer.from_ns)}, impacting ${signedBytes(total.impacting_size)}, ` +
			plural(total.count, "block"));
	}
}
