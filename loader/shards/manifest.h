/* manifest.h: OUT/manifest.json, which says what a folder of shards holds and which options made
 * it. */
#ifndef SGT_MANIFEST_H
#define SGT_MANIFEST_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sgt_manifest_shard {
    char file[64];  /* "train_000000.bin" */
    char split[16]; /* "train", "val" */
    uint64_t tokens, documents, xxh3;
} sgt_manifest_shard;

typedef struct sgt_manifest {
    char *options;        /* JSON object text: the options that change bytes */
    char vocabulary[64];  /* "gpt2" */
    uint64_t fingerprint; /* of the vocabulary */
    uint32_t vocab, eot;
    sgt_manifest_shard *shards;
    size_t count;
    uint64_t tokens, documents, bytes, files; /* totals over all splits */
    uint64_t invalid_utf8;                    /* maximal ill-formed subparts met */
    /* of JSONL: lines left out, half escapes; not written where 0 */
    uint64_t bad_lines, lone_surrogates;
    uint64_t duplicates; /* documents left out; not written where 0 */
    /* files left out because they are not text; not written where 0 */
    uint64_t skipped;
    /* JSON array text: the first of them, {path, offset}; NULL: none */
    char *invalid;
} sgt_manifest;

/* Reads and checks OUT/manifest.json. A shard is a name in the folder, no path; what has that name
 * may be a symbolic link, such as users lay from disk to disk: it is read, and never written
 * through. Memory: 30 times the file's size at most, and 24 MiB. Free with sgt_manifest_free. */
int sgt_manifest_read(sgt_manifest *m, const char *folder, sgt_error *err);
/* Atomic; the same bytes for the same content. */
int sgt_manifest_write(const sgt_manifest *m, const char *folder, sgt_error *err);
void sgt_manifest_free(sgt_manifest *m);

#ifdef __cplusplus
}
#endif
#endif
