// columns: the figures that a row of the window can show. A new one is a line here, and its figure in
// ask/types.ts and offline/windows.ts.
import type { Figures } from "../ask/types";

// What a question has to find: "peaks", or "1" for lifetimes too.
export type Details = "0" | "peaks" | "1";

interface Column {
	value: keyof Figures;
	unit: "bytes" | "count" | "time";
	title: string;
	hint: string;
	later?: Details; // no sum: it is found later than the rows, or not at all
}

export const COLUMN: Record<string, Column> = {
	impacting: { value: "impacting_size", unit: "bytes", title: "Impacting", hint: "live bytes at the window's end less those at its beginning" },
	size: { value: "size", unit: "bytes", title: "Size", hint: "bytes of all that lived for some part of the window" },
	count: { value: "count", unit: "count", title: "Count", hint: "allocations that lived for some part of the window" },
	allocated: { value: "allocated", unit: "bytes", title: "Allocated", hint: "bytes of allocations begun in the window" },
	"allocated-count": { value: "allocated_count", unit: "count", title: "Allocations", hint: "allocations begun in the window" },
	freed: { value: "freed", unit: "bytes", title: "Freed", hint: "bytes of allocations ended in the window" },
	peak: { value: "peak_size", unit: "bytes", title: "Peak", hint: "the most bytes live at one time in the window", later: "peaks" },
	"peak-count": { value: "peak_count", unit: "count", title: "Peak count", hint: "blocks live when the most bytes were", later: "peaks" },
	"most-count": { value: "most_count", unit: "count", title: "Most count", hint: "the most blocks live at one time in the window", later: "peaks" },
	first: { value: "first_ns", unit: "time", title: "First", hint: "when the first in the window was allocated", later: "peaks" },
	last: { value: "last_ns", unit: "time", title: "Last", hint: "when the last in the window was allocated", later: "peaks" },
	median: { value: "lifetime_median_ns", unit: "time", title: "Median life", hint: "half of those freed in the window lived no longer", later: "1" },
	p99: { value: "lifetime_p99_ns", unit: "time", title: "p99 life", hint: "99 of 100 of those freed in the window lived no longer", later: "1" },
};

export const COLUMNS = Object.keys(COLUMN);

export function isLater(column: string): boolean {
	return COLUMN[column]?.later !== undefined;
}

// What the columns that are shown need.
export function detailsFor(columns: string[]): Details {
	const needs = columns.map((column) => COLUMN[column]?.later);
	return needs.includes("1") ? "1" : needs.includes("peaks") ? "peaks" : "0";
}
