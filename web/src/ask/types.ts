// types: the answers, as docs/viewer.md and docs/schema describe them.

export interface Frame {
	function: string | null;
	file: string | null;
	line: number | null;
	module: string | null;
	offset: number;
	inlined: boolean;
}

export interface Figures {
	count: number;
	size: number;
	impacting_size: number;
	allocated: number;
	allocated_count: number;
	freed: number;
	freed_count: number;
	peak_size: number | null;
	peak_count: number | null;
	most_count: number | null;
	first_ns: number | null;
	last_ns: number | null;
	lifetime_median_ns: number | null;
	lifetime_p99_ns: number | null;
}

export interface Lifetime {
	address: string;
	size: number;
	begin_ns: number;
	end_ns: number | null;
	end: string;
	thread: number;
	end_thread: number | null;
	stack: Frame[];
	end_stack: Frame[];
}

export interface Keys {
	process?: number;
	layer?: string;
	heap?: string;
	thread?: number;
	owner?: string;
	module?: string;
	function?: string;
	stack?: Frame[];
	impact?: string;
	type?: string;
	size?: number;
	mark?: string;
	lifetime?: Lifetime;
}

export interface WindowRow extends Figures {
	keys: Keys;
	process_id?: number;
	stack_id?: number;
	user_frame?: number;
}

export interface WindowAnswer {
	schema: string;
	from_ns: number;
	to_ns: number;
	complete: boolean;
	warnings: string[];
	by: string[];
	rows: WindowRow[];
	rows_left_out: number;
	total: Figures | null;
}

export interface TreeFigures {
	count: number;
	size: number;
	impacting_size: number;
	allocated: number;
	freed: number;
}

export interface TreeNode extends TreeFigures {
	id: number;
	parent: number | null;
	side: string | null;
	function: string | null;
	file: string | null;
	line: number | null;
	module: string | null;
	offset: number | null;
	self: TreeFigures;
}

export interface TreeAnswer {
	tree: string;
	from_ns: number;
	to_ns: number;
	nodes: TreeNode[];
	nodes_left_out?: number;
	total: TreeFigures;
}

export interface Timeline {
	layer: string;
	from_ns: number;
	to_ns: number;
	buckets: number;
	peak_bytes: (number | null)[];
	low_bytes?: (number | null)[] | null;
	most_count?: (number | null)[] | null;
	end_bytes?: (number | null)[] | null;
	start_bytes: number;
}

export interface Amount {
	count: number;
	bytes: number;
}

export interface Bin {
	size_min: number;
	size_max: number;
	impacting: Amount;
	freed_before: Amount;
	transient: Amount;
	persistent: Amount;
}

export interface Histogram {
	from_ns: number;
	to_ns: number;
	bins: Bin[];
}

export interface SizeLife {
	from_ns: number;
	to_ns: number;
	cells: {
		size_min: number; size_max: number; lifetime_min_ns: number; lifetime_max_ns: number;
		count: number; bytes: number;
	}[];
	never: { size_min: number; size_max: number; count: number; bytes: number }[];
}

export interface Peak {
	time_ns: number;
	bytes: number;
	count: number;
	rise_bytes: number;
}

export interface Peaks {
	from_ns: number;
	to_ns: number;
	peaks: Peak[];
}

export interface Mark {
	name: string;
	nth: number;
	of: number;
	time_ns: number;
	process_id: number;
	pid: number;
	tid: number;
}

export interface Process {
	id: number;
	pid: number;
	exe: string;
	began_ns: number;
	ended_ns: number | null;
}

export interface View {
	version: string;
	file: string;
	diff: string | null;
	path?: string | null; // from the root on
	diff_path?: string | null;
	single_file: boolean;
	scrubbed: boolean;
	coarse: string[];
	complete: boolean;
	sampled: boolean;
	warnings: string[];
	duration_ns: number;
	steps: number;
	layers: string[];
	has: { rss: boolean; map: boolean; snapshots: boolean; source: boolean };
	peak: Record<string, { time_ns: number; bytes: number; count: number } | null>;
	processes: Process[];
	processes_left_out: number;
	threads: { tid: number; process_id: number; name: string }[];
	heaps: string[];
	pools: number[];
	diff_duration_ns: number | null;
}

export interface Info {
	trace: {
		file: string; bytes: number; complete: boolean; problem: string | null; command: string | null;
		duration_ns: number; host: string | null; directory: string | null; sample_bytes: number | null;
	};
	events: { total: number; others: number; lost: number };
	processes: { id: number; pid: number; exe: string; args: string[]; exit: string }[];
}

export interface StackRow {
	stack: Frame[];
	user_frame?: number;
	mapped_file?: string | null;
}

export interface GrowthRow extends StackRow {
	verdict: "grows" | "recent" | "levels_off" | "steps";
	slope_bytes_per_s: number;
	fit: number;
	grown_bytes: number;
	grown_count: number;
	live_bytes: number;
	live_count: number;
	from_ns: number;
	to_ns: number;
	since_ns: number | null;
	lows: number[];
	process: number;
}

export interface Growth {
	from_ns: number;
	to_ns: number;
	live_bytes: number;
	live_count: number;
	processes_judged: number;
	processes_not_judged: number;
	processes_too_brief: number;
	totals: Record<string, { sites: number; grown_bytes: number; slope_bytes_per_s: number }>;
	rows: GrowthRow[];
}

export interface Spike {
	height_bytes: number;
	top_bytes: number;
	base_bytes: number;
	begin_ns: number;
	top_ns: number;
	end_ns: number;
	half_begin_ns: number;
	half_end_ns: number;
	ended: boolean;
	hill: boolean;
	spikes: number;
	makers: (StackRow & { bytes: number; count: number })[];
}

export interface Series extends StackRow {
	count: number;
	size: number;
	first_ns: number;
	last_ns: number;
	period_ns: number;
	lifetime_ns: number;
}

export interface Transients {
	from_ns: number;
	to_ns: number;
	spikes_total: number;
	spikes: Spike[];
	series_total: number;
	series: Series[];
}

export interface MapRow extends StackRow {
	owner: string;
	count: number;
	bytes: number;
	committed: number;
	waste: number;
	type: string;
	largest_without: number;
	mapped_file: string | null;
}

export interface MapRange {
	start: string;
	end: string;
	protection: number;
	committed: boolean;
	owner: string;
	mapped_file: string | null;
	row?: number | null;
}

export interface MapAnswer {
	at_ns: number;
	process: number;
	process_id: number;
	bits: number;
	granularity: number;
	low: string;
	high: string;
	free: number;
	holes: number;
	largest_free: number;
	largest_free_at: string;
	unusable: number;
	mapped: number;
	committed: number;
	owners: Record<string, number>;
	rows: MapRow[];
	failures_count: number;
	failures: { time_ns: number; call: string; size: number; largest_free: number; stack: Frame[] }[];
	curve: { to_ns: number; free: number; largest_free: number; holes: number; mapped: number; committed: number }[];
	ranges: MapRange[];
}

export interface ActiveRow extends StackRow {
	layer: string;
	address: string;
	size: number;
	age_ns: number;
	owner: string;
	thread: number;
}

export interface Active {
	at_ns: number;
	rows: ActiveRow[];
}

export interface Reconcile {
	process: number;
	at_ns: number;
	reason: string;
	smaps_bytes: number;
	vmhwm_bytes: number; rss_max_bytes: number | null;
	difference: number;
	lines: { line: string; bytes: number; rows: (StackRow & { count: number; bytes: number })[] }[];
	untouched: { bytes: number; rows: (StackRow & { count: number; bytes: number })[] };
}

export interface Change {
	before_bytes: number;
	after_bytes: number;
	before_count: number;
	after_count: number;
	bytes: number;
	count: number;
}

export interface Finding extends StackRow {
	id: string;
	kind: string;
	class: "error" | "problem" | "saving" | "note";
	sure: string;
	what: string;
	why: string;
	advice: string;
	command: string;
	view: string;
	saves: { peak_bytes: number | null; end_bytes: number | null; calls: number | null };
}

export interface Findings {
	total: number;
	findings: Finding[];
	findings_left_out: number;
	not_looked_for: { kind: string; title: string; why: string }[];
}

export interface DiffRow extends StackRow {
	state: "both" | "new" | "gone" | "moved";
	exe: string;
	live: Change;
	peak: Change;
	allocated: Change;
	temporary: Change | null;
}

export interface Diff {
	before: { command: string; from_ns: number; to_ns: number; duration_ns: number };
	after: { command: string; from_ns: number; to_ns: number; duration_ns: number };
	layer: string;
	sort: string;
	total: { live: Change; peak: Change; allocated: Change; temporary: Change | null };
	stacks: { new: number; gone: number; moved: number; changed: number; same: number };
	rows_total: number;
	rows: DiffRow[];
}
