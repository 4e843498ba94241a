/* export.h: rewrite a complete set as another trainer's files (sgt_layout). Both sgt-tokenize
 * --shards and sgt-inspect --export use it:
 *
 *     sgt_manifest to = {0};
 *     sgt_export e = {.set = made, .work = "dir/.work", .layout = ...};
 *     rc = sgt_export_write(&e, &to, &err);                      // files with temporary names
 *     if (!rc) rc = sgt_export_move(e.work, "dir", &to, &err);   // their final names
 *     ... publish the manifest `to`, last ...
 *     sgt_manifest_free(&to);
 *
 * Our end-of-text id begins a document, while the other trainers' ends it. So a split's first id is
 * left out, and an end-of-text id is appended after its last. Each document then begins at the same
 * token number as before. Everything that is read is verified as by sgt_shard_verify. Memory: 8
 * bytes for each document of one shard. */
#ifndef SGT_EXPORT_H
#define SGT_EXPORT_H

#include <stdint.h>

#include "loader/base/error.h"
#include "loader/shards/manifest.h"
#include "tokenize/out/made.h"
#include "tokenize/sgt_tokenize.h"

typedef struct sgt_export {
    sgt_made *set;    /* a complete set in our own layout */
    const char *work; /* folder for the new files; the caller holds its lock */
    sgt_layout layout;
    const sgt_stop *stop;
    /* called now and then with the number of tokens written so far; may be NULL */
    void (*progress)(void *ctx, uint64_t tokens);
    void *ctx;
} sgt_export;

/* Names of the layouts: "sgt", "megatron", "nanogpt", "npy". For each layout, a sentence that tells
 * how to use the files, for ids of 16 bits and of 32. */
extern const char *const sgt_layout_names[], *const sgt_layout_says[2][4];

/* Return the options of a set in a layout, as malloc'd JSON text; NULL if out of memory. For our
 * own layout they are `options`; for any other, `options` without shard_tokens and with
 * "shards". */
char *sgt_export_options(const char *options, sgt_layout layout);

/* Write the files into e->work, with ".tmp" appended to their names, and flush them to disk.
 * Describe the new set in *to, which the caller frees, also after a failure. SGT_EUNSUPPORTED names
 * a document that Megatron-LM's index cannot hold. */
int sgt_export_write(const sgt_export *e, sgt_manifest *to, sgt_error *err);

/* Write the manifest into `work`, so that a later run which starts over knows the files' names.
 * Then rename the files to their final names in `out`, each .idx before its .bin. */
int sgt_export_move(const char *work, const char *out, const sgt_manifest *to, sgt_error *err);

/* Copy the file `name` from one folder to another, and flush the copy to disk. */
int sgt_export_copy(const char *from, const char *to, const char *name, sgt_error *err);

#endif
