/* inspect.h: functions and types that the source files of sgt-inspect share. set.c opens a data set
 * (a shard or a folder of shards) and describes files that are not shards. show.c prints a summary
 * of a data set. text.c reads a data set's tokens in order and decodes them. verify.c checks an
 * entire data set. compare.c compares two data sets. export.c converts a data set to another
 * trainer's format. batch.c shows the batches that training would draw. run.c reads run folders and
 * checkpoints. sgt-inspect.c parses the command line. */
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
    /* `json`, `quiet` and `verify` are 1 if the option of the same name is given. `raw` is the
     * value of --raw, the number of bits per id, or 0 if --raw is not given. */
    int json, quiet, verify, raw;
    /* values of --decode (FROM:COUNT) and --batch (K or K:N) as text; NULL if the option is not
     * given */
    const char *decode, *batch;
    const char *split;    /* NULL: every split */
    int loader, sampling; /* sgt_reader, sgt_sampling */
    uint64_t seed, batch_size, seq_len, pad;
    int padded_by;    /* 1: --pad was given */
    int documents;    /* 1 if --batch also shows where documents begin in each row; otherwise 0 */
    uint64_t threads; /* number of threads for --verify; 0 for one thread per available core */
    int layout;       /* value of --export, an sgt_layout; 0 if the option is not given */
    int force;
    sgt_notice notice;
    const sgt_stop *stop;
} inspect;

/* An open data set. Its shards are ordered by split: all shards of train come before those of val.
 * For each shard, the header has been compared with the file's size and with the manifest. */
typedef struct inspect_set {
    const char *path;
    int folder;
    /* 1 if the program that writes this data set has not completed it; otherwise 0 */
    int unfinished;
    /* content of manifest.json; if that file is missing, manifest.options is NULL */
    sgt_manifest manifest;
    sgt_set set;
    /* ends[i] is the index of the first shard after split i, which equals the number of shards in
     * splits 0 to i. Not used if the data set is a single shard */
    uint32_t ends[SGT_SPLITS];
    /* header of the data set's first shard. If there is a manifest, the vocabulary size, the
     * end-of-text id and the fingerprint have been replaced with those in the manifest */
    sgt_shard_header first;
    /* total number of tokens and of documents in all shards; `documents` is UINT64_MAX if the
     * number of documents is unknown */
    uint64_t tokens, documents;
    /* shard whose file inspect_read keeps open as `fd`; NULL if none is open */
    const sgt_set_shard *opened;
    int fd;
} inspect_set;

/* Functions that return int return 0 on success, or a negative SGT_E* with *err filled in, unless
 * their comment states other values. Results are printed to standard output. */
int inspect_set_open(inspect_set *s, const inspect *o, const char *path, sgt_error *err);
void inspect_set_close(inspect_set *s);
/* Check all shards of the data set. For each damaged shard, set its member `damage` to a
 * description. */
int inspect_set_verify(inspect_set *s, const inspect *o, sgt_error *err);
int inspect_set_show(const inspect_set *s, const inspect *o, sgt_error *err);

typedef enum inspect_kind { INSPECT_SHARDS, INSPECT_RUN, INSPECT_CHECKPOINT } inspect_kind;
/* names of these kinds for messages: "set of shards", "run", "checkpoint" */
extern const char *const inspect_kinds[];
/* Return what kind of files a folder contains. Return INSPECT_SHARDS if it has no file of a run or
 * a checkpoint, or if `folder` is not a folder. */
inspect_kind inspect_find_kind(const char *folder);
/* Return SGT_OK if the file may be a shard. Otherwise, return SGT_EFORMAT with a message that
 * states what the file is. A file may be a shard if it has a shard's header, belongs to
 * Megatron-LM's format, or has a name that ends in .bin. */
int inspect_known(const char *path, sgt_error *err);

/* Read `want` tokens from token `from` on into `ids`, and set *got to the number of tokens read.
 * *got is less than `want` if the end is reached. `split` is the index of the split to read (an
 * index into sgt_split_names), or -1 to read all shards as one sequence. Ids are s->first.width
 * bytes wide. The shard that was read last stays open until inspect_close_shard. */
int inspect_read(inspect_set *s, int split, uint64_t from, void *ids, size_t want, size_t *got,
                 sgt_error *err);
void inspect_close_shard(inspect_set *s);

/* Return the number of tokens in a split, or in the entire data set if `split` is -1. If
 * `documents` is not NULL, set *documents to the number of documents, or to UINT64_MAX if that
 * number is unknown. */
uint64_t inspect_count(const inspect_set *s, int split, uint64_t *documents);
/* Return the shard that contains token number `token` of a split (of the entire data set if `split`
 * is -1), and set *offset to the token's index within that shard. Return NULL if there are not that
 * many tokens. */
const sgt_set_shard *inspect_place(const inspect_set *s, int split, uint64_t token,
                                   uint64_t *offset);
/* Return the exclusive upper bound of the ids in a shard: the vocabulary size in the shard's
 * header. If the header has none, return GPT-2's vocabulary size if ids are 2 bytes wide, or the
 * maximum vocabulary size if they are 4 bytes wide. */
uint32_t inspect_ids(const sgt_set_shard *d);

/* Compare the tokens and, as far as they are known, the vocabularies of two data sets. Print the
 * first difference if there is one. Return 0 if the data sets are equal, 1 if they differ, or a
 * negative SGT_E*. */
int inspect_compare(const inspect *o, const char *const paths[2], sgt_error *err);
/* Export the data set at paths[0] to the folder paths[1], in the format that o->layout names. */
int inspect_export(const inspect *o, const char *const *paths, sgt_error *err);

int inspect_decode(inspect_set *s, const inspect *o, sgt_error *err);
int inspect_batches(const inspect *o, sgt_error *err);
/* Show how many documents and tokens the packed rows of one epoch contain, and how many tokens are
 * cropped from documents. */
int inspect_packing(const inspect *o, sgt_error *err);

int inspect_run(const inspect *o, sgt_error *err); /* show a run directory */
/* Show a checkpoint: the folder RUN/step-NNNNNNNN/ of a run, or any folder with the same files. */
int inspect_checkpoint(const inspect *o, sgt_error *err);

/* Parse "FROM:COUNT", or "FROM", which has the same meaning as "FROM:1". If `text` has another
 * form, return SGT_EUSAGE with a message that begins with "--" and the string `option`. */
int inspect_span(uint64_t *from, uint64_t *count, const char *text, const char *option,
                 sgt_error *err);

/* Open the vocabulary with which to decode ids. inspect_set_vocabulary opens the vocabulary of a
 * data set, and inspect_vocabulary that of the shard at `path`, whose ids are `width` bytes wide.
 * If the shard's folder has a tokenizer.json with the fingerprint `fingerprint`, this file is
 * opened. Otherwise, if the fingerprint is GPT-2's or 0 (unknown), GPT-2's vocabulary is opened. In
 * all other cases, the functions return SGT_EUNSUPPORTED. */
int inspect_set_vocabulary(sgt_vocab **out, const inspect_set *s, sgt_error *err);
int inspect_vocabulary(sgt_vocab **out, uint64_t fingerprint, size_t width, const char *path,
                       sgt_error *err);

#endif
