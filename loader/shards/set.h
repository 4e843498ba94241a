/* set.h: find and check the shards of a set, including all of Megatron-LM's .idx files. A loader
 * stops at the first damaged shard; sgt-inspect can list all damage (a "survey"). documents.c finds
 * where the documents of a set are. */
#ifndef SGT_SET_H
#define SGT_SET_H

#include <stdint.h>
#include <sys/stat.h>

#include "loader/base/file.h"
#include "loader/sample/sampler.h"
#include "loader/sgt_loader.h"
#include "loader/shards/manifest.h"
#include "loader/shards/shard.h"

#define SGT_NO_ID UINT32_MAX

typedef struct sgt_set_shard {
    char *path;
    sgt_shard_header head;
    /* number of documents that start in it, by the manifest; UINT64_MAX: unknown */
    uint64_t documents;
    /* end-of-text id, which begins or ends a document: from the header or the manifest. If neither
     * states it, GPT-2's for 2-byte ids, and SGT_NO_ID for 4-byte ids */
    uint32_t eot;
    struct stat file; /* identity of the file, and time of its last change */
    uint32_t set;     /* for a loader: number of the set that the shard belongs to */
    int raw;          /* argument `raw` of sgt_shard_open, to open the shard again */
    uint64_t index;   /* hash of Megatron-LM's .idx */
    char *damage;     /* in a survey: a line that describes the shard's damage; NULL: none found */
} sgt_set_shard;

typedef struct sgt_set {
    sgt_set_shard *shards; /* the shards used, in order */
    uint32_t count, skipped;
    uint32_t first;   /* index of the first shard of the set that was opened last */
    int survey;       /* 1: a shard's damage is stored in the shard and is not an error */
    uint32_t damaged; /* number of damaged shards */
    size_t room;      /* number of shards that fit in the allocated memory */
    uint64_t tokens;
    uint32_t vocab; /* every id must be below this */
    size_t width;   /* bytes of an id */
    /* hash of the manifest's bytes. Without a manifest, hash of the shards' names, sizes and
     * headers, and of the tokens at both ends of shards whose header has no checksum */
    uint64_t hash;
} sgt_set;

/* Open the shards of o->split in a folder (those that its manifest names, if it has one), or the
 * one shard at `path`, and add them to those of s, which is {0} at first. o->seq must be set. Sets
 * s->vocab to the smallest vocabulary size of all sets, and s->hash to the hash of this set.
 * Returns SGT_EFORMAT if headers name different vocabularies, or if ids have different widths.
 * Shards that are too short for one window are left out. For samplings documents and packed, only
 * empty shards are left out, because a document may continue in a shard of any size. Close s after
 * a failure, too. */
int sgt_set_open(sgt_set *s, const char *path, const sgt_loader_options *o, sgt_error *err);
void sgt_set_close(sgt_set *s);

/* sgt_set_open calls the next functions. Check the shards of one split of a folder, of any length,
 * and add them to s. If the folder has a manifest m (sgt_manifest_find), these are the shards that
 * it lists. Otherwise they are the first of these that exist, sorted by name: "SPLIT_*.bin";
 * "NAME_SPLIT_*.bin" and "NAME_SPLIT.bin", with one NAME for all; any *.bin with an .idx of
 * Megatron-LM; nanoGPT's "SPLIT.bin", which may have no header; and if `raw` is not 0, SPLIT.npy.
 * Of Megatron-LM's files, names with the word val, valid or validation belong to the split "val",
 * names with test to no split, and all others to "train". It is no error if there are no shards. */
int sgt_set_add_split(sgt_set *s, const char *folder, const char *split, int raw,
                      const sgt_manifest *m, sgt_error *err);
/* Add the shard at `path`; `raw` is as in sgt_shard_open. If it is not 0, `path` may also be
 * Megatron-LM's PREFIX (which is not a file) or PREFIX.idx. */
int sgt_set_add(sgt_set *s, const char *path, int raw, sgt_error *err);
/* Check that the shards from number s->first on have the same vocabulary, and that all shards of s
 * have ids of the same width. In a survey, a shard that differs from the first one counts as
 * damaged. */
int sgt_set_check_alike(sgt_set *s, sgt_error *err);
/* Return rc, the result of a shard's check. But in a survey, if rc means damage (SGT_EFORMAT or
 * SGT_EIO), store the error's text in the shard, unless it has one already, and return SGT_OK. */
int sgt_set_keep_damage(sgt_set *s, sgt_set_shard *h, int rc, sgt_error *err);

/* Open a shard again for reading, and check that it is still the same file, with the same size,
 * header and time of last writing. Returns a descriptor, or a negative SGT_E*. Any number of
 * threads may call it. */
int sgt_set_open_shard(const sgt_set *s, uint32_t shard, sgt_error *err);

/* If the shard's file is now shorter than when the set was opened, return 1 and set *end to its
 * size. If the path names another file by now, return 0. */
int sgt_set_is_cut(const sgt_set_shard *h, uint64_t *end);

/* Fail because byte `at` of a shard cannot be read. Returns SGT_EFORMAT if the file was cut short
 * since the set was opened, else SGT_EIO. */
int sgt_set_fail_read(const sgt_set_shard *h, uint64_t at, sgt_error *err);

/* Return the first shard whose vocabulary's fingerprint is known, from its header or the manifest,
 * or NULL. */
const sgt_set_shard *sgt_set_marked(const sgt_set *s);

/* ---- documents ----
 *
 * Find the positions of the documents of a set, for the samplings documents and packed. A document
 * extends to the start of the next one, across as many shards as that takes. The set's last
 * document ends with its last shard.
 *
 *     sgt_documents d = {0};
 *     if (sgt_documents_find(&d, &set, 1, &err) < 0) ...;
 *     // which shard, and which of its documents
 *     sgt_window w = sgt_sampler_window(&sampler, NULL, row);
 *     // where it starts, and its tokens
 *     w = sgt_documents_window(&d, &set, &w, T + 1);
 *     sgt_documents_free(&d);
 *
 * Each start takes four bytes: 32 MB for the eight million documents of OpenWebText. */

typedef struct sgt_documents {
    size_t count, room;
    /* (count): first token of each document within its shard, shard after shard */
    uint32_t *starts;
    uint64_t *before; /* (shards + 1): number of documents that start in earlier shards */
    /* (shards): 1 if the starts are unknown, because the shard has no .idx file and its tokens were
     * not searched */
    uint8_t *unlisted;
    uint32_t unlisted_count;
} sgt_documents;

/* Find the documents of all shards of a set, or of several sets in one list. *d must be {0}; free
 * it after a failure, too. Reads SHARD.idx for SHARD.bin. If that is missing and `look` is not 0,
 * searches for end-of-text ids. The message of SGT_EFORMAT names the file and the offset of an
 * impossible entry. */
int sgt_documents_find(sgt_documents *d, const sgt_set *set, int look, sgt_error *err);
void sgt_documents_free(sgt_documents *d); /* frees all but `count` */

/* Find the document starts in a window that lies in one shard. Stores their offsets, in tokens from
 * the window's first, in `starts`, which has room for w->tokens, and returns their number. In an
 * unlisted shard, the starts are the ids equal to `eot` among the window's `tokens`, which have
 * `width` bytes each. */
uint32_t sgt_documents_within(const sgt_documents *d, const sgt_window *w, const void *tokens,
                              size_t width, uint32_t eot, uint32_t *starts);

/* Write "x.idx" for "x.bin" to `path`, and return it; NULL if the name has another ending. */
char *sgt_index_path(char path[SGT_PATH], const char *shard);
/* Read the file `path`, the .idx of a shard of `tokens` tokens in which `documents` documents start
 * (UINT64_MAX: unknown). Sets *starts to a malloc'd array of the index of each document's first
 * token. The indices are ascending and below `tokens`. */
int sgt_index_read(uint64_t **starts, size_t *count, const char *path, uint64_t tokens,
                   uint64_t documents, sgt_error *err);

/* Return the position and the length (at most `most` tokens) of a document: number w->offset, from
 * 0, among those that start in w->shard. It may continue in later shards of its set. */
sgt_window sgt_documents_window(const sgt_documents *d, const sgt_set *set, const sgt_window *w,
                                uint32_t most);

#endif
