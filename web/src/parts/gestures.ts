// gestures: what a pointer and keys do to the timeline, in pixels. What it means is the timeline's.

export interface Gesture {
	edges(): [number, number] | null; // of the window, to be taken hold of
	drag(a: number, b: number, second: boolean, brief: boolean): void;
	done(): void;
	all(): void;
	hover(x: number | null): void;
	zoomAt(x: number, factor: number): void;
	click(x: number, y: number): void;
	key(event: KeyboardEvent): boolean;
}

const GRIP = 5; // pixels on either side of an edge
const STILL = 3; // less than so many is a click

export class Gestures {
	private anchor: number | null = null;
	private moved = false;
	private second = false;
	private frame = 0;

	constructor(private element: HTMLElement, private gesture: Gesture) {
		element.addEventListener("pointerdown", (event) => this.down(event));
		element.addEventListener("pointermove", (event) => this.move(event));
		element.addEventListener("pointerup", (event) => this.up(event));
		element.addEventListener("pointercancel", () => this.end());
		element.addEventListener("pointerleave", () => this.gesture.hover(null));
		element.addEventListener("dblclick", () => this.gesture.all());
		element.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
		element.addEventListener("keydown", (event) => {
			if (event.metaKey || !this.gesture.key(event)) return;
			event.preventDefault();
			event.stopPropagation();
		});
	}

	private x(event: MouseEvent): number {
		return event.clientX - this.element.getBoundingClientRect().left;
	}

	private grip(x: number): number | null {
		const edges = this.gesture.edges();
		if (!edges) return null;
		if (Math.abs(edges[1] - x) <= GRIP) return edges[0];
		if (Math.abs(edges[0] - x) <= GRIP) return edges[1];
		return null;
	}

	private down(event: PointerEvent): void {
		if (event.button !== 0) return;
		const x = this.x(event);
		this.second = event.shiftKey;
		// An edge that is taken hold of: the other one stays.
		this.anchor = (this.second ? null : this.grip(x)) ?? x;
		this.moved = false;
		this.element.setPointerCapture(event.pointerId);
	}

	private move(event: PointerEvent): void {
		const x = this.x(event);
		if (this.anchor === null) {
			this.element.classList.toggle("gripping", this.grip(x) !== null);
			this.gesture.hover(x);
			return;
		}
		if (!this.moved && Math.abs(x - this.anchor) < STILL) return;
		const anchor = this.anchor, brief = this.moved;
		this.moved = true;
		cancelAnimationFrame(this.frame);
		if (!brief) this.gesture.drag(anchor, x, this.second, false);
		else this.frame = requestAnimationFrame(() => this.gesture.drag(anchor, x, this.second, true));
	}

	private up(event: PointerEvent): void {
		const x = this.x(event);
		cancelAnimationFrame(this.frame);
		if (this.anchor !== null && this.moved) {
			this.gesture.drag(this.anchor, x, this.second, true);
			this.end();
			this.gesture.done();
			return;
		}
		if (this.anchor !== null) this.gesture.click(x, event.clientY - this.element.getBoundingClientRect().top);
		this.end();
	}

	private end(): void {
		this.anchor = null;
		this.moved = false;
	}

	private wheel(event: WheelEvent): void {
		if (!event.ctrlKey) return;
		event.preventDefault();
		this.gesture.zoomAt(this.x(event), Math.exp(event.deltaY * 0.002));
	}
}
