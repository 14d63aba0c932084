// dom: elements. Text from a trace gets into the page as text and in no other way: there is no
// innerHTML anywhere.

export type Child = Node | string | number | null | undefined | false;
type Value = string | number | boolean | null | undefined | ((event: any) => void);

// h("button", { class: "quiet", onclick: go, disabled: true }, "Go")
export function h<K extends keyof HTMLElementTagNameMap>(
	tag: K, attributes: Record<string, Value> = {}, ...children: (Child | Child[])[]
): HTMLElementTagNameMap[K] {
	const element = document.createElement(tag);

	for (const [name, value] of Object.entries(attributes)) {
		if (value === null || value === undefined || value === false) continue;
		if (typeof value === "function") element.addEventListener(name.slice(2), value);
		else element.setAttribute(name, value === true ? "" : String(value));
	}
	add(element, ...children);
	return element;
}

export function add(parent: Node, ...children: (Child | Child[])[]): void {
	for (const child of children.flat()) {
		if (child === null || child === undefined || child === false) continue;
		parent.appendChild(child instanceof Node ? child : document.createTextNode(String(child)));
	}
}

export function fill(parent: Element, ...children: (Child | Child[])[]): void {
	parent.replaceChildren();
	add(parent, ...children);
}

let ids = 0;

export function freshId(word: string): string {
	return `${word}-${++ids}`;
}

// A select with a name for readers of the screen.
export function select(
	name: string, options: [string, string][], value: string, chosen: (value: string) => void
): HTMLSelectElement {
	const element = h("select", { "aria-label": name, title: name },
		...options.map(([key, text]) => h("option", { value: key, selected: key === value }, text)));
	element.addEventListener("change", () => chosen(element.value));
	return element;
}

// Buttons of which one is pressed.
export function choice(
	name: string, options: [string, string][], value: () => string, chosen: (value: string) => void
): { root: HTMLElement; update(): void } {
	const buttons = options.map(([key, text]) =>
		h("button", { type: "button", "data-key": key, onclick: () => chosen(key) }, text));
	const root = h("div", { class: "choice", role: "group", "aria-label": name }, ...buttons);
	const update = () => buttons.forEach((button, i) =>
		button.setAttribute("aria-pressed", String(options[i][0] === value())));
	update();
	return { root, update };
}

// Hands a text or a picture to the browser as a file.
export function download(name: string, content: Blob): void {
	const url = URL.createObjectURL(content);
	const link = h("a", { href: url, download: name });
	link.click();
	setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
