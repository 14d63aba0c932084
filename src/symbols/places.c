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
	place = MEM_ADD(places->items, places->count, places->capacity);
	*place = (struct place){ 0 };
	return place;
}
