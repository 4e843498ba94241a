/* inspect.h: the parts of sgt-inspect. set.c opens shards and folders of them, text.c decodes them,
 * verify.c reads and checks all of them, compare.c compares two sets, merge.c joins several.
 * batch.c shows the batches that the trainer would see, run.c reads run directories and
 * checkpoints. sgt-inspect.c has the command line. */
#ifndef SGT_TOOLS_INSPECT_H
#define SGT_TOOLS_INSPECT_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"
#include "loader/shards/manifest.h"
#include "tokenize/sgt_tokenize.h"
#include "loader/shards/shard.h"

/* The options of the command line. */
typedef struct inspect {
    const char *path;
    int json, quiet, verify, raw;
    const char *decode, *batch; /* FROM:COUNT and K[:N] as typed; NULL: not given */
    const char *split;          /* NULL: every split */
    int loader, sampling;       /* sgt_reader, sgt_sampling */
    uint64_t seed, batch_size, seq_len, pad;
    int padded_by;         /* whether pad was given */
    int documents;         /* of --batch: also show where documents begin */
    uint64_t threads;      /* of --verify; 0: all available cores */
    uint64_t shard_tokens; /* of --merge; 0: as in the first set */
    int force;
    sgt_notice notice;
    const sgt_stop *stop;
} inspect;

typedef struct inspect_shard {
    char *path;
    const char *split; /* "train", "val"; "" for a file given by itself */
    sgt_shard_header header;
    uint64_t documents; /* from the manifest or the .idx file */
    int documents_known;
    int indexed;  /* there is an .idx file beside it */
    int listed;   /* the manifest lists it */
    char *damage; /* line that says what is wrong with it; NULL: no known damage */
} inspect_shard;

enum { INSPECT_SPLITS = 2 };
extern const char *const inspect_splits[INSPECT_SPLITS]; /* in the order of the set */

/* Shards ordered by split (train, val) and name, each header checked against its file's size. With
 * --verify, a damaged shard does not stop the check of the others: its `damage` is set. */
typedef struct inspect_set {
    const char *path;
    int folder;
    const char *unfinished; /* name of the program that has not finished there; NULL: none */
    sgt_manifest *manifest; /* NULL: none */
    inspect_shard *shards;
    size_t count;
    uint64_t tokens, documents; /* over all shards */
    int documents_known;
    size_t damaged; /* number of damaged shards */
} inspect_set;

/* All of these return 0 or a negative SGT_E* with *err filled in; results go to standard output. */
int inspect_set_open(inspect_set *s, const inspect *o, sgt_error *err);
void inspect_set_close(inspect_set *s);
/* Check all shards; what is wrong with one becomes its `damage`. */
int inspect_set_verify(inspect_set *s, const inspect *o, sgt_error *err);
int inspect_set_show(const inspect_set *s, const inspect *o, sgt_error *err);

/* Return SGT_EFORMAT, saying what the file is, if it is not a shard: it has no header, is not
 * Megatron's, and its name does not end in .bin, which is trusted without a header. */
int inspect_known(const char *path, sgt_error *err);

/* Where the documents of a shard start, by its .idx file: ascending, and all within the shard. */
typedef struct inspect_starts {
    char *path;
    uint64_t *at; /* token offsets in the shard */
    uint64_t count;
} inspect_starts;

/* Read them; call inspect_starts_free in any case. Empty if there is no .idx file, which is an
 * error in a set with a manifest. */
int inspect_starts_read(inspect_starts *k, const inspect_set *s, const inspect_shard *d,
                        sgt_error *err);
void inspect_starts_free(inspect_starts *k);
/* Check that `id`, the token at start i, begins a document. */
int inspect_starts_check(const inspect_starts *k, uint64_t i, const inspect_shard *d, uint16_t id,
                         sgt_error *err);

/* Verify all of one shard, or sources.jsonl. *bytes grows atomically by the bytes read. */
int inspect_shard_verify(const inspect_set *s, const inspect_shard *d, const sgt_stop *stop,
                         uint64_t *bytes, sgt_error *err);
int inspect_sources_verify(const inspect_set *s, const inspect *o, sgt_error *err);

/* Reads a set's tokens in order, over all its shards or those of one split (NULL: all). */
typedef struct inspect_reader {
    const inspect_set *s;
    const char *split;
    uint32_t vocab; /* if not 0, ids at or above it are an error */
    size_t shard;
    /* next token of that shard; bytes of it already evicted from the page cache */
    uint64_t at, dropped;
    int fd;
} inspect_reader;

void inspect_reader_start(inspect_reader *r, const inspect_set *s, const char *split,
                          uint64_t from);
/* Read up to `want` tokens; fewer only at the end. */
int inspect_reader_next(inspect_reader *r, uint16_t *ids, size_t want, size_t *got, sgt_error *err);
void inspect_reader_end(inspect_reader *r);

uint64_t inspect_tokens(const inspect_set *s, const char *split); /* number of tokens */
/* Return the shard that holds token number `token`, with its place there in *offset; NULL if the
 * set is shorter. */
const inspect_shard *inspect_place(const inspect_set *s, const char *split, uint64_t token,
                                   uint64_t *offset);
/* Return the bound of a shard's ids: the vocabulary size in its header, or GPT-2's. */
uint32_t inspect_ids(const inspect_shard *d);

/* Return 0 if the two hold the same tokens, or 1 after printing where they first differ. */
int inspect_compare(const inspect *o, const char *const paths[2], sgt_error *err);
/* paths[count] are the sets, followed by OUT. */
int inspect_merge(const inspect *o, const char *const *paths, size_t count, sgt_error *err);

int inspect_decode(const inspect_set *s, const inspect *o, sgt_error *err);
int inspect_batches(const inspect *o, sgt_error *err);

int inspect_run(const inspect *o, sgt_error *err); /* RUN/ */
/* RUN/step-NNNNNNNN/, or any such folder. */
int inspect_checkpoint(const inspect *o, sgt_error *err);

/* Print the scalar members of an object as " label key value, key value, ...", wrapped. */
void inspect_show_pairs(const char *label, const json_t *object);

/* Parse "FROM:COUNT", or "FROM" alone with COUNT 1. SGT_EUSAGE names the option. */
int inspect_span(uint64_t *from, uint64_t *count, const char *text, const char *option,
                 sgt_error *err);

/* Open the vocabulary of the shard at `path`: GPT-2's or, if the header names another,
 * tokenizer.json beside the shard. SGT_EUNSUPPORTED: neither is available. */
int inspect_vocabulary(sgt_vocab **out, const sgt_shard_header *h, const char *path,
                       sgt_error *err);

/* Print `o` as an indented document, or on one line, on standard output. Takes ownership of `o`. */
int inspect_print_json(json_t *o, int line, sgt_error *err);

int inspect_exists(const char *folder, const char *name);

/* Return "x.idx" for "x.bin", malloc'd; NULL if memory is out or the name has another ending. */
char *inspect_index_path(const char *shard);

/* Store the failure of one shard as its damage and return SGT_OK; return `rc` if it is a failure of
 * another kind. */
int inspect_note_damage(inspect_set *s, inspect_shard *d, int rc, const sgt_error *err);

#endif
