/* inspect.h: the parts of sgt-inspect. set.c opens a set, which is a shard or a folder of shards,
 * and says what a file is that is no shard. show.c prints what a set holds. text.c reads its tokens
 * in order and decodes them, verify.c checks all of it, compare.c compares two sets, and export.c
 * rewrites one for another trainer. batch.c shows the batches that training would use. run.c reads
 * run directories and checkpoints. sgt-inspect.c has the command line. */
#ifndef SGT_TOOLS_INSPECT_H
#define SGT_TOOLS_INSPECT_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "loader/base/error.h"
#include "loader/shards/set.h"
#include "tokenize/sgt_tokenize.h"

/* The options of the command line. */
typedef struct inspect {
    const char *path;
    int json, quiet, verify, raw; /* raw: that of sgt_set_add, or 0 */
    const char *decode, *batch;   /* texts FROM:COUNT and K[:N] as given; NULL: not given */
    const char *split;            /* NULL: every split */
    int loader, sampling;         /* sgt_reader, sgt_sampling */
    uint64_t seed, batch_size, seq_len, pad;
    int padded_by;    /* 1: --pad was given */
    int documents;    /* for --batch: 1: also show where documents begin */
    uint64_t threads; /* for --verify: number of threads; 0: all available cores */
    int layout;       /* sgt_layout of --export; 0: not given */
    int force;
    sgt_notice notice;
    const sgt_stop *stop;
} inspect;

enum { INSPECT_SPLITS = 2 };
extern const char *const inspect_splits[INSPECT_SPLITS]; /* the splits, in the order of a set */

/* A set: its shards are ordered by split (train, val), and each header was compared with its file's
 * size and with the manifest. */
typedef struct inspect_set {
    const char *path;
    int folder;
    int unfinished;        /* 1: a program has not finished writing the set */
    sgt_manifest manifest; /* contents of manifest.json; `options` is NULL if there is none */
    sgt_set set;
    uint32_t ends[INSPECT_SPLITS]; /* in a folder: the set's shards up to the end of each split */
    sgt_shard_header first;        /* of the first shard; its vocabulary is the manifest's */
    uint64_t tokens, documents;    /* over all shards; documents: UINT64_MAX: unknown */
    const sgt_set_shard *opened;   /* shard that inspect_read has open as `fd`; NULL: none */
    int fd;
} inspect_set;

/* All functions that return int return 0 or a negative SGT_E* with *err filled in, unless said
 * otherwise. Results go to standard output. */
int inspect_set_open(inspect_set *s, const inspect *o, const char *path, sgt_error *err);
void inspect_set_close(inspect_set *s);
/* Check all shards of the set; set the `damage` of each that is damaged. */
int inspect_set_verify(inspect_set *s, const inspect *o, sgt_error *err);
int inspect_set_show(const inspect_set *s, const inspect *o, sgt_error *err);

typedef enum inspect_kind { INSPECT_SHARDS, INSPECT_RUN, INSPECT_CHECKPOINT } inspect_kind;
extern const char *const inspect_kinds[]; /* "set of shards", "run", "checkpoint" */
/* Return what a folder holds: shards, if it has no file of a run or a checkpoint, or is no
 * folder. */
inspect_kind inspect_find_kind(const char *folder);
/* Return SGT_EFORMAT, saying what the file is, if it is not a shard. A file with a header, one of
 * Megatron's, or one whose name ends in .bin counts as a shard. */
int inspect_known(const char *path, sgt_error *err);

/* Read `want` tokens from number `from` on, or fewer at the end of the set, over all its shards or
 * those of one split (a number of inspect_splits; -1: all); *got is their number. An id has
 * s->first.width bytes. The set keeps the last shard open. */
int inspect_read(inspect_set *s, int split, uint64_t from, void *ids, size_t want, size_t *got,
                 sgt_error *err);
void inspect_close_shard(inspect_set *s);

/* Return the number of tokens; set *documents, unless it is NULL, to that of documents, UINT64_MAX
 * if it is unknown. */
uint64_t inspect_count(const inspect_set *s, int split, uint64_t *documents);
/* Return the shard that has token number `token`, and set *offset to the token's index in the
 * shard. Return NULL if the set has fewer tokens. */
const sgt_set_shard *inspect_place(const inspect_set *s, int split, uint64_t token,
                                   uint64_t *offset);
/* Return the limit that all ids of a shard are below: the vocabulary size in its header, or if
 * it has none, GPT-2's, or the largest for ids of 4 bytes. */
uint32_t inspect_ids(const sgt_set_shard *d);

/* Return 0 if the two sets have the same tokens, or 1 after printing where they first differ. */
int inspect_compare(const inspect *o, const char *const paths[2], sgt_error *err);
/* Rewrite the set at paths[0] as files of the layout o->layout, in the folder paths[1]. */
int inspect_export(const inspect *o, const char *const *paths, sgt_error *err);

int inspect_decode(inspect_set *s, const inspect *o, sgt_error *err);
int inspect_batches(const inspect *o, sgt_error *err);
/* Show what the packed rows of an epoch hold, and how many tokens they crop. */
int inspect_packing(const inspect *o, sgt_error *err);

int inspect_run(const inspect *o, sgt_error *err); /* show a run directory */
/* Show a checkpoint: RUN/step-NNNNNNNN/, or a folder like one. */
int inspect_checkpoint(const inspect *o, sgt_error *err);

/* Parse "FROM:COUNT", or "FROM" alone, for which COUNT is 1. Returns SGT_EUSAGE, with the option's
 * name, for any other text. */
int inspect_span(uint64_t *from, uint64_t *count, const char *text, const char *option,
                 sgt_error *err);

/* Open the vocabulary of a set, or of the shard at `path`, with ids of `width` bytes: GPT-2's, or
 * tokenizer.json beside the shard if that has the fingerprint (0: unknown). Returns
 * SGT_EUNSUPPORTED if that is not available. */
int inspect_set_vocabulary(sgt_vocab **out, const inspect_set *s, sgt_error *err);
int inspect_vocabulary(sgt_vocab **out, uint64_t fingerprint, size_t width, const char *path,
                       sgt_error *err);

#endif
