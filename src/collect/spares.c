// For example, a process that is about to be sealed asks for spares, and gets 4. A child of its
// that can make no call at all finds the first one's word FREE, and makes it its own: CLAIMED, then
// it writes who its parent is and where that was, then DONE. The next pass sees DONE, looks in
// /proc for a process that began between then and now with the right parent, and lets an image
// arrive, with a hello made of what was written. When that image is over and its process surely is,
// too, the segment's memory is given back, and the word is FREE again.
//
// A pool is given back as soon as its owner is over, none of its spares is taken, and none can be
// taken any more: each FREE becomes NONE by an exchange, which fails where a child was faster.
#include "collect/spares.h"

#include "base/mem.h"
#include "collect/door.h"
#include "collect/process_list.h"

#include <string.h>

void spares_pool_free(struct spare_pool *pool)
{
	if (pool == NULL)
		return;
	ASSERT(pool->taken == 0);
	for (size_t i = 0; i < pool->count; i++)
		share_close(&pool->spares[i].share);
	MEM_FREE(pool->exe, pool);
}

void spares_fini(struct spares *spares)
{
	while (spares->pools != NULL) {
		struct spare_pool *pool = spares->pools;

		spares->pools = pool->next;
		spares_pool_free(pool);
	}
}

void spares_add(struct spares *spares, struct spare_pool *pool)
{
	ASSERT(pool->count > 0 && pool->taken == 0);
	pool->next = spares->pools;
	spares->pools = pool;
}

// ---- Claims ---------------------------------------------------------------------------------

static bool is_known(void *context, uint32_t pid)
{
	return process_list_knows(context, pid);
}

// Which process it is. False: none any more.
// Candidates are the processes that began between the sealing and the claim, have the right
// parent, and are no image yet. A child of which the parent is not sure is looked for by its time
// alone.
static bool find_process(struct process_list *process_list, const struct image *parent,
			 const struct segment_claimed *claimed, struct door_arrival *arrival)
{
	uint64_t began_ns = process_list->tick->clock->began_ns;
	struct peer_wanted wanted = {
		.pid = claimed->pid,
		.parent = parent != NULL && !parent->pid_unsure ? parent->pid : 0,
		.since_ns = began_ns,
		.until_ns = began_ns + arrival->time_ns,
		.is_known = is_known,
		.context = process_list,
	};

	for (int tries = 0; tries < 2; tries++) { // a child may be on its way in the list
		arrival->pid = peer_find(&wanted);
		if (arrival->pid == 0)
			continue;
		arrival->pidfd = peer_pidfd(-1, arrival->pid);
		if (arrival->pidfd >= 0)
			return true;
	}
	arrival->pid = claimed->pid;
	return false;
}

// It was its parent's image.
//
// The child has its parent's arguments, as it has its image.
static void take_args(struct door_arrival *arrival, const struct image *parent)
{
	const struct door_arrival *from = parent != NULL ? parent->arrival : NULL;
	size_t length = 0;
	char *text;

	if (from == NULL || from->args_count == 0)
		return;
	for (uint32_t i = 0; i < from->args_count; i++)
		length += strlen(from->args[i]) + 1;
	arrival->args_count = from->args_count;
	arrival->args = mem_alloc(from->args_count * sizeof *arrival->args + length, 1);
	text = (char *)(arrival->args + from->args_count);
	for (uint32_t i = 0; i < from->args_count; i++) {
		arrival->args[i] = text;
		memcpy(text, from->args[i], strlen(from->args[i]) + 1);
		text += strlen(from->args[i]) + 1;
	}
}

// As if it had said hello: what a hello has is in the claim, or is the pool's.
static void arrive(struct spares *spares, struct process_list *process_list, struct spare *spare)
{
	struct segment *segment = spare->share.segment;
	const struct segment_claimed claimed = segment->claimed;
	const struct image *parent = process_list_image(process_list, claimed.parent_image);
	struct door_arrival *arrival = mem_alloc(1, sizeof *arrival);
	uint64_t now_ns = tick_now(process_list->tick);
	bool found;

	ASSERT(!spare->taken && spare->pool->taken < spare->pool->count);
	atomic_store(&segment->claim, SEGMENT_CLAIM_SEEN);
	spare->taken = true;
	spare->pool->taken++;
	spares->claims++;
	arrival->time_ns = claimed.time_ns < now_ns ? claimed.time_ns : now_ns;
	arrival->tick_ns = arrival->time_ns; // a fork of its parent holds the order for it
	arrival->image = spare->image;
	arrival->share = spare->share;
	arrival->spare = spare;
	arrival->pidfd = -1;
	arrival->hello = (struct segment_hello){
		.magic = SEGMENT_MAGIC,
		.version = SEGMENT_VERSION,
		.start = SEGMENT_START_FORK,
		.pid = claimed.pid,
		.parent_image = claimed.parent_image,
		.frames_count = claimed.frames_count,
		.modules_count = claimed.modules_count,
		.pools_count = claimed.pools_count,
		.abi = spare->pool->abi,
		.fork_lane = claimed.fork_lane,
		.fork_head = claimed.fork_head,
	};
	arrival->exe = mem_copy_text(spare->pool->exe);
	found = find_process(process_list, parent, &claimed, arrival);
	arrival->pid_unsure = !found;
	if (found) {
		arrival->parent_pid = peer_parent(arrival->pid);
		arrival->args = peer_args(arrival->pid, &arrival->args_count);
		peer_space(arrival->pid, arrival->pidfd, spare->pool->abi == 32 ? 32 : 64, 0,
			   &arrival->space);
		door_watch(spares->door, arrival->pidfd, arrival->image);
	}
	if (arrival->args_count == 0)
		take_args(arrival, parent);
	process_list_arrive(process_list, arrival);
	if (!found)
		process_list_exit(process_list, spare->image, now_ns);
}

// ---- The end --------------------------------------------------------------------------------

// None of them may be claimed any more. False: one has been, just now.
static bool retire(struct spare_pool *pool)
{
	bool all = true;

	for (size_t i = 0; i < pool->count; i++) {
		uint32_t claim = SEGMENT_CLAIM_FREE;
		struct segment *segment = pool->spares[i].share.segment;

		if (segment != NULL &&
		    !atomic_compare_exchange_strong(&segment->claim, &claim, SEGMENT_CLAIM_NONE))
			all &= claim == SEGMENT_CLAIM_NONE;
	}
	return all;
}

// One load for each spare in each pass.
void spares_pass(struct spares *spares, struct process_list *process_list)
{
	struct spare_pool **link = &spares->pools;

	while (*link != NULL) {
		struct spare_pool *pool = *link;

		for (size_t i = 0; i < pool->count; i++) {
			struct spare *spare = &pool->spares[i];

			if (!spare->taken && spare->share.segment != NULL &&
			    atomic_load_explicit(&spare->share.segment->claim,
						 memory_order_acquire) == SEGMENT_CLAIM_DONE)
				arrive(spares, process_list, spare);
		}
		if (pool->taken == 0 && !process_list_lives(process_list, pool->owner) &&
		    retire(pool)) {
			*link = pool->next;
			spares_pool_free(pool);
		} else {
			link = &pool->next;
		}
	}
}

// What was known of the image is copied by now.
//
// `clean`: its process surely is over, so that it is not written to any more. Else the segment is
// never used again.
void spares_release(struct spares *spares, struct spare *spare, bool clean)
{
	uint32_t image = spares->door != NULL ? door_number(spares->door) : 0;

	ASSERT(spare->taken && spare->pool->taken > 0);
	spare->taken = false;
	spare->pool->taken--;
	if (clean && spares->door != NULL && share_empty(&spare->share, image)) {
		spare->image = image;
		atomic_store(&spare->share.segment->claim, SEGMENT_CLAIM_FREE);
		return;
	}
	atomic_store(&spare->share.segment->claim, SEGMENT_CLAIM_NONE);
	share_close(&spare->share);
}
