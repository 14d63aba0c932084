// A small PDB, put together byte by byte: a function with another inlined into it, which has a
// third inlined; a thunk; a public symbol without a record of its own; lines of two files; frames
// of three functions.
#pragma once

#include "base/str.h"
#include "trace/bytes.h"

#include <string.h>

enum { SAMPLE_BLOCK = 512, SAMPLE_STREAMS = 11, SAMPLE_PROGRAM = 9 };

static const uint8_t sample_guid[16] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };

static inline void sample_8(struct str *out, unsigned value)
{
	str_add_char(out, (char)value);
}

static inline void sample_16(struct str *out, unsigned value)
{
	sample_8(out, value & 0xff);
	sample_8(out, value >> 8 & 0xff);
}

static inline void sample_32(struct str *out, uint32_t value)
{
	sample_16(out, value & 0xffff);
	sample_16(out, value >> 16);
}

static inline void sample_text(struct str *out, const char *text)
{
	str_add_bytes(out, text, strlen(text) + 1);
}

static inline void sample_align(struct str *out)
{
	while (out->length % 4 != 0)
		sample_8(out, 0);
}

// A record with its length in front.
static inline void sample_record(struct str *out, unsigned kind, struct str *content)
{
	while (content->length % 4 != 0)
		sample_8(content, 0);
	sample_16(out, (unsigned)content->length + 2);
	sample_16(out, kind);
	str_add_bytes(out, str_get(content), content->length);
	str_fini(content);
}

static inline void sample_function(struct str *out, uint32_t at, uint32_t length, const char *name)
{
	struct str record = { 0 };

	sample_32(&record, 0); // parent, end, next
	sample_32(&record, 0);
	sample_32(&record, 0);
	sample_32(&record, length);
	sample_32(&record, 0); // debug start and end, type
	sample_32(&record, 0);
	sample_32(&record, 0);
	sample_32(&record, at);
	sample_16(&record, 1);
	sample_8(&record, 0);
	sample_text(&record, name);
	sample_record(out, 0x1110, &record);
}

static inline void sample_inlined(struct str *out, uint32_t inlinee, const char *steps,
				  size_t count)
{
	struct str record = { 0 };

	sample_32(&record, 0); // parent, end
	sample_32(&record, 0);
	sample_32(&record, inlinee);
	str_add_bytes(&record, steps, count);
	sample_record(out, 0x114d, &record);
}

static inline void sample_end(struct str *out, unsigned kind)
{
	struct str record = { 0 };

	sample_record(out, kind, &record);
}

static inline void sample_symbols(struct str *out)
{
	// From 4: line + 2, 4 bytes; line + 1, up to 12. Then from 16, 4 bytes.
	static const char outer[] = { 11, 0x44, 11, 0x24, 4, 4, 3, 4, 4, 4 };
	static const char inner[] = { 5, 24, 12, 2, 8 }; // of another file; 2 bytes from 8
	struct str record = { 0 };

	sample_32(out, 4);
	for (int i = 0; i < 300; i++)
		sample_8(&record, 0);
	sample_record(out, 0x7777, &record); // which nobody knows
	sample_function(out, 0x10, 0x40, "ns::outer");
	sample_inlined(out, 0x1000, outer, sizeof outer);
	sample_inlined(out, 0x1001, inner, sizeof inner);
	sample_end(out, 0x114e);
	sample_end(out, 0x114e);
	sample_end(out, 6);
	sample_32(&record, 0); // parent, end, next
	sample_32(&record, 0);
	sample_32(&record, 0);
	sample_32(&record, 0x60);
	sample_16(&record, 1);
	sample_16(&record, 6);
	sample_8(&record, 0);
	sample_text(&record, "thunk");
	sample_record(out, 0x1102, &record);
	sample_end(out, 6);
}

static inline void sample_table(struct str *out, uint32_t kind, struct str *content)
{
	sample_32(out, kind);
	sample_32(out, (uint32_t)content->length);
	str_add_bytes(out, str_get(content), content->length);
	sample_align(out);
	str_fini(content);
}

static inline void sample_lines(struct str *out)
{
	struct str table = { 0 };

	sample_32(&table, 1); // files: a.c, b.h
	sample_16(&table, 0x0110);
	for (int i = 0; i < 16; i++)
		sample_8(&table, 0);
	sample_16(&table, 0);
	sample_32(&table, 5);
	sample_32(&table, 0);
	sample_table(out, 0xf4, &table);
	sample_32(&table, 0); // inlined: from line 100 of a.c, from line 7 of a.c
	sample_32(&table, 0x1000);
	sample_32(&table, 0);
	sample_32(&table, 100);
	sample_32(&table, 0x1001);
	sample_32(&table, 0);
	sample_32(&table, 7);
	sample_table(out, 0xf6, &table);
	sample_32(&table, 0x10);
	sample_16(&table, 1);
	sample_16(&table, 0);
	sample_32(&table, 0x40);
	sample_32(&table, 0);
	sample_32(&table, 3);
	sample_32(&table, 12 + 24);
	sample_32(&table, 0);
	sample_32(&table, 20 | 0x80000000);
	sample_32(&table, 4);
	sample_32(&table, 21 | 0x80000000);
	sample_32(&table, 0x30);
	sample_32(&table, 0xfeefee | 0x80000000);
	sample_table(out, 0xf2, &table);
}

static inline void sample_info(struct str *out)
{
	sample_32(out, 20000404);
	sample_32(out, 0x5f000001);
	sample_32(out, 9); // age; the debug stream has another
	str_add_bytes(out, (const char *)sample_guid, sizeof sample_guid);
	sample_32(out, 7);
	sample_text(out, "/names");
	sample_32(out, 1); // a table of one, with its sets of places
	sample_32(out, 2);
	sample_32(out, 1);
	sample_32(out, 1);
	sample_32(out, 0);
	sample_32(out, 0);
	sample_32(out, 5);
}

static inline void sample_ids(struct str *out, bool items)
{
	struct str records = { 0 }, record = { 0 };

	if (items) {
		sample_32(&record, 0x1002);
		sample_32(&record, 0);
		sample_text(&record, "in_scope");
		sample_record(&records, 0x1601, &record);
		sample_32(&record, 0x1000);
		sample_32(&record, 0);
		sample_text(&record, "method");
		sample_record(&records, 0x1602, &record);
		sample_32(&record, 0);
		sample_text(&record, "scope::deep");
		sample_record(&records, 0x1605, &record);
	} else {
		sample_16(&record, 0);
		sample_16(&record, 0);
		sample_32(&record, 0);
		sample_32(&record, 0);
		sample_32(&record, 0);
		sample_16(&record, 0x8004); // its size, as four bytes
		sample_32(&record, 70000);
		sample_text(&record, "box<int>");
		sample_record(&records, 0x1504, &record);
	}
	sample_32(out, 20040203);
	sample_32(out, 56);
	sample_32(out, 0x1000);
	sample_32(out, items ? 0x1003 : 0x1001);
	sample_32(out, (uint32_t)records.length);
	while (out->length < 56)
		sample_8(out, 0);
	str_add_bytes(out, records.text, records.length);
	str_fini(&records);
}

static inline void sample_names(struct str *out)
{
	static const char texts[] = "\0a.c\0b.h\0"
				    "$T0 .raSearch = $eip $T0 ^ = $esp $T0 4 + = $ebp $T0 8 - ^ =";

	sample_32(out, 0xeffeeffe);
	sample_32(out, 1);
	sample_32(out, sizeof texts);
	str_add_bytes(out, texts, sizeof texts);
}

static inline void sample_debug(struct str *out, size_t symbols, size_t lines)
{
	struct str modules = { 0 };

	for (int i = 0; i < 34; i++)
		sample_8(&modules, 0);
	sample_16(&modules, 7); // stream
	sample_32(&modules, (uint32_t)symbols);
	sample_32(&modules, 0);
	sample_32(&modules, (uint32_t)lines);
	while (modules.length < 64)
		sample_8(&modules, 0);
	sample_text(&modules, "a.obj");
	sample_text(&modules, "a.obj");
	sample_align(&modules);
	sample_32(out, UINT32_MAX);
	sample_32(out, 19990903);
	sample_32(out, 3); // age
	sample_16(out, 0xffff);
	sample_16(out, 0);
	sample_16(out, 0xffff);
	sample_16(out, 0);
	sample_16(out, 8); // records
	sample_16(out, 0);
	sample_32(out, (uint32_t)modules.length);
	sample_32(out, 4 + 28);
	for (int i = 0; i < 4; i++)
		sample_32(out, 0);
	sample_32(out, 20);
	while (out->length < 64)
		sample_8(out, 0);
	str_add_bytes(out, modules.text, modules.length);
	sample_32(out, 0xeffe0000 + 19970605u); // one part: 0x10 to 0x80 of section 1, module 0
	sample_32(out, 1);
	sample_32(out, 0x10);
	sample_32(out, 0x70);
	for (int i = 0; i < 4; i++)
		sample_32(out, 0);
	sample_16(out, 9); // frames of the old form
	for (int i = 0; i < 4; i++)
		sample_16(out, 0xffff);
	sample_16(out, 6); // section headers
	for (int i = 0; i < 3; i++)
		sample_16(out, 0xffff);
	sample_16(out, 10); // frames with programs
	str_fini(&modules);
}

static inline void sample_sections(struct str *out)
{
	sample_text(out, ".text");
	while (out->length < 8)
		sample_8(out, 0);
	sample_32(out, 0x1000);
	sample_32(out, 0x1000);
	while (out->length < 40)
		sample_8(out, 0);
}

static inline void sample_public(struct str *out, uint32_t at, const char *name)
{
	struct str record = { 0 };

	sample_32(&record, 2);
	sample_32(&record, at);
	sample_16(&record, 1);
	sample_text(&record, name);
	sample_record(out, 0x110e, &record);
}

static inline void sample_old_frame(struct str *out, uint32_t rva, uint32_t length, uint32_t words,
				    unsigned bits)
{
	sample_32(out, rva);
	sample_32(out, length);
	sample_32(out, words); // of locals, of arguments
	sample_16(out, 3);
	sample_16(out, bits);
}

static inline void sample_frame(struct str *out, uint32_t rva, uint32_t end, unsigned prologue,
				unsigned saved, bool first)
{
	sample_32(out, rva);
	sample_32(out, end - rva);
	sample_32(out, 20); // of locals
	sample_32(out, 8);  // of arguments
	sample_32(out, 0);
	sample_32(out, SAMPLE_PROGRAM);
	sample_16(out, prologue);
	sample_16(out, saved);
	sample_32(out, first ? 4 : 0);
}

// Append the whole file.
static inline void sample_pdb(struct str *out)
{
	static const char magic[32] = "Microsoft C/C++ MSF 7.00\r\n\x1a\x44S";
	struct str streams[SAMPLE_STREAMS] = { 0 }, directory = { 0 }, blocks = { 0 };
	uint32_t block = 3; // 0: the head; 1, 2: which blocks are free
	size_t symbols;

	sample_info(&streams[1]);
	sample_ids(&streams[2], false);
	sample_ids(&streams[4], true);
	sample_names(&streams[5]);
	sample_sections(&streams[6]);
	sample_symbols(&streams[7]);
	symbols = streams[7].length;
	sample_lines(&streams[7]);
	sample_debug(&streams[3], symbols, streams[7].length - symbols);
	sample_public(&streams[8], 0x70, "?only@public@@YAXXZ");
	sample_public(&streams[8], 0x10, "_outer");
	// 2 bytes of prologue, 2 registers, ebp is used; the other one has a frame pointer.
	sample_old_frame(&streams[9], 0x1060, 0x10, 5, 2 | 2 << 8 | 1 << 12);
	sample_old_frame(&streams[9], 0x1070, 0x10, 0, 3 << 14);
	sample_frame(&streams[10], 0x1010, 0x1050, 4, 0, true);
	sample_frame(&streams[10], 0x1011, 0x1050, 3, 4, false);
	sample_frame(&streams[10], 0x1013, 0x1050, 1, 8, false);
	sample_32(&directory, SAMPLE_STREAMS);
	for (int i = 0; i < SAMPLE_STREAMS; i++)
		sample_32(&directory, (uint32_t)streams[i].length);
	for (int i = 0; i < SAMPLE_STREAMS; i++) {
		size_t count = (streams[i].length + SAMPLE_BLOCK - 1) / SAMPLE_BLOCK;

		// The blocks of the longer ones stand in falling order.
		for (size_t at = 0; at < count; at++)
			sample_32(&directory, block + (uint32_t)(count - 1 - at));
		for (size_t at = count; at-- > 0;) {
			size_t left = streams[i].length - at * SAMPLE_BLOCK;

			str_add_bytes(&blocks, streams[i].text + at * SAMPLE_BLOCK,
				      left < SAMPLE_BLOCK ? left : SAMPLE_BLOCK);
			while (blocks.length % SAMPLE_BLOCK != 0)
				sample_8(&blocks, 0);
		}
		block += (uint32_t)count;
		str_fini(&streams[i]);
	}
	str_add_bytes(out, magic, sizeof magic);
	sample_32(out, SAMPLE_BLOCK);
	sample_32(out, 1);
	sample_32(out, block + 2);
	sample_32(out, (uint32_t)directory.length);
	sample_32(out, 0);
	sample_32(out, block); // where the list of the directory's blocks is
	while (out->length < 3 * SAMPLE_BLOCK)
		sample_8(out, 0);
	str_add_bytes(out, blocks.text, blocks.length);
	sample_32(out, block + 1);
	while (out->length % SAMPLE_BLOCK != 0)
		sample_8(out, 0);
	str_add_bytes(out, directory.text, directory.length);
	str_fini(&directory);
	str_fini(&blocks);
}
