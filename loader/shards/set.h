/* set.h: find and check the shards of a set (Megatron-LM's .idx to its end): for a loader, which
 * stops at the first damaged one, and for sgt-inspect, which may want to know all damage.
 * documents.c finds where the documents of a set are. */
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
    uint64_t documents; /* documents that start in it, by the manifest; UINT64_MAX: unknown */
    /* id that begins or ends a document: the header's, the manifest's, or if neither names one,
     * GPT-2's; SGT_NO_ID if ids have 4 bytes */
    uint32_t eot;
    struct stat file; /* its identity, and when it was written */
    uint32_t set;     /* of a loader: which of its sets it belongs to */
    int raw;          /* argument `raw` of sgt_shard_open, to open the shard again */
    uint64_t index;   /* hash of Megatron-LM's .idx */
    char *damage;     /* in a survey: the line that describes its damage; NULL: none is known */
} sgt_set_shard;

typedef struct sgt_set {
    sgt_set_shard *shards; /* the shards used, in order */
    uint32_t count, skipped;
    uint32_t first;   /* of the shards, the first of the set that was opened last */
    int survey;       /* 1: damage of a shard is kept in it, and is no error */
    uint32_t damaged; /* shards with damage */
    size_t room;      /* shards that there is memory for */
    uint64_t tokens;
    uint32_t vocab; /* every id must be below this */
    size_t width;   /* bytes of an id */
    /* hash of the manifest's bytes. Without a manifest: of names, sizes and headers, and of the
     * tokens at the ends of shards whose header has no checksum */
    uint64_t hash;
} sgt_set;

/* Open the shards of o->split in a folder (those that its manifest names, if it has one), or the
 * one shard at `path`, and add them to those of s, which is {0} at first. o->seq must be set. Ids
 * must then be below the vocabulary sizes of all sets; SGT_EFORMAT if headers name different
 * vocabularies, or ids have different widths. s->hash is that of this set. Leaves out shards that
 * are too short for one window. When sampling documents or packed, leaves out only empty shards,
 * because a document may continue in a shard of any size. Close s after a failure, too. */
int sgt_set_open(sgt_set *s, const char *path, const sgt_loader_options *o, sgt_error *err);
void sgt_set_close(sgt_set *s);

/* Its parts. Check the shards of one split of a folder, of any length, and add them to s: those
 * that the manifest m lists, with what it says of each. If there is none (sgt_manifest_find), those
 * with the names, in their order, "SPLIT_*.bin"; else those of other programs: "NAME_SPLIT_*.bin"
 * and "NAME_SPLIT.bin", with one NAME for all; else Megatron-LM's, any *.bin with such an .idx. Of
 * the latter, names with the word val, valid or validation are the split "val", those with test are
 * in no split, and all others are "train". Else nanoGPT's "SPLIT.bin", which may have no header;
 * with `raw` not 0, else SPLIT.npy. There may be no shards. */
int sgt_set_add_split(sgt_set *s, const char *folder, const char *split, int raw,
                      const sgt_manifest *m, sgt_error *err);
/* Add the shard at `path`; `raw` is that of sgt_shard_open. Unless that is 0, `path` may also be
 * Megatron-LM's PREFIX (which is not a file) or PREFIX.idx. */
int sgt_set_add(sgt_set *s, const char *path, int raw, sgt_error *err);
/* Check that the shards from number s->first on have one vocabulary, and that all of s have ids of one
 * width. In a survey, those that differ from the first are damaged. */
int sgt_set_check_alike(sgt_set *s, sgt_error *err);
/* Return rc, the result of a shard's check. In a survey, damage (SGT_EFORMAT, SGT_EIO) is kept in the
 * shard, unless it has some, and SGT_OK is returned. */
int sgt_set_keep_damage(sgt_set *s, sgt_set_shard *h, int rc, sgt_error *err);

/* Open a shard again for reading, and check that it is still the same file, with the same size,
 * header and time of last writing. Returns a descriptor, or a negative SGT_E*. Any number of
 * threads may call it. */
int sgt_set_open_shard(const sgt_set *s, uint32_t shard, sgt_error *err);

/* If the shard's file is now shorter than when the set was opened, return 1 and set *end to its size.
 * Its path may name another file by now, of which nothing is said. */
int sgt_set_is_cut(const sgt_set_shard *h, uint64_t *end);

/* Fail because byte `at` of a shard cannot be read, with SGT_EFORMAT if its file was cut short since
 * the set was opened. */
int sgt_set_fail_read(const sgt_set_shard *h, uint64_t at, sgt_error *err);

/* Return the first shard whose vocabulary's fingerprint is known, from its header or the manifest,
 * or NULL. */
const sgt_set_shard *sgt_set_marked(const sgt_set *s);

/* ---- documents ----
 *
 * Find where the documents of a set are, for sampling documents (one row per document). A document
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
    uint32_t *starts; /* (count): offsets in tokens within their shards, shard after shard */
    uint64_t *before; /* (shards + 1): number of documents that start in earlier shards */
    /* (shards): 1 if the starts are unknown: the shard has no .idx file, and its tokens were not
     * searched */
    uint8_t *unlisted;
    uint32_t unlisted_count;
} sgt_documents;

/* Find the documents of all shards of a set, or of several sets one after the other; *d is {0}, and
 * is freed after a failure, too. Reads SHARD.idx beside SHARD.bin; without it, searches for
 * end-of-text ids if `look` is not 0. SGT_EFORMAT names the file and the offset of an impossible
 * entry. */
int sgt_documents_find(sgt_documents *d, const sgt_set *set, int look, sgt_error *err);
void sgt_documents_free(sgt_documents *d); /* all but their number */

/* Find the document starts in a window that lies in one shard. Stores their offsets, in tokens from
 * the window's first, in `starts`, which has room for w->tokens, and returns their number. In an
 * unlisted shard, the ids equal to `eot` among the window's `tokens`, of `width` bytes each, are the
 * starts. */
uint32_t sgt_documents_within(const sgt_documents *d, const sgt_window *w, const void *tokens,
                              size_t width, uint32_t eot, uint32_t *starts);

/* Write "x.idx" for "x.bin" to `path`, and return it; NULL if the name has another ending. */
char *sgt_index_path(char path[SGT_PATH], const char *shard);
/* Read the file `path`, the .idx of a shard of `tokens` tokens in which `documents` documents start
 * (UINT64_MAX: unknown). *starts, malloc'd, has the index of each document's first token; they rise,
 * and are below `tokens`. */
int sgt_index_read(uint64_t **starts, size_t *count, const char *path, uint64_t tokens,
                   uint64_t documents, sgt_error *err);

/* Return the position and the length, at most `most` tokens, of one document: number w->offset,
 * from 0, of those that start in w->shard. It may continue in later shards of its set. */
sgt_window sgt_documents_window(const sgt_documents *d, const sgt_set *set, const sgt_window *w,
                                uint32_t most);

#endif
