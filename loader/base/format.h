/* format.h: format numbers in human-readable form. Each function writes into the n bytes at `buf`
 * and returns `buf`. */
#ifndef SGT_BASE_FORMAT_H
#define SGT_BASE_FORMAT_H

#include <stddef.h>
#include <stdint.h>

/* Format a duration: "12 ms", "2.2 s", "1 min 46 s", "3 h 25 min", "3.1 days". */
char *sgt_format_duration(char *buf, size_t n, double seconds);
char *sgt_format_bytes(char *buf, size_t n, uint64_t bytes); /* "12.3 MiB" */
char *sgt_format_count(char *buf, size_t n, uint64_t count); /* "1,234,567" */

#endif
