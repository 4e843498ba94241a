/* reserved.h: a public struct's `reserved`, as a caller gave it. Fields that come later take its place, so what is not
 * 0 in it means something to a caller that this library does not know. */
#ifndef SGT_BASE_RESERVED_H
#define SGT_BASE_RESERVED_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* SGT_EUSAGE where one of n numbers is not 0, naming `type`. */
static inline int sgt_check_reserved(const uint64_t *reserved, size_t n, const char *type, sgt_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (reserved[i])
            return sgt_fail(err, SGT_EUSAGE, "%s.reserved is not 0 (not cleared, or made for a newer library)", type);
    return SGT_OK;
}

#endif
