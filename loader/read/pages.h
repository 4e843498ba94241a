/* pages.h: find out whether a part of a file is in the page cache. */
#ifndef SGT_PAGES_H
#define SGT_PAGES_H

#include <stddef.h>
#include <stdint.h>

/* Return 1 if the bytes `at` ... at + bytes - 1 of the file seem to be in the page cache, otherwise
 * 0. The kernel may drop or load pages at any time, so use the result only to choose the faster way
 * to read. */
int sgt_resident(int fd, uint64_t at, size_t bytes);

#endif
