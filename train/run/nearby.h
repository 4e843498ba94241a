/* nearby.h: suggests existing runs when the name of a run was mistyped. */
#ifndef SGT_NEARBY_H
#define SGT_NEARBY_H

#include <stddef.h>

/* Write to out[size] the names of the runs in the same folder as `run`, as in "toy-run, web-run and
 * 3 more". A run is a folder with a `latest` or a step-NNNNNNNN/. At most three are named, first
 * those that begin like `run`. Writes "" if there are none, or if the folder cannot be read.
 * Returns out. */
char *sgt_run_nearby(char *out, size_t size, const char *run);

#endif
