// What nothing ended, sorted: at once, or in runs that are merged.
#include "base/mem.h"
#include "base/radix.h"
#include "engine/index_pair.h"

enum { RUN_BUFFER = 1 << 15 };

bool index_pair_never(struct index_pair *pair, struct index_store *store, uint64_t memory_bytes,
		      struct err *err)
{
	size_t chunk = memory_bytes / 16 + 1, runs_count, count = 0;
	struct spill *runs;
	uint64_t *list, *scratch;
	uint64_t *heads;
	bool ok = true;

	spill_turn(&pair->never);
	if (chunk > pair->never_count)
		chunk = (size_t)pair->never_count + 1;
	runs_count = (size_t)(pair->never_count / chunk) + 1;
	list = mem_resize(NULL, chunk, sizeof *list);
	scratch = mem_resize(NULL, chunk, sizeof *scratch);
	runs = mem_alloc(runs_count, sizeof *runs);
	heads = mem_alloc(runs_count, sizeof *heads);
	for (size_t i = 0; i < runs_count && ok; i++) {
		for (count = 0; count < chunk && spill_get(&pair->never, &list[count], 8); count++)
			list[count] = alive_value(index_pair_final(pair, alive_step(list[count])),
						  alive_cell(list[count]));
		// No two begin at one step.
		radix_sort(list, scratch, count, ALIVE_CELL_BITS);
		if (runs_count == 1)
			break;
		ok = spill_open(&runs[i], pair->directory, RUN_BUFFER, err);
		for (size_t k = 0; ok && k < count; k++)
			spill_put(&runs[i], &list[k], 8);
		if (ok)
			spill_turn(&runs[i]);
		if (!ok || !spill_get(&runs[i], &heads[i], 8))
			heads[i] = UINT64_MAX;
	}
	for (size_t k = 0; k < count && runs_count == 1; k++)
		index_store_never(store, list[k]);
	mem_free(list);
	mem_free(scratch);
	while (ok && runs_count > 1) {
		size_t least = 0;

		for (size_t i = 1; i < runs_count; i++)
			if (heads[i] < heads[least])
				least = i;
		if (heads[least] == UINT64_MAX)
			break;
		index_store_never(store, heads[least]);
		if (!spill_get(&runs[least], &heads[least], 8))
			heads[least] = UINT64_MAX;
	}
	for (size_t i = 0; i < runs_count; i++) {
		ok = ok && (!runs[i].fd || spill_ok(&runs[i], err));
		spill_close(&runs[i]);
	}
	mem_free(runs);
	mem_free(heads);
	return ok && spill_ok(&pair->never, err);
}
