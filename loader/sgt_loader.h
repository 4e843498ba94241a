/* sgt_loader.h: read batches of tokens from shards, as fast as memory or the disk allows. The
 * library, libsgt-loader, needs no other library of sgt and can be called from C, C++, CUDA and any
 * FFI.
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
 * any number of threads may share it; each thread uses its own cursor or its own stream.
 *
 * This interface stays compatible. In a struct that begins with `size`, the caller sets `size` to
 * the struct's sizeof, and other fields to 0 for their defaults. Later versions append fields, and
 * accept the smaller struct of a program that was compiled earlier. The library refuses a size of
 * 0, and fields that it does not know, unless they are 0. Later versions may also append to enums
 * and to the structs that the library fills in, sgt_loader_info and sgt_loader_batch. Other structs
 * do not change.
 *
 * Close streams and cursors before their loader. The library reads arguments only during the call,
 * except callbacks and their ctx, which must stay valid as long as the handle. Do not use a handle
 * in a child after fork. The library never prints, never exits, and reads neither the command line
 * nor the environment. Its threads block all signals except those that a thread raises itself. */
#ifndef SGT_LOADER_H
#define SGT_LOADER_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- opening ---- */

typedef enum sgt_reader {
    /* (default) copies all data to RAM, in huge pages. If the machine or the container has too
     * little memory, opening fails with SGT_ENOMEM, or uses mmap instead if options.may_map is
     * set */
    SGT_READER_PRELOAD,
    /* maps files into memory (see sgt_loader_guard_sigbus). Opening the first cursor takes up to a
     * quarter of a second, because it maps the pages in the page cache, which then count as
     * resident memory */
    SGT_READER_MMAP,
    /* reads with io_uring and O_DIRECT, for sets larger than memory. Each shard keeps a file
     * descriptor open; if fewer than 64 remain for the process, its limit (RLIMIT_NOFILE) is
     * raised. If that fails, or if io_uring is unavailable, mmap is used instead. If a file system
     * does not support O_DIRECT, reads go through the page cache. A notice reports each of these
     * fallbacks */
    SGT_READER_URING,
    SGT_READERS /* the number of readers */
} sgt_reader;

typedef enum sgt_sampling {
    /* (default) each epoch has every window once, in an order that depends on the seed */
    SGT_SAMPLING_SHUFFLE,
    SGT_SAMPLING_RANDOM, /* each row starts at a uniformly drawn token, with replacement */
    /* the windows of shuffle, permuted at two levels: blocks of consecutive windows, then the
     * windows within a pool of 256 blocks. The uring reader then reads blocks ahead, about two
     * pools. For each set this takes 140 MiB of memory if T = 1,024, and at most 276 MiB; twice as
     * much for 4-byte ids */
    SGT_SAMPLING_BLOCK,
    SGT_SAMPLING_SEQUENTIAL, /* windows 0, T, 2T, ... of each shard in turn */
    /* each row is one document, cut to T+1 tokens or padded; each epoch has every document once,
     * permuted. A document begins with an end-of-text id, which is part of the row, and ends where
     * the next one begins, perhaps in a later shard. SHARD.idx lists where documents begin, as u64
     * numbers of tokens from the first token of SHARD.bin. Without that file, a document begins at
     * each end-of-text id: the id in the header, or if the header has none and ids have 2 bytes,
     * 50256. Tokens before the first document are in no row */
    SGT_SAMPLING_DOCUMENTS,
    /* rows are filled with documents by best fit (sample/pack.h). The last document of a row is
     * cropped if it is too long, so there is no padding. Each epoch has the beginning of every
     * document once. Documents must begin with the end-of-text id. Takes 8 bytes of memory per
     * document */
    SGT_SAMPLING_PACKED,
    SGT_SAMPLINGS /* the number of samplings */
} sgt_sampling;

const char *sgt_reader_name(sgt_reader r);     /* "preload", "mmap", "uring" */
const char *sgt_sampling_name(sgt_sampling s); /* "shuffle", "random", ..., "packed" */

typedef struct sgt_loader_set {
    const char *path; /* a folder or a shard */
    /* each row comes from one set, in proportion to these weights: from 1e-9 to 1e6, with any sum.
     * If all weights are 0, a set's weight is its number of windows, so that the epochs of all sets
     * end together */
    double weight;
} sgt_loader_set;

typedef struct sgt_loader_options {
    size_t size; /* sizeof(sgt_loader_options) */

    /* The data: either a text, "DIR", "DIR,DIR" or "DIR:0.7,DIR:0.3", or a list of sets. If the
     * whole text, or a part between commas, exists as a path, it is that path. Otherwise a number
     * after its last colon is the weight */
    const char *data;
    const sgt_loader_set *sets;
    uint32_t set_count;
    const char *split; /* in a folder, read the shards SPLIT_*.bin; default "train" */
    /* 16 or 32: the shards, or OLMo-core's SPLIT.npy in a folder, have no headers, only ids of that
     * many bits. With 0, such files of 16-bit ids are read, too, if the path names one file, or if
     * a folder has nanoGPT's train.bin and val.bin (with a notice), unless they look like text or
     * like wider ids */
    int raw;
    /* every id must be below this and below the vocabulary sizes in headers. 0: only the headers
     * count; if none states a size, the bound is 50257, or 1048576 for ids of 4 bytes */
    uint32_t vocab;

    /* The rows */
    sgt_sampling sampling; /* their order */
    uint64_t seed;         /* any number, including 0 */
    uint32_t batch;        /* B: rows per batch over all ranks; default 8 */
    uint32_t seq;          /* T: a row is a window of T+1 tokens; default 512 */
    uint32_t rank;         /* this process gets rows rank, rank + ranks, ... of each batch */
    uint32_t ranks;        /* default 1; must divide batch */
    /* 1: batches state where documents begin in rows (opening reads every .idx); 2: the same, but
     * without the arrays `positions` and `ids` */
    int documents;
    /* for sampling documents: 1 pads rows with the id `pad`, 0 with the end-of-text id */
    int padded_by;
    uint32_t pad; /* must be below the vocabulary size */

    /* Reading them */
    sgt_reader reader;
    /* 1: if memory is too small for all copies, use mmap instead of preload, with a notice */
    int may_map;
    /* processes on this machine that open the data at the same time, including this one; default
     * 1 */
    uint32_t copies;
    /* bytes of memory that were free before any process began its copy; all copies together must
     * fit in it. 0: not known. It is then estimated as the free memory plus the memory that the
     * children of this process's parent have filled, if there are at least `copies` of these; else
     * as all memory */
    uint64_t available;
    /* receives notices of skipped shards and of fallbacks, from one thread at a time */
    sgt_notice notice;
} sgt_loader_options;

typedef struct sgt_loader sgt_loader;
typedef struct sgt_cursor sgt_cursor;

/* Open folders of shards (with or without a manifest) and shards: sgt's own and those of llm.c,
 * modded-nanogpt, nanoGPT and Megatron-LM (shards/shard.h; Megatron's also by PREFIX alone). Ids
 * have 2 bytes, or 4 if the vocabulary has more than 65,536. Headers and sizes of all shards are
 * checked at once. Ids are checked when they are read, which preload does in this call. The loader
 * owns all that it opens. On failure *out is unchanged. The message of SGT_EFORMAT names the shard
 * and the offset. */
int sgt_loader_open(sgt_loader **out, const sgt_loader_options *o, sgt_error *err);
void sgt_loader_close(sgt_loader *l); /* Close its cursors and streams first. NULL is fine. */

typedef struct sgt_loader_set_info {
    char *path;                               /* as the caller gave it */
    double weight, share;                     /* weight as given; share of all rows, from 0 to 1 */
    uint64_t tokens, windows_per_epoch, hash; /* of this set, as in sgt_loader_info */
    /* index of its first used shard; how many shards are used; how many were skipped */
    uint32_t first_shard, shards, skipped;
} sgt_loader_set_info;

typedef struct sgt_loader_info {
    size_t size;     /* sizeof the struct in the library, which has no fields beyond it */
    uint64_t tokens; /* tokens in the used shards */
    /* number of used shards; number of shards skipped as too short for one window */
    uint64_t shards, skipped;
    /* rows of T+1 tokens in one epoch. For sampling documents, the number of documents that begin
     * in the shards; for packed, the rows of the first epoch (later epochs may have one or two more
     * or less). For a mix it is the sum over all sets, and within that many rows some windows may
     * come twice */
    uint64_t windows_per_epoch;
    /* the options B and T with defaults filled in; the exclusive upper bound of ids */
    uint32_t batch, seq, vocab;
    uint32_t local_batch; /* rows per batch on this rank: batch / ranks */
    int padded;           /* 1 if rows may be padded: sampling documents */
    uint32_t set_count;   /* at least 1 */
    const sgt_loader_set_info *sets;
    /* identifies the data: the hash of the manifest. Without a manifest, it covers names, sizes and
     * headers, and the 4 KiB at both ends of shards whose header has no checksum. For a mix, it
     * covers the hashes and shares of its sets */
    uint64_t hash;
    /* fingerprint of the vocabulary (sgt_vocab_fingerprint) in headers or manifest; 0: unknown */
    uint64_t fingerprint;
    int64_t eot; /* end-of-text id that the first shard's header or its manifest states; or -1 */
    /* number of documents that begin in the used shards. 0 unless the option `documents` is set or
     * the sampling is documents or packed; with only the option, it is also 0 if a shard has no
     * .idx file */
    uint64_t documents;
    /* for sampling packed: tokens of all documents; how many of them are in no row */
    uint64_t packed_tokens, cropped;
    const char *reader_detail; /* "preload", "uring (mmap: io_uring is forbidden)" */
} sgt_loader_info;
/* Return a description of the loader, valid until it is closed. */
const sgt_loader_info *sgt_loader_get_info(const sgt_loader *l);

/* sgt_loader_window sets *shard and *offset to the used shard, and the token in it, at which row
 * `row` of the run begins (row = batch index * B + number in the batch). The next two return the
 * path and the set of a used shard. sgt_loader_drawn returns how many of the first `rows` rows of
 * the run come from set `set`. All four only compute. */
void sgt_loader_window(const sgt_loader *l, uint64_t row, uint32_t *shard, uint64_t *offset);
const char *sgt_loader_shard_path(const sgt_loader *l, uint32_t shard);
uint32_t sgt_loader_set_of(const sgt_loader *l, uint32_t shard);
uint64_t sgt_loader_drawn(const sgt_loader *l, uint32_t set, uint64_t rows);

/* Turn SIGBUS from mapped shards into errors. If a mapped file is cut short or its disk fails,
 * reading the missing bytes ends the process by SIGBUS. After this call, a batch that reads missing
 * bytes fails with SGT_EFORMAT or SGT_EIO, naming the shard and the byte, and so does every later
 * batch with a window that ends past that byte. (The missing part of a last page reads as zeros
 * without a signal: the size of a shard whose window ends in id 0 is always checked.) Call it once,
 * at any time. It installs a handler for the whole process and never removes it. A SIGBUS at any
 * other address goes to the previous handler. A handler that is installed later must do likewise,
 * and threads that draw must not block SIGBUS. Returns 0, or SGT_EIO. */
int sgt_loader_guard_sigbus(sgt_error *err);

/* ---- resuming ---- */

/* The position of a run: the number of rows drawn so far, and everything that determines the rows.
 * Save it with the results, as a struct or field by field. A loader that is opened later resumes
 * from it with any reader, any number of ranks, and any batch size that divides the rows already
 * drawn. */
typedef struct sgt_loader_state {
    size_t size;           /* sizeof(sgt_loader_state) */
    uint64_t rows;         /* rows already drawn, over all ranks */
    uint64_t hash, tokens; /* identify the data, as in sgt_loader_info */
    uint64_t seed;         /* this and the following fields are as in sgt_loader_options */
    sgt_sampling sampling;
    uint32_t seq, pad, reserved; /* pad: 0 unless the sampling is documents; reserved: 0 */
} sgt_loader_state;

/* Fill in the state of a run that draws batch `next` next. */
int sgt_loader_get_state(const sgt_loader *l, uint64_t next, sgt_loader_state *s, sgt_error *err);
/* Set *next to this loader's next batch. If its rows would differ from those of the saved run,
 * returns SGT_EUSAGE with a message that says how. */
int sgt_loader_resume(const sgt_loader *l, const sgt_loader_state *s, uint64_t *next, sgt_error *e);

/* ---- batches ---- */

/* Open a cursor. Each thread that reads batches needs its own. Only one call may use it at a
 * time. */
int sgt_cursor_open(sgt_cursor **out, const sgt_loader *l, sgt_error *err);
void sgt_cursor_close(sgt_cursor *c); /* NULL is fine. */

#define SGT_IGNORED (-100) /* target at padding, which PyTorch's cross_entropy ignores by default */
typedef enum sgt_output {
    SGT_OUTPUT_U16,      /* rows of T+1 ids (the default); for sets of 2-byte ids only */
    SGT_OUTPUT_I32,      /* inputs and targets, as int32 */
    SGT_OUTPUT_I64,      /* the same as int64, which PyTorch's cross_entropy needs for targets */
    SGT_OUTPUT_I32_ROWS, /* rows of T+1 ids, as int32 */
    SGT_OUTPUTS          /* the number of outputs */
} sgt_output;

typedef struct sgt_loader_batch {
    size_t size;       /* as in sgt_loader_info */
    uint64_t index;    /* number of the batch in the run */
    sgt_output output; /* type of the ids */
    /* (local_batch, T) each: targets are the inputs shifted by one, and SGT_IGNORED at padding. If
     * the output is rows, inputs has them, (local_batch, T+1), and targets is NULL */
    void *inputs, *targets;
    /* (local_batch): how many of a row's T+1 tokens are not padding, at least 1; NULL unless the
     * sampling is documents */
    uint32_t *lengths;
    /* With options.documents: where documents start, taken from SHARD.idx, or without that file,
     * found by the row's end-of-text ids; else NULL. In row r, documents begin at the tokens
     * starts[row_starts[r]] ... starts[row_starts[r + 1] - 1], ascending, from 0 to T. Tokens
     * before the first of them belong to a document that began before the row */
    uint32_t *row_starts, *starts; /* (local_batch + 1); (row_starts[local_batch]) */
    uint32_t slot;                 /* for a stream: number of the batch's buffer in the ring */
    /* With options.documents, a number for each input, (local_batch, T) each; else NULL. begins:
     * index in the row of the input at which its document begins; positions: its distance from
     * there; ids: number of its document in the row, from 0. For padding: its own index, 0 and -1.
     * With documents 2, positions and ids are NULL */
    int32_t *begins, *positions, *ids;
} sgt_loader_batch;

/* Write batches first ... first + count - 1 to `out`, which has room for `bytes`: rows, (count,
 * local_batch, T+1); or all inputs, followed by all targets, (2, count, local_batch, T). Returns
 * SGT_EUSAGE if the batches do not fit. In a language with slow calls, reading several batches in
 * one call is faster. After a failure the content of `out` is undefined. */
int sgt_loader_read(const sgt_loader *l, sgt_cursor *c, uint64_t first, uint64_t count,
                    sgt_output output, void *out, size_t bytes, sgt_error *err);
/* Return the batch that sgt_loader_read read last, unless a read has failed. Its arrays are valid
 * until the next read. */
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
    /* (slots): the caller's buffers of sgt_stream_bytes bytes each, for example in pinned memory;
     * they must stay valid until the stream is closed. NULL: the stream allocates buffers, aligned
     * to pages */
    void *const *buffers;
} sgt_stream_options;

typedef struct sgt_stream sgt_stream;
/* Return the size of a buffer in bytes; 0 for an output that the loader does not support, or if the
 * size would overflow. */
size_t sgt_stream_bytes(const sgt_loader *l, sgt_output output);
/* Start a stream; o NULL means all defaults. */
int sgt_stream_open(sgt_stream **out, const sgt_loader *l, const sgt_stream_options *o,
                    sgt_error *err);
/* Wait for the next batch, which is valid until it is released. Returns 0, or 1 after the last of
 * `count` batches. If the batch could not be read, this and every further call return its negative
 * SGT_E*. Returns SGT_EUSAGE if the consumer holds all slots, since the wait would never end. */
int sgt_stream_next(sgt_stream *s, const sgt_loader_batch **b, sgt_error *err);
/* Give the batch's buffer back to the prefetch threads; `buffer` is NULL. If the stream has
 * options.buffers, the caller may instead keep the batch's buffer and pass another one of the same
 * size as `buffer`. */
void sgt_stream_release(sgt_stream *s, const sgt_loader_batch *b, void *buffer);
/* Close the stream. The consumer thread may call it at any time. NULL is fine. */
void sgt_stream_close(sgt_stream *s);

#ifdef __cplusplus
}
#endif
#endif
