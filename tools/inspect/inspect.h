/* inspect.h: the parts of sgt-inspect. sgt-inspect.c contains the command line. set.c opens a set
 * (a shard or a folder of shards) and describes a file that is not a shard. show.c prints the
 * contents of a set. text.c reads a set's tokens in order and decodes them. verify.c checks an
 * entire set. compare.c compares two sets. export.c converts a set to a different trainer's format.
 * batch.c shows the batches that training would draw. run.c reads run folders and checkpoints. */
#ifndef SGT_TOOLS_INSPECT_H
#define SGT_TOOLS_INSPECT_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"
#include "loader/shards/set.h"
#include "tokenize/out/writer.h"
#include "tokenize/sgt_tokenize.h"

/* The options of the command line. */
typedef struct inspect {
    const char *path;
    /* json, quiet, verify: 1 if the option of this name is given; raw: bits per id that --raw
     * states, or 0 if it is not given */
    int json, quiet, verify, raw;
    /* values of --decode (FROM:COUNT) and --batch (K[:N]), unparsed; NULL: not given */
    const char *decode, *batch;
    const char *split;    /* NULL: every split */
    int loader, sampling; /* sgt_reader, sgt_sampling */
    uint64_t seed, batch_size, seq_len, pad;
    int padded_by;    /* 1: --pad was given */
    int documents;    /* 1: with --batch, also show where documents begin in each row */
    uint64_t threads; /* number of threads of --verify; 0: one per available core */
    int layout;       /* layout of --export, an sgt_layout; 0: not given */
    int force;
    sgt_notice notice;
    const sgt_stop *stop;
} inspect;

/* An open set. Its shards are ordered by split: first train, then val. Each shard's header has been
 * compared with the size of its file and with the manifest. */
typedef struct inspect_set {
    const char *path;
    int folder;
    int unfinished; /* 1: the program that writes this set has not finished it */
    /* content of manifest.json; manifest.options is NULL if there is no such file */
    sgt_manifest manifest;
    sgt_set set;
    /* ends[i]: number of shards in splits 0 ... i together, which is also the index of the first
     * shard after split i; not used if the set is a single shard */
    uint32_t ends[SGT_SPLITS];
    /* header of the set's first shard. If there is a manifest, the vocabulary size, end-of-text id
     * and fingerprint are the manifest's */
    sgt_shard_header first;
    /* number of tokens and number of documents in all shards; documents is UINT64_MAX if it is
     * unknown */
    uint64_t tokens, documents;
    const sgt_set_shard *opened; /* shard that inspect_read has open as `fd`; NULL: none */
    int fd;
} inspect_set;

/* All functions that return int return 0, or a negative SGT_E* with *err filled in, unless their
 * comment states other values. Results are printed on standard output. */
int inspect_set_open(inspect_set *s, const inspect *o, const char *path, sgt_error *err);
void inspect_set_close(inspect_set *s);
/* Check all shards of the set, and set `damage` of each damaged shard. */
int inspect_set_verify(inspect_set *s, const inspect *o, sgt_error *err);
int inspect_set_show(const inspect_set *s, const inspect *o, sgt_error *err);

typedef enum inspect_kind { INSPECT_SHARDS, INSPECT_RUN, INSPECT_CHECKPOINT } inspect_kind;
/* names of the kinds: "set of shards", "run", "checkpoint" */
extern const char *const inspect_kinds[];
/* Return the kind of content that a folder has. It is INSPECT_SHARDS if the folder has no file of a
 * run or a checkpoint, or if `folder` is a file. */
inspect_kind inspect_find_kind(const char *folder);
/* Return SGT_EFORMAT if the file is not a shard; the message states what the file is. A shard is a
 * file that has a header, that belongs to Megatron-LM, or whose name ends in .bin. */
int inspect_known(const char *path, sgt_error *err);

/* Read `want` tokens into `ids`, beginning with token `from`. Set *got to the number of tokens
 * read, which is smaller than `want` at the end of the set. `split` limits the tokens to one split
 * (an index into sgt_split_names), or is -1 for all shards. Ids have s->first.width bytes. The last
 * shard stays open until inspect_close_shard. */
int inspect_read(inspect_set *s, int split, uint64_t from, void *ids, size_t want, size_t *got,
                 sgt_error *err);
void inspect_close_shard(inspect_set *s);

/* Return the number of tokens in a split, or in the set if `split` is -1. If `documents` is not
 * NULL, set *documents to the number of documents, or to UINT64_MAX if it is unknown. */
uint64_t inspect_count(const inspect_set *s, int split, uint64_t *documents);
/* Return the shard that contains token number `token`, and set *offset to the index of the token
 * within that shard. Return NULL if there are fewer tokens. */
const sgt_set_shard *inspect_place(const inspect_set *s, int split, uint64_t token,
                                   uint64_t *offset);
/* Return the exclusive upper bound of a shard's ids: the vocabulary size in its header, if there is
 * one. Otherwise it is GPT-2's vocabulary size if ids are 2 bytes wide, and the maximum vocabulary
 * size if they are 4 bytes wide. */
uint32_t inspect_ids(const sgt_set_shard *d);

/* Compare two sets. Return 0 if they have the same tokens, or 1 after printing the first
 * difference. */
int inspect_compare(const inspect *o, const char *const paths[2], sgt_error *err);
/* Export the set at paths[0] to the folder paths[1], in the format o->layout. */
int inspect_export(const inspect *o, const char *const *paths, sgt_error *err);

int inspect_decode(inspect_set *s, const inspect *o, sgt_error *err);
int inspect_batches(const inspect *o, sgt_error *err);
/* Show how many documents and tokens the packed rows of one epoch contain, and how many tokens are
 * cropped. */
int inspect_packing(const inspect *o, sgt_error *err);

int inspect_run(const inspect *o, sgt_error *err); /* show a run directory */
/* Show a checkpoint, which is RUN/step-NNNNNNNN/ or any folder with the same files. */
int inspect_checkpoint(const inspect *o, sgt_error *err);

/* Parse "FROM:COUNT", or "FROM", which means FROM:1. If `text` has a different form, return
 * SGT_EUSAGE; the message begins with the name of `option`. */
int inspect_span(uint64_t *from, uint64_t *count, const char *text, const char *option,
                 sgt_error *err);

/* Open the vocabulary of a set, or (inspect_vocabulary) of the shard at `path`, whose ids have
 * `width` bytes. If a tokenizer.json next to the shard has the fingerprint `fingerprint`, open
 * that. Otherwise, if the fingerprint is GPT-2's or 0 (unknown), open GPT-2's vocabulary. In all
 * other cases, return SGT_EUNSUPPORTED. */
int inspect_set_vocabulary(sgt_vocab **out, const inspect_set *s, sgt_error *err);
int inspect_vocabulary(sgt_vocab **out, uint64_t fingerprint, size_t width, const char *path,
                       sgt_error *err);

#endif
