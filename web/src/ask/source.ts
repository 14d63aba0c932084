// source: where answers come from. Two implement it: the server that shows a trace (server.ts), and
// the data inside a page that was written to a file (../offline).

export type Params = [string, string][];
export type Question = [path: string, params: Params];

// A question that has been open for more than a second.
export interface Work {
	kind: string;
	ms: number; // so far
	usual: number | null; // that the last of its kind took; null: there was none
	told: Told | null; // what the server says of it
}

// How far a question is.
export interface Told {
	waits: boolean; // for others of its queue
	doing: string | null;
	done: number | null; // of that, from 0 to 1
	left_ns: number | null;
}

export interface Source {
	readonly single: boolean;
	// Where windows can begin and end, in a page with its data inside; empty: anywhere.
	readonly edges: number[];
	// A newer question of the same lane makes an older one fail with `superseded`.
	get<T>(path: string, params?: Params, lane?: string): Promise<T>;
	// Nobody will look at what the tab that was open asked for: it fails with `superseded`.
	leaveTab(): void;
	// The same of the lanes whose names begin so.
	drop(lanes: string): void;
	text(path: string, params: Params, lane?: string): Promise<{ text: string; firstLine: number }>;
	// Questions that may come soon, asked while there is nothing else to answer: the server keeps what it answered.
	expect?(questions: Question[]): void;
	working?(): Work[];
}

export class AskError extends Error {
	constructor(message: string, readonly kind: string, readonly status: number,
		readonly superseded = false) {
		super(message);
	}
}

export function isSuperseded(error: unknown): boolean {
	return error instanceof AskError && error.superseded;
}
