// Rows: a lane's records as columns, without an item for each.
//
// Where no other lane has to be waited for, events of one thread go to the writer as arrays of
// kinds, addresses, sizes and stacks (struct columns_row), which is faster than one by one. A row
// ends where anything else comes: a note, another kind of event, a slot that changes hands
// (record.owned), or COLUMNS_ROW_MAX events.
//
// Programs repeat themselves. A loop of malloc(64) and free that is 2 records long, of 7 bytes
// together, leaves the same 7 bytes 1,000 times: after the first turns take_echo compares the next
// 7 bytes with those before, finds 900 more turns, and the row says "its last 2 events, 900 times
// again". None of these is decoded. That is right only if a turn ends with the address and stack
// that it began with, because records hold differences.
#include "collect/lane_reader_own.h"

#include "base/mem.h"
#include "collect/language.h"
#include "wire/varint.h"

enum {
	LONG = 8 << LANE_ADDRESS_SHIFT | 8 << LANE_SIZE_SHIFT | 8, // types and lengths from 8 on
	SELDOM = LONG | LANE_TIME | LANE_OWNER,                    // what few heads have
};

// Types that are events of a row by themselves, as bits. Their numbers are the trace's.
enum { PLAIN = 1 << LANE_MALLOC | 1 << LANE_CALLOC | 1 << LANE_FREE };

_Static_assert((int)LANE_MALLOC == TRACE_MALLOC && (int)LANE_CALLOC == TRACE_CALLOC &&
		       (int)LANE_FREE == TRACE_FREE,
	       "plain events are taken over as they are");

// So much, at most, is an event of a row without its edit, with one that a line of the cache knows,
// and behind another half of a realloc: where as much was published, none is cut.
enum { RECORD_BYTES_MAX = 80 };

_Static_assert(RECORD_BYTES_MAX >= 2 * 2 + 4 + 8 + 4 * 7 + 4 + 4 * EDIT_CACHE_PUSHES,
	       "heads, time, owner, numbers, edit");

// From the row's event on that comes behind so many that begin and end a block, this is the list of
// an interpreted language's frames.
struct row_list {
	uint32_t begun, ended, list;
};

// A row on its way.
struct rowing {
	struct lane_reader *reader;
	struct lane_reader_row *out;
	const uint8_t *stop; // no record begins from here on
	const uint8_t *end;  // nor ends behind this
	uint64_t limit_ns;
	struct lane_reader_edits edits;    // that wait; of their events,
	uint32_t first_begun, first_ended; // the first that begins a block, and that ends one
	const uint8_t **begin;             // where each event begins
	struct row_list *lists;            // the first is that from before the row
	size_t lists_count;
};

// An echo is told where it saves something. Where none is found, ever more rows, up to so many, go
// by until the next is looked for.
enum { ECHO_EVENTS_MIN = 16, ECHO_TIMES_MIN = 2, ECHO_TRIES_MAX = 4, ECHO_WAITS_MAX = 15 };

// Where a row has so many edits that are to be looked up, those of the next one are taken apart
// first, and their lines of the cache asked for, and looked up afterwards. Edits that come again by
// their number are better off without: where more than one in so many is such, this many rows go by
// until it is tried again.
enum { WAITING_MIN = 32, WAITING_AGAIN = 8, WAITING_PAUSE = 15 };

// What is known of a record before its address is read.
struct record {
	const uint8_t *at; // where it goes on
	uint64_t address;  // the lane's, before it
	uint32_t head;
	uint32_t kind; // in the trace
};

// Its address.
static inline __attribute__((always_inline)) uint64_t address_of(const struct record *record)
{
	uint32_t length = record->head >> LANE_ADDRESS_SHIFT & 7;

	return record->address + (uint64_t)varint_unzigzag(lane_reader_low(record->at, length));
}

// `record` is the first half of a realloc: it becomes the second, if that stands behind it. False:
// that does not.
//
// `old_address` has one entry for each realloc of the row, in their order.
static inline __attribute__((always_inline)) bool take_half(const struct rowing *rowing,
							    struct record *record)
{
	struct columns_row *row = &rowing->out->row;
	const uint8_t *second = record->at + (record->head >> LANE_ADDRESS_SHIFT & 7) +
				(record->head >> LANE_SIZE_SHIFT & 7);
	uint64_t address = address_of(record);
	uint32_t head;

	if (second >= rowing->stop || (record->head & LANE_STACK))
		return false;
	head = lane_path_load16(second);
	if ((head & SELDOM) || (head & LANE_TYPE_MASK) != LANE_REALLOC_ALLOC)
		return false;
	row->old_address[row->moved++] = address;
	*record = (struct record){
		.at = second + 2, .address = address, .head = head, .kind = TRACE_REALLOC
	};
	return true;
}

// The record has something that few have. False: it is not for this row.
//
// A time may come before the row's first event only: all events of a row have one time.
static COLD bool take_seldom(const struct rowing *rowing, struct record *record, bool first)
{
	struct lane_reader_row *out = rowing->out;
	uint32_t head = record->head;
	struct lane_reader_owner owner;

	if (head & LONG || !((PLAIN | 1 << LANE_REALLOC_FREE) >> record->kind & 1))
		return false;
	if (head & LANE_TIME) {
		uint64_t time_ns = rowing->reader->time_ns + lane_reader_load32(record->at);

		if (!first || time_ns > rowing->limit_ns)
			return false;
		out->row.time_ns = time_ns;
		record->at += 4;
	}
	if (head & LANE_OWNER) {
		owner.owner = lane_reader_load64(record->at);
		record->at += 8;
		owner.slot = lane_slot(address_of(record));
	}
	if (record->kind == LANE_REALLOC_FREE && !take_half(rowing, record))
		return false;
	if (head & LANE_OWNER)
		out->owners[out->owners_count++] = owner;
	return true;
}

static uint32_t list_of(const struct lane_reader *reader)
{
	return reader->lists_count > 0 ? reader->lists[reader->lists_count - 1] : 0;
}

// A LANE_EXTRA is at `in`, in front of the row's event `count`; `begun` of those before begin a
// block. If it says how the list of a language's frames changes: returns where it ends. Else NULL.
//
// Lists are not applied to stacks at once: stacks may still be waiting. put_lists does it at the
// end, with the events that each list is for.
static COLD const uint8_t *take_list(struct rowing *rowing, const uint8_t *in, size_t count,
				     size_t begun)
{
	struct row_list *last = &rowing->lists[rowing->lists_count - 1];
	size_t length = lane_path_load16(in + 4);

	ASSERT(begun <= count && rowing->lists_count <= count + 1);
	if (lane_path_load16(in + 2) != LANE_EXTRA_PYTHON || length + 6 > LANE_EVENT_BYTES_MAX ||
	    length + 6 > (size_t)(rowing->end - in) ||
	    !lane_reader_take_frames(rowing->reader, in + 6, length))
		return NULL;
	if (last->begun + last->ended < count) {
		last++;
		rowing->lists_count++;
	}
	*last = (struct row_list){ (uint32_t)begun, (uint32_t)(count - begun),
				   list_of(rowing->reader) };
	return in + 6 + length;
}

// The first edit that waits is that of the row's event `count`, of which `begun` begin a block.
static void begin_waiting(struct rowing *rowing, size_t count, size_t begun)
{
	rowing->first_begun = (uint32_t)begun;
	rowing->first_ended = (uint32_t)(count - begun);
}

// The edit at `at`, of the record at `in`, waits. Returns where it ends; NULL: that cannot be told
// here, and nothing was done.
//
// An edit by number is the lane's own copy of it (path.numbered), from where its frames are read.
static inline __attribute__((always_inline)) const uint8_t *
take_waiting(struct rowing *rowing, uint32_t tag, const uint8_t *in, const uint8_t *at,
	     uint32_t keep)
{
	struct lane_reader *reader = rowing->reader;
	struct lane_path_scratch *scratch = reader->scratch;
	struct lane_part *part = &scratch->part[rowing->edits.parts];
	const uint8_t *edit = at, *behind;

	if (keep & LANE_KEEP_AGAIN) {
		if (unlikely(keep - LANE_KEEP_AGAIN >= reader->path.numbered_count))
			return NULL;
		edit = (const uint8_t *)&reader->path.numbered[keep - LANE_KEEP_AGAIN];
	}
	behind = lane_path_wait(&reader->path, &scratch->edits, tag, part, in, edit);
	rowing->edits.parts += behind != NULL;
	return (keep & LANE_KEEP_AGAIN) && behind != NULL ? at + 2 : behind;
}

// Whether the next row's edits wait, when of this one so many were looked up at once, and of those
// that waited so many came again by their number.
//
// For example, a row with 40 edits that were looked up, none by number: the next row's wait. If
// then 6 of 40 come by number (more than one in 8), 15 rows go by before it is tried again.
static void choose_way(const struct rowing *rowing, size_t looked, size_t again)
{
	struct lane_reader *reader = rowing->reader;
	size_t waited = rowing->edits.parts;

	if (reader->edits_wait && again * WAITING_AGAIN > waited)
		reader->edits_pause = WAITING_PAUSE + 1;
	reader->edits_pause -= reader->edits_pause > 0;
	reader->edits_wait = reader->edits_pause == 0 && looked + waited >= WAITING_MIN;
	reader->scratch->edits.found += looked; // nearly all: one that is not begins to wait
}

// Take events apart from `in` on. Returns where it stopped.
//
// It is compiled twice, with and without stacks of frees. All that the lane knows of address and
// stack is local, and is stored once at the end.
static inline __attribute__((always_inline)) const uint8_t *
take_events(struct rowing *rowing, const uint8_t *in, bool free_stacks)
{
	struct lane_reader *reader = rowing->reader;
	struct lane_path_scratch *scratch = reader->scratch;
	struct columns_row *row = &rowing->out->row;
	const uint32_t tag = reader->frames->tag;
	const uint8_t *const stop = rowing->stop;
	const uint8_t **begin = rowing->begin;
	uint64_t address = reader->address;
	uint32_t current = reader->stack; // an id, and where parts wait the number of one
	size_t count = 0, begun = 0, max = COLUMNS_ROW_MAX, looked = 0, again = 0;
	const bool edits_wait = reader->edits_wait;

	while (count < max) {
		const uint8_t *at = in + 2;
		uint32_t head, kind;

		__asm__ volatile(
			""); // two branches that are foreseen, and not one that is computed
		if (unlikely(in >= stop))
			break;
		head = lane_path_load16(in);
		kind = head & 7;

		if (unlikely((head & SELDOM) || !(PLAIN >> kind & 1))) {
			struct record record = { at, address, head, head & 7 };

			if ((head & LANE_TYPE_MASK) == LANE_EXTRA) {
				at = take_list(rowing, in, count, begun);
				if (at == NULL)
					break;
				in = at;
				continue;
			}
			if ((head & (SELDOM | LANE_TYPE_MASK)) == LANE_REALLOC_FREE
				    ? !take_half(rowing, &record)
				    : !take_seldom(rowing, &record, count == 0))
				break;
			at = record.at;
			address = record.address;
			head = record.head;
			kind = record.kind;
		}
		// A ring is mapped twice, so that what a short record does not have can be read.
		address += (uint64_t)varint_unzigzag(
			lane_reader_low(at, head >> LANE_ADDRESS_SHIFT & 7));
		at += head >> LANE_ADDRESS_SHIFT & 7;
		row->address[count] = address;
		row->size[begun] = lane_reader_low(at, head >> LANE_SIZE_SHIFT & 7);
		at += head >> LANE_SIZE_SHIFT & 7;
		if (head & LANE_STACK) {
			uint32_t keep = lane_path_load16(at);
			bool waiting = rowing->edits.parts > 0;
			const uint8_t *behind = NULL;
			uint32_t number = current;

			if (!waiting && (keep & LANE_KEEP_AGAIN)) {
				if (likely(lane_path_again(&reader->path, keep, &number)))
					behind = at + 2;
			} else if (!waiting && !edits_wait) {
				looked++;
				behind = lane_path_recall(&reader->path, &scratch->edits, tag, at,
							  NULL, &number);
			} else {
				if (!waiting)
					lane_path_part(&reader->path);
				again += (keep & LANE_KEEP_AGAIN) != 0;
				behind = take_waiting(rowing, tag, in, at, keep);
				number = (uint32_t)rowing->edits.parts;
			}
			if (unlikely(behind == NULL)) {
				behind = lane_reader_edit(reader, &rowing->edits, count, in, at,
							  rowing->end, &number);
				if (unlikely(behind == NULL)) {
					row->moved -= kind == TRACE_REALLOC;
					break;
				}
			}
			if (unlikely(!waiting && rowing->edits.parts > 0))
				begin_waiting(rowing, count, begun);
			if (unlikely(rowing->edits.parts >= LANE_PARTS))
				max = count + 1;
			current = number;
			at = behind;
		}
		row->kind[count] = (uint8_t)kind;
		row->stack[begun] = current;
		if (free_stacks)
			row->free_stack[count - begun] = current;
		begin[count] = in;
		begun += kind != TRACE_FREE;
		count++;
		in = at;
	}
	row->count = (uint32_t)count;
	row->begun = (uint32_t)begun;
	choose_way(rowing, looked, again);
	if (count > 0)
		reader->address = row->address[count - 1];
	if (rowing->edits.parts == 0)
		reader->stack = current;
	return in;
}

// The row ends before its event `at`.
//
// `at` events stay. Sizes and stacks that are too many are left where they are: the counts say how
// many there are.
static COLD void cut_row(struct columns_row *row, uint32_t at)
{
	ASSERT(at <= row->count);
	while (row->count > at) {
		uint8_t kind = row->kind[--row->count];

		row->begun -= columns_row_begins(kind);
		row->moved -= kind == TRACE_REALLOC;
	}
}

// How many of the row's events are calloc's.
//
// Sixteen at a time: a comparison gives -1 for each, which is subtracted from sums of a byte; 128
// events make at most 8 in each, so that none overflows.
static uint32_t count_callocs(const struct columns_row *row)
{
	const __m128i wanted = _mm_set1_epi8(TRACE_CALLOC);
	__m128i sums = _mm_setzero_si128(), here;
	uint32_t i = 0, count;

	for (; i + 16 <= row->count; i += 16) {
		here = _mm_loadu_si128((const __m128i *)(const void *)&row->kind[i]);
		sums = _mm_sub_epi8(sums, _mm_cmpeq_epi8(here, wanted)); // -1 where it is
	}
	sums = _mm_sad_epu8(sums, _mm_setzero_si128());
	count = (uint32_t)_mm_cvtsi128_si32(_mm_add_epi32(sums, _mm_srli_si128(sums, 8)));
	for (; i < row->count; i++)
		count += row->kind[i] == TRACE_CALLOC;
	return count;
}

// Count the row's events of each kind.
//
// A byte for each kind, as at most 128 events fit; only callocs have to be counted, the others
// follow.
static void count_kinds(struct columns_row *row)
{
	uint64_t callocs = count_callocs(row);

	ASSERT(row->count <= COLUMNS_ROW_MAX && row->begun <= row->count &&
	       row->moved + callocs <= row->begun);
	row->counts = (row->begun - row->moved - callocs) << 8 * TRACE_MALLOC |
		      callocs << 8 * TRACE_CALLOC |
		      (uint64_t)(row->count - row->begun) << 8 * TRACE_FREE |
		      (uint64_t)row->moved << 8 * TRACE_REALLOC;
}

// Put the stacks that were looked up, `known` of them, into the row, which ends where one could
// not be.
//
// Frees have stacks of their own array, so the first that is not known is looked for in both, and
// the row ends at the earlier event.
static void put_stacks(const struct rowing *rowing, const stack_id *stacks, size_t known)
{
	struct columns_row *row = &rowing->out->row;
	uint32_t ended = row->count - row->begun;
	uint32_t begun_good = rowing->first_begun, ended_good = rowing->first_ended;

	for (; begun_good < row->begun && row->stack[begun_good] <= known; begun_good++)
		row->stack[begun_good] = stacks[row->stack[begun_good]];
	if (!row->free_stacks)
		ended_good = ended;
	for (; ended_good < ended && row->free_stack[ended_good] <= known; ended_good++)
		row->free_stack[ended_good] = stacks[row->free_stack[ended_good]];
	if (likely(begun_good == row->begun && ended_good == ended))
		return;
	for (uint32_t i = 0, begun = 0; i < row->count; i++) {
		bool begins = columns_row_begins(row->kind[i]);

		if (begins ? begun == begun_good : i - begun == ended_good) {
			cut_row(row, i);
			return;
		}
		begun += begins;
	}
}

// Look up the stacks of the row. Returns where the record begins from which on that cannot be;
// NULL: there is none.
static const uint8_t *settle(const struct rowing *rowing)
{
	struct lane_reader *reader = rowing->reader;
	stack_id stacks[LANE_PARTS_MAX + 1];
	size_t parts = rowing->edits.parts, known;

	ASSERT(parts <= LANE_PARTS_MAX);
	stacks[0] = 0;
	known = lane_path_settle(&reader->path, reader->scratch, parts, reader->frames, stacks);
	put_stacks(rowing, stacks, known);
	if (unlikely(known < parts))
		return reader->scratch->part[known].record;
	reader->stack = stacks[known];
	return NULL;
}

// The stack behind the row's first `count` events, of which `begun` begin a block; 0: not known.
static stack_id stack_behind(const struct columns_row *row, uint32_t count, uint32_t begun)
{
	if (row->free_stacks && !columns_row_begins(row->kind[count - 1]))
		return row->free_stack[count - begun - 1];
	return begun > 0 ? row->stack[begun - 1] : 0;
}

// Do frees say how the stack changes, although they have none here? None should.
static bool frees_edit(const struct rowing *rowing)
{
	const struct columns_row *row = &rowing->out->row;
	bool found = false;

	for (uint32_t i = 0; i < row->count && !row->free_stacks; i++)
		found |= row->kind[i] == TRACE_FREE &&
			 (lane_path_load16(rowing->begin[i]) & LANE_STACK);
	return found;
}

// How many events of the row come before its last list of a language's frames.
static uint32_t listed_before(const struct rowing *rowing)
{
	const struct row_list *last = &rowing->lists[rowing->lists_count - 1];

	return last->begun + last->ended;
}

// The row's events from `first` on come again, from `in` on? How many times. Address and stack must
// be behind them what they were before, since records say how both differ, no edit be given a
// number that others in between go by, and no list of a language's frames change.
//
// For example, the last 3 events take 11 bytes, and the next 1,100 bytes are these 11 a hundred
// times: 100, if address and stack are after them what they were before.
static uint64_t count_times(const struct rowing *rowing, const uint8_t *in, uint32_t first,
			    uint32_t begun)
{
	const struct columns_row *row = &rowing->out->row;
	size_t period = (size_t)(in - rowing->begin[first]);
	stack_id stack = stack_behind(row, first, begun);
	uint64_t times;

	if (row->address[first - 1] != row->address[row->count - 1] || stack == 0 ||
	    stack != rowing->reader->stack || rowing->edits.numbered > first ||
	    listed_before(rowing) > first)
		return 0;
	times = lane_reader_same(in, rowing->stop, period) / period;
	if (times < ECHO_TIMES_MIN || times * (row->count - first) < ECHO_EVENTS_MIN ||
	    frees_edit(rowing))
		return 0;
	return times;
}

// Some of the row's last events again, many times over? Returns where that ends. A time is of the
// row's first event alone, which is not among them; and a slot that was taken is not taken again.
//
// It is tried only after full rows: a loop that is worth it fills one. The next eight bytes are
// compared with those of each event, from the last back, which finds the turn's beginning.
static const uint8_t *take_echo(const struct rowing *rowing, const uint8_t *in)
{
	struct lane_reader_row *out = rowing->out;
	const struct columns_row *row = &out->row;
	struct lane_reader *reader = rowing->reader;
	uint64_t next = lane_reader_load64(in);
	uint32_t begun = row->begun, tries = 0;

	if (row->count < COLUMNS_ROW_MAX)
		return in;
	if (reader->echo_wait > 0) {
		reader->echo_wait--;
		return in;
	}
	for (uint32_t first = row->count; first-- > 1;) {
		begun -= columns_row_begins(row->kind[first]);
		if (lane_reader_load64(rowing->begin[first]) != next)
			continue;
		out->echoes = count_times(rowing, in, first, begun);
		if (out->echoes > 0) {
			out->echoed = row->count - first;
			reader->echo_waits = 0;
			return in + out->echoes * (size_t)(in - rowing->begin[first]);
		}
		if (++tries == ECHO_TRIES_MAX)
			break;
	}
	reader->echo_waits = reader->echo_waits * 2 + 1 < ECHO_WAITS_MAX
				     ? reader->echo_waits * 2 + 1
				     : ECHO_WAITS_MAX;
	reader->echo_wait = reader->echo_waits;
	return in;
}

// The list of a language's frames is an earlier one again.
//
// From a list's node outwards, and so from the innermost to the outermost: it is counted first.
static COLD void set_list(struct lane_reader *reader, uint32_t list)
{
	const struct language_node *nodes = list != 0 ? reader->scratch->language->nodes : NULL;
	size_t count = 0;

	for (uint32_t at = list; at > LANGUAGE_CUT; at = nodes[at].outer)
		count++;
	reader->lists_count = count;
	MEM_ROOM(reader->lists, reader->lists_capacity, count);
	for (; list > LANGUAGE_CUT; list = nodes[list].outer)
		reader->lists[--count] = list;
	ASSERT(count == 0);
}

// The last event is a free that failed, as the next record says: it is left to be read together
// with that.
//
// A free that is in an echo is taken out of the last turn; then that whole turn is read again.
static COLD void give_back(struct rowing *rowing, const uint8_t *in, uint64_t address)
{
	struct lane_reader *reader = rowing->reader;
	struct lane_reader_row *out = rowing->out;
	struct columns_row *row = &out->row;

	ASSERT(row->count > 0 && row->kind[row->count - 1] == TRACE_FREE);
	if (out->echoes > 0) {
		out->echoes--;
		reader->at -= (uint64_t)(in - rowing->begin[row->count - out->echoed]);
		return;
	}
	reader->at -= (uint64_t)(in - rowing->begin[row->count - 1]);
	if (listed_before(rowing) == row->count)
		set_list(reader, rowing->lists[--rowing->lists_count - 1].list);
	if (lane_path_load16(rowing->begin[row->count - 1]) & LANE_OWNER)
		out->owners_count--;
	cut_row(row, row->count - 1);
	reader->address = row->count > 0 ? row->address[row->count - 1] : address;
}

// Put the language's frames into stacks [from, to) of `stacks`.
static void put_list(struct language *language, uint32_t list, stack_id *stacks, uint32_t from,
		     uint32_t to)
{
	for (uint32_t i = from; i < to; i++)
		if (likely(stacks[i] != 0))
			stacks[i] = language_merge(language, stacks[i], list);
}

// Put each list of a language's frames into the stacks of the events that it is for.
//
// From the last list back: each is for the events from its own place to that of the next.
static void put_lists(const struct rowing *rowing)
{
	struct columns_row *row = &rowing->out->row;
	struct language *language = rowing->reader->scratch->language;
	uint32_t begun = row->begun, ended = row->count - row->begun;

	for (size_t i = rowing->lists_count; i-- > 0;) {
		const struct row_list *at = &rowing->lists[i];

		if (at->list != 0 && at->begun < begun)
			put_list(language, at->list, row->stack, at->begun, begun);
		if (at->list != 0 && row->free_stacks && at->ended < ended)
			put_list(language, at->list, row->free_stack, at->ended, ended);
		begun = at->begun < begun ? at->begun : begun;
		ended = at->ended < ended ? at->ended : ended;
	}
}

// Returns whether there is a row. False leaves the reader where it was, or behind records that are
// no events (lists).
bool lane_reader_take_row(struct lane_reader *reader, uint64_t limit, uint64_t limit_ns,
			  struct lane_reader_row *out)
{
	const uint8_t *in = reader->ring + (reader->at & reader->mask), *at, *bad = NULL;
	const uint8_t *begin[COLUMNS_ROW_MAX];
	struct row_list lists[COLUMNS_ROW_MAX + 1];
	uint64_t address = reader->address;
	struct columns_row *row = &out->row;
	struct rowing rowing = {
		.reader = reader,
		.out = out,
		.begin = begin,
		.lists = lists,
		.lists_count = 1,
		.end = in + (limit - reader->at),
		.stop = reader->ring + reader->mask + 1, // no record begins in the copy
		.limit_ns = limit_ns,
	};

	if (reader->broken || reader->turn || reader->time_ns > limit_ns)
		return false;
	if (limit - reader->at <= RECORD_BYTES_MAX)
		return false;
	if (rowing.stop > rowing.end - RECORD_BYTES_MAX)
		rowing.stop = rowing.end - RECORD_BYTES_MAX;
	reader->scratch->misses = 0;
	lists[0] = (struct row_list){ .list = list_of(reader) };
	out->echoes = out->owners_count = 0;
	row->moved = 0;
	row->free_stacks = reader->free_stacks;
	row->time_ns = reader->time_ns;
	at = row->free_stacks ? take_events(&rowing, in, true) : take_events(&rowing, in, false);
	if (rowing.edits.parts > 0)
		bad = settle(&rowing);
	if (unlikely(bad != NULL)) {
		reader->broken = true;
		reader->at += (uint64_t)(bad - in);
		put_lists(&rowing);
		count_kinds(row);
		return row->count > 0;
	}
	if (row->count == 0) {
		reader->at += (uint64_t)(at - in); // lists alone
		return false;
	}
	reader->at += (uint64_t)(take_echo(&rowing, at) - in);
	if (row->kind[row->count - 1] == TRACE_FREE && lane_reader_undoes_next(reader, limit))
		give_back(&rowing, at, address);
	if (row->count == 0)
		return false;
	reader->time_ns = row->time_ns;
	put_lists(&rowing);
	count_kinds(row);
	return true;
}
