// For example, a runtime has generated code at 0x20000000-0x20010000 and says so by
// RtlAddGrowableFunctionTable with 3 entries, room for 100. A walk that comes to 0x20000420 finds
// no module there, and this table: its entries are read where the program has them, by bisection if
// they are sorted, and the one with 0x20000420 in it is as good as an image's (pdata.c).
//
// Of code that was asked for before its table was added, a rule was made that is a guess. So the
// range of what was asked for in vain is kept, and a table that is added there makes rules anew.
#include "recorder/tables_win32.h"

#include "recorder/capture.h"
#include "recorder/hook_win32.h"
#include "recorder/kernel.h"
#include "recorder/leaf.h"
#include "recorder/pdata.h"
#include "recorder/recording.h"
#include "recorder/text.h"
#include "recorder/unwind.h"

enum {
	TABLES_ROOM_FIRST = 512,
	TABLES_CALLBACK = 3,      // the lowest bits of what tells a callback's range
	TABLES_HANDLE_WORDS = 12, // of the system's record, that are looked through for the table
};

typedef NT_CALL const struct pdata_function *tables_callback(uint64_t pc, void *context);

// One table. Its code is at [start, end).
struct tables_entry {
	uintptr_t start, end;
	uintptr_t base; // which entries count from
	uintptr_t key;  // what the program tells it by: its entries, or a callback's number
	const struct pdata_function *functions;
	tables_callback *callback; // NULL: `functions` has the entries
	void *context;
	uint64_t since; // of two that have the same code, the later one counts
	uint32_t count;
	bool sorted, grows;
	bool walked; // rules were made by it
};

// All of it: under code_lock.
static struct tables_entry *tables;
static uint32_t tables_used, tables_room;
static uint64_t tables_turns;
static uintptr_t tables_missed_low = UINTPTR_MAX, tables_missed_high; // asked for in vain
static uintptr_t tables_said_low = UINTPTR_MAX, tables_said_high;     // of callbacks' code

// All of [from, from + bytes) is committed and readable. Asked each time, as a runtime may free its
// tables before it says so.
static bool tables_can_read(uintptr_t from, size_t bytes)
{
	struct nt_region region;
	uintptr_t to = from + bytes;

	if (to < from)
		return false;
	while (from < to) {
		if (NtQueryVirtualMemory(NT_SELF, (void *)from, NT_BASIC_INFORMATION, &region,
					 sizeof(region), NULL) < 0 ||
		    region.state != NT_MEM_COMMIT ||
		    (region.protection & (NT_PAGE_NOACCESS | NT_PAGE_GUARD)))
			return false;
		from = (uintptr_t)(region.base + region.bytes);
	}
	return true;
}

// Rules for code there are to be made anew.
static void tables_forget(uintptr_t start, uintptr_t end)
{
	unwind_forget_range(start, end);
	__atomic_fetch_add(&capture_epoch, 1, __ATOMIC_SEQ_CST);
}

// Doubled from 512 on; the old table is given back. False: there is no memory, and the new table is
// not known.
static bool tables_make_room(void)
{
	uint32_t room = tables_room ? 2 * tables_room : TABLES_ROOM_FIRST;
	struct tables_entry *more;

	if (tables_used < tables_room)
		return true;
	more = recording_pages(room * sizeof(*more), false);
	if (!more)
		return false;
	if (tables) {
		memcpy(more, tables, tables_used * sizeof(*more));
		recording_give_back(tables, tables_room * sizeof(*more));
	}
	tables = more;
	tables_room = room;
	return true;
}

// Where code in its range was asked for before, the rules that were made then are forgotten.
static void tables_add(struct tables_entry entry)
{
	recording_lock(&recording_state->code_lock);
	entry.since = ++tables_turns;
	if (entry.start < entry.end && tables_make_room()) {
		tables[tables_used++] = entry;
		if (entry.start < tables_missed_high && tables_missed_low < entry.end)
			tables_forget(entry.start, entry.end);
		if (entry.callback && entry.start < tables_said_low)
			tables_said_low = entry.start;
		if (entry.callback && entry.end > tables_said_high)
			tables_said_high = entry.end;
	}
	recording_unlock(&recording_state->code_lock);
}

// The caller holds code_lock.
//
// The last entry takes its place: the order means nothing, `since` says which is newer.
static void tables_remove(struct tables_entry *entry)
{
	struct tables_entry gone = *entry;

	*entry = tables[--tables_used];
	if (gone.walked)
		tables_forget(gone.start, gone.end);
}

static void tables_delete(uintptr_t key)
{
	recording_lock(&recording_state->code_lock);
	for (uint32_t i = 0; i < tables_used; i++) {
		if (tables[i].key == key && !tables[i].grows) {
			tables_remove(&tables[i]);
			break;
		}
	}
	recording_unlock(&recording_state->code_lock);
}

// The growing table that a handle is for: the system's record begins there, and has the address of
// its entries. NULL: the record looks otherwise. The caller holds code_lock.
//
// The record is undocumented, so nothing of it is assumed but that the address of the entries is
// among its first twelve words.
static struct tables_entry *tables_by_handle(const uintptr_t *handle)
{
	if (!tables_can_read((uintptr_t)handle, TABLES_HANDLE_WORDS * sizeof(*handle)))
		return NULL;
	for (uint32_t word = 0; word < TABLES_HANDLE_WORDS; word++)
		for (uint32_t i = 0; i < tables_used; i++)
			if (tables[i].grows && tables[i].key == handle[word])
				return &tables[i];
	return NULL;
}

// ---- Looking up ------------------------------------------------------------------------------

// The entry for pc in one table. A callback is the program's own code, and is called only if it was
// found to be simple (tables_is_simple).
static const struct pdata_function *tables_function(const struct tables_entry *entry, uintptr_t pc)
{
	const struct pdata_function *found = NULL;

	if (entry->callback) {
		found = entry->callback(pc, entry->context);
		if (!found || !tables_can_read((uintptr_t)found, PDATA_FUNCTION_BYTES))
			return NULL;
		return pdata_search(found, 1, true, (uint32_t)(pc - entry->base));
	}
	if (!tables_can_read((uintptr_t)entry->functions,
			     (size_t)entry->count * PDATA_FUNCTION_BYTES))
		return NULL;
	return pdata_search(entry->functions, entry->count, entry->sorted,
			    (uint32_t)(pc - entry->base));
}

static struct tables_entry *tables_newest(uintptr_t pc)
{
	struct tables_entry *newest = NULL;

	for (uint32_t i = 0; i < tables_used; i++) {
		struct tables_entry *entry = &tables[i];

		if (pc - entry->start < entry->end - entry->start &&
		    (!newest || entry->since > newest->since))
			newest = entry;
	}
	return newest;
}

// False: the address becomes a part of the range that was asked for in vain.
bool tables_find(uintptr_t pc, struct codemap_place *place)
{
	struct tables_entry *entry = tables_newest(pc);
	const struct pdata_function *function = entry ? tables_function(entry, pc) : NULL;

	if (!function || !pdata_is_readable(entry->base, function, tables_can_read)) {
		tables_missed_low = pc < tables_missed_low ? pc : tables_missed_low;
		tables_missed_high = pc >= tables_missed_high ? pc + 1 : tables_missed_high;
		return false;
	}
	entry->walked = true;
	place->start = entry->base;
	place->end = pdata_end(entry->base, function);
	place->function = function;
	place->generated = true;
	return true;
}

// A runtime that writes new code into a callback's range says nothing of it, but has to change the
// protection.
void tables_code_changed(uintptr_t at, size_t bytes)
{
	if (likely(at >= tables_said_high || at + bytes <= tables_said_low))
		return;
	recording_lock(&recording_state->code_lock);
	for (uint32_t i = 0; i < tables_used; i++) {
		struct tables_entry *entry = &tables[i];

		if (!entry->callback || !entry->walked || at >= entry->end ||
		    at + bytes <= entry->start)
			continue;
		entry->walked = false;
		tables_forget(entry->start, entry->end);
	}
	recording_unlock(&recording_state->code_lock);
}

// ---- The hooks -------------------------------------------------------------------------------
//
// Each one ends in a jump to the function itself, so that it is in no stack of what the system
// allocates there: so a table is known a little before the system knows it, and no longer a little
// before the system forgets it. Which handle a growing table has is not known then.

static bool tables_are_kept(void)
{
	return recording_phase() == RECORDING_ON;
}

// Where its code begins and ends the program does not say: that is found by going through all
// entries, if they can be read.
static void tables_add_data(const struct pdata_function *functions, uint32_t count, uintptr_t base)
{
	struct tables_entry entry = {
		.base = base,
		.key = (uintptr_t)functions,
		.functions = functions,
		.count = count,
	};

	if (!tables_can_read((uintptr_t)functions, (size_t)count * PDATA_FUNCTION_BYTES))
		return;
	entry.sorted = pdata_extent(functions, count, base, &entry.start, &entry.end);
	tables_add(entry);
}

NT_CALL uint8_t hook_RtlAddFunctionTable(const void *functions, uint32_t count, uint64_t base)
{
	if (tables_are_kept() && count)
		tables_add_data(functions, count, (uintptr_t)base);
	return patch_real.RtlAddFunctionTable(functions, count, base);
}

NT_CALL uint8_t hook_RtlDeleteFunctionTable(const void *functions)
{
	if (tables_are_kept())
		tables_delete((uintptr_t)functions);
	return patch_real.RtlDeleteFunctionTable(functions);
}

// What locks, allocates or calls on may not be called from within an allocation: leaf.h says what
// is simple.
static bool tables_is_simple(uintptr_t callback)
{
	size_t bytes = KERNEL_PAGE - callback % KERNEL_PAGE;

	if (!tables_can_read(callback, bytes))
		return false;
	if (bytes < LEAF_BYTES_MAX && tables_can_read(callback + bytes, LEAF_BYTES_MAX))
		bytes += LEAF_BYTES_MAX;
	return leaf_is_simple((const uint8_t *)callback, bytes);
}

// The lower two bits of the key are set by those who know the interface; Windows refuses others.
NT_CALL uint8_t hook_RtlInstallFunctionTableCallback(uint64_t key, uint64_t base, uint32_t bytes,
						     void *callback, void *context,
						     const uint16_t *file)
{
	if (tables_are_kept() && (key & TABLES_CALLBACK) == TABLES_CALLBACK &&
	    tables_is_simple((uintptr_t)callback))
		tables_add((struct tables_entry){
			.start = (uintptr_t)base,
			.end = (uintptr_t)base + bytes,
			.base = (uintptr_t)base,
			.key = (uintptr_t)key,
			.callback = (tables_callback *)(uintptr_t)callback,
			.context = context,
		});
	return patch_real.RtlInstallFunctionTableCallback(key, base, bytes, callback, context,
							  file);
}

// The handle is made by the call that comes after, so the key is where the functions are.
NT_CALL nt_status hook_RtlAddGrowableFunctionTable(void **handle, const void *functions,
						   uint32_t count, uint32_t count_max,
						   uintptr_t base, uintptr_t end)
{
	if (tables_are_kept())
		tables_add((struct tables_entry){
			.start = base,
			.end = end,
			.base = base,
			.key = (uintptr_t)functions,
			.functions = functions,
			.count = count,
			.sorted = true,
			.grows = true,
		});
	return patch_real.RtlAddGrowableFunctionTable(handle, functions, count, count_max, base,
						      end);
}

static void tables_grow(const void *handle, uint32_t count)
{
	struct tables_entry *entry;

	recording_lock(&recording_state->code_lock);
	entry = tables_by_handle(handle);
	if (entry) {
		entry->count = count;
		if (entry->start < tables_missed_high && tables_missed_low < entry->end)
			tables_forget(entry->start, entry->end);
	}
	recording_unlock(&recording_state->code_lock);
}

NT_CALL void hook_RtlGrowFunctionTable(void *handle, uint32_t count)
{
	if (tables_are_kept())
		tables_grow(handle, count);
	patch_real.RtlGrowFunctionTable(handle, count);
}

// Where the handle says nothing, any of them may be meant.
static void tables_delete_growing(const void *handle)
{
	struct tables_entry *entry;

	recording_lock(&recording_state->code_lock);
	entry = tables_by_handle(handle);
	if (entry)
		tables_remove(entry);
	else
		for (uint32_t i = tables_used; i-- > 0;)
			if (tables[i].grows)
				tables_remove(&tables[i]);
	recording_unlock(&recording_state->code_lock);
}

NT_CALL void hook_RtlDeleteGrowableFunctionTable(void *handle)
{
	if (tables_are_kept())
		tables_delete_growing(handle);
	patch_real.RtlDeleteGrowableFunctionTable(handle);
}
