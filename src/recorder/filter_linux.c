// A filter is a program for a small machine: one register, and jumps that only go on. For example,
//
//     load the call's number;  is it 39 (getpid)? to the end: else one on;  KILL;  ALLOW
//
// It is run here for one call. What asks for more than number and architecture is not followed.
#include "recorder/filter_linux.h"

#include "recorder/kernel.h"

#include <stddef.h>

// As in <linux/filter.h> and <linux/seccomp.h>.
struct filter_step {
	uint16_t code;
	uint8_t yes, no; // so many steps are left out
	uint32_t value;
};

struct filter_program {
	uint16_t count;
	const struct filter_step *steps;
};

enum filter_code {
	FILTER_RETURN = 0x06,
	FILTER_LOAD = 0x20, // of what is known of the call, at `value`
	FILTER_AND = 0x54,
	FILTER_JUMP = 0x05,
	FILTER_IF_EQUAL = 0x15,
	FILTER_IF_GREATER = 0x25,
	FILTER_IF_NOT_LESS = 0x35,
	FILTER_IF_ANY = 0x45, // bit of both
};

#define FILTER_LOG UINT32_C(0x7ffc0000)  // let, and the system's log says so
#define FILTER_KILL UINT32_C(0x80000000) // the process; above all that lets

#ifdef __x86_64__
#define FILTER_ARCHITECTURE UINT32_C(0xc000003e)
#else
#define FILTER_ARCHITECTURE UINT32_C(0x40000003)
#endif

// A range that goes over the end of the address space is not readable.
static bool filter_readable(const void *at, size_t bytes)
{
	uintptr_t page = (uintptr_t)at & ~(uintptr_t)(KERNEL_PAGE - 1);
	uintptr_t end = (uintptr_t)at + bytes;

	for (; page < end; page += KERNEL_PAGE) {
		if (!kernel_can_read(page))
			return false;
	}
	return end >= (uintptr_t)at;
}

// How many steps are left out after this one. For example, { FILTER_IF_EQUAL, yes 1, no 0, 39 }
// leaves out one step for getpid (39) and none for others.
static size_t filter_jump(const struct filter_step *step, uint32_t known)
{
	bool is;

	if (step->code == FILTER_JUMP)
		return step->value;
	if (step->code == FILTER_IF_EQUAL)
		is = known == step->value;
	else if (step->code == FILTER_IF_GREATER)
		is = known > step->value;
	else if (step->code == FILTER_IF_NOT_LESS)
		is = known >= step->value;
	else
		is = known & step->value;
	return is ? step->yes : step->no;
}

// False also where it is not known. What lets the call pass are the last two actions, log and allow
// (0x7fff0000), before the one that kills.
bool filter_lets(const void *filter, uint32_t number)
{
	const struct filter_program *program = filter;
	const uint32_t said[] = { number, FILTER_ARCHITECTURE }; // struct seccomp_data
	uint32_t known = 0;

	if (!filter || !filter_readable(program, sizeof(*program)) ||
	    !filter_readable(program->steps, program->count * sizeof(*program->steps)))
		return false;
	for (size_t i = 0; i < program->count; i++) {
		const struct filter_step *step = &program->steps[i];

		switch (step->code) {
		case FILTER_LOAD:
			if (step->value % 4 || step->value >= sizeof(said))
				return false;
			known = said[step->value / 4];
			break;
		case FILTER_AND:
			known &= step->value;
			break;
		case FILTER_JUMP:
		case FILTER_IF_EQUAL:
		case FILTER_IF_GREATER:
		case FILTER_IF_NOT_LESS:
		case FILTER_IF_ANY:
			i += filter_jump(step, known);
			break;
		case FILTER_RETURN:
			return step->value >= FILTER_LOG && step->value < FILTER_KILL;
		default:
			return false;
		}
	}
	return false;
}
