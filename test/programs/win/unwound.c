// What must be said about it: the rules that recorder/pdata.h makes of an image's tables are those
// by which the system's own RtlVirtualUnwind goes, at each instruction of each function, as if it
// were interrupted there, and behind each call. It maps the image, pretends a stack on which each
// word is another one, and unwinds a step from there, both ways. Where Wine departs from
// Microsoft's description, it is asked in a way that it understands, and these places are counted.
// It prints how many places there are, how many of them a rule cannot say, and FEW of those that
// differ.
//
//     unwound FILE [STEP]      STEP: of so many functions, one
#include "recorder/insn.h"
#include "recorder/pdata.h"

#include <stdio.h>
#include <stdlib.h>
#include <windows.h>

enum { FEW = 40, STACK_BYTES = 64 << 20, PART_BYTES = STACK_BYTES / 32 };

struct function {
	DWORD begin, end, info;
};

static uint8_t *stack;
static uint8_t *image;
static size_t image_bytes;
static unsigned long long places, calls, unsaid, tails, early, differing;

// What the stack holds at `at`.
static uint64_t word(uint64_t at)
{
	return at ^ 0x5a5a000000000000;
}

static bool on_stack(uint64_t at)
{
	return at - (uint64_t)stack < STACK_BYTES;
}

// Registers that lie far from each other, each in a part of the stack of its own.
static CONTEXT begin_at(uint64_t pc)
{
	CONTEXT context = { .ContextFlags = CONTEXT_FULL, .Rip = pc };
	DWORD64 *registers = &context.Rax;

	for (uint32_t i = 0; i < 16; i++)
		registers[i] = (uint64_t)stack + (i + 8) * PART_BYTES;
	return context;
}

// A step by the rule. False: it cannot say it, or not on this stack.
static bool step_by_rule(unwind_rule rule, const CONTEXT *from, CONTEXT *to)
{
	uint64_t begin = unwind_kind(rule) == UNWIND_RBP ? from->Rbp : from->Rsp;
	uint64_t cfa = begin + (uint64_t)unwind_cfa_offset(rule);

	if ((unwind_kind(rule) != UNWIND_RSP && unwind_kind(rule) != UNWIND_RBP &&
	     unwind_kind(rule) != UNWIND_MACHINE) ||
	    !on_stack(cfa) || !on_stack(cfa + PART_BYTES))
		return false;
	*to = *from;
	to->Rip = word(cfa - 8);
	to->Rsp = unwind_kind(rule) == UNWIND_MACHINE ? word(cfa + 16) : cfa;
	if (unwind_saves_rbp(rule))
		to->Rbp = word(cfa + (uint64_t)unwind_rbp_offset(rule));
	return true;
}

static CONTEXT step_by_system(const struct function *function, CONTEXT context)
{
	void *handler_data;
	uint64_t frame;

	RtlVirtualUnwind(UNW_FLAG_NHANDLER, (uint64_t)image, context.Rip,
			 (RUNTIME_FUNCTION *)function, &context, &handler_data, &frame, NULL);
	return context;
}

// If an epilogue follows, the system goes by that, and not by the registers of before: the same
// when it runs, but not on this stack. So it sees none.
static CONTEXT step_behind_call(const struct function *function, CONTEXT context)
{
	uint8_t *code = (uint8_t *)context.Rip, was = *code;

	*code = 0xcc;
	context = step_by_system(function, context);
	*code = was;
	return context;
}

static bool is_same(const CONTEXT *a, const CONTEXT *b)
{
	return a->Rip == b->Rip && a->Rsp == b->Rsp && a->Rbp == b->Rbp;
}

// The jump that ends the epilogue at `code`; NULL: none does.
static uint8_t *find_tail(uint8_t *code)
{
	struct insn insn;

	for (;; code += insn.length) {
		if (!insn_decode(code, 16, true, &insn))
			return NULL;
		switch (code[insn.opcode_at]) {
		case 0xe9:
		case 0xeb:
		case 0xff:
			return code;
		case 0x81:
		case 0x83:
		case 0x8d:
			break;
		default:
			if (code[insn.opcode_at] < 0x58 || code[insn.opcode_at] > 0x5f)
				return NULL;
		}
	}
}

// By Microsoft's description a jump out of the function ends an epilogue as a return does; Wine's
// does not know that. So it is asked with a return in the jump's place.
static bool is_same_with_return(const struct function *function, const CONTEXT *begun,
				const CONTEXT *ours)
{
	uint8_t *tail = find_tail((uint8_t *)begun->Rip), was;
	CONTEXT theirs;

	if (!tail)
		return false;
	was = *tail;
	*tail = 0xc3;
	theirs = step_by_system(function, *begun);
	*tail = was;
	return is_same(ours, &theirs);
}

// Wine's takes what lies among the bytes of the prologue for a part of it, and the same code for an
// epilogue where a function's other part is.
static bool is_early_return(const struct function *function, uint32_t rva)
{
	const uint8_t *info = image + (function->info & ~1u);

	return rva - function->begin < info[1];
}

// A step by the instructions up to the return: each does what it does. False: there are others.
static bool step_by_code(const CONTEXT *from, CONTEXT *to)
{
	const uint8_t *code = (const uint8_t *)from->Rip;

	*to = *from;
	for (;;) {
		bool high = (*code & 0xf8) == 0x40 && (code[1] & 0xf8) == 0x58;
		uint32_t which = high ? (*code & 1) * 8 + (code[1] & 7) : *code & 7;

		if (code[0] == 0x48 && code[1] == 0x83 && code[2] == 0xc4) {
			to->Rsp += (uint64_t)(int8_t)code[3];
			code += 4;
		} else if (code[0] == 0x48 && code[1] == 0x81 && code[2] == 0xc4) {
			to->Rsp += (uint64_t)(*(const int32_t *)(code + 3));
			code += 7;
		} else if (high || (*code & 0xf8) == 0x58) {
			(&to->Rax)[which] = word(to->Rsp);
			to->Rsp += 8;
			code += 1 + high;
		} else {
			to->Rip = word(to->Rsp);
			to->Rsp += 8;
			return *code == 0xc3 || *code == 0xe9 || *code == 0xeb || *code == 0xf3 ||
			       *code == 0xff || ((*code & 0xf8) == 0x48 && code[1] == 0xff);
		}
	}
}

static void compare(struct function *function, uint32_t rva, bool exact)
{
	struct codemap_place place = { .module = 1, .start = (uintptr_t)image };
	CONTEXT begun = begin_at((uint64_t)image + rva), ours, theirs;
	unwind_rule rule;

	place.end = place.start + image_bytes;
	place.function = (const void *)function;
	rule = pdata_compile(&place, begun.Rip, exact);
	if (!step_by_rule(rule, &begun, &ours)) {
		unsaid++;
		return;
	}
	theirs = exact ? step_by_system(function, begun) : step_behind_call(function, begun);
	if (is_same(&ours, &theirs))
		return;
	if (exact && is_same_with_return(function, &begun, &ours)) {
		tails++;
		return;
	}
	if (exact && is_early_return(function, rva) && step_by_code(&begun, &theirs) &&
	    is_same(&ours, &theirs)) {
		early++;
		return;
	}
	if (theirs.Rsp % 8) { // data that looks like ret n
		unsaid++;
		return;
	}
	if (differing++ < FEW)
		printf("differs %x%s: rip %llx rsp %llx rbp %llx are not %llx %llx %llx\n", rva,
		       exact ? "" : " behind a call", ours.Rip, ours.Rsp, ours.Rbp, theirs.Rip,
		       theirs.Rsp, theirs.Rbp);
}

// A call by a distance, by a register or by memory.
static bool is_call(const uint8_t *code, const struct insn *insn)
{
	const uint8_t *opcode = code + insn->opcode_at;

	return opcode[0] == 0xe8 || (opcode[0] == 0xff && (opcode[1] >> 3 & 7) == 2);
}

static void compare_all(struct function *function)
{
	struct insn insn;

	for (uint32_t at = function->begin; at < function->end; at += insn.length) {
		places++;
		compare(function, at, true);
		if (!insn_decode(image + at, function->end - at, true, &insn))
			return; // data among the code
		if (!is_call(image + at, &insn) || at + insn.length >= function->end)
			continue;
		calls++;
		compare(function, at + insn.length, false);
	}
}

int main(int argc, char **argv)
{
	uint32_t step = argc > 2 ? (uint32_t)atoi(argv[2]) : 1, count = 0;
	const IMAGE_NT_HEADERS64 *headers;
	const IMAGE_DATA_DIRECTORY *directory;
	DWORD access;

	image = (uint8_t *)LoadLibraryExA(argv[1], NULL, DONT_RESOLVE_DLL_REFERENCES);
	stack = VirtualAlloc(NULL, STACK_BYTES, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
	if (!image || !stack)
		return 1;
	for (uint64_t at = (uint64_t)stack; on_stack(at); at += 8)
		*(uint64_t *)at = word(at);
	headers = (const void *)(image + ((const IMAGE_DOS_HEADER *)image)->e_lfanew);
	image_bytes = headers->OptionalHeader.SizeOfImage;
	VirtualProtect(image, image_bytes, PAGE_EXECUTE_READWRITE, &access);
	directory = &headers->OptionalHeader.DataDirectory[IMAGE_DIRECTORY_ENTRY_EXCEPTION];
	for (uint32_t i = 0; i < directory->Size / sizeof(struct function); i += step, count++)
		compare_all((struct function *)(image + directory->VirtualAddress) + i);
	printf("functions %u places %llu calls %llu unsaid %llu tails %llu early %llu ", count,
	       places, calls, unsaid, tails, early);
	printf("differing %llu\n", differing);
	return 0;
}
