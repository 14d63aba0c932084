// Draws windows on the timeline by the mouse, and tells how long each took: from the event of the
// mouse button let go to the frame after the table's.
//
//     node viewer.mjs URL DRAGS        prints the milliseconds, as JSON
import { Browser, place, ready } from "../web/libviewer.mjs";

const [url, drags] = [process.argv[2], Number(process.argv[3])];
const browser = await Browser.start();
const page = await browser.open(url);

await ready(page);
await page.waitForSelector(".panel tr[data-id]", { timeout: 60000 });
await page.evaluate(() => {
	const state = window.drawn = { began: 0, took: null };
	const frame = (then) => requestAnimationFrame(() => requestAnimationFrame(then));
	addEventListener("pointerup", () => { state.began = performance.now(); state.took = null; }, true);
	// The foot, with the total, is laid out anew with each answer.
	new MutationObserver(() => {
		if (state.began) frame(() => { state.took ??= performance.now() - state.began; state.began = 0; });
	}).observe(document.querySelector(".panel table.tree tfoot"), { childList: true });
});

const times = [];
let seed = 1;
const random = () => (seed = seed * 48271 % 2147483647) / 2147483647;
for (let number = 0; number < drags; number++) {
	const [a, b] = [0.02 + 0.96 * random(), 0.02 + 0.96 * random()].sort();
	const [from, to] = [await place(page, a, 1), await place(page, Math.max(b, a + 0.01), 1)];
	await page.evaluate(() => { window.drawn.took = null; window.drawn.began = 0; });
	await page.mouse.move(from.x, from.y);
	await page.mouse.down();
	await page.mouse.move((from.x + to.x) / 2, from.y);
	await page.mouse.move(to.x, from.y);
	await page.mouse.up();
	times.push(await (await page.waitForFunction(() => window.drawn.took, null, { timeout: 60000, polling: 10 })).jsonValue());
}
console.log(JSON.stringify(times));
await browser.close();
