/* handle.h: what is behind sgt_loader and sgt_cursor, for loader.c and batch.c (and tests). */
#ifndef SGT_HANDLE_H
#define SGT_HANDLE_H

#include "shards/documents.h"
#include "read/reader.h"
#include "rows/rows.h"
#include "sample/sampler.h"
#include "shards/set.h"
#include "sgt_loader.h"

struct sgt_loader {
    sgt_loader_options o; /* with the defaults filled in; split is not kept */
    sgt_set set;
    sgt_documents documents; /* of the sampling of that name */
    sgt_sampler sampler;
    const sgt_reader_ops *ops;
    void *reader;
    const sgt_rows *rows;
};

struct sgt_cursor {
    const sgt_loader *l;
    void *reader_cursor;
    sgt_sampler_memo memo;
    sgt_window *windows;     /* local_batch */
    const uint16_t **tokens; /* local_batch */

    /* of documents, local_batch each; else NULL */
    uint32_t *lengths, *left; /* tokens of each row that are its own, and those not fetched yet */
    sgt_window *pieces;       /* that are fetched at once */
    uint16_t *gathered;       /* local_batch*(T+1): the rows */
};

/* sgt_loader_open, with faults (NULL: none). */
int sgt_loader_open_faulty(sgt_loader **out, const char *path, const sgt_loader_options *o,
                           const sgt_reader_fault *fault, sgt_error *err);

#endif
