/* set.h: find and check the shards that a loader draws from (Megatron-LM's .idx to its end). Leaves
 * out shards that are too short for one window. When sampling documents or packed, leaves out only
 * empty shards, because a document may continue in a shard of any size. */
#ifndef SGT_SET_H
#define SGT_SET_H

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "loader/sgt_loader.h"
#include "loader/shards/shard.h"

typedef struct sgt_set_shard {
    char *path;
    sgt_shard_header head;
    uint64_t documents; /* documents that start in it, by the manifest; UINT64_MAX: unknown */
    uint32_t eot;       /* id that begins or ends a document */
    dev_t device;       /* identity of the file, and when it was written: */
    ino_t inode;
    struct timespec written;
    int raw; /* argument `raw` of sgt_shard_open, to open the shard again */
} sgt_set_shard;

typedef struct sgt_set {
    sgt_set_shard *shards; /* the shards used, in order */
    uint32_t count, skipped;
    uint64_t tokens;
    uint32_t vocab; /* every id must be below this */
    /* hash of the manifest's bytes. Without a manifest: of names, sizes and headers, and of the
     * tokens at the ends of shards whose header has no checksum */
    uint64_t hash;
    int raw; /* argument `raw` of sgt_shard_open for all shards, until sgt_set_open returns */
} sgt_set;

/* Open the shards of o->split in a folder (those that its manifest names, if it has one), or the
 * one shard at `path`. o->seq must be set. */
int sgt_set_open(sgt_set *s, const char *path, const sgt_loader_options *o, sgt_error *err);
void sgt_set_close(sgt_set *s);

/* Move the shards of `more` to the end of those of s. `more` is left empty, after a failure too.
 * Ids must then be below both vocabulary sizes. SGT_EFORMAT if headers name different vocabularies.
 * s keeps its hash. */
int sgt_set_append(sgt_set *s, sgt_set *more, sgt_error *err);

/* Open a shard again for reading, and check that it is still the same file, with the same size,
 * header and time of last writing. Returns a descriptor, or a negative SGT_E*. Any number of
 * threads may call it. */
int sgt_set_open_shard(const sgt_set *s, uint32_t shard, sgt_error *err);

/* Return the first shard whose vocabulary's fingerprint is known, from its header or the manifest,
 * or NULL. */
const sgt_set_shard *sgt_set_marked(const sgt_set *s);

/* Return the id that begins a document of a shard: the header's, the manifest's, or GPT-2's. */
uint32_t sgt_set_eot(const sgt_set *s, uint32_t shard);

/* Fail with SGT_EFORMAT and a message such as "out/train_000003.bin: token 17 (byte 1058): id
 * 60000, expected below 50257". */
int sgt_set_bad_id(const sgt_set *s, uint32_t shard, uint64_t token, uint16_t id, sgt_error *err);

#endif
