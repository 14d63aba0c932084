// A list that is filled, read and cleared for each address: places_clear keeps the memory, so that
// a report over 100,000 frames allocates it once.
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

// For example, of malloc, __libc_malloc and __malloc at one address malloc is taken (no underscore
// in front), and of fopen and fopen64 fopen (shorter). The last step only makes it a total order,
// so that two runs say the same.
int places_compare_names(const char *one, const char *other)
{
	ASSERT(one && other);
	return SORT_3(SORT_BY(strspn(one, "_"), strspn(other, "_")),
		      SORT_BY(strlen(one), strlen(other)), strcmp(one, other));
}
