// sort: how qsort and bsearch compare two items, as a list of what decides.
//
//     SORT_ORDER(by_size, struct block, SORT_FALLS(size), SORT_RISES(address))
//
// is a function that puts the largest block first and, of two equally large ones, the one at the
// lower address: of blocks (size 8, address 2), (16, 3) and (8, 1) the order is 16, then 8 at 1,
// then 8 at 2. Each of up to six is looked at only where all before it are equal. An order of one's
// own may be among them: it is an expression of the two items, `one` and `other`.
#pragma once

// The function's type is that of qsort's and bsearch's last argument.
#define SORT_ORDER(name, type, ...)                                             \
	static int name(const void *first, const void *second)                  \
	{                                                                       \
		const type *one = first;                                        \
		const type *other = second;                                     \
                                                                                \
		return SORT_NTH(__VA_ARGS__, 6, 5, 4, 3, 2, 1, 0)(__VA_ARGS__); \
	}

// Below 0 where x comes first, above 0 where y does, 0 where they are equal.
#define SORT_BY(x, y) (((x) > (y)) - ((x) < (y)))

// Each is one of the list: the lower comes first, or the higher.
#define SORT_RISES(member) SORT_BY(one->member, other->member)
#define SORT_FALLS(member) SORT_BY(other->member, one->member)

// The macro for as many as there are.
#define SORT_NTH(a, b, c, d, e, f, count, ...) SORT_##count
// The first that is not 0 decides; those after it are not looked at.
#define SORT_1(a) (a)
#define SORT_2(a, ...) ((a) ?: SORT_1(__VA_ARGS__))
#define SORT_3(a, ...) ((a) ?: SORT_2(__VA_ARGS__))
#define SORT_4(a, ...) ((a) ?: SORT_3(__VA_ARGS__))
#define SORT_5(a, ...) ((a) ?: SORT_4(__VA_ARGS__))
#define SORT_6(a, ...) ((a) ?: SORT_5(__VA_ARGS__))
