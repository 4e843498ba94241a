/* inspect.h: the parts of sgt-inspect. set.c opens a set (a shard or a folder of shards), and
 * describes a file that is not a shard. show.c prints the contents of a set. text.c reads the
 * tokens in order and decodes them, verify.c checks a whole set, compare.c compares two sets, and
 * export.c converts one to another trainer's format. batch.c shows the batches that training would
 * use. run.c reads run directories and checkpoints. sgt-inspect.c contains the command line. */
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
    int json, quiet, verify, raw; /* raw: the argument of sgt_set_add, or 0 */
    const char *decode, *batch;   /* FROM:COUNT and K[:N], as typed; NULL: not given */
    const char *split;            /* NULL: every split */
    int loader, sampling;         /* sgt_reader, sgt_sampling */
    uint64_t seed, batch_size, seq_len, pad;
    int padded_by;    /* 1: --pad was given */
    int documents;    /* 1: for --batch, also show the positions at which documents begin */
    uint64_t threads; /* number of threads for --verify; 0: one per available core */
    int layout;       /* sgt_layout of --export; 0: not given */
    int force;
    sgt_notice notice;
    const sgt_stop *stop;
} inspect;

enum { INSPECT_SPLITS = 2 };
/* names of the splits, in the order of a set's shards */
extern const char *const inspect_splits[INSPECT_SPLITS];

/* An open set. Its shards are ordered by split (train, val). Each header has been compared with the
 * file's size and with the manifest. */
typedef struct inspect_set {
    const char *path;
    int folder;
    int unfinished;        /* 1: a program has not finished writing the set */
    sgt_manifest manifest; /* contents of manifest.json; `options` is NULL if there is none */
    sgt_set set;
    uint32_t ends[INSPECT_SPLITS]; /* for a folder: index of the first shard after each split */
    /* header of the first shard, but with the manifest's vocabulary */
    sgt_shard_header first;
    /* sums over all shards; if `documents` is UINT64_MAX, it is unknown */
    uint64_t tokens, documents;
    const sgt_set_shard *opened; /* shard that inspect_read keeps open as `fd`; NULL: none */
    int fd;
} inspect_set;

/* All functions that return int return 0 or a negative SGT_E* with *err filled in, unless their
 * comment says otherwise. Results go to standard output. */
int inspect_set_open(inspect_set *s, const inspect *o, const char *path, sgt_error *err);
void inspect_set_close(inspect_set *s);
/* Check all shards of the set; set the `damage` of each that is damaged. */
int inspect_set_verify(inspect_set *s, const inspect *o, sgt_error *err);
int inspect_set_show(const inspect_set *s, const inspect *o, sgt_error *err);

typedef enum inspect_kind { INSPECT_SHARDS, INSPECT_RUN, INSPECT_CHECKPOINT } inspect_kind;
extern const char *const inspect_kinds[]; /* "set of shards", "run", "checkpoint" */
/* Return what a folder contains. It is INSPECT_SHARDS if the folder has no file of a run or a
 * checkpoint, or is not a folder. */
inspect_kind inspect_find_kind(const char *folder);
/* Return SGT_EFORMAT if the file is not a shard, with a message that says what it is instead. A
 * file counts as a shard if it has a header, belongs to Megatron-LM, or has a name that ends in
 * .bin. */
int inspect_known(const char *path, sgt_error *err);

/* Read `want` tokens from index `from` on into ids, and set *got to the number read, which is
 * smaller at the end. `split` is an index into inspect_splits and limits the tokens to that split;
 * -1: all shards. An id has s->first.width bytes. The last shard stays open until
 * inspect_close_shard. */
int inspect_read(inspect_set *s, int split, uint64_t from, void *ids, size_t want, size_t *got,
                 sgt_error *err);
void inspect_close_shard(inspect_set *s);

/* Return the number of tokens of a split (-1: of the set). Unless documents is NULL, set *documents
 * to the number of documents, or to UINT64_MAX if that is unknown. */
uint64_t inspect_count(const inspect_set *s, int split, uint64_t *documents);
/* Return the shard that has token number `token`, and set *offset to the token's index in the
 * shard. Return NULL if the set has fewer tokens. */
const sgt_set_shard *inspect_place(const inspect_set *s, int split, uint64_t token,
                                   uint64_t *offset);
/* Return the exclusive upper bound of a shard's ids. It is the vocabulary size in the header. If
 * the header has none, it is GPT-2's vocabulary size, or for ids of 4 bytes, the largest possible
 * bound. */
uint32_t inspect_ids(const sgt_set_shard *d);

/* Return 0 if the two sets have the same tokens, or 1 after printing where they first differ. */
int inspect_compare(const inspect *o, const char *const paths[2], sgt_error *err);
/* Write the tokens of the set at paths[0] to the folder paths[1], as files of the layout
 * o->layout. */
int inspect_export(const inspect *o, const char *const *paths, sgt_error *err);

int inspect_decode(inspect_set *s, const inspect *o, sgt_error *err);
int inspect_batches(const inspect *o, sgt_error *err);
/* Show how many documents and tokens the packed rows of an epoch contain, and how many tokens are
 * cropped. */
int inspect_packing(const inspect *o, sgt_error *err);

int inspect_run(const inspect *o, sgt_error *err); /* show a run directory */
/* Show a checkpoint: RUN/step-NNNNNNNN/, or another folder with the same files. */
int inspect_checkpoint(const inspect *o, sgt_error *err);

/* Parse "FROM:COUNT", or "FROM", which stands for FROM:1. For any other text, return SGT_EUSAGE,
 * with the option's name in the message. */
int inspect_span(uint64_t *from, uint64_t *count, const char *text, const char *option,
                 sgt_error *err);

/* Open the vocabulary of a set, or of the shard at `path`, whose ids have `width` bytes. It is
 * GPT-2's, or the tokenizer.json next to the shard if that has the fingerprint (0: unknown).
 * Returns SGT_EUNSUPPORTED if no such vocabulary is available. */
int inspect_set_vocabulary(sgt_vocab **out, const inspect_set *s, sgt_error *err);
int inspect_vocabulary(sgt_vocab **out, uint64_t fingerprint, size_t width, const char *path,
                       sgt_error *err);

#endif
