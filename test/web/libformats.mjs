// Exported files in the pages that they are for. Called by formats.py with what it has prepared:
//     node libformats.mjs JSON
import { pathToFileURL } from "node:url";
import { Browser, check, equal, main, Skip, test, until } from "./libviewer.mjs";

const given = JSON.parse(process.argv[2]);
const commas = (number) => number.toLocaleString("en-US");

// A page of somebody's, with one of our files loaded.
async function load(browser, name, file) {
	if (!given.pages[name]) throw new Skip(`${name} is not installed`);
	const page = await browser.open(pathToFileURL(given.pages[name]).href, { allowed: (text) => /favicon|manifest|GPU stall/.test(text) });
	if (name === "speedscope") {
		const [chooser] = await Promise.all([page.waitForEvent("filechooser"), page.locator("label", { hasText: "Browse" }).click()]);
		await chooser.setFiles(file);
	} else {
		await page.locator("input[type=file]").setInputFiles(file);
	}
	return page;
}

const textOf = (page) => page.evaluate(() => document.body.innerText);

test("dh_view has the totals, the peak and the end", async (browser) => {
	const page = await load(browser, "dh_view", given.dhat);
	const text = await until("the tree", () => textOf(page), (seen) => seen.includes("At t-end"));
	const { row, peak } = given;
	for (const [what, bytes, blocks] of [["Total", row.allocated, row.allocated_count], ["At t-gmax", peak.bytes, peak.count], ["At t-end", row.impacting_size, row.impacting_count]]) {
		const found = new RegExp(`${what}: +([\\d,]+) bytes[^\\n]* in ([\\d,]+) blocks`).exec(text);
		check(found, `${what} is not in ${text.slice(0, 1500)}`);
		equal(commas(bytes), found[1], `${what}: bytes`);
		if (blocks !== undefined) equal(commas(blocks), found[2], `${what}: blocks`);
	}
	check(/xmalloc \(lib\/xmalloc\.c:41\)/.test(text), "functions with their lines");
	check(/Command: .*kitchen/.test(text), "the command");
});

test("dh_view takes one of nothing, and one of many processes", async (browser) => {
	const empty = await load(browser, "dh_view", given.empty_dhat);
	await until("the tree", () => textOf(empty), (seen) => /Total: +0 bytes/.test(seen));
	const family = await load(browser, "dh_view", given.family_dhat);
	await until("a process", () => textOf(family), (seen) => /make\[100\]/.test(seen));
});

test("speedscope opens it, and has our figures", async (browser) => {
	const page = await load(browser, "speedscope", given.speedscope);
	await until("the profile's name", () => textOf(page), (seen) => seen.includes("live bytes at the end"));
	await page.getByText("Sandwich").click();
	// Each row: in all, by itself, name. The totals of all functions by themselves are the profile.
	const text = await until("functions", () => textOf(page), (seen) => seen.includes("make_pot"));
	const [, bytes, share] = /([\d.]+ K?B) \((\d+)%\)\s+[\d.]+ K?B \(\d+%\)\s+stir\n/.exec(text) ?? [];
	equal(["1.95 KB", String(Math.round(100 * 2000 / given.row.impacting_size))], [bytes, share], "what lives at the end of 2,000 bytes");
});

test("a flame graph zooms on a click and finds what is searched for", async (browser) => {
	const page = await browser.open(pathToFileURL(given.flamegraph).href);
	const shown = () => page.evaluate(() => [...document.querySelectorAll("g[data-x]")].filter((g) => g.style.display !== "none").length);
	const all = await shown();
	const width = (name) => page.evaluate((name) => +[...document.querySelectorAll("g[data-x]")].find((g) => g.querySelector("title").textContent.startsWith(name)).querySelector("rect").getAttribute("width"), name);
	const narrow = await width("make_pot");
	check(narrow < 1180, "one of several");
	await page.locator("g[data-x]", { hasText: "make_pot" }).first().locator("rect").click();
	equal(1180, Math.round(await width("make_pot")), "its width after a click");
	check(await shown() < all, "others are gone");
	await page.locator("#reset").click();
	equal(Math.round(narrow), Math.round(await width("make_pot")), "its width after reset");
	equal(all, await shown(), "functions after reset");
	page.on("dialog", (dialog) => dialog.accept("^make_pot"));
	await page.locator("#search").click();
	const found = await until("what was found", () => page.textContent("#found"), (text) => text.startsWith("matched"));
	equal((100 * narrow / 1180).toFixed(1), Number(/[\d.]+/.exec(found)[0]).toFixed(1), "the share that matched");
	check(await page.locator("g.hit").count() >= 1, "they are marked");
});

await main(await Browser.start());
