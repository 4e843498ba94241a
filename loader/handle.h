/* handle.h: the internal interface of the loader. It defines sgt_loader and sgt_cursor for the .c
 * files of this folder, for `sgt-bench loader` and for tests. It declares the parser of --data for
 * programs, and streams that time their batches for the trace of a training run. */
#ifndef SGT_HANDLE_H
#define SGT_HANDLE_H

#include "loader/read/reader.h"
#include "loader/rows/rows.h"
#include "loader/sample/mix.h"
#include "loader/sample/pack.h"
#include "loader/shards/set.h"
#include "loader/sgt_loader.h"

struct sgt_loader {
    /* options with defaults filled in. data, split and sets are NULL after opening */
    sgt_loader_options o;
    sgt_set set; /* the shards of all sets, concatenated in the order of the sets */
    sgt_loader_set_info *sets;
    uint32_t set_count;
    /* where each document begins. Filled in for the samplings `documents` and `packed`, and if the
     * option `documents` is set. For `packed`, only documents.count is kept once the rows have been
     * planned; the rest is freed */
    sgt_documents documents;
    /* array of `set_count` plans. Each plan assigns one set's documents to packed rows. NULL unless
     * the sampling is `packed` */
    sgt_pack *packs;
    sgt_mix mix;
    const sgt_reader_ops *ops;
    void *reader;
    char detail[256]; /* buffer of info.reader_detail */
    sgt_loader_info info;
    const sgt_rows *rows;
};

/* The pieces of one batch, in the order of its rows. A piece is a range of tokens in one shard. */
typedef struct sgt_pieces {
    uint64_t index; /* of the batch */
    sgt_window *pieces;
    size_t room;
    /* count: number of pieces in the batch; told: number of pieces, from the first on, that have
     * been announced to the reader, so that it can read them ahead */
    uint32_t count, told;
} sgt_pieces;

struct sgt_cursor {
    const sgt_loader *l;
    void *reader_cursor;
    sgt_mix_memo *memo;

    /* Ring buffer of `size` batches. ring[at] is the current batch, and the elements after it are
     * batches drawn ahead. The batch index grows by `stride` from one element to the next. `drawn`
     * is the number of elements in use, including the current batch; 0 means that there is no
     * current batch */
    sgt_pieces *ring;
    uint32_t size, at, drawn;
    /* Prediction of the batches that will be read, for reading ahead. A wrong prediction costs time
     * but changes no result.
     * - last: index of the batch read last
     * - step: difference between `last` and the index of the batch read before it
     * - stride: predicted difference between consecutive batches; 0: no prediction, so nothing is
     *   read ahead */
    uint64_t last, step, stride;

    /* array of `local_batch` addresses: the first token of each piece of the last fetch */
    const void **tokens;
    /* progress in writing the current batch, where the next piece will be written. row: index of
     * its row; token: position in that row; found: number of document starts found so far in the
     * batch */
    uint32_t row, token, found;
    /* the batch that the last sgt_loader_read wrote. Its inputs and targets are in the caller's
     * buffer; its other arrays belong to the cursor */
    sgt_loader_batch own;

    /* The next three fields are NULL unless the sampling is `documents` or `packed` */
    /* array of `local_batch` rows of the batch, as l->mix drew them. Each one identifies a document
     * or a packed row by its index; the tokens are found in a later step */
    sgt_window *rows;
    sgt_pack_piece *documents; /* array of T+1 elements: the documents of one packed row */
    sgt_pack_memo *packed;
};

/* Parse `text`, the value of a program's option --data (see sgt_loader_options.data), into *sets.
 * The caller frees *sets. Returns SGT_EUSAGE if the text is invalid; the message names the invalid
 * part. */
int sgt_loader_sets_parse(sgt_loader_set **sets, uint32_t *count, const char *text, sgt_error *err);

/* sgt_loader_packed_window returns the shard, the offset and the length of a document in a packed
 * row, as a window. sgt_loader_check_beginning returns SGT_EFORMAT unless `id`, the first id of the
 * packed row at window *w, is the end-of-text id. */
sgt_window sgt_loader_packed_window(const sgt_pack_piece *document);
int sgt_loader_check_beginning(const sgt_loader *l, const sgt_window *w, uint32_t id,
                               sgt_error *err);

/* sgt_batch_open allocates all arrays of a batch except its ids (inputs and targets). It returns 0
 * if out of memory, else 1. sgt_batch_close frees those arrays. */
int sgt_batch_open(sgt_loader_batch *b, const sgt_loader *l);
void sgt_batch_close(sgt_loader_batch *b);

/* Set *bytes to the size in bytes of a batch's inputs; its targets, if any, have the same size.
 * Return an error if the output is unknown or too narrow for the ids. */
int sgt_batch_bytes(size_t *bytes, const sgt_loader *l, sgt_output o, sgt_error *err);

/* Read batch number b->index and fill in all arrays of *b. */
int sgt_batch_make(const sgt_loader *l, sgt_cursor *c, sgt_loader_batch *b, sgt_error *err);

/* A callback that measures how long a batch takes. Prefetch thread number `thread` (from 0) calls
 * it with done = 0 before it reads batch `index`, and with done = 1 afterwards. */
typedef struct sgt_stream_timer {
    void (*making)(void *ctx, uint32_t thread, uint64_t index, int done);
    void *ctx; /* argument of making */
} sgt_stream_timer;
/* Start a stream, as sgt_stream_open does. If `timer` is not NULL, call it before and after each
 * batch. */
int sgt_stream_open_timed(sgt_stream **out, const sgt_loader *l, const sgt_stream_options *o,
                          const sgt_stream_timer *timer, sgt_error *err);

#endif
