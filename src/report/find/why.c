// From a block outwards to what holds it, until a place that is no block. For example a node of
// 32 bytes at 0x5040 that a table of 4 KiB at 0x6000 holds at its byte 128, and the table is held
// by a global variable:
//
//     0x5040  32 B, reachable
//       in 0x6000  4.0 KiB, at byte 128
//       in a global variable at 0x404060 (app+0x4060)
//
// The search keeps one holder of each block, the first that it came by; there may be others.
#include "report/find/why.h"

#include "base/mem.h"
#include "base/str.h"
#include "report/find/reached.h"
#include "report/table/lines.h"
#include "report/table/query_write.h"

#include <inttypes.h>

enum { INDENT = 4, CALLERS = 3 };

static const char *const state_sentences[TRACE_REACH_STATES_COUNT] = {
	[TRACE_REACH_REACHABLE] = "reachable",
	[TRACE_REACH_INSIDE] = "reachable only by a pointer to the inside of a block",
	[TRACE_REACH_UNREACHABLE] = "unreachable: nothing points to it",
	[TRACE_REACH_HELD] = "unreachable: only an unreachable block points to it",
};

static void add(struct why *why, uint32_t block)
{
	*MEM_ADD(why->blocks, why->count, why->capacity) = block;
}

// From the block to those that hold it; `at` of each is where the pointer is: the address in the
// holder, or of the place that is no block. A circle, which no recorder writes, ends.
static void follow(struct why *why, const struct trace_reach_block *block)
{
	const struct trace_reach *reach = &why->reach;

	while (block && why->count < reach->count) {
		add(why, (uint32_t)(block - reach->blocks));
		if (block->place != TRACE_REACH_BLOCK)
			return;
		block = reached_find(reach, block->at);
	}
}

// What was found at the process's end is preferred; else the last search of the recording. Of
// several processes with a block at that address the first is taken (--process chooses another):
// equal addresses are common after a fork.
bool why_find(struct why *why, struct query_context *asked, uint64_t address, struct err *err)
{
	const struct query *query = &asked->selection.query;
	bool searched = false;

	*why = (struct why){ .asked = asked, .address = address };
	for (process_id id = 0; id < reader_processes_count(asked->reader); id++) {
		const struct trace_reach_block *block;

		if (!query_has_process(query, id) ||
		    (!reached_load(asked->reader, id, TRACE_SNAPSHOT_EXIT, &why->reach) &&
		     !reached_load(asked->reader, id, 0, &why->reach)))
			continue;
		searched = true;
		block = reached_find(&why->reach, address);
		if (block) {
			follow(why, block);
			return true;
		}
		reach_fini(&why->reach);
	}
	if (!searched)
		return err_set(err, ERR_USAGE,
			       "whether blocks are reachable was not recorded (record "
			       "--reachability)");
	return err_set(err, ERR_USAGE,
		       "no block was at 0x%" PRIx64 " when reachability was looked for (tidemark "
		       "active --at exit lists them)",
		       address);
}

void why_fini(struct why *why)
{
	reach_fini(&why->reach);
	mem_free(why->blocks);
	*why = (struct why){ 0 };
}

// ---- the root ----

// The last module that begins before the address, where data of a library follows its code. NULL:
// none does.
static const struct trace_module *module_of(const struct why *why, uint64_t at)
{
	const struct reader *reader = why->asked->reader;
	const struct trace_module *best = NULL;

	for (module_id id = 1; id < reader_modules_count(reader); id++) {
		const struct trace_module *module = reader_module(reader, id);

		if (module->process == why->reach.process && module->start <= at &&
		    (!best || module->start > best->start))
			best = module;
	}
	return best;
}

// What the chain ends in. It ends in a block only if that block is not among those of the search: a
// forked child has pointers into what its parent left it.
static void add_place(const struct why *why, const struct trace_reach_block *block,
		      struct str *text)
{
	const struct trace_module *module;

	switch (block->place) {
	case TRACE_REACH_REGISTER:
		str_format(text, "a register of thread %" PRIu64, block->at);
		break;
	case TRACE_REACH_STACK:
		str_format(text, "the stack of a thread, at 0x%" PRIx64, block->at);
		break;
	case TRACE_REACH_TLS:
		str_format(text, "memory of a thread's own, at 0x%" PRIx64, block->at);
		break;
	case TRACE_REACH_GLOBAL:
		module = module_of(why, block->at);
		str_format(text, "a global variable at 0x%" PRIx64, block->at);
		if (module)
			str_format(text, " (%s+0x%" PRIx64 ")", str_last_part(module->path),
				   block->at - module->bias);
		break;
	case TRACE_REACH_OTHER:
		str_format(text, "memory that is not malloc's, at 0x%" PRIx64, block->at);
		break;
	case TRACE_REACH_BLOCK:
		str_format(text, "a block that its parent process left it, at 0x%" PRIx64,
			   block->at);
		break;
	default:
		str_add(text, "nothing");
	}
}

static const struct trace_reach_block *block_of(const struct why *why, size_t i)
{
	ASSERT(i < why->count && why->blocks[i] < why->reach.count);
	return &why->reach.blocks[why->blocks[i]];
}

// ---- for people ----

static void write_stack(const struct why *why, struct lines *lines, stack_id id)
{
	struct names_stack stack = names_stack(why->asked->names, id);
	size_t first = lines->all_frames ? 0 : stack.user;

	lines_write_indent(lines);
	if (stack.count == 0) {
		paper_text(lines->paper, PAPER_DIM, "(no stack)\n");
		return;
	}
	lines_write(lines, stack.lines[first].symbol, PAPER_PLAIN, "");
	lines_write_callers(lines, &stack, first);
}

// Each line says where in its holder the pointer to the one above it is.
void why_write_text(const struct why *why, struct paper *paper, bool all_frames)
{
	struct lines lines = { .paper = paper,
			       .indent = INDENT,
			       .all_frames = all_frames,
			       .callers_max = all_frames ? 0 : CALLERS };
	const struct trace_reach_block *last = block_of(why, why->count - 1);
	struct str text = { 0 };

	for (size_t i = 0; i < why->count; i++) {
		const struct trace_reach_block *block = block_of(why, i);

		paper_format(paper, PAPER_BOLD, "%s0x%" PRIx64, i ? "  in " : "", block->address);
		paper_format(paper, PAPER_PLAIN, "  %s", STR_BYTES(block->size));
		if (i == 0)
			paper_format(paper, PAPER_PLAIN, ", %s", state_sentences[block->state]);
		else
			// `at` of the block above is the address in this one where the pointer is.
			paper_format(paper, PAPER_PLAIN, ", at byte %" PRIu64,
				     block_of(why, i - 1)->at - block->address);
		sink_text(paper->sink, "\n");
		write_stack(why, &lines, block->stack);
	}
	add_place(why, last, &text);
	if (last->place != TRACE_REACH_NOWHERE) {
		paper_text(paper, PAPER_BOLD, "  in ");
		paper_foreign(paper, PAPER_PLAIN, str_get(&text), paper->width - INDENT);
		sink_text(paper->sink, "\n");
	}
	query_write_symbol_notes(why->asked, paper);
	str_fini(&text);
}

// ---- for programs ----

// `blocks` are from the block outwards; the offset of each is where in it the pointer to the one
// before is, so the first has none. `root` is the last line of the text.
void why_write_json(const struct why *why, struct sink *sink)
{
	const struct trace_reach_block *last = block_of(why, why->count - 1);
	struct str text = { 0 };
	struct json json;

	json_begin(&json, sink, true, "tidemark-why-1");
	json_kv_u64(&json, "address", why->address);
	json_kv_u64(&json, "process_id", why->reach.process);
	json_kv_u64(&json, "time_ns", why->reach.time_ns);
	json_kv_string(&json, "state", reach_state_word(block_of(why, 0)->state));
	json_kv_array(&json, "blocks");
	for (size_t i = 0; i < why->count; i++) {
		const struct trace_reach_block *block = block_of(why, i);
		struct names_stack stack = names_stack(why->asked->names, block->stack);

		json_object_begin(&json);
		json_kv_u64(&json, "address", block->address);
		json_kv_u64(&json, "size", block->size);
		json_kv_u64_if(&json, "offset", i > 0,
			       i > 0 ? block_of(why, i - 1)->at - block->address : 0);
		lines_json_site(&json, &stack);
		json_object_end(&json);
	}
	json_array_end(&json);
	add_place(why, last, &text);
	json_kv_string(&json, "place", reach_place_word(last->place));
	json_kv_u64_if(&json, "place_at", last->place != TRACE_REACH_NOWHERE, last->at);
	json_kv_text(&json, "root", str_get(&text));
	query_write_end(why->asked, &json);
	str_fini(&text);
}
