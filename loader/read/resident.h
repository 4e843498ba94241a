/* resident.h: is an extent of a file in the page cache? */
#ifndef SGT_RESIDENT_H
#define SGT_RESIDENT_H

#include <stddef.h>
#include <stdint.h>

#include "read/reader.h"

/* All of the `bytes` from `at`, as far as can be told: 1 or 0. A guess about speed and nothing
 * else: pages come and go by themselves. */
int sgt_resident(int fd, uint64_t at, size_t bytes, const sgt_reader_fault *fault);

#endif
