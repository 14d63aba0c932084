// theme: the colours that pictures are drawn with, read from the style sheet, which has them for
// light and dark. The hues are Okabe and Ito's, which people who confuse colours can tell apart.

export interface Theme {
	ground: string; panel: string; text: string; quiet: string; faint: string; grid: string; accent: string; edge: string;
	heap: string; vm: string; rss: string; cumulative: string; select: string; other: string;
	impacting: string; freed: string; transient: string; persistent: string; warn: string;
}

const NAMES: (keyof Theme)[] = ["ground", "panel", "text", "quiet", "faint", "grid", "accent", "edge", "heap", "vm",
	"rss", "cumulative", "select", "other", "impacting", "freed", "transient", "persistent", "warn"];

let now: Theme | null = null;

export function theme(): Theme {
	if (now) return now;
	const style = getComputedStyle(document.documentElement);
	now = Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()])) as
		unknown as Theme;
	return now;
}

export type Mode = "auto" | "light" | "dark";

// Where the page may not keep anything, the choice lasts as long as the page.
let kept: Mode = "auto";

export function themeMode(): Mode {
	try {
		const mode = localStorage.getItem("tidemark-theme");
		if (mode === "light" || mode === "dark") kept = mode;
	} catch { /* a page from a file may have no storage */ }
	return kept;
}

export function setThemeMode(mode: Mode): void {
	kept = mode;
	try {
		if (mode === "auto") localStorage.removeItem("tidemark-theme");
		else localStorage.setItem("tidemark-theme", mode);
	} catch { /* as above */ }
	applyTheme();
}

const listeners: (() => void)[] = [];

export function onTheme(listener: () => void): void {
	listeners.push(listener);
}

export function applyTheme(): void {
	const mode = themeMode();
	const dark = mode === "dark" || (mode === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);

	document.documentElement.dataset.theme = dark ? "dark" : "light";
	now = null;
	for (const listener of listeners) listener();
}

// A stable colour for a name: of frames, by the file they are in.
export function hueOf(name: string): string {
	const hues = document.documentElement.dataset.theme === "dark" ? DARK_HUES : LIGHT_HUES;
	let hash = 2166136261;

	for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 16777619);
	return hues[(hash >>> 8) % hues.length];
}

const LIGHT_HUES = ["#f3d9a4", "#bfe0f5", "#b5dfd0", "#f0e9a8", "#b9d0ea", "#f2c6ad", "#e6cbdb", "#d6d9dc"];
const DARK_HUES = ["#6b5220", "#24506c", "#1d5746", "#59531a", "#27476b", "#6e3c1f", "#5e3e52", "#454a50"];
