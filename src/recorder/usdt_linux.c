#include "recorder/usdt_linux.h"

#define USDT_SEMAPHORE __attribute__((section(".probes"), used))

bool usdt_on;
volatile uint16_t usdt_alloc_semaphore USDT_SEMAPHORE;
volatile uint16_t usdt_free_semaphore USDT_SEMAPHORE;

// An operand is its size in bytes and where it is. Words of the note are as wide as addresses.
#ifdef __x86_64__
#define USDT_ADDRESS ".8byte"
#define USDT_OPERAND "8@%"
typedef uint64_t usdt_word;
#else
#define USDT_ADDRESS ".4byte"
#define USDT_OPERAND "4@%"
typedef uint32_t usdt_word;
#endif

// The probe, its note, and once in the library the section that says by how much addresses in notes
// would have to be moved.
#define USDT_PROBE(name, operands, ...)                                                          \
	__asm__ volatile("990: nop\n"                                                            \
			 ".pushsection .note.stapsdt, \"\", \"note\"\n"                          \
			 ".balign 4\n"                                                           \
			 ".4byte 992f - 991f, 994f - 993f, 3\n"                                  \
			 "991: .asciz \"stapsdt\"\n"                                             \
			 "992: .balign 4\n"                                                      \
			 "993: " USDT_ADDRESS " 990b, _.stapsdt.base, usdt_" name "_semaphore\n" \
			 ".asciz \"otel_memory\"\n"                                              \
			 ".asciz \"" name "\"\n"                                                 \
			 ".asciz \"" operands "\"\n"                                             \
			 "994: .balign 4\n"                                                      \
			 ".popsection\n"                                                         \
			 ".ifndef _.stapsdt.base\n"                                              \
			 ".pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, "     \
			 "comdat\n"                                                              \
			 ".weak _.stapsdt.base\n"                                                \
			 ".hidden _.stapsdt.base\n"                                              \
			 "_.stapsdt.base: .space 1\n"                                            \
			 ".size _.stapsdt.base, 1\n"                                             \
			 ".popsection\n"                                                         \
			 ".endif\n" ::__VA_ARGS__                                                \
			 : "memory")

COLD void usdt_alloc(uint64_t address, uint64_t size, uint64_t weight)
{
	// Of a program of 32 bits a weight of 4 GiB or more is given as a little less.
	usdt_word most = (usdt_word)-1;
	usdt_word capped = weight > most ? most : (usdt_word)weight;

	USDT_PROBE("alloc", USDT_OPERAND "0 " USDT_OPERAND "1 " USDT_OPERAND "2",
		   "r"((usdt_word)address), "r"((usdt_word)size), "r"(capped));
}

COLD void usdt_free(uint64_t address)
{
	USDT_PROBE("free", USDT_OPERAND "0", "r"((usdt_word)address));
}
