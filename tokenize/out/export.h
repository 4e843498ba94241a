/* export.h: converts a complete set of shards to files for another trainer (sgt_layout). It is used
 * by sgt-tokenize --shards and sgt-inspect --export.
 *
 *     sgt_manifest to = {0};
 *     sgt_export e = {.set = made, .work = "dir/.work", .layout = ...};
 *     rc = sgt_export_write(&e, &to, &err);                      // files with temporary names
 *     if (!rc) rc = sgt_export_move(e.work, "dir", &to, &err);   // their final names
 *     ... publish the manifest `to`, last ...
 *     sgt_manifest_free(&to);
 *
 * In sgt's shards, the end-of-text id begins a document; in the other trainers' files, it ends one.
 * To convert a split, its first id is dropped, and an end-of-text id is appended. The index of each
 * document's first token stays the same. All shards are verified while they are read, as by
 * sgt_shard_verify. Memory: 8 bytes for each document of one shard. */
#ifndef SGT_EXPORT_H
#define SGT_EXPORT_H

#include <stdint.h>

#include "loader/base/error.h"
#include "loader/shards/manifest.h"
#include "tokenize/out/made.h"
#include "tokenize/sgt_tokenize.h"

typedef struct sgt_export {
    sgt_made *set;    /* a complete set in our own layout */
    const char *work; /* folder in which the new files are written; the caller has locked it */
    sgt_layout layout;
    const sgt_stop *stop;
    /* called at intervals with the number of tokens written so far; may be NULL */
    void (*progress)(void *ctx, uint64_t tokens);
    void *ctx;
} sgt_export;

/* sgt_layout_names: the names of the layouts, "sgt", "megatron", "nanogpt", "npy".
 * sgt_layout_says[w][layout]: a phrase that tells the user what the files of this layout are for,
 * if their token ids have 16 bits (w = 0) or 32 bits (w = 1). */
extern const char *const sgt_layout_names[], *const sgt_layout_says[2][4];

/* Return the options of a set after its conversion to `layout`, as JSON text that the caller frees,
 * or NULL if out of memory. `options` are the options before the conversion. For sgt's own layout,
 * the result equals them. For any other layout, shard_tokens is removed and "shards" is added. */
char *sgt_export_options(const char *options, sgt_layout layout);

/* Convert the set, and write the new files into e->work. Each file is flushed to disk, and its name
 * has ".tmp" appended. Describe the new set in *to, which the caller must free, even after an
 * error. If a document is too long for Megatron-LM's index, return SGT_EUNSUPPORTED with a message
 * that names the document. */
int sgt_export_write(const sgt_export *e, sgt_manifest *to, sgt_error *err);

/* Rename the files in `work` to their final names in `out`, each .idx file before its .bin file.
 * First, write the manifest of the new set into `work`. If this run is killed, the next run finds
 * in it the names of the files that it has to remove from `out`. */
int sgt_export_move(const char *work, const char *out, const sgt_manifest *to, sgt_error *err);

/* Copy the file `name` from folder `from` to folder `to`, and flush the copy to disk. */
int sgt_export_copy(const char *from, const char *to, const char *name, sgt_error *err);

#endif
