/* inspect.h: functions and types that the source files of sgt-inspect share. A data set is a folder
 * of shards, or a single shard. set.c opens a data set, and tells what other files are. show.c
 * prints a summary of a data set. text.c reads the tokens of a data set in order, and decodes them.
 * verify.c checks an entire data set. compare.c compares two data sets. export.c converts a data
 * set to the format of another trainer. batch.c prints the batches that training would draw. run.c
 * prints training runs and checkpoints. sgt-inspect.c parses the command line. */
#ifndef SGT_TOOLS_INSPECT_H
#define SGT_TOOLS_INSPECT_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"
#include "loader/shards/set.h"
#include "tokenize/out/writer.h"
#include "tokenize/sgt_tokenize.h"

/* values of the command-line options */
typedef struct inspect {
    const char *path;
    /* json, quiet, verify: 1 if the option of the same name is given, otherwise 0. raw: bits per id
     * in shards without a header, from --raw; 0 if --raw is not given. */
    int json, quiet, verify, raw;
    /* arguments of --decode (FROM:COUNT) and --batch (K or K:N); NULL if the option is not given */
    const char *decode, *batch;
    const char *split;    /* name of the split to read; NULL for all splits */
    int loader, sampling; /* an sgt_reader and an sgt_sampling */
    uint64_t seed, batch_size, seq_len, pad;
    int padded_by;    /* 1 if --pad-id is given, otherwise 0 */
    int documents;    /* 1 if --batch also prints where documents begin in each row; otherwise 0 */
    uint64_t threads; /* number of threads for --verify; 0 for one thread per available core */
    int layout;       /* argument of --export, an sgt_layout; 0 if the option is not given */
    int force;
    sgt_notice notice;
    const sgt_stop *stop;
} inspect;

/* An open data set: a folder of shards, or a single shard. The shards of the train split come
 * before those of the val split. The header of each shard has been compared with the size of the
 * file and with the manifest. */
typedef struct inspect_set {
    const char *path;
    int folder; /* 1 if the data set is a folder, 0 if it is a single shard */
    /* 1 if the program that writes this data set has not completed it; otherwise 0 */
    int unfinished;
    /* contents of manifest.json; manifest.options is NULL if that file is missing */
    sgt_manifest manifest;
    sgt_set set;
    /* ends[i] is the index of the first shard after split i, which is the number of shards in
     * splits 0 to i. Not used if the data set is a single shard. */
    uint32_t ends[SGT_SPLITS];
    /* Header of the first shard. If there is a manifest, its vocabulary size, end-of-text id and
     * fingerprint replace those in the header. */
    sgt_shard_header first;
    /* total numbers of tokens and of documents in all shards; `documents` is UINT64_MAX if that
     * number is unknown */
    uint64_t tokens, documents;
    /* shard whose file inspect_read keeps open as the descriptor fd; NULL if no file is open */
    const sgt_set_shard *opened;
    int fd;
} inspect_set;

/* Functions that return int return 0 on success, or a negative SGT_E* with a message in *err,
 * unless their comment says otherwise. Results are printed to standard output. */
int inspect_set_open(inspect_set *s, const inspect *o, const char *path, sgt_error *err);
void inspect_set_close(inspect_set *s);
/* Check all shards of the data set. For each damaged shard, set sgt_set_shard.damage to a
 * description of the damage. */
int inspect_set_verify(inspect_set *s, const inspect *o, sgt_error *err);
int inspect_set_show(const inspect_set *s, const inspect *o, sgt_error *err);

typedef enum inspect_kind { INSPECT_SHARDS, INSPECT_RUN, INSPECT_CHECKPOINT } inspect_kind;
/* names of the inspect_kind values for messages: "set of shards", "run", "checkpoint" */
extern const char *const inspect_kinds[];
/* Return the kind of files that a folder contains, or INSPECT_SHARDS if it contains no file of a
 * run or a checkpoint, or if it is not a folder. */
inspect_kind inspect_find_kind(const char *folder);
/* Return SGT_OK if a file can be a shard: if it has the header of a shard, belongs to a shard in
 * Megatron-LM's format, or has a name that ends in .bin. Otherwise, return SGT_EFORMAT with a
 * message that says what the file is. */
int inspect_known(const char *path, sgt_error *err);

/* Read `want` tokens into `ids`, and set *got to the number of tokens read, which is less than
 * `want` only at the end. split: index of the split to read (as in sgt_split_names), or -1 to read
 * all shards as one sequence. from: index in the split of the first token. Ids are s->first.width
 * bytes wide. The last shard read stays open until inspect_close_shard is called. */
int inspect_read(inspect_set *s, int split, uint64_t from, void *ids, size_t want, size_t *got,
                 sgt_error *err);
void inspect_close_shard(inspect_set *s);

/* Return the number of tokens in a split, or in the entire data set if `split` is -1. If
 * `documents` is not NULL, set *documents to the number of documents, or to UINT64_MAX if that
 * number is unknown. */
uint64_t inspect_count(const inspect_set *s, int split, uint64_t *documents);
/* Return the shard that contains the token with index `token` of a split (of the entire data set if
 * `split` is -1), and set *offset to the token's index in this shard. Return NULL if there is no
 * such token. */
const sgt_set_shard *inspect_place(const inspect_set *s, int split, uint64_t token,
                                   uint64_t *offset);
/* Return the number that all ids in a shard must be less than. This is the vocabulary size in the
 * shard's header. If the header contains none, it is GPT-2's vocabulary size for ids of 2 bytes,
 * and the maximum vocabulary size for ids of 4 bytes. */
uint32_t inspect_ids(const sgt_set_shard *d);

/* Compare the tokens of two data sets and, if they are known, the vocabularies. Print the result,
 * with the first difference if there is one. Return 0 if the data sets are equal, 1 if they differ,
 * or a negative SGT_E* on error. */
int inspect_compare(const inspect *o, const char *const paths[2], sgt_error *err);
/* Convert the data set at paths[0] to the format o->layout (an sgt_layout), and write it to the
 * folder paths[1]. */
int inspect_export(const inspect *o, const char *const *paths, sgt_error *err);

int inspect_decode(inspect_set *s, const inspect *o, sgt_error *err);
int inspect_batches(const inspect *o, sgt_error *err);
/* Print how many documents and tokens the packed rows of an epoch contain, and how many tokens are
 * cropped from documents. */
int inspect_packing(const inspect *o, sgt_error *err);

int inspect_run(const inspect *o, sgt_error *err); /* print a summary of the run at o->path */
/* Print a summary of the checkpoint at o->path: the folder RUN/step-NNNNNNNN/ of a run, or any
 * folder with the same files. */
int inspect_checkpoint(const inspect *o, sgt_error *err);

/* Parse a text of the form "FROM:COUNT", or "FROM", which stands for "FROM:1". If `text` has a
 * different form, return SGT_EUSAGE with a message that begins with "--OPTION". option: name of the
 * option. */
int inspect_span(uint64_t *from, uint64_t *count, const char *text, const char *option,
                 sgt_error *err);

/* Open the vocabulary that decodes the ids of a data set (inspect_set_vocabulary) or of the shard
 * at `path`, whose ids are `width` bytes wide (inspect_vocabulary). If the shard's folder contains
 * a tokenizer.json with this fingerprint, open it. Otherwise, open GPT-2's vocabulary if the
 * fingerprint is that of GPT-2 or 0 (unknown). In all other cases, return SGT_EUNSUPPORTED. */
int inspect_set_vocabulary(sgt_vocab **out, const inspect_set *s, sgt_error *err);
int inspect_vocabulary(sgt_vocab **out, uint64_t fingerprint, size_t width, const char *path,
                       sgt_error *err);

#endif
