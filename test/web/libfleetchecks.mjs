// The viewer's page about many traces in a browser: its figures are those of `tidemark fleet`, it is
// used by keys, and it says what is not there. Called by fleet.py with what it has prepared:
//     node libfleetchecks.mjs JSON
import { readFileSync } from "node:fs";
import path from "node:path";
import readline from "node:readline";
import { AXE, Browser, check, equal, main, screensFolder, settled, Skip, test, until, untilEqual } from "./libviewer.mjs";

const given = JSON.parse(process.argv[2]);
const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const TABS = ["grew", "sites", "hosts", "trend", "traces"];
const KEYS = { // of the columns, as the JSON has them
	grew: ["change_bytes", "spread_bytes", "sure", "before_bytes", "after_bytes", "hosts", "function"],
	sites: ["byte_seconds", "share", "level_bytes", "level_most_bytes", "kept_bytes", "allocated_count", "runs", "hosts", "function"],
	hosts: ["level_bytes", "least_bytes", "most_bytes", "kept_bytes", "runs", "score", "outlier", "host", "most_above"],
	trend: ["level_bytes", "spread_bytes", "least_bytes", "most_bytes", "runs", "hosts", "version"],
	traces: ["trace", "began", "seconds", "version", "host", "command"],
};

const open = (browser, state, more) => browser.open(`${given.url}&${state}`, more);

// What fleet.py does for us.
async function have(word) {
	console.log(`# ${word}`);
	await lines.next();
}

async function figures(page) {
	return page.evaluate(() => {
		const keys = [...document.querySelectorAll(".panel thead th")].map((th) => th.dataset.key);
		return [...document.querySelectorAll(".panel tbody tr")].filter((tr) => tr.children.length === keys.length)
			.map((tr) => Object.fromEntries(keys.map((key, i) => [key, tr.children[i].dataset.value])));
	});
}

async function shows(page, name) {
	const [question] = name.split("/");
	const wanted = given.answers[name].rows.map((row) => Object.fromEntries(KEYS[question].map((key) => [key, row[key] === null ? "" : String(row[key])])));
	await until(`${name} is shown`, async () => {
		const seen = await figures(page);
		return JSON.stringify(seen.map((row) => Object.fromEntries(KEYS[question].map((key) => [key, row[key]])))) === JSON.stringify(wanted) || seen;
	}, (seen) => seen === true);
}

async function copied(page) {
	await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
	await page.keyboard.press("c");
	await until("it is copied", () => page.textContent(".copy-command"), (text) => text === "copied");
	return page.evaluate(() => navigator.clipboard.readText());
}

test("each question has the figures of its command, which is what is copied", async (browser) => {
	const page = await open(browser, "");
	for (const [i, tab] of TABS.entries()) {
		await page.keyboard.press(String(i + 1));
		await shows(page, tab);
		equal(`tidemark fleet ${tab} ${given.place} --rows 200`, await copied(page), "the command");
		await until("the button is itself again", () => page.textContent(".copy-command"), (text) => text === "Copy command");
	}
	equal("11 runs", await page.textContent(".facts"), "which runs");
});

test("by keys alone: a site leads to its trend, versions are walked through, and back", async (browser) => {
	const page = await open(browser, "tab=grew");
	await shows(page, "grew");
	check((await page.textContent(".facts")).includes("from 1.0 (5 runs) to 1.1 (5 runs)"), "which versions");
	await page.locator(".panel tbody tr").nth(1).focus();
	await page.keyboard.press("Enter");
	await shows(page, `trend/--site/${given.odd}`);
	equal(String(given.answers.grew.rows[1].site), await page.inputValue("[data-field=site]").then((text) => String(Number(text))), "the site's number");
	await page.locator(".panel canvas").focus();
	await page.keyboard.press("ArrowRight");
	await page.keyboard.press("ArrowRight");
	check((await page.textContent(".panel .tip")).startsWith("1.1: 2.0 KiB"), "the later version");
	await page.keyboard.press("Backspace");
	await shows(page, "grew");
	await page.locator("#tab-grew").focus();
	await page.keyboard.press("ArrowRight");
	await shows(page, "sites");
	await page.keyboard.press("Escape");
	await page.locator(".panel tbody tr").first().focus();
	await page.keyboard.press("?");
	check((await page.textContent("dialog[open]")).includes("robust deviations"), "help is about this page");
	await page.keyboard.press("Escape");
	await page.keyboard.press("/");
	await page.keyboard.type("host=web4");
	await page.keyboard.press("Enter");
	await shows(page, "sites/--label/host=web4");
});

test("an outlier leads to its sites, and a trace to its command", async (browser) => {
	const page = await open(browser, "tab=hosts");
	await shows(page, "hosts");
	await page.locator(".panel tbody tr", { hasText: "▲ yes" }).click();
	await shows(page, "sites/--label/host=web4");
	await page.keyboard.press("5");
	await until("its runs", () => figures(page), (rows) => rows.length === 2 && rows.every((row) => row.host === "web4"));
	await page.locator(".panel tbody tr").first().click();
	equal(`This trace alone: tidemark view '${given.place}?trace=${(await figures(page))[0].trace}'`, await page.textContent(".trace-line"), "the command");
	const alone = await open(browser, "tab=hosts&label=host%3Dweb1");
	await shows(alone, "hosts/--label/host=web1");
	check((await alone.textContent(".banners")).includes("Fewer than four hosts"), "that none is judged");
});

test("versions are chosen by name, and what is not there is said", async (browser) => {
	const page = await open(browser, "tab=grew", { allowed: (text) => text.includes("status of 400") });
	await page.fill("[data-field=before]", "1.0");
	await page.keyboard.press("Enter");
	await page.fill("[data-field=after]", "1.1");
	await page.keyboard.press("Enter");
	await shows(page, "grew/--before/1.0/--after/1.1");
	await page.fill("[data-field=after]", "9");
	await page.keyboard.press("Enter");
	await until("no such version", () => page.textContent(".panel tbody"), (text) => text.includes("no run has version=9"));
	equal("", await page.textContent(".facts"), "facts of nothing");
	await page.fill("[data-field=since]", "soon");
	await page.keyboard.press("Enter");
	await until("no time", () => page.textContent(".panel tbody"), (text) => text.includes("--since soon: a time such as"));
});

test("a database that goes away is said, and asked again when it is back", async (browser) => {
	const page = await open(browser, "tab=sites", { allowed: (text) => text.includes("status of 502") });
	await shows(page, "sites");
	await have("kill");
	await page.keyboard.press("r");
	await until("no answer", () => page.textContent(".banners"), (text) => text.includes("No answer.") && text.includes("127.0.0.1"));
	equal([], await figures(page), "old figures");
	await have("start");
	await page.locator("button", { hasText: "Ask again" }).click();
	await shows(page, "sites");
	equal("", await page.textContent(".banners"), "what was said");
});

test("nothing serious for axe, in light and dark, and it fits", async (browser) => {
	const found = [];
	for (const scheme of ["light", "dark"])
		for (const tab of TABS) {
			const page = await open(browser, `tab=${tab}`, { scheme, width: 1024 });
			await shows(page, tab);
			await settled(page);
			check(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${tab} fits 1024 pixels`);
			await page.evaluate(readFileSync(AXE, "utf8"));
			const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
			for (const one of violations)
				if (["serious", "critical"].includes(one.impact)) found.push(`${scheme} ${tab}: ${one.id} ${one.nodes[0].html.slice(0, 160)}`);
			await page.context().close();
		}
	equal([], found, "findings");
});

test("screenshots of every question", async (browser) => {
	const folder = screensFolder();
	if (!folder) throw new Skip("only where TIDEMARK_SCREENS names a folder");
	for (const [i, tab] of TABS.entries()) {
		const page = await open(browser, `tab=${tab}`, { scheme: i % 2 ? "dark" : "light", width: 1280, height: 620 });
		await shows(page, tab);
		await settled(page);
		await page.screenshot({ path: path.join(folder, `fleet-${tab}.png`) });
	}
});

await main(await Browser.start());
