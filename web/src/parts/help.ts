// help: the keys, and what the words mean.
import { fill, h } from "../base/dom";

const KEYS: [string, string][] = [
	["drag on the timeline", "choose the window; near a mark its edge is the mark"],
	["shift and drag", "a second window, to compare with"],
	["double click, a", "the whole trace"],
	["control and wheel, z", "widen the timeline; z: to the window"],
	["← →", "on the timeline: move the window; with shift its end, with control its beginning, with alt by little"],
	["m", "on the timeline: the next phase between marks"],
	["n", "the next peak"],
	["Backspace", "the window before (as the browser's way back)"],
	["0 … 9", "views; 0 is the first page, findings"],
	["↑ ↓ ← →", "in a table: rows, open and shut; Enter selects"],
	["f, x", "filter to the selected row, or it out"],
	["s", "the stack of the selected row"],
	["e", "figures to the byte"],
	["l", "heap or virtual memory"],
	["/", "search, or filter words as on the command line: --size 32..64 --frame ^parse"],
	["c", "copy as a command line"],
	["t", "colours: as the system, dark, light"],
	["Escape", "close, or select nothing"],
];

const WORDS: [string, string][] = [
	["▲ Impacting", "begun in the window and still there at its end, or there before and freed in it"],
	["◆ Transient", "begun and freed in the window"],
	["■ Persistent", "there before the window and after it"],
	["Impacting size", "what the live bytes changed by, from the window's beginning to its end"],
	["Size, Count", "of all that lived for some part of the window, what was there before included"],
	["Allocated", "begun in the window"],
	["Heap, virtual memory", "two layers of one memory: they never add up"],
];

let dialog: HTMLDialogElement | null = null;

export function openHelp(keys = KEYS, words = WORDS): void {
	if (!dialog) {
		dialog = h("dialog", { class: "help", "aria-label": "Help" });
		const close = h("button", { type: "button", class: "quiet", onclick: () => dialog!.close() }, "Close");
		fill(dialog, h("header", {}, h("h2", {}, "Keys and words"), close),
			h("div", { class: "help-columns" },
				h("dl", { class: "keys-list" }, ...keys.flatMap(([key, what]) => [h("dt", {}, key), h("dd", {}, what)])),
				h("dl", {}, ...words.flatMap(([word, what]) => [h("dt", {}, word), h("dd", {}, what)]))));
		dialog.addEventListener("click", (event) => {
			if (event.target === dialog) dialog!.close();
		});
		document.body.append(dialog);
	}
	if (!dialog.open) dialog.showModal();
}
