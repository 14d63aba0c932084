// pen: what pictures are drawn with. One drawing serves the screen, PNG and SVG.

export interface TextStyle {
	fill: string;
	size?: number;
	align?: "left" | "center" | "right";
	middle?: boolean; // y is the middle of the line instead of its base
	mono?: boolean;
	bold?: boolean;
	turn?: boolean; // a quarter to the left
	halo?: string; // a rim of this colour, where it lies on lines
}

export interface Pen {
	rect(x: number, y: number, w: number, h: number, fill: string | null, stroke?: string | null): void;
	line(points: [number, number][], stroke: string, width?: number, dash?: number[]): void;
	area(points: [number, number][], fill: string): void;
	text(text: string, x: number, y: number, style: TextStyle): void;
	measure(text: string, style: TextStyle): number;
}

export interface Picture {
	name: string; // of the file, without ending
	title: string;
	width: number;
	height: number;
	background: string;
	draw(pen: Pen): void;
}

export const SANS = 'Inter, system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';
export const MONO = '"JetBrains Mono", ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace';

function fontOf(style: TextStyle): string {
	return `${style.bold ? "600 " : ""}${style.size ?? 11}px ${style.mono ? MONO : SANS}`;
}

export class CanvasPen implements Pen {
	constructor(private context: CanvasRenderingContext2D) {}

	rect(x: number, y: number, w: number, h: number, fill: string | null, stroke?: string | null): void {
		if (fill) {
			this.context.fillStyle = fill;
			this.context.fillRect(x, y, w, h);
		}
		if (stroke) {
			this.context.strokeStyle = stroke;
			this.context.lineWidth = 1;
			this.context.strokeRect(x + 0.5, y + 0.5, w - 1, h - 1);
		}
	}

	line(points: [number, number][], stroke: string, width = 1, dash: number[] = []): void {
		this.trace(points);
		this.context.setLineDash(dash);
		this.context.strokeStyle = stroke;
		this.context.lineWidth = width;
		this.context.stroke();
		this.context.setLineDash([]);
	}

	area(points: [number, number][], fill: string): void {
		this.trace(points);
		this.context.closePath();
		this.context.fillStyle = fill;
		this.context.fill();
	}

	text(text: string, x: number, y: number, style: TextStyle): void {
		const context = this.context;
		context.font = fontOf(style);
		context.fillStyle = style.fill;
		context.textAlign = style.align ?? "left";
		context.textBaseline = style.middle ? "middle" : "alphabetic";
		if (style.halo) {
			context.strokeStyle = style.halo;
			context.lineWidth = 4;
			context.lineJoin = "round";
			context.strokeText(text, x, y);
		}
		if (style.turn) {
			context.save();
			context.translate(x, y);
			context.rotate(-Math.PI / 2);
			context.fillText(text, 0, 0);
			context.restore();
		} else {
			context.fillText(text, x, y);
		}
	}

	measure(text: string, style: TextStyle): number {
		this.context.font = fontOf(style);
		return this.context.measureText(text).width;
	}

	private trace(points: [number, number][]): void {
		this.context.beginPath();
		points.forEach(([x, y], i) => i ? this.context.lineTo(x, y) : this.context.moveTo(x, y));
	}
}

function escapeXml(text: string): string {
	// Control characters cannot be in XML at all.
	return text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`)
		.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd");
}

function short(n: number): string {
	return String(Math.round(n * 100) / 100);
}

export class SvgPen implements Pen {
	private parts: string[] = [];

	constructor(private measurer: Pen | null) {}

	rect(x: number, y: number, w: number, h: number, fill: string | null, stroke?: string | null): void {
		if (w <= 0 || h <= 0) return;
		const inset = stroke ? 0.5 : 0;
		this.parts.push(`<rect x="${short(x + inset)}" y="${short(y + inset)}" width="${short(w - 2 * inset)}" ` +
			`height="${short(h - 2 * inset)}" fill="${fill ?? "none"}"${stroke ? ` stroke="${stroke}"` : ""}/>`);
	}

	line(points: [number, number][], stroke: string, width = 1, dash: number[] = []): void {
		this.parts.push(`<polyline points="${this.points(points)}" fill="none" stroke="${stroke}" ` +
			`stroke-width="${width}"${dash.length ? ` stroke-dasharray="${dash.join(" ")}"` : ""}/>`);
	}

	area(points: [number, number][], fill: string): void {
		this.parts.push(`<polygon points="${this.points(points)}" fill="${fill}"/>`);
	}

	text(text: string, x: number, y: number, style: TextStyle): void {
		const anchor = { left: "start", center: "middle", right: "end" }[style.align ?? "left"];
		const family = (style.mono ? MONO : SANS).replace(/"/g, "'");
		this.parts.push(`<text x="${short(x)}" y="${short(style.middle ? y + (style.size ?? 11) * 0.35 : y)}" ` +
			`fill="${style.fill}" font-family="${family}" font-size="${style.size ?? 11}"` +
			`${style.halo ? ` stroke="${style.halo}" stroke-width="4" stroke-linejoin="round" paint-order="stroke"` : ""}` +
			`${style.bold ? ' font-weight="600"' : ""} text-anchor="${anchor}"` +
			`${style.turn ? ` transform="rotate(-90 ${short(x)} ${short(y)})"` : ""}>${escapeXml(text)}</text>`);
	}

	measure(text: string, style: TextStyle): number {
		return this.measurer?.measure(text, style) ?? text.length * (style.size ?? 11) * 0.6;
	}

	finish(picture: Picture): string {
		return `<svg xmlns="http://www.w3.org/2000/svg" width="${picture.width}" height="${picture.height}" ` +
			`viewBox="0 0 ${picture.width} ${picture.height}" role="img">` +
			`<title>${escapeXml(picture.title)}</title>` +
			`<rect width="100%" height="100%" fill="${picture.background}"/>${this.parts.join("\n")}</svg>\n`;
	}

	private points(points: [number, number][]): string {
		return points.map(([x, y]) => `${short(x)},${short(y)}`).join(" ");
	}
}

// Makes the canvas fit its box and sharp on the screen it is on, and draws.
export function drawOn(canvas: HTMLCanvasElement, width: number, height: number, draw: (pen: Pen) => void): void {
	const ratio = window.devicePixelRatio || 1;
	const context = canvas.getContext("2d")!;

	canvas.width = Math.round(width * ratio);
	canvas.height = Math.round(height * ratio);
	canvas.style.width = `${width}px`;
	canvas.style.height = `${height}px`;
	context.setTransform(ratio, 0, 0, ratio, 0, 0);
	draw(new CanvasPen(context));
}

function canvasPen(width: number, height: number, ratio: number): [HTMLCanvasElement, CanvasPen] {
	const canvas = document.createElement("canvas");
	canvas.width = width * ratio;
	canvas.height = height * ratio;
	const context = canvas.getContext("2d")!;
	context.scale(ratio, ratio);
	return [canvas, new CanvasPen(context)];
}

export function svgOf(picture: Picture): Blob {
	const pen = new SvgPen(canvasPen(1, 1, 1)[1]);
	picture.draw(pen);
	return new Blob([pen.finish(picture)], { type: "image/svg+xml" });
}

export function pngOf(picture: Picture): Promise<Blob> {
	const [canvas, pen] = canvasPen(picture.width, picture.height, 2);
	pen.rect(0, 0, picture.width, picture.height, picture.background);
	picture.draw(pen);
	return new Promise((resolve, reject) => canvas.toBlob((blob) =>
		blob ? resolve(blob) : reject(new Error("the browser could not make the picture")), "image/png"));
}

// So much of a text as fits, with an ellipsis.
export function fitted(pen: Pen, text: string, width: number, style: TextStyle): string {
	if (pen.measure(text, style) <= width) return text;
	let low = 0, high = text.length;
	while (low < high) {
		const middle = (low + high + 1) >> 1;
		if (pen.measure(text.slice(0, middle) + "…", style) <= width) low = middle;
		else high = middle - 1;
	}
	return low > 0 ? text.slice(0, low) + "…" : "";
}
