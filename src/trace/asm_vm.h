// asm_vm: the text form of heaps other than malloc's, of virtual memory and of snapshots.
//
//     asm_read        dispatches lines that begin with heap, file, snapshot, mapping or pages, and
//                     events of kinds beyond malloc's, to here
//     asm_dump        the same, the other way
//
// A snapshot takes several lines: it is written when a line comes that does not belong to it.
#pragma once

#include "base/sink.h"
#include "trace/asm_text.h"
#include "trace/reader.h"

// The rest of an event's line, after its kind and stack.
bool asm_vm_read_event(struct asm_text *text, struct trace_event *event);

// The rest of a line, after its first word.
bool asm_vm_read_heap(struct asm_text *text);
bool asm_vm_read_file(struct asm_text *text);
bool asm_vm_read_snapshot(struct asm_text *text);
bool asm_vm_read_mapping(struct asm_text *text);
bool asm_vm_read_pages(struct asm_text *text);

// reason=…, into a uint8_t: for asm_text_fields.
bool asm_vm_take_reason(struct asm_text *text, void *reason);

// Write the snapshot that is open, if one is.
void asm_vm_close_snapshot(struct asm_text *text);

// The same, as text: an event after its stack, with the end of the line; heaps, files and
// snapshots.
void asm_vm_dump_event(const struct trace_event *event, struct sink *sink);
void asm_vm_dump_definitions(const struct reader *reader, struct sink *sink);
