// grid: a table of rows with figures, sorted by any header, walked with the arrow keys. For lists
// that come whole; the table of the window has its own.
import { freshId, h } from "../base/dom";
import { csvLine } from "../base/text";

export interface Column<Row> {
	key: string;
	title: string;
	hint?: string;
	text?: boolean; // left aligned, and the first press sorts upwards
	value(row: Row): number | string | null;
	show?(row: Row): string | Node;
	exact?(row: Row): string; // on pointing
	more?: [title: string, value: (row: Row) => string | number | null][]; // in a file: what tells equal rows apart
}

export interface GridOptions<Row> {
	name: string;
	columns: Column<Row>[];
	empty: string;
	sort?: string;
	chosen?(row: Row): void; // Enter, or a click
	id?(row: Row): string;
}

export class Grid<Row> {
	readonly root: HTMLElement;
	private rows: Row[] = [];
	private sort: string;
	private rising = false;
	private body = h("tbody");
	private head: HTMLElement;
	private table: HTMLElement;
	private late = 0;

	constructor(private options: GridOptions<Row>) {
		this.sort = options.sort ?? "";
		this.head = h("tr", {}, ...options.columns.map((column) => this.header(column)));
		this.table = h("table", { class: "grid", role: "grid", "aria-label": options.name, id: freshId("grid") },
			h("thead", {}, this.head), this.body);
		this.root = h("div", { class: "scroll" }, this.table);
		this.body.addEventListener("keydown", (event) => this.key(event));
	}

	// The answer is under way: what is there pales, if it takes longer than one would notice.
	wait(): void {
		clearTimeout(this.late);
		this.late = window.setTimeout(() => {
			this.table.setAttribute("aria-busy", "true");
			if (!this.body.firstChild)
				this.body.replaceChildren(h("tr", {}, h("td", { class: "loading", colspan: this.options.columns.length }, "Counting …")));
		}, 150);
	}

	set(rows: Row[], empty?: string): void {
		clearTimeout(this.late);
		this.table.removeAttribute("aria-busy");
		this.rows = rows;
		this.render(empty);
	}

	get shown(): Row[] {
		const column = this.options.columns.find((one) => one.key === this.sort);
		if (!column) return this.rows;
		const sign = this.rising ? 1 : -1;
		return [...this.rows].sort((a, b) => sign * compare(column.value(a), column.value(b)));
	}

	csv(): string {
		const { columns } = this.options;
		const more = columns.flatMap((column) => column.more ?? []);
		return csvLine([...columns.map((column) => column.title || column.key), ...more.map(([title]) => title)]) +
			this.shown.map((row) => csvLine([...columns.map((column) => column.value(row)), ...more.map(([, value]) => value(row))])).join("");
	}

	select(index: number, focus = false): void {
		[...this.body.rows].forEach((tr, i) => {
			tr.setAttribute("aria-selected", String(i === index));
			tr.tabIndex = i === Math.max(0, index) ? 0 : -1;
		});
		const row = this.body.rows[index];
		row?.scrollIntoView({ block: "nearest" });
		if (focus) row?.focus();
	}

	private header(column: Column<Row>): HTMLElement {
		const button = h("button", { type: "button", title: column.hint ?? `sort by ${column.title}` }, column.title);
		const th = h("th", { scope: "col", class: column.text ? "text" : "number", "data-key": column.key }, button);
		button.addEventListener("click", () => {
			this.rising = this.sort === column.key ? !this.rising : column.text === true;
			this.sort = column.key;
			this.render();
		});
		return th;
	}

	private render(empty = this.options.empty): void {
		for (const th of this.head.children) {
			const sorted = (th as HTMLElement).dataset.key === this.sort;
			th.setAttribute("aria-sort", sorted ? this.rising ? "ascending" : "descending" : "none");
		}
		const rows = this.shown;
		const focused = [...this.body.rows].findIndex((tr) => tr.contains(document.activeElement));
		if (rows.length === 0) {
			this.body.replaceChildren(h("tr", {}, h("td", { class: "empty", colspan: this.options.columns.length }, empty)));
			return;
		}
		this.body.replaceChildren(...rows.map((row, i) => {
			const tr = h("tr", { tabindex: i === 0 ? "0" : "-1", "aria-selected": "false" },
				...this.options.columns.map((column) => {
					const value = column.value(row);
					const shown = column.show?.(row) ?? (value === null ? "–" : String(value));
					return h("td", {
						class: column.text ? "text" : "number", "data-value": value === null ? "" : value,
						title: column.exact?.(row),
					}, shown);
				}));
			tr.addEventListener("click", () => {
				this.select(i, true);
				this.options.chosen?.(row);
			});
			return tr;
		}));
		if (focused >= 0) this.body.rows[Math.min(focused, rows.length - 1)].focus();
	}

	private key(event: KeyboardEvent): void {
		const last = this.body.rows.length - 1;
		const at = [...this.body.rows].indexOf((event.target as HTMLElement).closest("tr")!);
		const to = ({ ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: last, PageDown: at + 10, PageUp: at - 10 } as
			Record<string, number>)[event.key];

		if (to !== undefined && this.rows.length > 0) {
			this.select(Math.max(0, Math.min(last, to)), true);
			event.preventDefault();
			event.stopPropagation();
		} else if ((event.key === "Enter" || event.key === " ") && event.target instanceof HTMLTableRowElement && this.rows.length > 0) {
			this.select(at);
			this.options.chosen?.(this.shown[at]);
			event.preventDefault();
		}
	}
}

function compare(a: number | string | null, b: number | string | null): number {
	if (a === null || b === null) return a === b ? 0 : a === null ? -1 : 1;
	if (typeof a === "string" || typeof b === "string") return String(a).localeCompare(String(b));
	return a - b;
}
