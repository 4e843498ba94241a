/* search.h: binary search in an ascending array of numbers. */
#ifndef SGT_BASE_SEARCH_H
#define SGT_BASE_SEARCH_H

#include <stddef.h>
#include <stdint.h>

/* Return the index of the last number that is at most x, among n numbers in ascending order. Return
 * 0 if all of them are above x. The numbers are numbers[0], numbers[apart], numbers[2 * apart], and
 * so on, so they may be a field of the structs in an array. Equal numbers are allowed. Apart from
 * its loop, the search has no branch, so the CPU cannot mispredict the comparisons. */
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
