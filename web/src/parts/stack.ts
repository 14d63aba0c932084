// stack: one stack, frame by frame, with the source line of each where the file is there.
import { type App, frameName, framePlace, faceOf, messageOf } from "../app";
import type { Frame, StackRow } from "../ask/types";
import { fill, h } from "../base/dom";
import { exactly } from "../base/words";

export class StackPart {
	readonly root = h("aside", { class: "stack-panel", "aria-label": "Stack", tabindex: "-1", hidden: true });
	private came: Element | null = null;

	constructor(private app: App) {
		this.root.addEventListener("keydown", (event) => {
			if (event.key !== "Escape") return;
			this.close();
			event.stopPropagation();
		});
	}

	show(row: StackRow, title: string): void {
		const face = faceOf(row);
		const source = h("div", { class: "source" });

		this.came = document.activeElement;
		fill(this.root,
			h("header", {}, h("h2", {}, title),
				h("button", { type: "button", class: "quiet", onclick: () => this.copy(row), title: "the stack as text" }, "Copy"),
				h("button", { type: "button", class: "quiet", "aria-label": "close the stack", onclick: () => this.close() }, "×")),
			row.stack.length === 0
				? h("p", { class: "empty" }, row.mapped_file ? `No stack: mapped from ${row.mapped_file}.` : "This call was recorded without a stack.")
				: h("ol", { class: "frames" }, ...row.stack.map((frame, i) => this.frame(frame, i < face, source))),
			source);
		this.root.hidden = false;
		this.root.focus();
	}

	close(): void {
		this.root.hidden = true;
		// The row that it was opened from may have been drawn anew.
		const row = this.came?.closest<HTMLElement>("tr[data-id]")?.dataset.id;
		const back = this.came?.isConnected ? this.came : [...document.querySelectorAll<HTMLElement>("tr[data-id]")].find((tr) => tr.dataset.id === row);
		if (back instanceof HTMLElement) back.focus();
	}

	private frame(frame: Frame, wrapper: boolean, source: HTMLElement): HTMLElement {
		const place = framePlace(frame);
		return h("li", { class: wrapper ? "wrapper" : "" },
			h("span", { class: "function", title: frame.function }, frameName(frame)),
			frame.inlined ? h("span", { class: "inlined", title: "inlined into the one below" }, "inlined") : null,
			frame.file && this.app.view.has.source
				? h("button", { type: "button", class: "place", title: `${frame.file}:${frame.line ?? 0}`, onclick: () => void this.source(frame, source) }, place)
				: h("span", { class: "place", title: frame.file || frame.module }, place),
			h("button", {
				type: "button", class: "quiet", title: "only allocations through this function",
				onclick: () => this.app.store.set({ filters: [...this.app.store.state.filters, ["frame", exactly(frame.function ?? "")]] }),
				disabled: !frame.function,
			}, "Filter"));
	}

	private async source(frame: Frame, into: HTMLElement): Promise<void> {
		fill(into, h("p", { class: "loading" }, "reading …"));
		try {
			const answer = await this.app.source.text("source",
				[["module", frame.module ?? ""], ["file", frame.file ?? ""], ["around", String(frame.line ?? 0)], ["lines", "25"]]);
			const lines = answer.text.replace(/\n$/, "").split("\n");
			fill(into, h("h3", {}, framePlace(frame)),
				h("pre", { tabindex: "0", "aria-label": `source of ${frameName(frame)}` }, ...lines.map((text, i) => {
					const number = answer.firstLine + i;
					return h("div", { class: number === frame.line ? "line here" : "line" },
						h("span", { class: "number" }, String(number)), h("span", {}, text || " "));
				})));
			into.querySelector(".here")?.scrollIntoView({ block: "nearest" });
		} catch (error) {
			fill(into, h("p", { class: "empty" }, `${frame.file}: ${messageOf(error)}`));
		}
	}

	private copy(row: StackRow): void {
		const text = row.stack.map((frame) => `${frameName(frame)}  ${framePlace(frame)}`).join("\n");
		void navigator.clipboard?.writeText(text).then(() => this.app.say("stack copied"));
	}
}
