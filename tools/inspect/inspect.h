/* inspect.h: the parts of sgt-inspect. set.c knows shards and folders of them, text.c turns them back into text,
 * batch.c shows what the trainer would see, run.c reads run directories and checkpoints; sgt-inspect.c holds the
 * command line. */
#ifndef SGT_TOOLS_INSPECT_H
#define SGT_TOOLS_INSPECT_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "manifest.h"
#include "sgt_tokenize.h"
#include "shard.h"

/* What the command line asks for. */
typedef struct inspect {
    const char *path;
    int json, quiet, verify, raw;
    const char *decode, *batch; /* FROM:COUNT and K[:N] as typed; NULL: not asked for */
    const char *split;          /* NULL: every split */
    const char *loader, *sampling;
    uint64_t seed, batch_size, seq_len, pad;
    int padded_by; /* whether pad was given */
    sgt_notice notice;
    const sgt_stop *stop;
} inspect;

typedef struct inspect_shard {
    char *path;
    const char *split; /* "train", "val"; "" for a file named itself */
    sgt_shard_header header;
    uint64_t documents; /* from the manifest or the .idx file */
    int documents_known;
    int indexed; /* there is an .idx file beside it */
    int listed;  /* the manifest has it */
} inspect_shard;

enum { INSPECT_SPLITS = 2 };
extern const char *const inspect_splits[INSPECT_SPLITS]; /* in the order of the set */

/* Shards in order of their split (train, val) and name, every header checked against its file's size. */
typedef struct inspect_set {
    const char *path;
    int folder, unfinished; /* unfinished: sgt-tokenize has not ended there */
    sgt_manifest *manifest; /* NULL: none */
    inspect_shard *shards;
    size_t count;
    uint64_t tokens, documents; /* over all shards */
    int documents_known;
} inspect_set;

/* All of these return 0 or a negative SGT_E* with *err filled in; results go to standard output. */
int inspect_set_open(inspect_set *s, const inspect *o, sgt_error *err);
void inspect_set_close(inspect_set *s);
int inspect_set_verify(const inspect_set *s, const inspect *o, sgt_error *err);
int inspect_set_show(const inspect_set *s, const inspect *o, sgt_error *err);

int inspect_decode(const inspect_set *s, const inspect *o, sgt_error *err);
int inspect_batches(const inspect *o, sgt_error *err);

int inspect_run(const inspect *o, sgt_error *err);        /* RUN/ */
int inspect_checkpoint(const inspect *o, sgt_error *err); /* RUN/step-NNNNNNNN/, or any such folder */

/* "  label       key value, key value, ...", wrapped: what an object holds beside arrays and objects. */
void inspect_show_pairs(const char *label, const json_t *object);

/* "FROM:COUNT", or "FROM" alone with COUNT 1. SGT_EUSAGE names the option. */
int inspect_span(uint64_t *from, uint64_t *count, const char *text, const char *option, sgt_error *err);

/* The vocabulary that the ids belong to: GPT-2's, unless the header says that they are another's. */
int inspect_vocabulary(sgt_vocab **out, const sgt_shard_header *h, const char *path, sgt_error *err);

/* Text of n bytes as JSON's string: what is not UTF-8 becomes U+FFFD, one for each maximal ill-formed subpart. */
json_t *inspect_json_text(const char *text, size_t n);

/* One document on standard output, or one line. Takes `o` over. */
int inspect_print_json(json_t *o, int line, sgt_error *err);

int inspect_exists(const char *folder, const char *name);

#endif
