/* nearby.h: the runs beside a name that is none: what somebody may have meant who mistyped it. */
#ifndef SGT_NEARBY_H
#define SGT_NEARBY_H

#include <stddef.h>

/* Write the names of the runs that lie beside the folder `run` (those that have a `latest` or a
 * step-NNNNNNNN/) to out[size], as "toy-run, web-run and 3 more": at most three, those first that
 * begin as `run` does. "" if there are none, or if the folder around `run` cannot be read. Returns
 * out. */
char *sgt_run_nearby(char *out, size_t size, const char *run);

#endif
