// axis: where to put lines and figures on an axis.

// Multiples of 1, 2 or 5 times a power of ten.
export function decimalStep(span: number, lines: number): number {
	const rough = span / Math.max(1, lines);
	if (!(rough > 0)) return 1;
	const power = 10 ** Math.floor(Math.log10(rough));
	return [1, 2, 5, 10].map((n) => n * power).find((step) => step >= rough * 0.999) ?? power * 10;
}

// Bytes: powers of two of a byte, a KiB, a MiB …
export function binaryStep(span: number, lines: number): number {
	const rough = span / Math.max(1, lines);
	if (!(rough > 1)) return 1;
	const unit = 1024 ** Math.floor(Math.log2(rough) / 10);
	const inUnit = rough / unit;
	return unit * ([1, 2, 4, 5, 8, 10, 16, 20, 32, 50, 64, 100, 128, 200, 256, 500, 512].sort((a, b) => a - b)
		.find((n) => n >= inUnit * 0.999) ?? 1024);
}

export function splitsOf(from: number, to: number, step: number): number[] {
	const splits: number[] = [];
	for (let i = Math.ceil(from / step - 1e-9) + 0; i <= to / step + 1e-9; i++) splits.push(i * step + 0);
	return splits;
}
