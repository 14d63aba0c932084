#include "symbols/places.h"

#include "base/mem.h"

void places_fini(struct places *places)
{
	mem_free(places->items);
	*places = (struct places){ 0 };
}

void places_clear(struct places *places)
{
	places->count = 0;
}

struct place *places_add(struct places *places)
{
	struct place *place;

	ASSERT(places->count <= PLACES_MAX);
	if (places->count == PLACES_MAX)
		return NULL;
	places->items = mem_grow(places->items, &places->capacity, places->count + 1,
				 sizeof *places->items);
	place = &places->items[places->count++];
	*place = (struct place){ 0 };
	return place;
}
