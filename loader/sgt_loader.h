/* sgt_loader.h: read batches of tokens from shards, as fast as the memory or the disk allows. The
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
 * Batch k is a pure function of (dataset, sampling, seed, batch, seq, k): all readers and any
 * number of ranks give the same rows, in any order of calls. An open loader never changes, and any
 * number of threads may share it; each thread uses its own cursor or stream.
 *
 * In a struct that begins with `size`, the caller sets `size` to the struct's sizeof, and sets
 * other fields to 0 for their defaults. Later versions only append fields to these structs, to
 * sgt_loader_info and to sgt_loader_batch, and values to enums (manual: COMPATIBILITY).
 *
 * Close streams and cursors before their loader. Arguments are read only during the call, but
 * callbacks and their `ctx` must stay valid as long as the handle. Do not use a handle in a child
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
/* See READERS in the manual for what each reader needs, and what happens if it is unavailable. */
typedef enum sgt_reader {
    SGT_READER_PRELOAD, /* (default) copies all data to memory, in huge pages */
    SGT_READER_MMAP,    /* maps the shard files into memory (see sgt_loader_guard_sigbus) */
    SGT_READER_URING,   /* reads with io_uring and O_DIRECT, for sets larger than memory */
    SGT_READERS         /* the number of readers */
} sgt_reader;

/* Which rows an epoch consists of, and in which order they come (manual: SAMPLINGS). */
typedef enum sgt_sampling {
    /* (default) each epoch has every window once, in an order that the seed determines */
    SGT_SAMPLING_SHUFFLE,
    SGT_SAMPLING_RANDOM, /* each row begins at a random token, drawn uniformly with replacement */
    /* like shuffle, but blocks of consecutive windows stay together, so that the reader `uring` can
     * make large reads */
    SGT_SAMPLING_BLOCK,
    SGT_SAMPLING_SEQUENTIAL, /* the windows at tokens 0, T, 2T, ... of each shard in turn */
    /* each row is one document, cut or padded to T+1 tokens; an epoch uses each document once */
    SGT_SAMPLING_DOCUMENTS,
    /* each row is filled with documents by best fit, some of them cropped; no row is padded */
    SGT_SAMPLING_PACKED,
    SGT_SAMPLINGS /* the number of samplings */
} sgt_sampling;

const char *sgt_reader_name(sgt_reader r);     /* "preload", "mmap", "uring" */
const char *sgt_sampling_name(sgt_sampling s); /* "shuffle", "random", ..., "packed" */

typedef struct sgt_loader_set {
    const char *path; /* path of a folder or of a shard */
    /* the sets share the rows in proportion to their weights, 1e-9 to 1e6. If all weights are 0,
     * they count as the sets' numbers of windows, so that the epochs of all sets end together */
    double weight;
} sgt_loader_set;

typedef struct sgt_loader_options {
    size_t size; /* sizeof(sgt_loader_options) */

    /* The data is given either by `data`, a string such as "DIR", "DIR,DIR" or "DIR:0.7,DIR:0.3",
     * or by the list `sets`. If the string is an existing path, it names one set. Otherwise it is
     * split at commas into sets. In a set that is not an existing path, a number after the last
     * colon is the weight */
    const char *data;
    const sgt_loader_set *sets;
    uint32_t set_count;
    const char *split; /* in a folder, the shards SPLIT_*.bin are read; default "train" */
    /* 16 or 32: the shards (or OLMo-core's SPLIT.npy) have no headers, only ids of 16 or 32 bits.
     * 0: shards have headers; a file that looks like 16-bit ids without a header is read only if
     * the path names it, or if it is nanoGPT's train.bin or val.bin */
    int raw;
    /* exclusive upper bound of ids, in addition to the vocabulary sizes in the shards' headers. If
     * no header states a size, the default is 50257 for 2-byte ids and 1048576 for 4-byte ids */
    uint32_t vocab;

    /* The rows */
    sgt_sampling sampling; /* which rows an epoch has, and in which order */
    uint64_t seed;         /* any number, including 0 */
    uint32_t batch;        /* B: number of rows per batch, over all ranks; default 8 */
    uint32_t seq;          /* T: a row is a window of T+1 tokens; default 512 */
    /* index of this process, from 0; it gets rows rank, rank + ranks, ... of each batch */
    uint32_t rank;
    uint32_t ranks; /* processes that share each batch; default 1; must divide `batch` */
    /* which arrays about documents a batch has. 0: none; 1: all; 2: all except `positions` and
     * `ids`. Unless this is 0, opening the loader reads every .idx file */
    int documents;
    /* for SGT_SAMPLING_DOCUMENTS: 1 pads rows with the id `pad`, 0 with the end-of-text id */
    int padded_by;
    uint32_t pad; /* must be below the vocabulary size */

    /* Reading them */
    sgt_reader reader;
    /* what to do if memory is too small for the preloaded copies of all processes. 1: use the
     * reader `mmap` instead and send a notice; 0: fail with SGT_ENOMEM */
    int may_map;
    /* number of processes on this machine that open the data at the same time; default 1 */
    uint32_t copies;
    /* bytes of memory that were free before the first process began its copy; the copies of all
     * processes together must fit into this. 0: estimated (manual: READERS) */
    uint64_t available;
    /* receives notices about skipped shards and fallbacks, from one thread at a time */
    sgt_notice notice;
} sgt_loader_options;

typedef struct sgt_loader sgt_loader;
typedef struct sgt_cursor sgt_cursor;

/* Open folders of shards (with or without a manifest) and single shards, in the formats of sgt,
 * llm.c, modded-nanogpt, nanoGPT and Megatron-LM (see shards/shard.h). Checks the headers and sizes
 * of all shards. Ids are checked when they are read; the reader `preload` reads them during this
 * call. On failure *out is unchanged. The message of SGT_EFORMAT names the shard and the offset. */
int sgt_loader_open(sgt_loader **out, const sgt_loader_options *o, sgt_error *err);
void sgt_loader_close(sgt_loader *l); /* Close its cursors and streams first. NULL is allowed. */

typedef struct sgt_loader_set_info {
    char *path;           /* as the caller gave it */
    double weight, share; /* weight: as the caller gave it; share: fraction of all rows, 0 to 1 */
    uint64_t tokens, windows_per_epoch, hash; /* same as in sgt_loader_info, for this set */
    /* first_shard: index of this set's first used shard; others: same as in sgt_loader_info */
    uint32_t first_shard, shards, skipped;
} sgt_loader_set_info;

typedef struct sgt_loader_info {
    size_t size;     /* sizeof(sgt_loader_info) when the library was built */
    uint64_t tokens; /* number of tokens in the used shards */
    /* shards: number of used shards; skipped: number of shards that are too short for a window */
    uint64_t shards, skipped;
    /* rows in one epoch, summed over all sets. With several sets, this many rows may have some
     * windows twice. With sampling `packed`, later epochs may have one or two rows more or fewer */
    uint64_t windows_per_epoch;
    /* batch and seq: B and T, with defaults filled in; vocab: exclusive upper bound of ids */
    uint32_t batch, seq, vocab;
    uint32_t local_batch; /* number of rows of each batch that this rank gets: batch / ranks */
    int padded;           /* 1 if rows may be padded (SGT_SAMPLING_DOCUMENTS), otherwise 0 */
    uint32_t set_count;   /* at least 1 */
    const sgt_loader_set_info *sets;
    uint64_t hash;        /* hash of the data and of the shares of the sets (see shards/set.h) */
    uint64_t fingerprint; /* fingerprint of the vocabulary (sgt_vocab_fingerprint); 0: unknown */
    int64_t eot;          /* end-of-text id, if the shards or the manifest state it; -1: unknown */
    /* documents that begin in the used shards, if the sampling is `documents` or `packed`, or if
     * the option `documents` is set and every shard has an .idx file; otherwise 0 */
    uint64_t documents;
    /* for SGT_SAMPLING_PACKED: tokens of all documents, and tokens that are cropped in epoch 0 */
    uint64_t packed_tokens, cropped;
    /* how the data is read, such as "preload" or "uring (mmap: io_uring is forbidden)" */
    const char *reader_detail;
} sgt_loader_info;
/* Return a description of the loader, which is valid until the loader is closed. */
const sgt_loader_info *sgt_loader_get_info(const sgt_loader *l);

/* Describe the rows of a run without reading data. sgt_loader_window finds the first token of row
 * `row` % B of batch `row` / B: it is token *offset of used shard *shard. sgt_loader_shard_path
 * returns the path of a used shard, and sgt_loader_set_of returns the index of its set.
 * sgt_loader_drawn returns how many of the first `rows` rows of the run come from set `set`. */
void sgt_loader_window(const sgt_loader *l, uint64_t row, uint32_t *shard, uint64_t *offset);
const char *sgt_loader_shard_path(const sgt_loader *l, uint32_t shard);
uint32_t sgt_loader_set_of(const sgt_loader *l, uint32_t shard);
uint64_t sgt_loader_drawn(const sgt_loader *l, uint32_t set, uint64_t rows);

/* Turn SIGBUS from mapped shards into errors. If a mapped file is cut short or its disk fails,
 * reading the missing bytes normally kills the process with SIGBUS. After this call, a batch that
 * reads missing bytes fails with SGT_EFORMAT or SGT_EIO instead, and the message names the shard
 * and the byte. Later batches with a window that ends after that byte fail, too.
 *
 * Call this function once, at any time. It installs a handler for the entire process and never
 * removes it. The handler passes a SIGBUS at any other address to the previous handler. Handlers
 * that are installed later must do the same. Threads that read batches must not block SIGBUS.
 * Returns 0, or SGT_EIO. */
int sgt_loader_guard_sigbus(sgt_error *err);

/* ---- resuming ---- */
/* The position of a run: everything that determines which rows come next. Save it as a struct or
 * field by field. A loader that is opened later can resume from it with any reader, any number of
 * ranks, and any batch size that divides the number of rows already drawn. */
typedef struct sgt_loader_state {
    size_t size;           /* sizeof(sgt_loader_state) */
    uint64_t rows;         /* number of rows already drawn, over all ranks */
    uint64_t hash, tokens; /* hash of the data, and number of its tokens, as in sgt_loader_info */
    uint64_t seed;         /* same as in sgt_loader_options, as are the fields below */
    sgt_sampling sampling;
    uint32_t seq, pad, reserved; /* pad: 0 unless the sampling is `documents`; reserved: always 0 */
} sgt_loader_state;

/* Fill in *s for a run that continues with batch `next`. */
int sgt_loader_get_state(const sgt_loader *l, uint64_t next, sgt_loader_state *s, sgt_error *err);
/* Set *next to the index of the batch with which this loader continues the run saved in *s. Returns
 * SGT_EUSAGE if the rows would differ from those of that run; the message says why. */
int sgt_loader_resume(const sgt_loader *l, const sgt_loader_state *s, uint64_t *next, sgt_error *e);

/* ---- batches ---- */
/* Open a cursor, the state of a thread that reads batches. Only one call at a time may use it. */
int sgt_cursor_open(sgt_cursor **out, const sgt_loader *l, sgt_error *err);
void sgt_cursor_close(sgt_cursor *c); /* Close a cursor. NULL is allowed. */

#define SGT_IGNORED (-100) /* target of padding; PyTorch's cross_entropy ignores it by default */
typedef enum sgt_output {
    SGT_OUTPUT_U16,      /* rows of T+1 ids (default), as uint16; only for 2-byte ids */
    SGT_OUTPUT_I32,      /* inputs and targets, as int32 */
    SGT_OUTPUT_I64,      /* inputs and targets, as int64, which PyTorch's cross_entropy needs */
    SGT_OUTPUT_I32_ROWS, /* rows of T+1 ids, as int32 */
    SGT_OUTPUTS          /* the number of outputs */
} sgt_output;

typedef struct sgt_loader_batch {
    size_t size;       /* sizeof(sgt_loader_batch) when the library was built */
    uint64_t index;    /* index of the batch in the run */
    sgt_output output; /* type of the ids */
    /* ids, (local_batch, T) each. targets[i] is the id after inputs[i], or SGT_IGNORED at padding.
     * For SGT_OUTPUT_U16 and _I32_ROWS, `inputs` is (local_batch, T+1) and `targets` is NULL */
    void *inputs, *targets;
    uint32_t *lengths; /* tokens in each row, without padding; only for sampling `documents` */
    /* where documents begin; NULL unless options.documents is set. In row r, they begin at the
     * tokens starts[row_starts[r]] ... starts[row_starts[r + 1] - 1], in ascending order, each from
     * 0 to T. They are read from SHARD.idx or, without that file, are the end-of-text ids */
    uint32_t *row_starts, *starts; /* shapes (local_batch + 1) and (row_starts[local_batch]) */
    uint32_t slot;                 /* for a stream: index of the batch's buffer in the ring */
    /* the document of each input, (local_batch, T) each; NULL unless options.documents is set.
     * begins: index in the row of the document's first input; at padding, of the input itself.
     * positions: index of the input in its document; 0 at padding. ids: index of the document in
     * the row; -1 at padding. If options.documents is 2, positions and ids are NULL */
    int32_t *begins, *positions, *ids;
} sgt_loader_batch;

/* Write the batches `first` ... first + count - 1 to `out`, a buffer of `bytes` bytes. Depending on
 * `output`, this writes rows, (count, local_batch, T+1), or all inputs followed by all targets, (2,
 * count, local_batch, T). Returns SGT_EUSAGE if the batches do not fit. After a failure, the
 * content of `out` is undefined. In languages with slow foreign calls, one call for several batches
 * is faster than a call for each. */
int sgt_loader_read(const sgt_loader *l, sgt_cursor *c, uint64_t first, uint64_t count,
                    sgt_output output, void *out, size_t bytes, sgt_error *err);
/* Return the batch that the last sgt_loader_read with this cursor wrote: the last of them if it
 * wrote several. Undefined if that read failed. The arrays of the batch are valid until the next
 * read. */
const sgt_loader_batch *sgt_cursor_batch(const sgt_cursor *c);

/* ---- streams ----
 * Prefetch threads make batches `first`, first + 1, ... ahead of time, in a ring of buffers.
 *
 *     const sgt_loader_batch *b;
 *     while (sgt_stream_next(s, &b, &err) == 0) { use(b->inputs); sgt_stream_release(s, b, NULL); }
 *
 * One consumer thread calls both functions. It may hold up to `slots` batches and must release them
 * in order. Sleeping prefetch threads are woken when half of the ring is free. */

typedef struct sgt_stream_options {
    size_t size;       /* sizeof(sgt_stream_options) */
    uint64_t first;    /* index of the first batch to make */
    uint64_t count;    /* number of batches; 0: endless */
    sgt_output output; /* type of the ids */
    uint32_t slots;    /* number of buffers in the ring; default 4 */
    uint32_t threads;  /* number of prefetch threads; default 1 */
    /* array of `slots` buffers of the caller, each of sgt_stream_bytes bytes, for example in pinned
     * memory. They must stay valid until the stream is closed. NULL: the stream allocates
     * page-aligned buffers */
    void *const *buffers;
} sgt_stream_options;

typedef struct sgt_stream sgt_stream;
/* Return the size of a buffer in bytes, or 0 if `output` is unsupported or the size overflows. */
size_t sgt_stream_bytes(const sgt_loader *l, sgt_output output);
/* Start a stream. If o is NULL, all options have their defaults. */
int sgt_stream_open(sgt_stream **out, const sgt_loader *l, const sgt_stream_options *o,
                    sgt_error *err);
/* Wait for the next batch and set *b to it. The batch stays valid until it is released. Returns 0,
 * or 1 after the last of `count` batches. If the batch could not be read, this and all further
 * calls return the same negative SGT_E*. Returns SGT_EUSAGE if the consumer holds all slots,
 * because the wait would never end. */
int sgt_stream_next(sgt_stream *s, const sgt_loader_batch **b, sgt_error *err);
/* Give the buffer of the batch back to the prefetch threads. If the caller gave options.buffers, it
 * may instead keep this buffer and give a different one of the same size, `buffer`. Otherwise
 * `buffer` must be NULL. */
void sgt_stream_release(sgt_stream *s, const sgt_loader_batch *b, void *buffer);
/* Close the stream. The consumer thread may do this at any time. NULL is allowed. */
void sgt_stream_close(sgt_stream *s);

#ifdef __cplusplus
}
#endif
#endif
