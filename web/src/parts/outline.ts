// outline: a flame graph as a tree of text, which can be read aloud and walked with the arrow keys.
import { h } from "../base/dom";
import type { Flame } from "./flame_layout";

interface Line {
	flame: Flame;
	level: number;
	at: number;
	of: number;
}

const OPEN_SHARE = 0.02; // what is less is shut at first
const LINES_MAX = 2000;

export class Outline {
	readonly root: HTMLElement;
	private body = h("tbody");
	private toggled = new Map<string, boolean>();
	private roots: Flame[] = [];
	private whole = 1;
	private figures: (flame: Flame) => { own: string; self: string; share: string; place: string } = () =>
		({ own: "", self: "", share: "", place: "" });
	private focused = "";

	constructor(private chosen: (flame: Flame) => void) {
		this.root = h("table", { class: "grid tree outline", role: "treegrid", "aria-label": "Flame graph as text" },
			h("thead", {}, h("tr", {}, ...["Function", "Value", "Share", "Itself"].map((title, i) =>
				h("th", { scope: "col", class: i ? "number" : "text" }, h("span", { class: "head" }, title))))), this.body);
		this.body.addEventListener("keydown", (event) => this.key(event));
		this.body.addEventListener("click", (event) => {
			const flame = this.flameAt(event.target);
			if (!flame) return;
			this.focused = flame.path;
			this.toggle(flame);
		});
		this.body.addEventListener("dblclick", (event) => {
			const flame = this.flameAt(event.target);
			if (flame) this.chosen(flame);
		});
	}

	set(roots: Flame[], figures: typeof this.figures, whole: number): void {
		this.roots = roots;
		this.figures = figures;
		this.whole = whole;
		this.render();
	}

	private isOpen(flame: Flame): boolean {
		return flame.children.length > 0 && (this.toggled.get(flame.path) ?? flame.width / this.whole >= OPEN_SHARE);
	}

	private lines(flames: Flame[], level: number, into: Line[]): Line[] {
		flames.forEach((flame, i) => {
			if (into.length >= LINES_MAX) return;
			into.push({ flame, level, at: i + 1, of: flames.length });
			if (this.isOpen(flame)) this.lines(flame.children, level + 1, into);
		});
		return into;
	}

	private render(): void {
		const hadFocus = this.body.contains(document.activeElement);
		const lines = this.lines(this.roots, 1, []);

		if (!lines.some((line) => line.flame.path === this.focused)) this.focused = lines[0]?.flame.path ?? "";
		this.body.replaceChildren(...lines.map(({ flame, level, at, of }) => {
			const figures = this.figures(flame);
			const name = h("th", { scope: "row", class: "text name" },
				h("span", { class: "twist", "aria-hidden": "true" }, flame.children.length ? this.isOpen(flame) ? "▾" : "▸" : ""),
				h("span", { class: "code" }, flame.name), h("span", { class: "place" }, figures.place));
			name.style.setProperty("--depth", String(Math.min(level - 1, 40)));
			return h("tr", {
				tabindex: flame.path === this.focused ? "0" : "-1", "aria-level": level, "aria-posinset": at, "aria-setsize": of,
				"aria-expanded": flame.children.length ? String(this.isOpen(flame)) : null, "data-path": flame.path,
			}, name, h("td", { class: "number" }, figures.own), h("td", { class: "number" }, figures.share),
			h("td", { class: "number" }, figures.self));
		}));
		if (hadFocus) this.focus(this.focused);
	}

	private flameAt(target: EventTarget | null): Flame | null {
		const path = (target as HTMLElement).closest<HTMLElement>("tr[data-path]")?.dataset.path;
		return path === undefined ? null : this.lines(this.roots, 1, []).find((line) => line.flame.path === path)?.flame ?? null;
	}

	private focus(path: string): void {
		const rows = [...this.body.rows];
		const row = rows.find((one) => one.dataset.path === path);
		if (!row) return;
		this.focused = path;
		for (const other of rows) other.tabIndex = -1;
		row.tabIndex = 0;
		row.focus();
	}

	private toggle(flame: Flame): void {
		if (flame.children.length === 0) return;
		this.toggled.set(flame.path, !this.isOpen(flame));
		this.render();
		this.focus(flame.path);
	}

	private key(event: KeyboardEvent): void {
		const flame = this.flameAt(event.target);
		if (!flame) return;
		const rows = [...this.body.rows];
		const at = rows.findIndex((row) => row.dataset.path === flame.path);
		const go = (to: number) => this.focus(rows[Math.max(0, Math.min(rows.length - 1, to))].dataset.path!);

		switch (event.key) {
		case "ArrowDown": go(at + 1); break;
		case "ArrowUp": go(at - 1); break;
		case "Home": go(0); break;
		case "End": go(rows.length - 1); break;
		case "ArrowRight":
			if (flame.children.length && !this.isOpen(flame)) this.toggle(flame);
			else go(at + 1);
			break;
		case "ArrowLeft":
			if (this.isOpen(flame)) this.toggle(flame);
			else this.focus(flame.path.split("/").slice(0, -1).join("/"));
			break;
		case "Enter": this.chosen(flame); break;
		default: return;
		}
		event.preventDefault();
		event.stopPropagation();
	}
}
