// trend: the picture of a site over versions: the mean of their runs, how sure it is, and the runs
// with the least and the most.
import type { Pen } from "../base/pen";
import { fitted } from "../base/pen";
import { bytes, plural } from "../base/text";
import { theme } from "../base/theme";
import { binaryStep, splitsOf } from "../parts/axis";
import type { Region } from "../parts/picture";
import { alpha } from "../parts/timeline";

export interface TrendRow {
	version: string | null;
	level_bytes: number;
	spread_bytes: number | null;
	least_bytes: number;
	most_bytes: number;
	runs: number;
	hosts: number;
}

export const TREND_HEIGHT = 240;
const LEFT = 78, RIGHT = 14, TOP = 14, BOTTOM = 26;

export function trendLabel(row: TrendRow): string {
	return `${row.version ?? ""}: ${bytes(row.level_bytes)}${row.spread_bytes === null ? "" : ` ± ${bytes(row.spread_bytes)}`}\n` +
		`${bytes(row.least_bytes)} to ${bytes(row.most_bytes)} in ${plural(row.runs, "run")} on ${plural(row.hosts, "host")}`;
}

export function drawTrend(pen: Pen, width: number, rows: TrendRow[]): Region[] {
	const top = Math.max(1, ...rows.map((row) => Math.max(row.most_bytes, row.level_bytes + (row.spread_bytes ?? 0))));
	const high = TREND_HEIGHT - TOP - BOTTOM, step = (width - LEFT - RIGHT) / Math.max(1, rows.length);
	const x = (i: number) => LEFT + (i + 0.5) * step;
	const y = (size: number) => TOP + high * (1 - size / top);
	const spread = (row: TrendRow) => row.spread_bytes ?? 0;

	for (const size of splitsOf(0, top, binaryStep(top, 4))) {
		pen.line([[LEFT, y(size)], [width - RIGHT, y(size)]], theme().grid);
		pen.text(bytes(size), LEFT - 8, y(size), { fill: theme().quiet, align: "right", middle: true });
	}
	pen.area([...rows.map((row, i): [number, number] => [x(i), y(row.level_bytes + spread(row))]),
		...rows.map((row, i): [number, number] => [x(i), y(Math.max(0, row.level_bytes - spread(row)))]).reverse()], alpha(theme().accent, 0.18));
	rows.forEach((row, i) => {
		pen.line([[x(i), y(row.least_bytes)], [x(i), y(row.most_bytes)]], theme().faint, 1.5);
		for (const end of [row.least_bytes, row.most_bytes]) pen.line([[x(i) - 4, y(end)], [x(i) + 4, y(end)]], theme().faint, 1.5);
	});
	pen.line(rows.map((row, i) => [x(i), y(row.level_bytes)]), theme().accent, 2);
	return rows.map((row, i) => {
		const style = { fill: theme().quiet, align: "center" as const };
		pen.rect(x(i) - 3, y(row.level_bytes) - 3, 6, 6, theme().accent);
		pen.text(fitted(pen, row.version ?? "", step - 6, style), x(i), TREND_HEIGHT - 8, style);
		return { x: x(i) - step / 2, y: TOP, w: step, h: high, id: String(i), label: trendLabel(row) };
	});
}
