/* set.h: which shards a loader draws from: found, checked (Megatron-LM's .idx to its end), those
 * too short for one window left out (of documents, those without a token: a document may run on
 * into a shard of any size). */
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
    uint64_t documents; /* that start in it, as the manifest says; UINT64_MAX: nobody does */
    dev_t device;       /* which file it is, and when it was written: */
    ino_t inode;
    struct timespec written;
} sgt_set_shard;

typedef struct sgt_set {
    sgt_set_shard *shards; /* those used, in order */
    uint32_t count, skipped;
    uint64_t tokens;
    uint32_t vocab; /* every id is below this */
    /* of the manifest's bytes; where there is none, of names, sizes and headers, and of the tokens
     * at the ends of shards whose header has no checksum */
    uint64_t hash;
    int raw; /* as sgt_shard_open takes it */
} sgt_set;

/* The shards of o->split in a folder (those its manifest names, where it has one), or the one shard
 * `path` is. o->seq is set. */
int sgt_set_open(sgt_set *s, const char *path, const sgt_loader_options *o, sgt_error *err);
void sgt_set_close(sgt_set *s);

/* The shards of `more` after those of s: `more` is left empty, and so it is after a failure. Ids
 * are then below both vocabularies; SGT_EFORMAT where headers say that these are not one. The hash
 * stays s's. */
int sgt_set_append(sgt_set *s, sgt_set *more, sgt_error *err);

/* Opens a shard again for reading and makes sure that it still is the file that it was, with the
 * size, the header and the time of writing that it had: a descriptor, or a negative SGT_E*. Any
 * number of threads may. */
int sgt_set_open_shard(const sgt_set *s, uint32_t shard, sgt_error *err);

/* The id that begins a document of a shard: the header's, or GPT-2's. */
uint32_t sgt_set_eot(const sgt_set *s, uint32_t shard);

/* "out/train_000003.bin: token 17 (byte 1058): id 60000, wanted below 50257": SGT_EFORMAT. */
int sgt_set_bad_id(const sgt_set *s, uint32_t shard, uint64_t token, uint16_t id, sgt_error *err);

#endif
