// A stack of hills that are still open.
//
// For example, levels 0, 10, 6, 12, 0 with rise_min 3:
//
//     10   a hill begins at the valley 0, and has risen by 10
//      6   it falls by 4, more than 3: what comes next may be a hill of its own
//     12   a second one begins at the valley 6, and has risen by 6: they are two. The first is a
//          spike of 10 over 6; from now on it is the left part of a union with the valley 6
//      0   the second is a spike of 12 over 6, and goes into the union: two spikes, top 12. That
//          ends at 0 too: a group of two, whose body is the valley 6, and its base 0
//
// With rise_min 5 the fall to 6 would not matter: the hill goes on to 12, and is one spike of 12
// over 0.
#include "engine/prominence.h"

#include "base/mem.h"

// A hill that is still open. The left valleys rise from the bottom of the stack to its top.
//
// All but the topmost are *split*: what they hold was told apart from what stands above them, and
// they are now the left part of a union whose lowest valley is `merge`. The topmost may be split
// too (then the level is falling over its right side); and the one below it may be unsplit, as
// long as the topmost has not risen enough to be told apart.
struct prominence_entry {
	uint64_t left;      // the valley before it
	uint64_t left_edge; // where that was reached
	uint64_t top, top_edge;
	bool split;
	uint64_t merge; // split: its lowest valley inside
	uint64_t merge_edge;
	uint64_t spikes; // split: in it
};

void prominence_init(struct prominence *crest, uint64_t rise_min, uint64_t edge, uint64_t level,
		     void (*tell)(void *context, const struct prominence_hill *hill), void *context)
{
	ASSERT(tell);
	*crest = (struct prominence){
		.rise_min = rise_min ? rise_min : 1,
		.tell = tell,
		.context = context,
		.level = level,
		.edge = edge,
	};
}

void prominence_fini(struct prominence *crest)
{
	mem_free(crest->stack);
	*crest = (struct prominence){ 0 };
}

// Whether a spike or a group that ends at `base` counts, and if so, tell it.
static bool tell(const struct prominence *crest, const struct prominence_entry *entry,
		 uint64_t base)
{
	uint64_t height = entry->split ? entry->merge : entry->top;

	if (height < base || height - base < crest->rise_min)
		return false;
	crest->tell(crest->context,
		    &(struct prominence_hill){
			    .top = entry->top,
			    .body = height,
			    .body_edge = entry->split ? entry->merge_edge : entry->top_edge,
			    .base = base,
			    .top_edge = entry->top_edge,
			    .from = entry->left_edge,
			    .spikes = entry->split ? entry->spikes : 1,
		    });
	return true;
}

static void push(struct prominence *crest)
{
	*MEM_ADD(crest->stack, crest->count, crest->capacity) = (struct prominence_entry){
		.left = crest->level,
		.left_edge = crest->edge,
		.top = crest->level,
		.top_edge = crest->edge,
	};
}

// Put what `entry` holds into the one below it.
static void join(struct prominence_entry *below, const struct prominence_entry *entry,
		 uint64_t spikes)
{
	if (entry->top > below->top) {
		below->top = entry->top;
		below->top_edge = entry->top_edge;
	}
	below->spikes += spikes;
}

// What stands above `entry` at the valley `valley` has risen enough: the two are told apart.
static void split(struct prominence *crest, size_t index, uint64_t valley)
{
	struct prominence_entry *entry = &crest->stack[index];

	ASSERT(index + 1 < crest->count);
	if (!entry->split) {
		tell(crest, entry, valley);
		entry->split = true;
		entry->merge = valley;
		entry->merge_edge = entry[1].left_edge;
		entry->spikes = 1;
	} else if (valley < entry->merge) {
		tell(crest, entry, valley);
		entry->merge = valley;
		entry->merge_edge = entry[1].left_edge;
	}
	// A union so low that it can never be told need not be kept apart from the one below.
	if (index > 0 && entry->merge - entry->left < crest->rise_min) {
		join(&crest->stack[index - 1], entry, entry->spikes);
		for (size_t i = index + 1; i < crest->count; i++)
			crest->stack[i - 1] = crest->stack[i];
		crest->count--;
	}
}

// The level goes up. After a fall of at least the least rise a new hill begins; else the one that
// is being climbed goes on. When the hill has become high enough, what is left of it is split off
// from the one before.
static void rise(struct prominence *crest, uint64_t edge, uint64_t level)
{
	struct prominence_entry *top = crest->count ? &crest->stack[crest->count - 1] : NULL;

	ASSERT(level > crest->level);
	if (!crest->rising && (!top || top->top - crest->level >= crest->rise_min)) {
		push(crest);
		top = &crest->stack[crest->count - 1];
	}
	crest->rising = true;
	if (level <= top->top)
		return;
	if (top->top - top->left < crest->rise_min && level - top->left >= crest->rise_min) {
		top->top = level;
		top->top_edge = edge;
		if (crest->count > 1)
			split(crest, crest->count - 2, top->left);
		return;
	}
	top->top = level;
	top->top_edge = edge;
}

// The level goes down. Hills whose left foot is not below it are over: each is told, and joins the
// one that it stands on if it is high enough to count.
static void fall(struct prominence *crest, uint64_t level)
{
	ASSERT(level < crest->level);
	crest->rising = false;
	while (crest->count && crest->stack[crest->count - 1].left >= level) {
		const struct prominence_entry *entry = &crest->stack[crest->count - 1];
		struct prominence_entry *below = crest->count > 1 ? &crest->stack[crest->count - 2]
								  : NULL;
		bool apart = entry->split || entry->top - entry->left >= crest->rise_min;

		tell(crest, entry, entry->left);
		if (below && apart)
			join(below, entry, entry->split ? entry->spikes : 1);
		crest->count--;
	}
}

void prominence_add(struct prominence *crest, uint64_t edge, uint64_t level)
{
	ASSERT(crest->tell);
	if (level > crest->level)
		rise(crest, edge, level);
	else if (level < crest->level)
		fall(crest, level);
	else
		return;
	crest->level = level;
	crest->edge = edge;
}

void prominence_finish(struct prominence *crest)
{
	const struct prominence_entry *top;

	if (crest->count == 0)
		return;
	top = &crest->stack[crest->count - 1];
	tell(crest, top, crest->level);
	// What has not risen enough does not part the hill below it, but it ends its fall.
	if (crest->count > 1 && !top->split && top->top - top->left < crest->rise_min)
		tell(crest, top - 1, top->left);
	crest->count = 0;
}
