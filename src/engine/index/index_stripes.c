// Stripes are pieces of a relay: while one is taken, the next ones are found into other places.
#include "engine/index/index_stripes.h"

#include "base/mem.h"
#include "os/relay.h"

// Who waits is woken when half of the stripes are found, or taken: not for each.
enum { PLACES = 8 };

struct run {
	const struct index_stripes *stripes;
	uint32_t end;
	struct index_figures *figures; // PLACES stripes
};

static uint32_t first_of(uint64_t stripe)
{
	return (uint32_t)stripe * INDEX_STRIPE;
}

static uint32_t count_of(const struct run *run, uint64_t stripe)
{
	uint32_t left = run->end - first_of(stripe);

	return left < INDEX_STRIPE ? left : INDEX_STRIPE;
}

static bool find(void *context, uint64_t stripe, unsigned place, struct err *err)
{
	const struct run *run = context;

	return run->stripes->find(run->stripes->find_context, first_of(stripe),
				  count_of(run, stripe),
				  run->figures + (size_t)place * INDEX_STRIPE, err);
}

static bool take(void *context, uint64_t stripe, unsigned place)
{
	const struct run *run = context;

	run->stripes->take(run->stripes->take_context, first_of(stripe), count_of(run, stripe),
			   run->figures + (size_t)place * INDEX_STRIPE);
	return true;
}

bool index_stripes_run(const struct index_stripes *stripes, uint32_t end, struct err *err)
{
	struct run run = { .stripes = stripes, .end = end };
	const struct relay relay = { find, take, &run, &run, PLACES, PLACES / 2 };
	bool ok;

	ASSERT(stripes->find && stripes->take);
	run.figures = mem_resize(NULL, (size_t)PLACES * INDEX_STRIPE, sizeof *run.figures);
	ok = relay_run(&relay, 0, (end + (uint64_t)INDEX_STRIPE - 1) / INDEX_STRIPE, err);
	mem_free(run.figures);
	return ok;
}
