/* sources.h: join the lists of sources of all parts. */
#ifndef SGT_PART_SOURCES_H
#define SGT_PART_SOURCES_H

#include <stdio.h>

#include "tokenize/parts/divide.h"

/* The counts so far of a file that is cut between ranks. */
typedef struct sgt_part_sources {
    const sgt_corpus *corpus;
    const sgt_cut *cuts;
    FILE *to;
    sgt_corpus_counts counts;
} sgt_part_sources;

/* Append the lines of rank `rank`, which are in the file at `path`, to s->to. Ranks come in order.
 * A file that is cut gets one line, with the sums of its parts. */
int sgt_part_sources_add(sgt_part_sources *s, uint32_t rank, const char *path, sgt_error *err);

#endif
