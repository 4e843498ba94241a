/* inspect.h: the parts of sgt-inspect. set.c knows shards and folders of them, text.c turns them
 * back into text, verify.c reads all of them, compare.c two sets side by side, merge.c makes one of
 * several; batch.c shows what the trainer would see, run.c reads run directories and checkpoints;
 * sgt-inspect.c holds the command line. */
#ifndef SGT_TOOLS_INSPECT_H
#define SGT_TOOLS_INSPECT_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "shards/manifest.h"
#include "sgt_tokenize.h"
#include "shards/shard.h"

/* What the command line asks for. */
typedef struct inspect {
    const char *path;
    int json, quiet, verify, raw;
    const char *decode, *batch; /* FROM:COUNT and K[:N] as typed; NULL: not asked for */
    const char *split;          /* NULL: every split */
    int loader, sampling;       /* sgt_reader, sgt_sampling */
    uint64_t seed, batch_size, seq_len, pad;
    int padded_by;         /* whether pad was given */
    int documents;         /* of --batch: where they begin, too */
    uint64_t threads;      /* of --verify; 0: the cores at hand */
    uint64_t shard_tokens; /* of --merge; 0: as the first set has them */
    int force;
    sgt_notice notice;
    const sgt_stop *stop;
} inspect;

typedef struct inspect_shard {
    char *path;
    const char *split; /* "train", "val"; "" for a file named itself */
    sgt_shard_header header;
    uint64_t documents; /* from the manifest or the .idx file */
    int documents_known;
    int indexed;  /* there is an .idx file beside it */
    int listed;   /* the manifest has it */
    char *damage; /* what is wrong with it, a line; NULL: nothing that is known */
} inspect_shard;

enum { INSPECT_SPLITS = 2 };
extern const char *const inspect_splits[INSPECT_SPLITS]; /* in the order of the set */

/* Shards in order of their split (train, val) and name, every header checked against its file's
 * size. With --verify what is wrong with one shard does not keep us from the others: its `damage`
 * says it. */
typedef struct inspect_set {
    const char *path;
    int folder;
    const char *unfinished; /* the program that has not ended there; NULL: none */
    sgt_manifest *manifest; /* NULL: none */
    inspect_shard *shards;
    size_t count;
    uint64_t tokens, documents; /* over all shards */
    int documents_known;
    size_t damaged; /* shards */
} inspect_set;

/* All of these return 0 or a negative SGT_E* with *err filled in; results go to standard output. */
int inspect_set_open(inspect_set *s, const inspect *o, sgt_error *err);
void inspect_set_close(inspect_set *s);
/* what is wrong becomes `damage` */
int inspect_set_verify(inspect_set *s, const inspect *o, sgt_error *err);
int inspect_set_show(const inspect_set *s, const inspect *o, sgt_error *err);

/* SGT_EFORMAT, saying what the file is, if it is no shard: it has no header, is none of Megatron's,
 * and has no name that ends in .bin, under which a shard without a header is believed. */
int inspect_known(const char *path, sgt_error *err);

/* Where the documents of a shard start, as its .idx file says: rising, and all within the shard. */
typedef struct inspect_starts {
    char *path;
    uint64_t *at; /* tokens of the shard */
    uint64_t count;
} inspect_starts;

/* Free in any case. None where there is no .idx file, which a set with a manifest must have. */
int inspect_starts_read(inspect_starts *k, const inspect_set *s, const inspect_shard *d,
                        sgt_error *err);
void inspect_starts_free(inspect_starts *k);
/* Whether `id`, the token that start i points at, begins a document. */
int inspect_starts_check(const inspect_starts *k, uint64_t i, const inspect_shard *d, uint16_t id,
                         sgt_error *err);

/* All of one shard, and of sources.jsonl. *bytes grows, atomically, by what was read. */
int inspect_shard_verify(const inspect_set *s, const inspect_shard *d, const sgt_stop *stop,
                         uint64_t *bytes, sgt_error *err);
int inspect_sources_verify(const inspect_set *s, const inspect *o, sgt_error *err);

/* A set's tokens one after the other, over all its shards or those of one split (NULL: all). */
typedef struct inspect_reader {
    const inspect_set *s;
    const char *split;
    uint32_t vocab; /* where not 0, an id that is not below is an error */
    size_t shard;
    /* the next token of that shard; bytes of it that the page cache was rid of */
    uint64_t at, dropped;
    int fd;
} inspect_reader;

void inspect_reader_start(inspect_reader *r, const inspect_set *s, const char *split,
                          uint64_t from);
/* Up to `want` tokens; fewer come only at the end. */
int inspect_reader_next(inspect_reader *r, uint16_t *ids, size_t want, size_t *got, sgt_error *err);
void inspect_reader_end(inspect_reader *r);

uint64_t inspect_tokens(const inspect_set *s, const char *split); /* how many */
/* The shard that holds token number `token`, and which of its tokens that is; NULL: there are not
 * so many. */
const inspect_shard *inspect_place(const inspect_set *s, const char *split, uint64_t token,
                                   uint64_t *offset);
/* The ids of a shard are below this: its header's size of the vocabulary, or GPT-2's. */
uint32_t inspect_ids(const inspect_shard *d);

/* 0: the two hold the same tokens. 1: they do not, and it was said where they first differ. */
int inspect_compare(const inspect *o, const char *const paths[2], sgt_error *err);
/* paths[count] are the sets, and last OUT. */
int inspect_merge(const inspect *o, const char *const *paths, size_t count, sgt_error *err);

int inspect_decode(const inspect_set *s, const inspect *o, sgt_error *err);
int inspect_batches(const inspect *o, sgt_error *err);

int inspect_run(const inspect *o, sgt_error *err); /* RUN/ */
/* RUN/step-NNNNNNNN/, or any such folder */
int inspect_checkpoint(const inspect *o, sgt_error *err);

/* " label key value, key value, ...", wrapped: what an object holds beside arrays and objects. */
void inspect_show_pairs(const char *label, const json_t *object);

/* "FROM:COUNT", or "FROM" alone with COUNT 1. SGT_EUSAGE names the option. */
int inspect_span(uint64_t *from, uint64_t *count, const char *text, const char *option,
                 sgt_error *err);

/* The vocabulary that the ids of the shard at `path` belong to: GPT-2's, or where the header says
 * that they are another's, that of tokenizer.json beside the shard. SGT_EUNSUPPORTED: neither. */
int inspect_vocabulary(sgt_vocab **out, const sgt_shard_header *h, const char *path,
                       sgt_error *err);

/* One document on standard output, or one line. Takes `o` over. */
int inspect_print_json(json_t *o, int line, sgt_error *err);

int inspect_exists(const char *folder, const char *name);

/* "x.idx" for "x.bin", malloc'd; NULL: out of memory, or no such name. */
char *inspect_index_path(const char *shard);

/* Keeps the line of a failure of one shard as its damage: SGT_OK, or `rc` where it is no such
 * thing. */
int inspect_note_damage(inspect_set *s, inspect_shard *d, int rc, const sgt_error *err);

#endif
