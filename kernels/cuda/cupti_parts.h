/* cupti_parts.h: internal declarations of cupti.c and cupti_records.c, also for tests, which supply
 * a CUPTI of their own. */
#ifndef SGT_CUPTI_PARTS_H
#define SGT_CUPTI_PARTS_H

#include "kernels/cuda/cupti.h"
#include "kernels/cuda/cupti_api.h"

#define SGT_CUPTI_BUFFER ((size_t)2 << 20) /* bytes of records: about 10,000 kernels */

typedef struct sgt_cupti_buffer {
    uint8_t data[SGT_CUPTI_BUFFER]; /* first, so that the buffer's address is that of its data */
    struct sgt_cupti_buffer *next;
    size_t valid;
} sgt_cupti_buffer;

/* What the host told about a kernel, copy or fill. */
typedef struct sgt_cupti_mark {
    uint32_t range, label; /* numbers of names, from 1; 0: none */
    float flops, bytes;    /* 0: unknown */
} sgt_cupti_mark;

/* A node of a CUDA graph, and what was open when the node was made. */
typedef struct sgt_cupti_marked_node {
    uint64_t node;
    sgt_cupti_mark mark;
} sgt_cupti_marked_node;

typedef struct sgt_cupti_records {
    const sgt_cupti_api *api;
    sgt_cupti_buffer *first;
    char *const *names; /* of ranges and labels: that of range r is names[r - 1] */
    size_t name_count;
    sgt_cupti_marked_node *nodes; /* sgt_cupti_convert sorts the array */
    size_t node_count;
} sgt_cupti_records;

/* Convert records: add to *counts, and call `show`, unless NULL, for each span. Returns SGT_ENOMEM
 * if memory runs out. */
int sgt_cupti_convert(const sgt_cupti_records *r, void (*show)(void *ctx, const sgt_cupti_span *s),
                      void *ctx, sgt_cupti_counts *counts, sgt_error *err);

/* Open like sgt_cupti_open, with a table that the caller supplies. */
int sgt_cupti_open_with(sgt_cupti **out, const sgt_cupti_api *api, sgt_error *err);

#endif
