#include "symbols/places.h"

#include "base/mem.h"
#include "base/sort.h"

#include <string.h>

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

int places_compare_names(const char *one, const char *other)
{
	return SORT_3(SORT_BY(strspn(one, "_"), strspn(other, "_")),
		      SORT_BY(strlen(one), strlen(other)), strcmp(one, other));
}
