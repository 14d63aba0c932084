// findings: the first page: what is wrong or could be cheaper, each with its proof and a way to see it.
import { type App, messageOf, type Screen, windowParams } from "../app";
import { isSuperseded, type Question } from "../ask/source";
import type { Finding, Findings } from "../ask/types";
import { fill, h } from "../base/dom";
import { parseState, type State } from "../base/state";
import { bytes, count, csvTables, plural } from "../base/text";
import { site } from "./growth";
import { emptyState } from "./resident";

const CLASSES = {
	error: ["✗ error", "the program is wrong"], problem: ["▲ problem", "uses more and more, or fails"],
	saving: ["▽ saving", "works, and could be cheaper"], note: ["· note", "good to know"],
} as const;

export class FindingsScreen implements Screen {
	readonly id = "findings";
	readonly title = "Findings";
	readonly root: HTMLElement;
	private said = h("p", { class: "caption", role: "status" });
	private list = h("ol", { class: "findings", "aria-label": "Findings" });
	private missed = h("details", { class: "missed" });
	private answer: Findings | null = null;

	constructor(private app: App) {
		this.root = h("div", { class: "screen scrolls" }, this.said, this.list, this.missed);
	}

	update(changed: Set<keyof State>): void {
		if (this.app.dragging) return;
		if (["from", "to", "filters", "layer", "tab"].some((key) => changed.has(key as keyof State))) void this.ask();
	}

	ahead(): Question[] {
		return [["findings", windowParams(this.app.store.state).filter(([word]) => word !== "impact" && word !== "exit-frees")]];
	}

	private async ask(): Promise<void> {
		if (!this.answer) this.said.textContent = "Looking for what stands out …";
		this.list.setAttribute("aria-busy", "true");
		try {
			this.show(await this.app.source.get<Findings>(...this.ahead()[0], "findings"));
		} catch (error) {
			if (isSuperseded(error)) return;
			this.answer = null;
			fill(this.said);
			fill(this.list, h("li", {}, emptyState("Nothing was looked for", messageOf(error))));
			fill(this.missed);
		}
		this.list.removeAttribute("aria-busy");
	}

	private show(answer: Findings): void {
		this.answer = answer;
		this.said.textContent = answer.total === 0 ? "" : `${plural(answer.total, "finding")}, what matters most first` +
			(answer.findings_left_out > 0 ? `; ${count(answer.findings_left_out)} more: tidemark findings` : "");
		fill(this.list, ...(answer.findings.length > 0 ? answer.findings.map((finding) => this.card(finding))
			: [h("li", {}, emptyState("Nothing stands out", "No leak, no waste that would matter, nothing freed wrongly, of the kinds that this trace can tell."))]));
		fill(this.missed, h("summary", {}, `${plural(answer.not_looked_for.length, "kind was", "kinds were")} not looked for`),
			h("ul", {}, ...answer.not_looked_for.map((one) => h("li", {}, h("b", {}, one.title), ` (${one.kind}): ${one.why}`))));
		this.missed.hidden = answer.not_looked_for.length === 0;
	}

	private card(finding: Finding): HTMLElement {
		const [badge, meaning] = CLASSES[finding.class];
		const saves = [
			finding.saves.peak_bytes ? `up to ${bytes(finding.saves.peak_bytes)} at the peak` : "",
			finding.saves.end_bytes ? `up to ${bytes(finding.saves.end_bytes)} at the end` : "",
			finding.saves.calls ? `up to ${plural(finding.saves.calls, "call")}` : "",
		].filter(Boolean).join(", ");
		const term = (name: string, ...what: (Node | string)[]) => [h("dt", {}, name), h("dd", {}, ...what)];

		return h("li", { class: `finding is-${finding.class}`, "data-finding": finding.id },
			h("header", {}, h("span", { class: "badge", title: meaning }, badge), h("h2", {}, finding.what),
				h("button", { type: "button", class: "evidence", title: "open the view that shows it", "aria-label": `Show ${finding.id}`, onclick: () => this.open(finding) }, "Show")),
			h("dl", {},
				...term(finding.sure, finding.why),
				...(finding.advice ? term("do", finding.advice) : []),
				...(saves ? term("saves", saves) : []),
				...(finding.stack.length > 0 ? term("who", this.stack(finding)) : []),
				...term("see", h("code", {}, `tidemark ${finding.command}`))));
	}

	private stack(finding: Finding): HTMLElement {
		return h("button", { type: "button", class: "quiet", title: "the whole stack", onclick: () => this.app.showStack(finding, finding.what) }, site(finding));
	}

	// The state that its link names, and no other window or filter.
	private open(finding: Finding): void {
		const { tab, from, to, filters } = parseState(finding.view);
		this.app.store.set({ tab, from, to, filters, zoom: "", row: "" });
	}

	csv(): string | null {
		if (!this.answer) return null;
		const line = (cells: (string | number)[]) => cells.map((cell) => /[",\n]/.test(String(cell)) ? `"${String(cell).replace(/"/g, '""')}"` : String(cell)).join(",");
		return csvTables([["Findings", [["id", "class", "sure", "what", "why", "advice", "saves_peak_bytes", "saves_end_bytes", "saves_calls", "command"],
			...this.answer.findings.map((one) => [one.id, one.class, one.sure, one.what, one.why, one.advice, one.saves.peak_bytes ?? "", one.saves.end_bytes ?? "", one.saves.calls ?? "", one.command])]
			.map((cells) => `${line(cells)}\n`).join("")]]);
	}
}
