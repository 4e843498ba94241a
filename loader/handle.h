/* handle.h: the definitions of sgt_loader and sgt_cursor, for the .c files of this folder, for
 * `sgt-bench loader` and for tests; sgt_loader_sets_parse, for programs; and streams whose batches
 * are timed, for the trace of a training run. */
#ifndef SGT_HANDLE_H
#define SGT_HANDLE_H

#include "loader/read/reader.h"
#include "loader/rows/rows.h"
#include "loader/sample/mix.h"
#include "loader/sample/pack.h"
#include "loader/shards/set.h"
#include "loader/sgt_loader.h"

struct sgt_loader {
    sgt_loader_options o; /* with defaults filled in; data, split and sets are NULL after opening */
    sgt_set set;          /* the shards of all sets, one set after the other */
    sgt_loader_set_info *sets;
    uint32_t set_count;
    /* filled in for sampling documents or the option `documents`; for sampling packed, only its
     * count */
    sgt_documents documents;
    sgt_pack *packs; /* (set_count): for sampling packed; else NULL */
    sgt_mix mix;
    const sgt_reader_ops *ops;
    void *reader;
    char detail[256]; /* text of reader_detail in sgt_loader_info */
    sgt_loader_info info;
    const sgt_rows *rows;
};

/* The pieces of a batch, row after row. Each piece is a range of tokens in one shard. */
typedef struct sgt_pieces {
    uint64_t index; /* of the batch */
    sgt_window *pieces;
    size_t room;
    uint32_t count, told; /* number of pieces; told: number of pieces announced to the reader */
} sgt_pieces;

struct sgt_cursor {
    const sgt_loader *l;
    void *reader_cursor;
    sgt_mix_memo *memo;

    /* (size): a ring. Element `at` is the current batch; the batches that were drawn ahead,
     * `stride` batches apart, follow it. `drawn` is the number of all these batches; 0: there is no
     * current batch */
    sgt_pieces *ring;
    uint32_t size, at, drawn;
    /* index of the last batch; its distance from the batch before it; and the stride predicted from
     * these (0: unknown). A wrong prediction only costs time */
    uint64_t last, step, stride;

    const void **tokens; /* (local_batch): first token of each piece of the last fetch */
    /* of the batch that is being made: row and token in the row at which its next piece begins; and
     * number of document starts found so far */
    uint32_t row, token, found;
    /* the batch that sgt_loader_read made last; its arrays belong to the cursor */
    sgt_loader_batch own;

    /* the following are NULL unless the sampling is documents or packed */
    sgt_window *rows;          /* (local_batch): the rows' numbers, as the mix drew them */
    sgt_pack_piece *documents; /* (T+1): the documents of a packed row */
    sgt_pack_memo *packed;
};

/* Parse the text of the programs' option --data (sgt_loader_options.data). The caller frees *sets.
 * Returns SGT_EUSAGE for an invalid text; the message names the invalid part. */
int sgt_loader_sets_parse(sgt_loader_set **sets, uint32_t *count, const char *text, sgt_error *err);

/* sgt_loader_packed_window returns the position of a document of a plan. sgt_loader_check_beginning
 * fails unless `id`, the first id of a row that begins at w, is the end-of-text id. */
sgt_window sgt_loader_packed_window(const sgt_pack_piece *document);
int sgt_loader_check_beginning(const sgt_loader *l, const sgt_window *w, uint32_t id,
                               sgt_error *err);

/* sgt_batch_open allocates all arrays of a batch other than its ids, and returns 0 if out of
 * memory. sgt_batch_close frees them. */
int sgt_batch_open(sgt_loader_batch *b, const sgt_loader *l);
void sgt_batch_close(sgt_loader_batch *b);

/* Set *bytes to the size in bytes of a batch's inputs (or targets); fail for an unknown output. */
int sgt_batch_bytes(size_t *bytes, const sgt_loader *l, sgt_output o, sgt_error *err);

/* Fill in all arrays of b for batch b->index. */
int sgt_batch_make(const sgt_loader *l, sgt_cursor *c, sgt_loader_batch *b, sgt_error *err);

/* A callback that measures how long batches take. Prefetch thread `thread` (from 0) calls it with
 * done = 0 before it makes batch `index`, and with done = 1 afterwards. */
typedef struct sgt_stream_timer {
    void (*making)(void *ctx, uint32_t thread, uint64_t index, int done);
    void *ctx; /* argument of making */
} sgt_stream_timer;
/* Start a stream as sgt_stream_open does, timed unless `timer` is NULL. */
int sgt_stream_open_timed(sgt_stream **out, const sgt_loader *l, const sgt_stream_options *o,
                          const sgt_stream_timer *timer, sgt_error *err);

#endif
