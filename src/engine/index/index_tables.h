// index_tables: the large tables of a question, kept for the next one.
//
// A question about a trace of many stacks fills tables of some tens of MiB and is done with them.
// Freed, their pages go back to the system, which clears them before it gives them out again, and
// on a virtual machine may first have to be given them by its host, which takes longer than the
// question. So what is put back here is kept, up to a limit, and given to whoever wants about as
// much. Those in use and those kept together take no more than the limit: what is kept makes room
// before more is asked of the system, and what is in use alone may be more. Questions that need
// much other memory free what is kept first.
//
//     limit 64 MB
//     take 11 MB, take 43 MB    nothing is kept: both are new
//     put both                  both are kept
//     take 42 MB                the second of them
//     take 30 MB                the first is too small, and 11 + 43 + 30 are more than the limit:
//                               it is freed, and this one is new
//
// What is small is not kept, and nothing is by tables that are NULL. Any thread may call these, but
// index_tables_free.
#pragma once

#include <stddef.h>

struct index_tables;

struct index_tables *index_tables_new(void);         // keeps nothing as long as it has no limit
void index_tables_free(struct index_tables *tables); // NULL is allowed

// Keep no more from now on than makes so many bytes with what is in use.
void index_tables_limit(struct index_tables *tables, size_t most_bytes);

// Free what is kept: something else needs much memory.
void index_tables_empty(struct index_tables *tables);

// So many bytes it keeps now.
size_t index_tables_kept(struct index_tables *tables);

// Room for `count` items, with anything in it. It is mem.h's, for who takes it from here for good
// (index_tables_lose).
void *index_tables_take(struct index_tables *tables, size_t count, size_t size_bytes);

// One that was taken; NULL is allowed.
void index_tables_put(struct index_tables *tables, void *table);

// It is no longer theirs: whoever took it frees it, or lets it grow. NULL is allowed.
void index_tables_lose(struct index_tables *tables, const void *table);
