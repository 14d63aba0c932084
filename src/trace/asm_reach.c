// For example
//
//     reach p0 reason=exit at=9000 number=12
//     reachable 0x5010 24 t0 s3 global=0x4040
//     unreachable 0x5040 100 t0 s3
//
// says that at 9 us, before event 12, the word at 0x4040 in the program's data held a pointer to
// the first block, and that nothing led to the second.
#include "trace/asm_reach.h"

#include "base/mem.h"
#include "trace/asm_vm.h"
#include "trace/asm_words.h"
#include "trace/reach.h"

#include <inttypes.h>

// ---- reading ----

// The array of blocks is kept for the next such line; its count begins at 0 again.
bool asm_reach_read(struct asm_text *text)
{
	struct trace_reach *reach = &text->reach;
	uint64_t flags = 0;
	const struct asm_field fields[] = {
		{ "at", &reach->time_ns, 0 },           { "number", &reach->number, 0 },
		{ "stopped", &reach->stopped_ns, 0 },   { "read", &reach->read_bytes, 0 },
		{ "first", &reach->first, UINT32_MAX }, { "total", &reach->total, UINT32_MAX },
		{ "flags", &flags, UINT32_MAX },        { NULL, NULL, 0 },
	};

	*reach = (struct trace_reach){
		.reason = TRACE_SNAPSHOT_EXIT,
		.time_ns = text->time_ns,
		.number = writer_events_count(text->writer),
		.blocks = reach->blocks,
	};
	if (!asm_text_process(text, "a reach line", &reach->process) ||
	    !asm_text_fields(text, fields, asm_vm_take_reason, &reach->reason,
			     "reason=exit|asked|mark, at=, number=, stopped=, read=, first=, "
			     "total= or flags= expected"))
		return false;
	reach->flags = (uint32_t)flags;
	text->reach_open = true;
	return true;
}

// Which of the words it is, 0: none.
static uint8_t find_state(const struct asm_word *word)
{
	for (uint8_t state = 1; word && state < TRACE_REACH_STATES_COUNT; state++)
		if (asm_text_is(word, reach_state_word(state)))
			return state;
	return 0;
}

bool asm_reach_is_block(const struct asm_word *word)
{
	return find_state(word) != 0;
}

static bool take_place(struct asm_text *text, struct trace_reach_block *block)
{
	for (uint8_t place = 1; place < TRACE_REACH_PLACES_COUNT; place++) {
		const struct asm_field field[] = { { reach_place_word(place), &block->at, 0 },
						   { NULL, NULL, 0 } };
		bool taken;

		if (!asm_text_field(text, field, &taken))
			return false;
		if (!taken)
			continue;
		block->place = place;
		return true;
	}
	return asm_text_fail(text, asm_text_peek(text),
			     "block=, register=, stack=, global=, tls= or other= expected");
}

// Addresses must rise: the writer's encoding has differences that are not 0 and not negative.
bool asm_reach_read_block(struct asm_text *text)
{
	struct trace_reach *reach = &text->reach;
	struct trace_reach_block block = { .state = find_state(&text->lex.words[0]) };

	if (!text->reach_open)
		return asm_text_fail(text, &text->lex.words[0], "a reach line has to come before");
	if (!asm_text_number(text, "an address", &block.address) ||
	    !asm_text_number(text, "a size", &block.size) ||
	    !asm_text_label(text, 't', "a thread", &block.thread))
		return false;
	asm_text_if_label(text, 's', &block.stack);
	if (asm_text_peek(text) && !take_place(text, &block))
		return false;
	if (reach->count > 0 && block.address <= reach->blocks[reach->count - 1].address)
		return asm_text_fail(text, NULL, "blocks have to rise");
	*MEM_ADD(reach->blocks, reach->count, text->reach_capacity) = block;
	return asm_text_at_end(text);
}

// `total` may be left out by who writes a text: it is then what there is.
void asm_reach_close(struct asm_text *text)
{
	struct trace_reach *reach = &text->reach;

	if (text->reach_open) {
		if (reach->total < reach->first + reach->count)
			reach->total = reach->first + reach->count;
		writer_reach(text->writer, reach);
	}
	text->reach_open = false;
}

// ---- writing ----

// A record of several parts is several reach lines, with first= where it is not the first one.
static void dump_part(const struct trace_reach *reach, struct sink *sink)
{
	sink_format(sink, "reach p%u reason=", reach->process);
	asm_words_put_reason(sink, reach->reason);
	sink_format(sink, " at=%" PRIu64 " number=%" PRIu64, reach->time_ns, reach->number);
	asm_words_put_number(sink, "stopped", reach->stopped_ns, 0);
	asm_words_put_number(sink, "read", reach->read_bytes, 0);
	asm_words_put_number(sink, "first", reach->first, 0);
	asm_words_put_number(sink, "total", reach->total, 0);
	asm_words_put_number(sink, "flags", reach->flags, 0);
	sink_text(sink, "\n");
	for (uint64_t i = 0; i < reach->count; i++) {
		const struct trace_reach_block *block = &reach->blocks[i];

		sink_format(sink, "%s 0x%" PRIx64 " %" PRIu64 " t%u",
			    reach_state_word(block->state), block->address, block->size,
			    block->thread);
		if (block->stack)
			sink_format(sink, " s%u", block->stack);
		if (block->place)
			sink_format(sink, " %s=0x%" PRIx64, reach_place_word(block->place),
				    block->at);
		sink_text(sink, "\n");
	}
}

void asm_reach_dump(const struct reader *reader, struct sink *sink)
{
	for (uint32_t i = 0; i < reader_reaches_count(reader); i++) {
		struct trace_reach reach;

		if (!reader_reach_load(reader, i, &reach))
			continue;
		dump_part(&reach, sink);
		reach_fini(&reach);
	}
}
