/* search.h: binary search in an ascending array of numbers. */
#ifndef SGT_BASE_SEARCH_H
#define SGT_BASE_SEARCH_H

#include <stddef.h>
#include <stdint.h>

/* Return the index of the last of n ascending numbers that is at most x, or 0 if all are above x.
 * The numbers are numbers[0], numbers[apart], numbers[2 * apart], ..., so they may be one field of
 * an array of structs. Equal numbers are allowed. The search has no branch that the CPU could
 * mispredict. */
static inline size_t sgt_last_up_to(const uint64_t *numbers, size_t apart, size_t n, uint64_t x)
{
    size_t last = 0;
    while (n > 1) {
        size_t half = n / 2;
        last = numbers[apart * (last + half)] <= x ? last + half : last;
        n -= half;
    }
    return last;
}

#endif
