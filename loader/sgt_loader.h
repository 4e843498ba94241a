/* sgt_loader.h: batches of tokens from shards, as fast as memory or the disk allows. The library,
 * libsgt-loader, links alone and can be called from C, C++, CUDA and any FFI.
 *
 *     sgt_error err;
 *     sgt_loader *l;
 *     sgt_loader_options o = {.seed = 1, .batch = 16, .seq = 1024};   // 0 means the default
 *     if (sgt_loader_open(&l, "out", &o, &err) < 0) { fprintf(stderr, "%s\n", err.text); exit(1); }
 *     sgt_cursor *c;
 *     if (sgt_cursor_open(&c, l, &err) < 0) ...;
 *     sgt_loader_batch b = {.output = SGT_OUTPUT_I32, .inputs = inputs, .targets = targets};
 *     for (uint64_t k = 0; k < steps; k++)
 *         if (sgt_loader_read(l, c, k, 1, &b, &err) < 0)
 *             ...;                             // inputs, targets: both (16, 1024) int32
 *     sgt_cursor_close(c);
 *     sgt_loader_close(l);
 *
 * Batch k is a pure function of (dataset, sampling, seed, batch, seq, k): every reader and any
 * number of ranks give the same rows, in any order of calls. A loader is immutable once open, and
 * any number of threads may share it; each thread draws through its own cursor.
 *
 * Several sets can be mixed row by row, in proportion to their weights, or to their sizes if no
 * weights are given:
 *
 *     sgt_loader_set sets[] = {{"web", 0.7}, {"books", 0.3}};
 *     sgt_loader_options o = {.seed = 1, .batch = 16, .seq = 1024, .sets = sets, .set_count = 2};
 *     if (sgt_loader_open(&l, NULL, &o, &err) < 0) ...;    // sample/mix.h defines the order
 *
 * With SGT_SAMPLING_DOCUMENTS a row is one document, cut to T+1 tokens or padded. A document begins
 * with an end-of-text id, which is part of the row, and ends where the next document begins; it may
 * span shards. SHARD.idx beside SHARD.bin lists the starts of documents, as u64 offsets from the
 * shard's first token. Without that file, a document begins at each end-of-text id: the header's,
 * or if none states it and ids have 2 bytes, 50256. Tokens before a set's first document are in no row.
 *
 * With SGT_SAMPLING_PACKED a row begins with a document, and further documents follow it until its
 * T+1 tokens are full; sample/pack.h defines which. The last document of a row is cropped if it is
 * too long. Documents are found as above, and must begin with the end-of-text id. With
 * options.documents a batch says where they begin.
 *
 * Streams and cursors are closed before their loader. Arguments are read during the call and not
 * kept, except callbacks and their ctx, which must stay valid as long as the handle. `notice` is
 * called by one thread at a time for each handle. No handle may be used across fork. The library
 * never prints, never exits, and reads neither arguments nor the environment; its threads block all
 * signals except those that a thread raises itself. */
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
    /* everything in RAM, in huge pages (the default); if the machine or the container has less free
     * memory, SGT_ENOMEM, or with options.may_map, mmap replaces it */
    SGT_READER_PRELOAD,
    /* files mapped into memory, through the page cache; see sgt_loader_guard_sigbus for files that
     * are cut short while they are mapped. The first cursor takes up to a quarter of a second: it
     * maps pages that are in the page cache, which then count as the process's resident memory */
    SGT_READER_MMAP,
    /* io_uring with direct reads, for sets larger than memory. Each shard keeps a descriptor: if
     * fewer than 64 are left to the process, its limit (RLIMIT_NOFILE) is raised. If the machine
     * refuses that, or io_uring, the reader mmap replaces it; if it refuses direct reads, they go
     * through the page cache. A notice says so */
    SGT_READER_URING,
    SGT_READERS /* the number of readers */
} sgt_reader;

typedef enum sgt_sampling {
    /* each epoch has every window once, in a keyed permutation (the default) */
    SGT_SAMPLING_SHUFFLE,
    SGT_SAMPLING_RANDOM, /* uniform starts with replacement */
    /* the windows of shuffle, permuted in two levels: blocks, then windows within a pool of
     * blocks. The uring reader then reads whole blocks ahead, about two pools. They take 140 MiB for
     * rows of 1,024, and at most 276 MiB, for each set of a mix; twice as much for 4-byte ids */
    SGT_SAMPLING_BLOCK,
    SGT_SAMPLING_SEQUENTIAL, /* windows 0, T, 2T, ... of each shard in turn */
    /* one document a row, cut or padded; each epoch has every document once, permuted */
    SGT_SAMPLING_DOCUMENTS,
    /* rows filled with whole documents by best fit; those that do not fit are cropped, and no row
     * is padded; each epoch has the beginning of every document once. Takes 8 bytes of memory per
     * document */
    SGT_SAMPLING_PACKED,
    SGT_SAMPLINGS /* the number of samplings */
} sgt_sampling;

const char *sgt_reader_name(sgt_reader r);     /* "preload", "mmap", "uring" */
const char *sgt_sampling_name(sgt_sampling s); /* "shuffle", "random", ..., "packed" */

typedef struct sgt_loader_set {
    const char *path; /* a folder or a shard */
    /* 1e-9 to 1e6, with any sum; if it is 0 in all sets, each set's share is its number of windows,
     * so that all epochs end together */
    double weight;
} sgt_loader_set;

typedef struct sgt_loader_options {
    sgt_reader reader;     /* how shards are read */
    sgt_sampling sampling; /* the order of rows */
    uint64_t seed;         /* any number, 0 too */
    uint32_t batch;        /* B: rows per batch over all ranks; default 8 */
    uint32_t seq;          /* T: a row is a window of T+1 tokens; default 512 */
    uint32_t rank;         /* this process takes rows rank, rank + ranks, ... of each batch */
    uint32_t ranks;        /* default 1; must divide batch */
    /* upper bound of ids, exclusive; the vocabulary sizes in headers bound them too. 0: only the
     * headers' bound; if no header states one, 50257, or 1048576 for ids of 4 bytes */
    uint32_t vocab;
    const char *split; /* split to read: the shards SPLIT_*.bin of a folder; default "train" */
    int padded_by;     /* documents: not 0 pads short rows with `pad`; 0 with the end-of-text id */
    uint32_t pad;      /* id of the padding; must be below the vocabulary size */
    /* 16 or 32: read a folder's shards, or OLMo-core's SPLIT.npy, as files without headers, of ids
     * of that many bits. For ids of 16 bits, 0 is enough if a path names one file, or for nanoGPT's
     * train.bin and val.bin in a folder, which a notice names: their header may be missing, unless
     * the file looks like text or like ids of more bits */
    int raw;
    sgt_notice notice; /* receives notices of skipped shards and of fallbacks */
    /* sets to mix, instead of those that sgt_loader_open's text names; read only during the open
     * call */
    const sgt_loader_set *sets;
    uint32_t set_count;
    /* also find where documents begin in each row (sgt_loader_batch.starts); open then reads every
     * .idx */
    int documents;
    /* processes on this machine that open the same data at the same time, this one included, each
     * of which preloads a copy; default 1 */
    uint32_t copies;
    /* not 0: if memory is too small for all copies, read with mmap instead of preload; a notice
     * says so */
    int may_map;
    /* bytes of memory that were free for data before any process began its copy, with which all
     * copies are compared; 0: not known, so they are compared with all memory */
    uint64_t available;
} sgt_loader_options;

typedef struct sgt_loader sgt_loader;
typedef struct sgt_cursor sgt_cursor;

/* Open a folder of shards (with or without a manifest), one shard, or several sets in a text that
 * sgt_loader_sets_parse describes; o NULL means all defaults. Reads sgt's own format and those of
 * llm.c, modded-nanogpt, nanoGPT and Megatron-LM (shards/shard.h; Megatron's also by PREFIX alone).
 * A set's ids have 2 bytes, or 4 if its vocabulary has more than 65,536.
 * Every shard's header and size are checked at once; ids are checked when they are read, which for
 * preload is here. The loader owns everything that it opens; *out is unchanged on failure.
 * SGT_EFORMAT names the shard and the offset. */
int sgt_loader_open(sgt_loader **out, const char *data, const sgt_loader_options *o,
                    sgt_error *err);
void sgt_loader_close(sgt_loader *l); /* Close its cursors and streams first. NULL is fine. */

/* One of the sets that a loader draws from. */
typedef struct sgt_loader_set_info {
    char *path;    /* as the caller gave it */
    double weight; /* as given; 0: the share depends on its number of windows */
    double share;  /* fraction of all rows, from 0 to 1 */
    uint64_t tokens, windows_per_epoch, hash; /* this set's, as in sgt_loader_info */
    /* its used shards are first_shard, ...; and how many were skipped */
    uint32_t first_shard, shards, skipped;
} sgt_loader_set_info;

typedef struct sgt_loader_info {
    uint64_t tokens; /* tokens in the used shards */
    /* shards used; shards skipped because they are too short for one window */
    uint64_t shards, skipped;
    /* rows of T+1 tokens in one epoch; for documents, the number that begin in the shards; for
     * packed, those of the first epoch, of which later ones have one or two more or less. For a mix
     * it is the sum over its sets; in that many rows some windows may come twice */
    uint64_t windows_per_epoch;
    /* as resolved from the options: B over all ranks, T, and the exclusive upper bound of ids */
    uint32_t batch, seq, vocab;
    uint32_t local_batch; /* rows per batch on this rank: batch / ranks */
    int padded;           /* 1 if rows may be padded: sampling documents */
    /* identifies the data: the manifest's hash. Without a manifest it covers names, sizes and
     * headers, and 4 KiB of tokens at both ends of shards whose header has no checksum. For a mix:
     * the hash of its sets' hashes and weights, in their order */
    uint64_t hash;
    /* the fingerprint of the vocabulary (sgt_vocab_fingerprint) that the shards' headers or the
     * manifest state; 0: unknown */
    uint64_t fingerprint;
    int64_t eot; /* end-of-text id that the first shard's header or its manifest states; or -1 */
    const sgt_loader_set_info *sets; /* the sets mixed; valid until the loader is closed */
    uint32_t set_count;              /* at least 1 */
    /* "preload", "uring (mmap: io_uring is forbidden)"; valid until the loader is closed */
    const char *reader_detail;
    /* documents that begin in the used shards. 0 unless the option or the sampling (documents or
     * packed) asked for them; with the option alone, also 0 if a shard has no .idx file */
    uint64_t documents;
} sgt_loader_info;
/* Describe the open loader. */
void sgt_loader_get_info(const sgt_loader *l, sgt_loader_info *info);

/* What packed rows hold: those of each set's first epoch. */
typedef struct sgt_loader_packing {
    uint64_t rows;      /* rows in an epoch: the first one */
    uint64_t documents; /* that begin in the rows: all of the sets */
    uint64_t tokens;    /* in the documents */
    uint64_t cropped;   /* of these, the tokens that are in no row */
} sgt_loader_packing;
/* Describe the rows of sampling packed. Returns SGT_EUSAGE for any other sampling. */
int sgt_loader_get_packing(const sgt_loader *l, sgt_loader_packing *packing, sgt_error *err);

/* ---- several sets ---- */

/* Parse the text that programs take as --data: "DIR", or "DIR:0.7,DIR:0.3", or "DIR,DIR". A text
 * that is an existing path as a whole names one set, and so does a part of it between commas.
 * Otherwise the text after a part's last colon is its weight, if it is a number. *sets is for
 * sgt_loader_options; the caller frees it with sgt_loader_sets_free. SGT_EUSAGE names the invalid
 * part. */
int sgt_loader_sets_parse(sgt_loader_set **sets, uint32_t *count, const char *text, sgt_error *err);
void sgt_loader_sets_free(sgt_loader_set *sets); /* NULL is fine */

/* Return how many of the first `rows` rows of the run come from set `set`; and which set the used
 * shard `shard` belongs to. Pure. */
uint64_t sgt_loader_drawn(const sgt_loader *l, uint32_t set, uint64_t rows);
uint32_t sgt_loader_set_of(const sgt_loader *l, uint32_t shard);

/* ---- resuming ---- */

/* The position of a run of batches: one integer, and everything that determines the rows. Save it
 * beside the results, as a struct or field by field. A loader that is opened later can resume from
 * it with any reader and any number of ranks: they see the same batches. Its batch size may differ
 * if it divides the rows already drawn. */
typedef struct sgt_loader_state {
    uint64_t rows;         /* rows already drawn, over all ranks */
    uint64_t hash, tokens; /* identify the data: as in sgt_loader_info */
    uint64_t seed;         /* as in sgt_loader_options */
    sgt_sampling sampling; /* as in sgt_loader_options */
    uint32_t seq, pad;     /* pad: for sampling documents; else 0 */
} sgt_loader_state;

/* Fill in the state of a run that draws batch `next` next. */
void sgt_loader_get_state(const sgt_loader *l, uint64_t next, sgt_loader_state *state);
/* Set *next to this loader's next batch. Returns SGT_EUSAGE if its rows would differ from the
 * run's; the text says what differs. */
int sgt_loader_resume(const sgt_loader *l, const sgt_loader_state *state, uint64_t *next,
                      sgt_error *err);

/* ---- files cut short ---- */

/* Turn SIGBUS from mapped shards into errors. If a mapped file (SGT_READER_MMAP, and
 * SGT_READER_URING where the machine refuses io_uring) is cut short, or its disk fails, reading the
 * missing bytes raises SIGBUS, which by default ends the process. Call this once, before or after
 * loaders are opened. A batch that hits such bytes then fails with SGT_EFORMAT or SGT_EIO, naming
 * the shard and the byte; so does every later batch with windows that end past that byte. Any
 * number of threads may hit it at once, and loaders may be opened and closed meanwhile.
 *
 * It installs a handler of SIGBUS for the whole process and never removes it. The handler, and a
 * pointer of each thread to the maps that it reads, are the library's only global state. A SIGBUS
 * at any other address goes to the previous handler (SIG_DFL: the process ends, as before). A
 * handler that is installed later must pass on unknown addresses in the same way, and threads that
 * draw must not block SIGBUS. Later calls do nothing. Returns 0, or SGT_EIO.
 *
 * Without it, reading such bytes ends the process. In either case, the missing part of a cut file's
 * last page reads as zeros, without a signal. A window that ends in id 0 therefore has its shard's
 * size checked after the read, so that this is an error too. */
int sgt_loader_guard_sigbus(sgt_error *err);

/* ---- batches ---- */

/* Open a cursor: one per thread that draws. Only one call may use it at a time, and it cannot be
 * used across fork. Closing NULL is fine. */
int sgt_cursor_open(sgt_cursor **out, const sgt_loader *l, sgt_error *err);
void sgt_cursor_close(sgt_cursor *c);

/* The target of padding: PyTorch's cross_entropy ignores it by default. */
#define SGT_IGNORED (-100)

typedef enum sgt_output {
    SGT_OUTPUT_U16, /* rows of T+1 ids (the default); for sets of 2-byte ids only */
    SGT_OUTPUT_I32, /* inputs and targets, as int32 */
    SGT_OUTPUT_I64, /* the same as int64, the type that PyTorch's cross_entropy needs for targets */
    SGT_OUTPUT_I32_ROWS, /* rows of T+1 ids, as int32 */
    SGT_OUTPUTS          /* the number of outputs */
} sgt_output;

typedef struct sgt_loader_batch {
    uint64_t index;    /* number of the batch in the run */
    sgt_output output; /* type of the ids */
    /* (local_batch, T) each: targets are the inputs shifted by one, those of padding SGT_IGNORED.
     * Without targets, inputs are rows, (local_batch, T+1) */
    void *inputs, *targets;
    /* (local_batch): how many of a row's T+1 tokens are real, at least 1; the others are padding.
     * NULL unless the sampling is documents */
    uint32_t *lengths;
    /* With options.documents, where documents start: from SHARD.idx, or from the row's end-of-text
     * ids without that file; else NULL. In row r, documents begin at the tokens
     * starts[row_starts[r]] ... starts[row_starts[r + 1] - 1], ascending numbers from 0 to T. Tokens
     * before the first of them belong to a document that began before the row */
    uint32_t *row_starts; /* (local_batch + 1) */
    uint32_t *starts;
    uint32_t slot; /* of a stream: number of its buffer in the ring */
} sgt_loader_batch;

/* Write `count` consecutive batches, first, first + 1, ..., one behind the other, to b->inputs and
 * b->targets, the caller's memory, as b->output says: arrays of (count, local_batch, T), or (count,
 * local_batch, T+1) for rows. The other fields are set to those of the last batch; their arrays
 * belong to the cursor and are valid until its next call. Any number of threads may call this at
 * once on one loader, each with its own cursor. A call from another language costs as much as some
 * rows do, so several batches a call are faster there. Returns 0, or a negative SGT_E* with all
 * batches of the call undefined and *err filled in. */
int sgt_loader_read(const sgt_loader *l, sgt_cursor *c, uint64_t first, uint64_t count,
                    sgt_loader_batch *b, sgt_error *err);

/* From a batch's starts, fill one number per input, (rows, T), into each array that is not NULL.
 * `begins` is the input at which its document begins in the row. `positions` counts from there.
 * `ids` is its document's number in the row, from 0. Inputs past the row's length are padding, with
 * begins = itself, position 0 and id -1. Pure. */
void sgt_loader_expand_starts(const sgt_loader_batch *b, uint32_t rows, uint32_t seq,
                              int32_t *begins, int32_t *positions, int32_t *ids);

/* ---- rows and shards ---- */

/* Find the start of global row `row` (= batch index * B + r): its used shard, and the token in that
 * shard. Pure. */
void sgt_loader_window(const sgt_loader *l, uint64_t row, uint32_t *shard, uint64_t *offset);
const char *sgt_loader_shard_path(const sgt_loader *l, uint32_t shard);

/* ---- streams ---- */

/* A stream: threads that prefetch batches first, first+1, ... into a ring of buffers: the caller's,
 * as pinned memory or huge pages, or the stream's own, aligned to pages.
 *
 *     sgt_loader_batch b;
 *     while (sgt_stream_next(s, &b, &err) == 0) { use(b.inputs); sgt_stream_release(s, &b); }
 *
 * One consumer thread calls next and release. It may hold up to `slots` batches and must release
 * them in order. Neither call waits if the batch is ready; sleeping threads are woken once half of
 * the ring is free. */

typedef struct sgt_stream_options {
    uint64_t first;    /* index of the first batch to make */
    uint64_t count;    /* number of batches; 0: endless */
    sgt_output output; /* type of the ids */
    uint32_t slots;    /* buffers in the ring; default 4 */
    uint32_t threads;  /* prefetch threads; default 1 */
    /* (slots): buffers of sgt_stream_bytes each, which the caller frees after the stream is closed;
     * NULL: the stream's own */
    void *const *buffers;
    /* For timing; may be NULL. Prefetch thread `thread` (from 0) calls it before it makes batch
     * `index`, and again, with done = 1, after it. */
    void (*making)(void *ctx, uint32_t thread, uint64_t index, int done);
    void *making_ctx; /* argument of making */
} sgt_stream_options;

/* Return the bytes of a buffer; 0 for an unknown output, or if no memory could hold it. */
size_t sgt_stream_bytes(const sgt_loader *l, sgt_output output);

typedef struct sgt_stream sgt_stream;
/* Start a stream; o NULL means all defaults. */
int sgt_stream_open(sgt_stream **out, const sgt_loader *l, const sgt_stream_options *o,
                    sgt_error *err);
/* Wait for the next batch, whose arrays are valid until it is released. Returns 0, or 1 after the
 * last of `count` batches. A batch that could not be read gives a negative SGT_E*, and the same again
 * at every further call: a stream never skips a batch. Returns SGT_EUSAGE if the consumer holds all
 * slots, since the wait would never end. */
int sgt_stream_next(sgt_stream *s, sgt_loader_batch *b, sgt_error *err);
/* Give the batch's buffer back to the prefetch threads. If options.buffers were given, the caller may
 * keep it: with b->inputs set to another buffer of as many bytes, the slot uses that from now on. */
void sgt_stream_release(sgt_stream *s, const sgt_loader_batch *b);
/* Close the stream, at any moment, from the consumer thread. NULL is fine. */
void sgt_stream_close(sgt_stream *s);

#ifdef __cplusplus
}
#endif
#endif
