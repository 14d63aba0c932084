// For example, on x86 (no exception directory), the bytes e8 0b 00 00 00 at 0x1000 call 0x1000 + 5
// + 0x0b = 0x1010. That may also be a number that looks like a call: each place in a section of
// code is taken for one. So a function that begins at 0x1000 ends at 0x1010 at the latest, and
// before that where padding, or a return before a multiple of 16, says that another may begin.
#include "symbols/pe_bounds.h"

#include "base/mem.h"
#include "base/rising.h"
#include "base/sort.h"
#include "trace/bytes.h"

#include <stdlib.h>

enum {
	ENTRY_BYTES = 12, // of .pdata
	CHAIN_MAX = 32,
	CHAINED = 4, // flag of unwind information: it belongs to another entry
	RELOCATION_32 = 3,
	RELOCATION_64 = 10,
	ALIGNMENT = 16, // functions begin at multiples of it, or behind padding
	BREAKPOINT = 0xcc,
	NOP = 0x90,
};

struct pe_bounds_function {
	uint32_t start, end;
	uint32_t function; // RVA where the whole begins
};

SORT_ORDER(compare_functions, struct pe_bounds_function, SORT_RISES(start))

// The beginning of the function that an entry belongs to, by way of chained entries.
static uint32_t find_function(const struct pe *pe, const uint8_t *entry)
{
	// Unwind information: version and flags, size of the prologue, count of codes, frame; codes
	// of 2 bytes, padded to an even number; then, if chained, the entry that it belongs to.
	// With 3 codes that is 4 + 2 * 4 = 12 bytes further on.
	for (int i = 0; i < CHAIN_MAX; i++) {
		uint32_t unwind = bytes_get_u32(entry + 8);
		const uint8_t *head, *next;

		if (unwind & 1) { // it names another entry
			next = pe_at(pe, unwind & ~1u, ENTRY_BYTES);
		} else {
			head = pe_at(pe, unwind, 4);
			if (!head || !(head[0] >> 3 & CHAINED))
				break;
			next = pe_at(pe, unwind + 4 + 2 * ((head[2] + 1u) & ~1u), ENTRY_BYTES);
		}
		if (!next)
			break;
		entry = next;
	}
	return bytes_get_u32(entry);
}

// Entries of .pdata: begin, end, unwind information; 12 bytes each. They should rise, but are
// sorted all the same: a lookup that relied on it would go wrong without a sign.
static void read_entries(struct pe_bounds *bounds)
{
	const struct pe *pe = bounds->pe;
	uint32_t rva = pe->directories[PE_EXCEPTIONS].rva;
	uint32_t left = pe->directories[PE_EXCEPTIONS].size_bytes;

	for (; left >= ENTRY_BYTES; left -= ENTRY_BYTES, rva += ENTRY_BYTES) {
		const uint8_t *entry = pe_at(pe, rva, ENTRY_BYTES);

		if (!entry)
			break;
		if (bytes_get_u32(entry) == 0 || bytes_get_u32(entry + 4) <= bytes_get_u32(entry))
			continue;
		MEM_ROOM(bounds->functions, bounds->functions_capacity,
			 bounds->functions_count + 1);
		bounds->functions[bounds->functions_count++] =
			(struct pe_bounds_function){ bytes_get_u32(entry), bytes_get_u32(entry + 4),
						     find_function(pe, entry) };
	}
	if (bounds->functions_count > 0)
		qsort(bounds->functions, bounds->functions_count, sizeof *bounds->functions,
		      compare_functions);
}

void pe_bounds_init(struct pe_bounds *bounds, const struct pe *pe)
{
	*bounds = (struct pe_bounds){ .pe = pe };
	if (pe->machine == PE_MACHINE_X64)
		read_entries(bounds);
}

void pe_bounds_fini(struct pe_bounds *bounds)
{
	MEM_FREE(bounds->functions, bounds->starts);
	*bounds = (struct pe_bounds){ 0 };
}

// The last function that begins at or before `rva`; SIZE_MAX: none.
static size_t last_before(const struct pe_bounds *bounds, uint32_t rva)
{
	return RISING_UPTO(bounds->functions, bounds->functions_count, start, rva) - 1;
}

bool pe_bounds_find(const struct pe_bounds *bounds, uint32_t rva, uint32_t *start, uint32_t *end,
		    uint32_t *function)
{
	size_t at = last_before(bounds, rva);

	if (at == SIZE_MAX || rva >= bounds->functions[at].end)
		return false;
	ASSERT(bounds->functions[at].start <= rva);
	*start = bounds->functions[at].start;
	*end = bounds->functions[at].end;
	*function = bounds->functions[at].function;
	return true;
}

static void add_start(struct pe_bounds *bounds, uint64_t rva)
{
	const struct pe_section *section =
		rva < UINT32_MAX ? pe_section_at(bounds->pe, (uint32_t)rva) : NULL;

	if (!section || !section->code)
		return;
	*MEM_ADD(bounds->starts, bounds->starts_count, bounds->starts_capacity) = (uint32_t)rva;
}

// What the calls in it lead to, wherever an instruction may begin.
static void add_calls(struct pe_bounds *bounds, const struct pe_section *section)
{
	for (uint32_t at = 0; at + 5 <= section->bytes_count; at++)
		if (section->bytes[at] == 0xe8)
			add_start(bounds, (uint32_t)(section->rva + at + 5 +
						     bytes_get_u32(section->bytes + at + 1)));
}

// What the pointers in the image mean, as far as they are relocated.
static void add_pointers(struct pe_bounds *bounds)
{
	const struct pe *pe = bounds->pe;
	uint32_t rva = pe->directories[PE_RELOCATIONS].rva;
	uint32_t left = pe->directories[PE_RELOCATIONS].size_bytes;

	while (left >= 8) {
		// A block of relocations: its page, its size, and two bytes for each place in the
		// page: four bits for the kind of pointer, twelve for the offset. In the block of
		// page 0x3000 the word 0x3010 is a pointer of 32 bits at 0x3010.
		const uint8_t *block = pe_at(pe, rva, 8);
		uint32_t page = block ? bytes_get_u32(block) : 0,
			 size = block ? bytes_get_u32(block + 4) : 0;

		if (size < 8 || size > left || !(block = pe_at(pe, rva, size)))
			return;
		for (uint32_t at = 8; at + 2 <= size; at += 2) {
			uint32_t word = bytes_get_u16(block + at), kind = word >> 12;
			const uint8_t *pointer =
				pe_at(pe, page + (word & 0xfff), kind == RELOCATION_64 ? 8 : 4);

			if (pointer && kind == RELOCATION_32)
				add_start(bounds, bytes_get_u32(pointer) - (uint32_t)pe->base);
			else if (pointer && kind == RELOCATION_64)
				add_start(bounds, bytes_get_u64(pointer) - pe->base);
		}
		rva += size;
		left -= size;
	}
}

SORT_ORDER(compare_starts, uint32_t, SORT_BY(*one, *other))

// Only for an image of which such a question is asked: it reads all code once.
static void search(struct pe_bounds *bounds)
{
	size_t count = 0;

	bounds->searched = true;
	if (bounds->pe->machine != PE_MACHINE_X64 && bounds->pe->machine != PE_MACHINE_X86)
		return;
	for (size_t i = 0; i < bounds->pe->sections_count; i++)
		if (bounds->pe->sections[i].code && bounds->pe->sections[i].bytes)
			add_calls(bounds, &bounds->pe->sections[i]);
	add_pointers(bounds);
	add_start(bounds, bounds->pe->entry);
	if (bounds->starts_count == 0)
		return;
	qsort(bounds->starts, bounds->starts_count, sizeof *bounds->starts, compare_starts);
	for (size_t i = 0; i < bounds->starts_count; i++)
		if (count == 0 || bounds->starts[i] != bounds->starts[count - 1])
			bounds->starts[count++] = bounds->starts[i];
	ASSERT(count > 0 && count <= bounds->starts_count);
	bounds->starts_count = count;
}

// May another function begin at `at`, by what stands before it?
static bool may_begin(const uint8_t *bytes, uint32_t at, uint32_t rva)
{
	if (at < 2)
		return false;
	if (bytes[at - 1] == BREAKPOINT)
		return true;
	if (rva % ALIGNMENT != 0)
		return false;
	// Padding; ret; ret n; jmp to anywhere near or not so near.
	return bytes[at - 1] == NOP || bytes[at - 1] == 0x00 || bytes[at - 1] == 0xc3 ||
	       (at >= 3 && bytes[at - 3] == 0xc2) || bytes[at - 2] == 0xeb ||
	       (at >= 5 && bytes[at - 5] == 0xe9);
}

// The first of `starts` behind `rva`, or UINT32_MAX.
static uint32_t next_start(const struct pe_bounds *bounds, uint32_t rva)
{
	size_t low = 0, high = bounds->starts_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (bounds->starts[middle] <= rva)
			low = middle + 1;
		else
			high = middle;
	}
	return low < bounds->starts_count ? bounds->starts[low] : UINT32_MAX;
}

uint32_t pe_bounds_end(struct pe_bounds *bounds, uint32_t start)
{
	uint32_t end = start + 1;
	const uint8_t *bytes;
	size_t left = 0, at;
	uint32_t next;

	if (!bounds->searched)
		search(bounds);
	// Of three limits the nearest: the end of what the file has of the section, the next place
	// that something refers to, the next entry of .pdata. Then the bytes themselves are looked
	// at.
	bytes = pe_rest(bounds->pe, start, &left);
	if (!bytes)
		return end;
	next = next_start(bounds, start);
	if (next - start < left)
		left = next - start;
	at = last_before(bounds, start) + 1; // the next function that has an entry
	if (at < bounds->functions_count && bounds->functions[at].start - start < left)
		left = bounds->functions[at].start - start;
	for (uint32_t i = 1; i < left; i++)
		if (may_begin(bytes, i, start + i))
			return start + i;
	return start + (uint32_t)left;
}
