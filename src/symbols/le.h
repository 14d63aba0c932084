// le: little-endian numbers in bytes that may be at any address.
#pragma once

#include <stdint.h>

static inline uint16_t le_16(const uint8_t *at)
{
	return (uint16_t)(at[0] | at[1] << 8);
}

static inline uint32_t le_32(const uint8_t *at)
{
	return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
	       (uint32_t)at[3] << 24;
}

static inline uint64_t le_64(const uint8_t *at)
{
	return le_32(at) | (uint64_t)le_32(at + 4) << 32;
}

static inline void le_put_16(uint8_t *at, uint16_t value)
{
	at[0] = (uint8_t)value;
	at[1] = (uint8_t)(value >> 8);
}

static inline void le_put_32(uint8_t *at, uint32_t value)
{
	le_put_16(at, (uint16_t)value);
	le_put_16(at + 2, (uint16_t)(value >> 16));
}
