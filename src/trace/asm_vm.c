// What words an event may have follows from its kind's columns (columns.h): "prot=" is taken where
// the kind has a protection, and elsewhere it is a mistake. So a kind with new columns is read and
// written as it is. For example
//
//     @1 t mmap s 0x7f0000 8192 prot=rw flags=private|anonymous
//     @2 t mremap s 0x7f0000 8192 -> 0x7e0000 16384
//
// The second has an old address and an old size, so both stand before the arrow. Snapshots have
// lines of their own: a snapshot, its mappings, and the pages of each; it is written when another
// line comes.
#include "trace/asm_vm.h"

#include "base/mem.h"
#include "trace/asm_words.h"
#include "trace/columns.h"

#include <inttypes.h>

#define BIT(column) (UINT64_C(1) << (column))

static bool has(uint8_t kind, enum column column)
{
	return (columns_of_kind(kind) & BIT(column)) != 0;
}

// One `key=value` of an event: *taken if the next word was one that its kind has. `error` and
// `offset` are numbers; the rest are words, of which each kind takes some.
static bool take_vm_field(struct asm_text *text, uint8_t kind, struct trace_vm *vm, bool *taken)
{
	struct asm_word *word = asm_text_peek(text);
	uint64_t error = 0;
	struct asm_field numbers[3] = { 0 };
	size_t count = 0;
	const char *value;
	bool ok = true;

	if (has(kind, COLUMN_OFFSET))
		numbers[count++] = (struct asm_field){ "offset", &vm->offset, 0 };
	if (has(kind, COLUMN_ERROR))
		numbers[count++] = (struct asm_field){ "error", &error, UINT32_MAX };
	ASSERT(count < sizeof numbers / sizeof *numbers);
	if (!asm_text_field(text, numbers, taken))
		return false;
	if (*taken) {
		// "error=0" is taken and changes nothing: a call without an error has none.
		if (error != 0)
			vm->error = (uint32_t)error;
		return true;
	}
	*taken = true;
	if (has(kind, COLUMN_PROTECTION) && (value = asm_text_value(text, "prot")) != NULL)
		ok = asm_words_find_protection(value, &vm->protection);
	else if (has(kind, COLUMN_FLAGS) && (value = asm_text_value(text, "flags")) != NULL)
		ok = asm_words_find_flags(value, kind, &vm->flags);
	else if (has(kind, COLUMN_FILE) && (value = asm_text_value(text, "file")) != NULL)
		ok = asm_labels_find(&text->labels, 'x', value, &vm->file);
	else if (has(kind, COLUMN_ORIGIN) && (value = asm_text_value(text, "origin")) != NULL)
		ok = asm_words_find_origin(value, &vm->origin);
	else
		*taken = false;
	return ok ||
	       asm_lex_fail(&text->lex, word, text->err, "what does \"%s\" mean?", word->text);
}

static bool take_arrow(struct asm_text *text)
{
	if (!asm_text_is(asm_text_peek(text), "->"))
		return asm_text_fail(text, asm_text_peek(text), "-> expected");
	text->at++;
	return true;
}

// Addresses and sizes in the order of the call: where it was and how long, an arrow, where it is
// and how long.
static bool take_places(struct asm_text *text, struct trace_event *event, struct trace_vm *vm)
{
	uint8_t kind = event->kind;

	if (has(kind, COLUMN_OLD_ADDRESS) &&
	    (!asm_text_number(text, "an address", &event->old_address) ||
	     (has(kind, COLUMN_OLD_SIZE) && !asm_text_number(text, "a size", &vm->old_size)) ||
	     !take_arrow(text)))
		return false;
	if (has(kind, COLUMN_ADDRESS) && !asm_text_number(text, "an address", &event->address))
		return false;
	return !has(kind, COLUMN_SIZE) || asm_text_number(text, "a size", &event->size);
}

// All kinds beyond TRACE_FAILED: calls on virtual memory; and those on heaps and blocks from before
// the recording, which have places but no words after them. `vm` is on this function's stack: the
// writer copies what it needs.
bool asm_vm_read_event(struct asm_text *text, struct trace_event *event)
{
	struct trace_vm vm = { 0 };

	if (has(event->kind, COLUMN_HEAP) && !asm_text_label(text, 'h', "heap", &event->heap))
		return false;
	if (!take_places(text, event, &vm))
		return false;
	while (trace_kind_is_vm(event->kind) && asm_text_peek(text)) {
		bool taken;

		if (!take_vm_field(text, event->kind, &vm, &taken))
			return false;
		if (!taken)
			break;
	}
	if (!asm_text_at_end(text))
		return false;
	event->vm = &vm;
	writer_event(text->writer, event);
	event->vm = NULL;
	return true;
}

// A heap with a handle is one of Windows or of a language; one with a name alone is a pool.
// "created=" has the flags of the call that made the heap, which may be 0: so it is the word that
// says that such a call was seen, not the number.
bool asm_vm_read_heap(struct asm_text *text)
{
	struct trace_heap heap = { .name = "" };
	uint64_t created = UINT64_MAX;
	const struct asm_field fields[] = { { "handle", &heap.handle, 0 },
					    { "created", &created, UINT32_MAX },
					    { NULL, NULL, 0 } };
	bool taken;

	if (!asm_text_new_label(text, 'h', writer_counts(text->writer)->heaps))
		return false;
	if (!asm_text_process(text, "a heap", &heap.process))
		return false;
	do {
		if (!asm_text_field(text, fields, &taken))
			return false;
	} while (taken);
	heap.created = created != UINT64_MAX;
	heap.flags = heap.created ? (uint32_t)created : 0;
	if (asm_text_peek(text)) {
		if (!asm_text_peek(text)->quoted)
			return asm_text_fail(text, asm_text_peek(text),
					     "handle= or a name in quotes expected");
		heap.name = asm_text_take(text, "a name")->text;
	}
	if (!asm_text_at_end(text))
		return false;
	writer_add_heap(text->writer, &heap);
	return true;
}

static bool take_path(struct asm_text *text, void *context)
{
	struct trace_file *file = context;

	file->path = asm_text_quoted(text);
	return file->path != NULL;
}

bool asm_vm_read_file(struct asm_text *text)
{
	struct trace_file file = { .path = "" };
	const struct asm_field fields[] = { { "device", &file.device, 0 },
					    { "inode", &file.inode, 0 },
					    { NULL, NULL, 0 } };

	if (!asm_text_new_label(text, 'x', writer_counts(text->writer)->files) ||
	    !asm_text_fields(text, fields, take_path, &file,
			     "device=, inode= or a path in quotes expected"))
		return false;
	writer_add_file(text->writer, &file);
	return true;
}

// 0 reads as a number, but no snapshot has it as its reason.
bool asm_vm_take_reason(struct asm_text *text, void *context)
{
	uint8_t *reason = context;
	const char *value = asm_text_value(text, "reason");

	return value && asm_words_find_reason(value, reason) && *reason != 0;
}

// Defaults are what a person who writes a test would mean: now, between two events, pages of 4 KiB.
bool asm_vm_read_snapshot(struct asm_text *text)
{
	struct trace_snapshot *snapshot = &text->snapshot;
	uint64_t flags = 0;
	const struct asm_field fields[] = {
		{ "at", &snapshot->time_ns, 0 },
		{ "began", &snapshot->began, 0 },
		{ "ended", &snapshot->ended, 0 },
		{ "page", &snapshot->page_bytes, 0 },
		{ "rss", &snapshot->rss_bytes, 0 },
		{ "rss-max", &snapshot->rss_bytes_max, 0 },
		{ "cost", &snapshot->cost_ns, 0 },
		{ "flags", &flags, UINT32_MAX },
		{ NULL, NULL, 0 },
	};

	*snapshot = (struct trace_snapshot){
		.reason = TRACE_SNAPSHOT_ASKED,
		.time_ns = text->time_ns,
		.began = writer_events_count(text->writer),
		.page_bytes = 4096,
		.mappings = snapshot->mappings,
		.pages = snapshot->pages,
	};
	snapshot->ended = snapshot->began;
	if (!asm_text_process(text, "a snapshot", &snapshot->process) ||
	    !asm_text_fields(text, fields, asm_vm_take_reason, &snapshot->reason,
			     "reason=release|exit|growth|asked, at=, began=, ended=, page=, rss=, "
			     "rss-max=, cost= or flags= expected"))
		return false;
	if (snapshot->ended < snapshot->began)
		return asm_text_fail(text, NULL, "a snapshot that ended before it began");
	if (__builtin_popcountll(snapshot->page_bytes) != 1)
		return asm_text_fail(text, NULL, "page= takes a power of two");
	snapshot->flags = (uint32_t)flags;
	text->snapshot_open = true;
	return true;
}

// The range at the head of a line of a snapshot. Mappings rise within their snapshot, and so do
// pages: `before` is where the last one of its kind ended.
static bool take_part(struct asm_text *text, uint64_t before, uint64_t *start, uint64_t *end)
{
	struct asm_word *word = asm_text_peek(text);

	ASSERT(!text->snapshot_open || text->snapshot.page_bytes > 0);
	if (!text->snapshot_open)
		return asm_text_fail(text, &text->lex.words[0], "a snapshot has to come before");
	if (!asm_text_range(text, start, end))
		return false;
	if (*start == *end)
		return asm_text_fail(text, word, "an empty range");
	return *start >= before || asm_text_fail(text, word, "ranges must rise");
}

// Protection of a mapping is r, w and x alone; in events it may have more bits.
static bool take_mapping_word(struct asm_text *text, void *context)
{
	struct trace_mapping *mapping = context;
	const char *value;

	if (asm_text_is(asm_text_peek(text), "shared")) {
		mapping->shared = true;
		text->at++;
		return true;
	}
	value = asm_text_value(text, "prot");
	if (value)
		return asm_words_find_protection(value, &mapping->protection) &&
		       mapping->protection <= 7;
	value = asm_text_value(text, "file");
	return value && asm_labels_find(&text->labels, 'x', value, &mapping->file);
}

// Sizes are bytes, as /proc/PID/smaps names them; what the text does not say is 0. `mappings` is
// kept and used again for the next snapshot.
bool asm_vm_read_mapping(struct asm_text *text)
{
	struct trace_snapshot *snapshot = &text->snapshot;
	uint32_t count = snapshot->mappings_count;
	struct trace_mapping mapping = { 0 };
	const struct asm_field fields[] = {
		{ "offset", &mapping.offset, 0 },
		{ "rss", &mapping.rss, 0 },
		{ "pss", &mapping.pss, 0 },
		{ "shared-clean", &mapping.shared_clean, 0 },
		{ "shared-dirty", &mapping.shared_dirty, 0 },
		{ "private-clean", &mapping.private_clean, 0 },
		{ "private-dirty", &mapping.private_dirty, 0 },
		{ "anonymous", &mapping.anonymous, 0 },
		{ "swap", &mapping.swap, 0 },
		{ "locked", &mapping.locked, 0 },
		{ NULL, NULL, 0 },
	};

	if (!take_part(text, count ? snapshot->mappings[count - 1].end : 0, &mapping.start,
		       &mapping.end) ||
	    !asm_text_fields(text, fields, take_mapping_word, &mapping,
			     "prot=, shared, offset=, file=LABEL, rss= or another part of it "
			     "expected"))
		return false;
	MEM_ROOM(snapshot->mappings, text->mappings_capacity, count + 1);
	snapshot->mappings[snapshot->mappings_count++] = mapping;
	return true;
}

// In one list for the whole snapshot, not for each mapping: as in the format.
bool asm_vm_read_pages(struct asm_text *text)
{
	struct trace_snapshot *snapshot = &text->snapshot;
	uint32_t count = snapshot->pages_count;
	struct trace_pages pages = { .flags = TRACE_PAGES_PRESENT };
	struct asm_word *word;

	if (!take_part(text, count ? snapshot->pages[count - 1].end : 0, &pages.start, &pages.end))
		return false;
	if ((pages.start | pages.end) % snapshot->page_bytes != 0)
		return asm_text_fail(text, &text->lex.words[1], "whole pages expected");
	word = asm_text_peek(text);
	if (word) {
		text->at++;
		if (!asm_words_find_pages(word->text, &pages.flags) || pages.flags == 0)
			return asm_text_fail(text, word,
					     "present or swapped, with | between, expected");
	}
	if (!asm_text_at_end(text))
		return false;
	MEM_ROOM(snapshot->pages, text->pages_capacity, count + 1);
	snapshot->pages[snapshot->pages_count++] = pages;
	return true;
}

// The arrays stay allocated for the next one.
void asm_vm_close_snapshot(struct asm_text *text)
{
	if (text->snapshot_open)
		writer_snapshot(text->writer, &text->snapshot);
	text->snapshot_open = false;
}

// Protection and flags are always there where the kind has them, the others only where they are not
// 0.
static void dump_vm(uint8_t kind, const struct trace_vm *vm, struct sink *sink)
{
	if (has(kind, COLUMN_PROTECTION)) {
		sink_text(sink, " prot=");
		asm_words_put_protection(sink, vm->protection);
	}
	if (has(kind, COLUMN_FLAGS)) {
		sink_text(sink, " flags=");
		asm_words_put_flags(sink, kind, vm->flags);
	}
	if (vm->file != 0)
		sink_format(sink, " file=x%u", vm->file);
	if (vm->offset != 0)
		sink_format(sink, " offset=0x%" PRIx64, vm->offset);
	if (vm->origin != TRACE_ORIGIN_PROGRAM) {
		sink_text(sink, " origin=");
		asm_words_put_origin(sink, vm->origin);
	}
	asm_words_put_number(sink, "error", vm->error, 0);
}

void asm_vm_dump_event(const struct trace_event *event, struct sink *sink)
{
	uint8_t kind = event->kind;

	if (has(kind, COLUMN_HEAP))
		sink_format(sink, " h%u", event->heap);
	if (has(kind, COLUMN_OLD_ADDRESS))
		sink_format(sink, " 0x%" PRIx64, event->old_address);
	if (has(kind, COLUMN_OLD_SIZE))
		sink_format(sink, " %" PRIu64, event->vm->old_size);
	if (has(kind, COLUMN_OLD_ADDRESS))
		sink_text(sink, " ->");
	if (has(kind, COLUMN_ADDRESS))
		sink_format(sink, " 0x%" PRIx64, event->address);
	if (has(kind, COLUMN_SIZE))
		sink_format(sink, " %" PRIu64, event->size);
	if (event->vm)
		dump_vm(kind, event->vm, sink);
	sink_text(sink, "\n");
}

// What is 0 is left out: of most mappings two or three figures are not.
static void dump_mapping(const struct trace_mapping *mapping, struct sink *sink)
{
	sink_format(sink, "mapping 0x%" PRIx64 "-0x%" PRIx64 " prot=", mapping->start,
		    mapping->end);
	asm_words_put_protection(sink, mapping->protection);
	if (mapping->shared)
		sink_text(sink, " shared");
	if (mapping->file != 0)
		sink_format(sink, " file=x%u", mapping->file);
	if (mapping->offset != 0)
		sink_format(sink, " offset=0x%" PRIx64, mapping->offset);
	asm_words_put_number(sink, "rss", mapping->rss, 0);
	asm_words_put_number(sink, "pss", mapping->pss, 0);
	asm_words_put_number(sink, "shared-clean", mapping->shared_clean, 0);
	asm_words_put_number(sink, "shared-dirty", mapping->shared_dirty, 0);
	asm_words_put_number(sink, "private-clean", mapping->private_clean, 0);
	asm_words_put_number(sink, "private-dirty", mapping->private_dirty, 0);
	asm_words_put_number(sink, "anonymous", mapping->anonymous, 0);
	asm_words_put_number(sink, "swap", mapping->swap, 0);
	asm_words_put_number(sink, "locked", mapping->locked, 0);
	sink_text(sink, "\n");
}

// at=, began= and ended= are always written: what they are without it depends on where in the text
// the line is.
static void dump_snapshot(const struct trace_snapshot *snapshot, struct sink *sink)
{
	sink_format(sink, "snapshot p%u reason=", snapshot->process);
	asm_words_put_reason(sink, snapshot->reason);
	sink_format(sink, " at=%" PRIu64 " began=%" PRIu64 " ended=%" PRIu64, snapshot->time_ns,
		    snapshot->began, snapshot->ended);
	sink_format(sink, " page=%" PRIu64, snapshot->page_bytes);
	asm_words_put_number(sink, "rss", snapshot->rss_bytes, 0);
	asm_words_put_number(sink, "rss-max", snapshot->rss_bytes_max, 0);
	asm_words_put_number(sink, "cost", snapshot->cost_ns, 0);
	asm_words_put_number(sink, "flags", snapshot->flags, 0);
	sink_text(sink, "\n");
	for (uint32_t i = 0; i < snapshot->mappings_count; i++)
		dump_mapping(&snapshot->mappings[i], sink);
	for (uint32_t i = 0; i < snapshot->pages_count; i++) {
		const struct trace_pages *pages = &snapshot->pages[i];

		sink_format(sink, "pages 0x%" PRIx64 "-0x%" PRIx64 " ", pages->start, pages->end);
		asm_words_put_pages(sink, pages->flags);
		sink_text(sink, "\n");
	}
}

// Heaps, files, and snapshots with all that is in them, each as the line or lines that define it.
void asm_vm_dump_definitions(const struct reader *reader, struct sink *sink)
{
	for (heap_id id = 1; id < reader_heaps_count(reader); id++) {
		const struct trace_heap *heap = reader_heap(reader, id);

		sink_format(sink, "heap h%u p%u", id, heap->process);
		if (heap->handle != 0)
			sink_format(sink, " handle=0x%" PRIx64, heap->handle);
		if (heap->created)
			sink_format(sink, " created=0x%" PRIx32, heap->flags);
		sink_text(sink, " ");
		asm_words_quote(sink, heap->name);
		sink_text(sink, "\n");
	}
	for (file_id id = 1; id < reader_files_count(reader); id++) {
		const struct trace_file *file = reader_file(reader, id);

		sink_format(sink, "file x%u", id);
		asm_words_put_number(sink, "device", file->device, 0);
		asm_words_put_number(sink, "inode", file->inode, 0);
		sink_text(sink, " ");
		asm_words_quote(sink, file->path);
		sink_text(sink, "\n");
	}
	for (uint32_t i = 0; i < reader_snapshots_count(reader); i++) {
		struct trace_snapshot snapshot;

		if (!reader_snapshot_load(reader, i, &snapshot))
			continue;
		dump_snapshot(&snapshot, sink);
		snapshot_fini(&snapshot);
	}
}
