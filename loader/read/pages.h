/* pages.h: find out whether a part of a file is in the page cache. */
#ifndef SGT_PAGES_H
#define SGT_PAGES_H

#include <stddef.h>
#include <stdint.h>

/* Return 1 if all of the `bytes` from offset `at` seem to be in the page cache, else 0. Use the
 * result only to choose the faster way to read, because the kernel may drop or load pages at any
 * time. */
int sgt_resident(int fd, uint64_t at, size_t bytes);

#endif
