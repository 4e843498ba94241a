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
     * little memory, opening fails with SGT_ENOMEM. If options.may_map is set, mmap is used
     * instead */
    SGT_READER_PRELOAD,
    /* maps the shard files into memory. Opening the first cursor takes up to a quarter of a second,
     * because it maps all pages that are in the page cache. These pages then count as resident
     * memory of this process. See also sgt_loader_guard_sigbus */
    SGT_READER_MMAP,
    /* reads with io_uring and O_DIRECT, for sets larger than memory. Each shard keeps a file
     * descriptor open. If the process has fewer than 64 descriptors left, its limit (RLIMIT_NOFILE)
     * is raised. If the limit cannot be raised, or if io_uring is unavailable, mmap is used
     * instead. If a file system does not support O_DIRECT, reads go through the page cache. A
     * notice reports each of these fallbacks */
    SGT_READER_URING,
    SGT_READERS /* the number of readers */
} sgt_reader;

typedef enum sgt_sampling {
    /* (default) each epoch has every window once, in an order that depends on the seed */
    SGT_SAMPLING_SHUFFLE,
    SGT_SAMPLING_RANDOM, /* each row starts at a uniformly drawn token, with replacement */
    /* the windows of SGT_SAMPLING_SHUFFLE, but permuted at two levels: first blocks of consecutive
     * windows, then the windows within a pool of 256 blocks. So the uring reader can read entire
     * blocks, about two pools ahead. Its buffers take 140 MiB of memory per set if T = 1,024, and
     * at most 276 MiB; with 4-byte ids, twice as much */
    SGT_SAMPLING_BLOCK,
    SGT_SAMPLING_SEQUENTIAL, /* windows 0, T, 2T, ... of each shard in turn */
    /* each row is one document, cut to T+1 tokens or padded. Each epoch has every document once, in
     * permuted order. A document begins with an end-of-text id, which is part of the row. It ends
     * where the next document begins, perhaps in a later shard. The file SHARD.idx lists the index
     * of each document's first token in SHARD.bin, as uint64_t. If there is no such file, a
     * document begins at each end-of-text id. That id is stated in the shard's header; if the
     * header states none and ids have 2 bytes, it is 50256. Tokens before the first document are in
     * no row */
    SGT_SAMPLING_DOCUMENTS,
    /* each row is filled with documents by best fit (sample/pack.h). The last document of a row is
     * cropped if it is too long, so no row is padded. In each epoch, the beginning of every
     * document is in exactly one row. Documents must begin with the end-of-text id. Takes 8 bytes
     * of memory per document */
    SGT_SAMPLING_PACKED,
    SGT_SAMPLINGS /* the number of samplings */
} sgt_sampling;

const char *sgt_reader_name(sgt_reader r);     /* "preload", "mmap", "uring" */
const char *sgt_sampling_name(sgt_sampling s); /* "shuffle", "random", ..., "packed" */

typedef struct sgt_loader_set {
    const char *path; /* a folder or a shard */
    /* weight of this set: the sets share the rows in proportion to their weights. A weight is from
     * 1e-9 to 1e6; the weights may have any sum. If all weights are 0, a set's weight is its number
     * of windows, so that the epochs of all sets end together */
    double weight;
} sgt_loader_set;

typedef struct sgt_loader_options {
    size_t size; /* sizeof(sgt_loader_options) */

    /* The data, given either as the text `data` ("DIR", "DIR,DIR" or "DIR:0.7,DIR:0.3") or as the
     * list `sets` of `set_count` sets. If the entire text exists as a path, it names one set.
     * Otherwise it is split at commas. A part that exists as a path has no weight; in any other
     * part, a number after the last colon is the weight */
    const char *data;
    const sgt_loader_set *sets;
    uint32_t set_count;
    const char *split; /* in a folder, read the shards SPLIT_*.bin; default "train" */
    /* 16 or 32: the shards (or OLMo-core's SPLIT.npy in a folder) have no headers, only ids of 16
     * or 32 bits. 0: shards have headers. Even with 0, a file of 16-bit ids without a header is
     * read if the path names that file, or if it is nanoGPT's train.bin or val.bin in a folder
     * (with a notice). It is refused if it looks like text or like wider ids */
    int raw;
    /* exclusive upper bound of ids, in addition to the vocabulary sizes in the shards' headers. 0:
     * only the headers bound ids. If none of them states a size either, the bound is 50257 for
     * 2-byte ids and 1048576 for 4-byte ids */
    uint32_t vocab;

    /* The rows */
    sgt_sampling sampling; /* their order */
    uint64_t seed;         /* any number, including 0 */
    uint32_t batch;        /* B: rows per batch over all ranks; default 8 */
    uint32_t seq;          /* T: a row is a window of T+1 tokens; default 512 */
    /* index of this process, from 0: it gets rows rank, rank + ranks, ... of each batch */
    uint32_t rank;
    uint32_t ranks; /* default 1; must divide batch */
    /* 0: no document arrays; 1: sgt_loader_batch states where documents begin in its rows (opening
     * then reads every .idx file); 2: as 1, but without the arrays `positions` and `ids` */
    int documents;
    /* for SGT_SAMPLING_DOCUMENTS: 1 pads rows with the id `pad`; 0 pads them with the end-of-text
     * id */
    int padded_by;
    uint32_t pad; /* must be below the vocabulary size */

    /* Reading them */
    sgt_reader reader;
    /* 1: if memory is too small for the copies of all `copies` processes, use mmap instead of
     * preload and give a notice */
    int may_map;
    /* number of processes on this machine that open the data at the same time, including this one;
     * default 1 */
    uint32_t copies;
    /* memory in bytes that was free before any process began to copy data; the copies of all
     * processes must fit in it. 0: unknown. The loader then estimates it as the free memory plus
     * the resident memory of the parent process's children. If the parent has fewer than `copies`
     * children, the estimate is the total memory */
    uint64_t available;
    /* receives notices of skipped shards and of fallbacks; called by one thread at a time */
    sgt_notice notice;
} sgt_loader_options;

typedef struct sgt_loader sgt_loader;
typedef struct sgt_cursor sgt_cursor;

/* Open folders of shards (with or without a manifest) and single shards. The formats are sgt's own
 * and those of llm.c, modded-nanogpt, nanoGPT and Megatron-LM (see shards/shard.h). A Megatron-LM
 * shard can also be named by its PREFIX, without .bin. Ids have 2 bytes, or 4 if the vocabulary has
 * more than 65,536 ids. The headers and sizes of all shards are checked during this call. Ids are
 * checked when they are read, which the preload reader does during this call. The loader owns
 * everything that it opens. On failure *out is unchanged. The message of SGT_EFORMAT names the
 * shard and the offset. */
int sgt_loader_open(sgt_loader **out, const sgt_loader_options *o, sgt_error *err);
/* Close the loader after its cursors and streams. NULL is allowed. */
void sgt_loader_close(sgt_loader *l);

typedef struct sgt_loader_set_info {
    char *path;           /* as the caller gave it */
    double weight, share; /* weight as the caller gave it; share of all rows, from 0 to 1 */
    uint64_t tokens, windows_per_epoch, hash; /* of this set, as in sgt_loader_info */
    /* index of this set's first used shard; number of used shards; number of skipped shards */
    uint32_t first_shard, shards, skipped;
} sgt_loader_set_info;

typedef struct sgt_loader_info {
    /* size of this struct in bytes, as the library was compiled; fields beyond it are not filled
     * in */
    size_t size;
    uint64_t tokens; /* tokens in the used shards */
    /* number of used shards; number of shards skipped because they are too short for one window */
    uint64_t shards, skipped;
    /* rows of T+1 tokens in one epoch. For SGT_SAMPLING_DOCUMENTS: number of documents that begin
     * in the shards. For SGT_SAMPLING_PACKED: rows of the first epoch; later epochs may have one or
     * two rows more or fewer. If there are several sets: sum over all sets; among that many rows,
     * some windows may occur twice */
    uint64_t windows_per_epoch;
    /* batch and seq: B and T, with defaults filled in; vocab: exclusive upper bound of ids */
    uint32_t batch, seq, vocab;
    uint32_t local_batch; /* rows per batch on this rank: batch / ranks */
    int padded;           /* 1 if rows may be padded, which is so for SGT_SAMPLING_DOCUMENTS */
    uint32_t set_count;   /* at least 1 */
    const sgt_loader_set_info *sets;
    /* hash that identifies the data. It is the manifest's hash. If there is no manifest, it is a
     * hash of the shards' names, sizes and headers, and of the first and last 4 KiB of each shard
     * whose header has no checksum. If there are several sets, it is a hash of their hashes and
     * shares */
    uint64_t hash;
    /* fingerprint of the vocabulary (sgt_vocab_fingerprint), as the headers or the manifest state
     * it; 0: unknown */
    uint64_t fingerprint;
    /* end-of-text id stated in the first shard's header or in the manifest; -1: unknown */
    int64_t eot;
    /* number of documents that begin in the used shards. Known for SGT_SAMPLING_DOCUMENTS and
     * SGT_SAMPLING_PACKED. For other samplings it is known only if the option `documents` is set
     * and every shard has an .idx file, and is otherwise 0 */
    uint64_t documents;
    /* for SGT_SAMPLING_PACKED: number of tokens in all documents; number of these tokens that are
     * in no row, because their document was cropped */
    uint64_t packed_tokens, cropped;
    /* how the data is read, for example "preload" or "uring (mmap: io_uring is forbidden)" */
    const char *reader_detail;
} sgt_loader_info;
/* Return a description of the loader, valid until it is closed. */
const sgt_loader_info *sgt_loader_get_info(const sgt_loader *l);

/* Describe the rows of a run without reading data. Row `row` of the run is row `row` % B of batch
 * `row` / B. sgt_loader_window finds the row's first token: it sets *shard to the index of its
 * shard (counting only used shards), and *offset to its index in that shard. sgt_loader_shard_path
 * and sgt_loader_set_of return the path and the set index of a used shard. sgt_loader_drawn returns
 * how many of the run's first `rows` rows come from set `set`. */
void sgt_loader_window(const sgt_loader *l, uint64_t row, uint32_t *shard, uint64_t *offset);
const char *sgt_loader_shard_path(const sgt_loader *l, uint32_t shard);
uint32_t sgt_loader_set_of(const sgt_loader *l, uint32_t shard);
uint64_t sgt_loader_drawn(const sgt_loader *l, uint32_t set, uint64_t rows);

/* Turn SIGBUS from mapped shards into errors. If a mapped file is cut short or its disk fails,
 * reading the missing bytes normally ends the process by SIGBUS. After this call, a batch that
 * reads missing bytes fails with SGT_EFORMAT or SGT_EIO, and the message names the shard and the
 * byte. Every later batch with a window that ends past that byte fails, too. The missing part of a
 * file's last page causes no signal but reads as zeros. So the file size is checked whenever a
 * window ends in id 0.
 *
 * Call this function once, at any time. It installs a handler for the whole process and never
 * removes it. The handler passes a SIGBUS at any other address on to the previous handler. A
 * handler that the program installs later must pass signals on to this one, and threads that read
 * batches must not block SIGBUS. Returns 0, or SGT_EIO. */
int sgt_loader_guard_sigbus(sgt_error *err);

/* ---- resuming ---- */

/* The position of a run: the number of rows drawn so far, and everything that determines which rows
 * follow. Save it with the results, as a struct or field by field. A loader that is opened later
 * can resume from it with any reader, any number of ranks, and any batch size that divides the
 * number of rows already drawn. */
typedef struct sgt_loader_state {
    size_t size;           /* sizeof(sgt_loader_state) */
    uint64_t rows;         /* rows already drawn, over all ranks */
    uint64_t hash, tokens; /* hash and number of tokens of the data, as in sgt_loader_info */
    uint64_t seed;         /* seed; like the fields after it, as in sgt_loader_options */
    sgt_sampling sampling;
    uint32_t seq, pad, reserved; /* pad: 0 unless the sampling is documents; reserved: 0 */
} sgt_loader_state;

/* Fill in *s for a run whose next batch is batch `next`. */
int sgt_loader_get_state(const sgt_loader *l, uint64_t next, sgt_loader_state *s, sgt_error *err);
/* Set *next to the index of the batch at which this loader resumes the run saved in *s. If this
 * loader's rows would differ from those of the saved run, returns SGT_EUSAGE with a message that
 * lists the differences. */
int sgt_loader_resume(const sgt_loader *l, const sgt_loader_state *s, uint64_t *next, sgt_error *e);

/* ---- batches ---- */

/* Open a cursor: the state of one thread that reads batches. Each thread needs its own cursor,
 * because only one call may use a cursor at a time. */
int sgt_cursor_open(sgt_cursor **out, const sgt_loader *l, sgt_error *err);
void sgt_cursor_close(sgt_cursor *c); /* NULL is fine. */

/* target of a padding token; PyTorch's cross_entropy ignores -100 by default */
#define SGT_IGNORED (-100)
typedef enum sgt_output {
    SGT_OUTPUT_U16, /* rows of T+1 ids (the default); for sets of 2-byte ids only */
    SGT_OUTPUT_I32, /* inputs and targets, as int32 */
    /* inputs and targets, as int64, which PyTorch's cross_entropy needs for targets */
    SGT_OUTPUT_I64,
    SGT_OUTPUT_I32_ROWS, /* rows of T+1 ids, as int32 */
    SGT_OUTPUTS          /* the number of outputs */
} sgt_output;

typedef struct sgt_loader_batch {
    size_t size;       /* as in sgt_loader_info */
    uint64_t index;    /* number of the batch in the run */
    sgt_output output; /* type of the ids */
    /* ids, (local_batch, T) each. targets[i] is the token after inputs[i], or SGT_IGNORED at
     * padding. If `output` is one of rows (SGT_OUTPUT_U16 or _I32_ROWS), `inputs` holds rows of T+1
     * ids, (local_batch, T+1), and `targets` is NULL */
    void *inputs, *targets;
    /* (local_batch): number of tokens of each row that are not padding, from 1 to T+1. NULL unless
     * the sampling is documents */
    uint32_t *lengths;
    /* document starts: NULL unless options.documents is set. In row r, documents begin at the
     * tokens starts[row_starts[r]] ... starts[row_starts[r + 1] - 1], in ascending order, each from
     * 0 to T. Tokens before the first start belong to a document that began before the row. The
     * starts come from SHARD.idx; without that file, they are the row's end-of-text ids */
    uint32_t *row_starts, *starts; /* shapes (local_batch + 1) and (row_starts[local_batch]) */
    uint32_t slot;                 /* for a stream: index of the batch's buffer in the ring */
    /* the document of each input, (local_batch, T) each; NULL unless options.documents is set.
     * begins: index in the row of the first input of the same document. positions: index of the
     * input within its document. ids: index of the document within the row, from 0. At padding,
     * begins is the input's own index, positions is 0 and ids is -1. If options.documents is 2,
     * positions and ids are NULL */
    int32_t *begins, *positions, *ids;
} sgt_loader_batch;

/* Write batches first ... first + count - 1 to `out`, a buffer of `bytes` bytes. The layout depends
 * on `output`: either rows, (count, local_batch, T+1), or all inputs followed by all targets, (2,
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
    /* (slots): the caller's buffers, of sgt_stream_bytes bytes each, for example in pinned memory.
     * They must stay valid until the stream is closed. NULL: the stream allocates page-aligned
     * buffers */
    void *const *buffers;
} sgt_stream_options;

typedef struct sgt_stream sgt_stream;
/* Return the size in bytes of one buffer of the ring. Returns 0 if the loader does not support
 * `output`, or if the size would overflow. */
size_t sgt_stream_bytes(const sgt_loader *l, sgt_output output);
/* Start a stream; o NULL means all defaults. */
int sgt_stream_open(sgt_stream **out, const sgt_loader *l, const sgt_stream_options *o,
                    sgt_error *err);
/* Wait for the next batch and store it in *b, where it stays valid until it is released. Returns 0,
 * or 1 after the last of `count` batches. If the batch could not be read, this call and every
 * further call return the same negative SGT_E* code. Returns SGT_EUSAGE if the consumer holds all
 * slots, because the wait would then never end. */
int sgt_stream_next(sgt_stream *s, const sgt_loader_batch **b, sgt_error *err);
/* Give the batch's buffer back to the prefetch threads. `buffer` is normally NULL. If the stream
 * has options.buffers, the caller may instead keep the batch's buffer and pass a different one of
 * the same size as `buffer`. */
void sgt_stream_release(sgt_stream *s, const sgt_loader_batch *b, void *buffer);
/* Close the stream, at any time, from the consumer thread. NULL is allowed. */
void sgt_stream_close(sgt_stream *s);

#ifdef __cplusplus
}
#endif
#endif
