// What must be said about it: behind each call of the DLLs that are named, what the function's own
// code says of its frame (recorder/epilogue.h) is what .eh_frame says. Prints, for each DLL,
// `rules NAME same N other N sure-and-other N unknown N never N made N made-other N`, the last two
// by the function's start, and the first places that differ;
// before that, `forms N wrong N`: small pieces of code, and what must be said of each.
#include "recorder/cfi.h"
#include "recorder/eh_win32.h"
#include "recorder/epilogue.h"
#include "recorder/insn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

enum { TOLD_MAX = 6 };

struct counts {
	unsigned same, other, sure_other, unknown, never;
	unsigned made_same, made_other; // by the function's start
};

static uint8_t code[512];
static uintptr_t from; // where the image is

void *recording_pages(size_t bytes, bool wipe_on_fork)
{
	(void)wipe_on_fork;
	return VirtualAlloc(NULL, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}

const uint8_t *epilogue_code(uintptr_t at, uint32_t *bytes)
{
	static MEMORY_BASIC_INFORMATION region;
	uintptr_t end = (uintptr_t)region.BaseAddress + region.RegionSize;

	if (at - (uintptr_t)region.BaseAddress >= region.RegionSize) {
		if (!VirtualQuery((void *)at, &region, sizeof(region)))
			return NULL;
		end = (uintptr_t)region.BaseAddress + region.RegionSize;
	}
	if (region.State != MEM_COMMIT || region.Type != MEM_IMAGE || at + INSN_BYTES_MAX >= end)
		return NULL;
	*bytes = (uint32_t)(end - at - INSN_BYTES_MAX);
	return (const uint8_t *)at;
}

uintptr_t epilogue_cell(uintptr_t at)
{
	uint32_t bytes;

	return epilogue_code(at, &bytes) ? *(const uintptr_t *)at : 0;
}

static int32_t pops_of(const uint8_t *call, const uint8_t *next)
{
	if (call[0] == 0xe8)
		return epilogue_pops((uintptr_t)next + (uintptr_t) * (const int32_t *)(call + 1));
	if (call[0] == 0xff && call[1] == 0x15) {
		uintptr_t function = epilogue_cell(*(const uintptr_t *)(call + 2));

		return function ? epilogue_pops(function) : EPILOGUE_POPS_UNKNOWN;
	}
	return EPILOGUE_POPS_UNKNOWN;
}

// Before the call, as its return address is to be found from the frame of what is called.
static void compare_made(const uint8_t *header, const uint8_t *call, const uint8_t *next,
			 unwind_rule made, unwind_rule by_ebp, struct counts *counts)
{
	unwind_rule right = cfi_compile(header, (uintptr_t)call, (uintptr_t)call, NULL);

	if (unwind_kind(right) == UNWIND_RBP)
		made = unwind_kind(made) == UNWIND_RBP ? made : by_ebp;
	if (made == UNWIND_NONE ||
	    (unwind_kind(right) != UNWIND_RBP && unwind_kind(right) != UNWIND_RSP))
		return;
	// An ebp that was saved and not changed since is where it is saved, and in ebp.
	if (unwind_kind(right) == unwind_kind(made) &&
	    unwind_cfa_offset(right) == unwind_cfa_offset(made) &&
	    (!unwind_saves_rbp(made) || unwind_rbp_offset(right) == unwind_rbp_offset(made))) {
		counts->made_same++;
		return;
	}
	if (++counts->made_other <= TOLD_MAX)
		printf("  made %p +%x: kind %d cfa %d saves %d, .eh_frame: kind %d cfa %d "
		       "saves %d\n",
		       (void *)next, (unsigned)((uintptr_t)next - from), unwind_kind(made),
		       (int)unwind_cfa_offset(made), (int)unwind_rbp_offset(made),
		       unwind_kind(right), (int)unwind_cfa_offset(right),
		       (int)unwind_rbp_offset(right));
}

static void compare(const uint8_t *header, const uint8_t *start, const uint8_t *call,
		    const uint8_t *next, struct counts *counts)
{
	unwind_rule right = cfi_compile(header, (uintptr_t)next - 1, (uintptr_t)next, NULL);
	int32_t pops = pops_of(call, next);
	struct epilogue_answer answer;
	unwind_rule made;
	bool found = false;

	if (pops == EPILOGUE_NO_RETURN || unwind_kind(right) == UNWIND_STOP ||
	    unwind_kind(right) == UNWIND_NONE)
		return;
	if (epilogue_reaches((uintptr_t)start, (uintptr_t)next, pops, &made) == EPILOGUE_NEVER)
		counts->never++;
	// Else it is a part of a function that another part jumps to.
	if (unwind_cfa_offset(cfi_compile(header, (uintptr_t)start, (uintptr_t)start, NULL)) == 4)
		compare_made(header, call, next, made, epilogue_by_ebp(), counts);
	epilogue_run((uintptr_t)next, &answer);
	for (uint32_t i = 0; i < answer.count; i++) {
		unwind_rule rule = answer.rules[i];
		int64_t cfa = unwind_cfa_offset(rule);

		if (unwind_kind(rule) == UNWIND_RSP && pops > 0)
			cfa += pops;
		if (unwind_kind(rule) == UNWIND_RSP && pops < 0 &&
		    unwind_kind(right) == UNWIND_RSP) // nobody knows: the stack will tell
			cfa = unwind_cfa_offset(right);
		// By esp in a function that has ebp as well: its start tells how far apart.
		if (unwind_kind(rule) == UNWIND_RSP && unwind_kind(right) == UNWIND_RBP &&
		    unwind_kind(made) == UNWIND_RSP && unwind_cfa_offset(made) == cfa)
			found = unwind_rbp_offset(rule) == unwind_rbp_offset(right);
		found |= unwind_kind(rule) == unwind_kind(right) &&
			 cfa == unwind_cfa_offset(right) &&
			 unwind_rbp_offset(rule) == unwind_rbp_offset(right);
	}
	if (found) {
		counts->same++;
	} else if (!answer.count) {
		counts->unknown++;
	} else {
		counts->other++;
		counts->sure_other += answer.count == 1 && !answer.more;
		if (counts->other <= TOLD_MAX)
			printf("  %p +%x: kind %d cfa %d rbp %d, .eh_frame: kind %d cfa %d rbp %d; "
			       "%u answers%s, pops %d\n",
			       (void *)next, (unsigned)((uintptr_t)next - from),
			       unwind_kind(answer.rules[0]),
			       (int)unwind_cfa_offset(answer.rules[0]),
			       (int)unwind_rbp_offset(answer.rules[0]), unwind_kind(right),
			       (int)unwind_cfa_offset(right), (int)unwind_rbp_offset(right),
			       (unsigned)answer.count, answer.more ? " and more" : "", (int)pops);
	}
}

static void go_through(const char *name)
{
	const uint8_t *base = (const uint8_t *)LoadLibraryA(name);
	const IMAGE_NT_HEADERS *headers;
	struct counts counts = { 0 };
	const uintptr_t *table; // of addresses: where code begins, its entry
	uint8_t *header;
	size_t pages;

	if (!base)
		return;
	headers = (const void *)(base + *(const int32_t *)(base + 0x3c));
	from = (uintptr_t)base;

	header = eh_make_header(base, headers->OptionalHeader.SizeOfImage, &pages);
	if (!header)
		return;
	table = (const uintptr_t *)(const void *)(header + 8);
	for (uint32_t i = 0; i + 1 < *(const uint32_t *)(const void *)(header + 4); i++) {
		const uint8_t *at = (const uint8_t *)table[2 * i];
		const uint8_t *end = (const uint8_t *)table[2 * i + 2];
		const uint8_t *start = at;
		struct insn insn;

		for (; at < end && insn_decode(at, INSN_BYTES_MAX, false, &insn);
		     at += insn.length) {
			const uint8_t *op = at + insn.opcode_at;
			uint32_t rest = insn.length - insn.opcode_at;

			if (op[0] == 0xe8 || (op[0] == 0xff && (op[1] & 0x38) == 0x10))
				compare(header, start, op, op + rest, &counts);
		}
	}
	printf("rules %s same %u other %u sure-and-other %u unknown %u never %u "
	       "made %u made-other %u\n",
	       name, counts.same, counts.other, counts.sure_other, counts.unknown, counts.never,
	       counts.made_same, counts.made_other);
}

// ---- Small pieces of code -------------------------------------------------------------------

static void put(size_t at, const char *hex)
{
	unsigned byte;

	for (; sscanf(hex, " %2x", &byte) == 1; hex += hex[0] == ' ' ? 3 : 2)
		code[at++] = (uint8_t)byte;
}

// Where `at` the address of `of` stands.
static void put_address(size_t at, size_t of)
{
	uintptr_t address = (uintptr_t)code + of;

	memcpy(code + at, &address, sizeof(address));
}

static void begin(void)
{
	memset(code, 0xcc, sizeof(code));
	epilogue_forget();
}

// What is said of the place `at`, and nothing else.
static unwind_rule rule_at(size_t at)
{
	struct epilogue_answer answer;

	epilogue_run((uintptr_t)code + at, &answer);
	return answer.count == 1 && !answer.more ? answer.rules[0] : UNWIND_NONE;
}

static unsigned forms, wrong;

static void check(const char *name, unwind_rule expected, unwind_rule found)
{
	forms++;
	if (expected == found)
		return;
	wrong++;
	printf("  %s: %llx is not %llx\n", name, (unsigned long long)found,
	       (unsigned long long)expected);
}

static void check_forms(void)
{
	const unwind_rule framed = unwind_make_saving(UNWIND_RBP, 8, -8, 0);
	struct epilogue_answer answer;
	unwind_rule rule;

	begin();
	put(0, "83 c4 1c 5d 5e 5f c3"); // add esp,1ch; pop ebp; pop esi; pop edi; ret
	check("pops", unwind_make_saving(UNWIND_RSP, 44, -16, 0), rule_at(0));
	put(16, "8d 65 f4 5b 5e 5f 5d c3"); // lea esp,[ebp-0ch]; pop ebx; esi; edi; ebp; ret
	check("a frame of ebp", framed, rule_at(16));
	put(40, "8b e5 c3"); // mov esp,ebp; ret: so Go does it around calls of the system
	check("a frame that ebp alone keeps", unwind_make(UNWIND_RBP, 4, 0), rule_at(40));
	put(32, "c9 c2 08 00"); // leave; ret 8
	check("leave", framed, rule_at(32));
	put(48, "8b 4d f8 c9 8d 61 fc c3"); // mov ecx,[ebp-8]; leave; lea esp,[ecx-4]; ret
	check("a realigned frame", unwind_make_saving(UNWIND_RBP_DEREF, -8, 0, 0), rule_at(48));
	// mov esp,ebp; pop ebp; mov esp,ebx; pop ebx; ret; and with ebx changed before
	put(160, "8b e5 5d 8b e3 5b c3");
	put(176, "8b 5d 08 8b e5 5d 8b e3 5b c3");
	check("a frame aligned by ebx", unwind_make_saving(UNWIND_RBP_COPIED, 0, 0, 0),
	      rule_at(160));
	check("and not if that is another's", UNWIND_NONE, rule_at(176));
	put(64, "74 06 83 c4 0c c3"); // je 72; add esp,0ch; ret
	put(72, "85 c0 75 f6 83 c4 0c c3");
	check("ways that agree", unwind_make(UNWIND_RSP, 16, 0), rule_at(64));
	put(76, "83 c4 14 c3");
	check("ways that differ", UNWIND_NONE, rule_at(64));
	// je 105; push ebp; mov ebp,[esp+8]; pop ebp; nop; ret
	put(96, "74 07 55 8b 6c 24 08 5d 90 c3");
	check("ebp kept on one way only", unwind_make(UNWIND_RSP, 4, 0), rule_at(96));
	// mov [esp-4],ebp; xor ebp,ebp; mov ebp,[esp-4]; ret
	put(112, "89 6c 24 fc 33 ed 8b 6c 24 fc c3");
	check("ebp kept by a move", unwind_make(UNWIND_RSP, 4, 0), rule_at(112));
	put(128, "57 5d c3"); // push edi; pop ebp; ret
	check("ebp from nobody knows where", UNWIND_NONE, rule_at(128));
	// push ebp; pop ebp; push edi; push ebp; xor ebp,ebp; pop ebp; pop edi; ret
	put(144, "55 5d 57 55 33 ed 5d 5f c3");
	check("ebp kept twice", unwind_make(UNWIND_RSP, 4, 0), rule_at(144));

	begin();
	// add esp,18h; je 20; push ebp; xor ebp,ebp; call 64; pop ebp; add esp,8; ret: over the
	// arguments that were taken away
	put(0, "83 c4 18 74 09 55 33 ed e8 33 00 00 00 5d 83 c4 08 c3");
	put(64, "c3");
	check("ebp kept where arguments were", unwind_make(UNWIND_RSP, 36, 0), rule_at(0));

	begin();
	put(0, "e8 3b 00 00 00 83 c4 04 c3"); // call 64; add esp,4; ret
	put(64, "85 c0 74 03 c2 08 00 c2 08 00");
	check("a callee that removes arguments", unwind_make(UNWIND_RSP, 16, 0), rule_at(0));
	epilogue_run((uintptr_t)code + 64, &answer);
	check("what is removed", 8, (unwind_rule)answer.pops);
	put(16, "ff d0 83 c4 08 c3"); // call eax; add esp,8; ret
	check("a call by a register", UNWIND_NONE, rule_at(16));
	put(16, "ff d0 8b e5 5d c3"); // call eax; mov esp,ebp; pop ebp; ret
	check("a call by a register in a frame of ebp", framed, rule_at(16));
	put(128, "00 00 00 00"); // where an import table has the function's address
	put_address(128, 64);
	// mov esi,[128]; push …; call esi; …
	put(16, "8b 35 00 00 00 00 51 51 ff d6 50 50 ff d6 83 c4 08 c3");
	put_address(18, 128);
	check("a function whose address was loaded", unwind_make(UNWIND_RSP, 12, 0), rule_at(16));
	// mov eax,[128]; push …; call eax; …
	put(16, "a1 00 00 00 00 51 51 ff d0 83 c4 08 c3 90 90 90 90 90");
	put_address(17, 128);
	check("and into eax", unwind_make(UNWIND_RSP, 12, 0), rule_at(16));
	// mov esi,64; push …; call esi; …
	put(16, "be 00 00 00 00 51 51 ff d6 83 c4 08 c3");
	put_address(17, 64);
	check("a function whose address is a number", unwind_make(UNWIND_RSP, 12, 0), rule_at(16));

	begin();
	put(0, "85 c0 74 05 e8 37 00 00 00 83 c4 04 c3"); // the call's way would go on at 9
	put(64, "e8 0b 00 00 00 cc");
	check("a call that does not come back", unwind_make(UNWIND_RSP, 8, 0), rule_at(0));
	// call 64; lea esp,[ebp-4]; pop ecx; pop ebp; lea esp,[ecx-4]; ret
	put(16, "e8 2b 00 00 00 8d 65 fc 59 5d 8d 61 fc c3");
	check("code behind a call that does not come back",
	      unwind_make_saving(UNWIND_RBP_DEREF, -4, 0, 0), rule_at(16));
	put(64, "8b 4d f0 64 89 0d 00 00 00 00 59 5f 5f 5e 5b 8b e5 5d 51 c3");
	put(32, "e8 1b 00 00 00 c2 10 00"); // call 64; ret 10h
	check("a frame taken down by a function", framed, rule_at(32));
	put(32, "e8 5b 00 00 00 c2 10 00"); // call 128; ret 10h
	put(128,
	    "e9 bb ff ff ff"); // jmp 64: linkers that work in steps lead all calls over such jumps
	check("by one behind a jump", framed, rule_at(32));
	put(83, "f2 c3"); // bnd ret
	check("by one that returns otherwise", framed, rule_at(32));

	begin();
	put(0, "55 83 ec 18 e8 37 00 00 00 83 c4 18 5d c3"); // push ebp; sub esp,18h; call 64
	put(64, "c3");
	check("from the start", EPILOGUE_REACHES,
	      epilogue_reaches((uintptr_t)code, (uintptr_t)code + 9, EPILOGUE_POPS_UNKNOWN, &rule));
	check("the frame there", unwind_make(UNWIND_RSP, 32, 0), rule);
	check("not behind a call", EPILOGUE_NEVER,
	      epilogue_reaches((uintptr_t)code, (uintptr_t)code + 12, EPILOGUE_POPS_UNKNOWN,
			       &rule));
	check("another function", EPILOGUE_NEVER,
	      epilogue_reaches((uintptr_t)code + 64, (uintptr_t)code + 9, EPILOGUE_POPS_UNKNOWN,
			       &rule));

	begin();
	// push esi; push 1; call eax; add esp,4; push 1; push 2; call eax; add esp,8; pop esi; ret
	put(0, "56 6a 01 ff d0 83 c4 04 6a 01 6a 02 ff d0 83 c4 08 5e c3");
	check("past calls by a register", EPILOGUE_REACHES,
	      epilogue_reaches((uintptr_t)code, (uintptr_t)code + 14, EPILOGUE_POPS_UNKNOWN,
			       &rule));
	check("none of which removes arguments", unwind_make(UNWIND_RSP, 16, 0), rule);
	put(15, "c4 04"); // add esp,4
	epilogue_reaches((uintptr_t)code, (uintptr_t)code + 14, EPILOGUE_POPS_UNKNOWN, &rule);
	check("one of which does", UNWIND_NONE, rule);

	begin();
	// call eax; xor eax,eax; pop edx; pop ecx; pop ecx; mov fs:[eax],edx; push 128; …; ret
	put(0, "ff d0 33 c0 5a 59 59 64 89 10 68 00 00 00 00 e8 2c 00 00 00 c3");
	put_address(11, 128);
	put(64, "c3");
	put(128, "8b e5 5d c3"); // mov esp,ebp; pop ebp; ret
	check("on by a return", framed, rule_at(0));
	check("on by a return, with all calls known", framed, rule_at(2));
	// xor eax,eax; pop edx; push 128; call 64; pop eax; jmp eax
	put(192, "33 c0 5a 68 00 00 00 00 e8 73 ff ff ff 58 ff e0");
	put_address(196, 128);
	check("on by a jump to what was pushed", framed, rule_at(192));
	// pop ecx; pop edx; xchg [esp],eax; ret: so what loads libraries late goes on
	put(160, "59 5a 87 04 24 c3");
	check("to another function by a return", unwind_make(UNWIND_RSP, 16, 0), rule_at(160));
	epilogue_run((uintptr_t)code + 160, &answer);
	check("and nobody knows what that removes", (unwind_rule)EPILOGUE_POPS_UNKNOWN,
	      (unwind_rule)answer.pops);
	check("by its start neither", (unwind_rule)EPILOGUE_POPS_UNKNOWN,
	      (unwind_rule)epilogue_pops((uintptr_t)code + 160));
	put(176, "5a 59 ff e0"); // pop edx; pop ecx; jmp eax: Microsoft's do it so
	check("by a jump", unwind_make(UNWIND_RSP, 12, 0), rule_at(176));
	epilogue_run((uintptr_t)code + 176, &answer);
	check("nor there", (unwind_rule)EPILOGUE_POPS_UNKNOWN, (unwind_rule)answer.pops);

	begin();
	// push 4; mov eax,0; call 64; call 128; call 192; ret: a function with C++ handlers
	put(0, "6a 04 b8 00 00 00 00 e8 34 00 00 00 e8 6f 00 00 00 e8 aa 00 00 00 c3");
	put(64, "50 64 ff 35 00 00 00 00 8d 44 24 0c 2b 64 24 0c 53 56 57 89 28 8b e8 50 f2 c3");
	put(128, "c3");
	put(192, "59 5f 5f 5e 5b 8b e5 5d 51 f2 c3");
	check("reached through what makes its frame", EPILOGUE_REACHES,
	      epilogue_reaches((uintptr_t)code, (uintptr_t)code + 17, EPILOGUE_POPS_UNKNOWN,
			       &rule));
	check("which is one of ebp", framed, rule);

	begin();
	put(64,
	    "51 8d 4c 24 04 2b c8 1b c0 f7 d0 23 c8 8b c4 25 00 f0 ff ff 3b c8 72 0a 8b c1 59 94 "
	    "8b 00 89 04 24 c3 2d 00 10 00 00 85 00 eb e9"); // _chkstk
	// push ebp; mov eax,2254h; call 64; push 1; call 128; add esp,2258h; pop ebp; ret
	put(0, "55 b8 54 22 00 00 e8 35 00 00 00 6a 01 e8 6e 00 00 00 81 c4 58 22 00 00 5d c3");
	put(128, "c3");
	epilogue_reaches((uintptr_t)code, (uintptr_t)code + 18, EPILOGUE_POPS_UNKNOWN, &rule);
	check("a large frame that a function makes", unwind_make(UNWIND_RSP, 0x2260, 0), rule);
	put(64,
	    "51 50 3d 00 10 00 00 8d 4c 24 0c 72 15 81 e9 00 10 00 00 83 09 00 2d 00 10 00 00 3d "
	    "00 10 00 00 77 eb 29 c1 83 09 00 58 59 c3"); // ___chkstk_ms
	// push ebp; mov eax,2254h; call 64; sub esp,eax; call 128; add esp,2254h; pop ebp; ret
	put(0, "55 b8 54 22 00 00 e8 35 00 00 00 29 c4 e8 6e 00 00 00 81 c4 54 22 00 00 5d c3");
	epilogue_reaches((uintptr_t)code, (uintptr_t)code + 18, EPILOGUE_POPS_UNKNOWN, &rule);
	check("or that is only asked for", unwind_make(UNWIND_RSP, 0x225c, 0), rule);
	put(64,
	    "51 8d 4c 24 08 3d 00 10 00 00 72 15 81 e9 00 10 00 00 83 09 00 2d 00 10 00 00 3d 00 "
	    "10 00 00 77 eb 29 c1 83 09 00 89 e0 89 cc 8b 08 ff 70 04 c3"); // ___chkstk
	put(11, "90 90"); // which makes the frame itself
	epilogue_reaches((uintptr_t)code, (uintptr_t)code + 18, EPILOGUE_POPS_UNKNOWN, &rule);
	check("or that mingw's makes", unwind_make(UNWIND_RSP, 0x225c, 0), rule);
	put(1, "90 90 90 90 90"); // for a size that nobody knows
	epilogue_reaches((uintptr_t)code, (uintptr_t)code + 18, EPILOGUE_POPS_UNKNOWN, &rule);
	check("of a size that is not known", UNWIND_NONE, rule);

	begin();
	// push ebp; mov ebp,esp; mov ecx,8; push 0; push 0; dec ecx; jne 8; …: so Delphi does it
	put(0, "55 8b ec b9 08 00 00 00 6a 00 6a 00 49 75 f9 e8 2c 00 00 00 8b e5 5d c3");
	put(64, "c3");
	epilogue_reaches((uintptr_t)code, (uintptr_t)code + 20, EPILOGUE_POPS_UNKNOWN, &rule);
	check("a frame that a loop makes", framed, rule);
	put(1, "90 90");
	epilogue_reaches((uintptr_t)code, (uintptr_t)code + 20, EPILOGUE_POPS_UNKNOWN, &rule);
	check("without ebp", UNWIND_NONE, rule);

	begin();
	// push 256; call 64, which removes it; ret
	put(0, "68 00 00 00 00 e8 36 00 00 00 c3");
	put_address(1, 256);
	put(64, "c2 04 00");
	put(256, "c2 34 12");
	check("an argument is no place to go on", 0, (unwind_rule)epilogue_pops((uintptr_t)code));
	put(1, "00 10 00 00"); // far away
	epilogue_forget();
	check("a number neither", 0, (unwind_rule)epilogue_pops((uintptr_t)code));
	// push 18; call 64; ret; jmp 64; jmp 5; ret 8
	put(0, "68 00 00 00 00 e8 36 00 00 00 c3 e9 30 00 00 00 eb ed c2 08 00");
	put_address(1, 18);
	put(64, "c3");
	epilogue_forget();
	check("where Delphi goes on", 8, (unwind_rule)epilogue_pops((uintptr_t)code));

	begin();
	put(64, "c3");
	put(128, "e8 bb ff ff ff c3"); // as exit looks
	// sub esp,10h; test eax,eax; je 14; push 1; call 128; call 64; add esp,10h; ret
	put(0, "83 ec 10 85 c0 74 07 6a 01 e8 72 00 00 00 e8 2d 00 00 00 83 c4 10 c3");
	epilogue_reaches((uintptr_t)code, (uintptr_t)code + 19, EPILOGUE_POPS_UNKNOWN, &rule);
	check("a way behind what never comes back", unwind_make(UNWIND_RSP, 20, 0), rule);
	check("and to the end", unwind_make(UNWIND_RSP, 20, 0), rule_at(3));
	put(6, "01 50 90 90 90 90 90 90"); // je 8; push eax
	epilogue_reaches((uintptr_t)code, (uintptr_t)code + 19, EPILOGUE_POPS_UNKNOWN, &rule);
	check("two ways, of which none is known to be wrong", UNWIND_NONE, rule);
	check("nor to the end", UNWIND_NONE, rule_at(3));
	// push ebp; mov ebp,esp; test dl,dl; je 15; add esp,-10h; call 64; call 64
	put(0, "55 8b ec 84 d2 74 08 83 c4 f0 e8 31 00 00 00 e8 2c 00 00 00 5d c3");
	epilogue_reaches((uintptr_t)code, (uintptr_t)code + 20, EPILOGUE_POPS_UNKNOWN, &rule);
	check("a constructor of Delphi", framed, rule);

	begin();
	// push ebx; push esi; mov esi,ecx; push 1; push 2; mov eax,[esi]; call [eax]; push eax;
	// call [eax+4]; add esp,4; pop esi; pop ebx; ret: the first removes what was pushed for it
	put(0, "53 56 8b f1 6a 01 6a 02 8b 06 ff 10 50 ff 50 04 83 c4 04 5e 5b c3");
	epilogue_reaches((uintptr_t)code, (uintptr_t)code + 16, EPILOGUE_POPS_UNKNOWN, &rule);
	check("virtual calls that remove arguments", unwind_make(UNWIND_RSP, 16, 0), rule);
	epilogue_reaches((uintptr_t)code, (uintptr_t)code + 12, EPILOGUE_POPS_UNKNOWN, &rule);
	check("in the first of them", unwind_make(UNWIND_RSP, 20, 0), rule);
	put(18, "08"); // add esp,8: nobody knows which of both did not
	epilogue_reaches((uintptr_t)code, (uintptr_t)code + 16, EPILOGUE_POPS_UNKNOWN, &rule);
	check("of which something is left", UNWIND_NONE, rule);

	begin();
	put(0, "c9 59 01 d4 51 c3"); // leave; pop ecx; add esp,edx; push ecx; ret: so V8 does it
	check("a return behind arguments that nobody counts", framed, rule_at(0));
	put(16, "c9 5a 01 fc ff e2"); // leave; pop edx; add esp,edi; jmp edx
	check("or a jump", framed, rule_at(16));
	put(32, "8b 55 08 90 90 90 90 c9 ff e2"); // mov edx,[ebp+8]; …; leave; jmp edx
	check("to an argument it is none", UNWIND_NONE, rule_at(32));
	put(48, "8b 55 04 90 90 90 90 ff e2"); // mov edx,[ebp+4]; …; jmp edx
	check("nor with the frame still there", UNWIND_NONE, rule_at(48));

	begin();
	// push esi; push eax; test eax,eax; je 20; pop eax; pop esi; jmp [eax]
	put(0, "56 50 85 c0 74 0e 58 5e ff 20");
	check("to a function that nobody knows", EPILOGUE_LEADS_ON,
	      epilogue_reaches((uintptr_t)code, (uintptr_t)code + 128, EPILOGUE_POPS_UNKNOWN,
			       &rule));
	put(6, "58 90"); // pop eax; nop
	check("to a part of itself", EPILOGUE_MAYBE,
	      epilogue_reaches((uintptr_t)code, (uintptr_t)code + 128, EPILOGUE_POPS_UNKNOWN,
			       &rule));
	put(64, "c3");
	// push ebp; mov ebp,esp; push 1; push 2; call 64; leave; ret
	put(0, "55 8b ec 6a 01 6a 02 e8 34 00 00 00 c9 c3");
	epilogue_reaches((uintptr_t)code, (uintptr_t)code + 12, EPILOGUE_POPS_UNKNOWN, &rule);
	check("two frames are one", unwind_make_saving(UNWIND_RSP, 16, -8, 0), rule);
	check("by ebp, whatever was put under the return address since", framed, epilogue_by_ebp());
	put(1, "90 90");
	epilogue_reaches((uintptr_t)code, (uintptr_t)code + 12, EPILOGUE_POPS_UNKNOWN, &rule);
	check("not without such a frame", UNWIND_NONE, epilogue_by_ebp());
	printf("forms %u wrong %u\n", forms, wrong);
}

int main(int count, char **names)
{
	check_forms();
	for (int i = 1; i < count; i++)
		go_through(names[i]);
	return 0;
}
