// A region is two words: its start, in whose lowest bits, which are 0 in a page's address, is what
// it is. For example private memory that is committed and may be read and written, at 0x10000, is
// 0x10043 (1 read, 2 write, 64 committed). Windows says an access by one bit of eight:
// PAGE_READWRITE is bit 2, and the table has 3 there, read and write.
//
// Two lists, the last one and the new one, both rise, so what differs is found in one pass over
// both: a region that is not in the old list as it is now is reported, and so is what was something
// and is free. A walk during which another thread has made a call is not reported, or is marked so
// that the collector does not believe it; then the next one is compared with the last that was
// believed.
#include "recorder/walk_win32.h"

#include "recorder/notes.h"
#include "recorder/patch_win32.h"
#include "recorder/recording_win32.h"
#include "recorder/text.h"
#include "recorder/utf_win32.h"
#include "recorder/vm_put.h"

enum {
	WALK_REGIONS_FIRST = 32768, // there is room for; twice as many where it is not enough
	WALK_TEXT_BYTES = 3072,     // of a list, a note
	WALK_LINE_BYTES = 80,       // without its name
	WALK_PERIOD_NS = 1000000000,
	WALK_SHARE = 100, // of the time, one part
	WALK_SHARE_SOON = 10,
	WALK_CALLERS = 256,
	WALK_WAYS = 4,

	WALK_READ = 1,
	WALK_WRITE = 2,
	WALK_EXECUTE = 4,
	WALK_SHARED = 8,
	WALK_IMAGE = 16,
	WALK_OURS = 32,
	WALK_COMMITTED = 64, // whatever may be done with it; of an image, never
};

// Behind all addresses that a program can have.
#define WALK_END (sizeof(void *) == 8 ? (uintptr_t)(UINT64_C(1) << 47) : ~(uintptr_t)4095)

// Who is in a call on virtual memory, by thread id (0: no one), and how often one has begun or
// ended. A walk during which there was one is not to be believed. A thread that finds no place is
// not seen by a walk that both begins and ends during its call.
static _Atomic uint32_t walk_callers[WALK_CALLERS], walk_turns;
_Atomic uint64_t walk_next_ns = UINT64_MAX; // the first sets it

// Regions begin at pages: what they are stands in the lowest bits.
struct walk_region {
	uintptr_t start_kind, end;
};

struct walk_list {
	struct walk_region *regions;
	uint32_t count, room;
};

struct walk_text {
	char bytes[WALK_TEXT_BYTES];
	size_t length;
	uint32_t list; // its number
};

// The thread that walks; the rest is that thread's.
static _Atomic int walk_lock;
static struct walk_list walk_lists[2]; // the last one and the one in the making
static bool walk_last_list;            // which is the last one
static uint32_t walk_lists_count;
static uint64_t walk_soon_ns; // before then, no walk for what has just happened
static struct walk_text walk_text;

// ---- Calls in progress ----------------------------------------------------------------------

// The places where thread `tid` may stand.
static _Atomic uint32_t *walk_places(uint32_t tid)
{
	return &walk_callers[tid / 4 % (WALK_CALLERS / WALK_WAYS) * WALK_WAYS];
}

// The first place that is `was` becomes `now`. False: none is.
static bool walk_stand(_Atomic uint32_t *places, uint32_t was, uint32_t now)
{
	for (uint32_t i = 0; i < WALK_WAYS; i++) {
		uint32_t found = was;

		if (__atomic_compare_exchange_n(&places[i], &found, now, false, __ATOMIC_SEQ_CST,
						__ATOMIC_RELAXED))
			return true;
	}
	return false;
}

// A place of this id's is an outer call's, or was left by a thread that has ended.
void walk_begin(void)
{
	uint32_t tid = kernel_thread_id();

	if (!walk_stand(walk_places(tid), tid, tid))
		walk_stand(walk_places(tid), 0, tid);
	__atomic_fetch_add(&walk_turns, 1, __ATOMIC_SEQ_CST);
}

void walk_end(void)
{
	uint32_t tid = kernel_thread_id();

	__atomic_fetch_add(&walk_turns, 1, __ATOMIC_SEQ_CST);
	walk_stand(walk_places(tid), tid, 0);
}

// Is a call in progress? One whose thread was ended from outside is not.
static bool walk_is_disturbed(void)
{
	for (uint32_t i = 0; i < WALK_CALLERS; i++) {
		uint32_t tid = __atomic_load_n(&walk_callers[i], __ATOMIC_SEQ_CST);

		if (tid && kernel_thread_lives(kernel_process_id(), tid))
			return true;
		if (tid)
			__atomic_compare_exchange_n(&walk_callers[i], &tid, 0, false,
						    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
	}
	return false;
}

static uintptr_t walk_start(const struct walk_region *region)
{
	return region->start_kind & ~(uintptr_t)(KERNEL_PAGE - 1);
}

// ---- Looking --------------------------------------------------------------------------------

// By the lowest of the bits PAGE_NOACCESS, READONLY, READWRITE, WRITECOPY, EXECUTE, EXECUTE_READ,
// EXECUTE_READWRITE, EXECUTE_WRITECOPY; the guard and cache bits above them mean nothing here.
uint32_t walk_access(uint32_t page)
{
	static const uint8_t access[8] = { 0, 1, 3, 3, 4, 5, 7, 7 };

	for (uint32_t bit = 0; bit < 8; bit++)
		if (page >> bit & 1)
			return access[bit];
	return 0;
}

static uint32_t walk_kind(const struct nt_region *region)
{
	uint32_t kind = region->state == NT_MEM_COMMIT ? walk_access(region->protection) : 0;

	kind |= region->type == NT_MEM_MAPPED ? WALK_SHARED : 0;
	kind |= region->type == NT_MEM_IMAGE ? WALK_IMAGE : 0;
	if (region->state == NT_MEM_COMMIT && region->type != NT_MEM_IMAGE)
		kind |= WALK_COMMITTED;
	return kind | (recording_is_ours((uintptr_t)region->base, region->bytes) ? WALK_OURS : 0);
}

// Neighbours alike are one, but for those of different files. False: there is no room for all.
//
// The whole address space in one pass, from 0: a system call for each region.
static bool walk_look(struct walk_list *list)
{
	struct nt_region region;
	const uint8_t *allocation = NULL;
	uint8_t *at = NULL;

	list->count = 0;
	while (NtQueryVirtualMemory(NT_SELF, at, NT_BASIC_INFORMATION, &region, sizeof(region),
				    NULL) >= 0 &&
	       region.base + region.bytes > at) {
		struct walk_region *last = list->count ? &list->regions[list->count - 1] : NULL;
		uintptr_t start = (uintptr_t)region.base;
		uint32_t kind;

		at = region.base + region.bytes;
		if (region.state != NT_MEM_COMMIT && region.state != NT_MEM_RESERVE)
			continue;
		kind = walk_kind(&region);
		if (last && last->end == start && (last->start_kind & (KERNEL_PAGE - 1)) == kind &&
		    (!(kind & (WALK_IMAGE | WALK_SHARED)) || region.allocation == allocation)) {
			last->end = (uintptr_t)at;
			continue;
		}
		allocation = region.allocation;
		if (list->count == list->room)
			return false;
		list->regions[list->count++] = (struct walk_region){ start | kind, (uintptr_t)at };
	}
	return true;
}

// A list that is there may be moved, at any time but while it is looked at. False: no memory.
static bool walk_make_room(struct walk_list *list, uint32_t room)
{
	struct walk_region *regions = recording_pages(room * sizeof(*regions), false);

	if (!regions)
		return false;
	if (list->regions) {
		memcpy(regions, list->regions, list->count * sizeof(*regions));
		recording_give_back(list->regions, list->room * sizeof(*regions));
	}
	*list = (struct walk_list){ regions, list->count, room };
	return true;
}

// False: it is told once that from here on walks are not to be had.
static bool walk_look_all(struct walk_list *list, struct walk_list *other)
{
	static bool told;

	while (!walk_look(list)) {
		if (walk_make_room(list, 2 * list->room) && walk_make_room(other, list->room))
			continue;
		if (!told)
			notes_message(NOTE_MESSAGE_UNSEEN,
				      "the address space has more parts than there is memory for "
				      "a list of: what no call says (images, stacks of threads) is "
				      "not known from there on");
		told = true;
		return false;
	}
	return true;
}

// ---- Telling --------------------------------------------------------------------------------

static void walk_send(struct walk_text *text)
{
	text->bytes[text->length] = 0;
	if (text->length)
		notes_maps(text->list, text->bytes);
	text->length = 0;
}

// Without leading zeros, as in /proc/self/maps.
static void walk_add_hex(struct walk_text *text, uint64_t value, char behind)
{
	int shift = 60;

	while (shift > 0 && !(value >> shift & 15))
		shift -= 4;
	for (; shift >= 0; shift -= 4)
		text->bytes[text->length++] = "0123456789abcdef"[value >> shift & 15];
	text->bytes[text->length++] = behind;
}

// As a line of /proc/self/maps, which is what the collector reads; private memory that is committed
// is "c", for "p"; of shared memory ("s"), what is committed is "C", and a file's "S".
static void walk_add(struct walk_text *text, uintptr_t start, uintptr_t end, uint32_t kind,
		     const char *name)
{
	char access[4] = { kind & WALK_READ ? 'r' : '-', kind & WALK_WRITE ? 'w' : '-',
			   kind & WALK_EXECUTE ? 'x' : '-', kind & WALK_COMMITTED ? 'c' : 'p' };

	if (kind & WALK_SHARED)
		access[3] = !(kind & WALK_COMMITTED) ? 's' : *name == '[' ? 'C' : 'S';
	if (text->length + WALK_LINE_BYTES + text_length(name) > sizeof(text->bytes))
		walk_send(text);
	walk_add_hex(text, start, '-');
	walk_add_hex(text, end, ' ');
	memcpy(text->bytes + text->length, access, 4);
	memcpy(text->bytes + text->length + 4, " 0 00:00 0 ", 11);
	text->length += 15;
	memcpy(text->bytes + text->length, name, text_length(name));
	text->length += text_length(name);
	text->bytes[text->length++] = '\n';
}

// The path by NtQueryVirtualMemory, as UTF-8. A newline would end the line. NULL: it is no file's.
const char *walk_file(uintptr_t at, struct walk_file *room)
{
	char *path = room->path;

	if (NtQueryVirtualMemory(NT_SELF, (void *)at, NT_FILE_NAME, room,
				 offsetof(struct walk_file, path), NULL) < 0)
		return NULL;
	utf_decode(room->text.text, room->text.bytes / 2, path, sizeof(room->path));
	for (char *c = path; *c; c++)
		if (*c == '\n')
			*c = '?';
	if (!*path)
		return NULL;
	return memcmp(path, "\\??\\", 4) == 0 ? path + 4 : path;
}

// Whose the region is, by its first address.
static const char *walk_name(uintptr_t at, uint32_t kind)
{
	static struct walk_file room;
	const char *path;

	if (!(kind & (WALK_IMAGE | WALK_SHARED)))
		return "[system]";
	path = walk_file(at, &room);
	if (path)
		return path;
	return kind & WALK_IMAGE ? "[image]" : "[system]";
}

static void walk_add_region(struct walk_text *text, const struct walk_region *region)
{
	uint32_t kind = region->start_kind & (KERNEL_PAGE - 1);
	walk_add(text, walk_start(region), region->end, kind,
		 kind & WALK_OURS ? "[tidemark]" : walk_name(walk_start(region), kind));
}

// The regions of `now` that are not in `before` as they are, and the gaps of it where there was
// something. Both lists rise.
//
// For example, before: 10-20 read, 30-40 write; now: 10-20 read, 40-50 write. Told is 20-40 [free],
// and 40-50.
static void walk_tell(struct walk_text *text, const struct walk_list *before,
		      const struct walk_list *now)
{
	const struct walk_region *old = before->regions, *old_end = old + before->count;
	uintptr_t free_from = 0;

	for (uint32_t i = 0; i <= now->count; i++) {
		const struct walk_region *region = &now->regions[i];
		uintptr_t start = i < now->count ? walk_start(region) : WALK_END;

		while (old < old_end && old->end <= free_from)
			old++;
		if (old < old_end && walk_start(old) < start && start > free_from)
			walk_add(text, free_from, start, 0, "[free]");
		if (i == now->count)
			break;
		while (old < old_end && walk_start(old) < start)
			old++;
		if (old == old_end || old->start_kind != region->start_kind ||
		    old->end != region->end)
			walk_add_region(text, region);
		free_from = region->end;
	}
	walk_send(text);
}

// ---- The walk -------------------------------------------------------------------------------

// Asked when the record has its place: has anybody made a call since?
//
// It runs when the record's place in the order is fixed. The record is marked then, and cannot be
// taken back.
static enum vm_put_stack walk_check(struct lane *, struct lane_vm *record, const void *context)
{
	const uint32_t *turns = context;

	if (__atomic_load_n(&walk_turns, __ATOMIC_SEQ_CST) != *turns)
		record->error = 1;
	return VM_PUT_NONE;
}

// Under walk_lock, the lane being busy.
//
// Two lists take turns. A walk that the collector does not believe, or that was ended in the midst
// with its thread, leaves the last list what it was: the next tells what differs from that.
static void walk_do(struct lane *lane, bool first)
{
	struct walk_list *before = &walk_lists[walk_last_list], *now = &walk_lists[!walk_last_list];
	struct lane_vm record = { .kind = LANE_VM_BASELINE, .flags = !first };
	uint32_t turns = __atomic_load_n(&walk_turns, __ATOMIC_SEQ_CST);

	if (walk_is_disturbed() || !walk_look_all(now, before) ||
	    __atomic_load_n(&walk_turns, __ATOMIC_SEQ_CST) != turns)
		return;
	// What was told under a number stays told: the next walk has another.
	record.file = walk_text.list = ++walk_lists_count;
	walk_text.length = 0;
	walk_tell(&walk_text, before, now);
	if (vm_put_room(lane) && vm_put(lane, &record, walk_check, &turns) && !record.error)
		walk_last_list = !walk_last_list;
}

void walk_first(struct lane *lane)
{
	recording_lock(&walk_lock);
	if (walk_make_room(&walk_lists[0], WALK_REGIONS_FIRST) &&
	    walk_make_room(&walk_lists[1], WALK_REGIONS_FIRST)) {
		walk_do(lane, true);
		__atomic_store_n(&walk_next_ns, clock_now() + WALK_PERIOD_NS, __ATOMIC_RELAXED);
	}
	recording_unlock(&walk_lock);
}

// One thread at a time; the others leave it to that one.
//
// Walks take a hundredth of the time at most, and come once a second at most. One for something
// that has just happened may come sooner: those take a tenth.
static void walk(uint64_t now_ns)
{
	struct lane *lane;
	uint64_t cost_ns, wait_ns;

	if (walk_next_ns == UINT64_MAX ||
	    !(recording_lock_from(&walk_lock, 0) || recording_lock_left(&walk_lock)))
		return;
	lane = lane_enter();
	if (lane) {
		walk_do(lane, false);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		lane->limit = lane->open_limit;
		patch_check();
		cost_ns = clock_now() - now_ns;
		wait_ns = cost_ns * WALK_SHARE;
		walk_soon_ns = now_ns + cost_ns * WALK_SHARE_SOON;
		__atomic_store_n(&walk_next_ns,
				 now_ns + (wait_ns > WALK_PERIOD_NS ? wait_ns : WALK_PERIOD_NS),
				 __ATOMIC_RELAXED);
	}
	recording_unlock(&walk_lock);
}

void walk_now(uint64_t now_ns)
{
	walk(now_ns);
}

void walk_soon(void)
{
	uint64_t now_ns = clock_now();

	if (now_ns >= walk_soon_ns)
		walk(now_ns);
}

void walk_last(void)
{
	walk(clock_now());
}
