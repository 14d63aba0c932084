// What a trace adds up to, and the file that keeps it.
//
// The file `whole` in the folder of the index is written and read as shelf.h says. Sites are most
// of it: a dozen small numbers each. They are in chunks, and a chunk in parts, what was allocated
// apart from what lived at the peak, so that who goes through the sites for one of them reads no
// other, and unpacks no other: of 700,000 sites all figures take 90 MB in memory, and 14 in the
// file, which is mapped.
#include "engine/whole.h"

#include "base/mem.h"
#include "engine/index/index_bits.h"
#include "engine/shelf.h"
#include "engine/space/space_listed.h"

#include <string.h>

enum {
	VERSION = 3, // raise it when a figure changes its meaning
	CHUNK = WHOLE_CHUNK,
	COLUMNS = 2, // numbers of a part
	PART_MAX = CHUNK / BITS_GROUP * COLUMNS * (1 + BITS_GROUP * 8),
};
_Static_assert(CHUNK % BITS_GROUP == 0, "groups are within chunks");

static const char name[] = "whole";
static const char magic[8] = "TIDEALL\n";

// What the file must begin with.
static struct shelf_stamp stamp_of(void)
{
	struct shelf_stamp stamp = {
		.version = VERSION,
		.sizes = { sizeof(struct heap_totals), sizeof(struct heap_counts),
			   sizeof(struct space_totals), sizeof(struct pool_total) },
	};

	memcpy(stamp.magic, magic, sizeof magic);
	return stamp;
}

// ---- writing ----

// A part of a site is two numbers: of an amount both, of the times the first and how long after it
// the last.
static struct heap_amount part_of(const struct heap_site *site, int part)
{
	switch (part) {
	case WHOLE_PLACE:
		return (struct heap_amount){ site->process, site->stack };
	case WHOLE_ALLOCATED:
		return site->allocated;
	case WHOLE_TEMPORARY:
		return site->temporary;
	case WHOLE_LIVE_AT_EXIT:
		return site->live_at_exit;
	case WHOLE_AT_PEAK:
		return site->at_peak;
	case WHOLE_LARGEST:
		return (struct heap_amount){ site->largest_bytes, 0 };
	default:
		ASSERT(part == WHOLE_TIMES);
		return (struct heap_amount){ site->first_ns, site->last_ns - site->first_ns };
	}
}

static inline void set_part(struct heap_site *site, int part, struct heap_amount numbers)
{
	switch (part) {
	case WHOLE_PLACE:
		site->process = (process_id)numbers.count;
		site->stack = (stack_id)numbers.bytes;
		break;
	case WHOLE_ALLOCATED:
		site->allocated = numbers;
		break;
	case WHOLE_TEMPORARY:
		site->temporary = numbers;
		break;
	case WHOLE_LIVE_AT_EXIT:
		site->live_at_exit = numbers;
		break;
	case WHOLE_AT_PEAK:
		site->at_peak = numbers;
		break;
	case WHOLE_LARGEST:
		site->largest_bytes = numbers.count;
		break;
	default:
		ASSERT(part == WHOLE_TIMES);
		site->first_ns = numbers.count;
		site->last_ns = numbers.count + numbers.bytes;
		break;
	}
}

// The sizes of the parts in bytes, then the parts, in groups of numbers (index_bits.h). The last
// group is filled with zeros.
static void put_chunk(struct index_out *out, const struct heap_site *sites, size_t count)
{
	static const struct heap_site none;
	uint8_t bytes[WHOLE_PARTS * PART_MAX + BITS_GROUP_MAX + BITS_GROUP_SLACK];
	uint32_t sizes[WHOLE_PARTS];
	size_t size = 0;

	for (int part = 0; part < WHOLE_PARTS; part++) {
		size_t begin = size;

		for (size_t first = 0; first < count; first += BITS_GROUP) {
			uint64_t columns[COLUMNS][BITS_GROUP];

			for (size_t i = 0; i < BITS_GROUP; i++) {
				struct heap_amount numbers = part_of(
					first + i < count ? &sites[first + i] : &none, part);

				columns[0][i] = numbers.count;
				columns[1][i] = numbers.bytes;
			}
			size += bits_put_group(bytes + size, columns, COLUMNS);
		}
		sizes[part] = (uint32_t)(size - begin);
	}
	index_out_put(out, sizes, sizeof sizes);
	index_out_put(out, bytes, size);
}

// The figures of processes and of all sites; variances only of a recording that has them, from the
// one before the first on.
static void put_heap(struct index_out *out, const struct heap *heap, uint32_t processes)
{
	const struct heap_variance *variances = heap_variances(heap);
	size_t count;
	const struct heap_site *sites = heap_sites(heap, &count);

	index_out_put(out, heap_totals(heap), sizeof(struct heap_totals));
	index_out_put_u64(out, processes);
	for (process_id id = 0; id < processes; id++)
		index_out_put(out, heap_process(heap, id), sizeof(struct heap_counts));
	index_out_put_u64(out, count);
	for (size_t i = 0; i < count; i += CHUNK)
		put_chunk(out, &sites[i], count - i < CHUNK ? count - i : CHUNK);
	// Its count is what may be read behind the last group.
	index_out_put_array(out, variances ? variances - 1 : NULL, variances ? count + 1 : 0,
			    sizeof *variances);
}

static void put_pools(struct index_out *out, const struct pool_totals *pools, uint32_t heaps)
{
	index_out_put_u64(out, heaps);
	for (heap_id id = 0; id < heaps; id++)
		index_out_put(out, pool_totals_get(pools, id), sizeof(struct pool_total));
}

static void keep(const struct whole *whole, const struct reader *reader, struct shelf *shelf)
{
	struct shelf_stamp stamp = stamp_of();
	struct index_out *out = shelf_new(shelf, name, &stamp);

	if (!out)
		return;
	put_heap(out, whole->heap, reader_processes_count(reader));
	index_out_put(out, &whole->vm, sizeof whole->vm);
	put_pools(out, whole->pools, reader_heaps_count(reader));
	shelf_end(shelf, out);
}

// ---- reading ----

// Where the parts of a chunk are; `in` is moved behind them. False: they cannot be so.
static bool take_chunk(struct index_in *in, const uint8_t *parts[WHOLE_PARTS + 1])
{
	uint32_t sizes[WHOLE_PARTS];

	index_in_take(in, sizes, sizeof sizes);
	parts[0] = in->at;
	for (int part = 0; part < WHOLE_PARTS; part++) {
		if (in->bad || sizes[part] > PART_MAX || sizes[part] > (size_t)(in->end - in->at))
			return false;
		in->at += sizes[part];
		parts[part + 1] = in->at;
	}
	return true;
}

// Whether so many sites are there, of processes and stacks that there are. Of other parts only
// their groups are looked at: their numbers can be any.
static bool check_chunk(struct index_in *in, const struct reader *reader, size_t count)
{
	uint64_t processes = reader_processes_count(reader), stacks = reader_stacks_count(reader);
	const uint8_t *parts[WHOLE_PARTS + 1];

	if (!take_chunk(in, parts) || (size_t)(in->end - in->at) < BITS_GROUP_SLACK)
		return false;
	for (int part = 0; part < WHOLE_PARTS; part++) {
		const uint8_t *at = parts[part], *end = parts[part + 1];
		bool known = true;

		for (size_t first = 0; first < count; first += BITS_GROUP) {
			uint64_t columns[COLUMNS][BITS_GROUP];
			size_t size = bits_take_group(at, (size_t)(end - at), columns, COLUMNS);

			if (!size)
				return false;
			at += size;
			for (size_t i = 0; part == WHOLE_PLACE && i < BITS_GROUP; i++)
				known &= columns[0][i] < processes && columns[1][i] < stacks;
		}
		if (at != end || !known)
			return false;
	}
	return true;
}

void whole_walk_load(struct whole_walk *walk)
{
	struct whole *whole = walk->whole;
	size_t left = walk->count - walk->next;
	const uint8_t *parts[WHOLE_PARTS + 1];

	ASSERT(walk->next % CHUNK == 0);
	if (!take_chunk(&walk->in, parts))
		ASSERT(!"it was checked when it was opened");
	for (int part = 0; part < WHOLE_PARTS; part++) {
		const uint8_t *at = parts[part], *end = parts[part + 1];

		if (!(walk->parts >> part & 1))
			continue;
		for (size_t first = 0; first < CHUNK && first < left; first += BITS_GROUP) {
			uint64_t columns[COLUMNS][BITS_GROUP];

			at += bits_take_group(at, (size_t)(end - at), columns, COLUMNS);
			for (size_t i = 0; i < BITS_GROUP; i++)
				set_part(&whole->chunk[first + i], part,
					 (struct heap_amount){ columns[0][i], columns[1][i] });
		}
	}
	walk->sites = whole->chunk;
	walk->end = walk->next + (left < CHUNK ? left : CHUNK);
}

struct whole_walk whole_walk(struct whole *whole, unsigned parts)
{
	struct whole_walk walk = { .whole = whole, .parts = parts };

	if (whole->chunk) {
		walk.in = whole->sites;
		walk.count = whole->sites_count;
	} else {
		walk.sites = heap_sites(whole->heap, &walk.count);
		walk.end = walk.count;
	}
	return walk;
}

size_t whole_sites_count(const struct whole *whole)
{
	size_t count;

	if (whole->chunk)
		return whole->sites_count;
	heap_sites(whole->heap, &count);
	return count;
}

// Site 0 is none.
static void unpack_sites(struct whole *whole, struct mem_area *area)
{
	struct whole_walk walk = whole_walk(whole, WHOLE_ALL);
	struct heap_site *sites;

	mem_area_grow(area, (whole->sites_count + 1) * sizeof *sites);
	sites = area->at;
	while (whole_walk_next(&walk))
		sites[walk.number + 1] = *walk.site;
}

// Counts are from a file: each is held against the trace or, by index_in_take_count, against the
// bytes that are left. in->bad is asked once, by the caller; a heap that is made of nonsense is
// only freed.
static void take_heap(struct whole *whole, struct index_in *in, const struct reader *reader,
		      bool walks)
{
	struct heap_figures figures = { 0 };
	size_t variances;

	index_in_take(in, &figures.totals, sizeof figures.totals);
	figures.processes =
		index_in_take_array(in, &figures.processes_count, sizeof *figures.processes);
	in->bad |= figures.processes_count != reader_processes_count(reader);
	whole->sites_count = index_in_take_count(in, 1);
	whole->sites = *in;
	for (size_t i = 0; i < whole->sites_count && !in->bad; i += CHUNK)
		in->bad = !check_chunk(in, reader,
				       whole->sites_count - i < CHUNK ? whole->sites_count - i
								      : CHUNK);
	figures.variances = index_in_take_array(in, &variances, sizeof *figures.variances);
	in->bad |= variances && variances != whole->sites_count + 1;
	if (variances == 0) {
		mem_free(figures.variances);
		figures.variances = NULL;
	}
	whole->chunk = mem_alloc(CHUNK, sizeof *whole->chunk);
	mem_area_grow(&figures.sites, sizeof(struct heap_site));
	if (!walks && !in->bad) {
		unpack_sites(whole, &figures.sites);
		figures.sites_count = whole->sites_count;
	}
	whole->heap = heap_of_figures(&figures);
}

static void take_pools(struct index_in *in, const struct reader *reader, struct pool_totals *pools)
{
	size_t count;
	struct pool_total *totals = index_in_take_array(in, &count, sizeof *totals);

	in->bad |= count != reader_heaps_count(reader);
	for (size_t i = 0; i < count && !in->bad; i++) {
		in->bad |= !index_in_is_flag(&totals[i].used);
		if (!in->bad && totals[i].used)
			pool_totals_set(pools, (heap_id)i, &totals[i]);
	}
	mem_free(totals);
}

// Nothing is believed of a file that does not end where it should.
static bool take(struct whole *whole, const struct reader *reader, const struct whole_wish *wish,
		 const struct shelf *shelf)
{
	struct shelf_stamp stamp = stamp_of();
	struct index_in in;
	bool good;

	if (!shelf_open(shelf, name, &stamp, &in))
		return false;
	take_heap(whole, &in, reader, wish->walks);
	index_in_take(&in, &whole->vm, sizeof whole->vm);
	whole->pools = pool_totals_new(reader);
	take_pools(&in, reader, whole->pools);
	good = !in.bad && in.at == in.end;
	if (!good)
		whole_fini(whole);
	// What is walked stays where it is until whole_fini.
	if (good && wish->walks) {
		whole->file = in;
		return true;
	}
	index_in_close(&in);
	mem_free(whole->chunk);
	whole->chunk = NULL;
	return good;
}

// ---- the pass ----

struct passing {
	struct whole *whole;
	struct space *space;
	struct space_listed *listed;
	const struct reader *reader;
	const struct whole_wish *wish;
	uint64_t before; // events that only say what was there before a trimmed trace's window
};

// With the first event of the window, or at the end.
static void begin_window(struct passing *passing, uint64_t number)
{
	if (passing->before == 0 || number < passing->before)
		return;
	space_begin(passing->space, moment_begin(passing->reader), passing->before - 1);
	passing->before = 0;
}

// Of the filters those of processes count here.
// heap_read gives what is not malloc's: calls on virtual memory and on pools.
static void take_other(void *context, const struct trace_event *event)
{
	struct passing *passing = context;
	const struct trace_thread *thread = reader_thread(passing->reader, event->thread);

	if (trace_kind_is_pool(event->kind)) {
		if (event->heap < reader_heaps_count(passing->reader))
			pool_totals_add(passing->whole->pools, event);
		return;
	}
	begin_window(passing, event->number);
	space_learn(passing->space, passing->reader);
	if (thread &&
	    (!passing->wish->query || query_has_process(passing->wish->query, thread->process))) {
		space_listed_pass(passing->listed, event);
		space_add_event(passing->space, event);
	}
}

static void take_note(void *context, const struct trace_note *note)
{
	const struct passing *passing = context;

	space_learn(passing->space, passing->reader);
	if (note->kind == TRACE_NOTE_PROCESS_END)
		space_listed_end(passing->listed, note->process);
	space_add_note(passing->space, note);
	if (passing->wish->on_note)
		passing->wish->on_note(passing->wish->context, note);
}

// One reading for all three: malloc's heap, pools, and the address space, whose events the heap
// hands on.
static void pass(struct whole *whole, struct reader *reader, const struct whole_wish *wish)
{
	struct passing passing = { whole, space_new(NULL),
				   NULL,  reader,
				   wish,  reader_info(reader)->trimmed };
	struct progress progress;

	ASSERT(!whole->heap && !whole->pools);
	whole->heap = heap_new(wish->query);
	whole->pools = pool_totals_new(reader);
	passing.listed = space_listed_new(passing.space, reader, wish->query, NULL);
	heap_on_vm(whole->heap, take_other, &passing);
	reader_rewind(reader);
	progress_begin(&progress, wish->window->progress, "reading", reader_bytes(reader));
	heap_read(whole->heap, reader, &progress, take_note, &passing);
	progress_end(&progress);
	begin_window(&passing, UINT64_MAX);
	space_listed_finish(passing.listed);
	whole->vm = *space_all(passing.space);
	space_free(passing.space);
	heap_on_vm(whole->heap, NULL, NULL);
}

// Only the notes: what they say is not kept.
static void pass_notes(struct reader *reader, const struct whole_wish *wish)
{
	struct trace_note note;

	reader_rewind(reader);
	while (reader_next_note(reader, &note))
		if (wish->on_note)
			wish->on_note(wish->context, &note);
}

// What notes say is needed by the caller and is not kept: so these are read again even where all
// figures are there; of blocks of events that takes only the headers.
void whole_read(struct whole *whole, struct reader *reader, const struct whole_wish *wish)
{
	struct shelf shelf;

	ASSERT(wish->window);
	*whole = (struct whole){ 0 };
	shelf_find(&shelf, reader, wish->trace_path, wish->query, wish->window);
	whole->kept = take(whole, reader, wish, &shelf);
	if (whole->kept) {
		pass_notes(reader, wish);
	} else {
		pass(whole, reader, wish);
		if (reader_sound(reader) && reader_over(reader) && !reader_unknown(reader))
			keep(whole, reader, &shelf);
	}
	shelf_fini(&shelf);
}

void whole_fini(struct whole *whole)
{
	heap_free(whole->heap);
	pool_totals_free(whole->pools);
	mem_free(whole->chunk);
	index_in_close(&whole->file);
	*whole = (struct whole){ 0 };
}
