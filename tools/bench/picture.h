/* picture.h: draws bars in groups, as SVG; every part of sgt-bench uses it for --plot. Colours
 * follow the reader's preference for light or dark.
 *
 *     bench_picture *p = bench_picture_new("Batches from out/ (0.21 GB)");
 *     bench_picture_group(p, "random, 32 rows of 1024: tokens a second");
 *     bench_picture_bar(p, BENCH_OURS, 812e6, "preload, u16", "812.0 M, the fastest");
 *     bench_picture_limit(p, 900e6);                    // a line across the group
 *     return bench_picture_write(p, "loader.svg", err); // frees it
 *
 * The widest bar of a group, or its limit, fills the width. */
#ifndef SGT_TOOLS_BENCH_PICTURE_H
#define SGT_TOOLS_BENCH_PICTURE_H

#include "loader/base/error.h"

/* The colour of a bar. BENCH_LIGHT: ours, measured in a second way. */
typedef enum bench_bar { BENCH_OURS, BENCH_LIMIT, BENCH_PEER, BENCH_LIGHT } bench_bar;

typedef struct bench_picture bench_picture;

/* Return a new picture, with the machine's name below the title. Returns NULL if memory is out; the
 * other functions accept NULL, and bench_picture_write reports it. */
bench_picture *bench_picture_new(const char *fmt, ...) SGT_PRINTF(1, 2);
void bench_picture_group(bench_picture *p, const char *fmt, ...) SGT_PRINTF(2, 3);
void bench_picture_bar(bench_picture *p, bench_bar kind, double value, const char *name,
                       const char *fmt, ...) SGT_PRINTF(5, 6);
/* draw a line at this value across the current group */
void bench_picture_limit(bench_picture *p, double value);
int bench_picture_write(bench_picture *p, const char *path, sgt_error *err);

#endif
