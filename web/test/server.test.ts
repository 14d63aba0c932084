import { afterEach, describe, expect, it, vi } from "vitest";
import { ServerSource } from "../src/ask/server";
import { isSuperseded } from "../src/ask/source";

const task = () => new Promise((done) => setTimeout(done));

// A browser in which what comes is read in tasks of their own, between which somebody may click.
function slowBrowser(body: string): void {
	vi.stubGlobal("Response", class {
		ok = true;
		constructor(private signal?: AbortSignal) {}
		private async read<T>(value: T): Promise<T> {
			await task();
			this.signal?.throwIfAborted?.();
			return value;
		}
		arrayBuffer() { return this.read(new ArrayBuffer(0)); }
		json() { return this.read(JSON.parse(body)); }
		text() { return this.read(body); }
	});
	vi.stubGlobal("fetch", async (_: string, { signal }: { signal: AbortSignal }) => new Response(signal as never));
}

afterEach(() => { vi.unstubAllGlobals(); });

describe("an answer that is given up", () => {
	it.each([
		["dropped", (source: ServerSource) => source.drop("rows-")],
		["overtaken", (source: ServerSource) => { void source.get("window", [], "rows-1"); }],
		["of a tab that is left", (source: ServerSource) => source.leaveTab()],
	])("is not given out, wherever it was: %s", async (_, giveUp) => {
		for (let tasks = 0; tasks < 5; tasks++) {
			slowBrowser("{}");
			const source = new ServerSource("token", () => {});
			const events: string[] = [];
			void source.get("window", [], "rows-1").then(() => events.push("given out"),
				(error) => events.push(isSuperseded(error) ? "superseded" : String(error)));
			for (let i = 0; i < tasks; i++) await task();
			giveUp(source);
			events.push("given up");
			for (let i = 0; i < 5; i++) await task();
			expect(["given out,given up", "given up,superseded"], `after ${tasks} tasks`).toContain(events.join());
		}
	});
});

// A server that answers when it is told to, and what it was asked.
function patientServer(): { asked: string[]; answer(): Promise<void> } {
	const asked: string[] = [], open: { give: () => void }[] = [];

	vi.stubGlobal("fetch", (url: string, { signal }: { signal: AbortSignal }) => new Promise((give, fail) => {
		const one = { give: () => give({ ok: true, text: async () => "{}" }) };
		asked.push(url.replace(/^\/api\//, "").replace(/(lane=\w+)-\w+/, "$1"));
		open.push(one);
		signal.addEventListener("abort", () => {
			asked.push("given up");
			open.splice(open.indexOf(one), 1);
			fail(signal.reason);
		});
	}));
	return { asked, answer: async () => {
		open.shift()!.give();
		await vi.advanceTimersByTimeAsync(0);
	} };
}

describe("what may be asked soon", () => {
	const later: [string, [string, string][]][] = [["growth", []], ["peaks", [["n", "100"]]], ["findings", []]];

	it("is asked one by one while there is nothing else, and once", async () => {
		vi.useFakeTimers();
		const { asked, answer } = patientServer();
		const source = new ServerSource("token", () => {});
		const first = source.get("info");
		source.expect(later);
		await vi.advanceTimersByTimeAsync(5000);
		expect(asked).toEqual(["info"]);
		await answer();
		await first;
		await vi.advanceTimersByTimeAsync(400);
		expect(asked).toEqual(["info"]);
		await vi.advanceTimersByTimeAsync(200);
		expect(asked).toEqual(["info", "growth?lane=ahead"]);
		await answer();
		expect(asked.slice(2)).toEqual(["peaks?n=100&lane=ahead"]);
		await answer();
		await answer();
		source.expect(later);
		await vi.advanceTimersByTimeAsync(5000);
		expect(asked.slice(2)).toEqual(["peaks?n=100&lane=ahead", "findings?lane=ahead"]);
		vi.useRealTimers();
	});

	it("is given up when somebody asks, and asked again", async () => {
		vi.useFakeTimers();
		const { asked, answer } = patientServer();
		const source = new ServerSource("token", () => {});
		source.expect(later);
		await vi.advanceTimersByTimeAsync(600);
		void source.get("window", [], "rows");
		expect(asked).toEqual(["growth?lane=ahead", "given up", "window?lane=rows"]);
		await vi.advanceTimersByTimeAsync(5000);
		expect(asked.length).toBe(3);
		await answer();
		await vi.advanceTimersByTimeAsync(600);
		expect(asked.slice(3)).toEqual(["growth?lane=ahead"]);
		// The same is waited for.
		const same = source.get("growth", [], "growth");
		expect(asked.slice(4)).toEqual(["growth?lane=growth"]);
		await answer();
		await answer();
		await same;
		// Nothing is expected any more.
		source.expect([]);
		await vi.advanceTimersByTimeAsync(5000);
		expect(asked.length).toBe(5);
		vi.useRealTimers();
	});
});
