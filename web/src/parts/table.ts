// table: the window's table: rows nested by the keys, figures in columns, a header to sort by. A tree
// that the arrow keys walk through.
import { type App, formatPath, frameName, framePlace, IMPACTS, messageOf, parsePath, stackLine, stackName, stackText } from "../app";
import { isSuperseded } from "../ask/source";
import type { Figures, WindowAnswer, WindowRow } from "../ask/types";
import { COLUMN, type Details, detailsFor, isLater } from "../base/columns";
import { fill, h } from "../base/dom";
import type { State } from "../base/state";
import { bytes, count, csvLine, duration, signedBytes } from "../base/text";
import { flatten, loadLevel, type Node, parentOf } from "./rows";

const STEP = 200, SCREENFUL = 50; // rows below each row

export class TablePart {
	readonly root: HTMLElement;
	private head = h("tr");
	private body = h("tbody");
	private foot = h("tfoot");
	private table: HTMLElement;
	private nodes: Node[] = [];
	private answer: WindowAnswer | null = null;
	private counting = false; // peaks and the like are not there yet
	private limit = STEP;
	private generation = 0;
	private focused = "";

	// chosen: told when a row is selected.
	constructor(private app: App, private chosen: () => void) {
		this.table = h("table", { class: "grid tree", role: "treegrid", "aria-label": "Window" },
			h("thead", {}, this.head), this.body, this.foot);
		this.root = h("div", { class: "scroll" }, this.table);
		this.body.addEventListener("keydown", (event) => this.key(event));
		this.body.addEventListener("click", (event) => this.click(event));
		this.body.addEventListener("dblclick", (event) => {
			const node = this.nodeAt(event.target);
			if (node) this.toggle(node);
		});
		this.showHead();
	}

	update(changed: Set<keyof State>): void {
		const has = (...keys: (keyof State)[]) => keys.some((key) => changed.has(key));

		if (has("columns", "sort", "rising")) this.showHead();
		if (has("by", "filters", "layer", "exitFrees")) this.limit = STEP;
		if (has("from", "to", "filters", "layer", "by", "sort", "rising", "open", "exitFrees", "tab")) void this.ask();
		else if (has("columns", "exact")) this.show();
		else if (has("row")) this.mark();
	}

	get selected(): Node | null {
		return flatten(this.nodes).find((node) => node.id === this.app.store.state.row) ?? null;
	}

	private async ask(): Promise<void> {
		const generation = ++this.generation;
		const late = setTimeout(() => {
			this.table.setAttribute("aria-busy", "true");
			if (!this.body.firstChild) this.body.replaceChildren(this.message("loading", "Counting …"));
		}, 150);

		// Nobody waits for what takes long: what one sees first, and sums; then the rest, and what is no sum.
		const { columns, sort } = this.app.store.state;
		const wanted = detailsFor([...columns, sort]);
		this.app.source.drop("rows-");
		try {
			const first = this.root.scrollTop > 0 ? this.limit : Math.min(this.limit, SCREENFUL);
			const all = await this.load(generation, "0", first, wanted !== "0");
			clearTimeout(late);
			if (this.app.dragging || generation !== this.generation || (all && wanted === "0")) return;
			this.table.removeAttribute("aria-busy");
			await this.load(generation, wanted, this.limit, false);
		} catch (error) {
			if (generation !== this.generation || isSuperseded(error)) return;
			this.nodes = [];
			this.answer = null;
			this.body.replaceChildren(this.message("error", messageOf(error)));
			this.foot.replaceChildren();
		} finally {
			clearTimeout(late);
			if (generation === this.generation) this.table.removeAttribute("aria-busy");
		}
	}

	// True: these are all rows that there are.
	private async load(generation: number, details: Details, rows: number, counting: boolean): Promise<boolean> {
		const level = await loadLevel(this.app, [], rows, details);
		if (generation !== this.generation) return false;
		this.nodes = level.nodes;
		this.answer = level.answer;
		this.counting = counting;
		this.show();
		return level.leftOut === 0 && flatten(level.nodes).every((node) => node.leftOut === 0);
	}

	private message(kind: string, text: string): HTMLElement {
		return h("tr", {}, h("td", { class: kind, colspan: this.app.store.state.columns.length + 1 }, text));
	}

	private showHead(): void {
		const { columns, sort, rising } = this.app.store.state;
		const header = (key: string, title: string, hint: string) => h("th", {
			scope: "col", class: key === "name" ? "text" : "number", "data-key": key,
			"aria-sort": sort === key ? rising ? "ascending" : "descending" : "none",
		}, h("button", { type: "button", title: hint, onclick: () => this.sortBy(key) }, title));

		fill(this.head, header("name", "Name", "sort by name"), ...columns.map((column) => header(column, COLUMN[column].title, COLUMN[column].hint)));
	}

	private sortBy(key: string): void {
		const { sort, rising } = this.app.store.state;
		this.app.store.set(sort === key ? { rising: !rising } : { sort: key, rising: false });
	}

	private show(): void {
		const flat = flatten(this.nodes);
		const scroll = this.root.scrollTop;
		const focused = this.body.contains(document.activeElement) ? document.activeElement!.closest<HTMLElement>("tr[data-id]")?.dataset.id : undefined;

		if (focused !== undefined) this.focused = focused;
		if (flat.length === 0)
			this.body.replaceChildren(this.message("empty", "Nothing lived in this window" +
				(this.app.store.state.filters.length > 0 ? " that passes the filters." : ".")));
		else
			this.body.replaceChildren(...this.lines(this.nodes));
		fill(this.foot);
		if (this.answer?.total && flat.length > 0)
			this.foot.append(h("tr", {}, h("th", { scope: "row", class: "text" }, "Total"), ...this.cells(this.answer.total, null)));
		this.root.scrollTop = scroll;
		this.mark();
	}

	private lines(nodes: Node[]): HTMLElement[] {
		const most = Math.max(1, ...nodes.map((node) => Math.abs(this.sortValue(node.row))));
		const lines: HTMLElement[] = [];

		nodes.forEach((node, i) => {
			lines.push(this.line(node, i + 1, nodes.length, most));
			if (!node.open) return;
			lines.push(...this.lines(node.children));
			if (node.children.length === 0) lines.push(...this.details(node));
			if (node.leftOut > 0) lines.push(this.more(node.leftOut, node.depth + 1));
		});
		if (nodes === this.nodes && (this.answer?.rows_left_out ?? 0) > 0) lines.push(this.more(this.answer!.rows_left_out, 0));
		return lines;
	}

	private sortValue(row: Figures): number {
		return Number(row[COLUMN[this.app.store.state.sort]?.value ?? "size"] ?? 0);
	}

	private line(node: Node, at: number, of: number, most: number): HTMLElement {
		const impact = node.key === "impact" ? IMPACTS[String(node.row.keys.impact)] : null;
		const tr = h("tr", {
			tabindex: "-1", "data-id": node.id, "aria-level": node.depth + 1, "aria-posinset": at, "aria-setsize": of,
			"aria-expanded": node.opens ? String(node.open) : null, "aria-selected": "false",
			class: impact ? `impact ${node.row.keys.impact}` : "",
		});
		const name = h("th", { scope: "row", class: "text name" },
			h("span", { class: "twist", "aria-hidden": "true" }, node.opens ? node.open ? "▾" : "▸" : ""),
			impact ? h("span", { class: "glyph", "aria-hidden": "true" }, impact.glyph) : null,
			h("span", { class: node.key === "impact" || node.key === "size" ? "label" : "label code", title: node.name }, node.name),
			h("span", { class: "place", title: node.place }, node.place),
			node.key === "stack" ? h("span", { class: "callers" }, stackLine({ stack: node.row.keys.stack ?? [], user_frame: node.row.user_frame })) : null);
		name.style.setProperty("--depth", String(node.depth));
		tr.append(name, ...this.cells(node.row, most));
		return tr;
	}

	private cells(row: Figures, most: number | null): HTMLElement[] {
		const { columns, sort } = this.app.store.state;

		return columns.map((column) => {
			const value = row[COLUMN[column].value];
			const td = h("td", { class: `number ${column}`, "data-value": value ?? "", title: this.exactly(column, value) },
				h("span", {}, value === null && this.counting && isLater(column) ? "…" : this.format(column, value)));
			if (column === "impacting" && value) td.classList.add(value > 0 ? "grew" : "shrank");
			if (most !== null && column === sort && value) {
				td.classList.add("weighed");
				td.style.setProperty("--share", String(Math.min(1, Math.abs(value) / most)));
			}
			return td;
		});
	}

	private exactly(column: string, value: number | null): string {
		if (value === null) return !isLater(column) ? "" : this.counting ? "is being counted" : COLUMN[column].later === "1" ? "no call ended one here"
			: "too many allocations to look at each: narrow the window or the filters";
		return count(value) + { bytes: " bytes", count: "", time: " ns" }[COLUMN[column].unit];
	}

	private format(column: string, value: number | null): string {
		if (value === null) return "–";
		if (COLUMN[column].unit === "count") return count(value);
		if (COLUMN[column].unit === "time") return duration(value);
		if (this.app.store.state.exact) return (column === "impacting" && value > 0 ? "+" : "") + count(value);
		return column === "impacting" ? signedBytes(value) : bytes(value);
	}

	// The frames of an open stack, from the function that allocated to the root.
	private details(node: Node): HTMLElement[] {
		const columns = this.app.store.state.columns.length + 1;
		const frames = node.row.keys.stack ?? node.row.keys.lifetime?.stack ?? [];

		return frames.map((frame, i) => {
			const cell = h("td", { class: "frame text", colspan: columns },
				h("span", { class: "code" }, frameName(frame)), h("span", { class: "place" }, framePlace(frame)),
				frame.inlined ? h("span", { class: "inlined" }, "inlined") : null);
			cell.style.setProperty("--depth", String(node.depth + 1));
			if (i < (node.row.user_frame ?? 0)) cell.classList.add("wrapper");
			return h("tr", { class: "frame-row", "data-stack-of": node.id }, cell);
		});
	}

	private more(leftOut: number, depth: number): HTMLElement {
		const cell = h("td", { colspan: this.app.store.state.columns.length + 1, class: "text more" },
			h("button", {
				type: "button", class: "quiet", onclick: () => {
					this.limit = Math.min(10_000, this.limit * 5);
					void this.ask();
				},
			}, `${count(leftOut)} more …`));
		cell.style.setProperty("--depth", String(depth));
		return h("tr", { class: "more-row" }, cell);
	}

	// ---- selection ----

	private get lineElements(): HTMLTableRowElement[] {
		return [...this.body.querySelectorAll<HTMLTableRowElement>("tr[data-id]")];
	}

	private nodeAt(target: EventTarget | null): Node | null {
		const id = (target as HTMLElement).closest<HTMLElement>("tr[data-id]")?.dataset.id;
		return id === undefined ? null : flatten(this.nodes).find((node) => node.id === id) ?? null;
	}

	private mark(): void {
		const chosen = this.app.store.state.row;
		const lines = this.lineElements;
		const hadFocus = this.focused && !document.activeElement?.closest("tr") ? this.focused : null;
		let stop = lines.find((line) => line.dataset.id === chosen) ?? lines.find((line) => line.dataset.id === this.focused);

		for (const line of lines) {
			line.setAttribute("aria-selected", String(line.dataset.id === chosen));
			line.tabIndex = -1;
		}
		stop ??= lines[0];
		if (stop) stop.tabIndex = 0;
		// The row that had the focus was drawn anew.
		if (hadFocus && document.activeElement === document.body)
			lines.find((line) => line.dataset.id === hadFocus)?.focus();
	}

	private select(node: Node): void {
		this.app.store.set({ row: node.id }, true);
		this.chosen();
	}

	private focus(line: HTMLTableRowElement | undefined): void {
		if (!line) return;
		for (const other of this.lineElements) other.tabIndex = -1;
		line.tabIndex = 0;
		line.focus();
		this.focused = line.dataset.id!;
		line.scrollIntoView({ block: "nearest" });
	}

	toggle(node: Node): void {
		if (!node.opens) return;
		const open = this.app.store.state.open;
		const id = formatPath(node.path);
		this.app.store.set({ open: open.includes(id) ? open.filter((one) => one !== id) : [...open, id] }, true);
	}

	private click(event: MouseEvent): void {
		const node = this.nodeAt(event.target);
		if (!node) return;
		this.focused = node.id;
		if ((event.target as HTMLElement).classList.contains("twist")) this.toggle(node);
		else this.select(node);
		this.focus(this.lineElements.find((line) => line.dataset.id === node.id));
	}

	private key(event: KeyboardEvent): void {
		const node = this.nodeAt(event.target);
		if (!node || event.ctrlKey || event.metaKey || event.altKey) return;
		const lines = this.lineElements;
		const at = lines.findIndex((line) => line.dataset.id === node.id);
		const go = (to: number) => this.focus(lines[Math.max(0, Math.min(lines.length - 1, to))]);

		switch (event.key) {
		case "ArrowDown": go(at + 1); break;
		case "ArrowUp": go(at - 1); break;
		case "PageDown": go(at + 12); break;
		case "PageUp": go(at - 12); break;
		case "Home": go(0); break;
		case "End": go(lines.length - 1); break;
		case "ArrowRight":
			if (node.opens && !node.open) this.toggle(node);
			else go(at + 1);
			break;
		case "ArrowLeft":
			if (node.open) this.toggle(node);
			else go(lines.findIndex((line) => line.dataset.id === parentOf(node.id)));
			break;
		case "Enter": case " ": this.select(node); break;
		default: return;
		}
		event.preventDefault();
		event.stopPropagation();
	}

	// ---- for a file ----

	csv(): string {
		const { by, columns } = this.app.store.state;
		const more = this.telling().filter(([key]) => by.includes(key));
		const lines = [csvLine([...by, ...columns, ...more.map(([, title]) => title)])];
		const leftOut = flatten(this.nodes).reduce((sum, node) => sum + node.leftOut, this.answer?.rows_left_out ?? 0);

		// A row with rows below stands for itself where it is shut, else its rows do.
		for (const node of flatten(this.nodes)) {
			if (node.open && node.children.length > 0) continue;
			const keys = by.map((_, i) => i < node.path.length ? this.label(node, i) : "");
			lines.push(csvLine([...keys, ...columns.map((column) => node.row[COLUMN[column].value]), ...more.map(([, , value]) => value(node.row))]));
		}
		if (leftOut > 0) lines.push(csvLine([`${count(leftOut)} more rows are not in this table`]));
		return lines.join("");
	}

	// What tells rows of one name apart, by the key that it belongs to.
	private telling(): [key: string, title: string, value: (row: WindowRow) => string | number | null][] {
		const stack = (row: WindowRow) => row.keys.stack ?? row.keys.lifetime?.stack;
		return [
			["process", "process_id", (row) => row.process_id ?? null],
			["module", "module_path", (row) => row.keys.module ?? null],
			["stack", "stack_id", (row) => row.stack_id ?? null],
			["stack", "place", (row) => stack(row) ? stackName({ stack: stack(row)!, user_frame: row.user_frame }).place : ""],
			["stack", "frames", (row) => stack(row) ? stackText({ stack: stack(row)! }) : ""],
			["lifetime", "begin_ns", (row) => row.keys.lifetime?.begin_ns ?? null],
			["lifetime", "end_ns", (row) => row.keys.lifetime?.end_ns ?? null],
			["lifetime", "allocated_by", (row) => row.keys.lifetime?.stack ? stackText({ stack: row.keys.lifetime.stack }) : ""],
		];
	}

	private label(node: Node, depth: number): string {
		const id = formatPath(node.path.slice(0, depth + 1));
		const one = flatten(this.nodes).find((other) => other.id === id);
		return one ? one.key === "size" ? String(one.row.keys.size) : one.name : parsePath(id)[depth][1];
	}
}
