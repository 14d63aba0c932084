// shell: what stands around the screens: header, timeline, tabs, what is said on top, keys for all.
import type { App, Screen } from "./app";
import type { Source } from "./ask/source";
import type { Info, Mark, StackRow, View } from "./ask/types";
import { fill, h } from "./base/dom";
import { FORM, type State, Store } from "./base/state";
import { count, duration, plural, programOf } from "./base/text";
import { onTheme } from "./base/theme";
import { commandLine } from "./base/words";
import { copyButton, exportsMenu, showTab, tabAt, tabsOf, themeButton, turnTheme } from "./parts/frame";
import { openHelp } from "./parts/help";
import { SearchPart } from "./parts/search";
import { StackPart } from "./parts/stack";
import { SummaryPart } from "./parts/summary";
import { TimelinePart } from "./parts/timeline";
import { screensOf } from "./screens";

// What questions are called where one waits for them.
const WORK: Record<string, string> = {
	"timeline heap": "the heap's curve", "timeline vm": "the curve of virtual memory", "timeline rss": "the curve of resident memory",
	"timeline cumulative": "what was allocated so far", window: "the table", tree: "the flame graph", histogram: "sizes", sizelife: "lifetimes",
	map: "the address space", active: "what lives there", reconcile: "resident memory", info: "events", "diff/timeline": "the other curve",
	diff: "differences", findings: "findings",
};

export class Shell implements App {
	readonly store: Store;
	dragging = false;
	private screens: Screen[];
	private timeline: TimelinePart;
	private summary: SummaryPart;
	private searchPart: SearchPart;
	private stack: StackPart;
	private tabs: HTMLElement;
	private panel = h("div", { class: "panel", role: "tabpanel", id: "panel", tabindex: "-1" });
	private facts = h("span", { class: "facts" });
	private banner = h("div", { class: "banners" });
	private live = h("div", { class: "spoken", role: "status", "aria-live": "polite" });
	private working = h("span", { class: "working", "aria-hidden": "true" });
	private spoken = 0;

	constructor(private root: HTMLElement, readonly source: Source, readonly view: View,
		readonly marks: Mark[], prefix: string) {
		this.store = new Store(window.location.hash.slice(1), prefix, FORM);
		if (!view.layers.includes(this.store.state.layer) && view.layers.length > 0)
			this.store.set({ layer: view.layers[0] }, true);
		this.stack = new StackPart(this);
		this.timeline = new TimelinePart(this);
		this.summary = new SummaryPart(this, () => this.timeline.zoomToWindow());
		this.searchPart = new SearchPart(this);
		this.screens = screensOf(this);
		this.tabs = tabsOf(this.screens, 0, (tab) => this.store.set({ tab }));
	}

	open(): void {
		document.title = `${this.view.file} – tidemark`;
		fill(this.root,
			h("a", { class: "skip", href: "#panel", onclick: (event: Event) => {
				event.preventDefault();
				this.panel.focus();
			} }, "Skip to the table"),
			this.header(), this.banner,
			h("main", {}, this.timeline.root, this.summary.root, this.searchPart.chips,
				h("div", { class: "tab-row" }, this.tabs, this.working, exportsMenu(this.view.file.replace(/\.tide$/, ""), () => this.current, () => [this.timeline.picture()])), h("div", { class: "work" }, this.panel, this.stack.root)),
			this.live);
		this.showFacts();
		this.showBanners();
		void this.tellInfo();
		this.searchPart.showChips();
		this.tabs.addEventListener("keydown", (event) => this.tabKey(event));
		document.addEventListener("keydown", (event) => this.key(event));
		this.store.listen((changed) => this.update(changed));
		window.addEventListener("resize", () => this.current.resize?.());
		onTheme(() => {
			this.timeline.redraw();
			this.current.update(new Set(["tab"]));
		});
		window.setInterval(() => this.showWork(), 500);
		this.update(new Set(Object.keys(this.store.state) as (keyof State)[]));
	}

	// What is being counted, for how long, and how long it may still take.
	private showWork(): void {
		const seconds = (ms: number) => `${Math.max(1, Math.round(ms / 1000))} s`;
		const text = (this.source.working?.() ?? []).slice(0, 3).map((work) => {
			const { kind, ms, usual, told } = work;
			const name = WORK[kind] ?? kind;
			const far = told?.doing && told.done !== null ? `, ${told.doing} ${Math.round(100 * told.done)} %` : "";
			const left = told?.waits ? ", waiting for the others"
				: usual !== null && usual > ms ? `, about ${seconds(usual - ms)} left`
				: told?.left_ns ? `, about ${seconds(told.left_ns / 1e6)} left`
				: usual !== null ? ", longer than the last time" : "";
			return `${name} ${seconds(ms)}${far}${left}`;
		}).join(" · ");
		const said = text ? `counting: ${text}` : "";
		if (this.working.textContent !== said) this.working.textContent = said;
	}

	private get current(): Screen {
		return this.screens.find((screen) => screen.id === this.store.state.tab) ?? this.screens[1];
	}

	private update(changed: Set<keyof State>): void {
		const current = this.current;

		if (changed.has("tab") || this.panel.firstChild !== current.root) {
			if (this.panel.firstChild) this.source.leaveTab();
			this.panel.replaceChildren(current.root);
			this.panel.setAttribute("aria-labelledby", `tab-${current.id}`);
			showTab(this.tabs, this.screens.indexOf(current));
			changed = new Set([...changed, "tab"]);
		}
		if (changed.has("layer")) this.layer.update();
		this.timeline.update(changed);
		this.summary.update(changed);
		this.searchPart.update(changed);
		current.update(changed);
		this.lookAhead();
	}

	// What other tabs would ask of the whole trace, quick answers first. A window that one draws has
	// questions enough of its own.
	private lookAhead(): void {
		const { from, to, filters, exitFrees } = this.store.state;
		const whole = !from && !to && filters.length === 0 && !exitFrees;

		this.source.expect?.(whole ? this.screens.flatMap((screen) => screen.ahead?.() ?? []).reverse() : []);
	}

	// ---- what App promises ----

	say(text: string): void {
		clearTimeout(this.spoken);
		this.spoken = window.setTimeout(() => { this.live.textContent = text; }, 300);
	}

	highlight(intervals: [number, number][]): void {
		this.timeline.highlight(intervals);
	}

	showStack(row: StackRow, title: string): void {
		this.stack.show(row, title);
	}

	// The server's trace is not there any more.
	gone(why: string): void {
		if (this.banner.querySelector(".gone")) return;
		this.banner.prepend(h("div", { class: "banner gone", role: "alert" },
			h("b", {}, "The trace is gone. "), `${why}. What is on the screen stays; nothing more can be asked.`));
	}

	// ---- header ----

	private layer = this.layerChoice();

	private layerChoice(): { root: HTMLElement; update(): void } {
		const buttons = [["heap", "Heap"], ["vm", "Virtual memory"]].map(([key, text]) => h("button", {
			type: "button", "data-key": key, onclick: () => this.store.set({ layer: key, row: "", open: [] }),
		}, text));
		const update = () => buttons.forEach((button) => {
			button.setAttribute("aria-pressed", String(button.dataset.key === this.store.state.layer));
			button.disabled = !this.view.layers.includes(button.dataset.key!);
		});
		return { root: h("div", { class: "choice", role: "group", "aria-label": "Layer" }, ...buttons), update };
	}

	// To count its events a long trace is gone through: the page is there before.
	private async tellInfo(): Promise<void> {
		try {
			const info = await this.source.get<Info>("info");
			this.showFacts(info);
			this.showBanners(info);
		} catch { /* the trace is gone, which is said elsewhere */ }
	}

	private showFacts(info?: Info): void {
		const { view } = this;
		const processes = view.processes.length + view.processes_left_out;
		this.facts.title = info?.trace.command ?? "";
		this.facts.textContent = [
			programOf(view.processes), duration(view.duration_ns), info ? plural(info.events.total, "event") : "counting events …",
			plural(processes, "process", "processes"), info ? info.events.lost > 0 ? `${count(info.events.lost)} lost` : "nothing lost" : "",
		].filter(Boolean).join(" · ");
	}

	private header(): HTMLElement {
		return h("header", { class: "top" },
			h("div", { class: "title" }, h("span", { class: "mark", "aria-hidden": "true" }, "≋"),
				h("h1", {}, this.view.file), this.facts),
			this.layer.root, this.searchPart.root, copyButton(() => this.commandText(), (text) => this.say(text)),
			themeButton(),
			h("button", { type: "button", class: "icon", title: "keys and help (?)", "aria-label": "help", onclick: openHelp }, "?"));
	}

	// ---- copies ----

	commandText(): string {
		return commandLine(this.store.state, this.view.path ?? this.view.file, this.view.diff_path ?? this.view.diff, this.current.moment?.());
	}

	// ---- what stands on top ----

	private showBanners(info?: Info): void {
		const { view } = this;
		const banner = (kind: string, title: string, text: string) =>
			h("div", { class: `banner ${kind}`, role: "note" }, h("b", {}, title), " ", text);

		for (const shown of this.banner.querySelectorAll(".banner:not(.gone)")) shown.remove();
		if (!view.complete)
			this.banner.append(banner("cut", view.warnings.some(isGrowing) ? "This trace is still being written." : "This trace is cut.", `${sentence(info?.trace.problem ?? "the recording did not end well")} ` +
				"Figures are of what is there; what came after is not in them."));
		if (info && info.events.lost > 0)
			this.banner.append(banner("cut", "Events are missing.", `${plural(info.events.lost, "event")} were lost while recording.`));
		// What the server answers is scaled, and a warning says so.
		if (view.sampled && view.single_file)
			this.banner.append(banner("sampled", view.warnings.some(isAtTimes) ? "This recording was sampled at times." : "This recording is a sample.",
				"Figures are those of the blocks that are in it, not scaled."));
		if (view.single_file) {
			const sentences = [...view.coarse, ...(view.scrubbed ? ["paths and arguments are hidden"] : [])];
			this.banner.append(banner("coarse", "A page with its data inside.",
				sentences.length > 0 ? `Coarser than the trace: ${sentences.join("; ")}.` : "It works without the trace and without a network."));
		}
		// That it is cut was said above.
		for (const warning of view.warnings)
			if (view.complete || !(warning.startsWith("the trace is not whole") || isGrowing(warning)))
				if (!view.single_file || !isAtTimes(warning)) this.banner.append(banner("warned", "Note.", sentence(warning)));
	}

	// ---- keys ----

	private tabKey(event: KeyboardEvent): void {
		const screen = tabAt(this.screens, this.current, event);
		if (screen) this.store.set({ tab: screen.id });
		if (screen) document.getElementById(`tab-${screen.id}`)?.focus();
	}

	private key(event: KeyboardEvent): void {
		const target = event.target as HTMLElement;
		if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
		if (target.closest("input:not([type=checkbox]):not([type=range]), select, textarea, dialog[open]")) return;
		if (this.current.key?.(event) || this.sharedKey(event.key)) event.preventDefault();
	}

	private sharedKey(key: string): boolean {
		if (/^[0-9]$/.test(key) && Number(key) < this.screens.length) {
			this.store.set({ tab: this.screens[Number(key)].id });
			return true;
		}
		switch (key) {
		case "/": this.searchPart.focus(); return true;
		case "?": openHelp(); return true;
		case "z": this.timeline.zoomToWindow(); return true;
		case "a": this.store.set({ from: "", to: "", zoom: "", otherFrom: "", otherTo: "" }); return true;
		case "t": this.say(turnTheme()); return true;
		case "l": this.store.set({ layer: this.store.state.layer === "vm" ? "heap" : "vm", row: "", open: [] }); return true;
		case "c": document.querySelector<HTMLElement>(".copy-command")?.click(); return true;
		case "n": void this.nextPeak(); return true;
		case "Backspace": this.store.back(); return true;
		case "Escape": this.store.set({ row: "" }, true); return true;
		default: return false;
		}
	}

	// The next peak after where the window begins: a short window around it.
	private async nextPeak(): Promise<void> {
		const peaks = this.screens.find((screen) => screen.id === "peaks");
		await (peaks as unknown as { next?: () => Promise<void> } | undefined)?.next?.();
	}
}

function sentence(text: string): string {
	return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
}

// What the trace's warnings say of one that was recorded with --max-overhead and turned,
function isAtTimes(warning: string): boolean {
	return warning.startsWith("the recording was sampled at times");
}

// and of one that is neither whole nor cut.
function isGrowing(warning: string): boolean {
	return warning.startsWith("the trace is still being written");
}
