/* handle.h: the internal interface of the loader. It defines sgt_loader and sgt_cursor for the .c
 * files of this folder, for `sgt-bench loader` and for tests. It also declares a parser for the
 * programs' option --data, and streams that measure the time each batch takes, for the trace of a
 * training run. */
#ifndef SGT_HANDLE_H
#define SGT_HANDLE_H

#include "loader/read/reader.h"
#include "loader/rows/rows.h"
#include "loader/sample/mix.h"
#include "loader/sample/pack.h"
#include "loader/shards/set.h"
#include "loader/sgt_loader.h"

struct sgt_loader {
    /* options with defaults filled in, except that data, split and sets are NULL once the loader is
     * open */
    sgt_loader_options o;
    sgt_set set; /* the shards of all sets, one set after another */
    sgt_loader_set_info *sets;
    uint32_t set_count;
    /* where each document begins; filled in for the samplings `documents` and `packed`, and if the
     * option `documents` is set. For `packed`, everything except documents.count is freed once the
     * documents have been assigned to rows */
    sgt_documents documents;
    /* array of `set_count` plans, each of which assigns the documents of one set to rows. NULL
     * unless the sampling is `packed` */
    sgt_pack *packs;
    sgt_mix mix;
    const sgt_reader_ops *ops;
    void *reader;
    char detail[256]; /* buffer of info.reader_detail */
    sgt_loader_info info;
    const sgt_rows *rows;
};

/* The pieces of one batch, in the order of its rows. A piece is a contiguous range of tokens in one
 * shard. */
typedef struct sgt_pieces {
    uint64_t index; /* index of the batch in the run */
    sgt_window *pieces;
    size_t room;
    /* count: number of pieces in the batch; told: number of pieces, counted from the first, that
     * have been announced to the reader, so that the reader can read them ahead of time */
    uint32_t count, told;
} sgt_pieces;

struct sgt_cursor {
    const sgt_loader *l;
    void *reader_cursor;
    sgt_mix_memo *memo;

    /* Ring buffer of `size` batches. The current batch is ring[at]. After it come the batches whose
     * pieces have already been determined for reading ahead; the batch index grows by `stride` from
     * one to the next. `drawn` is the number of batches in the ring, including the current batch; 0
     * means that there is no current batch */
    sgt_pieces *ring;
    uint32_t size, at, drawn;
    /* Prediction of which batches will be read, for reading ahead. A wrong prediction costs time
     * but changes no result.
     * - last: index of the batch that was read last
     * - step: difference between `last` and the index of the batch that was read before it
     * - stride: predicted difference between the indices of consecutive batches; 0: no prediction,
     *   so nothing is read ahead */
    uint64_t last, step, stride;

    /* array of `local_batch` addresses: the first token in memory of each piece that the reader
     * fetched last */
    const void **tokens;
    /* position in the current batch at which the next piece will be written. row: index of the row
     * in the batch; token: index of the token in that row. found: number of document starts found
     * in the batch so far */
    uint32_t row, token, found;
    /* the batch that sgt_loader_read wrote last. Its inputs and targets are in the caller's buffer;
     * the cursor owns its other arrays */
    sgt_loader_batch own;

    /* The next three fields are NULL unless the sampling is `documents` or `packed` */
    /* array of `local_batch` windows, one for each row of the batch, as l->mix computes them. For
     * these samplings, such a window only identifies a document or a packed row by its index; its
     * tokens are found in a later step */
    sgt_window *rows;
    /* array of T+1 elements, which holds the documents of one packed row at a time */
    sgt_pack_piece *documents;
    sgt_pack_memo *packed;
};

/* Parse `text`, the value of a program's option --data (see sgt_loader_options.data), into a list
 * of sets, *sets, which the caller frees. Returns SGT_EUSAGE if the text is invalid; the message
 * names the part of the text that is invalid. */
int sgt_loader_sets_parse(sgt_loader_set **sets, uint32_t *count, const char *text, sgt_error *err);

/* sgt_loader_packed_window converts a document of a packed row to a window: its shard, its offset
 * in the shard, and its length. sgt_loader_check_beginning returns 0 if `id`, the first id of the
 * packed row that begins at window *w, is the end-of-text id. Otherwise it returns SGT_EFORMAT. */
sgt_window sgt_loader_packed_window(const sgt_pack_piece *document);
int sgt_loader_check_beginning(const sgt_loader *l, const sgt_window *w, uint32_t id,
                               sgt_error *err);

/* sgt_batch_open allocates all arrays of a batch except inputs and targets. It returns 1, or 0 if
 * memory runs out. sgt_batch_close frees these arrays. */
int sgt_batch_open(sgt_loader_batch *b, const sgt_loader *l);
void sgt_batch_close(sgt_loader_batch *b);

/* Set *bytes to the size in bytes of the inputs of a batch. The targets, if the output has any,
 * have the same size. Return an error if the output is unknown, or if its integers are too small
 * for the ids. */
int sgt_batch_bytes(size_t *bytes, const sgt_loader *l, sgt_output o, sgt_error *err);

/* Read the batch with index b->index, and fill in all arrays of *b. Return 0, or a negative
 * SGT_E*. */
int sgt_batch_make(const sgt_loader *l, sgt_cursor *c, sgt_loader_batch *b, sgt_error *err);

/* A callback with which a caller can measure how long each batch takes. The prefetch thread with
 * index `thread` (from 0) calls it with `done` = 0 before it reads batch `index`, and with `done` =
 * 1 afterwards. */
typedef struct sgt_stream_timer {
    void (*making)(void *ctx, uint32_t thread, uint64_t index, int done);
    void *ctx; /* argument of making */
} sgt_stream_timer;
/* Start a stream as sgt_stream_open does. If `timer` is not NULL, its callback is called before and
 * after each batch. */
int sgt_stream_open_timed(sgt_stream **out, const sgt_loader *l, const sgt_stream_options *o,
                          const sgt_stream_timer *timer, sgt_error *err);

#endif
