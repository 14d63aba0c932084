// server: asks `tidemark view`. The token came in the page's address, behind the #, and goes back
// in a header.
import { AskError, type Params, type Question, type Source, type Told, type Work } from "./source";

const BUSY_TRIES = 4;
const QUIET_MS = 500; // without a question, before one is asked ahead

// What came, read to its end.
interface Answer {
	head: Response;
	text: string;
}

// Questions of what is always on the screen; all others are a tab's own.
const SHARED = /^(line|other|lives|names)/;

export class ServerSource implements Source {
	readonly single = false;
	readonly edges: number[] = [];
	private lanes = new Map<string, AbortController>();
	// Questions that are open, and how long the last of their kind took: what an estimate is made of.
	private open = new Set<{ kind: string; lane: string; since: number }>();
	private took = new Map<string, number>();
	// What the server says of them, by lane, and whether it is being asked.
	private told = new Map<string, Told>();
	private looking = false;
	// What may be asked soon, and what of it is being asked.
	private expected: Question[] = [];
	private expectedOnce = new Set<string>();
	private ahead: { address: string; aborter: AbortController } | null = null;
	private quiet = 0;
	// Another tab of the browser has lanes of its own.
	private page = Math.random().toString(36).slice(2, 10);

	constructor(private token: string, private gone: (why: string) => void) {}

	async get<T>(path: string, params: Params = [], lane = ""): Promise<T> {
		return JSON.parse((await this.ask(path, params, lane)).text) as T;
	}

	async text(path: string, params: Params, lane = "source"): Promise<{ text: string; firstLine: number }> {
		const { head, text } = await this.ask(path, params, lane);
		return { text, firstLine: Number(head.headers.get("X-Tidemark-First-Line") ?? 1) };
	}

	leaveTab(): void {
		for (const [lane, aborter] of this.lanes) if (!SHARED.test(lane)) aborter.abort();
	}

	drop(lanes: string): void {
		for (const [lane, aborter] of this.lanes) if (lane.startsWith(lanes)) aborter.abort();
	}

	expect(questions: Question[]): void {
		this.expected = questions.filter(([path, params]) => !this.expectedOnce.has(addressOf(path, params)));
		this.waitForQuiet();
	}

	private waitForQuiet(): void {
		clearTimeout(this.quiet);
		if (this.expected.length > 0 && this.open.size === 0 && !this.ahead)
			this.quiet = setTimeout(() => void this.askAhead(), QUIET_MS) as unknown as number;
	}

	// One after the other, until somebody asks: then that one is given up, and is asked again later.
	private async askAhead(): Promise<void> {
		for (let next; this.open.size === 0 && (next = this.expected[0]);) {
			const [path, params] = next;
			const ahead = { address: addressOf(path, params), aborter: new AbortController() };
			this.ahead = ahead;
			try {
				await this.once(addressOf(path, [...params, ["lane", this.named("ahead")]]), ahead.aborter.signal);
			} catch { /* given up, or the server has ended, which whoever asks is told */ }
			if (!ahead.aborter.signal.aborted) {
				this.expectedOnce.add(ahead.address);
				this.expected = this.expected.filter((one) => one !== next);
			}
			this.ahead = null;
		}
		this.waitForQuiet();
	}

	working(): Work[] {
		const now = performance.now();
		const long = [...this.open].filter(({ since }) => now - since >= 1000).sort((a, b) => a.since - b.since);

		if (long.length > 0) void this.lookUp();
		return long.map(({ kind, lane, since }) =>
			({ kind, ms: now - since, usual: this.took.get(kind) ?? null, told: this.told.get(lane) ?? null }));
	}

	private async lookUp(): Promise<void> {
		if (this.looking) return;
		this.looking = true;
		try {
			const response = await fetch("/api/progress", { headers: { Authorization: `Bearer ${this.token}` } });
			const answer = await response.json() as { questions?: (Told & { lane: string | null })[] };
			this.told = new Map((answer.questions ?? []).map((one) => [one.lane ?? "", one]));
		} catch {
			this.told.clear();
		} finally {
			this.looking = false;
		}
	}

	private async ask(path: string, params: Params, lane: string): Promise<Answer> {
		const layer = path === "timeline" ? params.find(([word]) => word === "layer")?.[1] : undefined;
		const work = { kind: layer ? `${path} ${layer}` : path, lane: this.named(lane), since: performance.now() };

		this.open.add(work);
		clearTimeout(this.quiet);
		// What is asked now may be what is being answered ahead: then it is there as soon as that is.
		if (this.ahead?.address !== addressOf(path, params)) this.ahead?.aborter.abort();
		try {
			const answer = await this.answerTo(path, params, lane);
			this.took.set(work.kind, performance.now() - work.since);
			return answer;
		} finally {
			this.open.delete(work);
			this.waitForQuiet();
		}
	}

	private named(lane: string): string {
		return lane ? `${lane}-${this.page}` : "";
	}

	private async answerTo(path: string, params: Params, lane: string): Promise<Answer> {
		const aborter = new AbortController();
		if (lane) {
			this.lanes.get(lane)?.abort();
			this.lanes.set(lane, aborter);
			params = [...params, ["lane", this.named(lane)]];
		}
		const url = addressOf(path, params);
		for (let attempt = 0; ; attempt++) {
			const answer = await this.once(url, aborter.signal);
			if (answer.head.ok) return answer;
			const error = errorOf(answer);
			// An older question of the lane, given up here, may reach the server after this one.
			const retry = error.kind === "busy" && !aborter.signal.aborted && attempt < BUSY_TRIES;
			if (!retry) {
				if (error.kind === "gone") this.gone(error.message);
				throw error;
			}
			await new Promise((wake) => setTimeout(wake, error.superseded ? 20 : 200 << attempt));
		}
	}

	// From the text on, who asked has the answer before anything else happens: one that was given up is
	// not gone on with, where its next question would be of a state that is no more.
	private async once(url: string, signal: AbortSignal): Promise<Answer> {
		try {
			const head = await fetch(url, { headers: { Authorization: `Bearer ${this.token}` }, signal });
			// Read here, where it is known why that fails.
			const text = await head.text();
			signal.throwIfAborted();
			return { head, text };
		} catch {
			if (signal.aborted) throw new AskError("a newer question came", "busy", 0, true);
			throw new AskError("tidemark view does not answer: it has ended, or was stopped", "server", 0);
		}
	}
}

function addressOf(path: string, params: Params): string {
	const query = new URLSearchParams(params).toString();
	return `/api/${path}${query ? `?${query}` : ""}`;
}

function errorOf({ head, text }: Answer): AskError {
	try {
		const said = JSON.parse(text);
		return new AskError(String(said.error), String(said.kind), head.status, said.superseded === true);
	} catch {
		return new AskError(`status ${head.status}`, "internal", head.status);
	}
}
