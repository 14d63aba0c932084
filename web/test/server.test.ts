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
