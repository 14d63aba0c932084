/* tidemark.h: what a program can tell tidemark about itself.
 *
 *     tidemark_mark("loaded");                    a moment with a name
 *     tidemark_phase_begin("parse"); … _end       a stretch of time with a name
 *     tidemark_name_thread("worker 3");
 *     tidemark_pool_create("arena") …             blocks of an allocator of your own
 *     tidemark_pause(); … tidemark_resume();      leave allocations out
 *     TIDEMARK_EXPECT_NO_ALLOC { … }              for `tidemark check --max-unexpected 0`
 *
 * Nothing has to be linked, and nothing happens while the program is not being recorded: each call
 * is then one load and one comparison. With TIDEMARK_DISABLE defined, not even that. The program
 * needs no other file of tidemark's, neither to be built nor to run.
 *
 * C99, C++11 or later. All functions may be called from any thread, at any time, in signal handlers
 * too, and leave errno alone. A text is copied before the call returns; only its first 255 bytes
 * count. NULL is an empty text.
 *
 * MARKS. A mark is exact for the thread that sets it: what this thread did before the mark is
 * before it in the recording, and what it does afterwards is after it, whatever the clock says.
 * What other threads do at about that time is before or after it by the clock, which moves every
 * 100 microseconds unless you record with --clock=ns. `tidemark window --from mark:loaded` begins
 * there. A phase is two marks: the phase "parse" has the marks "parse.begin" and "parse.end".
 *
 * EXPECTATIONS. TIDEMARK_EXPECT_NO_ALLOC before a block of statements says that the thread
 * allocates nothing in it:
 *
 *     TIDEMARK_EXPECT_NO_ALLOC {
 *             draw(frame);
 *     }
 *
 * It is a phase, called "no-alloc FILE:LINE". The program is not stopped: `tidemark check
 * --max-unexpected 0` says afterwards who allocated there. With GCC and Clang the phase ends
 * however the block is left; with other compilers only at its end. `break` and `continue` are those
 * of the block, not of a loop around it.
 *
 * POOLS. An allocator of your own takes large chunks from malloc or mmap and hands out parts of
 * them. tidemark sees the chunks by itself; tell it of the parts:
 *
 *     tidemark_pool pool = tidemark_pool_create("nodes");
 *     …
 *     void *node = take_from_chunk(size);
 *     tidemark_pool_alloc(pool, node, size);      after you have it
 *     …
 *     tidemark_pool_free(pool, node);             before anybody else can get it
 *     give_back_to_chunk(node);
 *
 * In this order, because otherwise another thread could be handed the block in between, and the
 * recording would show it with two owners. Among the events of one pool the order of the recording
 * is that in which they happened, whatever threads they come from. Each has the stack it was called
 * from. tidemark_pool_reset ends all blocks of the pool at once, tidemark_pool_destroy the pool as
 * well. A free of a block that the pool does not have is counted, and does no harm.
 *
 * Nothing is counted twice: a pool's blocks are in a heap of their own, which bears the pool's
 * name, and no command counts them with malloc's, where the pool's chunks are, if they come from
 * malloc. Each says that it leaves them out. `--heap nodes` shows what is inside of one, `--by
 * heap` all heaps side by side; `report` and `active` list the pools below the heap.
 *
 * A pool belongs to the process that made it, and a forked child has a copy of it under the same
 * number. While the program is not being recorded, tidemark_pool_create returns 0, and calls with
 * pool 0 do nothing. So make pools after the program has begun, which is soon enough: recording
 * begins before main and before constructors.
 *
 * PAUSES. Between tidemark_pause and tidemark_resume allocations are not recorded, in any thread of
 * the process. Frees are, always: otherwise a block from before the pause that is freed in it would
 * seem to live for ever. So what the pause leaves out are blocks that begin in it; a free of such a
 * block is counted as one whose allocation was not seen. The calls do not nest. Marks, names, and
 * what happens to mappings of memory are recorded in a pause too. `tidemark record --paused` begins
 * with a pause.
 *
 * HOW IT FINDS THE RECORDER. By one undefined weak symbol, tidemark_client_v1, that the recorder
 * defines. The dynamic linker binds it when the program starts, or leaves it NULL. On x86 and
 * 64-bit ARM it is read through the global offset table whatever the code model, because a plain
 * reference from a position-dependent executable is settled at link time, to NULL. That table is in
 * every dynamic executable and library, so there is nothing to export, and no dlsym. A static
 * executable has nobody to bind it and finds NULL. There, on x86-64, the recorder fills in a
 * variable instead, tidemark_place, that each file which includes this header has; it finds these
 * by the executable's symbol table, without which it could not record it either.
 *
 * On Windows each file that includes this header brings a place of a few bytes, in a section
 * ".tidemrk" of its module. The recorder writes the address of its functions into all such places
 * before the first code of the module runs; in a program that runs already, as soon as it comes in.
 * Nothing is imported. GCC, Clang and Microsoft's compiler, for x86 and x64.
 *
 * On other processors, or with a compiler that does not know GCC's inline assembler, a plain weak
 * reference is used, which works in libraries and position-independent executables. Where not even
 * that is known, or the system is not one of ELF files, the functions are there and do nothing.
 *
 * Copyright 2026 the tidemark authors. MIT License: https://opensource.org/license/mit
 * SPDX-License-Identifier: MIT
 */
#ifndef TIDEMARK_H
#define TIDEMARK_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A pool of blocks; 0 is none. */
typedef unsigned int tidemark_pool;

#if defined(_MSC_VER) && !defined(__clang__)
#define TIDEMARK_CALL __cdecl
#else
#define TIDEMARK_CALL
#endif

/* What the recorder defines. Fields are only ever added, at the end; `size` says how many bytes
 * there are. For this header's own use. */
struct tidemark_client {
	size_t size;
	void(TIDEMARK_CALL *mark)(const char *name, const char *suffix);
	void(TIDEMARK_CALL *name_thread)(const char *name);
	void(TIDEMARK_CALL *pause)(int paused);
	tidemark_pool(TIDEMARK_CALL *pool_create)(const char *name);
	void(TIDEMARK_CALL *pool_alloc)(tidemark_pool pool, const void *block, size_t bytes);
	void(TIDEMARK_CALL *pool_free)(tidemark_pool pool, const void *block);
	void(TIDEMARK_CALL *pool_end)(tidemark_pool pool, int destroy);
};

#if defined(__GNUC__) || defined(__clang__)
#define TIDEMARK_INLINE static __inline__ __attribute__((__always_inline__, __unused__))
#else
#define TIDEMARK_INLINE static inline
#endif

#if !defined(TIDEMARK_DISABLE) && defined(__ELF__) && (defined(__GNUC__) || defined(__clang__))
#if defined(__x86_64__)
/* Of a static executable; else it stays NULL. */
static const struct tidemark_client *volatile tidemark_place __attribute__((__unused__));
#define TIDEMARK_FIND(client)                                              \
	do {                                                               \
		__asm__(".weak tidemark_client_v1\n\t"                     \
			"mov{q tidemark_client_v1@GOTPCREL(%%rip), %0|"    \
			" %0, QWORD PTR tidemark_client_v1@GOTPCREL[rip]}" \
			: "=r"(client));                                   \
		if (!(client))                                             \
			(client) = tidemark_place;                         \
	} while (0)
#elif defined(__i386__)
#define TIDEMARK_FIND(client)                                   \
	__asm__(".weak tidemark_client_v1\n\t"                  \
		"call 1f\n"                                     \
		"1:\tpop{l %0| %0}\n\t"                         \
		"add{l $_GLOBAL_OFFSET_TABLE_+(.-1b), %0|"      \
		" %0, OFFSET _GLOBAL_OFFSET_TABLE_+(.-1b)}\n\t" \
		"mov{l tidemark_client_v1@GOT(%0), %0|"         \
		" %0, DWORD PTR tidemark_client_v1@GOT[%0]}"    \
		: "=r"(client)                                  \
		:                                               \
		: "cc", "memory")
#elif defined(__aarch64__) && !defined(__ILP32__)
#define TIDEMARK_FIND(client)                                 \
	__asm__(".weak tidemark_client_v1\n\t"                \
		"adrp %0, :got:tidemark_client_v1\n\t"        \
		"ldr %0, [%0, #:got_lo12:tidemark_client_v1]" \
		: "=r"(client))
#else
extern const struct tidemark_client tidemark_client_v1 __attribute__((__weak__));
#define TIDEMARK_FIND(client) ((client) = &tidemark_client_v1)
#endif
#elif !defined(TIDEMARK_DISABLE) && defined(_WIN32) &&                                       \
	(defined(__x86_64__) || defined(__i386__) || defined(_M_X64) || defined(_M_IX86)) && \
	(defined(__GNUC__) || defined(__clang__) || defined(_MSC_VER))
/* A place that the recorder fills. It knows it by the first two words. */
struct tidemark_place {
	unsigned int magic[2];
	const struct tidemark_client *volatile client;
};
#if defined(__GNUC__) || defined(__clang__)
static struct tidemark_place tidemark_place
	__attribute__((__section__(".tidemrk"), __unused__)) = { { 0x454d4954u, 0x31564b52u }, 0 };
#else
#pragma section(".tidemrk", read, write)
static __declspec(allocate(".tidemrk")) struct tidemark_place tidemark_place = {
	{ 0x454d4954u, 0x31564b52u }, 0
};
#endif
#define TIDEMARK_FIND(client) ((client) = tidemark_place.client)
#else
#define TIDEMARK_FIND(client) ((client) = NULL)
#endif

/* The recorder, or NULL. */
TIDEMARK_INLINE const struct tidemark_client *tidemark_client(void)
{
	const struct tidemark_client *client;

	TIDEMARK_FIND(client);
	return client;
}

/* 1 if the recorder is loaded, else 0. For what would be costly to prepare in vain. */
TIDEMARK_INLINE int tidemark_recorded(void)
{
	return tidemark_client() != NULL;
}

/* This moment is called `name`. Several may have one name. */
TIDEMARK_INLINE void tidemark_mark(const char *name)
{
	const struct tidemark_client *client = tidemark_client();

	if (client)
		client->mark(name, "");
}

/* The phase `name` begins. Phases may overlap, and come again. */
TIDEMARK_INLINE void tidemark_phase_begin(const char *name)
{
	const struct tidemark_client *client = tidemark_client();

	if (client)
		client->mark(name, ".begin");
}

TIDEMARK_INLINE void tidemark_phase_end(const char *name)
{
	const struct tidemark_client *client = tidemark_client();

	if (client)
		client->mark(name, ".end");
}

/* The calling thread is called `name` from here on, in the recording alone; its first 15 bytes
 * count. A name that the program gives to the system (pthread_setname_np) before the thread's
 * first allocation is known without this. */
TIDEMARK_INLINE void tidemark_name_thread(const char *name)
{
	const struct tidemark_client *client = tidemark_client();

	if (client)
		client->name_thread(name);
}

/* Record no allocations from here on, in all threads of this process. */
TIDEMARK_INLINE void tidemark_pause(void)
{
	const struct tidemark_client *client = tidemark_client();

	if (client)
		client->pause(1);
}

/* Record allocations again. */
TIDEMARK_INLINE void tidemark_resume(void)
{
	const struct tidemark_client *client = tidemark_client();

	if (client)
		client->pause(0);
}

/* A new pool, which is called `name`. 0 if the program is not being recorded. */
TIDEMARK_INLINE tidemark_pool tidemark_pool_create(const char *name)
{
	const struct tidemark_client *client = tidemark_client();

	return client ? client->pool_create(name) : 0;
}

/* `bytes` bytes at `block` have been handed out. */
TIDEMARK_INLINE void tidemark_pool_alloc(tidemark_pool pool, const void *block, size_t bytes)
{
	const struct tidemark_client *client = tidemark_client();

	if (client && pool && block)
		client->pool_alloc(pool, block, bytes);
}

/* The block is about to be given back. */
TIDEMARK_INLINE void tidemark_pool_free(tidemark_pool pool, const void *block)
{
	const struct tidemark_client *client = tidemark_client();

	if (client && pool && block)
		client->pool_free(pool, block);
}

/* The block `old` has become one of `bytes` bytes at `block`, which may be the same place. To be
 * called before anybody else can be handed `old`, thus under the lock of the pool; where that
 * cannot be, say tidemark_pool_free before and tidemark_pool_alloc after. NULL for `old`, or for
 * `block`, is none. */
TIDEMARK_INLINE void tidemark_pool_realloc(tidemark_pool pool, const void *old, const void *block,
					   size_t bytes)
{
	const struct tidemark_client *client = tidemark_client();

	if (!client || !pool)
		return;
	if (old)
		client->pool_free(pool, old);
	if (block)
		client->pool_alloc(pool, block, bytes);
}

/* All blocks of the pool are about to be given back at once. The pool can be used further. */
TIDEMARK_INLINE void tidemark_pool_reset(tidemark_pool pool)
{
	const struct tidemark_client *client = tidemark_client();

	if (client && pool)
		client->pool_end(pool, 0);
}

/* The same, and the pool ends: its number means nothing from here on. */
TIDEMARK_INLINE void tidemark_pool_destroy(tidemark_pool pool)
{
	const struct tidemark_client *client = tidemark_client();

	if (client && pool)
		client->pool_end(pool, 1);
}

/* For the macro below. */
struct tidemark_expectation {
	const char *name;
	int left; /* the statement has not run */
};

TIDEMARK_INLINE struct tidemark_expectation tidemark_expect_begin(const char *name)
{
	struct tidemark_expectation expectation;

	expectation.name = name;
	expectation.left = 1;
	tidemark_phase_begin(name);
	return expectation;
}

TIDEMARK_INLINE void tidemark_expect_end(struct tidemark_expectation *expectation)
{
	tidemark_phase_end(expectation->name);
}

#define TIDEMARK_TEXT_OF(line) #line
#define TIDEMARK_TEXT(line) TIDEMARK_TEXT_OF(line)
#define TIDEMARK_EXPECT_NAME "no-alloc " __FILE__ ":" TIDEMARK_TEXT(__LINE__)

/* The statement after it, mostly a block, allocates nothing. */
#if defined(__GNUC__) || defined(__clang__)
#define TIDEMARK_EXPECT_NO_ALLOC                                             \
	for (struct tidemark_expectation tidemark_expected                   \
	     __attribute__((__cleanup__(tidemark_expect_end), __unused__)) = \
		     tidemark_expect_begin(TIDEMARK_EXPECT_NAME);            \
	     tidemark_expected.left; tidemark_expected.left = 0)
#else
#define TIDEMARK_EXPECT_NO_ALLOC                                  \
	for (struct tidemark_expectation tidemark_expected =      \
		     tidemark_expect_begin(TIDEMARK_EXPECT_NAME); \
	     tidemark_expected.left;                              \
	     tidemark_expect_end(&tidemark_expected), tidemark_expected.left = 0)
#endif

#ifdef __cplusplus
}
#endif

#endif
