// asm_reach: the text form of what was reachable.
//
// A `reach` line says when, and of which process; a line for each of its blocks follows, by rising
// address: what it is, address, size, who allocated it, and where a pointer to it is. They are
// written when a line comes that does not belong to them.
#pragma once

#include "base/sink.h"
#include "trace/asm_text.h"
#include "trace/reader.h"

// Lines that begin with reach, and with what a block is. False: text->err says where.
bool asm_reach_read(struct asm_text *text);
bool asm_reach_read_block(struct asm_text *text);
bool asm_reach_is_block(const struct asm_word *word);

// Write what is open, if anything is.
void asm_reach_close(struct asm_text *text);

// All that the trace has.
void asm_reach_dump(const struct reader *reader, struct sink *sink);
