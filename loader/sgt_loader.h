/* sgt_loader.h: read batches of tokens from shards, as fast as memory or the disk allows. The
 * library, libsgt-loader, can be called from C, C++, CUDA and any FFI. Its manual is sgt_loader(3).
 *
 *     static int32_t both[2][16][1024]; // inputs and targets
 *     sgt_loader_options o = {.size = sizeof o, .data = "out", .batch = 16, .seq = 1024};
 *     sgt_loader *l = NULL;
 *     sgt_cursor *c = NULL;
 *     sgt_error err;
 *     int rc = sgt_loader_open(&l, &o, &err);
 *     if (rc == 0) rc = sgt_cursor_open(&c, l, &err);
 *     for (uint64_t k = 0; k < 3 && rc == 0; k++) {
 *         rc = sgt_loader_read(l, c, k, 1, SGT_OUTPUT_I32, both, sizeof both, &err); // batch k
 *         if (rc == 0) printf("%d is followed by %d\n", both[0][0][0], both[1][0][0]);
 *     }
 *     if (rc < 0) fprintf(stderr, "%s\n", err.text);
 *     sgt_cursor_close(c);
 *     sgt_loader_close(l);
 *
 * Batch k is a pure function of (dataset, sampling, seed, batch, seq, k): every reader and any
 * number of ranks give the same rows, in any order of calls. A loader is immutable once open, and
 * any number of threads may share it; each thread uses its own cursor or stream.
 *
 * In a struct that begins with `size`, the caller sets `size` to the struct's sizeof, and other
 * fields to 0 for their defaults. Later versions only append: fields to these structs, to
 * sgt_loader_info and to sgt_loader_batch, and values to enums (manual: COMPATIBILITY).
 *
 * Close streams and cursors before their loader. Arguments are read only during the call, but
 * callbacks and their ctx must stay valid as long as the handle. Do not use a handle in a child
 * after fork. The library never prints, never exits, and reads neither the command line nor the
 * environment. Its threads block all signals except those that a thread raises itself. */
#ifndef SGT_LOADER_H
#define SGT_LOADER_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- opening ---- */
/* The manual, READERS, says what each reader needs and what happens if it is unavailable. */
typedef enum sgt_reader {
    SGT_READER_PRELOAD, /* (default) copies all data to RAM, in huge pages */
    SGT_READER_MMAP,    /* maps the shard files into memory (see sgt_loader_guard_sigbus) */
    SGT_READER_URING,   /* reads with io_uring and O_DIRECT, for sets larger than memory */
    SGT_READERS         /* the number of readers */
} sgt_reader;

/* Which rows an epoch has, and in which order (manual: SAMPLINGS). */
typedef enum sgt_sampling {
    /* (default) each epoch has every window once, in an order that depends on the seed */
    SGT_SAMPLING_SHUFFLE,
    SGT_SAMPLING_RANDOM, /* each row starts at a random token, drawn uniformly with replacement */
    /* as shuffle, but blocks of consecutive windows stay together, for large reads by the reader
     * `uring` */
    SGT_SAMPLING_BLOCK,
    SGT_SAMPLING_SEQUENTIAL, /* the windows at tokens 0, T, 2T, ... of each shard in turn */
    /* each row is one document, cut to T+1 tokens or padded; each epoch has every document once */
    SGT_SAMPLING_DOCUMENTS,
    /* each row is filled with documents by best fit and cropped, not padded */
    SGT_SAMPLING_PACKED,
    SGT_SAMPLINGS /* the number of samplings */
} sgt_sampling;

const char *sgt_reader_name(sgt_reader r);     /* "preload", "mmap", "uring" */
const char *sgt_sampling_name(sgt_sampling s); /* "shuffle", "random", ..., "packed" */

typedef struct sgt_loader_set {
    const char *path; /* a folder or a shard */
    /* the sets share the rows in proportion to their weights, 1e-9 to 1e6. If all are 0, each set's
     * number of windows is its weight, so that the epochs of all sets end together */
    double weight;
} sgt_loader_set;

typedef struct sgt_loader_options {
    size_t size; /* sizeof(sgt_loader_options) */

    /* The data: either `data`, a text such as "DIR", "DIR,DIR" or "DIR:0.7,DIR:0.3", or the
     * list `sets`. A text that exists as a path names one set. Otherwise it is split at commas. A
     * part that exists as a path has no weight; in other parts, a number after the last colon is
     * the weight */
    const char *data;
    const sgt_loader_set *sets;
    uint32_t set_count;
    const char *split; /* in a folder, read the shards SPLIT_*.bin; default "train" */
    /* 16 or 32: the shards (or OLMo-core's SPLIT.npy) have no headers, only ids of 16 or 32 bits.
     * 0: shards have headers. A file that looks like 16-bit ids without a header is read only if
     * the path names it, or if it is nanoGPT's train.bin or val.bin */
    int raw;
    /* exclusive upper bound of ids, in addition to the vocabulary sizes in the shards' headers.
     * Default if no header states a size: 50257 for 2-byte ids, 1048576 for 4-byte ids */
    uint32_t vocab;

    /* The rows */
    sgt_sampling sampling; /* their order */
    uint64_t seed;         /* any number, including 0 */
    uint32_t batch;        /* B: rows per batch over all ranks; default 8 */
    uint32_t seq;          /* T: a row is a window of T+1 tokens; default 512 */
    /* index of this process, from 0: its rows of each batch are rank, rank + ranks, ... */
    uint32_t rank;
    uint32_t ranks; /* default 1; must divide batch */
    /* which document arrays batches have. 0: none; 1: all; 2: all except `positions` and `ids`.
     * Unless this is 0, opening reads every .idx file */
    int documents;
    /* for SGT_SAMPLING_DOCUMENTS: pad rows with the id `pad` (1) or the end-of-text id (0) */
    int padded_by;
    uint32_t pad; /* must be below the vocabulary size */

    /* Reading them */
    sgt_reader reader;
    /* what to do if memory is too small for the preloaded copies of all processes. 1: use the
     * reader `mmap` instead and give a notice; 0: fail with SGT_ENOMEM */
    int may_map;
    /* processes on this machine that open the data at the same time; default 1 */
    uint32_t copies;
    /* bytes of memory that were free before the first process began its copy; the copies of all
     * processes must fit in them. 0: estimated (manual: READERS) */
    uint64_t available;
    /* receives notices of skipped shards and of fallbacks; called by one thread at a time */
    sgt_notice notice;
} sgt_loader_options;

typedef struct sgt_loader sgt_loader;
typedef struct sgt_cursor sgt_cursor;

/* Open folders of shards (with or without a manifest) and single shards, of sgt, llm.c,
 * modded-nanogpt, nanoGPT and Megatron-LM (see shards/shard.h). Checks the headers and sizes of all
 * shards. Ids are checked when they are read, which the reader `preload` does during this call. On
 * failure *out is unchanged. The message of SGT_EFORMAT names the shard and the offset. */
int sgt_loader_open(sgt_loader **out, const sgt_loader_options *o, sgt_error *err);
void sgt_loader_close(sgt_loader *l); /* Close its cursors and streams first. NULL is allowed. */

typedef struct sgt_loader_set_info {
    char *path;           /* as the caller gave it */
    double weight, share; /* weight: as the caller gave it; share: fraction of all rows, 0 to 1 */
    uint64_t tokens, windows_per_epoch, hash; /* of this set, as in sgt_loader_info */
    /* first_shard: index of this set's first used shard; shards, skipped: as in sgt_loader_info */
    uint32_t first_shard, shards, skipped;
} sgt_loader_set_info;

typedef struct sgt_loader_info {
    size_t size;     /* sizeof(sgt_loader_info) when the library was built */
    uint64_t tokens; /* tokens in the used shards */
    /* shards: number of used shards; skipped: number of shards too short for one window */
    uint64_t shards, skipped;
    /* rows in one epoch, summed over all sets; with several sets, that many rows may repeat some
     * windows. For sampling `packed`, later epochs may have one or two rows more or fewer */
    uint64_t windows_per_epoch;
    /* batch and seq: B and T, with defaults filled in; vocab: exclusive upper bound of ids */
    uint32_t batch, seq, vocab;
    uint32_t local_batch; /* rows per batch on this rank: batch / ranks */
    int padded;           /* 1 if rows may be padded, which is so for SGT_SAMPLING_DOCUMENTS */
    uint32_t set_count;   /* at least 1 */
    const sgt_loader_set_info *sets;
    uint64_t hash;        /* hash of the data and of the sets' shares (shards/set.h) */
    uint64_t fingerprint; /* fingerprint of the vocabulary (sgt_vocab_fingerprint); 0: unknown */
    int64_t eot;          /* end-of-text id that the shards or the manifest state; -1: unknown */
    /* documents that begin in the used shards, if the sampling is `documents` or `packed`, or if
     * the option `documents` is set and every shard has an .idx file; otherwise 0 */
    uint64_t documents;
    /* for SGT_SAMPLING_PACKED: tokens of all documents, and how many of these are cropped */
    uint64_t packed_tokens, cropped;
    /* how the data is read, for example "preload" or "uring (mmap: io_uring is forbidden)" */
    const char *reader_detail;
} sgt_loader_info;
/* Return a description of the loader, valid until it is closed. */
const sgt_loader_info *sgt_loader_get_info(const sgt_loader *l);

/* Describe the rows of a run without reading data. sgt_loader_window finds the first token of row
 * `row` % B of batch `row` / B: it is token *offset of used shard *shard. sgt_loader_shard_path
 * returns the path of a used shard, and sgt_loader_set_of the index of its set. sgt_loader_drawn
 * returns how many of the run's first `rows` rows come from set `set`. */
void sgt_loader_window(const sgt_loader *l, uint64_t row, uint32_t *shard, uint64_t *offset);
const char *sgt_loader_shard_path(const sgt_loader *l, uint32_t shard);
uint32_t sgt_loader_set_of(const sgt_loader *l, uint32_t shard);
uint64_t sgt_loader_drawn(const sgt_loader *l, uint32_t set, uint64_t rows);

/* Turn SIGBUS from mapped shards into errors. If a mapped file is cut short or its disk fails,
 * reading the missing bytes normally ends the process by SIGBUS. After this call, a batch that
 * reads missing bytes fails with SGT_EFORMAT or SGT_EIO, and the message names the shard and the
 * byte. Later batches with a window that ends past that byte fail, too.
 *
 * Call this function once, at any time. It installs a handler for the whole process and never
 * removes it. The handler passes a SIGBUS at any other address on to the previous handler. Handlers
 * that are installed later must do the same. Threads that read batches must not block SIGBUS.
 * Returns 0, or SGT_EIO. */
int sgt_loader_guard_sigbus(sgt_error *err);

/* ---- resuming ---- */
/* The position of a run: everything that determines which rows follow, to be saved as a struct or
 * field by field. A loader that is opened later can resume from it with any reader, any number of
 * ranks, and any batch size that divides the number of rows already drawn. */
typedef struct sgt_loader_state {
    size_t size;           /* sizeof(sgt_loader_state) */
    uint64_t rows;         /* rows already drawn, over all ranks */
    uint64_t hash, tokens; /* hash and number of tokens of the data, as in sgt_loader_info */
    uint64_t seed;         /* this and the following fields are as in sgt_loader_options */
    sgt_sampling sampling;
    uint32_t seq, pad, reserved; /* pad: 0 unless the sampling is `documents`; reserved: 0 */
} sgt_loader_state;

/* Fill in *s for a run whose next batch is batch `next`. */
int sgt_loader_get_state(const sgt_loader *l, uint64_t next, sgt_loader_state *s, sgt_error *err);
/* Set *next to the index of the batch at which this loader resumes the run saved in *s. Returns
 * SGT_EUSAGE if the rows would differ from those of that run; the message says why. */
int sgt_loader_resume(const sgt_loader *l, const sgt_loader_state *s, uint64_t *next, sgt_error *e);

/* ---- batches ---- */
/* Open a cursor, the state of one thread that reads batches. Only one call may use it at a time. */
int sgt_cursor_open(sgt_cursor **out, const sgt_loader *l, sgt_error *err);
void sgt_cursor_close(sgt_cursor *c); /* Close a cursor. NULL is allowed. */

#define SGT_IGNORED (-100) /* target at padding; PyTorch's cross_entropy ignores it by default */
typedef enum sgt_output {
    SGT_OUTPUT_U16,      /* rows of T+1 ids (the default); for sets of 2-byte ids only */
    SGT_OUTPUT_I32,      /* inputs and targets, as int32 */
    SGT_OUTPUT_I64,      /* inputs and targets, as int64, which PyTorch's cross_entropy needs */
    SGT_OUTPUT_I32_ROWS, /* rows of T+1 ids, as int32 */
    SGT_OUTPUTS          /* the number of outputs */
} sgt_output;

typedef struct sgt_loader_batch {
    size_t size;       /* sizeof(sgt_loader_batch) when the library was built */
    uint64_t index;    /* number of the batch in the run */
    sgt_output output; /* type of the ids */
    /* ids, (local_batch, T) each. targets[i] is the token after inputs[i], or SGT_IGNORED at
     * padding. For SGT_OUTPUT_U16 and _I32_ROWS: inputs is (local_batch, T+1), targets is NULL */
    void *inputs, *targets;
    uint32_t *lengths; /* tokens in each row, not counting padding; only for sampling `documents` */
    /* document starts: NULL unless options.documents is set. In row r, documents begin at the
     * tokens starts[row_starts[r]] ... starts[row_starts[r + 1] - 1], in ascending order, each from
     * 0 to T. They come from SHARD.idx; without that file, they are the row's end-of-text ids */
    uint32_t *row_starts, *starts; /* shapes (local_batch + 1) and (row_starts[local_batch]) */
    uint32_t slot;                 /* for a stream: index of the batch's buffer in the ring */
    /* the document of each input, (local_batch, T) each; NULL unless options.documents is set.
     * begins: index in the row of its document's first input; at padding, the input's own index.
     * positions: index within its document; at padding 0. ids: index of the document in the row;
     * at padding -1. If options.documents is 2, positions and ids are NULL */
    int32_t *begins, *positions, *ids;
} sgt_loader_batch;

/* Write batches first ... first + count - 1 to `out`, a buffer of `bytes` bytes. Depending on
 * `output`, `out` gets rows, (count, local_batch, T+1), or all inputs followed by all targets, (2,
 * count, local_batch, T). Returns SGT_EUSAGE if the batches do not fit. After a failure the content
 * of `out` is undefined. One call for several batches is faster in languages with slow foreign
 * calls. */
int sgt_loader_read(const sgt_loader *l, sgt_cursor *c, uint64_t first, uint64_t count,
                    sgt_output output, void *out, size_t bytes, sgt_error *err);
/* Return the batch that the last sgt_loader_read with this cursor wrote (the last batch if there
 * were several). Undefined after a read that failed. The batch's arrays are valid until the next
 * read. */
const sgt_loader_batch *sgt_cursor_batch(const sgt_cursor *c);

/* ---- streams: threads that make batches first, first+1, ... ahead, in a ring of buffers ----
 *
 *     const sgt_loader_batch *b;
 *     while (sgt_stream_next(s, &b, &err) == 0) { use(b->inputs); sgt_stream_release(s, b, NULL); }
 *
 * One consumer thread calls next and release. It may hold up to `slots` batches and must release
 * them in order. Sleeping prefetch threads are woken when half of the ring is free. */

typedef struct sgt_stream_options {
    size_t size;       /* sizeof(sgt_stream_options) */
    uint64_t first;    /* index of the first batch to make */
    uint64_t count;    /* number of batches; 0: endless */
    sgt_output output; /* type of the ids */
    uint32_t slots;    /* buffers in the ring; default 4 */
    uint32_t threads;  /* prefetch threads; default 1 */
    /* array of the caller's `slots` buffers, of sgt_stream_bytes bytes each, for example in pinned
     * memory. They must stay valid until the stream is closed. NULL: the stream allocates
     * page-aligned buffers */
    void *const *buffers;
} sgt_stream_options;

typedef struct sgt_stream sgt_stream;
/* Return the size of one buffer in bytes, or 0 if `output` is unsupported or the size overflows. */
size_t sgt_stream_bytes(const sgt_loader *l, sgt_output output);
/* Start a stream; o NULL means all defaults. */
int sgt_stream_open(sgt_stream **out, const sgt_loader *l, const sgt_stream_options *o,
                    sgt_error *err);
/* Wait for the next batch and store it in *b, where it stays valid until it is released. Returns 0,
 * or 1 after the last of `count` batches. If the batch could not be read, this and all further
 * calls return the same negative SGT_E* code. Returns SGT_EUSAGE if the consumer holds all slots:
 * the wait would never end. */
int sgt_stream_next(sgt_stream *s, const sgt_loader_batch **b, sgt_error *err);
/* Give the batch's buffer back to the prefetch threads. A caller that gave options.buffers may
 * instead keep it and give another buffer of the same size, `buffer`. Otherwise `buffer` is
 * NULL. */
void sgt_stream_release(sgt_stream *s, const sgt_loader_batch *b, void *buffer);
/* Close the stream, at any time, from the consumer thread. NULL is allowed. */
void sgt_stream_close(sgt_stream *s);

#ifdef __cplusplus
}
#endif
#endif
