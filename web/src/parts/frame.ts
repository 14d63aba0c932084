// frame: what stands around every page: tabs, colours, copies.
import { add, download, fill, h } from "../base/dom";
import { type Picture, pngOf, svgOf } from "../base/pen";
import { onTheme, setThemeMode, themeMode } from "../base/theme";

interface Tab {
	readonly id: string;
	readonly title: string;
	csv?(): string | null;
	pictures?(): Picture[];
}

// Their keys are digits, from `first` on.
export function tabsOf(tabs: Tab[], first: number, chosen: (id: string) => void): HTMLElement {
	return h("div", { class: "tabs", role: "tablist", "aria-label": "Views" },
		...tabs.map((tab, i) => h("button", {
			type: "button", role: "tab", id: `tab-${tab.id}`, "aria-controls": "panel", title: `${tab.title} (${first + i})`,
			onclick: () => chosen(tab.id),
		}, tab.title)));
}

// Where the arrow keys lead from a tab.
export function tabAt<T extends Tab>(tabs: T[], current: T, event: KeyboardEvent): T | null {
	const at = tabs.indexOf(current);
	const to = ({ ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 } as Record<string, number>)[event.key];
	if (to === undefined) return null;
	event.preventDefault();
	return tabs[(to + tabs.length) % tabs.length];
}

export function showTab(tabs: HTMLElement, at: number): void {
	[...tabs.children].forEach((tab, i) => {
		tab.setAttribute("aria-selected", String(i === at));
		(tab as HTMLElement).tabIndex = i === at ? 0 : -1;
	});
}

// What is said of it.
export function turnTheme(): string {
	const next = { auto: "dark", dark: "light", light: "auto" } as const;
	setThemeMode(next[themeMode()]);
	return `colours: ${themeMode()}`;
}

export function themeButton(): HTMLElement {
	const words = { auto: "as the system", light: "light", dark: "dark" };
	const button = h("button", { type: "button", class: "icon", onclick: turnTheme });
	const show = () => {
		const mode = themeMode();
		button.textContent = { auto: "◐", light: "☀", dark: "☾" }[mode];
		button.title = `colours: ${words[mode]} (t)`;
		button.setAttribute("aria-label", `colours: ${words[mode]}`);
	};
	onTheme(show);
	show();
	return button;
}

export function copyButton(text: () => string, say: (text: string) => void): HTMLElement {
	const button = h("button", {
		type: "button", class: "quiet copy-command", title: "the command line that answers the same (c)",
	}, "Copy command");
	const done = (said: string) => {
		button.textContent = said;
		say(said);
		setTimeout(() => { button.textContent = "Copy command"; }, 1500);
	};
	button.addEventListener("click", () => {
		if (!navigator.clipboard) done("no clipboard here");
		else navigator.clipboard.writeText(text()).then(() => done("copied"), () => done("not allowed"));
	});
	return button;
}

// `file`: what files are called before the tab's own name. `more`: pictures beside those of the tab.
export function exportsMenu(file: string, current: () => Tab, more: () => Picture[] = () => []): HTMLElement {
	const body = h("div", { class: "menu-body", role: "group", "aria-label": "Export" });
	const details = h("details", { class: "menu" }, h("summary", {}, "Export"), body);
	const name = (what: string, ending: string) => `${file}.${what}.${ending}`;
	const item = (text: string, click: () => void) => h("button", {
		type: "button", class: "item", onclick: () => {
			details.open = false;
			click();
		},
	}, text);
	const savePng = async (picture: Picture) => download(name(picture.name, "png"), await pngOf(picture));

	details.addEventListener("toggle", () => {
		if (!details.open) return;
		const csv = current().csv?.() ?? null;
		fill(body);
		if (csv !== null)
			body.append(item("Table as CSV", () => download(name(current().id, "csv"), new Blob([csv], { type: "text/csv" }))));
		for (const picture of [...more(), ...(current().pictures?.() ?? [])])
			add(body, item(`${picture.title.split(" of ")[0]} as SVG`, () => download(name(picture.name, "svg"), svgOf(picture))),
				item(`${picture.title.split(" of ")[0]} as PNG`, () => void savePng(picture)));
	});
	document.addEventListener("click", (event) => {
		for (const menu of document.querySelectorAll<HTMLDetailsElement>("details.menu[open]"))
			if (!menu.contains(event.target as Node)) menu.open = false;
	});
	return details;
}
