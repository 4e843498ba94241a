/* set.h: find and check the shards of a set, including .idx files of Megatron-LM. A loader stops at
 * the first damaged shard. sgt-inspect instead makes a survey, which lists all damaged shards.
 * documents.c finds where the documents of a set begin. */
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
    /* number of documents that begin in this shard, according to the manifest or to an .idx file of
     * Megatron-LM; UINT64_MAX: unknown */
    uint64_t documents;
    /* end-of-text id, which separates documents, from the header or the manifest. If neither states
     * it, this is GPT-2's id if ids are 2 bytes wide, or SGT_NO_ID if they are 4 bytes wide */
    uint32_t eot;
    /* result of fstat when the set was opened, to detect later whether the file was replaced or
     * modified */
    struct stat file;
    /* index of the set to which the shard belongs, if the loader has several sets */
    uint32_t set;
    /* value to pass to sgt_shard_open as `raw` when it reopens this shard */
    int raw;
    uint64_t index; /* hash of the .idx file, if it is one of Megatron-LM */
    /* message that says how the shard is damaged, stored only in a survey (sgt_set.survey); NULL:
     * no damage was found */
    char *damage;
} sgt_set_shard;

typedef struct sgt_set {
    sgt_set_shard *shards; /* the shards in use, in the order in which they were added */
    uint32_t count, skipped;
    uint32_t first; /* index in `shards` of the first shard of the set that was opened last */
    /* 1: this is a survey, in which the message about a damaged shard is stored in the shard, and
     * the next shard is examined; 0: fail at the first damaged shard */
    int survey;
    uint32_t damaged; /* number of damaged shards */
    size_t room;      /* number of elements for which `shards` has memory */
    uint64_t tokens;
    uint32_t vocab; /* exclusive upper bound of all ids */
    size_t width;   /* number of bytes per id */
    /* hash that identifies the set that was opened last. If the set has a manifest, this is the
     * hash of the manifest's bytes. Otherwise it is a hash of the shards' names, sizes and headers
     * and, for each shard whose header has no checksum, of the shard's first and last tokens */
    uint64_t hash;
} sgt_set;

/* Open a set and append its shards to s, which must be zeroed before the first call. The caller
 * must call sgt_set_close even after a failure.
 * - If `path` is a folder, the set consists of the folder's shards of split o->split. If there is a
 *   manifest, these are the shards that the manifest lists.
 * - Otherwise the set consists of the shard at `path`.
 *
 * Sets s->vocab to the smallest vocabulary size among all sets so far, and s->hash to the hash of
 * this set. Returns SGT_EFORMAT if the headers name different vocabularies, or if not all ids have
 * the same width.
 *
 * Shards that are too short for a window of o->seq + 1 tokens are skipped. For the samplings
 * `documents` and `packed`, only empty shards are skipped, because a document may continue in a
 * shard of any size. */
int sgt_set_open(sgt_set *s, const char *path, const sgt_loader_options *o, sgt_error *err);
void sgt_set_close(sgt_set *s);

/* The following functions are used by sgt_set_open and by sgt-inspect.
 *
 * sgt_set_add_split checks the shards of one split of a folder, whatever their length, and appends
 * them to s. m is the folder's manifest (see sgt_manifest_find). If there is a manifest, its shards
 * of this split are appended. Otherwise shards are found by their names, and appended in the order
 * of these names. The first of the following patterns that matches any file is used:
 *
 *   "SPLIT_*.bin"
 *   "NAME_SPLIT_*.bin" and "NAME_SPLIT.bin", with the same NAME in all files
 *   any *.bin that has an .idx file of Megatron-LM
 *   "SPLIT.bin" of nanoGPT, which may have no header
 *   "SPLIT.npy", if `raw` is not 0
 *
 * The split of a Megatron-LM file follows from the words in its name: val, valid or validation
 * means "val", test means no split, and any other name means "train". It is not an error if there
 * are no shards. */
int sgt_set_add_split(sgt_set *s, const char *folder, const char *split, int raw,
                      const sgt_manifest *m, sgt_error *err);
/* Append the shard at `path`. `raw` has the same meaning as in sgt_shard_open. If `raw` is not 0,
 * `path` may also be PREFIX.idx, or PREFIX without .bin, of a Megatron-LM shard. */
int sgt_set_add(sgt_set *s, const char *path, int raw, sgt_error *err);
/* Check that all shards of the set that was opened last (from index s->first on) have the same
 * vocabulary, and that their ids are as wide as those of all other shards in s. In a survey
 * (s->survey is 1), a shard that differs is marked as damaged, and the check continues. Shards that
 * are already marked are not checked. */
int sgt_set_check_alike(sgt_set *s, sgt_error *err);
/* Handle rc, the result of checking shard h. If s->survey is 0, return rc. In a survey (s->survey
 * is 1), damage (SGT_EFORMAT or SGT_EIO) does not end the survey: store the message in h->damage,
 * unless it already has one, and return SGT_OK. */
int sgt_set_keep_damage(sgt_set *s, sgt_set_shard *h, int rc, sgt_error *err);

/* Open a shard for reading, and check that its path still names the same file, with the same number
 * of tokens and modification time as when the set was opened. Returns a file descriptor, or a
 * negative SGT_E*. Any number of threads may call this function at the same time. */
int sgt_set_open_shard(const sgt_set *s, uint32_t shard, sgt_error *err);

/* If the shard's file is shorter than when the set was opened, return 1 and set *end to the size of
 * the file. Return 0 if it is not shorter, or if the path now names a different file. */
int sgt_set_is_cut(const sgt_set_shard *h, uint64_t *end);

/* Return the error for a shard whose byte `at` cannot be read: SGT_EFORMAT if the file is shorter
 * than when the set was opened, otherwise SGT_EIO. */
int sgt_set_fail_read(const sgt_set_shard *h, uint64_t at, sgt_error *err);

/* Return the first shard whose header or manifest states the fingerprint of the vocabulary, or NULL
 * if there is no such shard. */
const sgt_set_shard *sgt_set_marked(const sgt_set *s);

/* ---- documents ----
 *
 * Find where the documents of a set begin, for the samplings `documents` and `packed`. A document
 * ends where the next document begins, perhaps several shards later. The last document of a set
 * ends at the end of the set's last shard.
 *
 *     sgt_documents d = {0};
 *     if (sgt_documents_find(&d, &set, 1, &err) < 0) ...;
 *     // find the shard, and the index of the document within it
 *     sgt_window w = sgt_sampler_window(&sampler, NULL, row);
 *     // find the document's first token and its length
 *     w = sgt_documents_window(&d, &set, &w, T + 1);
 *     sgt_documents_free(&d);
 *
 * This takes four bytes of memory per document: 32 MB for the eight million documents of
 * OpenWebText. */

typedef struct sgt_documents {
    size_t count, room;
    /* array of `count` elements: the first token of each document, as an index in its shard, in the
     * order of the shards */
    uint32_t *starts;
    /* array of shards + 1 counts: element s is the number of documents that begin in shards before
     * shard s */
    uint64_t *before;
    /* array with a flag for each shard: 1 if it is unknown where the documents of the shard begin,
     * because it has no .idx file and its tokens were not searched; otherwise 0 */
    uint8_t *unlisted;
    uint32_t unlisted_count;
} sgt_documents;

/* Find the documents of all shards in `set`, which may consist of several sets. *d must be zeroed
 * before the call, and freed even after a failure. The beginnings of documents are read from
 * SHARD.idx. If a shard has no such file and `look` is not 0, the tokens of the shard are searched
 * for end-of-text ids. If an .idx file is invalid (SGT_EFORMAT), the message names the file and the
 * offset of the invalid entry. */
int sgt_documents_find(sgt_documents *d, const sgt_set *set, int look, sgt_error *err);
void sgt_documents_free(sgt_documents *d); /* frees all members except `count` */

/* Find the documents that begin in window *w of a shard. Store their positions in the window in
 * `starts`, and return their number. `starts` has room for w->tokens elements. `tokens` points to
 * the ids of the window, which are `width` bytes wide. If *d does not know where the documents of
 * this shard begin, each id that equals `eot` begins a document. */
uint32_t sgt_documents_within(const sgt_documents *d, const sgt_window *w, const void *tokens,
                              size_t width, uint32_t eot, uint32_t *starts);

/* If `shard` is "x.bin", write "x.idx" to `path` and return `path`. Otherwise return NULL. */
char *sgt_index_path(char path[SGT_PATH], const char *shard);
/* Read an .idx file into the malloc'd array *starts, and set *count to the number of its elements.
 * These are the first tokens of the documents, as indices in the shard. They must be in ascending
 * order and below `tokens`, the number of tokens in the shard. Unless `documents` is UINT64_MAX
 * (unknown), the file must have that many entries. */
int sgt_index_read(uint64_t **starts, size_t *count, const char *path, uint64_t tokens,
                   uint64_t documents, sgt_error *err);

/* Find a document, and return its shard, its first token and its length as a window. It is the
 * document with index w->offset among the documents that begin in shard w->shard. Its length is
 * limited to `most` tokens, and includes tokens in later shards of the set if the document
 * continues there. */
sgt_window sgt_documents_window(const sgt_documents *d, const sgt_set *set, const sgt_window *w,
                                uint32_t most);

#endif
