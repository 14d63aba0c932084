// main: finds where the answers come from, and opens the page.
import "./style.css";
import type { Source } from "./ask/source";
import { ServerSource } from "./ask/server";
import type { Mark, View } from "./ask/types";
import { messageOf } from "./app";
import { fill, h } from "./base/dom";
import { applyTheme } from "./base/theme";
import { FleetPage } from "./fleet/page";
import { openEmbedded } from "./offline/embedded";
import { Shell } from "./shell";

const TOKEN = "tidemark-token";

// From the address, else as it was kept when this tab was opened.
function findToken(): string {
	const fromAddress = new URLSearchParams(window.location.hash.slice(1)).get("t");
	try {
		if (fromAddress) sessionStorage.setItem(TOKEN, fromAddress);
		return fromAddress ?? sessionStorage.getItem(TOKEN) ?? "";
	} catch {
		return fromAddress ?? "";
	}
}

function problem(root: HTMLElement, title: string, text: string, next: string): void {
	fill(root, h("main", { class: "problem" }, h("h1", {}, title), h("p", {}, text), h("p", { class: "next" }, next)));
}

async function start(): Promise<void> {
	const root = document.getElementById("app")!;
	const token = findToken();
	let source: Source | null;

	applyTheme();
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", applyTheme);
	fill(root, h("main", { class: "problem", "aria-busy": "true" }, h("p", { class: "loading" }, "Reading the trace …")));
	try {
		source = await openEmbedded();
	} catch (error) {
		problem(root, "The data in this page cannot be read", messageOf(error), "Write the page again: tidemark view FILE --html out.html");
		return;
	}
	if (!source && !token) {
		problem(root, "This page needs its key", "The address that tidemark view printed ends in #t= and 32 digits. This one does not.",
			"Copy the whole address from the terminal, or start tidemark view again.");
		return;
	}
	let shell: Shell | null = null;
	source ??= new ServerSource(token, (why) => shell?.gone(why));
	try {
		const view = await source.get<View | { schema: "tidemark-view-fleet-1"; place: string }>("view");
		if ("place" in view) {
			new FleetPage(root, source, view.place, `t=${token}`).open();
			return;
		}
		const marks = await source.get<{ marks: Mark[] }>("marks");
		shell = new Shell(root, source, view, marks.marks, source.single ? "" : `t=${token}`);
		shell.open();
	} catch (error) {
		const wrongKey = (error as { kind?: string }).kind === "token";
		problem(root, wrongKey ? "This page has an old key" : "The trace cannot be shown", messageOf(error),
			wrongKey ? "Each start of tidemark view makes a new key: copy the address that it printed last." : "See what tidemark view says on the terminal.");
	}
}

void start();
