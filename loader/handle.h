/* handle.h: what is behind sgt_loader and sgt_cursor, for loader.c, sets.c, batch.c and starts.c
 * (and tests). */
#ifndef SGT_HANDLE_H
#define SGT_HANDLE_H

#include "shards/documents.h"
#include "read/reader.h"
#include "rows/rows.h"
#include "sample/mix.h"
#include "shards/set.h"
#include "sgt_loader.h"

/* One of the sets that a loader draws from: what is its own of what their shards are put together
 * to. */
typedef struct sgt_loader_part {
    char *path;
    double weight;
    uint64_t tokens, hash;
    uint32_t first, shards, skipped; /* its shards are first ... first + shards - 1 */
} sgt_loader_part;

struct sgt_loader {
    sgt_loader_options o; /* with the defaults filled in; split and sets are not kept */
    sgt_set set;          /* the shards of all sets, one after the other */
    sgt_loader_part *parts;
    uint32_t part_count;
    sgt_documents documents; /* of the sampling or the option of that name */
    sgt_mix mix;
    const sgt_reader_ops *ops;
    void *reader;
    const sgt_rows *rows;
};

struct sgt_cursor {
    const sgt_loader *l;
    void *reader_cursor;
    sgt_mix_memo memo;
    sgt_window *windows;     /* local_batch: of the batch that is drawn; a piece of `drawn` */
    const uint16_t **tokens; /* local_batch */

    /* Batches next, next + stride, ... (`known` of them) are expected to be drawn: the reader has
     * heard of them. Their windows, and those of the batch that is drawn, are a ring of 1 + ahead
     * times local_batch windows. */
    sgt_window *drawn;
    uint32_t ahead, at, known;
    uint64_t next, stride; /* stride 0: nobody knows */
    /* the batch drawn last, how far it was from the one before; what the caller said */
    uint64_t last, step, course;
    uint64_t end; /* the first batch that will not be drawn */

    int past; /* rows are written past the caches */

    /* of documents, local_batch each; else NULL */
    uint32_t *lengths, *left; /* tokens of each row that are its own, and those not fetched yet */
    sgt_window *pieces;       /* that are fetched at once */
    uint16_t *gathered;       /* local_batch*(T+1): the rows */

    /* with options.documents; else NULL */
    uint32_t *starts_first, *starts; /* (local_batch + 1), and room for local_batch*(T+1) */
    sgt_row_documents begun;
};

/* starts.c: the last three fields, for n rows. 0: out of memory. And of the windows that are
 * drawn. */
int sgt_cursor_open_starts(sgt_cursor *c, const sgt_loader *l, size_t n);
void sgt_cursor_close_starts(sgt_cursor *c);
void sgt_cursor_find_starts(const sgt_loader *l, sgt_cursor *c);

/* Before the first batch: c will be asked for batches at this distance from one another, and for
 * none from `end` on (0: without end). Where nobody says so, a cursor goes by the batches that it
 * has been asked for. A wrong guess costs time and changes nothing else. */
void sgt_cursor_set_course(sgt_cursor *c, uint64_t stride, uint64_t end);

/* sets.c: l->set and l->parts, from `path` or l->o.sets. */
int sgt_loader_open_sets(sgt_loader *l, const char *path, sgt_error *err);
void sgt_loader_close_sets(sgt_loader *l);

/* Row `row`: where it starts; of documents its tokens too. */
sgt_window sgt_loader_draw(const sgt_loader *l, sgt_mix_memo *memo, uint64_t row);

/* The same, of this rank's rows of batch `index`. memo: not NULL. */
void sgt_loader_draw_batch(const sgt_loader *l, sgt_mix_memo *memo, uint64_t index,
                           sgt_window *windows);

/* Whether rows are written past the caches: into a ring so large that they would not stay there. */
void sgt_cursor_set_past(sgt_cursor *c, int past);

/* sgt_loader_open, with faults (NULL: none). */
int sgt_loader_open_faulty(sgt_loader **out, const char *path, const sgt_loader_options *o,
                           const sgt_reader_fault *fault, sgt_error *err);

#endif
