// words: what is chosen on the page about many traces; it is the address, and the command line.
import type { Params } from "../ask/source";
import type { Form } from "../base/state";
import { quote, splitWords } from "../base/words";

export interface Chosen {
	tab: string; // a question of `tidemark fleet`
	labels: string; // of runs, as they are typed: NAME=VALUE, with blanks between
	since: string;
	site: string; // trend
	before: string; // grew, as the two that follow
	after: string;
	ago: string;
	versionLabel: string;
	hostLabel: string;
}

export const QUESTIONS = ["grew", "sites", "hosts", "trend", "traces"];
const ROWS = "200";

// The option, and the address's word, of each field but the tab.
const OPTIONS: [keyof Chosen, string, of?: string][] = [
	["labels", "label"], ["since", "since"], ["before", "before", "grew"], ["after", "after", "grew"], ["ago", "ago", "grew"],
	["site", "site", "trend"], ["versionLabel", "version-label"], ["hostLabel", "host-label"],
];

export const FORM: Form<Chosen> = {
	parse(text: string): Chosen {
		const words = new URLSearchParams(text);
		const tab = words.get("tab") ?? "";
		return Object.fromEntries([["tab", QUESTIONS.includes(tab) ? tab : QUESTIONS[0]],
			...OPTIONS.map(([field, word]) => [field, words.get(word) ?? ""])]) as unknown as Chosen;
	},
	format(chosen: Chosen): string {
		const words = new URLSearchParams([["tab", chosen.tab]]);
		for (const [field, word] of OPTIONS) if (chosen[field]) words.append(word, chosen[field]);
		return words.toString();
	},
};

// What the question of the tab takes of it.
function asked(chosen: Chosen): Params {
	return OPTIONS.filter(([field, , of]) => chosen[field] && (!of || of === chosen.tab)).flatMap(([field, word]) =>
		field === "labels" ? splitWords(chosen.labels).map((one): [string, string] => [word, one]) : [[word, chosen[field]] as [string, string]]);
}

export function questionOf(chosen: Chosen): Params {
	return [["question", chosen.tab], ...asked(chosen), ["n", ROWS]];
}

export function commandOf(chosen: Chosen, place: string): string {
	return ["tidemark", "fleet", chosen.tab, quote(place), ...asked(chosen).map(([word, value]) => `--${word} ${quote(value)}`), "--rows", ROWS].join(" ");
}

export function viewOf(place: string, trace: string): string {
	return `tidemark view ${quote(`${place}?trace=${trace}`)}`;
}

// Numbers of sites have more digits than a number of the page's language can.
export function parseAnswer<T>(text: string): T {
	return JSON.parse(text.replace(/"site":(\s*)(\d+)/g, '"site":$1"$2"')) as T;
}
