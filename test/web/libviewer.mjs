// What the tests of the viewer in a browser share: claims, a browser that remembers every complaint,
// and ways to read and to drag.
import { createRequire } from "node:module";
import { mkdirSync } from "node:fs";
import path from "node:path";

const require = createRequire(path.join(process.env.TIDEMARK_SOURCE, "web", "package.json"));
const { chromium } = require("playwright-core");
export const AXE = require.resolve("axe-core/axe.min.js");

const LEFT = 78, RIGHT = 14; // of the timeline, beside its curves
const WAIT = 60000; // the machine may have much else to do

let number = 0, failed = 0;
const tests = [];

// TIDEMARK_CHECKS, a regular expression, chooses some.
export function test(name, body) {
	if (new RegExp(process.env.TIDEMARK_CHECKS ?? "").test(name)) tests.push([name, body]);
}

export function check(ok, what) {
	if (!ok) throw new Error(what);
}

export function equal(wanted, got, what) {
	const [a, b] = [JSON.stringify(wanted), JSON.stringify(got)];
	if (a !== b) throw new Error(`${what}: ${b}, not ${a}`);
}

export class Skip extends Error {}

export async function main(tools) {
	console.log(`1..${tests.length}`);
	for (const [name, body] of tests) {
		number++;
		const began = Date.now();
		try {
			await body(tools);
			equal([], tools.complaints(), "complaints of the browser");
			console.log(`ok ${number} - ${name}\n# ${((Date.now() - began) / 1000).toFixed(2)} s`);
		} catch (error) {
			if (error instanceof Skip) {
				console.log(`ok ${number} - ${name} # SKIP ${error.message}`);
				continue;
			}
			failed++;
			console.log(`not ok ${number} - ${name}`);
			console.log(String(error.stack ?? error).split("\n").slice(0, 12).join("\n"));
			await tools.keep(`failed-${number}.png`);
			tools.complaints(); // of this one, not of the next
		}
		await tools.closePages();
	}
	await tools.close();
	process.exit(failed > 0 ? 1 : 0);
}

const traffic = new WeakMap(); // of a page: questions asked, and ended

export class Browser {
	complained = [];
	pages = [];

	static async start() {
		const one = new Browser();
		one.browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--force-color-profile=srgb"] });
		return one;
	}

	// A page of its own, that tells of every error, and of every question to somebody else.
	async open(url, { scheme = "light", width = 1280, height = 860, offline = false, allowed = () => false } = {}) {
		const context = await this.browser.newContext({ viewport: { width, height }, colorScheme: scheme, acceptDownloads: true });
		if (offline) await context.setOffline(true);
		return this.openIn(context, url, allowed);
	}

	async openIn(context, url, allowed = () => false) {
		const page = await context.newPage();
		const questions = { asked: 0, ended: 0 };
		const home = new URL(url);
		// A question that a newer one of its lane overtook is answered 503, and the browser mentions it.
		const overtaken = (text) => /status of 503 .*[?&]lane=/.test(text);
		const complain = (text) => { if (!allowed(text) && !overtaken(text)) this.complained.push(text); };
		page.on("console", (message) => { if (["error", "warning"].includes(message.type())) complain(`console: ${message.text()} ${message.location().url}`); });
		page.on("pageerror", (error) => complain(`exception: ${error.stack}`));
		page.on("request", (request) => {
			const asked = new URL(request.url());
			if (!["data:", "blob:"].includes(asked.protocol) && (asked.protocol !== home.protocol || asked.host !== home.host)) complain(`asked ${asked}`);
		});
		const isQuestion = (request) => new URL(request.url()).pathname.startsWith("/api/");
		page.on("request", (request) => { if (isQuestion(request)) questions.asked++; });
		for (const end of ["requestfinished", "requestfailed"])
			page.on(end, (request) => { if (isQuestion(request)) questions.ended++; });
		traffic.set(page, questions);
		this.pages.push(page);
		page.setDefaultTimeout(WAIT);
		await page.goto(url);
		return page;
	}

	complaints() {
		return this.complained.splice(0);
	}

	async keep(name) {
		const page = this.pages.at(-1);
		if (page && !page.isClosed()) await page.screenshot({ path: name }).catch(() => {});
	}

	async closePages() {
		for (const page of this.pages.splice(0)) await page.context().close().catch(() => {});
	}

	async close() {
		await this.browser.close();
	}
}

// Until what is asked holds; the last thing that was seen is told if it never does.
export async function until(what, ask, wanted = (value) => Boolean(value)) {
	const end = Date.now() + WAIT;
	let seen;
	for (;;) {
		seen = await ask();
		if (wanted(seen)) return seen;
		if (Date.now() > end) throw new Error(`${what}: still ${JSON.stringify(seen)} after ${WAIT} ms`);
		await new Promise((wake) => setTimeout(wake, 50));
	}
}

export async function untilEqual(wanted, what, ask) {
	const like = typeof wanted === "object" && !Array.isArray(wanted) ? byPath(wanted) : wanted;
	await until(`${what} is not ${JSON.stringify(like)}`, ask, (seen) => JSON.stringify(seen) === JSON.stringify(like));
}

export async function ready(page) {
	await page.waitForSelector(".summary .figure", { timeout: WAIT });
}

// Until all that the page asked is answered, and what the answers say is painted.
export async function settled(page) {
	const questions = traffic.get(page);
	const end = Date.now() + WAIT;

	for (;;) {
		const { asked, ended } = questions;
		if (asked === ended) {
			await page.evaluate(() => new Promise((painted) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(painted)))));
			if (questions.asked === asked) return;
		}
		if (Date.now() > end) throw new Error(`${asked - ended} questions of the page are open after ${WAIT} ms`);
		await new Promise((wake) => setTimeout(wake, 20));
	}
}

// Over a picture with the arrow keys, line by line, to a place of which `wanted` is told.
export async function walk(page, picture, wanted) {
	const tip = picture.locator("xpath=..").locator(".tip");
	let key = "ArrowRight", told = "";

	await picture.focus();
	for (let step = 0; step < 500; step++) {
		await page.keyboard.press(key);
		const now = await tip.textContent();
		if (wanted.test(now)) return now;
		key = now === told ? "ArrowDown" : "ArrowRight";
		told = now;
	}
	throw new Error(`500 steps did not lead to ${wanted}; the last was to ${told}`);
}

// {path of the row: [count, size, impacting]}, to the byte, by path; "" is the total.
export async function rows(page, depth = 1) {
	const found = await page.evaluate((depth) => {
		const columns = [...document.querySelectorAll(".panel table.tree thead th")].map((th) => th.dataset.key);
		const figures = (tr) => ["count", "size", "impacting"].map((key) => Number(tr.children[columns.indexOf(key)].dataset.value));
		const lines = [...document.querySelectorAll(".panel tr[data-id]")].filter((tr) => Number(tr.ariaLevel ?? tr.getAttribute("aria-level")) === depth);
		const foot = document.querySelector(".panel table.tree tfoot tr");
		return Object.fromEntries([...lines.map((tr) => [tr.dataset.id, figures(tr)]), ...(foot ? [["", figures(foot)]] : [])]);
	}, depth);
	return byPath(found);
}

export function byPath(rows) {
	return Object.fromEntries(Object.entries(rows).sort(([a], [b]) => a < b ? -1 : 1));
}

export async function figure(page, name) {
	return Number(await page.getAttribute(`[data-figure="${name}"]`, "data-value"));
}

// Where a moment is on the timeline, which must not be zoomed.
export async function place(page, ns, duration) {
	const box = await page.locator(".surface").boundingBox();
	return { x: box.x + LEFT + ns / duration * (box.width - LEFT - RIGHT), y: box.y + 60 };
}

export async function drag(page, from, to, duration, shift = false) {
	const a = await place(page, from, duration), b = await place(page, to, duration);
	await page.mouse.move(a.x, a.y);
	if (shift) await page.keyboard.down("Shift");
	await page.mouse.down();
	for (let step = 1; step <= 6; step++) await page.mouse.move(a.x + (b.x - a.x) * step / 6, a.y);
	await page.mouse.up();
	if (shift) await page.keyboard.up("Shift");
}

export async function tab(page, title) {
	await page.getByRole("tab", { name: title }).click();
}

export function screensFolder() {
	const folder = process.env.TIDEMARK_SCREENS;
	if (folder) mkdirSync(folder, { recursive: true });
	return folder;
}
