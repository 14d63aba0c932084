// picture: a canvas of things that can be pointed at, chosen and walked through with the arrow keys.
import { h } from "../base/dom";
import { drawOn, type Pen } from "../base/pen";
import { theme } from "../base/theme";

export interface Region {
	x: number;
	y: number;
	w: number;
	h: number;
	label: string; // said on pointing, and to readers of the screen
	choose?(): void;
	id?: string; // keeps the place when the picture is drawn anew
}

export class PictureView {
	readonly root: HTMLElement;
	readonly canvas: HTMLCanvasElement;
	private tip = h("div", { class: "tip", hidden: true });
	private regions: Region[] = [];
	private at: string | null = null;
	private drawn: { width: number; height: number; draw: (pen: Pen) => Region[] } | null = null;

	constructor(private app: { say(text: string): void }, name: string) {
		this.canvas = h("canvas", {
			tabindex: "0", role: "application", "aria-roledescription": "picture",
			"aria-label": `${name}. Arrow keys walk, Enter chooses.`,
		});
		this.root = h("div", { class: "picture" }, this.canvas, this.tip);
		this.canvas.addEventListener("pointermove", (event) => this.point(event));
		this.canvas.addEventListener("pointerleave", () => { this.tip.hidden = true; });
		this.canvas.addEventListener("click", (event) => {
			const region = this.under(event);
			if (region) this.at = idOf(region);
			region?.choose?.();
		});
		this.canvas.addEventListener("keydown", (event) => this.key(event));
		this.canvas.addEventListener("focus", () => this.again());
		this.canvas.addEventListener("blur", () => {
			this.tip.hidden = true;
			this.again();
		});
	}

	// draw paints and says what is where; the first regions lie under later ones.
	render(width: number, height: number, draw: (pen: Pen) => Region[]): void {
		this.drawn = { width, height, draw };
		this.again();
	}

	private again(): void {
		if (!this.drawn || this.drawn.width < 10) return;
		const { width, height, draw } = this.drawn;
		drawOn(this.canvas, width, height, (pen) => {
			this.regions = draw(pen);
			const current = this.current;
			if (current && document.activeElement === this.canvas) {
				pen.rect(current.x - 1, current.y - 1, current.w + 2, current.h + 2, null, theme().text);
				pen.rect(current.x, current.y, current.w, current.h, null, theme().ground);
			}
		});
	}

	private get current(): Region | null {
		return this.regions.find((region) => idOf(region) === this.at) ?? null;
	}

	private under(event: MouseEvent): Region | null {
		const box = this.canvas.getBoundingClientRect();
		const x = event.clientX - box.left, y = event.clientY - box.top;
		return this.regions.findLast((r) => x >= r.x && x < r.x + r.w && y >= r.y && y < r.y + r.h) ?? null;
	}

	private point(event: PointerEvent): void {
		const region = this.under(event);
		this.canvas.style.cursor = region?.choose ? "pointer" : "";
		if (region) this.showTip(region, event.offsetX, event.offsetY);
		else this.tip.hidden = true;
	}

	private showTip(region: Region, x: number, y: number): void {
		this.tip.textContent = region.label;
		this.tip.hidden = false;
		const right = x > this.root.clientWidth / 2;
		this.tip.style.left = right ? "" : `${x + 14}px`;
		this.tip.style.right = right ? `${this.root.clientWidth - x + 14}px` : "";
		this.tip.style.top = `${y + 16}px`;
	}

	private key(event: KeyboardEvent): void {
		const directions: Record<string, [number, number]> = {
			ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1],
		};
		const direction = directions[event.key];

		if (direction && this.regions.length > 0) {
			const current = this.current;
			const next = current ? neighbour(this.regions, current, direction) : this.regions[0];
			if (next) {
				this.at = idOf(next);
				this.again();
				this.showTip(next, next.x + Math.min(next.w / 2, 200), next.y + next.h);
				this.app.say(next.label);
			}
		} else if ((event.key === "Enter" || event.key === " ") && this.current) {
			this.current.choose?.();
		} else {
			return;
		}
		event.preventDefault();
		event.stopPropagation();
	}
}

function idOf(region: Region): string {
	return region.id ?? region.label;
}

// The nearest one whose middle lies that way; sideways distance counts double.
export function neighbour(regions: Region[], from: Region, [dx, dy]: [number, number]): Region | null {
	let best: Region | null = null, least = Infinity;

	for (const region of regions) {
		if (region === from) continue;
		const gapX = Math.max(0, region.x - (from.x + from.w), from.x - (region.x + region.w));
		const gapY = Math.max(0, region.y - (from.y + from.h), from.y - (region.y + region.h));
		const ahead = dx ? (dx > 0 ? region.x >= from.x + from.w - 0.5 : region.x + region.w <= from.x + 0.5)
			: dy > 0 ? region.y >= from.y + from.h - 0.5 : region.y + region.h <= from.y + 0.5;
		if (!ahead) continue;
		const middle = dx ? Math.abs(region.y + region.h / 2 - from.y - from.h / 2)
			: Math.min(region.x + region.w, from.x + from.w) - Math.max(region.x, from.x) > 0.5 ? 0 : 1;
		const away = dx ? gapX + gapY * 4 + middle : gapY + gapX * 4 + middle;
		if (away < least) {
			least = away;
			best = region;
		}
	}
	return best;
}
