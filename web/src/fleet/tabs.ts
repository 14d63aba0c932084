// tabs: the answers of `tidemark fleet`, a tab each: which columns they have, and where a row leads.
import { h } from "../base/dom";
import type { Picture } from "../base/pen";
import { baseName, bytes, count, csvTables, percent, signedBytes } from "../base/text";
import { theme } from "../base/theme";
import { type Column, Grid } from "../parts/grid";
import { PictureView } from "../parts/picture";
import { TREND_HEIGHT, drawTrend, type TrendRow } from "./trend";
import type { Chosen } from "./words";

export interface Answer {
	runs: number;
	runs_sampled: number;
	runs_incomplete: number;
	before: string | null;
	after: string | null;
	runs_before: number | null;
	runs_after: number | null;
	rows: Row[];
}

type Row = Record<string, string | number | null>;

export interface Around {
	say(text: string): void;
	choose(change: Partial<Chosen>): void;
	chosen(): Chosen;
	showTrace(trace: string): void;
}

const number = (row: Row, key: string) => row[key] === null ? null : Number(row[key]);
const text = (row: Row, key: string) => row[key] === null ? "" : String(row[key]);

function size(key: string, title: string, hint: string, show: (size: number) => string = bytes): Column<Row> {
	return {
		key, title, hint, value: (row) => number(row, key), show: (row) => number(row, key) === null ? "–" : show(number(row, key)!),
		exact: (row) => number(row, key) === null ? "" : `${count(number(row, key))} bytes`,
	};
}

function some(key: string, title: string, hint: string, show: (value: number) => string = count): Column<Row> {
	return { key, title, hint, value: (row) => number(row, key), show: (row) => number(row, key) === null ? "–" : show(number(row, key)!) };
}

function word(key: string, title: string, hint?: string): Column<Row> {
	return { key, title, hint, text: true, value: (row) => text(row, key), show: (row) => h("span", { title: text(row, key) }, text(row, key)) };
}

// "yes" is what one looks for.
function verdict(key: string, title: string, hint: string): Column<Row> {
	return {
		key, title, hint, value: (row) => text(row, key),
		show: (row) => h("span", { class: row[key] === "yes" ? "grew" : "" }, row[key] === "yes" ? "▲ yes" : text(row, key)),
	};
}

const SITE: Column<Row> = {
	key: "function", title: "Site", text: true, value: (row) => text(row, "function"),
	more: [["Module", (row) => row.module], ["Number", (row) => row.site]],
	show: (row) => h("span", {}, h("span", { class: "code", title: text(row, "function") }, text(row, "function") || "(no stack)"),
		h("span", { class: "place", title: text(row, "module") }, baseName(text(row, "module")))),
};
const LEVEL = "the mean of the bytes that lived in a run";

const TABS: [id: string, title: string, empty: string, columns: Column<Row>[], sort: string][] = [
	["grew", "Grew", "No site holds more than in the version before.", [SITE,
		size("change_bytes", "Change", "of the level, from version to version", signedBytes),
		size("spread_bytes", "±", "two standard errors of the change, from how runs of one version differ"),
		verdict("sure", "Sure", "the change is greater than its spread"),
		size("before_bytes", "Before", LEVEL), size("after_bytes", "After", LEVEL),
		some("hosts", "Hosts", "on which the later version has it")], "change_bytes"],
	["sites", "Sites", "No site holds anything.", [SITE,
		size("byte_seconds", "Bytes × s", "bytes times seconds, over all runs"),
		some("share", "Share", "of all sites' bytes times seconds", percent),
		size("level_bytes", "Level", LEVEL), size("level_most_bytes", "Most", "the level of the run with the most"),
		size("kept_bytes", "Kept", "in blocks that no call freed, over all runs"), some("allocated_count", "Blocks", "that were allocated"),
		some("runs", "Runs", "that have it"), some("hosts", "Hosts", "that have it")], "byte_seconds"],
	["hosts", "Hosts", "No host.", [word("host", "Host"),
		size("level_bytes", "Level", LEVEL), size("least_bytes", "Least", "of a run"), size("most_bytes", "Most", "of a run"),
		size("kept_bytes", "Kept", "in blocks that no call freed"), some("runs", "Runs", "of this host"),
		some("score", "Score", "how far it is from the median of all, in robust deviations", (score) => score.toFixed(2)),
		verdict("outlier", "Outlier", "the score is beyond 3.5"),
		word("most_above", "By", "the site that is most above its mean on other hosts")], "level_bytes"],
	["trend", "Trend", "No version.", [word("version", "Version"),
		size("level_bytes", "Level", LEVEL), size("spread_bytes", "±", "two standard errors of the level"),
		size("least_bytes", "Least", "of a run"), size("most_bytes", "Most", "of a run"),
		some("runs", "Runs", "of this version"), some("hosts", "Hosts", "of this version")], ""],
	["traces", "Traces", "No trace.", [word("began", "Began (UTC)"), some("seconds", "Seconds", "that it took", (seconds) => seconds.toFixed(2)),
		word("version", "Version"), word("host", "Host"), word("command", "Command"), word("trace", "Trace")], ""],
];

export class FleetTab {
	readonly root: HTMLElement;
	private grid: Grid<Row>;
	private picture: PictureView | null = null;
	private box = h("div", { class: "bar-picture" });
	private rows: Row[] = [];

	constructor(readonly id: string, readonly title: string, empty: string, columns: Column<Row>[], sort: string, private around: Around) {
		this.grid = new Grid<Row>({ name: title, empty, columns, sort, chosen: (row) => this.follow(row) });
		this.root = h("div", { class: "screen" }, this.grid.root);
		if (id !== "trend") return;
		this.picture = new PictureView(around, "The level over versions");
		this.box.append(this.picture.root);
		this.root.prepend(this.box);
		new ResizeObserver(() => this.draw()).observe(this.box);
	}

	// Where a row leads: a site to its trend, a host to its sites, a trace to its own page.
	private follow(row: Row): void {
		const { labels, hostLabel } = this.around.chosen();
		const quoted = (value: string) => /[\s'"\\]/.test(value) ? `'${value.replace(/'/g, "'\\''")}'` : value;

		if (row.site) this.around.choose({ tab: "trend", site: String(row.site) });
		else if (this.id === "hosts") this.around.choose({ tab: "sites", labels: [labels, quoted(`${hostLabel || "host"}=${text(row, "host")}`)].filter(Boolean).join(" ") });
		else if (this.id === "traces") this.around.showTrace(text(row, "trace"));
	}

	wait(): void {
		this.grid.wait();
	}

	set(rows: Row[], why?: string): void {
		this.rows = rows;
		this.grid.set(rows, why);
		this.draw();
	}

	draw(): void {
		const width = this.box.clientWidth - 28;
		if (this.picture && this.root.isConnected && width > 50)
			this.picture.render(width, this.rows.length > 0 ? TREND_HEIGHT : 1, (pen) => this.rows.length > 0 ? drawTrend(pen, width, this.rows as unknown as TrendRow[]) : []);
	}

	csv(): string {
		return csvTables([[this.title, this.grid.csv()]]);
	}

	pictures(): Picture[] {
		return this.picture && this.rows.length > 0 ? [{
			name: "trend", title: "Trend of the level over versions", width: 1000, height: TREND_HEIGHT, background: theme().ground,
			draw: (pen) => void drawTrend(pen, 1000, this.rows as unknown as TrendRow[]),
		}] : [];
	}
}

export function tabsFor(around: Around): FleetTab[] {
	return TABS.map((tab) => new FleetTab(...tab, around));
}
