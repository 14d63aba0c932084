// For example two blocks of 100 bytes from one stack, one from 1 s to 3 s and one from 2 s to the
// end of the recording at 5 s: count 2, bytes 200, kept 1 and 100 bytes, and 100 * 2 s + 100 * 3 s
// = 500 byte seconds, which is what the memory cost over time.
#include "export/rowset_sites.h"

#include "base/map.h"
#include "base/mem.h"
#include "engine/moment.h"
#include "engine/replay/weight.h"

#include <string.h>

void rowset_sites_init(struct rowset_sites *sites, const struct reader *reader)
{
	sites->reader = reader;
	sites->before = reader_info(reader)->trimmed;
	sites->began_ns = moment_begin(reader);
}

struct rowset_sites rowset_sites_copy(const struct rowset_sites *sites)
{
	struct rowset_sites copy = *sites;

	// One more than needed: a copy of none has a list, too.
	copy.sites = mem_alloc(sites->count + 1, sizeof *copy.sites);
	copy.capacity = sites->count + 1;
	if (sites->count)
		memcpy(copy.sites, sites->sites, sites->count * sizeof *copy.sites);
	return copy;
}

void rowset_sites_fini(struct rowset_sites *sites)
{
	mem_free(sites->sites);
	*sites = (struct rowset_sites){ 0 };
}

// By stack; stacks that were not met are zero. Valid until the next call.
static struct rowset_site *site_of(struct rowset_sites *sites, stack_id stack)
{
	if (stack >= sites->count) {
		MEM_ROOM(sites->sites, sites->capacity, stack + (size_t)1);
		memset(sites->sites + sites->count, 0,
		       (stack + (size_t)1 - sites->count) * sizeof *sites->sites);
		sites->count = stack + (size_t)1;
	}
	ASSERT(stack < sites->count);
	return &sites->sites[stack];
}

// A block that was there before the recording counts from where that began, and is no allocation.
void rowset_sites_add(struct rowset_sites *sites, const struct lives_block *block,
		      const struct lives_end *end)
{
	// Weights are in units of 1 / WEIGHT_UNIT: of a recording that is not sampled one block is
	// one unit of count times WEIGHT_UNIT.
	struct rowset_site *site = site_of(sites, block->stack);
	struct weight weight =
		weight_of(reader_sample_bytes(sites->reader, block->stack), block->size);
	bool before = block->kind == TRACE_BEFORE || block->number < sites->before;
	uint64_t from_ns = before ? sites->began_ns : block->time_ns;
	uint64_t to_ns = end->time_ns;

	if (!before) {
		site->count += weight.count;
		site->bytes += weight.bytes;
	}
	if (end->cause >= LIVES_EXIT) {
		site->kept_count += weight.count;
		site->kept_bytes += weight.bytes;
	}
	if (to_ns > from_ns)
		site->byte_ns += (unsigned __int128)weight.bytes * (to_ns - from_ns);
}

static void add_up(struct rowset_site *site, const struct rowset_site *more)
{
	site->count += more->count;
	site->bytes += more->bytes;
	site->kept_count += more->kept_count;
	site->kept_bytes += more->kept_bytes;
	site->byte_ns += more->byte_ns;
}

// In place: no site is moved to after where it was.
void rowset_sites_join(struct rowset_sites *sites,
		       uint64_t (*identity_of)(void *context, stack_id stack), void *context)
{
	struct map seen = { 0 };
	size_t joined = 0;

	// Stacks of equal identity are one site: a recursion of two builds, or two processes with
	// the same code.
	for (size_t i = 0; i < sites->count; i++) {
		struct rowset_site site = sites->sites[i];
		uint64_t *number;
		bool made;

		if (site.count == 0 && site.kept_count == 0 && site.byte_ns == 0)
			continue;
		site.stack = (stack_id)i;
		site.identity = identity_of(context, (stack_id)i);
		number = map_put(&seen, site.identity, &made);
		if (made) {
			*number = joined;
			sites->sites[joined++] = site;
		} else {
			add_up(&sites->sites[*number], &site);
		}
	}
	ASSERT(joined <= sites->count);
	sites->count = joined;
	map_fini(&seen);
}
