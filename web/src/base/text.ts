// text: figures as people read them, in the command line's own manner.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const MINUS = "−";

export function bytes(size: number | null): string {
	if (size === null) return "–";
	if (size < 0) return MINUS + bytes(-size);
	let unit = 0;
	while (size >= 1024 && unit < UNITS.length - 1) {
		size /= 1024;
		unit++;
	}
	if (unit > 0 && size.toFixed(1) === "1024.0" && unit < UNITS.length - 1) {
		size = 1;
		unit++;
	}
	return `${unit === 0 ? Math.round(size) : size.toFixed(1)} ${UNITS[unit]}`;
}

export function signedBytes(size: number): string {
	return size > 0 ? `+${bytes(size)}` : bytes(size);
}

export function count(n: number | null): string {
	if (n === null) return "–";
	const text = Math.abs(Math.round(n)).toString().replace(/\B(?=(\d{3})+$)/g, ",");
	return n < 0 ? MINUS + text : text;
}

export function signedCount(n: number): string {
	return n > 0 ? `+${count(n)}` : count(n);
}

// 1.097 s, 35.2 ms, 109 µs, 7 ns; 12 min 3 s
export function duration(ns: number | null): string {
	if (ns === null) return "–";
	if (ns < 0) return MINUS + duration(-ns);
	if (ns < 1e3) return `${Math.round(ns)} ns`;
	if (ns < 1e6) return `${trim(ns / 1e3)} µs`;
	if (ns < 1e9) return `${trim(ns / 1e6)} ms`;
	if (ns < 120e9) return `${trim(ns / 1e9)} s`;
	const seconds = Math.round(ns / 1e9);
	return seconds < 7200
		? `${Math.floor(seconds / 60)} min ${seconds % 60} s`
		: `${Math.floor(seconds / 3600)} h ${Math.floor(seconds / 60) % 60} min`;
}

function trim(value: number): string {
	return value >= 100 ? value.toFixed(1) : value >= 10 ? value.toFixed(2) : value.toFixed(3);
}

// A moment on the axis: as many places as the step needs.
export function moment(ns: number, stepNs: number): string {
	const seconds = ns / 1e9;
	if (stepNs >= 60e9) {
		const whole = Math.round(seconds);
		return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
	}
	const places = Math.max(0, Math.min(9, Math.ceil(-Math.log10(stepNs / 1e9) - 1e-9)));
	return `${seconds.toFixed(places)} s`;
}

export function percent(share: number): string {
	return Number.isFinite(share) ? `${(share * 100).toFixed(1)} %` : "–";
}

export function plural(n: number, one: string, many = `${one}s`): string {
	return `${count(n)} ${Math.abs(n) === 1 ? one : many}`;
}

// The last part of a path.
export function baseName(path: string | null): string {
	if (path === null) return "";
	return path.slice(path.lastIndexOf("/") + 1) || path;
}

// The file of the program that was recorded: of the first process, as it is in the end. `env app`
// becomes app.
export function programOf(processes: { pid: number; exe: string }[]): string {
	return baseName(processes.filter((one) => one.pid === processes[0]!.pid).at(-1)?.exe ?? "");
}

// The last two parts: enough to know a source file by.
export function shortPath(path: string): string {
	return path.split("/").slice(-2).join("/");
}

export function sizeRange(min: number, max: number): string {
	return min === max ? bytes(min) : `${bytes(min)} – ${bytes(max)}`;
}

export function csvLine(cells: (string | number | null)[]): string {
	return cells.map((cell) => {
		let text = cell === null ? "" : String(cell);
		// A spreadsheet must not take a function's name for a formula.
		if (typeof cell === "string" && /^[=+@\t\r-]/.test(text)) text = `'${text}`;
		return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
	}).join(",") + "\r\n";
}

// Several tables in one file, each under its name.
export function csvTables(tables: [name: string, csv: string][]): string {
	return tables.map(([name, csv]) => csvLine([name]) + csv).join("\r\n");
}
