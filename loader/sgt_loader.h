/* sgt_loader.h: batches of tokens from shards, as fast as memory or the disk allows. Links alone
 * (libsgt-loader), from C, C++, CUDA and any FFI.
 *
 *     sgt_error err;
 *     sgt_loader *l;
 *     sgt_loader_options o = {.seed = 1, .batch = 16, .seq = 1024};              // zero means the default everywhere
 *     if (sgt_loader_open(&l, "out", &o, &err) < 0) { fprintf(stderr, "%s\n", err.text); exit(1); }
 *     sgt_cursor *c;
 *     if (sgt_cursor_open(&c, l, &err) < 0) ...;
 *     for (uint64_t k = 0; k < steps; k++)
 *         if (sgt_loader_batch_i32(l, c, k, inputs, targets, &err) < 0) ...;     // both (16, 1024) int32
 *     sgt_cursor_close(c);
 *     sgt_loader_close(l);
 *
 * Batch k is a pure function of (dataset, sampling, seed, batch, seq, k): the same from every
 * reader, on any number of ranks, in any order. A loader is immutable once open and shared by any
 * number of threads; each thread draws through its own cursor.
 *
 * Several sets are mixed into one, row by row, in the proportion of their weights, or of their
 * sizes without them:
 *
 *     sgt_loader_set sets[] = {{"web", 0.7}, {"books", 0.3}};
 *     sgt_loader_options o = {.seed = 1, .batch = 16, .seq = 1024, .sets = sets, .set_count = 2};
 *     if (sgt_loader_open(&l, NULL, &o, &err) < 0) ...;                          // sample/mix.h defines the order
 *
 * With SGT_SAMPLING_DOCUMENTS a row is one document: the tokens from where it begins (with an
 * end-of-text id, which the row has too) to where the next one does, through as many shards as that
 * takes, cut to T+1 or padded. Where documents begin stands in SHARD.idx beside SHARD.bin (u64
 * offsets from the shard's first token); where there is no such file, one begins at each
 * end-of-text id: the header's, or 50256. Tokens before a set's first document are in no row. */
#ifndef SGT_LOADER_H
#define SGT_LOADER_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sgt_reader {
    SGT_READER_PRELOAD, /* everything in RAM, in huge pages (the default) */
    /* the page cache; see sgt_loader_guard_sigbus about files cut short while they are mapped */
    SGT_READER_MMAP,
    /* io_uring past the page cache, for sets larger than memory; what the machine refuses of that
     * (direct reads, io_uring itself) is done without, with a notice each */
    SGT_READER_URING,
    SGT_READERS
} sgt_reader;

typedef enum sgt_sampling {
    /* every window of an epoch once, in a keyed permutation (the default) */
    SGT_SAMPLING_SHUFFLE,
    SGT_SAMPLING_RANDOM, /* uniform starts with replacement */
    /* the windows of shuffle in two levels: blocks, and windows within a pool of blocks */
    SGT_SAMPLING_BLOCK,
    SGT_SAMPLING_SEQUENTIAL, /* windows 0, T, 2T, ... of each shard in turn */
    /* one document a row, cut or padded; every document of an epoch once, permuted */
    SGT_SAMPLING_DOCUMENTS,
    SGT_SAMPLINGS
} sgt_sampling;

const char *sgt_reader_name(sgt_reader r);     /* "preload", "mmap", "uring" */
const char *sgt_sampling_name(sgt_sampling s); /* "shuffle", "random", ..., "documents" */

typedef struct sgt_loader_set {
    const char *path;
    /* 1e-9 to 1e6, of any sum; 0 in all sets: by their windows, so that their epochs end
     * together */
    double weight;
} sgt_loader_set;

typedef struct sgt_loader_options {
    sgt_reader reader;
    sgt_sampling sampling;
    uint64_t seed;  /* 0 is a seed like any other */
    uint32_t batch; /* B: rows of a batch over all ranks; default 8 */
    uint32_t seq;   /* T: a row is a window of T+1 tokens; default 512 */
    uint32_t rank;  /* this process takes rows rank, rank + ranks, ... of each batch */
    uint32_t ranks; /* default 1; must divide batch */
    /* ids must be below it and below what headers say; default: theirs, or 50257 if they say
     * none */
    uint32_t vocab;
    const char *split; /* shards SPLIT_*.bin of a folder; default "train" */
    int padded_by;     /* documents: short rows are padded by `pad`; 0: by the end-of-text id */
    uint32_t pad;      /* which the vocabulary must have */
    /* rows are made one token at a time, in plain C: the naive way, kept for comparison */
    int scalar;
    /* no headers, in a folder (SPLIT.bin too: nanoGPT's). A file named itself may lack it anyway */
    int raw;
    sgt_notice notice; /* skipped shards, fallbacks */
    /* several sets, mixed, in the place of sgt_loader_open's path; read while it opens */
    const sgt_loader_set *sets;
    uint32_t set_count;
    /* rows come with where documents begin in them (sgt_cursor_documents); every .idx is read
     * here */
    int documents;
} sgt_loader_options;

typedef struct sgt_loader sgt_loader;
typedef struct sgt_cursor sgt_cursor;

/* Opens a folder of shards (with or without a manifest) or one shard, ours or those of llm.c,
 * modded-nanogpt, nanoGPT and Megatron-LM (shards/shard.h; Megatron's also by PREFIX alone); o NULL
 * is all defaults. Every shard's header and size are checked; ids are checked as they are read,
 * which preload does here. The loader owns everything it opens; *out is untouched on failure.
 * SGT_EFORMAT names the shard and the offset. */
int sgt_loader_open(sgt_loader **out, const char *path, const sgt_loader_options *o,
                    sgt_error *err);
void sgt_loader_close(sgt_loader *l); /* after its cursors and streams; NULL is fine */

/* What programs take as --data: "DIR", or "DIR:0.7,DIR:0.3", or "DIR,DIR". A text that is a path,
 * whole, is one; so is a part of it between commas; else what follows a part's last colon is its
 * weight, if it is a number. *sets is for sgt_loader_options, the caller's to free with
 * sgt_loader_sets_free. SGT_EUSAGE names the part that is wrong. */
int sgt_loader_sets_parse(sgt_loader_set **sets, uint32_t *count, const char *text, sgt_error *err);
void sgt_loader_sets_free(sgt_loader_set *sets); /* NULL is fine */

/* sgt_loader_open of the sets that such a text names. */
int sgt_loader_open_data(sgt_loader **out, const char *text, const sgt_loader_options *o,
                         sgt_error *err);

typedef struct sgt_loader_info {
    uint64_t tokens;          /* in the shards that are used */
    uint64_t shards, skipped; /* used; too short for one window */
    /* rows of T+1 tokens in one pass; documents: as many as begin in the shards; of a mix: the sum
     * of its sets', of which some may come more than once in so many rows */
    uint64_t windows_per_epoch;
    uint32_t batch, seq, vocab; /* as decided: B over all ranks, T, ids below this */
    uint32_t local_batch;       /* rows this rank sees: batch / ranks */
    int padded;                 /* rows may be: sampling documents */
    /* identifies the data: of the manifest, or where there is none of names, sizes and headers, and
     * of the tokens at both ends of shards whose header has no checksum (4 KiB each); of a mix: of
     * its sets' hashes and weights, in their order */
    uint64_t hash;
    uint32_t sets;     /* 1, or how many are mixed */
    sgt_reader reader; /* as asked */
    /* "preload", "uring (pread: io_uring is forbidden)"; lives as long as the loader */
    const char *reader_detail;
    /* that begin in the used shards; 0 where nobody asked (option or sampling documents), or, of
     * the option, a shard has no .idx file */
    uint64_t documents;
} sgt_loader_info;
void sgt_loader_get_info(const sgt_loader *l, sgt_loader_info *info);

typedef struct sgt_loader_set_info {
    const char *path; /* as the caller has it; lives as long as the loader */
    double weight;    /* as given; 0: by its windows */
    double share;     /* of all rows: from 0 to 1 */
    /* as in sgt_loader_info, of this set */
    uint64_t tokens, shards, skipped, windows_per_epoch, hash;
} sgt_loader_set_info;
/* Of set `set`, from 0 to sgt_loader_info.sets - 1. */
void sgt_loader_get_set(const sgt_loader *l, uint32_t set, sgt_loader_set_info *info);

/* How many of the first `rows` rows of the run are of set `set`; and of which set a used shard is.
 * Pure. */
uint64_t sgt_loader_drawn(const sgt_loader *l, uint32_t set, uint64_t rows);
uint32_t sgt_loader_set_of(const sgt_loader *l, uint32_t shard);

/* Where a run of batches is: one integer, and what makes the rows what they are. To be kept beside
 * what came of them, as it is or number by number, and gone on from by a loader that is opened
 * later: with any reader, any number of ranks (they see the same batches) and another batch size,
 * if it divides the rows that are behind. */
typedef struct sgt_loader_state {
    uint64_t rows;         /* of all ranks: those of the batches that are behind */
    uint64_t hash, tokens; /* the data: as in sgt_loader_info */
    uint64_t seed;
    sgt_sampling sampling;
    uint32_t seq, pad; /* pad: of documents; else 0 */
} sgt_loader_state;

/* The state in which batch `next` comes next. */
void sgt_loader_get_state(const sgt_loader *l, uint64_t next, sgt_loader_state *state);
/* The batch that comes next in this loader. SGT_EUSAGE where its rows would be others; the text
 * says what differs. */
int sgt_loader_resume(const sgt_loader *l, const sgt_loader_state *state, uint64_t *next,
                      sgt_error *err);

/* A file that is cut short while it is mapped (SGT_READER_MMAP), or a disk that fails under it: the
 * process gets SIGBUS where it reads what is gone, and by default ends. Call this once, before or
 * after loaders are opened, and a batch that meets it fails instead: SGT_EFORMAT or SGT_EIO, naming
 * the shard and the byte, and so does every later one with windows that end past it. Any number of
 * threads may meet it at once, and loaders may be opened and closed meanwhile.
 *
 * It installs a handler of SIGBUS for the whole process, which stays: that handler and what it
 * knows about open maps are the library's only global state. A SIGBUS at any other address goes to
 * the handler that was there before (SIG_DFL: the process ends, as it would have). Whoever installs
 * one later passes on what is not theirs, as this one does, and threads that draw must not block
 * SIGBUS. Later calls do nothing. Returns 0, or SGT_EIO.
 *
 * Without it the sizes of the shards that a batch is drawn from are looked at before it is read,
 * but at most every 10 ms in each cursor: a cut is an error then too, unless it falls between that
 * look and the reading, which ends the process. With or without: what a cut file lacks of its last
 * page reads as zeros, and no signal; a window that ends in id 0 has its shard's size looked at
 * afterwards, so that this is an error too. */
int sgt_loader_guard_sigbus(sgt_error *err);

/* One per thread that draws; one call at a time on it, and not across fork. Closing NULL is
 * fine. */
int sgt_cursor_open(sgt_cursor **out, const sgt_loader *l, sgt_error *err);
void sgt_cursor_close(sgt_cursor *c);

/* Batch `index` of the run, into `rows` (local_batch*(T+1) ids, caller's memory). Any number of
 * threads may call this at once on one loader, each with its own cursor. Returns 0, or a negative
 * SGT_E* with `rows` undefined and *err filled in. */
int sgt_loader_batch(const sgt_loader *l, sgt_cursor *c, uint64_t index, uint16_t *rows,
                     sgt_error *err);

/* A target that is padding: what PyTorch's cross_entropy leaves out unless it is told otherwise. */
#define SGT_IGNORED (-100)

/* The same, as int32 inputs and targets, each (local_batch, T): targets are the inputs moved by
 * one, and SGT_IGNORED where that is padding. */
int sgt_loader_batch_i32(const sgt_loader *l, sgt_cursor *c, uint64_t index, int32_t *inputs,
                         int32_t *targets, sgt_error *err);

/* The same as with options.scalar (sgt-train --batching scalar). */
int sgt_loader_batch_i32_scalar(const sgt_loader *l, sgt_cursor *c, uint64_t index, int32_t *inputs,
                                int32_t *targets, sgt_error *err);

/* Of the batch that was last drawn through c, local_batch numbers: how many of a row's T+1 tokens
 * are its own, at least 1; the rest is padding, and so are targets from that number less one on.
 * NULL where no sampling but documents pads. The cursor's; until its next batch. */
const uint32_t *sgt_cursor_lengths(const sgt_cursor *c);

/* Where documents begin in the rows of a batch, with options.documents: by SHARD.idx, or by the
 * row's end-of-text ids where there is no such file. Row r's tokens starts[first[r]] ...
 * starts[first[r + 1] - 1], ascending numbers from 0 to T, begin one each; the tokens before the
 * first of them are of one that began before the row. */
typedef struct sgt_row_documents {
    const uint32_t *first; /* (local_batch + 1) */
    const uint32_t *starts;
} sgt_row_documents;

/* Of the batch that was last drawn through c; NULL without options.documents. The cursor's; until
 * its next batch. */
const sgt_row_documents *sgt_cursor_documents(const sgt_cursor *c);

/* As numbers of each input, (rows, T) in each of the arrays that is not NULL: the input at which
 * its document begins in the row; its position, counted from there; its document's number in the
 * row, counted from 0. Padding, where `lengths` (or NULL) say that there is some, is itself, 0 and
 * -1. Pure. */
void sgt_row_documents_expand(const sgt_row_documents *d, const uint32_t *lengths, uint32_t rows,
                              uint32_t seq, int32_t *begins, int32_t *positions, int32_t *ids);

/* Where global row `row` (= batch index * B + r) starts: which used shard and which token of it.
 * Pure. */
void sgt_loader_window(const sgt_loader *l, uint64_t row, uint32_t *shard, uint64_t *offset);
const char *sgt_loader_shard_path(const sgt_loader *l, uint32_t shard);

/* A stream: threads that prefetch batches first, first+1, ... into a ring of buffers which the
 * caller's allocator provides (pinned memory, huge pages, or plain malloc where alloc is NULL).
 *
 *     sgt_stream_batch b;
 *     while (sgt_stream_next(s, &b, &err) == 0) { use(b.rows); sgt_stream_release(s, &b); }
 *
 * next and release belong to one consumer thread. Up to `slots` batches may be held unreleased;
 * release in order. Neither takes a lock where the batch is there and nobody sleeps; once half of
 * the ring is free, one of them wakes the threads that sleep. A ring larger than the last cache is
 * written past it. */
typedef enum sgt_output { SGT_OUTPUT_U16, SGT_OUTPUT_I32 } sgt_output;

typedef struct sgt_stream_options {
    uint64_t first;    /* index of the first batch */
    uint64_t count;    /* how many; 0: without end */
    sgt_output output; /* u16 rows of T+1, or i32 inputs and targets */
    uint32_t slots;    /* buffers in the ring; default 4 */
    uint32_t threads;  /* prefetch threads; default 1 */
    /* NULL: sgt_alloc_plain; called `slots` times at open */
    void *(*alloc)(void *ctx, size_t bytes);
    void (*free)(void *ctx, void *p);
    void *ctx;
    /* For timing: called by prefetch thread `thread` (from 0) before it makes batch `index` and,
     * with done, after it. NULL is fine. */
    void (*making)(void *ctx, uint32_t thread, uint64_t index, int done);
    void *making_ctx;
} sgt_stream_options;

/* For alloc and free, ctx unused. Plain: malloc, aligned to pages. Huge: whole pages of 2 MiB where
 * the kernel has them, a map for each buffer, touched at once. NULL where there is no memory. */
void *sgt_alloc_plain(void *ctx, size_t bytes);
void sgt_free_plain(void *ctx, void *p);
void *sgt_alloc_huge(void *ctx, size_t bytes);
void sgt_free_huge(void *ctx, void *p);

typedef struct sgt_stream_batch {
    uint64_t index;
    uint16_t *rows;            /* u16: (local_batch, T+1) */
    const uint32_t *lengths;   /* as sgt_cursor_lengths has them; NULL where no row is padded */
    int32_t *inputs, *targets; /* i32: (local_batch, T) each */
    uint32_t slot;             /* which buffer of the ring */
    /* as sgt_cursor_documents has them, or NULL; until the batch is released */
    const sgt_row_documents *documents;
} sgt_stream_batch;

typedef struct sgt_stream sgt_stream;
int sgt_stream_open(sgt_stream **out, const sgt_loader *l, const sgt_stream_options *o,
                    sgt_error *err);
/* Waits for the next batch. 0; 1 after the last of `count`; or a negative SGT_E* for the batch that
 * could not be read, and the same again at every further call: a stream never skips a batch.
 * SGT_EUSAGE when all slots are held, instead of waiting for good. */
int sgt_stream_next(sgt_stream *s, sgt_stream_batch *b, sgt_error *err);
/* the buffer may be filled again */
void sgt_stream_release(sgt_stream *s, const sgt_stream_batch *b);
/* at any moment, by the consumer; NULL is fine */
void sgt_stream_close(sgt_stream *s);

#ifdef __cplusplus
}
#endif
#endif
