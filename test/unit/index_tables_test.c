// What is put back is given to whoever wants about as much, and never more is held than was in use.
#include "engine/index/index_tables.h"

#include "base/mem.h"
#include "test/test.h"

enum { MIB = 1 << 20 };

TEST(one_that_fits_is_given_again)
{
	struct index_tables *tables = index_tables_new();
	char *small, *large, *again;

	index_tables_limit(tables, 64 * MIB);
	small = index_tables_take(tables, 3, MIB);
	large = index_tables_take(tables, 9, MIB);
	small[3 * MIB - 1] = large[9 * MIB - 1] = 1;
	index_tables_put(tables, small);
	index_tables_put(tables, large);
	again = index_tables_take(tables, 8, MIB);
	CHECK(again == large);
	index_tables_put(tables, again);
	again = index_tables_take(tables, 2, MIB);
	CHECK(again == small);
	index_tables_put(tables, again);
	index_tables_free(tables);
}

// One that is much too large is left for others.
TEST(one_that_does_not_fit_is_not_given)
{
	struct index_tables *tables = index_tables_new();
	char *large, *small;

	index_tables_limit(tables, 64 * MIB);
	large = index_tables_take(tables, 9, MIB);
	index_tables_put(tables, large);
	small = index_tables_take(tables, 2, MIB);
	CHECK(small != large);
	small[2 * MIB - 1] = 1;
	index_tables_put(tables, small);
	index_tables_free(tables);
}

TEST(no_more_is_kept_than_the_limit_says)
{
	struct index_tables *tables = index_tables_new();
	void *a, *b;

	index_tables_limit(tables, 8 * MIB);
	a = index_tables_take(tables, 5, MIB);
	b = index_tables_take(tables, 6, MIB);
	CHECK(index_tables_kept(tables) == 0);
	// With what is in use it would be more.
	index_tables_put(tables, a);
	CHECK(index_tables_kept(tables) == 0);
	index_tables_put(tables, b);
	CHECK(index_tables_kept(tables) == 6 * MIB);
	index_tables_empty(tables);
	CHECK(index_tables_kept(tables) == 0);
	a = index_tables_take(tables, 6, MIB);
	index_tables_put(tables, a);
	index_tables_limit(tables, 5 * MIB);
	CHECK(index_tables_kept(tables) == 0);
	index_tables_free(tables);
}

// 43 and 11 and 30 are more than the limit.
TEST(what_is_kept_goes_before_more_is_asked_for)
{
	struct index_tables *tables = index_tables_new();
	void *a, *b;

	index_tables_limit(tables, 64 * MIB);
	a = index_tables_take(tables, 11, MIB);
	b = index_tables_take(tables, 43, MIB);
	index_tables_put(tables, a);
	index_tables_put(tables, b);
	b = index_tables_take(tables, 43, MIB);
	CHECK(index_tables_kept(tables) == 11 * MIB);
	a = index_tables_take(tables, 30, MIB);
	CHECK(index_tables_kept(tables) == 0);
	index_tables_put(tables, a);
	index_tables_put(tables, b);
	index_tables_free(tables);
}

// One of 9 that was lent to who wanted 5 is one of 9 all the time: with it and 4 more the limit is
// reached.
TEST(one_that_is_larger_than_was_asked_for_counts_whole)
{
	struct index_tables *tables = index_tables_new();
	void *a, *b, *c;

	index_tables_limit(tables, 14 * MIB);
	a = index_tables_take(tables, 9, MIB);
	b = index_tables_take(tables, 4, MIB);
	index_tables_put(tables, a);
	index_tables_put(tables, b);
	c = index_tables_take(tables, 5, MIB);
	CHECK(c == a && index_tables_kept(tables) == 4 * MIB);
	a = index_tables_take(tables, 2, MIB);
	CHECK(a == b);
	index_tables_put(tables, a);
	CHECK(index_tables_kept(tables) == 4 * MIB);
	b = index_tables_take(tables, 9, MIB);
	CHECK(index_tables_kept(tables) == 0);
	index_tables_put(tables, b);
	CHECK(index_tables_kept(tables) == 0);
	index_tables_put(tables, c);
	CHECK(index_tables_kept(tables) == 9 * MIB);
	index_tables_free(tables);
}

TEST(one_that_is_taken_for_good_does_not_count)
{
	struct index_tables *tables = index_tables_new();
	void *a, *b;

	index_tables_limit(tables, 8 * MIB);
	a = index_tables_take(tables, 5, MIB);
	index_tables_lose(tables, a);
	b = index_tables_take(tables, 6, MIB);
	index_tables_put(tables, b);
	CHECK(index_tables_kept(tables) == 6 * MIB);
	index_tables_put(tables, a);
	CHECK(index_tables_kept(tables) == 6 * MIB);
	index_tables_free(tables);
}

TEST(small_ones_and_those_without_a_keeper_are_plain_memory)
{
	struct index_tables *tables = index_tables_new();
	void *small;

	index_tables_limit(tables, 64 * MIB);
	small = index_tables_take(tables, 100, 8);
	index_tables_put(tables, small);
	CHECK(index_tables_kept(tables) == 0);
	index_tables_put(tables, NULL);
	index_tables_free(tables);
	small = index_tables_take(NULL, 2, MIB);
	index_tables_put(NULL, small);
	index_tables_free(NULL);
}
