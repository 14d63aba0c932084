// The viewer in a browser: what a person does, and what the page must then say. The figures are those
// of exercise2, which are known to the byte. Called by viewer.py with what it has prepared:
//     node libchecks.mjs JSON
import { readFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { AXE, Browser, check, drag, equal, figure, main, ready, rows, screensFolder, settled, Skip, tab, test, until, untilEqual, walk } from "./libviewer.mjs";

const given = JSON.parse(process.argv[2]);
const BUFFER = 10 * 1024 * 1024;
const marks = Object.fromEntries(given.marks.map((mark) => [mark.name, mark.time_ns]));
const SCREENS = ["window", "flame", "sizes", "threads", "space", "growth", "peaks", "resident", "diff"];
const HEAP10S = { "impact:impacting": [319, 12760, 12760], "impact:persistent": [528, 103120, 0], "": [847, 115880, 12760] };
const LAST4 = { "impact:transient": [4, 4 * BUFFER, 0], "impact:persistent": [2, 2 * BUFFER, 0], "": [6, 62914560, 0] };

const home = (state = "tab=window") => `${given.url}&${state || "tab=window"}`;
const phase = (name) => `from=mark:ex2.${name}.begin&to=mark:ex2.${name}.end`;
const dragPhase = (page, name, shift) =>
	drag(page, marks[`ex2.${name}.begin`], marks[`ex2.${name}.end`], given.duration_ns, shift);

// What the server itself says.
async function ask(path) {
	const [server, token] = given.url.split("/#t=");
	const response = await fetch(`${server}/api/${path}`, { headers: { Authorization: `Bearer ${token}` } });
	check(response.ok, `${path}: status ${response.status}`);
	return response.json();
}

async function typeFilter(page, words) {
	await page.keyboard.press("/");
	await page.keyboard.type(words);
	await page.keyboard.press("Enter");
}

test("ten seconds of the heap, dragged between marks, are exact", async (browser) => {
	const page = await browser.open(home());
	await ready(page);
	await dragPhase(page, "heap10s");
	await untilEqual(HEAP10S, "the window's rows", () => rows(page));
	equal("mark:ex2.heap10s.begin", await page.inputValue("[aria-label='Window begins at']"), "where it begins");
	const inner = await rows(page, 2);
	equal([[319, 12760, 12760]], Object.entries(inner).filter(([id]) => id.startsWith("impact:impacting/")).map(([, row]) => row), "the leak");
	check((await page.textContent(".panel")).includes("InnerLoopOperation"), "InnerLoopOperation is named");
	await untilEqual(12760, "impacting in the summary", () => figure(page, "impacting"));
	equal(103120, await figure(page, "before"), "before");
	equal(115880, await figure(page, "after"), "after");
});

test("while one does nothing the page asks what its other tabs will", async (browser) => {
	const page = await browser.open(home());
	const asked = [];
	page.on("request", (request) => {
		const { pathname, searchParams } = new URL(request.url());
		const lane = searchParams.get("lane") ?? "";
		searchParams.delete("lane");
		asked.push([lane.startsWith("ahead-"), `${pathname}?${searchParams}`]);
	});
	await ready(page);
	const ahead = await until("it asks ahead", () => asked.filter(([is]) => is).map(([, question]) => question), (all) => all.length >= 7);
	equal(["findings", "growth", "peaks", "sizelife", "transients", "window", "window"], ahead.map((question) => question.match(/api\/(\w+)/)[1]).sort(), "what is asked ahead");
	await settled(page);
	for (const name of ["growth", "peaks", "sizes", "findings"]) {
		asked.length = 0;
		await tab(page, name);
		await settled(page);
		const slow = asked.map(([, question]) => question).filter((question) => /\/(growth|peaks|transients|sizelife|findings)\?|impact=AIFO/.test(question));
		check(slow.length > 0 && slow.every((question) => ahead.includes(question)), `${name} asks ${slow}, ahead was ${ahead}`);
	}
});

test("the growth in the middle is one buffer of 10 MiB", async (browser) => {
	const page = await browser.open(home("layer=vm"));
	await ready(page);
	await typeFilter(page, "--frame ^commit10$");
	await dragPhase(page, "growth");
	await untilEqual({ "impact:impacting": [1, BUFFER, BUFFER], "impact:persistent": [1, BUFFER, 0], "": [2, 2 * BUFFER, BUFFER] },
		"the window's rows", () => rows(page));
});

test("four transient spikes are exact, and their row lights up when they lived", async (browser) => {
	const page = await browser.open(home("layer=vm&frame=%5Ecommit10%24"));
	await ready(page);
	await dragPhase(page, "last4");
	await untilEqual(LAST4, "the window's rows", () => rows(page));
	equal("0", await page.getAttribute(".surface", "data-intervals"), "intervals before");
	await page.locator("tr[data-id^='impact:transient/stack']").click();
	await until("four intervals are shown", () => page.getAttribute(".surface", "data-intervals"), (n) => n === "4");
	await page.locator(".tools button", { hasText: "Stack" }).click();
	const stack = await page.textContent(".stack-panel");
	for (const name of ["commit10", "ManipulateTemporaryBuffer", "Operation1", "main"]) check(stack.includes(name), `${name} is in ${stack}`);
	await page.locator(".stack-panel button.place", { hasText: "exercise2.c" }).first().click();
	await until("the source line is shown", () => page.locator(".source .here").count(), (n) => n === 1);
	check((await page.textContent(".source .here")).includes("mmap"), "the line that maps");
});

test("the whole run, exits counted as frees or not", async (browser) => {
	const page = await browser.open(home());
	await ready(page);
	await untilEqual({ "impact:impacting": [1200, 130000, 130000], "": [1200, 130000, 130000] }, "outstanding", () => rows(page));
	await page.locator("summary", { hasText: "Columns" }).click();
	await page.getByLabel("Exit frees").check();
	await untilEqual({ "impact:transient": [1200, 130000, 0], "": [1200, 130000, 0] }, "freed by the exit", () => rows(page));
});

test("any grouping, sorted by any header, with any columns", async (browser) => {
	const page = await browser.open(home(phase("heap10s")));
	await ready(page);
	await page.locator("[aria-label='groupings']").selectOption("impact,size,stack");
	await page.locator("tr[data-id='impact:impacting/size:40'] .twist").click();
	await untilEqual([319, 12760, 12760], "40 bytes, impacting", async () =>
		Object.entries(await rows(page, 3)).find(([id]) => id.startsWith("impact:impacting/size:40/stack:"))?.[1]);
	await page.locator("[aria-label='groupings']").selectOption("function");
	await page.locator("th[data-key='count'] button").click();
	const names = async () => page.locator("tr[data-id] .label").allTextContents();
	await untilEqual(["InnerLoopOperation", "Startup"], "by count", names);
	await page.locator("th[data-key='count'] button").click();
	await untilEqual(["Startup", "InnerLoopOperation"], "by count, rising", names);
	await page.locator("summary", { hasText: "Columns" }).click();
	await page.getByLabel("p99 life").check();
	await until("a column more", () => page.locator("th[data-key='p99']").count());
	// Keys are picked and dragged.
	await page.locator("[aria-label='add a key']").selectOption("impact");
	await page.locator(".key[data-key='impact']").dragTo(page.locator(".key[data-key='function']"));
	await untilEqual(["impact", "function"], "the order of keys", () => page.locator(".key").evaluateAll((keys) => keys.map((key) => key.dataset.key)));
	await untilEqual(HEAP10S, "by impact again", () => rows(page));
});

test("filter to the selected row, and out of it", async (browser) => {
	const page = await browser.open(home(phase("heap10s")));
	await ready(page);
	await page.locator("tr[data-id='impact:persistent']").click();
	await page.keyboard.press("x");
	await untilEqual({ "impact:impacting": [319, 12760, 12760], "": [319, 12760, 12760] }, "without what persists", () => rows(page));
	await page.goBack();
	await untilEqual(HEAP10S, "back again", () => rows(page));
	await page.locator("tr[data-id='impact:persistent']").click();
	await page.keyboard.press("f");
	await untilEqual({ "impact:persistent": [528, 103120, 0], "": [528, 103120, 0] }, "what persists alone", () => rows(page));
});

test("a question that was given up does not overtake a newer one", async (browser) => {
	const page = await browser.open(home(`tab=flame&${phase("heap10s")}`));
	await ready(page);
	const held = {};
	for (const path of ["peaks", "tree"]) {
		const letGo = new Promise((go) => { held[path] = go; });
		await page.route(new RegExp(`/api/${path}`), async (route) => { await letGo; await route.continue().catch(() => {}); });
	}
	const asked = (path) => page.waitForRequest((request) => request.url().includes(`/api/${path}`));
	const choose = (name, path) => Promise.all([asked(path), page.getByRole("button", { name, exact: true }).click()]);
	await choose("At the peak", "peaks");
	await choose("Count", "tree");
	const answered = page.waitForResponse((response) => response.url().includes("/api/peaks"));
	held.peaks();
	await (await answered).finished();
	await page.evaluate(() => new Promise((painted) => requestAnimationFrame(() => setTimeout(painted))));
	held.tree();
	await page.getByRole("button", { name: "Text" }).click();
	await untilEqual("79.2 %", "671 of 847 blocks", () => page.locator(".outline tr", { hasText: "InnerLoopOperation" }).first().locator("td").nth(1).textContent());
});

test("when a row that is chosen no more was alive is not shown", async (browser) => {
	const page = await browser.open(home(`layer=vm&frame=%5Ecommit10%24&${phase("last4")}`));
	await ready(page);
	const row = page.locator("tr[data-id^='impact:transient/stack']");
	await row.waitFor();
	let letGo;
	const held = new Promise((go) => { letGo = go; });
	await page.route(/by=lifetime/, async (route) => { await held; await route.continue().catch(() => {}); });
	await Promise.all([page.waitForRequest(/by=lifetime/), row.click()]);
	await page.keyboard.press("Escape");
	await until("no row is chosen", () => page.locator("tr[aria-selected='true']").count(), (n) => n === 0);
	letGo();
	await settled(page);
	equal("0", await page.getAttribute(".surface", "data-intervals"), "intervals");
});

test("a size is filtered out, and the filter turned around", async (browser) => {
	const page = await browser.open(home(`by=size&exact=1&${phase("heap10s")}`));
	await ready(page);
	await page.locator("tr[data-id='size:40']").click();
	await page.keyboard.press("x");
	await until("no row of that size", () => rows(page), (seen) => !("size:40" in seen) && seen[""]?.[0] === 176);
	check((await page.textContent(".chips")).includes("not size"), "the filter says what it leaves out");
	await page.locator(".chip .turn").click();
	await untilEqual({ "size:40": [671, 26840, 12760], "": [671, 26840, 12760] }, "that size alone", () => rows(page));
	await page.reload();
	await ready(page);
	await untilEqual({ "size:40": [671, 26840, 12760], "": [671, 26840, 12760] }, "after a reload", () => rows(page));
});

test("the flame graph says the same as text", async (browser) => {
	const page = await browser.open(home(`tab=flame&layer=vm&frame=%5Ecommit10%24&impact=transient&${phase("last4")}`));
	await ready(page);
	await page.getByRole("button", { name: "Text" }).click();
	await until("the outline is there", () => page.locator(".outline tbody tr").count());
	const lines = await page.locator(".outline tbody tr").evaluateAll((all) => all.map((tr) =>
		[tr.querySelector(".code").textContent, tr.children[1].textContent, tr.getAttribute("aria-level")]));
	const below = lines.slice(lines.findIndex(([name]) => name === "main")).map(([name, value]) => [name, value]);
	equal(["main", "Operation1", "ManipulateTemporaryBuffer", "commit10"], below.slice(0, 4).map(([name]) => name), "from main to who allocates");
	equal(["40.0 MiB"], [...new Set(below.slice(0, 4).map(([, value]) => value))], "all of it");
	await page.getByRole("button", { name: "Inverted" }).click();
	await until("the allocating function comes first", () => page.locator(".outline tbody tr .code").allTextContents(),
		(names) => names.indexOf("commit10") < names.indexOf("main") && names.includes("main"));
	for (const name of ["Impacting", "Count", "At the peak", "Size"]) {
		await page.getByRole("button", { name, exact: true }).click();
		await untilEqual("true", name, () => page.getByRole("button", { name, exact: true }).getAttribute("aria-pressed"));
	}
	await page.getByRole("button", { name: "Picture" }).click();
	await settled(page);
	await walk(page, page.locator(".stage canvas"), /MiB/);
	await page.keyboard.press("Enter");
	await until("a box is widened", async () => new URL(page.url()).hash, (hash) => hash.includes("focus="));
});

test("a band of the histogram and a cell of the heat map filter the table", async (browser) => {
	const page = await browser.open(home(`tab=sizes&${phase("heap10s")}`));
	await ready(page);
	const bars = page.locator(".pictures canvas").first();
	await settled(page);
	await walk(page, bars, /33 B – 64 B/);
	await page.keyboard.press("Enter");
	await untilEqual({ "impact:impacting": [319, 12760, 12760], "impact:persistent": [352, 14080, 0], "": [671, 26840, 12760] }, "33 to 64 bytes", () => rows(page));
	check((await page.textContent(".chips")).includes("33..64"), "the filter is shown");
	await page.keyboard.press("Enter");
	await untilEqual(HEAP10S, "the same again takes it away", () => rows(page));
});

test("threads and heaps have the figures of the window", async (browser) => {
	const page = await browser.open(home(`tab=threads&${phase("heap10s")}`));
	await ready(page);
	for (const title of ["Threads", "Heaps", "Processes"])
		await untilEqual(["12760", "12760", "115880", "847"], title, () =>
			page.locator(`section[aria-label='${title}'] tbody tr`).first().locator("td.number").evaluateAll((all) => all.slice(0, 4).map((td) => td.dataset.value)));
});

test("the address space follows its slider, and a cell names who holds it", async (browser) => {
	const page = await browser.open(home("tab=space"));
	await ready(page);
	await until("the map is there", () => page.locator("[data-figure='mapped']").count());
	const slider = page.locator("input.moment");
	const mappedAt = async (ns) => {
		await slider.fill(String(Math.round(ns / given.duration_ns * 1000)));
		const moment = new URLSearchParams(new URL(page.url()).hash.slice(1)).get("at");
		check(moment, "the address knows the moment");
		const { mapped } = await ask(`map?n=1&at=${encodeURIComponent(moment)}`);
		await untilEqual(mapped, `what is mapped at ${moment}`, () => figure(page, "mapped"));
		return mapped;
	};
	const atExit = await figure(page, "mapped");
	const late = await mappedAt((marks["ex2.last4.begin"] + marks["ex2.last4.end"]) / 2);
	check(late > atExit + BUFFER, `more is mapped with both buffers, ${late}, than at the end, ${atExit}`);
	await mappedAt(marks["ex2.heap10s.begin"]);
	await page.locator("section[aria-label='Who is in the way'] tbody tr").first().waitFor();
	await settled(page);
	// To a cell that somebody holds, wherever the system put it.
	await walk(page, page.locator(".stage canvas"), /part of 0x/);
	await page.keyboard.press("Enter");
	await until("a stack, or the file, is named", () => page.locator(".stack-panel").textContent(), (text) => /at 0x[0-9a-f]+/.test(text ?? ""));
});

test("growth of a window that is too short to judge is not said to be none", async (browser) => {
	const page = await browser.open(home("tab=growth&from=1s&to=1000000040ns"));
	await until("nothing was judged", () => page.locator("section[aria-label='Growth'] tbody").textContent(),
		(text) => /^Nothing was judged/.test(text));
});

test("growth, what is held, peaks and resident memory", async (browser) => {
	const page = await browser.open(home("tab=growth"));
	await ready(page);
	await until("the leak grows", () => page.locator("section[aria-label='Growth'] tbody").textContent(),
		(text) => new RegExp(`InnerLoopOperation.*${given.growth.replace("_", " ")}`).test(text));
	await untilEqual(["88200", "40960", "840"], "what is held", () =>
		page.locator("section[aria-label='Still allocated'] tbody tr td:nth-child(2)").evaluateAll((all) => all.map((td) => td.dataset.value)));
	await tab(page, "Peaks");
	await page.locator("[data-key='vm']").click();
	const heights = () => page.locator("section[aria-label='Peaks'] tbody tr").count();
	await until("the spikes are peaks", heights, (n) => n >= 8);
	await page.keyboard.press("n");
	const first = await until("n goes to one", () => page.inputValue("[aria-label='Window begins at']"));
	await page.keyboard.press("n");
	await until("and to the next", () => page.inputValue("[aria-label='Window begins at']"), (at) => at !== first);
	await settled(page);
	const all = await until("all peaks are listed", heights, (n) => n >= 8);
	for (const [edge, word] of [["ends", "end"], ["begins", "50%"]]) {
		await page.fill(`[aria-label='Window ${edge} at']`, word);
		await page.keyboard.press("Enter");
	}
	await settled(page);
	const some = await until("those of the window alone", heights, (n) => n > 0 && n < all);
	await page.locator("section[aria-label='Peaks'] tbody tr").first().click();
	await settled(page);
	check(await heights() === some, "a peak that is chosen leaves the list as it is");
	await tab(page, "Resident");
	await until("the snapshot is divided up", () => page.locator("section[aria-label='Held by'] tbody tr").count(), (n) => n >= 5);
	await until("own mappings", () => page.textContent("section[aria-label='Held by']"), (text) => text.includes("The program's own mappings"));
});

test("two windows are compared, drawn with shift", async (browser) => {
	const page = await browser.open(home("layer=vm&frame=%5Ecommit10%24"));
	await ready(page);
	await dragPhase(page, "growth");
	await dragPhase(page, "last4", true);
	await page.getByRole("button", { name: "Compare A with B" }).click();
	await untilEqual(0, "live at the end of both", () => figure(page, "diff live"));
	await untilEqual(3 * BUFFER, "allocated in B more than in A", () => figure(page, "diff allocated"));
	await page.getByRole("button", { name: "Forget B" }).click();
	check(!new URL(page.url()).hash.includes("with-from"), "the second window is forgotten");
});

test("two traces are compared, both curves drawn", async (browser) => {
	const page = await browser.open(home("tab=diff&diff=allocated&layer=heap"));
	const asked = [];
	page.on("request", (request) => asked.push(new URL(request.url()).pathname));
	await page.reload();
	await ready(page);
	await untilEqual(given.diff_allocated, "allocated more", () => figure(page, "diff allocated"));
	await until("the second trace's curve is asked for", () => asked.includes("/api/diff/timeline"));
	check((await page.textContent(".sides")).includes("other.tide"), "the second trace is named");
});

test("the address holds all of it: a new tab shows the same", async (browser) => {
	const page = await browser.open(home());
	await ready(page);
	await dragPhase(page, "heap10s");
	await page.locator("th[data-key='size'] button").click();
	await typeFilter(page, "--size ..64");
	const wanted = { "impact:impacting": [319, 12760, 12760], "impact:persistent": [352, 14080, 0], "": [671, 26840, 12760] };
	await untilEqual(wanted, "the window's rows", () => rows(page));
	const other = await browser.openIn(page.context(), page.url());
	await ready(other);
	await untilEqual(wanted, "the rows in the other tab", () => rows(other));
	equal("descending", await other.getAttribute("th[data-key='size']", "aria-sort"), "the order");
	await page.goBack();
	await untilEqual(HEAP10S, "the way back", () => rows(page));
});

test("all of it with the keyboard alone", async (browser) => {
	const page = await browser.open(home());
	await ready(page);
	const focused = (selector) => page.evaluate((selector) => document.activeElement?.matches(selector) ?? false, selector);
	const tabTo = async (selector) => {
		for (let i = 0; i < 60; i++) {
			if (await focused(selector)) return;
			await page.keyboard.press("Tab");
		}
		throw new Error(`60 times Tab did not lead to ${selector}`);
	};
	await tabTo(".surface");
	await page.keyboard.press("m");
	await untilEqual(HEAP10S, "the first phase", () => rows(page));
	await settled(page);
	await tabTo("tr[data-id]");
	await page.keyboard.press("ArrowDown");
	await page.keyboard.press("Enter");
	await until("a row is selected", () => page.locator("tr[aria-selected='true']").count(), (n) => n === 1);
	await page.keyboard.press("ArrowRight");
	await until("its stack is open", () => page.locator(".frame-row").count(), (n) => n > 2);
	check((await page.textContent(".panel")).includes("step_of_main"), "the callers are read");
	await settled(page);
	await page.keyboard.press("s");
	await until("the stack panel has the focus", () => focused(".stack-panel"));
	await page.keyboard.press("Escape");
	await until("the focus is back", () => focused("tr[data-id]"));
	await page.keyboard.press("f");
	await until("the row is a filter", () => page.locator(".chip").count(), (n) => n >= 1);
	await page.keyboard.press("Backspace");
	await until("and is none again", () => page.locator(".chip").count(), (n) => n === 0);
	await page.keyboard.press("?");
	await until("help is open", () => page.locator("dialog[open]").count(), (n) => n === 1);
	await page.keyboard.press("Escape");
	await until("help is shut", () => page.locator("dialog[open]").count(), (n) => n === 0);
	await page.keyboard.press("0");
	await untilEqual("tab-findings", "the first page", () => page.locator("[role='tab'][aria-selected='true']").getAttribute("id"));
	for (let i = 1; i <= SCREENS.length; i++) {
		await page.keyboard.press(String(i));
		await untilEqual(`tab-${SCREENS[i - 1]}`, "the tab", () => page.locator("[role='tab'][aria-selected='true']").getAttribute("id"));
	}
	await page.keyboard.press("a");
	await untilEqual("", "all of it", () => page.inputValue("[aria-label='Window begins at']"));
});

test("names are found, and words that make no sense are told", async (browser) => {
	const page = await browser.open(home(phase("heap10s")), { allowed: (text) => text.includes("400") });
	await ready(page);
	await page.keyboard.press("/");
	await page.keyboard.type("innerloop");
	await until("a name is found", () => page.locator(".suggestions li").first().textContent(), (text) => text?.includes("InnerLoopOperation"));
	await settled(page);
	await page.keyboard.press("ArrowDown");
	await page.keyboard.press("Enter");
	await untilEqual([671, 26840, 12760], "the function alone", async () => (await rows(page))[""]);
	await page.getByRole("combobox", { name: "Search or filter" }).fill("--size nonsense");
	await page.keyboard.press("Enter");
	await until("the mistake is told", () => page.locator(".panel .error").textContent().catch(() => ""), (text) => /size/.test(text ?? ""));
	await page.fill("[aria-label='Window begins at']", "mark:nobody");
	await page.keyboard.press("Tab");
	await untilEqual("true", "a moment that there is not", () => page.getAttribute("[aria-label='Window begins at']", "aria-invalid"));
});

test("tables and pictures become files", async (browser) => {
	const page = await browser.open(home(phase("heap10s")));
	await ready(page);
	await untilEqual(HEAP10S, "the window's rows", () => rows(page));
	const save = async (item) => {
		await page.locator("summary", { hasText: "Export" }).click();
		const [download] = await Promise.all([page.waitForEvent("download"), page.locator(".menu-body .item", { hasText: item }).click()]);
		return readFileSync(await download.path());
	};
	const csv = (await save("Table as CSV")).toString();
	check(csv.startsWith("impact,stack,impacting,size,count,peak,stack_id,place,frames\r\n"), `the header of ${csv}`);
	check(csv.includes("Impacting,InnerLoopOperation,12760,12760,319,"), csv);
	check((await save("Timeline as SVG")).toString().startsWith("<svg xmlns="), "an SVG");
	equal("89504e47", (await save("Timeline as PNG")).subarray(0, 4).toString("hex"), "a PNG");
	await tab(page, "Flame graph");
	await settled(page);
	check((await save("Flame graph as SVG")).toString().includes("InnerLoopOperation"), "names in the SVG");
});

test("a strip is painted when it is answered, and says until then that it is counted", async (browser) => {
	const page = await browser.open(home(""));
	await ready(page);
	await settled(page);
	// Resident memory takes its time now; all others do not wait for it.
	let free;
	const held = new Promise((go) => { free = go; });
	await page.route(/layer=rss/, async (route) => { await held; await route.continue(); });
	const curve = (name) => page.evaluate((one) => [...document.querySelectorAll(".strip")].map((strip) => strip.dataset[one] ?? ""), name);
	await page.reload();
	await until("the first strip has a curve", () => curve("state"), (states) => states[0] === "shown");
	const states = await curve("state");
	check(states.includes("counting"), `one is being counted: ${states}`);
	await until("what takes long is told", () => page.locator(".working").textContent(), (text) => /resident memory [1-9]\d* s/.test(text));
	free();
	await until("all have one", () => curve("state"), (all) => all.every((state) => state === "shown"));
	await untilEqual("", "what is being counted", () => page.locator(".working").textContent());
});

test("a command is for any folder, and asks what the page asks", async (browser) => {
	const page = await browser.open(home("tab=growth&impact=transient&size=1..4096"));
	await ready(page);
	await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
	const copied = async () => {
		await page.locator(".copy-command").click();
		await until("it is copied", () => page.locator(".copy-command").textContent(), (text) => text === "copied");
		const text = await page.evaluate(() => navigator.clipboard.readText());
		await until("the button is itself again", () => page.locator(".copy-command").textContent(), (one) => one === "Copy command");
		return text;
	};
	const growth = await copied();
	check(/^tidemark growth '?\/\S+ex2\.tide'? /.test(growth), growth);
	check(growth.includes("--size 1..4096") && !growth.includes("--impact"), growth);
	await tab(page, "Resident");
	check(/ reconcile '?\/\S+ex2\.tide'? --at peak --rows 100$/.test(await copied()), "resident");
});

test("resident memory at its peak shows the peak", async (browser) => {
	const page = await browser.open(home("tab=resident"));
	await ready(page);
	await until("the peak", () => page.locator("[data-figure='resident peak']").getAttribute("data-value").catch(() => null),
		(value) => Number(value) >= given.rss_peak && Number(value) > 0);
});

test("a low window and twice the size keep a panel that can be used", async (browser) => {
	for (const [width, height] of [[1024, 640], [640, 430]])
		for (const screen of ["findings", ...SCREENS]) {
			const page = await browser.open(home(`tab=${screen}`), { width, height });
			await ready(page);
			await settled(page);
			const panel = await page.locator("#panel").boundingBox();
			check(panel.height >= Math.min(300, height * 0.8), `${screen} at ${width}x${height}: a panel of ${panel.height}`);
			check(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${screen} fits ${width} pixels`);
			if (screen === "window") { // the first rows are above the fold
				const row = await page.locator("#panel tbody tr").nth(1).boundingBox();
				check(row.y + row.height <= height, `the second row at ${width}x${height} ends at ${row.y + row.height}`);
			}
			await page.locator("#panel").scrollIntoViewIfNeeded();
			const folder = screensFolder();
			if (folder) await page.screenshot({ path: path.join(folder, `small-${screen}-${width}.png`) });
			await page.context().close();
		}
});

test("the first page shows findings, and each opens where it is proven", async (browser) => {
	const page = await browser.open(given.findings);
	await ready(page);
	const told = await until("findings", () => page.locator(".finding").count(), (n) => n > 0);
	equal(told, await page.locator(".finding .evidence").count(), "a way to each");
	await untilEqual("tab-findings", "the tab", () => page.locator("[role='tab'][aria-selected='true']").getAttribute("id"));
	check((await page.textContent(".missed summary")).includes("not looked for"), "what was not looked for");
	check((await page.textContent("[data-finding='peak#1'] code")).startsWith("tidemark transients"), "the command");
	await page.locator("[data-finding='peak#1'] .evidence").click();
	await untilEqual("tab-window", "its view", () => page.locator("[role='tab'][aria-selected='true']").getAttribute("id"));
	const [, from, to] = /from=(\d+)ns&to=(\d+)ns/.exec(new URL(page.url()).hash);
	check(from > 4e9 && from < 5e9 && to > 5e9 && to < 6e9, `the time of the peak, from before it: ${page.url()}`);
	await page.keyboard.press("Backspace");
	await until("back", () => page.locator(".finding").count(), (n) => n === told);
	const folder = screensFolder();
	for (const [scheme, width, height] of [["light", 1280, 860], ["dark", 1024, 640], ["light", 512, 320]]) {
		const small = await browser.open(given.findings, { scheme, width, height });
		await until("findings", () => small.locator(".finding").count(), (n) => n === told);
		const wide = await small.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
		check(wide <= 0, `no line is wider than ${width}: ${wide}`);
		await small.evaluate(readFileSync(AXE, "utf8"));
		const found = await small.evaluate(() => globalThis.axe.run(".findings", { resultTypes: ["violations"] }));
		equal([], found.violations.map((one) => `${one.id}: ${one.nodes[0].html}`), `axe, ${scheme}`);
		if (folder) await small.screenshot({ path: path.join(folder, `findings-${scheme}-${width}.png`) });
	}
});

test("a name from a stranger's program is text and nothing else", async (browser) => {
	if (!given.hostile) throw new Skip("needs a compiler");
	for (const screen of ["window", "flame", "growth"]) {
		const page = await browser.open(`${given.hostile}&tab=${screen}${screen === "flame" ? "&text=1" : ""}`);
		await ready(page);
		await until("the name is shown", () => page.locator(".panel").textContent(), (text) => text.includes("<img src=x onerror=alert(1)>"));
		equal(0, await page.locator(".panel img").count(), "images");
	}
});

test("a cut trace says so on top", async (browser) => {
	const page = await browser.open(given.cut);
	await ready(page);
	check((await page.textContent(".banner.cut")).includes("This trace is cut"), "the banner");
});

test("a trace that is gone says so, and what was shown stays", async (browser) => {
	const page = await browser.open(given.gone, { allowed: (text) => text.includes("410") });
	await ready(page);
	process.stdout.write("# remove\n");
	await new Promise((wake) => process.stdin.once("data", wake));
	await dragPhase(page, "heap10s");
	await until("the banner", () => page.locator(".banner.gone").count(), (n) => n === 1);
});

test("without its key, or with an old one, the page says what to do", async (browser) => {
	const bare = await browser.open(given.url.split("#")[0]);
	await until("it needs its key", () => bare.locator(".problem").textContent(), (text) => text.includes("needs its key"));
	const old = await browser.open(given.url.replace(/t=[0-9a-f]+/, `t=${"0".repeat(32)}`), { allowed: (text) => text.includes("401") });
	await until("it has an old key", () => old.locator(".problem").textContent(), (text) => text.includes("old key"));
});

test("nothing serious for axe, in light and dark, on any screen", async (browser) => {
	const found = [];
	for (const scheme of ["light", "dark"])
		for (const screen of SCREENS) {
			const page = await browser.open(home(`tab=${screen}&layer=vm&${phase("last4")}`), { scheme, width: 1024 });
			await ready(page);
			await settled(page);
			equal(scheme, await page.evaluate(() => document.documentElement.dataset.theme), "the theme");
			check(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${screen} fits 1024 pixels`);
			// Run from outside: the page's policy lets no other script in.
			await page.evaluate(readFileSync(AXE, "utf8"));
			const results = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
			for (const violation of results.violations)
				if (["serious", "critical"].includes(violation.impact))
					found.push(`${scheme} ${screen}: ${violation.id} ${violation.nodes[0].html.slice(0, 160)} ${violation.nodes[0].failureSummary?.replace(/\s+/g, " ").slice(0, 200)}`);
			await page.context().close();
		}
	equal([], found, "findings");
});

test("one file, from disk, without a network", async (browser) => {
	if (!given.single) throw new Skip("tidemark view writes no single file yet");
	const page = await browser.open(`${pathToFileURL(path.resolve(given.single))}#${phase("heap10s")}`, { offline: true });
	await ready(page);
	await untilEqual(HEAP10S, "the window's rows", () => rows(page));
	check((await page.textContent(".panel")).includes("InnerLoopOperation"), "rows are called as the server calls them");
	await page.keyboard.press("Escape");
	check((await page.textContent(".banner.coarse")).length > 20, "it says what it is");
	for (const screen of SCREENS) {
		await page.keyboard.press(String(SCREENS.indexOf(screen) + 1));
		await untilEqual(`tab-${screen}`, "the tab", () => page.locator("[role='tab'][aria-selected='true']").getAttribute("id"));
		await settled(page);
	}
	const vm = await browser.open(`${pathToFileURL(path.resolve(given.single))}#layer=vm&frame=%5Ecommit10%24`, { offline: true });
	await ready(vm);
	await dragPhase(vm, "last4");
	await untilEqual(LAST4, "the spikes", () => rows(vm));
});

test("screenshots of every screen", async (browser) => {
	const folder = screensFolder();
	if (!folder) throw new Skip("only where TIDEMARK_SCREENS names a folder");
	const states = {
		window: `layer=vm&frame=%5Ecommit10%24&${phase("last4")}`, flame: "layer=vm&frame=%5Ecommit10%24", sizes: "", threads: "", space: "at=50%25",
		growth: "", peaks: "layer=vm", resident: "", diff: "layer=vm&from=begin&to=mark:ex2.growth.begin&with-from=mark:ex2.growth.begin&with-to=mark:ex2.last4.end",
	};
	for (const [i, screen] of SCREENS.entries()) {
		const page = await browser.open(home(`tab=${screen}&${states[screen]}`), { scheme: i % 2 ? "dark" : "light", width: 1280, height: 800 });
		await ready(page);
		if (screen === "window") await page.locator("tr[data-id^='impact:transient/stack']").click();
		await page.mouse.move(2, 2);
		await settled(page);
		await page.screenshot({ path: path.join(folder, `${screen}.png`) });
	}
});

await main(await Browser.start());
