/* handle.h: the definitions of sgt_loader and sgt_cursor, for the .c files of this folder, for
 * sgt-bench loader and for tests; the parser of texts of sets, for programs; and streams that are
 * timed, for training's trace. */
#ifndef SGT_HANDLE_H
#define SGT_HANDLE_H

#include "loader/read/reader.h"
#include "loader/rows/rows.h"
#include "loader/sample/mix.h"
#include "loader/sample/pack.h"
#include "loader/shards/set.h"
#include "loader/sgt_loader.h"

struct sgt_loader {
    sgt_loader_options
        o;       /* with defaults filled in; data, split and sets are NULL once it is open */
    sgt_set set; /* the shards of all sets, one set after the other */
    sgt_loader_set_info *sets;
    uint32_t set_count;
    /* filled in for the sampling or the option of that name; for packed, only its count */
    sgt_documents documents;
    sgt_pack *packs; /* (set_count): for sampling packed; else NULL */
    sgt_mix mix;
    const sgt_reader_ops *ops;
    void *reader;
    char detail[256]; /* of sgt_loader_info */
    sgt_loader_info info;
    const sgt_rows *rows;
};

/* The pieces of a batch, row after row. Each lies in one shard. */
typedef struct sgt_pieces {
    uint64_t index; /* of the batch */
    sgt_window *pieces;
    size_t room;
    uint32_t count, told; /* told: how many the reader was told to expect */
} sgt_pieces;

struct sgt_cursor {
    const sgt_loader *l;
    void *reader_cursor;
    sgt_mix_memo *memo;

    /* (size): the current batch, in place `at`, and behind it those that were drawn ahead, `stride`
     * batches apart. `drawn` counts them all; 0: there is no current batch */
    sgt_pieces *ring;
    uint32_t size, at, drawn;
    /* index of the last batch; its distance from the batch before it; the stride that is guessed
     * from these, 0: unknown. A wrong guess only costs time */
    uint64_t last, step, stride;

    const void **tokens; /* (local_batch): first token of each piece that was fetched last */
    /* of the batch that is being made: where its next piece goes, row and token in it; and how many
     * starts of documents were found */
    uint32_t row, token, found;
    sgt_loader_batch own; /* the batch that sgt_loader_read made last, with arrays of the cursor */

    /* for samplings documents and packed; else NULL */
    sgt_window *rows;          /* (local_batch): the rows' numbers, as the mix drew them */
    sgt_pack_piece *documents; /* (T+1): the documents of a packed row */
    sgt_pack_memo *packed;
};

/* Parse the text that programs take as --data (sgt_loader_options.data). The caller frees *sets.
 * SGT_EUSAGE names the invalid part. */
int sgt_loader_sets_parse(sgt_loader_set **sets, uint32_t *count, const char *text, sgt_error *err);

/* Return where a document of a plan lies; and fail unless `id`, with which a row begins at w, is the
 * end-of-text id. */
sgt_window sgt_loader_packed_window(const sgt_pack_piece *document);
int sgt_loader_check_beginning(const sgt_loader *l, const sgt_window *w, uint32_t id,
                               sgt_error *err);

/* Allocate what a batch has besides its ids: return 0 if out of memory. Free that. */
int sgt_batch_open(sgt_loader_batch *b, const sgt_loader *l);
void sgt_batch_close(sgt_loader_batch *b);

/* Set *bytes to those of one of a batch's arrays; fail for an unknown output. */
int sgt_batch_bytes(size_t *bytes, const sgt_loader *l, sgt_output o, sgt_error *err);

/* Make batch b->index, in all arrays of b. */
int sgt_batch_make(const sgt_loader *l, sgt_cursor *c, sgt_loader_batch *b, sgt_error *err);

/* What times the making of batches. Prefetch thread `thread` (from 0) calls it before it makes batch
 * `index`, and again, with done = 1, after it. */
typedef struct sgt_stream_timer {
    void (*making)(void *ctx, uint32_t thread, uint64_t index, int done);
    void *ctx; /* argument of making */
} sgt_stream_timer;
/* Start a stream as sgt_stream_open does, timed unless `timer` is NULL. */
int sgt_stream_open_timed(sgt_stream **out, const sgt_loader *l, const sgt_stream_options *o,
                          const sgt_stream_timer *timer, sgt_error *err);

#endif
