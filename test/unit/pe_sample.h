// A small Windows image, put together byte by byte: code with three functions, of which two are
// exported and two are in .pdata, a symbol table, and a record of a PDB.
#pragma once

#include "trace/bytes.h"

#include <stdbool.h>
#include <string.h>

enum {
	SAMPLE_BYTES = 0x800,
	SAMPLE_CODE = 0x1000, // RVA; functions begin at 0, 0x20 and 0x40 of it
	SAMPLE_DATA = 0x2000, // RVA of all else, at 0x400 of the file
	SAMPLE_EXPORTS = 0x2000,
	SAMPLE_ENTRIES = 0x2100, // .pdata
	SAMPLE_DEBUG = 0x2180,
	SAMPLE_SYMBOLS = 0x700, // in the file
	SAMPLE_TIMESTAMP = 0x5f000001,
};

static const uint8_t sample_guid[16] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };

static inline void sample_section(uint8_t *at, const char *name, uint32_t rva, uint32_t raw_at,
				  uint32_t flags)
{
	memcpy(at, name, strlen(name));
	bytes_put_u32(at + 8, 0x200);
	bytes_put_u32(at + 12, rva);
	bytes_put_u32(at + 16, rva == SAMPLE_CODE ? 0x200 : 0x300);
	if (rva != SAMPLE_CODE)
		bytes_put_u32(at + 8, 0x300);
	bytes_put_u32(at + 20, raw_at);
	bytes_put_u32(at + 36, flags);
}

static inline void sample_symbol(uint8_t *at, const char *name, uint32_t value, uint16_t type)
{
	memcpy(at, name, strlen(name));
	bytes_put_u32(at + 8, value);
	bytes_put_u16(at + 12, 1);
	bytes_put_u16(at + 14, type);
	at[16] = 2;
}

static inline void sample_exports(uint8_t *data)
{
	bytes_put_u32(data + 20, 2); // functions, names
	bytes_put_u32(data + 24, 2);
	bytes_put_u32(data + 28, SAMPLE_EXPORTS + 0x40);
	bytes_put_u32(data + 32, SAMPLE_EXPORTS + 0x50);
	bytes_put_u32(data + 36, SAMPLE_EXPORTS + 0x60);
	bytes_put_u32(data + 0x40, SAMPLE_CODE);
	bytes_put_u32(data + 0x44, SAMPLE_CODE + 0x40);
	bytes_put_u32(data + 0x50, SAMPLE_EXPORTS + 0x70);
	bytes_put_u32(data + 0x54, SAMPLE_EXPORTS + 0x80);
	bytes_put_u16(data + 0x62, 1);
	memcpy(data + 0x70, "First", 6);
	memcpy(data + 0x80, "Third", 6);
}

// With `symbols`: with the symbol table, which has all three functions.
static inline void sample_make(uint8_t bytes[static SAMPLE_BYTES], bool symbols)
{
	uint8_t *head = bytes + 0x40, *optional = head + 24, *data = bytes + 0x400;

	memset(bytes, 0, SAMPLE_BYTES);
	memcpy(bytes, "MZ", 2);
	bytes_put_u32(bytes + 60, 0x40);
	memcpy(head, "PE\0\0", 4);
	bytes_put_u16(head + 4, 0x8664);
	bytes_put_u16(head + 6, 2);
	bytes_put_u32(head + 8, SAMPLE_TIMESTAMP);
	bytes_put_u16(head + 20, 240);
	bytes_put_u16(optional, 0x20b);
	bytes_put_u32(optional + 24, 0x40000000);
	bytes_put_u32(optional + 28, 1);
	bytes_put_u32(optional + 56, 0x3000);
	bytes_put_u32(optional + 108, 16);
	bytes_put_u32(optional + 112, SAMPLE_EXPORTS);
	bytes_put_u32(optional + 116, 0x100);
	bytes_put_u32(optional + 112 + 8 * 3, SAMPLE_ENTRIES);
	bytes_put_u32(optional + 116 + 8 * 3, 24);
	bytes_put_u32(optional + 112 + 8 * 6, SAMPLE_DEBUG);
	bytes_put_u32(optional + 116 + 8 * 6, 28);
	sample_section(optional + 240, ".text", SAMPLE_CODE, 0x200, 0x60000020);
	sample_section(optional + 280, ".rdata", SAMPLE_DATA, 0x400, 0x40000040);
	memset(bytes + 0x200, 0x50, 0x200);
	memset(bytes + 0x210, 0xcc, 0x10); // behind the first function
	bytes[0x230] = 0xc3;
	sample_exports(data);
	// The first function and the second; what the second jumps to is the second, too.
	bytes_put_u32(data + 0x100, SAMPLE_CODE);
	bytes_put_u32(data + 0x104, SAMPLE_CODE + 0x10);
	bytes_put_u32(data + 0x108, SAMPLE_DATA + 0x1c0);
	bytes_put_u32(data + 0x10c, SAMPLE_CODE + 0x20);
	bytes_put_u32(data + 0x110, SAMPLE_CODE + 0x38);
	bytes_put_u32(data + 0x114, SAMPLE_DATA + 0x1c0);
	data[0x1c0] = 1;
	bytes_put_u32(data + 0x180 + 12, 2);
	bytes_put_u32(data + 0x180 + 16, 24 + 8);
	bytes_put_u32(data + 0x180 + 20, SAMPLE_DATA + 0x1d0);
	bytes_put_u32(data + 0x180 + 24, 0x400 + 0x1d0);
	memcpy(data + 0x1d0, "RSDS", 4);
	memcpy(data + 0x1d4, sample_guid, sizeof sample_guid);
	bytes_put_u32(data + 0x1e4, 3);
	memcpy(data + 0x1e8, "app.pdb", 8);
	if (!symbols)
		return;
	bytes_put_u32(head + 12, SAMPLE_SYMBOLS);
	bytes_put_u32(head + 16, 3);
	sample_symbol(bytes + SAMPLE_SYMBOLS, "first", 0, 0x20);
	sample_symbol(bytes + SAMPLE_SYMBOLS + 18, "eightchr", 0x20, 0x20);
	bytes_put_u32(bytes + SAMPLE_SYMBOLS + 36 + 4, 4);
	sample_symbol(bytes + SAMPLE_SYMBOLS + 36, "", 0x40, 0x20);
	bytes_put_u32(bytes + SAMPLE_SYMBOLS + 54, 32);
	memcpy(bytes + SAMPLE_SYMBOLS + 58, "a_name_of_many_letters", 23);
}
