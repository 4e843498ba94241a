/* sgt_loader.h: batches of tokens from shards, as fast as memory or the disk allows. The library,
 * libsgt-loader, links alone and can be called from C, C++, CUDA and any FFI.
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
 * any number of threads may share it; each draws through its own cursor, or from its own stream.
 *
 * This interface is kept. A struct that begins with `size` is the caller's: set that to its sizeof,
 * and other fields to 0 for their defaults. Later versions append fields, and take the smaller
 * struct of a program compiled before. A size of 0 is refused, and so are fields that the library
 * does not know, unless they are 0. The library's own structs, sgt_loader_info and
 * sgt_loader_batch, are appended to as well, and so are enums; other structs do not change.
 *
 * Close streams and cursors before their loader. Arguments are read during the call and not kept,
 * except callbacks and their ctx, which must stay valid as long as the handle. Use no handle across
 * fork. The library never prints, never exits, and reads neither arguments nor the environment; its
 * threads block all signals except those that a thread raises itself. */
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
    /* everything in RAM, in huge pages (the default); if the machine or the container has too
     * little, SGT_ENOMEM, or with options.may_map, mmap replaces it */
    SGT_READER_PRELOAD,
    /* files mapped into memory (see sgt_loader_guard_sigbus). The first cursor takes up to a
     * quarter of a second: it maps what the page cache has, which then counts as resident memory */
    SGT_READER_MMAP,
    /* io_uring with direct reads, for sets larger than memory. Each shard keeps a descriptor: if
     * fewer than 64 are left to the process, its limit (RLIMIT_NOFILE) is raised. If the machine
     * refuses that, or io_uring, mmap replaces it; if direct reads, they go through the page cache.
     * A notice says so */
    SGT_READER_URING,
    SGT_READERS /* the number of readers */
} sgt_reader;

typedef enum sgt_sampling {
    SGT_SAMPLING_SHUFFLE, /* the default: each epoch has every window once, in keyed order */
    SGT_SAMPLING_RANDOM,  /* uniform starts with replacement */
    /* the windows of shuffle, permuted in two levels: blocks, then windows within a pool of
     * blocks. The uring reader then reads whole blocks ahead, about two pools: 140 MiB for rows of
     * 1,024, and at most 276 MiB, for each set of a mix; twice as much for 4-byte ids */
    SGT_SAMPLING_BLOCK,
    SGT_SAMPLING_SEQUENTIAL, /* windows 0, T, 2T, ... of each shard in turn */
    /* one document a row, cut to T+1 tokens or padded; each epoch has every one once, permuted. A
     * document begins with an end-of-text id, which is part of the row, and ends where the next
     * begins; it may span shards. SHARD.idx lists where documents begin, as u64 offsets from the
     * first token of SHARD.bin; without it, they begin at each end-of-text id: the header's, or if
     * none states it and ids have 2 bytes, 50256. Tokens before the first are in no row */
    SGT_SAMPLING_DOCUMENTS,
    /* rows filled with whole documents by best fit (sample/pack.h), the last of which is cropped if
     * it is too long; no padding. Each epoch has the beginning of every document once. Documents
     * must begin with the end-of-text id. Takes 8 bytes of memory per document */
    SGT_SAMPLING_PACKED,
    SGT_SAMPLINGS /* the number of samplings */
} sgt_sampling;

const char *sgt_reader_name(sgt_reader r);     /* "preload", "mmap", "uring" */
const char *sgt_sampling_name(sgt_sampling s); /* "shuffle", "random", ..., "packed" */

typedef struct sgt_loader_set {
    const char *path; /* a folder or a shard */
    /* sets are mixed row by row by weights from 1e-9 to 1e6, with any sum. If all are 0, a set's
     * share is its number of windows, so that all epochs end together */
    double weight;
} sgt_loader_set;

typedef struct sgt_loader_options {
    size_t size; /* sizeof(sgt_loader_options) */

    /* The data: a text, "DIR", "DIR,DIR" or "DIR:0.7,DIR:0.3", or else a list of sets. A text or a
     * part between commas that exists as a path is one; what follows its last colon is a weight
     * otherwise, if that is a number */
    const char *data;
    const sgt_loader_set *sets;
    uint32_t set_count;
    const char *split; /* of folders: read the shards SPLIT_*.bin; default "train" */
    /* 16 or 32: read a folder's shards, or OLMo-core's SPLIT.npy, as files without headers, of ids
     * of that many bits. 0 is enough for 16 if a path names one file, or for nanoGPT's train.bin
     * and val.bin in a folder (notice), unless they look like text or like ids of more bits */
    int raw;
    /* upper bound of ids, exclusive; the vocabulary sizes in headers bound them too. 0: only those;
     * if no header states one, 50257, or 1048576 for ids of 4 bytes */
    uint32_t vocab;

    /* The rows */
    sgt_sampling sampling; /* their order */
    uint64_t seed;         /* any number, 0 too */
    uint32_t batch;        /* B: rows per batch over all ranks; default 8 */
    uint32_t seq;          /* T: a row is a window of T+1 tokens; default 512 */
    uint32_t rank;         /* this process takes rows rank, rank + ranks, ... of each batch */
    uint32_t ranks;        /* default 1; must divide batch */
    /* 1: find where documents begin in rows (open reads every .idx); 2: the same, but batches have
     * neither positions nor ids */
    int documents;
    int padded_by; /* sampling documents: 1 pads with `pad`, 0 with the end-of-text id */
    uint32_t pad;  /* must be below the vocabulary size */

    /* Reading them */
    sgt_reader reader;
    int may_map;     /* 1: if memory is too small for all copies, mmap replaces preload (notice) */
    uint32_t copies; /* processes here that open the data together, this one too; default 1 */
    /* bytes of memory that were free for data before any process began its copy, with which all
     * copies are compared. 0: not known, so it is free memory and what the children of this
     * process's parent have filled, if there are `copies` of these; else all memory */
    uint64_t available;
    sgt_notice notice; /* of skipped shards and fallbacks, by one thread at a time */
} sgt_loader_options;

typedef struct sgt_loader sgt_loader;
typedef struct sgt_cursor sgt_cursor;

/* Open folders of shards (with or without a manifest) and shards: sgt's own and those of llm.c,
 * modded-nanogpt, nanoGPT and Megatron-LM (shards/shard.h; Megatron's also by PREFIX alone). Ids
 * have 2 bytes, or 4 if the vocabulary has more than 65,536. Every shard's header and size are
 * checked at once; ids are checked when they are read, which for preload is here. The loader owns
 * all that it opens; *out is unchanged on failure. SGT_EFORMAT names the shard and the offset. */
int sgt_loader_open(sgt_loader **out, const sgt_loader_options *o, sgt_error *err);
void sgt_loader_close(sgt_loader *l); /* Close its cursors and streams first. NULL is fine. */

typedef struct sgt_loader_set_info {
    char *path;                               /* as the caller gave it */
    double weight, share;                     /* as given; fraction of all rows, from 0 to 1 */
    uint64_t tokens, windows_per_epoch, hash; /* this set's, as in sgt_loader_info */
    uint32_t first_shard, shards, skipped;    /* its used shards are first_shard, ... */
} sgt_loader_set_info;

typedef struct sgt_loader_info {
    size_t size;              /* of the library's struct: fields beyond it are not there */
    uint64_t tokens;          /* in the used shards */
    uint64_t shards, skipped; /* used; skipped because they are too short for one window */
    /* rows of T+1 tokens in one epoch; for documents, the number that begin in the shards; for
     * packed, those of the first epoch, of which later ones have one or two more or less. For a mix
     * it is the sum over its sets; in that many rows some windows may come twice */
    uint64_t windows_per_epoch;
    uint32_t batch, seq, vocab; /* of the options, as resolved: B, T, exclusive bound of ids */
    uint32_t local_batch;       /* rows per batch on this rank: batch / ranks */
    int padded;                 /* 1 if rows may be padded: sampling documents */
    uint32_t set_count;         /* at least 1 */
    const sgt_loader_set_info *sets;
    /* identifies the data: the manifest's; without one, of names, sizes, headers, and 4 KiB at both
     * ends of shards whose header has no checksum; for a mix, of its sets' hashes and weights */
    uint64_t hash;
    uint64_t fingerprint; /* sgt_vocab_fingerprint, as headers or manifest state it; 0: unknown */
    int64_t eot; /* end-of-text id that the first shard's header or its manifest states; or -1 */
    /* documents that begin in the used shards. 0 unless the option or the sampling (documents or
     * packed) asked for them; with the option alone, also 0 if a shard has no .idx file */
    uint64_t documents;
    uint64_t packed_tokens, cropped; /* packed: tokens in them; how many of these are in no row */
    const char *reader_detail;       /* "preload", "uring (mmap: io_uring is forbidden)" */
} sgt_loader_info;
/* Describe the loader, until it is closed. */
const sgt_loader_info *sgt_loader_get_info(const sgt_loader *l);

/* Pure: the used shard and the token in it where global row `row` (= batch index * B + r) starts; a
 * used shard's path and set; and how many of the first `rows` rows of the run are of set `set`. */
void sgt_loader_window(const sgt_loader *l, uint64_t row, uint32_t *shard, uint64_t *offset);
const char *sgt_loader_shard_path(const sgt_loader *l, uint32_t shard);
uint32_t sgt_loader_set_of(const sgt_loader *l, uint32_t shard);
uint64_t sgt_loader_drawn(const sgt_loader *l, uint32_t set, uint64_t rows);

/* Turn SIGBUS from mapped shards into errors. If a mapped file is cut short or its disk fails,
 * reading the missing bytes ends the process by SIGBUS. After this call, a batch that hits them,
 * and every later one with windows that end past them, fails with SGT_EFORMAT or SGT_EIO, naming
 * the shard and the byte. (The missing part of a last page reads as zeros without a signal: the
 * size of a shard whose window ends in id 0 is always checked.) Call it once, at any time.
 * It installs a handler for the whole process and never removes it. A SIGBUS at any other address
 * goes to the previous handler. A handler that is installed later must do likewise, and threads
 * that draw must not block SIGBUS. Returns 0, or SGT_EIO. */
int sgt_loader_guard_sigbus(sgt_error *err);

/* ---- resuming ---- */

/* The position of a run: one integer, and everything that determines the rows. Save it beside the
 * results, as a struct or field by field. A loader that is opened later resumes from it with any
 * reader, any number of ranks, and any batch size that divides the rows already drawn. */
typedef struct sgt_loader_state {
    size_t size;           /* sizeof(sgt_loader_state) */
    uint64_t rows;         /* rows already drawn, over all ranks */
    uint64_t hash, tokens; /* identify the data: as in sgt_loader_info */
    uint64_t seed;         /* this and the following: as in sgt_loader_options */
    sgt_sampling sampling;
    uint32_t seq, pad, reserved; /* pad: for sampling documents, else 0; reserved: 0 */
} sgt_loader_state;

/* Fill in the state of a run that draws batch `next` next. */
int sgt_loader_get_state(const sgt_loader *l, uint64_t next, sgt_loader_state *s, sgt_error *err);
/* Set *next to this loader's next batch. SGT_EUSAGE says how its rows would differ from before. */
int sgt_loader_resume(const sgt_loader *l, const sgt_loader_state *s, uint64_t *next, sgt_error *e);

/* ---- batches ---- */

/* Open a cursor: one per thread that draws. Only one call may use it at a time. */
int sgt_cursor_open(sgt_cursor **out, const sgt_loader *l, sgt_error *err);
void sgt_cursor_close(sgt_cursor *c); /* NULL is fine. */

#define SGT_IGNORED (-100) /* target of padding: PyTorch's cross_entropy ignores it by default */
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
    /* (local_batch, T) each: targets are the inputs shifted by one, those of padding SGT_IGNORED.
     * Rows are inputs without targets, (local_batch, T+1) */
    void *inputs, *targets;
    /* (local_batch): how many of a row's T+1 tokens are no padding, at least 1; NULL unless the
     * sampling is documents */
    uint32_t *lengths;
    /* With options.documents, where documents start: from SHARD.idx, or from the row's end-of-text
     * ids without that file; else NULL. In row r, documents begin at the tokens
     * starts[row_starts[r]] ... starts[row_starts[r + 1] - 1], ascending, from 0 to T. Tokens
     * before the first of them belong to a document that began before the row */
    uint32_t *row_starts, *starts; /* (local_batch + 1); (row_starts[local_batch]) */
    uint32_t slot;                 /* of a stream: number of its buffer in the ring */
    /* With options.documents, a number per input, (local_batch, T) each: the input at which its
     * document begins in the row; its position from there; and its document's number in the row,
     * from 0 (not with documents 2). Padding has itself, 0 and -1. Else NULL */
    int32_t *begins, *positions, *ids;
} sgt_loader_batch;

/* Write batches first ... first + count - 1 to `out`, which has room for `bytes`: rows of (count,
 * local_batch, T+1); or inputs and, behind them all, targets, (2, count, local_batch, T). Batches
 * that do not fit are SGT_EUSAGE. From a language with slow calls, several batches a call are
 * faster. After a failure, what is in `out` is undefined. */
int sgt_loader_read(const sgt_loader *l, sgt_cursor *c, uint64_t first, uint64_t count,
                    sgt_output output, void *out, size_t bytes, sgt_error *err);
/* Describe the batch that was read last, if none failed. Its arrays are valid until the next read. */
const sgt_loader_batch *sgt_cursor_batch(const sgt_cursor *c);

/* ---- streams: threads that make batches first, first+1, ... ahead, in a ring of buffers ----
 *
 *     const sgt_loader_batch *b;
 *     while (sgt_stream_next(s, &b, &err) == 0) { use(b->inputs); sgt_stream_release(s, b, NULL); }
 *
 * One consumer thread calls next and release. It may hold up to `slots` batches and must release
 * them in order. Threads that sleep are woken once half of the ring is free. */

typedef struct sgt_stream_options {
    size_t size;       /* sizeof(sgt_stream_options) */
    uint64_t first;    /* index of the first batch to make */
    uint64_t count;    /* number of batches; 0: endless */
    sgt_output output; /* type of the ids */
    uint32_t slots;    /* buffers in the ring; default 4 */
    uint32_t threads;  /* prefetch threads; default 1 */
    /* (slots): the caller's, of sgt_stream_bytes each, say pinned memory, until the stream is
     * closed; NULL: the stream's own, aligned to pages */
    void *const *buffers;
} sgt_stream_options;

typedef struct sgt_stream sgt_stream;
/* Return the bytes of a buffer; 0 for an unknown output, or if no memory could hold it. */
size_t sgt_stream_bytes(const sgt_loader *l, sgt_output output);
/* Start a stream; o NULL means all defaults. */
int sgt_stream_open(sgt_stream **out, const sgt_loader *l, const sgt_stream_options *o,
                    sgt_error *err);
/* Wait for the next batch, which is valid until it is released. Returns 0, or 1 after the last of
 * `count` batches; for a batch that could not be read, a negative SGT_E*, also at every further
 * call; and SGT_EUSAGE if the consumer holds all slots, since the wait would never end. */
int sgt_stream_next(sgt_stream *s, const sgt_loader_batch **b, sgt_error *err);
/* Give the batch's buffer back to the prefetch threads. Or keep it, if options.buffers were given,
 * and give them another of as many bytes in its place: `buffer`, else NULL. */
void sgt_stream_release(sgt_stream *s, const sgt_loader_batch *b, void *buffer);
/* Close the stream, at any moment, from the consumer thread. NULL is fine. */
void sgt_stream_close(sgt_stream *s);

#ifdef __cplusplus
}
#endif
#endif
