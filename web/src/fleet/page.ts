// page: what many traces of a database say together: the questions of `tidemark fleet`, a tab each.
import { messageOf } from "../app";
import { AskError, isSuperseded, type Source } from "../ask/source";
import { fill, h } from "../base/dom";
import { Store } from "../base/state";
import { plural } from "../base/text";
import { onTheme } from "../base/theme";
import { copyButton, exportsMenu, showTab, tabAt, tabsOf, themeButton, turnTheme } from "../parts/frame";
import { openHelp } from "../parts/help";
import { type Answer, type Around, type FleetTab, tabsFor } from "./tabs";
import { type Chosen, commandOf, FORM, parseAnswer, questionOf, viewOf } from "./words";

const FIELDS: [keyof Chosen, title: string, placeholder: string][] = [
	["labels", "Runs with", "branch=main …"], ["since", "Began in the last", "168h"],
	["before", "From version", "last but one"], ["after", "To version", "the last"], ["ago", "Or since what was last", "168h ago"],
	["site", "Site", "all of them"], ["versionLabel", "The version is in", "version"], ["hostLabel", "The host is in", "host"],
];
const ONLY: Partial<Record<keyof Chosen, string>> = { before: "grew", after: "grew", ago: "grew", site: "trend" };

const KEYS: [string, string][] = [
	["1 … 5", "the questions"], ["↑ ↓", "in a table: rows; Enter follows: a site to its trend, a host to its sites, a trace to its page"],
	["← →", "in the trend: versions"], ["/", "which runs"], ["r", "ask again"], ["c", "copy as a command line"],
	["Backspace", "the question before (as the browser's way back)"], ["t", "colours: as the system, dark, light"],
];
const WORDS: [string, string][] = [
	["Run", "a trace that was pushed; its labels (record --label) say version and host"],
	["Level", "the mean of the bytes that lived in a run: bytes times seconds, divided by its seconds"],
	["Site", "a stack by the names of its functions and files: the same from build to build"],
	["±", "two standard errors, from how runs of one version differ among themselves"],
	["Score", "how far a host is from the median of all, in robust deviations; beyond 3.5 it is an outlier"],
];

export class FleetPage implements Around {
	private store: Store<Chosen>;
	private tabs: FleetTab[];
	private bar: HTMLElement;
	private panel = h("div", { class: "panel", role: "tabpanel", id: "panel", tabindex: "-1" });
	private facts = h("span", { class: "facts" });
	private banner = h("div", { class: "banners" });
	private trace = h("div", { class: "bar trace-line", role: "status" });
	private working = h("span", { class: "working", "aria-hidden": "true" });
	private live = h("div", { class: "spoken", role: "status", "aria-live": "polite" });
	private since: number | null = null;
	private inputs = new Map<keyof Chosen, HTMLInputElement>();
	private form: HTMLElement;

	constructor(private root: HTMLElement, private source: Source, private place: string, prefix: string) {
		this.store = new Store<Chosen>(window.location.hash.slice(1), prefix, FORM);
		this.tabs = tabsFor(this);
		this.bar = tabsOf(this.tabs, 1, (tab) => this.store.set({ tab }));
		this.form = h("div", { class: "bar fleet-bar", role: "group", "aria-label": "Which runs" }, ...FIELDS.map(([field, title, placeholder]) => this.field(field, title, placeholder)));
	}

	open(): void {
		const name = this.place.slice(this.place.lastIndexOf("/") + 1);

		document.title = `${name} – tidemark`;
		fill(this.root,
			h("a", { class: "skip", href: "#panel", onclick: (event: Event) => {
				event.preventDefault();
				this.panel.focus();
			} }, "Skip to the table"),
			h("header", { class: "top" },
				h("div", { class: "title" }, h("span", { class: "mark", "aria-hidden": "true" }, "≋"), h("h1", { title: this.place }, name), this.facts),
				copyButton(() => commandOf(this.store.state, this.place), (text) => this.say(text)), themeButton(),
				h("button", { type: "button", class: "icon", title: "keys and help (?)", "aria-label": "help", onclick: () => openHelp(KEYS, WORDS) }, "?")),
			this.banner,
			h("main", {}, this.form, h("div", { class: "tab-row" }, this.bar, this.working, exportsMenu(name, () => this.current)), this.trace,
				h("div", { class: "work" }, this.panel)),
			this.live);
		this.bar.addEventListener("keydown", (event) => this.tabKey(event));
		document.addEventListener("keydown", (event) => this.key(event));
		this.store.listen(() => void this.update());
		onTheme(() => this.current.draw());
		window.setInterval(() => this.showWork(), 500);
		void this.update();
	}

	private field(field: keyof Chosen, title: string, placeholder: string): HTMLElement {
		const input = h("input", { type: "text", placeholder, spellcheck: "false", autocomplete: "off", "data-field": field });
		input.addEventListener("change", () => this.store.set({ [field]: input.value.trim() }));
		this.inputs.set(field, input);
		return h("label", {}, title, " ", input);
	}

	private get current(): FleetTab {
		return this.tabs.find((tab) => tab.id === this.store.state.tab) ?? this.tabs[0];
	}

	// ---- asking ----

	private async update(): Promise<void> {
		const { current } = this;
		const chosen = this.store.state;

		this.panel.replaceChildren(current.root);
		this.panel.setAttribute("aria-labelledby", `tab-${current.id}`);
		showTab(this.bar, this.tabs.indexOf(current));
		for (const [field, input] of this.inputs) {
			input.value = chosen[field];
			input.parentElement!.hidden = (ONLY[field] ?? current.id) !== current.id;
		}
		fill(this.trace);
		current.wait();
		this.since = performance.now();
		try {
			const { text } = await this.source.text("fleet", questionOf(chosen), "fleet");
			const answer = parseAnswer<Answer>(text);
			this.since = null;
			fill(this.banner);
			current.set(answer.rows);
			this.showFacts(answer);
		} catch (error) {
			if (isSuperseded(error)) return;
			this.since = null;
			this.showProblem(current, error);
		}
		this.showWork();
	}

	private showFacts(answer: Answer): void {
		const from = answer.before === null ? "" : `from ${answer.before} (${plural(answer.runs_before ?? 0, "run")}) to ${answer.after} (${plural(answer.runs_after ?? 0, "run")})`;
		const warned = (n: number, what: string) => {
			if (n > 0) this.banner.append(h("div", { class: "banner warned", role: "note" }, h("b", {}, "Note."), ` ${plural(n, "run")} of ${plural(answer.runs, "run")} ${n === 1 ? "was" : "were"} ${what}.`));
		};

		this.facts.textContent = [plural(answer.runs, "run"), from].filter(Boolean).join(" · ");
		warned(answer.runs_sampled, "sampled: what they add is an estimate");
		warned(answer.runs_incomplete, "not complete: what is missing there is in no figure");
		if (this.store.state.tab === "hosts" && answer.rows.some((row) => row.outlier === "too few"))
			this.banner.append(h("div", { class: "banner warned", role: "note" }, h("b", {}, "Note."), " Fewer than four hosts: none is called an outlier."));
		this.say(`${this.current.title}: ${plural(answer.rows.length, "row")}`);
	}

	// What was asked for is not there: said in the table. The database is not: said on top, too.
	private showProblem(tab: FleetTab, error: unknown): void {
		const asked = error instanceof AskError && error.kind === "usage";

		fill(this.banner);
		this.facts.textContent = "";
		tab.set([], messageOf(error));
		if (!asked)
			this.banner.append(h("div", { class: "banner cut", role: "alert" }, h("b", {}, "No answer."), ` ${messageOf(error)} `,
				h("button", { type: "button", onclick: () => void this.update() }, "Ask again")));
		this.say(messageOf(error));
	}

	private showWork(): void {
		const ms = this.since === null ? 0 : performance.now() - this.since;
		const said = ms >= 1000 ? `asking the database, ${Math.round(ms / 1000)} s` : "";
		if (this.working.textContent !== said) this.working.textContent = said;
	}

	// ---- what tabs may do ----

	say(text: string): void {
		this.live.textContent = text;
	}

	choose(change: Partial<Chosen>): void {
		this.store.set(change);
		document.getElementById(`tab-${this.store.state.tab}`)?.focus();
	}

	chosen(): Chosen {
		return this.store.state;
	}

	showTrace(trace: string): void {
		const command = viewOf(this.place, trace);
		fill(this.trace, "This trace alone: ", h("code", { class: "code" }, command));
		this.say(command);
	}

	// ---- keys ----

	private tabKey(event: KeyboardEvent): void {
		const tab = tabAt(this.tabs, this.current, event);
		if (tab) this.choose({ tab: tab.id });
	}

	private key(event: KeyboardEvent): void {
		const target = event.target as HTMLElement;
		const tab = this.tabs[Number(event.key) - 1];
		if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
		if (target.closest("input, select, textarea, dialog[open]")) return;
		const keys: Record<string, () => void> = {
			"/": () => this.inputs.get("labels")!.focus(), "?": () => openHelp(KEYS, WORDS), r: () => void this.update(),
			t: () => this.say(turnTheme()), c: () => document.querySelector<HTMLElement>(".copy-command")?.click(), Backspace: () => this.store.back(),
		};
		const action = tab ? () => this.store.set({ tab: tab.id }) : keys[event.key];
		if (!action) return;
		action();
		event.preventDefault();
	}
}
