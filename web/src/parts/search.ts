// search: one field for names and for filter words. Names are looked up among the functions, files
// and modules of the window; filter words are the command line's.
import { type App, messageOf, windowParams } from "../app";
import { isSuperseded } from "../ask/source";
import type { TreeAnswer } from "../ask/types";
import { fill, freshId, h } from "../base/dom";
import { type Filter, opposite, type State } from "../base/state";
import { baseName, bytes, shortPath } from "../base/text";
import { clockOf, timeNs } from "../base/times";
import { escapeRegex, exactly, parseTyped } from "../base/words";

interface Suggestion {
	kind: string;
	name: string;
	place: string;
	size: number;
	filter: Filter;
}

const SHOWN = 12;

export class SearchPart {
	readonly root: HTMLElement;
	readonly chips = h("div", { class: "chips", role: "group", "aria-label": "Filters" });
	private input: HTMLInputElement;
	private list: HTMLElement;
	private shown: Suggestion[] = [];
	private at = -1;
	private known: { key: string; all: Suggestion[] } | null = null;

	constructor(private app: App) {
		const id = freshId("names");
		this.list = h("ul", { id, role: "listbox", class: "suggestions", "aria-label": "Names found", hidden: true });
		this.input = h("input", {
			class: "search", type: "text", role: "combobox", "aria-expanded": "false", "aria-controls": id,
			"aria-autocomplete": "list", "aria-label": "Search or filter", spellcheck: "false", autocomplete: "off",
			placeholder: "Search functions, files, modules; or --size 32..64 …", title: "Search (/)",
		});
		this.input.addEventListener("input", () => void this.look());
		this.input.addEventListener("keydown", (event) => this.key(event));
		this.input.addEventListener("blur", () => setTimeout(() => this.hide(), 150));
		this.root = h("div", { class: "search-box" }, this.input, this.list);
	}

	focus(): void {
		this.input.focus();
		this.input.select();
	}

	update(changed: Set<keyof State>): void {
		if (changed.has("filters")) this.showChips();
	}

	showChips(): void {
		const filters = this.app.store.state.filters;
		fill(this.chips, ...filters.map(([word, value], i) => h("span", { class: /^not-/.test(word) ? "chip out" : "chip" },
			h("span", { class: "word" }, wordOf([word, value])), " ",
			h("span", { class: "what" }, /row$/.test(word) ? value.slice(value.indexOf(":") + 1) : value),
			opposite([word, value]) ? h("button", {
				type: "button", class: "turn", title: "turn it around: only what passes now is left out",
				"aria-label": `turn the filter ${word} ${value} around`,
				onclick: () => this.app.store.set({ filters: [...filters.slice(0, i), ...opposite([word, value])!, ...filters.slice(i + 1)] }),
			}, "⇄") : null,
			h("button", {
				type: "button", "aria-label": `remove the filter ${word} ${value}`,
				onclick: () => this.app.store.set({ filters: filters.filter((_, at) => at !== i) }),
			}, "×"))),
		filters.length > 1 ? h("button", {
			type: "button", class: "quiet", onclick: () => this.app.store.set({ filters: [] }),
		}, "Clear filters") : null);
		this.chips.hidden = filters.length === 0;
	}

	private async look(): Promise<void> {
		const typed = parseTyped(this.input.value);
		const text = typed.rest.join(" ").toLowerCase();

		if (!text || text.length < 2) {
			this.hide();
			return;
		}
		try {
			const all = await this.names();
			if (!this.input.value.toLowerCase().includes(text)) return;
			this.shown = all.filter((one) => one.name.toLowerCase().includes(text) || one.place.toLowerCase().includes(text))
				.sort((a, b) => rank(b, text) - rank(a, text) || b.size - a.size).slice(0, SHOWN);
			this.show(text);
		} catch (error) {
			if (!isSuperseded(error)) this.say(messageOf(error));
		}
	}

	// All functions of the window with their files and modules.
	private async names(): Promise<Suggestion[]> {
		const params = windowParams(this.app.store.state);
		const key = JSON.stringify(params);
		if (this.known?.key === key) return this.known.all;
		const answer = await this.app.source.get<TreeAnswer>("tree", [...params, ["kind", "flat"], ["sort", "size"]], "names");
		const files = new Map<string, Suggestion & { functions: Set<string> }>(), modules = new Map<string, Suggestion>();
		const all: Suggestion[] = [];
		for (const node of answer.nodes) {
			if (node.function)
				all.push({
					kind: "function", name: node.function, place: node.file ? shortPath(node.file) : baseName(node.module),
					size: node.size, filter: ["frame", exactly(node.function)],
				});
			if (node.file && node.function) {
				const file = files.get(node.file) ?? {
					kind: "file", name: shortPath(node.file), place: node.file, size: 0, filter: ["frame", ""] as Filter,
					functions: new Set<string>(),
				};
				file.functions.add(node.function);
				file.size = Math.max(file.size, node.size);
				files.set(node.file, file);
			}
			if (node.module) {
				const module = modules.get(node.module) ?? {
					kind: "module", name: baseName(node.module), place: node.module, size: 0,
					filter: ["module", exactly(node.module)] as Filter,
				};
				module.size = Math.max(module.size, node.size);
				modules.set(node.module, module);
			}
		}
		// The command line has no word for a file: its functions stand for it.
		for (const file of files.values())
			file.filter = ["frame", `^(${[...file.functions].slice(0, 100).map(escapeRegex).join("|")})$`];
		all.push(...files.values(), ...modules.values());
		this.known = { key, all };
		return all;
	}

	private show(text: string): void {
		this.at = -1;
		fill(this.list, ...(this.shown.length > 0 ? this.shown.map((one, i) =>
			h("li", {
				role: "option", id: `${this.list.id}-${i}`, "aria-selected": "false",
				onpointerdown: (event: Event) => {
					event.preventDefault();
					this.take(one);
				},
			}, h("span", { class: "kind" }, one.kind), h("span", { class: "name" }, one.name),
			h("span", { class: "place" }, one.place), h("span", { class: "size" }, bytes(one.size))))
			: [h("li", { class: "nothing", role: "option", "aria-disabled": "true", "aria-selected": "false" },
				`no name with “${text}” in this window`)]));
		this.list.hidden = false;
		this.input.setAttribute("aria-expanded", "true");
	}

	private hide(): void {
		this.list.hidden = true;
		this.at = -1;
		this.input.setAttribute("aria-expanded", "false");
		this.input.removeAttribute("aria-activedescendant");
	}

	private say(text: string): void {
		fill(this.list, h("li", { class: "nothing", role: "option", "aria-disabled": "true", "aria-selected": "false" }, text));
		this.list.hidden = false;
		this.app.say(text);
	}

	private key(event: KeyboardEvent): void {
		if ((event.key === "ArrowDown" || event.key === "ArrowUp") && this.shown.length > 0 && !this.list.hidden) {
			const step = event.key === "ArrowDown" ? 1 : -1;
			this.at = (this.at + step + this.shown.length) % this.shown.length;
			[...this.list.children].forEach((item, i) => item.setAttribute("aria-selected", String(i === this.at)));
			this.input.setAttribute("aria-activedescendant", `${this.list.id}-${this.at}`);
			this.list.children[this.at]?.scrollIntoView({ block: "nearest" });
			event.preventDefault();
		} else if (event.key === "Enter") {
			if (this.at >= 0) this.take(this.shown[this.at]);
			else this.apply();
		} else if (event.key === "Escape") {
			if (this.list.hidden) this.input.blur();
			this.input.value = "";
			this.hide();
			event.stopPropagation();
		}
	}

	private take(one: Suggestion): void {
		this.input.value = "";
		this.hide();
		this.addFilters([one.filter]);
	}

	private addFilters(more: Filter[]): void {
		const old = this.app.store.state.filters;
		const fresh = more.filter(([word, value]) => !old.some((one) => one[0] === word && one[1] === value));
		this.app.store.set({ filters: [...old, ...fresh] });
	}

	// Filter words as they stand; what is none is a function's name, or a part of it.
	private apply(): void {
		const typed = parseTyped(this.input.value);
		const clock = clockOf(this.app.view, this.app.marks, this.app.store.state.layer);
		for (const word of [typed.from, typed.to])
			if (word !== undefined && timeNs(word, clock) === null) typed.wrong ??= `${word} is no moment of this trace`;
		if (typed.wrong) {
			this.say(typed.wrong);
			return;
		}
		const filters: Filter[] = [...typed.filters, ...typed.rest.map((word): Filter => ["frame", escapeRegex(word)])];
		const layer = filters.filter(([word]) => word === "layer").pop()?.[1];
		this.input.value = "";
		this.hide();
		this.app.store.set({
			...(typed.from !== undefined ? { from: typed.from } : {}), ...(typed.to !== undefined ? { to: typed.to } : {}),
			...(layer ? { layer } : {}),
		});
		this.addFilters(filters.filter(([word]) => word !== "layer"));
	}
}

function wordOf([word, value]: Filter): string {
	const key = value.slice(0, value.indexOf(":"));
	return word === "row" ? key : word === "not-row" ? `not ${key}` : word.replace("-", " ");
}

function rank(one: Suggestion, text: string): number {
	const name = one.name.toLowerCase();
	return (name === text ? 4 : name.startsWith(text) ? 2 : name.includes(text) ? 1 : 0) + (one.kind === "function" ? 0.5 : 0);
}
