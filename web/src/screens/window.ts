// window: the table of impacting, transient and persistent, by any keys.
import { type App, filterOf, keyTitle, parsePath, type Screen, windowParams } from "../app";
import type { Question } from "../ask/source";
import { COLUMN, COLUMNS } from "../base/columns";
import { fill, h, select } from "../base/dom";
import { type Filter, KEYS, opposite, type State } from "../base/state";
import { TablePart } from "../parts/table";

const PRESETS: [string, string][] = [
	["impact,stack", "Impact, stack"], ["impact,function", "Impact, function"], ["function", "Function"],
	["stack", "Stack"], ["impact,size,stack", "Impact, size, stack"], ["module,function", "Module, function"],
	["thread,impact,stack", "Thread, impact, stack"], ["process,impact,stack", "Process, impact, stack"],
	["heap,impact,stack", "Heap, impact, stack"], ["mark,impact,stack", "Phases, impact, stack"],
	["type,stack", "Type, stack"], ["layer", "Layer"],
];

export class WindowScreen implements Screen {
	readonly id = "window";
	readonly title = "Table";
	readonly root: HTMLElement;
	private table: TablePart;
	private keys = h("div", { class: "keys", role: "list", "aria-label": "Grouped by" });
	private tools = h("div", { class: "tools" });
	private columns: HTMLElement;
	private dragged = -1;

	constructor(private app: App) {
		this.table = new TablePart(app, () => this.showTools());
		this.columns = this.columnMenu();
		this.root = h("div", { class: "screen" },
			h("div", { class: "bar" }, this.keys, this.tools, this.columns), this.table.root);
		this.showKeys();
		this.showTools();
	}

	update(changed: Set<keyof State>): void {
		if (changed.has("by") || changed.has("tab")) this.showKeys();
		if (changed.has("columns")) this.tickColumns();
		this.table.update(changed);
		this.showTools();
	}

	// The engine keeps lifetimes in their order for any question about medians once there was one.
	ahead(): Question[] {
		return [["window", [...windowParams(this.app.store.state), ["by", "impact"], ["details", "1"]]]];
	}

	csv(): string {
		return this.table.csv();
	}

	// ---- keys ----

	private setKeys(by: string[]): void {
		// Single allocations have nothing below them.
		const ordered = by.includes("lifetime") ? [...by.filter((key) => key !== "lifetime"), "lifetime"] : by;
		this.app.store.set({ by: ordered, open: [], row: "" });
	}

	private showKeys(): void {
		const by = this.app.store.state.by;
		const focused = (document.activeElement as HTMLElement)?.dataset?.key;
		const free = KEYS.filter((key) => !by.includes(key));

		fill(this.keys, h("span", { class: "caption", role: "presentation" }, "Group by"),
			...by.map((key, i) => this.keyChip(key, i)),
			h("span", { role: "listitem" }, select("add a key", [["", "+ key"], ...free.map((key): [string, string] => [key, keyTitle(key)])], "",
				(key) => this.setKeys([...by, key]))),
			h("span", { role: "listitem" }, select("groupings", [["", "Presets"], ...PRESETS], "", (value) => this.setKeys(value.split(",")))));
		if (focused) this.keys.querySelector<HTMLElement>(`[data-key="${focused}"]`)?.focus();
	}

	private keyChip(key: string, at: number): HTMLElement {
		const by = this.app.store.state.by;
		const chip = h("button", {
			type: "button", class: "key", draggable: "true", "data-key": key,
			title: `${keyTitle(key)}: drag, or alt and arrow keys, to move; Delete removes`,
			"aria-label": `${keyTitle(key)}, key ${at + 1} of ${by.length}; alt and arrow keys move it, Delete removes it`,
		}, keyTitle(key), by.length > 1 ? h("span", {
			class: "remove", "aria-hidden": "true", title: "remove", onclick: (event: Event) => {
				event.stopPropagation();
				this.setKeys(by.filter((one) => one !== key));
			},
		}, "×") : null);

		chip.addEventListener("dragstart", (event) => {
			this.dragged = at;
			event.dataTransfer?.setData("text/plain", key);
		});
		chip.addEventListener("dragover", (event) => event.preventDefault());
		chip.addEventListener("drop", (event) => {
			event.preventDefault();
			this.move(this.dragged, at);
		});
		chip.addEventListener("keydown", (event) => {
			const step = event.key === "ArrowLeft" ? -1 : event.key === "ArrowRight" ? 1 : 0;
			if (event.altKey && step) this.move(at, at + step);
			else if (event.key === "Delete" && by.length > 1) this.setKeys(by.filter((one) => one !== key));
			else return;
			event.preventDefault();
			event.stopPropagation();
		});
		return h("span", { role: "listitem" }, chip);
	}

	private move(from: number, to: number): void {
		const by = [...this.app.store.state.by];
		if (from < 0 || to < 0 || to >= by.length || from === to) return;
		by.splice(to, 0, ...by.splice(from, 1));
		this.setKeys(by);
	}

	// ---- columns ----

	private columnMenu(): HTMLElement {
		const state = this.app.store.state;
		return h("details", { class: "menu" }, h("summary", {}, "Columns"),
			h("div", { class: "menu-body", role: "group", "aria-label": "Columns" },
				...COLUMNS.map((column) => h("label", { title: COLUMN[column].hint },
					h("input", {
						type: "checkbox", value: column, checked: state.columns.includes(column),
						onchange: (event: Event) => {
							const on = (event.target as HTMLInputElement).checked;
							const now = this.app.store.state.columns;
							const next = COLUMNS.filter((one) => one === column ? on : now.includes(one));
							this.app.store.set({ columns: next.length > 0 ? next : ["size"] });
						},
					}), COLUMN[column].title)),
				h("hr"),
				this.flag("exact", "Exact bytes"), this.flag("exitFrees", "Exit frees")));
	}

	private flag(key: "exact" | "exitFrees", text: string): HTMLElement {
		return h("label", {}, h("input", {
			type: "checkbox", value: key, checked: this.app.store.state[key],
			onchange: (event: Event) => this.app.store.set({ [key]: (event.target as HTMLInputElement).checked }),
		}), text);
	}

	private tickColumns(): void {
		const state = this.app.store.state;
		for (const box of this.columns.querySelectorAll("input"))
			box.checked = box.value === "exact" ? state.exact : box.value === "exitFrees" ? state.exitFrees : state.columns.includes(box.value);
	}

	// ---- what can be done with the selected row ----

	private showTools(): void {
		const path = parsePath(this.app.store.state.row);
		const filters = path.map(filterOf).filter((filter): filter is Filter => filter !== null);
		const out = this.outFilter();
		const node = this.table.selected;
		const stack = node?.row.keys.stack ?? node?.row.keys.lifetime?.stack;
		const button = (text: string, title: string, click: () => void, disabled = false) =>
			h("button", { type: "button", onclick: click, title, disabled }, text);

		fill(this.tools, path.length === 0 ? null : h("div", { class: "tools-row", role: "group", "aria-label": "Selected row" },
			button("Filter to", "only what is in this row (f)", () => this.filterTo(filters), filters.length === 0),
			button("Filter out", out ? "everything but what this row is about (x)" : "not possible for rows of this kind", () => this.filterOut(), !out),
			button("Stack", "the frames of this row (s)", () => this.openStack(), !stack),
			button("Clear", "select nothing (Escape)", () => this.app.store.set({ row: "" }, true))));
	}

	private filterTo(filters: Filter[]): void {
		const old = this.app.store.state.filters;
		const fresh = filters.filter(([word, value]) => !old.some((one) => one[0] === word && one[1] === value));
		this.app.store.set({ filters: [...old, ...fresh], row: "" });
	}

	// Of a row inside others, what tells it from its neighbours is left out.
	private outFilter(): Filter[] | null {
		const path = parsePath(this.app.store.state.row);
		const filter = path.length > 0 ? filterOf(path[path.length - 1]) : null;
		return filter && opposite(filter);
	}

	private filterOut(): void {
		const out = this.outFilter();
		if (out) this.filterTo(out);
	}

	private openStack(): void {
		const node = this.table.selected;
		const keys = node?.row.keys;
		if (!node || !(keys?.stack ?? keys?.lifetime)) return;
		this.app.showStack({ stack: keys!.stack ?? keys!.lifetime!.stack, user_frame: node.row.user_frame }, node.name);
	}

	key(event: KeyboardEvent): boolean {
		const path = parsePath(this.app.store.state.row);
		switch (event.key) {
		case "f": this.filterTo(path.map(filterOf).filter((filter): filter is Filter => filter !== null)); return true;
		case "x": this.filterOut(); return true;
		case "s": this.openStack(); return true;
		case "e": this.app.store.set({ exact: !this.app.store.state.exact }); return true;
		default: return false;
		}
	}
}
