// What os/relay.h promises: pieces are taken in order, each where it was made, up to the first that
// cannot be made or is the last that is wanted.
#include "os/relay.h"
#include "test/test.h"

enum { PLACES = 3 };

struct pieces {
	uint64_t made[PLACES];
	uint64_t next; // to be taken
	uint64_t bad;  // cannot be made
	uint64_t last; // that is wanted
};

static bool make(void *context, uint64_t number, unsigned place, struct err *err)
{
	struct pieces *pieces = context;

	if (number == pieces->bad)
		return err_set(err, ERR_FORMAT, "piece %d", (int)number);
	pieces->made[place] = number * 7;
	return true;
}

static bool take(void *context, uint64_t number, unsigned place)
{
	struct pieces *pieces = context;

	CHECK_EQ(pieces->next, number);
	CHECK_EQ(number * 7, pieces->made[place]);
	pieces->next++;
	return number != pieces->last;
}

static void check(unsigned places, uint64_t bad, uint64_t last, uint64_t next, bool ok)
{
	struct pieces pieces = { .next = 5, .bad = bad, .last = last };
	const struct relay relay = { make, take, &pieces, &pieces, places, 1 };
	struct err err = { 0 };

	CHECK(relay_run(&relay, 5, 1000, &err) == ok);
	CHECK_EQ(next, pieces.next);
	CHECK(err.kind == (ok ? ERR_NONE : ERR_FORMAT));
}

TEST(relay_takes_each_piece_in_order)
{
	for (unsigned places = 1; places <= PLACES; places++)
		check(places, UINT64_MAX, UINT64_MAX, 1000, true);
}

TEST(relay_takes_what_was_made_before_a_failure)
{
	for (unsigned places = 1; places <= PLACES; places++) {
		check(places, 5, UINT64_MAX, 5, false);
		check(places, 500, UINT64_MAX, 500, false);
		check(places, 999, UINT64_MAX, 999, false);
	}
}

// Piece 500 cannot be made, and is not wanted.
TEST(relay_ends_where_no_more_are_wanted)
{
	for (unsigned places = 1; places <= PLACES; places++) {
		check(places, UINT64_MAX, 5, 6, true);
		check(places, 500, 499, 500, true);
		check(places, UINT64_MAX, 999, 1000, true);
	}
}

TEST(relay_of_no_pieces_is_over)
{
	struct pieces pieces = { .bad = 0 };
	const struct relay relay = { make, take, &pieces, &pieces, PLACES, 1 };
	struct err err = { 0 };

	CHECK(relay_run(&relay, 9, 9, &err));
	CHECK_EQ(0, pieces.next);
}
